// SPDX-License-Identifier: Apache-2.0
// Results combine pairwise: 0 with 1, 2 with 3, ..., and so again; one that is left over passes up.
//
// One thread that gets them in order keeps a stack, as a binary counter: what waits at level k
// is of 2^k results.  Threads that have one each fold by twos over growing distances; the result
// of rows 2^k i .. 2^k (i + 1) - 1 stands at thread 2^k i.
#include "codegen/gpu/tree.h"
#include "codegen/accumulate.h"
#include "codegen/gpu/device.h"
#include "codegen/gpu/gpu.h"
#include "codegen/loop.h"
#include "codegen/lower.h"
#include "codegen/memory.h"
#include "codegen/types.h"
#include "map/gpu_scratch.h"

struct cg_element gpu_row_load(struct cg_lowering *l, const struct cg_accumulator *a,
                               const struct cg_results *r, LLVMValueRef row)
{
    if (a->lanes > 1)
        row = LLVMBuildMul(l->m.b, row, cg_int(l->module, a->lanes), "");
    return cg_element_load(l, a, true, r->base, row, a->own_axis ? 1 : a->lanes);
}

void gpu_row_store(struct cg_lowering *l, const struct cg_accumulator *a,
                   const struct cg_results *r, LLVMValueRef row, const struct cg_element *t)
{
    if (a->lanes > 1)
        row = LLVMBuildMul(l->m.b, row, cg_int(l->module, a->lanes), "");
    cg_element_store(l, a, true, r->base, row, t);
}

struct gpu_tree gpu_tree_make(struct cg_lowering *l, uint32_t n,
                              const struct cg_accumulator *accumulators, int64_t most)
{
    struct gpu_tree t = {.n = n, .accumulators = accumulators};
    while (INT64_C(1) << t.levels < most)
        t.levels++;
    t.stack = arena_array(l->arena, struct cg_results, (size_t)(t.levels + 2) * n + 1);
    for (int level = 0; level < t.levels + 2; level++)
        for (uint32_t i = 0; i < n; i++)
            t.stack[(uint32_t)level * n + i] = cg_results_make(l, &accumulators[i], 1);
    return t;
}

void gpu_tree_push(struct cg_lowering *l, struct gpu_tree *t, LLVMValueRef i,
                   const struct cg_element *elements)
{
    LLVMBuilderRef b = l->m.b;
    LLVMValueRef zero = cg_int(l->module, 0);
    struct cg_results *now = &t->stack[(uint32_t)(t->levels + 1) * t->n];
    for (uint32_t k = 0; k < t->n; k++)
        gpu_row_store(l, &t->accumulators[k], &now[k], zero, &elements[k]);
    LLVMBasicBlockRef done =
        LLVMAppendBasicBlockInContext(l->module->context, l->frame.function, "");
    for (int level = 0; level <= t->levels; level++) {
        struct cg_results *waiting = &t->stack[(uint32_t)level * t->n];
        LLVMValueRef bit = LLVMBuildAnd(b, i, cg_int(l->module, INT64_C(1) << level), "");
        LLVMBasicBlockRef waits =
            LLVMAppendBasicBlockInContext(l->module->context, l->frame.function, "");
        LLVMBasicBlockRef meets =
            LLVMAppendBasicBlockInContext(l->module->context, l->frame.function, "");
        LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntEQ, bit, zero, ""), waits, meets);
        LLVMPositionBuilderAtEnd(b, waits);
        for (uint32_t k = 0; k < t->n; k++) {
            struct cg_element e = gpu_row_load(l, &t->accumulators[k], &now[k], zero);
            gpu_row_store(l, &t->accumulators[k], &waiting[k], zero, &e);
        }
        LLVMBuildBr(b, done);
        LLVMPositionBuilderAtEnd(b, meets);
        for (uint32_t k = 0; level < t->levels && k < t->n; k++) {
            const struct cg_accumulator *a = &t->accumulators[k];
            struct cg_element first = gpu_row_load(l, a, &waiting[k], zero);
            struct cg_element second = gpu_row_load(l, a, &now[k], zero);
            struct cg_element both = cg_element_combine(l, a, &first, &second);
            gpu_row_store(l, a, &now[k], zero, &both);
        }
    }
    LLVMBuildUnreachable(b);
    LLVMPositionBuilderAtEnd(b, done);
}

void gpu_tree_top(struct cg_lowering *l, const struct gpu_tree *t, int64_t count,
                  struct cg_element *out)
{
    LLVMValueRef zero = cg_int(l->module, 0);
    for (uint32_t k = 0; k < t->n; k++) {
        const struct cg_accumulator *a = &t->accumulators[k];
        bool has = false;
        for (int level = 0; level <= t->levels; level++) {
            if (!(count >> level & 1))
                continue;
            struct cg_element e =
                gpu_row_load(l, a, &t->stack[(uint32_t)level * t->n + k], zero);
            out[k] = has ? cg_element_combine(l, a, &e, &out[k]) : e;
            has = true;
        }
    }
}

// x and, where there is a thread that is `distance` further on, what it has.
static struct cg_element combine_with_neighbour(struct cg_lowering *l,
                                                const struct cg_accumulator *a,
                                                const struct cg_element *x, unsigned distance,
                                                LLVMValueRef in_group, LLVMValueRef count)
{
    LLVMBuilderRef b = l->m.b;
    struct cg_element y = gpu_shuffle_down(l, x, distance);
    struct cg_element both = cg_element_combine(l, a, x, &y);
    LLVMValueRef other = LLVMBuildAdd(b, in_group, gpu_i32(l, distance), "");
    LLVMValueRef is_there = LLVMBuildICmp(b, LLVMIntULT, other, count, "");
    for (int part = 0; part < 3; part++)
        if (x->v[part])
            both.v[part] = LLVMBuildSelect(b, is_there, both.v[part], x->v[part], "");
    return both;
}

// Where the index is past the last row the element is of no use to anybody.
static struct cg_element load_row(struct cg_lowering *l, const struct cg_accumulator *a,
                                  const struct cg_results *rows, LLVMValueRef i, int64_t most)
{
    LLVMBuilderRef b = l->m.b;
    LLVMValueRef last = gpu_i32(l, most - 1);
    LLVMValueRef inside = LLVMBuildICmp(b, LLVMIntULT, i, last, "");
    return gpu_row_load(l, a, rows, gpu_wide(l, LLVMBuildSelect(b, inside, i, last, "")));
}

// Rows of results in every warp.
static struct cg_element by_warp(struct cg_lowering *l, const struct cg_accumulator *a,
                                 const struct cg_results *rows, LLVMValueRef count,
                                 int64_t most)
{
    LLVMValueRef lane = LLVMBuildAnd(l->m.b, l->gpu->in_group, gpu_i32(l, GPU_WARP - 1), "");
    struct cg_element t = load_row(l, a, rows, lane, most);
    for (unsigned distance = 1; distance < most; distance *= 2)
        t = combine_with_neighbour(l, a, &t, distance, lane, count);
    return most > 1 ? gpu_shuffle_from(l, &t, gpu_i32(l, 0)) : t;
}

struct cg_results gpu_shared_results(struct cg_lowering *l, const struct cg_accumulator *a,
                                     uint64_t rows)
{
    uint64_t n = rows * (a->own_axis ? 1 : a->lanes);
    uint64_t bytes = n * dtype_get(dtype_real(a->dtype))->bytes;
    struct cg_results r = {.base = {gpu_shared(l, bytes)}};
    if (dtype_is_complex(a->dtype))
        r.base[1] = gpu_shared(l, bytes);
    if (cg_is_arg(a))
        r.base[2] = gpu_shared(l, n * 8);
    return r;
}

void gpu_lay_out_results(struct cg_lowering *l, uint32_t n, const struct cg_accumulator *a,
                         int64_t rows, LLVMValueRef memory, struct cg_results **out)
{
    uint64_t at = 0, sizes[3];
    *out = arena_array(l->arena, struct cg_results, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        map_result_bytes(a[i].op, a[i].dtype, (uint64_t)rows * a[i].lanes, sizes);
        for (int k = 0; k < 3; k++) {
            if (sizes[k])
                (*out)[i].base[k] =
                    cg_at(l, l->module->i8, memory, cg_int(l->module, (int64_t)at));
            at += sizes[k];
        }
    }
}

// Rows first .. first + span - 1 by one thread.
static struct cg_element by_thread(struct cg_lowering *l, const struct cg_accumulator *a,
                                   const struct cg_results *rows, LLVMValueRef count,
                                   int64_t span)
{
    LLVMBuilderRef b = l->m.b;
    LLVMValueRef first = LLVMBuildMul(b, l->gpu->in_group, gpu_i32(l, span), "");
    LLVMValueRef rest = LLVMBuildSub(b, count, first, "");
    struct gpu_tree tree = gpu_tree_make(l, 1, a, span);
    // Those of which there are fewer than a span are of one thread; the stack tells what it has.
    LLVMValueRef most = gpu_i32(l, span), zero = gpu_i32(l, 0);
    rest = LLVMBuildSelect(b, LLVMBuildICmp(b, LLVMIntSLT, rest, most, ""), rest, most, "");
    rest = LLVMBuildSelect(b, LLVMBuildICmp(b, LLVMIntSLT, rest, zero, ""), zero, rest, "");
    struct cg_loop loop =
        cg_loop_open(l, cg_int(l->module, 0), gpu_wide(l, rest), cg_int(l->module, 1));
    struct cg_element e =
        gpu_row_load(l, a, rows, LLVMBuildAdd(b, gpu_wide(l, first), loop.index, ""));
    gpu_tree_push(l, &tree, loop.index, &e);
    cg_loop_close(l, &loop);
    struct cg_element out;
    gpu_tree_any(l, &tree, gpu_wide(l, rest), &out);
    return out;
}

// What waits, from the lowest level up.
static struct cg_element any_top(struct cg_lowering *l, const struct gpu_tree *tree, uint32_t k,
                                 LLVMValueRef count)
{
    LLVMBuilderRef b = l->m.b;
    const struct cg_accumulator *a = &tree->accumulators[k];
    struct cg_results sum = cg_results_make(l, a, 1);
    LLVMValueRef begin = cg_int(l->module, 0), has = LLVMConstInt(l->module->i1, 0, 0);
    unsigned lanes = a->own_axis ? 1 : a->lanes;
    struct cg_element none = cg_element_identity(l, a, lanes);
    if (cg_is_arg(a))
        none.v[2] = cg_splat(&l->m, begin, lanes);
    gpu_row_store(l, a, &sum, begin, &none);
    for (int level = 0; level <= tree->levels; level++) {
        LLVMValueRef bit = LLVMBuildAnd(b, count, cg_int(l->module, INT64_C(1) << level), "");
        LLVMValueRef is_set = LLVMBuildICmp(b, LLVMIntNE, bit, begin, "");
        struct cg_branch branch = cg_if_open(l, is_set);
        struct cg_element waiting =
            gpu_row_load(l, a, &tree->stack[(uint32_t)level * tree->n + k], begin);
        struct cg_element old = gpu_row_load(l, a, &sum, begin);
        struct cg_element both = cg_element_combine(l, a, &waiting, &old);
        for (int part = 0; part < 3; part++)
            if (both.v[part])
                both.v[part] = LLVMBuildSelect(b, has, both.v[part], waiting.v[part], "");
        gpu_row_store(l, a, &sum, begin, &both);
        cg_if_close(l, &branch);
        has = LLVMBuildOr(b, has, is_set, "");
    }
    return gpu_row_load(l, a, &sum, begin);
}

void gpu_tree_any(struct cg_lowering *l, const struct gpu_tree *t, LLVMValueRef count,
                  struct cg_element *out)
{
    for (uint32_t k = 0; k < t->n; k++)
        out[k] = any_top(l, t, k, count);
}

struct cg_element gpu_tree_rows(struct cg_lowering *l, const struct cg_accumulator *a,
                                const struct cg_results *rows, LLVMValueRef count, int64_t most)
{
    LLVMBuilderRef b = l->m.b;
    struct cg_gpu *g = l->gpu;
    if (most <= GPU_WARP)
        return by_warp(l, a, rows, count, most);
    int64_t span = 1;
    while (span * g->group < most)
        span *= 2;
    struct cg_element t;
    if (span > 1) {
        t = by_thread(l, a, rows, count, span);
        count = LLVMBuildAdd(b, count, gpu_i32(l, span - 1), "");
        count = LLVMBuildUDiv(b, count, gpu_i32(l, span), "");
        most = (most + span - 1) / span;
    } else {
        t = load_row(l, a, rows, g->in_group, most);
    }
    for (unsigned distance = 1; distance < GPU_WARP; distance *= 2)
        t = combine_with_neighbour(l, a, &t, distance, g->in_group, count);
    if (g->group == GPU_WARP)
        return gpu_shuffle_from(l, &t, gpu_i32(l, 0));
    int64_t warps = g->group / GPU_WARP;
    struct cg_results of_warps = gpu_shared_results(l, a, warps);
    LLVMValueRef lane = LLVMBuildAnd(b, g->in_group, gpu_i32(l, GPU_WARP - 1), "");
    LLVMValueRef warp = LLVMBuildUDiv(b, g->in_group, gpu_i32(l, GPU_WARP), "");
    struct cg_branch leads =
        cg_if_open(l, LLVMBuildICmp(b, LLVMIntEQ, lane, gpu_i32(l, 0), ""));
    gpu_row_store(l, a, &of_warps, gpu_wide(l, warp), &t);
    cg_if_close(l, &leads);
    gpu_sync(l);
    count = LLVMBuildAdd(b, count, gpu_i32(l, GPU_WARP - 1), "");
    count = LLVMBuildUDiv(b, count, gpu_i32(l, GPU_WARP), "");
    return by_warp(l, a, &of_warps, count, warps);
}
