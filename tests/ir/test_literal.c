// SPDX-License-Identifier: Apache-2.0
// Elements of arrays as text, and back.
#include "ir/literal.h"

#include "base/arena.h"
#include "base/strbuf.h"
#include "support/suite.h"

#include <check.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct arena *arena;

static void set_up(void) { arena = arena_create(); }

static void tear_down(void) { arena_release(arena); }

static const char *literal(jot_dtype dtype, const void *element)
{
    struct strbuf s = strbuf_make(arena);
    literal_print(&s, dtype, element);
    return s.text;
}

#define LITERAL(dtype, T, x) literal(dtype, &(T){x})

START_TEST(elements_as_text)
{
    ck_assert_str_eq(LITERAL(JOT_F32, float, 0.1f), "0.1");
    ck_assert_str_eq(LITERAL(JOT_F64, double, 0.1), "0.1");
    ck_assert_str_eq(LITERAL(JOT_F64, double, (double)0.1f), "0.10000000149011612");
    ck_assert_str_eq(LITERAL(JOT_F32, float, -0.0f), "-0");
    ck_assert_str_eq(LITERAL(JOT_F32, float, 1e20f), "100000000000000000000");
    ck_assert_str_eq(LITERAL(JOT_F32, float, 1e30f), "1e30");
    ck_assert_str_eq(LITERAL(JOT_F64, double, 1.25e-7), "1.25e-7");
    ck_assert_str_eq(LITERAL(JOT_F64, double, 0.00125), "0.00125");
    ck_assert_str_eq(LITERAL(JOT_F64, double, 5e-324), "5e-324");
    ck_assert_str_eq(LITERAL(JOT_F64, double, 1234.5), "1234.5");
    ck_assert_str_eq(LITERAL(JOT_F32, float, INFINITY), "inf");
    ck_assert_str_eq(LITERAL(JOT_F32, float, -INFINITY), "-inf");
    ck_assert_str_eq(LITERAL(JOT_F32, uint32_t, 0x7fc00000), "nan");
    ck_assert_str_eq(LITERAL(JOT_F32, uint32_t, 0xffc00001), "nan(0xffc00001)");
    ck_assert_str_eq(LITERAL(JOT_F16, uint16_t, 0x3c00), "1");
    ck_assert_str_eq(LITERAL(JOT_F16, uint16_t, 0x0001), "6e-8");
    ck_assert_str_eq(LITERAL(JOT_BF16, uint16_t, 0x4049), "3.14");
    ck_assert_str_eq(LITERAL(JOT_I8, int8_t, -128), "-128");
    ck_assert_str_eq(LITERAL(JOT_I64, int64_t, INT64_MIN), "-9223372036854775808");
    ck_assert_str_eq(LITERAL(JOT_U64, uint64_t, UINT64_MAX), "18446744073709551615");
    ck_assert_str_eq(LITERAL(JOT_BOOL, uint8_t, 1), "true");
    ck_assert_str_eq(literal(JOT_C64, (float[]){1.5f, -0.0f}), "(1.5, -0)");
}
END_TEST

static bool reads(jot_dtype dtype, const char *text, double *out)
{
    uint8_t element[16] = {0};
    const char *at = text;
    if (!literal_read(&at, dtype, element))
        return false;
    if (dtype == JOT_F64)
        memcpy(out, element, sizeof *out);
    return *at == 0;
}

START_TEST(elements_read)
{
    double x;
    ck_assert(reads(JOT_F64, "0x1.8p3", &x) && x == 12);
    ck_assert(reads(JOT_F64, "-.5e+1", &x) && x == -5);
    ck_assert(reads(JOT_F64, "12345678901234567890123", &x) && x == 12345678901234567890123.0);
    ck_assert(reads(JOT_I8, "127", &x) && !reads(JOT_I8, "128", &x) &&
              reads(JOT_I8, "-128", &x));
    ck_assert(!reads(JOT_I8, "-129", &x) && !reads(JOT_U8, "256", &x) &&
              !reads(JOT_U8, "-1", &x));
    ck_assert(!reads(JOT_U64, "18446744073709551616", &x) && !reads(JOT_I32, "", &x));
    ck_assert(!reads(JOT_F32, "1e39", &x) && !reads(JOT_F64, "1e999", &x));
    ck_assert(!reads(JOT_F32, "1e", &x) && !reads(JOT_F32, ".", &x) &&
              !reads(JOT_F32, "-", &x));
    ck_assert(!reads(JOT_F32, "nan(0x1)", &x) && !reads(JOT_F32, "nan(0x17fc00000)", &x));
    ck_assert(!reads(JOT_F16, "70000", &x) && !reads(JOT_F64, "1e99999999999", &x));
    ck_assert(!reads(JOT_C64, "(1, )", &x) && !reads(JOT_C64, "(1", &x));
}
END_TEST

// A decimal comma does not get in.
START_TEST(no_locale)
{
    const char *names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (!setlocale(LC_ALL, names[i]))
            continue;
        double x;
        ck_assert_str_eq(LITERAL(JOT_F64, double, 1234.5), "1234.5");
        ck_assert(reads(JOT_F64, "1234.5", &x) && x == 1234.5);
    }
    setlocale(LC_ALL, "C");
}
END_TEST

static void add_tests(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, elements_as_text);
    tcase_add_test(tests, elements_read);
    tcase_add_test(tests, no_locale);
}

int main(void) { return suite_run("literal", add_tests); }
