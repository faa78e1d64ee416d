// SPDX-License-Identifier: Apache-2.0
// Which levels a nest gets for a GPU, and that no loop has two owners.  That threads which follow them give the bits of
// the host is seen in the tests of the suite `emulated`.
#include "map/gpu_operands.h"
#include "map/gpu_scratch.h"
#include "map/gpu_serial.h"

#include "base/status.h"
#include "map/gpu_nests.h"
#include "schedule/schedule.h"
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
    ck_assert_msg(!map_nest_verify(arena, n, is_phase, 1, &report), "%s%s", report.text,
                  s.text);
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

// Axes in a new order have the numbers that the text gives them.
START_TEST(axes_are_numbered_in_their_order)
{
    struct nest *n = nest_of_text(arena, KERNEL("  par i < 64, j < 300 {\n" SUM(
                                             "k < 64", "x[i + 19200*k + 64*j]",
                                             "%1") "    put y[300*i + j] = %1\n  }\n"));
    const char *text = mapped(n, false);
    ck_assert_msg(strstr(text, "j < 300, i < 64"), "%s", text);
    struct nest *again = nest_of_text(arena, text);
    nest_for_all (s, n) {
        const struct nest_statement *t = nest_statement_at(again, nest_id_of(n, s));
        ck_assert_uint_eq(s->index.count, t->index.count);
        for (uint32_t k = 0; k < s->index.count; k++)
            ck_assert_int_eq(s->index.terms[k].factor, t->index.terms[k].factor);
    }
}
END_TEST

// A thread that makes many turns alone takes longer than all of a GPU, however few bytes they are.
START_TEST(a_price_sees_turns)
{
    const char *of_columns =
        KERNEL("  par i < 64 {\n    map j < 3 {\n"
               "      fold l < %s {\n        %%0 = load x[3*l + j] : f32\n"
               "        %%1 = load x[64*l + i] : f32\n        yield fma %%0 %%1 sum64\n"
               "      } -> %%2 : f32\n      put y[64*j + i] = %%2\n    }\n  }\n");
    int64_t price[2];
    for (int k = 0; k < 2; k++) {
        struct strbuf text = strbuf_make(arena);
        strbuf_printf(&text, of_columns, k ? "100000" : "100");
        struct nest *n = nest_of_text(arena, text.text);
        mapped(n, false);
        price[k] = n->price;
    }
    ck_assert_int_gt(price[1], 4000000);
    ck_assert_int_lt(price[0], 50000);
}
END_TEST

// Few blocks do not have the memory of all: long columns that are not cut, for a map stands behind them, and that are.
START_TEST(a_price_sees_few_blocks)
{
    static const char *const behind[] = {"    map l < 2 {\n      put y[64*l + i] = %1\n    }\n",
                                         "    put y[i] = %1\n"};
    int64_t price[2];
    for (int k = 0; k < 2; k++) {
        struct strbuf text = strbuf_make(arena);
        strbuf_printf(&text, KERNEL("  par i < 64 {\n%s%s  }\n"),
                      SUM("k < 1000000", "x[64*k + i]", "%1"), behind[k]);
        struct nest *n = nest_of_text(arena, text.text);
        mapped(n, false);
        price[k] = n->price;
    }
    ck_assert_int_gt(price[0], 20 * price[1]);
}
END_TEST

static int64_t price_of_text(const char *text)
{
    struct nest *n = nest_of_text(arena, text);
    mapped(n, false);
    return n->price;
}

// What loops read again comes from near caches, and what each thread of a group makes for all is made often.
// Rows that neighbouring threads read, columns that they read side by side, and columns that each reads alone, for the
// threads of a group keep what they read.
START_TEST(a_price_sees_sectors)
{
#define FOLDS(at, local, put)                                                                  \
    "kernel k(x: f32[4194304], y: out f32[2048], z: out f32[4194304]) {\n" local               \
    "  par i < 2048 {\n    fold j < 2048 {\n      %0 = load x[" at "] : f32\n" put             \
    "      yield reduce_sum %0 sum64\n    } -> %1 : f32\n    put y[i] = %1\n"
    int64_t rows = price_of_text(FOLDS("2048*i + j", "", "") "  }\n}\n");
    int64_t columns = price_of_text(FOLDS("i + 2048*j", "", "") "  }\n}\n");
    int64_t kept =
        price_of_text(FOLDS("i + 2048*j", "  local row: f32[2048]\n",
                            "      put row[j] = %0\n") "    map k < 2048 {\n"
                                                       "      %2 = load row[k] : f32\n"
                                                       "      put z[i + 2048*k] = %2\n"
                                                       "    }\n  }\n}\n");
#undef FOLDS
    ck_assert_int_lt(columns, 2 * rows);
    ck_assert_int_gt(kept, 5 * rows);
    // Rows of 32 bytes: one number of each is a sector, and so are all of them.
    int64_t one = price_of_text("kernel k(x: f32[8388608], y: out f32[1048576]) {\n"
                                "  par i < 1048576 {\n    %0 = load x[8*i] : f32\n"
                                "    put y[i] = %0\n  }\n}\n");
    int64_t two = price_of_text("kernel k(x: f32[8388608], y: out f32[1048576]) {\n"
                                "  par i < 1048576 {\n    %0 = load x[8*i] : f32\n"
                                "    %1 = load x[8*i + 7] : f32\n    %2 = add %0, %1 : f32\n"
                                "    put y[i] = %2\n  }\n}\n");
    int64_t beside = price_of_text("kernel k(x: f32[8388608], y: out f32[1048576]) {\n"
                                   "  par i < 1048576 {\n    %0 = load x[i] : f32\n"
                                   "    put y[i] = %0\n  }\n}\n");
    ck_assert_int_gt(one, 2 * beside);
    ck_assert_int_lt(two, 3 * one / 2);
}
END_TEST

// Short folds of few points that lie along them have a warp each, unless its tree takes longer than a thread's terms.
START_TEST(threads_or_groups_by_price)
{
    static const struct {
        const char *points, *yield, *has;
    } rows[] = {
        {"i < 256, j < 64", "reduce_max %2 free, argmax %2 free", "par @thread"},
        {"i < 4, j < 64", "reduce_max %2 free, argmax %2 free", "par @group"},
    };
    for (int i = 0; i < 2; i++) {
        struct strbuf text = strbuf_make(arena);
        strbuf_printf(&text,
                      "kernel k(x: f32[16384], w: f32[4096], y: out f32[16384]) {\n"
                      "  par %s {\n    fold k < 64 {\n      %%0 = load x[64*i + k] : f32\n"
                      "      %%1 = load w[j + 64*k] : f32\n      %%2 = add %%0, %%1 : f32\n"
                      "      yield %s\n    } -> %%3 : f32, %%4 : f32, %%5 : i64\n"
                      "    put y[64*i + j] = %%3\n  }\n}\n",
                      rows[i].points, rows[i].yield);
        const char *mapping = mapped(nest_of_text(arena, text.text), false);
        ck_assert_msg(strstr(mapping, rows[i].has), "no %s in\n%s", rows[i].has, mapping);
    }
}
END_TEST

START_TEST(a_price_sees_what_is_done_again)
{
    const char *again = "kernel k(x: f32[64], y: out f32[16777216]) {\n"
                        "  par i < 262144, j < 64 {\n    %0 = load x[j] : f32\n"
                        "    put y[64*i + j] = %0\n  }\n}\n",
               *once = "kernel k(x: f32[16777216], y: out f32[16777216]) {\n"
                       "  par i < 262144, j < 64 {\n    %0 = load x[64*i + j] : f32\n"
                       "    put y[64*i + j] = %0\n  }\n}\n";
    ck_assert_int_lt(5 * price_of_text(again), 3 * price_of_text(once));
    // The same of blocks: memory alone would give what they read in 89 microseconds.
    ck_assert_int_lt(price_of_text("kernel k(x: f32[8192], y: out f32[8192]) {\n"
                                   "  par i < 8192 {\n" SUM(
                                       "k < 8192", "x[k]", "%1") "    put y[i] = %1\n  }\n}\n"),
                     60000);
    int64_t price[2];
    for (int k = 0; k < 2; k++) {
        struct strbuf text = strbuf_make(arena);
        strbuf_add(&text, "kernel k(x: f32[262144], y: out f32[33554432]) {\n"
                          "  par i < 262144 {\n    %0 = load x[i] : f32\n");
        int last = 0;
        for (; last < (k ? 40 : 1); last++)
            strbuf_printf(&text, "    %%%d = sin %%%d : f32\n", last + 1, last);
        strbuf_printf(&text,
                      "    map j < 128 {\n      %%%d = mul %%%d, %%%d : f32\n"
                      "      put y[128*i + j] = %%%d\n    }\n  }\n}\n",
                      last + 1, last, last, last + 1);
        price[k] = price_of_text(text.text);
    }
    ck_assert_int_gt(price[1], 3 * price[0]);
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
        struct strbuf report = strbuf_make(arena);
        ck_assert_msg(!map_nest_verify(arena, n, rows[i].is_phase, rows[i].trips, &report),
                      "%s", report.text);
        if (n->special == NEST_TRIPS) {
            n->threads[NEST_TRIPS_OF_LAUNCH] = 7;
            ck_assert_int_eq(map_nest_verify(arena, n, false, rows[i].trips, &report), 1);
            ck_assert_msg(strstr(report.text, "a launch does not make 7 trips"), "%s",
                          report.text);
        }
    }
}
END_TEST

// Of a kernel that makes u of t, and of a phase that does so where a loop makes t of u again: what it reads is written
// by no one else where memories have offsets of their own, as they have before these are planned.
START_TEST(offsets_are_asked_before_they_are_planned)
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
            p->is_planned = false;
        const struct map_operand *of = map_operands(arena, p)[0];
        ck_assert_int_eq(of[0].is_alone, i % 2);
        ck_assert_int_eq(of[0].is_constant, i == 1);
    }
}
END_TEST

// Texts that the mapping would not have written, for which there is no code: of the nest that `what` begins with, in
// whose mapped text `from` has become `to`.
static const struct {
    const char *what, *from, *to, *says;
} wrong[] = {
    {"points", "block 256", "block 256 group 3", "a block of 256 threads has no groups of 3"},
    {"points", "block 256", "block 96 group 96", "96 threads do not fold by halves"},
    {"points", "block 256", "block 256 group 64", "does not wait for 4 groups of 64"},
    {"points", "block 256", "block 40 group 8", "a block of 40 threads has no whole warps"},
    {"points", "block 256", "block 256 grid 2", "how many blocks there are is not said"},
    {"points", "block 256", "block 256 group 32", "a point is a thread's, not a group's"},
    {"points", "block 256", "block 256 trips 5", "such a kernel makes one trip"},
    {"points", "@thread i", "@row i", "blocks of threads do not share it by @row"},
    {"points", "@thread i", "i", "blocks of threads do not share it by @nobody"},
    {"points", "@vector 4", "@vector 4 @rows 2", "rows of whole vectors of another axis"},
    {"points", "1048576 @vector 4", "1048575 @vector 4 at_once 2",
     "what is read at once are whole vectors"},
    {"points", "@vector 4", "@vector 4 turns 3", "are no 3 turns"},
    {"a number", "134217728 @vector 4 turns 4", "134217000 @vector 4 turns 4",
     "33554250 vectors of 256 threads are no 4 turns"},
    {"a group's turns", "turns 10", "turns 9", "640 vectors of 64 threads are no 9 turns"},
    {"a group's turns", "at_once 2", "at_once 4", "640 vectors of 64 threads are no 4 turns"},
    {"a transposed read", "block 256", "block 128",
     "the tiles of 128 threads are not of 32 by 32 points"},
    {"a transposed read", "i < 1024", "i < 1056", "one the mirror image of the other"},
    {"many tiles", "@tile 64 {", "@tile 64 turns 2 {", "a block has no 2 tiles"},
    {"a transposed read", "i < 1024 @tile 32", "i < 1024 @tile 64",
     "such points have no tiles"},
    {"rows that lie", "group 32", "group 32 columns 8",
     "what a thread has of a column goes one by one"},
    {"rows that lie", "fold @thread", "fold @owner", "not shared out @owner"},
    {"rows that lie", "at_once 8", "at_once 8 terms @shared", "a group shares no such terms"},
    {"rows that lie", "k < 1024 @vector 4", "k < 1023 @vector 4",
     "a row of 1023 is no vectors of 4 for 32 threads"},
    {"rows that lie", "group 32", "group 16",
     "16 threads do not bring blocks of a fold together"},
    {"rows that lie", "at_once 8", "turns 3 at_once 8", "its blocks are 1 rounds, not 3"},
    {"rows that lie", "group 32", "group 256",
     "a row of 1024 is no vectors of 4 for 256 threads"},
    {"rows of neighbours", "i < 65536", "i < 65532",
     "16383 vectors of points are no 32 columns"},
    {"rows of neighbours", "fold @thread k < 1024", "fold @thread k < 1024 @vector 4",
     "what a thread has of a column goes one by one"},
    {"few of them: parts", "k < 4096", "k < 0", "its parts are not those of blocks of threads"},
    {"few of them: parts", "fold @thread", "fold @serial",
     "blocks of threads do not share it by @serial"},
    {"few points with long", "i < 4 ", "i < 0 ", "have no locals in common"},
    {"few points with long", "fold @thread k < 1048576 @vector 4 at_once 16",
     "fold k < 1048576", "do not share it by @nobody"},
    {"few points with long", "group 64", "group 32",
     "blocks of threads have its blocks, not groups of 32"},
    {"a long fold: all", "at_once 16", "turns 4 at_once 16",
     "a block of threads has one round"},
    {"loops side by side", "group 32", "group 16",
     "a block that has all of a kernel is no 2 groups"},
    {"a long running fold", "@vector 4", "@vector 32", "a thread has no 32 elements of it"},
    {"a long running fold", "i < 100000", "i < 1000", "its parts are not those of warps"},
    {"a long running fold", "block 256", "block 128", "those of blocks of 256 threads"},
    {"those of neighbouring", "i < 1100", "i < 1100 @vector 4",
     "a thread has no 4 elements of it"},
    {"one that reads rows", "par @thread", "par @grid", "do not share it by @serial"},
    {"updates at indices", "block 256", "block 128", "elements are those of blocks of 256"},
    {"updates at indices", "j < 1000000", "j < 10", "threads do not have its elements"},
    {"a row of a group", "map @row j < 1024 @vector 4", "map @row j < 1024 @vector 2",
     "go through it in another order"},
    {"a small product", " @rows 2", " @rows 2 @vector 2", "2 axes have lanes"},
    {"what of a loop over time", "t < 1000", "t < 100",
     "nothing of it that is worth a warp is the same for all points"},
    {"what of a loop over time", "par @thread i < 100000", "par @thread i < 100000 @vector 4",
     "has no warp more than points"},
    {"a tape that no", "@segment 25", "@segment 50",
     "not made again by a loop that comes back"},
    {"a tape that no", "s < 1000", "s < 999", "not made again by a loop that comes back"},
    {"sums over", "as network", "as attention", "it is no attention of groups of 4 threads"},
    {"sums over", "z: f32[8] @register", "z: f32[8] @shared", "z is not where its threads"},
    {"sums over", "group 4", "group 8", "it is no network of groups of 8 threads"},
};

static const char *replaced(const char *text, const char *from, const char *to)
{
    struct strbuf s = strbuf_make(arena);
    const char *at = strstr(text, from);
    ck_assert_msg(at, "no '%s' in\n%s", from, text);
    strbuf_add_bytes(&s, text, (size_t)(at - text));
    strbuf_printf(&s, "%s%s", to, at + strlen(from));
    return s.text;
}

START_TEST(what_has_no_code_is_refused)
{
    struct strbuf report = strbuf_make(arena);
    size_t at = 0;
    while (at < GPU_NESTS &&
           strncmp(gpu_nests[at].what, wrong[_i].what, strlen(wrong[_i].what)) != 0)
        at++;
    ck_assert_msg(at < GPU_NESTS, "%s", wrong[_i].what);
    const char *text = mapped(nest_of_text(arena, gpu_nests[at].text), gpu_nests[at].is_phase);
    struct nest *n = nest_of_text(arena, replaced(text, wrong[_i].from, wrong[_i].to));
    int faults = nest_verify(n, &report);
    faults = faults ? faults : map_nest_verify(arena, n, false, 1, &report);
    ck_assert_msg(faults && strstr(report.text, wrong[_i].says), "%s: '%s' instead of '%s'",
                  wrong[_i].to, report.text ? report.text : "nothing", wrong[_i].says);
}
END_TEST

#define ARGMAX(length)                                                                         \
    KERNEL("  fold i < " length " {\n    %0 = load x[i] : f32\n    yield argmax %0 free\n"     \
           "  } -> %1 : f32, %2 : i64\n  put y[0] = %1\n")
#define SCAN(length)                                                                           \
    KERNEL("  scan i < " length " {\n    %0 = load x[i] : f32\n"                               \
           "    yield reduce_sum %0 serial -> %1 : f32\n    put y[i] = %1\n  }\n")

#define UPDATES_OF(points)                                                                     \
    "kernel k(x: f32[1048576], n: i32[1048576], y: inout f32[5000]) {\n"                       \
    "  %0 = const 0x0000000000000000 : i64\n  %1 = const 0x00000000000003e7 : i64\n"           \
    "  par i < " points " {\n  seq j < 1000 {\n    %2 = load n[j] : i32\n"                     \
    "    %3 = convert %2 : i64\n    %4 = max %3, %0 : i64\n    %5 = min %4, %1 : i64\n"        \
    "    %6 = load x[i + 5*j] : f32\n    %7 = load y[5*%5 + i] : f32\n"                        \
    "    %8 = add %7, %6 : f32\n    put y[5*%5 + i] = %8\n  }\n  }\n}\n"

// What threads have in common besides their buffers.
START_TEST(scratch_of_threads)
{
    static const struct {
        const char *text;
        bool is_phase;
        uint64_t bytes;
    } rows[] = {
        {KERNEL(MAP("i < 1048576", "i", "i")), false, 0},
        {KERNEL(SUM("k < 1000", "x[k]", "%1") "    put y[0] = %1\n"), false, 0},
        // 245 blocks of 4,096 terms, two of them a block of threads; with indices of 8 bytes.
        {KERNEL(SUM("k < 1000000", "x[k]", "%1") "    put y[0] = %1\n"), false, 512},
        {ARGMAX("1000000"), false, 512 + 1024},
        // In any order 1,024 blocks of 1,024 elements, four of them a block of threads.
        {ARGMAX("1048576"), false, 1024 + 2048},
        // In one pass words of 8 bytes: 8,192 tiles, 256 groups of these, and a warp's for 8 of such groups.
        {SCAN("67108864"), false, 8 * (8192 + 256 + 32)},
        {SCAN("67108864"), true, 4 * 4096},
        {SCANS("i < 8", "j < 40000", "40000*i + j"), false, 8 * 40 * 4},
        // Of each chunk of turns where bins begin, and of each turn a number of 4 bytes and 2 that say which place of
        // the bin is updated.  A multiprocessor has a chunk at most, unless these would be short.
        {UPDATES("  seq j < 1000000 {\n" UPDATE("j") "  }\n"), false,
         4 * (123 * 1025 + 15) / 64 * 64 + 123 * 8192 * 6},
        {UPDATES("  seq j < 200000 {\n" UPDATE("j") "  }\n"), false,
         4 * (98 * 1025 + 15) / 64 * 64 + 98 * 2048 * 6},
        {UPDATES("  seq j < 60000 {\n" UPDATE("j") "  }\n"), false,
         4 * (30 * 513 + 15) / 64 * 64 + 30 * 2048 * 6},
        {UPDATES("  seq j < 100 {\n" UPDATE("j") "  }\n"), false, 4 * 272 + 112 * 6},
        // Of many points of few turns each there are fewer bins of each.
        {ROWS_OF_UPDATES("1000"), false, 4 * 2000 * 17 + 2000 * 1008 * 6},
        // Of three points with the same turns the numbers of each; of as many as there are, each has its order.
        {UPDATES_OF("3"), false, 4 * 272 + 1008 * (2 + 3 * 4)},
        {UPDATES_OF("5"), false, 4 * ((5 * 257 + 15) / 16 * 16) + 5 * 1008 * (2 + 4)},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct nest *n = nest_of_text(arena, rows[i].text);
        const struct map_gpu m = {.nest = n, .arena = arena, .is_phase = rows[i].is_phase};
        const char *text = mapped(n, rows[i].is_phase);
        ck_assert_msg(map_scratch_of(&m, n) == rows[i].bytes, "%llu bytes of\n%s",
                      (unsigned long long)map_scratch_of(&m, n), text);
    }
}
END_TEST

// It is memory of the steps, which the plan puts where something else was before, and which is behind all others where
// memory has been planned without it.
START_TEST(scratch_is_planned)
{
    static const char text[] =
        "jot nest 1\nprogram \"p\" {\n  inputs 1\n  outputs 2 donated -1 -1\n  arena 16384\n"
        "  constants 0\n  memory input 0 : f32[1000000] \"x\"\n"
        "  memory output 0 : f32[4096] \"y\"\n  memory output 1 : f32[1] \"z\"\n"
        "  memory temporary at 0 : f32[4096] \"t\"\n  step kernel 0 (0, 3)\n"
        "  step kernel 1 (3, 1)\n  step kernel 2 (0, 2)\n}\n"
        "kernel k0(x: f32[1000000], y: out f32[4096]) {\n" MAP(
            "i < 4096", "i", "i") "}\n"
                                  "kernel k1(x: f32[4096], y: out f32[4096]) {\n" MAP(
                                      "i < 4096", "i",
                                      "i") "}\n"
                                           "kernel k2(x: f32[1000000], y: out f32[1]) {\n" SUM(
                                               "k < 1000000", "x[k]",
                                               "%1") "    put y[0] = %1\n}\n";
    struct strbuf report = strbuf_make(arena);
    struct nest_program *p;
    ck_assert_msg(nest_program_parse(arena, text, &p) == JOT_OK, "%s", jot_error_message());
    map_program_to_gpu(p, false);
    ck_assert_uint_eq(p->memories.count, 5);
    ck_assert_uint_eq(p->steps.at[2].n_memories, 3);
    ck_assert_uint_eq(p->memories.at[4].offset, 16384);
    ck_assert_uint_eq(p->arena_bytes, 16384 + 512);
    map_program_to_gpu(p, false);
    ck_assert_uint_eq(p->memories.count, 5);
    // A text that says another size is refused.
    ck_assert_int_eq(map_program_verify(p, false, NULL), 0);
    vec_last(&p->nests.at[2]->buffers).count = 256;
    ck_assert_int_eq(map_program_verify(p, false, NULL), 1);
    vec_last(&p->nests.at[2]->buffers).count = 512;
    plan_memory(p, NULL, false);
    ck_assert_uint_eq(p->memories.at[4].offset, 0);
    ck_assert_uint_eq(p->arena_bytes, 16384);
    ck_assert_msg(!nest_program_verify(p, &report) && !plan_verify(p, &report), "%s",
                  report.text);
}
END_TEST

// Kernels that do not wait for one another have memory of their own each; the third one waits for the first.
START_TEST(scratch_of_kernels_at_once)
{
    static const char text[] =
        "jot nest 1\nprogram \"p\" {\n  inputs 1\n  outputs 2 donated -1 -1\n  arena 0\n"
        "  constants 0\n  memory input 0 : f32[1000000] \"x\"\n"
        "  memory output 0 : f32[1] \"y\"\n  memory output 1 : f32[1] \"z\"\n"
        "  step kernel 0 (0, 1)\n  step kernel 0 (0, 2)\n  step kernel 0 (0, 1)\n}\n"
        "kernel k(x: f32[1000000], y: out f32[1]) {\n" SUM("k < 1000000", "x[k]",
                                                           "%1") "    put y[0] = %1\n}\n";
    struct nest_program *p;
    ck_assert_msg(nest_program_parse(arena, text, &p) == JOT_OK, "%s", jot_error_message());
    map_program_to_gpu(p, false);
    plan_memory(p, NULL, false);
    ck_assert_uint_eq(p->memories.at[3].offset, 0);
    ck_assert_uint_eq(p->memories.at[4].offset, 512);
    ck_assert_uint_eq(p->memories.at[5].offset, 0);
    ck_assert_uint_eq(p->arena_bytes, 1024);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, scratch_of_kernels_at_once);
    tcase_add_loop_test(t, levels_of_a_gpu, 0, (int)GPU_NESTS);
    tcase_add_test(t, trips_of_a_launch);
    tcase_add_test(t, scratch_of_threads);
    tcase_add_test(t, scratch_is_planned);
    tcase_add_test(t, offsets_are_asked_before_they_are_planned);
    tcase_add_loop_test(t, what_has_no_code_is_refused, 0, (int)(sizeof wrong / sizeof *wrong));
    tcase_add_test(t, a_price_sees_who_works);
    tcase_add_test(t, axes_are_numbered_in_their_order);
    tcase_add_test(t, a_price_sees_turns);
    tcase_add_test(t, a_price_sees_few_blocks);
    tcase_add_test(t, a_price_sees_sectors);
    tcase_add_test(t, threads_or_groups_by_price);
    tcase_add_test(t, a_price_sees_what_is_done_again);
    tcase_add_test(t, many_columns_are_threads);
    tcase_add_test(t, serial_work_is_found);
}

int main(void) { return suite_run("map_gpu", add_tests); }
