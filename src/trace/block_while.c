// SPDX-License-Identifier: Apache-2.0
// JOT_WHILE: two parts, the test and the body.
#include "ir/control.h"
#include "passes/transform.h"
#include "trace/block.h"

static void bind(jot_block *b)
{
    block_open_part(b);
    for (int i = 0; i < b->carry.count; i++)
        block_bind(&b->carry.at[i], b->carry.at[i].type);
    jot_place((jot_value){0, 0}, b->where);
}

#define MOST_SLOTS (1 << 24)

static bool open_while(jot_block *b)
{
    if (b->carry.count == 0) {
        b->error = block_fail(b, JOT_ERR_ARGUMENT, "no state: list what the body changes");
        return false;
    }
    if (b->checkpoint) {
        b->error = block_fail(b, JOT_ERR_ARGUMENT,
                              "a checkpoint is for JOT_SCAN, whose trips are counted before it "
                              "runs");
        return false;
    }
    if (b->length < 0) {
        b->error = block_fail(b, JOT_ERR_ARGUMENT, "a bound of %lld trips: it is 1 or more",
                              (long long)b->length);
        return false;
    }
    if (b->slots && (b->slots < 2 || b->slots > MOST_SLOTS || b->length)) {
        b->error = b->length
                       ? block_fail(b, JOT_ERR_ARGUMENT,
                                    "slots are for a loop without a bound: one with a bound "
                                    "keeps what its trips need")
                       : block_fail(b, JOT_ERR_ARGUMENT, "%lld slots: 2 to %d are possible",
                                    (long long)b->slots, MOST_SLOTS);
        return false;
    }
    b->parts = arena_new(b->outer->module->arena, struct traced);
    bind(b);
    return true;
}

// Whether a body that has run gives back what it was given.  Its carries are its first values.
static bool changes_nothing(const jot_block *b, const ir_id *results)
{
    for (int i = 0; i < b->carry.count; i++)
        if (results[i] != (ir_id)i)
            return false;
    return true;
}

// The test has been evaluated in its part; the body is opened.
static bool take_test(jot_block *b, jot_value test)
{
    jot_value v = trace_import(b->name, test);
    if (trace_is_error(v)) {
        jot_place(v, b->where);
        return false;
    }
    if (!block_is_bool(v)) {
        block_fail(b, trace_type(v).rank ? JOT_ERR_SHAPE : JOT_ERR_DTYPE,
                   "the test is %s: it must be one bool", trace_type_text(v));
        return false;
    }
    ir_id id = trace_operand(v, JOT_BOOL);
    if (b->trace->error || !block_close_part(b, 1, &id, b->parts))
        return false;
    bind(b);
    return true;
}

bool jot_while_test(jot_block *b, jot_value test)
{
    struct arena_guard guard;
    if (!b || b->is_inert)
        return b != NULL;
    if (arena_guard_left(&guard)) {
        trace_out_of_memory();
        return true;
    }
    if (!b->is_lost && trace_top() == b->trace && !take_test(b, test))
        b->has_failed =
            true; // the body runs in the part of the test, and then the block gives up
    arena_guard_close(&guard);
    b->is_in_body = true;
    return true;
}

bool jot_while_stepped(jot_block *b)
{
    if (b)
        b->is_in_body = false;
    return false;
}

// The test on the carries after the loop, which must not hold.
static void check_bound(jot_block *b, const struct ir_while *loop, ir_id *in,
                        const ir_id *results)
{
    struct ir_builder *to = &trace_top()->b;
    struct strbuf message = strbuf_make(to->module->arena);
    char buffer[320];
    ir_id holds;
    memcpy(in + loop->n_consts, results, sizeof *in * (size_t)b->carry.count);
    uint32_t test = pass_strip_effects(to->module, loop->test);
    ir_inline(to, ir_function(to->module, test), in, &holds);
    strbuf_printf(&message, "not done after %lld trips, its bound", (long long)loop->max_trips);
    ir_check(to, ir_not(to, holds), 0, NULL, message.text,
             trace_shorten(b->where, buffer, sizeof buffer));
}

static enum block_progress close_while(jot_block *b, ir_id *results)
{
    struct traced body;
    int n_carry = b->carry.count;
    if (b->has_failed)
        return BLOCK_FAILED;
    enum block_progress p = block_collect_carries(b, results);
    if (p == BLOCK_AGAIN)
        bind(b);
    if (p != BLOCK_DONE)
        return p;
    struct ir_module *m = b->outer->module;
    if (changes_nothing(b, results) && !ir_function(m, b->parts->function)->has_effects) {
        block_fail(b, JOT_ERR_ARGUMENT,
                   "the body changes nothing that is listed: the loop would not end");
        return BLOCK_FAILED;
    }
    if (!block_close_part(b, n_carry, results, &body))
        return BLOCK_FAILED;
    struct ir_while loop = {.max_trips = b->length ? b->length : IR_NO_BOUND,
                            .slots = b->slots};
    struct block_consts consts;
    uint32_t functions[2];
    if (!block_share(b, 2, (const struct traced *[]){b->parts, &body}, functions, &consts))
        return BLOCK_FAILED;
    if (b->length && !pass_is_repeatable(m, functions[0])) {
        block_fail(
            b, JOT_ERR_ARGUMENT,
            "a bound is for a test without callbacks, for it is made once more behind the "
            "loop: count the trips in the state");
        return BLOCK_FAILED;
    }
    loop.test = functions[0];
    loop.body = functions[1];
    loop.n_consts = consts.n;
    int n;
    ir_id *in = block_operands(b, &consts, 1, (const struct block_leaves *[]){&b->carry}, &n);
    ir_id first = ir_while(&trace_top()->b, &loop, n, in);
    enum block_progress done = block_take_results(b, first, results);
    if (first != IR_NONE && loop.max_trips != IR_NO_BOUND)
        check_bound(b, &loop, in, results);
    return done;
}

static const struct block_kind while_kind = {.options =
                                                 BLOCK_BOUND | BLOCK_CHECKPOINT | BLOCK_SLOTS,
                                             .open = open_while,
                                             .close = close_while};

jot_block *jot_while_begin(const jot_piece *carry, const jot_loop_options *options,
                           const char *where)
{
    jot_block *b = block_create(&while_kind, carry, NULL, NULL, where);
    if (!b || !block_accepts(b, options))
        return b;
    b->length = options ? options->bound : 0;
    b->checkpoint = options ? options->checkpoint : JOT_CHECKPOINT_AUTO;
    b->slots = options ? options->slots : 0;
    return block_begin(b);
}
