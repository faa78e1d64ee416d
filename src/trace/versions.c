// SPDX-License-Identifier: Apache-2.0
#include "trace/versions.h"

#include "base/memory.h"
#include "base/timeline.h"
#include "runtime/fork.h"
#include "trace/dump.h"

#include <pthread.h>
#include <stdio.h>
#include <time.h>

// Kept of an executable where neither it nor the process says another number.
#define MOST_VERSIONS 512

const char version_list_call[] = "jot_call_list";
const char version_preparation[] = "jot_executable_prepare";

const char *version_of_call(const char *where)
{
    return where == version_list_call || where == version_preparation ? "" : ": jot_call";
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t is_free = PTHREAD_COND_INITIALIZER;
static size_t most_versions = MOST_VERSIONS;
static double patience = 10;

// What waits for threads of the parent is not there any more.
static void forget_waiting(void) { is_free = (pthread_cond_t)PTHREAD_COND_INITIALIZER; }

FORK_KEEPS(FORK_EXECUTABLES, lock, forget_waiting)

size_t version_set_most(size_t n)
{
    pthread_mutex_lock(&lock);
    size_t before = most_versions;
    most_versions = n ? n : MOST_VERSIONS;
    pthread_mutex_unlock(&lock);
    return before;
}

double *version_patience(void) { return &patience; }

// ---------------------------------------------------------------------------------------
// Holding

#define GROUP_BITS 30
#define COUNT(holds, group)                                                                    \
    ((holds) >> ((group) * GROUP_BITS) & ((UINT64_C(1) << GROUP_BITS) - 1))
#define ONE(group) (UINT64_C(1) << ((group) * GROUP_BITS))
#define NEW_GROUP (UINT64_C(1) << 62)
#define RELEASED (UINT64_C(1) << 63)

static void release_version(struct version *v)
{
    if (!v)
        return;
    backend_release(v->program);
    for (int i = 0; i < v->n_hidden; i++)
        jot_array_release(v->hidden[i]);
    memory_release(v->statics);
    ir_module_release(v->module);
    memory_release(v);
}

static void release_retired(struct version *v)
{
    while (v) {
        struct version *next = v->next_retired;
        release_version(v);
        v = next;
    }
}

static void destroy(jot_executable *e)
{
    for (struct version *v = e->first, *next; v; v = next) {
        next = v->next;
        release_version(v);
    }
    release_retired(e->retired[0]);
    release_retired(e->retired[1]);
    memory_release(e->donated);
    memory_release(e->text);
    memory_release(e);
}

int executable_hold(jot_executable *e)
{
    uint64_t holds = atomic_load_explicit(&e->holds, memory_order_relaxed);
    for (;;) {
        int group = holds & NEW_GROUP ? 1 : 0;
        if (atomic_compare_exchange_weak(&e->holds, &holds, holds + ONE(group)))
            return group;
    }
}

static bool is_over(uint64_t holds)
{
    return holds & RELEASED && COUNT(holds, 0) == 0 && COUNT(holds, 1) == 0;
}

void executable_let_go(jot_executable *e, int group)
{
    if (is_over(atomic_fetch_sub(&e->holds, ONE(group)) - ONE(group)))
        destroy(e);
}

void executable_release_user(jot_executable *e)
{
    if (is_over(atomic_fetch_or(&e->holds, RELEASED) | RELEASED))
        destroy(e);
}

// ---------------------------------------------------------------------------------------
// Finding

static bool fits(const jot_executable *e, const struct version *v, jot_array *const *in)
{
    for (int i = 0; i < e->n_in; i++) {
        const struct input_type *t = &v->types[i];
        const jot_array *a = in[i];
        if (a->dtype != t->dtype || a->rank != t->rank)
            return false;
        for (int k = 0; k < t->rank; k++)
            if (a->dims[k] != t->dims[k])
                return false;
    }
    return !e->static_size || !memcmp(v->statics, e->static_data, e->static_size);
}

static void note_use(jot_executable *e, struct version *v)
{
    if (v)
        atomic_store_explicit(&v->used, atomic_fetch_add(&e->clock, 1) + 1,
                              memory_order_relaxed);
}

static struct version *find_version(jot_executable *e, jot_array *const *in)
{
    struct version *last = atomic_load_explicit(&e->last, memory_order_acquire), *v = last;
    if (!v || !fits(e, v, in)) {
        v = atomic_load_explicit(&e->first, memory_order_acquire);
        while (v && !fits(e, v, in))
            v = atomic_load_explicit(&v->next, memory_order_acquire);
        if (!v)
            return NULL;
        note_use(e, last);
        note_use(e, v);
        atomic_store_explicit(&e->last, v, memory_order_release);
    }
    // Not counted together by several threads, which would cost as much as finding.
    uint64_t hits = atomic_load_explicit(&e->hits, memory_order_relaxed);
    atomic_store_explicit(&e->hits, hits + 1, memory_order_relaxed);
    return v;
}

// ---------------------------------------------------------------------------------------
// Making room; under the lock

static void retire(jot_executable *e, struct version *v, int group)
{
    v->next_retired = e->retired[group];
    e->retired[group] = v;
}

// What was retired is freed in two steps. When the calls that were there have returned, none of them
// makes it the last version used again, and that is undone; when those that came until then have
// returned too, nobody has it. Each step waits for one group, while new calls come to the other.
static void free_retired(jot_executable *e)
{
    uint64_t holds = atomic_load(&e->holds);
    int group = holds & NEW_GROUP ? 1 : 0;
    if (COUNT(holds, 1 - group))
        return;
    struct version *v = e->retired[1 - group], *unused = NULL;
    e->retired[1 - group] = NULL;
    for (struct version *next; v; v = next) {
        next = v->next_retired;
        if (v->is_unknown) {
            v->next_retired = unused;
            unused = v;
            continue;
        }
        struct version *last = v;
        atomic_compare_exchange_strong(&e->last, &last, NULL);
        v->is_unknown = true;
        retire(e, v, group);
    }
    atomic_fetch_xor(&e->holds, NEW_GROUP);
    pthread_mutex_unlock(&lock);
    release_retired(unused);
    pthread_mutex_lock(&lock);
}

static struct version *least_used(jot_executable *e)
{
    struct version *last = atomic_load(&e->last), *found = NULL;
    for (struct version *v = e->first; v; v = v->next)
        if (v != last && (!found || v->used < found->used))
            found = v;
    return found;
}

static void unlink_version(jot_executable *e, struct version *old)
{
    if (e->first == old) {
        atomic_store(&e->first, old->next);
        return;
    }
    struct version *v = e->first;
    while (v->next != old)
        v = v->next;
    atomic_store(&v->next, old->next);
}

static void make_room(jot_executable *e)
{
    size_t most = e->most_versions ? e->most_versions : most_versions;
    bool evicts = e->n_versions > most;
    while (e->n_versions > most && e->n_versions > 1) {
        struct version *old = least_used(e);
        unlink_version(e, old);
        retire(e, old, atomic_load(&e->holds) & NEW_GROUP ? 1 : 0);
        e->n_versions--;
        e->evicted++;
    }
    if (evicts)
        free_retired(e);
}

static void publish(jot_executable *e, struct version *v)
{
    pthread_mutex_lock(&lock);
    note_use(e, atomic_load(&e->last));
    note_use(e, v);
    v->next = e->first;
    atomic_store(&e->first, v);
    atomic_store(&e->last, v);
    e->n_versions++;
    e->traced++;
    make_room(e);
    pthread_mutex_unlock(&lock);
}

// ---------------------------------------------------------------------------------------
// Claims

struct claim {
    struct rt_frame frame;
    jot_executable *e;
    int group; // of the hold of the call
    unsigned forks;
    pthread_t thread;
    bool runs_user_code; // until it has traced; under the lock
    struct timespec since;
    struct trace *root;
    struct version *v;
};

static double seconds_since(const struct timespec *t)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - t->tv_sec) + 1e-9 * (double)(now.tv_nsec - t->tv_nsec);
}

static void give_up_claim(struct claim *c)
{
    pthread_mutex_lock(&lock);
    if (c->e->claim == c)
        c->e->claim = NULL;
    pthread_cond_broadcast(&is_free);
    pthread_mutex_unlock(&lock);
}

static void wait_a_little(void)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 50000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&is_free, &lock, &until);
}

// Whether the executable is claimed by a call that this one has to wait for.  A thread that traces
// for long may have left its call by longjmp and never come back.
static bool is_claimed(const struct claim *other, pthread_t self)
{
    if (!other || pthread_equal(other->thread, self))
        return other != NULL;
    bool is_gone = other->forks != fork_count(); // with the thread, in the child of a fork
    return !is_gone && !(other->runs_user_code && seconds_since(&other->since) > patience);
}

// False when the call is part of what has claimed the executable.
static bool claim(struct claim *c)
{
    jot_executable *e = c->e;
    bool is_inside = false;
    rt_frames_collect_surely();
    pthread_mutex_lock(&lock);
    while (is_claimed(e->claim, c->thread) && !is_inside) {
        if (!pthread_equal(e->claim->thread, c->thread))
            wait_a_little();
        else if (rt_frame_is_there(&e->claim->frame))
            is_inside = true;
        else
            e->claim = NULL;
    }
    if (!is_inside) {
        c->runs_user_code = true;
        e->claim = c;
    }
    pthread_mutex_unlock(&lock);
    return !is_inside;
}

static void init_claim(struct claim *c, jot_executable *e)
{
    *c = (struct claim){.e = e, .forks = fork_count(), .thread = pthread_self()};
    clock_gettime(CLOCK_MONOTONIC, &c->since);
}

jot_status executable_with_claim(jot_executable *e,
                                 jot_status (*body)(jot_executable *, void *), void *ctx)
{
    struct claim c;
    init_claim(&c, e);
    if (!claim(&c))
        return status_fail(JOT_ERR_TRACE, "jot_executable_text: %s is being traced",
                           e->f.callee.name);
    jot_status status = body(e, ctx);
    give_up_claim(&c);
    return status;
}

// ---------------------------------------------------------------------------------------
// Building

// The arrays that the traced function uses, in the order of its last parameters, where it runs.
static jot_status keep_hidden(const jot_executable *e, const struct trace *root,
                              const struct traced *traced, struct version *v)
{
    v->hidden = arena_array(root->module->arena, jot_array *, traced->n_hidden + 1);
    for (int i = 0; i < traced->n_hidden; i++) {
        ir_id id = root->slots.at[traced->hidden[i].id].id;
        for (uint32_t k = 0; k < root->hidden.count; k++)
            if (root->hidden.at[k].id == id)
                v->hidden[i] = jot_array_to(root->hidden.at[k].array, e->device);
        if (!v->hidden[i])
            return status_last();
        v->n_hidden++;
    }
    return JOT_OK;
}

static jot_status read_types(struct claim *c, jot_array *const *in, struct ir_type *types)
{
    const jot_executable *e = c->e;
    struct trace *root = c->root;
    c->v->types = arena_array(root->module->arena, struct input_type, e->n_in + 1);
    for (int i = 0; i < e->n_in; i++) {
        if (in[i]->rank > IR_MAX_RANK)
            return status_fail(JOT_ERR_SHAPE, "%s%s: input %d of %s has %d axes: at most %d",
                               root->where, version_of_call(root->where), i, e->f.callee.name,
                               in[i]->rank, IR_MAX_RANK);
        types[i] =
            ir_type_make(root->module, (jot_dtype)in[i]->dtype, in[i]->rank, in[i]->dims);
        c->v->types[i] = (struct input_type){.dtype = (jot_dtype)in[i]->dtype,
                                             .rank = in[i]->rank,
                                             .dims = ir_dims(root->module, types[i])};
    }
    return JOT_OK;
}

static void tune(const struct version *v, struct arena *arena, jot_array *const *in, int n_in)
{
    jot_array **all = arena_array(arena, jot_array *, n_in + v->n_hidden + 1);
    memcpy(all, in, (size_t)n_in * sizeof *all);
    memcpy(all + n_in, v->hidden, (size_t)v->n_hidden * sizeof *all);
    backend_tune(v->program, all);
}

static jot_status compile(struct claim *c, jot_array *const *in)
{
    jot_executable *e = c->e;
    struct version *v = c->v;
    struct ir_module *m = c->root->module;
    pthread_mutex_lock(&lock);
    c->runs_user_code = false;
    pthread_mutex_unlock(&lock);
    dump_function("transform", m, v->function);
    bool *donated = arena_array(m->arena, bool, e->n_in + v->n_hidden + 1);
    for (int i = 0; i < e->n_in && e->donated; i++)
        donated[i] = e->donated[i];
    struct backend_options options = {.name = e->f.callee.name,
                                      .donated = donated,
                                      .device = e->device,
                                      .mesh = c->root->mesh,
                                      .is_alone = e->is_alone,
                                      .codegen = e->codegen};
    JOT_TRY(backend_compile(m, v->function, &options, &v->program));
    for (int i = 0; i < v->n_hidden; i++) {
        jot_array *kept;
        JOT_TRY(backend_keep(v->program, (uint32_t)(e->n_in + i), v->hidden[i], &kept));
        jot_array_release(v->hidden[i]);
        v->hidden[i] = kept;
    }
    if (e->is_tuned)
        tune(v, m->arena, in, e->n_in);
    return JOT_OK;
}

static jot_status build_version(struct claim *c, jot_array *const *in)
{
    jot_executable *e = c->e;
    struct trace *root = c->root;
    struct ir_type *types = arena_array(root->module->arena, struct ir_type, e->n_in + 1);
    struct traced traced = {0};
    JOT_TRY(read_types(c, in, types));
    int64_t since = timeline_begin();
    bool ok = function_trace(&e->f, e->f.n_transforms, types, NULL, &traced);
    timeline_end(since, &(struct timeline_event){.kind = "trace",
                                                 .name = e->f.callee.name,
                                                 .where = e->f.callee.where});
    if (!ok || root->error)
        return root->error ? trace_report(root->error) : status_last();
    JOT_TRY(keep_hidden(e, root, &traced, c->v));
    c->v->function = traced.function;
    return compile(c, in);
}

static jot_status guarded_build(struct claim *c, jot_array *const *in)
{
    struct arena_guard guard;
    if (arena_guard_left(&guard))
        return status_out_of_memory();
    jot_status status = build_version(c, in);
    arena_guard_close(&guard);
    return status;
}

// Frees what is unfinished: the version before the trace, whose module has its lists.
static void drop_build(struct claim *c)
{
    release_version(c->v);
    if (c->root)
        trace_abandon(c->root);
}

// The call was left while the function was traced.
static void abandon_claim(struct rt_frame *frame)
{
    struct claim *c = (struct claim *)frame;
    drop_build(c);
    give_up_claim(c);
    executable_let_go(c->e, c->group);
    memory_release(c);
}

// Gives the module to the version and lets go of the arrays that the trace held.
static void end_root(struct claim *c)
{
    struct trace *root = c->root;
    for (uint32_t i = 0; i < root->hidden.count; i++)
        jot_array_release(root->hidden.at[i].array);
    c->v->module = root->module;
    trace_end(root);
}

static jot_status fail_on_device(const jot_executable *e, const char *where)
{
    char why[600];
    snprintf(why, sizeof why, "%s", jot_error_message());
    return status_fail(JOT_ERR_DEVICE, "%s%s: %s cannot run on %s: %s", where,
                       version_of_call(where), e->f.callee.name, jot_device_name(e->device),
                       why);
}

static bool open_build(struct claim *c, const char *where)
{
    jot_executable *e = c->e;
    c->v = memory_allocate_zeroed(sizeof *c->v);
    void *statics = memory_allocate(e->static_size + 1);
    if (c->v)
        c->v->statics = statics;
    else
        memory_release(statics);
    c->root = c->v && statics ? trace_open_root(TRACE_ROOT, e->f.callee.name, where) : NULL;
    if (!c->root)
        return false;
    c->root->precision = (int)e->precision;
    if (e->static_size)
        memcpy(statics, e->static_data, e->static_size);
    return true;
}

// Under the claim, with which it ends.
__attribute__((noinline)) static jot_status add_version(struct claim *c, jot_array *const *in,
                                                        const char *where, struct version **out)
{
    RT_MARK mark = {0};
    rt_frame_open(&c->frame, &mark, abandon_claim);
    jot_status status = open_build(c, where) ? guarded_build(c, in) : status_out_of_memory();
    rt_frame_close(&mark);
    if (status == JOT_ERR_DEVICE)
        status = fail_on_device(c->e, where);
    if (status == JOT_OK) {
        end_root(c);
        publish(c->e, c->v);
        *out = c->v;
    } else {
        drop_build(c);
    }
    return status;
}

jot_status version_get(jot_executable *e, int group, jot_array *const *in, const char *where,
                       struct version **out)
{
    *out = find_version(e, in);
    if (*out)
        return JOT_OK;
    struct claim *c = memory_allocate(sizeof *c);
    if (!c)
        return status_out_of_memory();
    init_claim(c, e);
    c->group = group;
    if (!claim(c)) {
        memory_release(c);
        return status_fail(JOT_ERR_TRACE,
                           "%s%s: %s is being traced and cannot be called by itself", where,
                           version_of_call(where), e->f.callee.name);
    }
    *out = find_version(e, in);
    jot_status status = *out ? JOT_OK : add_version(c, in, where, out);
    give_up_claim(c);
    memory_release(c);
    return status;
}

// ---------------------------------------------------------------------------------------
// Asking

static size_t bytes_of(const struct version *v)
{
    return sizeof *v + arena_bytes(v->module->arena) + backend_bytes(v->program);
}

jot_version_use executable_use(jot_executable *e)
{
    pthread_mutex_lock(&lock);
    jot_version_use use = {.kept = e->n_versions,
                           .most = e->most_versions ? e->most_versions : most_versions,
                           .made = e->traced,
                           .hits = atomic_load(&e->hits),
                           .evicted = e->evicted};
    for (struct version *v = e->first; v; v = v->next)
        use.bytes += bytes_of(v);
    pthread_mutex_unlock(&lock);
    return use;
}
