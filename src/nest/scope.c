// SPDX-License-Identifier: Apache-2.0
// Where locals live: the innermost loop with independent iterations around all uses.
#include "nest/nest.h"

struct search {
    const struct nest *nest;
    struct arena *arena;
    VEC(nest_id) path; // loops around the statement, outermost first
    nest_id **paths;   // by buffer: the loops around all uses so far
    uint32_t *depth;   // by buffer
    uint8_t *seen;
};

// The buffer is used under the first `depth` loops of the path.
static void use(struct search *s, nest_id buffer, uint32_t depth)
{
    if (!s->seen[buffer]) {
        s->seen[buffer] = 1;
        s->paths[buffer] = arena_copy(s->arena, s->path.at, depth * sizeof(nest_id));
        s->depth[buffer] = depth;
        return;
    }
    uint32_t n = 0;
    while (n < depth && n < s->depth[buffer] && s->paths[buffer][n] == s->path.at[n])
        n++;
    s->depth[buffer] = n;
}

static void search_block(struct search *s, uint32_t block)
{
    nest_for_each (t, s->nest, block) {
        nest_id id = nest_id_of(s->nest, t);
        uint32_t depth = s->path.count;
        // What accumulates over a loop is stored behind it.
        for (uint32_t k = 0; t->fold != NEST_NONE && k < s->path.count; k++)
            if (s->path.at[k] == t->fold)
                depth = k;
        nest_for_buffers (b, t)
            use(s, b, depth);
        vec_push(s->arena, &s->path, id);
        search_block(s, t->body);
        search_block(s, t->other);
        s->path.count--;
    }
}

static bool has_independent_iterations(enum nest_kind kind)
{
    return kind == NEST_PAR || kind == NEST_MAP || kind == NEST_FOLD || kind == NEST_SCAN;
}

void nest_local_scopes(const struct nest *n, nest_id *out)
{
    struct arena_mark mark = arena_mark(n->arena);
    struct search s = {
        .nest = n,
        .arena = n->arena,
        .paths = arena_array(n->arena, nest_id *, n->buffers.count + 1),
        .depth = arena_array(n->arena, uint32_t, n->buffers.count + 1),
        .seen = arena_array(n->arena, uint8_t, n->buffers.count + 1),
    };
    search_block(&s, 0);
    for (uint32_t b = 0; b < n->buffers.count; b++) {
        uint32_t depth = n->buffers.at[b].role == NEST_LOCAL ? s.depth[b] : 0;
        while (depth &&
               !has_independent_iterations(n->statements.at[s.paths[b][depth - 1]].kind))
            depth--;
        out[b] = depth ? s.paths[b][depth - 1] : NEST_NONE;
    }
    arena_rewind(n->arena, mark);
}
