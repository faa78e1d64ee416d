// SPDX-License-Identifier: Apache-2.0
// Derivative rules of the user.  The function and its rules become one node, custom_jvp or
// custom_vjp, of which the rules are bodies.
//
// What the bodies use besides their arguments becomes operands of the node, without derivatives:
// all bodies then take (arguments, hidden of f, hidden of the first rule, hidden of the second).
#include "trace/function.h"

struct ruled {
    const jot_function *f;
    struct ir_module *m;
    const struct ir_type *types; // of the arguments
    uint16_t axes;               // named, around it
    int n_in, n_out;
    struct traced body, rule[2];
    int n_hidden;        // of all bodies together
    ir_id *param;        // of the wrapper being built: arguments, then hidden
    int first_hidden[3]; // of body, rule[0], rule[1], in the hidden ones
};

static const struct traced *part(const struct ruled *r, int i)
{
    return i == 0 ? &r->body : &r->rule[i - 1];
}

static struct ir_type hidden_type(const struct ruled *r, int which, int i)
{
    const struct traced *t = part(r, which);
    const struct ir_graph *g = ir_function(r->m, t->function);
    return ir_type_of(g, g->n_params - (uint32_t)t->n_hidden + (uint32_t)i);
}

static struct ir_builder open_wrapper(struct ruled *r, const char *name)
{
    struct ir_builder b = ir_builder_make(r->m, name, IR_BUILD_PLAIN);
    int n = 0;
    for (int i = 0; i < r->n_in; i++)
        r->param[n++] = ir_param(&b, r->types[i]);
    for (int which = 0; which < 3; which++)
        for (int i = 0; i < part(r, which)->n_hidden; i++)
            r->param[n++] = ir_param(&b, hidden_type(r, which, i));
    return b;
}

// Inlines a part on the given operands and its own hidden parameters.
static void inline_part(struct ruled *r, struct ir_builder *b, int which, int n,
                        ir_id *operands, ir_id *out)
{
    const struct traced *t = part(r, which);
    for (int i = 0; i < t->n_hidden; i++)
        operands[n++] = r->param[r->n_in + r->first_hidden[which] + i];
    ir_inline(b, ir_function(r->m, t->function), operands, out);
}

static uint32_t finish(struct ir_builder *b, int n_out, const ir_id *out)
{
    for (int i = 0; i < n_out; i++)
        ir_output(b, out[i]);
    uint32_t f = ir_finish_function(b);
    if (f == IR_NONE)
        trace_fail("jot_custom_jvp", b->status, "%s", b->message);
    return f;
}

// A part over all parameters.
static uint32_t widen_part(struct ruled *r, int which)
{
    const struct traced *t = part(r, which);
    struct ir_builder b = open_wrapper(r, ir_function(r->m, t->function)->name);
    ir_id *operands = arena_array(r->m->arena, ir_id, r->n_in + r->n_hidden + 1);
    ir_id *out = arena_array(r->m->arena, ir_id, t->n_out + 1);
    memcpy(operands, r->param, sizeof *operands * (size_t)r->n_in);
    inline_part(r, &b, which, r->n_in, operands, out);
    return finish(&b, t->n_out, out);
}

// A rule that is being traced, inside of others.
struct rule_in_progress {
    const struct ruled *of;
    const struct rule_in_progress *outer;
    int depth;
};

static bool is_same_callee(const jot_callee *a, const jot_callee *b)
{
    return a->body == b->body && a->plain == b->plain && a->ctx == b->ctx;
}

static bool is_same(const struct ruled *a, const struct ruled *b)
{
    if (!is_same_callee(&a->f->callee, &b->f->callee) ||
        !is_same_callee(&a->f->rule[0], &b->f->rule[0]) || a->n_in != b->n_in)
        return false;
    for (int i = 0; i < a->n_in; i++)
        if (!ir_type_equal(a->types[i], b->types[i]))
            return false;
    return true;
}

// A rule that uses its own function with its rule would be traced for ever.
static bool trace_rule(struct ruled *r, int which, const struct ir_type *types)
{
    enum { DEEPEST = 16 };
    jot_function f = {.callee = r->f->rule[which]};
    struct trace *root = trace_top()->root;
    struct rule_in_progress rule = {.of = r, .outer = root->rule};
    rule.depth = rule.outer ? rule.outer->depth + 1 : 0;
    bool is_endless = rule.depth == DEEPEST;
    for (const struct rule_in_progress *o = rule.outer; o; o = o->outer)
        is_endless |= is_same(o->of, r);
    if (is_endless) {
        jot_place(trace_fail("jot_custom_jvp", JOT_ERR_TRACE,
                             "the rule %s of %s uses %s with this rule: call the C function",
                             f.callee.name, r->f->callee.name, r->f->callee.name),
                  r->f->rule_where);
        return false;
    }
    root->rule = &rule;
    bool ok = function_trace_in(&f, 0, r->axes, types, NULL, &r->rule[which]);
    root->rule = rule.outer;
    return ok;
}

static bool check_results(const struct ruled *r, const struct traced *t, int n,
                          const struct ir_type *want, const char *what)
{
    for (int i = 0; i < n; i++) {
        struct ir_type have = traced_out_type(t, i);
        if (!ir_type_alike(have, want[i]) && dtype_is_inexact(ir_dtype(want[i]))) {
            jot_place(trace_fail(what, JOT_ERR_SHAPE, "%s gives %s as value %d, not %s",
                                 ir_function(r->m, t->function)->name, ir_type_text(r->m, have),
                                 i, ir_type_text(r->m, want[i])),
                      r->f->rule_where);
            return false;
        }
    }
    return true;
}

static void number_hidden(struct ruled *r)
{
    r->n_hidden = 0;
    for (int which = 0; which < 3; which++) {
        r->first_hidden[which] = r->n_hidden;
        r->n_hidden += part(r, which)->n_hidden;
    }
    r->param = arena_array(r->m->arena, ir_id, r->n_in + r->n_hidden + 1);
}

static struct ir_type *out_types(const struct ruled *r)
{
    struct ir_type *types = arena_array(r->m->arena, struct ir_type, r->n_out + 1);
    for (int i = 0; i < r->n_out; i++)
        types[i] = traced_out_type(&r->body, i);
    return types;
}

static bool is_inexact(struct ir_type t) { return dtype_is_inexact(ir_dtype(t)); }

// The tangent or cotangent that the user's rule sees: a parameter, or zero for what has none.
static ir_id derivative_param(struct ir_builder *b, struct ir_type t)
{
    return is_inexact(t) ? ir_param(b, t) : IR_NONE;
}

static ir_id zero_for_none(struct ir_builder *b, ir_id v, struct ir_type t)
{
    return v == IR_NONE ? ir_zeros(b, t) : v;
}

static int keep_inexact(int n, const struct ir_type *types, ir_id *v)
{
    int kept = 0;
    for (int i = 0; i < n; i++)
        if (is_inexact(types[i]))
            v[kept++] = v[i];
    return kept;
}

// rule(x, dx) over (x, hidden, dx, d hidden), where the last are not used.
static uint32_t jvp_rule(struct ruled *r)
{
    struct ir_type *types = arena_array(r->m->arena, struct ir_type, 2 * r->n_in + 1);
    for (int i = 0; i < r->n_in; i++)
        types[i] = types[r->n_in + i] = r->types[i];
    if (!trace_rule(r, 0, types) ||
        !check_results(r, &r->rule[0], r->n_out, out_types(r), "jot_custom_jvp"))
        return IR_NONE;
    number_hidden(r);
    struct ir_builder b = open_wrapper(r, r->f->rule[0].name);
    ir_id *operands = arena_array(r->m->arena, ir_id, 2 * r->n_in + r->n_hidden + 1);
    ir_id *out = arena_array(r->m->arena, ir_id, r->n_out + 1);
    memcpy(operands, r->param, sizeof *operands * (size_t)r->n_in);
    for (int i = 0; i < r->n_in; i++)
        operands[r->n_in + i] = derivative_param(&b, r->types[i]);
    for (int which = 0; which < 3; which++)
        for (int i = 0; i < part(r, which)->n_hidden; i++)
            derivative_param(&b, hidden_type(r, which, i));
    for (int i = 0; i < r->n_in; i++)
        operands[r->n_in + i] = zero_for_none(&b, operands[r->n_in + i], r->types[i]);
    inline_part(r, &b, 1, 2 * r->n_in, operands, out);
    return finish(&b, keep_inexact(r->n_out, out_types(r), out), out);
}

// forward over (x, hidden) and backward over (residuals, hidden of backward, cotangents), which
// gives cotangents of x and zeros for what is hidden.
static bool vjp_rules(struct ruled *r, uint32_t *out_forward, uint32_t *out_backward)
{
    struct ir_type *results = out_types(r);
    if (!trace_rule(r, 0, r->types) ||
        !check_results(r, &r->rule[0], r->n_out, results, "jot_custom_vjp"))
        return false;
    int n_residuals = r->rule[0].n_out - r->n_out;
    struct ir_type *types =
        arena_array(r->m->arena, struct ir_type, n_residuals + r->n_out + 1);
    for (int i = 0; i < n_residuals; i++)
        types[i] = traced_out_type(&r->rule[0], r->n_out + i);
    memcpy(types + n_residuals, results, sizeof *types * (size_t)r->n_out);
    if (!trace_rule(r, 1, types) ||
        !check_results(r, &r->rule[1], r->n_in, r->types, "jot_custom_vjp"))
        return false;
    number_hidden(r);

    // What backward uses besides its arguments travels as residuals.
    struct ir_builder b = open_wrapper(r, r->f->rule[0].name);
    int n_extra = r->rule[1].n_hidden, n_forward = r->rule[0].n_out;
    ir_id *operands = arena_array(r->m->arena, ir_id, r->n_in + n_forward + r->n_hidden + 1);
    ir_id *out = arena_array(r->m->arena, ir_id, n_forward + r->n_in + r->n_hidden + 1);
    memcpy(operands, r->param, sizeof *operands * (size_t)r->n_in);
    inline_part(r, &b, 1, r->n_in, operands, out);
    for (int i = 0; i < n_extra; i++)
        out[n_forward + i] = r->param[r->n_in + r->first_hidden[2] + i];
    *out_forward = finish(&b, n_forward + n_extra, out);

    b = ir_builder_make(r->m, r->f->rule[1].name, IR_BUILD_PLAIN);
    ir_id *in = arena_array(r->m->arena, ir_id, n_residuals + r->n_out + n_extra + 1);
    for (int i = 0; i < n_residuals; i++)
        in[i] = ir_param(&b, types[i]);
    for (int i = 0; i < n_extra; i++)
        in[n_residuals + r->n_out + i] = ir_param(&b, hidden_type(r, 2, i));
    for (int i = 0; i < r->n_out; i++)
        in[n_residuals + i] = derivative_param(&b, results[i]);
    for (int i = 0; i < r->n_out; i++)
        in[n_residuals + i] = zero_for_none(&b, in[n_residuals + i], results[i]);
    ir_inline(&b, ir_function(r->m, r->rule[1].function), in, out);
    int n = keep_inexact(r->n_in, r->types, out);
    for (int which = 0; which < 3; which++)
        for (int i = 0; i < part(r, which)->n_hidden; i++)
            if (is_inexact(hidden_type(r, which, i)))
                out[n++] = ir_zeros(&b, hidden_type(r, which, i));
    *out_backward = finish(&b, n, out);
    return *out_forward != IR_NONE && *out_backward != IR_NONE;
}

bool function_add_rule(const jot_function *f, uint16_t axes, const struct ir_type *types,
                       struct traced *t)
{
    struct ruled r = {.f = f,
                      .axes = axes,
                      .m = trace_top()->module,
                      .types = types,
                      .n_in = callee_in(&f->callee),
                      .n_out = t->n_out,
                      .body = *t};
    uint32_t functions[3];
    int n_functions = 2;
    enum ir_op op = IR_custom_jvp;
    if (f->rule_kind == TRACE_RULE_JVP) {
        functions[1] = jvp_rule(&r);
        if (functions[1] == IR_NONE)
            return false;
    } else {
        if (!vjp_rules(&r, &functions[1], &functions[2]))
            return false;
        op = IR_custom_vjp;
        n_functions = 3;
    }
    functions[0] = widen_part(&r, 0);
    struct ir_builder b = open_wrapper(&r, f->callee.name);
    b.where = ir_where_make(r.m, f->rule_where);
    ir_id *out = arena_array(r.m->arena, ir_id, r.n_out + 1);
    ir_id first = ir_call(&b, op, n_functions, functions, r.n_in + r.n_hidden, r.param);
    for (int i = 0; i < r.n_out; i++)
        out[i] = first == IR_NONE ? first : first + (ir_id)i;
    t->function = finish(&b, r.n_out, out);
    t->n_hidden = r.n_hidden;
    t->hidden = arena_array(r.m->arena, jot_value, r.n_hidden + 1);
    for (int which = 0, n = 0; which < 3; which++)
        for (int i = 0; i < part(&r, which)->n_hidden; i++)
            t->hidden[n++] = part(&r, which)->hidden[i];
    return t->function != IR_NONE;
}
