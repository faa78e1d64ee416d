// SPDX-License-Identifier: Apache-2.0
// Derivatives of values of a graph that is still being built.
//
//     x = variable a;  y = sin x;  dy = tangent of y in x for t
// adds to the graph
//     c = cos x;  dy = mul_z t c
//
// What lies between x and y is taken out as a closed graph with distinct parameters: x, and every
// other value it reads.  (In the open graph a cotangent could be the same value as an operand.)
// Its tangents are separated, and the linear part goes back into the graph, reading the values
// that are there already.  Loops that are computed a second time have no effects then.
#include "base/status.h"
#include "ir/control.h"
#include "passes/body.h"
#include "passes/rules/rules.h"
#include "passes/transform.h"

#include <stdlib.h>

// What is known of a value of the open graph that lies between x and y or is read there.  What is known
// of a node stands at its first result.
struct seen {
    ir_id made; // what stands for the value in the closed graph, IR_NONE before
    bool is_met, depends, is_on_path; // of the node
};

// Its tables are of what is met on the way back from y: a graph with many derivatives is much larger
// than what each of them is of.
struct between {
    struct ir_builder *b;        // of the open graph
    const struct ir_graph *from; // the open graph
    struct ir_graph *g;          // the closed graph: x, captured values -> y
    uint32_t n;                  // of x
    VEC(ir_id) original;         // value of the open graph, by value of g
    VEC(struct seen) seen;
    struct hash_table numbers; // in seen, by value
    VEC(uint32_t) nodes;       // that y is computed by, no older than x, in order
};

static struct seen *see(struct between *s, ir_id v)
{
    struct hash_probe p = hash_probe(&s->numbers, hash_mix(v));
    if (hash_next(&s->numbers, &p))
        return &s->seen.at[p.id];
    hash_insert(s->b->module->arena, &s->numbers, hash_mix(v), s->seen.count);
    vec_push(s->b->module->arena, &s->seen, (struct seen){.made = IR_NONE});
    return &vec_last(&s->seen);
}

static struct seen *see_node(struct between *s, ir_id v)
{
    return see(s, ir_node_of(s->from, v)->out);
}

static int compare_nodes(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

// Goes back from y; what is older than x does not depend on it.
static void find_nodes(struct between *s, ir_id y, int n, const ir_id *x)
{
    const struct ir_graph *g = s->from;
    struct arena *arena = s->b->module->arena;
    uint32_t oldest = UINT32_MAX;
    VEC(ir_id) left = {0};
    for (int i = 0; i < n; i++) {
        uint32_t node = g->values.at[x[i]].node;
        *see(s, x[i]) = (struct seen){IR_NONE, true, true, false};
        oldest = node < oldest ? node : oldest;
    }
    vec_push(arena, &left, y);
    while (left.count) {
        uint32_t node = g->values.at[left.at[--left.count]].node;
        const struct ir_node *at = &g->nodes.at[node];
        if (node < oldest || see(s, at->out)->is_met)
            continue;
        see(s, at->out)->is_met = true;
        vec_push(arena, &s->nodes, node);
        for (uint32_t i = 0; i < at->n_in; i++)
            vec_push(arena, &left, ir_operand(g, at, i));
    }
    if (s->nodes.count)
        qsort(s->nodes.at, s->nodes.count, sizeof *s->nodes.at, compare_nodes);
}

// Finds the nodes that depend on one of x and on which y depends; whether y depends on x.
static bool find_path(struct between *s, ir_id y, int n, const ir_id *x)
{
    const struct ir_graph *g = s->from;
    find_nodes(s, y, n, x);
    for (uint32_t k = 0; k < s->nodes.count; k++) {
        const struct ir_node *node = &g->nodes.at[s->nodes.at[k]];
        bool any = false;
        for (uint32_t i = 0; i < node->n_in; i++)
            any = any || see_node(s, ir_operand(g, node, i))->depends;
        see(s, node->out)->depends = any;
    }
    bool depends = see_node(s, y)->depends;
    see_node(s, y)->is_on_path = depends;
    for (uint32_t k = s->nodes.count; k-- > 0;) {
        const struct ir_node *node = &g->nodes.at[s->nodes.at[k]];
        for (uint32_t i = 0; see(s, node->out)->is_on_path && i < node->n_in; i++) {
            struct seen *operand = see_node(s, ir_operand(g, node, i));
            operand->is_on_path = operand->depends;
        }
    }
    return depends;
}

bool pass_depends(struct ir_builder *b, ir_id y, int n, const ir_id *x)
{
    struct between s = {.b = b, .from = b->graph};
    return find_path(&s, y, n, x);
}

static void note(struct between *s, ir_id v, ir_id made)
{
    see(s, v)->made = made;
    if (made == IR_NONE)
        return;
    while (s->original.count <= made)
        vec_push(s->b->module->arena, &s->original, IR_NONE);
    s->original.at[made] = v;
}

// The node on the path, over what was made of its operands.
static void copy_node(struct between *s, struct ir_builder *b, const struct ir_node *node)
{
    ir_id *in = pass_no_values(b->module, node->n_in);
    for (uint32_t i = 0; i < node->n_in; i++)
        in[i] = see(s, ir_operand(s->from, node, i))->made;
    ir_id made = pass_rebuild_stripped(b, s->from, node, in);
    for (uint32_t i = 0; i < node->n_out; i++)
        note(s, node->out + i, made == IR_NONE ? IR_NONE : made + i);
}

// Copies the path, with parameters for x and for what it reads from outside; constants come along.
// False with b in order: there is no path.
static bool extract(struct between *s, ir_id y, int n, const ir_id *x)
{
    const struct ir_graph *from = s->from;
    if (!find_path(s, y, n, x))
        return false;
    struct ir_builder b = ir_builder_make(s->b->module, from->name, IR_BUILD_PLAIN);
    s->n = (uint32_t)n;
    for (int i = 0; i < n; i++)
        note(s, x[i], ir_param(&b, ir_type_of(from, x[i])));
    for (int constants = 0; constants < 2; constants++) {
        for (uint32_t k = 0; k < s->nodes.count; k++) {
            const struct ir_node *node = &from->nodes.at[s->nodes.at[k]];
            for (uint32_t i = 0; see(s, node->out)->is_on_path && i < node->n_in; i++) {
                ir_id v = ir_operand(from, node, i);
                const struct ir_node *source = ir_node_of(from, v);
                if (see_node(s, v)->depends || see(s, v)->made != IR_NONE ||
                    (source->op == IR_const) != (constants == 1))
                    continue;
                note(s, v,
                     constants ? ir_rebuild(&b, from, source, NULL)
                               : ir_param(&b, ir_type_of(from, v)));
            }
        }
    }
    for (uint32_t k = 0; k < s->nodes.count; k++) {
        const struct ir_node *node = &from->nodes.at[s->nodes.at[k]];
        if (see(s, node->out)->is_on_path)
            copy_node(s, &b, node);
    }
    ir_output(&b, see(s, y)->made);
    s->g = ir_finish(&b);
    if (!s->g)
        ir_fail(s->b, b.status, "%s", b.message);
    return s->g != NULL;
}

// The linear function (known..., dx...) -> dy, and the values of the open graph that it reads.
struct linear_part {
    uint32_t f, n_known;
    ir_id *known; // with room for the tangents
};

// Marks what a linear part needs: linear values on the way to the result, and others until one
// that the open graph has.
static bool *find_needed(const struct unzipped *u, const ir_id *original)
{
    const struct ir_graph *g = u->g;
    bool *needed = arena_array(g->module->arena, bool, g->values.count + 1);
    needed[vec_last(&g->outputs)] = true;
    for (uint32_t at = g->nodes.count; at-- > 0;) {
        const struct ir_node *n = &g->nodes.at[at];
        bool any = false;
        for (uint32_t i = 0; i < n->n_out; i++)
            any = any || (needed[n->out + i] && original[n->out + i] == IR_NONE);
        for (uint32_t i = 0; any && i < n->n_in; i++)
            needed[ir_operand(g, n, i)] = true;
    }
    return needed;
}

static bool build_linear(struct between *s, const struct unzipped *u, const ir_id *original,
                         struct linear_part *out)
{
    const struct ir_graph *g = u->g;
    struct ir_module *m = g->module;
    struct ir_builder b = ir_builder_make(m, g->name, IR_BUILD_PLAIN);
    bool *needed = find_needed(u, original);
    ir_id *map = pass_no_values(m, g->values.count);
    out->known = pass_no_values(m, g->values.count + s->n + 1);
    out->n_known = 0;
    for (ir_id v = 0; v < g->values.count; v++) {
        if (!needed[v] || original[v] == IR_NONE || ir_node_of(g, v)->op == IR_const)
            continue;
        map[v] = ir_param(&b, ir_type_of(g, v));
        out->known[out->n_known++] = original[v];
    }
    for (uint32_t i = 0; i < g->n_params; i++)
        if (u->linear[i])
            map[i] = ir_param(&b, ir_type_of(g, i));
    for (uint32_t at = g->n_params; at < g->nodes.count && b.status == JOT_OK; at++) {
        const struct ir_node *n = &g->nodes.at[at];
        bool wanted = false;
        for (uint32_t i = 0; i < n->n_out; i++)
            wanted = wanted || (needed[n->out + i] && map[n->out + i] == IR_NONE);
        if (!wanted)
            continue;
        ir_id *keep = arena_copy(m->arena, map + n->out, sizeof *map * n->n_out);
        pass_copy_node(&b, g, n, map);
        for (uint32_t i = 0; i < n->n_out; i++)
            if (keep[i] != IR_NONE)
                map[n->out + i] = keep[i];
    }
    ir_output(&b, map[vec_last(&g->outputs)]);
    jot_status status = pass_finish(&b, &out->f);
    if (status != JOT_OK)
        rule_fail_nested(s->b, status);
    return status == JOT_OK;
}

static bool check_values(struct ir_builder *b, ir_id y, int n, const ir_id *x)
{
    if (b->status != JOT_OK)
        return false;
    for (int i = 0; i <= n; i++) {
        ir_id v = i < n ? x[i] : y;
        if (v == IR_NONE) {
            ir_fail(b, JOT_ERR_INTERNAL, "a derivative of no value");
            return false;
        }
        struct ir_type t = ir_type_in(b, v);
        if (!pass_is_inexact(t)) {
            ir_fail(
                b, JOT_ERR_DTYPE,
                i < n ? "value %d to differentiate in is %s: only floats and complex numbers "
                        "have derivatives"
                      : "value %d to differentiate is %s: only floats and complex numbers have "
                        "derivatives",
                i < n ? i : 0, ir_type_text(b->module, t));
            return false;
        }
    }
    return true;
}

// The function (known..., dx...) -> dy that computes the values of f again beside their tangents.
static bool make_joint(struct between *s, uint32_t joint, struct linear_part *out)
{
    struct ir_module *m = s->b->module;
    struct body w = body_of(m, joint);
    body_take_all(&w);
    body_run(&w);
    body_give(&w, 1);
    out->n_known = s->g->n_params;
    out->known = pass_no_values(m, w.f->n_params + 1);
    memcpy(out->known, s->original.at, sizeof *out->known * out->n_known);
    jot_status status = pass_finish(&w.b, &out->f);
    if (status != JOT_OK)
        rule_fail_nested(s->b, status);
    return status == JOT_OK;
}

// False with b in order: y has no tangent at all.  Forward mode takes loops as they are: separating
// them would store residuals, or need a bound.
static bool linearize_value(struct ir_builder *b, ir_id y, int n, const ir_id *x,
                            const bool *nonzero_in, bool forward, struct linear_part *out)
{
    struct ir_module *m = b->module;
    struct between s = {.b = b, .from = b->graph};
    if (!extract(&s, y, n, x))
        return false;
    bool *in = arena_array(m->arena, bool, s.g->n_params + 1), nonzero;
    ir_id *primal = pass_no_values(m, s.g->values.count);
    for (int i = 0; i < n; i++)
        in[i] = !nonzero_in || nonzero_in[i];
    struct ir_graph *joint;
    jot_status status = pass_jvp_graph(m, s.g, in, &joint, primal, &nonzero);
    if (status == JOT_OK && !nonzero)
        return false;
    if (status == JOT_OK && forward && ir_control_depth(s.g))
        return make_joint(&s, ir_function_add(m, ir_canonical(joint)), out);
    struct unzipped u;
    ir_id *map = NULL;
    if (status == JOT_OK) {
        bool *linear_in = arena_array(m->arena, bool, joint->n_params + 1);
        for (uint32_t i = s.g->n_params; i < joint->n_params; i++)
            linear_in[i] = true;
        map = pass_no_values(m, joint->values.count);
        status = pass_unzip(m, joint, linear_in, map, &u);
    }
    if (status != JOT_OK) {
        rule_fail_nested(b, status);
        return false;
    }
    if (!u.linear[vec_last(&u.g->outputs)])
        return false;
    ir_id *original = pass_no_values(m, u.g->values.count);
    for (ir_id v = 0; v < s.original.count; v++)
        original[map[primal[v]]] = s.original.at[v];
    return build_linear(&s, &u, original, out);
}

// Nodes that a derivative adds are made as in a transform, then b is as before.
struct kept {
    unsigned flags;
    uint32_t where;
};

static struct kept begin(struct ir_builder *b)
{
    struct kept k = {b->flags, b->where};
    b->flags |= IR_BUILD_ZEROS;
    return k;
}

static bool end(struct ir_builder *b, struct kept k)
{
    b->flags = k.flags;
    b->where = k.where;
    return b->status == JOT_OK;
}

bool pass_pullback_in(struct ir_builder *b, ir_id y, ir_id ct, int n, const ir_id *x,
                      ir_id *out)
{
    if (!check_values(b, y, n, x))
        return false;
    struct kept kept = begin(b);
    struct linear_part l;
    if (linearize_value(b, y, n, x, NULL, false, &l)) {
        uint32_t back;
        jot_status status = pass_transpose(b->module, l.f, l.n_known, &back);
        l.known[l.n_known] = ct;
        if (status != JOT_OK)
            rule_fail_nested(b, status);
        else
            ir_inline(b, ir_function(b->module, back), l.known, out);
    } else {
        for (int i = 0; i < n; i++)
            out[i] = rule_zeros_like(b, x[i]);
    }
    return end(b, kept);
}

bool pass_gradient_in(struct ir_builder *b, ir_id y, int n, const ir_id *x, ir_id *out)
{
    if (!check_values(b, y, n, x))
        return false;
    struct ir_type t = ir_type_in(b, y);
    const char *text = ir_type_text(b->module, t);
    if (t.rank != 0)
        ir_fail(b, JOT_ERR_SHAPE,
                "the value to differentiate is %s, not a scalar: reduce it first, or take "
                "jot_jacobian",
                text);
    else if (!dtype_is_float(ir_dtype(t)))
        ir_fail(b, JOT_ERR_DTYPE,
                "the value to differentiate is %s, not a real float: take its real part", text);
    return b->status == JOT_OK && pass_pullback_in(b, y, ir_scalar_like(b, y, 1), n, x, out);
}

bool pass_tangent_in(struct ir_builder *b, ir_id y, int n, const ir_id *x, const ir_id *dx,
                     ir_id *out)
{
    if (!check_values(b, y, n, x))
        return false;
    struct kept kept = begin(b);
    struct linear_part l;
    bool *nonzero = arena_array(b->module->arena, bool, n + 1);
    for (int i = 0; i < n; i++)
        nonzero[i] = dx[i] != IR_NONE;
    if (linearize_value(b, y, n, x, nonzero, true, &l)) {
        for (int i = 0; i < n; i++)
            if (dx[i] != IR_NONE)
                l.known[l.n_known++] = dx[i];
        ir_inline(b, ir_function(b->module, l.f), l.known, out);
    } else {
        *out = rule_zeros_like(b, y);
    }
    return end(b, kept);
}

bool pass_jacobian_in(struct ir_builder *b, ir_id y, ir_id x, ir_id *out)
{
    if (!check_values(b, y, 1, &x))
        return false;
    struct kept kept = begin(b);
    struct ir_type ty = ir_type_in(b, y), tx = ir_type_in(b, x);
    struct linear_part l;
    if (linearize_value(b, y, 1, &x, NULL, false, &l)) {
        *out = pass_jacobian_of_linear(b, l.f, l.n_known, l.known, ty, tx);
    } else if (b->status == JOT_OK) {
        int64_t dims[2 * IR_MAX_RANK];
        memcpy(dims, ir_dims(b->module, ty), sizeof *dims * ty.rank);
        memcpy(dims + ty.rank, ir_dims(b->module, tx), sizeof *dims * tx.rank);
        *out = ir_zeros(b, ir_type_make(b->module, ir_dtype(ty), ty.rank + tx.rank, dims));
    }
    return end(b, kept);
}
