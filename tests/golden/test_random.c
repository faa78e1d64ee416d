// SPDX-License-Identifier: Apache-2.0
// Random numbers bit for bit those of jax.random; normal and exponential ones to a few units in
// the last place, because XLA's logarithms are not jot's.
#include "golden/golden.h"

#include <check.h>
#include <jot/jot.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static struct ir_module *module;
static jot_scope *scope;

static void setup(void)
{
    module = ir_module_create();
    scope = jot_scope_open();
}

static void teardown(void)
{
    jot_scope_close(scope);
    ir_module_release(module);
}

static double number(jot_dtype d, const void *data, int64_t i)
{
    if (d == JOT_F64)
        return ((const double *)data)[i];
    if (d == JOT_F32)
        return (double)((const float *)data)[i];
    uint16_t half = ((const uint16_t *)data)[i];
    return (double)(d == JOT_F16 ? dtype_f16_to_f32(half) : dtype_bf16_to_f32(half));
}

static jot_value value_of(const char *function, jot_dtype d, jot_value key,
                          const char *arguments, const int64_t *dims)
{
    if (!strcmp(function, "key"))
        return key;
    if (!strcmp(function, "split"))
        return jot_random_split(key, atoi(arguments));
    if (!strcmp(function, "fold_in")) {
        int64_t data = strtoll(arguments, NULL, 0);
        return jot_random_fold_in(key, jot_convert(data, JOT_U32));
    }
    if (!strcmp(function, "bits"))
        return jot_random_bits_dims(key, d, dims);
    if (!strcmp(function, "uniform"))
        return jot_random_uniform_dims(key, d, dims);
    if (!strcmp(function, "normal"))
        return jot_random_normal_dims(key, d, dims);
    if (!strcmp(function, "exponential"))
        return jot_random_exponential_dims(key, d, dims);
    if (!strcmp(function, "bernoulli"))
        return jot_random_bernoulli_dims(key, strtod(arguments, NULL), dims);
    ck_assert_str_eq(function, "uniform_in");
    jot_value low = jot_convert(-2, d), high = jot_convert(5, d);
    return jot_random_uniform_in_dims(key, d, low, high, dims);
}

// random FUNCTION DTYPE SEED ARGUMENTS TYPE HEX
static void check_line(char **w)
{
    const char *function = w[1];
    jot_dtype d = (jot_dtype)dtype_find(w[2], strlen(w[2]));
    struct ir_tensor want = golden_tensor(module, w[5], w[6]);
    int64_t dims[IR_MAX_RANK + 1], count = ir_count(module, want.type);
    memcpy(dims, ir_dims(module, want.type), want.type.rank * sizeof *dims);
    dims[want.type.rank] = JOT_END;
    jot_value key = jot_random_key((int64_t)strtoll(w[3], NULL, 0));
    jot_array *got = NULL;
    jot_status status = jot_eval(value_of(function, d, key, w[4], dims), &got);
    ck_assert_msg(status == JOT_OK, "%s %s: %s", function, w[2], jot_error_message());
    ck_assert_int_eq((int)jot_array_dtype(got), (int)ir_dtype(want.type));
    ck_assert_int_eq((int64_t)jot_array_size(got), count);
    size_t size = jot_dtype_size(ir_dtype(want.type));
    // JAX's logarithms are off by dozens of units; jot follows them in normal numbers, but for f64.
    bool is_normal = !strcmp(function, "normal"),
         is_exponential = !strcmp(function, "exponential");
    bool is_exact = !is_exponential && !(is_normal && d == JOT_F64);
    for (int64_t i = 0; i < count; i++) {
        const char *x = (const char *)jot_array_data(got) + (size_t)i * size;
        if (!memcmp(x, (const char *)want.data + (size_t)i * size, size))
            continue;
        double a = number(d, jot_array_data(got), i), b = number(d, want.data, i);
        double eps = d == JOT_F64   ? 0x1p-52
                     : d == JOT_F32 ? 0x1p-23
                     : d == JOT_F16 ? 0x1p-10
                                    : 0x1p-7;
        ck_assert_msg(!is_exact && fabs(a - b) <= (is_normal ? 4 : 64) * eps * fabs(b),
                      "%s %s of seed %s: element %lld is %.17g, expected %.17g", function, w[2],
                      w[3], (long long)i, a, b);
    }
    jot_array_release(got);
}

START_TEST(numbers_are_those_of_jax)
{
    struct golden g = golden_read(module, "tests/golden/random.golden");
    ck_assert_uint_gt(g.lines.count, 40);
    for (uint32_t i = 0; i < g.lines.count; i++)
        check_line(g.lines.at[i]);
}
END_TEST

int main(void)
{
    setenv("JOT_BACKEND", "eval", 0);
    Suite *s = suite_create("random");
    TCase *t = tcase_create("random");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 120);
    tcase_add_test(t, numbers_are_those_of_jax);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
