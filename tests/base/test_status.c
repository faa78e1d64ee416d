// SPDX-License-Identifier: Apache-2.0
// Failing with a message.
#include "base/status.h"

#include "support/suite.h"

#include <pthread.h>
#include <string.h>

START_TEST(the_last_failure_is_known)
{
    unsigned before = status_failures();
    ck_assert_int_eq(status_fail(JOT_ERR_SHAPE, "%s: %d", "jot_dot", 3), JOT_ERR_SHAPE);
    ck_assert_str_eq(jot_error_message(), "jot_dot: 3");
    ck_assert_int_eq(status_last(), JOT_ERR_SHAPE);
    ck_assert_int_eq(status_out_of_memory(), JOT_ERR_MEMORY);
    ck_assert_str_eq(jot_error_message(), "out of memory");
    ck_assert_uint_eq(status_failures(), before + 2);
}
END_TEST

// An argument may be the message so far; what is too long is cut.
START_TEST(messages_wrap_messages)
{
    status_fail(JOT_ERR_IO, "inner");
    status_fail(JOT_ERR_IO, "outer: %s", jot_error_message());
    ck_assert_str_eq(jot_error_message(), "outer: inner");
    for (int i = 0; i < 2000; i++)
        status_fail(JOT_ERR_IO, "x%s", jot_error_message());
    size_t length = strlen(jot_error_message());
    ck_assert_uint_gt(length, 500);
    ck_assert_uint_eq(strspn(jot_error_message(), "x"), length);
}
END_TEST

START_TEST(a_place_is_put_in_front_once)
{
    status_fail(JOT_ERR_SHAPE, "no");
    ck_assert_int_eq(jot_status_place(JOT_OK, "f.c:1"), JOT_OK);
    ck_assert_str_eq(jot_error_message(), "no");
    ck_assert_int_eq(jot_status_place(JOT_ERR_SHAPE, NULL), JOT_ERR_SHAPE);
    ck_assert_int_eq(jot_status_place(JOT_ERR_SHAPE, "f.c:12"), JOT_ERR_SHAPE);
    ck_assert_str_eq(jot_error_message(), "f.c:12: no");
    ck_assert_int_eq(jot_status_place(JOT_ERR_SHAPE, "g.c:7"), JOT_ERR_SHAPE);
    ck_assert_str_eq(jot_error_message(), "f.c:12: no");
}
END_TEST

// The first failure that gave a NULL explains it, until something has run.
START_TEST(a_null_is_explained)
{
    const char *why;
    status_forget_nulls();
    ck_assert_int_eq(status_of_null(STATUS_NULL_ARRAY, &why), JOT_ERR_ARGUMENT);
    ck_assert_str_eq(why, "");
    status_fail(JOT_ERR_IO, "no file");
    ck_assert_ptr_null(status_null(STATUS_NULL_ARRAY, "jot_load"));
    ck_assert_str_eq(jot_error_message(), "jot_load: no file");
    status_fail(JOT_ERR_DTYPE, "jot_save: later");
    status_null(STATUS_NULL_ARRAY, "jot_save");
    ck_assert_str_eq(jot_error_message(), "jot_save: later");
    ck_assert_int_eq(status_of_null(STATUS_NULL_ARRAY, &why), JOT_ERR_IO);
    ck_assert_str_eq(why, " (jot_load: no file)");
    ck_assert_int_eq(status_of_null(STATUS_NULL_FUNCTION, &why), JOT_ERR_ARGUMENT);
    status_forget_nulls();
    ck_assert_int_eq(status_of_null(STATUS_NULL_ARRAY, &why), JOT_ERR_ARGUMENT);
}
END_TEST

static void *fails(void *message)
{
    ck_assert_str_eq(jot_error_message(), "");
    status_fail(JOT_ERR_DEVICE, "of a thread");
    return message;
}

START_TEST(each_thread_has_its_own)
{
    pthread_t thread;
    status_fail(JOT_ERR_CHECK, "of this one");
    ck_assert_int_eq(pthread_create(&thread, NULL, fails, NULL), 0);
    pthread_join(thread, NULL);
    ck_assert_str_eq(jot_error_message(), "of this one");
    ck_assert_int_eq(status_last(), JOT_ERR_CHECK);
}
END_TEST

START_TEST(every_status_has_a_name)
{
    for (int i = JOT_OK; i <= JOT_ERR_INTERNAL; i++)
        ck_assert_msg(!strncmp(jot_status_name((jot_status)i), "JOT_", 4), "%d", i);
    ck_assert_str_eq(jot_status_name((jot_status)(JOT_ERR_INTERNAL + 1)), "?");
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_test(t, the_last_failure_is_known);
    tcase_add_test(t, messages_wrap_messages);
    tcase_add_test(t, a_place_is_put_in_front_once);
    tcase_add_test(t, a_null_is_explained);
    tcase_add_test(t, each_thread_has_its_own);
    tcase_add_test(t, every_status_has_a_name);
}

int main(void) { return suite_run("status", add_tests); }
