// SPDX-License-Identifier: Apache-2.0
// Reading kernels.  The parser knows names and the order of words; what a nest means is checked by
// nest_verify.  Bodies are read by recursion, to a fixed depth.
#include "nest/parse.h"

struct ids {
    VEC(nest_id) ids;
};

// A statement that is being read.
struct text {
    struct nest_statement s;
    nest_id id;                  // of a loop or branch, once it is open
    struct ids results, carries; // numbers in the text
    struct ids in, axes, yields; // those of the block that is read last
    VEC(struct lex_word) names;  // of the axes
    VEC(struct nest_combine) combines;
    int digits; // of the element
};

static bool parse_block(struct nest_parser *p, bool is_scan);

static bool parse_list(struct nest_parser *p, struct ids *out,
                       bool (*parse)(struct nest_parser *, nest_id *))
{
    do {
        nest_id id;
        if (!parse(p, &id))
            return false;
        vec_push(p->l->arena, &out->ids, id);
    } while (lex_char(p->l, ','));
    return true;
}

// The values first, first + 1, ... have the numbers.
static bool bind_all(struct nest_parser *p, const struct ids *numbers, nest_id first)
{
    for (uint32_t i = 0; i < numbers->ids.count; i++)
        if (!nest_parse_bind(p, numbers->ids.at[i], first + i))
            return false;
    return true;
}

// ---- What statements have (statements.def)

static bool parse_op(struct nest_parser *p, struct text *t)
{
    enum ir_op op;
    if (!lex_op(p->l, &op))
        return false;
    t->s.op = (uint16_t)op;
    return true;
}

static bool parse_element(struct nest_parser *p, struct text *t)
{
    struct lexer *l = p->l;
    uint64_t word[2] = {0};
    if (!lex_expect(l, "0x"))
        return false;
    for (;; t->digits++, l->at++) {
        char c = *l->at;
        int digit = lex_is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
        if (digit < 0)
            break;
        word[1] = word[1] << 4 | word[0] >> 60;
        word[0] = word[0] << 4 | (uint64_t)digit;
        if (t->digits == 32)
            return lex_fail(l, "a constant has at most 32 digits");
    }
    unsigned char element[16];
    for (int i = 0; i < 16; i++)
        element[i] = (unsigned char)(word[i / 8] >> (i % 8 * 8));
    memcpy(t->s.bits, element, sizeof element);
    return true;
}

static bool parse_index(struct nest_parser *p, struct text *t)
{
    return nest_parse_index(p, &t->s.index);
}

static bool parse_access(struct nest_parser *p, struct text *t)
{
    return nest_parse_access(p, &t->s.buffer, &t->s.index);
}

static bool parse_combiner(struct nest_parser *p, struct text *t)
{
    return (lex_peek(p->l) == '=' || parse_op(p, t)) && lex_expect(p->l, "=");
}

static bool parse_values(struct nest_parser *p, struct text *t)
{
    if (lex_peek(p->l) == '%' && !parse_list(p, &t->in, nest_parse_value))
        return false;
    t->s.in = t->in.ids.at;
    t->s.n_in = t->in.ids.count;
    return true;
}

static bool parse_bits(struct nest_parser *p, struct text *t)
{
    return !lex_char(p->l, '{') || (lex_signed(p->l, &t->s.bits[0]) && lex_expect(p->l, ",") &&
                                    lex_signed(p->l, &t->s.bits[1]) && lex_expect(p->l, "}"));
}

// A guard stands on the line of its statement; on the next line the word starts one.
static bool parse_guard(struct nest_parser *p, struct text *t)
{
    struct lexer *l = p->l;
    lex_skip(l);
    const char *c = l->at;
    while (c > l->text && (c[-1] == ' ' || c[-1] == '\t' || c[-1] == '\r'))
        c--;
    bool follows = c > l->text && c[-1] != '\n' && lex_keyword(l, "if");
    return !follows || nest_parse_value(p, &t->s.guard);
}

static bool parse_over(struct nest_parser *p, struct text *t)
{
    struct lex_word w;
    struct nest_parser_axis axis;
    if (!t->s.op)
        return true;
    if (!lex_expect_keyword(p->l, "in") || !lex_expect(p->l, "@") ||
        !lex_identifier(p->l, &w) || !nest_parse_find_axis(p, w, &axis))
        return false;
    t->s.fold = axis.statement;
    return nest_parse_order(p, &t->s.order);
}

static bool parse_type(struct nest_parser *p, struct text *t)
{
    jot_dtype dtype;
    if (!lex_expect(p->l, ":") || !lex_dtype(p->l, &dtype))
        return false;
    const char *name = dtype_get(dtype)->name;
    int digits = 2 * dtype_get(dtype)->bytes;
    t->s.dtype = dtype;
    if (t->s.kind == NEST_CONST && t->digits != digits)
        return lex_fail(p->l, "a constant of type %s has %d digits", name, digits);
    const struct nest_buffer *b =
        t->s.kind == NEST_LOAD ? &p->b.nest->buffers.at[t->s.buffer] : NULL;
    return !b || b->dtype == dtype ||
           lex_fail(p->l, "the elements of '%s' are %s, not %s", b->name,
                    dtype_get(b->dtype)->name, name);
}

static bool parse_axis(struct nest_parser *p, struct text *t)
{
    struct lex_word name;
    nest_id axis;
    if (!nest_parse_axis(p, &name, &axis))
        return false;
    vec_push(p->l->arena, &t->axes.ids, axis);
    vec_push(p->l->arena, &t->names, name);
    t->s.axes = t->axes.ids.at;
    t->s.n_axes = t->axes.ids.count;
    return true;
}

static void open_axes(struct nest_parser *p, const struct text *t)
{
    for (uint32_t i = 0; i < t->names.count; i++)
        nest_parse_open_axis(p, t->names.at[i], t->axes.ids.at[i], t->id);
}

// The axes of a contract come last in the text and are needed first, so its head is read twice.
static bool parse_product(struct nest_parser *p, struct text *t)
{
    struct lexer *l = p->l;
    const char *head = l->at;
    while (*l->at && *l->at != '\n' && !lex_equal(lex_peek_word(l), "for") &&
           !lex_equal(lex_peek_word(l), "over")) {
        struct lex_word skipped = lex_peek_word(l);
        l->at += skipped.length ? skipped.length : *l->at != 0;
    }
    bool is_summed = false, is_last = !lex_keyword(l, "for");
    for (; !is_summed; is_last = !is_summed && !lex_char(l, ',')) {
        is_summed = is_last;
        if ((is_summed && !lex_expect_keyword(l, "over")) || !parse_axis(p, t))
            return false;
    }
    const char *end = l->at;
    l->at = head;
    open_axes(p, t);
    if (!parse_access(p, t))
        return false;
    for (int i = 0; i < 2; i++)
        if (!lex_expect(l, i ? "," : "=") ||
            !nest_parse_access(p, &t->s.source[i], &t->s.source_index[i]))
            return false;
    if (!lex_equal(lex_peek_word(l), "for") && !lex_equal(lex_peek_word(l), "over"))
        return lex_fail(l, "expected 'for' or 'over'");
    l->at = end;
    return true;
}

static bool parse_combines(struct nest_parser *p, struct text *t)
{
    do {
        enum ir_op op;
        struct nest_combine c = {0};
        if (!lex_op(p->l, &op))
            return false;
        c.op = (uint16_t)op;
        while (lex_peek(p->l) == '%') {
            if (c.n == 2)
                return lex_fail(p->l, "a combiner takes at most 2 values");
            if (!nest_parse_value(p, &c.value[c.n++]))
                return false;
        }
        if (!nest_parse_order(p, &c.order))
            return false;
        vec_push(p->l->arena, &t->combines, c);
    } while (lex_char(p->l, ','));
    return true;
}

static bool parse_level(struct nest_parser *p, struct text *t)
{
    unsigned level;
    if (!nest_parse_level(p, nest_level_names, NEST_LEVELS, &level))
        return false;
    t->s.level = (enum nest_level)level;
    return true;
}

static bool parse_axes(struct nest_parser *p, struct text *t)
{
    if (lex_is_letter(lex_peek(p->l)))
        do
            if (!parse_axis(p, t))
                return false;
        while (lex_char(p->l, ','));
    return true;
}

static bool parse_reverse(struct nest_parser *p, struct text *t)
{
    t->s.reverse = lex_keyword(p->l, "reverse");
    return true;
}

static bool parse_turns(struct nest_parser *p, struct text *t)
{
    return (!lex_keyword(p->l, "turns") || lex_u32(p->l, &t->s.turns)) &&
           (!lex_keyword(p->l, "at_once") || lex_u32(p->l, &t->s.at_once));
}

static bool parse_terms(struct nest_parser *p, struct text *t)
{
    unsigned terms = 0;
    if (lex_keyword(p->l, "terms") &&
        !nest_parse_level(p, nest_space_names, NEST_SPACES, &terms))
        return false;
    t->s.terms = (enum nest_space)terms;
    return true;
}

static bool parse_carries(struct nest_parser *p, struct text *t)
{
    if (!lex_keyword(p->l, "carry"))
        return true;
    do {
        uint32_t number;
        nest_id v;
        if (!nest_parse_number(p, &number) || !lex_expect(p->l, "=") ||
            !nest_parse_value(p, &v))
            return false;
        vec_push(p->l->arena, &t->carries.ids, number);
        vec_push(p->l->arena, &t->in.ids, v);
    } while (lex_char(p->l, ','));
    t->s.in = t->in.ids.at;
    t->s.n_in = t->in.ids.count;
    return true;
}

// A block and what it yields.
static bool parse_inside(struct nest_parser *p, struct text *t)
{
    t->yields.ids.count = 0;
    if (!parse_block(p, t->s.kind == NEST_SCAN))
        return false;
    if (lex_keyword(p->l, "yield") &&
        !(t->s.kind == NEST_FOLD ? parse_combines(p, t)
                                 : parse_list(p, &t->yields, nest_parse_value)))
        return false;
    return lex_expect(p->l, "}");
}

static bool parse_body(struct nest_parser *p, struct text *t)
{
    if (!nest_parse_where(p) || !lex_expect(p->l, "{"))
        return false;
    t->id = nest_append(&p->b, t->s);
    open_axes(p, t);
    return bind_all(p, &t->carries, p->b.nest->statements.at[t->id].first_carry) &&
           parse_inside(p, t);
}

static bool parse_other(struct nest_parser *p, struct text *t)
{
    bool is_while = t->s.kind == NEST_WHILE;
    uint32_t n = t->yields.ids.count;
    if (is_while ? n != 1 : n && !lex_equal(lex_peek_word(p->l), "else"))
        return lex_fail(p->l, is_while ? "the test of a while yields one value"
                                       : "an if that yields has an else");
    if (is_while ? !lex_expect_keyword(p->l, "do") : !lex_keyword(p->l, "else"))
        return !is_while;
    nest_open_other(&p->b, (int)n, t->yields.ids.at);
    return lex_expect(p->l, "{") && parse_inside(p, t);
}

// "-> %1 : f32, ...": the numbers of the results; their types go to the combiners.
static bool parse_combined(struct nest_parser *p, struct text *t)
{
    struct lexer *l = p->l;
    for (uint32_t i = 0; i < t->combines.count; i++)
        for (uint32_t j = 0; j < nest_combine_results(t->combines.at[i].op); j++) {
            uint32_t number;
            jot_dtype dtype;
            if (!lex_expect(l, i || j ? "," : "->") || !nest_parse_number(p, &number) ||
                !lex_expect(l, ":") || !lex_dtype(l, &dtype))
                return false;
            if (j == 0)
                t->combines.at[i].dtype = dtype;
            else if (dtype != JOT_I64)
                return lex_fail(l, "a position is an i64");
            vec_push(l->arena, &t->results.ids, number);
        }
    return true;
}

static bool parse_results(struct nest_parser *p, struct text *t)
{
    return !t->yields.ids.count ||
           (lex_expect(p->l, "->") && parse_list(p, &t->results, nest_parse_number));
}

// ---- Statements

// Appends what has been read, or closes its block.
static bool end_statement(struct nest_parser *p, struct text *t)
{
    struct nest_builder *b = &p->b;
    int combines = (int)t->combines.count;
    if (!nest_has(t->s.kind, NEST_PART_body)) {
        if (!nest_parse_where(p))
            return false;
        t->id = b->nest->statements.count;
        if (combines)
            nest_yield(b, combines, t->combines.at);
        else
            nest_append(b, t->s);
    } else if (combines) {
        nest_close(b, combines, t->combines.at);
    } else {
        nest_close_values(b, (int)t->yields.ids.count, t->yields.ids.at);
    }
    const struct nest_statement *s = &b->nest->statements.at[t->id];
    if (s->n_results != t->results.ids.count)
        return lex_fail(p->l, "it has %u results, not %u", s->n_results, t->results.ids.count);
    return bind_all(p, &t->results, s->result);
}

// The kind of the statement that begins here, an op where no other value does.
static bool parse_kind(struct nest_parser *p, bool is_value, enum nest_kind *out)
{
    for (int kind = NEST_OP + 1; kind < NEST_KIND_COUNT; kind++)
        if (nest_has((enum nest_kind)kind, NEST_PART_type) == is_value &&
            lex_keyword(p->l, nest_kind_names[kind])) {
            *out = (enum nest_kind)kind;
            return true;
        }
    struct lex_word w = lex_peek_word(p->l);
    *out = NEST_OP;
    return is_value || lex_fail(p->l, "there is no statement '%.*s'",
                                (int)(w.length < 40 ? w.length : 40), w.at);
}

static bool parse_statement(struct nest_parser *p)
{
    static bool (*const parse[NEST_PARTS])(struct nest_parser *, struct text *) = {
#define PART(name) parse_##name,
#include "nest/statements.def"
    };
    struct text t = {.id = NEST_NONE};
    uint32_t open = p->open.count;
    enum nest_kind kind;
    bool is_value = lex_peek(p->l) == '%';
    if (is_value && (!parse_list(p, &t.results, nest_parse_number) || !lex_expect(p->l, "=")))
        return false;
    if (!parse_kind(p, is_value, &kind))
        return false;
    t.s = nest_blank(kind);
    for (enum nest_part part = 0; part < NEST_PARTS; part++)
        if (nest_has(kind, part) && !parse[part](p, &t))
            return false;
    p->open.count = open;
    return end_statement(p, &t);
}

// Statements up to the closing brace or the yield that ends the block.
static bool parse_block(struct nest_parser *p, bool is_scan)
{
    if (++p->depth > NEST_DEPTH)
        return lex_fail(p->l, "blocks nest more than %d deep", NEST_DEPTH);
    while (lex_peek(p->l) != '}' && (is_scan || !lex_equal(lex_peek_word(p->l), "yield")))
        if (lex_keyword(p->l, "local") ? !nest_parse_buffer(p, true) : !parse_statement(p))
            return false;
    p->depth--;
    return true;
}

// What stands behind the parameters.
static bool parse_words(struct lexer *l, struct nest *n)
{
    for (int i = 0; i < NEST_CHOICES; i++)
        if (lex_keyword(l, nest_choice_names[i]))
            n->choices |= 1u << i;
    if (lex_keyword(l, "as")) {
        for (int i = NEST_ORDINARY + 1; i < NEST_SPECIALS; i++)
            if (lex_keyword(l, nest_special_names[i]))
                n->special = (enum nest_special)i;
        if (!n->special)
            return lex_fail(l, "there is no such kernel");
    }
    for (int i = 0; i < NEST_THREADS; i++)
        if (lex_keyword(l, nest_threads_names[i]) && !lex_u32(l, &n->threads[i]))
            return false;
    return !lex_keyword(l, "price") || lex_signed(l, &n->price);
}

bool nest_parse_kernel(struct lexer *l, struct nest **out)
{
    struct nest_parser p = {.l = l};
    struct lex_word name;
    if (!lex_expect_keyword(l, "kernel") || !lex_identifier(l, &name) || !lex_expect(l, "("))
        return false;
    p.b = nest_builder_make(l->arena, lex_copy(l, name));
    if (lex_peek(l) != ')')
        do
            if (!nest_parse_buffer(&p, false))
                return false;
        while (lex_char(l, ','));
    if (!lex_expect(l, ")") || !parse_words(l, p.b.nest))
        return false;
    if (!lex_expect(l, "{") || !parse_block(&p, false) || !lex_expect(l, "}"))
        return false;
    *out = p.b.nest;
    return true;
}

jot_status nest_parse(struct arena *arena, const char *text, int *out_count,
                      struct nest ***out_nests)
{
    struct lexer l = lex_make(arena, text);
    VEC(struct nest *) nests = {0};
    if (lex_keyword(&l, "jot") && (!lex_expect_keyword(&l, "nest") || !lex_expect(&l, "1")))
        return l.status;
    while (lex_peek(&l)) {
        struct nest *n;
        if (!nest_parse_kernel(&l, &n))
            return l.status;
        vec_push(arena, &nests, n);
    }
    *out_count = (int)nests.count;
    *out_nests = nests.at;
    return JOT_OK;
}
