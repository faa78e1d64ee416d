// SPDX-License-Identifier: Apache-2.0
// The gradient of attention: what its functions have in common, the last of them, and their sizes.
//
// One shape: attention (docs/nests.md).
#include "codegen/gpu/attention_gradient.h"
#include "codegen/gpu/attention.h"
#include "codegen/gpu/attention_keys.h"
#include "codegen/gpu/attention_statistics.h"
#include "codegen/gpu/device.h"
#include "codegen/gpu/entry.h"
#include "codegen/gpu/gpu.h"
#include "codegen/gpu/tensor.h"
#include "codegen/index.h"
#include "codegen/kernel.h"
#include "codegen/loop.h"
#include "codegen/lower.h"
#include "codegen/memory.h"
#include "map/gpu_scratch.h"

LLVMValueRef *gpu_gradient_room(struct gpu_gradient *c, int64_t count)
{
    LLVMValueRef *all = arena_array(c->l->arena, LLVMValueRef, count + 1);
    for (int64_t i = 0; i < count; i++)
        all[i] = cg_alloca(c->l, c->f32, 1);
    return all;
}

void gpu_gradient_set_all(struct gpu_gradient *c, LLVMValueRef *all, int64_t count, double x)
{
    for (int64_t i = 0; i < count; i++)
        LLVMBuildStore(c->b, gpu_tensor_number(&c->t, x), all[i]);
}

// ---- f and g, in the nest's words

static LLVMValueRef value_of(struct gpu_gradient *c, nest_id value)
{
    struct cg_lowering *l = c->l;
    nest_id id = l->nest->values.at[value].statement;
    const struct nest_statement *s = cg_statement(l, id);
    if (!c->is_done[value]) {
        for (uint32_t i = 0; s->kind == NEST_OP && i < s->n_in; i++)
            value_of(c, s->in[i]);
        cg_lower_statement(l, id);
        c->is_done[value] = true;
    }
    return l->values[value].re;
}

// What stands before the loop has been lowered; nothing else has.
static void begin_element(struct gpu_gradient *c)
{
    memset(c->is_done, 0, c->l->nest->values.count * sizeof *c->is_done);
    nest_for_each (s, c->l->nest, 0)
        for (uint32_t k = 0; s->kind != NEST_PAR && k < s->n_results; k++)
            c->is_done[s->result + k] = true;
}

bool gpu_gradient_has_odd_keys(const struct gpu_gradient *c)
{
    return c->keys % (c->warps * ROWS) != 0;
}

static void set_element(struct gpu_gradient *c, nest_id key_axis, LLVMValueRef query,
                        LLVMValueRef key)
{
    c->l->axes[c->g.a.query] = c->queries % MAP_GRADIENT_QUERIES
                                   ? gpu_tensor_at_most(&c->t, query, c->queries - 1)
                                   : query;
    c->l->axes[key_axis] =
        gpu_gradient_has_odd_keys(c) ? gpu_tensor_at_most(&c->t, key, c->keys - 1) : key;
}

LLVMValueRef gpu_gradient_apply(struct gpu_gradient *c, LLVMValueRef score, LLVMValueRef query,
                                LLVMValueRef key)
{
    struct cg_lowering *l = c->l;
    begin_element(c);
    set_element(c, c->g.a.key, query, key);
    nest_for_each (s, l->nest, c->g.a.largest->body)
        if (s->kind == NEST_LOAD && s->buffer == c->g.a.score) {
            l->values[s->result].re = score;
            c->is_done[s->result] = true;
        }
    return value_of(c, c->g.a.value);
}

LLVMValueRef gpu_gradient_apply_change(struct gpu_gradient *c, LLVMValueRef x,
                                       LLVMValueRef query, LLVMValueRef key)
{
    begin_element(c);
    set_element(c, c->g.change_key, query, key);
    c->l->values[c->g.given].re = x;
    c->is_done[c->g.given] = true;
    return value_of(c, c->g.change);
}

LLVMValueRef gpu_gradient_is_key(struct gpu_gradient *c, LLVMValueRef key)
{
    return LLVMBuildICmp(c->b, LLVMIntSLT, key, whole(c, c->keys), "");
}

// ---- Memory between the functions

LLVMValueRef gpu_gradient_statistics_of(struct gpu_gradient *c, LLVMValueRef query)
{
    LLVMValueRef at = sum_of(c, times(c, c->batch, c->padded), query);
    return cg_at(c->l, c->l->module->i8, gpu_scratch(c->l), times(c, at, 8));
}

LLVMValueRef gpu_gradient_part_of(struct gpu_gradient *c, LLVMValueRef split,
                                  LLVMValueRef query, LLVMValueRef column)
{
    LLVMValueRef at = sum_of(c, times(c, split, c->batches), c->batch);
    at = sum_of(c, times(c, at, c->padded), query);
    at = sum_of(c, times(c, at, (int64_t)c->depths * 16), column);
    return cg_at(c->l, c->l->module->i8, gpu_scratch(c->l),
                 gpu_tensor_plus(&c->t, times(c, at, 4), (int64_t)c->statistics));
}

// ---- Products

void gpu_gradient_load_rows(struct gpu_gradient *c, const struct gpu_tensor_rows *r,
                            LLVMValueRef first, int pieces, LLVMValueRef *out)
{
    struct cg_lowering *l = c->l;
    int64_t columns = l->nest->axes.at[r->column].extent;
    for (int row = 0; row < 2 * TILES; row++) {
        LLVMValueRef at = sum_of(
            c, gpu_tensor_plus(&c->t, first, row / 2 * GPU_TILE + row % 2 * 8), c->t.row);
        l->axes[r->row] = gpu_tensor_at_most(&c->t, at, r->rows - 1);
        l->axes[r->column] = whole(c, 0);
        LLVMValueRef from = sum_of(c, cg_index_first(l, &r->load->index), c->t.column);
        for (int i = 0; i < 2 * pieces; i++) {
            LLVMValueRef address = cg_at(l, l->module->i16, cg_buffer_base(l, r->load->buffer),
                                         gpu_tensor_plus(&c->t, from, 8 * i));
            LLVMValueRef pair =
                8 * i < columns ? LLVMBuildLoad2(c->b, c->t.i32, address, "") : gpu_i32(l, 0);
            out[(row / 2 * pieces + i / 2) * 4 + i % 2 * 2 + row % 2] = pair;
        }
    }
}

void gpu_gradient_multiply_rows(struct gpu_gradient *c, const LLVMValueRef *left,
                                LLVMValueRef at_left, int64_t pitch, int pieces,
                                LLVMValueRef at, LLVMValueRef *sums)
{
    LLVMValueRef x[TILES][4], y[4];
    for (int i = 0; i < TILES * PART / 8 * 4; i++)
        sums[i] = gpu_tensor_number(&c->t, 0);
    for (int d = 0; d < pieces; d++) {
        for (int t = 0; t < TILES; t++)
            if (at_left)
                gpu_tensor_load(&c->t,
                                gpu_tensor_plus(&c->t, at_left, t * GPU_TILE * pitch + d * 32),
                                false, x[t]);
            else
                memcpy(x[t], left + (t * pieces + d) * 4, sizeof x[t]);
        for (int j = 0; j < PART / 16; j++) {
            gpu_tensor_load(&c->t, gpu_tensor_plus(&c->t, at, j * 16 * pitch + d * 32), false,
                            y);
            for (int t = 0; t < TILES; t++)
                for (int half = 0; half < 2; half++)
                    gpu_tensor_multiply(&c->t, sums + (t * PART / 8 + 2 * j + half) * 4, x[t],
                                        y + 2 * half);
        }
    }
}

void gpu_gradient_add_rows(struct gpu_gradient *c, const LLVMValueRef *left, LLVMValueRef at,
                           int64_t pitch, int64_t eighths, LLVMValueRef *to)
{
    LLVMValueRef y[4], sum[4];
    for (int j = 0; j < PART / 16; j++)
        for (int w = 0; w < (eighths + 1) / 2; w++) {
            gpu_tensor_load(&c->t, gpu_tensor_plus(&c->t, at, j * 16 * pitch + w * 32), true,
                            y);
            for (int t = 0; t < TILES; t++)
                for (int half = 0; half < 2 && 2 * w + half < eighths; half++) {
                    LLVMValueRef *part = to + (t * eighths + 2 * w + half) * 4;
                    for (int i = 0; i < 4; i++)
                        sum[i] = gpu_tensor_load_f32(&c->t, part[i]);
                    gpu_tensor_multiply(&c->t, sum, left + (t * PART / 8 + 2 * j) * 2,
                                        y + 2 * half);
                    for (int i = 0; i < 4; i++)
                        LLVMBuildStore(c->b, sum[i], part[i]);
                }
        }
}

void gpu_gradient_round_all(struct gpu_gradient *c, const LLVMValueRef *x, LLVMValueRef *out)
{
    for (int i = 0; i < TILES * PART / 4; i++)
        out[i] = gpu_tensor_round(&c->t, x[2 * i], x[2 * i + 1]);
}

// ---- Where a block of threads is

LLVMValueRef gpu_gradient_set_batch(struct gpu_gradient *c, LLVMValueRef chunk, int64_t parts)
{
    struct cg_lowering *l = c->l;
    LLVMValueRef rest = c->batch = LLVMBuildUDiv(c->b, chunk, whole(c, parts), "");
    const struct nest_statement *loop = c->g.a.loop;
    for (uint32_t i = loop->n_axes; i-- > 0;) {
        LLVMValueRef n = whole(c, l->nest->axes.at[loop->axes[i]].extent);
        l->axes[loop->axes[i]] = LLVMBuildURem(c->b, rest, n, "");
        rest = LLVMBuildUDiv(c->b, rest, n, "");
    }
    return LLVMBuildURem(c->b, chunk, whole(c, parts), "");
}

LLVMValueRef gpu_gradient_warp_of(struct gpu_gradient *c)
{
    return gpu_wide(c->l, LLVMBuildLShr(c->b, c->l->gpu->thread, gpu_i32(c->l, 5), ""));
}

struct cg_kernel_step *gpu_gradient_open_function(struct gpu_gradient *c, struct cg_kernel *out,
                                                  const char *suffix, unsigned threads,
                                                  uint32_t at)
{
    struct cg_lowering *l = c->l;
    l->gpu->block = l->gpu->group = threads;
    l->gpu->is_alone = true;
    struct cg_kernel_step *step = gpu_function_open(l, out, suffix, 0);
    gpu_lower_list(l, 0, at);
    return step;
}

void gpu_gradient_close_function(struct gpu_gradient *c, struct cg_kernel_step *step,
                                 int64_t chunks)
{
    step->total = chunks;
    step->grain = 1;
    step->exact_grid = true;
    gpu_function_close(c->l, step);
}

// ---- The last function: dq

static void lower_sums(struct gpu_gradient *c, struct cg_kernel *out, uint32_t at)
{
    enum { THREADS = 256, EACH = 8 };
    struct cg_lowering *l = c->l;
    const struct nest_statement *put = c->g.dq;
    struct cg_kernel_step *step = gpu_gradient_open_function(c, out, "_sums", THREADS, at);
    c->t = gpu_tensor_make(l, c->g.a.q->dtype, THREADS / GPU_WARP, 0);
    int64_t pieces = c->depth / EACH, all = c->queries * pieces,
            blocks = (all + THREADS - 1) / THREADS;
    struct cg_loop chunk = gpu_chunks_open(l, c->batches * blocks);
    LLVMValueRef block = gpu_gradient_set_batch(c, chunk.index, blocks);
    LLVMValueRef i = sum_of(c, times(c, block, THREADS), gpu_wide(l, l->gpu->thread));
    struct cg_branch inside =
        cg_if_open(l, LLVMBuildICmp(c->b, LLVMIntSLT, i, whole(c, all), ""));
    LLVMValueRef query = LLVMBuildUDiv(c->b, i, whole(c, pieces), "");
    LLVMValueRef column = times(c, LLVMBuildURem(c->b, i, whole(c, pieces), ""), EACH);
    LLVMTypeRef four = LLVMVectorType(c->f32, 4), words = LLVMVectorType(c->t.i32, 4);
    LLVMValueRef sum[2] = {NULL, NULL}, result = LLVMGetUndef(words);
    for (int64_t split = 0; split < c->splits; split++)
        for (int k = 0; k < 2; k++) {
            LLVMValueRef x =
                LLVMBuildLoad2(c->b, four,
                               gpu_gradient_part_of(c, whole(c, split), query,
                                                    gpu_tensor_plus(&c->t, column, 4 * k)),
                               "");
            sum[k] = sum[k] ? LLVMBuildFAdd(c->b, sum[k], x, "") : x;
        }
    for (int k = 0; k < 4; k++) {
        LLVMValueRef x[2];
        for (int half = 0; half < 2; half++)
            x[half] =
                LLVMBuildExtractElement(c->b, sum[k / 2], gpu_i32(l, k % 2 * 2 + half), "");
        result = LLVMBuildInsertElement(c->b, result, gpu_tensor_round(&c->t, x[0], x[1]),
                                        gpu_i32(l, k), "");
    }
    l->axes[c->g.a.query] = query;
    l->axes[c->g.dq_column] = column;
    LLVMValueRef to = cg_at(l, l->module->i16, cg_buffer_base(l, put->buffer),
                            cg_index_first(l, &put->index));
    LLVMSetAlignment(LLVMBuildStore(c->b, result, to), 16);
    cg_if_close(l, &inside);
    cg_loop_close(l, &chunk);
    gpu_gradient_close_function(c, step, c->batches * blocks);
}

// ---- The kernel

static void choose_sizes(struct gpu_gradient *c)
{
    const struct nest *n = c->l->nest;
    const struct attention_gradient *g = &c->g;
    const struct attention *a = &g->a;
    c->queries = n->axes.at[a->query].extent;
    c->keys = n->axes.at[a->key].extent;
    c->depth = n->axes.at[a->depth].extent;
    c->columns = n->axes.at[a->column].extent;
    c->batches = cg_extent(c->l, a->loop);
    c->depths = (int)(c->depth + 15) / 16;
    c->widths = (int)(c->columns + 15) / 16;
    c->padded =
        (c->queries + MAP_GRADIENT_QUERIES - 1) / MAP_GRADIENT_QUERIES * MAP_GRADIENT_QUERIES;
    c->q = gpu_tensor_rows_of(c->l, a->q, a->query, a->depth, false);
    c->k = gpu_tensor_rows_of(c->l, a->k, a->key_of_k, a->depth, false);
    c->v = gpu_tensor_rows_of(c->l, a->v, a->key_of_v, a->column, false);
    c->dy = gpu_tensor_rows_of(c->l, g->dy, a->query, a->column, false);
    c->warps = (int)n->threads[NEST_BLOCK_THREADS] / GPU_WARP;
    c->splits = n->threads[NEST_BLOCKS] / c->batches;
    c->statistics = (uint64_t)c->batches * (uint64_t)c->padded * 8;
}

void gpu_attention_gradient_lower(struct cg_lowering *l, uint32_t at, struct cg_kernel *out)
{
    struct gpu_gradient c = {.l = l, .b = l->m.b, .f32 = l->module->f32};
    attention_find_gradient(l->nest, &c.g);
    c.is_done = arena_array(l->arena, bool, l->nest->values.count + 1);
    choose_sizes(&c);
    gpu_gradient_statistics(&c, out, at);
    gpu_gradient_keys(&c, out, at);
    lower_sums(&c, out, at);
}
