// SPDX-License-Identifier: Apache-2.0
#include "interop/numbers.h"

#include "base/dtype.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct number_format formats[MLIR_N_ELEMENTS] = {
    [MLIR_F8E4M3FN] = {4, 3, 7, NUMBER_FN},     [MLIR_F8E5M2] = {5, 2, 15, NUMBER_IEEE},
    [MLIR_F8E4M3FNUZ] = {4, 3, 8, NUMBER_FNUZ}, [MLIR_F8E5M2FNUZ] = {5, 2, 16, NUMBER_FNUZ},
    [MLIR_F8E4M3B11] = {4, 3, 11, NUMBER_FNUZ}, [MLIR_F8E4M3] = {4, 3, 7, NUMBER_IEEE},
    [MLIR_F8E3M4] = {3, 4, 3, NUMBER_IEEE},     [MLIR_F8E8M0FNU] = {8, 0, 127, NUMBER_FN},
    [MLIR_F4E2M1FN] = {2, 1, 1, NUMBER_FINITE}, [MLIR_F6E2M3FN] = {2, 3, 1, NUMBER_FINITE},
    [MLIR_F6E3M2FN] = {3, 2, 3, NUMBER_FINITE}, [MLIR_F16] = {5, 10, 15, NUMBER_IEEE},
    [MLIR_BF16] = {8, 7, 127, NUMBER_IEEE},     [MLIR_F32] = {8, 23, 127, NUMBER_IEEE},
    [MLIR_F64] = {11, 52, 1023, NUMBER_IEEE},
};

const struct number_format *number_format(enum mlir_element e) { return &formats[e]; }

double number_largest(enum mlir_element e)
{
    const struct number_format *f = &formats[e];
    uint64_t all = (UINT64_C(1) << (f->exponent + f->mantissa)) - 1;
    uint64_t bits = f->flavour == NUMBER_IEEE ? all - (UINT64_C(1) << f->mantissa)
                    : f->flavour == NUMBER_FN ? all - 1
                                              : all;
    return number_load(e, &bits);
}

size_t number_bytes(enum mlir_element e)
{
    const struct mlir_element_row *row = &mlir_elements[e];
    return row->kind == '-' ? 0 : row->bits < 8 ? 1 : (size_t)row->bits / 8;
}

enum mlir_element number_part(enum mlir_element e)
{
    return e == MLIR_C64 ? MLIR_F32 : e == MLIR_C128 ? MLIR_F64 : e;
}

// ---- bits

static uint64_t load_bits(const void *element, size_t n)
{
    uint64_t bits = 0;
    memcpy(&bits, element, n);
    return bits;
}

static uint64_t nan_bits(const struct number_format *f)
{
    if (f->flavour == NUMBER_FNUZ || f->flavour == NUMBER_FINITE)
        return UINT64_C(1) << (f->exponent + f->mantissa);
    uint64_t exponent = (UINT64_C(1) << f->exponent) - 1;
    uint64_t mantissa = f->flavour == NUMBER_FN ? (UINT64_C(1) << f->mantissa) - 1
                                                : UINT64_C(1) << (f->mantissa - 1);
    return exponent << f->mantissa | mantissa;
}

// The bits without a sign of x >= 0.  Where x lies halfway between two numbers, beyond (1 or -1) says
// on which side of x the number is that x stands for; 0: x itself, and the even one is taken.
static uint64_t round_to(const struct number_format *f, double x, int beyond, bool *is_halfway)
{
    *is_halfway = false;
    if (isnan(x))
        return nan_bits(f);
    int exponent;
    frexp(x, &exponent); // x in [1/2, 1) * 2^exponent
    int least = 1 - f->bias;
    int e = x == 0 || exponent - 1 < least ? least : exponent - 1;
    uint64_t largest = (UINT64_C(1) << (f->exponent + f->mantissa)) - 1;
    uint64_t infinity = ((UINT64_C(1) << f->exponent) - 1) << f->mantissa;
    uint64_t bits;
    if (isinf(x)) {
        bits = UINT64_MAX;
    } else {
        // In units of the last place; the product is exact.
        double units = ldexp(x, f->mantissa - e), whole = floor(units);
        double rest = units - whole;
        uint64_t n = (uint64_t)whole;
        *is_halfway = rest == 0.5;
        n += rest > 0.5 || (rest == 0.5 && (beyond > 0 || (beyond == 0 && n % 2)));
        // n has the hidden bit where the number is normal, and carries into the exponent.
        bits = n + ((uint64_t)(e - least) << f->mantissa);
    }
    if (f->flavour == NUMBER_IEEE)
        return bits > infinity ? infinity : bits;
    if (f->flavour == NUMBER_FN || f->flavour == NUMBER_FINITE)
        return bits >= largest ? largest : bits;
    return bits > largest ? nan_bits(f) : bits;
}

// Of two powers of two that are as near the greater one is taken.
static uint64_t round_to_scale(double x, int beyond, bool *is_halfway)
{
    enum { SCALE_NAN = 255 };
    int exponent;
    double m = frexp(x, &exponent); // in [1/2, 1)
    *is_halfway = m == 0.75;
    if (!(x > 0) || isinf(x))
        return SCALE_NAN;
    exponent += 126 + (m > 0.75 || (m == 0.75 && beyond >= 0));
    return exponent < 0 ? 0 : exponent > SCALE_NAN ? SCALE_NAN : (uint64_t)exponent;
}

static void store_rounded(enum mlir_element e, double x, int beyond, void *element,
                          bool *is_halfway)
{
    const struct number_format *f = &formats[e];
    bool is_negative = signbit(x);
    uint64_t bits;
    if (e == MLIR_F64) {
        memcpy(&bits, &x, sizeof bits);
        *is_halfway = false;
    } else if (e == MLIR_F8E8M0FNU) {
        bits = round_to_scale(x, beyond, is_halfway);
    } else {
        bits = round_to(f, fabs(x), beyond, is_halfway);
        if (is_negative && !(f->flavour == NUMBER_FNUZ && (bits == 0 || bits == nan_bits(f))))
            bits |= UINT64_C(1) << (f->exponent + f->mantissa);
    }
    memcpy(element, &bits, number_bytes(e));
}

void number_store(enum mlir_element e, double x, void *element)
{
    bool is_halfway;
    store_rounded(e, x, 0, element, &is_halfway);
}

double number_load(enum mlir_element e, const void *element)
{
    const struct mlir_element_row *row = &mlir_elements[e];
    size_t size = number_bytes(e);
    uint64_t bits = load_bits(element, size);
    if (row->kind == 'i') {
        unsigned shift = 64 - 8 * (unsigned)size;
        return (double)((int64_t)(bits << shift) >> shift);
    }
    if (row->kind != 'f')
        return (double)bits;
    if (e == MLIR_F8E8M0FNU)
        return bits == 255 ? (double)NAN : ldexp(1, (int)bits - 127);
    const struct number_format *f = &formats[e];
    uint64_t mantissa = bits & ((UINT64_C(1) << f->mantissa) - 1);
    int exponent = (int)(bits >> f->mantissa) & ((1 << f->exponent) - 1);
    bool is_negative = bits >> (f->exponent + f->mantissa) & 1;
    bool is_last = exponent == (1 << f->exponent) - 1;
    uint64_t magnitude = bits & ((UINT64_C(1) << (f->exponent + f->mantissa)) - 1);
    double x;
    if (f->flavour == NUMBER_IEEE && is_last)
        x = mantissa ? (double)NAN : (double)INFINITY;
    else if ((f->flavour == NUMBER_FN && magnitude == nan_bits(f)) ||
             (f->flavour == NUMBER_FNUZ && bits == nan_bits(f)))
        return (double)NAN;
    else if (exponent)
        x = ldexp((double)(mantissa | UINT64_C(1) << f->mantissa),
                  exponent - f->bias - f->mantissa);
    else
        x = ldexp((double)mantissa, 1 - f->bias - f->mantissa);
    return is_negative ? -x : x;
}

void number_keep_small(enum mlir_element e, const unsigned char *elements, size_t n, void *out)
{
    for (size_t i = 0; i < n; i++)
        if (mlir_elements[e].dtype == JOT_F16)
            ((uint16_t *)out)[i] = dtype_f16_from_f64(number_load(e, elements + i));
        else
            ((float *)out)[i] = (float)number_load(e, elements + i);
}

// ---- decimals

// More digits than the middle between two doubles can have.
enum { MOST_DIGITS = 800 };

// Digits without zeros in front, times 10^exponent.
struct decimal {
    bool is_negative;
    int count;
    int64_t exponent;
    char digits[MOST_DIGITS + 2];
};

static void read_decimal(const char *text, size_t n, struct decimal *d)
{
    const char *end = text + n;
    bool point = false, rest = false;
    *d = (struct decimal){.is_negative = n && *text == '-'};
    if (n && (*text == '-' || *text == '+'))
        text++;
    for (; text < end && *text != 'e' && *text != 'E'; text++) {
        if (*text == '.') {
            point = true;
            continue;
        }
        d->exponent -= point;
        if (d->count == 0 && *text == '0')
            continue;
        if (d->count < MOST_DIGITS) {
            d->digits[d->count++] = *text;
        } else {
            rest |= *text != '0';
            d->exponent++;
        }
    }
    if (rest) { // which counts only beside a number that ends where the others do
        d->digits[d->count++] = '1';
        d->exponent--;
    }
    int64_t exponent = 0;
    bool is_small = false;
    if (text < end && ++text < end && (*text == '-' || *text == '+'))
        is_small = *text++ == '-';
    for (; text < end; text++)
        exponent = exponent > 100000000 ? exponent : 10 * exponent + (*text - '0');
    d->exponent += is_small ? -exponent : exponent;
    if (d->count == 0)
        d->exponent = 0;
}

// The number less its sign, rounded to nearest even.
static double to_double(const struct decimal *d)
{
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                    1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    if (d->count <= 15 && d->exponent >= -22 && d->exponent <= 22) {
        int64_t x = 0;
        for (int i = 0; i < d->count; i++)
            x = 10 * x + (d->digits[i] - '0');
        // Both are exact, so this rounds once.
        return d->exponent < 0 ? (double)x / powers[-d->exponent]
                               : (double)x * powers[d->exponent];
    }
    // Without a point, which would be that of the locale.
    char text[MOST_DIGITS + 40];
    int64_t exponent = d->exponent < -100000  ? -100000
                       : d->exponent > 100000 ? 100000
                                              : d->exponent;
    snprintf(text, sizeof text, "%.*se%d", d->count, d->digits, (int)exponent);
    return strtod(text, NULL);
}

// -1, 0 or 1 as the number is below, at or above x > 0.
static int compare(const struct decimal *d, double x)
{
    struct decimal of_x;
    char text[MOST_DIGITS + 40];
    snprintf(text, sizeof text, "%.*e", MOST_DIGITS - 1, x);
    // Without what the locale has for a point.
    char *rest = text + 1;
    while (*rest < '0' || *rest > '9')
        rest++;
    memmove(text + 1, rest, strlen(rest) + 1);
    read_decimal(text, strlen(text), &of_x);
    of_x.exponent -= MOST_DIGITS - 1;
    int64_t top = d->exponent + d->count, top_x = of_x.exponent + of_x.count;
    if (top != top_x)
        return top < top_x ? -1 : 1;
    for (int i = 0; i < d->count || i < of_x.count; i++) {
        int a = i < d->count ? d->digits[i] : '0', b = i < of_x.count ? of_x.digits[i] : '0';
        if (a != b)
            return a < b ? -1 : 1;
    }
    return 0;
}

// A double nearest to the number lies on the number's side of every middle between two elements, or
// on the middle: then the decimals themselves decide.
void number_store_decimal(enum mlir_element e, const char *text, size_t n, void *element)
{
    struct decimal d;
    bool is_halfway;
    read_decimal(text, n, &d);
    double x = to_double(&d), signed_x = d.is_negative ? -x : x;
    store_rounded(e, signed_x, 0, element, &is_halfway);
    if (is_halfway)
        store_rounded(e, signed_x, compare(&d, x), element, &is_halfway);
}

void number_print(enum mlir_element e, const void *element, char *text, size_t size)
{
    double x = number_load(e, element);
    unsigned char back[8];
    size_t bytes = number_bytes(e);
    if (!isfinite(x)) {
        snprintf(text, size, "0x%0*llX", (int)(2 * bytes),
                 (unsigned long long)load_bits(element, bytes));
        return;
    }
    for (int digits = 6; digits <= 16; digits += digits == 6 ? 2 : 8) {
        snprintf(text, size, "%.*e", digits, x);
        // What stands between the first digit and the others is the point, in any locale.
        char *point = text + 1 + (*text == '-'), *rest = point;
        while (*rest < '0' || *rest > '9')
            rest++;
        *point = '.';
        memmove(point + 1, rest, strlen(rest) + 1);
        number_store_decimal(e, text, strlen(text), back);
        if (!memcmp(back, element, bytes))
            return;
    }
}
