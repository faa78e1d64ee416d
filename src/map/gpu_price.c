// SPDX-License-Identifier: Apache-2.0
// What a GPU takes for a mapped nest, in nanoseconds: what bounds its loops is memory, the cache of all multiprocessors,
// which gives whole sectors, the caches of each, arithmetic, or the turns that one thread makes one after the other, each
// of which waits for what it reads.
#include "base/fold.h"
#include "ir/cost.h"
#include "map/gpu_groups.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_NS 1e18
#define MOST_AXES 16

static double elements_of(const struct nest *n, const struct nest_statement *s)
{
    nest_id axis = nest_vector_axis(n, s);
    double lanes = axis == NEST_NONE ? 1 : n->axes.at[axis].vector;
    return ceil((double)nest_extent(n, s) / lanes);
}

// Turns of loops that a thread makes of the block where so many threads share it.  In a shared fold it reads what
// several turns want at once.
static double turns_of(const struct nest *n, uint32_t block, double threads)
{
    double turns = 0;
    if (block >= n->blocks.count)
        return 0;
    nest_for_each (s, n, block) {
        bool is_shared = s->n_axes && nest_is_of_threads(s);
        double of_thread = is_shared ? 1 : threads;
        double inner = turns_of(n, s->body, of_thread) + turns_of(n, s->other, of_thread);
        double one = s->kind == NEST_FOLD && is_shared
                         ? (double)COST_BLOCK_MAP_BYTES_PER_US / COST_BLOCK_BYTES_PER_US
                         : 1;
        double elements = s->n_axes ? elements_of(n, s) : 1;
        elements = is_shared ? ceil(elements / threads) : elements;
        turns += elements * (s->n_axes && inner < one ? one : inner);
    }
    return turns;
}

// Microseconds that threads which have a point each, alone or in groups, take for turns.  Emitters of special kernels
// divide loops by themselves.
static double waits_of(const struct nest *n, const struct nest_statement *points)
{
    if (n->special || (points->level != NEST_GROUP && points->level != NEST_THREAD))
        return 0;
    double group = points->level == NEST_GROUP ? n->threads[NEST_GROUP_THREADS] : 1;
    double at_once = (double)COST_MULTIPROCESSORS * COST_THREADS_OF_ONE / group;
    return ceil(elements_of(n, points) / at_once) * turns_of(n, points->body, group) /
           COST_MAPPED_PER_US;
}

// Microseconds that blocks take which have so many points each.  What is no fold of the points is seen in their turns,
// unless a point has all of the block.
static double blocks_of(const struct nest *n, const struct nest_statement *points)
{
    if (n->special || points->level != NEST_GROUP)
        return 0;
    double extent = (double)nest_extent(n, points), us = 0;
    double of_block = n->threads[NEST_BLOCK_THREADS] / n->threads[NEST_GROUP_THREADS];
    of_block = ceil(extent / ceil(elements_of(n, points) / of_block));
    // What many blocks read is seen in what all of the GPU reads.
    if (extent / of_block >= COST_MULTIPROCESSORS)
        return 0;
    nest_for_each (t, n, points->body)
        if (of_block > 1 ? t->kind == NEST_FOLD : map_is_loop(t->kind))
            us += of_block * nest_time_of(n, t, (int64_t)ceil(extent / of_block)).apart;
    return us;
}

struct traffic {
    double far, near; // bytes of memory, and of all accesses
    double sectors;   // bytes of sectors that neighbouring threads do not share
    uint32_t depth;
    uint32_t beside; // neighbouring threads have the axis before this one, 0: there are none
    nest_id axes[MOST_AXES]; // of the loops that are open
};

// Whether neighbours in the innermost loop are beside one another.
static bool is_beside(const struct traffic *t, const struct nest_statement *s)
{
    return t->depth && nest_index_factor(&s->index, t->axes[t->depth - 1]) == 1;
}

// Opens a loop.  Of axes that one thread has whole as a vector, neighbouring threads lie along the one before.
static void open_loop(struct traffic *t, const struct nest *n, const struct nest_statement *s,
                      bool is_of_threads)
{
    uint32_t first = t->depth;
    for (uint32_t i = 0; i < s->n_axes && t->depth < MOST_AXES; i++)
        t->axes[t->depth++] = s->axes[i];
    if (!is_of_threads || first == t->depth)
        return;
    t->beside = t->depth;
    while (t->beside > first + 1 && n->axes.at[t->axes[t->beside - 1]].extent ==
                                        n->axes.at[t->axes[t->beside - 1]].vector)
        t->beside--;
}

static double bytes_apart(const struct nest *n, const struct nest_statement *s, nest_id axis)
{
    return (double)llabs(nest_index_factor(&s->index, axis)) *
           jot_dtype_size(n->buffers.at[s->buffer].dtype);
}

// Whether what stands before the access in its block touches the same sector.
static bool is_in_sector(const struct nest *n, const struct nest_block *b,
                         const struct nest_statement *s)
{
    int64_t size = jot_dtype_size(n->buffers.at[s->buffer].dtype);
    for (uint32_t i = 0; i < b->statements.count; i++) {
        const struct nest_statement *x = &n->statements.at[b->statements.at[i]];
        if (x == s)
            return false;
        if (x->buffer == s->buffer && nest_index_same_terms(&x->index, &s->index) &&
            x->index.constant * size / COST_SECTOR_BYTES ==
                s->index.constant * size / COST_SECTOR_BYTES)
            return true;
    }
    return false;
}

// Whether neighbouring threads touch sectors of their own, of which they touch nothing else in what they do in turn.
static bool has_own_sectors(const struct traffic *t, const struct nest *n,
                            const struct nest_block *b, const struct nest_statement *s)
{
    if (!t->beside || nest_index_has_values(&s->index))
        return false;
    for (uint32_t i = t->beside; i < t->depth; i++) {
        double apart = bytes_apart(n, s, t->axes[i]);
        if (apart > 0 && apart < COST_SECTOR_BYTES)
            return false;
    }
    return bytes_apart(n, s, t->axes[t->beside - 1]) >= COST_SECTOR_BYTES &&
           !is_in_sector(n, b, s);
}

// The elements that an access touches, of those loops that it goes along, are memory's; again they are the caches'.
static void add_access(struct traffic *t, const struct nest *n, const struct nest_block *of,
                       const struct nest_statement *s)
{
    const struct nest_buffer *b = &n->buffers.at[s->buffer];
    double all = 1, touched = 1;
    for (uint32_t i = 0; i < t->depth; i++) {
        double extent = (double)n->axes.at[t->axes[i]].extent;
        all *= extent;
        touched *= nest_index_has_values(&s->index) || nest_index_factor(&s->index, t->axes[i])
                       ? extent
                       : 1;
    }
    double bytes = (double)jot_dtype_size(b->dtype);
    bool is_far_apart = nest_index_has_values(&s->index) && !is_beside(t, s);
    t->near += all * (is_far_apart ? COST_SECTOR_BYTES : bytes);
    t->far += b->role == NEST_LOCAL ? 0 : fmin(touched, (double)b->count) * bytes;
    if (b->role != NEST_LOCAL && has_own_sectors(t, n, of, s))
        t->sectors += all * COST_SECTOR_BYTES;
}

static void add_traffic(struct traffic *t, const struct nest *n, uint32_t block)
{
    if (block >= n->blocks.count)
        return;
    nest_for_each (s, n, block) {
        uint32_t depth = t->depth, beside = t->beside;
        open_loop(t, n, s, nest_is_of_threads(s) && n->threads[NEST_COLUMNS] <= 1);
        if (s->kind == NEST_LOAD || s->kind == NEST_PUT)
            add_access(t, n, &n->blocks.at[block], s);
        add_traffic(t, n, s->body);
        add_traffic(t, n, s->other);
        t->depth = depth;
        t->beside = beside;
    }
}

// Microseconds of a loop that all of the GPU shares.
static double together_of(const struct nest *n, const struct nest_statement *s)
{
    struct traffic t = {0};
    if (s->n_axes > MOST_AXES)
        return nest_time_of(n, s, 1).shared;
    open_loop(&t, n, s, nest_is_of_threads(s) || n->threads[NEST_COLUMNS] > 1);
    add_traffic(&t, n, s->body);
    double work = (double)nest_extent(n, s) * nest_work(n, s->body);
    double memory = fmax(t.far / COST_BYTES_PER_US, t.sectors / COST_SECTORS_PER_US);
    return fmax(fmax(memory, t.near / COST_NEAR_PER_US), work / COST_WORK_PER_US);
}

// Microseconds for what each thread of a group does that all of them need.
static double repeats_of(const struct nest *n, const struct nest_statement *points)
{
    if (n->special || points->level != NEST_GROUP)
        return 0;
    double work = 0;
    nest_for_each (s, n, points->body)
        work += s->kind == NEST_OP ? cost_of_op((enum ir_op)s->op, s->dtype) : !s->n_axes;
    return work * (n->threads[NEST_GROUP_THREADS] - 1) * elements_of(n, points) /
           COST_WORK_PER_US;
}

static double time_of(const struct nest *n, const struct nest_statement *s)
{
    if (n->threads[NEST_BLOCKS] == 1)
        return nest_time_of(n, s, 1).apart;
    return fmax(fmax(together_of(n, s), waits_of(n, s)), blocks_of(n, s)) + repeats_of(n, s);
}

int64_t map_gpu_price(const struct nest *n)
{
    double us = 0;
    nest_for_each (s, n, 0)
        us += map_is_loop(s->kind) ? time_of(n, s) : 0;
    return us * 1000 < MOST_NS ? (int64_t)ceil(us * 1000) : (int64_t)MOST_NS;
}
