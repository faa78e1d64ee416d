// SPDX-License-Identifier: Apache-2.0
// The scalar machine of the evaluator: a scalar is a number with its element type, and
// primitives look at the type each time.  Private to eval_*.c and its test.
//
// Integers are kept extended to 64 bits by their signedness; half numbers are 16 bits until
// they are widened.
#ifndef IR_EVAL_MACHINE_H
#define IR_EVAL_MACHINE_H

#include "base/math/math.h"
#include "ir/attr.h"
#include "ir/scalar.h"

#include <math.h>
#include <string.h>

typedef struct {
    uint64_t bits;
    jot_dtype dtype;
} scalar;

struct machine {
    jot_dtype dtype;
    const struct ir_attrs *attrs;
};

static inline scalar scalar_from_f32(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return (scalar){u, JOT_F32};
}

static inline scalar scalar_from_f64(double x)
{
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    return (scalar){u, JOT_F64};
}

static inline scalar scalar_from_bool(bool p) { return (scalar){p, JOT_BOOL}; }

static inline float scalar_f32(scalar x)
{
    uint32_t u = (uint32_t)x.bits;
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

static inline double scalar_f64(scalar x)
{
    double f;
    memcpy(&f, &x.bits, sizeof f);
    return f;
}

// The low bits as an integer of the type.
static inline scalar scalar_from_bits(jot_dtype d, uint64_t bits)
{
    switch (d) {
    case JOT_BOOL:
        return (scalar){bits & 1, d};
    case JOT_I8:
        return (scalar){(uint64_t)(int8_t)bits, d};
    case JOT_I16:
        return (scalar){(uint64_t)(int16_t)bits, d};
    case JOT_I32:
        return (scalar){(uint64_t)(int32_t)bits, d};
    case JOT_U8:
        return (scalar){(uint8_t)bits, d};
    case JOT_U16:
    case JOT_F16:
    case JOT_BF16:
        return (scalar){(uint16_t)bits, d};
    case JOT_U32:
    case JOT_F32:
        return (scalar){(uint32_t)bits, d};
    default:
        return (scalar){bits, d};
    }
}

static inline int scalar_width(scalar x) { return dtype_get(x.dtype)->bits; }

// The bits of an integer without the extension.
static inline uint64_t scalar_low_bits(scalar x)
{
    int width = scalar_width(x);
    return width == 64 ? x.bits : x.bits & ((UINT64_C(1) << width) - 1);
}

static inline scalar scalar_constant(scalar like, double c)
{
    switch (like.dtype) {
    case JOT_F32:
        return scalar_from_f32((float)c);
    case JOT_F64:
        return scalar_from_f64(c);
    default:
        return scalar_from_bits(like.dtype, c < 0 ? (uint64_t)(int64_t)c : (uint64_t)c);
    }
}

#define FLOATS_OR(x, f32, f64, integer)                                                        \
    ((x).dtype == JOT_F32   ? scalar_from_f32(f32)                                             \
     : (x).dtype == JOT_F64 ? scalar_from_f64(f64)                                             \
                            : (integer))
#define FLOAT_FUNCTION(name, f32_function, f64_function)                                       \
    static inline scalar name(scalar x)                                                        \
    {                                                                                          \
        return FLOATS_OR(x, f32_function(scalar_f32(x)), f64_function(scalar_f64(x)), x);      \
    }
#define ARITHMETIC_FUNCTION(name, operator)                                                    \
    static inline scalar name(scalar x, scalar y)                                              \
    {                                                                                          \
        return FLOATS_OR(x, scalar_f32(x) operator scalar_f32(y),                              \
                         scalar_f64(x) operator scalar_f64(y),                                 \
                         scalar_from_bits(x.dtype, x.bits operator y.bits));                   \
    }
#define COMPARE_FUNCTION(name, operator)                                                       \
    static inline scalar name(scalar x, scalar y)                                              \
    {                                                                                          \
        if (x.dtype == JOT_F32)                                                                \
            return scalar_from_bool(scalar_f32(x) operator scalar_f32(y));                     \
        if (x.dtype == JOT_F64)                                                                \
            return scalar_from_bool(scalar_f64(x) operator scalar_f64(y));                     \
        if (dtype_is_signed(x.dtype))                                                          \
            return scalar_from_bool((int64_t)x.bits operator(int64_t) y.bits);                 \
        return scalar_from_bool(x.bits operator y.bits);                                       \
    }

ARITHMETIC_FUNCTION(machine_add, +)
ARITHMETIC_FUNCTION(machine_sub, -)
ARITHMETIC_FUNCTION(machine_mul, *)
COMPARE_FUNCTION(machine_eq, ==)
COMPARE_FUNCTION(machine_ne, !=)
COMPARE_FUNCTION(machine_lt, <)
COMPARE_FUNCTION(machine_le, <=)
FLOAT_FUNCTION(machine_floor, floorf, floor)
FLOAT_FUNCTION(machine_ceil, ceilf, ceil)
FLOAT_FUNCTION(machine_round_even, rintf, rint)
FLOAT_FUNCTION(machine_sqrt, sqrtf, sqrt)

static inline scalar machine_integer_div(scalar x, scalar y)
{
    if (y.bits == 0)
        return scalar_from_bits(x.dtype, UINT64_MAX);
    if (!dtype_is_signed(x.dtype))
        return scalar_from_bits(x.dtype, x.bits / y.bits);
    if (y.bits == UINT64_MAX)
        return scalar_from_bits(x.dtype, -x.bits);
    return scalar_from_bits(x.dtype, (uint64_t)((int64_t)x.bits / (int64_t)y.bits));
}

static inline scalar machine_integer_rem(scalar x, scalar y)
{
    if (y.bits == 0)
        return x;
    if (!dtype_is_signed(x.dtype))
        return scalar_from_bits(x.dtype, x.bits % y.bits);
    if (y.bits == UINT64_MAX)
        return scalar_from_bits(x.dtype, 0);
    return scalar_from_bits(x.dtype, (uint64_t)((int64_t)x.bits % (int64_t)y.bits));
}

static inline scalar machine_div(scalar x, scalar y)
{
    return FLOATS_OR(x, scalar_f32(x) / scalar_f32(y), scalar_f64(x) / scalar_f64(y),
                     machine_integer_div(x, y));
}

static inline scalar machine_rem(scalar x, scalar y)
{
    return FLOATS_OR(x, fmodf(scalar_f32(x), scalar_f32(y)), fmod(scalar_f64(x), scalar_f64(y)),
                     machine_integer_rem(x, y));
}

static inline scalar machine_neg(scalar x)
{
    return FLOATS_OR(x, -scalar_f32(x), -scalar_f64(x), scalar_from_bits(x.dtype, -x.bits));
}

static inline scalar machine_abs(scalar x)
{
    bool is_negative = dtype_is_signed(x.dtype) && (int64_t)x.bits < 0;
    return FLOATS_OR(x, fabsf(scalar_f32(x)), fabs(scalar_f64(x)),
                     is_negative ? scalar_from_bits(x.dtype, -x.bits) : x);
}

static inline scalar machine_fma(scalar x, scalar y, scalar z)
{
    return FLOATS_OR(x, fmaf(scalar_f32(x), scalar_f32(y), scalar_f32(z)),
                     fma(scalar_f64(x), scalar_f64(y), scalar_f64(z)),
                     scalar_from_bits(x.dtype, x.bits * y.bits + z.bits));
}

static inline scalar machine_copysign(scalar x, scalar s)
{
    return FLOATS_OR(x, copysignf(scalar_f32(x), scalar_f32(s)),
                     copysign(scalar_f64(x), scalar_f64(s)), x);
}

static inline bool machine_is_negative_zero(scalar x)
{
    return x.bits == (x.dtype == JOT_F32 ? UINT64_C(1) << 31 : UINT64_C(1) << 63);
}

static inline scalar machine_max(scalar x, scalar y)
{
    if (machine_ne(x, x).bits)
        return x;
    if (machine_ne(y, y).bits)
        return y;
    if (dtype_is_float(x.dtype) && machine_eq(x, y).bits)
        return machine_is_negative_zero(x) ? y : x;
    return machine_lt(x, y).bits ? y : x;
}

static inline scalar machine_min(scalar x, scalar y)
{
    if (machine_ne(x, x).bits)
        return x;
    if (machine_ne(y, y).bits)
        return y;
    if (dtype_is_float(x.dtype) && machine_eq(x, y).bits)
        return machine_is_negative_zero(x) ? x : y;
    return machine_lt(y, x).bits ? y : x;
}

static inline scalar machine_select(scalar p, scalar x, scalar y) { return p.bits ? x : y; }

// Extended integers stay extended under these.
static inline scalar machine_and(scalar x, scalar y)
{
    return (scalar){x.bits & y.bits, x.dtype};
}
static inline scalar machine_or(scalar x, scalar y)
{
    return (scalar){x.bits | y.bits, x.dtype};
}
static inline scalar machine_xor(scalar x, scalar y)
{
    return (scalar){x.bits ^ y.bits, x.dtype};
}
static inline scalar machine_not(scalar x) { return scalar_from_bits(x.dtype, ~x.bits); }

static inline scalar machine_shl(scalar x, scalar y)
{
    bool is_over = scalar_low_bits(y) >= (uint64_t)scalar_width(x);
    return scalar_from_bits(x.dtype, is_over ? 0 : x.bits << y.bits);
}

static inline scalar machine_shr_logical(scalar x, scalar y)
{
    bool is_over = scalar_low_bits(y) >= (uint64_t)scalar_width(x);
    return scalar_from_bits(x.dtype, is_over ? 0 : scalar_low_bits(x) >> y.bits);
}

// Of an unsigned type the sign is its highest bit, too.
static inline scalar machine_shr_arith(scalar x, scalar y)
{
    int width = scalar_width(x);
    uint64_t by = scalar_low_bits(y) < (uint64_t)width ? y.bits : (uint64_t)width - 1;
    int64_t extended = (int64_t)(x.bits << (64 - width)) >> (64 - width);
    return scalar_from_bits(x.dtype, (uint64_t)(extended >> by));
}

static inline scalar machine_popcount(scalar x)
{
    return (scalar){(uint64_t)__builtin_popcountll(scalar_low_bits(x)), x.dtype};
}

static inline scalar machine_clz(scalar x)
{
    uint64_t low = scalar_low_bits(x);
    int zeros = low ? __builtin_clzll(low) - (64 - scalar_width(x)) : scalar_width(x);
    return (scalar){(uint64_t)zeros, x.dtype};
}

static inline scalar machine_math1(scalar x, float (*f32)(float), double (*f64)(double))
{
    return FLOATS_OR(x, f32(scalar_f32(x)), f64(scalar_f64(x)), x);
}

static inline scalar machine_math2(scalar x, scalar y, float (*f32)(float, float),
                                   double (*f64)(double, double))
{
    return FLOATS_OR(x, f32(scalar_f32(x), scalar_f32(y)), f64(scalar_f64(x), scalar_f64(y)),
                     x);
}

#define ADD(x, y) machine_add(x, y)
#define SUB(x, y) machine_sub(x, y)
#define MUL(x, y) machine_mul(x, y)
#define DIV(x, y) machine_div(x, y)
#define REM(x, y) machine_rem(x, y)
#define NEG(x) machine_neg(x)
#define ABS(x) machine_abs(x)
#define FLOOR(x) machine_floor(x)
#define CEIL(x) machine_ceil(x)
#define ROUND_EVEN(x) machine_round_even(x)
#define SQRT(x) machine_sqrt(x)
#define FMA(x, y, z) machine_fma(x, y, z)
#define COPYSIGN(x, s) machine_copysign(x, s)
#define MAX(x, y) machine_max(x, y)
#define MIN(x, y) machine_min(x, y)
#define SELECT(p, x, y) machine_select(p, x, y)
#define EQ(x, y) machine_eq(x, y)
#define NE(x, y) machine_ne(x, y)
#define LT(x, y) machine_lt(x, y)
#define LE(x, y) machine_le(x, y)
#define AND(x, y) machine_and(x, y)
#define OR(x, y) machine_or(x, y)
#define XOR(x, y) machine_xor(x, y)
#define NOT(x) machine_not(x)
#define SHL(x, y) machine_shl(x, y)
#define SHR_LOGICAL(x, y) machine_shr_logical(x, y)
#define SHR_ARITH(x, y) machine_shr_arith(x, y)
#define POPCOUNT(x) machine_popcount(x)
#define CLZ(x) machine_clz(x)
#define MATH1(name, x) machine_math1(x, math_##name##_f32, math_##name##_f64)
#define MATH2(name, x, y) machine_math2(x, y, math_##name##_f32, math_##name##_f64)
#define BAND(p, q) machine_and(p, q)
#define BOR(p, q) machine_or(p, q)
#define BNOT(p) machine_not(p)

#define K_LIKE(like, c) scalar_constant(like, c)
#define KI_LIKE(like, c) scalar_from_bits((like).dtype, c)
#define BITS(x) ((scalar){(x).bits, (x).dtype == JOT_F64 ? JOT_U64 : JOT_U32})
#define FLOAT_OF_BITS(i) ((scalar){(i).bits, (i).dtype == JOT_U64 ? JOT_F64 : JOT_F32})
#define IADD(i, j) machine_add(i, j)
#define IADD_BITS(i, j) machine_add(i, j)
#define ISUB(i, j) machine_sub(i, j)
#define IAND(i, j) machine_and(i, j)
#define IOR(i, j) machine_or(i, j)
#define IXOR(i, j) machine_xor(i, j)
#define ISHL(i, n) scalar_from_bits((i).dtype, (i).bits << (n))
#define IUSHR(i, n) ((scalar){(i).bits >> (n), (i).dtype})
#define IULT(i, j) scalar_from_bool((i).bits < (j).bits)
#define IEQ(i, j) scalar_from_bool((i).bits == (j).bits)
#define INARROW16(i) ((scalar){(uint16_t)(i).bits, JOT_U16})
#define IWIDEN32(i) ((scalar){(i).bits, JOT_U32})
#define F32_OF_F64(x) scalar_from_f32((float)scalar_f64(x))
#define F64_OF_F32(x) scalar_from_f64(scalar_f32(x))

#endif
