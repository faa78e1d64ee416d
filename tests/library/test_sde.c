// SPDX-License-Identifier: Apache-2.0
// Stochastic equations and Brownian motion: strong orders on the same paths, moments, keys,
// derivatives; and symplectic methods.
#include "ode_support.h"

enum { PATHS = 400, LEVELS = 12, METHODS = JOT_SDE_SRK + 1 };
static const double MU = 0.6, SIGMA = 0.8;

static jot_value drift(jot_value t, jot_value x)
{
    (void)t;
    return jot_mul(MU, x);
}
static jot_value noise(jot_value t, jot_value x)
{
    (void)t;
    return jot_mul(SIGMA, x);
}

static jot_sde_options wanted;

// ---- Strong orders

// The error at 1 of geometric Brownian motion, whose solution is known from W(1).
// From 1 to 0 as well, where the drift has the other sign.
static double from, to;
static jot_value path_error(jot_value key)
{
    jot_value x = jot_ones(JOT_F64), w = jot_brownian(key, from, to, to, x, LEVELS);
    jot_sde_solve_tree(jot_fn(drift), jot_fn(noise), jot_from(from), jot_from(to), key,
                       JOT_TREE(x), &wanted, JOT_HERE);
    double ito = wanted.method == JOT_SDE_HEUN ? 0 : SIGMA * SIGMA / 2;
    double growth = MU * (to - from) - ito;
    return jot_abs(jot_sub(x, jot_exp(jot_add(growth, jot_mul(SIGMA, w)))));
}

static jot_value mean_error(jot_value seed)
{
    jot_value keys = jot_random_split(jot_random_key(jot_convert(seed, JOT_I32)), PATHS), e;
    JOT_VMAP ((keys), (e)) {
        e = path_error(keys);
    }
    return jot_mean(e);
}

START_TEST(paths_converge_with_the_strong_order)
{
    static const double order[] = {0.5, 1, 1, 1};
    double coarse, fine;
    int method = _i % METHODS;
    from = _i < METHODS ? 0 : 1, to = 1 - from;
    wanted = (jot_sde_options){.method = (jot_sde_method)method, .steps = 16, .tree = LEVELS};
    run_numbers(jot_fn(mean_error), 1, (double[]){1}, 1, 1, &coarse);
    wanted.steps = 256;
    run_numbers(jot_fn(mean_error), 1, (double[]){1}, 1, 1, &fine);
    check_near("the order", log2(coarse / fine) / 4, order[method], 0.12);
}
END_TEST

// ---- Brownian motion

static jot_value brownian_rows(jot_value seed)
{
    jot_value keys = jot_random_split(jot_random_key(jot_convert(seed, JOT_I32)), 4000), w[3];
    jot_value like = jot_zeros(JOT_F64);
    JOT_VMAP ((keys), (w)) {
        w[0] = jot_brownian(keys, 1, 3, 1.0, like, 8);
        w[1] = jot_brownian(keys, 1, 3, 1.5, like, 8);
        w[2] = jot_brownian(keys, 1, 3, 3.0, like, 8);
    }
    jot_value later = jot_sub(w[2], w[1]);
    return jot_stack(0, jot_max(jot_abs(w[0])), jot_mean(w[1]), jot_var(w[1]), jot_var(later),
                     jot_mean(jot_mul(w[1], later)), jot_var(w[2]));
}

START_TEST(increments_are_normal_and_independent)
{
    double m[6];
    run_numbers(jot_fn(brownian_rows), 1, (double[]){3}, 1, 6, m);
    // Four standard deviations of means over 4000 paths.
    check_near("at the begin", m[0], 0, 0), check_near("mean", m[1], 0, 4 * sqrt(0.5 / 4000));
    check_near("variance", m[2], 0.5, 4 * 0.5 * sqrt(2. / 4000));
    check_near("of the rest", m[3], 1.5, 4 * 1.5 * sqrt(2. / 4000));
    check_near("covariance", m[4], 0, 4 * sqrt(0.75 / 4000));
    check_near("at the end", m[5], 2, 4 * 2 * sqrt(2. / 4000));
}
END_TEST

// ---- Paths

struct two {
    jot_value a, b;
};
static struct two two_drift(jot_value t, struct two x, jot_value k)
{
    (void)t;
    return (struct two){jot_mul(k, x.a), jot_neg(x.b)};
}
static struct two two_noise(jot_value t, struct two x, jot_value k)
{
    (void)t, (void)k;
    return (struct two){jot_mul(0.1, x.a), jot_full_like(x.b, 0.2)};
}
JOT_FUNCTION(two_drift_fn, two_drift, struct two, jot_value, struct two, jot_value);
JOT_FUNCTION(two_noise_fn, two_noise, struct two, jot_value, struct two, jot_value);

static struct two two_path(jot_value k)
{
    struct two x = {jot_full_like(k, 1), jot_ones(JOT_F64, 3)};
    wanted.parameters = JOT_PARAMETERS(k);
    jot_sde_solve_tree(two_drift_fn, two_noise_fn, jot_from(0), jot_from(1), jot_random_key(7),
                       JOT_TREE(x), &wanted, JOT_HERE);
    return x;
}
static jot_value two_end(jot_value k)
{
    struct two x = two_path(k);
    return jot_concatenate(0, jot_reshape(x.a, 1), x.b);
}
static jot_value two_rows(jot_value k)
{
    wanted.times = jot_linspace(JOT_F64, 0.25, 1, 4);
    struct two x = two_path(k);
    return jot_concatenate(0, jot_reshape(jot_take(x.a, 3), 1), jot_take(x.b, 3));
}
static jot_value two_first(jot_value k) { return two_path(k).a; }

START_TEST(a_path_is_the_same_whatever_the_steps)
{
    double end[4], rows[4], fine[4];
    for (int tree = 0; tree < 2; tree++) {
        wanted = (jot_sde_options){.steps = 32, .tree = tree ? LEVELS : 0};
        run_numbers(jot_fn(two_end), 1, (double[]){0.5}, 1, 4, end);
        wanted.steps = 8; // to each of four times
        run_numbers(jot_fn(two_rows), 1, (double[]){0.5}, 1, 4, rows);
        wanted = (jot_sde_options){.steps = 1024, .tree = tree ? LEVELS : 0};
        run_numbers(jot_fn(two_end), 1, (double[]){0.5}, 1, 4, fine);
        double most = 0;
        for (int i = 0; i < 4; i++) {
            check_near("by rows", rows[i], end[i], 1e-13);
            most = fmax(most, fabs(fine[i] - end[i]));
        }
        ck_assert_msg(tree ? most < 0.03 : most > 0.03, "moved by %g", most);
        ck_assert(end[1] != end[2] && end[2] != end[3]);
    }
}
END_TEST

START_TEST(derivatives_are_those_of_the_path)
{
    double x, reverse, forward, sides[2], h = 1e-5;
    for (int m = JOT_SDE_EULER_MARUYAMA; m <= JOT_SDE_SRK; m++) {
        wanted = (jot_sde_options){.method = (jot_sde_method)m, .steps = 16, .tree = 4};
        run_numbers(jot_fn(two_first), 1, (double[]){0.5}, 1, 1, &x);
        run_numbers(jot_grad(jot_fn(two_first)), 1, (double[]){0.5}, 1, 1, &reverse);
        run_numbers(jot_jacfwd(jot_fn(two_first)), 1, (double[]){0.5}, 1, 1, &forward);
        for (int i = 0; i < 2; i++)
            run_numbers(jot_fn(two_first), 1, (double[]){0.5 + (i ? -h : h)}, 1, 1, &sides[i]);
        check_near("reverse", reverse, (sides[0] - sides[1]) / (2 * h), 1e-7);
        check_near("forward", forward, reverse, 1e-12);
    }
}
END_TEST

START_TEST(what_is_wrong_is_told)
{
    jot_scope *scope = jot_scope_open();
    jot_value x = jot_ones(JOT_F64), key = jot_random_key(0);
#line 70 "sde.c"
    x = jot_sde_solve(jot_fn(drift), jot_fn(noise), 0, 1, key, x);
    jot_array *none;
    ck_assert_int_eq(jot_eval(x, &none), JOT_ERR_ARGUMENT);
    CHECK_MESSAGE("sde.c:70: jot_sde_solve: say how many .steps");
    jot_scope_close(scope);
    scope = jot_scope_open();
    x = jot_ones(JOT_F64), key = jot_random_key(0);
#line 80 "sde.c"
    x = jot_sde_solve(jot_fn(drift), jot_fn(noise), 0, 1, key, x, .steps = 2, .tree = 31);
    ck_assert_int_eq(jot_eval(x, &none), JOT_ERR_ARGUMENT);
    CHECK_MESSAGE("sde.c:80: jot_sde_solve: tree is not 0 to 30 levels");
    jot_scope_close(scope);
}
END_TEST

// ---- Symplectic methods

// A pendulum: x' = v, v' = -sin x.
static struct two pendulum(jot_value t, struct two s)
{
    (void)t;
    return (struct two){s.b, jot_neg(jot_sin(s.a))};
}
JOT_FUNCTION(pendulum_fn, pendulum, struct two, jot_value, struct two);

static jot_ode_options symplectic;
static double until;

static jot_value pendulum_end(jot_value x)
{
    struct two s = {x, jot_zeros_like(x)};
    jot_ode_solve_tree(pendulum_fn, jot_from(0), jot_from(until), JOT_TREE(s), &symplectic,
                       JOT_HERE);
    jot_value energy = jot_sub(jot_mul(0.5, jot_square(s.b)), jot_cos(s.a));
    return jot_stack(0, s.a, s.b, energy);
}

START_TEST(symplectic_methods_have_their_order_and_keep_the_energy)
{
    double exact[3], coarse[3], fine[3];
    int order = _i == JOT_ODE_LEAPFROG ? 2 : 1;
    until = 10;
    symplectic = (jot_ode_options){.method = JOT_ODE_DOPRI8, .rtol = 1e-12};
    run_numbers(jot_fn(pendulum_end), 1, (double[]){1}, 1, 3, exact);
    symplectic = (jot_ode_options){.method = (jot_ode_method)_i, .steps = 400};
    run_numbers(jot_fn(pendulum_end), 1, (double[]){1}, 1, 3, coarse);
    symplectic.steps = 1600;
    run_numbers(jot_fn(pendulum_end), 1, (double[]){1}, 1, 3, fine);
    check_near("order", log2((coarse[0] - exact[0]) / (fine[0] - exact[0])) / 2, order, 0.1);
    until = 1000; // steps of a tenth
    symplectic.steps = 10000;
    run_numbers(jot_fn(pendulum_end), 1, (double[]){1}, 1, 3, coarse);
    check_near("energy", coarse[2], -cos(1), order == 2 ? 1e-3 : 0.05);
    symplectic = (jot_ode_options){.method = JOT_ODE_HEUN, .steps = 10000};
    run_numbers(jot_fn(pendulum_end), 1, (double[]){1}, 1, 3, coarse);
    ck_assert_double_gt(coarse[2], -cos(1) + 0.05);
}
END_TEST

static void add(TCase *t)
{
    tcase_add_loop_test(t, paths_converge_with_the_strong_order, 0, 2 * METHODS);
    tcase_add_test(t, increments_are_normal_and_independent);
    tcase_add_test(t, a_path_is_the_same_whatever_the_steps);
    tcase_add_test(t, derivatives_are_those_of_the_path);
    tcase_add_test(t, what_is_wrong_is_told);
    tcase_add_loop_test(t, symplectic_methods_have_their_order_and_keep_the_energy,
                        JOT_ODE_SEMI_IMPLICIT_EULER, JOT_ODE_LEAPFROG + 1);
}

int main(void) { return run_suite("sde", add); }
