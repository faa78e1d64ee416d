// SPDX-License-Identifier: Apache-2.0
// Attention and its gradient (passes/attention.h), whose emitters copy rows 16 bytes at a time.
#include "map/gpu.h"

#include "passes/attention.h"

static bool are_aligned(const struct map_gpu *m, const struct nest_statement *const *all, int n)
{
    for (int i = 0; i < n; i++)
        if (!m->is_aligned[all[i]->buffer])
            return false;
    return true;
}

bool map_attention_choose(const struct map_gpu *m, struct nest *n)
{
    struct attention a;
    struct attention_gradient g;
    if (attention_find(n, &a)) {
        const struct nest_statement *all[] = {a.q, a.k, a.v, a.put};
        n->special = are_aligned(m, all, 4) ? NEST_ATTENTION : NEST_ORDINARY;
    } else if (attention_find_gradient(n, &g)) {
        const struct nest_statement *all[] = {g.a.q, g.a.k, g.a.v, g.dy, g.dq, g.dk, g.dv};
        n->special = are_aligned(m, all, 7) ? NEST_ATTENTION_GRADIENT : NEST_ORDINARY;
    }
    return n->special != NEST_ORDINARY;
}
