// SPDX-License-Identifier: Apache-2.0
// The target machine of a thread: kept between programs, gone with the thread.
#include "codegen/module.h"

#include "base/memory.h"
#include "support/suite.h"

#include <check.h>
#include <pthread.h>
#include <string.h>

static void *use_targets(void *unused)
{
    struct cg_target *a, *b;
    ck_assert_int_eq(cg_target_find(NULL, &a), JOT_OK);
    ck_assert_int_eq(cg_target_find(NULL, &b), JOT_OK);
    ck_assert_ptr_eq(a, b);
    ck_assert_int_eq(cg_target_find("haswell +avx2", &b), JOT_OK);
    ck_assert_int_eq(cg_target_find("haswell +avx2", &a), JOT_OK);
    ck_assert_ptr_eq(a, b);
    return unused;
}

START_TEST(ends_with_its_thread)
{
    int64_t live = memory_live_blocks();
    for (int i = 0; i < 3; i++) {
        pthread_t thread;
        ck_assert_int_eq(pthread_create(&thread, NULL, use_targets, NULL), 0);
        pthread_join(thread, NULL);
        ck_assert_int_eq(memory_live_blocks(), live);
    }
}
END_TEST

START_TEST(fails_without_loss)
{
    struct cg_target *t;
    ck_assert_int_eq(cg_target_find(NULL, &t), JOT_OK);
    int64_t live = memory_live_blocks();
    memory_fail_after(1);
    ck_assert_int_eq(cg_target_find("haswell ", &t), JOT_ERR_MEMORY);
    memory_fail_after(0);
    ck_assert_int_eq(memory_live_blocks(), live);
    ck_assert_int_eq(cg_target_find(NULL, &t), JOT_OK);
}
END_TEST

static void add_tests(TCase *tests)
{
    tcase_add_test(tests, ends_with_its_thread);
    tcase_add_test(tests, fails_without_loss);
}

int main(void) { return suite_run("codegen/module", add_tests); }
