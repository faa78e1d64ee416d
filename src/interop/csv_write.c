// SPDX-License-Identifier: Apache-2.0
// Numbers as text in rows and columns, written: each as short as it is read back to the same
// bits.
#include "base/dtype.h"
#include "base/status.h"
#include "interop/input.h"
#include "jot/io.h"

#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct lines {
    struct output *o;
    size_t n;
    char bytes[1 << 14];
};

static jot_status flush(struct lines *l)
{
    size_t n = l->n;
    l->n = 0;
    return output_write(l->o, l->bytes, n);
}

static jot_status put(struct lines *l, const char *text, size_t n)
{
    if (n > sizeof l->bytes - l->n)
        JOT_TRY(flush(l));
    if (n > sizeof l->bytes)
        return output_write(l->o, text, n);
    memcpy(l->bytes + l->n, text, n);
    l->n += n;
    return JOT_OK;
}

// With as many digits as tell the number from others of its type.
static int write_float(double x, bool is_single, char *text, size_t size)
{
    if (isnan(x))
        return snprintf(text, size, "nan");
    if (isinf(x))
        return snprintf(text, size, x < 0 ? "-inf" : "inf");
    int n = 0;
    for (int digits = is_single ? 6 : 15; digits <= (is_single ? 9 : 17); digits++) {
        n = snprintf(text, size, "%.*g", digits, x);
        if (is_single ? strtof(text, NULL) == (float)x : strtod(text, NULL) == x)
            break;
    }
    return n;
}

static int write_element(jot_dtype dtype, const unsigned char *at, char *text, size_t size)
{
    const struct dtype_info *info = dtype_get(dtype);
    uint64_t u = 0;
    float f;
    double d;
    memcpy(&u, at, info->bytes);
    switch (dtype) {
    case JOT_F64:
        memcpy(&d, at, sizeof d);
        return write_float(d, false, text, size);
    case JOT_F32:
        memcpy(&f, at, sizeof f);
        return write_float((double)f, true, text, size);
    case JOT_F16:
    case JOT_BF16:
        return write_float(
            (double)(dtype == JOT_F16 ? dtype_f16_to_f32 : dtype_bf16_to_f32)((uint16_t)u),
            true, text, size);
    default: // an integer or a bool, with the sign in its upper bits
        if (info->kind == 'i')
            return snprintf(text, size, "%" PRId64,
                            (int64_t)(u << (64 - info->bits)) >> (64 - info->bits));
        return snprintf(text, size, "%" PRIu64, u);
    }
}

static jot_status write_lines(struct lines *l, const jot_array *a, const jot_csv_options *o)
{
    char delimiter = o->delimiter ? o->delimiter : ',', text[64];
    int64_t columns = jot_array_rank(a) == 2 ? jot_array_dim(a, 1) : 1;
    jot_dtype dtype = jot_array_dtype(a);
    size_t bytes = jot_dtype_size(dtype);
    const unsigned char *at = jot_array_data(a);
    if (!at)
        return status_last();
    if (o->header) {
        JOT_TRY(put(l, o->header, strlen(o->header)));
        JOT_TRY(put(l, "\n", 1));
    }
    for (int64_t i = 0; i < jot_array_dim(a, 0); i++) {
        for (int64_t k = 0; k < columns; k++, at += bytes) {
            int n = write_element(dtype, at, text, sizeof text);
            text[n] = k + 1 < columns ? delimiter : '\n';
            JOT_TRY(put(l, text, (size_t)n + 1));
        }
        if (columns == 0)
            JOT_TRY(put(l, "\n", 1));
    }
    return flush(l);
}

jot_status jot_array_save_csv_with(const char *path, const jot_array *a,
                                   const jot_csv_options *options)
{
    const char *name = "jot_array_save_csv";
    jot_csv_options o = options ? *options : (jot_csv_options){0};
    struct output out;
    if (!path || !a)
        return status_fail(JOT_ERR_ARGUMENT, "%s: the %s is NULL", name,
                           path ? "array" : "path");
    jot_dtype dtype = jot_array_dtype(a);
    if (dtype == JOT_C64 || dtype == JOT_C128)
        return status_fail(JOT_ERR_DTYPE, "%s: %s: the numbers are %s", name, path,
                           jot_dtype_name(dtype));
    if (jot_array_rank(a) < 1 || jot_array_rank(a) > 2)
        return status_fail(JOT_ERR_SHAPE, "%s: %s: the array has %d axes: 1 or 2", name, path,
                           jot_array_rank(a));
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!c)
        return status_out_of_memory();
    struct lines l = {.o = &out};
    jot_status status = output_open(&out, path);
    if (status == JOT_OK) {
        locale_t before = uselocale(c);
        status = output_close(&out, write_lines(&l, a, &o));
        uselocale(before);
    }
    freelocale(c);
    return status;
}
