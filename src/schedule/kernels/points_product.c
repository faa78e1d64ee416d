// SPDX-License-Identifier: Apache-2.0
// Sums over points of products of what is of a row and what is of a column:
//
//     par i < 2, j < 20 {                          map i < 2 { ... put a[i] = %x }
//       fold n < 1000 {                            map j < 20 { ... put b[j] = %y }
//         ... yield fma %x %y          becomes     map i < 2, j < 20 {
//       } -> %s                                      put g[20*i + j] fma= a[i], b[j] in @n
//     }                                            }
//
// A factor is made once for all products that it is in.
#include "schedule/kernels/points.h"

// The statements that are of one sum: those of its column before the fold, then those of the fold.
struct statements {
    uint32_t n;
    nest_id *at;
};

static struct statements statements_of(const struct points *p, const struct points_step *t)
{
    const struct nest *n = t->nest;
    const struct nest_block *column = &n->blocks.at[n->statements.at[t->loop].body],
                            *body = &n->blocks.at[n->statements.at[t->fold].body];
    struct statements all = {0};
    all.at =
        arena_array(p->scratch, nest_id, column->statements.count + body->statements.count);
    for (uint32_t i = 0; column->statements.at[i] != t->fold; i++)
        all.at[all.n++] = column->statements.at[i];
    for (uint32_t i = 0; i < body->statements.count; i++)
        all.at[all.n++] = body->statements.at[i];
    return all;
}

// By value: which of the two axes of the sums it depends on, as bits.
static uint8_t *sides_of(const struct points *p, const struct points_step *t)
{
    const struct nest *n = t->nest;
    const nest_id *axes = n->statements.at[t->loop].axes;
    struct statements all = statements_of(p, t);
    uint8_t *sides = arena_array(p->scratch, uint8_t, n->values.count + 1);
    for (uint32_t i = 0; i < all.n; i++) {
        const struct nest_statement *s = &n->statements.at[all.at[i]];
        uint8_t side = 0;
        nest_for_uses (v, s)
            side |= sides[v];
        for (uint32_t k = 0; k < s->index.count; k++)
            for (int q = 0; q < 2; q++)
                side |=
                    !s->index.terms[k].is_value && s->index.terms[k].id == axes[q] ? 1 << q : 0;
        for (uint32_t k = 0; k < s->n_results; k++)
            sides[s->result + k] = side;
    }
    return sides;
}

bool points_is_products(const struct points *p, const struct points_step *t)
{
    if (t->kind != POINTS_COLUMNS || t->nest->statements.at[t->loop].n_axes != 2)
        return false;
    struct statements all = statements_of(p, t);
    for (uint32_t i = 0; i < all.n; i++)
        if (t->nest->statements.at[all.at[i]].kind > NEST_LOAD)
            return false;
    const struct nest_statement *f = &t->nest->statements.at[t->fold];
    const uint8_t *sides = sides_of(p, t);
    for (uint32_t i = 0; i < f->n_combines; i++) {
        const struct nest_combine *x = &f->combines[i];
        if (x->op != IR_fma || t->nest->values.at[x->value[0]].dtype != x->dtype ||
            t->nest->values.at[x->value[1]].dtype != x->dtype ||
            sides[x->value[0]] * sides[x->value[1]] != 2)
            return false;
    }
    return true;
}

// Copies the statements that the value needs.
static void copy_value(struct points_copy *c, const struct points_step *t, nest_id value)
{
    struct statements all = statements_of(c->p, t);
    bool *needed = arena_array(c->p->scratch, bool, t->nest->values.count + 1);
    bool *copied = arena_array(c->p->scratch, bool, all.n + 1);
    needed[value] = true;
    for (uint32_t i = all.n; i-- > 0;) {
        const struct nest_statement *s = &t->nest->statements.at[all.at[i]];
        for (uint32_t k = 0; k < s->n_results; k++)
            copied[i] = copied[i] || needed[s->result + k];
        if (copied[i])
            nest_for_uses (v, s)
                needed[v] = true;
    }
    for (uint32_t i = 0; i < all.n; i++)
        if (copied[i])
            points_copy_statement(c, all.at[i]);
}

static struct nest_index index_of(struct points_copy *c, nest_id axis)
{
    return nest_index_make(c->b->nest->arena, 0, 1, (struct nest_term[]){{1, axis, false}});
}

// The local that the value is an element of, at the index of its axis in all; NEST_NONE for others.
static nest_id local_of(const struct points_copy *c, const struct points_step *t, nest_id value,
                        nest_id axis)
{
    struct statements all = statements_of(c->p, t);
    for (uint32_t i = 0; i < all.n; i++) {
        const struct nest_statement *s = &t->nest->statements.at[all.at[i]];
        if (s->kind == NEST_LOAD && s->result == value && s->guard == NEST_NONE &&
            c->is_local[s->buffer] && s->index.constant == 0 && s->index.count == 2 &&
            nest_index_factor(&s->index, axis) == 1 &&
            nest_index_factor(&s->index, t->axis) == t->nest->axes.at[axis].extent)
            return c->buffers[s->buffer];
    }
    return NEST_NONE;
}

static nest_id write_factor(struct points_copy *c, const struct points_step *t, nest_id value,
                            int side)
{
    nest_id from = t->nest->statements.at[t->loop].axes[side];
    if (local_of(c, t, value, from) != NEST_NONE)
        return local_of(c, t, value, from);
    nest_id near = nest_local(c->b, "factor", t->nest->values.at[value].dtype,
                              t->nest->axes.at[from].extent);
    nest_id i = points_copy_axis(c, from);
    nest_open(c->b, NEST_MAP, 1, &i);
    copy_value(c, t, value);
    nest_put(c->b, near, index_of(c, i), c->values[value], NEST_NONE);
    nest_close(c->b, 0, NULL);
    return near;
}

void points_write_products(struct points_copy *c, const struct points_step *t,
                           const nest_id *results, nest_id loop)
{
    const struct nest_statement *s = &t->nest->statements.at[t->loop],
                                *f = &t->nest->statements.at[t->fold];
    const uint8_t *sides = sides_of(c->p, t);
    nest_id *near = arena_array(c->p->scratch, nest_id, t->nest->values.count + 1), axes[2];
    for (uint32_t i = 0; i < f->n_combines; i++)
        for (int k = 0; k < 2; k++) {
            nest_id value = f->combines[i].value[k];
            if (!near[value])
                near[value] = 1 + write_factor(c, t, value, sides[value] == 2);
        }
    for (int k = 0; k < 2; k++)
        axes[k] = points_copy_axis(c, s->axes[k]);
    nest_open(c->b, NEST_MAP, 2, axes);
    for (uint32_t i = 0; i < f->n_combines; i++) {
        struct nest_combine x = f->combines[i];
        for (int k = 0; k < 2; k++) {
            nest_id value = f->combines[i].value[k];
            int side = sides[value] == 2;
            x.value[side] =
                nest_load(c->b, near[value] - 1, index_of(c, axes[side]), NEST_NONE);
        }
        nest_put_combine(
            c->b, results[i],
            nest_index_make(
                c->b->nest->arena, 0, 2,
                (struct nest_term[]){{t->nest->axes.at[s->axes[1]].extent, axes[0], false},
                                     {1, axes[1], false}}),
            loop, &x);
    }
    nest_close(c->b, 0, NULL);
}

int64_t points_product_bytes(const struct points *p, const struct points_step *t)
{
    if (!points_is_products(p, t))
        return 0;
    const struct nest_statement *s = &t->nest->statements.at[t->loop],
                                *f = &t->nest->statements.at[t->fold];
    int64_t sides = t->nest->axes.at[s->axes[0]].extent + t->nest->axes.at[s->axes[1]].extent;
    return f->n_combines ? f->n_combines * sides * dtype_get(f->combines[0].dtype)->bytes : 0;
}
