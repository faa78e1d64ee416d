// SPDX-License-Identifier: Apache-2.0
// Attributes as text.
#include "interop/numbers.h"
#include "interop/text_forms.h"
#include "interop/write_text.h"

#include <string.h>

enum { MOST_LISTED = 32 }; // elements; of more the bytes are written

// ---- words

static bool is_bare(const char *text, const char *more)
{
    for (const char *c = text; *c; c++) {
        bool is_letter = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || *c == '_';
        if (!is_letter && (c == text || !((*c >= '0' && *c <= '9') || strchr(more, *c))))
            return false;
    }
    return *text;
}

void write_string(struct strbuf *out, const char *text, size_t n)
{
    strbuf_add(out, "\"");
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == '\\')
            strbuf_add(out, "\\\\");
        else if (c == '"' || c < ' ' || c > '~')
            strbuf_printf(out, "\\%02X", c);
        else
            strbuf_add_bytes(out, text + i, 1);
    }
    strbuf_add(out, "\"");
}

void write_symbol(struct strbuf *out, const char *name)
{
    // @a::@b is one symbol.
    const char *rest = strstr(name, "::@");
    size_t n = rest ? (size_t)(rest - name) : strlen(name);
    char *first = arena_allocate(out->arena, n + 1);
    memcpy(first, name, n);
    strbuf_add(out, "@");
    if (is_bare(first, "$.-"))
        strbuf_add(out, first);
    else
        write_string(out, first, n);
    if (rest) {
        strbuf_add(out, "::");
        write_symbol(out, rest + 3);
    }
}

const char *write_mesh(struct arena *arena, const char *name, const char *mesh)
{
    struct strbuf text = strbuf_make(arena);
    write_symbol(&text, name);
    strbuf_printf(&text, " = %s", mesh + strcspn(mesh, "<"));
    return text.text;
}

void write_key(struct strbuf *out, const char *name)
{
    if (is_bare(name, "$."))
        strbuf_add(out, name);
    else
        write_string(out, name, strlen(name));
}

// ---- arrays

static void write_integer(struct strbuf *out, enum mlir_element e, const unsigned char *at)
{
    uint64_t bits = 0;
    size_t size = number_bytes(e);
    memcpy(&bits, at, size);
    unsigned shift = 64 - 8 * (unsigned)size;
    if (mlir_elements[e].kind == 'i')
        strbuf_printf(out, "%lld", (long long)((int64_t)(bits << shift) >> shift));
    else
        strbuf_printf(out, "%llu", (unsigned long long)bits);
}

static void write_element(struct strbuf *out, enum mlir_element e, const unsigned char *at)
{
    char text[40];
    enum mlir_element part = number_part(e);
    switch (mlir_elements[e].kind) {
    case 'b':
        strbuf_add(out, *at ? "true" : "false");
        break;
    case 'i':
    case 'u':
        write_integer(out, e, at);
        break;
    case 'c':
        number_print(part, at, text, sizeof text);
        strbuf_printf(out, "(%s,", text);
        number_print(part, at + number_bytes(part), text, sizeof text);
        strbuf_printf(out, "%s)", text);
        break;
    default:
        number_print(e, at, text, sizeof text);
        strbuf_add(out, text);
    }
}

static void write_list(struct strbuf *out, const struct mlir_type *t, int axis,
                       const unsigned char **at)
{
    if (axis == t->rank) {
        write_element(out, t->element, *at);
        *at += number_bytes(t->element);
        return;
    }
    strbuf_add(out, "[");
    for (int64_t i = 0; i < t->dims[axis]; i++) {
        strbuf_add(out, i ? ", " : "");
        write_list(out, t, axis + 1, at);
    }
    strbuf_add(out, "]");
}

static void write_hex(struct strbuf *out, const unsigned char *bytes, size_t n)
{
    static const char digits[] = "0123456789ABCDEF";
    char some[512];
    strbuf_add(out, "\"0x");
    for (size_t i = 0; i < n;) {
        size_t k = 0;
        for (; k < sizeof some && i < n; i++) {
            some[k++] = digits[bytes[i] >> 4];
            some[k++] = digits[bytes[i] & 15];
        }
        strbuf_add_bytes(out, some, k);
    }
    strbuf_add(out, "\"");
}

static void write_dense(struct strbuf *out, const struct mlir_attr *a)
{
    const unsigned char *at = a->bytes;
    strbuf_add(out, "dense<");
    if (a->n == number_bytes(a->type->element))
        write_element(out, a->type->element, at);
    else if (a->n > MOST_LISTED * number_bytes(a->type->element) && a->type->element != MLIR_I1)
        write_hex(out, at, a->n); // of bools there are two ways, so these are words
    else if (a->n)
        write_list(out, a->type, 0, &at);
    strbuf_add(out, "> : ");
    mlir_print_type(out, a->type);
}

// ---- lists of numbers

void write_numbers(struct strbuf *out, const struct mlir_attr *a)
{
    strbuf_add(out, "[");
    for (size_t i = 0; a && i < a->n; i++)
        strbuf_printf(out, i ? ", %lld" : "%lld", (long long)a->numbers[i]);
    strbuf_add(out, "]");
}

// dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>
static void write_table(struct strbuf *out, const struct mlir_attr *a, int64_t rows,
                        int64_t columns)
{
    strbuf_add(out, "dense<");
    for (int64_t i = 0; a->n && i < rows; i++) {
        strbuf_add(out, i ? ", [" : "[[");
        for (int64_t k = 0; k < columns; k++)
            strbuf_printf(out, k ? ", %lld" : "%lld", (long long)a->numbers[i * columns + k]);
        strbuf_add(out, "]");
    }
    strbuf_printf(out, "%s> : tensor<%lldx%lldxi64>", a->n ? "]" : "", (long long)rows,
                  (long long)columns);
}

static void write_array(struct strbuf *out, const char *element, const struct mlir_attr *a)
{
    bool is_bool = !strcmp(element, "i1");
    strbuf_printf(out, "array<%s", element);
    for (size_t i = 0; i < a->n; i++) {
        strbuf_add(out, i ? ", " : ": ");
        if (is_bool)
            strbuf_add(out, a->numbers[i] ? "true" : "false");
        else
            strbuf_printf(out, "%lld", (long long)a->numbers[i]);
    }
    strbuf_add(out, ">");
}

static void write_ints(struct strbuf *out, const char *name, const struct mlir_attr *a)
{
    int64_t table[2];
    if (mlir_table_of(name, a, table))
        write_table(out, a, table[0], table[1]);
    else if (!strcmp(name, "window_reversal"))
        write_array(out, "i1", a);
    else if (a->type && a->type->kind == MLIR_SCALAR)
        write_array(out, mlir_elements[a->type->element].text, a);
    else
        write_array(out, "i64", a);
}

// ---- structures

// #chlo.ragged_dot<lhs_group_dimensions = [0], ...>, #stablehlo.output_operand_alias<...>
static void write_structure(struct strbuf *out, const char *printed, const struct mlir_attr *a)
{
    strbuf_printf(out, "%s<", printed);
    for (size_t i = 0; i < a->n; i++) {
        const struct mlir_attr *part = a->named[i].attr;
        strbuf_printf(out, i ? ", %s = " : "%s = ", a->named[i].name);
        if (part->kind == MLIR_ARRAY || part->kind == MLIR_INTS || part->kind == MLIR_INT)
            write_in_form(out, part->kind == MLIR_INTS ? 'I' : 'a', part);
        else
            write_attr(out, NULL, "", part);
    }
    strbuf_add(out, ">");
}

bool write_is_unread(const struct mlir_attr *a)
{
    return a->kind == MLIR_OPAQUE && a->text[0] == '#' && !strpbrk(a->text, "<.");
}

void write_dictionary(struct strbuf *out, const struct mlir_named *named, size_t n)
{
    bool is_first = true;
    strbuf_add(out, "{");
    for (size_t i = 0; i < n; i++) {
        if (write_is_unread(named[i].attr))
            continue;
        strbuf_add(out, is_first ? "" : ", ");
        is_first = false;
        write_key(out, named[i].name);
        if (named[i].attr->kind == MLIR_UNIT)
            continue;
        strbuf_add(out, " = ");
        write_attr(out, NULL, named[i].name, named[i].attr);
    }
    strbuf_add(out, "}");
}

// ---- any

// The enumeration of a word, by the name of its attribute.
static const char *enumeration(const char *name)
{
    return !strcmp(name, "compare_type")       ? "comparison_type"
           : !strcmp(name, "precision_config") ? "precision"
           : !strcmp(name, "transpose_a")      ? "transpose"
                                               : name;
}

static bool is_32_bits(const char *name)
{
    static const char *const names[] = {"api_version", "exponent_bits", "mantissa_bits",
                                        "index", "version"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(name, names[i]))
            return true;
    return false;
}

static void write_int(struct strbuf *out, const struct mlir_row *row, const char *name,
                      const struct mlir_attr *a)
{
    char letter = form_letter(row, name, strlen(name));
    bool is_unsigned =
        a->type && a->type->kind == MLIR_SCALAR && mlir_elements[a->type->element].kind == 'u';
    if (is_unsigned)
        strbuf_printf(out, "%llu", (unsigned long long)a->integer);
    else
        strbuf_printf(out, "%lld", (long long)a->integer);
    if (letter == 'i') {
        strbuf_add(out, is_32_bits(name) ? " : i32" : " : i64");
    } else {
        strbuf_add(out, " : ");
        if (a->type)
            mlir_print_type(out, a->type);
        else
            strbuf_add(out, "i64");
    }
}

static void write_real(struct strbuf *out, const struct mlir_attr *a)
{
    char text[40];
    unsigned char element[8];
    enum mlir_element e = a->type ? a->type->element : MLIR_F64;
    number_store(e, a->real, element);
    number_print(e, element, text, sizeof text);
    strbuf_printf(out, "%s : %s", text, mlir_elements[e].text);
}

static void write_parts(struct strbuf *out, const struct mlir_row *row, const char *name,
                        const struct mlir_attr *a)
{
    strbuf_add(out, "[");
    for (size_t i = 0; i < a->n; i++) {
        strbuf_add(out, i ? ", " : "");
        write_attr(out, row, name, a->parts[i]);
    }
    strbuf_add(out, "]");
}

void write_attr(struct strbuf *out, const struct mlir_row *row, const char *name,
                const struct mlir_attr *a)
{
    switch (a->kind) {
    case MLIR_UNIT:
        strbuf_add(out, "unit");
        break;
    case MLIR_BOOL:
        strbuf_add(out, a->integer ? "true" : "false");
        break;
    case MLIR_INT:
        write_int(out, row, name, a);
        break;
    case MLIR_REAL:
        write_real(out, a);
        break;
    case MLIR_STRING:
        write_string(out, a->text, a->n);
        if (a->type) {
            strbuf_add(out, " : ");
            mlir_print_type(out, a->type);
        }
        break;
    case MLIR_SYMBOL:
        write_symbol(out, a->text);
        break;
    case MLIR_ENUM:
        strbuf_printf(out, "#%s<%s %s>", row ? row->dialect : "stablehlo", enumeration(name),
                      a->text);
        break;
    case MLIR_TYPE:
        mlir_print_type(out, a->type);
        break;
    case MLIR_ARRAY:
        write_parts(out, row, name, a);
        break;
    case MLIR_DICTIONARY:
        if (row && !strcmp(name, "ragged_dot_dimension_numbers"))
            write_structure(out, "#chlo.ragged_dot", a);
        else if (row && !strcmp(name, "output_operand_aliases"))
            write_structure(out, "#stablehlo.output_operand_alias", a);
        else
            write_dictionary(out, a->named, a->n);
        break;
    case MLIR_INTS:
        write_ints(out, name, a);
        break;
    case MLIR_DENSE:
        write_dense(out, a);
        break;
    case MLIR_LOCATION:
        strbuf_add(out, "loc(");
        if (a->text)
            write_string(out, a->text, strlen(a->text));
        else
            strbuf_add(out, "unknown");
        strbuf_add(out, ")");
        break;
    case MLIR_OPAQUE:
        strbuf_add(out, a->text);
        break;
    }
}

void write_in_form(struct strbuf *out, char letter, const struct mlir_attr *a)
{
    if (letter == 'I' || !a) {
        write_numbers(out, a);
    } else if (a->kind == MLIR_INT) {
        strbuf_printf(out, "%lld", (long long)a->integer);
    } else if (a->kind == MLIR_ENUM) {
        strbuf_add(out, a->text);
    } else if (letter == 'a' && a->kind == MLIR_ARRAY) {
        strbuf_add(out, "[");
        for (size_t i = 0; i < a->n; i++) {
            strbuf_add(out, i ? ", " : "");
            write_in_form(out, 'a', a->parts[i]);
        }
        strbuf_add(out, "]");
    } else {
        write_attr(out, NULL, "", a);
    }
}
