// SPDX-License-Identifier: Apache-2.0
// Points that several threads share: groups of threads along an axis inside, each with a point, and
// columns, neighbouring points of neighbouring threads.
#include "codegen/gpu/groups.h"
#include "codegen/gpu/device.h"
#include "codegen/gpu/entry.h"
#include "codegen/gpu/gpu.h"
#include "codegen/gpu/points.h"
#include "codegen/kernel.h"
#include "codegen/loop.h"
#include "codegen/lower.h"
#include "codegen/types.h"
#include "map/gpu_lanes.h"

#include "base/count.h"

#include <stdlib.h>

// Marks the statements that stand in loops over time or branches.
static void mark(struct cg_lowering *l, uint32_t block, bool inside)
{
    nest_for_each (s, l->nest, block) {
        bool within =
            inside || s->kind == NEST_SEQ || s->kind == NEST_WHILE || s->kind == NEST_IF;
        l->gpu->waits.is_repeated[nest_id_of(l->nest, s)] = inside;
        mark(l, s->body, within);
        mark(l, s->other, within);
    }
}

static bool is_access(const struct nest_statement *s)
{
    return s->kind == NEST_LOAD || s->kind == NEST_PUT;
}

// Takes the terms of x that y does not have from the range of their difference, and their factors into *step; false:
// some are data.
static bool add_terms(const struct nest *n, const struct nest_index *x,
                      const struct nest_index *y, int sign, int64_t *low, int64_t *high,
                      int64_t *step)
{
    for (uint32_t i = 0; i < x->count; i++) {
        const struct nest_term *t = &x->terms[i];
        bool is_common = false;
        for (uint32_t k = 0; k < y->count; k++)
            is_common |= y->terms[k].id == t->id && y->terms[k].is_value == t->is_value &&
                         y->terms[k].factor == t->factor;
        if (is_common)
            continue;
        if (t->is_value)
            return false;
        int64_t reach = sign * t->factor * (n->axes.at[t->id].extent - 1);
        *(reach < 0 ? low : high) += reach;
        *step = count_common_divisor(*step, llabs(t->factor));
    }
    return true;
}

// Whether two accesses may be of one element in the same iteration of the loops around both.
static bool may_be_one_element(const struct nest *n, const struct nest_index *x,
                               const struct nest_index *y)
{
    int64_t low = x->constant - y->constant, high = low, first = low, step = 0;
    if (!add_terms(n, x, y, 1, &low, &high, &step) ||
        !add_terms(n, y, x, -1, &low, &high, &step))
        return true;
    return low <= 0 && high >= 0 && (step ? first % step == 0 : first == 0);
}

// Whether a thread of a group puts in memory what another one may read or put in a later loop.
static bool passes_on(const struct nest *n)
{
    nest_for_all (s, n) {
        if (s->kind != NEST_PUT || n->buffers.at[s->buffer].role == NEST_LOCAL)
            continue;
        nest_for_all (t, n)
            if (s != t && is_access(t) && s->buffer == t->buffer &&
                may_be_one_element(n, &s->index, &t->index))
                return true;
    }
    return false;
}

// What the threads of the kernel have to wait for.
void gpu_share_out(struct cg_lowering *l)
{
    struct cg_gpu *g = l->gpu;
    g->waits.is_repeated = arena_array(l->arena, bool, l->nest->statements.count + 1);
    g->waits.is_read = arena_array(l->arena, bool, l->nest->buffers.count + 1);
    g->waits.shares_locals = false;
    g->waits.statement = 0;
    mark(l, 0, false);
    g->waits.passes_on = g->group > 1 && !l->nest->special && passes_on(l->nest);
    for (uint32_t i = 0; i < l->nest->buffers.count; i++)
        g->waits.shares_locals |= g->group > 1 && l->nest->buffers.at[i].space != NEST_OWN;
}

void gpu_groups_run(struct cg_lowering *l, nest_id loop, struct cg_kernel_step *step)
{
    struct map_points p = map_points_of(l->nest, loop);
    int64_t groups = l->gpu->block / l->gpu->group;
    struct cg_loop chunk = gpu_own_chunk_open(l, (p.count + groups - 1) / groups);
    LLVMValueRef i = chunk.index;
    struct cg_branch inside = {0};
    if (groups > 1) {
        i = LLVMBuildAdd(l->m.b, LLVMBuildMul(l->m.b, i, cg_int(l->module, groups), ""),
                         gpu_wide(l, l->gpu->number), "");
        inside =
            cg_if_open(l, LLVMBuildICmp(l->m.b, LLVMIntSLT, i, cg_int(l->module, p.count), ""));
    }
    gpu_points_body(l, &p, i);
    if (chunk.body)
        gpu_sync(l); // what is shared is used again
    if (groups > 1)
        cg_if_close(l, &inside);
    cg_loop_close(l, &chunk);
    step->total = p.count;
    step->grain = groups;
    step->exact_grid = true;
}

// Neighbouring points for neighbouring threads, and several threads for each.
void gpu_columns_lower(struct cg_lowering *l, nest_id loop, struct cg_kernel_step *step)
{
    struct map_points p = map_points_of(l->nest, loop);
    int64_t columns = l->gpu->columns;
    struct cg_loop chunk = gpu_own_chunk_open(l, p.count / columns);
    LLVMValueRef i = LLVMBuildMul(l->m.b, chunk.index, cg_int(l->module, columns), "");
    gpu_points_body(l, &p, LLVMBuildAdd(l->m.b, i, gpu_wide(l, l->gpu->number), ""));
    if (chunk.body)
        gpu_sync(l);
    cg_loop_close(l, &chunk);
    step->total = p.count;
    step->grain = columns;
    step->exact_grid = true;
}
