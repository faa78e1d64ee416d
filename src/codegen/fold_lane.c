// SPDX-License-Identifier: Apache-2.0
// Folds in a loop over points whose lanes are the points: where what a point folds lies
// together, as the row of a matrix does, each lane is folded by itself, along the row, and only
// the results are put side by side.
//
//     par i < 256 {                      for 16 values of i:
//       fold k < 256 { w[256*i + k] }        16 times: a row, 16 elements at a time
//       tanh, put                            tanh, put, 16 at a time
//     }
#include "codegen/fold_lane.h"
#include "codegen/emit.h"
#include "codegen/fold.h"
#include "codegen/loop.h"
#include "codegen/lower.h"
#include "codegen/memory.h"
#include "codegen/types.h"

// How many lanes count.
static LLVMValueRef count_lanes(struct cg_lowering *l)
{
    if (!l->vector.mask)
        return cg_int(l->module, l->vector.lanes);
    LLVMTypeRef bits = LLVMIntTypeInContext(l->module->context, l->vector.lanes);
    LLVMValueRef set = LLVMBuildBitCast(l->m.b, l->vector.mask, bits, "");
    set = cg_intrinsic(&l->m, "llvm.ctpop", bits, 1, &set);
    return LLVMBuildIntCast2(l->m.b, set, l->module->i64, false, "");
}

void cg_lower_fold_by_lane(struct cg_lowering *l, nest_id id)
{
    const struct nest_statement *s = cg_statement(l, id);
    LLVMValueRef *slots = arena_array(l->arena, LLVMValueRef, s->n_results + 1);
    LLVMTypeRef *types = arena_array(l->arena, LLVMTypeRef, s->n_results + 1);
    LLVMBuilderRef b = l->m.b;
    struct cg_vector outer = l->vector;
    LLVMValueRef index = l->axes[outer.axis], count = count_lanes(l);
    for (uint32_t i = 0; i < s->n_results; i++) {
        LLVMTypeRef lane = cg_lane_type(l->module, l->nest->values.at[s->result + i].dtype);
        types[i] = cg_with_lanes(lane, l->vector.lanes);
        slots[i] = cg_alloca(l, types[i], 1);
        if (l->vector.mask)
            LLVMBuildStore(b, LLVMConstNull(types[i]), slots[i]);
    }
    l->vector.lanes = 1;
    l->vector.axis = NEST_NONE;
    l->vector.mask = l->vector.tail = NULL;
    struct cg_loop loop = cg_loop_open(l, cg_int(l->module, 0), count, cg_int(l->module, 1));
    l->axes[outer.axis] = LLVMBuildAdd(b, index, loop.index, "");
    cg_lower_fold(l, id);
    for (uint32_t i = 0; i < s->n_results; i++) {
        LLVMTypeRef lane = LLVMGetElementType(types[i]);
        LLVMBuildStore(b, l->values[s->result + i].re, cg_at(l, lane, slots[i], loop.index));
    }
    cg_loop_close(l, &loop);
    l->vector = outer;
    l->axes[outer.axis] = index;
    for (uint32_t i = 0; i < s->n_results; i++)
        l->values[s->result + i] =
            (struct cg_value){LLVMBuildLoad2(b, types[i], slots[i], ""), NULL};
}
