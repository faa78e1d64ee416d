// SPDX-License-Identifier: Apache-2.0
// What the parts of jot_ode_solve share.
#ifndef LIBRARY_ODE_PROBLEM_H
#define LIBRARY_ODE_PROBLEM_H

#include "library/ode_method.h"

enum { ODE_MOST_AXES = 64 }; // more than a value has

// Lives as long as the trace: functions that are traced with it refer to it.
struct ode_problem {
    const char *name; // of the public function
    const struct ode_method *method;
    jot_ode_options o; // without a zero that stands for a default
    jot_function f;
    const char *where;
    bool is_steady; // the solution ends where it hardly moves
    size_t n, n_parameters;
    jot_value *parameters;
    jot_dtype time;                   // of t and of lengths of steps
    jot_value *work;                  // operands of f, and slopes and points within one step
    jot_value *next, *next_k, *error; // of the step that is being traced
};

// All zero is no value.
static inline bool ode_has_times(const struct ode_problem *p)
{
    return p->o.times.trace || p->o.times.id;
}

// ---- making it (ode.c) ----

// NULL with an error.
struct ode_problem *ode_problem_make(const char *name, jot_function f, size_t n,
                                     const jot_value *y, const jot_ode_options *options,
                                     const char *where, jot_value *out_error);
// Checks all, and gives y and times their types; false with an error.
bool ode_prepare(struct ode_problem *p, jot_value *t0, jot_value *t1, jot_value *y,
                 jot_value *out_error);
// x becomes n errors, which it gives as well: memory is out.
jot_value ode_no_memory(const struct ode_problem *p, size_t n, jot_value *x);
// Gives what has been recorded its place.  With an error it is every value of the state.
void ode_place(size_t n, jot_value *y, const jot_value *error, const char *where);

// The lists, for the numbers of values that it says; false when memory is out.
bool ode_make_lists(struct ode_problem *p);

// ---- one step (ode_step.c) ----

// h with the type of x, or of its real part.
jot_value ode_as_part(jot_value h, jot_value x);

// k = f(t, y), of the types of y.
void ode_slope(const struct ode_problem *p, jot_value t, const jot_value *y, jot_value *k);

// One step from y, where the slope is k; h has the type of time.  next_k, the slope there, and
// error, the estimate of the error, are left out when NULL.  The lists may not overlap.  Gives
// whether what the method solves has been solved.
jot_value ode_step(const struct ode_problem *p, jot_value t, jot_value h, const jot_value *y,
                   const jot_value *k, jot_value *next, jot_value *next_k, jot_value *error);

// The same by methods for stiff equations (ode_implicit.c); Rosenbrock methods do not tell the
// slope.
jot_value ode_diagonal_step(const struct ode_problem *p, jot_value t, jot_value h,
                            const jot_value *y, const jot_value *k, jot_value *next,
                            jot_value *next_k, jot_value *error);
jot_value ode_rosenbrock_step(const struct ode_problem *p, jot_value t, jot_value h,
                              const jot_value *y, const jot_value *k, jot_value *next,
                              jot_value *error);

// ---- the length of steps (ode_control.c) ----

// The square of the norm of the error of a step from y to next, over the tolerance; infinite
// where it is NaN.  Without derivative, as the lengths are.
jot_value ode_error(const struct ode_problem *p, const jot_value *y, const jot_value *next,
                    const jot_value *error);
// The square of the norm of a slope, over the tolerance.
jot_value ode_speed(const struct ode_problem *p, const jot_value *y, const jot_value *k);
// By what to multiply the length of a step: from the squares of its error and of those of two
// steps before.
jot_value ode_factor(const struct ode_problem *p, jot_value is_accepted, jot_value error,
                     jot_value before, jot_value before_that);
// h as t + h has it: 0 where t does not move.  Without derivative.
jot_value ode_rounded(jot_value t, jot_value h);
// The first length, with the sign of t1 - t; 0 where there is none.
jot_value ode_first_step(const struct ode_problem *p, jot_value t, jot_value t1,
                         const jot_value *y, const jot_value *k);

// ---- events (ode_event.c) ----

// The event at a point, of the type of time.
jot_value ode_event(const struct ode_problem *p, jot_value t, const jot_value *y);
// The time of the event in the step from t, y to t_after, where there is one, and the state
// there.
jot_value ode_find_event(const struct ode_problem *p, jot_value is_event, jot_value t,
                         jot_value t_after, const jot_value *y, jot_value *next);

// ---- loops (ode_loops.c) ----

// y, at t0, becomes y at t1 or at the times.
void ode_run(const struct ode_problem *p, jot_value t0, jot_value t1, jot_value *y,
             jot_ode_result *result);
// The same with the derivative of the continuous adjoint (ode_adjoint.c); false when memory is
// out.
bool ode_run_with_adjoint(const struct ode_problem *p, jot_value t0, jot_value t1, jot_value *y,
                          jot_ode_result *result);

#endif
