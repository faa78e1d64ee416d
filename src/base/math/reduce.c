// SPDX-License-Identifier: Apache-2.0
// M. Payne and R. Hanek, "Radian reduction for trigonometric functions" (1983): of the product
// of x and 2/pi only the digits that matter modulo 4 are computed, exactly, in integers.
#include "base/math/reduce.h"

#include <math.h>
#include <string.h>

__extension__ typedef unsigned __int128 uint128;
__extension__ typedef __int128 int128;

// 0.b1 b2 b3 ...
const uint64_t math_two_over_pi[MATH_TWO_OVER_PI] = {
    0x0000000000000000, 0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041,
    0xfe5163abdebbc561, 0xb7246e3a424dd2e0, 0x06492eea09d1921c, 0xfe1deb1cb129a73e,
    0xe88235f52ebb4484, 0xe99c7026b45f7e41, 0x3991d639835339f4, 0x9c845f8bbdf9283b,
    0x1ff897ffde05980f, 0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d,
    0x7527bac7ebe5f17b, 0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab,
    0xf0cfbc209af4361d,
};

// pi/2 * 2^127.
static const uint64_t half_pi[] = {0xc90fdaa22168c234, 0xc4c6628b80dc1cd1};

// 64 bits of 2/pi, the first of which is bit `position` + 1.
static uint64_t digits(int position)
{
    unsigned from = (unsigned)(position + 64);
    const uint64_t *word = &math_two_over_pi[from / 64];
    unsigned shift = from % 64;
    return shift == 0 ? word[0] : word[0] << shift | word[1] >> (64 - shift);
}

// Of a normal double.
static double power_of_two(int exponent)
{
    uint64_t bits = (uint64_t)(exponent + 1023) << 52;
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

int math_reduce(double x, double *out_hi, double *out_lo)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    uint64_t significand = (bits & 0x000fffffffffffff) | 0x0010000000000000;
    int exponent = (int)(bits >> 52 & 0x7ff) - 1023 - 52;

    // The product modulo 4, scaled by 2^190. The digits above are multiples of 4, those below
    // change it by less than 2^-137.
    int position = exponent - 2;
    uint128 low = (uint128)significand * digits(position + 128);
    uint128 middle = (uint128)significand * digits(position + 64) + (low >> 64);
    uint64_t top = significand * digits(position) + (uint64_t)(middle >> 64);
    uint64_t below = (uint64_t)low;

    int n = (int)((top + ((uint64_t)1 << 61)) >> 62);
    uint128 fraction = (uint128)top << 66 | (uint128)(uint64_t)middle << 2 | below >> 62;
    below <<= 2;
    int negative = (int)(fraction >> 127);
    if (negative) {
        below = -below;
        fraction = -fraction - (below != 0);
    }

    // Normalise; no double is so near to a multiple of pi/2 that the upper half is zero.
    int shift = __builtin_clzll((uint64_t)(fraction >> 64));
    if (shift > 0)
        fraction = fraction << shift | below >> (64 - shift);

    uint64_t upper = (uint64_t)(fraction >> 64), lower = (uint64_t)fraction;
    uint128 product = (uint128)upper * half_pi[0] + ((uint128)upper * half_pi[1] >> 64) +
                      ((uint128)lower * half_pi[0] >> 64);
    // The double next to the product, and what is left of it, of less than 76 bits, both in units of 2^64.
    uint64_t high = (uint64_t)(product >> 64) | ((uint64_t)product != 0);
    double hi = (double)(int64_t)(high >> 1 | (high & 1)) * 2;
    int128 rest = (int128)(product - ((uint128)(uint64_t)hi << 64));
    double lo = (double)(int64_t)(rest >> 32) * 0x1p-32 + (double)(uint32_t)rest * 0x1p-64;

    double scale = power_of_two(64 - 127 - shift);
    scale = negative ^ (int)(bits >> 63) ? -scale : scale;
    *out_hi = hi * scale;
    *out_lo = lo * scale;
    return (bits >> 63 ? -n : n) & 3;
}
