// SPDX-License-Identifier: Apache-2.0
// The gradient of attention as one kernel.
//
//     gemm s = q k^T            kernel w = softmax(f(s)), perhaps with what its gradient needs
//     gemm p = dy v^T           kernel c = the change of s, row by row; perhaps the same one
//     gemm dq = c k             gemm dk = c^T q            gemm dv = w^T dy
//
// The first two may go on, as the forward pass; what they put for the gradient is made again.
//
// One shape: attention (docs/nests.md).
#include "schedule/copies.h"
#include "schedule/kernels/attention_internal.h"
#include "schedule/library/library.h"
#include "schedule/plan/plan.h"
#include "schedule/rewrites.h"

#include <stdio.h>

struct gradient {
    struct nest_program *p;
    uint32_t scores, product, dq, dk, dv; // steps
    uint32_t first, second;               // the rows; the same if one does all
    struct nest_builder b;
    struct attention_rows rows[2];
    int n_rows;
    nest_id s, w, change, dp; // memories' buffers: in the rows that have them
    nest_id locals[4];        // score, weight, change, product
    nest_id in[4], out[3];    // q, k, v, dy; dq, dk, dv
    nest_id *of_first;        // by buffer of the second rows: that of the first, or NEST_NONE
};

static const struct nest_step *step(const struct gradient *t, uint32_t i)
{
    return &t->p->steps.at[i];
}

// ---- The kernel

static nest_id operand(struct gradient *t, uint32_t memory, enum nest_role role,
                       uint32_t *memories, uint32_t *n)
{
    const struct nest_memory *m = &t->p->memories.at[memory];
    memories[(*n)++] = memory;
    return nest_buffer(&t->b, m->name ? m->name : "x", m->dtype, m->count, role);
}

// The index of a matrix of scores.
static const struct nest_index *of_scores(const struct gradient *t)
{
    return &attention_rows_access(&t->rows[0], t->s)->index;
}

static struct nest_index matrix(struct gradient *t, const struct nest_gemm *g,
                                const int64_t stride[4], int64_t ld, nest_id row,
                                nest_id column)
{
    struct attention_rows *r = &t->rows[0];
    return attention_matrix(r, g, stride, of_scores(t), r->queries * r->keys,
                            (struct nest_term){ld, row, false}, column);
}

// Rows of a b^T, of what two memories have, to a local of the query.
static void write_rows_product(struct gradient *t, uint32_t gemm, nest_id x, nest_id y,
                               nest_id to)
{
    struct attention_rows *r = &t->rows[0];
    const struct nest_gemm *g = &step(t, gemm)->gemm;
    struct attention_product p = {.across = nest_axis(&t->b, "key", g->n),
                                  .along = nest_axis(&t->b, "d", g->k),
                                  .buffers = {x, y},
                                  .to = to,
                                  .dtype = JOT_F32};
    p.index[0] = matrix(t, g, g->stride_a, g->lda, attention_query(r), p.along);
    p.index[1] = matrix(t, g, g->stride_b, g->ldb, p.across, p.along);
    p.to_index = attention_at(r, p.across);
    attention_write_product(r, &p);
}

// A local of all rows times a memory; the local is turned where the queries are summed over.
static void write_result(struct gradient *t, uint32_t gemm, nest_id local, nest_id y,
                         nest_id to, nest_id key)
{
    struct attention_rows *r = &t->rows[0];
    const struct nest_gemm *g = &step(t, gemm)->gemm;
    bool is_turned = g->transpose_a;
    struct attention_product p = {.across = nest_axis(&t->b, "c", g->n),
                                  .along = nest_axis(&t->b, is_turned ? "query" : "key", g->k),
                                  .buffers = {local, y},
                                  .to = to,
                                  .dtype = g->dtype};
    nest_id query = is_turned ? p.along : attention_query(r);
    struct nest_term terms[] = {{r->keys, query, false}, {1, is_turned ? key : p.along, false}};
    p.index[0] = nest_index_make(t->p->arena, 0, 2, terms);
    p.index[1] = matrix(t, g, g->stride_b, g->ldb, p.along, p.across);
    p.to_index = matrix(t, g, g->stride_c, g->ldc, is_turned ? key : query, p.across);
    attention_write_product(r, &p);
}

// What the second rows read of the first ones is where those put it.
static void share_parts(struct gradient *t)
{
    for (nest_id i = 0; t->n_rows == 2 && i < t->rows[1].from->buffers.count; i++)
        if (t->of_first[i] != NEST_NONE)
            t->rows[1].parts[i] = t->rows[0].parts[t->of_first[i]];
}

static void write_rows(struct gradient *t)
{
    nest_id query = attention_query(&t->rows[0]);
    nest_open(&t->b, NEST_MAP, 1, &query);
    write_rows_product(t, t->scores, t->in[0], t->in[1], t->locals[0]);
    write_rows_product(t, t->product, t->in[3], t->in[2], t->locals[3]);
    for (int i = 0; i < t->n_rows; i++) {
        attention_rows_body(&t->rows[i]);
        share_parts(t); // values
    }
    write_result(t, t->dq, t->locals[2], t->in[1], t->out[0], NEST_NONE);
    nest_close(&t->b, 0, NULL);
}

// In one loop over keys: so no result is put where dy or q is still to be read.
static void write_turned(struct gradient *t)
{
    nest_id key = nest_axis(&t->b, "key", t->rows[0].keys);
    nest_open(&t->b, NEST_MAP, 1, &key);
    write_result(t, t->dv, t->locals[1], t->in[3], t->out[2], key);
    write_result(t, t->dk, t->locals[2], t->in[0], t->out[1], key);
    nest_close(&t->b, 0, NULL);
}

// The axes of the batch, one at least, and of queries, the same for all rows.
static int make_axes(struct gradient *t, nest_id *axes)
{
    const struct attention_rows *r = &t->rows[0];
    int n = 0;
    for (uint32_t i = 0; i < r->loop->n_axes; i++) {
        const struct nest_axis *axis = &r->from->axes.at[r->loop->axes[i]];
        nest_id id = nest_axis(&t->b, axis->name, axis->extent);
        for (int k = 0; k < t->n_rows; k++)
            t->rows[k].axes[t->rows[k].loop->axes[i]] = id;
        if (i + 1 < r->loop->n_axes)
            axes[n++] = id;
    }
    if (!n)
        axes[n++] = nest_axis(&t->b, "b", 1);
    return n;
}

static void make_locals(struct gradient *t)
{
    struct attention_rows *r = &t->rows[0], *last = &t->rows[t->n_rows - 1];
    jot_dtype half = step(t, t->scores)->gemm.dtype;
    struct attention_part parts[] = {
        {.kind = ATTENTION_ROWS, .dtype = JOT_F32},
        {.kind = ATTENTION_ROWS, .dtype = half, .is_of_all = true},
        {.kind = ATTENTION_ROWS, .dtype = half, .is_of_all = true},
        {.kind = ATTENTION_ROWS, .dtype = JOT_F32},
    };
    static const char *const names[] = {"score", "weight", "change", "product"};
    for (int i = 0; i < 4; i++) {
        int64_t count = parts[i].is_of_all ? r->queries * r->keys : r->keys;
        parts[i].local = t->locals[i] = nest_local(&t->b, names[i], parts[i].dtype, count);
    }
    r->parts[t->s] = parts[0];
    r->parts[t->w] = parts[1];
    last->parts[t->change] = parts[2];
    last->parts[t->dp] = parts[3];
    for (nest_id i = 0; i < r->from->buffers.count; i++) {
        struct attention_part *part = &r->parts[i];
        if (part->kind == ATTENTION_ROWS && part->local == NEST_NONE)
            part->local = nest_local(&t->b, "row", JOT_F32, r->keys);
    }
    share_parts(t);
}

static struct nest *write_kernel(struct gradient *t, uint32_t *memories, uint32_t *n)
{
    struct arena *arena = t->p->arena;
    char name[256];
    nest_id axes[IR_MAX_RANK + 1];
    snprintf(name, sizeof name, "%.200s_attention_gradient", t->rows[0].from->name);
    t->b = nest_builder_make(arena, arena_text(arena, name));
    *n = 0;
    for (int i = 0; i < 2; i++)
        t->in[i] = operand(t, step(t, t->scores)->memories[i], NEST_IN, memories, n);
    t->in[2] = operand(t, step(t, t->product)->memories[1], NEST_IN, memories, n);
    t->in[3] = operand(t, step(t, t->product)->memories[0], NEST_IN, memories, n);
    make_locals(t);
    for (int i = 0; i < t->n_rows; i++)
        attention_rows_begin(&t->rows[i], memories, n);
    const uint32_t results[] = {t->dq, t->dk, t->dv};
    for (int i = 0; i < 3; i++)
        t->out[i] = operand(t, step(t, results[i])->memories[2], NEST_OUT, memories, n);
    int n_axes = make_axes(t, axes);
    nest_open(&t->b, NEST_PAR, n_axes, axes);
    write_rows(t);
    write_turned(t);
    nest_close(&t->b, 0, NULL);
    struct attention_gradient g;
    bool is_whole = !t->rows[0].fails && !t->rows[t->n_rows - 1].fails;
    return is_whole && attention_find_gradient(t->b.nest, &g) ? t->b.nest : NULL;
}

// ---- Steps

static bool is_half_product(const struct nest_gemm *g, const struct nest_gemm *scores)
{
    return g->dtype == scores->dtype && dtype_is_half(g->dtype) &&
           g->activation == NEST_LINEAR && !g->has_bias && !g->has_addend && g->alpha == 1;
}

// The only product whose left operand is m, turned or not; UINT32_MAX when there is none.
static uint32_t product_of(const struct nest_program *p, uint32_t m, bool is_turned)
{
    uint32_t found = UINT32_MAX;
    for (uint32_t i = 0; i < p->steps.count; i++) {
        const struct nest_step *s = &p->steps.at[i];
        if (s->kind != NEST_STEP_GEMM || s->memories[0] != m || s->gemm.transpose_b ||
            s->gemm.transpose_a != is_turned)
            continue;
        if (found != UINT32_MAX)
            return UINT32_MAX;
        found = i;
    }
    return found;
}

// How many steps use the memory.
static uint32_t users_of(const struct nest_program *p, uint32_t m)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->steps.count; i++)
        for (uint32_t k = 0; k < p->steps.at[i].n_memories; k++)
            n += p->steps.at[i].memories[k] == m;
    return n;
}

// Whether steps from .. to - 1 leave the memory alone.
static bool is_left(const struct nest_program *p, uint32_t from, uint32_t to, uint32_t m)
{
    for (uint32_t i = from; i < to; i++)
        for (uint32_t k = 0; k < p->steps.at[i].n_memories; k++) {
            uint32_t other = p->steps.at[i].memories[k];
            if (nest_memory_shows(p, other, m) || nest_memory_shows(p, m, other))
                return false;
        }
    return true;
}

static bool walks(const struct attention_rows *r, nest_id buffer)
{
    return buffer != NEST_NONE && attention_rows_walks(r, buffer, r->keys);
}

// What the second rows read of the first ones is told by where it stands; false: in another way.
static bool find_parts(struct gradient *t)
{
    struct attention_rows *r = &t->rows[0], *last = &t->rows[1];
    uint32_t argument = 0;
    if (t->n_rows == 2) {
        t->of_first = arena_array(t->p->arena, nest_id, last->from->buffers.count);
        for (nest_id i = 0; i < last->from->buffers.count; i++)
            t->of_first[i] = NEST_NONE;
    }
    for (nest_id i = 0; i < r->from->buffers.count; i++) {
        const struct nest_buffer *x = &r->from->buffers.at[i];
        if (x->role == NEST_LOCAL)
            continue;
        uint32_t memory = r->step->memories[argument++];
        nest_id b = t->n_rows == 2 ? attention_rows_buffer(last, memory) : NEST_NONE;
        bool is_put = x->role == NEST_OUT, is_score = i == t->s;
        if (x->role == NEST_INOUT || x->role == NEST_PART)
            return false;
        if (!is_put && !is_score)
            continue;
        if (b == NEST_NONE) {
            r->parts[i].kind = ATTENTION_NOTHING;
            continue;
        }
        bool is_row =
            x->count == last->from->buffers.at[b].count && walks(r, i) && walks(last, b);
        bool is_value = !is_row && is_put && attention_rows_walks(r, i, 1) &&
                        attention_rows_walks(last, b, 1);
        if (!is_row && !is_value)
            return false;
        r->parts[i] = (struct attention_part){.kind = is_row ? ATTENTION_ROWS : ATTENTION_VALUE,
                                              .dtype = JOT_F32,
                                              .local = NEST_NONE,
                                              .value = NEST_NONE};
        t->of_first[b] = i;
    }
    return true;
}

static bool same_axes(const struct attention_rows *a, const struct attention_rows *b)
{
    if (a->loop->n_axes != b->loop->n_axes)
        return false;
    for (uint32_t i = 0; i < a->loop->n_axes; i++)
        if (a->from->axes.at[a->loop->axes[i]].extent !=
            b->from->axes.at[b->loop->axes[i]].extent)
            return false;
    return true;
}

// The steps around scores, whose rows are step `first`.
static bool find_steps(struct gradient *t)
{
    struct nest_program *p = t->p;
    const struct nest_gemm *scores = &step(t, t->scores)->gemm;
    const struct nest_step *rows = step(t, t->first);
    t->dv = UINT32_MAX;
    uint32_t weights = UINT32_MAX;
    for (uint32_t k = 0; k < rows->n_memories && t->dv == UINT32_MAX; k++)
        if (plan_is_written(p, rows, k)) {
            weights = rows->memories[k];
            t->dv = product_of(p, weights, true);
            // Changes are such an operand, too, but of the queries.
            if (t->dv != UINT32_MAX &&
                step(t, t->dv)->memories[1] == step(t, t->scores)->memories[0])
                t->dv = UINT32_MAX;
        }
    if (t->dv == UINT32_MAX)
        return false;
    uint32_t dy = step(t, t->dv)->memories[1];
    for (uint32_t i = 0; i < p->steps.count; i++) {
        const struct nest_step *s = &p->steps.at[i];
        if (s->kind != NEST_STEP_GEMM || i == t->scores || s->memories[0] != dy ||
            !s->gemm.transpose_b || s->gemm.transpose_a || !is_half_product(&s->gemm, scores) ||
            s->gemm.m != scores->m || s->gemm.n != scores->n)
            continue;
        t->product = i;
        t->second = schedule_find_reader(p, i, s->memories[2]);
        if (t->second == UINT32_MAX || step(t, t->second)->kind != NEST_STEP_KERNEL)
            return false;
        const struct nest_step *last = step(t, t->second);
        uint32_t changes = UINT32_MAX;
        for (uint32_t k = 0; k < last->n_memories; k++)
            if (plan_is_written(p, last, k) && last->memories[k] != weights) {
                if (changes != UINT32_MAX)
                    return false;
                changes = last->memories[k];
            }
        if (changes == UINT32_MAX || users_of(p, changes) != 3 ||
            p->memories.at[changes].kind != NEST_TEMPORARY)
            return false;
        t->dq = product_of(p, changes, false);
        t->dk = product_of(p, changes, true);
        if (t->dq == UINT32_MAX || t->dk == UINT32_MAX ||
            !attention_rows_make(p, t->first, scores, &t->b, &t->rows[0]))
            return false;
        t->n_rows = 1;
        if (t->second != t->first) {
            t->n_rows = 2;
            if (t->second < t->first ||
                !attention_rows_make(p, t->second, scores, &t->b, &t->rows[1]) ||
                !same_axes(&t->rows[0], &t->rows[1]))
                return false;
        }
        t->s = attention_rows_buffer(&t->rows[0], step(t, t->scores)->memories[2]);
        t->w = attention_rows_buffer(&t->rows[0], weights);
        const struct attention_rows *r = &t->rows[t->n_rows - 1];
        t->change = attention_rows_buffer(r, changes);
        t->dp = attention_rows_buffer(r, s->memories[2]);
        return walks(&t->rows[0], t->s) && walks(&t->rows[0], t->w) && walks(r, t->change) &&
               walks(r, t->dp);
    }
    return false;
}

// Whether one kernel at the step of the second rows may do all of it.
static bool may_move(const struct gradient *t)
{
    const struct nest_program *p = t->p;
    const struct nest_gemm *scores = &step(t, t->scores)->gemm;
    const uint32_t results[] = {t->dq, t->dk, t->dv};
    for (int i = 0; i < 3; i++) {
        const struct nest_step *s = step(t, results[i]);
        uint32_t at = results[i], low = at < t->second ? at : t->second,
                 high = at < t->second ? t->second : at;
        if (!is_half_product(&s->gemm, scores) || !is_left(p, low + 1, high, s->memories[2]) ||
            (at < t->second && !schedule_keeps_operands(p, at, t->second)) ||
            (at > t->second && (!schedule_keeps_operands(p, t->scores, at) ||
                                !schedule_keeps_operands(p, t->product, at))))
            return false;
    }
    if (step(t, t->dq)->memories[1] != step(t, t->scores)->memories[1] ||
        step(t, t->dk)->memories[1] != step(t, t->scores)->memories[0])
        return false;
    const uint32_t steps[] = {t->scores, t->first, t->product};
    for (int i = 0; i < 3; i++)
        if (steps[i] > t->second || !schedule_keeps_operands(p, steps[i], t->second))
            return false;
    return true;
}

bool attention_join_gradient(struct nest_program *p, uint32_t i)
{
    struct gradient t = {.p = p, .scores = i};
    const struct nest_step *scores = &p->steps.at[i];
    const struct nest_gemm *g = &scores->gemm;
    if (!is_half_product(g, g) || !g->transpose_b || g->transpose_a || g->ldc != g->n)
        return false;
    t.first = schedule_find_reader(p, i, scores->memories[2]);
    if (t.first == UINT32_MAX || !find_steps(&t) || !may_move(&t) || !find_parts(&t))
        return false;
    uint32_t room =
        t.rows[0].step->n_memories + (t.n_rows == 2 ? t.rows[1].step->n_memories : 0);
    uint32_t *memories = arena_array(p->arena, uint32_t, room + 8), n;
    struct nest *nest = write_kernel(&t, memories, &n);
    if (!nest)
        return false;
    p->steps.at[t.second] = (struct nest_step){.kind = NEST_STEP_KERNEL,
                                               .nest = p->nests.count,
                                               .n_memories = n,
                                               .memories = memories,
                                               .place = scores->place,
                                               .reason = "gradient of attention"};
    vec_push(p->arena, &p->nests, nest);
    // What is left of the forward pass stays as long as somebody reads its weights.
    bool is_whole = t.n_rows == 1;
    uint32_t weights = step(&t, t.dv)->memories[0];
    uint32_t gone[6] = {t.product, t.dq, t.dk, t.dv}, n_gone = 4;
    if (!is_whole && users_of(p, weights) == 2) {
        gone[n_gone++] = t.first;
        is_whole = true;
    }
    if (is_whole)
        gone[n_gone++] = t.scores;
    for (uint32_t at = p->steps.count; at-- > 0;)
        for (uint32_t k = 0; k < n_gone; k++)
            if (gone[k] == at) {
                schedule_remove_step(p, at);
                break;
            }
    return true;
}
