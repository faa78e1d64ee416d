// SPDX-License-Identifier: Apache-2.0
// Derivatives of solutions in the start, parameters and times: of the steps, forward and
// reverse, and by the continuous adjoint, beside each other and beside formulas.
#include "ode_support.h"

#include "base/memory.h"

// x'' = -k x from (x, 0):  x(t) = x cos(w (t - t0)), w = sqrt(k).
struct swing {
    jot_value x, v;
};
static struct swing swing_slope(jot_value t, struct swing s, jot_value k)
{
    (void)t;
    return (struct swing){s.v, jot_neg(jot_mul(k, s.x))};
}
JOT_FUNCTION(swing_fn, swing_slope, struct swing, jot_value, struct swing, jot_value);

static jot_ode_options wanted;

static jot_value end(jot_value x, jot_value k, jot_value t0, jot_value t1)
{
    struct swing s = {x, jot_zeros_like(x)};
    wanted.parameters = JOT_PARAMETERS(k);
    jot_ode_solve_tree(swing_fn, t0, t1, JOT_TREE(s), &wanted, JOT_HERE);
    return s.x;
}

static const jot_ode_options ways[] = {
    {.rtol = 1e-9},
    {.rtol = 1e-9, .slots = 4},
    {.rtol = 1e-9, .slots = -1},
    {.rtol = 1e-9, .adjoint = JOT_ODE_CONTINUOUS},
    {.method = JOT_ODE_DOPRI8, .rtol = 1e-9},
    {.method = JOT_ODE_RK4, .steps = 400},
    {.method = JOT_ODE_DOPRI5, .steps = 100, .checkpoint = 7},
    {.method = JOT_ODE_RK4, .steps = 400, .adjoint = JOT_ODE_CONTINUOUS},
    {.method = JOT_ODE_KVAERNO5, .rtol = 1e-9},
    {.method = JOT_ODE_RODAS5P, .rtol = 1e-9},
    {.method = JOT_ODE_KVAERNO5, .rtol = 1e-9, .adjoint = JOT_ODE_CONTINUOUS},
};
enum { WAYS = sizeof ways / sizeof *ways, EXPLICIT_WAYS = WAYS - 3 };

START_TEST(derivatives_of_the_end)
{
    const double in[] = {0.7, 1.3, 0.1, 4}, x = in[0], w = sqrt(in[1]), t = in[3] - in[2];
    const double want[] = {cos(w * t), -x * sin(w * t) * t / (2 * w), x * w * sin(w * t),
                           -x * w * sin(w * t)};
    double reverse[4], forward[4];
    wanted = ways[_i];
    run_numbers(jot_grad(jot_fn(end), 0, 1, 2, 3), 4, in, 4, 1, reverse);
    run_numbers(jot_jacfwd(jot_fn(end), 0, 1, 2, 3), 4, in, 4, 1, forward);
    for (int i = 0; i < 4; i++) {
        check_near("reverse", reverse[i], want[i], 2e-7);
        check_near("forward", forward[i], want[i], 2e-7);
    }
}
END_TEST

// A sum over states at times that are an argument.
static jot_value misfit(jot_value x, jot_value k, jot_value first, jot_value last)
{
    struct swing s = {x, jot_zeros_like(x)};
    wanted.parameters = JOT_PARAMETERS(k);
    wanted.times = jot_stack(0, first, jot_mul(0.5, jot_add(first, last)), last);
    jot_ode_solve_tree(swing_fn, jot_from(0), jot_from(5), JOT_TREE(s), &wanted, JOT_HERE);
    return jot_sum(jot_mul(jot_stack(0, 1, 2, 3), jot_square(s.x)));
}

START_TEST(derivatives_of_states_at_times)
{
    const double in[] = {0.7, 1.3, 0.5, 4}, x = in[0], w = sqrt(in[1]);
    const double t[] = {in[2], (in[2] + in[3]) / 2, in[3]};
    double want[4] = {0}, reverse[4], forward[4];
    for (int i = 0; i < 3; i++) {
        double c = cos(w * t[i]), s = sin(w * t[i]), weight = 2 * (i + 1) * x * x * c;
        double in_time = -weight * s * w;
        want[0] += weight * c / x;
        want[1] -= weight * s * t[i] / (2 * w);
        want[2] += in_time * (i == 0 ? 1 : i == 1 ? 0.5 : 0);
        want[3] += in_time * (i == 2 ? 1 : i == 1 ? 0.5 : 0);
    }
    wanted = ways[_i];
    run_numbers(jot_grad(jot_fn(misfit), 0, 1, 2, 3), 4, in, 4, 1, reverse);
    run_numbers(jot_jacfwd(jot_fn(misfit), 0, 1, 2, 3), 4, in, 4, 1, forward);
    for (int i = 0; i < 4; i++) {
        check_near("reverse", reverse[i], want[i], 2e-6);
        check_near("forward", forward[i], want[i], 2e-6);
    }
}
END_TEST

// Parameters of which some have no derivative, and more than one value; y' = -p a + q b.
struct rates {
    jot_value p, n, q;
};
static jot_value weighed(jot_value t, jot_value y, struct rates r)
{
    jot_value power = jot_pow(t, jot_convert(r.n, JOT_F64));
    return jot_add(jot_neg(jot_mul(r.p, y)), jot_mul(power, r.q));
}
JOT_FUNCTION(weighed_fn, weighed, jot_value, jot_value, jot_value, struct rates);

static jot_value weighed_end(jot_value p, jot_value q)
{
    struct rates r = {p, jot_convert(jot_from(2), JOT_I32), jot_stack(0, q, jot_mul(2, q))};
    jot_value y = jot_ones(JOT_F64, 2);
    wanted.parameters = JOT_PARAMETERS(r);
    jot_ode_solve_tree(weighed_fn, jot_from(0), jot_from(1), JOT_TREE(y), &wanted, JOT_HERE);
    return jot_sum(y);
}

START_TEST(derivatives_in_trees_of_parameters)
{
    // y = e^(-p t) + c q I, I = the integral of s^2 e^(-p (1 - s)); c is 1 and 2.
    const double in[] = {0.8, 1.5}, p = in[0], q = in[1], e = exp(-p);
    double integral = 1 / p - 2 / (p * p) + 2 * (1 - e) / (p * p * p);
    double slope =
        -1 / (p * p) + 4 / (p * p * p) + 2 * e / (p * p * p) - 6 * (1 - e) / (p * p * p * p);
    double out[2];
    wanted = ways[_i];
    run_numbers(jot_grad(jot_fn(weighed_end), 0, 1), 2, in, 2, 1, out);
    check_near("in p", out[0], -2 * e + 3 * q * slope, 1e-6);
    check_near("in q", out[1], 3 * integral, 1e-6);
}
END_TEST

// Of lanes, and second derivatives.
static jot_value of_rate(jot_value k)
{
    return end(jot_full_like(k, 1), k, jot_from(0), jot_from(3));
}
static jot_value slope_of_rate(jot_value k) { return JOT_GRAD(of_rate, k); }

START_TEST(lanes_and_second_derivatives)
{
    enum { LANES = 5 };
    double k[LANES] = {0.3, 0.6, 1, 2, 4}, out[LANES];
    jot_array *in = jot_array_from(k, LANES), *result;
    wanted = ways[_i];
    for (int order = 1; order <= 2; order++) {
        jot_function f =
            order == 1 ? jot_grad(jot_fn(of_rate)) : jot_jacfwd(jot_fn(slope_of_rate));
        if (order == 2 && wanted.adjoint == JOT_ODE_CONTINUOUS)
            continue;
        jot_executable *e = jot_jit(jot_vmap(f));
        must(jot_call(e, JOT_IN(in), JOT_OUT(result)));
        must(jot_array_read(result, out, LANES));
        for (int i = 0; i < LANES; i++) {
            double w = sqrt(k[i]), first = -sin(3 * w) * 1.5 / w;
            double second = -2.25 * cos(3 * w) / k[i] + 0.75 * sin(3 * w) / (k[i] * w);
            check_near("a lane", out[i], order == 1 ? first : second, 2e-5);
        }
        jot_array_release(result);
        jot_executable_release(e);
    }
    jot_array_release(in);
}
END_TEST

// y' = -p diag(y^8) y from a first step whose slopes overflow: rejected, it leaves the
// derivative finite.  In products with matrices a zero meets what is infinite.  y = (y0^-8 + 8
// p t)^(-1 / 8).
static jot_value ninth(jot_value t, jot_value y, jot_value p)
{
    (void)t;
    jot_value square = jot_square(y), eighth = jot_square(jot_square(square));
    jot_value matrix = jot_where(jot_eye(JOT_BOOL, 2, 2), eighth, 0);
    return jot_neg(jot_mul(p, jot_matmul(matrix, y)));
}
static jot_value after_overflow(jot_value y, jot_value p)
{
    jot_value two = jot_stack(0, y, y);
    wanted.parameters = JOT_PARAMETERS(p);
    wanted.first_step = 10;
    jot_ode_solve_tree(jot_fn(ninth), jot_from(0), jot_from(10), JOT_TREE(two), &wanted,
                       JOT_HERE);
    return jot_take(two, 0, 0);
}

START_TEST(derivatives_through_steps_that_overflow)
{
    const double in[] = {3, 1}, y = pow(pow(3, -8) + 80, -1. / 8);
    double reverse[2], forward[2];
    wanted = ways[_i];
    if (wanted.steps || wanted.adjoint == JOT_ODE_CONTINUOUS)
        return;
    run_numbers(jot_grad(jot_fn(after_overflow), 0, 1), 2, in, 2, 1, reverse);
    run_numbers(jot_jacfwd(jot_fn(after_overflow), 0, 1), 2, in, 2, 1, forward);
    for (int i = 0; i < 2; i++) {
        double want = pow(y, 9) * (i == 0 ? pow(3, -9) : -10);
        check_near("reverse", reverse[i], want, 1e-6);
        check_near("forward", forward[i], want, 1e-6);
    }
}
END_TEST

// Stiff, so that the steps of an explicit method run out: neither the end nor its derivative is
// known, though all steps were good.
static jot_value stiff(jot_value t, jot_value y, jot_value p)
{
    return jot_mul(p, jot_sub(jot_cos(t), y));
}
static jot_value run_out(jot_value y, jot_value p)
{
    wanted.parameters = JOT_PARAMETERS(p);
    jot_ode_solve_tree(jot_fn(stiff), jot_from(0), jot_from(20), JOT_TREE(y), &wanted,
                       JOT_HERE);
    return y;
}
// At 0.5 it is known.
static jot_value run_out_at(jot_value y, jot_value p)
{
    wanted.times =
        jot_stack(0, jot_zeros_like(y), jot_full(JOT_F64, 0.5), jot_full(JOT_F64, 20));
    return run_out(y, p);
}
static jot_value last_of(jot_value y, jot_value p) { return jot_take(run_out_at(y, p), 2, 0); }

START_TEST(an_end_that_is_not_reached_is_nan)
{
    const double in[] = {0, 2000};
    double y[3], reverse[2], forward[2];
    jot_function ends[] = {jot_fn(run_out), jot_fn(last_of)};
    for (int i = 0; i < 2; i++) {
        wanted = (jot_ode_options){.most_steps = 1000, .adjoint = (jot_ode_adjoint)_i};
        run_numbers(ends[i], 2, in, 1, 1, y);
        ck_assert_msg(isnan(y[0]), "%g", y[0]);
        run_numbers(jot_grad(ends[i], 0, 1), 2, in, 2, 1, reverse);
        ck_assert_msg(isnan(reverse[0]) && isnan(reverse[1]), "%g %g", reverse[0], reverse[1]);
        if (wanted.adjoint == JOT_ODE_CONTINUOUS)
            continue;
        run_numbers(jot_jacfwd(ends[i], 0, 1), 2, in, 2, 1, forward);
        ck_assert_msg(isnan(forward[0]) && isnan(forward[1]), "%g %g", forward[0], forward[1]);
    }
    wanted = (jot_ode_options){.most_steps = 1000};
    run_numbers(jot_fn(run_out_at), 2, in, 1, 3, y);
    check_near("what is reached", y[1], cos(0.5), 1e-3);
    ck_assert(isnan(y[2]));
}
END_TEST

static jot_status trace_derivative(void)
{
    jot_scope *scope = jot_scope_open();
    if (!scope)
        return JOT_ERR_MEMORY;
    jot_value y = jot_full(JOT_F64, 1), d = JOT_GRAD(of_rate, y);
    jot_status s = jot_value_failed(d) ? jot_eval(d, NULL) : JOT_OK;
    jot_scope_close(scope);
    return s;
}

START_TEST(memory_that_is_out_is_reported)
{
    wanted = (jot_ode_options){.method = JOT_ODE_HEUN, .adjoint = (jot_ode_adjoint)_i};
    jot_status s = JOT_ERR_MEMORY;
    for (uint64_t n = 1; s != JOT_OK; n += 1 + n / 8) {
        memory_fail_after(n);
        s = trace_derivative();
        memory_fail_after(0);
        ck_assert_msg(s == JOT_OK || s == JOT_ERR_MEMORY, "%s", jot_error_message());
    }
}
END_TEST

static void add(TCase *t)
{
    tcase_add_loop_test(t, an_end_that_is_not_reached_is_nan, 0, 2);
    tcase_add_loop_test(t, memory_that_is_out_is_reported, 0, 2);
    tcase_add_loop_test(t, derivatives_through_steps_that_overflow, 0, WAYS);
    tcase_add_loop_test(t, derivatives_of_the_end, 0, WAYS);
    tcase_add_loop_test(t, derivatives_of_states_at_times, 0, WAYS);
    tcase_add_loop_test(t, derivatives_in_trees_of_parameters, 0, EXPLICIT_WAYS);
    tcase_add_loop_test(t, lanes_and_second_derivatives, 0, EXPLICIT_WAYS);
}

int main(void) { return run_suite("ode_derivatives", add); }
