// SPDX-License-Identifier: Apache-2.0
#include "runtime/cache.h"

#include "base/memory.h"
#include "support/suite.h"

#include <check.h>
#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static char folder[64], directory[128];

static void make_folder(void)
{
    strcpy(folder, "/tmp/jot-cache-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(directory, sizeof directory, "%s/deep/cache", folder);
}

static void remove_folder(void)
{
    char command[256];
    snprintf(command, sizeof command, "chmod -R u+rwx %s; rm -rf %s", folder, folder);
    ck_assert_int_eq(system(command), 0);
}

static struct hash128 key_of(uint64_t n) { return hash128_bytes(&n, sizeof n); }

static void store_text(struct rt_cache *cache, uint64_t key, const char *text)
{
    rt_cache_store(cache, key_of(key), text, strlen(text), NULL);
}

static bool holds(struct rt_cache *cache, uint64_t key, const char *text)
{
    struct rt_cache_entry entry;
    if (!rt_cache_find(cache, key_of(key), &entry, NULL))
        return false;
    bool is_same = entry.size == strlen(text) && !memcmp(entry.bytes, text, entry.size) &&
                   (uintptr_t)entry.bytes % 8 == 0;
    rt_cache_entry_release(&entry);
    ck_assert(is_same);
    return true;
}

static int count_files(char *out_path)
{
    DIR *stream = opendir(directory);
    int n = 0;
    for (struct dirent *e; (e = readdir(stream));)
        if (e->d_name[0] != '.') {
            n++;
            if (out_path)
                snprintf(out_path, 256, "%.100s/%.100s", directory, e->d_name);
        }
    closedir(stream);
    return n;
}

START_TEST(keeps_and_finds)
{
    struct rt_cache *cache = rt_cache_open(directory, 1 << 20);
    struct stat info;
    ck_assert_str_eq(rt_cache_reason(cache), "");
    ck_assert_int_eq(stat(directory, &info), 0);
    ck_assert_int_eq(info.st_mode & 0777, 0700);
    ck_assert(!holds(cache, 1, ""));
    store_text(cache, 1, "one");
    store_text(cache, 2, "two two two");
    store_text(cache, 3, "");
    ck_assert(holds(cache, 1, "one") && holds(cache, 2, "two two two") && holds(cache, 3, ""));
    store_text(cache, 1, "another"); // replaces
    ck_assert(holds(cache, 1, "another"));
    rt_cache_close(cache);
    cache = rt_cache_open(directory, 1 << 20);
    ck_assert(holds(cache, 1, "another") && !holds(cache, 4, ""));
    ck_assert_int_eq(count_files(NULL), 3);
    rt_cache_close(cache);
}
END_TEST

// Every single damaged byte, and every shorter file, is a miss that removes the entry.
START_TEST(removes_damaged_entries)
{
    struct rt_cache *cache = rt_cache_open(directory, 1 << 20);
    char path[256], bytes[256];
    store_text(cache, 1, "some program");
    ck_assert_int_eq(count_files(path), 1);
    FILE *file = fopen(path, "rb");
    size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    for (size_t i = 0; i < 2 * size; i++) {
        char damaged[256];
        memcpy(damaged, bytes, size);
        if (i < size)
            damaged[i] ^= 0x10;
        file = fopen(path, "wb");
        fwrite(damaged, 1, i < size ? size : i - size, file);
        fclose(file);
        bool is_reserved = i >= 48 && i < 64; // no meaning yet
        ck_assert_int_eq(holds(cache, 1, "some program"), is_reserved);
        ck_assert_int_eq(count_files(NULL), is_reserved);
    }
    store_text(cache, 1, "some program");
    ck_assert(holds(cache, 1, "some program"));
    rt_cache_close(cache);
}
END_TEST

// A lack of memory is a miss, but says nothing about the entry.
START_TEST(keeps_what_it_cannot_map)
{
    struct rt_cache *cache = rt_cache_open(directory, 1 << 20);
    store_text(cache, 1, "some program");
    memory_fail_after(1);
    ck_assert(!holds(cache, 1, "some program"));
    memory_fail_after(0);
    ck_assert(holds(cache, 1, "some program"));
    rt_cache_close(cache);
}
END_TEST

START_TEST(refuses_what_others_can_reach)
{
    char path[256];
    mkdir(folder, 0700);
    snprintf(directory, sizeof directory, "%s/open", folder);
    mkdir(directory, 0700);
    chmod(directory, 0775);
    struct rt_cache *cache = rt_cache_open(directory, 1 << 20);
    ck_assert_ptr_nonnull(strstr(rt_cache_reason(cache), "others may write to it"));
    store_text(cache, 1, "one");
    ck_assert(!holds(cache, 1, "one"));
    ck_assert_int_eq(count_files(NULL), 0);
    rt_cache_close(cache);
    chmod(directory, 0700);
    cache = rt_cache_open(directory, 1 << 20);
    store_text(cache, 1, "one");
    count_files(path);
    chmod(path, 0666); // an entry that others could have written
    ck_assert(!holds(cache, 1, "one"));
    rt_cache_close(cache);
    if (geteuid() == 0) {
        ck_assert_int_eq(chown(directory, 12345, 12345), 0);
        cache = rt_cache_open(directory, 1 << 20);
        ck_assert_ptr_nonnull(strstr(rt_cache_reason(cache), "it belongs to another user"));
        rt_cache_close(cache);
    }
}
END_TEST

START_TEST(follows_a_link_to_a_directory)
{
    char link[256];
    mkdir(folder, 0700);
    snprintf(directory, sizeof directory, "%s/real", folder);
    mkdir(directory, 0700);
    snprintf(link, sizeof link, "%s/link", folder);
    ck_assert_int_eq(symlink(directory, link), 0);
    struct rt_cache *cache = rt_cache_open(link, 1 << 20);
    ck_assert_str_eq(rt_cache_reason(cache), "");
    store_text(cache, 1, "one");
    ck_assert(holds(cache, 1, "one"));
    ck_assert_int_eq(count_files(NULL), 1);
    rt_cache_close(cache);
    chmod(directory, 0777); // what the link leads to is what counts
    cache = rt_cache_open(link, 1 << 20);
    ck_assert_ptr_nonnull(strstr(rt_cache_reason(cache), "others may write to it"));
    rt_cache_close(cache);
}
END_TEST

// A list of the directory, which is written to, and of another that has the entries 1 and 2.
static struct rt_cache *open_list(char *other, char *list)
{
    sprintf(other, "%s/other", folder);
    struct rt_cache *cache = rt_cache_open(other, 1 << 20);
    store_text(cache, 1, "one");
    store_text(cache, 2, "two");
    rt_cache_close(cache);
    sprintf(list, "%s:%s", directory, other);
    return rt_cache_open(list, 1 << 20);
}

START_TEST(reads_a_list_and_writes_to_its_first)
{
    char other[256], list[512];
    struct rt_cache *cache = open_list(other, list);
    ck_assert_str_eq(rt_cache_reason(cache), "");
    store_text(cache, 2, "another two");
    store_text(cache, 3, "three");
    ck_assert(holds(cache, 1, "one") && holds(cache, 2, "another two") &&
              holds(cache, 3, "three"));
    ck_assert_int_eq(count_files(NULL), 2);
    rt_cache_close(cache);
    snprintf(list, sizeof list, "%s/absent", folder); // the first is made, no other
    strcat(strcat(list, ":"), "/proc/no/such/place");
    cache = rt_cache_open(list, 1 << 20);
    ck_assert_str_eq(rt_cache_reason(cache),
                     "the cache directory /proc/no/such/place is not used: No such file or "
                     "directory\n");
    store_text(cache, 4, "four");
    ck_assert(holds(cache, 4, "four"));
    rt_cache_close(cache);
}
END_TEST

// As a user whom the directory does not belong to.
START_TEST(only_reads_what_is_of_root)
{
    char other[256], list[512];
    if (geteuid() != 0)
        return;
    rt_cache_close(open_list(other, list));
    chmod(folder, 0755), chmod(other, 0755);
    char command[512];
    snprintf(command, sizeof command, "chmod a+r %s/*", other);
    ck_assert_int_eq(system(command), 0);
    ck_assert_int_eq(seteuid(12345), 0);
    struct rt_cache *cache = rt_cache_open(other, 1 << 20);
    ck_assert_str_eq(rt_cache_reason(cache), "");
    store_text(cache, 3, "three");
    ck_assert(holds(cache, 1, "one") && holds(cache, 2, "two") && !holds(cache, 3, "three"));
    rt_cache_close(cache);
    ck_assert_int_eq(seteuid(0), 0);
}
END_TEST

START_TEST(reports_what_it_looks_for)
{
    char text[2048], expected[2048], name[64], list[256];
    struct hash128 key = key_of(1);
    struct rt_cache_entry entry;
    snprintf(name, sizeof name, "%016lx%016lx.jot", (unsigned long)key.hi,
             (unsigned long)key.lo);
    snprintf(list, sizeof list, "%s:/proc/none", directory);
    struct rt_cache *cache = rt_cache_open(list, 1 << 20);
    struct rt_text report = {.at = text, .size = sizeof text};
    ck_assert(!rt_cache_find(cache, key, &entry, &report));
    rt_cache_store(cache, key, "one", 3, &report);
    ck_assert(rt_cache_find(cache, key, &entry, &report));
    rt_cache_entry_release(&entry);
    char path[256];
    snprintf(path, sizeof path, "%.100s/%.50s", directory, name);
    ck_assert_int_eq(truncate(path, 10), 0);
    ck_assert(!rt_cache_find(cache, key, &entry, &report));
    static const char unused[] =
        "the cache directory /proc/none is not used: No such file or directory\n";
    snprintf(expected, sizeof expected,
             "%s%s: is not there\n%s: kept, 3 bytes\n%s%s: found, 3 bytes\n%s%s: refused and "
             "removed, it is damaged\n",
             unused, path, path, unused, path, unused, path);
    ck_assert_str_eq(text, expected);
    rt_cache_close(cache);
}
END_TEST

START_TEST(lives_without_a_directory)
{
    char path[256];
    snprintf(path, sizeof path, "%s/file", folder);
    FILE *file = fopen(path, "w");
    fclose(file);
    static const char *const bad[] = {"/proc/no/such/place", "", "/dev/null"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct rt_cache *cache = rt_cache_open(bad[i], 1 << 20);
        ck_assert_str_ne(rt_cache_reason(cache), "");
        store_text(cache, 1, "one");
        ck_assert(!holds(cache, 1, "one"));
        rt_cache_close(cache);
    }
    struct rt_cache *cache = rt_cache_open(path, 1 << 20);
    ck_assert_str_ne(rt_cache_reason(cache), "");
    rt_cache_close(cache);
    // The directory goes away while it is in use.
    cache = rt_cache_open(directory, 1 << 20);
    store_text(cache, 1, "one");
    remove_folder();
    store_text(cache, 2, "two");
    ck_assert(!holds(cache, 1, "one") && !holds(cache, 2, "two"));
    rt_cache_close(cache);
    make_folder();
}
END_TEST

START_TEST(reads_what_it_cannot_write)
{
    struct rt_cache *cache = rt_cache_open(directory, 1 << 20);
    store_text(cache, 1, "one");
    rt_cache_close(cache);
    chmod(directory, 0500);
    cache = rt_cache_open(directory, 1 << 20);
    ck_assert_str_eq(rt_cache_reason(cache), "");
    ck_assert(holds(cache, 1, "one"));
    store_text(cache, 2, "two"); // works for root, and is silent for others
    ck_assert_int_eq(holds(cache, 2, "two"), geteuid() == 0);
    rt_cache_close(cache);
}
END_TEST

START_TEST(keeps_to_its_size)
{
    char bytes[1000], path[256];
    memset(bytes, 'x', sizeof bytes);
    struct rt_cache *cache = rt_cache_open(directory, 20000);
    for (uint64_t i = 0; i < 100; i++) {
        rt_cache_store(cache, key_of(i), bytes, sizeof bytes, NULL);
        ck_assert_int_le(count_files(NULL) * 1064, 20000);
        struct rt_cache_entry entry;
        ck_assert(
            rt_cache_find(cache, key_of(i), &entry, NULL)); // the newest is never the victim
        rt_cache_entry_release(&entry);
    }
    ck_assert_int_ge(count_files(NULL), 10);
    char *big = calloc(1, 30000);
    rt_cache_store(cache, key_of(1000), big, 30000, NULL); // larger than the cache
    struct rt_cache_entry entry;
    ck_assert(!rt_cache_find(cache, key_of(1000), &entry, NULL));
    free(big);
    rt_cache_close(cache);
    // An old unfinished entry is removed by the next writer, a young one stays.
    snprintf(path, sizeof path, "%s/abc-0.tmp", directory);
    fclose(fopen(path, "w"));
    cache = rt_cache_open(directory, 20000);
    store_text(cache, 1, "one");
    ck_assert_int_eq(access(path, F_OK), 0);
    rt_cache_close(cache);
    struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    ck_assert_int_eq(utimensat(-100, path, old, 0), 0);
    cache = rt_cache_open(directory, 20000);
    store_text(cache, 1, "one");
    ck_assert_int_ne(access(path, F_OK), 0);
    rt_cache_close(cache);
}
END_TEST

static void age(const char *path, time_t seconds)
{
    struct timespec times[2] = {{.tv_sec = time(NULL) - seconds},
                                {.tv_sec = time(NULL) - seconds}};
    ck_assert_int_eq(utimensat(-100, path, times, 0), 0);
}

START_TEST(forgets_the_least_used)
{
    char bytes[1000] = {0}, paths[3][256];
    struct rt_cache *cache = rt_cache_open(directory, 4000);
    for (uint64_t i = 0; i < 3; i++) {
        struct hash128 key = key_of(i);
        rt_cache_store(cache, key, bytes, sizeof bytes, NULL);
        snprintf(paths[i], sizeof paths[i], "%.100s/%016lx%016lx.jot", directory,
                 (unsigned long)key.hi, (unsigned long)key.lo);
        age(paths[i], 100000 - (time_t)i * 1000);
    }
    struct rt_cache_entry entry;
    ck_assert(rt_cache_find(cache, key_of(0), &entry, NULL)); // the oldest is used again
    rt_cache_entry_release(&entry);
    rt_cache_store(cache, key_of(3), bytes, sizeof bytes, NULL);
    ck_assert_int_eq(access(paths[0], F_OK), 0);
    ck_assert_int_ne(access(paths[1], F_OK), 0);
    rt_cache_close(cache);
}
END_TEST

static void *use_often(void *arg)
{
    struct rt_cache *cache = arg;
    for (int i = 0; i < 300; i++) {
        uint64_t n = (uint64_t)(i % 7);
        char text[3000];
        memset(text, 'a' + (int)n, sizeof text);
        struct rt_cache_entry entry;
        rt_cache_store(cache, key_of(n), text, sizeof text, NULL);
        if (!rt_cache_find(cache, key_of(n), &entry, NULL))
            continue; // evicted by another thread
        if (entry.size != sizeof text || memcmp(entry.bytes, text, sizeof text))
            return cache;
        rt_cache_entry_release(&entry);
    }
    return NULL;
}

START_TEST(is_used_from_several_threads)
{
    struct rt_cache *cache = rt_cache_open(directory, 15000);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, use_often, cache);
    for (int i = 0; i < 4; i++) {
        void *fault;
        pthread_join(threads[i], &fault);
        ck_assert_ptr_null(fault);
    }
    rt_cache_close(cache);
}
END_TEST

START_TEST(obeys_the_environment)
{
    setenv("JOT_CACHE_DIR", directory, 1);
    setenv("JOT_CACHE_BYTES", "5000", 1);
    struct rt_cache *cache = rt_cache_default();
    ck_assert_str_eq(rt_cache_reason(cache), "");
    store_text(cache, 1, "one");
    ck_assert_int_eq(count_files(NULL), 1);
    char bytes[6000] = {0};
    rt_cache_store(cache, key_of(2), bytes, sizeof bytes, NULL);
    ck_assert_int_eq(count_files(NULL), 1);
}
END_TEST

START_TEST(can_be_switched_off)
{
    setenv("JOT_CACHE_DIR", directory, 1);
    setenv("JOT_CACHE", "off", 1);
    struct rt_cache *cache = rt_cache_default();
    ck_assert_str_eq(rt_cache_reason(cache), "JOT_CACHE=off\n");
    store_text(cache, 1, "one");
    ck_assert(!holds(cache, 1, "one"));
    ck_assert_int_ne(access(directory, F_OK), 0);
}
END_TEST

START_TEST(is_found_below_the_home)
{
    char path[256];
    unsetenv("JOT_CACHE_DIR");
    unsetenv("XDG_CACHE_HOME");
    setenv("HOME", folder, 1);
    ck_assert_str_eq(rt_cache_reason(rt_cache_default()), "");
    snprintf(path, sizeof path, "%s/.cache/jot", folder);
    ck_assert_int_eq(access(path, F_OK), 0);
}
END_TEST

static void add_tests(TCase *tests)
{
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, make_folder, remove_folder);
    tcase_add_test(tests, keeps_and_finds);
    tcase_add_test(tests, removes_damaged_entries);
    tcase_add_test(tests, keeps_what_it_cannot_map);
    tcase_add_test(tests, refuses_what_others_can_reach);
    tcase_add_test(tests, follows_a_link_to_a_directory);
    tcase_add_test(tests, reads_a_list_and_writes_to_its_first);
    tcase_add_test(tests, only_reads_what_is_of_root);
    tcase_add_test(tests, reports_what_it_looks_for);
    tcase_add_test(tests, lives_without_a_directory);
    tcase_add_test(tests, reads_what_it_cannot_write);
    tcase_add_test(tests, keeps_to_its_size);
    tcase_add_test(tests, forgets_the_least_used);
    tcase_add_test(tests, is_used_from_several_threads);
    tcase_add_test(tests, obeys_the_environment);
    tcase_add_test(tests, can_be_switched_off);
    tcase_add_test(tests, is_found_below_the_home);
}

int main(void) { return suite_run("cache", add_tests); }
