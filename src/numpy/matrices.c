// SPDX-License-Identifier: Apache-2.0
// Matrices of numbers, and triangles of matrices as vectors.
#include "trace/emit.h"

#include "jot/indexing.h"
#include "jot/shapes.h"

#include <math.h>

static jot_value matrix(int64_t m, int64_t n, size_t count, const jot_value *x)
{
    const char *name = "jot_matrix";
    jot_value error;
    TRACE_NEEDS(name, "x", count, x);
    if (!trace_ready(name, 0, NULL, &error))
        return error;
    if (m < 1 || n < 1 || (uint64_t)n > count || count % (uint64_t)n ||
        count / (uint64_t)n != (uint64_t)m)
        return trace_fail(name, JOT_ERR_ARGUMENT, "%zu numbers for %lld by %lld", count,
                          (long long)m, (long long)n);
    return jot_reshape_dims(jot_stack_list(0, count, x), (int64_t[]){m, n, JOT_END});
}

jot_value jot_matrix_list(int64_t m, int64_t n, size_t count, const jot_value *x)
{
    TRACE_RETURN(matrix(m, n, count, x));
}

// ---------------------------------------------------------------------------------------
// Triangles

// Rows of a triangle with so many elements, 0: there is none.
static int64_t rows_of(int64_t count)
{
    int64_t n = (int64_t)((sqrt(8.0 * (double)count + 1) - 1) / 2);
    while (n * (n + 1) / 2 < count)
        n++;
    return n * (n + 1) / 2 == count ? n : 0;
}

static jot_value fill_triangle(const char *name, jot_value x, bool is_upper)
{
    jot_value error;
    if (!trace_ready(name, 1, &x, &error))
        return error;
    int64_t count = trace_type(x).rank ? jot_value_dim(x, -1) : 0, n = rows_of(count);
    if (!n || n > INT32_MAX / n)
        return trace_fail(
            name, JOT_ERR_SHAPE,
            "%s: the last axis has n (n + 1) / 2 elements of a triangle of n rows",
            trace_type_text(x));
    jot_value i = jot_reshape_dims(jot_arange(JOT_I32, n), (int64_t[]){n, 1, JOT_END});
    jot_value j = jot_arange(JOT_I32, n), one = jot_from_int(1);
    // Where row i begins, less the column that it begins at.
    jot_value begin = jot_floor_divide(jot_mul(i, jot_add(i, one)), jot_from_int(2));
    if (is_upper)
        begin =
            jot_floor_divide(jot_mul(i, jot_sub(jot_from_int(2 * n - 1), i)), jot_from_int(2));
    jot_value is_inside = is_upper ? jot_greater_equal(j, i) : jot_less_equal(j, i);
    jot_value at = jot_where(is_inside, jot_add(begin, j), jot_from_int(0));
    jot_value all = jot_take_mode(x, at, -1, JOT_INDEX_PROMISE);
    return jot_where(is_inside, all, jot_zeros_like(all));
}

jot_value jot_fill_tril(jot_value x) { TRACE_RETURN(fill_triangle("jot_fill_tril", x, false)); }

jot_value jot_fill_triu(jot_value x) { TRACE_RETURN(fill_triangle("jot_fill_triu", x, true)); }

static jot_value triangle_of(const char *name, jot_value x, bool is_upper)
{
    jot_value error;
    if (!trace_ready(name, 1, &x, &error))
        return error;
    int rank = trace_type(x).rank;
    if (rank < 2 || jot_value_dim(x, -1) != jot_value_dim(x, -2))
        return trace_fail(name, JOT_ERR_SHAPE, "%s is no square matrix", trace_type_text(x));
    int64_t n = jot_value_dim(x, -1), dims[IR_MAX_RANK + 1];
    if (n && n > INT32_MAX / n)
        return trace_fail(name, JOT_ERR_SHAPE, "%s: more elements than i32 counts",
                          trace_type_text(x));
    for (int i = 0; i < rank - 2; i++)
        dims[i] = jot_value_dim(x, i);
    dims[rank - 2] = n * n;
    dims[rank - 1] = JOT_END;
    jot_value indices = is_upper ? jot_triu_indices(n, 0, n) : jot_tril_indices(n, 0, n);
    jot_value at = jot_add(jot_mul(jot_take_axis(indices, 0, 0), jot_from_int(n)),
                           jot_take_axis(indices, 1, 0));
    return jot_take_mode(jot_reshape_dims(x, dims), at, -1, JOT_INDEX_PROMISE);
}

jot_value jot_tril_elements(jot_value x)
{
    TRACE_RETURN(triangle_of("jot_tril_elements", x, false));
}

jot_value jot_triu_elements(jot_value x)
{
    TRACE_RETURN(triangle_of("jot_triu_elements", x, true));
}
