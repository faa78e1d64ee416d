// SPDX-License-Identifier: Apache-2.0
// Attributes as text has them, in the form that stablehlo.def gives them.
#include "interop/numbers.h"
#include "interop/text_read.h"

// That one stands for: pairs for each axis of more axes than shapes have.
enum { MOST_NUMBERS = 128 };

static const char *kind_name(char letter)
{
    switch (letter) {
    case 'i':
        return "an integer";
    case 'b':
        return "true or false";
    case 'I':
        return "a list of integers";
    case 'f':
        return "a number with a point";
    case 's':
        return "a string";
    case 'e':
        return "a word of an enumeration";
    case 'y':
        return "a name with @";
    case 't':
        return "a type";
    case 'd':
        return "an array";
    case 'a':
        return "a list";
    default:
        return "a dictionary";
    }
}

// Integers of an array of the text.
static const struct mlir_attr *numbers_of_dense(struct text_reader *r,
                                                const struct mlir_attr *a, const char *where)
{
    enum mlir_element e = a->type->element;
    int64_t n = mlir_elements_of(a->type);
    if (!strchr("biu", mlir_elements[e].kind) || n < 0)
        return NULL;
    if (a->is_splat && n > MOST_NUMBERS)
        text_fail(r, where, "a list of %lld numbers is more than an operation takes",
                  (long long)n);
    size_t size = number_bytes(e);
    int64_t *numbers = arena_array(r->arena, int64_t, n + 1);
    for (int64_t i = 0; i < n; i++) {
        const unsigned char *at = a->bytes + (a->is_splat ? 0 : (size_t)i * size);
        uint64_t bits = 0;
        memcpy(&bits, at, size);
        unsigned shift = 64 - 8 * (unsigned)size;
        numbers[i] =
            mlir_elements[e].kind == 'i' ? (int64_t)(bits << shift) >> shift : (int64_t)bits;
    }
    return text_attr_of(r, (struct mlir_attr){.kind = MLIR_INTS,
                                              .type = a->type->rank == 2 ? a->type : NULL,
                                              .n = (size_t)n,
                                              .numbers = numbers});
}

// Integers and bools of a list of attributes.
static const struct mlir_attr *numbers_of_list(struct text_reader *r, const struct mlir_attr *a)
{
    int64_t *numbers = arena_array(r->arena, int64_t, a->n + 1);
    for (size_t i = 0; i < a->n; i++) {
        const struct mlir_attr *part = a->parts[i];
        if (part->kind != MLIR_INT && part->kind != MLIR_BOOL)
            return NULL;
        numbers[i] = part->integer;
    }
    return text_attr_of(r,
                        (struct mlir_attr){.kind = MLIR_INTS, .n = a->n, .numbers = numbers});
}

static const struct mlir_attr *numbers_of(struct text_reader *r, const struct mlir_attr *a,
                                          const char *where)
{
    switch (a->kind) {
    case MLIR_INTS: {
        struct mlir_attr plain = *a;
        plain.type = NULL;
        return text_attr_of(r, plain);
    }
    case MLIR_DENSE:
        return a->bytes ? numbers_of_dense(r, a, where) : NULL;
    case MLIR_ARRAY:
        return numbers_of_list(r, a);
    default:
        return NULL;
    }
}

// NULL when it is not of that kind.
static const struct mlir_attr *as_letter(struct text_reader *r, char letter,
                                         const struct mlir_attr *a, const char *where)
{
    switch (letter) {
    case 'I':
        return mlir_is_mesh_axes(a) ? a : numbers_of(r, a, where);
    case 'i':
        return a->kind == MLIR_INT ? a : NULL;
    case 'b':
        if (a->kind == MLIR_UNIT || (a->kind == MLIR_INT && (a->integer | 1) == 1))
            return text_attr_of(
                r, (struct mlir_attr){.kind = MLIR_BOOL,
                                      .integer = a->kind == MLIR_UNIT || a->integer});
        return a->kind == MLIR_BOOL ? a : NULL;
    case 'f':
        return a->kind == MLIR_REAL ? a : NULL;
    case 's':
        return a->kind == MLIR_STRING ? a : NULL;
    case 'e':
        return a->kind == MLIR_ENUM ? a : NULL;
    case 'y':
        return a->kind == MLIR_SYMBOL ? a : NULL;
    case 't':
        return a->kind == MLIR_TYPE ? a : NULL;
    case 'd':
        return a->kind == MLIR_DENSE ? a : NULL;
    case 'a':
        return a->kind == MLIR_ARRAY ? a : NULL;
    case 'D':
        return a->kind == MLIR_DICTIONARY ? a : NULL;
    default:
        return a;
    }
}

// The parts of dimension numbers, channels and algorithms stand one by one.
static void flatten(struct text_reader *r, const struct text_list *from, struct text_list *to)
{
    static const char *const structures[] = {"dimension_numbers", "scatter_dimension_numbers",
                                             "dot_dimension_numbers", "algorithm",
                                             "channel_handle"};
    for (uint32_t i = 0; i < from->count; i++) {
        const struct mlir_attr *a = from->at[i].attr;
        bool is_structure = false;
        for (size_t k = 0; k < sizeof structures / sizeof *structures; k++)
            is_structure |= !strcmp(from->at[i].name, structures[k]);
        if (!is_structure || a->kind != MLIR_DICTIONARY) {
            vec_push(r->arena, to, from->at[i]);
            continue;
        }
        bool is_channel = !strcmp(from->at[i].name, "channel_handle");
        for (size_t k = 0; k < a->n; k++) {
            const char *name = a->named[k].name;
            if (is_channel)
                name = !strcmp(name, "handle") ? "channel_id" : "channel_type";
            text_add(r, to, name, a->named[k].attr);
        }
    }
}

void text_normalise(struct text_reader *r, struct mlir_op *op, struct text_list *list,
                    const char *where)
{
    struct text_list flat = {0}, out = {0};
    flatten(r, list, &flat);
    r->lists++;
    for (uint32_t i = 0; i < flat.count; i++) {
        const char *name = flat.at[i].name;
        struct text_word *w = text_intern(r, (struct text_piece){name, strlen(name)});
        if (w->last_list == r->lists)
            text_fail(r, where, "%s has the attribute '%s' twice", op->name, name);
        w->last_list = r->lists;
    }
    const char *spec = op->row ? op->row->attrs : "";
    while (*spec) {
        size_t n = strcspn(spec, ":");
        for (uint32_t i = 0; i < flat.count; i++) {
            struct mlir_named *a = &flat.at[i];
            if (!a->attr || strncmp(a->name, spec, n) != 0 || a->name[n])
                continue;
            const struct mlir_attr *found = as_letter(r, spec[n + 1], a->attr, where);
            if (!found)
                text_fail(r, where, "the attribute '%s' of %s should be %s", a->name, op->name,
                          kind_name(spec[n + 1]));
            text_add(r, &out, a->name, found);
            a->attr = NULL;
        }
        spec += strcspn(spec, " ");
        spec += *spec == ' ';
    }
    for (uint32_t i = 0; i < flat.count; i++)
        if (flat.at[i].attr)
            vec_push(r->arena, &out, flat.at[i]);
    op->attrs = out.at;
    op->n_attrs = out.count;
}
