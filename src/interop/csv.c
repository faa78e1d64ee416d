// SPDX-License-Identifier: Apache-2.0
// Numbers as text in rows and columns, read: once to count, and once more for the numbers.
#include "base/memory.h"
#include "base/status.h"
#include "interop/input.h"
#include "interop/raw_array.h"
#include "jot/io.h"
#include "runtime/array.h"

#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MOST_DIGITS = 100 }; // characters of a number

struct table {
    struct input in;
    char *owned; // the bytes of a file that is not mapped
    const char *at, *end, *begin_of_line;
    const char *first; // line that has something
    int64_t line, rows, columns;
    jot_csv_options o;
    locale_t locale; // decimal points are points
};

// "name:line:column: ...", counted from 1, a column of characters.
__attribute__((format(printf, 3, 4))) static jot_status
fail(const struct table *t, const char *where, const char *format, ...)
{
    char text[300];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return status_fail(JOT_ERR_IO, "%s:%" PRId64 ":%td: %s", t->in.name, t->line,
                       where - t->begin_of_line + 1, text);
}

// ---- lines and fields ----

// Blanks surround fields; where they are the delimiter, any number of them is one.
static bool is_blank(const struct table *t, char c)
{
    return (c == ' ' || c == '\t') && (c != t->o.delimiter || c == ' ');
}

static bool ends_field(const struct table *t)
{
    return *t->at == t->o.delimiter || (t->o.delimiter == ' ' && *t->at == '\t');
}

static bool ends_line(const struct table *t)
{
    return t->at == t->end || *t->at == '\n' ||
           (*t->at == '\r' && t->at + 1 < t->end && t->at[1] == '\n');
}

static void skip_blanks(struct table *t)
{
    while (t->at < t->end && is_blank(t, *t->at))
        t->at++;
}

static void skip_line(struct table *t)
{
    while (t->at < t->end && *t->at != '\n')
        t->at++;
    t->at += t->at < t->end;
    t->line++;
    t->begin_of_line = t->at;
}

// At the begin of the next line that has something; false at the end.
static bool next_line(struct table *t)
{
    for (; t->at < t->end; skip_line(t)) {
        skip_blanks(t);
        bool is_comment = t->o.comment && t->at < t->end && *t->at == t->o.comment;
        if (!ends_line(t) && !is_comment)
            return true;
    }
    return false;
}

// The characters of the field, without blanks and quotes around it; the table is behind it.
static jot_status read_field(struct table *t, const char **out, size_t *out_n)
{
    skip_blanks(t);
    const char *begin = t->at, *end;
    bool is_quoted = t->at < t->end && *t->at == '"';
    if (is_quoted) {
        const char *line_end = memchr(begin, '\n', (size_t)(t->end - begin));
        size_t n = (size_t)((line_end ? line_end : t->end) - begin - 1);
        end = memchr(++begin, '"', n);
        if (!end)
            return fail(t, begin - 1, "the quote does not end");
        t->at = end + 1;
    } else {
        while (!ends_line(t) && !ends_field(t))
            t->at++;
        end = t->at;
        while (end > begin && is_blank(t, end[-1]))
            end--;
    }
    skip_blanks(t);
    if (is_quoted && !ends_line(t) && !ends_field(t) && t->o.delimiter != ' ')
        return fail(t, t->at, "there is more behind the quote");
    *out = begin;
    *out_n = (size_t)(end - begin);
    return JOT_OK;
}

// Whether another field follows; if so the table is at it.
static bool next_field(struct table *t)
{
    if (ends_line(t))
        return false;
    t->at += t->o.delimiter != ' ';
    return true;
}

static jot_status count_fields(struct table *t, int64_t *out)
{
    const char *text;
    size_t n;
    *out = 0;
    do {
        JOT_TRY(read_field(t, &text, &n));
        ++*out;
    } while (next_field(t));
    return JOT_OK;
}

// The option that a line seems to need.
static const char *hint(const struct table *t, const char *line)
{
    const char *end = memchr(line, '\n', (size_t)(t->end - line));
    size_t n = (size_t)((end ? end : t->end) - line);
    if (*line == '#' && !t->o.comment)
        return "; comments? .comment = '#'";
    if (t->o.delimiter == ',' && memchr(line, ';', n))
        return "; .delimiter = ';'?";
    if (t->o.delimiter == ',' && memchr(line, '\t', n))
        return "; .delimiter = '\\t'?";
    bool has_word = !strchr("+-.0123456789", *line);
    return line == t->first && !t->o.has_header && has_word ? "; names? .has_header = true"
                                                            : "";
}

// ---- numbers ----

static bool is_word(const char *text, size_t n, const char *word)
{
    return strlen(word) == n && strncasecmp(text, word, n) == 0;
}

static jot_status read_number(const struct table *t, const char *text, size_t n, void *out)
{
    char digits[MOST_DIGITS + 1], *end;
    bool is_single = t->o.dtype == JOT_F32;
    size_t sign = n && (*text == '+' || *text == '-');
    bool is_missing = !n || is_word(text, n, "na") || is_word(text, n, "null");
    bool is_infinite =
        is_word(text + sign, n - sign, "inf") || is_word(text + sign, n - sign, "infinity");
    bool is_nan = is_word(text + sign, n - sign, "nan");
    double d = is_missing || is_nan ? NAN : *text == '-' ? -INFINITY : INFINITY;
    float f = (float)d;
    if (!is_missing && !is_nan && !is_infinite) {
        if (n > MOST_DIGITS)
            return fail(t, text, "a number of more than %d characters", MOST_DIGITS);
        if (strspn(text, "0123456789+-.eE") < n)
            return fail(t, text, "'%.*s' is no number%s", (int)n, text,
                        hint(t, t->begin_of_line));
        memcpy(digits, text, n);
        digits[n] = 0;
        f = is_single ? strtof(digits, &end) : 0;
        d = is_single ? 0 : strtod(digits, &end);
        if (end != digits + n)
            return fail(t, text, "'%s' is no number", digits);
    }
    memcpy(out, is_single ? (void *)&f : (void *)&d, is_single ? sizeof f : sizeof d);
    return JOT_OK;
}

// The number at row i, column k is element i * row_step + k * column_step of its array.
static jot_status read_rows(struct table *t, char *const *columns, size_t step)
{
    size_t bytes = jot_dtype_size(t->o.dtype);
    for (int64_t i = 0; next_line(t); i++, skip_line(t))
        for (int64_t k = 0; k < t->columns; k++) {
            const char *text;
            size_t n;
            JOT_TRY(read_field(t, &text, &n));
            JOT_TRY(read_number(t, text, n, columns[k] + (size_t)i * step * bytes));
            next_field(t);
        }
    return JOT_OK;
}

// ---- the file ----

static void go_to_begin(struct table *t)
{
    const char *bytes = t->owned ? t->owned : (const char *)t->in.bytes;
    bool has_mark = t->in.size >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0; // of UTF-8
    t->begin_of_line = t->at = bytes ? bytes + (has_mark ? 3 : 0) : "";
    t->end = bytes ? bytes + t->in.size : t->at;
    t->line = 1;
    for (int64_t i = 0; i < t->o.skip && t->at < t->end; i++)
        skip_line(t);
}

static jot_status check_options(const char *name, const struct table *t)
{
    const jot_csv_options *o = &t->o;
    if (o->dtype != JOT_F32 && o->dtype != JOT_F64)
        return status_fail(JOT_ERR_DTYPE, "%s: dtype is %d: JOT_F32 or JOT_F64", name,
                           (int)o->dtype);
    if (strchr("\"\r\n+-.0123456789eE", o->delimiter))
        return status_fail(JOT_ERR_ARGUMENT, "%s: the delimiter is part of numbers or lines",
                           name);
    if (o->skip < 0)
        return status_fail(JOT_ERR_ARGUMENT, "%s: skip is %" PRId64, name, o->skip);
    return JOT_OK;
}

// Counts rows and columns, of which all rows have as many.
static jot_status count(struct table *t)
{
    if (!next_line(t))
        return status_fail(JOT_ERR_IO, "%s: there are no columns", t->in.name);
    t->first = t->begin_of_line;
    if (t->o.has_header) {
        JOT_TRY(count_fields(t, &t->columns));
        skip_line(t);
    }
    for (; next_line(t); t->rows++, skip_line(t)) {
        int64_t n;
        JOT_TRY(count_fields(t, &n));
        if (t->columns == 0)
            t->columns = n;
        if (n != t->columns)
            return fail(t, t->at, "%" PRId64 " numbers, where rows before have %" PRId64 "%s",
                        n, t->columns, hint(t, t->first));
    }
    return JOT_OK;
}

static jot_status open_table(const char *name, const char *path, const jot_csv_options *options,
                             struct table *t)
{
    *t = (struct table){.o = options ? *options : (jot_csv_options){0}, .in = {.file = -1}};
    t->o.delimiter = t->o.delimiter ? t->o.delimiter : ',';
    t->o.dtype = t->o.dtype == JOT_BOOL ? JOT_F64 : t->o.dtype;
    if (!path)
        return status_fail(JOT_ERR_ARGUMENT, "%s: path is NULL", name);
    JOT_TRY(check_options(name, t));
    JOT_TRY(input_map(&t->in, path));
    if (!t->in.bytes && t->in.size) {
        t->owned = memory_allocate(t->in.size);
        if (!t->owned)
            return status_out_of_memory();
        JOT_TRY(input_read(&t->in, 0, t->owned, t->in.size));
    }
    t->locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!t->locale)
        return status_out_of_memory();
    go_to_begin(t);
    return count(t);
}

static void close_table(struct table *t)
{
    if (t->locale)
        freelocale(t->locale);
    memory_release(t->owned);
    input_close(&t->in);
}

// The numbers into arrays that have room for them.
static jot_status read_all(struct table *t, char *const *columns, size_t step)
{
    go_to_begin(t);
    if (t->o.has_header && next_line(t))
        skip_line(t);
    locale_t before = uselocale(t->locale);
    jot_status status = read_rows(t, columns, step);
    uselocale(before);
    return status;
}

// ---- a matrix ----

static jot_status read_matrix(struct table *t, jot_array **out)
{
    int64_t dims[] = {t->rows, t->columns};
    JOT_TRY(rt_array_check("jot_array_load_csv", (int)t->o.dtype, 2, dims));
    jot_array *a = rt_array_create(t->o.dtype, 2, dims);
    char **columns = memory_allocate((size_t)t->columns * sizeof *columns);
    jot_status status = a && columns ? JOT_OK : status_out_of_memory();
    for (int64_t k = 0; status == JOT_OK && k < t->columns; k++)
        columns[k] = (char *)a->data + (size_t)k * jot_dtype_size(t->o.dtype);
    if (status == JOT_OK)
        status = read_all(t, columns, (size_t)t->columns);
    memory_release(columns);
    if (status == JOT_OK)
        return raw_array_place(a, out);
    jot_array_release(a);
    return status;
}

jot_array *jot_array_load_csv_with(const char *path, const jot_csv_options *options)
{
    const char *name = "jot_array_load_csv";
    struct table t;
    jot_array *a = NULL;
    if (open_table(name, path, options, &t) != JOT_OK || read_matrix(&t, &a) != JOT_OK)
        status_null(STATUS_NULL_ARRAY, path ? path : name);
    close_table(&t);
    return a;
}

// ---- columns with names ----

static jot_status name_column(struct table *t, jot_archive *a, jot_array *array)
{
    const char *text;
    size_t n;
    JOT_TRY(read_field(t, &text, &n));
    char *name = memory_allocate(n + 1);
    if (!name)
        return status_out_of_memory();
    memcpy(name, text, n);
    name[n] = 0;
    jot_status status = jot_archive_add(a, name, array);
    memory_release(name);
    next_field(t);
    return status == JOT_ERR_ARGUMENT
               ? fail(t, text, "%s: the first line is taken as names", jot_error_message())
               : status;
}

static jot_status add_columns(struct table *t, jot_archive *a, jot_array **arrays,
                              char **columns)
{
    JOT_TRY(rt_array_check("jot_archive_load_csv", (int)t->o.dtype, 1, &t->rows));
    for (int64_t k = 0; k < t->columns; k++) {
        arrays[k] = rt_array_create(t->o.dtype, 1, &t->rows);
        if (!arrays[k])
            return status_last();
        columns[k] = arrays[k]->data;
    }
    JOT_TRY(read_all(t, columns, 1));
    go_to_begin(t);
    next_line(t);
    for (int64_t k = 0; k < t->columns; k++) {
        jot_array *here = arrays[k];
        arrays[k] = NULL;
        JOT_TRY(raw_array_place(here, &arrays[k]));
        JOT_TRY(name_column(t, a, arrays[k]));
    }
    return JOT_OK;
}

jot_archive *jot_archive_load_csv_with(const char *path, const jot_csv_options *options)
{
    struct table t;
    jot_csv_options o = options ? *options : (jot_csv_options){0};
    o.has_header = true;
    jot_status status = open_table("jot_archive_load_csv", path, &o, &t);
    size_t n = status == JOT_OK ? (size_t)t.columns : 0;
    jot_archive *a = jot_archive_create();
    jot_array **arrays = memory_allocate_zeroed((n + 1) * sizeof *arrays);
    char **columns = memory_allocate((n + 1) * sizeof *columns);
    if (status == JOT_OK && !(a && arrays && columns))
        status = status_out_of_memory();
    if (status == JOT_OK)
        status = add_columns(&t, a, arrays, columns);
    if (arrays)
        jot_arrays_release(n, arrays);
    memory_release(arrays);
    memory_release(columns);
    close_table(&t);
    if (status == JOT_OK)
        return a;
    jot_archive_release(a);
    return status_null(STATUS_NULL_ARCHIVE, path ? path : "jot_archive_load_csv");
}
