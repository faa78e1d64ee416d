// SPDX-License-Identifier: Apache-2.0
// Arithmetic of half types: numbers of every size with some, and the bits of the evaluator.
#include "support/suite.h"
#include "trace_support.h"

enum { ALL = 1 << 14, SOME = 12 };

static jot_value ring(jot_value x, jot_value y)
{
    return jot_concatenate(0, jot_add(x, y), jot_sub(x, y), jot_mul(x, y), jot_sub(y, x));
}

// One operation after the other, each rounded.
static jot_value chain(jot_value x, jot_value y)
{
    jot_value z = jot_add(jot_mul(x, y), y);
    jot_value w = jot_mul(jot_add(y, 1), 0.5);
    z = jot_sub(jot_mul(jot_neg(z), x), w);
    return jot_add(z, jot_mul(jot_maximum(x, y), jot_mul(z, y)));
}

static jot_value wider(jot_value x, jot_value y)
{
    jot_value z = jot_mul(jot_convert(x, JOT_F32), jot_convert(y, JOT_F32));
    return jot_concatenate(0, jot_convert(z, jot_value_dtype(x)),
                           jot_convert(jot_mul(z, 1.0009765625f), jot_value_dtype(x)));
}

// Numbers of either type: 0, denormals, what is next to 1, some between, the greatest, infinity, NaN.
static const uint16_t some[][SOME] = {{0x0000, 0x8001, 0x007f, 0x0080, 0x3f7f, 0xbf81, 0x3eab,
                                       0x4049, 0xc2f7, 0x7f7f, 0xff80, 0x7fc0},
                                      {0x0000, 0x8001, 0x03ff, 0x0400, 0x3bff, 0xbc01, 0x3555,
                                       0x4248, 0xd640, 0x7bff, 0xfc00, 0x7e00}};

static bool is_nan(jot_dtype d, uint16_t x)
{
    return (x & 0x7fff) > (d == JOT_BF16 ? 0x7f80 : 0x7c00);
}

// Of an odd count each thread has one number.
static void expect_bits(jot_function f, jot_dtype d, int64_t count)
{
    uint16_t *data = malloc(sizeof *data * 2 * SOME * ALL);
    for (int i = 0; i < SOME * ALL; i++) {
        data[i] = (uint16_t)(4 * i + i / ALL % 4);
        data[SOME * ALL + i] = some[d == JOT_F16][i / ALL];
    }
    jot_array *in[] = {jot_array_copy(d, data, (int64_t[]){count, JOT_END}),
                       jot_array_copy(d, data + SOME * ALL, (int64_t[]){count, JOT_END})};
    jot_array *z[2];
    for (int i = 0; i < 2; i++) {
        setenv("JOT_BACKEND", i ? "eval" : "", 1);
        jot_executable *e = jot_jit(f);
        must(jot_call(e, JOT_IN(in[0], in[1]), 1, &z[i]));
        jot_executable_release(e);
    }
    const uint16_t *x = jot_array_data(z[0]), *want = jot_array_data(z[1]);
    for (size_t i = 0; i < jot_array_bytes(z[1]) / 2; i++)
        ck_assert_msg(x[i] == want[i] || (is_nan(d, x[i]) && is_nan(d, want[i])),
                      "%s %d: %04x, not %04x", jot_dtype_name(d), (int)i, x[i], want[i]);
    jot_arrays_release(2, z);
    jot_arrays_release(2, in);
    free(data);
}

START_TEST(are_rounded_once)
{
    static const jot_dtype dtypes[] = {JOT_BF16, JOT_F16};
    expect_bits(jot_fn(ring), dtypes[_i], SOME * ALL);
    expect_bits(jot_fn(chain), dtypes[_i], SOME * ALL);
    expect_bits(jot_fn(chain), dtypes[_i], SOME * ALL - 1);
    expect_bits(jot_fn(wider), dtypes[_i], SOME * ALL);
}
END_TEST

static void add_tests(TCase *tests)
{
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, are_rounded_once, 0, 2);
}

int main(void) { return suite_run("half types", add_tests); }
