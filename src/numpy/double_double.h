// SPDX-License-Identifier: Apache-2.0
// Double-double arithmetic: a number is the sum of two of type f64, the lower one at most half a
// unit in the last place of the higher one; some 104 bits (T. Dekker, A floating-point technique
// for extending the available precision, 1971).  For sums whose terms cancel.
#ifndef NUMPY_DOUBLE_DOUBLE_H
#define NUMPY_DOUBLE_DOUBLE_H

#include "numpy/formula.h"

struct double_double {
    jot_value high, low;
};

// x, and x + y and x - y without rounding.
struct double_double dd_of(jot_value x);
struct double_double dd_sum(jot_value x, jot_value y);
struct double_double dd_difference(jot_value x, jot_value y);

// To some 104 bits of the larger operand.
struct double_double dd_add(struct double_double x, struct double_double y);
struct double_double dd_mul(struct double_double x, struct double_double y);
struct double_double dd_div(struct double_double x, struct double_double y);
// By one of type f64.
struct double_double dd_shift(struct double_double x, jot_value y); // x + y
struct double_double dd_scale(struct double_double x, jot_value y); // x y

struct double_double dd_neg(struct double_double x);
struct double_double dd_where(jot_value flag, struct double_double x, struct double_double y);
jot_value dd_round(struct double_double x);

#endif
