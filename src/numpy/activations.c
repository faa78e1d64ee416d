// SPDX-License-Identifier: Apache-2.0
// Functions of neural networks beyond those of composite.c, as jax.nn has them.
#include "trace/lanes.h"

#include "jot/nn.h"
#include "jot/special.h"

#include <math.h>

static jot_value num(double x) { return jot_from_double(x); }

// x as a float, of the same type if it is one.
static jot_value floating(jot_value x) { return jot_mul(x, num(1)); }

// x above 0 and 0 below, and the other way round: no exponential of the untaken side overflows.
static jot_value is_above(jot_value x) { return jot_less(num(0), x); }
static jot_value below(jot_value x) { return jot_where(is_above(x), num(0), x); }

// Without slope at 6, as at 0.
jot_value jot_relu6(jot_value x)
{
    return jot_where(jot_greater_equal(x, num(6)), num(6), jot_relu(x));
}

jot_value jot_elu(jot_value x, jot_value alpha)
{
    return jot_where(is_above(x), x, jot_mul(alpha, jot_expm1(below(x))));
}

jot_value jot_selu(jot_value x)
{
    return jot_mul(num(1.0507009873554804934), jot_elu(x, num(1.6732632423543772848)));
}

static jot_value celu(jot_value x, jot_value alpha)
{
    return jot_where(is_above(x), x, jot_mul(alpha, jot_expm1(jot_div(below(x), alpha))));
}

// expm1(u) - u e^u of u <= 0; near 0, where that cancels, -u^2/2 - u^3/3 - u^4/8 - ...
static jot_value gap(jot_value u)
{
    enum { TERMS = 18 };
    double c[TERMS], factorial = 1;
    for (int k = 0; k < TERMS; k++) { // of u^(k + 2)
        factorial *= k + 2;
        c[k] = -(k + 1) / factorial;
    }
    jot_value is_near = jot_less(num(-0.5), u), near = jot_where(is_near, u, num(0));
    near = jot_mul(jot_square(near), trace_polynomial(TERMS, c, near));
    return jot_where(is_near, near, jot_sub(jot_expm1(u), jot_mul(u, jot_exp(u))));
}

static jot_value gap_rule(jot_value u, jot_value du)
{
    return jot_neg(jot_mul(du, jot_mul(u, jot_exp(u))));
}

// In alpha the gap of x/alpha.
static jot_value celu_rule(jot_value x, jot_value alpha, jot_value dx, jot_value dalpha)
{
    jot_value u = jot_div(below(x), alpha);
    jot_value in_alpha = TRACE_RULED("jot_celu", gap, gap_rule, u);
    return jot_add(trace_along(dx, jot_exp(u)), trace_along(dalpha, in_alpha));
}

jot_value jot_celu(jot_value x, jot_value alpha)
{
    return TRACE_RULED("jot_celu", celu, celu_rule, floating(x), floating(alpha));
}

jot_value jot_gelu_exact(jot_value x) { return jot_mul(x, jot_ndtr(x)); }

static jot_value glu(jot_value x, int axis)
{
    int64_t at;
    jot_value error;
    if (!trace_ready("jot_glu", 1, &x, &error) || !trace_axis("jot_glu", x, axis, &at, &error))
        return error;
    int64_t n = jot_value_dim(x, (int)at);
    if (n % 2)
        return trace_fail("jot_glu", JOT_ERR_SHAPE,
                          "axis %lld is %lld long, which has no halves", (long long)at,
                          (long long)n);
    jot_value a = jot_slice_axis(x, (int)at, 0, n / 2, 1);
    return jot_mul(a, jot_logistic(jot_slice_axis(x, (int)at, n / 2, n, 1)));
}

jot_value jot_glu(jot_value x, int axis) { TRACE_RETURN(glu(x, axis)); }

jot_value jot_hard_sigmoid(jot_value x)
{
    return jot_div(jot_relu6(jot_add(x, num(3))), num(6));
}

jot_value jot_hard_silu(jot_value x) { return jot_mul(x, jot_hard_sigmoid(x)); }

jot_value jot_hard_tanh(jot_value x)
{
    jot_value high = jot_where(jot_less(num(1), x), num(1), x);
    return jot_where(jot_less(x, num(-1)), num(-1), high);
}

jot_value jot_leaky_relu(jot_value x, jot_value slope)
{
    return jot_where(jot_greater_equal(x, num(0)), x, jot_mul(slope, x));
}

jot_value jot_log_sigmoid(jot_value x) { return jot_neg(jot_softplus(jot_neg(x))); }
jot_value jot_mish(jot_value x) { return jot_mul(x, jot_tanh(jot_softplus(x))); }

static jot_value soft_sign(jot_value x) { return jot_div(x, jot_add(jot_abs(x), num(1))); }

static jot_value soft_sign_rule(jot_value x, jot_value dx)
{
    return jot_mul(dx, jot_square(jot_div(num(1), jot_add(jot_abs(x), num(1)))));
}

jot_value jot_soft_sign(jot_value x)
{
    return TRACE_RULED("jot_soft_sign", soft_sign, soft_sign_rule, floating(x));
}

// (x + h) / 2 of h = sqrt(x^2 + b), below 0 b/2 / (h - x).
static jot_value squareplus(jot_value x, jot_value b)
{
    jot_value h = jot_hypot(x, jot_sqrt(b)), half = num(0.5);
    return jot_where(jot_less(x, num(0)), jot_mul(half, jot_div(b, jot_sub(h, x))),
                     jot_mul(half, jot_add(x, h)));
}

// That over h, which is its slope in x.
static jot_value squareplus_slope(jot_value x, jot_value b)
{
    return jot_div(squareplus(x, b), jot_hypot(x, jot_sqrt(b)));
}

// d (1 + x/h) / 2 = (dx b - db x/2) / (2 h^3)
static jot_value squareplus_slope_rule(jot_value x, jot_value b, jot_value dx, jot_value db)
{
    jot_value root = jot_sqrt(b), h = jot_hypot(x, root), half = num(0.5);
    jot_value in_x = jot_div(jot_mul(half, jot_square(jot_div(root, h))), h);
    jot_value in_b = jot_div(jot_div(jot_div(jot_mul(num(-0.25), x), h), h), h);
    return jot_add(jot_mul(dx, in_x), jot_mul(db, in_b));
}

static jot_value squareplus_rule(jot_value x, jot_value b, jot_value dx, jot_value db)
{
    jot_value in_x =
        TRACE_RULED("jot_squareplus", squareplus_slope, squareplus_slope_rule, x, b);
    jot_value in_b = jot_div(num(0.25), jot_hypot(x, jot_sqrt(b)));
    return jot_add(trace_along(dx, in_x), trace_along(db, in_b));
}

jot_value jot_squareplus(jot_value x, jot_value b)
{
    return TRACE_RULED("jot_squareplus", squareplus, squareplus_rule, floating(x), floating(b));
}

jot_value jot_sparse_plus(jot_value x)
{
    jot_value middle = jot_mul(num(0.25), jot_square(jot_add(x, num(1))));
    jot_value high = jot_where(jot_greater_equal(x, num(1)), x, middle);
    return jot_where(jot_less_equal(x, num(-1)), num(0), high);
}

jot_value jot_sparse_sigmoid(jot_value x)
{
    return jot_mul(num(0.5), jot_clip(jot_add(x, num(1)), num(0), num(2)));
}

jot_value jot_log1mexp(jot_value x)
{
    jot_value is_small = jot_less(x, num(M_LN2));
    jot_value small = jot_where(is_small, x, num(M_LN2)),
              large = jot_where(is_small, num(1), x);
    return jot_where(is_small, jot_log(jot_neg(jot_expm1(jot_neg(small)))),
                     jot_log1p(jot_neg(jot_exp(jot_neg(large)))));
}

jot_value jot_standardize(jot_value x, int axis)
{
    const int axes[] = {axis, JOT_KEEPDIMS, JOT_END};
    jot_value variance = jot_add(jot_var_axes(x, axes), num(1e-5));
    return jot_mul(jot_sub(x, jot_mean_axes(x, axes)), jot_rsqrt(variance));
}

jot_value jot_logmeanexp_axes(jot_value x, const int *axes)
{
    jot_value y = jot_logsumexp_axes(x, axes);
    double count = (double)jot_value_size(x) / (double)jot_value_size(y);
    return jot_sub(y, num(log(count)));
}
