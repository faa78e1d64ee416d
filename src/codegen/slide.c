// SPDX-License-Identifier: Apache-2.0
// Loads of a loop over vectors whose indices differ by less than a vector: what one of them reads,
// the centre, stays in registers from turn to turn, and the others are shuffles of two of these.
//
//     for j in 16 .. 239:                before = x[0 ..], now = x[16 ..]
//       %1 = load x[j - 1]               for j in 16 .. 239:
//       %2 = load x[j]            gives    after = x[j + 16 ..]
//       %3 = load x[j + 1]                 %1 = before:now from 15, %2 = now, %3 = now:after from 1
//       ...                                before = now, now = after
//
// Only where vectors are cache lines: there each such load reads two lines, and one instruction
// shuffles across all lanes.
#include "codegen/slide.h"
#include "codegen/contiguous.h"
#include "codegen/index.h"
#include "codegen/lower.h"
#include "codegen/memory.h"
#include "codegen/types.h"

#include "base/vec.h"

struct family {
    const struct nest_statement *centre;
    bool has_before, has_after;
    LLVMTypeRef type;
    LLVMValueRef before, now; // variables, from turn to turn
    LLVMValueRef at[3];       // in this turn: the vectors before, here and after
};

struct cg_slides {
    VEC(struct family) all;
    uint32_t *family; // per statement: 1 + which it is of, 0 of none
    nest_id axis;
};

static bool may_slide(const struct cg_lowering *l, const struct nest_statement *s, nest_id axis)
{
    if (s->kind != NEST_LOAD || l->nest->buffers.at[s->buffer].role != NEST_IN ||
        (s->dtype != JOT_F32 && s->dtype != JOT_F64) ||
        l->vector.lanes * (unsigned)dtype_get(s->dtype)->bytes != 64 ||
        nest_index_has_values(&s->index))
        return false;
    return nest_index_factor(&s->index, axis) == 1;
}

// How far the index of s is behind that of the centre; 0 when it is elsewhere.
static int64_t distance(const struct cg_lowering *l, const struct nest_statement *s,
                        const struct nest_statement *centre)
{
    const struct nest_index *x = &s->index, *c = &centre->index;
    bool alike = s->buffer == centre->buffer && x->count == c->count;
    for (uint32_t i = 0; alike && i < x->count; i++)
        alike = nest_index_factor(c, x->terms[i].id) == x->terms[i].factor;
    int64_t d = alike ? x->constant - c->constant : 0;
    return d < (int64_t)l->vector.lanes && -d < (int64_t)l->vector.lanes ? d : 0;
}

// Whether the elements that the centre reads in all turns are there, and those of a vector more on
// the sides that are wanted.
static bool reads_inside(const struct cg_lowering *l, const struct family *f, nest_id axis,
                         const struct nest_interval *turns)
{
    const struct nest_index *x = &f->centre->index;
    int64_t least = x->constant, most = x->constant, lanes = l->vector.lanes;
    for (uint32_t i = 0; i < x->count; i++) {
        nest_id id = x->terms[i].id;
        struct nest_interval range = {0, l->nest->axes.at[id].extent};
        if (l->around.known && l->around.known[id].end)
            range = l->around.known[id];
        if (id == axis)
            range = *turns;
        int64_t a = x->terms[i].factor * range.first, b = x->terms[i].factor * (range.end - 1);
        least += a < b ? a : b;
        most += a < b ? b : a;
    }
    return least - (f->has_before ? lanes : 0) >= 0 &&
           most + (f->has_after ? lanes : 0) < l->nest->buffers.at[f->centre->buffer].count;
}

static void find_family(struct cg_lowering *l, const struct nest_block *b, uint32_t centre,
                        const struct nest_interval *turns, struct cg_slides *out)
{
    struct family f = {.centre = cg_statement(l, b->statements.at[centre])};
    if (!may_slide(l, f.centre, out->axis) || f.centre->guard != NEST_NONE ||
        out->family[b->statements.at[centre]])
        return;
    for (uint32_t i = 0; i < b->statements.count; i++) {
        const struct nest_statement *s = cg_statement(l, b->statements.at[i]);
        int64_t d = may_slide(l, s, out->axis) ? distance(l, s, f.centre) : 0;
        f.has_before |= d < 0;
        f.has_after |= d > 0;
    }
    if ((!f.has_before && !f.has_after) || !reads_inside(l, &f, out->axis, turns))
        return;
    f.type = LLVMVectorType(cg_memory_type(l->module, f.centre->dtype), l->vector.lanes);
    vec_push(l->arena, &out->all, f);
    for (uint32_t i = 0; i < b->statements.count; i++) {
        const struct nest_statement *s = cg_statement(l, b->statements.at[i]);
        if (s == f.centre || (may_slide(l, s, out->axis) && distance(l, s, f.centre)))
            out->family[b->statements.at[i]] = out->all.count;
    }
}

static LLVMValueRef load_from(struct cg_lowering *l, const struct family *f, LLVMValueRef first,
                              int64_t further)
{
    first = LLVMBuildAdd(l->m.b, first, cg_int(l->module, further), "");
    LLVMValueRef at =
        cg_at(l, LLVMGetElementType(f->type), cg_buffer_base(l, f->centre->buffer), first);
    return cg_load_row(l, f->type, at, (unsigned)dtype_get(f->centre->dtype)->bytes, NULL);
}

static LLVMValueRef variable(struct cg_lowering *l, const struct family *f, LLVMValueRef first,
                             int64_t further)
{
    LLVMValueRef v = cg_alloca(l, f->type, 1);
    LLVMBuildStore(l->m.b, load_from(l, f, first, further), v);
    return v;
}

struct cg_slides *cg_slides_open(struct cg_lowering *l, uint32_t block, nest_id axis,
                                 LLVMValueRef begin, LLVMValueRef end)
{
    if (l->gpu || l->vector.mask || l->chunks.at || l->tile.axis != NEST_NONE ||
        l->module->vector_bytes != 64 || !LLVMIsConstant(begin) || !LLVMIsConstant(end))
        return NULL;
    struct nest_interval turns = {LLVMConstIntGetSExtValue(begin),
                                  LLVMConstIntGetSExtValue(end)};
    if (turns.end - turns.first < 2 * (int64_t)l->vector.lanes)
        return NULL;
    const struct nest_block *b = &l->nest->blocks.at[block];
    struct cg_slides *x = arena_array(l->arena, struct cg_slides, 1);
    x->axis = axis;
    x->family = arena_array(l->arena, uint32_t, l->nest->statements.count + 1);
    for (uint32_t i = 0; i < b->statements.count; i++)
        find_family(l, b, i, &turns, x);
    l->axes[axis] = begin;
    for (uint32_t i = 0; i < x->all.count; i++) {
        struct family *f = &x->all.at[i];
        LLVMValueRef first = cg_index_first(l, &f->centre->index);
        if (f->has_before)
            f->before = variable(l, f, first, -(int64_t)l->vector.lanes);
        if (f->has_after)
            f->now = variable(l, f, first, 0);
    }
    return x->all.count ? x : NULL;
}

void cg_slides_turn(struct cg_lowering *l, struct cg_slides *x)
{
    for (uint32_t i = 0; x && i < x->all.count; i++) {
        struct family *f = &x->all.at[i];
        LLVMValueRef first = cg_index_first(l, &f->centre->index);
        if (f->has_before)
            f->at[0] = LLVMBuildLoad2(l->m.b, f->type, f->before, "");
        f->at[1] = f->has_after ? LLVMBuildLoad2(l->m.b, f->type, f->now, "")
                                : load_from(l, f, first, 0);
        if (f->has_after)
            f->at[2] = load_from(l, f, first, l->vector.lanes);
        if (f->has_before)
            LLVMBuildStore(l->m.b, f->at[1], f->before);
        if (f->has_after)
            LLVMBuildStore(l->m.b, f->at[2], f->now);
    }
    l->body.slides = x;
}

void cg_slides_close(struct cg_lowering *l) { l->body.slides = NULL; }

LLVMValueRef cg_slides_load(struct cg_lowering *l, const struct nest_statement *s,
                            LLVMValueRef guard)
{
    const struct cg_slides *x = l->body.slides;
    nest_id id = nest_id_of(l->nest, s);
    bool is_whole = !guard || (LLVMIsConstant(guard) && !LLVMIsNull(guard));
    if (!x || !x->family[id] || !is_whole || l->vector.mask)
        return NULL;
    const struct family *f = &x->all.at[x->family[id] - 1];
    int64_t d = distance(l, s, f->centre), lanes = l->vector.lanes;
    if (!d)
        return f->at[1];
    LLVMValueRef order =
        cg_sequence(l->module, l->module->i32, l->vector.lanes, d < 0 ? lanes + d : d, 1);
    return LLVMBuildShuffleVector(l->m.b, f->at[d < 0 ? 0 : 1], f->at[d < 0 ? 1 : 2], order,
                                  "");
}
