// SPDX-License-Identifier: Apache-2.0
// Steady states: the solution is followed until it hardly moves, and what is found has the
// derivative of f(t, y, p) = 0.
#include "jot/solvers.h"

#include "library/formula.h"
#include "library/ode_problem.h"

#include <math.h>
#include <string.h>

static const char *const name = "jot_ode_steady_state";

// What f needs besides the state, where the solution ended.
struct at_end {
    const struct ode_problem *p;
    jot_value t;
};

static void slope(const jot_value *in, jot_value *out, void *ctx)
{
    const struct at_end *s = ctx;
    ode_slope(s->p, s->t, in, out);
}

static void same(const jot_value *in, jot_value *out, void *ctx)
{
    memcpy(out, in, sizeof *out * ((const struct at_end *)ctx)->p->n);
}

static bool settle(struct ode_problem *p, jot_value t0, jot_value *y, jot_ode_result *result,
                   jot_value *out_error)
{
    jot_value t1 = num(INFINITY);
    p->is_steady = true;
    if (!ode_prepare(p, &t0, &t1, y, out_error))
        return false;
    ode_run(p, t0, t1, y, result);
    jot_value done = jot_convert(jot_from_int(JOT_ODE_DONE), JOT_I32);
    jot_value rests =
        jot_equal(result->status, jot_convert(jot_from_int(JOT_ODE_EVENT), JOT_I32));
    result->status = jot_where(rests, done, result->status);
    struct at_end *s = jot_trace_memory(sizeof *s);
    if (!s) {
        *out_error = jot_error(JOT_ERR_MEMORY, name, NULL);
        return false;
    }
    *s = (struct at_end){p, jot_stop_gradient(result->time)};
    int n = (int)p->n;
    for (size_t i = 0; i < p->n; i++)
        y[i] = jot_stop_gradient(y[i]);
    jot_function f = jot_function_uniform(p->f.callee.name, p->where, slope, n, n, s);
    jot_function found = jot_function_uniform("found", p->where, same, n, n, s);
    jot_custom_root_tree(f, p->n, y, found, NULL, NULL, y, p->where);
    return true;
}

void jot_ode_steady_state_tree(jot_function f, jot_value t0, size_t n, jot_value *y,
                               const jot_ode_options *options, const char *where)
{
    jot_value error;
    jot_ode_result result;
    struct ode_problem *p = ode_problem_make(name, f, n, y, options, where, &error);
    bool is_solved = p && settle(p, t0, y, &result, &error);
    if (options && options->result)
        *options->result = is_solved ? result : (jot_ode_result){error, error, error, error};
    ode_place(n, y, is_solved ? NULL : &error, where);
}
