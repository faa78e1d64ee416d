// SPDX-License-Identifier: Apache-2.0
// Distributions of random numbers: their distribution functions by the test of Kolmogorov and
// Smirnov, maps over keys against loops, and derivatives against those of JAX.
#include "support/sample.h"
#include "trace_support.h"

static jot_scope *scope;

static void setup(void) { scope = jot_scope_open(); }
static void teardown(void) { jot_scope_close(scope); }

// ---------------------------------------------------------------------------------------
// Distribution functions

// P(a, x), by its power series.
static double gamma_below(double a, double x)
{
    if (!(x > 0))
        return 0;
    double term = 1 / a, sum = term;
    for (int n = 1; n < 2000 && term > 1e-17 * sum; n++)
        sum += term *= x / (a + n);
    return x > 700 ? 1 : exp(a * log(x) - x - lgamma(a)) * sum;
}

// I_x(a, b), by its power series, with the ends exchanged where that converges slowly.
static double beta_below(double a, double b, double x)
{
    if (x <= 0 || x >= 1)
        return x >= 1;
    if (x > 0.5)
        return 1 - beta_below(b, a, 1 - x);
    double term = 1, sum = 1 / a;
    for (int n = 1; n < 500; n++) {
        term *= (n - b) * x / n;
        sum += term / (a + n);
    }
    return exp(a * log(x) + lgamma(a + b) - lgamma(a) - lgamma(b)) * sum;
}

static double normal_below(double x) { return 0.5 * erfc(-x / M_SQRT2); }

static double maxwell_below(double x)
{
    return x < 0 ? 0 : erf(x / M_SQRT2) - sqrt(2 / M_PI) * x * exp(-x * x / 2);
}

static double sided(double x, double below) { return 0.5 + (x < 0 ? -0.5 : 0.5) * below; }

enum kind {
    UNIFORM,
    NORMAL,
    EXPONENTIAL,
    GUMBEL,
    LAPLACE,
    LOGISTIC,
    CAUCHY,
    MAXWELL,
    TRUNCATED,
    LOGNORMAL,
    RAYLEIGH,
    WEIBULL,
    PARETO,
    TWO_SIDED,
    TRIANGULAR,
    WALD,
    GAMMA,
    SMALL_GAMMA,
    LOGGAMMA,
    BETA,
    CHISQUARE,
    F,
    T,
    GENERALIZED,
    GEOMETRIC,
    POISSON,
    LARGE_POISSON,
    BINOMIAL,
    LARGE_BINOMIAL,
    KINDS
}; // clang-format off

static jot_value drawn(enum kind k, jot_value key, jot_dtype d, const int64_t *dims)
{
    jot_value none = jot_zeros(d), half = jot_full(d, 0.5), p = jot_full(d, 0.3);
    switch (k) {
    case UNIFORM:        return jot_random_uniform_dims(key, d, dims);
    case NORMAL:         return jot_random_normal_dims(key, d, dims);
    case EXPONENTIAL:    return jot_random_exponential_dims(key, d, dims);
    case GUMBEL:         return jot_random_gumbel_dims(key, d, dims);
    case LAPLACE:        return jot_random_laplace_dims(key, d, dims);
    case LOGISTIC:       return jot_random_logistic_dims(key, d, dims);
    case CAUCHY:         return jot_random_cauchy_dims(key, d, dims);
    case MAXWELL:        return jot_random_maxwell_dims(key, d, dims);
    case TRUNCATED:      return jot_random_truncated_normal_dims(key, d, jot_full(d, -1), jot_full(d, 2), dims);
    case LOGNORMAL:      return jot_random_lognormal_dims(key, d, half, dims);
    case RAYLEIGH:       return jot_random_rayleigh_dims(key, d, jot_full(d, 2), dims);
    case WEIBULL:        return jot_random_weibull_min_dims(key, d, jot_full(d, 2), jot_full(d, 1.5), dims);
    case PARETO:         return jot_random_pareto_dims(key, d, jot_full(d, 3), dims);
    case TWO_SIDED:      return jot_random_double_sided_maxwell_dims(key, d, none, jot_full(d, 2), dims);
    case TRIANGULAR:     return jot_random_triangular_dims(key, d, none, half, jot_full(d, 2), dims);
    case WALD:           return jot_random_wald_dims(key, d, jot_full(d, 1.5), dims);
    case GAMMA:          return jot_random_gamma_dims(key, d, jot_full(d, 2.5), dims);
    case SMALL_GAMMA:    return jot_random_gamma_dims(key, d, half, dims);
    case LOGGAMMA:       return jot_random_loggamma_dims(key, d, half, dims);
    case BETA:           return jot_random_beta_dims(key, d, jot_full(d, 2), jot_full(d, 1.5), dims);
    case CHISQUARE:      return jot_random_chisquare_dims(key, d, jot_full(d, 3), dims);
    case F:              return jot_random_f_dims(key, d, jot_full(d, 3), jot_full(d, 5), dims);
    case T:              return jot_random_t_dims(key, d, jot_full(d, 3), dims);
    case GENERALIZED:    return jot_random_generalized_normal_dims(key, d, jot_full(d, 3), dims);
    case GEOMETRIC:      return jot_convert(jot_random_geometric_dims(key, JOT_I32, p, dims), d);
    case POISSON:        return jot_convert(jot_random_poisson_dims(key, JOT_I32, jot_full(d, 4), dims), d);
    case LARGE_POISSON:  return jot_convert(jot_random_poisson_dims(key, JOT_I32, jot_full(d, 30), dims), d);
    case BINOMIAL:       return jot_random_binomial_dims(key, d, jot_full(d, 20), p, dims);
    case LARGE_BINOMIAL: return jot_random_binomial_dims(key, d, jot_full(d, 50), jot_full(d, 0.6), dims);
    case KINDS: break;
    }
    return none;
}

static double below(enum kind k, double x)
{
    double root = sqrt(1 / x);
    switch (k) {
    case UNIFORM:        return x;
    case NORMAL:         return normal_below(x);
    case EXPONENTIAL:    return -expm1(-x);
    case GUMBEL:         return exp(-exp(-x));
    case LAPLACE:        return sided(x, -expm1(-fabs(x)));
    case LOGISTIC:       return 1 / (1 + exp(-x));
    case CAUCHY:         return 0.5 + atan(x) / M_PI;
    case MAXWELL:        return maxwell_below(x);
    case TRUNCATED:      return (normal_below(x) - normal_below(-1)) / (normal_below(2) - normal_below(-1));
    case LOGNORMAL:      return normal_below(log(x) / 0.5);
    case RAYLEIGH:       return -expm1(-x * x / 8);
    case WEIBULL:        return -expm1(-pow(x / 2, 1.5));
    case PARETO:         return 1 - pow(x, -3);
    case TWO_SIDED:      return sided(x, maxwell_below(fabs(x / 2)));
    case TRIANGULAR:     return x < 0.5 ? x * x : 1 - (2 - x) * (2 - x) / 3;
    case WALD:           return normal_below(root * (x / 1.5 - 1)) + exp(2 / 1.5) * normal_below(-root * (x / 1.5 + 1));
    case GAMMA:          return gamma_below(2.5, x);
    case SMALL_GAMMA:    return gamma_below(0.5, x);
    case LOGGAMMA:       return gamma_below(0.5, exp(x));
    case BETA:           return beta_below(2, 1.5, x);
    case CHISQUARE:      return gamma_below(1.5, x / 2);
    case F:              return beta_below(1.5, 2.5, 3 * x / (3 * x + 5));
    case T:              return sided(x, 1 - beta_below(1.5, 0.5, 3 / (3 + x * x)));
    case GENERALIZED:    return sided(x, gamma_below(1.0 / 3, pow(fabs(x), 3)));
    case GEOMETRIC:      return 1 - pow(0.7, floor(x));
    case POISSON:        return 1 - gamma_below(floor(x) + 1, 4);
    case LARGE_POISSON:  return 1 - gamma_below(floor(x) + 1, 30);
    case BINOMIAL:       return x >= 20 ? 1 : beta_below(20 - floor(x), floor(x) + 1, 0.7);
    case LARGE_BINOMIAL: return x >= 50 ? 1 : beta_below(50 - floor(x), floor(x) + 1, 0.4);
    case KINDS: break;
    }
    return NAN;
}
// clang-format on

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// The largest distance of the two distribution functions, times the root of n, which is above
// 1.9495 once in a thousand.  Of integers it is less.
static double distance(enum kind k, int n, double *x)
{
    double most = 0;
    qsort(x, (size_t)n, sizeof *x, compare);
    for (int i = 0; i < n; i++) {
        double p = below(k, x[i]);
        bool is_last = i + 1 == n || x[i + 1] > x[i];
        if (is_last)
            most = fmax(most, fabs((i + 1.0) / n - p));
        if (k < GEOMETRIC)
            most = fmax(most, fabs(p - (double)i / n));
    }
    return most * sqrt(n);
}

START_TEST(test_distribution_functions)
{
    const int64_t n = getenv("JOT_TEST_FULL") ? 1000000 : 4000, dims[] = {n, JOT_END};
    double *x = malloc((size_t)n * sizeof *x);
    ck_assert_ptr_nonnull(x);
    for (enum kind k = 0; k < KINDS; k++) {
        if (!sample_takes(k, 1))
            continue;
        jot_dtype d = k % 2 ? JOT_F32 : JOT_F64;
        jot_array *a = NULL;
        jot_value y = drawn(k, jot_random_key(20 + (int)k), d, dims);
        must(jot_eval(jot_convert(y, JOT_F64), &a));
        memcpy(x, jot_array_data(a), (size_t)n * sizeof *x);
        double far = distance(k, (int)n, x);
        ck_assert_msg(far < 1.9495, "distribution %d: distance %g, p below 0.001", (int)k, far);
        jot_array_release(a);
    }
    free(x);
}
END_TEST

// ---------------------------------------------------------------------------------------
// At the ends of the parameters

typedef jot_value draw0(jot_value key, jot_dtype d, const int64_t *dims);
typedef jot_value draw1(jot_value key, jot_dtype d, jot_value a, const int64_t *dims);
typedef jot_value draw2(jot_value key, jot_dtype d, jot_value a, jot_value b,
                        const int64_t *dims);

static double truncated_below(double a, double b, double x)
{
    if (a + b < 0)
        return 1 - truncated_below(-b, -a, -x);
    double high = erfc(a * M_SQRT1_2), low = erfc(b * M_SQRT1_2);
    return (high - erfc(x * M_SQRT1_2)) / (high - low);
}

static double wald_below(double mean, double b, double x)
{
    (void)b;
    double root = sqrt(1 / x);
    if (mean > 1e30)
        return 2 * normal_below(-root);
    return normal_below(root * (x / mean - 1)) +
           exp(2 / mean) * normal_below(-root * (x / mean + 1));
}

static double t_below(double df, double b, double x)
{
    (void)b;
    if (isinf(df))
        return normal_below(x);
    return sided(x, 1 - beta_below(df / 2, 0.5, df / (df + x * x)));
}

static double f_below(double a, double b, double x)
{
    double y = a * x / b;
    return x < 1 ? beta_below(a / 2, b / 2, y / (1 + y))
                 : 1 - beta_below(b / 2, a / 2, 1 / (1 + y));
}

static double generalized_below(double p, double b, double x)
{
    (void)b;
    return sided(x, isinf(p) ? fabs(x) : gamma_below(1 / p, pow(fabs(x), p)));
}

// The triangular one with its mode at the left.
static jot_value jot_random_falling_dims(jot_value key, jot_dtype dtype, jot_value left,
                                         jot_value right, const int64_t *dims)
{
    return jot_random_triangular_dims(key, dtype, left, left, right, dims);
}

static double falling_below(double left, double right, double x)
{
    double rest = (right / 2 - x / 2) / (right / 2 - left / 2);
    return 1 - rest * rest;
}

// Of many events, by the normal distribution and its first correction.
static double count_below(double mean, double variance, double skewness, double x)
{
    double z = (floor(x) + 0.5 - mean) / sqrt(variance);
    return normal_below(z) - skewness * (z * z - 1) * exp(-z * z / 2) / sqrt(72 * M_PI);
}

static double poisson_below(double mean, double b, double x)
{
    (void)b;
    return count_below(mean, mean, 1 / sqrt(mean), x);
}

static double binomial_below(double n, double p, double x)
{
    double variance = n * p * (1 - p);
    return count_below(n * p, variance, (1 - 2 * p) / sqrt(variance), x);
}

static double loggamma_below(double a, double b, double x)
{
    (void)b;
    return x < -30 ? exp(a * x - lgamma(a + 1)) : gamma_below(a, exp(x));
}

static double beta_law(double a, double b, double x) { return beta_below(a, b, x); }

#define END(name, n, d, a, b, low, high, law)                                                  \
    {#name, n, d, (void (*)(void))jot_random_##name##_dims, a, b, low, high, law}
static const struct end {
    const char *name;
    int n_params;
    jot_dtype dtype;
    void (*draw)(void);
    double a, b, low, high; // parameters, and the ends of the support
    double (*law)(double a, double b, double x);
} ends[] = {
    END(truncated_normal, 2, JOT_F64, -INFINITY, -9, -INFINITY, -9, truncated_below),
    END(truncated_normal, 2, JOT_F64, 8, 9, 8, 9, truncated_below),
    END(truncated_normal, 2, JOT_F64, 30, 31, 30, 31, truncated_below),
    END(truncated_normal, 2, JOT_F64, 0.25, 0.2500000001, 0.25, 0.2500000001, truncated_below),
    END(truncated_normal, 2, JOT_F32, 5.5, 1e6, 5.5, 1e6, truncated_below),
    END(truncated_normal, 2, JOT_F32, -6, -5.5, -6, -5.5, truncated_below),
    END(truncated_normal, 2, JOT_F32, 5, INFINITY, 5, INFINITY, truncated_below),
    END(truncated_normal, 2, JOT_F32, -100, 100, -6, 6, truncated_below),
    END(truncated_normal, 2, JOT_F32, 1, 1.001953125, 1, 1.001953125, truncated_below),
    END(wald, 1, JOT_F32, 1e4, 0, 0, INFINITY, wald_below),
    END(wald, 1, JOT_F64, 1e8, 0, 0, INFINITY, wald_below),
    END(wald, 1, JOT_F32, 1e-3, 0, 0, INFINITY, wald_below),
    END(wald, 1, JOT_F32, 1e38, 0, 0, INFINITY, wald_below),
    END(wald, 1, JOT_F64, INFINITY, 0, 0, INFINITY, wald_below),
    END(falling, 2, JOT_F32, -1e38, 3e38, -1e38, 3e38, falling_below),
    END(falling, 2, JOT_F32, 0, 1e-30, 0, 1e-30, falling_below),
    END(falling, 2, JOT_F64, -1e308, 1e308, -1e308, 1e308, falling_below),
    END(t, 1, JOT_F32, 0.125, 0, -INFINITY, INFINITY, t_below),
    END(t, 1, JOT_F32, 1e6, 0, -INFINITY, INFINITY, t_below),
    END(t, 1, JOT_F32, INFINITY, 0, -10, 10, t_below),
    END(f, 2, JOT_F32, 0.125, 0.125, 0, INFINITY, f_below),
    END(generalized_normal, 1, JOT_F32, 128, 0, -2, 2, generalized_below),
    END(generalized_normal, 1, JOT_F64, 0.125, 0, -INFINITY, INFINITY, generalized_below),
    END(generalized_normal, 1, JOT_F32, INFINITY, 0, -1, 1, generalized_below),
    END(generalized_normal, 1, JOT_F64, INFINITY, 0, -1, 1, generalized_below),
    END(loggamma, 1, JOT_F32, 0x1p-10, 0, -INFINITY, 100, loggamma_below),
    END(beta, 2, JOT_F64, 0.125, 8, 0, 1, beta_law),
    END(poisson, 1, JOT_I32, 0x1p18, 0, 0, INFINITY, poisson_below),
    END(poisson, 1, JOT_I32, 0x1p27, 0, 0, INFINITY, poisson_below),
    END(poisson, 1, JOT_I64, 0x1p34, 0, 0, INFINITY, poisson_below),
    END(binomial, 2, JOT_F32, 0x1p30, 0.5, 0, 0x1p30, binomial_below),
    END(binomial, 2, JOT_F32, 0x1p18, 0.125, 0, 0x1p18, binomial_below),
    END(binomial, 2, JOT_F32, 0x1p30, 0x1p-20, 0, 0x1p30, binomial_below),
};
enum { ENDS = sizeof ends / sizeof *ends };

static jot_value drawn_at(const struct end *e, jot_value key, const int64_t *dims)
{
    // The numbers that counts take are f32.
    jot_dtype d = e->dtype == JOT_F64 ? JOT_F64 : JOT_F32;
    jot_value a = jot_full(d, e->a), b = jot_full(d, e->b);
    return e->n_params == 1 ? ((draw1 *)e->draw)(key, e->dtype, a, dims)
                            : ((draw2 *)e->draw)(key, e->dtype, a, b, dims);
}

START_TEST(test_ends_of_parameters)
{
    const int64_t n = getenv("JOT_TEST_FULL") ? 100000 : 4000, dims[] = {n, JOT_END};
    double *x = malloc((size_t)n * sizeof *x);
    ck_assert_ptr_nonnull(x);
    for (int k = 0; k < ENDS; k++) {
        if (!sample_takes((uint64_t)k, 1))
            continue;
        const struct end *e = &ends[k];
        jot_array *a = NULL;
        must(jot_eval(jot_convert(drawn_at(e, jot_random_key(60 + k), dims), JOT_F64), &a));
        memcpy(x, jot_array_data(a), (size_t)n * sizeof *x);
        qsort(x, (size_t)n, sizeof *x, compare);
        ck_assert_msg(x[0] >= e->low && x[n - 1] <= e->high, "%s(%g, %g): from %g to %g",
                      e->name, e->a, e->b, x[0], x[n - 1]);
        double most = 0;
        for (int64_t i = 0; i < n; i++)
            if (x[i] == 0 && e->dtype == JOT_F32) // what is less than the least number
                x[i] = 0x1p-149;
        for (int64_t i = 0; i < n; i++)
            if (i + 1 == n || x[i + 1] > x[i])
                most = fmax(most, fabs((double)(i + 1) / (double)n - e->law(e->a, e->b, x[i])));
        ck_assert_msg(most * sqrt((double)n) < 1.9495,
                      "%s(%g, %g) of key %d: distance %g, p below 0.001", e->name, e->a, e->b,
                      60 + k, most * sqrt((double)n));
        jot_array_release(a);
    }
    free(x);
}
END_TEST

// What is finite or inside an interval in half types, too, whose numbers are few.
START_TEST(test_ends_of_half_types)
{
    static const jot_dtype halves[] = {JOT_F16, JOT_BF16};
    jot_value key = jot_random_key(3);
    for (int i = 0; i < 2; i++) {
        jot_dtype d = halves[i];
        CHECK_EXACT(jot_all(jot_is_finite(jot_random_rayleigh(key, d, 2, 20000))), 1);
        CHECK_EXACT(jot_all(jot_is_finite(jot_random_exponential(key, d, 20000))), 1);
        CHECK_EXACT(jot_all(jot_less(jot_random_uniform_in(key, d, 100, 101, 20000), 101)), 1);
        jot_value x = jot_random_truncated_normal(key, d, -100, 100, 20000);
        CHECK_EXACT(jot_less(jot_max(jot_abs(x)), 5), 1);
        x = jot_convert(jot_random_truncated_normal(key, d, 2, 4, 20000), JOT_F32);
        CHECK(jot_mean(x), 0.02,
              2.3708); // with a standard deviation of 0.33, and steps of 2^-6
    }
}
END_TEST

// Odd numbers are as frequent as even ones, though the mean is no f32 that has them.
START_TEST(test_poisson_parity)
{
    jot_value k = jot_random_poisson(jot_random_key(1), JOT_I64, 1e10, 10000);
    CHECK(jot_mean(jot_convert(jot_bitwise_and(k, 1), JOT_F64)), 0.025, 0.5);
    k = jot_random_poisson(jot_random_key(1), JOT_U8, 1e6, 10);
    CHECK_EXACT(jot_convert(jot_min(k), JOT_I32), 255);
}
END_TEST

START_TEST(test_uniform_of_all_numbers)
{
    jot_value x = jot_random_uniform_in(jot_random_key(2), JOT_F32, -3e38, 3e38, 10000);
    CHECK(jot_div(jot_mean(jot_convert(x, JOT_F64)), 3e38), 0.03, 0);
    CHECK_EXACT(jot_less(jot_max(jot_abs(x)), 3.1e38), 1);
    CHECK_EXACT(jot_greater(jot_max(x), 2.9e38), 1);
}
END_TEST

// ---------------------------------------------------------------------------------------
// Maps

static enum kind current;
static jot_value three(jot_value key)
{
    return drawn(current, key, JOT_F32, (const int64_t[]){3, JOT_END});
}

START_TEST(test_maps_over_keys)
{
    for (current = 0; current < KINDS; current++) {
        if (!sample_takes(current, 1))
            continue;
        jot_value keys = jot_random_split(jot_random_key(5), 4), rows, row[4];
        JOT_VMAP ((keys), (rows)) {
            rows = three(keys);
        }
        for (int i = 0; i < 4; i++)
            row[i] = three(jot_take(keys, i));
        jot_value wrong = jot_not_equal(rows, jot_stack(0, row[0], row[1], row[2], row[3]));
        ck_assert_msg(jot_item(jot_any(wrong)) == 0, "distribution %d: lanes are not the loop",
                      (int)current);
    }
}
END_TEST

// A loop over time that splits its key gives what is written out.
START_TEST(test_in_a_loop)
{
    jot_value key = jot_random_key(1), rows = jot_from(0.0), total = jot_from(0.0);
    JOT_FOR (i, 5, total) {
        total = jot_add(total, jot_random_gamma(jot_random_fold_in(key, i), JOT_F32, 0.7));
    }
    for (int i = 0; i < 5; i++)
        rows = jot_add(rows, jot_random_gamma(jot_random_fold_in(key, i), JOT_F32, 0.7));
    CHECK_EXACT(jot_sub(total, rows), 0);
}
END_TEST

START_TEST(test_empty)
{
    jot_value key = jot_random_key(0);
    CHECK_TYPE(jot_random_gamma(key, JOT_F32, 2, 0), "f32[0]");
    CHECK_EXACT(jot_sum(jot_random_gamma(key, JOT_F32, 2, 0, 3)), 0);
    CHECK_EXACT(jot_sum(jot_random_poisson(key, JOT_I32, 2, 0)), 0);
    CHECK_EXACT(jot_sum(jot_random_binomial(key, JOT_F32, 9, 0.5, 0)), 0);
}
END_TEST

// A probability that is a C number has the digits of the dtype asked for.
START_TEST(test_numbers_as_probabilities)
{
    jot_value key = jot_random_key(3), p = jot_convert(1 - 1e-9, JOT_F64);
    jot_value want = jot_random_binomial(key, JOT_F64, 1e9, p, 100);
    CHECK_EXACT(jot_any(jot_not_equal(want, 1e9)), 1);
    CHECK_EXACT(
        jot_max(jot_abs(jot_sub(jot_random_binomial(key, JOT_F64, 1e9, 1 - 1e-9, 100), want))),
        0);
}
END_TEST

// ---------------------------------------------------------------------------------------
// Values and derivatives of JAX

#define CHECK_JAX(value, ...) CHECK(value, 1e-9, __VA_ARGS__)

static const double shape_list[] = {0.1, 0.5, 1.25, 2.5, 9.5, 300};

static jot_value list_of(const double *x)
{
    jot_value v[6];
    for (int i = 0; i < 6; i++)
        v[i] = jot_full(JOT_F64, x[i]);
    return jot_stack(0, v[0], v[1], v[2], v[3], v[4], v[5]);
}

static jot_value gammas(jot_value a) { return jot_random_gamma(jot_random_key(3), JOT_F64, a); }
static jot_value loggammas(jot_value a)
{
    return jot_random_loggamma(jot_random_key(3), JOT_F64, a);
}
static jot_value betas(jot_value a)
{
    static const double b[] = {2, 0.3, 1, 4, 9, 100};
    return jot_random_beta(jot_random_key(3), JOT_F64, a, list_of(b));
}
static jot_value squares(jot_value a)
{
    return jot_random_chisquare(jot_random_key(3), JOT_F64, a);
}
static jot_value parts(jot_value a)
{
    return jot_random_dirichlet(jot_random_key(3), JOT_F64, a);
}
static jot_value truncated(jot_value low)
{
    return jot_random_truncated_normal(jot_random_key(3), JOT_F64, low, 2, 3);
}
static jot_value scaled(jot_value a)
{
    jot_value key = jot_random_key(3);
    return jot_sub(jot_random_rayleigh(key, JOT_F64, a),
                   jot_random_uniform_in(key, JOT_F64, 0, a));
}

static jot_value gradient(jot_value (*f)(jot_value), jot_value x)
{
    x = jot_variable(x);
    return jot_gradient(jot_sum(f(x)), x);
}

START_TEST(test_gamma_gradients)
{
    jot_value a = list_of(shape_list);
    CHECK_JAX(gammas(a), 0.19747436369789093, 0.58686290435910926, 0.29582071873801707,
              2.7225305786456979, 7.998813614218057, 292.45931843830749);
    CHECK_JAX(gradient(gammas, a), 3.2062784381789844, 1.4528299513957945, 0.50106943009456284,
              1.1149987273315416, 0.93267028396326712, 0.98787423642933336);
    CHECK_JAX(gradient(loggammas, a), 16.23642876036384, 2.4755866158934938, 1.6938280463658695,
              0.40954497851267252, 0.1166010772279313, 0.0033778176113670828);
    CHECK_JAX(betas(a), 0.27718868312776063, 0.17002288320595993, 0.77680608616613489,
              0.22756891426295831, 0.57846435547956798, 0.72217157319113867);
    CHECK_JAX(gradient(betas, a), 1.6013849327627929, 0.38526726149976565, 0.082809452737215378,
              0.099880300365700475, 0.020875972456317834, 0.0006890567275639034);
    CHECK_JAX(gradient(squares, a), 2.5188640429295663, 2.103707478374865, 0.076064506790286396,
              1.1585863507906746, 0.90149432109456173, 0.98283820902583141);
    CHECK_JAX(parts(a), 0.00064902987935420737, 0.001928815228878849, 0.00097226030659219561,
              0.0089480156305242458, 0.026289331626635763, 0.96121254732801464);
}
END_TEST

static jot_value second_part(jot_value a) { return jot_take(parts(a), 1); }

START_TEST(test_gradients)
{
    jot_value a = list_of(shape_list), ones = jot_ones_like(a);
    CHECK_JAX(gradient(second_part, a), -2.032571484894081e-05, 0.0047657391704771729,
              -3.1764534964741668e-06, -7.0683649675617417e-06, -5.9125215122255029e-06,
              -6.2624785786482578e-06);
    CHECK_JAX(gradient(truncated, jot_full(JOT_F64, -1)), 0.9796239058453049);
    CHECK_JAX(jot_sum(jot_sub(gradient(scaled, a), scaled(ones))), 0);
}
END_TEST

START_TEST(test_multinomial)
{
    jot_value p = jot_stack(0, jot_full(JOT_F64, 0.2), jot_full(JOT_F64, 0.3),
                            jot_full(JOT_F64, 0.1), jot_full(JOT_F64, 0.4));
    jot_value key = jot_random_key(3);
    CHECK_EXACT(jot_random_multinomial(key, JOT_I32, 20, p), 5, 7, 0, 8);
    jot_value n = jot_stack(0, 20, 1000);
    CHECK_EXACT(jot_random_multinomial(key, JOT_F64, n, p, 2, 4), 5, 7, 0, 8, 186, 326, 87,
                401);
}
END_TEST

// What is outside of the range of parameters.
START_TEST(test_wrong_parameters)
{
    jot_value key = jot_random_key(2);
    CHECK_EXACT(jot_random_gamma(key, JOT_F32, -1), NAN);
    CHECK_EXACT(jot_random_gamma(key, JOT_F64, NAN), NAN);
    CHECK_EXACT(jot_random_gamma(key, JOT_F32, 0), 0);
    CHECK_EXACT(jot_random_loggamma(key, JOT_F32, 0), -INFINITY);
    CHECK_EXACT(jot_random_gamma(key, JOT_F32, INFINITY), INFINITY);
    CHECK_EXACT(jot_random_poisson(key, JOT_I32, -3, 2), -1, -1);
    CHECK_EXACT(jot_random_poisson(key, JOT_I32, NAN), -1);
    CHECK_EXACT(jot_random_poisson(key, JOT_I32, INFINITY), -1);
    CHECK_EXACT(jot_random_poisson(key, JOT_I64, 0), 0);
    CHECK_EXACT(jot_random_binomial(key, JOT_F32, -3, 0.5), NAN);
    CHECK_EXACT(jot_random_binomial(key, JOT_F32, 3, 1.5), NAN);
    CHECK_EXACT(jot_random_binomial(key, JOT_F32, NAN, 0.5), NAN);
    CHECK_EXACT(jot_random_binomial(key, JOT_F32, INFINITY, 0.5), INFINITY);
    CHECK_EXACT(jot_random_beta(key, JOT_F64, INFINITY, 2), 1);
    CHECK_EXACT(jot_random_beta(key, JOT_F32, 2, INFINITY), 0);
    CHECK_EXACT(jot_random_wald(key, JOT_F64, 0), 0);
    CHECK_EXACT(jot_random_binomial(key, JOT_F32, 7.5, 1), 7);
    CHECK_EXACT(jot_random_binomial(key, JOT_F32, 7, 0), 0);
}
END_TEST

static void add(TCase *t)
{
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, test_distribution_functions);
    tcase_add_test(t, test_ends_of_parameters);
    tcase_add_test(t, test_ends_of_half_types);
    tcase_add_test(t, test_poisson_parity);
    tcase_add_test(t, test_uniform_of_all_numbers);
    tcase_add_test(t, test_maps_over_keys);
    tcase_add_test(t, test_in_a_loop);
    tcase_add_test(t, test_empty);
    tcase_add_test(t, test_numbers_as_probabilities);
    tcase_add_test(t, test_gamma_gradients);
    tcase_add_test(t, test_gradients);
    tcase_add_test(t, test_multinomial);
    tcase_add_test(t, test_wrong_parameters);
}

int main(void) { return run_suite("trace/random_distributions", add); }
