// SPDX-License-Identifier: Apache-2.0
// Maps over the units of a layer, in loops over points: several units at a time, as one long
// vector, for what one waits for others do meanwhile.  In locals they follow each other.
//
//     map j < 20 {                                   for (j = 0; j < 20; j += 4) {
//       put h[j] = tanh (z[j] + b[j])     becomes      h[j .. j + 3] = tanh (z[j .. j + 3] + ...)
//     }                                              }
//
// One shape: small matrices at many points (docs/nests.md).
#include "codegen/units.h"
#include "codegen/access.h"
#include "codegen/contiguous.h"
#include "codegen/emit.h"
#include "codegen/index.h"
#include "codegen/loop.h"
#include "codegen/lower.h"
#include "codegen/memory.h"
#include "codegen/op_function.h"
#include "codegen/stack.h"
#include "codegen/types.h"
#include "map/map.h"

#include <stdio.h>
#include <string.h>

#define MOST_LANES 64

static bool is_point_local(const struct cg_lowering *l, nest_id buffer)
{
    return l->buffers[buffer].row == (int64_t)l->vector.lanes;
}

// Whether the element is of one unit, or of none, and of no other index that is data.
static bool is_of_unit(const struct cg_lowering *l, const struct nest_statement *s,
                       nest_id unit)
{
    if (nest_index_has_values(&s->index))
        return false;
    int64_t factor = nest_index_factor(&s->index, unit);
    bool is_local = is_point_local(l, s->buffer);
    return is_local ? factor == 0 || factor == 1
                    : !factor || !nest_index_factor(&s->index, l->vector.axis);
}

static bool has_form(const struct cg_lowering *l, const struct nest_statement *s, nest_id unit)
{
    if (s->kind == NEST_OP || s->kind == NEST_CONST)
        return true;
    jot_dtype d = s->kind == NEST_LOAD || s->kind == NEST_PUT
                      ? l->nest->buffers.at[s->buffer].dtype
                      : JOT_BOOL;
    if ((d != JOT_F32 && d != JOT_F64) || s->guard != NEST_NONE || !is_of_unit(l, s, unit))
        return false;
    return s->kind == NEST_LOAD ||
           (nest_index_factor(&s->index, unit) == 1 && (s->op || is_point_local(l, s->buffer)));
}

unsigned cg_units(const struct cg_lowering *l, nest_id map)
{
    const struct nest_statement *s = cg_statement(l, map);
    if (s->kind != NEST_MAP || s->n_axes != 1 || l->vector.lanes == 1)
        return 1;
    nest_for_each (t, l->nest, s->body)
        if (!has_form(l, t, s->axes[0]))
            return 1;
    // An eighth of the registers for a value: others that it is made of are there too.
    unsigned n = l->module->registers / 8 * l->module->vector_bytes / 64;
    while (n > 1 && cg_extent(l, s) % n != 0)
        n /= 2;
    return n > 1 ? n : 1;
}

// The lanes of one unit for each of n.
static LLVMValueRef repeat(struct cg_lowering *l, LLVMValueRef v, unsigned n)
{
    unsigned lanes = v ? cg_lanes_of(v) : 1;
    if (lanes == 1)
        return v;
    LLVMValueRef order[MOST_LANES];
    for (unsigned i = 0; i < lanes * n; i++)
        order[i] = LLVMConstInt(l->module->i32, i % lanes, 0);
    return LLVMBuildShuffleVector(l->m.b, v, LLVMGetPoison(LLVMTypeOf(v)),
                                  LLVMConstVector(order, lanes * n), "");
}

// The number of each of n units, in as many lanes as a unit has.
static LLVMValueRef load_numbers(struct cg_lowering *l, const struct nest_statement *s,
                                 nest_id unit, LLVMValueRef first, unsigned n)
{
    l->axes[unit] = first;
    if (n == 1)
        return cg_wide(l, cg_load(l, s).re);
    LLVMValueRef low = load_numbers(l, s, unit, first, n / 2), order[MOST_LANES];
    first = cg_add(l, first, cg_int(l->module, n / 2));
    LLVMValueRef high = load_numbers(l, s, unit, first, n / 2);
    for (unsigned i = 0; i < l->vector.lanes * n; i++)
        order[i] = LLVMConstInt(l->module->i32, i, 0);
    return LLVMBuildShuffleVector(l->m.b, low, high,
                                  LLVMConstVector(order, l->vector.lanes * n), "");
}

// What is the same for all units has the lanes, and the mask, of one; wide: that of n.
static void lower_statement(struct cg_lowering *l, nest_id id, nest_id unit, unsigned n,
                            LLVMValueRef wide)
{
    const struct nest_statement *s = cg_statement(l, id);
    unsigned lanes = l->vector.lanes;
    LLVMValueRef mask = l->vector.mask;
    int64_t factor = s->kind == NEST_LOAD ? nest_index_factor(&s->index, unit) : 1;
    if (!factor) {
        cg_lower_statement(l, id);
    } else if (s->kind == NEST_LOAD && !is_point_local(l, s->buffer)) {
        LLVMValueRef first = l->axes[unit];
        l->values[s->result] = (struct cg_value){load_numbers(l, s, unit, first, n), NULL};
        l->axes[unit] = first;
    } else {
        l->vector.lanes = lanes * n;
        l->vector.mask = wide;
        cg_lower_statement(l, id);
        l->vector.lanes = lanes;
        l->vector.mask = mask;
    }
}

void cg_lower_units(struct cg_lowering *l, nest_id map, unsigned n)
{
    const struct nest_statement *s = cg_statement(l, map);
    struct cg_value *outside =
        arena_copy(l->arena, l->values, l->nest->values.count * sizeof *l->values);
    struct cg_loop loop = cg_loop_open(
        l, cg_int(l->module, 0), cg_int(l->module, cg_extent(l, s)), cg_int(l->module, n));
    l->axes[s->axes[0]] = loop.index;
    LLVMValueRef wide = repeat(l, l->vector.mask, n);
    nest_for_each (x, l->nest, s->body) {
        for (uint32_t k = 0; k < x->n_in; k++)
            if (cg_lanes_of(l->values[x->in[k]].re) == l->vector.lanes)
                l->values[x->in[k]].re = repeat(l, l->values[x->in[k]].re, n);
        lower_statement(l, nest_id_of(l->nest, x), s->axes[0], n, wide);
    }
    cg_loop_close(l, &loop);
    memcpy(l->values, outside, l->nest->values.count * sizeof *l->values);
}

// ---- Copies

// A row of each lane, far from those of the others, and rows of all lanes in a local.
struct copy {
    const struct nest_statement *far;
    nest_id unit, local;
    bool is_load;
    jot_dtype dtype;
    unsigned width; // of a tile: lanes and elements
};

static LLVMValueRef lane_of_far(struct cg_lowering *l, const struct copy *c, LLVMValueRef far,
                                LLVMValueRef step, unsigned lane)
{
    LLVMValueRef at = LLVMBuildMul(l->m.b, step, cg_int(l->module, lane), "");
    // Lanes past the end load the row of lane 0.
    if (c->is_load && l->vector.mask)
        at = LLVMBuildSelect(l->m.b, cg_extract(&l->m, l->vector.mask, lane, 1), at,
                             cg_int(l->module, 0), "");
    return cg_at(l, cg_memory_type(l->module, c->dtype), far, at);
}

static LLVMValueRef row_of_near(struct cg_lowering *l, const struct copy *c, LLVMValueRef near,
                                unsigned i, unsigned lane)
{
    int64_t at = i * l->buffers[c->local].row + lane;
    return cg_at(l, cg_memory_type(l->module, c->dtype), near, cg_int(l->module, at));
}

// The tiles of the lanes that the mask has, or of all without one.
static void write_tiles(struct cg_lowering *l, const struct copy *c, LLVMValueRef f)
{
    LLVMValueRef rows[MOST_LANES], far = LLVMGetParam(f, 0), step = LLVMGetParam(f, 1),
                                   near = LLVMGetParam(f, 2);
    LLVMTypeRef type = cg_with_lanes(cg_memory_type(l->module, c->dtype), c->width);
    unsigned align = dtype_get(c->dtype)->bytes;
    for (unsigned lane = 0; lane < l->vector.lanes; lane += c->width) {
        for (unsigned i = 0; i < c->width; i++)
            rows[i] = cg_load_row(l, type,
                                  c->is_load ? lane_of_far(l, c, far, step, lane + i)
                                             : row_of_near(l, c, near, i, lane),
                                  align, NULL);
        cg_transpose(l, rows, c->width);
        for (unsigned i = 0; i < c->width; i++) {
            if (c->is_load) {
                cg_store_row(l, rows[i], row_of_near(l, c, near, i, lane), align, NULL, false);
                continue;
            }
            LLVMValueRef mask =
                l->vector.mask
                    ? cg_splat(&l->m, cg_extract(&l->m, l->vector.mask, lane + i, 1), c->width)
                    : NULL;
            cg_store_row(l, rows[i], lane_of_far(l, c, far, step, lane + i), align, mask,
                         false);
        }
    }
    LLVMBuildRetVoid(l->m.b);
}

// The body of a function of tiles: (far, step, near, mask).  Masked stores are slow on some processors, and few tiles
// lack lanes.
static void write_tiles_function(struct cg_lowering *l, const struct copy *c, LLVMValueRef f)
{
    LLVMValueRef mask = LLVMGetParam(f, 3);
    LLVMBasicBlockRef all = LLVMAppendBasicBlockInContext(l->module->context, f, ""),
                      some = LLVMAppendBasicBlockInContext(l->module->context, f, "");
    LLVMBuildCondBr(
        l->m.b, LLVMBuildICmp(l->m.b, LLVMIntEQ, mask, LLVMConstAllOnes(LLVMTypeOf(mask)), ""),
        all, some);
    LLVMPositionBuilderAtEnd(l->m.b, all);
    l->vector.mask = NULL;
    write_tiles(l, c, f);
    LLVMPositionBuilderAtEnd(l->m.b, some);
    l->vector.mask =
        LLVMBuildBitCast(l->m.b, mask, LLVMVectorType(l->module->i1, l->vector.lanes), "");
    write_tiles(l, c, f);
}

// A transposition is hundreds of instructions: one function for all copies of a module.
static LLVMValueRef tiles_function(struct cg_lowering *l, const struct copy *c,
                                   LLVMTypeRef type)
{
    char name[96];
    snprintf(name, sizeof name, "tiles_%s_%s_%u_%u_%lld", c->is_load ? "load" : "store",
             dtype_get(c->dtype)->name, l->vector.lanes, c->width,
             (long long)l->buffers[c->local].row);
    LLVMValueRef f = LLVMGetNamedFunction(l->module->module, name), mask = l->vector.mask;
    if (f)
        return f;
    f = cg_function_apart(l->module, name, type);
    LLVMBuilderRef b = l->m.b;
    l->m.b = LLVMCreateBuilderInContext(l->module->context);
    LLVMPositionBuilderAtEnd(l->m.b, LLVMAppendBasicBlockInContext(l->module->context, f, ""));
    write_tiles_function(l, c, f);
    LLVMDisposeBuilder(l->m.b);
    l->m.b = b;
    l->vector.mask = mask;
    return f;
}

// The tiles of all lanes for elements from `at` on.
static void copy_tiles(struct cg_lowering *l, const struct copy *c, LLVMValueRef at)
{
    const struct cg_buffer *b = &l->buffers[c->local];
    LLVMTypeRef element = cg_memory_type(l->module, c->dtype),
                bits = LLVMIntTypeInContext(l->module->context, l->vector.lanes),
                p = l->module->ptr, in[] = {p, l->module->i64, p, bits};
    LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(l->module->context), in, 4, 0);
    l->axes[c->unit] = at;
    struct cg_parts far = cg_split_index(l, &c->far->index);
    LLVMValueRef near = cg_times(l, at, b->row);
    near = b->offset ? cg_add(l, near, b->offset) : near;
    LLVMValueRef args[] = {cg_at(l, element, cg_buffer_base(l, c->far->buffer), far.uniform),
                           cg_int(l->module, far.factor), cg_at(l, element, b->base, near),
                           LLVMBuildBitCast(l->m.b, l->vector.mask, bits, "")};
    LLVMBuildCall2(l->m.b, type, tiles_function(l, c, type), args, 4, "");
}

bool cg_lower_copy(struct cg_lowering *l, nest_id map)
{
    const struct nest_statement *s = cg_statement(l, map);
    if (!map_is_copy(l->nest, s, l->vector.axis))
        return false;
    const struct nest_block *b = &l->nest->blocks.at[s->body];
    const struct nest_statement *x = cg_statement(l, b->statements.at[0]),
                                *y = cg_statement(l, b->statements.at[1]);
    struct copy c = {
        .unit = s->axes[0], .is_load = is_point_local(l, y->buffer), .dtype = x->dtype};
    c.far = c.is_load ? x : y;
    c.local = c.is_load ? y->buffer : x->buffer;
    c.width = l->module->vector_bytes / dtype_get(c.dtype)->bytes;
    int64_t extent = cg_extent(l, s);
    while (c.width > l->vector.lanes || c.width > extent)
        c.width /= 2;
    if (!is_point_local(l, c.local) || c.width < 2)
        return false;
    struct cg_loop loop =
        cg_loop_open(l, cg_int(l->module, 0), cg_int(l->module, extent - extent % c.width),
                     cg_int(l->module, c.width));
    copy_tiles(l, &c, loop.index);
    cg_loop_close(l, &loop);
    // The last ones once more with some before them.
    if (extent % c.width)
        copy_tiles(l, &c, cg_int(l->module, extent - c.width));
    return true;
}
