// SPDX-License-Identifier: Apache-2.0
// Reading what has no body: buffers, axes, values, and the statements that compute, load and put.
#include "nest/parse.h"

#define MAX_OPERANDS 16

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

static bool find_axis(struct nest_parser *p, struct lex_word w, struct nest_parser_axis *out)
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
    if (!lex_identifier(l, &w) || !find_axis(p, w, &axis))
        return false;
    t->id = axis.axis;
    return true;
}

static bool parse_index(struct nest_parser *p, struct nest_index *out)
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

static bool parse_element(struct nest_parser *p, nest_id *buffer, struct nest_index *index)
{
    struct lex_word w;
    if (!lex_identifier(p->l, &w))
        return false;
    if (!find_buffer(p, w, buffer))
        return lex_fail(p->l, "there is no buffer '%.*s'", (int)(w.length < 40 ? w.length : 40),
                        w.at);
    return lex_expect(p->l, "[") && parse_index(p, index) && lex_expect(p->l, "]");
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

// --- scalars

static bool parse_const(struct nest_parser *p, uint64_t word[2], int *out_digits)
{
    struct lexer *l = p->l;
    if (!lex_expect(l, "0x"))
        return false;
    int n = 0;
    for (;; n++, l->at++) {
        char c = *l->at;
        int digit = lex_is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
        if (digit < 0)
            break;
        word[1] = word[1] << 4 | word[0] >> 60;
        word[0] = word[0] << 4 | (uint64_t)digit;
        if (n == 32)
            return lex_fail(l, "a constant has at most 32 digits");
    }
    *out_digits = n;
    return true;
}

// ": dtype" and the place in the source, which the statements to come take.
static bool parse_type(struct nest_parser *p, jot_dtype *dtype)
{
    return lex_expect(p->l, ":") && lex_dtype(p->l, dtype) && nest_parse_where(p);
}

static bool parse_const_statement(struct nest_parser *p, nest_id *out)
{
    uint64_t word[2] = {0};
    int digits = 0;
    jot_dtype dtype;
    if (!parse_const(p, word, &digits) || !parse_type(p, &dtype))
        return false;
    int bytes = dtype_get(dtype)->bytes;
    if (digits != 2 * bytes)
        return lex_fail(p->l, "a constant of type %s has %d digits", dtype_get(dtype)->name,
                        2 * bytes);
    unsigned char element[16];
    for (int i = 0; i < 16; i++)
        element[i] = (unsigned char)(word[i / 8] >> (i % 8 * 8));
    *out = nest_const(&p->b, dtype, element);
    return true;
}

static bool parse_load(struct nest_parser *p, nest_id *out)
{
    nest_id buffer, guard = NEST_NONE;
    struct nest_index index;
    jot_dtype dtype;
    if (!parse_element(p, &buffer, &index))
        return false;
    if (lex_keyword(p->l, "if") && !nest_parse_value(p, &guard))
        return false;
    if (!parse_type(p, &dtype))
        return false;
    jot_dtype stored = p->b.nest->buffers.at[buffer].dtype;
    if (dtype != stored)
        return lex_fail(p->l, "the elements of '%s' are %s, not %s",
                        p->b.nest->buffers.at[buffer].name, dtype_get(stored)->name,
                        dtype_get(dtype)->name);
    *out = nest_load(&p->b, buffer, index, guard);
    return true;
}

static bool parse_index_statement(struct nest_parser *p, nest_id *out)
{
    struct nest_index index;
    jot_dtype dtype;
    if (!parse_index(p, &index) || !parse_type(p, &dtype))
        return false;
    *out = nest_index_value(&p->b, index, dtype);
    return true;
}

static bool parse_op(struct nest_parser *p, nest_id *out)
{
    struct lexer *l = p->l;
    enum ir_op op;
    jot_dtype dtype;
    nest_id in[MAX_OPERANDS];
    int64_t bits[2] = {0};
    int n = 0;
    if (!lex_op(l, &op))
        return false;
    if (lex_peek(l) == '%')
        do {
            if (n == MAX_OPERANDS)
                return lex_fail(l, "an op takes at most %d operands", MAX_OPERANDS);
            if (!nest_parse_value(p, &in[n++]))
                return false;
        } while (lex_char(l, ','));
    if (lex_char(l, '{') && (!lex_signed(l, &bits[0]) || !lex_expect(l, ",") ||
                             !lex_signed(l, &bits[1]) || !lex_expect(l, "}")))
        return false;
    if (!parse_type(p, &dtype))
        return false;
    *out = nest_op(&p->b, op, dtype, n, in, bits);
    return true;
}

// The values first, first + 1, ... take the numbers; there must be as many.
static bool bind_results(struct nest_parser *p, uint32_t n, const uint32_t *numbers)
{
    const struct nest_statement *s = &vec_last(&p->b.nest->statements);
    if (s->n_results != n)
        return lex_fail(p->l, "the op has %u results, not %u", s->n_results, n);
    for (uint32_t i = 0; i < n; i++)
        if (!nest_parse_bind(p, numbers[i], s->result + i))
            return false;
    return true;
}

bool nest_parse_scalar(struct nest_parser *p)
{
    struct lexer *l = p->l;
    uint32_t numbers[4], n = 0;
    nest_id result;
    do {
        if (n == 4)
            return lex_fail(l, "an op has at most 4 results");
        if (!nest_parse_number(p, &numbers[n++]))
            return false;
    } while (lex_char(l, ','));
    if (!lex_expect(l, "="))
        return false;
    bool ok;
    if (lex_keyword(l, "load"))
        ok = parse_load(p, &result);
    else if (lex_keyword(l, "const"))
        ok = parse_const_statement(p, &result);
    else if (lex_keyword(l, "index"))
        ok = parse_index_statement(p, &result);
    else
        ok = parse_op(p, &result);
    return ok && bind_results(p, n, numbers);
}

// --- put, contract

// A guard stands on the line of its put; on the next line the word starts a statement.
static bool guard_follows(struct lexer *l)
{
    lex_skip(l);
    const char *c = l->at;
    while (c > l->text && (c[-1] == ' ' || c[-1] == '\t' || c[-1] == '\r'))
        c--;
    return c > l->text && c[-1] != '\n' && lex_keyword(l, "if");
}

static bool parse_loop_name(struct nest_parser *p, nest_id *out)
{
    struct lex_word w;
    struct nest_parser_axis axis;
    if (!lex_identifier(p->l, &w) || !find_axis(p, w, &axis))
        return false;
    *out = axis.statement;
    return true;
}

bool nest_parse_put(struct nest_parser *p)
{
    struct lexer *l = p->l;
    nest_id buffer, guard = NEST_NONE, fold = NEST_NONE;
    struct nest_index index;
    struct nest_combine c = {0};
    enum ir_op op = IR_param;
    if (!parse_element(p, &buffer, &index))
        return false;
    if (lex_peek(l) != '=' && !lex_op(l, &op))
        return false;
    if (!lex_expect(l, "="))
        return false;
    do {
        if (c.n == 2)
            return lex_fail(l, "a put takes at most 2 values");
        if (!nest_parse_value(p, &c.value[c.n++]))
            return false;
    } while (lex_char(l, ','));
    if (guard_follows(l) && !nest_parse_value(p, &guard))
        return false;
    if (op != IR_param && (!lex_expect_keyword(l, "in") || !lex_expect(l, "@") ||
                           !parse_loop_name(p, &fold) || !nest_parse_order(p, &c.order)))
        return false;
    if (op == IR_param && c.n != 1)
        return lex_fail(l, "a plain put takes 1 value");
    if (!nest_parse_where(p))
        return false;
    c.op = (uint16_t)op;
    if (op == IR_param)
        nest_put(&p->b, buffer, index, c.value[0], guard);
    else
        nest_put_combine_guarded(&p->b, buffer, index, fold, &c, guard);
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

// The axes of a contract come last in the text and are needed first, so its head is read twice.
bool nest_parse_contract(struct nest_parser *p)
{
    struct lexer *l = p->l;
    const char *head = l->at;
    uint32_t open = p->open.count;
    VEC(nest_id) axes = {0};
    nest_id buffer[3], axis;
    struct nest_index index[3];
    struct lex_word w;
    while (*l->at && *l->at != '\n' && !lex_equal(lex_peek_word(l), "for") &&
           !lex_equal(lex_peek_word(l), "over")) {
        struct lex_word skipped = lex_peek_word(l);
        l->at += skipped.length ? skipped.length : *l->at != 0;
    }
    bool is_summed = false, is_last = !lex_keyword(l, "for");
    for (; !is_summed; is_last = !is_summed && !lex_char(l, ',')) {
        is_summed = is_last;
        if ((is_summed && !lex_expect_keyword(l, "over")) || !nest_parse_axis(p, &w, &axis))
            return false;
        vec_push(l->arena, &axes, axis);
        nest_parse_open_axis(p, w, axis, NEST_NONE);
    }
    if (!nest_parse_where(p))
        return false;
    const char *end = l->at;
    l->at = head;
    for (int i = 0; i < 3; i++)
        if ((i && !lex_expect(l, i == 1 ? "=" : ",")) ||
            !parse_element(p, &buffer[i], &index[i]))
            return false;
    if (!lex_equal(lex_peek_word(l), "for") && !lex_equal(lex_peek_word(l), "over"))
        return lex_fail(l, "expected 'for' or 'over'");
    l->at = end;
    p->open.count = open;
    nest_contract(&p->b, buffer, index, (int)axes.count, axes.at);
    return true;
}
