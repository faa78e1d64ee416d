// SPDX-License-Identifier: Apache-2.0
// Reading the text form of nests: a cursor over characters with an error that sticks.
//
// Functions that read return false after a failure and then leave their output alone.
#ifndef NEST_LEX_H
#define NEST_LEX_H

#include "base/dtype.h"
#include "base/hash.h"
#include "base/status.h"
#include "nest/nest.h"

#define LEX_OPS 512

struct lexer {
    struct arena *arena;
    const char *text, *at, *end;
    jot_status status;
    uint16_t ops[LEX_OPS]; // enum ir_op + 1 by name, open addressing
};

struct lex_word {
    const char *at;
    size_t length;
};

struct lexer lex_make(struct arena *arena, const char *text);
// Keeps the first failure, with line and column; false.
__attribute__((format(printf, 2, 3))) bool lex_fail(struct lexer *l, const char *format, ...);

// Blanks, newlines and comments from // to the end of the line.
static inline void lex_skip(struct lexer *l)
{
    for (;; l->at++) {
        if (*l->at == '/' && l->at[1] == '/')
            while (*l->at && *l->at != '\n')
                l->at++;
        if (*l->at != ' ' && *l->at != '\n' && *l->at != '\t' && *l->at != '\r')
            return;
    }
}

static inline bool lex_is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static inline bool lex_is_digit(char c) { return c >= '0' && c <= '9'; }

// The character that comes next, not read.
static inline char lex_peek(struct lexer *l)
{
    lex_skip(l);
    return *l->at;
}

// Reads the character if it comes next.
static inline bool lex_char(struct lexer *l, char c)
{
    if (lex_peek(l) != c)
        return false;
    l->at++;
    return true;
}

static inline struct lex_word lex_peek_word(struct lexer *l)
{
    lex_skip(l);
    struct lex_word w = {.at = l->at};
    if (lex_is_letter(*w.at))
        while (lex_is_letter(w.at[w.length]) || lex_is_digit(w.at[w.length]))
            w.length++;
    return w;
}

static inline bool lex_equal(struct lex_word w, const char *text)
{
    return strlen(text) == w.length && !memcmp(w.at, text, w.length);
}

// Reads the word if it comes next.
static inline bool lex_keyword(struct lexer *l, const char *text)
{
    struct lex_word w = lex_peek_word(l);
    if (!lex_equal(w, text))
        return false;
    l->at += w.length;
    return true;
}

bool lex_expect(struct lexer *l, const char *text); // punctuation
bool lex_expect_keyword(struct lexer *l, const char *text);
bool lex_identifier(struct lexer *l, struct lex_word *out);
bool lex_unsigned(struct lexer *l, uint64_t *out);
bool lex_signed(struct lexer *l, int64_t *out);
bool lex_u32(struct lexer *l, uint32_t *out);
bool lex_dtype(struct lexer *l, jot_dtype *out);
bool lex_op(struct lexer *l, enum ir_op *out);
bool lex_string(struct lexer *l, const char **out); // "..." with \" \\ and \x00
const char *lex_copy(struct lexer *l, struct lex_word w);

// One kernel, from its keyword on (nest/parse.c).
bool nest_parse_kernel(struct lexer *l, struct nest **out);

#endif
