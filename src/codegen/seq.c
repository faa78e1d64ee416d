// SPDX-License-Identifier: Apache-2.0
// Loops over time.
#include "codegen/lower.h"

static void store_carries(struct cg_lowering *l, uint32_t n, const struct cg_value *slots,
                          const nest_id *from)
{
    struct cg_value *v = arena_array(l->arena, struct cg_value, n + 1);
    for (uint32_t i = 0; i < n; i++)
        v[i] = cg_wide_value(l, l->values[from[i]]);
    for (uint32_t i = 0; i < n; i++) {
        LLVMBuildStore(l->m.b, v[i].re, slots[i].re);
        if (v[i].im)
            LLVMBuildStore(l->m.b, v[i].im, slots[i].im);
    }
}

static void load_carries(struct cg_lowering *l, uint32_t n, const struct cg_value *slots,
                         nest_id to)
{
    for (uint32_t i = 0; i < n; i++) {
        struct cg_value v = {0};
        LLVMTypeRef type = LLVMGetAllocatedType(slots[i].re);
        v.re = LLVMBuildLoad2(l->m.b, type, slots[i].re, "");
        if (slots[i].im)
            v.im = LLVMBuildLoad2(l->m.b, type, slots[i].im, "");
        l->values[to + i] = v;
    }
}

// One step after the other; what is carried stands in memory that is promoted to registers.
void cg_lower_seq(struct cg_lowering *l, const struct nest_statement *s)
{
    if (cg_lower_updates(l, s))
        return;
    LLVMBuilderRef b = l->m.b;
    int64_t n = cg_extent(l, s);
    struct cg_value *slots = arena_array(l->arena, struct cg_value, s->n_in + 1);
    for (uint32_t i = 0; i < s->n_in; i++) {
        struct cg_value v = cg_wide_value(l, l->values[s->in[i]]);
        slots[i].re = cg_alloca(l, LLVMTypeOf(v.re), 1);
        slots[i].im = v.im ? cg_alloca(l, LLVMTypeOf(v.im), 1) : NULL;
    }
    store_carries(l, s->n_in, slots, s->in);
    struct cg_loop loop =
        cg_loop_open(l, cg_int(l->module, 0), cg_int(l->module, n), cg_int(l->module, 1));
    l->axes[s->axes[0]] =
        s->reverse ? LLVMBuildSub(b, cg_int(l->module, n - 1), loop.index, "") : loop.index;
    load_carries(l, s->n_in, slots, s->first_carry);
    cg_lower_block(l, s->body);
    store_carries(l, s->n_in, slots, s->yields);
    cg_loop_close(l, &loop);
    load_carries(l, s->n_in, slots, s->result);
}
