// SPDX-License-Identifier: Apache-2.0
// What attributes of operations are when they are not there.  Portable bytecode has all of them,
// text leaves those out; the tree has none that is so.
#ifndef INTEROP_MLIR_DEFAULTS_H
#define INTEROP_MLIR_DEFAULTS_H

#include "interop/mlir.h"

enum mlir_default_kind {
    MLIR_DEFAULT_NUMBER,
    MLIR_DEFAULT_NUMBERS, // that number for each dimension, or an empty list
    MLIR_DEFAULT_TEXT,    // a word, a string or what text prints
    MLIR_DEFAULT_WORDS,   // that word for each operand
    MLIR_DEFAULT_EMPTY,   // an array or a dictionary
};

struct mlir_default {
    const char *op, *name; // op: "*" for all operations that have the attribute
    enum mlir_default_kind kind;
    int64_t number;
    const char *text;
};

// NULL when the attribute has to be there.
const struct mlir_default *mlir_default_find(const struct mlir_row *row, const char *name);
// Whether the numbers are one for each dimension; other lists are empty.
bool mlir_default_is_for_each(const struct mlir_default *d);
bool mlir_default_is(const struct mlir_default *d, const struct mlir_attr *a);

#endif
