// SPDX-License-Identifier: Apache-2.0
// What the tests of programs share.
#ifndef PROGRAM_SUPPORT_H
#define PROGRAM_SUPPORT_H

#include "jot/jot.h"
#include "jot/program.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROGRAMS "tests/interop/programs/"

static inline jot_program *read_text(const char *text)
{
    jot_program *p = jot_program_from_memory("text.mlir", text, strlen(text));
    ck_assert_msg(p != NULL, "%s", jot_error_message());
    return p;
}

static inline jot_program *read_file(const char *name)
{
    char path[256];
    snprintf(path, sizeof path, PROGRAMS "%s", name);
    jot_program *p = jot_program_read(path);
    ck_assert_msg(p != NULL, "%s", jot_error_message());
    return p;
}

static inline int run_by(const char *backend, const char *name, void (*add)(TCase *t))
{
    Suite *s = suite_create(name);
    TCase *t = tcase_create(name);
    setenv("JOT_BACKEND", backend, 1);
    tcase_set_timeout(t, 120);
    add(t);
    suite_add_tcase(s, t);
    SRunner *runner = srunner_create(s);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed;
}

// The tests by machine code and by the evaluator; how many fail.
static inline int run_by_both(const char *name, void (*add)(TCase *t))
{
    int failed = run_by("", name, add);
    return run_by("eval", name, add) || failed;
}

#endif
