// SPDX-License-Identifier: Apache-2.0
// Makes one axis of neighbouring axes of a loop that every index walks as one.
//
//     par i < 1000, j < 100 { load x[100*i + j] }    becomes    par j < 100000 { load x[j] }
//
// An axis of one point goes too.  The order of a fold's sequence stays: its axes count row-major.  Who has the elements of
// axes is said of them as they are, and so those of a mapped nest stay.
#include "nest/nest.h"

// Whether every index has a's factor equal to the step over all of b.
static bool walk_as_one(const struct nest *n, nest_id a, nest_id b)
{
    int64_t extent = n->axes.at[b].extent;
    nest_for_all (s, n) {
        const struct nest_index *all[] = {&s->index, &s->source_index[0], &s->source_index[1]};
        for (int k = 0; k < 3; k++)
            if (nest_index_factor(all[k], a) != nest_index_factor(all[k], b) * extent)
                return false;
    }
    return true;
}

static void forget(struct nest *n, struct nest_index *x, nest_id axis)
{
    if (!nest_index_factor(x, axis))
        return;
    struct nest_term *kept = arena_array(n->arena, struct nest_term, x->count);
    uint32_t count = 0;
    for (uint32_t i = 0; i < x->count; i++)
        if (x->terms[i].is_value || x->terms[i].id != axis)
            kept[count++] = x->terms[i];
    x->terms = kept;
    x->count = count;
}

static void forget_everywhere(struct nest *n, nest_id axis)
{
    for (uint32_t i = 0; i < n->statements.count; i++) {
        struct nest_statement *s = &n->statements.at[i];
        forget(n, &s->index, axis);
        forget(n, &s->source_index[0], axis);
        forget(n, &s->source_index[1], axis);
    }
}

static void remove_axis(struct nest *n, struct nest_statement *s, uint32_t at)
{
    nest_id *axes = arena_array(n->arena, nest_id, s->n_axes);
    for (uint32_t i = 0, k = 0; i < s->n_axes; i++)
        if (i != at)
            axes[k++] = s->axes[i];
    s->axes = axes;
    s->n_axes--;
}

static void collapse_loop(struct nest *n, struct nest_statement *s)
{
    for (uint32_t i = 0; i < s->n_axes && s->n_axes > 1;) {
        if (n->axes.at[s->axes[i]].extent == 1) {
            forget_everywhere(n, s->axes[i]);
            remove_axis(n, s, i);
        } else {
            i++;
        }
    }
    for (uint32_t i = 0; i + 1 < s->n_axes;) {
        nest_id a = s->axes[i], b = s->axes[i + 1];
        if (walk_as_one(n, a, b)) {
            forget_everywhere(n, a);
            n->axes.at[b].extent *= n->axes.at[a].extent;
            remove_axis(n, s, i);
        } else {
            i++;
        }
    }
}

void nest_collapse(struct nest *n)
{
    for (uint32_t i = 0; !nest_is_mapped(n) && i < n->statements.count; i++) {
        struct nest_statement *s = &n->statements.at[i];
        if (s->kind == NEST_PAR || s->kind == NEST_MAP || s->kind == NEST_FOLD)
            collapse_loop(n, s);
    }
}
