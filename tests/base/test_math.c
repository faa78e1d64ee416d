// SPDX-License-Identifier: Apache-2.0
// Accuracy and special values of the elementary functions; sweep_math.c measures them at length.
// JOT_TEST_SEED=n sets the seed.
#include "base/math_reference.h"

#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t seed;

enum {
    FUNCTIONS = 0
#define MATH(name, arity, range) +1
#include "base/math/math.def"
#undef MATH
};

static const struct math_row *row_of(const struct math_function *f)
{
    const struct math_row *row = math_row_find(f->name);
    ck_assert_msg(row != NULL, "%s has no row in tests/base/math_reference.c", f->name);
    return row;
}

static void check_accuracy(const struct math_function *f, int width, int count)
{
    const struct math_row *row = row_of(f);
    struct math_worst worst = {0};
    for (int i = 0; i < count; i++) {
        double x, y, error;
        if (width == 32) {
            x = math_random_float(&seed, row);
            y = math_random_float(&seed, row);
            error = math_measure_f32(row, f, (float)x, (float)y);
        } else {
            x = math_random_double(&seed, row);
            y = math_random_double(&seed, row);
            error = math_measure_f64(row, f, x, y);
        }
        math_note(&worst, error, x, y);
    }
    ck_assert_msg(worst.error <= row->bound, "%s f%d is off by %g ULP at %a, %a; allowed is %g",
                  row->name, width, worst.error, worst.x, worst.y, row->bound);
}

START_TEST(accuracy_f32) { check_accuracy(&math_functions[_i], 32, 400000); }
END_TEST

START_TEST(accuracy_f64) { check_accuracy(&math_functions[_i], 64, 100000); }
END_TEST

// Doubles uncommonly near to multiples of pi/2, and the ends of the straight-line range.
START_TEST(hard_reductions)
{
    static const double hard[] = {0x1.6ac5b262ca1ffp+849,  0x1.6ac5b262ca1ffp+850,
                                  0x1.921fb54442d18p+0,    0x1.921fb54442d18p+1,
                                  0x1.921fb54442d18p+29,   0x1.921fb54442d19p+30,
                                  0x1.fffffffffffffp+1023, 0x1p30,
                                  0x1.0000000000001p30,    0x1p18,
                                  0x1.000002p18,           0x1.921fb6p+17,
                                  0x1.921fb4p+18};
    for (size_t i = 0; i < sizeof hard / sizeof hard[0]; i++) {
        double x = i % 2 == 0 ? hard[i] : -hard[i];
        ck_assert_double_le(math_error_f64(math_sin_f64(x), sinq(x)), 2);
        ck_assert_double_le(math_error_f64(math_cos_f64(x), cosq(x)), 2);
        ck_assert_double_le(math_error_f64(math_tan_f64(x), tanq(x)), 4);
        float y = (float)x;
        ck_assert_double_le(math_error_f32(math_sin_f32(y), sin(y)), 2);
        ck_assert_double_le(math_error_f32(math_cos_f32(y), cos(y)), 2);
        ck_assert_double_le(math_error_f32(math_tan_f32(y), tan(y)), 4);
    }
}
END_TEST

START_TEST(every_row_has_a_function)
{
    for (const struct math_row *row = math_rows; row->name != NULL; row++) {
        ck_assert_msg(math_find(row->name) != NULL, "there is no function %s", row->name);
        ck_assert_msg(math_row_find(row->name) == row, "%s has two rows", row->name);
    }
    for (const struct math_function *f = math_functions; f->name != NULL; f++)
        ck_assert_ptr_eq(math_find(f->name), f);
    ck_assert_ptr_null(math_find("exp3"));
}
END_TEST

// -- Exact results ------------------------------------------------------------------------

static bool is_same(double a, double b)
{
    return isnan(a) ? isnan(b) : a == b && signbit(a) == signbit(b);
}

static void check_exactly(const char *name, double x, double y, double want)
{
    const struct math_function *f = math_find(name);
    ck_assert_msg(f != NULL, "there is no function %s", name);
    bool unary = f->arity == 1;
    float got32 = unary ? f->f32.unary((float)x) : f->f32.binary((float)x, (float)y);
    double got64 = unary ? f->f64.unary(x) : f->f64.binary(x, y);
    ck_assert_msg(is_same(got32, (float)want), "%s f32 of %a, %a is %a instead of %a", name, x,
                  y, got32, (float)want);
    ck_assert_msg(is_same(got64, want), "%s f64 of %a, %a is %a instead of %a", name, x, y,
                  got64, want);
}

#define INF INFINITY
#define PI 0x1.921fb54442d18p+1

struct exact {
    const char *name;
    double x, y, want;
};

static const struct exact exact[] = {
#define EXACT(name, x, y, want) {name, x, y, want},
#include "base/math_values.def"
#undef EXACT
};

START_TEST(special_values)
{
    for (size_t i = 0; i < sizeof exact / sizeof exact[0]; i++)
        check_exactly(exact[i].name, exact[i].x, exact[i].y, exact[i].want);
    for (const struct math_function *f = math_functions; f->name != NULL; f++) {
        if (f->arity == 1)
            check_exactly(f->name, NAN, 0, NAN);
    }
}
END_TEST

// Powers of two and ten; the smallest results are denormal.
START_TEST(exact_powers)
{
    for (int k = -1074; k < 1024; k++) {
        ck_assert_double_eq(math_exp2_f64(k), ldexp(1, k));
        ck_assert_double_eq(math_log2_f64(ldexp(1, k)), k);
        ck_assert_double_eq(math_pow_f64(2, k), ldexp(1, k));
        if (k >= -149 && k < 128) {
            ck_assert_float_eq(math_exp2_f32((float)k), ldexpf(1, k));
            ck_assert_float_eq(math_log2_f32(ldexpf(1, k)), (float)k);
            ck_assert_float_eq(math_pow_f32(2, (float)k), ldexpf(1, k));
        }
    }
    double power = 1;
    for (int k = 0; k <= 22; k++, power *= 10) {
        ck_assert_double_eq(math_log10_f64(power), k);
        if (k <= 10)
            ck_assert_float_eq(math_log10_f32((float)power), (float)k);
    }
}
END_TEST

// -- Another instance of the templates: short vectors -------------------------------------

#define MATH_BITS 32
#include "base/math_vectors.inc"
#define MATH_BITS 64
#include "base/math_vectors.inc"

struct vector_function {
    const char *name;
    void (*f32)(const float *x, const float *y, float *result, bool *outside);
    void (*f64)(const double *x, const double *y, double *result, bool *outside);
};

static const struct vector_function vector_functions[] = {
#define MATH(name, arity, range) {#name, vector_##name##_32, vector_##name##_64},
#include "base/math/math.def"
#undef MATH
};

START_TEST(lanes_have_the_bits_of_scalars)
{
    const struct math_function *f = &math_functions[_i];
    const struct math_row *row = row_of(f);
    const struct vector_function *v = vector_functions;
    while (strcmp(v->name, row->name) != 0)
        v++;
    int outside_count = 0;
    for (int i = 0; i < 20000; i++) {
        float x32[4], y32[4], result32[4];
        double x64[2], y64[2], result64[2];
        bool outside[4];
        for (int k = 0; k < 4; k++) {
            x32[k] = math_random_float(&seed, row);
            y32[k] = math_random_float(&seed, row);
            x64[k % 2] = math_random_double(&seed, row);
            y64[k % 2] = math_random_double(&seed, row);
        }
        v->f32(x32, y32, result32, outside);
        for (int k = 0; k < 4; k++) {
            outside_count += outside[k];
            float want = f->arity == 1 ? f->f32.unary(x32[k]) : f->f32.binary(x32[k], y32[k]);
            ck_assert_msg(outside[k] || is_same(result32[k], want),
                          "%s f32 of %a, %a is %a in a vector, but %a", row->name, x32[k],
                          y32[k], result32[k], want);
        }
        v->f64(x64, y64, result64, outside);
        for (int k = 0; k < 2; k++) {
            outside_count += outside[k];
            double want = f->arity == 1 ? f->f64.unary(x64[k]) : f->f64.binary(x64[k], y64[k]);
            ck_assert_msg(outside[k] || is_same(result64[k], want),
                          "%s f64 of %a, %a is %a in a vector, but %a", row->name, x64[k],
                          y64[k], result64[k], want);
        }
    }
    ck_assert_msg((outside_count > 0) == f->ranged, "%s: %d lanes are out of range", row->name,
                  outside_count);
}
END_TEST

START_TEST(sincos_is_sin_and_cos)
{
    for (int i = 0; i < 100000; i++) {
        float x = (float)math_random_uniform(&seed, -1e5, 1e5), sine[4], cosine[4];
        double y = math_random_uniform(&seed, -1e8, 1e8), sine64[2], cosine64[2];
        vector_sincos_32(x, sine, cosine);
        vector_sincos_64(y, sine64, cosine64);
        ck_assert(is_same(sine[0], math_sin_f32(x)) && is_same(cosine[0], math_cos_f32(x)));
        ck_assert(is_same(sine64[0], math_sin_f64(y)) && is_same(cosine64[0], math_cos_f64(y)));
    }
}
END_TEST

static void start_random_numbers(void)
{
    const char *text = getenv("JOT_TEST_SEED");
    seed = text == NULL ? 20 : strtoull(text, NULL, 0);
}

int main(void)
{
    start_random_numbers();
    printf("JOT_TEST_SEED=%" PRIu64 "\n", seed);
    fflush(stdout);

    Suite *suite = suite_create("math");
    TCase *accuracy = tcase_create("accuracy");
    tcase_set_timeout(accuracy, 60);
    tcase_add_checked_fixture(accuracy, start_random_numbers, NULL);
    tcase_add_loop_test(accuracy, accuracy_f32, 0, FUNCTIONS);
    tcase_add_loop_test(accuracy, accuracy_f64, 0, FUNCTIONS);
    tcase_add_test(accuracy, hard_reductions);
    suite_add_tcase(suite, accuracy);

    TCase *values = tcase_create("values");
    tcase_set_timeout(values, 60);
    tcase_add_checked_fixture(values, start_random_numbers, NULL);
    tcase_add_test(values, every_row_has_a_function);
    tcase_add_test(values, special_values);
    tcase_add_test(values, exact_powers);
    tcase_add_loop_test(values, lanes_have_the_bits_of_scalars, 0, FUNCTIONS);
    tcase_add_test(values, sincos_is_sin_and_cos);
    suite_add_tcase(suite, values);

    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failures = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
