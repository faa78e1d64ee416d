// SPDX-License-Identifier: Apache-2.0
// One LLVM module from its creation to object bytes.
#ifndef CODEGEN_MODULE_H
#define CODEGEN_MODULE_H

#include "codegen/emit.h"
#include "jot/status.h"

#include <llvm-c/TargetMachine.h>

struct cg_target;

// The target "CPU FEATURES", "cuda ARCHITECTURE" ("cuda sm_90"), or this machine for "" or NULL.  It
// is the thread's, until the thread asks for another or ends.
jot_status cg_target_find(const char *text, struct cg_target **out_target);
const char *cg_target_name(const struct cg_target *target); // the text; "" of this machine

jot_status cg_module_make(struct cg_target *target, struct arena *arena, struct cg_module *out);
void cg_module_finish(struct cg_module *m);

// An object file, or PTX, of a module; it is changed by that.
jot_status cg_module_make_object(LLVMModuleRef module, struct cg_target *target,
                                 LLVMMemoryBufferRef *out);

// parts.c: the same in parts, on several threads.  What parts take from each other is by name.
struct cg_objects {
    uint32_t n;
    LLVMMemoryBufferRef *at;
};
jot_status cg_compile_parts(struct cg_module *m, struct cg_target *target,
                            struct cg_objects *out);
void cg_objects_release(struct cg_objects *objects);

// The function finds addresses and calls others, so the back end takes it as the passes leave it.
void cg_mark_calls(struct cg_module *m, LLVMValueRef f);

// Verifies, simplifies and compiles.  The bytes are in the arena: object files, one behind the other from
// multiples of 8 bytes on, or texts of PTX that each end in a zero byte; texts only where wanted.
struct cg_object {
    const void *bytes;
    size_t size;
    const char *llvm, *assembly;
};
jot_status cg_module_compile(struct cg_module *m, struct cg_target *target, unsigned want,
                             struct cg_object *out);

// constants.c: the number that a constant vector has in all lanes, or NULL.
LLVMValueRef cg_number_of_lanes(LLVMValueRef v);
// Whether it is arithmetic of floats, whose operands may be in memory; of others LLVM wants to see the numbers.
bool cg_may_read(LLVMValueRef instruction);
// Operands that are one number in all lanes become vectors in memory.
void cg_constants_to_memory(struct cg_module *m);

// size.c: instructions that the target needs for a function, about, which COST_CODE bounds.
int64_t cg_code_of(const struct cg_module *m, LLVMValueRef function);
// The same up to `most`; more is any larger number.
int64_t cg_code_up_to(const struct cg_module *m, LLVMValueRef function, int64_t most);
// Registers of the target that the value takes; of a GPU lanes.
int64_t cg_registers_of(const struct cg_module *m, LLVMValueRef v);
// op_function.c: calls of functions of ops on the same operands become one.
void cg_pair_op_functions(const struct cg_module *m);
// large.c:
// Numbers, locals and indices of large functions where LLVM's time for them grows with the code.
void cg_large_functions(struct cg_module *m);
// The integer, or on a GPU a number of 32 or 64 bits, behind an assembly of no instructions, through which LLVM does not
// look.
LLVMValueRef cg_apart(struct cg_module *m, LLVMBuilderRef b, LLVMValueRef number);
// long_blocks.c: blocks of instructions become parts where LLVM's time for them grows with their square.
void cg_cut_blocks(const struct cg_module *m, LLVMModuleRef module);

#endif
