// SPDX-License-Identifier: Apache-2.0
// Result types of elementwise ops, constants and parameters.
#include "ir/infer.h"

// The extents that n types broadcast to and their rank, or -1 with the two that do not fit.
static int broadcast_dims(const struct ir_module *m, int n, const struct ir_type *types,
                          int64_t *dims, int *out_a, int *out_b)
{
    int rank = 0, from = 0;
    for (int i = 0; i < n; i++) {
        if (types[i].rank == 0)
            continue;
        *out_a = from;
        *out_b = i;
        const int64_t *d = ir_dims(m, types[i]);
        if (rank == 0) {
            rank = types[i].rank;
            from = i;
            memcpy(dims, d, (size_t)rank * sizeof *dims);
            continue;
        }
        if (types[i].rank != rank)
            return -1;
        for (int k = 0; k < rank; k++) {
            if (dims[k] == 1)
                dims[k] = d[k];
            else if (d[k] != 1 && d[k] != dims[k])
                return -1;
        }
    }
    return rank;
}

bool ir_broadcast_types(struct ir_module *m, int n, const struct ir_type *types,
                        struct ir_type *out)
{
    int64_t dims[IR_MAX_RANK];
    int a, b, rank = broadcast_dims(m, n, types, dims, &a, &b);
    if (n < 1 || rank < 0 || !infer_dims_fit(ir_dtype(types[0]), rank, dims))
        return false;
    *out = ir_type_make(m, ir_dtype(types[0]), rank, dims);
    for (int i = 0; i < n; i++)
        out->varies |= types[i].varies;
    return true;
}

// Names the axis, counted as NumPy aligns them, where two types part.
static bool fail_broadcast(struct ir_infer *call, struct ir_type a, struct ir_type b)
{
    const int64_t *da = ir_dims(call->b->module, a), *db = ir_dims(call->b->module, b);
    int most = a.rank > b.rank ? a.rank : b.rank, least = a.rank + b.rank - most;
    for (int k = 1; k <= least; k++) {
        int64_t x = da[a.rank - k], y = db[b.rank - k];
        if (x != y && x != 1 && y != 1)
            return infer_fail(
                call, JOT_ERR_SHAPE,
                "%s and %s do not broadcast: axis %d is %lld in one and %lld in the "
                "other",
                infer_text(call, a), infer_text(call, b), most - k, (long long)x, (long long)y);
    }
    return infer_fail(call, JOT_ERR_SHAPE,
                      "%s and %s have %d and %d axes: broadcast_in_dim one of them first",
                      infer_text(call, a), infer_text(call, b), a.rank, b.rank);
}

// All operands broadcast together, with the given dtype, to each result of the row.
static bool broadcast_to(struct ir_infer *call, jot_dtype dtype)
{
    int64_t dims[IR_MAX_RANK];
    struct ir_module *m = call->b->module;
    struct ir_type few[4], *types = few;
    int a = 0, b = 0;
    for (int i = 0; i < call->n_in; i++)
        types[i] = infer_in(call, i);
    int rank = broadcast_dims(m, call->n_in, types, dims, &a, &b);
    if (rank < 0) {
        // The first operands may fit each other and still, by a third, not the result.
        for (int i = 0; i < b; i++) {
            struct ir_type pair[2] = {types[i], types[b]}, unused;
            if (!ir_broadcast_types(m, 2, pair, &unused))
                return fail_broadcast(call, types[i], types[b]);
        }
        return fail_broadcast(call, types[a], types[b]);
    }
    if (!infer_result_dims(call, dtype, rank, dims))
        return false;
    struct ir_type t = call->types[0];
    call->n_out = ir_op_get(call->op)->out;
    if (call->n_out > 1)
        call->types = arena_array(m->arena, struct ir_type, call->n_out);
    for (int i = 0; i < call->n_out; i++)
        call->types[i] = t;
    return true;
}

// Attributes of elementwise ops that take some, and dtypes that their row cannot say.
static bool check_extras(struct ir_infer *call)
{
    int64_t n, e;
    jot_dtype dtype = ir_dtype(infer_in(call, 0));
    if (call->op == IR_integer_pow) {
        if (!infer_int(call, IR_KEY_exponent, &n))
            return false;
        if (n < 0 && dtype_is_integer(dtype))
            return infer_fail(
                call, JOT_ERR_ARGUMENT,
                "%s to the power %lld: integers have no negative powers: convert it "
                "to a float first",
                infer_text(call, infer_in(call, 0)), (long long)n);
    }
    if (call->op == IR_reduce_precision) {
        if (!infer_int(call, IR_KEY_exponent_bits, &e) ||
            !infer_int(call, IR_KEY_mantissa_bits, &n))
            return false;
        if (e < 1 || e > 11 || n < 0 || n > 52)
            return infer_fail(
                call, JOT_ERR_ARGUMENT,
                "%lld exponent and %lld mantissa bits: there are 1 to 11 and 0 to 52",
                (long long)e, (long long)n);
    }
    if (call->op == IR_threefry2x32 && dtype != JOT_U32)
        return infer_fail(call, JOT_ERR_DTYPE,
                          "threefry2x32 of %s: it takes u32: convert it first",
                          infer_text(call, infer_in(call, 0)));
    return true;
}

bool infer_same(struct ir_infer *call)
{
    return infer_one_dtype(call, 0) && check_extras(call) &&
           broadcast_to(call, ir_dtype(infer_in(call, 0)));
}

bool infer_real(struct ir_infer *call)
{
    return infer_one_dtype(call, 0) &&
           broadcast_to(call, dtype_real(ir_dtype(infer_in(call, 0))));
}

bool infer_complex(struct ir_infer *call)
{
    if (!infer_one_dtype(call, 0))
        return false;
    jot_dtype dtype = ir_dtype(infer_in(call, 0));
    if (dtype != JOT_F32 && dtype != JOT_F64)
        return infer_fail(
            call, JOT_ERR_DTYPE,
            "complex of %s: complex numbers have f32 or f64 parts: convert it first",
            infer_text(call, infer_in(call, 0)));
    return broadcast_to(call, dtype_complex(dtype));
}

bool infer_predicate(struct ir_infer *call)
{
    return infer_one_dtype(call, 0) && broadcast_to(call, JOT_BOOL);
}

bool infer_select(struct ir_infer *call)
{
    if (ir_dtype(infer_in(call, 0)) != JOT_BOOL)
        return infer_fail(call, JOT_ERR_DTYPE,
                          "select by %s: the first operand is bool: compare "
                          "it with 0 first",
                          infer_text(call, infer_in(call, 0)));
    return infer_one_dtype(call, 1) && broadcast_to(call, ir_dtype(infer_in(call, 1)));
}

bool infer_convert(struct ir_infer *call)
{
    jot_dtype dtype;
    return infer_dtype(call, &dtype) &&
           infer_result(call, ir_type_with(infer_in(call, 0), dtype));
}

bool infer_bitcast(struct ir_infer *call)
{
    jot_dtype to, from = ir_dtype(infer_in(call, 0));
    if (!infer_dtype(call, &to))
        return false;
    if (dtype_get(from)->bytes != dtype_get(to)->bytes)
        return infer_fail(call, JOT_ERR_DTYPE,
                          "bitcast of %s to %s: elements have %d and %d bytes",
                          infer_text(call, infer_in(call, 0)), dtype_get(to)->name,
                          dtype_get(from)->bytes, dtype_get(to)->bytes);
    // A bool is 0 or 1, and complex numbers become pairs: neither has bits of its own.
    if (from != to &&
        (from == JOT_BOOL || to == JOT_BOOL || dtype_is_complex(from) || dtype_is_complex(to)))
        return infer_fail(call, JOT_ERR_DTYPE,
                          "bitcast of %s to %s: it takes integers and floats",
                          infer_text(call, infer_in(call, 0)), dtype_get(to)->name);
    return infer_result(call, ir_type_with(infer_in(call, 0), to));
}

static bool check_data(struct ir_infer *call, struct ir_type t)
{
    const struct ir_field *data = ir_field_find(call->attrs, IR_KEY_data);
    int64_t bytes = ir_count(call->b->module, t) * dtype_get(ir_dtype(t))->bytes;
    int64_t have = data ? (int64_t)data->count : 0;
    if (have != bytes)
        return infer_fail(call, JOT_ERR_ARGUMENT,
                          "const of %s has %lld bytes of data, not %lld", infer_text(call, t),
                          (long long)have, (long long)bytes);
    for (int64_t i = 0; ir_dtype(t) == JOT_BOOL && i < have; i++) {
        if (((const uint8_t *)data->bytes)[i] > 1)
            return infer_fail(call, JOT_ERR_ARGUMENT,
                              "element %lld of a bool const is %d: 0 or 1", (long long)i,
                              ((const uint8_t *)data->bytes)[i]);
    }
    return true;
}

bool infer_given(struct ir_infer *call)
{
    jot_dtype dtype;
    int rank;
    const int64_t *dims = ir_attr_ints(call->attrs, IR_KEY_dims, &rank);
    if (call->op == IR_param)
        return infer_fail(call, JOT_ERR_INTERNAL, "param is made by ir_param, not as a node");
    return infer_dtype(call, &dtype) && infer_result_dims(call, dtype, rank, dims) &&
           (call->op != IR_const || check_data(call, call->types[0]));
}

bool infer_iota(struct ir_infer *call)
{
    int64_t axis;
    if (!infer_int(call, IR_KEY_axis, &axis) || !infer_given(call))
        return false;
    if (call->types[0].dtype == JOT_BOOL)
        return infer_fail(call, JOT_ERR_DTYPE, "iota of bool: it counts in numbers");
    return infer_axis(call, call->types[0], axis);
}
