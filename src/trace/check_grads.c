// SPDX-License-Identifier: Apache-2.0
// Derivatives against central differences, along one random direction, so that the cost does not
// depend on the number of arguments.
//
// Forward: jvp(f) at x in the direction t against (f(x + e t) - f(x - e t)) / 2e.  Reverse: for a
// random cotangent c, <c, J t> against <vjp(c), t>.  Higher orders are the same for jvp(f) and
// vjp(f) themselves.
#include "base/dtype.h"
#include "base/memory.h"
#include "base/status.h"
#include "runtime/array.h"
#include "trace/function.h"

#include "jot/compile.h"

#include <math.h>

struct list {
    size_t n;
    jot_array **at;
};

struct checker {
    double tolerance;
    unsigned modes;
    uint64_t state; // of the generator: the same directions every time
};

static double next_number(struct checker *c)
{
    c->state = c->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(int64_t)(hash_mix(c->state) >> 11) * 0x1p-52 - 1;
}

static bool is_moving(const jot_array *a) { return dtype_is_inexact((jot_dtype)a->dtype); }

// Elements as doubles; complex ones are two.
static size_t n_parts(const jot_array *a)
{
    return a->size * (dtype_is_complex((jot_dtype)a->dtype) ? 2 : 1);
}

static double get_part(const jot_array *a, size_t i)
{
    switch (dtype_real((jot_dtype)a->dtype)) {
    case JOT_F64:
        return ((const double *)a->data)[i];
    case JOT_F32:
        return ((const float *)a->data)[i];
    case JOT_F16:
        return dtype_f16_to_f32(((const uint16_t *)a->data)[i]);
    default:
        return dtype_bf16_to_f32(((const uint16_t *)a->data)[i]);
    }
}

static void set_part(jot_array *a, size_t i, double x)
{
    switch (dtype_real((jot_dtype)a->dtype)) {
    case JOT_F64:
        ((double *)a->data)[i] = x;
        break;
    case JOT_F32:
        ((float *)a->data)[i] = (float)x;
        break;
    case JOT_F16:
        ((uint16_t *)a->data)[i] = dtype_f16_from_f64(x);
        break;
    default:
        ((uint16_t *)a->data)[i] = dtype_bf16_from_f64(x);
        break;
    }
}

static jot_array *like(const jot_array *a)
{
    jot_array *r = rt_array_create((jot_dtype)a->dtype, a->rank, a->dims);
    if (r && r->bytes)
        memset(r->data, 0, r->bytes);
    return r;
}

// a + s b, or a itself where nothing moves.
static jot_array *moved(jot_array *a, double s, const jot_array *b)
{
    if (!is_moving(a))
        return jot_array_retain(a);
    jot_array *r = like(a);
    for (size_t i = 0; r && i < n_parts(a); i++)
        set_part(r, i, get_part(a, i) + s * get_part(b, i));
    return r;
}

static jot_array *random_like(struct checker *c, const jot_array *a)
{
    jot_array *r = like(a);
    for (size_t i = 0; r && is_moving(a) && i < n_parts(a); i++)
        set_part(r, i, next_number(c));
    return r;
}

static void release_list(struct list *l)
{
    if (l->at)
        jot_arrays_release(l->n, l->at);
    memory_release(l->at);
    l->at = NULL;
}

static jot_status make_list(size_t n, struct list *out)
{
    out->n = n;
    out->at = memory_allocate_zeroed((n + 1) * sizeof *out->at);
    return out->at ? JOT_OK : status_out_of_memory();
}

static jot_status check_list(const struct list *l)
{
    for (size_t i = 0; i < l->n; i++)
        if (!l->at[i])
            return status_out_of_memory();
    return JOT_OK;
}

static jot_status random_list(struct checker *c, size_t n, jot_array *const *at,
                              struct list *out)
{
    JOT_TRY(make_list(n, out));
    for (size_t i = 0; i < n; i++)
        out->at[i] = random_like(c, at[i]);
    return check_list(out);
}

// Numbers are compared on the host.
static jot_status bring_here(struct list *l)
{
    for (size_t i = 0; i < l->n; i++) {
        jot_array *here = jot_array_to(l->at[i], jot_host());
        if (!here)
            return status_last();
        jot_array_release(l->at[i]);
        l->at[i] = here;
    }
    return JOT_OK;
}

static jot_status call(jot_function f, size_t n, jot_array *const *in, struct list *out)
{
    jot_executable *e = jot_jit_with(f, NULL);
    if (!e)
        return status_last();
    jot_status status = make_list((size_t)function_out(&f, f.n_transforms), out);
    if (status == JOT_OK)
        status = jot_call_list(e, n, in, out->n, out->at);
    if (status == JOT_OK)
        status = bring_here(out);
    jot_executable_release(e);
    return status;
}

static jot_status call_joined(jot_function f, size_t n, jot_array *const *a, size_t m,
                              jot_array *const *b, struct list *out)
{
    jot_array **all = memory_allocate((n + m + 1) * sizeof *all);
    if (!all)
        return status_out_of_memory();
    memcpy(all, a, n * sizeof *all);
    memcpy(all + n, b, m * sizeof *all);
    jot_status status = call(f, n + m, all, out);
    memory_release(all);
    return status;
}

static jot_status call_moved(jot_function f, size_t n, jot_array *const *at, double s,
                             const struct list *t, struct list *out)
{
    struct list x = {0};
    jot_status status = make_list(n, &x);
    for (size_t i = 0; status == JOT_OK && i < n; i++)
        x.at[i] = moved(at[i], s, t->at[i]);
    if (status == JOT_OK)
        status = check_list(&x);
    if (status == JOT_OK)
        status = call(f, n, x.at, out);
    release_list(&x);
    return status;
}

// ---------------------------------------------------------------------------------------
// Comparing

static double tolerance_of(const struct checker *c, jot_dtype d)
{
    if (c->tolerance > 0)
        return c->tolerance;
    switch (dtype_real(d)) {
    case JOT_F64:
        return 1e-5;
    case JOT_F32:
        return 2e-3;
    case JOT_F16:
        return 1e-2;
    default:
        return 1e-1;
    }
}

// The step that balances the error of the difference against that of rounding.
static double step_of(size_t n, jot_array *const *at)
{
    double step = 1e-4;
    for (size_t i = 0; i < n; i++) {
        jot_dtype d = dtype_real((jot_dtype)at[i]->dtype);
        if (is_moving(at[i]) && d != JOT_F64)
            step = fmax(step, d == JOT_F32 ? 1e-2 : 1e-1);
    }
    return step;
}

// The real inner product with conjugation; over what moves.
static double inner(size_t n, jot_array *const *a, jot_array *const *b)
{
    double sum = 0;
    for (size_t k = 0; k < n; k++)
        for (size_t i = 0; is_moving(a[k]) && i < n_parts(a[k]); i++)
            sum += get_part(a[k], i) * get_part(b[k], i);
    return sum;
}

static jot_status compare_forward(const struct checker *c, double step, const struct list *up,
                                  const struct list *down, jot_array *const *dy)
{
    for (size_t k = 0; k < up->n; k++) {
        const jot_array *u = up->at[k], *d = down->at[k];
        if (!is_moving(u))
            continue;
        double worst = 0, at_worst[2] = {0}, size = 1;
        for (size_t i = 0; i < n_parts(u); i++) {
            double difference = (get_part(u, i) - get_part(d, i)) / (2 * step);
            double tangent = get_part(dy[k], i), error = fabs(difference - tangent);
            size = fmax(size, fabs(tangent));
            if (!(error <= worst)) {
                worst = error;
                at_worst[0] = tangent;
                at_worst[1] = difference;
            }
        }
        if (!(worst <= size * tolerance_of(c, (jot_dtype)u->dtype)))
            return status_fail(
                JOT_ERR_ARGUMENT,
                "jot_check_grads: result %zu: the tangent is %.9g, the difference "
                "%.9g",
                k, at_worst[0], at_worst[1]);
    }
    return JOT_OK;
}

static jot_status check_forward(struct checker *c, jot_function f, size_t n,
                                jot_array *const *at, const struct list *t,
                                const struct list *jvp)
{
    double step = step_of(n, at);
    struct list up = {0}, down = {0};
    jot_status status = call_moved(f, n, at, step, t, &up);
    if (status == JOT_OK)
        status = call_moved(f, n, at, -step, t, &down);
    if (status == JOT_OK)
        status = compare_forward(c, step, &up, &down, jvp->at + up.n);
    release_list(&up);
    release_list(&down);
    return status;
}

// Cotangents are those of C-linear maps, so one of the two is conjugated.
static void conjugate(const struct list *l)
{
    for (size_t k = 0; k < l->n; k++)
        if (dtype_is_complex((jot_dtype)l->at[k]->dtype))
            for (size_t i = 1; i < n_parts(l->at[k]); i += 2)
                set_part(l->at[k], i, -get_part(l->at[k], i));
}

static bool all_move(size_t n, jot_array *const *at)
{
    for (size_t i = 0; i < n; i++)
        if (!is_moving(at[i]))
            return false;
    return true;
}

#define MOST_ORDER 8 // each doubles the numbers of a call

static jot_function moving_vjp(jot_function f, size_t n, jot_array *const *at)
{
    int *args = NULL, count = 0;
    if (!all_move(n, at))
        args = memory_allocate(((size_t)f.callee.n_args + 1) * sizeof *args);
    if (!args)
        return jot_vjp_of(f, "jot_check_grads", NULL);
    for (int arg = 0; arg < f.callee.n_args; arg++) {
        int leaf = callee_first(&f.callee, arg);
        if (leaf < (int)n && is_moving(at[leaf]))
            args[count++] = arg;
    }
    args[count] = JOT_END;
    jot_function vjp = jot_vjp_of(f, "jot_check_grads", args);
    memory_release(args);
    return vjp;
}

static jot_status check_reverse(struct checker *c, jot_function f, size_t n,
                                jot_array *const *at, const struct list *t,
                                const struct list *jvp)
{
    size_t n_out = jvp->n / 2;
    // The arguments that a transform has added have no numbers, so they cannot be left out.
    if (f.n_transforms && !all_move(n, at))
        return JOT_OK;
    struct list ct = {0}, back = {0}, moving = {0};
    jot_status status = random_list(c, n_out, jvp->at, &ct);
    if (status == JOT_OK)
        status = call_joined(moving_vjp(f, n, at), n, at, n_out, ct.at, &back);
    if (status == JOT_OK)
        status = make_list(n, &moving);
    if (status == JOT_OK) {
        size_t m = 0;
        for (size_t i = 0; i < n; i++)
            if (is_moving(at[i]))
                moving.at[m++] = jot_array_retain(t->at[i]);
        moving.n = m;
        conjugate(&ct);
        double left = inner(n_out, ct.at, jvp->at + n_out);
        struct list gradients = {.n = m, .at = back.at + n_out};
        conjugate(&gradients);
        double right = inner(m, gradients.at, moving.at);
        double bound = tolerance_of(c, (jot_dtype)jvp->at[0]->dtype) * fmax(1, fabs(left));
        if (!(fabs(left - right) <= bound))
            status = status_fail(JOT_ERR_ARGUMENT,
                                 "jot_check_grads: reverse mode gives %.9g, forward mode %.9g",
                                 right, left);
    }
    release_list(&ct);
    release_list(&back);
    release_list(&moving);
    return status;
}

static jot_status check_order(struct checker *c, jot_function f, size_t n, jot_array *const *at,
                              int order)
{
    struct list t = {0}, jvp = {0};
    jot_function forward = jot_jvp_of(f, "jot_check_grads", NULL);
    jot_status status = random_list(c, n, at, &t);
    if (status == JOT_OK)
        status = call_joined(forward, n, at, n, t.at, &jvp);
    if (status == JOT_OK && c->modes & JOT_FORWARD)
        status = check_forward(c, f, n, at, &t, &jvp);
    if (status == JOT_OK && c->modes & JOT_REVERSE)
        status = check_reverse(c, f, n, at, &t, &jvp);
    if (status == JOT_OK && order > 1) {
        // The derivatives of what the first order gave, in the same arguments.
        size_t all = 2 * n;
        jot_array **both = memory_allocate((all + 1) * sizeof *both);
        if (!both)
            status = status_out_of_memory();
        else {
            memcpy(both, at, n * sizeof *both);
            memcpy(both + n, t.at, n * sizeof *both);
            status = check_order(c, forward, all, both, order - 1);
        }
        memory_release(both);
    }
    release_list(&t);
    release_list(&jvp);
    return status;
}

jot_status jot_check_grads_list(jot_function f, size_t n, jot_array *const *at, int order,
                                unsigned modes, double tolerance)
{
    const char *problem = function_problem(&f);
    if (problem)
        return status_fail(function_problem_status(&f), "%s", problem);
    if (n && !at)
        return status_fail(JOT_ERR_ARGUMENT, "jot_check_grads: at is NULL");
    if (n != (size_t)function_in(&f, f.n_transforms))
        return status_fail(JOT_ERR_ARGUMENT, "jot_check_grads: %s takes %d arrays, not %zu",
                           f.callee.name, function_in(&f, f.n_transforms), n);
    if (order < 1 || order > MOST_ORDER)
        return status_fail(JOT_ERR_ARGUMENT, "jot_check_grads: order %d: orders are 1 to %d",
                           order, MOST_ORDER);
    if (!modes || modes & ~(unsigned)(JOT_FORWARD | JOT_REVERSE))
        return status_fail(
            JOT_ERR_ARGUMENT,
            "jot_check_grads: the modes are %#x, not JOT_FORWARD, JOT_REVERSE or both", modes);
    for (size_t i = 0; i < n; i++)
        if (!at[i])
            return status_fail(JOT_ERR_ARGUMENT, "jot_check_grads: array %zu is NULL", i);
    struct checker c = {.tolerance = tolerance, .modes = modes, .state = 1};
    struct list here = {0};
    jot_status status = make_list(n, &here);
    for (size_t i = 0; status == JOT_OK && i < n; i++)
        here.at[i] = jot_array_retain(at[i]);
    if (status == JOT_OK)
        status = bring_here(&here);
    if (status == JOT_OK)
        status = check_order(&c, f, n, here.at, order);
    release_list(&here);
    return status;
}
