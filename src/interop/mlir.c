// SPDX-License-Identifier: Apache-2.0
#include "interop/mlir.h"

#include <string.h>

const struct mlir_element_row mlir_elements[MLIR_N_ELEMENTS] = {
#define ELEMENT(name, text, bits, kind, vhlo, export, dtype)                                   \
    {#text, bits, #kind[0], vhlo, export, JOT_##dtype},
#include "interop/elements.def"
#undef ELEMENT
};

const struct mlir_row mlir_rows[MLIR_N_CODES] = {
#define HLO(dialect, name, version, regions, form, attrs)                                      \
    {#dialect, #name, MLIR_OP_##dialect##_##name, version, regions, MLIR_FORM_##form, attrs},
#include "interop/stablehlo.def"
#undef HLO
};

static bool is_text(const char *text, const char *found, size_t n)
{
    return strlen(text) == n && memcmp(text, found, n) == 0;
}

enum mlir_element mlir_element_find(const char *text, size_t n)
{
    int e = 0;
    while (e < MLIR_N_ELEMENTS && !is_text(mlir_elements[e].text, text, n))
        e++;
    return (enum mlir_element)e;
}

const struct mlir_row *mlir_row_find(const char *dialect, const char *name, size_t n)
{
    for (int i = 0; i < MLIR_N_CODES; i++)
        if (is_text(mlir_rows[i].name, name, n) && !strcmp(mlir_rows[i].dialect, dialect))
            return &mlir_rows[i];
    return NULL;
}

void mlir_release(struct mlir_program *p)
{
    if (p)
        arena_release(p->arena);
}

const struct mlir_attr *mlir_attr_find(const struct mlir_op *op, const char *name)
{
    for (uint32_t i = 0; i < op->n_attrs; i++)
        if (!strcmp(op->attrs[i].name, name))
            return op->attrs[i].attr;
    return NULL;
}

int64_t mlir_int(const struct mlir_op *op, const char *name, int64_t otherwise)
{
    const struct mlir_attr *a = mlir_attr_find(op, name);
    if (!a)
        return otherwise;
    if (a->kind == MLIR_UNIT)
        return 1;
    return a->kind == MLIR_INT || a->kind == MLIR_BOOL ? a->integer : otherwise;
}

const int64_t *mlir_ints(const struct mlir_op *op, const char *name, size_t *out_n)
{
    const struct mlir_attr *a = mlir_attr_find(op, name);
    bool is_list = a && a->kind == MLIR_INTS;
    *out_n = is_list ? a->n : 0;
    return is_list && a->n ? a->numbers : NULL;
}

const char *mlir_text(const struct mlir_op *op, const char *name)
{
    const struct mlir_attr *a = mlir_attr_find(op, name);
    bool has = a && (a->kind == MLIR_STRING || a->kind == MLIR_SYMBOL || a->kind == MLIR_ENUM);
    return has ? a->text : NULL;
}

const struct mlir_function *mlir_function_find(const struct mlir_program *p, const char *name)
{
    for (uint32_t i = 0; i < p->n_functions; i++)
        if (!strcmp(p->functions[i].name, name))
            return &p->functions[i];
    return NULL;
}

int64_t mlir_elements_of(const struct mlir_type *t)
{
    int64_t n = 1;
    for (int i = 0; i < t->rank; i++)
        if (t->dims[i] < 0 || __builtin_mul_overflow(n, t->dims[i], &n))
            return -1;
    return n;
}

bool mlir_types_equal(const struct mlir_type *a, const struct mlir_type *b)
{
    if (a == b)
        return true;
    if (a->kind != b->kind || a->element != b->element || a->rank != b->rank ||
        a->n_parts != b->n_parts || a->n_inputs != b->n_inputs)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (a->dims[i] != b->dims[i])
            return false;
    for (uint32_t i = 0; i < a->n_parts; i++)
        if (!mlir_types_equal(a->parts[i], b->parts[i]))
            return false;
    return a->kind != MLIR_OTHER || !strcmp(a->text, b->text);
}
