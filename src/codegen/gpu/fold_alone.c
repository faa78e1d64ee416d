// SPDX-License-Identifier: Apache-2.0
// Folds in the order that docs/numerics.md fixes, by one thread: it takes the 64 accumulators
// one after the other, so that it needs no more than one and what waits of the tree.
#include "codegen/gpu/fold_alone.h"
#include "codegen/accumulate.h"
#include "codegen/fold.h"
#include "codegen/gpu/device.h"
#include "codegen/gpu/fold.h"
#include "codegen/gpu/tree.h"
#include "codegen/loop.h"
#include "codegen/lower.h"
#include "codegen/size.h"
#include "codegen/types.h"
#include "map/gpu_lanes.h"

#define AT_ONCE 8 // windows that are read at once

// Accumulators a, a + step, a + 2 step, ... of a short fold, each of which has one element or
// none.
static void fold_short(struct cg_lowering *l, const struct nest_statement *s,
                       struct cg_accumulator *all, int64_t length, unsigned rows, unsigned a,
                       unsigned step, struct cg_element *out)
{
    if (step < rows) {
        struct cg_element *high = arena_array(l->arena, struct cg_element, s->n_combines + 1);
        fold_short(l, s, all, length, rows, a, 2 * step, out);
        fold_short(l, s, all, length, rows, a + step, 2 * step, high);
        for (uint32_t i = 0; i < s->n_combines; i++)
            out[i] = cg_element_combine(l, &all[i], &out[i], &high[i]);
        return;
    }
    LLVMValueRef position = gpu_i32(l, a), at = cg_int(l->module, a);
    for (uint32_t i = 0; i < s->n_combines; i++)
        gpu_fold_reset(l, &all[i], position);
    if (a < length)
        gpu_fold_element(l, s, all, at, cg_int(l->module, 0), position);
    for (uint32_t i = 0; i < s->n_combines; i++) {
        out[i] = gpu_fold_take(l, &all[i]);
        cg_element_to_sequence(l, &out[i], cg_int(l->module, 0));
    }
}

// Elements first, first + rows, ... of the block that begins at `start`, so many at once while
// the first of them is below `last`.
static void leaf_elements(struct cg_lowering *l, const struct gpu_alone *p, LLVMValueRef start,
                          LLVMValueRef first, LLVMValueRef last, int64_t at_once)
{
    LLVMBuilderRef b = l->m.b;
    int64_t step = p->rows * at_once;
    struct cg_loop loop = cg_loop_open(l, first, last, cg_int(l->module, step));
    for (int64_t k = 0; k < step; k += p->rows) {
        LLVMValueRef at = LLVMBuildAdd(b, loop.index, cg_int(l->module, k), "");
        LLVMValueRef in_block =
            LLVMBuildTrunc(b, LLVMBuildSub(b, at, start, ""), l->module->i32, "");
        gpu_fold_element(l, p->s, p->all, at, cg_int(l->module, 0), in_block);
    }
    cg_loop_close(l, &loop);
}

// Where a loop from `first` on by so many elements ends that does only whole steps before
// `last`.
static LLVMValueRef whole_steps(struct cg_lowering *l, LLVMValueRef first, LLVMValueRef last,
                                int64_t step)
{
    LLVMBuilderRef b = l->m.b;
    LLVMValueRef size = cg_int(l->module, step), n = LLVMBuildSub(b, last, first, "");
    n = LLVMBuildSub(b, n, LLVMBuildSRem(b, n, size, ""), "");
    LLVMValueRef none = cg_int(l->module, 0);
    n = LLVMBuildSelect(b, LLVMBuildICmp(b, LLVMIntSLT, n, none, ""), none, n, "");
    return LLVMBuildAdd(b, first, n, "");
}

// Elements first, first + rows, ... below `last` of the sequence, the first being number a of
// its block.
static void leaf(struct cg_lowering *l, const struct gpu_alone *p, LLVMValueRef start,
                 LLVMValueRef a, LLVMValueRef last, struct cg_element *out)
{
    LLVMBuilderRef b = l->m.b;
    LLVMValueRef position = LLVMBuildTrunc(b, a, l->module->i32, "");
    for (uint32_t i = 0; i < p->s->n_combines; i++)
        gpu_fold_reset(l, &p->all[i], position);
    LLVMValueRef first = LLVMBuildAdd(b, start, a, "");
    bool are_many =
        p->length >= AT_ONCE * p->rows && map_is_short(l->nest, p->s->body, AT_ONCE);
    if (are_many && p->length % p->block == 0) {
        leaf_elements(l, p, start, first, last, AT_ONCE);
    } else if (are_many) {
        LLVMValueRef rest = whole_steps(l, first, last, p->rows * AT_ONCE);
        leaf_elements(l, p, start, first, rest, AT_ONCE);
        leaf_elements(l, p, start, rest, last, 1);
    } else {
        leaf_elements(l, p, start, first, last, 1);
    }
    for (uint32_t i = 0; i < p->s->n_combines; i++) {
        out[i] = gpu_fold_take(l, &p->all[i]);
        cg_element_to_sequence(l, &out[i], start);
    }
}

// Accumulators in the order of the leaves of their tree, bits reversed: so many, a power of
// two, from the given one on.
static void fold_leaves(struct cg_lowering *l, const struct gpu_alone *p, LLVMValueRef start,
                        LLVMValueRef first, int64_t count, struct cg_element *out)
{
    LLVMBuilderRef b = l->m.b;
    LLVMValueRef n = cg_int(l->module, p->length), last = n;
    if (p->blocks > 1) {
        last = LLVMBuildAdd(b, start, cg_int(l->module, p->block), "");
        last = LLVMBuildSelect(b, LLVMBuildICmp(b, LLVMIntSLT, last, n, ""), last, n, "");
    }
    struct gpu_tree tree = gpu_tree_make(l, p->s->n_combines, p->all, count);
    struct cg_loop loop =
        cg_loop_open(l, cg_int(l->module, 0), cg_int(l->module, count), cg_int(l->module, 1));
    LLVMValueRef a = LLVMBuildAdd(b, first, loop.index, "");
    a = cg_intrinsic(&l->m, "llvm.bitreverse", l->module->i64, 1, (LLVMValueRef[]){a});
    if (p->bits)
        a = LLVMBuildLShr(b, a, cg_int(l->module, 64 - p->bits), "");
    else
        a = cg_int(l->module, 0);
    leaf(l, p, start, a, last, out);
    gpu_tree_push(l, &tree, loop.index, out);
    cg_loop_close(l, &loop);
    gpu_tree_top(l, &tree, count, out);
}

static void fold_block_alone(struct cg_lowering *l, const struct gpu_alone *p,
                             LLVMValueRef start, struct cg_element *out)
{
    fold_leaves(l, p, start, cg_int(l->module, 0), p->rows, out);
}

// Units first .. first + count - 1, at most so many, as one of the tree.
void gpu_alone_units(struct cg_lowering *l, const struct gpu_alone *p, LLVMValueRef first,
                     LLVMValueRef count, int64_t most, struct cg_element *out)
{
    LLVMBuilderRef b = l->m.b;
    LLVMValueRef units = cg_int(l->module, p->units);
    struct gpu_tree tree = gpu_tree_make(l, p->s->n_combines, p->all, most);
    struct cg_loop loop = cg_loop_open(l, cg_int(l->module, 0), count, cg_int(l->module, 1));
    LLVMValueRef unit = LLVMBuildAdd(b, first, loop.index, "");
    LLVMValueRef block = LLVMBuildUDiv(b, unit, units, "");
    int64_t leaves = p->rows / p->units;
    LLVMValueRef leaf = LLVMBuildURem(b, unit, units, "");
    leaf = LLVMBuildMul(b, leaf, cg_int(l->module, leaves), "");
    fold_leaves(l, p, LLVMBuildMul(b, block, cg_int(l->module, p->block), ""), leaf, leaves,
                out);
    gpu_tree_push(l, &tree, loop.index, out);
    cg_loop_close(l, &loop);
    if (LLVMIsConstant(count))
        gpu_tree_top(l, &tree, LLVMConstIntGetSExtValue(count), out);
    else
        gpu_tree_any(l, &tree, count, out);
}

struct gpu_alone gpu_alone_make(struct cg_lowering *l, nest_id id, int64_t units)
{
    const struct nest_statement *s = cg_statement(l, id);
    struct gpu_alone p = {.s = s, .length = cg_extent(l, s), .rows = 1, .units = units};
    p.block = fold_block(p.length);
    p.blocks = p.length > p.block ? (p.length + p.block - 1) / p.block : 1;
    for (; p.rows < FOLD_LANES && p.rows < p.length; p.rows *= 2)
        p.bits++;
    p.all = gpu_fold_accumulators(l, s, false, 1);
    return p;
}

void gpu_fold_alone(struct cg_lowering *l, nest_id id)
{
    const struct nest_statement *s = cg_statement(l, id);
    if (nest_accumulates(l->nest, id)) {
        cg_lower_fold(l, id);
        return;
    }
    struct gpu_alone p = gpu_alone_make(l, id, 1);
    struct cg_element *out = arena_array(l->arena, struct cg_element, s->n_combines + 1);
    if (map_fold_is_written_out(l->nest, id, cg_room(l))) {
        for (uint32_t i = 0; i < s->n_combines; i++)
            p.all[i].elements = cg_is_arg(&p.all[i]) ? 0 : (unsigned)p.length;
        fold_short(l, s, p.all, p.length, p.rows, 0, 1, out);
        for (uint32_t i = 0; i < s->n_combines; i++)
            out[i] = cg_element_of_short(l, &p.all[i], &out[i]);
    } else if (p.blocks == 1) {
        fold_block_alone(l, &p, cg_int(l->module, 0), out);
    } else {
        gpu_alone_units(l, &p, cg_int(l->module, 0), cg_int(l->module, p.blocks), p.blocks,
                        out);
    }
    gpu_fold_results(l, s, p.all, out);
}

void gpu_alone_define(struct cg_lowering *l, const struct gpu_alone *p,
                      const struct cg_element *results)
{
    gpu_fold_results(l, p->s, p->all, results);
}
