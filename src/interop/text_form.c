// SPDX-License-Identifier: Apache-2.0
// The forms in which StableHLO prints operations: those of text_forms.def, while and reduce.
#include "interop/text_forms.h"
#include "interop/text_read.h"

#include <stdio.h>

// ---- forms of text_forms.def

static struct text_piece form_name(const char **form)
{
    struct text_piece name = {.at = *form};
    while ((**form >= 'a' && **form <= 'z') || **form == '_')
        ++*form;
    name.n = (size_t)(*form - name.at);
    return name;
}

static const struct mlir_attr *text_of(struct text_reader *r, enum mlir_attr_kind kind,
                                       const char *text)
{
    return text_attr_of(r, (struct mlir_attr){.kind = kind, .n = strlen(text), .text = text});
}

static const struct mlir_attr *read_word(struct text_reader *r)
{
    if (text_sees(r, "#"))
        return text_attr(r);
    struct text_piece w = text_word(r);
    if (!w.n)
        text_expected(r, "a word");
    return text_of(r, MLIR_ENUM, text_interned(r, w));
}

static const struct mlir_attr *read_words(struct text_reader *r)
{
    VEC(const struct mlir_attr *) words = {0};
    text_expect(r, "[");
    for (uint32_t n = 0; text_more(r, &n, "]");)
        vec_push(r->arena, &words, read_word(r));
    return text_attr_of(
        r, (struct mlir_attr){.kind = MLIR_ARRAY, .n = words.count, .parts = words.at});
}

static const struct mlir_attr *read_string(struct text_reader *r)
{
    struct mlir_attr a = {.kind = MLIR_STRING};
    a.text = text_string(r, &a.n);
    return text_attr_of(r, a);
}

static const struct mlir_attr *read_kind(struct text_reader *r, char letter)
{
    switch (letter) {
    case 'I':
        return text_numbers(r);
    case 'e':
        return read_word(r);
    case 'a':
        return read_words(r);
    case 's': // behind which there may be a type that is not its own
        return read_string(r);
    default:
        return text_attr(r);
    }
}

// [start:limit:stride, ...]
static void read_ranges(struct text_reader *r, struct text_statement *s)
{
    static const char *const names[] = {"start_indices", "limit_indices", "strides"};
    VEC(int64_t) numbers[3] = {{0}};
    text_expect(r, "[");
    for (uint32_t n = 0; text_more(r, &n, "]");) {
        vec_push(r->arena, &numbers[0], text_integer(r));
        text_expect(r, ":");
        vec_push(r->arena, &numbers[1], text_integer(r));
        vec_push(r->arena, &numbers[2], text_accept(r, ":") ? text_integer(r) : 1);
    }
    for (int i = 0; i < 3; i++)
        text_add(r, &s->attrs, names[i],
                 text_attr_of(r, (struct mlir_attr){.kind = MLIR_INTS,
                                                    .n = numbers[i].count,
                                                    .numbers = numbers[i].at}));
}

// e5m10
static void read_format(struct text_reader *r, struct text_statement *s)
{
    const char *where = (text_peek(r), r->at);
    struct text_piece w = text_word(r);
    int64_t bits[2] = {0};
    int k = -1;
    for (size_t i = 0; i < w.n; i++) {
        char c = w.at[i];
        if ((k < 0 && c == 'e') || (k == 0 && c == 'm'))
            k++;
        else if (k >= 0 && c >= '0' && c <= '9' && bits[k] < 1000)
            bits[k] = 10 * bits[k] + (c - '0');
        else
            k = 2;
        if (k == 2)
            break;
    }
    if (k != 1)
        text_fail(r, where, "the format of a float, as e5m10, should be here");
    const struct mlir_type *type = text_scalar(r, MLIR_I32);
    for (int i = 0; i < 2; i++)
        text_add(r, &s->attrs, i ? "mantissa_bits" : "exponent_bits",
                 text_attr_of(r, (struct mlir_attr){
                                     .kind = MLIR_INT, .type = type, .integer = bits[i]}));
}

// <lhs_precision_type = tf32, ...>
static void read_algorithm(struct text_reader *r, struct text_statement *s)
{
    text_expect(r, "<");
    for (uint32_t n = 0; text_more(r, &n, ">");) {
        struct text_piece w = text_word(r);
        if (!w.n)
            text_expected(r, "a word");
        text_expect(r, "=");
        text_add(r, &s->attrs, text_interned(r, w), text_attr(r));
    }
}

// stride = [1, 2], pad = [[0, 1], [0, 1]], ...
static void read_window(struct text_reader *r, struct text_statement *s)
{
    while (!text_sees(r, "}")) {
        const char *where = (text_peek(r), r->at);
        struct text_piece w = text_word(r);
        int i = 0;
        while (i < FORM_WINDOWS && !text_is(w, form_windows[i].word))
            i++;
        if (i == FORM_WINDOWS)
            text_fail(r, where,
                      "stride, pad, lhs_dilate, rhs_dilate or reverse should be here");
        text_expect(r, "=");
        text_add(r, &s->attrs, form_windows[i].name, text_numbers(r));
        if (!text_accept(r, ","))
            break;
    }
}

// in_shardings=[...] out_shardings=[...] manual_axes={"x"} (%a: tensor<f32>) { ... }
static void read_manual(struct text_reader *r, struct text_statement *s)
{
    static const char *const names[] = {"in_shardings", "out_shardings", "manual_axes"};
    for (int i = 0; i < 3; i++) {
        if (!text_accept_word(r, names[i]))
            text_expected(r, names[i]);
        text_expect(r, "=");
        struct text_piece body = text_balanced(r);
        struct strbuf text = strbuf_make(r->arena);
        strbuf_add(&text, i < 2 ? "#sdy.sharding_per_value<" : "#sdy<manual_axes");
        strbuf_add_bytes(&text, body.at, body.n);
        strbuf_add(&text, ">");
        text_add(r, &s->attrs, names[i], text_of(r, MLIR_OPAQUE, text.text));
    }
    VEC(struct mlir_value *) args = {0};
    uint32_t scope = text_open_scope(r);
    text_expect(r, "(");
    for (uint32_t n = 0; text_more(r, &n, ")");) {
        struct text_piece name = text_value_name(r);
        text_expect(r, ":");
        vec_push(r->arena, &args, text_argument(r, name, text_type(r)));
        text_optional_location(r);
    }
    vec_push(r->arena, &s->regions, text_block(r, args.at, args.count));
    text_close_scope(r, scope);
}

static void read_special(struct text_reader *r, struct text_statement *s,
                         struct text_piece name)
{
    if (text_is(name, "ranges")) {
        read_ranges(r, s);
    } else if (text_is(name, "format")) {
        read_format(r, s);
    } else if (text_is(name, "algorithm")) {
        read_algorithm(r, s);
    } else if (text_is(name, "axes")) {
        text_conv_numbers(r, &s->attrs);
    } else if (text_is(name, "window")) {
        read_window(r, s);
    } else if (text_is(name, "manual")) {
        read_manual(r, s);
    } else if (text_is(name, "sharding")) {
        struct text_piece body = text_balanced(r);
        struct strbuf text = strbuf_make(r->arena);
        strbuf_add(&text, "#sdy.sharding");
        strbuf_add_bytes(&text, body.at, body.n);
        text_add(r, &s->attrs, "sharding", text_of(r, MLIR_OPAQUE, text.text));
    }
}

// The character, or word, at the form, which moves behind it.
static bool accept_literal(struct text_reader *r, const char **form)
{
    char literal[32];
    struct text_piece word = form_name(form);
    if (!word.n)
        ++*form;
    size_t n = word.n ? word.n : 1;
    memcpy(literal, word.at, n);
    literal[n] = 0;
    return word.n ? text_accept_word(r, literal) : text_accept(r, literal);
}

// Whether the text has the words with which what stands in ?< > begins; the text stays.
static bool sees_group(struct text_reader *r, const char *form)
{
    struct text_mark start = text_mark(r);
    bool sees = true;
    while (sees && !strchr("$%!@", *form)) {
        if (*form == ' ')
            form++;
        else
            sees = accept_literal(r, &form);
    }
    text_rewind(r, start);
    return sees;
}

static void read_operands(struct text_reader *r, struct text_statement *s)
{
    struct text_mark comma = text_mark(r);
    for (bool is_first = true; is_first || text_accept(r, ","); is_first = false) {
        if (!text_sees(r, "%")) {
            text_rewind(r, comma);
            return;
        }
        text_operand(r, s);
        comma = text_mark(r);
    }
}

static void read_literal(struct text_reader *r, const char **form)
{
    const char *start = *form;
    if (!accept_literal(r, form)) {
        char what[40];
        snprintf(what, sizeof what, "'%.*s'", (int)(*form - start), start);
        text_expected(r, what);
    }
}

static void read_form(struct text_reader *r, struct text_statement *s, const char *form)
{
    while (*form) {
        const char *at = form;
        if (strchr("$@!", *at)) {
            form++;
            struct text_piece name = form_name(&form);
            char letter = form_letter(s->op->row, name.at, name.n);
            if (*at == '!')
                read_special(r, s, name);
            else if (*at == '$')
                text_add(r, &s->attrs, text_interned(r, name), read_kind(r, letter));
            else
                text_add(r, &s->attrs, text_interned(r, name),
                         text_of(r, letter == 's' ? MLIR_STRING : MLIR_SYMBOL, text_symbol(r)));
        } else if (*at == '%' && at[1] == '*') {
            form += 2;
            read_operands(r, s);
        } else if (*at == '%') {
            form++;
            text_operand(r, s);
        } else if (*at == '?') {
            form = sees_group(r, at + 2) ? at + 2 : strchr(at, '>') + 1;
        } else if (*at == ' ' || *at == '>') {
            form++;
        } else {
            read_literal(r, &form);
        }
    }
}

// ---- operations with forms of their own

// {attributes} value, or () {value = ...} : () -> type
static void read_constant(struct text_reader *r, struct text_statement *s)
{
    bool is_old = text_accept(r, "(");
    if (is_old)
        text_expect(r, ")");
    if (text_sees(r, "{"))
        text_attrs(r, &s->attrs);
    if (is_old) {
        text_types(r, s);
        return;
    }
    const char *where = (text_peek(r), r->at);
    const struct mlir_attr *value = text_attr(r);
    if (value->kind != MLIR_DENSE)
        text_fail(r, where, "an array, as dense<1.0> : tensor<f32>, should be here");
    text_add(r, &s->attrs, "value", value);
    vec_push(r->arena, &s->results, value->type);
    s->has_results = true;
}

// (%a = %x, ...) : types cond { ... } do { ... }
static void read_while(struct text_reader *r, struct text_statement *s)
{
    static const char *const words[] = {"cond", "do"};
    VEC(struct text_piece) names = {0};
    text_expect(r, "(");
    for (uint32_t n = 0; text_more(r, &n, ")");) {
        vec_push(r->arena, &names, text_value_name(r));
        text_expect(r, "=");
        text_operand(r, s);
    }
    if (text_accept(r, ":"))
        do {
            const struct mlir_type *t = text_type(r);
            vec_push(r->arena, &s->types, t);
            vec_push(r->arena, &s->results, t);
        } while (text_accept(r, ","));
    s->has_results = true;
    if (s->types.count != s->operands.count)
        text_fail(r, s->where, "%s has %u operands and types for %u", s->op->name,
                  s->operands.count, s->types.count);
    if (text_accept_word(r, "attributes"))
        text_attrs(r, &s->attrs);
    for (int i = 0; i < 2; i++) {
        struct mlir_value **args = arena_array(r->arena, struct mlir_value *, names.count + 1);
        text_expect_word(r, words[i]);
        uint32_t scope = text_open_scope(r);
        for (uint32_t k = 0; k < names.count; k++)
            args[k] = text_argument(r, names.at[k], s->types.at[k]);
        vec_push(r->arena, &s->regions, text_block(r, args, names.count));
        text_close_scope(r, scope);
    }
}

// The region of `applies stablehlo.add`: that operation of the two arguments.
static struct mlir_block applied(struct text_reader *r, const struct text_statement *s,
                                 struct text_piece name, const struct mlir_type *t)
{
    const struct mlir_row *row = text_intern(r, name)->row;
    if (!row || row->form != MLIR_FORM_SAME)
        text_fail(r, name.at, "%.*s is not an operation that reduce applies", (int)name.n,
                  name.at);
    struct mlir_value **args = arena_array(r->arena, struct mlir_value *, 3);
    for (int i = 0; i < 3; i++)
        args[i] = text_value(r, t);
    struct mlir_op **ops = arena_array(r->arena, struct mlir_op *, 2);
    struct mlir_op *op = arena_new(r->arena, struct mlir_op);
    struct mlir_op *end = arena_new(r->arena, struct mlir_op);
    *op = (struct mlir_op){.row = row,
                           .name = text_interned(r, name),
                           .n_operands = 2,
                           .n_results = 1,
                           .operands = args,
                           .results = args + 2,
                           .place = s->op->place};
    *end = (struct mlir_op){.row = &mlir_rows[MLIR_OP_stablehlo_return],
                            .name = "stablehlo.return",
                            .n_operands = 1,
                            .operands = args + 2,
                            .place = s->op->place};
    ops[0] = op;
    ops[1] = end;
    return (struct mlir_block){.n_args = 2, .n_ops = 2, .args = args, .ops = ops};
}

// reducer(%a: type, %b: type) (...) { ... }: the first of each pair, then the second of each.
static struct mlir_block read_reducer(struct text_reader *r, uint32_t pairs)
{
    struct named {
        struct text_piece name;
        const struct mlir_type *type;
    } *named = arena_array(r->arena, struct named, 2 * (size_t)pairs);
    struct mlir_value **args = arena_array(r->arena, struct mlir_value *, 2 * (size_t)pairs);
    text_expect_word(r, "reducer");
    for (uint32_t i = 0; i < pairs; i++) {
        text_expect(r, "(");
        for (uint32_t k = 0; k < 2; k++) {
            struct named *n = &named[k * pairs + i];
            if (k)
                text_expect(r, ",");
            n->name = text_value_name(r);
            text_expect(r, ":");
            n->type = text_type(r);
            text_optional_location(r);
        }
        text_expect(r, ")");
    }
    uint32_t scope = text_open_scope(r);
    for (uint32_t i = 0; i < 2 * pairs; i++)
        args[i] = text_argument(r, named[i].name, named[i].type);
    struct mlir_block block = text_block(r, args, 2 * pairs);
    text_close_scope(r, scope);
    return block;
}

// (%x init: %a), ... applies op across dimensions = [0] : types
static void read_reduce(struct text_reader *r, struct text_statement *s)
{
    struct text_statement inits = {0};
    do {
        text_expect(r, "(");
        text_operand(r, s);
        text_expect_word(r, "init");
        text_expect(r, ":");
        text_operand(r, &inits);
        text_expect(r, ")");
    } while (text_accept(r, ","));
    uint32_t pairs = s->operands.count;
    for (uint32_t i = 0; i < pairs; i++) {
        vec_push(r->arena, &s->operands, inits.operands.at[i]);
        vec_push(r->arena, &s->operand_places, inits.operand_places.at[i]);
    }
    bool applies = text_accept_word(r, "applies");
    const char *where = (text_peek(r), r->at);
    struct text_piece name = {.at = where};
    if (applies)
        name = text_word(r);
    if (applies && pairs != 1)
        text_fail(r, where, "of several arrays a reduction has a reducer");
    text_expect_word(r, "across");
    text_expect_word(r, "dimensions");
    text_expect(r, "=");
    text_add(r, &s->attrs, "dimensions", text_numbers(r));
    if (text_sees(r, "{"))
        text_attrs(r, &s->attrs);
    text_types(r, s);
    vec_push(r->arena, &s->regions,
             applies ? applied(r, s, name, s->operands.at[1]->type) : read_reducer(r, pairs));
}

// (%x, ...) inits (%a, ...) dimension=0 attributes {...} { ... } : types
static void read_scan(struct text_reader *r, struct text_statement *s)
{
    static const char *const names[] = {"operandSegmentSizes", "resultSegmentSizes"};
    text_expect(r, "(");
    read_operands(r, s);
    text_expect(r, ")");
    int64_t inputs = s->operands.count;
    text_expect_word(r, "inits");
    text_expect(r, "(");
    read_operands(r, s);
    text_expect(r, ")");
    text_expect_word(r, "dimension");
    text_expect(r, "=");
    text_add(r, &s->attrs, "dimension", read_kind(r, 'i'));
    if (text_accept_word(r, "attributes"))
        text_attrs(r, &s->attrs);
    vec_push(r->arena, &s->regions, text_region(r));
    text_types(r, s);
    int64_t carries = s->operands.count - inputs,
            counts[] = {inputs, s->results.count - carries};
    for (int i = 0; i < 2; i++) {
        int64_t *sizes = arena_array(r->arena, int64_t, 2);
        sizes[0] = counts[i];
        sizes[1] = carries;
        text_add(
            r, &s->attrs, names[i],
            text_attr_of(r, (struct mlir_attr){.kind = MLIR_INTS, .n = 2, .numbers = sizes}));
    }
}

void text_pretty(struct text_reader *r, struct text_statement *s)
{
    const struct mlir_row *row = s->op->row;
    const char *form = row ? form_of(row) : "%*";
    switch (row ? row->code : MLIR_N_CODES) {
    case MLIR_OP_stablehlo_constant:
    case MLIR_OP_chlo_constant:
        read_constant(r, s);
        return;
    case MLIR_OP_stablehlo_while:
        read_while(r, s);
        return;
    case MLIR_OP_stablehlo_reduce:
        read_reduce(r, s);
        return;
    case MLIR_OP_chlo_scan:
        read_scan(r, s);
        return;
    default:
        break;
    }
    if (!form)
        text_fail(r, s->where, "%s is read in its general form alone, \"%s\"(...)", s->op->name,
                  s->op->name);
    read_form(r, s, form);
    if (row && row->n_regions < 0 && text_accept(r, "("))
        for (uint32_t n = 0; text_more(r, &n, ")");)
            vec_push(r->arena, &s->regions, text_region(r));
    if (text_sees(r, "{"))
        text_attrs(r, &s->attrs);
    // Of nothing there are no types, and checks may do without.
    enum form_types types = row ? form_types(row) : FORM_FUNCTION;
    bool may_do_without = (types == FORM_TYPES && s->operands.count == 0) || types == FORM_NONE;
    if (may_do_without && text_accept(r, "("))
        text_expect(r, ")");
    if (!may_do_without || text_sees(r, ":"))
        text_types(r, s);
}
