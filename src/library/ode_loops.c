// SPDX-License-Identifier: Apache-2.0
// The loops over the steps of jot_ode_solve, of one length or as long as the error allows.
//
// With times a loop over these holds the loop over the steps to each.  Steps as the error
// allows do not stop at a time: the state there is by a shorter step from the last point
// before.
#include "jot/control.h"
#include "jot/shapes.h"

#include "library/formula.h"
#include "library/ode_problem.h"

#include <math.h>
#include <string.h>

static jot_value count(int64_t x) { return jot_convert(jot_from_int(x), JOT_I32); }

// ---------------------------------------------------------------------------------------
// Steps of one length

// Carries.  A method that does not end with the slope at the next point has no use for K.
enum { EVEN_T, EVEN_Y };

struct even {
    const struct ode_problem *p;
    jot_value t, h;
};

static size_t even_carries(const struct ode_problem *p)
{
    return EVEN_Y + p->n * (p->method->ends_with_slope ? 2 : 1);
}

// NaN where Newton's method does not converge.
static void step_or_nan(const struct ode_problem *p, jot_value t, jot_value h,
                        const jot_value *y, const jot_value *k, jot_value *next,
                        jot_value *next_k)
{
    jot_value worked = ode_step(p, t, h, y, k, next, next_k, NULL);
    for (size_t i = 0; p->method->kind == ODE_DIAGONAL && i < p->n; i++)
        next[i] = or_nan(worked, next[i]);
}

// c: the number of the step, y, k
static void even_step(jot_value *c, const jot_value *row, jot_value *out, void *ctx)
{
    (void)row, (void)out;
    const struct even *e = ctx;
    const struct ode_problem *p = e->p;
    bool keeps_slope = p->method->ends_with_slope;
    jot_value t = add(e->t, mul(jot_convert(c[0], p->time), e->h));
    jot_value *y = c + 1, *k = keeps_slope ? y + p->n : p->next_k;
    if (!keeps_slope)
        ode_slope(p, t, y, k);
    step_or_nan(p, t, e->h, y, k, p->next, keeps_slope ? p->next_k : NULL);
    memcpy(y, p->next, sizeof *y * p->n);
    if (keeps_slope)
        memcpy(k, p->next_k, sizeof *k * p->n);
    c[0] = add(c[0], count(1));
}

// c: t, y, k, moved to t1
static void even_steps(const struct ode_problem *p, jot_value t1, jot_value *c)
{
    jot_loop_options loop = {.length = p->o.steps, .checkpoint = p->o.checkpoint};
    struct even e = {p, c[0], mul(sub(t1, c[0]), num(1 / (double)p->o.steps))};
    c[0] = count(0);
    jot_scan_at(even_step, &e, even_carries(p), c, 0, NULL, 0, NULL, &loop, p->where);
    c[0] = t1;
}

static void even_row(jot_value *c, const jot_value *row, jot_value *out, void *ctx)
{
    const struct ode_problem *p = ctx;
    even_steps(p, row[0], c);
    memcpy(out, c + 1, sizeof *out * p->n);
}

static void solve_even(const struct ode_problem *p, jot_value t1, jot_value *c, jot_value *y)
{
    if (ode_has_times(p)) {
        jot_loop_options loop = {.checkpoint = p->o.checkpoint};
        jot_scan_at(even_row, (void *)p, even_carries(p), c, 1, &p->o.times, p->n, y, &loop,
                    p->where);
    } else {
        even_steps(p, t1, c);
        memcpy(y, c + 1, sizeof *y * p->n);
    }
}

// ---------------------------------------------------------------------------------------
// Steps as long as the error allows

// Carries, before those of the state: the point, the next step, squares of the errors of the
// last two accepted steps, the event; then y, the slope there, and y before the last step,
// which began at BEFORE.
enum { T, H, ERROR, ERROR_BEFORE, EVENT, BEFORE, STATUS, ACCEPTED, REJECTED, FIRST };

struct free_steps {
    const struct ode_problem *p;
    jot_value begin, end, until;
};

static jot_value goes_on(const jot_value *c, void *ctx)
{
    const struct free_steps *r = ctx;
    jot_value left = mul(jot_sign(c[H]), sub(r->until, c[T]));
    return both(jot_greater(left, num(0)), jot_equal(c[STATUS], count(JOT_ODE_DONE)));
}

static void choose(jot_value which, size_t n, const jot_value *x, jot_value *y)
{
    for (size_t i = 0; i < n; i++)
        y[i] = jot_where(which, x[i], y[i]);
}

// What the step before leaves of the length of the next one, and whether there may be one.
static void next_length(const struct ode_problem *p, jot_value h, jot_value is_good,
                        jot_value error, jot_value *c)
{
    jot_value longer = mul(h, ode_factor(p, is_good, error, c[ERROR], c[ERROR_BEFORE]));
    if (p->o.longest_step > 0)
        longer = jot_clip(longer, num(-p->o.longest_step), num(p->o.longest_step));
    c[H] = ode_rounded(c[T], longer);
    c[ERROR_BEFORE] = jot_where(is_good, c[ERROR], c[ERROR_BEFORE]);
    c[ERROR] = jot_where(is_good, error, c[ERROR]);
    jot_value good = jot_convert(is_good, JOT_I32);
    c[ACCEPTED] = add(c[ACCEPTED], good);
    c[REJECTED] = add(c[REJECTED], sub(count(1), good));
    jot_value too_many =
        jot_greater_equal(add(c[ACCEPTED], c[REJECTED]), count(p->o.most_steps));
    jot_value length = jot_abs(c[H]), moves = jot_greater(length, num(0));
    jot_value is_shorter = jot_logical_or(is_good, jot_less(length, jot_abs(h)));
    jot_value stuck = jot_logical_not(both(moves, is_shorter)); // also where the step is NaN
    c[STATUS] = jot_where(stuck, count(JOT_ODE_STEP_TOO_SMALL),
                          jot_where(too_many, count(JOT_ODE_MOST_STEPS), c[STATUS]));
}

// An event that changes its sign in a good step to p->next ends the solution.
static void look_for_event(const struct ode_problem *p, jot_value t, jot_value is_good,
                           jot_value *c)
{
    jot_value event = jot_stop_gradient(ode_event(p, t, p->next));
    jot_value crosses = jot_less_equal(mul(jot_sign(event), jot_sign(c[EVENT])), num(0));
    jot_value happens = both(both(is_good, crosses), jot_not_equal(c[EVENT], num(0)));
    c[STATUS] = jot_where(happens, count(JOT_ODE_EVENT), c[STATUS]);
    c[EVENT] = jot_where(is_good, event, c[EVENT]);
}

// in: values, then others.  out: the values, whose derivative is that of the others
static void first_half(const jot_value *in, jot_value *out, void *ctx)
{
    memcpy(out, in, sizeof *out * *(const size_t *)ctx);
}
// in: both, then the tangents of both
static void second_tangent(const jot_value *in, jot_value *out, void *ctx)
{
    size_t n = *(const size_t *)ctx;
    memcpy(out, in + 3 * n, sizeof *out * n);
}

// p->next and p->next_k have the derivative of a step of length h where it is good, and of none
// where it is not: what overflows there has a derivative that is NaN, also times 0.  Only
// derivatives compute it.
static void differentiate_good(const struct ode_problem *p, jot_value is_good, jot_value t,
                               jot_value h, const jot_value *y, const jot_value *k)
{
    size_t *n = jot_trace_memory(sizeof *n);
    jot_value *x = jot_trace_memory(sizeof *x * 4 * p->n);
    if (!n || !x) {
        ode_no_memory(p, p->n, p->next);
        ode_no_memory(p, p->n, p->next_k);
        return;
    }
    *n = 2 * p->n;
    memcpy(x, p->next, sizeof *x * p->n);
    memcpy(x + p->n, p->next_k, sizeof *x * p->n);
    ode_step(p, t, jot_where(is_good, h, num(0)), y, k, x + *n, x + *n + p->n, NULL);
    int half = (int)*n;
    jot_function f = jot_function_uniform("step", p->where, first_half, 2 * half, half, n);
    jot_function rule =
        jot_function_uniform("step", p->where, second_tangent, 4 * half, half, n);
    jot_value *out = x + *n;
    jot_apply_at(jot_custom_jvp_of(f, rule, p->where), 2 * *n, x, *n, out, NULL);
    memcpy(p->next, out, sizeof *x * p->n);
    memcpy(p->next_k, out + p->n, sizeof *x * p->n);
}

// Where the solution cannot go on its state is NaN.  In the loop this is no kernel of its own.
static void lose_state(const struct ode_problem *p, jot_value *c)
{
    jot_value is_open = jot_equal(c[STATUS], count(JOT_ODE_DONE));
    jot_value holds = jot_logical_or(is_open, jot_equal(c[STATUS], count(JOT_ODE_EVENT)));
    for (size_t i = 0; i < p->n && !p->is_steady; i++)
        c[FIRST + i] = or_nan(holds, c[FIRST + i]);
}

static void free_step(jot_value *c, void *ctx)
{
    const struct free_steps *r = ctx;
    const struct ode_problem *p = r->p;
    jot_value *y = c + FIRST, *k = y + p->n, *before = k + p->n;
    jot_value left = sub(r->end, c[T]);
    // A rest that is hardly longer than the step is part of it.
    jot_value is_last = jot_less_equal(jot_abs(left), mul(num(1.01), jot_abs(c[H])));
    jot_value h = jot_where(is_last, left, c[H]);
    jot_value worked = ode_step(p, c[T], h, y, k, p->next, p->next_k, p->error);
    jot_value error = jot_where(worked, ode_error(p, y, p->next, p->error), num(INFINITY));
    jot_value is_good = jot_less_equal(error, num(1));
    differentiate_good(p, is_good, c[T], h, y, k);
    choose(is_good, p->n, y, before);
    choose(is_good, p->n, p->next, y);
    choose(is_good, p->n, p->next_k, k);
    c[BEFORE] = jot_where(is_good, c[T], c[BEFORE]);
    c[T] = jot_where(is_good, jot_where(is_last, r->end, add(c[T], h)), c[T]);
    next_length(p, h, is_good, error, c);
    // At the end nothing is missing.
    c[STATUS] = jot_where(jot_equal(c[T], r->end), count(JOT_ODE_DONE), c[STATUS]);
    if (p->o.event)
        look_for_event(p, c[T], is_good, c);
    if (p->is_steady) {
        jot_value rests = jot_less_equal(ode_speed(p, y, k), num(1));
        c[STATUS] = jot_where(rests, count(JOT_ODE_EVENT), c[STATUS]);
    }
    lose_state(p, c);
}

static void free_steps(const struct free_steps *r, jot_value *c)
{
    const struct ode_problem *p = r->p;
    jot_loop_options loop = {.slots = p->o.slots > 0 ? p->o.slots : 0,
                             .bound = p->o.slots < 0 ? p->o.most_steps : 0};
    jot_while_at(goes_on, free_step, (void *)r, FIRST + 3 * p->n, c, &loop, p->where);
}

// The state at row[0], which the last step reaches or passes; NaN where the solution does not
// come.
static void free_row(jot_value *c, const jot_value *row, jot_value *out, void *ctx)
{
    struct free_steps r = *(struct free_steps *)ctx;
    const struct ode_problem *p = r.p;
    jot_value *before = c + FIRST + 2 * p->n;
    r.until = row[0];
    free_steps(&r, c);
    jot_value way = jot_sign(sub(r.end, r.begin));
    jot_value is_between = both(jot_greater_equal(mul(way, sub(row[0], r.begin)), num(0)),
                                jot_greater_equal(mul(way, sub(r.end, row[0])), num(0)));
    jot_value comes = jot_equal(c[STATUS], count(JOT_ODE_DONE));
    jot_value is_there = both(is_between, comes);
    jot_value h = jot_where(is_there, sub(row[0], c[BEFORE]), num(0));
    ode_slope(p, c[BEFORE], before, p->next_k);
    step_or_nan(p, c[BEFORE], h, before, p->next_k, out, NULL);
    for (size_t i = 0; i < p->n; i++)
        out[i] = jot_where(is_between, or_nan(comes, out[i]), num(NAN));
}

// c: t, y, k
static void solve_free(const struct ode_problem *p, jot_value t1, const jot_value *start,
                       jot_value *c, jot_value *y, jot_ode_result *result)
{
    size_t n = p->n;
    struct free_steps r = {p, start[0], t1, t1};
    c[T] = c[BEFORE] = start[0];
    c[H] = ode_first_step(p, start[0], t1, start + 1, start + 1 + n);
    c[ERROR] = c[ERROR_BEFORE] = jot_ones_like(c[T]);
    c[EVENT] = p->o.event ? jot_stop_gradient(ode_event(p, start[0], start + 1)) : c[ERROR];
    c[ACCEPTED] = c[REJECTED] = count(0);
    // Where the slope at t0 is not finite there is no first step.
    jot_value is_step = both(jot_is_finite(c[H]), jot_not_equal(c[H], num(0)));
    jot_value begins = jot_logical_or(is_step, jot_equal(start[0], t1));
    c[STATUS] = jot_where(begins, count(JOT_ODE_DONE), count(JOT_ODE_STEP_TOO_SMALL));
    memcpy(c + FIRST, start + 1, sizeof *c * 2 * n);
    memcpy(c + FIRST + 2 * n, start + 1, sizeof *c * n);
    lose_state(p, c);
    if (ode_has_times(p)) {
        jot_scan_at(free_row, &r, FIRST + 3 * n, c, 1, &p->o.times, n, y, NULL, p->where);
    } else {
        free_steps(&r, c);
        memcpy(y, c + FIRST, sizeof *y * n);
    }
    if (p->o.event) {
        jot_value is_event = jot_equal(c[STATUS], count(JOT_ODE_EVENT));
        jot_value *found = p->error;
        jot_value t = ode_find_event(p, is_event, c[BEFORE], c[T], c + FIRST + 2 * n, found);
        c[T] = jot_where(is_event, t, c[T]);
        choose(is_event, n, found, y);
    }
    *result = (jot_ode_result){c[STATUS], c[ACCEPTED], c[REJECTED], c[T]};
}

void ode_run(const struct ode_problem *p, jot_value t0, jot_value t1, jot_value *y,
             jot_ode_result *result)
{
    size_t n = p->n;
    jot_value *start = jot_trace_memory(sizeof *start * (FIRST + 1 + 5 * n));
    if (!start) {
        jot_value error = ode_no_memory(p, n, y);
        *result = (jot_ode_result){error, error, error, error};
        return;
    }
    start[0] = t0;
    memcpy(start + 1, y, sizeof *y * n);
    ode_slope(p, t0, y, start + 1 + n);
    if (p->o.steps == 0) {
        solve_free(p, t1, start, start + 1 + 2 * n, y, result);
        return;
    }
    solve_even(p, t1, start, y);
    int64_t rows = ode_has_times(p) ? jot_value_dim(p->o.times, 0) : 1;
    *result = (jot_ode_result){count(JOT_ODE_DONE), count(p->o.steps * rows), count(0), t1};
}
