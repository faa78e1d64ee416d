// SPDX-License-Identifier: Apache-2.0
// Rows sorted on the host, against insertion by a comparison that is written out.
#include "runtime/host/sort.h"
#include "runtime/host/sort_keys.h"

#include "base/dtype.h"
#include "runtime/host/pool.h"

#include <check.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static unsigned seed;

static double half_to_double(jot_dtype d, uint16_t bits)
{
    return (double)(d == JOT_F16 ? dtype_f16_to_f32(bits) : dtype_bf16_to_f32(bits));
}

// -1, 0 or 1: how x stands to y; NaN is last.
static int compare_floats(double x, double y)
{
    if (isnan(x) || isnan(y))
        return (isnan(x) != 0) - (isnan(y) != 0);
    return (x > y) - (x < y);
}

static int compare(jot_dtype d, const void *data, int64_t i, int64_t k)
{
#define INTEGERS(T)                                                                            \
    (((const T *)data)[i] > ((const T *)data)[k]) -                                            \
        (((const T *)data)[i] < ((const T *)data)[k])
    switch (d) {
    case JOT_BOOL:
    case JOT_U8:
        return INTEGERS(uint8_t);
    case JOT_U16:
        return INTEGERS(uint16_t);
    case JOT_U32:
        return INTEGERS(uint32_t);
    case JOT_U64:
        return INTEGERS(uint64_t);
    case JOT_I8:
        return INTEGERS(int8_t);
    case JOT_I16:
        return INTEGERS(int16_t);
    case JOT_I32:
        return INTEGERS(int32_t);
    case JOT_I64:
        return INTEGERS(int64_t);
    case JOT_F16:
    case JOT_BF16:
        return compare_floats(half_to_double(d, ((const uint16_t *)data)[i]),
                              half_to_double(d, ((const uint16_t *)data)[k]));
    case JOT_F32:
        return compare_floats((double)((const float *)data)[i],
                              (double)((const float *)data)[k]);
    case JOT_F64:
        return compare_floats(((const double *)data)[i], ((const double *)data)[k]);
    default: {
        int first = compare(dtype_real(d), data, 2 * i, 2 * k);
        return first ? first : compare(dtype_real(d), data, 2 * i + 1, 2 * k + 1);
    }
    }
}

static uint64_t random_bits(void)
{
    uint64_t x = 0;
    for (int i = 0; i < 5; i++)
        x = x << 15 ^ (uint64_t)rand();
    return x;
}

// Few different values, with all that floats have that is special.
static void draw(jot_dtype d, void *data, int64_t n)
{
    jot_dtype real = dtype_real(d);
    size_t bytes = jot_dtype_size(real);
    int64_t count = n * (int64_t)(jot_dtype_size(d) / bytes);
    for (int64_t i = 0; i < count; i++) {
        static const double special[] = {0.0, -0.0, NAN, -NAN, INFINITY, -INFINITY, 1, -1};
        uint64_t bits = random_bits();
        if (d == JOT_BOOL)
            bits &= 1;
        else if (rand() % 3 == 0)
            bits &= 3;
        double x = special[rand() % 8];
        float single = (float)x;
        if (dtype_is_float(real) && rand() % 2) {
            if (real == JOT_F64)
                memcpy(&bits, &x, 8);
            else if (real == JOT_F32)
                memcpy(&bits, &single, 4);
            else
                bits = real == JOT_F16 ? dtype_f16_from_f64(x) : dtype_bf16_from_f64(x);
        }
        memcpy((char *)data + (size_t)i * bytes, &bits, bytes);
    }
}

static bool comes_before(const struct rt_sort *s, int64_t start, int64_t i, int64_t k)
{
    for (int o = 0; o < s->n_keys; o++) {
        int order = compare(s->dtype[o], s->in[o], start + i, start + k);
        if (order)
            return order < 0;
    }
    return i < k;
}

static const struct rt_sort *sorting;
static int64_t sorting_start;

static int by_keys(const void *a, const void *b)
{
    int64_t i = *(const int64_t *)a, k = *(const int64_t *)b;
    return comes_before(sorting, sorting_start, i, k) ? -1 : 1;
}

static void check_sort(struct rt_pool *pool, int n, int n_keys, const jot_dtype *dtype,
                       int64_t rows, int64_t length)
{
    struct rt_sort s = {.n = n, .n_keys = n_keys, .rows = rows, .length = length};
    for (int i = 0; i < n; i++) {
        size_t bytes = (size_t)(rows * length) * jot_dtype_size(dtype[i]) + 1;
        void *in = malloc(bytes);
        draw(dtype[i], in, rows * length);
        s.dtype[i] = dtype[i];
        s.in[i] = in;
        s.out[i] = malloc(bytes);
    }
    ck_assert_int_eq(rt_sort(pool, &s), JOT_OK);
    int64_t *order = malloc((size_t)length * sizeof *order + 1);
    for (int64_t row = 0; row < rows; row++) {
        for (int64_t i = 0; i < length; i++)
            order[i] = i;
        sorting = &s;
        sorting_start = row * length;
        qsort(order, (size_t)length, sizeof *order, by_keys);
        for (int o = 0; o < n; o++) {
            size_t bytes = jot_dtype_size(dtype[o]);
            for (int64_t i = 0; i < length; i++)
                ck_assert_msg(
                    !memcmp((char *)s.out[o] + (size_t)(row * length + i) * bytes,
                            (const char *)s.in[o] + (size_t)(row * length + order[i]) * bytes,
                            bytes),
                    "operand %d of %d (%d keys, first %s), row %lld of %lld, element %lld of "
                    "%lld, seed %u",
                    o, n, n_keys, dtype_get(dtype[0])->name, (long long)row, (long long)rows,
                    (long long)i, (long long)length, seed);
        }
    }
    free(order);
    for (int i = 0; i < n; i++) {
        free((void *)s.in[i]);
        free(s.out[i]);
    }
}

static const int64_t lengths[] = {0, 1, 2, 17, 49, 300, 5000};

START_TEST(every_dtype)
{
    struct rt_pool *pool = rt_pool_create(3);
    for (int d = 0; d < DTYPE_COUNT; d++)
        for (int i = 0; i < 7; i++) {
            jot_dtype with_index[] = {(jot_dtype)d, JOT_I32}, pair[] = {(jot_dtype)d, JOT_F64};
            check_sort(pool, 1, 1, with_index, 3, lengths[i]);
            check_sort(pool, 2, 1, with_index, 2, lengths[i]);
            check_sort(pool, 2, 2, pair, 1, lengths[i]);
        }
    rt_pool_release(pool);
}
END_TEST

START_TEST(several_keys)
{
    struct rt_pool *pool = rt_pool_create(2);
    for (int turn = 0; turn < 60; turn++) {
        jot_dtype dtype[RT_SORT_MOST];
        int n = 1 + rand() % RT_SORT_MOST;
        for (int i = 0; i < n; i++)
            dtype[i] = (jot_dtype)(rand() % DTYPE_COUNT);
        check_sort(pool, n, 1 + rand() % n, dtype, 1 + rand() % 40, lengths[1 + rand() % 5]);
    }
    rt_pool_release(pool);
}
END_TEST

// A row long enough for several workers.
START_TEST(one_long_row)
{
    static const jot_dtype cases[][2] = {
        {JOT_F32, JOT_I32}, {JOT_F64, JOT_I32}, {JOT_I16, JOT_C128}, {JOT_C64, JOT_U8}};
    for (int size = 1; size <= 4; size += 3) {
        struct rt_pool *pool = rt_pool_create(size);
        for (int i = 0; i < 4; i++) {
            check_sort(pool, 1, 1, cases[i], 1, 70001);
            check_sort(pool, 2, 1 + i % 2, cases[i], 2, 40000);
        }
        rt_pool_release(pool);
    }
}
END_TEST

// The order of top_k: of floats that of sign and magnitude.
static int compare_total(jot_dtype d, const void *data, int64_t i, int64_t k)
{
    if (!dtype_is_float(d))
        return compare(d, data, i, k);
    int64_t key[2] = {0, 0}, at[] = {i, k};
    size_t bytes = jot_dtype_size(d);
    for (int n = 0; n < 2; n++) {
        memcpy((char *)&key[n] + 8 - bytes, (const char *)data + (size_t)at[n] * bytes, bytes);
        key[n] = key[n] < 0 ? -1 - (key[n] & INT64_MAX) : key[n];
    }
    return (key[0] > key[1]) - (key[0] < key[1]);
}

// Of the rows in `in`, which is freed.
static void check_top_k_of(struct rt_pool *pool, jot_dtype d, int64_t rows, int64_t length,
                           int64_t k, char *in)
{
    size_t bytes = jot_dtype_size(d);
    char *values = malloc((size_t)(rows * k) * bytes + 1);
    int32_t *indices = malloc((size_t)(rows * k) * 4 + 1);
    struct rt_top_k t = {.dtype = d,
                         .index_dtype = JOT_I32,
                         .rows = rows,
                         .length = length,
                         .k = k,
                         .in = in,
                         .values = values,
                         .indices = indices};
    ck_assert_int_eq(rt_top_k(pool, &t), JOT_OK);
    bool *taken = malloc((size_t)length + 1);
    for (int64_t row = 0; row < rows; row++) {
        memset(taken, 0, (size_t)length);
        for (int64_t i = 0; i < k; i++) {
            int64_t at = indices[row * k + i], before = i ? indices[row * k + i - 1] : -1;
            ck_assert_msg(at >= 0 && at < length && !taken[at], "seed %u", seed);
            taken[at] = true;
            ck_assert_msg(!memcmp(values + (size_t)(row * k + i) * bytes,
                                  in + (size_t)(row * length + at) * bytes, bytes),
                          "%s: value %lld, seed %u", dtype_get(d)->name, (long long)i, seed);
            int order = i ? compare_total(d, in, row * length + before, row * length + at) : 1;
            ck_assert_msg(order > 0 || (order == 0 && before < at), "%s of %lld, seed %u",
                          dtype_get(d)->name, (long long)length, seed);
        }
        int64_t last = k ? indices[row * k + k - 1] : 0;
        for (int64_t i = 0; i < length && k; i++) {
            int order = compare_total(d, in, row * length + i, row * length + last);
            ck_assert_msg(taken[i] || order < 0 || (order == 0 && i > last),
                          "%s: element %lld of %lld is not among the %lld, seed %u",
                          dtype_get(d)->name, (long long)i, (long long)length, (long long)k,
                          seed);
        }
    }
    free(taken);
    free(indices);
    free(values);
    free(in);
}

static void check_top_k(struct rt_pool *pool, jot_dtype d, int64_t rows, int64_t length,
                        int64_t k)
{
    char *in = malloc((size_t)(rows * length) * jot_dtype_size(d) + 1);
    draw(d, in, rows * length);
    check_top_k_of(pool, d, rows, length, k, in);
}

// Rows whose elements get better and better, and rows of nothing but the best.
START_TEST(greatest_at_the_end)
{
    static const jot_dtype words[] = {JOT_U32, JOT_I32};
    struct rt_pool *pool = rt_pool_create(2);
    for (int i = 0; i < 2; i++) {
        uint32_t *rising = malloc(5000 * sizeof *rising), *best = malloc(5000 * sizeof *best);
        for (uint32_t k = 0; k < 5000; k++) {
            rising[k] = k / 3;
            best[k] = i ? INT32_MAX : UINT32_MAX;
        }
        check_top_k_of(pool, words[i], 2, 2500, 7, (char *)rising);
        check_top_k_of(pool, words[i], 1, 5000, 100, (char *)best);
        uint8_t *bytes = malloc(3000);
        memset(bytes, i ? INT8_MAX : UINT8_MAX, 3000);
        check_top_k_of(pool, i ? JOT_I8 : JOT_U8, 3, 1000, 5, (char *)bytes);
    }
    // A bound within sixteen words, at their ends, and none that reaches it.
    uint32_t keys[40] = {0};
    ck_assert_int_eq(sort_find_word(keys, 0, 40, 1), 40);
    ck_assert_int_eq(sort_find_word(keys, 3, 40, 0), 3);
    for (int k = 0; k < 40; k++) {
        keys[k] = UINT32_C(0x80000001);
        ck_assert_int_eq(sort_find_word(keys, 0, 40, UINT32_C(0x80000001)), k);
        ck_assert_int_eq(sort_find_word(keys, 0, 40, UINT32_C(0x80000002)), 40);
        ck_assert_int_eq(sort_find_word(keys, k + 1, 40, 1), 40);
        keys[k] = 0;
    }
    rt_pool_release(pool);
}
END_TEST

START_TEST(greatest)
{
    struct rt_pool *pool = rt_pool_create(3);
    for (int d = 0; d < DTYPE_COUNT; d++) {
        if (dtype_is_complex((jot_dtype)d))
            continue;
        check_top_k(pool, (jot_dtype)d, 5, 1, 1);
        check_top_k(pool, (jot_dtype)d, 5, 20, 0);
        check_top_k(pool, (jot_dtype)d, 3, 40, 40);
        check_top_k(pool, (jot_dtype)d, 4, 3000, 7);
        check_top_k(pool, (jot_dtype)d, 2, 5000, 2600);
        check_top_k(pool, (jot_dtype)d, 1, 60000, 100);
    }
    rt_pool_release(pool);
}
END_TEST

int main(void)
{
    const char *given = getenv("JOT_TEST_SEED");
    seed = given ? (unsigned)strtoul(given, NULL, 10) : (unsigned)time(NULL);
    printf("JOT_TEST_SEED=%u\n", seed);
    srand(seed);
    Suite *suite = suite_create("sort");
    TCase *t = tcase_create("sort");
    tcase_add_test(t, every_dtype);
    tcase_add_test(t, several_keys);
    tcase_add_test(t, one_long_row);
    tcase_add_test(t, greatest);
    tcase_add_test(t, greatest_at_the_end);
    tcase_set_timeout(t, 60);
    suite_add_tcase(suite, t);
    SRunner *r = srunner_create(suite);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
