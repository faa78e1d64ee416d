// SPDX-License-Identifier: Apache-2.0
// A long running fold in one pass over memory: every element comes from there once and goes there once.
//
// A block of threads folds a tile and tells what that gave; then it reads a tile that lies LAG tiles
// back, which the second cache still has, and stores its running values.  What comes before that tile
// others have told while the tiles between were folded, so that nobody waits for long.  It is not what
// happens to be there, as where blocks look back for the last prefix that is known, but has a shape that
// the number of the tile alone decides, so that the bits are the same in every run:
//
//     before the tile = (before its 32 groups + the groups there before its own) + the tiles before it
//                       in its group of 32
//
// Blocks wait only for blocks of lower numbers, which a GPU starts first; that the single-pass scans of
// D. Merrill and M. Garland, "Single-pass Parallel Prefix Scan with Decoupled Look-back" (2016), rest
// on too.  Running values are stored past the second cache: kept there, they drive out the tiles that are
// to be read again, and the scan takes a third longer.
#include "codegen/gpu/scan_once.h"
#include "codegen/accumulate.h"
#include "codegen/emit.h"
#include "codegen/gpu/device.h"
#include "codegen/gpu/entry.h"
#include "codegen/gpu/gpu.h"
#include "codegen/gpu/scan.h"
#include "codegen/kernel.h"
#include "codegen/loop.h"
#include "codegen/lower.h"
#include "codegen/memory.h"
#include "codegen/scalar.h"
#include "codegen/types.h"
#include "map/gpu_scratch.h"

#define WARPS (GPU_BLOCK / GPU_WARP)
#define WINDOWS MAP_SCAN_WINDOWS
#define RESIDENT 3 // blocks of a multiprocessor
#define LAG 256    // tiles between the one that is folded and the one that is stored

// Words of 64 bits, a value below and 1 above it once it is there: of tiles, of groups of 32 of them,
// and of what comes before the end of every 32 groups.
#define LEVELS MAP_SCAN_LEVELS

// Tiles of a block of threads: of windows of each warp.
static int64_t tile_length(const struct scan *p) { return p->lanes * GPU_BLOCK * WINDOWS; }

static int64_t tiles_of(const struct scan *p)
{
    return (p->length + tile_length(p) - 1) / tile_length(p);
}

static int64_t lag_of(const struct scan *p)
{
    return tiles_of(p) / 2 < LAG ? tiles_of(p) / 2 : LAG;
}

// Where the words of each level are; how many there are.
static int64_t lay_out_levels(struct cg_lowering *l, const struct scan *p,
                              LLVMValueRef words[LEVELS])
{
    int64_t first[LEVELS], count = (int64_t)map_scan_words(l->nest, p->s, first);
    for (int i = 0; i < LEVELS; i++)
        words[i] = cg_at(l, l->module->i8, gpu_scratch(l), cg_int(l->module, 8 * first[i]));
    return count;
}

// By the first thread of the warp.
static void publish(struct cg_lowering *l, const struct scan *p, LLVMValueRef words,
                    LLVMValueRef i, struct cg_value v)
{
    LLVMBuilderRef b = l->m.b;
    LLVMValueRef leads = LLVMBuildICmp(b, LLVMIntEQ, p->lane, gpu_i32(l, 0), "");
    struct cg_branch one = cg_if_open(l, leads);
    LLVMValueRef word = gpu_wide(l, LLVMBuildBitCast(b, v.re, l->module->i32, ""));
    word = LLVMBuildOr(b, word, cg_int(l->module, INT64_C(1) << 32), "");
    LLVMValueRef store = LLVMBuildStore(b, word, cg_at(l, l->module->i64, words, i));
    LLVMSetVolatile(store, true);
    LLVMSetAlignment(store, 8);
    cg_if_close(l, &one);
}

// The word, once it is there; the neutral element where it is not wanted.
static struct cg_value wait_for(struct cg_lowering *l, const struct scan *p, LLVMValueRef at,
                                LLVMValueRef wanted)
{
    LLVMBuilderRef b = l->m.b;
    LLVMBasicBlockRef check =
        LLVMAppendBasicBlockInContext(l->module->context, l->frame.function, "");
    LLVMBasicBlockRef done =
        LLVMAppendBasicBlockInContext(l->module->context, l->frame.function, "");
    LLVMBuildBr(b, check);
    LLVMPositionBuilderAtEnd(b, check);
    LLVMValueRef word = LLVMBuildLoad2(b, l->module->i64, at, "");
    LLVMSetVolatile(word, true);
    LLVMSetAlignment(word, 8);
    LLVMValueRef is_not =
        LLVMBuildICmp(b, LLVMIntULT, word, cg_int(l->module, INT64_C(1) << 32), "");
    LLVMBuildCondBr(b, LLVMBuildAnd(b, is_not, wanted, ""), check, done);
    LLVMPositionBuilderAtEnd(b, done);
    gpu_sync_warp(l);
    struct cg_value v = gpu_scan_neutral(l, p, 1);
    LLVMValueRef bits = LLVMBuildTrunc(b, word, l->module->i32, "");
    return cg_select(&l->m, wanted,
                     (struct cg_value){LLVMBuildBitCast(b, bits, LLVMTypeOf(v.re), ""), NULL},
                     v);
}

// The elements of the threads of the warp as one, in their order, in all threads.
static struct cg_value fold_warp(struct cg_lowering *l, const struct scan *p, struct cg_value v)
{
    for (unsigned distance = 1; distance < GPU_WARP; distance *= 2) {
        struct cg_element e = {{v.re, NULL, NULL}};
        e = gpu_shuffle_down(l, &e, distance);
        v = gpu_scan_combine(l, p, v, (struct cg_value){e.v[0], NULL});
    }
    return gpu_scan_shuffled(l, v, false, 0);
}

// Words begin .. begin + 31 of a level as one, without those of threads that do not want theirs.
static struct cg_value fold_words(struct cg_lowering *l, const struct scan *p,
                                  LLVMValueRef words, LLVMValueRef begin, LLVMValueRef wanted)
{
    LLVMValueRef word = LLVMBuildAdd(l->m.b, begin, gpu_wide(l, p->lane), "");
    return fold_warp(l, p, wait_for(l, p, cg_at(l, l->module->i64, words, word), wanted));
}

// What comes before the 32 groups of the given number.
static struct cg_value before_groups(struct cg_lowering *l, const struct scan *p,
                                     LLVMValueRef words, LLVMValueRef number)
{
    LLVMBuilderRef b = l->m.b;
    LLVMValueRef none = cg_int(l->module, 0);
    LLVMValueRef wanted = LLVMBuildICmp(b, LLVMIntNE, number, none, "");
    LLVMValueRef word = LLVMBuildSub(b, number, cg_int(l->module, 1), "");
    word = LLVMBuildSelect(b, wanted, word, none, "");
    return wait_for(l, p, cg_at(l, l->module->i64, words, word), wanted);
}

// What comes before the tile, by a warp.  It also waits until the tile itself has been folded, for what
// is stored may be where that was read.
static struct cg_value before_tile(struct cg_lowering *l, const struct scan *p,
                                   LLVMValueRef words[LEVELS], LLVMValueRef tile)
{
    LLVMBuilderRef b = l->m.b;
    LLVMValueRef lane = gpu_wide(l, p->lane), size = cg_int(l->module, GPU_WARP);
    struct cg_value v[LEVELS];
    for (int i = 0; i < LEVELS - 1; i++) {
        LLVMValueRef among_32 = LLVMBuildURem(b, tile, size, "");
        LLVMValueRef wanted = LLVMBuildICmp(b, LLVMIntULT, lane, among_32, "");
        if (!i)
            wait_for(l, p, cg_at(l, l->module->i64, words[0], tile),
                     LLVMBuildICmp(b, LLVMIntEQ, lane, cg_int(l->module, 0), ""));
        v[i] = fold_words(l, p, words[i], LLVMBuildSub(b, tile, among_32, ""), wanted);
        tile = LLVMBuildUDiv(b, tile, size, "");
    }
    v[2] = before_groups(l, p, words[2], tile);
    return gpu_scan_combine(l, p, gpu_scan_combine(l, p, v[2], v[1]), v[0]);
}

// Opens what is done for a tile so far back where that ends `size` tiles; its number, and that of those.
static struct cg_branch ends_open(struct cg_lowering *l, const struct scan *p,
                                  LLVMValueRef tile, int64_t back, int64_t size,
                                  LLVMValueRef *number)
{
    LLVMBuilderRef b = l->m.b;
    tile = LLVMBuildSub(b, tile, cg_int(l->module, back), "");
    LLVMValueRef all = cg_int(l->module, size), last = cg_int(l->module, size - 1);
    LLVMValueRef is_there =
        LLVMBuildICmp(b, LLVMIntULT, tile, cg_int(l->module, tiles_of(p)), "");
    LLVMValueRef ends = LLVMBuildICmp(b, LLVMIntEQ, LLVMBuildAnd(b, tile, last, ""), last, "");
    *number = LLVMBuildUDiv(b, tile, all, "");
    return cg_if_open(l, LLVMBuildAnd(b, is_there, ends, ""));
}

// By a warp: what tiles further back give together, once the last of them has been told.
static void tell_groups(struct cg_lowering *l, const struct scan *p, LLVMValueRef words[LEVELS],
                        LLVMValueRef tile)
{
    LLVMBuilderRef b = l->m.b;
    LLVMValueRef size = cg_int(l->module, GPU_WARP), number;
    LLVMValueRef all = LLVMConstInt(LLVMInt1TypeInContext(l->module->context), 1, 0);
    struct cg_branch ends = ends_open(l, p, tile, lag_of(p) / 4, GPU_WARP, &number);
    LLVMValueRef first = LLVMBuildMul(b, number, size, "");
    publish(l, p, words[1], number, fold_words(l, p, words[0], first, all));
    cg_if_close(l, &ends);
    ends = ends_open(l, p, tile, lag_of(p) / 2, GPU_WARP * GPU_WARP, &number);
    first = LLVMBuildMul(b, number, size, "");
    struct cg_value groups = fold_words(l, p, words[1], first, all);
    struct cg_value before = before_groups(l, p, words[2], number);
    publish(l, p, words[2], number, gpu_scan_combine(l, p, before, groups));
    cg_if_close(l, &ends);
}

static struct cg_value shared_value(struct cg_lowering *l, const struct scan *p,
                                    LLVMValueRef shared, LLVMValueRef i)
{
    LLVMTypeRef type = cg_memory_type(l->module, p->combine->dtype);
    return (struct cg_value){LLVMBuildLoad2(l->m.b, type, cg_at(l, type, shared, i), ""), NULL};
}

static void read_tile(struct cg_lowering *l, const struct scan *p, LLVMValueRef tile,
                      LLVMValueRef warp, struct window *w)
{
    LLVMBuilderRef b = l->m.b;
    int64_t window = (int64_t)p->lanes * GPU_WARP;
    LLVMValueRef start = LLVMBuildMul(b, tile, cg_int(l->module, WARPS), "");
    start = LLVMBuildAdd(b, start, gpu_wide(l, warp), "");
    start = LLVMBuildMul(b, start, cg_int(l->module, WINDOWS * window), "");
    for (int64_t k = 0; k < WINDOWS; k++)
        gpu_scan_read(l, p, &w[k], LLVMBuildAdd(b, start, cg_int(l->module, k * window), ""),
                      p->length % tile_length(p) != 0);
}

// The elements of a tile that the threads of a warp have, as one.
static struct cg_value fold_tile(struct cg_lowering *l, const struct scan *p, struct window *w)
{
    struct cg_value all = w[0].running;
    for (int64_t k = 1; k < WINDOWS; k++)
        all = gpu_scan_combine(l, p, all, w[k].running);
    struct cg_value one = all;
    for (unsigned i = 0; p->lanes > 1 && i < p->lanes; i++) {
        struct cg_value lane = {cg_extract(&l->m, all.re, i, 1), NULL};
        one = i ? gpu_scan_combine(l, p, one, lane) : lane;
    }
    return fold_warp(l, p, one);
}

// By the first thread of each warp, for all of the block.
static void share(struct cg_lowering *l, const struct scan *p, LLVMValueRef shared,
                  LLVMValueRef i, struct cg_value v)
{
    LLVMValueRef leads = LLVMBuildICmp(l->m.b, LLVMIntEQ, p->lane, gpu_i32(l, 0), "");
    struct cg_branch one = cg_if_open(l, leads);
    LLVMTypeRef type = cg_memory_type(l->module, p->combine->dtype);
    LLVMBuildStore(l->m.b, v.re, cg_at(l, type, shared, i));
    cg_if_close(l, &one);
}

// Warps of a block: what the tile of each has told is folded by one, what comes before it by another.
static void lower_tiles(struct cg_lowering *l, const struct scan *p)
{
    LLVMBuilderRef b = l->m.b;
    LLVMValueRef folds = gpu_shared(l, WARPS * 8), totals = gpu_shared(l, (WARPS + 1) * 8);
    LLVMValueRef warp = LLVMBuildUDiv(b, l->gpu->thread, gpu_i32(l, GPU_WARP), "");
    LLVMValueRef own = gpu_wide(l, warp), last = cg_int(l->module, WARPS), words[LEVELS];
    LLVMValueRef front = gpu_wide(l, gpu_block_number(l)), lag = cg_int(l->module, lag_of(p));
    LLVMValueRef is_back = LLVMBuildICmp(b, LLVMIntSGE, front, lag, "");
    LLVMValueRef back = LLVMBuildSub(b, front, lag, "");
    back = LLVMBuildSelect(b, is_back, back, front, ""); // of which nothing is stored
    lay_out_levels(l, p, words);
    struct window w[WINDOWS], ahead[WINDOWS];
    read_tile(l, p, back, warp, w);
    LLVMValueRef is_front =
        LLVMBuildICmp(b, LLVMIntSLT, front, cg_int(l->module, tiles_of(p)), "");
    struct cg_branch there = cg_if_open(l, is_front);
    read_tile(l, p, front, warp, ahead);
    share(l, p, folds, own, fold_tile(l, p, ahead));
    cg_if_close(l, &there);
    gpu_sync(l);
    LLVMValueRef is_first = LLVMBuildICmp(b, LLVMIntEQ, warp, gpu_i32(l, 0), "");
    struct cg_branch first = cg_if_open(l, is_first);
    there = cg_if_open(l, is_front);
    struct cg_value all = shared_value(l, p, folds, cg_int(l->module, 0));
    for (int i = 1; i < WARPS; i++)
        all = gpu_scan_combine(l, p, all, shared_value(l, p, folds, cg_int(l->module, i)));
    publish(l, p, words[0], front, all);
    cg_if_close(l, &there);
    tell_groups(l, p, words, front);
    cg_else_open(l, &first);
    LLVMValueRef is_second = LLVMBuildICmp(b, LLVMIntEQ, warp, gpu_i32(l, 1), "");
    there = cg_if_open(l, LLVMBuildAnd(b, is_second, is_back, ""));
    share(l, p, totals, last, before_tile(l, p, words, back));
    cg_if_close(l, &there);
    cg_if_close(l, &first);
    struct cg_value carry = gpu_scan_neutral(l, p, 1), before = carry;
    for (int64_t k = 0; k < WINDOWS; k++)
        carry = gpu_scan_run(l, p, &w[k], carry);
    share(l, p, totals, own, carry);
    gpu_sync(l);
    there = cg_if_open(l, is_back);
    for (int i = 0; i < WARPS - 1; i++) {
        struct cg_value next = shared_value(l, p, totals, cg_int(l->module, i));
        LLVMValueRef is_before = LLVMBuildICmp(b, LLVMIntUGT, warp, gpu_i32(l, i), "");
        before = cg_select(&l->m, is_before, gpu_scan_combine(l, p, before, next), before);
    }
    before = gpu_scan_combine(l, p, shared_value(l, p, totals, last), before);
    before.re = cg_splat(&l->m, before.re, p->lanes);
    for (int64_t k = 0; k < WINDOWS; k++) {
        w[k].running = gpu_scan_combine(l, p, before, w[k].running);
        gpu_scan_write(l, p, &w[k]);
    }
    cg_if_close(l, &there);
}

// The first function clears the words, the second does the scan.
void gpu_scan_once(struct cg_lowering *l, struct cg_kernel *out)
{
    const struct nest_block *body = &l->nest->blocks.at[0];
    LLVMBuilderRef b = l->m.b;
    nest_id scan = body->statements.at[body->statements.count - 1];
    LLVMValueRef levels[LEVELS];
    l->gpu->block = GPU_BLOCK;
    l->gpu->group = 1;
    struct cg_kernel_step *step = gpu_function_open(l, out, "_begin", 0);
    struct scan p = gpu_scan_make(l, scan, PASS_ONCE);
    int64_t words = lay_out_levels(l, &p, levels);
    struct cg_loop chunk = gpu_own_chunk_open(l, (words + GPU_BLOCK - 1) / GPU_BLOCK);
    LLVMValueRef i = LLVMBuildMul(b, chunk.index, cg_int(l->module, GPU_BLOCK), "");
    i = LLVMBuildAdd(b, i, gpu_wide(l, l->gpu->thread), "");
    struct cg_branch inside =
        cg_if_open(l, LLVMBuildICmp(b, LLVMIntSLT, i, cg_int(l->module, words), ""));
    LLVMBuildStore(b, cg_int(l->module, 0), cg_at(l, l->module->i64, gpu_scratch(l), i));
    cg_if_close(l, &inside);
    step->total = words;
    step->grain = GPU_BLOCK;
    step->exact_grid = true;
    gpu_function_close(l, step);
    l->gpu->group = GPU_BLOCK;
    // What goes back or ends inside of a tile needs more registers.
    l->gpu->function.resident = p.s->reverse || p.length % tile_length(&p) ? 0 : RESIDENT;
    step = gpu_function_open(l, out, "_once" GPU_STREAMS, 0);
    l->gpu->is_alone = true;
    p = gpu_scan_make(l, scan, PASS_ONCE);
    gpu_lower_list(l, 0, body->statements.count - 1);
    lower_tiles(l, &p);
    l->gpu->is_alone = false;
    step->total = tiles_of(&p) + lag_of(&p);
    step->grain = 1;
    step->exact_grid = true;
    gpu_function_close(l, step);
}
