// SPDX-License-Identifier: Apache-2.0
// Gamma numbers by rejection, and what is made of them.  Every number has a key of its own, and the
// loops of all numbers are one kernel in which each ends by itself.
#include "numpy/formula.h"
#include "trace/lanes.h"
#include "trace/random.h"

#include "jot/control.h"
#include "jot/special.h"

#include <float.h>

static struct random_key origin(void)
{
    jot_value zero = jot_convert(jot_from_int(0), JOT_U32);
    return (struct random_key){{zero, zero}};
}

// ---------------------------------------------------------------------------------------
// G. Marsaglia and W. Tsang, A simple method for generating gamma variables, 2000.

// d V with V = (1 + c x)^3 of normal x has density x^(a - 1) e^-x for d = a - 1/3, c = 1/(3 sqrt(d))
// where a >= 1 once the right ones are rejected.
struct tsang {
    jot_value d, c;
};

enum { KEY, SQUARE = 2, CUBE, UNIFORM, CARRIES }; // what the loop carries; two words of a key

static jot_value is_rejected(const jot_value *carry, void *ctx)
{
    const struct tsang *t = ctx;
    jot_value x2 = carry[SQUARE], v = carry[CUBE], u = carry[UNIFORM], one = num(1);
    jot_value outside = jot_greater_equal(u, jot_sub(one, mul(num(0.0331), mul(x2, x2))));
    jot_value bound = add(mul(x2, num(0.5)), mul(t->d, add(jot_sub(one, v), random_log(v))));
    return jot_logical_and(outside, jot_greater_equal(random_log(u), bound));
}

// Normal numbers until 1 + c x is positive: carries a key, x and 1 + c x.
static jot_value is_negative(const jot_value *carry, void *ctx)
{
    (void)ctx;
    return jot_less_equal(carry[3], num(0));
}

static void draw_normal(jot_value *carry, void *ctx)
{
    const struct tsang *t = ctx;
    struct random_key key = {{carry[0], carry[1]}}, next = random_child(key, 0);
    carry[2] = random_normal_at(random_child(key, 1), origin(), jot_value_dtype(t->d));
    carry[3] = add(num(1), mul(carry[2], t->c));
    memcpy(carry, next.word, sizeof next.word);
}

static void draw_candidate(jot_value *carry, void *ctx)
{
    const struct tsang *t = ctx;
    struct random_key key = {{carry[KEY], carry[KEY + 1]}}, next = random_child(key, 0),
                      keys = random_child(key, 1);
    jot_value zero = jot_zeros_like(t->d);
    jot_value inner[] = {keys.word[0], keys.word[1], zero, jot_sub(zero, num(1))};
    jot_while_at(is_negative, draw_normal, ctx, 4, inner, NULL, "jot_random_gamma");
    memcpy(carry + KEY, next.word, sizeof next.word);
    carry[SQUARE] = mul(inner[2], inner[2]);
    carry[CUBE] = mul(mul(inner[3], inner[3]), inner[3]);
    carry[UNIFORM] = random_uniform_at(random_child(key, 2), origin(), jot_value_dtype(t->d));
}

// in: the words of a key, and a; out: the number and its logarithm.  Below 1 it is a number of
// a + 1 times u^(1/a).
static void gamma_of(const jot_value *in, jot_value *out, void *ctx)
{
    (void)ctx;
    struct random_key key = {{in[0], in[1]}}, loop = random_child(key, 0),
                      rest = random_child(key, 1);
    jot_value a = in[2], one = jot_ones_like(a), zero = jot_zeros_like(a);
    jot_value is_large = jot_greater_equal(a, one);
    jot_value third = jot_mul(one, num(1.0 / 3));
    struct tsang t = {.d = jot_sub(jot_where(is_large, a, add(a, one)), third)};
    t.c = jot_div(third, jot_sqrt(t.d));
    jot_value carry[CARRIES] = {loop.word[0], loop.word[1], zero, one, add(one, one)};
    jot_while_at(is_rejected, draw_candidate, &t, CARRIES, carry, NULL, "jot_random_gamma");
    jot_value v = carry[CUBE], u = random_uniform_at(rest, origin(), jot_value_dtype(a));
    jot_value boost = jot_power(jot_sub(one, u), jot_div(one, a));
    out[0] = mul(mul(t.d, v), jot_where(is_large, one, boost));

    jot_value log_u = random_log1p(jot_neg(u));
    jot_value is_whole = jot_logical_or(is_large, jot_equal(log_u, zero));
    jot_value log_boost = jot_where(is_whole, zero, mul(log_u, jot_div(one, a)));
    jot_value log_d = jot_where(jot_is_finite(t.d), random_log(t.d), t.d);
    out[1] = add(add(log_d, random_log(v)), log_boost);
}

// x, with the derivative in a that keeps P(a, x).
static jot_value first(jot_value x, jot_value a)
{
    (void)a;
    return x;
}

static jot_value gamma_rule(jot_value x, jot_value a, jot_value dx, jot_value da)
{
    (void)dx;
    return mul(da, jot_random_gamma_grad(a, x));
}

// The logarithm of x; where x is 0 it is taken for the least normal number.
static jot_value loggamma_rule(jot_value log_x, jot_value a, jot_value dx, jot_value da)
{
    (void)dx;
    jot_dtype d = jot_value_dtype(log_x);
    jot_value x = jot_exp(log_x), tiny = num(d == JOT_F64 ? DBL_MIN : (double)FLT_MIN);
    x = jot_where(jot_equal(x, num(0)), tiny, x);
    return mul(da, jot_div(jot_random_gamma_grad(a, x), x));
}

// Of the parameter, with the shape of the request: the numbers and their logarithms.
struct gammas {
    jot_value x, log;
};

static struct gammas gammas_of(const struct random_request *r, jot_value key, jot_value a)
{
    struct random_key keys = random_children(random_key_of(key), r->count);
    jot_value flat =
        jot_reshape_dims(jot_broadcast_to_dims(a, r->dims), (int64_t[]){r->count, JOT_END});
    jot_value in[] = {keys.word[0], keys.word[1], jot_stop_gradient(flat)}, out[2];
    jot_function f = jot_function_uniform(r->name, r->name, gamma_of, 3, 2, NULL);
    jot_apply_at(jot_vmap_of(f, r->name, NULL), 3, in, 2, out, NULL);
    jot_value x = TRACE_RULED(r->name, first, gamma_rule, out[0], flat);
    jot_value log_x = TRACE_RULED(r->name, first, loggamma_rule, out[1], flat);
    return (struct gammas){jot_reshape_dims(x, r->dims), jot_reshape_dims(log_x, r->dims)};
}

static jot_value gammas(const struct random_request *r, jot_value key, jot_value a, bool is_log)
{
    struct gammas g = gammas_of(r, key, a);
    return is_log ? g.log : g.x;
}

// Where numbers have few digits or none, so that what is made of them takes their logarithms.
static jot_value is_tiny(const struct random_request *r, jot_value x)
{
    return jot_less(x, num(random_tiny(r->dtype)));
}

// ---------------------------------------------------------------------------------------
// What the numbers are made of

static jot_value gamma(const struct random_request *r)
{
    return gammas(r, r->key, r->param[0], false);
}

static jot_value loggamma(const struct random_request *r)
{
    return gammas(r, r->key, r->param[0], true);
}

// x / (x + y) of gamma numbers, with the larger scaled to 1.
static jot_value beta(const struct random_request *r)
{
    jot_value x = gammas(r, random_subkey(r->key, 0), r->param[0], true);
    jot_value y = gammas(r, random_subkey(r->key, 1), r->param[1], true),
              top = jot_maximum(x, y);
    // Of one that is infinite it is 1 or 0.
    jot_value is_end = jot_logical_and(jot_is_inf(top), jot_greater(top, num(0)));
    is_end = jot_logical_and(is_end, jot_not_equal(x, y));
    jot_value end = jot_convert(jot_greater(x, y), r->dtype);
    x = jot_exp(jot_sub(x, top));
    y = jot_exp(jot_sub(y, top));
    return jot_where(is_end, end, jot_div(x, add(x, y)));
}

// Twice a gamma number of df / 2.
static struct gammas chisquares(const struct random_request *r, jot_value key, jot_value df)
{
    jot_value log_x = gammas(r, key, jot_div(df, num(2)), true);
    return (struct gammas){mul(jot_exp(log_x), num(2)), log_x};
}

static jot_value chisquare(const struct random_request *r)
{
    return chisquares(r, r->key, r->param[0]).x;
}

// The mean of df squares, whose sum is x: 1 of infinitely many.
static jot_value mean_square(jot_value x, jot_value df)
{
    return jot_where(jot_is_inf(df), num(1), jot_div(x, df));
}

static jot_value f(const struct random_request *r)
{
    struct gammas under = chisquares(r, random_subkey(r->key, 0), r->param[1]);
    struct gammas over = chisquares(r, random_subkey(r->key, 1), r->param[0]);
    jot_value by_logs = jot_logical_or(is_tiny(r, under.x), is_tiny(r, over.x));
    jot_value log_ratio =
        add(jot_sub(over.log, under.log), jot_log(jot_div(r->param[1], r->param[0])));
    jot_value divisor = jot_where(by_logs, num(1), mean_square(under.x, r->param[1]));
    jot_value ratio = jot_div(mean_square(over.x, r->param[0]), divisor);
    return jot_where(by_logs, jot_exp(log_ratio), ratio);
}

static jot_value t(const struct random_request *r)
{
    jot_value half = jot_div(r->param[0], num(2)),
              n = random_normal(r, random_subkey(r->key, 0));
    struct gammas g = gammas_of(r, random_subkey(r->key, 1), half);
    jot_value by_log = is_tiny(r, g.x), x = jot_where(by_log, num(1), g.x);
    jot_value far = mul(mul(n, jot_sqrt(half)), jot_exp(mul(g.log, num(-0.5))));
    jot_value stretch = jot_where(jot_is_inf(half), num(1), jot_sqrt(jot_div(half, x)));
    return jot_where(by_log, far, mul(n, stretch));
}

// With density e^(-|x|^p).
static jot_value generalized(const struct random_request *r, jot_value key)
{
    // Its power of gamma numbers of 1/p goes to a uniform number, as a loggamma(a) does beside a = 0.
    double least = r->dtype == JOT_F64 ? 0x1p-1000 : r->dtype == JOT_F16 ? 0x1p-12 : 0x1p-120;
    jot_value inverse = jot_div(num(1), r->param[0]);
    inverse = jot_where(jot_equal(inverse, num(0)), num(least), inverse);
    struct gammas g = gammas_of(r, random_subkey(key, 0), inverse);
    jot_value by_log = is_tiny(r, g.x), x = jot_where(by_log, num(1), g.x);
    x = jot_where(by_log, jot_exp(mul(g.log, inverse)), jot_power(x, inverse));
    jot_value sign = jot_random_rademacher_dims(random_subkey(key, 1), r->dtype, r->dims);
    return mul(sign, x);
}

static jot_value generalized_normal(const struct random_request *r)
{
    return generalized(r, r->key);
}

RANDOM_OF1(gamma, a)
RANDOM_OF1(loggamma, a)
RANDOM_OF2(beta, a, b)
RANDOM_OF1(chisquare, df)
RANDOM_OF2(f, numerator, denominator)
RANDOM_OF1(t, df)
RANDOM_OF1(generalized_normal, p)

// The sizes, then one more.
static const int64_t *with_axis(const struct random_request *r, int64_t n, int64_t *dims)
{
    memcpy(dims, r->dims, sizeof *dims * (size_t)r->rank);
    dims[r->rank] = n;
    dims[r->rank + 1] = JOT_END;
    return dims;
}

// F. Barthe, O. Guedon, S. Mendelson and A. Naor, A probabilistic approach to the geometry of the
// l_p^n-ball, 2005.
static jot_value ball(jot_value key, jot_dtype dtype, int64_t d, jot_value p,
                      const int64_t *dims)
{
    const char *name = "jot_random_ball";
    struct random_request r;
    jot_value error;
    int64_t more[IR_MAX_RANK + 2];
    if (!random_open(&r, name, key, dtype, dims, &error) || !random_is_float(&r, &error) ||
        !trace_ready(name, 1, &p, &error))
        return error;
    if (d < 0)
        return trace_fail(name, JOT_ERR_ARGUMENT, "a ball of %lld axes", (long long)d);
    if (trace_type(p).rank)
        return trace_fail(name, JOT_ERR_SHAPE, "p is %s, not one number", trace_type_text(p));
    jot_value g = jot_random_generalized_normal_dims(random_subkey(r.key, 0), dtype, p,
                                                     with_axis(&r, d, more));
    jot_value e = jot_random_exponential_dims(random_subkey(r.key, 1), dtype, r.dims);
    p = jot_convert(p, dtype);
    jot_value sum = jot_sum_axes(jot_power(jot_abs(g), p), (int[]){-1, JOT_END});
    jot_value radius = jot_power(add(sum, e), jot_div(num(1), p));
    return jot_div(g, jot_expand_dims_axes(radius, (int[]){-1, JOT_END}));
}

jot_value jot_random_ball_dims(jot_value key, jot_dtype dtype, int64_t d, jot_value p,
                               const int64_t *dims)
{
    TRACE_RETURN(ball(key, dtype, d, p, dims));
}

// Gamma numbers of alpha along the last axis, over their sum.
static jot_value dirichlet(jot_value key, jot_dtype dtype, jot_value alpha, const int64_t *dims)
{
    const char *name = "jot_random_dirichlet";
    struct random_request r;
    jot_value error;
    int64_t more[IR_MAX_RANK + 2];
    if (!random_open(&r, name, key, dtype, dims, &error) || !random_is_float(&r, &error) ||
        !trace_ready(name, 1, &alpha, &error))
        return error;
    int rank = trace_type(alpha).rank;
    if (!rank)
        return trace_fail(name, JOT_ERR_SHAPE, "alpha is %s: it has an axis of categories",
                          trace_type_text(alpha));
    bool has_sizes = r.rank > 0;
    jot_value x = jot_random_loggamma_dims(
        r.key, dtype, alpha,
        has_sizes ? with_axis(&r, jot_value_dim(alpha, -1), more) : (int64_t[]){JOT_END});
    return jot_softmax(x, -1);
}

jot_value jot_random_dirichlet_dims(jot_value key, jot_dtype dtype, jot_value alpha,
                                    const int64_t *dims)
{
    TRACE_RETURN(dirichlet(key, dtype, alpha, dims));
}
