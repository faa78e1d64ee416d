// SPDX-License-Identifier: Apache-2.0
// Locals of which every lane has one: contiguous along the lanes whatever the index says.  Where
// only constant indices are used LLVM makes registers of them.
#include "codegen/own.h"
#include "codegen/access.h"
#include "codegen/branch.h"
#include "codegen/emit.h"
#include "codegen/index.h"
#include "codegen/lower.h"
#include "codegen/memory.h"
#include "codegen/types.h"

bool cg_is_own(struct cg_lowering *l, nest_id buffer)
{
    return cg_buffer_base(l, buffer) && l->buffers[buffer].expanded;
}

// One part of an element of a local that every lane has: [element][part][lane], or of a long one
// [element][vector side by side][part][lane].
struct own {
    LLVMTypeRef lane;
    unsigned align;
    LLVMValueRef row;     // the same for all lanes, or NULL
    LLVMValueRef offsets; // of each lane
    LLVMValueRef mask;
};

static struct own own_access(struct cg_lowering *l, const struct nest_statement *s,
                             LLVMValueRef guard)
{
    LLVMBuilderRef b = l->m.b;
    jot_dtype d = l->nest->buffers.at[s->buffer].dtype;
    int64_t parts = (dtype_is_complex(d) ? 2 : 1) * l->buffers[s->buffer].between;
    struct cg_parts p = cg_split_index(l, &s->index);
    struct own o = {.lane = cg_memory_type(l->module, d),
                    .align = dtype_get(dtype_real(d))->bytes,
                    .mask = cg_control_mask(l, guard)};
    if (p.varying || p.factor) {
        LLVMValueRef lanes = cg_sequence(l->module, l->module->i64, l->vector.lanes, 0, 1);
        o.offsets =
            cg_add(l, cg_times(l, cg_lane_offsets(l, &p), parts * l->vector.lanes), lanes);
        return o;
    }
    o.row = cg_times(l, p.uniform, parts);
    // Where no lane counts the index may be anything.
    if (o.mask && !LLVMIsConstant(o.row))
        o.row = LLVMBuildSelect(b, cg_any(l, o.mask), o.row, cg_int(l->module, 0), "");
    return o;
}

static LLVMValueRef load_part(struct cg_lowering *l, const struct own *o, LLVMValueRef base,
                              unsigned part)
{
    LLVMTypeRef type = cg_with_lanes(o->lane, l->vector.lanes);
    LLVMValueRef from = cg_at(l, type, base, cg_int(l->module, part));
    if (o->offsets)
        return cg_gather(l, o->lane, from, o->offsets, o->align,
                         cg_and_masks(l, o->mask, l->vector.mask));
    LLVMValueRef v = LLVMBuildLoad2(l->m.b, type, cg_at(l, type, from, o->row), "");
    return o->mask ? LLVMBuildSelect(l->m.b, o->mask, v, LLVMConstNull(type), "") : v;
}

static void store_part(struct cg_lowering *l, const struct own *o, LLVMValueRef base,
                       unsigned part, LLVMValueRef v)
{
    LLVMTypeRef type = cg_with_lanes(o->lane, l->vector.lanes);
    LLVMValueRef to = cg_at(l, type, base, cg_int(l->module, part));
    if (o->offsets) {
        cg_scatter(l, o->lane, to, o->offsets, o->align,
                   cg_and_masks(l, o->mask, l->vector.mask), v);
        return;
    }
    to = cg_at(l, type, to, o->row);
    if (o->mask)
        v = LLVMBuildSelect(l->m.b, o->mask, v, LLVMBuildLoad2(l->m.b, type, to, ""), "");
    LLVMBuildStore(l->m.b, v, to);
}

// The same of a point of a network (points.c), whose rows may be farther apart.
static LLVMValueRef point_element(struct cg_lowering *l, const struct nest_statement *s,
                                  unsigned part)
{
    jot_dtype d = l->nest->buffers.at[s->buffer].dtype;
    const struct cg_buffer *buffer = &l->buffers[s->buffer];
    struct cg_parts p = cg_split_index(l, &s->index);
    if (p.varying || p.factor)
        cg_fail(l, "a local of a point that others read");
    LLVMValueRef row = cg_times(l, p.uniform, dtype_is_complex(d) ? 2 : 1);
    LLVMValueRef at = cg_times(l, cg_add(l, row, cg_int(l->module, part)), buffer->row);
    at = buffer->is_kept ? cg_add(l, at, buffer->offset) : at;
    return cg_at(l, cg_memory_type(l->module, d), buffer->base, at);
}

static LLVMValueRef point_read(struct cg_lowering *l, jot_dtype d, LLVMValueRef at)
{
    unsigned bytes = dtype_get(dtype_real(d))->bytes;
    LLVMValueRef v = LLVMBuildLoad2(
        l->m.b, cg_with_lanes(cg_memory_type(l->module, d), l->vector.lanes), at, "");
    LLVMSetAlignment(v, l->vector.lanes * bytes < 64 ? bytes : 64);
    return v;
}

static struct cg_value point_load(struct cg_lowering *l, const struct nest_statement *s,
                                  LLVMValueRef guard)
{
    jot_dtype d = l->nest->buffers.at[s->buffer].dtype;
    struct cg_value v = {0};
    for (unsigned part = 0; part < (dtype_is_complex(d) ? 2 : 1); part++) {
        LLVMValueRef x = point_read(l, d, point_element(l, s, part));
        if (guard)
            x = LLVMBuildSelect(l->m.b, cg_wide(l, guard), x, LLVMConstNull(LLVMTypeOf(x)), "");
        *(part ? &v.im : &v.re) = cg_from_memory(l, x, d);
    }
    return v;
}

static void point_store(struct cg_lowering *l, const struct nest_statement *s,
                        LLVMValueRef guard, struct cg_value v)
{
    jot_dtype d = l->nest->buffers.at[s->buffer].dtype;
    unsigned bytes = dtype_get(dtype_real(d))->bytes;
    for (unsigned part = 0; part < (dtype_is_complex(d) ? 2 : 1); part++) {
        LLVMValueRef to = point_element(l, s, part), x = cg_to_memory(l, part ? v.im : v.re, d);
        if (guard)
            x = LLVMBuildSelect(l->m.b, cg_wide(l, guard), x, point_read(l, d, to), "");
        LLVMSetAlignment(LLVMBuildStore(l->m.b, x, to),
                         l->vector.lanes * bytes < 64 ? bytes : 64);
    }
}

struct cg_value cg_own_load(struct cg_lowering *l, const struct nest_statement *s)
{
    jot_dtype d = l->nest->buffers.at[s->buffer].dtype;
    LLVMValueRef guard = s->guard == NEST_NONE ? NULL : l->values[s->guard].re;
    if (l->buffers[s->buffer].row)
        return point_load(l, s, guard);
    struct own o = own_access(l, s, guard);
    LLVMValueRef base = cg_buffer_base(l, s->buffer);
    struct cg_value v = {cg_from_memory(l, load_part(l, &o, base, 0), d), NULL};
    if (dtype_is_complex(d))
        v.im = load_part(l, &o, base, 1);
    return v;
}

void cg_own_store(struct cg_lowering *l, const struct nest_statement *s, struct cg_value v)
{
    jot_dtype d = l->nest->buffers.at[s->buffer].dtype;
    LLVMValueRef guard = s->guard == NEST_NONE ? NULL : l->values[s->guard].re;
    v = cg_wide_value(l, v);
    if (l->buffers[s->buffer].row) {
        point_store(l, s, guard, v);
        return;
    }
    struct own o = own_access(l, s, guard);
    LLVMValueRef base = cg_buffer_base(l, s->buffer);
    store_part(l, &o, base, 0, cg_to_memory(l, v.re, d));
    if (v.im)
        store_part(l, &o, base, 1, v.im);
}
