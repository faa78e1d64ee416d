// SPDX-License-Identifier: Apache-2.0
// What the elementary functions are measured with: the C library's double functions for single
// precision, quad ones for double precision; arguments; errors.
#ifndef TESTS_BASE_MATH_REFERENCE_H
#define TESTS_BASE_MATH_REFERENCE_H

#include "base/math/math.h"

#include <math.h>
#include <stdint.h>

__extension__ typedef __float128 quad;

quad sinq(quad x);
quad cosq(quad x);
quad tanq(quad x);

// How many units in the last place a function may be off, and where it is interesting: some of
// the arguments (of both operands) are drawn from [low, high], the others from all bit patterns
// and around the ends. Where a function is ill conditioned, `scale` says of which number the units are:
// NULL, or of result and arguments a number no smaller than the result, or NaN where all is allowed.
struct math_row {
    const char *name;
    double bound;
    double low, high;
    union {
        double (*unary)(double);
        double (*binary)(double, double);
    } reference32;
    union {
        quad (*unary)(quad);
        quad (*binary)(quad, quad);
    } reference64;
    double (*scale)(double result, double x, double y);
};

// Those of all functions, ended by one without a name.
extern const struct math_row math_rows[];
// NULL if there is none of the function.
const struct math_row *math_row_find(const char *name);

// Each draw of bits moves *seed on by this.
#define MATH_SEED_STEP UINT64_C(0x9e3779b97f4a7c15)

uint64_t math_random_bits(uint64_t *seed);
double math_random_uniform(uint64_t *seed, double low, double high);
float math_random_float(uint64_t *seed, const struct math_row *row);
double math_random_double(uint64_t *seed, const struct math_row *row);

float math_float_of_bits(uint32_t bits);
double math_double_of_bits(uint64_t bits);

// Infinite results count as the next power of two. A wrong sign, of zero too, and a NaN that
// should not be one or the other way round are WRONG: no matter of rounding.
#define MATH_WRONG 1e30

double math_error_f32(float got, double want);
double math_error_f64(double got, quad want);

// The larger error, and where it is.
struct math_worst {
    double error;
    double x, y;
};

static inline void math_note(struct math_worst *worst, double error, double x, double y)
{
    if (error > worst->error)
        *worst = (struct math_worst){error, x, y};
}

// The error of f at (x, y); a unary function has no y.
double math_measure_f32(const struct math_row *row, const struct math_function *f, float x,
                        float y);
double math_measure_f64(const struct math_row *row, const struct math_function *f, double x,
                        double y);

#endif
