// SPDX-License-Identifier: Apache-2.0
// Decompositions, by the evaluator and by routines: factors are judged by what they are to be
// (a product, orthonormal columns, an order), since signs, phases and rounding errors are free.
//
// Errors grow like n eps times a small power of n; 30 n eps, relative to the largest element, is about
// ten times what is seen.
#include "factor_support.h"
#include "support/sample.h"

// a v = v w, u^H a = w u^H, lengths 1, and the largest element real.
static jot_value eig_errors(jot_value a)
{
    jot_eigen_pairs p = jot_eig_pairs(a);
    jot_eigen e = jot_eig(a);
    jot_value c = as(p.right, a), u = p.left, v = p.right;
    jot_value product = largest(jot_sub(jot_matmul(c, v), columns_by(v, p.values)));
    jot_value left = jot_sub(jot_matmul(adjoint(c), u), columns_by(u, jot_conj(p.values)));
    jot_value same =
        largest(jot_sub(jot_matmul(c, e.vectors), columns_by(e.vectors, e.values)));
    product = jot_div(jot_maximum(jot_maximum(product, largest(left)), same), largest(a));
    jot_value sizes = jot_abs(v), top = jot_equal(sizes, jot_max(sizes, -2, JOT_KEEPDIMS));
    jot_value imaginary = largest(jot_where(top, jot_imag(v), jot_zeros_like(jot_imag(v))));
    jot_value length = largest(jot_sub(jot_norm(v, -2), 1));
    jot_value values = jot_sub(jot_sum(jot_eigvals(a)), jot_sum(p.values));
    return jot_maximum(jot_maximum(product, imaginary), jot_maximum(length, jot_abs(values)));
}

static jot_value schur_errors(jot_value a)
{
    jot_schur_factors f = jot_schur(a);
    bool is_complex = jot_value_dtype(a) == JOT_C64 || jot_value_dtype(a) == JOT_C128;
    jot_value below = largest(jot_tril(f.t, is_complex ? -1 : -2));
    return worst(a, jot_matmul(jot_matmul(f.z, f.t), adjoint(f.z)),
                 jot_maximum(jot_div(below, largest(a)), off_unitary(f.z)));
}

// The four conditions of Penrose.
static jot_value pinv_errors(jot_value a)
{
    jot_value p = jot_pinv(a, -1), ap = jot_matmul(a, p), pa = jot_matmul(p, a);
    jot_value hermitian =
        jot_maximum(largest(jot_sub(ap, adjoint(ap))), largest(jot_sub(pa, adjoint(pa))));
    jot_value b = jot_div(largest(jot_sub(jot_matmul(pa, p), p)), largest(p));
    return worst(a, jot_matmul(ap, a), jot_maximum(hermitian, b));
}

static const int64_t shapes[][4] = {
    {5, 5, JOT_END},    {6, 3, JOT_END},   {3, 6, JOT_END},
    {2, 4, 4, JOT_END}, {1, 1, JOT_END},   {3, 7, 4, JOT_END},
    {2, 2, 5, JOT_END}, {40, 40, JOT_END}, {33, 17, JOT_END},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };
static const jot_dtype dtypes[] = {JOT_F64, JOT_F32, JOT_C128, JOT_C64};

static bool is_square(const int64_t *dims)
{
    int n = 0;
    while (dims[n] != JOT_END)
        n++;
    return dims[n - 1] == dims[n - 2];
}

// Of all types but the first, a third of the shapes each.
static void check_errors(const char *name, jot_function f, bool square, int i, double bound)
{
    jot_dtype d = dtypes[i % 4];
    double eps = d == JOT_F32 || d == JOT_C64 ? 0x1p-23 : 0x1p-52;
    for (int k = 0; k < SHAPES; k++) {
        if ((square && !is_square(shapes[k])) || (i > 0 && k % 3 != i % 3) ||
            !sample_takes((uint64_t)(i + k / 3), 1))
            continue;
        jot_array *a = draw(d, k, shapes[k]);
        double error = item(f, a);
        ck_assert_msg(error <= bound * eps, "%s of %s, shape %d: an error of %g eps", name,
                      jot_dtype_name(d), k, error / eps);
        jot_array_release(a);
    }
}

START_TEST(test_factors)
{
    check_errors("qr", jot_fn(qr_errors), false, _i, 300);
    check_errors("qr_full", jot_fn(qr_full_errors), false, _i, 300);
    check_errors("eigh", jot_fn(eigh_errors), true, _i, 600);
    check_errors("svd", jot_fn(svd_errors), false, _i, 600);
    check_errors("svd_full", jot_fn(svd_full_errors), false, _i, 600);
    check_errors("schur", jot_fn(schur_errors), true, _i, 600);
    check_errors("pinv", jot_fn(pinv_errors), false, _i, 3000);
}
END_TEST

static jot_value truncated_errors(jot_value a)
{
    int64_t k = jot_value_dim(a, -1) > 100 ? 20 : 2;
    jot_svd_factors all = jot_svd(a), f = jot_svd_truncated(a, k),
                    none = jot_svd_truncated(a, 0);
    jot_value product = jot_matmul(columns_by(f.u, f.s), f.vh);
    jot_value left = jot_norm(jot_reshape(jot_sub(a, product), -1), -1);
    jot_value rest = jot_norm(jot_slice(all.s, -1, k, jot_value_dim(all.s, -1)), -1);
    jot_value unitary = jot_maximum(off_unitary(f.u), off_unitary(adjoint(f.vh)));
    return jot_add(jot_maximum(jot_abs(jot_sub(left, rest)), unitary),
                   jot_sum(jot_abs(jot_matmul(none.u, none.vh))));
}

// What is left of the matrix are the values that are left out.
START_TEST(test_truncated)
{
    static const int64_t sizes[][2] = {{7, 5}, {512, 520}, {520, 512}};
    jot_dtype d = dtypes[_i];
    double eps = d == JOT_F32 || d == JOT_C64 ? 0x1p-23 : 0x1p-52;
    bool is_slow = *getenv("JOT_BACKEND") || getenv("JOT_TEST_EMULATED");
    for (int i = 0; i < (is_slow ? 1 : 3); i++) {
        jot_array *a = draw(d, 3, (const int64_t[]){sizes[i][0], sizes[i][1], JOT_END});
        ck_assert_double_le(item(jot_fn(truncated_errors), a), (i ? 4000 : 60) * eps);
        jot_array_release(a);
    }
}
END_TEST

// Many at once, of one and of several warps a matrix on a GPU; without any column, tiny, and NaN.
START_TEST(test_qr_of_many)
{
    static const int64_t sizes[][2] = {{24, 18}, {18, 24}, {32, 32}, {50, 41}, {33, 64}};
    jot_dtype d = dtypes[_i];
    double eps = d == JOT_F32 || d == JOT_C64 ? 0x1p-23 : 0x1p-52;
    for (int k = 0; k < 5; k++) {
        if (!sample_takes((uint64_t)(_i + k), 1))
            continue;
        int64_t m = sizes[k][0], n = sizes[k][1];
        jot_scope *s = jot_scope_open();
        jot_array *a = draw(d, k, (const int64_t[]){17, m, n, JOT_END});
        ck_assert_double_le(item(jot_fn(qr_errors), a), 300 * eps);
        ck_assert_double_le(item(jot_fn(qr_full_errors), a), 300 * eps);
        const double factors[17] = {0, NAN, 0x1p-100, 1, 0x1p60};
        jot_value by =
            jot_astype(jot_reshape(jot_from(jot_array_from(factors, 17)), 17, 1, 1), d);
        jot_value b = jot_mul(jot_from(a), by);
        jot_qr_factors f = jot_qr(b);
        jot_value off = jot_max(jot_abs(jot_sub(jot_matmul(f.q, f.r), b)), -2, -1);
        CHECK_EXACT(jot_is_nan(jot_slice(off, 0, 0, 3)), 0, 1, 0);
        jot_value most = jot_max(jot_abs(b), -2, -1);
        for (int i = 2; i < 5; i += 2)
            CHECK_EXACT(jot_less(jot_slice(off, 0, i, i + 1),
                                 jot_mul(jot_slice(most, 0, i, i + 1), 300 * eps)),
                        1);
        jot_array_release(a);
        jot_scope_close(s);
    }
}
END_TEST

// Those of large matrices are made by panels and steps, tiny and huge numbers among them.
START_TEST(test_large)
{
    static const struct {
        jot_dtype dtype;
        int64_t m, n;
        double scale;
    } cases[] = {{JOT_F64, 150, 140, 1},        {JOT_F64, 140, 150, 1},
                 {JOT_F32, 140, 140, 0x1p-100}, {JOT_F32, 140, 135, 0x1p70},
                 {JOT_C64, 70, 45, 1},          {JOT_C128, 45, 70, 1}};
    jot_dtype d = cases[_i].dtype;
    double eps = d == JOT_F32 || d == JOT_C64 ? 0x1p-23 : 0x1p-52;
    int64_t m = cases[_i].m, n = cases[_i].n;
    jot_scope *s = jot_scope_open();
    jot_value a = jot_from(draw(d, 20, (const int64_t[]){m, n, JOT_END}));
    jot_array *x = evaluated(jot_mul(a, cases[_i].scale));
    jot_array *square = evaluated(jot_mul(jot_matmul(a, adjoint(a)), cases[_i].scale));
    ck_assert_double_le(item(jot_fn(qr_errors), x), 1000 * eps);
    ck_assert_double_le(item(jot_fn(qr_full_errors), x), 1000 * eps);
    ck_assert_double_le(item(jot_fn(svd_errors), x), 2000 * eps);
    ck_assert_double_le(item(jot_fn(eigh_errors), square), 2000 * eps);
    jot_array_release(x);
    jot_array_release(square);
    jot_scope_close(s);
}
END_TEST

static jot_value all_factors(jot_value a)
{
    jot_qr_factors qr = jot_qr(a);
    jot_svd_factors svd = jot_svd(a);
    jot_eigen e = jot_eigh(a);
    return jot_stack(0, qr.q, qr.r, svd.u, svd.vh, e.vectors, jot_lu_factor(a).lu, jot_inv(a));
}

START_TEST(test_threads)
{
    jot_array *a = draw(JOT_F32, 30, (const int64_t[]){300, 300, JOT_END}), *y[2] = {NULL};
    jot_executable *e = jot_jit(jot_fn(all_factors));
    int threads = jot_threads();
    for (int i = 0; i < 2; i++) {
        must(jot_set_threads(i ? 3 : 1));
        must(jot_call(e, JOT_IN(a), JOT_OUT(y[i])));
    }
    must(jot_set_threads(threads));
    ck_assert_mem_eq(jot_array_data(y[0]), jot_array_data(y[1]), jot_array_bytes(y[0]));
    jot_array_release(y[0]);
    jot_array_release(y[1]);
    jot_array_release(a);
    jot_executable_release(e);
}
END_TEST

// Of eigenvalues that are no better conditioned than their vectors.
START_TEST(test_eig) { check_errors("eig", jot_fn(eig_errors), true, _i, 3000); }
END_TEST

// ---- Values

static jot_value from(const double *x, int64_t m, int64_t n)
{
    jot_value rows[4];
    for (int i = 0; i < m; i++)
        rows[i] = jot_from(jot_array_copy(JOT_F64, x + i * n, (const int64_t[]){n, JOT_END}));
    return jot_stack_list(0, (size_t)m, rows);
}

START_TEST(test_signs)
{
    jot_scope *s = jot_scope_open();
    // LAPACK's: the diagonal of r has the signs that are not those of the columns' first elements.
    jot_qr_factors f = jot_qr(from((const double[]){3, 1, 4, 2}, 2, 2));
    CHECK(f.r, 1e-14, -5, -2.2, 0, 0.4);
    CHECK(f.q, 1e-14, -0.6, -0.8, -0.8, 0.6);
    // Nothing to clear, nothing to turn.
    f = jot_qr(from((const double[]){-2, 1, 0, -3}, 2, 2));
    CHECK_EXACT(f.q, 1, 0, 0, 1);
    CHECK_EXACT(f.r, -2, 1, 0, -3);
    jot_scope_close(s);
}
END_TEST

START_TEST(test_empty)
{
    jot_scope *s = jot_scope_open();
    CHECK_TYPE(jot_qr(jot_zeros(JOT_F64, 3, 0)).q, "f64[3,0]");
    CHECK_TYPE(jot_qr(jot_zeros(JOT_F64, 0, 3)).r, "f64[0,3]");
    CHECK_EXACT(jot_qr_full(jot_zeros(JOT_F64, 2, 0)).q, 1, 0, 0, 1);
    CHECK_EXACT(jot_svd_full(jot_zeros(JOT_F64, 0, 2)).vh, 1, 0, 0, 1);
    CHECK_TYPE(jot_eigh(jot_zeros(JOT_C64, 2, 0, 0)).values, "f32[2,0]");
    CHECK_TYPE(jot_eig(jot_zeros(JOT_F32, 0, 4, 4)).vectors, "c64[0,4,4]");
    CHECK_TYPE(jot_schur(jot_zeros(JOT_F32, 0, 0)).t, "f32[0,0]");
    CHECK_TYPE(jot_pinv(jot_zeros(JOT_F32, 0, 3), -1), "f32[3,0]");
    CHECK_EXACT(jot_matrix_rank(jot_zeros(JOT_F32, 0, 3), -1), 0);
    jot_scope_close(s);
}
END_TEST

// One matrix of three: its results alone are NaN.
// NaN where eigh_lower and eigh_upper do not read; the last size is one of LAPACK's steps.
START_TEST(test_other_triangle)
{
    static const int sizes[] = {3, 40, 150};
    jot_scope *scope = jot_scope_open();
    for (int i = 0; i < 3; i++) {
        int n = sizes[i];
        jot_value x = jot_sin(jot_reshape(jot_arange(JOT_F64, n * n), n, n));
        jot_value h = jot_add(x, jot_transpose(x)), lower = jot_tril(jot_ones_like(h), 0);
        jot_value nan = jot_where(jot_equal(lower, 0), NAN, h);
        jot_value want = jot_eigh(h).values;
        CHECK(largest(jot_sub(jot_eigh_lower(nan).values, want)), 1e-11 * n, 0);
        CHECK(largest(jot_sub(jot_eigh_upper(jot_transpose(nan)).values, want)), 1e-11 * n, 0);
    }
    jot_scope_close(scope);
}
END_TEST

START_TEST(test_not_finite)
{
    const double bad[] = {NAN, INFINITY, -INFINITY};
    for (int i = 0; i < 3; i++) {
        jot_scope *s = jot_scope_open();
        jot_value x = jot_stack(0, from((const double[]){2, 1, 1, 2}, 2, 2),
                                from((const double[]){2, bad[i], 1, 2}, 2, 2));
        jot_value sizes[] = {
            jot_norm(jot_qr(x).q, -2, -1),    jot_norm(jot_qr(x).r, -2, -1),
            jot_norm(jot_eigh(x).values, -1), jot_norm(jot_eigh(x).vectors, -2, -1),
            jot_norm(jot_svdvals(x), -1),     jot_norm(jot_svd(x).vh, -2, -1),
            jot_norm(jot_eigvals(x), -1),     jot_norm(jot_eig(x).vectors, -2, -1),
            jot_norm(jot_schur(x).t, -2, -1), jot_norm(jot_schur(x).z, -2, -1),
        };
        for (int k = 0; k < 10; k++)
            CHECK(jot_is_nan(sizes[k]), 0, 0, 1);
        jot_scope_close(s);
    }
}
END_TEST

START_TEST(test_norms)
{
    jot_scope *s = jot_scope_open();
    jot_value a = from((const double[]){1, -2, 0, 3, 4, -5}, 2, 3);
    jot_value d = from((const double[]){0, -3, 2, 0}, 2, 2);
    CHECK(jot_matrix_norm(a, JOT_NORM_FROBENIUS), 1e-14, sqrt(55));
    CHECK_EXACT(jot_matrix_norm(a, JOT_NORM_1), 6);
    CHECK_EXACT(jot_matrix_norm(a, JOT_NORM_MINUS_1), 4);
    CHECK_EXACT(jot_matrix_norm(a, JOT_NORM_INF), 12);
    CHECK_EXACT(jot_matrix_norm(a, JOT_NORM_MINUS_INF), 3);
    CHECK(jot_matrix_norm(d, JOT_NORM_2), 1e-14, 3);
    CHECK(jot_matrix_norm(d, JOT_NORM_MINUS_2), 1e-14, 2);
    CHECK(jot_matrix_norm(d, JOT_NORM_NUCLEAR), 1e-14, 5);
    CHECK(jot_cond(d), 1e-14, 1.5);
    CHECK_EXACT(jot_cond(jot_zeros(JOT_F64, 2, 2)), INFINITY);
    CHECK_EXACT(jot_vector_norm(a, INFINITY), 5);
    CHECK_EXACT(jot_vector_norm(a, -INFINITY, 1), 0, 3);
    CHECK_EXACT(jot_vector_norm(a, 0, 0), 2, 2, 1);
    CHECK_EXACT(jot_vector_norm(a, 1, 1), 3, 12);
    CHECK(jot_vector_norm(a, 2), 1e-14, sqrt(55));
    CHECK(jot_vector_norm(a, 3, 1), 1e-14, cbrt(9), cbrt(27 + 64 + 125));
    jot_scope_close(s);
}
END_TEST

// The line 1 + 2 t through points of it and two that are off by as much above and below.
START_TEST(test_least_squares)
{
    jot_scope *s = jot_scope_open();
    jot_value a = from((const double[]){1, 0, 1, 1, 1, 2, 1, 3}, 4, 2);
    jot_value b = jot_from(jot_array_from(((const double[]){1, 3.5, 4.5, 7}), 4));
    jot_lstsq_result r = jot_lstsq(a, b, -1);
    CHECK(r.x, 1e-13, 1.15, 1.9);
    CHECK(r.residuals, 1e-13, 0.45);
    ck_assert_int_eq(jot_value_rank(r.residuals), 1);
    CHECK_EXACT(r.rank, 2);
    // Of a matrix without full rank the solution of least length.
    a = from((const double[]){1, 1, 2, 2}, 2, 2);
    r = jot_lstsq(a, from((const double[]){1, 2, 2, 4}, 2, 2), -1);
    CHECK(r.x, 1e-13, 0.5, 1, 0.5, 1);
    CHECK_EXACT(r.rank, 1);
    CHECK_EXACT(jot_matrix_rank(a, -1), 1);
    CHECK(jot_pinv(a, -1), 1e-13, 0.1, 0.2, 0.1, 0.2);
    jot_scope_close(s);
}
END_TEST

START_TEST(test_statuses)
{
    jot_scope *s = jot_scope_open();
    jot_value pair = jot_diag(jot_stack(0, 2.0, 5.0, 2.0), 0),
              apart = jot_diag(jot_stack(0, 2.0, 5.0, 3.0), 0);
    jot_value many = jot_stack(0, apart, pair, jot_zeros_like(pair), jot_full_like(pair, NAN));
    const int want[] = {JOT_FACTORED, JOT_FACTOR_DEGENERATE, JOT_FACTOR_DEGENERATE,
                        JOT_FACTOR_FAILED};
    const jot_value have[] = {jot_eigen_status(jot_eigh(many).values),
                              jot_eigen_status(jot_eig(many).values),
                              jot_svd_status(jot_svd(many))};
    for (int i = 0; i < 3; i++)
        CHECK_EXACT(have[i], want[0], want[1], want[2], want[3]);
    // One value of 0 leaves the vectors of a square matrix, but not those of a tall one.
    jot_value tall = jot_slice(jot_diag(jot_stack(0, 2.0, 0.0, 3.0), 0), -1, 0, 2);
    CHECK_EXACT(jot_svd_status(jot_svd(tall)), JOT_FACTOR_DEGENERATE);
    CHECK_EXACT(jot_svd_status(jot_svd(jot_slice(tall, 0, 0, 2))), JOT_FACTORED);
    // Gaps of rounding errors are none; twice the bound of n eps is one.
    for (int i = 0; i < 2; i++) {
        jot_value one = jot_ones(JOT_F64);
        double gap = i ? 0x1p-49 : 0x1p-51;
        jot_value close = jot_stack(0, one, jot_add(one, gap), jot_mul(one, 0.5));
        CHECK_EXACT(jot_eigen_status(close), i ? JOT_FACTORED : JOT_FACTOR_DEGENERATE);
    }
    jot_array *empty = evaluated(jot_eigen_status(jot_zeros(JOT_F64, 2, 0)));
    ck_assert_int_eq(((const int32_t *)jot_array_data(empty))[1], JOT_FACTORED);
    jot_array_release(empty);
    jot_scope_close(s);
}
END_TEST

// ---- Messages

static jot_value of_schur(jot_value a) { return jot_sum(jot_schur(jot_sin(a)).t); }

static void check_failure(jot_value v, const char *text)
{
    jot_array *a = NULL;
    ck_assert_int_ne(jot_eval(v, &a), JOT_OK);
    const char *message = strstr(jot_error_message(), "jot_");
    ck_assert_str_eq(message ? message : jot_error_message(), text);
}

START_TEST(test_messages)
{
    jot_scope *s = jot_scope_open();
    jot_value wide = jot_zeros(JOT_F32, 2, 3), row = jot_zeros(JOT_F32, 3);
    check_failure(jot_eigh(wide).vectors,
                  "jot_eigh(wide): eigh of f32[2,3]: the matrix is 2 by 3, not square");
    check_failure(jot_eig(wide).values,
                  "jot_eig(wide): eig of f32[2,3]: the matrix is 2 by 3, not square");
    check_failure(jot_schur(wide).z,
                  "jot_schur(wide): schur of f32[2,3]: the matrix is 2 by 3, not square");
    check_failure(jot_qr(row).r, "jot_qr(row): qr of f32[3]: a matrix has two axes");
    jot_value tall = jot_zeros(JOT_F32, 4, 3);
    check_failure(jot_svd_truncated(tall, 4).u,
                  "jot_svd_truncated(tall, 4): k is 4: f32[4,3] has 3 singular values");
    check_failure(jot_svdvals(row), "jot_svdvals(row): svd of f32[3]: a matrix has two axes");
    check_failure(
        jot_svd(jot_astype(wide, JOT_F16)).u,
        "jot_svd(jot_astype(wide, JOT_F16)): svd of f16[2,3]: it takes f32, f64, c64 and "
        "c128: convert it first");
    check_failure(
        jot_lstsq(wide, row, -1).x,
        "jot_lstsq(wide, row, -1): f32[2,3] and f32[3]: it takes a matrix, and a vector "
        "or matrix of as many rows");
    check_failure(jot_matrix_norm(wide, (jot_matrix_norm_kind)9),
                  "jot_matrix_norm(wide, (jot_matrix_norm_kind)9): there is no norm of kind 9");
    jot_value square = jot_eye(JOT_F64, 3, 3);
    jot_array *g = NULL;
    jot_apply(jot_grad(jot_fn(of_schur), 0), 1, &square, 1, &square);
    ck_assert_int_eq(jot_eval(square, &g), JOT_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(
        strstr(jot_error_message(), "jot_grad: schur has no derivative: those of"));
    ck_assert_ptr_nonnull(strstr(jot_error_message(), ": jot_schur(jot_sin(a)))"));
    check_failure(
        jot_eigen_status(jot_from(1.0)),
        "jot_eigen_status(jot_from(1.0)): f32[]: the values of a matrix have an axis");
    CHECK_TYPE(jot_svdvals(jot_zeros(JOT_I32, 2, 3)), "f32[2]");
    jot_scope_close(s);
}
END_TEST

static void add(TCase *t)
{
    tcase_add_loop_test(t, test_factors, 0, 4);
    tcase_add_loop_test(t, test_qr_of_many, 0, 4);
    tcase_add_loop_test(t, test_truncated, 0, 4);
    tcase_add_loop_test(t, test_eig, 0, 4);
    if (!*getenv("JOT_BACKEND")) { // what the evaluator has no part in
        tcase_add_loop_test(t, test_large, 0, 6);
        tcase_add_test(t, test_threads);
        tcase_add_test(t, test_other_triangle);
    }
    tcase_add_test(t, test_signs);
    tcase_add_test(t, test_empty);
    tcase_add_test(t, test_not_finite);
    tcase_add_test(t, test_norms);
    tcase_add_test(t, test_least_squares);
    tcase_add_test(t, test_statuses);
    tcase_add_test(t, test_messages);
}

int main(void) { return run_by_both("decompose", add); }
