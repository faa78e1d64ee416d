// SPDX-License-Identifier: Apache-2.0
// What attributes are when they are not there.
#include "interop/mlir_defaults.h"

#include <string.h>

static const struct mlir_default defaults[] = {
#define DEFAULT(op, name, kind, number, text) {op, #name, MLIR_DEFAULT_##kind, number, text},
#include "interop/mlir_defaults.def"
#undef DEFAULT
};

bool mlir_default_is_for_each(const struct mlir_default *d)
{
    const char *name = d->name;
    return strstr(name, "dilation") || !strncmp(name, "window_", 7) || !strcmp(name, "padding");
}

const struct mlir_default *mlir_default_find(const struct mlir_row *row, const char *name)
{
    for (size_t i = 0; i < sizeof defaults / sizeof *defaults; i++)
        if (!strcmp(defaults[i].name, name) &&
            (defaults[i].op[0] == '*' || (row && !strcmp(defaults[i].op, row->name))))
            return &defaults[i];
    return NULL;
}

bool mlir_default_is(const struct mlir_default *d, const struct mlir_attr *a)
{
    bool is_text = a->kind == MLIR_STRING || a->kind == MLIR_ENUM || a->kind == MLIR_OPAQUE;
    bool is_same = true;
    switch (d->kind) {
    case MLIR_DEFAULT_NUMBER:
        return (a->kind == MLIR_INT || a->kind == MLIR_BOOL) && a->integer == d->number;
    case MLIR_DEFAULT_NUMBERS:
        for (size_t i = 0; a->kind == MLIR_INTS && i < a->n; i++)
            is_same = is_same && mlir_default_is_for_each(d) && a->numbers[i] == d->number;
        return is_same && a->kind == MLIR_INTS;
    case MLIR_DEFAULT_TEXT:
        return (is_text && !strcmp(a->text, d->text)) ||
               (!*d->text && a->kind == MLIR_DICTIONARY && !a->n);
    case MLIR_DEFAULT_WORDS:
        for (size_t i = 0; a->kind == MLIR_ARRAY && i < a->n; i++)
            is_same = is_same && a->parts[i]->kind == MLIR_ENUM &&
                      !strcmp(a->parts[i]->text, d->text);
        return is_same && a->kind == MLIR_ARRAY;
    default:
        return (a->kind == MLIR_ARRAY || a->kind == MLIR_DICTIONARY || a->kind == MLIR_INTS) &&
               !a->n;
    }
}
