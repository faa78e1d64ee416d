// SPDX-License-Identifier: Apache-2.0
#include "ir/literal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_DIGITS = 64,         // of a number to be read
    LARGEST_EXPONENT = 99999, // beyond every float
};

static uint64_t load_bits(jot_dtype dtype, const void *element)
{
    uint8_t b[8];
    uint64_t bits = 0;
    int n = dtype_get(dtype)->bytes;
    memcpy(b, element, (size_t)n);
    for (int i = n; i-- > 0;)
        bits = bits << 8 | b[i];
    return bits;
}

static void store_bits(jot_dtype dtype, uint64_t bits, void *element)
{
    uint8_t b[8];
    int n = dtype_get(dtype)->bytes;
    for (int i = 0; i < n; i++)
        b[i] = (uint8_t)(bits >> 8 * i);
    memcpy(element, b, (size_t)n);
}

static double load_float(jot_dtype dtype, const void *element)
{
    float f;
    double d;
    switch (dtype) {
    case JOT_F16:
        return dtype_f16_to_f32((uint16_t)load_bits(dtype, element));
    case JOT_BF16:
        return dtype_bf16_to_f32((uint16_t)load_bits(dtype, element));
    case JOT_F32:
        memcpy(&f, element, sizeof f);
        return f;
    default:
        memcpy(&d, element, sizeof d);
        return d;
    }
}

static uint64_t quiet_nan(jot_dtype dtype)
{
    switch (dtype) {
    case JOT_F16:
        return 0x7e00;
    case JOT_BF16:
        return 0x7fc0;
    case JOT_F32:
        return 0x7fc00000;
    default:
        return UINT64_C(0x7ff8000000000000);
    }
}

// The number 0.d1d2d3... times 10^(exponent + 1), without help of the locale.
static void print_digits(struct strbuf *s, const char *digits, int n, int exponent)
{
    if (exponent < -5 || exponent > 20) {
        strbuf_add_bytes(s, digits, 1);
        if (n > 1)
            strbuf_printf(s, ".%.*s", n - 1, digits + 1);
        strbuf_printf(s, "e%d", exponent);
    } else if (exponent < 0) {
        strbuf_printf(s, "0.%.*s%.*s", -exponent - 1, "00000", n, digits);
    } else if (n <= exponent + 1) {
        strbuf_printf(s, "%.*s%.*s", n, digits, exponent + 1 - n, "00000000000000000000");
    } else {
        strbuf_printf(s, "%.*s.%.*s", exponent + 1, digits, n - exponent - 1,
                      digits + exponent + 1);
    }
}

static void print_finite(struct strbuf *s, double x, int n_digits)
{
    char text[64], digits[32];
    int n = 0;
    snprintf(text, sizeof text, "%.*e", n_digits - 1, fabs(x));
    const char *at = text;
    for (; *at != 'e'; at++) {
        if (*at >= '0' && *at <= '9')
            digits[n++] = *at;
    }
    if (signbit(x))
        strbuf_add(s, "-");
    print_digits(s, digits, n, (int)strtol(at + 1, NULL, 10));
}

static void print_float(struct strbuf *s, jot_dtype dtype, const void *element)
{
    double x = load_float(dtype, element);
    if (isnan(x)) {
        uint64_t bits = load_bits(dtype, element);
        strbuf_add(s, "nan");
        if (bits != quiet_nan(dtype))
            strbuf_printf(s, "(0x%llx)", (unsigned long long)bits);
        return;
    }
    if (isinf(x)) {
        strbuf_add(s, x < 0 ? "-inf" : "inf");
        return;
    }
    size_t start = s->length;
    for (int n = 1; n <= 17; n++) {
        uint8_t back[8];
        s->length = start;
        print_finite(s, x, n);
        const char *at = s->text + start;
        if (literal_read(&at, dtype, back) && !memcmp(back, element, dtype_get(dtype)->bytes))
            return;
    }
}

void literal_print(struct strbuf *s, jot_dtype dtype, const void *element)
{
    const struct dtype_info *info = dtype_get(dtype);
    uint64_t bits;
    switch (info->kind) {
    case 'b':
        strbuf_add(s, *(const uint8_t *)element ? "true" : "false");
        break;
    case 'i':
        bits = load_bits(dtype, element);
        // Sign extension from the width of the type.
        bits = (bits ^ UINT64_C(1) << (info->bits - 1)) - (UINT64_C(1) << (info->bits - 1));
        strbuf_printf(s, "%lld", (long long)bits);
        break;
    case 'u':
        strbuf_printf(s, "%llu", (unsigned long long)load_bits(dtype, element));
        break;
    case 'c':
        strbuf_add(s, "(");
        print_float(s, dtype_real(dtype), element);
        strbuf_add(s, ", ");
        print_float(s, dtype_real(dtype), (const uint8_t *)element + info->bytes / 2);
        strbuf_add(s, ")");
        break;
    default:
        print_float(s, dtype, element);
    }
}

static bool skip_word(const char **at, const char *word)
{
    size_t n = strlen(word);
    if (strncmp(*at, word, n) != 0)
        return false;
    *at += n;
    return true;
}

static void skip_blanks(const char **at)
{
    while (**at == ' ' || **at == '\t')
        ++*at;
}

static int digit_of(char c, int base)
{
    int d = c >= '0' && c <= '9'   ? c - '0'
            : c >= 'a' && c <= 'f' ? c - 'a' + 10
            : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                   : 99;
    return d < base ? d : -1;
}

// Digits up to a limit.
static bool read_magnitude(const char **at, int base, uint64_t limit, uint64_t *out)
{
    const char *p = *at;
    uint64_t x = 0;
    for (int d; (d = digit_of(*p, base)) >= 0; p++) {
        if (x > (limit - (uint64_t)d) / (uint64_t)base)
            return false;
        x = x * (uint64_t)base + (uint64_t)d;
    }
    if (p == *at)
        return false;
    *at = p;
    *out = x;
    return true;
}

bool literal_read_int(const char **at, int64_t *out)
{
    const char *p = *at;
    bool negative = skip_word(&p, "-");
    uint64_t x;
    if (!read_magnitude(&p, 10, (uint64_t)INT64_MAX + negative, &x))
        return false;
    *at = p;
    *out = (int64_t)(negative ? -x : x);
    return true;
}

static bool read_integer(const char **at, jot_dtype dtype, void *element)
{
    const char *p = *at;
    bool negative = skip_word(&p, "-");
    int bits = dtype_get(dtype)->bits;
    uint64_t limit = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1, x;
    if (dtype_is_signed(dtype))
        limit = limit / 2 + negative;
    else if (negative)
        return false;
    if (!read_magnitude(&p, 10, limit, &x))
        return false;
    store_bits(dtype, negative ? -x : x, element);
    *at = p;
    return true;
}

static bool read_exponent(const char **at, int *exponent)
{
    uint64_t x;
    bool negative = skip_word(at, "-");
    if (!negative)
        skip_word(at, "+");
    if (!read_magnitude(at, 10, LARGEST_EXPONENT, &x))
        return false;
    *exponent += negative ? -(int)x : (int)x;
    return true;
}

// A number as strtod takes it, the point moved into the exponent so that no locale matters.
static bool read_digits(const char **at, char *text, size_t size)
{
    const char *p = *at;
    bool negative = skip_word(&p, "-"), point = false, hex = skip_word(&p, "0x");
    int base = hex ? 16 : 10, n = 0, exponent = 0;
    char digits[MOST_DIGITS + 1];
    for (;; p++) {
        if (*p == '.' && !point) {
            point = true;
            continue;
        }
        if (digit_of(*p, base) < 0)
            break;
        if (n == MOST_DIGITS)
            return false;
        digits[n++] = *p;
        exponent -= point ? hex ? 4 : 1 : 0;
    }
    digits[n] = 0;
    if (n == 0 || (skip_word(&p, hex ? "p" : "e") && !read_exponent(&p, &exponent)))
        return false;
    snprintf(text, size, "%s%s%s%c%d", negative ? "-" : "", hex ? "0x" : "", digits,
             hex ? 'p' : 'e', exponent);
    *at = p;
    return true;
}

static bool store_float(jot_dtype dtype, const char *text, void *element)
{
    float f = strtof(text, NULL);
    double d = strtod(text, NULL);
    switch (dtype) {
    case JOT_F16:
        store_bits(dtype, dtype_f16_from_f64(d), element);
        break;
    case JOT_BF16:
        store_bits(dtype, dtype_bf16_from_f64(d), element);
        break;
    case JOT_F32:
        memcpy(element, &f, sizeof f);
        break;
    default:
        memcpy(element, &d, sizeof d);
    }
    return isfinite(load_float(dtype, element));
}

static bool read_float(const char **at, jot_dtype dtype, void *element)
{
    const char *p = *at;
    char text[MOST_DIGITS + 32];
    uint64_t bits = quiet_nan(dtype);
    uint64_t all = UINT64_MAX >> (64 - dtype_get(dtype)->bits);
    if (skip_word(&p, "nan")) {
        if (skip_word(&p, "(0x") &&
            (!read_magnitude(&p, 16, all, &bits) || !skip_word(&p, ")")))
            return false;
        store_bits(dtype, bits, element);
        if (!isnan(load_float(dtype, element)))
            return false;
    } else if (skip_word(&p, "inf") || skip_word(&p, "-inf")) {
        // The bits above those of the quiet bit are the exponent.
        uint64_t quiet = dtype == JOT_F16    ? 0x200
                         : dtype == JOT_BF16 ? 0x40
                         : dtype == JOT_F32  ? 0x400000
                                             : UINT64_C(1) << 51;
        store_bits(dtype, (bits - quiet) | (**at == '-' ? all ^ all >> 1 : 0), element);
    } else if (!read_digits(&p, text, sizeof text) || !store_float(dtype, text, element)) {
        return false;
    }
    *at = p;
    return true;
}

static bool read_complex(const char **at, jot_dtype dtype, void *element)
{
    const char *p = *at;
    jot_dtype part = dtype_real(dtype);
    if (!skip_word(&p, "("))
        return false;
    skip_blanks(&p);
    if (!read_float(&p, part, element))
        return false;
    skip_blanks(&p);
    if (!skip_word(&p, ","))
        return false;
    skip_blanks(&p);
    if (!read_float(&p, part, (uint8_t *)element + dtype_get(part)->bytes))
        return false;
    skip_blanks(&p);
    if (!skip_word(&p, ")"))
        return false;
    *at = p;
    return true;
}

bool literal_read(const char **at, jot_dtype dtype, void *element)
{
    const char *p = *at;
    switch (dtype_get(dtype)->kind) {
    case 'b':
        *(uint8_t *)element = strncmp(p, "true", 4) == 0;
        return skip_word(at, "true") || skip_word(at, "false");
    case 'i':
    case 'u':
        return read_integer(at, dtype, element);
    case 'c':
        return read_complex(at, dtype, element);
    default:
        return read_float(at, dtype, element);
    }
}
