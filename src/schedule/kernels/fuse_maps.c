// SPDX-License-Identifier: Apache-2.0
// Loop fusion of what a lane does in a trip: maps of as many elements that stand side by side are one.
//
//     map i < 14 { ... put h[i] = %2 }              map i < 14 {
//     map j < 14 { %3 = load h[j] : f64      =>       ... put h[i] = %2   %3 = load h[i] : f64
//                  put y[14*t + j] = %3 }             put y[14*t + i] = %3
//                                                   }
//
// The kernel of a loop over time writes each value of a lane's arrays as a map of its own, and threads of a GPU would
// wait for one another behind each.  A processor has more of a short loop at once: its maps stay.  Two maps are one
// where an element is of one turn alone: what one of them puts the other reads and puts at the same index.
#include "schedule/internal.h"
#include "schedule/rewrites.h"

// Whether the map makes elements alone, each by itself.
static bool is_of_elements(const struct nest *n, const struct nest_statement *s)
{
    if (s->kind != NEST_MAP)
        return false;
    nest_for_each (t, n, s->body)
        if (!nest_is_scalar(t) &&
            (t->kind != NEST_PUT || t->op || nest_index_has_values(&t->index)))
            return false;
    return true;
}

static bool have_same_extents(const struct nest *n, const struct nest_statement *a,
                              const struct nest_statement *b)
{
    bool same = a->n_axes == b->n_axes;
    for (uint32_t i = 0; same && i < a->n_axes; i++)
        same = n->axes.at[a->axes[i]].extent == n->axes.at[b->axes[i]].extent;
    return same;
}

// The index with the axes of one loop in place of another's.
static struct nest_index renamed(const struct nest *n, const struct nest_index *x,
                                 const struct nest_statement *from,
                                 const struct nest_statement *to)
{
    struct nest_term *terms = arena_array(n->arena, struct nest_term, x->count + 1);
    for (uint32_t i = 0; i < x->count; i++) {
        terms[i] = x->terms[i];
        for (uint32_t k = 0; k < from->n_axes && !terms[i].is_value; k++)
            if (x->terms[i].id == from->axes[k])
                terms[i].id = to->axes[k];
    }
    return nest_index_make(n->arena, x->constant, (int)x->count, terms);
}

// Whether what the two maps do to one buffer, if one of them puts it, is at one index.
static bool are_apart(const struct nest *n, const struct nest_statement *a,
                      const struct nest_statement *b)
{
    nest_for_each (s, n, a->body)
        nest_for_each (t, n, b->body) {
            bool meet = s->buffer != NEST_NONE && s->buffer == t->buffer &&
                        (s->kind == NEST_PUT || t->kind == NEST_PUT);
            if (!meet)
                continue;
            struct nest_index index = renamed(n, &t->index, b, a);
            if (!nest_index_equal(&s->index, &index))
                return false;
        }
    return true;
}

// Moves the statements of the second into the first.
static void fuse(struct nest *n, const struct nest_statement *a, const struct nest_statement *b)
{
    const struct nest_block body = n->blocks.at[b->body];
    for (uint32_t i = 0; i < body.statements.count; i++) {
        struct nest_statement *t = &n->statements.at[body.statements.at[i]];
        t->index = renamed(n, &t->index, b, a);
        vec_push(n->arena, &n->blocks.at[a->body].statements, body.statements.at[i]);
    }
}

// Whether a statement may stand in front of the map instead of behind.
static bool may_pass(const struct nest *n, const struct nest_statement *s,
                     const struct nest_statement *map)
{
    nest_for_each (t, n, map->body)
        if (s->kind == NEST_LOAD && t->kind == NEST_PUT && t->buffer == s->buffer)
            return false;
    return nest_is_scalar(s);
}

static void fuse_block(struct nest *n, struct nest_block *b)
{
    nest_id *out = arena_array(n->arena, nest_id, b->statements.count + 1);
    uint32_t count = 0, map = NEST_NONE; // where in out the last map stands
    for (uint32_t i = 0; i < b->statements.count; i++) {
        nest_id id = b->statements.at[i];
        const struct nest_statement *s = nest_statement_at(n, id);
        const struct nest_statement *last =
            map == NEST_NONE ? NULL : nest_statement_at(n, out[map]);
        bool is_map = is_of_elements(n, s);
        if (last && is_map && have_same_extents(n, last, s) && are_apart(n, last, s) &&
            nest_work(n, last->body) + nest_work(n, s->body) <= COST_EXPANDED_OPS) {
            fuse(n, last, s);
            continue;
        }
        if (last && may_pass(n, s, last)) {
            out[count++] = out[map];
            out[map++] = id;
            continue;
        }
        map = is_map ? count : NEST_NONE;
        out[count++] = id;
    }
    for (uint32_t i = 0; i < count; i++)
        b->statements.at[i] = out[i];
    b->statements.count = count;
}

// By kernel: whether in some step two of its memories meet, so that an element of one may be another of another.
static bool *find_meeting(const struct nest_program *p, struct arena *scratch)
{
    bool *meets = arena_array(scratch, bool, p->nests.count + 1);
    for (uint32_t i = 0; i < p->steps.count; i++) {
        const struct nest_step *t = &p->steps.at[i];
        for (uint32_t a = 0; t->kind == NEST_STEP_KERNEL && a < t->n_memories; a++)
            for (uint32_t b = 0; b < a && !meets[t->nest]; b++)
                meets[t->nest] = nest_memory_meets(p, t->memories[a], t->memories[b]);
    }
    return meets;
}

void schedule_fuse_maps(struct nest_program *p, struct arena *scratch)
{
    const bool *meets = find_meeting(p, scratch);
    for (uint32_t i = 0; i < p->nests.count; i++) {
        struct nest *n = p->nests.at[i];
        for (uint32_t k = 0; k < n->blocks.count && !meets[i] && nest_has_time(n, 0); k++)
            fuse_block(n, &n->blocks.at[k]);
    }
}
