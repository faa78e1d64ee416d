// SPDX-License-Identifier: Apache-2.0
// What attributes are when they are not there.
#include "interop/mlir_defaults.h"

#include <string.h>

static const struct mlir_default defaults[] = {
    {NULL, "api_version", MLIR_DEFAULT_NUMBER, 1, NULL},
    {NULL, "backend_config", MLIR_DEFAULT_TEXT, 0, ""},
    {NULL, "base_dilations", MLIR_DEFAULT_NUMBERS, 1, NULL},
    {NULL, "called_computations", MLIR_DEFAULT_EMPTY, 0, NULL},
    {NULL, "channel_id", MLIR_DEFAULT_NUMBER, 0, NULL},
    {NULL, "collapsed_slice_dims", MLIR_DEFAULT_NUMBERS, 0, NULL},
    {NULL, "compare_type", MLIR_DEFAULT_TEXT, 0, "NOTYPE"},
    {NULL, "composite_attributes", MLIR_DEFAULT_EMPTY, 0, NULL},
    {"sort", "dimension", MLIR_DEFAULT_NUMBER, -1, NULL},
    {NULL, "has_dynamic_root", MLIR_DEFAULT_NUMBER, 0, NULL},
    {NULL, "has_side_effect", MLIR_DEFAULT_NUMBER, 0, NULL},
    {NULL, "index_vector_dim", MLIR_DEFAULT_NUMBER, 0, NULL},
    {NULL, "indices_are_sorted", MLIR_DEFAULT_NUMBER, 0, NULL},
    {NULL, "infeed_config", MLIR_DEFAULT_TEXT, 0, ""},
    {NULL, "input_batching_dims", MLIR_DEFAULT_NUMBERS, 0, NULL},
    {NULL, "inserted_window_dims", MLIR_DEFAULT_NUMBERS, 0, NULL},
    {NULL, "is_host_transfer", MLIR_DEFAULT_NUMBER, 0, NULL},
    {"sort", "is_stable", MLIR_DEFAULT_NUMBER, 0, NULL},
    {NULL, "known_expanding_dimensions", MLIR_DEFAULT_NUMBERS, 0, NULL},
    {NULL, "known_nonexpanding_dimensions", MLIR_DEFAULT_NUMBERS, 0, NULL},
    {NULL, "layout", MLIR_DEFAULT_EMPTY, 0, NULL},
    {NULL, "lhs_batching_dimensions", MLIR_DEFAULT_NUMBERS, 0, NULL},
    {NULL, "lhs_contracting_dimensions", MLIR_DEFAULT_NUMBERS, 0, NULL},
    {NULL, "lhs_dilation", MLIR_DEFAULT_NUMBERS, 1, NULL},
    {"cholesky", "lower", MLIR_DEFAULT_NUMBER, 0, NULL},
    {NULL, "offset_dims", MLIR_DEFAULT_NUMBERS, 0, NULL},
    {NULL, "operand_batching_dims", MLIR_DEFAULT_NUMBERS, 0, NULL},
    {NULL, "operand_layouts", MLIR_DEFAULT_EMPTY, 0, NULL},
    {NULL, "outfeed_config", MLIR_DEFAULT_TEXT, 0, ""},
    {NULL, "output_operand_aliases", MLIR_DEFAULT_EMPTY, 0, NULL},
    {NULL, "padding", MLIR_DEFAULT_NUMBERS, 0, NULL},
    {NULL, "precision_config", MLIR_DEFAULT_WORDS, 0, "DEFAULT"},
    {NULL, "result_accuracy", MLIR_DEFAULT_TEXT, 0,
     "#stablehlo.result_accuracy<mode = #stablehlo.result_accuracy_mode<DEFAULT>>"},
    {NULL, "result_layouts", MLIR_DEFAULT_EMPTY, 0, NULL},
    {NULL, "result_tilings", MLIR_DEFAULT_EMPTY, 0, NULL},
    {NULL, "rhs_batching_dimensions", MLIR_DEFAULT_NUMBERS, 0, NULL},
    {NULL, "rhs_contracting_dimensions", MLIR_DEFAULT_NUMBERS, 0, NULL},
    {NULL, "rhs_dilation", MLIR_DEFAULT_NUMBERS, 1, NULL},
    {NULL, "scatter_dims_to_operand_dims", MLIR_DEFAULT_NUMBERS, 0, NULL},
    {NULL, "scatter_indices_batching_dims", MLIR_DEFAULT_NUMBERS, 0, NULL},
    {"recv", "source_target_pairs", MLIR_DEFAULT_NUMBERS, 0, NULL},
    {"send", "source_target_pairs", MLIR_DEFAULT_NUMBERS, 0, NULL},
    {NULL, "start_index_map", MLIR_DEFAULT_NUMBERS, 0, NULL},
    {NULL, "start_indices_batching_dims", MLIR_DEFAULT_NUMBERS, 0, NULL},
    {NULL, "unique_indices", MLIR_DEFAULT_NUMBER, 0, NULL},
    {NULL, "update_window_dims", MLIR_DEFAULT_NUMBERS, 0, NULL},
    {NULL, "use_global_device_ids", MLIR_DEFAULT_NUMBER, 0, NULL},
    {"composite", "version", MLIR_DEFAULT_NUMBER, 0, NULL},
    {NULL, "window_dilations", MLIR_DEFAULT_NUMBERS, 1, NULL},
    {NULL, "window_reversal", MLIR_DEFAULT_NUMBERS, 0, NULL},
    {NULL, "window_strides", MLIR_DEFAULT_NUMBERS, 1, NULL},
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
            (!defaults[i].op || (row && !strcmp(defaults[i].op, row->name))))
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
