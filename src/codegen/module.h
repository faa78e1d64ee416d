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

#endif
