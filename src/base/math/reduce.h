// SPDX-License-Identifier: Apache-2.0
// Reduction of large arguments modulo pi/2.
#ifndef BASE_MATH_REDUCE_H
#define BASE_MATH_REDUCE_H

#include <stdint.h>

// 2/pi in words of 64 bits, after one of zeros.
#define MATH_TWO_OVER_PI 21
extern const uint64_t math_two_over_pi[MATH_TWO_OVER_PI];

// x = n pi/2 + r_hi + r_lo with |r| <= pi/4; returns n modulo 4. The error of r is below 2^-100
// |r|. For finite |x| >= 2^10; slow.
int math_reduce(double x, double *out_hi, double *out_lo);

#endif
