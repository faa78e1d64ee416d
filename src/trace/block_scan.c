// SPDX-License-Identifier: Apache-2.0
// JOT_SCAN, and JOT_FOR with a number of trips that is known: scans.  JOT_FOR with limits that are
// computed is a while loop with a counter.
#include "ir/control.h"
#include "passes/body.h"
#include "trace/block.h"

static enum block_progress scan_of(jot_block *b, const struct traced *body,
                                   const ir_id *counters, ir_id *results)
{
    struct trace *t = trace_top();
    struct block_consts consts;
    struct ir_scan scan = {.n_carry = b->carry.count,
                           .length = b->length,
                           .reverse = b->reverse,
                           .checkpoint = b->checkpoint};
    block_take_results(b, IR_NONE, results);
    if (!block_share(b, 1, &body, &scan.body, &consts))
        return BLOCK_DONE;
    scan.n_consts = consts.n;
    int n;
    ir_id *in =
        block_operands(b, &consts, 2, (const struct block_leaves *[]){&b->carry, &b->in}, &n);
    if (counters)
        in[n++] = *counters;
    pass_scan_rows(&t->b, &scan, n, in, results);
    return BLOCK_DONE;
}

// ---- JOT_SCAN

static bool open_scan(jot_block *b)
{
    if (b->in.count == 0 && b->length < 0) {
        b->error = block_fail(b, JOT_ERR_ARGUMENT,
                              "no rows in and no length: write .length = N behind the lists");
        return false;
    }
    if (b->checkpoint < JOT_CHECKPOINT_RECOMPUTE) {
        b->error =
            block_fail(b, JOT_ERR_ARGUMENT,
                       "a checkpoint of %lld: the trips between two states that are kept, "
                       "or a constant of enum jot_checkpoint",
                       (long long)b->checkpoint);
        return false;
    }
    if (b->slots) {
        b->error =
            block_fail(b, JOT_ERR_ARGUMENT, "slots are for JOT_WHILE: write .checkpoint here");
        return false;
    }
    return block_open_rows(b);
}

static enum block_progress close_scan(jot_block *b, ir_id *results)
{
    struct traced body;
    int n = b->carry.count;
    enum block_progress p = block_collect_carries(b, results);
    if (p == BLOCK_AGAIN)
        return open_scan(b) ? BLOCK_AGAIN : BLOCK_FAILED;
    if (p == BLOCK_FAILED || !block_collect(b, results + n) ||
        !block_close_part(b, n + b->out.count, results, &body))
        return BLOCK_FAILED;
    return scan_of(b, &body, NULL, results);
}

static const struct block_kind scan_kind = {.options = BLOCK_LENGTH | BLOCK_REVERSE |
                                                       BLOCK_CHECKPOINT | BLOCK_SLOTS,
                                            .open = open_scan,
                                            .close = close_scan};

jot_block *jot_scan_begin(const jot_piece *carry, const jot_piece *in, const jot_piece *out,
                          const jot_loop_options *options, const char *where)
{
    jot_block *b = block_create(&scan_kind, carry, in, out, where);
    if (!b || !block_accepts(b, options))
        return b;
    b->length = -1;
    if (options && options->length)
        b->length = options->length;
    b->reverse = options && options->reverse;
    b->checkpoint = options ? options->checkpoint : JOT_CHECKPOINT_AUTO;
    b->slots = options ? options->slots : 0;
    if (options && options->length < 0) {
        b->error = block_fail(b, JOT_ERR_ARGUMENT, "a length of %lld: negative",
                              (long long)options->length);
        b->is_inert = true;
        return b;
    }
    return block_begin(b);
}

// ---- JOT_FOR

// Whether a limit may be outside of i32.
static bool is_long(jot_value limit)
{
    const struct trace_number *number = trace_number_of(limit);
    if (number)
        return number->i < INT32_MIN || number->i > INT32_MAX;
    jot_dtype d = ir_dtype(trace_type(limit));
    return dtype_get(d)->bytes == 8 || d == JOT_U32;
}

static jot_dtype index_dtype(const jot_block *b)
{
    return is_long(b->first) || is_long(b->number) ? JOT_I64 : JOT_I32;
}

static void bind_for(jot_block *b)
{
    struct block_leaf index = {.at = &b->index};
    jot_dtype d = index_dtype(b);
    block_open_part(b);
    for (int i = 0; i < b->carry.count; i++)
        block_bind(&b->carry.at[i], b->carry.at[i].type);
    block_bind(&index, ir_type_make(b->trace->module, d, 0, NULL));
    jot_place((jot_value){0, 0}, b->where);
}

// A limit of the index: a C integer stays one.
static bool import_limit(jot_block *b, const char *what, jot_value *v)
{
    *v = trace_import(b->name, *v);
    if (trace_is_error(*v)) {
        jot_place(*v, b->where);
        b->error = *v;
        return false;
    }
    const struct trace_number *number = trace_number_of(*v);
    struct ir_type type = trace_type(*v);
    if (number && number->kind == 'u') {
        b->error = block_fail(b, JOT_ERR_ARGUMENT, "%s %llu: an index ends at 2^63 - 1", what,
                              (unsigned long long)number->u);
        return false;
    }
    if (number ? number->kind == 'i' : type.rank == 0 && dtype_is_integer(ir_dtype(type)))
        return true;
    b->error = block_fail(b, type.rank ? JOT_ERR_SHAPE : JOT_ERR_DTYPE,
                          "%s %s, not one integer", what, trace_type_text(*v));
    return false;
}

// The trips when both limits are C integers.
static bool count_trips(jot_block *b)
{
    const struct trace_number *first = trace_number_of(b->first),
                              *end = trace_number_of(b->number);
    b->length = -1;
    if (!first || !end)
        return true;
    b->length = 0;
    if (end->i <= first->i || !__builtin_sub_overflow(end->i, first->i, &b->length))
        return true;
    b->error = block_fail(b, JOT_ERR_ARGUMENT, "from %lld to %lld: more than 2^63 - 1 trips",
                          (long long)first->i, (long long)end->i);
    return false;
}

// JOT_FOR counts from 0, and what it counts to are trips.
static bool open_for(jot_block *b)
{
    if (!import_limit(b, "the trips are", &b->number))
        return false;
    const struct trace_number *trips = trace_number_of(b->number);
    if (trips && trips->i < 0) {
        b->error = block_fail(b, JOT_ERR_ARGUMENT, "%lld trips: negative", (long long)trips->i);
        return false;
    }
    b->first = jot_from_int(0);
    if (!count_trips(b))
        return false;
    bind_for(b);
    return true;
}

static bool open_range(jot_block *b)
{
    if (!import_limit(b, "the first index is", &b->first) ||
        !import_limit(b, "the end is", &b->number) || !count_trips(b))
        return false;
    bind_for(b);
    return true;
}

// A limit as an index; one of u64 that no index reaches is the last there is.
static ir_id limit_as(struct ir_builder *w, jot_value limit, jot_dtype d)
{
    const struct trace_number *number = trace_number_of(limit);
    if (number && is_long(limit))
        return ir_scalar_int(w, d, number->i);
    ir_id v = trace_strong(limit);
    if (ir_dtype(ir_type_in(w, v)) == JOT_U64)
        v = ir_min(w, v, ir_scalar_int(w, JOT_U64, INT64_MAX));
    return ir_convert(w, v, d);
}

// The body with the counter as last carry.
static uint32_t counting_body(struct ir_module *m, const struct traced *body, uint32_t n_carry)
{
    struct body w = body_of(m, body->function);
    body_take_all(&w);
    body_run(&w);
    for (uint32_t i = 0; i < n_carry; i++)
        body_give(&w, i);
    ir_id counter = w.in[n_carry];
    jot_dtype d = ir_dtype(ir_type_in(&w.b, counter));
    ir_output(&w.b, ir_add(&w.b, counter, ir_scalar_int(&w.b, d, 1)));
    return ir_finish_function(&w.b);
}

// Whether the counter, the last carry, is below the end, which comes behind the carries.
static uint32_t counting_test(jot_block *b, struct ir_module *m)
{
    struct ir_builder w = ir_builder_make(m, b->name, IR_BUILD_PLAIN);
    for (int i = 0; i < b->carry.count; i++)
        ir_param(&w, b->carry.at[i].type);
    ir_id counter = ir_param(&w, trace_type(b->number)),
          end = ir_param(&w, trace_type(b->number));
    ir_output(&w, ir_lt(&w, counter, end));
    return ir_finish_function(&w);
}

// Carries and a counter.
static ir_id counted_while(jot_block *b, const struct traced *body)
{
    struct trace *t = trace_top();
    jot_dtype d = index_dtype(b);
    ir_id first = limit_as(&t->b, b->first, d);
    b->number = trace_value(limit_as(&t->b, b->number, d), false);
    struct traced next = *body, test = {.n_out = 1, .n_hidden = 1, .hidden = &b->number};
    next.function = counting_body(t->module, body, (uint32_t)b->carry.count);
    next.n_out++;
    test.function = counting_test(b, t->module);
    if (next.function == IR_NONE || test.function == IR_NONE)
        return IR_NONE;
    struct block_consts consts;
    uint32_t functions[2];
    if (!block_share(b, 2, (const struct traced *[]){&test, &next}, functions, &consts))
        return IR_NONE;
    int n;
    ir_id *in = block_operands(b, &consts, 1, (const struct block_leaves *[]){&b->carry}, &n);
    in[n++] = first;
    struct ir_while loop = {.test = functions[0],
                            .body = functions[1],
                            .n_consts = consts.n,
                            .max_trips = IR_NO_BOUND};
    return ir_while(&t->b, &loop, n, in);
}

static enum block_progress close_for(jot_block *b, ir_id *results)
{
    struct traced body;
    enum block_progress p = block_collect_carries(b, results);
    if (p == BLOCK_AGAIN)
        bind_for(b);
    if (p != BLOCK_DONE)
        return p;
    if (!block_close_part(b, b->carry.count, results, &body))
        return BLOCK_FAILED;
    if (b->length < 0)
        return block_take_results(b, counted_while(b, &body), results);
    struct ir_builder *w = &trace_top()->b;
    jot_dtype d = index_dtype(b);
    ir_id counters = ir_iota(w, ir_type_make(w->module, d, 1, &b->length), 0);
    int64_t first = trace_number_of(b->first)->i;
    if (first)
        counters = ir_add(w, counters, ir_scalar_int(w, d, first));
    return scan_of(b, &body, &counters, results);
}

static const struct block_kind for_kind = {.open = open_for, .close = close_for};
static const struct block_kind range_kind = {.open = open_range, .close = close_for};

jot_block *jot_for_begin(const jot_piece *carry, jot_value trips, const char *where)
{
    jot_block *b = block_create(&for_kind, carry, NULL, NULL, where);
    if (b)
        b->number = trips;
    return block_begin(b);
}

jot_block *jot_range_begin(const jot_piece *carry, jot_value first, jot_value end,
                           const char *where)
{
    jot_block *b = block_create(&range_kind, carry, NULL, NULL, where);
    if (b) {
        b->first = first;
        b->number = end;
    }
    return block_begin(b);
}

bool jot_for_next(jot_block *b, jot_value *index)
{
    bool again = jot_block_next(b);
    if (index)
        *index = b && !b->is_inert ? b->index : b ? b->error : (jot_value){0, 0};
    return again;
}
