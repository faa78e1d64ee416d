// SPDX-License-Identifier: Apache-2.0
// jot's elementary functions as scalar C: the same algorithms and the same bits as in compiled
// code (elementary.h), for all arguments. Used by the reference evaluator and as the slow path
// of vectors. Thread-safe; they touch no state but the floating-point flags.
//
//     float y = math_exp_f32(x);
//     const struct math_function *f = math_find("atan2");    f->f64.binary(y, x)
#ifndef BASE_MATH_MATH_H
#define BASE_MATH_MATH_H

#include <stdbool.h>

// float math_exp_f32(float), double math_exp_f64(double) and so on.
#define MATH_PARAMETERS_1(type) type
#define MATH_PARAMETERS_2(type) type, type
#define MATH(name, arity, range)                                                               \
    float math_##name##_f32(MATH_PARAMETERS_##arity(float));                                   \
    double math_##name##_f64(MATH_PARAMETERS_##arity(double));
#include "base/math/math.def"
#undef MATH
#undef MATH_PARAMETERS_1
#undef MATH_PARAMETERS_2

struct math_function {
    const char *name;
    int arity;
    bool ranged; // The straight-line form has an out-of-range mask.
    union {
        float (*unary)(float);
        float (*binary)(float, float);
    } f32;
    union {
        double (*unary)(double);
        double (*binary)(double, double);
    } f64;
};

// All rows of math.def, in order, ended by one without a name.
extern const struct math_function math_functions[];

// NULL if there is no such function.
const struct math_function *math_find(const char *name);

#endif
