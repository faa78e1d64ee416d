// SPDX-License-Identifier: Apache-2.0
// What is the same in all iterations of a loop is lowered before it.
#include "codegen/hoist.h"
#include "codegen/lower.h"
#include "codegen/turn.h"

struct loop {
    const nest_id *axes;
    int n_axes;
    bool *varies; // by value: differs from iteration to iteration
};

static bool uses_axes(const struct loop *p, const struct nest_index *x)
{
    for (int k = 0; k < p->n_axes; k++)
        if (nest_index_factor(x, p->axes[k]))
            return true;
    return false;
}

// The statement has no effect, and all that it reads is known outside the loop.
static bool is_uniform(const struct cg_lowering *l, const struct nest_statement *s,
                       const struct loop *p)
{
    if (s->kind == NEST_LOAD && l->nest->buffers.at[s->buffer].role != NEST_IN)
        return false;
    return nest_is_scalar(s) && !nest_takes(s, p->varies) && !uses_axes(p, &s->index);
}

static void hoist_block(struct cg_lowering *l, struct loop *p, uint32_t block)
{
    const struct nest_block *b = &l->nest->blocks.at[block];
    nest_id *kept = arena_array(l->arena, nest_id, b->statements.count + 1);
    uint32_t n = 0;
    nest_for_each (s, l->nest, block) {
        nest_id id = nest_id_of(l->nest, s);
        bool uniform = is_uniform(l, s, p);
        l->marks[id].is_hoisted = false;
        if (uniform)
            kept[n++] = id;
        for (uint32_t k = 0; !uniform && k < s->n_results; k++)
            p->varies[s->result + k] = true;
    }
    cg_lower_list(l, kept, n);
    for (uint32_t i = 0; i < n; i++)
        l->marks[kept[i]].is_hoisted = true;
}

void cg_hoist(struct cg_lowering *l, const nest_id *axes, int n_axes, nest_id first_carry,
              uint32_t n_carries, const uint32_t *blocks, int n_blocks)
{
    struct loop p = {.axes = axes, .n_axes = n_axes};
    p.varies = arena_array(l->arena, bool, l->nest->values.count + 1);
    for (uint32_t i = 0; i < n_carries; i++)
        p.varies[first_carry + i] = true;
    for (int i = 0; i < n_blocks; i++)
        hoist_block(l, &p, blocks[i]);
}

void cg_forget_hoisted(struct cg_lowering *l, uint32_t block)
{
    const struct nest_block *b = &l->nest->blocks.at[block];
    for (uint32_t i = 0; i < b->statements.count; i++)
        l->marks[b->statements.at[i]].is_hoisted = false;
}
