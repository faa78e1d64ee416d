// SPDX-License-Identifier: Apache-2.0
// Jacobians: the linear part of a function, mapped over a basis.
//
// jacfwd pushes a basis of each input forward, jacrev pulls a basis of each result back.  The
// basis is an identity matrix made of two iotas; simplify turns contractions with it into layout.
#include "base/status.h"
#include "ir/control.h"
#include "passes/body.h"
#include "passes/rules/rules.h"
#include "passes/transform.h"

#include <stdlib.h>

struct jacobian {
    struct ir_builder *b;
    const struct ir_graph *g;
    const bool *wrt;
    uint32_t n_wrt;
    ir_id *x;   // parameters
    ir_id *out; // by result and input of wrt
};

// The unit vectors of a type, along a leading axis.
static ir_id make_basis(struct ir_builder *b, struct ir_type t)
{
    struct ir_module *m = b->module;
    int64_t n = ir_count(m, t), square[] = {n, n}, dims[IR_MAX_RANK + 1] = {n};
    for (int i = 0; i < t.rank; i++)
        dims[i + 1] = ir_dims(m, t)[i];
    struct ir_type index = ir_type_make(m, n > INT32_MAX ? JOT_I64 : JOT_I32, 2, square);
    ir_id one = ir_eq(b, ir_iota(b, index, 0), ir_iota(b, index, 1));
    return ir_reshape(b, ir_convert(b, one, ir_dtype(t)), t.rank + 1, dims);
}

// The type of a derivative: the result's axes, then the input's.
static int derivative_dims(struct ir_module *m, struct ir_type y, struct ir_type x,
                           int64_t *dims)
{
    for (int i = 0; i < y.rank; i++)
        dims[i] = ir_dims(m, y)[i];
    for (int i = 0; i < x.rank; i++)
        dims[y.rank + i] = ir_dims(m, x)[i];
    return y.rank + x.rank;
}

static struct ir_type derivative_type(struct ir_builder *b, struct ir_type y, struct ir_type x,
                                      jot_dtype dtype)
{
    int64_t dims[2 * IR_MAX_RANK];
    int rank = derivative_dims(b->module, y, x, dims);
    if (rank > IR_MAX_RANK) {
        ir_fail(b, JOT_ERR_SHAPE, "a derivative of %s in %s has %d axes: at most %d",
                ir_type_text(b->module, y), ir_type_text(b->module, x), rank, IR_MAX_RANK);
        rank = 0;
    }
    return ir_type_make(b->module, dtype, rank, dims);
}

// v: the mapped axis, then the axes of y, brought to the shape of the derivative.
static ir_id shape_forward(struct ir_builder *b, ir_id v, struct ir_type y, struct ir_type x)
{
    int64_t axes[IR_MAX_RANK];
    struct ir_type t = derivative_type(b, y, x, ir_dtype(y));
    for (int i = 0; i <= y.rank; i++)
        axes[i] = i < y.rank ? i + 1 : 0;
    return ir_reshape(b, ir_transpose(b, v, axes), t.rank, ir_dims(b->module, t));
}

// Residuals of a split function, computed in b: in[] receives them.
static void make_residuals(struct ir_builder *b, const struct pass_split *s, const ir_id *x,
                           ir_id *in)
{
    struct ir_module *m = b->module;
    const struct ir_graph *forward = ir_function(m, s->forward);
    ir_id *y = pass_no_values(m, forward->outputs.count);
    ir_inline(b, forward, x, y);
    for (uint32_t i = 0; i < s->n_residuals; i++)
        in[i] = s->residuals[i].from == PASS_RESIDUAL_INPUT ? x[s->residuals[i].index]
                                                            : y[s->residuals[i].index];
}

// Mapped over its last input only.
static jot_status map_last(struct ir_module *m, uint32_t f, int64_t size, uint32_t *out_f)
{
    uint32_t n = ir_function(m, f)->n_params;
    bool *mask = arena_array(m->arena, bool, n + 1);
    mask[n - 1] = true;
    return pass_vmap_all(m, f, mask, size, out_f);
}

// A function (known..., dx) -> dy... that is mapped over dx.
struct pushed {
    uint32_t f, n_known;
    ir_id *known;      // with room for one more
    const bool *there; // by result: whether it has a tangent
};

static jot_status push_linear(struct jacobian *j, uint32_t f, const bool *only, int64_t size,
                              struct pushed *out)
{
    struct ir_module *m = j->b->module;
    struct pass_split s;
    JOT_TRY(pass_linearize(m, f, only, &s));
    JOT_TRY(map_last(m, s.linear, size, &out->f));
    out->known = pass_no_values(m, s.n_residuals + 1);
    make_residuals(j->b, &s, j->x, out->known);
    out->n_known = s.n_residuals;
    out->there = s.linear_out;
    return JOT_OK;
}

// The same from the primal operands.  Loops are not separated: that stores residuals, or needs a
// bound.
static jot_status push_joint(struct jacobian *j, uint32_t f, const bool *only, int64_t size,
                             struct pushed *out)
{
    struct ir_module *m = j->b->module;
    uint32_t joint, tangents, n_out = j->g->outputs.count;
    bool *there = body_mask(m, n_out);
    JOT_TRY(pass_jvp(m, f, only, &joint, there));
    struct body w = body_of(m, joint);
    body_take_all(&w);
    body_run(&w);
    for (uint32_t i = n_out; i < w.f->outputs.count; i++)
        body_give(&w, i);
    JOT_TRY(pass_finish(&w.b, &tangents));
    JOT_TRY(map_last(m, tangents, size, &out->f));
    out->n_known = j->g->n_params;
    out->known = pass_no_values(m, out->n_known + 1);
    memcpy(out->known, j->x, out->n_known * sizeof *out->known);
    out->there = there;
    return JOT_OK;
}

// The derivatives in input i, which is number k of wrt.
static jot_status push_basis(struct jacobian *j, uint32_t f, uint32_t i, uint32_t k)
{
    struct ir_builder *b = j->b;
    struct ir_module *m = b->module;
    struct ir_type x = ir_type_of(j->g, i);
    bool *only = arena_array(m->arena, bool, j->g->n_params + 1);
    only[i] = true;
    struct pushed p;
    ir_id *t = pass_no_values(m, j->g->outputs.count);
    JOT_TRY(
        (ir_control_depth(j->g) ? push_joint : push_linear)(j, f, only, ir_count(m, x), &p));
    p.known[p.n_known] = make_basis(b, x);
    ir_inline(b, ir_function(m, p.f), p.known, t);
    for (uint32_t o = 0; o < j->g->outputs.count; o++)
        if (p.there[o])
            j->out[o * j->n_wrt + k] =
                shape_forward(b, *t++, ir_type_of(j->g, j->g->outputs.at[o]), x);
    return pass_builder_status(b);
}

// The linear part of the function, its results to be pulled back one by one.
struct pull {
    struct pass_split s;
    const struct ir_graph *linear;
    ir_id *known;   // residuals
    ir_id *map;     // by value of the linear part: in the function of one result
    uint32_t *seen; // by node: the last result that needed it, from 1
};

// What one result is made of: a function of the residuals it needs, which are in *known, and of all dx.
struct part {
    uint32_t f, n_known;
    ir_id *known;
};

static jot_status make_pull(struct jacobian *j, uint32_t f, struct pull *p)
{
    struct ir_module *m = j->b->module;
    JOT_TRY(pass_linearize(m, f, j->wrt, &p->s));
    p->linear = ir_function(m, p->s.linear);
    p->known = pass_no_values(m, p->s.n_residuals);
    p->map = pass_no_values(m, p->linear->values.count);
    p->seen = arena_array(m->arena, uint32_t, p->linear->nodes.count + 1);
    make_residuals(j->b, &p->s, j->x, p->known);
    return JOT_OK;
}

static int compare_nodes(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

static struct part part_of(struct pull *p, struct ir_module *m, uint32_t result)
{
    const struct ir_graph *g = p->linear;
    struct part part = {0};
    VEC(uint32_t) nodes = {0};
    struct ir_builder b = ir_builder_make(m, g->name, IR_BUILD_PLAIN);
    VEC(ir_id) wanted = {0};
    vec_push(m->arena, &wanted, g->outputs.at[result]);
    while (wanted.count) {
        uint32_t at = g->values.at[wanted.at[--wanted.count]].node;
        const struct ir_node *n = &g->nodes.at[at];
        if (p->seen[at] == result + 1)
            continue;
        p->seen[at] = result + 1;
        vec_push(m->arena, &nodes, at);
        for (uint32_t i = 0; i < n->n_in; i++)
            vec_push(m->arena, &wanted, ir_operand(g, n, i));
    }
    qsort(nodes.at, nodes.count, sizeof *nodes.at, compare_nodes);
    part.known = pass_no_values(m, nodes.count + 1);
    uint32_t at = 0;
    for (; at < nodes.count && nodes.at[at] < p->s.n_residuals; at++) {
        part.known[part.n_known++] = p->known[nodes.at[at]];
        p->map[nodes.at[at]] = ir_param(&b, ir_type_of(g, nodes.at[at]));
    }
    for (uint32_t i = p->s.n_residuals; i < g->n_params; i++)
        p->map[i] = ir_param(&b, ir_type_of(g, i));
    for (; at < nodes.count; at++)
        if (nodes.at[at] >= g->n_params)
            pass_copy_node(&b, g, &g->nodes.at[nodes.at[at]], p->map);
    ir_output(&b, p->map[g->outputs.at[result]]);
    part.f = ir_finish_function(&b);
    return part;
}

// The derivatives of result o, which is number `index` of the linear part.
static jot_status pull_basis(struct jacobian *j, struct pull *p, uint32_t o, uint32_t index)
{
    struct ir_builder *b = j->b;
    struct ir_module *m = b->module;
    struct ir_type y = ir_type_of(j->g, j->g->outputs.at[o]);
    struct part part = part_of(p, m, index);
    const struct ir_graph *linear = ir_function(m, part.f);
    bool *linear_in = arena_array(m->arena, bool, linear->n_params + 1), ct_in[] = {true};
    bool *nonzero = arena_array(m->arena, bool, linear->n_params + 1);
    uint32_t transposed, mapped;
    for (uint32_t i = part.n_known; i < linear->n_params; i++)
        linear_in[i] = true;
    JOT_TRY(pass_transpose_function(m, part.f, linear_in, ct_in, NULL, &transposed, nonzero));
    JOT_TRY(map_last(m, transposed, ir_count(m, y), &mapped));
    ir_id *t = pass_no_values(m, linear->n_params);
    part.known[part.n_known] = make_basis(b, y);
    ir_inline(b, ir_function(m, mapped), part.known, t);
    for (uint32_t i = 0, k = 0; i < j->g->n_params; i++) {
        if (!j->wrt[i])
            continue;
        struct ir_type x = ir_type_of(j->g, i), d = derivative_type(b, y, x, ir_dtype(x));
        if (nonzero[part.n_known + k])
            j->out[o * j->n_wrt + k] =
                ir_convert(b, ir_reshape(b, *t++, d.rank, ir_dims(m, d)), ir_dtype(y));
        k++;
    }
    return pass_builder_status(b);
}

static jot_status pull_all(struct jacobian *j, uint32_t f)
{
    struct pull p = {0};
    JOT_TRY(make_pull(j, f, &p));
    for (uint32_t o = 0, index = 0; o < j->g->outputs.count; o++)
        if (p.s.linear_out[o])
            JOT_TRY(pull_basis(j, &p, o, index++));
    return JOT_OK;
}

static jot_status build(struct ir_module *m, uint32_t f, const bool *wrt, bool reverse,
                        uint32_t *out_f)
{
    const struct ir_graph *g = ir_function(m, f);
    struct ir_builder b = ir_builder_make(m, g->name, IR_BUILD_ZEROS | IR_BUILD_CSE);
    struct jacobian j = {.b = &b, .g = g, .wrt = wrt};
    j.x = pass_no_values(m, g->n_params);
    pass_copy_params(&b, g, NULL, true, j.x);
    for (uint32_t i = 0; i < g->n_params; i++)
        j.n_wrt += wrt[i];
    j.out = pass_no_values(m, g->outputs.count * j.n_wrt);
    for (uint32_t i = 0, k = 0; i < g->n_params && !reverse; i++)
        if (wrt[i])
            JOT_TRY(push_basis(&j, f, i, k++));
    if (reverse)
        JOT_TRY(pull_all(&j, f));
    for (uint32_t o = 0; o < g->outputs.count; o++) {
        struct ir_type y = ir_type_of(g, g->outputs.at[o]);
        for (uint32_t i = 0, k = 0; i < g->n_params && pass_is_inexact(y); i++) {
            if (!wrt[i])
                continue;
            ir_id d = j.out[o * j.n_wrt + k++];
            if (d == IR_NONE)
                d = ir_zeros(&b, derivative_type(&b, y, ir_type_of(g, i), ir_dtype(y)));
            ir_output(&b, d);
        }
    }
    return pass_finish(&b, out_f);
}

jot_status pass_jacfwd(struct ir_module *m, uint32_t f, const bool *wrt, uint32_t *out_f)
{
    return build(m, f, wrt, false, out_f);
}

jot_status pass_jacrev(struct ir_module *m, uint32_t f, const bool *wrt, uint32_t *out_f)
{
    return build(m, f, wrt, true, out_f);
}

jot_status pass_hessian(struct ir_module *m, uint32_t f, const bool *wrt, uint32_t *out_f)
{
    uint32_t gradient;
    JOT_TRY(pass_grad(m, f, wrt, &gradient));
    return pass_jacfwd(m, gradient, wrt, out_f);
}

// The derivative of y in x, from the linear function L(known..., dx) -> dy of value.c.
ir_id pass_jacobian_of_linear(struct ir_builder *b, uint32_t linear, uint32_t n_known,
                              ir_id *in, struct ir_type y, struct ir_type x)
{
    struct ir_module *m = b->module;
    bool reverse = ir_count(m, y) <= ir_count(m, x);
    uint32_t f = linear, mapped;
    jot_status status = reverse ? pass_transpose(m, linear, n_known, &f) : JOT_OK;
    struct ir_type from = reverse ? y : x;
    if (status == JOT_OK)
        status = map_last(m, f, ir_count(m, from), &mapped);
    if (status != JOT_OK) {
        rule_fail_nested(b, status);
        return IR_NONE;
    }
    ir_id t = IR_NONE;
    in[n_known] = make_basis(b, from);
    ir_inline(b, ir_function(m, mapped), in, &t);
    if (!reverse)
        return shape_forward(b, t, y, x);
    struct ir_type d = derivative_type(b, y, x, ir_dtype(x));
    return ir_convert(b, ir_reshape(b, t, d.rank, ir_dims(m, d)), ir_dtype(y));
}
