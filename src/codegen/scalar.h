// SPDX-License-Identifier: Apache-2.0
// The ops on scalar values of any lane count.
#ifndef CODEGEN_SCALAR_H
#define CODEGEN_SCALAR_H

#include "codegen/emit.h"

// The op on operands of equal lane counts; bits as in struct nest_statement.  out has room for
// two results.
void cg_op(struct machine *m, enum ir_op op, jot_dtype result, int n, const jot_dtype *dtypes,
           const struct cg_value *in, const int64_t bits[2], struct cg_value *out);
struct cg_value cg_convert(struct machine *m, struct cg_value x, jot_dtype from, jot_dtype to);
// The element with these bytes, splat.
struct cg_value cg_constant(const struct cg_module *m, jot_dtype d, const void *element,
                            unsigned lanes);
// What accumulators of a combiner begin with.
struct cg_value cg_identity(const struct cg_module *m, enum ir_op op, jot_dtype d,
                            unsigned lanes);
// What combined with any element leaves it as it is, if that is known of the op.
bool cg_has_neutral(enum ir_op op, jot_dtype d);
struct cg_value cg_neutral(struct machine *m, enum ir_op op, jot_dtype d, unsigned lanes);
// Combines two values of one combiner, both of dtype d.
struct cg_value cg_combine(struct machine *m, enum ir_op op, jot_dtype d, struct cg_value a,
                           struct cg_value b);
// acc + a * b in the order of the fma combiner.
struct cg_value cg_combine_fma(struct machine *m, jot_dtype d, struct cg_value acc,
                               struct cg_value a, struct cg_value b);
// Whether a takes the place of b as the winner of an ARG op.
LLVMValueRef cg_wins(struct machine *m, enum ir_op op, jot_dtype d, LLVMValueRef a,
                     LLVMValueRef b);
struct cg_value cg_select(struct machine *m, LLVMValueRef p, struct cg_value a,
                          struct cg_value b);

// x / y and the root of x, of floats.
LLVMValueRef cg_divide(struct machine *m, LLVMValueRef x, LLVMValueRef y);
LLVMValueRef cg_sqrt(struct machine *m, LLVMValueRef x);

#endif
