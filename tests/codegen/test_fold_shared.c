// SPDX-License-Identifier: Apache-2.0
// Folds of few points, whose blocks threads of a processor share: the bits of the interpreter of nests.
#include "base/launch.h"
#include "codegen/codegen.h"
#include "nest_check.h"
#include "support/nest_text.h"
#include "support/run_native.h"
#include "support/suite.h"

JOT_API void jot_codegen_entry(const struct cg_request *request, struct cg_response *response);

// The steps of the kernel of a text, and chunks of the first.
static uint32_t steps_of(const char *text, int64_t *out_chunks)
{
    struct strbuf program = strbuf_make(nest_check_arena);
    nest_program_print(&program,
                       run_native_wrap(nest_check_arena, nest_of_text(nest_check_arena, text)));
    struct cg_request request = {.program = program.text};
    struct cg_response r;
    struct rt_plan plan;
    jot_codegen_entry(&request, &r);
    ck_assert_msg(r.status == JOT_OK, "%s", r.message);
    ck_assert_int_eq(rt_plan_read(r.plan, r.plan_size, &plan), JOT_OK);
    uint32_t n = plan.step_count;
    *out_chunks = (plan.steps[0].total + plan.steps[0].grain - 1) / plan.steps[0].grain;
    r.release(&r);
    return n;
}

// Threads share the blocks of a fold whose points are few, whichever axis has lanes, with values of the point in front
// and behind, and lanes past the end; and points where there are enough of them.
START_TEST(folds_of_few_points)
{
    static const struct {
        int count;
        const char *points, *first, *second, *to;
        bool is_shared;
    } cases[] = {{16, "i < 16", "i + 16*k", "k", "i", true},
                 {5, "i < 5", "i + 5*k", "k", "i", true},
                 {15, "i < 15", "20000*i + k", "k", "i", true},
                 {28, "i < 7, j < 4", "i + 7*k", "20000*j + k", "i + 7*j", true},
                 {20, "i < 20", "20000*i + k", "k", "i", false}};
    int64_t chunks;
    struct strbuf text = strbuf_make(nest_check_arena);
    strbuf_printf(&text,
                  "kernel k(x: f32[560000], z: f32[140000], y: out f32[%d], w: out i64[%d], "
                  "v: out bool[%d]) {\n"
                  "  par %s {\n    %%0 = load z[%s] : f32\n    fold k < 20000 {\n"
                  "      %%1 = load x[%s] : f32\n      %%2 = load z[%s] : f32\n"
                  "      %%3 = lt %%1, %%0 : bool\n"
                  "      yield fma %%1 %%2 sum64, argmax %%1 free, reduce_and %%3 free\n"
                  "    } -> %%4 : f32, %%5 : f32, %%6 : i64, %%7 : bool\n"
                  "    %%8 = mul %%4, %%0 : f32\n    put y[%s] = %%8\n    put w[%s] = %%6\n"
                  "    put v[%s] = %%7\n  }\n}\n",
                  cases[_i].count, cases[_i].count, cases[_i].count, cases[_i].points,
                  cases[_i].to, cases[_i].first, cases[_i].second, cases[_i].to, cases[_i].to,
                  cases[_i].to);
    nest_check_text(text.text);
    nest_check_end();
    uint32_t steps = steps_of(text.text, &chunks);
    ck_assert_uint_eq(steps, cases[_i].is_shared ? 2 : 1);
    ck_assert_int_ge(chunks, 2);
}
END_TEST

// So they do where a fold takes what the one before it gives.
START_TEST(second_folds_of_few_points)
{
    const char *at = _i ? "i + 12*" : "130000*i + ";
    int64_t chunks;
    struct strbuf text = strbuf_make(nest_check_arena);
    strbuf_printf(
        &text,
        "kernel k(x: f32[1560000], y: out f32[12], z: out f32[12]) {\n"
        "  %%0 = const 0x3f000000 : f32\n  par i < 12 {\n    fold j < 130000 {\n"
        "      %%1 = load x[%sj] : f32\n      yield reduce_sum %%1 sum64\n    } -> %%2 : f32\n"
        "    %%3 = mul %%2, %%0 : f32\n    fold k < 130000 {\n"
        "      %%4 = load x[%sk] : f32\n      %%5 = sub %%4, %%3 : f32\n"
        "      yield fma %%5 %%5 sum64\n    } -> %%6 : f32\n"
        "    put y[i] = %%6\n    put z[i] = %%3\n  }\n}\n",
        at, at);
    nest_check_text(text.text);
    nest_check_end();
    ck_assert_uint_eq(steps_of(text.text, &chunks), 4);
    ck_assert_int_ge(chunks, 2);
}
END_TEST

// What is compared with the index of a point, behind the folds or between them, changes no vector of theirs.
START_TEST(folds_of_compared_points)
{
    static const char *const between[] = {
        "", "    fold j < 20000 {\n      %8 = load x[i + 64*j] : f32\n"
            "      %9 = sub %8, %6 : f32\n"
            "      yield fma %9 %9 sum64\n    } -> %10 : f32\n"
            "    put z[i] = %10\n"};
    struct strbuf text = strbuf_make(nest_check_arena);
    strbuf_printf(&text,
                  "kernel k(x: f32[1280000], y: out f32[64]%s) {\n  %%0 = const "
                  "0x0000000000000030 : i64\n"
                  "  %%1 = const 0x3f000000 : f32\n  par i < 64 {\n    fold k < 20000 {\n"
                  "      %%2 = load x[i + 64*k] : f32\n      yield reduce_sum %%2 sum64\n"
                  "    } -> %%3 : f32\n    %%4 = index i : i64\n    %%5 = lt %%4, %%0 : bool\n"
                  "    %%6 = select %%5, %%3, %%1 : f32\n%s    %%7 = mul %%6, %%1 : f32\n"
                  "    put y[i] = %%7\n  }\n}\n",
                  _i ? ", z: out f32[64]" : "", between[_i]);
    int64_t chunks;
    nest_check_text(text.text);
    nest_check_end();
    ck_assert_uint_eq(steps_of(text.text, &chunks), _i ? 4 : 2);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_checked_fixture(t, nest_check_setup, nest_check_teardown);
    tcase_add_loop_test(t, folds_of_few_points, 0, 5);
    tcase_add_loop_test(t, second_folds_of_few_points, 0, 2);
    tcase_add_loop_test(t, folds_of_compared_points, 0, 2);
}

int main(void) { return suite_run("fold_shared", add_tests); }
