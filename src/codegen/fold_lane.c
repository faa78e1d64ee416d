// SPDX-License-Identifier: Apache-2.0
// Folds in a loop over points whose lanes are the points: where what a point folds lies
// together, as the row of a matrix does, each lane is folded by itself, along the row, and only
// the results are put side by side.
//
//     par i < 256 {                      for 16 places of i:
//       fold k < 256 { w[256*i + k] }        16 times: a row, 16 elements at a time
//       tanh, put                            tanh, put, 16 at a time
//     }
#include "codegen/fold_lane.h"
#include "codegen/access.h"
#include "codegen/emit.h"
#include "codegen/fold.h"
#include "codegen/loop.h"
#include "codegen/lower.h"

// How many lanes count.
static LLVMValueRef count_lanes(struct cg_lowering *l)
{
    if (!l->mask)
        return cg_int(l->module, l->lanes);
    LLVMTypeRef bits = LLVMIntTypeInContext(l->module->context, l->lanes);
    LLVMValueRef set = LLVMBuildBitCast(l->m.b, l->mask, bits, "");
    set = cg_intrinsic(&l->m, "llvm.ctpop", bits, 1, &set);
    return LLVMBuildIntCast2(l->m.b, set, l->module->i64, false, "");
}

void cg_lower_fold_by_lane(struct cg_lowering *l, nest_id id)
{
    const struct nest_statement *s = cg_statement(l, id);
    LLVMValueRef *places = arena_array(l->arena, LLVMValueRef, s->n_results + 1);
    LLVMTypeRef *types = arena_array(l->arena, LLVMTypeRef, s->n_results + 1);
    LLVMBuilderRef b = l->m.b;
    struct cg_lowering outer = *l;
    nest_id axis = l->vector_axis;
    LLVMValueRef index = l->axes[axis], count = count_lanes(l);
    for (uint32_t i = 0; i < s->n_results; i++) {
        LLVMTypeRef lane = cg_lane_type(l->module, l->nest->values.at[s->result + i].dtype);
        types[i] = cg_with_lanes(lane, l->lanes);
        places[i] = cg_alloca(l, types[i], 1);
        if (l->mask)
            LLVMBuildStore(b, LLVMConstNull(types[i]), places[i]);
    }
    l->lanes = 1;
    l->vector_axis = NEST_NONE;
    l->mask = l->tail = NULL;
    struct cg_loop loop = cg_loop_open(l, cg_int(l->module, 0), count, cg_int(l->module, 1));
    l->axes[axis] = LLVMBuildAdd(b, index, loop.index, "");
    cg_lower_fold(l, id);
    for (uint32_t i = 0; i < s->n_results; i++) {
        LLVMTypeRef lane = LLVMGetElementType(types[i]);
        LLVMBuildStore(b, l->values[s->result + i].re, cg_at(l, lane, places[i], loop.index));
    }
    cg_loop_close(l, &loop);
    l->lanes = outer.lanes;
    l->vector_axis = axis;
    l->vector_loop = outer.vector_loop;
    l->mask = outer.mask;
    l->tail = outer.tail;
    l->axes[axis] = index;
    for (uint32_t i = 0; i < s->n_results; i++)
        l->values[s->result + i] =
            (struct cg_value){LLVMBuildLoad2(b, types[i], places[i], ""), NULL};
}
