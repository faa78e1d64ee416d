// SPDX-License-Identifier: Apache-2.0
#include "interop/json.h"

#include "base/status.h"

#include <string.h>

enum { MOST_LEVELS = 64 };

char json_peek(struct json *j)
{
    while (j->at < j->n && j->text[j->at] && strchr(" \t\r\n", j->text[j->at]))
        j->at++;
    return j->at < j->n ? j->text[j->at] : 0;
}

bool json_take(struct json *j, char c)
{
    bool is_there = json_peek(j) == c && j->at < j->n;
    j->at += is_there;
    return is_there;
}

jot_status json_expect(struct json *j, char c)
{
    return json_take(j, c) ? JOT_OK : JSON_FAIL(j, "there is no '%c' here", c);
}

jot_status json_next(struct json *j, char close, bool *out_is_more)
{
    *out_is_more = json_take(j, ',');
    if (*out_is_more || json_take(j, close))
        return JOT_OK;
    return JSON_FAIL(j, "there is no ',' and no '%c' here", close);
}

// ---- strings ----

static int digit_of(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

// The four digits behind \u.
static jot_status read_unit(struct json *j, uint32_t *out)
{
    *out = 0;
    for (int i = 0; i < 4; i++) {
        int d = j->at < j->n ? digit_of(j->text[j->at]) : -1;
        if (d < 0)
            return JSON_FAIL(j, "\\u needs four hexadecimal digits");
        *out = *out << 4 | (uint32_t)d;
        j->at++;
    }
    return JOT_OK;
}

static size_t write_utf8(uint32_t c, char *to)
{
    int more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static const unsigned char lead[] = {0, 0xc0, 0xe0, 0xf0};
    to[0] = (char)(lead[more] | c >> 6 * more);
    for (int i = 1; i <= more; i++)
        to[i] = (char)(0x80 | (c >> 6 * (more - i) & 0x3f));
    return (size_t)more + 1;
}

// What stands behind a backslash.
static jot_status read_escape(struct json *j, char *to, size_t *used)
{
    static const char names[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    char c = j->at < j->n ? j->text[j->at++] : 0;
    const char *name = c ? strchr(names, c) : NULL;
    if (name) {
        to[(*used)++] = meanings[name - names];
        return JOT_OK;
    }
    uint32_t unit, low;
    if (c != 'u')
        return JSON_FAIL(j, "there is no such escape in JSON");
    JOT_TRY(read_unit(j, &unit));
    if (unit >= 0xd800 && unit < 0xdc00 && j->n - j->at >= 2 &&
        memcmp(j->text + j->at, "\\u", 2) == 0) {
        j->at += 2;
        JOT_TRY(read_unit(j, &low));
        if (low < 0xdc00 || low > 0xdfff)
            return JSON_FAIL(j, "half a surrogate pair");
        unit = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
    } else if (unit >= 0xd800 && unit < 0xe000) {
        return JSON_FAIL(j, "half a surrogate pair");
    }
    if (!unit)
        return JSON_FAIL(j, "a zero character in a string");
    *used += write_utf8(unit, to + *used);
    return JOT_OK;
}

jot_status json_string(struct json *j, const char **out)
{
    JOT_TRY(json_expect(j, '"'));
    char *to = j->room; // no escape is longer than what it stands for
    size_t used = 0;
    while (j->at < j->n && j->text[j->at] != '"') {
        unsigned char c = (unsigned char)j->text[j->at];
        if (c < 0x20)
            return JSON_FAIL(j, "a control character in a string");
        j->at++;
        if (c == '\\')
            JOT_TRY(read_escape(j, to, &used));
        else
            to[used++] = (char)c;
    }
    if (!(j->at < j->n))
        return JSON_FAIL(j, "the string does not end");
    j->at++;
    to[used] = 0;
    j->room += used + 1;
    *out = to;
    return JOT_OK;
}

jot_status json_key(struct json *j, const char **out)
{
    JOT_TRY(json_string(j, out));
    return json_expect(j, ':');
}

// ---- other values ----

jot_status json_count(struct json *j, uint64_t *out)
{
    char c = json_peek(j);
    if (c < '0' || c > '9')
        return JSON_FAIL(j, "there is no count here");
    *out = 0;
    for (; j->at < j->n && (c = j->text[j->at]) >= '0' && c <= '9'; j->at++) {
        if (*out > (UINT64_MAX - 9) / 10)
            return JSON_FAIL(j, "the count is too large");
        *out = 10 * *out + (uint64_t)(c - '0');
    }
    if (j->at < j->n && strchr(".eE", c))
        return JSON_FAIL(j, "the count has a fraction or an exponent");
    return JOT_OK;
}

// A number or a word; what kind does not matter.
static jot_status skip_word(struct json *j)
{
    size_t before = j->at;
    while (j->at < j->n &&
           (digit_of(j->text[j->at]) >= 0 || strchr("+-.Etrulsn", j->text[j->at])) &&
           j->text[j->at])
        j->at++;
    return j->at > before ? JOT_OK : JSON_FAIL(j, "there is no value here");
}

static jot_status skip(struct json *j, int level)
{
    const char *ignored;
    char open = json_peek(j), close = open == '{' ? '}' : ']';
    if (open == '"')
        return json_string(j, &ignored);
    if (open != '{' && open != '[')
        return skip_word(j);
    if (level == MOST_LEVELS)
        return JSON_FAIL(j, "more than %d levels", MOST_LEVELS);
    j->at++;
    for (bool is_more = !json_take(j, close); is_more;) {
        if (open == '{')
            JOT_TRY(json_key(j, &ignored));
        JOT_TRY(skip(j, level + 1));
        JOT_TRY(json_next(j, close, &is_more));
    }
    return JOT_OK;
}

jot_status json_skip(struct json *j) { return skip(j, 0); }

jot_status json_end(struct json *j)
{
    return json_peek(j) || j->at < j->n ? JSON_FAIL(j, "more text behind the end") : JOT_OK;
}
