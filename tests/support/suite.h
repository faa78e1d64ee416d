// SPDX-License-Identifier: Apache-2.0
// The main function of a test program with one case.
#ifndef TESTS_SUITE_H
#define TESTS_SUITE_H

#include <check.h>

// Runs the tests that add() puts into the case, which may have fixtures and a time limit; what main
// returns.
static inline int suite_run(const char *name, void (*add)(TCase *))
{
    Suite *suite = suite_create(name);
    TCase *tests = tcase_create(name);
    add(tests);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

#endif
