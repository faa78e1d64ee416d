// SPDX-License-Identifier: Apache-2.0
// Products x^T d x with a diagonal d, of which a GPU computes one side: numbers whose sums are exact.
#include "support/suite.h"
#include "trace_support.h"

static jot_value weighted(jot_value x, jot_value d)
{
    return jot_matmul(jot_transpose(x, 1, 0), jot_mul(x, jot_expand_dims(d, 1)));
}

static jot_value between(jot_value x, jot_value d)
{
    return jot_matmul(jot_neg(jot_mul(jot_transpose(x, 1, 0), d)), x);
}

static jot_value plain(jot_value x, jot_value d)
{
    return jot_add(jot_matmul(jot_transpose(x, 1, 0), x), jot_sum(d));
}

static jot_array *numbers(int64_t n, int64_t m)
{
    size_t count = (size_t)(n * m);
    float *data = malloc(count * sizeof *data);
    for (size_t i = 0; i < count; i++)
        data[i] = (float)((i * 2654435761u) % 1021 % 9) / 2 - 2;
    jot_array *a = m == 1 ? jot_array_copy(JOT_F32, data, (int64_t[]){n, JOT_END})
                          : jot_array_copy(JOT_F32, data, (int64_t[]){n, m, JOT_END});
    free(data);
    ck_assert_msg(a, "%s", jot_error_message());
    return a;
}

static void expect_sums(jot_function f, double scale, double offset, int64_t terms, int64_t n)
{
    jot_array *in[] = {numbers(terms, n), numbers(terms, 1)}, *z;
    jot_executable *e = jot_jit(f);
    ck_assert_msg(jot_call(e, JOT_IN(in[0], in[1]), 1, &z) == JOT_OK, "%s",
                  jot_error_message());
    const float *x = jot_array_data(in[0]), *d = jot_array_data(in[1]), *c = jot_array_data(z);
    double total = 0;
    for (int64_t k = 0; k < terms; k++)
        total += (double)d[k];
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = 0;
            for (int64_t k = 0; k < terms; k++)
                sum += (double)x[k * n + i] * (double)x[k * n + j] *
                       (scale != 0 ? (double)d[k] : 1);
            sum = scale != 0 ? scale * sum : sum + offset * total;
            ck_assert_msg((double)c[i * n + j] == sum, "[%d, %d] of %d: %g, not %g", (int)i,
                          (int)j, (int)n, (double)c[i * n + j], sum);
        }
    jot_executable_release(e);
    jot_array_release(z);
    jot_arrays_release(2, in);
}

START_TEST(have_both_sides)
{
    expect_sums(jot_fn(weighted), 1, 0, 520, 256);
    expect_sums(jot_fn(weighted), 1, 0, 1030, 300); // parts of tiles, and of steps
    expect_sums(jot_fn(weighted), 1, 0, 520, 258);  // rows that are no whole vectors
    expect_sums(jot_fn(between), -1, 0, 520, 260);
    expect_sums(jot_fn(plain), 0, 1, 513, 384);
}
END_TEST

static void add_tests(TCase *tests)
{
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, have_both_sides);
}

int main(void) { return suite_run("symmetric products", add_tests); }
