// SPDX-License-Identifier: Apache-2.0
#include "runtime/host/combine.h"

#include "base/dtype.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

// A tile of what has been combined so far; halves are f32 in it.
union tile {
    uint8_t u8[COMBINE_TILE];
    int8_t i8[COMBINE_TILE];
    uint16_t u16[COMBINE_TILE];
    int16_t i16[COMBINE_TILE];
    uint32_t u32[COMBINE_TILE];
    int32_t i32[COMBINE_TILE];
    uint64_t u64[COMBINE_TILE];
    int64_t i64[COMBINE_TILE];
    float f32[2 * COMBINE_TILE];
    double f64[2 * COMBINE_TILE];
};

#define ADD(a, b) ((a) + (b))
#define MULTIPLY(a, b) ((a) * (b))
#define LARGER(a, b) ((a) > (b) ? (a) : (b))
#define SMALLER(a, b) ((a) < (b) ? (a) : (b))
#define AND(a, b) ((a) & (b))
#define OR(a, b) ((a) | (b))
// NaN where one is; -0 is less than +0.
#define LARGER_FLOAT(a, b)                                                                     \
    ((a) != (a) || (a) > (b) ? (a) : (b) != (b) || (b) > (a) || signbit(a) ? (b) : (a))
#define SMALLER_FLOAT(a, b)                                                                    \
    ((a) != (a) || (a) < (b) ? (a) : (b) != (b) || (b) < (a) || signbit(b) ? (b) : (a))

#define WITH(type, tile, operation)                                                            \
    do {                                                                                       \
        const type *x_ = from;                                                                 \
        type *a_ = tile;                                                                       \
        for (size_t i = 0; i < n; i++)                                                         \
            a_[i] = (type)operation(a_[i], x_[i]);                                             \
    } while (0)

// Sums and products of integers are those of unsigned ones.
#define INTEGERS(type, sum_type)                                                               \
    switch (combiner) {                                                                        \
    case COLLECTIVE_SUM:                                                                       \
        WITH(sum_type, (sum_type *)acc, ADD);                                                  \
        break;                                                                                 \
    case COLLECTIVE_PRODUCT:                                                                   \
        WITH(sum_type, (sum_type *)acc, MULTIPLY);                                             \
        break;                                                                                 \
    case COLLECTIVE_MAX:                                                                       \
        WITH(type, (type *)acc, LARGER);                                                       \
        break;                                                                                 \
    case COLLECTIVE_MIN:                                                                       \
        WITH(type, (type *)acc, SMALLER);                                                      \
        break;                                                                                 \
    default:                                                                                   \
        break;                                                                                 \
    }

#define FLOATS(type)                                                                           \
    switch (combiner) {                                                                        \
    case COLLECTIVE_SUM:                                                                       \
        WITH(type, (type *)acc, ADD);                                                          \
        break;                                                                                 \
    case COLLECTIVE_PRODUCT:                                                                   \
        WITH(type, (type *)acc, MULTIPLY);                                                     \
        break;                                                                                 \
    case COLLECTIVE_MAX:                                                                       \
        WITH(type, (type *)acc, LARGER_FLOAT);                                                 \
        break;                                                                                 \
    case COLLECTIVE_MIN:                                                                       \
        WITH(type, (type *)acc, SMALLER_FLOAT);                                                \
        break;                                                                                 \
    default:                                                                                   \
        break;                                                                                 \
    }

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

// Bits, a byte at a time, where that is what is combined.
static void combine_bits(enum collective_combiner combiner, size_t n, void *acc,
                         const void *from)
{
    if (combiner == COLLECTIVE_AND)
        WITH(uint8_t, acc, AND);
    else
        WITH(uint8_t, acc, OR);
}

static void combine_one(enum collective_combiner combiner, jot_dtype dtype, size_t n, void *acc,
                        const void *from)
{
    bool is_complex = dtype_is_complex(dtype);
    if (combiner == COLLECTIVE_AND || combiner == COLLECTIVE_OR) {
        combine_bits(combiner, n * dtype_get(dtype)->bytes, acc, from);
        return;
    }
    if (is_complex && combiner == COLLECTIVE_PRODUCT) {
        if (dtype == JOT_C64)
            COMPLEX_PRODUCT(float);
        else
            COMPLEX_PRODUCT(double);
        return;
    }
    n *= is_complex ? 2 : 1;
    switch (dtype_real(dtype)) {
    case JOT_I8:
        INTEGERS(int8_t, uint8_t)
        break;
    case JOT_I16:
        INTEGERS(int16_t, uint16_t)
        break;
    case JOT_I32:
        INTEGERS(int32_t, uint32_t)
        break;
    case JOT_I64:
        INTEGERS(int64_t, uint64_t)
        break;
    case JOT_BOOL:
    case JOT_U8:
        INTEGERS(uint8_t, uint8_t)
        break;
    case JOT_U16:
        INTEGERS(uint16_t, uint16_t)
        break;
    case JOT_U32:
        INTEGERS(uint32_t, uint32_t)
        break;
    case JOT_U64:
        INTEGERS(uint64_t, uint64_t)
        break;
    case JOT_F64:
        FLOATS(double)
        break;
    default:
        FLOATS(float)
        break;
    }
}

// ---- halves ----

static void widen(jot_dtype dtype, size_t n, const uint16_t *from, float *to)
{
    for (size_t i = 0; i < n; i++)
        to[i] = dtype == JOT_F16 ? dtype_f16_to_f32(from[i]) : dtype_bf16_to_f32(from[i]);
}

static void narrow(jot_dtype dtype, size_t n, const float *from, uint16_t *to)
{
    for (size_t i = 0; i < n; i++)
        to[i] = dtype == JOT_F16 ? dtype_f16_from_f64((double)from[i])
                                 : dtype_bf16_from_f64((double)from[i]);
}

static void combine_halves(enum collective_combiner combiner, jot_dtype dtype, size_t n,
                           const void *const *from, size_t begin, size_t count, uint16_t *to)
{
    float acc[COMBINE_TILE], next[COMBINE_TILE];
    widen(dtype, count, (const uint16_t *)from[0] + begin, acc);
    for (size_t j = 1; j < n; j++) {
        widen(dtype, count, (const uint16_t *)from[j] + begin, next);
        combine_one(combiner, JOT_F32, count, acc, next);
    }
    narrow(dtype, count, acc, to);
}

// ---- the whole ----

void host_combine(enum collective_combiner combiner, jot_dtype dtype, size_t n,
                  const void *const *from, size_t begin, size_t end, size_t n_to,
                  void *const *to, size_t at)
{
    union tile acc;
    size_t size = dtype_get(dtype)->bytes, skip = begin * size, bytes = (end - begin) * size;
    if (dtype_is_half(dtype)) {
        combine_halves(combiner, dtype, n, from, begin, end - begin, acc.u16);
    } else {
        memcpy(&acc, (const char *)from[0] + skip, bytes);
        for (size_t j = 1; j < n; j++)
            combine_one(combiner, dtype, end - begin, &acc, (const char *)from[j] + skip);
    }
    for (size_t k = 0; k < n_to; k++)
        memcpy((char *)to[k] + at * size, &acc, bytes);
}
