// SPDX-License-Identifier: Apache-2.0
// Result types: the checks every op shares, driven by its row, and then the rule of its shape
// column.  Messages do not say where: the tracer puts the user's line and call in front.
#include "ir/infer.h"

struct type_word {
    bool (*accepts)(jot_dtype dtype);
    const char *takes, *advice;
};

static bool is_any(jot_dtype d) { return dtype_is_valid((int)d); }

static bool is_num(jot_dtype d) { return d != JOT_BOOL; }

static bool is_real(jot_dtype d) { return !dtype_is_complex(d); }

static bool is_ordered(jot_dtype d) { return !dtype_is_complex(d) && d != JOT_BOOL; }

static bool is_bits(jot_dtype d) { return dtype_is_integer(d) || d == JOT_BOOL; }

static bool is_wide(jot_dtype d) { return dtype_is_inexact(d) && !dtype_is_half(d); }

// One for each word of the types column.
static const struct type_word types_any = {is_any, "anything", ""};
static const struct type_word types_num = {is_num, "numbers", "convert it first"};
static const struct type_word types_ordered = {is_ordered, "integers and floats",
                                               "convert it first, or take a part of it"};
static const struct type_word types_real = {is_real, "real operands",
                                            "take its real or imaginary part, or its abs"};
static const struct type_word types_inexact = {dtype_is_inexact, "floats and complex numbers",
                                               "convert it first"};
static const struct type_word types_float = {dtype_is_float, "floats",
                                             "convert it first, or take a part of it"};
static const struct type_word types_integer = {dtype_is_integer, "integers",
                                               "convert it first"};
static const struct type_word types_bits = {is_bits, "integers and bool", "convert it first"};
static const struct type_word types_wide = {is_wide, "f32, f64, c64 and c128",
                                            "convert it first"};
// No row uses the word at the moment.
static const struct type_word types_bool JOT_UNUSED = {dtype_is_bool, "bool",
                                                       "compare it with 0 first"};
static const struct type_word types_complex = {dtype_is_complex, "complex numbers",
                                               "convert it first"};
struct op_rule {
    const struct type_word *types;
    bool (*infer)(struct ir_infer *call);
};

static const struct op_rule rules[IR_OP_COUNT] = {
#define OP(name, in, out, class, domain, types, shape, ...)                                    \
    [IR_##name] = {&types_##types, infer_##shape},
#include "ir/ops.def"
#undef OP
};

bool infer_dims_fit(jot_dtype dtype, int rank, const int64_t *dims)
{
    int64_t bytes = dtype_get(dtype)->bytes;
    if (rank > IR_MAX_RANK)
        return false;
    for (int i = 0; i < rank; i++) {
        if (dims[i] < 0)
            return false;
        if (dims[i] > 1 &&
            (__builtin_mul_overflow(bytes, dims[i], &bytes) || bytes > INFER_MAX_BYTES))
            return false;
    }
    return true;
}

const char *infer_dims_text(const struct ir_infer *call, jot_dtype dtype, int rank,
                            const int64_t *dims)
{
    struct strbuf s = strbuf_make(call->b->module->arena);
    strbuf_printf(&s, "%s[", dtype_get(dtype)->name);
    for (int i = 0; i < rank; i++)
        strbuf_printf(&s, i ? ",%lld" : "%lld", (long long)dims[i]);
    strbuf_add(&s, "]");
    return s.text;
}

bool infer_result(struct ir_infer *call, struct ir_type t)
{
    call->n_out = 1;
    call->types[0] = t;
    return true;
}

bool infer_result_dims(struct ir_infer *call, jot_dtype dtype, int rank, const int64_t *dims)
{
    if (rank > IR_MAX_RANK)
        return infer_fail(call, JOT_ERR_SHAPE, "a result of %d axes: at most %d", rank,
                          IR_MAX_RANK);
    for (int i = 0; i < rank; i++) {
        if (dims[i] < 0)
            return infer_fail(call, JOT_ERR_SHAPE, "size %lld of axis %d is negative",
                              (long long)dims[i], i);
    }
    if (!infer_dims_fit(dtype, rank, dims))
        return infer_fail(call, JOT_ERR_SHAPE, "%s is larger than 2^62 bytes",
                          infer_dims_text(call, dtype, rank, dims));
    return infer_result(call, ir_type_make(call->b->module, dtype, rank, dims));
}

bool infer_int(struct ir_infer *call, enum ir_key key, int64_t *out)
{
    const struct ir_field *f = ir_field_find(call->attrs, key);
    if (!f || f->count != 1)
        return infer_fail(call, JOT_ERR_ARGUMENT, "%s needs the attribute %s, one number",
                          infer_name(call), ir_key_table[key].name);
    *out = f->ints[0];
    return true;
}

const int64_t *infer_ints(struct ir_infer *call, enum ir_key key, int count)
{
    int n = 0;
    const int64_t *list = ir_attr_ints(call->attrs, key, &n);
    if (n == count)
        return list;
    ir_fail(call->b, JOT_ERR_ARGUMENT, "%s has %d numbers in the attribute %s and needs %d",
            infer_name(call), n, ir_key_table[key].name, count);
    return NULL;
}

bool infer_dtype(struct ir_infer *call, jot_dtype *out)
{
    int64_t number;
    if (!infer_int(call, IR_KEY_dtype, &number))
        return false;
    if (number < 0 || number >= DTYPE_COUNT)
        return infer_fail(call, JOT_ERR_DTYPE, "%lld is not a dtype: they are 0 to %d",
                          (long long)number, DTYPE_COUNT - 1);
    *out = (jot_dtype)number;
    return true;
}

bool infer_axis(struct ir_infer *call, struct ir_type t, int64_t axis)
{
    if (axis >= 0 && axis < t.rank)
        return true;
    if (t.rank == 0)
        return infer_fail(call, JOT_ERR_SHAPE, "axis %lld of %s: it has no axes",
                          (long long)axis, infer_text(call, t));
    // Users may count from the end; by the time there is a node, the axis is resolved.
    if (axis < 0 && axis >= -(int64_t)t.rank)
        return infer_fail(call, JOT_ERR_SHAPE,
                          "axis %lld of %s: nodes count from 0: write %lld", (long long)axis,
                          infer_text(call, t), (long long)axis + t.rank);
    return infer_fail(call, JOT_ERR_SHAPE, "axis %lld of %s: axes are %d to %d",
                      (long long)axis, infer_text(call, t), -t.rank, t.rank - 1);
}

bool infer_axes(struct ir_infer *call, struct ir_type t, int n, const int64_t *axes)
{
    for (int i = 0; i < n; i++) {
        if (!infer_axis(call, t, axes[i]))
            return false;
        if (i && axes[i] == axes[i - 1])
            return infer_fail(call, JOT_ERR_SHAPE, "axis %lld of %s is listed twice",
                              (long long)axes[i], infer_text(call, t));
        if (i && axes[i] < axes[i - 1])
            return infer_fail(call, JOT_ERR_SHAPE,
                              "axis %lld after axis %lld of %s: %s takes its "
                              "axes in increasing order",
                              (long long)axes[i], (long long)axes[i - 1], infer_text(call, t),
                              infer_name(call));
    }
    return true;
}

bool infer_one_dtype(struct ir_infer *call, int first)
{
    for (int i = first + 1; i < call->n_in; i++) {
        jot_dtype a = ir_dtype(infer_in(call, first)), b = ir_dtype(infer_in(call, i));
        if (a != b)
            return infer_fail(call, JOT_ERR_DTYPE, "%s and %s operands: convert one",
                              dtype_get(a)->name, dtype_get(b)->name);
    }
    return true;
}

// Whether the operand says where elements are: indices are integers whatever the elements are.
static bool is_index(const struct ir_op_info *info, int i)
{
    if (info->op_class != IR_CLASS_INDEX && info->op_class != IR_CLASS_UPDATE)
        return false;
    return info->in == IR_VARIADIC ? i > (info->op_class == IR_CLASS_UPDATE) : i == 1;
}

static bool check_operands(struct ir_infer *call)
{
    const struct ir_op_info *info = ir_op_get(call->op);
    if (info->in != IR_VARIADIC && call->n_in != info->in)
        return infer_fail(call, JOT_ERR_ARGUMENT, "%s takes %d operand%s, not %d", info->name,
                          info->in, info->in == 1 ? "" : "s", call->n_in);
    const struct type_word *word = rules[call->op].types;
    for (int i = 0; i < call->n_in; i++) {
        struct ir_type t = infer_in(call, i);
        if (!is_index(info, i) && !word->accepts(ir_dtype(t)))
            return infer_fail(call, JOT_ERR_DTYPE, "%s of %s: it takes %s: %s", info->name,
                              infer_text(call, t), word->takes, word->advice);
    }
    return true;
}

bool ir_infer(struct ir_infer *call)
{
    if ((unsigned)call->op >= IR_OP_COUNT)
        return infer_fail(call, JOT_ERR_INTERNAL, "%d is not an op", (int)call->op);
    call->n_out = 0;
    call->types[0] = (struct ir_type){0};
    if (!check_operands(call) || !rules[call->op].infer(call))
        return false;
    if (call->n_out > UINT16_MAX)
        return infer_fail(call, JOT_ERR_SHAPE, "%s with %d results: at most %d",
                          infer_name(call), call->n_out, UINT16_MAX);
    // What varies over a named axis makes every result vary over it; bodies and collectives say it
    // themselves.
    if (!ir_has_bodies(call->op) && call->op != IR_barrier &&
        ir_op_class(call->op) != IR_CLASS_COLLECTIVE) {
        for (int i = 0; i < call->n_in; i++) {
            for (int k = 0; k < call->n_out; k++)
                call->types[k].varies |= infer_in(call, i).varies;
        }
    }
    return true;
}
