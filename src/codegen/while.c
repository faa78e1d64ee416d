// SPDX-License-Identifier: Apache-2.0
// Loops that end by a test.
//
// Lanes that end by themselves have a mask, with the carries: a step counts for lanes whose test
// held every time, and puts for no others.  Of several vectors side by side each skips what it has
// finished.  A lane that is left alone goes on without the others, in scalars: a step of vectors
// waits for the mask.
//
//     loop {
//       for each vector: if (any active) { active &= test; if (any active) carry = step(carry) }
//     } while (any active of any vector, and, asked now and then, more than one lane)
//     if (one lane is active) while (test) carry[lane] = step(carry[lane])
#include "codegen/lower.h"

#define TURNS 32      // from one count of the lanes that are active to the next
#define MOST_ALONE 32 // statements that are lowered for a lane alone; others hide the mask

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

// A test and a step of one vector, for the lanes that are active; p becomes what they leave.  A
// vector that is alone ends the loop where no lane is active.
static void lower_turn(struct cg_lowering *l, const struct nest_statement *s, struct part *p,
                       LLVMBasicBlockRef alone_exit)
{
    LLVMBuilderRef b = l->m.b;
    uint32_t n = s->n_in;
    LLVMValueRef outer = l->mask, active = p->mask;
    LLVMBasicBlockRef before = LLVMGetInsertBlock(b), step = new_block(l),
                      end = alone_exit ? alone_exit : new_block(l);
    if (!alone_exit) {
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
    LLVMValueRef mask = l->mask;
    l->mask = outer;
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

// Statements of the block that are lowered for a lane alone; more than allowed where one has no
// form for that.
static uint32_t statements_alone(const struct cg_lowering *l, uint32_t block)
{
    uint32_t n = 0;
    if (block == NEST_NONE)
        return 0;
    const struct nest_block *b = &l->nest->blocks.at[block];
    for (uint32_t k = 0; k < b->statements.count && n <= MOST_ALONE; k++) {
        nest_id id = b->statements.at[k];
        const struct nest_statement *x = cg_statement(l, id);
        if (l->hoisted[id])
            continue;
        bool reads = x->kind == NEST_LOAD && l->nest->buffers.at[x->buffer].role == NEST_IN &&
                     !l->staged[id];
        n++;
        if (x->kind == NEST_IF)
            n += statements_alone(l, x->body) + statements_alone(l, x->other);
        else if (x->kind != NEST_OP && x->kind != NEST_CONST && x->kind != NEST_INDEX && !reads)
            return MOST_ALONE + 1;
    }
    return n;
}

// The masks of all vectors as one word.
static LLVMValueRef active_bits(struct cg_lowering *l, const struct part *parts, unsigned count)
{
    LLVMBuilderRef b = l->m.b;
    LLVMContextRef context = l->module->context;
    LLVMTypeRef word = LLVMIntTypeInContext(context, count * l->lanes);
    LLVMTypeRef bits = LLVMIntTypeInContext(context, l->lanes);
    LLVMValueRef all = LLVMConstNull(word);
    for (unsigned c = 0; c < count; c++) {
        LLVMValueRef of = LLVMBuildBitCast(b, parts[c].mask, bits, "");
        of = count > 1 ? LLVMBuildZExt(b, of, word, "") : of;
        all = LLVMBuildOr(b, all, LLVMBuildShl(b, of, LLVMConstInt(word, c * l->lanes, 0), ""),
                          "");
    }
    return all;
}

// A place among all vectors, as a mask of those of one of them.
static LLVMValueRef place_mask(struct cg_lowering *l, LLVMValueRef place, unsigned c)
{
    LLVMValueRef places =
        cg_sequence(l->module, l->module->i32, l->lanes, (int64_t)c * l->lanes, 1);
    return LLVMBuildICmp(l->m.b, LLVMIntEQ, places, cg_splat(&l->m, place, l->lanes), "");
}

// The element at the place; n vectors.
static LLVMValueRef element(struct cg_lowering *l, LLVMValueRef place, unsigned n,
                            const LLVMValueRef *v)
{
    LLVMBuilderRef b = l->m.b;
    LLVMValueRef lanes = LLVMConstInt(l->module->i32, l->lanes, 0), x = NULL;
    if (!v[0] || cg_lanes_of(v[0]) == 1)
        return v[0];
    LLVMValueRef part = LLVMBuildUDiv(b, place, lanes, "");
    LLVMValueRef lane = LLVMBuildURem(b, place, lanes, "");
    for (unsigned c = 0; c < n; c++) {
        LLVMValueRef y = LLVMBuildExtractElement(b, v[c], lane, "");
        LLVMValueRef is_it =
            LLVMBuildICmp(b, LLVMIntEQ, part, LLVMConstInt(l->module->i32, c, 0), "");
        x = x ? LLVMBuildSelect(b, is_it, y, x, "") : y;
    }
    return x;
}

// What one lane has of the values, where the loop reads those.
struct lane_values {
    struct cg_lowering *l;
    LLVMValueRef place;
    struct cg_value *of_lane;
    bool *is_known; // or made in the loop
};

static void know(struct lane_values *v, nest_id id)
{
    LLVMValueRef re[CG_CHUNKS], im[CG_CHUNKS];
    unsigned n = 0;
    if (v->is_known[id])
        return;
    v->is_known[id] = true;
    for (struct cg_turn t = {0}; cg_turn_next(v->l, &t); n++) {
        re[n] = v->l->values[id].re;
        im[n] = v->l->values[id].im;
    }
    v->of_lane[id] =
        (struct cg_value){element(v->l, v->place, n, re), element(v->l, v->place, n, im)};
}

static void know_block(struct lane_values *v, uint32_t block)
{
    if (block == NEST_NONE)
        return;
    const struct nest_block *b = &v->l->nest->blocks.at[block];
    for (uint32_t k = 0; k < b->statements.count; k++) {
        const struct nest_statement *x = cg_statement(v->l, b->statements.at[k]);
        if (v->l->hoisted[b->statements.at[k]])
            continue;
        for (uint32_t i = 0; i < x->n_in; i++)
            know(v, x->in[i]);
        for (uint32_t i = 0; i < x->index.count; i++)
            if (x->index.terms[i].is_value)
                know(v, x->index.terms[i].id);
        if (x->kind == NEST_LOAD && x->guard != NEST_NONE)
            know(v, x->guard);
        if (x->kind == NEST_IF) {
            know_block(v, x->body);
            know_block(v, x->other);
        }
        for (uint32_t i = 0; i < x->n_yields; i++)
            know(v, x->yields[i]);
        for (uint32_t i = 0; i < x->n_results; i++)
            v->is_known[x->result + i] = true;
    }
}

static struct cg_value *values_of_lane(struct cg_lowering *l, const struct nest_statement *s,
                                       LLVMValueRef place)
{
    uint32_t n = (uint32_t)l->nest->values.count;
    struct lane_values v = {.l = l,
                            .place = place,
                            .of_lane = new_values(l, n),
                            .is_known = arena_array(l->arena, bool, n + 1)};
    for (uint32_t i = 0; i < s->n_in; i++)
        know(&v, s->first_carry + i);
    know_block(&v, s->body);
    know_block(&v, s->other);
    for (uint32_t i = 0; i <= s->n_in; i++)
        know(&v, s->yields[i]);
    return v.of_lane;
}

// The loop of the one lane at a place among all vectors; its carries go where they were.
static void lower_alone(struct cg_lowering *l, const struct nest_statement *s,
                        struct part *parts, LLVMValueRef place)
{
    struct part init = {.carries = new_values(l, s->n_in)}, end, *p = parts;
    for (struct cg_turn t = {0}; cg_turn_next(l, &t); p++)
        set(l, s->first_carry, s->n_in, p->carries);
    const struct cg_lowering outer = *l;
    LLVMValueRef *index = &l->axes[l->vector_axis], first = *index;
    l->values = values_of_lane(l, s, place);
    *index = LLVMBuildAdd(l->m.b, first, LLVMBuildZExt(l->m.b, place, l->module->i64, ""), "");
    l->lanes = 1;
    l->vector_axis = NEST_NONE;
    l->mask = l->tail = NULL;
    l->chunks = NULL;
    l->together = false;
    for (uint32_t i = 0; i < s->n_in; i++)
        init.carries[i] = l->values[s->first_carry + i];
    lower_as_one(l, s, &init, &end);
    *index = first;
    l->values = outer.values;
    l->lanes = outer.lanes;
    l->vector_axis = outer.vector_axis;
    l->mask = outer.mask;
    l->tail = outer.tail;
    l->chunks = outer.chunks;
    l->together = outer.together;
    p = parts;
    unsigned c = 0;
    for (struct cg_turn t = {0}; cg_turn_next(l, &t); p++, c++) {
        LLVMValueRef mask = place_mask(l, place, c);
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
                                     LLVMBasicBlockRef exit, struct part *out)
{
    LLVMBuilderRef b = l->m.b;
    LLVMTypeRef i32 = l->module->i32;
    LLVMBasicBlockRef test = new_block(l), alone = new_block(l), next = new_block(l);
    LLVMBasicBlockRef now = LLVMGetInsertBlock(b);
    LLVMValueRef first = LLVMConstInt(i32, TURNS, 0), one = LLVMConstInt(i32, 1, 0);
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
    LLVMValueRef place = cg_intrinsic(&l->m, "llvm.cttz", word, 2, in_cttz);
    for (unsigned c = 0; c < count; c++)
        out[c] = parts[c];
    lower_alone(l, s, out, LLVMBuildIntCast2(b, place, i32, 0, ""));
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
    LLVMBasicBlockRef before = LLVMGetInsertBlock(b), head = new_block(l), none = new_block(l),
                      exit = new_block(l), alone = NULL;
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
        LLVMBasicBlockRef some = new_block(l);
        LLVMBuildCondBr(b, active, some, none);
        LLVMPositionBuilderAtEnd(b, some);
    }
    if (statements_alone(l, s->body) + statements_alone(l, s->other) <= MOST_ALONE)
        alone = leave_alone(l, s, parts, count, head, before, exit, of_alone);
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
