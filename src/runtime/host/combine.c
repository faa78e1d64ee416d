// SPDX-License-Identifier: Apache-2.0
#include "runtime/host/combine.h"

#include "base/dtype.h"

#include <stdint.h>
#include <string.h>
#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#define COMBINE_BYTES 16 // of an element, at most

// Vectors of the numbers of a type, which lie anywhere among what is read, and what comparisons of them give.
#define LANES(name, number, same_size)                                                         \
    typedef number name##_lanes __attribute__((vector_size(LANE_BYTES), may_alias));           \
    typedef number name##_anywhere                                                             \
        __attribute__((vector_size(LANE_BYTES), aligned(1), may_alias));                       \
    typedef same_size name##_mask __attribute__((vector_size(LANE_BYTES)));
#define LANE_BYTES 16
LANES(i8, int8_t, int8_t)
LANES(u8, uint8_t, int8_t)
LANES(i16, int16_t, int16_t)
LANES(u16, uint16_t, int16_t)
LANES(i32, int32_t, int32_t)
LANES(u32, uint32_t, int32_t)
LANES(i64, int64_t, int64_t)
LANES(u64, uint64_t, int64_t)
LANES(f32, float, int32_t)
LANES(f64, double, int64_t)

#define ADD(name, a, b) ((a) + (b))
#define MULTIPLY(name, a, b) ((a) * (b))
#define AND(name, a, b) ((a) & (b))
#define OR(name, a, b) ((a) | (b))
#define CHOOSE(name, mask, a, b)                                                               \
    (((name##_mask)(mask) & (name##_mask)(a)) | (~(name##_mask)(mask) & (name##_mask)(b)))
#define LARGER(name, a, b) CHOOSE(name, (a) > (b), a, b)
#define SMALLER(name, a, b) CHOOSE(name, (a) < (b), a, b)
// NaN where one is; -0 is less than +0.
#define IS_NEGATIVE(name, x) ((name##_mask)(x) < 0)
#define LARGER_FLOAT(name, a, b)                                                               \
    CHOOSE(name, ((a) != (a)) | ((a) > (b)) | (((a) == (b)) & ~IS_NEGATIVE(name, a)), a, b)
#define SMALLER_FLOAT(name, a, b)                                                              \
    CHOOSE(name, ((a) != (a)) | ((a) < (b)) | (((a) == (b)) & ~IS_NEGATIVE(name, b)), a, b)

// x, and then y where there is one: what has been combined so far is read and written once for both.
#define WITH(name, operation)                                                                  \
    do {                                                                                       \
        const name##_anywhere *x_ = x, *y_ = y;                                                \
        name##_lanes *acc_ = acc;                                                              \
        for (size_t i = 0; i < n; i++) {                                                       \
            name##_lanes a_ = acc_[i], b_ = x_[i];                                             \
            a_ = (name##_lanes)operation(name, a_, b_);                                        \
            if (y_) {                                                                          \
                b_ = y_[i];                                                                    \
                a_ = (name##_lanes)operation(name, a_, b_);                                    \
            }                                                                                  \
            acc_[i] = a_;                                                                      \
        }                                                                                      \
    } while (0)

// Sums and products of integers are those of unsigned ones.
#define NUMBERS(name, sum_name, larger, smaller)                                               \
    switch (combiner) {                                                                        \
    case COLLECTIVE_SUM:                                                                       \
        WITH(sum_name, ADD);                                                                   \
        break;                                                                                 \
    case COLLECTIVE_PRODUCT:                                                                   \
        WITH(sum_name, MULTIPLY);                                                              \
        break;                                                                                 \
    case COLLECTIVE_MAX:                                                                       \
        WITH(name, larger);                                                                    \
        break;                                                                                 \
    case COLLECTIVE_MIN:                                                                       \
        WITH(name, smaller);                                                                   \
        break;                                                                                 \
    default:                                                                                   \
        break;                                                                                 \
    }
#define INTEGERS(name, sum_name) NUMBERS(name, sum_name, LARGER, SMALLER)
#define FLOATS(name) NUMBERS(name, name, LARGER_FLOAT, SMALLER_FLOAT)

#define COMPLEX_PRODUCT(type)                                                                  \
    do {                                                                                       \
        const type *x_ = from;                                                                 \
        type *a_ = acc;                                                                        \
        for (size_t i = 0; i < n; i++) {                                                       \
            type re = a_[2 * i] * x_[2 * i] - a_[2 * i + 1] * x_[2 * i + 1];                   \
            type im = a_[2 * i] * x_[2 * i + 1] + a_[2 * i + 1] * x_[2 * i];                   \
            a_[2 * i] = re;                                                                    \
            a_[2 * i + 1] = im;                                                                \
        }                                                                                      \
    } while (0)

static void multiply_complex(jot_dtype dtype, size_t n, void *acc, const void *from)
{
    if (dtype == JOT_C64)
        COMPLEX_PRODUCT(float);
    else
        COMPLEX_PRODUCT(double);
}

// n vectors.
static void combine_lanes(enum collective_combiner combiner, jot_dtype real, size_t n,
                          void *acc, const void *x, const void *y)
{
    if (combiner == COLLECTIVE_AND) {
        WITH(u8, AND);
        return;
    }
    if (combiner == COLLECTIVE_OR) {
        WITH(u8, OR);
        return;
    }
    switch (real) {
    case JOT_I8:
        INTEGERS(i8, u8)
        break;
    case JOT_I16:
        INTEGERS(i16, u16)
        break;
    case JOT_I32:
        INTEGERS(i32, u32)
        break;
    case JOT_I64:
        INTEGERS(i64, u64)
        break;
    case JOT_BOOL:
    case JOT_U8:
        INTEGERS(u8, u8)
        break;
    case JOT_U16:
        INTEGERS(u16, u16)
        break;
    case JOT_U32:
        INTEGERS(u32, u32)
        break;
    case JOT_U64:
        INTEGERS(u64, u64)
        break;
    case JOT_F64:
        FLOATS(f64)
        break;
    default:
        FLOATS(f32)
        break;
    }
}

// acc with x, and then with y where that is not NULL: n numbers.
static void combine(enum collective_combiner combiner, jot_dtype dtype, size_t n, char *acc,
                    const char *x, const char *y)
{
    _Alignas(LANE_BYTES) char last[2][LANE_BYTES] = {0};
    if (dtype_is_complex(dtype) && combiner == COLLECTIVE_PRODUCT) {
        multiply_complex(dtype, n, acc, x);
        if (y)
            multiply_complex(dtype, n, acc, y);
        return;
    }
    size_t bytes = n * dtype_get(dtype)->bytes, left = bytes % LANE_BYTES, done = bytes - left;
    combine_lanes(combiner, dtype_real(dtype), done / LANE_BYTES, acc, x, y);
    if (!left)
        return;
    memcpy(last[0], x + done, left);
    if (y)
        memcpy(last[1], y + done, left);
    memset(acc + bytes, 0, LANE_BYTES - left); // which is room of the tile
    combine_lanes(combiner, dtype_real(dtype), 1, acc + done, last[0], y ? last[1] : NULL);
}

// ---- halves ----

// Four of them, as f32 in 16 bytes, and back; as dtype.c has it for one.
typedef uint16_t halves __attribute__((vector_size(8)));
typedef float floats __attribute__((vector_size(16), may_alias));
typedef uint32_t words __attribute__((vector_size(16)));
#define WHERE(mask, x, y) (((words)(mask) & (x)) | (~(words)(mask) & (y)))

static floats widen(jot_dtype dtype, halves h)
{
    words bits = __builtin_convertvector(h, words);
    if (dtype == JOT_BF16)
        return (floats)(bits << 16);
    words sign = (bits & 0x8000) << 16, a = bits & 0x7fff;
    words denormal = (words)(__builtin_convertvector((i32_mask)a, floats) * 0x1p-24f);
    words finite = WHERE(a < 0x400, denormal, (a << 13) + 0x38000000);
    return (floats)(sign | WHERE(a >= 0x7c00, 0x7f800000 | (a & 0x3ff) << 13, finite));
}

static halves narrow(jot_dtype dtype, floats x)
{
    words u = (words)x, sign = u >> 16 & 0x8000, a = u & 0x7fffffff;
    if (dtype == JOT_BF16) {
        words rounded = (u + 0x7fff + (u >> 16 & 1)) >> 16;
        return __builtin_convertvector(WHERE(a > 0x7f800000, u >> 16 | 0x40, rounded), halves);
    }
    words denormal = (words)((floats)a + 0.5f) - 0x3f000000;
    words normal = (a - 0x38000000 + 0xfff + (a >> 13 & 1)) >> 13;
    words finite = WHERE(a < 0x38800000, denormal, normal);
    words whole = WHERE(a >= 0x477ff000, (words){0} + 0x7c00, finite);
    words nan = 0x7e00 | (a >> 13 & 0x3ff);
    return __builtin_convertvector(sign | WHERE(a > 0x7f800000, nan, whole), halves);
}

// Up to the end of the last four.
static void widen_all(jot_dtype dtype, size_t n, const uint16_t *from, float *to)
{
    halves h = {0};
    for (; n >= 4; n -= 4, from += 4, to += 4) {
        memcpy(&h, from, sizeof h);
        *(floats *)(void *)to = widen(dtype, h);
    }
    memcpy(&h, from, n * sizeof *from);
    if (n)
        *(floats *)(void *)to = widen(dtype, h);
}

static void combine_halves(enum collective_combiner combiner, jot_dtype dtype, size_t n,
                           const void *const *from, size_t begin, size_t count, uint16_t *to)
{
    _Alignas(LANE_BYTES) float acc[COMBINE_TILE], next[COMBINE_TILE];
    widen_all(dtype, count, (const uint16_t *)from[0] + begin, acc);
    for (size_t j = 1; j < n; j++) {
        widen_all(dtype, count, (const uint16_t *)from[j] + begin, next);
        combine(combiner, JOT_F32, count, (char *)acc, (const char *)next, NULL);
    }
    for (size_t i = 0; i < count; i += 4) {
        halves h = narrow(dtype, *(floats *)(void *)(acc + i));
        memcpy(to + i, &h, sizeof h);
    }
}

// ---- the whole ----

// A copy to memory that caches do not hold: the lines are not read first.
static void copy_past_caches(void *to, const void *from, size_t bytes)
{
#if defined(__x86_64__)
    if ((uintptr_t)to % LANE_BYTES == 0 && bytes % LANE_BYTES == 0) {
        for (size_t at = 0; at < bytes; at += LANE_BYTES)
            _mm_stream_si128((__m128i *)((char *)to + at),
                             *(const __m128i *)((const char *)from + at));
        _mm_sfence();
        return;
    }
#endif
    memcpy(to, from, bytes);
}

void host_combine(enum collective_combiner combiner, jot_dtype dtype, size_t n,
                  const void *const *from, size_t begin, size_t end, size_t n_to,
                  void *const *to, size_t at, bool is_large)
{
    _Alignas(LANE_BYTES) char acc[COMBINE_TILE * COMBINE_BYTES];
    size_t size = dtype_get(dtype)->bytes, skip = begin * size, bytes = (end - begin) * size;
    if (dtype_is_half(dtype)) {
        combine_halves(combiner, dtype, n, from, begin, end - begin, (uint16_t *)(void *)acc);
    } else {
        memcpy(acc, (const char *)from[0] + skip, bytes);
        for (size_t j = 1; j < n; j += 2)
            combine(combiner, dtype, end - begin, acc, (const char *)from[j] + skip,
                    j + 1 < n ? (const char *)from[j + 1] + skip : NULL);
    }
    for (size_t k = 0; k < n_to; k++)
        if (is_large)
            copy_past_caches((char *)to[k] + at * size, acc, bytes);
        else
            memcpy((char *)to[k] + at * size, acc, bytes);
}
