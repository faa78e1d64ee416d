// SPDX-License-Identifier: Apache-2.0
// Sorting.  Comparators that say an order are the sort of the graph, with keys in front where its order is
// another one; any other comparator sorts by a network that exchanges pairs.
#include "interop/graph_bodies.h"

#include "base/dtype.h"

#include "jot/indexing.h"
#include "jot/ordering.h"
#include "jot/shapes.h"

#include <math.h>

struct sort {
    struct graph_frame *frame;
    const struct mlir_op *op;
    const struct mlir_block *body;
    struct ir_builder *b;
    int n, axis, rank;
    ir_id *x; // the operands, with the sorted axis last
    int64_t dims[IR_MAX_RANK + 2];
};

static void permutation(const struct sort *s, bool is_back, int64_t *out)
{
    int64_t there[IR_MAX_RANK];
    for (int i = 0, at = 0; i < s->rank; i++)
        if (i != s->axis)
            there[at++] = i;
    there[s->rank - 1] = s->axis;
    for (int i = 0; i < s->rank; i++) {
        if (is_back)
            out[there[i]] = i;
        else
            out[i] = there[i];
    }
}

// ---- by keys ----

static ir_id canonical(struct ir_builder *b, ir_id x)
{
    ir_id zero = ir_scalar_like(b, x, 0), nan = ir_scalar_like(b, x, (double)NAN);
    ir_id y = ir_select(b, ir_eq(b, x, zero), zero, x);
    return ir_select(b, ir_ne(b, y, y), nan, y);
}

static ir_id key_of(const struct sort *s, const struct graph_order *o, ir_id x)
{
    struct ir_builder *b = s->b;
    if (dtype_is_float(ir_dtype(ir_type_in(b, x))))
        x = graph_total_order(b, o->mode == GRAPH_ORDER_TOTAL ? x : canonical(b, x));
    return o->is_descending ? ir_not(b, x) : x;
}

// Integers that are in order where the operands are; at most two of each.
static int make_keys(const struct sort *s, const struct graph_order *o, ir_id *out)
{
    int n = 0;
    for (int k = 0; k < o->n_keys; k++) {
        bool is_complex = dtype_is_complex(ir_dtype(ir_type_in(s->b, s->x[k])));
        if (is_complex) {
            out[n++] = key_of(s, o, ir_real(s->b, s->x[k]));
            out[n++] = key_of(s, o, ir_imag(s->b, s->x[k]));
        } else {
            out[n++] = key_of(s, o, s->x[k]);
        }
    }
    return n;
}

// The elements of x at the indices, along the last axis.
static ir_id taken(ir_id x, ir_id indices)
{
    jot_value v = jot_take_along_axis(trace_value(x, false), trace_value(indices, false), -1);
    return trace_is_error(v) ? IR_NONE : trace_strong(v);
}

// Sorts n_keys keys, and sets the operands to their elements in that order.
static void sort_by(struct sort *s, int n_keys, const ir_id *keys)
{
    ir_id all[IR_SORT_MOST];
    bool fits = n_keys + s->n <= IR_SORT_MOST;
    struct ir_type type = ir_type_in(s->b, s->x[0]);
    int n = n_keys;
    if (n_keys + 1 > IR_SORT_MOST) {
        ir_fail(s->b, JOT_ERR_ARGUMENT, "%d keys: at most %d", n_keys, IR_SORT_MOST - 1);
        return;
    }
    memcpy(all, keys, sizeof *keys * (size_t)n_keys);
    for (int i = 0; i < s->n && fits; i++)
        all[n++] = s->x[i];
    if (!fits)
        all[n++] = ir_iota(s->b, ir_type_with(type, JOT_I32), s->rank - 1);
    ir_id first = ir_sort(s->b, n, all, n_keys);
    for (int i = 0; i < s->n && first != IR_NONE; i++)
        s->x[i] = fits ? first + (ir_id)(n_keys + i) : taken(s->x[i], first + (ir_id)n_keys);
}

static void sort_by_order(struct sort *s, const struct graph_order *o)
{
    bool is_plain = !o->is_descending && o->mode != GRAPH_ORDER_TOTAL && s->n <= IR_SORT_MOST;
    if (is_plain) {
        ir_id first = ir_sort(s->b, s->n, s->x, o->n_keys);
        for (int i = 0; i < s->n && first != IR_NONE; i++)
            s->x[i] = first + (ir_id)i;
        return;
    }
    ir_id *keys = arena_array(s->frame->arena, ir_id, 2 * o->n_keys + 1);
    sort_by(s, make_keys(s, o, keys), keys);
}

// ---- by any comparator ----

// A network that sorts rows of 2^m by exchanges (K. E. Batcher, Sorting networks and their
// applications, 1968).  The operands, and their indices as the last one, which decides where the
// comparator says nothing, and puts what fills up the rows at their ends.
struct network {
    struct sort *s;
    int n; // with the indices
    int64_t length, filled;
    jot_value *x;
};

static jot_value id(ir_id x) { return trace_value(x, false); }

static void fill_up(struct network *w)
{
    struct sort *s = w->s;
    int64_t none[IR_MAX_RANK] = {0}, high[IR_MAX_RANK] = {0};
    struct ir_type type = ir_type_in(s->b, s->x[0]);
    high[s->rank - 1] = w->filled - w->length;
    for (int i = 0; i < s->n; i++) {
        ir_id zero = ir_scalar_like(s->b, s->x[i], 0);
        w->x[i] = id(ir_pad(s->b, s->x[i], zero, none, high, none));
    }
    int64_t dims[IR_MAX_RANK];
    memcpy(dims, ir_dims(s->b->module, type), sizeof *dims * (size_t)s->rank);
    dims[s->rank - 1] = w->filled;
    type = ir_type_make(s->b->module, JOT_I32, s->rank, dims);
    w->x[s->n] = id(ir_iota(s->b, type, s->rank - 1));
}

// Elements 0 and 1 of the pairs that are `distance` apart.
static jot_value half_of(const struct network *w, jot_value x, int64_t distance, int which)
{
    int64_t dims[IR_MAX_RANK + 4];
    int rank = w->s->rank;
    memcpy(dims, w->s->dims, sizeof *dims * (size_t)(rank - 1));
    dims[rank - 1] = w->filled / (2 * distance);
    dims[rank] = 2;
    dims[rank + 1] = distance;
    dims[rank + 2] = JOT_END;
    return jot_slice_axis(jot_reshape_dims(x, dims), rank, which, which + 1, 1);
}

// Whether y comes before x.
static jot_value comes_before(const struct network *w, const jot_value *x, const jot_value *y)
{
    struct sort *s = w->s;
    jot_value *args = arena_array(s->frame->arena, jot_value, 2 * s->n + 1), less, more;
    for (int side = 0; side < 2; side++) {
        for (int i = 0; i < s->n; i++) {
            args[2 * i] = side ? x[i] : y[i];
            args[2 * i + 1] = side ? y[i] : x[i];
        }
        graph_elements(s->frame, s->op, s->body, s->rank + 2, args, side ? &more : &less);
    }
    jot_value first = jot_less(y[s->n], x[s->n]), n = jot_from_int(w->length);
    jot_value is_filling =
        jot_logical_or(jot_greater_equal(x[s->n], n), jot_greater_equal(y[s->n], n));
    jot_value tie = jot_logical_and(jot_logical_not(more), first);
    return jot_where(is_filling, first, jot_logical_or(less, tie));
}

// Exchanges the pairs `distance` apart; runs of `run` elements go up and down in turn.
static void exchange(struct network *w, int64_t distance, int64_t run)
{
    struct sort *s = w->s;
    jot_value *x = arena_array(s->frame->arena, jot_value, 2 * w->n + 1), *y = x + w->n;
    for (int i = 0; i < w->n; i++) {
        x[i] = half_of(w, w->x[i], distance, 0);
        y[i] = half_of(w, w->x[i], distance, 1);
    }
    int64_t pairs = w->filled / (2 * distance), each = run / (2 * distance);
    jot_value number =
        jot_reshape_dims(jot_arange(JOT_I64, pairs), (const int64_t[]){pairs, 1, 1, JOT_END});
    jot_value turns = jot_not_equal(
        jot_remainder(jot_floor_divide(number, jot_from_int(each)), jot_from_int(2)),
        jot_from_int(0));
    jot_value swaps = jot_logical_xor(comes_before(w, x, y), turns);
    int64_t dims[IR_MAX_RANK + 2];
    memcpy(dims, s->dims, sizeof *dims * (size_t)(s->rank - 1));
    dims[s->rank - 1] = w->filled;
    dims[s->rank] = JOT_END;
    for (int i = 0; i < w->n; i++) {
        jot_value both[] = {jot_where(swaps, y[i], x[i]), jot_where(swaps, x[i], y[i])};
        w->x[i] = jot_reshape_dims(jot_concatenate_list(s->rank, 2, both), dims);
    }
}

static void sort_by_body(struct sort *s)
{
    struct network w = {.s = s, .n = s->n + 1, .length = s->dims[s->rank - 1], .filled = 1};
    if (s->rank + 2 > IR_MAX_RANK) {
        ir_fail(s->b, JOT_ERR_SHAPE, "%d axes and a comparator of its own: at most %d", s->rank,
                IR_MAX_RANK - 2);
        return;
    }
    while (w.filled < w.length)
        w.filled *= 2;
    w.x = arena_array(s->frame->arena, jot_value, w.n + 1);
    fill_up(&w);
    for (int64_t run = 2; run <= w.filled; run *= 2)
        for (int64_t distance = run / 2; distance >= 1; distance /= 2)
            exchange(&w, distance, run);
    for (int i = 0; i < s->n; i++) {
        jot_value y = jot_slice_axis(w.x[i], s->rank - 1, 0, w.length, 1);
        s->x[i] = trace_is_error(y) ? IR_NONE : trace_strong(y);
    }
}

// ---- the operations ----

void graph_sort(struct graph_op *g, int n, const struct mlir_block *body, int64_t axis)
{
    struct ir_type type = ir_type_in(g->b, g->in[0]);
    int64_t axes[IR_MAX_RANK];
    axis += axis < 0 ? type.rank : 0;
    if (axis < 0 || axis >= type.rank) {
        graph_refuse(g, "dimension is %lld of %d axes", (long long)axis, type.rank);
        return;
    }
    struct sort s = {g->frame, g->op, body, g->b, n, (int)axis, type.rank, NULL, {0}};
    s.x = arena_array(g->frame->arena, ir_id, s.n + 1);
    permutation(&s, false, axes);
    for (int i = 0; i < s.n; i++)
        s.x[i] = ir_transpose(g->b, g->in[i], axes);
    if (g->b->status != JOT_OK)
        return;
    type = ir_type_in(g->b, s.x[0]);
    memcpy(s.dims, ir_dims(g->b->module, type), sizeof *s.dims * (size_t)s.rank);
    struct graph_order order;
    if (graph_order_of(g->frame, body, &order))
        sort_by_order(&s, &order);
    else if (s.dims[s.rank - 1] > 1 && ir_count(g->b->module, type) > 0)
        sort_by_body(&s);
    permutation(&s, true, axes);
    for (int i = 0; i < s.n; i++)
        g->out[i] = s.x[i] == IR_NONE ? ir_fail(g->b, JOT_ERR_TRACE, "its comparator fails")
                                      : ir_transpose(g->b, s.x[i], axes);
}

static void convert_sort(struct graph_op *g)
{
    graph_sort(g, (int)g->op->n_operands, &g->op->regions[0], mlir_int(g->op, "dimension", -1));
}

static void convert_top_k(struct graph_op *g)
{
    g->out[0] = ir_top_k(g->b, g->in[0], mlir_int(g->op, "k", 0), JOT_I32);
    g->out[1] = g->out[0] == IR_NONE ? IR_NONE : g->out[0] + 1;
}

graph_convert *graph_order_find(enum mlir_code code)
{
    return code == MLIR_OP_stablehlo_sort ? convert_sort
           : code == MLIR_OP_chlo_top_k   ? convert_top_k
                                          : NULL;
}
