// SPDX-License-Identifier: Apache-2.0
#include "base/dtype.h"

#include <string.h>

const struct dtype_info dtype_table[DTYPE_COUNT] = {
#define DTYPE(NAME, name, bytes, bits, kind, real, compute)                                    \
    [JOT_##NAME] = {#name, bytes, bits, #kind[0], JOT_##real, JOT_##compute},
#include "base/dtypes.def"
#undef DTYPE
};

const char *jot_dtype_name(jot_dtype d)
{
    return dtype_is_valid((int)d) ? dtype_table[d].name : "?";
}

size_t jot_dtype_size(jot_dtype d) { return dtype_is_valid((int)d) ? dtype_table[d].bytes : 0; }

int dtype_find(const char *name, size_t length)
{
    for (int d = 0; d < DTYPE_COUNT; d++)
        if (strlen(dtype_table[d].name) == length && !memcmp(dtype_table[d].name, name, length))
            return d;
    return -1;
}

// The lattice has 15 strong points and three weak ones: i*, f*, c*.
enum { WEAK_INT = DTYPE_COUNT, WEAK_FLOAT, WEAK_COMPLEX, POINT_COUNT };

// The edges that lead up from each point, as JAX draws them.
static const uint32_t above[POINT_COUNT] = {
    [JOT_BOOL] = 1u << WEAK_INT,
    [WEAK_INT] = 1u << JOT_U8 | 1u << JOT_I8,
    [JOT_U8] = 1u << JOT_I16 | 1u << JOT_U16,
    [JOT_U16] = 1u << JOT_I32 | 1u << JOT_U32,
    [JOT_U32] = 1u << JOT_I64 | 1u << JOT_U64,
    [JOT_U64] = 1u << WEAK_FLOAT,
    [JOT_I8] = 1u << JOT_I16,
    [JOT_I16] = 1u << JOT_I32,
    [JOT_I32] = 1u << JOT_I64,
    [JOT_I64] = 1u << WEAK_FLOAT,
    [WEAK_FLOAT] = 1u << JOT_BF16 | 1u << JOT_F16 | 1u << WEAK_COMPLEX,
    [JOT_BF16] = 1u << JOT_F32,
    [JOT_F16] = 1u << JOT_F32,
    [JOT_F32] = 1u << JOT_F64 | 1u << JOT_C64,
    [JOT_F64] = 1u << JOT_C128,
    [WEAK_COMPLEX] = 1u << JOT_C64,
    [JOT_C64] = 1u << JOT_C128,
    [JOT_C128] = 0,
};

static uint32_t reachable(unsigned point)
{
    uint32_t set = 1u << point, last = 0;
    while (set != last) {
        last = set;
        for (unsigned p = 0; p < POINT_COUNT; p++)
            if (last >> p & 1)
                set |= above[p];
    }
    return set;
}

static unsigned point_of(jot_dtype d, bool weak)
{
    if (!weak || d == JOT_BOOL)
        return d;
    return dtype_is_complex(d) ? WEAK_COMPLEX : dtype_is_float(d) ? WEAK_FLOAT : WEAK_INT;
}

jot_dtype dtype_promote(jot_dtype a, bool weak_a, jot_dtype b, bool weak_b, bool *weak)
{
    uint32_t common = reachable(point_of(a, weak_a)) & reachable(point_of(b, weak_b));
    unsigned least = JOT_C128;
    for (unsigned p = 0; p < POINT_COUNT; p++)
        if (common >> p & 1 && (reachable(p) & common) == common)
            least = p;
    *weak = least >= DTYPE_COUNT;
    if (!*weak)
        return (jot_dtype)least;
    // A weak result shows the default type of its kind, or the weak operand's own: the wider one of
    // two integers, the unsigned one of 64 bits as in C.
    bool is_a = weak_a && a != JOT_BOOL, is_b = weak_b && b != JOT_BOOL;
    if (least == WEAK_INT && is_a && is_b) {
        int more = dtype_get(a)->bytes - dtype_get(b)->bytes;
        return more > 0 || (more == 0 && dtype_is_unsigned(a)) ? a : b;
    }
    if (least == WEAK_INT)
        return is_a ? a : b;
    bool wide = (weak_a && (a == JOT_F64 || a == JOT_C128)) ||
                (weak_b && (b == JOT_F64 || b == JOT_C128));
    if (least == WEAK_FLOAT)
        return wide ? JOT_F64 : JOT_F32;
    return wide ? JOT_C128 : JOT_C64;
}

jot_dtype dtype_to_inexact(jot_dtype d)
{
    if (dtype_is_inexact(d))
        return d;
    return dtype_get(d)->bytes == 8 ? JOT_F64 : JOT_F32;
}

static uint32_t bits_of(float x)
{
    uint32_t u;
    memcpy(&u, &x, 4);
    return u;
}

static float float_of(uint32_t u)
{
    float x;
    memcpy(&x, &u, 4);
    return x;
}

uint16_t dtype_bf16_from_f32(float x)
{
    uint32_t u = bits_of(x);
    if (x != x)
        return (uint16_t)(u >> 16 | 0x40);
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

float dtype_bf16_to_f32(uint16_t bits) { return float_of((uint32_t)bits << 16); }

uint16_t dtype_f16_from_f32(float x)
{
    uint32_t u = bits_of(x), sign = u >> 16 & 0x8000, a = u & 0x7fffffff;
    if (a > 0x7f800000)
        return (uint16_t)(sign | 0x7e00 | (a >> 13 & 0x3ff));
    if (a >= 0x477ff000) // 65520 and above round to infinity
        return (uint16_t)(sign | 0x7c00);
    if (a < 0x38800000) { // below 2^-14: adding 0.5 leaves the rounded denormal in the low bits
        float shifted = float_of(a) + 0.5f;
        return (uint16_t)(sign | (bits_of(shifted) - 0x3f000000));
    }
    return (uint16_t)(sign | ((a - 0x38000000 + 0xfff + (a >> 13 & 1)) >> 13));
}

float dtype_f16_to_f32(uint16_t bits)
{
    uint32_t sign = (uint32_t)(bits & 0x8000) << 16, a = bits & 0x7fff;
    if (a >= 0x7c00)
        return float_of(sign | 0x7f800000 | (a & 0x3ff) << 13);
    if (a < 0x400) // a denormal is a multiple of 2^-24
        return float_of(sign | bits_of((float)a * 0x1p-24f));
    return float_of(sign | ((a << 13) + 0x38000000));
}

// f64 to f32 rounded to odd, so that a second rounding to fewer bits is the only one that counts
// (Boldo and Melquiond 2008).
static float odd_f32(double x)
{
    float f = (float)x;
    if (x != x || (double)f == x)
        return f;
    uint32_t u = bits_of(f);
    if (u & 1)
        return f;
    bool away = ((double)f > x) == (x > 0);
    return float_of(away ? u - 1 : u + 1);
}

uint16_t dtype_f16_from_f64(double x) { return dtype_f16_from_f32(odd_f32(x)); }
uint16_t dtype_bf16_from_f64(double x) { return dtype_bf16_from_f32(odd_f32(x)); }
