// SPDX-License-Identifier: Apache-2.0
// Nodes with bodies: calls, loops and branches.
#include "interop/from_graph.h"

#include "ir/control.h"

#define HLO_(name) MLIR_OP_stablehlo_##name

// ---- calls ----

// Function `which` of the node; rules of derivatives are left behind.
static void write_call(struct hlo_node *n)
{
    const int64_t *bodies;
    ir_bodies_of(n->n, &bodies);
    hlo_call_body(n->w, (uint32_t)bodies[0], n->in, n->out);
}

// ---- loops ----

// What a while carries: the trip, then values that its blocks have as arguments.
struct loop {
    struct hlo_writer *w;
    uint32_t n;
    hlo_value *in;
    const struct mlir_type **types;
};

static struct loop make_loop(struct hlo_writer *w, uint32_t n)
{
    struct loop l = {w, n, arena_array(w->arena, hlo_value, n + 1),
                     arena_array(w->arena, const struct mlir_type *, n + 1)};
    return l;
}

static void set(struct loop *l, uint32_t i, hlo_value v)
{
    l->in[i] = v;
    l->types[i] = v->type;
}

static const struct mlir_type *trip_type(struct hlo_writer *w)
{
    return hlo_type(w, JOT_I64, 0, NULL);
}

static hlo_value next_trip(struct hlo_writer *w, hlo_value trip)
{
    return hlo_2(w, HLO_(add), trip, hlo_number(w, trip->type, 1));
}

static hlo_value trip_is_below(struct hlo_writer *w, hlo_value trip, int64_t n)
{
    return hlo_compare(w, "LT", false, trip, hlo_integer(w, trip->type, (uint64_t)n));
}

static hlo_value const *end_loop(struct loop *l, struct mlir_block test, struct mlir_block step)
{
    struct mlir_block regions[] = {test, step};
    return hlo_emit(l->w, HLO_(while), l->n, l->in, l->n, l->types, NULL, 2, regions)->results;
}

// ---- scan ----

static void starts_at(struct hlo_writer *w, hlo_value *list, hlo_value row, int rank)
{
    hlo_value zero = rank > 1 ? hlo_number(w, row->type, 0) : NULL;
    for (int i = 0; i < rank; i++)
        list[i] = i ? zero : row;
}

static hlo_value read_row(struct hlo_writer *w, hlo_value rows, hlo_value row)
{
    hlo_value in[IR_MAX_RANK + 1] = {rows};
    const struct mlir_type *t = rows->type;
    int64_t sizes[IR_MAX_RANK];
    struct hlo_attrs a = {0};
    starts_at(w, in + 1, row, t->rank);
    for (int i = 0; i < t->rank; i++)
        sizes[i] = i ? t->dims[i] : 1;
    hlo_ints(w, &a, "slice_sizes", t->rank, sizes);
    hlo_value one = hlo_op(w, HLO_(dynamic_slice), hlo_type(w, hlo_dtype(rows), t->rank, sizes),
                           (uint32_t)t->rank + 1, in, &a);
    return hlo_reshape(w, one, t->rank - 1, t->dims + 1);
}

static hlo_value write_row(struct hlo_writer *w, hlo_value rows, hlo_value value, hlo_value row)
{
    const struct mlir_type *t = rows->type;
    int64_t dims[IR_MAX_RANK];
    hlo_value in[IR_MAX_RANK + 2] = {rows};
    for (int i = 0; i < t->rank; i++)
        dims[i] = i ? t->dims[i] : 1;
    in[1] = hlo_reshape(w, value, t->rank, dims);
    starts_at(w, in + 2, row, t->rank);
    return hlo_op(w, HLO_(dynamic_update_slice), t, (uint32_t)t->rank + 2, in, NULL);
}

static const struct mlir_type *result_type(struct hlo_node *n, uint32_t i)
{
    return hlo_type_of(n->w, ir_type_of(n->g, n->n->out + i));
}

// The trip, consts, carries, rows in and rows out; a trip reads its row of these and puts one of those.
static void write_scan(struct hlo_node *n)
{
    struct hlo_writer *w = n->w;
    struct ir_scan s = ir_scan_of(n->n);
    uint32_t n_in = n->n->n_in, n_kept = (uint32_t)(s.n_consts + s.n_carry);
    uint32_t n_carry = (uint32_t)s.n_carry, n_rows = n->n->n_out - n_carry;
    struct loop l = make_loop(w, 1 + n_in + n_rows);
    if (s.length == 0) {
        for (uint32_t i = 0; i < n->n->n_out; i++)
            n->out[i] = i < n_carry ? n->in[(uint32_t)s.n_consts + i]
                                    : hlo_number(w, result_type(n, i), 0);
        return;
    }
    set(&l, 0, hlo_number(w, trip_type(w), 0));
    for (uint32_t i = 0; i < n_in; i++)
        set(&l, 1 + i, n->in[i]);
    for (uint32_t i = 0; i < n_rows; i++)
        set(&l, 1 + n_in + i, hlo_number(w, result_type(n, n_carry + i), 0));

    struct hlo_block test = hlo_open(w, l.n, l.types);
    hlo_value goes_on = trip_is_below(w, test.block.args[0], s.length);
    struct mlir_block test_block = hlo_close(w, &test, HLO_(return), 1, &goes_on);

    struct hlo_block step = hlo_open(w, l.n, l.types);
    hlo_value *args = arena_copy(w->arena, step.block.args, sizeof *args * l.n);
    hlo_value *in = arena_array(w->arena, hlo_value, n_in + 1);
    hlo_value *out = arena_array(w->arena, hlo_value, n->n->n_out + 1), row = args[0];
    if (s.reverse)
        row =
            hlo_2(w, HLO_(subtract), hlo_integer(w, row->type, (uint64_t)(s.length - 1)), row);
    for (uint32_t i = 0; i < n_in; i++)
        in[i] = i < n_kept ? args[1 + i] : read_row(w, args[1 + i], row);
    hlo_call_body(w, s.body, in, out);
    args[0] = next_trip(w, args[0]);
    for (uint32_t i = 0; i < n_carry; i++)
        args[1 + (uint32_t)s.n_consts + i] = out[i];
    for (uint32_t i = 0; i < n_rows; i++)
        args[1 + n_in + i] = write_row(w, args[1 + n_in + i], out[n_carry + i], row);
    hlo_value const *got =
        end_loop(&l, test_block, hlo_close(w, &step, HLO_(return), l.n, args));
    for (uint32_t i = 0; i < n->n->n_out; i++)
        n->out[i] =
            i < n_carry ? got[1 + (uint32_t)s.n_consts + i] : got[1 + n_in + i - n_carry];
}

// ---- while ----

// Whether each lane goes on, or the loop.
static hlo_value tested(struct hlo_node *n, const struct ir_while *loop, hlo_value const *args)
{
    hlo_value holds;
    hlo_call_body(n->w, loop->test, args, &holds);
    return holds;
}

static hlo_value any(struct hlo_writer *w, hlo_value holds)
{
    int64_t axes[IR_MAX_RANK];
    int rank = holds->type->rank;
    for (int i = 0; i < rank; i++)
        axes[i] = i;
    hlo_value no = hlo_number(w, hlo_type(w, JOT_BOOL, 0, NULL), 0);
    return rank ? hlo_reduce(w, IR_or, holds, no, rank, axes) : holds;
}

// A lane keeps its carries once its test is false.
static hlo_value chosen(struct hlo_writer *w, hlo_value goes_on, hlo_value next, hlo_value last)
{
    int64_t axes[IR_MAX_RANK];
    for (int i = 0; i < goes_on->type->rank; i++)
        axes[i] = i;
    return hlo_select(w, hlo_broadcast(w, goes_on, next->type, axes), next, last);
}

// The trip where the loop is bounded, consts, carries.
static void write_while(struct hlo_node *n)
{
    struct hlo_writer *w = n->w;
    struct ir_while loop = ir_while_of(n->n);
    bool is_bounded = loop.max_trips != IR_NO_BOUND;
    uint32_t n_in = n->n->n_in, first = is_bounded, n_consts = (uint32_t)loop.n_consts;
    struct loop l = make_loop(w, first + n_in);
    if (is_bounded)
        set(&l, 0, hlo_number(w, trip_type(w), 0));
    for (uint32_t i = 0; i < n_in; i++)
        set(&l, first + i, n->in[i]);

    struct hlo_block test = hlo_open(w, l.n, l.types);
    hlo_value goes_on = any(w, tested(n, &loop, test.block.args + first));
    if (is_bounded)
        goes_on =
            hlo_2(w, HLO_(and), goes_on, trip_is_below(w, test.block.args[0], loop.max_trips));
    struct mlir_block test_block = hlo_close(w, &test, HLO_(return), 1, &goes_on);

    struct hlo_block step = hlo_open(w, l.n, l.types);
    hlo_value *args = arena_copy(w->arena, step.block.args, sizeof *args * (l.n + 1));
    hlo_value *out = arena_array(w->arena, hlo_value, n->n->n_out + 1);
    hlo_call_body(w, loop.body, args + first, out);
    hlo_value holds = loop.batched ? tested(n, &loop, args + first) : NULL;
    if (is_bounded)
        args[0] = next_trip(w, args[0]);
    for (uint32_t i = 0; i < n->n->n_out; i++) {
        hlo_value *carry = &args[first + n_consts + i];
        *carry = holds ? chosen(w, holds, out[i], *carry) : out[i];
    }
    hlo_value const *got =
        end_loop(&l, test_block, hlo_close(w, &step, HLO_(return), l.n, args));
    for (uint32_t i = 0; i < n->n->n_out; i++)
        n->out[i] = got[first + n_consts + i];
}

// ---- branches ----

static void write_cond(struct hlo_node *n)
{
    struct hlo_writer *w = n->w;
    const int64_t *bodies;
    int count = ir_bodies_of(n->n, &bodies);
    const struct mlir_type **types =
        arena_array(w->arena, const struct mlir_type *, n->n->n_out + 1);
    struct mlir_block *regions = arena_array(w->arena, struct mlir_block, count + 1);
    hlo_value *out = arena_array(w->arena, hlo_value, n->n->n_out + 1), index = n->in[0];
    for (uint32_t i = 0; i < n->n->n_out; i++)
        types[i] = result_type(n, i);
    index = hlo_op(w, HLO_(clamp), index->type, 3,
                   (hlo_value[]){hlo_number(w, index->type, 0), index,
                                 hlo_number(w, index->type, count - 1)},
                   NULL);
    for (int k = 0; k < count; k++) {
        struct hlo_block b = hlo_open(w, 0, NULL);
        hlo_call_body(w, (uint32_t)bodies[k], n->in + 1, out);
        regions[k] = hlo_close(w, &b, HLO_(return), n->n->n_out, out);
    }
    const struct mlir_op *op =
        hlo_emit(w, HLO_(case), 1, &index, n->n->n_out, types, NULL, (uint32_t)count, regions);
    for (uint32_t i = 0; i < n->n->n_out; i++)
        n->out[i] = op->results[i];
}

void hlo_control(struct hlo_node *n)
{
    if (n->n->op == IR_scan)
        write_scan(n);
    else if (n->n->op == IR_while)
        write_while(n);
    else if (n->n->op == IR_cond)
        write_cond(n);
    else
        write_call(n);
}
