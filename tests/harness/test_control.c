// SPDX-License-Identifier: Apache-2.0
// Loops and branches as machine code, each as one kernel and as steps, under every transform and
// under two: the evaluator's bits.
#include "harness/native.h"
#include "schedule/control_schedule.h"
#include "support/sample.h"

enum { LANES = 70 }; // vectors in turns, single ones and a part of one

// Transforms, one letter each, the first of them first.
static const char *const transforms[] = {"",  "m",  "s",  "ms", "f",  "fm", "mf",
                                         "r", "rm", "mr", "rr", "fr", "rs"};

static uint32_t transformed(uint32_t f, const char *letters)
{
    for (; *letters; letters++)
        f = *letters == 'm'   ? mapped(f, all_inputs(f), LANES)
            : *letters == 's' ? mapped(f, 2, 3) // over some: a carry has the axis from another
            : *letters == 'f' ? forward(f)
                              : backward(f);
    return f;
}

// As steps and as one kernel, or, of two transforms, as one of them.
static void add(struct native *n, const char *name, uint32_t f, const char *letters, size_t i)
{
    struct strbuf what = strbuf_make(module->arena);
    strbuf_printf(&what, "%s, \"%s\"", name, letters);
    f = simplified(transformed(f, letters));
    struct native_how how[] = {{.steps = i % 2}, {.steps = i % 2 == 0}};
    for (int k = 0; k < (strlen(letters) > 1 ? 1 : 2); k++)
        native_add(n, what.text, f, draw_inputs(f, seed), &how[k]);
}

static void end(struct native *n)
{
    int failures = native_finish(n);
    fprintf(stderr, "%s", n->report->text);
    ck_assert_msg(failures == 0, "seed %" PRIu64 ": %d failures", seed, failures);
}

START_TEST(programs_run)
{
    const struct control_program *p = &control_programs[_i];
    struct strbuf report = strbuf_make(module->arena);
    struct native n = native_make(module, &report);
    for (size_t i = 0; i < sizeof transforms / sizeof *transforms; i++)
        if ((p->kind != CONTROL_NO_BOUND || !strchr(transforms[i], 'r')) &&
            sample_takes(i + (size_t)_i, 1))
            add(&n, p->name, parse(p->text), transforms[i], i + (size_t)_i);
    end(&n);
}
END_TEST

START_TEST(random_loops_run)
{
    struct strbuf report = strbuf_make(module->arena);
    struct native n = native_make(module, &report);
    for (uint64_t i = 0; i < 6; i++) {
        if (!sample_takes(i + (uint64_t)_i, 1))
            continue;
        uint32_t f = random_loop(seed + (uint64_t)_i * 1000 + i, 3 + (int)i);
        add(&n, "random loop", f, transforms[i], i);
        add(&n, "random loop", f, "rm", i);
    }
    end(&n);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_loop_test(t, programs_run, 0, CONTROL_PROGRAMS);
    tcase_add_loop_test(t, random_loops_run, 0, 10);
}

int main(void) { return support_run("control", add_tests); }
