// SPDX-License-Identifier: Apache-2.0
// One long fold by the whole grid: blocks of threads have blocks of it, and the one that ends last
// brings them together and does the rest.
//
// Where the elements are dear and the blocks few, the terms are computed first, a thread each, so that
// all threads have a share of that work: in shared memory by who has the block of the fold, or by a
// function before, where the blocks would keep too few multiprocessors busy.
#include "codegen/gpu/gpu.h"

#define BLOCK 256
#define DEAR_WORK 64 // operations of an element
#define LIGHT_WORK 8 // where multiprocessors have so few blocks of the fold:
#define LIGHT_BLOCKS (4 * GPU_MULTIPROCESSORS)
#define LEAST_TERMS 4096
#define OWN_BYTES (48 << 10)                  // of the terms of a block of the fold
#define FEW_BLOCKS (16 * GPU_MULTIPROCESSORS) // of the fold
#define OWN_BLOCK 256 // threads that make the terms of a block of the fold

// ---- Terms

static LLVMTypeRef term_type(struct cg_lowering *l, const struct nest_combine *c)
{
    return cg_memory_type(l->module, c->dtype);
}

static uint64_t term_bytes(const struct nest_combine *c, int64_t count)
{
    uint64_t bytes = (uint64_t)count * dtype_get(c->dtype)->bytes;
    return (bytes + 63) / 64 * 64;
}

// Of so many elements.
static uint64_t all_terms(const struct nest_statement *s, int64_t count)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < s->n_combines; i++)
        bytes += s->combines[i].n * term_bytes(&s->combines[i], count);
    return bytes;
}

bool gpu_has_terms(const struct cg_lowering *l, nest_id fold)
{
    const struct nest_statement *s = cg_statement(l, fold);
    for (uint32_t i = 0; i < s->n_combines; i++)
        if (dtype_is_complex(s->combines[i].dtype) || s->combines[i].dtype == JOT_BOOL)
            return false;
    int64_t length = cg_extent(l, s), blocks = length / fold_block(length);
    double work = gpu_work(l, s->body);
    return length >= LEAST_TERMS && ((work >= DEAR_WORK && blocks < FEW_BLOCKS) ||
                                     (work >= LIGHT_WORK && blocks < LIGHT_BLOCKS));
}

// The terms at place `at` of the fold: stored, or loaded for all lanes.
static void access_terms(struct cg_lowering *l, const struct nest_statement *s, LLVMValueRef at,
                         bool stores)
{
    const struct gpu_terms *t = &l->gpu->terms;
    uint64_t offset = 0;
    at = LLVMBuildSub(l->m.b, at, t->first, "");
    for (uint32_t i = 0; i < s->n_combines; i++) {
        const struct nest_combine *c = &s->combines[i];
        unsigned bytes = dtype_get(c->dtype)->bytes;
        LLVMTypeRef type = term_type(l, c);
        for (uint32_t k = 0; k < c->n; k++) {
            LLVMValueRef to =
                cg_at(l, l->module->i8, t->memory, cg_int(l->module, (int64_t)offset));
            to = cg_at(l, type, to, at);
            offset += term_bytes(c, t->count);
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

// The term at place `at` of the fold, by one thread.
static void make_term(struct cg_lowering *l, nest_id fold, LLVMValueRef at)
{
    const struct nest_statement *s = cg_statement(l, fold);
    gpu_fold_set(l, fold, at);
    cg_lower_block(l, s->body);
    access_terms(l, s, at, true);
}

static struct gpu_terms terms_of_grid(struct cg_lowering *l, nest_id fold)
{
    const struct nest_statement *s = cg_statement(l, fold);
    return (struct gpu_terms){.fold = s,
                              .memory = gpu_extra_operand(l, 0),
                              .first = cg_int(l->module, 0),
                              .count = cg_extent(l, s)};
}

static void lower_terms(struct cg_lowering *l, uint32_t at, struct cg_kernel *out)
{
    LLVMBuilderRef b = l->m.b;
    nest_id fold = l->nest->blocks.at[0].statements.at[at];
    int64_t length = cg_extent(l, cg_statement(l, fold));
    l->gpu->block = BLOCK;
    l->gpu->group = 1;
    struct cg_kernel_step *step = gpu_function_open(l, out, "_terms", 2);
    gpu_lower_list(l, 0, at);
    l->gpu->terms = terms_of_grid(l, fold);
    struct cg_loop chunk = gpu_chunks_open(l, (length + BLOCK - 1) / BLOCK);
    LLVMValueRef i = LLVMBuildMul(b, chunk.index, cg_int(l->module, BLOCK), "");
    i = LLVMBuildAdd(b, i, gpu_wide(l, l->gpu->thread), "");
    struct cg_branch inside =
        cg_if_open(l, LLVMBuildICmp(b, LLVMIntSLT, i, cg_int(l->module, length), ""));
    make_term(l, fold, i);
    cg_if_close(l, &inside);
    cg_loop_close(l, &chunk);
    step->total = length;
    step->grain = BLOCK;
    gpu_function_close(l, step);
}

// Whether as many blocks of threads as the fold has blocks keep all multiprocessors busy to the end.
static bool are_even(const struct cg_lowering *l, nest_id fold)
{
    int64_t length = cg_extent(l, cg_statement(l, fold)), block = fold_block(length);
    int64_t n = length / block, turns = (n + GPU_MULTIPROCESSORS - 1) / GPU_MULTIPROCESSORS;
    return all_terms(cg_statement(l, fold), block) <= OWN_BYTES &&
           8 * n >= 7 * turns * GPU_MULTIPROCESSORS;
}

// Those of block `first` of the fold, by the threads of the block.
static void make_own_terms(struct cg_lowering *l, nest_id fold, LLVMValueRef first)
{
    LLVMBuilderRef b = l->m.b;
    struct cg_gpu *g = l->gpu;
    int64_t length = cg_extent(l, cg_statement(l, fold)), size = fold_block(length);
    struct gpu_terms terms = {.fold = cg_statement(l, fold), .count = size};
    terms.memory = gpu_shared(l, all_terms(cg_statement(l, fold), size));
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

// Every chunk is so many blocks of the fold, a power of two, so that its result is one of the tree.
// Who ends last combines the results of chunks and does what follows.
static void lower_blocks(struct cg_lowering *l, uint32_t at, uint64_t terms, int64_t size,
                         struct cg_kernel *out, struct cg_kernel_step *step)
{
    LLVMBuilderRef b = l->m.b;
    const struct nest_block *body = &l->nest->blocks.at[0];
    nest_id fold = body->statements.at[at];
    const struct gpu_row *r = &l->gpu->row;
    int64_t chunks = (r->blocks + size - 1) / size;
    gpu_lower_list(l, 0, at);
    struct gpu_fold f = gpu_fold_make(l, fold, r, size);
    LLVMValueRef memory =
        cg_at(l, l->module->i8, gpu_extra_operand(l, 0), cg_int(l->module, (int64_t)terms));
    struct cg_results *partial;
    out->partial_bytes =
        terms + gpu_place_results(l, f.n, f.accumulators, chunks, memory, &partial);
    out->has_counter = true;
    struct cg_loop own = gpu_own_chunk_open(l, chunks);
    LLVMValueRef chunk = own.index;
    LLVMValueRef first = LLVMBuildMul(b, chunk, cg_int(l->module, size), "");
    if (!terms && gpu_has_terms(l, fold))
        make_own_terms(l, fold, first);
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

void gpu_blocks_lower(struct cg_lowering *l, uint32_t at, struct cg_kernel *out)
{
    struct cg_gpu *g = l->gpu;
    nest_id fold = l->nest->blocks.at[0].statements.at[at];
    const struct nest_statement *s = cg_statement(l, fold);
    struct gpu_row row = g->row;
    unsigned block = g->block;
    uint64_t terms = 0;
    int64_t size = row.teams;
    if (gpu_has_terms(l, fold) && are_even(l, fold)) {
        block = OWN_BLOCK;
        row = gpu_row_make(l, s, block);
        size = 1;
    } else if (gpu_has_terms(l, fold)) {
        terms = all_terms(s, cg_extent(l, s));
        lower_terms(l, at, out);
    }
    g->row = row;
    g->block = g->group = block;
    struct cg_kernel_step *step = gpu_function_open(l, out, "", 2);
    if (terms)
        g->terms = terms_of_grid(l, fold);
    lower_blocks(l, at, terms, size, out, step);
    gpu_function_close(l, step);
    g->terms.fold = NULL;
}
