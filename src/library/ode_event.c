// SPDX-License-Identifier: Apache-2.0
// Events: where a function of the solution crosses zero within the last step.
//
// The length h of the shorter step that ends there is found by the Illinois method (Dowell and
// Jarratt, 1971), without derivative.  One step of Newton's after that gives it the derivative
// of the equation event(t + h, y(t + h)) = 0.
#include "jot/control.h"

#include "library/formula.h"
#include "library/ode_problem.h"

#include <stdio.h>
#include <string.h>

enum { MOST_TRIPS = 60 };

jot_value ode_event(const struct ode_problem *p, jot_value t, const jot_value *y)
{
    jot_value *in = p->work, out;
    size_t count = 1 + p->n + p->n_parameters;
    in[0] = t;
    memcpy(in + 1, y, sizeof *y * p->n);
    memcpy(in + 1 + p->n, p->parameters, sizeof *in * p->n_parameters);
    jot_apply_at(*p->o.event, count, in, 1, &out, NULL);
    if (jot_value_failed(out))
        return out;
    jot_dtype d = jot_value_dtype(out);
    int rank = jot_value_rank(out);
    if (rank == 0 && d != JOT_C64 && d != JOT_C128)
        return jot_convert(out, p->time);
    char text[160];
    snprintf(text, sizeof text, "the event %.60s gives %s of rank %d: one real number",
             p->o.event->callee.name, jot_dtype_name(d), rank);
    return jot_error(rank ? JOT_ERR_SHAPE : JOT_ERR_DTYPE, p->name, text);
}

// The step in which the event lies.
struct last_step {
    const struct ode_problem *p;
    jot_value t;
    const jot_value *y, *k;
    jot_value is_event;
};

// The state after a part of the step is left in next; gives the event there.
static jot_value event_after(const struct last_step *s, jot_value h, jot_value *next)
{
    ode_step(s->p, s->t, h, s->y, s->k, next, NULL, NULL);
    return ode_event(s->p, add(s->t, h), next);
}

// Carries: two lengths, the events there, and the number of trips.  B is the latest.
enum { A, B, AT_A, AT_B, TRIPS, CARRIES };

static jot_value goes_on(const jot_value *c, void *ctx)
{
    const struct last_step *s = ctx;
    jot_value is_apart = jot_not_equal(c[A], c[B]);
    jot_value is_open = both(is_apart, jot_not_equal(c[AT_B], num(0)));
    jot_value is_early = jot_less(c[TRIPS], jot_convert(jot_from_int(MOST_TRIPS), JOT_I32));
    return both(s->is_event, both(is_open, is_early));
}

static void trip(jot_value *c, void *ctx)
{
    const struct last_step *s = ctx;
    jot_value part = over(c[AT_B], sub(c[AT_B], c[AT_A]));
    jot_value h = jot_stop_gradient(sub(c[B], mul(part, sub(c[B], c[A]))));
    jot_value event = jot_stop_gradient(event_after(s, h, s->p->next));
    jot_value crosses = jot_less(mul(jot_sign(event), jot_sign(c[AT_B])), num(0));
    c[A] = jot_where(crosses, c[B], c[A]);
    c[AT_A] = jot_where(crosses, c[AT_B], mul(num(0.5), c[AT_A]));
    c[B] = h;
    c[AT_B] = event;
    c[TRIPS] = add(c[TRIPS], jot_convert(jot_from_int(1), JOT_I32));
}

// in: h.  out: the event after it
static void of_length(const jot_value *in, jot_value *out, void *ctx)
{
    const struct last_step *s = ctx;
    out[0] = event_after(s, in[0], s->p->next);
}

jot_value ode_find_event(const struct ode_problem *p, jot_value is_event, jot_value t,
                         jot_value t_after, const jot_value *y, jot_value *next)
{
    struct last_step *s = jot_trace_memory(sizeof *s);
    jot_value *k = jot_trace_memory(sizeof *k * p->n);
    if (!s || !k)
        return ode_no_memory(p, p->n, next);
    ode_slope(p, t, y, k);
    *s = (struct last_step){p, t, y, k, is_event};
    jot_value whole = jot_stop_gradient(sub(t_after, t)), zero = jot_zeros_like(whole);
    jot_value c[CARRIES] = {zero, whole, jot_stop_gradient(ode_event(p, t, y)),
                            jot_stop_gradient(event_after(s, whole, p->next)),
                            jot_convert(jot_from_int(0), JOT_I32)};
    jot_while_at(goes_on, trip, s, CARRIES, c, NULL, p->where);
    jot_value in[] = {jot_stop_gradient(c[B]), jot_ones_like(whole)}, out[2];
    jot_function f = jot_function_uniform("event", p->where, of_length, 1, 1, s);
    jot_apply_at(jot_jvp_of(f, p->where, NULL), 2, in, 2, out, NULL);
    jot_value rate = jot_where(is_event, jot_stop_gradient(out[1]), num(1));
    jot_value h = sub(in[0], over(jot_where(is_event, out[0], num(0)), rate));
    ode_step(p, t, h, y, k, next, NULL, NULL);
    return add(t, h);
}
