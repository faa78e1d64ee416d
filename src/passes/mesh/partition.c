// SPDX-License-Identifier: Apache-2.0
// What is laid over a mesh of devices, as the program that each of them runs.
//
//     f(x: f32[8]) { y = shard_map @body x {over=[i:4], ...}; z = neg y; return z }
// becomes
//     f(x: f32[2]<i:4>) { y = ...body...; w = all_gather y; z = neg (reshape w); return z }
//
// Outside of shard_maps all devices do the same.  A value that a shard_map splits is sliced where it comes
// in, and what it gives is gathered where the whole of it is wanted; what one gives and another one takes in
// the same pieces stays in them, also through ops of which each device can do its part alone.  So do
// parameters that only shard_maps and such ops read, in the same pieces all, and results that they give.
//
// Needs all differentiation and mapping done, and simplifies; pass_deep_halos and pass_exchange follow.
#include "passes/mesh/partition.h"

#include "base/status.h"
#include "ir/control.h"
#include "ir/cost.h"
#include "passes/body.h"
#include "passes/mesh/partition_flow.h"
#include "passes/passes.h"

// A value in pieces.
struct pieces {
    struct pieces *next;
    struct ir_split split;
    ir_id v;
};

// A function on its way.
struct sweep {
    struct partition *p;
    struct ir_builder b;
    const struct ir_graph *g;
    struct flow flow;
    ir_id *whole; // by value of g, IR_NONE where there are pieces only
    struct pieces **pieces;
};

// ---- Pieces

static void add_pieces(struct sweep *s, ir_id v, struct ir_split split, ir_id x)
{
    struct pieces *made = arena_new(s->p->m->arena, struct pieces);
    *made = (struct pieces){s->pieces[v], split, x};
    s->pieces[v] = made;
}

static ir_id whole_of(struct sweep *s, ir_id v)
{
    const struct pieces *have = s->pieces[v];
    if (s->whole[v] == IR_NONE && have)
        s->whole[v] = partition_move(&s->b, &s->p->mesh, have->v, have->split,
                                     ir_split_none(s->p->m, ir_rank_of(s->g, v)));
    return s->whole[v];
}

static ir_id pieces_of(struct sweep *s, ir_id v, struct ir_split split)
{
    struct pieces whole = {NULL, ir_split_none(s->p->m, ir_rank_of(s->g, v)), s->whole[v]};
    if (!ir_split_set(&s->p->mesh, split))
        return whole_of(s, v);
    for (const struct pieces *at = s->pieces[v]; at; at = at->next)
        if (ir_splits_equal(at->split, split))
            return at->v;
    const struct pieces *have = whole.v == IR_NONE && s->pieces[v] ? s->pieces[v] : &whole;
    ir_id x = partition_move(&s->b, &s->p->mesh, have->v, have->split, split);
    if (x != IR_NONE)
        add_pieces(s, v, split, x);
    return x;
}

// ---- Functions

static jot_status start_sweep(struct partition *p, uint32_t f, const struct ir_split *given,
                              struct sweep *out)
{
    const struct ir_graph *g = ir_function(p->m, f);
    *out = (struct sweep){.p = p,
                          .g = g,
                          .b = ir_builder_make(p->m, g->name, IR_BUILD_PLAIN),
                          .whole = pass_no_values(p->m, g->values.count),
                          .pieces =
                              arena_array(p->m->arena, struct pieces *, g->values.count + 1)};
    return partition_find_flow(p, g, given, &out->flow);
}

static void set_result(struct sweep *s, ir_id v, struct ir_split split, ir_id x)
{
    if (ir_split_set(&s->p->mesh, split))
        add_pieces(s, v, split, x);
    else
        s->whole[v] = x;
}

static void add_param(struct sweep *s, ir_id v, struct ir_split split)
{
    struct ir_type t = ir_type_of(s->g, v);
    ir_piece_type(s->p->m, &s->p->mesh, split, t, &t, &(int){0});
    set_result(s, v, split, ir_param(&s->b, t));
}

static void fail_inside(struct sweep *s)
{
    ir_fail(&s->b, status_last(), "%s", jot_error_message());
}

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
        fail_inside(s);
        return;
    }
    ir_inline(&s->b, ir_function(s->p->m, body), in, out);
    for (uint32_t i = 0; i < n->n_out; i++)
        set_result(s, n->out + i, shard.split[n->n_in + i], out[i]);
}

static void copy_nodes(struct sweep *s);

// Body number k of a loop.
static uint32_t partition_body(struct partition *p, const struct loop *l, int k, bool is_test)
{
    struct sweep s;
    if (start_sweep(p, l->body[k], l->param, &s) != JOT_OK)
        return IR_NONE;
    for (uint32_t i = 0; i < s.g->n_params; i++)
        add_param(&s, i, l->param[i]);
    copy_nodes(&s);
    for (uint32_t i = 0; i < s.g->outputs.count; i++) {
        ir_id v = s.g->outputs.at[i];
        ir_output(&s.b, is_test ? whole_of(&s, v) : pieces_of(&s, v, l->given[i]));
    }
    uint32_t made;
    return pass_finish(&s.b, &made) == JOT_OK ? made : IR_NONE;
}

static void add_loop(struct sweep *s, const struct ir_node *n, const struct loop *l)
{
    uint32_t *made = arena_array(s->p->m->arena, uint32_t, l->n_bodies + 1);
    for (int k = 0; k < l->n_bodies; k++) {
        made[k] = partition_body(s->p, l, k, n->op == IR_while && k == 0);
        if (made[k] == IR_NONE) {
            fail_inside(s);
            return;
        }
    }
    ir_id *in = pass_no_values(s->p->m, n->n_in);
    for (uint32_t i = 0; i < n->n_in; i++)
        in[i] = pieces_of(s, ir_operand(s->g, n, i), l->in[i]);
    if (s->b.status != JOT_OK)
        return;
    ir_id y = ir_build(&s->b, (enum ir_op)n->op, (int)n->n_in, in,
                       ir_with_functions(s->p->m, n->attrs, made));
    for (uint32_t i = 0; i < n->n_out && y != IR_NONE; i++)
        set_result(s, n->out + i, l->out[i], y + i);
}

static void add_part(struct sweep *s, const struct ir_node *n, const struct part *part)
{
    ir_id *in = pass_no_values(s->p->m, n->n_in);
    for (uint32_t i = 0; i < n->n_in; i++)
        in[i] = pieces_of(s, ir_operand(s->g, n, i), part->in[i]);
    if (s->b.status != JOT_OK)
        return;
    ir_id y = partition_build(&s->b, &s->p->mesh, s->g, n, part, in);
    for (uint32_t i = 0; i < n->n_out && y != IR_NONE; i++)
        set_result(s, n->out + i, part->out[i], y + i);
}

static void copy_node(struct sweep *s, const struct ir_node *n)
{
    uint32_t at = (uint32_t)(n - s->g->nodes.at);
    s->b.where = n->where;
    if (n->op == IR_shard_map) {
        add_shard_map(s, n);
    } else if (s->flow.loop[at]) {
        add_loop(s, n, s->flow.loop[at]);
    } else if (s->flow.part[at]) {
        add_part(s, n, s->flow.part[at]);
    } else {
        for (uint32_t i = 0; i < n->n_in; i++)
            whole_of(s, ir_operand(s->g, n, i));
        if (s->b.status == JOT_OK)
            pass_copy_node(&s->b, s->g, n, s->whole);
    }
}

static void copy_nodes(struct sweep *s)
{
    for (uint32_t at = s->g->n_params; at < s->g->nodes.count && s->b.status == JOT_OK; at++)
        copy_node(s, &s->g->nodes.at[at]);
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

jot_status pass_partition(struct ir_module *m, uint32_t f, struct pass_partition *out)
{
    // Simpler, it may be a function on no mesh; its devices are those of the mesh all the same.
    struct partition p = {.m = m,
                          .mesh = ir_shard_of(m, pass_find_shard_map(ir_function(m, f)))};
    f = pass_inline(m, pass_simplify(m, f), COST_INLINE);
    JOT_TRY(partition_open_calls(m, &f));
    const struct ir_graph *g = ir_function(m, f);
    out->shard = p.mesh;
    struct sweep s;
    JOT_TRY(start_sweep(&p, f, NULL, &s));
    const struct flow *t = &s.flow;
    out->in = arena_array(m->arena, struct ir_split, g->n_params + 1);
    out->out = arena_array(m->arena, struct ir_split, g->outputs.count + 1);
    for (uint32_t i = 0; i < g->n_params; i++) {
        out->in[i] = t->wish[i] == PIECES ? t->split[i] : ir_split_none(m, ir_rank_of(g, i));
        add_param(&s, i, out->in[i]);
    }
    copy_nodes(&s);
    for (uint32_t i = 0; i < g->outputs.count; i++) {
        out->out[i] = t->given[g->outputs.at[i]];
        ir_output(&s.b, pieces_of(&s, g->outputs.at[i], out->out[i]));
    }
    uint32_t made;
    JOT_TRY(pass_finish(&s.b, &made));
    made = pass_deep_halos(m, made);
    return pass_exchange(m, made, p.mesh.n_axes, p.mesh.grid, &out->f);
}
