// SPDX-License-Identifier: Apache-2.0
// Reads a timeline and checks what holds of each: it is JSON, and the events of a thread nest and grow.
#ifndef TIMELINE_CHECK_H
#define TIMELINE_CHECK_H

#include <check.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TIMELINE_MOST 4000

// An event or a counter, times in nanoseconds.
struct timeline_line {
    char ph[8], cat[32], name[256], where[512];
    double tid, ts, dur, bytes, pid;
};

struct timeline {
    const char *text, *at; // of the file, and what is left
    int n;
    struct timeline_line lines[TIMELINE_MOST];
};

static inline char timeline_peek(struct timeline *t)
{
    t->at += strspn(t->at, " \n");
    return *t->at;
}

static inline void timeline_expect(struct timeline *t, char c)
{
    ck_assert_msg(timeline_peek(t) == c, "byte %td is '%c', not '%c'", t->at - t->text, *t->at,
                  c);
    t->at++;
}

// Behind an element: a comma, or the bracket that closes.
static inline bool timeline_goes_on(struct timeline *t, char close)
{
    if (timeline_peek(t) == close)
        return t->at++, false;
    timeline_expect(t, ',');
    return true;
}

static inline void timeline_string(struct timeline *t, char *out, size_t size)
{
    size_t n = 0;
    timeline_expect(t, '"');
    while (*t->at != '"') {
        ck_assert_msg((unsigned char)*t->at >= ' ', "byte %d in a string", *t->at);
        unsigned c = (unsigned char)*t->at++;
        if (c == '\\') {
            c = (unsigned char)*t->at++;
            ck_assert(c == '"' || c == '\\' || c == 'u');
            if (c == 'u') {
                ck_assert_int_eq(sscanf(t->at, "%4x", &c), 1);
                t->at += 4;
            }
        }
        ck_assert_uint_lt(n + 1, size);
        out[n++] = (char)c;
    }
    out[n] = 0;
    t->at++;
}

// The members of an object, and of one in it, by their keys.
static inline void timeline_object(struct timeline *t, struct timeline_line *l)
{
    struct {
        const char *key;
        double *number, scale;
        char *text;
        size_t size;
    } members[] = {
        {"ph", NULL, 0, l->ph, sizeof l->ph},
        {"cat", NULL, 0, l->cat, sizeof l->cat},
        {"name", NULL, 0, l->name, sizeof l->name},
        {"where", NULL, 0, l->where, sizeof l->where},
        {"pid", &l->pid, 1, NULL, 0},
        {"tid", &l->tid, 1, NULL, 0},
        {"ts", &l->ts, 1000, NULL, 0},
        {"dur", &l->dur, 1000, NULL, 0},
        {"bytes", &l->bytes, 1, NULL, 0},
    };
    timeline_expect(t, '{');
    if (timeline_peek(t) == '}') {
        t->at++;
        return;
    }
    do {
        char key[16], *end;
        timeline_string(t, key, sizeof key);
        timeline_expect(t, ':');
        if (!strcmp(key, "args")) {
            timeline_object(t, l);
            continue;
        }
        size_t i = 0;
        while (i < sizeof members / sizeof *members && strcmp(key, members[i].key) != 0)
            i++;
        ck_assert_msg(i < sizeof members / sizeof *members, "the key %s", key);
        if (members[i].text) {
            timeline_string(t, members[i].text, members[i].size);
            continue;
        }
        ck_assert_msg(timeline_peek(t) >= '0' && *t->at <= '9', "'%c' is no number", *t->at);
        *members[i].number = round(strtod(t->at, &end) * members[i].scale);
        t->at = end;
    } while (timeline_goes_on(t, '}'));
}

static inline int timeline_earlier(const void *a, const void *b)
{
    const struct timeline_line *x = a, *y = b;
    if (x->tid != y->tid)
        return x->tid < y->tid ? -1 : 1;
    if (x->ts != y->ts)
        return x->ts < y->ts ? -1 : 1;
    return x->dur > y->dur ? -1 : x->dur < y->dur;
}

// Lines of a thread stand in the order in which they end, and are inside one another or apart.
static inline void timeline_check(struct timeline *t)
{
    for (int i = 0; i < t->n; i++)
        for (int k = i + 1; k < t->n; k++)
            if (t->lines[k].tid == t->lines[i].tid) {
                ck_assert_double_ge(t->lines[k].ts + t->lines[k].dur,
                                    t->lines[i].ts + t->lines[i].dur);
                break;
            }
    qsort(t->lines, (size_t)t->n, sizeof *t->lines, timeline_earlier);
    double ends[64];
    int depth = 0;
    for (int i = 0; i < t->n; i++) {
        const struct timeline_line *l = &t->lines[i];
        if (!i || l->tid != l[-1].tid)
            depth = 0;
        while (depth && ends[depth - 1] <= l->ts)
            depth--;
        ck_assert_msg(!depth || l->ts + l->dur <= ends[depth - 1], "%s ends late", l->name);
        ck_assert_int_lt(depth, 64);
        ends[depth++] = l->ts + l->dur;
    }
}

// The lines of a whole file, in the order of threads and times; the last, which names the process, is left out.
static inline void timeline_read(const char *text, struct timeline *t)
{
    *t = (struct timeline){.text = text, .at = text};
    timeline_expect(t, '[');
    do {
        ck_assert_int_lt(t->n, TIMELINE_MOST);
        timeline_object(t, &t->lines[t->n++]);
    } while (timeline_goes_on(t, ']'));
    ck_assert_int_eq(timeline_peek(t), 0);
    ck_assert_str_eq(t->lines[--t->n].ph, "M");
    for (int i = 0; i < t->n; i++) {
        const struct timeline_line *l = &t->lines[i];
        ck_assert(l->pid == t->lines[0].pid && l->tid > 0 && l->ts > 0);
        ck_assert_msg(!strcmp(l->ph, "X") || !strcmp(l->ph, "C"), "%s", l->ph);
    }
    timeline_check(t);
}

// The first line of the kind (NULL: a counter) with the name and with the text in its place; either may be NULL.
static inline const struct timeline_line *
timeline_find(const struct timeline *t, const char *kind, const char *name, const char *where)
{
    for (int i = 0; i < t->n; i++) {
        const struct timeline_line *l = &t->lines[i];
        if (!strcmp(l->cat, kind ? kind : "") && (!name || !strcmp(l->name, name)) &&
            (!where || strstr(l->where, where)))
            return l;
    }
    return NULL;
}

#endif
