// SPDX-License-Identifier: Apache-2.0
// Random programs whose lanes exchange values: the body of a shard_map over two named axes; and programs
// with many small ones, in other pieces each.
#include "ir/collective.h"
#include "ir/shard.h"
#include "random/maker.h"

enum { LANES_I = 3, LANES_J = 2 };

void name_axes(struct ir_module *m)
{
    ir_axis_add(m, "i", LANES_I);
    ir_axis_add(m, "j", LANES_J);
}

struct ir_type varying(struct maker *k, struct ir_type t)
{
    t.varies = (uint16_t)(chance(k, 4) ? draw(k, 4) : 1 + draw(k, 3));
    return t;
}

// A row for each lane, which are all different.
static ir_id make_rows(struct maker *k, ir_id x, int64_t lanes)
{
    struct ir_type t = type_in(k, x);
    int64_t dims[IR_MAX_RANK + 1] = {lanes}, axes[IR_MAX_RANK + 1] = {0};
    memcpy(dims + 1, ir_dims(k->m, t), sizeof *dims * t.rank);
    struct ir_type rows = ir_type_make(k->m, ir_dtype(t), t.rank + 1, dims);
    for (int i = 0; i < t.rank; i++)
        axes[i] = i + 1;
    ir_id all = ir_broadcast_in_dim(&k->b, x, t.rank + 1, dims, axes);
    return ir_sin(&k->b, ir_add(&k->b, all, ir_iota(&k->b, rows, 0)));
}

ir_id make_collective(struct maker *k)
{
    static const enum ir_op ops[] = {IR_psum,       IR_psum,       IR_pmax,
                                     IR_all_gather, IR_all_to_all, IR_psum_scatter,
                                     IR_ppermute,   IR_axis_index, IR_pvary};
    static const int64_t lists[][2] = {{0, 1}, {1, 0}, {0, 0}, {1, 0}};
    enum ir_op op = ops[draw(k, sizeof ops / sizeof *ops)];
    uint64_t list = draw(k, 4);
    int n = list < 2 ? 2 : 1;
    int64_t lanes = n == 2 ? LANES_I * LANES_J : lists[list][0] ? LANES_J : LANES_I;
    ir_id x = pick(k);
    if (op == IR_axis_index)
        return ir_convert(&k->b, ir_axis_index(&k->b, lists[list][0]), real_of(k->kind));
    if (count_in(k, x) * lanes > k->most || type_in(k, x).rank > 4)
        return IR_NONE;
    if (op == IR_all_to_all || op == IR_psum_scatter)
        x = make_rows(k, x, lanes);
    if (op == IR_pvary)
        return ir_pvary(&k->b, x, list < 2 ? 3 : (uint16_t)(1u << lists[list][0]));
    if (op != IR_ppermute)
        return ir_collective(&k->b, op, x, n, lists[list]);
    int64_t pairs[2 * LANES_I * LANES_J], by = (int64_t)draw(k, (uint64_t)lanes);
    int n_pairs = 0;
    for (int64_t i = 0; i < lanes; i++)
        if (!chance(k, 5)) {
            pairs[2 * n_pairs] = i;
            pairs[2 * n_pairs++ + 1] = (i + by) % lanes;
        }
    return ir_ppermute(&k->b, x, n, lists[list], n_pairs, pairs);
}

// The split of a value with one more dimension in front for each axis that it varies over.
static struct ir_split split_of(struct ir_module *m, const struct ir_shard *s, struct ir_type t)
{
    struct ir_split split = ir_split_none(m, t.rank);
    for (int k = 1; k >= 0; k--)
        if (t.varies >> k & 1)
            split = ir_split_stacked(m, s, split, (uint16_t)(1u << k));
    return split;
}

// v with n dimensions of extent 1 in front, or without those there are.
static ir_id lead(struct ir_builder *b, ir_id v, int n, struct ir_type t)
{
    int64_t dims[IR_MAX_RANK + 2] = {1, 1};
    memcpy(dims + n, ir_dims(b->module, t), sizeof *dims * t.rank);
    return ir_reshape(b, v, t.rank + n, dims);
}

static int count_axes(struct ir_type t) { return (t.varies & 1) + (t.varies >> 1 & 1); }

// The function as what each of six devices does, of whole values.
uint32_t shard_program(struct ir_module *m, uint32_t f)
{
    static const int64_t grid[] = {0, 1};
    const struct ir_graph *g = ir_function(m, f);
    uint32_t n_in = g->n_params, n_out = g->outputs.count;
    struct ir_shard s = {.n_axes = 2, .grid = grid, .n_splits = (int)(n_in + n_out)};
    struct ir_builder b = ir_builder_make(m, "piece", IR_BUILD_PLAIN),
                      w = ir_builder_make(m, "program", IR_BUILD_PLAIN);
    ir_id *x = arena_array(m->arena, ir_id, n_in + n_out + 1), *y = x + n_in;
    s.split = arena_array(m->arena, struct ir_split, n_in + n_out);
    for (uint32_t i = 0; i < n_in + n_out; i++)
        s.split[i] = split_of(m, &s, ir_type_of(g, i < n_in ? i : g->outputs.at[i - n_in]));
    for (uint32_t i = 0; i < n_in; i++) {
        struct ir_type t = ir_type_of(g, i);
        int64_t dims[IR_MAX_RANK + 2] = {1, 1};
        memcpy(dims + count_axes(t), ir_dims(m, t), sizeof *dims * t.rank);
        struct ir_type piece = ir_type_make(m, ir_dtype(t), t.rank + count_axes(t), dims);
        piece.varies = t.varies;
        x[i] = ir_param(&b, piece);
    }
    for (uint32_t i = 0; i < n_in; i++)
        if (count_axes(ir_type_of(g, i)))
            x[i] = lead(&b, x[i], 0, ir_type_of(g, i));
    ir_inline(&b, g, x, y);
    for (uint32_t i = 0; i < n_out; i++) {
        struct ir_type t = ir_type_of(g, g->outputs.at[i]);
        ir_output(&b, count_axes(t) ? lead(&b, y[i], count_axes(t), t) : y[i]);
    }
    s.body = ir_finish_function(&b);
    if (s.body == IR_NONE)
        return IR_NONE;
    const struct ir_graph *body = ir_function(m, s.body);
    for (uint32_t i = 0; i < n_in; i++)
        x[i] = ir_param(&w, ir_whole_type(m, &s, s.split[i], ir_type_of(body, i)));
    ir_id first = ir_shard_map(&w, &s, (int)n_in, x);
    for (uint32_t i = 0; i < n_out; i++)
        ir_output(&w, first == IR_NONE ? first : first + i);
    return ir_finish_function(&w);
}

// ---- Pieces

// A split of a value with the dimensions, by axes that divide them.
static struct ir_split draw_split(struct maker *k, const struct ir_shard *s, struct ir_type t)
{
    int64_t *at = arena_array(k->m->arena, int64_t, t.rank + 3);
    uint16_t used = 0;
    int n = 0;
    for (int d = 0; d < t.rank; d++) {
        int64_t *count = &at[n++], extent = ir_dims(k->m, t)[d];
        for (int i = 0; i < 2; i++) {
            int axis = (int)draw(k, 2);
            int64_t lanes = ir_axis_size(k->m, s->grid[axis]);
            if (used >> axis & 1 || extent % lanes || chance(k, 3))
                continue;
            used |= (uint16_t)(1u << axis);
            extent /= lanes;
            at[n++] = axis;
            ++*count;
        }
    }
    return (struct ir_split){n, at};
}

// What a device does with its piece; floats are summed where derivatives are taken, which need no bits.
static ir_id make_piece(struct maker *k, struct ir_builder *b, ir_id x, const int64_t *grid)
{
    struct ir_type t = ir_type_in(b, x);
    if (chance(k, 4) && is_derivable(k) && dtype_is_inexact(ir_dtype(t)) && t.varies)
        return ir_add(b, x, ir_psum(b, x, t.varies));
    if (chance(k, 3) && t.varies == 3)
        return ir_ppermute(b, x, 2, grid, 2, (int64_t[]){0, 4, 5, 1});
    return dtype_is_inexact(ir_dtype(t)) ? ir_sin(b, x) : x;
}

ir_id make_pieces(struct maker *k)
{
    static const int64_t grids[][2] = {{0, 1}, {1, 0}};
    ir_id x = pick(k);
    struct ir_type whole = type_in(k, x), piece;
    struct ir_split split[2];
    struct ir_shard s = {.n_axes = 2, .grid = grids[0], .n_splits = 2, .split = split};
    struct ir_builder b = ir_builder_make(k->m, "piece", IR_BUILD_PLAIN);
    split[0] = split[1] = draw_split(k, &s, whole);
    if (x == IR_NONE || !ir_piece_type(k->m, &s, split[0], whole, &piece, &(int){0}))
        return IR_NONE;
    ir_output(&b, make_piece(k, &b, ir_param(&b, piece), grids[draw(k, 2)]));
    s.body = ir_finish_function(&b);
    return s.body == IR_NONE ? IR_NONE : ir_shard_map(&k->b, &s, 1, &x);
}
