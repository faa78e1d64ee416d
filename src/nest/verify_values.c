// SPDX-License-Identifier: Apache-2.0
// What must hold of the values of a nest: uses, types of operations and of what is combined.
#include "nest/verify.h"

// --- values

const char *verify_dtype_text(int d)
{
    return dtype_is_valid(d) ? dtype_get((jot_dtype)d)->name : "no type";
}

int verify_dtype_of(const struct verifier *v, nest_id value)
{
    return value < v->nest->values.count ? (int)v->nest->values.at[value].dtype : -1;
}

bool verify_use(struct verifier *v, nest_id value)
{
    if (value >= v->nest->values.count) {
        nest_fault(v, "there is no value %u", value);
        return false;
    }
    if (v->value_state[value] == VALUE_IN_SCOPE)
        return true;
    nest_fault(v, "value %u is %s", value,
               v->value_state[value] ? "used outside the block that defines it"
                                     : "used before it is defined");
    return false;
}

void verify_type(struct verifier *v, nest_id value, int dtype, const char *what)
{
    if (verify_use(v, value) && verify_dtype_of(v, value) != dtype)
        nest_fault(v, "%s is %s, not %s", what, verify_dtype_text(verify_dtype_of(v, value)),
                   verify_dtype_text(dtype));
}

void verify_define(struct verifier *v, nest_id value, int dtype)
{
    if (value >= v->nest->values.count) {
        nest_fault(v, "there is no value %u for its result", value);
        return;
    }
    if (v->value_state[value] != VALUE_UNDEFINED)
        nest_fault(v, "value %u is defined twice", value);
    if (!dtype_is_valid(dtype) || verify_dtype_of(v, value) != dtype)
        nest_fault(v, "result %u is declared %s and computed as %s", value,
                   verify_dtype_text(verify_dtype_of(v, value)), verify_dtype_text(dtype));
    if (v->nest->values.at[value].statement != v->statement)
        nest_fault(v, "value %u does not name the statement that defines it", value);
    v->value_state[value] = VALUE_IN_SCOPE;
}

bool verify_results(struct verifier *v, const struct nest_statement *s, uint32_t n)
{
    if (s->n_results == n)
        return true;
    nest_fault(v, "it has %u results, not %u", s->n_results, n);
    return false;
}

void verify_index(struct verifier *v, const struct nest_index *x)
{
    const struct nest *n = v->nest;
    for (uint32_t i = 0; i < x->count; i++) {
        const struct nest_term *t = &x->terms[i];
        if (t->is_value) {
            int d = verify_dtype_of(v, t->id);
            if (verify_use(v, t->id) && (d < 0 || !dtype_is_integer((jot_dtype)d)))
                nest_fault(v, "value %u in an index is %s, not an integer", t->id,
                           verify_dtype_text(d));
        } else if (t->id >= n->axes.count) {
            nest_fault(v, "there is no axis %u", t->id);
        } else if (!v->axis_open[t->id]) {
            nest_fault(v, "axis %s is used outside its loop", n->axes.at[t->id].name);
        }
        bool sorted = i == 0 || x->terms[i - 1].is_value < t->is_value ||
                      (x->terms[i - 1].is_value == t->is_value && x->terms[i - 1].id < t->id);
        if (!t->factor || !sorted)
            nest_fault(v, "the terms of its index are not sorted and merged");
    }
}

// --- ops

static bool fits_types(const char *word, jot_dtype d)
{
    bool is_complex = dtype_is_complex(d), is_bool = dtype_is_bool(d);
    static const char *const words[] = {"any",   "num",     "ordered", "real", "inexact",
                                        "float", "integer", "bits",    "bool", "complex"};
    const bool fits[] = {
        true,
        !is_bool,
        !is_complex && !is_bool,
        !is_complex,
        dtype_is_inexact(d),
        dtype_is_float(d),
        dtype_is_integer(d),
        dtype_is_integer(d) || is_bool,
        is_bool,
        is_complex,
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcmp(words[i], word))
            return fits[i];
    return false;
}

// The type of the result of an op on operands of type d, by the word of its shape column; -1 for
// what convert and bitcast may choose.
static int result_type(const char *shape, jot_dtype d)
{
    if (!strcmp(shape, "predicate"))
        return JOT_BOOL;
    if (!strcmp(shape, "real"))
        return dtype_real(d);
    if (!strcmp(shape, "complex"))
        return dtype_complex(d);
    if (!strcmp(shape, "convert") || !strcmp(shape, "bitcast"))
        return -1;
    return d;
}

static void check_bits(struct verifier *v, const struct nest_statement *s, jot_dtype d)
{
    if (s->op == IR_integer_pow && s->bits[0] < 0 && dtype_is_integer(d))
        nest_fault(v, "an integer has no negative powers");
    if (s->op == IR_reduce_precision &&
        (s->bits[0] < 1 || s->bits[0] > 11 || s->bits[1] < 0 || s->bits[1] > 52))
        nest_fault(v, "there are 1 to 11 exponent and 0 to 52 mantissa bits");
    if (s->op == IR_bitcast && dtype_is_valid((int)s->dtype) &&
        dtype_get(d)->bytes != dtype_get(s->dtype)->bytes)
        nest_fault(v, "a bitcast of %s to %s", verify_dtype_text((int)d),
                   verify_dtype_text((int)s->dtype));
    if (s->op == IR_threefry2x32 && d != JOT_U32)
        nest_fault(v, "it takes u32");
    if (s->op == IR_complex && d != JOT_F32 && d != JOT_F64)
        nest_fault(v, "complex numbers have f32 or f64 parts");
}

// An update of an element that no MAP op is.
static bool is_update(uint16_t op)
{
    return op < IR_OP_COUNT && ir_op_class((enum ir_op)op) == IR_CLASS_UPDATE &&
           ir_is_fold((enum ir_op)op) && ir_op_get((enum ir_op)op)->pair == IR_OP_COUNT;
}

void verify_op(struct verifier *v, const struct nest_statement *s)
{
    bool is_map = s->op < IR_OP_COUNT && ir_op_class((enum ir_op)s->op) == IR_CLASS_MAP;
    if (!is_map && !is_update(s->op)) {
        nest_fault(v, "it is not elementwise");
        return;
    }
    const struct ir_op_info *info = ir_op_get((enum ir_op)s->op);
    int n_in = is_map ? info->in : 2;
    if (s->n_in != (uint32_t)n_in) {
        nest_fault(v, "it takes %d operands, not %u", n_in, s->n_in);
        return;
    }
    for (uint32_t i = 0; i < s->n_in; i++)
        if (!verify_use(v, s->in[i]))
            return;
    uint32_t first = s->op == IR_select;
    if (first && verify_dtype_of(v, s->in[0]) != JOT_BOOL)
        nest_fault(v, "its first operand is %s, not bool",
                   verify_dtype_text(verify_dtype_of(v, s->in[0])));
    int d = verify_dtype_of(v, s->in[first]);
    for (uint32_t i = first; i < s->n_in; i++)
        if (verify_dtype_of(v, s->in[i]) != d)
            nest_fault(v, "its operands are %s and %s", verify_dtype_text(d),
                       verify_dtype_text(verify_dtype_of(v, s->in[i])));
    if (!dtype_is_valid(d) || !fits_types(info->types, (jot_dtype)d) ||
        (dtype_is_complex((jot_dtype)d) && !info->has_complex && s->op != IR_convert)) {
        nest_fault(v, "it does not take %s", verify_dtype_text(d));
        return;
    }
    int result = result_type(info->shape, (jot_dtype)d);
    if (result >= 0 && result != (int)s->dtype)
        nest_fault(v, "its result is %s, not %s", verify_dtype_text(result),
                   verify_dtype_text((int)s->dtype));
    check_bits(v, s, (jot_dtype)d);
    if (verify_results(v, s, (uint32_t)info->out))
        for (uint32_t i = 0; i < s->n_results; i++)
            verify_define(v, s->result + i, (int)s->dtype);
}

// --- combiners

bool verify_is_scan_op(uint16_t op)
{
    return op < IR_OP_COUNT && (ir_op_class((enum ir_op)op) == IR_CLASS_REDUCE ||
                                ir_op_class((enum ir_op)op) == IR_CLASS_CUMULATIVE);
}

bool verify_is_put_op(uint16_t op)
{
    return op == IR_fma || (op < IR_OP_COUNT && ir_op_class((enum ir_op)op) == IR_CLASS_REDUCE);
}

bool verify_is_fold_op(uint16_t op)
{
    return verify_is_put_op(op) ||
           (op < IR_OP_COUNT && ir_op_class((enum ir_op)op) == IR_CLASS_ARG);
}

// A half accumulates in f32, unless nothing is rounded.
void verify_accumulated(struct verifier *v, uint16_t op, int from, int to)
{
    bool is_half = dtype_is_valid(from) && dtype_is_half((jot_dtype)from);
    int wanted = is_half && !nest_is_free(op, (jot_dtype)from) ? (int)JOT_F32 : from;
    if (to != wanted && !(is_half && to == (int)JOT_F32))
        nest_fault(v, "combining %s gives %s, not %s", verify_dtype_text(from),
                   verify_dtype_text(wanted), verify_dtype_text(to));
}

static void check_order(struct verifier *v, uint16_t op, jot_dtype d, enum nest_order order,
                        enum nest_order strict)
{
    if (order != NEST_FREE && order != strict)
        nest_fault(v, "its order is %s or free, not %s", nest_order_names[strict],
                   (unsigned)order < NEST_ORDERS ? nest_order_names[order] : "?");
    else if (order == NEST_FREE && !nest_is_free(op, d))
        nest_fault(v, "%s of %s has an order", ir_op_get((enum ir_op)op)->name,
                   verify_dtype_text((int)d));
}

void verify_combine(struct verifier *v, uint16_t op, uint32_t n, const nest_id *values,
                    int result, enum nest_order order, enum nest_order strict)
{
    if (n != (op == IR_fma ? 2u : 1u)) {
        nest_fault(v, "%s combines %u values", ir_op_get((enum ir_op)op)->name, n);
        return;
    }
    for (uint32_t i = 0; i < n; i++)
        if (!verify_use(v, values[i]))
            return;
    int d = verify_dtype_of(v, values[0]);
    if (n == 2 && verify_dtype_of(v, values[1]) != d)
        nest_fault(v, "its values are %s and %s", verify_dtype_text(d),
                   verify_dtype_text(verify_dtype_of(v, values[1])));
    if (!dtype_is_valid(d) ||
        !fits_types(op == IR_fma ? "num" : ir_op_get((enum ir_op)op)->types, (jot_dtype)d))
        nest_fault(v, "%s does not take %s", ir_op_get((enum ir_op)op)->name,
                   verify_dtype_text(d));
    else
        check_order(v, op, (jot_dtype)d, order, strict);
    verify_accumulated(v, op, d, result);
}

void verify_combines(struct verifier *v, const struct nest_statement *s,
                     bool (*allowed)(uint16_t), enum nest_order strict)
{
    uint32_t results = 0;
    for (uint32_t i = 0; i < s->n_combines; i++) {
        const struct nest_combine *c = &s->combines[i];
        if (!allowed(c->op)) {
            nest_fault(v, "combiner %u is not one that it takes", i);
            return;
        }
        verify_combine(v, c->op, c->n, c->value, (int)c->dtype, c->order, strict);
        results += nest_combine_results(c->op);
    }
    verify_results(v, s, results);
}

void verify_define_combines(struct verifier *v, const struct nest_statement *s)
{
    uint32_t at = 0;
    for (uint32_t i = 0; i < s->n_combines && at < s->n_results; i++) {
        verify_define(v, s->result + at++, (int)s->combines[i].dtype);
        if (nest_combine_results(s->combines[i].op) == 2 && at < s->n_results)
            verify_define(v, s->result + at++, JOT_I64);
    }
}
