// SPDX-License-Identifier: Apache-2.0
// Loops that end by a test.
//
// Lanes that end by themselves have a mask, with the carries: a trip counts for lanes whose test
// held every time, and puts for no others.  Of several vectors side by side each skips what it has
// finished.  A lane that is left alone goes on without the others (alone.c): a trip of vectors waits
// for the mask, and does its loops as often as the slowest lane asks for.
//
//     loop {
//       for each vector: if (any active) { active &= test; if (any active) carry = body(carry) }
//     } while (any active of any vector, and, asked now and then, more than one lane)
//     if (one lane is active) while (test) carry[lane] = body(carry[lane])
#include "codegen/while.h"
#include "codegen/access.h"
#include "codegen/alone.h"
#include "codegen/branch.h"
#include "codegen/emit.h"
#include "codegen/hoist.h"
#include "codegen/loop.h"
#include "codegen/lower.h"
#include "codegen/pack.h"
#include "codegen/scalar.h"
#include "codegen/turn.h"
#include "codegen/types.h"

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

static void take_values(struct cg_lowering *l, const struct nest_statement *s,
                        const nest_id *from, struct cg_value *out)
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

// All lanes take as many trips: a loop whose test is one bool.
static void lower_as_one(struct cg_lowering *l, const struct nest_statement *s,
                         const struct part *init, struct part *parts)
{
    LLVMBuilderRef b = l->m.b;
    uint32_t n = s->n_in;
    LLVMBasicBlockRef before = LLVMGetInsertBlock(b), head = cg_new_block(l),
                      body = cg_new_block(l), exit = cg_new_block(l);
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
    LLVMBuildCondBr(b, l->values[s->yields[0]].re, body, exit);
    LLVMPositionBuilderAtEnd(b, body);
    cg_lower_block(l, s->other);
    p = parts;
    struct cg_value *next = new_values(l, n * CG_CHUNKS), *at = next;
    for (struct cg_turn t = {0}; cg_turn_next(l, &t); at += n)
        take_values(l, s, s->yields + 1, at);
    LLVMBasicBlockRef latch = LLVMGetInsertBlock(b);
    at = next;
    for (struct cg_turn t = {0}; cg_turn_next(l, &t); p++, at += n)
        for (uint32_t i = 0; i < n; i++)
            if (p == parts || cg_is_wide(l, s->first_carry + i))
                cg_phi_add(p->carries[i], at[i], latch);
    LLVMBuildBr(b, head);
    LLVMPositionBuilderAtEnd(b, exit);
}

// The same with the test written twice, before the first trip and behind each:
//
//     if (test) do carry = body(carry); while (test)
//
// NVIDIA's assembler (13.0) turns loops into this form by itself, and takes what an outer loop has
// tested for what holds in all trips of an inner one: an inner test of the same flag goes away.
static void lower_for_gpu(struct cg_lowering *l, const struct nest_statement *s,
                          const struct part *init, struct part *out)
{
    LLVMBuilderRef b = l->m.b;
    uint32_t n = s->n_in;
    struct cg_value *carries = new_values(l, n), *next = new_values(l, n);
    LLVMBasicBlockRef body = cg_new_block(l), exit = cg_new_block(l);
    set(l, s->first_carry, n, init->carries);
    cg_lower_block(l, s->body);
    LLVMBasicBlockRef before = LLVMGetInsertBlock(b);
    LLVMBuildCondBr(b, l->values[s->yields[0]].re, body, exit);
    LLVMPositionBuilderAtEnd(b, body);
    for (uint32_t i = 0; i < n; i++)
        carries[i] = cg_phi(l, init->carries[i], before);
    set(l, s->first_carry, n, carries);
    cg_lower_block(l, s->other);
    take_values(l, s, s->yields + 1, next);
    set(l, s->first_carry, n, next);
    cg_lower_block(l, s->body);
    LLVMBasicBlockRef latch = LLVMGetInsertBlock(b);
    LLVMBuildCondBr(b, l->values[s->yields[0]].re, body, exit);
    LLVMPositionBuilderAtEnd(b, exit);
    out->carries = new_values(l, n);
    for (uint32_t i = 0; i < n; i++) {
        cg_phi_add(carries[i], next[i], latch);
        out->carries[i] = cg_merge(l, init->carries[i], before, next[i], latch);
    }
}

// A test and a trip of one vector, for the lanes that are active; p becomes what they leave.  A
// vector that is alone ends the loop where no lane is active.
static void lower_turn(struct cg_lowering *l, const struct nest_statement *s, struct part *p,
                       LLVMBasicBlockRef alone_exit)
{
    LLVMBuilderRef b = l->m.b;
    uint32_t n = s->n_in;
    LLVMValueRef outer = l->vector.mask, active = p->mask;
    LLVMBasicBlockRef before = LLVMGetInsertBlock(b), body = cg_new_block(l),
                      end = alone_exit ? alone_exit : cg_new_block(l);
    if (!alone_exit) {
        LLVMBasicBlockRef test = cg_new_block(l);
        LLVMBuildCondBr(b, p->lives, test, end);
        LLVMPositionBuilderAtEnd(b, test);
    }
    l->vector.mask = active;
    set(l, s->first_carry, n, p->carries);
    cg_lower_block(l, s->body);
    LLVMValueRef holds = cg_wide(l, l->values[s->yields[0]].re);
    l->vector.mask = LLVMBuildAnd(b, active, holds, "");
    LLVMBasicBlockRef tested = LLVMGetInsertBlock(b);
    LLVMBuildCondBr(b, cg_any(l, l->vector.mask), body, end);
    LLVMPositionBuilderAtEnd(b, body);
    cg_lower_block(l, s->other);
    struct cg_value *next = new_values(l, n);
    take_values(l, s, s->yields + 1, next);
    for (uint32_t i = 0; i < n; i++)
        next[i] = cg_select(&l->m, l->vector.mask, next[i], p->carries[i]);
    LLVMValueRef mask = l->vector.mask;
    l->vector.mask = outer;
    if (alone_exit) {
        p->mask = mask;
        p->carries = next;
        return;
    }
    LLVMBasicBlockRef stepped = LLVMGetInsertBlock(b), from[] = {before, tested, stepped};
    LLVMBuildBr(b, end);
    LLVMPositionBuilderAtEnd(b, end);
    p->mask = LLVMBuildPhi(b, LLVMTypeOf(active), "");
    LLVMAddIncoming(p->mask, (LLVMValueRef[]){active, mask, mask}, from, 3);
    for (uint32_t i = 0; i < n; i++) {
        struct cg_value phi = cg_merge(l, next[i], stepped, p->carries[i], tested);
        cg_phi_add(phi, p->carries[i], before);
        p->carries[i] = phi;
    }
    p->lives = LLVMBuildPhi(b, l->module->i1, "");
    LLVMValueRef no = LLVMConstInt(l->module->i1, 0, 0),
                 yes = LLVMConstInt(l->module->i1, 1, 0);
    LLVMAddIncoming(p->lives, (LLVMValueRef[]){no, no, yes}, from, 3);
}

static LLVMValueRef either(struct cg_lowering *l, LLVMValueRef a, LLVMValueRef b)
{
    return a ? LLVMBuildOr(l->m.b, a, b, "") : b;
}

// ---- A lane alone

// The masks of all vectors as one word.
static LLVMValueRef active_bits(struct cg_lowering *l, const struct part *parts, unsigned count)
{
    LLVMBuilderRef b = l->m.b;
    LLVMContextRef context = l->module->context;
    LLVMTypeRef word = LLVMIntTypeInContext(context, count * l->vector.lanes);
    LLVMTypeRef bits = LLVMIntTypeInContext(context, l->vector.lanes);
    LLVMValueRef all = LLVMConstNull(word);
    for (unsigned c = 0; c < count; c++) {
        LLVMValueRef of = LLVMBuildBitCast(b, parts[c].mask, bits, "");
        of = count > 1 ? LLVMBuildZExt(b, of, word, "") : of;
        all = LLVMBuildOr(
            b, all, LLVMBuildShl(b, of, LLVMConstInt(word, c * l->vector.lanes, 0), ""), "");
    }
    return all;
}

// The loop of the one lane of all vectors; its carries go where they were.
static void lower_alone(struct cg_lowering *l, const struct nest_statement *s,
                        struct part *parts, LLVMValueRef lane)
{
    struct part init = {.carries = new_values(l, s->n_in)}, end, *p = parts;
    for (struct cg_turn t = {0}; cg_turn_next(l, &t); p++)
        set(l, s->first_carry, s->n_in, p->carries);
    struct cg_alone alone = cg_alone_open(l, s, lane);
    for (uint32_t i = 0; i < s->n_in; i++)
        init.carries[i] = l->values[s->first_carry + i];
    end.carries = new_values(l, s->n_in);
    if (!cg_lower_packed(l, s, init.carries, end.carries))
        lower_as_one(l, s, &init, &end);
    cg_alone_close(l, &alone);
    p = parts;
    unsigned c = 0;
    for (struct cg_turn t = {0}; cg_turn_next(l, &t); p++, c++) {
        LLVMValueRef mask = cg_alone_mask(l, &alone, c);
        struct cg_value *carries = new_values(l, s->n_in);
        for (uint32_t i = 0; i < s->n_in; i++)
            carries[i] =
                cg_select(&l->m, mask, cg_wide_value(l, end.carries[i]), p->carries[i]);
        p->carries = carries;
    }
}

// Now and then, asks whether one lane alone is active, and if so goes through its loop, with the
// results in out.  Gives the block where that ends, and goes on in one that turns.
static LLVMBasicBlockRef leave_alone(struct cg_lowering *l, const struct nest_statement *s,
                                     const struct part *parts, unsigned count,
                                     LLVMBasicBlockRef head, LLVMBasicBlockRef before,
                                     LLVMBasicBlockRef exit, unsigned turns, struct part *out)
{
    LLVMBuilderRef b = l->m.b;
    LLVMTypeRef i32 = l->module->i32;
    LLVMBasicBlockRef test = cg_new_block(l), alone = cg_new_block(l), next = cg_new_block(l);
    LLVMBasicBlockRef now = LLVMGetInsertBlock(b);
    LLVMValueRef first = LLVMConstInt(i32, turns, 0), one = LLVMConstInt(i32, 1, 0);
    LLVMPositionBuilderBefore(b, LLVMGetFirstInstruction(head));
    LLVMValueRef left = LLVMBuildPhi(b, i32, "");
    LLVMPositionBuilderAtEnd(b, now);
    LLVMValueRef less = LLVMBuildSub(b, left, one, ""), none = LLVMConstNull(i32);
    LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntEQ, less, none, ""), test, next);
    LLVMPositionBuilderAtEnd(b, test);
    LLVMValueRef bits = active_bits(l, parts, count);
    LLVMTypeRef word = LLVMTypeOf(bits);
    LLVMValueRef others =
        LLVMBuildAnd(b, bits, LLVMBuildSub(b, bits, LLVMConstInt(word, 1, 0), ""), "");
    LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntEQ, others, LLVMConstNull(word), ""), alone,
                    next);
    LLVMPositionBuilderAtEnd(b, alone);
    LLVMValueRef in_cttz[] = {bits, LLVMConstInt(l->module->i1, 0, 0)};
    LLVMValueRef lane = cg_intrinsic(&l->m, "llvm.cttz", word, 2, in_cttz);
    for (unsigned c = 0; c < count; c++)
        out[c] = parts[c];
    lower_alone(l, s, out, LLVMBuildIntCast2(b, lane, i32, 0, ""));
    LLVMBasicBlockRef end = LLVMGetInsertBlock(b);
    LLVMBuildBr(b, exit);
    LLVMPositionBuilderAtEnd(b, next);
    LLVMValueRef again = LLVMBuildPhi(b, i32, "");
    LLVMAddIncoming(again, (LLVMValueRef[]){less, first}, (LLVMBasicBlockRef[]){now, test}, 2);
    LLVMAddIncoming(left, (LLVMValueRef[]){first, again}, (LLVMBasicBlockRef[]){before, next},
                    2);
    return end;
}

// ---- The loop

static void lower_apart(struct cg_lowering *l, const struct nest_statement *s,
                        struct part *init, struct part *parts)
{
    LLVMBuilderRef b = l->m.b;
    uint32_t n = s->n_in;
    LLVMBasicBlockRef before = LLVMGetInsertBlock(b), head = cg_new_block(l),
                      none = cg_new_block(l), exit = cg_new_block(l), alone = NULL;
    LLVMBuildBr(b, head);
    LLVMPositionBuilderAtEnd(b, head);
    struct part phis[CG_CHUNKS], of_alone[CG_CHUNKS], *p = parts, *phi = phis;
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
        lower_turn(l, s, p, count == 1 ? none : NULL);
        active = either(l, active, p->lives);
    }
    if (count > 1) {
        LLVMBasicBlockRef some = cg_new_block(l);
        LLVMBuildCondBr(b, active, some, none);
        LLVMPositionBuilderAtEnd(b, some);
    }
    unsigned turns = cg_alone_turns(l, s);
    if (turns)
        alone = leave_alone(l, s, parts, count, head, before, exit, turns, of_alone);
    LLVMBasicBlockRef latch = LLVMGetInsertBlock(b);
    for (unsigned c = 0; c < count; c++) {
        LLVMAddIncoming(phis[c].mask, &parts[c].mask, &latch, 1);
        LLVMAddIncoming(phis[c].lives, &parts[c].lives, &latch, 1);
        for (uint32_t i = 0; i < n; i++)
            cg_phi_add(phis[c].carries[i], parts[c].carries[i], latch);
    }
    LLVMBuildBr(b, head);
    LLVMPositionBuilderAtEnd(b, none);
    LLVMBuildBr(b, exit);
    LLVMPositionBuilderAtEnd(b, exit);
    for (unsigned c = 0; c < count; c++) {
        parts[c] = count > 1 ? parts[c] : phis[c]; // where no lane is active
        for (uint32_t i = 0; alone && i < n; i++)
            parts[c].carries[i] =
                cg_merge(l, parts[c].carries[i], none, of_alone[c].carries[i], alone);
    }
}

void cg_lower_while(struct cg_lowering *l, const struct nest_statement *s)
{
    struct part init[CG_CHUNKS], parts[CG_CHUNKS], *p = init;
    uint32_t blocks[] = {s->body, s->other};
    cg_hoist(l, NULL, 0, s->first_carry, s->n_in, blocks, 2);
    for (struct cg_turn t = {0}; cg_turn_next(l, &t); p++) {
        LLVMTypeRef bits = cg_with_lanes(l->module->i1, l->vector.lanes);
        *p = (struct part){.mask = l->vector.mask ? l->vector.mask : LLVMConstAllOnes(bits),
                           .carries = new_values(l, s->n_in)};
        take_values(l, s, s->in, p->carries);
    }
    if (cg_is_wide(l, s->yields[0]))
        lower_apart(l, s, init, parts);
    else if (l->gpu)
        lower_for_gpu(l, s, init, parts);
    else
        lower_as_one(l, s, init, parts);
    p = parts;
    for (struct cg_turn t = {0}; cg_turn_next(l, &t); p++)
        set(l, s->result, s->n_in, p->carries);
    cg_forget_hoisted(l, s->body);
    cg_forget_hoisted(l, s->other);
}
