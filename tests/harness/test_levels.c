// SPDX-License-Identifier: Apache-2.0
// Mapped texts of which one number or word is another one: each is refused, or there is code for it.  On a fake GPU that
// gives the bits of the nest without levels.
#include "base/status.h"
#include "codegen/codegen.h"
#include "harness/isolate.h"
#include "map/gpu_groups.h"
#include "map/gpu_nests.h"
#include "support/level_mutants.h"
#include "support/map_nest.h"
#include "support/nest_eval.h"
#include "support/nest_text.h"
#include "support/run_native.h"
#include "support/sample.h"
#include "support/small_nest.h"
#include "support/suite.h"

#include <stdlib.h>

#define ONE_IN (has_gpu() ? 3 : 29) // of which a fake GPU has fewer
#define SECONDS 60
#define MOST_POINTS 16384 // in which threads have whole turns

JOT_API void jot_codegen_entry(const struct cg_request *request, struct cg_response *response);

static struct arena *arena;

static void setup(void) { arena = arena_create(); }
static void teardown(void) { arena_release(arena); }

static bool has_gpu(void) { return getenv("JOT_TEST_EMULATED"); }

static bool is_wrong(const struct nest *n, struct strbuf *report)
{
    return nest_verify(n, report) || map_nest_verify(arena, n, false, 1, report);
}

// Numbers whose sum is the same in any order where that of a GPU's running folds is another one.
static struct small_data numbers_of(const struct nest *n)
{
    struct small_data d = small_data_of(arena, n, 0);
    bool is_running = map_has_kind(n, NEST_SCAN);
    uint32_t given = 0;
    for (uint32_t b = 0; b < n->buffers.count; b++) {
        const struct nest_buffer *x = &n->buffers.at[b];
        if (x->role == NEST_LOCAL)
            continue;
        float *at = d.of[given++];
        for (int64_t i = 0; is_running && x->dtype == JOT_F32 && i < x->count; i++)
            at[i] = (float)((i * 7 + b) % 5);
    }
    return d;
}

static void compile(const struct nest *n, struct strbuf *report)
{
    struct strbuf text = strbuf_make(arena);
    nest_program_print(&text, run_native_wrap(arena, nest_copy(arena, n)));
    struct cg_request request = {
        .want = CG_WANT_VERIFIED, .program = text.text, .target = "cuda sm_90"};
    struct cg_response r;
    jot_codegen_entry(&request, &r);
    if (r.status != JOT_OK)
        strbuf_printf(report, "no code: %s", r.message);
    r.release(&r);
}

// Whether the nest can be run, what it gives, and what its code gives.
static void run(struct nest *n, struct strbuf *report)
{
    struct small_data in = numbers_of(n), got = numbers_of(n), want = numbers_of(n);
    const void *inputs[SMALL_BUFFERS];
    void *outputs[SMALL_BUFFERS];
    if (nest_eval(nest_without_levels(arena, n), want.of) != JOT_OK)
        return;
    struct nest_program *p = run_native_wrap(arena, n);
    for (uint32_t i = 0; i < p->memories.count; i++)
        if (p->memories.at[i].kind == NEST_INPUT)
            inputs[p->memories.at[i].index] = in.of[i];
        else
            outputs[p->memories.at[i].index] = got.of[i];
    if (run_native(arena, p, (void *const *)inputs, outputs) != JOT_OK) {
        strbuf_printf(report, "no run: %s", jot_error_message());
        return;
    }
    for (uint32_t i = 0; i < p->memories.count; i++)
        if (memcmp(got.of[i], want.of[i], run_native_bytes(&p->memories.at[i])) != 0)
            strbuf_printf(report, "%s differs", p->memories.at[i].name);
}

static void try_text(void *text, struct strbuf *report)
{
    struct nest **all;
    int count;
    if (nest_parse(arena, text, &count, &all) != JOT_OK || is_wrong(all[0], NULL))
        return;
    if (has_gpu())
        run(all[0], report);
    else
        compile(all[0], report);
}

// The text of the nest with its levels, of few elements where it is to run.
static const char *mapped_text(const char *text)
{
    struct nest *n = nest_of_text(arena, text), *small = n;
    struct strbuf s = strbuf_make(arena), report = strbuf_make(arena);
    map_nest_to_gpu(arena, n, false);
    for (int64_t points = SMALL_POINTS; has_gpu() && points <= MOST_POINTS; points *= 2) {
        small = nest_copy(arena, n);
        small_axes(small, points);
        small_buffers(small);
        if (!is_wrong(small, NULL))
            break;
    }
    nest_print(&s, small);
    ck_assert_msg(has_gpu() || !is_wrong(small, &report), "%s%s", report.text, s.text);
    return s.text;
}

START_TEST(words_are_followed_or_refused)
{
    if (gpu_nests[_i].is_phase)
        return;
    const char *text = mapped_text(gpu_nests[_i].text);
    struct level_mutants m = level_mutants_of(arena, text);
    for (uint32_t k = 0; k < m.all.count; k++) {
        struct strbuf report = strbuf_make(arena);
        const char *mutant = level_mutant_text(arena, text, &m.all.at[k]);
        if (!sample_takes((uint64_t)_i * 7 + k, ONE_IN))
            continue;
        ck_assert_msg(isolate_run(try_text, (void *)mutant, SECONDS, &report) && !report.length,
                      "%s\n%s", report.text, mutant);
    }
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 600);
    tcase_add_loop_test(t, words_are_followed_or_refused, 0, (int)GPU_NESTS);
}

int main(void) { return suite_run("harness_levels", add_tests); }
