// SPDX-License-Identifier: Apache-2.0
// A program whose extents are known when those of its arguments are.
#ifndef INTEROP_REFINE_H
#define INTEROP_REFINE_H

#include "interop/mlir.h"

// An argument: its type or, for an integer that is no tensor of its own, its value.
struct mlir_argument {
    const struct mlir_type *type;
    bool is_known; // the argument goes: the program is made for this value
    int64_t value;
};

// Whether a function has arguments or results whose extents are not known.
bool mlir_is_dynamic(const struct mlir_function *f);

// The function of p called `name`, and those it calls, for n arguments: every extent is known,
// operations that take extents as operands become those that have them, of a choice by a known
// number the branch that is chosen stays, and assertions about shapes are checked.  It borrows from
// p, which outlives it.
jot_status mlir_refine(const struct mlir_program *p, const char *name,
                       const struct mlir_argument *arguments, uint32_t n,
                       struct mlir_program **out);

#endif
