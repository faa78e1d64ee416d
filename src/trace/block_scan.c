// SPDX-License-Identifier: Apache-2.0
// JOT_SCAN, and JOT_FOR with a number of trips that is known: scans.  JOT_FOR with trips that are
// computed is a while loop with a counter.
#include "ir/control.h"
#include "trace/block.h"

static ir_id scan_of(jot_block *b, const struct traced *body, const ir_id *counters)
{
    struct trace *t = trace_top();
    struct block_consts consts;
    struct ir_scan scan = {
        .n_carry = b->carry.count, .length = b->length, .reverse = b->reverse};
    struct traced *part = (struct traced *)(uintptr_t)body;
    if (!block_share(b, 1, &part, &scan.body, &consts))
        return IR_NONE;
    scan.n_consts = consts.n;
    int n;
    ir_id *in =
        block_operands(b, &consts, 2, (const struct block_leaves *[]){&b->carry, &b->in}, &n);
    if (counters)
        in[n++] = *counters; // block_operands leaves room for one
    return ir_scan(&t->b, &scan, n, in);
}

static enum block_progress give(const jot_block *b, ir_id first, ir_id *results)
{
    for (int i = 0; i < b->carry.count + b->out.count; i++)
        results[i] = first == IR_NONE ? IR_NONE : first + (ir_id)i;
    return BLOCK_DONE; // an error of the builder is found by who asked
}

// ---- JOT_SCAN

static bool open_scan(jot_block *b)
{
    if (!block_measure_rows(b))
        return false;
    if (b->length < 0) {
        b->error = block_fail(b, JOT_ERR_ARGUMENT,
                              "no rows in and no length: write .length = N behind the lists");
        return false;
    }
    block_open_part(b);
    for (int i = 0; i < b->carry.count; i++)
        block_bind(&b->carry.at[i], b->carry.at[i].type);
    for (int i = 0; i < b->in.count; i++)
        block_bind(&b->in.at[i], block_row(b->trace->module, b->in.at[i].type));
    jot_place((jot_value){0, 0}, b->where);
    block_clear_results(b);
    return true;
}

static enum block_progress close_scan(jot_block *b, ir_id *results)
{
    struct traced body;
    int n = b->carry.count;
    if (!block_collect(b, &b->carry, results))
        return BLOCK_FAILED;
    enum block_progress p = block_check_carries(b);
    if (p == BLOCK_AGAIN)
        return open_scan(b) ? BLOCK_AGAIN : BLOCK_FAILED;
    if (p == BLOCK_FAILED || !block_collect(b, &b->out, results + n) ||
        !block_close_part(b, n + b->out.count, results, &body))
        return BLOCK_FAILED;
    return give(b, scan_of(b, &body, NULL), results);
}

static const struct block_kind scan_kind = {
    .name = "JOT_SCAN", .open = open_scan, .close = close_scan};

jot_block *jot_scan_begin(const jot_piece *carry, const jot_piece *in, const jot_piece *out,
                          const jot_loop_options *options, const char *where)
{
    jot_block *b = block_create(&scan_kind, carry, in, out, where);
    if (!b)
        return NULL;
    b->length = -1;
    if (options && options->length)
        b->length = options->length;
    b->reverse = options && options->reverse;
    if (options && options->length < 0) {
        b->error = block_fail(b, JOT_ERR_ARGUMENT, "a length of %lld: negative",
                              (long long)options->length);
        b->is_inert = true;
        return b;
    }
    return block_begin(b);
}

// ---- JOT_FOR

static void bind_for(jot_block *b)
{
    block_open_part(b);
    for (int i = 0; i < b->carry.count; i++)
        block_bind(&b->carry.at[i], b->carry.at[i].type);
    struct block_leaf index = {.at = &b->index};
    block_bind(&index, ir_type_make(b->trace->module, JOT_I32, 0, NULL));
    jot_place((jot_value){0, 0}, b->where);
}

static bool open_for(jot_block *b)
{
    b->number = trace_import(b->kind->name, b->number);
    if (trace_is_error(b->number)) {
        jot_place(b->number, b->where);
        b->error = b->number;
        return false;
    }
    const struct trace_number *number = trace_number_of(b->number);
    struct ir_type type = trace_type(b->number);
    b->length = number && number->kind == 'i' ? number->i : -1;
    if (number ? number->kind != 'i' : type.rank != 0 || !dtype_is_integer(ir_dtype(type))) {
        b->error = block_fail(b, JOT_ERR_DTYPE, "the trips are %s, not one integer",
                              trace_type_text(b->number));
        return false;
    }
    if (number && (number->i < 0 || number->i > INT32_MAX)) {
        b->error = block_fail(b, JOT_ERR_ARGUMENT, "%lld trips: 0 to 2^31 - 1 are possible",
                              (long long)number->i);
        return false;
    }
    bind_for(b);
    return true;
}

// Carries and a counter, from 0 on.
static ir_id counted_while(jot_block *b, const struct traced *body)
{
    struct trace *t = trace_top();
    struct ir_module *m = t->module;
    struct ir_type i32 = ir_type_make(m, JOT_I32, 0, NULL);
    // The step: the body with the counter as last carry.
    struct traced step = *body, test = {.n_out = 1};
    struct ir_builder w = ir_builder_make(m, b->kind->name, IR_BUILD_PLAIN);
    const struct ir_graph *f = ir_function(m, body->function);
    uint32_t n_own = (uint32_t)b->carry.count + 1;
    ir_id *in = arena_array(m->arena, ir_id, f->n_params + 1);
    for (uint32_t i = 0; i < f->n_params; i++)
        in[i] = ir_param(&w, ir_type_of(f, i));
    ir_id first = ir_call(&w, IR_call, 1, &body->function, (int)f->n_params, in);
    for (int i = 0; i < b->carry.count; i++)
        ir_output(&w, first + (ir_id)i);
    ir_output(&w, ir_add(&w, in[n_own - 1], ir_scalar(&w, JOT_I32, 1)));
    step.function = ir_finish_function(&w);
    step.n_out = (int)n_own;
    // The test: the counter below the trips.
    w = ir_builder_make(m, b->kind->name, IR_BUILD_PLAIN);
    ir_id last = IR_NONE;
    for (uint32_t i = 0; i < n_own; i++)
        last = ir_param(&w, i + 1 < n_own ? b->carry.at[i].type : i32);
    ir_id trips = ir_param(&w, trace_type(b->number));
    jot_dtype d = ir_dtype(trace_type(b->number));
    ir_output(&w, ir_lt(&w, ir_convert(&w, last, d), trips));
    test.function = ir_finish_function(&w);
    test.n_hidden = 1;
    test.hidden = &b->number;
    if (step.function == IR_NONE || test.function == IR_NONE)
        return IR_NONE;
    struct block_consts consts;
    uint32_t functions[2];
    if (!block_share(b, 2, (struct traced *[]){&test, &step}, functions, &consts))
        return IR_NONE;
    int n;
    ir_id *operands =
        block_operands(b, &consts, 1, (const struct block_leaves *[]){&b->carry}, &n);
    operands[n++] = ir_scalar(&t->b, JOT_I32, 0);
    struct ir_while loop = {.test = functions[0],
                            .step = functions[1],
                            .n_consts = consts.n,
                            .max_trips = IR_NO_BOUND};
    return ir_while(&t->b, &loop, n, operands);
}

static enum block_progress close_for(jot_block *b, ir_id *results)
{
    struct traced body;
    if (!block_collect(b, &b->carry, results))
        return BLOCK_FAILED;
    enum block_progress p = block_check_carries(b);
    if (p == BLOCK_AGAIN)
        bind_for(b);
    if (p != BLOCK_DONE)
        return p;
    if (!block_close_part(b, b->carry.count, results, &body))
        return BLOCK_FAILED;
    if (b->length < 0)
        return give(b, counted_while(b, &body), results);
    ir_id counters =
        ir_iota(&trace_top()->b, ir_type_make(trace_top()->module, JOT_I32, 1, &b->length), 0);
    return give(b, scan_of(b, &body, &counters), results);
}

static const struct block_kind for_kind = {
    .name = "JOT_FOR", .open = open_for, .close = close_for};

jot_block *jot_for_begin(const jot_piece *carry, jot_value trips, const char *where)
{
    jot_block *b = block_create(&for_kind, carry, NULL, NULL, where);
    if (b)
        b->number = trips;
    return block_begin(b);
}

bool jot_for_next(jot_block *b, jot_value *index)
{
    bool again = jot_block_next(b);
    *index = b && !b->is_inert ? b->index : b ? b->error : (jot_value){0, 0};
    return again;
}
