// SPDX-License-Identifier: Apache-2.0
// Attributes as portable bytecode has them: those of operations in the dialect VHLO, the others in that
// of MLIR itself.
#include "interop/bytecode_write.h"

#include "base/dtype.h"
#include "interop/mlir_defaults.h"
#include "interop/vhlo.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static uint32_t attr_of(struct bytecode_writer *w, bool is_vhlo, const struct strbuf *s)
{
    return bytecode_entry(
        w, &w->attrs, (struct written){.bytes = s->text, .n = s->length, .is_vhlo = is_vhlo});
}

// An attribute that begins with a number.
static struct strbuf begin(struct bytecode_writer *w, uint64_t code)
{
    struct strbuf s = strbuf_make(w->scratch);
    bytecode_put(&s, code);
    return s;
}

// ---- numbers ----

// The bits of an integer or float: a byte, or a zigzag.
static void put_bits(struct strbuf *s, int bits, uint64_t value)
{
    value = bits < 64 ? value & ((UINT64_C(1) << bits) - 1) : value;
    unsigned char byte = (unsigned char)value;
    if (bits <= 8)
        strbuf_add_bytes(s, &byte, 1);
    else
        bytecode_put_signed(s, (int64_t)value);
}

static uint64_t bits_of_real(enum mlir_element e, double x)
{
    uint64_t wide;
    uint32_t word;
    float narrow = (float)x;
    switch (e) {
    case MLIR_F64:
        memcpy(&wide, &x, sizeof wide);
        return wide;
    case MLIR_F32:
        memcpy(&word, &narrow, sizeof word);
        return word;
    case MLIR_BF16:
        return dtype_bf16_from_f32(narrow);
    default:
        return dtype_f16_from_f32(narrow);
    }
}

static enum mlir_element element_or(const struct mlir_type *t, enum mlir_element otherwise)
{
    return t && t->kind == MLIR_SCALAR ? t->element : otherwise;
}

static uint32_t integer_attr(struct bytecode_writer *w, enum mlir_element e, int64_t value)
{
    struct strbuf s = begin(w, VHLO_ATTR_INTEGER);
    bytecode_put(&s, vhlo_element(w, e));
    put_bits(&s, mlir_elements[e].bits, (uint64_t)value);
    return attr_of(w, true, &s);
}

static uint32_t bool_attr(struct bytecode_writer *w, bool value)
{
    struct strbuf s = begin(w, VHLO_ATTR_BOOL);
    bytecode_put(&s, value);
    return attr_of(w, true, &s);
}

static uint32_t real_attr(struct bytecode_writer *w, const struct mlir_attr *a)
{
    enum mlir_element e = element_or(a->type, MLIR_F32);
    if (e < MLIR_F16 || e > MLIR_F64)
        bytecode_write_fail(w, NULL, "a number of %s has no portable form",
                            mlir_elements[e].text);
    struct strbuf s = begin(w, VHLO_ATTR_FLOAT);
    bytecode_put(&s, vhlo_element(w, e));
    put_bits(&s, mlir_elements[e].bits, bits_of_real(e, a->real));
    return attr_of(w, true, &s);
}

uint32_t vhlo_string(struct bytecode_writer *w, const char *text, size_t n)
{
    struct strbuf s = begin(w, VHLO_ATTR_STRING);
    bytecode_put(&s, bytecode_text(w, text, n));
    return attr_of(w, true, &s);
}

uint32_t vhlo_type_attr(struct bytecode_writer *w, const struct mlir_type *t)
{
    struct strbuf s = begin(w, VHLO_ATTR_TYPE);
    bytecode_put(&s, vhlo_type(w, t));
    return attr_of(w, true, &s);
}

static uint32_t none_attr(struct bytecode_writer *w)
{
    return vhlo_type_attr(w, &(struct mlir_type){.kind = MLIR_SCALAR, .element = MLIR_NONE});
}

// ---- tensors ----

// Elements in the bytes of the file: flags are bits there, and all alike are one.
static struct bytes_of {
    const unsigned char *at;
    size_t n;
} bytes_of_tensor(struct bytecode_writer *w, const struct mlir_attr *a)
{
    size_t n = (size_t)mlir_elements_of(a->type);
    if (a->type->element != MLIR_I1)
        return (struct bytes_of){a->bytes, a->n};
    bool is_same = true;
    for (size_t i = 1; !a->is_splat && i < n; i++)
        is_same = is_same && a->bytes[i] == a->bytes[0];
    size_t size = is_same ? n > 0 : (n + 7) / 8;
    unsigned char *packed = arena_allocate(w->scratch, size);
    if (is_same && n)
        packed[0] = a->bytes[0] ? 0xff : 0;
    for (size_t i = 0; !is_same && i < n; i++)
        packed[i / 8] |= (unsigned char)(a->bytes[i] << (i % 8));
    return (struct bytes_of){packed, size};
}

static uint32_t tensor_attr(struct bytecode_writer *w, const struct mlir_attr *a, bool is_vhlo)
{
    struct bytes_of bytes = bytes_of_tensor(w, a);
    struct strbuf s = begin(w, is_vhlo ? VHLO_ATTR_TENSOR : BUILTIN_ATTR_DENSE);
    bytecode_put(&s, is_vhlo ? vhlo_type(w, a->type) : builtin_type(w, a->type));
    bytecode_put(&s, bytes.n);
    return bytecode_entry(w, &w->attrs,
                          (struct written){.bytes = s.text,
                                           .n = s.length,
                                           .more = bytes.at,
                                           .n_more = bytes.n,
                                           .is_vhlo = is_vhlo});
}

// A list of numbers as a tensor of these extents.
static uint32_t numbers_attr(struct bytecode_writer *w, const int64_t *numbers, size_t n,
                             int rank, const int64_t *dims, bool is_flags)
{
    struct mlir_type type = {.kind = MLIR_TENSOR,
                             .element = is_flags ? MLIR_I1 : MLIR_I64,
                             .rank = rank,
                             .dims = dims};
    bool is_same = n > 1;
    for (size_t i = 1; i < n; i++)
        is_same = is_same && (is_flags ? !numbers[i] == !numbers[0] : numbers[i] == numbers[0]);
    size_t kept = is_same ? 1 : n, element = is_flags ? 1 : sizeof *numbers;
    unsigned char *bytes = arena_allocate(w->scratch, kept * element);
    for (size_t i = 0; i < kept; i++)
        memcpy(bytes + i * element, is_flags ? &(int64_t){numbers[i] != 0} : &numbers[i],
               element);
    struct mlir_attr a = {.kind = MLIR_DENSE,
                          .is_splat = is_same,
                          .type = &type,
                          .n = kept * element,
                          .bytes = bytes};
    return tensor_attr(w, &a, true);
}

// ---- attributes of operations ----

static uint32_t word_attr(struct bytecode_writer *w, unsigned code, const char *word)
{
    for (const struct vhlo_enum *e = vhlo_enums; e->name; e++)
        for (unsigned i = 0; e->code == code && i < VHLO_MAX_WORDS; i++)
            if (e->words[i] && !strcmp(e->words[i], word)) {
                struct strbuf s = begin(w, code);
                bytecode_put(&s, i);
                return attr_of(w, true, &s);
            }
    bytecode_write_fail(w, NULL, "%s is no word that VHLO has", word);
    return 0;
}

// Where the name does not tell, a precision.
static unsigned code_of_words(const char *name)
{
    static const struct {
        const char *name;
        unsigned code;
    } words[] = {{"comparison_direction", VHLO_ATTR_DIRECTION},
                 {"compare_type", VHLO_ATTR_COMPARE_TYPE},
                 {"fft_type", VHLO_ATTR_FFT_TYPE},
                 {"rng_algorithm", VHLO_ATTR_RNG_ALGORITHM},
                 {"rng_distribution", VHLO_ATTR_RNG_DISTRIBUTION},
                 {"transpose_a", VHLO_ATTR_TRANSPOSE}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcmp(words[i].name, name))
            return words[i].code;
    return VHLO_ATTR_PRECISION;
}

static double number_behind(const char *text, const char *name)
{
    const char *at = strstr(text, name);
    return at ? strtod(at + strlen(name), NULL) : 0;
}

// From "#stablehlo.result_accuracy<ulps = 10, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>".
static uint32_t accuracy_attr(struct bytecode_writer *w, const char *text)
{
    static const char before[] = "result_accuracy_mode<";
    const char *mode = strstr(text, before);
    mode = mode ? mode + strlen(before) : "DEFAULT>";
    char word[16] = "";
    memcpy(word, mode, strcspn(mode, ">") < sizeof word ? strcspn(mode, ">") : 0);
    uint32_t mode_attr = word_attr(w, VHLO_ATTR_ACCURACY_MODE, word);
    struct strbuf s = begin(w, VHLO_ATTR_RESULT_ACCURACY);
    put_bits(&s, 64, bits_of_real(MLIR_F64, number_behind(text, "atol = ")));
    put_bits(&s, 64, bits_of_real(MLIR_F64, number_behind(text, "rtol = ")));
    bytecode_put_signed(&s, (int64_t)number_behind(text, "ulps = "));
    bytecode_put(&s, mode_attr);
    return attr_of(w, true, &s);
}

static const struct mlir_attr *named_part(const struct mlir_attr *dictionary, const char *name)
{
    for (size_t i = 0; i < dictionary->n; i++)
        if (!strcmp(dictionary->named[i].name, name))
            return dictionary->named[i].attr;
    return NULL;
}

static void put_numbers(struct strbuf *s, const struct mlir_attr *a)
{
    bytecode_put(s, a ? a->n : 0);
    for (size_t i = 0; a && i < a->n; i++)
        bytecode_put_signed(s, a->kind == MLIR_INTS            ? a->numbers[i]
                               : a->parts[i]->kind == MLIR_INT ? a->parts[i]->integer
                                                               : 0);
}

static uint32_t alias_attr(struct bytecode_writer *w, const struct mlir_attr *a)
{
    const struct mlir_attr *operand = named_part(a, "operand_index");
    struct strbuf s = begin(w, VHLO_ATTR_ALIAS);
    put_numbers(&s, named_part(a, "output_tuple_indices"));
    bytecode_put_signed(&s, operand ? operand->integer : 0);
    put_numbers(&s, named_part(a, "operand_tuple_indices"));
    return attr_of(w, true, &s);
}

static bool is_alias(const struct mlir_attr *a)
{
    return a->kind == MLIR_DICTIONARY && a->n == 3 && named_part(a, "operand_index") &&
           named_part(a, "operand_tuple_indices");
}

// An attribute of VHLO.
static uint32_t vhlo_attr(struct bytecode_writer *w, const struct mlir_attr *a);

static uint32_t list_attr(struct bytecode_writer *w, const struct mlir_attr *a)
{
    struct strbuf s = begin(w, VHLO_ATTR_ARRAY);
    bytecode_put(&s, a->n);
    for (size_t i = 0; i < a->n; i++)
        bytecode_put(&s, vhlo_attr(w, a->parts[i]));
    return attr_of(w, true, &s);
}

static uint32_t dictionary_attr(struct bytecode_writer *w, const struct mlir_attr *a)
{
    struct strbuf s = begin(w, VHLO_ATTR_DICTIONARY);
    bytecode_put(&s, a->n);
    for (size_t i = 0; i < a->n; i++) {
        bytecode_put(&s, vhlo_string(w, a->named[i].name, strlen(a->named[i].name)));
        bytecode_put(&s, vhlo_attr(w, a->named[i].attr));
    }
    return attr_of(w, true, &s);
}

static uint32_t vhlo_attr(struct bytecode_writer *w, const struct mlir_attr *a)
{
    uint32_t made = 0;
    if (++w->depth > MLIR_MAX_DEPTH)
        bytecode_write_fail(w, NULL, "an attribute that is too deep");
    switch (w->status ? MLIR_LOCATION : a->kind) {
    case MLIR_UNIT:
    case MLIR_BOOL:
        made = bool_attr(w, a->kind == MLIR_UNIT || a->integer);
        break;
    case MLIR_INT:
        made = integer_attr(w, element_or(a->type, MLIR_I64), a->integer);
        break;
    case MLIR_REAL:
        made = real_attr(w, a);
        break;
    case MLIR_STRING:
    case MLIR_SYMBOL:
        made = vhlo_string(w, a->text, a->kind == MLIR_STRING ? a->n : strlen(a->text));
        break;
    case MLIR_ENUM:
        made = word_attr(w, VHLO_ATTR_PRECISION, a->text);
        break;
    case MLIR_TYPE:
        made = vhlo_type_attr(w, a->type);
        break;
    case MLIR_ARRAY:
        made = list_attr(w, a);
        break;
    case MLIR_DICTIONARY:
        made = is_alias(a) ? alias_attr(w, a) : dictionary_attr(w, a);
        break;
    case MLIR_INTS:
        made = numbers_attr(w, a->numbers, a->n, 1, &(int64_t){(int64_t)a->n}, false);
        break;
    case MLIR_DENSE:
        made = tensor_attr(w, a, true);
        break;
    default:
        bytecode_write_fail(w, NULL, "the attribute %s has no portable form",
                            a->text ? a->text : "location");
    }
    w->depth--;
    return made;
}

uint32_t vhlo_dictionaries(struct bytecode_writer *w, const struct mlir_attr *const *each,
                           uint32_t n)
{
    static const struct mlir_attr empty = {.kind = MLIR_DICTIONARY};
    bool is_empty = true;
    for (uint32_t i = 0; each && i < n; i++)
        is_empty = is_empty && (!each[i] || !each[i]->n);
    struct strbuf s = begin(w, VHLO_ATTR_ARRAY);
    bytecode_put(&s, is_empty ? 0 : n);
    for (uint32_t i = 0; !is_empty && i < n; i++)
        bytecode_put(&s, dictionary_attr(w, each[i] ? each[i] : &empty));
    return attr_of(w, true, &s);
}

// ---- properties ----

static uint32_t api_version_attr(struct bytecode_writer *w, int64_t value)
{
    struct strbuf s = begin(w, VHLO_ATTR_API_VERSION);
    bytecode_put(&s, (uint64_t)value);
    return attr_of(w, true, &s);
}

static uint32_t int_field(struct bytecode_writer *w, const char *name, int64_t value)
{
    bool is_narrow =
        strstr(name, "_bits") || !strcmp(name, "version") || !strcmp(name, "index");
    if (!strcmp(name, "api_version"))
        return api_version_attr(w, value);
    return integer_attr(w, is_narrow ? MLIR_I32 : MLIR_I64, value);
}

static uint32_t numbers_field(struct bytecode_writer *w, const char *name,
                              const struct mlir_attr *a)
{
    int64_t table[2], list[1] = {(int64_t)a->n};
    bool is_table = mlir_table_of(name, a, table);
    return numbers_attr(w, a->numbers, a->n, is_table ? 2 : 1, is_table ? table : list,
                        !strcmp(name, "window_reversal"));
}

// A list of a number for each dimension of the windows of the operation.
static uint32_t default_numbers(struct bytecode_writer *w, const struct mlir_op *op,
                                const struct mlir_default *d)
{
    size_t n = 0, found;
    if (mlir_default_is_for_each(d)) {
        mlir_ints(op, "input_spatial_dimensions", &n);
        mlir_ints(op, "window_dimensions", &found);
        n = n ? n : found;
        n = !strcmp(d->name, "padding") ? 2 * n : n;
    }
    int64_t *numbers = arena_array(w->scratch, int64_t, n);
    for (size_t i = 0; i < n; i++)
        numbers[i] = d->number;
    return numbers_field(w, d->name, &(struct mlir_attr){.n = n, .numbers = numbers});
}

// What an attribute is that is not there.
static uint32_t default_field(struct bytecode_writer *w, const struct mlir_op *op,
                              const struct mlir_default *d, char kind)
{
    const struct mlir_attr word = {.kind = MLIR_ENUM, .text = d->text};
    const struct mlir_attr *const words[] = {&word, &word};
    switch (d->kind) {
    case MLIR_DEFAULT_NUMBER:
        return kind == 'b' ? bool_attr(w, d->number) : int_field(w, d->name, d->number);
    case MLIR_DEFAULT_NUMBERS:
        return default_numbers(w, op, d);
    case MLIR_DEFAULT_WORDS:
        return list_attr(w, &(struct mlir_attr){.kind = MLIR_ARRAY, .n = 2, .parts = words});
    case MLIR_DEFAULT_TEXT:
        if (kind == 'e')
            return word_attr(w, code_of_words(d->name), d->text);
        if (!strcmp(d->name, "result_accuracy"))
            return accuracy_attr(w, d->text);
        if (!strcmp(d->name, "backend_config") && mlir_int(op, "api_version", 1) == 4)
            return dictionary_attr(w, &(struct mlir_attr){.kind = MLIR_DICTIONARY});
        return vhlo_string(w, d->text, strlen(d->text));
    default:
        return kind == 'D' ? dictionary_attr(w, &(struct mlir_attr){.kind = MLIR_DICTIONARY})
                           : list_attr(w, &(struct mlir_attr){.kind = MLIR_ARRAY});
    }
}

static uint32_t field_attr(struct bytecode_writer *w, const struct mlir_op *op,
                           const char *name, char kind)
{
    const struct mlir_attr *a = mlir_attr_find(op, name);
    const struct mlir_default *d = mlir_default_find(op->row, name);
    if (!a || (d && mlir_default_is(d, a)))
        a = NULL;
    if (!a && d)
        return default_field(w, op, d, kind);
    if (!a && op->row->code == MLIR_OP_stablehlo_dot_general)
        return none_attr(w); // of an algorithm
    if (!a) {
        bytecode_write_fail(w, op, "there is no %s", name);
        return 0;
    }
    if (kind == 'I' && a->kind == MLIR_INTS)
        return numbers_field(w, name, a);
    if (kind == 'i' && a->kind == MLIR_INT)
        return int_field(w, name, a->integer);
    if (kind == 'e' && a->kind == MLIR_ENUM)
        return word_attr(w, code_of_words(name), a->text);
    if (kind == 'x' && a->kind == MLIR_OPAQUE && !strcmp(name, "result_accuracy"))
        return accuracy_attr(w, a->text);
    return vhlo_attr(w, a);
}

// The next field "name:kind" of a row, with a mark behind it or none; NULL at the end.
static const char *next_field(struct bytecode_writer *w, const char *at, char **name,
                              char *kind, char *mark)
{
    if (!*at)
        return NULL;
    size_t n = strcspn(at, ":"), all = strcspn(at, " ");
    *name = arena_allocate(w->scratch, n + 1);
    memcpy(*name, at, n);
    *kind = at[n + 1];
    *mark = all > n + 2 ? at[n + 2] : 0;
    return at + all + (at[all] == ' ');
}

uint32_t vhlo_properties(struct bytecode_writer *w, const struct mlir_op *op)
{
    struct strbuf s = strbuf_make(w->scratch);
    char *name, kind, mark;
    const char *at = op->row->attrs;
    while ((at = next_field(w, at, &name, &kind, &mark)) != NULL)
        if (mark != (op->row->version == 1 ? '+' : '-'))
            bytecode_put(&s, field_attr(w, op, name, kind));
    return bytecode_entry(w, &w->properties, (struct written){.bytes = s.text, .n = s.length});
}

// ---- attributes of MLIR itself ----

static uint32_t builtin_string(struct bytecode_writer *w, const char *text, size_t n)
{
    struct strbuf s = begin(w, BUILTIN_ATTR_STRING);
    bytecode_put(&s, bytecode_text(w, text, n));
    return attr_of(w, false, &s);
}

static uint32_t builtin_number(struct bytecode_writer *w, const struct mlir_attr *a)
{
    bool is_real = a->kind == MLIR_REAL;
    enum mlir_element e = a->kind == MLIR_BOOL ? MLIR_I1
                          : is_real            ? element_or(a->type, MLIR_F32)
                                               : element_or(a->type, MLIR_I64);
    struct strbuf s = begin(w, is_real ? BUILTIN_ATTR_FLOAT : BUILTIN_ATTR_INTEGER);
    bytecode_put(&s, builtin_type(w, &(struct mlir_type){.kind = MLIR_SCALAR, .element = e}));
    put_bits(&s, mlir_elements[e].bits,
             is_real ? bits_of_real(e, a->real) : (uint64_t)a->integer);
    return attr_of(w, false, &s);
}

static uint32_t builtin_numbers(struct bytecode_writer *w, const struct mlir_attr *a)
{
    struct strbuf s = begin(w, BUILTIN_ATTR_DENSE_ARRAY);
    struct mlir_type type = {.kind = MLIR_SCALAR, .element = MLIR_I64};
    bytecode_put(&s, builtin_type(w, &type));
    bytecode_put(&s, a->n);
    bytecode_put(&s, a->n * sizeof *a->numbers);
    strbuf_add_bytes(&s, a->numbers, a->n * sizeof *a->numbers);
    return attr_of(w, false, &s);
}

// One of MLIR itself.
static uint32_t builtin_attr(struct bytecode_writer *w, const struct mlir_attr *a);

static uint32_t builtin_list(struct bytecode_writer *w, const struct mlir_attr *a)
{
    bool is_array = a->kind == MLIR_ARRAY;
    struct strbuf s = begin(w, is_array ? BUILTIN_ATTR_ARRAY : BUILTIN_ATTR_DICTIONARY);
    bytecode_put(&s, a->n);
    for (size_t i = 0; i < a->n; i++) {
        const char *name = is_array ? "" : a->named[i].name;
        if (!is_array)
            bytecode_put(&s, builtin_string(w, name, strlen(name)));
        bytecode_put(&s, builtin_attr(w, is_array ? a->parts[i] : a->named[i].attr));
    }
    return attr_of(w, false, &s);
}

static uint32_t builtin_attr(struct bytecode_writer *w, const struct mlir_attr *a)
{
    struct strbuf s;
    uint32_t made = 0;
    if (++w->depth > MLIR_MAX_DEPTH)
        bytecode_write_fail(w, NULL, "an attribute that is too deep");
    switch (w->status ? MLIR_LOCATION : a->kind) {
    case MLIR_UNIT:
        s = begin(w, BUILTIN_ATTR_UNIT);
        made = attr_of(w, false, &s);
        break;
    case MLIR_BOOL:
    case MLIR_INT:
    case MLIR_REAL:
        made = builtin_number(w, a);
        break;
    case MLIR_STRING:
    case MLIR_ENUM:
        made = builtin_string(w, a->text, a->kind == MLIR_STRING ? a->n : strlen(a->text));
        break;
    case MLIR_SYMBOL:
        s = begin(w, BUILTIN_ATTR_SYMBOL);
        bytecode_put(&s, builtin_string(w, a->text, strlen(a->text)));
        made = attr_of(w, false, &s);
        break;
    case MLIR_INTS:
        made = builtin_numbers(w, a);
        break;
    case MLIR_ARRAY:
    case MLIR_DICTIONARY:
        made = builtin_list(w, a);
        break;
    case MLIR_DENSE:
        made = tensor_attr(w, a, false);
        break;
    default:
        bytecode_write_fail(w, NULL, "an attribute that has no portable form");
    }
    w->depth--;
    return made;
}

// "file:line", or a name.
uint32_t builtin_location(struct bytecode_writer *w, const struct mlir_attr *location)
{
    struct strbuf s;
    if (!location || !location->text) {
        s = begin(w, BUILTIN_ATTR_LOC_UNKNOWN);
        return attr_of(w, false, &s);
    }
    const char *text = location->text, *colon = strrchr(text, ':');
    char *end = NULL;
    uint64_t line =
        colon && colon[1] >= '0' && colon[1] <= '9' ? strtoull(colon + 1, &end, 10) : 0;
    bool is_place = end && !*end;
    uint32_t name = builtin_string(w, text, is_place ? (size_t)(colon - text) : strlen(text));
    uint32_t unknown = is_place ? 0 : builtin_location(w, NULL);
    s = begin(w, is_place ? BUILTIN_ATTR_LOC_LINE : BUILTIN_ATTR_LOC_NAME);
    bytecode_put(&s, name);
    bytecode_put(&s, is_place ? line : unknown);
    if (is_place)
        bytecode_put(&s, 0);
    return attr_of(w, false, &s);
}

static bool is_of_row(struct bytecode_writer *w, const struct mlir_row *row, const char *name)
{
    char *field, kind, mark;
    const char *at = row ? row->attrs : "";
    while ((at = next_field(w, at, &field, &kind, &mark)) != NULL)
        if (!strcmp(field, name))
            return true;
    return false;
}

// Attributes of which only a text is known say nothing on one device: they are left out.
bool builtin_discardable(struct bytecode_writer *w, const struct mlir_row *row,
                         const struct mlir_named *attrs, uint32_t n, uint32_t *out_attr)
{
    struct mlir_named *kept = arena_array(w->scratch, struct mlir_named, n);
    size_t n_kept = 0;
    for (uint32_t i = 0; i < n; i++)
        if (attrs[i].attr->kind != MLIR_OPAQUE && !is_of_row(w, row, attrs[i].name))
            kept[n_kept++] = attrs[i];
    if (n_kept)
        *out_attr = builtin_list(
            w, &(struct mlir_attr){.kind = MLIR_DICTIONARY, .n = n_kept, .named = kept});
    return n_kept != 0;
}
