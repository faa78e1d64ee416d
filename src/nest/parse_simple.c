// SPDX-License-Identifier: Apache-2.0
// Reading what statements are made of: values, accesses, axes and buffers.
#include "nest/parse.h"

bool nest_parse_number(struct nest_parser *p, uint32_t *out)
{
    uint64_t n;
    if (!lex_expect(p->l, "%") || !lex_unsigned(p->l, &n))
        return false;
    // A text defines fewer values than it has characters.
    if (n >= (uint64_t)(p->l->end - p->l->text))
        return lex_fail(p->l, "%%%llu: value numbers count from 0", (unsigned long long)n);
    *out = (uint32_t)n;
    return true;
}

bool nest_parse_value(struct nest_parser *p, nest_id *out)
{
    uint32_t n;
    if (!nest_parse_number(p, &n))
        return false;
    if (n >= p->values.count || p->values.at[n] == NEST_NONE)
        return lex_fail(p->l, "%%%u is used before it is defined", n);
    *out = p->values.at[n];
    return true;
}

bool nest_parse_order(struct nest_parser *p, enum nest_order *out)
{
    for (int order = NEST_SUM64; order < NEST_ORDERS; order++)
        if (lex_keyword(p->l, nest_order_names[order])) {
            *out = (enum nest_order)order;
            return true;
        }
    return lex_fail(p->l, "expected an order such as sum64 or free");
}

// The number in the text stands for the value from here on.
bool nest_parse_bind(struct nest_parser *p, uint32_t number, nest_id value)
{
    while (p->values.count <= number)
        vec_push(p->l->arena, &p->values, NEST_NONE);
    if (p->values.at[number] != NEST_NONE)
        return lex_fail(p->l, "%%%u is defined twice", number);
    p->values.at[number] = value;
    return true;
}

bool nest_parse_where(struct nest_parser *p)
{
    p->b.where = 0;
    return !lex_char(p->l, '!') || lex_u32(p->l, &p->b.where);
}

bool nest_parse_find_axis(struct nest_parser *p, struct lex_word w,
                          struct nest_parser_axis *out)
{
    for (uint32_t i = p->open.count; i-- > 0;) {
        struct nest_parser_axis *o = &p->open.at[i];
        if (o->name.length == w.length && !memcmp(o->name.at, w.at, w.length)) {
            *out = *o;
            return true;
        }
    }
    return lex_fail(p->l, "there is no axis '%.*s' here", (int)(w.length < 40 ? w.length : 40),
                    w.at);
}

static bool parse_term(struct nest_parser *p, struct nest_term *t, bool *out_constant)
{
    struct lexer *l = p->l;
    uint64_t size = 1;
    bool number = lex_is_digit(lex_peek(l));
    if (number && !lex_unsigned(l, &size))
        return false;
    *out_constant = number && !lex_char(l, '*');
    t->factor = (int64_t)size;
    if (*out_constant)
        return true;
    if (lex_peek(l) == '%') {
        t->is_value = true;
        return nest_parse_value(p, &t->id);
    }
    struct lex_word w;
    struct nest_parser_axis axis;
    if (!lex_identifier(l, &w) || !nest_parse_find_axis(p, w, &axis))
        return false;
    t->id = axis.axis;
    return true;
}

bool nest_parse_index(struct nest_parser *p, struct nest_index *out)
{
    VEC(struct nest_term) terms = {0};
    uint64_t constant = 0;
    bool negative = lex_char(p->l, '-');
    do {
        struct nest_term t = {0};
        bool is_constant;
        if (!parse_term(p, &t, &is_constant))
            return false;
        if (negative)
            t.factor = (int64_t)-(uint64_t)t.factor;
        if (is_constant)
            constant += (uint64_t)t.factor;
        else
            vec_push(p->l->arena, &terms, t);
        negative = lex_peek(p->l) == '-';
    } while (lex_char(p->l, '+') || lex_char(p->l, '-'));
    *out = nest_index_make(p->l->arena, (int64_t)constant, (int)terms.count, terms.at);
    return true;
}

static bool find_buffer(struct nest_parser *p, struct lex_word w, nest_id *out)
{
    uint64_t h = hash_bytes(0, w.at, w.length);
    for (struct hash_probe q = hash_probe(&p->buffers, h); hash_next(&p->buffers, &q);)
        if (lex_equal(w, p->b.nest->buffers.at[q.id].name)) {
            *out = q.id;
            return true;
        }
    return false;
}

bool nest_parse_access(struct nest_parser *p, nest_id *buffer, struct nest_index *index)
{
    struct lex_word w;
    if (!lex_identifier(p->l, &w))
        return false;
    if (!find_buffer(p, w, buffer))
        return lex_fail(p->l, "there is no buffer '%.*s'", (int)(w.length < 40 ? w.length : 40),
                        w.at);
    return lex_expect(p->l, "[") && nest_parse_index(p, index) && lex_expect(p->l, "]");
}

// One of the words behind an @; the first of them is none.
static bool parse_word(struct nest_parser *p, const char *const *words, unsigned n,
                       unsigned *out)
{
    for (*out = 1; *out < n; ++*out)
        if (lex_keyword(p->l, words[*out]))
            return true;
    struct lex_word w = lex_peek_word(p->l);
    return lex_fail(p->l, "there is no level '%.*s'", (int)(w.length < 40 ? w.length : 40),
                    w.at);
}

bool nest_parse_level(struct nest_parser *p, const char *const *words, unsigned n,
                      unsigned *out)
{
    *out = 0;
    return !lex_char(p->l, '@') || parse_word(p, words, n, out);
}

bool nest_parse_buffer(struct nest_parser *p, bool local)
{
    struct lexer *l = p->l;
    struct lex_word w;
    jot_dtype dtype;
    int64_t count;
    enum nest_role role = local ? NEST_LOCAL : NEST_IN;
    nest_id known;
    if (!lex_identifier(l, &w))
        return false;
    if (find_buffer(p, w, &known))
        return lex_fail(l, "two buffers are called '%.*s'",
                        (int)(w.length < 40 ? w.length : 40), w.at);
    if (!lex_expect(l, ":"))
        return false;
    if (!local && lex_keyword(l, "out"))
        role = NEST_OUT;
    else if (!local && lex_keyword(l, "inout"))
        role = NEST_INOUT;
    else if (!local && lex_keyword(l, "part"))
        role = NEST_PART;
    else if (!local && lex_keyword(l, "work"))
        role = NEST_WORK;
    if (!lex_dtype(l, &dtype) || !lex_expect(l, "[") || !lex_signed(l, &count) ||
        !lex_expect(l, "]"))
        return false;
    unsigned space = 0;
    if (local && !nest_parse_level(p, nest_space_names, NEST_SPACES, &space))
        return false;
    nest_id id = nest_buffer(&p->b, lex_copy(l, w), dtype, count, role);
    p->b.nest->buffers.at[id].space = (enum nest_space)space;
    hash_insert(l->arena, &p->buffers, hash_bytes(0, w.at, w.length), id);
    return true;
}

// name < extent @vector lanes @tile side @rows n @segment n @early n
bool nest_parse_axis(struct nest_parser *p, struct lex_word *name, nest_id *out)
{
    int64_t extent;
    if (!lex_identifier(p->l, name) || !lex_expect(p->l, "<") || !lex_signed(p->l, &extent))
        return false;
    static const char *const words[] = {NULL, "vector", "tile", "rows", "segment", "early"};
    uint32_t of[6] = {0};
    unsigned which;
    while (lex_char(p->l, '@'))
        if (!parse_word(p, words, 6, &which) || !lex_u32(p->l, &of[which]))
            return false;
    *out = nest_axis(&p->b, lex_copy(p->l, *name), extent);
    struct nest_axis *axis = &p->b.nest->axes.at[*out];
    axis->vector = of[1], axis->tile = of[2], axis->rows = of[3], axis->segment = of[4];
    axis->early = of[5];
    return true;
}

void nest_parse_open_axis(struct nest_parser *p, struct lex_word name, nest_id axis,
                          nest_id statement)
{
    vec_push(p->l->arena, &p->open,
             (struct nest_parser_axis){.name = name, .axis = axis, .statement = statement});
}
