// SPDX-License-Identifier: Apache-2.0
// Floats of the element types of MLIR as decimals and as bits.
#ifndef INTEROP_NUMBERS_H
#define INTEROP_NUMBERS_H

#include "interop/mlir.h"

// What the largest exponent means: infinity and NaN; NaN where the mantissa is all ones (FN); in FNUZ
// numbers alone, NaN being the bits of -0; in FINITE ones too, and there is no NaN: what is too large is
// the largest number, and NaN -0.
enum number_flavour { NUMBER_IEEE, NUMBER_FN, NUMBER_FNUZ, NUMBER_FINITE };

struct number_format {
    int exponent, mantissa, bias; // bits, bits, exponent of 1
    enum number_flavour flavour;
};
// Of a float.  f8E8M0FNU is a scale: powers of two from 2^-127 to 2^127 and NaN, without a sign.
const struct number_format *number_format(enum mlir_element e);
// The largest number that is finite.
double number_largest(enum mlir_element e);

// The element nearest to the decimal number in n characters (digits with an optional sign, point
// and exponent), ties to even: rounded once, whatever the type.  What is too large is infinite, or
// NaN in types that have no infinity.  `e` is a float; its bytes are written.
void number_store_decimal(enum mlir_element e, const char *text, size_t n, void *element);

// The same of a double.
void number_store(enum mlir_element e, double x, void *element);
// A float, integer or bool; exact but for integers beyond 2^53.
double number_load(enum mlir_element e, const void *element);

// n floats of eight bits or less as the type of jot keeps them that holds them, f16 or f32.
void number_keep_small(enum mlir_element e, const unsigned char *elements, size_t n, void *out);

// A float as MLIR prints it: 1.500000e+00, with more digits where these do not tell it apart, and bits
// in hex where it is no number.  At most 40 characters.
void number_print(enum mlir_element e, const void *element, char *text, size_t size);

// Bytes of an element in memory; 0 for types that arrays have no form of here.
size_t number_bytes(enum mlir_element e);
// The type of the parts of a complex number, any other itself.
enum mlir_element number_part(enum mlir_element e);

#endif
