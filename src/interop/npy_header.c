// SPDX-License-Identifier: Apache-2.0
// The header of a .npy file, a dictionary as Python writes it:
//
//     {'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }
#include "interop/npy.h"

#include "base/dtype.h"
#include "base/memory.h"
#include "base/status.h"
#include "runtime/array.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

_Static_assert(RT_ARRAY_RANK_LIMIT < sizeof((struct npy_header){0}.dims) / sizeof(int64_t),
               "room for all axes");

struct reader {
    const struct stream *s;
    uint64_t start; // offset of the text
    const char *text;
    size_t n, at;
};

#define FAIL(r, ...) stream_fail((r)->s, (r)->start + (r)->at, __VA_ARGS__)

// The next character that is no blank, or 0 at the end.
static char peek(struct reader *r)
{
    while (r->at < r->n && r->text[r->at] && strchr(" \t\r\n\f\v", r->text[r->at]))
        r->at++;
    return r->at < r->n ? r->text[r->at] : 0;
}

static bool take_char(struct reader *r, char c)
{
    bool is_there = peek(r) == c && r->at < r->n;
    r->at += is_there;
    return is_there;
}

static jot_status expect(struct reader *r, char c, const char *where)
{
    if (take_char(r, c))
        return JOT_OK;
    return FAIL(r, "the header has no '%c' %s", c, where);
}

struct word {
    const char *text;
    size_t n;
};

static bool is_word(struct word w, const char *text)
{
    return strlen(text) == w.n && memcmp(w.text, text, w.n) == 0;
}

static jot_status read_string(struct reader *r, const char *what, struct word *out)
{
    char quote = peek(r);
    if (quote != '\'' && quote != '"')
        return FAIL(r, "the header has no string here, for %s", what);
    const char *from = r->text + r->at + 1;
    const char *to = memchr(from, quote, r->n - r->at - 1);
    if (!to)
        return FAIL(r, "the string here has no end");
    if (memchr(from, '\\', (size_t)(to - from)))
        return FAIL(r, "the string here has a backslash, which no %s has", what);
    *out = (struct word){from, (size_t)(to - from)};
    r->at += out->n + 2;
    return JOT_OK;
}

// ---- the element type ----

static const char *why_not(char kind, unsigned bytes)
{
    switch (kind) {
    case 'O':
        return "Python objects";
    case 'S':
    case 'a':
    case 'U':
        return "strings";
    case 'M':
    case 'm':
        return "times";
    case 'f':
    case 'c':
        return bytes >= 16 ? "numbers of 16 bytes a part" : NULL;
    case 'V':
        return bytes == 1 ? "elements of one byte, of which the file does not tell whether "
                            "they are floats "
                            "or integers (ml_dtypes is stored so): save them as float16 or int8"
                          : "raw bytes";
    default:
        return NULL;
    }
}

static bool find_dtype(char kind, unsigned bytes, struct npy_header *h)
{
    h->is_f8e5m2 = kind == 'f' && bytes == 1;
    if (h->is_f8e5m2)
        return h->dtype = JOT_F16, true;
    if (kind == 'V' && bytes == 2)
        return h->dtype = JOT_BF16, true;
    for (int d = 0; d < DTYPE_COUNT; d++) {
        jot_dtype t = (jot_dtype)d;
        char is = t == JOT_BOOL         ? 'b'
                  : t == JOT_BF16       ? 0
                  : dtype_is_complex(t) ? 'c'
                  : dtype_is_float(t)   ? 'f'
                  : dtype_is_signed(t)  ? 'i'
                                        : 'u';
        if (is == kind && jot_dtype_size(t) == bytes)
            return h->dtype = t, true;
    }
    return false;
}

static jot_status read_descr(struct reader *r, struct npy_header *h)
{
    struct word w;
    char next = peek(r);
    if (next == '[' || next == '(')
        return FAIL(r, "the elements are records of several fields, which no array of jot has");
    size_t start = r->at;
    JOT_TRY(read_string(r, "descr", &w));
    size_t end = r->at;
    r->at = start;
    bool has_order = w.n && strchr("<>=|", w.text[0]);
    const char *at = w.text + has_order;
    size_t n = w.n - has_order;
    unsigned bytes = 0;
    for (size_t i = 1; i < n && bytes < 100000; i++)
        bytes = isdigit((unsigned char)at[i]) ? 10 * bytes + (unsigned)(at[i] - '0') : 100000;
    if (is_word(w, "bfloat16"))
        h->dtype = JOT_BF16;
    else if (is_word(w, "?") || is_word(w, "|?"))
        h->dtype = JOT_BOOL;
    else if (n < 2 || !find_dtype(at[0], bytes, h)) {
        const char *why = n ? why_not(at[0], bytes) : NULL;
        return FAIL(r, "descr '%.*s' is no element type of jot%s%s", w.n < 40 ? (int)w.n : 40,
                    w.text, why ? ": " : "", why ? why : "");
    }
    h->part = (int)(h->is_f8e5m2 ? 1 : dtype_get(dtype_get(h->dtype)->real)->bytes);
    h->is_swapped = w.text[0] == '>' && h->part > 1;
    r->at = end;
    return JOT_OK;
}

// ---- the rest ----

static jot_status read_order(struct reader *r, struct npy_header *h)
{
    peek(r);
    for (int is_true = 0; is_true < 2; is_true++) {
        const char *word = is_true ? "True" : "False";
        size_t n = strlen(word);
        if (r->n - r->at < n || memcmp(r->text + r->at, word, n) != 0)
            continue;
        h->is_column_major = is_true;
        r->at += n;
        return JOT_OK;
    }
    return FAIL(r, "fortran_order is neither True nor False");
}

static jot_status read_extent(struct reader *r, struct npy_header *h)
{
    int64_t extent = 0;
    if (!isdigit((unsigned char)peek(r)))
        return FAIL(r, "shape has something else than sizes");
    if (h->rank == RT_ARRAY_RANK_LIMIT)
        return FAIL(r, "shape has more than the %d axes that an array may have",
                    RT_ARRAY_RANK_LIMIT);
    size_t start = r->at;
    for (; r->at < r->n && isdigit((unsigned char)r->text[r->at]); r->at++)
        if (__builtin_mul_overflow(extent, 10, &extent) ||
            __builtin_add_overflow(extent, r->text[r->at] - '0', &extent)) {
            r->at = start;
            return FAIL(r, "the size of axis %d is beyond 64 bits", h->rank);
        }
    take_char(r, 'L'); // as Python 2 wrote long ones
    h->dims[h->rank++] = extent;
    return JOT_OK;
}

static jot_status read_shape(struct reader *r, struct npy_header *h)
{
    JOT_TRY(expect(r, '(', "before the sizes of shape"));
    while (!take_char(r, ')')) {
        JOT_TRY(read_extent(r, h));
        if (!take_char(r, ','))
            return h->rank == 1 ? FAIL(r, "shape has no ',' after its only size")
                                : expect(r, ')', "after the sizes of shape");
    }
    return JOT_OK;
}

enum key { DESCR, ORDER, SHAPE, N_KEYS };
static const char *const keys[N_KEYS] = {"descr", "fortran_order", "shape"};

static jot_status read_entry(struct reader *r, struct npy_header *h, bool *has)
{
    struct word key;
    peek(r);
    size_t start = r->at;
    int k = 0;
    JOT_TRY(read_string(r, "a key", &key));
    while (k < N_KEYS && !is_word(key, keys[k]))
        k++;
    if (k == N_KEYS || has[k]) {
        r->at = start;
        return FAIL(
            r, "the header has the key '%.*s'%s", key.n < 40 ? (int)key.n : 40, key.text,
            k == N_KEYS ? ", but descr, fortran_order and shape are all there are" : " twice");
    }
    has[k] = true;
    JOT_TRY(expect(r, ':', "after the key"));
    return k == DESCR ? read_descr(r, h) : k == ORDER ? read_order(r, h) : read_shape(r, h);
}

jot_status npy_parse(const struct stream *s, uint64_t at, const char *text, size_t n,
                     struct npy_header *out)
{
    struct reader r = {.s = s, .start = at, .text = text, .n = n};
    bool has[N_KEYS] = {false};
    *out = (struct npy_header){.rank = 0};
    JOT_TRY(expect(&r, '{', "at its begin"));
    while (!take_char(&r, '}')) {
        JOT_TRY(read_entry(&r, out, has));
        if (take_char(&r, ','))
            continue;
        JOT_TRY(expect(&r, '}', "or ',' after an entry"));
        break;
    }
    if (peek(&r) || r.at < r.n)
        return FAIL(&r, "the header goes on after its '}'");
    for (int k = 0; k < N_KEYS; k++)
        if (!has[k])
            return stream_fail(s, at, "the header has no %s", keys[k]);
    out->dims[out->rank] = JOT_END;
    return JOT_OK;
}

// ---- writing ----

static const char *descr_of(jot_dtype d, char *room, size_t size)
{
    size_t bytes = jot_dtype_size(d);
    if (d == JOT_BF16)
        return "<V2";
    snprintf(room, size, "%c%c%zu", bytes > 1 ? '<' : '|',
             d == JOT_BOOL         ? 'b'
             : dtype_is_complex(d) ? 'c'
             : dtype_is_float(d)   ? 'f'
             : dtype_is_signed(d)  ? 'i'
                                   : 'u',
             bytes);
    return room;
}

// Blanks so that the first axis may grow to any size, as NumPy leaves them, and to a multiple of 64.
jot_status npy_make_header(const jot_array *a, char **out, size_t *out_n)
{
    char descr[8], extent[24] = "";
    int rank = jot_array_rank(a);
    size_t room = 256 + 24 * (size_t)rank;
    char *h = memory_allocate(room);
    if (!h)
        return status_out_of_memory();
    size_t n = 10;
    n += (size_t)sprintf(h + n, "{'descr': '%s', 'fortran_order': False, 'shape': (",
                         descr_of(jot_array_dtype(a), descr, sizeof descr));
    for (int i = 0; i < rank; i++)
        n += (size_t)sprintf(h + n, "%s%" PRId64, i ? ", " : "", jot_array_dim(a, i));
    n += (size_t)sprintf(h + n, "%s), }", rank == 1 ? "," : "");
    size_t digits =
        rank ? (size_t)snprintf(extent, sizeof extent, "%" PRId64, jot_array_dim(a, 0)) : 21;
    size_t end = (n + 21 - digits + 1 + 63) / 64 * 64;
    memset(h + n, ' ', end - n);
    h[end - 1] = '\n';
    memcpy(h, "\x93NUMPY\x01\x00", 8);
    h[8] = (char)((end - 10) & 0xff);
    h[9] = (char)((end - 10) >> 8);
    *out = h;
    *out_n = end;
    return JOT_OK;
}
