// SPDX-License-Identifier: Apache-2.0
// Categories, orders and choices: those of JAX for the same key, what must hold of them, maps over
// keys against loops, and what is said of bad input.
#include "trace_support.h"

static jot_scope *scope;
static jot_value key;

static void setup(void)
{
    scope = jot_scope_open();
    key = jot_random_key(7);
}
static void teardown(void) { jot_scope_close(scope); }

static jot_value logits(void)
{
    return jot_stack(0, jot_stack(0, jot_full(JOT_F32, 0), 1, -1, 2),
                     jot_stack(0, jot_full(JOT_F32, 3), 0, 1, -INFINITY), jot_ones(JOT_F32, 4));
}

static jot_value weights(void)
{
    return jot_stack(0, jot_full(JOT_F32, 0.1), 0, 0.4, 0.3, 0.2);
}

static jot_value rows(void) { return jot_reshape(jot_arange(JOT_F32, 12), 4, 3); }

// ---------------------------------------------------------------------------------------
// Values of JAX 0.10

START_TEST(test_categories_of_jax)
{
    jot_value l = logits();
    CHECK_EXACT(jot_random_categorical(key, l, -1, true), 1, 0, 3);
    CHECK_EXACT(jot_random_categorical(key, l, 0, true), 1, 0, 1, 2);
    CHECK_EXACT(jot_random_categorical(key, l, 1, true, 4, 3), 1, 0, 3, 3, 0, 0, 3, 2, 3, 3, 0,
                1);
    CHECK_EXACT(jot_random_categorical(key, l, 1, false, 3, 3), 1, 0, 3, 3, 2, 2, 0, 1, 1);
    CHECK_EXACT(jot_random_categorical(key, l, 0, false, 2, 4), 1, 0, 1, 2, 0, 1, 2, 0);
    CHECK_TYPE(jot_random_categorical(key, l, 0, true, 5, 4), "i32[5,4]");
    CHECK_TYPE(jot_random_categorical(key, l, 0, true, 0, 4), "i32[0,4]");
}
END_TEST

START_TEST(test_orders_of_jax)
{
    jot_value x = rows(), far = jot_random_permutation(key, 5000, 0, false);
    CHECK_EXACT(jot_random_permutation(key, 10, 0, false), 9, 4, 2, 3, 5, 0, 7, 6, 1, 8);
    CHECK_EXACT(jot_random_permutation(key, x, 0, false), 6, 7, 8, 9, 10, 11, 0, 1, 2, 3, 4, 5);
    CHECK_EXACT(jot_random_permutation(key, x, 1, false), 2, 0, 1, 5, 3, 4, 8, 6, 7, 11, 9, 10);
    CHECK_EXACT(jot_random_permutation(key, x, -1, true), 2, 0, 1, 4, 3, 5, 7, 6, 8, 10, 9, 11);
    CHECK_EXACT(jot_slice(far, 0, 0, 6), 801, 2388, 2559, 1874, 528, 2226);
    CHECK_EXACT(jot_random_permutation(key, 1, 0, false), 0);
    CHECK_TYPE(jot_random_permutation(key, 0, 0, false), "i32[0]");
    CHECK_TYPE(jot_random_permutation(key, jot_zeros(JOT_F64, 0, 3), 0, true), "f64[0,3]");
}
END_TEST

START_TEST(test_choices_of_jax)
{
    jot_value x = rows(), p = weights(), four = jot_add(jot_arange(JOT_F32, 4), 1);
    CHECK_EXACT(jot_random_choice(key, 10, 0, true, 2, 3), 9, 2, 0, 7, 2, 6);
    CHECK_EXACT(jot_random_choice(key, x, 1, true, 2), 1, 2, 4, 5, 7, 8, 10, 11);
    CHECK_EXACT(jot_random_choice(key, 10, 0, false, 2, 3), 9, 4, 2, 3, 5, 0);
    CHECK_EXACT(jot_random_choice(key, x, 0, false, 3), 6, 7, 8, 9, 10, 11, 0, 1, 2);
    CHECK_EXACT(jot_random_choice(key, x, 1, false, 1, 2), 2, 0, 5, 3, 8, 6, 11, 9);
    CHECK_TYPE(jot_random_choice(key, x, 1, false, 1, 2), "f32[4,1,2]");
    CHECK_EXACT(jot_random_choice_weighted(key, 5, p, 0, true, 8), 2, 0, 3, 3, 2, 2, 3, 3);
    CHECK_EXACT(jot_random_choice_weighted(key, 5, p, 0, false, 4), 4, 3, 2, 0);
    CHECK_EXACT(jot_random_choice_weighted(key, 2, jot_arange(JOT_I32, 2), 0, true, 3), 1, 1,
                1);
    CHECK_EXACT(jot_random_choice_weighted(key, x, four, 0, true, 2), 6, 7, 8, 0, 1, 2);
    CHECK_TYPE(jot_random_choice(key, 0, 0, true, 0), "i32[0]");
    CHECK_TYPE(jot_random_choice_weighted(key, 5, p, 0, false, 0), "i32[0]");
}
END_TEST

// ---------------------------------------------------------------------------------------
// What holds of every draw

// What is drawn without replacement is all different; a probability of 0 is never drawn.
START_TEST(test_what_holds)
{
    jot_value order = jot_random_permutation(key, 3000, 0, false);
    CHECK_EXACT(jot_any(jot_not_equal(jot_sort(order), jot_arange(JOT_I32, 3000))), 0);
    jot_value some = jot_random_choice(key, 3000, 0, false, 40, 75);
    CHECK_EXACT(jot_sum(jot_sub(jot_sort(jot_reshape(some, 3000)), jot_arange(JOT_I32, 3000))),
                0);
    jot_value many = jot_random_choice_weighted(key, 5, weights(), 0, true, 20000);
    CHECK_EXACT(jot_any(jot_equal(many, 1)), 0);
    jot_value l = jot_log(weights()), drawn = jot_random_categorical(key, l, 0, true, 20000);
    CHECK_EXACT(jot_any(jot_equal(drawn, 1)), 0);
    // Four standard deviations of a proportion are at most 2 / sqrt(20000).
    CHECK(jot_mean(jot_equal(many, 2)), 0.0141, 0.4);
    CHECK(jot_mean(jot_equal(drawn, 2)), 0.0141, 0.4);
    CHECK(jot_mean(jot_equal(drawn, 4)), 0.0141, 0.2);
}
END_TEST

static jot_value category(jot_value k) { return jot_random_categorical(k, logits(), 1, true); }
static jot_value categories(jot_value k)
{
    return jot_random_categorical(k, logits(), 1, false, 2, 3);
}
static jot_value order(jot_value k) { return jot_random_permutation(k, rows(), 1, true); }
static jot_value slices(jot_value k) { return jot_random_choice(k, rows(), 0, true, 5); }
static jot_value different(jot_value k) { return jot_random_choice(k, rows(), 1, false, 2); }
static jot_value weighted(jot_value k)
{
    return jot_random_choice_weighted(k, 5, weights(), 0, true, 6);
}
static jot_value weighted_different(jot_value k)
{
    return jot_random_choice_weighted(k, 5, weights(), 0, false, 3);
}

START_TEST(test_maps_over_keys)
{
    jot_value (*draws[])(jot_value) = {category, categories,        order, slices, different,
                                       weighted, weighted_different};
    jot_value keys = jot_random_split(key, 3), all;
    for (size_t i = 0; i < sizeof draws / sizeof *draws; i++) {
        JOT_VMAP ((keys), (all)) {
            all = draws[i](keys);
        }
        jot_value loop = jot_stack(0, draws[i](jot_take(keys, 0)), draws[i](jot_take(keys, 1)),
                                   draws[i](jot_take(keys, 2)));
        ck_assert_msg(jot_item(jot_any(jot_not_equal(all, loop))) == 0,
                      "draw %d: lanes are not the loop", (int)i);
    }
}
END_TEST

// ---------------------------------------------------------------------------------------
// Bad input

// In a scope of its own each: the first error is what every call of a scope gives.
#define CHECK_ERROR(value, status, message)                                                    \
    do {                                                                                       \
        jot_scope *scope_ = jot_scope_open();                                                  \
        jot_array *array_ = NULL;                                                              \
        key = jot_random_key(7);                                                               \
        ck_assert_int_eq(jot_eval((value), &array_), (status));                                \
        const char *have_ = strstr(jot_error_message(), "): ");                                \
        ck_assert_msg(have_ && !strcmp(have_ + 3, (message)), "'%s' is not '%s'",              \
                      jot_error_message(), (message));                                         \
        jot_scope_close(scope_);                                                               \
    } while (0)
#define ARGUMENT JOT_ERR_ARGUMENT
#define SHAPE JOT_ERR_SHAPE

START_TEST(test_errors)
{
    CHECK_ERROR(jot_random_categorical(key, logits(), 1, false, 5, 3), ARGUMENT,
                "5 draws of 4 categories without replacement");
    CHECK_ERROR(jot_random_categorical(key, logits(), 1, true, 3, 5), SHAPE,
                "i32[3,5] does not end with the sizes of f32[3,4] without axis 1");
    CHECK_ERROR(jot_random_categorical(key, jot_arange(JOT_I32, 3), 0, true), JOT_ERR_DTYPE,
                "the logits are i32[3], not floats");
    CHECK_ERROR(jot_random_categorical(key, logits(), 2, true), ARGUMENT,
                "axis 2 of f32[3,4]: axes are -2 to 1");
    CHECK_ERROR(jot_random_categorical(jot_random_split(key, 3), logits(), 1, true), ARGUMENT,
                "the key is u32[3,2], not u32[2]: take one of the keys, or map over them with "
                "jot_vmap");
    CHECK_ERROR(jot_random_permutation(7, rows(), 0, false), ARGUMENT,
                "the key is i32[], not u32[2]: make one with jot_random_key");
    CHECK_ERROR(jot_random_permutation(key, -3, 0, false), ARGUMENT,
                "x is i32[], neither an array with axes nor a number of C from 0 on");
    CHECK_ERROR(jot_random_permutation(key, jot_zeros(JOT_I32), 0, false), ARGUMENT,
                "x is i32[], neither an array with axes nor a number of C from 0 on");
    CHECK_ERROR(jot_random_choice(jot_zeros(JOT_I32, 2), 9, 0, true, 2), ARGUMENT,
                "the key is i32[2], not u32[2]: make one with jot_random_key");
    CHECK_ERROR(jot_random_choice(key, rows(), 0, false, 2, 3), ARGUMENT,
                "6 draws of 4 elements without replacement");
    CHECK_ERROR(jot_random_choice(key, 0, 0, true, 2), ARGUMENT,
                "there is nothing to choose from");
    CHECK_ERROR(jot_random_choice_weighted(key, 4, weights(), 0, true, 2), SHAPE,
                "p is f32[5], not one axis with a number for each of 4 elements");
    CHECK_ERROR(jot_random_choice_weighted(key, rows(), 0.5, 1, true, 2), SHAPE,
                "p is f32[], not one axis with a number for each of 3 elements");
    CHECK_ERROR(jot_random_choice_weighted(key, 4, jot_ones(JOT_C64, 4), 0, true, 2),
                JOT_ERR_DTYPE, "p is c64[4], not real");
    CHECK_ERROR(jot_random_choice_weighted(key, 5, weights(), 0, false, 6), ARGUMENT,
                "6 draws of 5 elements without replacement");
}
END_TEST

static void add(TCase *t)
{
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, test_categories_of_jax);
    tcase_add_test(t, test_orders_of_jax);
    tcase_add_test(t, test_choices_of_jax);
    tcase_add_test(t, test_what_holds);
    tcase_add_test(t, test_maps_over_keys);
    tcase_add_test(t, test_errors);
}

int main(void) { return run_suite("trace/random_choice", add); }
