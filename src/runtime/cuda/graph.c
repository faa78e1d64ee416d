// SPDX-License-Identifier: Apache-2.0
// Segments of a program as CUDA graphs: several launches cost about what one does, and the device
// itself sees whether a while goes on (while.c).
//
// A graph holds the addresses that it was captured with.  A segment that is to run with addresses
// for the second time is captured, and replayed whenever they come again, which is what they do:
// arenas belong to a call in flight, and memory that is released goes to the next array of its size.
// Others are launched step by step.
#include "runtime/cuda/device.h"

#include "base/memory.h"
#include "base/status.h"
#include "runtime/steps.h"

#include <string.h>

// Addresses that are remembered of a segment.
#define KEPT 8

enum state { UNKNOWN, SEEN, CAPTURED, REFUSED };

struct kept {
    enum state state;
    uint64_t together; // which capture of several devices at once it is of
    uint64_t used;     // the time of the last use
    CUgraphExec graph;
    void **watched, **moved; // operands before it, and those that its loops move after it
};

struct cuda_graphs {
    uint64_t now;
    struct kept at[]; // KEPT of each segment
};

static jot_status make_graphs(const struct rt_program *p, struct rt_instance *instance)
{
    size_t n = (size_t)p->segments.count * KEPT, pointers = 0;
    for (uint32_t i = 0; i < p->segments.count; i++)
        pointers += (size_t)p->segments.at[i].watched_count + p->segments.at[i].moved_count;
    struct cuda_graphs *g = memory_allocate_zeroed(sizeof *g + n * sizeof(struct kept) +
                                                   pointers * KEPT * sizeof(void *));
    if (!g)
        return status_out_of_memory();
    void **room = (void **)(void *)&g->at[n];
    for (size_t i = 0; i < n; i++) {
        const struct rt_segment *s = &p->segments.at[i / KEPT];
        g->at[i].watched = room;
        g->at[i].moved = room + s->watched_count;
        room += s->watched_count + s->moved_count;
    }
    instance->graphs = g;
    return JOT_OK;
}

void cuda_graphs_forget(const struct rt_program *program, struct rt_instance *instance)
{
    struct cuda_device *d = cuda_device_of(program->device);
    struct cuda_graphs *g = instance->graphs;
    bool is_captured = false;
    size_t n = (size_t)program->segments.count * KEPT;
    for (size_t i = 0; g && i < n; i++)
        is_captured |= g->at[i].graph != NULL;
    if (is_captured && !atomic_load(&d->is_lost) && cuda_enter(d) == JOT_OK) {
        // They may still run.
        cuda_status(d, cuda.driver.cuStreamSynchronize(d->stream), "waiting for a program");
        for (size_t i = 0; i < n; i++)
            if (g->at[i].graph)
                cuda.driver.cuGraphExecDestroy(g->at[i].graph);
        cuda_leave();
    }
    memory_release(g);
    instance->graphs = NULL;
}

// ---- Addresses

static bool is_at(const struct kept *k, const struct rt_segment *s, void *const *operands)
{
    if (k->state == UNKNOWN)
        return false;
    for (uint32_t i = 0; i < s->watched_count; i++)
        if (k->watched[i] != operands[s->watched[i]])
            return false;
    return true;
}

static struct kept *find_graph(struct cuda_graphs *g, const struct rt_segment *s,
                               void *const *operands)
{
    struct kept *first = &g->at[(size_t)s->number * KEPT];
    for (int i = 0; i < KEPT; i++)
        if (is_at(&first[i], s, operands))
            return &first[i];
    return NULL;
}

// Remembers the addresses in the place of those that were used longest ago.
static jot_status remember(struct cuda_device *d, struct cuda_graphs *g,
                           const struct rt_segment *s, void *const *operands)
{
    struct kept *first = &g->at[(size_t)s->number * KEPT], *k = first;
    for (int i = 1; i < KEPT; i++)
        k = first[i].used < k->used ? &first[i] : k;
    if (k->graph) {
        JOT_TRY(cuda_status(d, cuda.driver.cuStreamSynchronize(d->stream),
                            "waiting for a program"));
        cuda.driver.cuGraphExecDestroy(k->graph);
        k->graph = NULL;
    }
    k->state = SEEN;
    k->used = ++g->now;
    for (uint32_t i = 0; i < s->watched_count; i++)
        k->watched[i] = operands[s->watched[i]];
    return JOT_OK;
}

// ---- Capturing

static jot_status end_capture(struct cuda_device *d, CUgraph *out)
{
    cuda_branches_close();
    cuda_capture(NULL);
    return cuda_status(d, cuda.driver.cuStreamEndCapture(d->capturing[0], out),
                       "ending a capture");
}

jot_status cuda_open_capturing(struct cuda_device *d, int depth)
{
    if (d->capturing[depth])
        return JOT_OK;
    return cuda_status(d,
                       cuda.driver.cuStreamCreate(&d->capturing[depth], CU_STREAM_NON_BLOCKING),
                       "making a stream");
}

// The steps as a graph, some as branches of it or all in a row; not run.
static jot_status capture_steps(const struct rt_program *p, struct rt_instance *instance,
                                const struct rt_segment *s, bool has_branches, CUgraph *out)
{
    struct cuda_device *d = cuda_device_of(p->device);
    JOT_TRY(cuda_open_capturing(d, 0));
    JOT_TRY(cuda_status(d,
                        cuda.driver.cuStreamBeginCapture_v2(
                            d->capturing[0], CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
                        "starting a capture"));
    cuda_capture(d->capturing[0]);
    jot_status status = has_branches ? cuda_branches_open(d->capturing[0]) : JOT_OK;
    if (status == JOT_OK)
        status = rt_program_run_steps(p, instance, s->first, s->end);
    if (status == JOT_OK)
        status = cuda_branches_wait(p);
    jot_status ended = end_capture(d, out);
    return status == JOT_OK ? ended : status;
}

static jot_status capture(const struct rt_program *p, struct rt_instance *instance,
                          const struct rt_segment *s, struct kept *k)
{
    struct cuda_device *d = cuda_device_of(p->device);
    CUgraph graph = NULL;
    // One at a time, since there is one stream for it.
    pthread_mutex_lock(&d->capture_lock);
    bool has_branches = cuda_branches_are_worth_it(p, instance, s->first, s->end);
    jot_status status = capture_steps(p, instance, s, has_branches, &graph);
    if (status != JOT_OK && has_branches) {
        if (graph)
            cuda.driver.cuGraphDestroy(graph);
        graph = NULL;
        status = capture_steps(p, instance, s, false, &graph);
    }
    pthread_mutex_unlock(&d->capture_lock);
    if (status == JOT_OK)
        status = cuda_status(d, cuda.driver.cuGraphInstantiateWithFlags(&k->graph, graph, 0),
                             "making a graph");
    if (graph)
        cuda.driver.cuGraphDestroy(graph);
    if (status != JOT_OK)
        return status;
    for (uint32_t i = 0; i < s->moved_count; i++)
        k->moved[i] = instance->operands[s->moved[i]];
    k->state = CAPTURED;
    return JOT_OK;
}

// Operands and counts of loops as the steps leave them.
static void leave_as_after(const struct rt_program *p, struct rt_instance *instance,
                           const struct rt_segment *s, const struct kept *k)
{
    for (uint32_t i = 0; i < s->moved_count; i++)
        instance->operands[s->moved[i]] = k->moved[i];
    for (uint32_t i = s->first; i < s->end; i++) {
        const struct rt_bound_step *t = &p->steps[i];
        if (t->kind == RT_STEP_LOOP)
            instance->trips[t->index] = t->total < 0 ? 0 : t->total;
        if (t->kind == RT_STEP_PHASES)
            instance->trips[t->index] = t->params[0];
    }
}

// ---- Of several devices at once

static _Atomic uint64_t last_together;

// The numbers of the addresses of all devices; false when some have not been seen before.
static jot_status find_all(const struct rt_together *t, struct kept **out, bool *out_found)
{
    *out_found = true;
    for (uint32_t i = 0; i < t->count; i++) {
        const struct rt_program *p = t->programs[i];
        const struct rt_segment *s = &p->segments.at[t->segment->number];
        struct cuda_device *d = cuda_device_of(p->device);
        if (!t->instances[i]->graphs)
            JOT_TRY(make_graphs(p, t->instances[i]));
        out[i] = find_graph(t->instances[i]->graphs, s, t->instances[i]->operands);
        *out_found &= out[i] != NULL;
        if (!out[i]) {
            JOT_TRY(cuda_enter(d));
            jot_status status =
                remember(d, t->instances[i]->graphs, s, t->instances[i]->operands);
            cuda_leave();
            JOT_TRY(status);
        } else {
            out[i]->used = ++t->instances[i]->graphs->now;
        }
    }
    return JOT_OK;
}

static jot_status begin_all(const struct rt_together *t, bool has_branches, uint32_t *out_begun)
{
    for (uint32_t i = 0; i < t->count; i++)
        pthread_mutex_lock(&cuda_device_of(t->programs[i]->device)->capture_lock);
    for (*out_begun = 0; *out_begun < t->count; (*out_begun)++) {
        struct cuda_device *d = cuda_device_of(t->programs[*out_begun]->device);
        JOT_TRY(cuda_enter(d));
        jot_status status = cuda_open_capturing(d, 0);
        if (status == JOT_OK)
            status = cuda_status(d,
                                 cuda.driver.cuStreamBeginCapture_v2(
                                     d->capturing[0], CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
                                 "starting a capture");
        if (status == JOT_OK && has_branches)
            status = cuda_branches_open(d->capturing[0]);
        cuda_leave();
        JOT_TRY(status);
    }
    return JOT_OK;
}

// On each device what the thread captures then.
typedef jot_status capture_step(const struct rt_together *t, uint32_t device);

static jot_status on_all(const struct rt_together *t, capture_step *step)
{
    for (uint32_t i = 0; i < t->count; i++) {
        struct cuda_device *d = cuda_device_of(t->programs[i]->device);
        JOT_TRY(cuda_enter(d));
        cuda_capture(d->capturing[0]);
        jot_status status = step(t, i);
        cuda_capture(NULL);
        cuda_leave();
        JOT_TRY(status);
    }
    return JOT_OK;
}

static jot_status advance(const struct rt_together *t, uint32_t i)
{
    return rt_program_advance(t->programs[i], t->instances[i], &t->at[i], t->segment->end);
}

static jot_status open_collective(const struct rt_together *t, uint32_t i)
{
    return cuda_branch_open(t->programs[i], t->instances[i], &t->programs[i]->steps[t->at[i]]);
}

// Behind its step.
static jot_status close_collective(const struct rt_together *t, uint32_t i)
{
    return cuda_branch_close(t->programs[i], &t->programs[i]->steps[t->at[i] - 1]);
}

static jot_status wait_for_branches(const struct rt_together *t, uint32_t i)
{
    return cuda_branches_wait(t->programs[i]);
}

// Every device up to its next collective, which they do then.
static jot_status run_all(const struct rt_together *t)
{
    for (;;) {
        JOT_TRY(on_all(t, advance));
        if (t->at[0] >= t->segment->end)
            return on_all(t, wait_for_branches);
        JOT_TRY(on_all(t, open_collective));
        JOT_TRY(t->meet(t->ctx));
        JOT_TRY(on_all(t, close_collective));
    }
}

// Ends all captures: no graph may be made before.
static jot_status end_all(const struct rt_together *t, uint32_t begun, CUgraph *graphs)
{
    jot_status status = JOT_OK;
    cuda_branches_close();
    for (uint32_t i = 0; i < begun; i++) {
        struct cuda_device *d = cuda_device_of(t->programs[i]->device);
        jot_status ended = cuda_enter(d);
        if (ended == JOT_OK) {
            ended = cuda_status(d, cuda.driver.cuStreamEndCapture(d->capturing[0], &graphs[i]),
                                "ending a capture");
            cuda_leave();
        }
        status = status == JOT_OK ? ended : status;
    }
    for (uint32_t i = 0; i < t->count; i++)
        pthread_mutex_unlock(&cuda_device_of(t->programs[i]->device)->capture_lock);
    return status;
}

static jot_status make_graph(struct cuda_device *d, struct kept *k, CUgraph graph)
{
    JOT_TRY(cuda_enter(d));
    if (k->graph) {
        cuda.driver.cuStreamSynchronize(d->stream);
        cuda.driver.cuGraphExecDestroy(k->graph);
        k->graph = NULL;
    }
    jot_status status = cuda_status(
        d, cuda.driver.cuGraphInstantiateWithFlags(&k->graph, graph, 0), "making a graph");
    cuda_leave();
    return status;
}

// The steps of all devices as graphs, what they do together as branches of them or all in a row.
static jot_status capture_steps_of_all(const struct rt_together *t, bool has_branches,
                                       CUgraph *graphs)
{
    uint32_t begun;
    cuda_capture_all(true);
    jot_status status = begin_all(t, has_branches, &begun);
    if (status == JOT_OK)
        status = run_all(t);
    cuda_capture_all(false);
    jot_status ended = end_all(t, begun, graphs);
    for (uint32_t i = 0; i < t->count; i++)
        t->at[i] = t->segment->first;
    return status == JOT_OK ? ended : status;
}

static void destroy_all(const struct rt_together *t, CUgraph *graphs)
{
    for (uint32_t i = 0; i < t->count; i++) {
        if (graphs[i])
            cuda.driver.cuGraphDestroy(graphs[i]);
        graphs[i] = NULL;
    }
}

static jot_status capture_all(const struct rt_together *t, struct kept **kept)
{
    CUgraph *graphs = memory_allocate_zeroed(t->count * sizeof(CUgraph));
    if (!graphs)
        return status_out_of_memory();
    uint64_t together = atomic_fetch_add(&last_together, 1) + 1;
    jot_status status = capture_steps_of_all(t, true, graphs);
    if (status != JOT_OK) {
        destroy_all(t, graphs);
        status = capture_steps_of_all(t, false, graphs);
    }
    for (uint32_t i = 0; i < t->count && status == JOT_OK; i++)
        status = make_graph(cuda_device_of(t->programs[i]->device), kept[i], graphs[i]);
    destroy_all(t, graphs);
    memory_release(graphs);
    for (uint32_t i = 0; i < t->count; i++) {
        const struct rt_segment *s = &t->programs[i]->segments.at[t->segment->number];
        for (uint32_t k = 0; k < s->moved_count; k++)
            kept[i]->moved[k] = t->instances[i]->operands[s->moved[k]];
        kept[i]->state = status == JOT_OK ? CAPTURED : REFUSED;
        kept[i]->together = together;
    }
    return status;
}

static bool are_together(const struct rt_together *t, struct kept *const *kept)
{
    for (uint32_t i = 0; i < t->count; i++)
        if (kept[i]->state != CAPTURED || kept[i]->together != kept[0]->together)
            return false;
    return true;
}

static jot_status launch_all(const struct rt_together *t, struct kept *const *kept)
{
    for (uint32_t i = 0; i < t->count; i++) {
        struct cuda_device *d = cuda_device_of(t->programs[i]->device);
        const struct rt_segment *s = &t->programs[i]->segments.at[t->segment->number];
        leave_as_after(t->programs[i], t->instances[i], s, kept[i]);
        JOT_TRY(cuda_enter(d));
        jot_status status = cuda_status(d, cuda.driver.cuGraphLaunch(kept[i]->graph, d->stream),
                                        "starting a graph");
        cuda_leave();
        JOT_TRY(status);
    }
    return JOT_OK;
}

// The streams for captures of all devices are in use by one thread at a time: it has the turn.
jot_status cuda_replay_together(const struct rt_together *t, bool *out_done)
{
    struct kept **kept = memory_allocate(t->count * sizeof *kept);
    bool is_found = false;
    if (!kept)
        return status_out_of_memory();
    cuda_collective_begin();
    jot_status status = find_all(t, kept, &is_found);
    bool is_refused = false;
    for (uint32_t i = 0; status == JOT_OK && is_found && i < t->count; i++)
        is_refused |= kept[i]->state == REFUSED;
    if (status == JOT_OK && is_found && !is_refused) {
        // What is wrong with a capture shows when the steps are run.
        if (are_together(t, kept) || capture_all(t, kept) == JOT_OK) {
            *out_done = true;
            status = launch_all(t, kept);
        }
    }
    cuda_collective_end();
    memory_release(kept);
    return status;
}

// ---- Running

jot_status cuda_replay(const struct rt_program *program, struct rt_instance *instance,
                       const struct rt_segment *segment, bool *out_done)
{
    struct cuda_device *d = cuda_device_of(program->device);
    *out_done = false;
    if (!instance->graphs)
        JOT_TRY(make_graphs(program, instance));
    struct kept *k = find_graph(instance->graphs, segment, instance->operands);
    if (!k)
        return remember(d, instance->graphs, segment, instance->operands);
    k->used = ++instance->graphs->now;
    if (k->state == REFUSED)
        return JOT_OK;
    if (k->state == SEEN && capture(program, instance, segment, k) != JOT_OK) {
        k->state = REFUSED; // what is wrong shows when the steps are run
        return JOT_OK;
    }
    leave_as_after(program, instance, segment, k);
    *out_done = true;
    return cuda_status(d, cuda.driver.cuGraphLaunch(k->graph, d->stream), "starting a graph");
}
