// SPDX-License-Identifier: Apache-2.0
// The lazy scope: operations outside of functions.
#include "base/memory.h"
#include "passes/passes.h"
#include "trace/block.h"
#include "trace/evaluate.h"
#include "trace/opened.h"
#include "trace/print.h"
#include "trace/tracer.h"

#include "jot/compile.h"

#include <math.h>
#include <stdio.h>

struct jot_scope {
    struct trace *t;
    uint32_t serial; // of t, which is gone when a function or scope around it ended first
};

jot_scope *jot_scope_open_at(const char *where)
{
    struct jot_scope *s = memory_allocate(sizeof *s);
    if (!s) {
        status_out_of_memory();
        return NULL;
    }
    rt_frames_collect_surely();
    s->t = trace_open_root(TRACE_SCOPE, "scope", where);
    if (!s->t) {
        memory_release(s);
        return NULL;
    }
    trace_guard_scope(s->t);
    s->serial = s->t->serial;
    return s;
}

static jot_value fail_close(void)
{
    TRACE_RETURN(
        trace_fail("jot_scope_close", JOT_ERR_TRACE,
                   "a function is being traced inside the scope: close it afterwards"));
}

void jot_scope_close(jot_scope *s)
{
    if (!s)
        return;
    rt_frames_collect();
    struct trace *t = trace_top(), *function = NULL;
    for (; t && t->serial != s->serial; t = t->below)
        function = t->kind == TRACE_SCOPE || t->kind == TRACE_BLOCK ? function : t;
    if (t && function) {
        fail_close();
        return;
    }
    struct opened_trace other;
    if (!t && opened_find(s->serial, &other)) {
        status_fail(JOT_ERR_TRACE,
                    "jot_scope_close: the scope is of another thread: close it there");
        return;
    }
    // A body of a block may go on, if not what it was left for by longjmp.
    for (struct trace *inside = trace_top(); t && inside != t; inside = inside->below) {
        block_lose(inside->block);
        inside->block = NULL;
    }
    if (t)
        trace_abandon(t);
    memory_release(s);
}

// ---------------------------------------------------------------------------------------
// Evaluation

static jot_status check_open(const char *op)
{
    rt_frames_collect();
    if (!trace_top())
        return status_fail(JOT_ERR_TRACE,
                           "%s: no scope is open: open one by jot_scope_open; the "
                           "values of one end with it",
                           op);
    if (trace_top()->kind == TRACE_SCOPE)
        return JOT_OK;
    // An error of the trace too: the caller may go on with what it takes for a number.
    trace_fail(op, JOT_ERR_TRACE,
               "a value has no number while it is traced: return it, or evaluate outside");
    return trace_report(trace_top()->error);
}

// What has been evaluated is strong, and a constant the array that was made of it.
static void remember(size_t n, const jot_value *values, jot_array *const *arrays)
{
    struct trace *t = trace_top();
    for (size_t i = 0; i < n; i++) {
        jot_value v = values[i];
        if (v.trace != t->serial || t->slots.at[v.id].kind != TRACE_VALUE)
            continue;
        ir_id id = trace_strong(v);
        if (trace_hidden_find(t, id)) {
            t->slots.at[v.id].id = id;
            t->slots.at[v.id].weak = false;
            continue;
        }
        jot_value a = jot_from_array(arrays[i]);
        if (a.trace == t->serial && t->slots.at[a.id].kind == TRACE_VALUE) {
            t->slots.at[v.id].id = t->slots.at[a.id].id;
            t->slots.at[v.id].weak = false;
        }
    }
}

static jot_status check_count(const char *op, size_t n)
{
    if (n <= TRACE_MOST_ENTRIES)
        return JOT_OK;
    return status_fail(JOT_ERR_ARGUMENT, "%s: n is %zu: at most %zu", op, n,
                       TRACE_MOST_ENTRIES);
}

static jot_status eval_named(const char *op, size_t n, const jot_value *v, jot_array **out)
{
    JOT_TRY(check_open(op));
    JOT_TRY(check_count(op, n));
    if (n && (!v || !out))
        return status_fail(JOT_ERR_ARGUMENT, "%s: the list of %s is NULL", op,
                           v ? "arrays" : "values");
    if (trace_top()->is_broken)
        return status_out_of_memory();
    struct arena_guard guard;
    if (arena_guard_left(&guard)) {
        trace_out_of_memory();
        return JOT_ERR_MEMORY;
    }
    jot_status status = scope_evaluate(op, n, v, out);
    arena_guard_close(&guard);
    if (status == JOT_OK)
        remember(n, v, out);
    return status;
}

jot_status jot_eval_tree(size_t n, const jot_value *v, jot_array **out)
{
    return eval_named("jot_eval", n, v, out);
}

jot_status jot_eval(jot_value v, jot_array **out)
{
    jot_array *a;
    JOT_TRY(eval_named("jot_eval", 1, &v, &a));
    if (out)
        *out = a;
    else
        jot_array_release(a);
    return JOT_OK;
}

static double item(jot_value v)
{
    jot_array *a;
    if (eval_named("jot_item", 1, &v, &a) != JOT_OK)
        return NAN;
    size_t n = jot_array_size(a);
    double x = n == 1 ? jot_array_item(a) : NAN;
    jot_array_release(a);
    if (n != 1)
        status_fail(JOT_ERR_SHAPE, "jot_item: the value has %zu elements, not one", n);
    return x;
}

double jot_item_at(jot_value v, const char *where)
{
    unsigned before = status_failures();
    double x = item(v);
    if (status_failures() != before)
        x = jot_status_place(status_last(), where) == JOT_OK ? x : NAN;
    return x;
}

double jot_item(jot_value v) { return jot_item_at(v, NULL); }

// In a function the line is written when it runs.
static void print_later(jot_value v, const char *name)
{
    char format[256];
    size_t n = 0;
    for (const char *c = name; *c && n < sizeof format - 16; c++) {
        if (*c == '{' || *c == '}')
            format[n++] = *c;
        format[n++] = *c;
    }
    snprintf(format + n, sizeof format - n, " =%s{}\n", jot_value_rank(v) > 1 ? "\n" : " ");
    trace_print("jot_print", format, 1, &v);
}

void jot_print_value(jot_value v, const char *name)
{
    jot_array *a;
    name = name ? name : "value";
    if (trace_top() && trace_top()->kind != TRACE_SCOPE) {
        print_later(v, name);
        return;
    }
    if (eval_named("jot_print", 1, &v, &a) != JOT_OK) {
        printf("%s: %s\n", name, jot_error_message());
        return;
    }
    printf("%s =%s", name, jot_array_rank(a) > 1 ? "\n" : " ");
    jot_array_print(a);
    jot_array_release(a);
}

jot_status jot_scope_keep(jot_scope *s, size_t n, jot_value *v)
{
    rt_frames_collect();
    if (!s || !trace_top() || trace_top()->serial != s->serial)
        return status_fail(JOT_ERR_TRACE, "jot_scope_keep: %s",
                           s ? "the scope is not the innermost one of this thread"
                             : "the scope is NULL");
    JOT_TRY(check_count("jot_scope_keep", n));
    jot_array **arrays = memory_allocate((n + 1) * sizeof *arrays);
    if (!arrays)
        return status_out_of_memory();
    jot_status status = eval_named("jot_scope_keep", n, v, arrays);
    if (status == JOT_OK) {
        struct trace *t = trace_replace_scope(s->t);
        if (t) {
            s->t = t;
            s->serial = t->serial;
        } else {
            status = JOT_ERR_MEMORY;
        }
        for (size_t i = 0; t && i < n; i++)
            v[i] = jot_from_array(arrays[i]);
        jot_arrays_release(n, arrays);
    }
    memory_release(arrays);
    return status;
}
