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

static void copy_loop(struct points_copy *c, nest_id id, const struct nest_statement *s)
{
    struct arena *arena = c->b->nest->arena;
    nest_id *axes = arena_array(arena, nest_id, s->n_axes + 1);
    for (uint32_t i = 0; i < s->n_axes; i++)
        axes[i] = points_copy_axis(c, s->axes[i]);
    c->folds[id] = nest_open(c->b, s->kind, (int)s->n_axes, axes);
    points_copy_block(c, s->body);
    struct nest_combine *combines = arena_array(arena, struct nest_combine, s->n_combines + 1);
    for (uint32_t i = 0; i < s->n_combines; i++)
        combines[i] = points_combine(c, &s->combines[i]);
    nest_id result = nest_close(c->b, (int)s->n_combines, combines);
    for (uint32_t i = 0; i < s->n_results; i++)
        c->values[s->result + i] = result + i;
}

static void copy_put(struct points_copy *c, const struct nest_statement *s)
{
    struct nest_index x = moved(c, s->buffer, &s->index);
    nest_id to = c->buffers[s->buffer], guard = value_of(c, s->guard);
    struct nest_combine combine = {.op = s->op, .n = (uint16_t)s->n_in, .order = s->order};
    for (uint32_t i = 0; i < s->n_in; i++)
        combine.value[i] = c->values[s->in[i]];
    if (s->op)
        nest_put_combine_guarded(c->b, to, x, c->folds[s->fold], &combine, guard);
    else
        nest_put(c->b, to, x, combine.value[0], guard);
}

void points_copy_statement(struct points_copy *c, nest_id id)
{
    const struct nest_statement *s = &c->from->statements.at[id];
    nest_id in[4], result = NEST_NONE;
    c->b->where = s->where;
    for (uint32_t i = 0; s->kind == NEST_OP && i < s->n_in; i++)
        in[i] = c->values[s->in[i]];
    switch (s->kind) {
    case NEST_OP:
        result = nest_op(c->b, (enum ir_op)s->op, s->dtype, (int)s->n_in, in, s->bits);
        break;
    case NEST_CONST:
        result = nest_const(c->b, s->dtype, s->bits);
        break;
    case NEST_INDEX:
        result = nest_index_value(c->b, moved(c, NEST_NONE, &s->index), s->dtype);
        break;
    case NEST_LOAD:
        result = nest_load(c->b, c->buffers[s->buffer], moved(c, s->buffer, &s->index),
                           value_of(c, s->guard));
        break;
    case NEST_PUT:
        copy_put(c, s);
        return;
    default:
        copy_loop(c, id, s);
        return;
    }
    for (uint32_t i = 0; i < s->n_results; i++)
        c->values[s->result + i] = result + i;
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
