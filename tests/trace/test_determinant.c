// SPDX-License-Identifier: Apache-2.0
// Derivatives of determinants: the minors, of any matrix.
#include "trace_support.h"

#define DIMS(...) ((const int64_t[]){__VA_ARGS__, JOT_END})

static jot_scope *scope;

static void open_scope(void) { scope = jot_scope_open(); }

static void close_scope(void) { jot_scope_close(scope); }

// Against whole numbers: of values of some thousands a second derivative is off by 1e-11.
static void check_all(jot_value x, int n, const double *want)
{
    jot_array *a = NULL;
    must(jot_eval(x, &a));
    check_numbers(a, n, want, 1e-9);
    jot_array_release(a);
}

// The determinant of the rows and columns of a that are in no mask, by expansion along the first row.
static double minor_of(int n, const double *a, unsigned rows, unsigned columns)
{
    int row = 0, sign = 1;
    double sum = 0;
    while (row < n && rows >> row & 1)
        row++;
    if (row == n)
        return 1;
    for (int j = 0; j < n; j++)
        if (!(columns >> j & 1)) {
            sum += sign * a[row * n + j] * minor_of(n, a, rows | 1u << row, columns | 1u << j);
            sign = -sign;
        }
    return sum;
}

// Of the element (i, j) and of (k, l) besides, what the determinant is linear in.
static double second_minor(int n, const double *a, int i, int j, int k, int l)
{
    if (i == k || j == l)
        return 0;
    bool is_odd = (i + j + k + l + (i < k) + (j < l)) & 1;
    double x = minor_of(n, a, 1u << i | 1u << k, 1u << j | 1u << l);
    return is_odd ? -x : x;
}

static jot_value det_of(jot_value a) { return jot_det(a); }
static jot_value det_gradient(jot_value a) { return JOT_GRAD(det_of, a); }

// Whole numbers, of which each matrix has the rank of its number, and diagonals with zeros.
static void draw_ranks(int n, double (*a)[25], uint64_t *state)
{
    for (int rank = 0; rank < 6; rank++)
        for (int i = 0; i < n; i++)
            for (int k = 0; k < n; k++)
                a[rank][i * n + k] = 0;
    for (int rank = 1; rank < 6; rank++)
        for (int r = 0; r < rank && r < n; r++) {
            double u[5], v[5];
            for (int i = 0; i < n; i++) {
                *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407;
                u[i] = (double)(*state >> 33 & 7) - 3;
                v[i] = (double)(*state >> 43 & 7) - 3;
            }
            for (int i = 0; i < n * n; i++)
                a[rank][i] += u[i / n] * v[i % n];
        }
    for (int i = 0; i < n; i++) {
        a[6][i * n + i] = i == 1 ? 0 : i + 2;
        a[7][i * n + i] = i == 0 || i == 2 ? 0 : i + 2;
    }
}

static void check_minors(int n, const double *a, jot_value matrix, jot_value by_element)
{
    double first[25], second[625];
    for (int i = 0; i < n * n; i++) {
        double minor = minor_of(n, a, 1u << i / n, 1u << i % n);
        first[i] = (i / n + i % n) & 1 ? -minor : minor;
        for (int k = 0; k < n * n; k++)
            second[i * n * n + k] = second_minor(n, a, i / n, i % n, k / n, k % n);
    }
    check_all(by_element, n * n, first);
    jot_value hessian;
    jot_apply(jot_jacfwd(jot_fn(det_gradient)), 1, &matrix, 1, &hessian);
    check_all(hessian, n * n * n * n, second);
}

// The derivatives of a determinant are its minors, of matrices of any rank, also mapped.
START_TEST(derivatives_of_determinants_of_any_rank)
{
    uint64_t state = 12;
    for (int n = 1; n <= 5; n++) {
        double a[8][25] = {{0}}, packed[8 * 25];
        draw_ranks(n, a, &state);
        for (int i = 0; i < 8 * n * n; i++)
            packed[i] = a[i / (n * n)][i % (n * n)];
        jot_array *array = jot_array_copy(JOT_F64, packed, DIMS(8, n, n));
        jot_value all = jot_from(array), lanes = all, y;
        JOT_VMAP ((lanes), (y)) {
            y = det_gradient(lanes);
        }
        for (int i = 0; i < 8; i++)
            check_minors(n, a[i], jot_take(all, i), jot_take(y, i));
        jot_array_release(array);
    }
}
END_TEST

static jot_value draw(bool is_complex, int n, int m)
{
    jot_value x = jot_reshape(jot_sin(jot_mul(7.1, jot_arange(JOT_F64, n * m))), n, m);
    return is_complex ? jot_complex(x, jot_cos(jot_mul(3.3, x))) : x;
}

// Both ways, complex ones as well, and of a third order where equal singular values have none.
START_TEST(higher_derivatives_of_determinants)
{
    unsigned both = JOT_FORWARD | JOT_REVERSE;
    for (int rank = 2; rank <= 4; rank++)
        for (int is_complex = 0; is_complex < 2; is_complex++) {
            jot_value x = jot_matmul(draw(is_complex, 4, rank), draw(is_complex, rank, 4));
            jot_array *a = NULL;
            must(jot_eval(x, &a));
            must(jot_check_grads(jot_fn(det_of), 2, both, 0, a));
            jot_array_release(a);
        }
    jot_array *one = NULL;
    must(jot_eval(jot_eye(JOT_F64, 4, 4), &one));
    must(jot_check_grads(jot_fn(det_of), 3, both, 0, one));
    jot_array_release(one);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_checked_fixture(t, open_scope, close_scope);
    tcase_add_test(t, derivatives_of_determinants_of_any_rank);
    tcase_add_test(t, higher_derivatives_of_determinants);
}

int main(void) { return run_by_both("determinant", add_tests); }
