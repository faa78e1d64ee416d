// SPDX-License-Identifier: Apache-2.0
// The scalar machine: what an op does to one element, written once for every consumer.
//
// Column `scalar` of ops.def is an expression over the primitives below.  A consumer (the
// evaluator, the code generator) defines them as macros on a type `scalar` of its own and
// includes scalar.inc, which gives
//
//     static scalar scalar_<op>(struct machine *m, scalar x, scalar y, scalar z);
//     static struct pair complex_<word>(struct machine *m, struct pair x, struct pair y,
//                                       struct pair z);
//     static const scalar_function scalar_table[IR_OP_COUNT];
//     static const complex_function complex_table[IR_OP_COUNT];   // NULL: not for complex
//
// together with the templates of composite.inc.  A `scalar` may be one number (evaluator) or as
// many lanes as the consumer likes: templates have no control flow that depends on a value, and
// name each value they use twice.
//
// Before scalar.inc the consumer defines `scalar`, the primitives, and struct machine with at
// least
//
//     jot_dtype dtype;                // of the last operand of the op, as it is stored
//     const struct ir_attrs *attrs;   // of the node
//
// Compute types.  Functions see operands of type bool, the integers, f32 and f64.  A half
// operand is widened to f32 before the function and its result is rounded to the half type
// after it: one rounding for each op.  Ops for which scalar_is_on_storage holds get and give
// half values as 16-bit integers, unchanged.  A complex operand is a struct pair; a real
// operand of a complex function comes in .re, and so does a real or bool result.  Ops whose
// column is NO_SCALAR belong to the consumer; what convert does is written below, threefry2x32
// is composite_threefry2x32.
//
// Primitives on numbers x, y, z of one type; the result is of that type.
//
//   K(c)                 the constant c of the type of the variable x in scope.
//   K_LIKE(v, c)         the constant c of the type of v: rounded from double, or an integer in
//                        two's complement.
//   ADD SUB MUL (x, y)   floats: one IEEE operation, round to nearest even, denormals kept,
//                        never contracted.  Integers wrap.
//   DIV(x, y)            floats: one IEEE operation.  Integers round to zero; x / 0 has all
//                        bits set; lowest / -1 is lowest.
//   REM(x, y)            floats: C fmod, exact.  Integers: the sign of x; x rem 0 is x; x rem
//                        -1 is 0.
//   NEG(x)               floats: the sign bit.  Integers wrap.
//   ABS(x)               likewise; the absolute value of the lowest integer is itself.
//   FLOOR CEIL ROUND_EVEN (x)   floats; keep the sign of zero.
//   SQRT(x)              floats; correctly rounded.
//   FMA(x, y, z)         floats: x y + z, rounded once.  Integers: wrap.
//   COPYSIGN(x, s)       floats: x with the sign bit of s.
//   MAX MIN (x, y)       floats: NaN if either is NaN; -0 is less than +0.
//   SELECT(p, x, y)      x where the truth value p holds, else y, bit for bit.
//   EQ LT LE (x, y)      truth values; false with NaN.  NE: true with NaN.  Integers by their
//                        signedness, false < true.
//   AND OR XOR NOT       bits of integers; logic on bool.
//   SHL SHR_LOGICAL SHR_ARITH (x, y)   y as an unsigned number; by the width or more gives 0,
//                        or the sign for SHR_ARITH.
//   POPCOUNT CLZ (x)     bits set; zeros above the highest bit set, the width if none is.
//   MATH1(name, x)       floats: math_<name>_f32 or _f64 of base/math/math.h, bit for bit.
//   MATH2(name, x, y)    likewise.
//   BAND BOR BNOT        on truth values.
//
// Primitives on bits, for composite.inc.  Integers here are unsigned and of any width.
//
//   BITS(x)              the bits of a float as an integer of its width.
//   FLOAT_OF_BITS(i)     the inverse, of 32 or 64 bits.
//   KI_LIKE(i, c)        the constant c, a uint64_t, of the type of i.
//   IADD ISUB IAND IOR IXOR (i, j)     IADD and ISUB wrap.
//   IADD_BITS(i, j)      IADD of random bits, of which there are many.
//   ISHL IUSHR (i, n)    n is a C int, 0 <= n < width; IUSHR shifts zeros in.
//   IULT IEQ (i, j)      truth values; IULT compares unsigned.
//   INARROW16(i)         the low half of a 32-bit integer.
//   IWIDEN32(i)          a 16-bit integer with zeros above.
//   F32_OF_F64(x)        rounded to nearest even.  F64_OF_F32(x): exact.
//
// Composites, written in composite.inc over these and usable in columns: SIGN ROUND_AWAY
// INTEGER_POW NEXTAFTER REDUCE_PRECISION LOGADDEXP DIRECTION INVERSION GT_NAN LT_NAN.
//
// NaN results: which NaN is not specified.
//
// convert, from the type of the operand to the dtype of the result:
//   to bool: x != 0 (NaN is true; a complex number if either part is not 0);
//   bool or integer to integer: the low bits; bool counts as 0 or 1;
//   float to integer: toward zero, saturating at the ends of the range; NaN gives 0;
//   integer to f32 and f64: rounded to nearest even; to a half type: to f32, then rounded
//   again; f32 and half to float: exact or rounded once; f64 to a half type: rounded once; real
//   to complex: imaginary part +0; complex to real: the real part, then as above.
#ifndef IR_SCALAR_H
#define IR_SCALAR_H

#include "base/dtype.h"
#include "ir/ops.h"

// The layout of a float type: sign bit, then exponent, then mantissa.
struct scalar_format {
    uint8_t bits, exponent_bits, mantissa_bits;
};

static inline struct scalar_format scalar_format_get(jot_dtype d)
{
    switch (d) {
    case JOT_F16:
        return (struct scalar_format){16, 5, 10};
    case JOT_BF16:
        return (struct scalar_format){16, 8, 7};
    case JOT_F64:
        return (struct scalar_format){64, 11, 52};
    default:
        return (struct scalar_format){32, 8, 23};
    }
}

// The op gets half values as their bits.
static inline bool scalar_is_on_storage(enum ir_op op)
{
    return op == IR_nextafter || op == IR_select || op == IR_reduce_precision;
}

// The identity of an op whose row has a fold, as bits of the compute type of d (of the real part of a
// complex type; the imaginary part is 0).  For dtypes that the op takes.
uint64_t scalar_identity(enum ir_op op, jot_dtype d);

// Whether the identity and any x of type d are combined to x, bit for bit.  They are by each pair of the op table but sums
// of floats, where 0 + -0 is 0, and products of complex numbers, where 1 times an infinity has a NaN.
static inline bool scalar_identity_is_neutral(enum ir_op op, jot_dtype d)
{
    enum ir_op pair = ir_op_get(op)->pair;
    bool is_sum = pair == IR_add && dtype_is_inexact(d);
    bool is_product = pair == IR_mul && dtype_is_complex(d);
    return pair != IR_OP_COUNT && !ir_is_arg(op) && !is_sum && !is_product;
}

#endif
