// SPDX-License-Identifier: Apache-2.0
// Short names for what formulas are written in.
#ifndef LIBRARY_FORMULA_H
#define LIBRARY_FORMULA_H

#include "jot/ops.h"
#include "jot/products.h"

static inline jot_value num(double x) { return jot_from_double(x); }
static inline jot_value add(jot_value x, jot_value y) { return jot_add(x, y); }
static inline jot_value sub(jot_value x, jot_value y) { return jot_sub(x, y); }
static inline jot_value mul(jot_value x, jot_value y) { return jot_mul(x, y); }
static inline jot_value over(jot_value x, jot_value y) { return jot_div(x, y); }
static inline jot_value both(jot_value x, jot_value y) { return jot_logical_and(x, y); }

#endif
