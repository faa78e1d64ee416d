// SPDX-License-Identifier: Apache-2.0
// JOT_WHILE: two parts, the test and the step.
#include "ir/control.h"
#include "trace/block.h"

static void bind(jot_block *b)
{
    block_open_part(b);
    for (int i = 0; i < b->carry.count; i++)
        block_bind(&b->carry.at[i], b->carry.at[i].type);
    jot_place((jot_value){0, 0}, b->where);
}

static bool open_while(jot_block *b)
{
    if (b->carry.count == 0) {
        b->error = block_fail(b, JOT_ERR_ARGUMENT, "no state: list what the step changes");
        return false;
    }
    bind(b);
    return true;
}

// The test has been evaluated in its part; the step is opened.
static bool take_test(jot_block *b, jot_value test)
{
    jot_value v = trace_import(b->kind->name, test);
    if (trace_is_error(v)) {
        jot_place(v, b->where);
        return false;
    }
    struct ir_type type = trace_type(v);
    if (type.rank != 0 || ir_dtype(type) != JOT_BOOL) {
        block_fail(b, type.rank ? JOT_ERR_SHAPE : JOT_ERR_DTYPE,
                   "the test is %s: it must be one bool", trace_type_text(v));
        return false;
    }
    ir_id id = trace_strong(v);
    if (b->trace->error || !block_close_part(b, 1, &id, &b->part))
        return false;
    bind(b);
    return true;
}

bool jot_while_test(jot_block *b, jot_value test)
{
    struct arena_guard guard;
    if (b->is_inert)
        return true;
    if (arena_guard_left(&guard)) {
        trace_out_of_memory();
        return true;
    }
    if (trace_top() == b->trace && !take_test(b, test))
        b->has_failed =
            true; // the step runs in the part of the test, and then the block gives up
    arena_guard_close(&guard);
    return true;
}

static enum block_progress close_while(jot_block *b, ir_id *results)
{
    struct traced step;
    int n_carry = b->carry.count;
    if (b->has_failed || !block_collect(b, &b->carry, results))
        return BLOCK_FAILED;
    enum block_progress p = block_check_carries(b);
    if (p == BLOCK_AGAIN)
        bind(b);
    if (p != BLOCK_DONE)
        return p;
    if (!block_close_part(b, n_carry, results, &step))
        return BLOCK_FAILED;
    struct ir_while loop = {.max_trips = b->length};
    struct block_consts consts;
    uint32_t functions[2];
    if (!block_share(b, 2, (struct traced *[]){&b->part, &step}, functions, &consts))
        return BLOCK_FAILED;
    loop.test = functions[0];
    loop.step = functions[1];
    loop.n_consts = consts.n;
    int n;
    ir_id *in = block_operands(b, &consts, 1, (const struct block_leaves *[]){&b->carry}, &n);
    ir_id first = ir_while(&trace_top()->b, &loop, n, in);
    for (int i = 0; i < n_carry; i++)
        results[i] = first == IR_NONE ? IR_NONE : first + (ir_id)i;
    return BLOCK_DONE;
}

static const struct block_kind while_kind = {
    .name = "JOT_WHILE", .open = open_while, .close = close_while};

jot_block *jot_while_begin(const jot_piece *carry, const jot_loop_options *options,
                           const char *where)
{
    jot_block *b = block_create(&while_kind, carry, NULL, NULL, where);
    if (b)
        b->length = options && options->bound ? options->bound : IR_NO_BOUND;
    return block_begin(b);
}
