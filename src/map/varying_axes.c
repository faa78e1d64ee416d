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

static uint64_t with_values(const struct search *s, uint32_t count, const nest_id *values)
{
    uint64_t axes = 0;
    for (uint32_t i = 0; i < count; i++)
        axes |= s->varies[values[i]];
    return axes;
}

static uint64_t with_index(const uint64_t *varies, const struct nest_index *x)
{
    uint64_t axes = 0;
    for (uint32_t i = 0; i < x->count; i++)
        axes |= x->terms[i].is_value ? varies[x->terms[i].id] : bit_of(x->terms[i].id);
    return axes;
}

static void search_block(struct search *s, uint32_t block);

// What loops and branches carry and give differs with all that goes into it.
static void search_inside(struct search *s, const struct nest_statement *t)
{
    search_block(s, t->body);
    search_block(s, t->other);
    uint64_t axes = with_values(s, t->n_in, t->in) | with_values(s, t->n_yields, t->yields);
    for (uint32_t i = 0; i < t->n_combines; i++)
        axes |= with_values(s, t->combines[i].n, t->combines[i].value);
    if (t->kind == NEST_SEQ || t->kind == NEST_WHILE)
        mark(s, t->first_carry, t->n_in, axes);
    if (t->n_results)
        mark(s, t->result, t->n_results, axes);
}

static void search_block(struct search *s, uint32_t block)
{
    nest_for_each (t, s->n, block) {
        if (t->body != NEST_NONE || t->other != NEST_NONE) {
            search_inside(s, t);
            continue;
        }
        uint64_t axes = with_values(s, t->n_in, t->in) | with_index(s->varies, &t->index);
        if (t->guard != NEST_NONE)
            axes |= s->varies[t->guard];
        // Who has filled a local is not looked for.
        if (t->kind == NEST_LOAD && s->n->buffers.at[t->buffer].role == NEST_LOCAL)
            axes = UINT64_MAX;
        for (uint32_t k = 0; k < t->n_combines; k++) // of a scan
            axes |= with_values(s, t->combines[k].n, t->combines[k].value);
        if (t->n_results)
            mark(s, t->result, t->n_results, axes);
    }
}

static bool has_places(const struct nest *n, uint32_t block)
{
    nest_for_each (s, n, block)
        if (nest_index_has_values(&s->index) || has_places(n, s->body) ||
            has_places(n, s->other))
            return true;
    return false;
}

struct map_variation map_variation_of(const struct nest *n, uint32_t body)
{
    struct search s = {.n = n};
    if (!has_places(n, body))
        return (struct map_variation){0};
    s.varies = arena_array(n->arena, uint64_t, n->values.count + 1);
    do {
        s.changed = false;
        search_block(&s, body);
    } while (s.changed);
    return (struct map_variation){s.varies};
}

bool map_place_varies(const struct map_variation *v, const struct nest_index *x, nest_id axis)
{
    for (uint32_t i = 0; i < x->count; i++)
        if (x->terms[i].is_value && (!v->axes || v->axes[x->terms[i].id] & bit_of(axis)))
            return true;
    return false;
}
