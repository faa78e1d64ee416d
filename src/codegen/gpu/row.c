// SPDX-License-Identifier: Apache-2.0
// Where a thread is among those that share a fold.
#include "codegen/gpu/row.h"
#include "codegen/gpu/device.h"
#include "codegen/gpu/gpu.h"
#include "codegen/lower.h"
#include "map/gpu_groups.h"

struct gpu_member gpu_member_of(struct cg_lowering *l, const struct map_row *r)
{
    LLVMValueRef size = gpu_i32(l, r->team);
    struct gpu_member m = {.team = LLVMBuildUDiv(l->m.b, l->gpu->in_group, size, ""),
                           .in_team = LLVMBuildURem(l->m.b, l->gpu->in_group, size, "")};
    m.offset = LLVMBuildMul(l->m.b, m.in_team, gpu_i32(l, r->lanes), "");
    return m;
}
