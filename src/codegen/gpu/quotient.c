// SPDX-License-Identifier: Apache-2.0
// Quotients and square roots of f32s, rounded correctly: an approximation and corrections that are
// exact while nothing comes near the ends of the range.  Beside several lanes of that there is one
// branch, which an instruction of PTX that does the same would have for each.
#include "codegen/gpu/quotient.h"
#include "codegen/elementary.h"
#include "codegen/emit.h"
#include "codegen/op_function.h"
#include "codegen/types.h"

#include <stdio.h>
#include <string.h>

#define FMA(a, b, c) cg_intrinsic(m, "llvm.fma", type, 3, (LLVMValueRef[]){a, b, c})

static LLVMValueRef approximate(struct machine *m, const char *name, LLVMValueRef x)
{
    unsigned id = LLVMLookupIntrinsicID(name, strlen(name)), lanes = cg_lanes_of(x);
    LLVMValueRef f = LLVMGetIntrinsicDeclaration(m->module->module, id, NULL, 0);
    LLVMTypeRef type = LLVMIntrinsicGetType(m->module->context, id, NULL, 0);
    if (lanes == 1)
        return LLVMBuildCall2(m->b, type, f, &x, 1, "");
    LLVMValueRef all = LLVMGetPoison(LLVMTypeOf(x));
    for (unsigned i = 0; i < lanes; i++) {
        LLVMValueRef lane = cg_extract(m, x, i, 1);
        lane = LLVMBuildCall2(m->b, type, f, &lane, 1, "");
        all = LLVMBuildInsertElement(m->b, all, lane, LLVMConstInt(m->module->i32, i, 0), "");
    }
    return all;
}

static LLVMValueRef splat_number(struct machine *m, double x, LLVMValueRef like)
{
    return cg_splat(m, LLVMConstReal(m->module->f32, x), cg_lanes_of(like));
}

static LLVMValueRef corrected_inverse(struct machine *m, LLVMValueRef y)
{
    LLVMTypeRef type = LLVMTypeOf(y);
    LLVMValueRef r = approximate(m, "llvm.nvvm.rcp.approx.ftz.f", y);
    return FMA(FMA(LLVMBuildFNeg(m->b, y, ""), r, splat_number(m, 1, y)), r, r);
}

static LLVMValueRef correct(struct machine *m, LLVMValueRef x, LLVMValueRef y, LLVMValueRef r,
                            LLVMValueRef q)
{
    LLVMTypeRef type = LLVMTypeOf(x);
    return FMA(FMA(LLVMBuildFNeg(m->b, y, ""), q, x), r, q);
}

// Two corrections: rounded correctly where nothing underflows, and where y is 1 all of it is exact.
LLVMValueRef gpu_quotient_of_unit(struct machine *m, LLVMValueRef x, LLVMValueRef y)
{
    LLVMValueRef r = corrected_inverse(m, y), q = LLVMBuildFMul(m->b, x, r, "");
    return correct(m, x, y, r, correct(m, x, y, r, q));
}

static LLVMValueRef magnitude(struct machine *m, LLVMValueRef x)
{
    return cg_intrinsic(m, "llvm.fabs", LLVMTypeOf(x), 1, (LLVMValueRef[]){x});
}

// So written that NaN is outside.
static LLVMValueRef is_below(struct machine *m, LLVMValueRef x, double low)
{
    return LLVMBuildFCmp(m->b, LLVMRealULT, magnitude(m, x), splat_number(m, low, x), "");
}

static LLVMValueRef is_outside(struct machine *m, LLVMValueRef x, double low, double high)
{
    LLVMValueRef above =
        LLVMBuildFCmp(m->b, LLVMRealUGT, magnitude(m, x), splat_number(m, high, x), "");
    return LLVMBuildOr(m->b, is_below(m, x, low), above, "");
}

// One lane has no more than the branch that it would have anyway, but for a run that has another.
static bool is_with_branch(struct machine *m, LLVMValueRef x)
{
    bool is_quick =
        !LLVMIsConstant(x) && (cg_lanes_of(x) > 1 || (m->ranges && !m->ranges->is_redo));
    return is_quick && cg_lane_of(x) == m->module->f32;
}

// Whether the last operand is of a run that is done again for what is out of range (ranges.c).
static bool is_again(const struct machine *m, LLVMValueRef x)
{
    bool is_float = cg_lane_of(x) == m->module->f32 || cg_lane_of(x) == m->module->f64;
    return m->ranges && m->ranges->is_redo && is_float && !LLVMIsConstant(x);
}

LLVMValueRef gpu_divide_in_range(struct machine *m, LLVMValueRef x, LLVMValueRef y)
{
    LLVMValueRef r = corrected_inverse(m, y);
    return correct(m, x, y, r, LLVMBuildFMul(m->b, x, r, ""));
}

// Of one or two operands, rounded correctly wherever they are: for blocks that are rarely entered.
// The instruction of PTX becomes dozens at each of its uses; those of a function are there once.
static LLVMValueRef anywhere(struct machine *m, unsigned n, LLVMValueRef *in)
{
    LLVMTypeRef type = LLVMTypeOf(in[0]);
    if (m->is_crowded)
        return n == 1 ? cg_intrinsic(m, "llvm.sqrt", type, 1, in)
                      : LLVMBuildFDiv(m->b, in[0], in[1], "");
    LLVMTypeRef f_type = LLVMFunctionType(type, (LLVMTypeRef[]){type, type}, n, 0);
    char name[32];
    snprintf(name, sizeof name, "jot_%s_f%dx%u", n == 1 ? "sqrt" : "div",
             cg_lane_of(in[0]) == m->module->f32 ? 32 : 64, cg_lanes_of(in[0]));
    LLVMValueRef f = LLVMGetNamedFunction(m->module->module, name);
    if (!f) {
        f = cg_function_apart(m->module, name, f_type);
        LLVMContextRef c = m->module->context;
        struct machine inner = {
            .module = m->module, .b = LLVMCreateBuilderInContext(c), .is_crowded = true};
        LLVMPositionBuilderAtEnd(inner.b, LLVMAppendBasicBlockInContext(c, f, ""));
        LLVMValueRef own[2] = {LLVMGetParam(f, 0), n == 1 ? NULL : LLVMGetParam(f, 1)};
        LLVMBuildRet(inner.b, anywhere(&inner, n, own));
        LLVMDisposeBuilder(inner.b);
    }
    return cg_call(m, f_type, f, in);
}

static LLVMValueRef divide(struct machine *m, LLVMValueRef x, LLVMValueRef y, bool is_fraction)
{
    LLVMValueRef in[] = {x, y};
    if (!is_with_branch(m, x) && !is_with_branch(m, y))
        return is_again(m, y) ? anywhere(m, 2, in) : LLVMBuildFDiv(m->b, x, y, "");
    LLVMValueRef q = gpu_divide_in_range(m, x, y);
    LLVMValueRef outside =
        is_fraction ? is_below(m, x, 0x1p-60) : is_outside(m, x, 0x1p-60, 0x1p60);
    outside = LLVMBuildOr(m->b, outside, is_outside(m, y, 0x1p-60, 0x1p60), "");
    if (m->ranges && !m->ranges->is_redo) {
        if (!m->ranges->is_known)
            cg_outside(m, outside);
        return q;
    }
    LLVMBasicBlockRef from, warm = cg_cold_open(m, cg_any_lane(m, outside), &from);
    return cg_cold_close(m, warm, from, q, anywhere(m, 2, in));
}

LLVMValueRef gpu_divide(struct machine *m, LLVMValueRef x, LLVMValueRef y)
{
    return divide(m, x, y, false);
}

LLVMValueRef gpu_divide_fraction(struct machine *m, LLVMValueRef x, LLVMValueRef y)
{
    return divide(m, x, y, true);
}

LLVMValueRef gpu_sqrt(struct machine *m, LLVMValueRef x)
{
    LLVMTypeRef type = LLVMTypeOf(x);
    if (!is_with_branch(m, x))
        return is_again(m, x) ? anywhere(m, 1, &x) : cg_intrinsic(m, "llvm.sqrt", type, 1, &x);
    LLVMValueRef r = approximate(m, "llvm.nvvm.rsqrt.approx.ftz.f", x);
    LLVMValueRef root = LLVMBuildFMul(m->b, x, r, "");
    LLVMValueRef half = LLVMBuildFMul(m->b, r, splat_number(m, 0.5, x), "");
    root = FMA(FMA(LLVMBuildFNeg(m->b, root, ""), root, x), half, root);
    // Negative numbers are outside, too.
    LLVMValueRef below = LLVMBuildFCmp(m->b, LLVMRealULT, x, splat_number(m, 0x1p-100, x), "");
    LLVMValueRef above = LLVMBuildFCmp(m->b, LLVMRealUGT, x, splat_number(m, 0x1p120, x), "");
    if (m->ranges && !m->ranges->is_redo) {
        if (!m->ranges->is_known) {
            cg_outside(m, below);
            cg_outside(m, above);
        }
        return root;
    }
    LLVMValueRef outside = LLVMBuildOr(m->b, below, above, "");
    LLVMBasicBlockRef from, warm = cg_cold_open(m, cg_any_lane(m, outside), &from);
    return cg_cold_close(m, warm, from, root, anywhere(m, 1, &x));
}
