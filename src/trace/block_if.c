// SPDX-License-Identifier: Apache-2.0
// JOT_IF: two parts, the branch that is taken when the predicate holds and the other.
#include "ir/control.h"
#include "passes/passes.h"
#include "trace/block.h"

static void open_branch(jot_block *b)
{
    block_open_part(b);
    for (int i = 0; i < b->out.count; i++)
        *b->out.at[i].at = b->out.at[i].outer;
}

static bool open_if(jot_block *b)
{
    b->number = trace_import(b->kind->name, b->number);
    if (trace_is_error(b->number)) {
        jot_place(b->number, b->where);
        b->error = b->number;
        return false;
    }
    struct ir_type type = trace_type(b->number);
    if (type.rank != 0 || ir_dtype(type) != JOT_BOOL) {
        b->error = block_fail(b, type.rank ? JOT_ERR_SHAPE : JOT_ERR_DTYPE,
                              "the condition is %s, not one bool: jot_where chooses by element",
                              trace_type_text(b->number));
        return false;
    }
    open_branch(b);
    return true;
}

bool jot_if_first(const jot_block *b) { return !b->has_part; }

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
            block_fail(b, JOT_ERR_TRACE, "'%s' has no value in the %s branch",
                       block_leaf_name(l), b->has_part ? "second" : "first");
            return false;
        }
        jot_value v = trace_import(b->kind->name, *l->at);
        if (trace_is_error(v)) {
            jot_place(v, b->where);
            return false;
        }
        weak[i] = trace_slot_of(v)->weak;
        ids[i] = trace_strong(v);
    }
    if (b->trace->error || !block_close_part(b, n, ids, out))
        return false;
    out->weak = weak;
    return true;
}

// Results that came from C numbers take the type of the other branch.
static bool agree(jot_block *b, struct traced *mine, const struct traced *other)
{
    struct ir_module *m = trace_top()->module;
    const struct ir_graph *f = ir_function(m, mine->function);
    struct ir_builder w = ir_builder_make(m, b->kind->name, IR_BUILD_PLAIN);
    bool changes = false;
    ir_id *in = arena_array(m->arena, ir_id, f->n_params + 1);
    for (uint32_t i = 0; i < f->n_params; i++)
        in[i] = ir_param(&w, ir_type_of(f, i));
    ir_id first = ir_call(&w, IR_call, 1, &mine->function, (int)f->n_params, in);
    for (int i = 0; i < mine->n_out; i++) {
        jot_dtype d = ir_dtype(traced_out_type(mine, i)),
                  to = ir_dtype(traced_out_type(other, i));
        bool adapts = d != to && mine->weak[i] && !other->weak[i];
        changes = changes || adapts;
        ir_output(&w, adapts ? ir_convert(&w, first + (ir_id)i, to) : first + (ir_id)i);
    }
    if (!changes)
        return true;
    mine->function = ir_finish_function(&w);
    return mine->function != IR_NONE;
}

static bool same_types(jot_block *b, const struct traced *first, const struct traced *second)
{
    struct ir_module *m = trace_top()->module;
    for (int i = 0; i < b->out.count; i++) {
        struct ir_type s = traced_out_type(first, i), t = traced_out_type(second, i);
        if (ir_type_equal(s, t))
            continue;
        block_fail(b, ir_dtype(s) == ir_dtype(t) ? JOT_ERR_SHAPE : JOT_ERR_DTYPE,
                   "'%s' is %s in the first branch and %s in the second",
                   block_leaf_name(&b->out.at[i]), ir_type_text(m, s), ir_type_text(m, t));
        return false;
    }
    return true;
}

static enum block_progress close_if(jot_block *b, ir_id *results)
{
    struct traced other;
    if (!b->has_part) {
        if (!close_branch(b, &b->part))
            return BLOCK_FAILED;
        b->has_part = true;
        open_branch(b);
        return BLOCK_AGAIN;
    }
    if (!close_branch(b, &other) || !agree(b, &b->part, &other) ||
        !agree(b, &other, &b->part) || !same_types(b, &b->part, &other))
        return BLOCK_FAILED;
    struct block_consts consts;
    uint32_t branches[2];
    if (!block_share(b, 2, (struct traced *[]){&other, &b->part}, branches, &consts))
        return BLOCK_FAILED;
    int n;
    struct ir_builder *builder = &trace_top()->b;
    ir_id *in = block_operands(b, &consts, 0, NULL, &n);
    memmove(in + 1, in, sizeof *in * (size_t)n);
    in[0] = ir_convert(builder, trace_strong(b->number), JOT_I32);
    ir_id first = ir_cond(builder, 2, branches, n + 1, in);
    for (int i = 0; i < b->out.count; i++)
        results[i] = first == IR_NONE ? IR_NONE : first + (ir_id)i;
    return BLOCK_DONE;
}

static const struct block_kind if_kind = {.name = "JOT_IF", .open = open_if, .close = close_if};

jot_block *jot_if_begin(const jot_piece *results, jot_value condition, const char *where)
{
    jot_block *b = block_create(&if_kind, NULL, NULL, results, where);
    if (b)
        b->number = condition;
    return block_begin(b);
}
