// SPDX-License-Identifier: Apache-2.0
// Reading kernels.  The parser knows names and the order of words; what a nest means is checked by
// nest_verify.  Bodies are read by recursion, to a fixed depth.
#include "nest/parse.h"

#define MAX_DEPTH 200

struct value_list {
    VEC(nest_id) ids;
};

static bool parse_block(struct nest_parser *p, bool is_scan);

static bool parse_combines(struct nest_parser *p, uint32_t *out_n, struct nest_combine **out)
{
    VEC(struct nest_combine) combines = {0};
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
        vec_push(p->l->arena, &combines, c);
    } while (lex_char(p->l, ','));
    *out_n = combines.count;
    *out = combines.at;
    return true;
}

// "-> %1 : f32, ...": the numbers of the results; their types go to the combiners.
static bool parse_combine_results(struct nest_parser *p, uint32_t n,
                                  struct nest_combine *combines, uint32_t **out)
{
    struct lexer *l = p->l;
    VEC(uint32_t) numbers = {0};
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < nest_combine_results(combines[i].op); j++) {
            uint32_t number;
            jot_dtype dtype;
            if (!lex_expect(l, i || j ? "," : "->") || !nest_parse_number(p, &number) ||
                !lex_expect(l, ":") || !lex_dtype(l, &dtype))
                return false;
            if (j == 0)
                combines[i].dtype = dtype;
            else if (dtype != JOT_I64)
                return lex_fail(l, "a position is an i64");
            vec_push(l->arena, &numbers, number);
        }
    *out = numbers.at;
    return true;
}

// Closes the loop; what it yields has been read.
static bool close_loop(struct nest_parser *p, nest_id id, uint32_t n,
                       struct nest_combine *combines)
{
    uint32_t *numbers = NULL;
    if (!lex_expect(p->l, "}") || !parse_combine_results(p, n, combines, &numbers))
        return false;
    nest_close(&p->b, (int)n, combines);
    const struct nest_statement *s = &p->b.nest->statements.at[id];
    for (uint32_t i = 0; i < s->n_results; i++)
        if (!nest_parse_bind(p, numbers[i], s->result + i))
            return false;
    return true;
}

struct loop_head {
    VEC(nest_id) axes;
    VEC(struct lex_word) names;
};

static bool parse_axes(struct nest_parser *p, struct loop_head *h)
{
    if (!lex_is_letter(lex_peek(p->l)))
        return true;
    do {
        struct lex_word w;
        nest_id axis;
        if (!nest_parse_axis(p, &w, &axis))
            return false;
        vec_push(p->l->arena, &h->axes, axis);
        vec_push(p->l->arena, &h->names, w);
    } while (lex_char(p->l, ','));
    return true;
}

static bool parse_loop(struct nest_parser *p, enum nest_kind kind)
{
    struct lexer *l = p->l;
    struct loop_head h = {0};
    uint32_t open = p->open.count, n = 0;
    struct nest_combine *combines = NULL;
    unsigned level;
    if (!nest_parse_level(p, nest_level_names, NEST_LEVELS, &level) || !parse_axes(p, &h))
        return false;
    bool reverse = kind == NEST_SCAN && lex_keyword(l, "reverse");
    unsigned terms = 0;
    uint32_t turns = 0, at_once = 0;
    if ((lex_keyword(l, "turns") && !lex_u32(l, &turns)) ||
        (lex_keyword(l, "at_once") && !lex_u32(l, &at_once)))
        return false;
    if (kind == NEST_FOLD && lex_keyword(l, "terms") &&
        !nest_parse_level(p, nest_space_names, NEST_SPACES, &terms))
        return false;
    if (!nest_parse_where(p) || !lex_expect(l, "{"))
        return false;
    nest_id id = nest_open(&p->b, kind, (int)h.axes.count, h.axes.at);
    struct nest_statement *s = &p->b.nest->statements.at[id];
    s->reverse = reverse;
    s->level = (enum nest_level)level;
    s->turns = turns;
    s->at_once = at_once;
    s->terms = (enum nest_space)terms;
    for (uint32_t i = 0; i < h.axes.count; i++)
        nest_parse_open_axis(p, h.names.at[i], h.axes.at[i], id);
    if (!parse_block(p, kind == NEST_SCAN))
        return false;
    if (kind == NEST_FOLD && lex_keyword(l, "yield") && !parse_combines(p, &n, &combines))
        return false;
    p->open.count = open;
    return close_loop(p, id, n, combines);
}

static bool parse_scan_yield(struct nest_parser *p)
{
    uint32_t n = 0, *numbers = NULL;
    struct nest_combine *combines = NULL;
    if (!parse_combines(p, &n, &combines) || !parse_combine_results(p, n, combines, &numbers) ||
        !nest_parse_where(p))
        return false;
    nest_id first = nest_yield(&p->b, (int)n, combines);
    uint32_t count = vec_last(&p->b.nest->statements).n_results;
    for (uint32_t i = 0; i < count; i++)
        if (!nest_parse_bind(p, numbers[i], first + i))
            return false;
    return true;
}

static bool parse_values(struct nest_parser *p, struct value_list *out)
{
    do {
        nest_id v;
        if (!nest_parse_value(p, &v))
            return false;
        vec_push(p->l->arena, &out->ids, v);
    } while (lex_char(p->l, ','));
    return true;
}

// The end of a block: values it yields, if any, and the brace.
static bool parse_block_end(struct nest_parser *p, struct value_list *yields)
{
    if (lex_keyword(p->l, "yield") && !parse_values(p, yields))
        return false;
    return lex_expect(p->l, "}");
}

// "carry %1 = %0, ...".  The numbers are bound when the loop is open.
static bool parse_carries(struct nest_parser *p, struct value_list *numbers,
                          struct value_list *init)
{
    if (!lex_keyword(p->l, "carry"))
        return true;
    do {
        uint32_t number;
        nest_id v;
        if (!nest_parse_number(p, &number) || !lex_expect(p->l, "=") ||
            !nest_parse_value(p, &v))
            return false;
        vec_push(p->l->arena, &numbers->ids, number);
        vec_push(p->l->arena, &init->ids, v);
    } while (lex_char(p->l, ','));
    return true;
}

static bool bind_carries(struct nest_parser *p, const struct value_list *numbers, nest_id first)
{
    for (uint32_t i = 0; i < numbers->ids.count; i++)
        if (!nest_parse_bind(p, numbers->ids.at[i], first + i))
            return false;
    return true;
}

// "-> %5, ...": the results first, first + 1, ... of a loop or branch that is closed.
static bool parse_results(struct nest_parser *p, uint32_t n, nest_id first)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t number;
        if (!lex_expect(p->l, i ? "," : "->") || !nest_parse_number(p, &number) ||
            !nest_parse_bind(p, number, first + i))
            return false;
    }
    return true;
}

static bool parse_seq(struct nest_parser *p)
{
    struct lexer *l = p->l;
    struct value_list numbers = {0}, init = {0}, next = {0};
    struct lex_word name;
    nest_id axis;
    uint32_t open = p->open.count;
    unsigned level;
    if (!nest_parse_level(p, nest_level_names, NEST_LEVELS, &level) ||
        !nest_parse_axis(p, &name, &axis))
        return false;
    bool reverse = lex_keyword(l, "reverse");
    if (!parse_carries(p, &numbers, &init) || !nest_parse_where(p) || !lex_expect(l, "{"))
        return false;
    nest_id first = nest_seq_open(&p->b, axis, reverse, (int)init.ids.count, init.ids.at);
    vec_last(&p->b.nest->statements).level = (enum nest_level)level;
    nest_parse_open_axis(p, name, axis, p->b.nest->statements.count - 1);
    if (!bind_carries(p, &numbers, first) || !parse_block(p, false) ||
        !parse_block_end(p, &next))
        return false;
    p->open.count = open;
    first = nest_close_values(&p->b, (int)next.ids.count, next.ids.at);
    return parse_results(p, next.ids.count, first);
}

static bool parse_while(struct nest_parser *p)
{
    struct lexer *l = p->l;
    struct value_list numbers = {0}, init = {0}, test = {0}, next = {0};
    if (!parse_carries(p, &numbers, &init) || !nest_parse_where(p) || !lex_expect(l, "{"))
        return false;
    nest_id first = nest_while_open(&p->b, (int)init.ids.count, init.ids.at);
    if (!bind_carries(p, &numbers, first) || !parse_block(p, false) ||
        !parse_block_end(p, &test))
        return false;
    if (test.ids.count != 1)
        return lex_fail(l, "the test of a while yields one value");
    nest_while_do(&p->b, test.ids.at[0]);
    if (!lex_expect_keyword(l, "do") || !lex_expect(l, "{") || !parse_block(p, false) ||
        !parse_block_end(p, &next))
        return false;
    first = nest_close_values(&p->b, (int)next.ids.count, next.ids.at);
    return parse_results(p, next.ids.count, first);
}

static bool parse_if(struct nest_parser *p)
{
    struct lexer *l = p->l;
    struct value_list yields = {0}, others = {0};
    nest_id predicate;
    if (!nest_parse_value(p, &predicate) || !nest_parse_where(p) || !lex_expect(l, "{"))
        return false;
    nest_if_open(&p->b, predicate);
    if (!parse_block(p, false) || !parse_block_end(p, &yields))
        return false;
    bool both = lex_keyword(l, "else");
    if (!both && yields.ids.count)
        return lex_fail(l, "an if that yields has an else");
    if (both) {
        nest_if_else(&p->b, (int)yields.ids.count, yields.ids.at);
        if (!lex_expect(l, "{") || !parse_block(p, false) || !parse_block_end(p, &others))
            return false;
        if (others.ids.count != yields.ids.count)
            return lex_fail(l, "the branches of an if yield %u and %u values", yields.ids.count,
                            others.ids.count);
    }
    nest_id first = nest_close_values(&p->b, (int)others.ids.count, others.ids.at);
    return parse_results(p, yields.ids.count, first);
}

static bool parse_statement(struct nest_parser *p)
{
    struct lexer *l = p->l;
    static const struct {
        const char *word;
        enum nest_kind kind;
    } loops[] = {
        {"par", NEST_PAR}, {"map", NEST_MAP}, {"fold", NEST_FOLD}, {"scan", NEST_SCAN}};
    static const struct {
        const char *word;
        bool (*parse)(struct nest_parser *);
    } others[] = {{"put", nest_parse_put},
                  {"seq", parse_seq},
                  {"if", parse_if},
                  {"while", parse_while},
                  {"contract", nest_parse_contract}};
    if (*l->at == '%')
        return nest_parse_scalar(p);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (lex_keyword(l, others[i].word))
            return others[i].parse(p);
    for (size_t i = 0; i < sizeof loops / sizeof *loops; i++)
        if (lex_keyword(l, loops[i].word))
            return parse_loop(p, loops[i].kind);
    if (lex_keyword(l, "local"))
        return nest_parse_buffer(p, true);
    struct lex_word w = lex_peek_word(l);
    return lex_fail(l, "there is no statement '%.*s'", (int)(w.length < 40 ? w.length : 40),
                    w.at);
}

// Statements up to the closing brace or the yield that ends the block.
static bool parse_block(struct nest_parser *p, bool is_scan)
{
    if (++p->depth > MAX_DEPTH)
        return lex_fail(p->l, "blocks nest more than %d deep", MAX_DEPTH);
    while (lex_peek(p->l) != '}') {
        if (lex_equal(lex_peek_word(p->l), "yield")) {
            if (!is_scan)
                break;
            lex_keyword(p->l, "yield");
            if (!parse_scan_yield(p))
                return false;
        } else if (!parse_statement(p)) {
            return false;
        }
    }
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
