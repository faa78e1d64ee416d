// SPDX-License-Identifier: Apache-2.0
// Factorings and decompositions by a GPU's library and by kernels, as test_cuda_routines.c tests
// other routines.
#include "cuda_routines_support.h"
#include "support/suite.h"

#include <complex.h>
#include <math.h>

#define SIDE 3
static const struct routine_plan eigh = {
    "eigh", 5, 1, 3, {JOT_F64, 1, SIDE, SIDE, 0}, {SIDE * SIDE * 8, SIDE * 8, SIDE *SIDE * 8}};
static const struct routine_plan cholesky = {
    "cholesky", 5, 1, 2, {JOT_F64, 1, SIDE, SIDE, 0}, {SIDE * SIDE * 8, SIDE *SIDE * 8}};

static const double symmetric[SIDE * SIDE] = {4, 1, 0.5, 1, 3, -1, 0.5, -1, 5};

static int factorings(void)
{
    return fake_count_of("libcusolver.so.12", "fake_cuda_factorings");
}

static void decompose(const double *a, int times, double w[SIDE], double v[SIDE * SIDE])
{
    struct rt_program *p;
    OK(load(&eigh, &p));
    OK(run_times(p, &eigh, times, (const void *[]){a}, (void *[]){w, v}));
    rt_program_release(p);
}

static void expect_eigenvector(const double *a, const double *w, const double *v, int k)
{
    for (int i = 0; i < SIDE; i++) {
        double sum = 0;
        for (int j = 0; j < SIDE; j++)
            sum += a[i * SIDE + j] * v[j * SIDE + k];
        ck_assert_double_lt(fabs(sum - w[k] * v[i * SIDE + k]), 1e-12);
    }
}

static void expect_eigenvectors(int times)
{
    double w[SIDE], v[SIDE * SIDE];
    decompose(symmetric, times, w, v);
    for (int k = 0; k < SIDE; k++)
        expect_eigenvector(symmetric, w, v, k);
}

// The host has a part in it: graphs have what is before and behind.
START_TEST(splits_a_graph)
{
    use_fake(NULL, NULL);
    expect_eigenvectors(3);
    ck_assert_int_eq(factorings(), 3);
    ck_assert_int_eq(fake_count("fake_cuda_graph_nodes"), 2); // the copies of the results
    expect_no_blocks();
}
END_TEST

START_TEST(no_eigenvalues_are_nan)
{
    use_fake("FAKE_CUDA_NO_CONVERGENCE", "1");
    double w[SIDE], v[SIDE * SIDE];
    decompose(symmetric, 1, w, v);
    for (int i = 0; i < SIDE * SIDE; i++)
        ck_assert(isnan(v[i]) && isnan(w[i % SIDE]));
}
END_TEST

START_TEST(a_fault_of_the_solver_leaves_it_to_the_host)
{
    use_fake("FAKE_CUDA_SOLVER_FAULT", "6");
    expect_eigenvectors(2);
    ck_assert_int_eq(factorings(), 0);
    expect_no_blocks();
}
END_TEST

START_TEST(out_of_memory_is_a_status)
{
    use_fake("FAKE_CUDA_SOLVER_FAULT", "2");
    double l[SIDE * SIDE];
    struct rt_program *p;
    OK(load(&cholesky, &p));
    ck_assert_int_eq(run_times(p, &cholesky, 1, (const void *[]){symmetric}, (void *[]){l}),
                     JOT_ERR_MEMORY);
    ck_assert_str_eq(jot_error_message(), "cuda:0: cholesky: cuSOLVER fails with 2");
    rt_program_release(p);
    expect_no_blocks();
}
END_TEST

START_TEST(factors_in_a_graph)
{
    use_fake(NULL, NULL);
    double l[SIDE * SIDE];
    struct rt_program *p;
    OK(load(&cholesky, &p));
    OK(run_times(p, &cholesky, 3, (const void *[]){symmetric}, (void *[]){l}));
    ck_assert_int_eq(fake_count("fake_cuda_graph_launches"), 2);
    for (int i = 0; i < SIDE; i++)
        for (int k = 0; k < SIDE; k++) {
            double sum = 0;
            for (int j = 0; j < SIDE; j++)
                sum += l[i * SIDE + j] * l[k * SIDE + j];
            ck_assert_double_lt(fabs(sum - symmetric[i * SIDE + k]), 1e-13);
            ck_assert(k <= i || l[i * SIDE + k] == 0);
        }
    rt_program_release(p);
}
END_TEST

// Two at a time, for what the call wants to work in.
START_TEST(many_small_matrices_are_few_calls)
{
    enum { COUNT_OF = 5 };
    struct routine_plan plan = {
        "eigh",
        5,
        1,
        3,
        {JOT_F64, COUNT_OF, SIDE, SIDE, 0},
        {COUNT_OF * sizeof symmetric, COUNT_OF * SIDE * 8, COUNT_OF * sizeof symmetric}};
    double a[COUNT_OF][SIDE * SIDE], w[COUNT_OF][SIDE], v[COUNT_OF][SIDE * SIDE];
    struct rt_program *p;
    use_fake(NULL, NULL);
    for (int i = 0; i < COUNT_OF; i++)
        for (int k = 0; k < SIDE * SIDE; k++)
            a[i][k] = i == 3 ? NAN : (i + 1) * symmetric[k];
    OK(load(&plan, &p));
    OK(run_times(p, &plan, 1, (const void *[]){a}, (void *[]){w, v}));
    ck_assert_int_eq(factorings(), 3);
    for (int i = 0; i < COUNT_OF; i++)
        for (int k = 0; k < SIDE; k++)
            if (i == 3)
                ck_assert(isnan(w[i][k]) && isnan(v[i][k]));
            else
                expect_eigenvector(a[i], w[i], v[i], k);
    rt_program_release(p);
    expect_no_blocks();
}
END_TEST

START_TEST(without_a_compiler_of_kernels_the_host_factors)
{
    use_fake_without("libnvrtc.so.13");
    expect_eigenvectors(2);
    ck_assert_int_eq(factorings(), 0);
}
END_TEST

// ---- Decompositions of matrices that are not symmetric

#define LONG 7
#define SHORT 4

// Of two matrices of so many independent columns; svd thin or with square factors.
struct matrix_case {
    jot_dtype dtype;
    int m, n, mode, rank;
    const char *fault; // of the library
    int factorings;    // 0: the host's
};

static double matrix_element(const struct matrix_case *c, int matrix, int i, int j)
{
    double sum = 0;
    for (int k = 0; k < c->rank; k++)
        sum += cos(i * (k + 1) + k + matrix) * sin(j * (k + 2) + 2 * k) / (1 + 5 * k);
    return c->dtype == JOT_F32 ? (double)(float)sum : sum;
}

static double number_at(const struct matrix_case *c, const void *x, int i)
{
    return c->dtype == JOT_F32 ? (double)((const float *)x)[i] : ((const double *)x)[i];
}

// The rows of x, or its columns, are orthonormal.
static void expect_orthonormal(const struct matrix_case *c, const void *x, int first, int count,
                               int length, int step, int next)
{
    double eps = c->dtype == JOT_F32 ? 1e-6 : 1e-14;
    for (int i = 0; i < count; i++)
        for (int j = 0; j <= i; j++) {
            double sum = 0;
            for (int k = 0; k < length; k++)
                sum += number_at(c, x, first + i * next + k * step) *
                       number_at(c, x, first + j * next + k * step);
            ck_assert_double_lt(fabs(sum - (i == j)), eps);
        }
}

static void expect_factors(const struct matrix_case *c, int matrix, const void *s,
                           const void *u, const void *vh)
{
    double eps = c->dtype == JOT_F32 ? 1e-6 : 1e-14;
    int k = c->m < c->n ? c->m : c->n, columns = c->mode == 2 ? c->m : k,
        rows = c->mode == 2 ? c->n : k;
    int first_u = matrix * c->m * columns, first_v = matrix * rows * c->n, first = matrix * k;
    expect_orthonormal(c, u, first_u, columns, c->m, columns, 1);
    expect_orthonormal(c, vh, first_v, rows, c->n, 1, c->n);
    for (int i = 1; i < k; i++)
        ck_assert(number_at(c, s, first + i) <= number_at(c, s, first + i - 1));
    for (int i = c->rank; i < k; i++)
        ck_assert_double_lt(number_at(c, s, first + i), 4 * eps);
    for (int i = 0; i < c->m; i++)
        for (int j = 0; j < c->n; j++) {
            double sum = 0;
            for (int l = 0; l < k; l++)
                sum += number_at(c, u, first_u + i * columns + l) * number_at(c, s, first + l) *
                       number_at(c, vh, first_v + l * c->n + j);
            ck_assert_double_lt(fabs(sum - matrix_element(c, matrix, i, j)), 4 * eps);
        }
}

// So many, as numbers of the case's type.
static void put_matrices(const struct matrix_case *c, int count, void *a)
{
    for (int i = 0; i < count * c->m * c->n; i++) {
        double x = matrix_element(c, i / (c->m * c->n), i / c->n % c->m, i % c->n);
        if (c->dtype == JOT_F32)
            ((float *)a)[i] = (float)x;
        else
            ((double *)a)[i] = x;
    }
}

static const struct matrix_case qr_cases[] = {
    {JOT_F32, LONG, SHORT, 0, SHORT, NULL, 2}, // a Cholesky factor for each matrix
    {JOT_F32, SHORT, SHORT, 0, SHORT, NULL, 2},
    {JOT_F32, LONG, SHORT, 0, 2, NULL, 5}, // there is none: reflectors
    {JOT_F32, SHORT, SHORT, 0, 0, NULL, 5},
    {JOT_F32, SHORT, LONG, 0, SHORT, NULL, 4}, // for these without trying
    {JOT_F64, LONG, SHORT, 0, SHORT, NULL, 4},
    {JOT_F32, LONG, SHORT, 0, SHORT, "FAKE_CUDA_SOLVER_FAULT", 0}, // the host
};

START_TEST(finds_orthonormal_columns)
{
    const struct matrix_case *c = &qr_cases[_i];
    int k = c->m < c->n ? c->m : c->n, part = c->dtype == JOT_F32 ? 4 : 8;
    double a[2 * LONG * LONG], q[2 * LONG * LONG], r[2 * LONG * LONG];
    double eps = c->dtype == JOT_F32 ? 1e-6 : 1e-14;
    struct routine_plan plan = {"qr",
                                5,
                                1,
                                3,
                                {c->dtype, 2, c->m, c->n, 0},
                                {(uint64_t)(2 * c->m * c->n * part),
                                 (uint64_t)(2 * c->m * k * part),
                                 (uint64_t)(2 * k * c->n * part)}};
    struct rt_program *p;
    use_fake(c->fault, "1");
    put_matrices(c, 2, a);
    OK(load(&plan, &p));
    OK(run_times(p, &plan, 1, (const void *[]){a}, (void *[]){q, r}));
    ck_assert_int_eq(factorings(), c->factorings);
    for (int matrix = 0; matrix < 2; matrix++) {
        int first_q = matrix * c->m * k, first_r = matrix * k * c->n;
        expect_orthonormal(c, q, first_q, k, c->m, k, 1);
        for (int i = 0; i < c->m; i++)
            for (int j = 0; j < c->n; j++) {
                double sum = 0;
                for (int l = 0; l < k; l++)
                    sum += number_at(c, q, first_q + i * k + l) *
                           number_at(c, r, first_r + l * c->n + j);
                ck_assert_double_lt(fabs(sum - matrix_element(c, matrix, i, j)), 4 * eps);
                ck_assert(j >= i || i >= k || number_at(c, r, first_r + i * c->n + j) == 0);
            }
    }
    rt_program_release(p);
    expect_no_blocks();
}
END_TEST

static const struct matrix_case svd_cases[] = {
    {JOT_F32, LONG, SHORT, 1, SHORT, NULL, 2},  // eigenvalues, for each matrix
    {JOT_F32, SHORT, LONG, 1, SHORT, NULL, 2},  // the same of the transpose
    {JOT_F32, SHORT, SHORT, 2, SHORT, NULL, 2}, // square
    {JOT_F32, LONG, SHORT, 1, 2, NULL, 6},      // reflectors where singular values are small
    {JOT_F32, SHORT, LONG, 1, 2, NULL, 6},
    {JOT_F32, SHORT, SHORT, 1, 0, NULL, 6},
    {JOT_F32, LONG, SHORT, 2, SHORT, NULL, 2}, // gesvd for square factors
    {JOT_F64, LONG, SHORT, 1, SHORT, NULL, 2}, // and double precision
    {JOT_F64, SHORT, LONG, 1, 3, NULL, 2},
    {JOT_F64, SHORT, LONG, 2, SHORT, NULL, 2},
    {JOT_F32, LONG, SHORT, 1, SHORT, "FAKE_CUDA_NO_CONVERGENCE", 1}, // and then the host
    {JOT_F32, SHORT, LONG, 1, SHORT, "FAKE_CUDA_WRONG_VECTORS", 1},
    {JOT_F32, SHORT, LONG, 1, SHORT, "FAKE_CUDA_SOLVER_FAULT", 0},
};

static const struct matrix_case first_cases[] = {
    {JOT_F32, LONG, SHORT, 3, 2, NULL, 2}, // gesvdr, for each matrix
    {JOT_F32, SHORT, LONG, 3, 2, NULL, 2},
    {JOT_F64, LONG, SHORT, 3, 2, NULL, 2},
    {JOT_F64, SHORT, LONG, 3, 2, NULL, 2},
    {JOT_F64, SHORT, SHORT, 3, 1, NULL, 2},
    {JOT_F64, LONG, SHORT, 3, SHORT, NULL, 2},                     // what is left out is not 0
    {JOT_F32, SHORT, LONG, 3, SHORT, "FAKE_CUDA_OTHER_VALUES", 3}, // and then all of each
    {JOT_F64, LONG, SHORT, 3, SHORT, "FAKE_CUDA_OTHER_VALUES", 3},
    {JOT_F64, SHORT, LONG, 3, SHORT, "FAKE_CUDA_WRONG_VECTORS", 3},
    {JOT_F64, SHORT, LONG, 3, SHORT, "FAKE_CUDA_SOLVER_FAULT", 0},
};

#define FIRST 2

// The first two of the values, and what they make of two matrices.
START_TEST(finds_the_first_singular_values)
{
    const struct matrix_case *c = &first_cases[_i];
    int k = SHORT, part = c->dtype == JOT_F32 ? 4 : 8;
    double eps = c->dtype == JOT_F32 ? 4e-6 : 1e-13;
    double a[2 * LONG * LONG], s[2 * LONG], u[2 * LONG * LONG], vh[2 * LONG * LONG];
    double s_all[2 * LONG], u_all[2 * LONG * LONG], vh_all[2 * LONG * LONG];
    struct routine_plan plan = {"svd", 5, 1, 4, {c->dtype, 2, c->m, c->n, 1}, {0}};
    struct rt_program *p;
    use_fake(NULL, NULL);
    put_matrices(c, 2, a);
    for (int pass = 0; pass < 2; pass++) {
        int count = pass ? FIRST : k;
        plan.params[4] = pass ? 3 : 1;
        plan.bytes[0] = (uint64_t)(2 * c->m * c->n * part);
        plan.bytes[1] = (uint64_t)(2 * count * part);
        plan.bytes[2] = (uint64_t)(2 * c->m * count * part);
        plan.bytes[3] = (uint64_t)(2 * count * c->n * part);
        if (pass)
            use_fake(c->fault, "1");
        int before = factorings();
        OK(load(&plan, &p));
        OK(run_times(p, &plan, 1, (const void *[]){a},
                     pass ? (void *[]){s, u, vh} : (void *[]){s_all, u_all, vh_all}));
        if (pass)
            ck_assert_int_eq(factorings() - before, c->factorings);
        rt_program_release(p);
        expect_no_blocks();
    }
    for (int matrix = 0; matrix < 2; matrix++) {
        for (int i = 0; i < FIRST; i++)
            ck_assert_double_lt(
                fabs(number_at(c, s, matrix * FIRST + i) - number_at(c, s_all, matrix * k + i)),
                eps);
        expect_orthonormal(c, u, matrix * c->m * FIRST, FIRST, c->m, FIRST, 1);
        expect_orthonormal(c, vh, matrix * FIRST * c->n, FIRST, c->n, 1, c->n);
        for (int i = 0; i < c->m; i++)
            for (int j = 0; j < c->n; j++) {
                double difference = 0;
                for (int l = 0; l < FIRST; l++) {
                    difference += number_at(c, u, (matrix * c->m + i) * FIRST + l) *
                                  number_at(c, s, matrix * FIRST + l) *
                                  number_at(c, vh, (matrix * FIRST + l) * c->n + j);
                    difference -= number_at(c, u_all, (matrix * c->m + i) * k + l) *
                                  number_at(c, s_all, matrix * k + l) *
                                  number_at(c, vh_all, (matrix * k + l) * c->n + j);
                }
                ck_assert_double_lt(fabs(difference), eps);
            }
    }
}
END_TEST

// So many matrices.
static void expect_singular_values(const struct matrix_case *c, int count)
{
    int k = c->m < c->n ? c->m : c->n, part = c->dtype == JOT_F32 ? 4 : 8;
    int columns = c->mode == 2 ? c->m : k, rows = c->mode == 2 ? c->n : k;
    struct routine_plan plan = {
        "svd",
        5,
        1,
        4,
        {c->dtype, count, c->m, c->n, c->mode},
        {(uint64_t)(count * c->m * c->n * part), (uint64_t)(count * k * part),
         (uint64_t)(count * c->m * columns * part), (uint64_t)(count * rows * c->n * part)}};
    void *a = malloc(plan.bytes[0]), *s = malloc(plan.bytes[1]), *u = malloc(plan.bytes[2]),
         *vh = malloc(plan.bytes[3]);
    struct rt_program *p;
    use_fake(c->fault, "1");
    put_matrices(c, count, a);
    OK(load(&plan, &p));
    OK(run_times(p, &plan, 1, (const void *[]){a}, (void *[]){s, u, vh}));
    ck_assert_int_eq(factorings(), c->factorings);
    for (int i = 0; i < count; i++)
        expect_factors(c, i, s, u, vh);
    rt_program_release(p);
    expect_no_blocks();
    free(a);
    free(s);
    free(u);
    free(vh);
}

START_TEST(finds_singular_values) { expect_singular_values(&svd_cases[_i], 2); }
END_TEST

static const struct matrix_case small_cases[] = {
    {JOT_F32, LONG, SHORT, 1, SHORT, NULL, 0}, {JOT_F32, SHORT, LONG, 1, 2, NULL, 0},
    {JOT_F32, SHORT, SHORT, 2, 0, NULL, 0},    {JOT_F32, 1, 1, 1, 1, NULL, 0},
    {JOT_F32, 8, 10, 1, 3, NULL, 0},           {JOT_F32, 17, 5, 1, 5, NULL, 0},
    {JOT_F32, 6, 32, 1, 2, NULL, 0},           {JOT_F64, LONG, SHORT, 1, SHORT, NULL, 0},
    {JOT_F64, SHORT, 16, 1, 3, NULL, 0},
};

// A kernel for all, without the library.
START_TEST(finds_singular_values_of_many)
{
    expect_singular_values(&small_cases[_i], 21);
    ck_assert_int_eq(fake_count("fake_cuda_launches"), 1);
}
END_TEST

static void add_tests(TCase *cases)
{
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, splits_a_graph);
    tcase_add_test(cases, no_eigenvalues_are_nan);
    tcase_add_test(cases, a_fault_of_the_solver_leaves_it_to_the_host);
    tcase_add_test(cases, out_of_memory_is_a_status);
    tcase_add_test(cases, factors_in_a_graph);
    tcase_add_test(cases, many_small_matrices_are_few_calls);
    tcase_add_test(cases, without_a_compiler_of_kernels_the_host_factors);
    tcase_add_loop_test(cases, finds_orthonormal_columns, 0,
                        sizeof qr_cases / sizeof *qr_cases);
    tcase_add_loop_test(cases, finds_the_first_singular_values, 0,
                        sizeof first_cases / sizeof *first_cases);
    tcase_add_loop_test(cases, finds_singular_values, 0, sizeof svd_cases / sizeof *svd_cases);
    tcase_add_loop_test(cases, finds_singular_values_of_many, 0,
                        sizeof small_cases / sizeof *small_cases);
}

int main(void) { return suite_run("runtime/cuda_matrices", add_tests); }
