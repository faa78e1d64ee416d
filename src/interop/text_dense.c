// SPDX-License-Identifier: Apache-2.0
// Arrays of a program of text: nested lists, one number for all, bytes in hex, resources.
#include "interop/numbers.h"
#include "interop/text_read.h"

#include <math.h>

struct elements {
    enum mlir_element element;
    const struct mlir_type *type;
    unsigned char *next;
};

// ---- elements

static void read_bool(struct text_reader *r, unsigned char *out)
{
    const char *where = (text_peek(r), r->at);
    bool is_word = text_accept_word(r, "true");
    int64_t x = is_word || text_accept_word(r, "false") ? is_word : text_integer(r);
    if (x != 0 && x != 1 && x != -1)
        text_fail(r, where, "an element of i1 is true or false");
    *out = x != 0;
}

static uint64_t hex_magnitude(struct text_reader *r, struct text_piece n)
{
    uint64_t x = 0;
    const char *c = n.at + (*n.at == '-' || *n.at == '+') + 2;
    for (; c < n.at + n.n; c++) {
        if (x >> 60)
            text_fail(r, n.at, "these are more than 64 bits");
        x = x << 4 | (uint64_t)(*c <= '9' ? *c - '0' : (*c | 32) - 'a' + 10);
    }
    return x;
}

static bool is_hex(struct text_piece n)
{
    size_t sign = n.n && (*n.at == '-' || *n.at == '+');
    return n.n > sign + 2 && n.at[sign] == '0' && (n.at[sign + 1] | 32) == 'x';
}

// A signed element takes the numbers of an unsigned one as their bits, as MLIR does.
static void read_integer(struct text_reader *r, enum mlir_element e, unsigned char *out)
{
    const char *where = (text_peek(r), r->at);
    bool is_negative = text_peek(r) == '-';
    struct text_piece n = text_number(r);
    uint64_t x;
    if (!n.n)
        text_expected(r, "an integer");
    text_rewind(r, (struct text_mark){where, r->line_start, r->line});
    if (is_hex(n)) {
        x = hex_magnitude(r, n);
        x = is_negative ? -x : x;
        r->at += n.n;
    } else {
        x = (uint64_t)text_integer(r);
        if (r->at != n.at + n.n)
            text_fail(r, where, "an element of %s is an integer", mlir_elements[e].text);
    }
    int bits = mlir_elements[e].bits;
    bool is_signed = mlir_elements[e].kind == 'i';
    bool fits = !is_negative || is_signed;
    if (bits < 64 && is_negative)
        fits = is_signed && (int64_t)x >= -(INT64_C(1) << (bits - 1));
    else if (bits < 64)
        fits = x >> bits == 0;
    if (!fits)
        text_fail(r, where, "%.*s does not fit in %s", (int)n.n, n.at, mlir_elements[e].text);
    if (is_signed && bits < 8 && x >> (bits - 1) & 1)
        x |= ~UINT64_C(0) << bits;
    memcpy(out, &x, number_bytes(e));
}

static void read_float(struct text_reader *r, enum mlir_element e, unsigned char *out)
{
    text_peek(r);
    const char *where = r->at;
    bool is_negative = where < r->end && *where == '-';
    struct text_piece n = text_number(r);
    if (n.n && is_hex(n)) {
        uint64_t bits = hex_magnitude(r, n);
        size_t size = number_bytes(e);
        if (is_negative || (size < 8 && bits >> (8 * size)))
            text_fail(r, where, "%.*s does not fit in %s", (int)n.n, n.at,
                      mlir_elements[e].text);
        memcpy(out, &bits, size);
    } else if (n.n) {
        number_store_decimal(e, n.at, n.n, out);
    } else {
        r->at += is_negative;
        double x = text_accept_word(r, "inf") ? (double)INFINITY : (double)NAN;
        if (isnan(x) && !text_accept_word(r, "nan")) {
            r->at = where;
            text_expected(r, "a number");
        }
        number_store(e, is_negative ? -x : x, out);
    }
}

static void read_element(struct text_reader *r, enum mlir_element e, unsigned char *out)
{
    enum mlir_element part = number_part(e);
    switch (mlir_elements[e].kind) {
    case 'b':
        read_bool(r, out);
        break;
    case 'i':
    case 'u':
        read_integer(r, e, out);
        break;
    case 'c':
        text_expect(r, "(");
        read_float(r, part, out);
        text_expect(r, ",");
        read_float(r, part, out + number_bytes(part));
        text_expect(r, ")");
        break;
    default:
        read_float(r, e, out);
    }
}

static void read_list(struct text_reader *r, struct elements *e, int axis)
{
    const char *where = (text_peek(r), r->at);
    int64_t count = 0;
    text_enter(r);
    text_expect(r, "[");
    for (uint32_t n = 0; text_more(r, &n, "]"); count++) {
        if (count == e->type->dims[axis])
            text_fail(r, (text_peek(r), r->at),
                      "this list has more than the %lld elements of its type",
                      (long long)count);
        if (axis + 1 < e->type->rank) {
            read_list(r, e, axis + 1);
        } else {
            read_element(r, e->element, e->next);
            e->next += number_bytes(e->element);
        }
    }
    if (count < e->type->dims[axis])
        text_fail(r, where, "this list has %lld elements and its type has %lld",
                  (long long)count, (long long)e->type->dims[axis]);
    text_leave(r);
}

// ---- hex

// The bytes of "0x..." from the byte `skip` on, which are for an attribute.
static unsigned char *read_hex(struct text_reader *r, struct mlir_attr *a, struct text_piece q,
                               size_t skip, size_t *out_n)
{
    if (q.n < 2 || q.n % 2 || q.at[0] != '0' || q.at[1] != 'x')
        text_fail(r, q.at, "bytes are written as \"0x...\", with two digits each");
    size_t n = q.n / 2 - 1;
    if (n < skip)
        text_fail(r, q.at, "these bytes are fewer than the %zu that tell the alignment", skip);
    unsigned char *bytes = mlir_make_room(r->program, a, n - skip);
    for (size_t i = skip; i < n; i++) {
        int high = text_hex_digit(q.at[2 * i + 2]), low = text_hex_digit(q.at[2 * i + 3]);
        if (high < 0 || low < 0)
            text_fail(r, q.at + 2 * i + 2, "'%.2s' is no byte in hex", q.at + 2 * i + 2);
        bytes[i - skip] = (unsigned char)(high * 16 + low);
    }
    *out_n = n - skip;
    return bytes;
}

// Gives the attribute the bytes, which are its elements, one for all, or bools eight to a byte.
static void set_bytes(struct text_reader *r, struct mlir_attr *a, unsigned char *bytes,
                      size_t n, const char *where)
{
    enum mlir_element e = a->type->element;
    int64_t elements = mlir_elements_of(a->type);
    size_t size = number_bytes(e);
    int bits = mlir_elements[e].bits;
    bool is_packed = e == MLIR_I1 && elements > 1 && n != (uint64_t)elements &&
                     n == ((uint64_t)elements + 7) / 8 &&
                     !(n == 1 && (*bytes == 0 || *bytes == 0xff));
    a->is_splat = !is_packed && n == size && elements != 0;
    if (is_packed) {
        unsigned char *bools = mlir_make_room(r->program, a, (size_t)elements);
        for (int64_t i = 0; i < elements; i++)
            bools[i] = bytes[i / 8] >> (i % 8) & 1;
        bytes = bools;
        n = (size_t)elements;
    } else if (!a->is_splat && (elements < 0 || n % size || n / size != (uint64_t)elements)) {
        text_fail(r, where, "these are %zu bytes, where %s has %lld elements of %zu", n,
                  text_type_name(r, a->type), (long long)elements, size);
    }
    for (size_t i = 0; bits < 8 && i < n; i++) {
        if (bits == 1)
            bytes[i] = bytes[i] != 0;
        else if (mlir_elements[e].kind == 'i' && bytes[i] >> (bits - 1) & 1)
            bytes[i] |= (unsigned char)(0xff << bits);
        else
            bytes[i] &= (unsigned char)(0xff >> (8 - bits));
    }
    a->bytes = bytes;
    a->n = n;
}

// ---- arrays

// To the '>' that ends what stands in dense<...>.
static void skip_content(struct text_reader *r)
{
    const char *c = r->at, *start = c;
    while (c < r->end && *c != '>') {
        if (*c == '"') {
            text_move(r, c);
            text_quoted(r);
            c = r->at;
        } else {
            c++;
        }
    }
    if (c == r->end)
        text_fail(r, start, "this '<' is not closed");
    text_move(r, c);
}

static void read_content(struct text_reader *r, struct mlir_attr *a, size_t length)
{
    enum mlir_element e = a->type->element;
    size_t size = number_bytes(e);
    int64_t elements = mlir_elements_of(a->type);
    const char *where = (text_peek(r), r->at);
    if (*where == '"') {
        size_t n;
        unsigned char *bytes = read_hex(r, a, text_quoted(r), 0, &n);
        set_bytes(r, a, bytes, n, where);
    } else if (*where == '[' && a->type->rank > 0) {
        // An element takes a byte of text at least.
        if (elements < 0 || (uint64_t)elements > length)
            text_fail(r, where, "this list has fewer elements than %s",
                      text_type_name(r, a->type));
        unsigned char *bytes = mlir_make_room(r->program, a, (size_t)elements * size);
        struct elements list = {e, a->type, bytes};
        read_list(r, &list, 0);
        a->bytes = bytes;
        a->n = (size_t)elements * size;
        a->is_splat = elements == 1;
    } else if (*where == '>' && elements == 0) {
        a->bytes = (const unsigned char *)"";
    } else {
        unsigned char *bytes = arena_allocate(r->arena, size);
        read_element(r, e, bytes);
        a->bytes = bytes;
        a->is_splat = elements != 0;
        a->n = elements ? size : 0;
    }
}

// The type stands behind the elements, which it tells how to read.
const struct mlir_attr *text_dense(struct text_reader *r, const char *start)
{
    struct mlir_attr a = {.kind = MLIR_DENSE};
    text_expect(r, "<");
    struct text_mark content = text_mark(r);
    skip_content(r);
    const char *end = r->at;
    text_expect(r, ">");
    text_expect(r, ":");
    const char *where = (text_peek(r), r->at);
    a.type = text_type(r);
    struct text_mark behind = text_mark(r);
    if (a.type->kind != MLIR_TENSOR || number_bytes(a.type->element) == 0)
        return text_attr_of(
            r, (struct mlir_attr){.kind = MLIR_OPAQUE,
                                  .text = text_copy(r, start, (size_t)(r->at - start))});
    for (int i = 0; i < a.type->rank; i++)
        if (a.type->dims[i] < 0)
            text_fail(r, where, "the extents of a constant are known, those of %s are not",
                      text_type_name(r, a.type));
    text_rewind(r, content);
    read_content(r, &a, (size_t)(end - content.at));
    text_expect(r, ">");
    text_rewind(r, behind);
    return text_attr_of(r, a);
}

// ---- resources

const struct mlir_attr *text_dense_resource(struct text_reader *r)
{
    text_expect(r, "<");
    const char *where = (text_peek(r), r->at);
    struct text_piece name = *where == '"' ? text_quoted_name(r) : text_word(r);
    text_expect(r, ">");
    text_expect(r, ":");
    const struct mlir_type *type = text_type(r);
    if (type->kind != MLIR_TENSOR || number_bytes(type->element) == 0)
        text_fail(r, where, "a resource of %s is not read", text_type_name(r, type));
    struct mlir_attr *a = arena_new(r->arena, struct mlir_attr);
    *a = (struct mlir_attr){.kind = MLIR_DENSE, .type = type, .bytes = NULL};
    vec_push(r->arena, &r->wanted, (struct text_resource){name, where, a});
    hash_insert(r->arena, &r->wanted_table, hash_bytes(0, name.at, name.n),
                r->wanted.count - 1);
    return a;
}

// The first four bytes tell the alignment of the others.
static void read_resource(struct text_reader *r, struct text_piece name, struct text_piece q)
{
    uint64_t hash = hash_bytes(0, name.at, name.n);
    const struct mlir_attr *first = NULL;
    for (struct hash_probe h = hash_probe(&r->wanted_table, hash);
         hash_next(&r->wanted_table, &h);) {
        struct text_resource *w = &r->wanted.at[h.id];
        if (w->name.n != name.n || memcmp(w->name.at, name.at, name.n) != 0)
            continue;
        if (w->attr->bytes)
            text_fail(r, name.at, "the resource %.*s is there twice", (int)name.n, name.at);
        if (first && mlir_types_equal(first->type, w->attr->type)) {
            *w->attr = *first;
            continue;
        }
        size_t n;
        unsigned char *bytes = read_hex(r, w->attr, q, 4, &n);
        set_bytes(r, w->attr, bytes, n, w->where);
        first = w->attr;
    }
}

// dialect_resources: { builtin: { name: "0x..." } }, external_resources: { ... }
void text_resources(struct text_reader *r)
{
    for (uint32_t n = 0; text_more(r, &n, "#-}");) {
        bool is_of_dialects = text_accept_word(r, "dialect_resources");
        if (!is_of_dialects)
            text_expect_word(r, "external_resources");
        text_expect(r, ":");
        text_expect(r, "{");
        for (uint32_t dialects = 0; text_more(r, &dialects, "}");) {
            if (!text_word(r).n)
                text_expected(r, "the name of a dialect");
            text_expect(r, ":");
            text_expect(r, "{");
            for (uint32_t entries = 0; text_more(r, &entries, "}");) {
                struct text_piece name =
                    text_peek(r) == '"' ? text_quoted_name(r) : text_word(r);
                text_expect(r, ":");
                if (is_of_dialects)
                    read_resource(r, name, text_quoted(r));
                else if (text_peek(r) == '"')
                    text_quoted(r);
                else if (!text_word(r).n && !text_number(r).n)
                    text_expected(r, "a value");
            }
        }
    }
}

void text_settle_resources(struct text_reader *r)
{
    for (uint32_t i = 0; i < r->wanted.count; i++)
        if (!r->wanted.at[i].attr->bytes)
            text_fail(r, r->wanted.at[i].where, "the text ends without the resource %.*s",
                      (int)r->wanted.at[i].name.n, r->wanted.at[i].name.at);
}
