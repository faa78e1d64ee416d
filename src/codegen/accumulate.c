// SPDX-License-Identifier: Apache-2.0
// Accumulators of folds, in the order that docs/numerics.md fixes: 64 strided accumulators fold to
// one by halves, blocks combine pairwise.
//
// Memory that only constant offsets reach is promoted to registers by LLVM, so a fold along the
// vector axis keeps its accumulators in vector registers.
#include "codegen/accumulate.h"
#include "codegen/access.h"
#include "codegen/emit.h"
#include "codegen/index.h"
#include "codegen/layers.h"
#include "codegen/loop.h"
#include "codegen/lower.h"
#include "codegen/memory.h"
#include "codegen/scalar.h"
#include "codegen/types.h"

#include <assert.h>
#include <llvm-c/Target.h>

#define WRITTEN_OUT 16 // vectors of a short fold

static LLVMTypeRef part_type(struct cg_lowering *l, const struct cg_accumulator *a)
{
    return cg_memory_type(l->module, a->dtype);
}

static unsigned part_bytes(const struct cg_accumulator *a)
{
    return dtype_get(dtype_real(a->dtype))->bytes;
}

bool cg_is_arg(const struct cg_accumulator *a) { return ir_is_arg(a->op); }

static int part_count(const struct cg_accumulator *a)
{
    return cg_is_arg(a) ? 3 : dtype_is_complex(a->dtype) ? 2 : 1;
}

static bool has_part(const struct cg_accumulator *a, int part)
{
    return part != 1 || dtype_is_complex(a->dtype);
}

// Positions count from the start of the block, so 32 bits hold them; results keep whole ones.
static LLVMTypeRef lane_type(struct cg_lowering *l, const struct cg_accumulator *a, int part,
                             bool is_result)
{
    return part != 2 ? part_type(l, a) : is_result ? l->module->i64 : l->module->i32;
}

static LLVMValueRef load_lanes(struct cg_lowering *l, LLVMTypeRef lane, unsigned lanes,
                               LLVMValueRef at)
{
    LLVMValueRef v = LLVMBuildLoad2(l->m.b, cg_with_lanes(lane, lanes), at, "");
    LLVMSetAlignment(v, LLVMABISizeOfType(LLVMGetModuleDataLayout(l->module->module), lane));
    return v;
}

static void store_lanes(struct cg_lowering *l, LLVMTypeRef lane, LLVMValueRef v,
                        LLVMValueRef at)
{
    LLVMSetAlignment(LLVMBuildStore(l->m.b, v, at),
                     LLVMABISizeOfType(LLVMGetModuleDataLayout(l->module->module), lane));
}

struct cg_element cg_element_load(struct cg_lowering *l, const struct cg_accumulator *a,
                                  bool is_result, const LLVMValueRef base[3], LLVMValueRef i,
                                  unsigned lanes)
{
    struct cg_element t = {{0}};
    for (int part = 0; part < part_count(a); part++)
        if (has_part(a, part)) {
            LLVMTypeRef lane = lane_type(l, a, part, is_result);
            t.v[part] = load_lanes(l, lane, lanes, cg_at(l, lane, base[part], i));
        }
    return t;
}

void cg_element_store(struct cg_lowering *l, const struct cg_accumulator *a, bool is_result,
                      const LLVMValueRef base[3], LLVMValueRef i, const struct cg_element *t)
{
    for (int part = 0; part < part_count(a); part++)
        if (has_part(a, part)) {
            LLVMTypeRef lane = lane_type(l, a, part, is_result);
            store_lanes(l, lane, t->v[part], cg_at(l, lane, base[part], i));
        }
}

struct cg_value cg_element_value(struct cg_lowering *l, const struct cg_accumulator *a,
                                 const struct cg_element *t)
{
    LLVMValueRef re = t->v[0];
    if (a->dtype == JOT_BOOL)
        re = LLVMBuildICmp(l->m.b, LLVMIntNE, re, LLVMConstNull(LLVMTypeOf(re)), "");
    return (struct cg_value){re, t->v[1]};
}

static void from_value(struct cg_lowering *l, const struct cg_accumulator *a, struct cg_value v,
                       struct cg_element *t)
{
    t->v[0] = v.re;
    t->v[1] = v.im;
    if (a->dtype == JOT_BOOL)
        t->v[0] =
            LLVMBuildZExt(l->m.b, v.re, cg_with_lanes(l->module->i8, cg_lanes_of(v.re)), "");
}

// The winner of an ARG op; of equals the one that came first.
static struct cg_element combine_arg(struct cg_lowering *l, const struct cg_accumulator *a,
                                     const struct cg_element *x, const struct cg_element *y)
{
    LLVMBuilderRef b = l->m.b;
    LLVMValueRef wins = cg_wins(&l->m, a->op, a->dtype, y->v[0], x->v[0]);
    LLVMValueRef loses = cg_wins(&l->m, a->op, a->dtype, x->v[0], y->v[0]);
    LLVMValueRef earlier = LLVMBuildICmp(b, LLVMIntSLT, y->v[2], x->v[2], "");
    LLVMValueRef tie = LLVMBuildAnd(b, LLVMBuildNot(b, loses, ""), earlier, "");
    LLVMValueRef take = LLVMBuildOr(b, wins, tie, "");
    struct cg_element r = {{LLVMBuildSelect(b, take, y->v[0], x->v[0], ""), NULL,
                            LLVMBuildSelect(b, take, y->v[2], x->v[2], "")}};
    return r;
}

struct cg_element cg_element_combine(struct cg_lowering *l, const struct cg_accumulator *a,
                                     const struct cg_element *x, const struct cg_element *y)
{
    if (cg_is_arg(a))
        return combine_arg(l, a, x, y);
    struct cg_value v = cg_combine(&l->m, a->op, a->dtype, cg_element_value(l, a, x),
                                   cg_element_value(l, a, y));
    struct cg_element r = {{0}};
    from_value(l, a, v, &r);
    return r;
}

// Rows start on cache lines when they are long: vectors that cross lines cost twice.
static int64_t padded(const struct cg_accumulator *a)
{
    return a->own_axis || a->lanes > 1 || a->count < 16 ? a->count : (a->count + 15) / 16 * 16;
}

void cg_accumulator_make(struct cg_lowering *l, struct cg_accumulator *a)
{
    assert(a->rows <= CG_FOLD_LANES && (a->rows & (a->rows - 1)) == 0);
    if (a->stride == 0)
        a->stride = padded(a);
    uint64_t lanes = (uint64_t)a->rows * (uint64_t)a->stride * a->lanes;
    a->base[0] = cg_scratch(l, lanes * part_bytes(a));
    if (dtype_is_complex(a->dtype))
        a->base[1] = cg_scratch(l, lanes * part_bytes(a));
    if (cg_is_arg(a))
        a->base[2] = cg_scratch(l, lanes * 4);
}

struct cg_element cg_element_identity(struct cg_lowering *l, const struct cg_accumulator *a,
                                      unsigned lanes)
{
    struct cg_element t = {{0}};
    bool is_neutral = a->elements && cg_has_neutral(a->op, a->dtype);
    from_value(l, a,
               is_neutral ? cg_neutral(&l->m, a->op, a->dtype, lanes)
                          : cg_identity(l->module, a->op, a->dtype, lanes),
               &t);
    return t;
}

struct cg_element cg_element_of_short(struct cg_lowering *l, const struct cg_accumulator *a,
                                      const struct cg_element *t)
{
    struct cg_accumulator plain = *a;
    plain.elements = 0;
    unsigned lanes = cg_lanes_of(t->v[0]);
    struct cg_element none = cg_element_identity(l, &plain, lanes),
                      neutral = cg_element_identity(l, a, lanes);
    return none.v[0] == neutral.v[0] ? *t : cg_element_combine(l, a, &none, t);
}

// Calls body on every run of lanes [0, total): whole vectors, then single lanes.
typedef void run(struct cg_lowering *l, void *ctx, LLVMValueRef at, unsigned lanes);

static void for_runs(struct cg_lowering *l, int64_t total, unsigned width, run *body, void *ctx)
{
    int64_t whole = total / width * width;
    if (whole == width || (l->chunks.at && whole <= WRITTEN_OUT * (int64_t)width)) {
        // With constant indices, so that the accumulators of a short fold in a loop over time are
        // registers.
        for (int64_t at = 0; at < whole; at += width)
            body(l, ctx, cg_int(l->module, at), width);
    } else if (whole) {
        struct cg_loop loop = cg_loop_open(l, cg_int(l->module, 0), cg_int(l->module, whole),
                                           cg_int(l->module, width));
        body(l, ctx, loop.index, width);
        cg_loop_close(l, &loop);
    }
    for (int64_t at = whole; width > 1 && at < total;) {
        unsigned rest = width;
        while (rest > total - at)
            rest /= 2;
        body(l, ctx, cg_int(l->module, at), rest);
        at += rest;
    }
}

// Vectors that a row consists of.
static unsigned row_width(const struct cg_accumulator *a)
{
    return a->stride % 64 == 0 ? 64 : 16;
}

static void reset_run(struct cg_lowering *l, void *ctx, LLVMValueRef at, unsigned lanes)
{
    const struct cg_accumulator *a = ctx;
    struct cg_element t = cg_element_identity(l, a, lanes);
    if (cg_is_arg(a)) {
        // The row of a lane is its number among the accumulators: that element comes first to it.
        LLVMValueRef row = LLVMBuildTrunc(l->m.b, at, l->module->i32, "");
        if (a->lanes > 1)
            row = LLVMBuildUDiv(l->m.b, row, LLVMConstInt(l->module->i32, a->lanes, 0), "");
        t.v[2] = cg_splat(&l->m, row, lanes);
        if (a->lanes == 1 && lanes > 1)
            t.v[2] = LLVMBuildAdd(l->m.b, t.v[2],
                                  cg_sequence(l->module, l->module->i32, lanes, 0, 1), "");
    }
    cg_element_store(l, a, false, a->base, at, &t);
}

void cg_accumulator_reset(struct cg_lowering *l, struct cg_accumulator *a)
{
    if (a->elements)
        return;
    if (a->one_row) {
        for (int64_t at = 0; at < a->stride; at += row_width(a))
            reset_run(l, a, cg_int(l->module, at), row_width(a));
        return;
    }
    unsigned width = a->lanes > 1 ? a->lanes : a->rows < 16 ? a->rows : 16;
    if (a->own_axis)
        width = a->rows;
    for_runs(l, (int64_t)a->rows * a->stride * a->lanes, width, reset_run, a);
}

static struct cg_element updated(struct cg_lowering *l, const struct cg_accumulator *a,
                                 const struct cg_element *old, struct cg_value v,
                                 struct cg_value v2, LLVMValueRef position, LLVMValueRef mask)
{
    struct cg_element fresh = {{0}};
    if (cg_is_arg(a)) {
        // Elements come in order, so an equal one never wins.
        struct cg_element element = {{0}};
        from_value(l, a, v, &element);
        LLVMValueRef wins = cg_wins(&l->m, a->op, a->dtype, element.v[0], old->v[0]);
        fresh.v[0] = LLVMBuildSelect(l->m.b, wins, element.v[0], old->v[0], "");
        fresh.v[2] = LLVMBuildSelect(l->m.b, wins, position, old->v[2], "");
    } else if (a->op == IR_fma) {
        struct cg_value sum =
            cg_combine_fma(&l->m, a->dtype, cg_element_value(l, a, old), v, v2);
        from_value(l, a, sum, &fresh);
    } else {
        struct cg_element element = {{0}};
        from_value(l, a, v, &element);
        fresh = cg_element_combine(l, a, old, &element);
    }
    for (int part = 0; mask && part < 3; part++)
        if (fresh.v[part])
            fresh.v[part] = LLVMBuildSelect(l->m.b, mask, fresh.v[part], old->v[part], "");
    return fresh;
}

// The destination is contiguous or otherwise spread along the vector axis: an ordinary access to
// the row of this accumulator.
static void accumulate_row(struct cg_lowering *l, const struct cg_accumulator *a,
                           LLVMValueRef slot, const struct nest_index *x, struct cg_value v,
                           struct cg_value v2, LLVMValueRef guard)
{
    LLVMValueRef row = LLVMBuildMul(l->m.b, slot, cg_int(l->module, a->stride), "");
    LLVMTypeRef lane = part_type(l, a);
    jot_dtype part = dtype_real(a->dtype);
    LLVMValueRef re = cg_at(l, lane, a->base[0], row),
                 im = a->base[1] ? cg_at(l, lane, a->base[1], row) : NULL;
    struct cg_value old = {cg_load_at(l, re, part, x, guard, NULL).re,
                           im ? cg_load_at(l, im, part, x, guard, NULL).re : NULL};
    struct cg_element before = {{0}};
    from_value(l, a, cg_wide_value(l, old), &before);
    struct cg_element t =
        updated(l, a, &before, cg_wide_value(l, v), cg_wide_value(l, v2), NULL, NULL);
    struct cg_value fresh = cg_element_value(l, a, &t);
    cg_store_at(l, re, part, x, guard, NULL, (struct cg_value){fresh.re, NULL});
    if (im)
        cg_store_at(l, im, part, x, guard, NULL, (struct cg_value){fresh.im, NULL});
}

void cg_accumulate(struct cg_lowering *l, const struct cg_accumulator *a, LLVMValueRef slot,
                   const struct nest_index *x, struct cg_value v, struct cg_value v2,
                   LLVMValueRef position, LLVMValueRef guard)
{
    bool other_axis = !a->own_axis && a->lanes != l->vector.lanes;
    if (a->rows == 1 && !a->own_axis)
        slot = cg_int(l->module, 0);
    if (a->one_row) {
        // Rows are padded to whole vectors, so no mask keeps the row out of registers.
        LLVMValueRef at = cg_index_first(l, x);
        struct cg_element old = cg_element_load(l, a, false, a->base, at, l->vector.lanes);
        struct cg_element fresh =
            updated(l, a, &old, cg_wide_value(l, v), cg_wide_value(l, v2), NULL, NULL);
        cg_element_store(l, a, false, a->base, at, &fresh);
        return;
    }
    if (x && other_axis) {
        accumulate_row(l, a, slot, x, v, v2, guard);
        return;
    }
    LLVMValueRef destination = x ? cg_index_value(l, x, JOT_I64) : cg_int(l->module, 0);
    LLVMBuilderRef b = l->m.b;
    LLVMValueRef at;
    if (a->own_axis)
        at = LLVMBuildAdd(b, LLVMBuildMul(b, destination, cg_int(l->module, a->rows), ""), slot,
                          "");
    else
        at = LLVMBuildAdd(b, LLVMBuildMul(b, slot, cg_int(l->module, a->stride), ""),
                          destination, "");
    if (!a->own_axis && a->lanes > 1)
        at = LLVMBuildMul(b, at, cg_int(l->module, a->lanes), "");
    LLVMValueRef mask = a->lanes > 1 || a->own_axis ? l->vector.mask : NULL;
    if (guard)
        mask = mask ? LLVMBuildAnd(b, mask, cg_wide(l, guard), "") : cg_wide(l, guard);
    struct cg_element old = a->elements
                                ? cg_element_identity(l, a, l->vector.lanes)
                                : cg_element_load(l, a, false, a->base, at, l->vector.lanes);
    struct cg_element fresh = updated(l, a, &old, cg_wide_value(l, v), cg_wide_value(l, v2),
                                      cg_wide(l, position), mask);
    cg_element_store(l, a, false, a->base, at, &fresh);
}

struct keep {
    const struct cg_accumulator *a;
    LLVMValueRef all[3], row;
};

static void keep_run(struct cg_lowering *l, void *ctx, LLVMValueRef at, unsigned lanes)
{
    const struct keep *k = ctx;
    struct cg_element t = cg_element_load(l, k->a, false, k->a->base, at, lanes);
    cg_element_store(l, k->a, false, k->all, LLVMBuildAdd(l->m.b, k->row, at, ""), &t);
}

void cg_accumulator_one_row(struct cg_lowering *l, struct cg_accumulator *a,
                            LLVMValueRef all[2])
{
    all[0] = a->base[0];
    all[1] = a->base[1];
    a->base[0] = cg_alloca(l, LLVMArrayType2(part_type(l, a), (uint64_t)a->stride), 1);
    if (a->base[1])
        a->base[1] = cg_alloca(l, LLVMArrayType2(part_type(l, a), (uint64_t)a->stride), 1);
    a->one_row = true;
}

void cg_accumulator_keep_row(struct cg_lowering *l, struct cg_accumulator *a,
                             const LLVMValueRef all[2], LLVMValueRef slot)
{
    struct keep k = {.a = a, .all = {all[0], all[1], NULL}};
    k.row = LLVMBuildMul(l->m.b, slot, cg_int(l->module, a->stride), "");
    for (int64_t at = 0; at < a->stride; at += row_width(a))
        keep_run(l, &k, cg_int(l->module, at), row_width(a));
}

void cg_accumulator_few_slots(struct cg_lowering *l, struct cg_accumulator *a, unsigned lanes)
{
    a->rows = lanes;
    cg_accumulator_make(l, a);
}

void cg_accumulator_keep_slots(struct cg_lowering *l, const struct cg_accumulator *a,
                               const struct cg_accumulator *all, LLVMValueRef slot)
{
    LLVMBuilderRef b = l->m.b;
    struct cg_loop loop = cg_loop_open(l, cg_int(l->module, 0), cg_int(l->module, a->count),
                                       cg_int(l->module, 1));
    LLVMValueRef from = LLVMBuildMul(b, loop.index, cg_int(l->module, a->rows), "");
    LLVMValueRef to = LLVMBuildMul(b, loop.index, cg_int(l->module, all->rows), "");
    struct cg_element t = cg_element_load(l, a, false, a->base, from, a->rows);
    cg_element_store(l, all, false, all->base, LLVMBuildAdd(b, to, slot, ""), &t);
    cg_loop_close(l, &loop);
}

struct cg_element cg_element_lanes(struct cg_lowering *l, const struct cg_element *t,
                                   unsigned first, unsigned n)
{
    struct cg_element r = {{0}};
    for (int part = 0; part < 3; part++)
        if (t->v[part])
            r.v[part] = cg_extract(&l->m, t->v[part], first, n);
    return r;
}

struct finish {
    const struct cg_accumulator *a;
    int64_t half;
    const LLVMValueRef *to;
    LLVMValueRef to_at, first_position;
};

void cg_element_to_sequence(struct cg_lowering *l, struct cg_element *t, LLVMValueRef first)
{
    if (!t->v[2])
        return;
    unsigned lanes = cg_lanes_of(t->v[2]);
    LLVMValueRef wide =
        LLVMBuildZExt(l->m.b, t->v[2], cg_with_lanes(l->module->i64, lanes), "");
    t->v[2] = LLVMBuildAdd(l->m.b, wide, cg_splat(&l->m, first, lanes), "");
}

// All lanes of one destination stand together: halves of one vector.
static void finish_lanes(struct cg_lowering *l, void *ctx, LLVMValueRef at, unsigned lanes)
{
    const struct finish *f = ctx;
    const struct cg_accumulator *a = f->a;
    (void)lanes;
    LLVMValueRef first = LLVMBuildMul(l->m.b, at, cg_int(l->module, a->rows), "");
    struct cg_element t = cg_element_load(l, a, false, a->base, first, a->rows);
    for (unsigned half = a->rows / 2; half; half /= 2) {
        struct cg_element low = cg_element_lanes(l, &t, 0, half),
                          high = cg_element_lanes(l, &t, half, half);
        t = cg_element_combine(l, a, &low, &high);
    }
    cg_element_to_sequence(l, &t, f->first_position);
    cg_element_store(l, a, true, f->to, LLVMBuildAdd(l->m.b, f->to_at, at, ""), &t);
}

static void halve_run(struct cg_lowering *l, void *ctx, LLVMValueRef at, unsigned lanes)
{
    const struct finish *f = ctx;
    LLVMValueRef other =
        LLVMBuildAdd(l->m.b, at, cg_int(l->module, f->half * f->a->stride * f->a->lanes), "");
    struct cg_element low = cg_element_load(l, f->a, false, f->a->base, at, lanes);
    struct cg_element high = cg_element_load(l, f->a, false, f->a->base, other, lanes);
    struct cg_element r = cg_element_combine(l, f->a, &low, &high);
    cg_element_store(l, f->a, false, f->a->base, at, &r);
}

static void copy_run(struct cg_lowering *l, void *ctx, LLVMValueRef at, unsigned lanes)
{
    const struct finish *f = ctx;
    struct cg_element t = cg_element_load(l, f->a, false, f->a->base, at, lanes);
    cg_element_to_sequence(l, &t, f->first_position);
    cg_element_store(l, f->a, true, f->to, LLVMBuildAdd(l->m.b, f->to_at, at, ""), &t);
}

// By halves, in registers: the accumulators that differ by one come last.
static struct cg_element fold_elements(struct cg_lowering *l, const struct cg_accumulator *a,
                                       unsigned first, unsigned step)
{
    if (step == a->rows) {
        return first < a->elements
                   ? cg_element_load(l, a, false, a->base, cg_int(l->module, first * a->lanes),
                                     a->lanes)
                   : cg_element_identity(l, a, a->lanes);
    }
    struct cg_element low = fold_elements(l, a, first, 2 * step),
                      high = fold_elements(l, a, first + step, 2 * step);
    return cg_element_combine(l, a, &low, &high);
}

void cg_accumulator_finish(struct cg_lowering *l, const struct cg_accumulator *a,
                           const struct cg_results *to, LLVMValueRef row,
                           LLVMValueRef first_position)
{
    int64_t row_lanes = a->own_axis ? a->count : a->count * a->lanes;
    struct finish f = {.a = a, .to = to->base, .first_position = first_position};
    f.to_at = LLVMBuildMul(l->m.b, row, cg_int(l->module, row_lanes), "");
    if (a->elements) {
        struct cg_element t = fold_elements(l, a, 0, 1);
        t = cg_element_of_short(l, a, &t);
        cg_element_store(l, a, true, f.to, f.to_at, &t);
        return;
    }
    bool together = a->own_axis || (a->lanes == 1 && a->count == 1);
    if (together) {
        for_runs(l, a->count, 1, finish_lanes, &f);
        return;
    }
    unsigned width = a->lanes > 1 ? a->lanes : 16;
    for (f.half = a->rows / 2; f.half; f.half /= 2)
        for_runs(l, f.half * a->stride * a->lanes, width, halve_run, &f);
    for_runs(l, row_lanes, width, copy_run, &f);
}

struct cg_results cg_results_make(struct cg_lowering *l, const struct cg_accumulator *a,
                                  int64_t rows)
{
    uint64_t lanes = (uint64_t)(rows * a->count) * (a->own_axis ? 1 : a->lanes);
    struct cg_results r = {0};
    r.base[0] = cg_scratch(l, lanes * part_bytes(a));
    if (dtype_is_complex(a->dtype))
        r.base[1] = cg_scratch(l, lanes * part_bytes(a));
    if (cg_is_arg(a))
        r.base[2] = cg_scratch(l, lanes * 8);
    return r;
}

struct tree {
    const struct cg_accumulator *a;
    const LLVMValueRef *base;
    LLVMValueRef to, from; // lane offsets of the rows
    bool copies;           // an odd row passes up unchanged
};

static void tree_run(struct cg_lowering *l, void *ctx, LLVMValueRef at, unsigned lanes)
{
    const struct tree *t = ctx;
    int64_t row_lanes = t->a->own_axis ? t->a->count : t->a->count * t->a->lanes;
    LLVMBuilderRef b = l->m.b;
    LLVMValueRef from = LLVMBuildAdd(b, t->from, at, "");
    struct cg_element r = cg_element_load(l, t->a, true, t->base, from, lanes);
    if (!t->copies) {
        LLVMValueRef next = LLVMBuildAdd(b, from, cg_int(l->module, row_lanes), "");
        struct cg_element other = cg_element_load(l, t->a, true, t->base, next, lanes);
        r = cg_element_combine(l, t->a, &r, &other);
    }
    cg_element_store(l, t->a, true, t->base, LLVMBuildAdd(b, t->to, at, ""), &r);
}

void cg_results_combine(struct cg_lowering *l, const struct cg_accumulator *a,
                        const struct cg_results *r, int64_t rows)
{
    int64_t row_lanes = a->own_axis ? a->count : a->count * a->lanes;
    bool is_sum = a->op == IR_reduce_sum || a->op == IR_fma;
    if (is_sum && rows > 2 && (a->dtype == JOT_F32 || a->dtype == JOT_F64)) {
        cg_call_tree(l, a->dtype, r->base[0], rows, row_lanes);
        return;
    }
    unsigned width = !a->own_axis && a->lanes > 1 ? a->lanes : row_lanes < 16 ? 1 : 16;
    struct tree t = {.a = a, .base = r->base};
    for (; rows > 1; rows = (rows + 1) / 2) {
        struct cg_loop loop = cg_loop_open(l, cg_int(l->module, 0), cg_int(l->module, rows / 2),
                                           cg_int(l->module, 1));
        t.copies = false;
        t.to = LLVMBuildMul(l->m.b, loop.index, cg_int(l->module, row_lanes), "");
        t.from = LLVMBuildMul(l->m.b, loop.index, cg_int(l->module, 2 * row_lanes), "");
        for_runs(l, row_lanes, width, tree_run, &t);
        cg_loop_close(l, &loop);
        if (rows % 2) {
            t.copies = true;
            t.to = cg_int(l->module, rows / 2 * row_lanes);
            t.from = cg_int(l->module, (rows - 1) * row_lanes);
            for_runs(l, row_lanes, width, tree_run, &t);
        }
    }
}

struct cg_value cg_result_load(struct cg_lowering *l, const struct cg_accumulator *a,
                               const struct cg_results *r, LLVMValueRef i)
{
    unsigned lanes = a->own_axis ? 1 : a->lanes;
    LLVMValueRef at = LLVMBuildMul(l->m.b, i, cg_int(l->module, lanes), "");
    struct cg_element t = cg_element_load(l, a, true, r->base, at, lanes);
    struct cg_value v = cg_element_value(l, a, &t);
    if (cg_is_arg(a))
        v.im = t.v[2];
    return v;
}
