// SPDX-License-Identifier: Apache-2.0
// Texts of a mapped nest with one number or word of who does what changed, left out or put in.
#ifndef SUPPORT_LEVEL_MUTANTS_H
#define SUPPORT_LEVEL_MUTANTS_H

#include "base/strbuf.h"
#include "base/vec.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct level_mutant {
    size_t at, length; // of the text, what is replaced
    const char *by;
};
struct level_mutants {
    VEC(struct level_mutant) all;
};

static inline void mutant_add(struct arena *a, struct level_mutants *m, size_t at,
                              size_t length, const char *by)
{
    vec_push(a, &m->all, (struct level_mutant){at, length, arena_text(a, by)});
}

static inline size_t mutant_word(const char *text)
{
    return strspn(text, "abcdefghijklmnopqrstuvwxyz_0123456789");
}

static inline bool mutant_is(const char *at, size_t length, const char *word)
{
    return strlen(word) == length && !memcmp(at, word, length);
}

// Behind `word` stands a number: others, or neither of them.
static inline void mutant_numbers(struct arena *a, struct level_mutants *m, const char *text,
                                  size_t word, size_t number)
{
    long x = strtol(text + number, NULL, 10);
    size_t digits = strspn(text + number, "0123456789");
    const long others[] = {x / 2, 2 * x, x - 1, x + 1, 0, 1, 3, 4, 7, 32, 33, 64, 100, 1024};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        struct strbuf s = strbuf_make(a);
        bool is_new = others[i] != x;
        for (size_t k = 0; k < i; k++)
            is_new = is_new && others[k] != others[i];
        strbuf_printf(&s, "%ld", others[i]);
        if (is_new && others[i] >= 0)
            mutant_add(a, m, number, digits, s.text);
    }
    if (word < number)
        mutant_add(a, m, word, number + digits - word, "");
}

// All of them.
static inline struct level_mutants level_mutants_of(struct arena *a, const char *text)
{
    static const char *const numbers[] = {"block", "group",   "columns", "resident", "grid",
                                          "trips", "turns",   "at_once", "vector",   "tile",
                                          "rows",  "segment", "early"};
    static const char *const levels[] = {"grid",  "group", "thread", "row",
                                         "owner", "ahead", "serial"};
    static const char *const spaces[] = {"register", "shared", "again", "scratch"};
    static const char *const axis_words[] = {" @vector 2", " @vector 4",  " @tile 32",
                                             " @rows 2",   " @segment 4", " @early 1"};
    static const char *const loop_words[] = {" turns 2", " at_once 2", " turns 2 at_once 2",
                                             " terms @shared", " terms @scratch"};
    static const char *const head_words[] = {
        " as network", " as attention", " as attention_gradient",
        " as trips",   " group 32",     " columns 8",
        " grid 1",     " resident 2",   " trips 5"};
    struct level_mutants m = {{0}};
    size_t head = (size_t)(strstr(text, ") ") - text) + 1, end = strlen(text);
    for (size_t i = 0; i < sizeof head_words / sizeof *head_words; i++) {
        mutant_add(a, &m, head, 0, head_words[i]);
        mutant_add(a, &m, head + strcspn(text + head, "{") - 1, 0, head_words[i]);
    }
    for (size_t i = head; i < end; i++) {
        size_t n = mutant_word(text + i), more = n + (text[i + n] == ' ');
        if (text[i] == '@') {
            size_t w = mutant_word(text + i + 1);
            bool is_space = false, is_level = false;
            for (size_t k = 0; k < sizeof spaces / sizeof *spaces; k++)
                is_space |= mutant_is(text + i + 1, w, spaces[k]);
            for (size_t k = 0; k < sizeof levels / sizeof *levels; k++)
                is_level |= mutant_is(text + i + 1, w, levels[k]);
            for (size_t k = 0; is_space && k < sizeof spaces / sizeof *spaces; k++)
                if (!mutant_is(text + i + 1, w, spaces[k]))
                    mutant_add(a, &m, i + 1, w, spaces[k]);
            for (size_t k = 0; is_level && k < sizeof levels / sizeof *levels; k++)
                if (!mutant_is(text + i + 1, w, levels[k]))
                    mutant_add(a, &m, i + 1, w, levels[k]);
            if (is_space || is_level)
                mutant_add(a, &m, i, w + 1, "");
            if (is_space || is_level)
                continue;
            n = 0;
        }
        if (text[i] == '<') { // an extent
            size_t digits = strspn(text + i + 2, "0123456789");
            mutant_numbers(a, &m, text, i + 2, i + 2);
            for (size_t k = 0; k < sizeof axis_words / sizeof *axis_words; k++)
                mutant_add(a, &m, i + 2 + digits, 0, axis_words[k]);
            continue;
        }
        if (text[i] == '{' && i > head + strcspn(text + head, "{"))
            for (size_t k = 0; k < sizeof loop_words / sizeof *loop_words; k++)
                mutant_add(a, &m, i - 1, 0, loop_words[k]);
        if (!n || (i && text[i - 1] != '@' && mutant_word(text + i - 1)))
            continue;
        for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
            if (mutant_is(text + i, n, numbers[k]) && text[i + more] >= '0' &&
                text[i + more] <= '9') {
                size_t word = i && text[i - 1] == '@' ? i - 1 : i;
                mutant_numbers(a, &m, text, word, i + more);
            }
    }
    return m;
}

static inline const char *level_mutant_text(struct arena *a, const char *text,
                                            const struct level_mutant *m)
{
    struct strbuf s = strbuf_make(a);
    strbuf_add_bytes(&s, text, m->at);
    strbuf_printf(&s, "%s%s", m->by, text + m->at + m->length);
    return s.text;
}

#endif
