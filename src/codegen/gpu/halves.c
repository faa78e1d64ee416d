// SPDX-License-Identifier: Apache-2.0
// Half types, two in a register: the GPU rounds two numbers of f32 at once, and adds and multiplies two of a half type.
//
// The results are those of f32 rounded once: f32 has more than twice the digits of a half type and two more, so that
// rounding a sum or a product twice is rounding it once.
#include "codegen/gpu/halves.h"
#include "codegen/emit.h"
#include "codegen/types.h"

#include <string.h>

enum { MOST_PAIRS = 32 };

// The registers of the lanes; the last one may be half empty.
struct pairs {
    LLVMValueRef at[MOST_PAIRS];
    unsigned n, lanes;
};

static unsigned pairs_for(unsigned lanes)
{
    return lanes == 1 ? 1 : lanes % 2 || lanes > 2 * MOST_PAIRS ? 0 : lanes / 2;
}

static LLVMValueRef lane_number(struct machine *m, unsigned i)
{
    return LLVMConstInt(m->module->i32, i, 0);
}

// x: i16s
static struct pairs pack(struct machine *m, LLVMValueRef x)
{
    struct pairs p = {.lanes = cg_lanes_of(x), .n = pairs_for(cg_lanes_of(x))};
    LLVMTypeRef i32 = m->module->i32;
    LLVMValueRef all = p.lanes == 1 ? LLVMBuildZExt(m->b, x, i32, "")
                                    : LLVMBuildBitCast(m->b, x, cg_with_lanes(i32, p.n), "");
    for (unsigned i = 0; i < p.n; i++)
        p.at[i] = p.n == 1 ? all : LLVMBuildExtractElement(m->b, all, lane_number(m, i), "");
    return p;
}

static LLVMValueRef unpack(struct machine *m, const struct pairs *p)
{
    LLVMTypeRef i16 = LLVMInt16TypeInContext(m->module->context);
    LLVMValueRef all = p->at[0];
    if (p->lanes == 1)
        return LLVMBuildTrunc(m->b, all, i16, "");
    if (p->n > 1)
        all = LLVMGetPoison(cg_with_lanes(m->module->i32, p->n));
    for (unsigned i = 0; i < p->n && p->n > 1; i++)
        all = LLVMBuildInsertElement(m->b, all, p->at[i], lane_number(m, i), "");
    return LLVMBuildBitCast(m->b, all, cg_with_lanes(i16, p->lanes), "");
}

// An intrinsic of so many operands, which gives a pair.
static LLVMValueRef call(struct machine *m, const char *name, unsigned n, LLVMValueRef *in)
{
    unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    LLVMValueRef f = LLVMGetIntrinsicDeclaration(m->module->module, id, NULL, 0);
    LLVMTypeRef type = LLVMIntrinsicGetType(m->module->context, id, NULL, 0);
    LLVMTypeRef of[3];
    LLVMGetParamTypes(type, of);
    for (unsigned i = 0; i < n; i++)
        in[i] = LLVMBuildBitCast(m->b, in[i], of[i], "");
    LLVMValueRef y = LLVMBuildCall2(m->b, type, f, in, n, "");
    return LLVMBuildBitCast(m->b, y, m->module->i32, "");
}

LLVMValueRef gpu_round_half(struct machine *m, LLVMValueRef x, jot_dtype d)
{
    struct pairs p = {.lanes = cg_lanes_of(x), .n = pairs_for(cg_lanes_of(x))};
    if (!p.n)
        return NULL;
    for (unsigned i = 0; i < p.n; i++) {
        LLVMValueRef low =
            p.lanes == 1 ? x : LLVMBuildExtractElement(m->b, x, lane_number(m, 2 * i), "");
        LLVMValueRef high =
            p.lanes == 1 ? LLVMConstNull(m->module->f32)
                         : LLVMBuildExtractElement(m->b, x, lane_number(m, 2 * i + 1), "");
        p.at[i] = call(m, d == JOT_BF16 ? "llvm.nvvm.ff2bf16x2.rn" : "llvm.nvvm.ff2f16x2.rn", 2,
                       (LLVMValueRef[]){high, low});
    }
    return unpack(m, &p);
}

LLVMValueRef gpu_widen_half(struct machine *m, LLVMValueRef x, jot_dtype d)
{
    unsigned lanes = cg_lanes_of(x);
    if (d == JOT_F16) {
        LLVMTypeRef half = cg_with_lanes(LLVMHalfTypeInContext(m->module->context), lanes);
        return LLVMBuildFPExt(m->b, LLVMBuildBitCast(m->b, x, half, ""),
                              cg_with_lanes(m->module->f32, lanes), "");
    }
    if (lanes == 1 || !pairs_for(lanes))
        return NULL;
    struct pairs p = pack(m, x);
    LLVMTypeRef i32 = m->module->i32, f32 = m->module->f32;
    LLVMValueRef y = LLVMGetPoison(cg_with_lanes(f32, lanes));
    LLVMValueRef upper = LLVMConstInt(i32, 0xffff0000, 0);
    for (unsigned i = 0; i < lanes; i++) {
        LLVMValueRef bits = i % 2 ? LLVMBuildAnd(m->b, p.at[i / 2], upper, "")
                                  : LLVMBuildShl(m->b, p.at[i / 2], lane_number(m, 16), "");
        LLVMValueRef lane = LLVMBuildBitCast(m->b, bits, f32, "");
        y = LLVMBuildInsertElement(m->b, y, lane, lane_number(m, i), "");
    }
    return y;
}

// The number, twice.
static LLVMValueRef twice(struct machine *m, jot_dtype d, float x)
{
    uint32_t bits = d == JOT_BF16 ? dtype_bf16_from_f32(x) : dtype_f16_from_f32(x);
    return LLVMConstInt(m->module->i32, bits << 16 | bits, 0);
}

LLVMValueRef gpu_half_op(struct machine *m, enum ir_op op, jot_dtype d, LLVMValueRef x,
                         LLVMValueRef y)
{
    bool is_known = op == IR_add || op == IR_sub || op == IR_mul || op == IR_neg;
    if (!is_known || !pairs_for(cg_lanes_of(x)))
        return NULL;
    struct pairs p = pack(m, x), q = {0};
    if (op != IR_neg)
        q = pack(m, y);
    for (unsigned i = 0; i < p.n; i++) {
        LLVMValueRef a = p.at[i], b = q.at[i];
        // x 1 + y, y -1 + x, x y + -0
        LLVMValueRef in[] = {op == IR_sub ? b : a,
                             op == IR_mul ? b : twice(m, d, op == IR_sub ? -1 : 1),
                             op == IR_mul   ? twice(m, d, -0.0f)
                             : op == IR_sub ? a
                                            : b};
        p.at[i] =
            op == IR_neg
                ? LLVMBuildXor(m->b, a, twice(m, d, -0.0f), "")
                : call(m, d == JOT_BF16 ? "llvm.nvvm.fma.rn.bf16x2" : "llvm.nvvm.fma.rn.f16x2",
                       3, in);
    }
    return unpack(m, &p);
}
