// SPDX-License-Identifier: Apache-2.0
// Attention as one kernel.
//
//     gemm s = q k^T                                    kernel y = softmax(f(s)) v (attention.h)
//     kernel w = softmax(f(s)) row by row     becomes
//     gemm y = w v
//
// Needs a scheduled program whose memories are not planned yet.  Nothing else reads s and w.  What the
// kernel computes in a half type is computed in f32, and s is not rounded.
//
// One shape: attention (docs/nests.md).
#include "schedule/copies.h"
#include "schedule/kernels/attention_internal.h"
#include "schedule/library/library.h"
#include "schedule/rewrites.h"

#include <stdio.h>

struct joiner {
    struct nest_program *p;
    const struct nest_step *scores, *result;
    struct nest_builder b;
    struct attention_rows rows;
    nest_id s, w; // its buffers
};

static nest_id operand(struct joiner *j, uint32_t memory, enum nest_role role)
{
    const struct nest_memory *m = &j->p->memories.at[memory];
    return nest_buffer(&j->b, m->name ? m->name : "x", m->dtype, m->count, role);
}

static void write_scores(struct joiner *j, nest_id q, nest_id k)
{
    struct attention_rows *r = &j->rows;
    const struct nest_gemm *g = &j->scores->gemm;
    const struct nest_index *of_s = &attention_rows_access(r, j->s)->index;
    struct attention_product x = {.across = nest_axis(&j->b, "key", g->n),
                                  .along = nest_axis(&j->b, "d", g->k),
                                  .buffers = {q, k},
                                  .to = r->parts[j->s].local,
                                  .dtype = JOT_F32};
    x.index[0] =
        attention_matrix(r, g, g->stride_a, of_s, g->m * g->n,
                         (struct nest_term){g->lda, attention_query(r), false}, x.along);
    x.index[1] = attention_matrix(r, g, g->stride_b, of_s, g->m * g->n,
                                  (struct nest_term){g->ldb, x.across, false}, x.along);
    x.to_index = attention_at(r, x.across);
    attention_write_product(r, &x);
}

static void write_result(struct joiner *j, nest_id v, nest_id to)
{
    struct attention_rows *r = &j->rows;
    const struct nest_gemm *g = &j->result->gemm;
    const struct nest_index *of_w = &attention_rows_access(r, j->w)->index;
    struct attention_product x = {.across = nest_axis(&j->b, "c", g->n),
                                  .along = nest_axis(&j->b, "key", g->k),
                                  .buffers = {r->parts[j->w].local, v},
                                  .to = to,
                                  .dtype = g->dtype};
    x.index[0] = attention_at(r, x.along);
    x.index[1] = attention_matrix(r, g, g->stride_b, of_w, g->m * g->k,
                                  (struct nest_term){g->ldb, x.along, false}, x.across);
    x.to_index =
        attention_matrix(r, g, g->stride_c, of_w, g->m * g->k,
                         (struct nest_term){g->ldc, attention_query(r), false}, x.across);
    attention_write_product(r, &x);
}

// The kernel, its operands in *memories; NULL when it would be no attention.
static struct nest *write_kernel(struct joiner *j, uint32_t *memories, uint32_t *n_memories)
{
    struct attention_rows *r = &j->rows;
    const struct nest *from = r->from;
    struct arena *arena = j->p->arena;
    uint32_t n = 0;
    char name[256];
    snprintf(name, sizeof name, "%.200s_attention", from->name);
    j->b = nest_builder_make(arena, arena_text(arena, name));
    nest_id in[3];
    for (int i = 0; i < 3; i++) {
        memories[n] = i < 2 ? j->scores->memories[i] : j->result->memories[1];
        in[i] = operand(j, memories[n++], NEST_IN);
    }
    attention_rows_begin(r, memories, &n);
    memories[n] = j->result->memories[2];
    nest_id to = operand(j, memories[n++], NEST_OUT);
    *n_memories = n;
    r->parts[j->s].local = nest_local(&j->b, "score", JOT_F32, j->scores->gemm.n);
    r->parts[j->w].local =
        nest_local(&j->b, "weight", j->result->gemm.dtype, j->scores->gemm.n);
    nest_id *axes = arena_array(arena, nest_id, r->loop->n_axes);
    for (uint32_t i = 0; i < r->loop->n_axes; i++) {
        const struct nest_axis *axis = &from->axes.at[r->loop->axes[i]];
        axes[i] = r->axes[r->loop->axes[i]] = nest_axis(&j->b, axis->name, axis->extent);
    }
    nest_open(&j->b, NEST_PAR, (int)r->loop->n_axes, axes);
    write_scores(j, in[0], in[1]);
    attention_rows_body(r);
    write_result(j, in[2], to);
    nest_close(&j->b, 0, NULL);
    struct attention a;
    return !r->fails && attention_find(j->b.nest, &a) ? j->b.nest : NULL;
}

// ---- Steps

static bool is_dense_half_product(const struct nest_gemm *g)
{
    return dtype_is_half(g->dtype) && g->activation == NEST_LINEAR && !g->has_bias &&
           !g->has_addend && g->alpha == 1 && !g->transpose_a && g->ldc == g->n;
}

// The one that another step reads of what the rows' kernel puts: the weights, or UINT32_MAX.
static uint32_t find_weights(struct joiner *j, uint32_t rows)
{
    struct attention_rows *r = &j->rows;
    uint32_t argument = 0, found = UINT32_MAX;
    for (nest_id b = 0; b < r->from->buffers.count; b++) {
        const struct nest_buffer *x = &r->from->buffers.at[b];
        argument += x->role != NEST_LOCAL;
        if (x->role != NEST_OUT)
            continue;
        uint32_t memory = r->step->memories[argument - 1];
        if (schedule_is_unread(j->p, rows, memory)) {
            r->parts[b].kind = ATTENTION_NOTHING;
            continue;
        }
        if (found != UINT32_MAX)
            return UINT32_MAX;
        j->w = b;
        found = memory;
    }
    return found;
}

static bool join_attention(struct nest_program *p, uint32_t i)
{
    struct nest_step *scores = &p->steps.at[i];
    if (!is_dense_half_product(&scores->gemm) || !scores->gemm.transpose_b)
        return false;
    uint32_t rows = schedule_find_reader(p, i, scores->memories[2]);
    struct joiner j = {.p = p, .scores = scores};
    if (rows == UINT32_MAX || !attention_rows_make(p, rows, &scores->gemm, &j.b, &j.rows))
        return false;
    uint32_t w = find_weights(&j, rows);
    uint32_t last = w == UINT32_MAX ? w : schedule_find_reader(p, rows, w);
    if (last == UINT32_MAX || p->steps.at[last].kind != NEST_STEP_GEMM ||
        !schedule_keeps_operands(p, i, last))
        return false;
    struct nest_step *result = &p->steps.at[last];
    j.result = result;
    j.s = attention_rows_buffer(&j.rows, scores->memories[2]);
    if (!is_dense_half_product(&result->gemm) || result->gemm.transpose_b ||
        result->memories[0] != w || result->memories[1] == w ||
        result->gemm.m != scores->gemm.m || result->gemm.k != scores->gemm.n ||
        !attention_rows_walks(&j.rows, j.s, scores->gemm.n) ||
        !attention_rows_walks(&j.rows, j.w, scores->gemm.n))
        return false;
    j.rows.parts[j.s] = (struct attention_part){.kind = ATTENTION_ROWS, .dtype = JOT_F32};
    j.rows.parts[j.w] =
        (struct attention_part){.kind = ATTENTION_ROWS, .dtype = result->gemm.dtype};
    uint32_t *memories = arena_array(p->arena, uint32_t, j.rows.step->n_memories + 4), n;
    struct nest *nest = write_kernel(&j, memories, &n);
    if (!nest)
        return false;
    *result = (struct nest_step){.kind = NEST_STEP_KERNEL,
                                 .nest = p->nests.count,
                                 .n_memories = n,
                                 .memories = memories,
                                 .place = result->place,
                                 .reason = "attention"};
    vec_push(p->arena, &p->nests, nest);
    schedule_remove_step(p, rows);
    schedule_remove_step(p, i);
    return true;
}

void attention_join(struct nest_program *p)
{
    schedule_join_products(p, attention_join_gradient);
    schedule_join_products(p, join_attention);
}
