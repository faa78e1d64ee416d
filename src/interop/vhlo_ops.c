// SPDX-License-Identifier: Apache-2.0
// Operations of VHLO, as "add_v1", and their attributes in the form that the tree has them in.
#include "interop/bytecode.h"

#include "base/strbuf.h"
#include "interop/vhlo.h"

const struct vhlo_enum vhlo_enums[] = {
    {VHLO_ATTR_DIRECTION, "direction of a comparison", {"EQ", "NE", "GE", "GT", "LE", "LT"}},
    {VHLO_ATTR_COMPARE_TYPE,
     "type of a comparison",
     {"NOTYPE", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"}},
    {VHLO_ATTR_FFT_TYPE, "kind of an FFT", {"FFT", "IFFT", "RFFT", "IRFFT"}},
    {VHLO_ATTR_PRECISION, "precision", {"DEFAULT", "HIGH", "HIGHEST"}},
    {VHLO_ATTR_RNG_ALGORITHM, "random algorithm", {"DEFAULT", "THREE_FRY", "PHILOX"}},
    {VHLO_ATTR_RNG_DISTRIBUTION, "random distribution", {NULL, "UNIFORM", "NORMAL"}},
    {VHLO_ATTR_TRANSPOSE,
     "transpose",
     {"TRANSPOSE_INVALID", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"}},
    {VHLO_ATTR_ACCURACY_MODE, "accuracy", {"DEFAULT", "HIGHEST", "TOLERANCE"}},
    {0},
};

// The fields of a row's text "name:kind name:kind+ ..." that version has.
static void find_fields(struct bytecode *b, struct bytecode_op *op)
{
    VEC(struct bytecode_field) fields = {0};
    for (const char *at = op->row->attrs; *at;) {
        const char *colon = strchr(at, ':'), *end = at + strcspn(at, " ");
        bool is_there = op->version == 1 ? colon[2] != '+' : colon[2] != '-';
        char *name = arena_allocate(b->arena, (size_t)(colon - at) + 1);
        memcpy(name, at, (size_t)(colon - at));
        if (is_there)
            vec_push(b->scratch, &fields,
                     (struct bytecode_field){.name = name,
                                             .kind = colon[1],
                                             .otherwise = mlir_default_find(op->row, name)});
        at = *end ? end + 1 : end;
    }
    op->fields = fields.at;
    op->n_fields = fields.count;
}

// The version at the end of a name, and how long the name is without it; 0 when there is none.
static int version_of(const char *name, size_t *n)
{
    size_t end = *n;
    int version = 0, ten = 1;
    while (end && ten <= 1000 && name[end - 1] >= '0' && name[end - 1] <= '9') {
        version += (name[--end] - '0') * ten;
        ten *= 10;
    }
    if (ten == 1 || end < 2 || name[end - 1] != 'v' || name[end - 2] != '_')
        return 0;
    *n = end - 2;
    return version;
}

struct bytecode_op bytecode_op_find(struct bytecode *b, const struct bytecode_string *dialect,
                                    const struct bytecode_string *name)
{
    struct bytecode_op op = {.name = "?"};
    op.dialect = bytecode_dialect_of(dialect->text);
    size_t n = name->n;
    const char *family = dialect->text;
    if (op.dialect == BYTECODE_VHLO) {
        op.version = version_of(name->text, &n);
        bool is_of_func =
            (n == 4 && (!memcmp(name->text, "call", n) || !memcmp(name->text, "func", n)));
        family = is_of_func ? "func" : "stablehlo";
        // Versions that are not known have attributes that are not known.
        if (op.version < 1 || op.version > 2)
            n = name->n;
    }
    op.row = mlir_row_find(family, name->text, n);
    if (op.row && (op.dialect == BYTECODE_VHLO || op.dialect == BYTECODE_SDY))
        find_fields(b, &op);
    if (bytecode_spend(b, dialect->n + n + 2)) {
        struct strbuf text = strbuf_make(b->arena);
        strbuf_printf(&text, "%s.%.*s", family, (int)n, name->text);
        op.name = text.text;
    }
    return op;
}

// A string that names a function.
static const struct mlir_attr *symbol_of(struct bytecode *b, const struct mlir_attr *a)
{
    if (a->kind != MLIR_STRING)
        return a;
    struct mlir_attr *symbol = arena_copy(b->arena, a, sizeof *a);
    symbol->kind = MLIR_SYMBOL;
    return symbol;
}

static const struct mlir_attr *symbols_of(struct bytecode *b, const struct mlir_attr *a)
{
    if (a->kind != MLIR_ARRAY || !bytecode_spend(b, a->n * sizeof(struct mlir_attr)))
        return a;
    const struct mlir_attr **parts = arena_array(b->arena, const struct mlir_attr *, a->n);
    for (size_t i = 0; i < a->n; i++)
        parts[i] = symbol_of(b, a->parts[i]);
    struct mlir_attr *array = arena_copy(b->arena, a, sizeof *a);
    array->parts = parts;
    return array;
}

// NULL when the attribute is what it is when it is not there.
static const struct mlir_attr *
in_normal_form(struct bytecode *b, const struct bytecode_field *f, const struct mlir_attr *a)
{
    // A value that is not there has a type that is none.
    if (a->kind == MLIR_TYPE && a->type->kind == MLIR_SCALAR && a->type->element == MLIR_NONE)
        return NULL;
    if (f->kind == 'I') {
        const struct mlir_attr *numbers = bytecode_numbers(b, a);
        a = numbers ? numbers : a;
        if (a->kind != MLIR_INTS && !mlir_is_mesh_axes(a))
            bytecode_fail(b, b->op, "the attribute '%s' should be a list of integers", f->name);
    }
    if (f->otherwise && mlir_default_is(f->otherwise, a))
        return NULL;
    if (f->kind == 'y')
        return symbol_of(b, a);
    return !strcmp(f->name, "called_computations") ? symbols_of(b, a) : a;
}

static const struct mlir_attr *find_in(const struct mlir_attr *dictionary, const char *name)
{
    for (size_t i = 0; dictionary && i < dictionary->n; i++)
        if (!strcmp(dictionary->named[i].name, name))
            return dictionary->named[i].attr;
    return NULL;
}

static bool is_field(const struct bytecode_op *kind, const char *name)
{
    for (uint32_t i = 0; i < kind->n_fields; i++)
        if (!strcmp(kind->fields[i].name, name))
            return true;
    return false;
}

void bytecode_attributes(struct bytecode *b, const struct bytecode_op *kind, struct mlir_op *op,
                         struct bytes *properties, const struct mlir_attr *dictionary)
{
    size_t more = dictionary ? dictionary->n : 0;
    if (!kind->n_fields) {
        op->attrs = more ? dictionary->named : NULL;
        op->n_attrs = (uint32_t)more;
        return;
    }
    if (!bytecode_spend(b, more * sizeof(struct mlir_named)))
        return;
    struct mlir_named *attrs = arena_array(b->arena, struct mlir_named, kind->n_fields + more);
    uint32_t n = 0;
    for (uint32_t i = 0; i < kind->n_fields && !b->status; i++) {
        const struct bytecode_field *f = &kind->fields[i];
        const struct mlir_attr *a = properties
                                        ? bytecode_attr(b, bytecode_number(b, properties))
                                        : find_in(dictionary, f->name);
        a = a ? in_normal_form(b, f, a) : NULL;
        if (a)
            attrs[n++] = (struct mlir_named){.name = f->name, .attr = a};
    }
    for (size_t i = 0; i < more; i++)
        if (!is_field(kind, dictionary->named[i].name))
            attrs[n++] = dictionary->named[i];
    op->attrs = attrs;
    op->n_attrs = n;
}
