// SPDX-License-Identifier: Apache-2.0
// Ops as functions of the module.
#ifndef CODEGEN_OP_FUNCTION_H
#define CODEGEN_OP_FUNCTION_H

#include "codegen/emit.h"

// cg_op by a function, if the op is longer than a call and is not known already.
bool cg_op_by_function(struct machine *m, enum ir_op op, jot_dtype result, int n,
                       const jot_dtype *dtypes, const struct cg_value *in,
                       const int64_t bits[2], struct cg_value *out);
// Adds an attribute to a function, or to a call.
void cg_add_attribute(const struct cg_module *m, LLVMValueRef to, const char *name);
// A function of the module without a body, whose calls stay calls.
LLVMValueRef cg_function_apart(struct cg_module *m, const char *name, LLVMTypeRef type);
// Calls of functions of ops on the same operands become one.
void cg_pair_op_functions(const struct cg_module *m);

#endif
