// SPDX-License-Identifier: Apache-2.0
// With which axes of a loop values differ.
//
//     par i < 1000, k < 8 {
//       %1 = load n[i] : i32             differs with i
//       %2 = load x[8*%1 + k] : f32      with i and k; along k its elements lie together
//
// A fixpoint over what loops carry.  An axis is a bit of its number: that two have the same one makes values
// differ with more axes than they do.
#include "map/map.h"

struct search {
    const struct nest *n;
    uint64_t *varies;
    bool changed;
};

static uint64_t bit_of(nest_id axis) { return UINT64_C(1) << (axis % 64); }

static void mark(struct search *s, nest_id first, uint32_t count, uint64_t axes)
{
    for (uint32_t i = 0; i < count; i++) {
        s->changed |= (axes & ~s->varies[first + i]) != 0;
        s->varies[first + i] |= axes;
    }
}

static uint64_t with_uses(const struct search *s, const struct nest_statement *t)
{
    uint64_t axes = 0;
    nest_for_uses (v, t)
        axes |= s->varies[v];
    for (uint32_t i = 0; i < t->index.count; i++)
        axes |= t->index.terms[i].is_value ? 0 : bit_of(t->index.terms[i].id);
    return axes;
}

// What loops and branches carry and give differs with all that goes into it.
static void search_block(struct search *s, uint32_t block)
{
    nest_for_each (t, s->n, block) {
        search_block(s, t->body);
        search_block(s, t->other);
        uint64_t axes = with_uses(s, t);
        // Who has filled a local is not looked for.
        if (t->kind == NEST_LOAD && s->n->buffers.at[t->buffer].role == NEST_LOCAL)
            axes = UINT64_MAX;
        if (t->first_carry != NEST_NONE)
            mark(s, t->first_carry, t->n_in, axes);
        mark(s, t->result, t->n_results, axes);
    }
}

static bool has_data_indices(const struct nest *n, uint32_t block)
{
    nest_for_below (s, n, block)
        if (nest_index_has_values(&s->index))
            return true;
    return false;
}

struct map_variation map_variation_of(const struct nest *n, uint32_t body)
{
    struct search s = {.n = n};
    if (!has_data_indices(n, body))
        return (struct map_variation){0};
    s.varies = arena_array(n->arena, uint64_t, n->values.count + 1);
    do {
        s.changed = false;
        search_block(&s, body);
    } while (s.changed);
    return (struct map_variation){s.varies};
}

bool map_index_varies(const struct map_variation *v, const struct nest_index *x, nest_id axis)
{
    for (uint32_t i = 0; i < x->count; i++)
        if (x->terms[i].is_value && (!v->axes || v->axes[x->terms[i].id] & bit_of(axis)))
            return true;
    return false;
}
