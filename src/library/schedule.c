// SPDX-License-Identifier: Apache-2.0
// Schedules: pieces that follow each other, each a formula of the count since it began.
#include "library/formula.h"
#include "library/optimizer.h"

#include <math.h>
#include <stdio.h>

enum { MOST_PIECES = sizeof((jot_schedule *)0)->piece / sizeof(jot_schedule_piece) };

static const char no_schedule[] = "this is no schedule: a function of jot makes one";

static const double PI = 3.14159265358979323846;

// ---------------------------------------------------------------------------------------
// Making

static jot_schedule of_piece(jot_schedule_piece piece)
{
    return (jot_schedule){.n = 1, .piece = {piece}};
}

static jot_schedule mistaken(const char *name, const char *what, double is, const char *right)
{
    jot_schedule s = {0};
    snprintf(s.mistake, sizeof s.mistake, "%s: %s is %g: %s", name, what, is, right);
    return s;
}

jot_schedule jot_constant_schedule(double value)
{
    return of_piece((jot_schedule_piece){.kind = SCHEDULE_CONSTANT, .number = {value}});
}

jot_schedule jot_value_schedule(jot_value value)
{
    return of_piece((jot_schedule_piece){.kind = SCHEDULE_VALUE, .value = value});
}

static jot_schedule polynomial(double first, double last, double power, int64_t steps)
{
    return of_piece((jot_schedule_piece){.kind = SCHEDULE_POLYNOMIAL,
                                         .number = {first, last, power, (double)steps}});
}

jot_schedule jot_polynomial_schedule(double first, double last, double power, int64_t steps)
{
    if (steps < 1)
        return mistaken("jot_polynomial_schedule", "steps", (double)steps, "at least 1");
    return polynomial(first, last, power, steps);
}

jot_schedule jot_linear_schedule(double first, double last, int64_t steps)
{
    if (steps < 1)
        return mistaken("jot_linear_schedule", "steps", (double)steps, "at least 1");
    return polynomial(first, last, 1, steps);
}

static const jot_schedule_options none;

jot_schedule jot_exponential_decay_with(double first, int64_t steps, double rate,
                                        const jot_schedule_options *options)
{
    const jot_schedule_options *o = options ? options : &none;
    if (steps < 1)
        return mistaken("jot_exponential_decay", "steps", (double)steps, "at least 1");
    if (!(rate > 0))
        return mistaken("jot_exponential_decay", "rate", rate, "above 0");
    if (o->begin < 0)
        return mistaken("jot_exponential_decay", "begin", (double)o->begin, "at least 0");
    jot_schedule s = of_piece((jot_schedule_piece){
        .kind = SCHEDULE_EXPONENTIAL, .number = {first, rate, (double)steps, o->end}});
    s.piece[0].is_staircase = o->staircase;
    return o->begin ? jot_join_schedules(jot_constant_schedule(first), o->begin, s) : s;
}

static jot_schedule cosine(double first, double end, double steps, double exponent)
{
    return of_piece((jot_schedule_piece){
        .kind = SCHEDULE_COSINE, .number = {first, end, steps, exponent ? exponent : 1}});
}

jot_schedule jot_cosine_decay_schedule_with(double first, int64_t steps,
                                            const jot_schedule_options *options)
{
    const jot_schedule_options *o = options ? options : &none;
    if (steps < 1)
        return mistaken("jot_cosine_decay_schedule", "steps", (double)steps, "at least 1");
    return cosine(first, o->end, (double)steps, o->exponent);
}

jot_schedule jot_warmup_cosine_decay_schedule_with(double first, double peak, int64_t warmup,
                                                   int64_t steps,
                                                   const jot_schedule_options *options)
{
    const char *name = "jot_warmup_cosine_decay_schedule";
    const jot_schedule_options *o = options ? options : &none;
    if (warmup < 1)
        return mistaken(name, "warmup", (double)warmup, "at least 1");
    if (steps <= warmup)
        return mistaken(name, "steps", (double)steps, "above those of the warm-up");
    return jot_join_schedules(polynomial(first, peak, 1, warmup), warmup,
                              cosine(peak, o->end, (double)(steps - warmup), o->exponent));
}

static double or_else(double x, double otherwise) { return x ? x : otherwise; }

// The n parts of a cycle: each leads from a value to the next, up to a share of the steps.
static jot_schedule cycle(const char *name, int64_t steps, int n, const double *value,
                          const double *share, bool is_cosine)
{
    if (steps < 1)
        return mistaken(name, "steps", (double)steps, "at least 1");
    jot_schedule s = {0};
    int64_t begin = 0, end;
    for (int i = 0; i < n; i++, begin = end) {
        double from = i ? share[i - 1] : 0;
        if (i < n - 1 && !(share[i] > from && share[i] < 1))
            return mistaken(name, i ? "fall" : "rise", share[i],
                            i ? "above rise and below 1" : "above 0 and below 1");
        end = (int64_t)(share[i] * (double)steps);
        if (end <= begin)
            return mistaken(name, "steps", (double)steps, "too few for the parts of a cycle");
        jot_schedule part = is_cosine ? cosine(value[i], value[i + 1], (double)(end - begin), 1)
                                      : polynomial(value[i], value[i + 1], 1, end - begin);
        s = i ? jot_join_schedules(s, begin, part) : part;
    }
    return s;
}

jot_schedule jot_cosine_onecycle_schedule_with(int64_t steps, double peak,
                                               const jot_schedule_options *options)
{
    const jot_schedule_options *o = options ? options : &none;
    double first = peak / or_else(o->first, 25);
    const double value[] = {first, peak, first / or_else(o->last, 1e4)};
    const double share[] = {or_else(o->rise, 0.3), 1};
    return cycle("jot_cosine_onecycle_schedule", steps, 2, value, share, true);
}

jot_schedule jot_linear_onecycle_schedule_with(int64_t steps, double peak,
                                               const jot_schedule_options *options)
{
    const jot_schedule_options *o = options ? options : &none;
    double first = peak / or_else(o->first, 25);
    const double value[] = {first, peak, first, first / or_else(o->last, 1e4)};
    const double share[] = {or_else(o->rise, 0.3), or_else(o->fall, 0.85), 1};
    return cycle("jot_linear_onecycle_schedule", steps, 3, value, share, false);
}

jot_schedule jot_join_schedules(jot_schedule a, int64_t boundary, jot_schedule b)
{
    if (a.mistake[0])
        return a;
    if (b.mistake[0])
        return b;
    if (!library_is_schedule(a.n, a.piece) || !library_is_schedule(b.n, b.piece)) {
        snprintf(a.mistake, sizeof a.mistake, "jot_join_schedules: %s", no_schedule);
        return a;
    }
    if (boundary < 1)
        return mistaken("jot_join_schedules", "boundary", (double)boundary, "at least 1");
    if (a.n + b.n > MOST_PIECES)
        return mistaken("jot_join_schedules", "the number of pieces", a.n + b.n, "at most 8");
    for (int i = 0; i < b.n; i++) {
        a.piece[a.n] = b.piece[i];
        a.piece[a.n++].begin += (double)boundary;
    }
    return a;
}

// ---------------------------------------------------------------------------------------
// Asking

bool library_is_schedule(int n, const jot_schedule_piece *piece)
{
    bool is_one = n >= 1 && n <= MOST_PIECES;
    for (int i = 0; is_one && i < n; i++)
        is_one = piece[i].kind >= 0 && piece[i].kind < SCHEDULE_KINDS;
    return is_one;
}

static jot_value piece_value(const jot_schedule_piece *s, jot_value count, jot_dtype dtype)
{
    const double *a = s->number;
    jot_value c = jot_sub(count, num(s->begin)), x;
    switch (s->kind) {
    case SCHEDULE_POLYNOMIAL:
        c = jot_minimum(jot_maximum(c, num(0)), num(a[3]));
        x = jot_sub(num(1), jot_div(c, num(a[3])));
        x = a[2] == 1 ? x : jot_pow(x, num(a[2]));
        return jot_add(jot_mul(num(a[0] - a[1]), x), num(a[1]));
    case SCHEDULE_EXPONENTIAL:
        x = jot_div(jot_maximum(c, num(0)), num(a[2]));
        x = s->is_staircase ? jot_floor(x) : x;
        x = jot_mul(num(a[0]), jot_pow(num(a[1]), x));
        if (a[3] == 0)
            return x;
        return a[1] < 1 ? jot_maximum(x, num(a[3])) : jot_minimum(x, num(a[3]));
    case SCHEDULE_COSINE:
        c = jot_minimum(jot_maximum(c, num(0)), num(a[2]));
        x = jot_cos(jot_mul(num(PI), jot_div(c, num(a[2]))));
        x = jot_mul(num(0.5), jot_add(num(1), x));
        x = a[3] == 1 ? x : jot_pow(x, num(a[3]));
        return jot_add(jot_mul(num(a[0] - a[1]), x), num(a[1]));
    case SCHEDULE_VALUE:
        if (jot_value_rank(s->value))
            return jot_error(JOT_ERR_SHAPE, "a rate or schedule", "the value is no scalar");
        return jot_convert(s->value, dtype);
    default:
        return jot_full_dims(dtype, num(a[0]), (const int64_t[]){JOT_END});
    }
}

jot_value library_schedule(int n, const jot_schedule_piece *piece, jot_value count,
                           jot_dtype dtype)
{
    jot_value c = jot_convert(count, dtype), x = piece_value(piece, c, dtype);
    for (int i = 1; i < n; i++)
        x = jot_where(jot_less(c, num(piece[i].begin)), x, piece_value(piece + i, c, dtype));
    return x;
}

jot_value jot_schedule_value(jot_schedule s, jot_value count, jot_dtype dtype,
                             const char *where)
{
    const char *name = "jot_schedule_value";
    char text[80];
    jot_value x;
    snprintf(text, sizeof text, "dtype is %d: JOT_F32 or JOT_F64", (int)dtype);
    if (dtype != JOT_F32 && dtype != JOT_F64)
        x = jot_error(JOT_ERR_DTYPE, name, text);
    else if (s.mistake[0] || !library_is_schedule(s.n, s.piece))
        x = jot_error(JOT_ERR_ARGUMENT, name, s.mistake[0] ? s.mistake : no_schedule);
    else
        x = library_schedule(s.n, s.piece, count, dtype);
    jot_place(x, where);
    return x;
}
