// SPDX-License-Identifier: Apache-2.0
// Products of numbers that are widened on the way, which the library of a GPU takes as they are: whole numbers, whose
// sums are exact.
#include "support/suite.h"
#include "trace_support.h"

enum { TERMS = 200, SIDE = 232 };

static jot_value wider(jot_value x)
{
    return jot_convert(x, jot_value_dtype(x) == JOT_BF16 ? JOT_F32 : JOT_I32);
}

static jot_value straight(jot_value x, jot_value y) { return jot_matmul(wider(x), wider(y)); }

// Both operands lie the other way round.
static jot_value across(jot_value x, jot_value y)
{
    return jot_matmul(jot_transpose(wider(x), 1, 0), wider(y));
}

static jot_value with_more(jot_value x, jot_value y)
{
    jot_value z = jot_matmul(jot_transpose(jot_mul(x, x), 1, 0), y);
    return jot_add(jot_max(jot_add(jot_mul(straight(jot_transpose(x, 1, 0), y), 2), 3), 0),
                   wider(z));
}

static jot_array *numbers(jot_dtype d, int64_t rows, int64_t columns)
{
    int64_t count = rows * columns;
    uint16_t *data = malloc(sizeof *data * (size_t)count);
    for (int64_t i = 0; i < count; i++) {
        int32_t x = (int32_t)((uint64_t)i * 2654435761u % 1021 % 255) - 127;
        float y = (float)(x / 16);
        uint32_t bits;
        memcpy(&bits, &y, sizeof bits);
        if (d == JOT_BF16)
            data[i] = (uint16_t)(bits >> 16);
        else
            ((int8_t *)data)[i] = (int8_t)(d == JOT_BOOL ? x > 0 : x);
    }
    jot_array *a = jot_array_copy(d, data, (int64_t[]){rows, columns, JOT_END});
    free(data);
    ck_assert_msg(a, "%s", jot_error_message());
    return a;
}

static void expect_bits(jot_function f, jot_dtype d, int64_t rows, int64_t terms)
{
    jot_array *in[] = {numbers(d, rows, terms), numbers(d, TERMS, SIDE)}, *z[2];
    for (int i = 0; i < 2; i++) {
        setenv("JOT_BACKEND", i ? "eval" : "", 1);
        jot_executable *e = jot_jit(f);
        ck_assert_msg(jot_call(e, JOT_IN(in[0], in[1]), 1, &z[i]) == JOT_OK, "%s",
                      jot_error_message());
        jot_executable_release(e);
    }
    ck_assert_int_eq(memcmp(jot_array_data(z[0]), jot_array_data(z[1]), jot_array_bytes(z[0])),
                     0);
    jot_arrays_release(2, z);
    jot_arrays_release(2, in);
}

START_TEST(are_exact)
{
    static const jot_dtype dtypes[] = {JOT_BOOL, JOT_I8, JOT_BF16};
    expect_bits(jot_fn(straight), dtypes[_i], SIDE, TERMS);
    expect_bits(jot_fn(straight), dtypes[_i], SIDE - 1, TERMS);
    expect_bits(jot_fn(across), dtypes[_i], TERMS, SIDE);
    if (dtypes[_i] != JOT_BOOL)
        expect_bits(jot_fn(with_more), dtypes[_i], TERMS, SIDE);
}
END_TEST

static void add_tests(TCase *tests)
{
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, are_exact, 0, 3);
}

int main(void) { return suite_run("narrow products", add_tests); }
