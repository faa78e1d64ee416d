// SPDX-License-Identifier: Apache-2.0
// Sums over points and more that store numbers of the points besides:
//
//     fold n < 1000, j < 8 {                     par n < 1000, j < 8 { ... put t[8*n + j] = %d }
//       ... put t[8*n + j] = %d       becomes
//       yield reduce_sum %e                      fold n < 1000, j < 8 { ... yield reduce_sum %e }
//     } -> %s
//
// The order of such a sum is not that of one over points alone, so it has a kernel of its own; what
// it stores others of the same points want.  Statements that one of the two has no use for stay in
// it: the code generator drops them.
#include "schedule/kernels/points.h"

static bool is_mixed(const struct nest *n, int64_t points)
{
    const struct nest_statement *fold = NULL;
    bool stores = false;
    for (nest_id i = 0; i < n->buffers.count; i++)
        if (n->buffers.at[i].role > NEST_OUT)
            return false;
    nest_for_each (s, n, 0) {
        if (s->kind > NEST_PUT && (s->kind != NEST_FOLD || fold))
            return false;
        fold = s->kind == NEST_FOLD ? s : fold;
    }
    if (!fold || fold->n_axes < 2 || n->axes.at[fold->axes[0]].extent != points)
        return false;
    nest_for_each (s, n, fold->body) {
        if (s->kind > NEST_PUT || (s->kind == NEST_PUT && s->op))
            return false;
        stores = stores || s->kind == NEST_PUT;
    }
    return stores;
}

static bool is_written(const struct nest *n, uint32_t block, nest_id buffer)
{
    nest_for_each (s, n, block)
        if (s->kind == NEST_PUT && s->buffer == buffer)
            return true;
    return false;
}

// The kernel without its sums, or without what it stores for each point.
static struct nest_step half(struct points *p, uint32_t step, bool is_stores)
{
    struct nest_program *m = p->program;
    const struct nest_step *s = &m->steps.at[step];
    const struct nest *n = m->nests.at[s->nest];
    struct nest_builder b = nest_builder_make(m->arena, n->name);
    struct points_copy c = points_copier(p, &b, n, NEST_NONE);
    const struct nest_block *top = &n->blocks.at[0];
    uint32_t at = 0;
    while (n->statements.at[top->statements.at[at]].kind != NEST_FOLD)
        at++;
    const struct nest_statement *fold = &n->statements.at[top->statements.at[at]];
    VEC(uint32_t) memories = {0};
    for (nest_id i = 0; i < n->buffers.count; i++) {
        const struct nest_buffer *x = &n->buffers.at[i];
        if (x->role == NEST_OUT && is_written(n, fold->body, i) != is_stores)
            continue;
        c.buffers[i] = nest_buffer(&b, x->name, x->dtype, x->count, x->role);
        vec_push(p->scratch, &memories, s->memories[i]);
    }
    points_copy_range(&c, 0, 0, at);
    nest_id *axes = arena_array(p->scratch, nest_id, fold->n_axes);
    for (uint32_t i = 0; i < fold->n_axes; i++)
        axes[i] = points_copy_axis(&c, fold->axes[i]);
    nest_open(&b, is_stores ? NEST_PAR : NEST_FOLD, (int)fold->n_axes, axes);
    nest_for_each (t, n, fold->body)
        if (is_stores || t->kind != NEST_PUT)
            points_copy_statement(&c, nest_id_of(n, t));
    struct nest_combine *combines =
        arena_array(p->scratch, struct nest_combine, fold->n_combines + 1);
    for (uint32_t i = 0; i < fold->n_combines; i++)
        combines[i] = points_combine(&c, &fold->combines[i]);
    nest_id result = nest_close(&b, is_stores ? 0 : (int)fold->n_combines, combines);
    for (uint32_t i = 0; !is_stores && i < fold->n_results; i++)
        c.values[fold->result + i] = result + i;
    if (!is_stores)
        points_copy_range(&c, 0, at + 1, top->statements.count);
    vec_push(m->arena, &m->nests, b.nest);
    return (struct nest_step){
        .kind = NEST_STEP_KERNEL,
        .nest = m->nests.count - 1,
        .n_memories = memories.count,
        .memories = arena_copy(m->arena, memories.at, memories.count * sizeof *memories.at),
        .place = s->place,
        .reason = s->reason};
}

void points_split(struct nest_program *m, struct arena *scratch, int64_t n)
{
    struct points p = {.program = m, .scratch = scratch, .n = n};
    VEC(struct nest_step) steps = {0};
    for (uint32_t i = 0; i < m->steps.count; i++) {
        const struct nest_step *s = &m->steps.at[i];
        if (s->kind == NEST_STEP_KERNEL && is_mixed(m->nests.at[s->nest], n)) {
            struct nest_step sums = half(&p, i, false);
            vec_push(scratch, &steps, half(&p, i, true));
            vec_push(scratch, &steps, sums);
        } else {
            vec_push(scratch, &steps, *s);
        }
    }
    m->steps.count = 0;
    for (uint32_t i = 0; i < steps.count; i++)
        vec_push(m->arena, &m->steps, steps.at[i]);
}
