// SPDX-License-Identifier: Apache-2.0
// Bytes of a program of text: blanks, words, numbers, strings.
#include "interop/text_read.h"

#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>

// ---- errors

void text_fail(struct text_reader *r, const char *where, const char *format, ...)
{
    uint64_t line = 1;
    const char *start = r->start;
    for (const char *c = start; (c = memchr(c, '\n', (size_t)(where - c))); c++) {
        line++;
        start = c + 1;
    }
    char message[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    r->status = status_fail(JOT_ERR_IO, "%s:%llu:%llu: %s", r->file, (unsigned long long)line,
                            (unsigned long long)(where - start) + 1, message);
    arena_exhausted();
}

void text_expected(struct text_reader *r, const char *what)
{
    char c = text_peek(r);
    if (r->at == r->end)
        text_fail(r, r->at, "%s should be here, where the text ends", what);
    if (c < ' ' || c > '~')
        text_fail(r, r->at, "%s should be here, not the byte 0x%02x", what, (unsigned char)c);
    int n = 1;
    while (n < 24 && r->at + n < r->end && r->at[n] > ' ' && r->at[n] <= '~')
        n++;
    text_fail(r, r->at, "%s should be here, not '%.*s'", what, n, r->at);
}

void text_enter(struct text_reader *r)
{
    if (++r->depth > MLIR_MAX_DEPTH)
        text_fail(r, r->at, "more than %d things stand inside each other", MLIR_MAX_DEPTH);
}

void text_leave(struct text_reader *r) { r->depth--; }

// ---- blanks and punctuation

static void skip_blanks(struct text_reader *r)
{
    for (; r->at < r->end; r->at++) {
        char c = *r->at;
        if (c == '\n') {
            r->line++;
            r->line_start = r->at + 1;
        } else if (c == '/' && r->end - r->at > 1 && r->at[1] == '/') {
            const char *end = memchr(r->at, '\n', (size_t)(r->end - r->at));
            r->at = (end ? end : r->end) - 1;
        } else if (c != ' ' && c != '\t' && c != '\r') {
            return;
        }
    }
}

char text_peek(struct text_reader *r)
{
    skip_blanks(r);
    return r->at < r->end ? *r->at : 0;
}

static bool starts_with(struct text_reader *r, const char *text, size_t n)
{
    skip_blanks(r);
    return (size_t)(r->end - r->at) >= n && !memcmp(r->at, text, n);
}

static bool is_word_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '_' || c == '$' || c == '.';
}

bool text_sees(struct text_reader *r, const char *text)
{
    return starts_with(r, text, strlen(text));
}

bool text_sees_word(struct text_reader *r, const char *word)
{
    size_t n = strlen(word);
    return starts_with(r, word, n) &&
           ((size_t)(r->end - r->at) == n || !is_word_char(r->at[n]));
}

bool text_accept(struct text_reader *r, const char *text)
{
    if (!text_sees(r, text))
        return false;
    r->at += strlen(text);
    return true;
}

bool text_accept_word(struct text_reader *r, const char *word)
{
    if (!text_sees_word(r, word))
        return false;
    r->at += strlen(word);
    return true;
}

static _Noreturn void expected_text(struct text_reader *r, const char *text)
{
    char quoted[64];
    snprintf(quoted, sizeof quoted, "'%s'", text);
    text_expected(r, quoted);
}

void text_expect(struct text_reader *r, const char *text)
{
    if (!text_accept(r, text))
        expected_text(r, text);
}

void text_expect_word(struct text_reader *r, const char *word)
{
    if (!text_accept_word(r, word))
        expected_text(r, word);
}

bool text_more(struct text_reader *r, uint32_t *n, const char *close)
{
    if (text_accept(r, close))
        return false;
    if (*n && !text_accept(r, ",")) {
        char what[32];
        snprintf(what, sizeof what, "',' or '%s'", close);
        text_expected(r, what);
    }
    ++*n;
    return true;
}

void text_move(struct text_reader *r, const char *to)
{
    for (const char *c = r->at; (c = memchr(c, '\n', (size_t)(to - c))); c++) {
        r->line++;
        r->line_start = c + 1;
    }
    r->at = to;
}

// ---- words, numbers, strings

struct text_piece text_word(struct text_reader *r)
{
    skip_blanks(r);
    struct text_piece w = {.at = r->at};
    if (r->at < r->end && *r->at >= '0' && *r->at <= '9')
        return w;
    while (r->at < r->end && is_word_char(*r->at))
        r->at++;
    w.n = (size_t)(r->at - w.at);
    return w;
}

static size_t digits(const char *at, const char *end)
{
    const char *c = at;
    while (c < end && *c >= '0' && *c <= '9')
        c++;
    return (size_t)(c - at);
}

struct text_piece text_number(struct text_reader *r)
{
    skip_blanks(r);
    const char *c = r->at + (r->at < r->end && (*r->at == '-' || *r->at == '+'));
    struct text_piece number = {.at = r->at};
    if (r->end - c > 2 && c[0] == '0' && (c[1] == 'x' || c[1] == 'X')) {
        const char *hex = c += 2;
        while (c < r->end && ((*c >= '0' && *c <= '9') || (*c >= 'a' && *c <= 'f') ||
                              (*c >= 'A' && *c <= 'F')))
            c++;
        number.n = c > hex ? (size_t)(c - r->at) : 0;
    } else if (digits(c, r->end)) {
        c += digits(c, r->end);
        if (c < r->end && *c == '.')
            c += 1 + digits(c + 1, r->end);
        const char *e = c;
        if (e < r->end && (*e == 'e' || *e == 'E')) {
            e += 1;
            e += e < r->end && (*e == '-' || *e == '+');
            if (digits(e, r->end))
                c = e + digits(e, r->end);
        }
        number.n = (size_t)(c - r->at);
    }
    r->at += number.n;
    return number;
}

int64_t text_integer(struct text_reader *r)
{
    if (text_accept_word(r, "true"))
        return 1;
    if (text_accept_word(r, "false"))
        return 0;
    const char *where = (skip_blanks(r), r->at);
    bool is_negative = r->at < r->end && *r->at == '-';
    r->at += is_negative;
    size_t n = digits(r->at, r->end);
    if (!n) {
        r->at = where;
        text_expected(r, "an integer");
    }
    uint64_t x = 0, limit = is_negative ? (uint64_t)INT64_MAX + 1 : UINT64_MAX;
    for (; n; n--, r->at++) {
        unsigned d = (unsigned)(*r->at - '0');
        if (x > (limit - d) / 10)
            text_fail(r, where, "this integer does not fit in 64 bits");
        x = 10 * x + d;
    }
    return (int64_t)(is_negative ? -x : x);
}

struct text_piece text_quoted(struct text_reader *r)
{
    if (text_peek(r) != '"')
        text_expected(r, "a string");
    const char *start = r->at + 1, *c = start;
    for (; c < r->end && *c != '"'; c++) {
        c += *c == '\\' && r->end - c > 1;
        if (*c == '\n')
            text_fail(r, r->at, "this string is not closed in its line");
    }
    if (c >= r->end)
        text_fail(r, r->at, "this string is not closed");
    r->at = c + 1;
    return (struct text_piece){start, (size_t)(c - start)};
}

// A table: branches on digits that are as good as random would be guessed wrong.
const signed char text_hex_digits[256] = {
    ['0'] = 1,  ['1'] = 2,  ['2'] = 3,  ['3'] = 4,  ['4'] = 5,  ['5'] = 6,
    ['6'] = 7,  ['7'] = 8,  ['8'] = 9,  ['9'] = 10, ['a'] = 11, ['b'] = 12,
    ['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16, ['A'] = 11, ['B'] = 12,
    ['C'] = 13, ['D'] = 14, ['E'] = 15, ['F'] = 16,
};

const char *text_string(struct text_reader *r, size_t *out_n)
{
    struct text_piece q = text_quoted(r);
    char *text = arena_allocate(r->arena, q.n + 1);
    size_t n = 0;
    for (size_t i = 0; i < q.n; i++) {
        char c = q.at[i];
        if (c == '\\') {
            c = q.at[++i];
            int high = text_hex_digit(c), low = i + 1 < q.n ? text_hex_digit(q.at[i + 1]) : -1;
            if (high >= 0 && low >= 0) {
                c = (char)(high * 16 + low);
                i++;
            } else if (c == 'n' || c == 't') {
                c = c == 'n' ? '\n' : '\t';
            } else if (c != '"' && c != '\\') {
                text_fail(r, q.at + i - 1, "there is no such escape in a string");
            }
        }
        text[n++] = c;
    }
    if (out_n)
        *out_n = n;
    return text;
}

struct text_piece text_quoted_name(struct text_reader *r)
{
    struct text_piece name;
    const char *where = (text_peek(r), r->at);
    name.at = text_string(r, &name.n);
    if (!name.n || memchr(name.at, 0, name.n))
        text_fail(r, where, "a name should be here, without zero bytes");
    return name;
}

const char *text_symbol(struct text_reader *r)
{
    text_expect(r, "@");
    if (r->at < r->end && *r->at == '"')
        return text_quoted_name(r).at;
    const char *start = r->at;
    while (r->at < r->end && (is_word_char(*r->at) || *r->at == '-'))
        r->at++;
    if (r->at == start)
        text_expected(r, "a name");
    return text_copy(r, start, (size_t)(r->at - start));
}

// Strings, and arrows, whose '>' closes nothing, are stepped over.
struct text_piece text_balanced(struct text_reader *r)
{
    if (!strchr("([{<", text_peek(r)))
        text_expected(r, "a bracket");
    VEC(char) open = {0};
    const char *start = r->at, *c = start;
    for (; c < r->end; c++) {
        char opens = *c == '(' ? ')' : *c == '[' ? ']' : *c == '{' ? '}' : *c == '<' ? '>' : 0;
        if (opens) {
            vec_push(r->arena, &open, opens);
        } else if (*c == '"') {
            r->at = c;
            c = (text_quoted(r), r->at - 1);
        } else if (*c == '-' && r->end - c > 1 && c[1] == '>') {
            c++;
        } else if (*c == ')' || *c == ']' || *c == '}' || *c == '>') {
            if (!open.count || vec_last(&open) != *c)
                text_fail(r, c, "this '%c' closes nothing", *c);
            if (--open.count == 0) {
                r->at = start;
                text_move(r, c + 1);
                return (struct text_piece){start, (size_t)(c + 1 - start)};
            }
        }
    }
    text_fail(r, start, "this bracket is not closed");
}

struct text_word *text_intern(struct text_reader *r, struct text_piece w)
{
    uint64_t hash = hash_bytes(0, w.at, w.n);
    for (struct hash_probe h = hash_probe(&r->word_table, hash);
         hash_next(&r->word_table, &h);) {
        struct text_word *found = &r->words.at[h.id];
        if (found->n == w.n && !memcmp(found->text, w.at, w.n))
            return found;
    }
    struct text_word word = {.text = text_copy(r, w.at, w.n), .n = w.n};
    const char *dot = memchr(word.text, '.', w.n);
    if (dot) {
        char dialect[16];
        size_t n = (size_t)(dot - word.text);
        if (n < sizeof dialect) {
            memcpy(dialect, word.text, n);
            dialect[n] = 0;
            word.row = mlir_row_find(dialect, dot + 1, w.n - n - 1);
        }
    }
    vec_push(r->arena, &r->words, word);
    hash_insert(r->arena, &r->word_table, hash, r->words.count - 1);
    return &vec_last(&r->words);
}

const char *text_interned(struct text_reader *r, struct text_piece word)
{
    return text_intern(r, word)->text;
}
