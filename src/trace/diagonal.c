// SPDX-License-Identifier: Apache-2.0
// Diagonals and triangles of matrices.
#include "trace/emit.h"

#include "base/count.h"

#include "jot/indexing.h"
#include "jot/shapes.h"

static int64_t diagonal_length(int64_t n, int64_t m, int64_t k)
{
    int64_t rows = k < 0 ? n + k : n, columns = k > 0 ? m - k : m;
    int64_t length = rows < columns ? rows : columns;
    return length > 0 ? length : 0;
}

// Two different axes of x, normalised; false with an error.
static bool has_axes(const char *name, jot_value *x, int axis1, int axis2, int64_t *a,
                     int64_t *b, jot_value *error)
{
    if (!trace_ready(name, 1, x, error) || !trace_axis(name, *x, axis1, a, error) ||
        !trace_axis(name, *x, axis2, b, error))
        return false;
    if (*a == *b)
        *error =
            trace_fail(name, JOT_ERR_ARGUMENT, "a diagonal of %s along axis %lld and itself",
                       trace_type_text(*x), (long long)*a);
    return *a != *b;
}

// The elements of a diagonal stand m + 1 apart in row-major order.
static jot_value diagonal(const char *name, jot_value x, int64_t k, int axis1, int axis2)
{
    jot_value error;
    int64_t a, b, dims[IR_MAX_RANK + 1];
    int axes[IR_MAX_RANK + 1], n = 0;
    if (!has_axes(name, &x, axis1, axis2, &a, &b, &error))
        return error;
    int rank = trace_type(x).rank;
    for (int i = 0; i < rank; i++)
        if (i != a && i != b) {
            dims[n] = jot_value_dim(x, i);
            axes[n++] = i;
        }
    int64_t rows = jot_value_dim(x, (int)a), m = jot_value_dim(x, (int)b);
    int64_t length = diagonal_length(rows, m, k), first = k > 0 || !length ? k : -k * m;
    axes[n] = (int)a;
    axes[n + 1] = (int)b;
    axes[n + 2] = JOT_END;
    dims[n] = rows * m;
    dims[n + 1] = JOT_END;
    x = jot_reshape_dims(jot_transpose_axes(x, axes), dims);
    if (length == 0)
        return jot_slice_axis(x, -1, 0, 0, 1);
    return jot_slice_axis(x, -1, first, first + (length - 1) * (m + 1) + 1, m + 1);
}

jot_value jot_diagonal(jot_value x, int64_t k, int axis1, int axis2)
{
    TRACE_RETURN(diagonal("jot_diagonal", x, k, axis1, axis2));
}

static jot_value diagonal_step(jot_value x, int64_t k, int64_t step, int axis1, int axis2)
{
    const char *name = "jot_diagonal_step";
    jot_value error;
    int64_t a, b;
    if (!has_axes(name, &x, axis1, axis2, &a, &b, &error))
        return error;
    if (step < 1)
        return trace_fail(name, JOT_ERR_ARGUMENT, "step %lld: steps are positive",
                          (long long)step);
    int64_t room = diagonal_length(jot_value_dim(x, (int)a), jot_value_dim(x, (int)b), k);
    struct ir_builder *builder = trace_builder();
    ir_id in = trace_kept(x);
    return trace_like(name, x,
                      ir_build(builder, IR_diagonal, 1, &in,
                               ir_attrs(builder->module, IR_INT(axis, a), IR_INT(along, b),
                                        IR_INT(offset, room ? k : 0), IR_INT(step, step),
                                        IR_INT(length, room ? (room - 1) / step + 1 : 0))));
}

jot_value jot_diagonal_step(jot_value x, int64_t k, int64_t step, int axis1, int axis2)
{
    TRACE_RETURN(diagonal_step(x, k, step, axis1, axis2));
}

static const int last[] = {-1, JOT_END};

jot_value jot_trace(jot_value x, int64_t k)
{
    TRACE_RETURN(jot_sum_axes(diagonal("jot_trace", x, k, 0, 1), last));
}

// column - row of the n by m elements: the number of the diagonal.
static jot_value diagonal_number(int64_t n, int64_t m)
{
    const int64_t column[] = {n, 1, JOT_END};
    jot_dtype d = trace_index_dtype(n > m ? n : m);
    return jot_sub(jot_arange(d, m), jot_reshape_dims(jot_arange(d, n), column));
}

static jot_value matrix_of(jot_value x, int64_t k)
{
    jot_value zero = jot_from_int(0);
    if (k < -INT32_MAX || k > INT32_MAX)
        return trace_fail("jot_diag", JOT_ERR_ARGUMENT,
                          "diagonal %lld of a new matrix: they are -%d to %d", (long long)k,
                          INT32_MAX, INT32_MAX);
    x = jot_pad_axis(x, zero, 0, k < 0 ? -k : 0, k > 0 ? k : 0);
    int64_t n = jot_value_dim(x, 0);
    return jot_where(jot_equal(diagonal_number(n, n), jot_from_int(k)),
                     jot_expand_dims_axes(x, last), zero);
}

static jot_value diag(jot_value x, int64_t k)
{
    jot_value error;
    if (!trace_ready("jot_diag", 1, &x, &error))
        return error;
    int rank = trace_type(x).rank;
    if (rank < 1 || rank > 2)
        return trace_fail("jot_diag", JOT_ERR_SHAPE, "%s is neither a vector nor a matrix",
                          trace_type_text(x));
    return rank == 1 ? matrix_of(x, k) : diagonal("jot_diag", x, k, 0, 1);
}

jot_value jot_diag(jot_value x, int64_t k) { TRACE_RETURN(diag(x, k)); }

static jot_value fill_diagonal(jot_value x, jot_value y)
{
    const char *name = "jot_fill_diagonal";
    jot_value v[] = {x, y}, error;
    if (!trace_ready(name, 2, v, &error))
        return error;
    struct ir_type t = trace_type(v[0]);
    if (t.rank < 2)
        return trace_fail(name, JOT_ERR_SHAPE, "%s is no matrix: at least two axes are needed",
                          trace_type_text(v[0]));
    int64_t n = jot_value_dim(v[0], -2), m = jot_value_dim(v[0], -1), dims[IR_MAX_RANK + 1];
    memcpy(dims, ir_dims(trace_top()->module, t), t.rank * sizeof *dims);
    dims[t.rank - 2] = diagonal_length(n, m, 0);
    dims[t.rank - 1] = JOT_END;
    jot_value along = jot_broadcast_to_dims(v[1], dims);
    along = jot_pad_axis(along, jot_from_int(0), -1, 0, n - dims[t.rank - 2]);
    jot_value filled =
        jot_where(jot_eye(JOT_BOOL, n, m), jot_expand_dims_axes(along, last), v[0]);
    if (!jot_value_failed(filled) && jot_value_dtype(filled) != ir_dtype(t))
        return trace_fail(name, JOT_ERR_DTYPE, "%s into %s: convert it", trace_type_text(v[1]),
                          trace_type_text(v[0]));
    return filled;
}

jot_value jot_fill_diagonal(jot_value x, jot_value y) { TRACE_RETURN(fill_diagonal(x, y)); }

// ---------------------------------------------------------------------------------------
// Triangles

static bool are_sizes(const char *name, int64_t n, int64_t m, jot_value *out_error)
{
    if (!trace_ready(name, 0, NULL, out_error))
        return false;
    if (n >= 0 && m >= 0)
        return true;
    *out_error = trace_fail(name, JOT_ERR_ARGUMENT, "a matrix of %lld by %lld", (long long)n,
                            (long long)m);
    return false;
}

static jot_value tri(jot_dtype dtype, int64_t n, int64_t m, int64_t k)
{
    jot_value error;
    if (!are_sizes("jot_tri", n, m, &error))
        return error;
    return jot_convert(jot_less_equal(diagonal_number(n, m), jot_from_int(k)), dtype);
}

jot_value jot_tri(jot_dtype dtype, int64_t n, int64_t m, int64_t k)
{
    TRACE_RETURN(tri(dtype, n, m, k));
}

// The elements of an n by m matrix up to the k-th diagonal: r + k + 1 in row r, but 0 to m.
static int64_t count_lower(int64_t n, int64_t m, int64_t k)
{
    int64_t some = count_clip(-k, 0, n), all = count_clip(m - k - 1, some, n),
            rows = all - some;
    return rows * (some + k + 1) + rows * (rows - 1) / 2 + (n - all) * m;
}

// Row r has the columns from 0 to r + k, or from r + k to the end.  A running sum over ones at
// the begin of each row but the first counts the rows.
static jot_value triangle(const char *name, int64_t n, int64_t k, int64_t m, bool is_upper)
{
    jot_value error;
    if (!are_sizes(name, n, m, &error))
        return error;
    if (n > INT32_MAX || m > INT32_MAX || n * m > INT32_MAX)
        return trace_fail(name, JOT_ERR_ARGUMENT,
                          "%lld by %lld elements: it takes at most %d, which i32 counts",
                          (long long)n, (long long)m, INT32_MAX);
    k = count_clip(k, -n - 1, m + 1);
    int64_t count = is_upper ? n * m - count_lower(n, m, k - 1) : count_lower(n, m, k);
    const int64_t dims[] = {count, JOT_END}, none[] = {2, 0, JOT_END};
    if (count == 0)
        return jot_zeros_dims(JOT_I32, none);
    jot_value width = jot_from_int(m), zero = jot_from_int(0);
    jot_value end =
        jot_clip(jot_add(jot_arange(JOT_I32, n), jot_from_int(k + !is_upper)), zero, width);
    jot_value size = is_upper ? jot_sub(width, end) : end;
    jot_value next = jot_cumsum_axes(size, NULL);
    jot_value begins = jot_at_add_axis(jot_zeros_dims(JOT_I32, dims), next, jot_from_int(1), 0);
    jot_value row = jot_cumsum_axes(begins, NULL);
    // The last column of a lower row is end - 1, that of an upper one m - 1.
    jot_value behind = jot_sub(jot_arange(JOT_I32, count), jot_take_values(next, row, 0));
    jot_value column = jot_add(behind, is_upper ? width : jot_take_values(end, row, 0));
    return jot_stack_list(0, 2, (const jot_value[]){row, column});
}

jot_value jot_tril_indices(int64_t n, int64_t k, int64_t m)
{
    TRACE_RETURN(triangle("jot_tril_indices", n, k, m, false));
}

jot_value jot_triu_indices(int64_t n, int64_t k, int64_t m)
{
    TRACE_RETURN(triangle("jot_triu_indices", n, k, m, true));
}

static jot_value vander(jot_value x, int64_t n)
{
    jot_value error;
    if (!trace_ready("jot_vander", 1, &x, &error))
        return error;
    if (trace_type(x).rank != 1)
        return trace_fail("jot_vander", JOT_ERR_SHAPE, "%s is no vector", trace_type_text(x));
    if (n < 0)
        return trace_fail("jot_vander", JOT_ERR_ARGUMENT, "%lld columns", (long long)n);
    const int64_t column[] = {-1, 1, JOT_END}, ones[] = {jot_value_dim(x, 0), 1, JOT_END};
    if (n == 0)
        return jot_slice_axis(jot_reshape_dims(x, column), 1, 0, 0, 1);
    // 1, x, x x, ...: integers keep their type.
    jot_value first = jot_convert(jot_ones_dims(JOT_BOOL, ones), jot_value_dtype(x));
    const int64_t wide[] = {jot_value_dim(x, 0), n - 1, JOT_END};
    jot_value rest = jot_broadcast_to_dims(jot_reshape_dims(x, column), wide);
    jot_value powers =
        jot_cumprod_axes(jot_concatenate_list(1, 2, (const jot_value[]){first, rest}),
                         (const int[]){1, JOT_END});
    return jot_flip_axes(powers, (const int[]){1, JOT_END});
}

jot_value jot_vander(jot_value x, int64_t n) { TRACE_RETURN(vander(x, n)); }
