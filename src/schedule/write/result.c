// SPDX-License-Identifier: Apache-2.0
// Where results of a kernel are put: by loops of their own, or in the fold that computes all their elements.
#include "schedule/write/write.h"

nest_id write_output_of(struct writer *w, ir_id v)
{
    return write_buffer_of(w, schedule_memory(w->s, v),
                           w->s->part_of[v] == IR_NONE ? NEST_OUT : NEST_PART);
}

// Coordinates in the part v of a concatenation as those in the whole.
static void move_into_whole(struct writer *w, ir_id v, ir_id whole, form_id *at)
{
    const struct ir_graph *g = w->s->g;
    const struct ir_node *n = ir_node_of(g, whole);
    int64_t axis = ir_attr_int(n->attrs, IR_KEY_axis), first = 0;
    for (uint32_t i = 0; ir_operand(g, n, i) != v; i++)
        first += ir_dims_of(g, ir_operand(g, n, i))[axis];
    at[axis] = emit_form_affine(&w->e, at[axis], 1, first);
}

// Where the element of the result lies.
static form_id index_of(struct writer *w, ir_id v, const form_id *at)
{
    ir_id whole = w->s->part_of[v];
    form_id moved[IR_MAX_RANK] = {0};
    for (int i = 0; i < ir_rank_of(w->s->g, v); i++)
        moved[i] = at[i];
    if (whole != IR_NONE)
        move_into_whole(w, v, whole, moved);
    return write_linear_of(w, whole != IR_NONE ? whole : v, moved);
}

void write_put_result(struct writer *w, ir_id v, const form_id *at, nest_id value)
{
    emit_put(&w->e, write_output_of(w, v), index_of(w, v, at), value);
}

bool write_is_put(const struct writer *w, ir_id v)
{
    for (uint32_t i = 0; i < w->put.count; i++)
        if (w->put.at[i] == v)
            return true;
    return false;
}

// Whether neighbours in memory are neighbours in a loop around, as lanes want them.
static bool runs_along_memory(struct writer *w, form_id index, scope_id scope)
{
    const struct nest *n = w->e.b.nest;
    for (; scope; scope = w->e.scopes.at[scope].parent) {
        const struct nest_statement *loop = &n->statements.at[w->e.scopes.at[scope].loop];
        if (loop->n_axes &&
            nest_index_factor(&w->e.forms.at[index].index, loop->axes[loop->n_axes - 1]) == 1)
            return true;
    }
    return false;
}

static bool is_in_fold(const struct writer *w, scope_id scope)
{
    for (; scope != w->point; scope = w->e.scopes.at[scope].parent)
        if (w->e.b.nest->statements.at[w->e.scopes.at[scope].loop].kind == NEST_FOLD)
            return true;
    return false;
}

// Puts a result where a fold computes it, if that loop computes every element once; else another loop would
// compute it again.  A GPU shares loops of results among threads otherwise than folds.
void write_put_where_computed(struct writer *w, ir_id v, const form_id *at, nest_id guard,
                              nest_id value)
{
    struct schedule *s = w->s;
    const struct group *g = w->g;
    scope_id scope = w->e.value_scope.at[value], here = w->e.at;
    if (w->frame || s->options->many_lanes || g->kind != GROUP_KERNEL || g->fold.count ||
        g->unrolled.count || guard != NEST_NONE || !s->is_stored[v] || !write_is_member(w, v) ||
        !write_is_natural(w, v, at) || !write_is_inner(w, v, at, value) ||
        !is_in_fold(w, scope) || node_is_scan(ir_node_of(s->g, v)) || write_is_put(w, v))
        return;
    w->e.at = scope;
    form_id index = index_of(w, v, at);
    if (runs_along_memory(w, index, scope)) {
        emit_put(&w->e, write_output_of(w, v), index, value);
        vec_push(s->scratch, &w->put, v);
    }
    w->e.at = here;
}
