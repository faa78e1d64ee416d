// SPDX-License-Identifier: Apache-2.0
#include "numpy/double_double.h"

#include "numpy/special_parts.h"

struct double_double dd_of(jot_value x) { return (struct double_double){x, num(0)}; }

struct double_double dd_sum(jot_value x, jot_value y)
{
    jot_value sum = add(x, y);
    return (struct double_double){sum, special_rounding(x, y, sum)};
}

struct double_double dd_difference(jot_value x, jot_value y) { return dd_sum(x, jot_neg(y)); }

// Of |low| at most about |high|.
static struct double_double normal(jot_value high, jot_value low)
{
    jot_value sum = add(high, low);
    return (struct double_double){sum, sub(low, sub(sum, high))};
}

struct double_double dd_add(struct double_double x, struct double_double y)
{
    struct double_double s = dd_sum(x.high, y.high);
    return normal(s.high, add(s.low, add(x.low, y.low)));
}

struct double_double dd_shift(struct double_double x, jot_value y)
{
    struct double_double s = dd_sum(x.high, y);
    return normal(s.high, add(s.low, x.low));
}

struct double_double dd_mul(struct double_double x, struct double_double y)
{
    jot_value product = mul(x.high, y.high), rest = jot_fma(x.high, y.high, jot_neg(product));
    rest = jot_fma(x.high, y.low, jot_fma(x.low, y.high, rest));
    return normal(product, rest);
}

struct double_double dd_scale(struct double_double x, jot_value y)
{
    jot_value product = mul(x.high, y), rest = jot_fma(x.high, y, jot_neg(product));
    return normal(product, jot_fma(x.low, y, rest));
}

struct double_double dd_div(struct double_double x, struct double_double y)
{
    jot_value q = over(x.high, y.high);
    struct double_double rest = dd_add(x, dd_neg(dd_scale(y, q)));
    return normal(q, over(rest.high, y.high));
}

struct double_double dd_neg(struct double_double x)
{
    return (struct double_double){jot_neg(x.high), jot_neg(x.low)};
}

struct double_double dd_where(jot_value flag, struct double_double x, struct double_double y)
{
    return (struct double_double){jot_where(flag, x.high, y.high),
                                  jot_where(flag, x.low, y.low)};
}

jot_value dd_round(struct double_double x) { return add(x.high, x.low); }
