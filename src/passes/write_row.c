// SPDX-License-Identifier: Apache-2.0
// Rows of local memory: dear values that several loops of a point want.
#include "passes/write.h"

struct row *write_row_of(struct writer *w, ir_id v)
{
    for (uint32_t i = 0; i < w->rows.count; i++)
        if (w->rows.at[i].v == v)
            return &w->rows.at[i];
    return NULL;
}

static struct atoms inner_atoms(struct writer *w, ir_id v)
{
    return axes_minus(w->s, axes_of_view(w->s, w->s->view_of[v]), w->g->points);
}

static bool uses_axis(const struct writer *w, ir_id v, const form_id *at, nest_id axis)
{
    for (int i = 0; i < ir_rank_of(w->s->g, v); i++)
        if (nest_index_factor(&w->e.forms.at[at[i]].index, axis))
            return true;
    return false;
}

// Whether the value was computed once for each of its coordinates, in an inner loop.
bool write_is_inner(const struct writer *w, ir_id v, const form_id *at, nest_id result)
{
    scope_id scope = w->e.value_scope.at[result];
    if (scope != write_scope_of(w, v, at, NEST_NONE) || scope == w->point)
        return false;
    for (; scope != w->point; scope = w->e.scopes.at[scope].parent) {
        if (scope == 0)
            return false;
        const struct nest_statement *loop =
            &w->e.b.nest->statements.at[w->e.scopes.at[scope].loop];
        for (uint32_t i = 0; i < loop->n_axes; i++)
            if (!uses_axis(w, v, at, loop->axes[i]))
                return false;
    }
    return true;
}

// Counts a computation of a dear member in an inner loop.
void write_count_computation(struct writer *w, ir_id v, const form_id *at, nest_id guard,
                             nest_id result)
{
    struct schedule *s = w->s;
    const struct ir_node *n = ir_node_of(s->g, v);
    bool is_dear =
        node_is_folding(n) || cost_is_expensive((enum ir_op)n->op, ir_dtype_of(s->g, v));
    if (guard != NEST_NONE || w->g->fold.count || n->n_out != 1 || !is_dear ||
        !write_is_natural(w, v, at) || !write_is_inner(w, v, at, result))
        return;
    if (!s->computed[v])
        vec_push(s->scratch, &w->counted, v);
    if (s->computed[v] < 255)
        s->computed[v]++;
}

// Dear members that more than one loop computes, as far as there is room.
void write_choose_rows(struct writer *w, struct writer *again)
{
    struct schedule *s = w->s;
    int64_t room = COST_LOCAL_BYTES;
    for (uint32_t i = 0; i < w->counted.count; i++) {
        ir_id v = w->counted.at[i];
        bool wanted = s->computed[v] > 1;
        s->computed[v] = 0;
        if (!wanted)
            continue;
        jot_dtype d = ir_dtype_of(s->g, v);
        int64_t count = axes_product(s, inner_atoms(w, v));
        if (count > room / dtype_get(d)->bytes)
            continue;
        room -= count * dtype_get(d)->bytes;
        vec_push(s->scratch, &again->rows,
                 (struct row){.v = v, .local = NEST_NONE, .loop = NONE});
    }
}

// Whether the loop that fills the row runs before the current place.
bool write_is_filled(const struct writer *w, const struct row *r)
{
    scope_id scope = r->loop;
    if (scope == NONE || emit_sees(&w->e, scope))
        return false;
    for (; !emit_sees(&w->e, scope); scope = w->e.scopes.at[scope].parent)
        if (w->e.scopes.at[scope].is_open)
            return false;
    return true;
}

form_id write_place_in_row(struct writer *w, ir_id v)
{
    form_id f = 0;
    write_form_of_atoms(w, inner_atoms(w, v), &f);
    return f;
}

void write_fill_row(struct writer *w, struct row *r, nest_id value)
{
    struct schedule *s = w->s;
    scope_id here = w->e.at;
    if (r->local == NEST_NONE)
        r->local = nest_local(&w->e.b, "row", ir_dtype_of(s->g, r->v),
                              axes_product(s, inner_atoms(w, r->v)), NEST_POINT);
    r->loop = w->e.value_scope.at[value];
    w->e.at = r->loop;
    emit_put(&w->e, r->local, write_place_in_row(w, r->v), value);
    w->e.at = here;
}
