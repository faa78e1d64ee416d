// SPDX-License-Identifier: Apache-2.0
#include "nest/lex.h"

#include <stdarg.h>
#include <stdio.h>

static uint32_t op_slot(const char *name, size_t length)
{
    uint32_t h = (uint32_t)length;
    for (size_t i = 0; i < length; i++)
        h = h * 31 + (unsigned char)name[i];
    return (h ^ h >> 9) % LEX_OPS;
}

struct lexer lex_make(struct arena *arena, const char *text)
{
    struct lexer l = {.arena = arena, .text = text, .at = text, .end = text + strlen(text)};
    for (uint16_t op = 0; op < IR_OP_COUNT; op++) {
        const char *name = ir_op_get((enum ir_op)op)->name;
        uint32_t slot = op_slot(name, strlen(name));
        while (l.ops[slot])
            slot = (slot + 1) % LEX_OPS;
        l.ops[slot] = (uint16_t)(op + 1);
    }
    return l;
}

bool lex_fail(struct lexer *l, const char *format, ...)
{
    if (l->status != JOT_OK)
        return false;
    int line = 1, column = 1;
    for (const char *c = l->text; c < l->at; c++) {
        column = *c == '\n' ? 1 : column + 1;
        line += *c == '\n';
    }
    char what[256];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    l->status = status_fail(JOT_ERR_ARGUMENT, "nest text %d:%d: %s", line, column, what);
    return false;
}

// What comes next, for a message.
static const char *next_text(struct lexer *l, char out[24])
{
    lex_skip(l);
    size_t n = 0;
    while (n < 20 && l->at[n] && l->at[n] != '\n')
        n++;
    memcpy(out, l->at, n);
    out[n] = 0;
    return n ? out : "the end";
}

bool lex_expect(struct lexer *l, const char *text)
{
    lex_skip(l);
    size_t n = strlen(text);
    if (!strncmp(l->at, text, n)) {
        l->at += n;
        return true;
    }
    char found[24];
    return lex_fail(l, "expected '%s', found '%s'", text, next_text(l, found));
}

bool lex_expect_keyword(struct lexer *l, const char *text)
{
    if (lex_keyword(l, text))
        return true;
    char found[24];
    return lex_fail(l, "expected '%s', found '%s'", text, next_text(l, found));
}

bool lex_identifier(struct lexer *l, struct lex_word *out)
{
    struct lex_word w = lex_peek_word(l);
    char found[24];
    if (!w.length)
        return lex_fail(l, "expected a name, found '%s'", next_text(l, found));
    l->at += w.length;
    *out = w;
    return true;
}

bool lex_unsigned(struct lexer *l, uint64_t *out)
{
    char found[24];
    if (!lex_is_digit(lex_peek(l)))
        return lex_fail(l, "expected a number, found '%s'", next_text(l, found));
    uint64_t x = 0;
    const char *c = l->at;
    for (; lex_is_digit(*c); c++) {
        uint64_t digit = (uint64_t)(*c - '0');
        if (x > (UINT64_MAX - digit) / 10)
            return lex_fail(l, "the number does not fit 64 bits");
        x = x * 10 + digit;
    }
    l->at = c;
    *out = x;
    return true;
}

bool lex_signed(struct lexer *l, int64_t *out)
{
    bool negative = lex_char(l, '-');
    uint64_t x;
    if (!lex_unsigned(l, &x))
        return false;
    if (x > (uint64_t)INT64_MAX + negative)
        return lex_fail(l, "the number does not fit 64 bits");
    *out = negative ? (int64_t)-x : (int64_t)x;
    return true;
}

bool lex_u32(struct lexer *l, uint32_t *out)
{
    uint64_t x;
    if (!lex_unsigned(l, &x))
        return false;
    if (x > UINT32_MAX)
        return lex_fail(l, "the number does not fit 32 bits");
    *out = (uint32_t)x;
    return true;
}

bool lex_dtype(struct lexer *l, jot_dtype *out)
{
    struct lex_word w = lex_peek_word(l);
    int dtype = dtype_find(w.at, w.length);
    if (dtype < 0)
        return lex_fail(l, "expected an element type such as f32, found '%.*s'",
                        (int)(w.length < 20 ? w.length : 20), w.at);
    l->at += w.length;
    *out = (jot_dtype)dtype;
    return true;
}

bool lex_op(struct lexer *l, enum ir_op *out)
{
    struct lex_word w = lex_peek_word(l);
    for (uint32_t slot = op_slot(w.at, w.length); l->ops[slot]; slot = (slot + 1) % LEX_OPS) {
        enum ir_op op = (enum ir_op)(l->ops[slot] - 1);
        if (lex_equal(w, ir_op_get(op)->name)) {
            l->at += w.length;
            *out = op;
            return true;
        }
    }
    return lex_fail(l, "there is no op '%.*s'", (int)(w.length < 40 ? w.length : 40), w.at);
}

static int hex_digit(char c)
{
    if (lex_is_digit(c))
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool lex_string(struct lexer *l, const char **out)
{
    if (!lex_expect(l, "\""))
        return false;
    const char *c = l->at;
    size_t n = 0;
    while (c[n] && c[n] != '"')
        n += c[n] == '\\' && c[n + 1] ? 2 : 1;
    char *text = arena_allocate(l->arena, n + 1), *to = text;
    for (; *c && *c != '"'; c++) {
        if (*c != '\\') {
            *to++ = *c;
        } else if (c[1] == 'x') {
            int high = hex_digit(c[2]), low = high < 0 ? -1 : hex_digit(c[3]);
            if (low < 0 || !(high | low))
                return lex_fail(l, "a bad \\x in a string");
            *to++ = (char)(high << 4 | low);
            c += 3;
        } else if (c[1] == '"' || c[1] == '\\') {
            *to++ = *++c;
        } else {
            return lex_fail(l, "a bad \\ in a string");
        }
    }
    l->at = c;
    *out = text;
    return lex_expect(l, "\"");
}

const char *lex_copy(struct lexer *l, struct lex_word w)
{
    char *text = arena_allocate(l->arena, w.length + 1);
    memcpy(text, w.at, w.length);
    return text;
}
