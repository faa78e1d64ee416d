// SPDX-License-Identifier: Apache-2.0
// Projections, minima in convex sets and quadratic programs, whose answers are known, with
// derivatives.
#include "trace/trace_support.h"

#include <jot/minimize.h>

static jot_scope *scope;
static void open_scope(void) { scope = jot_scope_open(); }
static void close_scope(void) { jot_scope_close(scope); }

static jot_value vector(int n, const double *x)
{
    jot_array *a = jot_array_from(x, n);
    jot_value v = jot_from_array(a);
    jot_array_release(a);
    return v;
}
#define VECTOR(...)                                                                            \
    vector((int)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)),                            \
           (const double[]){__VA_ARGS__})

START_TEST(test_projections)
{
    CHECK(jot_project_box(VECTOR(-2, 0.5, 3), -1, 1), 0, -1, 0.5, 1);
    CHECK(jot_project_ball(VECTOR(3, 4), 1), 1e-15, 0.6, 0.8);
    CHECK_EXACT(jot_project_ball(VECTOR(0.3, 0.4), 1), 0.3, 0.4);
    CHECK(jot_project_simplex(VECTOR(0.5, 0.5, -3), 1), 1e-15, 0.5, 0.5, 0);
    CHECK(jot_project_simplex(VECTOR(2, 1.5, 0, 1), 1), 1e-15, 0.75, 0.25, 0, 0);
    CHECK(jot_project_simplex(VECTOR(-1, -1), 3), 1e-15, 1.5, 1.5);
    CHECK(jot_project_l1_ball(VECTOR(2, -1.5, 0.1), 1), 1e-15, 0.75, -0.25, 0);
    CHECK_EXACT(jot_project_l1_ball(VECTOR(0.25, -0.5), 1), 0.25, -0.5);
    check_error(jot_project_simplex(jot_ones(JOT_F32), 1), JOT_ERR_SHAPE,
                "x is no vector with elements");
    jot_value three = VECTOR(1, 2, 3);
    check_error(jot_project_simplex(three, three), JOT_ERR_SHAPE,
                "the total is not one number");
    check_error(jot_project_l1_ball(three, three), JOT_ERR_SHAPE,
                "the radius is not one number");
    check_error(jot_project_ball(three, three), JOT_ERR_SHAPE, "the radius is not one number");
    check_error(jot_project_box(jot_ones(JOT_F64), three, 1), JOT_ERR_SHAPE,
                "low or high have more elements than x");
}
END_TEST

// Squares and sums that f16 does not have.
START_TEST(test_projections_of_half_floats)
{
    jot_value x = jot_convert(VECTOR(3000, 4000), JOT_F16), y = jot_project_ball(x, 500);
    ck_assert_int_eq(jot_value_dtype(y), JOT_F16);
    CHECK_EXACT(jot_convert(y, JOT_F64), 300, 400);
    jot_value many = jot_full(JOT_F16, 60, 2000);
    CHECK_EXACT(jot_convert(jot_max(jot_project_simplex(many, 4000)), JOT_F64), 2);
    CHECK_EXACT(jot_convert(jot_max(jot_project_l1_ball(many, 4000)), JOT_F64), 2);
}
END_TEST

static jot_value simplex_of_three(jot_value x, jot_value weights)
{
    return jot_dot(weights, jot_project_simplex(x, 1));
}

static jot_value ball_of_one(jot_value x, jot_value weights)
{
    return jot_dot(weights, jot_project_ball(x, 1));
}

START_TEST(test_derivatives_of_projections)
{
    const double x[] = {0.9, 0.4, -2}, w[] = {1, -3, 0.5};
    jot_array *in[] = {jot_array_from(x, 3), jot_array_from(w, 3)};
    must(jot_check_grads(jot_fn(simplex_of_three), 2, JOT_FORWARD | JOT_REVERSE, 0, in[0],
                         in[1]));
    must(jot_check_grads(jot_fn(ball_of_one), 2, JOT_FORWARD | JOT_REVERSE, 0, in[0], in[1]));
    jot_arrays_release(JOT_OUT(in));
}
END_TEST

// The point of the simplex that is nearest to c where the axes have weights: x = max(c - theta
// / w, 0).
struct weighted {
    jot_value c, w;
};

static void weighted_square(const jot_value *in, jot_value *out, void *ctx)
{
    const struct weighted *p = ctx;
    out[0] = jot_mul(0.5, jot_dot(p->w, jot_square(jot_sub(in[0], p->c))));
}

static jot_value to_simplex(jot_value x) { return jot_project_simplex(x, 1); }

static jot_value nearest(jot_value c, jot_value w)
{
    struct {
        jot_value v;
    } x = {jot_zeros_like(c)};
    struct weighted *p = jot_trace_memory(sizeof *p);
    *p = (struct weighted){c, w};
    jot_projected_gradient(jot_function_make(weighted_square, 1, 1, p), jot_fn(to_simplex), &x,
                           .tol = 1e-12);
    return x.v;
}

static jot_value nearest_product(jot_value c, jot_value w)
{
    return jot_dot(nearest(c, w), jot_arange(JOT_F64, 3));
}

static jot_value first_of_three(jot_value x) { return jot_take(x, 0, 0); }
static jot_value square_of(jot_value x) { return jot_dot(x, x); }

START_TEST(test_a_projection_that_does_not_fit)
{
    struct {
        jot_value v;
    } x = {VECTOR(1, 2, 3)};
    jot_projected_gradient(jot_fn(square_of), jot_fn(first_of_three), &x);
    ck_assert_int_eq(jot_eval(x.v, NULL), JOT_ERR_SHAPE);
    const char *text = "first_of_three gives value 0 with another shape than x has";
    ck_assert_ptr_nonnull(strstr(jot_error_message(), text));
}
END_TEST

START_TEST(test_projected_gradient)
{
    // theta of the two elements above 0: (0.9 + 0.6 - 1) / (1 / 2 + 1 / 8).
    const double c[] = {0.9, -1, 0.6}, w[] = {2, 1, 8}, theta = 0.5 / (1.0 / 2 + 1.0 / 8);
    jot_array *in[] = {jot_array_from(c, 3), jot_array_from(w, 3)}, *x;
    jot_executable *f = jot_jit(jot_fn(nearest));
    must(jot_call(f, JOT_IN(in), JOT_OUT(x)));
    const double want[] = {0.9 - theta / 2, 0, 0.6 - theta / 8};
    check_numbers(x, 3, want, 1e-11);
    must(jot_check_grads(jot_fn(nearest_product), 1, JOT_FORWARD | JOT_REVERSE, 1e-5, in[0],
                         in[1]));
    jot_arrays_release(JOT_OUT(in)), jot_array_release(x), jot_executable_release(f);
}
END_TEST

// ---------------------------------------------------------------------------------------
// Quadratic programs

struct results {
    jot_value x, y, residual, steps;
};

static struct results program(jot_value p, jot_value q, jot_value a, jot_value low,
                              jot_value high)
{
    jot_quadratic_solution s = jot_quadratic_program(p, q, a, low, high);
    return (struct results){s.x, s.y, s.residual, s.steps};
}
JOT_FUNCTION(program_fn, program, struct results, jot_value, jot_value, jot_value, jot_value,
             jot_value);

static jot_value program_sum(jot_value p, jot_value q, jot_value a, jot_value low,
                             jot_value high)
{
    jot_quadratic_solution s = jot_quadratic_program(p, q, a, low, high);
    return jot_add(jot_sum(jot_square(s.x)), jot_sum(jot_sin(s.y)));
}

static const double p2[] = {4, 1, 1, 2}, q2[] = {1, 1}, a2[] = {1, 1, 1, 0, 0, 1},
                    low2[] = {1, 0, 0}, high2[] = {1, 0.7, 0.7};

// OSQP's first example: x = (0.3, 0.7), y = (-2.9, 0, 0.2).
START_TEST(test_quadratic_program)
{
    jot_array *in[] = {jot_array_from(p2, 2, 2), jot_array_from(q2, 2),
                       jot_array_from(a2, 3, 2), jot_array_from(low2, 3),
                       jot_array_from(high2, 3)};
    jot_array *out[4];
    jot_executable *f = jot_jit(program_fn);
    must(jot_call(f, JOT_IN(in), JOT_OUT(out)));
    check_numbers(out[0], 2, (const double[]){0.3, 0.7}, 1e-14);
    check_numbers(out[1], 3, (const double[]){-2.9, 0, 0.2}, 1e-13);
    ck_assert(jot_array_item(out[2]) <= 1e-8 && jot_array_item(out[3]) < 500);
    jot_arrays_release(JOT_OUT(in)), jot_arrays_release(JOT_OUT(out)),
        jot_executable_release(f);
}
END_TEST

static jot_value program_moved(jot_value p, jot_value q, jot_value a, jot_value move)
{
    jot_value low = jot_add(vector(3, low2), move), high = jot_add(vector(3, high2), move);
    return program_sum(p, q, a, low, high);
}

START_TEST(test_derivatives_of_a_quadratic_program)
{
    const double move[] = {0.05, -0.02, 0.01};
    jot_array *in[] = {jot_array_from(p2, 2, 2), jot_array_from(q2, 2),
                       jot_array_from(a2, 3, 2), jot_array_from(move, 3)};
    must(jot_check_grads(jot_fn(program_moved), 1, JOT_FORWARD | JOT_REVERSE, 1e-5, in[0],
                         in[1], in[2], in[3]));
    jot_arrays_release(JOT_OUT(in));
}
END_TEST

// Many programs with open bounds and more unknowns: the conditions of Karush, Kuhn and Tucker.
START_TEST(test_many_quadratic_programs)
{
    enum { LANES = 5, N = 8, M = 12 };
    static double p[LANES][N][N], q[LANES][N], a[M][N], low[LANES][M], high[LANES][M];
    double half[N][N];
    for (int l = 0; l < LANES; l++) {
        for (int i = 0; i < N * N; i++)
            half[i / N][i % N] = sin(1 + 7 * i + l);
        for (int i = 0; i < N * N; i++)
            for (int k = 0; k < N - 2; k++)
                p[l][i / N][i % N] += half[i / N][k] * half[i % N][k];
        for (int i = 0; i < N; i++)
            q[l][i] = 3 * cos(5 * i + l);
        for (int i = 0; i < M; i++) {
            low[l][i] = i == 3 ? 0.25 : i < N ? -1 - 0.1 * l : -INFINITY;
            high[l][i] = i == 3 ? 0.25 : i < N ? 1 : 0.5;
        }
    }
    for (int i = 0; i < M; i++)
        for (int k = 0; k < N; k++)
            a[i][k] = i < N ? i == k : sin(3 * i * k + 1);
    jot_array *in[] = {jot_array_from(p[0][0], LANES, N, N), jot_array_from(q[0], LANES, N),
                       jot_array_from(a[0], M, N), jot_array_from(low[0], LANES, M),
                       jot_array_from(high[0], LANES, M)};
    jot_array *out[4];
    jot_executable *f = jot_jit(jot_vmap(program_fn, 0, 0, JOT_NONE, 0, 0));
    must(jot_call(f, JOT_IN(in), JOT_OUT(out)));
    const double *x = jot_array_data(out[0]), *y = jot_array_data(out[1]);
    for (int l = 0; l < LANES; l++, x += N, y += M) {
        for (int i = 0; i < N; i++) {
            double left = q[l][i];
            for (int k = 0; k < N; k++)
                left += p[l][i][k] * x[k];
            for (int k = 0; k < M; k++)
                left += a[k][i] * y[k];
            ck_assert_double_le(fabs(left), 1e-10);
        }
        for (int i = 0; i < M; i++) {
            double at = 0;
            for (int k = 0; k < N; k++)
                at += a[i][k] * x[k];
            ck_assert(at >= low[l][i] - 1e-10 && at <= high[l][i] + 1e-10);
            if (y[i] > 1e-10)
                ck_assert_double_eq_tol(at, high[l][i], 1e-10);
            if (y[i] < -1e-10)
                ck_assert_double_eq_tol(at, low[l][i], 1e-10);
        }
    }
    jot_arrays_release(JOT_OUT(in)), jot_arrays_release(JOT_OUT(out)),
        jot_executable_release(f);
}
END_TEST

START_TEST(test_mistakes)
{
    jot_value p = jot_reshape(VECTOR(1, 0, 0, 1), 2, 2), q = VECTOR(1, 1),
              three = VECTOR(1, 2, 3);
    jot_value x = jot_quadratic_program(p, q, p, three, three).x;
    jot_array *a;
    ck_assert_int_eq(jot_eval(x, &a), JOT_ERR_SHAPE);
    ck_assert_ptr_nonnull(strstr(jot_error_message(), "test_convex.c:"));
    ck_assert_ptr_nonnull(strstr(jot_error_message(), "a has a column for each row of p"));
    x = jot_quadratic_program(p, q, p, q, q, .history = 3).x;
    ck_assert_int_eq(jot_eval(x, &a), JOT_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(jot_error_message(), "history is set: it has no such option"));
}
END_TEST

static void add(TCase *t)
{
    tcase_add_checked_fixture(t, open_scope, close_scope);
    tcase_add_test(t, test_projections);
    tcase_add_test(t, test_projections_of_half_floats);
    tcase_add_test(t, test_a_projection_that_does_not_fit);
    tcase_add_test(t, test_derivatives_of_projections);
    tcase_add_test(t, test_projected_gradient);
    tcase_add_test(t, test_quadratic_program);
    tcase_add_test(t, test_derivatives_of_a_quadratic_program);
    tcase_add_test(t, test_many_quadratic_programs);
    tcase_add_test(t, test_mistakes);
}

int main(void) { return run_suite("library/convex", add); }
