// SPDX-License-Identifier: Apache-2.0
// The order of the axes of points that have loops: neighbouring threads have neighbouring points of the last one, so that
// it is the one along which what the loops read and put lies together.
#include "map/gpu.h"

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

void map_order_choose(const struct map_gpu *m, struct nest *n, nest_id loop)
{
    struct nest_statement *s = &n->statements.at[loop];
    if (s->n_axes < 2 || nest_lies_along(nest_lines_in(n, s)))
        return;
    nest_id *axes = arena_copy(m->arena, s->axes, s->n_axes * sizeof *axes);
    struct nest_statement ordered = *s;
    order_axes(m, s, axes);
    ordered.axes = axes;
    if (nest_lies_along(nest_lines_in(n, &ordered)))
        s->axes = axes;
}
