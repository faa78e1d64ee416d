// SPDX-License-Identifier: Apache-2.0
// Branches.  One predicate for all lanes is a branch.  Where lanes differ, cheap branches are both
// computed and chosen from; of others those are skipped that no lane takes.
#include "codegen/branch.h"
#include "codegen/access.h"
#include "codegen/cases.h"
#include "codegen/emit.h"
#include "codegen/loop.h"
#include "codegen/lower.h"
#include "codegen/scalar.h"
#include "codegen/turn.h"
#include "codegen/types.h"

#include "ir/cost.h"

LLVMValueRef cg_any(struct cg_lowering *l, LLVMValueRef mask)
{
    unsigned lanes = cg_lanes_of(mask);
    if (lanes == 1)
        return mask;
    if (l->gpu)
        return cg_any_lane(&l->m, mask);
    LLVMTypeRef word = LLVMIntTypeInContext(l->module->context, lanes);
    return LLVMBuildICmp(l->m.b, LLVMIntNE, LLVMBuildBitCast(l->m.b, mask, word, ""),
                         LLVMConstNull(word), "");
}

struct cg_value cg_phi(struct cg_lowering *l, struct cg_value from, LLVMBasicBlockRef block)
{
    struct cg_value phi = {LLVMBuildPhi(l->m.b, LLVMTypeOf(from.re), ""), NULL};
    if (from.im)
        phi.im = LLVMBuildPhi(l->m.b, LLVMTypeOf(from.im), "");
    cg_phi_add(phi, from, block);
    return phi;
}

void cg_phi_add(struct cg_value phi, struct cg_value from, LLVMBasicBlockRef block)
{
    LLVMAddIncoming(phi.re, &from.re, &block, 1);
    if (phi.im)
        LLVMAddIncoming(phi.im, &from.im, &block, 1);
}

struct cg_value cg_merge(struct cg_lowering *l, struct cg_value a, LLVMBasicBlockRef from_a,
                         struct cg_value b, LLVMBasicBlockRef from_b)
{
    struct cg_value phi = cg_phi(l, a, from_a);
    cg_phi_add(phi, b, from_b);
    return phi;
}

static bool is_cheap(const struct cg_lowering *l, uint32_t block)
{
    int cost = 0;
    if (block == NEST_NONE)
        return true;
    nest_for_each (s, l->nest, block) {
        if (s->kind != NEST_OP && s->kind != NEST_CONST && s->kind != NEST_INDEX)
            return false;
        cost += s->kind == NEST_OP ? cost_of_op(s->op, s->dtype) : 0;
    }
    return cost <= COST_JUMP;
}

static struct cg_value nothing(struct cg_value like)
{
    return (struct cg_value){LLVMConstNull(LLVMTypeOf(like.re)),
                             like.im ? LLVMConstNull(LLVMTypeOf(like.im)) : NULL};
}

// One of the branches for the lanes of a mask; what it yields goes to out, of as many lanes.
static void lower_side(struct cg_lowering *l, uint32_t block, LLVMValueRef mask, bool skips,
                       uint32_t n, const nest_id *yields, struct cg_value *out)
{
    LLVMBuilderRef b = l->m.b;
    LLVMValueRef outer = l->vector.mask;
    struct cg_branch branch = {0};
    LLVMBasicBlockRef before = NULL;
    l->vector.mask = mask;
    if (skips) {
        LLVMValueRef any = cg_any(l, mask);
        before = LLVMGetInsertBlock(b);
        branch = cg_if_open(l, any);
    }
    if (block != NEST_NONE)
        cg_lower_block(l, block);
    for (uint32_t i = 0; i < n; i++)
        out[i] = cg_wide_value(l, l->values[yields[i]]);
    LLVMBasicBlockRef after = LLVMGetInsertBlock(b);
    l->vector.mask = outer;
    if (!skips)
        return;
    cg_if_close(l, &branch);
    for (uint32_t i = 0; i < n; i++)
        out[i] = cg_merge(l, out[i], after, nothing(out[i]), before);
}

static void lower_lanes(struct cg_lowering *l, const struct nest_statement *s)
{
    LLVMBuilderRef b = l->m.b;
    uint32_t n = s->n_results;
    LLVMValueRef p = l->values[s->in[0]].re, not_p = LLVMBuildNot(b, p, "");
    struct cg_value *then = arena_array(l->arena, struct cg_value, 2 * n + 1);
    bool cheap = is_cheap(l, s->body) && is_cheap(l, s->other);
    LLVMValueRef outer = l->vector.mask;
    lower_side(l, s->body, outer ? LLVMBuildAnd(b, outer, p, "") : p, !cheap, n, s->yields,
               then);
    if (s->other != NEST_NONE)
        lower_side(l, s->other, outer ? LLVMBuildAnd(b, outer, not_p, "") : not_p, !cheap, n,
                   s->yields + n, then + n);
    for (uint32_t i = 0; i < n; i++)
        l->values[s->result + i] = cg_select(&l->m, p, then[i], then[n + i]);
}

void cg_take_yields(struct cg_lowering *l, const struct nest_statement *s,
                    const nest_id *yields, struct cg_value *out)
{
    for (struct cg_turn t = {0}; cg_turn_next(l, &t);)
        for (uint32_t i = 0; i < s->n_results; i++) {
            struct cg_value v = l->values[yields[i]];
            *out++ = cg_is_wide(l, s->result + i) ? cg_wide_value(l, v) : v;
        }
}

void cg_lower_if(struct cg_lowering *l, const struct nest_statement *s)
{
    LLVMBuilderRef b = l->m.b;
    LLVMValueRef p = l->values[s->in[0]].re;
    if (cg_lanes_of(p) > 1) {
        lower_lanes(l, s);
        return;
    }
    if (cg_lower_cases(l, s))
        return;
    uint32_t n = s->n_results;
    size_t all = (size_t)n * CG_CHUNKS + 1;
    struct cg_value *then = arena_array(l->arena, struct cg_value, all);
    struct cg_value *otherwise = arena_array(l->arena, struct cg_value, all);
    struct cg_branch branch = cg_if_open(l, p);
    cg_lower_block(l, s->body);
    cg_take_yields(l, s, s->yields, then);
    LLVMBasicBlockRef from_then = LLVMGetInsertBlock(b);
    cg_else_open(l, &branch);
    if (s->other != NEST_NONE)
        cg_lower_block(l, s->other);
    cg_take_yields(l, s, s->yields + n, otherwise);
    LLVMBasicBlockRef from_else = LLVMGetInsertBlock(b);
    cg_if_close(l, &branch);
    for (struct cg_turn t = {0}; cg_turn_next(l, &t);)
        for (uint32_t i = 0; i < n; i++)
            l->values[s->result + i] = cg_merge(l, *then++, from_then, *otherwise++, from_else);
}
