// SPDX-License-Identifier: Apache-2.0
// Short names for what formulas are written in.
#ifndef NUMPY_FORMULA_H
#define NUMPY_FORMULA_H

#include "jot/ops.h"
#include "jot/products.h"

static inline jot_value num(double x) { return jot_from_double(x); }
static inline jot_value one(void) { return num(1); }
static inline jot_value add(jot_value x, jot_value y) { return jot_add(x, y); }
static inline jot_value sub(jot_value x, jot_value y) { return jot_sub(x, y); }
static inline jot_value mul(jot_value x, jot_value y) { return jot_mul(x, y); }
static inline jot_value over(jot_value x, jot_value y) { return jot_div(x, y); }
static inline jot_value both(jot_value x, jot_value y) { return jot_logical_and(x, y); }
static inline jot_value either(jot_value x, jot_value y) { return jot_logical_or(x, y); }
static inline jot_value wide(jot_value x) { return jot_astype(x, JOT_F64); }

// x, but at least or at most the bound.  At the bound itself the slope is that of x, which a maximum has
// half of: for arguments of formulas that meet there.
static inline jot_value at_least(jot_value x, jot_value bound)
{
    return jot_where(jot_less(x, bound), bound, x);
}
static inline jot_value at_most(jot_value x, jot_value bound)
{
    return jot_where(jot_less(bound, x), bound, x);
}

#endif
