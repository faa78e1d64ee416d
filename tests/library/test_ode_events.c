// SPDX-License-Identifier: Apache-2.0
// Events and steady states: when they happen, and the derivatives of that.
#include "ode_support.h"

// A ball that falls from a height; the event is that it meets the ground.
struct ball {
    jot_value x, v;
};
static struct ball falling(jot_value t, struct ball b, jot_value g)
{
    (void)t;
    return (struct ball){b.v, jot_neg(g)};
}
static jot_value height(jot_value t, struct ball b, jot_value g)
{
    (void)t, (void)g;
    return b.x;
}
JOT_FUNCTION(falling_fn, falling, struct ball, jot_value, struct ball, jot_value);
JOT_FUNCTION(height_fn, height, jot_value, jot_value, struct ball, jot_value);

static jot_ode_method method;

// The time and the speed of the impact, and the status.
static struct ball impact(jot_value x, jot_value g, jot_value *status)
{
    struct ball b = {x, jot_zeros_like(x)};
    jot_ode_result r;
    b = jot_ode_solve(falling_fn, 0, 2, b, .parameters = JOT_PARAMETERS(g), .event = &height_fn,
                      .method = method, .rtol = 1e-10, .result = &r);
    *status = r.status;
    return (struct ball){r.time, b.v};
}
static jot_value all_of(jot_value x, jot_value g)
{
    jot_value status;
    struct ball b = impact(x, g, &status);
    return jot_stack(0, b.x, b.v, jot_convert(status, JOT_F64));
}
static jot_value time_of(jot_value x, jot_value g)
{
    jot_value status;
    return impact(x, g, &status).x;
}
static jot_value speed_of(jot_value x, jot_value g)
{
    jot_value status;
    return impact(x, g, &status).v;
}

START_TEST(a_ball_meets_the_ground)
{
    static const jot_ode_method methods[] = {JOT_ODE_TSIT5, JOT_ODE_BOSH3, JOT_ODE_KVAERNO5};
    const double x = 3, g = 9.81, in[] = {x, g};
    double out[3], slope[2];
    method = methods[_i];
    run_numbers(jot_fn(all_of), 2, in, 1, 3, out);
    check_near("time", out[0], sqrt(2 * x / g), 1e-9);
    check_near("speed", out[1], -sqrt(2 * x * g), 1e-8);
    ck_assert_double_eq(out[2], JOT_ODE_EVENT);
    for (int forward = 0; forward < 2; forward++) {
        jot_function t = jot_fn(time_of), v = jot_fn(speed_of);
        run_numbers(forward ? jot_jacfwd(t, 0, 1) : jot_grad(t, 0, 1), 2, in, 2, 1, slope);
        check_near("time in height", slope[0], 1 / sqrt(2 * x * g), 1e-7);
        check_near("time in g", slope[1], -sqrt(x / (2 * g * g * g)), 1e-7);
        run_numbers(forward ? jot_jacfwd(v, 0, 1) : jot_grad(v, 0, 1), 2, in, 2, 1, slope);
        check_near("speed in height", slope[0], -sqrt(g / (2 * x)), 1e-7);
        check_near("speed in g", slope[1], -sqrt(x / (2 * g)), 1e-7);
    }
}
END_TEST

// Some lanes have an event, others come to the end.
START_TEST(lanes_end_each_in_its_own_way)
{
    enum { LANES = 5 };
    double heights[LANES] = {1, 5, 15, 19, 40}, out[LANES][3], slope[LANES], g = 9.81;
    jot_array *in[2] = {jot_array_from(heights, LANES), jot_array_full(JOT_F64, g)}, *result;
    method = JOT_ODE_TSIT5;
    for (int k = 0; k < 2; k++) {
        jot_function f = k ? jot_grad(jot_fn(time_of)) : jot_fn(all_of);
        jot_executable *e = jot_jit(jot_vmap(f, 0, JOT_NONE));
        must(jot_call(e, JOT_IN(in[0], in[1]), JOT_OUT(result)));
        must(jot_array_read(result, k ? slope : *out, (size_t)(k ? LANES : 3 * LANES)));
        jot_array_release(result);
        jot_executable_release(e);
    }
    for (int i = 0; i < LANES; i++) {
        bool meets = sqrt(2 * heights[i] / g) < 2;
        ck_assert_double_eq(out[i][2], meets ? JOT_ODE_EVENT : JOT_ODE_DONE);
        check_near("time", out[i][0], fmin(2, sqrt(2 * heights[i] / g)), 1e-9);
        check_near("speed", out[i][1], -g * out[i][0], 1e-7);
        check_near("slope", slope[i], meets ? 1 / sqrt(2 * heights[i] * g) : 0, 1e-7);
    }
    jot_array_release(in[0]), jot_array_release(in[1]);
}
END_TEST

START_TEST(what_does_not_go_together_is_told)
{
    jot_scope *scope = jot_scope_open();
    struct ball b = {jot_ones(JOT_F64), jot_zeros(JOT_F64)};
    jot_value g = jot_ones(JOT_F64);
    b = jot_ode_solve(falling_fn, 0, 2, b, .parameters = JOT_PARAMETERS(g), .event = &height_fn,
                      .steps = 10);
    jot_array *none;
    ck_assert_int_eq(jot_eval(b.x, &none), JOT_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(jot_error_message(), "an event goes without .steps"));
    jot_scope_close(scope);
}
END_TEST

static jot_value rows_of_height(jot_value t, struct ball b, jot_value g)
{
    (void)t, (void)g;
    return jot_stack(0, b.x, b.x);
}
JOT_FUNCTION(rows_fn, rows_of_height, jot_value, jot_value, struct ball, jot_value);
static jot_value turned_height(jot_value t, struct ball b, jot_value g)
{
    (void)t, (void)g;
    return jot_mul(jot_from_complex(0, 1), b.x);
}
JOT_FUNCTION(turned_fn, turned_height, jot_value, jot_value, struct ball, jot_value);

START_TEST(an_event_is_one_real_number)
{
    jot_scope *scope = jot_scope_open();
    struct ball b = {jot_ones(JOT_F64), jot_zeros(JOT_F64)};
    jot_value g = jot_ones(JOT_F64);
    jot_array *none;
    b = jot_ode_solve(falling_fn, 0, 2, b, .parameters = JOT_PARAMETERS(g),
                      .event = _i ? &turned_fn : &rows_fn);
    ck_assert_int_eq(jot_eval(b.x, &none), _i ? JOT_ERR_DTYPE : JOT_ERR_SHAPE);
    const char *text = _i ? "the event turned_height gives c128 of rank 0"
                          : "the event rows_of_height gives f64 of rank 1";
    ck_assert_msg(strstr(jot_error_message(), text) != NULL, "%s", jot_error_message());
    ck_assert_ptr_null(strstr(jot_error_message(), "carry")); // no part of the loop inside
    jot_scope_close(scope);
}
END_TEST

// ---- Steady states

struct pool {
    jot_value a, b;
};
// At rest a^3 = p, and b = a + (1, 2).
static struct pool draining(jot_value t, struct pool s, jot_value p)
{
    (void)t;
    jot_value shift = jot_stack(0, jot_add(s.a, 1), jot_add(s.a, 2));
    return (struct pool){jot_mul(50, jot_sub(p, jot_integer_pow(s.a, 3))), jot_sub(shift, s.b)};
}
JOT_FUNCTION(draining_fn, draining, struct pool, jot_value, struct pool, jot_value);

static jot_value at_rest(jot_value p)
{
    struct pool s = {jot_ones(JOT_F64), jot_zeros(JOT_F64, 2)};
    s = jot_ode_steady_state(draining_fn, 0, s, .parameters = JOT_PARAMETERS(p),
                             .method = method, .rtol = 1e-9);
    return jot_add(s.a, jot_mul(10, jot_sum(s.b)));
}

START_TEST(a_steady_state_has_the_derivative_of_its_equation)
{
    double p = 2, a = cbrt(p), out, reverse, forward, slope = 21 / (3 * a * a);
    method = _i ? JOT_ODE_KVAERNO5 : JOT_ODE_TSIT5;
    run_numbers(jot_fn(at_rest), 1, &p, 1, 1, &out);
    check_near("the state", out, a + 10 * (2 * a + 3), 1e-6);
    run_numbers(jot_grad(jot_fn(at_rest)), 1, &p, 1, 1, &reverse);
    run_numbers(jot_jacfwd(jot_fn(at_rest)), 1, &p, 1, 1, &forward);
    check_near("reverse", reverse, slope, 1e-6);
    check_near("forward", forward, slope, 1e-6);
}
END_TEST

START_TEST(a_steady_state_says_what_it_lacks)
{
    jot_scope *scope = jot_scope_open();
    struct pool s = {jot_ones(JOT_F64), jot_zeros(JOT_F64, 2)};
    jot_value p = jot_ones(JOT_F64);
    s = jot_ode_steady_state(draining_fn, 0, s, .parameters = JOT_PARAMETERS(p),
                             .method = JOT_ODE_RK4);
    ck_assert_int_eq(jot_eval(s.a, NULL), JOT_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(jot_error_message(),
                                 "JOT_ODE_RK4 has no estimate of its error: "
                                 "another method has one"));
    jot_scope_close(scope);
}
END_TEST

static void add(TCase *t)
{
    tcase_add_test(t, a_steady_state_says_what_it_lacks);
    tcase_add_loop_test(t, a_ball_meets_the_ground, 0, 3);
    tcase_add_test(t, lanes_end_each_in_its_own_way);
    tcase_add_test(t, what_does_not_go_together_is_told);
    tcase_add_loop_test(t, an_event_is_one_real_number, 0, 2);
    tcase_add_loop_test(t, a_steady_state_has_the_derivative_of_its_equation, 0, 2);
}

int main(void) { return run_suite("ode_events", add); }
