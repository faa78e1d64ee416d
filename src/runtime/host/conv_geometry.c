// SPDX-License-Identifier: Apache-2.0
#include "runtime/host/conv_geometry.h"

#include "base/count.h"
#include "base/dtype.h"

static int64_t divide_down(int64_t a, int64_t b) { return a / b - (a % b < 0); }

// What positions of x see of y that have the remainder r: p + padding = stride u + r, and elements k of the
// kernel with k dilation = r modulo the stride.
static struct conv_line line_of_x(const struct conv_call *c, int axis, int64_t r, int64_t size)
{
    int64_t stride = c->lists[CONV_STRIDES][axis], dilation = c->lists[CONV_DILATION][axis];
    int64_t divisor = count_common_divisor(stride, dilation), apart = stride / divisor, k = 0;
    int64_t remainders = conv_least(apart, size); // of elements, after which they come again
    struct conv_line l = {.to = r - c->lists[CONV_PADDING][axis]};
    while (k < remainders && k * dilation % stride != r)
        k++;
    if (k == remainders)
        return l;
    l.count = conv_divide_up(size - k, apart);
    l.k = k + (l.count - 1) * apart; // from the last one on, for what is seen ascends
    l.k_apart = -apart;
    l.from = -((l.k * dilation - r) / stride);
    l.from_apart = dilation / divisor;
    return l;
}

static struct conv_line line_of(const struct conv_geometry *g, const struct conv_call *c,
                                int axis, int64_t kind)
{
    int64_t size = c->dims[CONV_W][conv_spatial(c->layout, CONV_W) + axis];
    struct conv_line l = {.from = -c->lists[CONV_PADDING][axis],
                          .from_apart = c->lists[CONV_DILATION][axis],
                          .k_apart = 1,
                          .count = size};
    if (c->part == CONV_X)
        l = line_of_x(c, axis, kind, size);
    l.first = -divide_down(l.to, g->to_step[axis]);
    l.end = divide_down(g->result[axis] - 1 - l.to, g->to_step[axis]) + 1;
    return l;
}

void conv_lines_of(const struct conv_geometry *g, const struct conv_call *c, int64_t kind,
                   struct conv_line *out)
{
    for (int i = g->n - 1; i >= 0; i--) {
        out[i] = line_of(g, c, i, kind % g->kinds_along[i]);
        kind /= g->kinds_along[i];
    }
}

static void find_bounds(struct conv_geometry *g, const struct conv_call *c, int axis)
{
    for (int64_t kind = 0; kind < g->kinds_along[axis]; kind++) {
        const struct conv_line l = line_of(g, c, axis, kind);
        int64_t high = l.from + conv_most(l.count - 1, 0) * l.from_apart;
        g->first[axis] = kind ? conv_least(g->first[axis], l.first) : l.first;
        g->end[axis] = kind ? conv_most(g->end[axis], l.end) : l.end;
        g->low[axis] = kind ? conv_least(g->low[axis], l.from) : l.from;
        g->high[axis] = kind ? conv_most(g->high[axis], high) : high;
    }
}

// As much as the cache has room for, with y beside it if w is the result, but of small images
// no more than makes a task worth while.
static void choose_block(struct conv_geometry *g, bool keeps_y)
{
    int64_t all = g->end[0] - g->first[0], row = g->in * g->groups, positions = 1;
    int64_t room = (keeps_y ? 2 : 1) * CONV_BLOCK_BYTES / g->element,
            features = g->out * g->groups;
    for (int i = 1; i < g->n; i++) {
        row *= conv_seen(g, i, g->end[i] - g->first[i]);
        positions *= g->end[i] - g->first[i];
    }
    int64_t each = row * g->from_step[0] + (keeps_y ? positions * features : 0);
    int64_t around = row * (conv_seen(g, 0, 1) - g->from_step[0]);
    int64_t rows = conv_most(1, (room - around) / each);
    if (keeps_y)
        rows = conv_least(rows, conv_most(1, CONV_BLOCK_TERMS / positions));
    g->rows =
        conv_divide_up(all, conv_divide_up(all, rows)); // all blocks of about the same size
    g->images = 1;
    if (g->rows < all)
        return;
    double work = (double)positions * (double)all * (double)(g->kernel * g->in * features);
    int64_t wanted = conv_most(1 + (int64_t)(CONV_TASK_WORK / work),
                               CONV_BLOCK_POSITIONS / (positions * all));
    g->images =
        conv_most(1, conv_least(conv_least(wanted, g->batch), room / (around + each * all)));
    if (keeps_y)
        g->images = conv_most(1, conv_least(g->images, CONV_BLOCK_TERMS / (positions * all)));
}

static void choose_memory(struct conv_geometry *g)
{
    int64_t apart = g->in * g->groups;
    for (int i = 0; i < g->n; i++) {
        int64_t from = conv_seen_from(g, i, g->first[i]);
        int64_t end = from + conv_seen(g, i, g->end[i] - g->first[i]);
        g->copies |= from < 0 || end > g->image[i];
    }
    for (int i = g->n - 1; i >= 0; i--) {
        g->extent[i] = conv_seen(g, i, i == 0 ? g->rows : g->end[i] - g->first[i]);
        g->apart[i] = apart;
        apart *= g->copies ? g->extent[i] : g->image[i];
    }
}

struct conv_geometry conv_geometry_of(const struct conv_call *c)
{
    bool is_x = c->part == CONV_X;
    const int64_t *w = c->dims[CONV_W], *x = c->dims[CONV_X], *y = c->dims[CONV_Y];
    int64_t in = w[c->n], all = w[c->n + 1], out = all / c->groups;
    struct conv_geometry g = {.n = c->n,
                              .element = (int64_t)dtype_get(c->dtype)->bytes,
                              .batch = x[0],
                              .groups = c->groups,
                              .in = is_x ? out : in,
                              .out = is_x ? in : out,
                              .kinds = 1,
                              .kernel = 1,
                              .in_apart = is_x ? 1 : all,
                              .out_apart = is_x ? all : 1,
                              .group_apart = out};
    for (int64_t i = c->n - 1, apart = in * all; i >= 0; apart *= w[i--]) {
        int64_t stride = c->lists[CONV_STRIDES][i];
        g.kernel_apart[i] = apart;
        g.kernel *= w[i];
        g.image[i] = (is_x ? y : x)[1 + i];
        g.result[i] = (is_x ? x : y)[1 + i];
        g.to_step[i] = g.kinds_along[i] = is_x ? stride : 1;
        g.from_step[i] = is_x ? 1 : stride;
        g.kinds *= g.kinds_along[i];
        find_bounds(&g, c, (int)i);
    }
    choose_block(&g, c->part == CONV_W);
    choose_memory(&g);
    return g;
}

int64_t conv_row_blocks(const struct conv_geometry *g)
{
    return conv_divide_up(g->end[0] - g->first[0], g->rows);
}

int64_t conv_blocks(const struct conv_geometry *g)
{
    return conv_divide_up(g->batch, g->images) * conv_row_blocks(g);
}

int64_t conv_positions(const struct conv_geometry *g)
{
    int64_t positions = g->rows;
    for (int i = 1; i < g->n; i++)
        positions *= g->end[i] - g->first[i];
    return positions;
}

int64_t conv_elements(const struct conv_geometry *g, const struct conv_line *l,
                      int64_t *out_counts)
{
    for (int i = 0; i < g->n; i++)
        out_counts[i] = l[i].count;
    return conv_product(g->n, out_counts);
}
