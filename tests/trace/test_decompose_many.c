// SPDX-License-Identifier: Apache-2.0
// Factorizations of many small matrices at once, which have a lane of a vector each: of all sizes up to
// more than those, and some whose numbers are special. The evaluator, which has no lanes, is judged by
// test_decompose.c.
#include "factor_support.h"
#include "support/sample.h"

#include <math.h>

// More than the lanes of one vector, and not a multiple of them.
enum { MANY = 19, SIZES = 9 };
static const int64_t sizes[SIZES][2] = {{1, 1},   {3, 2},   {2, 3},   {5, 5},  {8, 8},
                                        {16, 16}, {31, 32}, {32, 32}, {33, 33}};
static const jot_dtype dtypes[] = {JOT_F64, JOT_F32, JOT_C128, JOT_C64};

static jot_value cholesky_errors(jot_value a)
{
    int64_t n = jot_value_dim(a, -1);
    jot_value h = jot_add(jot_matmul(a, adjoint(a)), jot_eye(jot_value_dtype(a), n, n));
    jot_value l = jot_cholesky(h);
    return worst(h, jot_matmul(l, adjoint(l)), largest(jot_triu(l, 1)));
}

// Rows are exchanged as the pivots say, and no factor is larger than 1.
static jot_value lu_errors(jot_value a)
{
    int64_t m = jot_value_dim(a, -2), n = jot_value_dim(a, -1), k = m < n ? m : n;
    jot_lu_factors f = jot_lu_factor(a);
    jot_value l =
        jot_add(jot_tril(jot_slice(f.lu, -1, 0, k), -1), jot_eye(jot_value_dtype(a), m, k));
    jot_value u = jot_triu(jot_slice(f.lu, -2, 0, k), 0), order = jot_arange(JOT_I32, m);
    for (int64_t i = 0; i < k; i++) {
        jot_value p = jot_take(f.pivots, i), other = jot_take(order, p);
        order = jot_at_set(jot_at_set(order, p, jot_take(order, i)), i, other);
    }
    jot_value moved = jot_sum(jot_astype(jot_not_equal(order, f.permutation), JOT_F32));
    jot_value larger = jot_astype(jot_greater(largest(l), 1.5), JOT_F32); // |re| + |im| decides
    return worst(jot_take(a, f.permutation), jot_matmul(l, u), jot_add(moved, larger));
}

static jot_value op_of(jot_value a, const jot_triangular_options *o)
{
    a = o->conjugated ? jot_conj(a) : a;
    return o->transposed ? jot_swap_axes(a, -2, -1) : a;
}

// Of systems of all kinds; a diagonal of ones is not read.
static jot_value triangular_errors(jot_value a)
{
    int64_t n = jot_value_dim(a, -1), few = n > 1 ? n - 1 : 1;
    jot_value error = jot_from(0.0), one = jot_eye(jot_value_dtype(a), n, n),
              part = jot_div(a, (double)n);
    for (int i = 0; i < 32; i++) {
        jot_triangular_options o = {.lower = i & 1,
                                    .transposed = i & 2,
                                    .conjugated = i & 4,
                                    .unit_diagonal = i & 8,
                                    .right = i & 16,
                                    .size = sizeof o};
        jot_value t = o.lower ? jot_tril(part, -1) : jot_triu(part, 1);
        jot_value whole = jot_add(t, jot_mul(one, o.unit_diagonal ? 1 : 2));
        jot_value given = o.unit_diagonal ? jot_where(jot_equal(one, 1), NAN, t) : whole;
        jot_value b = jot_slice(a, o.right ? -2 : -1, 0, few);
        jot_value x = jot_solve_triangular_with(given, b, &o), op = op_of(whole, &o);
        error = worst(b, o.right ? jot_matmul(x, op) : jot_matmul(op, x), error);
    }
    return error;
}

static const struct {
    const char *name;
    jot_value (*errors)(jot_value a);
    bool is_square;
} kinds[] = {{"qr", qr_errors, false},
             {"qr_full", qr_full_errors, false},
             {"svd", svd_errors, false},
             {"svd_full", svd_full_errors, false},
             {"eigh", eigh_errors, true},
             {"lu", lu_errors, false},
             {"cholesky", cholesky_errors, true},
             {"triangular_solve", triangular_errors, true}};
// The last ones are not of matrices as special as the test's.
enum { KINDS = sizeof kinds / sizeof *kinds, SPECIAL_KINDS = KINDS - 2 };

static double epsilon_of(jot_dtype d)
{
    return d == JOT_F32 || d == JOT_C64 ? 0x1p-23 : 0x1p-52;
}

// The error of each of the matrices.
static void errors_of(int kind, jot_value a, double *out)
{
    jot_function f = jot_vmap(jot_function_plain(kinds[kind].name, kinds[kind].name, 1,
                                                 (void (*)(void))kinds[kind].errors),
                              0);
    jot_value y;
    jot_apply(f, 1, &a, 1, &y);
    jot_array *errors = evaluated(jot_astype(y, JOT_F64));
    memcpy(out, jot_array_data(errors), jot_array_bytes(errors));
    jot_array_release(errors);
}

START_TEST(test_sizes)
{
    jot_dtype d = dtypes[_i / KINDS];
    int kind = _i % KINDS;
    for (int k = 0; k < SIZES; k++) {
        int64_t m = sizes[k][0], n = sizes[k][1];
        bool is_slow = kinds[kind].errors == triangular_errors && n != 5 && n != 32;
        if ((kinds[kind].is_square && m != n) || is_slow ||
            !sample_takes((uint64_t)(_i + k), 1))
            continue;
        jot_scope *s = jot_scope_open();
        jot_array *a = draw(d, k, (const int64_t[]){MANY, m, n, JOT_END});
        double errors[MANY];
        errors_of(kind, jot_from(a), errors);
        for (int i = 0; i < MANY; i++)
            ck_assert_msg(errors[i] <= 300 * epsilon_of(d),
                          "%s, matrix %d of %s[%d,%d], seed %d: an error of %g eps",
                          kinds[kind].name, i, jot_dtype_name(d), (int)m, (int)n, SEED,
                          errors[i] / epsilon_of(d));
        jot_array_release(a);
        jot_scope_close(s);
    }
}
END_TEST

// Beside one another: zeros, NaN, infinite, tiny and huge ones, one, rows that are all the same, one
// column of zeros, values of many sizes.
START_TEST(test_special)
{
    enum { N = 6, SPECIAL = 9 };
    if (!sample_takes((uint64_t)(_i / SPECIAL_KINDS + _i % SPECIAL_KINDS), 1))
        return;
    jot_dtype d = dtypes[_i / SPECIAL_KINDS];
    int kind = _i % SPECIAL_KINDS;
    jot_scope *s = jot_scope_open();
    jot_array *drawn = draw(d, 50, (const int64_t[]){N, N, JOT_END});
    jot_value a = jot_from(drawn), last = jot_equal(jot_arange(JOT_I32, N), N - 1);
    jot_value graded = jot_exp2(jot_mul(jot_arange(JOT_F32, N), -4.0));
    jot_value all[SPECIAL] = {jot_zeros_like(a),
                              jot_mul(a, NAN),
                              jot_where(last, INFINITY, a),
                              jot_mul(a, 0x1p-100),
                              jot_mul(a, 0x1p60),
                              jot_astype(jot_eye(JOT_F32, N, N), d),
                              jot_ones_like(a),
                              jot_where(jot_logical_or(last, jot_expand_dims(last, 1)), 0, a),
                              jot_mul(a, jot_mul(graded, jot_expand_dims(graded, 1)))};
    jot_value many[2 * SPECIAL];
    for (int i = 0; i < 2 * SPECIAL; i++) // each twice, for vectors of few lanes
        many[i] = jot_astype(all[i % SPECIAL], d);
    double errors[2 * SPECIAL];
    errors_of(kind, jot_stack_list(0, 2 * SPECIAL, many), errors);
    for (int i = 0; i < 2 * SPECIAL; i++)
        if (i % SPECIAL == 1 || i % SPECIAL == 2)
            ck_assert_msg(isnan(errors[i]), "%s: matrix %d is not NaN", kinds[kind].name, i);
        else
            ck_assert_msg(errors[i] <= 100 * epsilon_of(d),
                          "%s of %s, matrix %d, seed %d: an error of %g eps", kinds[kind].name,
                          jot_dtype_name(d), i, SEED, errors[i] / epsilon_of(d));
    jot_array_release(drawn);
    jot_scope_close(s);
}
END_TEST

// The factor of what is not positive definite: NaN and no imaginary part up to the diagonal,
// zeros above.
START_TEST(test_indefinite)
{
    enum { N = 5 };
    jot_dtype d = dtypes[_i];
    jot_scope *s = jot_scope_open();
    jot_array *drawn = draw(d, 70, (const int64_t[]){MANY, N, N, JOT_END});
    jot_value l = jot_cholesky(jot_sub(jot_from(drawn), jot_mul(9, jot_eye(d, N, N))));
    jot_value lower = jot_tri(JOT_BOOL, N, N, 0), re = jot_real(l), im = jot_imag(l);
    CHECK_EXACT(jot_all(jot_equal(jot_is_nan(re), lower)), 1);
    CHECK_EXACT(jot_all(jot_equal(jot_where(lower, 0, re), 0)), 1);
    CHECK_EXACT(jot_all(jot_equal(im, 0)), 1);
    jot_array_release(drawn);
    jot_scope_close(s);
}
END_TEST

static void factors_of(jot_value a, jot_value *out)
{
    jot_eigen e = jot_eigh(a);
    jot_svd_factors f = jot_svd(a);
    out[0] = e.values;
    out[1] = e.vectors;
    out[2] = f.u;
    out[3] = f.vh;
    out[4] = jot_qr(a).q;
    out[5] = jot_cholesky(jot_matmul(a, adjoint(a)));
    out[6] = jot_lu_factor(a).lu;
}

// The bits of a matrix do not depend on those beside it, one of which takes longer.
START_TEST(test_neighbours)
{
    enum { FACTORS = 7 };
    jot_scope *s = jot_scope_open();
    jot_array *drawn = draw(dtypes[_i], 60, (const int64_t[]){MANY, 9, 9, JOT_END});
    jot_value a = jot_from(drawn), rows = jot_arange(JOT_F32, MANY);
    jot_value near_one = jot_less(jot_reshape(rows, MANY, 1, 1), MANY / 2);
    a = jot_add(jot_where(near_one, jot_mul(a, 1e-3), a), jot_eye(dtypes[_i], 9, 9));
    jot_value have[FACTORS], want[FACTORS];
    factors_of(a, want);
    factors_of(jot_flip(a, 0), have);
    for (int i = 0; i < FACTORS; i++)
        CHECK_EXACT(jot_all(jot_equal(jot_flip(have[i], 0), want[i])), 1);
    jot_array_release(drawn);
    jot_scope_close(s);
}
END_TEST

static void add(TCase *t)
{
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, test_sizes, 0, 4 * KINDS);
    tcase_add_loop_test(t, test_neighbours, 0, 4);
    tcase_add_loop_test(t, test_indefinite, 0, 4);
    tcase_add_loop_test(t, test_special, 0, 4 * SPECIAL_KINDS);
}

int main(void) { return run_suite("decompose_many", add); }
