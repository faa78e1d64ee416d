// SPDX-License-Identifier: Apache-2.0
// PTX as the assembler of the device takes it.
#ifndef CODEGEN_GPU_TEXT_H
#define CODEGEN_GPU_TEXT_H

#include "codegen/module.h"
#include "codegen/parts.h"

// Of parts of a module, texts of PTX to assemble side by side that each end in a zero byte.
void gpu_take_texts(struct arena *arena, const char *target, const struct cg_objects *parts,
                    struct cg_object *out);
// What LLVM wrote for the target, as it is assembled.
char *gpu_finish_text(struct arena *arena, const char *target, const char *ptx);

#endif
