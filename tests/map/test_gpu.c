// SPDX-License-Identifier: Apache-2.0
// Which levels a nest gets for a GPU, and that no loop has two owners.  That threads which follow them give the bits of
// the host is seen in the tests of the suite `emulated`.
#include "map/gpu.h"

#include "base/status.h"
#include "map/gpu_nests.h"
#include "support/map_nest.h"
#include "support/nest_text.h"
#include "support/suite.h"

#include <string.h>

static struct arena *arena;

static void setup(void) { arena = arena_create(); }
static void teardown(void) { arena_release(arena); }

static const char *mapped(struct nest *n, bool is_phase)
{
    struct strbuf s = strbuf_make(arena), report = strbuf_make(arena);
    map_nest_to_gpu(arena, n, is_phase);
    nest_print(&s, n);
    ck_assert_msg(!nest_verify(n, &report), "%s%s", report.text, s.text);
    return s.text;
}

START_TEST(levels_of_a_gpu)
{
    struct nest *n = nest_of_text(arena, gpu_nests[_i].text);
    const char *text = mapped(n, gpu_nests[_i].is_phase);
    for (int k = 0; k < 3; k++)
        if (gpu_nests[_i].has[k])
            ck_assert_msg(strstr(text, gpu_nests[_i].has[k]), "%s: no '%s' in\n%s",
                          gpu_nests[_i].what, gpu_nests[_i].has[k], text);
    // What is written stands in the text alone, and is written anew for another purpose.
    ck_assert_str_eq(mapped(nest_of_text(arena, text), gpu_nests[_i].is_phase), text);
    mapped(n, !gpu_nests[_i].is_phase);
    ck_assert_str_eq(mapped(n, gpu_nests[_i].is_phase), text);
}
END_TEST

// One block has all of a kernel for longer than all blocks, or than each has a point.
START_TEST(a_price_sees_who_works)
{
    struct nest *all =
        nest_of_text(arena, KERNEL(SUM("k < 16777216", "x[k]", "%1") "    put y[0] = %1\n"));
    struct nest *one = nest_of_text(arena, KERNEL(SUM("k < 16777216", "x[k]", "%1") MAP(
                                               "i < 64", "i", "i") "  put y[64] = %1\n"));
    mapped(all, false);
    mapped(one, false);
    ck_assert_uint_eq(one->threads[NEST_BLOCKS], 1);
    ck_assert_int_gt(one->price, 16 * all->price);
    ck_assert_int_gt(all->price, 0);
}
END_TEST

// Of more such points than keep memory busy a thread has one.
START_TEST(many_columns_are_threads)
{
    const char *text =
        mapped(nest_of_text(arena, SCANS("j < 40000", "i < 3000", "j + 40000*i")), false);
    ck_assert_msg(strstr(text, "par @thread j < 40000 {"), "%s", text);
}
END_TEST

// What one thread does is found in the text.
START_TEST(serial_work_is_found)
{
    struct map_serial s;
    struct nest *n = nest_of_text(
        arena,
        KERNEL("  scan i < 100000 {\n    %0 = load x[i] : f32\n    scan j < 2 {\n      yield "
               "reduce_sum %0 serial -> %1 : f32\n    }\n    yield reduce_sum %0 serial -> %2 "
               ": f32\n"
               "    put y[i] = %2\n  }\n"));
    mapped(n, false);
    map_serial_find(n, &s);
    ck_assert(s.loop != NEST_NONE && s.count == 100000);
    n = nest_of_text(arena, SUMS("i < 4096", "k < 1024", "x[1024*i + k]"));
    mapped(n, false);
    map_serial_find(n, &s);
    ck_assert(s.loop == NEST_NONE);
    // Steps in the steps of a group, which it shares nothing of, beside a map that it shares.
    n = nest_of_text(arena,
                     KERNEL("  local t: f32[256]\n  %0 = const 0x00000000 : f32\n"
                            "  seq i < 1000 {\n    seq j < 200 carry %1 = %0 {\n"
                            "      %2 = load x[200*i + j] : f32\n      %3 = add %1, %2 : f32\n"
                            "      put t[j] = %3\n      yield %3\n    } -> %4\n"
                            "    map k < 200 {\n      %5 = load t[k] : f32\n"
                            "      put y[k] = %5\n    }\n  }\n"));
    mapped(n, false);
    map_serial_find(n, &s);
    ck_assert(s.loop != NEST_NONE && s.count == 200000);
}
END_TEST

#define STENCIL(more)                                                                          \
    "kernel k(x: f32[1048576], y: out f32[1048576]) {\n"                                       \
    "  %0 = const 0x0000000000000001 : i64\n  %1 = const 0x00000000000003ff : i64\n"           \
    "  par i < 1024, j < 1024 {\n    %2 = index i : i64\n    %3 = ge %2, %0 : bool\n"          \
    "    %4 = load x[1024*i + j - 1024] if %3 : f32\n    %5 = lt %2, %1 : bool\n"              \
    "    %6 = load x[1024*i + j + 1024] if %5 : f32\n    %7 = add %4, %6 : f32\n" more         \
    "    put y[1024*i + j] = %7\n  }\n}\n"

// Trips of a stencil's loop that a launch makes: an odd number that divides them, as far as their neighbours reach.
START_TEST(trips_of_a_launch)
{
    static const struct {
        int64_t trips;
        bool is_phase;
        const char *text, *words;
    } rows[] = {
        {1000, false, STENCIL(""), ") as trips block 64 trips 5 price"},
        {999, false, STENCIL(""), ") as trips block 64 trips 3 price"},
        {998, false, STENCIL(""), ") block 256 price"},
        {1000, true, STENCIL(""), ") block 256 price"},
        {1000, false, STENCIL("    %8 = load x[0] : f32\n    %9 = tanh %7 : f32\n"),
         ") as trips"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct strbuf s = strbuf_make(arena);
        struct nest *n = nest_of_text(arena, rows[i].text);
        map_nest_of_loop(arena, n, rows[i].is_phase, rows[i].trips);
        nest_print(&s, n);
        ck_assert_msg(strstr(s.text, rows[i].words), "%s", s.text);
    }
}
END_TEST

// Of a kernel that makes u of t, and of a phase that does so where a loop makes t of u again: what it reads is written
// by no one else where memories have places of their own, as they have before these are planned.
START_TEST(places_are_asked_before_they_are_planned)
{
    static const char *const steps[] = {"  step kernel 0 (0, 1)\n",
                                        "  step loop 0 trips 4 () \n  step kernel 0 (0, 1)\n  "
                                        "step kernel 0 (1, 0)\n  step end ()\n"};
    for (int i = 0; i < 4; i++) {
        struct strbuf text = strbuf_make(arena);
        struct nest_program *p;
        strbuf_printf(&text,
                      "jot nest 1\nprogram \"p\" {\n  inputs 0\n  outputs 0\n  arena 40\n"
                      "  constants 0\n  memory temporary at 0 : f32[10] \"t\"\n"
                      "  memory temporary at 0 : f32[10] \"u\"\n%s}\n"
                      "kernel k(x: f32[10], y: out f32[10]) {\n  par i < 10 {\n"
                      "    %%0 = load x[i] : f32\n    put y[i] = %%0\n  }\n}\n",
                      steps[i / 2]);
        ck_assert_msg(nest_program_parse(arena, text.text, &p) == JOT_OK, "%s",
                      jot_error_message());
        if (i % 2)
            p->arena_bytes = 0;
        const struct map_operand *of = map_operands(arena, p)[0];
        ck_assert_int_eq(of[0].is_alone, i % 2);
        ck_assert_int_eq(of[0].is_constant, i == 1);
    }
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_loop_test(t, levels_of_a_gpu, 0, (int)GPU_NESTS);
    tcase_add_test(t, trips_of_a_launch);
    tcase_add_test(t, places_are_asked_before_they_are_planned);
    tcase_add_test(t, a_price_sees_who_works);
    tcase_add_test(t, many_columns_are_threads);
    tcase_add_test(t, serial_work_is_found);
}

int main(void) { return suite_run("map_gpu", add_tests); }
