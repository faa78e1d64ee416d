// SPDX-License-Identifier: Apache-2.0
// Programs for a mesh on one device: a shard_map becomes its body, mapped over each axis of the mesh.
//
//     y = shard_map f x                  x: f32[8,3], split along axis 0 over i of 4
// becomes
//     p = reshape x [4,2,3]; q = f mapped over i; y = reshape q [8,3]
//
// Needs nothing.  Leaves no named axis.  After all differentiation and mapping.
#include "base/status.h"
#include "ir/collective.h"
#include "ir/control.h"
#include "ir/shard.h"
#include "passes/body.h"
#include "passes/rules/rules.h"

struct unshard {
    struct ir_module *m;
    struct ir_shard s;
    uint32_t n_in, n_out;
    const struct ir_graph *body;
    uint32_t f; // the body, mapped over axes of the grid from the last one on
};

static int rank_in(const struct unshard *u, uint32_t i) { return ir_type_of(u->body, i).rank; }

static int rank_out(const struct unshard *u, uint32_t i)
{
    return body_result(u->body, i).rank;
}

// Maps over axis number k of the grid what it splits; results have the axis where it splits them.
static jot_status map_axis(struct unshard *u, int k)
{
    bool *in = body_mask(u->m, u->n_in), *out = body_mask(u->m, u->n_out);
    int64_t axis = u->s.grid[k], size = ir_axis_size(u->m, axis);
    for (uint32_t i = 0; i < u->n_in; i++)
        in[i] = ir_split_has(u->s.split[i], rank_in(u, i), k);
    JOT_TRY(pass_vmap_named(u->m, u->f, in, size, (int)axis, &u->f, out));
    struct body w = body_of(u->m, u->f);
    body_take_all(&w);
    body_run(&w);
    for (uint32_t i = 0; i < u->n_out; i++) {
        bool wanted = ir_split_has(u->s.split[u->n_in + i], rank_out(u, i), k);
        ir_output(&w.b, wanted && !out[i] ? batch_repeat(&w.b, w.out[i], size) : w.out[i]);
    }
    return pass_finish(&w.b, &u->f);
}

// The dimensions of a whole value apart: for each those of the axes that split it and that of a piece.
// order: from those to the axes in the order of the grid, then the dimensions of a piece.
static int take_apart(const struct unshard *u, struct ir_split split, struct ir_type piece,
                      int64_t *dims, int64_t *order)
{
    int64_t position[IR_MAX_AXES], piece_at[IR_MAX_RANK];
    int n = 0, n_axes = 0;
    for (int k = 0; k < u->s.n_axes; k++)
        position[k] = -1;
    for (int d = 0; d < piece.rank; d++) {
        int n_by;
        const int64_t *by;
        ir_split_of(u->m, &u->s, split, d, &n_by, &by);
        for (int k = 0; k < n_by; k++) {
            dims[n] = ir_axis_size(u->m, u->s.grid[by[k]]);
            position[by[k]] = n++;
        }
        dims[n] = ir_dims(u->m, piece)[d];
        piece_at[d] = n++;
    }
    for (int k = 0; k < u->s.n_axes; k++)
        if (position[k] >= 0)
            order[n_axes++] = position[k];
    for (int d = 0; d < piece.rank; d++)
        order[n_axes + d] = piece_at[d];
    return n;
}

static ir_id split_whole(const struct unshard *u, struct ir_builder *b, struct ir_split split,
                         struct ir_type piece, ir_id x)
{
    int64_t dims[IR_MAX_RANK + IR_MAX_AXES], order[IR_MAX_RANK + IR_MAX_AXES];
    int n = take_apart(u, split, piece, dims, order);
    if (n > IR_MAX_RANK)
        return ir_fail(b, JOT_ERR_SHAPE, "shard_map of a value of %d axes over %d", piece.rank,
                       u->s.n_axes);
    return n == piece.rank ? x : ir_transpose(b, ir_reshape(b, x, n, dims), order);
}

static ir_id join_whole(const struct unshard *u, struct ir_builder *b, struct ir_split split,
                        struct ir_type piece, ir_id x)
{
    int64_t dims[IR_MAX_RANK + IR_MAX_AXES], order[IR_MAX_RANK + IR_MAX_AXES],
        back[IR_MAX_RANK + IR_MAX_AXES];
    int n = take_apart(u, split, piece, dims, order);
    if (n > IR_MAX_RANK)
        return ir_fail(b, JOT_ERR_SHAPE, "shard_map gives a value of %d axes over %d",
                       piece.rank, u->s.n_axes);
    if (n == piece.rank)
        return x;
    for (int i = 0; i < n; i++)
        back[order[i]] = i;
    struct ir_type whole = ir_whole_type(u->m, &u->s, split, piece);
    return ir_reshape(b, ir_transpose(b, x, back), whole.rank, ir_dims(u->m, whole));
}

static jot_status unshard(struct ir_builder *b, const struct ir_node *n, const ir_id *in,
                          ir_id *out)
{
    struct ir_module *m = b->module;
    struct unshard u = {.m = m, .s = ir_shard_of(m, n), .n_in = n->n_in, .n_out = n->n_out};
    u.body = ir_function(m, u.s.body);
    JOT_TRY(pass_unshard(m, u.s.body, &u.f));
    for (int k = u.s.n_axes; k-- > 0;)
        JOT_TRY(map_axis(&u, k));
    ir_id *x = pass_no_values(m, u.n_in);
    for (uint32_t i = 0; i < u.n_in; i++)
        x[i] = split_whole(&u, b, u.s.split[i], ir_type_of(u.body, i), in[i]);
    if (b->status != JOT_OK)
        return pass_builder_status(b);
    ir_inline(b, ir_function(m, u.f), x, out);
    for (uint32_t i = 0; i < u.n_out; i++)
        out[i] = join_whole(&u, b, u.s.split[u.n_in + i], body_result(u.body, i), out[i]);
    return pass_builder_status(b);
}

static jot_status copy_unsharded(struct ir_builder *b, const struct ir_graph *g,
                                 const struct ir_node *n, ir_id *map)
{
    struct ir_node copy = *n;
    const int64_t *functions;
    b->where = n->where;
    if (n->op == IR_shard_map)
        return unshard(b, n, body_operands(b->module, g, n, map), map + n->out);
    int count = ir_has_bodies((enum ir_op)n->op) ? ir_bodies_of(n, &functions) : 0;
    uint32_t *made = arena_array(b->module->arena, uint32_t, count + 1);
    for (int k = 0; k < count; k++)
        JOT_TRY(pass_unshard(b->module, (uint32_t)functions[k], &made[k]));
    if (count)
        copy.attrs = ir_with_functions(b->module, n->attrs, made);
    pass_copy_node(b, g, &copy, map);
    return pass_builder_status(b);
}

jot_status pass_unshard(struct ir_module *m, uint32_t f, uint32_t *out_f)
{
    const struct ir_graph *g = ir_function(m, f);
    struct memo_key key = {.kind = MEMO_UNSHARD, .f = f};
    const uint32_t *known = m->axes.count ? pass_memo_find(m, &key) : &f;
    if (known) {
        *out_f = *known;
        return JOT_OK;
    }
    struct ir_builder b = ir_builder_make(m, g->name, IR_BUILD_PLAIN);
    ir_id *map = pass_no_values(m, g->values.count);
    pass_copy_params(&b, g, NULL, true, map);
    for (uint32_t i = g->n_params; i < g->nodes.count; i++)
        JOT_TRY(copy_unsharded(&b, g, &g->nodes.at[i], map));
    pass_copy_outputs(&b, g, map);
    JOT_TRY(pass_finish(&b, out_f));
    pass_memo_add_function(m, &key, *out_f);
    return JOT_OK;
}
