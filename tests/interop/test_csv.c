// SPDX-License-Identifier: Apache-2.0
// Numbers as text: read, written and read again to the same bits, refused with line and column;
// any bytes.
#include "base/memory.h"
#include "interop/folder.h"
#include "interop/fuzz.h"
#include "jot/jot.h"
#include "support/suite.h"

#include <check.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *file_of(const char *text)
{
    folder_spill(folder_path("x.csv"), text, strlen(text));
    return folder_path("x.csv");
}

static void check_matrix(jot_array *a, int64_t rows, int64_t columns, const double *want)
{
    ck_assert_msg(a != NULL, "%s", jot_error_message());
    ck_assert(jot_array_rank(a) == 2 && jot_array_dim(a, 0) == rows &&
              jot_array_dim(a, 1) == columns);
    const double *have = jot_array_data(a);
    for (int64_t i = 0; i < rows * columns; i++)
        ck_assert_msg(have[i] == want[i] || (isnan(have[i]) && isnan(want[i])),
                      "%d: %g, not %g", (int)i, have[i], want[i]);
    jot_array_release(a);
}

START_TEST(reads_numbers)
{
    const double six[] = {1, -2.5, 3e10, 0.1, INFINITY, -INFINITY};
    check_matrix(jot_array_load_csv(file_of("1,-2.5,3e10\n.1,inf,-Infinity\n")), 2, 3, six);
    check_matrix(
        jot_array_load_csv(file_of("\xef\xbb\xbf 1 , -2.5,+3e+10\r\n\r\n\"0.1\",INF , -inf")),
        2, 3, six);
    check_matrix(jot_array_load_csv(file_of("1;-2.5;3e10\n.1;inf;-inf\n"), .delimiter = ';'), 2,
                 3, six);
    check_matrix(jot_array_load_csv(file_of("1 -2.5\t 3e10 \n  .1 inf -inf"), .delimiter = ' '),
                 2, 3, six);
    check_matrix(jot_array_load_csv(file_of("1\t-2.5\t3e10\n.1\tinf\t-inf"), .delimiter = '\t'),
                 2, 3, six);
    check_matrix(jot_array_load_csv(file_of("words, words\n# no\nx,y,\"z, z\"\n1,-2.5,3e10\n"
                                            " # no\n.1,inf,-inf\n"),
                                    .skip = 1, .comment = '#', .has_header = true),
                 2, 3, six);
    const double missing[] = {NAN, 1, NAN, NAN, NAN, NAN};
    check_matrix(jot_array_load_csv(file_of(",1,\nnan,NA,Null")), 2, 3, missing);
    check_matrix(jot_array_load_csv(file_of("a,b\n"), .has_header = true), 0, 2, NULL);
    jot_array *x = jot_array_load_csv(file_of("0.1\n16777217"), .dtype = JOT_F32);
    ck_assert_int_eq(jot_array_dtype(x), JOT_F32);
    ck_assert(((const float *)jot_array_data(x))[0] == 0.1f);
    jot_array_release(x);
}
END_TEST

START_TEST(reads_columns_by_name)
{
    jot_archive *a = jot_archive_load_csv(file_of("time, \"of, day\" ,y\n1,2,3\n4,5,6\n"));
    ck_assert_msg(a != NULL, "%s", jot_error_message());
    ck_assert_int_eq(jot_archive_count(a), 3);
    ck_assert_str_eq(jot_archive_name(a, 1), "of, day");
    jot_array *y = jot_archive_get(a, "y");
    ck_assert(jot_array_rank(y) == 1 && ((const double *)jot_array_data(y))[1] == 6);
    jot_array_release(y);
    jot_archive_release(a);
    ck_assert_ptr_null(jot_archive_load_csv(file_of("y,y\n1,2\n")));
    ck_assert_ptr_nonnull(strstr(jot_error_message(), "there is a y already"));
}
END_TEST

// The language of the process may write a decimal comma.
START_TEST(points_are_points_in_any_language)
{
    const double two[] = {1.5, -2.25};
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8"};
    for (int i = 0; i < 3 && !setlocale(LC_ALL, names[i]); i++)
        ;
    check_matrix(jot_array_load_csv(file_of("1.5,-2.25")), 1, 2, two);
    jot_array *x = jot_array_from(two, 2);
    ck_assert_int_eq(jot_array_save_csv(folder_path("y"), x), JOT_OK);
    size_t n;
    char *text = folder_slurp(folder_path("y"), &n);
    ck_assert_str_eq(text, "1.5\n-2.25\n");
    free(text);
    jot_array_release(x);
    setlocale(LC_ALL, "C");
}
END_TEST

// ---- writing ----

START_TEST(writes_what_it_reads)
{
    const double x[] = {0.1, 1. / 3,    -1e-310, 5e-324, 1.7976931348623157e308,
                        NAN, -INFINITY, -0.0};
    jot_array *a = jot_array_from(x, 4, 2);
    ck_assert_int_eq(jot_array_save_csv(folder_path("x.csv"), a, .header = "a,b"), JOT_OK);
    size_t n;
    char *text = folder_slurp(folder_path("x.csv"), &n);
    ck_assert(strncmp(text, "a,b\n0.1,0.3333333333333333\n", 27) == 0);
    free(text);
    jot_array *b = jot_array_load_csv(folder_path("x.csv"), .has_header = true);
    for (int i = 0; i < 8; i++)
        ck_assert(i == 5 ? isnan(((const double *)jot_array_data(b))[i])
                         : !memcmp((const double *)jot_array_data(b) + i, x + i, sizeof *x));
    jot_array_release(a), jot_array_release(b);
}
END_TEST

START_TEST(writes_all_real_types)
{
    static const struct {
        jot_dtype dtype;
        double x;
        const char *text;
    } cases[] = {
        {JOT_BOOL, 1, "1\n"},        {JOT_I8, -128, "-128\n"},
        {JOT_I16, -3, "-3\n"},       {JOT_I32, -7, "-7\n"},
        {JOT_I64, -7, "-7\n"},       {JOT_U8, 255, "255\n"},
        {JOT_U16, 65535, "65535\n"}, {JOT_U32, 4294967295., "4294967295\n"},
        {JOT_U64, 7, "7\n"},         {JOT_F16, 0.5, "0.5\n"},
        {JOT_BF16, -2, "-2\n"},      {JOT_F32, 0.1, "0.1\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t n;
        jot_array *a = jot_array_full(cases[i].dtype, cases[i].x, 1);
        ck_assert_int_eq(jot_array_save_csv(folder_path("x"), a), JOT_OK);
        char *text = folder_slurp(folder_path("x"), &n);
        ck_assert_str_eq(text, cases[i].text);
        free(text);
        jot_array_release(a);
    }
}
END_TEST

// ---- what is wrong ----

static const struct {
    const char *text, *message;
    jot_csv_options options;
} wrong[] = {
    {"", "there are no columns", {0}},
    {"\n\n", "there are no columns", {0}},
    {"1,2\n3\n", "x.csv:2:2: 1 numbers, where rows before have 2", {0}},
    {"1,2\n3,4,5\n", "x.csv:2:6: 3 numbers, where rows before have 2", {0}},
    {"1,2\n3,word\n", "x.csv:2:3: 'word' is no number", {0}},
    {"1,2\n\n3, 4.5.6\n", "x.csv:3:4: '4.5.6' is no number", {0}},
    {"1e", "x.csv:1:1: '1e' is no number", {0}},
    {"0x10", "'0x10' is no number", {0}},
    {"a,b\n1,2\n", "x.csv:1:1: 'a' is no number; names? .has_header = true", {0}},
    {"1;2\n3;4\n", "x.csv:1:1: '1;2' is no number; .delimiter = ';'?", {0}},
    {"1\t2\n", "is no number; .delimiter = '\\t'?", {0}},
    {"# of 2026\n1\n", "x.csv:1:1: '# of 2026' is no number; comments? .comment = '#'", {0}},
    {"# of 2026\n1,2\n", "2 numbers, where rows before have 1; comments? .comment = '#'", {0}},
    {"1,\"2", "x.csv:1:3: the quote does not end", {0}},
    {"\"1\"2", "x.csv:1:4: there is more behind the quote", {0}},
    {"1", "the delimiter is part of numbers or lines", {.delimiter = '.'}},
    {"1", "skip is -1", {.skip = -1}},
    {"1", "dtype is 3: JOT_F32 or JOT_F64", {.dtype = JOT_I32}},
    {"11111111111111111111111111111111111111111111111111111111111111111111111111111111111111111"
     "11"
     "11111111111",
     "a number of more than 100 characters",
     {0}},
};

START_TEST(says_what_is_wrong)
{
    ck_assert_ptr_null(jot_array_load_csv_with(file_of(wrong[_i].text), &wrong[_i].options));
    ck_assert_msg(strstr(jot_error_message(), wrong[_i].message) != NULL, "'%s' is not '%s'",
                  jot_error_message(), wrong[_i].message);
}
END_TEST

// Of no header, whose numbers would be names.
START_TEST(says_what_names_are)
{
    ck_assert_ptr_null(jot_archive_load_csv(file_of("1,1\n2,3\n")));
    ck_assert_msg(strstr(jot_error_message(), "x.csv:1:3: ") &&
                      strstr(jot_error_message(), "the first line is taken as names"),
                  "%s", jot_error_message());
    ck_assert_ptr_null(jot_archive_get(NULL, "1"));
    ck_assert_msg(strstr(jot_error_message(), "the first line is taken as names") != NULL, "%s",
                  jot_error_message());
}
END_TEST

START_TEST(says_what_is_not_written)
{
    jot_array *c = jot_array_full(JOT_C64, 1, 2), *s = jot_array_full(JOT_F32, 1);
    ck_assert_int_eq(jot_array_save_csv(folder_path("x"), c), JOT_ERR_DTYPE);
    ck_assert_int_eq(jot_array_save_csv(folder_path("x"), s), JOT_ERR_SHAPE);
    ck_assert_int_eq(folder_count(), 0);
    ck_assert_ptr_null(jot_array_load_csv("/nowhere/x"));
    jot_array_release(c), jot_array_release(s);
}
END_TEST

START_TEST(survives_lack_of_memory)
{
    const char *path = file_of("a,b\n1,2\n3,4\n");
    int64_t blocks = memory_live_blocks();
    bool is_well = false;
    for (uint64_t n = 1; !is_well; n++) {
        memory_fail_after(n);
        jot_array *x = jot_array_load_csv(path, .has_header = true);
        jot_archive *a = x ? jot_archive_load_csv(path) : NULL;
        is_well = a && jot_array_save_csv(folder_path("y"), x) == JOT_OK;
        memory_fail_after(0);
        jot_array_release(x), jot_archive_release(a);
        ck_assert_int_eq(memory_live_blocks(), blocks);
        ck_assert(is_well || strstr(jot_error_message(), "memory"));
    }
}
END_TEST

// ---- any bytes ----

START_TEST(any_bytes)
{
    static const char pieces[][8] = {"1",  ",", "\n", "\r\n", " ", "\"", "-",  "nan", "1e9",
                                     "\t", "#", ".",  "x",    ";", "\r", "NA", "\xff"};
    int64_t blocks = memory_live_blocks();
    int n_read = 0;
    for (int i = 0; i < 1500; i++) {
        char text[200] = "";
        size_t n = 0;
        for (uint64_t k = fuzz_below(30); k--;) {
            const char *piece = pieces[fuzz_below(sizeof pieces / sizeof *pieces)];
            memcpy(text + n, piece, strlen(piece));
            n += strlen(piece);
        }
        text[n] = (char)(fuzz_below(8) ? '1' : 0);
        folder_spill(folder_path("x"), text, n + 1);
        jot_csv_options o = {.delimiter = ", ;\t"[fuzz_below(4)],
                             .comment = "\0#"[fuzz_below(2)],
                             .has_header = fuzz_below(2)};
        jot_array *a = jot_array_load_csv_with(folder_path("x"), &o);
        jot_archive *c = jot_archive_load_csv_with(folder_path("x"), &o);
        ck_assert(a || jot_error_message()[0]);
        n_read += a != NULL;
        jot_array_release(a), jot_archive_release(c);
        ck_assert_int_eq(memory_live_blocks(), blocks);
    }
    ck_assert_int_gt(n_read, 100);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_checked_fixture(t, folder_make, folder_remove);
    tcase_add_test(t, reads_numbers);
    tcase_add_test(t, reads_columns_by_name);
    tcase_add_test(t, points_are_points_in_any_language);
    tcase_add_test(t, writes_what_it_reads);
    tcase_add_test(t, writes_all_real_types);
    tcase_add_loop_test(t, says_what_is_wrong, 0, (int)(sizeof wrong / sizeof *wrong));
    tcase_add_test(t, says_what_names_are);
    tcase_add_test(t, says_what_is_not_written);
    tcase_add_test(t, survives_lack_of_memory);
    tcase_add_test(t, any_bytes);
}

int main(void) { return suite_run("csv", add_tests); }
