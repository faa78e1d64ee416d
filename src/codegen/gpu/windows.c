// SPDX-License-Identifier: Apache-2.0
// Updates (updates.c) of windows: of points that lie beside one another and have the same turns in the
// same order.  The turns are sorted by bin once.  A warp has a bin and 32 elements of the window: it reads
// what some turns take, and what is there, and then makes these updates one after the other, each of what
// an earlier one of them may have left in the same element.
#include "codegen/gpu/windows.h"
#include "codegen/access.h"
#include "codegen/emit.h"
#include "codegen/gpu/device.h"
#include "codegen/gpu/entry.h"
#include "codegen/gpu/gpu.h"
#include "codegen/gpu/order.h"
#include "codegen/gpu/updates.h"
#include "codegen/index.h"
#include "codegen/kernel.h"
#include "codegen/loop.h"
#include "codegen/lower.h"
#include "codegen/scalar.h"
#include "codegen/types.h"
#include "ir/cost.h"
#include "map/gpu_lanes.h"

#define AHEAD 8 // turns that are read together

struct turn {
    struct cg_value *values; // of the nest, those that the update takes
    struct cg_value old, fresh;
    LLVMValueRef element, is_there;
};

// Turn number `at` of the list, the first one again where there is none.
static struct turn read_turn(struct cg_lowering *l, const struct updates *u, LLVMValueRef list,
                             LLVMValueRef at, LLVMValueRef begin, LLVMValueRef end)
{
    LLVMBuilderRef b = l->m.b;
    struct turn t = {.is_there = LLVMBuildICmp(b, LLVMIntSLT, at, end, "")};
    at = LLVMBuildSelect(b, t.is_there, at, begin, "");
    LLVMValueRef turn = LLVMBuildLoad2(b, l->module->i32, updates_word(l, list, at), "");
    updates_set_turn(l, u, gpu_wide(l, turn));
    updates_lower_turn(l, u, false);
    t.values = arena_copy(l->arena, l->values, l->nest->values.count * sizeof *l->values);
    t.element = cg_index_value(l, &u->of.put->index, JOT_I64);
    if (u->of.put->guard != NEST_NONE)
        t.is_there = LLVMBuildAnd(b, t.is_there, t.values[u->of.put->guard].re, "");
    if (u->of.load)
        t.old = cg_load(l, u->of.load);
    return t;
}

// Turn k, behind those before it.
static void make_update(struct cg_lowering *l, const struct updates *u, struct turn *all, int k)
{
    LLVMBuilderRef b = l->m.b;
    struct turn *t = &all[k];
    for (int i = 0; u->of.load && i < k; i++) {
        LLVMValueRef same = LLVMBuildICmp(b, LLVMIntEQ, all[i].element, t->element, "");
        same = LLVMBuildAnd(b, same, all[i].is_there, "");
        t->old = cg_select(&l->m, same, all[i].fresh, t->old);
    }
    l->values = t->values;
    if (u->of.load)
        l->values[u->of.load->result] = t->old;
    updates_lower_turn(l, u, true);
    t->fresh = cg_wide_value(l, l->values[u->of.put->in[0]]);
}

static void put_turn(struct cg_lowering *l, const struct updates *u, struct turn *t)
{
    l->values = t->values;
    if (u->of.put->guard != NEST_NONE)
        l->values[u->of.put->guard].re = LLVMConstInt(l->module->i1, 1, 0);
    struct cg_branch one = cg_if_open(l, t->is_there);
    cg_store(l, u->of.put, t->fresh);
    cg_if_close(l, &one);
}

static int ahead_of(const struct cg_lowering *l, const struct updates *u)
{
    double work = map_turn_work(l->nest, u->of.loops[0]->body);
    int n = AHEAD;
    while (n > 1 && n * work > COST_AHEAD)
        n /= 2;
    return n;
}

void windows_lower(struct cg_lowering *l, const struct updates *u, struct cg_kernel_step *step)
{
    LLVMBuilderRef b = l->m.b;
    struct cg_value *outside = l->values;
    int64_t warps = UPDATE_BLOCK / GPU_WARP, parts = (u->of.window + GPU_WARP - 1) / GPU_WARP;
    int64_t tasks = u->of.points * u->of.bins * parts;
    int ahead = ahead_of(l, u);
    LLVMValueRef warp = LLVMBuildUDiv(b, l->gpu->thread, gpu_i32(l, GPU_WARP), "");
    struct cg_loop own = gpu_own_chunk_open(l, tasks / warps);
    LLVMValueRef task = LLVMBuildMul(b, own.index, cg_int(l->module, warps), "");
    task = LLVMBuildAdd(b, task, gpu_wide(l, warp), "");
    LLVMValueRef all = cg_int(l->module, parts), bins = cg_int(l->module, u->of.bins);
    LLVMValueRef in_window = LLVMBuildURem(b, task, all, "");
    task = LLVMBuildUDiv(b, task, all, "");
    LLVMValueRef bin = LLVMBuildURem(b, task, bins, "");
    LLVMValueRef point = LLVMBuildUDiv(b, task, bins, "");
    in_window = LLVMBuildMul(b, in_window, cg_int(l->module, GPU_WARP), "");
    in_window = LLVMBuildAdd(b, in_window, gpu_wide(l, u->lane), "");
    LLVMValueRef last = cg_int(l->module, u->of.window - 1);
    struct cg_branch inside = {0};
    if (u->of.window % GPU_WARP)
        inside = cg_if_open(l, LLVMBuildICmp(b, LLVMIntSLE, in_window, last, ""));
    updates_set_point(l, u, point, in_window);
    outside = l->values;
    struct cg_loop chunk = cg_loop_open(l, cg_int(l->module, 0),
                                        cg_int(l->module, u->of.chunks), cg_int(l->module, 1));
    LLVMValueRef number = LLVMBuildMul(b, point, cg_int(l->module, u->of.chunks), "");
    number = LLVMBuildAdd(b, number, chunk.index, "");
    LLVMValueRef at = LLVMBuildMul(b, number, cg_int(l->module, u->of.bins + 1), "");
    at = updates_word(l, u->offsets, LLVMBuildAdd(b, at, bin, ""));
    LLVMValueRef begin = gpu_wide(l, LLVMBuildLoad2(b, l->module->i32, at, ""));
    at = updates_word(l, at, cg_int(l->module, 1));
    LLVMValueRef end = gpu_wide(l, LLVMBuildLoad2(b, l->module->i32, at, ""));
    LLVMValueRef list = LLVMBuildMul(b, number, cg_int(l->module, u->of.length), "");
    list = updates_word(l, u->list, list);
    struct cg_loop loop = cg_loop_open(l, begin, end, cg_int(l->module, ahead));
    struct turn turns[AHEAD];
    for (int k = 0; k < ahead; k++) {
        l->values = arena_copy(l->arena, outside, l->nest->values.count * sizeof *outside);
        turns[k] = read_turn(l, u, list, LLVMBuildAdd(b, loop.index, cg_int(l->module, k), ""),
                             begin, end);
    }
    for (int k = 0; k < ahead; k++)
        make_update(l, u, turns, k);
    for (int k = 0; k < ahead; k++)
        put_turn(l, u, &turns[k]);
    l->values = outside;
    cg_loop_close(l, &loop);
    cg_loop_close(l, &chunk);
    if (u->of.window % GPU_WARP)
        cg_if_close(l, &inside);
    cg_loop_close(l, &own);
    step->total = tasks;
    step->grain = warps;
    step->exact_grid = true;
}
