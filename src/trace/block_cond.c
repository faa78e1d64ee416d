// SPDX-License-Identifier: Apache-2.0
// JOT_IF and JOT_SWITCH: a part for each branch.
#include "ir/control.h"
#include "passes/body.h"
#include "trace/block.h"

#include <stdio.h>

static void open_branch(jot_block *b)
{
    block_open_part(b);
    for (int i = 0; i < b->out.count; i++)
        *b->out.at[i].at = b->out.at[i].outer;
}

static bool import_number(jot_block *b)
{
    b->number = trace_import(b->name, b->number);
    if (!trace_is_error(b->number))
        return true;
    jot_place(b->number, b->where);
    b->error = b->number;
    return false;
}

static bool open_branches(jot_block *b, int n)
{
    size_t all = (size_t)n * (size_t)b->out.count + 1;
    b->n_branches = n;
    b->parts = arena_array(b->outer->module->arena, struct traced, n);
    b->bits = arena_array(b->outer->module->arena, bool, all);
    b->made = arena_array(b->outer->module->arena, const char *, all);
    // What a variable holds that was never set may look like a value of some other trace.
    for (int i = 0; i < b->out.count; i++)
        if (!trace_is_open(b->out.at[i].outer))
            b->out.at[i].outer = (jot_value){0, 0};
    open_branch(b);
    return true;
}

static bool open_if(jot_block *b)
{
    if (!import_number(b))
        return false;
    if (!block_is_bool(b->number)) {
        b->error = block_fail(b, trace_type(b->number).rank ? JOT_ERR_SHAPE : JOT_ERR_DTYPE,
                              "the condition is %s, not one bool: jot_where chooses by element",
                              trace_type_text(b->number));
        return false;
    }
    return open_branches(b, 2);
}

#define MOST_CASES 65536

static bool open_switch(jot_block *b)
{
    if (!import_number(b))
        return false;
    struct ir_type type = trace_type(b->number);
    if (type.rank || !dtype_is_integer(ir_dtype(type))) {
        b->error = block_fail(b, type.rank ? JOT_ERR_SHAPE : JOT_ERR_DTYPE,
                              "the index is %s, not one integer", trace_type_text(b->number));
        return false;
    }
    if (b->n_branches < 1 || b->n_branches > MOST_CASES) {
        b->error = block_fail(b, JOT_ERR_ARGUMENT, "%d cases: it takes 1 to %d", b->n_branches,
                              MOST_CASES);
        return false;
    }
    return open_branches(b, b->n_branches);
}

bool jot_if_first(const jot_block *b) { return b && b->n_parts == 0; }
int jot_switch_case(const jot_block *b) { return b ? b->n_parts : 0; }

static const struct block_kind if_kind;

// "the first branch" or "case 2".
static const char *branch_name(const jot_block *b, int i, char buffer[24])
{
    if (b->kind == &if_kind)
        return i ? "the second branch" : "the first branch";
    snprintf(buffer, 24, "case %d", i);
    return buffer;
}

// The branch as a function, with results that came from C numbers marked.
static bool close_branch(jot_block *b, struct traced *out)
{
    struct ir_module *m = b->trace->module;
    int n = b->out.count;
    ir_id *ids = arena_array(m->arena, ir_id, n + 1);
    bool *weak = arena_array(m->arena, bool, n + 1);
    for (int i = 0; i < n; i++) {
        const struct block_leaf *l = &b->out.at[i];
        if (l->at->trace == 0 && l->at->id == 0) {
            char name[24];
            block_fail(b, JOT_ERR_TRACE, "'%s' has no value in %s: set it there, or before %s",
                       block_leaf_name(l), branch_name(b, b->n_parts, name), b->name);
            return false;
        }
        jot_value v = trace_import(b->name, *l->at);
        if (trace_is_error(v)) {
            trace_name_error(v, block_leaf_name(l));
            jot_place(v, b->where);
            return false;
        }
        weak[i] = trace_slot_of(v)->weak;
        b->bits[b->n_parts * n + i] = block_is_bit(v);
        b->made[b->n_parts * n + i] = trace_slot_of(v)->where;
        ids[i] = trace_kept(v);
    }
    if (b->trace->error || !block_close_part(b, n, ids, out))
        return false;
    out->weak = weak;
    return true;
}

// ---- Results of all branches

// The dtype that result i has in all branches, if one has: that of the branches where it did not
// come from C numbers, which is weak when there is none.
static jot_dtype common_dtype(const jot_block *b, int i, bool *out_weak)
{
    *out_weak = b->parts[0].weak[i];
    jot_dtype d = ir_dtype(traced_out_type(&b->parts[0], i));
    for (int k = 1; k < b->n_parts; k++) {
        jot_dtype other = ir_dtype(traced_out_type(&b->parts[k], i));
        bool other_is_weak = b->parts[k].weak[i];
        if (*out_weak && other_is_weak)
            block_join(d, other, &d);
        else if (*out_weak)
            d = other;
        *out_weak = *out_weak && other_is_weak;
    }
    return d;
}

// Whether result i of branch k is converted to what it has in all.
static bool adapts(const jot_block *b, int k, int i)
{
    const struct traced *t = &b->parts[k];
    const struct block_leaf *l = &b->out.at[i];
    jot_dtype d = ir_dtype(traced_out_type(t, i)), to = ir_dtype(l->type), joined;
    if (d == to || !t->weak[i])
        return false;
    if (l->weak)
        return block_join(d, to, &joined) && joined == to;
    return to == JOT_BOOL ? b->bits[k * b->out.count + i]
                          : block_adapts(trace_seen(d, true), to);
}

// Branch k with results of the common types.
static bool adapt(jot_block *b, int k)
{
    struct traced *t = &b->parts[k];
    bool changes = false;
    for (int i = 0; i < t->n_out; i++)
        changes = changes || adapts(b, k, i);
    if (!changes)
        return true;
    struct body w = body_of(trace_top()->module, t->function);
    body_take_all(&w);
    body_run(&w);
    for (int i = 0; i < t->n_out; i++) {
        const struct block_leaf *l = &b->out.at[i];
        bool converts = adapts(b, k, i);
        ir_output(&w.b, converts ? ir_convert(&w.b, w.out[i], ir_dtype(l->type)) : w.out[i]);
        t->weak[i] = converts ? l->weak : t->weak[i];
    }
    t->function = ir_finish_function(&w.b);
    return t->function != IR_NONE;
}

static bool agree(jot_block *b)
{
    for (int i = 0; i < b->out.count; i++) {
        struct block_leaf *l = &b->out.at[i];
        jot_dtype d = common_dtype(b, i, &l->weak);
        l->type = ir_type_make(trace_top()->module, d, 0, NULL);
    }
    for (int k = 0; k < b->n_parts; k++)
        if (!adapt(b, k))
            return false;
    return true;
}

// The type of result i as the user sees it.
static struct ir_type seen_type(const struct traced *t, int i)
{
    struct ir_type type = traced_out_type(t, i);
    return ir_type_with(type, trace_seen(ir_dtype(type), t->weak[i]));
}

// Result i of branch k is not what it is in the first.
static void fail_different(jot_block *b, int k, int i)
{
    char first[24], other[24], buffer[300];
    struct ir_module *m = trace_top()->module;
    struct ir_type s = seen_type(&b->parts[0], i), t = seen_type(&b->parts[k], i);
    const char *made = b->made[k * b->out.count + i];
    if (made == b->where) // of jot_switch, whose branches are functions
        made = NULL;
    block_fail(b, ir_dtype(s) == ir_dtype(t) ? JOT_ERR_SHAPE : JOT_ERR_DTYPE,
               "'%s' is %s in %s and %s in %s%s%s", block_leaf_name(&b->out.at[i]),
               ir_type_text(m, s), branch_name(b, 0, first), ir_type_text(m, t),
               branch_name(b, k, other), made ? ", made at " : "",
               made ? trace_shorten(made, buffer, sizeof buffer) : "");
}

static bool same_types(jot_block *b)
{
    for (int k = 1; k < b->n_parts; k++)
        for (int i = 0; i < b->out.count; i++)
            if (!ir_type_alike(traced_out_type(&b->parts[0], i),
                               traced_out_type(&b->parts[k], i))) {
                fail_different(b, k, i);
                return false;
            }
    return true;
}

// ---- Closing

// The number as that of a branch: what i32 cannot hold is clamped before it is converted.
static ir_id branch_index(const jot_block *b)
{
    struct ir_builder *w = &trace_top()->b;
    if (b->kind == &if_kind)
        return ir_convert(w, trace_operand(b->number, JOT_BOOL), JOT_I32);
    ir_id id = trace_strong(b->number);
    jot_dtype d = ir_dtype(ir_type_in(w, id));
    int64_t last = b->n_branches - 1;
    if (dtype_get(d)->bytes == 8 || d == JOT_U32)
        id = ir_clamp(w, ir_scalar_int(w, d, 0), id, ir_scalar_int(w, d, last));
    return ir_convert(w, id, JOT_I32);
}

static enum block_progress close_cond(jot_block *b, ir_id *results)
{
    int n = b->n_branches;
    if (!close_branch(b, &b->parts[b->n_parts]))
        return BLOCK_FAILED;
    if (++b->n_parts < n) {
        open_branch(b);
        return BLOCK_AGAIN;
    }
    if (!agree(b) || !same_types(b))
        return BLOCK_FAILED;
    struct arena *arena = trace_top()->module->arena;
    const struct traced **parts = arena_array(arena, const struct traced *, n);
    uint32_t *functions = arena_array(arena, uint32_t, n);
    // The first branch of JOT_IF is that of true, which is 1.
    for (int k = 0; k < n; k++)
        parts[k] = &b->parts[b->kind == &if_kind ? n - 1 - k : k];
    struct block_consts consts;
    if (!block_share(b, n, parts, functions, &consts))
        return BLOCK_FAILED;
    ir_id *in = block_operands(b, &consts, 0, NULL, &n);
    memmove(in + 1, in, sizeof *in * (size_t)n);
    in[0] = branch_index(b);
    return block_take_results(b, ir_cond(&trace_top()->b, b->n_branches, functions, n + 1, in),
                              results);
}

static const struct block_kind if_kind = {.open = open_if, .close = close_cond};
static const struct block_kind switch_kind = {.open = open_switch, .close = close_cond};

jot_block *jot_if_begin(const jot_piece *results, jot_value condition, const char *where)
{
    jot_block *b = block_create(&if_kind, NULL, NULL, results, where);
    if (b)
        b->number = condition;
    return block_begin(b);
}

jot_block *jot_switch_begin(const jot_piece *results, jot_value index, int n_cases,
                            const char *where)
{
    jot_block *b = block_create(&switch_kind, NULL, NULL, results, where);
    if (b) {
        b->number = index;
        b->n_branches = n_cases;
    }
    return block_begin(b);
}
