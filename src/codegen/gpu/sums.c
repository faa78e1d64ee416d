// SPDX-License-Identifier: Apache-2.0
// Sums over the points of a network of what they have in rows of memory, in the order of any
// fold.
//
// Tiles are of sides up to ten: of rows with rows, or of as many terms or pairs of factors.
// For a block of the fold 64 threads have a tile, each those points that go to one accumulator,
// so that a row is read once for as many sums; then each thread folds the accumulators of some
// of the sums.  A second function combines the results of blocks, a warp for a sum.
//
// One shape: small matrices at many points (docs/nests.md).
#include "codegen/gpu/sums.h"
#include "codegen/accumulate.h"
#include "codegen/emit.h"
#include "codegen/gpu/device.h"
#include "codegen/gpu/entry.h"
#include "codegen/gpu/gpu.h"
#include "codegen/gpu/network.h"
#include "codegen/gpu/tree.h"
#include "codegen/kernel.h"
#include "codegen/loop.h"
#include "codegen/lower.h"
#include "codegen/memory.h"
#include "codegen/scalar.h"
#include "codegen/types.h"
#include "map/gpu.h"

#include "base/fold.h"

#define MOST_SIDE 10
#define ROWS_BEHIND (2 * MOST_SIDE) // that tiles read past the last
#define MOST_SUMS (MOST_SIDE * MOST_SIDE)
#define TREE_BLOCK 256

static int64_t tiles_across(const struct gpu_network *w, const struct gpu_sum *x)
{
    return (x->width + w->side - 1) / w->side;
}

static int64_t sums_of(const struct gpu_network *w) { return w->side * w->side; }

// Elements of the sum that a tile has.
static int64_t tile_elements(const struct gpu_network *w, enum sum_kind kind)
{
    int64_t reads = kind == SUM_TERMS ? 2 * w->side : kind == SUM_PAIRS ? w->side : sums_of(w);
    return reads < sums_of(w) ? reads : sums_of(w);
}

static int64_t side_of(const struct gpu_network *w)
{
    int64_t widest = 1, most = w->dtype == JOT_F32 ? MOST_SIDE : MOST_SIDE / 2;
    for (uint32_t i = 0; i < w->sums.count; i++)
        widest = w->sums.at[i].width > widest ? w->sums.at[i].width : widest;
    int64_t tiles = (widest + most - 1) / most;
    return (widest + tiles - 1) / tiles;
}

// Tiles of a kind are beside one another.
static void number_tasks(struct gpu_network *w, int64_t ends[SUM_KINDS])
{
    for (int kind = 0; kind < SUM_KINDS; kind++) {
        for (uint32_t i = 0; i < w->sums.count; i++) {
            struct gpu_sum *x = &w->sums.at[i];
            if (x->kind != (enum sum_kind)kind)
                continue;
            int64_t each = tile_elements(w, x->kind);
            x->task = w->tasks;
            w->tasks += kind == SUM_PRODUCT
                            ? (x->count / x->width + w->side - 1) / w->side * tiles_across(w, x)
                            : (x->count + each - 1) / each;
        }
        ends[kind] = w->tasks;
    }
}

// The first rows of the factors of every task, as a constant of the module.
static LLVMValueRef first_rows(struct cg_lowering *l, const struct gpu_network *w, int factor)
{
    LLVMValueRef *all = arena_array(l->arena, LLVMValueRef, (size_t)w->tasks + 1);
    for (uint32_t i = 0; i < w->sums.count; i++) {
        const struct gpu_sum *x = &w->sums.at[i];
        bool is_product = x->kind == SUM_PRODUCT;
        int64_t across = is_product ? tiles_across(w, x) : 1;
        int64_t each = is_product ? w->side : tile_elements(w, x->kind);
        int64_t rows = is_product ? x->count / x->width : x->count;
        for (int64_t q = 0; q < across * ((rows + each - 1) / each); q++) {
            int64_t row = is_product && factor ? q % across * each : q / across * each;
            all[x->task + q] = cg_int(l->module, x->row[factor] + row);
        }
    }
    LLVMValueRef rows = LLVMConstArray2(l->module->i64, all, (uint64_t)w->tasks);
    LLVMValueRef table = LLVMAddGlobalInAddressSpace(l->module->module, LLVMTypeOf(rows),
                                                     factor ? "jot_rows_b" : "jot_rows_a", 1);
    LLVMSetInitializer(table, rows);
    LLVMSetGlobalConstant(table, 1);
    LLVMSetLinkage(table, LLVMInternalLinkage);
    LLVMSetAlignment(table, 16);
    return LLVMConstAddrSpaceCast(table, l->module->ptr);
}

// Behind the rows there are the results of blocks, those of a sum beside one another, and sums.
static LLVMValueRef results_base(struct cg_lowering *l, const struct gpu_network *w)
{
    return cg_at(l, cg_memory_type(l->module, w->dtype), gpu_extra_operand(l, 0),
                 cg_int(l->module, (w->rows + ROWS_BEHIND) * w->pitch));
}

static LLVMValueRef sums_base(struct cg_lowering *l, const struct gpu_network *w)
{
    return cg_at(l, cg_memory_type(l->module, w->dtype), results_base(l, w),
                 cg_int(l->module, w->tasks * sums_of(w) * w->blocks));
}

// ---- Blocks

// Of a thread: its number among the accumulators, its first point and the one behind its last.
struct tile {
    LLVMValueRef accumulator, first, end, rows[2];
    LLVMValueRef slots[MOST_SUMS]; // sums
    int64_t count;
};

// What rows have of the point, or of the last one, to slots.
static void load_rows(struct cg_lowering *l, const struct gpu_network *w, LLVMValueRef row,
                      int64_t count, LLVMValueRef point, const LLVMValueRef *slots)
{
    LLVMBuilderRef b = l->m.b;
    LLVMValueRef last = cg_int(l->module, w->points - 1);
    LLVMValueRef is_inside = LLVMBuildICmp(b, LLVMIntSLT, point, last, "");
    point = LLVMBuildSelect(b, is_inside, point, last, "");
    LLVMTypeRef lane = cg_memory_type(l->module, w->dtype);
    LLVMValueRef at = LLVMBuildMul(b, row, cg_int(l->module, w->pitch), "");
    LLVMValueRef base = cg_at(l, lane, gpu_extra_operand(l, 0), LLVMBuildAdd(b, at, point, ""));
    for (int64_t i = 0; i < count; i++) {
        LLVMValueRef from = cg_at(l, lane, base, cg_int(l->module, i * w->pitch));
        LLVMBuildStore(b, LLVMBuildLoad2(b, lane, from, ""), slots[i]);
    }
}

static void add_to(struct cg_lowering *l, const struct gpu_network *w, LLVMValueRef slot,
                   LLVMValueRef x, LLVMValueRef y)
{
    LLVMTypeRef lane = cg_memory_type(l->module, w->dtype);
    LLVMValueRef old = LLVMBuildLoad2(l->m.b, lane, slot, "");
    LLVMValueRef sum =
        y ? cg_combine_fma(&l->m, w->dtype, (struct cg_value){old, NULL},
                           (struct cg_value){x, NULL}, (struct cg_value){y, NULL})
                .re
          : LLVMBuildFAdd(l->m.b, old, x, "");
    LLVMBuildStore(l->m.b, sum, slot);
}

static void sum_points(struct cg_lowering *l, const struct gpu_network *w, struct tile *t,
                       enum sum_kind kind)
{
    LLVMTypeRef lane = cg_memory_type(l->module, w->dtype);
    LLVMValueRef none = cg_identity(l->module, IR_fma, w->dtype, 1).re;
    LLVMValueRef slots[3 * MOST_SIDE], v[3 * MOST_SIDE];
    int64_t side = w->side, count = kind == SUM_PRODUCT ? side : tile_elements(w, kind);
    int64_t others = kind == SUM_TERMS ? 0 : side;
    for (int64_t i = 0; i < sums_of(w); i++) {
        t->slots[i] = cg_alloca(l, lane, 1);
        LLVMBuildStore(l->m.b, none, t->slots[i]);
    }
    for (int64_t i = 0; i < count + others; i++)
        slots[i] = cg_alloca(l, lane, 1);
    load_rows(l, w, t->rows[0], count, t->first, slots);
    load_rows(l, w, t->rows[1], others, t->first, slots + count);
    struct cg_loop loop = cg_loop_open(l, t->first, t->end, cg_int(l->module, FOLD_LANES));
    for (int64_t i = 0; i < count + others; i++)
        v[i] = LLVMBuildLoad2(l->m.b, lane, slots[i], "");
    // Those of the next point are on their way meanwhile.
    LLVMValueRef next = LLVMBuildAdd(l->m.b, loop.index, cg_int(l->module, FOLD_LANES), "");
    load_rows(l, w, t->rows[0], count, next, slots);
    load_rows(l, w, t->rows[1], others, next, slots + count);
    const LLVMValueRef *x = v, *y = v + count;
    for (int64_t i = 0; i < count; i++)
        for (int64_t j = 0; j < (kind == SUM_PRODUCT ? side : 1); j++)
            add_to(l, w, t->slots[kind == SUM_PRODUCT ? i * side + j : i], x[i],
                   kind == SUM_TERMS   ? NULL
                   : kind == SUM_PAIRS ? y[i]
                                       : y[j]);
    cg_loop_close(l, &loop);
    t->count = kind == SUM_PRODUCT ? sums_of(w) : count;
}

// Each thread has the accumulators of every 64th sum: they fold by halves.
static void fold_accumulators(struct cg_lowering *l, const struct gpu_network *w,
                              const struct tile *t, LLVMValueRef memory, LLVMValueRef to)
{
    LLVMBuilderRef b = l->m.b;
    LLVMTypeRef lane = cg_memory_type(l->module, w->dtype);
    for (int64_t i = 0; i < t->count; i++) {
        LLVMValueRef at =
            LLVMBuildAdd(b, t->accumulator, cg_int(l->module, i * (FOLD_LANES + 1)), "");
        LLVMBuildStore(b, LLVMBuildLoad2(b, lane, t->slots[i], ""), cg_at(l, lane, memory, at));
    }
    gpu_barrier(&l->m);
    struct cg_loop loop = cg_loop_open(l, t->accumulator, cg_int(l->module, t->count),
                                       cg_int(l->module, FOLD_LANES));
    LLVMValueRef v[FOLD_LANES];
    LLVMValueRef row = LLVMBuildMul(b, loop.index, cg_int(l->module, FOLD_LANES + 1), "");
    for (int64_t i = 0; i < FOLD_LANES; i++) {
        LLVMValueRef at = LLVMBuildAdd(b, row, cg_int(l->module, i), "");
        v[i] = LLVMBuildLoad2(b, lane, cg_at(l, lane, memory, at), "");
    }
    for (int half = FOLD_LANES / 2; half; half /= 2)
        for (int i = 0; i < half; i++)
            v[i] = LLVMBuildFAdd(b, v[i], v[i + half], "");
    LLVMValueRef at = LLVMBuildMul(b, loop.index, cg_int(l->module, w->blocks), "");
    LLVMBuildStore(b, v[0], cg_at(l, lane, to, at));
    cg_loop_close(l, &loop);
    gpu_barrier(&l->m);
}

static void lower_blocks(struct cg_lowering *l, const struct gpu_network *w,
                         const int64_t ends[SUM_KINDS], struct cg_kernel *out)
{
    LLVMBuilderRef b = l->m.b;
    LLVMTypeRef lane = cg_memory_type(l->module, w->dtype);
    int64_t block = fold_block(w->points);
    l->gpu->group = l->gpu->block = FOLD_LANES;
    struct cg_kernel_step *step = gpu_function_open(l, out, "_blocks", 1);
    LLVMValueRef memory =
        gpu_shared(l, (uint64_t)(sums_of(w) * (FOLD_LANES + 1)) * dtype_get(w->dtype)->bytes);
    LLVMValueRef tables[] = {first_rows(l, w, 0), first_rows(l, w, 1)};
    struct cg_loop chunk = gpu_chunks_open(l, w->tasks * w->blocks);
    LLVMValueRef tasks = cg_int(l->module, w->tasks);
    LLVMValueRef task = LLVMBuildURem(b, chunk.index, tasks, "");
    LLVMValueRef which = LLVMBuildUDiv(b, chunk.index, tasks, "");
    LLVMValueRef from = LLVMBuildMul(b, which, cg_int(l->module, block), "");
    LLVMValueRef end = LLVMBuildAdd(b, from, cg_int(l->module, block), "");
    LLVMValueRef last = cg_int(l->module, w->points);
    LLVMValueRef is_short = LLVMBuildICmp(b, LLVMIntSGT, end, last, "");
    struct tile t = {.accumulator = gpu_wide(l, l->gpu->thread),
                     .end = LLVMBuildSelect(b, is_short, last, end, "")};
    t.first = LLVMBuildAdd(b, from, t.accumulator, "");
    for (int i = 0; i < 2; i++)
        t.rows[i] =
            LLVMBuildLoad2(b, l->module->i64, cg_at(l, l->module->i64, tables[i], task), "");
    LLVMValueRef to = LLVMBuildMul(b, task, cg_int(l->module, sums_of(w) * w->blocks), "");
    to = cg_at(l, lane, results_base(l, w), LLVMBuildAdd(b, to, which, ""));
    for (int kind = 0; kind < SUM_KINDS; kind++) {
        int64_t first = kind ? ends[kind - 1] : 0;
        if (first == ends[kind])
            continue;
        LLVMValueRef least = LLVMBuildICmp(b, LLVMIntSGE, task, cg_int(l->module, first), "");
        LLVMValueRef most =
            LLVMBuildICmp(b, LLVMIntSLT, task, cg_int(l->module, ends[kind]), "");
        struct cg_branch its = cg_if_open(l, LLVMBuildAnd(b, least, most, ""));
        sum_points(l, w, &t, (enum sum_kind)kind);
        fold_accumulators(l, w, &t, memory, to);
        cg_if_close(l, &its);
    }
    cg_loop_close(l, &chunk);
    step->total = w->tasks * w->blocks;
    step->grain = 1;
    gpu_function_close(l, step);
}

// ---- Sums

static void lower_tree(struct cg_lowering *l, const struct gpu_network *w,
                       struct cg_kernel *out)
{
    LLVMBuilderRef b = l->m.b;
    LLVMTypeRef lane = cg_memory_type(l->module, w->dtype);
    int64_t count = w->tasks * sums_of(w), groups = TREE_BLOCK / GPU_WARP;
    l->gpu->group = GPU_WARP;
    l->gpu->block = TREE_BLOCK;
    struct cg_kernel_step *step = gpu_function_open(l, out, "_sums", 1);
    struct cg_accumulator a = {
        .op = IR_reduce_sum, .dtype = w->dtype, .count = 1, .lanes = 1, .rows = 1};
    struct cg_loop chunk = gpu_chunks_open(l, (count + groups - 1) / groups);
    LLVMValueRef sum = LLVMBuildMul(b, chunk.index, cg_int(l->module, groups), "");
    sum = LLVMBuildAdd(b, sum, gpu_wide(l, l->gpu->number), "");
    LLVMValueRef is_one = LLVMBuildICmp(b, LLVMIntSLT, sum, cg_int(l->module, count), "");
    struct cg_branch inside = cg_if_open(l, is_one);
    LLVMValueRef at = LLVMBuildMul(b, sum, cg_int(l->module, w->blocks), "");
    struct cg_results rows = {.base = {cg_at(l, lane, results_base(l, w), at)}};
    struct cg_element e = gpu_tree_rows(l, &a, &rows, gpu_i32(l, w->blocks), w->blocks);
    LLVMValueRef is_first = LLVMBuildICmp(b, LLVMIntEQ, l->gpu->in_group, gpu_i32(l, 0), "");
    struct cg_branch one = cg_if_open(l, is_first);
    LLVMBuildStore(b, e.v[0], cg_at(l, lane, sums_base(l, w), sum));
    cg_if_close(l, &one);
    cg_if_close(l, &inside);
    cg_loop_close(l, &chunk);
    step->total = count;
    step->grain = groups;
    gpu_function_close(l, step);
}

void gpu_sums_lower(struct cg_lowering *l, struct gpu_network *w, struct cg_kernel *out)
{
    int64_t ends[SUM_KINDS], block = fold_block(w->points);
    w->side = side_of(w);
    w->blocks = (w->points + block - 1) / block;
    number_tasks(w, ends);
    out->partial_bytes = (uint64_t)((w->rows + ROWS_BEHIND) * w->pitch +
                                    w->tasks * sums_of(w) * (w->blocks + 1)) *
                         dtype_get(w->dtype)->bytes;
    unsigned resident = l->gpu->function.resident;
    lower_blocks(l, w, ends, out);
    lower_tree(l, w, out);
    l->gpu->function.resident = resident;
}

// Where element e of the sum is among those of all tasks.
static LLVMValueRef sum_index(struct cg_lowering *l, const struct gpu_network *w,
                              const struct gpu_sum *x, LLVMValueRef e)
{
    LLVMBuilderRef b = l->m.b;
    LLVMValueRef task, slot, side = cg_int(l->module, w->side);
    if (x->kind == SUM_PRODUCT) {
        LLVMValueRef width = cg_int(l->module, x->width);
        LLVMValueRef i = LLVMBuildUDiv(b, e, width, ""), j = LLVMBuildURem(b, e, width, "");
        task = LLVMBuildMul(b, LLVMBuildUDiv(b, i, side, ""),
                            cg_int(l->module, tiles_across(w, x)), "");
        task = LLVMBuildAdd(b, task, LLVMBuildUDiv(b, j, side, ""), "");
        slot = LLVMBuildMul(b, LLVMBuildURem(b, i, side, ""), side, "");
        slot = LLVMBuildAdd(b, slot, LLVMBuildURem(b, j, side, ""), "");
    } else {
        LLVMValueRef each = cg_int(l->module, tile_elements(w, x->kind));
        task = LLVMBuildUDiv(b, e, each, "");
        slot = LLVMBuildURem(b, e, each, "");
    }
    task = LLVMBuildAdd(b, task, cg_int(l->module, x->task), "");
    task = LLVMBuildMul(b, task, cg_int(l->module, sums_of(w)), "");
    return LLVMBuildAdd(b, task, slot, "");
}

LLVMValueRef gpu_sums_load(struct cg_lowering *l, const struct gpu_network *w,
                           const struct gpu_sum *x, LLVMValueRef e)
{
    LLVMTypeRef lane = cg_memory_type(l->module, w->dtype);
    LLVMValueRef at = cg_at(l, lane, sums_base(l, w), sum_index(l, w, x, e));
    return LLVMBuildLoad2(l->m.b, lane, at, "");
}
