// SPDX-License-Identifier: Apache-2.0
// Writes the kernel of all steps over the same points (points.c).
//
// The bodies of the steps follow each other in one loop over the points.  What only they know
// becomes local to a point, its index without the point.  Sums over points, a fold in each column
// of a result, become puts that accumulate; what is made of them a kernel afterwards.
#include "schedule/kernels/points.h"

#include <stdio.h>
#include <string.h>

struct writer {
    struct points *p;
    struct nest_builder b;
    nest_id points;     // axis
    nest_id loop;       // over it
    nest_id *buffer_of; // by memory
    VEC(uint32_t) memories;
    VEC(struct nest_combine) combines; // of the loop
    struct points_copy *copies;        // by step
    uint32_t *first_combine;           // by step
    uint32_t *sums;                    // by step: COLUMNS: the first memory of its sums
};

// ---- Memories and buffers

static nest_id buffer_of(struct writer *w, uint32_t memory, bool is_written)
{
    const struct nest_memory *m = &w->p->program->memories.at[memory];
    if (w->buffer_of[memory] == NEST_NONE) {
        if (w->p->is_local[memory]) {
            w->buffer_of[memory] =
                nest_local(&w->b, m->name, m->dtype, points_width(w->p, memory));
        } else {
            w->buffer_of[memory] = nest_buffer(&w->b, m->name, m->dtype, m->count,
                                               is_written ? NEST_OUT : NEST_IN);
            vec_push(w->p->scratch, &w->memories, memory);
        }
    }
    return w->buffer_of[memory];
}

static uint32_t add_sum(struct writer *w, jot_dtype d, int64_t count)
{
    struct nest_program *m = w->p->program;
    vec_push(m->arena, &m->memories,
             (struct nest_memory){
                 .kind = NEST_TEMPORARY, .dtype = d, .count = count, .name = "sum"});
    return m->memories.count - 1;
}

static bool has_access(const struct nest *n, uint32_t block, nest_id buffer)
{
    nest_for_each (s, n, block) {
        if (!nest_is_scalar(s) && s->kind != NEST_PUT)
            return false;
        if ((s->kind == NEST_LOAD || s->kind == NEST_PUT) && s->buffer == buffer)
            return true;
    }
    return false;
}

// Whether the sums of columns, or what stands in front of them, read or write the buffer.
static bool is_of_columns(const struct points_step *t, nest_id buffer)
{
    const struct nest *n = t->nest;
    return has_access(n, 0, buffer) || has_access(n, n->statements.at[t->loop].body, buffer) ||
           has_access(n, n->statements.at[t->fold].body, buffer);
}

static void open_copy(struct writer *w, uint32_t step)
{
    const struct points_step *t = &w->p->steps[step];
    struct points_copy *c = &w->copies[step];
    *c = points_copier(w->p, &w->b, t->nest, w->points);
    uint32_t argument = 0;
    for (nest_id i = 0; i < t->nest->buffers.count; i++) {
        const struct nest_buffer *x = &t->nest->buffers.at[i];
        if (x->role == NEST_LOCAL) {
            c->buffers[i] = nest_local(&w->b, x->name, x->dtype, x->count);
            continue;
        }
        uint32_t memory = w->p->program->steps.at[step].memories[argument++];
        // The others are for the kernel afterwards.
        if (t->kind == POINTS_COLUMNS && !is_of_columns(t, i))
            continue;
        c->buffers[i] = buffer_of(w, memory, x->role == NEST_OUT);
        c->is_local[i] = w->p->is_local[memory];
    }
}

// ---- Steps

static struct nest_index form(struct writer *w, int n, const struct nest_term *terms)
{
    return nest_index_make(w->b.nest->arena, 0, n, terms);
}

// A factor of a product as a local: copied when it is none.
static nest_id factor_of(struct writer *w, uint32_t memory)
{
    const struct nest_memory *m = &w->p->program->memories.at[memory];
    nest_id buffer = buffer_of(w, memory, false);
    if (w->p->is_local[memory])
        return buffer;
    int64_t width = points_width(w->p, memory);
    nest_id near = nest_local(&w->b, m->name, m->dtype, width);
    nest_id j = nest_axis(&w->b, "j", width);
    nest_open(&w->b, NEST_MAP, 1, &j);
    nest_id v = nest_load(
        &w->b, buffer,
        form(w, 2, (struct nest_term[]){{width, w->points, false}, {1, j, false}}), NEST_NONE);
    nest_put(&w->b, near, form(w, 1, (struct nest_term[]){{1, j, false}}), v, NEST_NONE);
    nest_close(&w->b, 0, NULL);
    return near;
}

static void write_layer(struct writer *w, const struct nest_step *s)
{
    const struct nest_gemm *g = &s->gemm;
    uint32_t result = s->memories[2];
    nest_id a = factor_of(w, s->memories[0]), b = buffer_of(w, s->memories[1], false);
    nest_id c = buffer_of(w, result, true);
    nest_id j = nest_axis(&w->b, "j", g->n), k = nest_axis(&w->b, "k", g->k);
    struct nest_term matrix[] = {{g->transpose_b ? 1 : g->ldb, k, false},
                                 {g->transpose_b ? g->ldb : 1, j, false}};
    nest_contract(&w->b, (nest_id[]){c, a, b},
                  (struct nest_index[]){form(w, 1, (struct nest_term[]){{1, j, false}}),
                                        form(w, 1, (struct nest_term[]){{1, k, false}}),
                                        form(w, 2, matrix)},
                  2, (nest_id[]){j, k});
}

static void write_gradient(struct writer *w, const struct nest_step *s)
{
    const struct nest_gemm *g = &s->gemm;
    nest_id a = factor_of(w, s->memories[0]), d = factor_of(w, s->memories[1]);
    nest_id i = nest_axis(&w->b, "i", g->m), j = nest_axis(&w->b, "j", g->n);
    nest_open(&w->b, NEST_MAP, 2, (nest_id[]){i, j});
    struct nest_combine sum = {
        .op = IR_fma, .n = 2, .dtype = g->dtype, .order = nest_fold_order(IR_fma, g->dtype)};
    sum.value[0] =
        nest_load(&w->b, a, form(w, 1, (struct nest_term[]){{1, i, false}}), NEST_NONE);
    sum.value[1] =
        nest_load(&w->b, d, form(w, 1, (struct nest_term[]){{1, j, false}}), NEST_NONE);
    nest_put_combine(&w->b, buffer_of(w, s->memories[2], true),
                     form(w, 2, (struct nest_term[]){{g->n, i, false}, {1, j, false}}), w->loop,
                     &sum);
    nest_close(&w->b, 0, NULL);
}

// par n, j { ... }: the points are the loop around, what is left of the axes a map.
static void write_map(struct writer *w, uint32_t step)
{
    const struct points_step *t = &w->p->steps[step];
    struct points_copy *c = &w->copies[step];
    const struct nest_statement *s = &t->nest->statements.at[t->loop];
    nest_id *axes = arena_array(w->p->scratch, nest_id, s->n_axes + 1);
    int n = 0;
    points_set_axis(c, t->axis, w->points);
    if (t->width > 1) {
        axes[n++] = nest_axis(&w->b, "j", t->width);
        c->axes[0][t->axis].factor = t->width;
        c->axes[1][t->axis] = (struct points_term){1, axes[0]};
    }
    for (uint32_t i = 1; i < s->n_axes; i++)
        axes[n++] = points_copy_axis(c, s->axes[i]);
    if (n)
        nest_open(&w->b, NEST_MAP, n, axes);
    points_copy_block(c, s->body);
    if (n)
        nest_close(&w->b, 0, NULL);
}

static void write_fold(struct writer *w, uint32_t step)
{
    const struct points_step *t = &w->p->steps[step];
    struct points_copy *c = &w->copies[step];
    const struct nest_statement *s = &t->nest->statements.at[t->loop];
    points_set_axis(c, t->axis, w->points);
    c->folds[t->loop] = w->loop;
    points_copy_block(c, s->body);
    w->first_combine[step] = w->combines.count;
    for (uint32_t i = 0; i < s->n_combines; i++)
        vec_push(w->p->scratch, &w->combines, points_combine(c, &s->combines[i]));
}

// The number in row-major order of the axes of a loop.
static struct nest_index linear(const struct points_copy *c, const struct nest_statement *s)
{
    struct nest_term *terms = arena_array(c->p->scratch, struct nest_term, s->n_axes + 1);
    int64_t step = 1;
    for (uint32_t i = s->n_axes; i-- > 0;) {
        terms[i] = (struct nest_term){step, c->axes[0][s->axes[i]].axis, false};
        step *= c->from->axes.at[s->axes[i]].extent;
    }
    return nest_index_make(c->b->nest->arena, 0, (int)s->n_axes, terms);
}

static nest_id *open_columns(struct points_copy *c, const struct nest_statement *s,
                             enum nest_kind kind)
{
    nest_id *axes = arena_array(c->p->scratch, nest_id, s->n_axes + 1);
    for (uint32_t i = 0; i < s->n_axes; i++)
        axes[i] = points_copy_axis(c, s->axes[i]);
    nest_open(c->b, kind, (int)s->n_axes, axes);
    return axes;
}

// par i { fold n { ... yield sum %v } -> %s ... } as map i { ... put t[i] sum= %v in @n }
static void write_columns(struct writer *w, uint32_t step)
{
    const struct points_step *t = &w->p->steps[step];
    struct points_copy *c = &w->copies[step];
    const struct nest_statement *s = &t->nest->statements.at[t->loop];
    const struct nest_statement *f = &t->nest->statements.at[t->fold];
    points_set_axis(c, t->axis, w->points);
    if (points_is_products(w->p, t)) {
        nest_id *results = arena_array(w->p->scratch, nest_id, f->n_combines + 1);
        for (uint32_t i = 0; i < f->n_combines; i++)
            results[i] = buffer_of(w, w->sums[step] + i, true);
        points_write_products(c, t, results, w->loop);
        return;
    }
    open_columns(c, s, NEST_MAP);
    points_copy_range(c, s->body, 0, points_fold_at(t));
    points_copy_block(c, f->body);
    for (uint32_t i = 0; i < f->n_combines; i++) {
        struct nest_combine x = points_combine(c, &f->combines[i]);
        uint32_t sum = w->sums[step] + i;
        nest_put_combine(&w->b, buffer_of(w, sum, true), linear(c, s), w->loop, &x);
    }
    nest_close(&w->b, 0, NULL);
}

// The memories of the sums of columns, next to each other.
static void add_sums(struct writer *w)
{
    for (uint32_t i = 0; i < w->p->program->steps.count; i++) {
        const struct points_step *t = &w->p->steps[i];
        if (t->side != POINTS_IN || t->kind != POINTS_COLUMNS)
            continue;
        const struct nest_statement *s = &t->nest->statements.at[t->loop];
        const struct nest_statement *f = &t->nest->statements.at[t->fold];
        int64_t count = 1;
        for (uint32_t k = 0; k < s->n_axes; k++)
            count *= t->nest->axes.at[s->axes[k]].extent;
        w->sums[i] = w->p->program->memories.count;
        for (uint32_t k = 0; k < f->n_combines; k++)
            add_sum(w, f->combines[k].dtype, count);
    }
}

// ---- Kernels

static uint32_t *copy_memories(struct nest_program *m, uint32_t n, const uint32_t *from)
{
    return arena_copy(m->arena, from, n * sizeof *from);
}

// Of the first step that has one.
static const char *place_of(const struct points *p)
{
    for (uint32_t i = 0; i < p->program->steps.count; i++)
        if (p->steps[i].side == POINTS_IN && p->program->steps.at[i].place)
            return p->program->steps.at[i].place;
    return NULL;
}

static struct nest_step kernel_step(struct writer *w, struct nest *nest, uint32_t n,
                                    const uint32_t *memories, const char *reason)
{
    struct nest_program *m = w->p->program;
    vec_push(m->arena, &m->nests, nest);
    return (struct nest_step){.kind = NEST_STEP_KERNEL,
                              .nest = m->nests.count - 1,
                              .n_memories = n,
                              .memories = copy_memories(m, n, memories),
                              .place = place_of(w->p),
                              .reason = reason};
}

// The kernel that takes the sums of columns from memory and goes on.
static struct nest_step finish_columns(struct writer *w, uint32_t step)
{
    const struct points_step *t = &w->p->steps[step];
    const struct nest *from = t->nest;
    const struct nest_statement *s = &from->statements.at[t->loop];
    const struct nest_statement *f = &from->statements.at[t->fold];
    const struct nest_block *inner = &from->blocks.at[s->body];
    struct nest_program *m = w->p->program;
    struct nest_builder b = nest_builder_make(m->arena, from->name);
    struct points_copy c = points_copier(w->p, &b, from, NEST_NONE);
    bool *used = arena_array(w->p->scratch, bool, from->buffers.count + 1);
    uint32_t at = points_fold_at(t);
    VEC(uint32_t) memories = {0};
    for (uint32_t i = 0; i < t->at + inner->statements.count; i++) {
        nest_id id =
            i < t->at ? from->blocks.at[0].statements.at[i] : inner->statements.at[i - t->at];
        const struct nest_statement *x = &from->statements.at[id];
        if (x->kind == NEST_PUT || x->kind == NEST_LOAD)
            used[x->buffer] = true;
    }
    uint32_t argument = 0;
    for (nest_id i = 0; i < from->buffers.count; i++) {
        const struct nest_buffer *x = &from->buffers.at[i];
        if (x->role == NEST_LOCAL)
            continue;
        uint32_t memory = m->steps.at[step].memories[argument++];
        if (!used[i])
            continue;
        c.buffers[i] = nest_buffer(&b, x->name, x->dtype, x->count, x->role);
        vec_push(w->p->scratch, &memories, memory);
    }
    points_copy_range(&c, 0, 0, t->at);
    open_columns(&c, s, NEST_PAR);
    points_copy_range(&c, s->body, 0, at);
    for (uint32_t i = 0; i < f->n_combines; i++) {
        const struct nest_memory *sum = &m->memories.at[w->sums[step] + i];
        nest_id from_sum = nest_buffer(&b, sum->name, sum->dtype, sum->count, NEST_IN);
        vec_push(w->p->scratch, &memories, w->sums[step] + i);
        c.values[f->result + i] = nest_load(&b, from_sum, linear(&c, s), NEST_NONE);
    }
    points_copy_range(&c, s->body, at + 1, inner->statements.count);
    nest_close(&b, 0, NULL);
    return kernel_step(w, b.nest, memories.count, memories.at, "goes on with sums");
}

// What others see of what the step makes.
static void write_exports(struct writer *w, uint32_t step)
{
    const struct nest_step *s = &w->p->program->steps.at[step];
    for (uint32_t i = 0; i < s->n_memories; i++) {
        uint32_t memory = s->memories[i];
        if (!plan_is_written(w->p->program, &w->p->program->steps.at[step], i) ||
            !w->p->is_exported[memory])
            continue;
        const struct nest_memory *m = &w->p->program->memories.at[memory];
        nest_id to = nest_buffer(&w->b, m->name, m->dtype, m->count, NEST_OUT);
        vec_push(w->p->scratch, &w->memories, memory);
        int64_t width = points_width(w->p, memory);
        nest_id j = nest_axis(&w->b, "j", width);
        nest_open(&w->b, NEST_MAP, 1, &j);
        nest_id v = nest_load(&w->b, w->buffer_of[memory],
                              form(w, 1, (struct nest_term[]){{1, j, false}}), NEST_NONE);
        nest_put(&w->b, to,
                 form(w, 2, (struct nest_term[]){{width, w->points, false}, {1, j, false}}), v,
                 NEST_NONE);
        nest_close(&w->b, 0, NULL);
    }
}

static void write_step(struct writer *w, uint32_t step)
{
    switch (w->p->steps[step].kind) {
    case POINTS_LAYER:
        write_layer(w, &w->p->program->steps.at[step]);
        break;
    case POINTS_GRADIENT:
        write_gradient(w, &w->p->program->steps.at[step]);
        break;
    case POINTS_MAP:
        write_map(w, step);
        break;
    case POINTS_FOLD:
        write_fold(w, step);
        break;
    default:
        write_columns(w, step);
    }
}

static bool has_sums(const struct points *p)
{
    for (uint32_t i = 0; i < p->program->steps.count; i++)
        if (p->steps[i].side == POINTS_IN && p->steps[i].kind != POINTS_MAP &&
            p->steps[i].kind != POINTS_LAYER)
            return true;
    return false;
}

static struct nest_step write_kernel(struct writer *w)
{
    struct points *p = w->p;
    uint32_t n = p->program->steps.count;
    char name[32];
    snprintf(name, sizeof name, "points_%u", p->program->nests.count);
    w->b = nest_builder_make(p->program->arena, name);
    w->points = nest_axis(&w->b, "n", p->n);
    for (uint32_t i = 0; i < n; i++) {
        if (p->steps[i].side != POINTS_IN || !p->steps[i].nest)
            continue;
        open_copy(w, i);
        points_copy_range(&w->copies[i], 0, 0, p->steps[i].at);
    }
    w->loop = nest_open(&w->b, has_sums(p) ? NEST_FOLD : NEST_PAR, 1, &w->points);
    for (uint32_t i = 0; i < n; i++)
        if (p->steps[i].side == POINTS_IN) {
            write_step(w, i);
            write_exports(w, i);
        }
    nest_id result = nest_close(&w->b, (int)w->combines.count, w->combines.at);
    for (uint32_t i = 0; i < n; i++) {
        const struct points_step *t = &p->steps[i];
        if (t->side != POINTS_IN || t->kind != POINTS_FOLD)
            continue;
        const struct nest_statement *s = &t->nest->statements.at[t->loop];
        for (uint32_t k = 0; k < s->n_results; k++)
            w->copies[i].values[s->result + k] = result + w->first_combine[i] + k;
        points_copy_range(&w->copies[i], 0, t->at + 1, t->nest->blocks.at[0].statements.count);
    }
    return kernel_step(w, w->b.nest, w->memories.count, w->memories.at,
                       "layers and sums of the same points");
}

// ---- The program

void points_write(struct points *p)
{
    struct nest_program *m = p->program;
    uint32_t n = m->steps.count;
    struct writer w = {.p = p};
    w.copies = arena_array(p->scratch, struct points_copy, n + 1);
    w.first_combine = arena_array(p->scratch, uint32_t, n + 1);
    w.sums = arena_array(p->scratch, uint32_t, n + 1);
    uint32_t before = m->memories.count;
    add_sums(&w);
    bool *is_local = arena_array(p->scratch, bool, m->memories.count + 1);
    memcpy(is_local, p->is_local, before * sizeof *is_local);
    p->is_local = is_local;
    w.buffer_of = arena_array(p->scratch, nest_id, m->memories.count + 1);
    memset(w.buffer_of, 0xff, m->memories.count * sizeof *w.buffer_of);

    VEC(struct nest_step) steps = {0};
    for (uint32_t i = 0; i < n; i++)
        if (p->steps[i].side == POINTS_BEFORE)
            vec_push(m->arena, &steps, m->steps.at[i]);
    vec_push(m->arena, &steps, write_kernel(&w));
    for (uint32_t i = 0; i < n; i++)
        if (p->steps[i].side == POINTS_IN && p->steps[i].kind == POINTS_COLUMNS)
            vec_push(m->arena, &steps, finish_columns(&w, i));
    for (uint32_t i = 0; i < n; i++)
        if (p->steps[i].side == POINTS_AFTER)
            vec_push(m->arena, &steps, m->steps.at[i]);
    m->steps.count = 0;
    for (uint32_t i = 0; i < steps.count; i++)
        vec_push(m->arena, &m->steps, steps.at[i]);
}
