// SPDX-License-Identifier: Apache-2.0
// Rows of local memory: dear values that several loops of a point want.
#include "schedule/write/write.h"

static struct row *row_of(struct writer *w, ir_id v)
{
    for (uint32_t i = 0; i < w->rows.count; i++)
        if (w->rows.at[i].v == v)
            return &w->rows.at[i];
    return NULL;
}

static struct atoms inner_atoms(struct writer *w, ir_id v)
{
    return axes_minus(&w->s->axes, axes_of_view(&w->s->axes, w->s->view_of[v]), w->g->points);
}

static bool uses_axis(const struct writer *w, ir_id v, const form_id *at, nest_id axis)
{
    for (int i = 0; i < ir_rank_of(w->s->g, v); i++)
        if (nest_index_factor(&w->e.forms.at[at[i]].index, axis))
            return true;
    return false;
}

// Whether the loops around the scope compute every element of the value once, at these coordinates:
// they are the loops of its atoms, one for each.
bool write_is_home(struct writer *w, ir_id v, const form_id *at, scope_id scope)
{
    int64_t runs = 1;
    for (; scope != w->point; scope = w->e.scopes.at[scope].parent) {
        if (scope == 0)
            return false;
        const struct nest *n = w->e.b.nest;
        const struct nest_statement *loop = &n->statements.at[w->e.scopes.at[scope].loop];
        for (uint32_t i = 0; i < loop->n_axes; i++) {
            if (!uses_axis(w, v, at, loop->axes[i]))
                return false;
            runs *= n->axes.at[loop->axes[i]].extent;
        }
    }
    struct atoms own = axes_minus(&w->s->axes, inner_atoms(w, v), w->g->unrolled);
    return runs == axes_product(&w->s->axes, own);
}

bool write_is_inner(struct writer *w, ir_id v, const form_id *at, nest_id result)
{
    scope_id scope = w->e.value_scope.at[result];
    return scope == write_scope_of(w, v, at, NEST_NONE) && scope != w->point &&
           !axes_overlap(&w->s->axes, inner_atoms(w, v), w->g->unrolled) &&
           write_is_home(w, v, at, scope);
}

// Counts a computation of a dear member in an inner loop, where no rows are chosen so far.
void write_count_computation(struct writer *w, ir_id v, const form_id *at, nest_id guard,
                             nest_id result)
{
    struct schedule *s = w->s;
    const struct ir_node *n = ir_node_of(s->g, v);
    bool is_dear =
        node_is_folding(n) || cost_is_expensive((enum ir_op)n->op, ir_dtype_of(s->g, v));
    if (w->rows.count || guard != NEST_NONE || w->g->fold.count || n->n_out != 1 || !is_dear ||
        !write_is_natural(w, v, at) || !write_is_inner(w, v, at, result))
        return;
    if (!s->computed[v])
        vec_push(s->scratch, &w->counted, v);
    if (s->computed[v] < 255)
        s->computed[v]++;
}

static void add_row(struct writer *w, ir_id v)
{
    vec_push(w->s->scratch, &w->rows, (struct row){.v = v, .local = NEST_NONE, .loop = NONE});
}

// Dear members that more than one loop computes, as far as there is room.  The last come first: what
// they are made of is then, as a rule, computed once.
void write_choose_rows(struct writer *w, struct writer *again)
{
    struct schedule *s = w->s;
    bool is_gpu = s->options->many_lanes || s->options->no_accumulation;
    int64_t room = is_gpu ? COST_SHARED_BYTES : COST_LOCAL_BYTES;
    for (uint32_t i = w->counted.count; i-- > 0;) {
        ir_id v = w->counted.at[i];
        bool wanted = s->computed[v] > 1;
        s->computed[v] = 0;
        if (!wanted)
            continue;
        jot_dtype d = ir_dtype_of(s->g, v);
        int64_t count = axes_product(&s->axes, inner_atoms(w, v));
        if (count > room / dtype_get(d)->bytes)
            continue;
        room -= count * dtype_get(d)->bytes;
        add_row(again, v);
    }
}

void write_read_rows(struct writer *w, struct writer *again)
{
    for (uint32_t i = 0; i < w->rows.count; i++)
        if (w->rows.at[i].is_read)
            add_row(again, w->rows.at[i].v);
}

// Whether the loop walks the same coordinates of the value in both loops.
static bool walks_alike(const struct writer *w, ir_id v, const form_id *a, const form_id *b,
                        const struct nest_statement *loop)
{
    for (uint32_t i = 0; i < loop->n_axes; i++)
        for (int k = 0; k < ir_rank_of(w->s->g, v); k++)
            if (nest_index_factor(&w->e.forms.at[a[k]].index, loop->axes[i]) !=
                nest_index_factor(&w->e.forms.at[b[k]].index, loop->axes[i]))
                return false;
    return true;
}

// The row of the value, if the loop that fills it runs before the current loop: of loops around
// both, one trip has filled only what it walks over.
struct row *write_filled_row(struct writer *w, ir_id v, const form_id *at)
{
    struct row *r = w->rows.count && write_is_natural(w, v, at) ? row_of(w, v) : NULL;
    if (!r || r->loop == NONE || emit_sees(&w->e, r->loop))
        return NULL;
    for (scope_id scope = r->loop; scope != w->point; scope = w->e.scopes.at[scope].parent) {
        const struct scope *x = &w->e.scopes.at[scope];
        bool is_around = emit_sees(&w->e, scope);
        if (is_around ? !walks_alike(w, v, r->at, at, &w->e.b.nest->statements.at[x->loop])
                      : x->is_open)
            return NULL;
    }
    return r;
}

form_id write_index_in_row(struct writer *w, ir_id v)
{
    form_id f = 0;
    write_form_of_atoms(w, inner_atoms(w, v), &f);
    return f;
}

// Puts a value that was computed into its row, if it has one and this is the loop to fill it.
void write_fill_row(struct writer *w, ir_id v, const form_id *at, nest_id guard, nest_id value)
{
    struct schedule *s = w->s;
    scope_id here = w->e.at;
    struct row *r =
        w->rows.count && guard == NEST_NONE && write_is_natural(w, v, at) ? row_of(w, v) : NULL;
    if (!r || !write_is_inner(w, v, at, value))
        return;
    if (r->local == NEST_NONE)
        r->local = nest_local(&w->e.b, "row", ir_dtype_of(s->g, v),
                              axes_product(&s->axes, inner_atoms(w, v)));
    r->loop = w->e.value_scope.at[value];
    r->at = arena_copy(s->scratch, at, (size_t)ir_rank_of(s->g, v) * sizeof *at);
    w->e.at = r->loop;
    emit_put(&w->e, r->local, write_index_in_row(w, v), value);
    w->e.at = here;
}
