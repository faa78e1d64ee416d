// SPDX-License-Identifier: Apache-2.0
// What the parts of refine share: refine.c goes through functions, refine_ops.c makes operations of
// known extents of those that compute them, refine_types.c knows extents of results, refine_eval.c
// arithmetic on numbers that are known, refine_tidy.c takes out what is left over.
#ifndef INTEROP_REFINE_INTERNAL_H
#define INTEROP_REFINE_INTERNAL_H

#include "base/hash.h"
#include "base/vec.h"
#include "interop/refine.h"

// Numbers are followed in tensors of so many elements: those that say extents are small.
enum { REFINE_MAX_KNOWN = 256 };

// What a value of the program has become.
struct refined {
    struct mlir_value *value; // NULL: not made yet
    const int64_t *known;     // the elements of a small tensor of integers, or NULL
    const struct mlir_op *by; // the operation of the same function that makes it, or NULL
};

struct op_list {
    struct mlir_op **at;
    uint32_t count, capacity;
};

// A function for arguments of certain types, and numbers of which some are known.
struct refined_function {
    const struct mlir_function *from;
    struct refined *args;
    const char *name;
    bool is_made;
    const struct mlir_type **results;
    const int64_t **known; // of the results
};

struct refiner {
    struct arena *arena, *scratch; // of the new program, and until it is made
    const struct mlir_program *from;
    jot_status status;
    VEC(struct refined_function *) made;
    struct hash_table table;
    uint32_t *n_made; // of each function of the program
    VEC(struct mlir_function) functions;
    uint32_t n_values; // of the function that is being made
    size_t allowance;  // operations that may still be made
    int depth;
};

// An operation that is being refined.
struct refine_op {
    struct refiner *r;
    struct refined *values; // of the function, by their old numbers
    const struct mlir_op *op;
    struct refined *operands;
    struct op_list *out;
};

__attribute__((format(printf, 3, 4))) void
refine_fail(struct refiner *r, const struct mlir_op *op, const char *format, ...);

// The numbers of a tensor: -1 elements when they are not known.
const int64_t *refine_known(const struct refine_op *o, uint32_t operand, int64_t *out_n);
int64_t refine_extent(const struct refine_op *o, uint32_t operand,
                      int64_t axis); // -1: there is none

// ---- refine_eval.c: the result of an operation on known numbers, or NULL ----

const int64_t *refine_eval(const struct refine_op *o, const struct mlir_type *type);
// The elements of a small constant of integers, or NULL.
const int64_t *refine_eval_constant(struct refiner *r, const struct mlir_attr *value);

// ---- refine_types.c ----

// The type of a result, whose regions are not needed; NULL after a fault.
const struct mlir_type *refine_result(const struct refine_op *o, uint32_t result);
const struct mlir_type *refine_tensor(struct refiner *r, enum mlir_element element, int rank,
                                      const int64_t *dims);

// ---- refine_ops.c ----

// Operations that become others; false when it is none of these.
bool refine_special(struct refine_op *o);
// A new operation of the list.
struct mlir_op *refine_emit(struct refine_op *o, enum mlir_code code, uint32_t n_operands,
                            uint32_t n_results);
struct mlir_value *refine_value(struct refiner *r, const struct mlir_type *type);
void refine_emit_constant(struct refine_op *o, uint32_t result, const struct mlir_type *type,
                          const int64_t *numbers);

// ---- refine.c ----

// The body of a function as a region of one that uses it.
bool refine_inline(struct refine_op *o, const char *function, struct mlir_block *out);

// ---- refine_tidy.c ----

// Leaves in the functions what the first of them needs.
void refine_tidy(struct refiner *r);

#endif
