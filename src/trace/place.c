// SPDX-License-Identifier: Apache-2.0
// Places of calls, and questions about values.
#include "trace/tracer.h"

#include <stdio.h>

static uint32_t find_place(struct trace *t, const char *where)
{
    char buffer[320];
    struct trace *root = t->root;
    size_t at = hash_mix((uintptr_t)where) % TRACE_PLACES_KNOWN;
    if (root->places[at].literal != where) {
        root->places[at].place =
            ir_where_make(t->module, trace_shorten(where, buffer, sizeof buffer));
        root->places[at].literal = where;
    }
    return root->places[at].place;
}

static void place_all(struct trace *t, const char *where)
{
    uint32_t place = 0;
    struct ir_graph *g = t->b.graph;
    for (uint32_t i = t->placed_nodes; i < g->nodes.count; i++) {
        if (g->nodes.at[i].where)
            continue;
        if (!place)
            place = find_place(t, where);
        g->nodes.at[i].where = place;
    }
    for (uint32_t i = t->placed_slots; i < t->slots.count; i++)
        if (!t->slots.at[i].where)
            t->slots.at[i].where = where;
    t->placed_nodes = g->nodes.count;
    t->placed_slots = t->slots.count;
}

// The one error of the trace that has no place yet is that of the operation that just failed.
// That of slot 0 is of all traces.
static void place_error(struct trace *t, jot_value v, const char *where)
{
    if (v.trace != t->serial || v.id >= t->slots.count || v.id == 0)
        return;
    const struct trace_slot *s = &t->slots.at[v.id];
    if (s->kind == TRACE_ERROR && s->error != t->slots.at[0].error && !s->error->where)
        ((struct trace_error *)(uintptr_t)s->error)->where = where;
}

void trace_name_error(jot_value v, const char *name)
{
    struct trace *t = trace_top();
    const struct trace_slot *s = trace_slot_of(v);
    if (v.id == 0 || s->error == t->slots.at[0].error || s->error->where)
        return;
    struct strbuf text = strbuf_make(t->module->arena);
    strbuf_printf(&text, "'%s': %s", name, s->error->text);
    ((struct trace_error *)(uintptr_t)s->error)->text = text.text;
}

void trace_retell_error(jot_value v, const char *op, const char *text)
{
    struct trace *t = trace_top();
    if (!t) {
        const char *rest = strstr(jot_error_message(), ": ");
        if (text)
            status_fail(status_last(), "%s: %s: %s", op, text, jot_error_message());
        else if (rest)
            status_fail(status_last(), "%s%s", op, rest);
        return;
    }
    const struct trace_slot *s = trace_slot_of(v);
    if (v.id == 0 || s->error == t->slots.at[0].error || s->error->where)
        return;
    struct trace_error *e = (struct trace_error *)(uintptr_t)s->error;
    struct strbuf b = strbuf_make(t->module->arena);
    if (text)
        strbuf_printf(&b, "%s: %s: %s", text, e->op, e->text);
    e->text = text ? b.text : e->text;
    e->op = op;
}

static jot_value own(const char *op, jot_value v)
{
    trace_retell_error(v, op, NULL);
    return v;
}

jot_value trace_own(const char *op, jot_value v)
{
    if (!jot_value_failed(v))
        return v;
    TRACE_RETURN(own(op, v));
}

static void place(jot_value v, const char *where)
{
    if (!where)
        return;
    struct trace *t = trace_top();
    if (!t) {
        if (v.trace == 0 && trace_message_wants_place()) {
            const char *text = strstr(jot_error_message(), ": ");
            status_fail(status_last(), "%s%s", where, text ? text : "");
        }
        return;
    }
    if (t->is_broken)
        return;
    struct arena_guard guard;
    if (arena_guard_left(&guard)) {
        trace_out_of_memory();
        return;
    }
    place_all(t, where);
    place_error(t, v, where);
    arena_guard_close(&guard);
}

jot_value jot_at(jot_value v, const char *where)
{
    place(v, where);
    return v;
}

void jot_place(jot_value v, const char *where) { place(v, where); }

static jot_value missing(const char *op, const char *parameter, size_t n, const void *list)
{
    jot_value error;
    if (!trace_ready(op, 0, NULL, &error))
        return error;
    if (list)
        return trace_fail(op, JOT_ERR_ARGUMENT, "%s has %zu entries: at most %zu", parameter, n,
                          TRACE_MOST_ENTRIES);
    return trace_fail(op, JOT_ERR_ARGUMENT, "%s is NULL", parameter);
}

static jot_value guarded_missing(const char *op, const char *parameter, size_t n,
                                 const void *list)
{
    TRACE_RETURN(missing(op, parameter, n, list));
}

bool trace_is_missing(const char *op, const char *parameter, size_t n, const void *list,
                      jot_value *out_error)
{
    if (list ? n <= TRACE_MOST_ENTRIES : n == 0)
        return false;
    *out_error = guarded_missing(op, parameter, n, list);
    return true;
}

bool trace_lacks(const char *op, const char *parameter, size_t n, const void *list,
                 size_t n_out, jot_value *out, const char *where)
{
    jot_value error;
    if (!trace_is_missing(op, parameter, n, list, &error))
        return false;
    place(error, where);
    if (out && n_out <= TRACE_MOST_ENTRIES)
        trace_set_all(n_out, out, error);
    return true;
}

void trace_make(trace_maker *make, void *ctx, size_t n, jot_value *out, const char *where)
{
    struct arena_guard guard;
    rt_frames_collect();
    struct trace *outer = trace_top();
    jot_value error = {0, 0};
    if (arena_guard_left(&guard)) {
        trace_end_inside(outer);
        trace_set_all(n, out, trace_out_of_memory());
        return;
    }
    bool ok = make(ctx, out, &error);
    if (where)
        jot_place(ok ? (jot_value){0, 1} : error, where);
    if (!ok)
        trace_set_all(n, out, error);
    arena_guard_close(&guard);
}

// The open trace that v is of, when it has such a value.
static struct trace *find_open(jot_value v)
{
    for (struct trace *t = trace_top(); t; t = t->below)
        if (t->serial == v.trace && v.id < t->slots.count)
            return t;
    return NULL;
}

static void describe_number(const struct trace_slot *s, char *buffer, size_t size)
{
    const char *dtype = jot_dtype_name((jot_dtype)s->dtype);
    const struct trace_number *n = s->number;
    if (n->kind == 'f')
        snprintf(buffer, size, "%s %.17g", dtype, n->f);
    else if (n->kind == 'c')
        snprintf(buffer, size, "%s %.17g%+.17gi", dtype, n->f, n->imag);
    else if (n->kind == 'u')
        snprintf(buffer, size, "%s %llu", dtype, (unsigned long long)n->u);
    else
        snprintf(buffer, size, "%s %lld", dtype, (long long)n->i);
}

static int add_type(const struct trace *t, const struct trace_slot *s, char *buffer,
                    size_t size)
{
    struct ir_type type = ir_type_of(t->b.graph, s->id);
    const int64_t *dims = ir_dims(t->module, type);
    int n = snprintf(buffer, size, "%s[", jot_dtype_name((jot_dtype)s->dtype));
    for (int i = 0; i < type.rank && n < (int)size; i++)
        n += snprintf(buffer + n, size - (size_t)n, i ? ",%lld" : "%lld", (long long)dims[i]);
    if (n < (int)size)
        n += snprintf(buffer + n, size - (size_t)n, "]");
    return n < (int)size ? n : (int)size - 1;
}

static void describe_node(const struct trace *t, const struct trace_slot *s, char *buffer,
                          size_t size)
{
    const struct ir_graph *g = t->b.graph;
    const struct ir_node *node = ir_node_of(g, s->id);
    int n = snprintf(buffer, size, "%%%u: ", s->id);
    n += add_type(t, s, buffer + n, size - (size_t)n);
    n += snprintf(buffer + n, size - (size_t)n, " = %s", ir_op_get(node->op)->name);
    for (uint32_t i = 0; i < node->n_in && n < (int)size; i++)
        n += snprintf(buffer + n, size - (size_t)n, " %%%u", ir_operand(g, node, i));
    if (s->where && n < (int)size)
        snprintf(buffer + n, size - (size_t)n, "   %s", s->where);
}

const char *jot_describe(jot_value v)
{
    static _Thread_local char buffer[768];
    struct trace *t = find_open(v);
    if (!t) {
        if (v.trace)
            snprintf(buffer, sizeof buffer, "stale {%u, %u}", v.trace, v.id);
        else
            snprintf(buffer, sizeof buffer, "none");
        return buffer;
    }
    const struct trace_slot *s = &t->slots.at[v.id];
    if (s->kind == TRACE_ERROR)
        snprintf(buffer, sizeof buffer, "error: %s: %s",
                 s->error->where ? s->error->where : s->error->op, s->error->text);
    else if (s->kind == TRACE_NUMBER)
        describe_number(s, buffer, sizeof buffer);
    else
        describe_node(t, s, buffer, sizeof buffer);
    return buffer;
}

// ---------------------------------------------------------------------------------------
// Questions

// The slot of a value that questions can be asked of, here or in an enclosing trace.  A handle that
// is not one makes the usual error.
static const struct trace_slot *ask(const char *op, jot_value v, struct trace **out_trace)
{
    struct trace *t = find_open(v);
    if (!t) {
        struct arena_guard guard;
        if (arena_guard_left(&guard)) {
            trace_out_of_memory();
            return NULL;
        }
        jot_value error;
        trace_ready(op, 1, &v, &error);
        arena_guard_close(&guard);
        return NULL;
    }
    *out_trace = t;
    const struct trace_slot *s = &t->slots.at[v.id];
    return s->kind == TRACE_ERROR ? NULL : s;
}

jot_dtype jot_value_dtype(jot_value x)
{
    struct trace *t;
    const struct trace_slot *s = ask("jot_value_dtype", x, &t);
    return s ? (jot_dtype)s->dtype : JOT_BOOL;
}

int jot_value_rank(jot_value x)
{
    struct trace *t;
    const struct trace_slot *s = ask("jot_value_rank", x, &t);
    return s && s->kind == TRACE_VALUE ? ir_rank_of(t->b.graph, s->id) : 0;
}

int64_t jot_value_dim(jot_value x, int axis)
{
    struct trace *t;
    const struct trace_slot *s = ask("jot_value_dim", x, &t);
    if (!s)
        return 0;
    int rank = s->kind == TRACE_VALUE ? ir_rank_of(t->b.graph, s->id) : 0;
    int at = axis < 0 ? axis + rank : axis;
    return at >= 0 && at < rank ? ir_dims_of(t->b.graph, s->id)[at] : 0;
}

int64_t jot_value_size(jot_value x)
{
    struct trace *t;
    const struct trace_slot *s = ask("jot_value_size", x, &t);
    if (!s)
        return 0;
    return s->kind == TRACE_VALUE ? ir_count(t->module, ir_type_of(t->b.graph, s->id)) : 1;
}

bool jot_value_failed(jot_value x)
{
    struct trace *t = find_open(x);
    return !t || t->slots.at[x.id].kind == TRACE_ERROR;
}
