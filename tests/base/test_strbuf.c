// SPDX-License-Identifier: Apache-2.0
// Text that grows.
#include "base/strbuf.h"

#include "support/suite.h"

#include <string.h>

static struct strbuf text;

static void begin(void) { text = strbuf_make(arena_create()); }

static void end(void) { arena_release(text.arena); }

START_TEST(it_ends_in_a_zero_byte_at_every_length)
{
    ck_assert_str_eq(text.text, "");
    for (size_t n = 1; n < 1000; n++) {
        strbuf_add(&text, "x");
        ck_assert_uint_eq(text.length, n);
        ck_assert_uint_eq(strlen(text.text), n);
    }
}
END_TEST

// What is printed at each distance from the end of the room is whole.
START_TEST(printing_grows_it)
{
    for (int n = 0; n < 300; n++) {
        struct strbuf s = strbuf_make(text.arena);
        strbuf_printf(&s, "%*s", n, "");
        strbuf_printf(&s, "%d %s", 12345, "and more text than there was room for");
        ck_assert_uint_eq(s.length, strlen(s.text));
        ck_assert_str_eq(s.text + n, "12345 and more text than there was room for");
    }
}
END_TEST

START_TEST(bytes_may_be_zero_and_none)
{
    strbuf_add_bytes(&text, "a\0b", 3);
    strbuf_add_bytes(&text, NULL, 0);
    ck_assert_uint_eq(text.length, 3);
    ck_assert(!memcmp(text.text, "a\0b", 4));
}
END_TEST

START_TEST(room_is_there_before_it_is_used)
{
    strbuf_add(&text, "kept");
    strbuf_reserve(&text, 100000);
    const char *at = text.text;
    for (int i = 0; i < 100000; i++)
        strbuf_add(&text, "y");
    ck_assert_ptr_eq(text.text, at);
    ck_assert(!strncmp(text.text, "kepty", 5));
}
END_TEST

// Blanks stop growing at some level.
START_TEST(levels_are_two_blanks)
{
    strbuf_indent(&text, 0);
    ck_assert_uint_eq(text.length, 0);
    strbuf_indent(&text, 3);
    ck_assert_str_eq(text.text, "      ");
    strbuf_indent(&text, UINT32_MAX);
    ck_assert_uint_eq(text.length, 6 + 64);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_checked_fixture(t, begin, end);
    tcase_add_test(t, it_ends_in_a_zero_byte_at_every_length);
    tcase_add_test(t, printing_grows_it);
    tcase_add_test(t, bytes_may_be_zero_and_none);
    tcase_add_test(t, room_is_there_before_it_is_used);
    tcase_add_test(t, levels_are_two_blanks);
}

int main(void) { return suite_run("strbuf", add_tests); }
