// SPDX-License-Identifier: Apache-2.0
// Files of arrays/ with bytes changed, cut out, doubled and exchanged: an array or a message, whatever the
// bytes are, and no memory that stays.  JOT_TEST_COUNT is how many, JOT_TEST_SEED where it begins, and
// JOT_TEST_SECONDS how long instead.
#include "base/memory.h"
#include "jot/jot.h"

#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FOLDER "tests/interop/arrays/"
#define MOST 16384 // bytes of a file

struct file {
    char name[64];
    size_t n;
    unsigned char bytes[MOST];
};

static struct file files[80], work;
static int n_files;
static uint64_t state;

static uint64_t draw(uint64_t below)
{
    state += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = (state ^ state >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (z ^ z >> 31) % below;
}

static void read_files(void)
{
    DIR *d = opendir(FOLDER);
    ck_assert_ptr_nonnull(d);
    for (struct dirent *e; (e = readdir(d));) {
        char path[512];
        struct file *f = &files[n_files];
        snprintf(path, sizeof path, FOLDER "%s", e->d_name);
        FILE *in = e->d_name[0] != '.' ? fopen(path, "rb") : NULL;
        if (!in)
            continue;
        ck_assert_int_lt(n_files, 80);
        snprintf(f->name, sizeof f->name, "%.63s", e->d_name);
        f->n = fread(f->bytes, 1, MOST, in);
        n_files += f->n < MOST;
        fclose(in);
    }
    closedir(d);
    ck_assert_int_gt(n_files, 10);
}

// A place of the file; of every other one near its begin or end, where the structure is.
static size_t place(void)
{
    uint64_t how = draw(4), near = work.n < 200 ? work.n : 200;
    return (size_t)(how == 0 ? draw(near) : how == 1 ? work.n - 1 - draw(near) : draw(work.n));
}

static void change(void)
{
    static const char *const words[] = {"True",   "(0,",    "'",      "PK\1\2", "PK\3\4",
                                        "PK\5\6", "PK\6\6", "PK\6\7", "-1",     "999999999",
                                        "(",      ")",      "<V2"};
    static const uint64_t numbers[] = {0,          1,          8,
                                       0x7f,       0xff,       0xffff,
                                       0x7fffffff, 0xffffffff, UINT64_C(0x7fffffffffffffff),
                                       UINT64_MAX};
    size_t at = place(), left = work.n - at;
    const struct file *other = &files[draw((uint64_t)n_files)];
    const char *word = words[draw(sizeof words / sizeof *words)];
    uint64_t number = numbers[draw(sizeof numbers / sizeof *numbers)];
    size_t width = (size_t)1 << draw(4), n = (size_t)draw(left + 1);
    switch (draw(8)) {
    case 0:
        work.bytes[at] ^= (unsigned char)(1 << draw(8));
        break;
    case 1:
        work.bytes[at] = (unsigned char)draw(256);
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
        if (at < other->n) {
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

static void try_it(void)
{
    // As large as it is, so that a sanitizer sees what is read behind it.
    unsigned char *exact = malloc(work.n ? work.n : 1);
    memcpy(exact, work.bytes, work.n);
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

static uint64_t number_of(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

START_TEST(any_bytes)
{
    read_files();
    int64_t blocks = memory_live_blocks();
    uint64_t seed = number_of("JOT_TEST_SEED", 1), seconds = number_of("JOT_TEST_SECONDS", 0);
    uint64_t count = 20 * number_of("JOT_TEST_COUNT", 1000);
    time_t start = time(NULL);
    for (uint64_t i = 0; seconds ? (uint64_t)(time(NULL) - start) < seconds : i < count; i++) {
        state = (seed + i) * 1000003;
        work = files[draw((uint64_t)n_files)];
        for (uint64_t n = 1 + draw(4); n-- && work.n;)
            change();
        try_it();
        ck_assert_msg(jot_memory().blocks == 0 && memory_live_blocks() == blocks,
                      "case %llu of seed %llu, from %s, leaves memory", (unsigned long long)i,
                      (unsigned long long)seed, work.name);
    }
    ck_assert_uint_lt(jot_memory().peak, 64 << 20);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("npy_fuzz");
    TCase *tests = tcase_create("npy_fuzz");
    tcase_set_timeout(tests, 300);
    tcase_add_test(tests, any_bytes);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
