// SPDX-License-Identifier: Apache-2.0
// The threads of attention and its gradient (schedule/kernels/attention.h), which are products by tensor cores: `group` threads
// of a block multiply together, a warp or the four of a warpgroup, tiles of 16 rows, `turns` of which a group has.
// Their emitters copy rows 16 bytes at a time.
#include "map/gpu_attention.h"

#include "schedule/kernels/attention.h"

#define TILE 16        // rows of a product
#define PANEL 64       // elements that warpgroups have side by side
#define WARPS 4        // of a block
#define LEAST_GROUPS 2 // warpgroups of a block, of which a multiprocessor has two
#define MOST_GROUPS 3  // where sums of longer rows leave registers for one
#define MOST_TILES 2
#define GRADIENT_ROWS 32 // keys of a warp
#define GRADIENT_WARPS 8 // that have a block of keys, where there are many
#define GRADIENT_WAVES 8 // warps of a multiprocessor, which has as many blocks as that is

static bool are_aligned(const struct map_gpu *m, const struct nest_statement *const *all, int n)
{
    for (int i = 0; i < n; i++)
        if (!m->is_aligned[all[i]->buffer])
            return false;
    return true;
}

// Threads that multiply rows of the query's and the key's depth, and of so many columns.
static unsigned group_of(const struct map_gpu *m, const struct attention *a)
{
    const struct nest_axis *axes = m->nest->axes.at;
    bool is_whole = axes[a->depth].extent % PANEL == 0 && axes[a->column].extent % PANEL == 0;
    return m->has_warpgroups && is_whole ? MAP_WARPGROUP : GPU_WARP;
}

// Two tiles of queries of a warp share what is read of keys and values; they need many registers, and
// many queries to keep the GPU busy.
static void choose_threads(const struct map_gpu *m, struct nest *n, const struct attention *a)
{
    int64_t depth = n->axes.at[a->depth].extent, columns = n->axes.at[a->column].extent;
    bool is_long = depth > PANEL || columns > PANEL;
    unsigned group = group_of(m, a), tiles = 1, block = WARPS * GPU_WARP;
    if (group == MAP_WARPGROUP) {
        block = group * (is_long ? MOST_GROUPS : LEAST_GROUPS);
        n->threads[NEST_RESIDENT] = is_long ? 1 : 2;
    } else if (!is_long && nest_extent(n, a->loop) >= 2 * TILE * WARPS * GPU_MULTIPROCESSORS) {
        tiles = MOST_TILES;
    }
    n->special = NEST_ATTENTION;
    n->threads[NEST_BLOCK_THREADS] = block;
    n->threads[NEST_GROUP_THREADS] = group;
    struct nest_statement *loop = &n->statements.at[nest_id_of(n, a->loop)];
    loop->level = NEST_GROUP;
    loop->turns = tiles;
}

// The more keys a block of threads has, the fewer times dq is read and written; but each multiprocessor is to have a
// block.
static void choose_gradient(const struct map_gpu *m, struct nest *n,
                            const struct attention_gradient *g)
{
    const struct attention *a = &g->a;
    int64_t keys = n->axes.at[a->key].extent, batches = nest_extent(n, a->loop), size, blocks;
    int64_t most = GRADIENT_WARPS * GRADIENT_ROWS;
    bool is_many = batches * ((keys + most - 1) / most) >= GPU_MULTIPROCESSORS;
    bool is_even = (n->axes.at[a->depth].extent + TILE - 1) / TILE % 2 == 0;
    unsigned warps =
        is_many && keys > WARPS * GRADIENT_ROWS && is_even ? GRADIENT_WARPS : WARPS;
    size = warps * GRADIENT_ROWS;
    blocks = (keys + size - 1) / size;
    int64_t wanted = GPU_MULTIPROCESSORS * GRADIENT_WAVES / warps;
    int64_t splits = (wanted + batches / 2) / batches;
    splits = splits < 1 ? 1 : splits > blocks ? blocks : splits;
    n->special = NEST_ATTENTION_GRADIENT;
    n->threads[NEST_BLOCK_THREADS] = warps * GPU_WARP;
    n->threads[NEST_GROUP_THREADS] = group_of(m, a);
    n->threads[NEST_BLOCKS] = (unsigned)(splits * batches);
}

bool map_attention_choose(const struct map_gpu *m, struct nest *n)
{
    struct attention a;
    struct attention_gradient g;
    if (attention_find(n, &a)) {
        const struct nest_statement *all[] = {a.q, a.k, a.v, a.put};
        if (are_aligned(m, all, 4))
            choose_threads(m, n, &a);
    } else if (attention_find_gradient(n, &g)) {
        const struct nest_statement *all[] = {g.a.q, g.a.k, g.a.v, g.dy, g.dq, g.dk, g.dv};
        if (are_aligned(m, all, 7))
            choose_gradient(m, n, &g);
    }
    return n->special != NEST_ORDINARY;
}
