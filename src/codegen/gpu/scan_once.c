// SPDX-License-Identifier: Apache-2.0
// A long running fold in one pass: every element is read once and stored once.
//
// A block of threads takes a tile, reads it into registers, folds it, tells others what that gave, and
// waits for what comes before the tile.  That is not what others happen to have told first, as where
// blocks look back for the last prefix there is, but has a shape that the number of the tile alone
// decides, so that the bits are the same in every run:
//
//     before the tile = (before its 32 groups + the groups there before its own) + the tiles before it
//                       in its group of 32
//
// The last tile of a group tells what the group is, and that of 32 groups what all up to there is.
// After D. Merrill and M. Garland, "Single-pass Parallel Prefix Scan with Decoupled Look-back" (2016).
#include "codegen/gpu/scan.h"

#define LEAST (1 << 16) // elements that are worth it
#define WINDOWS 8       // of a warp, which its threads keep
#define RESIDENT 4      // blocks of a multiprocessor, some of which wait

// Words of 64 bits, a value below and 1 above it once it is there: of tiles, of groups of 32 of them,
// and of what comes before the end of every 32 groups.  A count of tiles taken stands before them.
#define LEVELS 3
#define BEFORE_WORDS 64 // bytes

struct levels {
    int64_t count[LEVELS]; // words, a multiple of GPU_WARP
    LLVMValueRef words[LEVELS];
};

// Tiles of a block of threads: of windows of each warp.
static int64_t tile_of(const struct scan *p)
{
    return p->lanes * GPU_WARP * WINDOWS * (GPU_BLOCK / GPU_WARP);
}

static uint64_t place_levels(struct cg_lowering *l, const struct scan *p, struct levels *out)
{
    int64_t count = (p->length + tile_of(p) - 1) / tile_of(p), at = BEFORE_WORDS;
    for (int i = 0; i < LEVELS; i++) {
        count = (count + GPU_WARP - 1) / GPU_WARP * GPU_WARP;
        out->count[i] = count;
        out->words[i] = cg_at(l, l->module->i8, gpu_extra_operand(l, 0), cg_int(l->module, at));
        at += 8 * count;
        count /= GPU_WARP;
    }
    return (uint64_t)at;
}

static LLVMValueRef load_word(struct cg_lowering *l, LLVMValueRef at)
{
    LLVMValueRef v = LLVMBuildLoad2(l->m.b, l->module->i64, at, "");
    LLVMSetVolatile(v, true);
    LLVMSetAlignment(v, 8);
    return v;
}

// By the first thread of the warp.
static void publish(struct cg_lowering *l, const struct scan *p, LLVMValueRef words,
                    LLVMValueRef i, LLVMValueRef when, struct cg_value v)
{
    LLVMBuilderRef b = l->m.b;
    LLVMValueRef leads = LLVMBuildICmp(b, LLVMIntEQ, p->lane, gpu_i32(l, 0), "");
    struct cg_branch one = cg_if_open(l, when ? LLVMBuildAnd(b, leads, when, "") : leads);
    LLVMValueRef word = gpu_wide(l, LLVMBuildBitCast(b, v.re, l->module->i32, ""));
    word = LLVMBuildOr(b, word, cg_int(l->module, INT64_C(1) << 32), "");
    LLVMValueRef store = LLVMBuildStore(b, word, cg_at(l, l->module->i64, words, i));
    LLVMSetVolatile(store, true);
    LLVMSetAlignment(store, 8);
    cg_if_close(l, &one);
}

// A word that was read once, when it is there; the neutral element where it is not wanted.
static struct cg_value wait_for(struct cg_lowering *l, const struct scan *p, LLVMValueRef first,
                                LLVMValueRef at, LLVMValueRef wanted)
{
    LLVMBuilderRef b = l->m.b;
    LLVMBasicBlockRef from = LLVMGetInsertBlock(b);
    LLVMBasicBlockRef check =
        LLVMAppendBasicBlockInContext(l->module->context, l->function, "");
    LLVMBasicBlockRef again =
        LLVMAppendBasicBlockInContext(l->module->context, l->function, "");
    LLVMBasicBlockRef done = LLVMAppendBasicBlockInContext(l->module->context, l->function, "");
    LLVMBuildBr(b, check);
    LLVMPositionBuilderAtEnd(b, check);
    LLVMValueRef word = LLVMBuildPhi(b, l->module->i64, "");
    LLVMValueRef is_not =
        LLVMBuildICmp(b, LLVMIntULT, word, cg_int(l->module, INT64_C(1) << 32), "");
    LLVMBuildCondBr(b, LLVMBuildAnd(b, is_not, wanted, ""), again, done);
    LLVMPositionBuilderAtEnd(b, again);
    LLVMValueRef next = load_word(l, at);
    LLVMBuildBr(b, check);
    LLVMAddIncoming(word, (LLVMValueRef[]){first, next}, (LLVMBasicBlockRef[]){from, again}, 2);
    LLVMPositionBuilderAtEnd(b, done);
    gpu_sync_warp(l);
    struct cg_value v = gpu_scan_neutral(l, p, 1);
    LLVMValueRef bits = LLVMBuildTrunc(b, word, l->module->i32, "");
    return gpu_scan_choose(
        l, wanted, (struct cg_value){LLVMBuildBitCast(b, bits, LLVMTypeOf(v.re), ""), NULL}, v);
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

// What comes before the tile, whose own elements are `all`, by a warp: what comes before its 32
// groups, the groups there before its own, and the tiles before it in that.
static struct cg_value before_tile(struct cg_lowering *l, const struct scan *p,
                                   const struct levels *v, LLVMValueRef tile,
                                   struct cg_value all)
{
    LLVMBuilderRef b = l->m.b;
    LLVMValueRef lane = gpu_wide(l, p->lane), size = cg_int(l->module, GPU_WARP);
    LLVMValueRef last = cg_int(l->module, GPU_WARP - 1);
    LLVMValueRef at[LEVELS], wanted[LEVELS], first[LEVELS], is_last[LEVELS], number[LEVELS];
    publish(l, p, v->words[0], tile, NULL, all);
    for (int i = 0; i < LEVELS; i++) {
        number[i] = i ? LLVMBuildUDiv(b, number[i - 1], size, "") : tile;
        LLVMValueRef place = LLVMBuildURem(b, number[i], size, "");
        LLVMValueRef begin = LLVMBuildSub(b, number[i], place, "");
        is_last[i] = LLVMBuildICmp(b, LLVMIntEQ, place, last, "");
        wanted[i] = LLVMBuildICmp(b, LLVMIntULT, lane, place, "");
        LLVMValueRef word = LLVMBuildAdd(b, begin, lane, "");
        if (i == LEVELS - 1) { // what comes before, and not its parts
            LLVMValueRef none = cg_int(l->module, 0);
            wanted[i] = LLVMBuildICmp(b, LLVMIntNE, number[i], none, "");
            word = LLVMBuildSub(b, number[i], cg_int(l->module, 1), "");
            word = LLVMBuildSelect(b, wanted[i], word, none, "");
        }
        at[i] = cg_at(l, l->module->i64, v->words[i], word);
        first[i] = load_word(l, at[i]);
    }
    struct cg_value tiles = fold_warp(l, p, wait_for(l, p, first[0], at[0], wanted[0]));
    publish(l, p, v->words[1], number[1], is_last[0], gpu_scan_combine(l, p, tiles, all));
    struct cg_value groups = fold_warp(l, p, wait_for(l, p, first[1], at[1], wanted[1]));
    struct cg_value before = wait_for(l, p, first[2], at[2], wanted[2]);
    before = gpu_scan_combine(l, p, gpu_scan_combine(l, p, before, groups), tiles);
    publish(l, p, v->words[2], number[2], LLVMBuildAnd(b, is_last[0], is_last[1], ""),
            gpu_scan_combine(l, p, before, all));
    return before;
}

// The tiles in the order in which blocks begin, so that those who wait do so for who has begun.
static LLVMValueRef take_tile(struct cg_lowering *l)
{
    LLVMBuilderRef b = l->m.b;
    LLVMValueRef told = gpu_shared(l, 4);
    LLVMValueRef leads = LLVMBuildICmp(b, LLVMIntEQ, l->gpu->thread, gpu_i32(l, 0), "");
    struct cg_branch one = cg_if_open(l, leads);
    LLVMValueRef old = LLVMBuildAtomicRMW(b, LLVMAtomicRMWBinOpAdd, gpu_extra_operand(l, 0),
                                          gpu_i32(l, 1), LLVMAtomicOrderingMonotonic, false);
    LLVMBuildStore(b, old, told);
    cg_if_close(l, &one);
    gpu_sync(l);
    return gpu_wide(l, LLVMBuildLoad2(b, l->module->i32, told, ""));
}

static struct cg_value shared_value(struct cg_lowering *l, const struct scan *p,
                                    LLVMValueRef shared, LLVMValueRef i)
{
    LLVMTypeRef type = cg_memory_type(l->module, p->combine->dtype);
    return (struct cg_value){LLVMBuildLoad2(l->m.b, type, cg_at(l, type, shared, i), ""), NULL};
}

// The running values, computed here: what they are made of is more registers than they are, while the
// tile waits.
static void settle(struct cg_lowering *l, struct window *w)
{
    LLVMBuilderRef b = l->m.b;
    LLVMTypeRef word = l->module->i32, wide = LLVMTypeOf(w->running.re);
    unsigned lanes = cg_lanes_of(w->running.re);
    LLVMTypeRef words = cg_with_lanes(word, lanes), type = LLVMFunctionType(word, &word, 1, 0);
    LLVMValueRef nothing =
        LLVMGetInlineAsm(type, "", 0, "=r,0", 4, 1, 0, LLVMInlineAsmDialectATT, 0);
    LLVMValueRef v = LLVMBuildBitCast(b, w->running.re, words, ""), all = v;
    for (unsigned i = 0; i < lanes; i++) {
        LLVMValueRef x = lanes > 1 ? cg_extract(&l->m, v, i, 1) : v;
        x = LLVMBuildCall2(b, type, nothing, &x, 1, "");
        all = lanes > 1 ? LLVMBuildInsertElement(b, all, x, gpu_i32(l, i), "") : x;
    }
    w->running.re = LLVMBuildBitCast(b, all, wide, "");
}

static void lower_tile(struct cg_lowering *l, const struct scan *p)
{
    LLVMBuilderRef b = l->m.b;
    enum { WARPS = GPU_BLOCK / GPU_WARP };
    LLVMTypeRef type = cg_memory_type(l->module, p->combine->dtype);
    LLVMValueRef shared = gpu_shared(l, (WARPS + 1) * 8), tile = take_tile(l);
    LLVMValueRef warp = LLVMBuildUDiv(b, l->gpu->thread, gpu_i32(l, GPU_WARP), "");
    LLVMValueRef leads = LLVMBuildICmp(b, LLVMIntEQ, p->lane, gpu_i32(l, 0), "");
    int64_t window = (int64_t)p->lanes * GPU_WARP, n = WINDOWS;
    LLVMValueRef start = LLVMBuildMul(b, tile, cg_int(l->module, WARPS), "");
    start = LLVMBuildAdd(b, start, gpu_wide(l, warp), "");
    start = LLVMBuildMul(b, start, cg_int(l->module, n * window), "");
    struct window w[WINDOWS];
    bool may_end = p->length % tile_of(p) != 0;
    for (int64_t k = 0; k < n; k++)
        gpu_scan_read(l, p, &w[k], LLVMBuildAdd(b, start, cg_int(l->module, k * window), ""),
                      may_end);
    struct cg_value carry = gpu_scan_neutral(l, p, 1);
    for (int64_t k = 0; k < n; k++) {
        carry = gpu_scan_run(l, p, &w[k], carry);
        settle(l, &w[k]);
    }
    struct cg_branch one = cg_if_open(l, leads);
    LLVMBuildStore(b, carry.re, cg_at(l, type, shared, gpu_wide(l, warp)));
    cg_if_close(l, &one);
    gpu_sync(l);
    struct cg_value all = gpu_scan_neutral(l, p, 1), before = all;
    for (int i = 0; i < WARPS; i++) {
        LLVMValueRef is_own = LLVMBuildICmp(b, LLVMIntEQ, warp, gpu_i32(l, i), "");
        before = gpu_scan_choose(l, is_own, all, before);
        struct cg_value v = shared_value(l, p, shared, cg_int(l->module, i));
        all = i ? gpu_scan_combine(l, p, all, v) : v;
    }
    struct levels levels;
    place_levels(l, p, &levels);
    LLVMValueRef is_first = LLVMBuildICmp(b, LLVMIntEQ, warp, gpu_i32(l, 0), "");
    struct cg_branch first = cg_if_open(l, is_first);
    struct cg_value outside = before_tile(l, p, &levels, tile, all);
    one = cg_if_open(l, leads);
    LLVMBuildStore(b, outside.re, cg_at(l, type, shared, cg_int(l->module, WARPS)));
    cg_if_close(l, &one);
    cg_if_close(l, &first);
    gpu_sync(l);
    outside = shared_value(l, p, shared, cg_int(l->module, WARPS));
    before = gpu_scan_combine(l, p, outside, before);
    before.re = cg_splat(&l->m, before.re, p->lanes);
    for (int64_t k = 0; k < n; k++) {
        w[k].running = gpu_scan_combine(l, p, before, w[k].running);
        gpu_scan_write(l, p, &w[k]);
    }
}

// A scan that is the kernel's only one, of values of 32 bits and with little work.
bool gpu_scan_is_once(const struct cg_lowering *l)
{
    const struct nest_block *body = &l->nest->blocks.at[0];
    uint32_t scans = 0;
    bool is = !l->gpu->is_phase;
    for (uint32_t i = 0; i < l->nest->buffers.count; i++)
        is &= l->nest->buffers.at[i].role != NEST_LOCAL;
    for (uint32_t i = 0; i < body->statements.count; i++) {
        const struct nest_statement *s = cg_statement(l, body->statements.at[i]);
        if (s->kind != NEST_SCAN)
            continue;
        const struct nest_block *inside = &l->nest->blocks.at[s->body];
        nest_id yield = inside->statements.at[gpu_scan_yield(l, s)];
        jot_dtype d = cg_statement(l, yield)->combines[0].dtype;
        scans++;
        is &= cg_extent(l, s) >= LEAST && gpu_is_short(l, s->body, WINDOWS) &&
              !dtype_is_complex(d) && dtype_get(d)->bytes == 4;
    }
    return is && scans == 1;
}

// The first function clears the words, the second does the scan.
void gpu_scan_once(struct cg_lowering *l, struct cg_kernel *out)
{
    const struct nest_block *body = &l->nest->blocks.at[0];
    LLVMBuilderRef b = l->m.b;
    nest_id scan = body->statements.at[body->statements.count - 1];
    struct levels levels;
    l->gpu->block = GPU_BLOCK;
    l->gpu->group = 1;
    struct cg_kernel_step *step = gpu_function_open(l, out, "_begin", 1);
    struct scan p = gpu_scan_make(l, scan, PASS_ONCE);
    out->partial_bytes = place_levels(l, &p, &levels);
    int64_t words = (int64_t)out->partial_bytes / 8;
    struct cg_loop chunk = gpu_own_chunk_open(l, (words + GPU_BLOCK - 1) / GPU_BLOCK);
    LLVMValueRef i = LLVMBuildMul(b, chunk.index, cg_int(l->module, GPU_BLOCK), "");
    i = LLVMBuildAdd(b, i, gpu_wide(l, l->gpu->thread), "");
    struct cg_branch inside =
        cg_if_open(l, LLVMBuildICmp(b, LLVMIntSLT, i, cg_int(l->module, words), ""));
    LLVMBuildStore(b, cg_int(l->module, 0),
                   cg_at(l, l->module->i64, gpu_extra_operand(l, 0), i));
    cg_if_close(l, &inside);
    step->total = words;
    step->grain = GPU_BLOCK;
    step->exact_grid = true;
    gpu_function_close(l, step);
    l->gpu->group = GPU_BLOCK;
    // What goes back or ends inside of a tile needs more registers.
    l->gpu->resident = p.s->reverse || p.length % tile_of(&p) ? 0 : RESIDENT;
    step = gpu_function_open(l, out, "", 1);
    l->gpu->is_alone = true;
    p = gpu_scan_make(l, scan, PASS_ONCE);
    gpu_lower_list(l, 0, body->statements.count - 1);
    lower_tile(l, &p);
    l->gpu->is_alone = false;
    step->total = (p.length + tile_of(&p) - 1) / tile_of(&p);
    step->grain = 1;
    step->exact_grid = true;
    gpu_function_close(l, step);
}
