// SPDX-License-Identifier: Apache-2.0
// What a GPU takes for a mapped nest, in nanoseconds: what bounds its loops is memory, arithmetic, or the turns that one
// thread makes one after the other, each of which waits for what it reads.
#include "base/fold.h"
#include "map/gpu.h"
#include "passes/cost.h"

#include <math.h>

#define MOST_NS 1e18

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
    nest_for_each (t, n, points->body)
        if (of_block > 1 ? t->kind == NEST_FOLD : map_is_loop(t->kind))
            us += of_block * nest_time_of(n, t, (int64_t)ceil(extent / of_block)).apart;
    return us;
}

static double time_of(const struct nest *n, const struct nest_statement *s)
{
    if (n->threads[NEST_BLOCKS] == 1)
        return nest_time_of(n, s, 1).apart;
    bool is_of_block = s->level == NEST_GROUP &&
                       n->threads[NEST_GROUP_THREADS] == n->threads[NEST_BLOCK_THREADS];
    double together = is_of_block ? 0 : nest_time_of(n, s, 1).shared;
    return fmax(fmax(together, waits_of(n, s)), blocks_of(n, s));
}

int64_t map_gpu_price(const struct nest *n)
{
    double us = 0;
    nest_for_each (s, n, 0)
        us += map_is_loop(s->kind) ? time_of(n, s) : 0;
    return us * 1000 < MOST_NS ? (int64_t)ceil(us * 1000) : (int64_t)MOST_NS;
}
