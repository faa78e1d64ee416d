// SPDX-License-Identifier: Apache-2.0
#include "codegen/types.h"
#include "codegen/emit.h"

#include <string.h>

static LLVMTypeRef number_type(const struct cg_module *m, jot_dtype d)
{
    const struct dtype_info *info = dtype_get(dtype_real(d));
    if (info->kind == 'f')
        return info->bytes == 8 ? m->f64 : info->bytes == 4 ? m->f32 : m->i16;
    return info->bytes == 8   ? m->i64
           : info->bytes == 4 ? m->i32
           : info->bytes == 2 ? m->i16
                              : m->i8;
}

LLVMTypeRef cg_lane_type(const struct cg_module *m, jot_dtype d)
{
    return d == JOT_BOOL ? m->i1 : number_type(m, d);
}

LLVMTypeRef cg_memory_type(const struct cg_module *m, jot_dtype d) { return number_type(m, d); }

LLVMTypeRef cg_with_lanes(LLVMTypeRef lane, unsigned lanes)
{
    return lanes == 1 ? lane : LLVMVectorType(lane, lanes);
}

LLVMTypeRef cg_lane_of(LLVMValueRef v)
{
    LLVMTypeRef t = LLVMTypeOf(v);
    return LLVMGetTypeKind(t) == LLVMVectorTypeKind ? LLVMGetElementType(t) : t;
}

unsigned cg_lanes_of(LLVMValueRef v)
{
    LLVMTypeRef t = LLVMTypeOf(v);
    return LLVMGetTypeKind(t) == LLVMVectorTypeKind ? LLVMGetVectorSize(t) : 1;
}

LLVMValueRef cg_int(const struct cg_module *m, int64_t x)
{
    return LLVMConstInt(m->i64, (unsigned long long)x, 1);
}

static LLVMValueRef constant_splat(LLVMValueRef c, unsigned lanes)
{
    LLVMValueRef all[256];
    for (unsigned i = 0; i < lanes; i++)
        all[i] = c;
    return LLVMConstVector(all, lanes);
}

LLVMValueRef cg_splat(struct machine *m, LLVMValueRef v, unsigned lanes)
{
    if (lanes == 1 || cg_lanes_of(v) == lanes)
        return v;
    if (LLVMIsConstant(v))
        return constant_splat(v, lanes);
    LLVMTypeRef type = LLVMVectorType(LLVMTypeOf(v), lanes);
    LLVMValueRef one = LLVMBuildInsertElement(m->b, LLVMGetPoison(type), v,
                                              LLVMConstInt(m->module->i32, 0, 0), "");
    LLVMValueRef zeros = LLVMConstNull(LLVMVectorType(m->module->i32, lanes));
    return LLVMBuildShuffleVector(m->b, one, LLVMGetPoison(type), zeros, "");
}

LLVMValueRef cg_any_lane(struct machine *m, LLVMValueRef mask)
{
    LLVMValueRef any = cg_lanes_of(mask) == 1 ? mask : cg_extract(m, mask, 0, 1);
    for (unsigned i = 1; i < cg_lanes_of(mask); i++)
        any = LLVMBuildOr(m->b, any, cg_extract(m, mask, i, 1), "");
    return any;
}

LLVMValueRef cg_intrinsic(struct machine *m, const char *name, LLVMTypeRef overload, int n,
                          LLVMValueRef *arguments)
{
    unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    LLVMValueRef f = LLVMGetIntrinsicDeclaration(m->module->module, id, &overload, 1);
    LLVMTypeRef type = LLVMIntrinsicGetType(m->module->context, id, &overload, 1);
    return LLVMBuildCall2(m->b, type, f, arguments, (unsigned)n, "");
}

LLVMValueRef cg_intrinsic_of_two(struct machine *m, const char *name, LLVMTypeRef a,
                                 LLVMTypeRef b, int n, LLVMValueRef *arguments)
{
    LLVMTypeRef types[] = {a, b};
    unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    LLVMValueRef f = LLVMGetIntrinsicDeclaration(m->module->module, id, types, 2);
    LLVMTypeRef type = LLVMIntrinsicGetType(m->module->context, id, types, 2);
    return LLVMBuildCall2(m->b, type, f, arguments, (unsigned)n, "");
}

LLVMValueRef cg_sequence(const struct cg_module *m, LLVMTypeRef lane, unsigned lanes,
                         int64_t first, int64_t step)
{
    (void)m;
    LLVMValueRef all[256];
    for (unsigned i = 0; i < lanes; i++)
        all[i] = LLVMConstInt(lane, (unsigned long long)(first + step * (int64_t)i), 1);
    return lanes == 1 ? all[0] : LLVMConstVector(all, lanes);
}

LLVMValueRef cg_extract(struct machine *m, LLVMValueRef v, unsigned first, unsigned count)
{
    LLVMTypeRef i32 = m->module->i32;
    if (count == 1)
        return LLVMBuildExtractElement(m->b, v, LLVMConstInt(i32, first, 0), "");
    LLVMValueRef mask = cg_sequence(m->module, i32, count, first, 1);
    return LLVMBuildShuffleVector(m->b, v, LLVMGetPoison(LLVMTypeOf(v)), mask, "");
}
