// SPDX-License-Identifier: Apache-2.0
// Result types of nodes with bodies: signatures of the bodies must fit each other.  A tangent
// or cotangent exists for the float and complex values only and has their type.
#include "ir/infer.h"

struct signature {
    VEC(struct ir_type) types;
};

static void add_all(struct ir_module *m, struct signature *s, int n,
                    const struct ir_type *types)
{
    for (int i = 0; i < n; i++)
        vec_push(m->arena, &s->types, types[i]);
}

static void add_inexact(struct ir_module *m, struct signature *s, int n,
                        const struct ir_type *types)
{
    for (int i = 0; i < n; i++) {
        if (dtype_is_inexact(ir_dtype(types[i])))
            vec_push(m->arena, &s->types, types[i]);
    }
}

static struct signature params_of(struct ir_module *m, const struct ir_graph *f)
{
    struct signature s = {0};
    for (uint32_t i = 0; i < f->n_params; i++)
        vec_push(m->arena, &s.types, ir_type_of(f, i));
    return s;
}

static struct signature results_of(struct ir_module *m, const struct ir_graph *f)
{
    struct signature s = {0};
    for (uint32_t i = 0; i < f->outputs.count; i++)
        vec_push(m->arena, &s.types, ir_type_of(f, f->outputs.at[i]));
    return s;
}

// what is "the rule"; side is "parameter" or "result"; law says what the list should be.
static bool match(struct ir_infer *call, const char *what, const char *side,
                  const struct signature *have, const struct signature *want, const char *law)
{
    if (have->types.count != want->types.count)
        return infer_fail(call, JOT_ERR_ARGUMENT, "%s of %s has %u %ss, not %u: %s", what,
                          infer_name(call), have->types.count, side, want->types.count, law);
    for (uint32_t i = 0; i < have->types.count; i++) {
        struct ir_type a = have->types.at[i], b = want->types.at[i];
        if (!ir_type_equal(a, b))
            return infer_fail(call, a.dtype == b.dtype ? JOT_ERR_SHAPE : JOT_ERR_DTYPE,
                              "%s %u of %s of %s is %s, not %s: %s", side, i, what,
                              infer_name(call), infer_text(call, a), infer_text(call, b), law);
    }
    return true;
}

bool infer_functions(struct ir_infer *call, int n, struct ir_graph **out)
{
    const struct ir_module *m = call->b->module;
    const int64_t *ids = infer_ints(call, IR_KEY_functions, n);
    if (!ids)
        return false;
    for (int i = 0; i < n; i++) {
        if (ids[i] < 0 || ids[i] >= m->functions.count)
            return infer_fail(call, JOT_ERR_ARGUMENT, "%s of function %lld: the module has %u",
                              infer_name(call), (long long)ids[i], m->functions.count);
        out[i] = ir_function(m, (uint32_t)ids[i]);
    }
    return true;
}

static bool match_operands(struct ir_infer *call, const struct signature *params)
{
    if (params->types.count != (uint32_t)call->n_in)
        return infer_fail(call, JOT_ERR_ARGUMENT, "%s of a function of %u parameter%s with %d",
                          infer_name(call), params->types.count,
                          params->types.count == 1 ? "" : "s", call->n_in);
    for (int i = 0; i < call->n_in; i++) {
        struct ir_type a = infer_in(call, i), b = params->types.at[i];
        if (!ir_type_equal(a, b))
            return infer_fail(call, a.dtype == b.dtype ? JOT_ERR_SHAPE : JOT_ERR_DTYPE,
                              "operand %d of %s is %s and the parameter %s", i,
                              infer_name(call), infer_text(call, a), infer_text(call, b));
    }
    return true;
}

static bool check_jvp(struct ir_infer *call, const struct ir_graph *rule,
                      const struct signature *in, const struct signature *out)
{
    struct ir_module *m = call->b->module;
    struct signature params = params_of(m, rule), results = results_of(m, rule);
    struct signature want_params = {0}, want_results = {0};
    add_all(m, &want_params, (int)in->types.count, in->types.at);
    add_inexact(m, &want_params, (int)in->types.count, in->types.at);
    add_inexact(m, &want_results, (int)out->types.count, out->types.at);
    return match(call, "the rule", "parameter", &params, &want_params,
                 "primals, then tangents of the float and complex ones") &&
           match(call, "the rule", "result", &results, &want_results,
                 "tangents of the float and complex results");
}

static bool check_vjp(struct ir_infer *call, const struct ir_graph *forward,
                      const struct ir_graph *backward, const struct signature *in,
                      const struct signature *out)
{
    struct ir_module *m = call->b->module;
    struct signature params = params_of(m, forward), all = results_of(m, forward);
    struct signature back_params = params_of(m, backward),
                     back_results = results_of(m, backward);
    struct signature head = {0}, want_params = {0}, want_results = {0};
    if (!match(call, "the forward function", "parameter", &params, in, "those of the function"))
        return false;
    int n_out = (int)out->types.count, n_all = (int)all.types.count;
    if (n_all < n_out)
        return infer_fail(
            call, JOT_ERR_ARGUMENT,
            "the forward function of custom_vjp has %d results: at least the %d of "
            "the function, then residuals",
            n_all, n_out);
    add_all(m, &head, n_out, all.types.at);
    add_all(m, &want_params, n_all - n_out, n_all > n_out ? all.types.at + n_out : NULL);
    add_inexact(m, &want_params, n_out, out->types.at);
    add_inexact(m, &want_results, (int)in->types.count, in->types.at);
    return match(call, "the forward function", "result", &head, out,
                 "those of the function, then residuals") &&
           match(call, "the backward function", "parameter", &back_params, &want_params,
                 "residuals, then cotangents of the float and complex results") &&
           match(call, "the backward function", "result", &back_results, &want_results,
                 "cotangents of the float and complex parameters");
}

static bool set_results(struct ir_infer *call, const struct signature *results)
{
    call->n_out = (int)results->types.count;
    if (call->n_out > 1)
        call->types = results->types.at;
    else if (call->n_out == 1)
        call->types[0] = results->types.at[0];
    return true;
}

bool infer_call(struct ir_infer *call)
{
    struct ir_module *m = call->b->module;
    struct ir_graph *f[3];
    int n = call->op == IR_custom_vjp ? 3 : call->op == IR_custom_jvp ? 2 : 1;
    if (!infer_functions(call, n, f))
        return false;
    struct signature in = params_of(m, f[0]), out = results_of(m, f[0]);
    if (!match_operands(call, &in))
        return false;
    if (call->op == IR_custom_jvp && !check_jvp(call, f[1], &in, &out))
        return false;
    if (call->op == IR_custom_vjp && !check_vjp(call, f[1], f[2], &in, &out))
        return false;
    return set_results(call, &out);
}

bool infer_linear_call(struct ir_infer *call)
{
    struct ir_module *m = call->b->module;
    struct ir_graph *f[2];
    if (!infer_functions(call, 2, f))
        return false;
    const int64_t *counts = infer_ints(call, IR_KEY_counts, 1);
    if (!counts)
        return false;
    struct signature in = params_of(m, f[0]), out = results_of(m, f[0]);
    struct signature back_params = params_of(m, f[1]), back_results = results_of(m, f[1]);
    if (!match_operands(call, &in))
        return false;
    if (counts[0] < 0 || counts[0] > call->n_in)
        return infer_fail(call, JOT_ERR_ARGUMENT,
                          "linear_call of %d operands with %lld residuals", call->n_in,
                          (long long)counts[0]);
    int n_residuals = (int)counts[0];
    struct signature want_params = {0}, want_results = {0};
    add_all(m, &want_params, n_residuals, in.types.at);
    add_all(m, &want_params, (int)out.types.count, out.types.at);
    if (call->n_in > n_residuals)
        add_all(m, &want_results, call->n_in - n_residuals, in.types.at + n_residuals);
    return match(call, "the backward function", "parameter", &back_params, &want_params,
                 "residuals, then cotangents of the results") &&
           match(call, "the backward function", "result", &back_results, &want_results,
                 "cotangents of the linear operands") &&
           set_results(call, &out);
}

// All three functions take residuals, then values of the types of b, and give values of those types.
bool infer_linear_solve(struct ir_infer *call)
{
    static const char *const names[] = {"solve", "matvec", "the transposed solve"};
    struct ir_module *m = call->b->module;
    struct ir_graph *f[3];
    const int64_t *counts = infer_ints(call, IR_KEY_counts, 1);
    if (!counts || !infer_functions(call, 3, f))
        return false;
    if (counts[0] < 0 || counts[0] > call->n_in)
        return infer_fail(call, JOT_ERR_ARGUMENT,
                          "linear_solve of %d operands with %lld residuals", call->n_in,
                          (long long)counts[0]);
    struct signature in = {0}, out = {0};
    for (int i = 0; i < call->n_in; i++) {
        struct ir_type t = infer_in(call, i);
        add_all(m, &in, 1, &t);
        if (i < counts[0])
            continue;
        if (!dtype_is_inexact(ir_dtype(t)))
            return infer_fail(call, JOT_ERR_DTYPE, "operand %d of linear_solve is %s", i,
                              infer_text(call, t));
        add_all(m, &out, 1, &t);
    }
    for (int i = 0; i < 3; i++) {
        struct signature params = params_of(m, f[i]), results = results_of(m, f[i]);
        if (!match(call, names[i], "parameter", &params, &in,
                   "residuals, then values like those of b") ||
            !match(call, names[i], "result", &results, &out, "values like those of b"))
            return false;
    }
    return set_results(call, &out);
}

bool infer_barrier(struct ir_infer *call)
{
    call->n_out = call->n_in;
    if (call->n_in > 1)
        call->types = arena_array(call->b->module->arena, struct ir_type, call->n_in);
    for (int i = 0; i < call->n_in; i++)
        call->types[i] = infer_in(call, i);
    return true;
}
