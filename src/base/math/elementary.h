// SPDX-License-Identifier: Apache-2.0
// The contract of elementary.inc: jot's elementary functions as straight-line templates.
//
// elementary.inc holds each function once, written with the macros below. It is included once
// for each width (MATH_BITS 32, then 64) by every instance: math.c defines the macros as plain
// C on float and double, the code generator defines them as builders of LLVM values of any
// lane count. All instances give the same bits, because each primitive is one IEEE 754
// operation in round-to-nearest-even with denormals kept, and nothing else is used.
//
// The includer defines, before each inclusion:
//
//   MATH_BITS           32 or 64: the width of V and I.
//   V, I, B             types: floating value; signed integer of the same width and lane count;
//                       mask (one truth value a lane).
//   M_, M_ARG           what precedes the parameters of a definition and the arguments of a
//                       call between templates: both empty in C; `struct emit *m,` and `m,` in
//                       a code generator, whose primitives may then name `m`.
//
//   K(c)                V with every lane c. c is a C constant of type double or float; it is
//                       exact in V, or INFINITY, -INFINITY or NAN.
//   KI(c)               I with every lane c. c is a C integer constant, taken modulo
//   2^MATH_BITS.
//
//   ADD(a, b) SUB(a, b) MUL(a, b) DIV(a, b) SQRT(a)     correctly rounded, never contracted.
//   FMA(a, b, c)        a * b + c with one rounding.
//   NEG(a) ABS(a)       change the sign bit only, of NaN and zero too.
//   COPYSIGN(a, s)      a with the sign bit of s.
//   RINT(a)             to the nearest integer, ties to even; keeps the sign of zero.
//
//   LT GT EQ (a, b)     B; ordered: false if a or b is NaN.
//   NE(a, b)            B; unordered: true if a or b is NaN, so that NE(x, x) finds NaN.
//   BAND(a, b) BOR(a, b) BNOT(a)    on masks.
//   SELECT(b, x, y)     V; x where b is true, else y; the bits of the chosen one.
//
//   BITS(a)             I; the bits of a.
//   FLOAT_OF_BITS(i)    V; the inverse.
//   IADD(i, j) ISUB(i, j)             modulo 2^MATH_BITS.
//   IAND(i, j) IOR(i, j) IXOR(i, j)
//   ISHL(i, n) IUSHR(i, n)            n is a C int in 0 .. MATH_BITS - 1; IUSHR shifts in
//   zeros. ILT(i, j) INE(i, j)               B; ILT is signed.
//
// Templates promise: no C control flow that depends on a value, no C operator on V, I or B, no
// name m. Parameters of macros may be any expression, to be evaluated once. There are no
// conversions between V and I (they are slow on vectors of 64 bits), no integer multiplication
// and no arithmetic shift. Some values built are not used. The sign and payload of a NaN are
// not specified.
//
// An inclusion defines, with the suffix _32 or _64, for each row of math.def:
//
//   static inline V exp_32(M_ V x)                   rows of arity 1
//   static inline V pow_32(M_ V x, V y)              rows of arity 2
//   static inline B sin_out_of_range_32(M_ V x)      rows marked RANGED
//
// and static inline void sincos_32(M_ V x, V *sine, V *cosine), which shares the reduction and
// gives the bits of sin and cos, and sincos_factors_32, two numbers whose product has the bits of
// that of sin and cos; the mask of sin holds for both. A function with a mask is right
// (in its bits, too) exactly where the mask is false; the other lanes are to be computed with
// the scalar function of math.h. Every other function is right for all arguments.
//
// elementary.inc leaves the includer's macros defined and removes its own.
#ifndef BASE_MATH_ELEMENTARY_H
#define BASE_MATH_ELEMENTARY_H
#endif
