// SPDX-License-Identifier: Apache-2.0
// Nodes of elements.
#include "interop/from_graph.h"

#include "base/dtype.h"

#include <stdio.h>

#define HLO_(name) MLIR_OP_stablehlo_##name

static hlo_value stretched(struct hlo_node *n, uint32_t i)
{
    return hlo_stretch(n->w, n->in[i], n->type);
}

// ---- conversions ----

static hlo_value is_not_zero(struct hlo_writer *w, hlo_value x)
{
    return hlo_compare(w, "NE", false, x, hlo_number(w, x->type, 0));
}

static hlo_value real_of(struct hlo_writer *w, hlo_value x)
{
    return hlo_op(w, HLO_(real), hlo_type_with(w, x->type, dtype_real(hlo_dtype(x))), 1, &x,
                  NULL);
}

// Integers become halves by way of f32.
static hlo_value converted(struct hlo_writer *w, hlo_value x, jot_dtype to)
{
    jot_dtype from = hlo_dtype(x);
    if (from == to)
        return x;
    if (to == JOT_BOOL)
        return is_not_zero(w, x);
    if (dtype_is_complex(from) && !dtype_is_complex(to))
        x = real_of(w, x);
    if (dtype_is_half(to) && !dtype_is_inexact(from))
        x = hlo_convert(w, x, JOT_F32);
    return hlo_convert(w, x, to);
}

static hlo_value bitcast(struct hlo_writer *w, hlo_value x, jot_dtype to)
{
    if (hlo_dtype(x) == JOT_BOOL)
        x = hlo_convert(w, x, JOT_U8);
    return to == JOT_BOOL ? is_not_zero(w, x) : hlo_bitcast(w, x, to);
}

// ---- those that are one operation ----

static const struct {
    enum ir_op op;
    enum mlir_code code;
} others[] = {
    {IR_abs, HLO_(abs)},     {IR_real, HLO_(real)},    {IR_imag, HLO_(imag)},
    {IR_cbrt, HLO_(cbrt)},   {IR_atan2, HLO_(atan2)},  {IR_pow, HLO_(power)},
    {IR_add, HLO_(add)},     {IR_mul, HLO_(multiply)}, {IR_mul_z, HLO_(multiply)},
    {IR_max, HLO_(maximum)}, {IR_min, HLO_(minimum)},
};

enum mlir_code hlo_code(enum ir_op op)
{
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (others[i].op == op)
            return others[i].code;
    return graph_map_code(op);
}

// Of complex numbers StableHLO has no roundings and no order.
static bool has_code(enum ir_op op, enum mlir_code code, jot_dtype d)
{
    bool is_known = code != MLIR_N_CODES && !strcmp(mlir_rows[code].dialect, "stablehlo");
    bool is_ordered = op == IR_max || op == IR_min || op == IR_round_even;
    return is_known && !(is_ordered && dtype_is_complex(d));
}

static void write_operation(struct hlo_node *n, enum mlir_code code)
{
    hlo_value in[3];
    for (uint32_t i = 0; i < n->n->n_in; i++)
        in[i] = stretched(n, i);
    n->out[0] = hlo_op(n->w, code, n->type, n->n->n_in, in, NULL);
}

static void write_compare(struct hlo_node *n)
{
    static const char *const words[] = {"EQ", "NE", "LT", "LE", "GT", "GE"};
    hlo_value x = stretched(n, 0), y = stretched(n, 1);
    bool is_order = n->n->op != IR_eq && n->n->op != IR_ne;
    if (is_order && dtype_is_complex(hlo_dtype(x)))
        hlo_expand(n, (hlo_value[]){x, y}, n->out);
    else
        n->out[0] = hlo_compare(n->w, words[n->n->op - IR_eq], false, x, y);
}

static void write_reduce_precision(struct hlo_node *n)
{
    struct hlo_attrs a = {0};
    hlo_int(n->w, &a, "exponent_bits", ir_attr_int(n->n->attrs, IR_KEY_exponent_bits));
    hlo_int(n->w, &a, "mantissa_bits", ir_attr_int(n->n->attrs, IR_KEY_mantissa_bits));
    n->out[0] = hlo_op(n->w, HLO_(reduce_precision), n->type, 1, n->in, &a);
}

// ---- those that are composites ----

static const char *decomposition(struct hlo_node *n, const hlo_value *in)
{
    struct hlo_writer *w = n->w;
    enum ir_op op = (enum ir_op)n->n->op;
    for (uint32_t i = 0; i < w->decompositions.count; i++) {
        const struct hlo_decomposition *d = &w->decompositions.at[i];
        if (d->op == op && mlir_types_equal(d->type, in[0]->type))
            return d->name;
    }
    const struct mlir_type *types[4];
    for (uint32_t i = 0; i < n->n->n_in; i++)
        types[i] = in[i]->type;
    struct hlo_function f = hlo_open_function(w, ir_op_get(op)->name, n->n->n_in, types);
    hlo_value out[2];
    hlo_expand(n, f.block.block.args, out);
    const char *name = hlo_close_function(w, &f, n->n->n_out, out);
    vec_push(w->arena, &w->decompositions, (struct hlo_decomposition){op, in[0]->type, name});
    return name;
}

static void write_composite(struct hlo_node *n, enum mlir_code code)
{
    struct hlo_writer *w = n->w;
    struct hlo_attrs a = {0};
    hlo_value in[4];
    const struct mlir_type *types[2] = {n->type, n->type};
    const char *dialect = code == MLIR_N_CODES ? "jot" : "chlo";
    const char *name =
        code == MLIR_N_CODES ? ir_op_get((enum ir_op)n->n->op)->name : mlir_rows[code].name;
    char *whole = arena_allocate(w->arena, strlen(dialect) + strlen(name) + 2);
    sprintf(whole, "%s.%s", dialect, name);
    for (uint32_t i = 0; i < n->n->n_in; i++)
        in[i] = stretched(n, i);
    hlo_text(w, &a, "name", MLIR_STRING, whole);
    hlo_text(w, &a, "decomposition", MLIR_SYMBOL, decomposition(n, in));
    const struct mlir_op *op =
        hlo_emit(w, HLO_(composite), n->n->n_in, in, n->n->n_out, types, &a, 0, NULL);
    for (uint32_t i = 0; i < n->n->n_out; i++)
        n->out[i] = op->results[i];
}

static void write_expanded(struct hlo_node *n)
{
    hlo_value in[3];
    for (uint32_t i = 0; i < n->n->n_in; i++)
        in[i] = stretched(n, i);
    hlo_expand(n, in, n->out);
}

// As two operations, which tracing makes one again; of halves the product is exact in f32.
static hlo_value multiply_add(struct hlo_node *n)
{
    hlo_value in[3];
    jot_dtype d = mlir_elements[n->type->element].dtype;
    for (uint32_t i = 0; i < 3; i++)
        in[i] =
            dtype_is_half(d) ? hlo_convert(n->w, stretched(n, i), JOT_F32) : stretched(n, i);
    hlo_value sum = hlo_2(n->w, HLO_(add), hlo_2(n->w, HLO_(multiply), in[0], in[1]), in[2]);
    return hlo_convert(n->w, sum, d);
}

void hlo_map(struct hlo_node *n)
{
    struct hlo_writer *w = n->w;
    enum ir_op op = (enum ir_op)n->n->op;
    jot_dtype d = mlir_elements[n->type->element].dtype;
    enum mlir_code code = hlo_code(op);
    if (op == IR_convert)
        n->out[0] = converted(w, n->in[0], d);
    else if (op == IR_bitcast)
        n->out[0] = bitcast(w, n->in[0], d);
    else if (op == IR_reduce_precision)
        write_reduce_precision(n);
    else if (op == IR_guard)
        n->out[0] = stretched(n, 1);
    else if (op == IR_fma)
        n->out[0] = multiply_add(n);
    else if (op >= IR_eq && op <= IR_ge)
        write_compare(n);
    else if (op == IR_abs && dtype_is_unsigned(d))
        n->out[0] = n->in[0];
    else if (op == IR_sign && dtype_is_unsigned(d))
        write_expanded(n);
    else if (has_code(op, code, d))
        write_operation(n, code);
    else if (op == IR_integer_pow || op == IR_conj || op == IR_max || op == IR_min ||
             op == IR_round_even)
        write_expanded(n);
    else
        write_composite(n, code);
}
