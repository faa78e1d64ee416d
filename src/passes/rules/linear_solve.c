// SPDX-License-Identifier: Apache-2.0
// Rules of linear_solve: x with A(r, x) = b is given by a function of the user's, so what it does is
// not looked into.  From the equation follow
//
//     dx = solve(r, db - dA(r, x))            the derivative of A in r, at x
//     cotangent of b = solve of A^T(r, cotangent of x)
//
// which are linear solves again, so that derivatives of every order are.
#include "passes/rules/rules.h"

#include "base/status.h"
#include "passes/transform.h"

#define B c->b

enum { SOLVE, MATVEC, TRANSPOSED_SOLVE, FUNCTIONS };

static void functions_of(const struct ir_node *n, uint32_t *f)
{
    const struct ir_field *field = ir_field_find(n->attrs, IR_KEY_functions);
    for (int i = 0; i < FUNCTIONS; i++)
        f[i] = (uint32_t)field->ints[i];
}

static uint32_t residuals_of(const struct ir_node *n)
{
    return (uint32_t)ir_attr_int(n->attrs, IR_KEY_counts);
}

// db - dA(r, x) for each value; IR_NONE where it is zero.
static void right_side(struct jvp *c, uint32_t n_residuals, ir_id x, ir_id *out)
{
    struct ir_module *m = B->module;
    uint32_t n_in = c->n.n_in, n_out = c->n.n_out, f[FUNCTIONS], derivative;
    functions_of(&c->n, f);
    bool any = false, *moves = arena_array(m->arena, bool, n_in + 1);
    bool *nonzero = arena_array(m->arena, bool, n_out + 1);
    ir_id *in = arena_array(m->arena, ir_id, 2 * n_in + 1);
    for (uint32_t i = 0; i < n_residuals; i++)
        any |= moves[i] = c->dx[i] != IR_NONE;
    for (uint32_t i = 0; i < n_out; i++)
        out[i] = c->dx[n_residuals + i];
    if (!any)
        return;
    jot_status status = pass_jvp(m, f[MATVEC], moves, &derivative, nonzero);
    if (status != JOT_OK) {
        rule_fail_nested(B, status);
        return;
    }
    int n = 0;
    for (uint32_t i = 0; i < n_residuals; i++)
        in[n++] = c->x[i];
    for (uint32_t i = 0; i < n_out; i++)
        in[n++] = x + i;
    for (uint32_t i = 0; i < n_residuals; i++)
        if (moves[i])
            in[n++] = c->dx[i];
    ir_id t = ir_call(B, IR_call, 1, &derivative, n, in);
    for (uint32_t i = 0, next = n_out; i < n_out && t != IR_NONE; i++)
        if (nonzero[i])
            out[i] = rule_sum(B, out[i], ir_neg(B, t + next++));
}

void jvp_linear_solve(struct jvp *c)
{
    uint32_t n_residuals = residuals_of(&c->n), n_out = c->n.n_out;
    ir_id x = ir_build(B, IR_linear_solve, (int)c->n.n_in, c->x, c->n.attrs);
    if (x == IR_NONE)
        return;
    ir_id *in = arena_array(B->module->arena, ir_id, c->n.n_in + 1);
    memcpy(in, c->x, sizeof *in * n_residuals);
    right_side(c, n_residuals, x, in + n_residuals);
    bool any = false;
    for (uint32_t i = 0; i < n_out; i++) {
        ir_id *side = &in[n_residuals + i];
        any |= *side != IR_NONE;
        *side = *side == IR_NONE ? rule_zeros_like(B, x + i) : *side;
    }
    ir_id t = any ? ir_build(B, IR_linear_solve, (int)c->n.n_in, in, c->n.attrs) : IR_NONE;
    for (uint32_t i = 0; i < n_out; i++) {
        c->y[i] = x + i;
        c->dy[i] = t == IR_NONE ? IR_NONE : t + i;
    }
}

// (r, ct) -> A^T(r, ct): what reverse mode makes of A at zero.
static jot_status transposed(struct ir_module *m, uint32_t matvec, uint32_t n_residuals,
                             uint32_t *out_f)
{
    const struct ir_graph *g = ir_function(m, matvec);
    uint32_t vjp, n = g->n_params - n_residuals;
    bool *wrt = arena_array(m->arena, bool, g->n_params + 1);
    ir_id *in = arena_array(m->arena, ir_id, g->n_params + n + 1);
    for (uint32_t i = n_residuals; i < g->n_params; i++)
        wrt[i] = true;
    JOT_TRY(pass_vjp(m, matvec, wrt, &vjp));
    struct ir_builder b = ir_builder_make(m, g->name, IR_BUILD_PLAIN);
    for (uint32_t i = 0; i < n_residuals; i++)
        in[i] = ir_param(&b, ir_type_of(g, i));
    for (uint32_t i = n_residuals; i < g->n_params; i++)
        in[i + n] = ir_param(&b, ir_type_of(g, i));
    for (uint32_t i = n_residuals; i < g->n_params; i++)
        in[i] = rule_zeros_like(&b, in[i + n]);
    ir_id t = ir_call(&b, IR_call, 1, &vjp, (int)(g->n_params + n), in);
    for (uint32_t i = 0; i < n; i++)
        ir_output(&b, t == IR_NONE ? IR_NONE : t + n + i);
    return pass_finish(&b, out_f);
}

void transpose_linear_solve(struct transpose *c)
{
    struct ir_module *m = B->module;
    uint32_t n_residuals = residuals_of(c->n), f[FUNCTIONS], back[FUNCTIONS];
    for (uint32_t i = 0; i < n_residuals; i++) {
        if (transpose_is_linear(c, i)) {
            transpose_none(c);
            return;
        }
    }
    functions_of(c->n, f);
    back[SOLVE] = f[TRANSPOSED_SOLVE];
    back[TRANSPOSED_SOLVE] = f[SOLVE];
    jot_status status = transposed(m, f[MATVEC], n_residuals, &back[MATVEC]);
    if (status != JOT_OK) {
        rule_fail_nested(B, status);
        return;
    }
    ir_id *in = arena_array(m->arena, ir_id, c->n->n_in + 1);
    memcpy(in, c->x, sizeof *in * n_residuals);
    for (uint32_t i = 0; i < c->n->n_out; i++)
        in[n_residuals + i] = transpose_instantiate(c, i);
    ir_id t = ir_linear_solve(B, back, (int)n_residuals, (int)c->n->n_in, in);
    for (uint32_t i = n_residuals; i < c->n->n_in && t != IR_NONE; i++)
        transpose_give(c, i, t++);
}

// The residuals as they are mapped, right sides and solutions all that may be.
void batch_linear_solve(struct batch *c)
{
    struct ir_module *m = B->module;
    uint32_t n_residuals = residuals_of(c->n), n_in = c->n->n_in, f[FUNCTIONS];
    bool *in = arena_array(m->arena, bool, n_in + 1);
    ir_id *x = arena_array(m->arena, ir_id, n_in + 1);
    functions_of(c->n, f);
    for (uint32_t i = 0; i < n_in; i++) {
        in[i] = c->batched[i] ||
                (i >= n_residuals && batch_may_have_axis(c->axis, batch_type(c, i)));
        x[i] = in[i] ? batch_materialise(c, i) : c->x[i];
    }
    for (int i = 0; i < FUNCTIONS; i++) {
        jot_status status = batch_function_all(c, f[i], in, &f[i]);
        if (status != JOT_OK) {
            rule_fail_nested(B, status);
            return;
        }
    }
    ir_id y = ir_linear_solve(B, f, (int)n_residuals, (int)n_in, x);
    for (uint32_t i = 0; i < c->n->n_out; i++)
        c->y[i] = y == IR_NONE ? IR_NONE : y + i;
}
