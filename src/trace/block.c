// SPDX-License-Identifier: Apache-2.0
#include "trace/block.h"

#include "base/memory.h"
#include "passes/body.h"
#include "passes/passes.h"
#include "trace/named.h"

#include <stdarg.h>
#include <stdio.h>

const char *block_leaf_name(const struct block_leaf *l)
{
    static _Thread_local char buffer[128];
    if (l->of == 1)
        return l->name;
    snprintf(buffer, sizeof buffer, "%s (value %zu of %zu)", l->name, l->index + 1, l->of);
    return buffer;
}

jot_value block_fail(jot_block *b, jot_status status, const char *format, ...)
{
    char text[700];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return jot_at(trace_fail(b->name, status, "%s", text), b->where);
}

static size_t count_values(const jot_piece *list)
{
    size_t n = 0;
    for (const jot_piece *p = list; p && p->at; p++)
        n += p->n;
    return n;
}

static struct block_leaves flatten(const jot_piece *list, struct block_leaf **room)
{
    struct block_leaves l = {.at = *room};
    for (const jot_piece *p = list; p && p->at; p++)
        for (size_t i = 0; i < p->n; i++) {
            jot_value *at = (jot_value *)p->at + i;
            l.at[l.count++] = (struct block_leaf){
                .at = at, .before = *at, .outer = *at, .name = p->name, .index = i, .of = p->n};
        }
    *room += l.count;
    return l;
}

jot_block *block_create(const struct block_kind *kind, const jot_piece *carry,
                        const jot_piece *in, const jot_piece *out, const char *where)
{
    rt_frames_collect();
    size_t n = count_values(carry) + count_values(in) + count_values(out);
    jot_block *b = memory_allocate_zeroed(sizeof *b + n * sizeof(struct block_leaf));
    if (!b) {
        trace_out_of_memory();
        return NULL;
    }
    struct block_leaf *room = (struct block_leaf *)(b + 1);
    b->kind = kind;
    b->axis = PASS_UNNAMED;
    b->where = where ? where : "a block";
    const char *call = strstr(b->where, ": ");
    b->name = call ? call + 2 : b->where;
    b->outer = trace_top();
    b->carry = flatten(carry, &room);
    b->in = flatten(in, &room);
    b->out = flatten(out, &room);
    return b;
}

bool block_accepts(jot_block *b, const jot_loop_options *options)
{
    if (!options)
        return true;
    const struct {
        enum block_option option;
        bool is_set;
        const char *what, *of;
    } all[] = {
        {BLOCK_LENGTH, options->length != 0, "a length", "JOT_SCAN"},
        {BLOCK_REVERSE, options->reverse, "reverse", "JOT_SCAN"},
        {BLOCK_BOUND, options->bound != 0, "a bound", "JOT_WHILE"},
        {BLOCK_SLOTS, options->slots != 0, "a number of slots", "JOT_WHILE"},
        {BLOCK_CHECKPOINT, options->checkpoint != 0, "a checkpoint", "JOT_SCAN"},
        {BLOCK_BATCH, options->batch != 0, "a batch", "JOT_MAP"},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].is_set && !(b->kind->options & all[i].option)) {
            b->error = block_fail(b, JOT_ERR_ARGUMENT, "%s is for %s", all[i].what, all[i].of);
            b->is_inert = true;
            return false;
        }
    return true;
}

static bool is_listed(const struct block_leaves *l, const jot_value *at)
{
    for (int i = 0; i < l->count; i++)
        if (l->at[i].at == at)
            return true;
    return false;
}

// A variable has one role, but that rows in may be rows out as well.
static bool check_lists(jot_block *b)
{
    const struct block_leaves *lists[] = {&b->carry, &b->in, &b->out};
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < lists[i]->count; k++) {
            const struct block_leaf *l = &lists[i]->at[k];
            struct block_leaves before = {.at = lists[i]->at, .count = k};
            if (!is_listed(&before, l->at) && (i == 0 || !is_listed(&b->carry, l->at)))
                continue;
            b->error =
                block_fail(b, JOT_ERR_ARGUMENT, "'%s' is listed twice", block_leaf_name(l));
            return false;
        }
    return true;
}

static bool import_leaves(jot_block *b, struct block_leaves *leaves)
{
    for (int i = 0; i < leaves->count; i++) {
        struct block_leaf *l = &leaves->at[i];
        l->outer = trace_import(b->name, l->outer);
        if (trace_is_error(l->outer)) {
            trace_name_error(l->outer, block_leaf_name(l));
            jot_place(l->outer, b->where);
            b->error = l->outer;
            return false;
        }
        l->type = trace_kept_type(l->outer);
        l->weak = l->starts_weak = trace_slot_of(l->outer)->weak;
        l->is_bit = block_is_bit(l->outer);
    }
    return true;
}

static bool open_block(jot_block *b)
{
    if (!trace_ready(b->name, 0, NULL, &b->error)) {
        jot_place(b->error, b->where);
        return false;
    }
    const char *why = trace_too_deep(TRACE_BLOCK);
    if (why) {
        b->error = block_fail(b, JOT_ERR_TRACE, "%s", why);
        b->has_run = true; // the body, which may open another block, is not run
        return false;
    }
    return check_lists(b) && import_leaves(b, &b->carry) && import_leaves(b, &b->in) &&
           b->kind->open(b);
}

jot_block *block_begin(jot_block *b)
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
// Parts

void block_open_part(jot_block *b)
{
    b->trace = trace_open_nested(TRACE_BLOCK, b->name, b->where);
    b->trace->block = b;
}

void block_free(jot_block *b) { memory_release(b); }

void block_lose(jot_block *b)
{
    if (b)
        b->is_lost = true;
}

void block_bind(struct block_leaf *l, struct ir_type type)
{
    *l->at = trace_param(type, l->weak);
}

static const char *seen_text(const struct block_leaf *l)
{
    jot_dtype d = trace_seen(ir_dtype(l->type), l->weak);
    return ir_type_text(trace_top()->module, ir_type_with(l->type, d));
}

// The number of rows of the listed arrays in b->length, which may stand before (-1: it does not).
static bool measure_rows(jot_block *b)
{
    struct ir_module *m = b->outer->module;
    for (int i = 0; i < b->in.count; i++) {
        struct block_leaf *l = &b->in.at[i];
        const char *text = seen_text(l);
        int64_t rows = l->type.rank ? ir_dims(m, l->type)[0] : 0;
        if (l->type.rank == 0)
            b->error = block_fail(b, JOT_ERR_SHAPE, "'%s' is %s: it has no rows",
                                  block_leaf_name(l), text);
        else if (b->length >= 0 && rows != b->length)
            b->error = block_fail(b, JOT_ERR_SHAPE, "'%s' is %s, but there are %lld rows",
                                  block_leaf_name(l), text, (long long)b->length);
        if (l->type.rank == 0 || (b->length >= 0 && rows != b->length))
            return false;
        b->length = rows;
    }
    return true;
}

// Rows out that are not rows in as well have no value inside.
static void clear_results(jot_block *b)
{
    for (int i = 0; i < b->out.count; i++)
        if (!is_listed(&b->in, b->out.at[i].at) && !is_listed(&b->carry, b->out.at[i].at))
            *b->out.at[i].at = (jot_value){0, 0};
}

static bool name_rows(jot_block *b)
{
    if (!trace_is_axis_name(b->axis_name)) {
        b->error =
            block_fail(b, JOT_ERR_ARGUMENT,
                       "the name \"%.60s\" of an axis is NULL, or not letters, digits and _",
                       b->axis_name);
        return false;
    }
    b->axis = trace_name_axis(b->name, trace_top()->axes, b->axis_name, b->length, &b->error);
    if (b->axis < 0)
        b->error = jot_at(b->error, b->where);
    return b->axis >= 0;
}

static uint16_t block_axes(const jot_block *b)
{
    return b->axis < 0 ? 0 : (uint16_t)(1u << b->axis);
}

bool block_open_rows(jot_block *b)
{
    if (!measure_rows(b))
        return false;
    if (b->axis_name && !name_rows(b))
        return false;
    block_open_part(b);
    b->trace->axes |= block_axes(b);
    for (int i = 0; i < b->carry.count; i++)
        block_bind(&b->carry.at[i], b->carry.at[i].type);
    for (int i = 0; i < b->in.count; i++) {
        struct ir_type row = ir_type_row(b->trace->module, b->in.at[i].type);
        row.varies |= block_axes(b);
        block_bind(&b->in.at[i], row);
    }
    jot_place((jot_value){0, 0}, b->where);
    clear_results(b);
    return true;
}

static void restore(struct block_leaves *l)
{
    for (int i = 0; i < l->count; i++)
        *l->at[i].at = l->at[i].before;
}

static void set_results(jot_block *b, jot_value v)
{
    for (int i = 0; i < b->carry.count; i++)
        *b->carry.at[i].at = v;
    for (int i = 0; i < b->out.count; i++)
        *b->out.at[i].at = v;
}

// What the body made of the variables, as values of the open part; false with an error.
static bool import_made(jot_block *b, const struct block_leaves *leaves)
{
    for (int i = 0; i < leaves->count; i++) {
        const struct block_leaf *l = &leaves->at[i];
        if (l->at->trace == 0 && l->at->id == 0) {
            block_fail(b, JOT_ERR_TRACE, "'%s' was not set in the body", block_leaf_name(l));
            return false;
        }
        *l->at = trace_import(b->name, *l->at);
        if (trace_is_error(*l->at)) {
            trace_name_error(*l->at, block_leaf_name(l));
            jot_place(*l->at, b->where);
            return false;
        }
    }
    return b->trace->error == NULL;
}

bool block_collect(jot_block *b, ir_id *ids)
{
    if (!import_made(b, &b->out))
        return false;
    for (int i = 0; i < b->out.count; i++) {
        struct block_leaf *l = &b->out.at[i];
        l->weak = trace_slot_of(*l->at)->weak;
        ids[i] = trace_kept(*l->at);
    }
    return b->trace->error == NULL;
}

bool block_close_part(jot_block *b, int n, const ir_id *ids, struct traced *out)
{
    struct trace *t = b->trace;
    struct arena *arena = t->module->arena;
    uint32_t n_hidden, *hidden;
    *out = (struct traced){.n_out = n};
    out->function = trace_close(t, n, ids, &n_hidden, &hidden);
    if (out->function == IR_NONE)
        return false;
    // Before any transform, as for functions.
    out->function = pass_form_fma(t->module, out->function);
    out->n_hidden = (int)n_hidden;
    out->hidden = arena_array(arena, jot_value, n_hidden + 1);
    for (uint32_t i = 0; i < n_hidden; i++)
        out->hidden[i] = t->hidden.at[hidden[i]].outer;
    trace_end(t);
    b->trace = NULL;
    restore(&b->carry);
    restore(&b->in);
    return true;
}

bool block_is_bit(jot_value v)
{
    const struct trace_number *n = trace_number_of(v);
    return n && n->kind == 'i' && (n->i == 0 || n->i == 1);
}

bool block_is_bool(jot_value v)
{
    struct ir_type type = trace_type(v);
    return block_is_bit(v) || (type.rank == 0 && ir_dtype(type) == JOT_BOOL);
}

bool block_adapts(jot_dtype weak, jot_dtype other)
{
    bool is_weak;
    return dtype_promote(weak, true, other, false, &is_weak) == other;
}

bool block_join(jot_dtype a, jot_dtype b, jot_dtype *out)
{
    const struct dtype_info *x = dtype_get(a), *y = dtype_get(b);
    *out = a == b || x->bytes > y->bytes ? a : b;
    if (dtype_is_inexact(a) || dtype_is_inexact(b))
        *out = a == b ? a : dtype_is_complex(a) || dtype_is_complex(b) ? JOT_C128 : JOT_F64;
    return a == b || dtype_is_inexact(*out) || x->bytes != y->bytes;
}

// Whether what the body made goes where the carry is.  A C number takes the type of a carry.
static bool agrees(const struct block_leaf *l)
{
    const struct trace_slot *s = trace_slot_of(*l->at);
    struct ir_type made = trace_kept_type(*l->at);
    jot_dtype d = ir_dtype(l->type), joined;
    if (made.shape != l->type.shape)
        return false;
    if (l->weak)
        return s->weak && block_join(d, ir_dtype(made), &joined) && joined == d;
    return ir_dtype(made) == d || (s->weak && block_adapts((jot_dtype)s->dtype, d));
}

// What started as a C number takes the type that the body makes of it, which is a wider one.
static bool adapt(struct block_leaf *l)
{
    const struct trace_slot *s = trace_slot_of(*l->at);
    struct ir_type made = trace_kept_type(*l->at);
    jot_dtype d = ir_dtype(l->type), seen = trace_seen(d, l->weak), to = ir_dtype(made);
    bool weak = true;
    if (made.shape != l->type.shape)
        return false;
    if (to == JOT_BOOL && l->is_bit && l->weak) {
        l->type = made;
        l->weak = false;
        return true;
    }
    if (!l->weak || !s->weak)
        to = dtype_promote(seen, l->weak, (jot_dtype)s->dtype, s->weak, &weak);
    if (weak ? !block_join(d, ir_dtype(made), &to) : to != ir_dtype(made))
        return false;
    bool changes = to != d || weak != l->weak;
    l->type = ir_type_with(made, to);
    l->weak = weak;
    return changes;
}

// A carry that is of another type after the body, and what made it so.
static void fail_changed(jot_block *b, const struct block_leaf *bad)
{
    char buffer[300];
    struct ir_type made = trace_type(*bad->at);
    const char *where = trace_slot_of(*bad->at)->where;
    bool same = trace_seen(ir_dtype(bad->type), bad->weak) == ir_dtype(made);
    block_fail(b, same ? JOT_ERR_SHAPE : JOT_ERR_DTYPE,
               "'%s' is %s before the body and %s after it%s%s", block_leaf_name(bad),
               seen_text(bad), ir_type_text(b->trace->module, made), where ? ", made at " : "",
               where ? trace_shorten(where, buffer, sizeof buffer) : "");
}

enum block_progress block_collect_carries(jot_block *b, ir_id *ids)
{
    const struct block_leaf *bad = NULL;
    bool adapts = false;
    if (!import_made(b, &b->carry))
        return BLOCK_FAILED;
    for (int i = 0; i < b->carry.count; i++) {
        struct block_leaf *l = &b->carry.at[i];
        if (agrees(l))
            ids[i] = trace_operand(*l->at, ir_dtype(l->type));
        else if (l->starts_weak && adapt(l))
            adapts = true;
        else if (!bad)
            bad = l;
    }
    if (adapts) {
        trace_end(b->trace);
        b->trace = NULL;
        restore(&b->carry);
        restore(&b->in);
        return BLOCK_AGAIN;
    }
    if (bad) {
        fail_changed(b, bad);
        return BLOCK_FAILED;
    }
    return b->trace->error ? BLOCK_FAILED : BLOCK_DONE;
}

// The number of the const that is v in the graph around the block; a new one when there is none.
// A block in a block may have several names of a value that is captured by that.
static int find_const(const jot_block *b, struct block_consts *c, jot_value v)
{
    v = trace_import(b->name, v);
    for (int i = 0; i < c->n; i++)
        if (trace_slot_of(c->at[i])->id == trace_slot_of(v)->id)
            return i;
    c->at[c->n] = v;
    return c->n++;
}

// That of the parameter which it is in a body: a weak value is wider in the graph than it looks.
static struct ir_type type_in_graph(jot_value v)
{
    return ir_type_in(trace_builder(), trace_slot_of(v)->id);
}

// The function with a parameter for each of the consts, then its own.  which: by hidden value, the
// const that it is.
static uint32_t consts_first(struct ir_module *m, const struct traced *t, const int *which,
                             const struct block_consts *c)
{
    struct body w = body_of(m, t->function);
    uint32_t n_own = w.f->n_params - (uint32_t)t->n_hidden, made;
    ir_id *param = arena_array(m->arena, ir_id, c->n + 1);
    for (int i = 0; i < c->n; i++)
        param[i] = ir_param(&w.b, type_in_graph(c->at[i]));
    for (int k = 0; k < t->n_hidden; k++)
        w.in[n_own + (uint32_t)k] = param[which[k]];
    for (uint32_t i = 0; i < n_own; i++)
        body_take(&w, i);
    body_run(&w);
    for (uint32_t i = 0; i < w.f->outputs.count; i++)
        body_give(&w, i);
    return pass_finish(&w.b, &made) == JOT_OK ? made : IR_NONE;
}

bool block_share(jot_block *b, int n, const struct traced *const *parts, uint32_t *functions,
                 struct block_consts *out)
{
    struct ir_module *m = trace_top()->module;
    int most = 0;
    for (int i = 0; i < n; i++)
        most += parts[i]->n_hidden;
    *out = (struct block_consts){.at = arena_array(m->arena, jot_value, most + 1)};
    int **which = arena_array(m->arena, int *, n);
    for (int i = 0; i < n; i++) {
        which[i] = arena_array(m->arena, int, parts[i]->n_hidden + 1);
        for (int k = 0; k < parts[i]->n_hidden; k++)
            which[i][k] = find_const(b, out, parts[i]->hidden[k]);
    }
    for (int i = 0; i < n; i++) {
        functions[i] = consts_first(m, parts[i], which[i], out);
        if (functions[i] == IR_NONE) {
            jot_place(trace_fail_status(b->name), b->where);
            return false;
        }
    }
    return true;
}

ir_id *block_operands(jot_block *b, const struct block_consts *c, int n_lists,
                      const struct block_leaves *const *lists, int *out_n)
{
    int n = 0, most = c->n;
    for (int i = 0; i < n_lists; i++)
        most += lists[i]->count;
    ir_id *in = arena_array(trace_top()->module->arena, ir_id, most + 1);
    for (int i = 0; i < c->n; i++)
        in[n++] = trace_slot_of(trace_import(b->name, c->at[i]))->id;
    for (int i = 0; i < n_lists; i++)
        for (int k = 0; k < lists[i]->count; k++)
            in[n++] = trace_operand(lists[i]->at[k].outer, ir_dtype(lists[i]->at[k].type));
    *out_n = n;
    return in;
}

enum block_progress block_take_results(const jot_block *b, ir_id first, ir_id *results)
{
    for (int i = 0; i < b->carry.count + b->out.count; i++)
        results[i] = first == IR_NONE ? IR_NONE : first + (ir_id)i;
    return BLOCK_DONE;
}

// ---------------------------------------------------------------------------------------
// Closing

// Gives up: what the block gives back is the error that its trace met.
static void poison(jot_block *b)
{
    const struct trace_error *e = NULL;
    while (trace_top() != b->outer) {
        e = trace_top()->error ? trace_top()->error : e;
        trace_end(trace_top());
    }
    if (!e)
        e = b->outer->root->latest;
    b->is_closed = true;
    restore(&b->in);
    set_results(b, e ? trace_fail_again(e) : block_fail(b, JOT_ERR_TRACE, "abandoned"));
}

static void give_results(jot_block *b, const ir_id *ids)
{
    b->is_closed = true;
    restore(&b->in);
    for (int i = 0; i < b->carry.count; i++)
        *b->carry.at[i].at = trace_value(ids[i], b->carry.at[i].weak);
    for (int i = 0; i < b->out.count; i++)
        *b->out.at[i].at = trace_value(ids[b->carry.count + i], b->out.at[i].weak);
    jot_place((jot_value){0, 0}, b->where);
}

static enum block_progress close_part(jot_block *b)
{
    if (trace_top() != b->trace) {
        block_fail(b, JOT_ERR_TRACE, "a block inside it is still open");
        return BLOCK_FAILED;
    }
    ir_id *ids = arena_array(b->trace->module->arena, ir_id, b->carry.count + b->out.count + 1);
    enum block_progress p = b->kind->close(b, ids);
    if (p != BLOCK_DONE)
        return p;
    if (trace_top()->b.status != JOT_OK) {
        jot_place(trace_result(b->name, IR_NONE, false), b->where);
        return BLOCK_FAILED;
    }
    give_results(b, ids);
    return BLOCK_DONE;
}

// Whether the body runs again.
static bool finish(jot_block *b)
{
    struct arena_guard guard;
    if (arena_guard_left(&guard)) {
        jot_value v = trace_out_of_memory();
        b->is_closed = true;
        while (trace_top() != b->outer)
            trace_end(trace_top());
        restore(&b->in);
        set_results(b, v);
        return false;
    }
    enum block_progress p = close_part(b);
    if (p == BLOCK_FAILED)
        poison(b);
    arena_guard_close(&guard);
    return p == BLOCK_AGAIN;
}

bool jot_block_next(jot_block *b)
{
    if (!b)
        return false;
    if (b->is_lost) {
        set_results(b, (jot_value){0, 1});
        return false;
    }
    if (!b->has_run) {
        b->has_run = true;
        return true;
    }
    if (b->is_in_body)
        return false; // left by break, which jot_block_leave reports
    if (!b->is_inert)
        return finish(b);
    b->is_closed = true;
    restore(&b->in);
    set_results(b, b->error);
    return false;
}

void jot_block_leave(jot_block **p)
{
    jot_block *b = p ? *p : NULL;
    if (!b)
        return;
    if (!b->is_closed && !b->is_inert && !b->is_lost) {
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
