// SPDX-License-Identifier: Apache-2.0
// Threads that follow the levels of a nest give the bits of the nest without them, and levels that are wrong are found:
// by the verifier, by the interpreter, or by the bits.
#include "base/status.h"
#include "map/gpu_nests.h"
#include "map/map.h"
#include "nest/nest_support.h"
#include "support/map_nest.h"
#include "support/nest_eval.h"
#include "support/nest_text.h"
#include "support/sample.h"
#include "support/small_nest.h"
#include "support/suite.h"

#include <string.h>

static struct arena *arena;
static uint64_t seed; // of the numbers

static void setup(void)
{
    arena = arena_create();
    seed = 0;
}
static void teardown(void) { arena_release(arena); }

static const char *text_of(const struct nest *n)
{
    struct strbuf s = strbuf_make(arena);
    nest_print(&s, n);
    return s.text;
}

// ---- Both ways

static jot_status run(const struct nest *n, struct small_data *d)
{
    *d = small_data_of(arena, n, seed);
    return nest_eval(n, d->of);
}

// Whether the bits are the same; NaN is none of them.
static bool agree(const struct nest *n, const struct small_data *x, const struct small_data *y)
{
    uint32_t given = 0;
    for (uint32_t b = 0; b < n->buffers.count; b++) {
        const struct nest_buffer *of = &n->buffers.at[b];
        if (of->role == NEST_LOCAL)
            continue;
        size_t bytes = (size_t)of->count * jot_dtype_size(of->dtype);
        if (memcmp(x->of[given], y->of[given], bytes) != 0)
            return false;
        given++;
    }
    return true;
}

static struct nest *small_mapped(const struct gpu_nest *of)
{
    struct nest *n = nest_of_text(arena, of->text);
    map_nest_to_gpu(arena, n, of->is_phase);
    small_axes(n, SMALL_POINTS);
    small_buffers(n);
    return n;
}

START_TEST(threads_give_the_same_bits)
{
    struct nest *n = small_mapped(&gpu_nests[_i]), *plain = nest_without_levels(arena, n);
    struct small_data with, without;
    ck_assert_msg(run(plain, &without) == JOT_OK, "%s\n%s", jot_error_message(),
                  text_of(plain));
    ck_assert_msg(run(n, &with) == JOT_OK, "%s\n%s", jot_error_message(), text_of(n));
    ck_assert_msg(agree(n, &with, &without), "%s:\n%s", gpu_nests[_i].what, text_of(n));
}
END_TEST

// Nests by hand, however long their loops may seem.
START_TEST(nests_by_hand_give_the_same_bits)
{
    const char *text = read_nest_file(arena, nest_files[_i]);
    for (uint64_t i = 0; i < 64; i++) {
        struct nest *n = nest_of_text(arena, text);
        struct strbuf report = strbuf_make(arena);
        struct small_data with, without;
        map_nest_as_if_longer(arena, n, i);
        ck_assert_msg(!nest_verify(n, &report), "%s%s", report.text, text_of(n));
        ck_assert_msg(run(nest_without_levels(arena, n), &without) == JOT_OK, "%s",
                      jot_error_message());
        ck_assert_msg(run(n, &with) == JOT_OK, "%s\n%s", jot_error_message(), text_of(n));
        ck_assert_msg(agree(n, &with, &without), "%s", text_of(n));
    }
}
END_TEST

// Sums whose order is ignored, each thread with what is at hand, are others.
START_TEST(orders_are_kept)
{
    struct nest *n = small_mapped(&gpu_nests[_i]), *plain = nest_without_levels(arena, n);
    struct small_data with, without;
    uint32_t changed = 0;
    for (uint32_t i = 0; i < n->statements.count; i++) {
        struct nest_statement *s = &n->statements.at[i];
        struct nest_combine *all = arena_copy(arena, s->combines, s->n_combines * sizeof *all);
        for (uint32_t k = 0; s->level == NEST_THREAD && k < s->n_combines; k++) {
            changed += all[k].order == NEST_SUM64;
            all[k].order = all[k].order == NEST_SUM64 ? NEST_FREE : all[k].order;
        }
        s->combines = all;
    }
    if (!changed)
        return;
    ck_assert_int_gt(nest_verify(n, NULL), 0);
    bool differs = false; // Few numbers may have the same sum all the same.
    for (seed = 0; seed < 8 && !differs; seed++) {
        ck_assert_msg(run(plain, &without) == JOT_OK && run(n, &with) == JOT_OK, "%s",
                      jot_error_message());
        differs = !agree(n, &with, &without);
    }
    ck_assert_msg(differs, "%s:\n%s", gpu_nests[_i].what, text_of(n));
}
END_TEST

// ---- Levels that are wrong

#define HEAD "kernel k(x: f32[4096], n: i32[4096], w: f32[64], y: inout f32[8192]) "
#define ROWS(local, last)                                                                      \
    HEAD "block 256 group 32 price 1 {\n  local t: f32[64]" local "\n  par @group i < 8 {\n"   \
         "    map @row k < 64 @vector 2 {\n      %0 = load x[64*i + k] : f32\n"                \
         "      put t[k] = %0\n    }\n" last "  }\n}\n"
#define READ(at)                                                                               \
    "    map @row l < 64 @vector 2 {\n      %1 = load t[" at "] : f32\n"                       \
    "      put y[64*i + l] = %1\n    }\n"
#define UPDATES_OF(level, from)                                                                \
    HEAD "block 256 price 1 {\n  seq " level "j < 500 {\n    %0 = load n[j] : i32\n"           \
         "    %1 = load x[j] : f32\n    %2 = load y[" from "] : f32\n    %3 = add %2, %1 : "   \
         "f32\n    put y[%0] = %3\n  }\n}\n"
#define STEPS(seq, tape, reads)                                                                \
    HEAD "block 256 price 1 {\n  local tape: f32[32]" tape "\n  par @thread i < 8 {\n"         \
         "    %0 = load x[i] : f32\n    seq @serial t < 32" seq " carry %1 = %0 {\n"           \
         "      put tape[t] = %1\n" reads "      %2 = mul %1, %9 : f32\n      yield %2\n"      \
         "    } -> %3\n    put y[i] = %3\n"                                                    \
         "    seq @serial s < 32 reverse carry %4 = %3 {\n      %5 = load tape[s] : f32\n"     \
         "      %6 = mul %4, %5 : f32\n      yield %6\n    } -> %7\n"                          \
         "    put y[i + 8] = %7\n  }\n}\n"
#define RUNNING(level, from, to)                                                               \
    HEAD "block 256 price 1 {\n  scan " level " i < 4000 {\n    %0 = load " from "\n"          \
         "    yield reduce_max %0 free -> %1 : f32\n    put y[" to "] = %1\n  }\n}\n"

// The right one, the wrong one, and what is said of it; NULL: the bits differ.  What the verifier says of it, which
// knows no indices that are data.
static const struct {
    const char *what, *right, *wrong, *says, *verifier;
} mutants[] = {
    {"another thread's element of a row: each has its own", ROWS(" @shared", READ("-l + 63")),
     ROWS("", READ("-l + 63")), "t[1] is read by a thread that has not put it",
     "each thread has its own t, and reads what another one puts"},
    {"another thread's element of a row that threads keep", ROWS(" @shared", READ("-l + 63")),
     ROWS(" @register", READ("-l + 63")), "t[1] is read by a thread that has not put it",
     "each thread has its own t, and reads what another one puts"},
    {"its own", ROWS(" @register", READ("l")), NULL, NULL, NULL},
    {"its own, which it does not come to in the order in which it keeps them",
     ROWS(" @register", READ("l")),
     HEAD "block 256 group 32 price 1 {\n  local t: f32[64] @register\n  par @group i < 8 {\n"
          "    map @row k < 64 @vector 2 {\n      %0 = load x[64*i + k] : f32\n"
          "      put t[k] = %0\n    }\n    map @thread l < 64 {\n      %1 = load t[l] : f32\n"
          "      put y[64*i + l] = %1\n    }\n  }\n}\n",
     "is read by a thread that has not put it",
     "threads that keep t go through it in another order"},
    {"a row that all threads need",
     ROWS(" @shared", "    %2 = load t[5] : f32\n    put y[i] = %2\n"),
     ROWS("", "    %2 = load t[5] : f32\n    put y[i] = %2\n"),
     "t[5] is read by a thread that has not put it: all threads",
     "each thread has its own t, and reads what another one puts"},
    {"what the other half of a row puts in the same loop",
     HEAD "block 32 group 32 grid 1 price 1 {\n  map @thread k < 64 {\n"
          "    %0 = load x[k] : f32\n    put y[k] = %0\n    %1 = load y[k] : f32\n"
          "    put y[k + 64] = %1\n  }\n}\n",
     HEAD "block 32 group 32 grid 1 price 1 {\n  map @thread k < 64 {\n"
          "    %2 = load n[k] : i32\n    %0 = load x[k] : f32\n    put y[k] = %0\n"
          "    %1 = load y[%2] : f32\n    put y[k + 64] = %1\n  }\n}\n",
     "is written while another point or thread reads it", NULL},
    {"two threads of a group with one element",
     HEAD "block 1 group 1 grid 1 price 1 {\n  map @serial k < 64 {\n"
          "    %0 = load x[k] : f32\n    %2 = load n[k] : i32\n    put y[%2] = %0\n  }\n}\n",
     HEAD "block 32 group 32 grid 1 price 1 {\n  map @thread k < 64 {\n"
          "    %0 = load x[k] : f32\n    %2 = load n[k] : i32\n    put y[%2] = %0\n  }\n}\n",
     "is written by two points or threads", NULL},
    {"loops of one block, in the order that they stand in, and of all",
     HEAD "block 32 group 32 grid 1 price 1 {\n  map @thread k < 64 {\n"
          "    %0 = load x[k] : f32\n    put y[k] = %0\n  }\n  fold @thread l < 64 {\n"
          "    %1 = load y[-l + 63] : f32\n    yield reduce_max %1 free\n  } -> %2 : f32\n"
          "  put y[64] = %2\n}\n",
     HEAD "block 32 group 32 price 1 {\n  map @thread k < 64 {\n"
          "    %0 = load x[k] : f32\n    put y[k] = %0\n  }\n  fold @thread l < 64 {\n"
          "    %1 = load y[-l + 63] : f32\n    yield reduce_max %1 free\n  } -> %2 : f32\n"
          "  put y[64] = %2\n}\n",
     "is read while another point or thread writes it", NULL},
    {"a row of the points that groups have, and that all blocks have",
     ROWS(" @shared", READ("-l + 63")),
     HEAD "block 256 group 32 price 1 {\n  local t: f32[64] @shared\n  par @grid i < 8 {\n"
          "    map @thread k < 64 @vector 2 {\n      %0 = load x[64*i + k] : f32\n"
          "      put t[k] = %0\n    }\n" READ("-l + 63") "  }\n}\n",
     "is read by a thread that has not put it",
     "t is put by blocks of threads that do not wait for one another"},
    {"updates, of which each is its element's own, or reads another one",
     UPDATES_OF("@owner ", "%0"), UPDATES_OF("@owner ", "0"),
     "is written while another point or thread reads it", NULL},
    {"a tape that is made again of what has changed meanwhile",
     STEPS(" @segment 8", " @again", "      %9 = load x[i] : f32\n"),
     STEPS(" @segment 8", " @again", "      %9 = load y[i] : f32\n"), NULL, NULL},
    {"a step that is of no segment",
     STEPS(" @segment 8", " @again", "      %9 = load x[i] : f32\n"),
     STEPS("", " @again", "      %9 = load x[i] : f32\n"), NULL,
     "tape is made again by no loop"},
    {"a running fold of what it has put itself", RUNNING("@thread", "x[i] : f32", "i"),
     RUNNING("@thread", "y[i] : f32", "i + 1"),
     "is written while another point or thread reads it", NULL},
};

START_TEST(wrong_levels_are_found)
{
    struct nest *right = nest_of_text(arena, mutants[_i].right);
    struct nest *plain = nest_without_levels(arena, right);
    struct strbuf report = strbuf_make(arena);
    struct small_data with, without;
    ck_assert_msg(!nest_verify(right, &report), "%s", report.text);
    ck_assert_msg(run(plain, &without) == JOT_OK && run(right, &with) == JOT_OK, "%s: %s",
                  mutants[_i].what, jot_error_message());
    ck_assert_msg(agree(right, &with, &without), "%s", mutants[_i].what);
    if (!mutants[_i].wrong)
        return;
    struct nest *wrong = nest_of_text(arena, mutants[_i].wrong);
    int faults = nest_verify(wrong, &report);
    if (mutants[_i].verifier) {
        ck_assert_msg(faults, "%s: the verifier finds nothing", mutants[_i].what);
        ck_assert_msg(strstr(report.text, mutants[_i].verifier), "%s", report.text);
    }
    jot_status status = run(wrong, &with);
    if (mutants[_i].says) {
        ck_assert_msg(status != JOT_OK, "%s: nothing is found", mutants[_i].what);
        ck_assert_msg(strstr(jot_error_message(), mutants[_i].says), "%s", jot_error_message());
        return;
    }
    if (mutants[_i].verifier)
        return;
    plain = nest_without_levels(arena, wrong);
    ck_assert_msg(!faults && status == JOT_OK && run(plain, &without) == JOT_OK, "%s%s",
                  report.text, jot_error_message());
    ck_assert_msg(!agree(wrong, &with, &without), "%s: the bits are the same",
                  mutants[_i].what);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60); // threads of blocks take turns on few cores
    tcase_add_sampled_test(t, threads_give_the_same_bits, 0, (int)GPU_NESTS);
    tcase_add_loop_test(t, nests_by_hand_give_the_same_bits, 0, (int)NEST_FILES);
    tcase_add_sampled_test(t, orders_are_kept, 0, (int)GPU_NESTS);
    tcase_add_loop_test(t, wrong_levels_are_found, 0, (int)(sizeof mutants / sizeof *mutants));
}

int main(void) { return suite_run("map_sharing", add_tests); }
