// SPDX-License-Identifier: Apache-2.0
// Which levels a nest gets for a processor.  That they change no bit is seen in tests/codegen, of every nest there.
#include "map/map.h"

#include "base/status.h"
#include "support/suite.h"

#include <string.h>

static struct arena *arena;

static void setup(void) { arena = arena_create(); }
static void teardown(void) { arena_release(arena); }

#define SUM_OF_ROWS(load)                                                                      \
    "  par i < 256 {\n    fold k < 256 {\n" load                                               \
    "      yield reduce_sum %0 sum64\n    } -> %1 : f32\n    put y[i] = %1\n  }\n"
#define EXPONENTIALS(n)                                                                        \
    "  par i < " n " {\n    %0 = load x[i] : f32\n    %1 = exp %0 : f32\n"                     \
    "    put y[i] = %1\n  }\n"

// Bodies over x: f32[65536], d: f64[65536], and the heads of loops that they have then.
static const struct {
    const char *what, *body;
    struct map_host host;
    const char *has[2];
} rows[] = {
    {"points whose elements lie apart: each lane folds by itself",
     SUM_OF_ROWS("      %0 = load x[256*i + k] : f32\n"),
     {64, MAP_WRITTEN_OUT},
     {"par i < 256 @vector 64 {", "fold k < 256 @vector 64 {"}},
    {"points whose elements lie together: all lanes at once",
     SUM_OF_ROWS("      %0 = load x[i + 256*k] : f32\n"),
     {64, MAP_WRITTEN_OUT},
     {"par i < 256 @vector 64 {", "fold k < 256 {"}},
    {"the same beside a loop over time, which vectors go through side by side",
     "  par i < 256 {\n    fold k < 256 {\n      %0 = load x[256*i + k] : f32\n"
     "      yield reduce_sum %0 sum64\n    } -> %1 : f32\n"
     "    seq t < 8 carry %2 = %1 {\n      %3 = exp %2 : f32\n      yield %3\n    } -> %4\n"
     "    put y[i] = %4\n  }\n",
     {64, MAP_WRITTEN_OUT},
     {"par i < 256 @vector", "fold k < 256 {"}},
    {"a smaller register",
     EXPONENTIALS("65536"),
     {32, MAP_WRITTEN_OUT},
     {"i < 65536 @vector 32 {"}},
    {"few points", EXPONENTIALS("9"), {64, MAP_WRITTEN_OUT}, {"i < 9 @vector 16 {"}},
    {"much code", EXPONENTIALS("65536"), {64, MAP_ONE_REGISTER}, {"i < 65536 @vector 16 {"}},
    {"a wider type",
     "  par i < 256 {\n    %0 = load d[i] : f64\n    %1 = convert %0 : f32\n"
     "    put y[i] = %1\n  }\n",
     {64, MAP_WRITTEN_OUT},
     {"i < 256 @vector 32 {"}},
    {"a running fold, whose order is strict",
     "  scan i < 256 {\n    %0 = load x[i] : f32\n"
     "    yield reduce_sum %0 serial -> %1 : f32\n    put y[i] = %1\n  }\n",
     {64, MAP_WRITTEN_OUT},
     {"scan i < 256 {"}},
    {"the last axis of a fold",
     "  fold i < 16, k < 256 {\n    %0 = load x[256*i + k] : f32\n"
     "    yield reduce_sum %0 sum64\n  } -> %1 : f32\n  put y[0] = %1\n",
     {64, MAP_WRITTEN_OUT},
     {"fold i < 16, k < 256 @vector 64 {"}},
    {"loops in lanes, and what a lane that is left alone does in a while",
     "  par i < 256 {\n    %0 = load x[i] : f32\n    %1 = const 0x3f800000 : f32\n"
     "    while carry %2 = %0 {\n      %3 = lt %2, %1 : bool\n      yield %3\n    } do {\n"
     "      fold k < 20 {\n        %4 = load x[k] : f32\n        %5 = mul %4, %2 : f32\n"
     "        yield reduce_sum %5 sum64\n      } -> %6 : f32\n      %11 = exp %6 : f32\n"
     "      yield %11\n    } -> %7\n"
     "    fold j < 20 {\n      %8 = load x[j] : f32\n      %9 = mul %8, %7 : f32\n"
     "      yield reduce_sum %9 sum64\n    } -> %10 : f32\n    put y[i] = %10\n  }\n",
     {64, MAP_WRITTEN_OUT},
     {"fold k < 20 @vector 32", "fold j < 20 {"}},
};

static struct nest *parse(const char *text)
{
    struct nest **nests;
    int count;
    ck_assert_msg(nest_parse(arena, text, &count, &nests) == JOT_OK, "%s\n%s",
                  jot_error_message(), text);
    return nests[0];
}

static const char *print(const struct nest *n)
{
    struct strbuf s = strbuf_make(arena);
    nest_print(&s, n);
    return s.text;
}

START_TEST(levels_of_a_processor)
{
    struct strbuf s = strbuf_make(arena), report = strbuf_make(arena);
    strbuf_printf(&s, "kernel k(x: f32[65536], d: f64[65536], y: inout f32[65536]) {\n%s}\n",
                  rows[_i].body);
    struct nest *n = parse(s.text);
    map_to_host(n, &rows[_i].host);
    const char *text = print(n);
    ck_assert_msg(!nest_verify(n, &report), "%s%s", report.text, text);
    for (int i = 0; i < 2 && rows[_i].has[i]; i++)
        ck_assert_msg(strstr(text, rows[_i].has[i]), "%s: no '%s' in\n%s", rows[_i].what,
                      rows[_i].has[i], text);
    // Levels that stand there are replaced.
    map_to_host(n, &(struct map_host){16, MAP_WRITTEN_OUT});
    map_to_host(n, &rows[_i].host);
    ck_assert_str_eq(text, print(n));
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_loop_test(t, levels_of_a_processor, 0, (int)(sizeof rows / sizeof *rows));
}

int main(void) { return suite_run("map", add_tests); }
