// SPDX-License-Identifier: Apache-2.0
#include "runtime/frames.h"

#include "runtime/stack.h"

#include <pthread.h>
#include <unwind.h>

_Thread_local struct rt_frame *rt_frames;

// ---- the end of a thread ----

static pthread_key_t of_thread;
static pthread_once_t once = PTHREAD_ONCE_INIT;

// Abandons frames down to `rest`.
static void abandon_to(struct rt_frame *rest)
{
    if (rt_frames == rest)
        return;
    while (rt_frames != rest) {
        struct rt_frame *f = rt_frames;
        rt_frames = f->below;
        f->is_open = false;
        f->abandon(f);
    }
    arena_guard_restore(rest ? rest->guard : NULL);
}

static void leave_thread(void *unused)
{
    (void)unused;
    abandon_to(NULL);
}

static void make_key(void) { pthread_key_create(&of_thread, leave_thread); }

// ---- opening and closing ----

__attribute__((noinline)) void rt_frame_open(struct rt_frame *f, struct rt_mark *mark,
                                             rt_abandon *abandon)
{
    static _Thread_local uint64_t count;
    pthread_once(&once, make_key);
    pthread_setspecific(of_thread, &rt_frames);
    *f = (struct rt_frame){.below = rt_frames,
                           .mark = mark,
                           .cookie = UINT64_C(0x9e3779b97f4a7c15) * ++count ^ (uintptr_t)f,
                           .code = __builtin_return_address(0),
                           .guard = mark        ? arena_guard_innermost()
                                    : rt_frames ? rt_frames->guard
                                                : NULL,
                           .abandon = abandon,
                           .is_open = true};
    if (mark)
        *mark = (struct rt_mark){.frame = f, .cookie = f->cookie};
    rt_frames = f;
}

void rt_frame_return(struct rt_frame *f)
{
    struct rt_frame *left = NULL;
    for (struct rt_frame *at = rt_frames; at != f; at = at->below)
        left = at->mark ? at : left;
    if (left)
        abandon_to(left->below);
}

void rt_frame_forget(struct rt_frame *f)
{
    if (!f->is_open)
        return;
    if (rt_frames != f)
        abandon_to(f);
    rt_frames = f->below;
    f->is_open = false;
}

void rt_frame_close(struct rt_mark *mark)
{
    rt_frame_forget(mark->frame);
    mark->frame = NULL;
}

// Of a call that returns the frame is closed by now.
void rt_mark_leave(struct rt_mark *mark)
{
    if (mark->frame)
        abandon_to(mark->frame->below);
}

// ---- calls that were left by longjmp ----

// What stands above the mark, at higher addresses, was called by what the call had returned to.
__attribute__((no_sanitize("address"))) static bool is_left(const struct rt_frame *f,
                                                            const char *here)
{
    if (!f->mark || !rt_stack_has(f->mark) || !rt_stack_has(here))
        return false;
    return here > (const char *)f->mark || f->mark->cookie != f->cookie || f->mark->frame != f;
}

static struct rt_frame *innermost_marked(void)
{
    struct rt_frame *f = rt_frames;
    while (f && !f->mark)
        f = f->below;
    return f;
}

__attribute__((noinline)) void rt_frames_check(void)
{
    const char *here = __builtin_frame_address(0);
    for (struct rt_frame *f; (f = innermost_marked()) && is_left(f, here);)
        abandon_to(f->below);
}

// ---- walking the stack ----

struct walk {
    const struct rt_frame *frame;
    const void *inner; // an address in the function that was seen last
    bool is_past, is_found;
};

static bool is_of(const struct rt_frame *f, const void *address)
{
    return address && _Unwind_FindEnclosingFunction((void *)(uintptr_t)address) ==
                          _Unwind_FindEnclosingFunction((void *)(uintptr_t)f->code);
}

// The functions from the innermost one, each with the lower end of its part of the stack.
static _Unwind_Reason_Code see(struct _Unwind_Context *context, void *ctx)
{
    struct walk *w = ctx;
    const char *low = (const char *)(uintptr_t)_Unwind_GetCFA(context);
    const void *address = (const void *)(uintptr_t)_Unwind_GetIP(context);
    if (low > (const char *)w->frame->mark) {
        w->is_past = true;
        w->is_found = is_of(w->frame, w->inner);
        return _URC_END_OF_STACK;
    }
    w->inner = address;
    return _URC_NO_REASON;
}

bool rt_frame_is_there(const struct rt_frame *f)
{
    if (is_left(f, __builtin_frame_address(0)))
        return false;
    if (!f->mark || !rt_stack_has(f->mark) || !rt_stack_has(&f))
        return true;
    struct walk w = {.frame = f};
    _Unwind_Backtrace(see, &w);
    return !w.is_past || w.is_found;
}

void rt_frames_collect_surely(void)
{
    for (struct rt_frame *f; (f = innermost_marked()) && !rt_frame_is_there(f);)
        abandon_to(f->below);
}
