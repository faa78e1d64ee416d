// SPDX-License-Identifier: Apache-2.0
// Loops over the points of a network with sums over all of them: a point is a thread's, or that
// of four threads (squads.c).
//
//     fold n < 10000 {
//       contract z[j] = x[k], w[20*k + j] ...  in registers (layer.c), x and z near the thread
//       map j { put h[j] = tanh z[j]
//               put g[j] reduce_sum= ... in @n }       the term goes to a row of memory
//       map i, j { put G[20*i + j] fma= x[i], h[j] in @n }   and so do x and h
//     }
//
// Further functions make the sums of what is in rows (sums.c), a last one puts them where they
// belong.
//
// One shape: small matrices at many points (docs/nests.md).
#include "codegen/gpu/network.h"
#include "codegen/access.h"
#include "codegen/emit.h"
#include "codegen/fold.h"
#include "codegen/gpu/device.h"
#include "codegen/gpu/entry.h"
#include "codegen/gpu/gpu.h"
#include "codegen/gpu/squads.h"
#include "codegen/gpu/sums.h"
#include "codegen/index.h"
#include "codegen/kernel.h"
#include "codegen/loop.h"
#include "codegen/lower.h"
#include "codegen/memory.h"
#include "codegen/scalar.h"
#include "codegen/types.h"
#include "map/gpu_network.h"
#include "map/gpu_shared.h"

#include "base/status.h"

#define END_BLOCK 256

// ---- What there is to sum

static int64_t add_rows(struct gpu_network *w, int64_t count)
{
    w->rows += count;
    return w->rows - count;
}

static void add_sum(struct cg_lowering *l, struct gpu_network *w,
                    const struct nest_statement *map, const struct nest_statement *put,
                    const struct nest_combine *combine)
{
    struct gpu_sum x = {.put = put, .combine = combine, .count = 1, .width = 1};
    uint32_t n = put ? put->n_in : combine->n;
    if (put)
        x.count = l->nest->buffers.at[put->buffer].count;
    if (map) {
        x.kind = SUM_PRODUCT;
        x.width = l->nest->axes.at[map->axes[1]].extent;
        for (int k = 0; k < 2; k++) {
            nest_id row = map_row_at(l->nest, put->in[k], map->axes[k]);
            if (w->kept[row] < 0)
                w->kept[row] = add_rows(w, l->nest->buffers.at[row].count);
            x.row[k] = w->kept[row];
        }
    } else {
        x.kind = n == 2 ? SUM_PAIRS : SUM_TERMS;
        x.row[0] = add_rows(w, x.count);
        x.row[1] = n == 2 ? add_rows(w, x.count) : 0;
    }
    vec_push(l->arena, &w->sums, x);
}

static void find_sums(struct cg_lowering *l, struct gpu_network *w,
                      const struct nest_statement *around, uint32_t block)
{
    nest_for_each (s, l->nest, block) {
        if (s->kind == NEST_PUT && s->op)
            add_sum(l, w, map_is_products(l->nest, around) ? around : NULL, s, NULL);
        if (s->kind == NEST_MAP || s->kind == NEST_FOLD)
            find_sums(l, w, s, s->body);
    }
}

static struct gpu_network network_of(struct cg_lowering *l, nest_id loop)
{
    const struct nest_statement *s = cg_statement(l, loop);
    struct gpu_network w = {.fold = s, .loop = loop, .points = cg_extent(l, s)};
    w.pitch = (w.points + 3) / 4 * 4;
    map_is_summed(l->nest, loop, &w.dtype);
    uint32_t n = l->nest->buffers.count;
    w.kept = arena_array(l->arena, int64_t, n + 1);
    w.written = arena_array(l->arena, uint32_t, n + 1);
    for (uint32_t i = 0; i < n; i++)
        w.kept[i] = -1;
    find_sums(l, &w, s, s->body);
    for (uint32_t i = 0; i < s->n_combines; i++)
        add_sum(l, &w, NULL, NULL, &s->combines[i]);
    return w;
}

// ---- The points

LLVMValueRef gpu_network_term(struct cg_lowering *l, const struct gpu_network *w,
                              LLVMValueRef row)
{
    LLVMValueRef at = LLVMBuildMul(l->m.b, row, cg_int(l->module, w->pitch), "");
    return cg_at(l, cg_memory_type(l->module, w->dtype), w->memory,
                 LLVMBuildAdd(l->m.b, at, w->point, ""));
}

// A value to rows row, row + step, ..., a lane each.
static void store_terms(struct cg_lowering *l, LLVMValueRef row, int64_t step,
                        struct cg_value v)
{
    const struct gpu_network *w = l->gpu->network;
    unsigned lanes = cg_lanes_of(v.re);
    for (unsigned i = 0; i < lanes; i++) {
        LLVMValueRef at = LLVMBuildAdd(l->m.b, row, cg_int(l->module, i * step), "");
        LLVMValueRef x = lanes > 1 ? cg_extract(&l->m, v.re, i, 1) : v.re;
        LLVMBuildStore(l->m.b, x, gpu_network_term(l, w, at));
    }
}

static void put_terms(struct cg_lowering *l, const struct nest_statement *s)
{
    const struct gpu_network *w = l->gpu->network;
    uint32_t i = 0;
    while (w->sums.at[i].put != s)
        i++;
    unsigned lanes = l->vector.lanes;
    nest_id axis = l->vector.axis;
    int64_t step = axis == NEST_NONE ? 0 : nest_index_factor(&s->index, axis);
    l->vector.lanes = 1;
    l->vector.axis = NEST_NONE;
    LLVMValueRef row = cg_index_value(l, &s->index, JOT_I64);
    l->vector.lanes = lanes;
    l->vector.axis = axis;
    for (uint32_t k = 0; k < s->n_in; k++) {
        struct cg_value v = cg_convert(&l->m, l->values[s->in[k]],
                                       l->nest->values.at[s->in[k]].dtype, w->dtype);
        LLVMValueRef first =
            LLVMBuildAdd(l->m.b, row, cg_int(l->module, w->sums.at[i].row[k]), "");
        store_terms(l, first, step, lanes > 1 ? cg_wide_value(l, v) : v);
    }
}

bool gpu_network_put(struct cg_lowering *l, const struct nest_statement *s)
{
    const struct gpu_network *w = l->gpu->network;
    if (!s->op && !w->squads)
        return false;
    struct cg_branch one = {0};
    bool is_of_one = w->squads && gpu_squads_put_open(l, w, s, &one);
    if (s->op)
        put_terms(l, s);
    else
        cg_store(l, s, l->values[s->in[0]]);
    if (is_of_one)
        cg_if_close(l, &one);
    return true;
}

// What products are made of, from the thread to memory.
static void keep_operand(struct cg_lowering *l, const struct gpu_network *w, nest_id buffer)
{
    LLVMTypeRef lane = cg_memory_type(l->module, w->dtype);
    struct cg_loop loop = cg_loop_open(l, cg_int(l->module, 0),
                                       cg_int(l->module, l->nest->buffers.at[buffer].count),
                                       cg_int(l->module, 1));
    LLVMValueRef v =
        LLVMBuildLoad2(l->m.b, lane, cg_at(l, lane, cg_buffer_base(l, buffer), loop.index), "");
    LLVMValueRef row = LLVMBuildAdd(l->m.b, loop.index, cg_int(l->module, w->kept[buffer]), "");
    LLVMBuildStore(l->m.b, v, gpu_network_term(l, w, row));
    cg_loop_close(l, &loop);
}

void gpu_network_yield(struct cg_lowering *l, const struct gpu_network *w)
{
    for (uint32_t i = 0; i < w->sums.count; i++) {
        const struct nest_combine *c = w->sums.at[i].combine;
        for (uint32_t k = 0; c && k < c->n; k++)
            store_terms(l, cg_int(l->module, w->sums.at[i].row[k]), 0,
                        cg_convert(&l->m, l->values[c->value[k]],
                                   l->nest->values.at[c->value[k]].dtype, w->dtype));
    }
}

static void lower_point(struct cg_lowering *l, struct gpu_network *w)
{
    const struct nest_block *b = &l->nest->blocks.at[w->fold->body];
    for (uint32_t i = 0; i < b->statements.count; i++) {
        if (map_is_products(l->nest, cg_statement(l, b->statements.at[i])))
            continue;
        cg_lower_statement(l, b->statements.at[i]);
        for (nest_id k = 0; k < l->nest->buffers.count; k++)
            if (w->kept[k] >= 0 && w->written[k] == i)
                keep_operand(l, w, k);
    }
    gpu_network_yield(l, w);
}

static void lay_out_locals(struct cg_lowering *l, struct gpu_network *w)
{
    struct map_gpu m = gpu_map_of(l);
    uint32_t n = l->nest->buffers.count;
    int64_t *bytes = arena_array(l->arena, int64_t, n + 1),
            *at = arena_array(l->arena, int64_t, n + 1);
    for (nest_id i = 0; i < n; i++) {
        const struct nest_buffer *x = &l->nest->buffers.at[i];
        bytes[i] = x->role == NEST_LOCAL ? x->count * (int64_t)jot_dtype_size(x->dtype) : 0;
    }
    int64_t total = map_network_lay_out(&m, w->loop, bytes, at, w->written);
    LLVMValueRef memory = cg_alloca(l, l->module->i8, (uint64_t)(total ? total : 1));
    for (nest_id i = 0; i < n; i++)
        if (bytes[i])
            l->buffers[i].base = cg_at(l, l->module->i8, memory, cg_int(l->module, at[i]));
}

static void lower_points(struct cg_lowering *l, struct gpu_network *w, uint32_t at,
                         struct cg_kernel *out)
{
    LLVMBuilderRef b = l->m.b;
    struct cg_gpu *g = l->gpu;
    struct cg_kernel_step *step = gpu_function_open(l, out, "_points", 1);
    w->memory = gpu_extra_operand(l, 0);
    g->network = w;
    gpu_lower_list(l, 0, at);
    lay_out_locals(l, w);
    struct cg_loop chunk = gpu_chunks_open(l, (w->points + g->block - 1) / g->block);
    w->point = LLVMBuildMul(b, chunk.index, cg_int(l->module, g->block), "");
    w->point = LLVMBuildAdd(b, w->point, gpu_wide(l, g->thread), "");
    struct cg_branch inside =
        cg_if_open(l, LLVMBuildICmp(b, LLVMIntSLT, w->point, cg_int(l->module, w->points), ""));
    l->axes[w->fold->axes[0]] = w->point;
    lower_point(l, w);
    cg_if_close(l, &inside);
    cg_loop_close(l, &chunk);
    g->network = NULL;
    step->total = w->points;
    step->grain = g->block;
    gpu_function_close(l, step);
}

// ---- What is put

static void copy_sum(struct cg_lowering *l, const struct gpu_network *w,
                     const struct gpu_sum *x)
{
    struct cg_loop loop =
        cg_loop_open(l, gpu_wide(l, l->gpu->thread), cg_int(l->module, x->count),
                     cg_int(l->module, END_BLOCK));
    LLVMTypeRef lane = cg_memory_type(l->module, w->dtype);
    LLVMBuildStore(l->m.b, gpu_sums_load(l, w, x, loop.index),
                   cg_at(l, lane, cg_buffer_base(l, x->put->buffer), loop.index));
    cg_loop_close(l, &loop);
}

// A chunk for each sum that is put, and one for what follows the loop.
static void lower_end(struct cg_lowering *l, const struct gpu_network *w, uint32_t at,
                      struct cg_kernel *out)
{
    LLVMBuilderRef b = l->m.b;
    l->gpu->group = 1;
    l->gpu->block = END_BLOCK;
    struct cg_kernel_step *step = gpu_function_open(l, out, "", 1);
    gpu_lower_list(l, 0, at);
    struct cg_loop chunk = gpu_chunks_open(l, (int64_t)w->sums.count + 1);
    nest_id result = w->fold->result;
    for (uint32_t i = 0; i < w->sums.count; i++) {
        const struct gpu_sum *x = &w->sums.at[i];
        if (!x->put) {
            l->values[result++] =
                (struct cg_value){gpu_sums_load(l, w, x, cg_int(l->module, 0)), NULL};
            continue;
        }
        struct cg_branch mine =
            cg_if_open(l, LLVMBuildICmp(b, LLVMIntEQ, chunk.index, cg_int(l->module, i), ""));
        copy_sum(l, w, x);
        cg_if_close(l, &mine);
    }
    LLVMValueRef last =
        LLVMBuildICmp(b, LLVMIntEQ, chunk.index, cg_int(l->module, w->sums.count), "");
    LLVMValueRef first = LLVMBuildICmp(b, LLVMIntEQ, l->gpu->thread, gpu_i32(l, 0), "");
    struct cg_branch rest = cg_if_open(l, LLVMBuildAnd(b, last, first, ""));
    gpu_lower_list(l, at + 1, l->nest->blocks.at[0].statements.count);
    cg_if_close(l, &rest);
    cg_loop_close(l, &chunk);
    step->total = (int64_t)w->sums.count + 1;
    step->exact_grid = true;
    gpu_function_close(l, step);
}

void gpu_network_lower(struct cg_lowering *l, uint32_t at, struct cg_kernel *out)
{
    struct gpu_network w = network_of(l, l->nest->blocks.at[0].statements.at[at]);
    bool has_squads = l->gpu->group == MAP_SQUAD;
    // Threads of the other functions have nothing in common.
    l->gpu->group = 1;
    l->gpu->kept.rows = NULL;
    l->gpu->waits.shares_locals = false;
    if (has_squads)
        gpu_squads_lower(l, &w, at, out);
    else
        lower_points(l, &w, at, out);
    gpu_sums_lower(l, &w, out);
    lower_end(l, &w, at, out);
}
