// SPDX-License-Identifier: Apache-2.0
// Decompositions of matrices, and what is computed from them.
#include "trace/emit.h"

#include "jot/decompose.h"
#include "jot/linalg.h"
#include "jot/transform.h"

#include <math.h>

// ---- The ops

// The n results of an op on a, of svd the first where that is not 0; out[0] is also the result.
static jot_value decompose(enum ir_op op, const char *name, jot_value a, int mode,
                           int64_t first, int n, jot_value *out)
{
    struct trace_promoted p;
    jot_value error;
    if (!trace_ready(name, 1, &a, &error) || !trace_promote(name, "inexact", 1, &a, &p, &error))
        return error;
    ir_id x = trace_operand(a, p.seen);
    ir_id y = first > 0 ? ir_svd_first(trace_builder(), x, first)
                        : ir_decompose(trace_builder(), op, x, mode);
    for (int i = 0; i < n; i++)
        out[i] = trace_result(name, y == IR_NONE ? y : y + (ir_id)i, false);
    return out[0];
}

static jot_value guarded(enum ir_op op, const char *name, jot_value a, int mode, int64_t first,
                         int n, jot_value *out)
{
    TRACE_RETURN(decompose(op, name, a, mode, first, n, out));
}

static void record_first(enum ir_op op, const char *name, jot_value a, int mode, int64_t first,
                         int n, jot_value *out)
{
    jot_value one = guarded(op, name, a, mode, first, n, out);
    for (int i = 0; i < n && jot_value_failed(one); i++)
        out[i] = one;
}

static void record(enum ir_op op, const char *name, jot_value a, int mode, int n,
                   jot_value *out)
{
    record_first(op, name, a, mode, 0, n, out);
}

static jot_qr_factors qr(const char *name, jot_value a, int mode)
{
    jot_value y[2];
    record(IR_qr, name, a, mode, 2, y);
    return (jot_qr_factors){y[0], y[1]};
}

jot_qr_factors jot_qr(jot_value a) { return qr("jot_qr", a, 0); }
jot_qr_factors jot_qr_full(jot_value a) { return qr("jot_qr_full", a, 1); }

static jot_value adjoint(jot_value a)
{
    a = jot_swap_axes(a, -2, -1);
    return dtype_is_complex(jot_value_dtype(a)) ? jot_conj(a) : a;
}

static jot_eigen eigh(const char *name, jot_value a)
{
    jot_value y[2];
    record(IR_eigh, name, a, 0, 2, y);
    return (jot_eigen){y[0], y[1]};
}

// Whether a is square matrices; what is not is left to the op to complain of.
static bool is_square(jot_value a)
{
    return jot_value_rank(a) >= 2 && jot_value_dim(a, -1) == jot_value_dim(a, -2);
}

jot_eigen jot_eigh(jot_value a)
{
    if (is_square(a))
        a = jot_mul(jot_add(a, adjoint(a)), jot_from_double(0.5));
    return eigh("jot_eigh", a);
}

jot_eigen jot_eigh_lower(jot_value a) { return eigh("jot_eigh_lower", a); }

jot_eigen jot_eigh_upper(jot_value a)
{
    return eigh("jot_eigh_upper", is_square(a) ? adjoint(a) : a);
}

jot_value jot_eigvalsh(jot_value a) { return jot_eigh(a).values; }

static jot_svd_factors svd_first(const char *name, jot_value a, int mode, int64_t first)
{
    jot_value y[3];
    record_first(IR_svd, name, a, mode, first, 3, y);
    return (jot_svd_factors){.u = y[1], .s = y[0], .vh = y[2]};
}

static jot_svd_factors svd(const char *name, jot_value a, int mode)
{
    return svd_first(name, a, mode, 0);
}

jot_svd_factors jot_svd(jot_value a) { return svd("jot_svd", a, 1); }
jot_svd_factors jot_svd_full(jot_value a) { return svd("jot_svd_full", a, 2); }

// Whether a device may find the k largest faster than all of them.  On an H200 all of an f32 matrix of
// 1,024 rows take no longer than a search for some that fails; of f64 all take 8 times as long.
static bool is_worth_truncating(jot_dtype dtype, int64_t k, int64_t most)
{
    return !dtype_is_complex(dtype) && k > 0 && most >= (dtype == JOT_F32 ? 2048 : 512) &&
           k <= most / 8;
}

jot_svd_factors jot_svd_truncated(jot_value a, int64_t k)
{
    const char *name = "jot_svd_truncated";
    jot_svd_factors f = svd(name, a, 1);
    if (jot_value_failed(f.s))
        return f;
    int64_t most = jot_value_dim(f.s, -1);
    if (k < 0 || k > most) {
        jot_value error =
            trace_fail(name, JOT_ERR_ARGUMENT, "k is %lld: %s has %lld singular values",
                       (long long)k, trace_type_text(a), (long long)most);
        return (jot_svd_factors){error, error, error};
    }
    if (is_worth_truncating(jot_value_dtype(f.s), k, most))
        return svd_first(name, a, 3, k);
    return (jot_svd_factors){.u = jot_slice_axis(f.u, -1, 0, k, 1),
                             .s = jot_slice_axis(f.s, -1, 0, k, 1),
                             .vh = jot_slice_axis(f.vh, -2, 0, k, 1)};
}

static jot_value svdvals(const char *name, jot_value a)
{
    jot_value s;
    record(IR_svd, name, a, 0, 1, &s);
    return s;
}

jot_value jot_svdvals(jot_value a) { return svdvals("jot_svdvals", a); }

jot_eigen jot_eig(jot_value a)
{
    jot_value y[2];
    record(IR_eig, "jot_eig", a, 1, 2, y);
    return (jot_eigen){y[0], y[1]};
}

jot_eigen_pairs jot_eig_pairs(jot_value a)
{
    jot_value y[3];
    record(IR_eig, "jot_eig_pairs", a, 2, 3, y);
    return (jot_eigen_pairs){y[0], y[1], y[2]};
}

jot_value jot_eigvals(jot_value a)
{
    jot_value w;
    record(IR_eig, "jot_eigvals", a, 0, 1, &w);
    return w;
}

jot_schur_factors jot_schur(jot_value a)
{
    jot_value y[2];
    record(IR_schur, "jot_schur", a, 0, 2, y);
    return (jot_schur_factors){y[0], y[1]};
}

static const int last[] = {-1, JOT_END}, last_kept[] = {-1, JOT_KEEPDIMS, JOT_END};

static double epsilon_of(jot_value x)
{
    return dtype_real(dtype_to_inexact(jot_value_dtype(x))) == JOT_F32 ? 0x1p-23 : 0x1p-52;
}

static jot_value expand(jot_value x, int axis)
{
    return jot_expand_dims_axes(x, (const int[]){axis, JOT_END});
}

// ---- Statuses

// JOT_FACTOR_DEGENERATE where of the last axis of w, its values, two are equal, or where the smallest
// size is within `zero` of 0, relative to the largest.
static jot_value status_of(jot_value w, double zero)
{
    int64_t n = jot_value_dim(w, -1);
    jot_value failed = jot_convert(jot_any_axes(jot_is_nan(w), last), JOT_I32);
    if (jot_value_failed(failed) || n == 0)
        return failed;
    jot_value sizes = jot_abs(w), most = jot_max_axes(sizes, last_kept);
    jot_value least = jot_mul(most, jot_from_double(epsilon_of(w) * (double)n));
    jot_value i = jot_arange(JOT_I64, n), is_pair = jot_less(expand(i, 1), i);
    jot_value apart = jot_abs(jot_sub(expand(w, -1), expand(w, -2)));
    jot_value close = jot_less_equal(apart, expand(least, -1));
    close = jot_any_axes(jot_logical_and(close, is_pair), (const int[]){-2, -1, JOT_END});
    jot_value is_zero = jot_less_equal(sizes, jot_mul(most, jot_from_double(zero)));
    if (zero > 0)
        close = jot_logical_or(close, jot_any_axes(is_zero, last));
    return jot_where(jot_logical_and(close, jot_equal(failed, jot_from_int(0))),
                     jot_from_int(JOT_FACTOR_DEGENERATE), failed);
}

jot_value jot_eigen_status(jot_value values)
{
    if (!jot_value_failed(values) && jot_value_rank(values) < 1)
        return trace_fail("jot_eigen_status", JOT_ERR_SHAPE,
                          "%s: the values of a matrix have an axis", trace_type_text(values));
    return status_of(values, 0);
}

jot_value jot_svd_status(jot_svd_factors f)
{
    if (jot_value_failed(f.u) || jot_value_failed(f.vh))
        return jot_value_failed(f.u) ? f.u : f.vh;
    int64_t m = jot_value_dim(f.u, -2), n = jot_value_dim(f.vh, -1);
    return status_of(f.s, m == n ? 0 : epsilon_of(f.s) * (double)(m > n ? m : n));
}

// ---- What they are for

// What counts: factor max(m, n) eps for a negative rtol.
static jot_value relative(jot_value a, double rtol, double factor)
{
    int64_t m = jot_value_dim(a, -2), n = jot_value_dim(a, -1);
    double most = (double)(m > n ? m : n);
    return jot_from_double(rtol < 0 ? factor * epsilon_of(a) * most : rtol);
}

// Which singular values are above rtol of the largest.
static jot_value above(jot_value s, jot_value rtol)
{
    if (jot_value_failed(s) || jot_value_dim(s, -1) == 0)
        return jot_greater(s, jot_from_int(0));
    return jot_greater(s, jot_mul(jot_max_axes(s, last_kept), rtol));
}

// 1 / s where it counts, else 0, with derivatives that see no division by 0.
static jot_value inverses(jot_value s, jot_value counts)
{
    jot_value safe = jot_where(counts, s, jot_ones_like(s));
    return jot_where(counts, jot_reciprocal(safe), jot_zeros_like(s));
}

static jot_value from_factors(jot_svd_factors f, jot_value rtol)
{
    jot_value scale = inverses(f.s, above(f.s, rtol));
    return jot_matmul(adjoint(f.vh), jot_mul(expand(scale, -1), adjoint(f.u)));
}

static jot_value pinv(jot_value a, jot_value rtol)
{
    return from_factors(svd("jot_pinv", a, 1), rtol);
}

// dp = - p da p + p p^H da^H (1 - a p) + (1 - p a) da^H p^H p (Golub, Pereyra 1973): where singular
// values are equal their vectors have no derivative, but p has.
static jot_value pinv_rule(jot_value a, jot_value rtol, jot_value da, jot_value drtol)
{
    (void)drtol;
    jot_value p = pinv(a, rtol), ph = adjoint(p), dah = adjoint(da);
    jot_value x = jot_matmul(jot_matmul(p, ph), dah), y = jot_matmul(dah, jot_matmul(ph, p));
    x = jot_sub(x, jot_matmul(jot_matmul(x, a), p));
    y = jot_sub(y, jot_matmul(p, jot_matmul(a, y)));
    return jot_sub(jot_add(x, y), jot_matmul(jot_matmul(p, da), p));
}

static jot_value pinv_of(jot_value a, jot_value rtol)
{
    const char *name = "jot_pinv";
    jot_function f = jot_function_plain(name, name, 2, (void (*)(void))pinv);
    jot_function rule = jot_function_plain(name, name, 4, (void (*)(void))pinv_rule);
    jot_value in[] = {a, rtol}, out;
    jot_apply_at(jot_custom_jvp_of(f, rule, name), 2, in, 1, &out, NULL);
    return out;
}

jot_value jot_pinv(jot_value a, double rtol)
{
    jot_dtype d = jot_value_dtype(a);
    if (!jot_value_failed(a) && !dtype_is_inexact(d))
        a = jot_convert(a, dtype_to_inexact(d));
    return pinv_of(a, relative(a, rtol, 10));
}

static jot_value check_lstsq(jot_value a, jot_value b)
{
    const char *name = "jot_lstsq";
    jot_value v[] = {a, b}, error;
    if (!trace_ready(name, 2, v, &error))
        return error;
    struct ir_type ta = trace_type(v[0]), tb = trace_type(v[1]);
    const int64_t *da = ir_dims(trace_top()->module, ta),
                  *db = ir_dims(trace_top()->module, tb);
    if (ta.rank != 2 || tb.rank < 1 || tb.rank > 2 || da[0] != db[0])
        return trace_fail(
            name, JOT_ERR_SHAPE,
            "%s and %s: it takes a matrix, and a vector or matrix of as many rows",
            trace_type_text(v[0]), trace_type_text(v[1]));
    return a;
}

static jot_value checked_lstsq(jot_value a, jot_value b) { TRACE_RETURN(check_lstsq(a, b)); }

static jot_value squared(jot_value x)
{
    return dtype_is_complex(jot_value_dtype(x)) ? jot_real(jot_mul(x, jot_conj(x)))
                                                : jot_square(x);
}

jot_lstsq_result jot_lstsq(jot_value a, jot_value b, double rcond)
{
    static const int first[] = {0, JOT_END};
    a = checked_lstsq(a, b);
    jot_value rtol = relative(a, rcond, 1), s = svdvals("jot_lstsq", a);
    if (jot_value_failed(s))
        return (jot_lstsq_result){s, s, s, s};
    jot_value x = jot_matmul(pinv_of(a, rtol), b);
    jot_value residuals = jot_sum_axes(squared(jot_sub(b, jot_matmul(a, x))), first);
    if (jot_value_rank(residuals) == 0)
        residuals = jot_expand_dims_axes(residuals, first);
    return (jot_lstsq_result){.x = x,
                              .residuals = residuals,
                              .rank = jot_sum_axes(jot_convert(above(s, rtol), JOT_I32), last),
                              .s = s};
}

jot_value jot_matrix_rank(jot_value a, double rtol)
{
    jot_value s = svdvals("jot_matrix_rank", a);
    jot_value counts = above(s, relative(a, rtol, 1));
    return jot_sum_axes(jot_convert(counts, JOT_I32), last);
}

static jot_value fail_kind(int kind)
{
    return trace_fail("jot_matrix_norm", JOT_ERR_ARGUMENT, "there is no norm of kind %d", kind);
}

static jot_value no_norm(int kind) { TRACE_RETURN(fail_kind(kind)); }

// The largest of numbers that are not negative, 0 of none.
static jot_value largest(jot_value x, const int *axes)
{
    return !jot_value_failed(x) && jot_value_size(x) == 0 ? jot_sum_axes(x, axes)
                                                          : jot_max_axes(x, axes);
}

jot_value jot_matrix_norm(jot_value a, jot_matrix_norm_kind kind)
{
    static const int rows[] = {-2, JOT_END}, both[] = {-2, -1, JOT_END};
    switch (kind) {
    case JOT_NORM_FROBENIUS:
        return jot_norm_axes(a, both);
    case JOT_NORM_NUCLEAR:
        return jot_sum_axes(svdvals("jot_matrix_norm", a), last);
    case JOT_NORM_1:
        return largest(jot_sum_axes(jot_abs(a), rows), last);
    case JOT_NORM_INF:
        return largest(jot_sum_axes(jot_abs(a), last), last);
    case JOT_NORM_MINUS_1:
        return jot_min_axes(jot_sum_axes(jot_abs(a), rows), last);
    case JOT_NORM_MINUS_INF:
        return jot_min_axes(jot_sum_axes(jot_abs(a), last), last);
    case JOT_NORM_2:
        return largest(svdvals("jot_matrix_norm", a), last);
    case JOT_NORM_MINUS_2:
        return jot_min_axes(svdvals("jot_matrix_norm", a), last);
    }
    return no_norm((int)kind);
}

jot_value jot_vector_norm_axes(jot_value x, double ord, const int *axes)
{
    if (isinf(ord))
        return (ord > 0 ? largest : jot_min_axes)(jot_abs(x), axes);
    if (ord == 2)
        return jot_norm_axes(x, axes);
    if (ord == 1)
        return jot_sum_axes(jot_abs(x), axes);
    if (ord == 0) {
        jot_dtype d = dtype_real(dtype_to_inexact(jot_value_dtype(x)));
        return jot_sum_axes(jot_convert(jot_not_equal(x, jot_from_int(0)), d), axes);
    }
    jot_value sum = jot_sum_axes(jot_power(jot_abs(x), jot_from_double(ord)), axes);
    return jot_power(sum, jot_from_double(1 / ord));
}

// A matrix of zeros is singular, though 0 / 0 is NaN; one that has NaN is not known to be.
jot_value jot_cond(jot_value a)
{
    jot_value s = svdvals("jot_cond", a);
    jot_value least = jot_min_axes(s, last), r = jot_div(jot_max_axes(s, last), least);
    jot_value is_zero = jot_equal(least, jot_from_int(0));
    return jot_where(is_zero, jot_full_like(r, jot_from_double(INFINITY)), r);
}

jot_value jot_cond_norm(jot_value a, jot_matrix_norm_kind kind)
{
    static const int both[] = {-2, -1, JOT_END};
    if (kind == JOT_NORM_2)
        return trace_own("jot_cond_norm", jot_cond(a));
    jot_value r;
    if (kind == JOT_NORM_MINUS_2) {
        jot_value s = svdvals("jot_cond_norm", a);
        r = jot_div(jot_min_axes(s, last), jot_max_axes(s, last));
    } else {
        r = jot_mul(jot_matrix_norm(a, kind),
                    jot_matrix_norm(trace_own("jot_cond_norm", jot_inv(a)), kind));
    }
    jot_value had_nan = jot_any_axes(jot_is_nan(a), both);
    jot_value is_singular = jot_logical_and(jot_is_nan(r), jot_logical_not(had_nan));
    return jot_where(is_singular, jot_full_like(r, jot_from_double(INFINITY)), r);
}
