// SPDX-License-Identifier: Apache-2.0
// What threads know of the memory that they touch, and how they load and store it.
#include "codegen/gpu/memory.h"
#include "codegen/access.h"
#include "codegen/emit.h"
#include "codegen/gpu/gpu.h"
#include "codegen/gpu/kept.h"
#include "codegen/gpu/neighbours.h"
#include "codegen/gpu/tile.h"
#include "codegen/lower.h"
#include "codegen/types.h"
#include "map/gpu.h"

static int64_t common_power(int64_t x, int64_t most)
{
    while (most > 1 && x % most)
        most /= 2;
    return most;
}

unsigned gpu_align_of(const struct cg_lowering *l, nest_id buffer)
{
    return l->nest->buffers.at[buffer].role == NEST_LOCAL ? MAP_ALIGNMENT
                                                          : l->gpu->nest.operands[buffer].align;
}

bool gpu_is_alone(const struct cg_lowering *l, nest_id buffer)
{
    return l->nest->buffers.at[buffer].role == NEST_LOCAL ||
           l->gpu->nest.operands[buffer].is_alone;
}

bool gpu_is_read_only(const struct cg_lowering *l, nest_id buffer)
{
    return l->nest->buffers.at[buffer].role == NEST_IN &&
           l->gpu->nest.operands[buffer].is_constant;
}

unsigned gpu_alignment(const struct cg_lowering *l, const struct nest_statement *s)
{
    const struct nest_buffer *buffer = &l->nest->buffers.at[s->buffer];
    int64_t along = nest_index_factor(&s->index, l->vector.axis), size, power;
    if (l->vector.lanes == 1 || l->vector.axis == NEST_NONE || (along != 1 && along != -1))
        return 0;
    size = (int64_t)jot_dtype_size(buffer->dtype);
    power = common_power(s->index.constant + (along < 0 ? 1 : 0), MAP_ALIGNMENT);
    power = common_power(l->vector.lanes, power);
    for (uint32_t i = 0; i < s->index.count; i++) {
        const struct nest_term *t = &s->index.terms[i];
        if (t->is_value && cg_lanes_of(l->values[t->id].re) > 1)
            return 0;
        if (t->is_value || t->id != l->vector.axis)
            power = common_power(t->factor, power);
    }
    int64_t align = power * size;
    int64_t most = gpu_align_of(l, s->buffer);
    align = align < most ? align : most;
    int64_t element = dtype_get(dtype_real(buffer->dtype))->bytes;
    return (unsigned)(align > element ? align : element);
}

void gpu_note_access(struct cg_lowering *l, const struct nest_statement *s)
{
    l->access.align = gpu_alignment(l, s);
    l->access.is_constant = s->kind == NEST_LOAD && gpu_is_read_only(l, s->buffer);
}

bool gpu_load(struct cg_lowering *l, const struct nest_statement *s, LLVMValueRef guard,
              struct cg_value *out)
{
    if (l->marks[nest_id_of(l->nest, s)].staged) {
        *out = gpu_load_turned(l, s);
        return true;
    }
    LLVMValueRef kept = gpu_kept_address(l, s->buffer);
    if (!kept)
        return gpu_load_neighbours(l, s, guard, out);
    jot_dtype d = l->nest->buffers.at[s->buffer].dtype;
    LLVMTypeRef type = cg_with_lanes(cg_memory_type(l->module, d), l->vector.lanes);
    LLVMValueRef v = LLVMBuildLoad2(l->m.b, type, kept, "");
    *out = (struct cg_value){cg_from_memory(l, v, d), NULL};
    return true;
}

bool gpu_store(struct cg_lowering *l, const struct nest_statement *s, struct cg_value v)
{
    LLVMValueRef kept = gpu_kept_address(l, s->buffer);
    jot_dtype d = l->nest->buffers.at[s->buffer].dtype;
    if (kept)
        LLVMBuildStore(l->m.b, cg_to_memory(l, cg_wide(l, v.re), d), kept);
    return kept;
}
