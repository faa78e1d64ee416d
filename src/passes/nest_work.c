// SPDX-License-Identifier: Apache-2.0
// What a kernel has to do.
#include "base/fold.h"
#include "passes/cost.h"
#include "passes/nest.h"

int64_t nest_extent(const struct nest *n, const struct nest_statement *s)
{
    int64_t all = 1;
    for (uint32_t i = 0; i < s->n_axes; i++)
        all *= n->axes.at[s->axes[i]].extent;
    return all;
}

nest_id nest_vector_axis(const struct nest *n, const struct nest_statement *loop)
{
    for (uint32_t i = 0; i < loop->n_axes; i++)
        if (n->axes.at[loop->axes[i]].vector)
            return loop->axes[i];
    return NEST_NONE;
}

double nest_work(const struct nest *n, uint32_t block)
{
    double work = 0;
    if (block >= n->blocks.count)
        return 0;
    for (uint32_t i = 0; i < n->blocks.at[block].statements.count; i++) {
        const struct nest_statement *s =
            &n->statements.at[n->blocks.at[block].statements.at[i]];
        double once = s->kind == NEST_OP ? cost_of_op((enum ir_op)s->op, s->dtype) : 1;
        work +=
            (double)nest_extent(n, s) * (once + nest_work(n, s->body) + nest_work(n, s->other));
    }
    return work;
}

bool nest_has_time(const struct nest *n, uint32_t block)
{
    if (block >= n->blocks.count)
        return false;
    const struct nest_block *b = &n->blocks.at[block];
    for (uint32_t i = 0; i < b->statements.count; i++) {
        const struct nest_statement *s = &n->statements.at[b->statements.at[i]];
        if (s->kind == NEST_SEQ || s->kind == NEST_WHILE || nest_has_time(n, s->body) ||
            nest_has_time(n, s->other))
            return true;
    }
    return false;
}

static bool accumulates(const struct nest *n, nest_id fold)
{
    for (uint32_t i = 0; i < n->statements.count; i++)
        if (n->statements.at[i].kind == NEST_PUT && n->statements.at[i].op &&
            n->statements.at[i].fold == fold)
            return true;
    return false;
}

// Plain statements, and short loops of such.
static bool is_leaf(const struct nest *n, const struct nest_statement *s)
{
    const struct nest_block *b = &n->blocks.at[s->body];
    for (uint32_t i = 0; i < b->statements.count; i++) {
        nest_id id = b->statements.at[i];
        const struct nest_statement *t = &n->statements.at[id];
        int64_t most = t->kind == NEST_FOLD  ? FOLD_LANES
                       : t->kind == NEST_MAP ? NEST_LEAF_POINTS
                                             : 0;
        bool is_short =
            most && nest_extent(n, t) <= most && !accumulates(n, id) && is_leaf(n, t);
        if (t->kind > NEST_PUT ? !is_short
                               : s->kind == NEST_MAP && t->kind == NEST_PUT && t->op)
            return false;
    }
    return true;
}

bool nest_fold_is_leaf(const struct nest *n, nest_id fold)
{
    const struct nest_statement *s = &n->statements.at[fold];
    return s->kind == NEST_FOLD && is_leaf(n, s) && !accumulates(n, fold) &&
           nest_extent(n, s) > 0;
}

static void look(const struct nest *n, uint32_t block, double times, nest_id point,
                 const struct nest_statement *inner, struct nest_directions *d)
{
    if (block >= n->blocks.count)
        return;
    const struct nest_block *b = &n->blocks.at[block];
    for (uint32_t i = 0; i < b->statements.count; i++) {
        const struct nest_statement *s = &n->statements.at[b->statements.at[i]];
        if ((s->kind == NEST_LOAD || s->kind == NEST_PUT) && inner &&
            n->buffers.at[s->buffer].role != NEST_LOCAL) {
            int64_t outer = nest_index_factor(&s->index, point);
            if (outer == 1 || outer == -1)
                d->along += times;
            for (uint32_t k = 0; k < inner->n_axes; k++) {
                int64_t factor = nest_index_factor(&s->index, inner->axes[k]);
                if (factor == 1 || factor == -1)
                    d->inside += times;
            }
        }
        bool is_loop = s->kind == NEST_MAP || s->kind == NEST_FOLD || s->kind == NEST_PAR;
        double turns = s->n_axes ? (double)nest_extent(n, s) : 1;
        look(n, s->body, times * turns, point, is_loop ? s : inner, d);
        look(n, s->other, times, point, inner, d);
    }
}

struct nest_directions nest_directions_of(const struct nest *n,
                                          const struct nest_statement *loop)
{
    struct nest_directions d = {0};
    look(n, loop->body, 1, loop->axes[loop->n_axes - 1], NULL, &d);
    return d;
}
