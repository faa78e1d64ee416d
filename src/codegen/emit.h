// SPDX-License-Identifier: Apache-2.0
// The state that all emitters share: a module in the making, the scalar machine on LLVM values of any
// lane count, and its values.
#ifndef CODEGEN_EMIT_H
#define CODEGEN_EMIT_H

#include "base/arena.h"
#include "base/dtype.h"
#include "ir/ops.h"

#include <llvm-c/Core.h>

struct cg_hooks;
struct ir_attrs;

// One LLVM module in the making.
struct cg_module {
    struct arena *arena;
    LLVMContextRef context;
    LLVMModuleRef module;
    LLVMTypeRef i1, i8, i16, i32, i64, f32, f64, ptr;
    unsigned vector_bytes; // of the target's registers
    unsigned registers;    // vectors that it holds at once
    bool is_gpu;           // one lane of code is one of many threads
    bool has_warpgroups;   // of a GPU whose tensor cores read shared memory (gpu/warpgroup.c)
    const struct cg_hooks *hooks; // of a GPU (hooks.h); NULL on the host
};

// A run of operations without branches, for functions that hold in a range: gpu/ranges.c sets it for
// as long as it lowers the run.
struct cg_range_run {
    LLVMValueRef outside;   // whether some number has been out of range, or NULL: none could be
    bool is_redo;           // what is lowered does numbers of any size
    bool is_known;          // operands of what is lowered need no look
    struct gpu_size *sizes; // by value of the nest
};

// The scalar machine of ir/scalar.h on LLVM values of any lane count: the type of a value says
// how many lanes it has, so one lane is a plain LLVM scalar.
struct machine {
    jot_dtype dtype; // of the last operand of the op, as it is stored
    const struct ir_attrs *attrs;
    struct cg_module *module;
    LLVMBuilderRef b;
    bool by_function; // longer ops are calls of functions of the module (op_function.c)
    bool is_crowded;  // of a GPU: a thread's registers are full, and none are there for a call
    // Of a function of a GPU that is or becomes part of a long one: LLVM compares the test of each loop
    // with those in front of it, and looks through the whole function for what a call gives.
    bool is_long;
    struct cg_range_run *ranges; // the one that is being lowered, or NULL
};

// A value of a nest: bool is i1, a half type its 16 bits, a complex number two parts.
struct cg_value {
    LLVMValueRef re, im; // im NULL unless complex
};

#endif
