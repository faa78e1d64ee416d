// SPDX-License-Identifier: Apache-2.0
// Loops that update elements of an array, one trip after the other: what does not depend on the
// array is computed for 16 trips at once, while the 16 before are made.
//
//     seq n < N {                            vectors %p, %g of the first 16 trips
//       %p = load i[n], %g = %p < M          for n in steps of 16 {
//       put y[%p] = load y[%p] + u[n] if %g    vectors of the next 16
//     }                                        all of %g: y[p] += u[n] 16 times; else with tests
//                                            }
//
// Elements that were stored a turn ago are read at once. Were they of the same turn, every read of y
// would wait for them, and behind it all that follow.
//
// Where an index is a number that was loaded, once it is known to be inside (inside.c), nothing of it
// is computed.  Where one of 16 is not, others are near, and some trips from there on are as above.
//
//     for (n = 0; n < N;)
//       all of i[n] < M: y[i[n]] += u[n] 16 times, n += 16; else n .. n + 255 as above, n += 256
#include "codegen/updates.h"
#include "codegen/access.h"
#include "codegen/emit.h"
#include "codegen/index.h"
#include "codegen/inside.h"
#include "codegen/loop.h"
#include "codegen/lower.h"
#include "codegen/memory.h"
#include "codegen/prefetch.h"
#include "codegen/types.h"

#define TRIPS 16
#define MOST_UPDATES 8 // statements that are written out for each trip
#define STRETCH 256    // trips that are made in the longer way where one needs it
#define AHEAD 576      // elements between what is used and what is asked for; no whole pages

struct trips {
    const struct nest_block *body;
    bool *is_late;         // by statement of the body: depends on what trips put
    bool *is_wanted;       // by value: late statements read it
    struct cg_value *kept; // by value: memory with two vectors, of this turn and of the next
    nest_id guard;         // of all puts, or NEST_NONE
    uint32_t n_late;
    struct cg_inside inside;
    bool is_inside;     // indices are lowered as the numbers that were loaded
    LLVMValueRef *wide; // by value of a load: several trips of it
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

static void want_terms(struct trips *p, const struct nest_statement *s)
{
    for (uint32_t i = 0; i < s->n_in; i++)
        p->is_wanted[s->in[i]] = true;
    for (uint32_t i = 0; i < s->index.count; i++)
        if (s->index.terms[i].is_value)
            p->is_wanted[s->index.terms[i].id] = true;
}

// Sorts the statements; false when the loop is of another kind.
static bool sort_trips(struct cg_lowering *l, const struct nest_statement *s, struct trips *p)
{
    if (l->vector.lanes != 1 || s->n_in || s->reverse || cg_extent(l, s) < 4 * TRIPS)
        return false;
    p->body = &l->nest->blocks.at[s->body];
    p->is_late = arena_array(l->arena, bool, p->body->statements.count + 1);
    p->is_wanted = arena_array(l->arena, bool, l->nest->values.count + 1);
    p->kept = arena_array(l->arena, struct cg_value, l->nest->values.count + 1);
    bool *late = arena_array(l->arena, bool, l->nest->values.count + 1);
    p->wide = arena_array(l->arena, LLVMValueRef, l->nest->values.count + 1);
    p->guard = NEST_NONE;
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
        if (x->kind == NEST_PUT && p->guard != NEST_NONE && p->guard != x->guard)
            return false;
        if (x->kind == NEST_PUT)
            p->guard = x->guard;
        else if (x->guard != NEST_NONE)
            return false;
        for (uint32_t k = 0; k < x->n_results; k++)
            late[x->result + k] = true;
    }
    return p->n_late && p->n_late <= MOST_UPDATES && (p->guard == NEST_NONE || !late[p->guard]);
}

// Whether the number that was loaded stands for the value where all are inside.
static bool is_loaded(const struct trips *p, nest_id value)
{
    return p->inside.facts[value].kind == CG_LOADED;
}

// Whether all indices are loaded numbers, and the guard holds, when those are inside.
static bool find_inside(struct cg_lowering *l, struct trips *p)
{
    bool any = false;
    p->inside = cg_inside_make(l, p->body, p->is_late);
    for (uint32_t i = 0; i < p->body->statements.count; i++) {
        const struct nest_statement *x = cg_statement(l, p->body->statements.at[i]);
        for (uint32_t k = 0; p->is_late[i] && k < x->index.count; k++) {
            const struct nest_term *t = &x->index.terms[k];
            if (t->is_value && cg_inside_fact(l, &p->inside, t->id).kind != CG_LOADED)
                return false;
            any |= t->is_value;
        }
    }
    return any &&
           (p->guard == NEST_NONE || cg_inside_fact(l, &p->inside, p->guard).kind == CG_TRUE);
}

// A load that every trip may do again: what it reads stands in the nearest cache.
static bool is_plain_load(const struct nest_statement *s)
{
    return s->kind == NEST_LOAD && s->guard == NEST_NONE && !nest_index_has_values(&s->index);
}

// Stores a vector as the one of a turn, even or odd.  The memory is volatile, for to take lanes out
// of registers one by one is slower than to read them.  Truth values stand in bytes.
static LLVMValueRef keep_turn(struct cg_lowering *l, LLVMValueRef at, LLVMValueRef turn,
                              LLVMValueRef v)
{
    if (!v || cg_lanes_of(v) == 1)
        return NULL;
    if (LLVMGetElementType(LLVMTypeOf(v)) == l->module->i1)
        v = LLVMBuildZExt(l->m.b, v, cg_with_lanes(l->module->i8, cg_lanes_of(v)), "");
    LLVMTypeRef type = LLVMTypeOf(v);
    at = at ? at : cg_alloca(l, type, 2);
    LLVMSetVolatile(LLVMBuildStore(l->m.b, v, cg_at(l, type, at, turn)), 1);
    return at;
}

static LLVMValueRef kept_lane(struct cg_lowering *l, LLVMValueRef at, LLVMValueRef turn,
                              unsigned lane, jot_dtype d)
{
    LLVMTypeRef type = LLVMGetElementType(LLVMGetAllocatedType(at));
    LLVMValueRef indices[] = {turn, cg_int(l->module, lane)};
    LLVMValueRef v =
        LLVMBuildLoad2(l->m.b, LLVMGetElementType(type),
                       LLVMBuildInBoundsGEP2(l->m.b, type, at, indices, 2, ""), "");
    LLVMSetVolatile(v, 1);
    return d == JOT_BOOL ? LLVMBuildTrunc(l->m.b, v, l->module->i1, "") : v;
}

static bool is_next_to_next(const struct nest_statement *load, const struct nest_statement *s)
{
    return is_plain_load(load) && nest_index_factor(&load->index, s->axes[0]) == 1;
}

// Loads what some trips from this one on read, as one value.
static LLVMValueRef load_wide(struct cg_lowering *l, const struct nest_statement *x,
                              LLVMTypeRef type)
{
    LLVMTypeRef lane = cg_lane_type(l->module, x->dtype);
    LLVMValueRef at =
        cg_at(l, lane, cg_buffer_base(l, x->buffer), cg_index_first(l, &x->index));
    LLVMValueRef v = LLVMBuildLoad2(l->m.b, type, at, "");
    LLVMSetAlignment(v, dtype_get(x->dtype)->bytes);
    LLVMSetVolatile(v, 1); // or it would become loads of one
    return v;
}

// The index of a trip that is a loaded number: of numbers of 32 bits, two are loaded at once.
static LLVMValueRef loaded_index(struct cg_lowering *l, const struct nest_statement *s,
                                 struct trips *p, nest_id value, unsigned lane)
{
    LLVMBuilderRef b = l->m.b;
    nest_id load = p->inside.facts[value].load, id = l->nest->values.at[load].statement;
    const struct nest_statement *x = cg_statement(l, id);
    LLVMTypeRef type = cg_lane_type(l->module, l->nest->values.at[value].dtype);
    if (dtype_get(x->dtype)->bytes != 4 || !is_next_to_next(x, s)) {
        cg_lower_statement(l, id);
        return LLVMBuildIntCast2(b, l->values[load].re, type, false, "");
    }
    if (lane % 2 == 0)
        p->wide[load] = load_wide(l, x, l->module->i64);
    LLVMValueRef v = lane % 2
                         ? LLVMBuildLShr(b, p->wide[load], cg_int(l->module, 32), "")
                         : LLVMBuildAnd(b, p->wide[load], cg_int(l->module, UINT32_MAX), "");
    return LLVMBuildIntCast2(b, v, type, false, "");
}

// Of floating-point numbers 16 bytes are loaded at once, for they stay in the same registers.
static LLVMValueRef loaded_number(struct cg_lowering *l, struct trips *p,
                                  const struct nest_statement *x, unsigned lane)
{
    LLVMTypeRef type = cg_lane_type(l->module, x->dtype);
    unsigned n = 16 / (unsigned)dtype_get(x->dtype)->bytes;
    if (lane % n == 0)
        p->wide[x->result] = load_wide(l, x, LLVMVectorType(type, n));
    return LLVMBuildExtractElement(l->m.b, p->wide[x->result],
                                   LLVMConstInt(l->module->i32, lane % n, 0), "");
}

// What a late statement reads of the early ones, of one trip.
static void lower_wanted(struct cg_lowering *l, const struct nest_statement *s, struct trips *p,
                         nest_id id, LLVMValueRef turn, unsigned lane)
{
    const struct nest_statement *x = cg_statement(l, id);
    const struct cg_value *at = &p->kept[x->result];
    bool is_real = x->dtype == JOT_F32 || x->dtype == JOT_F64;
    if (p->is_inside && is_loaded(p, x->result))
        l->values[x->result] = (struct cg_value){loaded_index(l, s, p, x->result, lane), NULL};
    else if (is_real && is_next_to_next(x, s))
        l->values[x->result] = (struct cg_value){loaded_number(l, p, x, lane), NULL};
    else if (is_plain_load(x) && at->re)
        cg_lower_statement(l, id);
    else if (at->re)
        l->values[x->result] =
            (struct cg_value){kept_lane(l, at->re, turn, lane, x->dtype),
                              at->im ? kept_lane(l, at->im, turn, lane, x->dtype) : NULL};
}

// The late statements of one of the trips of a turn, with the guard of the put as it is in
// `guarded`.
static void lower_late(struct cg_lowering *l, const struct nest_statement *s, struct trips *p,
                       LLVMValueRef first, LLVMValueRef turn, unsigned lane,
                       LLVMValueRef guarded)
{
    l->axes[s->axes[0]] = LLVMBuildAdd(l->m.b, first, cg_int(l->module, lane), "");
    for (uint32_t i = 0; i < p->body->statements.count; i++) {
        nest_id id = p->body->statements.at[i];
        const struct nest_statement *x = cg_statement(l, id);
        if (!p->is_late[i]) {
            if (x->n_results == 1 && p->is_wanted[x->result])
                lower_wanted(l, s, p, id, turn, lane);
        } else if (x->kind == NEST_PUT) {
            cg_store_at(l, cg_buffer_base(l, x->buffer), l->nest->buffers.at[x->buffer].dtype,
                        &x->index, guarded, NULL, l->values[x->in[0]]);
        } else {
            cg_lower_statement(l, id);
        }
    }
}

static LLVMValueRef bits_of(struct cg_lowering *l, LLVMValueRef lanes)
{
    LLVMTypeRef type = LLVMIntTypeInContext(l->module->context, TRIPS);
    return LLVMBuildBitCast(l->m.b, lanes, type, "");
}

static LLVMValueRef all_of(struct cg_lowering *l, LLVMValueRef bits)
{
    return LLVMBuildICmp(l->m.b, LLVMIntEQ, bits, LLVMConstAllOnes(LLVMTypeOf(bits)), "");
}

// All trips of a turn; g: bits of the guard, or NULL without.
static void lower_turn(struct cg_lowering *l, const struct nest_statement *s, struct trips *p,
                       LLVMValueRef first, LLVMValueRef turn, LLVMValueRef g)
{
    LLVMBuilderRef b = l->m.b;
    for (unsigned lane = 0; lane < TRIPS; lane++) {
        LLVMValueRef bit =
            g ? LLVMBuildLShr(b, g, LLVMConstInt(LLVMTypeOf(g), lane, 0), "") : NULL;
        lower_late(l, s, p, first, turn, lane,
                   bit ? LLVMBuildTrunc(b, bit, l->module->i1, "") : NULL);
    }
}

static void open_vectors(struct cg_lowering *l, const struct nest_statement *s,
                         LLVMValueRef first)
{
    l->vector.axis = s->axes[0];
    l->axes[s->axes[0]] = first;
    l->vector.lanes = TRIPS;
}

static void close_vectors(struct cg_lowering *l)
{
    l->vector.axis = NEST_NONE;
    l->vector.lanes = 1;
}

static void prefetch(struct cg_lowering *l, const struct nest_statement *s,
                     const struct trips *p, LLVMValueRef first)
{
    open_vectors(l, s, first);
    for (uint32_t i = 0; i < p->body->statements.count; i++) {
        const struct nest_statement *x = cg_statement(l, p->body->statements.at[i]);
        if (!p->is_late[i] && is_plain_load(x) && nest_index_factor(&x->index, s->axes[0]) == 1)
            cg_prefetch_ahead(l, x, AHEAD);
    }
    close_vectors(l);
}

// What does not depend on the trips before, for 16 of them from `first` on; the bits of the guard,
// or NULL without.
static LLVMValueRef lower_early(struct cg_lowering *l, const struct nest_statement *s,
                                struct trips *p, LLVMValueRef first, LLVMValueRef turn)
{
    open_vectors(l, s, first);
    for (uint32_t i = 0; i < p->body->statements.count; i++)
        if (!p->is_late[i])
            cg_lower_statement(l, p->body->statements.at[i]);
    close_vectors(l);
    for (uint32_t i = 0; i < p->body->statements.count; i++) {
        const struct nest_statement *x = cg_statement(l, p->body->statements.at[i]);
        if (p->is_late[i] || x->n_results != 1 || !p->is_wanted[x->result] ||
            (p->is_inside && is_loaded(p, x->result)))
            continue;
        struct cg_value v = l->values[x->result], *at = &p->kept[x->result];
        *at = is_plain_load(x) && cg_lanes_of(v.re) > 1
                  ? v
                  : (struct cg_value){keep_turn(l, at->re, turn, v.re),
                                      keep_turn(l, at->im, turn, v.im)};
    }
    if (p->guard == NEST_NONE)
        return NULL;
    LLVMValueRef g = l->values[p->guard].re;
    return bits_of(l, cg_lanes_of(g) == 1 ? cg_splat(&l->m, g, TRIPS) : g);
}

// All trips of a turn, by the bits of the guard when there is one.
static void lower_tested(struct cg_lowering *l, const struct nest_statement *s, struct trips *p,
                         LLVMValueRef first, LLVMValueRef turn, LLVMValueRef g)
{
    struct cg_branch branch = {0};
    if (g)
        branch = cg_if_open(l, all_of(l, g));
    lower_turn(l, s, p, first, turn, NULL);
    if (!g)
        return;
    cg_else_open(l, &branch);
    lower_turn(l, s, p, first, turn, g);
    cg_if_close(l, &branch);
}

// Which of two kept vectors is of the 16 trips from this one on.
static LLVMValueRef turn_of(struct cg_lowering *l, LLVMValueRef first)
{
    LLVMValueRef turn = LLVMBuildUDiv(l->m.b, first, cg_int(l->module, TRIPS), "");
    return LLVMBuildAnd(l->m.b, turn, cg_int(l->module, 1), "");
}

// The trips from `begin` to `end`, 16 of them and what the next 16 need meanwhile.
static void lower_ahead(struct cg_lowering *l, const struct nest_statement *s, struct trips *p,
                        LLVMValueRef begin, LLVMValueRef end)
{
    LLVMBuilderRef b = l->m.b;
    LLVMValueRef one = cg_int(l->module, 1), trips = cg_int(l->module, TRIPS), kept = NULL;
    LLVMValueRef last = LLVMBuildSub(b, end, trips, "");
    LLVMValueRef g = lower_early(l, s, p, begin, turn_of(l, begin));
    if (g) {
        kept = cg_alloca(l, LLVMTypeOf(g), 1);
        LLVMBuildStore(b, g, kept);
    }
    struct cg_loop loop = cg_loop_open(l, begin, end, trips);
    LLVMValueRef turn = turn_of(l, loop.index);
    LLVMValueRef next = LLVMBuildAdd(b, loop.index, trips, "");
    next = LLVMBuildSelect(b, LLVMBuildICmp(b, LLVMIntSLT, next, last, ""), next, last, "");
    g = g ? LLVMBuildLoad2(b, LLVMTypeOf(g), kept, "") : NULL;
    prefetch(l, s, p, next);
    LLVMValueRef next_g = lower_early(l, s, p, next, LLVMBuildXor(b, turn, one, ""));
    if (g)
        LLVMBuildStore(b, next_g, kept);
    lower_tested(l, s, p, loop.index, turn, g);
    cg_loop_close(l, &loop);
}

// Bits of 16 trips: whether all that they load as indices is inside.
static LLVMValueRef loads_inside(struct cg_lowering *l, const struct nest_statement *s,
                                 const struct trips *p, LLVMValueRef first)
{
    LLVMBuilderRef b = l->m.b;
    LLVMValueRef all = NULL;
    open_vectors(l, s, first);
    for (uint32_t i = 0; i < p->body->statements.count; i++) {
        nest_id id = p->body->statements.at[i];
        const struct nest_statement *x = cg_statement(l, id);
        if (x->kind != NEST_LOAD || !is_loaded(p, x->result))
            continue;
        cg_lower_statement(l, id);
        LLVMValueRef v = cg_wide(l, l->values[x->result].re);
        LLVMTypeRef lane = cg_lane_type(l->module, x->dtype);
        LLVMValueRef most = LLVMConstInt(lane, (uint64_t)p->inside.most[x->result], 0);
        LLVMValueRef fits = LLVMBuildICmp(b, LLVMIntULE, v, cg_splat(&l->m, most, TRIPS), "");
        all = all ? LLVMBuildAnd(b, all, fits, "") : fits;
    }
    close_vectors(l);
    return bits_of(l, all);
}

// By what was loaded, where that is inside.
static void lower_loaded(struct cg_lowering *l, const struct nest_statement *s, struct trips *p,
                         LLVMValueRef end)
{
    LLVMBuilderRef b = l->m.b;
    LLVMValueRef zero = cg_int(l->module, 0), done = cg_alloca(l, l->module->i64, 1);
    struct cg_loop loop = cg_loop_open(l, zero, end, cg_int(l->module, TRIPS));
    prefetch(l, s, p, loop.index);
    LLVMBuildStore(b, loop.step, done);
    struct cg_branch branch = cg_if_open(l, all_of(l, loads_inside(l, s, p, loop.index)));
    p->is_inside = true;
    lower_early(l, s, p, loop.index, zero);
    lower_turn(l, s, p, loop.index, zero, NULL);
    p->is_inside = false;
    cg_else_open(l, &branch);
    LLVMValueRef left = LLVMBuildSub(b, end, loop.index, ""), most = cg_int(l->module, STRETCH);
    left = LLVMBuildSelect(b, LLVMBuildICmp(b, LLVMIntSLT, left, most, ""), left, most, "");
    LLVMBuildStore(b, left, done);
    lower_ahead(l, s, p, loop.index, LLVMBuildAdd(b, loop.index, left, ""));
    cg_if_close(l, &branch);
    loop.step = LLVMBuildLoad2(b, l->module->i64, done, "");
    cg_loop_close(l, &loop);
}

bool cg_lower_updates(struct cg_lowering *l, const struct nest_statement *s)
{
    struct trips p = {0};
    struct arena_mark mark = arena_mark(l->arena);
    if (!sort_trips(l, s, &p)) {
        arena_rewind(l->arena, mark);
        return false;
    }
    int64_t n = cg_extent(l, s), rest = n / TRIPS * TRIPS;
    if (find_inside(l, &p))
        lower_loaded(l, s, &p, cg_int(l->module, rest));
    else
        lower_ahead(l, s, &p, cg_int(l->module, 0), cg_int(l->module, rest));
    struct cg_loop loop =
        cg_loop_open(l, cg_int(l->module, rest), cg_int(l->module, n), cg_int(l->module, 1));
    l->axes[s->axes[0]] = loop.index;
    cg_lower_block(l, s->body);
    cg_loop_close(l, &loop);
    return true;
}
