// SPDX-License-Identifier: Apache-2.0
// Loops over points: a few neighbouring points for a thread, so that it reads and writes 16
// bytes at once.
#include "codegen/gpu/points.h"
#include "codegen/emit.h"
#include "codegen/gpu/device.h"
#include "codegen/gpu/gpu.h"
#include "codegen/gpu/row.h"
#include "codegen/gpu/statement.h"
#include "codegen/loop.h"
#include "codegen/lower.h"
#include "codegen/records.h"
#include "codegen/turn.h"
#include "codegen/types.h"
#include "map/gpu_groups.h"
#include "map/gpu_lanes.h"

#include "ir/cost.h"

// Of a loop of one thread.
static struct map_points points_alone(const struct cg_lowering *l, nest_id loop)
{
    struct map_gpu m = gpu_map_of(l);
    const struct nest_statement *s = cg_statement(l, loop);
    struct map_points p = {.s = s, .axis = s->axes[s->n_axes - 1], .lanes = 1, .rows = 1};
    p.row_axis = p.axis;
    int64_t extent = l->nest->axes.at[p.axis].extent, all = cg_extent(l, s);
    if (l->vector.lanes == 1) // else there are lanes already
        p.lanes = map_lanes(&m, s, p.axis);
    p.count = extent ? all / extent * ((extent + p.lanes - 1) / p.lanes) : 0;
    return p;
}

static int64_t vectors_along(const struct cg_lowering *l, const struct map_points *p,
                             nest_id axis)
{
    int64_t extent = l->nest->axes.at[axis].extent;
    if (axis == p->axis)
        return (extent + p->lanes - 1) / p->lanes;
    return axis == p->row_axis ? extent / p->rows : extent;
}

// Axes from the number of a vector; in 32 bits when they do.
void gpu_points_set(struct cg_lowering *l, const struct map_points *p, LLVMValueRef i)
{
    LLVMBuilderRef b = l->m.b;
    bool is_short = p->count * p->lanes * p->rows <= INT32_MAX;
    LLVMTypeRef type = is_short ? l->module->i32 : l->module->i64;
    if (is_short)
        i = LLVMBuildTrunc(b, i, type, "");
    for (uint32_t k = p->s->n_axes; k-- > 0;) {
        nest_id axis = p->s->axes[k];
        LLVMValueRef at = i;
        if (k > 0) {
            LLVMValueRef n = LLVMConstInt(type, (uint64_t)vectors_along(l, p, axis), 0);
            LLVMValueRef rest = LLVMBuildUDiv(b, i, n, "");
            at = LLVMBuildSub(b, i, LLVMBuildMul(b, rest, n, ""), "");
            i = rest;
        }
        if (axis == p->axis && p->lanes > 1)
            at = LLVMBuildMul(b, at, LLVMConstInt(type, p->lanes, 0), "");
        l->axes[axis] = is_short ? gpu_wide(l, at) : at;
    }
}

static void lower_lanes(struct cg_lowering *l, const struct map_points *p)
{
    LLVMValueRef first = l->axes[p->row_axis];
    int64_t apart = l->nest->axes.at[p->row_axis].extent / p->rows;
    l->vector.axis = p->axis;
    l->vector.loop = nest_id_of(l->nest, p->s);
    l->vector.lanes = p->lanes;
    for (int64_t k = 0; k < p->rows; k++) {
        if (k > 0)
            l->axes[p->row_axis] =
                LLVMBuildAdd(l->m.b, first, cg_int(l->module, k * apart), "");
        cg_lower_block(l, p->s->body);
    }
    l->vector.lanes = 1;
    l->vector.axis = NEST_NONE;
}

void gpu_points_body(struct cg_lowering *l, const struct map_points *p, LLVMValueRef i)
{
    gpu_points_set(l, p, i);
    int64_t extent = l->nest->axes.at[p->axis].extent;
    if (p->lanes == 1) {
        if (p == l->gpu->warp.points)
            cg_records_open(l, p->s->body);
        cg_lower_block(l, p->s->body);
        cg_records_close(l);
        return;
    }
    if (extent % p->lanes == 0) {
        lower_lanes(l, p);
        return;
    }
    LLVMBuilderRef b = l->m.b;
    LLVMValueRef first = l->axes[p->axis], last = cg_int(l->module, extent - extent % p->lanes);
    struct cg_branch whole = cg_if_open(l, LLVMBuildICmp(b, LLVMIntSLT, first, last, ""));
    lower_lanes(l, p);
    cg_else_open(l, &whole);
    struct cg_loop loop =
        cg_loop_open(l, first, cg_int(l->module, extent), cg_int(l->module, 1));
    l->axes[p->axis] = loop.index;
    cg_lower_block(l, p->s->body);
    cg_loop_close(l, &loop);
    cg_if_close(l, &whole);
}

uint32_t gpu_head_of(const struct cg_lowering *l, const struct nest_block *body)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < body->statements.count; i++) {
        enum nest_kind kind = cg_statement(l, body->statements.at[i])->kind;
        if (kind == NEST_PUT)
            break;
        n = kind == NEST_LOAD ? i + 1 : n;
    }
    return n;
}

void gpu_head_read(struct cg_lowering *l, const struct nest_block *body, uint32_t head,
                   struct cg_value *out)
{
    cg_lower_list(l, body->statements.at, head);
    for (uint32_t j = 0; j < head; j++)
        out[j] = l->values[cg_statement(l, body->statements.at[j])->result];
}

void gpu_head_go_on(struct cg_lowering *l, const struct nest_block *body, uint32_t head,
                    const struct cg_value *read)
{
    for (uint32_t j = 0; j < head; j++)
        l->values[cg_statement(l, body->statements.at[j])->result] = read[j];
    cg_lower_list(l, body->statements.at + head, body->statements.count - head);
}

void gpu_points_turns(struct cg_lowering *l, const struct map_points *p, LLVMValueRef i,
                      int64_t turns, int64_t apart)
{
    const struct nest_block *body = &l->nest->blocks.at[p->s->body];
    uint32_t head = gpu_head_of(l, body);
    struct cg_value *read = arena_array(l->arena, struct cg_value, (size_t)turns * head + 1);
    l->vector.axis = p->axis;
    l->vector.loop = nest_id_of(l->nest, p->s);
    l->vector.lanes = p->lanes;
    for (int64_t k = 0; k < 2 * turns; k++) {
        struct cg_value *of = read + k % turns * head;
        gpu_points_set(l, p, LLVMBuildAdd(l->m.b, i, cg_int(l->module, k % turns * apart), ""));
        if (k < turns)
            gpu_head_read(l, body, head, of);
        else
            gpu_head_go_on(l, body, head, of);
    }
    l->vector.lanes = 1;
    l->vector.axis = NEST_NONE;
}

// The vectors in the order of the fold of the same length, so that what a thread read for the
// fold is at hand for the map.
static void map_as_row(struct cg_lowering *l, const struct map_points *p)
{
    struct map_row r = map_row_of(l->nest, p->s, l->gpu->group, p->lanes);
    LLVMBuilderRef b = l->m.b;
    int64_t windows = (r.block < r.length ? r.block : r.length) / r.window;
    struct gpu_member m = gpu_member_of(l, &r);
    l->gpu->kept.vector = 0;
    for (int64_t j = 0; j < r.blocks / r.teams; j++) {
        LLVMValueRef row = LLVMBuildAdd(b, m.team, gpu_i32(l, j * r.teams), "");
        LLVMValueRef start = LLVMBuildMul(b, gpu_wide(l, row), cg_int(l->module, r.block), "");
        for (int64_t k = 0; k < windows; k++, l->gpu->kept.vector++) {
            LLVMValueRef at = LLVMBuildAdd(b, gpu_i32(l, k * r.window), m.offset, "");
            l->axes[p->axis] = LLVMBuildAdd(b, start, gpu_wide(l, at), "");
            if (p->lanes > 1)
                lower_lanes(l, p);
            else
                cg_lower_block(l, p->s->body);
        }
    }
}

void gpu_map(struct cg_lowering *l, nest_id loop)
{
    LLVMBuilderRef b = l->m.b;
    struct map_points p = map_points_of(l->nest, loop);
    int64_t group = l->gpu->group, at_once = p.s->at_once;
    gpu_sync_to_put(l, p.s->body);
    l->gpu->is_alone = true;
    LLVMValueRef in_group = gpu_wide(l, l->gpu->in_group);
    if (p.s->level == NEST_IN_ROW) {
        map_as_row(l, &p);
    } else if (at_once) {
        struct cg_loop turn = cg_loop_open(l, in_group, cg_int(l->module, p.count),
                                           cg_int(l->module, at_once * group));
        gpu_points_turns(l, &p, turn.index, at_once, group);
        cg_loop_close(l, &turn);
    } else if (p.s->turns) {
        for (int64_t k = 0; k < p.s->turns; k++)
            gpu_points_body(l, &p, LLVMBuildAdd(b, in_group, cg_int(l->module, k * group), ""));
    } else {
        struct cg_loop turn =
            cg_loop_open(l, in_group, cg_int(l->module, p.count), cg_int(l->module, group));
        gpu_points_body(l, &p, turn.index);
        cg_loop_close(l, &turn);
    }
    l->gpu->is_alone = false;
    // Another thread may put what comes next in the same element in a later turn of a loop over time.
    if (l->gpu->waits.shares_locals || l->gpu->waits.passes_on || l->around.time)
        gpu_sync(l);
}

void gpu_map_alone(struct cg_lowering *l, nest_id loop)
{
    struct map_points p = points_alone(l, loop);
    struct cg_loop turn =
        cg_loop_open(l, cg_int(l->module, 0), cg_int(l->module, p.count), cg_int(l->module, 1));
    gpu_points_body(l, &p, turn.index);
    cg_loop_close(l, &turn);
}
