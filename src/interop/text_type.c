// SPDX-License-Identifier: Apache-2.0
// Types of a program of text: tensor<2x3xf32>, (tensor<i32>) -> tensor<i32>, !stablehlo.token ...
#include "interop/text_read.h"

// ---- one of each

static uint64_t hash_of(const struct mlir_type *t)
{
    uint64_t h = hash_combine((uint64_t)t->kind, (uint64_t)t->element);
    h = hash_combine(h, (uint64_t)t->rank << 32 | t->n_inputs);
    for (int i = 0; i < t->rank; i++)
        h = hash_combine(h, (uint64_t)t->dims[i]);
    for (uint32_t i = 0; i < t->n_parts; i++)
        h = hash_combine(h, (uint64_t)(uintptr_t)t->parts[i]);
    return t->text ? hash_bytes(h, t->text, strlen(t->text)) : h;
}

// The dims and parts may be scratch.
const struct mlir_type *text_type_of(struct text_reader *r, struct mlir_type t)
{
    uint64_t hash = hash_of(&t);
    for (struct hash_probe h = hash_probe(&r->type_table, hash); hash_next(&r->type_table, &h);)
        if (mlir_types_equal(r->types.at[h.id], &t))
            return r->types.at[h.id];
    t.dims = arena_copy(r->arena, t.dims, (size_t)t.rank * sizeof *t.dims);
    t.parts = arena_copy(r->arena, t.parts, (size_t)t.n_parts * sizeof(void *));
    const struct mlir_type *kept = arena_copy(r->arena, &t, sizeof t);
    vec_push(r->arena, &r->types, kept);
    hash_insert(r->arena, &r->type_table, hash, r->types.count - 1);
    return kept;
}

const struct mlir_type *text_scalar(struct text_reader *r, enum mlir_element e)
{
    return text_type_of(r, (struct mlir_type){.kind = MLIR_SCALAR, .element = e});
}

static const struct mlir_type *text_tensor(struct text_reader *r, enum mlir_element e, int rank,
                                           const int64_t *dims)
{
    return text_type_of(
        r, (struct mlir_type){.kind = MLIR_TENSOR, .element = e, .rank = rank, .dims = dims});
}

// ---- text

static const struct mlir_type *other(struct text_reader *r, const char *start)
{
    const char *text = text_copy(r, start, (size_t)(r->at - start));
    return text_type_of(r, (struct mlir_type){.kind = MLIR_OTHER, .text = text});
}

// An element of its own: a word, or complex<f32>.
static bool read_element(struct text_reader *r, enum mlir_element *out)
{
    struct text_mark start = text_mark(r);
    struct text_piece w = text_word(r);
    if (text_is(w, "complex") && r->at < r->end && *r->at == '<') {
        text_balanced(r);
        w.n = (size_t)(r->at - start.at);
    }
    *out = w.n ? mlir_element_find(w.at, w.n) : MLIR_N_ELEMENTS;
    if (*out == MLIR_N_ELEMENTS)
        text_rewind(r, start);
    return *out < MLIR_N_ELEMENTS;
}

// "2x" or "?x"
static bool read_dim(struct text_reader *r, int64_t *out)
{
    char c = text_peek(r);
    if (c == '?') {
        r->at++;
        *out = MLIR_DYNAMIC;
    } else if (c >= '0' && c <= '9') {
        const char *where = r->at;
        *out = text_integer(r);
        if (*out < 0)
            text_fail(r, where, "this extent does not fit in 64 bits");
    } else {
        return false;
    }
    if (r->at == r->end || *r->at != 'x')
        text_expected(r, "'x'");
    r->at++;
    return true;
}

// From behind the '<'.  What is no plain tensor of a known element is kept as text.
static const struct mlir_type *read_tensor(struct text_reader *r, const char *start)
{
    const char *open = r->at - 1;
    int64_t dim;
    enum mlir_element element;
    r->numbers.count = 0;
    while (text_peek(r) != '*' && read_dim(r, &dim))
        vec_push(r->arena, &r->numbers, dim);
    if (read_element(r, &element) && text_accept(r, ">"))
        return text_tensor(r, element, (int)r->numbers.count, r->numbers.at);
    if (text_peek(r) != ',' && text_peek(r) != '*' && text_peek(r) != '!')
        text_expected(r, "an element type, such as f32,");
    r->at = open;
    text_balanced(r);
    return other(r, start);
}

static void read_types(struct text_reader *r, struct mlir_type *t, uint32_t first,
                       const char *close)
{
    VEC(const struct mlir_type *) parts = {0};
    for (uint32_t i = 0; i < first; i++)
        vec_push(r->arena, &parts, t->parts[i]);
    for (uint32_t n = 0; text_more(r, &n, close);)
        vec_push(r->arena, &parts, text_type(r));
    t->parts = parts.at;
    t->n_parts = parts.count;
}

const struct mlir_type *text_function_type(struct text_reader *r)
{
    struct mlir_type t = {.kind = MLIR_FUNCTION};
    text_enter(r);
    text_expect(r, "(");
    read_types(r, &t, 0, ")");
    t.n_inputs = t.n_parts;
    text_expect(r, "->");
    if (text_accept(r, "(")) {
        read_types(r, &t, t.n_inputs, ")");
    } else {
        const struct mlir_type **parts =
            arena_array(r->arena, const struct mlir_type *, t.n_inputs + 1);
        if (t.n_inputs)
            memcpy(parts, t.parts, t.n_inputs * sizeof *parts);
        parts[t.n_parts++] = text_type(r);
        t.parts = parts;
    }
    text_leave(r);
    return text_type_of(r, t);
}

static const char *const kept_types[] = {"memref", "vector", "tuple", "tensor", "complex"};

bool text_sees_type(struct text_reader *r)
{
    char c = text_peek(r);
    if (c == '!' || c == '(')
        return true;
    struct text_mark start = text_mark(r);
    struct text_piece w = text_word(r);
    bool sees = w.n && mlir_element_find(w.at, w.n) < MLIR_N_ELEMENTS;
    for (size_t i = 0; i < sizeof kept_types / sizeof *kept_types; i++)
        sees |= text_is(w, kept_types[i]) && r->at < r->end && *r->at == '<';
    // An integer or float of a width that no program of StableHLO has.
    size_t of = w.n && (w.at[0] == 's' || w.at[0] == 'u') ? 1 : 0;
    if (w.n > of + 1 && (w.at[of] == 'i' || w.at[of] == 'f'))
        sees |= w.at[of + 1] >= '1' && w.at[of + 1] <= '9';
    text_rewind(r, start);
    return sees;
}

// "!dialect.name<...>", a token or an alias
static const struct mlir_type *read_named(struct text_reader *r)
{
    const char *start = r->at++;
    struct text_piece w = text_word(r);
    if (text_is(w, "stablehlo.token") || text_is(w, "mhlo.token"))
        return text_type_of(r, (struct mlir_type){.kind = MLIR_TOKEN});
    bool has_body = r->at < r->end && *r->at == '<';
    if (!has_body && !memchr(w.at, '.', w.n)) {
        struct text_alias *alias = text_alias_of(r, '!', w);
        if (!alias->is_defined)
            text_fail(r, start, "the type !%.*s is not defined before", (int)w.n, w.at);
        return alias->type;
    }
    if (has_body)
        text_balanced(r);
    return other(r, start);
}

const struct mlir_type *text_type(struct text_reader *r)
{
    const struct mlir_type *t;
    const char *start = (text_peek(r), r->at);
    enum mlir_element element;
    if (!text_sees_type(r))
        text_expected(r, "a type");
    if (*start == '(')
        return text_function_type(r);
    if (*start == '!')
        return read_named(r);
    text_enter(r);
    if (read_element(r, &element)) {
        t = text_scalar(r, element);
    } else {
        struct text_piece w = text_word(r);
        bool has_body = text_accept(r, "<");
        if (text_is(w, "tensor") && has_body) {
            t = read_tensor(r, start);
        } else if (text_is(w, "tuple") && has_body) {
            struct mlir_type tuple = {.kind = MLIR_TUPLE};
            read_types(r, &tuple, 0, ">");
            t = text_type_of(r, tuple);
        } else {
            if (has_body) {
                r->at--;
                text_balanced(r);
            }
            t = other(r, start);
        }
    }
    text_leave(r);
    return t;
}
