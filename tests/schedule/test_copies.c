// SPDX-License-Identifier: Apache-2.0
// Copies that kernels of elements put: of program texts, what is left of them, and that the results are the same.
#include "schedule/copies.h"
#include "schedule/internal.h"

#include "base/status.h"
#include "schedule/schedule.h"
#include "support/nest_eval.h"
#include "support/suite.h"

#include <string.h>

static struct arena *arena;

static void begin(void) { arena = arena_create(); }

static void end(void) { arena_release(arena); }

#define PROGRAM(steps, kernel)                                                                 \
    "jot nest 1\nprogram \"p\" {\n  inputs 1\n  outputs 2 donated -1 -1\n  arena 24\n"         \
    "  constants 0\n  memory input 0 : f32[6] \"x\"\n  memory output 0 : f32[6] \"y\"\n"       \
    "  memory output 1 : f32[6] \"z\"\n  memory temporary at 0 : f32[6]\n" steps "}\n" kernel
#define NEGATION                                                                               \
    "kernel k0_neg(x: f32[6], y: out f32[6]) {\n  par i < 6 {\n    %0 = load x[i] : f32\n"     \
    "    %1 = neg %0 : f32\n    put y[i] = %1\n  }\n}\n"

static const struct {
    const char *what, *text;
    uint32_t steps;
} programs[] = {
    {"what is made is put twice",
     PROGRAM("  step kernel 0 (0, 1) \"\"\n  step copy (2, 1) \"\"\n", NEGATION), 1},
    {"two copies of it",
     PROGRAM("  step kernel 0 (0, 3) \"\"\n  step copy (1, 3) \"\"\n  step copy (2, 3) \"\"\n",
             NEGATION),
     1},
    // A local, which is no memory of the step, stands in front of the buffer of the first copy.
    {"a copy of a copy, of a kernel with a local",
     PROGRAM("  step kernel 0 (0, 3) \"\"\n  step copy (1, 3) \"\"\n  step copy (2, 1) \"\"\n",
             "kernel k0_neg(x: f32[6], y: out f32[6]) {\n  local h: f32[1]\n  par i < 6 {\n"
             "    %0 = load x[i] : f32\n    %1 = neg %0 : f32\n    put h[0] = %1\n"
             "    %2 = load h[0] : f32\n    put y[i] = %2\n  }\n}\n"),
     1},
    {"an input is copied",
     PROGRAM("  step kernel 0 (0, 1) \"\"\n  step copy (2, 0) \"\"\n", NEGATION), 2},
    {"the place of the copy is used before",
     PROGRAM("  step kernel 0 (0, 1) \"\"\n  step kernel 0 (1, 2) \"\"\n"
             "  step kernel 0 (2, 3) \"\"\n  step copy (2, 1) \"\"\n",
             NEGATION),
     4},
    {"a fold is made, not elements",
     PROGRAM("  step kernel 0 (0, 1) \"\"\n  step copy (2, 1) \"\"\n",
             "kernel k0_sum(x: f32[6], y: out f32[6]) {\n  par i < 6 {\n    fold k < 6 {\n"
             "      %0 = load x[k] : f32\n      yield reduce_sum %0 sum64\n    } -> %1 : f32\n"
             "    put y[i] = %1\n  }\n}\n"),
     2},
};
enum { PROGRAMS = sizeof programs / sizeof *programs };

static struct nest_program *parsed(const char *text)
{
    struct nest_program *p;
    ck_assert_msg(nest_program_parse(arena, text, &p) == JOT_OK, "%s\n%s", jot_error_message(),
                  text);
    return p;
}

static void run(const struct nest_program *p, float out[2][6])
{
    float x[6] = {1, -2, 3, 0.5f, 8, -13};
    memset(out, 0, 2 * sizeof *out);
    ck_assert_msg(nest_program_eval(p, (void *[]){x}, (void *[]){out[0], out[1]}) == JOT_OK,
                  "%s", jot_error_message());
}

START_TEST(kernels_put_copies)
{
    float want[2][6], got[2][6];
    struct nest_program *p = parsed(programs[_i].text);
    struct strbuf text = strbuf_make(arena);
    run(p, want);
    schedule_put_copies(p, arena);
    nest_program_print(&text, p);
    ck_assert_msg(p->steps.count == programs[_i].steps, "%s: %u steps\n%s", programs[_i].what,
                  p->steps.count, text.text);
    struct strbuf faults = strbuf_make(arena);
    ck_assert_msg(nest_program_verify(p, &faults) == 0, "%s: %s\n%s", programs[_i].what,
                  faults.text, text.text);
    run(p, got);
    ck_assert_msg(!memcmp(got, want, sizeof got), "%s\n%s", programs[_i].what, text.text);
}
END_TEST

// A kernel puts so many, and equal ones are one.
START_TEST(many_copies_stay_few_kernels)
{
    enum { COPIES = 100 };
    struct strbuf s = strbuf_make(arena);
    strbuf_add(&s, "jot nest 1\nprogram \"p\" {\n  inputs 1\n  outputs 1 donated -1\n");
    strbuf_printf(&s, "  arena %d\n  constants 0\n  memory input 0 : f32[6] \"x\"\n",
                  64 * COPIES);
    strbuf_add(&s, "  memory output 0 : f32[6] \"y\"\n");
    for (int i = 0; i < COPIES; i++)
        strbuf_printf(&s, "  memory temporary at %d : f32[6]\n", 64 * i);
    strbuf_add(&s, "  step kernel 0 (0, 1) \"\"\n");
    for (int i = 0; i < COPIES; i++)
        strbuf_printf(&s, "  step copy (%d, 1) \"\"\n", 2 + i);
    strbuf_printf(&s, "}\n%s", NEGATION);
    struct nest_program *p = parsed(s.text);
    schedule_put_copies(p, arena);
    uint32_t most = p->steps.at[0].n_memories;
    ck_assert_uint_gt(most, 4);
    ck_assert_uint_lt(most, COPIES / 2);
    ck_assert_uint_eq(p->steps.count, 1 + COPIES - (most - 2));
    ck_assert_uint_le(p->nests.count, most);
    // What is done to one of them is not done to others.
    ck_assert_uint_gt(p->nests.count, 1);
    for (uint32_t i = 0; i < p->nests.count; i++) {
        ck_assert_int_eq(p->nests.at[i]->axes.at[0].extent, 6);
        p->nests.at[i]->axes.at[0].extent = 1;
    }
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_checked_fixture(t, begin, end);
    tcase_add_loop_test(t, kernels_put_copies, 0, PROGRAMS);
    tcase_add_test(t, many_copies_stay_few_kernels);
}

int main(void) { return suite_run("schedule_copies", add_tests); }
