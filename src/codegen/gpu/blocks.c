// SPDX-License-Identifier: Apache-2.0
// Long folds by the whole grid: blocks of threads have blocks of a fold, and the one that ends last
// brings them together and does the rest.  The fold is one, or one of each of few points, whose blocks
// of threads count apart:
//
//     fold j { } ...                     par i < 8 { ... fold j { } ... }
//
// Where the elements are dear and the blocks few, the terms are computed first, a thread each, so that
// all threads have a share of that work: in shared memory by who has the block of the fold, or by a
// function before, where the blocks would keep too few multiprocessors busy.
#include "codegen/gpu/blocks.h"
#include "codegen/access.h"
#include "codegen/accumulate.h"
#include "codegen/emit.h"
#include "codegen/gpu/device.h"
#include "codegen/gpu/entry.h"
#include "codegen/gpu/fold.h"
#include "codegen/gpu/gpu.h"
#include "codegen/gpu/points.h"
#include "codegen/gpu/tree.h"
#include "codegen/kernel.h"
#include "codegen/loop.h"
#include "codegen/lower.h"
#include "codegen/memory.h"
#include "codegen/scalar.h"
#include "codegen/types.h"
#include "map/gpu_groups.h"
#include "map/gpu_lanes.h"
#include "map/gpu_scratch.h"
#include "map/gpu_shared.h"

#include "ir/cost.h"

#define BLOCK 256

// A fold that blocks share, and what stands around it.
struct shared_fold {
    nest_id fold;
    uint32_t block, at; // its statements, and which of them the fold is
    uint32_t outer; // statements of the kernel before it, or before the loop that it stands in
    struct map_points points; // of that loop; no statement: it stands in none
};

static struct shared_fold shared_fold_of(struct cg_lowering *l, uint32_t at)
{
    const struct nest_block *all = &l->nest->blocks.at[0], *b;
    struct shared_fold t = {.at = at, .outer = at, .points = {.count = 1}};
    const struct nest_statement *s = cg_statement(l, all->statements.at[at]);
    t.fold = all->statements.at[at];
    if (s->kind != NEST_PAR)
        return t;
    t.points = (struct map_points){.s = s,
                                   .axis = s->axes[s->n_axes - 1],
                                   .lanes = 1,
                                   .rows = 1,
                                   .count = cg_extent(l, s)};
    t.block = s->body;
    b = &l->nest->blocks.at[t.block];
    for (t.at = 0; cg_statement(l, b->statements.at[t.at])->kind != NEST_FOLD;)
        t.at++;
    t.fold = b->statements.at[t.at];
    return t;
}

// What stands before the fold, at point `point` (an i64): what is put there waits for the end.
static void lower_before(struct cg_lowering *l, const struct shared_fold *t, LLVMValueRef point)
{
    const struct nest_block *b = &l->nest->blocks.at[t->block];
    if (!t->points.s)
        return;
    gpu_points_set(l, &t->points, point);
    for (uint32_t i = 0; i < t->at; i++)
        if (cg_statement(l, b->statements.at[i])->kind != NEST_PUT)
            cg_lower_statement(l, b->statements.at[i]);
}

static void lower_rest(struct cg_lowering *l, const struct shared_fold *t)
{
    const struct nest_block *b = &l->nest->blocks.at[t->block];
    for (uint32_t i = 0; t->points.s && i < t->at; i++)
        if (cg_statement(l, b->statements.at[i])->kind == NEST_PUT)
            cg_lower_statement(l, b->statements.at[i]);
    for (uint32_t i = t->at + 1; i < b->statements.count; i++)
        cg_lower_statement(l, b->statements.at[i]);
}

// The point of chunk `i`, of so many chunks each, and in *i which of them it is.
static LLVMValueRef point_of(struct cg_lowering *l, const struct shared_fold *t, int64_t chunks,
                             LLVMValueRef *i)
{
    LLVMBuilderRef b = l->m.b;
    LLVMValueRef all = *i, count = cg_int(l->module, chunks);
    if (t->points.count == 1)
        return cg_int(l->module, 0);
    *i = LLVMBuildURem(b, all, count, "");
    return LLVMBuildUDiv(b, all, count, "");
}

// ---- Terms

// The terms at position `at` of the fold: stored, or loaded for all lanes.
static void access_terms(struct cg_lowering *l, const struct nest_statement *s, LLVMValueRef at,
                         bool stores)
{
    const struct gpu_terms *t = &l->gpu->terms;
    uint64_t offset = 0;
    at = LLVMBuildSub(l->m.b, at, t->first, "");
    for (uint32_t i = 0; i < s->n_combines; i++) {
        const struct nest_combine *c = &s->combines[i];
        unsigned bytes = dtype_get(c->dtype)->bytes;
        LLVMTypeRef type = cg_memory_type(l->module, c->dtype);
        for (uint32_t k = 0; k < c->n; k++) {
            LLVMValueRef to =
                cg_at(l, l->module->i8, t->memory, cg_int(l->module, (int64_t)offset));
            to = cg_at(l, type, to, at);
            offset += map_term_bytes(c, t->count);
            struct cg_value *v = &l->values[c->value[k]];
            if (stores) {
                jot_dtype d = l->nest->values.at[c->value[k]].dtype;
                struct cg_value x = cg_convert(&l->m, *v, d, c->dtype);
                LLVMBuildStore(l->m.b, cg_to_memory(l, x.re, c->dtype), to);
                continue;
            }
            LLVMValueRef x =
                LLVMBuildLoad2(l->m.b, cg_with_lanes(type, l->vector.lanes), to, "");
            LLVMSetAlignment(x, l->vector.lanes * bytes);
            *v = (struct cg_value){cg_from_memory(l, x, c->dtype), NULL};
        }
    }
}

void gpu_terms_load(struct cg_lowering *l, const struct nest_statement *fold, LLVMValueRef at)
{
    access_terms(l, fold, at, false);
}

// The term at position `at` of the fold, by one thread.
static void make_term(struct cg_lowering *l, nest_id fold, LLVMValueRef at)
{
    const struct nest_statement *s = cg_statement(l, fold);
    gpu_fold_set(l, fold, at);
    cg_lower_block(l, s->body);
    access_terms(l, s, at, true);
}

static struct gpu_terms terms_of_grid(struct cg_lowering *l, const struct shared_fold *t,
                                      LLVMValueRef point)
{
    const struct nest_statement *s = cg_statement(l, t->fold);
    int64_t length = cg_extent(l, s), bytes = (int64_t)map_terms_bytes(s, length);
    LLVMValueRef first = LLVMBuildMul(l->m.b, point, cg_int(l->module, bytes), "");
    return (struct gpu_terms){.fold = s,
                              .memory = cg_at(l, l->module->i8, gpu_scratch(l), first),
                              .first = cg_int(l->module, 0),
                              .count = length};
}

static void lower_terms(struct cg_lowering *l, const struct shared_fold *t,
                        struct cg_kernel *out)
{
    LLVMBuilderRef b = l->m.b;
    int64_t length = cg_extent(l, cg_statement(l, t->fold));
    int64_t chunks = (length + BLOCK - 1) / BLOCK;
    l->gpu->block = BLOCK;
    l->gpu->group = 1;
    struct cg_kernel_step *step = gpu_function_open(l, out, "_terms", 1);
    gpu_lower_list(l, 0, t->outer);
    struct cg_loop chunk = gpu_chunks_open(l, t->points.count * chunks);
    LLVMValueRef i = chunk.index, point = point_of(l, t, chunks, &i);
    l->gpu->terms = terms_of_grid(l, t, point);
    i = LLVMBuildMul(b, i, cg_int(l->module, BLOCK), "");
    i = LLVMBuildAdd(b, i, gpu_wide(l, l->gpu->thread), "");
    struct cg_branch inside =
        cg_if_open(l, LLVMBuildICmp(b, LLVMIntSLT, i, cg_int(l->module, length), ""));
    lower_before(l, t, point);
    make_term(l, t->fold, i);
    cg_if_close(l, &inside);
    cg_loop_close(l, &chunk);
    step->total = t->points.count * length;
    step->grain = BLOCK;
    gpu_function_close(l, step);
}

// Those of block `first` of the fold, by the threads of the block.
static void make_own_terms(struct cg_lowering *l, nest_id fold, LLVMValueRef first)
{
    LLVMBuilderRef b = l->m.b;
    struct cg_gpu *g = l->gpu;
    int64_t length = cg_extent(l, cg_statement(l, fold)), size = fold_block(length);
    struct gpu_terms terms = {.fold = cg_statement(l, fold), .count = size};
    terms.memory = gpu_shared(l, map_terms_bytes(cg_statement(l, fold), size));
    terms.first = LLVMBuildMul(b, first, cg_int(l->module, size), "");
    LLVMValueRef end = LLVMBuildAdd(b, terms.first, cg_int(l->module, size), "");
    LLVMValueRef last = cg_int(l->module, length);
    end = LLVMBuildSelect(b, LLVMBuildICmp(b, LLVMIntSLT, end, last, ""), end, last, "");
    LLVMValueRef start = LLVMBuildAdd(b, terms.first, gpu_wide(l, g->thread), "");
    struct cg_loop turn = cg_loop_open(l, start, end, cg_int(l->module, g->block));
    g->is_alone = true;
    g->terms = terms;
    make_term(l, fold, turn.index);
    g->is_alone = false;
    cg_loop_close(l, &turn);
    gpu_sync(l);
}

// ---- Blocks

// Results from row `first` (an i64) on.
static struct cg_results results_from(struct cg_lowering *l, const struct cg_accumulator *a,
                                      struct cg_results r, LLVMValueRef first)
{
    int64_t bytes = dtype_get(dtype_real(a->dtype))->bytes;
    for (int k = 0; k < 3; k++) {
        LLVMValueRef size = cg_int(l->module, k == 2 ? 8 : bytes);
        if (r.base[k])
            r.base[k] =
                cg_at(l, l->module->i8, r.base[k], LLVMBuildMul(l->m.b, first, size, ""));
    }
    return r;
}

// Every chunk is so many blocks of the fold, a power of two, so that its result is one of the tree.
// Who ends last of a point combines the results of its chunks and does what follows.
static void lower_blocks(struct cg_lowering *l, const struct shared_fold *t,
                         const struct map_row *r, uint64_t terms, struct cg_kernel *out,
                         struct cg_kernel_step *step)
{
    LLVMBuilderRef b = l->m.b;
    bool has_own = cg_statement(l, t->fold)->terms == NEST_SHARED;
    int64_t size, chunks = map_fold_chunks(cg_statement(l, t->fold), r, &size);
    int64_t points = t->points.count;
    gpu_lower_list(l, 0, t->outer);
    struct gpu_fold f = gpu_fold_make(l, t->fold, r, size);
    LLVMValueRef memory =
        cg_at(l, l->module->i8, gpu_scratch(l), cg_int(l->module, (int64_t)terms));
    struct cg_results *partial;
    gpu_lay_out_results(l, f.n, f.accumulators, points * chunks, memory, &partial);
    out->counters = (uint32_t)points;
    struct cg_loop own = gpu_own_chunk_open(l, points * chunks);
    LLVMValueRef chunk = own.index, point = point_of(l, t, chunks, &chunk);
    LLVMValueRef first = LLVMBuildMul(b, chunk, cg_int(l->module, size), "");
    lower_before(l, t, point);
    if (terms)
        l->gpu->terms = terms_of_grid(l, t, point);
    else if (has_own)
        make_own_terms(l, t->fold, first);
    gpu_fold_blocks(l, &f, first, size);
    gpu_sync(l);
    LLVMValueRef count = LLVMBuildSub(b, cg_int(l->module, r->blocks), first, "");
    LLVMValueRef most = cg_int(l->module, size);
    count = LLVMBuildSelect(b, LLVMBuildICmp(b, LLVMIntSLT, count, most, ""), count, most, "");
    count = LLVMBuildTrunc(b, count, l->module->i32, "");
    struct cg_element *all = arena_array(l->arena, struct cg_element, f.n + 1);
    for (uint32_t i = 0; i < f.n; i++)
        all[i] = gpu_tree_rows(l, &f.accumulators[i], &f.rows[i], count, size);
    struct cg_branch one =
        cg_if_open(l, LLVMBuildICmp(b, LLVMIntEQ, l->gpu->in_group, gpu_i32(l, 0), ""));
    for (uint32_t i = 0; i < f.n; i++)
        cg_element_store(l, &f.accumulators[i], true, partial[i].base, own.index, &all[i]);
    cg_if_close(l, &one);
    LLVMValueRef counter = cg_at(l, l->module->i32, gpu_extra_operand(l, 0), point);
    struct cg_branch last = cg_if_open(l, gpu_is_last(l, counter, chunks));
    LLVMValueRef begin = LLVMBuildMul(b, point, cg_int(l->module, chunks), "");
    for (uint32_t i = 0; i < f.n; i++) {
        struct cg_results own_rows = results_from(l, &f.accumulators[i], partial[i], begin);
        all[i] = gpu_tree_rows(l, &f.accumulators[i], &own_rows, gpu_i32(l, chunks), chunks);
    }
    gpu_fold_define(l, &f, all);
    lower_rest(l, t);
    cg_if_close(l, &last);
    cg_loop_close(l, &own);
    step->total = points * chunks;
    step->grain = 1;
    step->exact_grid = true;
}

void gpu_blocks_lower(struct cg_lowering *l, uint32_t at, struct cg_kernel *out)
{
    struct cg_gpu *g = l->gpu;
    struct shared_fold t = shared_fold_of(l, at);
    const struct nest_statement *s = cg_statement(l, t.fold);
    unsigned block = g->block;
    uint64_t terms = 0;
    struct map_row row = map_row_of(l->nest, s, block, map_vector(l->nest, s));
    if (s->terms == NEST_SCRATCH) {
        terms = (uint64_t)t.points.count * map_terms_bytes(s, cg_extent(l, s));
        lower_terms(l, &t, out);
    }
    g->block = g->group = block;
    struct cg_kernel_step *step = gpu_function_open(l, out, "", 1);
    lower_blocks(l, &t, &row, terms, out, step);
    gpu_function_close(l, step);
    g->terms.fold = NULL;
}
