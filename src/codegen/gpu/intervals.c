// SPDX-License-Identifier: Apache-2.0
// Quotients that need no look at their operands.  What is made of one random mantissa, a float in
// [1, 2), by sums and products is bounded by interval arithmetic over pieces of that mantissa: those
// on which the arm of a select that has the quotient may be chosen.
#include "codegen/gpu/intervals.h"
#include "codegen/gpu/arms.h"
#include "codegen/lower.h"

#include <math.h>
#include <string.h>

#define MOST_PIECES 4096
#define LEAST_PIECE 0x1p-20
#define SLACK 1e-6 // what roundings add to a bound, relative to it
#define SMALLEST 0x1p-60
#define LARGEST 0x1p60

struct interval {
    double low, high;
};

struct analysis {
    const struct cg_lowering *l;
    nest_id mantissa; // NEST_NONE: not known yet
    struct interval *of;
    uint32_t *round, now; // by value: the piece that `of` is for
    int pieces;
};

static bool is_number(const struct nest_statement *s, uint32_t bits)
{
    uint32_t own;
    memcpy(&own, s->bits, sizeof own);
    return s->kind == NEST_CONST && own == bits;
}

// The bits of random >> 9 | 1.0f as a float.
static bool is_mantissa(const struct cg_lowering *l, const struct nest_statement *s)
{
    if (s->op != IR_bitcast || s->dtype != JOT_F32)
        return false;
    const struct nest_statement *both = cg_maker_of(l, s->in[0]);
    if (both->kind != NEST_OP || both->op != IR_or || both->dtype != JOT_U32 ||
        !is_number(cg_maker_of(l, both->in[1]), 0x3f800000))
        return false;
    const struct nest_statement *shift = cg_maker_of(l, both->in[0]);
    return shift->kind == NEST_OP && shift->op == IR_shr_logical &&
           is_number(cg_maker_of(l, shift->in[1]), 9);
}

static struct interval product(struct interval x, struct interval y)
{
    double c[] = {x.low * y.low, x.low * y.high, x.high * y.low, x.high * y.high};
    struct interval z = {c[0], c[0]};
    for (int i = 1; i < 4; i++)
        z = (struct interval){fmin(z.low, c[i]), fmax(z.high, c[i])};
    return z;
}

static struct interval sum(struct interval x, struct interval y)
{
    return (struct interval){x.low + y.low, x.high + y.high};
}

static struct interval opposite(struct interval x)
{
    return (struct interval){-x.high, -x.low};
}

// Of a number of any size, whose interval is infinite or NaN.
static const struct interval unknown = {-INFINITY, INFINITY};

static struct interval bound(struct analysis *a, nest_id value);

static struct interval bound_op(struct analysis *a, const struct nest_statement *s)
{
    struct interval x[3];
    for (uint32_t i = 0; i < s->n_in && i < 3; i++)
        x[i] = bound(a, s->in[i]);
    switch (s->op) {
    case IR_neg:
        return opposite(x[0]);
    case IR_abs:
        if (x[0].low >= 0)
            return x[0];
        return x[0].high <= 0 ? opposite(x[0])
                              : (struct interval){0, fmax(-x[0].low, x[0].high)};
    case IR_add:
        return sum(x[0], x[1]);
    case IR_sub:
        return sum(x[0], opposite(x[1]));
    case IR_mul:
        return product(x[0], x[1]);
    case IR_fma:
        return sum(product(x[0], x[1]), x[2]);
    case IR_max:
        return (struct interval){fmax(x[0].low, x[1].low), fmax(x[0].high, x[1].high)};
    default:
        return unknown;
    }
}

static struct interval bound(struct analysis *a, nest_id value)
{
    const struct nest_statement *s = cg_maker_of(a->l, value);
    if (a->round[value] == a->now)
        return a->of[value];
    a->round[value] = a->now;
    struct interval x = unknown;
    if (s->dtype == JOT_F32 && s->kind == NEST_CONST) {
        float number;
        memcpy(&number, s->bits, sizeof number);
        x = (struct interval){number, number};
    } else if (s->dtype == JOT_F32 && s->kind == NEST_OP && !is_mantissa(a->l, s)) {
        x = bound_op(a, s);
        double low = fabs(x.low), high = fabs(x.high), most = low > high ? low : high;
        x = (struct interval){x.low - SLACK * most, x.high + SLACK * most};
    } else if (s->kind == NEST_OP && is_mantissa(a->l, s) && a->mantissa == NEST_NONE) {
        a->mantissa = value;
    }
    a->of[value] = x;
    return x;
}

// Whether no number of the piece makes the predicate choose the side.
static bool is_never(struct analysis *a, nest_id predicate, int side)
{
    const struct nest_statement *s = cg_maker_of(a->l, predicate);
    if (s->kind != NEST_OP || s->op != IR_lt)
        return false;
    struct interval x = bound(a, s->in[0]), y = bound(a, s->in[1]);
    return side == 1 ? x.low >= y.high : x.high < y.low;
}

static bool is_whole_in_range(struct interval x)
{
    return (x.low >= SMALLEST && x.high <= LARGEST) ||
           (x.high <= -SMALLEST && x.low >= -LARGEST);
}

static bool holds(struct analysis *a, const struct nest_statement *quotient, struct gpu_arm arm,
                  double from, double to)
{
    a->now++;
    a->of[a->mantissa] = (struct interval){from, to};
    a->round[a->mantissa] = a->now;
    bool is_in_range = is_whole_in_range(bound(a, quotient->in[0])) &&
                       is_whole_in_range(bound(a, quotient->in[1]));
    if (is_in_range || is_never(a, cg_statement(a->l, arm.select)->in[0], arm.side))
        return true;
    double middle = (from + to) / 2;
    return a->pieces++ < MOST_PIECES && to - from > LEAST_PIECE &&
           holds(a, quotient, arm, from, middle) && holds(a, quotient, arm, middle, to);
}

bool gpu_is_quotient_in_range(struct cg_lowering *l, const struct nest_statement *quotient)
{
    struct gpu_arm arm = gpu_arm_of(l, l->nest->values.at[quotient->result].statement);
    if (arm.select == NEST_NONE)
        return false;
    uint32_t n = l->nest->values.count;
    struct analysis a = {.l = l, .mantissa = NEST_NONE, .now = 1};
    a.of = arena_array(l->arena, struct interval, n + 1);
    a.round = arena_array(l->arena, uint32_t, n + 1);
    bound(&a, quotient->in[0]); // finds the mantissa
    return a.mantissa != NEST_NONE && holds(&a, quotient, arm, 1, 2);
}
