// SPDX-License-Identifier: Apache-2.0
// Rows that are read more than once: what reads them last asks for the next row meanwhile.
//
//     par i { fold j { load x[n*i + j] ... } ; fold k { load x[n*i + k]; exp ... } }
//
// The first loop waits for memory and the second computes on what the nearest caches hold, while
// memory has nothing to do.
//
//     par b { seq t { load x[n*t + b] ... } }
//
// Steps whose rows lie far apart are too few lines for the processor to see a pattern in: each asks
// for what a later one reads.
#include "codegen/prefetch.h"
#include "codegen/index.h"
#include "codegen/lower.h"
#include "codegen/memory.h"
#include "codegen/types.h"
#include "ir/cost.h"

#include <stdlib.h>

#define ROW_BYTES_LEAST 1024
#define ROW_BYTES_MOST (256 * 1024)
#define STEPS_AHEAD 16
#define STEP_BYTES_LEAST 512
#define STEPS_BYTES_LEAST (1024 * 1024) // in all, below that they stay in a near cache

static bool is_row(const struct cg_lowering *l, const struct nest_statement *s, nest_id axis)
{
    const struct nest_buffer *from = &l->nest->buffers.at[s->buffer];
    int64_t bytes = nest_index_factor(&s->index, axis) * dtype_get(from->dtype)->bytes;
    return s->kind == NEST_LOAD && s->guard == NEST_NONE && !nest_index_has_values(&s->index) &&
           from->role == NEST_IN && bytes >= ROW_BYTES_LEAST && bytes <= ROW_BYTES_MOST;
}

// Notes for every buffer the last load of its rows, and whether another loop had read them.
static void note_loads(struct cg_lowering *l, uint32_t block, nest_id axis, nest_id loop,
                       nest_id *last, nest_id *first_loop)
{
    nest_for_each (s, l->nest, block) {
        nest_id id = nest_id_of(l->nest, s);
        bool is_loop = s->kind == NEST_FOLD || s->kind == NEST_MAP;
        if (is_loop)
            note_loads(l, s->body, axis, loop == NEST_NONE ? id : loop, last, first_loop);
        if (s->kind != NEST_LOAD || loop == NEST_NONE || !is_row(l, s, axis))
            continue;
        if (first_loop[s->buffer] == NEST_NONE)
            first_loop[s->buffer] = loop;
        else if (first_loop[s->buffer] != loop)
            last[s->buffer] = id;
    }
}

void cg_prefetch_find(struct cg_lowering *l, nest_id top)
{
    const struct nest_statement *s = cg_statement(l, top);
    uint32_t n = l->nest->buffers.count;
    nest_id *last = arena_array(l->arena, nest_id, n + 1),
            *first_loop = arena_array(l->arena, nest_id, n + 1);
    for (uint32_t i = 0; i < n; i++)
        last[i] = first_loop[i] = NEST_NONE;
    l->body.row_axis = s->axes[s->n_axes - 1];
    note_loads(l, s->body, l->body.row_axis, NEST_NONE, last, first_loop);
    for (uint32_t i = 0; i < n; i++)
        if (last[i] != NEST_NONE)
            l->marks[last[i]].prefetches = true;
}

void cg_prefetch_line(struct cg_lowering *l, LLVMValueRef at, bool writes)
{
    unsigned id = LLVMLookupIntrinsicID("llvm.prefetch", 13);
    LLVMTypeRef overload = l->module->ptr, i32 = l->module->i32;
    LLVMValueRef f = LLVMGetIntrinsicDeclaration(l->module->module, id, &overload, 1);
    LLVMTypeRef type = LLVMIntrinsicGetType(l->module->context, id, &overload, 1);
    LLVMValueRef arguments[] = {at, LLVMConstInt(i32, writes, 0),
                                LLVMConstInt(i32, writes ? 3 : 2, 0), LLVMConstInt(i32, 1, 0)};
    LLVMBuildCall2(l->m.b, type, f, arguments, 4, "");
}

void cg_prefetch_ahead(struct cg_lowering *l, const struct nest_statement *s, int64_t elements)
{
    LLVMBuilderRef b = l->m.b;
    jot_dtype d = l->nest->buffers.at[s->buffer].dtype;
    int64_t size = dtype_get(d)->bytes;
    LLVMValueRef next =
        LLVMBuildAdd(b, cg_index_first(l, &s->index), cg_int(l->module, elements), "");
    LLVMValueRef at = LLVMBuildMul(b, next, cg_int(l->module, size), "");
    at = LLVMBuildGEP2(b, l->module->i8, cg_buffer_base(l, s->buffer), &at, 1, "");
    for (int64_t byte = 0; byte < size * l->vector.lanes; byte += COST_LINE_BYTES) {
        LLVMValueRef line = cg_int(l->module, byte);
        cg_prefetch_line(l, LLVMBuildGEP2(b, l->module->i8, at, &line, 1, ""), false);
    }
}

// The distance from an element to that of a later step, 0 when steps are near each other.
static int64_t later_step(const struct cg_lowering *l, const struct nest_statement *s)
{
    const struct nest_buffer *from = &l->nest->buffers.at[s->buffer];
    int64_t size = dtype_get(from->dtype)->bytes;
    int64_t factor = l->around.time ? nest_index_factor(&s->index, l->around.time->axes[0]) : 0;
    if (llabs(factor) * size < STEP_BYTES_LEAST || from->count * size < STEPS_BYTES_LEAST)
        return 0;
    return STEPS_AHEAD * (l->around.time->reverse ? -factor : factor);
}

void cg_prefetch(struct cg_lowering *l, const struct nest_statement *s)
{
    if (l->vector.lanes == 1 || nest_index_factor(&s->index, l->vector.axis) != 1)
        return;
    int64_t later = later_step(l, s);
    if (later)
        cg_prefetch_ahead(l, s, later);
    else if (l->marks[s - l->nest->statements.at].prefetches && !l->vector.mask)
        cg_prefetch_ahead(l, s, nest_index_factor(&s->index, l->body.row_axis));
}
