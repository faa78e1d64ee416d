// SPDX-License-Identifier: Apache-2.0
// Special functions: values by mpmath, ends of domains as JAX has them, derivatives, maps.
#include "special_support.h"
#include "support/sample.h"

struct value {
    const char *name;
    double x[3], want, tolerance;
};

static const struct value values[] = {
#define VALUE(name, x, y, z, want, tolerance) {#name, {x, y, z}, want, tolerance},
#include "special_values.def"
#undef VALUE
};
enum { VALUE_COUNT = sizeof values / sizeof values[0] };

#define jot_si(x) jot_sici(x).si
#define jot_ci(x) jot_sici(x).ci
#define jot_fresnel_s(x) jot_fresnel(x).s
#define jot_fresnel_c(x) jot_fresnel(x).c
#define jot_hyp2f1_c(a, b, x) jot_hyp2f1(a, b, 1.75, x)
#define jot_wofz_re(x, y) jot_real(jot_wofz(jot_complex(x, y)))
#define jot_wofz_im(x, y) jot_imag(jot_wofz(jot_complex(x, y)))
#define jot_harmonic(n, m, t) jot_real(jot_sph_harm_y(n, m, t, 0.5))

// name, operands, where derivatives are compared with differences, up to which order
#define SPECIALS(X)                                                                            \
    X(erf, 1, 0.6, 0, 0, 2)                                                                    \
    X(erfc, 1, 0.6, 0, 0, 2)                                                                   \
    X(lgamma, 1, 1.6, 0, 0, 2)                                                                 \
    X(gamma, 1, -1.6, 0, 0, 2)                                                                 \
    X(digamma, 1, -0.7, 0, 0, 2)                                                               \
    X(zeta, 2, 2.5, 1.25, 0, 2)                                                                \
    X(gammasgn, 1, 1.6, 0, 0, 1)                                                               \
    X(factorial, 1, 1.6, 0, 0, 1)                                                              \
    X(polygamma, 2, 1, 1.5, 0, 0)                                                              \
    X(poch, 2, 1.5, 2.5, 0, 1)                                                                 \
    X(beta, 2, 1.5, 2.5, 0, 1)                                                                 \
    X(betaln, 2, 1.5, 2.5, 0, 1)                                                               \
    X(betainc, 3, 1.5, 2.5, 0.5, 1)                                                            \
    X(i0, 1, -1.6, 0, 0, 2)                                                                    \
    X(i1, 1, 1.6, 0, 0, 2)                                                                     \
    X(i0e, 1, 9.5, 0, 0, 2)                                                                    \
    X(i1e, 1, -2.5, 0, 0, 2)                                                                   \
    X(xlogy, 2, 1.5, 2.5, 0, 2)                                                                \
    X(xlog1py, 2, 1.5, 2.5, 0, 2)                                                              \
    X(entr, 1, 1.5, 0, 0, 2)                                                                   \
    X(rel_entr, 2, 1.5, 2.5, 0, 2)                                                             \
    X(kl_div, 2, 1.5, 2.5, 0, 2)                                                               \
    X(logit, 1, 0.25, 0, 0, 2)                                                                 \
    X(ndtr, 1, 0.25, 0, 0, 2)                                                                  \
    X(log_ndtr, 1, -0.75, 0, 0, 2)                                                             \
    X(ndtri, 1, 0.25, 0, 0, 2)                                                                 \
    X(gammainc, 2, 2.5, 1.25, 0, 2)                                                            \
    X(gammaincc, 2, 1.5, 3.25, 0, 2)                                                           \
    X(gammainc_grad_a, 2, 2.5, 1.25, 0, 1)                                                     \
    X(random_gamma_grad, 2, 300, 310, 0, 1)                                                    \
    X(exp1, 1, 0.6, 0, 0, 2)                                                                   \
    X(expi, 1, 0.6, 0, 0, 2)                                                                   \
    X(expn, 2, 3, 0.6, 0, 0)                                                                   \
    X(si, 1, -1.6, 0, 0, 2)                                                                    \
    X(ci, 1, 5.6, 0, 0, 2)                                                                     \
    X(spence, 1, 2.6, 0, 0, 2)                                                                 \
    X(dawsn, 1, 1.6, 0, 0, 2)                                                                  \
    X(erfcx, 1, -0.6, 0, 0, 2)                                                                 \
    X(fresnel_s, 1, 1.8, 0, 0, 2)                                                              \
    X(fresnel_c, 1, -0.6, 0, 0, 2)                                                             \
    X(bessel_jn, 2, 2, 1.6, 0, 0)                                                              \
    X(hyp1f1, 3, 0.6, 1.7, -1.3, 1)                                                            \
    X(hyp2f1_c, 3, 0.6, 1.7, -1.3, 1)                                                          \
    X(owens_t, 2, 0.6, 1.7, 0, 2)                                                              \
    X(wofz_re, 2, 0.6, 1.7, 0, 2)                                                              \
    X(wofz_im, 2, 1.6, -0.7, 0, 2)                                                             \
    X(harmonic, 3, 3, 2, 0.6, 0)                                                               \
    X(comb, 2, 5.5, 2.25, 0, 1)

#define FUNCTION1(f)                                                                           \
    static jot_value call_##f(jot_value x) { return jot_##f(x); }
#define FUNCTION2(f)                                                                           \
    static jot_value call_##f(jot_value x, jot_value y) { return jot_##f(x, y); }
#define FUNCTION3(f)                                                                           \
    static jot_value call_##f(jot_value x, jot_value y, jot_value z)                           \
    {                                                                                          \
        return jot_##f(x, y, z);                                                               \
    }
#define FUNCTION(f, arity, x, y, z, order) FUNCTION##arity(f)
SPECIALS(FUNCTION)

static const struct special {
    const char *name;
    int arity;
    void (*f)(void);
    double x[3];
    int order;
} specials[] = {
#define ROW(f, arity, x, y, z, order) {#f, arity, (void (*)(void))call_##f, {x, y, z}, order},
    SPECIALS(ROW)};
enum { SPECIAL_COUNT = sizeof specials / sizeof specials[0] };

static jot_function function_of(const struct special *s)
{
    return jot_function_plain(s->name, "special", s->arity, s->f);
}

static int gather(const char *name, double x[3][MAX_POINTS], const struct value **out)
{
    int n = 0;
    for (int i = 0; i < VALUE_COUNT; i++) {
        if (strcmp(values[i].name, name) != 0)
            continue;
        ck_assert_int_lt(n, MAX_POINTS);
        for (int k = 0; k < 3; k++)
            x[k][n] = values[i].x[k];
        out[n++] = &values[i];
    }
    ck_assert_msg(n > 0, "%s has no values", name);
    return n;
}

static bool is_near(double got, double want, double tolerance, jot_dtype dtype)
{
    double unit = dtype == JOT_F64 ? DBL_EPSILON : FLT_EPSILON;
    double tiny = dtype == JOT_F64 ? 0 : FLT_MIN;
    return isnan(want)
               ? isnan(got)
               : got == want || fabs(got - want) <= tolerance * unit * fabs(want) + tiny ||
                     (dtype == JOT_F32 && fabs(want) > FLT_MAX && isinf(got));
}

static void check_values(const struct special *s, jot_dtype dtype)
{
    double x[3][MAX_POINTS];
    const struct value *want[MAX_POINTS];
    int n = gather(s->name, x, want);
    jot_array *in[3] = {NULL}, *out = NULL;
    for (int k = 0; k < s->arity; k++)
        in[k] = array_of(dtype, x[k], n);
    jot_executable *e = jot_jit(function_of(s));
    must(jot_call_list(e, (size_t)s->arity, in, 1, &out));
    for (int i = 0; i < n; i++)
        ck_assert_msg(is_near(element(out, i), want[i]->want, want[i]->tolerance, dtype),
                      "%s of %s at %g, %g, %g is %.17g instead of %.17g", s->name,
                      jot_dtype_name(dtype), x[0][i], x[1][i], x[2][i], element(out, i),
                      want[i]->want);
    jot_array_release(out);
    for (int k = 0; k < s->arity; k++)
        jot_array_release(in[k]);
    jot_executable_release(e);
}

START_TEST(test_values)
{
    check_values(&specials[_i], JOT_F64);
    check_values(&specials[_i], JOT_F32);
}
END_TEST

START_TEST(test_derivatives)
{
    const struct special *s = &specials[_i];
    if (s->order == 0)
        return;
    jot_array *in[3];
    for (int k = 0; k < s->arity; k++)
        in[k] = array_of(JOT_F64, (const double[]){s->x[k], s->x[k] + 0.125}, 2);
    must(jot_check_grads_list(function_of(s), (size_t)s->arity, in, s->order,
                              JOT_FORWARD | JOT_REVERSE, 0));
    for (int k = 0; k < s->arity; k++)
        jot_array_release(in[k]);
}
END_TEST

// Over a column of the operands, as a call for each element.
START_TEST(test_maps)
{
    const struct special *s = &specials[_i];
    double x[3][MAX_POINTS];
    const struct value *want[MAX_POINTS];
    int n = gather(s->name, x, want);
    jot_array *in[3] = {NULL}, *out = NULL, *mapped = NULL;
    for (int k = 0; k < s->arity; k++)
        in[k] = array_of(JOT_F64, x[k], n);
    jot_executable *whole = jot_jit(function_of(s)), *each = jot_jit(jot_vmap(function_of(s)));
    must(jot_call_list(whole, (size_t)s->arity, in, 1, &out));
    must(jot_call_list(each, (size_t)s->arity, in, 1, &mapped));
    ck_assert_int_eq(jot_array_size(mapped), n);
    ck_assert(memcmp(jot_array_data(out), jot_array_data(mapped), sizeof(double) * (size_t)n) ==
              0);
    jot_array_release(out);
    jot_array_release(mapped);
    for (int k = 0; k < s->arity; k++)
        jot_array_release(in[k]);
    jot_executable_release(whole);
    jot_executable_release(each);
}
END_TEST

START_TEST(test_types_and_shapes)
{
    jot_value column = jot_full(JOT_F32, 2, 3, 1), row = jot_full(JOT_BF16, 1, 4);
    CHECK_TYPE(jot_gammainc(column, row), "f32[3,4]");
    CHECK_TYPE(jot_gammaincc(row, 2), "bf16[4]");
    CHECK_TYPE(jot_gammainc(jot_full(JOT_I32, 2, 3), 1), "f32[3]");
    CHECK_TYPE(jot_lgamma(jot_full(JOT_I64, 2, 3)), "f64[3]");
    CHECK_TYPE(jot_zeta(jot_full(JOT_F64, 2), column), "f64[3,1]");
    CHECK_TYPE(jot_gammainc(jot_zeros(JOT_F32, 0, 3), 1), "f32[0,3]");
    CHECK_EXACT(jot_sum(jot_gammainc(jot_zeros(JOT_F32, 0, 3), 1)), 0);
    CHECK(jot_gammainc(1.0, jot_full(JOT_F64, 1)), 1e-15, 1 - exp(-1));
}
END_TEST

START_TEST(test_borders_of_incomplete_gamma)
{
    jot_value a = NUMBERS(0, 0, 0, -1, 0.5, 0.5, 0.5, INFINITY, INFINITY, INFINITY, NAN, 1);
    jot_value x = NUMBERS(0, 0.5, INFINITY, 1, 0, -1, INFINITY, 0, 0.5, INFINITY, 1, NAN);
    CHECK_EXACT(jot_gammainc(a, x), NAN, 1, 1, NAN, 0, NAN, 1, 0, 0, 1, NAN, NAN);
    CHECK_EXACT(jot_gammaincc(a, x), NAN, 0, 0, NAN, 1, NAN, 0, 1, 1, 0, NAN, NAN);
}
END_TEST

// As in SciPy and JAX.
START_TEST(test_borders_of_betainc_and_logarithms)
{
    const double inf = INFINITY;
    jot_value a = NUMBERS(0, 1, 0, 0, 0, 1, 1, inf, 1, inf, inf, 1, inf, 1, -1, NAN, 1);
    jot_value b = NUMBERS(1, 0, 0, 1, 1, 0, 0, 1, inf, inf, 1, inf, 1, inf, 1, 1, 1);
    jot_value x = NUMBERS(0.5, 0.5, 0.5, 0, 1, 1, 0, 0.5, 0.5, 0.5, 1, 0, 0, 1, 0.5, 0.5, NAN);
    CHECK_EXACT(jot_betainc(a, b, x), 1, 0, NAN, 0, 1, 1, 0, 0, 1, NAN, 1, 0, 0, 1, NAN, NAN,
                NAN);
    jot_value y = NUMBERS(NAN, 0, -1, -2, inf, 1);
    CHECK_EXACT(jot_xlogy(NUMBERS(0, 0, 0, 0, 0, NAN), y), NAN, 0, 0, 0, 0, NAN);
    CHECK_EXACT(jot_xlog1py(NUMBERS(0, 0, 0, 0, 0, NAN), y), NAN, 0, 0, 0, 0, NAN);
    CHECK_EXACT(jot_entr(NUMBERS(0, -1, inf, NAN)), 0, -inf, -inf, NAN);
    CHECK_EXACT(jot_rel_entr(NUMBERS(0, 0, 1, 1, NAN, inf), NUMBERS(0, 1, 0, inf, 1, -inf)), 0,
                0, inf, -inf, NAN, inf);
}
END_TEST

START_TEST(test_errors)
{
    jot_value bad = jot_gammainc(jot_full(JOT_F32, 1, 3), jot_full(JOT_F32, 1, 4));
    ck_assert_int_eq(jot_eval(bad, NULL), JOT_ERR_SHAPE);
    ck_assert_str_eq(
        strstr(jot_error_message(), "jot_gammainc("),
        "jot_gammainc(jot_full(JOT_F32, 1, 3), jot_full(JOT_F32, 1, 4)): f32[3] and "
        "f32[4] do not broadcast: axis 0 is 3 in one and 4 in the other");
    bad = jot_lgamma(jot_full(JOT_C64, 1));
    ck_assert_int_eq(jot_eval(bad, NULL), JOT_ERR_DTYPE);
    ck_assert_str_eq(
        strstr(jot_error_message(), "jot_lgamma("),
        "jot_lgamma(jot_full(JOT_C64, 1)): c64[]: is not defined for complex numbers");
    bad = jot_gammaincc(1, jot_full(JOT_C64, 1));
    ck_assert_int_eq(jot_eval(bad, NULL), JOT_ERR_DTYPE);
    ck_assert_str_eq(
        strstr(jot_error_message(), "jot_gammaincc("),
        "jot_gammaincc(1, jot_full(JOT_C64, 1)): c64[]: is not defined for complex numbers");
    bad = jot_glu(jot_full(JOT_F32, 1, 2, 3), -1);
    ck_assert_int_eq(jot_eval(bad, NULL), JOT_ERR_SHAPE);
    ck_assert_str_eq(
        strstr(jot_error_message(), "jot_glu("),
        "jot_glu(jot_full(JOT_F32, 1, 2, 3), -1): axis 1 is 3 long, which has no halves");
}
END_TEST

START_TEST(test_borders)
{
    const double inf = INFINITY;
    jot_value a = NUMBERS(0, 0, 0, -1, 0.5, 0.5, 0.5, inf, inf, 1, 1, 1);
    jot_value b = NUMBERS(0, 0.5, 0.5, 1, 0, 0, inf, 0.5, inf, 1, 1, 1);
    jot_value x = NUMBERS(0.5, 0, 0.5, 0.5, 0.5, 1, 0.5, 0.5, 0.5, -1, 0, 1);
    CHECK_EXACT(jot_betainc(a, b, x), NAN, 0, 1, NAN, 0, 1, 1, 0, NAN, NAN, 0, 1);
    CHECK_EXACT(jot_gammasgn(NUMBERS(0, -0.0, -1, -inf, inf, NAN)), 1, -1, NAN, NAN, 1, NAN);
    CHECK_EXACT(jot_ndtri(NUMBERS(0, 1, -1, 2)), -inf, inf, NAN, NAN);
    CHECK_EXACT(jot_log_ndtr(NUMBERS(-inf, inf, NAN)), -inf, 0, NAN);
    CHECK_EXACT(jot_i0e(NUMBERS(-inf, inf, NAN, 0)), 0, 0, NAN, 1);
    CHECK_EXACT(jot_i1e(NUMBERS(-inf, inf, NAN, 0)), -0.0, 0, NAN, 0);
    CHECK_EXACT(jot_i1(NUMBERS(-inf, inf, 0)), -inf, inf, 0);
    CHECK_EXACT(jot_logit(NUMBERS(0, 1, -1)), -inf, inf, NAN);
    CHECK_EXACT(jot_polygamma(NUMBERS(0.5, -1, 1.5, NAN), NUMBERS(1, 1, 2, 1)), NAN, NAN, NAN,
                NAN);
    CHECK(jot_multigammaln(NUMBERS(3.5), 3), 1e-14,
          2.5 * log(M_PI) - log(M_PI) + lgamma(3.5) + lgamma(3) + lgamma(2.5));
}
END_TEST

static jot_value expn_3(jot_value x) { return jot_expn(3, x); }
static jot_value expn_0(jot_value x) { return jot_expn(0, x); }
static jot_value polygamma_2(jot_value x) { return jot_polygamma(2, x); }
static jot_value polygamma_below(jot_value x) { return jot_polygamma(1, jot_sub(x, 5.25)); }
static jot_value bessel_0(jot_value x) { return jot_bessel_jn(0, x); }
static jot_value bessel_3(jot_value x) { return jot_bessel_jn(3, x); }
static jot_value hyp2f1_a(jot_value x) { return jot_hyp2f1(x, 1.25, 1.75, -0.75); }
static jot_value hyp2f1_b(jot_value x) { return jot_hyp2f1(0.5, jot_add(x, 1), 1.75, 0.8); }
static jot_value hyp2f1_of_c(jot_value x) { return jot_hyp2f1(0.5, 1.5, jot_add(x, 1), 0.3); }
static jot_value hyp2f1_x(jot_value x) { return jot_hyp2f1(0.5, 1.5, 1.75, jot_sub(0.9, x)); }
static jot_value harmonic_t(jot_value t) { return jot_real(jot_sph_harm_y(5, 2, t, t)); }
static jot_value harmonic_0(jot_value t) { return jot_imag(jot_sph_harm_y(4, 1, t, t)); }

// Their first operands are whole.
START_TEST(test_derivatives_of_orders)
{
    const jot_function f[] = {jot_fn(expn_3),     jot_fn(expn_0),      jot_fn(bessel_0),
                              jot_fn(bessel_3),   jot_fn(hyp2f1_x),    jot_fn(hyp2f1_a),
                              jot_fn(hyp2f1_b),   jot_fn(hyp2f1_of_c), jot_fn(harmonic_t),
                              jot_fn(harmonic_0), jot_fn(polygamma_2), jot_fn(polygamma_below)};
    for (size_t i = 0; i < sizeof f / sizeof *f; i++) {
        jot_array *x = jot_array_from(((const double[]){0.4, 1.7, 3.5}), 3);
        must(jot_check_grads(f[i], 1, JOT_FORWARD | JOT_REVERSE, 0, x));
        jot_array_release(x);
    }
}
END_TEST

START_TEST(test_borders_of_integrals)
{
    const double inf = INFINITY;
    jot_value x = NUMBERS(0, -1, inf, -inf, NAN);
    CHECK_EXACT(jot_exp1(x), inf, NAN, 0, NAN, NAN);
    CHECK(jot_expi(x), 1e-15, -inf, -0.21938393439552029, inf, 0, NAN);
    CHECK(jot_expi(NUMBERS(3e-315, 1e-290)), 1e-15, -723.63847633942618, -667.17246130337172);
    CHECK_EXACT(jot_expn(NUMBERS(1, 3, 0, 2, 2, -1.5, 2), NUMBERS(0, 0, 0, inf, -1, 1, NAN)),
                inf, 0.5, inf, 0, NAN, NAN, NAN);
    CHECK(jot_sici(x).si, 1e-15, 0, -0.946083070367183, M_PI_2, -M_PI_2, NAN);
    CHECK(jot_sici(x).ci, 1e-15, -inf, 0.33740392290096814, 0, NAN, NAN);
    CHECK(jot_spence(NUMBERS(0, 1, -1, inf, NAN)), 1e-15, M_PI * M_PI / 6, 0, NAN, -inf, NAN);
    CHECK(jot_dawsn(x), 1e-15, 0, -0.5380795069127684, 0, 0, NAN);
    CHECK(jot_erfcx(NUMBERS(0, inf, -inf, NAN)), 1e-15, 1, 0, inf, NAN);
    CHECK(jot_fresnel(x).s, 1e-15, 0, -0.43825914739035476, 0.5, -0.5, NAN);
    CHECK(jot_fresnel(x).c, 1e-15, 0, -0.77989340037682285, 0.5, -0.5, NAN);
    CHECK_EXACT(jot_bessel_jn(NUMBERS(0, 3, 2, 1.5, 0), NUMBERS(0, 0, inf, 1, NAN)), 1, 0, 0,
                NAN, NAN);
    CHECK_EXACT(jot_hyp1f1(NUMBERS(0, 1, 1), NUMBERS(0, 0, 1), NUMBERS(1, 1, NAN)), 1, inf,
                NAN);
    CHECK_EXACT(jot_hyp2f1(NUMBERS(0, 1, -2, -1, 1, 1), NUMBERS(2, 1, 1, 1, 1, 2),
                           NUMBERS(0, -1, -2, -3, 2, 1), NUMBERS(2, 0.5, 0.5, 3, NAN, 1)),
                1, inf, inf, 2, NAN, inf);
    CHECK(jot_hyp2f1(0.5, 0.7, 2, NUMBERS(-1e300)), 2e-15, 3.9907485249069808e-150);
    CHECK(jot_owens_t(NUMBERS(0, 0, inf, 1, NAN), NUMBERS(1, inf, 1, -inf, 1)), 1e-15, 0.125,
          0.25, 0, -0.25 * erfc(M_SQRT1_2), NAN);
    jot_value w = jot_wofz(jot_complex(NUMBERS(0, -inf, 0, NAN), NUMBERS(0, 0, inf, 0)));
    CHECK_EXACT(jot_real(w), 1, 0, 0, NAN);
    CHECK_EXACT(jot_imag(w), 0, 0, 0, NAN);
    CHECK_EXACT(jot_real(jot_sph_harm_y(NUMBERS(2, -1), NUMBERS(3, 0), 1, 1)), 0, 0);
    CHECK_TYPE(jot_wofz(jot_full(JOT_F32, 1, 2)), "c64[2]");
    CHECK_EXACT(jot_comb(NUMBERS(3, 3, -1), NUMBERS(4, -1, 0)), 0, 0, 0);
    CHECK(jot_bernoulli(JOT_F64, 8), 1e-15, 1, -0.5, 1.0 / 6, 0, -1.0 / 30, 0, 1.0 / 42, 0,
          -1.0 / 30);
    CHECK_EXACT(jot_bernoulli(JOT_F64, 0), 1);
    CHECK(jot_div(jot_take(jot_bernoulli(JOT_F64, 30), jot_add(jot_arange(JOT_I32, 2), 29)),
                  601580873.900642368),
          1e-15, 0, 1);
}
END_TEST

// As jax.nn.
START_TEST(test_activations)
{
    jot_value x = NUMBERS(-7, -2, -0.5, 0, 0.75, 1.5, 8);
    CHECK_EXACT(jot_relu6(x), 0, 0, 0, 0, 0.75, 1.5, 6);
    CHECK_EXACT(jot_leaky_relu(x, 0.5), -3.5, -1, -0.25, 0, 0.75, 1.5, 8);
    CHECK(jot_elu(x, 2), 1e-15, 2 * expm1(-7), 2 * expm1(-2), 2 * expm1(-0.5), 0, 0.75, 1.5, 8);
    CHECK(jot_celu(x, 2), 1e-15, 2 * expm1(-3.5), 2 * expm1(-1), 2 * expm1(-0.25), 0, 0.75, 1.5,
          8);
    CHECK(jot_selu(NUMBERS(-1, 2)), 1e-15, -1.1113307378125627, 2.101401974710961);
    CHECK(jot_gelu_exact(NUMBERS(-1, 2)), 1e-15, -0.15865525393145707, 1.9544997361036416);
    CHECK(jot_hard_sigmoid(x), 1e-15, 0, 1.0 / 6, 2.5 / 6, 0.5, 3.75 / 6, 4.5 / 6, 1);
    CHECK(jot_hard_silu(x), 1e-15, 0, -2.0 / 6, -1.25 / 6, 0, 0.75 * 3.75 / 6, 1.5 * 4.5 / 6,
          8);
    CHECK_EXACT(jot_hard_tanh(x), -1, -1, -0.5, 0, 0.75, 1, 1);
    CHECK(jot_log_sigmoid(NUMBERS(-800, 0, 800)), 1e-15, -800, -log(2), 0);
    CHECK(jot_mish(NUMBERS(-1, 2)), 1e-15, -0.30340146137410895, 1.9439589595339946);
    CHECK_EXACT(jot_soft_sign(NUMBERS(-1, 3)), -0.5, 0.75);
    CHECK_EXACT(jot_squareplus(NUMBERS(-1.5, 0), 4), 0.5, 1);
    CHECK_EXACT(jot_sparse_plus(x), 0, 0, 0.0625, 0.25, 0.765625, 1.5, 8);
    CHECK_EXACT(jot_sparse_sigmoid(x), 0, 0, 0.25, 0.5, 0.875, 1, 1);
    CHECK(jot_log1mexp(NUMBERS(0.125, 2)), 1e-15, log(-expm1(-0.125)), log1p(-exp(-2)));
    CHECK(jot_glu(NUMBERS(1, 2, 0, 800), 0), 1e-15, 0.5, 2);
    CHECK(jot_standardize(NUMBERS(1, 3), 0), 1e-12, -1 / sqrt(1.00001), 1 / sqrt(1.00001));
    CHECK(jot_logmeanexp(NUMBERS(1, 1, 1)), 1e-15, 1);
}
END_TEST

// Without slope where they end, as in JAX.
START_TEST(test_slopes_at_ends)
{
    const jot_function f[] = {jot_fn(jot_relu6), jot_fn(jot_hard_sigmoid),
                              jot_fn(jot_hard_silu)};
    jot_value x[] = {NUMBERS(0, 6, 5, INFINITY), NUMBERS(-3, 3, 2, INFINITY),
                     NUMBERS(-3, 3, 3.5, INFINITY)};
    const double want[3][4] = {{0, 0, 1, 0}, {0, 0, 1.0 / 6, 0}, {0, 1, 1, 1}};
    for (int i = 0; i < 3; i++) {
        jot_value slope;
        jot_apply(jot_vmap(jot_grad(f[i])), 1, &x[i], 1, &slope);
        CHECK(slope, 1e-15, want[i][0], want[i][1], want[i][2], want[i][3]);
    }
}
END_TEST

// Others that are made of steps.
#define MADE_OF_STEPS(X)                                                                       \
    X(logaddexp, 2, 0.6, 1.7, 0, 0)                                                            \
    X(logaddexp2, 2, 0.6, 1.7, 0, 0)                                                           \
    X(copysign, 2, 0.6, -1.7, 0, 0)                                                            \
    X(hypot, 2, 0.6, -1.7, 0, 0)                                                               \
    X(celu, 2, -0.6, 1.7, 0, 0)                                                                \
    X(squareplus, 2, -0.6, 1.7, 0, 0)                                                          \
    X(soft_sign, 1, 0.6, 0, 0, 0)                                                              \
    X(softplus, 1, 0.6, 0, 0, 0)                                                               \
    X(mish, 1, 0.6, 0, 0, 0)                                                                   \
    X(log_sigmoid, 1, 0.6, 0, 0, 0)
MADE_OF_STEPS(FUNCTION)
static const struct special made_of_steps[] = {MADE_OF_STEPS(ROW)};
enum { STEPS_COUNT = sizeof made_of_steps / sizeof made_of_steps[0] };

static jot_value called(const struct special *s, const jot_value *v)
{
    return s->arity == 1 ? ((jot_value(*)(jot_value))s->f)(v[0])
           : s->arity == 2
               ? ((jot_value(*)(jot_value, jot_value))s->f)(v[0], v[1])
               : ((jot_value(*)(jot_value, jot_value, jot_value))s->f)(v[0], v[1], v[2]);
}

// C numbers have the digits of the type that they meet, before and behind the function.
START_TEST(test_numbers)
{
    const struct special *s =
        _i < SPECIAL_COUNT ? &specials[_i] : &made_of_steps[_i - SPECIAL_COUNT];
    jot_value number[3], wide[3];
    for (int k = 0; k < 3; k++) {
        double x = s->x[k] == trunc(s->x[k]) ? s->x[k] : s->x[k] + 1e-3;
        number[k] = jot_from(x);
        wide[k] = jot_convert(x, JOT_F64);
    }
    jot_value want = called(s, wide), zero = jot_convert(0.0, JOT_F64);
    for (int k = 0; k < s->arity; k++) {
        jot_value in[] = {number[0], number[1], number[2]};
        in[k] = wide[k];
        CHECK_TYPE(called(s, in), "f64[]");
        CHECK_EXACT(jot_equal(called(s, in), want), 1);
    }
    CHECK_TYPE(called(s, number), "f32[]");
    CHECK(jot_div(jot_add(called(s, number), zero), want), 1e-15, 1);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_sampled_test(t, test_values, 0, SPECIAL_COUNT);
    tcase_add_sampled_test(t, test_derivatives, 0, SPECIAL_COUNT);
    tcase_add_sampled_test(t, test_maps, 0, SPECIAL_COUNT);
    tcase_add_sampled_test(t, test_numbers, 0, SPECIAL_COUNT + STEPS_COUNT);
    tcase_add_test(t, test_types_and_shapes);
    tcase_add_test(t, test_borders_of_incomplete_gamma);
    tcase_add_test(t, test_borders_of_betainc_and_logarithms);
    tcase_add_test(t, test_borders);
    tcase_add_test(t, test_derivatives_of_orders);
    tcase_add_test(t, test_borders_of_integrals);
    tcase_add_test(t, test_activations);
    tcase_add_test(t, test_slopes_at_ends);
    tcase_add_test(t, test_errors);
}

int main(void) { return run_by_both("special", add_tests); }
