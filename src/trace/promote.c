// SPDX-License-Identifier: Apache-2.0
// Types of operands: promotion, NumPy broadcasting, lists of axes and sizes.
#include "trace/emit.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

static bool is_word(const char *a, const char *b) { return !strcmp(a, b); }

// What is wrong with operands of dtype d for the word, or NULL.
static const char *refuse(const char *types, jot_dtype d)
{
    bool is_complex = dtype_is_complex(d), is_bool = dtype_is_bool(d);
    if (is_word(types, "float") || is_word(types, "real") || is_word(types, "ordered")) {
        if (is_complex)
            return "is not defined for complex numbers";
    }
    if ((is_word(types, "num") || is_word(types, "ordered")) && is_bool)
        return "is not defined for bool: convert it to a number first";
    if (is_word(types, "integer") && !dtype_is_integer(d))
        return "takes integers";
    if (is_word(types, "bits") && !dtype_is_integer(d) && !is_bool)
        return "takes integers or bool";
    if (is_word(types, "complex") && !is_complex)
        return "takes complex numbers";
    return NULL;
}

bool trace_promote(const char *name, const char *types, int n, const jot_value *v,
                   struct trace_promoted *out, jot_value *out_error)
{
    const struct trace_slot *first = trace_slot_of(v[0]);
    jot_dtype d = (jot_dtype)first->dtype;
    bool weak = first->weak, is_all_weak = first->weak, is_scalar = trace_type(v[0]).rank == 0;
    for (int i = 1; i < n; i++) {
        const struct trace_slot *s = trace_slot_of(v[i]);
        if (d != (jot_dtype)s->dtype || weak != s->weak) // else the lattice has nothing to say
            d = dtype_promote(d, weak, (jot_dtype)s->dtype, s->weak, &weak);
        is_all_weak &= s->weak;
        is_scalar &= trace_type(v[i]).rank == 0;
    }
    if (is_word(types, "inexact") || is_word(types, "float"))
        d = weak ? (dtype_is_inexact(d) ? d : JOT_F32) : dtype_to_inexact(d);
    const char *problem = refuse(types, d);
    if (problem) {
        int at = 0; // the operand that is to blame
        while (at + 1 < n && !refuse(types, (jot_dtype)trace_slot_of(v[at])->dtype))
            at++;
        *out_error = trace_fail(name, JOT_ERR_DTYPE, "%s: %s", trace_type_text(v[at]), problem);
        return false;
    }
    // Arithmetic on C numbers alone stays as precise as in C until it meets a type.
    jot_dtype kept = d;
    if (is_all_weak && is_scalar && dtype_is_inexact(d))
        kept = dtype_is_complex(d) ? JOT_C128 : JOT_F64;
    *out = (struct trace_promoted){.seen = d, .dtype = kept, .weak = weak};
    return true;
}

// Whether an integer dtype holds x exactly.
static bool holds(const struct dtype_info *info, const struct trace_number *n)
{
    int64_t limit = INT64_C(1) << (info->bits < 64 ? info->bits - (info->kind == 'i') : 62);
    if (n->kind == 'u')
        return info->bits == 64 && info->kind == 'u';
    if (n->kind == 'b' || n->kind == 'i')
        return (info->kind == 'i' || n->i >= 0) &&
               (info->bits == 64 || (n->i >= -limit && n->i < limit));
    double top = ldexp(1, (int)info->bits - (info->kind == 'i'));
    return n->f >= (info->kind == 'i' ? -top : 0) && n->f < top && n->f == trunc(n->f);
}

bool trace_fits(const char *name, jot_value v, jot_dtype dtype, jot_value *out_error)
{
    const struct trace_number *n = trace_number_of(v);
    const struct dtype_info *info = dtype_get(dtype);
    if (!n || dtype_is_bool(dtype) || dtype_is_complex(dtype) ||
        (n->imag == 0 && (dtype_is_float(dtype) || holds(info, n))))
        return true;
    char text[64];
    if (n->imag != 0)
        snprintf(text, sizeof text, "%.17g + %.17gi", n->f, n->imag);
    else if (n->kind == 'f' || n->kind == 'c')
        snprintf(text, sizeof text, "%.17g", n->f);
    else
        snprintf(text, sizeof text, n->kind == 'u' ? "%" PRIu64 : "%" PRId64, n->i);
    *out_error = trace_fail(name, JOT_ERR_ARGUMENT, "%s cannot hold %s", info->name, text);
    return false;
}

// ---------------------------------------------------------------------------------------
// Broadcasting

static bool fail_broadcast(const char *name, jot_value a, jot_value b, jot_value *out_error)
{
    struct ir_module *m = trace_top()->module;
    struct ir_type ta = trace_type(a), tb = trace_type(b);
    const int64_t *da = ir_dims(m, ta), *db = ir_dims(m, tb);
    int most = ta.rank > tb.rank ? ta.rank : tb.rank;
    for (int k = 1; k <= ta.rank && k <= tb.rank; k++) {
        int64_t x = da[ta.rank - k], y = db[tb.rank - k];
        if (x == y || x == 1 || y == 1)
            continue;
        *out_error = trace_fail(
            name, JOT_ERR_SHAPE,
            "%s and %s do not broadcast: axis %d is %lld in one and %lld in "
            "the other",
            trace_type_text(a), trace_type_text(b), most - k, (long long)x, (long long)y);
        return false;
    }
    return true;
}

static ir_id with_rank(struct ir_builder *b, ir_id id, int rank)
{
    struct ir_type t = ir_type_in(b, id);
    if (t.rank == rank || t.rank == 0)
        return id;
    int64_t dims[IR_MAX_RANK];
    const int64_t *old = ir_dims(b->module, t);
    for (int i = 0; i < rank; i++)
        dims[i] = i < rank - t.rank ? 1 : old[i - (rank - t.rank)];
    return ir_reshape(b, id, rank, dims);
}

bool trace_align(const char *name, int n, const jot_value *v, ir_id *ids, jot_value *out_error)
{
    int rank = 0;
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < i; k++)
            if (!fail_broadcast(name, v[k], v[i], out_error))
                return false;
        int r = trace_type(v[i]).rank;
        rank = r > rank ? r : rank;
    }
    for (int i = 0; i < n; i++)
        ids[i] = with_rank(trace_builder(), ids[i], rank);
    return true;
}

// On truth values + is "or" and * is "and"; the larger is "or" and the smaller "and".
static enum ir_op op_of_bools(enum ir_op op)
{
    switch (op) {
    case IR_add:
    case IR_max:
        return IR_or;
    case IR_mul:
    case IR_min:
        return IR_and;
    default:
        return op;
    }
}

static bool are_bools(int n, const jot_value *v)
{
    for (int i = 0; i < n; i++)
        if (trace_slot_of(v[i])->dtype != JOT_BOOL)
            return false;
    return true;
}

// Floats that a step function of them leaves as they are: integers are integral already.
static bool is_rounding(const struct ir_op_info *info)
{
    return info->in == 1 && is_word(info->types, "float") && is_word(info->shape, "same") &&
           is_word(info->jvp, "zero");
}

jot_value trace_map(enum ir_op op, const char *name, int n, const jot_value *values)
{
    jot_value v[TRACE_MAX_OPERANDS], error;
    memcpy(v, values, sizeof *v * (size_t)n);
    if (!trace_ready(name, n, v, &error))
        return error;
    if (are_bools(n, v))
        op = op_of_bools(op);
    const struct ir_op_info *info = ir_op_get(op);
    if (is_rounding(info) && dtype_is_integer((jot_dtype)trace_slot_of(v[0])->dtype))
        return v[0];
    struct trace_promoted p;
    if (!trace_promote(name, info->types, n, v, &p, &error))
        return error;
    // Comparisons of numbers alone are no numbers.
    bool weak = p.weak && !is_word(info->shape, "predicate");
    ir_id ids[TRACE_MAX_OPERANDS];
    for (int i = 0; i < n; i++) {
        if (!trace_fits(name, v[i], p.dtype, &error))
            return error;
        ids[i] = trace_operand(v[i], p.dtype);
    }
    if (!trace_align(name, n, v, ids, &error))
        return error;
    return trace_result(name, ir_build(trace_builder(), op, n, ids, NULL), weak);
}

// ---------------------------------------------------------------------------------------
// Lists

static void fail_axis(const char *name, jot_value x, int rank, int axis, jot_value *out_error)
{
    const char *text = trace_type_text(x);
    *out_error =
        rank == 0
            ? trace_fail(name, JOT_ERR_ARGUMENT, "axis %d of %s, which has none", axis, text)
            : trace_fail(name, JOT_ERR_ARGUMENT, "axis %d of %s%s: axes are %d to %d", axis,
                         rank == trace_type(x).rank ? "" : "the result from ", text, -rank,
                         rank - 1);
}

bool trace_axis(const char *name, jot_value x, int axis, int64_t *out_axis,
                jot_value *out_error)
{
    int rank = trace_type(x).rank, at = axis < 0 ? axis + rank : axis;
    if (at < 0 || at >= rank) {
        fail_axis(name, x, rank, axis, out_error);
        return false;
    }
    *out_axis = at;
    return true;
}

bool trace_axes(const char *name, jot_value x, int rank, const int *axes, bool all_when_empty,
                int *out_n, int64_t *out_axes, bool *out_keep, jot_value *out_error)
{
    int n = 0;
    bool keep = false;
    uint64_t seen = 0;
    for (; axes && *axes != JOT_END; axes++) {
        if (*axes == JOT_KEEPDIMS && out_keep) {
            keep = true;
            continue;
        }
        int at = *axes < 0 ? *axes + rank : *axes;
        if (at < 0 || at >= rank) {
            fail_axis(name, x, rank, *axes, out_error);
            return false;
        }
        if (seen >> at & 1) {
            *out_error = trace_fail(name, JOT_ERR_ARGUMENT, "axis %d of %s is listed twice",
                                    *axes, trace_type_text(x));
            return false;
        }
        seen |= UINT64_C(1) << at;
        out_axes[n++] = at;
    }
    for (int i = 0; n == 0 && all_when_empty && i < rank; i++)
        out_axes[i] = i;
    *out_n = n == 0 && all_when_empty ? rank : n;
    if (out_keep)
        *out_keep = keep;
    return true;
}

bool trace_index(const char *name, jot_value x, int64_t axis, int64_t index, int64_t *out,
                 jot_value *out_error)
{
    int64_t n = ir_dims(trace_top()->module, trace_type(x))[axis];
    *out = index < 0 ? index + n : index;
    if (*out >= 0 && *out < n)
        return true;
    *out_error = n ? trace_fail(name, JOT_ERR_ARGUMENT,
                                "index %lld of axis %lld of %s: indices are %lld to %lld",
                                (long long)index, (long long)axis, trace_type_text(x),
                                (long long)-n, (long long)n - 1)
                   : trace_fail(name, JOT_ERR_ARGUMENT,
                                "index %lld of axis %lld of %s, which has no elements",
                                (long long)index, (long long)axis, trace_type_text(x));
    return false;
}

bool trace_sizes(const char *name, const int64_t *dims, int64_t least, int *out_rank,
                 int64_t *out_dims, jot_value *out_error)
{
    int n = 0;
    for (; dims && dims[n] != JOT_END; n++) {
        if (n == IR_MAX_RANK) {
            *out_error = trace_fail(name, JOT_ERR_SHAPE, "more than %d axes", IR_MAX_RANK);
            return false;
        }
        if (dims[n] < least) {
            *out_error = trace_fail(name, JOT_ERR_ARGUMENT,
                                    "size %lld of axis %d is negative%s", (long long)dims[n], n,
                                    least < 0 ? ", and not the -1 for what is left" : "");
            return false;
        }
        out_dims[n] = dims[n];
    }
    *out_rank = n;
    return true;
}

bool trace_is_dtype(const char *name, jot_dtype dtype, jot_value *out_error)
{
    if (dtype_is_valid((int)dtype))
        return true;
    *out_error = trace_fail(name, JOT_ERR_ARGUMENT, "%d is not a dtype", (int)dtype);
    return false;
}

bool trace_count(const char *name, int rank, const int64_t *dims, int64_t most, int64_t *out,
                 jot_value *out_error)
{
    bool is_empty = false;
    *out = 1;
    for (int i = 0; i < rank; i++) {
        is_empty = is_empty || dims[i] == 0;
        if (dims[i] > 0 && (__builtin_mul_overflow(*out, dims[i], out) || *out > most)) {
            *out_error =
                trace_fail(name, JOT_ERR_SHAPE,
                           "the sizes up to axis %d (%lld) make more than 2^%d numbers", i,
                           (long long)dims[i], __builtin_ctzll((uint64_t)most));
            return false;
        }
    }
    *out = is_empty ? 0 : *out;
    return true;
}

jot_value trace_like(const char *name, jot_value x, ir_id id)
{
    return trace_result(name, id, trace_slot_of(x)->weak);
}
