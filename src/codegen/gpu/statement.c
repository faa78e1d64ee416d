// SPDX-License-Identifier: Apache-2.0
// Statements that a GPU does otherwise than the host.
#include "codegen/gpu/statement.h"
#include "codegen/access.h"
#include "codegen/gpu/arms.h"
#include "codegen/gpu/bounds.h"
#include "codegen/gpu/columns.h"
#include "codegen/gpu/common.h"
#include "codegen/gpu/device.h"
#include "codegen/gpu/fold.h"
#include "codegen/gpu/fold_alone.h"
#include "codegen/gpu/gpu.h"
#include "codegen/gpu/layer.h"
#include "codegen/gpu/memory.h"
#include "codegen/gpu/network.h"
#include "codegen/gpu/points.h"
#include "codegen/gpu/replay.h"
#include "codegen/loop.h"
#include "codegen/lower.h"
#include "map/gpu_lanes.h"

static bool is_shared(const struct cg_lowering *l, nest_id buffer)
{
    return l->gpu->group > 1 && l->nest->buffers.at[buffer].space == NEST_SHARED;
}

LLVMValueRef gpu_shared_local(struct cg_lowering *l, nest_id buffer)
{
    const struct nest_buffer *info = &l->nest->buffers.at[buffer];
    if (!is_shared(l, buffer))
        return NULL;
    return gpu_shared(l, (uint64_t)info->count * jot_dtype_size(info->dtype));
}

// Where is_read has the buffer; NEST_NONE: threads wait for no one.
static nest_id common_of(const struct cg_lowering *l, nest_id buffer)
{
    if (is_shared(l, buffer))
        return buffer;
    return l->gpu->group == 1 || gpu_is_alone(l, buffer) ? NEST_NONE : l->nest->buffers.count;
}

static void sync_to_write(struct cg_lowering *l, nest_id buffer)
{
    const struct cg_gpu *g = l->gpu;
    nest_id common = common_of(l, buffer);
    bool is_ready = g->waits.synced == LLVMGetInsertBlock(l->m.b) && !g->waits.has_read;
    if (common != NEST_NONE && !is_ready && (g->waits.is_read[common] || gpu_is_repeated(l)))
        gpu_sync(l);
}

void gpu_sync_to_put(struct cg_lowering *l, uint32_t block)
{
    nest_for_below (s, l->nest, block)
        if (s->kind == NEST_PUT)
            sync_to_write(l, s->buffer);
}

static void note_load(struct cg_lowering *l, nest_id buffer)
{
    nest_id common = common_of(l, buffer);
    if (common != NEST_NONE)
        l->gpu->waits.has_read = l->gpu->waits.is_read[common] = true;
}

// One thread of the group does it.
static struct cg_branch one_open(struct cg_lowering *l)
{
    LLVMValueRef zero = gpu_i32(l, 0);
    return cg_if_open(l, LLVMBuildICmp(l->m.b, LLVMIntEQ, l->gpu->in_group, zero, ""));
}

// One thread of all; last of all where others may still be reading what was there.
static void put_before(struct cg_lowering *l, const struct nest_statement *s)
{
    LLVMBuilderRef b = l->m.b;
    if (!gpu_is_alone(l, s->buffer)) {
        l->gpu->before.has_late_puts = true;
        return;
    }
    LLVMValueRef all = LLVMBuildOr(b, l->gpu->thread, gpu_block_number(l), "");
    struct cg_branch one = cg_if_open(l, LLVMBuildICmp(b, LLVMIntEQ, all, gpu_i32(l, 0), ""));
    cg_store(l, s, l->values[s->in[0]]);
    cg_if_close(l, &one);
}

static void put_together(struct cg_lowering *l, const struct nest_statement *s)
{
    sync_to_write(l, s->buffer);
    struct cg_branch one = one_open(l);
    cg_store(l, s, l->values[s->in[0]]);
    cg_if_close(l, &one);
    if (is_shared(l, s->buffer) || l->gpu->waits.passes_on)
        gpu_sync(l);
}

bool gpu_put_open(struct cg_lowering *l, nest_id buffer, struct cg_branch *out)
{
    bool is_own = l->nest->buffers.at[buffer].role == NEST_LOCAL && !is_shared(l, buffer);
    if (!l->gpu->is_same || is_own)
        return false;
    sync_to_write(l, buffer);
    *out = one_open(l);
    return true;
}

void gpu_put_close(struct cg_lowering *l, nest_id buffer, struct cg_branch *one)
{
    cg_if_close(l, one);
    if (is_shared(l, buffer) || l->gpu->waits.passes_on)
        gpu_sync(l);
}

static void scan_together(struct cg_lowering *l, nest_id id)
{
    gpu_sync_to_put(l, cg_statement(l, id)->body);
    struct cg_branch one = one_open(l);
    l->gpu->is_alone = true;
    cg_lower_statement(l, id);
    l->gpu->is_alone = false;
    cg_if_close(l, &one);
    if (l->gpu->waits.shares_locals || l->gpu->waits.passes_on)
        gpu_sync(l);
}

// Whether a thread that makes the map alone has several neighbouring elements of memory at a time: it would store each by
// itself, for a loop of so many is not written out.
static bool has_vectors(const struct cg_lowering *l, const struct nest_statement *s)
{
    enum { LEAST = 8 }; // elements
    nest_id last = s->axes[s->n_axes - 1];
    int64_t extent = l->nest->axes.at[last].extent;
    if (l->vector.lanes > 1 || l->gpu->warp.points || extent < LEAST)
        return false;
    nest_for_each (t, l->nest, s->body) {
        bool is_access = t->kind == NEST_LOAD || t->kind == NEST_PUT;
        if (t->kind > NEST_PUT || (t->kind == NEST_PUT && t->op) ||
            (is_access && l->nest->buffers.at[t->buffer].role == NEST_LOCAL))
            return false;
    }
    struct map_gpu m = gpu_map_of(l);
    return extent % map_lanes(&m, s, last) == 0 && map_lanes(&m, s, last) > 1;
}

bool gpu_statement(struct cg_lowering *l, nest_id id)
{
    const struct nest_statement *s = cg_statement(l, id);
    bool together = gpu_is_together(l);
    if (together)
        l->gpu->waits.statement = id;
    if (gpu_replay(l, id) || gpu_common(l, id))
        return true;
    switch (s->kind) {
    case NEST_OP:
        return gpu_arm_statement(l, id) || gpu_bounded(l, s);
    case NEST_LOAD:
        note_load(l, s->buffer);
        return false;
    case NEST_PUT:
        if (l->gpu->network && gpu_network_put(l, s))
            return true;
        if (l->gpu->before.is_here && !s->op &&
            l->nest->buffers.at[s->buffer].role != NEST_LOCAL) {
            put_before(l, s);
            return true;
        }
        if (!(together || l->gpu->is_same) || s->op)
            return false;
        put_together(l, s);
        return true;
    case NEST_PAR:
    case NEST_MAP:
        if (together)
            gpu_map(l, id);
        else if (l->gpu->network || has_vectors(l, s))
            gpu_map_alone(l, id);
        else
            return false;
        return true;
    case NEST_FOLD:
        if (together && l->gpu->columns)
            gpu_fold_columns(l, id);
        else if (together)
            gpu_fold_together(l, id);
        else
            gpu_fold_alone(l, id);
        return true;
    case NEST_SCAN:
        if (together)
            scan_together(l, id);
        return together;
    case NEST_CONTRACT:
        gpu_layer(l, s);
        return true;
    default:
        return false;
    }
}
