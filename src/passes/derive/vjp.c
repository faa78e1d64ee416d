// SPDX-License-Identifier: Apache-2.0
// Reverse-mode differentiation: the tangents of pass_jvp, transposed in the graph that holds the
// primal values too.
//
//     f(x) { y = sin x; return y }
// becomes, with a cotangent for y,
//     (x, ct) { y = sin x; c = cos x; ct_x = mul_z ct c; return y, ct_x }
//
// Which values are stored and which are computed again is not decided here: every primal value is
// in the graph.
#include "base/status.h"
#include "passes/passes.h"
#include "passes/rules/rules.h"
#include "passes/transform.h"

enum seed {
    SEED_PARAMETERS, // a cotangent for each float or complex result
    SEED_ONE,        // 1 for result 0
    SEED_ONE_ALONE,  // the same, and no results of f among the results
};

// Cotangents of the results of f, IR_NONE where they are zero.
static ir_id *make_seeds(struct ir_builder *b, const struct ir_graph *g, enum seed seed)
{
    ir_id *ct = pass_no_values(b->module, g->outputs.count);
    for (uint32_t i = 0; i < g->outputs.count; i++) {
        struct ir_type t = ir_type_of(g, g->outputs.at[i]);
        if (seed == SEED_PARAMETERS && pass_is_inexact(t))
            ct[i] = ir_param(b, t);
        else if (seed != SEED_PARAMETERS && i == 0)
            ct[i] = ir_scalar(b, ir_dtype(t), 1);
    }
    return ct;
}

// The joint graph of f and its tangents, separated; tangents of results follow the results.
static jot_status make_joint(struct ir_module *m, uint32_t f, const bool *wrt,
                             struct unzipped *out, bool *nonzero)
{
    uint32_t joint, n = ir_function(m, f)->n_params;
    JOT_TRY(pass_jvp(m, pass_hoist_parts(m, f), wrt, &joint, nonzero));
    const struct ir_graph *j = ir_function(m, joint);
    bool *linear_in = arena_array(m->arena, bool, j->n_params + 1);
    for (uint32_t i = n; i < j->n_params; i++)
        linear_in[i] = true;
    return pass_unzip(m, j, linear_in, NULL, out);
}

static jot_status build(struct ir_module *m, uint32_t f, const bool *wrt, enum seed seed,
                        uint32_t *out_f)
{
    const struct ir_graph *g = ir_function(m, f);
    struct unzipped u;
    bool *nonzero = arena_array(m->arena, bool, g->outputs.count + 1);
    JOT_TRY(make_joint(m, f, wrt, &u, nonzero));
    struct ir_builder b = ir_builder_make(m, g->name, IR_BUILD_ZEROS);
    struct transpose_sweep s = {.b = &b, .g = u.g, .linear = u.linear, .keeps_effects = true};
    s.value = pass_no_values(m, u.g->values.count);
    s.cotangent = pass_no_values(m, u.g->values.count);
    s.needed = arena_array(m->arena, bool, u.g->values.count + 1);
    pass_copy_params(&b, g, NULL, true, s.value);
    ir_id *ct = make_seeds(&b, g, seed);
    uint32_t n_results = seed == SEED_ONE_ALONE ? 0 : g->outputs.count;
    for (uint32_t i = 0; i < n_results; i++)
        s.needed[u.g->outputs.at[i]] = true;
    for (uint32_t i = 0, next = g->outputs.count; i < g->outputs.count; i++) {
        if (!nonzero[i])
            continue;
        ir_id v = u.g->outputs.at[next++];
        if (u.linear[v])
            s.cotangent[v] = rule_sum(&b, s.cotangent[v], ct[i]);
    }
    pass_transpose_sweep(&s);
    JOT_TRY(pass_builder_status(&b));
    for (uint32_t i = 0; i < n_results; i++)
        ir_output(&b, s.value[u.g->outputs.at[i]]);
    for (uint32_t i = 0, next = g->n_params; i < g->n_params; i++) {
        if (!wrt[i])
            continue;
        ir_id t = s.cotangent[next++];
        ir_output(&b, t != IR_NONE ? t : ir_zeros(&b, ir_type_of(g, i)));
    }
    return pass_finish(&b, out_f);
}

static jot_status find_or_build(struct ir_module *m, uint32_t f, const bool *wrt,
                                enum seed seed, uint32_t *out_f)
{
    struct memo_key key = {.kind = MEMO_VJP,
                           .f = f,
                           .number = seed,
                           .n = ir_function(m, f)->n_params,
                           .mask = wrt};
    const uint32_t *known = pass_memo_find(m, &key);
    if (known) {
        *out_f = *known;
        return JOT_OK;
    }
    JOT_TRY(build(m, f, wrt, seed, out_f));
    pass_memo_add_function(m, &key, *out_f);
    return JOT_OK;
}

jot_status pass_vjp(struct ir_module *m, uint32_t f, const bool *wrt, uint32_t *out_f)
{
    return find_or_build(m, f, wrt, SEED_PARAMETERS, out_f);
}

static jot_status check_scalar(const struct ir_graph *g)
{
    if (g->outputs.count == 0)
        return status_fail(JOT_ERR_ARGUMENT, "the function to differentiate has no result");
    struct ir_type t = ir_type_of(g, g->outputs.at[0]);
    const char *text = ir_type_text(g->module, t);
    if (t.rank != 0)
        return status_fail(
            JOT_ERR_SHAPE,
            "the value to differentiate is %s, not a scalar: reduce it first, or "
            "take jot_jacobian",
            text);
    if (!dtype_is_float(ir_dtype(t)))
        return status_fail(JOT_ERR_DTYPE,
                           "the value to differentiate is %s, not a real float: %s", text,
                           dtype_is_complex(ir_dtype(t)) ? "take its real part, or jot_vjp"
                                                         : "convert it first");
    return JOT_OK;
}

jot_status pass_value_and_grad(struct ir_module *m, uint32_t f, const bool *wrt,
                               uint32_t *out_f)
{
    JOT_TRY(check_scalar(ir_function(m, f)));
    return find_or_build(m, f, wrt, SEED_ONE, out_f);
}

jot_status pass_grad(struct ir_module *m, uint32_t f, const bool *wrt, uint32_t *out_f)
{
    JOT_TRY(check_scalar(ir_function(m, f)));
    return find_or_build(m, f, wrt, SEED_ONE_ALONE, out_f);
}
