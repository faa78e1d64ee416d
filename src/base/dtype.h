// SPDX-License-Identifier: Apache-2.0
// Facts about element types, derived from dtypes.def.
#ifndef BASE_DTYPE_H
#define BASE_DTYPE_H

#include "jot/dtype.h"

#include <stdbool.h>
#include <stdint.h>

#define DTYPE_COUNT 15

struct dtype_info {
    const char *name;
    uint8_t bytes, bits;
    char kind; // b i u f c
    uint8_t real, compute;
};

extern const struct dtype_info dtype_table[DTYPE_COUNT];

static inline const struct dtype_info *dtype_get(jot_dtype d) { return &dtype_table[d]; }
static inline bool dtype_is_valid(int d) { return d >= 0 && d < DTYPE_COUNT; }
static inline bool dtype_is_float(jot_dtype d) { return dtype_table[d].kind == 'f'; }
static inline bool dtype_is_complex(jot_dtype d) { return dtype_table[d].kind == 'c'; }
static inline bool dtype_is_bool(jot_dtype d) { return d == JOT_BOOL; }
static inline bool dtype_is_signed(jot_dtype d) { return dtype_table[d].kind == 'i'; }
static inline bool dtype_is_unsigned(jot_dtype d) { return dtype_table[d].kind == 'u'; }
static inline bool dtype_is_integer(jot_dtype d)
{
    return dtype_is_signed(d) || dtype_is_unsigned(d);
}
// Float or complex: what a derivative can be taken in.
static inline bool dtype_is_inexact(jot_dtype d)
{
    return dtype_is_float(d) || dtype_is_complex(d);
}
static inline bool dtype_is_half(jot_dtype d) { return d == JOT_F16 || d == JOT_BF16; }
// The type of the parts of a complex number; any other type is its own.
static inline jot_dtype dtype_real(jot_dtype d) { return (jot_dtype)dtype_table[d].real; }
// The type in which arithmetic on d is done.
static inline jot_dtype dtype_compute(jot_dtype d) { return (jot_dtype)dtype_table[d].compute; }
// Bits of the infinity of a float type.
static inline uint64_t dtype_infinity(jot_dtype d)
{
    return d == JOT_F16    ? 0x7c00
           : d == JOT_BF16 ? 0x7f80
           : d == JOT_F32  ? 0x7f800000
                           : UINT64_C(0x7ff0000000000000);
}
static inline bool dtype_is_byte(jot_dtype d) { return d == JOT_BOOL || d == JOT_I8; }
// Whether a library multiplies matrices of one type into one of the other, exactly up to the sum: of half types
// into f32, of bytes into i32, and else of an inexact type into that type.
static inline bool dtype_multiplies(jot_dtype operands, jot_dtype product)
{
    return operands == product ? dtype_is_inexact(product)
                               : (dtype_is_half(operands) && product == JOT_F32) ||
                                     (dtype_is_byte(operands) && product == JOT_I32);
}
// The complex type whose parts are d (f32 or f64).
static inline jot_dtype dtype_complex(jot_dtype d) { return d == JOT_F64 ? JOT_C128 : JOT_C64; }

// The dtype called so, or -1.
int dtype_find(const char *name, size_t length);

// The least common type of two in JAX's promotion lattice (x64, no global mode).  A weak type is
// that of a C scalar; *weak says whether the result is one.  bool is never weak.
jot_dtype dtype_promote(jot_dtype a, bool weak_a, jot_dtype b, bool weak_b, bool *weak);

// The float type in which division and transcendental functions of d are done: integers of up to
// 32 bits and bool give f32, of 64 bits f64; inexact types stay.
jot_dtype dtype_to_inexact(jot_dtype d);

// Rounding to nearest even; NaN stays NaN (quiet).
uint16_t dtype_f16_from_f32(float x);
float dtype_f16_to_f32(uint16_t bits);
uint16_t dtype_bf16_from_f32(float x);
float dtype_bf16_to_f32(uint16_t bits);
// f64 straight to half, rounded once.
uint16_t dtype_f16_from_f64(double x);
uint16_t dtype_bf16_from_f64(double x);

#endif
