// SPDX-License-Identifier: Apache-2.0
#include "base/strbuf.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void strbuf_reserve(struct strbuf *s, size_t n)
{
    size_t length = s->length + n;
    if (length < s->capacity)
        return;
    size_t capacity = s->capacity * 2 > length + 1 ? s->capacity * 2 : length + 1;
    char *text = arena_allocate(s->arena, capacity);
    memcpy(text, s->text, s->length);
    s->text = text;
    s->capacity = capacity;
}

struct strbuf strbuf_make(struct arena *a)
{
    return (struct strbuf){.arena = a, .text = arena_allocate(a, 64), .capacity = 64};
}

void strbuf_add_bytes(struct strbuf *s, const void *bytes, size_t n)
{
    strbuf_reserve(s, n);
    if (n) // bytes may then be NULL
        memcpy(s->text + s->length, bytes, n);
    s->length += n;
    s->text[s->length] = 0;
}

void strbuf_add(struct strbuf *s, const char *text) { strbuf_add_bytes(s, text, strlen(text)); }

void strbuf_indent(struct strbuf *s, uint32_t level)
{
    static const char blanks[] =
        "                                                                ";
    size_t most = sizeof blanks - 1;
    strbuf_add_bytes(s, blanks, 2 * (size_t)level < most ? 2 * (size_t)level : most);
}

void strbuf_printf(struct strbuf *s, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    size_t room = s->capacity - s->length;
    int n = vsnprintf(s->text + s->length, room, format, args);
    if (n > 0 && (size_t)n >= room) {
        strbuf_reserve(s, (size_t)n);
        vsnprintf(s->text + s->length, s->capacity - s->length, format, again);
    }
    if (n > 0)
        s->length += (size_t)n;
    va_end(again);
    va_end(args);
}
