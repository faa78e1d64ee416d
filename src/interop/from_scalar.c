// SPDX-License-Identifier: Apache-2.0
// The scalar machine of ir/scalar.h on values of a program: what each op of the table does to an element,
// as operations of StableHLO.
#include "interop/from_graph.h"

#include "base/dtype.h"
#include "ir/scalar.h"

#include <math.h>

typedef hlo_value scalar;

struct machine {
    struct hlo_writer *w;
    jot_dtype dtype;
    const struct ir_attrs *attrs;
};

#define HLO_(name) MLIR_OP_stablehlo_##name

static jot_dtype bits_type(hlo_value x)
{
    int bits = dtype_get(hlo_dtype(x))->bits;
    return bits == 64 ? JOT_U64 : bits == 32 ? JOT_U32 : bits == 16 ? JOT_U16 : JOT_U8;
}

static hlo_value with_sign(struct machine *m, hlo_value x, hlo_value s)
{
    struct hlo_writer *w = m->w;
    jot_dtype i = bits_type(x);
    const struct mlir_type *t = hlo_type_with(w, x->type, i);
    uint64_t sign = UINT64_C(1) << (dtype_get(i)->bits - 1);
    hlo_value size = hlo_2(w, HLO_(and), hlo_bitcast(w, x, i), hlo_integer(w, t, ~sign));
    hlo_value bit = hlo_2(w, HLO_(and), hlo_bitcast(w, s, i), hlo_integer(w, t, sign));
    return hlo_bitcast(w, hlo_2(w, HLO_(or), size, bit), hlo_dtype(x));
}

static hlo_value multiply_add(struct machine *m, hlo_value x, hlo_value y, hlo_value z)
{
    return hlo_fma(m->w, x, y, z);
}

#define W m->w
#define K_LIKE(v, c) hlo_number(W, (v)->type, (double)(c))
#define KI_LIKE(v, c) hlo_integer(W, (v)->type, (uint64_t)(c))
#define ADD(x, y) hlo_2(W, HLO_(add), x, y)
#define SUB(x, y) hlo_2(W, HLO_(subtract), x, y)
#define MUL(x, y) hlo_2(W, HLO_(multiply), x, y)
#define DIV(x, y) hlo_2(W, HLO_(divide), x, y)
#define REM(x, y) hlo_2(W, HLO_(remainder), x, y)
#define NEG(x) hlo_1(W, HLO_(negate), x)
#define ABS(x) hlo_1(W, HLO_(abs), x)
#define FLOOR(x) hlo_1(W, HLO_(floor), x)
#define CEIL(x) hlo_1(W, HLO_(ceil), x)
#define ROUND_EVEN(x) hlo_1(W, HLO_(round_nearest_even), x)
#define SQRT(x) hlo_1(W, HLO_(sqrt), x)
#define FMA(x, y, z) multiply_add(m, x, y, z)
#define COPYSIGN(x, s) with_sign(m, x, s)
#define MAX(x, y) hlo_2(W, HLO_(maximum), x, y)
#define MIN(x, y) hlo_2(W, HLO_(minimum), x, y)
#define SELECT(p, x, y) hlo_select(W, p, x, y)
#define EQ(x, y) hlo_compare(W, "EQ", false, x, y)
#define NE(x, y) hlo_compare(W, "NE", false, x, y)
#define LT(x, y) hlo_compare(W, "LT", false, x, y)
#define LE(x, y) hlo_compare(W, "LE", false, x, y)
#define AND(x, y) hlo_2(W, HLO_(and), x, y)
#define OR(x, y) hlo_2(W, HLO_(or), x, y)
#define XOR(x, y) hlo_2(W, HLO_(xor), x, y)
#define NOT(x) hlo_1(W, HLO_(not), x)
#define SHL(x, y) hlo_2(W, HLO_(shift_left), x, y)
#define SHR_LOGICAL(x, y) hlo_2(W, HLO_(shift_right_logical), x, y)
#define SHR_ARITH(x, y) hlo_2(W, HLO_(shift_right_arithmetic), x, y)
#define POPCOUNT(x) hlo_1(W, HLO_(popcnt), x)
#define CLZ(x) hlo_1(W, HLO_(count_leading_zeros), x)
#define MATH1(name, x) hlo_math(W, #name, x, NULL)
#define MATH2(name, x, y) hlo_math(W, #name, x, y)
#define BAND AND
#define BOR OR
#define BNOT NOT
#define BITS(x) hlo_bitcast(W, x, bits_type(x))
#define FLOAT_OF_BITS(i) hlo_bitcast(W, i, hlo_dtype(i) == JOT_U64 ? JOT_F64 : JOT_F32)
#define IADD(i, j) ADD(i, j)
#define IADD_BITS(i, j) ADD(i, j)
#define ISUB(i, j) SUB(i, j)
#define IAND AND
#define IOR OR
#define IXOR XOR
#define ISHL(i, n) SHL(i, KI_LIKE(i, n))
#define IUSHR(i, n) SHR_LOGICAL(i, KI_LIKE(i, n))
#define IULT(i, j) LT(i, j)
#define IEQ(i, j) EQ(i, j)
#define INARROW16(i) hlo_convert(W, i, JOT_U16)
#define IWIDEN32(i) hlo_convert(W, i, JOT_U32)
#define F32_OF_F64(x) hlo_convert(W, x, JOT_F32)
#define F64_OF_F32(x) hlo_convert(W, x, JOT_F64)

#include "ir/scalar.inc"

static struct pair parts_of(struct hlo_writer *w, hlo_value x)
{
    if (!dtype_is_complex(hlo_dtype(x)))
        return (struct pair){x, NULL};
    const struct mlir_type *t = hlo_type_with(w, x->type, dtype_real(hlo_dtype(x)));
    return (struct pair){hlo_op(w, HLO_(real), t, 1, &x, NULL),
                         hlo_op(w, HLO_(imag), t, 1, &x, NULL)};
}

static hlo_value of_parts(struct hlo_writer *w, struct pair p, jot_dtype d)
{
    return dtype_is_complex(d) ? hlo_op(w, HLO_(complex), hlo_type_with(w, p.re->type, d), 2,
                                        (hlo_value[]){p.re, p.im}, NULL)
                               : p.re;
}

static hlo_value expand_complex(struct machine *m, enum ir_op op, int n, const hlo_value *in,
                                jot_dtype result)
{
    struct pair p[3] = {0};
    for (int i = 0; i < n; i++)
        p[i] = parts_of(m->w, in[i]);
    return of_parts(m->w, complex_table[op](m, p[0], p[1], p[2]), result);
}

static hlo_value expand_real(struct machine *m, enum ir_op op, int n, const hlo_value *in,
                             jot_dtype result)
{
    hlo_value x[3] = {NULL, NULL, NULL};
    bool is_half = dtype_is_half(m->dtype), is_stored = scalar_is_on_storage(op);
    for (int i = 0; i < n; i++)
        x[i] = !is_half || !dtype_is_half(hlo_dtype(in[i])) ? in[i]
               : is_stored                                  ? hlo_bitcast(m->w, in[i], JOT_U16)
                                                            : hlo_convert(m->w, in[i], JOT_F32);
    hlo_value y = scalar_table[op](m, x[0], x[1], x[2]);
    return is_half && is_stored ? hlo_bitcast(m->w, y, result) : hlo_convert(m->w, y, result);
}

static hlo_value expand(struct machine *m, enum ir_op op, int n, const hlo_value *in,
                        jot_dtype result)
{
    bool is_complex = dtype_is_complex(result);
    for (int i = 0; i < n; i++)
        is_complex = is_complex || dtype_is_complex(hlo_dtype(in[i]));
    return is_complex ? expand_complex(m, op, n, in, result)
                      : expand_real(m, op, n, in, result);
}

void hlo_expand(struct hlo_node *n, const hlo_value *in, hlo_value *out)
{
    enum ir_op op = (enum ir_op)n->n->op;
    int n_in = (int)n->n->n_in;
    struct machine m = {n->w, hlo_dtype(in[n_in - 1]), n->n->attrs};
    if (op == IR_threefry2x32) {
        scalar key[2] = {in[0], in[1]}, counter[2] = {in[2], in[3]};
        composite_threefry2x32(&m, key, counter);
        out[0] = counter[0];
        out[1] = counter[1];
    } else {
        out[0] = expand(&m, op, n_in, in, mlir_elements[n->type->element].dtype);
    }
}

hlo_value hlo_combine(struct hlo_writer *w, enum ir_op op, hlo_value x, hlo_value y)
{
    struct machine m = {w, hlo_dtype(y), NULL};
    return expand(&m, op, 2, (hlo_value[]){x, y}, hlo_dtype(x));
}
