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

// A loop or branch with a shard_map inside.  Where nothing splits a value it is whole.
struct loop {
    int n_bodies;
    uint32_t *body;                 // opened
    struct ir_split *param, *given; // by parameter and result of the bodies that have them
    struct ir_split *in, *out;      // by operand and result
};

struct known_loop {
    const struct ir_node *n;
    struct loop loop;
};

struct partition {
    struct ir_module *m;
    struct ir_shard mesh; // the grid of all shard_maps
    VEC(struct known_loop) loops;
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

// ---- Calls

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

// ---- How values are taken

// By value of a graph: what its readers want of it.
enum wish { NOTHING, PIECES, WHOLE };
struct taken {
    enum wish *wish;
    struct ir_split *split; // of PIECES
};

static jot_status find_loop(struct partition *p, const struct ir_node *n, struct loop *out);

static bool is_loop(const struct ir_graph *g, const struct ir_node *n)
{
    bool has = false;
    int count = 0;
    const int64_t *bodies;
    if (ir_op_class((enum ir_op)n->op) == IR_CLASS_CONTROL && n->op != IR_shard_map)
        count = ir_bodies_of(n, &bodies);
    for (int i = 0; i < count; i++)
        has = has || has_shard_map(ir_body(g, n, i));
    return has;
}

static void want(const struct partition *p, struct taken *t, ir_id v, struct ir_split split)
{
    if (!ir_split_set(&p->mesh, split) ||
        (t->wish[v] == PIECES && !splits_equal(t->split[v], split)))
        t->wish[v] = WHOLE;
    if (t->wish[v] != NOTHING)
        return;
    t->wish[v] = PIECES;
    t->split[v] = split;
}

static jot_status find_taken(struct partition *p, const struct ir_graph *g, struct taken *t)
{
    struct arena *arena = p->m->arena;
    t->wish = arena_array(arena, enum wish, g->values.count + 1);
    t->split = arena_array(arena, struct ir_split, g->values.count + 1);
    for (uint32_t i = 0; i < g->outputs.count; i++)
        t->wish[g->outputs.at[i]] = WHOLE;
    ir_for_each_node (g, n) {
        struct ir_split *in = NULL;
        struct loop l;
        if (n->op == IR_shard_map) {
            in = ir_shard_of(p->m, n).split;
        } else if (is_loop(g, n)) {
            JOT_TRY(find_loop(p, n, &l));
            in = l.in;
        }
        for (uint32_t i = 0; i < n->n_in; i++)
            want(p, t, ir_operand(g, n, i), in ? in[i] : (struct ir_split){0});
    }
    return JOT_OK;
}

// How a shard_map, or a loop with one, gives v.
static jot_status find_given(struct partition *p, const struct ir_graph *g, ir_id v,
                             struct ir_split *out)
{
    const struct ir_node *n = ir_node_of(g, v);
    struct loop l;
    *out = ir_split_none(p->m, ir_rank_of(g, v));
    if (n->op == IR_shard_map) {
        *out = ir_shard_of(p->m, n).split[n->n_in + v - n->out];
    } else if (is_loop(g, n)) {
        JOT_TRY(find_loop(p, n, &l));
        *out = l.out[v - n->out];
    }
    return JOT_OK;
}

// What all bodies that read a parameter, and all branches that give a result, agree about.
static jot_status agree(struct partition *p, struct loop *l, bool is_while)
{
    for (int k = 0; k < l->n_bodies; k++) {
        const struct ir_graph *f = ir_function(p->m, l->body[k]);
        struct taken t;
        JOT_TRY(find_taken(p, f, &t));
        for (uint32_t i = 0; i < f->n_params; i++) {
            struct ir_split none = ir_split_none(p->m, ir_rank_of(f, i));
            bool is_first = !l->param[i].at;
            if (t.wish[i] == WHOLE ||
                (t.wish[i] == PIECES && !is_first && !splits_equal(l->param[i], t.split[i])))
                l->param[i] = none;
            else if (t.wish[i] == PIECES && is_first)
                l->param[i] = t.split[i];
        }
        for (uint32_t i = 0; i < f->outputs.count && !(is_while && k == 0); i++) {
            struct ir_split split;
            JOT_TRY(find_given(p, f, f->outputs.at[i], &split));
            if (!l->given[i].at)
                l->given[i] = split;
            else if (!splits_equal(l->given[i], split))
                l->given[i] = ir_split_none(p->m, ir_rank_of(f, f->outputs.at[i]));
        }
    }
    return JOT_OK;
}

static jot_status find_new_loop(struct partition *p, const struct ir_node *n, struct loop *l)
{
    struct arena *arena = p->m->arena;
    const int64_t *bodies;
    bool is_scan = n->op == IR_scan, is_while = n->op == IR_while;
    *l = (struct loop){.n_bodies = ir_bodies_of(n, &bodies)};
    l->body = arena_array(arena, uint32_t, l->n_bodies + 1);
    l->param = arena_array(arena, struct ir_split, n->n_in + 1);
    l->given = arena_array(arena, struct ir_split, n->n_out + 1);
    l->in = arena_array(arena, struct ir_split, n->n_in + 1);
    l->out = arena_array(arena, struct ir_split, n->n_out + 1);
    for (int k = 0; k < l->n_bodies; k++) {
        l->body[k] = (uint32_t)bodies[k];
        JOT_TRY(open_calls(p->m, &l->body[k]));
    }
    JOT_TRY(agree(p, l, is_while));
    const struct ir_graph *f = ir_function(p->m, l->body[l->n_bodies - 1]);
    uint32_t first = n->op == IR_cond, n_carry = is_while ? n->n_out : 0, n_consts = 0;
    if (is_scan) {
        n_consts = (uint32_t)ir_scan_of(n).n_consts;
        n_carry = (uint32_t)ir_scan_of(n).n_carry;
    } else if (is_while) {
        n_consts = (uint32_t)ir_while_of(n).n_consts;
    }
    for (uint32_t i = 0; i < f->n_params; i++)
        if (!l->param[i].at)
            l->param[i] = ir_split_none(p->m, ir_rank_of(f, i));
    // A carry comes in as it goes out.
    for (uint32_t i = 0; i < n_carry; i++)
        if (!splits_equal(l->param[n_consts + i], l->given[i]))
            l->param[n_consts + i] = l->given[i] =
                ir_split_none(p->m, ir_rank_of(f, n_consts + i));
    if (first)
        l->in[0] = ir_split_none(p->m, 0);
    for (uint32_t i = 0; i < f->n_params; i++) {
        bool is_row = is_scan && i >= n_consts + n_carry;
        l->in[i + first] =
            is_row ? ir_split_stacked(p->m, &p->mesh, l->param[i], 0) : l->param[i];
    }
    for (uint32_t i = 0; i < n->n_out; i++)
        l->out[i] = is_scan && i >= n_carry ? ir_split_stacked(p->m, &p->mesh, l->given[i], 0)
                                            : l->given[i];
    return JOT_OK;
}

static jot_status find_loop(struct partition *p, const struct ir_node *n, struct loop *out)
{
    for (uint32_t i = 0; i < p->loops.count; i++)
        if (p->loops.at[i].n == n) {
            *out = p->loops.at[i].loop;
            return JOT_OK;
        }
    JOT_TRY(find_new_loop(p, n, out));
    vec_push(p->m->arena, &p->loops, (struct known_loop){n, *out});
    return JOT_OK;
}

// ---- Functions

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
    struct sweep s = sweep_of(p, l->body[k]);
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

static void add_loop(struct sweep *s, const struct ir_node *n)
{
    struct loop l;
    if (find_loop(s->p, n, &l) != JOT_OK) {
        fail_inside(s);
        return;
    }
    uint32_t *made = arena_array(s->p->m->arena, uint32_t, l.n_bodies + 1);
    for (int k = 0; k < l.n_bodies; k++) {
        made[k] = partition_body(s->p, &l, k, n->op == IR_while && k == 0);
        if (made[k] == IR_NONE) {
            fail_inside(s);
            return;
        }
    }
    ir_id *in = pass_no_values(s->p->m, n->n_in);
    for (uint32_t i = 0; i < n->n_in; i++)
        in[i] = pieces_of(s, ir_operand(s->g, n, i), l.in[i]);
    if (s->b.status != JOT_OK)
        return;
    ir_id y = ir_build(&s->b, (enum ir_op)n->op, (int)n->n_in, in,
                       ir_with_functions(s->p->m, n->attrs, made));
    for (uint32_t i = 0; i < n->n_out && y != IR_NONE; i++)
        set_result(s, n->out + i, l.out[i], y + i);
}

static void copy_node(struct sweep *s, const struct ir_node *n)
{
    s->b.where = n->where;
    if (n->op == IR_shard_map) {
        add_shard_map(s, n);
    } else if (is_loop(s->g, n)) {
        add_loop(s, n);
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
    struct partition p = {.m = m};
    JOT_TRY(open_calls(m, &f));
    const struct ir_graph *g = ir_function(m, f);
    out->shard = p.mesh = ir_shard_of(m, pass_find_shard_map(g));
    struct sweep s = sweep_of(&p, f);
    struct taken t;
    out->in = arena_array(m->arena, struct ir_split, g->n_params + 1);
    out->out = arena_array(m->arena, struct ir_split, g->outputs.count + 1);
    JOT_TRY(find_taken(&p, g, &t));
    for (uint32_t i = 0; i < g->n_params; i++) {
        out->in[i] = t.wish[i] == PIECES ? t.split[i] : ir_split_none(m, ir_rank_of(g, i));
        add_param(&s, i, out->in[i]);
    }
    copy_nodes(&s);
    for (uint32_t i = 0; i < g->outputs.count; i++) {
        JOT_TRY(find_given(&p, g, g->outputs.at[i], &out->out[i]));
        ir_output(&s.b, pieces_of(&s, g->outputs.at[i], out->out[i]));
    }
    uint32_t made;
    JOT_TRY(pass_finish(&s.b, &made));
    return pass_exchange(m, made, p.mesh.n_axes, p.mesh.grid, &out->f);
}
