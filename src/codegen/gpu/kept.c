// SPDX-License-Identifier: Apache-2.0
// Local rows of a group that no thread but the one that puts an element reads it: each thread keeps
// what it has in registers, where the loops over the row are all written out.
#include "codegen/gpu/gpu.h"

#define REGISTERS 32 // of a thread, for rows

static bool is_access(const struct nest_statement *s, nest_id buffer)
{
    return (s->kind == NEST_LOAD || s->kind == NEST_PUT) && s->buffer == buffer;
}

// At the place of the loop's own axis, whatever else holds.
static bool is_at_axis(const struct nest_statement *s, nest_id axis)
{
    return nest_index_is_axis(&s->index, axis) && !s->op && s->guard == NEST_NONE;
}

// Whether the group does the loop by its row, each vector of it in code of its own.
static bool is_straight(const struct cg_lowering *l, nest_id loop)
{
    const struct gpu_row *r = &l->gpu->row;
    const struct nest_statement *s = cg_statement(l, loop);
    if (s->n_axes != 1 || cg_extent(l, s) != r->length ||
        (s->kind != NEST_MAP && s->kind != NEST_FOLD))
        return false;
    return s->kind == NEST_MAP ? gpu_is_short(l, s->body, r->length / l->gpu->group / r->lanes)
                               : gpu_is_team_fold(l, loop) && gpu_fold_is_straight(l, loop, r);
}

// Accesses of the buffer in the body of a loop, and whether it reads memory along the axis.
struct use {
    uint32_t accesses, puts;
    bool reads;
};

static struct use use_of(const struct cg_lowering *l, nest_id loop, nest_id buffer)
{
    struct use use = {0};
    const struct nest_statement *s = cg_statement(l, loop);
    nest_for_each (t, l->nest, s->body) {
        bool is_its = is_access(t, buffer) && is_at_axis(t, s->axes[0]);
        use.accesses += is_its;
        use.puts += is_its && t->kind == NEST_PUT;
        use.reads |= t->kind == NEST_LOAD &&
                     l->nest->buffers.at[t->buffer].role != NEST_LOCAL &&
                     nest_index_factor(&t->index, s->axes[0]);
    }
    return use;
}

// What is read of memory behind the first put would want registers too.
static bool may_keep(const struct cg_lowering *l, const struct nest_block *body, nest_id buffer)
{
    const struct nest_buffer *info = &l->nest->buffers.at[buffer];
    uint32_t left = 0, puts = 0;
    if (info->role != NEST_LOCAL || info->count != l->gpu->row.length ||
        dtype_is_complex(info->dtype) || jot_dtype_size(info->dtype) > 4)
        return false;
    nest_for_all (s, l->nest)
        left += is_access(s, buffer);
    for (uint32_t i = 0; i < body->statements.count; i++) {
        nest_id loop = body->statements.at[i];
        if (!is_straight(l, loop))
            continue;
        struct use use = use_of(l, loop, buffer);
        if (puts && use.reads)
            return false;
        puts += use.puts;
        left -= use.accesses;
    }
    return left == 0;
}

void gpu_kept_find(struct cg_lowering *l, nest_id loop)
{
    struct cg_gpu *g = l->gpu;
    const struct nest_block *body = &l->nest->blocks.at[cg_statement(l, loop)->body];
    const struct gpu_row *r = &g->row;
    int64_t own = r->length / g->group, registers = 0;
    g->kept = arena_array(l->arena, struct gpu_kept, l->nest->buffers.count + 1);
    if (!r->is_exact || r->parts != 1 || r->blocks % r->teams || g->is_phase)
        return;
    for (uint32_t i = 0; i < l->nest->buffers.count; i++) {
        g->kept[i].is_kept = registers + own <= REGISTERS && may_keep(l, body, i);
        registers += g->kept[i].is_kept ? own : 0;
    }
}

bool gpu_keeps(const struct cg_lowering *l)
{
    for (uint32_t i = 0; l->gpu->kept && i < l->nest->buffers.count; i++)
        if (l->gpu->kept[i].is_kept)
            return true;
    return false;
}

LLVMValueRef cg_gpu_kept_place(struct cg_lowering *l, nest_id buffer)
{
    const struct cg_gpu *g = l->gpu;
    if (!g->kept || !g->kept[buffer].is_kept)
        return NULL;
    const struct nest_buffer *info = &l->nest->buffers.at[buffer];
    LLVMTypeRef type = cg_with_lanes(cg_memory_type(l->module, info->dtype), l->lanes);
    if (!g->kept[buffer].memory)
        g->kept[buffer].memory =
            cg_alloca(l, type, (unsigned)(info->count / g->group / l->lanes));
    return cg_at(l, type, g->kept[buffer].memory, cg_int(l->module, g->vector));
}
