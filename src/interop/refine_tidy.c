// SPDX-License-Identifier: Apache-2.0
// Takes out what refining leaves behind: constants that nothing uses, and functions that nothing
// calls because all their results are known.
#include "interop/refine_internal.h"

static void mark_used(const struct mlir_block *block, bool *is_used)
{
    for (uint32_t i = 0; i < block->n_ops; i++) {
        const struct mlir_op *op = block->ops[i];
        for (uint32_t k = 0; k < op->n_operands; k++)
            is_used[op->operands[k]->number] = true;
        for (uint32_t k = 0; k < op->n_regions; k++)
            mark_used(&op->regions[k], is_used);
    }
}

static bool is_left_out(const struct mlir_op *op, const bool *is_used)
{
    return op->row && op->row->code == MLIR_OP_stablehlo_constant &&
           !is_used[op->results[0]->number];
}

// What stays, with numbers that are dense again.
static void keep_used(struct mlir_block *block, const bool *is_used, uint32_t *next)
{
    struct mlir_op **ops = (struct mlir_op **)block->ops;
    uint32_t n = 0;
    for (uint32_t i = 0; i < block->n_args; i++)
        block->args[i]->number = (*next)++;
    for (uint32_t i = 0; i < block->n_ops; i++)
        if (!is_left_out(ops[i], is_used))
            ops[n++] = ops[i];
    block->n_ops = n;
    // Numbers of values that are still to be asked for are old ones: regions come first.
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < ops[i]->n_regions; k++)
            keep_used((struct mlir_block *)&ops[i]->regions[k], is_used, next);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < ops[i]->n_results; k++)
            ops[i]->results[k]->number = (*next)++;
}

static void mark_called(struct refiner *r, const char *name, bool *is_called);

static void mark_calls(struct refiner *r, const struct mlir_block *block, bool *is_called)
{
    for (uint32_t i = 0; i < block->n_ops; i++) {
        const struct mlir_op *op = block->ops[i];
        bool is_call = op->row && op->row->code == MLIR_OP_func_call;
        const char *name = mlir_text(op, is_call ? "callee" : "decomposition");
        const struct mlir_attr *more = mlir_attr_find(op, "called_computations");
        if (name)
            mark_called(r, name, is_called);
        for (size_t k = 0; more && more->kind == MLIR_ARRAY && k < more->n; k++)
            if (more->parts[k]->kind == MLIR_SYMBOL)
                mark_called(r, more->parts[k]->text, is_called);
        for (uint32_t k = 0; k < op->n_regions; k++)
            mark_calls(r, &op->regions[k], is_called);
    }
}

static void mark_called(struct refiner *r, const char *name, bool *is_called)
{
    for (uint32_t i = 0; i < r->functions.count; i++)
        if (!is_called[i] && !strcmp(r->functions.at[i].name, name)) {
            is_called[i] = true;
            mark_calls(r, r->functions.at[i].body, is_called);
        }
}

void refine_tidy(struct refiner *r)
{
    bool *is_called = arena_array(r->scratch, bool, r->functions.count);
    mark_called(r, r->functions.at[0].name, is_called);
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->functions.count; i++) {
        struct mlir_function f = r->functions.at[i];
        if (!is_called[i])
            continue;
        bool *is_used = arena_array(r->scratch, bool, f.n_values);
        mark_used(f.body, is_used);
        f.n_values = 0;
        keep_used((struct mlir_block *)f.body, is_used, &f.n_values);
        r->functions.at[n++] = f;
    }
    r->functions.count = n;
}
