// SPDX-License-Identifier: Apache-2.0
// The lazy scope: operations outside of functions.
#include "base/memory.h"
#include "passes/passes.h"
#include "trace/lazy_cache.h"
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
    s->t = trace_open_root(TRACE_SCOPE, "scope", where);
    if (!s->t) {
        memory_release(s);
        return NULL;
    }
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
    struct trace *t = trace_top(), *function = NULL;
    for (; t && t->serial != s->serial; t = t->below)
        function = t->kind == TRACE_SCOPE ? function : t;
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
    if (t)
        trace_abandon(t);
    memory_release(s);
}

// ---------------------------------------------------------------------------------------
// Evaluation

static jot_status check_place(const char *op)
{
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

static jot_array *array_of_number(const struct trace *t, const struct trace_hidden *h)
{
    return jot_array_copy(ir_dtype(ir_type_of(t->b.graph, h->id)), h->scalar,
                          (const int64_t[]){JOT_END});
}

// What the value of the graph is an input by, or NULL.
static struct trace_hidden *find_hidden(const struct trace *t, ir_id id)
{
    for (uint32_t i = 0; i < t->hidden.count; i++)
        if (t->hidden.at[i].id == id)
            return &t->hidden.at[i];
    return NULL;
}

// The array that it stands for already, or NULL.
static jot_array *known_array(const struct trace *t, ir_id id)
{
    const struct trace_hidden *h = find_hidden(t, id);
    return h ? h->array : NULL;
}

// Whether it is made of nothing: what is computed alike elsewhere is better not an input.
static bool is_constant(const struct trace *t, ir_id id)
{
    const struct ir_graph *g = t->b.graph;
    const struct ir_node *n = ir_node_of(g, id);
    if (n->op == IR_broadcast_in_dim)
        n = ir_node_of(g, ir_operand(g, n, 0));
    return n->n_in == 0 && n->op != IR_param;
}

struct evaluation {
    struct trace *t;
    struct arena *arena; // of the module of the scope
    int n;
    ir_id *ids;
    uint32_t n_in;
    jot_array **in, **out;
};

// The values that are asked for, then the results of the effects that happen meanwhile, for an
// effect happens once.
static ir_id *with_effects(struct evaluation *e, uint32_t *out_count)
{
    const struct ir_graph *g = e->t->b.graph;
    VEC(ir_id) all = {0};
    for (int i = 0; i < e->n; i++)
        vec_push(e->arena, &all, e->ids[i]);
    for (uint32_t at = e->t->done_effects; at < g->nodes.count; at++)
        for (uint32_t k = 0; ir_has_effect(g, &g->nodes.at[at]) && k < g->nodes.at[at].n_out;
             k++)
            vec_push(e->arena, &all, g->nodes.at[at].out + k);
    *out_count = all.count - (uint32_t)e->n;
    e->out = arena_array(e->arena, jot_array *, all.count + 1);
    return all.at;
}

// What is evaluated is an array from then on, and keeps its place in the graph, for derivatives.
static void add_hidden(struct evaluation *e, const ir_id *outs, uint32_t n)
{
    struct trace *t = e->t;
    for (uint32_t i = 0; i < n; i++)
        if (!find_hidden(t, outs[i]) && (i >= (uint32_t)e->n || !is_constant(t, outs[i])))
            vec_push(e->arena, &t->hidden,
                     (struct trace_hidden){.kind = TRACE_ARRAY, .id = outs[i]});
}

// The caller has the first arrays, those of effects are nobody else's.
static void fill_hidden(struct evaluation *e, const ir_id *outs, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        struct trace_hidden *h = find_hidden(e->t, outs[i]);
        bool fills = h && h->kind == TRACE_ARRAY && !h->array, is_asked = i < (uint32_t)e->n;
        if (fills)
            h->array = is_asked ? jot_array_retain(e->out[i]) : e->out[i];
        else if (!is_asked)
            jot_array_release(e->out[i]);
    }
}

static jot_status run(struct evaluation *e)
{
    struct trace *t = e->t;
    uint32_t *hidden, n_hidden = t->hidden.count, n_effects;
    ir_id *outs = with_effects(e, &n_effects);
    uint32_t f = trace_close(t, e->n + (int)n_effects, outs, &e->n_in, &hidden);
    if (f == IR_NONE)
        return trace_report(t->latest);
    // Whatever needs the arena comes before the references, which leaving it would lose.
    f = pass_form_fma(t->module, f);
    add_hidden(e, outs, (uint32_t)e->n + n_effects);
    struct hash128 key = ir_graph_key(ir_function(t->module, f));
    e->in = arena_array(e->arena, jot_array *, e->n_in + 1);
    for (uint32_t i = 0; i < e->n_in; i++) {
        const struct trace_hidden *h = &t->hidden.at[hidden[i]];
        e->in[i] = h->array ? jot_array_retain(h->array) : array_of_number(e->t, h);
        if (!e->in[i]) {
            t->hidden.count = n_hidden;
            return status_last();
        }
    }
    bool has_run;
    jot_status status = lazy_run(ir_function(t->module, f), key, e->in, e->out, &has_run);
    if (has_run)
        t->done_effects = t->b.graph->nodes.count;
    if (status == JOT_OK)
        fill_hidden(e, outs, (uint32_t)e->n + n_effects);
    else
        t->hidden.count = n_hidden;
    return status;
}

static bool has_effects_to_come(const struct trace *t)
{
    const struct ir_graph *g = t->b.graph;
    for (uint32_t at = t->done_effects; at < g->nodes.count; at++)
        if (ir_has_effect(g, &g->nodes.at[at]))
            return true;
    return false;
}

static jot_status evaluate(const char *op, size_t n, const jot_value *values, jot_array **out)
{
    struct trace *t = trace_top();
    struct evaluation e = {.t = t, .arena = t->module->arena, .n = (int)n};
    e.ids = arena_array(e.arena, ir_id, n + 1);
    e.out = arena_array(e.arena, jot_array *, n + 1);
    bool all_known = !has_effects_to_come(t);
    for (size_t i = 0; i < n; i++) {
        jot_value v = trace_import(op, values[i]);
        if (trace_is_error(v))
            return trace_report(trace_slot_of(v)->error);
        e.ids[i] = trace_strong(v);
        jot_array *known = known_array(t, e.ids[i]);
        all_known &= known != NULL;
        e.out[i] = known;
    }
    if (all_known) {
        for (size_t i = 0; i < n; i++)
            out[i] = jot_array_retain(e.out[i]);
        return JOT_OK;
    }
    jot_status status = run(&e);
    for (uint32_t i = 0; e.in && i < e.n_in; i++)
        jot_array_release(e.in[i]);
    if (status != JOT_OK)
        return status;
    if (n)
        memcpy(out, e.out, sizeof *out * n);
    return JOT_OK;
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
        if (find_hidden(t, id)) {
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

static jot_status eval_named(const char *op, size_t n, const jot_value *v, jot_array **out)
{
    JOT_TRY(check_place(op));
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
    jot_status status = evaluate(op, n, v, out);
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

double jot_item(jot_value v)
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
    if (!s || !trace_top() || trace_top()->serial != s->serial)
        return status_fail(JOT_ERR_TRACE, "jot_scope_keep: %s",
                           s ? "the scope is not the innermost one of this thread"
                             : "the scope is NULL");
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
