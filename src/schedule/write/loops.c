// SPDX-License-Identifier: Apache-2.0
// Buffers of a kernel, and the loops that its atoms stand for.
#include "schedule/write/write.h"

// ---- Memory

nest_id write_buffer_of(struct writer *w, uint32_t memory, enum nest_role role)
{
    for (uint32_t i = 0; i < w->memories.count; i++)
        if (w->memories.at[i] == memory)
            return w->buffers.at[i];
    const struct nest_memory *m = &w->s->program->memories.at[memory];
    nest_id b = nest_buffer(&w->e.b, m->name, m->dtype, m->count, role);
    vec_push(w->s->scratch, &w->memories, memory);
    vec_push(w->s->scratch, &w->buffers, b);
    return b;
}

form_id write_memory_index(struct writer *w, const struct schedule *s, ir_id v,
                           const form_id *at)
{
    int rank = ir_rank_of(s->g, v), last = s->axis_last ? s->axis_last[v] - 1 : -1, n = 0;
    int64_t block = last >= 0 ? s->last_block[v] : 0;
    int64_t dims[IR_MAX_RANK + 1];
    form_id index[IR_MAX_RANK + 1], end = 0;
    for (int i = 0; i < rank; i++) {
        int64_t extent = ir_dims_of(s->g, v)[i];
        if (i == last && !block) {
            end = at[i];
            continue;
        }
        dims[n] = extent;
        index[n] = at[i];
        if (i == last) {
            dims[n] = extent / block;
            emit_form_divide(&w->e, at[i], block, &index[n], &end);
        }
        n++;
    }
    if (last >= 0) {
        dims[n] = block ? block : ir_dims_of(s->g, v)[last];
        index[n++] = end;
    }
    return emit_form_linear(&w->e, n, dims, index);
}

form_id write_linear_of(struct writer *w, ir_id v, const form_id *at)
{
    return write_memory_index(w, w->s, v, at);
}

nest_id write_load_value(struct writer *w, ir_id v, const form_id *at, nest_id guard)
{
    nest_id b = write_buffer_of(w, schedule_memory(w->s, v), NEST_IN);
    return emit_load(&w->e, b, write_linear_of(w, v, at), guard);
}

nest_id write_zero_of(struct writer *w, jot_dtype d)
{
    static const unsigned char zero[16];
    return emit_const(&w->e, d, zero);
}

// ---- Loops of the group

// The coordinate that a sequence of atoms stands for; false when one of them has no loop.
bool write_form_of_atoms(struct writer *w, struct atoms a, form_id *out)
{
    struct schedule *s = w->s;
    a = axes_leaves(&s->axes, a);
    form_id f = 0;
    for (uint32_t i = 0; i < a.count; i++) {
        uint32_t bound = a.at[i] < s->n_bound ? s->bound[a.at[i]] : NONE;
        if (bound == NONE)
            return false;
        f = i == 0 ? bound : emit_form_add(&w->e, f, s->axes.atoms.at[a.at[i]].extent, bound);
    }
    *out = f;
    return true;
}

bool write_form_of_view(struct writer *w, struct view v, form_id *at)
{
    for (uint32_t i = 0; i < v.rank; i++)
        if (!write_form_of_atoms(w, v.dims[i], &at[i]))
            return false;
    return true;
}

bool write_is_member(const struct writer *w, ir_id v)
{
    return w->s->decision[v] == DECIDE_MEMBER &&
           group_root(w->s, w->s->group_of[v]) == w->group;
}

// Whether the coordinates are those at which the group computes its member v.
bool write_is_natural(struct writer *w, ir_id v, const form_id *at)
{
    form_id own[IR_MAX_RANK];
    if (!write_is_member(w, v) || !write_form_of_view(w, w->s->view_of[v], own))
        return false;
    uint32_t rank = w->s->view_of[v].rank;
    return !rank || !memcmp(own, at, rank * sizeof *own);
}

void write_bind(struct writer *w, struct atoms leaves, const form_id *forms,
                struct binding *undo)
{
    for (uint32_t i = 0; i < leaves.count; i++) {
        undo[i] = (struct binding){leaves.at[i], w->s->bound[leaves.at[i]]};
        w->s->bound[leaves.at[i]] = forms[i];
    }
}

void write_unbind(struct writer *w, uint32_t n, const struct binding *undo)
{
    for (uint32_t i = n; i-- > 0;)
        w->s->bound[undo[i].atom] = undo[i].before;
}

void write_open_map(struct writer *w, const struct axes *s, struct atoms a, nest_id *axes)
{
    for (uint32_t i = 0; i < a.count; i++)
        axes[i] = emit_axis(&w->e, s->atoms.at[a.at[i]].extent);
    if (a.count)
        emit_open(&w->e, w->e.at, NEST_MAP, (int)a.count, axes);
}

void write_open_scan(struct writer *w, const struct ir_node *n, nest_id axis)
{
    emit_open(&w->e, w->e.at, NEST_SCAN, 1, &axis);
    w->e.b.nest->statements.at[w->e.scopes.at[w->e.at].loop].reverse =
        ir_attr_int_or(n->attrs, IR_KEY_reverse, 0);
}

// Iterations of the loops that are written out, counted in row-major order.
uint32_t write_unrolled_iterations(const struct writer *w)
{
    return (uint32_t)axes_product(&w->s->axes, w->g->unrolled);
}

void write_bind_unrolled(struct writer *w, uint32_t iteration, struct binding *undo)
{
    struct atoms a = w->g->unrolled;
    form_id forms[COST_THREAD_UNROLL];
    for (uint32_t i = a.count; i-- > 0;) {
        int64_t extent = w->s->axes.atoms.at[a.at[i]].extent;
        forms[i] = emit_form_constant(&w->e, iteration % extent);
        iteration /= (uint32_t)extent;
    }
    write_bind(w, a, forms, undo);
}

bool write_is_first_iteration(const struct writer *w, struct atoms own, uint32_t iteration)
{
    struct atoms a = w->g->unrolled;
    for (uint32_t i = a.count; i-- > 0;) {
        uint32_t extent = (uint32_t)w->s->axes.atoms.at[a.at[i]].extent;
        if (iteration % extent && !axes_contain(&w->s->axes, own, a.at[i]))
            return false;
        iteration /= extent;
    }
    return true;
}
