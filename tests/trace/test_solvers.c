// SPDX-License-Identifier: Apache-2.0
// Systems whose matrix is a function: solutions, their derivatives beside those of jot_solve, maps.
#include "trace_support.h"

#define DIMS(...) ((const int64_t[]){__VA_ARGS__, JOT_END})

static jot_scope *scope;

static void open_scope(void) { scope = jot_scope_open(); }
static void close_scope(void) { jot_scope_close(scope); }

enum method { CG, BICGSTAB, GMRES, OWN, METHODS };

// What the functions below use besides their arguments.
struct system {
    enum method method;
    jot_value a, scale; // scale: a preconditioner's diagonal, or not set
    int restart;
};

static void times_a(const jot_value *in, jot_value *out, void *ctx)
{
    const struct system *s = ctx;
    out[0] = jot_dot(s->a, in[0]);
}

static void scaled(const jot_value *in, jot_value *out, void *ctx)
{
    const struct system *s = ctx;
    out[0] = jot_mul(s->scale, in[0]);
}

// A solver that has no derivative of its own.
static void solved(const jot_value *in, jot_value *out, void *ctx)
{
    const struct system *s = ctx;
    out[0] = jot_stop_gradient(jot_solve(s->a, in[0]));
}

static void solved_transposed(const jot_value *in, jot_value *out, void *ctx)
{
    const struct system *s = ctx;
    out[0] = jot_stop_gradient(jot_solve(jot_swap_axes(s->a, -1, -2), in[0]));
}

static jot_value solution(struct system *s, jot_value b)
{
    jot_function a = jot_function_make(times_a, 1, 1, s),
                 m = jot_function_make(scaled, 1, 1, s);
    const jot_function *preconditioner = jot_value_failed(s->scale) ? NULL : &m;
    double tol = jot_value_dtype(b) == JOT_F32 || jot_value_dtype(b) == JOT_C64 ? 1e-6 : 1e-13;
    switch (s->method) {
    case CG:
        return jot_cg(a, b, .tol = tol, .preconditioner = preconditioner);
    case BICGSTAB:
        return jot_bicgstab(a, b, .tol = tol, .preconditioner = preconditioner);
    case GMRES:
        return jot_gmres(a, b, .tol = tol, .preconditioner = preconditioner,
                         .restart = s->restart);
    default:
        return jot_linear_solve(a, jot_function_make(solved, 1, 1, s),
                                jot_function_make(solved_transposed, 1, 1, s), b);
    }
}

#define OF(name, m, ...)                                                                       \
    static jot_value name(jot_value a, jot_value b)                                            \
    {                                                                                          \
        struct system s = {.method = m, .a = a, __VA_ARGS__};                                  \
        return solution(&s, b);                                                                \
    }
// The matrix of conjugate gradients stays symmetric when it moves.
static jot_value cg(jot_value a, jot_value b)
{
    jot_value h = jot_mul(0.5, jot_add(a, jot_conj(jot_swap_axes(a, -1, -2))));
    struct system s = {.method = CG, .a = h};
    return solution(&s, b);
}
OF(bicgstab, BICGSTAB, )
OF(gmres, GMRES, )
OF(own, OWN, )
OF(restarted, GMRES, .restart = 3)
static jot_value preconditioned(jot_value a, jot_value b)
{
    struct system s = {
        .method = GMRES, .a = a, .scale = jot_reciprocal(jot_diagonal(a, 0, 0, 1))};
    return solution(&s, b);
}
static jot_value preconditioned_bicgstab(jot_value a, jot_value b)
{
    struct system s = {
        .method = BICGSTAB, .a = a, .scale = jot_reciprocal(jot_diagonal(a, 0, 0, 1))};
    return solution(&s, b);
}

typedef jot_value solver(jot_value a, jot_value b);
static solver *const solvers[] = {
    cg, bicgstab, gmres, own, restarted, preconditioned, preconditioned_bicgstab};
static const char *const names[] = {
    "cg", "bicgstab", "gmres", "own", "restarted", "preconditioned", "preconditioned_bicgstab"};
enum { SOLVERS = 7, N = 4 };

static const jot_dtype dtypes[] = {JOT_F32, JOT_F64, JOT_C64, JOT_C128};

// Random numbers in (-1, 1).
static jot_value draw(jot_dtype d, const int64_t *dims, uint64_t seed)
{
    jot_value key = jot_random_key(seed), re = jot_random_uniform_dims(key, JOT_F64, dims);
    jot_value im = jot_random_uniform_dims(jot_random_fold_in(key, 1), JOT_F64, dims);
    bool is_complex = d == JOT_C64 || d == JOT_C128;
    re = jot_sub(jot_mul(2, re), 1);
    im = jot_sub(jot_mul(2, im), 1);
    return jot_convert(is_complex ? jot_complex(re, im) : re, d);
}

// Far from singular, and for cg positive definite.
static jot_value matrix(jot_dtype d, const int64_t *dims, uint64_t seed)
{
    jot_value x = draw(d, dims, seed);
    jot_value h = jot_add(x, jot_conj(jot_swap_axes(x, -1, -2)));
    return jot_add(h, jot_mul(2.0 * N, jot_eye(d, N, N)));
}

static jot_value skewed(jot_value a, uint64_t seed)
{
    return jot_add(a, draw(jot_value_dtype(a), DIMS(N, N), seed));
}

static void check_close(const char *what, jot_value x, jot_value y, double bound)
{
    jot_array *a = NULL;
    double most;
    must(jot_eval(jot_max(jot_abs(jot_convert(jot_sub(x, y), JOT_C128))), &a));
    must(jot_array_copy_out(a, JOT_F64, &most, 1));
    ck_assert_msg(most <= bound, "%s is off by %g, more than %g", what, most, bound);
    jot_array_release(a);
}

START_TEST(solutions_are_those_of_solve)
{
    solver *f = solvers[_i];
    for (int d = _i < 3 ? 0 : 1; d < 4; d += _i < 3 ? 1 : 2) {
        double bound = d % 2 ? 1e-12 : 1e-5;
        jot_value a = matrix(dtypes[d], DIMS(N, N), 1), b = draw(dtypes[d], DIMS(N), 2);
        if (f != cg)
            a = skewed(a, 3);
        check_close(names[_i], f(a, b), jot_solve(a, b), bound);
        check_close("of zero", f(a, jot_zeros_like(b)), jot_zeros_like(b), 0);
    }
}
END_TEST

static jot_value weighted(solver *f, jot_value a, jot_value b)
{
    jot_value w = draw(jot_value_dtype(b), DIMS(N), 7);
    return jot_sum(jot_real(jot_mul(w, jot_square(f(a, b)))));
}

static jot_value by_solve(jot_value a, jot_value b) { return jot_solve(a, b); }
static jot_value by_solve_symmetric(jot_value a, jot_value b)
{
    return jot_solve(jot_mul(0.5, jot_add(a, jot_conj(jot_swap_axes(a, -1, -2)))), b);
}

START_TEST(derivatives_are_those_of_solve)
{
    solver *f = solvers[_i], *want = f == cg ? by_solve_symmetric : by_solve;
    for (int d = 1; d < (_i < 3 ? 4 : 2); d += 2) {
        jot_value a = jot_variable(matrix(dtypes[d], DIMS(N, N), 1));
        jot_value b = jot_variable(draw(dtypes[d], DIMS(N), 2));
        jot_value y = weighted(f, a, b), z = weighted(want, a, b);
        check_close("gradient in a", jot_gradient(y, a), jot_gradient(z, a), 1e-11);
        check_close("gradient in b", jot_gradient(y, b), jot_gradient(z, b), 1e-11);
        jot_value da = draw(dtypes[d], DIMS(N, N), 4), db = draw(dtypes[d], DIMS(N), 5);
        check_close("tangent", jot_tangent(f(a, b), a, da), jot_tangent(want(a, b), a, da),
                    1e-11);
        // Of the gradient again: the transposed solve is differentiated.
        y = jot_sum(jot_real(jot_mul(db, jot_gradient(y, b))));
        z = jot_sum(jot_real(jot_mul(db, jot_gradient(z, b))));
        check_close("second derivative", jot_gradient(y, a), jot_gradient(z, a), 1e-10);
    }
}
END_TEST

START_TEST(maps_are_one_at_a_time)
{
    enum { LANES = 3 };
    solver *f = solvers[_i];
    jot_function one = jot_function_plain(names[_i], JOT_HERE, 2, (void (*)(void))f);
    jot_value a = jot_add(matrix(JOT_F64, DIMS(N, N), 1),
                          jot_mul(0.1, matrix(JOT_F64, DIMS(LANES, N, N), 6)));
    jot_value b = draw(JOT_F64, DIMS(LANES, N), 2);
    for (int which = 1; which < (_i < 3 ? 4 : 2); which++) {
        bool maps_a = which & 1, maps_b = which & 2;
        jot_value in[] = {maps_a ? a : jot_take(a, 1), maps_b ? b : jot_take(b, 1)}, y;
        jot_function all = jot_vmap(one, maps_a ? 0 : JOT_NONE, maps_b ? 0 : JOT_NONE);
        jot_apply(all, 2, in, 1, &y);
        for (int i = 0; i < LANES; i++)
            check_close("lane", jot_take(y, i),
                        f(jot_take(a, maps_a ? i : 1), jot_take(b, maps_b ? i : 1)), 1e-12);
    }
}
END_TEST

static jot_value total(jot_value a, jot_value b) { return jot_sum(jot_square(bicgstab(a, b))); }

START_TEST(gradients_in_lanes)
{
    enum { LANES = 3 };
    jot_value a = jot_add(matrix(JOT_F64, DIMS(N, N), 1),
                          jot_mul(0.1, matrix(JOT_F64, DIMS(LANES, N, N), 6)));
    jot_value in[] = {a, draw(JOT_F64, DIMS(N), 2)}, y;
    jot_apply(jot_vmap(jot_grad(jot_fn(total)), 0, JOT_NONE), 2, in, 1, &y);
    for (int i = 0; i < LANES; i++) {
        jot_value one[] = {jot_take(a, i), in[1]}, want;
        jot_apply(jot_grad(jot_fn(total)), 2, one, 1, &want);
        check_close("gradient", jot_take(y, i), want, 1e-11);
    }
}
END_TEST

// Two values of different shapes and types are one vector: a block matrix that mixes them.
static void mixed(const jot_value *in, jot_value *out, void *ctx)
{
    (void)ctx;
    jot_value s = jot_sum(jot_mul(0.1, in[0])), t = jot_sum(jot_mul(0.2, in[1]));
    out[0] = jot_convert(jot_add(jot_mul(3, in[0]), t), JOT_F32);
    out[1] = jot_convert(jot_add(jot_mul(4, in[1]), s), JOT_F64);
}

START_TEST(several_values_are_one_vector)
{
    jot_value want[] = {draw(JOT_F32, DIMS(2, 3), 1), draw(JOT_F64, DIMS(4), 2)}, b[2], x[2];
    jot_function a = jot_function_make(mixed, 2, 2, NULL);
    jot_apply(a, 2, want, 2, b);
    const jot_krylov_options o = {.tol = 1e-7};
    void (*const solvers_of_trees[])(jot_function, size_t, const jot_value *, jot_value *,
                                     const jot_krylov_options *,
                                     const char *) = {jot_bicgstab_tree, jot_gmres_tree};
    for (int i = 0; i < 2; i++) {
        solvers_of_trees[i](a, 2, b, x, &o, JOT_HERE);
        for (int k = 0; k < 2; k++) {
            ck_assert_int_eq(jot_value_dtype(x[k]), jot_value_dtype(want[k]));
            check_close("value", x[k], want[k], 1e-5);
        }
    }
}
END_TEST

static jot_value twice(jot_value x) { return jot_mul(2, x); }
static jot_value four_times(jot_value x) { return jot_mul(4, x); }

static jot_value by_two_and_four(jot_value b)
{
    return jot_stack(0, jot_cg(jot_fn(twice), b), jot_cg(jot_fn(four_times), b));
}

// The second solve is not taken for the first, though nothing that differs is a value.
START_TEST(two_systems_of_constants)
{
    jot_array *b = jot_array_from(((const double[]){4, 8}), 2), *x = NULL;
    jot_executable *e = jot_jit(jot_fn(by_two_and_four));
    must(jot_call(e, JOT_IN(b), JOT_OUT(x)));
    const double want[] = {2, 4, 1, 2};
    for (int i = 0; i < 4; i++)
        ck_assert_double_eq_tol(((const double *)jot_array_data(x))[i], want[i], 1e-14);
    jot_executable_release(e);
    jot_array_release(x);
    jot_array_release(b);
}
END_TEST

START_TEST(a_good_start_takes_no_step)
{
    jot_value a = matrix(JOT_F64, DIMS(N, N), 1), b = draw(JOT_F64, DIMS(N), 2);
    jot_value exact = jot_solve(a, b), y;
    struct system s = {.a = a};
    jot_function f = jot_function_make(times_a, 1, 1, &s);
    y = jot_cg(f, b, .x0 = &exact, .tol = 1e-8);
    check_close("the start", y, exact, 0);
    y = jot_cg(f, jot_zeros_like(b), .x0 = &exact, .max_trips = INT64_MAX);
    check_close("of zero", y, jot_zeros_like(b), 0);
    // One trip from zero goes along b.
    y = jot_cg(f, b, .max_trips = 1);
    jot_value step = jot_div(jot_vdot(b, b), jot_vdot(b, jot_dot(a, b)));
    check_close("a step", y, jot_mul(step, b), 1e-15);
}
END_TEST

static void too_long(const jot_value *in, jot_value *out, void *ctx)
{
    (void)ctx;
    out[0] = jot_concatenate(0, in[0], in[0]);
}

// The message behind the place of the call.
static void check_mistake(jot_value v, jot_status want, const char *message)
{
    jot_array *a = NULL;
    ck_assert_int_eq(jot_eval(v, &a), want);
    size_t have = strlen(jot_error_message()), n = strlen(message);
    ck_assert_msg(have > n && !strcmp(jot_error_message() + have - n, message),
                  "'%s' does not end in '%s'", jot_error_message(), message);
}

START_TEST(mistakes_are_named)
{
    jot_value b = jot_zeros(JOT_F32, 3), two_rows = jot_zeros(JOT_F32, 3, 1);
    jot_function two = jot_function_make(mixed, 2, 2, NULL);
    jot_function longer = jot_function_make(too_long, 1, 1, NULL);
    switch (_i) {
    case 0:
        check_mistake(
            jot_cg(two, b), JOT_ERR_ARGUMENT,
            "jot_cg: jot_linear_solve: mixed takes 2 values and gives 2, but b has 1");
        break;
    case 1:
        check_mistake(
            jot_bicgstab(longer, b), JOT_ERR_SHAPE,
            "jot_linear_solve: too_long gives f32[6] for value 0 of b, which is f32[3]");
        break;
    case 2:
        check_mistake(
            jot_linear_solve(longer, longer, longer, b), JOT_ERR_SHAPE,
            "jot_linear_solve: too_long gives f32[6] for value 0 of b, which is f32[3]");
        break;
    case 3:
        check_mistake(jot_gmres(two, b, .max_trips = -1), JOT_ERR_ARGUMENT,
                      "jot_gmres: -1 trips, 0 directions: neither can be negative");
        break;
    case 4:
        check_mistake(jot_gmres(two, b, .tol = NAN), JOT_ERR_ARGUMENT,
                      "jot_gmres: a tolerance is NaN");
        break;
    case 5:
        check_mistake(jot_cg(jot_function_make(times_a, 1, 1, NULL), b, .x0 = &two_rows),
                      JOT_ERR_SHAPE, "jot_cg: x0 has another shape than b in value 0");
        break;
    case 6:
        check_mistake(jot_cg(longer, jot_zeros(JOT_I32, 3)), JOT_ERR_DTYPE,
                      "jot_cg: jot_linear_solve: b is i32[3]: the equation needs float or "
                      "complex values");
        break;
    }
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_checked_fixture(t, open_scope, close_scope);
    tcase_add_loop_test(t, solutions_are_those_of_solve, 0, SOLVERS);
    tcase_add_loop_test(t, derivatives_are_those_of_solve, 0, SOLVERS);
    tcase_add_loop_test(t, maps_are_one_at_a_time, 0, SOLVERS);
    tcase_add_test(t, gradients_in_lanes);
    tcase_add_test(t, several_values_are_one_vector);
    tcase_add_test(t, a_good_start_takes_no_step);
    tcase_add_test(t, two_systems_of_constants);
    tcase_add_loop_test(t, mistakes_are_named, 0, 7);
}

int main(void) { return run_by_both("solvers", add_tests); }
