// SPDX-License-Identifier: Apache-2.0
// Small products, of which a thread of a GPU has several rows, or some threads one: the bits of the evaluator.
#include "support/suite.h"
#include "trace_support.h"

static jot_value product(jot_value x, jot_value y) { return jot_matmul(x, y); }

static jot_value turned(jot_value x, jot_value y)
{
    return jot_relu(jot_sub(jot_matmul(x, y), jot_sum(x, -1, JOT_KEEPDIMS)));
}

// Many points with a short sum each, of which one factor is read with a stride.
static jot_value layer(jot_value x, jot_value w)
{
    jot_value h = jot_tanh(jot_reshape(x, -1, 32));
    return jot_add(jot_matmul(h, jot_reshape(w, 32, -1)), jot_sum(h, -1, JOT_KEEPDIMS));
}

static jot_array *numbers(int64_t n, int64_t m, int64_t k)
{
    size_t count = (size_t)(n * m * k);
    float *data = malloc(count * sizeof *data);
    for (size_t i = 0; i < count; i++)
        data[i] = (float)((i * 2654435761u) % 1021) / 1021 - 0.5f;
    jot_array *a = jot_array_copy(JOT_F32, data, (int64_t[]){n, m, k, JOT_END});
    free(data);
    ck_assert_msg(a, "%s", jot_error_message());
    return a;
}

static void expect_bits(jot_function f, int64_t n, int64_t m, int64_t k, int64_t n_y,
                        int64_t columns)
{
    jot_array *x = numbers(n, m, k), *y = numbers(n_y, k, columns), *z[2];
    for (int i = 0; i < 2; i++) {
        setenv("JOT_BACKEND", i ? "eval" : "", 1);
        jot_executable *e = jot_jit(f);
        ck_assert_msg(jot_call(e, JOT_IN(x, y), 1, &z[i]) == JOT_OK, "%s", jot_error_message());
        jot_executable_release(e);
    }
    ck_assert_int_eq(memcmp(jot_array_data(z[0]), jot_array_data(z[1]), jot_array_bytes(z[0])),
                     0);
    jot_arrays_release(2, z);
    jot_arrays_release(2, (jot_array *[]){x, y});
}

START_TEST(are_those_of_the_evaluator)
{
    expect_bits(jot_fn(product), 4300, 16, 16, 4300, 16);
    expect_bits(jot_fn(product), 12001, 12, 5, 12001, 8); // of matrices that are not square
    expect_bits(jot_fn(turned), 8000, 6, 3, 8000, 12);
    expect_bits(jot_fn(layer), 20000, 1, 32, 1, 4);
}
END_TEST

static void add_tests(TCase *tests)
{
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, are_those_of_the_evaluator);
}

int main(void) { return suite_run("small products", add_tests); }
