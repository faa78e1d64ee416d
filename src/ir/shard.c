// SPDX-License-Identifier: Apache-2.0
#include "ir/shard.h"

#include "ir/collective.h"
#include "ir/infer.h"

bool ir_shard_read(struct ir_module *m, const struct ir_attrs *a, struct ir_shard *out)
{
    int n_functions, n_splits, at = 0;
    const int64_t *functions = ir_attr_ints(a, IR_KEY_functions, &n_functions);
    const int64_t *splits = ir_attr_ints(a, IR_KEY_splits, &n_splits);
    *out = (struct ir_shard){.grid = ir_attr_ints(a, IR_KEY_grid, &out->n_axes)};
    ir_attr_ints(a, IR_KEY_grid, &out->n_axes);
    out->split = arena_array(m->arena, struct ir_split, n_splits + 1);
    while (at < n_splits && splits[at] >= 0 && splits[at] < n_splits - at) {
        out->split[out->n_splits++] = (struct ir_split){(int)splits[at], splits + at + 1};
        at += 1 + (int)splits[at];
    }
    for (int i = 0; i < out->n_axes; i++)
        for (int k = 0; k < i; k++)
            if (out->grid[i] == out->grid[k])
                return false;
    if (n_functions == 1)
        out->body = (uint32_t)functions[0];
    return n_functions == 1 && at == n_splits && out->n_axes > 0;
}

struct ir_shard ir_shard_of(struct ir_module *m, const struct ir_node *n)
{
    struct ir_shard s;
    ir_shard_read(m, n->attrs, &s);
    return s;
}

ir_id ir_shard_map(struct ir_builder *b, const struct ir_shard *s, int n_in, const ir_id *in)
{
    int64_t body = s->body;
    VEC(int64_t) splits = {0};
    for (int i = 0; i < s->n_splits; i++) {
        vec_push(b->module->arena, &splits, s->split[i].n);
        for (int k = 0; k < s->split[i].n; k++)
            vec_push(b->module->arena, &splits, s->split[i].at[k]);
    }
    return ir_build(b, IR_shard_map, n_in, in,
                    ir_attrs(b->module, IR_INTS(functions, 1, &body),
                             IR_INTS(grid, s->n_axes, s->grid),
                             IR_INTS(splits, splits.count, splits.at)));
}

static uint16_t one(int64_t axis) { return (uint16_t)(1u << (axis & (IR_MAX_AXES - 1))); }

uint16_t ir_grid_set(const struct ir_shard *s)
{
    uint16_t axes = 0;
    for (int i = 0; i < s->n_axes; i++)
        axes |= one(s->grid[i]);
    return axes;
}

// Where the axes of dimension d begin, after their number.
static int entry_of(struct ir_split split, int d)
{
    int at = 0;
    for (int i = 0; i < d; i++)
        at += 1 + (int)split.at[at];
    return at;
}

uint16_t ir_split_set(const struct ir_shard *s, struct ir_split split)
{
    uint16_t axes = 0;
    for (int at = 0; at < split.n; at += 1 + (int)split.at[at])
        for (int k = 0; k < split.at[at]; k++)
            axes |= one(s->grid[split.at[at + 1 + k]]);
    return axes;
}

bool ir_splits_equal(struct ir_split a, struct ir_split b)
{
    return a.n == b.n && !memcmp(a.at, b.at, sizeof *a.at * (size_t)a.n);
}

bool ir_split_has(struct ir_split split, int rank, int axis)
{
    for (int d = 0, at = 0; d < rank; d++, at += 1 + (int)split.at[at])
        for (int k = 0; k < split.at[at]; k++)
            if (split.at[at + 1 + k] == axis)
                return true;
    return false;
}

int64_t ir_split_of(const struct ir_module *m, const struct ir_shard *s, struct ir_split split,
                    int d, int *out_n, const int64_t **out)
{
    int at = entry_of(split, d);
    int64_t lanes = 1;
    *out_n = (int)split.at[at];
    *out = split.at + at + 1;
    for (int k = 0; k < *out_n; k++)
        lanes *= ir_axis_size(m, s->grid[(*out)[k]]);
    return lanes;
}

// Whether the split is one of values of the rank.
static bool ir_split_fits(const struct ir_shard *s, struct ir_split split, int rank)
{
    int at = 0;
    uint32_t seen = 0;
    for (int d = 0; d < rank; d++) {
        if (at >= split.n || split.at[at] < 0 || split.at[at] >= split.n - at)
            return false;
        for (int k = 0; k < split.at[at]; k++) {
            int64_t axis = split.at[at + 1 + k];
            if (axis < 0 || axis >= s->n_axes || seen >> axis & 1)
                return false;
            seen |= 1u << axis;
        }
        at += 1 + (int)split.at[at];
    }
    return at == split.n;
}

bool ir_piece_type(struct ir_module *m, const struct ir_shard *s, struct ir_split split,
                   struct ir_type whole, struct ir_type *out, int *out_d)
{
    int64_t dims[IR_MAX_RANK];
    for (int d = 0; d < whole.rank; d++) {
        int n;
        const int64_t *by;
        int64_t lanes = ir_split_of(m, s, split, d, &n, &by), extent = ir_dims(m, whole)[d];
        *out_d = d;
        if (lanes == 0 || extent % lanes)
            return false;
        dims[d] = extent / lanes;
    }
    *out = ir_type_make(m, ir_dtype(whole), whole.rank, dims);
    out->varies = whole.varies | ir_split_set(s, split);
    return true;
}

struct ir_type ir_whole_type(struct ir_module *m, const struct ir_shard *s,
                             struct ir_split split, struct ir_type piece)
{
    int64_t dims[IR_MAX_RANK];
    for (int d = 0; d < piece.rank; d++) {
        int n;
        const int64_t *by;
        dims[d] = ir_dims(m, piece)[d] * ir_split_of(m, s, split, d, &n, &by);
    }
    struct ir_type t = ir_type_make(m, ir_dtype(piece), piece.rank, dims);
    t.varies = piece.varies & (uint16_t)~ir_grid_set(s);
    return t;
}

struct ir_split ir_split_stacked(struct ir_module *m, const struct ir_shard *s,
                                 struct ir_split split, uint16_t axes)
{
    int64_t *at = arena_array(m->arena, int64_t, split.n + s->n_axes + 1);
    int n = 1;
    for (int k = 0; k < s->n_axes; k++)
        if (axes & one(s->grid[k]))
            at[n++] = k;
    at[0] = n - 1;
    for (int k = 0; k < split.n; k++)
        at[n++] = split.at[k];
    return (struct ir_split){n, at};
}

struct ir_split ir_split_none(struct ir_module *m, int rank)
{
    return (struct ir_split){rank, arena_array(m->arena, int64_t, rank + 1)};
}

// -- Types ------------------------------------------------------------------------------------

static bool check_operand(struct ir_infer *call, const struct ir_shard *s, int i,
                          struct ir_type param)
{
    struct ir_module *m = call->b->module;
    struct ir_type whole = infer_in(call, i), piece;
    uint16_t grid = ir_grid_set(s);
    int d = 0;
    if (!ir_split_fits(s, s->split[i], whole.rank))
        return infer_fail(call, JOT_ERR_ARGUMENT,
                          "operand %d of shard_map is %s, and its split is of other values", i,
                          infer_text(call, whole));
    if (whole.varies & grid)
        return infer_fail(call, JOT_ERR_ARGUMENT,
                          "operand %d of shard_map is %s, and %s is an axis of its mesh", i,
                          infer_text(call, whole), ir_axes_text(m, whole.varies & grid));
    if (!ir_piece_type(m, s, s->split[i], whole, &piece, &d))
        return infer_fail(call, JOT_ERR_SHAPE,
                          "operand %d of shard_map is %s: axis %d cannot be divided so", i,
                          infer_text(call, whole), d);
    uint16_t more = param.varies & grid & (uint16_t)~piece.varies;
    piece.varies |= more;
    return ir_type_equal(piece, param) ||
           infer_fail(call, piece.dtype == param.dtype ? JOT_ERR_SHAPE : JOT_ERR_DTYPE,
                      "operand %d of shard_map is %s, a piece of it %s, and the body takes %s",
                      i, infer_text(call, whole), infer_text(call, piece),
                      infer_text(call, param));
}

bool infer_shard_map(struct ir_infer *call)
{
    struct ir_module *m = call->b->module;
    struct ir_graph *f;
    struct ir_shard s;
    if (!infer_functions(call, 1, &f))
        return false;
    if (!ir_shard_read(m, call->attrs, &s))
        return infer_fail(call, JOT_ERR_ARGUMENT, "shard_map without a mesh or splits");
    for (int i = 0; i < s.n_axes; i++)
        if (s.grid[i] < 0 || s.grid[i] >= m->axes.count)
            return infer_fail(call, JOT_ERR_ARGUMENT, "shard_map over axis %lld of %u",
                              (long long)s.grid[i], m->axes.count);
    int n_out = (int)f->outputs.count;
    if ((int)f->n_params != call->n_in || s.n_splits != call->n_in + n_out)
        return infer_fail(
            call, JOT_ERR_ARGUMENT,
            "shard_map of %d operands, with %d splits, of a body that takes %u and "
            "gives %d",
            call->n_in, s.n_splits, f->n_params, n_out);
    for (int i = 0; i < call->n_in; i++)
        if (!check_operand(call, &s, i, ir_type_of(f, (ir_id)i)))
            return false;
    call->n_out = n_out;
    if (n_out > 1)
        call->types = arena_array(m->arena, struct ir_type, n_out);
    for (int i = 0; i < n_out; i++) {
        struct ir_type t = ir_type_of(f, f->outputs.at[i]);
        struct ir_split split = s.split[call->n_in + i];
        if (!ir_split_fits(&s, split, t.rank))
            return infer_fail(call, JOT_ERR_ARGUMENT,
                              "result %d of shard_map is %s, and its split is of other values",
                              i, infer_text(call, t));
        uint16_t left = t.varies & ir_grid_set(&s) & (uint16_t)~ir_split_set(&s, split);
        if (left)
            return infer_fail(
                call, JOT_ERR_ARGUMENT,
                "result %d varies over %s, which does not split it: devices along it "
                "would have to agree: take jot_psum or jot_pmean of it, or split it",
                i, ir_axes_text(m, left));
        call->types[i] = ir_whole_type(m, &s, split, t);
    }
    return true;
}
