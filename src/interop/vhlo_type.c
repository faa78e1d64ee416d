// SPDX-License-Identifier: Apache-2.0
// Types of portable bytecode: those of VHLO, and MLIR's own that stand beside them.  Each begins
// with a number that says what it is.
#include "interop/bytecode.h"

#include "base/strbuf.h"
#include "interop/vhlo.h"

#include <inttypes.h>

static uint64_t hash_type(const struct mlir_type *t)
{
    uint64_t h = hash_combine(t->kind, t->element);
    for (int i = 0; i < t->rank; i++)
        h = hash_combine(h, (uint64_t)t->dims[i]);
    for (uint32_t i = 0; i < t->n_parts; i++)
        h = hash_combine(h, (uintptr_t)t->parts[i]);
    if (t->kind == MLIR_OTHER)
        h = hash_bytes(h, t->text, strlen(t->text));
    return hash_combine(h, t->n_inputs);
}

const struct mlir_type *bytecode_the_type(struct bytecode *b, const struct mlir_type *t)
{
    uint64_t h = hash_type(t);
    for (struct hash_probe p = hash_probe(&b->type_table, h); hash_next(&b->type_table, &p);)
        if (mlir_types_equal(b->all_types.at[p.id], t))
            return b->all_types.at[p.id];
    hash_insert(b->scratch, &b->type_table, h, b->all_types.count);
    const struct mlir_type *kept = arena_copy(b->arena, t, sizeof *t);
    vec_push(b->scratch, &b->all_types, kept);
    return kept;
}

const struct mlir_type *bytecode_element_type(struct bytecode *b, enum mlir_element e)
{
    return bytecode_the_type(b, &(struct mlir_type){.kind = MLIR_SCALAR, .element = e});
}

static const struct mlir_type *other_type(struct bytecode *b, const char *text)
{
    return bytecode_the_type(b, &(struct mlir_type){.kind = MLIR_OTHER, .text = text});
}

// A list of numbers of types, behind the `before` ones of `old`.
static const struct mlir_type *const *read_types(struct bytecode *b, struct bytes *s,
                                                 const struct mlir_type *const *old,
                                                 uint32_t before, uint32_t *out_n)
{
    uint64_t n = bytecode_count(b, s, 1);
    const struct mlir_type **types =
        arena_array(b->arena, const struct mlir_type *, before + n);
    for (uint32_t i = 0; i < before; i++)
        types[i] = old[i];
    for (uint64_t i = 0; i < n; i++)
        types[before + i] = bytecode_type(b, bytecode_number(b, s));
    *out_n = (uint32_t)(before + n);
    return types;
}

static const struct mlir_type *read_parts(struct bytecode *b, struct bytes *s,
                                          enum mlir_type_kind kind)
{
    struct mlir_type t = {.kind = kind};
    t.parts = read_types(b, s, NULL, 0, &t.n_parts);
    if (kind == MLIR_FUNCTION) {
        t.n_inputs = t.n_parts;
        t.parts = read_types(b, s, t.parts, t.n_inputs, &t.n_parts);
    }
    return b->status ? NULL : bytecode_the_type(b, &t);
}

static const struct mlir_type *read_complex(struct bytecode *b, struct bytes *s)
{
    const struct mlir_type *part = bytecode_type(b, bytecode_number(b, s));
    if (!part)
        return NULL;
    if (part->kind != MLIR_SCALAR || (part->element != MLIR_F32 && part->element != MLIR_F64))
        return other_type(b, "complex");
    return bytecode_element_type(b, part->element == MLIR_F32 ? MLIR_C64 : MLIR_C128);
}

static const struct mlir_type *read_tensor(struct bytecode *b, struct bytes *s)
{
    struct mlir_type t = {.kind = MLIR_TENSOR};
    uint64_t rank = bytecode_count(b, s, 1);
    int64_t *dims = arena_array(b->arena, int64_t, rank);
    for (uint64_t i = 0; i < rank; i++) {
        dims[i] = bytecode_signed(b, s);
        if (dims[i] < 0 && dims[i] != MLIR_DYNAMIC)
            bytecode_fail(b, s->at, "a tensor with an extent of %" PRId64, dims[i]);
    }
    const struct mlir_type *element = bytecode_type(b, bytecode_number(b, s));
    if (!element)
        return NULL;
    if (element->kind != MLIR_SCALAR) {
        struct strbuf text = strbuf_make(b->arena);
        const char *what = element->kind == MLIR_OTHER ? element->text : "what is no number";
        if (bytecode_spend(b, strlen(what)))
            strbuf_printf(&text, "tensor of %s", what);
        return other_type(b, text.text);
    }
    t.rank = (int)rank;
    t.dims = dims;
    t.element = element->element;
    return bytecode_the_type(b, &t);
}

// An encoding, such as bounds of the extents, says nothing to us.
static const struct mlir_type *skip_then_tensor(struct bytecode *b, struct bytes *s)
{
    bytecode_number(b, s);
    return read_tensor(b, s);
}

static const struct mlir_type *read_unranked(struct bytecode *b, struct bytes *s)
{
    const struct mlir_type *element = bytecode_type(b, bytecode_number(b, s));
    struct strbuf text = strbuf_make(b->arena);
    strbuf_printf(&text, "tensor<*x%s>",
                  element && element->kind == MLIR_SCALAR ? mlir_elements[element->element].text
                                                          : "?");
    return other_type(b, text.text);
}

static const struct mlir_type *read_vhlo_type(struct bytecode *b, struct bytes *s)
{
    const unsigned char *at = s->at;
    uint64_t code = bytecode_number(b, s);
    switch (code) {
    case VHLO_TYPE_COMPLEX:
        return read_complex(b, s);
    case VHLO_TYPE_FUNCTION:
        return read_parts(b, s, MLIR_FUNCTION);
    case VHLO_TYPE_TENSOR:
        return read_tensor(b, s);
    case VHLO_TYPE_ENCODED_TENSOR:
        return skip_then_tensor(b, s);
    case VHLO_TYPE_TOKEN:
        return bytecode_the_type(b, &(struct mlir_type){.kind = MLIR_TOKEN});
    case VHLO_TYPE_TUPLE:
        return read_parts(b, s, MLIR_TUPLE);
    case VHLO_TYPE_QUANTIZED:
    case VHLO_TYPE_QUANTIZED_AXIS:
        return other_type(b, "quantized");
    case VHLO_TYPE_UNRANKED:
        return read_unranked(b, s);
    case VHLO_TYPE_WITNESS:
        return other_type(b, "witness");
    case VHLO_TYPE_BUFFER:
        return other_type(b, "buffer");
    case VHLO_TYPE_FUTURE:
        return other_type(b, "future");
    default:
        for (int e = 0; e < MLIR_N_ELEMENTS; e++)
            if ((uint64_t)mlir_elements[e].vhlo == code)
                return bytecode_element_type(b, (enum mlir_element)e);
        bytecode_fail(b, at, "a type of number %" PRIu64 ", which VHLO does not have", code);
        return NULL;
    }
}

static const struct mlir_type *read_integer_type(struct bytecode *b, uint64_t code)
{
    uint64_t bits = code >> 2;
    char kind = (code & 3) == 2 ? 'u' : bits == 1 ? 'b' : 'i';
    for (int e = 0; e < MLIR_INDEX; e++)
        if ((uint64_t)mlir_elements[e].bits == bits && mlir_elements[e].kind == kind)
            return bytecode_element_type(b, (enum mlir_element)e);
    return other_type(b, "an integer of a width of its own");
}

// Of MLIR itself.
static const struct mlir_type *read_builtin_type(struct bytecode *b, struct bytes *s)
{
    static const enum mlir_element elements[] = {MLIR_BF16, MLIR_F16, MLIR_F32, MLIR_F64};
    uint64_t code = bytecode_number(b, s);
    switch (code) {
    case BUILTIN_TYPE_INTEGER:
        return read_integer_type(b, bytecode_number(b, s));
    case BUILTIN_TYPE_INDEX:
        return bytecode_element_type(b, MLIR_INDEX);
    case BUILTIN_TYPE_FUNCTION:
        return read_parts(b, s, MLIR_FUNCTION);
    case BUILTIN_TYPE_BF16:
    case BUILTIN_TYPE_BF16 + 1:
    case BUILTIN_TYPE_BF16 + 2:
    case BUILTIN_TYPE_BF16 + 3:
        return bytecode_element_type(b, elements[code - BUILTIN_TYPE_BF16]);
    case BUILTIN_TYPE_COMPLEX:
        return read_complex(b, s);
    case BUILTIN_TYPE_NONE:
        return bytecode_element_type(b, MLIR_NONE);
    case BUILTIN_TYPE_TENSOR:
        return read_tensor(b, s);
    case BUILTIN_TYPE_ENCODED_TENSOR:
        return skip_then_tensor(b, s);
    case BUILTIN_TYPE_TUPLE:
        return read_parts(b, s, MLIR_TUPLE);
    default:
        return other_type(b, "a type of MLIR");
    }
}

// Begins to read an entry; false when it was read, or cannot be.
bool bytecode_begin(struct bytecode *b, struct bytecode_entry *entries, uint64_t n,
                    uint64_t index, const char *what)
{
    if (b->status)
        return false;
    if (index >= n) {
        bytecode_fail(b, b->op, "%s %" PRIu64 " of %" PRIu64, what, index, n);
        return false;
    }
    if (entries[index].state == BYTECODE_READ)
        return false;
    if (entries[index].state == BYTECODE_READING || b->depth >= MLIR_MAX_DEPTH) {
        bytecode_fail(b, entries[index].bytes.at, "%s that %s", what,
                      b->depth >= MLIR_MAX_DEPTH ? "is too deep" : "holds itself");
        return false;
    }
    entries[index].state = BYTECODE_READING;
    b->depth++;
    return true;
}

// Text ends in a zero byte, which is not certain.
const char *bytecode_text_of(struct bytecode *b, struct bytes s)
{
    size_t n = 0;
    while (s.at + n < s.end && s.at[n])
        n++;
    char *text = arena_allocate(b->arena, n + 1);
    memcpy(text, s.at, n);
    return text;
}

const struct mlir_type *bytecode_type(struct bytecode *b, uint64_t index)
{
    if (bytecode_begin(b, b->types, b->n_types, index, "a type")) {
        struct bytecode_entry *e = &b->types[index];
        struct bytes s = e->bytes;
        e->type = e->is_text                       ? other_type(b, bytecode_text_of(b, s))
                  : e->dialect == BYTECODE_VHLO    ? read_vhlo_type(b, &s)
                  : e->dialect == BYTECODE_BUILTIN ? read_builtin_type(b, &s)
                                                   : other_type(b, "a type of another dialect");
        e->state = BYTECODE_READ;
        b->depth--;
    }
    return b->status ? NULL : b->types[index].type;
}
