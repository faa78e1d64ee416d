// SPDX-License-Identifier: Apache-2.0
// Slopes, and one step of a Runge-Kutta method.
#include "library/formula.h"
#include "library/ode_problem.h"

#include <stdio.h>
#include <string.h>

static bool is_complex(jot_value x)
{
    return jot_value_dtype(x) == JOT_C64 || jot_value_dtype(x) == JOT_C128;
}

jot_value ode_as_part(jot_value h, jot_value x)
{
    jot_dtype d = jot_value_dtype(x);
    return jot_convert(h, d == JOT_C64 ? JOT_F32 : d == JOT_C128 ? JOT_F64 : d);
}

// The slope with the type of the state.
static jot_value fitting(const struct ode_problem *p, size_t i, jot_value k, jot_value y)
{
    if (jot_value_failed(k) || jot_value_failed(y))
        return k;
    char text[160];
    const char *name = p->f.callee.name;
    if (!has_shape_of(k, y)) {
        snprintf(text, sizeof text,
                 "%s gives value %zu of the slope with another shape than the state", name, i);
        return jot_error(JOT_ERR_SHAPE, p->name, text);
    }
    if (is_complex(k) && !is_complex(y)) {
        snprintf(text, sizeof text,
                 "%s gives a complex slope for value %zu of the state, which is real", name, i);
        return jot_error(JOT_ERR_DTYPE, p->name, text);
    }
    return jot_convert(k, jot_value_dtype(y));
}

void ode_slope(const struct ode_problem *p, jot_value t, const jot_value *y, jot_value *k)
{
    jot_value *in = p->work;
    in[0] = t;
    memcpy(in + 1, y, sizeof *y * p->n);
    memcpy(in + 1 + p->n, p->parameters, sizeof *in * p->n_parameters);
    jot_apply_at(p->f, 1 + p->n + p->n_parameters, in, p->n, k, NULL);
    for (size_t i = 0; i < p->n; i++)
        k[i] = fitting(p, i, k[i], y[i]);
}

// h sum_j weight[j] k[j], of value i of the state; slopes of a stage stand together.
static jot_value combined(const struct ode_problem *p, jot_value h, int n_stages,
                          const double *weight, const jot_value *k, size_t i)
{
    jot_value sum = {0, 0};
    bool is_begun = false;
    for (int j = 0; j < n_stages; j++) {
        if (weight[j] == 0)
            continue;
        jot_value term = mul(num(weight[j]), k[(size_t)j * p->n + i]);
        sum = is_begun ? add(sum, term) : term;
        is_begun = true;
    }
    if (!is_begun)
        return jot_zeros_like(k[i]);
    return mul(ode_as_part(h, sum), sum);
}

static void explicit_step(const struct ode_problem *p, jot_value t, jot_value h,
                          const jot_value *y, const jot_value *k, jot_value *next,
                          jot_value *next_k, jot_value *error)
{
    const struct ode_method *m = p->method;
    jot_value *point = p->work + 1 + p->n + p->n_parameters, *slopes = point + p->n;
    memcpy(slopes, k, sizeof *k * p->n);
    // The last stage that is the slope at the next point is for the error and for the step
    // after.
    int needed = m->stages - (m->ends_with_slope && !next_k && !error);
    for (int stage = 1; stage < needed; stage++) {
        for (size_t i = 0; i < p->n; i++)
            point[i] = add(y[i], combined(p, h, stage, m->a[stage], slopes, i));
        ode_slope(p, add(t, mul(num(m->c[stage]), h)), point, slopes + (size_t)stage * p->n);
    }
    for (size_t i = 0; i < p->n; i++)
        next[i] = add(y[i], combined(p, h, needed, m->b, slopes, i));
    for (size_t i = 0; error && i < p->n; i++)
        error[i] = combined(p, h, needed, m->error, slopes, i);
    if (next_k && m->ends_with_slope)
        memcpy(next_k, slopes + (size_t)(needed - 1) * p->n, sizeof *k * p->n);
}

static jot_value moved(jot_value x, jot_value h, jot_value slope)
{
    return add(x, mul(ode_as_part(h, x), slope));
}

// Positions x, the first half of the state, with x' = f(v), and velocities v with v' = g(x).
// Of each slope one half is used; the other one is not computed.
static void symplectic_step(const struct ode_problem *p, jot_value t, jot_value h,
                            const jot_value *y, const jot_value *k, jot_value *next,
                            jot_value *next_k)
{
    size_t half = p->n / 2;
    bool is_leapfrog = p->method->stages == 2;
    jot_value part = is_leapfrog ? mul(num(0.5), h) : h;
    jot_value *point = p->work + 1 + p->n + p->n_parameters, *slope = point + p->n;
    memcpy(point, y, sizeof *y * p->n);
    for (size_t i = half; i < p->n; i++)
        point[i] = moved(y[i], part, k[i]);
    ode_slope(p, is_leapfrog ? add(t, part) : t, point, slope);
    for (size_t i = 0; i < half; i++)
        point[i] = moved(y[i], h, slope[i]);
    if (is_leapfrog) {
        ode_slope(p, add(t, h), point, slope);
        for (size_t i = half; i < p->n; i++)
            point[i] = moved(point[i], part, slope[i]);
        if (next_k)
            memcpy(next_k, slope, sizeof *k * p->n);
    }
    memcpy(next, point, sizeof *y * p->n);
}

jot_value ode_step(const struct ode_problem *p, jot_value t, jot_value h, const jot_value *y,
                   const jot_value *k, jot_value *next, jot_value *next_k, jot_value *error)
{
    jot_value worked = jot_from_bool(true);
    switch (p->method->kind) {
    case ODE_EXPLICIT:
        explicit_step(p, t, h, y, k, next, next_k, error);
        break;
    case ODE_DIAGONAL:
        worked = ode_diagonal_step(p, t, h, y, k, next, next_k, error);
        break;
    case ODE_ROSENBROCK:
        worked = ode_rosenbrock_step(p, t, h, y, k, next, error);
        break;
    case ODE_SYMPLECTIC:
        symplectic_step(p, t, h, y, k, next, next_k);
        break;
    }
    if (next_k && !p->method->ends_with_slope)
        ode_slope(p, add(t, h), next, next_k);
    return worked;
}
