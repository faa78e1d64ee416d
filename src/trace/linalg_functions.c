// SPDX-License-Identifier: Apache-2.0
// Functions of matrices: inverse, determinant, powers, exponential.
#include "trace/linalg.h"

#include "jot/indexing.h"

#include <math.h>

static const int last[] = {-1, JOT_END};

static jot_value number(double x) { return jot_from_double(x); }

// ---- Statuses ----

jot_value jot_factor_status(jot_value factor)
{
    factor = linalg_matrix("jot_factor_status", factor, false);
    if (trace_is_error(factor))
        return factor;
    jot_value failed = jot_any_axes(jot_is_nan(factor), (const int[]){-2, -1, JOT_END});
    return jot_convert(failed, JOT_I32);
}

jot_value jot_lu_status(jot_lu_factors f)
{
    jot_value status = jot_factor_status(f.lu);
    if (trace_is_error(status))
        return status;
    jot_value is_zero = jot_equal(linalg_diagonal(f.lu), jot_from_int(0));
    return jot_where(jot_any_axes(is_zero, last), jot_from_int(JOT_FACTOR_SINGULAR), status);
}

// ---- Determinants ----

// 1 or -1, as rows were swapped an even or odd number of times.
static jot_value sign_of_swaps(jot_lu_factors f)
{
    jot_value stays = jot_equal(f.pivots, jot_arange(JOT_I32, linalg_extent(f.pivots, 1)));
    jot_value count = jot_sum_axes(jot_where(stays, jot_from_int(0), jot_from_int(1)), last);
    jot_value is_odd = jot_equal(jot_bitwise_and(count, jot_from_int(1)), jot_from_int(1));
    return jot_convert(jot_where(is_odd, number(-1), number(1)), jot_value_dtype(f.lu));
}

static void det_body(const jot_value *in, jot_value *out, void *ctx)
{
    (void)ctx;
    jot_lu_factors f = jot_lu_factor_at(in[0], NULL);
    out[0] = jot_mul(jot_prod_axes(linalg_diagonal(f.lu), last), sign_of_swaps(f));
}

// x along an axis of matrices, from the end: its first elements up to `end`, or its last.
static jot_value rows(jot_value x, int64_t start, int64_t end)
{
    return jot_slice_axis(x, -2, start, end, 1);
}

// d det a = trace(adj(a) da), where adj(a) da = det(a) a^-1 da is computed so that it is finite when
// the last pivot, the only one that may be 0, is: l u x = det(a) da with the last row of u scaled.
static void det_rule(const jot_value *in, jot_value *out, void *ctx)
{
    (void)ctx;
    jot_value a = in[0];
    int64_t n = linalg_extent(a, 1);
    if (n == 0) {
        out[0] = jot_prod_axes(linalg_diagonal(in[1]), last);
        return;
    }
    jot_lu_factors f = jot_lu_factor_at(a, NULL);
    jot_value sign = jot_expand_dims_axes(sign_of_swaps(f), last);
    jot_value partial = jot_mul(jot_cumprod_axes(linalg_diagonal(f.lu), last), sign);
    jot_value whole = jot_expand_dims_axes(jot_slice_axis(partial, -1, n - 1, n, 1), last);
    jot_value but_last =
        n == 1 ? jot_expand_dims_axes(sign, last)
               : jot_expand_dims_axes(jot_slice_axis(partial, -1, n - 2, n - 1, 1), last);
    // The last element of u becomes 1 / (the product of the others).
    jot_value at = jot_arange(JOT_I32, n), end = jot_from_int(n - 1);
    jot_value is_last = jot_equal(at, end);
    jot_value is_corner = jot_logical_and(jot_expand_dims_axes(is_last, last), is_last);
    jot_value lu = jot_where(is_corner, jot_div(jot_ones_like(whole), but_last), f.lu);
    jot_value order = jot_expand_dims_axes(f.permutation, last);
    jot_value x = jot_take_along_axis_mode(in[1], order, -2, JOT_INDEX_PROMISE);
    x = jot_solve_triangular_with(
        lu, x, &(jot_triangular_options){.lower = true, .unit_diagonal = true});
    x = jot_concatenate_list(
        -2, 2, (jot_value[]){jot_mul(rows(x, 0, n - 1), whole), rows(x, n - 1, n)});
    x = jot_solve_triangular_with(lu, x, NULL);
    out[0] = linalg_trace(x);
}

jot_value jot_det(jot_value a)
{
    a = linalg_matrix("jot_det", a, true);
    jot_value out;
    if (trace_is_error(a))
        return a;
    linalg_apply("jot_det", det_body, det_rule, 1, &a, 1, &out);
    return out;
}

static void slogdet_body(const jot_value *in, jot_value *out, void *ctx)
{
    (void)ctx;
    jot_lu_factors f = jot_lu_factor_at(in[0], NULL);
    jot_value d = linalg_diagonal(f.lu);
    out[0] = jot_mul(jot_prod_axes(jot_sign(d), last), sign_of_swaps(f));
    out[1] = jot_sum_axes(jot_log(jot_abs(d)), last);
}

// d log det a = trace(a^-1 da), of which the imaginary part turns the sign.
static void slogdet_rule(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value value[2], t = linalg_trace(jot_solve(in[0], in[1]));
    slogdet_body(in, value, ctx);
    out[0] = jot_mul(value[0], jot_sub(t, jot_convert(jot_real(t), jot_value_dtype(t))));
    out[1] = jot_real(t);
}

jot_slogdet_result jot_slogdet_at(jot_value a, const char *where)
{
    jot_value out[2];
    a = linalg_matrix("jot_slogdet", a, true);
    out[0] = out[1] = a;
    if (!trace_is_error(a))
        linalg_apply("jot_slogdet", slogdet_body, slogdet_rule, 1, &a, 2, out);
    if (where)
        jot_place(out[0], where);
    return (jot_slogdet_result){out[0], out[1]};
}

// ---- Powers ----

jot_value jot_matrix_power(jot_value a, int n)
{
    unsigned left = n < 0 ? -(unsigned)n : (unsigned)n;
    // Integers stay what they are.
    bool is_plain = n >= 0 && jot_value_rank(a) >= 2 && !dtype_is_inexact(jot_value_dtype(a)) &&
                    linalg_extent(a, 1) == linalg_extent(a, 2);
    a = is_plain ? a : linalg_matrix("jot_matrix_power", n < 0 ? jot_inv(a) : a, true);
    if (trace_is_error(a))
        return a;
    if (left == 0)
        return linalg_eye_like(a);
    jot_value power = a, result = a;
    bool has_result = false;
    for (;; left >>= 1) {
        if (left & 1) {
            result = has_result ? jot_matmul(result, power) : power;
            has_result = true;
        }
        if (left == 1)
            return result;
        power = jot_matmul(power, power);
    }
}

// The coefficients of the approximant of degree 13, and the norm up to which it is exact.
static const double pade[] = {64764752532480000.0,
                              32382376266240000.0,
                              7771770303897600.0,
                              1187353796428800.0,
                              129060195264000.0,
                              10559470521600.0,
                              670442572800.0,
                              33522128640.0,
                              1323241920.0,
                              40840800.0,
                              960960.0,
                              16380.0,
                              182.0,
                              1.0};
enum { SQUARINGS = 16 };
static const double pade_norm = 5.371920351148152;

// c[0] x[0] + c[2] x[1] + c[4] x[2] + ...
static jot_value combine(int n, const jot_value *x, const double *c)
{
    jot_value sum = jot_mul(number(c[0]), x[0]);
    for (int i = 1; i < n; i++)
        sum = jot_add(sum, jot_mul(number(c[2 * i]), x[i]));
    return sum;
}

static jot_value approximate(jot_value a)
{
    jot_value x[4] = {linalg_eye_like(a), jot_matmul(a, a)};
    x[2] = jot_matmul(x[1], x[1]);
    x[3] = jot_matmul(x[2], x[1]);
    jot_value u =
        jot_add(jot_matmul(x[3], combine(3, x + 1, pade + 9)), combine(4, x, pade + 1));
    jot_value v = jot_add(jot_matmul(x[3], combine(3, x + 1, pade + 8)), combine(4, x, pade));
    u = jot_matmul(a, u);
    return jot_solve(jot_sub(v, u), jot_add(v, u));
}

jot_value jot_expm(jot_value a)
{
    a = linalg_matrix("jot_expm", a, true);
    if (trace_is_error(a))
        return a;
    // The greatest sum of a column; how often to halve a, in each matrix.
    jot_value norm =
        linalg_extent(a, 1) == 0
            ? jot_sum_axes(jot_abs(a), (const int[]){-2, -1, JOT_END})
            : jot_max_axes(jot_sum_axes(jot_abs(a), (const int[]){-2, JOT_END}), last);
    jot_value halvings = jot_ceil(jot_log2(jot_div(norm, number(pade_norm))));
    halvings = jot_stop_gradient(jot_maximum(halvings, number(0)));
    jot_value is_too_large = jot_greater(halvings, jot_from_int(SQUARINGS));
    halvings = jot_expand_dims_axes(halvings, (const int[]){-2, -1, JOT_END});
    jot_value r = approximate(jot_mul(a, jot_exp2(jot_neg(halvings))));
    for (int i = 0; i < SQUARINGS; i++)
        r = jot_where(jot_greater(halvings, jot_from_int(i)), jot_matmul(r, r), r);
    is_too_large = jot_expand_dims_axes(is_too_large, (const int[]){-2, -1, JOT_END});
    return jot_where(is_too_large, number((double)NAN), r);
}
