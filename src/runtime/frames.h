// SPDX-License-Identifier: Apache-2.0
// Calls of jot that call code of the user, which may leave them by an exception, by longjmp or with
// its thread.
//
// Such a call opens a frame, which owns what has to be released when the call does not return.  The
// frames of a thread are a stack.  A mark on the C stack tells whether the call is still there: an
// exception, and the end of the thread, runs its cleanup; after a longjmp the next call of jot on
// the thread finds that it stands above the mark, or that something else has been written there.
//
//     struct call { struct rt_frame frame; ... } *c = ...;     memory that outlives the call
//     RT_MARK mark = {0};
//     rt_frame_open(&c->frame, &mark, release_call);
//     ...code of the user...
//     rt_frame_close(&mark);
//
// A call that the user's code left is abandoned with all that it called.  No lock is held while code
// of the user runs.
#ifndef RUNTIME_FRAMES_H
#define RUNTIME_FRAMES_H

#include "base/arena.h"

struct rt_frame;

// In the frame of a function that is never inlined.
struct rt_mark {
    struct rt_frame *frame; // NULL when it is closed
    uint64_t cookie;
};
#define RT_MARK __attribute__((cleanup(rt_mark_leave))) struct rt_mark
void rt_mark_leave(struct rt_mark *mark);

typedef void rt_abandon(struct rt_frame *frame);

struct rt_frame {
    struct rt_frame *below;
    const struct rt_mark *mark; // NULL: the frame stays until it is closed
    uint64_t cookie;
    const void *code;          // an address in the function that has the mark
    struct arena_guard *guard; // the innermost one of the user's code
    rt_abandon *abandon;       // releases what the frame owns, itself included
    bool is_open;
};

// The frames of the thread, innermost first.
extern _Thread_local struct rt_frame *rt_frames;

// Called by the function that has the mark itself, which the walk of the stack looks for.
void rt_frame_open(struct rt_frame *frame, struct rt_mark *mark, rt_abandon *abandon);
// The call returns.
void rt_frame_close(struct rt_mark *mark);
// The same where the mark may be gone; nothing when the frame is closed.
void rt_frame_forget(struct rt_frame *frame);
// Code of the user has returned to the frame: calls that it has left are abandoned.
void rt_frame_return(struct rt_frame *frame);

// Abandons the calls that were left, as far as that shows: the first thing that a public function
// does, itself.  Frames without a mark go with the call around them.
void rt_frames_check(void);
static inline void rt_frames_collect(void)
{
    if (rt_frames)
        rt_frames_check();
}
// The same, for sure, by walking the stack: some microseconds.
void rt_frames_collect_surely(void);
// Whether the call of the frame is on the stack, by walking it.
bool rt_frame_is_there(const struct rt_frame *frame);

#endif
