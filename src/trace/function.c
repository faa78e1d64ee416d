// SPDX-License-Identifier: Apache-2.0
// Function values: making them, checking them, calling the C function under them.
#include "trace/function.h"

#include "trace/opened.h"

#include <stdio.h>

#define GUARD_SLOTS 8

const char *const trace_transform_names[] = {
    [TRACE_GRAD] = "jot_grad",
    [TRACE_VALUE_AND_GRAD] = "jot_value_and_grad",
    [TRACE_JVP] = "jot_jvp",
    [TRACE_VJP] = "jot_vjp",
    [TRACE_JACFWD] = "jot_jacfwd",
    [TRACE_JACREV] = "jot_jacrev",
    [TRACE_HESSIAN] = "jot_hessian",
    [TRACE_VMAP] = "jot_vmap",
    [TRACE_CHECKPOINT] = "jot_checkpoint",
};

// ---------------------------------------------------------------------------------------
// Making

jot_function jot_function_trees(const char *name, const char *where, jot_body *f, int n_args,
                                const uint16_t *arg_leaves, int n_results,
                                const uint16_t *result_leaves, void *ctx)
{
    return (jot_function){.callee = {.name = name,
                                     .where = where,
                                     .body = f,
                                     .ctx = ctx,
                                     .arg_leaves = arg_leaves,
                                     .result_leaves = result_leaves,
                                     .n_args = (int16_t)n_args,
                                     .n_results = (int16_t)n_results}};
}

jot_function jot_function_uniform(const char *name, const char *where, jot_body *f, int n_in,
                                  int n_out, void *ctx)
{
    return jot_function_trees(name, where, f, n_in, NULL, n_out, NULL, ctx);
}

jot_function jot_function_plain(const char *name, const char *where, int n_args,
                                void (*f)(void))
{
    return (jot_function){.callee = {.name = name,
                                     .where = where,
                                     .plain = f,
                                     .n_args = (int16_t)n_args,
                                     .n_results = 1}};
}

static uint8_t read_list(const int *list, int8_t *axis)
{
    int n = 0;
    for (; list && *list != JOT_END && n < JOT_MAX_ARGUMENTS; list++)
        axis[n++] = *list == JOT_NONE             ? TRACE_AXIS_NONE
                    : *list < -120 || *list > 120 ? TRACE_AXIS_BAD
                                                  : (int8_t)*list;
    return (uint8_t)n;
}

static jot_function transformed(jot_function f, enum trace_transform kind, const char *where,
                                const int *list)
{
    if (f.n_transforms >= JOT_MAX_TRANSFORMS) {
        f.n_transforms = JOT_MAX_TRANSFORMS + 1;
        return f;
    }
    jot_transform *t = &f.transform[f.n_transforms++];
    *t = (jot_transform){.kind = (uint8_t)kind, .where = where};
    t->n = read_list(list, t->axis);
    return f;
}

jot_function jot_grad_of(jot_function f, const char *where, const int *args)
{
    return transformed(f, TRACE_GRAD, where, args);
}

jot_function jot_value_and_grad_of(jot_function f, const char *where, const int *args)
{
    return transformed(f, TRACE_VALUE_AND_GRAD, where, args);
}

jot_function jot_jvp_of(jot_function f, const char *where, const int *args)
{
    return transformed(f, TRACE_JVP, where, args);
}

jot_function jot_vjp_of(jot_function f, const char *where, const int *args)
{
    return transformed(f, TRACE_VJP, where, args);
}

jot_function jot_jacfwd_of(jot_function f, const char *where, const int *args)
{
    return transformed(f, TRACE_JACFWD, where, args);
}

jot_function jot_jacrev_of(jot_function f, const char *where, const int *args)
{
    return transformed(f, TRACE_JACREV, where, args);
}

jot_function jot_hessian_of(jot_function f, const char *where, const int *args)
{
    return transformed(f, TRACE_HESSIAN, where, args);
}

jot_function jot_vmap_of(jot_function f, const char *where, const int *axes)
{
    return transformed(f, TRACE_VMAP, where, axes);
}

jot_function jot_vmap_axes_of(jot_function f, const char *where, const int *in_axes,
                              const int *out_axes)
{
    f = transformed(f, TRACE_VMAP, where, in_axes);
    if (f.n_transforms <= JOT_MAX_TRANSFORMS) {
        jot_transform *t = &f.transform[f.n_transforms - 1];
        t->n_out = read_list(out_axes, t->out_axis);
    }
    return f;
}

jot_function jot_checkpoint_of(jot_function f, const char *where)
{
    return transformed(f, TRACE_CHECKPOINT, where, NULL);
}

// A number of rules that no function has tells function_problem what was wrong.
enum { RULE_ON_TRANSFORMED = 100, RULE_TRANSFORMED };

static jot_function with_rules(jot_function f, enum trace_rule kind, const char *where,
                               const jot_function *first, const jot_function *second)
{
    f.rule_where = where;
    f.rule_kind = (uint16_t)kind;
    if (f.n_transforms || f.rule[0].n_args)
        f.rule_kind = RULE_ON_TRANSFORMED;
    else if (first->n_transforms || (second && second->n_transforms))
        f.rule_kind = RULE_TRANSFORMED;
    f.rule[0] = first->callee;
    if (second)
        f.rule[1] = second->callee;
    return f;
}

jot_function jot_custom_jvp_of(jot_function f, jot_function rule, const char *where)
{
    return with_rules(f, TRACE_RULE_JVP, where, &rule, NULL);
}

jot_function jot_custom_vjp_of(jot_function f, jot_function forward, jot_function backward,
                               const char *where)
{
    return with_rules(f, TRACE_RULE_VJP, where, &forward, &backward);
}

// ---------------------------------------------------------------------------------------
// Counting

int callee_leaves(const jot_callee *c, int arg)
{
    return c->arg_leaves ? c->arg_leaves[arg] : 1;
}

int callee_first(const jot_callee *c, int arg)
{
    int n = 0;
    for (int i = 0; i < arg; i++)
        n += callee_leaves(c, i);
    return n;
}

int callee_in(const jot_callee *c) { return callee_first(c, c->n_args); }

int callee_out(const jot_callee *c)
{
    int n = 0;
    for (int i = 0; i < c->n_results; i++)
        n += c->result_leaves ? c->result_leaves[i] : 1;
    return n;
}

// The arguments of a transform are those of the C function; what jvp and vjp add behind them is
// not numbered.
int transform_mask(const jot_function *f, int level, bool all_when_empty, bool *mask)
{
    const jot_transform *t = &f->transform[level - 1];
    int n_in = function_in(f, level - 1), n = 0;
    for (int i = 0; i < n_in; i++)
        mask[i] = t->n == 0 && (all_when_empty || i < callee_leaves(&f->callee, 0));
    for (int k = 0; k < t->n; k++)
        for (int i = 0; i < callee_leaves(&f->callee, t->axis[k]); i++)
            mask[callee_first(&f->callee, t->axis[k]) + i] = true;
    for (int i = 0; i < n_in; i++)
        n += mask[i];
    return n;
}

// Values in each argument that a map of f after `level` of its transforms sees: those of the C
// function, then what jvp and vjp have put behind them.  Returns how many there are.
static int argument_sizes(const jot_function *f, int level, int most, int *size)
{
    const jot_callee *c = &f->callee;
    int n = 0;
    for (int i = 0; i < c->n_args && n < most; i++)
        size[n++] = callee_leaves(c, i);
    for (int l = 1; l <= level; l++) {
        const jot_transform *t = &f->transform[l - 1];
        int before = n, added = t->kind == TRACE_JVP ? (t->n ? t->n : before) : 0;
        bool has_results = l == 1 && c->result_leaves;
        if (t->kind == TRACE_VJP)
            added = has_results ? c->n_results : function_out(f, l - 1);
        for (int i = 0; i < added && n < most; i++)
            size[n++] = t->kind == TRACE_VJP ? (has_results ? c->result_leaves[i] : 1)
                        : t->n               ? callee_leaves(c, t->axis[i])
                                             : size[i];
    }
    return n;
}

int function_argument(const jot_function *f, int level, int i)
{
    int size[JOT_MAX_ARGUMENTS], arg = 0;
    int n = argument_sizes(f, level - 1, JOT_MAX_ARGUMENTS, size);
    for (; arg < n && i >= size[arg]; arg++)
        i -= size[arg];
    return arg;
}

int function_mapped_axis(const jot_function *f, int level, int i)
{
    const jot_transform *t = &f->transform[level - 1];
    int arg = function_argument(f, level, i);
    return arg < t->n ? t->axis[arg] : 0;
}

static int listed_leaves(const jot_function *f, int level, bool all_when_empty)
{
    const jot_transform *t = &f->transform[level - 1];
    if (t->n == 0)
        return all_when_empty ? function_in(f, level - 1) : callee_leaves(&f->callee, 0);
    int n = 0;
    for (int k = 0; k < t->n; k++)
        n += callee_leaves(&f->callee, t->axis[k]);
    return n;
}

int function_in(const jot_function *f, int level)
{
    if (level == 0)
        return callee_in(&f->callee);
    int n = function_in(f, level - 1);
    if (f->transform[level - 1].kind == TRACE_JVP)
        n += listed_leaves(f, level, true);
    if (f->transform[level - 1].kind == TRACE_VJP)
        n += function_out(f, level - 1);
    return n;
}

int function_out(const jot_function *f, int level)
{
    if (level == 0)
        return callee_out(&f->callee);
    int inner = function_out(f, level - 1);
    switch ((enum trace_transform)f->transform[level - 1].kind) {
    case TRACE_VMAP:
    case TRACE_CHECKPOINT:
        return inner;
    case TRACE_JVP:
        return 2 * inner;
    case TRACE_VJP:
        return inner + listed_leaves(f, level, true);
    case TRACE_GRAD:
        return listed_leaves(f, level, false);
    case TRACE_VALUE_AND_GRAD:
        return 1 + listed_leaves(f, level, false);
    case TRACE_JACFWD:
    case TRACE_JACREV:
        return inner * listed_leaves(f, level, false);
    case TRACE_HESSIAN:
        return listed_leaves(f, level, false) * listed_leaves(f, level, false);
    }
    return inner;
}

// ---------------------------------------------------------------------------------------
// Checking

static const char *rule_problem(const jot_function *f, char *text, size_t size)
{
    const jot_callee *c = &f->callee, *r = f->rule;
    const char *name = f->rule_kind == TRACE_RULE_VJP ? "jot_custom_vjp" : "jot_custom_jvp";
    int in = callee_in(c), out = callee_out(c);
    if (f->rule_kind == RULE_ON_TRANSFORMED)
        snprintf(text, size, "%s: a derivative rule goes on %s before any transform",
                 f->rule_where, c->name);
    else if (f->rule_kind == RULE_TRANSFORMED)
        snprintf(text, size, "%s: the rules of %s must not be transformed", f->rule_where,
                 c->name);
    else if (f->rule_kind == TRACE_RULE_JVP && (callee_in(r) != 2 * in || callee_out(r) != out))
        snprintf(text, size,
                 "%s: %s: %s takes %d values and gives %d, but the rule of %s needs %d "
                 "and %d",
                 f->rule_where, name, r->name, callee_in(r), callee_out(r), c->name, 2 * in,
                 out);
    else if (f->rule_kind == TRACE_RULE_VJP && (callee_in(r) != in || callee_out(r) < out))
        snprintf(text, size,
                 "%s: %s: %s takes %d values and gives %d, but %s takes %d and gives %d",
                 f->rule_where, name, r->name, callee_in(r), callee_out(r), c->name, in, out);
    else if (f->rule_kind == TRACE_RULE_VJP &&
             (callee_in(r + 1) != callee_out(r) || callee_out(r + 1) != in))
        snprintf(text, size, "%s: %s: %s takes %d values and gives %d, not %d and %d",
                 f->rule_where, name, r[1].name, callee_in(r + 1), callee_out(r + 1),
                 callee_out(r), in);
    else
        return NULL;
    return text;
}

static const char *transform_problem(const jot_function *f, const jot_transform *t, char *text,
                                     size_t room)
{
    const jot_callee *c = &f->callee;
    const char *name = trace_transform_names[t->kind];
    if (t->kind == TRACE_VMAP) {
        int size[JOT_MAX_ARGUMENTS];
        int all = argument_sizes(f, (int)(t - f->transform), JOT_MAX_ARGUMENTS, size);
        char more[64] = "";
        if (t->n == 0 || t->n == c->n_args || t->n == all)
            return NULL;
        if (all > c->n_args)
            snprintf(more, sizeof more, ", or %d with tangents and cotangents", all);
        return snprintf(text, room, "%s: %s: %d axes for the %d arguments of %s%s", t->where,
                        name, t->n, c->n_args, c->name, more),
               text;
    }
    for (int i = 0; i < t->n; i++)
        if (t->axis[i] < 0 || t->axis[i] >= c->n_args)
            return snprintf(text, room, "%s: %s: no argument %d: %s takes %d (numbered from 0)",
                            t->where, name, t->axis[i], c->name, c->n_args),
                   text;
    return NULL;
}

const char *function_problem(const jot_function *f)
{
    static _Thread_local char text[512];
    const jot_callee *c = &f->callee;
    if (!c->body && !c->plain)
        return "a jot_function that was never set: make it by jot_fn, JOT_FUNCTION or "
               "jot_function_make";
    if (!c->name || !c->where)
        return "a jot_function without a name or a place: both are texts";
    if (c->plain && (c->n_args < 1 || c->n_args > 8))
        return snprintf(text, sizeof text, "%s: %s takes %d values: jot_fn is for 1 to 8",
                        c->where, c->name, c->n_args),
               text;
    if (f->n_transforms > JOT_MAX_TRANSFORMS)
        return snprintf(text, sizeof text, "%s: %s: more than %d transforms, one on the other",
                        c->where, c->name, JOT_MAX_TRANSFORMS),
               text;
    if (f->rule_kind && rule_problem(f, text, sizeof text))
        return text;
    for (int i = 0; i < f->n_transforms; i++)
        if (transform_problem(f, &f->transform[i], text, sizeof text))
            return text;
    return NULL;
}

// ---------------------------------------------------------------------------------------
// Calling

static jot_value call_plain(const jot_callee *c, const jot_value *v)
{
    typedef jot_value V;
    void (*f)(void) = c->plain;
    switch (c->n_args) {
    case 1:
        return ((V(*)(V))f)(v[0]);
    case 2:
        return ((V(*)(V, V))f)(v[0], v[1]);
    case 3:
        return ((V(*)(V, V, V))f)(v[0], v[1], v[2]);
    case 4:
        return ((V(*)(V, V, V, V))f)(v[0], v[1], v[2], v[3]);
    case 5:
        return ((V(*)(V, V, V, V, V))f)(v[0], v[1], v[2], v[3], v[4]);
    case 6:
        return ((V(*)(V, V, V, V, V, V))f)(v[0], v[1], v[2], v[3], v[4], v[5]);
    case 7:
        return ((V(*)(V, V, V, V, V, V, V))f)(v[0], v[1], v[2], v[3], v[4], v[5], v[6]);
    default:
        return ((V(*)(V, V, V, V, V, V, V, V))f)(v[0], v[1], v[2], v[3], v[4], v[5], v[6],
                                                 v[7]);
    }
}

static void close_what_is_open(const jot_callee *c, struct trace *t)
{
    if (trace_top() == t)
        return;
    const char *where = trace_top()->where;
    bool is_scope = trace_top()->kind == TRACE_SCOPE;
    trace_end_inside(t);
    jot_place(trace_fail(c->name, JOT_ERR_TRACE,
                         "leaves %s open (%s): close it before returning",
                         is_scope ? "a scope" : "a block", where),
              c->where);
}

static void check_guards(const jot_callee *c, int n_out, const jot_value *out)
{
    for (int k = n_out; k < n_out + GUARD_SLOTS; k++)
        if (out[k].trace) {
            jot_place(trace_fail(c->name, JOT_ERR_TRACE,
                                 "sets output %d, but it has %d (numbered from 0)", k, n_out),
                      c->where);
            return;
        }
}

const char *callee_place(const jot_callee *c)
{
    return strcmp(c->where, c->name) ? c->where : NULL;
}

void callee_call(const jot_callee *c, const jot_value *in, jot_value *out)
{
    struct trace *t = trace_top();
    int n_in = callee_in(c), n_out = callee_out(c);
    jot_value *i = arena_array(t->module->arena, jot_value, n_in + GUARD_SLOTS);
    jot_value *o = arena_array(t->module->arena, jot_value, n_out + GUARD_SLOTS);
    memcpy(i, in, (size_t)n_in * sizeof *i);
    for (int k = n_in; k < n_in + GUARD_SLOTS; k++)
        i[k] = (jot_value){TRACE_GUARD_SERIAL, (uint32_t)n_in << 16 | (uint32_t)k};
    if (c->body)
        c->body(i, o, c->ctx);
    else
        o[0] = call_plain(c, i);
    rt_frame_return(&t->frame);
    close_what_is_open(c, t);
    for (int k = 0; k < n_out; k++) {
        if (o[k].trace == 0 && o[k].id == 0)
            out[k] =
                trace_fail(c->name, JOT_ERR_TRACE, "output %d of %d was not set", k, n_out);
        else
            out[k] = trace_import(c->name, o[k]);
        if (trace_is_error(out[k]) && callee_place(c))
            jot_place(out[k], c->where);
    }
    check_guards(c, n_out, o);
}
