// SPDX-License-Identifier: Apache-2.0
// Local rows of a group that no thread but the one that puts an element reads it: each thread keeps
// what it has in registers, where the loops over the row are all written out.
#include "codegen/gpu/kept.h"
#include "codegen/gpu/gpu.h"
#include "codegen/lower.h"
#include "codegen/memory.h"
#include "codegen/types.h"

bool gpu_keeps(const struct cg_lowering *l)
{
    for (uint32_t i = 0; l->gpu->kept.rows && i < l->nest->buffers.count; i++)
        if (l->gpu->kept.rows[i].is_kept)
            return true;
    return false;
}

LLVMValueRef gpu_kept_address(struct cg_lowering *l, nest_id buffer)
{
    const struct cg_gpu *g = l->gpu;
    if (!g->kept.rows || !g->kept.rows[buffer].is_kept)
        return NULL;
    const struct nest_buffer *info = &l->nest->buffers.at[buffer];
    LLVMTypeRef type = cg_with_lanes(cg_memory_type(l->module, info->dtype), l->vector.lanes);
    if (!g->kept.rows[buffer].memory)
        g->kept.rows[buffer].memory =
            cg_alloca(l, type, (unsigned)(info->count / g->group / l->vector.lanes));
    return cg_at(l, type, g->kept.rows[buffer].memory, cg_int(l->module, g->kept.vector));
}
