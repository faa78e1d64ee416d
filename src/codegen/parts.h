// SPDX-License-Identifier: Apache-2.0
// A module in parts, on several threads.
#ifndef CODEGEN_PARTS_H
#define CODEGEN_PARTS_H

#include "codegen/emit.h"
#include "jot/status.h"

struct cg_target;

// What parts take from each other is by name.
struct cg_objects {
    uint32_t n;
    LLVMMemoryBufferRef *at;
};
jot_status cg_compile_parts(struct cg_module *m, struct cg_target *target,
                            struct cg_objects *out);
void cg_objects_release(struct cg_objects *objects);

#endif
