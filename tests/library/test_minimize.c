// SPDX-License-Identifier: Apache-2.0
// Minima that are known, with their derivatives, compiled, mapped and one after the other.
#include "trace/trace_support.h"

#include <jot/minimize.h>

JOT_STRUCT(point, a, b);

// (a - 1)^2 + k (b - a^2)^2, with the least value 0 at (1, 1).
static jot_value banana_of(struct point p, jot_value k)
{
    jot_value rest = jot_sub(p.b, jot_square(p.a));
    return jot_add(jot_square(jot_sub(p.a, 1)), jot_mul(k, jot_square(rest)));
}

static jot_value banana(struct point p) { return banana_of(p, jot_from(100.0)); }
JOT_FUNCTION(banana_fn, banana, jot_value, struct point);

enum method { LBFGS, NONLINEAR_CG, METHODS, NELDER_MEAD = METHODS };

static jot_search minimize(enum method method, jot_function f, struct point *p, int64_t steps)
{
    switch (method) {
    case LBFGS:
        return jot_lbfgs(f, p, .max_steps = steps);
    case NONLINEAR_CG:
        return jot_nonlinear_cg(f, p, .max_steps = steps);
    default:
        return jot_nelder_mead(f, p, .max_steps = steps);
    }
}

static void find(const jot_value *in, jot_value *out, void *ctx)
{
    struct point p = {in[0], in[1]};
    jot_search m = minimize(*(const enum method *)ctx, banana_fn, &p, 0);
    out[0] = p.a, out[1] = p.b, out[2] = m.value, out[3] = m.gradient, out[4] = m.steps;
}

// Many starts at once, each with its own number of steps.
static void check_banana(enum method method, jot_dtype dtype, double near, double level)
{
    enum { STARTS = 4 };
    const double a[STARTS] = {-1.2, 0, 3, 1}, b[STARTS] = {1, 0, -2, 1};
    const float a32[STARTS] = {-1.2f, 0, 3, 1}, b32[STARTS] = {1, 0, -2, 1};
    bool is_f32 = dtype == JOT_F32;
    jot_array *out[5],
        *in[] = {is_f32 ? jot_array_from(a32, STARTS) : jot_array_from(a, STARTS),
                 is_f32 ? jot_array_from(b32, STARTS) : jot_array_from(b, STARTS)};
    jot_executable *f = jot_jit(jot_vmap(jot_function_make(find, 2, 5, &method)));
    must(jot_call(f, JOT_IN(in), JOT_OUT(out)));
    const double ones[STARTS] = {1, 1, 1, 1}, zeros[STARTS] = {0};
    check_numbers(out[0], STARTS, ones, near);
    check_numbers(out[1], STARTS, ones, near);
    check_numbers(out[2], STARTS, zeros, level);
    check_numbers(out[3], STARTS, zeros, is_f32 ? 1e-4 : 1e-8);
    const int32_t *steps = jot_array_data(out[4]);
    // Only a gradient tells that the last start is the minimum.
    ck_assert_int_eq(steps[3] == 0, method != NELDER_MEAD);
    for (int i = 0; i < 3; i++)
        ck_assert_msg(steps[i] > 5 && steps[i] < 200, "%d steps", steps[i]);
    jot_arrays_release(JOT_OUT(in)), jot_arrays_release(JOT_OUT(out));
    jot_executable_release(f);
}

START_TEST(test_banana)
{
    check_banana((enum method)_i, JOT_F64, 1e-7, 1e-14);
    check_banana((enum method)_i, JOT_F32, 1e-2, 1e-4);
}
END_TEST

// The least value of c . x + log(sum exp x) + k |x|^2 / 2 over 70 numbers is found where no
// matrix of them is made.
struct long_problem {
    enum method method;
    jot_value c, k;
};

static void long_value(const jot_value *in, jot_value *out, void *ctx)
{
    const struct long_problem *p = ctx;
    jot_value square = jot_mul(p->k, jot_sum(jot_square(in[0])));
    out[0] =
        jot_add(jot_dot(p->c, in[0]), jot_add(jot_logsumexp(in[0], 0), jot_mul(0.5, square)));
}

// Out: the gradient of the sum of squares of the minimum in c and k.
static void long_minimum(const jot_value *in, jot_value *out, void *ctx)
{
    struct long_problem *p = jot_trace_memory(sizeof *p);
    *p = (struct long_problem){*(const enum method *)ctx, in[0], in[1]};
    struct {
        jot_value v;
    } x = {jot_zeros_like(in[0])};
    jot_function f = jot_function_make(long_value, 1, 1, p);
    if (p->method == LBFGS)
        jot_lbfgs(f, &x, .tol = 1e-11);
    else
        jot_nonlinear_cg(f, &x, .tol = 1e-11);
    out[0] = jot_sum(jot_square(x.v));
}

START_TEST(test_derivatives_of_a_minimum)
{
    enum { N = 70 };
    double c[N], k = 0.7;
    for (int i = 0; i < N; i++)
        c[i] = sin(3 * i);
    enum method method = (enum method)_i;
    jot_function f = jot_function_make(long_minimum, 2, 1, &method);
    jot_array *in[] = {jot_array_from(c, N), jot_array_from(&k)};
    must(jot_check_grads(f, 1, JOT_FORWARD | JOT_REVERSE, 1e-5, in[0], in[1]));
    jot_arrays_release(JOT_OUT(in));
}
END_TEST

// Residuals of a exp(-b t) and numbers y at times t.
struct decay {
    jot_value t, y;
};

static void decay_residuals(const jot_value *in, jot_value *out, void *ctx)
{
    const struct decay *d = ctx;
    out[0] = jot_sub(jot_mul(in[0], jot_exp(jot_neg(jot_mul(in[1], d->t)))), d->y);
}

struct fit {
    bool is_damped, is_matrix_free;
};

static void fit_decay(const jot_value *in, jot_value *out, void *ctx)
{
    const struct fit *fit = ctx;
    struct decay *d = jot_trace_memory(sizeof *d);
    *d = (struct decay){in[0], in[1]};
    struct point p = {jot_ones(JOT_F64), jot_full(JOT_F64, 0.3)};
    jot_function r = jot_function_make(decay_residuals, 2, 1, d);
    jot_search at =
        fit->is_damped
            ? jot_levenberg_marquardt(r, &p, .tol = 1e-12,
                                      .is_matrix_free = fit->is_matrix_free)
            : jot_gauss_newton(r, &p, .tol = 1e-12, .is_matrix_free = fit->is_matrix_free);
    out[0] = p.a, out[1] = p.b, out[2] = at.steps;
}

static void fitted_rate(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value all[3];
    fit_decay(in, all, ctx);
    out[0] = all[1];
}

// Numbers of two curves at once, and how the rate moves with numbers that no curve has.
START_TEST(test_least_squares)
{
    enum { N = 6 };
    double t[N], y[2][N];
    for (int i = 0; i < N; i++) {
        t[i] = 0.5 * i;
        y[0][i] = 2.5 * exp(-1.3 * t[i]);
        y[1][i] = -4 * exp(-0.2 * t[i]);
    }
    struct fit fit = {_i / 2, _i % 2};
    jot_array *in[] = {jot_array_from(t, N), jot_array_from(y[0], 2, N)}, *out[3];
    jot_function f = jot_function_make(fit_decay, 2, 3, &fit);
    jot_executable *e = jot_jit(jot_vmap(f, JOT_NONE, 0));
    must(jot_call(e, JOT_IN(in), JOT_OUT(out)));
    check_numbers(out[0], 2, (const double[]){2.5, -4}, 1e-9);
    check_numbers(out[1], 2, (const double[]){1.3, 0.2}, 1e-9);
    const int32_t *steps = jot_array_data(out[2]);
    ck_assert_msg(steps[0] < 30 && steps[1] < 30, "%d and %d steps", steps[0], steps[1]);
    y[0][2] += 0.1;
    jot_array *moved = jot_array_from(y[0], N);
    f = jot_function_make(fitted_rate, 2, 1, &fit);
    must(jot_check_grads(f, 1, JOT_FORWARD | JOT_REVERSE, 1e-5, in[0], moved));
    jot_arrays_release(JOT_OUT(in)), jot_arrays_release(JOT_OUT(out)), jot_array_release(moved);
    jot_executable_release(e);
}
END_TEST

// A sum of logarithms, or residuals that are: nothing of a negative number.
static jot_value logarithms(struct point p) { return jot_square(jot_add(jot_log(p.a), p.b)); }
JOT_FUNCTION(logarithms_fn, logarithms, jot_value, struct point);

static struct point same_point(struct point p) { return p; }
JOT_FUNCTION(same_point_fn, same_point, struct point, struct point);

static void lost(const jot_value *in, jot_value *out, void *ctx)
{
    struct point p = {in[0], in[1]};
    jot_search at;
    switch (*(const int *)ctx) {
    case NELDER_MEAD + 1:
        at = jot_levenberg_marquardt(logarithms_fn, &p);
        break;
    case NELDER_MEAD + 2:
        at = jot_gauss_newton(logarithms_fn, &p);
        break;
    case NELDER_MEAD + 3:
        at = jot_projected_gradient(logarithms_fn, same_point_fn, &p);
        break;
    default:
        at = minimize(*(const enum method *)ctx, logarithms_fn, &p, 0);
    }
    out[0] = p.a, out[1] = p.b, out[2] = at.value;
}

START_TEST(test_a_start_without_a_value)
{
    jot_array *in[] = {jot_array_full(JOT_F64, -1), jot_array_full(JOT_F64, 2)}, *out[3];
    jot_executable *f = jot_jit(jot_function_make(lost, 2, 3, &_i));
    must(jot_call(f, JOT_IN(in), JOT_OUT(out)));
    for (int i = 0; i < 3; i++)
        check_numbers(out[i], 1, (const double[]){NAN}, 0);
    jot_arrays_release(JOT_OUT(in)), jot_arrays_release(JOT_OUT(out));
    jot_executable_release(f);
}
END_TEST

static void mistaken(const jot_value *in, jot_value *out, void *ctx)
{
    struct point p = {in[0], *(const bool *)ctx ? jot_astype(in[1], JOT_F32) : in[1]};
    jot_lbfgs(banana_fn, &p, .max_steps = *(const bool *)ctx ? 0 : -1);
    out[0] = p.b;
}

START_TEST(test_mistakes)
{
    static const char *const want[] = {"max_steps is -1: 0 to 2^31 - 1",
                                       "value 1 of x is of f32: all are of f32 or of f64"};
    for (int i = 0; i < 2; i++) {
        bool is_second = i;
        jot_array *in[] = {jot_array_full(JOT_F64, 0), jot_array_full(JOT_F64, 0)}, *out;
        jot_executable *f = jot_jit(jot_function_make(mistaken, 2, 1, &is_second));
        ck_assert_int_eq(jot_call(f, JOT_IN(in), JOT_OUT(out)),
                         i ? JOT_ERR_DTYPE : JOT_ERR_ARGUMENT);
        ck_assert_msg(strstr(jot_error_message(), "test_minimize.c:") &&
                          strstr(jot_error_message(), want[i]),
                      "'%s'", jot_error_message());
        jot_arrays_release(JOT_OUT(in)), jot_executable_release(f);
    }
}
END_TEST

// A start of single precision for numbers of double.
static jot_value doubles(struct point p)
{
    return jot_stack(0, jot_sub(jot_full(JOT_F64, 1), p.a), jot_add(p.a, p.b));
}
JOT_FUNCTION(doubles_fn, doubles, jot_value, struct point);

START_TEST(test_types_that_differ)
{
    jot_scope *scope = jot_scope_open();
    struct point p = {jot_zeros(JOT_F32), jot_zeros(JOT_F32)};
    jot_levenberg_marquardt(doubles_fn, &p);
    ck_assert_int_eq(jot_eval(p.a, NULL), JOT_ERR_DTYPE);
    const char *want =
        "jot_levenberg_marquardt: the start is of f32, what doubles gives of f64";
    ck_assert_msg(strstr(jot_error_message(), want) != NULL, "%s", jot_error_message());
    jot_scope_close(scope);
}
END_TEST

static void add(TCase *t)
{
    tcase_add_loop_test(t, test_banana, 0, METHODS + 1);
    tcase_add_loop_test(t, test_derivatives_of_a_minimum, 0, METHODS);
    tcase_add_loop_test(t, test_least_squares, 0, 4);
    tcase_add_loop_test(t, test_a_start_without_a_value, 0, NELDER_MEAD + 4);
    tcase_add_test(t, test_types_that_differ);
    tcase_add_test(t, test_mistakes);
}

int main(void) { return run_suite("library/minimize", add); }
