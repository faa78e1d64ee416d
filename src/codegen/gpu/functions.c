// SPDX-License-Identifier: Apache-2.0
// What a GPU has no library for: reduction modulo pi/2 (base/math/reduce.c) and the remainder of
// floating-point numbers, as functions of the module that are kept out of line.
#include "codegen/gpu/functions.h"
#include "codegen/elementary.h"
#include "codegen/emit.h"
#include "codegen/op_function.h"
#include "codegen/types.h"

#include "base/math/reduce.h"

#include <string.h>

struct writer {
    struct machine m;
    LLVMTypeRef i64, i128;
};

static LLVMValueRef word(const struct writer *w, uint64_t x)
{
    return LLVMConstInt(w->i64, x, 0);
}

static LLVMValueRef wide(const struct writer *w, LLVMValueRef x)
{
    return LLVMBuildZExt(w->m.b, x, w->i128, "");
}

static LLVMValueRef product(const struct writer *w, LLVMValueRef x, LLVMValueRef y)
{
    return LLVMBuildMul(w->m.b, wide(w, x), wide(w, y), "");
}

static LLVMValueRef high(const struct writer *w, LLVMValueRef x)
{
    return LLVMBuildTrunc(w->m.b, LLVMBuildLShr(w->m.b, x, LLVMConstInt(w->i128, 64, 0), ""),
                          w->i64, "");
}

static LLVMValueRef low(const struct writer *w, LLVMValueRef x)
{
    return LLVMBuildTrunc(w->m.b, x, w->i64, "");
}

static LLVMValueRef leading_zeros(struct machine *m, LLVMValueRef x)
{
    LLVMValueRef arguments[] = {x, LLVMConstInt(m->module->i1, 0, 0)};
    return cg_intrinsic(m, "llvm.ctlz", LLVMTypeOf(x), 2, arguments);
}

// (u64)(x << n | y >> (64 - n)), n below 64.
static LLVMValueRef shift_pair(const struct writer *w, LLVMValueRef x, LLVMValueRef y,
                               LLVMValueRef n)
{
    LLVMValueRef arguments[] = {x, y, n};
    struct machine m = w->m;
    return cg_intrinsic(&m, "llvm.fshl", w->i64, 3, arguments);
}

static LLVMValueRef table(struct cg_module *m)
{
    static const char name[] = "jot_two_over_pi";
    LLVMValueRef all = LLVMGetNamedGlobal(m->module, name), words[MATH_TWO_OVER_PI];
    if (all)
        return all;
    for (size_t i = 0; i < MATH_TWO_OVER_PI; i++)
        words[i] = LLVMConstInt(m->i64, math_two_over_pi[i], 0);
    LLVMValueRef value = LLVMConstArray2(m->i64, words, MATH_TWO_OVER_PI);
    all = LLVMAddGlobalInAddressSpace(m->module, LLVMTypeOf(value), name, 1);
    LLVMSetInitializer(all, value);
    LLVMSetGlobalConstant(all, true);
    LLVMSetLinkage(all, LLVMInternalLinkage);
    return all;
}

// 64 bits of 2/pi, the first of which is bit `position` + 1.
static LLVMValueRef digits(const struct writer *w, LLVMValueRef position, int64_t more)
{
    LLVMBuilderRef b = w->m.b;
    LLVMValueRef from = LLVMBuildAdd(b, position, word(w, (uint64_t)(more + 64)), "");
    LLVMValueRef at = LLVMBuildLShr(b, from, word(w, 6), ""), words[2];
    for (int i = 0; i < 2; i++) {
        LLVMValueRef next = LLVMBuildAdd(b, at, word(w, (uint64_t)i), "");
        LLVMValueRef address = LLVMBuildGEP2(b, w->i64, table(w->m.module), &next, 1, "");
        words[i] = LLVMBuildLoad2(b, w->i64, address, "");
    }
    return shift_pair(w, words[0], words[1], LLVMBuildAnd(b, from, word(w, 63), ""));
}

// Rounded to the nearest double, of a number whose last bit stands for all below it.
static LLVMValueRef to_double(const struct writer *w, LLVMValueRef x)
{
    return LLVMBuildUIToFP(w->m.b, x, w->m.module->f64, "");
}

static LLVMValueRef sticky(const struct writer *w, LLVMValueRef x, LLVMValueRef below)
{
    LLVMBuilderRef b = w->m.b;
    LLVMValueRef some = LLVMBuildICmp(b, LLVMIntNE, below, word(w, 0), "");
    return LLVMBuildOr(b, x, LLVMBuildZExt(b, some, w->i64, ""), "");
}

static LLVMValueRef power_of_two(const struct writer *w, LLVMValueRef exponent)
{
    LLVMBuilderRef b = w->m.b;
    LLVMValueRef biased = LLVMBuildAdd(b, exponent, word(w, 1023), "");
    return LLVMBuildBitCast(b, LLVMBuildShl(b, biased, word(w, 52), ""), w->m.module->f64, "");
}

// The nearest double to a signed number below 2^76.
static LLVMValueRef signed_to_double(const struct writer *w, LLVMValueRef x)
{
    LLVMBuilderRef b = w->m.b;
    LLVMValueRef zero = LLVMConstNull(w->i128);
    LLVMValueRef negative = LLVMBuildICmp(b, LLVMIntSLT, x, zero, "");
    LLVMValueRef size = LLVMBuildSelect(b, negative, LLVMBuildNeg(b, x, ""), x, "");
    // 16 bits further down all of it fits.
    LLVMValueRef top =
        LLVMBuildTrunc(b, LLVMBuildLShr(b, size, LLVMConstInt(w->i128, 16, 0), ""), w->i64, "");
    LLVMValueRef rest = LLVMBuildAnd(b, low(w, size), word(w, 0xffff), "");
    LLVMValueRef large = to_double(w, sticky(w, top, rest));
    large = LLVMBuildFMul(b, large, LLVMConstReal(w->m.module->f64, 65536), "");
    LLVMValueRef is_small = LLVMBuildICmp(b, LLVMIntEQ, high(w, size), word(w, 0), "");
    LLVMValueRef y = LLVMBuildSelect(b, is_small, to_double(w, low(w, size)), large, "");
    return LLVMBuildSelect(b, negative, LLVMBuildFNeg(b, y, ""), y, "");
}

// math_reduce, step by step.
static void write_reduce(struct machine *m, LLVMValueRef x, LLVMValueRef *out_hi,
                         LLVMValueRef *out_lo, LLVMValueRef *out_quadrant)
{
    LLVMBuilderRef b = m->b;
    struct writer w = {*m, m->module->i64, LLVMIntTypeInContext(m->module->context, 128)};
    LLVMValueRef bits = LLVMBuildBitCast(b, x, w.i64, "");
    LLVMValueRef significand = LLVMBuildAnd(b, bits, word(&w, 0x000fffffffffffff), "");
    significand = LLVMBuildOr(b, significand, word(&w, 0x0010000000000000), "");
    LLVMValueRef exponent = LLVMBuildLShr(b, bits, word(&w, 52), "");
    exponent = LLVMBuildAnd(b, exponent, word(&w, 0x7ff), "");
    LLVMValueRef position = LLVMBuildSub(b, exponent, word(&w, 1023 + 52 + 2), "");

    LLVMValueRef p = product(&w, significand, digits(&w, position, 128));
    LLVMValueRef middle = product(&w, significand, digits(&w, position, 64));
    middle = LLVMBuildAdd(b, middle, wide(&w, high(&w, p)), "");
    LLVMValueRef top = LLVMBuildMul(b, significand, digits(&w, position, 0), "");
    top = LLVMBuildAdd(b, top, high(&w, middle), "");
    LLVMValueRef below = low(&w, p), mid = low(&w, middle);

    LLVMValueRef n = LLVMBuildAdd(b, top, word(&w, UINT64_C(1) << 61), "");
    n = LLVMBuildLShr(b, n, word(&w, 62), "");
    LLVMValueRef upper = shift_pair(&w, top, mid, word(&w, 2));
    LLVMValueRef lower = shift_pair(&w, mid, below, word(&w, 2));
    below = LLVMBuildShl(b, below, word(&w, 2), "");
    LLVMValueRef fraction = LLVMBuildShl(b, wide(&w, upper), LLVMConstInt(w.i128, 64, 0), "");
    fraction = LLVMBuildOr(b, fraction, wide(&w, lower), "");
    LLVMValueRef negative = LLVMBuildICmp(b, LLVMIntSLT, upper, word(&w, 0), "");
    LLVMValueRef borrow = LLVMBuildICmp(b, LLVMIntNE, below, word(&w, 0), "");
    LLVMValueRef flipped = LLVMBuildSub(b, LLVMBuildNeg(b, fraction, ""),
                                        LLVMBuildZExt(b, borrow, w.i128, ""), "");
    fraction = LLVMBuildSelect(b, negative, flipped, fraction, "");
    below = LLVMBuildSelect(b, negative, LLVMBuildNeg(b, below, ""), below, "");

    upper = high(&w, fraction);
    lower = low(&w, fraction);
    LLVMValueRef shift = leading_zeros(m, upper);
    upper = shift_pair(&w, upper, lower, shift);
    lower = shift_pair(&w, lower, below, shift);
    LLVMValueRef half[] = {word(&w, 0xc90fdaa22168c234), word(&w, 0xc4c6628b80dc1cd1)};
    LLVMValueRef all = product(&w, upper, half[0]);
    all = LLVMBuildAdd(b, all, wide(&w, high(&w, product(&w, upper, half[1]))), "");
    all = LLVMBuildAdd(b, all, wide(&w, high(&w, product(&w, lower, half[0]))), "");

    // hi is a multiple of 2^64, for all has more than 117 bits.
    LLVMTypeRef f64 = m->module->f64;
    LLVMValueRef leading = to_double(&w, sticky(&w, high(&w, all), low(&w, all)));
    LLVMValueRef whole = LLVMBuildFPToUI(b, leading, w.i64, "");
    whole = LLVMBuildShl(b, wide(&w, whole), LLVMConstInt(w.i128, 64, 0), "");
    LLVMValueRef hi = LLVMBuildFMul(b, leading, LLVMConstReal(f64, 0x1p64), "");
    LLVMValueRef lo = signed_to_double(&w, LLVMBuildSub(b, all, whole, ""));

    LLVMValueRef is_below = LLVMBuildICmp(b, LLVMIntSLT, bits, word(&w, 0), "");
    LLVMValueRef flip = LLVMBuildXor(b, negative, is_below, "");
    LLVMValueRef scale = power_of_two(&w, LLVMBuildSub(b, word(&w, (uint64_t)-127), shift, ""));
    scale = LLVMBuildSelect(b, flip, LLVMBuildFNeg(b, scale, ""), scale, "");
    *out_hi = LLVMBuildFMul(b, hi, scale, "");
    *out_lo = LLVMBuildFMul(b, lo, scale, "");
    n = LLVMBuildSelect(b, is_below, LLVMBuildNeg(b, n, ""), n, "");
    n = LLVMBuildAnd(b, n, word(&w, 3), "");
    *out_quadrant = LLVMBuildTrunc(b, n, m->module->i32, "");
}

// A function of the module, for it is long and the sine, the cosine and the tangent need the same.
void gpu_reduce(struct machine *m, LLVMValueRef x, LLVMValueRef *out_hi, LLVMValueRef *out_lo,
                LLVMValueRef *out_quadrant)
{
    static const char name[] = "jot_reduce";
    LLVMContextRef c = m->module->context;
    LLVMTypeRef f64 = m->module->f64;
    LLVMTypeRef parts[] = {f64, f64, m->module->i32};
    LLVMTypeRef all = LLVMStructTypeInContext(c, parts, 3, 0);
    LLVMTypeRef type = LLVMFunctionType(all, &f64, 1, 0);
    LLVMValueRef f = LLVMGetNamedFunction(m->module->module, name);
    if (!f) {
        f = cg_function_apart(m->module, name, type);
        struct machine inner = {.module = m->module, .b = LLVMCreateBuilderInContext(c)};
        LLVMPositionBuilderAtEnd(inner.b, LLVMAppendBasicBlockInContext(c, f, ""));
        LLVMValueRef v[3], r = LLVMGetPoison(all);
        write_reduce(&inner, LLVMGetParam(f, 0), &v[0], &v[1], &v[2]);
        for (unsigned i = 0; i < 3; i++)
            r = LLVMBuildInsertValue(inner.b, r, v[i], i, "");
        LLVMBuildRet(inner.b, r);
        LLVMDisposeBuilder(inner.b);
    }
    LLVMValueRef r = cg_call(m, type, f, &x);
    *out_hi = LLVMBuildExtractValue(m->b, r, 0, "");
    *out_lo = LLVMBuildExtractValue(m->b, r, 1, "");
    *out_quadrant = LLVMBuildExtractValue(m->b, r, 2, "");
}

// ---- The remainder, which is exact: the bits of x's significand from the top, less y's where
// it fits.

struct parts {
    LLVMTypeRef type;
    unsigned bits, fraction; // of the number, of its significand
};

static LLVMValueRef constant(const struct parts *p, uint64_t x)
{
    return LLVMConstInt(p->type, x, 0);
}

// A significand with its leading bit and an exponent, of a finite number other than 0.
static void normalise(struct machine *m, const struct parts *p, LLVMValueRef x,
                      LLVMValueRef *out_significand, LLVMValueRef *out_exponent)
{
    LLVMBuilderRef b = m->b;
    LLVMValueRef exponent = LLVMBuildLShr(b, x, constant(p, p->fraction), "");
    LLVMValueRef is_tiny = LLVMBuildICmp(b, LLVMIntEQ, exponent, constant(p, 0), "");
    LLVMValueRef shift =
        LLVMBuildSub(b, leading_zeros(m, x), constant(p, p->bits - 1 - p->fraction), "");
    LLVMValueRef one = constant(p, UINT64_C(1) << p->fraction);
    LLVMValueRef mask = constant(p, (UINT64_C(1) << p->fraction) - 1);
    LLVMValueRef plain = LLVMBuildOr(b, LLVMBuildAnd(b, x, mask, ""), one, "");
    LLVMValueRef tiny = LLVMBuildShl(b, x, shift, "");
    *out_significand = LLVMBuildSelect(b, is_tiny, tiny, plain, "");
    *out_exponent =
        LLVMBuildSelect(b, is_tiny, LLVMBuildSub(b, constant(p, 1), shift, ""), exponent, "");
}

static LLVMValueRef less_if_fits(LLVMBuilderRef b, const struct parts *p, LLVMValueRef x,
                                 LLVMValueRef y)
{
    LLVMValueRef rest = LLVMBuildSub(b, x, y, "");
    LLVMValueRef fits = LLVMBuildICmp(b, LLVMIntSGE, rest, constant(p, 0), "");
    return LLVMBuildSelect(b, fits, rest, x, "");
}

static void write_fmod(struct machine *m, LLVMValueRef f, LLVMTypeRef lane,
                       const struct parts *p)
{
    LLVMContextRef c = m->module->context;
    LLVMBuilderRef b = m->b;
    LLVMBasicBlockRef entry = LLVMAppendBasicBlockInContext(c, f, "");
    LLVMBasicBlockRef ready = LLVMAppendBasicBlockInContext(c, f, "");
    LLVMBasicBlockRef loop = LLVMAppendBasicBlockInContext(c, f, "");
    LLVMBasicBlockRef body = LLVMAppendBasicBlockInContext(c, f, "");
    LLVMBasicBlockRef done = LLVMAppendBasicBlockInContext(c, f, "");
    LLVMBasicBlockRef plain = LLVMAppendBasicBlockInContext(c, f, "");
    LLVMValueRef x = LLVMGetParam(f, 0), y = LLVMGetParam(f, 1), zero = constant(p, 0);
    LLVMPositionBuilderAtEnd(b, entry);
    LLVMValueRef low_mask = constant(p, (UINT64_C(1) << (p->bits - 1)) - 1);
    LLVMValueRef bits = LLVMBuildBitCast(b, x, p->type, "");
    LLVMValueRef sign = LLVMBuildAnd(b, bits, constant(p, UINT64_C(1) << (p->bits - 1)), "");
    LLVMValueRef ax = LLVMBuildAnd(b, bits, low_mask, "");
    LLVMValueRef ay = LLVMBuildAnd(b, LLVMBuildBitCast(b, y, p->type, ""), low_mask, "");
    LLVMValueRef infinite =
        constant(p, ((UINT64_C(1) << (p->bits - 1 - p->fraction)) - 1) << p->fraction);
    LLVMValueRef none =
        LLVMBuildOr(b, LLVMBuildICmp(b, LLVMIntEQ, ay, zero, ""),
                    LLVMBuildOr(b, LLVMBuildICmp(b, LLVMIntUGE, ax, infinite, ""),
                                LLVMBuildICmp(b, LLVMIntUGT, ay, infinite, ""), ""),
                    "");
    LLVMValueRef is_less = LLVMBuildICmp(b, LLVMIntULT, ax, ay, "");
    LLVMValueRef nan = LLVMBuildFDiv(b, LLVMConstNull(lane), LLVMConstNull(lane), "");
    LLVMValueRef known = LLVMBuildSelect(b, none, nan, x, "");
    LLVMBuildCondBr(b, LLVMBuildOr(b, none, is_less, ""), plain, ready);

    LLVMPositionBuilderAtEnd(b, ready);
    LLVMValueRef mx, my, ex, ey;
    normalise(m, p, ax, &mx, &ex);
    normalise(m, p, ay, &my, &ey);
    LLVMBuildBr(b, loop);
    LLVMPositionBuilderAtEnd(b, loop);
    LLVMValueRef at = LLVMBuildPhi(b, p->type, ""), exponent = LLVMBuildPhi(b, p->type, "");
    LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntSGT, exponent, ey, ""), body, done);
    LLVMPositionBuilderAtEnd(b, body);
    LLVMValueRef next = LLVMBuildShl(b, less_if_fits(b, p, at, my), constant(p, 1), "");
    LLVMValueRef lower = LLVMBuildSub(b, exponent, constant(p, 1), "");
    LLVMBuildBr(b, loop);
    LLVMAddIncoming(at, (LLVMValueRef[]){mx, next}, (LLVMBasicBlockRef[]){ready, body}, 2);
    LLVMAddIncoming(exponent, (LLVMValueRef[]){ex, lower}, (LLVMBasicBlockRef[]){ready, body},
                    2);

    LLVMPositionBuilderAtEnd(b, done);
    LLVMValueRef rest = less_if_fits(b, p, at, my);
    LLVMValueRef is_zero = LLVMBuildICmp(b, LLVMIntEQ, rest, zero, "");
    rest = LLVMBuildSelect(b, is_zero, constant(p, 1), rest, "");
    LLVMValueRef shift =
        LLVMBuildSub(b, leading_zeros(m, rest), constant(p, p->bits - 1 - p->fraction), "");
    rest = LLVMBuildShl(b, rest, shift, "");
    exponent = LLVMBuildSub(b, exponent, shift, "");
    LLVMValueRef one = constant(p, 1);
    LLVMValueRef normal =
        LLVMBuildAdd(b, LLVMBuildSub(b, rest, constant(p, UINT64_C(1) << p->fraction), ""),
                     LLVMBuildShl(b, exponent, constant(p, p->fraction), ""), "");
    LLVMValueRef is_normal = LLVMBuildICmp(b, LLVMIntSGT, exponent, zero, "");
    LLVMValueRef down =
        LLVMBuildSelect(b, is_normal, zero, LLVMBuildSub(b, one, exponent, ""), "");
    LLVMValueRef result =
        LLVMBuildSelect(b, is_normal, normal, LLVMBuildLShr(b, rest, down, ""), "");
    result = LLVMBuildSelect(b, is_zero, zero, result, "");
    LLVMBuildRet(b, LLVMBuildBitCast(b, LLVMBuildOr(b, result, sign, ""), lane, ""));
    LLVMPositionBuilderAtEnd(b, plain);
    LLVMBuildRet(b, known);
}

LLVMValueRef gpu_fmod(struct machine *m, LLVMValueRef x, LLVMValueRef y)
{
    unsigned lanes = cg_lanes_of(x);
    LLVMTypeRef lane = lanes > 1 ? LLVMGetElementType(LLVMTypeOf(x)) : LLVMTypeOf(x);
    bool is_wide = LLVMGetTypeKind(lane) == LLVMDoubleTypeKind;
    struct parts p = {is_wide ? m->module->i64 : m->module->i32, is_wide ? 64 : 32,
                      is_wide ? 52 : 23};
    const char *name = is_wide ? "jot_fmod_f64" : "jot_fmod_f32";
    LLVMTypeRef type = LLVMFunctionType(lane, (LLVMTypeRef[]){lane, lane}, 2, 0);
    LLVMValueRef f = LLVMGetNamedFunction(m->module->module, name);
    if (!f) {
        f = LLVMAddFunction(m->module->module, name, type);
        LLVMSetLinkage(f, LLVMInternalLinkage);
        struct machine inner = {.module = m->module,
                                .b = LLVMCreateBuilderInContext(m->module->context)};
        write_fmod(&inner, f, lane, &p);
        LLVMDisposeBuilder(inner.b);
    }
    LLVMValueRef all = LLVMGetPoison(LLVMTypeOf(x));
    for (unsigned i = 0; i < lanes; i++) {
        LLVMValueRef v[] = {lanes > 1 ? cg_extract(m, x, i, 1) : x,
                            lanes > 1 ? cg_extract(m, y, i, 1) : y};
        LLVMValueRef rest = cg_call(m, type, f, v);
        if (lanes == 1)
            return rest;
        all = LLVMBuildInsertElement(m->b, all, rest, LLVMConstInt(m->module->i32, i, 0), "");
    }
    return all;
}

// ---- Without a function

LLVMValueRef gpu_copysign(struct machine *m, LLVMValueRef x, LLVMValueRef sign)
{
    LLVMTypeRef type = LLVMTypeOf(x);
    unsigned lanes = cg_lanes_of(x);
    bool is_wide = cg_lane_of(x) == m->module->f64;
    LLVMTypeRef bits = is_wide ? m->module->i64 : m->module->i32;
    LLVMValueRef top =
        cg_splat(m, LLVMConstInt(bits, UINT64_C(1) << (is_wide ? 63 : 31), 0), lanes);
    bits = cg_with_lanes(bits, lanes);
    LLVMValueRef own = LLVMBuildBitCast(m->b, x, bits, "");
    own = LLVMBuildAnd(m->b, own, LLVMConstNot(top), "");
    sign = LLVMBuildAnd(m->b, LLVMBuildBitCast(m->b, sign, bits, ""), top, "");
    return LLVMBuildBitCast(m->b, LLVMBuildOr(m->b, own, sign, ""), type, "");
}

LLVMValueRef gpu_add_by_product(struct machine *m, LLVMValueRef i, LLVMValueRef j)
{
    static const char blocks[] =
        "llvm.nvvm.read.ptx.sreg.nctaid.y"; // grids are of one dimension
    if (cg_lane_of(i) != m->module->i32)
        return LLVMBuildAdd(m->b, i, j, "");
    unsigned id = LLVMLookupIntrinsicID(blocks, strlen(blocks));
    LLVMValueRef f = LLVMGetIntrinsicDeclaration(m->module->module, id, NULL, 0);
    LLVMTypeRef type = LLVMIntrinsicGetType(m->module->context, id, NULL, 0);
    LLVMValueRef one = LLVMBuildCall2(m->b, type, f, NULL, 0, "");
    one = cg_splat(m, one, cg_lanes_of(i));
    return LLVMBuildAdd(m->b, LLVMBuildMul(m->b, i, one, ""), j, "");
}
