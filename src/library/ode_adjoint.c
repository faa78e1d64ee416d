// SPDX-License-Identifier: Apache-2.0
// The continuous adjoint: the derivative of the solution by an equation of its own.
//
//     a' = -a df/dy    g' = -a df/dp    backwards beside y' = f, from a = the cotangent, g = 0
//
// At a time where y is wanted a takes up its cotangent, and y begins anew from what was found
// there.  The cotangent of a time is a f, that of t0 the negative of it.  Pontryagin and
// others, 1962; Chen and others, arXiv:1806.07366.
#include "jot/control.h"
#include "jot/shapes.h"

#include "library/formula.h"
#include "library/ode_problem.h"

#include <string.h>

// Arguments of the solution as a function, before the state and the parameters.
enum { T0, T1, TIMES, FIRST };
enum { RESULTS = 4 }; // those of jot_ode_result, behind the state

struct adjoint {
    const struct ode_problem *p;
    struct ode_problem back; // of y, a, and g of each parameter that has a derivative
    size_t n_slopes;         // such parameters
};

static bool has_derivative(jot_value x)
{
    jot_dtype d = jot_value_dtype(x);
    return d == JOT_F16 || d == JOT_BF16 || d == JOT_F32 || d == JOT_F64 || d == JOT_C64 ||
           d == JOT_C128;
}

// ---- There

static void solution(const jot_value *in, jot_value *out, void *ctx)
{
    struct ode_problem p = *((const struct adjoint *)ctx)->p;
    jot_ode_result result;
    p.o.times = ode_has_times(&p) ? in[TIMES] : p.o.times;
    p.parameters = (jot_value *)(in + FIRST + p.n);
    memcpy(out, in + FIRST, sizeof *out * p.n);
    ode_run(&p, in[T0], in[T1], out, &result);
    memcpy(out + p.n, &result, sizeof result);
}

// The results, then what the way back needs: the arguments, with the solution as the state.
static void forward(const jot_value *in, jot_value *out, void *ctx)
{
    const struct ode_problem *p = ((const struct adjoint *)ctx)->p;
    jot_value *kept = out + p->n + RESULTS;
    solution(in, out, ctx);
    memcpy(kept, in, sizeof *in * (FIRST + p->n + p->n_parameters));
    memcpy(kept + FIRST, out, sizeof *in * p->n);
}

// ---- And back

// f of the parameters that have a derivative; the others are those of `parameters`.
struct of_some {
    const struct ode_problem *p;
    const jot_value *parameters;
};

static void slope_of_some(const jot_value *in, jot_value *out, void *ctx)
{
    const struct of_some *of = ctx;
    struct ode_problem p = *of->p;
    const jot_value *some = in + 1 + p.n;
    p.parameters = jot_trace_memory(sizeof *in * (p.n_parameters + 1));
    if (!p.parameters || !ode_make_lists(&p)) {
        ode_no_memory(of->p, of->p->n, out);
        return;
    }
    for (size_t i = 0; i < p.n_parameters; i++)
        p.parameters[i] = has_derivative(of->parameters[i]) ? *some++ : of->parameters[i];
    ode_slope(&p, in[0], in + 1, out);
}

// in: t, y, a, g, p
static void adjoint_slope(const jot_value *in, jot_value *out, void *ctx)
{
    const struct adjoint *s = ctx;
    size_t n = s->p->n, m = s->p->n_parameters, some = s->n_slopes;
    jot_value *at = jot_trace_memory(sizeof *at * 2 * (1 + n + some + n));
    struct of_some *of = jot_trace_memory(sizeof *of);
    if (!at || !of) {
        ode_no_memory(s->p, s->back.n, out);
        return;
    }
    *of = (struct of_some){s->p, in + 1 + 2 * n + some};
    jot_value *slope = at + 1 + n + some + n, *cotangent = slope + n;
    memcpy(at, in, sizeof *at * (1 + n));
    for (size_t i = 0, g = 0; i < m; i++)
        if (has_derivative(of->parameters[i]))
            at[1 + n + g++] = of->parameters[i];
    memcpy(at + 1 + n + some, in + 1 + n, sizeof *at * n);
    jot_function f = jot_function_uniform(s->p->f.callee.name, s->p->where, slope_of_some,
                                          (int)(1 + n + some), (int)n, of);
    jot_apply_at(jot_vjp_of(f, s->p->where, NULL), 1 + n + some + n, at, n + 1 + n + some,
                 slope, NULL);
    memcpy(out, slope, sizeof *out * n);
    for (size_t i = 0; i < n + some; i++)
        out[n + i] = jot_neg(cotangent[1 + i]);
}

static void run_back(const struct adjoint *s, jot_value t, jot_value to, jot_value *state)
{
    jot_ode_result result;
    ode_run(&s->back, t, to, state, &result);
}

// a f of a state with the slope there, a real number.
static jot_value along(const struct adjoint *s, jot_value t, const jot_value *state)
{
    const struct ode_problem *p = &s->back;
    size_t n = s->p->n;
    jot_value total = num(0);
    ode_slope(p, t, state, p->next);
    for (size_t i = 0; i < n; i++)
        total = add(total, jot_real(jot_sum_axes(mul(state[n + i], p->next[i]), NULL)));
    return jot_convert(total, p->time);
}

// c: t, y, a, g.  row: a time, y and its cotangent there.  out: the cotangent of the time.
static void back_to_row(jot_value *c, const jot_value *row, jot_value *out, void *ctx)
{
    const struct adjoint *s = ctx;
    size_t n = s->p->n;
    jot_value *a = c + 1 + n;
    run_back(s, c[0], row[0], c + 1);
    c[0] = row[0];
    memcpy(c + 1, row + 1, sizeof *c * n);
    jot_value *met = s->back.error; // the state with the new cotangent alone
    memcpy(met, row + 1, sizeof *met * 2 * n);
    memcpy(met + 2 * n, a + n, sizeof *met * s->n_slopes);
    out[0] = along(s, row[0], met);
    for (size_t i = 0; i < n; i++)
        a[i] = add(a[i], row[1 + n + i]);
}

static jot_value with_axis(const struct ode_problem *p, jot_value x)
{
    return ode_has_times(p) ? x : jot_expand_dims_axes(x, (const int[]){0, JOT_END});
}

// in: what forward keeps, then the cotangents of the results.  out: the cotangents of the
// arguments.
static void backward(const jot_value *in, jot_value *out, void *ctx)
{
    struct adjoint s = *(const struct adjoint *)ctx;
    const struct ode_problem *p = s.p;
    size_t n = p->n, m = p->n_parameters, states = 2 * n + s.n_slopes;
    const jot_value *y = in + FIRST, *cotangent = y + n + m;
    jot_value *row = jot_trace_memory(sizeof *row * (1 + 2 * n + 1 + states));
    if (!row) {
        ode_no_memory(p, FIRST + n + m, out);
        return;
    }
    jot_value *c = row + 1 + 2 * n, times;
    s.back.parameters = (jot_value *)(y + n);
    row[0] = with_axis(p, in[ode_has_times(p) ? TIMES : T1]);
    c[0] = jot_take_axis(row[0], -1, 0);
    for (size_t i = 0; i < n; i++) {
        row[1 + i] = with_axis(p, y[i]);
        row[1 + n + i] = with_axis(p, cotangent[i]);
        c[1 + i] = jot_take_axis(row[1 + i], -1, 0);
        c[1 + n + i] = jot_zeros_like(c[1 + i]);
    }
    for (size_t i = 0, g = 0; i < m; i++)
        if (has_derivative(s.back.parameters[i]))
            c[1 + 2 * n + g++] = jot_zeros_like(s.back.parameters[i]);
    jot_loop_options reverse = {.reverse = true};
    jot_scan_at(back_to_row, &s, 1 + states, c, 1 + 2 * n, row, 1, &times, &reverse, p->where);
    run_back(&s, c[0], in[T0], c + 1);
    out[T0] = jot_neg(along(&s, in[T0], c + 1));
    out[T1] = ode_has_times(p) ? jot_zeros_like(in[T1]) : jot_take_axis(times, 0, 0);
    out[TIMES] = ode_has_times(p) ? times : jot_zeros_like(in[TIMES]);
    memcpy(out + FIRST, c + 1 + n, sizeof *out * n);
    for (size_t i = 0, g = 0; i < m; i++)
        out[FIRST + n + i] = has_derivative(s.back.parameters[i])
                                 ? c[1 + 2 * n + g++]
                                 : jot_zeros_like(s.back.parameters[i]);
}

bool ode_run_with_adjoint(const struct ode_problem *p, jot_value t0, jot_value t1, jot_value *y,
                          jot_ode_result *result)
{
    size_t n = p->n, m = p->n_parameters;
    struct adjoint *s = jot_trace_memory(sizeof *s);
    jot_value *in = jot_trace_memory(sizeof *in * (FIRST + n + m + n + RESULTS));
    if (!s || !in)
        return false;
    *s = (struct adjoint){.p = p, .back = *p};
    for (size_t i = 0; i < m; i++)
        s->n_slopes += has_derivative(p->parameters[i]);
    s->back.n = 2 * n + s->n_slopes;
    s->back.o.times = (jot_value){0};
    int states = (int)s->back.n, count = (int)(FIRST + n + m), results = (int)(n + RESULTS);
    s->back.f = jot_function_uniform(p->f.callee.name, p->where, adjoint_slope,
                                     1 + states + (int)m, states, s);
    if (!ode_make_lists(&s->back))
        return false;
    in[T0] = t0, in[T1] = t1;
    in[TIMES] = ode_has_times(p) ? p->o.times : t1;
    memcpy(in + FIRST, y, sizeof *y * n);
    memcpy(in + FIRST + n, p->parameters, sizeof *y * m);
    jot_value *out = in + count;
    jot_function f =
        jot_function_uniform("jot_ode_solve", p->where, solution, count, results, s);
    f = jot_custom_vjp_of(
        f, jot_function_uniform("forward", p->where, forward, count, results + count, s),
        jot_function_uniform("backward", p->where, backward, count + results, count, s),
        p->where);
    jot_apply_at(f, (size_t)count, in, (size_t)results, out, p->where);
    memcpy(y, out, sizeof *y * n);
    memcpy(result, out + n, sizeof *result);
    return true;
}
