// SPDX-License-Identifier: Apache-2.0
#include "nest_eval_memory.h"

#include <stdio.h>

static const struct nest_buffer *buffer_of(const struct machine_state *m, nest_id b)
{
    return &m->nest->buffers.at[b];
}

struct instance *instance_of(struct machine_state *m, struct lane *l, nest_id buffer)
{
    bool own = l->locals && l->locals[buffer].data;
    return own ? &l->locals[buffer] : &m->shared[buffer];
}

void instance_make(struct machine_state *m, struct instance *i, nest_id buffer)
{
    const struct nest_buffer *b = buffer_of(m, buffer);
    size_t n = (size_t)b->count;
    if (b->role == NEST_LOCAL)
        i->data = arena_allocate(m->arena, n * dtype_get(b->dtype)->bytes + 1);
    if (b->role != NEST_IN)
        i->elements = arena_array(m->arena, struct element, n + 1);
}

void instance_forget(const struct machine_state *m, struct instance *i, nest_id buffer)
{
    memset(i->elements, 0, (size_t)buffer_of(m, buffer)->count * sizeof *i->elements);
}

jot_status check_access(const struct machine_state *m, nest_id buffer, int64_t at)
{
    const struct nest_buffer *b = buffer_of(m, buffer);
    if (at >= 0 && at < b->count)
        return JOT_OK;
    return status_fail(JOT_ERR_INTERNAL, "kernel %s: %s[%lld] is outside its %lld elements",
                       m->nest->name, b->name, (long long)at, (long long)b->count);
}

static void *address(const struct machine_state *m, const struct instance *i, nest_id buffer,
                     int64_t at)
{
    return i->data + (size_t)at * dtype_get(buffer_of(m, buffer)->dtype)->bytes;
}

// Whether what `other` did is not ordered with what is done now.
static bool races(const struct machine_state *m, const struct touch *other)
{
    if (other->who.block != m->who.block || other->is_of_several)
        return (m->who.block || m->is_grid) && other->who.block >= m->first_block;
    return other->who.thread != m->who.thread && other->loop == m->loop;
}

// Whether a thread finds in its own copy, or in that of its block, what `other` has put.
static bool is_at_hand(const struct machine_state *m, enum nest_space space,
                       const struct worker *other)
{
    bool same_block = other->block == m->who.block || other->block == m->point;
    if (other->thread == EVERY_THREAD)
        return same_block || !other->block;
    return same_block && (space == NEST_SHARED || other->thread == m->who.thread);
}

// "thread 3", and of a loop that threads share its axis.
static jot_status fail_between(const struct machine_state *m, nest_id buffer, int64_t at,
                               const char *what, const struct worker *other)
{
    char who[2][64];
    const struct worker *w[2] = {&m->who, other};
    for (int i = 0; i < 2; i++)
        if (w[i]->thread == EVERY_THREAD)
            snprintf(who[i], sizeof who[i], "all threads");
        else if (w[i]->thread == SEVERAL_THREADS)
            snprintf(who[i], sizeof who[i], "several");
        else
            snprintf(who[i], sizeof who[i], "thread %u of block %u", w[i]->thread, w[i]->block);
    const struct nest_statement *s =
        m->shared_loop == NEST_NONE ? NULL : &m->nest->statements.at[m->shared_loop];
    return status_fail(JOT_ERR_INTERNAL, "kernel %s: %s[%lld] is %s: %s, after %s, in %s %s",
                       m->nest->name, buffer_of(m, buffer)->name, (long long)at, what, who[0],
                       who[1], s ? "the loop over" : "no loop",
                       s ? m->nest->axes.at[s->axes[0]].name : "that is shared");
}

// A local of a thread, or of a block, is another one for others.
static bool is_private(const struct machine_state *m, nest_id buffer)
{
    return m->is_mapped && buffer_of(m, buffer)->role == NEST_LOCAL;
}

jot_status touch_read(struct machine_state *m, struct lane *l, nest_id buffer, int64_t at,
                      void **out)
{
    JOT_TRY(check_access(m, buffer, at));
    struct instance *i = instance_of(m, l, buffer);
    *out = address(m, i, buffer, at);
    if (!i->elements || m->is_looking)
        return JOT_OK;
    struct element *e = &i->elements[at];
    const struct nest_buffer *b = buffer_of(m, buffer);
    if (!e->is_written && b->role != NEST_INOUT)
        return status_fail(JOT_ERR_INTERNAL, "kernel %s: %s[%lld] is read and nothing wrote it",
                           m->nest->name, b->name, (long long)at);
    bool is_own = is_private(m, buffer) && b->space != NEST_SHARED;
    if (is_private(m, buffer) && !is_at_hand(m, b->space, &e->writer.who))
        return fail_between(m, buffer, at, "read by a thread that has not put it",
                            &e->writer.who);
    if (i == &m->shared[buffer] && !is_own && e->is_written && races(m, &e->writer))
        return fail_between(m, buffer, at, "read while another point or thread writes it",
                            &e->writer.who);
    // A reader that is not the last one is forgotten, but that there were several.
    struct touch now = {.who = m->who, .loop = m->loop};
    if (e->is_read && races(m, &e->reader)) {
        bool same_block = e->reader.who.block == m->who.block;
        now.is_of_several = e->reader.is_of_several || !same_block;
        now.who.thread = SEVERAL_THREADS;
        if (e->reader.who.block > now.who.block)
            now.who.block = e->reader.who.block;
    }
    e->is_read = true;
    e->reader = now;
    return JOT_OK;
}

jot_status touch_write(struct machine_state *m, struct lane *l, nest_id buffer, int64_t at,
                       void **out)
{
    JOT_TRY(check_access(m, buffer, at));
    struct instance *i = instance_of(m, l, buffer);
    *out = address(m, i, buffer, at);
    struct element *e = &i->elements[at];
    bool is_own = is_private(m, buffer) && buffer_of(m, buffer)->space != NEST_SHARED;
    bool is_common = i == &m->shared[buffer] && !is_own;
    if (is_common && e->is_written && races(m, &e->writer))
        return fail_between(m, buffer, at, "written by two points or threads", &e->writer.who);
    if (is_common && e->is_read && races(m, &e->reader))
        return fail_between(m, buffer, at, "written while another point or thread reads it",
                            &e->reader.who);
    e->is_written = true;
    e->writer = (struct touch){.who = m->who, .loop = m->loop};
    return JOT_OK;
}

// --- accumulations

static void find_accumulating(struct machine_state *m, uint32_t block, nest_id loop,
                              int64_t length)
{
    if (block == NEST_NONE)
        return;
    const struct nest_block *b = &m->nest->blocks.at[block];
    for (uint32_t i = 0; i < b->statements.count; i++) {
        nest_id id = b->statements.at[i];
        const struct nest_statement *s = &m->nest->statements.at[id];
        if (s->kind == NEST_PUT && s->op && s->fold == loop)
            vec_push(m->arena, &m->accumulations,
                     (struct accumulation){
                         .statement = id,
                         .loop = loop,
                         .length = length,
                         .folds = arena_array(m->arena, struct eval_fold *,
                                              m->nest->buffers.at[s->buffer].count + 1),
                     });
        find_accumulating(m, s->body, loop, length);
        find_accumulating(m, s->other, loop, length);
    }
}

void accumulations_open(struct machine_state *m, nest_id loop, int64_t length)
{
    find_accumulating(m, m->nest->statements.at[loop].body, loop, length);
}

struct accumulation *accumulation_find(struct machine_state *m, nest_id statement)
{
    for (uint32_t i = m->accumulations.count; i-- > 0;)
        if (m->accumulations.at[i].statement == statement)
            return &m->accumulations.at[i];
    return NULL;
}

static void advance(struct eval_fold *f, int64_t block)
{
    while (f->n_blocks < block) {
        eval_fold_close_block(f);
        eval_fold_open_block(f);
    }
}

struct eval_number *accumulation_lane(struct machine_state *m, struct accumulation *a,
                                      int64_t at, enum ir_op op, jot_dtype d)
{
    struct eval_fold **f = &a->folds[at];
    if (!*f) {
        *f = arena_new(m->arena, struct eval_fold);
        **f = eval_fold_make(m->arena, op == IR_fma ? IR_reduce_sum : op, d, a->length);
        eval_fold_open_block(*f);
    }
    advance(*f, a->position / (*f)->block);
    bool is_free = m->nest->statements.at[a->statement].order == NEST_FREE;
    return &(*f)->lanes[is_free ? 0 : a->position % (*f)->block % FOLD_LANES];
}

static bool is_data_dependent(const struct nest_statement *s)
{
    return s->index.count && s->index.terms[s->index.count - 1].is_value;
}

static jot_status store_results(struct machine_state *m, struct lane *l, struct accumulation *a)
{
    const struct nest_statement *s = &m->nest->statements.at[a->statement];
    const struct nest_buffer *b = &m->nest->buffers.at[s->buffer];
    int64_t block = fold_block(a->length), blocks = (a->length + block - 1) / block;
    enum ir_op op = s->op == IR_fma ? IR_reduce_sum : (enum ir_op)s->op;
    struct eval_fold empty = eval_fold_make(m->arena, op, b->dtype, 1);
    for (int64_t i = 0; i < b->count; i++) {
        struct eval_fold *f = a->folds[i];
        if (!f && !is_data_dependent(s))
            continue;
        void *to;
        JOT_TRY(touch_write(m, l, s->buffer, i, &to));
        if (f) {
            advance(f, blocks - 1);
            eval_fold_close_block(f);
        }
        eval_store(b->dtype, to, 0, eval_fold_finish(f ? f : &empty));
    }
    return JOT_OK;
}

jot_status accumulations_close(struct machine_state *m, struct lane *l, nest_id loop)
{
    while (m->accumulations.count && vec_last(&m->accumulations).loop == loop) {
        struct accumulation a = vec_last(&m->accumulations);
        m->accumulations.count--;
        JOT_TRY(store_results(m, l, &a));
    }
    return JOT_OK;
}

void multiply_add(struct eval_number *sum, struct eval_number a, struct eval_number b,
                  bool is_complex)
{
    sum->re = FMA(a.re, b.re, sum->re);
    if (!is_complex)
        return;
    sum->re = FMA(NEG(a.im), b.im, sum->re);
    sum->im = FMA(a.re, b.im, sum->im);
    sum->im = FMA(a.im, b.re, sum->im);
}
