// SPDX-License-Identifier: Apache-2.0
// Reduction of large arguments modulo pi/2.
#ifndef BASE_MATH_REDUCE_H
#define BASE_MATH_REDUCE_H

// x = n pi/2 + r_hi + r_lo with |r| <= pi/4; returns n modulo 4. The error of r is below 2^-100
// |r|. For finite |x| >= 2^10; slow.
int math_reduce(double x, double *out_hi, double *out_lo);

#endif
