// SPDX-License-Identifier: Apache-2.0
// Values from nothing: constants, ranges, diagonals.
#include "trace/emit.h"

#include "jot/shapes.h"

#include <math.h>

static jot_value full(const char *name, jot_dtype dtype, jot_value value, const int64_t *sizes)
{
    jot_value error;
    int rank;
    int64_t dims[IR_MAX_RANK];
    if (!trace_ready(name, 1, &value, &error) || !trace_is_dtype(name, dtype, &error) ||
        !trace_sizes(name, sizes, 0, &rank, dims, &error))
        return error;
    if (trace_type(value).rank)
        return trace_fail(name, JOT_ERR_SHAPE, "the value is %s, not one number",
                          trace_type_text(value));
    if (!trace_fits(name, value, dtype, &error))
        return error;
    ir_id id = trace_operand(value, dtype);
    if (rank)
        id = ir_broadcast_in_dim(trace_builder(), id, rank, dims, NULL);
    return trace_result(name, id, false);
}

jot_value jot_full_dims(jot_dtype dtype, jot_value value, const int64_t *dims)
{
    TRACE_RETURN(full("jot_full", dtype, value, dims));
}

jot_value jot_zeros_dims(jot_dtype dtype, const int64_t *dims)
{
    jot_value zero = jot_from_int(0);
    TRACE_RETURN(full("jot_zeros", dtype, zero, dims));
}

jot_value jot_ones_dims(jot_dtype dtype, const int64_t *dims)
{
    jot_value one = jot_from_int(1);
    TRACE_RETURN(full("jot_ones", dtype, one, dims));
}

#define MOST_CONSTANT (1 << 24) // elements

static jot_value constant(jot_dtype dtype, const void *data, const int64_t *sizes)
{
    const char *name = "jot_constant";
    jot_value error;
    int rank;
    int64_t dims[IR_MAX_RANK], count;
    if (!trace_ready(name, 0, NULL, &error) || !trace_is_dtype(name, dtype, &error) ||
        !trace_sizes(name, sizes, 0, &rank, dims, &error) ||
        !trace_count(name, rank, dims, MOST_CONSTANT, &count, &error))
        return error;
    if (!data && count)
        return trace_fail(name, JOT_ERR_ARGUMENT, "the data is NULL");
    struct ir_builder *b = trace_builder();
    ir_id id = ir_const(b, ir_type_make(b->module, dtype, rank, dims), data);
    if (dtype == JOT_BOOL)
        id = ir_ne(b, ir_const(b, ir_type_make(b->module, JOT_U8, rank, dims), data),
                   ir_scalar_int(b, JOT_U8, 0));
    return trace_result(name, id, false);
}

jot_value jot_constant_of(jot_dtype dtype, const void *data, const int64_t *dims)
{
    TRACE_RETURN(constant(dtype, data, dims));
}

static jot_value like(const char *name, jot_value x, jot_value value)
{
    jot_value v[] = {x, value}, error;
    if (!trace_ready(name, 2, v, &error))
        return error;
    if (trace_type(v[1]).rank)
        return trace_fail(name, JOT_ERR_SHAPE, "the value is %s, not one number",
                          trace_type_text(v[1]));
    struct ir_builder *b = trace_builder();
    struct ir_type t = trace_type(v[0]);
    // A number like a number stays one: it has no type to take on.
    jot_dtype kept = ir_dtype(trace_kept_type(v[0]));
    if (!trace_fits(name, v[1], kept, &error))
        return error;
    ir_id id = trace_operand(v[1], kept);
    if (t.rank)
        id = ir_broadcast_in_dim(b, id, t.rank, ir_dims(b->module, t), NULL);
    return trace_like(name, v[0], id);
}

jot_value jot_full_like(jot_value x, jot_value y) { TRACE_RETURN(like("jot_full_like", x, y)); }

jot_value jot_zeros_like(jot_value x)
{
    jot_value zero = jot_from_int(0);
    TRACE_RETURN(like("jot_zeros_like", x, zero));
}

jot_value jot_ones_like(jot_value x)
{
    jot_value one = jot_from_int(1);
    TRACE_RETURN(like("jot_ones_like", x, one));
}

static jot_value arange(const char *name, jot_dtype dtype, int64_t n)
{
    jot_value error, last = jot_from_int(n > 0 ? n - 1 : 0);
    if (!trace_ready(name, 1, &last, &error) || !trace_is_dtype(name, dtype, &error))
        return error;
    if (n < 0)
        return trace_fail(name, JOT_ERR_ARGUMENT, "the number of elements is %lld: negative",
                          (long long)n);
    if (n && !trace_fits(name, last, dtype, &error))
        return error;
    struct ir_builder *b = trace_builder();
    return trace_result(name, ir_iota(b, ir_type_make(b->module, dtype, 1, &n), 0), false);
}

jot_value jot_arange(jot_dtype dtype, int64_t n)
{
    TRACE_RETURN(arange("jot_arange", dtype, n));
}

// The numbers, where both ends fit the dtype.
static jot_value numbers(const char *name, jot_dtype dtype, double start, double stop,
                         int64_t n)
{
    jot_value ends[] = {jot_from_double(trunc(start)), jot_from_double(trunc(stop))}, error;
    if (!trace_ready(name, 2, ends, &error) || !trace_is_dtype(name, dtype, &error) ||
        (n > 0 && !trace_fits(name, ends[0], dtype, &error)) ||
        (n > 1 && !trace_fits(name, ends[1], dtype, &error)))
        return error;
    return arange(name, JOT_F64, n);
}

static jot_value guarded_numbers(jot_dtype dtype, double start, double stop, int64_t n)
{
    TRACE_RETURN(numbers("jot_linspace", dtype, start, stop, n));
}

// start + i step, with the last element exactly stop.
jot_value jot_linspace(jot_dtype dtype, double start, double stop, int64_t n)
{
    jot_value i = guarded_numbers(dtype, start, stop, n);
    if (n < 2)
        return jot_convert(jot_add(i, jot_from_double(start)), dtype);
    jot_value step = jot_from_double((stop - start) / (double)(n - 1));
    jot_value x = jot_add(jot_from_double(start), jot_mul(i, step));
    jot_value is_last = jot_equal(i, jot_from_int(n - 1));
    return jot_convert(jot_where(is_last, jot_from_double(stop), x), dtype);
}

// column - row, of the shape (n, m).
static jot_value diagonal_number(const char *name, jot_dtype dtype, int64_t n, int64_t m)
{
    jot_value error;
    if (!trace_ready(name, 0, NULL, &error) || !trace_is_dtype(name, dtype, &error))
        return error;
    struct ir_builder *b = trace_builder();
    const int64_t column[] = {1, m}, row[] = {n, 1};
    jot_dtype d = trace_index_dtype(n > m ? n : m);
    ir_id c = ir_iota(b, ir_type_make(b->module, d, 2, column), 1);
    ir_id r = ir_iota(b, ir_type_make(b->module, d, 2, row), 0);
    return trace_result(name, ir_sub(b, c, r), false);
}

static jot_value guarded_diagonal(const char *name, jot_dtype dtype, int64_t n, int64_t m)
{
    TRACE_RETURN(diagonal_number(name, dtype, n, m));
}

static jot_value check_matrix(const char *name, jot_value x)
{
    jot_value error;
    if (!trace_ready(name, 1, &x, &error))
        return error;
    return trace_type(x).rank >= 2 ? x
                                   : trace_fail(name, JOT_ERR_SHAPE,
                                                "%s is no matrix: at least two axes are needed",
                                                trace_type_text(x));
}

static jot_value guarded_check(const char *name, jot_value x)
{
    TRACE_RETURN(check_matrix(name, x));
}

jot_value jot_eye(jot_dtype dtype, int64_t n, int64_t m)
{
    jot_value d = guarded_diagonal("jot_eye", dtype, n, m);
    return jot_convert(jot_equal(d, jot_from_int(0)), dtype);
}

jot_value jot_tril(jot_value x, int k)
{
    x = guarded_check("jot_tril", x);
    jot_value d =
        guarded_diagonal("jot_tril", JOT_I32, jot_value_dim(x, -2), jot_value_dim(x, -1));
    return jot_where(jot_less_equal(d, jot_from_int(k)), x, jot_zeros_like(x));
}

jot_value jot_triu(jot_value x, int k)
{
    x = guarded_check("jot_triu", x);
    jot_value d =
        guarded_diagonal("jot_triu", JOT_I32, jot_value_dim(x, -2), jot_value_dim(x, -1));
    return jot_where(jot_greater_equal(d, jot_from_int(k)), x, jot_zeros_like(x));
}
