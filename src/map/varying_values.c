// SPDX-License-Identifier: Apache-2.0
// What differs from element to element of an axis: a fixpoint over what loops carry.
//
// A value that does not differ stays scalar through all loops: the trip counter, what is made of
// times alone, keys of random numbers that all lanes share.
#include "map/map.h"

#include <string.h>

struct search {
    const struct nest *n;
    nest_id axis;
    bool *varies;
    const bool *own; // by buffer: a local of which every lane has one
    bool changed;
};

static void mark(struct search *s, nest_id value)
{
    if (value == NEST_NONE || s->varies[value])
        return;
    s->varies[value] = true;
    s->changed = true;
}

static void search_block(struct search *s, uint32_t block);

// Carries vary with what they start from and with what a trip makes of them; those of a while also
// when lanes end at different times.
static void search_carries(struct search *s, const struct nest_statement *t, uint32_t first)
{
    bool ends_apart = first && s->varies[t->yields[0]];
    for (uint32_t i = 0; i < t->n_in; i++) {
        if (ends_apart || s->varies[t->in[i]] || s->varies[t->yields[first + i]])
            mark(s, t->first_carry + i);
        if (s->varies[t->first_carry + i])
            mark(s, t->result + i);
    }
}

static void search_if(struct search *s, const struct nest_statement *t)
{
    for (uint32_t i = 0; i < t->n_results; i++)
        if (s->varies[t->in[0]] || s->varies[t->yields[i]] ||
            s->varies[t->yields[t->n_results + i]])
            mark(s, t->result + i);
}

static bool is_simple(enum nest_kind kind)
{
    return kind == NEST_OP || kind == NEST_INDEX || kind == NEST_LOAD;
}

static void search_statement(struct search *s, const struct nest_statement *t)
{
    if (t->kind == NEST_PUT || t->kind == NEST_CONST)
        return;
    if (is_simple(t->kind)) {
        bool load = t->kind == NEST_LOAD;
        if (nest_takes(t, s->varies) || nest_index_factor(&t->index, s->axis) ||
            (load && s->own[t->buffer]))
            for (uint32_t i = 0; i < t->n_results; i++)
                mark(s, t->result + i);
        return;
    }
    search_block(s, t->body);
    search_block(s, t->other);
    if (t->kind == NEST_SEQ || t->kind == NEST_WHILE)
        search_carries(s, t, t->kind == NEST_WHILE);
    else if (t->kind == NEST_IF)
        search_if(s, t);
    else // folds and scans keep an accumulator for each lane
        for (uint32_t i = 0; i < t->n_results; i++)
            mark(s, t->result + i);
}

static void search_block(struct search *s, uint32_t block)
{
    nest_for_each (t, s->n, block)
        search_statement(s, t);
}

// Adds the uses of each buffer in the block; a put that accumulates over the loop around it is stored
// behind.
static void add_uses(const struct nest *n, uint32_t block, nest_id loop, uint32_t *uses)
{
    nest_for_below (s, n, block) {
        bool accumulates = s->kind == NEST_PUT && s->op && s->fold == loop;
        nest_for_buffers (b, s)
            uses[b] += !accumulates;
    }
}

bool map_is_inside(const struct nest *nest, struct arena *arena, struct map_uses *u,
                   nest_id buffer, nest_id loop)
{
    uint32_t n = nest->buffers.count + 1;
    if (!u->all) {
        u->all = arena_array(arena, uint32_t, n);
        u->inside = arena_array(arena, uint32_t, n);
        u->loop = NEST_NONE;
        add_uses(nest, 0, NEST_NONE, u->all);
    }
    if (u->loop != loop) {
        const struct nest_statement *s = nest_statement_at(nest, loop);
        memset(u->inside, 0, n * sizeof *u->inside);
        add_uses(nest, s->body, loop, u->inside);
        add_uses(nest, s->other, loop, u->inside);
        u->loop = loop;
    }
    return u->inside[buffer] == u->all[buffer];
}

const bool *map_varies(const struct nest *n, struct arena *arena, struct map_uses *uses,
                       nest_id loop, nest_id axis)
{
    bool *own = arena_array(arena, bool, n->buffers.count + 1);
    for (uint32_t i = 0; i < n->buffers.count; i++)
        own[i] = n->buffers.at[i].role == NEST_LOCAL && map_is_inside(n, arena, uses, i, loop);
    struct search s = {.n = n,
                       .axis = axis,
                       .own = own,
                       .varies = arena_array(arena, bool, n->values.count + 1)};
    do {
        s.changed = false;
        search_block(&s, nest_statement_at(n, loop)->body);
    } while (s.changed);
    return s.varies;
}
