// SPDX-License-Identifier: Apache-2.0
// What a step of a loop over time reads is read one step before, so that a thread does not wait for it.
//
//     seq j @early 1 { a = load x[j]; ... }    becomes    a = load x[0]; seq j { b = load x[j + 1]; ...; a = b }
//
// The last step reads its own again.
#include "codegen/gpu/gpu.h"

struct gpu_early gpu_early_of(struct cg_lowering *l, const struct nest_statement *seq)
{
    struct gpu_early e = {0};
    struct map_gpu m = gpu_map_of(l);
    if (!l->nest->axes.at[seq->axes[0]].early || l->together)
        return e;
    const struct nest_block *b = &l->nest->blocks.at[seq->body];
    e.statements = arena_array(l->arena, nest_id, b->statements.count + 1);
    nest_for_each (s, l->nest, seq->body)
        if (map_is_early(&m, seq, s))
            e.statements[e.n++] = nest_id_of(l->nest, s);
    e.values = arena_array(l->arena, struct cg_value, e.n + 1);
    return e;
}

void gpu_early_read(struct cg_lowering *l, const struct gpu_early *e, struct cg_value *out)
{
    for (uint32_t i = 0; i < e->n; i++) {
        cg_lower_statement(l, e->statements[i]);
        out[i] = l->values[cg_statement(l, e->statements[i])->result];
    }
}

void gpu_early_open(struct cg_lowering *l, struct gpu_early *e, LLVMBasicBlockRef before)
{
    for (uint32_t i = 0; i < e->n; i++)
        e->values[i] = cg_phi(l, e->values[i], before);
}

void gpu_early_define(struct cg_lowering *l, const struct gpu_early *e)
{
    for (uint32_t i = 0; i < e->n; i++) {
        l->values[cg_statement(l, e->statements[i])->result] = e->values[i];
        l->hoisted[e->statements[i]] = true;
    }
}

void gpu_early_close(struct cg_lowering *l, const struct gpu_early *e,
                     const struct cg_value *next, LLVMBasicBlockRef latch)
{
    for (uint32_t i = 0; i < e->n; i++) {
        cg_phi_add(e->values[i], next[i], latch);
        l->hoisted[e->statements[i]] = false;
    }
}
