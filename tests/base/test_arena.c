// SPDX-License-Identifier: Apache-2.0
// Memory that is freed whole, and what grows in it: arrays and sets.
#include "base/arena.h"
#include "base/bitset.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/vec.h"

#include "support/suite.h"

#include <stdint.h>
#include <string.h>

static struct arena *arena;

static void begin(void) { arena = arena_create(); }

static void end(void) { arena_release(arena); }

START_TEST(memory_is_zeroed_aligned_and_apart)
{
    unsigned char *at[200];
    for (size_t i = 0; i < 200; i++) {
        size_t bytes = i * i % 911;
        at[i] = arena_allocate(arena, bytes);
        ck_assert_uint_eq((uintptr_t)at[i] % 16, 0);
        for (size_t k = 0; k < bytes; k++)
            ck_assert_uint_eq(at[i][k], 0);
        memset(at[i], (int)i, bytes);
    }
    for (size_t i = 0; i < 200; i++)
        for (size_t k = 0; k < i * i % 911; k++)
            ck_assert_uint_eq(at[i][k], i);
}
END_TEST

// What is larger than a block has one of its own.
START_TEST(copies_of_any_length)
{
    size_t n = (size_t)40 << 20;
    char *text = arena_allocate(arena, n + 1);
    memset(text, 'x', n);
    char *copy = arena_text(arena, text);
    ck_assert(copy != text && strlen(copy) == n);
    ck_assert_uint_ge(arena_bytes(arena), 2 * n);
    ck_assert_ptr_nonnull(arena_copy(arena, NULL, 0));
}
END_TEST

START_TEST(a_mark_is_where_it_goes_on)
{
    char *kept = arena_text(arena, "kept");
    size_t bytes = arena_bytes(arena);
    int64_t blocks = memory_live_blocks();
    struct arena_mark mark = arena_mark(arena);
    for (int i = 0; i < 1000; i++)
        memset(arena_allocate(arena, 1000), 1, 1000);
    ck_assert_int_gt(memory_live_blocks(), blocks);
    arena_rewind(arena, mark);
    ck_assert_uint_eq(arena_bytes(arena), bytes);
    ck_assert_int_eq(memory_live_blocks(), blocks);
    ck_assert_str_eq(kept, "kept");
    const char *again = arena_allocate(arena, 1000); // where others have been
    for (int i = 0; i < 1000; i++)
        ck_assert_int_eq(again[i], 0);
}
END_TEST

static int tries;

static jot_status takes_all(struct arena *scratch, void *ctx)
{
    tries++;
    struct arena_guard guard;
    if (arena_guard_left(&guard)) {
        ck_assert_ptr_nonnull(arena_guard_innermost()); // that of arena_lend
        return status_fail(JOT_ERR_ARGUMENT, "left");
    }
    arena_allocate_many(scratch, SIZE_MAX / 2, *(size_t *)ctx);
    arena_guard_close(&guard);
    return JOT_OK;
}

static jot_status takes_more(struct arena *scratch, void *ctx)
{
    tries++;
    for (int i = 0; i < 1000; i++)
        arena_allocate(scratch, *(size_t *)ctx);
    return JOT_OK;
}

// The innermost guard is what memory that runs out leaves by; nothing stays.
START_TEST(memory_that_is_out_leaves_by_the_guard)
{
    int64_t blocks = memory_live_blocks();
    size_t n = 3;
    ck_assert_int_eq(arena_lend(takes_all, &n), JOT_ERR_ARGUMENT);
    n = 0;
    ck_assert_int_eq(arena_lend(takes_all, &n), JOT_OK);
    n = 1 << 16;
    memory_fail_after(5);
    ck_assert_int_eq(arena_lend(takes_more, &n), JOT_ERR_MEMORY);
    memory_fail_after(1);
    ck_assert_int_eq(arena_lend(takes_more, &n), JOT_ERR_MEMORY);
    memory_fail_after(0);
    ck_assert_str_eq(jot_error_message(), "out of memory");
    ck_assert_int_eq(tries, 3);
    ck_assert_ptr_null(arena_guard_innermost());
    ck_assert_int_eq(memory_live_blocks(), blocks);
}
END_TEST

START_TEST(arrays_grow)
{
    VEC(uint16_t) all = {0};
    for (uint32_t i = 0; i < 10000; i++)
        vec_push(arena, &all, (uint16_t)(i * 7));
    ck_assert_uint_eq(all.count, 10000);
    for (uint32_t i = 0; i < 10000; i++)
        ck_assert_uint_eq(all.at[i], (uint16_t)(i * 7));
}
END_TEST

START_TEST(sets_have_what_was_set)
{
    struct bitset s = bitset_make(arena, 200);
    for (uint32_t i = 0; i < 200; i += 3)
        bitset_set(&s, i);
    for (uint32_t i = 0; i < 200; i++)
        ck_assert_int_eq(bitset_has(&s, i), i % 3 == 0);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_checked_fixture(t, begin, end);
    tcase_add_test(t, memory_is_zeroed_aligned_and_apart);
    tcase_add_test(t, copies_of_any_length);
    tcase_add_test(t, a_mark_is_where_it_goes_on);
    tcase_add_test(t, memory_that_is_out_leaves_by_the_guard);
    tcase_add_test(t, arrays_grow);
    tcase_add_test(t, sets_have_what_was_set);
}

int main(void) { return suite_run("arena", add_tests); }
