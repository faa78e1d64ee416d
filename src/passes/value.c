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

struct between {
    struct ir_builder *b; // of the open graph
    struct ir_graph *g;   // the closed graph: x, captured values -> y
    uint32_t n;           // of x
    ir_id *original;      // value of the open graph, by value of g
};

// The values that depend on one of x and on which y depends.
static bool *find_path(const struct ir_graph *g, ir_id y, int n, const ir_id *x)
{
    struct arena *arena = g->module->arena;
    bool *depends = arena_array(arena, bool, g->values.count + 1);
    bool *path = arena_array(arena, bool, g->values.count + 1);
    bool *is_x = arena_array(arena, bool, g->values.count + 1);
    for (int i = 0; i < n; i++)
        depends[x[i]] = is_x[x[i]] = true;
    ir_for_each_node (g, node) {
        bool any = false;
        for (uint32_t i = 0; i < node->n_in; i++)
            any = any || depends[ir_operand(g, node, i)];
        for (uint32_t i = 0; any && i < node->n_out; i++)
            depends[node->out + i] = true;
    }
    path[y] = depends[y];
    for (uint32_t at = g->nodes.count; at-- > 0;) {
        const struct ir_node *node = &g->nodes.at[at];
        bool any = false;
        for (uint32_t i = 0; i < node->n_out; i++)
            any = any || (path[node->out + i] && !is_x[node->out + i]);
        for (uint32_t i = 0; any && i < node->n_in; i++) {
            ir_id v = ir_operand(g, node, i);
            path[v] = path[v] || depends[v];
        }
    }
    return path;
}

static bool on_path(const bool *path, const struct ir_node *node)
{
    for (uint32_t i = 0; i < node->n_out; i++)
        if (path[node->out + i])
            return true;
    return false;
}

static void note(struct between *s, ir_id made, ir_id original)
{
    if (made != IR_NONE)
        s->original[made] = original;
}

// Copies the path, with parameters for x and for what it reads from outside; constants come along.
// False with b in order: there is no path.
static bool extract(struct between *s, ir_id y, int n, const ir_id *x)
{
    const struct ir_graph *from = s->b->graph;
    struct ir_module *m = s->b->module;
    bool *path = find_path(from, y, n, x);
    if (!path[y])
        return false;
    struct ir_builder b = ir_builder_make(m, from->name, IR_BUILD_PLAIN);
    ir_id *map = pass_no_values(m, from->values.count);
    s->original = pass_no_values(m, 2 * from->values.count + (uint32_t)n);
    s->n = (uint32_t)n;
    for (int i = 0; i < n; i++) {
        map[x[i]] = ir_param(&b, ir_type_of(from, x[i]));
        note(s, map[x[i]], x[i]);
    }
    bool *is_made = arena_array(m->arena, bool, from->values.count + 1);
    for (int i = 0; i < n; i++)
        is_made[x[i]] = true;
    for (int constants = 0; constants < 2; constants++) {
        ir_for_each_node (from, node) {
            if (!on_path(path, node) || is_made[node->out])
                continue;
            for (uint32_t i = 0; i < node->n_in; i++) {
                ir_id v = ir_operand(from, node, i);
                const struct ir_node *source = ir_node_of(from, v);
                if (path[v] || map[v] != IR_NONE ||
                    (source->op == IR_const) != (constants == 1))
                    continue;
                if (constants)
                    pass_copy_node(&b, from, source, map);
                else
                    map[v] = ir_param(&b, ir_type_of(from, v));
                note(s, map[v], v);
            }
        }
    }
    ir_for_each_node (from, node) {
        if (!on_path(path, node) || is_made[node->out])
            continue;
        pass_copy_stripped(&b, from, node, map);
        for (uint32_t i = 0; i < node->n_out; i++)
            note(s, map[node->out + i], node->out + i);
    }
    ir_output(&b, map[y]);
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
    memcpy(out->known, s->original, sizeof *out->known * out->n_known);
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
    struct between s = {.b = b};
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
    if (status == JOT_OK && forward && ir_has_control(s.g))
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
    for (ir_id v = 0; v < s.g->values.count; v++)
        original[map[primal[v]]] = s.original[v];
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
