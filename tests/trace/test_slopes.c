// SPDX-License-Identifier: Apache-2.0
// Derivatives where slopes are infinite, zero or NaN: zeros of paths that are not taken stay zeros,
// others multiply like numbers, and forward and reverse mode agree.
#include "support/sample.h"
#include "trace_support.h"

#include <float.h>
#include <jot/decompose.h>
#include <jot/fft.h>
#include <jot/nn.h>
#include <jot/numeric.h>
#include <jot/ordering.h>
#include <jot/special.h>
#include <jot/windows.h>

enum { N = 4 };

static const double specials[] = {NAN, INFINITY, -INFINITY, 0, -0.0, 1, -1, 2, 0.5, -2.5};
enum { SPECIALS = sizeof specials / sizeof *specials };

// -- Forward and reverse ----------------------------------------------------------------------

static jot_value other(jot_value x) { return jot_flip(x, 0); }
static jot_value segments(void) { return jot_stack(0, 1, 0, 1, 3); }

static jot_value looped(jot_value x)
{
    jot_value y = other(x);
    JOT_FOR (i, 3, x, y) {
        x = jot_sqrt(jot_maximum(jot_mul(x, y), 0.0));
        y = jot_where(jot_greater(y, 1.0), jot_log(y), jot_div(1.0, x));
    }
    return y;
}
static jot_value branched(jot_value x)
{
    jot_value y;
    JOT_IF (jot_greater(jot_take(x, 0), 0.0), y) {
        y = jot_log(x);
    } else {
        y = jot_at_set(jot_sqrt(x), 1, jot_take(x, 3));
    }
    return jot_div(y, other(x));
}

#define FUNCTIONS(X)                                                                           \
    X(max, jot_max(x))                                                                         \
    X(min, jot_min(x))                                                                         \
    X(ptp, jot_ptp(x))                                                                         \
    X(mean, jot_mean(x))                                                                       \
    X(var, jot_var(x))                                                                         \
    X(std, jot_std(x))                                                                         \
    X(prod, jot_prod(x))                                                                       \
    X(norm, jot_norm(x))                                                                       \
    X(norm_1, jot_vector_norm(x, 1))                                                           \
    X(norm_3, jot_vector_norm(x, 3))                                                           \
    X(norm_inf, jot_vector_norm(x, INFINITY))                                                  \
    X(norm_minus_inf, jot_vector_norm(x, -INFINITY))                                           \
    X(median, jot_median(x))                                                                   \
    X(quantile, jot_quantile(x, 0.4))                                                          \
    X(nanmax, jot_nanmax(x))                                                                   \
    X(nanmean, jot_nanmean(x))                                                                 \
    X(nanstd, jot_nanstd(x))                                                                   \
    X(nanmedian, jot_nanmedian(x))                                                             \
    X(logsumexp, jot_logsumexp(x))                                                             \
    X(softmax, jot_softmax(x, 0))                                                              \
    X(log_softmax, jot_log_softmax(x, 0))                                                      \
    X(logaddexp, jot_logaddexp(x, other(x)))                                                   \
    X(hypot, jot_hypot(x, other(x)))                                                           \
    X(atan2, jot_atan2(x, other(x)))                                                           \
    X(pow, jot_pow(x, other(x)))                                                               \
    X(divide, jot_div(x, other(x)))                                                            \
    X(multiply, jot_mul(x, other(x)))                                                          \
    X(maximum, jot_maximum(x, other(x)))                                                       \
    X(minimum, jot_minimum(x, other(x)))                                                       \
    X(clip, jot_clip(x, -1.0, 1.0))                                                            \
    X(sort, jot_sort(x))                                                                       \
    X(top_k, jot_top_k(x, 2, NULL))                                                            \
    X(argmax, jot_take(x, jot_argmax(x)))                                                      \
    X(cummax, jot_cummax(x))                                                                   \
    X(cummin, jot_cummin(x))                                                                   \
    X(cumsum, jot_cumsum(x))                                                                   \
    X(cumprod, jot_cumprod(x))                                                                 \
    X(cumlogsumexp, jot_cumlogsumexp(x))                                                       \
    X(max_pool, jot_max_pool(jot_reshape(x, 1, N), .window = JOT_DIMS(1, 2)))                  \
    X(min_pool, jot_min_pool(jot_reshape(x, 1, N), .window = JOT_DIMS(1, 2)))                  \
    X(segment_max, jot_at_max(jot_full(JOT_F64, -INFINITY, N), segments(), x))                 \
    X(segment_min, jot_at_min(jot_full(JOT_F64, INFINITY, N), segments(), x))                  \
    X(at_max, jot_at_max(other(x), segments(), x))                                             \
    X(at_add, jot_at_add(other(x), segments(), x))                                             \
    X(standardize, jot_standardize(x, 0))                                                      \
    X(cov, jot_cov(x))                                                                         \
    X(trapezoid, jot_trapezoid(x, other(x), 0))                                                \
    X(diff, jot_diff(x, 2, 0))                                                                 \
    X(interp, jot_interp(x, jot_linspace(JOT_F64, -1, 1, 5), jot_linspace(JOT_F64, 0, 2, 5)))  \
    X(abs, jot_abs(x))                                                                         \
    X(abs_complex, jot_abs(jot_complex(x, other(x))))                                          \
    X(sinc, jot_sinc(x))                                                                       \
    X(relu, jot_relu(x))                                                                       \
    X(softplus, jot_softplus(x))                                                               \
    X(gelu, jot_gelu(x))                                                                       \
    X(elu, jot_elu(x, 1.0))                                                                    \
    X(sqrt_of_clip, jot_sqrt(jot_clip(x, 0.0, 1.0)))                                           \
    X(exp_of_log, jot_exp(jot_log(x)))                                                         \
    X(square_of_sqrt, jot_square(jot_sqrt(x)))                                                 \
    X(geometric_mean, jot_exp(jot_mean(jot_log(x))))                                           \
    X(times_mask, jot_mul(jot_astype(jot_greater(x, 0.0), JOT_F64), jot_log(x)))               \
    X(chosen, jot_where(jot_greater(x, 0.0), jot_log(x), jot_div(1.0, x)))                     \
    X(sum_of_products, jot_sum(jot_mul(x, jot_sqrt(jot_maximum(x, 0.0)))))                     \
    X(empty, jot_mean(jot_slice(x, 0, 2, 2)))                                                  \
    X(abs_of_fft, jot_abs(jot_rfft(x)))                                                        \
    X(power_of_fft, jot_sum(jot_square(jot_abs(jot_fft(x)))))                                  \
    X(mod, jot_mod(x, other(x)))                                                               \
    X(remainder, jot_remainder(x, other(x)))                                                   \
    X(nan_to_num, jot_nan_to_num(x, 0.0))                                                      \
    X(logit, jot_logit(x))                                                                     \
    X(entr, jot_entr(x))                                                                       \
    X(xlogy, jot_xlogy(x, other(x)))                                                           \
    X(xlog1py, jot_xlog1py(x, other(x)))                                                       \
    X(rel_entr, jot_rel_entr(x, other(x)))                                                     \
    X(kl_div, jot_kl_div(x, other(x)))                                                         \
    X(ndtr, jot_ndtr(x))                                                                       \
    X(log_ndtr, jot_log_ndtr(x))                                                               \
    X(ndtri, jot_ndtri(x))                                                                     \
    X(i0, jot_i0(x))                                                                           \
    X(i1e, jot_i1e(x))                                                                         \
    X(lgamma, jot_lgamma(x))                                                                   \
    X(digamma, jot_digamma(x))                                                                 \
    X(gammainc, jot_gammainc(jot_abs(x), jot_abs(other(x))))                                   \
    X(betaln, jot_betaln(x, other(x)))                                                         \
    X(exp1, jot_exp1(x))                                                                       \
    X(expi, jot_expi(x))                                                                       \
    X(spence, jot_spence(x))                                                                   \
    X(dawsn, jot_dawsn(x))                                                                     \
    X(erfcx, jot_erfcx(x))                                                                     \
    X(hyp2f1, jot_hyp2f1(x, 1.5, 2.5, 0.25))                                                   \
    X(log1mexp, jot_log1mexp(x))                                                               \
    X(in_loop, looped(x))                                                                      \
    X(by_branch, branched(x))

#define FUNCTION(name, value)                                                                  \
    static jot_value f_##name(jot_value x) { return value; }
FUNCTIONS(FUNCTION)

static const struct {
    const char *name;
    jot_value (*f)(jot_value x);
} functions[] = {
#define ROW(name, value) {#name, f_##name},
    FUNCTIONS(ROW)};
enum { FUNCTION_COUNT = sizeof functions / sizeof *functions };

static double random_number(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(*state >> 11) * 0x1p-53;
}

static bool agree(double x, double y)
{
    if (isnan(x) || isnan(y))
        return isnan(x) && isnan(y);
    return isinf(x) || isinf(y) ? x == y : fabs(x - y) <= 1e-9 * (1 + fabs(x));
}

START_TEST(test_forward_and_reverse)
{
    jot_function f = jot_fn(functions[_i].f);
    jot_executable *modes[] = {jot_jit(jot_jacfwd(f)), jot_jit(jot_jacrev(f))};
    uint64_t state = (uint64_t)_i;
    for (int draw = 0; draw < 60; draw++) {
        double x[N];
        for (int i = 0; i < N; i++)
            x[i] = random_number(&state) < 0.5
                       ? specials[(int)(random_number(&state) * SPECIALS)]
                       : 4 * random_number(&state) - 2;
        jot_array *at = jot_array_from(x, N), *j[2];
        for (int k = 0; k < 2; k++)
            must(jot_call(modes[k], JOT_IN(at), JOT_OUT(j[k])));
        const double *forward = jot_array_data(j[0]), *reverse = jot_array_data(j[1]);
        for (size_t i = 0; i < jot_array_size(j[0]); i++)
            ck_assert_msg(agree(forward[i], reverse[i]),
                          "%s at [%g, %g, %g, %g], entry %zu: forward %g, reverse %g",
                          functions[_i].name, x[0], x[1], x[2], x[3], i, forward[i],
                          reverse[i]);
        jot_array_release(at);
        jot_arrays_release(2, j);
    }
    jot_executable_release(modes[0]), jot_executable_release(modes[1]);
}
END_TEST

// -- Zeros --------------------------------------------------------------------------------------

static jot_value exp_log_times_log(jot_value x)
{
    return jot_mul(jot_exp(jot_log(x)), jot_log(x));
}
static jot_value sqrt_clip(jot_value x) { return jot_sqrt(jot_clip(x, 0.0, 10.0)); }
static jot_value sqrt_maximum(jot_value x) { return jot_sqrt(jot_maximum(x, 0.0)); }
static jot_value sqrt_relu(jot_value x) { return jot_sqrt(jot_relu(x)); }
static jot_value safe_log(jot_value x)
{
    return jot_where(jot_greater(x, 0.0), jot_log(x), jot_mul(3.0, x));
}
static jot_value safe_quotient(jot_value x)
{
    return jot_where(jot_not_equal(x, 0.0), jot_div(jot_sin(x), x), 1.0);
}
static jot_value product_of_chosen(jot_value x)
{
    jot_value s = jot_where(jot_greater(x, 0.0), jot_sqrt(x), 0.0);
    return jot_mul(s, jot_sqrt(jot_clip(x, 0.0, 1.0)));
}
static jot_value spread_and_masked(jot_value x) // of all elements none is taken
{
    jot_value wide = jot_mul(jot_sqrt(x), jot_arange(JOT_F64, 5));
    return jot_add(jot_sum(jot_where(jot_greater(wide, 10.0), wide, 0.0)), x);
}
static jot_value half_masked(jot_value x) // of a sum of zeros and a number
{
    jot_value i = jot_arange(JOT_F64, 4), wide = jot_mul(jot_square(x), i);
    jot_value rest = jot_where(jot_less(i, 4.0), 0.0, jot_sqrt(jot_neg(wide)));
    return jot_sum(jot_where(jot_less(i, 2.0), wide, rest));
}
static jot_value clipped_in_loop(jot_value x)
{
    JOT_FOR (i, 3, x) {
        x = jot_sqrt(jot_clip(x, 0.0, 10.0));
    }
    return x;
}
static jot_value last_step_unused(jot_value x)
{
    jot_value y = jot_from(0.0);
    JOT_FOR (i, 3, x, y) {
        y = jot_add(y, x);
        x = jot_sqrt(jot_sub(x, jot_where(jot_equal(i, 2), x, 0.0)));
    }
    return y;
}
static jot_value branch(jot_value x)
{
    jot_value y;
    JOT_IF (jot_greater(x, 0.0), y) {
        y = jot_log(x);
    } else {
        y = jot_mul(2.0, x);
    }
    return y;
}
static jot_value branch_in_loop(jot_value x)
{
    JOT_FOR (i, 2, x) {
        JOT_IF (jot_greater(x, 1.0), x) {
            x = jot_sqrt(jot_sub(x, 1.0));
        } else {
            x = jot_mul(3.0, x);
        }
    }
    return x;
}
static jot_value clipped_in_while(jot_value x)
{
    jot_value n = jot_from_int(0);
    JOT_WHILE ((x, n), jot_less(n, 3), .bound = 5) {
        x = jot_sqrt(jot_maximum(x, 0.0));
        n = jot_add(n, 1);
    }
    return x;
}
static jot_value one_element(jot_value x) // the others have infinite slopes
{
    jot_value v = jot_stack(0, jot_sqrt(jot_sub(x, x)), x, jot_log(jot_sub(x, x)));
    return jot_take(v, 1);
}
static jot_value one_element_again(jot_value x) // the other one has an infinite slope
{
    jot_value v = jot_stack(0, x, jot_sub(x, x));
    jot_apply(jot_checkpoint(jot_fn(sqrt_maximum)), 1, &v, 1, &v);
    return jot_take(v, 0);
}
static jot_value updated(jot_value x)
{
    jot_value v = jot_sqrt(jot_mul(x, jot_zeros(JOT_F64, 4)));
    v = jot_at_set(v, jot_stack(0, 0, 1, 2, 3), jot_mul(x, jot_ones(JOT_F64, 4)));
    return jot_sum(v);
}
static jot_value some_read(jot_value x)
{
    jot_value v = jot_log(jot_mul(x, jot_stack(0, 0.0, 1.0, 1.0)));
    return jot_sum(jot_take(v, jot_stack(0, 2, 1)));
}
static jot_value largest(jot_value x)
{
    jot_value v = jot_mul(x, jot_stack(0, 0.0, 1.0, 2.0));
    return jot_max(jot_sqrt(v));
}
static const struct zero {
    const char *name;
    jot_value (*f)(jot_value x);
    double x, first, second;
} zeros[] = {
    {"exp(log x)", f_exp_of_log, 0, NAN, NAN},
    {"sqrt(x)^2", f_square_of_sqrt, 0, NAN, NAN},
    {"x log x", exp_log_times_log, 0, NAN, NAN},
    {"sqrt(clip x)", sqrt_clip, -1, 0, 0},
    {"sqrt(clip x), taken", sqrt_clip, 4, 0.25, -1.0 / 32},
    {"sqrt(maximum x)", sqrt_maximum, -1, 0, 0},
    {"sqrt(relu x)", sqrt_relu, -1, 0, 0},
    {"log or 3 x", safe_log, 0, 3, 0},
    {"log or 3 x, taken", safe_log, 2, 0.5, -0.25},
    {"sin x / x", safe_quotient, 0, 0, 0},
    {"a product of two", product_of_chosen, -1, 0, 0},
    {"spread and masked", spread_and_masked, 0, 1, 0},
    {"a loop", clipped_in_loop, -1, 0, 0},
    {"the last step unused", last_step_unused, 4, 1.3383883476483185, -0.04782281518405971},
    {"a branch", branch, 0, 2, 0},
    {"a branch in a loop", branch_in_loop, 1, 1.0606601717798212, -0.7954951288348659},
    {"a while", clipped_in_while, -1, 0, 0},
    {"one element", one_element, 2, 1, 0},
    {"one element, computed again", one_element_again, 4, 0.25, -1.0 / 32},
    {"updated", updated, 3, 4, 0},
    {"some elements read", some_read, 2, 1, -0.5},
    {"largest", largest, 2, 0.5, -0.125},
    {"half masked", half_masked, 1.5, 3, 2},
};
enum { ZERO_COUNT = sizeof zeros / sizeof *zeros };

static void check_at(const struct zero *z, const char *how, jot_function f, double want)
{
    jot_executable *e = jot_jit(f);
    jot_array *x = jot_array_full(JOT_F64, z->x), *y;
    must(jot_call(e, JOT_IN(x), JOT_OUT(y)));
    double have = *(const double *)jot_array_data(y);
    ck_assert_msg(agree(have, want), "%s of %s at %g is %.17g, not %.17g", how, z->name, z->x,
                  have, want);
    jot_array_release(x), jot_array_release(y);
    jot_executable_release(e);
}

static void check_derivatives(const struct zero *z)
{
    jot_function f = jot_fn(z->f);
    check_at(z, "the gradient", jot_grad(f), z->first);
    check_at(z, "the tangent", jot_jacfwd(f), z->first);
    check_at(z, "the gradient of the gradient", jot_grad(jot_grad(f)), z->second);
    check_at(z, "the tangent of the gradient", jot_jacfwd(jot_grad(f)), z->second);
    check_at(z, "the gradient of the tangent", jot_grad(jot_jacfwd(f)), z->second);
    check_at(z, "the tangent of the tangent", jot_jacfwd(jot_jacfwd(f)), z->second);
}

START_TEST(test_zeros) { check_derivatives(&zeros[_i]); }
END_TEST

// Lanes that take other paths.
START_TEST(test_zeros_mapped)
{
    const struct zero *z = &zeros[_i];
    jot_function f = jot_fn(z->f);
    jot_executable *mapped[] = {jot_jit(jot_vmap(jot_grad(f))),
                                jot_jit(jot_vmap(jot_jacfwd(f))),
                                jot_jit(jot_vmap(jot_grad(jot_grad(f))))};
    jot_array *x = jot_array_from(((double[]){0.7, z->x, 1.9}), 3), *y;
    for (int k = 0; k < 3; k++) {
        must(jot_call(mapped[k], JOT_IN(x), JOT_OUT(y)));
        double have = ((const double *)jot_array_data(y))[1],
               want = k < 2 ? z->first : z->second;
        ck_assert_msg(agree(have, want), "%s at %g in a lane, %d: %.17g, not %.17g", z->name,
                      z->x, k, have, want);
        jot_array_release(y);
        jot_executable_release(mapped[k]);
    }
    jot_array_release(x);
}
END_TEST

// -- Products -----------------------------------------------------------------------------------

// The slopes of a product are products of the others, whatever the product of all is, and those of the
// slopes likewise.  Products of long doubles do not leave the range on the way.

enum { FACTORS = 8, MOST_FACTORS = 70 };

static jot_value p_all(jot_value x) { return jot_prod(x); }
static jot_value p_axes(jot_value x) { return jot_prod(jot_reshape(x, 2, -1, 2), 0, 2); }
static jot_value p_axis(jot_value x) { return jot_prod(jot_reshape(x, 2, -1), 0); }
static jot_value p_running(jot_value x) { return jot_cumprod(x, 0); }
static jot_value p_from_end(jot_value x) { return jot_flip(jot_cumprod(jot_flip(x, 0), 0), 0); }

static bool all_are_in(int k, int j, int n) { return k <= n && j < n; }
static bool axes_are_in(int k, int j, int n) { return j % (n / 2) / 2 == k; }
static bool axis_is_in(int k, int j, int n) { return j % (n / 2) == k; }
static bool running_is_in(int k, int j, int n) { return j <= k && j < n; }
static bool from_end_is_in(int k, int j, int n) { return j >= k && j < n; }

static const struct product {
    const char *name;
    jot_value (*f)(jot_value x);
    bool (*has)(int k, int j, int n); // whether factor j of n is in result k
} products[] = {{"prod", p_all, all_are_in},
                {"prod of two axes", p_axes, axes_are_in},
                {"prod of an axis", p_axis, axis_is_in},
                {"cumprod", p_running, running_is_in},
                {"cumprod from the end", p_from_end, from_end_is_in}};
enum { PRODUCTS = sizeof products / sizeof *products };

static const double factors[][FACTORS] = {
    {1e200, 1e200, 1e-300, 1, 1, 1, 1, 1},
    {1e200, 1e-200, 1e200, 1e-200, -3, 1e300, 1e-300, 2},
    {1e-300, 1e-300, 1e200, 1e250, 1e150, -2, 3, 1e-310},
    {1e308, 1e308, 1e308, 1e-308, 1e-308, 5e-324, 7, -1},
    {1e30, 1e30, 1e-30, 1e30, 1e-30, 1e-38, 1e-44, 3},
    {2, 0, 3, 1e200, 1e200, 1e-300, 5, 1},
    {2, -0.0, 3, 4, 0, 1e300, 1e300, 1},
    {2, INFINITY, 3, -1, 1e-200, 1e-200, 4, 1},
    {2, 3, NAN, 4, 0, 1, 1, 1},
    {-INFINITY, 0, 2, 3, 4, 5, 6, 7},
};
enum { FACTOR_ROWS = sizeof factors / sizeof *factors };

// Of result k without factors i and j; j is i for a first derivative.
static long double product_of_others(const struct product *p, const double *x, int n, int k,
                                     int i, int j)
{
    long double y = 1;
    for (int at = 0; at < n; at++)
        if (at != i && at != j && p->has(k, at, n))
            y *= x[at];
    return y;
}

static void check_product(const char *how, const struct product *p, const double *x, int n,
                          double have, long double want, jot_dtype dtype)
{
    double narrow = dtype == JOT_F64 ? (double)want : (float)want,
           epsilon = dtype == JOT_F64 ? DBL_EPSILON : FLT_EPSILON,
           least = dtype == JOT_F64 ? 0x1p-1074 : 0x1p-149;
    double room = (n + 1) * epsilon * fabs(narrow) + least;
    bool is_same = isnan(want)     ? isnan(have)
                   : isinf(narrow) ? have == narrow
                                   : fabs(have - narrow) <= room;
    ck_assert_msg(is_same, "%s of %s of %d numbers, %g, %g, %g, ... is %.17g, not %.17g", how,
                  p->name, n, x[0], x[1], x[2], have, narrow);
}

static void check_slopes_of(const struct product *p, const char *how, jot_function f, int order,
                            const double *in, int n, jot_dtype dtype)
{
    double x[MOST_FACTORS];
    float narrow[MOST_FACTORS];
    for (int i = 0; i < n; i++) {
        narrow[i] = (float)in[i];
        x[i] = dtype == JOT_F64 ? in[i] : narrow[i];
    }
    jot_array *a = dtype == JOT_F64 ? jot_array_from(x, n) : jot_array_from(narrow, n), *y;
    jot_executable *e = jot_jit(f);
    must(jot_call(e, JOT_IN(a), JOT_OUT(y)));
    const void *data = jot_array_data(y);
    int slopes = order == 1 ? 1 : n, count = (int)jot_array_size(y);
    for (int at = 0; at < count; at++) {
        int i = at / slopes % n, j = order == 1 ? i : at % n, k = at / slopes / n;
        double have = dtype == JOT_F64 ? ((const double *)data)[at] : ((const float *)data)[at];
        bool is_zero = (order == 2 && i == j) || !p->has(k, i, n) || !p->has(k, j, n);
        check_product(how, p, x, n, have, is_zero ? 0 : product_of_others(p, x, n, k, i, j),
                      dtype);
    }
    jot_executable_release(e);
    jot_array_release(a), jot_array_release(y);
}

static void check_all_slopes(const struct product *p, const double *x, int n, jot_dtype dtype)
{
    jot_function f = jot_fn(p->f);
    check_slopes_of(p, "jacfwd", jot_jacfwd(f), 1, x, n, dtype);
    check_slopes_of(p, "jacrev", jot_jacrev(f), 1, x, n, dtype);
    if (n > FACTORS)
        return;
    check_slopes_of(p, "jacfwd of jacrev", jot_jacfwd(jot_jacrev(f)), 2, x, n, dtype);
    check_slopes_of(p, "jacrev of jacrev", jot_jacrev(jot_jacrev(f)), 2, x, n, dtype);
    check_slopes_of(p, "jacrev of jacfwd", jot_jacrev(jot_jacfwd(f)), 2, x, n, dtype);
}

START_TEST(test_products)
{
    for (int row = 0; row < FACTOR_ROWS; row++) {
        check_all_slopes(&products[_i], factors[row], FACTORS, JOT_F64);
        check_all_slopes(&products[_i], factors[row], FACTORS, JOT_F32);
    }
}
END_TEST

// Of more factors than one row has.
START_TEST(test_long_products)
{
    double x[MOST_FACTORS];
    for (int i = 0; i < MOST_FACTORS; i++)
        x[i] = (i % 7 == 3 ? -1 : 1) * ldexp(1 + i / 100.0, i % 2 ? 120 : -119);
    for (int zero = 0; zero < 3; zero++) {
        if (zero)
            x[20 * zero] = 0;
        for (int i = 0; i < 3; i++) {
            check_all_slopes(&products[i], x, MOST_FACTORS - 2, JOT_F64);
            check_all_slopes(&products[i], x, MOST_FACTORS - 2, JOT_F32);
        }
    }
}
END_TEST

// -- Smooth points ------------------------------------------------------------------------------

// Where formulas meet, and where those are equal of which one is the larger, functions have no kink.
static jot_value running(jot_value x)
{
    return jot_sum(jot_cumlogsumexp(jot_stack(0, x, jot_mul(2.0, x), 0.0, x)));
}
static jot_value i0e(jot_value x) { return jot_i0e(x); }
static jot_value i1e(jot_value x) { return jot_i1e(x); }
static jot_value hyp2f1(jot_value x) { return jot_hyp2f1(0.5, 1.5, 2.5, x); }
static jot_value hyp2f1_in_a(jot_value a) { return jot_hyp2f1(a, 1.5, 2.5, 0.25); }
static jot_value hyp2f1_in_c(jot_value c) { return jot_hyp2f1(1.5, 0.5, c, 0.3); }
static jot_value hyp2f1_below(jot_value c) { return jot_hyp2f1(0.5, 1.5, c, -0.75); }
static jot_value slope_of(jot_value (*f)(jot_value), jot_value x)
{
    jot_apply(jot_jacfwd(jot_function_plain("f", "f", 1, (void (*)(void))f)), 1, &x, 1, &x);
    return x;
}
static jot_value erfcx(jot_value x) { return jot_erfcx(x); }
static jot_value slope_of_erfcx(jot_value x) { return slope_of(erfcx, x); }
static jot_value dawsn(jot_value x) { return jot_dawsn(x); }
static jot_value slope_of_dawsn(jot_value x) { return slope_of(dawsn, x); }

static const struct zero smooth[] = {
    {"a running logsumexp of equals", running, 0, 4.5, 1.4166666666666667},
    {"i0e", i0e, 8, -0.0092892885641521324, 0.0018107654667169925},
    {"i1e", i1e, 8, -0.0074785230974351399, 0.001220026378160809},
    {"hyp2f1", hyp2f1, 0.5, 0.61011510694188881, 1.1920651524098411},
    {"hyp2f1", hyp2f1, -1, 0.13822977276567077, 0.080409388969221594},
    {"hyp2f1 in a", hyp2f1_in_a, 1.5, 0.22454501504751355, 0.046357011872662095},
    {"hyp2f1 in c", hyp2f1_in_c, 1.5, -0.152395952050450529, 0.223839566687320581},
    {"hyp2f1 in c", hyp2f1_in_c, 0.5, -1.63349323261278586, 6.87111358426825357},
    {"hyp2f1 in c", hyp2f1_below, 1.5, 0.12570374232197633, -0.144435793733203972},
    {"the slope of erfcx", slope_of_erfcx, 0, 2, -4.5135166683820503},
    {"the slope of erfcx", slope_of_erfcx, 2, 0.083605505207053094, -0.092763826585746018},
    {"the slope of dawsn", slope_of_dawsn, 2, 0.21876544493308752, -0.053615556951678641},
};
enum { SMOOTH_COUNT = sizeof smooth / sizeof *smooth };

START_TEST(test_smooth) { check_derivatives(&smooth[_i]); }
END_TEST

// -- NaN among others -------------------------------------------------------------------------

static jot_value f_corrcoef(jot_value x) { return jot_corrcoef(jot_reshape(x, 2, 2)); }

// Gradients of the sum of results at 1, NaN, 3, 2.
static const struct {
    const char *name;
    jot_value (*f)(jot_value x);
    double want[N];
} extrema[] = {
    {"max", f_max, {NAN, NAN, NAN, NAN}},
    {"min", f_min, {NAN, NAN, NAN, NAN}},
    {"ptp", f_ptp, {NAN, NAN, NAN, NAN}},
    {"norm_inf", f_norm_inf, {NAN, NAN, NAN, NAN}},
    {"norm_minus_inf", f_norm_minus_inf, {NAN, NAN, NAN, NAN}},
    {"segment_max", f_segment_max, {0, NAN, 1, 1}}, // of 1 and 3, NaN, 2
    {"segment_min", f_segment_min, {1, NAN, 0, 1}},
    {"max_pool", f_max_pool, {0, 1, 1, 0}}, // the first winner
    {"nanmax", f_nanmax, {0, 0, 1, 0}},
    {"rel_entr", f_rel_entr, {-1.6931471805599454, NAN, NAN, 1.1931471805599454}},
    {"kl_div", f_kl_div, {-1.6931471805599454, NAN, NAN, 1.1931471805599454}},
    {"corrcoef", f_corrcoef, {NAN, NAN, NAN, NAN}},
    {"hyp2f1",
     f_hyp2f1,
     {0.202617339908651559, NAN, 0.307300948176263728, 0.24907667097521052}},
};
enum { EXTREMUM_COUNT = sizeof extrema / sizeof *extrema };

static jot_value (*summed_function)(jot_value x);
static jot_value summed(jot_value x) { return jot_sum(summed_function(x)); }

START_TEST(test_nan)
{
    summed_function = extrema[_i].f;
    jot_function f = jot_fn(summed);
    jot_executable *modes[] = {jot_jit(jot_grad(f)), jot_jit(jot_jacfwd(f))};
    jot_array *x = jot_array_from(((double[]){1, NAN, 3, 2}), N), *y;
    for (int k = 0; k < 2; k++) {
        must(jot_call(modes[k], JOT_IN(x), JOT_OUT(y)));
        for (int i = 0; i < N; i++) {
            double have = ((const double *)jot_array_data(y))[i];
            ck_assert_msg(agree(have, extrema[_i].want[i]), "%s, %s, element %d: %g, not %g",
                          extrema[_i].name, k ? "forward" : "reverse", i, have,
                          extrema[_i].want[i]);
        }
        jot_array_release(y);
        jot_executable_release(modes[k]);
    }
    jot_array_release(x);
}
END_TEST

// The first coefficient of a polynomial by its zeros is 1, whatever these are.
static jot_value poly(jot_value x) { return jot_poly(x); }

START_TEST(test_poly)
{
    jot_executable *f = jot_jit(jot_fn(poly));
    jot_array *x = jot_array_from(((double[]){1, NAN, INFINITY}), 3), *y;
    must(jot_call(f, JOT_IN(x), JOT_OUT(y)));
    const double *p = jot_array_data(y);
    ck_assert(p[0] == 1 && isnan(p[1]) && isnan(p[2]) && isnan(p[3]));
    jot_array_release(x), jot_array_release(y);
    jot_executable_release(f);
}
END_TEST

// -- Activations ------------------------------------------------------------------------------

// Slopes at NaN, inf, -inf, 0 and 6 of jax.nn's functions.
#define ACTIVATIONS(X)                                                                         \
    X(relu, jot_relu(x), 0, 1, 0, 0, 1)                                                        \
    X(relu6, jot_relu6(x), 0, 0, 0, 0, 0)                                                      \
    X(leaky_relu, jot_leaky_relu(x, 0.01), 0.01, 1, 0.01, 1, 1)                                \
    X(elu, jot_elu(x, 1.0), NAN, 1, 0, 1, 1)                                                   \
    X(selu, jot_selu(x), NAN, 1.0507009873554805, 0, 1.7580993408473766, 1.0507009873554805)   \
    X(celu, jot_celu(x, 1.0), NAN, 1, 0, 1, 1)                                                 \
    X(hard_tanh, jot_hard_tanh(x), 1, 0, 0, 1, 0)                                              \
    X(hard_sigmoid, jot_hard_sigmoid(x), 0, 0, 0, 1.0 / 6, 0)                                  \
    X(hard_silu, jot_hard_silu(x), NAN, 1, 0, 0.5, 1)                                          \
    X(softplus, jot_softplus(x), NAN, 1, 0, 0.5, 0.9975273768433653)                           \
    X(sigmoid, jot_sigmoid(x), NAN, 0, 0, 0.25, 0.002466509291360048)                          \
    X(log_sigmoid, jot_log_sigmoid(x), NAN, 0, 1, 0.5, 0.0024726231566347743)                  \
    X(sparse_sigmoid, jot_sparse_sigmoid(x), 0, 0, 0, 0.5, 0)

#define ACTIVATION(name, value, ...)                                                           \
    static jot_value a_##name(jot_value x) { return value; }
ACTIVATIONS(ACTIVATION)

static const struct {
    const char *name;
    jot_value (*f)(jot_value x);
    double slopes[5];
} activations[] = {
#define ACTIVATION_ROW(name, value, ...) {#name, a_##name, {__VA_ARGS__}},
    ACTIVATIONS(ACTIVATION_ROW)};
enum { ACTIVATION_COUNT = sizeof activations / sizeof *activations };

START_TEST(test_activations)
{
    static const double at[5] = {NAN, INFINITY, -INFINITY, 0, 6};
    jot_executable *f = jot_jit(jot_vmap(jot_value_and_grad(jot_fn(activations[_i].f))));
    jot_array *x = jot_array_from(at, 5), *y[2];
    must(jot_call(f, JOT_IN(x), JOT_OUT(y)));
    const double *values = jot_array_data(y[0]), *have = jot_array_data(y[1]);
    for (int i = 0; i < 5; i++)
        ck_assert_msg(agree(have[i], activations[_i].slopes[i]),
                      "the slope of %s at %g is %.17g, not %.17g", activations[_i].name, at[i],
                      have[i], activations[_i].slopes[i]);
    ck_assert_msg(isnan(values[0]), "%s", activations[_i].name);
    jot_array_release(x), jot_arrays_release(2, y);
    jot_executable_release(f);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_sampled_test(t, test_forward_and_reverse, 0, FUNCTION_COUNT);
    tcase_add_sampled_test(t, test_zeros, 0, ZERO_COUNT);
    tcase_add_sampled_test(t, test_smooth, 0, SMOOTH_COUNT);
    tcase_add_sampled_test(t, test_nan, 0, EXTREMUM_COUNT);
    tcase_add_sampled_test(t, test_products, 0, PRODUCTS);
    tcase_add_test(t, test_long_products);
    tcase_add_test(t, test_poly);
    tcase_add_sampled_test(t, test_activations, 0, ACTIVATION_COUNT);
    tcase_add_sampled_test(t, test_zeros_mapped, 0, ZERO_COUNT);
}

int main(void) { return run_by_both("slopes", add_tests); }
