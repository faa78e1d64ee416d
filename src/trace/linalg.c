// SPDX-License-Identifier: Apache-2.0
// Factorizations and linear systems.
#include "trace/linalg.h"

#include "ir/linalg.h"

#include "jot/indexing.h"
#include "jot/shapes.h"

#define SHORT 16 // rows that are chosen by comparisons

// ---- Matrices ----

int64_t linalg_extent(jot_value a, int from_end)
{
    struct ir_type t = trace_type(a);
    return ir_dims(trace_top()->module, t)[t.rank - from_end];
}

// Brings the values to one type that factorizations take.
static bool promote(const char *name, int n, jot_value *v, jot_value *out_error)
{
    struct trace_promoted p;
    if (!trace_ready(name, n, v, out_error) ||
        !trace_promote(name, "inexact", n, v, &p, out_error))
        return false;
    if (dtype_is_half(p.seen)) {
        *out_error = trace_fail(name, JOT_ERR_DTYPE,
                                "%s: it takes f32, f64, c64 and c128: convert it first",
                                trace_type_text(v[0]));
        return false;
    }
    for (int i = 0; i < n; i++)
        v[i] = trace_value(trace_operand(v[i], p.dtype), p.weak);
    return true;
}

static jot_value matrix(const char *name, jot_value a, bool is_square)
{
    jot_value error;
    if (!promote(name, 1, &a, &error))
        return error;
    if (trace_type(a).rank < 2)
        return trace_fail(name, JOT_ERR_SHAPE, "%s: a matrix has two axes", trace_type_text(a));
    if (is_square && linalg_extent(a, 1) != linalg_extent(a, 2))
        return trace_fail(name, JOT_ERR_SHAPE, "%s: the matrix is not square",
                          trace_type_text(a));
    return a;
}

jot_value linalg_matrix(const char *name, jot_value a, bool is_square)
{
    TRACE_RETURN(matrix(name, a, is_square));
}

// v with the n axes of `batch` in place of those in front of its matrices.
static jot_value spread(jot_value v, int n, const int64_t *batch)
{
    int64_t dims[IR_MAX_RANK + 1];
    memcpy(dims, batch, sizeof *dims * (size_t)n);
    dims[n] = linalg_extent(v, 2);
    dims[n + 1] = linalg_extent(v, 1);
    dims[n + 2] = JOT_END;
    return jot_broadcast_to_dims(v, dims);
}

// The result is an error, or any other value.
static jot_value pair(const char *name, jot_value *v)
{
    jot_value error;
    int64_t batch[IR_MAX_RANK];
    if (!promote(name, 2, v, &error))
        return error;
    struct ir_type t[2] = {trace_type(v[0]), trace_type(v[1])};
    if (t[0].rank < 2 || t[1].rank < 2)
        return trace_fail(name, JOT_ERR_SHAPE, "%s and %s: a matrix has two axes",
                          trace_type_text(v[0]), trace_type_text(v[1]));
    int n = (t[0].rank > t[1].rank ? t[0].rank : t[1].rank) - 2;
    for (int k = 1; k <= n; k++) {
        int64_t x = k + 2 <= t[0].rank ? linalg_extent(v[0], k + 2) : 1;
        int64_t y = k + 2 <= t[1].rank ? linalg_extent(v[1], k + 2) : 1;
        if (x != y && x != 1 && y != 1)
            return trace_fail(name, JOT_ERR_SHAPE,
                              "%s and %s: the axes before the matrices do not broadcast",
                              trace_type_text(v[0]), trace_type_text(v[1]));
        batch[n - k] = x == 1 ? y : x;
    }
    for (int i = 0; i < 2; i++)
        v[i] = spread(v[i], n, batch);
    return v[0];
}

static jot_value guarded_pair(const char *name, jot_value *v) { TRACE_RETURN(pair(name, v)); }

// The same of two values, to one type, with the batches broadcast.
static bool linalg_pair(const char *name, jot_value *a, jot_value *b)
{
    jot_value v[] = {*a, *b}, result = guarded_pair(name, v);
    bool ok = !trace_is_error(result);
    *a = ok ? v[0] : result;
    *b = ok ? v[1] : result;
    return ok;
}

jot_value linalg_transpose(jot_value a) { return jot_swap_axes(a, -1, -2); }

jot_value linalg_adjoint(jot_value a) { return jot_conj(linalg_transpose(a)); }

jot_value linalg_eye_like(jot_value a)
{
    int64_t n = linalg_extent(a, 1);
    jot_value eye = jot_eye(jot_value_dtype(a), n, n);
    return jot_add(jot_zeros_like(a), eye);
}

jot_value linalg_diagonal(jot_value a) { return jot_diagonal(a, 0, -2, -1); }

jot_value linalg_trace(jot_value a)
{
    return jot_sum_axes(linalg_diagonal(a), (const int[]){-1, JOT_END});
}

void linalg_apply(const char *name, jot_body *f, jot_body *rule, int n_in, const jot_value *in,
                  int n_out, jot_value *out)
{
    jot_function plain = jot_function_uniform(name, name, f, n_in, n_out, NULL);
    jot_function tangents = jot_function_uniform(name, name, rule, 2 * n_in, n_out, NULL);
    jot_apply_at(jot_custom_jvp_of(plain, tangents, name), (size_t)n_in, in, (size_t)n_out, out,
                 NULL);
}

// ---- Ops ----

static jot_value emit(const char *name, ir_id (*op)(struct ir_builder *b, ir_id a), jot_value a)
{
    return trace_result(name, op(trace_builder(), trace_kept(a)), trace_slot_of(a)->weak);
}

static jot_value cholesky(jot_value a)
{
    a = matrix("jot_cholesky", a, true);
    return trace_is_error(a) ? a : emit("jot_cholesky", ir_cholesky, a);
}

jot_value jot_cholesky(jot_value a) { TRACE_RETURN(cholesky(a)); }

static jot_value lu(jot_value a, jot_lu_factors *out)
{
    a = matrix("jot_lu_factor", a, false);
    if (trace_is_error(a))
        return a;
    ir_id first = ir_lu(trace_builder(), trace_kept(a));
    jot_value result = trace_result("jot_lu_factor", first, trace_slot_of(a)->weak);
    if (!trace_is_error(result))
        *out = (jot_lu_factors){result, trace_value(first + 1, false),
                                trace_value(first + 2, false)};
    return result;
}

static jot_value guarded_lu(jot_value a, jot_lu_factors *out) { TRACE_RETURN(lu(a, out)); }

jot_lu_factors jot_lu_factor_at(jot_value a, const char *where)
{
    jot_lu_factors out;
    jot_value result = guarded_lu(a, &out);
    if (where)
        jot_place(result, where);
    return trace_is_error(result) ? (jot_lu_factors){result, result, result} : out;
}

static jot_value solve_triangular(const char *name, jot_value a, jot_value b,
                                  const struct ir_triangular *t)
{
    if (!linalg_pair(name, &a, &b))
        return a;
    int64_t n = linalg_extent(a, 1), sides = linalg_extent(b, t->left ? 2 : 1);
    if (n != linalg_extent(a, 2))
        return trace_fail(name, JOT_ERR_SHAPE, "%s: the matrix is not square",
                          trace_type_text(a));
    if (n != sides)
        return trace_fail(name, JOT_ERR_SHAPE,
                          t->left ? "%s x = %s: there is a right side of %lld rows"
                                  : "x %s = %s: there is a right side of %lld columns",
                          trace_type_text(a), trace_type_text(b), (long long)sides);
    ir_id x = ir_triangular_solve(trace_builder(), trace_kept(a), trace_kept(b), t);
    return trace_result(name, x, trace_slot_of(b)->weak);
}

static jot_value guarded_triangular(const char *name, jot_value a, jot_value b,
                                    const struct ir_triangular *t)
{
    TRACE_RETURN(solve_triangular(name, a, b, t));
}

// ---- Right sides ----

// A vector as a matrix of one column; whether it was one.
static bool make_columns(jot_value *b)
{
    bool is_vector = jot_value_rank(*b) == 1;
    if (is_vector)
        *b = jot_expand_dims_axes(*b, (const int[]){-1, JOT_END});
    return is_vector;
}

static jot_value drop_columns(bool is_vector, jot_value x)
{
    return is_vector ? jot_squeeze_axes(x, (const int[]){-1, JOT_END}) : x;
}

jot_value jot_solve_triangular_with(jot_value a, jot_value b,
                                    const jot_triangular_options *options)
{
    jot_triangular_options o = options ? *options : (jot_triangular_options){0};
    struct ir_triangular t = {.left = !o.right,
                              .lower = o.lower,
                              .transposed = o.transposed,
                              .conjugated = o.conjugated,
                              .unit_diagonal = o.unit_diagonal};
    // A row is a vector that stands for x a = b.
    bool is_row = o.right && jot_value_rank(b) == 1;
    if (is_row)
        b = jot_expand_dims_axes(b, (const int[]){0, JOT_END});
    bool is_vector = make_columns(&b);
    jot_value x = guarded_triangular("jot_solve_triangular", a, b, &t);
    return is_row ? jot_squeeze_axes(x, (const int[]){-2, JOT_END})
                  : drop_columns(is_vector, x);
}

jot_value jot_cho_solve(jot_value l, jot_value b)
{
    struct ir_triangular t = {.left = true, .lower = true};
    bool is_vector = make_columns(&b);
    b = guarded_triangular("jot_cho_solve", l, b, &t);
    t.transposed = t.conjugated = true;
    return drop_columns(is_vector, guarded_triangular("jot_cho_solve", l, b, &t));
}

static jot_value take_rows(jot_value b, jot_value order)
{
    return jot_take_along_axis_mode(b, jot_expand_dims_axes(order, (const int[]){-1, JOT_END}),
                                    -2, JOT_INDEX_PROMISE);
}

// The same of short columns, each element chosen from all: numbers of rows that are data keep a vector
// in memory, and comparisons leave it in registers where all is written out.
static jot_value choose_rows(jot_value b, jot_value order)
{
    jot_value numbers = jot_arange(JOT_I32, linalg_extent(b, 2));
    jot_value is_it =
        jot_equal(jot_expand_dims_axes(order, (const int[]){-1, JOT_END}), numbers);
    jot_value all =
        jot_where(jot_expand_dims_axes(is_it, (const int[]){-1, JOT_END}),
                  jot_expand_dims_axes(b, (const int[]){-3, JOT_END}), jot_from_int(0));
    return jot_sum_axes(all, (const int[]){-2, JOT_END});
}

// The permutation that undoes one.
static jot_value inverse_order(jot_value order)
{
    int64_t n = linalg_extent(order, 1);
    jot_value numbers = jot_arange(JOT_I32, n);
    jot_value column = jot_expand_dims_axes(numbers, (const int[]){-1, JOT_END});
    jot_value row = jot_expand_dims_axes(order, (const int[]){-2, JOT_END});
    jot_value at = jot_where(jot_equal(column, row), numbers, jot_from_int(0));
    return jot_sum_axes(at, (const int[]){-1, JOT_END});
}

jot_value linalg_times_permutation(jot_value x, jot_lu_factors f)
{
    jot_value order =
        jot_expand_dims_axes(inverse_order(f.permutation), (const int[]){-2, JOT_END});
    return jot_take_along_axis_mode(x, order, -1, JOT_INDEX_PROMISE);
}

// b is matrices.
static jot_value solve_factored(const char *name, jot_lu_factors f, jot_value b,
                                bool transposed)
{
    struct ir_triangular l = {
        .left = true, .lower = true, .unit_diagonal = true, .transposed = transposed};
    struct ir_triangular u = {.left = true, .transposed = transposed};
    if (!linalg_pair(name, &f.lu, &b))
        return b;
    if (!transposed) {
        bool is_short = linalg_extent(b, 2) <= SHORT && linalg_extent(b, 1) <= SHORT / 8;
        b = is_short ? choose_rows(b, f.permutation) : take_rows(b, f.permutation);
        b = guarded_triangular(name, f.lu, b, &l);
        return guarded_triangular(name, f.lu, b, &u);
    }
    b = guarded_triangular(name, f.lu, b, &u);
    b = guarded_triangular(name, f.lu, b, &l);
    return take_rows(b, inverse_order(f.permutation));
}

jot_value jot_lu_solve_trans(jot_lu_factors f, jot_value b, bool transposed)
{
    bool is_vector = make_columns(&b);
    return drop_columns(is_vector, solve_factored("jot_lu_solve", f, b, transposed));
}

static void solve_body(const jot_value *in, jot_value *out, void *ctx)
{
    (void)ctx;
    out[0] = solve_factored("jot_solve", jot_lu_factor_at(in[0], NULL), in[1], false);
}

// (a, b, da, db) -> a^-1 (db - da x)
static void solve_rule(const jot_value *in, jot_value *out, void *ctx)
{
    (void)ctx;
    jot_lu_factors f = jot_lu_factor_at(in[0], NULL);
    jot_value x = solve_factored("jot_solve", f, in[1], false);
    jot_value right = jot_sub(in[3], jot_matmul(in[2], x));
    out[0] = solve_factored("jot_solve", f, right, false);
}

jot_value jot_solve(jot_value a, jot_value b)
{
    bool is_vector = make_columns(&b);
    jot_value in[] = {linalg_matrix("jot_solve", a, true), b}, x;
    if (trace_is_error(in[0]) || !linalg_pair("jot_solve", &in[0], &in[1]))
        return in[0];
    if (linalg_extent(in[0], 1) != linalg_extent(in[1], 2))
        return trace_fail(
            "jot_solve", JOT_ERR_SHAPE, "%s x = %s: there is a right side of %lld rows",
            trace_type_text(in[0]), trace_type_text(in[1]), (long long)linalg_extent(in[1], 2));
    linalg_apply("jot_solve", solve_body, solve_rule, 2, in, 1, &x);
    return drop_columns(is_vector, x);
}

// u^-1 l^-1 p: rows above the diagonal of l^-1 are zeros, of which the solve makes use, and the
// permutation p would mix them.
static jot_value invert(jot_value a)
{
    jot_lu_factors f = jot_lu_factor_at(a, NULL);
    struct ir_triangular l = {.left = true, .lower = true, .unit_diagonal = true};
    struct ir_triangular u = {.left = true};
    jot_value x = guarded_triangular("jot_inv", f.lu, linalg_eye_like(f.lu), &l);
    return linalg_times_permutation(guarded_triangular("jot_inv", f.lu, x, &u), f);
}

static void inv_body(const jot_value *in, jot_value *out, void *ctx)
{
    (void)ctx;
    out[0] = invert(in[0]);
}

// (a, da) -> -a^-1 da a^-1
static void inv_rule(const jot_value *in, jot_value *out, void *ctx)
{
    (void)ctx;
    jot_value x = invert(in[0]);
    out[0] = jot_neg(jot_matmul(x, jot_matmul(in[1], x)));
}

jot_value jot_inv(jot_value a)
{
    jot_value out;
    a = linalg_matrix("jot_inv", a, true);
    if (trace_is_error(a))
        return a;
    linalg_apply("jot_inv", inv_body, inv_rule, 1, &a, 1, &out);
    return out;
}

static jot_value tridiagonal(jot_value dl, jot_value d, jot_value du, jot_value b)
{
    const char *name = "jot_tridiagonal_solve";
    jot_value v[] = {dl, d, du, b}, error;
    ir_id ids[4];
    if (!promote(name, 4, v, &error))
        return error;
    for (int i = 0; i < 4; i++)
        ids[i] = trace_kept(v[i]);
    return trace_result(name,
                        ir_tridiagonal_solve(trace_builder(), ids[0], ids[1], ids[2], ids[3]),
                        trace_slot_of(v[3])->weak);
}

static jot_value guarded_tridiagonal(jot_value dl, jot_value d, jot_value du, jot_value b)
{
    TRACE_RETURN(tridiagonal(dl, d, du, b));
}

jot_value jot_tridiagonal_solve(jot_value dl, jot_value d, jot_value du, jot_value b)
{
    bool is_vector = make_columns(&b);
    return drop_columns(is_vector, guarded_tridiagonal(dl, d, du, b));
}
