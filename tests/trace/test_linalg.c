// SPDX-License-Identifier: Apache-2.0
// Factorizations, linear systems and functions of matrices, by what they must satisfy; values of
// JAX where there is one answer.
#include "trace_support.h"

#define DIMS(...) ((const int64_t[]){__VA_ARGS__, JOT_END})

static jot_scope *scope;

static void open_scope(void) { scope = jot_scope_open(); }

static void close_scope(void) { jot_scope_close(scope); }

static const jot_dtype dtypes[] = {JOT_F32, JOT_F64, JOT_C64, JOT_C128};
static const struct {
    int64_t batch, n;
} sizes[] = {{1, 1}, {1, 4}, {21, 3}, {64, 8}, {3, 17}, {1, 70}};
enum { DTYPES = 4, SIZES = 6 };

// Every dtype with some sizes and every size with some dtypes.
static bool is_left_out(int dtype, int size, int other)
{
    return (2 * dtype + size + other) % 3 != 0;
}

static double roundoff(jot_dtype d) { return d == JOT_F32 || d == JOT_C64 ? 0x1p-23 : 0x1p-52; }

// Random numbers in (-1, 1) of the dtype and extents.
static jot_value draw(jot_dtype d, const int64_t *dims, uint64_t *state)
{
    int64_t n = 1;
    for (int i = 0; dims[i] != JOT_END; i++)
        n *= dims[i];
    double *data = calloc(2 * (size_t)n + 1, sizeof *data);
    for (int64_t i = 0; i < 2 * n; i++) {
        *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407;
        data[i] = (double)(*state >> 11) * 0x1p-52 - 1;
    }
    jot_array *re = jot_array_copy(JOT_F64, data, dims),
              *im = jot_array_copy(JOT_F64, data + n, dims);
    bool is_complex = d == JOT_C64 || d == JOT_C128;
    jot_value x = is_complex ? jot_complex(re, im) : jot_from(re);
    x = jot_convert(x, d);
    jot_array_release(re);
    jot_array_release(im);
    free(data);
    return x;
}

static jot_value adjoint(jot_value a) { return jot_conj(jot_swap_axes(a, -1, -2)); }

// b once for each matrix of a.
static jot_value repeated(jot_value b, jot_value a)
{
    return jot_add(b, jot_zeros_like(jot_slice(a, -1, 0, 1)));
}

// The largest element of |x - y| is at most so many roundings.
static void check_close(const char *what, jot_value x, jot_value y, double bound)
{
    jot_array *a = NULL;
    double most;
    jot_value off = jot_max(jot_abs(jot_convert(jot_sub(x, y), JOT_C128)));
    must(jot_eval(off, &a));
    must(jot_array_copy_out(a, JOT_F64, &most, 1));
    ck_assert_msg(most <= bound, "%s is off by %g, more than %g", what, most, bound);
    jot_array_release(a);
}

static jot_value positive(jot_dtype d, int64_t batch, int64_t n, uint64_t *state)
{
    jot_value x = draw(d, DIMS(batch, n, n), state);
    return jot_add(jot_matmul(x, adjoint(x)), jot_mul(0.5, jot_eye(d, n, n)));
}

START_TEST(cholesky_multiplies_back)
{
    uint64_t state = 1;
    for (int i = 0; i < DTYPES; i++)
        for (int k = 0; k < SIZES; k++) {
            if (is_left_out(i, k, 0))
                continue;
            int64_t n = sizes[k].n;
            double bound = 20 * (double)n * roundoff(dtypes[i]);
            jot_value a = positive(dtypes[i], sizes[k].batch, n, &state), l = jot_cholesky(a);
            check_close("l l^H", jot_matmul(l, adjoint(l)), a, bound);
            check_close("l above the diagonal", jot_tril(l, 0), l, 0);
            jot_value b = draw(dtypes[i], DIMS(sizes[k].batch, n, 2), &state);
            check_close("a x", jot_matmul(a, jot_cho_solve(l, b)), b, 10 * (double)n * bound);
        }
}
END_TEST

// Rows of a are l u; the factors are those of partial pivoting: elements of l are at most `most`.
static void check_factors(jot_value a, int64_t m, int64_t n, jot_dtype d, double most)
{
    int64_t steps = m < n ? m : n;
    jot_lu_factors f = jot_lu_factor(a);
    jot_value l = jot_tril(jot_slice(f.lu, -1, 0, steps), -1);
    l = jot_add(l, jot_eye(d, m, steps));
    jot_value u = jot_triu(jot_slice(f.lu, -2, 0, steps), 0);
    jot_value rows = jot_take_along_axis(a, jot_expand_dims(f.permutation, -1), -2);
    check_close("l u", jot_matmul(l, u), rows, 20 * (double)n * roundoff(d));
    check_close("l", jot_maximum(jot_sub(jot_abs(l), most), 0.0), jot_from(0.0), 0);
}

START_TEST(lu_multiplies_back)
{
    uint64_t state = 2;
    for (int i = 0; i < DTYPES; i++)
        for (int k = 0; k < SIZES; k++)
            for (int wide = -1; wide <= 1; wide++) {
                if (is_left_out(i, k, wide + 1))
                    continue;
                int64_t m = sizes[k].n + (wide < 0 ? 2 : 0),
                        n = sizes[k].n + (wide > 0 ? 3 : 0);
                // That of complex numbers goes by |re| + |im|.
                check_factors(draw(dtypes[i], DIMS(sizes[k].batch, m, n), &state), m, n,
                              dtypes[i], i < 2 ? 1.0001 : 1.4143);
            }
}
END_TEST

// Panels and groups of them, the last ones narrower; equal pivots, and columns without any.
START_TEST(lu_by_panels)
{
    static const struct {
        int64_t m, n;
    } of[] = {{33, 33}, {250, 250}, {200, 140}, {140, 200}, {256, 47}};
    uint64_t state = 12;
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 5; k++) {
            jot_value a = draw(dtypes[i], DIMS(of[k].m, of[k].n), &state);
            check_factors(a, of[k].m, of[k].n, dtypes[i], 1.0001);
            jot_value whole = jot_round(jot_mul(2.4, a));
            whole = jot_mul(whole, jot_not_equal(jot_arange(dtypes[i], of[k].n), 20.0));
            check_factors(whole, of[k].m, of[k].n, dtypes[i], 1.0001);
        }
    // More than a block of threads, and more than a portable cluster, hold.
    jot_value tall = draw(JOT_F32, DIMS(2500, 70), &state);
    check_factors(tall, 2500, 70, JOT_F32, 1.0001);
    jot_value large = draw(JOT_F64, DIMS(700, 700), &state);
    check_factors(large, 700, 700, JOT_F64, 1.0001);
}
END_TEST

START_TEST(systems_are_solved)
{
    uint64_t state = 3;
    for (int i = 0; i < DTYPES; i++)
        for (int k = 0; k < SIZES; k++) {
            if (is_left_out(i, k, 0))
                continue;
            int64_t n = sizes[k].n, batch = sizes[k].batch;
            jot_dtype d = dtypes[i];
            double bound = 100 * (double)n * roundoff(d);
            // Far from singular.
            jot_value a = jot_add(draw(d, DIMS(batch, n, n), &state),
                                  jot_mul((double)n, jot_eye(d, n, n)));
            a = jot_flip(a, -2);
            jot_value b = draw(d, DIMS(n, 2), &state);
            check_close("a x", jot_matmul(a, jot_solve(a, b)), repeated(b, a), bound);
            check_close("a a^-1", jot_matmul(a, jot_inv(a)),
                        jot_add(jot_eye(d, n, n), jot_zeros_like(a)), bound);
            jot_value v = draw(d, DIMS(n), &state), one = jot_take(a, 0);
            check_close("a x of a vector", jot_matmul(one, jot_solve(one, v)), v, bound);
            jot_lu_factors f = jot_lu_factor(a);
            check_close("a^T x",
                        jot_matmul(jot_swap_axes(a, -1, -2), jot_lu_solve_trans(f, b, true)),
                        repeated(b, a), bound);
        }
}
END_TEST

START_TEST(triangles_are_solved)
{
    uint64_t state = 4;
    for (int i = 0; i < DTYPES; i++)
        for (int k = 0; k < SIZES; k++)
            for (int flags = 0; flags < 32; flags++) {
                if (is_left_out(i, k, 0) || (flags + 3 * i + k) % 5)
                    continue;
                jot_triangular_options o = {.lower = flags & 1,
                                            .transposed = flags >> 1 & 1,
                                            .conjugated = flags >> 2 & 1,
                                            .unit_diagonal = flags >> 3 & 1,
                                            .right = flags >> 4 & 1};
                int64_t n = sizes[k].n, batch = sizes[k].batch;
                jot_dtype d = dtypes[i];
                jot_value a = jot_div(draw(d, DIMS(batch, n, n), &state), (double)n);
                a = jot_add(a, jot_mul(2.0, jot_eye(d, n, n)));
                jot_value t = o.lower ? jot_tril(a, 0) : jot_triu(a, 0);
                if (o.unit_diagonal)
                    t = jot_add(o.lower ? jot_tril(a, -1) : jot_triu(a, 1), jot_eye(d, n, n));
                t = o.transposed ? jot_swap_axes(t, -1, -2) : t;
                t = o.conjugated ? jot_conj(t) : t;
                for (int64_t sides = 130; sides; sides /= 130) {
                    jot_value b = o.right ? draw(d, DIMS(batch, sides, n), &state)
                                          : draw(d, DIMS(batch, n, sides), &state);
                    jot_value x = jot_solve_triangular_with(a, b, &o);
                    check_close("the product", o.right ? jot_matmul(x, t) : jot_matmul(t, x), b,
                                40 * (double)n * roundoff(d));
                }
            }
}
END_TEST

static jot_value off_diagonal(jot_dtype d, int64_t n, int k)
{
    return jot_sub(jot_tri(d, n, n, k), jot_tri(d, n, n, k - 1));
}

// Rows are swapped where the lower diagonal is larger.
START_TEST(tridiagonal_systems_are_solved)
{
    uint64_t state = 5;
    for (int i = 0; i < DTYPES; i++)
        for (int64_t n = 1; n < 200; n = 3 * n + 1) {
            jot_value b = draw(dtypes[i], DIMS(2, n, 3), &state), d[3], a;
            for (int k = 0; k < 3; k++)
                d[k] = draw(dtypes[i], DIMS(2, n), &state);
            d[1] = jot_add(d[1], 0.3);
            d[0] = jot_mul(d[0], 1.5);
            jot_value eye = jot_eye(dtypes[i], n, n);
            a = jot_mul(jot_expand_dims(d[1], -1), eye);
            a = jot_add(a, jot_mul(jot_expand_dims(d[0], -1), off_diagonal(dtypes[i], n, -1)));
            a = jot_add(a, jot_mul(jot_expand_dims(d[2], -1), off_diagonal(dtypes[i], n, 1)));
            jot_value x = jot_tridiagonal_solve(d[0], d[1], d[2], b);
            jot_value scale = jot_add(1.0, jot_max(jot_abs(x)));
            check_close("a x", jot_div(jot_matmul(a, x), scale), jot_div(b, scale),
                        100 * roundoff(dtypes[i]));
        }
}
END_TEST

static const double a3[] = {2, 1, .5, .3, -3, 1, 1, .2, 4};
static const double s3[] = {4, 1, .5, 1, 3, .2, .5, .2, 5};

static jot_value matrix3(const double *data)
{
    jot_array *a = jot_array_copy(JOT_F64, data, DIMS(3, 3));
    jot_value v = jot_from(a);
    jot_array_release(a);
    return v;
}

START_TEST(values_of_jax)
{
    jot_value a = matrix3(a3);
    CHECK(jot_det(a), 1e-14, -23.07);
    CHECK(jot_slogdet(a).sign, 0, -1);
    CHECK(jot_slogdet(a).logabsdet, 1e-14, 3.138533072185662);
    CHECK(jot_expm(a), 1e-8, 13.24472275, 2.61370283, 16.79095836, 4.1592982, 0.8721235,
          9.74683075, 26.831542, 5.3245535, 66.14230034);
    CHECK(jot_cholesky(matrix3(s3)), 1e-8, 2, 0, 0, 0.5, 1.6583124, 0, 0.25, 0.0452267,
          2.22158829);
    CHECK(jot_matrix_power(a, 3), 1e-12, 13.33, 8.3, 17.5, 5.4, -27.57, 14.45, 29.18, 5.8,
          71.03);
    CHECK_EXACT(jot_matrix_power(a, 0), 1, 0, 0, 0, 1, 0, 0, 0, 1);
    check_close("a^-2 a^2", jot_matmul(jot_matrix_power(a, -2), jot_matrix_power(a, 2)),
                jot_eye(JOT_F64, 3, 3), 1e-14);
    CHECK_EXACT(jot_det(jot_zeros(JOT_F64, 0, 0)), 1);
    CHECK(jot_expm(jot_zeros(JOT_F64, 2, 2)), 1e-15, 1, 0, 0, 1);
}
END_TEST

// What has no answer, as JAX has it.
START_TEST(no_answer_is_nan)
{
    jot_value s = matrix3(s3), bad = jot_neg(s);
    CHECK_EXACT(jot_cholesky(bad), NAN, 0, 0, NAN, NAN, 0, NAN, NAN, NAN);
    jot_value lanes = jot_stack(0, s, bad, s, s, s, s, s, s, s);
    CHECK_EXACT(jot_sum(jot_convert(jot_is_nan(jot_cholesky(lanes)), JOT_I32)), 6);
    CHECK_EXACT(jot_cholesky(jot_full(JOT_F64, NAN, 1, 1)), NAN);
    // The last pivot alone is wrong.
    CHECK_EXACT(jot_sum(jot_convert(jot_is_nan(jot_cholesky(jot_sub(
                                        jot_eye(JOT_F64, 20, 20),
                                        jot_outer(jot_equal(jot_arange(JOT_I32, 20), 19),
                                                  jot_full(JOT_F64, 1.0, 20))))),
                                    JOT_I32)),
                210);
    jot_value singular = jot_ones(JOT_F64, 2, 2);
    CHECK_EXACT(jot_det(singular), 0);
    CHECK_EXACT(jot_slogdet(singular).sign, 0);
    CHECK_EXACT(jot_slogdet(singular).logabsdet, -INFINITY);
    CHECK_EXACT(jot_any(jot_is_finite(jot_inv(singular))), 0);
    CHECK_EXACT(jot_lu_factor(jot_zeros(JOT_F64, 2, 2)).lu, 0, 0, 0, 0);
    CHECK_EXACT(jot_expm(jot_full(JOT_F64, 1e6, 1, 1)), NAN);
}
END_TEST

START_TEST(empty_matrices)
{
    CHECK_TYPE(jot_cholesky(jot_zeros(JOT_F32, 0, 0)), "f32[0,0]");
    CHECK_TYPE(jot_lu_factor(jot_zeros(JOT_F32, 9, 0, 2)).permutation, "i32[9,0]");
    jot_lu_factors no_columns = jot_lu_factor(jot_zeros(JOT_F32, 3, 0)),
                   many = jot_lu_factor(jot_zeros(JOT_C128, 2, 40, 0));
    CHECK_TYPE(no_columns.pivots, "i32[0]");
    CHECK_EXACT(no_columns.permutation, 0, 1, 2);
    CHECK_EXACT(jot_sum(many.permutation), 2 * 40 * 39 / 2);
    CHECK_TYPE(jot_solve(jot_zeros(JOT_F32, 0, 0), jot_zeros(JOT_F32, 0, 3)), "f32[0,3]");
    CHECK_TYPE(jot_solve(jot_zeros(JOT_F32, 0, 3, 3), jot_zeros(JOT_F32, 3)), "f32[0,3]");
    CHECK_TYPE(jot_tridiagonal_solve(jot_zeros(JOT_F32, 0), jot_zeros(JOT_F32, 0),
                                     jot_zeros(JOT_F32, 0), jot_zeros(JOT_F32, 0)),
               "f32[0]");
    CHECK_TYPE(jot_inv(jot_ones(JOT_I32, 1, 1)), "f32[1,1]");
}
END_TEST

// ---- Derivatives and maps

#define FUNCTION1(name, expression)                                                            \
    static jot_value name(jot_value a) { return expression; }
#define FUNCTION2(name, expression)                                                            \
    static jot_value name(jot_value a, jot_value b) { return expression; }
FUNCTION1(cholesky_of, jot_cholesky(a))
FUNCTION1(inverse_of, jot_inv(a))
FUNCTION1(det_of, jot_det(a))
FUNCTION1(log_det_of, jot_slogdet(a).logabsdet)
FUNCTION1(lu_of, jot_lu_factor(a).lu)
FUNCTION1(sign_of,
          jot_sum(jot_mul(jot_real(jot_slogdet(jot_complex(a, jot_transpose(jot_sin(a)))).sign),
                          a)))
FUNCTION1(expm_of, jot_expm(a))
FUNCTION1(power_of, jot_matrix_power(a, -2))
FUNCTION2(solution_of, jot_solve(a, b))
FUNCTION2(transposed_solution_of, jot_lu_solve_trans(jot_lu_factor(a), b, true))
FUNCTION2(triangle_of, jot_solve_triangular(a, b, .transposed = true))
FUNCTION2(band_of, jot_tridiagonal_solve(jot_take(a, 0), jot_take(a, 1), jot_take(a, 2), b))

START_TEST(derivatives)
{
    const double b3[] = {1, 2, 3, 4, 5, 6};
    jot_array *a = jot_array_copy(JOT_F64, a3, DIMS(3, 3)),
              *s = jot_array_copy(JOT_F64, s3, DIMS(3, 3)),
              *b = jot_array_copy(JOT_F64, b3, DIMS(3, 2));
    unsigned both = JOT_FORWARD | JOT_REVERSE;
    must(jot_check_grads(jot_fn(cholesky_of), 2, both, 0, s));
    must(jot_check_grads(jot_fn(inverse_of), 2, both, 0, a));
    must(jot_check_grads(jot_fn(det_of), 2, both, 0, a));
    must(jot_check_grads(jot_fn(log_det_of), 2, both, 0, a));
    must(jot_check_grads(jot_fn(sign_of), 2, both, 0, a));
    must(jot_check_grads(jot_fn(lu_of), 2, both, 0, a));
    must(jot_check_grads(jot_fn(expm_of), 1, both, 0, a));
    must(jot_check_grads(jot_fn(power_of), 1, both, 0, a));
    must(jot_check_grads(jot_fn(solution_of), 2, both, 0, a, b));
    must(jot_check_grads(jot_fn(transposed_solution_of), 1, both, 0, a, b));
    must(jot_check_grads(jot_fn(triangle_of), 2, both, 0, a, b));
    must(jot_check_grads(jot_fn(band_of), 2, both, 0, a, b));
    jot_array_release(a);
    jot_array_release(s);
    jot_array_release(b);
}
END_TEST

// With one matrix for all lanes, and with one for each.
START_TEST(maps)
{
    uint64_t state = 6;
    jot_value a = draw(JOT_F64, DIMS(11, 5, 5), &state), b = draw(JOT_F64, DIMS(11, 5), &state);
    a = jot_add(a, jot_mul(4.0, jot_eye(JOT_F64, 5, 5)));
    jot_value one = jot_take(a, 3), x, y, z, rows = a, right = b;
    JOT_VMAP ((rows, right), (x, y, z)) {
        x = jot_solve(rows, right);
        y = jot_solve(one, right);
        z = jot_solve_triangular(one, jot_expand_dims(right, -1), .lower = true);
    }
    for (int i = 0; i < 11; i += 5) {
        jot_value at = jot_take(b, i);
        check_close("a lane", jot_take(x, i), jot_solve(jot_take(a, i), at), 1e-13);
        check_close("a right side", jot_take(y, i), jot_solve(one, at), 1e-13);
        check_close("a triangle", jot_squeeze(jot_take(z, i), -1),
                    jot_solve_triangular(one, at, .lower = true), 1e-13);
    }
}
END_TEST

// Inside a loop whose lanes are mapped the matrices are written out in its kernel.
START_TEST(in_loops)
{
    uint64_t state = 7;
    jot_value a = draw(JOT_F64, DIMS(10, 3, 3), &state), x = draw(JOT_F64, DIMS(10, 3), &state);
    a = jot_add(a, jot_mul(4.0, jot_eye(JOT_F64, 3, 3)));
    jot_value y = x, rows = a, lane = x, once;
    JOT_VMAP ((rows, lane), (once)) {
        JOT_FOR (i, 3, lane) {
            lane = jot_solve(rows, lane);
        }
        once = lane;
    }
    for (int i = 0; i < 3; i++)
        y = jot_squeeze(jot_solve(a, jot_expand_dims(y, -1)), -1);
    check_close("three solutions", once, y, 1e-13);
}
END_TEST

// ---- Messages

#define CHECK_FAILS(value, text)                                                               \
    do {                                                                                       \
        jot_array *array_ = NULL;                                                              \
        ck_assert_int_ne(jot_eval((value), &array_), JOT_OK);                                  \
        const char *message_ = strstr(jot_error_message(), ": ");                              \
        ck_assert_ptr_nonnull(message_);                                                       \
        ck_assert_str_eq(message_ + 2, (text));                                                \
    } while (0)

static void check_message(jot_value v, const char *want)
{
    jot_array *a = NULL;
    ck_assert_int_ne(jot_eval(v, &a), JOT_OK);
    CHECK_MESSAGE(want);
}

START_TEST(messages)
{
    jot_value wide = jot_zeros(JOT_F32, 3, 2), line = jot_zeros(JOT_F32, 3),
              square = jot_zeros(JOT_F32, 3, 3), half = jot_zeros(JOT_F16, 3, 3);
    CHECK_FAILS(jot_cholesky(wide), "jot_cholesky(wide): f32[3,2]: the matrix is not square");
    CHECK_FAILS(jot_cholesky(line), "jot_cholesky(line): f32[3]: a matrix has two axes");
    CHECK_FAILS(jot_cholesky(half), "jot_cholesky(half): f16[3,3]: it takes f32, f64, c64 and "
                                    "c128: convert it first");
    CHECK_FAILS(jot_lu_factor(line).lu, "jot_lu_factor(line): f32[3]: a matrix has two axes");
    CHECK_FAILS(jot_solve(wide, line),
                "jot_solve(wide, line): f32[3,2]: the matrix is not square");
    CHECK_FAILS(jot_solve(square, jot_zeros(JOT_F32, 4)),
                "jot_solve(square, jot_zeros(JOT_F32, 4)): f32[3,3] x = f32[4,1]: there is a "
                "right side of 4 rows");
    CHECK_FAILS(jot_inv(wide), "jot_inv(wide): f32[3,2]: the matrix is not square");
    CHECK_FAILS(jot_det(wide), "jot_det(wide): f32[3,2]: the matrix is not square");
    CHECK_FAILS(jot_slogdet(wide).sign,
                "jot_slogdet(wide): f32[3,2]: the matrix is not square");
    CHECK_FAILS(jot_expm(wide), "jot_expm(wide): f32[3,2]: the matrix is not square");
    CHECK_FAILS(jot_matrix_power(wide, 2),
                "jot_matrix_power(wide, 2): f32[3,2]: the matrix is not square");
    CHECK_FAILS(
        jot_solve_triangular(square, jot_zeros(JOT_F32, 2, 2)),
        "jot_solve_triangular(square, jot_zeros(JOT_F32, 2, 2)): f32[3,3] x = f32[2,2]: "
        "there is a right side of 2 rows");
    CHECK_FAILS(jot_solve_triangular(wide, line),
                "jot_solve_triangular(wide, line): f32[3,2]: the matrix is not square");
    CHECK_FAILS(jot_tridiagonal_solve(line, line, line, jot_zeros(JOT_F32, 2)),
                "jot_tridiagonal_solve(line, line, line, jot_zeros(JOT_F32, 2)): "
                "tridiagonal_solve of diagonals f32[3] and f32[2,1]: the right sides are the "
                "columns of 3 rows");
}
END_TEST

// What goes wrong in a function of jot's own has the place of the user's call.
START_TEST(places_in_functions_of_rules)
{
    jot_value half = jot_zeros(JOT_F16, 3, 3), line = jot_zeros(JOT_F32, 3);
    const char *svd = "svd of f16[3,3]: it takes f32, f64, c64 and c128: convert it first";
    char text[200];
#define CHECK_PLACE(value, call, what)                                                         \
    snprintf(text, sizeof text, "%s:%d: %s: %s", __FILE__, __LINE__, call, what);              \
    check_message(value, text)
    CHECK_PLACE(jot_pinv(half, -1), "jot_pinv(half, -1)", svd);
    CHECK_PLACE(jot_lstsq(half, line, -1).s, "jot_lstsq(half, line, -1)", svd);
}
END_TEST

START_TEST(failure_on_request)
{
    jot_value l = jot_cholesky(jot_neg(jot_eye(JOT_F64, 2, 2)));
    jot_assert(jot_is_finite(l), "a is not positive definite");
    jot_array *a = NULL;
    ck_assert_int_eq(jot_eval(l, &a), JOT_ERR_CHECK);
    ck_assert_ptr_nonnull(strstr(jot_error_message(), "a is not positive definite, at [0, 0]"));
}
END_TEST

START_TEST(statuses)
{
    jot_value s = matrix3(s3), zeros = jot_zeros_like(s);
    jot_value mixed = jot_stack(0, s, jot_neg(s), zeros, jot_full_like(s, NAN));
    jot_value l = jot_factor_status(jot_cholesky(mixed)),
              lu = jot_lu_status(jot_lu_factor(mixed));
    CHECK_EXACT(l, JOT_FACTORED, JOT_FACTOR_FAILED, JOT_FACTOR_FAILED, JOT_FACTOR_FAILED);
    CHECK_EXACT(lu, JOT_FACTORED, JOT_FACTORED, JOT_FACTOR_SINGULAR, JOT_FACTOR_FAILED);
    jot_assert(jot_equal(lu, JOT_FACTORED), "singular");
    jot_array *a = NULL;
    ck_assert_int_eq(jot_eval(lu, &a), JOT_ERR_CHECK);
    ck_assert_ptr_nonnull(strstr(jot_error_message(), "singular, at [2]"));
}
END_TEST

// Matrices for LAPACK have the same.
START_TEST(statuses_of_large_matrices)
{
    enum { N = 100 };
    jot_value one = jot_eye(JOT_F64, N, N), last = jot_equal(jot_arange(JOT_I32, N), N - 1);
    jot_value corner = jot_logical_and(jot_expand_dims(last, 1), last);
    jot_value mixed = jot_stack(0, one, jot_where(corner, -1, one), jot_where(corner, 0, one),
                                jot_where(corner, NAN, one));
    CHECK_EXACT(jot_factor_status(jot_cholesky(mixed)), JOT_FACTORED, JOT_FACTOR_FAILED,
                JOT_FACTOR_FAILED, JOT_FACTOR_FAILED);
    CHECK_EXACT(jot_lu_status(jot_lu_factor(mixed)), JOT_FACTORED, JOT_FACTORED,
                JOT_FACTOR_SINGULAR, JOT_FACTOR_FAILED);
}
END_TEST

static void add(TCase *t)
{
    tcase_add_checked_fixture(t, open_scope, close_scope);
    tcase_add_test(t, cholesky_multiplies_back);
    tcase_add_test(t, lu_multiplies_back);
    tcase_add_test(t, lu_by_panels);
    tcase_add_test(t, systems_are_solved);
    tcase_add_test(t, triangles_are_solved);
    tcase_add_test(t, tridiagonal_systems_are_solved);
    tcase_add_test(t, values_of_jax);
    tcase_add_test(t, no_answer_is_nan);
    tcase_add_test(t, empty_matrices);
    tcase_add_test(t, derivatives);
    tcase_add_test(t, maps);
    tcase_add_test(t, in_loops);
    tcase_add_test(t, messages);
    tcase_add_test(t, places_in_functions_of_rules);
    tcase_add_test(t, failure_on_request);
    tcase_add_test(t, statuses);
    tcase_add_test(t, statuses_of_large_matrices);
}

int main(void) { return run_by_both("linalg", add); }
