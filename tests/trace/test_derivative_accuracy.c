// SPDX-License-Identifier: Apache-2.0
// First and second derivatives, in forward and reverse mode, over the whole range of numbers,
// against mpmath.
//
// An error is in units in the last place of the derivative, over its condition: the sum over
// the operands of the relative change of the derivative over that of the operand, at least 1.
// Where a derivative is computed from the value, as 1 - t^2 of t = tanh(x), it is in units of 1
// for derivatives below 1.  A derivative below the normal numbers is in units of the least of
// these.  Where the value itself or a derivative is beyond the range, or within a factor of 4
// of its end, the derivative may be infinite or NaN.
//
// JOT_TEST_VERBOSE=1 prints the largest errors of each function, and every point beyond the bound.
#include "special_support.h"
#include "support/sample.h"

enum { MOST_OPERANDS = 4, MOST_DERIVATIVES = 14, MOST_POINTS = 1000 };

// First derivatives in each operand, and then second ones, in the order 00, 01, ..., 11, ...
struct point {
    const char *name;
    double x[MOST_OPERANDS], want[MOST_DERIVATIVES], condition[MOST_DERIVATIVES];
};

static const struct point points[] = {
#define L(...) {__VA_ARGS__}
#define POINT(name, x, want, condition) {#name, x, want, condition},
#include "derivative_accuracy.def"
#undef POINT
#undef L
};
enum { POINT_COUNT = sizeof points / sizeof *points };

#define STACK(n, x) jot_stack_list(0, n, x)
static jot_value last(jot_value x) { return jot_take(x, 1, 0); }
static jot_value first(jot_value x) { return jot_take(x, 0, 0); }

// Derivatives that are in units of 1: none, the second ones, both.
enum { OF_OWN, SECOND_OF_1, BOTH_OF_1 };

// name, operands, the function, allowed units of first and second derivatives, 0 for second
// ones that there are not
#define FUNCTIONS(X)                                                                           \
    X(square, 1, jot_square(x[0]), 6, 16, OF_OWN)                                              \
    X(reciprocal, 1, jot_reciprocal(x[0]), 6, 16, OF_OWN)                                      \
    X(integer_pow_3, 1, jot_integer_pow(x[0], 3), 6, 16, OF_OWN)                               \
    X(integer_pow_m2, 1, jot_integer_pow(x[0], -2), 6, 16, OF_OWN)                             \
    X(integer_pow_m3, 1, jot_integer_pow(x[0], -3), 6, 16, OF_OWN)                             \
    X(sqrt, 1, jot_sqrt(x[0]), 6, 16, OF_OWN)                                                  \
    X(rsqrt, 1, jot_rsqrt(x[0]), 6, 16, OF_OWN)                                                \
    X(cbrt, 1, jot_cbrt(x[0]), 6, 16, OF_OWN)                                                  \
    X(exp, 1, jot_exp(x[0]), 6, 16, OF_OWN)                                                    \
    X(exp2, 1, jot_exp2(x[0]), 6, 16, OF_OWN)                                                  \
    X(expm1, 1, jot_expm1(x[0]), 6, 16, OF_OWN)                                                \
    X(log, 1, jot_log(x[0]), 6, 16, OF_OWN)                                                    \
    X(log2, 1, jot_log2(x[0]), 6, 16, OF_OWN)                                                  \
    X(log10, 1, jot_log10(x[0]), 6, 16, OF_OWN)                                                \
    X(log1p, 1, jot_log1p(x[0]), 6, 16, OF_OWN)                                                \
    X(sin, 1, jot_sin(x[0]), 6, 16, OF_OWN)                                                    \
    X(cos, 1, jot_cos(x[0]), 6, 16, OF_OWN)                                                    \
    X(tan, 1, jot_tan(x[0]), 6, 16, OF_OWN)                                                    \
    X(asin, 1, jot_asin(x[0]), 6, 16, OF_OWN)                                                  \
    X(acos, 1, jot_acos(x[0]), 6, 16, OF_OWN)                                                  \
    X(atan, 1, jot_atan(x[0]), 6, 16, OF_OWN)                                                  \
    X(sinh, 1, jot_sinh(x[0]), 6, 16, OF_OWN)                                                  \
    X(cosh, 1, jot_cosh(x[0]), 6, 16, OF_OWN)                                                  \
    X(tanh, 1, jot_tanh(x[0]), 6, 16, BOTH_OF_1)                                               \
    X(asinh, 1, jot_asinh(x[0]), 6, 16, OF_OWN)                                                \
    X(acosh, 1, jot_acosh(x[0]), 6, 16, OF_OWN)                                                \
    X(atanh, 1, jot_atanh(x[0]), 6, 16, OF_OWN)                                                \
    X(logistic, 1, jot_logistic(x[0]), 6, 16, BOTH_OF_1)                                       \
    X(cospi, 1, jot_cospi(x[0]), 6, 16, OF_OWN)                                                \
    X(sinc, 1, jot_sinc(x[0]), 6, 16, OF_OWN)                                                  \
    X(erf, 1, jot_erf(x[0]), 6, 16, OF_OWN)                                                    \
    X(erfc, 1, jot_erfc(x[0]), 6, 16, OF_OWN)                                                  \
    X(erf_inv, 1, jot_erf_inv(x[0]), 6, 16, OF_OWN)                                            \
    X(lgamma, 1, jot_lgamma(x[0]), 6, 16, OF_OWN)                                              \
    X(gamma, 1, jot_gamma(x[0]), 6, 16, OF_OWN)                                                \
    X(digamma, 1, jot_digamma(x[0]), 6, 16, OF_OWN)                                            \
    X(div, 2, jot_div(x[0], x[1]), 6, 16, OF_OWN)                                              \
    X(mul, 2, jot_mul(x[0], x[1]), 6, 16, OF_OWN)                                              \
    X(fma, 3, jot_fma(x[0], x[1], x[2]), 6, 16, OF_OWN)                                        \
    X(rem, 2, jot_rem(x[0], x[1]), 6, 16, OF_OWN)                                              \
    X(pow, 2, jot_pow(x[0], x[1]), 6, 16, OF_OWN)                                              \
    X(atan2, 2, jot_atan2(x[0], x[1]), 6, 16, OF_OWN)                                          \
    X(hypot, 2, jot_hypot(x[0], x[1]), 6, 16, OF_OWN)                                          \
    X(zeta, 2, jot_zeta(x[0], x[1]), 6, 256, OF_OWN)                                           \
    X(logaddexp, 2, jot_logaddexp(x[0], x[1]), 6, 16, SECOND_OF_1)                             \
    X(logaddexp2, 2, jot_logaddexp2(x[0], x[1]), 6, 16, SECOND_OF_1)                           \
    X(softplus, 1, jot_softplus(x[0]), 6, 16, SECOND_OF_1)                                     \
    X(log_sigmoid, 1, jot_log_sigmoid(x[0]), 6, 16, SECOND_OF_1)                               \
    X(silu, 1, jot_silu(x[0]), 24, 16, SECOND_OF_1)                                            \
    X(gelu, 1, jot_gelu(x[0]), 16, 16, BOTH_OF_1)                                              \
    X(gelu_exact, 1, jot_gelu_exact(x[0]), 6, 16, OF_OWN)                                      \
    X(mish, 1, jot_mish(x[0]), 16, 16, SECOND_OF_1)                                            \
    X(elu, 2, jot_elu(x[0], x[1]), 6, 16, OF_OWN)                                              \
    X(celu, 2, jot_celu(x[0], x[1]), 6, 16, OF_OWN)                                            \
    X(selu, 1, jot_selu(x[0]), 6, 16, OF_OWN)                                                  \
    X(soft_sign, 1, jot_soft_sign(x[0]), 6, 16, OF_OWN)                                        \
    X(squareplus, 2, jot_squareplus(x[0], x[1]), 6, 16, OF_OWN)                                \
    X(sparse_plus, 1, jot_sparse_plus(x[0]), 6, 16, OF_OWN)                                    \
    X(log1mexp, 1, jot_log1mexp(x[0]), 6, 16, OF_OWN)                                          \
    X(logsumexp, 2, jot_logsumexp(STACK(2, x), 0), 6, 16, SECOND_OF_1)                         \
    X(logmeanexp, 2, jot_logmeanexp(STACK(2, x), 0), 6, 16, SECOND_OF_1)                       \
    X(cumlogsumexp, 2, last(jot_cumlogsumexp(STACK(2, x), 0)), 6, 16, SECOND_OF_1)             \
    X(softmax, 2, first(jot_softmax(STACK(2, x), 0)), 6, 16, BOTH_OF_1)                        \
    X(log_softmax, 2, first(jot_log_softmax(STACK(2, x), 0)), 6, 16, BOTH_OF_1)                \
    X(norm, 2, jot_norm(STACK(2, x), 0), 6, 64, OF_OWN)                                        \
    X(prod, 2, jot_prod(STACK(2, x), 0), 6, 16, OF_OWN)                                        \
    X(var, 3, jot_var(STACK(3, x), 0), 6, 16, OF_OWN)                                          \
    X(std, 3, jot_std(STACK(3, x), 0), 6, 512, OF_OWN)                                         \
    X(erfcx, 1, jot_erfcx(x[0]), 6, 16, OF_OWN)                                                \
    X(dawsn, 1, jot_dawsn(x[0]), 6, 16, OF_OWN)                                                \
    X(owens_t, 2, jot_owens_t(x[0], x[1]), 6, 16, OF_OWN)                                      \
    X(fresnel_s, 1, jot_fresnel(x[0]).s, 6, 16, OF_OWN)                                        \
    X(fresnel_c, 1, jot_fresnel(x[0]).c, 6, 16, OF_OWN)                                        \
    X(exp1, 1, jot_exp1(x[0]), 6, 16, OF_OWN)                                                  \
    X(expn_0, 1, jot_expn(0, x[0]), 6, 16, OF_OWN)                                             \
    X(expn_1, 1, jot_expn(1, x[0]), 6, 16, OF_OWN)                                             \
    X(expn_2, 1, jot_expn(2, x[0]), 6, 16, OF_OWN)                                             \
    X(expn_5, 1, jot_expn(5, x[0]), 6, 16, OF_OWN)                                             \
    X(expi, 1, jot_expi(x[0]), 6, 16, OF_OWN)                                                  \
    X(si, 1, jot_sici(x[0]).si, 6, 16, OF_OWN)                                                 \
    X(ci, 1, jot_sici(x[0]).ci, 6, 16, OF_OWN)                                                 \
    X(spence, 1, jot_spence(x[0]), 6, 16, OF_OWN)                                              \
    X(factorial, 1, jot_factorial(x[0]), 6, 16, OF_OWN)                                        \
    X(multigammaln, 1, jot_multigammaln(x[0], 3), 6, 16, OF_OWN)                               \
    X(polygamma_1, 1, jot_polygamma(1, x[0]), 6, 16, OF_OWN)                                   \
    X(polygamma_2, 1, jot_polygamma(2, x[0]), 6, 16, OF_OWN)                                   \
    X(gammainc, 2, jot_gammainc(x[0], x[1]), 6, 24, OF_OWN)                                    \
    X(gammaincc, 2, jot_gammaincc(x[0], x[1]), 6, 24, OF_OWN)                                  \
    X(beta, 2, jot_beta(x[0], x[1]), 6, 1024, OF_OWN)                                          \
    X(betaln, 2, jot_betaln(x[0], x[1]), 6, 16, OF_OWN)                                        \
    X(poch, 2, jot_poch(x[0], x[1]), 6, 16, OF_OWN)                                            \
    X(comb, 2, jot_comb(x[0], x[1]), 6, 16, OF_OWN)                                            \
    X(betainc, 3, jot_betainc(x[0], x[1], x[2]), 6, 16, OF_OWN)                                \
    X(i0, 1, jot_i0(x[0]), 6, 16, OF_OWN)                                                      \
    X(i1, 1, jot_i1(x[0]), 6, 16, OF_OWN)                                                      \
    X(i0e, 1, jot_i0e(x[0]), 6, 16, OF_OWN)                                                    \
    X(i1e, 1, jot_i1e(x[0]), 6, 16, OF_OWN)                                                    \
    X(bessel_jn_0, 1, jot_bessel_jn(0, x[0]), 6, 16, OF_OWN)                                   \
    X(bessel_jn_1, 1, jot_bessel_jn(1, x[0]), 6, 16, OF_OWN)                                   \
    X(bessel_jn_3, 1, jot_bessel_jn(3, x[0]), 6, 16, OF_OWN)                                   \
    X(hyp1f1, 3, jot_hyp1f1(x[0], x[1], x[2]), 6, 16, OF_OWN)                                  \
    X(hard_silu, 1, jot_hard_silu(x[0]), 6, 16, OF_OWN)                                        \
    X(hyp2f1, 4, jot_hyp2f1(x[0], x[1], x[2], x[3]), 6, 16, OF_OWN)                            \
    X(xlogy, 2, jot_xlogy(x[0], x[1]), 6, 16, OF_OWN)                                          \
    X(xlog1py, 2, jot_xlog1py(x[0], x[1]), 6, 16, OF_OWN)                                      \
    X(entr, 1, jot_entr(x[0]), 6, 16, OF_OWN)                                                  \
    X(rel_entr, 2, jot_rel_entr(x[0], x[1]), 6, 16, OF_OWN)                                    \
    X(kl_div, 2, jot_kl_div(x[0], x[1]), 6, 16, OF_OWN)                                        \
    X(logit, 1, jot_logit(x[0]), 6, 16, OF_OWN)                                                \
    X(ndtr, 1, jot_ndtr(x[0]), 6, 16, OF_OWN)                                                  \
    X(log_ndtr, 1, jot_log_ndtr(x[0]), 6, 16, OF_OWN)                                          \
    X(ndtri, 1, jot_ndtri(x[0]), 6, 16, OF_OWN)

struct row {
    const char *name, *text;
    int arity;
    double units[2]; // of first and second derivatives
    int kind;
    void (*body)(const jot_value *x, jot_value *out, void *ctx);
};

#define BODY(f, arity, value, first, second, kind)                                             \
    static void body_##f(const jot_value *x, jot_value *out, void *ctx)                        \
    {                                                                                          \
        (void)ctx;                                                                             \
        *out = value;                                                                          \
    }
FUNCTIONS(BODY)

static const struct row rows[] = {
#define ROW(f, arity, value, first, second, kind)                                              \
    {#f, #value, arity, {first, second}, kind, body_##f},
    FUNCTIONS(ROW)
#undef ROW
};
enum { ROW_COUNT = sizeof rows / sizeof *rows };

// ---- The derivatives

enum mode { FORWARD, REVERSE, MODES };

struct slope {
    const struct row *row;
    int argument;
    enum mode mode;
};

static jot_value along(jot_function f, int n, const jot_value *x, int argument, enum mode mode)
{
    const int list[] = {argument, JOT_END};
    jot_function d =
        mode == FORWARD ? jot_jvp_of(f, "slope", list) : jot_vjp_of(f, "slope", list);
    jot_value in[MOST_OPERANDS + 1], y[2];
    for (int i = 0; i < n; i++)
        in[i] = x[i];
    in[n] = jot_ones_like(x[0]);
    jot_apply_at(d, (size_t)n + 1, in, 2, y, NULL);
    return y[1];
}

static void slope(const jot_value *x, jot_value *out, void *ctx)
{
    const struct slope *s = ctx;
    int n = s->row->arity;
    jot_function f = jot_function_uniform(s->row->name, "slope", s->row->body, n, 1, NULL);
    *out = along(f, n, x, s->argument, s->mode);
}

static int count_of(const struct row *r)
{
    int n = r->arity;
    return n + (r->units[1] > 0 ? n * (n + 1) / 2 : 0);
}

// The value, and each derivative in both modes: second ones forward and backward over backward.
static void derivatives(const jot_value *x, jot_value *out, void *ctx)
{
    const struct row *r = ctx;
    int n = r->arity;
    struct slope first[MOST_OPERANDS][MODES]; // a function is known by its context
    r->body(x, out++, NULL);
    for (int i = 0; i < n; i++) {
        for (int mode = 0; mode < MODES; mode++) {
            first[i][mode] = (struct slope){r, i, (enum mode)mode};
            slope(x, out++, &first[i][mode]);
        }
    }
    for (int i = 0; i < n && r->units[1] > 0; i++) {
        jot_function f =
            jot_function_uniform(r->name, "slope", slope, n, 1, &first[i][REVERSE]);
        for (int j = i; j < n; j++)
            for (int mode = 0; mode < MODES; mode++)
                *out++ = along(f, n, x, j, (enum mode)mode);
    }
}

// ---- Errors

static double error_of(double got, double want, double least, jot_dtype dtype)
{
    double most = dtype == JOT_F64 ? DBL_MAX : FLT_MAX;
    if (fabs(want) >= most / 4)
        return !isfinite(got) || fabs(got) > most / 8 ? 0 : INFINITY;
    if (!isfinite(got))
        return INFINITY;
    int exponent;
    frexp(fmax(fabs(want), fmax(least, dtype == JOT_F64 ? DBL_MIN : FLT_MIN)), &exponent);
    double unit = ldexp(dtype == JOT_F64 ? DBL_EPSILON : FLT_EPSILON, exponent - 1);
    return fabs(got - want) / unit;
}

// The numbers of one width that have the same value in it.
static int gather(const struct row *r, jot_dtype dtype, const struct point **out)
{
    int n = 0;
    for (const struct point *p = points; p < points + POINT_COUNT; p++) {
        bool fits = !strcmp(p->name, r->name);
        for (int i = 0; i < r->arity && dtype == JOT_F32; i++)
            fits = fits && (float)p->x[i] == p->x[i];
        ck_assert_int_lt(n, MOST_POINTS);
        if (fits)
            out[n++] = p;
    }
    return n;
}

struct worst {
    double error[2][2]; // of first and second derivatives, f32 and f64
    int count;
};

static void compare(const struct row *r, const struct point *p, int k, enum mode mode,
                    double got, jot_dtype dtype, struct worst *worst)
{
    bool is_second = k >= r->arity, is_verbose = getenv("JOT_TEST_VERBOSE") != NULL;
    double least = is_second ? r->kind != OF_OWN : r->kind == BOTH_OF_1;
    double error = error_of(got, p->want[k], least, dtype) / p->condition[k];
    double *most = &worst->error[is_second][dtype == JOT_F64];
    *most = fmax(*most, error);
    worst->count++;
    if (error <= r->units[is_second])
        return;
    char text[256];
    snprintf(text, sizeof text,
             "derivative %d of %s of %s, %s, at %.9g, %.9g, %.9g, %.9g is %.17g, not %.17g: %g",
             k, r->name, jot_dtype_name(dtype), mode == FORWARD ? "forward" : "backward",
             p->x[0], p->x[1], p->x[2], p->x[3], got, p->want[k], error);
    ck_assert_msg(is_verbose, "%s", text);
    printf("%s\n", text);
}

static void check(const struct row *r, jot_dtype dtype, struct worst *worst)
{
    static const struct point *p[MOST_POINTS];
    static double x[MOST_POINTS];
    static float narrow[MOST_POINTS];
    int n = gather(r, dtype, p), count = count_of(r), n_out = 1 + MODES * count;
    ck_assert_msg(n > 0, "no points of %s", r->name);
    jot_array *in[MOST_OPERANDS], *out[1 + MODES * MOST_DERIVATIVES] = {NULL};
    for (int i = 0; i < r->arity; i++) {
        for (int at = 0; at < n; at++)
            narrow[at] = (float)(x[at] = p[at]->x[i]);
        in[i] = dtype == JOT_F64 ? jot_array_from(x, n) : jot_array_from(narrow, n);
    }
    jot_function f =
        jot_function_uniform(r->name, "here", derivatives, r->arity, n_out, (void *)r);
    jot_executable *e = jot_jit(f);
    must(jot_call_list(e, (size_t)r->arity, in, (size_t)n_out, out));
    for (int at = 0; at < n; at++)
        for (int k = 0; k < count && isfinite(element(out[0], at)); k++)
            for (int mode = 0; mode < MODES && !isnan(p[at]->want[k]); mode++)
                compare(r, p[at], k, (enum mode)mode, element(out[1 + MODES * k + mode], at),
                        dtype, worst);
    for (int i = 0; i < r->arity; i++)
        jot_array_release(in[i]);
    for (int i = 0; i < n_out; i++)
        jot_array_release(out[i]);
    jot_executable_release(e);
}

// By the evaluator, whose bits are those of machine code, but where loops are long.
static void choose_backend(const struct row *r)
{
    bool is_long = !strncmp(r->name, "hyp", 3) && r->arity > 2;
    setenv("JOT_BACKEND", is_long ? "native" : "eval", 1);
}

START_TEST(test_row)
{
    const struct row *r = &rows[_i];
    choose_backend(r);
    struct worst w = {.count = 0};
    check(r, JOT_F32, &w);
    check(r, JOT_F64, &w);
    if (getenv("JOT_TEST_VERBOSE"))
        printf("| %s | %g | %.2f | %.2f | %g | %.2f | %.2f | %d\n", r->name, r->units[0],
               w.error[0][0], w.error[0][1], r->units[1], w.error[1][0], w.error[1][1],
               w.count);
}
END_TEST

// ---- Every function has a row

// Of numbers alone, and without a row: derivatives are 0, constant or an operand's, ...
static const char *const plain[] = {
    "add", "sub", "neg", "abs", "sign", "maximum", "minimum", "clip", "clamp", "floor", "ceil",
    "round", "round_away", "nextafter", "floor_divide", "trunc", "copysign", "fmax", "fmin",
    "heaviside", "signbit", "ldexp", "relu", "relu6", "leaky_relu", "hard_sigmoid", "hard_tanh",
    "sparse_sigmoid", "gammasgn", "where", "stop_gradient", "zeros_like", "ones_like",
    "full_like", "equal", "not_equal", "less", "less_equal", "greater", "greater_equal",
    "logical_and", "logical_or", "logical_xor", "logical_not", "is_nan", "is_inf", "is_finite",
    "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "left_shift", "right_shift",
    "right_shift_logical", "right_shift_arithmetic", "popcount", "clz", "gcd", "lcm",
    // ... those of another name, ...
    "mod", "remainder", "power", "sigmoid", "gammaln", "expit",
    // ... derivatives themselves, ...
    "gammainc_grad_a", "random_gamma_grad",
    // ... of complex numbers, ...
    "complex", "real", "imag", "conj", "angle", "wofz", "sph_harm_y",
    // ... or of whole arrays.
    "array_equal", "array_equiv", "cov", "corrcoef", "polyval", "polyadd", "polysub", "polymul",
    "poly", "roots", "vdot", "dot", "matmul", "outer"};

static bool is_known(const char *name)
{
    char call[90];
    snprintf(call, sizeof call, "jot_%s(", name);
    for (int i = 0; i < ROW_COUNT; i++)
        if (strstr(rows[i].text, call))
            return true;
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (!strcmp(plain[i], name))
            return true;
    return false;
}

// "JOT_API jot_value jot_name(jot_value x, ...": all operands are values.
static void check_header(const char *name, int *count)
{
    char path[1000], line[1000], function[80];
    snprintf(path, sizeof path, "%s/../../include/jot/%s", getenv("JOT_TEST_SOURCE"), name);
    FILE *f = fopen(path, "r");
    ck_assert_msg(f != NULL, "no %s", path);
    while (fgets(line, sizeof line, f)) {
        if (sscanf(line, "JOT_API jot_value jot_%79[a-z0-9_](jot_value", function) != 1)
            continue;
        bool all = true;
        for (const char *c = strchr(line, '('); c && *c != ')'; c = strpbrk(c + 1, ",)"))
            all = all && !strncmp(c + 1 + (*c == ','), "jot_value ", 10);
        if (!all)
            continue;
        ++*count;
        ck_assert_msg(is_known(function), "jot_%s of jot/%s has no row", function, name);
    }
    fclose(f);
}

START_TEST(test_all_have_rows)
{
    int count = 0;
    check_header("ops.h", &count);
    check_header("nn.h", &count);
    check_header("special.h", &count);
    check_header("numeric.h", &count);
    ck_assert_int_gt(count, 150);
}
END_TEST

// ---- Ends of domains, kinks, and limits

struct end {
    const char *name, *order; // "01" is the derivative in operand 1 of that in operand 0
    void (*f)(void);
    int arity;
    jot_dtype dtype;
    double x[2], want;
};

static jot_value fresnel_s(jot_value x) { return jot_fresnel(x).s; }
static jot_value fresnel_c(jot_value x) { return jot_fresnel(x).c; }

#define END(f, arity, order, dtype, x, y, want)                                                \
    {#f, order, (void (*)(void))(f), arity, JOT_##dtype, {x, y}, want}
static const struct end ends[] = {
    END(jot_entr, 1, "0", F64, 0, 0, INFINITY),
    END(jot_entr, 1, "00", F64, 0, 0, -INFINITY),
    END(jot_entr, 1, "00", F32, 1e-30, 0, -1e30),
    END(jot_entr, 1, "00", F64, 1e20, 0, -1e-20),
    END(jot_xlogy, 2, "1", F64, 2, 0, INFINITY),
    END(jot_xlogy, 2, "0", F64, 0, NAN, NAN),
    END(jot_pow, 2, "0", F64, 0, 0, 0),
    END(jot_pow, 2, "0", F64, 0, 1, 1),
    END(jot_pow, 2, "00", F64, 0, 1, 0),
    END(jot_pow, 2, "00", F64, 0, 2, 2),
    END(jot_pow, 2, "00", F32, 0, 3, 0),
    END(jot_pow, 2, "0", F64, 0, 0.5, INFINITY),
    END(jot_pow, 2, "00", F64, 0, 0.5, -INFINITY),
    END(jot_pow, 2, "01", F64, 4, 0, 0.25),
    END(jot_pow, 2, "00", F64, -3, 2, 2),
    END(jot_pow, 2, "01", F64, 0, 1, -INFINITY),
    END(jot_pow, 2, "10", F64, 0, 1, -INFINITY),
    END(jot_pow, 2, "01", F32, 0, 0, INFINITY),
    END(jot_pow, 2, "10", F32, 0, 0, INFINITY),
    END(jot_pow, 2, "11", F64, 0, 1, 0),
    END(jot_pow, 2, "0", F64, 1e-310, 0, 0),
    END(jot_pow, 2, "0", F32, 0x1p-140, 0x1p-140, 1),
    END(jot_pow, 2, "1", F64, 0.5, INFINITY, 0),
    END(jot_zeta, 2, "0", F32, 20000, 1, 0),
    END(jot_zeta, 2, "0", F64, 1e300, 1, 0),
    END(jot_gammaincc, 2, "0", F32, 8, 100, 2.0620230712191076e-33),
    END(jot_gammaincc, 2, "1", F32, 8, 100, -7.3811031270254682e-34),
    END(jot_gammaincc, 2, "0", F64, 8, 740, 4.6820275892388022e-305),
    END(jot_gammainc, 2, "1", F64, 8, 740, 1.0098919101836661e-305),
    END(jot_sqrt, 1, "0", F64, 0, 0, INFINITY),
    END(jot_sqrt, 1, "00", F64, 0, 0, -INFINITY),
    END(jot_log, 1, "0", F64, 0, 0, INFINITY),
    END(jot_log, 1, "0", F64, INFINITY, 0, 0),
    END(jot_log, 1, "00", F64, 0, 0, -INFINITY),
    END(jot_rsqrt, 1, "0", F64, INFINITY, 0, 0),
    END(jot_expm1, 1, "0", F64, -INFINITY, 0, 0),
    END(jot_expm1, 1, "00", F64, -700, 0, 9.8596765437597708e-305),
    END(jot_asin, 1, "0", F64, 1, 0, INFINITY),
    END(jot_asin, 1, "00", F64, -1, 0, -INFINITY),
    END(jot_acosh, 1, "0", F64, 1, 0, INFINITY),
    END(jot_acosh, 1, "0", F64, INFINITY, 0, 0),
    END(jot_acosh, 1, "0", F32, 1e20, 0, 1e-20),
    END(jot_asinh, 1, "0", F64, INFINITY, 0, 0),
    END(jot_asinh, 1, "0", F64, -1.7e308, 0, 5.8823529411764706e-309),
    END(jot_asinh, 1, "0", F32, 1e20, 0, 1e-20),
    END(jot_asinh, 1, "00", F64, 0, 0, 0),
    END(jot_atan, 1, "0", F64, -INFINITY, 0, 0),
    END(jot_atan, 1, "00", F64, INFINITY, 0, 0),
    END(jot_tanh, 1, "00", F64, INFINITY, 0, 0),
    END(jot_logistic, 1, "00", F64, INFINITY, 0, 0),
    END(jot_atan2, 2, "0", F32, 0, 1e-30, 1e30),
    END(jot_atan2, 2, "1", F32, 0, 1e-30, 0),
    END(jot_atan2, 2, "0", F64, 1, -INFINITY, 0),
    END(jot_hypot, 2, "0", F64, 1e200, 1e200, 0.70710678118654752),
    END(jot_hypot, 2, "1", F64, 3e-200, 4e-200, 0.8),
    END(jot_hypot, 2, "0", F64, 1.2e308, 1.2e308, 0.70710678118654752),
    END(jot_hypot, 2, "0", F64, 5e-324, 5e-324, 0.70710678118654752),
    END(jot_hypot, 2, "0", F64, -INFINITY, 1, -1),
    END(jot_hypot, 2, "1", F64, INFINITY, 1, 0),
    END(jot_hypot, 2, "0", F64, 0, 0, 0.5),
    END(jot_rem, 2, "1", F64, 0.6, 0.2, -2), // 0.6 / 0.2 is rounded up to 3
    END(jot_div, 2, "1", F64, 1e200, 1e200, -1e-200),
    END(jot_sinc, 1, "0", F64, 0, 0, 0),
    END(jot_sinc, 1, "00", F64, 0, 0, -3.2898681336964529),
    END(jot_sinc, 1, "0", F64, 1e10, 0, 1e-10),
    END(jot_logaddexp, 2, "0", F64, 1e308, -1e308, 1),
    END(jot_soft_sign, 1, "0", F64, 0, 0, 1),
    END(jot_soft_sign, 1, "0", F64, 1e100, 0, 1e-200),
    END(jot_gelu, 1, "0", F32, 1e30, 0, 1),
    END(jot_gelu, 1, "0", F32, -1e30, 0, 0),
    END(jot_celu, 2, "1", F64, 0, 1, 0),
    END(jot_squareplus, 2, "0", F64, -1e200, 4, 0),
    END(jot_squareplus, 2, "0", F64, 1e200, 4, 1),
    END(jot_squareplus, 2, "1", F64, 3, 0, 0.083333333333333333),
    END(jot_ndtri, 1, "0", F64, 0, 0, INFINITY),
    END(jot_ndtri, 1, "0", F64, 1, 0, INFINITY),
    END(jot_ndtri, 1, "00", F64, 0.5, 0, 0),
    END(jot_erf_inv, 1, "0", F64, -1, 0, INFINITY),
    END(jot_spence, 1, "0", F64, 1, 0, -1),
    END(jot_spence, 1, "00", F64, 1, 0, 0.5),
    END(jot_dawsn, 1, "0", F64, 1e8, 0, -5e-17),
    END(jot_dawsn, 1, "00", F64, -INFINITY, 0, 0),
    END(jot_rel_entr, 2, "0", F64, 1e200, 1e-200, 922.03403719761827),
    END(jot_logit, 1, "0", F64, 0, 0, INFINITY),
    END(jot_owens_t, 2, "1", F64, 0, 1e300, 0),
    END(jot_owens_t, 2, "1", F64, 1e-300, 1e300, 0),
    END(jot_owens_t, 2, "1", F64, 0, INFINITY, 0),
    END(jot_owens_t, 2, "0", F64, INFINITY, 0, 0),
    END(jot_gammainc, 2, "0", F64, 2, 5e-324, 0),
    END(jot_gammainc, 2, "0", F32, 30, 1e-45, 0),
    END(jot_gammainc, 2, "0", F64, 0, 1, -0.21938393439552027),
    END(jot_gammaincc, 2, "0", F32, 0, 0.5, 0.55977359477616081),
    END(jot_expi, 1, "0", F64, 712, 0, 2.3184146982986436e306),
    END(jot_expi, 1, "0", F32, 91, 0, 3.6454946135557611e37),
    END(jot_expi, 1, "0", F64, INFINITY, 0, INFINITY),
    END(jot_expi, 1, "00", F64, INFINITY, 0, INFINITY),
    END(fresnel_s, 1, "0", F64, 1e300, 0, 0),
    END(fresnel_s, 1, "00", F64, 1e300, 0, 3.1415926535897932e300),
    END(fresnel_c, 1, "0", F32, -1e30, 0, 1),
    END(jot_poch, 2, "0", F64, 0, 2, 1),
    END(jot_poch, 2, "0", F64, 0, 0.5, 1.7724538509055160),
    END(jot_poch, 2, "0", F64, DBL_MAX, DBL_MAX, INFINITY),
    END(jot_poch, 2, "1", F64, DBL_MAX, DBL_MAX, INFINITY),
    END(jot_poch, 2, "0", F32, FLT_MAX, FLT_MAX, INFINITY),
};
enum { END_COUNT = sizeof ends / sizeof *ends };

static void end_slope(const jot_value *x, jot_value *out, void *ctx)
{
    const struct end *e = ctx;
    jot_function f = jot_function_plain(e->name, "end", e->arity, e->f);
    *out = along(f, e->arity, x, e->order[0] - '0', REVERSE);
}

START_TEST(test_end)
{
    struct end e = ends[_i];
    jot_value x[2];
    for (int i = 0; i < e.arity; i++)
        x[i] = jot_full(e.dtype, e.x[i]);
    for (int mode = 0; mode < MODES; mode++) {
        jot_function f = e.order[1]
                             ? jot_function_uniform(e.name, "end", end_slope, e.arity, 1, &e)
                             : jot_function_plain(e.name, "end", e.arity, e.f);
        jot_value y = along(f, e.arity, x, e.order[strlen(e.order) - 1] - '0', mode);
        jot_array *a = NULL;
        must(jot_eval(y, &a));
        double got = element(a, 0), epsilon = e.dtype == JOT_F64 ? DBL_EPSILON : FLT_EPSILON;
        bool is_exact = !isfinite(e.want) || e.want == 0;
        bool same = isnan(e.want) ? isnan(got) : got == e.want;
        ck_assert_msg(same || (!is_exact && fabs(got - e.want) <= 2 * epsilon * fabs(e.want)),
                      "derivative %s of %s, %s, at %g, %g is %.17g, not %.17g", e.order, e.name,
                      mode == FORWARD ? "forward" : "backward", e.x[0], e.x[1], got, e.want);
        jot_array_release(a);
    }
}
END_TEST

// ---- NaN and 0
//
// First, second and third derivatives in one operand, backward and then forward over it.

struct chain {
    const struct row *row;
    const struct chain *inner; // NULL: of the function itself
    int argument;
};

static void chain_slope(const jot_value *x, jot_value *out, void *ctx)
{
    const struct chain *c = ctx;
    int n = c->row->arity;
    jot_function f =
        jot_function_uniform(c->row->name, "chain", c->inner ? chain_slope : c->row->body, n, 1,
                             (void *)(uintptr_t)c->inner);
    *out = along(f, n, x, c->argument, c->inner ? FORWARD : REVERSE);
}

// The point of the row that is nearest to 1.
static const struct point *middle_of(const struct row *r)
{
    const struct point *best = NULL;
    double least = INFINITY;
    for (const struct point *p = points; p < points + POINT_COUNT; p++) {
        double away = strcmp(p->name, r->name) ? INFINITY : 0;
        for (int i = 0; i < r->arity; i++)
            away = fmax(away, fabs(log(fabs(p->x[i]))));
        if (away < least) {
            least = away;
            best = p;
        }
    }
    return best;
}

// An operand is near the point, NaN, 0, and beside 0.
enum { MIDDLE, LARGER, SMALLER, AT_NAN, AT_0, BELOW_0, RIGHT, FURTHER, LEFT, POINTS };

static void check_points(const struct row *r, int argument, int order, const double *y)
{
    bool varies = !isnan(y[MIDDLE]) && (y[MIDDLE] != y[LARGER] || y[MIDDLE] != y[SMALLER]);
    bool is_free = varies && (!isnan(y[LARGER]) || !isnan(y[SMALLER]));
    double near = 1e-3 * (1e-3 + fabs(y[RIGHT]));
    bool is_smooth = fabs(y[RIGHT] - y[FURTHER]) <= near / 10 &&
                     (isnan(y[LEFT]) || fabs(y[RIGHT] - y[LEFT]) <= near / 10);
    ck_assert_msg(!is_free || isnan(y[AT_NAN]), "derivative %d of %s in %d at NaN is %g", order,
                  r->name, argument, y[AT_NAN]);
    for (int k = AT_0; is_smooth && k <= (isnan(y[LEFT]) ? AT_0 : BELOW_0); k++)
        ck_assert_msg(isnan(y[k]) || fabs(y[k] - y[RIGHT]) <= near,
                      "derivative %d of %s in %d at %g is %g, beside it %g", order, r->name,
                      argument, k == AT_0 ? 0.0 : -0.0, y[k], y[RIGHT]);
}

START_TEST(test_nan_and_0)
{
    enum { ORDERS = 3 };
    const struct row *r = &rows[_i];
    const struct point *p = middle_of(r);
    choose_backend(r);
    for (int i = 0; i < r->arity; i++) {
        double b = p->x[i],
               of_i[POINTS] = {b, 1.25 * b, 0.8 * b, NAN, 0, -0.0, 1e-7, 2e-7, -1e-7};
        jot_array *in[MOST_OPERANDS], *out = NULL;
        struct chain chain[ORDERS];
        for (int j = 0; j < r->arity; j++) {
            double x[POINTS];
            for (int k = 0; k < POINTS; k++)
                x[k] = j == i ? of_i[k] : p->x[j];
            in[j] = jot_array_from(x, POINTS);
        }
        for (int order = 0; order < ORDERS; order++) {
            chain[order] = (struct chain){r, order ? &chain[order - 1] : NULL, i};
            jot_executable *e = jot_jit(
                jot_function_uniform(r->name, "here", chain_slope, r->arity, 1, &chain[order]));
            must(jot_call_list(e, (size_t)r->arity, in, 1, &out));
            double y[POINTS];
            for (int k = 0; k < POINTS; k++)
                y[k] = element(out, k);
            check_points(r, i, order + 1, y);
            jot_array_release(out);
            jot_executable_release(e);
        }
        for (int j = 0; j < r->arity; j++)
            jot_array_release(in[j]);
    }
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_sampled_test(t, test_row, 0, ROW_COUNT);
    tcase_add_sampled_test(t, test_nan_and_0, 0, ROW_COUNT);
    tcase_add_test(t, test_all_have_rows);
    tcase_add_loop_test(t, test_end, 0, END_COUNT);
}

int main(void)
{
    setenv("JOT_BACKEND", "eval", 1);
    return run_suite("derivative_accuracy", add_tests);
}
