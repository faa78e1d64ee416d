// SPDX-License-Identifier: Apache-2.0
// What jot_ode_solve and jot_sde_solve are given is checked and has defaults in place.
#include "library/formula.h"
#include "library/ode_problem.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const int64_t scalar[] = {JOT_END};

static bool is_real(jot_dtype d)
{
    return d == JOT_F16 || d == JOT_BF16 || d == JOT_F32 || d == JOT_F64;
}

static jot_dtype part_of(jot_dtype d)
{
    return d == JOT_C64 ? JOT_F32 : d == JOT_C128 ? JOT_F64 : d;
}

// ---- Options

// The first number that is of no use, or NULL.
static const char *wrong_number(const jot_ode_options *o, double *out)
{
    const struct {
        const char *name;
        double x;
    } numbers[] = {
        {"rtol", o->rtol},
        {"atol", o->atol},
        {"first_step", o->first_step},
        {"longest_step", o->longest_step},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        *out = numbers[i].x;
        if (!(*out >= 0))
            return numbers[i].name;
    }
    const int64_t counts[] = {o->steps, o->most_steps, o->slots};
    const char *const names[] = {"steps", "most_steps", "slots"};
    for (int i = 0; i < 3; i++) {
        *out = (double)counts[i];
        if (counts[i] > INT32_MAX || counts[i] < (i == 2 ? -1 : 0))
            return names[i];
    }
    *out = o->p + o->i + o->d;
    return isfinite(*out) ? NULL : "p + i + d";
}

// True with a text where the options are of no use.
static bool refuses_options(struct ode_problem *p, char *text, size_t size)
{
    double x;
    const char *wrong = wrong_number(&p->o, &x);
    p->method = ode_method_find(p->o.method);
    if (!p->method)
        snprintf(text, size, "there is no method %d", (int)p->o.method);
    else if (wrong)
        snprintf(text, size, "%s is %g", wrong, x);
    else if (p->o.parameters.n > UINT16_MAX || (p->o.parameters.n && !p->o.parameters.at))
        snprintf(text, size, "the parameters are NULL or more than 65535");
    else if ((unsigned)p->o.norm > JOT_ODE_MAX || (unsigned)p->o.adjoint > JOT_ODE_CONTINUOUS)
        snprintf(text, size, "there is no norm %d or no adjoint %d", (int)p->o.norm,
                 (int)p->o.adjoint);
    else if (p->method->kind == ODE_SYMPLECTIC && p->o.adjoint == JOT_ODE_CONTINUOUS)
        snprintf(text, size, "%s goes without the continuous adjoint, which has no velocities",
                 p->method->name);
    else if (p->o.event && (p->o.steps || p->o.times.trace || p->o.times.id ||
                            p->o.adjoint == JOT_ODE_CONTINUOUS))
        snprintf(text, size, "an event goes without .steps, .times and the continuous adjoint");
    else if (p->is_steady && (p->o.event || p->o.steps || p->o.times.trace || p->o.times.id ||
                              p->o.adjoint == JOT_ODE_CONTINUOUS))
        snprintf(text, size, "a steady state goes without .event, .steps, .times and .adjoint");
    else if (p->method->kind == ODE_SYMPLECTIC && p->n % 2)
        snprintf(text, size,
                 "%s takes as many velocities as positions: the state has %zu values",
                 p->method->name, p->n);
    else if (p->o.steps == 0 && p->method->error_order == 0)
        snprintf(text, size, "%s has no estimate of its error: %s", p->method->name,
                 p->is_steady ? "another method has one" : "say how many .steps");
    else
        return false;
    return true;
}

static void set_defaults(jot_ode_options *o, jot_dtype time)
{
    o->rtol = o->rtol == 0 ? (time == JOT_F64 ? 1e-6 : 1e-4) : o->rtol;
    o->atol = o->atol == 0 ? o->rtol / 1000 : o->atol;
    o->i = o->p == 0 && o->i == 0 && o->d == 0 ? 1 : o->i;
    o->most_steps = o->most_steps == 0 ? 4096 : o->most_steps;
}

// ---- Types

// Of a float, what it is; of a C number or an integer the type that it has beside the slopes.
static jot_value as_state(jot_value y, jot_value slopes)
{
    jot_dtype d = jot_value_dtype(y);
    bool is_half = d == JOT_F16 || d == JOT_BF16;
    jot_value beside_half = add(y, jot_zeros_dims(JOT_F16, scalar));
    if (is_half || jot_value_dtype(beside_half) == d)
        return y;
    return jot_convert(y, jot_value_dtype(add(y, slopes)));
}

static bool failed(size_t n, const jot_value *x, jot_value *out_error)
{
    for (size_t i = 0; i < n; i++)
        if (jot_value_failed(*out_error = x[i]))
            return true;
    return false;
}

// The state has types, and slopes that fit.  False with an error.
static bool read_state(struct ode_problem *p, jot_value t0, jot_value *y, jot_value *out_error)
{
    jot_value *k = p->next, *in = p->work, slopes = num(0); // of the type of all slopes
    in[0] = t0;
    memcpy(in + 1, y, sizeof *y * p->n);
    memcpy(in + 1 + p->n, p->parameters, sizeof *y * p->n_parameters);
    jot_apply_at(p->f, 1 + p->n + p->n_parameters, in, p->n, k, NULL);
    if (failed(p->n, y, out_error) || failed(p->n, k, out_error))
        return false;
    for (size_t i = 0; i < p->n; i++)
        slopes = add(slopes, jot_zeros_dims(part_of(jot_value_dtype(k[i])), scalar));
    for (size_t i = 0; i < p->n; i++)
        y[i] = as_state(y[i], slopes);
    ode_slope(p, t0, y, k);
    if (failed(p->n, k, out_error))
        return false;
    bool is_implicit = p->method->kind == ODE_DIAGONAL || p->method->kind == ODE_ROSENBROCK;
    for (size_t i = 0; is_implicit && i < p->n; i++) {
        if (is_real(jot_value_dtype(y[i])))
            continue;
        *out_error = jot_error(JOT_ERR_DTYPE, p->name, "an implicit method takes a real state");
        return false;
    }
    return true;
}

// Time has the widest real type of t0, t1 and the state.  False with an error.
static bool read_time(struct ode_problem *p, jot_value t0, jot_value t1, const jot_value *y,
                      jot_value *out_error)
{
    jot_dtype widest = JOT_F32;
    for (size_t i = 0; i < p->n; i++)
        widest = part_of(jot_value_dtype(y[i])) == JOT_F64 ? JOT_F64 : widest;
    p->time = jot_value_dtype(add(add(t0, t1), jot_zeros_dims(widest, scalar)));
    if (!is_real(p->time))
        *out_error = jot_error(JOT_ERR_DTYPE, p->name, "t0 and t1 are not real");
    return is_real(p->time);
}

static bool read_times(struct ode_problem *p, jot_value *out_error)
{
    if (!ode_has_times(p))
        return true;
    if (jot_value_failed(*out_error = p->o.times))
        return false;
    p->o.times = jot_convert(p->o.times, p->time);
    if (jot_value_rank(p->o.times) == 1)
        return true;
    *out_error = jot_error(JOT_ERR_SHAPE, p->name, "times have more or fewer axes than one");
    return false;
}

// ---- The problem

bool ode_make_lists(struct ode_problem *p)
{
    size_t n = p->n, m = p->n_parameters, within_step = 1 + ODE_MOST_STAGES;
    p->work = jot_trace_memory(sizeof *p->work * (1 + n + m + (within_step + 3) * n));
    if (!p->work)
        return false;
    p->next = p->work + 1 + n + m + within_step * n;
    p->next_k = p->next + n;
    p->error = p->next_k + n;
    return true;
}

static bool copy_parameters(struct ode_problem *p)
{
    size_t size = sizeof *p->parameters * p->o.parameters.n;
    p->n_parameters = p->o.parameters.n;
    p->parameters = jot_trace_memory(size);
    if (p->parameters && size)
        memcpy(p->parameters, p->o.parameters.at, size);
    return p->parameters;
}

jot_value ode_no_memory(const struct ode_problem *p, size_t n, jot_value *x)
{
    jot_value error = jot_error(JOT_ERR_MEMORY, p->name, NULL);
    for (size_t i = 0; i < n; i++)
        x[i] = error;
    return error;
}

static bool gives_up(const struct ode_problem *p, jot_value *out_error)
{
    *out_error = jot_error(JOT_ERR_MEMORY, p->name, NULL);
    return false;
}

bool ode_prepare(struct ode_problem *p, jot_value *t0, jot_value *t1, jot_value *y,
                 jot_value *out_error)
{
    char text[120];
    if (refuses_options(p, text, sizeof text)) {
        *out_error = jot_error(JOT_ERR_ARGUMENT, p->name, text);
        return false;
    }
    if (failed(2, (jot_value[]){*t0, *t1}, out_error))
        return false;
    if (jot_value_rank(*t0) != 0 || jot_value_rank(*t1) != 0) {
        *out_error = jot_error(JOT_ERR_SHAPE, p->name, "t0 and t1 are not one number each");
        return false;
    }
    if (!copy_parameters(p) || !ode_make_lists(p))
        return gives_up(p, out_error);
    if (!read_state(p, *t0, y, out_error) || !read_time(p, *t0, *t1, y, out_error) ||
        !read_times(p, out_error))
        return false;
    set_defaults(&p->o, p->time);
    *t0 = jot_convert(*t0, p->time), *t1 = jot_convert(*t1, p->time);
    return !p->o.event || !jot_value_failed(*out_error = ode_event(p, *t0, y));
}

struct ode_problem *ode_problem_make(const char *name, jot_function f, size_t n,
                                     const jot_value *y, const jot_ode_options *options,
                                     const char *where, jot_value *out_error)
{
    const char *text = !y                         ? "y is NULL"
                       : n == 0 || n > UINT16_MAX ? "the state has 0 or more than 65535 values"
                                                  : NULL;
    if (jot_value_failed(*out_error = text ? jot_error(JOT_ERR_ARGUMENT, name, text) : num(0)))
        return NULL;
    struct ode_problem *p = jot_trace_memory(sizeof *p);
    if (!p) {
        *out_error = jot_error(JOT_ERR_MEMORY, name, NULL);
        return NULL;
    }
    *p = (struct ode_problem){.name = name, .f = f, .where = where, .n = n};
    p->o = options ? *options : p->o;
    return p;
}

void ode_place(size_t n, jot_value *y, const jot_value *error, const char *where)
{
    bool is_list = y && n <= UINT16_MAX;
    for (size_t i = 0; error && is_list && i < n; i++)
        y[i] = *error;
    jot_place(error || !is_list ? *error : y[0], where);
}

static bool solve(struct ode_problem *p, jot_value t0, jot_value t1, jot_value *y,
                  jot_ode_result *result, jot_value *out_error)
{
    if (!ode_prepare(p, &t0, &t1, y, out_error))
        return false;
    if (p->o.adjoint == JOT_ODE_CONTINUOUS)
        return ode_run_with_adjoint(p, t0, t1, y, result) || gives_up(p, out_error);
    ode_run(p, t0, t1, y, result);
    return true;
}

void jot_ode_solve_tree(jot_function f, jot_value t0, jot_value t1, size_t n, jot_value *y,
                        const jot_ode_options *options, const char *where)
{
    jot_value error;
    jot_ode_result result;
    struct ode_problem *p = ode_problem_make("jot_ode_solve", f, n, y, options, where, &error);
    bool is_solved = p && solve(p, t0, t1, y, &result, &error);
    if (options && options->result)
        *options->result = is_solved ? result : (jot_ode_result){error, error, error, error};
    ode_place(n, y, is_solved ? NULL : &error, where);
}
