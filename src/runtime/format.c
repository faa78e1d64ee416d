// SPDX-License-Identifier: Apache-2.0
// Arrays as text, in the manner of NumPy: at most eight digits after the point, columns
// aligned, one style for the whole array, and above 1000 elements only the first and last three
// of each axis.
#include "base/dtype.h"
#include "runtime/array.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EDGE_ITEMS 3
#define SUMMARY_FROM 1000
#define LINE_WIDTH 75
#define PRECISION 8
// The digits of 1e308 never appear, as large values print with an exponent: a number takes at
// most 35 columns, and twice that with the spaces that fill its column.
#define WORD_BYTES 96

// Where the text goes: a buffer that may be too small, or a file.
struct sink {
    char *buffer;
    size_t size, length;
    FILE *file;
};

static void put(struct sink *out, const char *text, size_t n)
{
    if (out->file)
        fwrite(text, 1, n, out->file);
    for (size_t i = 0; i < n && out->length + i + 1 < out->size; i++)
        out->buffer[out->length + i] = text[i];
    out->length += n;
}

static void put_text(struct sink *out, const char *text) { put(out, text, strlen(text)); }

static void put_spaces(struct sink *out, int n)
{
    for (int i = 0; i < n; i++)
        put(out, " ", 1);
}

// How the real numbers of one array are printed.
struct style {
    jot_dtype dtype; // the real type
    bool is_scientific, has_sign;
    int left, right;       // columns before and after the point
    int digits, exp_width; // scientific: after the point; with its sign
};

// ---- one real number ----

static double round_to(jot_dtype dtype, const char *text)
{
    double x = strtod(text, NULL);
    switch (dtype) {
    case JOT_F16:
        return (double)dtype_f16_to_f32(dtype_f16_from_f64(x));
    case JOT_BF16:
        return (double)dtype_bf16_to_f32(dtype_bf16_from_f64(x));
    case JOT_F32:
        return (double)strtof(text, NULL);
    default:
        return x;
    }
}

// The fewest digits after the first one that read back as the same number.
static int shortest_digits(jot_dtype dtype, double x)
{
    char text[WORD_BYTES];
    for (int digits = 0; digits < 16; digits++) {
        snprintf(text, sizeof text, "%.*e", digits, x);
        if (round_to(dtype, text) == x)
            return digits;
    }
    return 16;
}

static int exponent_of(double x, int digits)
{
    char text[WORD_BYTES];
    snprintf(text, sizeof text, "%.*e", digits, x);
    return atoi(strchr(text, 'e') + 1);
}

static void drop_zeros(char *text)
{
    size_t n = strlen(text);
    while (n > 0 && text[n - 1] == '0')
        text[--n] = 0;
}

// "12.5", "3.": never more than `precision` digits after the point.
static void write_fixed(jot_dtype dtype, double x, int precision, char *text)
{
    int digits = shortest_digits(dtype, x), after = digits - exponent_of(x, digits);
    if (after < 0 || x == 0)
        after = 0;
    snprintf(text, WORD_BYTES, "%.*f", after < precision ? after : precision, x);
    if (strchr(text, '.'))
        drop_zeros(text);
    else
        strcat(text, ".");
}

// "1.5e-07", with zeros in front of an exponent of fewer columns than exp_width.
static void write_scientific(double x, int digits, int exp_width, char *text)
{
    snprintf(text, WORD_BYTES, "%.*e", digits, x);
    char *e = strchr(text, 'e');
    if (digits == 0) { // "1e-07" gets its point
        memmove(e + 1, e, strlen(e) + 1);
        *e++ = '.';
    }
    for (int n = (int)strlen(e + 1); n < exp_width; n++) {
        memmove(e + 3, e + 2, strlen(e + 2) + 1);
        e[2] = '0';
    }
}

static void write_real(const struct style *style, double x, char *out)
{
    char text[WORD_BYTES];
    int width = style->left + style->right + 1;
    if (!isfinite(x)) {
        const char *name = isnan(x) ? "+nan" : x < 0 ? "-inf" : "+inf";
        bool drops_sign = *name == '+' && !style->has_sign;
        snprintf(out, WORD_BYTES, "%*s", width, name + drops_sign);
        return;
    }
    if (style->is_scientific)
        write_scientific(x, style->digits, style->exp_width, text);
    else
        write_fixed(style->dtype, x, PRECISION, text);
    if (style->has_sign && text[0] != '-') {
        memmove(text + 1, text, strlen(text) + 1);
        text[0] = '+';
    }
    size_t before = strcspn(text, "."), length = strlen(text);
    size_t pad = (size_t)style->left > before ? (size_t)style->left - before : 0;
    memset(out, ' ', WORD_BYTES);
    memcpy(out + pad, text, length);
    out[pad + length > (size_t)width ? pad + length : (size_t)width] = 0;
}

// ---- the style of an array, from the elements that show ----

struct range {
    double largest, smallest; // of the absolute values that are not 0
    bool any, has_infinity, has_negative_infinity, has_nan;
};

static void widen_range(struct range *r, double x)
{
    if (isnan(x)) {
        r->has_nan = true;
    } else if (isinf(x)) {
        r->has_infinity = true;
        r->has_negative_infinity |= x < 0;
    } else if (x != 0) {
        double a = fabs(x);
        r->largest = !r->any || a > r->largest ? a : r->largest;
        r->smallest = !r->any || a < r->smallest ? a : r->smallest;
        r->any = true;
    }
}

static void widen_columns(struct style *style, double x)
{
    char text[WORD_BYTES];
    if (!isfinite(x))
        return;
    if (style->is_scientific) {
        int digits = shortest_digits(style->dtype, x);
        digits = digits > PRECISION ? PRECISION : digits;
        write_scientific(x, digits, 0, text);
        char *e = strchr(text, 'e');
        style->exp_width =
            (int)strlen(e + 1) > style->exp_width ? (int)strlen(e + 1) : style->exp_width;
        *e = 0;
        drop_zeros(text);
    } else {
        write_fixed(style->dtype, x, PRECISION, text);
    }
    int before = (int)strcspn(text, "."), after = (int)strlen(text) - before - 1;
    before += style->has_sign && text[0] != '-';
    style->left = before > style->left ? before : style->left;
    style->right = after > style->right ? after : style->right;
}

static void finish_columns(struct style *style, const struct range *range)
{
    if (style->is_scientific) {
        style->digits = style->right;
        style->right += 1 + style->exp_width;
    }
    int named = 0; // the width that nan and inf need
    if (range->has_nan)
        named = 3 + style->has_sign;
    if (range->has_infinity)
        named = 3 + (style->has_sign || range->has_negative_infinity);
    if (named > style->left + style->right + 1)
        style->left = named - style->right - 1;
}

// ---- a walk over the elements that show ----

struct printer {
    const jot_array *array;
    struct sink *out;
    struct style real, imaginary;
    int width; // of integers and bools
    bool is_summary;
    int line;    // columns used of the line
    int pending; // spaces that fill the column of the last word, dropped at the end of a line
};

static int64_t shown(const struct printer *p, int axis)
{
    int64_t n = p->array->dims[axis];
    return p->is_summary && n > 2 * EDGE_ITEMS ? EDGE_ITEMS : n;
}

typedef void visit(struct printer *p, const char *element, void *ctx);

static void walk(struct printer *p, int axis, const char *at, size_t bytes, visit *each,
                 void *ctx)
{
    if (axis == p->array->rank) {
        each(p, at, ctx);
        return;
    }
    int64_t n = p->array->dims[axis], lead = shown(p, axis);
    size_t stride = n ? bytes / (size_t)n : 0;
    for (int64_t i = 0; i < lead; i++)
        walk(p, axis + 1, at + (size_t)i * stride, stride, each, ctx);
    for (int64_t i = lead < n ? n - EDGE_ITEMS : n; i < n; i++)
        walk(p, axis + 1, at + (size_t)i * stride, stride, each, ctx);
}

static void write_integer(jot_dtype dtype, const char *element, char *out)
{
    const struct dtype_info *info = dtype_get(dtype);
    uint64_t bits = 0;
    memcpy(&bits, element, info->bytes);
    if (info->kind == 'b') {
        snprintf(out, WORD_BYTES, "%s", bits ? "true" : "false");
    } else if (info->kind == 'u') {
        snprintf(out, WORD_BYTES, "%" PRIu64, bits);
    } else {
        unsigned unused = 64u - info->bits;
        snprintf(out, WORD_BYTES, "%" PRId64, (int64_t)(bits << unused) >> unused);
    }
}

static double part(jot_dtype dtype, const char *element, int index)
{
    jot_dtype real = dtype_real(dtype);
    return rt_element_to_f64(real, element + (size_t)index * dtype_get(real)->bytes);
}

struct ranges {
    struct range part[2];
};

static void measure_range(struct printer *p, const char *element, void *ctx)
{
    struct ranges *r = ctx;
    jot_dtype dtype = (jot_dtype)p->array->dtype;
    char text[WORD_BYTES];
    if (!dtype_is_inexact(dtype)) {
        write_integer(dtype, element, text);
        p->width = (int)strlen(text) > p->width ? (int)strlen(text) : p->width;
        return;
    }
    widen_range(&r->part[0], part(dtype, element, 0));
    if (dtype_is_complex(dtype))
        widen_range(&r->part[1], part(dtype, element, 1));
}

static void measure_columns(struct printer *p, const char *element, void *ctx)
{
    (void)ctx;
    jot_dtype dtype = (jot_dtype)p->array->dtype;
    widen_columns(&p->real, part(dtype, element, 0));
    if (dtype_is_complex(dtype))
        widen_columns(&p->imaginary, part(dtype, element, 1));
}

static void choose_style(struct style *style, jot_dtype dtype, const struct range *r,
                         bool has_sign)
{
    style->dtype = dtype_real(dtype);
    style->has_sign = has_sign;
    double small = style->dtype == JOT_F64 ? 1e-4 : (double)1e-4f; // as the type itself has it
    style->is_scientific =
        r->any && (r->largest >= 1e8 || r->smallest < small || r->largest / r->smallest > 1e3);
}

static void prepare(struct printer *p)
{
    const jot_array *a = p->array;
    struct ranges ranges = {0};
    walk(p, 0, a->data, a->bytes, measure_range, &ranges);
    jot_dtype dtype = (jot_dtype)a->dtype;
    if (!dtype_is_inexact(dtype))
        return;
    choose_style(&p->real, dtype, &ranges.part[0], false);
    choose_style(&p->imaginary, dtype, &ranges.part[1], true);
    walk(p, 0, a->data, a->bytes, measure_columns, NULL);
    finish_columns(&p->real, &ranges.part[0]);
    finish_columns(&p->imaginary, &ranges.part[1]);
}

// ---- the text ----

static void write_element(const struct printer *p, const char *element, char *out)
{
    jot_dtype dtype = (jot_dtype)p->array->dtype;
    char text[WORD_BYTES];
    if (!dtype_is_inexact(dtype)) {
        write_integer(dtype, element, text);
        snprintf(out, 2 * WORD_BYTES, "%*s", p->width, text);
        return;
    }
    write_real(&p->real, part(dtype, element, 0), out);
    if (!dtype_is_complex(dtype))
        return;
    // The j stands right after the number, before the spaces that fill its column.
    write_real(&p->imaginary, part(dtype, element, 1), text);
    size_t n = strlen(text);
    while (n > 0 && text[n - 1] == ' ')
        n--;
    memmove(text + n + 1, text + n, strlen(text + n) + 1);
    text[n] = 'j';
    strcat(out, text);
}

static void put_word(struct printer *p, const char *word, int indent)
{
    int n = (int)strlen(word);
    if (p->line > indent) {
        // Room for the word and for what closes the line.
        if (p->line + 1 + n > LINE_WIDTH - p->array->rank) {
            put_text(p->out, "\n");
            put_spaces(p->out, indent);
            p->line = indent;
        } else {
            put_spaces(p->out, p->pending + 1);
            p->line++;
        }
    }
    int filled = n;
    while (n > 0 && word[n - 1] == ' ')
        n--;
    put(p->out, word, (size_t)n);
    p->pending = filled - n;
    p->line += filled;
}

static void print_axis(struct printer *p, int axis, const char *at, size_t bytes);

static void print_item(struct printer *p, int axis, const char *at, size_t bytes, bool is_first)
{
    char word[2 * WORD_BYTES];
    int rank = p->array->rank;
    if (axis == rank - 1) {
        write_element(p, at, word);
        put_word(p, word, rank);
        return;
    }
    if (!is_first) {
        for (int i = axis; i < rank - 1; i++)
            put_text(p->out, "\n");
        put_spaces(p->out, axis + 1);
    }
    print_axis(p, axis + 1, at, bytes);
}

static void print_axis(struct printer *p, int axis, const char *at, size_t bytes)
{
    int rank = p->array->rank;
    int64_t n = p->array->dims[axis], lead = shown(p, axis);
    size_t stride = n ? bytes / (size_t)n : 0;
    put_text(p->out, "[");
    p->line = rank;
    for (int64_t i = 0; i < lead; i++)
        print_item(p, axis, at + (size_t)i * stride, stride, i == 0);
    if (lead < n) {
        if (axis == rank - 1) {
            put_word(p, "...", rank);
        } else {
            for (int i = axis; i < rank - 1; i++)
                put_text(p->out, "\n");
            put_spaces(p->out, axis + 1);
            put_text(p->out, "...");
        }
        for (int64_t i = n - EDGE_ITEMS; i < n; i++)
            print_item(p, axis, at + (size_t)i * stride, stride, false);
    }
    put_spaces(p->out, p->pending);
    p->pending = 0;
    put_text(p->out, "]");
}

// A scalar shows all its digits.
static void write_scalar(jot_dtype dtype, double x, bool has_sign, char *out)
{
    struct style style = {.dtype = dtype_real(dtype), .has_sign = has_sign};
    double a = fabs(x);
    if (isfinite(x) && a != 0 && (a >= 1e16 || a < 1e-4)) {
        write_scientific(x, shortest_digits(style.dtype, x), 0, out);
        if (strstr(out, ".e"))
            memmove(strchr(out, '.'), strchr(out, 'e'), strlen(strchr(out, 'e')) + 1);
    } else if (isfinite(x)) {
        write_fixed(style.dtype, x, 24, out);
        if (out[strlen(out) - 1] == '.')
            strcat(out, "0");
    } else {
        write_real(&style, x, out);
        has_sign = false;
    }
    if (has_sign && out[0] != '-') {
        memmove(out + 1, out, strlen(out) + 1);
        out[0] = '+';
    }
}

static void print_scalar(const jot_array *a, struct sink *out)
{
    char word[WORD_BYTES];
    jot_dtype dtype = (jot_dtype)a->dtype;
    if (!dtype_is_inexact(dtype)) {
        write_integer(dtype, a->data, word);
        put_text(out, word);
        return;
    }
    write_scalar(dtype, part(dtype, a->data, 0), false, word);
    put_text(out, word);
    if (dtype_is_complex(dtype)) {
        write_scalar(dtype, part(dtype, a->data, 1), true, word);
        put_text(out, word);
        put_text(out, "j");
    }
}

static void print_array(const jot_array *a, struct sink *out)
{
    struct printer p = {.array = a, .out = out, .is_summary = a->size > SUMMARY_FROM};
    if (a->rank == 0) {
        print_scalar(a, out);
    } else if (a->size == 0) {
        put_text(out, "[]");
    } else {
        prepare(&p);
        print_axis(&p, 0, a->data, a->bytes);
    }
}

static void print_any(const jot_array *a, struct sink *out)
{
    jot_array *here = a ? jot_array_to((jot_array *)(uintptr_t)a, jot_host()) : NULL;
    if (here)
        print_array(here, out);
    else
        put_text(out, a ? jot_error_message() : "NULL");
    jot_array_release(here);
}

int jot_array_format(const jot_array *a, char *buffer, size_t size)
{
    struct sink out = {.buffer = buffer, .size = buffer ? size : 0};
    print_any(a, &out);
    if (out.size)
        buffer[out.length < out.size ? out.length : out.size - 1] = 0;
    return (int)out.length;
}

void jot_array_print(const jot_array *a)
{
    struct sink out = {.file = stdout};
    print_any(a, &out);
    put_text(&out, "\n");
}
