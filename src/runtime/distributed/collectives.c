// SPDX-License-Identifier: Apache-2.0
// Collectives as exchanges.  What each of them moves is a list of bytes from member to member, the same in all
// processes; a process takes part in what concerns its own members.
//
// Reductions combine the blocks of all members in the order of the members, whoever does it: small ones
// everybody for itself, large ones each process a piece, which it then gives to all.
#include "runtime/distributed/job.h"

#include "base/dtype.h"
#include "base/memory.h"
#include "base/status.h"
#include "runtime/host/combine.h"

#include <stdio.h>
#include <string.h>

// Bytes up to which every process combines all blocks: less than it takes to answer.
#define SMALL_BYTES 4096

struct work {
    struct job *job; // NULL where all members are of this process
    int index;
    const struct rt_group *g;
    const char *kind, *what;
    bool is_named; // `what` is the same in all processes
    struct part *out, *in;
    size_t n_out, n_in, room;
    bool is_full; // memory is out
};

static bool is_own(const struct work *w, int64_t member)
{
    return w->g->process[member] == w->index;
}

static int64_t count_own(const struct work *w)
{
    int64_t n = 0;
    for (int64_t i = 0; i < w->g->count; i++)
        n += is_own(w, i);
    return n;
}

// Which of this process's members it is.
static int64_t own_index(const struct work *w, int64_t member)
{
    int64_t n = 0;
    for (int64_t i = 0; i < member; i++)
        n += is_own(w, i);
    return n;
}

static bool is_first_of_process(const struct work *w, int64_t member)
{
    for (int64_t i = 0; i < member; i++)
        if (w->g->process[i] == w->g->process[member])
            return false;
    return true;
}

// ---- beginning and ending ----

static jot_status begin(struct work *w, const struct rt_group *g, const char *kind,
                        const char *what)
{
    struct job *job = job_find();
    int count = job ? job->count : 1;
    bool is_alone = true;
    *w = (struct work){
        .index = job ? job->index : 0, .g = g, .kind = kind, .what = what, .is_named = true};
    for (int64_t i = 0; i < g->count; i++) {
        if (g->process[i] < 0 || g->process[i] >= count)
            return status_fail(JOT_ERR_ARGUMENT, "%s %s: there is no process %d, but %d", kind,
                               what, g->process[i], count);
        is_alone &= is_own(w, i);
    }
    if (is_alone)
        return JOT_OK;
    pthread_mutex_lock(&job->turn);
    if (job == job_find()) {
        w->job = job;
        return JOT_OK;
    }
    pthread_mutex_unlock(&job->turn);
    return status_fail(JOT_ERR_ARGUMENT, "%s %s: jot_distributed_stop was called meanwhile",
                       kind, what);
}

// What fails here keeps others waiting, unless they are told.
static jot_status end(struct work *w, jot_status status)
{
    memory_release(w->out);
    memory_release(w->in);
    if (!w->job)
        return status;
    if (status != JOT_OK)
        rt_distributed_fail(status, "%s %s: out of memory", w->kind, w->what);
    pthread_mutex_unlock(&w->job->turn);
    return status;
}

static void add(struct work *w, struct part **list, size_t *n, int process, const void *at,
                size_t bytes)
{
    if (*n == w->room || !*list) {
        size_t room = w->room ? w->room * 2 : 16;
        struct part *out = memory_resize(w->out, room * sizeof *out);
        if (out)
            w->out = out;
        struct part *in = memory_resize(w->in, room * sizeof *in);
        if (in)
            w->in = in;
        w->is_full |= !out || !in;
        if (w->is_full)
            return;
        w->room = room;
    }
    (*list)[(*n)++] = (struct part){process, (void *)(uintptr_t)at, bytes};
}

// Bytes of member `from` for process `process`.
static void send_to(struct work *w, int process, const void *at, size_t bytes)
{
    add(w, &w->out, &w->n_out, process, at, bytes);
}

static void receive_from(struct work *w, int process, void *at, size_t bytes)
{
    add(w, &w->in, &w->n_in, process, at, bytes);
}

static jot_status go(struct work *w)
{
    if (w->is_full)
        return status_out_of_memory();
    if (!w->job)
        return JOT_OK;
    struct exchange x = {.kind = w->kind,
                         .what = w->what,
                         .is_named = w->is_named,
                         .out = w->out,
                         .in = w->in,
                         .n_out = w->n_out,
                         .n_in = w->n_in};
    jot_status status = job_exchange(w->job, &x);
    w->n_out = w->n_in = 0;
    return status;
}

// Processes of the group, each once; `first` is its first member.
#define FOR_EACH_PROCESS(w, first)                                                             \
    for (int64_t first = 0; first < (w)->g->count; first++)                                    \
        if (is_first_of_process((w), first))

static void send_to_others(struct work *w, const void *at, size_t bytes)
{
    FOR_EACH_PROCESS(w, first)
    {
        if (!is_own(w, first))
            send_to(w, w->g->process[first], at, bytes);
    }
}

// ---- the moving ones ----

// All blocks, one after the other, at `to`.
static jot_status gather(struct work *w, size_t bytes, const void *const *from, char *to)
{
    int64_t own = 0;
    for (int64_t i = 0; i < w->g->count; i++) {
        char *at = to + (size_t)i * bytes;
        if (!is_own(w, i)) {
            receive_from(w, w->g->process[i], at, bytes);
            continue;
        }
        memcpy(at, from[own++], bytes);
        send_to_others(w, at, bytes);
    }
    return go(w);
}

jot_status rt_distributed_all_gather(const struct rt_group *g, const char *what, size_t bytes,
                                     const void *const *from, void *const *to)
{
    struct work w;
    JOT_TRY(begin(&w, g, "all_gather", what));
    int64_t n = count_own(&w);
    jot_status status = n ? gather(&w, bytes, from, to[0]) : JOT_OK;
    for (int64_t i = 1; i < n && status == JOT_OK; i++)
        memcpy(to[i], to[0], (size_t)g->count * bytes);
    return end(&w, status);
}

// Part j of the block of member i to part i of the block of member j; blocks of this process's members.
static jot_status transpose(struct work *w, size_t bytes, const void *const *from,
                            char *const *to)
{
    int64_t count = w->g->count, own_i = 0;
    for (int64_t i = 0; i < count; i++) {
        const char *block = is_own(w, i) ? from[own_i++] : NULL;
        int64_t own_j = 0;
        for (int64_t j = 0; j < count; j++) {
            const char *at = block ? block + (size_t)j * bytes : NULL;
            char *there = is_own(w, j) ? to[own_j++] + (size_t)i * bytes : NULL;
            if (at && there)
                memcpy(there, at, bytes);
            else if (at)
                send_to(w, w->g->process[j], at, bytes);
            else if (there)
                receive_from(w, w->g->process[i], there, bytes);
        }
    }
    return go(w);
}

jot_status rt_distributed_all_to_all(const struct rt_group *g, const char *what, size_t bytes,
                                     const void *const *from, void *const *to)
{
    struct work w;
    JOT_TRY(begin(&w, g, "all_to_all", what));
    return end(&w, transpose(&w, bytes, from, (char *const *)to));
}

jot_status rt_distributed_permute(const struct rt_group *g, const char *what, size_t bytes,
                                  const int64_t *sources, const void *const *from,
                                  void *const *to)
{
    struct work w;
    JOT_TRY(begin(&w, g, "permute", what));
    int64_t own_j = 0;
    for (int64_t j = 0; j < g->count; j++) {
        int64_t i = sources[j];
        char *there = is_own(&w, j) ? to[own_j++] : NULL;
        if (i < 0 || i >= g->count) {
            if (there)
                memset(there, 0, bytes);
            continue;
        }
        const char *at = is_own(&w, i) ? from[own_index(&w, i)] : NULL;
        if (at && there)
            memcpy(there, at, bytes);
        else if (at)
            send_to(&w, g->process[j], at, bytes);
        else if (there)
            receive_from(&w, g->process[i], there, bytes);
    }
    return end(&w, go(&w));
}

jot_status rt_distributed_broadcast(const struct rt_group *g, const char *what, size_t bytes,
                                    int64_t root, void *const *blocks)
{
    struct work w;
    JOT_TRY(begin(&w, g, "broadcast", what));
    int64_t n = count_own(&w), of_root = is_own(&w, root) ? own_index(&w, root) : -1;
    char *at = n ? blocks[of_root < 0 ? 0 : of_root] : NULL;
    if (of_root >= 0) {
        send_to_others(&w, at, bytes);
    } else if (n) {
        receive_from(&w, g->process[root], at, bytes);
    }
    jot_status status = go(&w);
    for (int64_t i = 0; i < n && status == JOT_OK; i++)
        if (blocks[i] != at)
            memcpy(blocks[i], at, bytes);
    return end(&w, status);
}

jot_status rt_distributed_barrier(const struct rt_group *g, const char *what)
{
    struct work w;
    JOT_TRY(begin(&w, g, "barrier", what));
    if (count_own(&w)) {
        send_to_others(&w, NULL, 0);
        FOR_EACH_PROCESS(&w, first)
        {
            if (!is_own(&w, first))
                receive_from(&w, g->process[first], NULL, 0);
        }
    }
    return end(&w, go(&w));
}

// ---- programs ----

struct program {
    struct hash128 key;
    char name[104];
};

// Compares with the first process, so that all say the same.
static jot_status compare_programs(const struct work *w, const struct program *all)
{
    const struct rt_group *g = w->g;
    char first[NAME_BYTES], other[NAME_BYTES];
    for (int64_t i = 1; i < g->count && w->job; i++)
        if (memcmp(&all[i].key, &all[0].key, sizeof all->key) != 0)
            return status_fail(
                JOT_ERR_CHECK,
                "%s calls '%s' (%016llx) and %s calls '%s' (%016llx): all processes call the "
                "same program",
                job_name(w->job, g->process[0], first), all[0].name,
                (unsigned long long)all[0].key.lo, job_name(w->job, g->process[i], other),
                all[i].name, (unsigned long long)all[i].key.lo);
    return JOT_OK;
}

jot_status rt_distributed_agree(const struct rt_group *g, struct hash128 key, const char *name)
{
    struct work w;
    struct program own = {.key = key};
    JOT_TRY(begin(&w, g, "the first call of", name));
    w.is_named = false;
    snprintf(own.name, sizeof own.name, "%s", name);
    int64_t n = count_own(&w);
    if (!n || !w.job)
        return end(&w, JOT_OK);
    struct program *all = memory_allocate((size_t)g->count * sizeof *all);
    const void **from = memory_allocate((size_t)n * sizeof *from);
    for (int64_t i = 0; from && i < n; i++)
        from[i] = &own;
    jot_status status =
        all && from ? gather(&w, sizeof own, from, (char *)all) : status_out_of_memory();
    jot_status compared = status == JOT_OK ? compare_programs(&w, all) : JOT_OK;
    memory_release(all);
    memory_release(from);
    status = end(&w, status);
    return status == JOT_OK ? compared : status;
}

// ---- the combining ones ----

// `all` has the blocks of all members, one after the other.
static jot_status combine_all(const struct work *w, const struct rt_combine *combine,
                              const char *all, size_t bytes, void *to)
{
    size_t n = (size_t)w->g->count, elements = bytes / dtype_get(combine->dtype)->bytes;
    const void **blocks = memory_allocate(n * sizeof *blocks);
    if (!blocks)
        return status_out_of_memory();
    for (size_t i = 0; i < n; i++)
        blocks[i] = all + i * bytes;
    for (size_t at = 0, end; at < elements; at = end) {
        end = elements - at > COMBINE_TILE ? at + COMBINE_TILE : elements;
        host_combine(combine->combiner, combine->dtype, n, blocks, at, end, 1, &to, at, false);
    }
    memory_release(blocks);
    return JOT_OK;
}

// Part j of all blocks for member j.
static jot_status reduce_scatter(struct work *w, size_t bytes, const struct rt_combine *combine,
                                 const void *const *from, void *const *to)
{
    size_t n = (size_t)count_own(w), whole = (size_t)w->g->count * bytes;
    char **blocks = memory_allocate(n * (sizeof *blocks + whole) + 1);
    if (!blocks)
        return status_out_of_memory();
    for (size_t j = 0; j < n; j++)
        blocks[j] = (char *)(blocks + n) + j * whole;
    jot_status status = transpose(w, bytes, from, blocks);
    for (size_t j = 0; j < n && status == JOT_OK; j++)
        status = combine_all(w, combine, blocks[j], bytes, to[j]);
    memory_release(blocks);
    return status;
}

jot_status rt_distributed_reduce_scatter(const struct rt_group *g, const char *what,
                                         size_t bytes, const struct rt_combine *combine,
                                         const void *const *from, void *const *to)
{
    struct work w;
    JOT_TRY(begin(&w, g, "reduce_scatter", what));
    return end(&w, reduce_scatter(&w, bytes, combine, from, to));
}

static jot_status all_reduce_small(struct work *w, size_t bytes,
                                   const struct rt_combine *combine, const void *const *from,
                                   void *to)
{
    char *all = memory_allocate((size_t)w->g->count * bytes + 1);
    if (!all)
        return status_out_of_memory();
    jot_status status = gather(w, bytes, from, all);
    if (status == JOT_OK)
        status = combine_all(w, combine, all, bytes, to);
    memory_release(all);
    return status;
}

// The piece of a block that a process of the group combines; processes are numbered by their first members.
struct piece {
    size_t at, bytes;
};

static struct piece piece_of(size_t bytes, size_t element, int64_t number, int64_t count)
{
    size_t elements = bytes / element, n = (size_t)count, k = (size_t)number;
    size_t first = elements / n * k + (elements % n < k ? elements % n : k);
    size_t size = elements / n + (k < elements % n);
    return (struct piece){first * element, size * element};
}

static jot_status all_reduce_large(struct work *w, size_t bytes,
                                   const struct rt_combine *combine, const void *const *from,
                                   char *to)
{
    int64_t count = w->g->count, n = count_own(w), processes = 0, number = 0, own = -1;
    FOR_EACH_PROCESS(w, first)
    {
        if (is_own(w, first))
            own = processes;
        processes++;
    }
    struct piece mine = piece_of(bytes, dtype_get(combine->dtype)->bytes, own, processes);
    char *all = memory_allocate((size_t)(count + 1) * mine.bytes + 1);
    if (!all)
        return status_out_of_memory();
    char *result = all + (size_t)count * mine.bytes;
    FOR_EACH_PROCESS(w, first)
    {
        struct piece p = piece_of(bytes, dtype_get(combine->dtype)->bytes, number++, processes);
        for (int64_t i = 0; i < n && !is_own(w, first); i++)
            send_to(w, w->g->process[first], (const char *)from[i] + p.at, p.bytes);
    }
    for (int64_t i = 0, next = 0; i < count; i++) {
        char *at = all + (size_t)i * mine.bytes;
        if (is_own(w, i))
            memcpy(at, (const char *)from[next++] + mine.at, mine.bytes);
        else
            receive_from(w, w->g->process[i], at, mine.bytes);
    }
    jot_status status = go(w);
    if (status == JOT_OK)
        status = combine_all(w, combine, all, mine.bytes, result);
    number = 0;
    FOR_EACH_PROCESS(w, first)
    {
        struct piece p = piece_of(bytes, dtype_get(combine->dtype)->bytes, number++, processes);
        if (is_own(w, first)) {
            memcpy(to + p.at, result, p.bytes);
            continue;
        }
        send_to(w, w->g->process[first], result, mine.bytes);
        receive_from(w, w->g->process[first], to + p.at, p.bytes);
    }
    if (status == JOT_OK)
        status = go(w);
    memory_release(all);
    return status;
}

jot_status rt_distributed_all_reduce(const struct rt_group *g, const char *what, size_t bytes,
                                     const struct rt_combine *combine, const void *const *from,
                                     void *const *to)
{
    struct work w;
    JOT_TRY(begin(&w, g, "all_reduce", what));
    int64_t n = count_own(&w);
    jot_status status = JOT_OK;
    if (n && (bytes <= SMALL_BYTES || !w.job))
        status = all_reduce_small(&w, bytes, combine, from, to[0]);
    else if (n)
        status = all_reduce_large(&w, bytes, combine, from, to[0]);
    for (int64_t i = 1; i < n && status == JOT_OK; i++)
        memcpy(to[i], to[0], bytes);
    return end(&w, status);
}

jot_status rt_distributed_run(const struct rt_group *g, const char *what,
                              const struct collective *c, size_t to_bytes, size_t from_bytes,
                              const void *const *from, void *const *to)
{
    struct rt_combine combine = {c->combiner, c->dtype};
    switch (c->kind) {
    case COLLECTIVE_ALL_REDUCE:
        return rt_distributed_all_reduce(g, what, to_bytes, &combine, from, to);
    case COLLECTIVE_REDUCE_SCATTER:
        return rt_distributed_reduce_scatter(g, what, to_bytes, &combine, from, to);
    case COLLECTIVE_ALL_GATHER:
        return rt_distributed_all_gather(g, what, from_bytes, from, to);
    case COLLECTIVE_ALL_TO_ALL:
        return rt_distributed_all_to_all(g, what, to_bytes / (size_t)g->count, from, to);
    case COLLECTIVE_PERMUTE:
        return rt_distributed_permute(g, what, to_bytes, c->sources, from, to);
    default:
        return status_fail(JOT_ERR_INTERNAL, "%s: a collective of no kind", what);
    }
}
