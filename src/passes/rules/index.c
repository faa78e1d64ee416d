// SPDX-License-Identifier: Apache-2.0
// Rules of ops whose indices are data.  All but products, minima and maxima are linear in what they
// move; indices have no derivative.
#include "ir/indexing.h"
#include "passes/rules/rules.h"

#define B c->b
#define CT c->ct[0]

// ---- Slices

void jvp_dynamic_slice(struct jvp *c)
{
    if (c->dx[0] != IR_NONE)
        c->dy[0] =
            ir_dynamic_slice(B, c->dx[0], c->x + 1, ir_dims(B->module, ir_type_in(B, c->y[0])));
}

void transpose_dynamic_slice(struct transpose *c)
{
    transpose_give(c, 0,
                   ir_dynamic_update_slice(B, ir_zeros(B, transpose_type(c, 0)), CT, c->x + 1));
}

static ir_id tangent_of(struct jvp *c, int i)
{
    return c->dx[i] != IR_NONE ? c->dx[i] : rule_zeros_like(B, c->x[i]);
}

void jvp_dynamic_update_slice(struct jvp *c)
{
    if (c->dx[0] != IR_NONE || c->dx[1] != IR_NONE)
        c->dy[0] = ir_dynamic_update_slice(B, tangent_of(c, 0), tangent_of(c, 1), c->x + 2);
}

void transpose_dynamic_update_slice(struct transpose *c)
{
    struct ir_type update = transpose_type(c, 1);
    if (transpose_is_linear(c, 0))
        transpose_give(c, 0, ir_dynamic_update_slice(B, CT, ir_zeros(B, update), c->x + 2));
    if (transpose_is_linear(c, 1))
        transpose_give(c, 1, ir_dynamic_slice(B, CT, c->x + 2, ir_dims(B->module, update)));
}

// ---- Gather and scatter

ir_id rule_gather_updated(struct ir_builder *b, ir_id x, ir_id indices, struct ir_type updates,
                          const struct ir_attrs *scatter)
{
    if (x == IR_NONE || indices == IR_NONE)
        return IR_NONE;
    struct ir_gather g = ir_gather_of(scatter);
    struct ir_window w =
        ir_window_of(b->module, scatter, ir_type_in(b, x), ir_type_in(b, indices), updates);
    g.sizes = w.size;
    g.mode = ir_mode_moves(g.mode) ? g.mode : IR_MODE_DROP;
    return ir_gather(b, x, indices, &g);
}

// What lies outside of the operand has no tangent.
static struct ir_gather linear_gather(const struct ir_attrs *attrs)
{
    struct ir_gather g = ir_gather_of(attrs);
    g.mode = g.mode == IR_MODE_FILL ? IR_MODE_DROP : g.mode;
    return g;
}

bool rule_is_unique(const struct ir_builder *b, const struct ir_attrs *attrs, ir_id indices)
{
    struct ir_gather g = ir_gather_of(attrs);
    struct ir_type t = ir_type_in(b, indices);
    bool is_one = true; // of each part
    for (int i = 0; i + 1 < t.rank; i++) {
        bool is_batch = false;
        for (int k = 0; k < g.n_batch; k++)
            is_batch |= g.index_batch[k] == i;
        is_one &= is_batch || ir_dims(b->module, t)[i] == 1;
    }
    return is_one || g.unique;
}

void jvp_gather(struct jvp *c)
{
    struct ir_gather g = linear_gather(c->n.attrs);
    if (c->dx[0] != IR_NONE)
        c->dy[0] = ir_gather(B, c->dx[0], c->x[1], &g);
}

void transpose_gather(struct transpose *c)
{
    struct ir_gather g = linear_gather(c->n->attrs);
    transpose_give(
        c, 0,
        ir_scatter(B, IR_scatter_add, ir_zeros(B, transpose_type(c, 0)), c->x[1], CT, &g));
}

// Of scatter and scatter_add.
void jvp_scatter(struct jvp *c)
{
    ir_id in[] = {tangent_of(c, 0), c->x[1], tangent_of(c, 2)};
    if (c->dx[0] != IR_NONE || c->dx[2] != IR_NONE)
        c->dy[0] = ir_build(B, c->n.op, 3, in, c->n.attrs);
}

// Where an update is the last of its element: the numbers of the updates are scattered, and those
// that are found again have won.
static ir_id find_winners(struct ir_builder *b, ir_id indices, struct ir_type x,
                          struct ir_type updates, const struct ir_attrs *attrs)
{
    int64_t count = ir_count(b->module, updates);
    jot_dtype d = count > INT32_MAX ? JOT_I64 : JOT_I32;
    ir_id numbers = ir_reshape(b, ir_iota(b, ir_type_make(b->module, d, 1, &count), 0),
                               updates.rank, ir_dims(b->module, updates));
    ir_id in[] = {ir_full(b, ir_type_with(x, d), -1), indices, numbers};
    ir_id last = ir_build(b, IR_scatter, 3, in, attrs);
    return ir_eq(b, rule_gather_updated(b, last, indices, updates, attrs), numbers);
}

void transpose_scatter(struct transpose *c)
{
    struct ir_type x = transpose_type(c, 0), updates = transpose_type(c, 2);
    if (transpose_is_linear(c, 0)) {
        ir_id in[] = {CT, c->x[1], ir_zeros(B, updates)};
        transpose_give(c, 0, ir_build(B, IR_scatter, 3, in, c->n->attrs));
    }
    if (!transpose_is_linear(c, 2))
        return;
    ir_id ct = rule_gather_updated(B, CT, c->x[1], updates, c->n->attrs);
    if (!rule_is_unique(B, c->n->attrs, c->x[1]))
        ct = ir_select(B, find_winners(B, c->x[1], x, updates, c->n->attrs), ct,
                       ir_scalar_like(B, CT, 0));
    transpose_give(c, 2, ct);
}

void transpose_scatter_add(struct transpose *c)
{
    transpose_give(c, 0, CT);
    if (transpose_is_linear(c, 2))
        transpose_give(c, 2,
                       rule_gather_updated(B, CT, c->x[1], transpose_type(c, 2), c->n->attrs));
}

// x, a tangent or cotangent, times what is scattered.
static ir_id scale_elements(struct ir_builder *b, ir_id x, ir_id indices, ir_id updates,
                            const struct ir_attrs *attrs)
{
    struct ir_gather g = ir_gather_of(attrs);
    if (x == IR_NONE || updates == IR_NONE)
        return IR_NONE;
    if (!rule_is_unique(b, attrs, indices)) {
        ir_id ones = ir_full(b, ir_type_in(b, x), 1);
        return ir_mul_z(b, x, ir_scatter(b, IR_scatter_mul, ones, indices, updates, &g));
    }
    ir_id part = rule_gather_updated(b, x, indices, ir_type_in(b, updates), attrs);
    return ir_scatter(b, IR_scatter, x, indices, ir_mul_z(b, part, updates), &g);
}

// d (x u) = dx u + x du, for one update of an element.
void jvp_scatter_mul(struct jvp *c)
{
    struct ir_gather g = ir_gather_of(c->n.attrs);
    if (c->dx[0] != IR_NONE)
        c->dy[0] = scale_elements(B, c->dx[0], c->x[1], c->x[2], c->n.attrs);
    if (c->dx[2] == IR_NONE)
        return;
    if (!rule_is_unique(B, c->n.attrs, c->x[1])) {
        rule_refuse(B,
                    "scatter_mul has no derivative in updates of which several may be of one "
                    "element: promise that indices are unique");
        return;
    }
    ir_id x = rule_gather_updated(B, c->x[0], c->x[1], ir_type_in(B, c->x[2]), c->n.attrs);
    ir_id dy = c->dy[0] != IR_NONE ? c->dy[0] : rule_zeros_like(B, c->x[0]);
    c->dy[0] = ir_scatter(B, IR_scatter_add, dy, c->x[1], ir_mul_z(B, c->dx[2], x), &g);
}

void transpose_scatter_mul(struct transpose *c)
{
    transpose_give(c, 0, scale_elements(B, CT, c->x[1], c->x[2], c->n->attrs));
}

// The mean of the tangents of all that are equal to the result, and NaN where that is.
void jvp_scatter_extreme(struct jvp *c)
{
    struct ir_gather g = ir_gather_of(c->n.attrs);
    struct ir_type updates = ir_type_in(B, c->x[2]);
    ir_id zero = ir_scalar_like(B, c->x[0], 0), one = ir_scalar_like(B, c->x[0], 1);
    bool is_max = c->n.op == IR_scatter_max;
    ir_id x_wins = rule_wins(B, is_max, c->x[0], c->y[0]);
    ir_id best = rule_gather_updated(B, c->y[0], c->x[1], updates, c->n.attrs);
    ir_id u_wins = rule_wins(B, is_max, c->x[2], best);
    ir_id winners = ir_scatter(B, IR_scatter_add, ir_select(B, x_wins, one, zero), c->x[1],
                               ir_select(B, u_wins, one, zero), &g);
    ir_id sum = ir_scatter(B, IR_scatter_add, ir_select(B, x_wins, tangent_of(c, 0), zero),
                           c->x[1], ir_select(B, u_wins, tangent_of(c, 2), zero), &g);
    if (c->dx[0] != IR_NONE || c->dx[2] != IR_NONE)
        c->dy[0] = rule_quotient(B, sum, rule_or_nan(B, c->y[0], winners));
}

// ---- Batching

struct lists {
    int64_t offset[IR_MAX_RANK + 1], collapsed[IR_MAX_RANK + 1], map[IR_MAX_RANK + 1];
    int64_t operand[IR_MAX_RANK + 1], index[IR_MAX_RANK + 1], sizes[IR_MAX_RANK + 1];
};

// `first`, unless it is negative, and the list with delta added; its length.
static int shift(int64_t *to, int64_t first, int n, const int64_t *from, int64_t delta)
{
    int count = 0;
    if (first >= 0)
        to[count++] = first;
    for (int i = 0; i < n; i++)
        to[count++] = from[i] + delta;
    return count;
}

// The dimensions with a leading axis of the operand (of extent `size`), of the indices, or of both.
static struct ir_gather batch_dimensions(const struct ir_gather *g, bool operand, bool indices,
                                         int rank, int64_t size, struct lists *l)
{
    struct ir_gather out = *g;
    bool both = operand && indices;
    out.n_offset = shift(l->offset, indices ? -1 : 0, g->n_offset, g->offset_dims, 1);
    out.n_collapsed = shift(l->collapsed, -1, g->n_collapsed, g->collapsed_dims, operand);
    out.n_map = shift(l->map, -1, g->n_map, g->index_map, operand);
    out.n_batch = shift(l->operand, both ? 0 : -1, g->n_batch, g->operand_batch, operand);
    shift(l->index, both ? 0 : -1, g->n_batch, g->index_batch, indices);
    if (g->sizes)
        shift(l->sizes, !operand ? -1 : both ? 1 : size, rank, g->sizes, 0);
    out.offset_dims = l->offset;
    out.collapsed_dims = l->collapsed;
    out.index_map = l->map;
    out.operand_batch = l->operand;
    out.index_batch = l->index;
    out.sizes = l->sizes;
    return out;
}

void batch_gather(struct batch *c)
{
    struct lists l;
    struct ir_gather g = ir_gather_of(c->n->attrs);
    g = batch_dimensions(&g, c->batched[0], c->batched[1], batch_type(c, 0).rank, c->size, &l);
    c->y[0] = ir_gather(B, c->x[0], c->x[1], &g);
}

void batch_scatter(struct batch *c)
{
    struct lists l;
    struct ir_gather g = ir_gather_of(c->n->attrs);
    g = batch_dimensions(&g, true, c->batched[1], 0, c->size, &l);
    c->y[0] = ir_scatter(B, (enum ir_op)c->n->op, batch_materialise(c, 0), c->x[1],
                         batch_materialise(c, 2), &g);
}

static bool any_batched(const struct batch *c, uint32_t first)
{
    for (uint32_t i = first; i < c->n->n_in; i++)
        if (c->batched[i])
            return true;
    return false;
}

// Starts, operands from `first` on, as one array of indices [size, rank].
static ir_id indices_of(struct batch *c, uint32_t first, int rank)
{
    ir_id parts[IR_MAX_RANK];
    int64_t column[] = {c->size, 1};
    jot_dtype d = JOT_I32;
    for (int i = 0; i < rank; i++) {
        jot_dtype have = ir_dtype(batch_type(c, first + (uint32_t)i));
        if (jot_dtype_size(have) == 8 || have == JOT_U32)
            d = JOT_I64;
    }
    for (int i = 0; i < rank; i++) {
        ir_id x = batch_materialise(c, first + (uint32_t)i);
        if (ir_dtype(batch_type(c, first + (uint32_t)i)) == JOT_U64)
            x = ir_min(B, x, ir_scalar_int(B, JOT_U64, INT64_MAX));
        parts[i] = ir_reshape(B, ir_convert(B, x, d), 2, column);
    }
    if (rank == 0)
        return ir_zeros(B, ir_type_make(B->module, d, 2, (int64_t[]){c->size, 0}));
    return ir_concatenate(B, rank, parts, 1);
}

// The dimensions of a gather of one window of an operand by each row of indices.
static struct ir_gather window_dimensions(int rank, bool operand, struct lists *l)
{
    for (int i = 0; i <= rank; i++) {
        l->offset[i] = i + 1;
        l->map[i] = i + operand;
        l->operand[i] = l->index[i] = 0;
    }
    return (struct ir_gather){.n_offset = rank,
                              .offset_dims = l->offset,
                              .n_map = rank,
                              .index_map = l->map,
                              .n_batch = operand,
                              .operand_batch = l->operand,
                              .index_batch = l->index,
                              .mode = IR_MODE_CLIP,
                              .unique = true};
}

void batch_dynamic_slice(struct batch *c)
{
    struct lists l;
    struct ir_type t = ir_type_of(c->g, c->n->out);
    ir_id starts[IR_MAX_RANK + 1];
    bool operand = c->batched[0];
    shift(l.sizes, operand ? (any_batched(c, 1) ? 1 : c->size) : -1, t.rank,
          ir_dims(B->module, t), 0);
    if (any_batched(c, 1)) {
        struct ir_gather g = window_dimensions(t.rank, operand, &l);
        g.sizes = l.sizes;
        c->y[0] = ir_gather(B, c->x[0], indices_of(c, 1, t.rank), &g);
        return;
    }
    starts[0] = ir_scalar_int(B, JOT_I32, 0);
    for (int i = 0; i < t.rank; i++)
        starts[i + 1] = c->x[i + 1];
    c->y[0] = ir_dynamic_slice(B, c->x[0], starts, l.sizes);
}

void batch_dynamic_update_slice(struct batch *c)
{
    struct lists l;
    int rank = ir_type_of(c->g, c->n->out).rank;
    ir_id starts[IR_MAX_RANK + 1] = {ir_scalar_int(B, JOT_I32, 0)};
    ir_id x = batch_materialise(c, 0), u = batch_materialise(c, 1);
    if (any_batched(c, 2)) {
        struct ir_gather g = window_dimensions(rank, true, &l);
        c->y[0] = ir_scatter(B, IR_scatter, x, indices_of(c, 2, rank), u, &g);
        return;
    }
    for (int i = 0; i < rank; i++)
        starts[i + 1] = c->x[i + 2];
    c->y[0] = ir_dynamic_update_slice(B, x, u, starts);
}
