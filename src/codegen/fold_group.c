// SPDX-License-Identifier: Apache-2.0
// Folds whose lanes are points: accumulators in registers, brought together while they are there.
//
//     fold k < 512 {                     for g in 0..8 {
//       %0 = load x[k]                     a0 = terms g, g + 64, ...   a4 = terms g + 32, g + 96, ...
//       %1 = load w[j + 80*k]              a2 = ...                    a1, a5, a3, a7
//       yield fma %0 %1 sum64              row g = ((a0 + a4) + (a2 + a6)) + ((a1 + a5) + (a3 + a7))
//     }                                  }
//
// The 64 accumulators of a lane fold by halves, so those that are 8 apart come together first.  A term costs no
// access of an accumulator in memory, and an eighth of the rows is left.
#include "codegen/fold_group.h"
#include "codegen/accumulate.h"
#include "codegen/fold.h"
#include "codegen/loop.h"
#include "codegen/lower.h"
#include "codegen/size.h"
#include "codegen/types.h"
#include "ir/cost.h"

// Memory that the terms walk through in one piece, and that no cache holds, is read faster in order.
static bool streams(const struct cg_lowering *l, const struct nest_statement *fold,
                    const struct nest_statement *load)
{
    const struct nest_buffer *b = &l->nest->buffers.at[load->buffer];
    int64_t step = nest_index_factor(&load->index, fold->axes[fold->n_axes - 1]);
    return nest_index_factor(&load->index, l->vector.axis) &&
           step >= -(int64_t)l->vector.lanes && step <= (int64_t)l->vector.lanes &&
           b->count * dtype_get(b->dtype)->bytes > COST_LARGE_BYTES;
}

// A term is few operations, beside which the accesses of an accumulator count.
static bool is_short(const struct cg_lowering *l, const struct nest_statement *fold)
{
    nest_for_each (s, l->nest, fold->body)
        if (s->kind == NEST_LOAD
                ? streams(l, fold, s)
                : s->kind != NEST_CONST && s->kind != NEST_INDEX &&
                      (s->kind != NEST_OP || cost_is_expensive(s->op, s->dtype)))
            return false;
    return cg_may_repeat(l, fold, COST_FOLD_GROUP);
}

unsigned cg_fold_group(const struct cg_lowering *l, const struct cg_fold_plan *p)
{
    const struct nest_statement *s = cg_statement(l, p->statement);
    if (l->gpu || l->vector.lanes == 1 || p->rows < CG_FOLD_LANES || !s->n_combines)
        return 1;
    for (uint32_t i = 0; i < s->n_combines; i++)
        if (ir_is_arg(s->combines[i].op))
            return 1;
    return is_short(l, s) ? COST_FOLD_GROUP : 1;
}

struct group {
    struct cg_lowering *l;
    struct cg_fold_plan *p;
    const struct cg_accumulator *all;
    LLVMValueRef start, last; // the first term of the first accumulator, the end of the block
};

static void one_accumulator(const struct group *g, unsigned i, struct cg_element *out)
{
    struct cg_lowering *l = g->l;
    struct cg_fold *f = &g->p->state;
    LLVMValueRef zero = cg_int(l->module, 0);
    for (uint32_t k = 0; k < f->n_combines; k++)
        cg_accumulator_reset(l, &f->accumulators[k]);
    LLVMValueRef apart = cg_int(l->module, (int64_t)(i * CG_FOLD_LANES / COST_FOLD_GROUP));
    struct cg_loop turn = cg_loop_open(l, LLVMBuildAdd(l->m.b, g->start, apart, ""), g->last,
                                       cg_int(l->module, CG_FOLD_LANES));
    cg_fold_set_position(l, g->p, turn.index);
    f->slot = zero;
    cg_lower_block(l, cg_statement(l, g->p->statement)->body);
    cg_fold_yield(l, g->p, turn.index);
    cg_loop_close(l, &turn);
    for (uint32_t k = 0; k < f->n_combines; k++)
        out[k] = cg_element_load(l, &f->accumulators[k], false, f->accumulators[k].base, zero,
                                 l->vector.lanes);
}

// The accumulators first, first + step, ... of the group.
static void together(const struct group *g, unsigned first, unsigned step,
                     struct cg_element *out)
{
    if (step == COST_FOLD_GROUP) {
        one_accumulator(g, first, out);
        return;
    }
    uint32_t n = g->p->state.n_combines;
    struct cg_element *high = arena_array(g->l->arena, struct cg_element, n);
    together(g, first, 2 * step, out);
    together(g, first + step, 2 * step, high);
    for (uint32_t k = 0; k < n; k++)
        out[k] = cg_element_combine(g->l, &g->all[k], &out[k], &high[k]);
}

void cg_fold_groups(struct cg_lowering *l, struct cg_fold_plan *p, LLVMValueRef first,
                    LLVMValueRef last)
{
    struct cg_fold *f = &p->state;
    uint32_t n = f->n_combines;
    struct group g = {.l = l, .p = p, .all = f->accumulators, .last = last};
    struct cg_accumulator *near = arena_array(l->arena, struct cg_accumulator, n);
    struct cg_element *out = arena_array(l->arena, struct cg_element, n);
    for (uint32_t k = 0; k < n; k++) {
        near[k] = g.all[k];
        cg_accumulator_few_slots(l, &near[k], 1);
    }
    struct cg_loop row =
        cg_loop_open(l, cg_int(l->module, 0),
                     cg_int(l->module, CG_FOLD_LANES / COST_FOLD_GROUP), cg_int(l->module, 1));
    g.start = LLVMBuildAdd(l->m.b, first, row.index, "");
    f->accumulators = near;
    together(&g, 0, 1, out);
    f->accumulators = (struct cg_accumulator *)g.all;
    LLVMValueRef at = LLVMBuildMul(l->m.b, row.index, cg_int(l->module, l->vector.lanes), "");
    for (uint32_t k = 0; k < n; k++)
        cg_element_store(l, &g.all[k], false, g.all[k].base, at, &out[k]);
    cg_loop_close(l, &row);
}
