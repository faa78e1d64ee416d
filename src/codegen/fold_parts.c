// SPDX-License-Identifier: Apache-2.0
// Sums of a fold that have nothing in common go through a block one after the other where registers do not hold the
// accumulators of all:
//
//     fold i < N { %0 = load x[i]                 for i in block { x's accumulators += x[i] }
//         %1 = load y[i]                     =>   for i in block { y's accumulators += y[i] }
//         yield reduce_sum %0, reduce_sum %1 }
//
// A part is as many of them as registers hold.
#include "codegen/fold_parts.h"
#include "codegen/accumulate.h"
#include "codegen/emit.h"

#include "base/dtype.h"

#include <string.h>

#define ANY_PART UINT32_MAX // of a statement: parts make it for themselves

static uint32_t root(uint32_t *above, uint32_t i)
{
    while (above[i] != i)
        i = above[i] = above[above[i]];
    return i;
}

// Whether it is a number, or the position: each part may make it.
static bool is_common(const struct nest_statement *s)
{
    return s->kind == NEST_CONST || s->kind == NEST_INDEX;
}

// Statement k of the body that makes the value, n: what no statement of a part makes.
static uint32_t maker_of(const struct cg_lowering *l, const struct nest_block *b, nest_id value,
                         const uint32_t *number)
{
    nest_id s = l->nest->values.at[value].statement;
    uint32_t k = s == NEST_NONE ? b->statements.count : number[s];
    bool is_here = k < b->statements.count && b->statements.at[k] == s;
    return is_here && !is_common(cg_statement(l, s)) ? k : b->statements.count;
}

// Joins the statements and combines, which stand behind them, that have something in common; false where the body is
// more than loads and operations.
static bool join(struct cg_lowering *l, const struct nest_statement *fold, uint32_t *above)
{
    const struct nest_block *b = &l->nest->blocks.at[fold->body];
    uint32_t n = b->statements.count;
    uint32_t *number = arena_array(l->arena, uint32_t, l->nest->statements.count);
    for (uint32_t k = 0; k < n; k++)
        number[b->statements.at[k]] = k;
    for (uint32_t k = 0; k < n + fold->n_combines; k++)
        above[k] = k;
    for (uint32_t k = 0; k < n; k++) {
        const struct nest_statement *s = cg_statement(l, b->statements.at[k]);
        if (!nest_is_scalar(s))
            return false;
        if (is_common(s))
            continue;
        nest_for_uses (v, s) {
            uint32_t maker = maker_of(l, b, v, number);
            if (maker < n)
                above[root(above, maker)] = root(above, k);
        }
    }
    for (uint32_t i = 0; i < fold->n_combines; i++)
        for (uint32_t k = 0; k < fold->combines[i].n; k++) {
            uint32_t maker = maker_of(l, b, fold->combines[i].value[k], number);
            if (maker < n)
                above[root(above, maker)] = root(above, n + i);
        }
    return true;
}

static uint64_t bytes_of(const struct cg_accumulator *a)
{
    return (uint64_t)a->rows * dtype_get(a->dtype)->bytes + (cg_is_arg(a) ? a->rows * 4u : 0);
}

uint32_t cg_fold_parts(struct cg_lowering *l, struct cg_fold_plan *p)
{
    const struct nest_statement *fold = cg_statement(l, p->statement);
    const struct nest_block *b = &l->nest->blocks.at[fold->body];
    uint32_t n = b->statements.count, n_parts = 0, n_combines = fold->n_combines;
    uint64_t room = (uint64_t)l->module->registers * l->module->vector_bytes, bytes = 0;
    for (uint32_t i = 0; i < n_combines; i++)
        bytes += bytes_of(&p->state.accumulators[i]);
    uint32_t *above = arena_array(l->arena, uint32_t, n + n_combines + 1);
    if (!p->state.own_axis || p->is_network || bytes <= room || p->state.n_puts ||
        !join(l, fold, above))
        return 1;
    uint64_t *sum = arena_array(l->arena, uint64_t, n + n_combines);
    for (uint32_t i = 0; i < n_combines; i++)
        sum[root(above, n + i)] += bytes_of(&p->state.accumulators[i]);
    uint32_t *part_of = arena_array(l->arena, uint32_t, n + n_combines);
    memset(part_of, 0xff, (n + n_combines) * sizeof *part_of);
    bytes = 0;
    for (uint32_t i = 0; i < n_combines; i++) {
        uint32_t r = root(above, n + i);
        if (part_of[r] == ANY_PART) {
            bool begins = !n_parts || bytes + sum[r] > room;
            bytes = begins ? sum[r] : bytes + sum[r];
            n_parts += begins;
            part_of[r] = n_parts - 1;
        }
    }
    for (uint32_t k = 0; k < n + n_combines; k++) {
        bool is_common_one = k < n && is_common(cg_statement(l, b->statements.at[k]));
        part_of[k] = is_common_one ? ANY_PART : part_of[root(above, k)];
    }
    p->is_left_out = arena_array(l->arena, bool, n + 1);
    p->part_of_statement = part_of;
    p->part_of_combine = part_of + n;
    return n_parts;
}

void cg_fold_part_open(struct cg_lowering *l, struct cg_fold_plan *p, uint32_t k)
{
    const struct nest_block *b = &l->nest->blocks.at[cg_statement(l, p->statement)->body];
    p->part = k;
    for (uint32_t i = 0; p->part_of_combine && i < b->statements.count; i++) {
        struct cg_mark *mark = &l->marks[b->statements.at[i]];
        bool is_here = p->part_of_statement[i] == ANY_PART || p->part_of_statement[i] == k;
        p->is_left_out[i] = !is_here && !mark->is_hoisted;
        mark->is_hoisted |= !is_here;
    }
}

void cg_fold_part_close(struct cg_lowering *l, const struct cg_fold_plan *p)
{
    const struct nest_block *b = &l->nest->blocks.at[cg_statement(l, p->statement)->body];
    for (uint32_t i = 0; p->part_of_combine && i < b->statements.count; i++)
        l->marks[b->statements.at[i]].is_hoisted &= !p->is_left_out[i];
}
