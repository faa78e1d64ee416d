// SPDX-License-Identifier: Apache-2.0
// Function values: making them, checking them, calling the C function under them.
#include "trace/function.h"

#include "base/memory.h"
#include "trace/interned.h"
#include "trace/named.h"
#include "trace/opened.h"

#include "jot/parallel.h"

#include <limits.h>
#include <stdio.h>

#define GUARD_SLOTS (1 << TRACE_GUARD_BITS)
#define PLAIN_MOST 32 // arguments of jot_fn

const char *const trace_transform_names[] = {
    [TRACE_GRAD] = "jot_grad",
    [TRACE_VALUE_AND_GRAD] = "jot_value_and_grad",
    [TRACE_JVP] = "jot_jvp",
    [TRACE_VJP] = "jot_vjp",
    [TRACE_JACFWD] = "jot_jacfwd",
    [TRACE_JACREV] = "jot_jacrev",
    [TRACE_HESSIAN] = "jot_hessian",
    [TRACE_VMAP] = "jot_vmap",
    [TRACE_PMAP] = "jot_pmap",
    [TRACE_SHARD_MAP] = "jot_shard_map",
    [TRACE_CHECKPOINT] = "jot_checkpoint",
    [TRACE_NO_MEMORY] = "",
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
                                     .n_args = n_args,
                                     .n_results = n_results}};
}

jot_function jot_function_uniform(const char *name, const char *where, jot_body *f, int n_in,
                                  int n_out, void *ctx)
{
    return jot_function_trees(name, where, f, n_in, NULL, n_out, NULL, ctx);
}

jot_function jot_function_plain(const char *name, const char *where, int n_args,
                                void (*f)(void))
{
    return (jot_function){
        .callee = {.name = name, .where = where, .plain = f, .n_args = n_args, .n_results = 1}};
}

// More values than anyone has are so many.
#define MOST_VALUES ((int)TRACE_MOST_ENTRIES)

// Stands for the transforms of a function that memory was out for.
static const jot_transform no_memory = {.kind = TRACE_NO_MEMORY, .where = ""};

static size_t count_list(const int *list)
{
    size_t n = 0;
    while (list && list[n] != JOT_END && n < INT_MAX)
        n++;
    return n;
}

// False when memory is out.
static bool keep_list(const int *list, int *out_n, const int **out)
{
    size_t n = count_list(list);
    *out_n = (int)n;
    *out = n ? interned(list, n * sizeof *list) : NULL;
    return *out || n == 0;
}

// A copy of the texts that lives as long as the process; NULL when memory is out.
static const char *const *keep_texts(int count, const char *const *texts)
{
    size_t n = count < 0 || count == MOST_VALUES ? 0 : (size_t)count;
    const char **kept = memory_allocate_zeroed((n + 1) * sizeof *kept);
    const void *all = NULL;
    bool ok = kept != NULL;
    for (size_t i = 0; ok && i < n; i++) {
        const char *text = texts[i] ? texts[i] : "";
        kept[i] = interned(text, strlen(text) + 1);
        ok = kept[i] != NULL;
    }
    if (ok)
        all = interned(kept, (n + 1) * sizeof *kept);
    memory_release(kept);
    return all;
}

// f with one more transform, whose texts and lists are kept.
static jot_function with_transform(jot_function f, jot_transform t, const int *list,
                                   const int *out_list)
{
    if (f.n_transforms && f.transform == &no_memory)
        return f;
    const jot_transform *all = NULL;
    size_t n = (size_t)f.n_transforms + 1;
    jot_transform *made = memory_allocate_zeroed(n * sizeof *made);
    if (made) {
        jot_transform *last = &made[n - 1];
        if (n > 1)
            memcpy(made, f.transform, (n - 1) * sizeof *made);
        last->kind = t.kind;
        last->where = t.where ? t.where : trace_transform_name(&t);
        last->mesh = t.mesh;
        last->n_split_in = t.n_split_in;
        last->n_split_out = t.n_split_out;
        bool ok = keep_list(list, &last->n, &last->axis) &&
                  keep_list(out_list, &last->n_out, &last->out_axis);
        if (ok && t.name)
            ok = (last->name = interned(t.name, strlen(t.name) + 1)) != NULL;
        if (ok && t.kind == TRACE_SHARD_MAP)
            ok = (last->split_in = keep_texts(t.n_split_in, t.split_in)) &&
                 (last->split_out = keep_texts(t.n_split_out, t.split_out));
        if (ok)
            all = interned(made, n * sizeof *made);
    }
    memory_release(made);
    f.transform = all ? all : &no_memory;
    f.n_transforms = all ? (int)n : 1;
    return f;
}

static jot_function transformed(jot_function f, enum trace_transform kind, const char *where,
                                const int *list, const int *out_list)
{
    return with_transform(f, (jot_transform){.kind = (int)kind, .where = where}, list,
                          out_list);
}

jot_function jot_grad_of(jot_function f, const char *where, const int *args)
{
    return transformed(f, TRACE_GRAD, where, args, NULL);
}

jot_function jot_value_and_grad_of(jot_function f, const char *where, const int *args)
{
    return transformed(f, TRACE_VALUE_AND_GRAD, where, args, NULL);
}

jot_function jot_jvp_of(jot_function f, const char *where, const int *args)
{
    return transformed(f, TRACE_JVP, where, args, NULL);
}

jot_function jot_vjp_of(jot_function f, const char *where, const int *args)
{
    return transformed(f, TRACE_VJP, where, args, NULL);
}

jot_function jot_jacfwd_of(jot_function f, const char *where, const int *args)
{
    return transformed(f, TRACE_JACFWD, where, args, NULL);
}

jot_function jot_jacrev_of(jot_function f, const char *where, const int *args)
{
    return transformed(f, TRACE_JACREV, where, args, NULL);
}

jot_function jot_hessian_of(jot_function f, const char *where, const int *args)
{
    return transformed(f, TRACE_HESSIAN, where, args, NULL);
}

jot_function jot_vmap_of(jot_function f, const char *where, const int *axes)
{
    return transformed(f, TRACE_VMAP, where, axes, NULL);
}

jot_function jot_vmap_axes_of(jot_function f, const char *where, const int *in_axes,
                              const int *out_axes)
{
    return transformed(f, TRACE_VMAP, where, in_axes, out_axes);
}

jot_function jot_vmap_named_of(jot_function f, const char *name, const char *where,
                               const int *in_axes, const int *out_axes)
{
    jot_transform t = {.kind = TRACE_VMAP, .where = where, .name = name ? name : ""};
    return with_transform(f, t, in_axes, out_axes);
}

jot_function jot_pmap_of(jot_function f, const jot_mesh *mesh, const char *name,
                         const char *where, const int *in_axes, const int *out_axes)
{
    jot_transform t = {
        .kind = TRACE_PMAP, .where = where, .name = name ? name : "", .mesh = mesh};
    return with_transform(f, t, in_axes, out_axes);
}

jot_function jot_shard_map_of(jot_function f, const jot_mesh *mesh, const char *where,
                              size_t n_in, const char *const *in, size_t n_out,
                              const char *const *out)
{
    bool fits = n_in < TRACE_MOST_ENTRIES && n_out < TRACE_MOST_ENTRIES;
    jot_transform t = {.kind = TRACE_SHARD_MAP,
                       .where = where,
                       .mesh = mesh,
                       .split_in = in,
                       .split_out = out,
                       .n_split_in = !in    ? -1
                                     : fits ? (int)n_in
                                            : MOST_VALUES,
                       .n_split_out = !out   ? -1
                                      : fits ? (int)n_out
                                             : MOST_VALUES};
    return with_transform(f, t, NULL, NULL);
}

jot_function jot_checkpoint_of(jot_function f, const char *where)
{
    return transformed(f, TRACE_CHECKPOINT, where, NULL, NULL);
}

// A number of rules that no function has tells function_problem what was wrong.
enum { RULE_ON_TRANSFORMED = 100, RULE_TRANSFORMED };

static jot_function with_rules(jot_function f, enum trace_rule kind, const char *where,
                               const jot_function *first, const jot_function *second)
{
    f.rule_where = where;
    f.rule_kind = (int)kind;
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

static int bounded(int64_t n) { return n < MOST_VALUES ? (int)n : MOST_VALUES; }

int callee_first(const jot_callee *c, int arg)
{
    int64_t n = 0;
    for (int i = 0; i < arg && n < MOST_VALUES; i++)
        n += callee_leaves(c, i);
    return bounded(n);
}

int callee_in(const jot_callee *c) { return callee_first(c, c->n_args); }

int callee_out(const jot_callee *c)
{
    int64_t n = 0;
    for (int i = 0; i < c->n_results && n < MOST_VALUES; i++)
        n += c->result_leaves ? c->result_leaves[i] : 1;
    return bounded(n);
}

// How many values f takes and gives.
struct counts {
    int in, out;
};

static int listed_leaves(const jot_function *f, const jot_transform *t, int all)
{
    if (t->n == 0)
        return all;
    int64_t n = 0;
    for (int k = 0; k < t->n && n < MOST_VALUES; k++)
        n += callee_leaves(&f->callee, t->axis[k]);
    return bounded(n);
}

static struct counts count_values(const jot_function *f, int level)
{
    struct counts c = {callee_in(&f->callee), callee_out(&f->callee)};
    for (int l = 0; l < level; l++) {
        const jot_transform *t = &f->transform[l];
        int64_t in = c.in, out = c.out;
        bool lists = !trace_is_map(t) && f->callee.n_args;
        int64_t some = lists ? listed_leaves(f, t, callee_leaves(&f->callee, 0)) : 0;
        int64_t all = lists ? listed_leaves(f, t, c.in) : 0;
        switch ((enum trace_transform)t->kind) {
        case TRACE_VMAP:
        case TRACE_PMAP:
        case TRACE_SHARD_MAP:
        case TRACE_CHECKPOINT:
        case TRACE_NO_MEMORY:
            break;
        case TRACE_JVP:
            in += all;
            out *= 2;
            break;
        case TRACE_VJP:
            in += out;
            out += all;
            break;
        case TRACE_GRAD:
            out = some;
            break;
        case TRACE_VALUE_AND_GRAD:
            out = 1 + some;
            break;
        case TRACE_JACFWD:
        case TRACE_JACREV:
            out *= some;
            break;
        case TRACE_HESSIAN:
            out = some * some;
            break;
        }
        c = (struct counts){bounded(in), bounded(out)};
    }
    return c;
}

int function_in(const jot_function *f, int level) { return count_values(f, level).in; }

int function_out(const jot_function *f, int level) { return count_values(f, level).out; }

// The arguments of a transform are those of the C function; what jvp and vjp add behind them is
// not numbered.
int transform_listed(const jot_function *f, int level, bool all_when_empty, int *listed)
{
    const jot_transform *t = &f->transform[level - 1];
    int n = 0, all = 0;
    if (t->n == 0 && f->callee.n_args)
        all = all_when_empty ? function_in(f, level - 1) : callee_leaves(&f->callee, 0);
    for (; n < all; n++)
        listed[n] = n;
    for (int k = 0; k < t->n; k++)
        for (int i = 0; i < callee_leaves(&f->callee, t->axis[k]); i++)
            listed[n++] = callee_first(&f->callee, t->axis[k]) + i;
    return n;
}

// Results whose cotangents jot_vjp puts behind the arguments: a tree is one, if it is the C function's.
static int n_cotangents(const jot_function *f, int level)
{
    return level == 1 && f->callee.result_leaves ? f->callee.n_results
                                                 : function_out(f, level - 1);
}

// The arguments that a map of f after `level` of its transforms sees: those of the C function, then
// what jvp and vjp have put behind them.
static int n_arguments(const jot_function *f, int level)
{
    int n = f->callee.n_args;
    for (int l = 1; l <= level; l++) {
        const jot_transform *t = &f->transform[l - 1];
        if (t->kind == TRACE_JVP)
            n += t->n ? t->n : n;
        if (t->kind == TRACE_VJP)
            n += n_cotangents(f, l);
        n = bounded(n);
    }
    return n;
}

// Values in argument k of these.
static int argument_size(const jot_function *f, int level, int k)
{
    const jot_callee *c = &f->callee;
    for (; level > 0; level--) {
        int before = n_arguments(f, level - 1);
        const jot_transform *t = &f->transform[level - 1];
        if (k < before)
            continue;
        k -= before;
        if (t->kind == TRACE_VJP)
            return level == 1 && c->result_leaves ? c->result_leaves[k] : 1;
        if (t->n)
            return callee_leaves(c, t->axis[k]);
    }
    return callee_leaves(c, k);
}

int function_argument(const jot_function *f, int level, int i)
{
    int arg = 0, n = n_arguments(f, level - 1);
    for (; arg < n; arg++) {
        int size = argument_size(f, level - 1, arg);
        if (i < size)
            break;
        i -= size;
    }
    return arg;
}

int function_mapped_axis(const jot_function *f, int level, int i)
{
    const jot_transform *t = &f->transform[level - 1];
    int arg = function_argument(f, level, i);
    return arg < t->n ? t->axis[arg] : 0;
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
    if (t->kind == TRACE_SHARD_MAP) {
        int all = n_arguments(f, (int)(t - f->transform)),
            n_out = function_out(f, (int)(t - f->transform));
        if (!t->mesh)
            return snprintf(text, room, "%s: %s of %s: mesh is NULL", t->where, name, c->name),
                   text;
        if (t->n_split_in < 0 || t->n_split_out < 0)
            return snprintf(text, room, "%s: %s of %s: %s is NULL", t->where, name, c->name,
                            t->n_split_in < 0 ? "in" : "out"),
                   text;
        if (t->n_split_in != all || t->n_split_out != n_out)
            return snprintf(
                       text, room,
                       "%s: %s: %d and %d splits for the %d arguments and %d results of %s",
                       t->where, name, t->n_split_in, t->n_split_out, all, n_out, c->name),
                   text;
        return NULL;
    }
    if (trace_is_map(t)) {
        int all = n_arguments(f, (int)(t - f->transform));
        char more[64] = "";
        if (t->name && !trace_is_axis_name(t->name))
            return snprintf(text, room,
                            "%s: %s: the name \"%.60s\" of an axis is NULL, or not letters, "
                            "digits and _",
                            t->where, name, t->name),
                   text;
        if (t->n == 0 || t->n == c->n_args || t->n == all)
            return NULL;
        if (all > c->n_args)
            snprintf(more, sizeof more, ", or %d with tangents and cotangents", all);
        return snprintf(text, room, "%s: %s: %d axes for the %d arguments of %s%s", t->where,
                        name, t->n, c->n_args, c->name, more),
               text;
    }
    for (int i = 0; i < t->n; i++) {
        if (t->axis[i] < 0 || t->axis[i] >= c->n_args)
            return snprintf(text, room, "%s: %s: no argument %d: %s takes %d (numbered from 0)",
                            t->where, name, t->axis[i], c->name, c->n_args),
                   text;
        for (int k = 0; k < i; k++)
            if (t->axis[k] == t->axis[i])
                return snprintf(text, room, "%s: %s: argument %d of %s is listed twice",
                                t->where, name, t->axis[i], c->name),
                       text;
    }
    return NULL;
}

static const char *callee_problem(const jot_callee *c, char *text, size_t room)
{
    if (!c->body && !c->plain && c->name && c->where)
        return snprintf(text, room, "%s: a jot_function of %s, whose f is NULL", c->where,
                        c->name),
               text;
    if (!c->body && !c->plain)
        return "a jot_function that was never set: make it by jot_fn, JOT_FUNCTION or "
               "jot_function_make";
    if (!c->name || !c->where)
        return "a jot_function without a name or a place: both are texts";
    if (c->plain && (c->n_args < 1 || c->n_args > PLAIN_MOST))
        return snprintf(text, room, "%s: %s takes %d values: jot_fn is for 1 to %d", c->where,
                        c->name, c->n_args, PLAIN_MOST),
               text;
    if (c->n_args < 0 || c->n_results < 0 || c->n_args >= MOST_VALUES ||
        c->n_results >= MOST_VALUES)
        return snprintf(text, room,
                        "%s: %s takes %d arguments and gives %d results: both are 0 to %d",
                        c->where, c->name, c->n_args, c->n_results, MOST_VALUES - 1),
               text;
    return NULL;
}

jot_status function_problem_status(const jot_function *f)
{
    return f->n_transforms && f->transform == &no_memory ? JOT_ERR_MEMORY : JOT_ERR_ARGUMENT;
}

const char *function_problem(const jot_function *f)
{
    static _Thread_local char text[512];
    const jot_callee *c = &f->callee;
    const char *problem = callee_problem(c, text, sizeof text);
    if (problem)
        return problem;
    if (f->n_transforms && f->transform == &no_memory)
        return "out of memory";
    if (f->rule_kind && !(problem = callee_problem(f->rule, text, sizeof text)) &&
        f->rule_kind == TRACE_RULE_VJP)
        problem = callee_problem(f->rule + 1, text, sizeof text);
    if (problem)
        return problem;
    if (f->rule_kind && rule_problem(f, text, sizeof text))
        return text;
    for (int i = 0; i < f->n_transforms; i++)
        if (transform_problem(f, &f->transform[i], text, sizeof text))
            return text;
    struct counts n = count_values(f, f->n_transforms);
    if (n.in >= MOST_VALUES || n.out >= MOST_VALUES)
        return snprintf(text, sizeof text,
                        "%s: %s takes or gives more than %d values, with %d transforms",
                        c->where, c->name, MOST_VALUES - 1, f->n_transforms),
               text;
    return NULL;
}

// ---------------------------------------------------------------------------------------
// Calling

// clang-format off
#define ARGUMENTS1(k) v[k]
#define ARGUMENTS2(k) ARGUMENTS1(k), v[k + 1]
#define ARGUMENTS3(k) ARGUMENTS2(k), v[k + 2]
#define ARGUMENTS4(k) ARGUMENTS3(k), v[k + 3]
#define ARGUMENTS5(k) ARGUMENTS4(k), v[k + 4]
#define ARGUMENTS6(k) ARGUMENTS5(k), v[k + 5]
#define ARGUMENTS7(k) ARGUMENTS6(k), v[k + 6]
#define ARGUMENTS8(k) ARGUMENTS7(k), v[k + 7]
static jot_value call_plain(const jot_callee *c, const jot_value *v)
{
    void (*f)(void) = c->plain;
    switch (c->n_args) {
    case 1: return ((jot_plain_1 *)f)(ARGUMENTS1(0));
    case 2: return ((jot_plain_2 *)f)(ARGUMENTS2(0));
    case 3: return ((jot_plain_3 *)f)(ARGUMENTS3(0));
    case 4: return ((jot_plain_4 *)f)(ARGUMENTS4(0));
    case 5: return ((jot_plain_5 *)f)(ARGUMENTS5(0));
    case 6: return ((jot_plain_6 *)f)(ARGUMENTS6(0));
    case 7: return ((jot_plain_7 *)f)(ARGUMENTS7(0));
    case 8: return ((jot_plain_8 *)f)(ARGUMENTS8(0));
    case 9: return ((jot_plain_9 *)f)(ARGUMENTS8(0), ARGUMENTS1(8));
    case 10: return ((jot_plain_10 *)f)(ARGUMENTS8(0), ARGUMENTS2(8));
    case 11: return ((jot_plain_11 *)f)(ARGUMENTS8(0), ARGUMENTS3(8));
    case 12: return ((jot_plain_12 *)f)(ARGUMENTS8(0), ARGUMENTS4(8));
    case 13: return ((jot_plain_13 *)f)(ARGUMENTS8(0), ARGUMENTS5(8));
    case 14: return ((jot_plain_14 *)f)(ARGUMENTS8(0), ARGUMENTS6(8));
    case 15: return ((jot_plain_15 *)f)(ARGUMENTS8(0), ARGUMENTS7(8));
    case 16: return ((jot_plain_16 *)f)(ARGUMENTS8(0), ARGUMENTS8(8));
    case 17: return ((jot_plain_17 *)f)(ARGUMENTS8(0), ARGUMENTS8(8), ARGUMENTS1(16));
    case 18: return ((jot_plain_18 *)f)(ARGUMENTS8(0), ARGUMENTS8(8), ARGUMENTS2(16));
    case 19: return ((jot_plain_19 *)f)(ARGUMENTS8(0), ARGUMENTS8(8), ARGUMENTS3(16));
    case 20: return ((jot_plain_20 *)f)(ARGUMENTS8(0), ARGUMENTS8(8), ARGUMENTS4(16));
    case 21: return ((jot_plain_21 *)f)(ARGUMENTS8(0), ARGUMENTS8(8), ARGUMENTS5(16));
    case 22: return ((jot_plain_22 *)f)(ARGUMENTS8(0), ARGUMENTS8(8), ARGUMENTS6(16));
    case 23: return ((jot_plain_23 *)f)(ARGUMENTS8(0), ARGUMENTS8(8), ARGUMENTS7(16));
    case 24: return ((jot_plain_24 *)f)(ARGUMENTS8(0), ARGUMENTS8(8), ARGUMENTS8(16));
    case 25: return ((jot_plain_25 *)f)(ARGUMENTS8(0), ARGUMENTS8(8), ARGUMENTS8(16), ARGUMENTS1(24));
    case 26: return ((jot_plain_26 *)f)(ARGUMENTS8(0), ARGUMENTS8(8), ARGUMENTS8(16), ARGUMENTS2(24));
    case 27: return ((jot_plain_27 *)f)(ARGUMENTS8(0), ARGUMENTS8(8), ARGUMENTS8(16), ARGUMENTS3(24));
    case 28: return ((jot_plain_28 *)f)(ARGUMENTS8(0), ARGUMENTS8(8), ARGUMENTS8(16), ARGUMENTS4(24));
    case 29: return ((jot_plain_29 *)f)(ARGUMENTS8(0), ARGUMENTS8(8), ARGUMENTS8(16), ARGUMENTS5(24));
    case 30: return ((jot_plain_30 *)f)(ARGUMENTS8(0), ARGUMENTS8(8), ARGUMENTS8(16), ARGUMENTS6(24));
    case 31: return ((jot_plain_31 *)f)(ARGUMENTS8(0), ARGUMENTS8(8), ARGUMENTS8(16), ARGUMENTS7(24));
    default: return ((jot_plain_32 *)f)(ARGUMENTS8(0), ARGUMENTS8(8), ARGUMENTS8(16), ARGUMENTS8(24));
    }
}
// clang-format on

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
        i[k] = (jot_value){TRACE_GUARD_SERIAL,
                           (uint32_t)n_in << TRACE_GUARD_BITS | (uint32_t)(k - n_in)};
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
