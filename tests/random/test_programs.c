// SPDX-License-Identifier: Apache-2.0
// Random programs: what must hold of every program, checked on many, by two processes or
// JOT_TEST_WORKERS.
//
//     JOT_TEST_SEED=7 JOT_TEST_FIRST=20000 JOT_TEST_COUNT=10000 JOT_TEST_WORKERS=16 test_programs
//     JOT_TEST_ONE=12345 test_programs      one program, and the smallest that fails like it
#include "harness/isolate.h"
#include "random/programs.h"
#include "support/number.h"
#include "support/sample.h"
#include "support/suite.h"

#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_WORKERS = 256, CHUNK = 50, SECONDS = 120, FAULT_SECONDS = 5, REPORTED = 3 };

static uint64_t seed, start, count, workers;

// One in four is derivable, one in four has loops, and half of both has both.
static unsigned kind_of(uint64_t program)
{
    return (program % 4 == 3 ? PROGRAM_DERIVABLE : 0u) |
           (program % 8 == 5 || program % 8 == 7 || program % 64 == 51 || program % 64 == 54
                ? PROGRAM_LOOPS
                : 0u) |
           (program % 16 == 5 || program % 16 == 15 ? PROGRAM_RECORDS : 0u) |
           (program % 32 == 26 ? PROGRAM_WIDE : 0u) |
           (program % 16 == 11 || program % 64 == 44 ? PROGRAM_LARGE : 0u) |
           (program % 32 == 3 || program % 32 == 7 ? PROGRAM_LANES : 0u) |
           (program % 32 == 19 || program % 32 == 22 ? PROGRAM_PIECES : 0u);
}

static unsigned properties_of(uint64_t program)
{
    unsigned kind = kind_of(program),
             p = PROGRAM_PRINTS | PROGRAM_CANONICAL | PROGRAM_SIMPLIFIES;
    if (kind & PROGRAM_LARGE)
        return PROGRAM_PRINTS | PROGRAM_COMPILES;
    if (kind & (PROGRAM_LANES | PROGRAM_PIECES))
        p = PROGRAM_PRINTS | PROGRAM_CANONICAL | PROGRAM_UNSHARDS | PROGRAM_DEVICES;
    if (kind & PROGRAM_DERIVABLE)
        p |= PROGRAM_TRANSPOSES | PROGRAM_MAPS | PROGRAM_COMMUTES;
    if (kind & (PROGRAM_LANES | PROGRAM_PIECES))
        return p;
    if (program % 3 == 0)
        p |= PROGRAM_SCHEDULES;
    if (program % 9 == 1)
        p |= PROGRAM_SEPARATE;
    if (program % 7 == 1 && !(kind & PROGRAM_RECORDS))
        p |= PROGRAM_SHARES;
    if (program % 5 == 2)
        p |= PROGRAM_CHECKS;
    if (program % 8 == 2 || program % 16 == 7)
        p |= PROGRAM_NATIVE;
    if (kind & PROGRAM_DERIVABLE && kind & PROGRAM_LOOPS)
        p |= PROGRAM_UNROLLS;
    if (kind & PROGRAM_RECORDS)
        p |= PROGRAM_KEEPS;
    if (kind & PROGRAM_LOOPS && (getenv("JOT_TEST_FULL") || program / 16 % 8 == 0))
        p |= PROGRAM_MACHINE;
    return p;
}

// -- One program ------------------------------------------------------------------------------

struct range {
    uint64_t first, end;
    unsigned only; // properties, 0: those of the program
};

static struct ir_module *make(uint64_t program, uint32_t *out)
{
    struct ir_module *m = ir_module_create();
    *out = program_make(m, hash_combine(seed, program), kind_of(program));
    return m;
}

static const char *name_of(unsigned property)
{
    int k = 0;
    while (property >> k > 1)
        k++;
    return program_property_names[k];
}

struct failure {
    struct ir_module *m;
    uint64_t program;
    uint32_t f;
    unsigned property;
};

static void check_again(void *ctx, struct strbuf *report)
{
    const struct failure *x = ctx;
    uint64_t own = hash_combine(seed, x->program);
    program_check(x->m, x->f, own, kind_of(x->program), x->property, report);
}

static void describe(struct failure x, const char *why, struct strbuf *report)
{
    const struct ir_graph *g = ir_function(x.m, x.f);
    strbuf_printf(report, "! program %" PRIu64 ": \"%s\" does not hold\n%s%.4000s\n", x.program,
                  name_of(x.property), ir_graph_text(g), why);
    uint64_t own = hash_combine(seed, x.program);
    x.f = program_reduce(x.m, x.f, own, kind_of(x.program), x.property);
    strbuf_printf(report, "the same, reduced:\n%s", ir_graph_text(ir_function(x.m, x.f)));
    struct strbuf last = strbuf_make(x.m->arena);
    isolate_run(check_again, &x, SECONDS, &last);
    strbuf_printf(report, "%.3000s\n", last.text);
}

static bool check_one(uint64_t program, unsigned properties, struct strbuf *report)
{
    struct failure x = {.program = program};
    x.m = make(program, &x.f);
    struct strbuf why = strbuf_make(x.m->arena);
    x.property = program_check(x.m, x.f, hash_combine(seed, program), kind_of(program),
                               properties, &why);
    if (x.property)
        describe(x, why.text, report);
    ir_module_release(x.m);
    return x.property == 0;
}

static void check_range(void *ctx, struct strbuf *report)
{
    const struct range *r = ctx;
    int failures = 0;
    for (uint64_t i = r->first; i < r->end && failures < REPORTED; i++)
        failures += !check_one(i, r->only ? r->only : properties_of(i), report);
}

struct crash {
    uint64_t program;
    unsigned property;
    const char *why;
};

static void describe_crash(void *ctx, struct strbuf *report)
{
    const struct crash *c = ctx;
    struct failure x = {.program = c->program, .property = c->property};
    x.m = make(c->program, &x.f);
    describe(x, c->why, report);
    ir_module_release(x.m);
}

// A program that ends its process: which property does it, and the smallest that does.  This process
// touches nothing of it.
static void check_crash(uint64_t program, struct strbuf *report)
{
    for (unsigned p = 1; p < PROGRAM_FAULT; p <<= 1) {
        if (!(properties_of(program) & p) && p != PROGRAM_VERIFIES)
            continue;
        struct strbuf own = strbuf_make(report->arena), text = strbuf_make(report->arena);
        struct range one = {program, program + 1, p};
        if (isolate_run(check_range, &one, SECONDS, &own)) {
            strbuf_add(report, own.text);
            continue;
        }
        struct crash c = {program, p, own.text};
        if (!isolate_run(describe_crash, &c, SECONDS, &text))
            strbuf_printf(report, "! program %" PRIu64 ": \"%s\" does not hold\n%s", program,
                          name_of(p), own.text);
        strbuf_add(report, text.text);
        return;
    }
    strbuf_printf(report,
                  "! program %" PRIu64 " ended its process, and no property alone does\n",
                  program);
}

static void check_chunk(uint64_t first, uint64_t end, struct strbuf *report)
{
    struct range all = {first, end, 0};
    struct strbuf text = strbuf_make(report->arena);
    if (isolate_run(check_range, &all, SECONDS, &text)) {
        strbuf_add(report, text.text);
        return;
    }
    for (uint64_t i = first; i < end; i++) {
        struct range one = {i, i + 1, 0};
        struct strbuf own = strbuf_make(report->arena);
        if (isolate_run(check_range, &one, SECONDS, &own))
            strbuf_add(report, own.text);
        else
            check_crash(i, report);
    }
}

// -- All --------------------------------------------------------------------------------------

static void work(int worker, FILE *to)
{
    struct arena *arena = arena_create();
    struct strbuf report = strbuf_make(arena);
    uint64_t chunks = (count + CHUNK - 1) / CHUNK;
    for (uint64_t i = (uint64_t)worker; i < chunks && report.length < 20000; i += workers) {
        uint64_t end = (i + 1) * CHUNK;
        check_chunk(start + i * CHUNK, start + (end < count ? end : count), &report);
    }
    fputs(report.text, to);
    fclose(to);
    arena_release(arena);
}

START_TEST(programs_hold)
{
    FILE *reports[MOST_WORKERS];
    pid_t children[MOST_WORKERS];
    fflush(NULL);
    for (int i = 0; i < (int)workers; i++) {
        reports[i] = tmpfile();
        ck_assert_ptr_nonnull(reports[i]);
        children[i] = fork();
        if (children[i] == 0) {
            work(i, reports[i]);
            _exit(0);
        }
    }
    bool is_good = true;
    for (int i = 0; i < (int)workers; i++) {
        int status = 0;
        waitpid(children[i], &status, 0);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
            fprintf(stderr, "worker %d ended with status %#x\n", i, (unsigned)status);
            is_good = false;
        }
        rewind(reports[i]);
        char line[4096];
        while (fgets(line, sizeof line, reports[i])) {
            fputs(line, stderr);
            is_good = false;
        }
        fclose(reports[i]);
    }
    ck_assert_msg(is_good, "JOT_TEST_SEED=%" PRIu64 ", %" PRIu64 " programs", seed, count);
}
END_TEST

static void check_for_faults(void *ctx, struct strbuf *report)
{
    const struct failure *x = ctx;
    struct strbuf why = strbuf_make(x->m->arena);
    uint64_t own = hash_combine(seed, x->program);
    if (program_check(x->m, x->f, own, kind_of(x->program), PROGRAM_FAULT, &why))
        strbuf_add(report, "!");
}

// A compiler that is wrong on purpose is found, and what is left of the programs is small.  Loops that
// it leaves without an end are passed over.
START_TEST(failures_become_small)
{
    int found = 0;
    for (uint64_t program = 0; found < 6 && program < 2000; program++) {
        if (kind_of(program) & PROGRAM_LARGE)
            continue;
        uint32_t f;
        struct ir_module *m = make(program, &f);
        struct failure x = {.m = m, .program = program, .f = f};
        struct strbuf report = strbuf_make(m->arena);
        if (isolate_run(check_for_faults, &x, FAULT_SECONDS, &report) && report.length) {
            found++;
            uint32_t small = program_reduce(m, f, hash_combine(seed, program), kind_of(program),
                                            PROGRAM_FAULT);
            const struct ir_graph *g = ir_function(m, small);
            ck_assert_msg(g->nodes.count <= 8, "%u nodes of %u are left\n%.3000s",
                          g->nodes.count, ir_function(m, f)->nodes.count, ir_graph_text(g));
        }
        ir_module_release(m);
    }
    ck_assert_int_eq(found, 6);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_set_timeout(t, 900 + (double)count / 2);
    tcase_add_test(t, failures_become_small);
    tcase_add_test(t, programs_hold);
}

int main(void)
{
    setenv("FAKE_CUDA_COUNT", "8", 1);
    seed = number_from("JOT_TEST_SEED", 20240601);
    count = number_from("JOT_TEST_COUNT", sample_part(2000, &start));
    start = number_from("JOT_TEST_FIRST", getenv("JOT_TEST_COUNT") ? 0 : start);
    workers = number_from("JOT_TEST_WORKERS", 2);
    workers = workers < 1 ? 1 : workers > MOST_WORKERS ? MOST_WORKERS : workers;
    printf("seed %" PRIu64 ", %" PRIu64 " programs\n", seed, count);
    if (getenv("JOT_TEST_ONE")) {
        struct arena *arena = arena_create();
        struct strbuf report = strbuf_make(arena);
        uint64_t program = number_from("JOT_TEST_ONE", 0);
        uint32_t f;
        struct ir_module *m = make(program, &f);
        fputs(ir_graph_text(ir_function(m, f)), stdout);
        check_chunk(program, program + 1, &report);
        fputs(report.text, stdout);
        return report.length != 0;
    }
    return suite_run("programs", add_tests);
}
