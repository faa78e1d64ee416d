// SPDX-License-Identifier: Apache-2.0
// Affine indices as values: what is the same in all lanes stays scalar.
#include "codegen/index.h"
#include "codegen/lower.h"
#include "codegen/types.h"

LLVMValueRef cg_add(struct cg_lowering *l, LLVMValueRef a, LLVMValueRef b)
{
    return LLVMBuildAdd(l->m.b, a, b, "");
}

LLVMValueRef cg_times(struct cg_lowering *l, LLVMValueRef a, int64_t factor)
{
    if (factor == 1)
        return a;
    LLVMValueRef f = cg_splat(&l->m, cg_int(l->module, factor), cg_lanes_of(a));
    return LLVMBuildMul(l->m.b, a, f, "");
}

static LLVMValueRef widen_to_i64(struct cg_lowering *l, LLVMValueRef v, jot_dtype d)
{
    LLVMTypeRef type = cg_with_lanes(l->module->i64, cg_lanes_of(v));
    if (dtype_get(d)->bytes == 8)
        return v;
    return dtype_is_signed(d) ? LLVMBuildSExt(l->m.b, v, type, "")
                              : LLVMBuildZExt(l->m.b, v, type, "");
}

struct cg_parts cg_split_index(struct cg_lowering *l, const struct nest_index *x)
{
    struct cg_parts p = {.uniform = cg_int(l->module, x->constant)};
    for (uint32_t i = 0; i < x->count; i++) {
        const struct nest_term *t = &x->terms[i];
        if (!t->is_value) {
            p.uniform = cg_add(l, p.uniform, cg_times(l, l->axes[t->id], t->factor));
            if (t->id == l->vector.axis)
                p.factor = t->factor;
            continue;
        }
        LLVMValueRef v = widen_to_i64(l, l->values[t->id].re, l->nest->values.at[t->id].dtype);
        if (cg_lanes_of(v) == 1)
            p.uniform = cg_add(l, p.uniform, cg_times(l, v, t->factor));
        else
            p.varying = p.varying ? cg_add(l, p.varying, cg_times(l, v, t->factor))
                                  : cg_times(l, v, t->factor);
    }
    return p;
}

LLVMValueRef cg_lane_offsets(struct cg_lowering *l, const struct cg_parts *p)
{
    LLVMValueRef all = cg_splat(&l->m, p->uniform, l->vector.lanes);
    if (p->factor)
        all = cg_add(l, all,
                     cg_sequence(l->module, l->module->i64, l->vector.lanes, 0, p->factor));
    return p->varying ? cg_add(l, all, p->varying) : all;
}

LLVMValueRef cg_index_first(struct cg_lowering *l, const struct nest_index *x)
{
    return cg_split_index(l, x).uniform;
}

LLVMValueRef cg_index_value(struct cg_lowering *l, const struct nest_index *x, jot_dtype d)
{
    struct cg_parts p = cg_split_index(l, x);
    LLVMTypeRef lane = cg_lane_type(l->module, d);
    bool narrow = dtype_get(d)->bytes < 8;
    if (l->vector.lanes == 1 || (!p.factor && !p.varying))
        return narrow ? LLVMBuildTrunc(l->m.b, p.uniform, lane, "") : p.uniform;
    if (p.varying || !narrow) {
        LLVMValueRef all = cg_lane_offsets(l, &p);
        return narrow ? LLVMBuildTrunc(l->m.b, all, LLVMVectorType(lane, l->vector.lanes), "")
                      : all;
    }
    // Truncated first: the arithmetic wraps to the same bits in the narrow type.
    LLVMValueRef base =
        cg_splat(&l->m, LLVMBuildTrunc(l->m.b, p.uniform, lane, ""), l->vector.lanes);
    return cg_add(l, base, cg_sequence(l->module, lane, l->vector.lanes, 0, p.factor));
}
