// SPDX-License-Identifier: Apache-2.0
// The scalar machine of ir/scalar.h on LLVM values: what each op of the table does to its lanes.
//
// No fast-math flag is ever set, so every operation is the IEEE one and nothing is contracted.
#include "ir/scalar.h"
#include "codegen/elementary.h"
#include "codegen/emit.h"
#include "codegen/hooks.h"
#include "codegen/in_step.h"
#include "codegen/op_function.h"
#include "codegen/scalar.h"
#include "codegen/types.h"
#include "ir/attr.h"

#include <assert.h>
#include <math.h>
#include <string.h>

typedef LLVMValueRef scalar;

static bool is_float(LLVMValueRef v)
{
    LLVMTypeKind kind = LLVMGetTypeKind(cg_lane_of(v));
    return kind == LLVMFloatTypeKind || kind == LLVMDoubleTypeKind;
}

static unsigned width_of(LLVMValueRef v)
{
    LLVMTypeRef t = cg_lane_of(v);
    LLVMTypeKind kind = LLVMGetTypeKind(t);
    return kind == LLVMFloatTypeKind    ? 32
           : kind == LLVMDoubleTypeKind ? 64
                                        : LLVMGetIntTypeWidth(t);
}

static LLVMTypeRef int_type(struct machine *m, unsigned bits, LLVMValueRef like)
{
    return cg_with_lanes(LLVMIntTypeInContext(m->module->context, bits), cg_lanes_of(like));
}

static LLVMTypeRef float_type(struct machine *m, unsigned bits, LLVMValueRef like)
{
    return cg_with_lanes(bits == 64 ? m->module->f64 : m->module->f32, cg_lanes_of(like));
}

static bool is_signed(const struct machine *m) { return dtype_is_signed(m->dtype); }

static LLVMValueRef int_like(struct machine *m, LLVMValueRef v, uint64_t c)
{
    LLVMTypeRef lane = LLVMIntTypeInContext(m->module->context, width_of(v));
    return cg_splat(m, LLVMConstInt(lane, c, 0), cg_lanes_of(v));
}

static LLVMValueRef number_like(struct machine *m, LLVMValueRef v, double c)
{
    if (is_float(v)) {
        LLVMTypeRef lane = width_of(v) == 64 ? m->module->f64 : m->module->f32;
        return cg_splat(m, LLVMConstReal(lane, width_of(v) == 64 ? c : (double)(float)c),
                        cg_lanes_of(v));
    }
    return int_like(m, v, c < 0 ? (uint64_t)(int64_t)c : (uint64_t)c);
}

static LLVMValueRef call3(struct machine *m, const char *name, LLVMValueRef x, LLVMValueRef y,
                          LLVMValueRef z)
{
    return cg_intrinsic(m, name, LLVMTypeOf(x), 3, (LLVMValueRef[]){x, y, z});
}

static LLVMValueRef int_compare(struct machine *m, LLVMIntPredicate p, LLVMValueRef x,
                                LLVMValueRef y)
{
    return LLVMBuildICmp(m->b, p, x, y, "");
}

static LLVMValueRef select_value(struct machine *m, LLVMValueRef p, LLVMValueRef x,
                                 LLVMValueRef y)
{
    return LLVMBuildSelect(m->b, p, x, y, "");
}

LLVMValueRef cg_divide(struct machine *m, LLVMValueRef x, LLVMValueRef y)
{
    return m->module->is_gpu ? m->module->hooks->divide(m, x, y)
                             : LLVMBuildFDiv(m->b, x, y, "");
}

LLVMValueRef cg_sqrt(struct machine *m, LLVMValueRef x)
{
    return m->module->is_gpu ? m->module->hooks->sqrt(m, x) : cg_call1(m, "llvm.sqrt", x);
}

// lowest / -1 has no result that fits; the quotient is x / 1 then, which is lowest.
static LLVMValueRef divide_numbers(struct machine *m, LLVMValueRef x, LLVMValueRef y)
{
    if (is_float(x))
        return cg_divide(m, x, y);
    LLVMValueRef one = int_like(m, x, 1), ones = int_like(m, x, UINT64_MAX);
    LLVMValueRef by_zero = int_compare(m, LLVMIntEQ, y, int_like(m, y, 0)), unsafe = by_zero;
    if (is_signed(m)) {
        LLVMValueRef lowest = int_like(m, x, UINT64_C(1) << (width_of(x) - 1));
        LLVMValueRef overflow = LLVMBuildAnd(m->b, int_compare(m, LLVMIntEQ, x, lowest),
                                             int_compare(m, LLVMIntEQ, y, ones), "");
        unsafe = LLVMBuildOr(m->b, by_zero, overflow, "");
    }
    LLVMValueRef safe = select_value(m, unsafe, one, y);
    LLVMValueRef quotient =
        is_signed(m) ? LLVMBuildSDiv(m->b, x, safe, "") : LLVMBuildUDiv(m->b, x, safe, "");
    return select_value(m, by_zero, ones, quotient);
}

static LLVMValueRef remainder_of(struct machine *m, LLVMValueRef x, LLVMValueRef y)
{
    if (is_float(x))
        return m->module->is_gpu ? m->module->hooks->remainder(m, x, y)
                                 : LLVMBuildFRem(m->b, x, y, "");
    LLVMValueRef one = int_like(m, x, 1);
    LLVMValueRef by_zero = int_compare(m, LLVMIntEQ, y, int_like(m, y, 0)), unsafe = by_zero;
    if (is_signed(m))
        unsafe = LLVMBuildOr(m->b, by_zero,
                             int_compare(m, LLVMIntEQ, y, int_like(m, y, UINT64_MAX)), "");
    LLVMValueRef safe = select_value(m, unsafe, one, y);
    LLVMValueRef rest =
        is_signed(m) ? LLVMBuildSRem(m->b, x, safe, "") : LLVMBuildURem(m->b, x, safe, "");
    return select_value(m, by_zero, x, rest);
}

static LLVMValueRef absolute(struct machine *m, LLVMValueRef x)
{
    if (is_float(x))
        return cg_call1(m, "llvm.fabs", x);
    if (!is_signed(m))
        return x;
    LLVMValueRef negative = int_compare(m, LLVMIntSLT, x, int_like(m, x, 0));
    return select_value(m, negative, LLVMBuildNeg(m->b, x, ""), x);
}

static LLVMValueRef extreme(struct machine *m, LLVMValueRef x, LLVMValueRef y, bool larger)
{
    if (is_float(x))
        return cg_call2(m, larger ? "llvm.maximum" : "llvm.minimum", x, y);
    LLVMIntPredicate above = is_signed(m) ? LLVMIntSGT : LLVMIntUGT;
    LLVMIntPredicate below = is_signed(m) ? LLVMIntSLT : LLVMIntULT;
    return select_value(m, int_compare(m, larger ? above : below, x, y), x, y);
}

static LLVMValueRef compare(struct machine *m, LLVMRealPredicate real, LLVMIntPredicate sign,
                            LLVMIntPredicate no_sign, LLVMValueRef x, LLVMValueRef y)
{
    if (is_float(x))
        return LLVMBuildFCmp(m->b, real, x, y, "");
    return int_compare(m, is_signed(m) ? sign : no_sign, x, y);
}

enum shift { LEFT, LOGICAL, ARITHMETIC };

static LLVMValueRef shift(struct machine *m, enum shift kind, LLVMValueRef x, LLVMValueRef y)
{
    unsigned width = width_of(x);
    LLVMValueRef inside = int_compare(m, LLVMIntULT, y, int_like(m, y, width));
    LLVMValueRef by =
        select_value(m, inside, y, int_like(m, y, kind == ARITHMETIC ? width - 1 : 0));
    if (kind == ARITHMETIC)
        return LLVMBuildAShr(m->b, x, by, "");
    LLVMValueRef shifted =
        kind == LEFT ? LLVMBuildShl(m->b, x, by, "") : LLVMBuildLShr(m->b, x, by, "");
    return select_value(m, inside, shifted, int_like(m, x, 0));
}

static LLVMValueRef leading_zeros(struct machine *m, LLVMValueRef x)
{
    LLVMValueRef defined = LLVMConstInt(m->module->i1, 0, 0);
    return cg_intrinsic(m, "llvm.ctlz", LLVMTypeOf(x), 2, (LLVMValueRef[]){x, defined});
}

#define PICK(x, real, integer) (is_float(x) ? (real) : (integer))
#define K_LIKE(v, c) number_like(m, v, (double)(c))
#define KI_LIKE(v, c) int_like(m, v, (uint64_t)(c))
#define ADD(x, y) PICK(x, LLVMBuildFAdd, LLVMBuildAdd)(m->b, x, y, "")
#define SUB(x, y) PICK(x, LLVMBuildFSub, LLVMBuildSub)(m->b, x, y, "")
#define MUL(x, y) PICK(x, LLVMBuildFMul, LLVMBuildMul)(m->b, x, y, "")
#define DIV(x, y) divide_numbers(m, x, y)
#define REM(x, y) remainder_of(m, x, y)
#define NEG(x) PICK(x, LLVMBuildFNeg, LLVMBuildNeg)(m->b, x, "")
#define ABS(x) absolute(m, x)
#define FLOOR(x) cg_call1(m, "llvm.floor", x)
#define CEIL(x) cg_call1(m, "llvm.ceil", x)
#define ROUND_EVEN(x) cg_call1(m, "llvm.roundeven", x)
#define SQRT(x) cg_sqrt(m, x)
#define FMA(x, y, z) multiply_add(m, x, y, z)
#define COPYSIGN(x, s) cg_call2(m, "llvm.copysign", x, s)
#define MAX(x, y) extreme(m, x, y, true)
#define MIN(x, y) extreme(m, x, y, false)
#define SELECT(p, x, y) select_value(m, p, x, y)
#define EQ(x, y) compare(m, LLVMRealOEQ, LLVMIntEQ, LLVMIntEQ, x, y)
#define NE(x, y) compare(m, LLVMRealUNE, LLVMIntNE, LLVMIntNE, x, y)
#define LT(x, y) compare(m, LLVMRealOLT, LLVMIntSLT, LLVMIntULT, x, y)
#define LE(x, y) compare(m, LLVMRealOLE, LLVMIntSLE, LLVMIntULE, x, y)
#define AND(x, y) LLVMBuildAnd(m->b, x, y, "")
#define OR(x, y) LLVMBuildOr(m->b, x, y, "")
#define XOR(x, y) LLVMBuildXor(m->b, x, y, "")
#define NOT(x) LLVMBuildNot(m->b, x, "")
#define SHL(x, y) shift(m, LEFT, x, y)
#define SHR_LOGICAL(x, y) shift(m, LOGICAL, x, y)
#define SHR_ARITH(x, y) shift(m, ARITHMETIC, x, y)
#define POPCOUNT(x) cg_call1(m, "llvm.ctpop", x)
#define CLZ(x) leading_zeros(m, x)
#define MATH1(name, x) cg_math(m, #name, x, NULL)
#define MATH2(name, x, y) cg_math(m, #name, x, y)
#define BAND AND
#define BOR OR
#define BNOT NOT
#define BITS(x) LLVMBuildBitCast(m->b, x, int_type(m, width_of(x), x), "")
#define FLOAT_OF_BITS(i) LLVMBuildBitCast(m->b, i, float_type(m, width_of(i), i), "")
#define IADD(i, j) LLVMBuildAdd(m->b, i, j, "")
#define IADD_BITS(i, j) add_bits(m, i, j)
#define ISUB(i, j) LLVMBuildSub(m->b, i, j, "")
#define IAND AND
#define IOR OR
#define IXOR XOR
#define ISHL(i, n) LLVMBuildShl(m->b, i, KI_LIKE(i, n), "")
#define IUSHR(i, n) LLVMBuildLShr(m->b, i, KI_LIKE(i, n), "")
#define IULT(i, j) int_compare(m, LLVMIntULT, i, j)
#define IEQ(i, j) int_compare(m, LLVMIntEQ, i, j)
#define INARROW16(i) LLVMBuildTrunc(m->b, i, int_type(m, 16, i), "")
#define IWIDEN32(i) LLVMBuildZExt(m->b, i, int_type(m, 32, i), "")
#define F32_OF_F64(x) LLVMBuildFPTrunc(m->b, x, float_type(m, 32, x), "")
#define F64_OF_F32(x) LLVMBuildFPExt(m->b, x, float_type(m, 64, x), "")

static LLVMValueRef add_bits(struct machine *m, LLVMValueRef i, LLVMValueRef j)
{
    return m->module->is_gpu ? m->module->hooks->add_bits(m, i, j)
                             : LLVMBuildAdd(m->b, i, j, "");
}

static LLVMValueRef multiply_add(struct machine *m, LLVMValueRef x, LLVMValueRef y,
                                 LLVMValueRef z)
{
    if (!is_float(x))
        return ADD(MUL(x, y), z);
    bool is_neutral = z == LLVMBuildFNeg(m->b, LLVMConstNull(LLVMTypeOf(z)), ""); // -0
    return is_neutral ? MUL(x, y) : call3(m, "llvm.fma", x, y, z);
}

#include "ir/scalar.inc"

static LLVMValueRef widen_half(struct machine *m, LLVMValueRef x, jot_dtype d)
{
    LLVMValueRef y = m->module->is_gpu ? m->module->hooks->widen_half(m, x, d) : NULL;
    if (y)
        return y;
    return d == JOT_F16 ? composite_f32_of_f16(m, x) : composite_f32_of_bf16(m, x);
}

static LLVMValueRef round_half(struct machine *m, LLVMValueRef x, jot_dtype d)
{
    if (width_of(x) == 64)
        x = composite_odd_f32_of_f64(m, x);
    LLVMValueRef y = m->module->is_gpu ? m->module->hooks->round_half(m, x, d) : NULL;
    if (y)
        return y;
    return d == JOT_F16 ? composite_f16_of_f32(m, x) : composite_bf16_of_f32(m, x);
}

static LLVMValueRef is_not_zero(struct machine *m, LLVMValueRef x)
{
    LLVMValueRef zero = LLVMConstNull(LLVMTypeOf(x));
    return is_float(x) ? LLVMBuildFCmp(m->b, LLVMRealUNE, x, zero, "")
                       : LLVMBuildICmp(m->b, LLVMIntNE, x, zero, "");
}

// What LLVM's saturating conversions give, which it makes of a vector lane by lane: what is beyond the ends of the
// range, or no number, is chosen beside a conversion of what is inside.
static LLVMValueRef ints_from_floats(struct machine *m, LLVMValueRef x, jot_dtype to)
{
    unsigned bits = dtype_get(to)->bits, wide = bits < 32 ? 32 : bits;
    bool is_signed_to = dtype_is_signed(to);
    LLVMValueRef low = number_like(m, x, is_signed_to ? -ldexp(1, (int)bits - 1) : 0);
    LLVMValueRef high = number_like(m, x, ldexp(1, (int)bits - is_signed_to));
    LLVMValueRef is_low = LLVMBuildFCmp(m->b, LLVMRealOLT, x, low, "");
    LLVMValueRef is_high = LLVMBuildFCmp(m->b, LLVMRealOGE, x, high, "");
    LLVMValueRef is_inside = LLVMBuildAnd(m->b, LLVMBuildFCmp(m->b, LLVMRealOGE, x, low, ""),
                                          LLVMBuildNot(m->b, is_high, ""), "");
    LLVMValueRef inside = select_value(m, is_inside, x, LLVMConstNull(LLVMTypeOf(x)));
    LLVMTypeRef type = int_type(m, wide, x);
    LLVMValueRef y = is_signed_to || wide > bits ? LLVMBuildFPToSI(m->b, inside, type, "")
                                                 : LLVMBuildFPToUI(m->b, inside, type, "");
    if (wide > bits)
        y = LLVMBuildTrunc(m->b, y, int_type(m, bits, x), "");
    uint64_t most = UINT64_MAX >> (64 - bits + is_signed_to);
    y = select_value(m, is_high, int_like(m, y, most), y);
    return select_value(m, is_low, int_like(m, y, is_signed_to ? most + 1 : 0), y);
}

// fptosi.sat and fptoui.sat saturate and give 0 for NaN.
static LLVMValueRef int_from_float(struct machine *m, LLVMValueRef x, jot_dtype to)
{
    if (cg_lanes_of(x) > 1 && !m->module->is_gpu)
        return ints_from_floats(m, x, to);
    LLVMTypeRef overloads[] = {int_type(m, dtype_get(to)->bits, x), LLVMTypeOf(x)};
    const char *name = dtype_is_signed(to) ? "llvm.fptosi.sat" : "llvm.fptoui.sat";
    unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    LLVMValueRef f = LLVMGetIntrinsicDeclaration(m->module->module, id, overloads, 2);
    LLVMTypeRef type = LLVMIntrinsicGetType(m->module->context, id, overloads, 2);
    return LLVMBuildCall2(m->b, type, f, &x, 1, "");
}

static LLVMValueRef int_from_int(struct machine *m, LLVMValueRef x, jot_dtype from,
                                 jot_dtype to)
{
    unsigned have = width_of(x), want = dtype_get(to)->bits;
    LLVMTypeRef type = int_type(m, want, x);
    if (have > want)
        return LLVMBuildTrunc(m->b, x, type, "");
    if (have == want)
        return x;
    return dtype_is_signed(from) ? LLVMBuildSExt(m->b, x, type, "")
                                 : LLVMBuildZExt(m->b, x, type, "");
}

// To f32 or f64.
static LLVMValueRef float_from(struct machine *m, LLVMValueRef x, jot_dtype from, jot_dtype to)
{
    LLVMTypeRef type = float_type(m, dtype_get(to)->bits, x);
    if (!is_float(x))
        return dtype_is_signed(from) ? LLVMBuildSIToFP(m->b, x, type, "")
                                     : LLVMBuildUIToFP(m->b, x, type, "");
    if (width_of(x) == dtype_get(to)->bits)
        return x;
    return to == JOT_F64 ? LLVMBuildFPExt(m->b, x, type, "")
                         : LLVMBuildFPTrunc(m->b, x, type, "");
}

static LLVMValueRef convert_real(struct machine *m, LLVMValueRef x, jot_dtype from,
                                 jot_dtype to)
{
    if (from == to)
        return x;
    if (dtype_is_half(from))
        x = widen_half(m, x, from);
    if (to == JOT_BOOL)
        return is_not_zero(m, x);
    if (dtype_is_half(to)) {
        LLVMValueRef wide = is_float(x) ? x : float_from(m, x, from, JOT_F32);
        return round_half(m, wide, to);
    }
    if (dtype_is_float(to))
        return float_from(m, x, from, to);
    return is_float(x) ? int_from_float(m, x, to) : int_from_int(m, x, from, to);
}

struct cg_value cg_convert(struct machine *m, struct cg_value x, jot_dtype from, jot_dtype to)
{
    if (from == to)
        return x;
    jot_dtype part_from = dtype_real(from), part_to = dtype_real(to);
    if (dtype_is_complex(from) && to == JOT_BOOL)
        return (struct cg_value){
            LLVMBuildOr(m->b, is_not_zero(m, x.re), is_not_zero(m, x.im), ""), NULL};
    struct cg_value y = {convert_real(m, x.re, part_from, part_to), NULL};
    if (dtype_is_complex(to))
        y.im =
            x.im ? convert_real(m, x.im, part_from, part_to) : LLVMConstNull(LLVMTypeOf(y.re));
    return y;
}

static LLVMValueRef bitcast(struct machine *m, LLVMValueRef x, jot_dtype from, jot_dtype to)
{
    if (from == JOT_BOOL)
        x = LLVMBuildZExt(m->b, x, int_type(m, 8, x), "");
    if (to == JOT_BOOL)
        return is_not_zero(m, x);
    return LLVMBuildBitCast(m->b, x, cg_with_lanes(cg_lane_type(m->module, to), cg_lanes_of(x)),
                            "");
}

static void complex_op(struct machine *m, enum ir_op op, jot_dtype result, int n,
                       const struct cg_value *in, struct cg_value *out)
{
    struct pair p[3] = {0};
    for (int i = 0; i < n; i++)
        p[i] = (struct pair){in[i].re, in[i].im};
    assert(complex_table[op]);
    struct pair r = complex_table[op](m, p[0], p[1], p[2]);
    *out = (struct cg_value){r.re, dtype_is_complex(result) ? r.im : NULL};
}

static void threefry(struct machine *m, const struct cg_value *in, struct cg_value *out)
{
    scalar keys[2] = {in[0].re, in[1].re}, counter[2] = {in[2].re, in[3].re};
    composite_threefry2x32(m, keys, counter);
    for (int i = 0; i < 2; i++)
        out[i] = (struct cg_value){cg_in_step(m, counter[i]), NULL};
}

void cg_op(struct machine *m, enum ir_op op, jot_dtype result, int n, const jot_dtype *dtypes,
           const struct cg_value *in, const int64_t bits[2], struct cg_value *out)
{
    jot_dtype d = dtypes[n - 1];
    bool is_complex = dtype_is_complex(result);
    if (m->by_function && cg_op_by_function(m, op, result, n, dtypes, in, bits, out))
        return;
    for (int i = 0; i < n; i++)
        is_complex = is_complex || dtype_is_complex(dtypes[i]);
    // The attributes that templates read, from the numbers a nest keeps of them.
    struct ir_field fields[] = {IR_INTS(exponent, 1, bits), IR_INTS(exponent_bits, 1, bits),
                                IR_INTS(mantissa_bits, 1, bits + 1)};
    _Alignas(struct ir_attrs) char attrs[sizeof(struct ir_attrs) + sizeof fields];
    memcpy(attrs, &(struct ir_attrs){.count = 3}, sizeof(struct ir_attrs));
    memcpy(attrs + offsetof(struct ir_attrs, fields), fields, sizeof fields);
    scalar x[3] = {NULL, NULL, NULL};
    m->dtype = d;
    m->attrs = (const struct ir_attrs *)(const void *)attrs;
    if (op == IR_convert) {
        *out = cg_convert(m, in[0], d, result);
    } else if (op == IR_bitcast) {
        *out = (struct cg_value){bitcast(m, in[0].re, d, result), NULL};
    } else if (op == IR_threefry2x32) {
        threefry(m, in, out);
    } else if (is_complex) {
        complex_op(m, op, result, n, in, out);
    } else if (m->module->is_gpu && dtype_is_half(d) && d == result && n <= 2 &&
               (x[0] = m->module->hooks->half_op(m, op, d, in[0].re, in[n - 1].re))) {
        *out = (struct cg_value){x[0], NULL};
    } else {
        bool widen = dtype_is_half(d) && !scalar_is_on_storage(op);
        for (int i = 0; i < n; i++)
            x[i] = widen && dtype_is_half(dtypes[i]) ? widen_half(m, in[i].re, dtypes[i])
                                                     : in[i].re;
        scalar y = scalar_table[op](m, x[0], x[1], x[2]);
        if (widen && dtype_is_half(result))
            y = round_half(m, y, result);
        *out = (struct cg_value){y, NULL};
    }
    m->attrs = NULL;
}

static LLVMValueRef constant_part(const struct cg_module *module, jot_dtype d,
                                  const void *element, unsigned lanes)
{
    struct machine m = {.module = (struct cg_module *)(uintptr_t)module};
    uint64_t bits = 0;
    memcpy(&bits, element, dtype_get(d)->bytes);
    LLVMValueRef c;
    if (d == JOT_BOOL)
        c = LLVMConstInt(module->i1, bits != 0, 0);
    else if (d == JOT_F32 || d == JOT_F64)
        c = LLVMConstBitCast(LLVMConstInt(d == JOT_F32 ? module->i32 : module->i64, bits, 0),
                             d == JOT_F32 ? module->f32 : module->f64);
    else
        c = LLVMConstInt(cg_lane_type(module, d), bits, 0);
    return cg_splat(&m, c, lanes);
}

struct cg_value cg_constant(const struct cg_module *m, jot_dtype d, const void *element,
                            unsigned lanes)
{
    jot_dtype part = dtype_real(d);
    struct cg_value v = {constant_part(m, part, element, lanes), NULL};
    if (dtype_is_complex(d))
        v.im = constant_part(m, part, (const char *)element + dtype_get(part)->bytes, lanes);
    return v;
}

struct cg_value cg_identity(const struct cg_module *m, enum ir_op op, jot_dtype d,
                            unsigned lanes)
{
    uint64_t words[2] = {0};
    words[0] = scalar_identity(op, d);
    if (dtype_is_half(d)) {
        float wide;
        memcpy(&wide, words, sizeof wide);
        words[0] = d == JOT_F16 ? dtype_f16_from_f32(wide) : dtype_bf16_from_f32(wide);
    }
    jot_dtype part = dtype_real(d);
    struct cg_value v = {constant_part(m, part, words, lanes), NULL};
    if (dtype_is_complex(d))
        v.im = constant_part(m, part, words + 1, lanes);
    return v;
}

static bool is_float_sum(enum ir_op op, jot_dtype d)
{
    return ir_op_get(op)->pair == IR_add && dtype_is_inexact(d) && !dtype_is_half(d);
}

bool cg_has_neutral(enum ir_op op, jot_dtype d)
{
    return is_float_sum(op, d) || scalar_identity_is_neutral(op, d);
}

struct cg_value cg_neutral(struct machine *m, enum ir_op op, jot_dtype d, unsigned lanes)
{
    struct cg_value v = cg_identity(m->module, op, d, lanes);
    if (is_float_sum(op, d)) {
        v.re = LLVMBuildFNeg(m->b, v.re, "");
        v.im = v.im ? LLVMBuildFNeg(m->b, v.im, "") : NULL;
    }
    return v;
}

struct cg_value cg_combine(struct machine *m, enum ir_op op, jot_dtype d, struct cg_value a,
                           struct cg_value b)
{
    if (op == IR_fma) // of two sums
        op = ir_op_get(op)->pair;
    struct cg_value out;
    static const int64_t none[2];
    cg_op(m, op, d, 2, (jot_dtype[]){d, d}, (struct cg_value[]){a, b}, none, &out);
    return out;
}

struct cg_value cg_combine_fma(struct machine *m, jot_dtype d, struct cg_value acc,
                               struct cg_value a, struct cg_value b)
{
    m->dtype = dtype_real(d);
    if (!dtype_is_complex(d))
        return (struct cg_value){FMA(a.re, b.re, acc.re), NULL};
    struct cg_value y;
    y.re = FMA(NEG(a.im), b.im, FMA(a.re, b.re, acc.re));
    y.im = FMA(a.im, b.re, FMA(a.re, b.im, acc.im));
    return y;
}

LLVMValueRef cg_wins(struct machine *m, enum ir_op op, jot_dtype d, LLVMValueRef a,
                     LLVMValueRef b)
{
    m->dtype = d;
    if (dtype_is_half(d)) {
        a = widen_half(m, a, d);
        b = widen_half(m, b, d);
    }
    return scalar_table[op](m, a, b, NULL);
}

struct cg_value cg_select(struct machine *m, LLVMValueRef p, struct cg_value a,
                          struct cg_value b)
{
    return (struct cg_value){select_value(m, p, a.re, b.re),
                             a.im ? select_value(m, p, a.im, b.im) : NULL};
}
