// SPDX-License-Identifier: Apache-2.0
// The elementary functions as LLVM code: the templates of base/math on LLVM values.
//
// Where the straight-line form of a function does not hold for some lane, a cold block computes the
// vector again through the scalar functions of the library, lane by lane.  Lanes in range have the
// same bits either way.
#include "codegen/elementary.h"
#include "codegen/emit.h"
#include "codegen/hooks.h"
#include "codegen/op_function.h"
#include "codegen/scalar.h"
#include "codegen/types.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define V LLVMValueRef
#define I LLVMValueRef
#define B LLVMValueRef
#define M_ struct machine *machine,
#define M_ARG machine,

static LLVMValueRef call3(struct machine *m, LLVMValueRef x, LLVMValueRef y, LLVMValueRef z)
{
    return cg_intrinsic(m, "llvm.fma", LLVMTypeOf(x), 3, (LLVMValueRef[]){x, y, z});
}

static LLVMValueRef with_sign(struct machine *m, LLVMValueRef x, LLVMValueRef s)
{
    return m->module->is_gpu ? m->module->hooks->copysign(m, x, s)
                             : cg_call2(m, "llvm.copysign", x, s);
}

static LLVMValueRef quotient_of_unit(struct machine *m, LLVMValueRef x, LLVMValueRef y)
{
    return m->module->is_gpu ? m->module->hooks->quotient_of_unit(m, x, y)
                             : LLVMBuildFDiv(m->b, x, y, "");
}

// Constants take their lane count from the first parameter, which every template calls x or a.
// The builder knows it: templates are entered through enter().
static _Thread_local unsigned lanes_now;

#define FLOAT_LANE (MATH_BITS == 32 ? machine->module->f32 : machine->module->f64)
#define INT_LANE (MATH_BITS == 32 ? machine->module->i32 : machine->module->i64)

#define K(c) cg_splat(machine, LLVMConstReal(FLOAT_LANE, (double)(c)), lanes_now)
#define KI(c) cg_splat(machine, LLVMConstInt(INT_LANE, (unsigned long long)(c), 1), lanes_now)
#define ADD(a, c) LLVMBuildFAdd(machine->b, a, c, "")
#define SUB(a, c) LLVMBuildFSub(machine->b, a, c, "")
#define MUL(a, c) LLVMBuildFMul(machine->b, a, c, "")
#define DIV(a, c) cg_divide(machine, a, c)
#define DIV_OF_UNIT(a, c) quotient_of_unit(machine, a, c)
#define SQRT(a) cg_sqrt(machine, a)
#define FMA(a, c, d) call3(machine, a, c, d)
#define NEG(a) LLVMBuildFNeg(machine->b, a, "")
#define ABS(a) cg_call1(machine, "llvm.fabs", a)
#define COPYSIGN(a, s) with_sign(machine, a, s)
#define RINT(a) cg_call1(machine, "llvm.rint", a)
#define LT(a, c) LLVMBuildFCmp(machine->b, LLVMRealOLT, a, c, "")
#define LE(a, c) LLVMBuildFCmp(machine->b, LLVMRealOLE, a, c, "")
#define GT(a, c) LLVMBuildFCmp(machine->b, LLVMRealOGT, a, c, "")
#define GE(a, c) LLVMBuildFCmp(machine->b, LLVMRealOGE, a, c, "")
#define EQ(a, c) LLVMBuildFCmp(machine->b, LLVMRealOEQ, a, c, "")
#define NE(a, c) LLVMBuildFCmp(machine->b, LLVMRealUNE, a, c, "")
#define BAND(a, c) LLVMBuildAnd(machine->b, a, c, "")
#define BOR(a, c) LLVMBuildOr(machine->b, a, c, "")
#define BNOT(a) LLVMBuildNot(machine->b, a, "")
#define SELECT(p, x, y) LLVMBuildSelect(machine->b, p, x, y, "")
#define SELECTI(p, x, y) LLVMBuildSelect(machine->b, p, x, y, "")
#define BITS(a) LLVMBuildBitCast(machine->b, a, cg_with_lanes(INT_LANE, lanes_now), "")
#define FLOAT_OF_BITS(i)                                                                       \
    LLVMBuildBitCast(machine->b, i, cg_with_lanes(FLOAT_LANE, lanes_now), "")
#define IADD(i, j) LLVMBuildAdd(machine->b, i, j, "")
#define ISUB(i, j) LLVMBuildSub(machine->b, i, j, "")
#define IAND(i, j) LLVMBuildAnd(machine->b, i, j, "")
#define IOR(i, j) LLVMBuildOr(machine->b, i, j, "")
#define IXOR(i, j) LLVMBuildXor(machine->b, i, j, "")
#define ISHL(i, n) LLVMBuildShl(machine->b, i, KI(n), "")
#define IUSHR(i, n) LLVMBuildLShr(machine->b, i, KI(n), "")
#define ILT(i, j) LLVMBuildICmp(machine->b, LLVMIntSLT, i, j, "")
#define IEQ(i, j) LLVMBuildICmp(machine->b, LLVMIntEQ, i, j, "")
#define INE(i, j) LLVMBuildICmp(machine->b, LLVMIntNE, i, j, "")

#define MATH_BITS 32
#include "base/math/elementary.inc"
#undef MATH_BITS
#define MATH_BITS 64
#include "base/math/elementary.inc"
#undef MATH_BITS

typedef LLVMValueRef unary(struct machine *m, LLVMValueRef x);
typedef LLVMValueRef binary(struct machine *m, LLVMValueRef x, LLVMValueRef y);

struct form {
    const char *name;
    unary *unary[2]; // by width: 32, 64
    binary *binary[2];
    unary *out_of_range[2]; // NULL: total
    LLVMValueRef (*in_quadrant_32)(struct machine *m, struct pair_32 r, LLVMValueRef quadrant);
    LLVMValueRef (*in_quadrant_64)(struct machine *m, struct pair_64 r, LLVMValueRef quadrant);
};

#define ARITY_1(name) .unary = {name##_32, name##_64}
#define ARITY_2(name) .binary = {name##_32, name##_64}
#define RANGE_TOTAL(name) .out_of_range = {NULL, NULL}
#define RANGE_RANGED(name)                                                                     \
    .out_of_range = {name##_out_of_range_32, name##_out_of_range_64},                          \
    .in_quadrant_32 = name##_in_quadrant_32, .in_quadrant_64 = name##_in_quadrant_64

static const struct form forms[] = {
#define MATH(name, arity, range) {#name, ARITY_##arity(name), RANGE_##range(name)},
#include "base/math/math.def"
#undef MATH
};

static LLVMValueRef scalar_function(struct machine *m, const char *name, bool wide, int arity,
                                    LLVMTypeRef *out_type)
{
    char symbol[64];
    snprintf(symbol, sizeof symbol, "math_%s_%s", name, wide ? "f64" : "f32");
    LLVMTypeRef lane = wide ? m->module->f64 : m->module->f32;
    *out_type = LLVMFunctionType(lane, (LLVMTypeRef[]){lane, lane}, (unsigned)arity, 0);
    LLVMValueRef f = LLVMGetNamedFunction(m->module->module, symbol);
    return f ? f : LLVMAddFunction(m->module->module, symbol, *out_type);
}

#define RESULT_SLOT "result"
#define MOST_OPERANDS 4

static bool is_result_slot(LLVMValueRef instruction, LLVMTypeRef type)
{
    size_t size;
    return LLVMGetAllocatedType(instruction) == type &&
           !strncmp(LLVMGetValueName2(instruction, &size), RESULT_SLOT, strlen(RESULT_SLOT));
}

// Memory for what a function gives, in the frame of the function that is being built: one for all of a
// type.
static LLVMValueRef result_slot(struct machine *m, LLVMTypeRef type)
{
    LLVMValueRef f = LLVMGetBasicBlockParent(LLVMGetInsertBlock(m->b));
    LLVMValueRef first = LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(f));
    for (LLVMValueRef i = first; i && LLVMIsAAllocaInst(i); i = LLVMGetNextInstruction(i))
        if (is_result_slot(i, type))
            return i;
    LLVMBuilderRef entry = LLVMCreateBuilderInContext(m->module->context);
    LLVMPositionBuilderBefore(entry, first);
    LLVMValueRef slot = LLVMBuildAlloca(entry, type, RESULT_SLOT);
    LLVMDisposeBuilder(entry);
    return slot;
}

// The function that leaves the result of f where its first parameter says.
static LLVMValueRef by_memory(struct cg_module *m, LLVMTypeRef type, LLVMValueRef f)
{
    size_t length;
    char symbol[128];
    snprintf(symbol, sizeof symbol, "%s_by_memory", LLVMGetValueName2(f, &length));
    LLVMValueRef g = LLVMGetNamedFunction(m->module, symbol), in[MOST_OPERANDS + 1];
    if (g)
        return g;
    unsigned n = LLVMCountParamTypes(type);
    LLVMTypeRef types[MOST_OPERANDS + 1] = {m->ptr};
    LLVMGetParamTypes(type, types + 1);
    g = cg_function_apart(m, symbol,
                          LLVMFunctionType(LLVMVoidTypeInContext(m->context), types, n + 1, 0));
    unsigned kind = LLVMGetEnumAttributeKindForName("sret", 4);
    LLVMAddAttributeAtIndex(g, 1,
                            LLVMCreateTypeAttribute(m->context, kind, LLVMGetReturnType(type)));
    LLVMGetParams(g, in);
    LLVMBuilderRef b = LLVMCreateBuilderInContext(m->context);
    LLVMPositionBuilderAtEnd(b, LLVMAppendBasicBlockInContext(m->context, g, ""));
    LLVMBuildStore(b, LLVMBuildCall2(b, type, f, in + 1, n, ""), in[0]);
    LLVMBuildRetVoid(b);
    LLVMDisposeBuilder(b);
    return g;
}

LLVMValueRef cg_call(struct machine *m, LLVMTypeRef type, LLVMValueRef f,
                     LLVMValueRef *arguments)
{
    unsigned n = LLVMCountParamTypes(type);
    if (!m->is_long)
        return LLVMBuildCall2(m->b, type, f, arguments, n, "");
    LLVMValueRef g = by_memory(m->module, type, f), in[MOST_OPERANDS + 1];
    LLVMTypeRef result = LLVMGetReturnType(type);
    in[0] = result_slot(m, result);
    memcpy(in + 1, arguments, n * sizeof *in);
    LLVMBuildCall2(m->b, LLVMGlobalGetValueType(g), g, in, n + 1, "");
    return LLVMBuildLoad2(m->b, result, in[0], "");
}

// A scalar function of all lanes.
static LLVMValueRef by_lane(struct machine *m, LLVMValueRef f, LLVMTypeRef type, LLVMValueRef x)
{
    unsigned lanes = cg_lanes_of(x);
    if (lanes == 1)
        return cg_call(m, type, f, &x);
    LLVMValueRef all = LLVMGetPoison(LLVMTypeOf(x));
    for (unsigned i = 0; i < lanes; i++) {
        LLVMValueRef lane = cg_extract(m, x, i, 1);
        LLVMValueRef y = cg_call(m, type, f, &lane);
        all = LLVMBuildInsertElement(m->b, all, y, LLVMConstInt(m->module->i32, i, 0), "");
    }
    return all;
}

static LLVMValueRef call_lane_by_lane(struct machine *m, const char *name, bool wide,
                                      LLVMValueRef x)
{
    LLVMTypeRef type;
    LLVMValueRef f = scalar_function(m, name, wide, 1, &type);
    return by_lane(m, f, type, x);
}

// A function of the module that does a whole vector through the scalar function, kept out of line.
static LLVMValueRef cold_function(struct machine *m, const char *name, bool wide,
                                  LLVMTypeRef vector, LLVMTypeRef *out_type)
{
    char symbol[64];
    snprintf(symbol, sizeof symbol, "cold_%s_%s_%u", name, wide ? "f64" : "f32",
             LLVMGetVectorSize(vector));
    // By pointer: the vector is wider than what registers pass.
    *out_type = LLVMFunctionType(LLVMVoidTypeInContext(m->module->context),
                                 (LLVMTypeRef[]){m->module->ptr}, 1, 0);
    LLVMValueRef f = LLVMGetNamedFunction(m->module->module, symbol);
    if (f)
        return f;
    f = LLVMAddFunction(m->module->module, symbol, *out_type);
    LLVMSetLinkage(f, LLVMInternalLinkage);
    LLVMBasicBlockRef entry = LLVMAppendBasicBlockInContext(m->module->context, f, "");
    LLVMBasicBlockRef loop = LLVMAppendBasicBlockInContext(m->module->context, f, "");
    LLVMBasicBlockRef done = LLVMAppendBasicBlockInContext(m->module->context, f, "");
    LLVMBuilderRef b = LLVMCreateBuilderInContext(m->module->context);
    struct machine inner = {.module = m->module, .b = b};
    LLVMPositionBuilderAtEnd(b, entry);
    LLVMBuildBr(b, loop);
    LLVMPositionBuilderAtEnd(b, loop);
    LLVMValueRef i = LLVMBuildPhi(b, m->module->i64, "");
    LLVMTypeRef lane = LLVMGetElementType(vector);
    LLVMValueRef at = LLVMBuildGEP2(b, lane, LLVMGetParam(f, 0), &i, 1, "");
    LLVMBuildStore(b, call_lane_by_lane(&inner, name, wide, LLVMBuildLoad2(b, lane, at, "")),
                   at);
    LLVMValueRef next = LLVMBuildAdd(b, i, cg_int(m->module, 1), "");
    LLVMValueRef more =
        LLVMBuildICmp(b, LLVMIntULT, next, cg_int(m->module, LLVMGetVectorSize(vector)), "");
    LLVMBuildCondBr(b, more, loop, done);
    LLVMAddIncoming(i, (LLVMValueRef[]){cg_int(m->module, 0), next},
                    (LLVMBasicBlockRef[]){entry, loop}, 2);
    LLVMPositionBuilderAtEnd(b, done);
    LLVMBuildRetVoid(b);
    LLVMDisposeBuilder(b);
    return f;
}

static void mark_unlikely(struct machine *m, LLVMValueRef branch)
{
    LLVMContextRef c = m->module->context;
    LLVMMetadataRef weights[] = {
        LLVMMDStringInContext2(c, "branch_weights", 14),
        LLVMValueAsMetadata(LLVMConstInt(m->module->i32, 1, 0)),
        LLVMValueAsMetadata(LLVMConstInt(m->module->i32, 1000000, 0)),
    };
    LLVMMetadataRef node = LLVMMDNodeInContext2(c, weights, 3);
    LLVMSetMetadata(branch, LLVMGetMDKindIDInContext(c, "prof", 4),
                    LLVMMetadataAsValue(c, node));
}

LLVMBasicBlockRef cg_cold_open(struct machine *m, LLVMValueRef condition,
                               LLVMBasicBlockRef *out_from)
{
    LLVMContextRef c = m->module->context;
    *out_from = LLVMGetInsertBlock(m->b);
    LLVMValueRef f = LLVMGetBasicBlockParent(*out_from);
    LLVMBasicBlockRef cold = LLVMAppendBasicBlockInContext(c, f, "cold");
    LLVMBasicBlockRef warm = LLVMAppendBasicBlockInContext(c, f, "warm");
    mark_unlikely(m, LLVMBuildCondBr(m->b, condition, cold, warm));
    LLVMPositionBuilderAtEnd(m->b, cold);
    return warm;
}

LLVMValueRef cg_cold_close(struct machine *m, LLVMBasicBlockRef warm, LLVMBasicBlockRef from,
                           LLVMValueRef quick, LLVMValueRef slow)
{
    LLVMBasicBlockRef cold = LLVMGetInsertBlock(m->b);
    LLVMBuildBr(m->b, warm);
    LLVMPositionBuilderAtEnd(m->b, warm);
    LLVMValueRef phi = LLVMBuildPhi(m->b, LLVMTypeOf(quick), "");
    LLVMAddIncoming(phi, (LLVMValueRef[]){quick, slow}, (LLVMBasicBlockRef[]){from, cold}, 2);
    return phi;
}

// y where every lane of the mask is clear, else the vector again through the scalar function.
static LLVMValueRef redo_out_of_range(struct machine *m, const struct form *form, bool wide,
                                      LLVMValueRef x, LLVMValueRef y, LLVMValueRef mask)
{
    LLVMTypeRef word = LLVMIntTypeInContext(m->module->context, cg_lanes_of(x));
    LLVMValueRef any = LLVMBuildICmp(m->b, LLVMIntNE, LLVMBuildBitCast(m->b, mask, word, ""),
                                     LLVMConstNull(word), "");
    LLVMBasicBlockRef from, warm = cg_cold_open(m, any, &from);
    LLVMValueRef slot = result_slot(m, LLVMTypeOf(x));
    LLVMTypeRef type;
    LLVMValueRef redo = cold_function(m, form->name, wide, LLVMTypeOf(x), &type);
    LLVMBuildStore(m->b, x, slot);
    LLVMBuildCall2(m->b, type, redo, &slot, 1, "");
    LLVMValueRef again = LLVMBuildLoad2(m->b, LLVMTypeOf(x), slot, "");
    return cg_cold_close(m, warm, from, y, again);
}

// Where the straight-line form does not hold on a GPU, which has no scalar functions to call: as those
// of base/math/math.c do it.
static LLVMValueRef beyond(struct machine *m, const struct form *form, bool wide,
                           LLVMValueRef x)
{
    LLVMBuilderRef b = m->b;
    LLVMTypeRef lane = LLVMTypeOf(x);
    LLVMValueRef hi, lo, quadrant, y;
    LLVMValueRef is_infinite = LLVMBuildFCmp(b, LLVMRealOEQ, cg_call1(m, "llvm.fabs", x),
                                             LLVMConstReal(lane, INFINITY), "");
    LLVMValueRef of = wide ? x : LLVMBuildFPExt(b, x, m->module->f64, "");
    m->module->hooks->reduce(m, of, &hi, &lo, &quadrant);
    if (wide) {
        quadrant = LLVMBuildZExt(b, quadrant, m->module->i64, "");
        y = form->in_quadrant_64(m, (struct pair_64){hi, lo}, quadrant);
    } else {
        hi = LLVMBuildFPTrunc(b, hi, lane, "");
        y = form->in_quadrant_32(m, (struct pair_32){hi, LLVMConstReal(lane, 0)}, quadrant);
    }
    return LLVMBuildSelect(b, is_infinite, LLVMBuildFSub(b, x, x, ""), y, "");
}

// The function for numbers of any size, as a function of the module.
static LLVMValueRef whole_function(struct machine *m, const struct form *form, bool wide,
                                   LLVMTypeRef *out_type)
{
    char symbol[64];
    LLVMContextRef c = m->module->context;
    LLVMTypeRef lane = wide ? m->module->f64 : m->module->f32;
    snprintf(symbol, sizeof symbol, "jot_%s_%s", form->name, wide ? "f64" : "f32");
    *out_type = LLVMFunctionType(lane, &lane, 1, 0);
    LLVMValueRef f = LLVMGetNamedFunction(m->module->module, symbol);
    if (f)
        return f;
    f = LLVMAddFunction(m->module->module, symbol, *out_type);
    LLVMSetLinkage(f, LLVMInternalLinkage);
    struct machine inner = {.module = m->module, .b = LLVMCreateBuilderInContext(c)};
    LLVMPositionBuilderAtEnd(inner.b, LLVMAppendBasicBlockInContext(c, f, ""));
    unsigned outer = lanes_now;
    lanes_now = 1;
    LLVMValueRef x = LLVMGetParam(f, 0), y = form->unary[wide](&inner, x);
    LLVMBasicBlockRef from,
        warm = cg_cold_open(&inner, form->out_of_range[wide](&inner, x), &from);
    LLVMBuildRet(inner.b, cg_cold_close(&inner, warm, from, y, beyond(&inner, form, wide, x)));
    lanes_now = outer;
    LLVMDisposeBuilder(inner.b);
    return f;
}

static LLVMValueRef by_whole_function(struct machine *m, const struct form *form, bool wide,
                                      LLVMValueRef x)
{
    LLVMTypeRef type;
    LLVMValueRef f = whole_function(m, form, wide, &type);
    return by_lane(m, f, type, x);
}

void cg_outside(struct machine *m, LLVMValueRef mask)
{
    struct cg_range_run *r = m->ranges;
    LLVMValueRef any = cg_any_lane(m, mask);
    r->outside = r->outside ? LLVMBuildOr(m->b, r->outside, any, "") : any;
}

static LLVMValueRef ranged_on_gpu(struct machine *m, const struct form *form, bool wide,
                                  LLVMValueRef x)
{
    if (m->ranges && m->ranges->is_redo)
        return by_whole_function(m, form, wide, x);
    LLVMValueRef y = form->unary[wide](m, x), mask = form->out_of_range[wide](m, x);
    if (m->ranges) {
        cg_outside(m, mask);
        return y;
    }
    LLVMBasicBlockRef from, warm = cg_cold_open(m, cg_any_lane(m, mask), &from);
    return cg_cold_close(m, warm, from, y, by_whole_function(m, form, wide, x));
}

LLVMValueRef cg_math(struct machine *m, const char *name, LLVMValueRef x, LLVMValueRef y)
{
    const struct form *form = forms;
    while (strcmp(form->name, name) != 0)
        form++;
    bool wide = LLVMGetTypeKind(cg_lane_of(x)) == LLVMDoubleTypeKind;
    unsigned outer = lanes_now;
    lanes_now = cg_lanes_of(x);
    LLVMValueRef result;
    if (form->binary[wide])
        result = form->binary[wide](m, x, y);
    else if (form->out_of_range[wide] && m->module->is_gpu)
        result = ranged_on_gpu(m, form, wide, x);
    else if (form->out_of_range[wide] && lanes_now == 1)
        result = call_lane_by_lane(m, name, wide, x);
    else
        result = form->unary[wide](m, x);
    if (form->out_of_range[wide] && lanes_now > 1 && !m->module->is_gpu)
        result = redo_out_of_range(m, form, wide, x, result, form->out_of_range[wide](m, x));
    lanes_now = outer;
    return result;
}

LLVMValueRef cg_exp_of_nonpositive(struct machine *m, LLVMValueRef x)
{
    unsigned outer = lanes_now;
    lanes_now = cg_lanes_of(x);
    LLVMValueRef y = exp_of_nonpositive_32(m, x);
    lanes_now = outer;
    return y;
}

void cg_sincos_factors(struct machine *m, LLVMValueRef x, LLVMValueRef *a, LLVMValueRef *b)
{
    LLVMTypeRef type = LLVMTypeOf(x);
    unsigned outer = lanes_now;
    lanes_now = cg_lanes_of(x);
    if ((lanes_now > 1 ? LLVMGetElementType(type) : type) == m->module->f64)
        sincos_factors_64(m, x, a, b);
    else
        sincos_factors_32(m, x, a, b);
    lanes_now = outer;
}
