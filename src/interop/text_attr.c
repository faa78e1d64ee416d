// SPDX-License-Identifier: Apache-2.0
// Attributes of a program of text.
#include "interop/numbers.h"
#include "interop/text_read.h"

#include <math.h>

const struct mlir_attr *text_attr_of(struct text_reader *r, struct mlir_attr a)
{
    return arena_copy(r->arena, &a, sizeof a);
}

void text_add(struct text_reader *r, struct text_list *l, const char *name,
              const struct mlir_attr *a)
{
    vec_push(r->arena, l, (struct mlir_named){name, a});
}

static void text_add_int(struct text_reader *r, struct text_list *l, const char *name,
                         int64_t x)
{
    const struct mlir_type *type = text_scalar(r, MLIR_I64);
    text_add(r, l, name,
             text_attr_of(r, (struct mlir_attr){.kind = MLIR_INT, .type = type, .integer = x}));
}

// ---- lists

// Numbers from `first` of the scratch on.
static const struct mlir_attr *take_numbers(struct text_reader *r, uint32_t first,
                                            const struct mlir_type *type)
{
    size_t n = r->numbers.count - first;
    const int64_t *numbers = arena_copy(r->arena, r->numbers.at + first, n * sizeof *numbers);
    r->numbers.count = first;
    return text_attr_of(
        r, (struct mlir_attr){.kind = MLIR_INTS, .type = type, .n = n, .numbers = numbers});
}

// Lists in a list one after the other.
static void read_numbers(struct text_reader *r)
{
    text_enter(r);
    text_expect(r, "[");
    for (uint32_t n = 0; text_more(r, &n, "]");) {
        if (text_sees(r, "["))
            read_numbers(r);
        else
            vec_push(r->arena, &r->numbers, text_integer(r));
    }
    text_leave(r);
}

static const struct mlir_attr *read_real(struct text_reader *r, const struct mlir_type *type);

// array<i64: 1, 2>, from behind the word; of floats it is an array.
static const struct mlir_attr *read_array(struct text_reader *r)
{
    text_expect(r, "<");
    const char *where = (text_peek(r), r->at);
    const struct mlir_type *type = text_type(r);
    char kind = type->kind == MLIR_SCALAR ? mlir_elements[type->element].kind : '-';
    if (kind == '-' || kind == 'c')
        text_fail(r, where, "an array is of integers, bools or floats");
    uint32_t first = r->numbers.count;
    VEC(const struct mlir_attr *) parts = {0};
    bool has_items = text_accept(r, ":");
    for (uint32_t n = 0; has_items && text_more(r, &n, ">");) {
        if (kind == 'f')
            vec_push(r->arena, &parts, read_real(r, type));
        else
            vec_push(r->arena, &r->numbers, text_integer(r));
    }
    if (!has_items)
        text_expect(r, ">");
    if (kind != 'f')
        return take_numbers(r, first, type);
    return text_attr_of(
        r, (struct mlir_attr){.kind = MLIR_ARRAY, .n = parts.count, .parts = parts.at});
}

const struct mlir_attr *text_numbers(struct text_reader *r)
{
    if (text_accept_word(r, "array"))
        return read_array(r);
    uint32_t first = r->numbers.count;
    read_numbers(r);
    return take_numbers(r, first, NULL);
}

static const struct mlir_attr *read_list(struct text_reader *r)
{
    VEC(const struct mlir_attr *) parts = {0};
    text_expect(r, "[");
    for (uint32_t n = 0; text_more(r, &n, "]");)
        vec_push(r->arena, &parts, text_attr(r));
    return text_attr_of(
        r, (struct mlir_attr){.kind = MLIR_ARRAY, .n = parts.count, .parts = parts.at});
}

// name = value, name
static void read_entries(struct text_reader *r, struct text_list *out, const char *close)
{
    for (uint32_t n = 0; text_more(r, &n, close);) {
        struct text_piece word = text_peek(r) == '"' ? text_quoted_name(r) : text_word(r);
        if (!word.n)
            text_expected(r, "the name of an attribute");
        const char *name = text_interned(r, word);
        text_add(r, out, name,
                 text_accept(r, "=") ? text_attr(r)
                                     : text_attr_of(r, (struct mlir_attr){.kind = MLIR_UNIT}));
    }
}

void text_attrs(struct text_reader *r, struct text_list *out)
{
    text_expect(r, "{");
    read_entries(r, out, "}");
}

static const struct mlir_attr *dictionary(struct text_reader *r, const struct text_list *l)
{
    return text_attr_of(
        r, (struct mlir_attr){.kind = MLIR_DICTIONARY, .n = l->count, .named = l->at});
}

const struct mlir_attr *text_dictionary(struct text_reader *r)
{
    struct text_list l = {0};
    text_attrs(r, &l);
    return dictionary(r, &l);
}

// ---- of dialects

// [b, f, 0, 1]: the positions of the two letters, and of the numbers in their order.
static void read_axes(struct text_reader *r, struct text_list *out, char one,
                      const char *one_name, char two, const char *two_name,
                      const char *spatial_name)
{
    int64_t positions[2] = {-1, -1};
    VEC(int64_t) spatial = {0};
    const char *where = (text_peek(r), r->at);
    int64_t axes = 0, numbered = 0;
    text_expect(r, "[");
    for (uint32_t n = 0; text_more(r, &n, "]"); axes++) {
        char c = text_peek(r);
        if (c == one || c == two) {
            r->at++;
            if (positions[c == two] >= 0)
                text_fail(r, r->at - 1, "'%c' is there twice", c);
            positions[c == two] = axes;
        } else {
            const char *at = r->at;
            int64_t i = c >= '0' && c <= '9' ? text_integer(r) : -1;
            if (i < 0 || i > MLIR_MAX_DEPTH)
                text_fail(r, at, "'%c', '%c' or the number of a spatial axis should be here",
                          one, two);
            while (spatial.count <= i)
                vec_push(r->arena, &spatial, -1);
            if (spatial.at[i] >= 0)
                text_fail(r, at, "the spatial axis %lld is there twice", (long long)i);
            spatial.at[i] = axes;
            numbered++;
        }
    }
    if (positions[0] < 0 || positions[1] < 0)
        text_fail(r, where, "'%c' and '%c' should both be among these axes", one, two);
    if (numbered != spatial.count)
        text_fail(r, where, "the spatial axes are numbered from 0, without gaps");
    text_add_int(r, out, one_name, positions[0]);
    text_add_int(r, out, two_name, positions[1]);
    text_add(r, out, spatial_name,
             text_attr_of(r, (struct mlir_attr){.kind = MLIR_INTS,
                                                .n = spatial.count,
                                                .numbers = spatial.at}));
}

void text_conv_numbers(struct text_reader *r, struct text_list *out)
{
    read_axes(r, out, 'b', "input_batch_dimension", 'f', "input_feature_dimension",
              "input_spatial_dimensions");
    text_expect(r, "x");
    read_axes(r, out, 'i', "kernel_input_feature_dimension", 'o',
              "kernel_output_feature_dimension", "kernel_spatial_dimensions");
    text_expect(r, "->");
    read_axes(r, out, 'b', "output_batch_dimension", 'f', "output_feature_dimension",
              "output_spatial_dimensions");
}

// Those that are read as dictionaries.
static const char *const structures[] = {
    "stablehlo.gather",         "stablehlo.scatter",       "stablehlo.dot",
    "stablehlo.channel_handle", "stablehlo.dot_algorithm", "stablehlo.output_operand_alias",
    "chlo.ragged_dot"};

// #stablehlo<precision HIGH>, #stablehlo.gather<...>, #sdy.sharding<...>, #alias.
static const struct mlir_attr *read_dialect(struct text_reader *r)
{
    const char *start = r->at;
    text_expect(r, "#");
    struct text_piece name = text_word(r);
    bool has_body = r->at < r->end && *r->at == '<';
    if (!name.n)
        text_expected(r, "the name of an attribute or alias");
    if (!has_body && !memchr(name.at, '.', name.n)) {
        struct text_alias *alias = text_alias_of(r, '#', name);
        if (!alias->attr && alias->location)
            return &alias->location->attr;
        if (!alias->attr)
            text_fail(r, start, "#%.*s is not defined before", (int)name.n, name.at);
        return alias->attr;
    }
    struct text_list l = {0};
    for (size_t i = 0; has_body && i < sizeof structures / sizeof *structures; i++)
        if (text_is(name, structures[i])) {
            text_expect(r, "<");
            read_entries(r, &l, ">");
            return dictionary(r, &l);
        }
    if (has_body && text_is(name, "stablehlo.conv")) {
        text_expect(r, "<");
        if (text_accept_word(r, "raw")) {
            read_entries(r, &l, ">");
        } else {
            text_conv_numbers(r, &l);
            text_expect(r, ">");
        }
        return dictionary(r, &l);
    }
    if (has_body && (text_is(name, "stablehlo") || text_is(name, "chlo"))) {
        struct text_mark open = text_mark(r);
        text_expect(r, "<");
        struct text_piece kind = text_word(r), word = text_word(r);
        if (kind.n && word.n && text_accept(r, ">"))
            return text_attr_of(r, (struct mlir_attr){.kind = MLIR_ENUM,
                                                      .n = word.n,
                                                      .text = text_interned(r, word)});
        text_rewind(r, open);
    }
    if (has_body)
        text_balanced(r);
    return text_attr_of(
        r, (struct mlir_attr){.kind = MLIR_OPAQUE,
                              .text = text_copy(r, start, (size_t)(r->at - start))});
}

// ---- numbers

static const struct mlir_attr *real_of(struct text_reader *r, struct text_piece n,
                                       const struct mlir_type *type)
{
    unsigned char element[8];
    enum mlir_element e = type->element;
    if (type->kind != MLIR_SCALAR || mlir_elements[e].kind != 'f')
        text_fail(r, n.at, "a number with a point or exponent is of a float type");
    number_store_decimal(e, n.at, n.n, element);
    return text_attr_of(
        r,
        (struct mlir_attr){.kind = MLIR_REAL, .type = type, .real = number_load(e, element)});
}

static const struct mlir_attr *read_real(struct text_reader *r, const struct mlir_type *type)
{
    struct text_piece n = text_number(r);
    if (!n.n)
        text_expected(r, "a number");
    return real_of(r, n, type);
}

// The type of a number, where one follows: that of a tensor is the type of an operation.
static const struct mlir_type *optional_type(struct text_reader *r)
{
    struct text_mark start = text_mark(r);
    if (text_accept(r, ":") && text_sees_type(r) && !text_sees(r, "tensor") &&
        !strchr("(!", text_peek(r)))
        return text_type(r);
    text_rewind(r, start);
    return NULL;
}

// 1 : i32, 0.5, 0x7FC00000 : f32
static const struct mlir_attr *read_number(struct text_reader *r)
{
    struct text_mark start = text_mark(r);
    struct text_piece n = text_number(r);
    if (!n.n)
        text_expected(r, "a number");
    bool is_hex = n.n > 2 && memchr(n.at, 'x', n.n);
    bool is_real =
        !is_hex && (memchr(n.at, '.', n.n) || memchr(n.at, 'e', n.n) || memchr(n.at, 'E', n.n));
    const struct mlir_type *type = optional_type(r);
    if (!type)
        type = text_scalar(r, is_real ? MLIR_F64 : MLIR_I64);
    if (is_real)
        return real_of(r, n, type);
    bool is_float = type->kind == MLIR_SCALAR && mlir_elements[type->element].kind == 'f';
    uint64_t bits = 0;
    if (is_hex) {
        for (const char *c = (const char *)memchr(n.at, 'x', n.n) + 1; c < n.at + n.n; c++) {
            if (bits >> 60)
                text_fail(r, n.at, "these are more than 64 bits");
            bits = bits << 4 | (uint64_t)(*c <= '9' ? *c - '0' : (*c | 32) - 'a' + 10);
        }
        bits = *n.at == '-' ? -bits : bits;
    } else if (!is_float) {
        struct text_mark end = text_mark(r);
        text_rewind(r, start);
        text_accept(r, "+");
        bits = (uint64_t)text_integer(r);
        text_rewind(r, end);
    }
    if (!is_float)
        return text_attr_of(
            r, (struct mlir_attr){.kind = MLIR_INT, .type = type, .integer = (int64_t)bits});
    if (!is_hex)
        return real_of(r, n, type);
    return text_attr_of(r, (struct mlir_attr){.kind = MLIR_REAL,
                                              .type = type,
                                              .real = number_load(type->element, &bits)});
}

// ---- any

static const struct mlir_attr *read_string(struct text_reader *r)
{
    struct mlir_attr a = {.kind = MLIR_STRING};
    a.text = text_string(r, &a.n);
    if (text_accept(r, ":"))
        a.type = text_type(r);
    return text_attr_of(r, a);
}

static const struct mlir_attr *read_symbol(struct text_reader *r)
{
    struct strbuf s = strbuf_make(r->arena);
    strbuf_add(&s, text_symbol(r));
    while (text_accept(r, "::")) {
        strbuf_add(&s, "::@");
        strbuf_add(&s, text_symbol(r));
    }
    return text_attr_of(r,
                        (struct mlir_attr){.kind = MLIR_SYMBOL, .n = s.length, .text = s.text});
}

// Something that begins with a word; NULL where it is none of these.
static const struct mlir_attr *read_worded(struct text_reader *r)
{
    static const char *const kept[] = {"affine_map", "affine_set", "sparse",
                                       "strided",    "opaque",     "distinct"};
    const char *start = r->at;
    if (text_sees_word(r, "true") || text_sees_word(r, "false"))
        return text_attr_of(r,
                            (struct mlir_attr){.kind = MLIR_BOOL, .integer = text_integer(r)});
    if (text_accept_word(r, "unit"))
        return text_attr_of(r, (struct mlir_attr){.kind = MLIR_UNIT});
    if (text_accept_word(r, "dense"))
        return text_dense(r, start);
    if (text_accept_word(r, "dense_resource"))
        return text_dense_resource(r);
    if (text_accept_word(r, "array"))
        return read_array(r);
    if (text_accept_word(r, "loc"))
        return text_location(r);
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        if (text_accept_word(r, kept[i])) {
            while (text_sees(r, "<") || text_sees(r, "["))
                text_balanced(r);
            if (text_accept(r, ":"))
                text_type(r);
            return text_attr_of(
                r, (struct mlir_attr){.kind = MLIR_OPAQUE,
                                      .text = text_copy(r, start, (size_t)(r->at - start))});
        }
    return NULL;
}

const struct mlir_attr *text_attr(struct text_reader *r)
{
    const struct mlir_attr *a;
    char c = text_peek(r);
    text_enter(r);
    if (c == '"') {
        a = read_string(r);
    } else if (c == '[') {
        a = read_list(r);
    } else if (c == '{') {
        a = text_dictionary(r);
    } else if (c == '@') {
        a = read_symbol(r);
    } else if (c == '#') {
        a = read_dialect(r);
    } else if ((c >= '0' && c <= '9') || c == '-' || c == '+') {
        a = read_number(r);
    } else if (!(a = read_worded(r))) {
        if (!text_sees_type(r))
            text_expected(r, "the value of an attribute");
        a = text_attr_of(r, (struct mlir_attr){.kind = MLIR_TYPE, .type = text_type(r)});
    }
    text_leave(r);
    return a;
}

// #name = attribute, !name = type
void text_alias_definition(struct text_reader *r)
{
    char sigil = text_peek(r);
    r->at++;
    struct text_piece name = text_word(r);
    if (!name.n)
        text_expected(r, "the name of an alias");
    struct text_alias *alias = text_alias_of(r, sigil, name);
    if (alias->is_defined)
        text_fail(r, name.at, "%c%.*s is defined twice", sigil, (int)name.n, name.at);
    text_expect(r, "=");
    if (sigil == '#' && text_accept_word(r, "loc")) {
        text_define_location(r, name);
        return;
    }
    const struct mlir_type *type = sigil == '!' ? text_type(r) : NULL;
    const struct mlir_attr *attr = sigil == '#' ? text_attr(r) : NULL;
    alias = text_alias_of(r, sigil, name);
    if (alias->location)
        text_fail(r, alias->first, "#%.*s is not a location", (int)name.n, name.at);
    alias->type = type;
    alias->attr = attr;
    alias->is_defined = true;
}
