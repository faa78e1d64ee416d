// SPDX-License-Identifier: Apache-2.0
// Functions of numbers that have loops of their own, applied element by element.
#ifndef TRACE_LANES_H
#define TRACE_LANES_H

#include "trace/emit.h"

#include "jot/control.h"

// f, of n numbers of one floating type, at the elements of operands that are brought to one such type and
// broadcast; half types are computed in f32.  All elements are lanes of one kernel.
jot_value trace_lanes(const char *name, jot_function f, int n, const jot_value *v);

// The distance of 1 to the next number of a dtype.
double trace_epsilon(jot_dtype dtype);

// c[0] + c[1] x + ... + c[n-1] x^(n-1)
jot_value trace_polynomial(int n, const double *c, jot_value x);

// The sum of c[k] T_k(t), by Clenshaw's recurrence; two coefficients or more.
jot_value trace_chebyshev(int n, const double *c, jot_value t);

#endif
