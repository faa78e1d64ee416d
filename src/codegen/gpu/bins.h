// SPDX-License-Identifier: Apache-2.0
// Updates by bins, one for each warp.
#ifndef CODEGEN_GPU_BINS_H
#define CODEGEN_GPU_BINS_H

#include "codegen/gpu/updates.h"
#include "codegen/loop.h"

struct updates_bin {
    struct cg_loop loop;       // over the bins of the block
    LLVMValueRef warp;         // in the block, an i64
    LLVMValueRef point, index; // i64
    // Of 32 chunks, i32: the turns; those up to the lane's chunk; where its first one would stand in the list if those
    // before it stood there too.
    LLVMValueRef count, sums, begin;
};
struct updates_bin updates_bin_open(struct cg_lowering *l, const struct updates *u,
                                    struct cg_kernel_step *step);
// Over the chunks of the point, 32 at a time, one of which a lane looks up.
struct cg_loop updates_chunks_open(struct cg_lowering *l, const struct updates *u,
                                   struct updates_bin *bin);
// Where turn i of them stands in the list, an i64; where there is none, that of the first one.
LLVMValueRef updates_at(struct cg_lowering *l, const struct updates_bin *bin, LLVMValueRef i,
                        LLVMValueRef *out_is_there);
// The second step.
void bins_lower(struct cg_lowering *l, const struct updates *u, struct cg_kernel_step *step);

#endif
