// SPDX-License-Identifier: Apache-2.0
// Files of arrays/ with bytes changed, cut out, doubled and exchanged: an array or a message,
// whatever the bytes are, and no memory that stays (fuzz.h).
#include "base/memory.h"
#include "interop/folder.h"
#include "interop/fuzz.h"
#include "jot/jot.h"
#include "support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FOLDER "tests/interop/arrays/"
#define MOST 16384 // bytes of a file

static struct {
    size_t n;
    unsigned char bytes[MOST];
} work;
static int64_t blocks; // before the first

// An offset in the file; of every other one near its begin or end, where the structure is.
static size_t offset(void)
{
    uint64_t how = fuzz_below(4), near = work.n < 200 ? work.n : 200;
    return (size_t)(how == 0   ? fuzz_below(near)
                    : how == 1 ? work.n - 1 - fuzz_below(near)
                               : fuzz_below(work.n));
}

static void change(void)
{
    static const char *const words[] = {"True",   "(0,",    "'",      "PK\1\2", "PK\3\4",
                                        "PK\5\6", "PK\6\6", "PK\6\7", "-1",     "999999999",
                                        "(",      ")",      "<V2",    "{",      "\"F32\"",
                                        "[",      "]",      "\\u12",  ":",      "data_offsets"};
    static const uint64_t numbers[] = {0,          1,          8,
                                       0x7f,       0xff,       0xffff,
                                       0x7fffffff, 0xffffffff, UINT64_C(0x7fffffffffffffff),
                                       UINT64_MAX};
    size_t at = offset(), left = work.n - at;
    const struct fuzz_file *other = fuzz_any_file();
    const char *word = words[fuzz_below(sizeof words / sizeof *words)];
    uint64_t number = numbers[fuzz_below(sizeof numbers / sizeof *numbers)];
    size_t width = (size_t)1 << fuzz_below(4), n = (size_t)fuzz_below(left + 1);
    switch (fuzz_below(8)) {
    case 0:
        work.bytes[at] ^= (unsigned char)(1 << fuzz_below(8));
        break;
    case 1:
        work.bytes[at] = (unsigned char)fuzz_below(256);
        break;
    case 2:
        memcpy(work.bytes + at, &number, width < left ? width : left);
        break;
    case 3:
        memcpy(work.bytes + at, word, strlen(word) < left ? strlen(word) : left);
        break;
    case 4: // a part is gone
        n = n < 64 ? n : n % 64;
        memmove(work.bytes + at, work.bytes + at + n, left - n);
        work.n -= n;
        break;
    case 5:
        work.n = at;
        break;
    case 6: // a part is there twice
        n = n < MOST - work.n ? n : MOST - work.n;
        memmove(work.bytes + at + n, work.bytes + at, left);
        work.n += n;
        break;
    default: // the end of another file
        if (at < other->n && other->n <= MOST) {
            memcpy(work.bytes + at, other->bytes + at, other->n - at);
            work.n = other->n;
        }
    }
}

// A message when it did not go well.
static void check(bool is_well)
{
    ck_assert_msg(is_well || jot_error_message()[0], "no message");
}

static void read_any(void)
{
    unsigned char *exact = fuzz_exact(work.bytes, work.n);
    jot_array *x = jot_array_from_npy("x", exact, work.n);
    check(x != NULL);
    jot_array_release(x);
    jot_archive *a = jot_archive_from_memory("a", exact, work.n);
    check(a != NULL);
    for (size_t i = 0; i < jot_archive_count(a); i++) {
        x = jot_archive_get(a, jot_archive_name(a, i));
        check(x != NULL);
        jot_array_release(x);
    }
    jot_archive_release(a);
    free(exact);
}

static bool change_and_read(const struct fuzz_file *file)
{
    if (file->n > MOST)
        return false;
    if (!blocks)
        blocks = memory_live_blocks();
    work.n = file->n;
    memcpy(work.bytes, file->bytes, file->n);
    for (uint64_t n = 1 + fuzz_below(4); n-- && work.n;)
        change();
    read_any();
    ck_assert_msg(jot_memory().blocks == 0 && memory_live_blocks() == blocks,
                  "one of %s leaves memory", file->name);
    return true;
}

START_TEST(any_bytes)
{
    fuzz_run(FOLDER "*", 20, 1000, change_and_read);
    ck_assert_uint_lt(jot_memory().peak, 64 << 20);
}
END_TEST

// An index lies beside what it names.
static bool change_and_load(const struct fuzz_file *file)
{
    if (!blocks)
        blocks = memory_live_blocks();
    work.n = file->n;
    memcpy(work.bytes, file->bytes, file->n);
    for (uint64_t n = 1 + fuzz_below(4); n-- && work.n;)
        change();
    folder_spill(folder_path("index"), work.bytes, work.n);
    const char *path = folder_path("index");
    jot_archive *a = fuzz_below(2) ? jot_archive_map(path) : jot_archive_load(path);
    check(a != NULL);
    jot_archive_release(a);
    ck_assert(memory_live_blocks() == blocks);
    return true;
}

START_TEST(any_index)
{
    for (int i = 1; i <= 2; i++) {
        char path[100];
        size_t n;
        snprintf(path, sizeof path, FOLDER "model-%d.safetensors", i);
        void *bytes = folder_slurp(path, &n);
        folder_spill(folder_path(strrchr(path, '/') + 1), bytes, n);
        free(bytes);
    }
    fuzz_run(FOLDER "*.json", 20, 500, change_and_load);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_set_timeout(t, 1200);
    tcase_add_checked_fixture(t, folder_make, folder_remove);
    tcase_add_test(t, any_bytes);
    tcase_add_test(t, any_index);
}

int main(void) { return suite_run("npy_fuzz", add_tests); }
