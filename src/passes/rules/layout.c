// SPDX-License-Identifier: Apache-2.0
// Transposes and batching of elementwise ops and changes of index.  Their tangents are in math.c:
// all of them are linear.
#include "passes/rules/rules.h"

#define B c->b
#define CT c->ct[0]

static const int64_t *list(const struct ir_node *n, enum ir_key key)
{
    int count;
    return ir_attr_ints(n->attrs, key, &count);
}

void transpose_broadcast_in_dim(struct transpose *c)
{
    struct ir_type from = transpose_type(c, 0), to = ir_type_in(B, CT);
    const int64_t *dims = ir_dims(B->module, from), *wide = ir_dims(B->module, to);
    const int64_t *axes = list(c->n, IR_KEY_axes);
    int64_t summed[IR_MAX_RANK];
    int n = 0;
    for (int i = 0, next = 0; i < to.rank; i++) {
        bool kept = next < from.rank && axes[next] == i;
        if (!kept || dims[next] != wide[i])
            summed[n++] = i;
        next += kept;
    }
    ir_id sum = ir_reduce(B, IR_reduce_sum, CT, n, summed);
    transpose_give(c, 0, ir_reshape(B, sum, from.rank, dims));
}

void transpose_reshape(struct transpose *c)
{
    struct ir_type from = transpose_type(c, 0);
    transpose_give(c, 0, ir_reshape(B, CT, from.rank, ir_dims(B->module, from)));
}

void transpose_transpose(struct transpose *c)
{
    const int64_t *axes = list(c->n, IR_KEY_axes);
    int64_t inverse[IR_MAX_RANK];
    for (int i = 0; i < transpose_type(c, 0).rank; i++)
        inverse[axes[i]] = i;
    transpose_give(c, 0, ir_transpose(B, CT, inverse));
}

void transpose_rev(struct transpose *c)
{
    transpose_give(c, 0, ir_build(B, IR_rev, 1, &CT, c->n->attrs));
}

// Zeros around the slice and between its elements.
void transpose_slice(struct transpose *c)
{
    struct ir_type from = transpose_type(c, 0);
    const int64_t *whole = ir_dims(B->module, from);
    const int64_t *part = ir_dims(B->module, ir_type_in(B, CT));
    const int64_t *starts = list(c->n, IR_KEY_starts), *strides = list(c->n, IR_KEY_strides);
    int64_t low[IR_MAX_RANK], high[IR_MAX_RANK], interior[IR_MAX_RANK];
    for (int i = 0; i < from.rank; i++) {
        int64_t span = part[i] > 0 ? (part[i] - 1) * strides[i] + 1 : 0;
        low[i] = starts[i];
        high[i] = whole[i] - starts[i] - span;
        interior[i] = strides[i] - 1;
    }
    transpose_give(c, 0, ir_pad(B, CT, ir_scalar_like(B, CT, 0), low, high, interior));
}

// Cuts off what was padded and adds what was cut off, then drops the elements between.
static ir_id unpad(struct transpose *c)
{
    struct ir_type from = transpose_type(c, 0);
    const int64_t *low = list(c->n, IR_KEY_low), *high = list(c->n, IR_KEY_high);
    const int64_t *interior = list(c->n, IR_KEY_interior);
    int64_t minus_low[IR_MAX_RANK], minus_high[IR_MAX_RANK], starts[IR_MAX_RANK] = {0};
    int64_t strides[IR_MAX_RANK];
    for (int i = 0; i < from.rank; i++) {
        minus_low[i] = -low[i];
        minus_high[i] = -high[i];
        strides[i] = interior[i] + 1;
    }
    ir_id t = ir_pad(B, CT, ir_scalar_like(B, CT, 0), minus_low, minus_high, NULL);
    if (t == IR_NONE)
        return IR_NONE;
    return ir_slice(B, t, starts, ir_dims(B->module, ir_type_in(B, t)), strides);
}

// Where a pad node has the padding value.
static ir_id padding_mask(struct ir_builder *b, struct ir_type operand,
                          const struct ir_attrs *attrs)
{
    ir_id inside = ir_full(b, ir_type_with(operand, JOT_BOOL), 0);
    return ir_build(b, IR_pad, 2, (ir_id[]){inside, ir_scalar_int(b, JOT_BOOL, 1)}, attrs);
}

void transpose_pad(struct transpose *c)
{
    if (transpose_is_linear(c, 0))
        transpose_give(c, 0, unpad(c));
    if (!transpose_is_linear(c, 1))
        return;
    ir_id mask = padding_mask(B, transpose_type(c, 0), c->n->attrs);
    transpose_give(c, 1, ir_select(B, mask, CT, ir_scalar_like(B, CT, 0)));
}

// Sheared back: what was outside is dropped.
void transpose_shear(struct transpose *c)
{
    const struct ir_attrs *a = c->n->attrs;
    int axis = (int)ir_attr_int(a, IR_KEY_axis);
    transpose_give(c, 0,
                   ir_shear(B, CT, axis, (int)ir_attr_int(a, IR_KEY_along),
                            -ir_attr_int(a, IR_KEY_offset), -ir_attr_int(a, IR_KEY_step),
                            ir_dims(B->module, transpose_type(c, 0))[axis]));
}

// Spread along `axis`, repeated along `along`, and 0 where the two are not on the diagonal.
void transpose_diagonal(struct transpose *c)
{
    struct ir_type from = transpose_type(c, 0);
    const struct ir_attrs *a = c->n->attrs;
    const int64_t *dims = ir_dims(B->module, from);
    int64_t axis = ir_attr_int(a, IR_KEY_axis), along = ir_attr_int(a, IR_KEY_along);
    int64_t offset = ir_attr_int(a, IR_KEY_offset), step = ir_attr_int(a, IR_KEY_step);
    int64_t length = ir_attr_int(a, IR_KEY_length);
    int64_t low[IR_MAX_RANK] = {0}, high[IR_MAX_RANK] = {0}, interior[IR_MAX_RANK] = {0};
    int64_t order[IR_MAX_RANK], axes[IR_MAX_RANK];
    int last = from.rank - 2, n = 0;
    low[last] = offset < 0 ? -offset : 0;
    high[last] = dims[axis] - low[last] - (length > 0 ? (length - 1) * step + 1 : 0);
    interior[last] = step - 1;
    for (int d = 0, kept = 0; d < from.rank; d++)
        if (d != along) {
            order[n] = d == axis ? last : kept++;
            axes[n++] = d;
        }
    ir_id spread = ir_pad(B, CT, ir_scalar_like(B, CT, 0), low, high, interior);
    spread = ir_broadcast_in_dim(B, ir_transpose(B, spread, order), from.rank, dims, axes);
    struct ir_type indices = ir_type_with(from, JOT_I64);
    ir_id row = ir_iota(B, indices, (int)axis), column = ir_iota(B, indices, (int)along);
    row = ir_add(B, row, ir_scalar_int(B, JOT_I64, offset));
    transpose_give(c, 0, ir_select(B, ir_eq(B, row, column), spread, ir_scalar_like(B, CT, 0)));
}

void transpose_concatenate(struct transpose *c)
{
    int axis = (int)ir_attr_int(c->n->attrs, IR_KEY_axis), rank = ir_type_in(B, CT).rank;
    int64_t starts[IR_MAX_RANK] = {0}, limits[IR_MAX_RANK];
    memcpy(limits, ir_dims(B->module, ir_type_in(B, CT)), sizeof *limits * (size_t)rank);
    for (uint32_t i = 0; i < c->n->n_in; i++) {
        limits[axis] = starts[axis] + ir_dims(B->module, transpose_type(c, i))[axis];
        if (transpose_is_linear(c, i))
            transpose_give(c, i, ir_slice(B, CT, starts, limits, NULL));
        starts[axis] = limits[axis];
    }
}

// -- Batching ---------------------------------------------------------------------------------

struct ir_type batch_type(const struct batch *c, uint32_t i)
{
    return ir_type_of(c->g, ir_operand(c->g, c->n, i));
}

ir_id batch_repeat(struct ir_builder *b, ir_id v, int64_t size)
{
    if (v == IR_NONE)
        return IR_NONE;
    struct ir_type t = ir_type_in(b, v);
    int64_t dims[IR_MAX_RANK + 1] = {size}, axes[IR_MAX_RANK];
    for (int i = 0; i < t.rank; i++) {
        dims[i + 1] = ir_dims(b->module, t)[i];
        axes[i] = i + 1;
    }
    return ir_broadcast_in_dim(b, v, t.rank + 1, dims, axes);
}

ir_id batch_materialise(struct batch *c, uint32_t i)
{
    return c->batched[i] ? c->x[i] : batch_repeat(B, c->x[i], c->size);
}

// Room for the list with a number in front and delta added to the rest.
static const int64_t *shifted(const int64_t *from, int n, int64_t first, int64_t delta,
                              int64_t *room)
{
    room[0] = first;
    for (int i = 0; i < n; i++)
        room[i + 1] = from[i] + delta;
    return room;
}

// Elementwise: operands without the axis get one of extent 1, numbers as many as the others have.
void batch_map(struct batch *c)
{
    ir_id in[4];
    int rank = ir_type_of(c->g, c->n->out).rank;
    for (uint32_t i = 0; i < c->n->n_in; i++) {
        struct ir_type t = batch_type(c, i);
        const int64_t *from = ir_dims(B->module, t);
        int64_t dims[IR_MAX_RANK + 1] = {c->batched[i] ? c->size : 1};
        for (int k = 0; k < rank; k++)
            dims[k + 1] = t.rank ? from[k] : 1;
        bool fits = c->batched[i] ? t.rank == rank : t.rank == 0;
        in[i] = fits ? c->x[i] : ir_reshape(B, c->x[i], rank + 1, dims);
    }
    ir_id y = ir_build(B, c->n->op, (int)c->n->n_in, in, c->n->attrs);
    for (uint32_t i = 0; i < c->n->n_out; i++)
        c->y[i] = y == IR_NONE ? IR_NONE : y + i;
}

void batch_broadcast_in_dim(struct batch *c)
{
    int rank, n;
    const int64_t *dims = ir_attr_ints(c->n->attrs, IR_KEY_dims, &rank);
    const int64_t *axes = ir_attr_ints(c->n->attrs, IR_KEY_axes, &n);
    int64_t d[IR_MAX_RANK + 1], a[IR_MAX_RANK + 1];
    c->y[0] = ir_broadcast_in_dim(B, c->x[0], rank + 1, shifted(dims, rank, c->size, 0, d),
                                  shifted(axes, n, 0, 1, a));
}

void batch_reshape(struct batch *c)
{
    int rank;
    const int64_t *dims = ir_attr_ints(c->n->attrs, IR_KEY_dims, &rank);
    int64_t d[IR_MAX_RANK + 1];
    c->y[0] = ir_reshape(B, c->x[0], rank + 1, shifted(dims, rank, c->size, 0, d));
}

void batch_transpose(struct batch *c)
{
    int64_t a[IR_MAX_RANK + 1];
    c->y[0] = ir_transpose(B, c->x[0],
                           shifted(list(c->n, IR_KEY_axes), batch_type(c, 0).rank, 0, 1, a));
}

void batch_slice(struct batch *c)
{
    int rank = batch_type(c, 0).rank;
    int64_t starts[IR_MAX_RANK + 1], limits[IR_MAX_RANK + 1], strides[IR_MAX_RANK + 1];
    c->y[0] = ir_slice(B, c->x[0], shifted(list(c->n, IR_KEY_starts), rank, 0, 0, starts),
                       shifted(list(c->n, IR_KEY_limits), rank, c->size, 0, limits),
                       shifted(list(c->n, IR_KEY_strides), rank, 1, 0, strides));
}

// A padding value per lane: pad with something, then put the values where the padding is.
void batch_pad(struct batch *c)
{
    int rank = batch_type(c, 0).rank;
    int64_t low[IR_MAX_RANK + 1], high[IR_MAX_RANK + 1], interior[IR_MAX_RANK + 1];
    int64_t ones[IR_MAX_RANK + 1];
    shifted(list(c->n, IR_KEY_low), rank, 0, 0, low);
    shifted(list(c->n, IR_KEY_high), rank, 0, 0, high);
    shifted(list(c->n, IR_KEY_interior), rank, 0, 0, interior);
    if (!c->batched[1]) {
        c->y[0] = ir_pad(B, c->x[0], c->x[1], low, high, interior);
        return;
    }
    for (int i = 0; i <= rank; i++)
        ones[i] = i ? 1 : c->size;
    ir_id x = batch_materialise(c, 0);
    ir_id padded = ir_pad(B, x, ir_scalar_like(B, x, 0), low, high, interior);
    ir_id mask = padding_mask(B, batch_type(c, 0), c->n->attrs);
    if (mask == IR_NONE)
        return;
    int64_t dims[IR_MAX_RANK + 1];
    shifted(ir_dims(B->module, ir_type_in(B, mask)), rank, 1, 0, dims);
    c->y[0] = ir_select(B, ir_reshape(B, mask, rank + 1, dims),
                        ir_reshape(B, c->x[1], rank + 1, ones), padded);
}

// The op on operands that all have the axis in front, so that each axis that an attribute names is one further.
void batch_axis(struct batch *c)
{
    struct arena *a = B->module->arena;
    const struct ir_attrs *old = c->n->attrs;
    struct ir_field *fields = arena_copy(a, old->fields, old->count * sizeof *fields);
    ir_id *in = arena_array(a, ir_id, c->n->n_in);
    for (uint32_t i = 0; i < c->n->n_in; i++)
        in[i] = batch_materialise(c, i);
    for (struct ir_field *f = fields; f < fields + old->count; f++) {
        if (f->key != IR_KEY_axis && f->key != IR_KEY_along && f->key != IR_KEY_axes)
            continue;
        int64_t *moved = arena_array(a, int64_t, f->count + 1);
        f->ints = shifted(f->ints, (int)f->count, 0, 1, moved) + 1;
    }
    c->y[0] = ir_build(B, c->n->op, (int)c->n->n_in, in,
                       ir_attrs_make(B->module, (int)old->count, fields));
}
