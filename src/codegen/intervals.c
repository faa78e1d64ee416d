// SPDX-License-Identifier: Apache-2.0
// Loops in intervals: where a body compares an index with numbers, most of the loop is on one
// side of all of them.
//
//     map j < 256 {                          for j in 0 .. 15, 240 .. 255: as it is
//       %1 = index j                         for j in 16 .. 239:
//       %2 = lt %1, 1               gives      %2 = false, so neither load is guarded and
//       %3 = load x[j - 1] if not %2           nothing is selected
//       ...
//
// Borders of stencils, padding and concatenations are such comparisons.
#include "codegen/intervals.h"
#include "codegen/loop.h"
#include "codegen/lower.h"
#include "codegen/types.h"

#define MOST_CUTS 16
#define MOST_STATEMENTS 160 // a longer body is not written twice

struct cuts {
    nest_id axis;
    int count, statements;
    int64_t at[MOST_CUTS];
};

static void cut(struct cuts *c, int64_t at)
{
    if (c->count < MOST_CUTS)
        c->at[c->count++] = at;
}

static void find_cuts(const struct cg_lowering *l, uint32_t block, struct cuts *c)
{
    nest_for_below (s, l->nest, block) {
        struct nest_comparison x;
        c->statements++;
        if (!nest_compares(l->nest, s, &x) || x.axis != c->axis)
            continue;
        int64_t edge = (x.number - x.constant) * x.factor;
        bool is_equality = s->op == IR_eq || s->op == IR_ne;
        bool is_below = (s->op == IR_lt || s->op == IR_ge) == (x.factor == 1);
        if (is_equality || is_below)
            cut(c, edge);
        if (is_equality || !is_below)
            cut(c, edge + 1);
    }
}

bool cg_interval_has(const struct cg_lowering *l, uint32_t block, nest_id axis)
{
    struct cuts c = {.axis = axis};
    find_cuts(l, block, &c);
    return c.count > 0;
}

bool cg_interval_find(const struct cg_lowering *l, uint32_t block, nest_id axis, int64_t unit,
                      struct nest_interval *out)
{
    int64_t extent = l->nest->axes.at[axis].extent;
    struct cuts c = {.axis = axis};
    find_cuts(l, block, &c);
    *out = (struct nest_interval){0};
    if (c.count == 0 || c.count == MOST_CUTS || c.statements > MOST_STATEMENTS)
        return false;
    // The longest gap, from every start.
    for (int i = -1; i < c.count; i++) {
        int64_t first = i < 0 ? 0 : c.at[i], end = extent;
        for (int k = 0; k < c.count; k++)
            if (c.at[k] > first && c.at[k] < end)
                end = c.at[k];
        if (first >= 0 && end - first > out->end - out->first)
            *out = (struct nest_interval){first, end};
    }
    out->first = (out->first + unit - 1) / unit * unit;
    out->end -= out->end % unit;
    return out->end - out->first >= 2 * unit && 2 * (out->end - out->first) >= extent;
}

void cg_interval_enter(struct cg_lowering *l, nest_id axis,
                       const struct nest_interval *interval)
{
    if (!l->around.known)
        l->around.known = arena_array(l->arena, struct nest_interval, l->nest->axes.count + 1);
    l->around.known[axis] = *interval;
}

void cg_interval_leave(struct cg_lowering *l, nest_id axis)
{
    l->around.known[axis] = (struct nest_interval){0};
}

LLVMValueRef cg_interval_decides(const struct cg_lowering *l, const struct nest_statement *s)
{
    int is = nest_decides(l->nest, s, l->around.known);
    return is < 0 ? NULL : LLVMConstInt(l->module->i1, (unsigned)is, 0);
}

// The lesser or greater of two numbers.
static LLVMValueRef bound(struct cg_lowering *l, LLVMIntPredicate p, LLVMValueRef x, int64_t y)
{
    LLVMValueRef number = cg_int(l->module, y);
    return LLVMBuildSelect(l->m.b, LLVMBuildICmp(l->m.b, p, x, number, ""), x, number, "");
}

struct cg_ranges cg_ranges_of(struct cg_lowering *l, const struct nest_interval *interval,
                              LLVMValueRef begin, LLVMValueRef end)
{
    struct cg_ranges r = {begin, end, begin, end};
    // Both in begin .. end, and the first not after the last.
    LLVMValueRef first = bound(l, LLVMIntSGT, begin, interval->first);
    r.inner_end = bound(l, LLVMIntSLT, end, interval->end);
    LLVMValueRef fits = LLVMBuildICmp(l->m.b, LLVMIntSLT, first, r.inner_end, "");
    r.inner_begin = LLVMBuildSelect(l->m.b, fits, first, end, "");
    r.inner_end = LLVMBuildSelect(l->m.b, fits, r.inner_end, end, "");
    return r;
}

struct cg_loop cg_border_open(struct cg_lowering *l, const struct cg_ranges *r,
                              LLVMValueRef *begin, LLVMValueRef *end)
{
    struct cg_loop sides =
        cg_loop_open(l, cg_int(l->module, 0), cg_int(l->module, 2), cg_int(l->module, 1));
    LLVMValueRef is_first =
        LLVMBuildICmp(l->m.b, LLVMIntEQ, sides.index, cg_int(l->module, 0), "");
    *begin = LLVMBuildSelect(l->m.b, is_first, r->begin, r->inner_end, "");
    *end = LLVMBuildSelect(l->m.b, is_first, r->inner_begin, r->end, "");
    return sides;
}
