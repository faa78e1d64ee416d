// SPDX-License-Identifier: Apache-2.0
#include "golden/golden.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

// -- Tensors ----------------------------------------------------------------------------------

static int digit(char c) { return c <= '9' ? c - '0' : c - 'a' + 10; }

struct ir_tensor golden_tensor(struct ir_module *m, const char *type, const char *digits)
{
    const char *open = strchr(type, '[');
    ck_assert_msg(open != NULL, "type %s", type);
    int found = dtype_find(type, (size_t)(open - type)), rank = 0;
    ck_assert_msg(found >= 0, "type %s", type);
    int64_t dims[IR_MAX_RANK];
    for (const char *c = open + 1; *c != ']'; c += *c == ',')
        dims[rank++] = strtoll(c, (char **)&c, 10);
    jot_dtype d = (jot_dtype)found;
    struct ir_tensor x = {ir_type_make(m, d, rank, dims), NULL};
    size_t part = jot_dtype_size(dtype_real(d)),
           bytes = (size_t)ir_count(m, x.type) * jot_dtype_size(d);
    ck_assert_uint_eq(strcmp(digits, "-") ? strlen(digits) : 0, 2 * bytes);
    unsigned char *at = x.data = arena_allocate(m->arena, bytes + 1);
    for (size_t i = 0; i < bytes; i++) { // the highest byte of an element first
        size_t from = i / part * part + (part - 1 - i % part);
        at[i] = (unsigned char)(digit(digits[2 * from]) * 16 + digit(digits[2 * from + 1]));
    }
    return x;
}

// -- Lines ------------------------------------------------------------------------------------

struct named {
    const char *name;
    struct ir_tensor x;
};

struct reader {
    struct ir_module *m;
    struct golden *out;
    VEC(struct named) values;
};

static char **words_of(struct arena *arena, char *line)
{
    VEC(char *) words = {0};
    for (char *at = NULL, *w = strtok_r(line, " ", &at); w; w = strtok_r(NULL, " ", &at))
        vec_push(arena, &words, w);
    vec_push(arena, &words, NULL);
    return words.at;
}

static const char *rest_of(struct arena *arena, const char *line)
{
    const char *space = strchr(line, ' ');
    return arena_text(arena, space ? space + 1 : "");
}

static void add_test(struct reader *r, char **words)
{
    struct golden_test t = {.name = words[1]};
    t.how = !strcmp(words[2], "exact") ? GOLDEN_EXACT
            : !strcmp(words[2], "ulp") ? GOLDEN_ULP
                                       : GOLDEN_CLOSE;
    t.bound = t.how == GOLDEN_EXACT ? 0 : strtod(words[3], NULL);
    vec_push(r->m->arena, &r->out->tests, t);
}

static void add_operands(struct reader *r, char **words)
{
    struct golden_test *t = &vec_last(&r->out->tests);
    for (words++; *words; words++)
        for (uint32_t i = 0; i < r->values.count; i++)
            if (!strcmp(r->values.at[i].name, *words))
                t->in[t->n_in++] = r->values.at[i].x;
}

static void read_line(struct reader *r, char *line)
{
    const char *rest = rest_of(r->m->arena, line);
    char **words = words_of(r->m->arena, line);
    const char *kind = words[0];
    if (!kind)
        return;
    struct golden_test *t = r->out->tests.count ? &vec_last(&r->out->tests) : NULL;
    if (!strcmp(kind, "made"))
        r->out->made = rest;
    else if (!strcmp(kind, "values"))
        vec_push(r->m->arena, &r->values,
                 (struct named){words[1], golden_tensor(r->m, words[2], words[3])});
    else if (!strcmp(kind, "test"))
        add_test(r, words);
    else if (!strcmp(kind, "apply"))
        t->apply = rest;
    else if (!strcmp(kind, "op"))
        t->op = rest;
    else if (!strcmp(kind, "in"))
        add_operands(r, words);
    else if (!strcmp(kind, "out"))
        t->out[t->n_out++] = golden_tensor(r->m, words[1], words[2]);
    else
        vec_push(r->m->arena, &r->out->lines, words);
}

struct golden golden_read(struct ir_module *m, const char *path)
{
    FILE *f = fopen(path, "r");
    ck_assert_msg(f != NULL, "%s cannot be read", path);
    struct golden out = {0};
    struct reader r = {.m = m, .out = &out};
    size_t room = 1 << 20;
    char *line = arena_allocate(m->arena, room);
    for (int i = 0; fgets(line, (int)room, f); i++) {
        line[strcspn(line, "\n")] = 0;
        if (i == 0)
            ck_assert_str_eq(line, "jot golden 1");
        else
            read_line(&r, arena_text(m->arena, line));
    }
    fclose(f);
    ck_assert_ptr_nonnull(out.made);
    return out;
}
