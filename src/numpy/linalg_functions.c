// SPDX-License-Identifier: Apache-2.0
// Functions of matrices: inverse, determinant, powers, exponential.
#include "trace/linalg.h"

#include "jot/decompose.h"
#include "jot/indexing.h"

#include <math.h>

static const int last[] = {-1, JOT_END};

static jot_value constant(double x) { return jot_from_double(x); }

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
    return jot_convert(jot_where(is_odd, constant(-1), constant(1)), jot_value_dtype(f.lu));
}

// The element of each matrix.
static jot_value element(jot_value a, int row, int column)
{
    return jot_take_axis(jot_take_axis(a, row, -2), column, -1);
}

// Of rows 1 and 2 the minor without the column.
static jot_value minor(jot_value a, int without)
{
    int i = without == 0, j = without == 2 ? 1 : 2;
    return jot_sub(jot_mul(element(a, 1, i), element(a, 2, j)),
                   jot_mul(element(a, 1, j), element(a, 2, i)));
}

// Of up to three rows the polynomial, whose derivatives are those of any matrix.
static jot_value short_determinant(jot_value a)
{
    int64_t n = linalg_extent(a, 1);
    if (n < 2)
        return jot_prod_axes(linalg_diagonal(a), last);
    if (n == 2)
        return jot_sub(jot_mul(element(a, 0, 0), element(a, 1, 1)),
                       jot_mul(element(a, 0, 1), element(a, 1, 0)));
    jot_value sum =
        jot_sub(jot_mul(element(a, 0, 0), minor(a, 0)), jot_mul(element(a, 0, 1), minor(a, 1)));
    return jot_add(sum, jot_mul(element(a, 0, 2), minor(a, 2)));
}

static jot_value determinant(jot_lu_factors f)
{
    return jot_mul(jot_prod_axes(linalg_diagonal(f.lu), last), sign_of_swaps(f));
}

static void det_body(const jot_value *in, jot_value *out, void *ctx)
{
    (void)ctx;
    out[0] = determinant(jot_lu_factor_at(in[0], NULL));
}

static jot_value column_of(jot_value x) { return jot_expand_dims_axes(x, last); }

static jot_value row_of(jot_value x)
{
    return jot_expand_dims_axes(x, (const int[]){-2, JOT_END});
}

// 1 and all elements but the last.
static jot_value shifted(jot_value d)
{
    jot_value one = jot_slice_axis(jot_ones_like(d), -1, 0, 1, 1);
    jot_value others = jot_slice_axis(d, -1, 0, linalg_extent(d, 1) - 1, 1);
    return jot_concatenate_list(-1, 2, (jot_value[]){one, others});
}

// With p a = l u the adjugate is adj(u) l^-1 p, but for the sign of p.  Of u with the diagonal d,
//
//     adj(u)[i][j] = (d[0] .. d[i-1]) x[i][j] (d[j+1] .. d[n-1])
//
// where x is the inverse of w, with w[k][l] = u[k][l] (d[k+1] .. d[l-1]) above a diagonal of ones: a
// polynomial, as the adjugate is one, so that any pivots may be 0.
static jot_value adjugate(jot_lu_factors f)
{
    jot_value d = linalg_diagonal(f.lu), at = jot_arange(JOT_I32, linalg_extent(d, 1));
    jot_value is_between = jot_greater(jot_sub(at, column_of(at)), jot_from_int(1));
    jot_value between = jot_where(is_between, row_of(shifted(d)), constant(1));
    jot_value w = jot_mul(f.lu, jot_cumprod_axes(between, last));
    jot_value before = jot_cumprod_axes(shifted(d), last);
    jot_value after = jot_cumprod_axes(shifted(jot_flip_axes(d, last)), last);
    after = jot_mul(jot_flip_axes(after, last), column_of(sign_of_swaps(f)));
    jot_value x = jot_solve_triangular_with(
        f.lu, linalg_eye_like(f.lu),
        &(jot_triangular_options){.lower = true, .unit_diagonal = true});
    x = jot_solve_triangular_with(w, jot_mul(x, column_of(after)),
                                  &(jot_triangular_options){.unit_diagonal = true});
    return linalg_times_permutation(jot_mul(x, column_of(before)), f);
}

static void adjugate_body(const jot_value *in, jot_value *out, void *ctx)
{
    (void)ctx;
    out[0] = adjugate(jot_lu_factor_at(in[0], NULL));
}

// The derivative of adj(a) of a matrix that is not singular.
static jot_value regular_change(jot_value a, jot_value da)
{
    jot_lu_factors f = jot_lu_factor_at(a, NULL);
    jot_value adj = adjugate(f), x = jot_matmul(adj, da);
    jot_value trace = column_of(column_of(linalg_trace(x)));
    return jot_div(jot_sub(jot_mul(trace, adj), jot_matmul(x, adj)),
                   column_of(column_of(determinant(f))));
}

// And that of any, by a = u s v: adj(a) is v^H adj(s) u^H, but for the determinants of u and v,
// and that of the diagonal matrix s is a polynomial without division.
static jot_value singular_change(jot_value a, jot_value da)
{
    jot_svd_factors f = jot_svd(a);
    jot_value uh = linalg_adjoint(f.u), v = linalg_adjoint(f.vh);
    jot_value m = jot_matmul(jot_matmul(uh, da), v);
    // p[i][j]: the product of all values but i and j.
    jot_value at = jot_arange(JOT_I32, linalg_extent(a, 1));
    jot_value is_own = jot_equal(column_of(at), at); // [i, k]
    jot_value is_left_out =
        jot_logical_or(jot_expand_dims_axes(is_own, (const int[]){1, JOT_END}),
                       jot_expand_dims_axes(is_own, (const int[]){0, JOT_END}));
    jot_value p = jot_prod_axes(jot_where(is_left_out, constant(1), row_of(row_of(f.s))), last);
    p = jot_where(is_own, constant(0), p);
    jot_value diagonal = jot_matmul(p, column_of(linalg_diagonal(m)));
    jot_value change = jot_where(is_own, diagonal, jot_neg(jot_mul(m, p)));
    jot_value unit = jot_mul(determinant(jot_lu_factor_at(f.u, NULL)),
                             determinant(jot_lu_factor_at(f.vh, NULL)));
    return jot_mul(jot_matmul(jot_matmul(v, change), uh), column_of(column_of(unit)));
}

// The one way has derivatives of any order, the other one keeps its digits near singular matrices.
static void adjugate_rule(const jot_value *in, jot_value *out, void *ctx)
{
    (void)ctx;
    jot_value a = in[0];
    int64_t n = linalg_extent(a, 1);
    jot_value d = jot_abs(linalg_diagonal(jot_lu_factor_at(a, NULL).lu));
    jot_value least = jot_mul(constant(0.01), jot_max_axes(d, last));
    jot_value is_regular = jot_greater(jot_min_axes(d, last), least);
    jot_value choice = column_of(column_of(is_regular));
    // Each has a matrix that it is for, so that the derivatives of the other one are finite.
    jot_value other =
        jot_mul(linalg_eye_like(a), jot_add(jot_arange(JOT_I32, n), jot_from_int(1)));
    out[0] = jot_where(choice, regular_change(jot_where(choice, a, other), in[1]),
                       singular_change(jot_where(choice, other, a), in[1]));
}

// d det a = trace(adj(a) da)
static void det_rule(const jot_value *in, jot_value *out, void *ctx)
{
    (void)ctx;
    jot_value adj;
    linalg_apply("jot_det", adjugate_body, adjugate_rule, 1, in, 1, &adj);
    jot_value products = jot_mul(linalg_transpose(adj), in[1]);
    out[0] = jot_sum_axes(products, (const int[]){-2, -1, JOT_END});
}

jot_value jot_det(jot_value a)
{
    a = linalg_matrix("jot_det", a, true);
    jot_value out;
    if (trace_is_error(a))
        return a;
    if (linalg_extent(a, 1) <= 3)
        return short_determinant(a);
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

// The sign with the derivative that it has of complex matrices; jot_sign has none.
static jot_value turning_sign(jot_value a)
{
    jot_lu_factors f = jot_lu_factor_at(a, NULL);
    jot_value d = linalg_diagonal(f.lu), is_zero = jot_equal(d, constant(0));
    jot_value phases = jot_div(d, jot_abs(jot_where(is_zero, constant(1), d)));
    return jot_mul(jot_prod_axes(phases, last), sign_of_swaps(f));
}

// d log det a = trace(a^-1 da), of which the imaginary part turns the sign.
static void slogdet_rule(const jot_value *in, jot_value *out, void *ctx)
{
    (void)ctx;
    jot_value t = linalg_trace(jot_solve(in[0], in[1]));
    jot_value turn = jot_sub(t, jot_convert(jot_real(t), jot_value_dtype(t)));
    out[0] = dtype_is_complex(jot_value_dtype(t)) ? jot_mul(turning_sign(in[0]), turn) : turn;
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
    jot_value sum = jot_mul(constant(c[0]), x[0]);
    for (int i = 1; i < n; i++)
        sum = jot_add(sum, jot_mul(constant(c[2 * i]), x[i]));
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
    jot_value halvings = jot_ceil(jot_log2(jot_div(norm, constant(pade_norm))));
    halvings = jot_stop_gradient(jot_maximum(halvings, constant(0)));
    jot_value is_too_large = jot_greater(halvings, jot_from_int(SQUARINGS));
    halvings = jot_expand_dims_axes(halvings, (const int[]){-2, -1, JOT_END});
    jot_value r = approximate(jot_mul(a, jot_exp2(jot_neg(halvings))));
    for (int i = 0; i < SQUARINGS; i++)
        r = jot_where(jot_greater(halvings, jot_from_int(i)), jot_matmul(r, r), r);
    is_too_large = jot_expand_dims_axes(is_too_large, (const int[]){-2, -1, JOT_END});
    return jot_where(is_too_large, constant((double)NAN), r);
}
