// SPDX-License-Identifier: Apache-2.0
// One long fold by the whole grid: blocks of threads have blocks of it, and the one that ends last
// brings them together and does the rest.
//
// Where the elements are dear and the blocks few, a function before that computes the terms, a thread
// each, so that all threads have a share of that work.
#include "codegen/gpu/gpu.h"

#define BLOCK 256
#define DEAR_WORK 64 // operations of an element
#define LEAST_TERMS 4096
#define FEW_BLOCKS (16 * GPU_MULTIPROCESSORS) // of the fold

// Every chunk is as many blocks of the fold as there are teams, a power of two, so that its
// result is one of the tree.  Who ends last combines the results of chunks and does what
// follows.
static void lower_blocks(struct cg_lowering *l, uint32_t at, uint64_t terms,
                         struct cg_kernel *out, struct cg_kernel_step *step)
{
    LLVMBuilderRef b = l->m.b;
    const struct nest_block *body = &l->nest->blocks.at[0];
    nest_id fold = body->statements.at[at];
    const struct gpu_row *r = &l->gpu->row;
    int64_t chunks = (r->blocks + r->teams - 1) / r->teams;
    gpu_lower_list(l, 0, at);
    struct gpu_fold f = gpu_fold_make(l, fold, r, r->teams);
    LLVMValueRef memory =
        cg_at(l, l->module->i8, gpu_extra_operand(l, 0), cg_int(l->module, (int64_t)terms));
    struct cg_results *partial;
    out->partial_bytes =
        terms + gpu_place_results(l, f.n, f.accumulators, chunks, memory, &partial);
    out->has_counter = true;
    struct cg_loop own = gpu_own_chunk_open(l, chunks);
    LLVMValueRef chunk = own.index;
    LLVMValueRef first = LLVMBuildMul(b, chunk, cg_int(l->module, r->teams), "");
    gpu_fold_blocks(l, &f, first, r->teams);
    gpu_sync(l);
    LLVMValueRef count = LLVMBuildSub(b, cg_int(l->module, r->blocks), first, "");
    LLVMValueRef most = cg_int(l->module, r->teams);
    count = LLVMBuildSelect(b, LLVMBuildICmp(b, LLVMIntSLT, count, most, ""), count, most, "");
    count = LLVMBuildTrunc(b, count, l->module->i32, "");
    struct cg_element *all = arena_array(l->arena, struct cg_element, f.n + 1);
    for (uint32_t i = 0; i < f.n; i++)
        all[i] = gpu_tree_rows(l, &f.accumulators[i], &f.rows[i], count, r->teams);
    struct cg_branch one =
        cg_if_open(l, LLVMBuildICmp(b, LLVMIntEQ, l->gpu->place, gpu_i32(l, 0), ""));
    for (uint32_t i = 0; i < f.n; i++)
        cg_element_store(l, &f.accumulators[i], true, partial[i].base, chunk, &all[i]);
    cg_if_close(l, &one);
    LLVMValueRef is_last = gpu_is_last(l, gpu_extra_operand(l, 1), chunks);
    struct cg_branch last = cg_if_open(l, is_last);
    for (uint32_t i = 0; i < f.n; i++)
        all[i] = gpu_tree_rows(l, &f.accumulators[i], &partial[i], gpu_i32(l, chunks), chunks);
    gpu_fold_define(l, &f, all);
    gpu_lower_list(l, at + 1, body->statements.count);
    cg_if_close(l, &last);
    cg_loop_close(l, &own);
    step->total = chunks;
    step->grain = 1;
    step->exact_grid = true;
}

// ---- Terms

static LLVMTypeRef term_type(struct cg_lowering *l, const struct nest_combine *c)
{
    return cg_memory_type(l->module, c->dtype);
}

static uint64_t term_bytes(const struct cg_lowering *l, const struct nest_statement *s,
                           const struct nest_combine *c)
{
    uint64_t bytes = (uint64_t)cg_extent(l, s) * dtype_get(c->dtype)->bytes;
    return (bytes + 63) / 64 * 64;
}

static uint64_t all_terms(const struct cg_lowering *l, const struct nest_statement *s)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < s->n_combines; i++)
        bytes += s->combines[i].n * term_bytes(l, s, &s->combines[i]);
    return bytes;
}

bool gpu_has_terms(const struct cg_lowering *l, nest_id fold)
{
    const struct nest_statement *s = cg_statement(l, fold);
    for (uint32_t i = 0; i < s->n_combines; i++)
        if (dtype_is_complex(s->combines[i].dtype) || s->combines[i].dtype == JOT_BOOL)
            return false;
    int64_t length = cg_extent(l, s);
    return gpu_work(l, s->body) >= DEAR_WORK && length >= LEAST_TERMS &&
           length / fold_block(length) < FEW_BLOCKS;
}

// The terms at place `at` of the fold: stored, or loaded for all lanes.
static void access_terms(struct cg_lowering *l, const struct nest_statement *s, LLVMValueRef at,
                         bool stores)
{
    uint64_t offset = 0;
    for (uint32_t i = 0; i < s->n_combines; i++) {
        const struct nest_combine *c = &s->combines[i];
        unsigned bytes = dtype_get(c->dtype)->bytes;
        LLVMTypeRef type = term_type(l, c);
        for (uint32_t k = 0; k < c->n; k++) {
            LLVMValueRef to = cg_at(l, l->module->i8, gpu_extra_operand(l, 0),
                                    cg_int(l->module, (int64_t)offset));
            to = cg_at(l, type, to, at);
            offset += term_bytes(l, s, c);
            struct cg_value *v = &l->values[c->value[k]];
            if (stores) {
                jot_dtype d = l->nest->values.at[c->value[k]].dtype;
                struct cg_value x = cg_convert(&l->m, *v, d, c->dtype);
                LLVMBuildStore(l->m.b, cg_to_memory(l, x.re, c->dtype), to);
                continue;
            }
            LLVMValueRef x = LLVMBuildLoad2(l->m.b, cg_with_lanes(type, l->lanes), to, "");
            LLVMSetAlignment(x, l->lanes * bytes);
            *v = (struct cg_value){cg_from_memory(l, x, c->dtype), NULL};
        }
    }
}

void gpu_terms_load(struct cg_lowering *l, const struct nest_statement *fold, LLVMValueRef at)
{
    access_terms(l, fold, at, false);
}

static void lower_terms(struct cg_lowering *l, uint32_t at, struct cg_kernel *out)
{
    LLVMBuilderRef b = l->m.b;
    struct gpu_row row = l->gpu->row;
    nest_id fold = l->nest->blocks.at[0].statements.at[at];
    const struct nest_statement *s = cg_statement(l, fold);
    int64_t length = cg_extent(l, s);
    l->gpu->block = BLOCK;
    l->gpu->group = 1;
    struct cg_kernel_step *step = gpu_function_open(l, out, "_terms", 2);
    gpu_lower_list(l, 0, at);
    struct cg_loop chunk = gpu_chunks_open(l, (length + BLOCK - 1) / BLOCK);
    LLVMValueRef i = LLVMBuildMul(b, chunk.index, cg_int(l->module, BLOCK), "");
    i = LLVMBuildAdd(b, i, gpu_wide(l, l->gpu->thread), "");
    struct cg_branch inside =
        cg_if_open(l, LLVMBuildICmp(b, LLVMIntSLT, i, cg_int(l->module, length), ""));
    gpu_fold_set(l, fold, i);
    cg_lower_block(l, s->body);
    access_terms(l, s, i, true);
    cg_if_close(l, &inside);
    cg_loop_close(l, &chunk);
    step->total = length;
    step->grain = BLOCK;
    gpu_function_close(l, step);
    l->gpu->row = row;
}

void gpu_blocks_lower(struct cg_lowering *l, uint32_t at, struct cg_kernel *out)
{
    struct cg_gpu *g = l->gpu;
    nest_id fold = l->nest->blocks.at[0].statements.at[at];
    unsigned block = g->block;
    uint64_t terms = 0;
    if (gpu_has_terms(l, fold)) {
        terms = all_terms(l, cg_statement(l, fold));
        lower_terms(l, at, out);
        g->has_terms = true;
        g->block = g->group = block;
    }
    struct cg_kernel_step *step = gpu_function_open(l, out, "", 2);
    lower_blocks(l, at, terms, out, step);
    gpu_function_close(l, step);
    g->has_terms = false;
}
