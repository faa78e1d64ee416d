// SPDX-License-Identifier: Apache-2.0
#include "trace/block.h"

#include "base/memory.h"
#include "passes/passes.h"

#include <stdarg.h>
#include <stdio.h>

const char *block_leaf_name(const struct block_leaf *l)
{
    static _Thread_local char buffer[128];
    if (l->of == 1)
        return l->name;
    snprintf(buffer, sizeof buffer, "%s (value %zu of %zu)", l->name, l->index, l->of);
    return buffer;
}

jot_value block_fail(jot_block *b, jot_status status, const char *format, ...)
{
    char text[700];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return jot_at(trace_fail(b->kind->name, status, "%s", text), b->where);
}

static size_t count_values(const jot_piece *list)
{
    size_t n = 0;
    for (const jot_piece *p = list; p && p->at; p++)
        n += p->n;
    return n;
}

static struct block_leaves flatten(const jot_piece *list, struct block_leaf *room)
{
    struct block_leaves l = {.at = room};
    for (const jot_piece *p = list; p && p->at; p++)
        for (size_t i = 0; i < p->n; i++) {
            jot_value *at = (jot_value *)p->at + i;
            l.at[l.count++] = (struct block_leaf){
                .at = at, .outer = *at, .name = p->name, .index = i, .of = p->n};
        }
    return l;
}

static jot_block *create(const struct block_kind *kind, const jot_piece *in,
                         const jot_piece *out, const char *where)
{
    size_t n = count_values(in) + count_values(out);
    jot_block *b = memory_allocate_zeroed(sizeof *b + n * sizeof(struct block_leaf));
    if (!b) {
        trace_out_of_memory();
        return NULL;
    }
    struct block_leaf *room = (struct block_leaf *)(b + 1);
    b->kind = kind;
    b->where = where;
    b->outer = trace_top();
    b->in = flatten(in, room);
    b->out = flatten(out, room + b->in.count);
    return b;
}

static bool import_leaves(jot_block *b)
{
    for (int i = 0; i < b->in.count; i++) {
        struct block_leaf *l = &b->in.at[i];
        l->outer = trace_import(b->kind->name, l->outer);
        if (trace_is_error(l->outer)) {
            jot_place(l->outer, b->where);
            b->error = l->outer;
            return false;
        }
        l->type = trace_type(l->outer);
    }
    return true;
}

static bool open_block(jot_block *b)
{
    if (!trace_ready(b->kind->name, 0, NULL, &b->error)) {
        jot_place(b->error, b->where);
        return false;
    }
    return import_leaves(b) && b->kind->open(b);
}

static jot_block *begin(jot_block *b)
{
    struct arena_guard guard;
    if (!b)
        return NULL;
    if (arena_guard_left(&guard)) {
        b->error = trace_out_of_memory();
        b->is_inert = true;
        return b;
    }
    b->is_inert = !open_block(b);
    arena_guard_close(&guard);
    return b;
}

// ---------------------------------------------------------------------------------------
// Closing

static void set_results(jot_block *b, jot_value v)
{
    for (int i = 0; i < b->out.count; i++)
        *b->out.at[i].at = v;
}

static void restore_inputs(jot_block *b)
{
    for (int i = 0; i < b->in.count; i++)
        *b->in.at[i].at = b->in.at[i].outer;
}

// Gives up: what the block gives back is the error that its trace met.
static void poison(jot_block *b)
{
    const struct trace_error *e = NULL;
    while (trace_top() != b->outer) {
        e = trace_top()->error ? trace_top()->error : e;
        trace_end(trace_top());
    }
    b->is_closed = true;
    restore_inputs(b);
    set_results(b, e ? trace_fail_again(e) : block_fail(b, JOT_ERR_TRACE, "abandoned"));
}

static bool collect_results(jot_block *b, ir_id *ids)
{
    for (int i = 0; i < b->out.count; i++) {
        struct block_leaf *l = &b->out.at[i];
        if (l->at->trace == 0 && l->at->id == 0) {
            block_fail(b, JOT_ERR_TRACE, "'%s' was not set in the body", block_leaf_name(l));
            return false;
        }
        jot_value v = trace_import(b->kind->name, *l->at);
        if (trace_is_error(v)) {
            jot_place(v, b->where);
            return false;
        }
        ids[i] = trace_strong(v);
    }
    return b->trace->error == NULL;
}

static bool close_block(jot_block *b)
{
    struct trace *t = b->trace;
    if (trace_top() != t) {
        block_fail(b, JOT_ERR_TRACE, "a block inside it is still open");
        return false;
    }
    struct arena *arena = t->module->arena;
    ir_id *ids = arena_array(arena, ir_id, b->out.count + 1);
    uint32_t n_hidden, *hidden;
    if (!collect_results(b, ids))
        return false;
    struct traced body = {.n_out = b->out.count};
    body.function = trace_close(t, b->out.count, ids, &n_hidden, &hidden);
    if (body.function == IR_NONE)
        return false;
    body.n_hidden = (int)n_hidden;
    body.hidden = arena_array(arena, jot_value, n_hidden + 1);
    for (uint32_t i = 0; i < n_hidden; i++)
        body.hidden[i] = t->hidden.at[hidden[i]].outer;
    trace_end(t);
    restore_inputs(b);
    b->is_closed = true;
    if (!b->kind->finish(b, &body, ids)) {
        set_results(b, trace_fail_again(trace_top()->root->latest));
        jot_place(b->out.count ? *b->out.at[0].at : (jot_value){0, 0}, b->where);
        return true;
    }
    for (int i = 0; i < b->out.count; i++)
        *b->out.at[i].at = trace_value(ids[i], false);
    jot_place((jot_value){0, 0}, b->where);
    return true;
}

static void finish(jot_block *b)
{
    struct arena_guard guard;
    if (arena_guard_left(&guard)) {
        jot_value v = trace_out_of_memory();
        b->is_closed = true;
        while (trace_top() != b->outer)
            trace_end(trace_top());
        restore_inputs(b);
        set_results(b, v);
        return;
    }
    if (!close_block(b))
        poison(b);
    arena_guard_close(&guard);
}

bool jot_block_next(jot_block *b)
{
    if (!b)
        return false;
    if (!b->has_run) {
        b->has_run = true;
        return true;
    }
    if (b->is_inert) {
        b->is_closed = true;
        restore_inputs(b);
        set_results(b, b->error);
    } else {
        finish(b);
    }
    return false;
}

void jot_block_leave(jot_block **p)
{
    jot_block *b = *p;
    if (!b)
        return;
    if (!b->is_closed && !b->is_inert) {
        struct arena_guard guard;
        while (trace_top() && trace_top() != b->trace && trace_top() != b->outer)
            trace_end(trace_top());
        if (!arena_guard_left(&guard)) {
            block_fail(b, JOT_ERR_TRACE,
                       "left by break, return or goto; a traced block has no early exit: use "
                       "JOT_WHILE or jot_where");
            poison(b);
            arena_guard_close(&guard);
        } else {
            trace_out_of_memory();
        }
    }
    memory_release(b);
    *p = NULL;
}

// ---------------------------------------------------------------------------------------
// JOT_VMAP

static struct ir_type row_of(const struct ir_module *m, struct ir_type t)
{
    return ir_type_make((struct ir_module *)(uintptr_t)m, ir_dtype(t), t.rank - 1,
                        ir_dims(m, t) + 1);
}

// JOT_VMAP ((x), (x)) { x = ...; } is fine.
static bool is_input(const jot_block *b, const jot_value *at)
{
    for (int i = 0; i < b->in.count; i++)
        if (b->in.at[i].at == at)
            return true;
    return false;
}

static bool open_vmap(jot_block *b)
{
    struct ir_module *m = b->outer->module;
    if (b->in.count == 0) {
        b->error = block_fail(b, JOT_ERR_ARGUMENT, "no rows: list what is mapped");
        return false;
    }
    for (int i = 0; i < b->in.count; i++) {
        struct block_leaf *l = &b->in.at[i];
        const char *text = ir_type_text(m, l->type);
        int64_t rows = l->type.rank ? ir_dims(m, l->type)[0] : 0;
        if (l->type.rank == 0)
            b->error = block_fail(b, JOT_ERR_SHAPE, "'%s' is %s: it has no rows",
                                  block_leaf_name(l), text);
        else if (i > 0 && rows != b->length)
            b->error = block_fail(b, JOT_ERR_SHAPE, "'%s' is %s, but there are %lld rows",
                                  block_leaf_name(l), text, (long long)b->length);
        if (l->type.rank == 0 || (i > 0 && rows != b->length))
            return false;
        b->length = rows;
    }
    b->trace = trace_open_nested(TRACE_BLOCK, b->kind->name, b->where);
    for (int i = 0; i < b->in.count; i++) {
        struct ir_type row = row_of(m, b->in.at[i].type);
        *b->in.at[i].at = trace_param(row, false, ir_dtype(row));
    }
    jot_place((jot_value){0, 0}, b->where);
    for (int i = 0; i < b->out.count; i++)
        if (!is_input(b, b->out.at[i].at))
            *b->out.at[i].at = (jot_value){0, 0};
    return true;
}

static bool finish_vmap(jot_block *b, struct traced *body, ir_id *out)
{
    struct trace *t = trace_top();
    struct arena *arena = t->module->arena;
    int n = b->in.count;
    int32_t *in_axes = arena_array(arena, int32_t, n + body->n_hidden + 1);
    int32_t *out_axes = arena_array(arena, int32_t, b->out.count + 1);
    ir_id *in = arena_array(arena, ir_id, n + 1);
    for (int i = 0; i < n; i++)
        in[i] = trace_strong(b->in.at[i].outer);
    for (int i = 0; i < body->n_hidden; i++)
        in_axes[n + i] = PASS_NO_AXIS;
    // Before any transform, as for functions.
    body->function = pass_form_fma(t->module, body->function);
    if (pass_vmap_axes(t->module, body->function, in_axes, out_axes, b->length,
                       &body->function) != JOT_OK) {
        trace_fail_status(b->kind->name);
        return false;
    }
    return traced_emit(b->kind->name, body, n, in, out);
}

static const struct block_kind vmap_kind = {
    .name = "JOT_VMAP", .open = open_vmap, .finish = finish_vmap};

jot_block *jot_vmap_begin(const jot_piece *in, const jot_piece *out, const char *where)
{
    return begin(create(&vmap_kind, in, out, where));
}
