// SPDX-License-Identifier: Apache-2.0
// Reading kernels.  The parser knows names and the order of words; what a nest means is checked by
// nest_verify.  Bodies are read by recursion, to a fixed depth.
#include "passes/nest_lex.h"

#define MAX_DEPTH 200
#define MAX_OPERANDS 16

// An axis in scope and the loop it belongs to.
struct open_axis {
    struct lex_word name;
    nest_id axis, statement;
};

struct parser {
    struct lexer *l;
    struct nest_builder b;
    VEC(nest_id) values; // by number in the text
    VEC(struct open_axis) open;
    struct hash_table buffers;
    int depth;
};

struct value_list {
    VEC(nest_id) ids;
};

static bool parse_block(struct parser *p, bool is_scan);

static bool parse_number(struct parser *p, uint32_t *out)
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

static bool parse_value(struct parser *p, nest_id *out)
{
    uint32_t n;
    if (!parse_number(p, &n))
        return false;
    if (n >= p->values.count || p->values.at[n] == NEST_NONE)
        return lex_fail(p->l, "%%%u is used before it is defined", n);
    *out = p->values.at[n];
    return true;
}

// The number in the text stands for the value from here on.
static bool bind(struct parser *p, uint32_t number, nest_id value)
{
    while (p->values.count <= number)
        vec_push(p->l->arena, &p->values, NEST_NONE);
    if (p->values.at[number] != NEST_NONE)
        return lex_fail(p->l, "%%%u is defined twice", number);
    p->values.at[number] = value;
    return true;
}

static bool parse_where(struct parser *p)
{
    p->b.where = 0;
    return !lex_char(p->l, '!') || lex_u32(p->l, &p->b.where);
}

static bool find_axis(struct parser *p, struct lex_word w, struct open_axis *out)
{
    for (uint32_t i = p->open.count; i-- > 0;) {
        struct open_axis *o = &p->open.at[i];
        if (o->name.length == w.length && !memcmp(o->name.at, w.at, w.length)) {
            *out = *o;
            return true;
        }
    }
    return lex_fail(p->l, "there is no axis '%.*s' here", (int)(w.length < 40 ? w.length : 40),
                    w.at);
}

static bool parse_term(struct parser *p, struct nest_term *t, bool *out_constant)
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
        return parse_value(p, &t->id);
    }
    struct lex_word w;
    struct open_axis axis;
    if (!lex_identifier(l, &w) || !find_axis(p, w, &axis))
        return false;
    t->id = axis.axis;
    return true;
}

static bool parse_index(struct parser *p, struct nest_index *out)
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

static bool find_buffer(struct parser *p, struct lex_word w, nest_id *out)
{
    uint64_t h = hash_bytes(0, w.at, w.length);
    for (struct hash_probe q = hash_probe(&p->buffers, h); hash_next(&p->buffers, &q);)
        if (lex_equal(w, p->b.nest->buffers.at[q.id].name)) {
            *out = q.id;
            return true;
        }
    return false;
}

static bool parse_element(struct parser *p, nest_id *buffer, struct nest_index *index)
{
    struct lex_word w;
    if (!lex_identifier(p->l, &w))
        return false;
    if (!find_buffer(p, w, buffer))
        return lex_fail(p->l, "there is no buffer '%.*s'", (int)(w.length < 40 ? w.length : 40),
                        w.at);
    return lex_expect(p->l, "[") && parse_index(p, index) && lex_expect(p->l, "]");
}

static bool parse_buffer(struct parser *p, bool local)
{
    struct lexer *l = p->l;
    struct lex_word w;
    jot_dtype dtype;
    int64_t count;
    enum nest_role role = NEST_IN;
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
    if (!lex_dtype(l, &dtype) || !lex_expect(l, "[") || !lex_signed(l, &count) ||
        !lex_expect(l, "]"))
        return false;
    nest_id id;
    if (local) {
        struct lex_word space;
        if (!lex_expect(l, "@") || !lex_identifier(l, &space))
            return false;
        int s = 0;
        while (s <= NEST_MEMORY && !lex_equal(space, nest_space_names[s]))
            s++;
        if (s > NEST_MEMORY)
            return lex_fail(l, "expected a space such as point or tile");
        id = nest_local(&p->b, lex_copy(l, w), dtype, count, (enum nest_space)s);
    } else {
        id = nest_buffer(&p->b, lex_copy(l, w), dtype, count, role);
    }
    hash_insert(l->arena, &p->buffers, hash_bytes(0, w.at, w.length), id);
    return true;
}

// --- scalars

static bool parse_const(struct parser *p, uint64_t word[2], int *out_digits)
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
static bool parse_type(struct parser *p, jot_dtype *dtype)
{
    return lex_expect(p->l, ":") && lex_dtype(p->l, dtype) && parse_where(p);
}

static bool parse_const_statement(struct parser *p, nest_id *out)
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

static bool parse_load(struct parser *p, nest_id *out)
{
    nest_id buffer, guard = NEST_NONE;
    struct nest_index index;
    jot_dtype dtype;
    if (!parse_element(p, &buffer, &index))
        return false;
    if (lex_keyword(p->l, "if") && !parse_value(p, &guard))
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

static bool parse_index_statement(struct parser *p, nest_id *out)
{
    struct nest_index index;
    jot_dtype dtype;
    if (!parse_index(p, &index) || !parse_type(p, &dtype))
        return false;
    *out = nest_index_value(&p->b, index, dtype);
    return true;
}

static bool parse_op(struct parser *p, nest_id *out)
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
            if (!parse_value(p, &in[n++]))
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
static bool bind_results(struct parser *p, uint32_t n, const uint32_t *numbers)
{
    const struct nest_statement *s = &vec_last(&p->b.nest->statements);
    if (s->n_results != n)
        return lex_fail(p->l, "the op has %u results, not %u", s->n_results, n);
    for (uint32_t i = 0; i < n; i++)
        if (!bind(p, numbers[i], s->result + i))
            return false;
    return true;
}

static bool parse_scalar(struct parser *p)
{
    struct lexer *l = p->l;
    uint32_t numbers[4], n = 0;
    nest_id result;
    do {
        if (n == 4)
            return lex_fail(l, "an op has at most 4 results");
        if (!parse_number(p, &numbers[n++]))
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

// --- put, contract, barrier

// A guard stands on the line of its put; on the next line the word starts a statement.
static bool guard_follows(struct lexer *l)
{
    lex_skip(l);
    const char *c = l->at;
    while (c > l->text && (c[-1] == ' ' || c[-1] == '\t' || c[-1] == '\r'))
        c--;
    return c > l->text && c[-1] != '\n' && lex_keyword(l, "if");
}

static bool parse_loop_name(struct parser *p, nest_id *out)
{
    struct lex_word w;
    struct open_axis axis;
    if (!lex_identifier(p->l, &w) || !find_axis(p, w, &axis))
        return false;
    *out = axis.statement;
    return true;
}

static bool parse_put(struct parser *p)
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
        if (!parse_value(p, &c.value[c.n++]))
            return false;
    } while (lex_char(l, ','));
    if (guard_follows(l) && !parse_value(p, &guard))
        return false;
    if (op != IR_param &&
        (!lex_expect_keyword(l, "in") || !lex_expect(l, "@") || !parse_loop_name(p, &fold)))
        return false;
    if (op == IR_param && c.n != 1)
        return lex_fail(l, "a plain put takes 1 value");
    if (!parse_where(p))
        return false;
    c.op = (uint16_t)op;
    if (op == IR_param)
        nest_put(&p->b, buffer, index, c.value[0], guard);
    else
        nest_put_combine_guarded(&p->b, buffer, index, fold, &c, guard);
    return true;
}

// name < extent
static bool parse_axis(struct parser *p, struct lex_word *name, nest_id *out)
{
    int64_t extent;
    if (!lex_identifier(p->l, name) || !lex_expect(p->l, "<") || !lex_signed(p->l, &extent))
        return false;
    *out = nest_axis(&p->b, lex_copy(p->l, *name), extent);
    return true;
}

static void open_axis(struct parser *p, struct lex_word name, nest_id axis, nest_id statement)
{
    vec_push(p->l->arena, &p->open,
             (struct open_axis){.name = name, .axis = axis, .statement = statement});
}

// The axes of a contract come last in the text and are needed first, so its head is read twice.
static bool parse_contract(struct parser *p)
{
    struct lexer *l = p->l;
    const char *head = l->at;
    uint32_t open = p->open.count;
    VEC(nest_id) axes = {0};
    nest_id tile = NEST_NONE, buffer[3], axis;
    struct nest_index index[3];
    struct lex_word w;
    while (*l->at && *l->at != '\n' && !lex_equal(lex_peek_word(l), "for") &&
           !lex_equal(lex_peek_word(l), "over")) {
        struct lex_word skipped = lex_peek_word(l);
        l->at += skipped.length ? skipped.length : *l->at != 0;
    }
    if (lex_keyword(l, "for"))
        do {
            if (!parse_axis(p, &w, &axis))
                return false;
            vec_push(l->arena, &axes, axis);
            open_axis(p, w, axis, NEST_NONE);
        } while (lex_char(l, ','));
    if (!lex_expect_keyword(l, "over") || !lex_identifier(l, &w))
        return false;
    l->at = w.at;
    struct open_axis loop;
    const char *after = w.at + w.length;
    while (*after == ' ')
        after++;
    if (*after == '<') {
        if (!parse_axis(p, &w, &axis))
            return false;
        vec_push(l->arena, &axes, axis);
        open_axis(p, w, axis, NEST_NONE);
    } else {
        lex_identifier(l, &w);
        if (!find_axis(p, w, &loop))
            return false;
        tile = loop.statement;
    }
    if (!parse_where(p))
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
    nest_contract(&p->b, buffer, index, (int)axes.count, axes.at, tile);
    return true;
}

static bool parse_barrier(struct parser *p)
{
    struct lex_word w;
    if (!lex_identifier(p->l, &w))
        return false;
    for (int s = 0; s <= NEST_MEMORY; s++)
        if (lex_equal(w, nest_space_names[s])) {
            if (!parse_where(p))
                return false;
            nest_barrier(&p->b, (enum nest_space)s);
            return true;
        }
    return lex_fail(p->l, "expected a space such as point or tile");
}

// --- loops

static bool parse_combines(struct parser *p, uint32_t *out_n, struct nest_combine **out)
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
            if (!parse_value(p, &c.value[c.n++]))
                return false;
        }
        vec_push(p->l->arena, &combines, c);
    } while (lex_char(p->l, ','));
    *out_n = combines.count;
    *out = combines.at;
    return true;
}

// "-> %1 : f32, ...": the numbers of the results; their types go to the combiners.
static bool parse_combine_results(struct parser *p, uint32_t n, struct nest_combine *combines,
                                  uint32_t **out)
{
    struct lexer *l = p->l;
    VEC(uint32_t) numbers = {0};
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < nest_combine_results(combines[i].op); j++) {
            uint32_t number;
            jot_dtype dtype;
            if (!lex_expect(l, i || j ? "," : "->") || !parse_number(p, &number) ||
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
static bool close_loop(struct parser *p, nest_id id, uint32_t n, struct nest_combine *combines)
{
    uint32_t *numbers = NULL;
    if (!lex_expect(p->l, "}") || !parse_combine_results(p, n, combines, &numbers))
        return false;
    nest_close(&p->b, (int)n, combines);
    const struct nest_statement *s = &p->b.nest->statements.at[id];
    for (uint32_t i = 0; i < s->n_results; i++)
        if (!bind(p, numbers[i], s->result + i))
            return false;
    return true;
}

struct loop_head {
    VEC(nest_id) axes;
    VEC(struct lex_word) names;
};

static bool parse_axes(struct parser *p, struct loop_head *h)
{
    if (!lex_is_letter(lex_peek(p->l)))
        return true;
    do {
        struct lex_word w;
        nest_id axis;
        if (!parse_axis(p, &w, &axis))
            return false;
        vec_push(p->l->arena, &h->axes, axis);
        vec_push(p->l->arena, &h->names, w);
    } while (lex_char(p->l, ','));
    return true;
}

static bool parse_tile(struct parser *p, struct loop_head *h, int64_t *points)
{
    struct lex_word w;
    if (!lex_expect_keyword(p->l, "by") || !lex_signed(p->l, points))
        return false;
    if (!lex_keyword(p->l, "at"))
        return true;
    if (!lex_identifier(p->l, &w))
        return false;
    vec_push(p->l->arena, &h->axes, nest_axis(&p->b, lex_copy(p->l, w), *points));
    vec_push(p->l->arena, &h->names, w);
    return true;
}

static bool parse_loop(struct parser *p, enum nest_kind kind)
{
    struct lexer *l = p->l;
    struct loop_head h = {0};
    uint32_t open = p->open.count, n = 0;
    struct nest_combine *combines = NULL;
    int64_t points = 0;
    if (!parse_axes(p, &h) || (kind == NEST_TILE && !parse_tile(p, &h, &points)))
        return false;
    bool reverse = kind == NEST_SCAN && lex_keyword(l, "reverse");
    if (!parse_where(p) || !lex_expect(l, "{"))
        return false;
    nest_id id = nest_open(&p->b, kind, (int)h.axes.count, h.axes.at);
    p->b.nest->statements.at[id].reverse = reverse;
    p->b.nest->statements.at[id].tile = points;
    for (uint32_t i = 0; i < h.axes.count; i++)
        open_axis(p, h.names.at[i], h.axes.at[i], id);
    if (!parse_block(p, kind == NEST_SCAN))
        return false;
    if (kind == NEST_FOLD && lex_keyword(l, "yield") && !parse_combines(p, &n, &combines))
        return false;
    p->open.count = open;
    return close_loop(p, id, n, combines);
}

static bool parse_scan_yield(struct parser *p)
{
    uint32_t n = 0, *numbers = NULL;
    struct nest_combine *combines = NULL;
    if (!parse_combines(p, &n, &combines) || !parse_combine_results(p, n, combines, &numbers) ||
        !parse_where(p))
        return false;
    nest_id first = nest_yield(&p->b, (int)n, combines);
    uint32_t count = vec_last(&p->b.nest->statements).n_results;
    for (uint32_t i = 0; i < count; i++)
        if (!bind(p, numbers[i], first + i))
            return false;
    return true;
}

static bool parse_values(struct parser *p, struct value_list *out)
{
    do {
        nest_id v;
        if (!parse_value(p, &v))
            return false;
        vec_push(p->l->arena, &out->ids, v);
    } while (lex_char(p->l, ','));
    return true;
}

// The end of a block: values it yields, if any, and the brace.
static bool parse_block_end(struct parser *p, struct value_list *yields)
{
    if (lex_keyword(p->l, "yield") && !parse_values(p, yields))
        return false;
    return lex_expect(p->l, "}");
}

// "carry %1 = %0, ...".  The numbers are bound when the loop is open.
static bool parse_carries(struct parser *p, struct value_list *numbers, struct value_list *init)
{
    if (!lex_keyword(p->l, "carry"))
        return true;
    do {
        uint32_t number;
        nest_id v;
        if (!parse_number(p, &number) || !lex_expect(p->l, "=") || !parse_value(p, &v))
            return false;
        vec_push(p->l->arena, &numbers->ids, number);
        vec_push(p->l->arena, &init->ids, v);
    } while (lex_char(p->l, ','));
    return true;
}

static bool bind_carries(struct parser *p, const struct value_list *numbers, nest_id first)
{
    for (uint32_t i = 0; i < numbers->ids.count; i++)
        if (!bind(p, numbers->ids.at[i], first + i))
            return false;
    return true;
}

// "-> %5, ...": the results first, first + 1, ... of a loop or branch that is closed.
static bool parse_results(struct parser *p, uint32_t n, nest_id first)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t number;
        if (!lex_expect(p->l, i ? "," : "->") || !parse_number(p, &number) ||
            !bind(p, number, first + i))
            return false;
    }
    return true;
}

static bool parse_seq(struct parser *p)
{
    struct lexer *l = p->l;
    struct value_list numbers = {0}, init = {0}, next = {0};
    struct lex_word name;
    nest_id axis;
    uint32_t open = p->open.count;
    if (!parse_axis(p, &name, &axis))
        return false;
    bool reverse = lex_keyword(l, "reverse");
    if (!parse_carries(p, &numbers, &init) || !parse_where(p) || !lex_expect(l, "{"))
        return false;
    nest_id first = nest_seq_open(&p->b, axis, reverse, (int)init.ids.count, init.ids.at);
    open_axis(p, name, axis, p->b.nest->statements.count - 1);
    if (!bind_carries(p, &numbers, first) || !parse_block(p, false) ||
        !parse_block_end(p, &next))
        return false;
    p->open.count = open;
    first = nest_seq_close(&p->b, (int)next.ids.count, next.ids.at);
    return parse_results(p, next.ids.count, first);
}

static bool parse_while(struct parser *p)
{
    struct lexer *l = p->l;
    struct value_list numbers = {0}, init = {0}, test = {0}, next = {0};
    if (!parse_carries(p, &numbers, &init) || !parse_where(p) || !lex_expect(l, "{"))
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
    first = nest_while_close(&p->b, (int)next.ids.count, next.ids.at);
    return parse_results(p, next.ids.count, first);
}

static bool parse_if(struct parser *p)
{
    struct lexer *l = p->l;
    struct value_list yields = {0}, others = {0};
    nest_id predicate;
    if (!parse_value(p, &predicate) || !parse_where(p) || !lex_expect(l, "{"))
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
    nest_id first = nest_if_close(&p->b, (int)others.ids.count, others.ids.at);
    return parse_results(p, yields.ids.count, first);
}

static bool parse_statement(struct parser *p)
{
    struct lexer *l = p->l;
    static const struct {
        const char *word;
        enum nest_kind kind;
    } loops[] = {{"par", NEST_PAR},
                 {"map", NEST_MAP},
                 {"fold", NEST_FOLD},
                 {"scan", NEST_SCAN},
                 {"tile", NEST_TILE}};
    static const struct {
        const char *word;
        bool (*parse)(struct parser *);
    } others[] = {
        {"put", parse_put},     {"seq", parse_seq},           {"if", parse_if},
        {"while", parse_while}, {"contract", parse_contract}, {"barrier", parse_barrier}};
    if (*l->at == '%')
        return parse_scalar(p);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (lex_keyword(l, others[i].word))
            return others[i].parse(p);
    for (size_t i = 0; i < sizeof loops / sizeof *loops; i++)
        if (lex_keyword(l, loops[i].word))
            return parse_loop(p, loops[i].kind);
    if (lex_keyword(l, "local"))
        return parse_buffer(p, true);
    struct lex_word w = lex_peek_word(l);
    return lex_fail(l, "there is no statement '%.*s'", (int)(w.length < 40 ? w.length : 40),
                    w.at);
}

// Statements up to the closing brace or the yield that ends the block.
static bool parse_block(struct parser *p, bool is_scan)
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

bool nest_parse_kernel(struct lexer *l, struct nest **out)
{
    struct parser p = {.l = l};
    struct lex_word name;
    if (!lex_expect_keyword(l, "kernel") || !lex_identifier(l, &name) || !lex_expect(l, "("))
        return false;
    p.b = nest_builder_make(l->arena, lex_copy(l, name));
    if (lex_peek(l) != ')')
        do
            if (!parse_buffer(&p, false))
                return false;
        while (lex_char(l, ','));
    if (!lex_expect(l, ")") || !lex_expect(l, "{") || !parse_block(&p, false) ||
        !lex_expect(l, "}"))
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
