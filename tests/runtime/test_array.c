// SPDX-License-Identifier: Apache-2.0
#include "runtime/array.h"

#include "base/memory.h"
#include "jot/device.h"
#include "support/allocator.h"
#include "support/suite.h"

#include <check.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define FAILS(array, status_text)                                                              \
    do {                                                                                       \
        ck_assert_ptr_null(array);                                                             \
        ck_assert_str_eq(jot_error_message(), status_text);                                    \
    } while (0)

static size_t live_at_start;

static void note_use(void) { live_at_start = jot_memory().blocks; }
static void check_use(void) { ck_assert_uint_eq(jot_memory().blocks, live_at_start); }

START_TEST(copies_data)
{
    double data[6] = {1, 2, 3, 4, 5, 6}, back[6];
    jot_array *a = jot_array_from(data, 2, 3);
    data[0] = 7;
    ck_assert_int_eq(jot_array_dtype(a), JOT_F64);
    ck_assert_int_eq(jot_array_rank(a), 2);
    ck_assert_int_eq(jot_array_dim(a, 0), 2);
    ck_assert_int_eq(jot_array_dim(a, -1), 3);
    ck_assert_int_eq(jot_array_dim(a, 2), 0);
    ck_assert_int_eq(jot_array_dim(a, -3), 0);
    ck_assert_uint_eq(jot_array_size(a), 6);
    ck_assert_uint_eq(jot_array_bytes(a), 48);
    ck_assert_int_eq(jot_array_read(a, back, 6), JOT_OK);
    for (int i = 0; i < 6; i++)
        ck_assert(back[i] == i + 1 && ((const double *)jot_array_data(a))[i] == i + 1);
    jot_array_release(a);
}
END_TEST

START_TEST(aligns_data)
{
    for (int64_t n = 0; n < 3000000; n = n * 3 + 1) {
        jot_array *a = jot_array_full(JOT_F32, 1.5, n);
        ck_assert_ptr_nonnull(jot_array_data(a));
        size_t alignment = n * 4 >= 4 << 20 ? (size_t)2 << 20 : 64;
        ck_assert_uint_eq((uintptr_t)jot_array_data(a) % alignment, 0);
        const float *x = jot_array_data(a);
        for (int64_t i = 0; i < n; i++)
            ck_assert(x[i] == 1.5f);
        jot_array_release(a);
    }
}
END_TEST

START_TEST(takes_the_dtype_of_c)
{
    struct {
        bool b[1];
        signed char i8[1];
        int16_t i16[1];
        int32_t i32[1];
        int64_t i64[1];
        long long ll[1];
        uint8_t u8[1];
        uint16_t u16[1];
        uint32_t u32[1];
        uint64_t u64[1];
        float f32[1];
        double f64[1];
        float _Complex c64[1];
        double _Complex c128[1];
    } x = {0};
    ck_assert_int_eq(JOT_DTYPE_OF(x.b), JOT_BOOL);
    ck_assert_int_eq(JOT_DTYPE_OF(x.i8), JOT_I8);
    ck_assert_int_eq(JOT_DTYPE_OF(x.i16), JOT_I16);
    ck_assert_int_eq(JOT_DTYPE_OF(x.i32), JOT_I32);
    ck_assert_int_eq(JOT_DTYPE_OF(x.i64), JOT_I64);
    ck_assert_int_eq(JOT_DTYPE_OF(x.ll), JOT_I64);
    ck_assert_int_eq(JOT_DTYPE_OF(x.u8), JOT_U8);
    ck_assert_int_eq(JOT_DTYPE_OF(x.u16), JOT_U16);
    ck_assert_int_eq(JOT_DTYPE_OF(x.u32), JOT_U32);
    ck_assert_int_eq(JOT_DTYPE_OF(x.u64), JOT_U64);
    ck_assert_int_eq(JOT_DTYPE_OF(x.f32), JOT_F32);
    ck_assert_int_eq(JOT_DTYPE_OF((const double *)x.f64), JOT_F64);
    ck_assert_int_eq(JOT_DTYPE_OF(x.c64), JOT_C64);
    ck_assert_int_eq(JOT_DTYPE_OF(x.c128), JOT_C128);
}
END_TEST

START_TEST(fills_every_dtype)
{
    static const double values[] = {0, 1, 2, 100, -1, -128, 255, 0.5};
    for (int d = 0; d <= JOT_C128; d++)
        for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
            double x = values[v];
            jot_array *a = jot_array_full((jot_dtype)d, x);
            bool is_signed = d >= JOT_I8 && d <= JOT_I64,
                 is_unsigned = d >= JOT_U8 && d <= JOT_U64;
            bool fits = !((is_signed || is_unsigned) && x == 0.5) && !(is_unsigned && x < 0) &&
                        !(d == JOT_I8 && x == 255);
            ck_assert_msg((a != NULL) == fits, "%s %g", jot_dtype_name((jot_dtype)d), x);
            if (a)
                ck_assert(jot_array_item(a) == (d == JOT_BOOL ? x != 0 : x));
            jot_array_release(a);
        }
    jot_array *a = jot_array_full(JOT_F32, 1e300);
    ck_assert(isinf(jot_array_item(a)));
    jot_array_release(a);
    ck_assert_ptr_null(jot_array_full(JOT_I64, 0x1p63));
    ck_assert_ptr_null(jot_array_full(JOT_I32, NAN));
    a = jot_array_full(JOT_U64, 0x1p63);
    ck_assert(jot_array_item(a) == 0x1p63);
    jot_array_release(a);
}
END_TEST

START_TEST(normalises_bools)
{
    unsigned char bytes[3] = {0, 7, 1};
    jot_array *a = jot_array_copy(JOT_BOOL, bytes, (int64_t[]){3, JOT_END});
    ck_assert_int_eq(memcmp(jot_array_data(a), "\0\1\1", 3), 0);
    jot_array_release(a);
}
END_TEST

START_TEST(rejects_bad_input)
{
    float x[4] = {0};
    int64_t no_end[RT_ARRAY_RANK_LIMIT + 1];
    for (int i = 0; i <= RT_ARRAY_RANK_LIMIT; i++)
        no_end[i] = 1;
    FAILS(jot_array_full(JOT_F32, 0, 2, -3), "jot_array_full: size -3 of axis 1 is negative");
    FAILS(jot_array_full((jot_dtype)77, 0, 2), "jot_array_full: 77 is not a dtype");
    FAILS(jot_array_full(JOT_F32, 0, INT64_C(1) << 40, INT64_C(1) << 40),
          "jot_array_full: the sizes up to axis 1 (1099511627776) make more bytes than any "
          "memory "
          "has");
    FAILS(jot_array_full(JOT_I8, 300, 2), "jot_array_full: i8 cannot hold 300");
    FAILS(jot_array_copy(JOT_F32, NULL, (int64_t[]){1, JOT_END}),
          "jot_array_copy: the data is NULL");
    FAILS(jot_array_copy(JOT_F32, x, no_end),
          "jot_array_copy: no JOT_END after 64 sizes, which is the highest rank");
    ck_assert_ptr_null(jot_array_copy(JOT_F32, x, NULL));
    ck_assert_ptr_null(jot_array_borrow(JOT_F32, NULL, (int64_t[]){JOT_END}, NULL, NULL));
    ck_assert_ptr_null(
        jot_array_borrow(JOT_F32, (char *)x + 1, (int64_t[]){1, JOT_END}, NULL, NULL));
    // 64 TiB: a legal size that no machine has.  Some give out what they do not have.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    ck_assert_int_eq(setrlimit(RLIMIT_AS, &(struct rlimit){(rlim_t)1 << 42, (rlim_t)1 << 42}),
                     0);
#endif
    FAILS(jot_array_full(JOT_I8, 0, INT64_C(1) << 46),
          "jot_array_full: out of memory: an array of 70368744177664 bytes");
}
END_TEST

START_TEST(nothing_is_legal)
{
    char text[8];
    jot_array_release(NULL);
    ck_assert_ptr_null(jot_array_retain(NULL));
    ck_assert_uint_eq(jot_array_size(NULL), 0);
    ck_assert_ptr_null(jot_array_data(NULL));
    ck_assert(isnan(jot_array_item(NULL)));
    ck_assert_int_eq(jot_array_copy_out(NULL, JOT_F32, text, 1), JOT_ERR_ARGUMENT);
    ck_assert_int_eq(jot_array_format(NULL, text, sizeof text), 4);
    jot_array *a = jot_array_copy(JOT_F32, NULL, (int64_t[]){0, 3, JOT_END});
    ck_assert_ptr_nonnull(jot_array_data(a));
    ck_assert_int_eq(jot_array_copy_out(a, JOT_F32, NULL, 0), JOT_OK);
    ck_assert(isnan(jot_array_item(a)));
    jot_array_release(a);
}
END_TEST

START_TEST(checks_what_is_read)
{
    float data[2] = {1, 2}, back[2] = {0};
    double wide[2];
    jot_array *a = jot_array_from(data, 2);
#line 7 "bad_read.c"
    ck_assert_int_eq(jot_array_read(a, wide, 2), JOT_ERR_DTYPE);
    ck_assert_str_eq(jot_error_message(),
                     "bad_read.c:7: jot_array_read: the array is f32, the buffer f64");
    ck_assert_int_eq(jot_array_read(a, back, 1), JOT_ERR_SHAPE);
    ck_assert_str_eq(jot_error_message(),
                     "bad_read.c:10: jot_array_read: the array has 2 elements, the buffer 1");
    ck_assert_int_eq(jot_array_copy_out(a, JOT_F64, wide, 2), JOT_ERR_DTYPE);
    ck_assert_str_eq(jot_error_message(),
                     "jot_array_copy_out: the array is f32, the buffer f64");
    ck_assert(back[0] == 0);
    ck_assert(isnan(jot_array_item(a)));
    jot_array_release(a);
}
END_TEST

static void count_release(const void *data, void *ctx)
{
    ck_assert_ptr_nonnull(data);
    ++*(int *)ctx;
}

START_TEST(borrows)
{
    int released = 0;
    double data[2] = {1, 2};
    jot_array *a =
        jot_array_borrow(JOT_F64, data, (int64_t[]){2, JOT_END}, count_release, &released);
    ck_assert_ptr_eq(jot_array_data(a), data);
    ck_assert(!rt_array_is_unique(a)); // its memory is not ours to write
    ck_assert_ptr_eq(jot_array_retain(a), a);
    jot_array_release(a);
    ck_assert_int_eq(released, 0);
    jot_array_release(a);
    ck_assert_int_eq(released, 1);
}
END_TEST

START_TEST(moves_and_retypes)
{
    jot_array *dst[2] = {jot_array_full(JOT_F32, 1), NULL};
    jot_array *src[2] = {jot_array_full(JOT_F32, 2), jot_array_full(JOT_F32, 3)};
    jot_arrays_move(2, dst, 1, src);
    ck_assert(jot_array_item(dst[0]) == 1);
    jot_arrays_move(2, dst, 2, src);
    ck_assert(jot_array_item(dst[0]) == 2 && jot_array_item(dst[1]) == 3);
    ck_assert(!src[0] && !src[1]);
    jot_arrays_move(2, dst, 2, dst);
    ck_assert(jot_array_item(dst[0]) == 2);
    jot_arrays_release(2, dst);
    ck_assert(!dst[0] && !dst[1]);
    jot_array *a = jot_array_full(JOT_F32, 0, 2, 3);
    ck_assert(rt_array_is_unique(a));
    ck_assert(rt_array_can_retype(a, JOT_I32, 1, (int64_t[]){6}));
    rt_array_retype(a, JOT_I32, 1, (int64_t[]){6});
    ck_assert_int_eq(jot_array_dim(a, 0), 6);
    ck_assert(!rt_array_can_retype(a, JOT_F64, 1, (int64_t[]){6}));
    jot_array_retain(a);
    ck_assert(!rt_array_is_unique(a));
    jot_array_release(a);
    jot_array_release(a);
}
END_TEST

START_TEST(has_any_rank)
{
    int64_t dims[RT_ARRAY_RANK_LIMIT + 1];
    float x = 5;
    for (int rank = 0; rank <= RT_ARRAY_RANK_LIMIT; rank++) {
        dims[rank] = JOT_END;
        jot_array *a = jot_array_copy(JOT_F32, &x, dims);
        ck_assert_int_eq(jot_array_rank(a), rank);
        ck_assert(jot_array_item(a) == 5);
        jot_array_release(a);
        dims[rank] = 1;
    }
}
END_TEST

static void *churn(void *shared)
{
    jot_array *kept[50] = {0};
    unsigned state = (unsigned)(uintptr_t)&state;
    for (int i = 0; i < 20000; i++) {
        int k = rand_r(&state) % 50;
        jot_array_release(kept[k]);
        int64_t n = rand_r(&state) % 8 ? rand_r(&state) % 300 : rand_r(&state) % 200000;
        kept[k] =
            rand_r(&state) % 4 ? rt_array_create(JOT_F32, 1, &n) : jot_array_retain(shared);
        if (kept[k] != shared && n)
            ((float *)kept[k]->data)[n - 1] = ((float *)kept[k]->data)[0] = (float)k;
    }
    jot_arrays_release(50, kept);
    return NULL;
}

START_TEST(is_used_from_several_threads)
{
    pthread_t threads[4];
    jot_array *shared = jot_array_full(JOT_F32, 1, 100);
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, churn, shared);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    ck_assert_int_eq(atomic_load(&shared->references), 1);
    jot_array_release(shared);
}
END_TEST

// One thread allocates, another releases: blocks travel.
static void *release_all(void *arrays)
{
    jot_arrays_release(1000, arrays);
    return NULL;
}

START_TEST(blocks_travel_between_threads)
{
    static jot_array *arrays[1000];
    for (int round = 0; round < 5; round++) {
        pthread_t thread;
        for (int i = 0; i < 1000; i++)
            arrays[i] = jot_array_full(JOT_F32, i, i % 20);
        pthread_create(&thread, NULL, release_all, arrays);
        pthread_join(thread, NULL);
    }
}
END_TEST

START_TEST(keeps_memory_for_reuse)
{
    jot_memory_trim();
    int64_t n = 20 << 20;
    jot_array *a = jot_array_full(JOT_I8, 1, n);
    const void *first = jot_array_data(a);
    size_t held = jot_memory().held;
    jot_array_release(a);
    ck_assert_uint_ge(jot_memory().held, held + (size_t)n);
    a = jot_array_full(JOT_I8, 2, n);
    ck_assert_ptr_eq(jot_array_data(a), first);
    jot_array_release(a);
    // Blocks of ever new sizes do not pile up.
    for (int i = 0; i < 40; i++)
        jot_array_release(
            rt_array_create(JOT_I8, 1, (int64_t[]){(5 + i) * (INT64_C(1) << 20)}));
    ck_assert_uint_lt(jot_memory().held, (size_t)200 << 20);
    jot_memory_trim();
    ck_assert_uint_lt(jot_memory().held, (size_t)20 << 20);
}
END_TEST

START_TEST(survives_lack_of_memory)
{
    int64_t dims[12] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1000, JOT_END};
    int64_t live = memory_live_blocks();
    uint64_t n = 1;
    for (;; n++) {
        memory_fail_after(n);
        jot_array *a = jot_array_fill(JOT_F32, 1, dims);
        memory_fail_after(0);
        jot_array_release(a);
        ck_assert_int_eq(memory_live_blocks(), live);
        if (a)
            break;
    }
    ck_assert_uint_eq(n, 4); // sizes, header, data
}
END_TEST

START_TEST(uses_the_allocator_of_the_user)
{
    int user_blocks = 0;
    jot_allocator allocator = user_allocator(&user_blocks);
    jot_array *a = jot_array_full(JOT_F32, 1, 10);
    ck_assert_int_eq(jot_set_allocator(&allocator), JOT_ERR_ARGUMENT); // a is alive
    jot_array_release(a);
    ck_assert_int_eq(jot_set_allocator(&allocator), JOT_OK);
    a = jot_array_full(JOT_F32, 1, 10000);
    ck_assert_int_eq(user_blocks, 2);
    ck_assert_uint_eq(jot_memory().blocks, 2);
    ck_assert_int_eq(jot_set_allocator(NULL), JOT_ERR_ARGUMENT);
    jot_array_release(a);
    ck_assert_int_eq(user_blocks, 0);
    ck_assert_int_eq(jot_set_allocator(NULL), JOT_OK);
    allocator.release = NULL;
    ck_assert_int_eq(jot_set_allocator(&allocator), JOT_ERR_ARGUMENT);
}
END_TEST

static void check_text(jot_array *a, const char *expected)
{
    char text[4096], part[10];
    int n = jot_array_format(a, text, sizeof text);
    ck_assert_str_eq(text, expected);
    ck_assert_int_eq(n, (int)strlen(expected));
    ck_assert_int_eq(jot_array_format(a, NULL, 0), n);
    ck_assert_int_eq(jot_array_format(a, part, sizeof part), n);
    ck_assert_uint_eq(strlen(part), n < 9 ? (size_t)n : 9);
    ck_assert_int_eq(strncmp(part, expected, 9), 0);
    jot_array_release(a);
}

#define DOUBLES(...) jot_array_from(((const double[]){__VA_ARGS__}), COUNT_(__VA_ARGS__))
#define COUNT_(...) (int64_t)(sizeof((const double[]){__VA_ARGS__}) / sizeof(double))

// The expected texts are those of NumPy 2, but for the names of true and false.
START_TEST(prints_like_numpy)
{
    check_text(jot_array_full(JOT_F64, 0.1), "0.1");
    check_text(jot_array_full(JOT_F32, 0.1), "0.1");
    check_text(jot_array_full(JOT_F64, 3), "3.0");
    check_text(jot_array_full(JOT_F64, 1e-7), "1e-07");
    check_text(jot_array_full(JOT_F64, 1.5e300), "1.5e+300");
    check_text(jot_array_full(JOT_F64, -INFINITY), "-inf");
    check_text(jot_array_full(JOT_I32, -5), "-5");
    check_text(jot_array_full(JOT_F32, 1, 0, 3), "[]");
    check_text(jot_array_full(JOT_F16, 0.1, 2), "[0.1 0.1]");
    check_text(jot_array_full(JOT_BF16, 0.1, 1), "[0.1]");
    check_text(DOUBLES(1, 2.5, -3), "[ 1.   2.5 -3. ]");
    check_text(DOUBLES(1. / 3, 2. / 3), "[0.33333333 0.66666667]");
    check_text(DOUBLES(1, 1e-5), "[1.e+00 1.e-05]");
    check_text(DOUBLES(1.5, 1e10), "[1.5e+00 1.0e+10]");
    check_text(DOUBLES(1.5e300, 1e-5, NAN), "[1.5e+300 1.0e-005      nan]");
    check_text(DOUBLES(0, NAN, 1.25), "[0.    nan 1.25]");
    check_text(DOUBLES(NAN, -INFINITY), "[ nan -inf]");
    check_text(DOUBLES(-0.0, 1), "[-0.  1.]");
    check_text(DOUBLES(123456, 999.5), "[123456.     999.5]");
    check_text(jot_array_from(((const int[]){1, -20, 300, 4}), 2, 2),
               "[[  1 -20]\n [300   4]]");
    check_text(jot_array_from(((const bool[]){1, 0}), 2), "[ true false]");
    check_text(jot_array_from(((const uint64_t[]){UINT64_MAX, 0}), 2),
               "[18446744073709551615                    0]");
    check_text(jot_array_from(((const float _Complex[]){1, 2.5f}), 2), "[1. +0.j 2.5+0.j]");
    check_text(
        jot_array_copy(JOT_C64, (const float[]){INFINITY, NAN, NAN, -1}, JOT_DIMS_(2, JOT_END)),
        "[inf+nanj nan -1.j]");
    check_text(
        jot_array_copy(JOT_C128, (const double[]){-0.0, -0.0, 1, NAN}, JOT_DIMS_(2, JOT_END)),
        "[-0. -0.j  1.+nanj]");
    check_text(jot_array_copy(JOT_C128, (const double[]){INFINITY, NAN}, JOT_DIMS_(JOT_END)),
               "inf+nanj");
    check_text(jot_array_copy(JOT_C128, (const double[]){NAN, -INFINITY}, JOT_DIMS_(JOT_END)),
               "nan-infj");
    check_text(jot_array_copy(JOT_C64, (const float[]){0, -0.0f}, JOT_DIMS_(JOT_END)),
               "0.0-0.0j");
    check_text(jot_array_full(JOT_F16, NAN, 1), "[nan]");
    check_text(jot_array_full(JOT_BF16, -INFINITY, 1), "[-inf]");
    check_text(jot_array_from(((const int[]){1, 2, 3, 4, 5, 6, 7, 8}), 2, 2, 2),
               "[[[1 2]\n  [3 4]]\n\n [[5 6]\n  [7 8]]]");
}
END_TEST

START_TEST(summarises_and_wraps)
{
    int data[4000];
    for (int i = 0; i < 4000; i++)
        data[i] = i;
    check_text(jot_array_from(data, 1001), "[   0    1    2 ...  998  999 1000]");
    check_text(jot_array_from(data, 1000, 4),
               "[[   0    1    2    3]\n [   4    5    6    7]\n [   8    9   10   11]\n ...\n"
               " [3988 3989 3990 3991]\n [3992 3993 3994 3995]\n [3996 3997 3998 3999]]");
    check_text(jot_array_from(data, 30),
               "[ 0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15 16 17 18 19 20 21 22 23\n"
               " 24 25 26 27 28 29]");
    int n = jot_array_format(NULL, NULL, 0);
    ck_assert_int_eq(n, 4);
    jot_array *a = jot_array_from(data, 1000); // the most that is printed in full
    char text[8192];
    jot_array_format(a, text, sizeof text);
    ck_assert_ptr_null(strstr(text, "..."));
    jot_array_release(a);
}
END_TEST

static void add_tests(TCase *tests)
{
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, note_use, check_use);
    tcase_add_test(tests, copies_data);
    tcase_add_test(tests, aligns_data);
    tcase_add_test(tests, takes_the_dtype_of_c);
    tcase_add_test(tests, fills_every_dtype);
    tcase_add_test(tests, normalises_bools);
    tcase_add_test(tests, rejects_bad_input);
    tcase_add_test(tests, nothing_is_legal);
    tcase_add_test(tests, checks_what_is_read);
    tcase_add_test(tests, borrows);
    tcase_add_test(tests, moves_and_retypes);
    tcase_add_test(tests, has_any_rank);
    tcase_add_test(tests, is_used_from_several_threads);
    tcase_add_test(tests, blocks_travel_between_threads);
    tcase_add_test(tests, keeps_memory_for_reuse);
    tcase_add_test(tests, survives_lack_of_memory);
    tcase_add_test(tests, uses_the_allocator_of_the_user);
    tcase_add_test(tests, prints_like_numpy);
    tcase_add_test(tests, summarises_and_wraps);
}

int main(void) { return suite_run("array", add_tests); }
