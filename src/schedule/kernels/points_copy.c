// SPDX-License-Identifier: Apache-2.0
// Copies statements of one kernel into another, under other axes, buffers and values.
#include "schedule/kernels/points.h"

// ---- Copying statements

static struct nest_index moved(struct points_copy *c, nest_id buffer,
                               const struct nest_index *x)
{
    struct arena *arena = c->b->nest->arena;
    struct nest_term *terms = arena_array(arena, struct nest_term, 2 * x->count + 1);
    bool local = buffer != NEST_NONE && c->is_local[buffer];
    int n = 0;
    for (uint32_t i = 0; i < x->count; i++) {
        const struct nest_term *t = &x->terms[i];
        if (t->is_value) {
            terms[n++] = (struct nest_term){t->factor, c->values[t->id], true};
            continue;
        }
        for (int k = 0; k < 2; k++) {
            struct points_term to = c->axes[k][t->id];
            if (to.axis != NEST_NONE && !(local && to.axis == c->points))
                terms[n++] = (struct nest_term){t->factor * to.factor, to.axis, false};
        }
    }
    return nest_index_make(arena, x->constant, n, terms);
}

static nest_id value_of(const struct points_copy *c, nest_id v)
{
    return v == NEST_NONE ? NEST_NONE : c->values[v];
}

struct nest_combine points_combine(const struct points_copy *c, const struct nest_combine *x)
{
    struct nest_combine y = *x;
    for (uint32_t k = 0; k < x->n; k++)
        y.value[k] = c->values[x->value[k]];
    return y;
}

void points_set_axis(struct points_copy *c, nest_id from, nest_id to)
{
    c->axes[0][from] = (struct points_term){1, to};
    c->axes[1][from] = (struct points_term){0, NEST_NONE};
}

nest_id points_copy_axis(struct points_copy *c, nest_id from)
{
    const struct nest_axis *a = &c->from->axes.at[from];
    nest_id to = nest_axis(c->b, a->name, a->extent);
    points_set_axis(c, from, to);
    return to;
}

static const nest_id *copy_axes(struct points_copy *c, const struct nest_statement *s)
{
    nest_id *axes = arena_array(c->b->nest->arena, nest_id, s->n_axes + 1);
    for (uint32_t i = 0; i < s->n_axes; i++)
        axes[i] = points_copy_axis(c, s->axes[i]);
    return axes;
}

static const nest_id *values_of(const struct points_copy *c, const struct nest_statement *s)
{
    nest_id *values = arena_array(c->b->nest->arena, nest_id, s->n_in + 1);
    for (uint32_t i = 0; i < s->n_in; i++)
        values[i] = c->values[s->in[i]];
    return values;
}

static void copy_body(struct points_copy *c, const struct nest_statement *s)
{
    struct nest_combine *combines =
        arena_array(c->b->nest->arena, struct nest_combine, s->n_combines + 1);
    points_copy_block(c, s->body);
    for (uint32_t i = 0; i < s->n_combines; i++)
        combines[i] = points_combine(c, &s->combines[i]);
    nest_close(c->b, (int)s->n_combines, combines);
}

void points_copy_statement(struct points_copy *c, nest_id id)
{
    const struct nest_statement *s = &c->from->statements.at[id];
    struct nest_statement to = *s;
    c->b->where = s->where;
    to.axes = copy_axes(c, s);
    to.in = values_of(c, s);
    to.index = moved(c, s->buffer, &s->index);
    to.guard = value_of(c, s->guard);
    to.buffer = s->buffer == NEST_NONE ? NEST_NONE : c->buffers[s->buffer];
    to.fold = s->fold == NEST_NONE ? NEST_NONE : c->folds[s->fold];
    nest_id made = c->folds[id] = nest_append(c->b, to);
    if (s->body != NEST_NONE)
        copy_body(c, s);
    for (uint32_t i = 0; i < s->n_results; i++)
        c->values[s->result + i] = c->b->nest->statements.at[made].result + i;
}

void points_copy_range(struct points_copy *c, uint32_t block, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++)
        points_copy_statement(c, c->from->blocks.at[block].statements.at[i]);
}

void points_copy_block(struct points_copy *c, uint32_t block)
{
    points_copy_range(c, block, 0, c->from->blocks.at[block].statements.count);
}

struct points_copy points_copier(struct points *p, struct nest_builder *b,
                                 const struct nest *from, nest_id points)
{
    struct arena *a = p->scratch;
    struct points_copy c = {.p = p, .b = b, .from = from, .points = points};
    c.buffers = arena_array(a, nest_id, from->buffers.count + 1);
    c.values = arena_array(a, nest_id, from->values.count + 1);
    c.folds = arena_array(a, nest_id, from->statements.count + 1);
    c.is_local = arena_array(a, bool, from->buffers.count + 1);
    for (int k = 0; k < 2; k++)
        c.axes[k] = arena_array(a, struct points_term, from->axes.count + 1);
    return c;
}
