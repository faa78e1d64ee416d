// SPDX-License-Identifier: Apache-2.0
// Loads and stores: an affine index becomes a plain, contiguous, strided or gathered access by its
// factor along the vector axis.
#include "codegen/access.h"
#include "codegen/branch.h"
#include "codegen/contiguous.h"
#include "codegen/emit.h"
#include "codegen/hooks.h"
#include "codegen/index.h"
#include "codegen/loop.h"
#include "codegen/lower.h"
#include "codegen/memory.h"
#include "codegen/own.h"
#include "codegen/prefetch.h"
#include "codegen/records.h"
#include "codegen/scalar.h"
#include "codegen/slide.h"
#include "codegen/stack.h"
#include "codegen/strided.h"
#include "codegen/types.h"
#include "ir/cost.h"

LLVMValueRef cg_wide(struct cg_lowering *l, LLVMValueRef v)
{
    return v ? cg_splat(&l->m, v, l->vector.lanes) : NULL;
}

struct cg_value cg_wide_value(struct cg_lowering *l, struct cg_value v)
{
    return (struct cg_value){cg_wide(l, v.re), cg_wide(l, v.im)};
}

// How far each lane is from lane 0 by the factor, in units of `unit` elements: 32 bits when they
// fit, for twice as many lanes are gathered at once then.
static LLVMValueRef strided_offsets(struct cg_lowering *l, const struct cg_parts *p,
                                    int64_t unit)
{
    int64_t step = p->factor * unit, reach = step * (int64_t)l->vector.lanes;
    bool narrow = reach < INT32_MAX && reach > INT32_MIN;
    return cg_sequence(l->module, narrow ? l->module->i32 : l->module->i64, l->vector.lanes, 0,
                       step);
}

LLVMValueRef cg_and_masks(struct cg_lowering *l, LLVMValueRef a, LLVMValueRef b)
{
    if (!a || !b)
        return a ? a : b;
    return LLVMBuildAnd(l->m.b, a, b, "");
}

static LLVMValueRef reversed(struct cg_lowering *l, LLVMValueRef v)
{
    unsigned n = cg_lanes_of(v);
    LLVMValueRef order = cg_sequence(l->module, l->module->i32, n, (int64_t)n - 1, -1);
    return LLVMBuildShuffleVector(l->m.b, v, LLVMGetPoison(LLVMTypeOf(v)), order, "");
}

static LLVMValueRef full_mask(struct cg_lowering *l, LLVMValueRef mask)
{
    return mask ? mask : LLVMConstAllOnes(LLVMVectorType(l->module->i1, l->vector.lanes));
}

static LLVMValueRef pointers(struct cg_lowering *l, LLVMTypeRef lane, LLVMValueRef base,
                             LLVMValueRef offsets)
{
    return LLVMBuildGEP2(l->m.b, lane, base, &offsets, 1, "");
}

// Whether lanes go one by one: where it is known how far they are apart, as many loads or stores take less time on a
// processor than its instruction that gathers or scatters (on an EPYC of 2024 0.12 ns against 0.41 for 8 bytes that are
// loaded, 0.16 against 0.27 for those that are stored).
static bool is_one_by_one(const struct cg_lowering *l, LLVMValueRef offsets, LLVMValueRef mask)
{
    return !mask && !l->gpu && LLVMIsConstant(offsets);
}

static LLVMValueRef pointer_of(struct cg_lowering *l, LLVMTypeRef lane, LLVMValueRef base,
                               LLVMValueRef offsets, unsigned i)
{
    return cg_at(l, lane, base, LLVMGetAggregateElement(offsets, i));
}

LLVMValueRef cg_gather(struct cg_lowering *l, LLVMTypeRef lane, LLVMValueRef base,
                       LLVMValueRef offsets, unsigned align, LLVMValueRef mask)
{
    LLVMTypeRef type = LLVMVectorType(lane, l->vector.lanes);
    if (is_one_by_one(l, offsets, mask)) {
        LLVMValueRef v = LLVMGetPoison(type);
        for (unsigned i = 0; i < l->vector.lanes; i++)
            v = LLVMBuildInsertElement(
                l->m.b, v, cg_load_plain(l, lane, pointer_of(l, lane, base, offsets, i), align),
                LLVMConstInt(l->module->i32, i, 0), "");
        return v;
    }
    LLVMValueRef at = pointers(l, lane, base, offsets);
    LLVMValueRef arguments[] = {at, LLVMConstInt(l->module->i32, align, 0), full_mask(l, mask),
                                LLVMConstNull(type)};
    return cg_intrinsic_of_two(&l->m, "llvm.masked.gather", type, LLVMTypeOf(at), 4, arguments);
}

void cg_scatter(struct cg_lowering *l, LLVMTypeRef lane, LLVMValueRef base,
                LLVMValueRef offsets, unsigned align, LLVMValueRef mask, LLVMValueRef v)
{
    if (is_one_by_one(l, offsets, mask)) {
        for (unsigned i = 0; i < l->vector.lanes; i++)
            LLVMSetAlignment(LLVMBuildStore(l->m.b, cg_extract(&l->m, v, i, 1),
                                            pointer_of(l, lane, base, offsets, i)),
                             align);
        return;
    }
    LLVMValueRef at = pointers(l, lane, base, offsets);
    LLVMValueRef arguments[] = {v, at, LLVMConstInt(l->module->i32, align, 0),
                                full_mask(l, mask)};
    cg_intrinsic_of_two(&l->m, "llvm.masked.scatter", LLVMTypeOf(v), LLVMTypeOf(at), 4,
                        arguments);
}

LLVMValueRef cg_from_memory(struct cg_lowering *l, LLVMValueRef v, jot_dtype d)
{
    if (d != JOT_BOOL)
        return v;
    return LLVMBuildICmp(l->m.b, LLVMIntNE, v, LLVMConstNull(LLVMTypeOf(v)), "");
}

LLVMValueRef cg_to_memory(struct cg_lowering *l, LLVMValueRef v, jot_dtype d)
{
    if (d != JOT_BOOL)
        return v;
    return LLVMBuildZExt(l->m.b, v, cg_with_lanes(l->module->i8, cg_lanes_of(v)), "");
}

// Even or odd lanes of a vector of pairs.
static LLVMValueRef every_other(struct cg_lowering *l, LLVMValueRef v, unsigned first)
{
    LLVMValueRef order = cg_sequence(l->module, l->module->i32, cg_lanes_of(v) / 2, first, 2);
    return LLVMBuildShuffleVector(l->m.b, v, LLVMGetPoison(LLVMTypeOf(v)), order, "");
}

static LLVMValueRef interleave(struct cg_lowering *l, LLVMValueRef a, LLVMValueRef b)
{
    unsigned n = cg_lanes_of(a);
    LLVMValueRef order[256];
    for (unsigned i = 0; i < n; i++) {
        order[2 * i] = LLVMConstInt(l->module->i32, i, 0);
        order[2 * i + 1] = LLVMConstInt(l->module->i32, i + n, 0);
    }
    return LLVMBuildShuffleVector(l->m.b, a, b, LLVMConstVector(order, 2 * n), "");
}

static struct cg_value load_one(struct cg_lowering *l, LLVMTypeRef lane, LLVMValueRef at,
                                unsigned align, LLVMValueRef guard, bool is_complex);

// One element under a branch, for memory that others may not write a spare of.
static struct cg_value load_if(struct cg_lowering *l, LLVMTypeRef lane, LLVMValueRef at,
                               unsigned align, LLVMValueRef guard, bool is_complex)
{
    LLVMBasicBlockRef before = LLVMGetInsertBlock(l->m.b);
    struct cg_branch branch = cg_if_open(l, guard);
    struct cg_value v = load_one(l, lane, at, align, NULL, is_complex), zero = {0};
    LLVMBasicBlockRef inside = LLVMGetInsertBlock(l->m.b);
    cg_if_close(l, &branch);
    zero.re = LLVMConstNull(lane);
    zero.im = is_complex ? zero.re : NULL;
    return cg_merge(l, v, inside, zero, before);
}

// One element; a false guard reads element 0 of a spare and gives zero.
static struct cg_value load_one(struct cg_lowering *l, LLVMTypeRef lane, LLVMValueRef at,
                                unsigned align, LLVMValueRef guard, bool is_complex)
{
    if (guard && l->gpu)
        return load_if(l, lane, at, align, guard, is_complex);
    if (guard) {
        LLVMValueRef spare = cg_alloca(l, LLVMArrayType2(lane, 2), 1);
        at = LLVMBuildSelect(l->m.b, guard, at, spare, "");
        LLVMBuildStore(l->m.b, LLVMConstNull(LLVMArrayType2(lane, 2)), spare);
    }
    struct cg_value v = {cg_load_plain(l, lane, at, align), NULL};
    if (is_complex)
        v.im = cg_load_plain(l, lane, cg_at(l, lane, at, cg_int(l->module, 1)), align);
    return v;
}

static struct cg_value load_vector(struct cg_lowering *l, LLVMTypeRef lane, LLVMValueRef base,
                                   const struct cg_parts *p, unsigned align, LLVMValueRef mask,
                                   bool is_complex)
{
    int64_t unit = is_complex ? 2 : 1;
    LLVMValueRef start = cg_times(l, p->uniform, unit);
    bool backward = p->factor == -1;
    if (!p->varying && (p->factor == 1 || backward)) {
        if (backward) {
            start = cg_add(l, start, cg_int(l->module, -unit * ((int64_t)l->vector.lanes - 1)));
            mask = mask ? reversed(l, mask) : NULL;
        }
        LLVMValueRef wide_mask = mask && is_complex ? interleave(l, mask, mask) : mask;
        LLVMValueRef all =
            cg_load_contiguous(l, lane, cg_at(l, lane, base, start),
                               l->vector.lanes * (unsigned)unit, align, wide_mask);
        struct cg_value v = {all, NULL};
        if (is_complex)
            v = (struct cg_value){every_other(l, all, 0), every_other(l, all, 1)};
        if (backward)
            v = (struct cg_value){reversed(l, v.re), v.im ? reversed(l, v.im) : NULL};
        return v;
    }
    if (cg_has_short_stride(l, p, is_complex, false)) {
        struct cg_strided a = cg_strided_of(l, lane, base, p, align, mask);
        return (struct cg_value){cg_load_strided(l, &a, 0, l->vector.lanes), NULL};
    }
    LLVMValueRef offsets;
    if (p->varying) {
        offsets = cg_times(l, cg_lane_offsets(l, p), unit);
    } else {
        base = cg_at(l, lane, base, start);
        offsets = strided_offsets(l, p, unit);
    }
    struct cg_value v = {cg_gather(l, lane, base, offsets, align, mask), NULL};
    if (is_complex)
        v.im = cg_gather(l, lane, cg_at(l, lane, base, cg_int(l->module, 1)), offsets, align,
                         mask);
    return v;
}

// All lanes or none, under a branch.
static struct cg_value load_vector_if(struct cg_lowering *l, LLVMTypeRef lane,
                                      LLVMValueRef base, const struct cg_parts *p,
                                      unsigned align, LLVMValueRef guard, bool is_complex)
{
    LLVMBasicBlockRef before = LLVMGetInsertBlock(l->m.b);
    struct cg_branch branch = cg_if_open(l, guard);
    struct cg_value v = load_vector(l, lane, base, p, align, NULL, is_complex), zero = {0};
    LLVMBasicBlockRef inside = LLVMGetInsertBlock(l->m.b);
    cg_if_close(l, &branch);
    zero.re = LLVMConstNull(LLVMTypeOf(v.re));
    zero.im = is_complex ? zero.re : NULL;
    return cg_merge(l, v, inside, zero, before);
}

// The parts of the index, or of one near element 0 where `all` says that no lane counts: a masked access of none
// looks for its page all the same, which takes long where there is none.
static struct cg_parts split_near(struct cg_lowering *l, const struct nest_index *x,
                                  LLVMValueRef all)
{
    struct cg_parts p = cg_split_index(l, x);
    // From the end lane 0 is the last one of those near element 0.
    int64_t first = p.factor < 0 ? -p.factor * ((int64_t)l->vector.lanes - 1) : 0;
    if (all && !l->gpu && l->vector.lanes > 1)
        p.uniform = LLVMBuildSelect(l->m.b, all, p.uniform, cg_int(l->module, first), "");
    return p;
}

struct cg_value cg_load_at(struct cg_lowering *l, LLVMValueRef base, jot_dtype d,
                           const struct nest_index *x, LLVMValueRef guard, LLVMValueRef all)
{
    LLVMTypeRef lane = cg_memory_type(l->module, d);
    unsigned align = l->access.align ? l->access.align : dtype_get(dtype_real(d))->bytes;
    bool is_complex = dtype_is_complex(d);
    struct cg_parts p = split_near(l, x, all);
    struct cg_value v;
    bool uniform = !p.factor && !p.varying && (!guard || cg_lanes_of(guard) == 1);
    if (l->vector.lanes == 1 || uniform) {
        LLVMValueRef at = cg_at(l, lane, base, cg_times(l, p.uniform, is_complex ? 2 : 1));
        v = load_one(l, lane, at, align, guard, is_complex);
    } else if (l->gpu && guard && cg_lanes_of(guard) == 1 && !l->vector.mask) {
        v = load_vector_if(l, lane, base, &p, align, guard, is_complex);
    } else {
        LLVMValueRef mask = cg_and_masks(l, l->vector.mask, cg_wide(l, guard));
        v = load_vector(l, lane, base, &p, align, mask, is_complex);
    }
    v.re = cg_from_memory(l, v.re, d);
    return v;
}

static void store_vector(struct cg_lowering *l, LLVMTypeRef lane, LLVMValueRef base,
                         const struct cg_parts *p, unsigned align, LLVMValueRef mask,
                         struct cg_value v)
{
    int64_t unit = v.im ? 2 : 1;
    if (!p->varying && (p->factor == 1 || p->factor == -1)) {
        LLVMValueRef start = cg_times(l, p->uniform, unit);
        if (p->factor == -1) {
            start = cg_add(l, start, cg_int(l->module, -unit * ((int64_t)l->vector.lanes - 1)));
            v = (struct cg_value){reversed(l, v.re), v.im ? reversed(l, v.im) : NULL};
            mask = mask ? reversed(l, mask) : NULL;
        }
        LLVMValueRef all = v.im ? interleave(l, v.re, v.im) : v.re;
        LLVMValueRef wide_mask = mask && v.im ? interleave(l, mask, mask) : mask;
        LLVMValueRef at = cg_at(l, lane, base, start);
        if (l->access.streams && !mask && cg_lanes_of(all) * align % COST_LINE_BYTES == 0)
            cg_store_streamed(l, all, at, align);
        else
            cg_store_contiguous(l, all, at, align, wide_mask);
        return;
    }
    if (cg_has_short_stride(l, p, v.im != NULL, true)) {
        struct cg_strided a = cg_strided_of(l, lane, base, p, align, mask);
        cg_store_strided(l, &a, v.re);
        return;
    }
    LLVMValueRef offsets;
    if (p->varying) {
        offsets = cg_times(l, cg_lane_offsets(l, p), unit);
    } else {
        base = cg_at(l, lane, base, cg_times(l, p->uniform, unit));
        offsets = strided_offsets(l, p, unit);
    }
    cg_scatter(l, lane, base, offsets, align, mask, v.re);
    if (v.im)
        cg_scatter(l, lane, cg_at(l, lane, base, cg_int(l->module, 1)), offsets, align, mask,
                   v.im);
}

static void store_one(struct cg_lowering *l, LLVMTypeRef lane, LLVMValueRef base,
                      LLVMValueRef i, unsigned align, struct cg_value v)
{
    LLVMValueRef at = cg_at(l, lane, base, cg_times(l, i, v.im ? 2 : 1));
    LLVMSetAlignment(LLVMBuildStore(l->m.b, v.re, at), align);
    if (v.im)
        LLVMSetAlignment(LLVMBuildStore(l->m.b, v.im, cg_at(l, lane, at, cg_int(l->module, 1))),
                         align);
}

// The lanes that count where others may not be touched; NULL: all, or all but lanes past the end.
LLVMValueRef cg_control_mask(struct cg_lowering *l, LLVMValueRef guard)
{
    LLVMValueRef tail = l->chunks.at ? l->chunks.at[l->chunks.now].mask : l->vector.tail;
    return cg_and_masks(l, l->vector.mask == tail ? NULL : l->vector.mask, cg_wide(l, guard));
}

// All lanes store the same element: the first that counts speaks.
static void speak_for_all(struct cg_lowering *l, struct cg_value *v, LLVMValueRef *guard)
{
    LLVMValueRef mask = cg_control_mask(l, *guard), lane = LLVMConstInt(l->module->i32, 0, 0);
    if (mask) {
        LLVMTypeRef word = LLVMIntTypeInContext(l->module->context, l->vector.lanes);
        LLVMValueRef arguments[] = {LLVMBuildBitCast(l->m.b, mask, word, ""),
                                    LLVMConstInt(l->module->i1, 0, 0)};
        lane = cg_intrinsic(&l->m, "llvm.cttz", word, 2, arguments);
        *guard = cg_any(l, mask);
    }
    if (cg_lanes_of(v->re) > 1)
        v->re = LLVMBuildExtractElement(l->m.b, v->re, lane, "");
    if (v->im && cg_lanes_of(v->im) > 1)
        v->im = LLVMBuildExtractElement(l->m.b, v->im, lane, "");
}

void cg_store_at(struct cg_lowering *l, LLVMValueRef base, jot_dtype d,
                 const struct nest_index *x, LLVMValueRef guard, LLVMValueRef all,
                 struct cg_value v)
{
    LLVMTypeRef lane = cg_memory_type(l->module, d);
    unsigned align = l->access.align ? l->access.align : dtype_get(dtype_real(d))->bytes;
    v.re = cg_to_memory(l, v.re, d);
    // What holds for all lanes at once is a branch: masked stores are slow on some processors.
    bool is_branch = guard && !l->gpu && cg_lanes_of(guard) == 1;
    struct cg_branch branch = {0};
    if (is_branch)
        branch = cg_if_open(l, guard);
    struct cg_parts p = split_near(l, x, is_branch ? NULL : all);
    bool same_element = l->vector.lanes > 1 && !p.factor && !p.varying;
    if (is_branch)
        guard = NULL;
    if (same_element)
        speak_for_all(l, &v, &guard);
    struct cg_branch inside = {0};
    if (l->vector.lanes > 1 && !same_element) {
        LLVMValueRef mask = cg_and_masks(l, l->vector.mask, cg_wide(l, guard));
        store_vector(l, lane, base, &p, align, mask, cg_wide_value(l, v));
    } else {
        if (guard)
            inside = cg_if_open(l, guard);
        store_one(l, lane, base, p.uniform, align, v);
        if (guard)
            cg_if_close(l, &inside);
    }
    if (is_branch)
        cg_if_close(l, &branch);
}

// Rows of a staged tile are further apart than their length, so that lanes do not meet in one set
// of the cache.
#define STAGE_ROW (CG_TILE + 16)

bool cg_is_plain_load(const struct cg_lowering *l, const struct nest_statement *s)
{
    if (s->kind != NEST_LOAD || s->guard != NEST_NONE || dtype_is_complex(s->dtype) ||
        l->nest->buffers.at[s->buffer].role != NEST_IN)
        return false;
    return !nest_index_has_values(&s->index);
}

bool cg_may_stage(const struct cg_lowering *l, const struct nest_statement *s, nest_id across)
{
    if (!cg_is_plain_load(l, s))
        return false;
    int64_t along = nest_index_factor(&s->index, l->vector.axis);
    return nest_index_factor(&s->index, across) == 1 && (along > 16 || along < -16);
}

void cg_stage(struct cg_lowering *l, nest_id statement)
{
    const struct nest_statement *s = &l->nest->statements.at[statement];
    LLVMBuilderRef b = l->m.b;
    jot_dtype d = l->nest->buffers.at[s->buffer].dtype;
    LLVMTypeRef lane = cg_memory_type(l->module, d);
    unsigned align = dtype_get(d)->bytes;
    if (!l->marks[statement].staged)
        l->marks[statement].staged =
            cg_scratch(l, (uint64_t)l->vector.lanes * STAGE_ROW * dtype_get(d)->bytes);
    nest_id across = l->tile.axis;
    l->axes[across] = l->tile.begin;
    struct cg_parts p = cg_split_index(l, &s->index);
    LLVMValueRef count = LLVMBuildSub(b, l->tile.end, l->tile.begin, "");
    LLVMTypeRef i32 = l->module->i32;
    LLVMValueRef mask =
        LLVMBuildICmp(b, LLVMIntULT, cg_sequence(l->module, i32, CG_TILE, 0, 1),
                      cg_splat(&l->m, LLVMBuildTrunc(b, count, i32, ""), CG_TILE), "");
    struct cg_loop row = cg_loop_open(l, cg_int(l->module, 0),
                                      cg_int(l->module, l->vector.lanes), cg_int(l->module, 1));
    LLVMValueRef from = cg_add(l, p.uniform, cg_times(l, row.index, p.factor));
    LLVMValueRef v = cg_load_contiguous(
        l, lane, cg_at(l, lane, cg_buffer_base(l, s->buffer), from), CG_TILE, align, mask);
    cg_store_contiguous(
        l, v, cg_at(l, lane, l->marks[statement].staged, cg_times(l, row.index, STAGE_ROW)),
        align, NULL);
    cg_loop_close(l, &row);
}

static struct cg_value load_staged(struct cg_lowering *l, const struct nest_statement *s,
                                   LLVMValueRef rows, nest_id across)
{
    jot_dtype d = l->nest->buffers.at[s->buffer].dtype;
    LLVMTypeRef lane = cg_memory_type(l->module, d);
    LLVMValueRef column = LLVMBuildSub(l->m.b, l->axes[across], l->tile.begin, "");
    LLVMValueRef offsets =
        cg_sequence(l->module, l->module->i32, l->vector.lanes, 0, STAGE_ROW);
    LLVMValueRef v =
        cg_gather(l, lane, cg_at(l, lane, rows, column), offsets, dtype_get(d)->bytes, NULL);
    return (struct cg_value){cg_from_memory(l, v, d), NULL};
}

// What the guard says of all lanes at once: the parts of its `and` that are the same in all of them; or NULL.
static LLVMValueRef guard_of_all(struct cg_lowering *l, nest_id guard)
{
    if (guard == NEST_NONE || cg_lanes_of(l->values[guard].re) == 1)
        return guard == NEST_NONE ? NULL : l->values[guard].re;
    const struct nest_statement *s = cg_maker_of(l, guard);
    return s->kind == NEST_OP && s->op == IR_and
               ? cg_and_masks(l, guard_of_all(l, s->in[0]), guard_of_all(l, s->in[1]))
               : NULL;
}

// An element of a constant at an index that is a number.
static bool load_number(struct cg_lowering *l, const struct nest_statement *s,
                        struct cg_value *out)
{
    const struct nest_buffer *b = &l->nest->buffers.at[s->buffer];
    if (!b->data || s->guard != NEST_NONE)
        return false;
    struct cg_parts p = cg_split_index(l, &s->index);
    int64_t at = LLVMIsConstant(p.uniform) ? LLVMConstIntGetSExtValue(p.uniform) : -1;
    if (p.factor || p.varying || at < 0 || at >= b->count)
        return false;
    const char *element = (const char *)b->data + (size_t)at * jot_dtype_size(b->dtype);
    *out = cg_constant(l->module, b->dtype, element, 1);
    return true;
}

struct cg_value cg_load(struct cg_lowering *l, const struct nest_statement *s)
{
    jot_dtype d = l->nest->buffers.at[s->buffer].dtype;
    LLVMValueRef guard = s->guard == NEST_NONE ? NULL : l->values[s->guard].re;
    if (l->nest->buffers.at[s->buffer].count == 0)
        return (struct cg_value){LLVMConstNull(cg_lane_type(l->module, d)),
                                 dtype_is_complex(d) ? LLVMConstNull(cg_lane_type(l->module, d))
                                                     : NULL};
    nest_id id = nest_id_of(l->nest, s);
    struct cg_value v;
    if (load_number(l, s, &v))
        return v;
    if (l->marks[id].staged && l->tile.across != NEST_NONE)
        return load_staged(l, s, l->marks[id].staged, l->tile.across);
    if (l->gpu && l->module->hooks->load(l, s, guard, &v))
        return v;
    if (l->marks[id].stack.memory) {
        LLVMTypeRef type = LLVMVectorType(cg_memory_type(l->module, d), l->vector.lanes);
        LLVMValueRef all = LLVMBuildLoad2(l->m.b, type, cg_stack_address(l, id, type), "");
        return (struct cg_value){cg_from_memory(l, all, d), NULL};
    }
    if (cg_is_own(l, s->buffer))
        return cg_own_load(l, s);
    cg_prefetch(l, s);
    LLVMValueRef slid = cg_slides_load(l, s, guard), of_record = cg_records_load(l, s);
    if (slid || of_record)
        return (struct cg_value){slid ? slid : of_record, NULL};
    LLVMValueRef base = cg_buffer_base(l, s->buffer);
    if (l->gpu)
        l->module->hooks->note_access(l, s);
    v = cg_load_at(l, base, d, &s->index, guard, guard_of_all(l, s->guard));
    l->access.is_constant = false;
    l->access.align = 0;
    return v;
}

void cg_store(struct cg_lowering *l, const struct nest_statement *s, struct cg_value v)
{
    jot_dtype d = l->nest->buffers.at[s->buffer].dtype;
    LLVMValueRef guard = s->guard == NEST_NONE ? NULL : l->values[s->guard].re;
    nest_id id = nest_id_of(l->nest, s);
    if (l->marks[id].stack.memory) {
        LLVMValueRef all = cg_to_memory(l, cg_wide(l, v.re), d);
        LLVMBuildStore(l->m.b, all, cg_stack_address(l, id, LLVMTypeOf(all)));
        return;
    }
    if (l->gpu && l->module->hooks->store(l, s, v))
        return;
    if (cg_is_own(l, s->buffer)) {
        cg_own_store(l, s, v);
        return;
    }
    if (cg_records_store(l, s, v.re))
        return;
    LLVMValueRef base = cg_buffer_base(l, s->buffer);
    l->access.streams = cg_is_streamed(l, s->buffer, false);
    if (l->gpu)
        l->module->hooks->note_access(l, s);
    cg_store_at(l, base, d, &s->index, guard, guard_of_all(l, s->guard), v);
    l->access.streams = false;
    l->access.align = 0;
}
