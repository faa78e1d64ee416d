// SPDX-License-Identifier: Apache-2.0
// Lanes whose elements are 2 to 4 apart: as many registers as they are apart, which shuffles make one.
#include "codegen/strided.h"
#include "codegen/contiguous.h"
#include "codegen/index.h"
#include "codegen/lower.h"
#include "codegen/memory.h"
#include "codegen/types.h"

// Lanes from number `first` on, `factor` apart in as many registers of n lanes: those of register q.
static LLVMValueRef spread(struct cg_lowering *l, const struct cg_strided *a, LLVMValueRef v,
                           LLVMValueRef between, unsigned first, unsigned n, unsigned q)
{
    LLVMValueRef order[64];
    for (unsigned i = 0, e = q * n; i < n; i++, e++)
        order[i] = LLVMConstInt(l->module->i32,
                                e % a->factor ? l->vector.lanes : first + e / a->factor, 0);
    return LLVMBuildShuffleVector(l->m.b, v, between, LLVMConstVector(order, n), "");
}

// Which lanes of it count.
static LLVMValueRef spread_mask(struct cg_lowering *l, const struct cg_strided *a,
                                unsigned first, unsigned n, unsigned q)
{
    LLVMTypeRef type = cg_with_lanes(l->module->i1, l->vector.lanes);
    return spread(l, a, a->mask ? a->mask : LLVMConstAllOnes(type), LLVMConstNull(type), first,
                  n, q);
}

static LLVMValueRef register_at(struct cg_lowering *l, const struct cg_strided *a,
                                unsigned first, unsigned n, unsigned q)
{
    return cg_at(l, a->lane, a->at, cg_int(l->module, a->factor * first + q * n));
}

// Lanes from number `first` on, n of them.  What lies between is loaded too, but where there is a mask, and behind
// the last one.
LLVMValueRef cg_load_strided(struct cg_lowering *l, const struct cg_strided *a, unsigned first,
                             unsigned n)
{
    LLVMTypeRef i32 = l->module->i32;
    LLVMValueRef order[64], v, next;
    if (n > l->module->vector_bytes / a->align) {
        v = cg_load_strided(l, a, first, n / 2);
        next = cg_load_strided(l, a, first + n / 2, n / 2);
        return LLVMBuildShuffleVector(l->m.b, v, next, cg_sequence(l->module, i32, n, 0, 1),
                                      "");
    }
    v = NULL;
    for (unsigned q = 0; q < a->factor; q++) {
        bool is_last = q + 1 == a->factor && first + n == l->vector.lanes;
        next = cg_load_contiguous(l, a->lane, register_at(l, a, first, n, q), n, a->align,
                                  a->mask || is_last ? spread_mask(l, a, first, n, q) : NULL);
        // Lane i is element factor * i: in this register, or in what there is of those before.
        for (unsigned i = 0; i < n; i++) {
            unsigned element = a->factor * i, before = q == 1 && element < n ? element : i;
            order[i] = LLVMConstInt(i32, element / n == q ? n + element % n : before, 0);
        }
        v = v ? LLVMBuildShuffleVector(l->m.b, v, next, LLVMConstVector(order, n), "") : next;
    }
    return v;
}

void cg_store_strided(struct cg_lowering *l, const struct cg_strided *a, LLVMValueRef v)
{
    unsigned n = l->module->vector_bytes / a->align;
    n = n < l->vector.lanes ? n : l->vector.lanes;
    for (unsigned first = 0; first < l->vector.lanes; first += n)
        for (unsigned q = 0; q < a->factor; q++)
            cg_store_contiguous(l, spread(l, a, v, LLVMGetPoison(LLVMTypeOf(v)), first, n, q),
                                register_at(l, a, first, n, q), a->align,
                                spread_mask(l, a, first, n, q));
}

// Whether accesses are such: stores only where those under masks are as quick as others.
bool cg_has_short_stride(const struct cg_lowering *l, const struct cg_parts *p, bool is_complex,
                         bool is_store)
{
    return !l->gpu && !p->varying && p->factor >= 2 && p->factor <= 4 && !is_complex &&
           l->vector.lanes <= 64 && (!is_store || l->module->vector_bytes == 64);
}

struct cg_strided cg_strided_of(struct cg_lowering *l, LLVMTypeRef lane, LLVMValueRef base,
                                const struct cg_parts *p, unsigned align, LLVMValueRef mask)
{
    return (struct cg_strided){.lane = lane,
                               .at = cg_at(l, lane, base, p->uniform),
                               .factor = (unsigned)p->factor,
                               .align = align,
                               .mask = mask};
}
