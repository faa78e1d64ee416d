// SPDX-License-Identifier: Apache-2.0
// Element types.  A dtype is data: no function of jot has a copy per element type.
#ifndef JOT_DTYPE_H
#define JOT_DTYPE_H

#include "jot/status.h"

#include <stddef.h>

// The type of the elements of an array or a value.
typedef enum jot_dtype {
    JOT_BOOL, // one byte, 0 or 1
    JOT_I8,
    JOT_I16,
    JOT_I32,
    JOT_I64,
    JOT_U8,
    JOT_U16,
    JOT_U32,
    JOT_U64,
    JOT_F16,  // IEEE 754 binary16
    JOT_BF16, // the upper half of a binary32
    JOT_F32,
    JOT_F64,
    JOT_C64,  // two f32: real, imaginary
    JOT_C128, // two f64: real, imaginary
} jot_dtype;

JOT_BEGIN_C

// The short name, such as "f32"; "?" for a number that is no dtype.
JOT_API const char *jot_dtype_name(jot_dtype dtype);

// Bytes of one element; 0 for a number that is no dtype.
JOT_API size_t jot_dtype_size(jot_dtype dtype);

JOT_END_C

#endif
