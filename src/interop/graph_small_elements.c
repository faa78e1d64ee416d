// SPDX-License-Identifier: Apache-2.0
// Elements of fewer bits than any type of jot: integers of two and four bits, kept in bytes, and floats of
// eight and less, kept in f16, or f32, which hold all of their values.  What an operation computes is
// wrapped or rounded to them.
#include "interop/numbers.h"
#include "interop/to_graph.h"

#include "base/dtype.h"
#include "ir/indexing.h"

#include <math.h>

#define HLO_(name) MLIR_OP_stablehlo_##name

static const struct mlir_element_row *row_of(const struct mlir_type *t)
{
    return t->kind == MLIR_TENSOR ? &mlir_elements[t->element] : &mlir_elements[MLIR_NONE];
}

// ---- integers ----

static bool is_small_integer(const struct mlir_type *t)
{
    const struct mlir_element_row *e = row_of(t);
    return e->bits < 8 && (e->kind == 'i' || e->kind == 'u');
}

static ir_id wrapped(struct graph_op *g, ir_id x, const struct mlir_element_row *e)
{
    struct ir_builder *b = g->b;
    ir_id unused = ir_scalar_int(b, e->dtype, 8 - e->bits);
    enum ir_op shift = e->kind == 'i' ? IR_shr_arith : IR_shr_logical;
    return ir_map2(b, shift, ir_shl(b, x, unused), unused);
}

// The bits alone, whatever the sign.
static ir_id bits_alone(struct graph_op *g, ir_id x, const struct mlir_element_row *e)
{
    return ir_and(g->b, x, ir_scalar_int(g->b, e->dtype, (1 << e->bits) - 1));
}

// ---- floats ----

bool graph_is_small_float(const struct mlir_type *t)
{
    return row_of(t)->kind == 'f' && row_of(t)->bits <= 8;
}

// A float of f32 or f64 in parts.
struct wide {
    struct ir_builder *b;
    jot_dtype d, word;
    int mantissa; // bits
    ir_id
        least; // the exponent, as it stands in the bits, of the least number that is normal in the format
    ir_id sign;           // 1 or -1
    ir_id a;              // the magnitude
    ir_id exponent, unit; // of the magnitude, or the least, and of its last place there
};

static ir_id word(const struct wide *w, int64_t x) { return ir_scalar_int(w->b, w->word, x); }
static ir_id constant(const struct wide *w, double x) { return ir_scalar(w->b, w->d, x); }

static struct wide take_apart(struct ir_builder *b, ir_id x, const struct number_format *to)
{
    struct wide w = {.b = b, .d = ir_dtype(ir_type_in(b, x))};
    bool is_double = w.d == JOT_F64;
    w.word = is_double ? JOT_U64 : JOT_U32;
    w.mantissa = is_double ? 52 : 23;
    int bits = is_double ? 64 : 32, bias = is_double ? 1023 : 127;
    ir_id all = ir_bitcast(b, x, w.word);
    ir_id is_negative = ir_ne(b, ir_shr_logical(b, all, word(&w, bits - 1)), word(&w, 0));
    w.sign = ir_select(b, is_negative, constant(&w, -1), constant(&w, 1));
    w.a = ir_mul(b, x, w.sign);
    w.least = word(&w, bias + 1 - to->bias);
    ir_id exponent = ir_shr_logical(b, ir_shl(b, all, word(&w, 1)), word(&w, w.mantissa + 1));
    w.exponent = ir_max(b, exponent, w.least);
    ir_id of_unit = ir_sub(b, w.exponent, word(&w, to->mantissa));
    w.unit = ir_bitcast(b, ir_shl(b, of_unit, word(&w, w.mantissa)), w.d);
    return w;
}

// The value y of a rounded x, with the derivative of x.
static ir_id straight(struct ir_builder *b, ir_id x, ir_id y)
{
    ir_id change = ir_stop_gradient(b, ir_sub(b, y, x));
    return ir_select(b, ir_eq(b, x, y), x, ir_add(b, x, change));
}

static ir_id rounded(struct ir_builder *b, ir_id x, enum mlir_element e)
{
    const struct number_format *to = number_format(e);
    ir_id largest = ir_scalar_like(b, x, number_largest(e));
    if (to->flavour == NUMBER_FINITE)
        x = ir_clamp(b, ir_neg(b, largest), x, largest);
    struct wide w = take_apart(b, x, to);
    ir_id y = ir_mul(b, ir_round_even(b, ir_div(b, w.a, w.unit)), w.unit);
    double beyond = to->flavour == NUMBER_IEEE ? (double)INFINITY : (double)NAN;
    if (to->flavour != NUMBER_FINITE)
        y = ir_select(b, ir_gt(b, y, largest), constant(&w, beyond), y);
    y = ir_mul(b, straight(b, w.a, y), w.sign);
    if (to->flavour == NUMBER_FNUZ)
        y = ir_add(b, y, constant(&w, 0)); // -0 is 0
    if (to->flavour == NUMBER_FINITE)
        y = ir_select(b, ir_ne(b, x, x), constant(&w, -0.0), y);
    return y;
}

// The nearest power of two, of two as near the greater one; NaN of what is no positive number.
static ir_id rounded_to_scale(struct ir_builder *b, ir_id x)
{
    struct wide w = take_apart(b, x, number_format(MLIR_F8E8M0FNU));
    ir_id half = word(&w, (int64_t)1 << (w.mantissa - 1));
    ir_id bits = ir_add(b, ir_bitcast(b, x, w.word), half);
    bits = ir_shl(b, ir_shr_logical(b, bits, word(&w, w.mantissa)), word(&w, w.mantissa));
    ir_id y = ir_bitcast(b, bits, w.d);
    y = ir_select(b, ir_lt(b, x, constant(&w, 0x1.8p-127)), constant(&w, 0x1p-127), y);
    ir_id is_scale = ir_and(b, ir_gt(b, x, constant(&w, 0)),
                            ir_le(b, y, constant(&w, number_largest(MLIR_F8E8M0FNU))));
    return ir_select(b, is_scale, y, constant(&w, (double)NAN));
}

ir_id graph_round_small(struct ir_builder *b, ir_id x, enum mlir_element e)
{
    if (x == IR_NONE)
        return x;
    jot_dtype d = ir_dtype(ir_type_in(b, x));
    const struct dtype_info *info = dtype_get(d);
    jot_dtype wide = d == JOT_F64 || (info->kind != 'f' && info->bits > 16) ? JOT_F64 : JOT_F32;
    if (d != wide)
        x = ir_convert(b, x, wide);
    ir_id y = e == MLIR_F8E8M0FNU ? rounded_to_scale(b, x) : rounded(b, x, e);
    return wide == mlir_elements[e].dtype ? y : ir_convert(b, y, mlir_elements[e].dtype);
}

// ---- bits of floats ----

ir_id graph_bits_of_small(struct ir_builder *b, ir_id x, enum mlir_element e)
{
    const struct number_format *f = number_format(e);
    unsigned char nan = 0, infinity = 0;
    number_store(e, (double)NAN, &nan);
    number_store(e, (double)INFINITY, &infinity);
    if (ir_dtype(ir_type_in(b, x)) != JOT_F32)
        x = ir_convert(b, x, JOT_F32);
    struct wide w = take_apart(b, x, f);
    ir_id n = ir_convert(b, ir_min(b, ir_div(b, w.a, w.unit), constant(&w, 256)), w.word);
    ir_id bits = ir_shl(b, ir_sub(b, w.exponent, w.least), word(&w, f->mantissa));
    bits = ir_add(b, n, bits);
    if (e == MLIR_F8E8M0FNU)
        bits = ir_shr_logical(b, ir_bitcast(b, x, w.word), word(&w, w.mantissa));
    bits =
        ir_select(b, ir_eq(b, w.a, constant(&w, (double)INFINITY)), word(&w, infinity), bits);
    ir_id sign = ir_select(b, ir_lt(b, w.sign, constant(&w, 0)),
                           word(&w, 1 << (f->exponent + f->mantissa)), word(&w, 0));
    bits = e == MLIR_F8E8M0FNU ? bits : ir_or(b, bits, sign);
    return ir_convert(b, ir_select(b, ir_ne(b, x, x), word(&w, nan), bits), JOT_U8);
}

ir_id graph_small_of_bits(struct ir_builder *b, ir_id bits, enum mlir_element e)
{
    struct ir_type type = ir_type_in(b, bits);
    jot_dtype d = mlir_elements[e].dtype;
    int64_t n = 256, dims[IR_MAX_RANK + 1], one = 1, zero = 0;
    float table[256];
    for (int i = 0; i < n; i++)
        table[i] = (float)number_load(e, &(unsigned char){(unsigned char)i});
    ir_id values = ir_const(b, ir_type_make(b->module, JOT_F32, 1, &n), table);
    memcpy(dims, ir_dims(b->module, type), sizeof *dims * type.rank);
    dims[type.rank] = 1;
    ir_id index = ir_reshape(b, ir_convert(b, bits, JOT_I32), type.rank + 1, dims);
    struct ir_gather rows = {.n_collapsed = 1,
                             .collapsed_dims = &zero,
                             .n_map = 1,
                             .index_map = &zero,
                             .sizes = &one,
                             .mode = IR_MODE_CLIP};
    ir_id y = ir_gather(b, values, index, &rows);
    return d == JOT_F32 ? y : ir_convert(b, y, d);
}

// ---- operations ----

void graph_widen_small(struct graph_op *g)
{
    enum mlir_code code = g->op->row->code;
    bool counts_bits = code == HLO_(count_leading_zeros) || code == HLO_(popcnt) ||
                       code == HLO_(shift_right_logical);
    if (counts_bits && is_small_integer(g->op->operands[0]->type))
        g->in[0] = bits_alone(g, g->in[0], row_of(g->op->operands[0]->type));
}

void graph_narrow_small(struct graph_op *g)
{
    for (uint32_t i = 0; i < g->op->n_results && g->b->status == JOT_OK; i++) {
        const struct mlir_type *t = g->op->results[i]->type;
        const struct mlir_element_row *e = row_of(t);
        if (graph_is_small_float(t))
            g->out[i] = graph_round_small(g->b, g->out[i], t->element);
        if (!is_small_integer(t))
            continue;
        if (g->op->row->code == HLO_(count_leading_zeros))
            g->out[i] = ir_sub(g->b, g->out[i], ir_scalar_int(g->b, e->dtype, 8 - e->bits));
        g->out[i] = wrapped(g, g->out[i], e);
    }
}
