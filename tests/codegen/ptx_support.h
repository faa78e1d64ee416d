// SPDX-License-Identifier: Apache-2.0
// PTX without a GPU: kernels and programs as the assembly that is made of them, which the
// assembler of the toolkit, where there is one, takes without keeping registers in memory.
#ifndef CODEGEN_PTX_SUPPORT_H
#define CODEGEN_PTX_SUPPORT_H

#include "support/run_native.h"

#include "base/status.h"
#include "codegen/codegen.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

JOT_API void jot_codegen_entry(const struct cg_request *request, struct cg_response *response);

static struct arena *arena;

static inline void setup(void) { arena = arena_create(); }
static inline void teardown(void) { arena_release(arena); }

// The code of a program; that of the text with its levels is the same.
static inline struct cg_response compiled_program(const char *text, const char *target)
{
    struct cg_request request = {
        .want = CG_WANT_ASSEMBLY | CG_WANT_VERIFIED, .program = text, .target = target};
    struct cg_response r, mapped, again;
    jot_codegen_entry(&request, &r);
    if (r.status != JOT_OK)
        return r;
    request.want = CG_WANT_MAPPED;
    jot_codegen_entry(&request, &mapped);
    request.want = CG_WANT_ASSEMBLY | CG_WANT_VERIFIED;
    request.program = mapped.text;
    jot_codegen_entry(&request, &again);
    ck_assert_msg(again.status == JOT_OK, "%s in\n%s", again.message, mapped.text);
    ck_assert_msg(strcmp(again.assembly, r.assembly) == 0, "%s\n%s\n%s", mapped.text,
                  again.assembly, r.assembly);
    again.release(&again);
    mapped.release(&mapped);
    return r;
}

static inline const char *program_of(const char *kernel)
{
    int n;
    struct nest **nests;
    ck_assert_msg(nest_parse(arena, kernel, &n, &nests) == JOT_OK, "%s", jot_error_message());
    struct strbuf program = strbuf_make(arena);
    nest_program_print(&program, run_native_wrap(arena, nests[0]));
    return program.text;
}

// The text of one kernel with its levels, and without that of the program.
static inline const char *mapped_of(const char *text, const char *target)
{
    struct cg_request request = {.want = CG_WANT_MAPPED | CG_WANT_VERIFIED,
                                 .program = program_of(text),
                                 .target = target};
    struct cg_response r;
    jot_codegen_entry(&request, &r);
    ck_assert_msg(r.status == JOT_OK, "%s", r.message);
    const char *copy = arena_text(arena, strstr(r.text, "\nkernel ") + 1);
    r.release(&r);
    return copy;
}

// What compiling the text of one kernel gives.
static inline struct cg_response compiled(const char *text, const char *target)
{
    return compiled_program(program_of(text), target);
}

static inline int count(const char *text, const char *what)
{
    int n = 0;
    for (; (text = strstr(text, what)) != NULL; text += strlen(what))
        n++;
    return n;
}

static inline const char *replaced(const char *text, const char *from, const char *to)
{
    const char *at = strstr(text, from);
    struct strbuf s = strbuf_make(arena);
    ck_assert_msg(at, "no '%s' in\n%s", from, text);
    strbuf_add_bytes(&s, text, (size_t)(at - text));
    strbuf_printf(&s, "%s%s", to, at + strlen(from));
    return s.text;
}

static inline const char *ptx_for(const char *text, const char *target)
{
    struct cg_response r = compiled(text, target);
    ck_assert_msg(r.status == JOT_OK, "%s", r.message);
    const char *copy = arena_text(arena, r.assembly);
    r.release(&r);
    // Each kernel begins by waiting for those in front of it.
    ck_assert_int_eq(count(copy, "\n{\n\tgriddepcontrol.wait;\n"),
                     count(copy, ".visible .entry "));
    return copy;
}

static inline const char *ptx_of(const char *text) { return ptx_for(text, "cuda sm_90"); }

// Assembled without spills, and without products that wait for one another; true also where there is no assembler.
static inline void check_assembles(const char *ptx)
{
    if (system("command -v ptxas >/dev/null 2>&1") != 0)
        return;
    char path[64], command[256], line[256];
    snprintf(path, sizeof path, "/tmp/jot-ptx-%d.ptx", (int)getpid());
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fputs(ptx, f);
    fclose(f);
    snprintf(command, sizeof command, "ptxas -arch=sm_90%s -v -o /dev/null %s 2>&1",
             strstr(ptx, ".target sm_90a") ? "a" : "", path);
    f = popen(command, "r");
    ck_assert_ptr_nonnull(f);
    struct strbuf said = strbuf_make(arena);
    while (fgets(line, sizeof line, f))
        strbuf_add(&said, line);
    ck_assert_msg(pclose(f) == 0, "%s", said.text);
    unlink(path);
    ck_assert_msg(count(said.text, "bytes spill stores") ==
                      count(said.text, " 0 bytes spill stores"),
                  "%s", said.text);
    ck_assert_msg(!strstr(said.text, "serialized"), "%s", said.text);
}

static inline void check_clean(const char *ptx)
{
    ck_assert_ptr_null(strstr(ptx, ".local"));
    // Denormal numbers are what they are; approximations are of others.
    ck_assert_int_eq(count(ptx, ".ftz"), count(ptx, ".approx.ftz"));
    check_assembles(ptx);
}

static inline const char *ptx_of_program(const char *text)
{
    struct cg_response r = compiled_program(text, "cuda sm_90");
    ck_assert_msg(r.status == JOT_OK, "%s", r.message);
    const char *copy = arena_text(arena, r.object);
    r.release(&r);
    return copy;
}

#define AXPY(n)                                                                                \
    "kernel axpy(x: f32[" n "], y: f32[" n "], z: out f32[" n "]) {\n"                         \
    "  %0 = const 0x40200000 : f32\n"                                                          \
    "  par i < " n " {\n"                                                                      \
    "    %1 = load x[i] : f32\n"                                                               \
    "    %2 = load y[i] : f32\n"                                                               \
    "    %3 = mul %0, %1 : f32\n"                                                              \
    "    %4 = add %3, %2 : f32\n"                                                              \
    "    put z[i] = %4\n"                                                                      \
    "  }\n"                                                                                    \
    "}\n"

static inline int run_ptx(const char *name, void (*add)(TCase *))
{
    Suite *s = suite_create(name);
    TCase *c = tcase_create("ptx");
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_set_timeout(c, 120);
    add(c);
    suite_add_tcase(s, c);
    SRunner *runner = srunner_create(s);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

#endif
