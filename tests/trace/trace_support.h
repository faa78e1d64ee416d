// SPDX-License-Identifier: Apache-2.0
// What the tests of the API share.
#ifndef TRACE_SUPPORT_H
#define TRACE_SUPPORT_H

#include "support/sample.h"

#include <check.h>
#include <jot/jot.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The text of an expression is long behind macros, so no assertion gets it.
#define must(expression)                                                                       \
    do {                                                                                       \
        const jot_status status_ = (expression);                                               \
        ck_assert_msg(status_ == JOT_OK, "%s", jot_error_message());                           \
    } while (0)

// Calls f on arrays and compares the numbers of its first result.
static inline void check_numbers(const jot_array *a, int n, const double *want,
                                 double tolerance)
{
    ck_assert_msg(a != NULL, "%s", jot_error_message());
    ck_assert_int_eq((int)jot_array_size(a), n);
    for (int i = 0; i < n; i++) {
        const void *d = jot_array_data(a);
        double x;
        switch (jot_array_dtype(a)) {
        case JOT_BOOL:
            x = ((const unsigned char *)d)[i];
            break;
        case JOT_I32:
            x = ((const int32_t *)d)[i];
            break;
        case JOT_U32:
            x = ((const uint32_t *)d)[i];
            break;
        case JOT_I64:
            x = (double)((const int64_t *)d)[i];
            break;
        case JOT_U64:
            x = (double)((const uint64_t *)d)[i];
            break;
        case JOT_F32:
            x = ((const float *)d)[i];
            break;
        case JOT_F64:
            x = ((const double *)d)[i];
            break;
        default:
            ck_abort_msg("dtype %s", jot_dtype_name(jot_array_dtype(a)));
            return;
        }
        bool same = isnan(want[i]) ? isnan(x) : x == want[i];
        ck_assert_msg(same || fabs(x - want[i]) <= tolerance * fmax(1, fabs(want[i])),
                      "element %d is %.17g, not %.17g", i, x, want[i]);
    }
}

// Evaluates a value of the open scope.
#define CHECK(value, tolerance, ...)                                                           \
    do {                                                                                       \
        jot_array *array_ = NULL;                                                              \
        const jot_value value_ = (value);                                                      \
        const double want_[] = {__VA_ARGS__};                                                  \
        must(jot_eval(value_, &array_));                                                       \
        check_numbers(array_, (int)(sizeof want_ / sizeof *want_), want_, (tolerance));        \
        jot_array_release(array_);                                                             \
    } while (0)
#define CHECK_EXACT(value, ...) CHECK(value, 0, __VA_ARGS__)

// That a value of the open scope is an error with the whole message behind the call.
static inline void check_error(jot_value v, jot_status want, const char *message)
{
    jot_array *a = NULL;
    ck_assert_int_eq(jot_eval(v, &a), want);
    const char *have = strstr(jot_error_message(), "): ");
    ck_assert_msg(have && !strcmp(have + 3, message), "'%s' is not '%s'", jot_error_message(),
                  message);
}

// "f32[2,3]" of a value, by its description.
#define CHECK_TYPE(value, text)                                                                \
    do {                                                                                       \
        char want_[64];                                                                        \
        snprintf(want_, sizeof want_, ": %s", (text));                                         \
        const char *have_ = jot_describe(value);                                               \
        ck_assert_msg(strstr(have_, want_) != NULL, "%s is not %s", have_, (text));            \
    } while (0)

// Compares the message of the last failure.
#define CHECK_MESSAGE(text) ck_assert_str_eq(jot_error_message(), (text))

static inline int run_suite(const char *name, void (*add)(TCase *))
{
    Suite *s = suite_create(name);
    TCase *t = tcase_create(name);
    tcase_set_timeout(t, 60);
    add(t);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}

// By machine code and by the evaluator: of a sample by one of them, and where the machine is emulated by its code.
static inline int run_by_both(const char *name, void (*add)(TCase *))
{
    char by_evaluator[64];
    int failed = 0, which = (int)((sample_turn() / 16 + strlen(name)) % 2);
    bool is_emulated = getenv("JOT_TEST_EMULATED"), is_sample = sample_few() > 1;
    snprintf(by_evaluator, sizeof by_evaluator, "%s by the evaluator", name);
    for (int evaluates = 0; evaluates < 2; evaluates++) {
        if (is_emulated ? evaluates : is_sample && evaluates != which)
            continue;
        setenv("JOT_BACKEND", evaluates ? "eval" : "", 1);
        failed |= run_suite(evaluates ? by_evaluator : name, add);
    }
    return failed;
}

#endif
