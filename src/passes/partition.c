// SPDX-License-Identifier: Apache-2.0
// What is laid over a mesh of devices, as the program that each of them runs.
//
//     f(x: f32[8]) { y = shard_map @body x {over=[i:4], ...}; z = neg y; return z }
// becomes
//     f(x: f32[2]<i:4>) { y = ...body...; w = all_gather y; z = neg (reshape w); return z }
//
// Outside of shard_maps all devices do the same.  A value that a shard_map splits is sliced where it comes
// in, and what it gives is gathered where the whole of it is wanted; what one gives and another one takes in
// the same pieces stays in them.  So do parameters that only shard_maps read, in the same pieces all, and
// results that a shard_map gives.
//
// Needs all differentiation and mapping done; pass_exchange follows.
#include "passes/partition.h"

#include "base/status.h"
#include "ir/collective.h"
#include "ir/control.h"
#include "ir/indexing.h"
#include "passes/body.h"

// A value in pieces.
struct pieces {
    struct pieces *next;
    struct ir_split split;
    ir_id v;
};

struct partition {
    struct ir_module *m;
    struct ir_shard mesh; // the grid of all shard_maps
    uint32_t *result;     // by function there was, IR_NONE before it is done
};

// A function on its way.
struct sweep {
    struct partition *p;
    struct ir_builder b;
    const struct ir_graph *g;
    ir_id *whole; // by value of g, IR_NONE where there are pieces only
    struct pieces **pieces;
};

// ---- Pieces

static bool splits_equal(struct ir_split a, struct ir_split b)
{
    return a.n == b.n && !memcmp(a.at, b.at, sizeof *a.at * (size_t)a.n);
}

// The named axes that split dimension d, the slowest first; how many they are, and lanes along them.
static int axes_of(const struct partition *p, struct ir_split split, int d, int64_t *axes,
                   int64_t *out_lanes)
{
    int n;
    const int64_t *places;
    *out_lanes = ir_split_of(p->m, &p->mesh, split, d, &n, &places);
    for (int i = 0; i < n; i++)
        axes[i] = p->mesh.grid[places[i]];
    return n;
}

static ir_id slice(struct sweep *s, ir_id x, struct ir_split split)
{
    struct ir_builder *b = &s->b;
    struct ir_type t = ir_type_in(b, x);
    int64_t axes[IR_MAX_AXES], sizes[IR_MAX_RANK], lanes;
    ir_id starts[IR_MAX_RANK];
    for (int d = 0; d < t.rank; d++) {
        int n = axes_of(s->p, split, d, axes, &lanes);
        sizes[d] = ir_dims(b->module, t)[d] / lanes;
        starts[d] = ir_scalar_int(b, JOT_I32, n ? sizes[d] : 0);
        if (n)
            starts[d] = ir_mul(b, ir_lane_number(b, n, axes), starts[d]);
    }
    return ir_dynamic_slice(b, x, starts, sizes);
}

// The whole of dimension d, with the blocks of all lanes one after the other.
static ir_id gather_dimension(struct ir_builder *b, ir_id x, int d, int n, const int64_t *axes)
{
    ir_id y = ir_collective(b, IR_all_gather, x, n, axes);
    if (y == IR_NONE)
        return y;
    struct ir_type t = ir_type_in(b, y);
    const int64_t *rows = ir_dims(b->module, t);
    int64_t order[IR_MAX_RANK], dims[IR_MAX_RANK];
    for (int i = 0; i < t.rank; i++)
        order[i] = i < d ? i + 1 : i == d ? 0 : i;
    for (int i = 0; i < t.rank - 1; i++)
        dims[i] = rows[i + 1] * (i == d ? rows[0] : 1);
    return ir_reshape(b, d ? ir_transpose(b, y, order) : y, t.rank - 1, dims);
}

static ir_id gather(struct sweep *s, ir_id x, struct ir_split split)
{
    int64_t axes[IR_MAX_AXES], lanes;
    int rank = ir_type_in(&s->b, x).rank;
    for (int d = 0; d < rank && x != IR_NONE; d++) {
        int n = axes_of(s->p, split, d, axes, &lanes);
        x = n ? gather_dimension(&s->b, x, d, n, axes) : x;
    }
    return x;
}

static void add_pieces(struct sweep *s, ir_id v, struct ir_split split, ir_id x)
{
    struct pieces *made = arena_new(s->p->m->arena, struct pieces);
    *made = (struct pieces){s->pieces[v], split, x};
    s->pieces[v] = made;
}

static ir_id whole_of(struct sweep *s, ir_id v)
{
    if (s->whole[v] == IR_NONE && s->pieces[v])
        s->whole[v] = gather(s, s->pieces[v]->v, s->pieces[v]->split);
    return s->whole[v];
}

static ir_id pieces_of(struct sweep *s, ir_id v, struct ir_split split)
{
    if (!ir_split_set(&s->p->mesh, split))
        return whole_of(s, v);
    for (const struct pieces *at = s->pieces[v]; at; at = at->next)
        if (splits_equal(at->split, split))
            return at->v;
    ir_id x = whole_of(s, v);
    if (x == IR_NONE)
        return x;
    x = slice(s, x, split);
    add_pieces(s, v, split, x);
    return x;
}

// ---- Functions

static uint32_t partition_function(struct partition *p, uint32_t f);

static bool grids_equal(const struct ir_shard *a, const struct ir_shard *b)
{
    return a->n_axes == b->n_axes &&
           !memcmp(a->grid, b->grid, sizeof *a->grid * (size_t)a->n_axes);
}

static void add_shard_map(struct sweep *s, const struct ir_node *n)
{
    struct ir_shard shard = ir_shard_of(s->p->m, n);
    ir_id *in = pass_no_values(s->p->m, n->n_in), *out = pass_no_values(s->p->m, n->n_out);
    if (!grids_equal(&shard, &s->p->mesh)) {
        ir_fail(&s->b, JOT_ERR_ARGUMENT,
                "two meshes in one function: a program runs on the devices of one");
        return;
    }
    for (uint32_t i = 0; i < n->n_in; i++)
        in[i] = pieces_of(s, ir_operand(s->g, n, i), shard.split[i]);
    if (s->b.status != JOT_OK)
        return;
    // A mesh inside of the mesh is one of lanes.
    uint32_t body;
    if (pass_unshard(s->p->m, shard.body, &body) != JOT_OK) {
        ir_fail(&s->b, status_last(), "%s", jot_error_message());
        return;
    }
    ir_inline(&s->b, ir_function(s->p->m, body), in, out);
    for (uint32_t i = 0; i < n->n_out; i++) {
        struct ir_split split = shard.split[n->n_in + i];
        if (ir_split_set(&shard, split))
            add_pieces(s, n->out + i, split, out[i]);
        else
            s->whole[n->out + i] = out[i];
    }
}

static void copy_node(struct sweep *s, const struct ir_node *n)
{
    s->b.where = n->where;
    if (n->op == IR_shard_map) {
        add_shard_map(s, n);
        return;
    }
    for (uint32_t i = 0; i < n->n_in; i++)
        whole_of(s, ir_operand(s->g, n, i));
    if (s->b.status != JOT_OK)
        return;
    if (!ir_has_bodies((enum ir_op)n->op)) {
        pass_copy_node(&s->b, s->g, n, s->whole);
        return;
    }
    const int64_t *bodies;
    int count = ir_bodies_of(n, &bodies);
    bool is_call = ir_op_class((enum ir_op)n->op) == IR_CLASS_CALL;
    uint32_t *made = arena_array(s->p->m->arena, uint32_t, count + 1);
    count = is_call ? 1 : count; // rules of derivatives have been applied
    for (int i = 0; i < count; i++) {
        made[i] = partition_function(s->p, (uint32_t)bodies[i]);
        if (made[i] == IR_NONE) {
            ir_fail(&s->b, status_last(), "%s", jot_error_message());
            return;
        }
    }
    ir_id *in = body_operands(s->p->m, s->g, n, s->whole);
    ir_id y = is_call ? ir_call(&s->b, IR_call, 1, made, (int)n->n_in, in)
                      : ir_build(&s->b, (enum ir_op)n->op, (int)n->n_in, in,
                                 ir_with_functions(s->p->m, n->attrs, made));
    body_set_results(n, y, s->whole);
}

static struct sweep sweep_of(struct partition *p, uint32_t f)
{
    const struct ir_graph *g = ir_function(p->m, f);
    return (struct sweep){.p = p,
                          .g = g,
                          .b = ir_builder_make(p->m, g->name, IR_BUILD_PLAIN),
                          .whole = pass_no_values(p->m, g->values.count),
                          .pieces =
                              arena_array(p->m->arena, struct pieces *, g->values.count + 1)};
}

static void copy_nodes(struct sweep *s)
{
    for (uint32_t at = s->g->n_params; at < s->g->nodes.count && s->b.status == JOT_OK; at++)
        copy_node(s, &s->g->nodes.at[at]);
}

static bool has_shard_map(const struct ir_graph *g) { return pass_find_shard_map(g) != NULL; }

// Whether it is a call of what has one: its body takes its place, for values in pieces go through.
static bool is_opened(const struct ir_graph *g, const struct ir_node *n)
{
    return ir_op_class((enum ir_op)n->op) == IR_CLASS_CALL && has_shard_map(ir_body(g, n, 0));
}

static void open_call(struct ir_builder *b, const struct ir_graph *g, const struct ir_node *n,
                      ir_id *map)
{
    if (!is_opened(g, n)) {
        pass_copy_node(b, g, n, map);
        return;
    }
    b->where = n->where;
    ir_inline(b, ir_body(g, n, 0), body_operands(b->module, g, n, map), map + n->out);
}

static jot_status open_calls(struct ir_module *m, uint32_t *f)
{
    for (;;) {
        const struct ir_graph *g = ir_function(m, *f);
        bool any = false;
        ir_for_each_node (g, n)
            any = any || is_opened(g, n);
        if (!any)
            return JOT_OK;
        struct ir_builder b = ir_builder_make(m, g->name, IR_BUILD_PLAIN);
        body_copy_all(&b, g, open_call);
        JOT_TRY(pass_finish(&b, f));
    }
}

static uint32_t partition_function(struct partition *p, uint32_t f)
{
    uint32_t opened = f;
    if (!has_shard_map(ir_function(p->m, f)))
        return f;
    if (p->result[f] != IR_NONE)
        return p->result[f];
    if (open_calls(p->m, &opened) != JOT_OK)
        return IR_NONE;
    struct sweep s = sweep_of(p, opened);
    for (uint32_t i = 0; i < s.g->n_params; i++)
        s.whole[i] = ir_param(&s.b, ir_type_of(s.g, i));
    copy_nodes(&s);
    for (uint32_t i = 0; i < s.g->outputs.count; i++)
        ir_output(&s.b, whole_of(&s, s.g->outputs.at[i]));
    uint32_t made;
    return pass_finish(&s.b, &made) == JOT_OK ? p->result[f] = made : IR_NONE;
}

// ---- Programs

const struct ir_node *pass_find_shard_map(const struct ir_graph *g)
{
    ir_for_each_node (g, n) {
        const int64_t *bodies;
        if (n->op == IR_shard_map)
            return n;
        int count = ir_has_bodies((enum ir_op)n->op) ? ir_bodies_of(n, &bodies) : 0;
        for (int i = 0; i < count; i++) {
            const struct ir_node *found = pass_find_shard_map(ir_body(g, n, i));
            if (found)
                return found;
        }
    }
    return NULL;
}

// How all that read parameter v take it in pieces; false when some want the whole, or other pieces.
static bool find_split(struct sweep *s, ir_id v, struct ir_split *out)
{
    bool has_any = false;
    for (uint32_t i = 0; i < s->g->outputs.count; i++)
        if (s->g->outputs.at[i] == v)
            return false;
    ir_for_each_node (s->g, n) {
        struct ir_shard shard = {0};
        for (uint32_t i = 0; i < n->n_in; i++) {
            if (ir_operand(s->g, n, i) != v)
                continue;
            if (n->op != IR_shard_map)
                return false;
            if (!shard.split)
                shard = ir_shard_of(s->p->m, n);
            if (has_any && !splits_equal(shard.split[i], *out))
                return false;
            *out = shard.split[i];
            has_any = true;
        }
    }
    return has_any && ir_split_set(&s->p->mesh, *out);
}

static void add_param(struct sweep *s, ir_id v, struct ir_split *split)
{
    struct ir_type t = ir_type_of(s->g, v);
    if (find_split(s, v, split)) {
        ir_piece_type(s->p->m, &s->p->mesh, *split, t, &t, &(int){0});
        add_pieces(s, v, *split, ir_param(&s->b, t));
        return;
    }
    *split = ir_split_none(s->p->m, t.rank);
    s->whole[v] = ir_param(&s->b, t);
}

// What a shard_map gives stays in pieces.
static void add_output(struct sweep *s, ir_id v, struct ir_split *split)
{
    bool is_result = v >= s->g->n_params && ir_node_of(s->g, v)->op == IR_shard_map;
    *split = is_result && s->pieces[v] ? s->pieces[v]->split
                                       : ir_split_none(s->p->m, ir_rank_of(s->g, v));
    ir_output(&s->b, pieces_of(s, v, *split));
}

jot_status pass_partition(struct ir_module *m, uint32_t f, struct pass_partition *out)
{
    struct partition p = {.m = m, .result = pass_no_values(m, m->functions.count)};
    JOT_TRY(open_calls(m, &f));
    const struct ir_graph *g = ir_function(m, f);
    out->shard = p.mesh = ir_shard_of(m, pass_find_shard_map(g));
    struct sweep s = sweep_of(&p, f);
    out->in = arena_array(m->arena, struct ir_split, g->n_params + 1);
    out->out = arena_array(m->arena, struct ir_split, g->outputs.count + 1);
    for (uint32_t i = 0; i < g->n_params; i++)
        add_param(&s, i, &out->in[i]);
    copy_nodes(&s);
    for (uint32_t i = 0; i < g->outputs.count; i++)
        add_output(&s, g->outputs.at[i], &out->out[i]);
    uint32_t made;
    JOT_TRY(pass_finish(&s.b, &made));
    return pass_exchange(m, made, p.mesh.n_axes, p.mesh.grid, &out->f);
}
