// SPDX-License-Identifier: Apache-2.0
// Short names for what formulas are written in.
#ifndef LIBRARY_FORMULA_H
#define LIBRARY_FORMULA_H

#include "jot/ops.h"
#include "jot/products.h"

#include <math.h>

static inline jot_value num(double x) { return jot_from_double(x); }
static inline jot_value add(jot_value x, jot_value y) { return jot_add(x, y); }
static inline jot_value sub(jot_value x, jot_value y) { return jot_sub(x, y); }
static inline jot_value mul(jot_value x, jot_value y) { return jot_mul(x, y); }
static inline jot_value over(jot_value x, jot_value y) { return jot_div(x, y); }
static inline jot_value both(jot_value x, jot_value y) { return jot_logical_and(x, y); }

// x, or NaN where it does not hold, as then its derivatives are.
static inline jot_value or_nan(jot_value holds, jot_value x)
{
    return mul(jot_where(holds, num(1), num(NAN)), x);
}

static inline bool has_shape_of(jot_value x, jot_value y)
{
    int rank = jot_value_rank(y);
    bool is_same = jot_value_rank(x) == rank;
    for (int axis = 0; is_same && axis < rank; axis++)
        is_same = jot_value_dim(x, axis) == jot_value_dim(y, axis);
    return is_same;
}

#endif
