// SPDX-License-Identifier: Apache-2.0
// Where locals of a point of a network are: those that are of no use at the same time may be in
// the same place.
#include "codegen/gpu/network.h"

struct life {
    uint32_t first, last; // statements of the body
    bool is_used;
    int64_t at, bytes;
};

static void note(struct gpu_network *w, struct life *lives, nest_id buffer, uint32_t at,
                 bool is_written)
{
    struct life *x = &lives[buffer];
    if (is_written)
        w->written[buffer] = at;
    if (!x->bytes)
        return;
    x->first = x->is_used ? x->first : at;
    x->last = at;
    x->is_used = true;
}

static void find_lives(const struct cg_lowering *l, struct gpu_network *w, struct life *lives,
                       const struct nest_statement *s, uint32_t at)
{
    if (s->kind == NEST_LOAD || s->kind == NEST_PUT || s->kind == NEST_CONTRACT)
        note(w, lives, s->buffer, at, s->kind != NEST_LOAD);
    for (int k = 0; k < 2 && s->kind == NEST_CONTRACT; k++)
        note(w, lives, s->source[k], at, false);
    if (s->kind != NEST_MAP && s->kind != NEST_FOLD)
        return;
    nest_for_each (t, l->nest, s->body)
        find_lives(l, w, lives, t, at);
}

// The lowest place that is free while the local lives.
static int64_t find_place(const struct life *lives, nest_id n, const struct life *x)
{
    int64_t at = 0;
    for (nest_id i = 0; i < n; i++) {
        const struct life *y = &lives[i];
        bool meets = y->is_used && y->first <= x->last && x->first <= y->last;
        if (meets && at < y->at + y->bytes && y->at < at + x->bytes) {
            at = y->at + y->bytes;
            i = (nest_id)-1; // from the beginning
        }
    }
    return at;
}

int64_t gpu_network_places(struct cg_lowering *l, struct gpu_network *w, const int64_t *bytes,
                           int64_t *at)
{
    const struct nest_block *b = &l->nest->blocks.at[w->fold->body];
    uint32_t n = l->nest->buffers.count;
    struct life *lives = arena_array(l->arena, struct life, n + 1);
    for (nest_id i = 0; i < n; i++)
        lives[i].bytes = (bytes[i] + 15) / 16 * 16;
    for (uint32_t i = 0; i < b->statements.count; i++) {
        const struct nest_statement *s = cg_statement(l, b->statements.at[i]);
        if (!gpu_is_products(l, s))
            find_lives(l, w, lives, s, i);
    }
    int64_t total = 0;
    for (nest_id i = 0; i < n; i++) {
        if (!lives[i].is_used)
            continue;
        at[i] = lives[i].at = find_place(lives, i, &lives[i]);
        if (lives[i].at + lives[i].bytes > total)
            total = lives[i].at + lives[i].bytes;
    }
    return total;
}
