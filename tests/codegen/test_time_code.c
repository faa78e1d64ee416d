// SPDX-License-Identifier: Apache-2.0
// What the machine code of loops over time is made of: registers, operands in memory, masked loads.
#include "nest_check.h"
#include "time_programs.h"

#include "codegen/codegen.h"

#include <stdio.h>
#include <string.h>

JOT_API void jot_codegen_entry(const struct cg_request *request, struct cg_response *response);

#define COUNT(a) (sizeof(a) / sizeof *(a))

// The target's assembly of the first kernel of the text.
static const char *assembly_of(const char *text, const char *target)
{
    struct nest **nests;
    int count;
    ck_assert_int_eq(nest_parse(nest_check_arena, text, &count, &nests), JOT_OK);
    struct strbuf s = strbuf_make(nest_check_arena);
    nest_program_print(&s, run_native_wrap(nest_check_arena, nests[0]));
    struct cg_request request = {.program = s.text, .target = target, .want = CG_WANT_ASSEMBLY};
    struct cg_response r;
    jot_codegen_entry(&request, &r);
    ck_assert_msg(r.status == JOT_OK, "%s", r.message);
    struct strbuf all = strbuf_make(nest_check_arena);
    strbuf_printf(&all, "%s", r.assembly);
    r.release(&r);
    return all.text;
}

// Its innermost loop.
static const char *loop_of(const char *text, const char *target)
{
    const char *assembly = assembly_of(text, target);
    // The first label that a jump behind it goes to.
    const char *body = NULL, *end = NULL;
    for (const char *at = assembly; (at = strstr(at, "\n\tj")); at++) {
        char label[32];
        if (sscanf(at, " j%*[a-z] %29[.A-Z0-9_]", label) != 1)
            continue;
        strcat(label, ":");
        const char *begin = strstr(assembly, label);
        if (!end && begin && begin < at) {
            body = begin;
            end = at;
        }
    }
    ck_assert_msg(body != NULL, "no loop in %s", assembly);
    struct strbuf loop = strbuf_make(nest_check_arena);
    strbuf_printf(&loop, "%.*s", (int)(end - body), body);
    return loop.text;
}

// LLVM 19 ends the process over masked loads that its pass for processors which forward no stores to them
// looks at, as those of rows of 13 in rows of 33 for AVX2.
START_TEST(masked_rows)
{
    static const char rows[] = "kernel rows(x: f32[208], y: out f32[1089]) {"
                               "  %0 = const 0x00000000 : f32"
                               "  %1 = const 0x0000000000000000 : i64"
                               "  %2 = const 0x0000000000000010 : i64"
                               "  %3 = const 0x000000000000000d : i64"
                               "  par i < 33, j < 33 {"
                               "    %4 = index i - 12 : i64"
                               "    %5 = ge %4, %1 : bool"
                               "    %6 = lt %4, %2 : bool"
                               "    %7 = and %5, %6 : bool"
                               "    %8 = index j - 8 : i64"
                               "    %9 = ge %8, %1 : bool"
                               "    %10 = and %7, %9 : bool"
                               "    %11 = lt %8, %3 : bool"
                               "    %12 = and %10, %11 : bool"
                               "    %13 = load x[13*i + j - 164] if %12 : f32"
                               "    %14 = select %12, %13, %0 : f32"
                               "    put y[33*i + j] = %14"
                               "  }"
                               "}";
    ck_assert_ptr_nonnull(loop_of(rows, "haswell +avx2,+fma"));
}
END_TEST

// A masked load of no lane takes long where its page is not there, so it is at the start of the array, all of it.
START_TEST(masked_loads_stay_near)
{
    static const char *const places[] = {"512*i + j - 512", "-j + 512*i - 1"};
    struct strbuf joined = strbuf_make(nest_check_arena);
    strbuf_printf(&joined,
                  "kernel joined(x: f32[512], y: f32[512], z: out f32[1024]) {"
                  "  %%0 = const 0x0000000000000001 : i64"
                  "  par i < 2, j < 512 {"
                  "    %%1 = index i : i64"
                  "    %%2 = lt %%1, %%0 : bool"
                  "    %%3 = load x[j] if %%2 : f32"
                  "    %%4 = ge %%1, %%0 : bool"
                  "    %%5 = load y[%s] if %%4 : f32"
                  "    %%6 = select %%2, %%3, %%5 : f32"
                  "    put z[512*i + j] = %%6"
                  "  }"
                  "}",
                  places[_i]);
    int n;
    struct nest **nests;
    struct strbuf program = strbuf_make(nest_check_arena);
    ck_assert_int_eq(nest_parse(nest_check_arena, joined.text, &n, &nests), JOT_OK);
    nest_program_print(&program, run_native_wrap(nest_check_arena, nests[0]));
    struct cg_request request = {.want = CG_WANT_LLVM, .program = program.text};
    struct cg_response r;
    jot_codegen_entry(&request, &r);
    ck_assert_int_eq(r.status, JOT_OK);
    // The last place that is chosen so is that of y, and nothing is taken from it behind the choice.
    const char *near = NULL;
    for (const char *at = r.llvm; (at = strstr(at, "select i1 ")); at++) {
        const char *end = strchr(at, '\n'), *zero = strstr(at, ", i64 0\n");
        near = zero && zero < end ? end : near;
    }
    ck_assert_msg(near && !strstr(near, ", -63\n"), "%s", r.llvm);
    r.release(&r);
}
END_TEST

static int occurrences(const char *text, const char *word)
{
    int n = 0;
    for (const char *at = text; (at = strstr(at, word)); at++)
        n++;
    return n;
}

static const struct {
    const char *target, *reg;
    int vectors, read; // side by side; numbers that a step only reads and registers do not hold
} processors[] = {
    {"skylake-avx512 +avx512f,+avx512bw,+avx512dq,+avx512vl", "zmm", 8, 0},
    {"haswell +avx2,+fma", "ymm", 7, 7},
};

// As many vectors side by side as registers hold the state of; none of it goes to memory.
START_TEST(state_in_registers)
{
    const char *loop =
        loop_of(nest_check_instance(spring, 4096 * 7, 1000, "f32"), processors[_i].target);
    ck_assert_msg(strstr(loop, processors[_i].reg), "%s", loop);
    ck_assert_msg(occurrences(loop, "vmulps") == processors[_i].vectors, "%s", loop);
    ck_assert_msg(occurrences(loop, "(%rsp") <= processors[_i].read, "%s", loop);
    for (const char *at = loop; (at = strstr(at, "(%rsp")); at++)
        ck_assert_msg(at[strlen("(%rsp)")] == ',', "a store: %s", loop);
}
END_TEST

// More numbers than registers are operands in memory.
static const char numbers[] = "kernel numbers(x: f32[%B], y: out f32[%B]) {"
                              "  %1 = const 0x3f000001 : f32 %2 = const 0x3f000002 : f32"
                              "  %3 = const 0x3f000003 : f32 %4 = const 0x3f000004 : f32"
                              "  par b < %B {"
                              "    %10 = load x[b] : f32"
                              "    seq t < %T carry %11 = %10, %12 = %10 {"
                              "      %13 = sub %1, %12 : f32 %14 = fma %11, %13, %12 : f32"
                              "      %15 = fma %2, %14, %12 : f32 %16 = mul %3, %15 : f32"
                              "      %17 = fma %4, %16, %11 : f32 %18 = sub %1, %17 : f32"
                              "      %19 = fma %15, %18, %17 : f32 %20 = fma %2, %19, %12 : f32"
                              "      %21 = mul %3, %20 : f32 %22 = fma %4, %21, %17 : f32"
                              "      yield %20, %22"
                              "    } -> %23, %24"
                              "    %25 = add %23, %24 : f32"
                              "    put y[b] = %25"
                              "  }"
                              "}";

START_TEST(numbers_in_memory)
{
    nest_check_text(nest_check_instance(numbers, 300, 17, "f32"));
    const char *loop =
        loop_of(nest_check_instance(numbers, 4096, 1000, "f32"), processors[_i].target);
    ck_assert_msg(strstr(loop, "vfmadd"), "%s", loop);
    ck_assert_msg(!strstr(loop, "vbroadcast"), "%s", loop);
    nest_check_end();
}
END_TEST

// A guard that is the same for all lanes is a branch: some processors are slow at masked stores.
START_TEST(guards_of_all_lanes_branch)
{
    static const char rows[] = "kernel rows(x: f32[%B], n: i32[%T], y: inout f32[%B]) {"
                               "  %0 = const 0x00000000 : i32"
                               "  par b < %B {"
                               "    seq t < %T {"
                               "      %1 = load n[t] : i32 %2 = ge %1, %0 : bool"
                               "      %3 = load x[b] : f32 %4 = load y[b] : f32"
                               "      %5 = add %4, %3 : f32"
                               "      put y[b] = %5 if %2"
                               "    }"
                               "  }"
                               "}";
    nest_check_text(nest_check_instance(rows, 300, 17, "f32"));
    const char *code =
        assembly_of(nest_check_instance(rows, 4096, 100, "f32"), processors[1].target);
    ck_assert_msg(strstr(code, "vaddps") && !strstr(code, "vmaskmov"), "%s", code);
    nest_check_end();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("time code");
    TCase *c = tcase_create("code");
    tcase_set_timeout(c, 60);
    tcase_add_checked_fixture(c, nest_check_setup, nest_check_teardown);
    tcase_add_test(c, masked_rows);
    tcase_add_loop_test(c, masked_loads_stay_near, 0, 2);
    tcase_add_loop_test(c, state_in_registers, 0, COUNT(processors));
    tcase_add_loop_test(c, numbers_in_memory, 0, COUNT(processors));
    tcase_add_test(c, guards_of_all_lanes_branch);
    suite_add_tcase(s, c);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? 1 : 0;
}
