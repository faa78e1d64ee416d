// SPDX-License-Identifier: Apache-2.0
// Text that grows, in an arena.  Always ends in a zero byte.
#ifndef BASE_STRBUF_H
#define BASE_STRBUF_H

#include "base/arena.h"

struct strbuf {
    struct arena *arena;
    char *text;
    size_t length, capacity;
};

struct strbuf strbuf_make(struct arena *a);
void strbuf_reserve(struct strbuf *s, size_t n); // room for so many more bytes
void strbuf_add(struct strbuf *s, const char *text);
void strbuf_add_bytes(struct strbuf *s, const void *bytes, size_t n);
// Two blanks for each level, of the first 32: else the text of N levels would grow with the square of N.
void strbuf_indent(struct strbuf *s, uint32_t level);
__attribute__((format(printf, 2, 3))) void strbuf_printf(struct strbuf *s, const char *format,
                                                         ...);

// Whether a name may have it: a letter, a digit or '_'.
static inline bool strbuf_is_word_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '_';
}

#endif
