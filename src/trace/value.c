// SPDX-License-Identifier: Apache-2.0
// Handles: making them, capturing them from outer traces, and errors as values.
#include "trace/ended.h"
#include "trace/opened.h"
#include "trace/tracer.h"

#include "runtime/array.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

// The last failure happened with nothing being traced, and the next jot_at gives it its place.
static _Thread_local bool message_wants_place;

bool trace_message_wants_place(void)
{
    bool wants = message_wants_place;
    message_wants_place = false;
    return wants;
}

static bool records(const struct trace *t) { return t && t->kind != TRACE_ROOT; }

static jot_value push(struct trace *t, struct trace_slot slot)
{
    vec_push(t->module->arena, &t->slots, slot);
    return (jot_value){t->serial, t->slots.count - 1};
}

static const struct trace_slot *slot_in(const struct trace *t, jot_value v)
{
    return &t->slots.at[v.id];
}

const struct trace_slot *trace_slot_of(jot_value v) { return slot_in(trace_top(), v); }

bool trace_is_error(jot_value v) { return trace_slot_of(v)->kind == TRACE_ERROR; }

jot_dtype trace_seen(jot_dtype d, bool weak)
{
    return !weak ? d : d == JOT_F64 ? JOT_F32 : d == JOT_C128 ? JOT_C64 : d;
}

jot_value trace_value(ir_id id, bool weak)
{
    jot_dtype d = ir_dtype(ir_type_in(trace_builder(), id));
    return push(trace_top(), (struct trace_slot){.kind = TRACE_VALUE,
                                                 .dtype = (uint8_t)trace_seen(d, weak),
                                                 .weak = weak,
                                                 .id = id});
}

jot_value trace_result(const char *op, ir_id id, bool weak)
{
    struct ir_builder *b = trace_builder();
    if (id != IR_NONE)
        return trace_value(id, weak);
    jot_status status = b->status == JOT_OK ? JOT_ERR_INTERNAL : b->status;
    const char *text = b->message ? b->message : "no value";
    b->status = JOT_OK;
    b->message = NULL;
    return trace_fail(op, status, "%s", text);
}

// ---------------------------------------------------------------------------------------
// Errors

static jot_value push_error(struct trace *t, const struct trace_error *e)
{
    if (!t->error)
        t->error = e;
    t->root->latest = e;
    return push(t, (struct trace_slot){.kind = TRACE_ERROR, .error = e});
}

static jot_value fail_in(struct trace *t, const char *op, jot_status status, const char *text)
{
    struct arena *arena = t->module->arena;
    struct trace_error *e = arena_new(arena, struct trace_error);
    *e = (struct trace_error){
        .status = status, .op = arena_text(arena, op), .text = arena_text(arena, text)};
    return push_error(t, e);
}

jot_value trace_fail(const char *op, jot_status status, const char *format, ...)
{
    char text[900];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (trace_top())
        return fail_in(trace_top(), op, status, text);
    status_fail(status, "%s: %s", op, text);
    message_wants_place = true;
    return (jot_value){0, 1};
}

jot_value trace_fail_status(const char *op)
{
    return trace_fail(op, status_last(), "%s", jot_error_message());
}

jot_value trace_fail_again(const struct trace_error *e) { return push_error(trace_top(), e); }

jot_value trace_fail_latest(void)
{
    struct trace *t = trace_top();
    return t->is_broken ? (jot_value){t->serial, 0} : trace_fail_again(t->root->latest);
}

jot_value trace_out_of_memory(void)
{
    struct trace *t = trace_top();
    status_out_of_memory();
    if (!t)
        return (jot_value){0, 1};
    t->is_broken = true;
    if (!t->error)
        t->error = t->slots.at[0].error;
    return (jot_value){t->serial, 0};
}

const char *trace_shorten(const char *where, char *buffer, size_t size)
{
    enum { LONGEST = 70 };
    if (!where)
        return "";
    const char *call = strstr(where, ": ");
    if (!call || strlen(call) < LONGEST)
        return where;
    const char *end = strchr(call, '(');
    snprintf(buffer, size, "%.*s(...)", (int)(end ? end - where : call - where + 60), where);
    return buffer;
}

jot_status trace_report(const struct trace_error *e)
{
    char buffer[320];
    if (!e->where)
        return status_fail(e->status, "%s: %s", e->op, e->text);
    const char *call = strstr(e->where, ": ");
    if (!call)
        return status_fail(e->status, "%s: %s: %s", e->where, e->op, e->text);
    call += 2;
    if (!strncmp(call, "offset ", 7) && strstr(call, ": "))
        call = strstr(call, ": ") + 2;
    // The place names the operation already, unless it is inside a composite or a transform.
    size_t n = strlen(e->op);
    bool same = (!strncmp(call, e->op, n) && (!call[n] || strchr("( ", call[n]))) ||
                !strncmp(call, "JOT_", 4) || !strcmp(e->op, "jot_from");
    return status_fail(e->status, "%s: %s%s%s", trace_shorten(e->where, buffer, sizeof buffer),
                       same ? "" : e->op, same ? "" : ": ", e->text);
}

// ---------------------------------------------------------------------------------------
// Capturing

static const char *name_of(enum trace_kind kind, const char *name)
{
    return kind == TRACE_SCOPE ? "the scope" : name;
}

static const struct trace *function_of(const struct trace *t)
{
    while (t->parent && t->kind == TRACE_BLOCK)
        t = t->parent;
    return t;
}

// Whether t is a part of the block at the place, or in one.
static bool is_inside(const struct trace *t, const char *where)
{
    while (t && !(t->kind == TRACE_BLOCK && t->where == where))
        t = t->parent;
    return t != NULL;
}

static jot_value fail_stale(struct trace *t, const char *op, jot_value v)
{
    char text[900];
    const char *here = name_of(t->kind, t->name);
    for (const struct trace *p = t; p; p = p->below)
        if (p->serial == v.trace) {
            snprintf(
                text, sizeof text,
                "a value of %s (traced at %s) cannot be used inside %s (traced at %s): pass "
                "it as an argument",
                name_of(p->kind, p->name), p->where, here, t->where);
            return fail_in(t, op, JOT_ERR_STALE, text);
        }
    struct opened_trace other;
    if (opened_find(v.trace, &other)) {
        snprintf(
            text, sizeof text,
            "a value of %s (traced at %s) is of another thread, which is still tracing it: it "
            "cannot be used inside %s (traced at %s): a value belongs to its thread, pass "
            "an array",
            name_of(other.kind, other.name), other.where, here, t->where);
        return fail_in(t, op, JOT_ERR_STALE, text);
    }
    const struct ended_trace *e = ended_find(v.trace);
    if (!e) {
        snprintf(text, sizeof text,
                 "not a value of what this thread traces {%u, %u}: it is of a trace of another "
                 "thread or of one that ended long ago, or no function made it",
                 v.trace, v.id);
        return fail_in(t, op, JOT_ERR_STALE, text);
    }
    const char *made = e->made && v.id < e->count && e->made[v.id] ? e->made[v.id] : e->where;
    bool is_bound = made == e->where, is_macro = !strncmp(e->name, "JOT_", 4);
    char short_made[320];
    made = trace_shorten(made, short_made, sizeof short_made);
    if (e->kind == TRACE_BLOCK && is_inside(t, e->where))
        snprintf(
            text, sizeof text,
            "the value made at %s inside the %s (%s) is used in another part of it: compute "
            "it before the %s",
            made, e->name, e->where, e->name);
    else if (e->kind == TRACE_BLOCK)
        snprintf(text, sizeof text,
                 "the %s%s is used outside the %s (%s): %s %s to bring it out",
                 is_bound ? "state, row or index" : "value made at ", is_bound ? "" : made,
                 e->name, e->where,
                 is_macro ? "list the variable in the" : "make it a carry or an output of the",
                 e->name);
    else if (e->kind == TRACE_SCOPE)
        snprintf(text, sizeof text,
                 "the value made at %s is of a scope that was closed, or was not listed in "
                 "jot_scope_keep",
                 made);
    else
        snprintf(
            text, sizeof text,
            "the value made at %s, while tracing %s, is used while tracing %s: pass it as an "
            "argument",
            made, name_of(e->kind, e->name), here);
    return fail_in(t, op, JOT_ERR_STALE, text);
}

static ir_id placeholder(struct trace *t, struct ir_type type)
{
    struct arena *arena = t->module->arena;
    struct ir_graph *g = t->b.graph;
    vec_reserve(arena, &g->values, g->values.count + 1);
    vec_push(arena, &g->nodes,
             (struct ir_node){
                 .op = IR_param, .n_out = 1, .in = g->operands.count, .out = g->values.count});
    vec_push(arena, &g->values, (struct ir_value){.type = type, .node = g->nodes.count - 1});
    return g->values.count - 1;
}

static jot_value add_hidden(struct trace *t, uint64_t hash, struct trace_hidden h,
                            struct ir_type type, bool weak, jot_dtype seen)
{
    h.id = placeholder(t, type);
    trace_hide(t, h);
    if (h.array)
        jot_array_retain(h.array);
    hash_insert(t->module->arena, &t->hidden_table, hash, t->hidden.count - 1);
    return push(t, (struct trace_slot){
                       .kind = TRACE_VALUE, .dtype = (uint8_t)seen, .weak = weak, .id = h.id});
}

static const struct trace *find_open(const struct trace *t, jot_value v)
{
    while (t && (t->serial != v.trace || v.id >= t->slots.count))
        t = t->parent;
    return t;
}

bool trace_is_open(jot_value v) { return find_open(trace_top(), v) != NULL; }

static uint64_t hash_handle(jot_value v) { return hash_combine(v.trace, v.id); }

static const struct trace_import *find_import(const struct trace *t, jot_value v)
{
    for (struct hash_probe p = hash_probe(&t->import_table, hash_handle(v));
         hash_next(&t->import_table, &p);) {
        const struct trace_import *i = &t->imports.at[p.id];
        if (i->outer.trace == v.trace && i->outer.id == v.id)
            return i;
    }
    return NULL;
}

static jot_value capture(struct trace *t, const struct trace *holder, jot_value v);

// Into t what a trace around it holds, once.
static jot_value import_captured(struct trace *t, const struct trace *holder, jot_value v)
{
    const struct trace_import *known = find_import(t, v);
    if (known)
        return known->inner;
    jot_value inner = capture(t, holder, v);
    if (slot_in(t, inner)->kind != TRACE_ERROR) {
        vec_push(t->module->arena, &t->imports, (struct trace_import){v, inner});
        hash_insert(t->module->arena, &t->import_table, hash_handle(v), t->imports.count - 1);
    }
    return inner;
}

static jot_value capture(struct trace *t, const struct trace *holder, jot_value v)
{
    jot_value outer = v;
    if (t->parent->is_broken)
        outer = (jot_value){t->parent->serial, 0};
    else if (t->parent != holder)
        outer = import_captured(t->parent, holder, v);
    struct trace_slot s = *slot_in(t->parent, outer);
    if (s.kind == TRACE_ERROR)
        return push_error(t, s.error);
    if (s.kind == TRACE_NUMBER)
        return push(t, s);
    uint64_t hash = hash_combine(TRACE_CAPTURED, s.id);
    for (struct hash_probe p = hash_probe(&t->hidden_table, hash);
         hash_next(&t->hidden_table, &p);)
        if (t->hidden.at[p.id].kind == TRACE_CAPTURED &&
            slot_in(t->parent, t->hidden.at[p.id].outer)->id == s.id) {
            s.id = t->hidden.at[p.id].id;
            return push(t, s);
        }
    struct trace_hidden h = {.kind = TRACE_CAPTURED, .outer = outer};
    return add_hidden(t, hash, h, ir_type_of(t->parent->b.graph, s.id), s.weak,
                      (jot_dtype)s.dtype);
}

static jot_value import_into(struct trace *t, const char *op, jot_value v)
{
    if (t->is_broken)
        return (jot_value){t->serial, 0};
    if (v.trace == t->serial && v.id < t->slots.count)
        return v;
    char text[200];
    if (v.trace == 0)
        return v.id == 0 ? fail_in(t, op, JOT_ERR_ARGUMENT,
                                   "a jot_value that was never set (all zero)")
                         : fail_in(t, op, JOT_ERR_STALE,
                                   "a value made when nothing was being traced");
    if (v.trace == TRACE_GUARD_SERIAL) {
        snprintf(text, sizeof text, "reads input %u of %s, which takes %u (numbered from 0)",
                 (v.id >> TRACE_GUARD_BITS) + (v.id & ((1u << TRACE_GUARD_BITS) - 1)),
                 function_of(t)->name, v.id >> TRACE_GUARD_BITS);
        return fail_in(t, op, JOT_ERR_ARGUMENT, text);
    }
    const struct trace_import *known = find_import(t, v);
    if (known)
        return known->inner;
    const struct trace *holder = find_open(t->parent, v);
    return holder ? import_captured(t, holder, v) : fail_stale(t, op, v);
}

jot_value trace_import(const char *op, jot_value v) { return import_into(trace_top(), op, v); }

bool trace_ready(const char *op, int n, jot_value *v, jot_value *out_error)
{
    if (!records(trace_top())) {
        *out_error =
            trace_fail(op, JOT_ERR_TRACE,
                       "nothing is being traced: call it in a traced function or open a "
                       "scope");
        return false;
    }
    if (trace_top()->is_broken) {
        *out_error = (jot_value){trace_top()->serial, 0};
        return false;
    }
    for (int i = 0; i < n; i++) {
        v[i] = trace_import(op, v[i]);
        if (trace_is_error(v[i])) {
            *out_error = v[i];
            return false;
        }
    }
    return true;
}

// ---------------------------------------------------------------------------------------
// Numbers and arrays

static jot_value from_number(jot_dtype dtype, struct trace_number n)
{
    jot_value error;
    if (!trace_ready("jot_from", 0, NULL, &error))
        return error;
    struct trace_number *copy = arena_copy(trace_top()->module->arena, &n, sizeof n);
    return push(trace_top(), (struct trace_slot){.kind = TRACE_NUMBER,
                                                 .dtype = (uint8_t)dtype,
                                                 .weak = dtype != JOT_BOOL,
                                                 .id = IR_NONE,
                                                 .number = copy});
}

jot_value jot_from_int(int64_t x)
{
    bool is_small = x >= INT32_MIN && x <= INT32_MAX;
    TRACE_RETURN(
        from_number(is_small ? JOT_I32 : JOT_I64, (struct trace_number){.kind = 'i', .i = x}));
}

jot_value jot_from_uint(uint64_t x)
{
    if (x <= INT64_MAX)
        return jot_from_int((int64_t)x);
    TRACE_RETURN(from_number(JOT_U64, (struct trace_number){.kind = 'u', .u = x}));
}

jot_value jot_from_double(double x)
{
    TRACE_RETURN(from_number(JOT_F32, (struct trace_number){.kind = 'f', .f = x}));
}

jot_value jot_from_bool(bool x)
{
    TRACE_RETURN(from_number(JOT_BOOL, (struct trace_number){.kind = 'b', .i = x}));
}

jot_value jot_from_complex(double re, double im)
{
    TRACE_RETURN(from_number(JOT_C64, (struct trace_number){.kind = 'c', .f = re, .imag = im}));
}

const struct trace_number *trace_number_of(jot_value v)
{
    const struct trace_slot *s = trace_slot_of(v);
    return s->kind == TRACE_NUMBER ? s->number : NULL;
}

static ir_id constant(struct ir_builder *b, const struct trace_number *n, jot_dtype dtype)
{
    struct ir_type type = ir_type_make(b->module, dtype, 0, NULL);
    if (dtype_is_complex(dtype)) {
        double re = n->kind == 'f' || n->kind == 'c' ? n->f
                    : n->kind == 'u'                 ? (double)n->u
                                                     : (double)n->i;
        double pair[2] = {re, n->imag};
        float narrow[2] = {(float)re, (float)n->imag};
        return ir_const(b, type, dtype == JOT_C128 ? (void *)pair : (void *)narrow);
    }
    if (n->kind == 'f' || n->kind == 'c')
        return ir_scalar(b, dtype, n->f);
    if (n->kind == 'u' && dtype_is_inexact(dtype))
        return ir_scalar(b, dtype, (double)n->u);
    return ir_scalar_int(b, dtype, n->i);
}

// A number of a scope is a parameter of what is compiled, so that a learning rate or a seed that
// changes does not compile again.  It belongs to the scope, also when an inner trace uses it.
static ir_id scalar_parameter(struct trace *t, const struct trace_number *n, jot_dtype dtype)
{
    struct trace *root = t->root;
    uint64_t hash = hash_combine(hash_combine(TRACE_SCALAR, (uintptr_t)n), dtype);
    jot_value found = {0, 0};
    for (struct hash_probe p = hash_probe(&root->hidden_table, hash);
         hash_next(&root->hidden_table, &p);) {
        ir_id id = root->hidden.at[p.id].id;
        found = push(
            root, (struct trace_slot){.kind = TRACE_VALUE, .dtype = (uint8_t)dtype, .id = id});
    }
    if (found.trace == 0) {
        const struct ir_node *c = ir_node_of(root->b.graph, constant(&root->b, n, dtype));
        struct trace_hidden h = {.kind = TRACE_SCALAR,
                                 .scalar = ir_field_find(c->attrs, IR_KEY_data)->bytes};
        found =
            add_hidden(root, hash, h, ir_type_make(root->module, dtype, 0, NULL), false, dtype);
    }
    return slot_in(t, import_into(t, "jot_from", found))->id;
}

ir_id trace_operand(jot_value v, jot_dtype dtype)
{
    struct trace *t = trace_top();
    const struct trace_slot *s = trace_slot_of(v);
    if (s->kind == TRACE_VALUE)
        return ir_convert(&t->b, s->id, dtype);
    const struct trace_number *n = s->number;
    if (t->root->kind == TRACE_SCOPE && n->kind != 'b' && dtype != JOT_BOOL)
        return scalar_parameter(t, n, dtype);
    return constant(&t->b, n, dtype);
}

ir_id trace_strong(jot_value v) { return trace_operand(v, (jot_dtype)trace_slot_of(v)->dtype); }

struct ir_type trace_kept_type(jot_value v)
{
    const struct trace_slot *s = trace_slot_of(v);
    if (s->kind == TRACE_VALUE)
        return ir_type_in(trace_builder(), s->id);
    jot_dtype d = (jot_dtype)s->dtype;
    if (s->weak && dtype_is_inexact(d))
        d = dtype_is_complex(d) ? JOT_C128 : JOT_F64;
    return ir_type_make(trace_top()->module, d, 0, NULL);
}

ir_id trace_kept(jot_value v) { return trace_operand(v, ir_dtype(trace_kept_type(v))); }

struct ir_type trace_type(jot_value v)
{
    const struct trace_slot *s = trace_slot_of(v);
    struct trace *t = trace_top();
    if (s->kind != TRACE_VALUE)
        return ir_type_make(t->module, (jot_dtype)s->dtype, 0, NULL);
    return ir_type_with(ir_type_of(t->b.graph, s->id), (jot_dtype)s->dtype);
}

const char *trace_type_text(jot_value v)
{
    return ir_type_text(trace_top()->module, trace_type(v));
}

static jot_value from_array(const jot_array *a)
{
    jot_value error;
    if (!trace_ready("jot_from", 0, NULL, &error))
        return error;
    if (!a) {
        const char *why;
        jot_status status = status_of_null(STATUS_NULL_ARRAY, &why);
        return trace_fail("jot_from", status, "an array is NULL%s", why);
    }
    if (a->rank > IR_MAX_RANK)
        return trace_fail("jot_from", JOT_ERR_SHAPE, "an array of %d axes: at most %d", a->rank,
                          IR_MAX_RANK);
    struct trace *root = trace_top()->root;
    uint64_t hash = hash_combine(TRACE_ARRAY, (uintptr_t)a);
    jot_dtype dtype = (jot_dtype)a->dtype;
    for (struct hash_probe p = hash_probe(&root->hidden_table, hash);
         hash_next(&root->hidden_table, &p);)
        if (root->hidden.at[p.id].array == a)
            return trace_import(
                "jot_from", push(root, (struct trace_slot){.kind = TRACE_VALUE,
                                                           .dtype = (uint8_t)dtype,
                                                           .id = root->hidden.at[p.id].id}));
    struct trace_hidden h = {.kind = TRACE_ARRAY, .array = (jot_array *)(uintptr_t)a};
    struct ir_type type = ir_type_make(root->module, dtype, a->rank, a->dims);
    return trace_import("jot_from", add_hidden(root, hash, h, type, false, dtype));
}

jot_value jot_from_array(const jot_array *a) { TRACE_RETURN(from_array(a)); }
