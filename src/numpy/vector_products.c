// SPDX-License-Identifier: Apache-2.0
// Products of vectors and matrices that have names of their own.
#include "trace/emit.h"

#include "jot/einsum.h"

static jot_value kron(jot_value x, jot_value y)
{
    jot_value v[] = {x, y}, error;
    int64_t dims[IR_MAX_RANK + 1];
    int apart[2][IR_MAX_RANK + 1];
    if (!trace_ready("jot_kron", 2, v, &error))
        return error;
    int rx = trace_type(v[0]).rank, ry = trace_type(v[1]).rank, rank = rx > ry ? rx : ry;
    if (2 * rank > IR_MAX_RANK)
        return trace_fail("jot_kron", JOT_ERR_SHAPE, "%d axes: at most %d", rank,
                          IR_MAX_RANK / 2);
    // Axes of x at even positions, of y at odd ones, and then both as one.
    int n[2] = {0, 0};
    for (int i = 0; i < rank; i++) {
        bool has[] = {i >= rank - rx, i >= rank - ry};
        dims[i] = (has[0] ? jot_value_dim(v[0], i - rank) : 1) *
                  (has[1] ? jot_value_dim(v[1], i - rank) : 1);
        for (int k = 0; k < 2; k++) {
            if (!has[k])
                apart[k][n[k]++] = 2 * i + k;
            apart[k][n[k]++] = 2 * i + 1 - k;
        }
    }
    apart[0][n[0]] = apart[1][n[1]] = dims[rank] = JOT_END;
    return jot_reshape_dims(
        jot_mul(jot_expand_dims_axes(v[0], apart[0]), jot_expand_dims_axes(v[1], apart[1])),
        dims);
}

jot_value jot_kron(jot_value x, jot_value y) { TRACE_RETURN(kron(x, y)); }

static jot_value component(jot_value x, int i) { return jot_take_axis(x, i, -1); }

// x_i y_k - x_k y_i; what is not there is 0.
static jot_value minor(jot_value x, jot_value y, int i, int k)
{
    int64_t n = jot_value_dim(x, -1), m = jot_value_dim(y, -1);
    jot_value a = i < n && k < m ? jot_mul(component(x, i), component(y, k)) : jot_from_int(0);
    if (k >= n || i >= m)
        return a;
    return jot_sub(a, jot_mul(component(x, k), component(y, i)));
}

static jot_value cross(jot_value x, jot_value y)
{
    jot_value v[] = {x, y}, error;
    if (!trace_ready("jot_cross", 2, v, &error))
        return error;
    int64_t n = jot_value_dim(v[0], -1), m = jot_value_dim(v[1], -1);
    if ((n != 2 && n != 3) || (m != 2 && m != 3))
        return trace_fail("jot_cross", JOT_ERR_SHAPE,
                          "%s and %s: the last axes have 2 or 3 elements",
                          trace_type_text(v[0]), trace_type_text(v[1]));
    if (n == 2 && m == 2)
        return minor(v[0], v[1], 0, 1);
    jot_value c[] = {minor(v[0], v[1], 1, 2), minor(v[0], v[1], 2, 0), minor(v[0], v[1], 0, 1)};
    return jot_stack_list(-1, 3, c);
}

jot_value jot_cross(jot_value x, jot_value y) { TRACE_RETURN(cross(x, y)); }

static jot_value inner(jot_value x, jot_value y)
{
    const int last[] = {-1, JOT_END};
    jot_value v[] = {x, y}, error;
    if (!trace_ready("jot_inner", 2, v, &error))
        return error;
    if (trace_type(v[0]).rank == 0 || trace_type(v[1]).rank == 0)
        return jot_mul(v[0], v[1]);
    return jot_tensordot_axes(v[0], v[1], last, last);
}

jot_value jot_inner(jot_value x, jot_value y) { TRACE_RETURN(inner(x, y)); }

static jot_value vecdot(jot_value x, jot_value y, int axis)
{
    jot_value v[] = {x, y}, error;
    int64_t a, b;
    if (!trace_ready("jot_vecdot", 2, v, &error) ||
        !trace_axis("jot_vecdot", v[0], axis, &a, &error) ||
        !trace_axis("jot_vecdot", v[1], axis, &b, &error))
        return error;
    v[0] = jot_conj(jot_move_axis(v[0], (int)a, -1));
    v[1] = jot_move_axis(v[1], (int)b, -1);
    return jot_einsum_list("...i,...i->...", 2, v);
}

jot_value jot_vecdot(jot_value x, jot_value y, int axis) { TRACE_RETURN(vecdot(x, y, axis)); }

jot_value jot_matvec(jot_value m, jot_value v)
{
    return jot_einsum_list("...ij,...j->...i", 2, (const jot_value[]){m, v});
}

jot_value jot_vecmat(jot_value v, jot_value m)
{
    return jot_einsum_list("...i,...ij->...j", 2, (const jot_value[]){jot_conj(v), m});
}

// "ab,bc,cd->ad", without the first letter of all or the last where the end is a vector.
static jot_value multi_dot(size_t n, const jot_value *x)
{
    enum { MOST = 25 };
    char text[3 * MOST + 8], *p = text;
    jot_value v[MOST], error;
    if (n < 2 || n > MOST) {
        if (!trace_ready("jot_multi_dot", 0, NULL, &error))
            return error;
        return trace_fail("jot_multi_dot", JOT_ERR_ARGUMENT, "%zu matrices: it takes 2 to %d",
                          n, MOST);
    }
    memcpy(v, x, n * sizeof *v);
    if (!trace_ready("jot_multi_dot", (int)n, v, &error))
        return error;
    for (size_t i = 0; i < n; i++) {
        int rank = trace_type(v[i]).rank;
        int64_t columns = i ? jot_value_dim(v[i - 1], -1) : 0, rows = jot_value_dim(v[i], 0);
        bool is_end = i == 0 || i == n - 1;
        if (rank != 2 && !(rank == 1 && is_end))
            return trace_fail("jot_multi_dot", JOT_ERR_SHAPE, "factor %zu is %s, no matrix%s",
                              i, trace_type_text(v[i]), is_end ? " and no vector" : "");
        if (i && columns != rows)
            return trace_fail("jot_multi_dot", JOT_ERR_SHAPE,
                              "factors %zu and %zu are %s and %s: contracting %lld with %lld",
                              i - 1, i, trace_type_text(v[i - 1]), trace_type_text(v[i]),
                              (long long)columns, (long long)rows);
        if (rank == 2 || i > 0)
            *p++ = (char)('a' + i);
        if (rank == 2 || i == 0)
            *p++ = (char)('b' + i);
        *p++ = i + 1 < n ? ',' : '-';
    }
    *p++ = '>';
    if (trace_type(v[0]).rank == 2)
        *p++ = 'a';
    if (trace_type(v[n - 1]).rank == 2)
        *p++ = (char)('a' + n);
    *p = 0;
    return jot_einsum_list(text, n, v);
}

jot_value jot_multi_dot_list(size_t n, const jot_value *x)
{
    TRACE_NEEDS("jot_multi_dot", "x", n, x);
    TRACE_RETURN(multi_dot(n, x));
}

static jot_value ragged_dot(jot_value x, jot_value w, jot_value sizes)
{
    const char *name = "jot_ragged_dot";
    jot_value v[] = {x, w, sizes}, error;
    if (!trace_ready(name, 3, v, &error))
        return error;
    struct ir_type t[3];
    for (int i = 0; i < 3; i++)
        t[i] = trace_type(v[i]);
    if (!dtype_is_integer(ir_dtype(t[2])))
        return trace_fail(name, JOT_ERR_DTYPE, "the sizes are %s, not integers",
                          trace_type_text(v[2]));
    if (t[0].rank != 2 || t[1].rank != 3 || t[2].rank != 1 ||
        jot_value_dim(v[0], 1) != jot_value_dim(v[1], 1) ||
        jot_value_dim(v[1], 0) != jot_value_dim(v[2], 0))
        return trace_fail(name, JOT_ERR_SHAPE, "%s, %s and %s: it takes [m,k], [g,k,n] and [g]",
                          trace_type_text(v[0]), trace_type_text(v[1]), trace_type_text(v[2]));
    int64_t m = jot_value_dim(v[0], 0), k = jot_value_dim(v[0], 1), g = jot_value_dim(v[1], 0);
    jot_value end = jot_cumsum_axes(v[2], (const int[]){0, JOT_END});
    jot_value row = jot_expand_dims_axes(jot_arange(JOT_I32, m), (const int[]){1, JOT_END});
    jot_value is_own =
        jot_logical_and(jot_greater_equal(row, jot_sub(end, v[2])), jot_less(row, end));
    jot_value spread = jot_expand_dims_axes(v[0], (const int[]){1, JOT_END});
    is_own = jot_expand_dims_axes(is_own, (const int[]){2, JOT_END});
    spread = jot_where(is_own, spread, jot_zeros_like(spread));
    return jot_matmul(
        jot_reshape_dims(spread, (const int64_t[]){m, g * k, JOT_END}),
        jot_reshape_dims(v[1], (const int64_t[]){g * k, jot_value_dim(v[1], 2), JOT_END}));
}

jot_value jot_ragged_dot(jot_value x, jot_value w, jot_value sizes)
{
    TRACE_RETURN(ragged_dot(x, w, sizes));
}
