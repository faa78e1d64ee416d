// SPDX-License-Identifier: Apache-2.0
// The elementary functions as operations of StableHLO: the templates of base/math on values of a
// program.
#include "interop/from_graph.h"

#include <math.h>

// Shape and width of what is computed.
struct machine {
    struct hlo_writer *w;
    const struct mlir_type *number, *integer;
    jot_dtype d, i;
};

#define HLO_(name) MLIR_OP_stablehlo_##name

// x y + z of f64: the product as a sum of two numbers, by factors of 26 and 27 bits (T. J. Dekker, 1971), and
// sums with what their rounding left (D. E. Knuth).  Where that is not finite, in two steps.
static hlo_value upper_half(struct hlo_writer *w, hlo_value x)
{
    hlo_value bits = hlo_bitcast(w, x, JOT_U64);
    hlo_value mask = hlo_integer(w, bits->type, ~((UINT64_C(1) << 27) - 1));
    return hlo_bitcast(w, hlo_2(w, HLO_(and), bits, mask), JOT_F64);
}

static hlo_value fma_of_f64(struct hlo_writer *w, hlo_value x, hlo_value y, hlo_value z)
{
    hlo_value p = hlo_2(w, HLO_(multiply), x, y), plain = hlo_2(w, HLO_(add), p, z);
    hlo_value x1 = upper_half(w, x), x0 = hlo_2(w, HLO_(subtract), x, x1);
    hlo_value y1 = upper_half(w, y), y0 = hlo_2(w, HLO_(subtract), y, y1);
    hlo_value rest = hlo_2(w, HLO_(subtract), hlo_2(w, HLO_(multiply), x1, y1), p);
    rest = hlo_2(w, HLO_(add), rest, hlo_2(w, HLO_(multiply), x1, y0));
    rest = hlo_2(w, HLO_(add), rest, hlo_2(w, HLO_(multiply), x0, y1));
    rest = hlo_2(w, HLO_(add), rest, hlo_2(w, HLO_(multiply), x0, y0));
    hlo_value of_p = hlo_2(w, HLO_(subtract), plain, z);
    hlo_value of_z = hlo_2(w, HLO_(subtract), plain, of_p);
    hlo_value left = hlo_2(w, HLO_(add), hlo_2(w, HLO_(subtract), p, of_p),
                           hlo_2(w, HLO_(subtract), z, of_z));
    hlo_value sum = hlo_2(w, HLO_(add), plain, hlo_2(w, HLO_(add), left, rest));
    hlo_value finite =
        hlo_op(w, HLO_(is_finite), hlo_type_with(w, sum->type, JOT_BOOL), 1, &sum, NULL);
    return hlo_select(w, finite, sum, plain);
}

hlo_value hlo_fma(struct hlo_writer *w, hlo_value x, hlo_value y, hlo_value z)
{
    if (hlo_dtype(x) == JOT_F64)
        return fma_of_f64(w, x, y, z);
    if (hlo_dtype(x) != JOT_F32)
        return hlo_2(w, HLO_(add), hlo_2(w, HLO_(multiply), x, y), z); // integers
    hlo_value p =
        hlo_2(w, HLO_(multiply), hlo_convert(w, x, JOT_F64), hlo_convert(w, y, JOT_F64));
    return hlo_convert(w, hlo_2(w, HLO_(add), p, hlo_convert(w, z, JOT_F64)), JOT_F32);
}

static hlo_value with_sign(struct machine *m, hlo_value x, hlo_value s)
{
    struct hlo_writer *w = m->w;
    uint64_t sign = UINT64_C(1) << (m->d == JOT_F64 ? 63 : 31);
    hlo_value size =
        hlo_2(w, HLO_(and), hlo_bitcast(w, x, m->i), hlo_integer(w, m->integer, ~sign));
    hlo_value bit =
        hlo_2(w, HLO_(and), hlo_bitcast(w, s, m->i), hlo_integer(w, m->integer, sign));
    return hlo_bitcast(w, hlo_2(w, HLO_(or), size, bit), m->d);
}

// A large number that is added and taken away again rounds, and compilers that take constants of sums together
// would undo it: they do not see this one.
static hlo_value number(struct machine *m, double c)
{
    hlo_value x = hlo_number(m->w, m->number, c);
    return isfinite(c) && fabs(c) >= 0x1p20 ? hlo_1(m->w, HLO_(optimization_barrier), x) : x;
}

#define V hlo_value
#define I hlo_value
#define B hlo_value
#define M_ struct machine *machine,
#define M_ARG machine,

#define W machine->w
#define K(c) number(machine, (double)(c))
#define KI(c) hlo_integer(W, machine->integer, (uint64_t)(c))
#define ADD(a, c) hlo_2(W, HLO_(add), a, c)
#define SUB(a, c) hlo_2(W, HLO_(subtract), a, c)
#define MUL(a, c) hlo_2(W, HLO_(multiply), a, c)
#define DIV(a, c) hlo_2(W, HLO_(divide), a, c)
#define DIV_OF_UNIT(a, c) DIV(a, c)
#define SQRT(a) hlo_1(W, HLO_(sqrt), a)
#define FMA(a, c, d) hlo_fma(W, a, c, d)
#define NEG(a) hlo_1(W, HLO_(negate), a)
#define ABS(a) hlo_1(W, HLO_(abs), a)
#define COPYSIGN(a, s) with_sign(machine, a, s)
#define RINT(a) hlo_1(W, HLO_(round_nearest_even), a)
#define LT(a, c) hlo_compare(W, "LT", false, a, c)
#define LE(a, c) hlo_compare(W, "LE", false, a, c)
#define GT(a, c) hlo_compare(W, "GT", false, a, c)
#define GE(a, c) hlo_compare(W, "GE", false, a, c)
#define EQ(a, c) hlo_compare(W, "EQ", false, a, c)
#define NE(a, c) hlo_compare(W, "NE", false, a, c)
#define BAND(a, c) hlo_2(W, HLO_(and), a, c)
#define BOR(a, c) hlo_2(W, HLO_(or), a, c)
#define BNOT(a) hlo_1(W, HLO_(not), a)
#define SELECT(p, x, y) hlo_select(W, p, x, y)
#define SELECTI(p, x, y) hlo_select(W, p, x, y)
#define BITS(a) hlo_bitcast(W, a, machine->i)
#define FLOAT_OF_BITS(i) hlo_bitcast(W, i, machine->d)
#define IADD(i, j) hlo_2(W, HLO_(add), i, j)
#define ISUB(i, j) hlo_2(W, HLO_(subtract), i, j)
#define IAND(i, j) hlo_2(W, HLO_(and), i, j)
#define IOR(i, j) hlo_2(W, HLO_(or), i, j)
#define IXOR(i, j) hlo_2(W, HLO_(xor), i, j)
#define ISHL(i, n) hlo_2(W, HLO_(shift_left), i, KI(n))
#define IUSHR(i, n) hlo_2(W, HLO_(shift_right_logical), i, KI(n))
#define ILT(i, j) hlo_compare(W, "LT", false, i, j)
#define IEQ(i, j) hlo_compare(W, "EQ", false, i, j)
#define INE(i, j) hlo_compare(W, "NE", false, i, j)

#define MATH_BITS 32
#include "base/math/elementary.inc"
#undef MATH_BITS
#define MATH_BITS 64
#include "base/math/elementary.inc"
#undef MATH_BITS

struct form {
    const char *name;
    hlo_value (*unary[2])(struct machine *m, hlo_value x); // by width: 32, 64
    hlo_value (*binary[2])(struct machine *m, hlo_value x, hlo_value y);
};

#define ARITY_1(name) .unary = {name##_32, name##_64}
#define ARITY_2(name) .binary = {name##_32, name##_64}
static const struct form forms[] = {
#define MATH(name, arity, range) {#name, ARITY_##arity(name)},
#include "base/math/math.def"
#undef MATH
};

// What StableHLO has itself.
static const struct {
    const char *name;
    enum mlir_code code;
} known[] = {
    {"exp", HLO_(exponential)},    {"expm1", HLO_(exponential_minus_one)},
    {"logistic", HLO_(logistic)},  {"log", HLO_(log)},
    {"log1p", HLO_(log_plus_one)}, {"sin", HLO_(sine)},
    {"cos", HLO_(cosine)},         {"tan", HLO_(tan)},
    {"tanh", HLO_(tanh)},          {"rsqrt", HLO_(rsqrt)},
    {"cbrt", HLO_(cbrt)},          {"atan2", HLO_(atan2)},
    {"pow", HLO_(power)},
};

hlo_value hlo_math(struct hlo_writer *w, const char *name, hlo_value x, hlo_value y)
{
    jot_dtype d = hlo_dtype(x), i = d == JOT_F64 ? JOT_I64 : JOT_I32;
    struct machine m = {w, x->type, hlo_type_with(w, x->type, i), d, i};
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        if (!strcmp(known[k].name, name))
            return y ? hlo_2(w, known[k].code, x, y) : hlo_1(w, known[k].code, x);
    const struct form *form = forms;
    while (strcmp(form->name, name) != 0)
        form++;
    bool wide = d == JOT_F64;
    return form->unary[wide] ? form->unary[wide](&m, x) : form->binary[wide](&m, x, y);
}
