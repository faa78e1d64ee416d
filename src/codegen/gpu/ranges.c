// SPDX-License-Identifier: Apache-2.0
// Runs of operations with several functions that hold in a range: instead of a branch behind each
// function there is one behind the run, to a block that does all of it again for numbers of any
// size.  Numbers in range have the same bits either way.  In the first of the two a product of a
// sine and a cosine needs no more of the quadrant than its sign.
#include "codegen/gpu/ranges.h"
#include "codegen/branch.h"
#include "codegen/elementary.h"
#include "codegen/emit.h"
#include "codegen/gpu/arms.h"
#include "codegen/gpu/memory.h"
#include "codegen/gpu/sizes.h"
#include "codegen/lower.h"

#include "base/vec.h"
#include "ir/cost.h"

#define MANY 2  // functions that are worth a block more
#define SHORT 4 // elements of a fold in a run

static bool is_read(const struct cg_lowering *l, const struct nest_statement *s)
{
    return s->kind == NEST_LOAD && s->guard == NEST_NONE && gpu_is_read_only(l, s->buffer);
}

static bool is_scalar(const struct nest_statement *s)
{
    return s->kind == NEST_OP || s->kind == NEST_CONST || s->kind == NEST_INDEX;
}

// A short sum of what is read: a square of a distance.
static bool is_short_fold(const struct cg_lowering *l, const struct nest_statement *s)
{
    if (s->kind != NEST_FOLD || cg_extent(l, s) > SHORT)
        return false;
    nest_for_each (t, l->nest, s->body) {
        bool is_ranged = t->kind == NEST_OP && cost_of_op((enum ir_op)t->op, t->dtype) > 1;
        if (is_ranged || !(is_scalar(t) || is_read(l, t)))
            return false;
    }
    return true;
}

// What is lowered twice; of runs by size reads of what nobody writes and short sums are a part.
static bool is_in_run(const struct cg_lowering *l, const struct nest_statement *s, bool by_size)
{
    return is_scalar(s) || (by_size && (is_read(l, s) || is_short_fold(l, s)));
}

// Whether it multiplies the sine and the cosine of a number.
static bool is_of_both(const struct cg_lowering *l, const struct nest_statement *s)
{
    if (s->kind != NEST_OP || (s->op != IR_mul && s->op != IR_fma) ||
        (s->dtype != JOT_F32 && s->dtype != JOT_F64))
        return false;
    const struct nest_statement *f = cg_maker_of(l, s->in[0]), *g = cg_maker_of(l, s->in[1]);
    bool are_both =
        f->kind == NEST_OP && g->kind == NEST_OP &&
        ((f->op == IR_sin && g->op == IR_cos) || (f->op == IR_cos && g->op == IR_sin));
    return are_both && f->in[0] == g->in[0] && f->dtype == s->dtype && g->dtype == s->dtype;
}

static void lower_product(struct cg_lowering *l, nest_id id)
{
    const struct nest_statement *s = cg_statement(l, id);
    struct cg_value *f = &l->values[s->in[0]], *g = &l->values[s->in[1]], was[] = {*f, *g};
    LLVMValueRef x = l->values[cg_maker_of(l, s->in[0])->in[0]].re;
    cg_sincos_factors(&l->m, x, &f->re, &g->re);
    cg_lower_statement(l, id);
    *f = was[0];
    *g = was[1];
}

static bool is_made_here(const struct cg_lowering *l, const nest_id *statements, uint32_t n,
                         nest_id value)
{
    for (uint32_t i = n; i-- > 0;) // what is made of a value is near
        if (statements[i] == l->nest->values.at[value].statement)
            return true;
    return false;
}

// For a product of both the number has been looked at in this run.
static void lower_all(struct cg_lowering *l, const nest_id *statements, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const struct nest_statement *s = cg_statement(l, statements[i]);
        if (!l->m.ranges->is_redo && is_of_both(l, s) &&
            is_made_here(l, statements, i, s->in[0]) &&
            is_made_here(l, statements, i, s->in[1]))
            lower_product(l, statements[i]);
        else if (!l->m.ranges->is_redo && l->m.ranges->sizes)
            gpu_lower_sized(l, statements[i]);
        else
            cg_lower_statement(l, statements[i]);
    }
}

// Whether operands of the statement are there when the n before it are a run.  Those of an arm of a select that
// began before the run are not (arms.c).
static bool is_ready(const struct cg_lowering *l, const nest_id *statements, uint32_t n,
                     const struct nest_statement *s)
{
    for (uint32_t i = 0; i < s->n_in; i++)
        if (!l->values[s->in[i]].re && !is_made_here(l, statements, n, s->in[i]))
            return false;
    return true;
}

// The statements of a run from the first on with several functions that hold in a range, or 0.
static uint32_t find_run(struct cg_lowering *l, const nest_id *statements, uint32_t first,
                         uint32_t n, bool by_size, uint32_t *none_before)
{
    if (first < *none_before)
        return 0;
    uint32_t end = first, ranged = 0;
    for (; end < n && is_in_run(l, cg_statement(l, statements[end]), by_size); end++) {
        const struct nest_statement *s = cg_statement(l, statements[end]);
        if (!is_ready(l, statements + first, end - first, s))
            break;
        ranged += by_size
                      ? gpu_is_sized(l, s) && gpu_arm_of(l, statements[end]).select == NEST_NONE
                      : s->kind == NEST_OP && (s->op == IR_sin || s->op == IR_cos);
    }
    if (ranged >= MANY)
        return end - first;
    *none_before = end;
    return 0;
}

// Where the run was done again, each result is that of one of the two.
static void merge_results(struct cg_lowering *l, const nest_id *statements, uint32_t n,
                          const struct cg_value *quick, LLVMBasicBlockRef from,
                          LLVMBasicBlockRef cold)
{
    for (uint32_t i = 0; i < n; i++) {
        const struct nest_statement *s = cg_statement(l, statements[i]);
        for (uint32_t k = 0; k < s->n_results; k++) {
            struct cg_value again = l->values[s->result + k];
            l->values[s->result + k] = cg_phi(l, *quick++, from);
            cg_phi_add(l->values[s->result + k], again, cold);
        }
    }
}

static const struct cg_value *results_of(const struct cg_lowering *l, const nest_id *statements,
                                         uint32_t n)
{
    VEC(struct cg_value) all = {0};
    for (uint32_t i = 0; i < n; i++) {
        const struct nest_statement *s = cg_statement(l, statements[i]);
        for (uint32_t k = 0; k < s->n_results; k++)
            vec_push(l->arena, &all, l->values[s->result + k]);
    }
    return all.at;
}

uint32_t gpu_lower_ranged(struct cg_lowering *l, const nest_id *statements, uint32_t first,
                          uint32_t n, uint32_t none_before[2])
{
    if (l->m.ranges)
        return 0;
    uint32_t count = find_run(l, statements, first, n, false, &none_before[0]);
    bool by_size = !count;
    if (by_size)
        count = find_run(l, statements, first, n, true, &none_before[1]);
    if (!count)
        return 0;
    statements += first;
    struct cg_range_run ranges = {.sizes = by_size ? gpu_sizes_of(l) : NULL};
    l->m.ranges = &ranges;
    lower_all(l, statements, count);
    l->m.ranges = NULL;
    if (by_size)
        gpu_sizes_forget(l, statements, count);
    if (!ranges.outside)
        return count;
    const struct cg_value *quick = results_of(l, statements, count);
    LLVMBasicBlockRef from, warm = cg_cold_open(&l->m, ranges.outside, &from);
    ranges.is_redo = true;
    l->m.ranges = &ranges;
    lower_all(l, statements, count);
    l->m.ranges = NULL;
    LLVMBasicBlockRef cold = LLVMGetInsertBlock(l->m.b);
    LLVMBuildBr(l->m.b, warm);
    LLVMPositionBuilderAtEnd(l->m.b, warm);
    merge_results(l, statements, count, quick, from, cold);
    return count;
}
