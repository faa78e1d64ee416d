// SPDX-License-Identifier: Apache-2.0
// Explicit methods: orders, errors beside tolerances, times, lanes, states of all types,
// refusals.
#include "ode_support.h"

static const struct {
    jot_ode_method method;
    int order, coarse, finer; // steps to each of the times, and how many times as many then
    bool is_adaptive;
} methods[] = {
    {JOT_ODE_EULER, 1, 64, 4, false},
    {JOT_ODE_MIDPOINT, 2, 32, 4, true},
    {JOT_ODE_HEUN, 2, 32, 4, true},
    {JOT_ODE_BOSH3, 3, 16, 4, true},
    {JOT_ODE_RK4, 4, 16, 4, false},
    {JOT_ODE_DOPRI5, 5, 4, 16, true},
    {JOT_ODE_TSIT5, 5, 4, 16, true},
    {JOT_ODE_DOPRI8, 8, 2, 4, true},
    {JOT_ODE_IMPLICIT_EULER, 1, 64, 4, false},
    {JOT_ODE_KVAERNO3, 3, 16, 4, true},
    {JOT_ODE_KVAERNO5, 5, 8, 4, true},
    {JOT_ODE_RODAS5P, 5, 8, 4, true},
};
enum { METHODS = sizeof methods / sizeof *methods, TIMES = 6 };

// What the traced functions are to do; they are traced anew for each test.
static jot_ode_options wanted;
static double from, to;

// ---- Orders and tolerances

static jot_value four_rows(jot_value times)
{
    struct four y = four_start();
    wanted.times = times;
    jot_ode_solve_tree(four_fn, jot_from(0), jot_from(1.5), JOT_TREE(y), &wanted, JOT_HERE);
    return jot_stack(-1, y.a, y.b, y.c, y.d);
}

// The largest relative error at some times.
static double four_error(void)
{
    double times[TIMES], y[TIMES][4], most = 0;
    for (int k = 0; k < TIMES; k++)
        times[k] = 1.5 * k / (TIMES - 1);
    jot_array *in = jot_array_from(times, TIMES), *out;
    jot_executable *e = jot_jit(jot_fn(four_rows));
    must(jot_call(e, JOT_IN(in), JOT_OUT(out)));
    must(jot_array_read(out, *y, (size_t)4 * TIMES));
    for (int k = 0; k < TIMES; k++)
        for (int i = 0; i < 4; i++)
            if (!(fabs(y[k][i] / four_exact(i, times[k]) - 1) <= most))
                most = fabs(y[k][i] / four_exact(i, times[k]) - 1);
    jot_array_release(in), jot_array_release(out);
    jot_executable_release(e);
    return most;
}

START_TEST(errors_fall_with_the_order)
{
    // Newton's method has a tolerance, too.
    wanted = (jot_ode_options){
        .method = methods[_i].method, .steps = methods[_i].coarse, .rtol = 1e-12};
    double coarse = four_error();
    wanted.steps *= methods[_i].finer;
    double fine = four_error(), order = log2(coarse / fine) / log2(methods[_i].finer);
    ck_assert_msg(order > methods[_i].order - 0.2 && order < methods[_i].order + 1,
                  "method %d has order %g: %g and %g", (int)methods[_i].method, order, coarse,
                  fine);
}
END_TEST

// At the end and, by shorter steps, at the times before.
START_TEST(tolerances_are_met)
{
    if (!methods[_i].is_adaptive)
        return;
    double least = methods[_i].order < 3 ? 1e-6 : 1e-10, before = 1;
    for (double tolerance = 1e-5; tolerance > least; tolerance /= 100) {
        wanted = (jot_ode_options){
            .method = methods[_i].method, .rtol = tolerance, .most_steps = 100000};
        double error = four_error();
        ck_assert_msg(error < 30 * tolerance, "method %d with tolerance %g is off by %g",
                      (int)methods[_i].method, tolerance, error);
        ck_assert_double_lt(error, before);
        before = error;
    }
}
END_TEST

static jot_value falling(jot_value t, jot_value y)
{
    (void)t;
    return jot_neg(y);
}
// A state beyond the last step that most_steps allows is NaN.
static jot_value beyond(jot_value y)
{
    jot_ode_result r;
    y = jot_ode_solve(jot_fn(falling), 0, 1, y, .times = jot_linspace(JOT_F64, 0, 1, 3),
                      .first_step = 0.1, .longest_step = 0.1, .most_steps = 6, .result = &r);
    return jot_concatenate(0, y, jot_reshape(jot_convert(r.status, JOT_F64), 1));
}

// ---- Directions, statuses, numbers of steps

static jot_value decay(jot_value t, jot_value y) { return jot_sub(jot_cos(t), y); }
static double decay_exact(double t) { return (sin(t) + cos(t)) / 2; }

static jot_value counted(jot_value y)
{
    jot_ode_result r;
    wanted.result = &r;
    jot_ode_solve_tree(jot_fn(decay), jot_from(from), jot_from(to), JOT_TREE(y), &wanted,
                       JOT_HERE);
    return jot_stack(0, y, jot_convert(r.status, JOT_F64), jot_convert(r.accepted, JOT_F64),
                     jot_convert(r.rejected, JOT_F64));
}

START_TEST(time_runs_either_way)
{
    for (int way = 0; way < 2; way++)
        for (int even = 0; even < 2; even++) {
            double out[4];
            from = way ? 2 : -1, to = way ? -1 : 2;
            wanted = (jot_ode_options){.rtol = 1e-9, .steps = even ? 200 : 0};
            run_numbers(jot_fn(counted), 1, (double[]){decay_exact(from)}, 1, 4, out);
            check_near("the end", out[0], decay_exact(to), 1e-7);
            ck_assert_double_eq(out[1], JOT_ODE_DONE);
            ck_assert(even ? out[2] == 200 && out[3] == 0 : out[2] > 10 && out[2] < 200);
        }
}
END_TEST

START_TEST(nothing_happens_in_no_time)
{
    double out[4];
    from = to = 1;
    wanted = (jot_ode_options){0};
    run_numbers(jot_fn(counted), 1, (double[]){3}, 1, 4, out);
    ck_assert(out[0] == 3 && out[1] == JOT_ODE_DONE && out[2] == 0 && out[3] == 0);
}
END_TEST

START_TEST(steps_are_as_long_as_is_said)
{
    double out[4];
    from = 0, to = 10;
    wanted = (jot_ode_options){.first_step = 0.125, .longest_step = 0.125};
    run_numbers(jot_fn(counted), 1, (double[]){0.5}, 1, 4, out);
    ck_assert(out[1] == JOT_ODE_DONE && out[2] == 80 && out[3] == 0);
    wanted.most_steps = 80;
    run_numbers(jot_fn(counted), 1, (double[]){0.5}, 1, 4, out);
    ck_assert(out[1] == JOT_ODE_DONE && out[2] == 80);
    wanted.most_steps = 79;
    run_numbers(jot_fn(counted), 1, (double[]){0.5}, 1, 4, out);
    ck_assert(out[1] == JOT_ODE_MOST_STEPS && out[2] == 79);
    ck_assert_msg(isnan(out[0]), "%g before the end", out[0]);
}
END_TEST

START_TEST(times_that_are_not_reached_are_nan)
{
    double out[4];
    run_numbers(jot_fn(beyond), 1, (double[]){1}, 1, 4, out);
    check_near("at 0", out[0], 1, 0);
    check_near("at 0.5", out[1], exp(-0.5), 1e-6);
    ck_assert(isnan(out[2]) && out[3] == JOT_ODE_MOST_STEPS);
}
END_TEST

// 1 / (1 - t), which has no value at 1.
static jot_value exploding(jot_value t, jot_value y)
{
    (void)t;
    return jot_square(y);
}
static jot_value exploded(jot_value y)
{
    jot_ode_result r;
    y = jot_ode_solve(jot_fn(exploding), 0, 2, y, .result = &r);
    return jot_stack(0, y, jot_convert(r.status, JOT_F64));
}

START_TEST(a_pole_is_reported)
{
    double out[2];
    run_numbers(jot_fn(exploded), 1, (double[]){1}, 1, 2, out);
    ck_assert_msg(out[1] == JOT_ODE_STEP_TOO_SMALL && isnan(out[0]), "%g %g", out[0], out[1]);
}
END_TEST

static jot_value undefined(jot_value t, jot_value y)
{
    (void)t;
    return jot_log(y);
}
static jot_value without_slope(jot_value y)
{
    jot_ode_result r;
    y = jot_ode_solve(jot_fn(undefined), 0, 2, y, .result = &r);
    return jot_stack(0, y, jot_convert(r.status, JOT_F64));
}

START_TEST(a_slope_that_is_not_finite_is_reported)
{
    double out[2];
    run_numbers(jot_fn(without_slope), 1, (double[]){-1}, 1, 2, out);
    ck_assert(isnan(out[0]) && out[1] == JOT_ODE_STEP_TOO_SMALL);
    run_numbers(jot_fn(without_slope), 1, (double[]){0}, 1, 2, out);
    ck_assert(isnan(out[0]) && out[1] == JOT_ODE_STEP_TOO_SMALL);
}
END_TEST

// Before t0, between, at t1, and behind it.
static jot_value outside(jot_value y)
{
    jot_ode_result r;
    y = jot_ode_solve(jot_fn(falling), 0, 1, y, .result = &r,
                      .times = jot_stack(0, -0.5, 0.5, 1.0, 1.5));
    return jot_concatenate(0, y, jot_reshape(jot_convert(r.status, JOT_F64), 1));
}

START_TEST(times_outside_are_nan)
{
    double out[5];
    run_numbers(jot_fn(outside), 1, (double[]){1}, 1, 5, out);
    check_near("at 0.5", out[1], exp(-0.5), 1e-6);
    check_near("at 1", out[2], exp(-1), 1e-6);
    ck_assert(isnan(out[0]) && isnan(out[3]) && out[4] == JOT_ODE_DONE);
}
END_TEST

// Steps that move the state move the time, which has wide spacings in f32: y = t - t0.
static jot_value clock_slope(jot_value t, jot_value y)
{
    (void)t;
    return jot_ones_like(y);
}
static jot_value late(jot_value t0)
{
    jot_ode_result r;
    jot_value y = jot_zeros(JOT_F32), end = jot_add(t0, 0.125);
    jot_ode_options o = wanted;
    o.result = &r;
    jot_ode_solve_tree(jot_fn(clock_slope), t0, end, JOT_TREE(y), &o, JOT_HERE);
    return jot_stack(0, y, jot_convert(r.status, JOT_F32));
}
static jot_value late_f64(jot_value t0)
{
    return jot_convert(late(jot_convert(t0, JOT_F32)), JOT_F64);
}

START_TEST(time_moves_with_the_state)
{
    double out[2];
    wanted = (jot_ode_options){.longest_step = 0.003};
    run_numbers(jot_fn(late_f64), 1, (double[]){10000}, 1, 2, out);
    check_near("at the end", out[0], 0.125, 1e-7);
    ck_assert(out[1] == JOT_ODE_DONE);
    wanted = (jot_ode_options){.first_step = 1e-4};
    run_numbers(jot_fn(late_f64), 1, (double[]){10000}, 1, 2, out);
    ck_assert(isnan(out[0]) && out[1] == JOT_ODE_STEP_TOO_SMALL);
}
END_TEST

// A fast and a slow part: what bounds the steps is that they stay stable.
static jot_value fast(jot_value t, jot_value y)
{
    return jot_mul(-100, jot_sub(y, jot_cos(t)));
}
static jot_value fast_steps(jot_value y)
{
    jot_ode_result r;
    wanted.result = &r;
    jot_ode_solve_tree(jot_fn(fast), jot_from(0), jot_from(10), JOT_TREE(y), &wanted, JOT_HERE);
    return jot_stack(0, y, jot_convert(r.accepted, JOT_F64), jot_convert(r.rejected, JOT_F64));
}

START_TEST(controllers_differ_in_what_they_reject)
{
    double i[3], pi[3], pid[3], most[3];
    wanted = (jot_ode_options){.rtol = 1e-4};
    run_numbers(jot_fn(fast_steps), 1, (double[]){1}, 1, 3, i);
    wanted = (jot_ode_options){.rtol = 1e-4, .norm = JOT_ODE_MAX};
    run_numbers(jot_fn(fast_steps), 1, (double[]){1}, 1, 3, most);
    wanted = (jot_ode_options){.rtol = 1e-4, .p = 0.4, .i = 0.3};
    run_numbers(jot_fn(fast_steps), 1, (double[]){1}, 1, 3, pi);
    wanted = (jot_ode_options){.rtol = 1e-4, .p = 0.2, .i = 0.3, .d = 0.1};
    run_numbers(jot_fn(fast_steps), 1, (double[]){1}, 1, 3, pid);
    ck_assert_msg(pi[2] < i[2] / 4 && pid[2] < i[2], "rejected: I %g, PI %g, PID %g", i[2],
                  pi[2], pid[2]);
    ck_assert(i[1] == most[1] && i[2] == most[2]); // norms of one number
    double exact = (1e4 * cos(10) + 100 * sin(10)) / 10001;
    check_near("PI", pi[0], exact, 1e-3), check_near("I", i[0], exact, 1e-3);
    check_near("PID", pid[0], exact, 1e-3);
}
END_TEST

// The largest of many errors is more than their mean.
static jot_value one_of_many(jot_value t, jot_value y)
{
    jot_value moves = jot_convert(jot_equal(jot_arange(JOT_I32, 100), 0), JOT_F64);
    return jot_mul(moves, jot_mul(jot_cos(t), y));
}
static jot_value many_steps(jot_value zero)
{
    jot_ode_result r;
    wanted.result = &r;
    jot_value y = jot_add(zero, jot_ones(JOT_F64, 100));
    jot_ode_solve_tree(jot_fn(one_of_many), jot_from(0), jot_from(10), JOT_TREE(y), &wanted,
                       JOT_HERE);
    return jot_convert(r.accepted, JOT_F64);
}

START_TEST(norms_differ)
{
    double rms, most;
    wanted = (jot_ode_options){.rtol = 1e-8};
    run_numbers(jot_fn(many_steps), 1, (double[]){0}, 1, 1, &rms);
    wanted = (jot_ode_options){.rtol = 1e-8, .norm = JOT_ODE_MAX};
    run_numbers(jot_fn(many_steps), 1, (double[]){0}, 1, 1, &most);
    // The mean of squares is a hundredth: steps are 10^(1/5) times as long.
    check_near("steps", most / rms, pow(10, 0.2), 0.1);
}
END_TEST

// ---- Types

struct mixed {
    jot_value z, m, s;
};
static struct mixed turning(jot_value t, struct mixed y)
{
    (void)t;
    return (struct mixed){jot_mul(jot_from_complex(0, 1), y.z), jot_neg(y.m), jot_sum(y.m)};
}
JOT_FUNCTION(turning_fn, turning, struct mixed, jot_value, struct mixed);

static jot_value steeper(jot_value t, jot_value y)
{
    (void)t;
    return jot_mul(-10, y);
}

START_TEST(states_have_their_types)
{
    jot_scope *scope = jot_scope_open();
    const jot_dtype complexes[] = {JOT_C64, JOT_C128}, reals[] = {JOT_F32, JOT_F64};
    for (int wide = 0; wide < 2; wide++) {
        double bound = wide ? 1e-8 : 1e-4;
        struct mixed y = {jot_ones(complexes[wide]), jot_ones(reals[wide], 2, 3), jot_from(0)};
        y = jot_ode_solve(turning_fn, 0, 1, y, .rtol = wide ? 1e-10 : 1e-6);
        CHECK_TYPE(y.z, wide ? "c128" : "c64");
        CHECK_TYPE(y.m, wide ? "f64[2,3]" : "f32[2,3]");
        CHECK_TYPE(y.s, wide ? "f64" : "f32");
        CHECK(jot_convert(jot_real(y.z), JOT_F64), bound, cos(1));
        CHECK(jot_convert(jot_imag(y.z), JOT_F64), bound, sin(1));
        CHECK(jot_convert(jot_take(jot_take(y.m, 1), 2), JOT_F64), bound, exp(-1));
        CHECK(jot_convert(y.s, JOT_F64), bound, 6 * (1 - exp(-1)));
    }
    jot_value half = jot_ones(JOT_F16);
    half = jot_ode_solve(jot_fn(decay), 0, 1, half, .rtol = 1e-2);
    CHECK_TYPE(half, "f16");
    CHECK(jot_convert(half, JOT_F64), 1e-2, decay_exact(1) + 0.5 * exp(-1));
    // A speed beyond the largest half.
    jot_value steep = jot_ode_solve(jot_fn(steeper), 0, 0.5, jot_ones(JOT_F16));
    CHECK(jot_convert(steep, JOT_F64), 2e-3, exp(-5));
    // Numbers become floats as wide as the slopes.
    jot_value whole = jot_ode_solve(jot_fn(falling), 0, 1, jot_from(2));
    CHECK_TYPE(whole, "f32");
    CHECK(jot_convert(whole, JOT_F64), 1e-3, 2 * exp(-1));
    whole = jot_ode_solve(jot_fn(decay), jot_zeros(JOT_F64), 1, jot_from(2));
    CHECK_TYPE(whole, "f64");
    // Time is as wide as the wider of itself and the state.
    jot_value narrow = jot_ones(JOT_F32);
    narrow = jot_ode_solve(jot_fn(decay), jot_zeros(JOT_F64), 1, narrow);
    CHECK_TYPE(narrow, "f32");
    CHECK(jot_convert(narrow, JOT_F64), 1e-5, decay_exact(1) + 0.5 * exp(-1));
    jot_scope_close(scope);
}
END_TEST

// ---- Lanes

static jot_value lane(jot_value rate)
{
    struct four y = four_start();
    jot_value end = jot_mul(1.5, rate);
    return jot_ode_solve(four_fn, 0, end, y, .rtol = 1e-8).b;
}

START_TEST(an_ensemble_is_one_loop_in_one_kernel)
{
    enum { LANES = 100 };
    double rates[LANES], ends[LANES];
    for (int i = 0; i < LANES; i++)
        rates[i] = 0.5 + 0.005 * i;
    jot_array *in = jot_array_from(rates, LANES), *out;
    jot_executable *e = jot_jit(jot_vmap(jot_fn(lane)));
    must(jot_call(e, JOT_IN(in), JOT_OUT(out)));
    must(jot_array_read(out, ends, LANES));
    for (int i = 0; i < LANES; i++)
        check_near("a lane", ends[i] / four_exact(1, 1.5 * rates[i]), 1, 1e-6);
    const char *schedule = jot_executable_text(e, "schedule");
    int loops = 0, kernels = 0;
    for (const char *at = schedule; at && (at = strstr(at, "while carry")); at++)
        loops++;
    for (const char *at = schedule; at && (at = strstr(at, "\nkernel ")); at++)
        kernels++;
    // Another one finds the first step.
    ck_assert_msg(!schedule || (loops == 1 && kernels <= 2), "%d loops in %d kernels", loops,
                  kernels);
    jot_array_release(in), jot_array_release(out);
    jot_executable_release(e);
}
END_TEST

// ---- Refusals

static jot_value two_of_one(jot_value t, jot_value y)
{
    (void)t;
    return jot_stack(0, y, y);
}
static jot_value turned(jot_value t, jot_value y)
{
    (void)t;
    return jot_mul(jot_from_complex(0, 1), y);
}

#define REFUSES(status, text, ...)                                                             \
    do {                                                                                       \
        jot_value refused_ = jot_ode_solve(__VA_ARGS__);                                       \
        jot_array *none_ = NULL;                                                               \
        ck_assert_int_eq(jot_eval(refused_, &none_), status);                                  \
        snprintf(want, sizeof want, "%s: jot_ode_solve: %s", JOT_HERE, text);                  \
        CHECK_MESSAGE(want);                                                                   \
    } while (0)

START_TEST(what_is_wrong_is_told)
{
    char want[300];
    jot_scope *scope = jot_scope_open();
    jot_value y = jot_ones(JOT_F64), two = jot_ones(JOT_F64, 2);
    jot_function f = jot_fn(decay);
    REFUSES(JOT_ERR_ARGUMENT, "JOT_ODE_RK4 has no estimate of its error: say how many .steps",
            f, 0, 1, y, .method = JOT_ODE_RK4);
    REFUSES(JOT_ERR_ARGUMENT, "there is no method 99", f, 0, 1, y, .method = 99);
    REFUSES(JOT_ERR_ARGUMENT, "rtol is -1", f, 0, 1, y, .rtol = -1);
    REFUSES(JOT_ERR_ARGUMENT, "atol is nan", f, 0, 1, y, .atol = NAN);
    REFUSES(JOT_ERR_ARGUMENT, "steps is -3", f, 0, 1, y, .steps = -3);
    REFUSES(JOT_ERR_ARGUMENT, "most_steps is 9.22337e+18", f, 0, 1, y, .most_steps = INT64_MAX);
    REFUSES(JOT_ERR_ARGUMENT, "slots is -2", f, 0, 1, y, .slots = -2);
    REFUSES(JOT_ERR_ARGUMENT, "p + i + d is nan", f, 0, 1, y, .p = NAN);
    REFUSES(JOT_ERR_ARGUMENT,
            "JOT_ODE_LEAPFROG goes without the continuous adjoint, which has no velocities", f,
            0, 1, y, .method = JOT_ODE_LEAPFROG, .steps = 4, .adjoint = JOT_ODE_CONTINUOUS);
    REFUSES(JOT_ERR_SHAPE, "times have more or fewer axes than one", f, 0, 1, y, .times = y);
    REFUSES(JOT_ERR_SHAPE, "t0 and t1 are not one number each", f, two, 1, y);
    REFUSES(JOT_ERR_DTYPE, "t0 and t1 are not real", f, 0, jot_from_complex(1, 1), y);
    REFUSES(JOT_ERR_SHAPE,
            "two_of_one gives value 0 of the slope with another shape than the state",
            jot_fn(two_of_one), 0, 1, y);
    REFUSES(JOT_ERR_DTYPE,
            "turned gives a complex slope for value 0 of the state, which is real",
            jot_fn(turned), 0, 1, y);
    jot_scope_close(scope);
}
END_TEST

static void add(TCase *t)
{
    tcase_add_loop_test(t, errors_fall_with_the_order, 0, METHODS);
    tcase_add_loop_test(t, tolerances_are_met, 0, METHODS);
    tcase_add_test(t, time_runs_either_way);
    tcase_add_test(t, nothing_happens_in_no_time);
    tcase_add_test(t, steps_are_as_long_as_is_said);
    tcase_add_test(t, times_that_are_not_reached_are_nan);
    tcase_add_test(t, a_pole_is_reported);
    tcase_add_test(t, a_slope_that_is_not_finite_is_reported);
    tcase_add_test(t, times_outside_are_nan);
    tcase_add_test(t, time_moves_with_the_state);
    tcase_add_test(t, controllers_differ_in_what_they_reject);
    tcase_add_test(t, norms_differ);
    tcase_add_test(t, states_have_their_types);
    tcase_add_test(t, an_ensemble_is_one_loop_in_one_kernel);
    tcase_add_test(t, what_is_wrong_is_told);
}

int main(void) { return run_suite("ode", add); }
