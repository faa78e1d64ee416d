// SPDX-License-Identifier: Apache-2.0
// Loops that end by a test.
//
// Lanes that end by themselves have a mask, with the carries: a step counts for lanes whose test
// held every time, and puts for no others.  Of several vectors side by side each skips what it has
// finished, so that the last one turns as quickly as if it were alone.
//
//     loop {
//       for each vector: if (any active) { active &= test; if (any active) carry = step(carry) }
//     } while (any active of any vector)
#include "codegen/lower.h"

// One vector's part of the loop.
struct part {
    LLVMValueRef mask;
    LLVMValueRef lives; // a bool: some lane is active
    struct cg_value *carries;
};

static struct cg_value *new_values(struct cg_lowering *l, uint32_t n)
{
    return arena_array(l->arena, struct cg_value, n + 1);
}

static void take(struct cg_lowering *l, const struct nest_statement *s, const nest_id *from,
                 struct cg_value *out)
{
    for (uint32_t i = 0; i < s->n_in; i++) {
        struct cg_value v = l->values[from[i]];
        out[i] = cg_is_wide(l, s->first_carry + i) ? cg_wide_value(l, v) : v;
    }
}

static void set(struct cg_lowering *l, nest_id first, uint32_t n, const struct cg_value *from)
{
    for (uint32_t i = 0; i < n; i++)
        l->values[first + i] = from[i];
}

static LLVMBasicBlockRef new_block(struct cg_lowering *l)
{
    return LLVMAppendBasicBlockInContext(l->module->context, l->function, "");
}

// All lanes take as many steps: a loop whose test is one bool.
static void lower_as_one(struct cg_lowering *l, const struct nest_statement *s,
                         const struct part *init, struct part *parts)
{
    LLVMBuilderRef b = l->m.b;
    uint32_t n = s->n_in;
    LLVMBasicBlockRef before = LLVMGetInsertBlock(b), head = new_block(l), step = new_block(l),
                      exit = new_block(l);
    LLVMBuildBr(b, head);
    LLVMPositionBuilderAtEnd(b, head);
    struct part *p = parts;
    for (struct cg_turn t = {0}; cg_turn_next(l, &t); p++, init++) {
        p->carries = new_values(l, n);
        for (uint32_t i = 0; i < n; i++)
            p->carries[i] = p > parts && !cg_is_wide(l, s->first_carry + i)
                                ? parts->carries[i]
                                : cg_phi(l, init->carries[i], before);
        set(l, s->first_carry, n, p->carries);
    }
    cg_lower_block(l, s->body);
    LLVMBuildCondBr(b, l->values[s->yields[0]].re, step, exit);
    LLVMPositionBuilderAtEnd(b, step);
    cg_lower_block(l, s->other);
    p = parts;
    struct cg_value *next = new_values(l, n * CG_CHUNKS), *at = next;
    for (struct cg_turn t = {0}; cg_turn_next(l, &t); at += n)
        take(l, s, s->yields + 1, at);
    LLVMBasicBlockRef latch = LLVMGetInsertBlock(b);
    at = next;
    for (struct cg_turn t = {0}; cg_turn_next(l, &t); p++, at += n)
        for (uint32_t i = 0; i < n; i++)
            if (p == parts || cg_is_wide(l, s->first_carry + i))
                cg_phi_add(p->carries[i], at[i], latch);
    LLVMBuildBr(b, head);
    LLVMPositionBuilderAtEnd(b, exit);
}

// A test and a step of one vector, for the lanes that are active; p becomes what they leave.
static void lower_turn(struct cg_lowering *l, const struct nest_statement *s, struct part *p,
                       bool skips)
{
    LLVMBuilderRef b = l->m.b;
    uint32_t n = s->n_in;
    LLVMValueRef outer = l->mask, active = p->mask;
    LLVMBasicBlockRef before = LLVMGetInsertBlock(b), step = new_block(l), end = new_block(l);
    if (skips) {
        LLVMBasicBlockRef test = new_block(l);
        LLVMBuildCondBr(b, p->lives, test, end);
        LLVMPositionBuilderAtEnd(b, test);
    }
    l->mask = active;
    set(l, s->first_carry, n, p->carries);
    cg_lower_block(l, s->body);
    LLVMValueRef holds = cg_wide(l, l->values[s->yields[0]].re);
    l->mask = LLVMBuildAnd(b, active, holds, "");
    LLVMBasicBlockRef tested = LLVMGetInsertBlock(b);
    LLVMBuildCondBr(b, cg_any(l, l->mask), step, end);
    LLVMPositionBuilderAtEnd(b, step);
    cg_lower_block(l, s->other);
    struct cg_value *next = new_values(l, n);
    take(l, s, s->yields + 1, next);
    for (uint32_t i = 0; i < n; i++)
        next[i] = cg_select(&l->m, l->mask, next[i], p->carries[i]);
    LLVMBasicBlockRef stepped = LLVMGetInsertBlock(b);
    LLVMBuildBr(b, end);
    LLVMPositionBuilderAtEnd(b, end);
    LLVMValueRef mask = LLVMBuildPhi(b, LLVMTypeOf(active), "");
    LLVMAddIncoming(mask, (LLVMValueRef[]){l->mask, l->mask},
                    (LLVMBasicBlockRef[]){tested, stepped}, 2);
    if (skips)
        LLVMAddIncoming(mask, &active, &before, 1);
    for (uint32_t i = 0; i < n; i++) {
        struct cg_value phi = cg_merge(l, next[i], stepped, p->carries[i], tested);
        if (skips)
            cg_phi_add(phi, p->carries[i], before);
        p->carries[i] = phi;
    }
    p->mask = mask;
    p->lives = LLVMBuildPhi(b, l->module->i1, "");
    LLVMValueRef no = LLVMConstInt(l->module->i1, 0, 0),
                 yes = LLVMConstInt(l->module->i1, 1, 0);
    LLVMAddIncoming(p->lives, (LLVMValueRef[]){no, yes, no},
                    (LLVMBasicBlockRef[]){tested, stepped, before}, skips ? 3 : 2);
    l->mask = outer;
}

static LLVMValueRef either(struct cg_lowering *l, LLVMValueRef a, LLVMValueRef b)
{
    return a ? LLVMBuildOr(l->m.b, a, b, "") : b;
}

static void lower_apart(struct cg_lowering *l, const struct nest_statement *s,
                        struct part *init, struct part *parts)
{
    LLVMBuilderRef b = l->m.b;
    uint32_t n = s->n_in;
    LLVMBasicBlockRef before = LLVMGetInsertBlock(b), head = new_block(l), exit = new_block(l);
    LLVMBuildBr(b, head);
    LLVMPositionBuilderAtEnd(b, head);
    struct part phis[CG_CHUNKS], *p = parts, *phi = phis;
    unsigned count = 0;
    LLVMValueRef yes = LLVMConstInt(l->module->i1, 1, 0);
    for (struct cg_turn t = {0}; cg_turn_next(l, &t); p++, phi++, count++) {
        *phi = (struct part){.mask = LLVMBuildPhi(b, LLVMTypeOf(init[count].mask), ""),
                             .lives = LLVMBuildPhi(b, l->module->i1, ""),
                             .carries = new_values(l, n)};
        LLVMAddIncoming(phi->mask, &init[count].mask, &before, 1);
        LLVMAddIncoming(phi->lives, &yes, &before, 1);
        *p = (struct part){.mask = phi->mask, .lives = phi->lives, .carries = new_values(l, n)};
        for (uint32_t i = 0; i < n; i++)
            p->carries[i] = phi->carries[i] = cg_phi(l, init[count].carries[i], before);
    }
    LLVMValueRef active = NULL;
    p = parts;
    for (struct cg_turn t = {0}; cg_turn_next(l, &t); p++) {
        lower_turn(l, s, p, count > 1);
        active = either(l, active, p->lives);
    }
    LLVMBasicBlockRef latch = LLVMGetInsertBlock(b);
    for (unsigned c = 0; c < count; c++) {
        LLVMAddIncoming(phis[c].mask, &parts[c].mask, &latch, 1);
        LLVMAddIncoming(phis[c].lives, &parts[c].lives, &latch, 1);
        for (uint32_t i = 0; i < n; i++)
            cg_phi_add(phis[c].carries[i], parts[c].carries[i], latch);
    }
    LLVMBuildCondBr(b, active, head, exit);
    LLVMPositionBuilderAtEnd(b, exit);
}

void cg_lower_while(struct cg_lowering *l, const struct nest_statement *s)
{
    struct part init[CG_CHUNKS], parts[CG_CHUNKS], *p = init;
    uint32_t blocks[] = {s->body, s->other};
    cg_hoist(l, NULL, 0, s->first_carry, s->n_in, blocks, 2);
    for (struct cg_turn t = {0}; cg_turn_next(l, &t); p++) {
        LLVMTypeRef bits = cg_with_lanes(l->module->i1, l->lanes);
        *p = (struct part){.mask = l->mask ? l->mask : LLVMConstAllOnes(bits),
                           .carries = new_values(l, s->n_in)};
        take(l, s, s->in, p->carries);
    }
    if (cg_is_wide(l, s->yields[0]))
        lower_apart(l, s, init, parts);
    else
        lower_as_one(l, s, init, parts);
    p = parts;
    for (struct cg_turn t = {0}; cg_turn_next(l, &t); p++)
        set(l, s->result, s->n_in, p->carries);
    cg_forget_hoisted(l, s->body);
    cg_forget_hoisted(l, s->other);
}
