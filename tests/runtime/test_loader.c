// SPDX-License-Identifier: Apache-2.0
#include "runtime/loader.h"

#include "base/memory.h"
#include "object.h"
#include "runtime/symbols.h"
#include "support/suite.h"

#include <check.h>
#include <elf.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double outside(double x) { return 2 * x; }
static const double constant = 0.5;

static void *resolve(void *ctx, const char *name)
{
    (void)ctx;
    if (!strcmp(name, "jot_test_outside"))
        return (void *)(uintptr_t)outside;
    if (!strcmp(name, "jot_test_constant"))
        return (void *)(uintptr_t)&constant;
    return rt_symbol_find(name);
}

static void *resolve_nothing(void *ctx, const char *name)
{
    (void)ctx, (void)name;
    return NULL;
}

// A function of loaded code.
#define FIND(code, type, name)                                                                 \
    type name;                                                                                 \
    do {                                                                                       \
        void *address_ = rt_code_find(code, #name);                                            \
        ck_assert_ptr_nonnull(address_);                                                       \
        memcpy(&name, &address_, sizeof address_);                                             \
    } while (0)

typedef int64_t of_integer(int64_t);
typedef double of_double(double);
typedef void copier(char *, const char *, size_t);

static void check_code(const struct rt_code *code)
{
    FIND(code, of_integer *, use_sections);
    FIND(code, of_double *, use_outside);
    FIND(code, of_integer *, use_switch);
    FIND(code, copier *, use_memcpy);
    ck_assert_int_eq(use_sections(0), 7 + 1 + 1);
    ck_assert_int_eq(use_sections(3), 14 + 4 + 2);
    ck_assert(use_outside(3) == 6.5);
    static const int64_t answers[] = {11, 23, 5, 99, 42, 7, -3, 0};
    for (int i = 0; i < 8; i++)
        ck_assert_int_eq(use_switch(i), answers[i]);
    char text[6] = "";
    use_memcpy(text, "hello", 6);
    ck_assert_str_eq(text, "hello");
    void *table = rt_code_find(code, "table");
    ck_assert_ptr_nonnull(table);
    ck_assert_uint_eq((uintptr_t)table % 64, 0);
    ck_assert_ptr_null(rt_code_find(code, "no_such_function"));
    ck_assert_ptr_null(rt_code_find(code, "counter"));
}

START_TEST(loads_and_runs)
{
    static const char *const flags[] = {"", "-O0", "-fno-plt", "-ffunction-sections -g",
                                        "-fvisibility=hidden"};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        size_t size;
        struct rt_code *code = NULL;
        char *object = test_object(&size, flags[i]);
        int64_t live = memory_live_blocks();
        jot_status status = rt_code_load(object, size, resolve, NULL, &code);
        ck_assert_msg(status == JOT_OK, "%s: %s", flags[i], jot_error_message());
        free(object); // the code keeps nothing of it
        check_code(code);
        rt_code_release(code);
        ck_assert_int_eq(memory_live_blocks(), live);
    }
    rt_code_release(NULL);
}
END_TEST

// The objects of the flags, one behind the other.
static char *test_objects(size_t *out_size, const char *one, const char *other)
{
    size_t size[2];
    char *objects[] = {test_object(&size[0], one), test_object(&size[1], other)};
    size_t second = (size[0] + 7) / 8 * 8;
    char *all = calloc(1, second + size[1]);
    for (int i = 0; i < 2; i++) {
        memcpy(all + (i ? second : 0), objects[i], size[i]);
        free(objects[i]);
    }
    *out_size = second + size[1];
    return all;
}

static void *resolve_helpers(void *ctx, const char *name)
{
    (void)ctx;
    return rt_symbol_find(name);
}

// In either order.
START_TEST(objects_find_each_other)
{
    for (int i = 0; i < 2; i++) {
        size_t size;
        struct rt_code *code = NULL;
        char *objects = test_objects(&size, i ? "" : "-DOUTSIDE", i ? "-DOUTSIDE" : "");
        int64_t live = memory_live_blocks();
        jot_status status = rt_code_load(objects, size, resolve_helpers, NULL, &code);
        ck_assert_msg(status == JOT_OK, "%s", jot_error_message());
        check_code(code);
        ck_assert_ptr_nonnull(rt_code_find(code, "jot_test_outside"));
        rt_code_release(code);
        ck_assert_int_eq(memory_live_blocks(), live);
        free(objects);
    }
}
END_TEST

START_TEST(writes_a_map_for_perf)
{
    char path[64], line[256];
    size_t size;
    bool is_found = false;
    struct rt_code *code = NULL;
    char *object = test_object(&size, "");
    snprintf(path, sizeof path, "/tmp/perf-%ld.map", (long)getpid());
    setenv("JOT_PERF", "1", 1);
    ck_assert_int_eq(rt_code_load(object, size, resolve, NULL, &code), JOT_OK);
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    while (fgets(line, sizeof line, file)) {
        unsigned long address, bytes;
        char name[64];
        ck_assert_int_eq(sscanf(line, "%lx %lx %63s", &address, &bytes, name), 3);
        is_found |= !strcmp(name, "jit:use_switch") &&
                    (void *)address == rt_code_find(code, "use_switch") && bytes > 0;
    }
    ck_assert(is_found);
    fclose(file);
    unlink(path);
    rt_code_release(code);
    free(object);
}
END_TEST

START_TEST(names_what_is_missing)
{
    size_t size;
    struct rt_code *code = NULL;
    char *object = test_object(&size, "");
    ck_assert_int_eq(rt_code_load(object, size, resolve_nothing, NULL, &code), JOT_ERR_LIBRARY);
    ck_assert_ptr_null(code);
    ck_assert_ptr_nonnull(strstr(jot_error_message(), "compiled code needs"));
    free(object);
}
END_TEST

START_TEST(refuses_what_it_cannot_load)
{
    size_t size;
    struct rt_code *code = NULL;
    char *object = test_object(&size, "");
    Elf64_Ehdr header, good;
    memcpy(&good, object, sizeof good);
    header = good;
    header.e_machine = EM_AARCH64;
    memcpy(object, &header, sizeof header);
    ck_assert_int_eq(rt_code_load(object, size, resolve, NULL, &code), JOT_ERR_DEVICE);
    ck_assert_ptr_nonnull(strstr(jot_error_message(), "aarch64"));
    header = good;
    header.e_type = ET_EXEC;
    memcpy(object, &header, sizeof header);
    ck_assert_int_eq(rt_code_load(object, size, resolve, NULL, &code), JOT_ERR_IO);
    ck_assert_int_eq(rt_code_load("", 0, resolve, NULL, &code), JOT_ERR_IO);
    ck_assert_int_eq(rt_code_load("hello", 5, resolve, NULL, &code), JOT_ERR_IO);
    free(object);
    object = test_object(&size, "-fno-pic");
    ck_assert_int_eq(rt_code_load(object, size, resolve, NULL, &code), JOT_ERR_IO);
    ck_assert_ptr_nonnull(strstr(jot_error_message(), "relocation type"));
    ck_assert_ptr_null(code);
    free(object);
}
END_TEST

// Every prefix gives a status and no crash.
START_TEST(survives_truncation)
{
    size_t size;
    char *object = test_object(&size, "");
    int64_t live = memory_live_blocks();
    for (size_t n = 0; n < size; n++) {
        struct rt_code *code = NULL;
        char *part = malloc(n ? n : 1); // exact, so that a sanitizer sees reads past the end
        memcpy(part, object, n);
        ck_assert_int_ne(rt_code_load(part, n, resolve, NULL, &code), JOT_OK);
        free(part);
    }
    ck_assert_int_eq(memory_live_blocks(), live);
    free(object);
}
END_TEST

// Damaged bytes may load or not, but never crash.
START_TEST(survives_damage)
{
    size_t size;
    char *object = test_object(&size, ""), *copy = malloc(size);
    unsigned seed = (unsigned)time(NULL);
    printf("survives_damage: seed %u\n", seed);
    srand(seed);
    int64_t live = memory_live_blocks();
    Elf64_Ehdr header;
    memcpy(&header, object, sizeof header);
    for (int i = 0; i < 20000; i++) {
        struct rt_code *code = NULL;
        memcpy(copy, object, size);
        for (int k = rand() % 4; k >= 0; k--) {
            // Half of the damage goes to the section headers, where it does most.
            size_t at = rand() & 1 ? (size_t)rand() % size
                                   : header.e_shoff + (size_t)rand() % (size - header.e_shoff);
            copy[at] = (char)(rand() & 1 ? rand() : 1 << rand() % 8);
        }
        if (rt_code_load(copy, size, resolve, NULL, &code) == JOT_OK)
            rt_code_release(code);
    }
    ck_assert_int_eq(memory_live_blocks(), live);
    free(copy);
    free(object);
}
END_TEST

START_TEST(survives_lack_of_memory)
{
    size_t size;
    char *object = test_objects(&size, "", "-DOUTSIDE");
    int64_t live = memory_live_blocks();
    for (uint64_t n = 1;; n++) {
        struct rt_code *code = NULL;
        memory_fail_after(n);
        jot_status status = rt_code_load(object, size, resolve, NULL, &code);
        memory_fail_after(0);
        if (status == JOT_OK) {
            rt_code_release(code);
            break;
        }
        ck_assert_int_eq(status, JOT_ERR_MEMORY);
        ck_assert_int_eq(memory_live_blocks(), live);
        ck_assert_uint_lt(n, 100);
    }
    free(object);
}
END_TEST

START_TEST(finds_helpers)
{
    ck_assert_ptr_eq(rt_symbol_find("memcpy"), (void *)(uintptr_t)memcpy);
    void *address = rt_symbol_find("math_exp_f64");
    double (*f)(double);
    ck_assert_ptr_nonnull(address);
    memcpy(&f, &address, sizeof f);
    ck_assert(fabs(f(1) - 2.718281828459045) < 1e-15);
    address = rt_symbol_find("math_exp_f32");
    float (*g)(float);
    memcpy(&g, &address, sizeof g);
    ck_assert(fabsf(g(1) - 2.7182817f) < 1e-6f);
    ck_assert_ptr_null(rt_symbol_find("system"));
    ck_assert_ptr_null(rt_symbol_find("math_"));
    ck_assert_ptr_null(rt_symbol_find("math_nothing_f32"));
    ck_assert_ptr_null(rt_symbol_find(""));
}
END_TEST

static void add_tests(TCase *tests)
{
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, loads_and_runs);
    tcase_add_test(tests, objects_find_each_other);
    tcase_add_test(tests, writes_a_map_for_perf);
    tcase_add_test(tests, names_what_is_missing);
    tcase_add_test(tests, refuses_what_it_cannot_load);
    tcase_add_test(tests, survives_truncation);
    tcase_add_test(tests, survives_damage);
    tcase_add_test(tests, survives_lack_of_memory);
    tcase_add_test(tests, finds_helpers);
}

int main(void) { return suite_run("loader", add_tests); }
