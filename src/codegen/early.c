// SPDX-License-Identifier: Apache-2.0
// What a trip of a loop over time reads is read some trips before, so that a thread does not wait for it.
//
//     seq j @early 2 { a = load x[j]; ... }
//
//     a = load x[0]; b = load x[1]; seq j { c = load x[j + 2]; ...; a = b; b = c }
//
// The last trips read the last one's again.
#include "codegen/early.h"
#include "codegen/branch.h"
#include "codegen/emit.h"
#include "codegen/hooks.h"
#include "codegen/large.h"
#include "codegen/lower.h"
#include "codegen/types.h"

struct cg_early cg_early_of(struct cg_lowering *l, const struct nest_statement *seq,
                            int64_t strip)
{
    struct cg_early e = {
        .axis = seq->axes[0], .is_back = seq->reverse, .strip = (uint32_t)strip};
    e.trips =
        l->chunks.together || cg_extent(l, seq) <= strip ? 0 : l->nest->axes.at[e.axis].early;
    if (!e.trips)
        return e;
    e.statements = arena_array(l->arena, nest_id, l->nest->statements.count + 1);
    e.n = l->module->hooks->early_find(l, seq, e.statements);
    e.values = arena_array(l->arena, struct cg_value, (size_t)(e.trips + e.strip) * e.n + 1);
    e.last = cg_int(l->module, cg_extent(l, seq) - 1);
    return e;
}

static bool is_read(struct cg_lowering *l, const struct cg_early *e, uint32_t i)
{
    return cg_statement(l, e->statements[i])->kind == NEST_LOAD;
}

// What is read stays where it is read: LLVM would rather read it where it is wanted.
static struct cg_value apart(struct cg_lowering *l, struct cg_value v)
{
    LLVMTypeKind kind = LLVMGetTypeKind(LLVMTypeOf(v.re));
    bool is_number = kind == LLVMFloatTypeKind || kind == LLVMDoubleTypeKind ||
                     LLVMTypeOf(v.re) == l->module->i32 || LLVMTypeOf(v.re) == l->module->i64;
    if (is_number)
        v.re = cg_apart(l->module, l->m.b, v.re);
    return v;
}

// Reads what a trip wants.
static void read_trip(struct cg_lowering *l, const struct cg_early *e, LLVMValueRef trip,
                      struct cg_value *out)
{
    LLVMBuilderRef b = l->m.b;
    LLVMValueRef is_over = LLVMBuildICmp(b, LLVMIntSGT, trip, e->last, "");
    trip = LLVMBuildSelect(b, is_over, e->last, trip, "");
    l->axes[e->axis] = e->is_back ? LLVMBuildSub(b, e->last, trip, "") : trip;
    for (uint32_t i = 0; i < e->n; i++)
        if (is_read(l, e, i) || !l->marks[e->statements[i]].is_hoisted) {
            cg_lower_statement(l, e->statements[i]);
            struct cg_value v = l->values[cg_statement(l, e->statements[i])->result];
            out[i] = is_read(l, e, i) ? apart(l, v) : v;
        }
}

void cg_early_begin(struct cg_lowering *l, struct cg_early *e, LLVMValueRef first)
{
    for (uint32_t k = 0; e->n && k < e->trips; k++)
        read_trip(l, e, LLVMBuildAdd(l->m.b, first, cg_int(l->module, k), ""),
                  e->values + (size_t)k * e->n);
}

void cg_early_open(struct cg_lowering *l, struct cg_early *e, LLVMBasicBlockRef before)
{
    for (uint32_t i = 0; i < e->trips * e->n; i++)
        if (is_read(l, e, i % e->n))
            e->values[i] = cg_phi(l, e->values[i], before);
}

void cg_early_trip(struct cg_lowering *l, struct cg_early *e, LLVMValueRef trip, int64_t k)
{
    struct cg_value *own = e->values + (size_t)k * e->n;
    if (!e->n)
        return;
    read_trip(l, e, LLVMBuildAdd(l->m.b, trip, cg_int(l->module, e->trips), ""),
              own + (size_t)e->trips * e->n);
    for (uint32_t i = 0; i < e->n; i++)
        if (is_read(l, e, i)) {
            l->values[cg_statement(l, e->statements[i])->result] = own[i];
            l->marks[e->statements[i]].is_hoisted = true;
        }
}

void cg_early_close(struct cg_lowering *l, const struct cg_early *e, LLVMBasicBlockRef latch)
{
    for (uint32_t i = 0; i < e->trips * e->n; i++)
        if (is_read(l, e, i % e->n))
            cg_phi_add(e->values[i], e->values[i + e->strip * e->n], latch);
    for (uint32_t i = 0; i < e->n; i++)
        if (is_read(l, e, i))
            l->marks[e->statements[i]].is_hoisted = false;
}
