// SPDX-License-Identifier: Apache-2.0
// Rules of nodes with bodies, and of barriers.
//
// A transformed call is a call of the transformed function.  Custom rules appear in a graph of
// tangents as a call of the user's rule (custom_jvp) or as one linear_call that holds both
// directions (custom_vjp), so that every nesting of transforms works through them.
#include "passes/rules/rules.h"

#include "base/status.h"
#include "passes/body.h"
#include "passes/transform.h"

#define B c->b

enum { INLINE_NODES = 64 }; // rules up to this size are put in place

static uint32_t function_of(const struct ir_node *n, int i)
{
    return (uint32_t)ir_field_find(n->attrs, IR_KEY_functions)->ints[i];
}

static bool *mask_of(struct ir_builder *b, uint32_t n, const ir_id *v)
{
    bool *mask = arena_array(b->module->arena, bool, n + 1);
    for (uint32_t i = 0; i < n; i++)
        mask[i] = v[i] != IR_NONE;
    return mask;
}

static ir_id *room(struct ir_builder *b, uint32_t n) { return pass_no_values(b->module, n); }

// -- Forward mode -----------------------------------------------------------------------------

// call f(x) -> call jvp f(x, dx)
void jvp_call(struct jvp *c)
{
    uint32_t f;
    bool *in = mask_of(B, c->n.n_in, c->dx);
    bool *nonzero = arena_array(B->module->arena, bool, c->n.n_out + 1);
    jot_status status = pass_jvp(B->module, function_of(&c->n, 0), in, &f, nonzero);
    if (status != JOT_OK) {
        rule_fail_nested(B, status);
        return;
    }
    ir_id *x = room(B, 2 * c->n.n_in);
    int n = 0;
    for (uint32_t i = 0; i < c->n.n_in; i++)
        x[n++] = c->x[i];
    for (uint32_t i = 0; i < c->n.n_in; i++)
        if (in[i])
            x[n++] = c->dx[i];
    ir_id y = ir_call(B, c->n.op, 1, &f, n, x);
    if (y == IR_NONE)
        return;
    for (uint32_t i = 0; i < c->n.n_out; i++)
        c->y[i] = y++;
    for (uint32_t i = 0; i < c->n.n_out; i++)
        c->dy[i] = nonzero[i] ? y++ : IR_NONE;
}

// The tangents are a checkpointed region of their own once they are separated (split.c).
void jvp_checkpoint(struct jvp *c) { jvp_call(c); }

// Tangents of the float and complex operands, zeros made, appended to in.  Returns their number.
static int instantiate(struct jvp *c, uint32_t first, ir_id *in)
{
    int n = 0;
    for (uint32_t i = first; i < c->n.n_in; i++)
        if (pass_is_inexact(ir_type_in(B, c->x[i])))
            in[n++] = c->dx[i] != IR_NONE ? c->dx[i] : rule_zeros_like(B, c->x[i]);
    return n;
}

// The node again, and the tangents that the user's rule gives.
void jvp_custom_jvp(struct jvp *c)
{
    uint32_t n_in = c->n.n_in, rule = rule_guarded(B->module, function_of(&c->n, 1), n_in);
    const struct ir_graph *r = ir_function(B->module, rule);
    ir_id y = ir_build(B, IR_custom_jvp, (int)n_in, c->x, c->n.attrs);
    if (y == IR_NONE)
        return;
    ir_id *in = room(B, 2 * n_in), *t = room(B, r->outputs.count);
    memcpy(in, c->x, sizeof *in * n_in);
    int n = (int)n_in + instantiate(c, 0, in + n_in);
    if (r->nodes.count - r->n_params <= INLINE_NODES) {
        ir_inline(B, r, in, t);
    } else {
        ir_id first = ir_call(B, IR_call, 1, &rule, n, in);
        for (uint32_t i = 0; i < r->outputs.count; i++)
            t[i] = first == IR_NONE ? IR_NONE : first + i;
    }
    // A tangent that does not depend on tangents is zero.
    bool *depends = rule_depends_on(r, n_in);
    for (uint32_t i = 0, next = 0; i < c->n.n_out; i++) {
        c->y[i] = y + i;
        if (!pass_is_inexact(ir_type_in(B, y + i)))
            continue;
        c->dy[i] = depends[r->outputs.at[next]] ? t[next] : IR_NONE;
        next++;
    }
}

static void unused_params(struct ir_builder *b, const struct ir_graph *g, uint32_t first,
                          uint32_t end, ir_id *out)
{
    for (uint32_t i = first; i < end; i++)
        out[i] = ir_param(b, ir_type_of(g, g->outputs.at[i]));
}

// What stands for the tangents of a function with callbacks: the run fails.  Reverse mode drops it.
static jot_status no_tangents(struct ir_module *m, const struct ir_graph *g,
                              const struct ir_graph *forward, const char *why,
                              const char *place, uint32_t *out_f)
{
    struct strbuf message = strbuf_make(m->arena);
    strbuf_printf(&message,
                  "jot_custom_vjp: forward mode of %s, whose rule %s is for reverse mode: %s",
                  g->name, forward->name, why);
    struct ir_builder b = ir_builder_make(m, g->name, IR_BUILD_PLAIN);
    uint32_t n_y = g->outputs.count;
    unused_params(&b, forward, n_y, forward->outputs.count, room(&b, forward->outputs.count));
    pass_copy_params(&b, g, NULL, true, room(&b, g->n_params));
    for (uint32_t i = 0; i < g->n_params; i++)
        if (pass_is_inexact(ir_type_of(g, i)))
            ir_param(&b, ir_type_of(g, i));
    ir_check(&b, ir_scalar_int(&b, JOT_BOOL, 0), 0, NULL, message.text, place ? place : "");
    for (uint32_t i = 0; i < n_y; i++)
        if (pass_is_inexact(ir_type_of(g, g->outputs.at[i])))
            ir_output(&b, ir_zeros(&b, ir_type_of(g, g->outputs.at[i])));
    return pass_finish(&b, out_f);
}

// (residuals, x, dx) -> dy, by differentiating f: what forward mode uses.  Its effects are those
// of the forward function already.
static jot_status build_forward(struct ir_module *m, uint32_t f, const struct ir_graph *forward,
                                const char *place, uint32_t *out_f)
{
    const struct ir_graph *g = ir_function(m, f);
    uint32_t jvp;
    bool *in = arena_array(m->arena, bool, g->n_params + 1);
    bool *nonzero = arena_array(m->arena, bool, g->outputs.count + 1);
    for (uint32_t i = 0; i < g->n_params; i++)
        in[i] = pass_is_inexact(ir_type_of(g, i));
    uint32_t stripped = pass_strip_effects(m, f);
    jot_status status = pass_jvp(m, stripped, in, &jvp, nonzero);
    if (status != JOT_OK) {
        // It is for its callbacks if there are tangents without those.
        const char *why = arena_text(m->arena, jot_error_message());
        JOT_TRY(pass_jvp(m, rule_hide_callbacks(m, stripped), in, &jvp, nonzero));
        return no_tangents(m, g, forward, why, place, out_f);
    }
    struct ir_builder b = ir_builder_make(m, g->name, IR_BUILD_PLAIN);
    uint32_t n_y = g->outputs.count;
    unused_params(&b, forward, n_y, forward->outputs.count, room(&b, forward->outputs.count));
    ir_id *x = room(&b, 2 * g->n_params);
    pass_copy_params(&b, g, NULL, true, x);
    int n = (int)g->n_params;
    for (uint32_t i = 0; i < g->n_params; i++)
        if (in[i])
            x[n++] = ir_param(&b, ir_type_of(g, i));
    ir_id t = ir_call(&b, IR_call, 1, &jvp, n, x);
    t = t == IR_NONE ? IR_NONE : t + n_y;
    for (uint32_t i = 0; i < n_y; i++) {
        struct ir_type type = ir_type_of(g, g->outputs.at[i]);
        if (pass_is_inexact(type))
            ir_output(&b, nonzero[i] ? t++ : ir_zeros(&b, type));
    }
    return pass_finish(&b, out_f);
}

// (residuals, x, ct) -> cotangents, by the user's backward function.
static jot_status build_backward(struct ir_module *m, uint32_t f,
                                 const struct ir_graph *forward, uint32_t backward,
                                 uint32_t *out_f)
{
    const struct ir_graph *g = ir_function(m, f), *back = ir_function(m, backward);
    struct ir_builder b = ir_builder_make(m, back->name, IR_BUILD_PLAIN);
    uint32_t n_y = g->outputs.count, n_residuals = forward->outputs.count - n_y;
    backward = rule_guarded(m, backward, n_residuals);
    ir_id *in = room(&b, back->n_params);
    for (uint32_t i = 0; i < n_residuals; i++)
        in[i] = ir_param(&b, ir_type_of(back, i));
    pass_copy_params(&b, g, NULL, true, room(&b, g->n_params));
    for (uint32_t i = n_residuals; i < back->n_params; i++)
        in[i] = ir_param(&b, ir_type_of(back, i));
    ir_id ct = ir_call(&b, IR_call, 1, &backward, (int)back->n_params, in);
    for (uint32_t i = 0; i < back->outputs.count; i++)
        ir_output(&b, ct == IR_NONE ? IR_NONE : ct + i);
    return pass_finish(&b, out_f);
}

// y, residuals = forward(x); dy = linear_call(residuals, x; dx)
void jvp_custom_vjp(struct jvp *c)
{
    struct ir_module *m = B->module;
    uint32_t f = function_of(&c->n, 0), forward = function_of(&c->n, 1), there, back;
    const struct ir_graph *fw = ir_function(m, forward);
    jot_status status = build_forward(m, f, fw, ir_where_text(m, c->n.where), &there);
    if (status == JOT_OK)
        status = build_backward(m, f, fw, function_of(&c->n, 2), &back);
    if (status != JOT_OK) {
        rule_fail_nested(B, status);
        return;
    }
    uint32_t n_in = c->n.n_in, n_residuals = fw->outputs.count - c->n.n_out;
    ir_id y = ir_call(B, IR_call, 1, &forward, (int)n_in, c->x);
    if (y == IR_NONE)
        return;
    ir_id *in = room(B, n_residuals + 2 * n_in);
    for (uint32_t i = 0; i < n_residuals; i++)
        in[i] = y + c->n.n_out + i;
    memcpy(in + n_residuals, c->x, sizeof *in * n_in);
    n_residuals += n_in;
    int n = (int)n_residuals + instantiate(c, 0, in + n_residuals);
    ir_id t = ir_linear_call(B, there, back, (int)n_residuals, n, in);
    for (uint32_t i = 0; i < c->n.n_out && t != IR_NONE; i++) {
        c->y[i] = y + i;
        c->dy[i] = pass_is_inexact(ir_type_in(B, y + i)) ? t++ : IR_NONE;
    }
}

// d L(r; v) = L(r; dv) + the derivative of the forward function in r
void jvp_linear_call(struct jvp *c)
{
    uint32_t n_residuals = (uint32_t)ir_attr_int(c->n.attrs, IR_KEY_counts);
    ir_id y = ir_build(B, IR_linear_call, (int)c->n.n_in, c->x, c->n.attrs);
    if (y == IR_NONE)
        return;
    bool any_linear = false, any_residual = false;
    for (uint32_t i = 0; i < c->n.n_in; i++) {
        any_linear = any_linear || (i >= n_residuals && c->dx[i] != IR_NONE);
        any_residual = any_residual || (i < n_residuals && c->dx[i] != IR_NONE);
    }
    for (uint32_t i = 0; i < c->n.n_out; i++)
        c->y[i] = y + i;
    if (any_linear) {
        ir_id *in = room(B, c->n.n_in);
        memcpy(in, c->x, sizeof *in * n_residuals);
        instantiate(c, n_residuals, in + n_residuals);
        ir_id t = ir_build(B, IR_linear_call, (int)c->n.n_in, in, c->n.attrs);
        for (uint32_t i = 0; i < c->n.n_out; i++)
            c->dy[i] = t == IR_NONE ? IR_NONE : t + i;
    }
    if (!any_residual)
        return;
    struct jvp inner = *c;
    inner.n.op = IR_call;
    inner.y = room(B, c->n.n_out);
    inner.dy = room(B, c->n.n_out);
    inner.dx = room(B, c->n.n_in);
    memcpy(inner.dx, c->dx, sizeof *c->dx * n_residuals);
    jvp_call(&inner);
    for (uint32_t i = 0; i < c->n.n_out; i++)
        c->dy[i] = rule_sum(B, c->dy[i], inner.dy[i]);
}

// Tangents get a barrier of their own.
void jvp_barrier(struct jvp *c)
{
    ir_id *in = room(B, c->n.n_in);
    int n = 0;
    for (uint32_t i = 0; i < c->n.n_in; i++)
        if (c->dx[i] != IR_NONE)
            in[n++] = c->dx[i];
    ir_id t = ir_build(B, IR_barrier, n, in, NULL);
    for (uint32_t i = 0; i < c->n.n_in && t != IR_NONE; i++)
        if (c->dx[i] != IR_NONE)
            c->dy[i] = t++;
}

// -- Reverse mode -----------------------------------------------------------------------------

// call f(residuals, dx) -> call of f's transpose (residuals, ct); with ordered, the operands pass
// a barrier, so that nothing is computed before the cotangents are there.
static void transpose_body(struct transpose *c, bool ordered)
{
    struct ir_module *m = B->module;
    uint32_t f, n_in = c->n->n_in, n_out = c->n->n_out;
    bool *linear = arena_array(m->arena, bool, n_in + 1);
    bool *nonzero = arena_array(m->arena, bool, n_in + 1);
    bool *handed = arena_array(m->arena, bool, n_in + 1);
    for (uint32_t i = 0; i < n_in; i++) {
        linear[i] = transpose_is_linear(c, i);
        handed[i] = transpose_has_sum(c, i);
    }
    jot_status status = pass_transpose_function(m, function_of(c->n, 0), linear,
                                                mask_of(B, n_out, c->ct), handed, &f, nonzero);
    if (status != JOT_OK) {
        rule_fail_nested(B, status);
        return;
    }
    ir_id *in = room(B, 2 * n_in + n_out);
    int n = 0;
    for (uint32_t i = 0; i < n_in; i++)
        if (!linear[i])
            in[n++] = c->x[i];
    for (uint32_t i = 0; i < n_out; i++)
        if (c->ct[i] != IR_NONE)
            in[n++] = c->ct[i];
    if (ordered) {
        ir_id held = ir_build(B, IR_barrier, n, in, NULL);
        for (int i = 0; i < n; i++)
            in[i] = held == IR_NONE ? IR_NONE : held + (ir_id)i;
    }
    for (uint32_t i = 0; i < n_in; i++)
        if (handed[i])
            in[n++] = transpose_take_sum(c, i);
    ir_id t = ir_call(B, c->n->op, 1, &f, n, in);
    for (uint32_t i = 0; i < n_in && t != IR_NONE; i++)
        if (nonzero[i])
            transpose_give(c, i, t++);
}

void transpose_call(struct transpose *c) { transpose_body(c, false); }
void transpose_checkpoint(struct transpose *c) { transpose_body(c, true); }

// The cotangent of result i; of an operand that is given as it is, the sum of its cotangents so far.
static ir_id ct_of_linear_call(struct transpose *c, uint32_t i, uint32_t n_residuals)
{
    ir_id given = ir_function(B->module, function_of(c->n, 0))->outputs.at[i];
    bool is_handed = c->ct[i] == IR_NONE && given >= n_residuals && given < c->n->n_in &&
                     transpose_has_sum(c, given);
    return is_handed ? transpose_take_sum(c, given) : transpose_instantiate(c, i);
}

// The same node with its directions exchanged.
void transpose_linear_call(struct transpose *c)
{
    uint32_t n_residuals = (uint32_t)ir_attr_int(c->n->attrs, IR_KEY_counts);
    for (uint32_t i = 0; i < n_residuals; i++) {
        if (transpose_is_linear(c, i)) {
            transpose_none(c);
            return;
        }
    }
    ir_id *in = room(B, n_residuals + c->n->n_out);
    memcpy(in, c->x, sizeof *in * n_residuals);
    for (uint32_t i = 0; i < c->n->n_out; i++)
        in[n_residuals + i] = ct_of_linear_call(c, i, n_residuals);
    ir_id t = ir_linear_call(B, function_of(c->n, 1), function_of(c->n, 0), (int)n_residuals,
                             (int)(n_residuals + c->n->n_out), in);
    for (uint32_t i = n_residuals; i < c->n->n_in && t != IR_NONE; i++)
        transpose_give(c, i, t++);
}

void transpose_barrier(struct transpose *c)
{
    ir_id *in = room(B, c->n->n_out);
    int n = 0;
    for (uint32_t i = 0; i < c->n->n_out; i++)
        if (c->ct[i] != IR_NONE)
            in[n++] = c->ct[i];
    bool *had = mask_of(B, c->n->n_out, c->ct);
    ir_id t = ir_build(B, IR_barrier, n, in, NULL);
    for (uint32_t i = 0; i < c->n->n_out && t != IR_NONE; i++)
        if (had[i])
            transpose_give(c, i, t++);
}

// -- Batching ---------------------------------------------------------------------------------

static void set_call_results(struct batch *c, ir_id y)
{
    for (uint32_t i = 0; i < c->n->n_out; i++)
        c->y[i] = y == IR_NONE ? IR_NONE : y + i;
}

void batch_call(struct batch *c)
{
    uint32_t f;
    jot_status status = batch_function(c, function_of(c->n, 0), c->batched, &f, c->y_batched);
    if (status != JOT_OK)
        rule_fail_nested(B, status);
    else
        set_call_results(c, ir_call(B, c->n->op, 1, &f, (int)c->n->n_in, c->x));
}

void batch_checkpoint(struct batch *c) { batch_call(c); }

void batch_barrier(struct batch *c)
{
    set_call_results(c, ir_build(B, IR_barrier, (int)c->n->n_in, c->x, NULL));
    memcpy(c->y_batched, c->batched, sizeof *c->batched * c->n->n_out);
}

// All results mapped that may be, so that function, rule and cotangents agree on which are.

// The rule's inputs are operands, then tangents of the float and complex ones, mapped alike.
static jot_status batch_jvp_rule(struct batch *c, uint32_t *out_rule)
{
    struct ir_module *m = B->module;
    bool *in = arena_array(m->arena, bool, 2 * c->n->n_in + 1);
    uint32_t n = c->n->n_in;
    memcpy(in, c->batched, sizeof *in * n);
    for (uint32_t i = 0; i < c->n->n_in; i++)
        if (pass_is_inexact(batch_type(c, i)))
            in[n++] = c->batched[i];
    return batch_function_all(c, function_of(c->n, 1), in, out_rule);
}

// backward over the mapped axis, with n_residuals inputs mapped as residual_in, or like cotangents all
// that may be.  Cotangents of the inexact operands from the first on come out: summed over the axis
// where the operand does not have it.
static jot_status batch_backward(struct batch *c, uint32_t backward, uint32_t n_residuals,
                                 const bool *residual_in, uint32_t first, uint32_t *out_f)
{
    struct ir_module *m = B->module;
    const struct ir_graph *g = ir_function(m, backward);
    bool *in = arena_array(m->arena, bool, g->n_params + 1);
    for (uint32_t i = 0; i < g->n_params; i++)
        in[i] =
            i < n_residuals ? residual_in[i] : batch_may_have_axis(c->axis, ir_type_of(g, i));
    uint32_t f;
    jot_status status = batch_function_all(c, backward, in, &f);
    if (status != JOT_OK)
        return status;
    const struct ir_graph *mapped = ir_function(m, f);
    struct ir_builder b = ir_builder_make(m, g->name, IR_BUILD_PLAIN);
    ir_id *x = room(&b, mapped->n_params), *ct = room(&b, mapped->outputs.count);
    pass_copy_params(&b, mapped, NULL, true, x);
    ir_id t = ir_call(&b, IR_call, 1, &f, (int)mapped->n_params, x);
    uint32_t n = 0;
    for (uint32_t i = first; i < c->n->n_in && t != IR_NONE; i++)
        if (pass_is_inexact(batch_type(c, i))) {
            ct[n] = t + n;
            if (!c->batched[i] && batch_may_have_axis(c->axis, body_result(g, n)))
                ct[n] = ir_reduce(&b, IR_reduce_sum, ct[n], 1, (const int64_t[]){0});
            n++;
        }
    for (uint32_t i = 0; i < mapped->outputs.count; i++)
        ir_output(&b, ct[i]);
    return pass_finish(&b, out_f);
}

static jot_status batch_vjp_rules(struct batch *c, uint32_t *out_forward,
                                  uint32_t *out_backward)
{
    JOT_TRY(batch_function_all(c, function_of(c->n, 1), c->batched, out_forward));
    return batch_backward(c, function_of(c->n, 2), 0, NULL, 0, out_backward);
}

void batch_custom_call(struct batch *c)
{
    bool is_jvp = c->n->op == IR_custom_jvp;
    uint32_t functions[3];
    jot_status status = batch_function_all(c, function_of(c->n, 0), c->batched, &functions[0]);
    if (status == JOT_OK)
        status = is_jvp ? batch_jvp_rule(c, &functions[1])
                        : batch_vjp_rules(c, &functions[1], &functions[2]);
    if (status != JOT_OK)
        rule_fail_nested(B, status);
    else
        set_call_results(
            c, ir_call(B, c->n->op, is_jvp ? 2 : 3, functions, (int)c->n->n_in, c->x));
}

void batch_linear_call(struct batch *c)
{
    uint32_t n_residuals = (uint32_t)ir_attr_int(c->n->attrs, IR_KEY_counts), forward, backward;
    jot_status status = batch_function_all(c, function_of(c->n, 0), c->batched, &forward);
    if (status == JOT_OK)
        status = batch_backward(c, function_of(c->n, 1), n_residuals, c->batched, n_residuals,
                                &backward);
    if (status != JOT_OK)
        rule_fail_nested(B, status);
    else
        set_call_results(
            c, ir_linear_call(B, forward, backward, (int)n_residuals, (int)c->n->n_in, c->x));
}
