// SPDX-License-Identifier: Apache-2.0
// Long loops of updates whose elements are data, one after the other for each element:
//
//     par p < P { seq j < n { ... %e = load y[%at]; %f = add %e, %u; put y[%at] = %f if %g } }
//
// Loops in one another are one sequence of turns.
//
// Elements are dealt out to bins.  A first function sorts the turns of the loop by bin, a chunk of them
// a block of threads, without changing their order in a bin (order.c).  In a second one a warp has a bin:
// 32 turns are at hand at once, and the first thread of those that have the same element makes their
// updates in order, with what the others have from shuffles, and stores the last result.  Where an update
// takes one number of its turn at most, the order has that number in place of the turn's (bins.c).  Where a
// block can count the updates of every element they are sorted by element (counting_sort.c).  Neighbouring points
// that all have the same turns in the same order are one window, and sorted once (windows.c).
#include "codegen/gpu/updates.h"
#include "codegen/access.h"
#include "codegen/accumulate.h"
#include "codegen/emit.h"
#include "codegen/gpu/bins.h"
#include "codegen/gpu/counting_sort.h"
#include "codegen/gpu/device.h"
#include "codegen/gpu/entry.h"
#include "codegen/gpu/gpu.h"
#include "codegen/gpu/order.h"
#include "codegen/gpu/windows.h"
#include "codegen/index.h"
#include "codegen/kernel.h"
#include "codegen/loop.h"
#include "codegen/lower.h"
#include "codegen/memory.h"
#include "codegen/types.h"
#include "map/gpu_counting_sort.h"
#include "map/gpu_updates.h"

#include "ir/cost.h"

#include <string.h>

// ---- Pieces

// The axis from the number *at of what is left, slowest axes last.  There are fewer than 2^31.
static LLVMValueRef next_axis(struct cg_lowering *l, LLVMValueRef *at, nest_id axis,
                              bool is_last)
{
    LLVMBuilderRef b = l->m.b;
    if (is_last)
        return *at;
    LLVMValueRef n = gpu_i32(l, l->nest->axes.at[axis].extent);
    LLVMValueRef x = LLVMBuildTrunc(b, *at, l->module->i32, "");
    *at = gpu_wide(l, LLVMBuildUDiv(b, x, n, ""));
    return gpu_wide(l, LLVMBuildURem(b, x, n, ""));
}

void updates_set_axes(struct cg_lowering *l, const struct updates *u, LLVMValueRef point,
                      LLVMValueRef in_window)
{
    uint32_t left[2] = {0};
    for (uint32_t k = 0; u->of.par && k < u->of.par->n_axes; k++)
        left[u->of.is_window[u->of.par->axes[k]]]++;
    for (uint32_t k = u->of.par ? u->of.par->n_axes : 0; k-- > 0;) {
        nest_id axis = u->of.par->axes[k];
        bool is_window = u->of.is_window[axis];
        l->axes[axis] = next_axis(l, is_window ? &in_window : &point, axis, !--left[is_window]);
    }
}

void updates_set_point(struct cg_lowering *l, const struct updates *u, LLVMValueRef point,
                       LLVMValueRef in_window)
{
    updates_set_axes(l, u, point, in_window);
    const struct nest_block *body = u->of.par ? &l->nest->blocks.at[u->of.par->body] : NULL;
    for (uint32_t i = 0; body && i + 1 < body->statements.count; i++)
        cg_lower_statement(l, body->statements.at[i]);
}

void updates_set_turn(struct cg_lowering *l, const struct updates *u, LLVMValueRef turn)
{
    for (uint32_t k = u->of.n_loops; k-- > 0;) {
        const struct nest_statement *s = u->of.loops[k];
        LLVMValueRef at = next_axis(l, &turn, s->axes[0], k == 0);
        LLVMValueRef last = cg_int(l->module, cg_extent(l, s) - 1);
        l->axes[s->axes[0]] = s->reverse ? LLVMBuildSub(l->m.b, last, at, "") : at;
    }
}

void updates_lower_turn(struct cg_lowering *l, const struct updates *u, bool depends)
{
    for (uint32_t i = 0; i < u->of.body->statements.count; i++) {
        const struct nest_statement *s = cg_statement(l, u->of.body->statements.at[i]);
        if (nest_is_scalar(s) && s != u->of.load && u->of.depends[s->result] == depends)
            cg_lower_statement(l, u->of.body->statements.at[i]);
    }
}

// The lanes of the warp that have the same key.
static LLVMValueRef match(struct cg_lowering *l, LLVMValueRef key)
{
    return gpu_call(&l->m, "llvm.nvvm.match.any.sync.i32", 2,
                    (LLVMValueRef[]){gpu_i32(l, -1), key});
}

static LLVMValueRef put_element(struct cg_lowering *l, const struct updates *u)
{
    LLVMValueRef at = cg_index_value(l, &u->of.put->index, JOT_I64);
    return LLVMBuildTrunc(l->m.b, at, l->module->i32, "");
}

// ---- The updates of a bin

static struct cg_value from_lane(struct cg_lowering *l, struct cg_value v, LLVMValueRef lane)
{
    struct cg_element e = {{v.re, v.im, NULL}};
    e = gpu_shuffle_from(l, &e, lane);
    return (struct cg_value){e.v[0], e.v[1]};
}

// The values that an update takes of its turn, from the lane that has the turn.
static void fetch(struct cg_lowering *l, const struct updates *u, const struct cg_value *own,
                  LLVMValueRef lane)
{
    bool *done = arena_array(l->arena, bool, l->nest->values.count + 1);
    for (uint32_t i = 0; i < u->of.body->statements.count; i++) {
        const struct nest_statement *s = cg_statement(l, u->of.body->statements.at[i]);
        bool wants = s == u->of.put || (s->kind == NEST_OP && u->of.depends[s->result]);
        for (uint32_t k = 0; wants && k < s->n_in; k++) {
            nest_id v = s->in[k];
            if (done[v] || u->of.depends[v] || !map_is_in_turn(l->nest, &u->of, v) ||
                LLVMIsConstant(own[v].re))
                continue;
            l->values[v] = from_lane(l, own[v], lane);
            done[v] = true;
        }
    }
}

static void store_value(struct cg_lowering *l, const struct cg_value slot, struct cg_value v)
{
    LLVMBuildStore(l->m.b, v.re, slot.re);
    if (v.im)
        LLVMBuildStore(l->m.b, v.im, slot.im);
}

static struct cg_value load_value(struct cg_lowering *l, struct cg_value slot, LLVMTypeRef type)
{
    return (struct cg_value){LLVMBuildLoad2(l->m.b, type, slot.re, ""),
                             slot.im ? LLVMBuildLoad2(l->m.b, type, slot.im, "") : NULL};
}

// The first of the lanes with the same element makes the updates of all, lowest lane first.
static void update(struct cg_lowering *l, const struct updates *u, LLVMValueRef is_there)
{
    LLVMBuilderRef b = l->m.b;
    LLVMTypeRef i1 = l->module->i1, i32 = l->module->i32;
    size_t bytes = l->nest->values.count * sizeof *l->values;
    struct cg_value *own = arena_copy(l->arena, l->values, bytes), *outside = l->values;
    jot_dtype d = l->nest->buffers.at[u->of.put->buffer].dtype;
    LLVMTypeRef lane = cg_lane_type(l->module, dtype_real(d));
    LLVMValueRef guard = u->of.put->guard == NEST_NONE
                             ? is_there
                             : LLVMBuildAnd(b, is_there, own[u->of.put->guard].re, "");
    LLVMValueRef none = LLVMBuildOr(b, u->lane, gpu_i32(l, INT32_MIN), "");
    LLVMValueRef peers = match(l, LLVMBuildSelect(b, is_there, put_element(l, u), none, ""));
    LLVMValueRef rank = updates_rank(l, u, peers);
    LLVMValueRef is_first = LLVMBuildICmp(b, LLVMIntEQ, rank, gpu_i32(l, 0), "");
    LLVMValueRef leads = LLVMBuildAnd(b, is_first, is_there, "");
    struct cg_value slot = {cg_alloca(l, lane, 1),
                            dtype_is_complex(d) ? cg_alloca(l, lane, 1) : NULL};
    LLVMValueRef left = cg_alloca(l, i32, 1), has = cg_alloca(l, i1, 1);
    LLVMValueRef nothing = LLVMConstNull(lane);
    store_value(l, slot, (struct cg_value){nothing, slot.im ? nothing : NULL});
    LLVMBuildStore(b, LLVMConstInt(i1, 0, 0), has);
    LLVMBuildStore(b, peers, left);
    if (u->of.load) {
        struct cg_branch lead = cg_if_open(l, leads);
        store_value(l, slot, cg_load(l, u->of.load));
        cg_if_close(l, &lead);
    }

    LLVMContextRef c = l->module->context;
    LLVMBasicBlockRef turn = LLVMAppendBasicBlockInContext(c, l->frame.function, "");
    LLVMBasicBlockRef done = LLVMAppendBasicBlockInContext(c, l->frame.function, "");
    LLVMBuildBr(b, turn);
    LLVMPositionBuilderAtEnd(b, turn);
    l->values = arena_copy(l->arena, own, bytes);
    LLVMValueRef rest = LLVMBuildLoad2(b, i32, left, "");
    LLVMValueRef from = cg_intrinsic(&l->m, "llvm.cttz", i32, 2,
                                     (LLVMValueRef[]){rest, LLVMConstInt(i1, 0, 0)});
    from = LLVMBuildAnd(b, from, gpu_i32(l, GPU_WARP - 1), "");
    fetch(l, u, own, from);
    LLVMValueRef counts = from_lane(l, (struct cg_value){guard, NULL}, from).re;
    counts = LLVMBuildAnd(b, counts, LLVMBuildICmp(b, LLVMIntNE, rest, gpu_i32(l, 0), ""), "");
    struct cg_value old = load_value(l, slot, lane);
    if (u->of.load)
        l->values[u->of.load->result] = old;
    updates_lower_turn(l, u, true);
    struct cg_value fresh = cg_wide_value(l, l->values[u->of.put->in[0]]);
    fresh.re = LLVMBuildSelect(b, counts, fresh.re, old.re, "");
    fresh.im = fresh.im ? LLVMBuildSelect(b, counts, fresh.im, old.im, "") : NULL;
    store_value(l, slot, fresh);
    LLVMBuildStore(b, LLVMBuildOr(b, counts, LLVMBuildLoad2(b, i1, has, ""), ""), has);
    rest = LLVMBuildAnd(b, rest, LLVMBuildSub(b, rest, gpu_i32(l, 1), ""), "");
    LLVMBuildStore(b, rest, left);
    LLVMValueRef goes_on = LLVMBuildICmp(b, LLVMIntNE, rest, gpu_i32(l, 0), "");
    LLVMBuildCondBr(b, updates_any(l, goes_on), turn, done);
    LLVMPositionBuilderAtEnd(b, done);

    l->values = arena_copy(l->arena, own, bytes);
    if (u->of.put->guard != NEST_NONE)
        l->values[u->of.put->guard].re = LLVMConstInt(i1, 1, 0);
    LLVMValueRef stores = LLVMBuildAnd(b, leads, LLVMBuildLoad2(b, i1, has, ""), "");
    struct cg_branch lead = cg_if_open(l, stores);
    cg_store(l, u->of.put, load_value(l, slot, lane));
    cg_if_close(l, &lead);
    l->values = outside;
    gpu_sync_warp(l);
}

static void lower_bins(struct cg_lowering *l, struct updates *u, struct cg_kernel_step *step)
{
    LLVMBuilderRef b = l->m.b;
    struct updates_bin bin = updates_bin_open(l, u, step);
    struct cg_loop chunks = updates_chunks_open(l, u, &bin);
    struct cg_loop turns = cg_loop_open(l, cg_int(l->module, 0), gpu_wide(l, bin.count),
                                        cg_int(l->module, GPU_WARP));
    LLVMValueRef is_there, mine = LLVMBuildTrunc(b, turns.index, l->module->i32, "");
    mine = updates_at(l, &bin, LLVMBuildAdd(b, mine, u->lane, ""), &is_there);
    updates_set_turn(l, u, gpu_wide(l, updates_load_word(l, u->list, mine)));
    updates_lower_turn(l, u, false);
    update(l, u, is_there);
    cg_loop_close(l, &turns);
    cg_loop_close(l, &chunks);
    cg_loop_close(l, &bin.loop);
}

void gpu_updates_lower(struct cg_lowering *l, uint32_t at, struct cg_kernel *out)
{
    struct updates u;
    struct map_gpu m = gpu_map_of(l);
    struct map_counting_sort sort;
    map_updates_find(&m, l->nest->blocks.at[0].statements.at[at], &u.of);
    l->gpu->function.keeps_loops = true;
    if (map_counting_sort_find(&m, &u.of, &sort)) {
        counting_sort_lower(l, &u, &sort, at, out);
        return;
    }
    for (int pass = 0; pass < 2; pass++) {
        l->gpu->block = pass ? UPDATE_BLOCK : MAP_ORDER_BLOCK;
        l->gpu->group = l->gpu->block;
        l->gpu->is_alone = true;
        struct cg_kernel_step *step = gpu_function_open(l, out, pass ? "" : "_order", 0);
        u.offsets = gpu_scratch(l);
        u.list = updates_word(l, u.offsets, cg_int(l->module, u.of.offsets));
        int64_t turns = u.of.points * u.of.chunks * u.of.length;
        for (int64_t c = 0; c < u.of.copies; c++) {
            int64_t first = turns * (MAP_SLOT_BYTES + c * map_value_bytes(u.of.dtype));
            u.values[c] = cg_at(l, l->module->i8, u.list, cg_int(l->module, first));
        }
        u.lane = LLVMBuildURem(l->m.b, l->gpu->thread, gpu_i32(l, GPU_WARP), "");
        gpu_lower_list(l, 0, at);
        if (!pass)
            order_lower(l, &u, step);
        else if (u.of.window > 1)
            windows_lower(l, &u, step);
        else if (u.of.is_carried)
            bins_lower(l, &u, step);
        else
            lower_bins(l, &u, step);
        gpu_function_close(l, step);
    }
    l->gpu->is_alone = false;
}
