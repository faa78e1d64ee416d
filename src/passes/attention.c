// SPDX-License-Identifier: Apache-2.0
// Attention as one kernel.
//
//     gemm s = q k^T                                    kernel y = softmax(f(s)) v (attention.h)
//     kernel w = softmax(f(s)) row by row     becomes
//     gemm y = w v
//
// Needs a scheduled program whose memories are not planned yet.  Nothing else reads s and w.  What the
// kernel computes in a half type is computed in f32, and s is not rounded.
#include "passes/attention.h"
#include "passes/schedule_internal.h"

#include <stdio.h>
#include <string.h>

struct joiner {
    struct nest_program *p;
    const struct nest_step *scores, *rows, *result;
    const struct nest *from; // of rows
    nest_id s, w;            // its buffers
    const struct nest_statement *loop;
    struct nest_builder b;
    nest_id score, weight;            // locals
    nest_id *axes, *buffers, *values; // of `from` in the nest that is written
    bool fails;
};

// ---- Copies of the rows' statements, in f32

static nest_id fail(struct joiner *j)
{
    j->fails = true;
    return 0;
}

static jot_dtype widened(jot_dtype d) { return dtype_is_half(d) ? JOT_F32 : d; }

static struct nest_index moved(struct joiner *j, const struct nest_index *x)
{
    struct nest_term *terms = arena_array(j->p->arena, struct nest_term, x->count + 1);
    for (uint32_t i = 0; i < x->count; i++) {
        terms[i] = x->terms[i];
        if (terms[i].is_value)
            j->fails = true;
        else
            terms[i].id = j->axes[terms[i].id];
    }
    return nest_index_make(j->p->arena, x->constant, (int)x->count, terms);
}

static nest_id convert(struct joiner *j, nest_id value, jot_dtype to)
{
    return nest_op(&j->b, IR_convert, to, 1, &value, (int64_t[2]){0});
}

static nest_id copy_const(struct joiner *j, const struct nest_statement *s)
{
    nest_id c = nest_const(&j->b, s->dtype, s->bits);
    return dtype_is_half(s->dtype) ? convert(j, c, JOT_F32) : c;
}

static struct nest_index at_axis(struct joiner *j, nest_id axis)
{
    return nest_index_make(j->p->arena, 0, 1, &(struct nest_term){1, axis, false});
}

// The last of the axes that the index of s or w walks one by one.
static nest_id key_of(const struct nest_index *x)
{
    for (uint32_t i = 0; i < x->count; i++)
        if (!x->terms[i].is_value && x->terms[i].factor == 1)
            return x->terms[i].id;
    return NEST_NONE;
}

static nest_id copy_load(struct joiner *j, const struct nest_statement *s)
{
    if (s->guard != NEST_NONE)
        return fail(j);
    if (s->buffer == j->s) {
        nest_id key = key_of(&s->index);
        return key == NEST_NONE
                   ? fail(j)
                   : nest_load(&j->b, j->score, at_axis(j, j->axes[key]), NEST_NONE);
    }
    nest_id x = nest_load(&j->b, j->buffers[s->buffer], moved(j, &s->index), NEST_NONE);
    return j->from->buffers.at[s->buffer].role != NEST_LOCAL && dtype_is_half(s->dtype)
               ? convert(j, x, JOT_F32)
               : x;
}

static nest_id copy_op(struct joiner *j, const struct nest_statement *s)
{
    nest_id in[4];
    for (uint32_t i = 0; i < s->n_in; i++)
        in[i] = j->values[s->in[i]];
    if (s->n_results != 1)
        return fail(j);
    if (s->op == IR_convert &&
        j->b.nest->values.at[in[0]].dtype == widened(s->dtype)) // from a half type, or to one
        return in[0];
    return nest_op(&j->b, (enum ir_op)s->op, widened(s->dtype), (int)s->n_in, in, s->bits);
}

static void copy_put(struct joiner *j, const struct nest_statement *s)
{
    if (s->op || s->guard != NEST_NONE) {
        fail(j);
        return;
    }
    nest_id value = j->values[s->in[0]];
    if (s->buffer != j->w) {
        nest_put(&j->b, j->buffers[s->buffer], moved(j, &s->index), value, NEST_NONE);
        return;
    }
    nest_id key = key_of(&s->index);
    value = convert(j, value, j->result->gemm.dtype);
    if (key == NEST_NONE)
        fail(j);
    else
        nest_put(&j->b, j->weight, at_axis(j, j->axes[key]), value, NEST_NONE);
}

static void copy_block(struct joiner *j, uint32_t block);

static void copy_loop(struct joiner *j, const struct nest_statement *s)
{
    struct nest_combine c = {0};
    if (s->n_axes != 1 || s->n_combines > 1 || (s->kind != NEST_FOLD && s->kind != NEST_MAP)) {
        fail(j);
        return;
    }
    const struct nest_axis *axis = &j->from->axes.at[s->axes[0]];
    j->axes[s->axes[0]] = nest_axis(&j->b, axis->name, axis->extent);
    nest_open(&j->b, s->kind, 1, &j->axes[s->axes[0]]);
    copy_block(j, s->body);
    for (uint32_t i = 0; i < s->n_combines; i++) {
        c = s->combines[i];
        for (int k = 0; k < c.n; k++)
            c.value[k] = j->values[c.value[k]];
    }
    nest_id result = nest_close(&j->b, (int)s->n_combines, &c);
    if (s->n_results)
        j->values[s->result] = result;
}

static void copy_statement(struct joiner *j, const struct nest_statement *s)
{
    j->b.where = s->where;
    nest_id result = NEST_NONE;
    switch (s->kind) {
    case NEST_CONST:
        result = copy_const(j, s);
        break;
    case NEST_INDEX:
        result = nest_index_value(&j->b, moved(j, &s->index), s->dtype);
        break;
    case NEST_LOAD:
        result = copy_load(j, s);
        break;
    case NEST_OP:
        result = copy_op(j, s);
        break;
    case NEST_PUT:
        copy_put(j, s);
        return;
    default:
        copy_loop(j, s);
        return;
    }
    if (s->n_results)
        j->values[s->result] = result;
}

static void copy_block(struct joiner *j, uint32_t block)
{
    const struct nest_block *b = &j->from->blocks.at[block];
    for (uint32_t i = 0; i < b->statements.count && !j->fails; i++)
        copy_statement(j, &j->from->statements.at[b->statements.at[i]]);
}

// ---- The products

// Where an operand of the product has row `row` and column `column` of a batch: the axes of the loop
// around the rows are digits of its number, s having one matrix behind the other.
static struct nest_index matrix_index(struct joiner *j, const struct nest_gemm *g,
                                      const int64_t stride[4], const struct nest_index *of_s,
                                      int64_t matrix, struct nest_term row, nest_id column)
{
    struct nest_term terms[IR_MAX_RANK + 2];
    int n = 0;
    for (uint32_t i = 0; i + 1 < j->loop->n_axes; i++) {
        nest_id axis = j->loop->axes[i];
        int64_t extent = j->from->axes.at[axis].extent, base = 1;
        int64_t step = nest_index_factor(of_s, axis) / matrix;
        int digit = 3;
        while (digit >= 0 && step >= base * g->batch[digit])
            base *= g->batch[digit--];
        if (step % base || digit < 0 || step * extent > base * g->batch[digit]) {
            j->fails |= extent != 1;
            continue;
        }
        terms[n++] = (struct nest_term){stride[digit] * (step / base), j->axes[axis], false};
    }
    terms[n++] = row;
    terms[n++] = (struct nest_term){1, column, false};
    return nest_index_make(j->p->arena, 0, n, terms);
}

static nest_id load_wide(struct joiner *j, nest_id buffer, struct nest_index x)
{
    nest_id v = nest_load(&j->b, buffer, x, NEST_NONE);
    return convert(j, v, JOT_F32);
}

static nest_id close_product(struct joiner *j, nest_id x, nest_id y)
{
    struct nest_combine c = {.op = IR_fma, .n = 2, .dtype = JOT_F32, .value = {x, y}};
    return nest_close(&j->b, 1, &c);
}

// The load of s, or the put of w, by which rows and batches are told.
static const struct nest_statement *access_of(const struct joiner *j, nest_id buffer)
{
    for (uint32_t i = 0; i < j->from->statements.count; i++) {
        const struct nest_statement *s = &j->from->statements.at[i];
        if ((s->kind == NEST_LOAD || s->kind == NEST_PUT) && s->buffer == buffer)
            return s;
    }
    return NULL;
}

static void write_scores(struct joiner *j, nest_id q, nest_id k, const struct nest_index *of_s)
{
    const struct nest_gemm *g = &j->scores->gemm;
    nest_id query = j->axes[j->loop->axes[j->loop->n_axes - 1]];
    nest_id key = nest_axis(&j->b, "key", g->n), depth = nest_axis(&j->b, "d", g->k);
    nest_open(&j->b, NEST_MAP, 1, &key);
    nest_open(&j->b, NEST_FOLD, 1, &depth);
    nest_id x = load_wide(j, q,
                          matrix_index(j, g, g->stride_a, of_s, g->m * g->n,
                                       (struct nest_term){g->lda, query, false}, depth));
    nest_id y = load_wide(j, k,
                          matrix_index(j, g, g->stride_b, of_s, g->m * g->n,
                                       (struct nest_term){g->ldb, key, false}, depth));
    nest_put(&j->b, j->score, at_axis(j, key), close_product(j, x, y), NEST_NONE);
    nest_close(&j->b, 0, NULL);
}

static void write_result(struct joiner *j, nest_id v, nest_id to, const struct nest_index *of_w)
{
    const struct nest_gemm *g = &j->result->gemm;
    nest_id query = j->axes[j->loop->axes[j->loop->n_axes - 1]];
    nest_id column = nest_axis(&j->b, "c", g->n), key = nest_axis(&j->b, "key", g->k);
    nest_open(&j->b, NEST_MAP, 1, &column);
    nest_open(&j->b, NEST_FOLD, 1, &key);
    nest_id x = load_wide(j, j->weight, at_axis(j, key));
    nest_id y = load_wide(j, v,
                          matrix_index(j, g, g->stride_b, of_w, g->m * g->k,
                                       (struct nest_term){g->ldb, key, false}, column));
    nest_id sum = close_product(j, x, y);
    nest_put(&j->b, to,
             matrix_index(j, g, g->stride_c, of_w, g->m * g->k,
                          (struct nest_term){g->ldc, query, false}, column),
             convert(j, sum, g->dtype), NEST_NONE);
    nest_close(&j->b, 0, NULL);
}

// ---- The kernel

static nest_id operand(struct joiner *j, uint32_t memory, enum nest_role role)
{
    const struct nest_memory *m = &j->p->memories.at[memory];
    return nest_buffer(&j->b, m->name ? m->name : "x", m->dtype, m->count, role);
}

// Whether all of s is a matrix behind the other, and so is w, with a row for each point of the loop.
static bool walks_rows(const struct joiner *j, const struct nest_statement *s)
{
    const struct nest_gemm *g = &j->scores->gemm;
    nest_id query = j->loop->axes[j->loop->n_axes - 1];
    int64_t stride = g->n;
    if (!s || s->index.constant || s->guard != NEST_NONE ||
        j->from->axes.at[query].extent != g->m || s->index.count > j->loop->n_axes + 1 ||
        key_of(&s->index) == NEST_NONE)
        return false;
    for (uint32_t i = j->loop->n_axes; i-- > 0;) {
        int64_t extent = j->from->axes.at[j->loop->axes[i]].extent;
        if (extent != 1 && nest_index_factor(&s->index, j->loop->axes[i]) != stride)
            return false;
        stride *= extent;
    }
    return stride == j->from->buffers.at[s->buffer].count;
}

// Every access of s and w is at the place of the point and of one axis of its own.
static bool walks_all(const struct joiner *j)
{
    for (uint32_t i = 0; i < j->from->statements.count; i++) {
        const struct nest_statement *s = &j->from->statements.at[i];
        if ((s->kind == NEST_LOAD || s->kind == NEST_PUT) &&
            (s->buffer == j->s || s->buffer == j->w) && !walks_rows(j, s))
            return false;
    }
    return true;
}

// The kernel, its operands in *memories; NULL when it would be no attention.
static struct nest *write_kernel(struct joiner *j, uint32_t *memories, uint32_t *n_memories)
{
    const struct nest *from = j->from;
    struct arena *arena = j->p->arena;
    uint32_t n = 0, argument = 0;
    char name[256];
    snprintf(name, sizeof name, "%.200s_attention", from->name);
    j->b = nest_builder_make(arena, arena_text(arena, name));
    j->axes = arena_array(arena, nest_id, from->axes.count + 1);
    j->buffers = arena_array(arena, nest_id, from->buffers.count + 1);
    j->values = arena_array(arena, nest_id, from->values.count + 1);
    nest_id in[3];
    for (int i = 0; i < 3; i++) {
        memories[n] = i < 2 ? j->scores->memories[i] : j->result->memories[1];
        in[i] = operand(j, memories[n++], NEST_IN);
    }
    for (nest_id i = 0; i < from->buffers.count; i++) {
        const struct nest_buffer *x = &from->buffers.at[i];
        if (x->role == NEST_LOCAL) {
            j->buffers[i] = nest_local(&j->b, x->name, widened(x->dtype), x->count, x->space);
            continue;
        }
        uint32_t memory = j->rows->memories[argument++];
        if (i == j->s || i == j->w)
            continue;
        if (x->role != NEST_IN)
            return NULL;
        memories[n] = memory;
        j->buffers[i] = operand(j, memories[n++], NEST_IN);
    }
    memories[n] = j->result->memories[2];
    nest_id to = operand(j, memories[n++], NEST_OUT);
    *n_memories = n;
    j->score = nest_local(&j->b, "score", JOT_F32, j->scores->gemm.n, NEST_POINT);
    j->weight =
        nest_local(&j->b, "weight", j->result->gemm.dtype, j->scores->gemm.n, NEST_POINT);
    const struct nest_block *body = &from->blocks.at[0];
    for (uint32_t i = 0; i + 1 < body->statements.count && !j->fails; i++)
        copy_statement(j, &from->statements.at[body->statements.at[i]]);
    nest_id *axes = arena_array(arena, nest_id, j->loop->n_axes);
    for (uint32_t i = 0; i < j->loop->n_axes; i++) {
        const struct nest_axis *axis = &from->axes.at[j->loop->axes[i]];
        axes[i] = j->axes[j->loop->axes[i]] = nest_axis(&j->b, axis->name, axis->extent);
    }
    nest_open(&j->b, NEST_PAR, (int)j->loop->n_axes, axes);
    write_scores(j, in[0], in[1], &access_of(j, j->s)->index);
    copy_block(j, j->loop->body);
    write_result(j, in[2], to, &access_of(j, j->w)->index);
    nest_close(&j->b, 0, NULL);
    struct attention a;
    return !j->fails && attention_find(j->b.nest, &a) ? j->b.nest : NULL;
}

// ---- Steps

static bool is_plain(const struct nest_gemm *g)
{
    return dtype_is_half(g->dtype) && g->activation == NEST_LINEAR && !g->has_bias &&
           !g->has_addend && g->alpha == 1 && !g->transpose_a && g->ldc == g->n;
}

static nest_id buffer_of(const struct joiner *j, uint32_t memory)
{
    uint32_t argument = 0;
    for (nest_id b = 0; b < j->from->buffers.count; b++)
        if (j->from->buffers.at[b].role != NEST_LOCAL &&
            j->rows->memories[argument++] == memory)
            return b;
    return NEST_NONE;
}

static bool join(struct nest_program *p, uint32_t i)
{
    struct nest_step *scores = &p->steps.at[i];
    if (!is_plain(&scores->gemm) || !scores->gemm.transpose_b)
        return false;
    uint32_t rows = schedule_find_reader(p, i, scores->memories[2]);
    if (rows == UINT32_MAX || p->steps.at[rows].kind != NEST_STEP_KERNEL)
        return false;
    struct joiner j = {.p = p, .scores = scores, .rows = &p->steps.at[rows]};
    j.from = p->nests.at[j.rows->nest];
    j.s = buffer_of(&j, scores->memories[2]);
    uint32_t w = UINT32_MAX, argument = 0;
    for (nest_id b = 0; b < j.from->buffers.count; b++) {
        const struct nest_buffer *x = &j.from->buffers.at[b];
        argument += x->role != NEST_LOCAL;
        if (x->role == NEST_OUT) {
            j.w = b;
            w = j.rows->memories[argument - 1];
        }
    }
    uint32_t last = w == UINT32_MAX ? w : schedule_find_reader(p, rows, w);
    if (last == UINT32_MAX || p->steps.at[last].kind != NEST_STEP_GEMM ||
        !schedule_keeps_operands(p, i, last))
        return false;
    struct nest_step *result = &p->steps.at[last];
    const struct nest_block *body = &j.from->blocks.at[0];
    j.result = result;
    j.loop = &j.from->statements.at[body->statements.at[body->statements.count - 1]];
    if (!is_plain(&result->gemm) || result->gemm.transpose_b || result->memories[0] != w ||
        result->memories[1] == w || result->gemm.m != scores->gemm.m ||
        result->gemm.k != scores->gemm.n || j.loop->kind != NEST_PAR ||
        j.loop->n_axes > IR_MAX_RANK || !walks_all(&j))
        return false;
    uint32_t *memories = arena_array(p->arena, uint32_t, j.rows->n_memories + 4), n;
    struct nest *nest = write_kernel(&j, memories, &n);
    if (!nest)
        return false;
    *result = (struct nest_step){.kind = NEST_STEP_KERNEL,
                                 .nest = p->nests.count,
                                 .n_memories = n,
                                 .memories = memories,
                                 .reason = "attention"};
    vec_push(p->arena, &p->nests, nest);
    schedule_remove_step(p, rows);
    schedule_remove_step(p, i);
    return true;
}

void attention_join(struct nest_program *p)
{
    for (uint32_t i = 0; i < p->steps.count;)
        if (p->steps.at[i].kind != NEST_STEP_GEMM || !join(p, i))
            i++;
    schedule_drop_nests(p);
}
