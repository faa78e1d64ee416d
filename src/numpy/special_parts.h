// SPDX-License-Identifier: Apache-2.0
// What special functions have in common, of one number each: quotients of gamma functions
// without their cancellation. Where the arguments are out of a function's range its value is
// any number, to be left out by the caller.
#ifndef NUMPY_SPECIAL_PARTS_H
#define NUMPY_SPECIAL_PARTS_H

#include "trace/lanes.h"

// a where the flag is set, else a number for which nothing is to be done.
jot_value special_chosen(jot_value flag, jot_value a, double idle);

// x + y is the sum and what it has been rounded by.
jot_value special_rounding(jot_value x, jot_value y, jot_value sum);

// 0, -1, -2, ...
jot_value special_is_pole(jot_value x);

// 1/Gamma(x), also at the poles of Gamma.
jot_value special_inverse_gamma(jot_value x);

// mu - log(1 + mu) for mu > -1, where `ratio` is 1 + mu, which may be known better; and that
// over mu^2 of |mu| < 0.3.
jot_value special_excess(jot_value mu, jot_value ratio);
jot_value special_excess_near(jot_value mu);

// log(Gamma(a)) - (a - 1/2) log(a) + a - log(2 pi)/2 of a >= 10.
jot_value special_stirling(jot_value a);

// That of a >= 3.
jot_value special_stirling_low(jot_value a);

// log(a) - digamma(a) of a > 0.
jot_value special_digamma_rest(jot_value a);

// That of b less that of a + b, of a > 0 and b >= 10.
jot_value special_stirling_difference(jot_value a, jot_value b);

// log(Gamma(b)) - log(Gamma(a + b)) + a log(b) of a > 0 and b >= 10, small where a^2/b is.
jot_value special_quotient_rest(jot_value a, jot_value b);

// Gamma(a + b + SPECIAL_SHIFT) Gamma(b) / (Gamma(a + b) Gamma(b + SPECIAL_SHIFT)) - 1 of a,
// b > 0, in units of a/b.
enum { SPECIAL_SHIFT = 10 };
jot_value special_shift(jot_value a, jot_value b);

// log(Gamma(1 + a + b)) - log(Gamma(1 + b)) - a log(b + SPECIAL_SHIFT) of a, b > 0, in units of a.
jot_value special_gamma_difference(jot_value a, jot_value b);

// digamma(a + b) - digamma(b) of a >= 0 and b > 0.
jot_value special_digamma_difference(jot_value a, jot_value b);

// log(Gamma(1 + a)) of 0 <= a <= 2, in units of a where that is small.
jot_value special_log_gamma_1p(jot_value a);

// a y - b x, where x + y + z is 1 and z small, without the rounding of the products (W. Kahan).
jot_value special_beta_distance(jot_value a, jot_value b, jot_value x, jot_value y,
                                jot_value z);

// x^a (1 - x)^b / B(a, b) of finite a, b > 0 and 0 < x < 1, with its derivative.
jot_value special_beta_front(jot_value a, jot_value b, jot_value x);

#endif
