// SPDX-License-Identifier: Apache-2.0
// Operations on elements.
#include "interop/to_graph.h"

#include "base/dtype.h"
#include "interop/from_graph.h"
#include "ir/attr.h"

#include "jot/special.h"

#include <math.h>

// ---- those that are one op ----

struct same {
    enum mlir_code code;
    enum ir_op op;
};

#define HLO_(name) MLIR_OP_stablehlo_##name
#define CHLO_(name) MLIR_OP_chlo_##name
static const struct same same[] = {
    {HLO_(negate), IR_neg},
    {HLO_(sign), IR_sign},
    {HLO_(floor), IR_floor},
    {HLO_(ceil), IR_ceil},
    {HLO_(round_nearest_even), IR_round_even},
    {HLO_(round_nearest_afz), IR_round_away},
    {HLO_(is_finite), IR_is_finite},
    {HLO_(exponential), IR_exp},
    {HLO_(exponential_minus_one), IR_expm1},
    {HLO_(log), IR_log},
    {HLO_(log_plus_one), IR_log1p},
    {HLO_(sqrt), IR_sqrt},
    {HLO_(rsqrt), IR_rsqrt},
    {HLO_(sine), IR_sin},
    {HLO_(cosine), IR_cos},
    {HLO_(tan), IR_tan},
    {HLO_(tanh), IR_tanh},
    {HLO_(logistic), IR_logistic},
    {HLO_(not), IR_not},
    {HLO_(popcnt), IR_popcount},
    {HLO_(count_leading_zeros), IR_clz},
    {HLO_(subtract), IR_sub},
    {HLO_(divide), IR_div},
    {HLO_(remainder), IR_rem},
    {HLO_(complex), IR_complex},
    {HLO_(and), IR_and},
    {HLO_(or), IR_or},
    {HLO_(xor), IR_xor},
    {HLO_(shift_left), IR_shl},
    {HLO_(shift_right_logical), IR_shr_logical},
    {HLO_(shift_right_arithmetic), IR_shr_arith},
    {HLO_(select), IR_select},
    {HLO_(clamp), IR_clamp},
    {CHLO_(acos), IR_acos},
    {CHLO_(acosh), IR_acosh},
    {CHLO_(asin), IR_asin},
    {CHLO_(asinh), IR_asinh},
    {CHLO_(atan), IR_atan},
    {CHLO_(atanh), IR_atanh},
    {CHLO_(cosh), IR_cosh},
    {CHLO_(sinh), IR_sinh},
    {CHLO_(tan), IR_tan},
    {CHLO_(digamma), IR_digamma},
    {CHLO_(erf), IR_erf},
    {CHLO_(erfc), IR_erfc},
    {CHLO_(erf_inv), IR_erf_inv},
    {CHLO_(lgamma), IR_lgamma},
    {CHLO_(next_after), IR_nextafter},
    {CHLO_(zeta), IR_zeta},
};

static enum ir_op find_same(enum mlir_code code)
{
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        if (same[i].code == code)
            return same[i].op;
    return IR_OP_COUNT;
}

enum mlir_code graph_map_code(enum ir_op op)
{
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        if (same[i].op == op)
            return same[i].code;
    return MLIR_N_CODES;
}

static void convert_same(struct graph_op *g)
{
    enum ir_op op = find_same(g->op->row->code);
    int n = ir_op_get(op)->in;
    if ((int)g->op->n_operands != n) {
        graph_refuse(g, "%u operands where it takes %d", g->op->n_operands, n);
        return;
    }
    g->out[0] = ir_build(g->b, op, n, g->in, NULL);
}

// ---- those that bools do by logic ----

struct logical {
    enum mlir_code code;
    enum ir_op number, boolean;
};

static const struct logical logical[] = {
    {HLO_(add), IR_add, IR_or},
    {HLO_(multiply), IR_mul, IR_and},
    {HLO_(maximum), IR_max, IR_or},
    {HLO_(minimum), IR_min, IR_and},
};

static const struct logical *find_logical(enum mlir_code code)
{
    for (size_t i = 0; i < sizeof logical / sizeof *logical; i++)
        if (logical[i].code == code)
            return &logical[i];
    return NULL;
}

static void convert_logical(struct graph_op *g)
{
    const struct logical *l = find_logical(g->op->row->code);
    bool is_bool = g->dtype == JOT_BOOL;
    g->out[0] = ir_map2(g->b, is_bool ? l->boolean : l->number, g->in[0], g->in[1]);
}

// ---- the rest ----

static int bits_of(jot_dtype d) { return dtype_get(d)->bits; }

static jot_dtype dtype_in(const struct graph_op *g, int i)
{
    return ir_dtype(ir_type_in(g->b, g->in[i]));
}

// The absolute value of a complex number, where it is one (graph_magnitude.c).
static void convert_select(struct graph_op *g)
{
    const struct mlir_value *z = graph_magnitude_of(g->frame, g->op);
    jot_value v = z ? trace_import("abs", g->frame->values[z->number]) : (jot_value){0, 0};
    if (z && !trace_is_error(v))
        g->out[0] = ir_abs(g->b, trace_strong(v));
    else
        convert_same(g);
}

static void convert_abs(struct graph_op *g)
{
    g->out[0] = dtype_is_unsigned(dtype_in(g, 0)) ? g->in[0] : ir_abs(g->b, g->in[0]);
}

static void convert_real(struct graph_op *g)
{
    g->out[0] = dtype_is_complex(dtype_in(g, 0)) ? ir_real(g->b, g->in[0]) : g->in[0];
}

static void convert_imag(struct graph_op *g)
{
    g->out[0] = dtype_is_complex(dtype_in(g, 0)) ? ir_imag(g->b, g->in[0])
                                                 : ir_zeros(g->b, ir_type_in(g->b, g->in[0]));
}

static void convert_conj(struct graph_op *g)
{
    g->out[0] = dtype_is_complex(dtype_in(g, 0)) ? ir_conj(g->b, g->in[0]) : g->in[0];
}

// exp(log(z) / 3), and 0 of 0.
static void convert_cbrt(struct graph_op *g)
{
    struct ir_builder *b = g->b;
    ir_id x = g->in[0];
    if (!dtype_is_complex(dtype_in(g, 0))) {
        g->out[0] = ir_cbrt(b, x);
        return;
    }
    ir_id root = ir_exp(b, ir_div(b, ir_log(b, x), ir_scalar_like(b, x, 3)));
    g->out[0] =
        ir_select(b, ir_eq(b, x, ir_scalar_like(b, x, 0)), ir_scalar_like(b, x, 0), root);
}

// -i log((x + i y) / sqrt(x^2 + y^2)) of y, x.
static void convert_atan2(struct graph_op *g)
{
    struct ir_builder *b = g->b;
    ir_id y = g->in[0], x = g->in[1];
    if (!dtype_is_complex(g->dtype)) {
        g->out[0] = ir_atan2(b, y, x);
        return;
    }
    jot_dtype part = dtype_real(g->dtype);
    ir_id zero = ir_scalar(b, part, 0), one = ir_scalar(b, part, 1);
    ir_id i = ir_complex(b, zero, one), minus_i = ir_complex(b, zero, ir_scalar(b, part, -1));
    ir_id sum = ir_add(b, x, ir_mul(b, i, y));
    ir_id norm = ir_sqrt(b, ir_add(b, ir_mul(b, x, x), ir_mul(b, y, y)));
    g->out[0] = ir_mul(b, minus_i, ir_log(b, ir_div(b, sum, norm)));
}

// By squaring; of a negative exponent what integers give: 1 / x is x for 1 and -1, and else 0.
static ir_id integer_power(struct graph_op *g)
{
    struct ir_builder *b = g->b;
    ir_id x = g->in[0], e = g->in[1];
    bool is_signed = dtype_is_signed(g->dtype);
    int bits = bits_of(g->dtype) - is_signed;
    ir_id one = ir_scalar_int(b, g->dtype, 1), zero = ir_scalar_int(b, g->dtype, 0);
    ir_id power = ir_full(b, ir_type_in(b, x), 1), square = x;
    for (int k = 0; k < bits; k++) {
        ir_id bit = ir_and(b, ir_shr_logical(b, e, ir_scalar_int(b, g->dtype, k)), one);
        power = ir_select(b, ir_ne(b, bit, zero), ir_mul(b, power, square), power);
        square = ir_mul(b, square, square);
    }
    if (!is_signed)
        return power;
    ir_id minus = ir_scalar_int(b, g->dtype, -1);
    ir_id sign = ir_select(b, ir_ne(b, ir_and(b, e, one), zero), minus, one);
    ir_id inverse =
        ir_select(b, ir_eq(b, x, one), one, ir_select(b, ir_eq(b, x, minus), sign, zero));
    return ir_select(b, ir_lt(b, e, zero), inverse, power);
}

static void convert_power(struct graph_op *g)
{
    bool is_integer = dtype_is_integer(g->dtype);
    g->out[0] = is_integer ? integer_power(g) : ir_pow(g->b, g->in[0], g->in[1]);
}

ir_id graph_total_order(struct ir_builder *b, ir_id x)
{
    jot_dtype d = ir_dtype(ir_type_in(b, x));
    if (!dtype_is_float(d))
        return x;
    jot_dtype integer = bits_of(d) == 16 ? JOT_I16 : bits_of(d) == 32 ? JOT_I32 : JOT_I64;
    ir_id bits = ir_bitcast(b, x, integer), zero = ir_scalar_int(b, integer, 0);
    int64_t most = INT64_MAX >> (64 - bits_of(d));
    ir_id turned = ir_xor(b, bits, ir_scalar_int(b, integer, most));
    return ir_select(b, ir_lt(b, bits, zero), turned, bits);
}

static void convert_compare(struct graph_op *g)
{
    static const struct {
        const char *word;
        enum ir_op op;
    } directions[] = {{"EQ", IR_eq}, {"NE", IR_ne}, {"LT", IR_lt},
                      {"LE", IR_le}, {"GT", IR_gt}, {"GE", IR_ge}};
    const char *direction = mlir_text(g->op, "comparison_direction");
    const char *type = mlir_text(g->op, "compare_type");
    ir_id x = g->in[0], y = g->in[1];
    if (type && !strcmp(type, "TOTALORDER")) {
        x = graph_total_order(g->b, x);
        y = graph_total_order(g->b, y);
    }
    for (size_t i = 0; i < sizeof directions / sizeof *directions; i++)
        if (direction && !strcmp(direction, directions[i].word)) {
            g->out[0] = ir_map2(g->b, directions[i].op, x, y);
            return;
        }
    graph_refuse(g, "comparison_direction is %s", direction ? direction : "missing");
}

static void convert_convert(struct graph_op *g)
{
    ir_id x = g->in[0];
    if (dtype_is_complex(dtype_in(g, 0)) && !dtype_is_complex(g->dtype))
        x = ir_real(g->b, x);
    // Rounded once, to floats of less bits than the type that holds them.
    bool is_same = ir_dtype(ir_type_in(g->b, x)) == g->dtype ||
                   graph_is_small_float(g->op->results[0]->type);
    g->out[0] = is_same ? x : ir_convert(g->b, x, g->dtype);
}

static void convert_reduce_precision(struct graph_op *g)
{
    const struct ir_attrs *attrs =
        ir_attrs(g->b->module, IR_INT(exponent_bits, mlir_int(g->op, "exponent_bits", 0)),
                 IR_INT(mantissa_bits, mlir_int(g->op, "mantissa_bits", 0)));
    g->out[0] = ir_build(g->b, IR_reduce_precision, 1, g->in, attrs);
}

// ---- chlo ----

static void convert_square(struct graph_op *g)
{
    g->out[0] = dtype_is_complex(g->dtype) ? ir_integer_pow(g->b, g->in[0], 2)
                                           : ir_mul(g->b, g->in[0], g->in[0]);
}

static void convert_is_infinite(struct graph_op *g)
{
    struct ir_builder *b = g->b;
    enum mlir_code code = g->op->row->code;
    ir_id x = code == CHLO_(is_inf) ? ir_abs(b, g->in[0]) : g->in[0];
    double infinity = code == CHLO_(is_neg_inf) ? -INFINITY : INFINITY;
    g->out[0] = ir_eq(b, x, ir_scalar_like(b, x, infinity));
}

// The upper half of a product of words of twice the bits.
static ir_id upper_half(struct graph_op *g, jot_dtype wide)
{
    struct ir_builder *b = g->b;
    ir_id x = ir_convert(b, g->in[0], wide), y = ir_convert(b, g->in[1], wide);
    ir_id bits = ir_scalar_int(b, wide, bits_of(g->dtype));
    enum ir_op shift = dtype_is_signed(wide) ? IR_shr_arith : IR_shr_logical;
    return ir_convert(b, ir_map2(b, shift, ir_mul(b, x, y), bits), g->dtype);
}

// The same of 64 bits, by halves of 32; of signed numbers less than of unsigned ones by what the
// signs stand for.
static ir_id upper_half_64(struct graph_op *g)
{
    struct ir_builder *b = g->b;
    ir_id half = ir_scalar_int(b, JOT_U64, 32), low = ir_scalar_int(b, JOT_U64, 0xffffffff);
    ir_id x = ir_bitcast(b, g->in[0], JOT_U64), y = ir_bitcast(b, g->in[1], JOT_U64);
    ir_id x0 = ir_and(b, x, low), x1 = ir_shr_logical(b, x, half);
    ir_id y0 = ir_and(b, y, low), y1 = ir_shr_logical(b, y, half);
    ir_id carry = ir_shr_logical(b, ir_mul(b, x0, y0), half);
    ir_id middle = ir_add(b, ir_mul(b, x1, y0), carry);
    ir_id other = ir_add(b, ir_mul(b, x0, y1), ir_and(b, middle, low));
    ir_id high = ir_add(b, ir_mul(b, x1, y1), ir_shr_logical(b, middle, half));
    high = ir_bitcast(b, ir_add(b, high, ir_shr_logical(b, other, half)), g->dtype);
    if (!dtype_is_signed(g->dtype))
        return high;
    ir_id zero = ir_scalar_int(b, g->dtype, 0);
    ir_id of_x = ir_select(b, ir_lt(b, g->in[0], zero), g->in[1], zero);
    ir_id of_y = ir_select(b, ir_lt(b, g->in[1], zero), g->in[0], zero);
    return ir_sub(b, ir_sub(b, high, of_x), of_y);
}

static void convert_mulhi(struct graph_op *g)
{
    static const jot_dtype wider[][2] = {
        {JOT_U16, JOT_I16}, {JOT_U32, JOT_I32}, {JOT_U64, JOT_I64}};
    int bits = bits_of(g->dtype);
    bool is_signed = dtype_is_signed(g->dtype);
    g->out[0] = bits == 64 ? upper_half_64(g)
                           : upper_half(g, wider[bits == 8    ? 0
                                                 : bits == 16 ? 1
                                                              : 2][is_signed]);
}

static void convert_special(struct graph_op *g)
{
    jot_value x = trace_value(g->in[0], false);
    jot_value y = g->op->n_operands > 1 ? trace_value(g->in[1], false) : x;
    jot_value v = g->op->row->code == CHLO_(polygamma) ? jot_polygamma(x, y) : jot_i1e(x);
    graph_take(g, 0, v);
}

static const struct {
    enum mlir_code code;
    graph_convert *convert;
} others[] = {
    {HLO_(abs), convert_abs},
    {HLO_(real), convert_real},
    {HLO_(imag), convert_imag},
    {HLO_(cbrt), convert_cbrt},
    {HLO_(atan2), convert_atan2},
    {HLO_(power), convert_power},
    {HLO_(compare), convert_compare},
    {HLO_(convert), convert_convert},
    {HLO_(reduce_precision), convert_reduce_precision},
    {CHLO_(conj), convert_conj},
    {CHLO_(square), convert_square},
    {CHLO_(is_inf), convert_is_infinite},
    {CHLO_(is_pos_inf), convert_is_infinite},
    {CHLO_(is_neg_inf), convert_is_infinite},
    {CHLO_(mulhi), convert_mulhi},
    {CHLO_(polygamma), convert_special},
    {CHLO_(bessel_i1e), convert_special},
};

graph_convert *graph_map_find(enum mlir_code code)
{
    if (code == HLO_(select))
        return convert_select;
    if (find_same(code) != IR_OP_COUNT)
        return convert_same;
    if (find_logical(code))
        return convert_logical;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (others[i].code == code)
            return others[i].convert;
    return NULL;
}
