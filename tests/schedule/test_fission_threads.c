// SPDX-License-Identifier: Apache-2.0
// Fission for the threads of a GPU: what is of few threads, or of one, gets loops of all of them.
#include "nest_programs.h"

// Columns that one block would have get loops for the whole grid: the map one over all elements, along memory, which
// makes no quotient again.
START_TEST(long_columns_are_shared)
{
    for (int rows = 512; rows <= 1 << 16; rows *= 128) {
        struct strbuf s = strbuf_make(arena);
        strbuf_printf(
            &s,
            "jot nest 1\nprogram \"p\" {\n  inputs 1\n  outputs 1 donated -1\n  arena 0\n"
            "  constants 0\n  memory input 0 : f32[%d] \"x\"\n"
            "  memory output 0 : f32[%d] \"y\"\n  step kernel 0 (0, 1) \"\"\n}\n",
            64 * rows, 64 * rows);
        strbuf_printf(&s,
                      "kernel k0_columns(x: f32[%d], y: out f32[%d]) {\n"
                      "  %%0 = const 0x41a00000 : f32\n  par c < 64 {\n"
                      "    fold i < %d {\n      %%1 = load x[64*i + c] : f32\n"
                      "      yield reduce_sum %%1 sum64\n    } -> %%2 : f32\n"
                      "    %%3 = div %%2, %%0 : f32\n    map k < %d {\n"
                      "      %%4 = load x[64*k + c] : f32\n      %%5 = sub %%4, %%3 : f32\n"
                      "      put y[64*k + c] = %%5\n    }\n  }\n}\n",
                      64 * rows, 64 * rows, rows, rows);
        struct nest_program *p;
        ck_assert_msg(nest_program_parse(arena, s.text, &p) == JOT_OK, "%s",
                      jot_error_message());
        schedule_fission(p, &(struct schedule_options){0});
        ck_assert_uint_eq(p->nests.count, rows > 512 ? 2 : 1);
        if (rows == 512)
            continue;
        struct strbuf text = strbuf_make(arena);
        nest_print(&text, p->nests.at[1]);
        ck_assert_msg(strstr(text.text, "64*k + c") && !strstr(text.text, "div") &&
                          strstr(text.text, "k < 65536, c < 64"),
                      "%s", text.text);
    }
}
END_TEST

// Folds that follow one another, of few rows which blocks of threads would have one each: each becomes a kernel, which
// blocks share.  Of as many rows as there are multiprocessors, or of short ones, nothing is gained.
START_TEST(few_long_rows_are_shared)
{
    static const struct {
        int rows, length;
        uint32_t kernels;
    } all[] = {
        {8, 1 << 20, 3}, {3, 1 << 18, 3}, {64, 401408, 3}, {8, 2048, 1}, {264, 1 << 18, 1}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        int rows = all[i].rows, length = all[i].length;
        struct strbuf s = strbuf_make(arena);
        strbuf_printf(
            &s,
            "jot nest 1\nprogram \"p\" {\n  inputs 1\n  outputs 1 donated -1\n  arena 0\n"
            "  constants 0\n  memory input 0 : f32[%d] \"x\"\n"
            "  memory output 0 : f32[%d] \"y\"\n  step kernel 0 (0, 1) \"\"\n}\n",
            rows * length, rows * length);
        strbuf_printf(
            &s,
            "kernel k0_softmax(x: f32[%d], y: out f32[%d]) {\n  par r < %d {\n"
            "    fold i < %d {\n      %%0 = load x[%d*r + i] : f32\n"
            "      yield reduce_max %%0 free\n    } -> %%1 : f32\n"
            "    fold j < %d {\n      %%2 = load x[%d*r + j] : f32\n"
            "      %%3 = sub %%2, %%1 : f32\n      %%4 = exp %%3 : f32\n"
            "      yield reduce_sum %%4 sum64\n    } -> %%5 : f32\n"
            "    map k < %d {\n      %%6 = load x[%d*r + k] : f32\n"
            "      %%7 = sub %%6, %%1 : f32\n      %%8 = exp %%7 : f32\n"
            "      %%9 = div %%8, %%5 : f32\n      put y[%d*r + k] = %%9\n    }\n  }\n}\n",
            rows * length, rows * length, rows, length, length, length, length, length, length,
            length);
        struct nest_program *p;
        ck_assert_msg(nest_program_parse(arena, s.text, &p) == JOT_OK, "%s",
                      jot_error_message());
        schedule_fission(p, &(struct schedule_options){0});
        ck_assert_uint_eq(p->nests.count, all[i].kernels);
    }
}
END_TEST

// Elements of as few columns as a warp has several rows of lie beside one another: the loop of all goes along memory.
START_TEST(few_columns_go_along_memory)
{
    struct nest_program *p;
    static const char text[] =
        "jot nest 1\nprogram \"p\" {\n  inputs 1\n  outputs 1 donated -1\n  arena 0\n"
        "  constants 0\n  memory input 0 : f32[8388608] \"x\"\n"
        "  memory output 0 : f32[8388608] \"y\"\n  step kernel 0 (0, 1) \"\"\n}\n"
        "kernel k0_columns(x: f32[8388608], y: out f32[8388608]) {\n  par c < 8 {\n"
        "    fold i < 1048576 {\n      %0 = load x[8*i + c] : f32\n"
        "      yield reduce_sum %0 sum64\n    } -> %1 : f32\n"
        "    map k < 1048576 {\n      %2 = load x[8*k + c] : f32\n      %3 = div %2, %1 : f32\n"
        "      put y[8*k + c] = %3\n    }\n  }\n}\n";
    p = after_fission(text);
    ck_assert_uint_eq(p->nests.count, 2);
    struct strbuf s = strbuf_make(arena);
    nest_print(&s, p->nests.at[1]);
    ck_assert_msg(strstr(s.text, "par k < 1048576, c < 8"), "%s", s.text);
}
END_TEST

// Sums over either axis of [1024, 1024, 3]: a point of three has a sum of each kind for every row.
START_TEST(a_map_of_few_points_is_a_loop_of_all)
{
    struct nest_program *p;
    static const char text[] =
        "jot nest 1\nprogram \"p\" {\n  inputs 1\n  outputs 1 donated -1\n  arena 0\n"
        "  constants 0\n  memory input 0 : f32[3145728] \"x\"\n"
        "  memory output 0 : f32[3072] \"y\"\n  step kernel 0 (0, 1) \"\"\n}\n"
        "kernel k0_sums(x: f32[3145728], y: out f32[3072]) {\n  par c < 3 {\n"
        "    map j < 1024 {\n      fold k < 1024 {\n        %0 = load x[3072*k + 3*j + c] : "
        "f32\n"
        "        yield reduce_sum %0 sum64\n      } -> %1 : f32\n"
        "      put y[3*j + c] = %1\n    }\n  }\n}\n";
    p = after_fission(text);
    ck_assert_uint_eq(p->nests.count, 1);
    struct strbuf s = strbuf_make(arena);
    nest_program_print(&s, p);
    ck_assert_msg(strstr(s.text, "par c < 3072 {\n    fold"), "%s", s.text);
    ck_assert_int_eq(nest_program_verify(p, &s), 0);
}
END_TEST

// So is one of some hundred neighbouring points, each of which would be a thread's.
START_TEST(a_map_of_neighbouring_points_is_a_loop_of_all)
{
    struct nest_program *p;
    static const char text[] =
        "jot nest 1\nprogram \"p\" {\n  inputs 2\n  outputs 1 donated -1\n  arena 0\n"
        "  constants 0\n  memory input 0 : f32[16384] \"x\"\n  memory input 1 : f32[300] "
        "\"w\"\n"
        "  memory output 0 : f32[4915200] \"y\"\n  step kernel 0 (0, 1, 2) \"\"\n}\n"
        "kernel k0_outer(x: f32[16384], w: f32[300], y: out f32[4915200]) {\n  par c < 300 {\n"
        "    %0 = load w[c] : f32\n    %1 = exp %0 : f32\n    map j < 16384 {\n"
        "      %2 = load x[j] : f32\n      %3 = mul %2, %1 : f32\n      put y[c + 300*j] = "
        "%3\n    }\n  }\n}\n";
    p = after_fission(text);
    struct strbuf s = strbuf_make(arena);
    nest_program_print(&s, p);
    ck_assert_msg(strstr(s.text, "par j < 16384, c < 300 {"), "%s", s.text);
    ck_assert_int_eq(nest_program_verify(p, &s), 0);
}
END_TEST

// So are several of them, and what is put for each point beside them, in front or behind.
START_TEST(maps_of_neighbouring_points_are_loops_of_all)
{
    static const char text[] =
        "jot nest 1\nprogram \"p\" {\n  inputs 2\n  outputs 4 donated -1 -1 -1 -1\n  arena 0\n"
        "  constants 0\n  memory input 0 : f32[33792] \"x\"\n  memory input 1 : f32[33] "
        "\"w\"\n"
        "  memory output 0 : f32[33] \"a\"\n  memory output 1 : f32[33792] \"y\"\n"
        "  memory output 2 : f32[33] \"b\"\n  memory output 3 : f32[16896] \"z\"\n"
        "  step kernel 0 (0, 1, 2, 3, 4, 5) \"\"\n}\n"
        "kernel k0_maps(x: f32[33792], w: f32[33], a: out f32[33], y: out f32[33792], "
        "b: out f32[33], z: out f32[16896]) {\n  par c < 33 {\n"
        "    %0 = load w[c] : f32\n    %1 = exp %0 : f32\n    put a[c] = %1\n"
        "    map j < 1024 {\n      %2 = load x[c + 33*j] : f32\n      %3 = mul %2, %1 : f32\n"
        "      put y[c + 33*j] = %3\n    }\n    %4 = neg %1 : f32\n    put b[c] = %4\n"
        "    map k < 512 {\n      %5 = load x[c + 66*k] : f32\n      put z[c + 33*k] = "
        "%5\n    }\n  }\n}\n";
    size_t bytes;
    struct nest_program *p = after_fission(text);
    char *got = results(p, &bytes);
    struct strbuf s = strbuf_make(arena);
    nest_program_print(&s, p);
    ck_assert_int_eq(nest_program_verify(p, &s), 0);
    ck_assert_msg(strstr(s.text, "par j < 1024, c < 33 {"), "%s", s.text);
    ck_assert_msg(strstr(s.text, "par k < 512, c < 33 {"), "%s", s.text);
    struct nest_program *whole;
    ck_assert_int_eq(nest_program_parse(arena, text, &whole), JOT_OK);
    ck_assert(!memcmp(results(whole, &bytes), got, bytes));
}
END_TEST

// Terms of a short running fold are not one thread's, where they are more than numbers that it reads; they lie as what
// it puts does.
START_TEST(dear_terms_of_a_short_scan)
{
#define SCAN(points, at, made, term)                                                           \
    "kernel k0_scan(x: f32[60000], y: out f32[60000]) {\n  par b < " points " {\n"             \
    "    scan i < 500 {\n      %0 = load x[" at "] : f32\n" made                               \
    "      yield reduce_sum " term " serial -> %9 : f32\n"                                     \
    "      put y[" at "] = %9\n    }\n  }\n}\n"
#define DEAR "      %1 = sin %0 : f32\n      %2 = log %1 : f32\n"
    static const char *const terms[] = {
        SCAN("3", "500*b + i", "", "%0"), SCAN("3", "500*b + i", DEAR, "%2"),
        SCAN("100", "b + 100*i", DEAR, "%2"), SCAN("5000", "b + 5000*i", DEAR, "%2")};
    static const char *const places[] = {"", "part[500*b + i]", "part[b + 100*i]", ""};
    for (uint32_t i = 0; i < 4; i++) {
        struct nest_program *p = program_of(terms[i]);
        schedule_fission(p, &(struct schedule_options){0});
        ck_assert_uint_eq(p->nests.count, *places[i] ? 2 : 1);
        struct strbuf text = strbuf_make(arena);
        nest_print(&text, vec_last(&p->nests));
        ck_assert_msg(strstr(text.text, places[i]), "%s", text.text);
    }
}
END_TEST

// Warps share each of several long running folds, but no row that these have in common.
START_TEST(long_scans_of_a_row)
{
#define SCANS(local, put, load)                                                                \
    "kernel k0_scan(x: f32[60], y: out f32[60], z: out f32[60]) {\n" local                     \
    "  scan i < 5000 {\n    %0 = load x[i] : f32\n" put                                        \
    "    yield reduce_max %0 free -> %1 : f32\n    put y[i] = %1\n  }\n"                       \
    "  scan j < 5000 {\n    %2 = load " load "[j] : f32\n"                                     \
    "    yield reduce_min %2 free -> %3 : f32\n    put z[j] = %3\n  }\n}\n"
    static const char *const scans[] = {
        SCANS("", "", "x"), SCANS("  local row: f32[5000]\n", "    put row[i] = %0\n", "row")};
    for (uint32_t i = 0; i < 2; i++) {
        struct nest_program *p = program_of(scans[i]);
        schedule_fission(p, &(struct schedule_options){0});
        ck_assert_uint_eq(p->nests.count, 1 + i);
    }
}
END_TEST

// A fold and a map that does without it are functions of one kernel.
START_TEST(what_waits_for_nothing_stays)
{
    static const char text[] =
        "jot nest 1\nprogram \"p\" {\n  inputs 1\n  outputs 2 donated -1 -1\n  arena 0\n"
        "  constants 0\n  memory input 0 : f32[4194304] \"x\"\n"
        "  memory output 0 : f32[4194304] \"y\"\n  memory output 1 : f32[64] \"z\"\n"
        "  step kernel 0 (0, 1, 2) \"\"\n}\n"
        "kernel k0_apart(x: f32[4194304], y: out f32[4194304], z: out f32[64]) {\n  par c < 64 "
        "{\n"
        "    fold i < 65536 {\n      %0 = load x[64*i + c] : f32\n      yield reduce_sum %0 "
        "sum64\n"
        "    } -> %1 : f32\n    map k < 65536 {\n      %2 = load x[64*k + c] : f32\n"
        "      %3 = neg %2 : f32\n      put y[64*k + c] = %3\n    }\n    put z[c] = %1\n  "
        "}\n}\n";
    struct nest_program *p;
    p = after_fission(text);
    ck_assert_uint_eq(p->nests.count, 1);
}
END_TEST

// Maps that wait for short folds of neighbouring points are a thread's for each, unless so little is read that groups
// of threads have a point.
START_TEST(maps_behind_folds_are_loops_of_all)
{
    for (int points = 500; points <= 5000; points *= 10) {
        struct strbuf s = strbuf_make(arena);
        strbuf_printf(
            &s,
            "jot nest 1\nprogram \"p\" {\n  inputs 1\n  outputs 1 donated -1\n  arena 0\n"
            "  constants 0\n  memory input 0 : f32[%d] \"x\"\n"
            "  memory output 0 : f32[%d] \"y\"\n  step kernel 0 (0, 1) \"\"\n}\n",
            1024 * points, 1024 * points);
        strbuf_printf(&s,
                      "kernel k0_distances(x: f32[%d], y: out f32[%d]) {\n  par i < %d {\n"
                      "    fold j < 128 {\n      %%0 = load x[i + %d*j] : f32\n"
                      "      yield fma %%0 %%0 sum64\n    } -> %%1 : f32\n    map k < 1024 {\n"
                      "      %%2 = load x[i + %d*k] : f32\n      %%3 = sub %%2, %%1 : f32\n"
                      "      put y[i + %d*k] = %%3\n    }\n  }\n}\n",
                      1024 * points, 1024 * points, points, points, points, points);
        struct nest_program *p = after_fission(s.text);
        ck_assert_uint_eq(p->nests.count, points == 500 ? 1 : 2);
    }
}
END_TEST

// Elements of a map that are sums themselves have threads of their own, whatever few points they are of.
START_TEST(dear_elements_are_points)
{
    struct nest_program *p = program_of(
        "kernel k0_pairs(x: f32[60], y: out f32[20000]) {\n  par i < 100 {\n"
        "    map j < 200 {\n      fold k < 60 {\n        %0 = load x[k] : f32\n"
        "        %1 = mul %0, %0 : f32\n        yield fma %0 %1 sum64\n      } -> %2 : f32\n"
        "      put y[200*i + j] = %2\n    }\n  }\n}\n");
    schedule_fission(p, &(struct schedule_options){0});
    ck_assert_uint_eq(p->nests.count, 1);
    ck_assert_int_eq(
        nest_extent(p->nests.at[0],
                    nest_statement_at(p->nests.at[0],
                                      vec_last(&p->nests.at[0]->blocks.at[0].statements))),
        20000);
}
END_TEST

// A map whose few elements are long sums keeps no other one waiting for its turns.
START_TEST(maps_of_long_sums_are_apart)
{
    struct nest_program *p = program_of(
        "kernel k0_sums(x: f32[4096], y: out f32[4096], z: out f32[1048576]) {\n  par i < 256 "
        "{\n"
        "    map j < 16 {\n      fold k < 16384 {\n        %0 = load x[16*i + j] : f32\n"
        "        yield fma %0 %0 sum64\n      } -> %1 : f32\n      put y[16*i + j] = %1\n    "
        "}\n"
        "    map l < 4096 {\n      %2 = load x[l] : f32\n      put z[4096*i + l] = %2\n"
        "    }\n  }\n}\n");
    schedule_fission(p, &(struct schedule_options){0});
    ck_assert_uint_eq(p->nests.count, 2);
}
END_TEST

// A number of each point that is dear does not keep a map of many elements with the few points.
START_TEST(dear_numbers_leave_maps_alone)
{
    static const char text[] =
        "jot nest 1\nprogram \"p\" {\n  inputs 1\n  outputs 2 donated -1 -1\n  arena 0\n"
        "  constants 0\n  memory input 0 : f32[1310720] \"x\"\n"
        "  memory output 0 : f32[1310720] \"y\"\n  memory output 1 : f32[20] \"z\"\n"
        "  step kernel 0 (0, 1, 2) \"\"\n}\n"
        "kernel k0_numbers(x: f32[1310720], y: out f32[1310720], z: out f32[20]) {\n"
        "  par c < 20 {\n    fold i < 65536 {\n      %0 = load x[20*i + c] : f32\n"
        "      yield reduce_sum %0 sum64\n    } -> %1 : f32\n    map k < 65536 {\n"
        "      %2 = load x[20*k + c] : f32\n      %3 = sub %2, %1 : f32\n"
        "      put y[20*k + c] = %3\n    }\n    %4 = tanh %1 : f32\n    put z[c] = %4\n  "
        "}\n}\n";
    struct nest_program *p = after_fission(text);
    ck_assert_uint_eq(p->nests.count, 3);
    for (uint32_t i = 0; i < p->nests.count; i++)
        nest_for_all (s, p->nests.at[i])
            ck_assert(s->kind != NEST_MAP);
}
END_TEST

// Points that leave a block of threads to each multiprocessor: dear terms are those of all threads.
START_TEST(dear_terms_of_idle_points)
{
    struct nest_program *p = program_of(
        "kernel k0_scores(x: f32[60], y: out f32[100]) {\n"
        "  par b < 100 {\n"
        "    fold k < 2048 {\n"
        "      fold l < 60 {\n        %0 = load x[l] : f32\n        %1 = mul %0, %0 : f32\n"
        "        yield fma %0 %1 sum64\n      } -> %2 : f32\n"
        "      yield reduce_max %2 free\n    } -> %3 : f32\n    put y[b] = %3\n  }\n}\n");
    schedule_fission(p, &(struct schedule_options){0});
    ck_assert_uint_eq(p->nests.count, 2);
}
END_TEST

#define TERMS(points, place)                                                                   \
    "kernel k0_terms(x: f32[4194304], y: out f32[1], z: out f32[65536]) {\n"                   \
    "  fold i < " points " {\n    fold k < 32 {\n      %0 = load x[" place "] : f32\n"         \
    "      yield fma %0 %0 sum64\n    } -> %1 : f32\n    put z[i] = %1\n"                      \
    "    yield reduce_sum %1 sum64\n  } -> %2 : f32\n  put y[0] = %2\n}\n"

// Few terms that go through rows are for threads that share a row: many have a thread each, and so have those whose
// neighbours read neighbours.
START_TEST(few_terms_of_rows)
{
    static const char *const texts[] = {TERMS("512", "32*i + k"), TERMS("512", "i + 512*k"),
                                        TERMS("65536", "32*i + k"), TERMS("512", "k")};
    for (int i = 0; i < 4; i++) {
        struct nest_program *p = program_of(texts[i]);
        schedule_fission(p, &(struct schedule_options){0});
        ck_assert_msg(p->nests.count == (i ? 1 : 2), "%s: %u kernels", texts[i],
                      p->nests.count);
    }
}
END_TEST

static void add_tests(TCase *c)
{
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, dear_terms_of_idle_points);
    tcase_add_test(c, few_terms_of_rows);
    tcase_add_test(c, long_columns_are_shared);
    tcase_add_test(c, few_long_rows_are_shared);
    tcase_add_test(c, few_columns_go_along_memory);
    tcase_add_test(c, a_map_of_few_points_is_a_loop_of_all);
    tcase_add_test(c, a_map_of_neighbouring_points_is_a_loop_of_all);
    tcase_add_test(c, maps_of_neighbouring_points_are_loops_of_all);
    tcase_add_test(c, dear_terms_of_a_short_scan);
    tcase_add_test(c, long_scans_of_a_row);
    tcase_add_test(c, what_waits_for_nothing_stays);
    tcase_add_test(c, maps_behind_folds_are_loops_of_all);
    tcase_add_test(c, dear_elements_are_points);
    tcase_add_test(c, maps_of_long_sums_are_apart);
    tcase_add_test(c, dear_numbers_leave_maps_alone);
}

int main(void) { return suite_run("fission for threads", add_tests); }
