// SPDX-License-Identifier: Apache-2.0
// What a kernel has to do.
#include "base/fold.h"
#include "ir/cost.h"
#include "nest/nest.h"

#include <math.h>

int64_t nest_extent(const struct nest *n, const struct nest_statement *s)
{
    int64_t all = 1;
    for (uint32_t i = 0; i < s->n_axes; i++)
        all *= n->axes.at[s->axes[i]].extent;
    return all;
}

nest_id nest_vector_axis(const struct nest *n, const struct nest_statement *loop)
{
    for (uint32_t i = 0; i < loop->n_axes; i++)
        if (n->axes.at[loop->axes[i]].vector)
            return loop->axes[i];
    return NEST_NONE;
}

double nest_work(const struct nest *n, uint32_t block)
{
    double work = 0;
    nest_for_each (s, n, block) {
        double once = s->kind == NEST_OP ? cost_of_op((enum ir_op)s->op, s->dtype) : 1;
        work +=
            (double)nest_extent(n, s) * (once + nest_work(n, s->body) + nest_work(n, s->other));
    }
    return work;
}

// Bytes that the block reads and puts, those of locals with it or without.
static double bytes_of(const struct nest *n, uint32_t block, bool with_locals)
{
    double bytes = 0;
    nest_for_each (s, n, block) {
        if ((s->kind == NEST_LOAD || s->kind == NEST_PUT) &&
            (with_locals || n->buffers.at[s->buffer].role != NEST_LOCAL))
            bytes += (double)jot_dtype_size(n->buffers.at[s->buffer].dtype);
        bytes += (double)nest_extent(n, s) *
                 (bytes_of(n, s->body, with_locals) + bytes_of(n, s->other, with_locals));
    }
    return bytes;
}

double nest_turns(const struct nest *n, uint32_t block)
{
    double turns = 0;
    nest_for_each (s, n, block) {
        double inner = nest_turns(n, s->body) + nest_turns(n, s->other);
        turns += s->n_axes ? (double)nest_extent(n, s) * (inner > 1 ? inner : 1) : inner;
    }
    return turns;
}

static double larger(double x, double y) { return x > y ? x : y; }

struct nest_time nest_time_of(const struct nest *n, const struct nest_statement *loop,
                              int64_t points)
{
    double extent = (double)nest_extent(n, loop), work = extent * nest_work(n, loop->body);
    double all = extent * bytes_of(n, loop->body, true);
    double bytes = extent * bytes_of(n, loop->body, false);
    // In a map a thread waits for each vector that it reads, so that several blocks of a multiprocessor take no longer
    // than one.
    bool waits = loop->kind != NEST_FOLD;
    double rate = waits ? COST_BLOCK_MAP_BYTES_PER_US : COST_BLOCK_BYTES_PER_US;
    int64_t at_once = COST_MULTIPROCESSORS * (waits ? COST_BLOCKS_THAT_WAIT : 1);
    double turns = (double)((points + at_once - 1) / at_once);
    double shared = larger(all / COST_BYTES_PER_US, work / COST_WORK_PER_US);
    double whole = larger(bytes / COST_BYTES_PER_US, work / COST_WORK_PER_US);
    double one = larger(bytes / rate, work / COST_BLOCK_WORK_PER_US);
    // Loops in a map are a thread's, whose turns wait for one another.
    if (loop->kind == NEST_MAP)
        one = larger(one, ceil(extent / COST_BLOCK_THREADS) * nest_turns(n, loop->body) /
                              COST_MAPPED_PER_US);
    return (struct nest_time){.apart = larger(turns * one, (double)points * whole),
                              .shared = (double)points * shared};
}

bool nest_has_time(const struct nest *n, uint32_t block)
{
    nest_for_below (s, n, block)
        if (s->kind == NEST_SEQ || s->kind == NEST_WHILE)
            return true;
    return false;
}

bool nest_accumulates(const struct nest *n, nest_id fold)
{
    nest_for_all (s, n)
        if (s->kind == NEST_PUT && s->op && s->fold == fold)
            return true;
    return false;
}

// Plain statements, and short loops of such.
static bool is_leaf(const struct nest *n, const struct nest_statement *s)
{
    nest_for_each (t, n, s->body) {
        nest_id id = nest_id_of(n, t);
        int64_t most = t->kind == NEST_FOLD  ? FOLD_LANES
                       : t->kind == NEST_MAP ? NEST_LEAF_POINTS
                                             : 0;
        bool is_short =
            most && nest_extent(n, t) <= most && !nest_accumulates(n, id) && is_leaf(n, t);
        if (t->kind > NEST_PUT ? !is_short
                               : s->kind == NEST_MAP && t->kind == NEST_PUT && t->op)
            return false;
    }
    return true;
}

bool nest_fold_is_leaf(const struct nest *n, nest_id fold)
{
    const struct nest_statement *s = &n->statements.at[fold];
    return s->kind == NEST_FOLD && is_leaf(n, s) && !nest_accumulates(n, fold) &&
           nest_extent(n, s) > 0;
}

#define LINE_BYTES 128

// Lines of memory in which neighbouring positions of the axes have their elements, for each warp of positions.
static double lines_along(const struct nest *n, const struct nest_statement *access,
                          uint32_t n_axes, const nest_id *axes)
{
    int64_t seen[COST_WARP],
        size = (int64_t)jot_dtype_size(n->buffers.at[access->buffer].dtype);
    int count = 0, positions = 0;
    // Indices that are data are told apart by what is added to them alone.
    if (nest_index_has_values(&access->index)) {
        int64_t factor = n_axes ? nest_index_factor(&access->index, axes[n_axes - 1]) : 0;
        return factor == 1 || factor == -1 ? 1 : COST_WARP;
    }
    for (; positions < COST_WARP; positions++) {
        int64_t rest = positions, element = 0;
        for (uint32_t k = n_axes; k-- > 0;) {
            int64_t extent = n->axes.at[axes[k]].extent;
            element += nest_index_factor(&access->index, axes[k]) * (rest % extent);
            rest /= extent;
        }
        if (rest)
            break;
        // Of lines that begin anywhere below zero as well.
        int64_t line = element * size / LINE_BYTES - (element * size % LINE_BYTES < 0);
        int i = 0;
        while (i < count && seen[i] != line)
            i++;
        seen[i] = line;
        count += i == count;
    }
    return positions ? (double)count * COST_WARP / positions : 0;
}

struct nest_lines nest_lines_of(const struct nest *n, const struct nest_statement *points,
                                const struct nest_statement *inner,
                                const struct nest_statement *access)
{
    return (struct nest_lines){lines_along(n, access, points->n_axes, points->axes),
                               lines_along(n, access, inner->n_axes, inner->axes)};
}

static void look(const struct nest *n, uint32_t block, double times,
                 const struct nest_statement *points, const struct nest_statement *inner,
                 struct nest_lines *all)
{
    nest_for_each (s, n, block) {
        if ((s->kind == NEST_LOAD || s->kind == NEST_PUT) && inner &&
            n->buffers.at[s->buffer].role != NEST_LOCAL) {
            struct nest_lines one = nest_lines_of(n, points, inner, s);
            all->of_points += times * one.of_points;
            all->of_inner += times * one.of_inner;
        }
        bool is_loop = s->kind == NEST_MAP || s->kind == NEST_FOLD || s->kind == NEST_PAR;
        double turns = s->n_axes ? (double)nest_extent(n, s) : 1;
        // The longest one is what threads share.
        bool is_longer = is_loop && (!inner || nest_extent(n, s) > nest_extent(n, inner));
        look(n, s->body, times * turns, points, is_longer ? s : inner, all);
        look(n, s->other, times, points, inner, all);
    }
}

struct nest_lines nest_lines_in(const struct nest *n, const struct nest_statement *points)
{
    struct nest_lines all = {0};
    look(n, points->body, 1, points, NULL, &all);
    return all;
}
