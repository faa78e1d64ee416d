// SPDX-License-Identifier: Apache-2.0
// The scalar instance of the elementary functions.
#include "base/math/math.h"

#include "base/math/reduce.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define MATH_BITS 32
#include "base/math/scalar.inc"
#define MATH_BITS 64
#include "base/math/scalar.inc"

// sin, cos and tan where the straight-line form does not hold. Infinities become NaN.
#define BEYOND(name)                                                                           \
    static float name##_beyond_32(float x)                                                     \
    {                                                                                          \
        if (isinf(x))                                                                          \
            return x - x;                                                                      \
        double hi, lo;                                                                         \
        int quadrant = math_reduce(x, &hi, &lo);                                               \
        return name##_in_quadrant_32((struct pair_32){(float)hi, 0.0f}, quadrant);             \
    }                                                                                          \
    static double name##_beyond_64(double x)                                                   \
    {                                                                                          \
        if (isinf(x))                                                                          \
            return x - x;                                                                      \
        double hi, lo;                                                                         \
        int quadrant = math_reduce(x, &hi, &lo);                                               \
        return name##_in_quadrant_64((struct pair_64){hi, lo}, quadrant);                      \
    }

BEYOND(sin)
BEYOND(cos)
BEYOND(tan)

#define DEFINE_1_TOTAL(name)                                                                   \
    float math_##name##_f32(float x) { return name##_32(x); }                                  \
    double math_##name##_f64(double x) { return name##_64(x); }

#define DEFINE_2_TOTAL(name)                                                                   \
    float math_##name##_f32(float x, float y) { return name##_32(x, y); }                      \
    double math_##name##_f64(double x, double y) { return name##_64(x, y); }

#define DEFINE_1_RANGED(name)                                                                  \
    float math_##name##_f32(float x)                                                           \
    {                                                                                          \
        return name##_out_of_range_32(x) ? name##_beyond_32(x) : name##_32(x);                 \
    }                                                                                          \
    double math_##name##_f64(double x)                                                         \
    {                                                                                          \
        return name##_out_of_range_64(x) ? name##_beyond_64(x) : name##_64(x);                 \
    }

#define MATH(name, arity, range) DEFINE_##arity##_##range(name)
#include "base/math/math.def"
#undef MATH

#define IS_RANGED_TOTAL false
#define IS_RANGED_RANGED true
#define MEMBER_1 unary
#define MEMBER_2 binary

const struct math_function math_functions[] = {
#define MATH(name, arity, range)                                                               \
    {#name,                                                                                    \
     arity,                                                                                    \
     IS_RANGED_##range,                                                                        \
     {.MEMBER_##arity = math_##name##_f32},                                                    \
     {.MEMBER_##arity = math_##name##_f64}},
#include "base/math/math.def"
#undef MATH
    {NULL, 0, false, {NULL}, {NULL}},
};

const struct math_function *math_find(const char *name)
{
    for (const struct math_function *f = math_functions; f->name != NULL; f++) {
        if (strcmp(f->name, name) == 0)
            return f;
    }
    return NULL;
}
