// SPDX-License-Identifier: Apache-2.0
// Attributes of portable bytecode: those of the dialect VHLO, and MLIR's own that stand beside them.
// Each begins with a number that says what it is.
#include "interop/bytecode.h"

#include "base/dtype.h"
#include "base/strbuf.h"
#include "interop/vhlo.h"

#include <inttypes.h>
#include <stdio.h>

// Bits of any float type as a number: sign, exponent and fraction as the element's text says.
static double real_of_bits(enum mlir_element e, uint64_t bits)
{
    float narrow;
    double wide;
    uint32_t word = (uint32_t)bits;
    switch (e) {
    case MLIR_F64:
        memcpy(&wide, &bits, sizeof wide);
        return wide;
    case MLIR_F32:
        memcpy(&narrow, &word, sizeof narrow);
        return narrow;
    case MLIR_BF16:
        word <<= 16;
        memcpy(&narrow, &word, sizeof narrow);
        return narrow;
    default:
        return dtype_f16_to_f32((uint16_t)bits);
    }
}

// ---- attributes ----

// What an attribute is made in: the list of numbers that it is, once it was asked for.
struct made {
    struct mlir_attr attr;
    bool was_asked;
    const struct mlir_attr *numbers;
};

struct mlir_attr *bytecode_new_attr(struct bytecode *b, enum mlir_attr_kind kind)
{
    struct made *m = arena_new(b->arena, struct made);
    m->attr.kind = kind;
    return &m->attr;
}

static const struct mlir_attr *opaque(struct bytecode *b, const char *text)
{
    struct mlir_attr *a = bytecode_new_attr(b, MLIR_OPAQUE);
    a->text = text;
    a->n = strlen(text);
    return a;
}

static const struct mlir_attr *int_attr(struct bytecode *b, int64_t value)
{
    struct mlir_attr *a = bytecode_new_attr(b, MLIR_INT);
    a->type = bytecode_element_type(b, MLIR_I64);
    a->integer = value;
    return a;
}

static const struct mlir_attr *read_string(struct bytecode *b, struct bytes *s)
{
    const struct bytecode_string *string = bytecode_string(b, s);
    if (!string)
        return NULL;
    struct mlir_attr *a = bytecode_new_attr(b, MLIR_STRING);
    a->text = string->text;
    a->n = string->n;
    return a;
}

static const struct mlir_attr *read_array(struct bytecode *b, struct bytes *s)
{
    uint64_t n = bytecode_count(b, s, 1);
    const struct mlir_attr **parts = arena_array(b->arena, const struct mlir_attr *, n);
    for (uint64_t i = 0; i < n; i++)
        parts[i] = bytecode_attr(b, bytecode_number(b, s));
    struct mlir_attr *a = bytecode_new_attr(b, MLIR_ARRAY);
    a->n = n;
    a->parts = parts;
    return a;
}

static const struct mlir_attr *read_dictionary(struct bytecode *b, struct bytes *s)
{
    uint64_t n = bytecode_count(b, s, 2);
    struct mlir_named *named = arena_array(b->arena, struct mlir_named, n);
    for (uint64_t i = 0; i < n && !b->status; i++) {
        const struct mlir_attr *name = bytecode_attr(b, bytecode_number(b, s));
        named[i].attr = bytecode_attr(b, bytecode_number(b, s));
        if (name && name->kind != MLIR_STRING)
            bytecode_fail(b, s->at, "an attribute whose name is no string");
        named[i].name = name ? name->text : "";
    }
    struct mlir_attr *a = bytecode_new_attr(b, MLIR_DICTIONARY);
    a->n = n;
    a->named = named;
    return a;
}

// The bits of a number, which are a byte or a zigzag.
static uint64_t read_bits(struct bytecode *b, struct bytes *s, int bits)
{
    uint64_t value = bits <= 8 ? bytecode_byte(b, s) : (uint64_t)bytecode_signed(b, s);
    return bits >= 64 ? value : value & ((UINT64_C(1) << bits) - 1);
}

static int64_t sign_extended(uint64_t value, int bits)
{
    uint64_t sign = UINT64_C(1) << (bits - 1);
    return (int64_t)((value ^ sign) - sign);
}

static const struct mlir_attr *read_integer(struct bytecode *b, struct bytes *s)
{
    const unsigned char *at = s->at;
    const struct mlir_type *type = bytecode_type(b, bytecode_number(b, s));
    if (!type)
        return NULL;
    const struct mlir_element_row *e = &mlir_elements[type->element];
    if (type->kind != MLIR_SCALAR || !strchr("biu", e->kind)) {
        bytecode_fail(b, at, "an integer of a type that is none");
        return NULL;
    }
    uint64_t bits = read_bits(b, s, e->bits);
    struct mlir_attr *a = bytecode_new_attr(b, e->kind == 'b' ? MLIR_BOOL : MLIR_INT);
    a->type = e->kind == 'b' ? NULL : type;
    a->integer = e->kind == 'i' ? sign_extended(bits, e->bits) : (int64_t)bits;
    return a;
}

static const struct mlir_attr *read_real(struct bytecode *b, struct bytes *s)
{
    const unsigned char *at = s->at;
    const struct mlir_type *type = bytecode_type(b, bytecode_number(b, s));
    if (!type)
        return NULL;
    if (type->kind != MLIR_SCALAR || type->element < MLIR_F16 || type->element > MLIR_F64) {
        bytecode_fail(b, at, "a number of a type that is none of f16, bf16, f32 and f64");
        return NULL;
    }
    struct mlir_attr *a = bytecode_new_attr(b, MLIR_REAL);
    a->type = type;
    a->real = real_of_bits(type->element, read_bits(b, s, mlir_elements[type->element].bits));
    return a;
}

// Gives the attribute n flags, of which each is a bit.
static void set_unpacked(struct bytecode *b, struct mlir_attr *a, struct bytes packed, size_t n)
{
    unsigned char *flags = mlir_make_room(b->program, a, n);
    for (size_t i = 0; i < n; i++)
        flags[i] = packed.at[i / 8] >> (i % 8) & 1;
    a->bytes = flags;
    a->n = n;
}

// Flags as bytes of 0 and 1; integers of less than a byte as a byte.  begin: of the attribute, of which nothing else
// is read any more.
static void set_elements(struct bytecode *b, struct mlir_attr *a, const unsigned char *begin,
                         struct bytes s)
{
    const struct mlir_element_row *e = &mlir_elements[a->type->element];
    size_t n = (size_t)(s.end - s.at);
    bool is_narrow = e->bits < 8 && e->kind != 'f';
    a->n = n;
    if (!is_narrow && mlir_stays(b->program, a, begin, s.at))
        return;
    unsigned char *kept = mlir_make_room(b->program, a, n);
    a->bytes = kept;
    if (!is_narrow && n)
        memcpy(kept, s.at, n);
    for (size_t i = 0; i < n && is_narrow; i++) {
        uint64_t bits = s.at[i] & ((1u << e->bits) - 1);
        kept[i] = (unsigned char)(e->kind == 'i'   ? (uint64_t)sign_extended(bits, e->bits)
                                  : e->kind == 'b' ? s.at[i] != 0
                                                   : bits);
    }
}

// A tensor is all of its elements, or one that stands for all.
static const struct mlir_attr *read_dense(struct bytecode *b, struct bytes *s)
{
    const unsigned char *at = s->at;
    const struct mlir_type *type = bytecode_type(b, bytecode_number(b, s));
    struct bytes blob = bytecode_bytes(b, s, bytecode_number(b, s));
    if (!type || b->status)
        return NULL;
    const struct mlir_element_row *e = &mlir_elements[type->element];
    int64_t n = type->kind == MLIR_TENSOR ? mlir_elements_of(type) : -1;
    if (n < 0 || e->bits == 0) {
        bytecode_fail(b, at, "elements of a type that is no tensor of known extents");
        return NULL;
    }
    size_t element = (size_t)(e->bits + 7) / 8, size = (size_t)(blob.end - blob.at);
    bool is_flags = e->bits == 1;
    struct mlir_attr *a = bytecode_new_attr(b, MLIR_DENSE);
    a->type = type;
    // One byte is eight flags or, where there are more or all are the same, each of them.
    bool is_splat_of_flags = is_flags && size == 1 && (n > 8 || *blob.at == 0xff || !*blob.at);
    a->is_splat = n != 1 && (is_flags ? is_splat_of_flags : size == element);
    bool is_packed = is_flags && !a->is_splat && size == ((uint64_t)n + 7) / 8;
    if (!a->is_splat && !is_packed && (size % element || (uint64_t)n != size / element)) {
        bytecode_fail(b, at, "%zu bytes for %" PRId64 " elements of %s", size, n, e->text);
        return NULL;
    }
    if (is_packed)
        set_unpacked(b, a, blob, (size_t)n);
    else
        set_elements(b, a, at, blob);
    return a;
}

static const struct mlir_attr *read_type_attr(struct bytecode *b, struct bytes *s)
{
    const struct mlir_type *type = bytecode_type(b, bytecode_number(b, s));
    struct mlir_attr *a = bytecode_new_attr(b, MLIR_TYPE);
    a->type = type;
    return a;
}

// A word of an enumeration.
static const struct mlir_attr *read_word(struct bytecode *b, struct bytes *s,
                                         const struct vhlo_enum *words)
{
    const unsigned char *at = s->at;
    uint64_t value = bytecode_number(b, s);
    if (value >= VHLO_MAX_WORDS || !words->words[value]) {
        bytecode_fail(b, at, "a %s of number %" PRIu64 ", which VHLO does not have",
                      words->name, value);
        return NULL;
    }
    struct mlir_attr *a = bytecode_new_attr(b, MLIR_ENUM);
    a->text = words->words[value];
    a->n = strlen(a->text);
    return a;
}

static const struct mlir_attr *read_int(struct bytecode *b, struct bytes *s,
                                        enum mlir_attr_kind kind)
{
    uint64_t value = bytecode_number(b, s);
    struct mlir_attr *a = bytecode_new_attr(b, kind);
    a->integer = kind == MLIR_BOOL ? value != 0 : (int64_t)value;
    a->type = kind == MLIR_BOOL ? NULL : bytecode_element_type(b, MLIR_I32);
    return a;
}

// An array of numbers.
static const struct mlir_attr *read_numbers(struct bytecode *b, struct bytes *s)
{
    uint64_t n = bytecode_count(b, s, 1);
    const struct mlir_attr **parts = arena_array(b->arena, const struct mlir_attr *, n);
    for (uint64_t i = 0; i < n; i++)
        parts[i] = int_attr(b, bytecode_signed(b, s));
    struct mlir_attr *a = bytecode_new_attr(b, MLIR_ARRAY);
    a->n = n;
    a->parts = parts;
    return a;
}

static const struct mlir_attr *read_alias(struct bytecode *b, struct bytes *s)
{
    struct mlir_named *named = arena_array(b->arena, struct mlir_named, 3);
    named[0] = (struct mlir_named){"output_tuple_indices", read_numbers(b, s)};
    named[1] = (struct mlir_named){"operand_index", int_attr(b, bytecode_signed(b, s))};
    named[2] = (struct mlir_named){"operand_tuple_indices", read_numbers(b, s)};
    struct mlir_attr *a = bytecode_new_attr(b, MLIR_DICTIONARY);
    a->n = 3;
    a->named = named;
    return a;
}

// As text prints it, leaving out what is zero.
static const struct mlir_attr *read_accuracy(struct bytecode *b, struct bytes *s)
{
    double atol = real_of_bits(MLIR_F64, (uint64_t)bytecode_signed(b, s));
    double rtol = real_of_bits(MLIR_F64, (uint64_t)bytecode_signed(b, s));
    int64_t ulps = bytecode_signed(b, s);
    const struct mlir_attr *mode = bytecode_attr(b, bytecode_number(b, s));
    if (!mode)
        return NULL;
    struct strbuf text = strbuf_make(b->arena);
    strbuf_add(&text, "#stablehlo.result_accuracy<");
    if (atol != 0)
        strbuf_printf(&text, "atol = %.6e, ", atol);
    if (rtol != 0)
        strbuf_printf(&text, "rtol = %.6e, ", rtol);
    if (ulps)
        strbuf_printf(&text, "ulps = %" PRId64 ", ", ulps);
    strbuf_printf(&text, "mode = #stablehlo.result_accuracy_mode<%s>>",
                  mode->kind == MLIR_ENUM ? mode->text : "?");
    return opaque(b, text.text);
}

static const struct mlir_attr *read_vhlo_attr(struct bytecode *b, struct bytes *s)
{
    const unsigned char *at = s->at;
    uint64_t code = bytecode_number(b, s);
    for (const struct vhlo_enum *e = vhlo_enums; e->name; e++)
        if (e->code == code)
            return read_word(b, s, e);
    switch (code) {
    case VHLO_ATTR_ARRAY:
        return read_array(b, s);
    case VHLO_ATTR_BOOL:
        return read_int(b, s, MLIR_BOOL);
    case VHLO_ATTR_API_VERSION:
        return read_int(b, s, MLIR_INT);
    case VHLO_ATTR_DICTIONARY:
        return read_dictionary(b, s);
    case VHLO_ATTR_FLOAT:
        return read_real(b, s);
    case VHLO_ATTR_INTEGER:
        return read_integer(b, s);
    case VHLO_ATTR_ALIAS:
        return read_alias(b, s);
    case VHLO_ATTR_STRING:
        return read_string(b, s);
    case VHLO_ATTR_TENSOR:
        return read_dense(b, s);
    case VHLO_ATTR_TYPE:
        return read_type_attr(b, s);
    case VHLO_ATTR_RESULT_ACCURACY:
        return read_accuracy(b, s);
    case VHLO_ATTR_BOUNDS:
        return opaque(b, "#vhlo");
    case VHLO_ATTR_SUB_AXIS:
    case VHLO_ATTR_AXIS_REF:
    case VHLO_ATTR_GROUP_AXES:
    case VHLO_ATTR_MESH_AXIS:
    case VHLO_ATTR_MESH:
        return opaque(b, bytecode_mesh_text(b, s, code));
    default:
        bytecode_fail(b, at, "an attribute of number %" PRIu64 ", which VHLO does not have",
                      code);
        return NULL;
    }
}

// ---- attributes of MLIR itself ----

static const struct mlir_attr *read_dense_array(struct bytecode *b, struct bytes *s)
{
    const struct mlir_type *type = bytecode_type(b, bytecode_number(b, s));
    uint64_t n = bytecode_number(b, s);
    struct bytes blob = bytecode_bytes(b, s, bytecode_number(b, s));
    if (!type || type->kind != MLIR_SCALAR || n > INT64_MAX)
        return NULL;
    const struct mlir_element_row *e = &mlir_elements[type->element];
    size_t element = (size_t)(e->bits + 7) / 8;
    if (!element || (size_t)(blob.end - blob.at) / element < n)
        return NULL;
    int64_t *dims = arena_array(b->arena, int64_t, 1);
    dims[0] = (int64_t)n;
    struct mlir_attr *a = bytecode_new_attr(b, MLIR_DENSE);
    a->type = bytecode_the_type(
        b, &(struct mlir_type){
               .kind = MLIR_TENSOR, .element = type->element, .rank = 1, .dims = dims});
    blob.end = blob.at + n * element;
    set_elements(b, a, blob.at, blob);
    const struct mlir_attr *numbers = bytecode_numbers(b, a);
    return numbers ? numbers : a;
}

static const struct mlir_attr *read_symbol(struct bytecode *b, struct bytes *s)
{
    const struct mlir_attr *name = bytecode_attr(b, bytecode_number(b, s));
    if (!name || name->kind != MLIR_STRING)
        return NULL;
    struct mlir_attr *a = bytecode_new_attr(b, MLIR_SYMBOL);
    a->text = name->text;
    a->n = name->n;
    return a;
}

static const struct mlir_attr *read_builtin_attr(struct bytecode *b, struct bytes *s)
{
    uint64_t code = bytecode_number(b, s);
    switch (code) {
    case BUILTIN_ATTR_ARRAY:
        return read_array(b, s);
    case BUILTIN_ATTR_DICTIONARY:
        return read_dictionary(b, s);
    case BUILTIN_ATTR_STRING:
    case BUILTIN_ATTR_TYPED_STRING:
        return read_string(b, s);
    case BUILTIN_ATTR_SYMBOL:
    case BUILTIN_ATTR_NESTED_SYMBOL:
        return read_symbol(b, s);
    case BUILTIN_ATTR_TYPE:
        return read_type_attr(b, s);
    case BUILTIN_ATTR_UNIT:
        return bytecode_new_attr(b, MLIR_UNIT);
    case BUILTIN_ATTR_INTEGER:
        return read_integer(b, s);
    case BUILTIN_ATTR_FLOAT:
        return read_real(b, s);
    case BUILTIN_ATTR_DENSE_ARRAY:
        return read_dense_array(b, s);
    case BUILTIN_ATTR_DENSE:
        return read_dense(b, s);
    default:
        return opaque(b, "#builtin");
    }
}

// ---- entries ----

// Numbers of the elements of a tensor of integers or flags, or NULL.
static const int64_t *numbers_of_dense(struct bytecode *b, const struct mlir_attr *a, size_t n)
{
    const struct mlir_element_row *e = &mlir_elements[a->type->element];
    size_t bytes = (size_t)(e->bits + 7) / 8;
    if (!strchr("biu", e->kind) || (a->is_splat && !bytecode_spend(b, n * sizeof(int64_t))))
        return NULL;
    int64_t *numbers = arena_array(b->arena, int64_t, n);
    for (size_t i = 0; i < n; i++) {
        uint64_t bits = 0;
        memcpy(&bits, a->bytes + (a->is_splat ? 0 : i * bytes), bytes);
        numbers[i] = e->kind == 'i' ? sign_extended(bits, (int)bytes * 8) : (int64_t)bits;
    }
    return numbers;
}

static const int64_t *numbers_of_parts(struct bytecode *b, const struct mlir_attr *a)
{
    int64_t *numbers = arena_array(b->arena, int64_t, a->n);
    for (size_t i = 0; i < a->n; i++) {
        if (!a->parts[i] || (a->parts[i]->kind != MLIR_INT && a->parts[i]->kind != MLIR_BOOL))
            return NULL;
        numbers[i] = a->parts[i]->integer;
    }
    return numbers;
}

const struct mlir_attr *bytecode_numbers(struct bytecode *b, const struct mlir_attr *a)
{
    struct made *m = (struct made *)a;
    if (m->was_asked || b->status)
        return m->numbers;
    m->was_asked = true;
    const int64_t *numbers = NULL;
    size_t n = a->n;
    if (a->kind == MLIR_INTS) {
        numbers = a->numbers;
    } else if (a->kind == MLIR_ARRAY) {
        numbers = numbers_of_parts(b, a);
    } else if (a->kind == MLIR_DENSE) {
        n = (size_t)mlir_elements_of(a->type);
        numbers = numbers_of_dense(b, a, n);
    }
    if (numbers) {
        struct mlir_attr *list = bytecode_new_attr(b, MLIR_INTS);
        list->type = a->kind == MLIR_DENSE && a->type->rank == 2 ? a->type : NULL;
        list->n = n;
        list->numbers = numbers;
        m->numbers = list;
    }
    return m->numbers;
}

const struct mlir_attr *bytecode_attr(struct bytecode *b, uint64_t index)
{
    if (!b->status && index < b->n_attrs && b->attrs[index].state == BYTECODE_UNREAD &&
        bytecode_is_location(&b->attrs[index]))
        return bytecode_location(b, index);
    if (bytecode_begin(b, b->attrs, b->n_attrs, index, "an attribute")) {
        struct bytecode_entry *e = &b->attrs[index];
        struct bytes s = e->bytes;
        e->attr = e->is_text                       ? opaque(b, bytecode_text_of(b, s))
                  : e->dialect == BYTECODE_VHLO    ? read_vhlo_attr(b, &s)
                  : e->dialect == BYTECODE_BUILTIN ? read_builtin_attr(b, &s)
                  : e->dialect == BYTECODE_SDY     ? opaque(b, bytecode_sdy_text(b, &s))
                                                   : opaque(b, "#other");
        if (!e->attr && !b->status)
            bytecode_fail(b, e->bytes.at, "an attribute that makes no sense");
        e->state = BYTECODE_READ;
        b->depth--;
    }
    return b->status ? NULL : b->attrs[index].attr;
}
