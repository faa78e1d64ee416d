// SPDX-License-Identifier: Apache-2.0
// Loops that update places of an array, one step after the other: what does not depend on the
// array is computed for 16 steps at once, while the 16 before are made.
//
//     seq n < N {                            vectors %p, %g of the first 16 steps
//       %p = load i[n], %g = %p < M          for n in steps of 16 {
//       put y[%p] = load y[%p] + u[n] if %g    vectors of the next 16
//     }                                        all of %g: y[p] += u[n] 16 times; else with tests
//                                            }
//
// Places that were stored a turn ago are read at once. Were they of the same turn, every read of y
// would wait for them, and behind it all that follow.
#include "codegen/lower.h"

#define STEPS 16
#define MOST_UPDATES 8 // statements that are written out for each step
#define AHEAD 1024     // elements between what is used and what is asked for

struct steps {
    const struct nest_block *body;
    bool *is_late;         // by statement of the body: depends on what steps put
    bool *is_wanted;       // by value: late statements read it
    struct cg_value *kept; // by value: memory with two vectors, of this turn and of the next
    LLVMValueRef guarded;  // bits of the guard of the next turn: a place, or NULL without
    uint32_t n_late;
};

static bool is_put(const struct cg_lowering *l, const struct nest_block *body, nest_id buffer)
{
    for (uint32_t i = 0; i < body->statements.count; i++) {
        const struct nest_statement *s = cg_statement(l, body->statements.at[i]);
        if (s->kind == NEST_PUT && s->buffer == buffer)
            return true;
    }
    return false;
}

static void want_terms(struct steps *p, const struct nest_statement *s)
{
    for (uint32_t i = 0; i < s->n_in; i++)
        p->is_wanted[s->in[i]] = true;
    for (uint32_t i = 0; i < s->index.count; i++)
        if (s->index.terms[i].is_value)
            p->is_wanted[s->index.terms[i].id] = true;
}

// Sorts the statements; false when the loop is of another kind.
static bool sort_steps(struct cg_lowering *l, const struct nest_statement *s, struct steps *p)
{
    p->body = &l->nest->blocks.at[s->body];
    p->is_late = arena_array(l->arena, bool, p->body->statements.count + 1);
    p->is_wanted = arena_array(l->arena, bool, l->nest->values.count + 1);
    p->kept = arena_array(l->arena, struct cg_value, l->nest->values.count + 1);
    bool *late = arena_array(l->arena, bool, l->nest->values.count + 1);
    nest_id guard = NEST_NONE;
    if (l->lanes != 1 || s->n_in || s->reverse || cg_extent(l, s) < 4 * STEPS)
        return false;
    for (uint32_t i = 0; i < p->body->statements.count; i++) {
        const struct nest_statement *x = cg_statement(l, p->body->statements.at[i]);
        bool is_load = x->kind == NEST_LOAD, is_late = x->kind == NEST_PUT;
        if (x->kind > NEST_PUT || (is_late && x->op))
            return false;
        is_late |= is_load && is_put(l, p->body, x->buffer);
        for (uint32_t k = 0; k < x->n_in; k++)
            is_late |= late[x->in[k]];
        p->is_late[i] = is_late;
        p->n_late += is_late;
        if (!is_late)
            continue;
        want_terms(p, x);
        // One guard for all, that of the put.
        if (x->kind == NEST_PUT && guard != NEST_NONE && guard != x->guard)
            return false;
        if (x->kind == NEST_PUT)
            guard = x->guard;
        else if (x->guard != NEST_NONE)
            return false;
        for (uint32_t k = 0; k < x->n_results; k++)
            late[x->result + k] = true;
    }
    return p->n_late && p->n_late <= MOST_UPDATES && (guard == NEST_NONE || !late[guard]);
}

// A load that every step may do again: what it reads stands in the nearest cache.
static bool is_plain_load(const struct nest_statement *s)
{
    return s->kind == NEST_LOAD && s->guard == NEST_NONE &&
           !(s->index.count && s->index.terms[s->index.count - 1].is_value);
}

// Stores a vector as the one of a turn, even or odd.  The memory is volatile, for to take lanes out
// of registers one by one is slower than to read them.
static LLVMValueRef keep(struct cg_lowering *l, LLVMValueRef at, LLVMValueRef turn,
                         LLVMValueRef v)
{
    if (!v || cg_lanes_of(v) == 1)
        return NULL;
    LLVMTypeRef type = LLVMTypeOf(v);
    at = at ? at : cg_alloca(l, type, 2);
    LLVMSetVolatile(LLVMBuildStore(l->m.b, v, cg_at(l, type, at, turn)), 1);
    return at;
}

static LLVMValueRef kept_lane(struct cg_lowering *l, LLVMValueRef at, LLVMValueRef turn,
                              unsigned lane)
{
    LLVMTypeRef type = LLVMGetElementType(LLVMGetAllocatedType(at));
    LLVMValueRef place[] = {turn, cg_int(l->module, lane)};
    LLVMValueRef v = LLVMBuildLoad2(l->m.b, LLVMGetElementType(type),
                                    LLVMBuildInBoundsGEP2(l->m.b, type, at, place, 2, ""), "");
    LLVMSetVolatile(v, 1);
    return v;
}

// The late statements of one of the steps of a turn, with the guard of the put as it is in
// `guarded`.
static void lower_late(struct cg_lowering *l, const struct nest_statement *s,
                       const struct steps *p, LLVMValueRef first, LLVMValueRef turn,
                       unsigned lane, LLVMValueRef guarded)
{
    l->axes[s->axes[0]] = LLVMBuildAdd(l->m.b, first, cg_int(l->module, lane), "");
    for (uint32_t i = 0; i < p->body->statements.count; i++) {
        nest_id id = p->body->statements.at[i];
        const struct nest_statement *x = cg_statement(l, id);
        if (!p->is_late[i]) {
            bool reads = x->n_results == 1 && p->is_wanted[x->result];
            const struct cg_value *at = &p->kept[x->result];
            if (reads && is_plain_load(x) && at->re)
                cg_lower_statement(l, id);
            else if (reads && at->re)
                l->values[x->result] =
                    (struct cg_value){kept_lane(l, at->re, turn, lane),
                                      at->im ? kept_lane(l, at->im, turn, lane) : NULL};
        } else if (x->kind == NEST_PUT) {
            cg_store_at(l, cg_buffer_base(l, x->buffer), l->nest->buffers.at[x->buffer].dtype,
                        &x->index, guarded, l->values[x->in[0]]);
        } else {
            cg_lower_statement(l, id);
        }
    }
}

static nest_id guard_of(const struct cg_lowering *l, const struct steps *p)
{
    for (uint32_t i = 0; i < p->body->statements.count; i++)
        if (cg_statement(l, p->body->statements.at[i])->kind == NEST_PUT)
            return cg_statement(l, p->body->statements.at[i])->guard;
    return NEST_NONE;
}

// What does not depend on the steps before, for 16 of them from `first` on.
static void lower_early(struct cg_lowering *l, const struct nest_statement *s, struct steps *p,
                        LLVMValueRef first, LLVMValueRef turn)
{
    l->vector_axis = s->axes[0];
    l->axes[s->axes[0]] = first;
    l->lanes = STEPS;
    for (uint32_t i = 0; i < p->body->statements.count; i++) {
        nest_id id = p->body->statements.at[i];
        const struct nest_statement *x = cg_statement(l, id);
        if (p->is_late[i])
            continue;
        if (is_plain_load(x) && nest_index_factor(&x->index, s->axes[0]) == 1)
            cg_prefetch_ahead(l, x, AHEAD);
        cg_lower_statement(l, id);
    }
    l->vector_axis = NEST_NONE;
    l->lanes = 1;
    for (uint32_t i = 0; i < p->body->statements.count; i++) {
        const struct nest_statement *x = cg_statement(l, p->body->statements.at[i]);
        if (p->is_late[i] || x->n_results != 1 || !p->is_wanted[x->result])
            continue;
        struct cg_value v = l->values[x->result], *at = &p->kept[x->result];
        *at = is_plain_load(x) && cg_lanes_of(v.re) > 1
                  ? v
                  : (struct cg_value){keep(l, at->re, turn, v.re), keep(l, at->im, turn, v.im)};
    }
    nest_id guard = guard_of(l, p);
    if (guard == NEST_NONE)
        return;
    LLVMTypeRef bits = LLVMIntTypeInContext(l->module->context, STEPS);
    LLVMValueRef g = l->values[guard].re;
    g = cg_lanes_of(g) == 1 ? cg_splat(&l->m, g, STEPS) : g;
    p->guarded = p->guarded ? p->guarded : cg_alloca(l, bits, 1);
    LLVMBuildStore(l->m.b, LLVMBuildBitCast(l->m.b, g, bits, ""), p->guarded);
}

static void lower_sixteens(struct cg_lowering *l, const struct nest_statement *s,
                           struct steps *p, int64_t end)
{
    LLVMBuilderRef b = l->m.b;
    LLVMTypeRef bits = LLVMIntTypeInContext(l->module->context, STEPS);
    LLVMValueRef zero = cg_int(l->module, 0), one = cg_int(l->module, 1), g = NULL;
    LLVMValueRef steps = cg_int(l->module, STEPS), last = cg_int(l->module, end - STEPS);
    lower_early(l, s, p, zero, zero);
    struct cg_loop loop = cg_loop_open(l, zero, cg_int(l->module, end), steps);
    LLVMValueRef turn = LLVMBuildAnd(b, LLVMBuildUDiv(b, loop.index, steps, ""), one, "");
    LLVMValueRef next = LLVMBuildAdd(b, loop.index, steps, "");
    next = LLVMBuildSelect(b, LLVMBuildICmp(b, LLVMIntSLT, next, last, ""), next, last, "");
    if (p->guarded)
        g = LLVMBuildLoad2(b, bits, p->guarded, "");
    lower_early(l, s, p, next, LLVMBuildXor(b, turn, one, ""));
    struct cg_branch branch = {0};
    if (g)
        branch = cg_if_open(l, LLVMBuildICmp(b, LLVMIntEQ, g, LLVMConstAllOnes(bits), ""));
    for (unsigned lane = 0; lane < STEPS; lane++)
        lower_late(l, s, p, loop.index, turn, lane, NULL);
    if (g) {
        cg_else_open(l, &branch);
        for (unsigned lane = 0; lane < STEPS; lane++) {
            LLVMValueRef bit = LLVMBuildLShr(b, g, LLVMConstInt(bits, lane, 0), "");
            lower_late(l, s, p, loop.index, turn, lane,
                       LLVMBuildTrunc(b, bit, l->module->i1, ""));
        }
        cg_if_close(l, &branch);
    }
    cg_loop_close(l, &loop);
}

bool cg_lower_updates(struct cg_lowering *l, const struct nest_statement *s)
{
    struct steps p = {0};
    if (!sort_steps(l, s, &p))
        return false;
    int64_t n = cg_extent(l, s), rest = n / STEPS * STEPS;
    lower_sixteens(l, s, &p, rest);
    struct cg_loop loop =
        cg_loop_open(l, cg_int(l->module, rest), cg_int(l->module, n), cg_int(l->module, 1));
    l->axes[s->axes[0]] = loop.index;
    cg_lower_block(l, s->body);
    cg_loop_close(l, &loop);
    return true;
}
