// SPDX-License-Identifier: Apache-2.0
// Points of a network that four threads each do, a squad, side by side in a warp.  Thread p has
// units p, p + 4, p + 8, ... of every layer:
//
//     map j < 20 { put h[j] = ... z[j] }   five elements a thread; its own are in registers
//     contract y[j] = h[k], w[20*k + j]    all of h, in shared memory, four elements at a time
//
// Matrices are in shared memory too, terms of a unit beside one another.  Their rows, and
// points, are an odd number of times 16 bytes apart, for the threads of a warp to find them in
// different banks.  What is no row of units, each thread of the squad computes, and one of them
// puts.
//
// One shape: small matrices at many points (docs/nests.md).
#include "codegen/gpu/squads.h"
#include "codegen/emit.h"
#include "codegen/fold.h"
#include "codegen/gpu/device.h"
#include "codegen/gpu/entry.h"
#include "codegen/gpu/gpu.h"
#include "codegen/gpu/kept.h"
#include "codegen/gpu/network.h"
#include "codegen/kernel.h"
#include "codegen/loop.h"
#include "codegen/lower.h"
#include "codegen/memory.h"
#include "codegen/scalar.h"
#include "codegen/types.h"
#include "map/gpu_network.h"

#define VECTOR 4 // elements of 16 bytes

struct squads {
    struct gpu_network *w;
    struct map_squads of;
    int64_t points; // of a block
    LLVMValueRef shared, in_squad, number;
    bool has_read, has_written; // rows since the squad was together
    bool is_apart;              // in a map that it shares out
};

// ---- A squad

// Whether other threads of the squad have to do with it.
static bool is_common(const struct cg_lowering *l, nest_id local)
{
    return l->nest->buffers.at[local].space == NEST_SHARED;
}

static void sync_squad(struct cg_lowering *l, struct squads *q)
{
    gpu_sync_warp(l);
    q->has_read = q->has_written = false;
}

// Whether the statement reads rows of the squad, and whether it writes any.
static void find_accesses(const struct cg_lowering *l, const struct squads *q,
                          const struct nest_statement *s, bool *reads, bool *writes)
{
    if (s->kind == NEST_LOAD)
        *reads |= is_common(l, s->buffer);
    if (s->kind == NEST_PUT || s->kind == NEST_CONTRACT)
        *writes |= is_common(l, s->buffer);
    *reads |= s->kind == NEST_CONTRACT;
    if (s->kind != NEST_MAP && s->kind != NEST_FOLD)
        return;
    nest_for_each (t, l->nest, s->body)
        find_accesses(l, q, t, reads, writes);
}

// Unit i of the thread, an i64.
static LLVMValueRef unit(struct cg_lowering *l, const struct squads *q, int64_t i)
{
    return LLVMBuildAdd(l->m.b, gpu_wide(l, q->in_squad), cg_int(l->module, i * MAP_SQUAD), "");
}

// Where unit i of the thread is in the row.
static LLVMValueRef unit_at(struct cg_lowering *l, const struct squads *q, nest_id buffer,
                            int64_t i)
{
    l->gpu->kept.vector = i;
    if (!is_common(l, buffer))
        return gpu_kept_address(l, buffer);
    return cg_at(l, l->module->f32, cg_buffer_base(l, buffer), unit(l, q, i));
}

static void lower_map(struct cg_lowering *l, struct squads *q, const struct nest_statement *s)
{
    nest_id axis = map_squad_units(l->nest, s);
    int64_t count = l->nest->axes.at[s->axes[0]].extent;
    q->is_apart = axis != NEST_NONE;
    if (!q->is_apart) {
        struct cg_loop loop = cg_loop_open(l, cg_int(l->module, 0), cg_int(l->module, count),
                                           cg_int(l->module, 1));
        l->axes[s->axes[0]] = loop.index;
        cg_lower_block(l, s->body);
        cg_loop_close(l, &loop);
        return;
    }
    for (int64_t i = 0; i < count / MAP_SQUAD; i++) {
        l->gpu->kept.vector = i;
        l->axes[axis] = unit(l, q, i);
        cg_lower_block(l, s->body);
    }
    q->is_apart = false;
}

static LLVMValueRef load_vector(struct cg_lowering *l, LLVMValueRef from, unsigned width)
{
    LLVMValueRef v = LLVMBuildLoad2(l->m.b, cg_with_lanes(l->module->f32, width), from, "");
    LLVMSetAlignment(v, width * (unsigned)sizeof(float));
    return v;
}

static const struct map_matrix *matrix_of(const struct cg_lowering *l, const struct squads *q,
                                          const struct nest_statement *s)
{
    const struct nest_index *x = &s->source_index[1];
    const struct map_matrix *m = q->of.matrices.at;
    while (m->buffer != s->source[1] || m->constant != x->constant ||
           m->by_output != nest_index_factor(x, s->axes[0]) ||
           m->by_input != nest_index_factor(x, s->axes[1]) ||
           m->outputs != l->nest->axes.at[s->axes[0]].extent ||
           m->inputs != l->nest->axes.at[s->axes[1]].extent)
        m++;
    return m;
}

// Terms in a loop: there are many products, and written out they are more than the caches of a
// multiprocessor hold of code.
static void lower_contract(struct cg_lowering *l, const struct squads *q,
                           const struct nest_statement *s)
{
    LLVMBuilderRef b = l->m.b;
    const struct map_matrix *m = matrix_of(l, q, s);
    LLVMTypeRef lane = l->module->f32;
    LLVMValueRef sums[MAP_SQUAD_UNITS], rows[MAP_SQUAD_UNITS],
        x = cg_buffer_base(l, s->source[0]);
    LLVMValueRef w = cg_at(l, l->module->i8, q->shared, cg_int(l->module, m->at));
    unsigned width = m->inputs % VECTOR ? VECTOR / 2 : VECTOR;
    int64_t own = m->outputs / MAP_SQUAD, stride = map_squad_stride(m->inputs);
    for (int64_t i = 0; i < own; i++) {
        LLVMValueRef at = LLVMBuildMul(b, unit(l, q, i), cg_int(l->module, stride), "");
        rows[i] = cg_at(l, lane, w, at);
        sums[i] = cg_alloca(l, lane, 1);
        LLVMBuildStore(b, LLVMConstNull(lane), sums[i]);
    }
    struct cg_loop loop = cg_loop_open(l, cg_int(l->module, 0), cg_int(l->module, m->inputs),
                                       cg_int(l->module, width));
    LLVMValueRef xs = load_vector(l, cg_at(l, lane, x, loop.index), width);
    for (int64_t i = 0; i < own; i++) {
        LLVMValueRef sum = LLVMBuildLoad2(b, lane, sums[i], "");
        LLVMValueRef ws = load_vector(l, cg_at(l, lane, rows[i], loop.index), width);
        for (unsigned c = 0; c < width; c++) {
            struct cg_value v[] = {{sum, NULL},
                                   {cg_extract(&l->m, xs, c, 1), NULL},
                                   {cg_extract(&l->m, ws, c, 1), NULL}};
            sum = cg_combine_fma(&l->m, JOT_F32, v[0], v[1], v[2]).re;
        }
        LLVMBuildStore(b, sum, sums[i]);
    }
    cg_loop_close(l, &loop);
    for (int64_t i = 0; i < own; i++)
        LLVMBuildStore(b, LLVMBuildLoad2(b, lane, sums[i], ""), unit_at(l, q, s->buffer, i));
}

static struct cg_branch one_open(struct cg_lowering *l, const struct squads *q)
{
    LLVMValueRef zero = gpu_i32(l, 0);
    return cg_if_open(l, LLVMBuildICmp(l->m.b, LLVMIntEQ, q->in_squad, zero, ""));
}

bool gpu_squads_put_open(struct cg_lowering *l, const struct gpu_network *w,
                         const struct nest_statement *put, struct cg_branch *out)
{
    LLVMBuilderRef b = l->m.b;
    const struct squads *q = w->squads;
    bool is_of_point = !put->op && l->nest->buffers.at[put->buffer].role != NEST_LOCAL;
    if (q->is_apart && !is_of_point)
        return false;
    LLVMValueRef all = LLVMConstInt(l->module->i1, 1, 0), is_one = all, is_there = all;
    if (!q->is_apart)
        is_one = LLVMBuildICmp(b, LLVMIntEQ, q->in_squad, gpu_i32(l, 0), "");
    if (is_of_point)
        is_there = LLVMBuildICmp(b, LLVMIntSLT, w->point, cg_int(l->module, w->points), "");
    *out = cg_if_open(l, LLVMBuildAnd(b, is_one, is_there, ""));
    return true;
}

// What products are made of, from the squad to memory.
static void keep_operand(struct cg_lowering *l, const struct squads *q, nest_id buffer)
{
    LLVMTypeRef lane = l->module->f32;
    int64_t count = l->nest->buffers.at[buffer].count, first = q->w->kept[buffer];
    struct cg_branch one;
    bool units = map_is_squad_row(count);
    if (!units)
        one = one_open(l, q);
    for (int64_t i = 0; i < (units ? count / MAP_SQUAD : count); i++) {
        LLVMValueRef e = units ? unit(l, q, i) : cg_int(l->module, i);
        LLVMValueRef from =
            units ? unit_at(l, q, buffer, i) : cg_at(l, lane, cg_buffer_base(l, buffer), e);
        LLVMValueRef row = LLVMBuildAdd(l->m.b, e, cg_int(l->module, first), "");
        LLVMBuildStore(l->m.b, LLVMBuildLoad2(l->m.b, lane, from, ""),
                       gpu_network_term(l, q->w, row));
    }
    if (!units)
        cg_if_close(l, &one);
}

static void lower_statement(struct cg_lowering *l, struct squads *q, nest_id id)
{
    const struct nest_statement *s = cg_statement(l, id);
    bool reads = false, writes = false;
    find_accesses(l, q, s, &reads, &writes);
    if ((reads && q->has_written) || (writes && q->has_read))
        sync_squad(l, q);
    if (s->kind == NEST_MAP)
        lower_map(l, q, s);
    else if (s->kind == NEST_CONTRACT)
        lower_contract(l, q, s);
    else
        cg_lower_statement(l, id);
    q->has_read |= reads;
    q->has_written |= writes;
}

// ---- A block of them

static LLVMValueRef in_block(struct cg_lowering *l, const struct squads *q, int64_t at)
{
    return cg_at(l, l->module->i8, q->shared, cg_int(l->module, at));
}

// The matrices, by all threads.
static void load_matrices(struct cg_lowering *l, const struct squads *q)
{
    LLVMBuilderRef b = l->m.b;
    LLVMTypeRef lane = l->module->f32;
    for (uint32_t i = 0; i < q->of.matrices.count; i++) {
        const struct map_matrix *m = &q->of.matrices.at[i];
        LLVMValueRef inputs = cg_int(l->module, m->inputs);
        struct cg_loop loop = cg_loop_open(l, gpu_wide(l, l->gpu->thread),
                                           cg_int(l->module, m->inputs * m->outputs),
                                           cg_int(l->module, l->gpu->block));
        LLVMValueRef j = LLVMBuildUDiv(b, loop.index, inputs, "");
        LLVMValueRef k = LLVMBuildURem(b, loop.index, inputs, "");
        LLVMValueRef from =
            LLVMBuildAdd(b, LLVMBuildMul(b, j, cg_int(l->module, m->by_output), ""),
                         LLVMBuildMul(b, k, cg_int(l->module, m->by_input), ""), "");
        from = LLVMBuildAdd(b, from, cg_int(l->module, m->constant), "");
        LLVMValueRef to =
            LLVMBuildMul(b, j, cg_int(l->module, map_squad_stride(m->inputs)), "");
        to = LLVMBuildAdd(b, to, k, "");
        LLVMValueRef v =
            LLVMBuildLoad2(b, lane, cg_at(l, lane, cg_buffer_base(l, m->buffer), from), "");
        LLVMBuildStore(b, v, cg_at(l, lane, in_block(l, q, m->at), to));
        cg_loop_close(l, &loop);
    }
    gpu_barrier(&l->m);
}

static void lay_out_rows(struct cg_lowering *l, struct squads *q)
{
    LLVMBuilderRef b = l->m.b;
    uint32_t n = l->nest->buffers.count;
    LLVMValueRef offset =
        LLVMBuildMul(b, gpu_wide(l, q->number), cg_int(l->module, q->of.point_bytes), "");
    LLVMValueRef point = cg_at(l, l->module->i8, in_block(l, q, q->of.matrix_bytes), offset);
    l->gpu->kept.rows = arena_array(l->arena, struct gpu_kept, n + 1);
    for (nest_id i = 0; i < n; i++) {
        const struct nest_buffer *x = &l->nest->buffers.at[i];
        if (x->role != NEST_LOCAL)
            continue;
        l->gpu->kept.rows[i].is_kept = !is_common(l, i);
        if (!is_common(l, i)) {
            l->gpu->kept.rows[i].memory =
                cg_alloca(l, l->module->f32, (uint64_t)x->count / MAP_SQUAD);
            continue;
        }
        l->buffers[i].base = cg_at(l, l->module->i8, point, cg_int(l->module, q->of.at[i]));
    }
}

void gpu_squads_lower(struct cg_lowering *l, struct gpu_network *w, uint32_t at,
                      struct cg_kernel *out)
{
    LLVMBuilderRef b = l->m.b;
    struct cg_gpu *g = l->gpu;
    struct map_gpu m = gpu_map_of(l);
    struct squads all = {.w = w, .points = g->block / MAP_SQUAD}, *q = &all;
    map_squads_find(&m, w->loop, &q->of);
    w->squads = q;
    w->written = q->of.written;
    w->pitch = (w->points + q->points - 1) / q->points * q->points;
    g->function.keeps_loops = true;
    struct cg_kernel_step *step = gpu_function_open(l, out, "_points", 1);
    w->memory = gpu_extra_operand(l, 0);
    g->network = w;
    q->shared = gpu_shared_start(&l->m);
    q->in_squad = LLVMBuildURem(b, g->thread, gpu_i32(l, MAP_SQUAD), "");
    q->number = LLVMBuildUDiv(b, g->thread, gpu_i32(l, MAP_SQUAD), "");
    gpu_lower_list(l, 0, at);
    load_matrices(l, q);
    lay_out_rows(l, q);
    struct cg_loop chunk = gpu_chunks_open(l, (w->points + q->points - 1) / q->points);
    w->point = LLVMBuildMul(b, chunk.index, cg_int(l->module, q->points), "");
    w->point = LLVMBuildAdd(b, w->point, gpu_wide(l, q->number), "");
    // Squads without a point do the last one, and have rows of memory of their own.
    LLVMValueRef last = cg_int(l->module, w->points - 1);
    LLVMValueRef is_inside = LLVMBuildICmp(b, LLVMIntSLT, w->point, last, "");
    l->axes[w->fold->axes[0]] = LLVMBuildSelect(b, is_inside, w->point, last, "");
    sync_squad(l, q);
    const struct nest_block *body = &l->nest->blocks.at[w->fold->body];
    for (uint32_t i = 0; i < body->statements.count; i++) {
        if (map_is_products(l->nest, cg_statement(l, body->statements.at[i])))
            continue;
        lower_statement(l, q, body->statements.at[i]);
        for (nest_id k = 0; k < l->nest->buffers.count; k++)
            if (w->kept[k] >= 0 && w->written[k] == i)
                keep_operand(l, q, k);
    }
    struct cg_branch one = one_open(l, q);
    gpu_network_yield(l, w);
    cg_if_close(l, &one);
    cg_loop_close(l, &chunk);
    g->network = NULL;
    g->kept.rows = NULL;
    step->total = w->points;
    step->grain = q->points;
    g->function.shared_bytes = (uint64_t)(q->of.matrix_bytes + q->points * q->of.point_bytes);
    g->group = g->block;
    gpu_function_close(l, step);
    g->function.keeps_loops = false;
    g->group = 1;
    w->squads = NULL;
}
