// SPDX-License-Identifier: Apache-2.0
// Who shares a loop, and what each combines.
//
// Threads that are together go through the turns of a loop that they share one thread after the other, the last one
// first, so that what they may not know of one another is not there by chance.
#include "nest_eval.h"
#include "nest_eval_memory.h"

#include <stdlib.h>

static const struct nest_statement *statement(const struct machine_state *m, nest_id id)
{
    return &m->nest->statements.at[id];
}

// How threads have a row of elements: a team has a block of the fold, each of its threads some neighbours of each window.
struct row {
    int64_t length, block, blocks;
    unsigned window, lanes, team, teams;
};

static struct row row_of(const struct machine_state *m, const struct nest_statement *s,
                         unsigned lanes)
{
    unsigned group = m->nest->threads[NEST_GROUP_THREADS];
    struct row r = {.length = nest_extent(m->nest, s), .lanes = lanes};
    r.block = fold_block(r.length);
    r.blocks = (r.length + r.block - 1) / r.block;
    r.window = fold_power_of_two(r.length, FOLD_LANES);
    r.team = group < 32 ? group : 32;
    while (r.team > 1 && r.team * lanes > r.window)
        r.team /= 2;
    r.team = r.team ? r.team : 1;
    r.teams = group > r.team ? group / r.team : 1;
    return r;
}

static unsigned thread_of(const struct row *r, int64_t position)
{
    int64_t block = position / r->block, within = position % r->block % r->window;
    return (unsigned)(block % r->teams * r->team + within / r->lanes % r->team);
}

static struct worker worker_of(const struct machine_state *m, const struct nest_statement *s,
                               unsigned width, int64_t number, int64_t position)
{
    struct row r = row_of(m, s, width);
    struct worker who = {m->who.block, 0};
    bool is_fold = s->kind == NEST_FOLD, is_of_terms = s->terms != NEST_OWN;
    if (is_fold && !is_of_terms)
        who.thread = thread_of(&r, position);
    else if (is_fold)
        who.thread = (unsigned)(number % m->nest->threads[NEST_GROUP_THREADS]);
    else if (m->team > 1)
        who.thread =
            s->level == NEST_IN_ROW ? thread_of(&r, position) : (unsigned)(number % m->team);
    if (!m->team)
        who.block = m->last_block + 1 + (uint32_t)(is_fold ? position / r.block : position);
    return m->team == 1 ? m->who : who;
}

static int later_worker_first(const void *a, const void *b)
{
    const struct turn *x = a, *y = b;
    if (x->who.block != y->who.block)
        return x->who.block < y->who.block ? 1 : -1;
    if (x->who.thread != y->who.thread)
        return x->who.thread < y->who.thread ? 1 : -1;
    return (x->number > y->number) - (x->number < y->number);
}

// Points of the outermost par are blocks' of their own, and so are those that groups or the grid have.
static bool is_of_points(const struct machine_state *m, const struct nest_statement *s)
{
    return m->is_mapped ? s->level == NEST_GROUP || s->level == NEST_GRID
                        : s->kind == NEST_PAR && !m->who.block;
}

struct turns turns_open(struct machine_state *m, nest_id loop, unsigned width)
{
    const struct nest_statement *s = statement(m, loop);
    nest_id axis = nest_vector_axis(m->nest, s);
    int64_t all = nest_extent(m->nest, s);
    struct turns t = {.loop = m->shared_loop,
                      .width = width,
                      .along = axis == NEST_NONE ? 1 : m->nest->axes.at[axis].extent,
                      .before = m->who,
                      .team = m->team,
                      .point = m->point,
                      .is_of_points = is_of_points(m, s),
                      .is_shared = m->is_mapped && nest_is_of_threads(s)};
    t.each = (t.along + width - 1) / width;
    t.count = all ? all / t.along * t.each : 0;
    if (t.is_of_points && !m->is_mapped)
        m->first_block = m->last_block + 1;
    t.first_block = m->last_block + 1;
    if (t.is_of_points) {
        m->team = s->level == NEST_GROUP ? m->nest->threads[NEST_GROUP_THREADS] : m->team;
        m->team = s->level == NEST_GROUP && !m->team ? 1 : m->team;
        m->last_block += (uint32_t)(t.count * width);
    }
    if (!t.is_shared)
        return t;
    t.at = malloc((size_t)(t.count + 1) * sizeof *t.at);
    for (int64_t i = 0; i < t.count; i++) {
        struct turn *x = &t.at[i];
        *x = (struct turn){.other = i / t.each, .first = i % t.each * width, .number = i};
        x->who = worker_of(m, s, width, i, x->other * t.along + x->first);
    }
    if (m->team != 1)
        qsort(t.at, (size_t)t.count, sizeof *t.at, later_worker_first);
    if (!m->team)
        m->last_block += (uint32_t)all;
    m->team = 1;
    m->loop++;
    m->shared_loop = loop;
    return t;
}

struct turn turns_at(const struct turns *t, int64_t i)
{
    struct turn x = {.other = i / t->each, .first = i % t->each * t->width, .number = i};
    if (t->is_shared)
        return t->at[i];
    x.who = t->before;
    if (t->is_of_points)
        x.who.block = t->first_block + (uint32_t)(i * t->width);
    return x;
}

void turn_begin(struct machine_state *m, const struct turns *t, const struct turn *x,
                uint32_t lane)
{
    m->who = x->who;
    if (!t->is_of_points)
        return;
    m->who.block += lane;
    m->who.thread = m->team == 1 ? 0 : EVERY_THREAD;
    if (!m->is_mapped)
        m->who.thread = 0;
    m->point = m->who.block;
}

void turns_close(struct machine_state *m, struct turns *t)
{
    free(t->at);
    m->who = t->before;
    m->team = t->team;
    m->point = t->point;
    m->shared_loop = t->loop;
    m->loop += t->is_shared;
}

// --- combiners

static bool is_arg(uint16_t op) { return nest_combine_results(op) == 2; }

void combine_number(struct eval_number *to, enum ir_op op, jot_dtype d, struct eval_number x)
{
    struct machine machine = {.dtype = d};
    *to = eval_scalar(&machine, op, *to, x, x);
}

static jot_dtype dtype_of(const struct machine_state *m, const struct nest_combine *c)
{
    return m->nest->values.at[c->value[0]].dtype;
}

// A fold is never inside itself, so its combiners are made once.
struct running *fold_open(struct machine_state *m, nest_id fold, int64_t n)
{
    const struct nest_statement *s = statement(m, fold);
    struct running *all = m->running[fold];
    int64_t block = fold_block(n), blocks = (n + block - 1) / block;
    if (!all)
        all = m->running[fold] = arena_array(m->arena, struct running, s->n_combines + 1);
    for (uint32_t k = 0; k < s->n_combines; k++) {
        const struct nest_combine *c = &s->combines[k];
        struct running *r = &all[k];
        enum ir_op op = c->op == IR_fma ? IR_reduce_sum : (enum ir_op)c->op;
        r->position = r->position_of_all = -1;
        if (is_arg(c->op))
            continue;
        if (!r->fold.block)
            r->fold = eval_fold_make(m->arena, op, dtype_of(m, c), n);
        r->best = r->all = r->fold.identity;
        if (c->order != NEST_SUM64)
            continue;
        int64_t count = blocks * r->fold.n_lanes;
        if (!r->lanes)
            r->lanes = arena_array(m->arena, struct eval_number, count + 1);
        for (int64_t i = 0; i < count; i++)
            r->lanes[i] = r->fold.identity;
    }
    return all;
}

// Whether x comes before `best` at `before`, -1 for none: of equal ones the first does.
static bool is_better(const struct nest_combine *c, jot_dtype d, struct eval_number x,
                      int64_t at, struct eval_number best, int64_t before)
{
    struct machine machine = {.dtype = d};
    enum ir_op op = (enum ir_op)c->op;
    if (before < 0 || eval_scalar(&machine, op, x, best, best).re.bits)
        return true;
    return at < before && !eval_scalar(&machine, op, best, x, x).re.bits;
}

void fold_take(struct machine_state *m, struct lane *l, nest_id fold, int64_t position)
{
    const struct nest_statement *s = statement(m, fold);
    for (uint32_t k = 0; k < s->n_combines; k++) {
        const struct nest_combine *c = &s->combines[k];
        struct running *r = &m->running[fold][k];
        jot_dtype d = dtype_of(m, c);
        struct eval_number x = wide_value(m, l, c->value[0]);
        if (is_arg(c->op)) {
            if (is_better(c, d, x, position, r->best, r->position)) {
                r->best = x;
                r->position = position;
            }
            continue;
        }
        int64_t block = position / r->fold.block,
                within = position % r->fold.block % FOLD_LANES;
        struct eval_number *to =
            c->order == NEST_SUM64 ? &r->lanes[block * r->fold.n_lanes + within] : &r->best;
        if (c->op == IR_fma)
            multiply_add(to, x, wide_value(m, l, c->value[1]), dtype_is_complex(d));
        else
            combine_number(to, (enum ir_op)c->op, d, x);
    }
}

void fold_leave(struct machine_state *m, nest_id fold)
{
    const struct nest_statement *s = statement(m, fold);
    for (uint32_t k = 0; k < s->n_combines; k++) {
        const struct nest_combine *c = &s->combines[k];
        struct running *r = &m->running[fold][k];
        jot_dtype d = dtype_of(m, c);
        if (is_arg(c->op)) {
            if (r->position >= 0 &&
                is_better(c, d, r->best, r->position, r->all, r->position_of_all)) {
                r->all = r->best;
                r->position_of_all = r->position;
            }
            r->position = -1;
        } else {
            combine_number(&r->all, r->fold.op, d, r->best);
            r->best = r->fold.identity;
        }
    }
}

void fold_close(struct machine_state *m, struct lane *l, nest_id fold)
{
    const struct nest_statement *s = statement(m, fold);
    int64_t n = nest_extent(m->nest, s);
    nest_id result = s->result;
    for (uint32_t k = 0; k < s->n_combines; k++) {
        struct running *r = &m->running[fold][k];
        struct eval_fold *f = &r->fold;
        for (int64_t b = 0; r->lanes && b * f->block < n; b++) {
            eval_fold_open_block(f);
            memcpy(f->lanes, r->lanes + b * f->n_lanes, (size_t)f->n_lanes * sizeof *f->lanes);
            eval_fold_close_block(f);
        }
        set_value(m, l, result++, r->lanes ? eval_fold_finish(f) : r->all);
        if (is_arg(s->combines[k].op))
            set_integer(m, l, result++, r->position_of_all);
    }
}

// ---

struct nest *nest_without_levels(struct arena *arena, const struct nest *n)
{
    struct nest *plain = nest_copy(arena, n);
    bool is_shared = false;
    for (uint32_t i = 0; i < n->statements.count; i++) {
        struct nest_statement *s = &plain->statements.at[i];
        bool is_running = s->kind == NEST_SCAN && s->level == NEST_THREAD;
        is_shared |= is_running;
        s->level = is_running ? NEST_THREAD : NEST_NO_LEVEL;
        s->turns = s->at_once = 0;
        s->terms = NEST_OWN;
    }
    for (uint32_t i = 0; i < n->axes.count; i++) {
        struct nest_axis *a = &plain->axes.at[i];
        a->vector = a->tile = a->rows = a->segment = a->early = 0;
    }
    for (uint32_t i = 0; i < n->buffers.count; i++)
        plain->buffers.at[i].space = NEST_OWN;
    for (int i = 0; i < NEST_THREADS; i++)
        plain->threads[i] = 0;
    plain->threads[NEST_BLOCK_THREADS] = is_shared;
    plain->threads[NEST_GROUP_THREADS] = plain->threads[NEST_BLOCKS] = is_shared;
    return plain;
}
