// SPDX-License-Identifier: Apache-2.0
// Special functions and their derivatives at random points, against mpmath: the errors, in
// units in the last place, over how well conditioned the values are.
#include "special_support.h"
#include "support/sample.h"

struct point {
    const char *name;
    int argument;
    double x[4], want, condition;
};

static const struct point points[] = {
#define POINT(name, argument, x, y, z, w, want, condition)                                     \
    {#name, argument, {x, y, z, w}, want, condition},
#include "special_accuracy.def"
#undef POINT
};
enum { POINT_COUNT = sizeof points / sizeof *points };

// function, operands, units of the value, and of the derivatives in parameters and in the last operand
#define FUNCTIONS(X)                                                                           \
    X(betaln, 2, 4, 4, 4)                                                                      \
    X(beta, 2, 4, 4, 4)                                                                        \
    X(poch, 2, 4, 4, 4)                                                                        \
    X(comb, 2, 4, 4, 4)                                                                        \
    X(betainc, 3, 4, 6, 4)                                                                     \
    X(gammainc, 2, 4, 6, 4)                                                                    \
    X(gammaincc, 2, 4, 6, 4)                                                                   \
    X(i0e, 1, 4, 4, 4)                                                                         \
    X(i1e, 1, 4, 5, 5)                                                                         \
    X(i0, 1, 4, 4, 4)                                                                          \
    X(i1, 1, 4, 4, 4)                                                                          \
    X(log_ndtr, 1, 4, 4, 4)                                                                    \
    X(erfcx, 1, 4, 4, 4)                                                                       \
    X(polygamma, 2, 4, 4, 4)                                                                   \
    X(hyp1f1, 3, 4, 6, 6)                                                                      \
    X(hyp2f1, 4, 4, 6, 6)

struct special {
    const char *name;
    int arity;
    double units, derivative_units[2]; // in parameters, in the last operand
    jot_value (*of)(const jot_value *x);
};

#define OPERANDS1(x) (x)[0]
#define OPERANDS2(x) (x)[0], (x)[1]
#define OPERANDS3(x) (x)[0], (x)[1], (x)[2]
#define OPERANDS4(x) (x)[0], (x)[1], (x)[2], (x)[3]
#define CALL(f, ...) jot_##f(__VA_ARGS__)
#define FUNCTION(f, arity, units, others, last)                                                \
    static jot_value call_##f(const jot_value *x) { return CALL(f, OPERANDS##arity(x)); }
FUNCTIONS(FUNCTION)

static struct special specials[] = {
#define ROW(f, arity, units, others, last) {#f, arity, units, {others, last}, call_##f},
    FUNCTIONS(ROW)
#undef ROW
};
enum { SPECIAL_COUNT = sizeof specials / sizeof *specials };

static void body(const jot_value *in, jot_value *out, void *ctx)
{
    const struct special *s = ctx;
    *out = s->of(in);
}

static int gather(const struct special *s, int argument, const struct point **out)
{
    int n = 0;
    for (int i = 0; i < POINT_COUNT; i++) {
        if (strcmp(points[i].name, s->name) != 0 || points[i].argument != argument)
            continue;
        ck_assert_int_lt(n, MAX_POINTS);
        out[n++] = &points[i];
    }
    return n;
}

static double ulps(double got, double want, jot_dtype dtype)
{
    int exponent;
    frexp(want, &exponent);
    double unit = ldexp(dtype == JOT_F64 ? DBL_EPSILON : FLT_EPSILON, exponent - 1);
    return fabs(got - want) / unit;
}

static bool is_number(double want, jot_dtype dtype)
{
    return dtype == JOT_F64 || (fabs(want) > 1e-37 && fabs(want) < FLT_MAX);
}

// The value, or the derivative in an argument in reverse mode and forward.
static void check(struct special *s, int argument, jot_dtype dtype, bool is_reverse)
{
    const struct point *p[MAX_POINTS];
    int n = gather(s, argument, p), m = s->arity;
    if (n == 0)
        return;
    double x[5][MAX_POINTS];
    jot_array *in[5] = {NULL}, *out[2] = {NULL};
    for (int k = 0; k <= m; k++) {
        for (int i = 0; i < n; i++)
            x[k][i] = k < m ? p[i]->x[k] : 1;
        in[k] = array_of(dtype, x[k], n);
    }
    bool is_value = argument < 0;
    jot_function f = jot_function_uniform(s->name, "accuracy", body, m, 1, s);
    const int list[] = {argument, JOT_END};
    if (!is_value)
        f = is_reverse ? jot_vjp_of(f, "accuracy", list) : jot_jvp_of(f, "accuracy", list);
    jot_executable *e = jot_jit(f);
    must(jot_call_list(e, (size_t)m + !is_value, in, 1 + !is_value, out));
    const jot_array *y = out[!is_value];
    double units = is_value ? s->units : s->derivative_units[argument == m - 1];
    for (int i = 0; i < n; i++) {
        double got = element(y, i), want = p[i]->want;
        if (!is_number(want, dtype))
            continue;
        double error = ulps(got, want, dtype) / p[i]->condition;
        ck_assert_msg(error <= units,
                      "%s of %s, %d, at %.9g, %.9g, %.9g, %.9g is %.17g, not %.17g: %g",
                      s->name, jot_dtype_name(dtype), argument, p[i]->x[0], p[i]->x[1],
                      p[i]->x[2], p[i]->x[3], got, want, error);
    }
    for (int k = 0; k <= m; k++)
        jot_array_release(in[k]);
    for (int k = 0; k <= !is_value; k++)
        jot_array_release(out[k]);
    jot_executable_release(e);
}

START_TEST(test_values)
{
    check(&specials[_i], -1, JOT_F64, false);
    check(&specials[_i], -1, JOT_F32, false);
}
END_TEST

START_TEST(test_derivatives)
{
    for (int argument = 0; argument < specials[_i].arity; argument++) {
        check(&specials[_i], argument, JOT_F64, false);
        check(&specials[_i], argument, JOT_F64, true);
        check(&specials[_i], argument, JOT_F32, true);
    }
}
END_TEST

START_TEST(test_borders)
{
    const double inf = INFINITY;
    jot_value a = NUMBERS(0, 0, -1, -0.5, -0.5, inf, NAN, 1, -20.5, 1e-300);
    jot_value b = NUMBERS(0.5, 0, 0.5, 0.5, -2.25, 1, 1, NAN, 12.25, 1e-300);
    CHECK_EXACT(jot_comb(NUMBERS(NAN, 2), NUMBERS(2, NAN)), NAN, NAN);
    CHECK_EXACT(jot_polygamma(NUMBERS(1, 3), NUMBERS(inf, inf)), 0, 0);
    CHECK(jot_polygamma(jot_full(JOT_F32, 40), jot_full(JOT_F32, 40)), 1e-24,
          -2.6723971492473376e-18);
    CHECK(jot_beta(a, b), 4e-15, inf, NAN, NAN, 0, -6.15045320497604, NAN, NAN, NAN,
          3.2500351954940442e-7, 2e300);
    CHECK(jot_betaln(a, b), 4e-15, inf, NAN, inf, -inf, 1.8165257709693371, NAN, NAN, NAN,
          -14.939429825292528, 691.46867507877365);
}
END_TEST

// Far beyond what sums would take.
START_TEST(test_large_betainc)
{
    jot_value a = NUMBERS(1e30, 1e30, 1e30, 1e12, 3e12, 0.5),
              b = NUMBERS(1e30, 1e30, 1e30, 1e12, 1e12, 1e30);
    jot_value x = NUMBERS(0.5, 0.25, 0.75, 0.50000015, 0.75, 0.5);
    CHECK(jot_betainc(a, b, x), 1e-9, 0.5, 0, 1, 0.6643133797, 0.49999992322352234, 1);
}
END_TEST

static jot_value betainc_a(jot_value a) { return jot_betainc(a, 3, 0.25); }
static jot_value betainc_swapped(jot_value a) { return jot_betainc(a, 0.5, 0.5); }
static jot_value gammainc_a(jot_value a) { return jot_gammainc(a, 0.5); }
static jot_value betainc_b(jot_value b) { return jot_betainc(2.5, b, 0.25); }
static jot_value comb_k(jot_value k) { return jot_comb(4, k); }
static jot_value poch_m(jot_value m) { return jot_poch(2.5, m); }
static jot_value i0_x(jot_value x) { return jot_i0(x); }
static jot_value i1_x(jot_value x) { return jot_i1(x); }

// Second derivatives where two arguments are equal or one is near 0, at which cases meet, by
// differences of mpmath's values.
START_TEST(test_second_derivatives)
{
    const struct {
        jot_function f;
        double x, want;
    } rows[] = {{jot_fn(betainc_a), 3, 0.089945770003795821},
                {jot_fn(betainc_a), 1e-20, -0.3749200641369687},
                {jot_fn(betainc_swapped), 1e-20, 5.7382421256664247},
                {jot_fn(gammainc_a), 1e-6, -0.58675767494602408},
                {jot_fn(betainc_b), 2.5, 0.01365405844044316},
                {jot_fn(comb_k), 2, -4.7392088021787172},
                {jot_fn(poch_m), 0, 0.98478701738373853},
                {jot_fn(i0_x), 0, 0.5},
                {jot_fn(i1_x), 1e-6, 3.7500000000005208e-7}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        jot_function once = jot_grad_of(rows[i].f, "first", (const int[]){0, JOT_END});
        jot_function twice = jot_grad_of(once, "second", (const int[]){0, JOT_END});
        jot_value x = jot_full(JOT_F64, rows[i].x), y;
        jot_apply_at(twice, 1, &x, 1, &y, "here");
        CHECK(jot_div(y, rows[i].want), 4e-15, 1);
    }
}
END_TEST

// The first derivative in an argument by forward and by reverse mode.
static void check_slope(jot_function f, int n, int argument, const double *x, double want)
{
    const int list[] = {argument, JOT_END};
    jot_value in[4], y[2];
    for (int k = 0; k <= n; k++)
        in[k] = jot_full(JOT_F64, k < n ? x[k] : 1);
    jot_apply_at(jot_jvp_of(f, "here", list), (size_t)n + 1, in, 2, y, "here");
    CHECK(y[1], isfinite(want) ? 1e-15 : 0, want);
    jot_apply_at(jot_vjp_of(f, "here", list), (size_t)n + 1, in, 2, y, "here");
    CHECK(y[1], isfinite(want) ? 1e-15 : 0, want);
}

// Where the rules have infinite or unknown parts: the limits, as far as there are.
START_TEST(test_slopes_at_borders)
{
    const double inf = INFINITY;
    const struct {
        void (*f)(void);
        int n, argument;
        double x[4], want;
    } rows[] = {
#define SLOPE(f, n, ...) {(void (*)(void))(f), n, __VA_ARGS__}
        SLOPE(jot_gammainc, 2, 0, {0.5, 0}, 0),
        SLOPE(jot_gammainc, 2, 0, {1, inf}, 0),
        SLOPE(jot_gammainc, 2, 0, {inf, 1}, 0),
        SLOPE(jot_gammainc, 2, 0, {1e-310, 1}, -0.21938393439552029), // -E_1(1)
        SLOPE(jot_gammainc, 2, 0, {1, NAN}, NAN),
        SLOPE(jot_gammainc, 2, 1, {1, 0}, 1),
        SLOPE(jot_gammainc, 2, 1, {0.5, 0}, inf),
        SLOPE(jot_gammainc, 2, 1, {2, 0}, 0),
        SLOPE(jot_gammainc, 2, 1, {1, inf}, 0),
        SLOPE(jot_gammainc, 2, 1, {inf, 1}, 0),
        SLOPE(jot_gammainc, 2, 1, {-1, 1}, NAN),
        SLOPE(jot_gammaincc, 2, 0, {0.5, 0}, 0),
        SLOPE(jot_gammaincc, 2, 1, {1, 0}, -1),
        SLOPE(jot_betainc, 3, 0, {0.5, 0.5, 0}, 0),
        SLOPE(jot_betainc, 3, 0, {1, 1, 1}, 0),
        SLOPE(jot_betainc, 3, 1, {0.5, 0.5, 1}, 0),
        SLOPE(jot_betainc, 3, 1, {inf, 1, 0.5}, 0),
        SLOPE(jot_betainc, 3, 2, {1, 2, 0}, 2),
        SLOPE(jot_betainc, 3, 2, {2, 1, 1}, 2),
        SLOPE(jot_betainc, 3, 2, {2, 3, 0}, 0),
        SLOPE(jot_betainc, 3, 2, {0.5, 0.5, 1}, inf),
        SLOPE(jot_betainc, 3, 2, {0, 1, 0.5}, 0),
        SLOPE(jot_betainc, 3, 2, {inf, 1, 0.5}, 0),
        SLOPE(jot_betainc, 3, 2, {1, inf, 0.5}, 0),
        SLOPE(jot_betainc, 3, 2, {1, 1, 2}, NAN),
        SLOPE(jot_betainc, 3, 2, {NAN, 1, 0.5}, NAN),
        SLOPE(jot_xlogy, 2, 1, {2, 0}, inf),
        SLOPE(jot_zeta, 2, 0, {2, inf}, 0),
        SLOPE(jot_zeta, 2, 1, {2, inf}, 0),
        SLOPE(jot_polygamma, 2, 1, {1, inf}, 0),
        SLOPE(jot_i0, 1, 0, {-inf}, -inf),
        SLOPE(jot_i1, 1, 0, {inf}, inf),
        SLOPE(jot_i0e, 1, 0, {inf}, 0),
        SLOPE(jot_log_ndtr, 1, 0, {-inf}, inf),
        SLOPE(jot_dawsn, 1, 0, {inf}, 0),
        SLOPE(jot_spence, 1, 0, {inf}, 0),
#undef SLOPE
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check_slope(jot_function_plain("slope", "here", rows[i].n, rows[i].f), rows[i].n,
                    rows[i].argument, rows[i].x, rows[i].want);
    CHECK_EXACT(jot_i0(NUMBERS(-inf, inf, 720, NAN)), inf, inf, inf, NAN);
    CHECK_EXACT(jot_zeta(NUMBERS(2, 1, inf, inf, 2), NUMBERS(inf, inf, inf, 1, -4.5)), 0, inf,
                0, 1, NAN);
    // Where x is far below 0, and where neither factor is a number.
    CHECK(jot_polygamma(NUMBERS(1, 1, 1, 2), NUMBERS(-20000.5, 1e200, -1e-200, -inf)), 1e-14,
          9.8695544035892404, 1e-200, inf, NAN);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_sampled_test(t, test_values, 0, SPECIAL_COUNT);
    tcase_add_sampled_test(t, test_derivatives, 0, SPECIAL_COUNT);
    tcase_add_test(t, test_borders);
    tcase_add_test(t, test_large_betainc);
    tcase_add_test(t, test_second_derivatives);
    tcase_add_test(t, test_slopes_at_borders);
}

int main(void) { return run_by_both("special_accuracy", add_tests); }
