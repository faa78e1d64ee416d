// SPDX-License-Identifier: Apache-2.0
// Random bits and numbers against those that jax.random documents and prints.
#include "trace_support.h"

static jot_scope *scope;

static void setup(void) { scope = jot_scope_open(); }
static void teardown(void) { jot_scope_close(scope); }

START_TEST(test_keys)
{
    CHECK_EXACT(jot_random_key(0), 0, 0);
    CHECK_EXACT(jot_random_key((INT64_C(3) << 32) + 5), 3, 5);
    CHECK_EXACT(jot_random_key(-1), 4294967295.0, 4294967295.0);
    jot_value keys = jot_random_split(jot_random_key(0), 2);
    CHECK_EXACT(keys, 1797259609, 2579123966, 928981903, 3453687069);
    CHECK_EXACT(jot_random_split(jot_random_key(42), 2), 1832780943, 270669613, 64467757,
                2916123636);
    CHECK_EXACT(jot_random_fold_in(jot_random_key(42), 1), 64467757, 2916123636);
    CHECK_EXACT(jot_random_fold_in(jot_random_key(0), jot_full(JOT_U32, 0)), 1797259609,
                2579123966);
}
END_TEST

START_TEST(test_bits)
{
    jot_value key = jot_random_key(0);
    CHECK_EXACT(jot_random_bits(key, JOT_U32, 3), 4070199207, 4202968722, 1427181096);
    CHECK_EXACT(jot_convert(jot_random_bits(key, JOT_U8, 3), JOT_U32), 4070199207u & 255,
                4202968722u & 255, 1427181096u & 255);
    // The shape does not matter to the bits, only the number of the element.
    CHECK_EXACT(jot_random_bits(key, JOT_U32, 3, 1), 4070199207, 4202968722, 1427181096);
    // 64 bits are the two words whose xor the 32 bits are.
    jot_value wide = jot_random_bits(key, JOT_U64, 3);
    jot_value folded = jot_bitwise_xor(jot_convert(jot_right_shift(wide, 32), JOT_U32),
                                       jot_convert(wide, JOT_U32));
    CHECK_EXACT(folded, 4070199207, 4202968722, 1427181096);
}
END_TEST

START_TEST(test_uniform)
{
    jot_value key = jot_random_key(0);
    CHECK(jot_random_uniform(key, JOT_F32, 3), 5e-8, 0.947667f, 0.9785799f, 0.33229148f);
    CHECK_EXACT(jot_random_uniform(key, JOT_F64, 1), 0.41845711171638644);
    CHECK(jot_random_uniform_in(key, JOT_F32, -2, 2.0, 2), 1e-6, 4 * 0.947667 - 2,
          4 * 0.9785799 - 2);
    jot_value x = jot_random_uniform(jot_random_key(7), JOT_F32, 2000);
    CHECK_EXACT(jot_all(jot_logical_and(jot_greater_equal(x, 0), jot_less(x, 1))), 1);
    CHECK(jot_mean(x), 0.02, 0.5);
    CHECK(jot_mean(jot_random_bernoulli(key, 0.25, 2000)), 0.03, 0.25);
    CHECK(jot_mean(jot_random_exponential(key, JOT_F64, 2000)), 0.06, 1);
    CHECK_TYPE(jot_random_uniform(key, JOT_BF16, 3), "bf16[3]");
}
END_TEST

START_TEST(test_normal)
{
    jot_value x = jot_random_normal(jot_random_key(0), JOT_F32, 16);
    CHECK(x, 2e-7, 1.6226422, 2.0252647, -0.43359444, -0.07861735, 0.1760909, -0.97208923,
          -0.49529874, 0.4943786, 0.6643493, -0.9501635, 2.1795304, -1.9551506, 0.35857072,
          0.15779513, 1.2770847, 1.5104648);
    jot_value y = jot_random_normal(jot_random_key(1), JOT_F64, 2000);
    CHECK(jot_mean(y), 0.06, 0);
    CHECK(jot_var(y), 0.08, 1);
}
END_TEST

START_TEST(test_wrong_keys)
{
    jot_value bad = jot_random_uniform(jot_full(JOT_F32, 0, 2), JOT_F32, 3);
    ck_assert(jot_value_failed(bad));
    ck_assert(isnan(jot_item(bad)));
    ck_assert(strstr(jot_error_message(), "the key is f32[2], not u32[2]") != NULL);
    ck_assert(jot_value_failed(jot_random_normal(jot_random_key(0), JOT_I32, 3)));
    ck_assert(jot_value_failed(jot_random_key(0.5)));
}
END_TEST

static jot_value row(jot_value key) { return jot_random_normal(key, JOT_F32, 3); }

// A map over keys gives what each key gives.
START_TEST(test_map_over_keys)
{
    jot_value keys = jot_random_split(jot_random_key(3), 2), rows, difference;
    JOT_VMAP ((keys), (rows)) {
        rows = row(keys);
    }
    difference = jot_sub(rows, jot_stack(0, row(jot_take(keys, 0)), row(jot_take(keys, 1))));
    CHECK_EXACT(difference, 0, 0, 0, 0, 0, 0);
}
END_TEST

static void add(TCase *t)
{
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, test_keys);
    tcase_add_test(t, test_bits);
    tcase_add_test(t, test_uniform);
    tcase_add_test(t, test_normal);
    tcase_add_test(t, test_wrong_keys);
    tcase_add_test(t, test_map_over_keys);
}

int main(void) { return run_suite("trace/random", add); }
