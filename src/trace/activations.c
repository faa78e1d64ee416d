// SPDX-License-Identifier: Apache-2.0
// Functions of neural networks beyond those of composite.c, as jax.nn has them.
#include "trace/emit.h"

#include "jot/nn.h"
#include "jot/special.h"

#include <math.h>

static jot_value num(double x) { return jot_from_double(x); }

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

jot_value jot_celu(jot_value x, jot_value alpha)
{
    return jot_where(is_above(x), x, jot_mul(alpha, jot_expm1(jot_div(below(x), alpha))));
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
jot_value jot_soft_sign(jot_value x) { return jot_div(x, jot_add(jot_abs(x), num(1))); }

jot_value jot_squareplus(jot_value x, jot_value b)
{
    return jot_mul(num(0.5), jot_add(x, jot_sqrt(jot_add(jot_square(x), b))));
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
