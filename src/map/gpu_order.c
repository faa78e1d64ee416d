// SPDX-License-Identifier: Apache-2.0
// The order of the axes of points that have loops: neighbouring threads have neighbouring points of the last one, so that
// it is the one along which what the loops read and put lies together.
#include "map/gpu_order.h"

#include <string.h>

// What warps of the points touch in the loops when they go along these axes, the last one first.
static double lines_of(const struct nest *n, const struct nest_statement *points,
                       uint32_t n_axes, const nest_id *axes)
{
    struct nest_statement asked = *points;
    asked.axes = axes;
    asked.n_axes = n_axes;
    return nest_lines_in(n, &asked).of_points;
}

// Moves the axis that stands at `from` to the end of the first n.
static void move_to_end(nest_id *axes, uint32_t from, uint32_t n)
{
    nest_id moved = axes[from];
    memmove(axes + from, axes + from + 1, (n - 1 - from) * sizeof *axes);
    axes[n - 1] = moved;
}

// The axes from the last one on, each the one that leaves the fewest lines; of equal ones the later.
static void order_axes(const struct map_gpu *m, const struct nest_statement *points,
                       nest_id *axes)
{
    uint32_t all = points->n_axes;
    nest_id *tried = arena_array(m->arena, nest_id, all);
    for (uint32_t n = all; n > 1; n--) {
        uint32_t best = n - 1;
        double least = 0;
        for (uint32_t k = n; k-- > 0;) {
            memcpy(tried, axes, all * sizeof *axes);
            move_to_end(tried, k, n);
            double lines = lines_of(m->nest, points, all - n + 1, tried + n - 1);
            if (k == n - 1 || lines < least) {
                least = lines;
                best = k;
            }
        }
        move_to_end(axes, best, n);
    }
}

// The index with each axis of `from` as the one of `to` at its position.
static void rename_axes(struct arena *arena, struct nest_index *x, uint32_t n_axes,
                        const nest_id *from, const nest_id *to)
{
    struct nest_term *terms = arena_copy(arena, x->terms, x->count * sizeof *terms);
    for (uint32_t i = 0; i < x->count; i++)
        for (uint32_t k = 0; k < n_axes && !terms[i].is_value; k++)
            if (x->terms[i].id == from[k])
                terms[i].id = to[k];
    *x = nest_index_make(arena, x->constant, (int)x->count, terms);
}

// The axes in a new order are the nest's in the numbers that they have in a text: those of the old order.
static void reorder(const struct map_gpu *m, struct nest *n, const struct nest_statement *s,
                    const nest_id *axes)
{
    struct nest_axis *moved = arena_array(m->arena, struct nest_axis, s->n_axes);
    for (uint32_t k = 0; k < s->n_axes; k++)
        moved[k] = n->axes.at[axes[k]];
    for (uint32_t k = 0; k < s->n_axes; k++)
        n->axes.at[s->axes[k]] = moved[k];
    for (uint32_t i = 0; i < n->statements.count; i++) {
        struct nest_statement *t = &n->statements.at[i];
        struct nest_index *all[] = {&t->index, &t->source_index[0], &t->source_index[1]};
        for (int k = 0; k < 3; k++)
            rename_axes(m->arena, all[k], s->n_axes, axes, s->axes);
    }
}

void map_order_choose(const struct map_gpu *m, struct nest *n, nest_id loop)
{
    const struct nest_statement *s = nest_statement_at(n, loop);
    if (s->n_axes < 2 || nest_lies_along(nest_lines_in(n, s)))
        return;
    nest_id *axes = arena_copy(m->arena, s->axes, s->n_axes * sizeof *axes);
    struct nest_statement ordered = *s;
    order_axes(m, s, axes);
    ordered.axes = axes;
    if (nest_lies_along(nest_lines_in(n, &ordered)))
        reorder(m, n, s, axes);
}
