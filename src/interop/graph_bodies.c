// SPDX-License-Identifier: Apache-2.0
// What bodies do that only compare and choose: they are tried on numbers that stand in every order to
// each other, with NaN and both zeros.  Since such a body sees no more of its arguments than how
// they compare, to each other and to 0, what holds of these holds of all.
#include "interop/graph_bodies.h"

#include "base/dtype.h"

#include <math.h>

// ---- numbers ----

struct number {
    char kind; // b i u f c
    int64_t i; // of b, i and u
    double re, im;
};

struct trial {
    const struct graph_frame *frame;
    const struct mlir_block *block;
    uint32_t first; // the least number of a value of the block
    uint32_t n;
    struct number *at; // by number, from `first` on
};

static void widen_range(struct trial *t, const struct mlir_value *v, uint32_t *last)
{
    t->first = v->number < t->first ? v->number : t->first;
    *last = v->number > *last ? v->number : *last;
}

static bool open_trial(const struct graph_frame *frame, const struct mlir_block *block,
                       struct trial *t)
{
    uint32_t last = 0;
    *t = (struct trial){.frame = frame, .block = block, .first = UINT32_MAX};
    for (uint32_t i = 0; i < block->n_args; i++)
        widen_range(t, block->args[i], &last);
    for (uint32_t i = 0; i < block->n_ops; i++)
        for (uint32_t k = 0; k < block->ops[i]->n_results; k++)
            widen_range(t, block->ops[i]->results[k], &last);
    t->n = last - t->first + 1;
    enum { MOST = 4096 };
    if (block->n_args == 0 || t->n > MOST)
        return false;
    t->at = arena_array(frame->arena, struct number, t->n);
    return true;
}

// ---- evaluation ----

static bool is_numeric(char kind) { return kind != '-'; }

static char kind_of(const struct mlir_value *v)
{
    bool is_number = v->type->kind == MLIR_TENSOR && v->type->rank == 0;
    return is_number ? mlir_elements[v->type->element].kind : '-';
}

static double float_of(jot_dtype d, const unsigned char *bytes)
{
    uint16_t half;
    float single;
    double wide;
    memcpy(&half, bytes, sizeof half);
    if (d == JOT_F16)
        return (double)dtype_f16_to_f32(half);
    if (d == JOT_BF16)
        return (double)dtype_bf16_to_f32(half);
    if (d == JOT_F32)
        return memcpy(&single, bytes, sizeof single), (double)single;
    return memcpy(&wide, bytes, sizeof wide), wide;
}

// Constants are taken where they are 0 or NaN, which the trials hold.
static bool read_constant(const struct mlir_op *op, struct number *out)
{
    const struct mlir_attr *a = mlir_attr_find(op, "value");
    if (!a || a->kind != MLIR_DENSE || a->type->rank)
        return false;
    const struct mlir_element_row *e = &mlir_elements[a->type->element];
    *out = (struct number){.kind = e->kind};
    if (e->kind == 'f' && e->bits >= 16) {
        out->re = float_of(e->dtype, a->bytes);
        return out->re == 0 || isnan(out->re);
    }
    if (e->kind == 'b')
        out->i = a->bytes[0];
    else
        for (int i = 0; i < (e->bits + 7) / 8; i++)
            if (a->bytes[i])
                return false;
    return e->kind == 'b' || e->kind == 'i' || e->kind == 'u';
}

static bool number_of(const struct trial *t, const struct mlir_value *v, struct number *out)
{
    uint32_t at = v->number - t->first;
    if (v->number >= t->first && at < t->n && t->at[at].kind) {
        *out = t->at[at];
        return true;
    }
    const struct mlir_op *maker = graph_maker(t->frame, v);
    bool is_constant = maker && maker->row && maker->row->code == MLIR_OP_stablehlo_constant;
    return is_constant && read_constant(maker, out);
}

static int64_t total_key(double x)
{
    int64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits < 0 ? bits ^ INT64_MAX : bits;
}

// -1, 0, 1; 2 for numbers that have no order.
static int order(const struct number *x, const struct number *y, bool is_total)
{
    if (x->kind != 'f' && x->kind != 'c')
        return (x->i > y->i) - (x->i < y->i);
    if (is_total)
        return (total_key(x->re) > total_key(y->re)) - (total_key(x->re) < total_key(y->re));
    if (isnan(x->re) || isnan(y->re))
        return 2;
    return (x->re > y->re) - (x->re < y->re);
}

static bool compare(const struct mlir_op *op, const struct number *x, const struct number *y,
                    struct number *out)
{
    const char *word = mlir_text(op, "comparison_direction");
    const char *type = mlir_text(op, "compare_type");
    if (!word || x->kind == 'c')
        return false;
    int o = order(x, y, type && !strcmp(type, "TOTALORDER"));
    *out = (struct number){.kind = 'b'};
    out->i = !strcmp(word, "EQ")   ? o == 0
             : !strcmp(word, "NE") ? o != 0
             : !strcmp(word, "LT") ? o == -1
             : !strcmp(word, "LE") ? o == -1 || o == 0
             : !strcmp(word, "GT") ? o == 1
                                   : o == 1 || o == 0;
    return true;
}

static bool evaluate(const struct mlir_op *op, const struct number *x, struct number *out)
{
    *out = x[0];
    switch ((int)op->row->code) {
    case MLIR_OP_stablehlo_compare:
        return compare(op, &x[0], &x[1], out);
    case MLIR_OP_stablehlo_select:
        *out = x[0].i ? x[1] : x[2];
        return x[0].kind == 'b';
    case MLIR_OP_stablehlo_and:
        out->i = x[0].i & x[1].i;
        return x[0].kind == 'b';
    case MLIR_OP_stablehlo_or:
        out->i = x[0].i | x[1].i;
        return x[0].kind == 'b';
    case MLIR_OP_stablehlo_xor:
        out->i = x[0].i ^ x[1].i;
        return x[0].kind == 'b';
    case MLIR_OP_stablehlo_not:
        out->i = !x[0].i;
        return x[0].kind == 'b';
    case MLIR_OP_stablehlo_real:
    case MLIR_OP_stablehlo_imag:
        *out = (struct number){.kind = 'f'};
        out->re =
            op->row->code == MLIR_OP_stablehlo_real || x[0].kind == 'f' ? x[0].re : x[0].im;
        return x[0].kind == 'c' || x[0].kind == 'f';
    case MLIR_OP_stablehlo_optimization_barrier:
        return true;
    default:
        return false;
    }
}

// The body on the numbers of its arguments; false when it does more than compare and choose.
static bool try_on(struct trial *t, const struct number *args, int n_out, struct number *out)
{
    const struct mlir_block *block = t->block;
    memset(t->at, 0, sizeof *t->at * t->n);
    for (uint32_t i = 0; i < block->n_args; i++)
        t->at[block->args[i]->number - t->first] = args[i];
    for (uint32_t i = 0; i + 1 < block->n_ops; i++) {
        const struct mlir_op *op = block->ops[i];
        struct number x[3], y;
        if (!op->row || op->n_regions || op->n_operands > 3 || op->n_results != 1)
            return false;
        if (op->row->code == MLIR_OP_stablehlo_constant) {
            if (!read_constant(op, &y))
                return false;
        } else {
            for (uint32_t k = 0; k < op->n_operands; k++)
                if (!number_of(t, op->operands[k], &x[k]))
                    return false;
            if (op->n_operands == 0 || !evaluate(op, x, &y))
                return false;
        }
        t->at[op->results[0]->number - t->first] = y;
    }
    const struct mlir_op *end = block->ops[block->n_ops - 1];
    if ((int)end->n_operands != n_out)
        return false;
    for (int i = 0; i < n_out; i++)
        if (!number_of(t, end->operands[i], &out[i]))
            return false;
    return true;
}

// ---- samples ----

// Numbers of every relation to each other and to 0; of integers outside of the indices 0 to 2.
static int samples(char kind, struct number *out)
{
    const double floats[] = {-INFINITY, -7, -0.0, 0.0, 7, 9, INFINITY, NAN, -NAN};
    int n = kind == 'b' ? 2 : kind == 'u' ? 3 : kind == 'i' ? 4 : 9;
    const int64_t integers[] = {0, 7, 9, -7}, bools[] = {0, 1};
    for (int k = 0; k < n; k++) {
        out[k] = (struct number){.kind = kind};
        if (kind == 'f' || kind == 'c')
            out[k].re = floats[k];
        else
            out[k].i = kind == 'b' ? bools[k] : integers[k];
    }
    for (int k = 0; k < 9 && kind == 'c'; k++)
        for (int m = 0; m < 9; m++)
            out[9 * k + m] = (struct number){.kind = 'c', .re = floats[k], .im = floats[m]};
    return kind == 'c' ? 81 : n;
}

enum { MOST_SAMPLES = 81 };

static bool is_same(const struct number *x, const struct number *y)
{
    return x->kind == 'f' || x->kind == 'c' ? (isnan(x->re) ? isnan(y->re) : x->re == y->re) &&
                                                  (isnan(x->im) ? isnan(y->im) : x->im == y->im)
                                            : x->i == y->i;
}

// ---- the index of an extremum ----

static bool chooses(struct trial *t, enum ir_op op, const struct number *args)
{
    const struct number *x = args, *i = args + 1, *y = args + 2, *j = args + 3;
    struct number out[2];
    if (!try_on(t, args, 2, out))
        return false;
    int o = order(x, y, false);
    bool x_is_nan = x->kind == 'f' && isnan(x->re), y_is_nan = y->kind == 'f' && isnan(y->re);
    bool is_tie = o == 0 || (x_is_nan && y_is_nan);
    bool is_first = is_tie                 ? i->i < j->i
                    : x_is_nan || y_is_nan ? x_is_nan
                                           : o == (op == IR_argmax ? 1 : -1);
    const struct number *value = is_first ? x : y, *index = is_first ? i : j;
    return is_same(&out[0], value) && is_same(&out[1], index);
}

static bool is_arg_body(struct trial *t, enum ir_op op)
{
    struct number x[MOST_SAMPLES], args[4];
    char value = kind_of(t->block->args[0]), index = kind_of(t->block->args[1]);
    int n = samples(value, x);
    for (int a = 0; a < n; a++)
        for (int b = 0; b < n; b++)
            for (int k = 0; k < 9; k++) {
                if (k / 3 >= k % 3)
                    continue; // folds go along the axis, so the indices of x are before those of y
                args[0] = x[a];
                args[1] = (struct number){.kind = index, .i = k / 3};
                args[2] = x[b];
                args[3] = (struct number){.kind = index, .i = k % 3};
                if (!chooses(t, op, args))
                    return false;
            }
    return true;
}

enum ir_op graph_arg_body(const struct graph_frame *frame, const struct mlir_block *block)
{
    struct trial t;
    if (block->n_args != 4 || !open_trial(frame, block, &t))
        return IR_OP_COUNT;
    char value = kind_of(block->args[0]), index = kind_of(block->args[1]);
    bool fits =
        (value == 'f' || value == 'i' || value == 'u') && (index == 'i' || index == 'u');
    return !fits                        ? IR_OP_COUNT
           : is_arg_body(&t, IR_argmax) ? IR_argmax
           : is_arg_body(&t, IR_argmin) ? IR_argmin
                                        : IR_OP_COUNT;
}

bool graph_is_iota(const struct graph_frame *frame, const struct mlir_value *v, int64_t axis)
{
    const struct mlir_op *op = graph_maker(frame, v);
    size_t n;
    if (op && op->row && op->row->code == MLIR_OP_stablehlo_broadcast_in_dim) {
        const int64_t *dims = mlir_ints(op, "broadcast_dimensions", &n);
        op = n == 1 && dims[0] == axis ? graph_maker(frame, op->operands[0]) : NULL;
        axis = 0;
    }
    return op && op->row && op->row->code == MLIR_OP_stablehlo_iota &&
           mlir_int(op, "iota_dimension", -1) == axis;
}

// ---- the order of a sort ----

static double canonical(double x) { return isnan(x) ? (double)NAN : x == 0 ? 0.0 : x; }

// Whether x is before y: 1, after it: -1, neither: 0.
static int before_part(const struct graph_order *o, double x, double y)
{
    if (o->mode == GRAPH_ORDER_TOTAL) {
        int64_t a = total_key(x), b = total_key(y);
        return (b > a) - (b < a);
    }
    x = canonical(x);
    y = canonical(y);
    if (isnan(x) || isnan(y))
        return o->mode == GRAPH_ORDER_NUMBERS ? 0 : isnan(y) - isnan(x);
    return (y > x) - (y < x);
}

static int before(const struct graph_order *o, const struct number *x, const struct number *y)
{
    int s = x->kind != 'f' && x->kind != 'c' ? (y->i > x->i) - (y->i < x->i)
                                             : before_part(o, x->re, y->re);
    if (!s && x->kind == 'c')
        s = before_part(o, x->im, y->im);
    return o->is_descending ? -s : s;
}

// Where numbers without an order meet, NUMBERS says nothing of what is equal.
static bool has_nan(const struct number *x)
{
    return (x->kind == 'f' || x->kind == 'c') && (isnan(x->re) || isnan(x->im));
}

// Key q takes all pairs of samples, those before it are equal, those behind in either order.
static bool sorts_by_key(struct trial *t, const struct graph_order *o, int n, int q)
{
    struct number x[MOST_SAMPLES], *args = arena_array(t->frame->arena, struct number, 2 * n);
    int count = samples(kind_of(t->block->args[2 * q]), x);
    for (int a = 0; a < count; a++)
        for (int b = 0; b < count; b++)
            for (int rest = 0; rest < 3; rest++) {
                for (int k = 0; k < n; k++) {
                    struct number own[MOST_SAMPLES];
                    samples(kind_of(t->block->args[2 * k]), own);
                    bool is_float = own[0].kind == 'f' || own[0].kind == 'c';
                    int low = is_float ? (own[0].kind == 'c' ? 9 * 4 + 4 : 4) : 0,
                        high = low + 1;
                    args[2 * k] = k == q ? x[a] : own[k > q && rest == 1 ? high : low];
                    args[2 * k + 1] = k == q ? x[b] : own[k > q && rest == 2 ? high : low];
                }
                struct number out;
                if (!try_on(t, args, 1, &out))
                    return false;
                if (o->mode == GRAPH_ORDER_NUMBERS && (has_nan(&x[a]) || has_nan(&x[b])))
                    continue;
                int s = 0;
                for (int k = q; k < o->n_keys && !s; k++)
                    s = before(o, &args[2 * k], &args[2 * k + 1]);
                if ((s > 0) != (out.i != 0))
                    return false;
            }
    return true;
}

static bool sorts(struct trial *t, const struct graph_order *o, int n)
{
    for (int q = 0; q < n; q++)
        if (!sorts_by_key(t, o, n, q))
            return false;
    return true;
}

bool graph_order_of(const struct graph_frame *frame, const struct mlir_block *block,
                    struct graph_order *out)
{
    static const enum graph_order_mode modes[] = {GRAPH_ORDER_NAN_LAST, GRAPH_ORDER_TOTAL,
                                                  GRAPH_ORDER_NUMBERS};
    struct trial t;
    int n = (int)block->n_args / 2;
    if (!open_trial(frame, block, &t))
        return false;
    for (uint32_t i = 0; i < block->n_args; i++)
        if (!is_numeric(kind_of(block->args[i])))
            return false;
    for (int k = 1; k <= n; k++)
        for (size_t m = 0; m < sizeof modes / sizeof *modes; m++)
            for (int descends = 0; descends < 2; descends++) {
                *out = (struct graph_order){k, modes[m], descends};
                if (sorts(&t, out, n))
                    return true;
            }
    return false;
}
