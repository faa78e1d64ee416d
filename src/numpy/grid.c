// SPDX-License-Identifier: Apache-2.0
// Grids and values of one shape.
#include "trace/emit.h"

#include "jot/shapes.h"

#include <math.h>

// ---------------------------------------------------------------------------------------
// One shape

// What is wrong with the values goes into each.
static void give_error(size_t n, jot_value *x, jot_value error)
{
    for (size_t i = 0; i < n; i++)
        x[i] = error;
}

static jot_value broadcast_arrays(size_t n, jot_value *x)
{
    const char *name = "jot_broadcast_arrays";
    jot_value error;
    int64_t dims[IR_MAX_RANK + 1];
    int rank = 0;
    if (!trace_ready(name, (int)n, x, &error))
        return error;
    for (size_t i = 0; i < n; i++)
        rank = trace_type(x[i]).rank > rank ? trace_type(x[i]).rank : rank;
    for (int k = 1; k <= rank; k++) {
        size_t largest = 0;
        dims[rank - k] = 1;
        for (size_t i = 0; i < n; i++) {
            int64_t size = k <= trace_type(x[i]).rank ? jot_value_dim(x[i], -k) : 1;
            if (size == 1 || size == dims[rank - k])
                continue;
            if (dims[rank - k] != 1)
                return trace_fail(name, JOT_ERR_SHAPE,
                                  "%s and %s do not broadcast: axis %d is %lld in one and "
                                  "%lld in the other",
                                  trace_type_text(x[largest]), trace_type_text(x[i]), rank - k,
                                  (long long)dims[rank - k], (long long)size);
            dims[rank - k] = size;
            largest = i;
        }
    }
    dims[rank] = JOT_END;
    for (size_t i = 0; i < n; i++)
        x[i] = jot_broadcast_to_dims(x[i], dims);
    return n ? x[0] : jot_from_int(0);
}

static jot_value guarded_broadcast(size_t n, jot_value *x)
{
    TRACE_RETURN(broadcast_arrays(n, x));
}

void jot_broadcast_arrays_tree(size_t n, jot_value *x)
{
    if (trace_lacks("jot_broadcast_arrays", "x", n, x, n, x, NULL))
        return;
    jot_value first = guarded_broadcast(n, x);
    if (jot_value_failed(first))
        give_error(n, x, first);
}

static jot_value meshgrid(enum jot_grid grid, size_t n, jot_value *x)
{
    const char *name = "jot_meshgrid";
    jot_value error;
    int64_t dims[IR_MAX_RANK + 1];
    if (!trace_ready(name, (int)n, x, &error))
        return error;
    if (grid != JOT_GRID_IJ && grid != JOT_GRID_XY)
        return trace_fail(name, JOT_ERR_ARGUMENT,
                          "the grid is %d, which is neither JOT_GRID_IJ nor JOT_GRID_XY",
                          (int)grid);
    if (n > IR_MAX_RANK)
        return trace_fail(name, JOT_ERR_SHAPE, "%zu vectors: at most %d", n, IR_MAX_RANK);
    bool is_xy = grid == JOT_GRID_XY && n > 1;
    for (size_t i = 0; i < n; i++) {
        if (trace_type(x[i]).rank != 1)
            return trace_fail(name, JOT_ERR_SHAPE, "%s is no vector", trace_type_text(x[i]));
        size_t axis = is_xy && i < 2 ? 1 - i : i;
        for (size_t k = 0; k < n; k++)
            dims[k] = k == axis ? -1 : 1;
        dims[n] = JOT_END;
        x[i] = jot_reshape_dims(x[i], dims);
    }
    return broadcast_arrays(n, x);
}

static jot_value guarded_meshgrid(enum jot_grid grid, size_t n, jot_value *x)
{
    TRACE_RETURN(meshgrid(grid, n, x));
}

void jot_meshgrid_tree(enum jot_grid grid, size_t n, jot_value *x)
{
    if (trace_lacks("jot_meshgrid", "x", n, x, n, x, NULL))
        return;
    jot_value first = guarded_meshgrid(grid, n, x);
    if (jot_value_failed(first))
        give_error(n, x, first);
}

// ---------------------------------------------------------------------------------------
// Indices

static jot_value indices(jot_dtype dtype, const int64_t *sizes)
{
    const char *name = "jot_indices";
    jot_value error, along[IR_MAX_RANK];
    int rank;
    int64_t dims[IR_MAX_RANK + 1], wide[IR_MAX_RANK + 1];
    if (!trace_ready(name, 0, NULL, &error) ||
        !trace_sizes(name, sizes, 0, &rank, dims, &error))
        return error;
    if (rank == 0)
        return trace_fail(name, JOT_ERR_ARGUMENT, "no sizes: it takes one for each axis");
    dims[rank] = wide[rank] = JOT_END;
    for (int i = 0; i < rank; i++) {
        for (int k = 0; k < rank; k++)
            wide[k] = k == i ? dims[i] : 1;
        along[i] =
            jot_broadcast_to_dims(jot_reshape_dims(jot_arange(dtype, dims[i]), wide), dims);
    }
    return jot_stack_list(0, (size_t)rank, along);
}

jot_value jot_indices_dims(jot_dtype dtype, const int64_t *dims)
{
    TRACE_RETURN(indices(dtype, dims));
}

jot_value jot_logspace(jot_dtype dtype, double start, double stop, int64_t n)
{
    jot_value wide = jot_linspace(JOT_F64, start, stop, n);
    return jot_convert(jot_power(jot_from_double(10), wide), dtype);
}

static jot_value geomspace(jot_dtype dtype, double start, double stop, int64_t n)
{
    jot_value error;
    if (!trace_ready("jot_geomspace", 0, NULL, &error))
        return error;
    if (!(start * stop > 0) || isinf(start) || isinf(stop))
        return trace_fail("jot_geomspace", JOT_ERR_ARGUMENT,
                          "from %g to %g: both are finite, of one sign, and not 0", start,
                          stop);
    jot_value x = jot_exp(jot_linspace(JOT_F64, log(fabs(start)), log(fabs(stop)), n));
    x = jot_mul(x, jot_from_double(start < 0 ? -1 : 1));
    // The ends are what was asked for.
    jot_value i = jot_arange(JOT_I64, n > 0 ? n : 0);
    x = jot_where(jot_equal(i, jot_from_int(n > 0 ? n - 1 : 0)), jot_from_double(stop), x);
    x = jot_where(jot_equal(i, jot_from_int(0)), jot_from_double(start), x);
    return jot_convert(x, dtype);
}

jot_value jot_geomspace(jot_dtype dtype, double start, double stop, int64_t n)
{
    TRACE_RETURN(geomspace(dtype, start, stop, n));
}

// The number of elements, or -1 with an error when an axis has none.
static int64_t count_elements(const char *name, int rank, const int64_t *dims,
                              jot_value *out_error)
{
    int64_t count = 1;
    for (int i = 0; i < rank; i++) {
        if (dims[i] == 0 || __builtin_mul_overflow(count, dims[i], &count)) {
            *out_error = trace_fail(name, JOT_ERR_ARGUMENT, "axis %d has size %lld, %s", i,
                                    (long long)dims[i],
                                    dims[i] ? "which is too many elements" : "and no elements");
            return -1;
        }
    }
    return count;
}

static bool is_index(const char *name, jot_value x, jot_value *out_error)
{
    if (dtype_is_integer((jot_dtype)trace_slot_of(x)->dtype))
        return true;
    *out_error = trace_fail(name, JOT_ERR_DTYPE, "an index of %s: it takes integers",
                            trace_type_text(x));
    return false;
}

static jot_value wrap(jot_value index, int64_t n)
{
    jot_value zero = jot_from_int(0);
    index = jot_where(jot_less(index, zero), jot_add(index, jot_from_int(n)), index);
    return jot_clip(index, zero, jot_from_int(n - 1));
}

static jot_value unravel_index(jot_value index, const int64_t *sizes)
{
    const char *name = "jot_unravel_index";
    jot_value error, parts[IR_MAX_RANK];
    int rank;
    int64_t dims[IR_MAX_RANK], count;
    if (!trace_ready(name, 1, &index, &error) || !is_index(name, index, &error) ||
        !trace_sizes(name, sizes, 0, &rank, dims, &error) ||
        (count = count_elements(name, rank, dims, &error)) < 0)
        return error;
    if (rank == 0)
        return trace_fail(name, JOT_ERR_ARGUMENT, "no sizes: it takes one for each axis");
    index = wrap(index, count);
    for (int i = rank - 1; i >= 0; i--) {
        parts[i] = jot_mod(index, jot_from_int(dims[i]));
        index = jot_floor_divide(index, jot_from_int(dims[i]));
    }
    return jot_stack_list(0, (size_t)rank, parts);
}

jot_value jot_unravel_index_dims(jot_value index, const int64_t *dims)
{
    TRACE_RETURN(unravel_index(index, dims));
}

static jot_value ravel_multi_index(jot_value indices, const int64_t *sizes)
{
    const char *name = "jot_ravel_multi_index";
    jot_value error;
    int rank;
    int64_t dims[IR_MAX_RANK];
    if (!trace_ready(name, 1, &indices, &error) || !is_index(name, indices, &error) ||
        !trace_sizes(name, sizes, 0, &rank, dims, &error) ||
        count_elements(name, rank, dims, &error) < 0)
        return error;
    if (trace_type(indices).rank == 0 || jot_value_dim(indices, 0) != rank || rank == 0)
        return trace_fail(name, JOT_ERR_SHAPE,
                          "indices %s in %d axes: the first axis has one of each",
                          trace_type_text(indices), rank);
    jot_value index = jot_from_int(0);
    for (int i = 0; i < rank; i++)
        index = jot_add(jot_mul(index, jot_from_int(dims[i])),
                        wrap(jot_take_axis(indices, i, 0), dims[i]));
    return index;
}

jot_value jot_ravel_multi_index_dims(jot_value indices, const int64_t *dims)
{
    TRACE_RETURN(ravel_multi_index(indices, dims));
}
