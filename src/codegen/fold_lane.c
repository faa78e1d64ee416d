// SPDX-License-Identifier: Apache-2.0
// Folds in a loop over points whose lanes are the points: where what a point folds lies
// together, as the row of a matrix does, each lane is folded by itself, along the row, and only
// the results are put side by side.
//
//     par i < 256 {                      for 16 places of i:
//       fold k < 256 { w[256*i + k] }        16 times: a row, 16 elements at a time
//       tanh, put                            tanh, put, 16 at a time
//     }
#include "codegen/lower.h"

// A value that the body of the loop makes differs from lane to lane, but for constants.
static bool is_of_body(const struct cg_lowering *l, const struct nest_block *body,
                       nest_id value)
{
    nest_id by = l->nest->values.at[value].statement;
    for (uint32_t i = 0; i < body->statements.count; i++)
        if (body->statements.at[i] == by)
            return cg_statement(l, by)->kind != NEST_CONST;
    return false;
}

static bool writes(const struct cg_lowering *l, const struct nest_block *b, nest_id buffer)
{
    for (uint32_t i = 0; i < b->statements.count; i++) {
        const struct nest_statement *s = cg_statement(l, b->statements.at[i]);
        const uint32_t inside[] = {s->body, s->other};
        if ((s->kind == NEST_PUT || s->kind == NEST_CONTRACT) && s->buffer == buffer)
            return true;
        for (int k = 0; k < 2; k++)
            if (inside[k] < l->nest->blocks.count &&
                writes(l, &l->nest->blocks.at[inside[k]], buffer))
                return true;
    }
    return false;
}

// A local that the body of the loop writes: each lane has its own, between those of the others.
static bool is_own_of_lanes(const struct cg_lowering *l, const struct nest_block *body,
                            nest_id buffer)
{
    return l->nest->buffers.at[buffer].role == NEST_LOCAL && writes(l, body, buffer);
}

static bool uses_body(const struct cg_lowering *l, const struct nest_block *body,
                      uint32_t block)
{
    if (block >= l->nest->blocks.count)
        return false;
    const struct nest_block *b = &l->nest->blocks.at[block];
    for (uint32_t i = 0; i < b->statements.count; i++) {
        const struct nest_statement *s = cg_statement(l, b->statements.at[i]);
        bool uses = s->kind != NEST_OP && s->kind != NEST_CONST && s->kind != NEST_INDEX &&
                    s->kind != NEST_LOAD; // anything else is not looked into
        uses |= s->kind == NEST_LOAD && is_own_of_lanes(l, body, s->buffer);
        for (uint32_t k = 0; k < s->n_in; k++)
            uses |= is_of_body(l, body, s->in[k]);
        for (uint32_t k = 0; k < s->index.count; k++)
            uses |= s->index.terms[k].is_value && is_of_body(l, body, s->index.terms[k].id);
        if (uses ||
            (s->guard != NEST_NONE && s->kind == NEST_LOAD && is_of_body(l, body, s->guard)))
            return true;
    }
    return false;
}

bool cg_may_fold_by_lane(const struct cg_lowering *l, const struct nest_block *body,
                         const struct nest_statement *fold)
{
    for (uint32_t i = 0; i < fold->n_combines; i++) {
        const struct nest_combine *c = &fold->combines[i];
        if (nest_combine_results(c->op) != 1 || c->dtype == JOT_BOOL ||
            dtype_is_complex(c->dtype))
            return false;
        for (uint32_t k = 0; k < c->n; k++)
            if (is_of_body(l, body, c->value[k]))
                return false;
    }
    return fold->n_combines && !uses_body(l, body, fold->body);
}

// How many lanes count.
static LLVMValueRef count_lanes(struct cg_lowering *l)
{
    if (!l->mask)
        return cg_int(l->module, l->lanes);
    LLVMTypeRef bits = LLVMIntTypeInContext(l->module->context, l->lanes);
    LLVMValueRef set = LLVMBuildBitCast(l->m.b, l->mask, bits, "");
    set = cg_intrinsic(&l->m, "llvm.ctpop", bits, 1, &set);
    return LLVMBuildZExtOrBitCast(l->m.b, set, l->module->i64, "");
}

void cg_lower_fold_by_lane(struct cg_lowering *l, nest_id id)
{
    const struct nest_statement *s = cg_statement(l, id);
    LLVMValueRef *places = arena_array(l->arena, LLVMValueRef, s->n_results + 1);
    LLVMTypeRef *types = arena_array(l->arena, LLVMTypeRef, s->n_results + 1);
    LLVMBuilderRef b = l->m.b;
    struct cg_lowering outer = *l;
    nest_id axis = l->vector_axis;
    LLVMValueRef index = l->axes[axis], count = count_lanes(l);
    for (uint32_t i = 0; i < s->n_results; i++) {
        LLVMTypeRef lane = cg_lane_type(l->module, l->nest->values.at[s->result + i].dtype);
        types[i] = cg_with_lanes(lane, l->lanes);
        places[i] = cg_alloca(l, types[i], 1);
        if (l->mask)
            LLVMBuildStore(b, LLVMConstNull(types[i]), places[i]);
    }
    l->lanes = 1;
    l->vector_axis = NEST_NONE;
    l->mask = l->tail = NULL;
    struct cg_loop loop = cg_loop_open(l, cg_int(l->module, 0), count, cg_int(l->module, 1));
    l->axes[axis] = LLVMBuildAdd(b, index, loop.index, "");
    cg_lower_fold(l, id);
    for (uint32_t i = 0; i < s->n_results; i++) {
        LLVMTypeRef lane = LLVMGetElementType(types[i]);
        LLVMBuildStore(b, l->values[s->result + i].re, cg_at(l, lane, places[i], loop.index));
    }
    cg_loop_close(l, &loop);
    l->lanes = outer.lanes;
    l->vector_axis = axis;
    l->vector_loop = outer.vector_loop;
    l->mask = outer.mask;
    l->tail = outer.tail;
    l->axes[axis] = index;
    for (uint32_t i = 0; i < s->n_results; i++)
        l->values[s->result + i] =
            (struct cg_value){LLVMBuildLoad2(b, types[i], places[i], ""), NULL};
}
