// SPDX-License-Identifier: Apache-2.0
// A program compiled for donated inputs is not taken for one that must leave them alone, although
// the function is the same.
#include "trace_support.h"

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

static void add_tests(TCase *t) { tcase_add_test(t, test_donation_is_part_of_the_key); }

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
