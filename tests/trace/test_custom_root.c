// SPDX-License-Identifier: Apache-2.0
// Roots of one's own solvers: values are the solver's, derivatives those of the equation.
#include "trace_support.h"

#define DIMS(...) ((const int64_t[]){__VA_ARGS__, JOT_END})

static jot_scope *scope;

static void open_scope(void) { scope = jot_scope_open(); }
static void close_scope(void) { jot_scope_close(scope); }

static void check_close(const char *what, jot_value x, jot_value y, double bound)
{
    jot_array *a = NULL;
    double most;
    must(jot_eval(jot_max(jot_abs(jot_convert(jot_sub(x, y), JOT_C128))), &a));
    must(jot_array_copy_out(a, JOT_F64, &most, 1));
    ck_assert_msg(most <= bound, "%s is off by %g, more than %g", what, most, bound);
    jot_array_release(a);
}

// ---- The cube root

static jot_value cube_of; // what functions of the root use besides it

static jot_value cube_less(jot_value x) { return jot_sub(jot_integer_pow(x, 3), cube_of); }
static jot_value find_cube_root(jot_value guess)
{
    (void)guess;
    return jot_cbrt(jot_stop_gradient(cube_of));
}

static void by_division(jot_function linear, size_t n, const jot_value *y, jot_value *x,
                        void *ctx)
{
    jot_value one = jot_ones_like(y[0]), slope;
    *(size_t *)ctx += n;
    jot_apply(linear, 1, &one, 1, &slope);
    x[0] = jot_div(y[0], slope);
}

static size_t divisions;

static jot_value cube_root(jot_value a)
{
    cube_of = a;
    return jot_custom_root(jot_fn(cube_less), jot_ones_like(a), jot_fn(find_cube_root),
                           by_division, &divisions);
}

static jot_value cube_root_by_matrix(jot_value a)
{
    cube_of = a;
    return jot_custom_root(jot_fn(cube_less), jot_ones_like(a), jot_fn(find_cube_root), NULL,
                           NULL);
}

static jot_value cbrt_of(jot_value a) { return jot_cbrt(a); }

START_TEST(derivatives_up_to_the_third)
{
    const jot_function want = jot_fn(cbrt_of);
    const jot_function have[] = {jot_fn(cube_root), jot_fn(cube_root_by_matrix)};
    jot_value at = jot_full(JOT_F64, 2.5), y, z;
    divisions = 0;
    for (int i = 0; i < 2; i++) {
        jot_function f = have[i], g = want;
        for (int order = 0; order <= 3; order++) {
            jot_apply(f, 1, &at, 1, &y);
            jot_apply(g, 1, &at, 1, &z);
            check_close("derivative", y, z, order ? 1e-14 : 0);
            f = order % 2 ? jot_grad(f) : jot_jacfwd(f);
            g = order % 2 ? jot_grad(g) : jot_jacfwd(g);
        }
    }
    ck_assert_uint_gt(divisions, 0);
}
END_TEST

START_TEST(maps_are_one_at_a_time)
{
    jot_value a = jot_add(jot_arange(JOT_F64, 4), 0.5), y, z;
    jot_apply(jot_vmap(jot_fn(cube_root)), 1, &a, 1, &y);
    check_close("value", y, jot_cbrt(a), 0);
    jot_apply(jot_vmap(jot_grad(jot_fn(cube_root_by_matrix))), 1, &a, 1, &y);
    jot_apply(jot_vmap(jot_grad(jot_fn(cbrt_of))), 1, &a, 1, &z);
    check_close("gradient", y, z, 1e-14);
}
END_TEST

// ---- A linear system, as two values of different shapes

struct system {
    jot_value a, b; // 5 by 5, and 5
    bool by_gmres;
};

static void split(jot_value v, jot_value *out)
{
    out[0] = jot_slice(v, 0, 0, 2);
    out[1] = jot_reshape(jot_slice(v, 0, 2, 5), 3, 1);
}

static jot_value join(const jot_value *x)
{
    return jot_concatenate(0, x[0], jot_reshape(x[1], 3));
}

static void residual(const jot_value *x, jot_value *out, void *ctx)
{
    const struct system *s = ctx;
    split(jot_sub(jot_matmul(s->a, join(x)), s->b), out);
}

static void solve(const jot_value *guess, jot_value *out, void *ctx)
{
    const struct system *s = ctx;
    (void)guess;
    split(jot_solve(jot_stop_gradient(s->a), jot_stop_gradient(s->b)), out);
}

static void by_gmres(jot_function linear, size_t n, const jot_value *y, jot_value *x, void *ctx)
{
    (void)ctx;
    jot_gmres_tree(linear, n, y, x, &(jot_krylov_options){.tol = 1e-14}, JOT_HERE);
}

static jot_value solution(jot_value a, jot_value b, bool gmres)
{
    struct system s = {a, b, gmres};
    jot_value guess[2], x[2];
    split(jot_zeros_like(b), guess);
    jot_custom_root_tree(jot_function_make(residual, 2, 2, &s), 2, guess,
                         jot_function_make(solve, 2, 2, &s), gmres ? by_gmres : NULL, NULL, x,
                         JOT_HERE);
    return join(x);
}

static jot_value by_matrix_of(jot_value a, jot_value b)
{
    return jot_sum(jot_sin(solution(a, b, false)));
}
static jot_value by_gmres_of(jot_value a, jot_value b)
{
    return jot_sum(jot_sin(solution(a, b, true)));
}
static jot_value by_solve_of(jot_value a, jot_value b)
{
    return jot_sum(jot_sin(jot_solve(a, b)));
}

START_TEST(several_values)
{
    jot_value n = jot_arange(JOT_F64, 25), in[2], y[2], z[2];
    in[0] = jot_add(jot_sin(jot_reshape(n, 5, 5)), jot_mul(4, jot_eye(JOT_F64, 5, 5)));
    in[1] = jot_cos(jot_slice(n, 0, 0, 5));
    const jot_function f[] = {jot_fn(by_matrix_of), jot_fn(by_gmres_of)};
    for (int i = 0; i < 2; i++) {
        jot_apply(jot_grad(f[i], 0, 1), 2, in, 2, y);
        jot_apply(jot_grad(jot_fn(by_solve_of), 0, 1), 2, in, 2, z);
        check_close("gradient in a", y[0], z[0], 1e-12);
        check_close("gradient in b", y[1], z[1], 1e-12);
        jot_apply(jot_jacfwd(f[i], 1), 2, in, 1, y);
        check_close("forward", y[0], z[1], 1e-12);
    }
}
END_TEST

// ---- Roots without derivatives, and messages

static jot_value half_less(jot_value x) { return jot_sub(x, 0.5); }
static jot_value half(jot_value x) { return jot_full_like(x, 0.5); }
static jot_value as_f32(jot_value x) { return jot_astype(x, JOT_F32); }

START_TEST(of_nothing_it_is_a_constant)
{
    jot_value guess = jot_variable(jot_full(JOT_F64, 3));
    jot_value x = jot_custom_root(jot_fn(half_less), guess, jot_fn(half), NULL, NULL);
    check_close("value", x, jot_full(JOT_F64, 0.5), 0);
    check_close("gradient", jot_gradient(x, guess), jot_zeros(JOT_F64), 0);
}
END_TEST

static void check_failure(jot_value v, jot_status status, const char *text)
{
    jot_array *a = NULL;
    ck_assert_int_eq(jot_eval(v, &a), status);
    const char *message = strstr(jot_error_message(), "jot_");
    ck_assert_str_eq(message ? message : jot_error_message(), text);
}

static jot_value of_two(jot_value x, jot_value y) { return jot_add(x, y); }

START_TEST(messages)
{
    jot_value x = jot_zeros(JOT_F64, 3);
    check_failure(
        jot_custom_root(jot_fn(of_two), x, jot_fn(half), NULL, NULL), JOT_ERR_ARGUMENT,
        "jot_custom_root(jot_fn(of_two), x): of_two takes 2 values and gives 1, but the "
        "guess has 1");
    check_failure(
        jot_custom_root(jot_fn(half_less), x, jot_fn(as_f32), NULL, NULL), JOT_ERR_SHAPE,
        "jot_custom_root: as_f32 gives f32[3] for value 0 of the guess, which is f64[3]");
    check_failure(
        jot_custom_root(jot_fn(half_less), jot_arange(JOT_I32, 3), jot_fn(half), NULL, NULL),
        JOT_ERR_DTYPE,
        "jot_custom_root(jot_fn(half_less), jot_arange(JOT_I32, 3)): the guess is "
        "i32[3]: it takes floats or complex numbers");
}
END_TEST

static void add(TCase *t)
{
    tcase_add_checked_fixture(t, open_scope, close_scope);
    tcase_add_test(t, derivatives_up_to_the_third);
    tcase_add_test(t, maps_are_one_at_a_time);
    tcase_add_test(t, several_values);
    tcase_add_test(t, of_nothing_it_is_a_constant);
    tcase_add_test(t, messages);
}

int main(void) { return run_by_both("trace/custom_root", add); }
