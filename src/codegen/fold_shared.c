// SPDX-License-Identifier: Apache-2.0
// A loop of few points, fewer than threads, whose folds are most of its work:
//
//     par j < 16 {                       for blocks that a thread has:
//       fold k < 300000 { ... }              for all points: the block's part of the fold to memory
//       put y[j] = %1                =>
//     }                                  for all points: the parts are combined; put
//
// A second fold, of what the first gives, follows with its blocks.  The blocks and the tree that combines
// them are those of one thread, so the bits do not depend on which thread has a block.
#include "codegen/fold_shared.h"
#include "codegen/accumulate.h"
#include "codegen/emit.h"
#include "codegen/index.h"
#include "codegen/lower.h"
#include "codegen/memory.h"
#include "codegen/points.h"
#include "codegen/types.h"

#include "base/dtype.h"

#define MOST_RESULTS (1 << 20) // of blocks, of all points

static uint64_t element_bytes(const struct cg_accumulator *a)
{
    return dtype_get(dtype_real(a->dtype))->bytes;
}

static uint64_t rounded(uint64_t bytes) { return (bytes + 63) / 64 * 64; }

static LLVMValueRef base_at(struct cg_lowering *l, LLVMValueRef memory, uint64_t at,
                            LLVMValueRef first, uint64_t bytes)
{
    LLVMValueRef offset = cg_int(l->module, (int64_t)at);
    if (first)
        offset = cg_add(l, offset, cg_times(l, first, (int64_t)bytes));
    return cg_at(l, l->module->i8, memory, offset);
}

uint64_t cg_fold_lay_out(struct cg_lowering *l, struct cg_fold_plan *p, LLVMValueRef memory,
                         int64_t rows, LLVMValueRef first)
{
    uint64_t at = 0;
    for (uint32_t i = 0; i < p->state.n_combines + p->state.n_puts; i++) {
        const struct cg_accumulator *a = &p->state.accumulators[i];
        uint64_t elements = (uint64_t)(rows * a->count), bytes = element_bytes(a);
        struct cg_results *r = &p->results[i];
        r->base[0] = base_at(l, memory, at, first, bytes);
        at += rounded(elements * bytes);
        if (dtype_is_complex(a->dtype)) {
            r->base[1] = base_at(l, memory, at, first, bytes);
            at += rounded(elements * bytes);
        }
        if (cg_is_arg(a)) {
            r->base[2] = base_at(l, memory, at, first, 8);
            at += rounded(elements * 8);
        }
    }
    return at;
}

int64_t cg_fold_blocks(const struct cg_lowering *l, nest_id fold)
{
    int64_t length = cg_extent(l, cg_statement(l, fold));
    return length ? (length + fold_block(length) - 1) / fold_block(length) : 1;
}

// Rows of results of a point, a whole number of cache lines of the smallest elements.
static int64_t rows_of_point(int64_t blocks) { return (blocks + 63) / 64 * 64; }

// Points along the axis, of which the last vector may have lanes past the end.
static int64_t rounded_extent(const struct cg_lowering *l, nest_id axis)
{
    const struct nest_axis *a = &l->nest->axes.at[axis];
    int64_t lanes = a->vector ? a->vector : 1;
    return (a->extent + lanes - 1) / lanes * lanes;
}

// The number of the point, or of its first lane: along the vector axis last.
static LLVMValueRef number_of_point(struct cg_lowering *l, nest_id points)
{
    const struct nest_statement *s = cg_statement(l, points);
    nest_id last = nest_vector_axis(l->nest, s);
    LLVMValueRef at = cg_int(l->module, 0);
    for (uint32_t i = 0; i < s->n_axes; i++)
        if (s->axes[i] != last)
            at = cg_add(l, cg_times(l, at, l->nest->axes.at[s->axes[i]].extent),
                        l->axes[s->axes[i]]);
    return last == NEST_NONE
               ? at
               : cg_add(l, cg_times(l, at, rounded_extent(l, last)), l->axes[last]);
}

static int64_t count_points(const struct cg_lowering *l, nest_id points)
{
    const struct nest_statement *s = cg_statement(l, points);
    int64_t n = 1;
    for (uint32_t i = 0; i < s->n_axes; i++)
        n *= rounded_extent(l, s->axes[i]);
    return n;
}

// What lanes make one by one, or by tiles, is not by blocks of all lanes.
static bool may_be_shared(struct cg_lowering *l, const struct nest_statement *points,
                          nest_id fold)
{
    const struct nest_statement *s = cg_statement(l, fold);
    nest_id axis = nest_vector_axis(l->nest, points);
    return !nest_accumulates(l->nest, fold) &&
           (axis == NEST_NONE || (nest_vector_axis(l->nest, s) == NEST_NONE &&
                                  cg_crossing_axis(l, points, axis) == NEST_NONE));
}

bool cg_shared_folds_find(struct cg_lowering *l, nest_id points, struct cg_shared_folds *out)
{
    const struct nest_statement *loop = cg_statement(l, points);
    int64_t results = 0;
    bool has_put = false;
    *out = (struct cg_shared_folds){.points = points};
    nest_for_each (s, l->nest, loop->body) {
        nest_id id = nest_id_of(l->nest, s);
        has_put |= s->kind == NEST_PUT;
        if (nest_is_scalar(s) || (s->kind == NEST_PUT && out->n))
            continue;
        if (s->kind != NEST_FOLD || has_put || out->n == CG_SHARED_FOLDS ||
            !may_be_shared(l, loop, id))
            return false;
        out->folds[out->n++] = id;
        results += rows_of_point(cg_fold_blocks(l, id)) * s->n_combines;
    }
    return out->n && !cg_is_network(l, points) && !nest_has_time(l->nest, loop->body) &&
           count_points(l, points) * results <= MOST_RESULTS;
}

const struct nest *cg_shared_folds_cut(struct arena *arena, const struct nest *n,
                                       const struct cg_shared_folds *s)
{
    struct nest *cut = nest_copy(arena, n);
    cut->blocks.at = arena_copy(arena, n->blocks.at, n->blocks.count * sizeof *n->blocks.at);
    struct nest_block *body = &cut->blocks.at[nest_statement_at(n, s->points)->body];
    uint32_t count = 1;
    while (body->statements.at[count - 1] != s->folds[s->now])
        count++;
    body->statements.count = count;
    return cut;
}

bool cg_lower_shared_fold(struct cg_lowering *l, nest_id fold)
{
    struct cg_shared_folds *s = l->shared;
    uint32_t k = 0;
    while (s && k < s->n && s->folds[k] != fold)
        k++;
    if (!s || k == s->n)
        return false;
    struct cg_fold_plan p = cg_fold_plan_make(l, fold, 0);
    int64_t rows = rows_of_point(p.blocks);
    LLVMValueRef first = cg_times(l, number_of_point(l, s->points), rows);
    LLVMValueRef memory = base_at(l, s->memory, s->at[k], NULL, 0);
    s->at[k + 1] =
        s->at[k] + cg_fold_lay_out(l, &p, memory, count_points(l, s->points) * rows, first);
    if (k == s->now && s->block) {
        cg_fold_block(l, &p, s->block, s->block);
        return true;
    }
    for (uint32_t i = 0; k == s->now && i < p.state.n_combines; i++)
        cg_results_combine(l, &p.state.accumulators[i], &p.results[i], p.blocks);
    cg_fold_results(l, &p);
    return true;
}
