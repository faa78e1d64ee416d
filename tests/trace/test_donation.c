// SPDX-License-Identifier: Apache-2.0
// A program compiled for donated inputs is not taken for one that must leave them alone, although
// the function is the same.
#include "trace_support.h"

#include "base/memory.h"

static jot_value doubled(jot_value x) { return jot_mul(x, 2); }

static void call(const int *donate, jot_array **x, jot_array **y)
{
    jot_executable *e = jot_jit(jot_fn(doubled), .donate = donate);
    *x = jot_array_full(JOT_F32, 3, 100);
    must(jot_call(e, JOT_IN(*x), JOT_OUT(*y)));
    jot_executable_release(e);
    for (int i = 0; i < 100; i++)
        ck_assert_float_eq(((const float *)jot_array_data(*y))[i], 6);
}

START_TEST(test_donation_is_part_of_the_key)
{
    const int donate[] = {0, JOT_END};
    jot_array *x, *y;
    call(donate, &x, &y);
    jot_array_release(x);
    jot_array_release(y);
    call(NULL, &x, &y);
    for (int i = 0; i < 100; i++)
        ck_assert_float_eq(((const float *)jot_array_data(x))[i], 3);
    jot_array_release(x);
    jot_array_release(y);
}
END_TEST

static void counts(const jot_value *in, jot_value *out, void *ctx)
{
    (void)ctx;
    out[0] = jot_convert(jot_mul(in[0], 2), JOT_I32);
    out[1] = jot_sum(in[1]);
}

// The donated array becomes an i32 by a call that succeeds, and by no other.
START_TEST(test_failure_leaves_the_type)
{
    const int donate[] = {0, JOT_END};
    jot_executable *e = jot_jit(jot_function_make(counts, 2, 2, NULL), .donate = donate);
    jot_array *x = jot_array_full(JOT_F32, 3, 100), *w = jot_array_full(JOT_F32, 1, 9), *y[2];
    must(jot_call(e, JOT_IN(x, w), JOT_OUT(y)));
    ck_assert_int_eq(jot_array_dtype(x), JOT_I32);
    jot_arrays_release(2, y);
    jot_array_release(x);
    jot_status s = JOT_ERR_MEMORY;
    for (uint64_t n = 1; n < 100 && s != JOT_OK; n++) {
        x = jot_array_full(JOT_F32, 3, 100);
        memory_fail_after(n);
        s = jot_call(e, JOT_IN(x, w), JOT_OUT(y));
        memory_fail_after(0);
        ck_assert_int_eq(jot_array_dtype(x), s == JOT_OK ? JOT_I32 : JOT_F32);
        if (s == JOT_OK)
            jot_arrays_release(2, y);
        jot_array_release(x);
    }
    ck_assert_int_eq(s, JOT_OK);
    jot_array_release(w);
    jot_executable_release(e);
}
END_TEST

// As many bytes and half as many elements, each twice as long: a store reaches what other points
// have yet to read.
static jot_value first_half(jot_value x)
{
    return jot_convert(jot_slice(x, 0, 0, 1000), JOT_F64);
}

START_TEST(test_longer_elements)
{
    const int donate[] = {0, JOT_END};
    jot_executable *e = jot_jit(jot_fn(first_half), .donate = donate);
    float start[2000];
    for (int i = 0; i < 2000; i++)
        start[i] = (float)i + 0.5f;
    jot_array *x = jot_array_from(start, 2000), *y;
    must(jot_call(e, JOT_IN(x), JOT_OUT(y)));
    const double *at = jot_array_data(y);
    for (int i = 0; i < 1000; i++)
        ck_assert_msg(at[i] == i + 0.5, "element %d is %g", i, at[i]);
    jot_array_release(x);
    jot_array_release(y);
    jot_executable_release(e);
}
END_TEST

// A bias that a long sum updates, which the elements beside the sum have yet to read.
static void updated(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value x = jot_mul(in[1], in[0]);
    (void)ctx;
    out[0] = jot_sub(in[0], jot_mul(0.5, jot_sum(x, 0)));
    out[1] = jot_mul(x, jot_add(in[1], 1));
}

START_TEST(test_sums_end_last)
{
    const int donate[] = {0, JOT_END};
    jot_executable *e = jot_jit(jot_function_make(updated, 2, 2, NULL), .donate = donate);
    jot_array *bias = jot_array_full(JOT_F32, 2, 512), *out[2],
              *x = jot_array_full(JOT_F32, 3, 1024, 512);
    must(jot_call(e, JOT_IN(bias, x), 2, out));
    const float *sum = jot_array_data(out[0]), *each = jot_array_data(out[1]);
    for (int i = 0; i < 512; i++)
        ck_assert_float_eq(sum[i], 2 - 0.5f * 1024 * 6);
    for (int i = 0; i < 1024 * 512; i++)
        ck_assert_float_eq(each[i], 24);
    jot_arrays_release(2, out);
    jot_array_release(bias);
    jot_array_release(x);
    jot_executable_release(e);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_test(t, test_sums_end_last);
    tcase_add_test(t, test_longer_elements);
    tcase_add_test(t, test_donation_is_part_of_the_key);
    tcase_add_test(t, test_failure_leaves_the_type);
}

int main(void)
{
    setenv("JOT_BACKEND", "", 1);
    char directory[] = P_tmpdir "/jot-donation-XXXXXX";
    if (!mkdtemp(directory))
        return 1;
    setenv("JOT_CACHE_DIR", directory, 1);
    int failed = run_suite("donation", add_tests);
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", directory);
    return system(command) != 0 || failed;
}
