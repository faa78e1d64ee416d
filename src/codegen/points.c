// SPDX-License-Identifier: Apache-2.0
// Loops over the points of a network: lanes are points, and what a point has is in near memory.
//
//     fold n < 10000 {                                    locals: [20][lanes], memory used again
//       contract z[j] = x[k], w[20*k + j] ...             a function of its own (layers.c)
//       map j { put h[j] = tanh z[j] }                    a loop over j, several at a time (units.c)
//       map i, j { put g[20*i + j] fma= x[i], h[j] in @n }   after the block: x and h are kept for it
//     }
//
// The body is lowered once, under a mask, for its length is what compiling it costs.
#include "codegen/points.h"
#include "base/vec.h"
#include "codegen/accumulate.h"
#include "codegen/fold.h"
#include "codegen/index.h"
#include "codegen/layers.h"
#include "codegen/loop.h"
#include "codegen/lower.h"
#include "codegen/memory.h"
#include "codegen/types.h"
#include "codegen/units.h"

#include <string.h>

bool cg_is_network(const struct cg_lowering *l, nest_id loop)
{
    const struct nest_statement *s = cg_statement(l, loop);
    if (l->gpu || (s->kind != NEST_PAR && s->kind != NEST_FOLD) || s->n_axes != 1)
        return false;
    nest_for_each (t, l->nest, s->body)
        if (t->kind == NEST_CONTRACT)
            return true;
    return false;
}

// The widest element of the buffers.
static unsigned widest(const struct cg_lowering *l)
{
    unsigned bytes = 4;
    for (nest_id i = 0; i < l->nest->buffers.count; i++) {
        jot_dtype d = l->nest->buffers.at[i].dtype;
        if (dtype_is_inexact(d) && dtype_get(dtype_real(d))->bytes > bytes)
            bytes = dtype_get(dtype_real(d))->bytes;
    }
    return bytes;
}

// A cache line of points: what the body makes of more would not stay in the nearest cache.
unsigned cg_network_lanes(const struct cg_lowering *l) { return 64 / widest(l); }

// ---- Sums of products over points

// The local that a load of the block reads for the value, element i of it at index i of the axis;
// NEST_NONE for any other value.
static nest_id local_row_of(const struct cg_lowering *l, const struct nest_block *b,
                            nest_id value, nest_id axis)
{
    for (uint32_t i = 0; i < b->statements.count; i++) {
        const struct nest_statement *s = cg_statement(l, b->statements.at[i]);
        if (s->kind == NEST_LOAD && s->result == value)
            return s->guard == NEST_NONE && nest_index_is_axis(&s->index, axis) &&
                           l->nest->buffers.at[s->buffer].role == NEST_LOCAL
                       ? s->buffer
                       : NEST_NONE;
    }
    return NEST_NONE;
}

// map i < I, j < J { %a = load x[i]; %b = load y[j]; put g[J*i + j] fma= %a, %b in @fold; ... }
static bool find_product(const struct cg_lowering *l, nest_id map, nest_id put, nest_id fold,
                         struct cg_product *out)
{
    const struct nest_statement *s = cg_statement(l, map), *p = cg_statement(l, put);
    if (s->kind != NEST_MAP || s->n_axes != 2 || p->kind != NEST_PUT || p->op != IR_fma)
        return false;
    jot_dtype d = l->nest->values.at[p->in[0]].dtype;
    *out = (struct cg_product){.put = put, .dtype = d, .lanes = cg_network_lanes(l)};
    for (int k = 0; k < 2; k++) {
        out->source[k] = local_row_of(l, &l->nest->blocks.at[s->body], p->in[k], s->axes[k]);
        out->sides[k] = l->nest->axes.at[s->axes[k]].extent;
        if (out->source[k] == NEST_NONE || l->nest->values.at[p->in[k]].dtype != d)
            return false;
        out->rows[k] = l->nest->buffers.at[out->source[k]].count;
    }
    return p->fold == fold && p->guard == NEST_NONE && p->index.constant == 0 &&
           p->index.count == 2 && nest_index_factor(&p->index, s->axes[0]) == out->sides[1] &&
           nest_index_factor(&p->index, s->axes[1]) == 1 && (d == JOT_F32 || d == JOT_F64) &&
           cg_extent(l, cg_statement(l, fold)) >= CG_FOLD_LANES;
}

// Whether the statement is a map of nothing but such products.
static bool is_products(const struct cg_lowering *l, nest_id map, nest_id fold)
{
    const struct nest_statement *s = cg_statement(l, map);
    if (s->kind != NEST_MAP)
        return false;
    struct cg_product p;
    nest_for_each (t, l->nest, s->body)
        if (t->kind != NEST_LOAD && !find_product(l, map, nest_id_of(l->nest, t), fold, &p))
            return false;
    return true;
}

struct products {
    VEC(struct cg_product) all;
};

static struct products find_products(const struct cg_lowering *l, nest_id fold)
{
    struct products p = {0};
    const struct nest_block *b = &l->nest->blocks.at[cg_statement(l, fold)->body];
    for (uint32_t i = 0; i < b->statements.count; i++) {
        nest_id map = b->statements.at[i];
        if (!is_products(l, map, fold))
            continue;
        const struct nest_block *body = &l->nest->blocks.at[cg_statement(l, map)->body];
        struct cg_product x;
        for (uint32_t k = 0; k < body->statements.count; k++)
            if (find_product(l, map, body->statements.at[k], fold, &x))
                vec_push(l->arena, &p.all, x);
    }
    return p;
}

bool cg_is_put_later(const struct cg_lowering *l, nest_id fold, nest_id put)
{
    struct products p = find_products(l, fold);
    for (uint32_t i = 0; i < p.all.count; i++)
        if (p.all.at[i].put == put)
            return true;
    return false;
}

// ---- Where locals are

struct life {
    bool used, is_kept; // kept for the products after the block
    uint32_t first, last;
    int64_t bytes, at;
};

static void note(const struct cg_lowering *l, struct life *lives, nest_id buffer, uint32_t at)
{
    if (l->nest->buffers.at[buffer].role != NEST_LOCAL)
        return;
    if (!lives[buffer].used)
        lives[buffer].first = at;
    lives[buffer].used = true;
    lives[buffer].last = at;
}

static void find_lives(const struct cg_lowering *l, struct life *lives,
                       const struct nest_statement *s, uint32_t at)
{
    nest_for_buffers (b, s)
        note(l, lives, b, at);
    nest_for_each (t, l->nest, s->body)
        find_lives(l, lives, t, at);
    nest_for_each (t, l->nest, s->other)
        find_lives(l, lives, t, at);
}

// The lowest offset that no local has while this one lives.
static int64_t find_offset(const struct life *lives, uint32_t n, const struct life *x)
{
    int64_t at = 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (uint32_t i = 0; i < n; i++) {
            const struct life *y = &lives[i];
            bool meets = y->used && !y->is_kept && y->at >= 0 && y->first <= x->last &&
                         x->first <= y->last;
            if (meets && at < y->at + y->bytes && y->at < at + x->bytes) {
                at = y->at + y->bytes;
                moved = true;
            }
        }
    }
    return at;
}

static void lay_out_locals(struct cg_lowering *l, nest_id loop, int64_t trips)
{
    const struct nest_block *b = &l->nest->blocks.at[cg_statement(l, loop)->body];
    uint32_t n = l->nest->buffers.count;
    struct life *lives = arena_array(l->arena, struct life, n + 1);
    for (uint32_t i = 0; i < b->statements.count; i++)
        find_lives(l, lives, cg_statement(l, b->statements.at[i]), i);
    struct products p = find_products(l, loop);
    for (uint32_t i = 0; i < p.all.count; i++)
        for (int k = 0; k < 2; k++)
            lives[p.all.at[i].source[k]].is_kept = true;
    int64_t total = 0;
    for (uint32_t i = 0; i < n; i++)
        lives[i].at = -1;
    for (uint32_t i = 0; i < n; i++) {
        const struct nest_buffer *x = &l->nest->buffers.at[i];
        struct cg_buffer *to = &l->buffers[i];
        if (!lives[i].used)
            continue;
        to->expanded = true;
        to->row = l->vector.lanes;
        to->is_kept = lives[i].is_kept;
        // What is kept has a turn more than it needs, so that what several hold of the same points
        // does not meet in the cache.
        int64_t points = l->vector.lanes + (lives[i].is_kept ? CG_FOLD_LANES * trips : 0);
        lives[i].bytes = (x->count * points * dtype_get(x->dtype)->bytes + 63) / 64 * 64;
        if (lives[i].is_kept) {
            to->base = to->of_chunk[0] = cg_scratch(l, (uint64_t)lives[i].bytes + 64);
            continue;
        }
        lives[i].at = find_offset(lives, n, &lives[i]);
        if (lives[i].at + lives[i].bytes > total)
            total = lives[i].at + lives[i].bytes;
    }
    LLVMValueRef memory = cg_scratch(l, (uint64_t)total + 1);
    for (uint32_t i = 0; i < n; i++)
        if (lives[i].used && !lives[i].is_kept)
            l->buffers[i].base = l->buffers[i].of_chunk[0] =
                cg_at(l, l->module->i8, memory, cg_int(l->module, lives[i].at));
}

// ---- The loop

static void set_lanes(struct cg_lowering *l, nest_id axis, LLVMValueRef at, LLVMValueRef first,
                      LLVMValueRef last, int64_t trips)
{
    LLVMBuilderRef b = l->m.b;
    l->axes[axis] = at;
    LLVMValueRef left = LLVMBuildSub(b, last, at, "");
    LLVMValueRef count =
        cg_splat(&l->m, LLVMBuildTrunc(b, left, l->module->i32, ""), l->vector.lanes);
    l->vector.mask =
        LLVMBuildICmp(b, LLVMIntSLT,
                      cg_sequence(l->module, l->module->i32, l->vector.lanes, 0, 1), count, "");
    // What is kept of points with the same accumulators stands together.
    LLVMValueRef point = LLVMBuildSub(b, at, first, ""), slot, trip;
    slot = LLVMBuildAnd(b, point, cg_int(l->module, CG_FOLD_LANES - 1), "");
    trip = LLVMBuildSub(b, point, slot, "");
    trip = LLVMBuildUDiv(b, trip, cg_int(l->module, CG_FOLD_LANES / l->vector.lanes), "");
    LLVMValueRef row = cg_add(l, cg_times(l, slot, trips), trip);
    for (nest_id i = 0; i < l->nest->buffers.count; i++)
        if (l->buffers[i].is_kept)
            l->buffers[i].offset = cg_times(l, row, l->nest->buffers.at[i].count);
}

static void lower_part(struct cg_lowering *l, nest_id id)
{
    unsigned units = cg_units(l, id);
    if (cg_lower_copy(l, id))
        return;
    if (units > 1)
        cg_lower_units(l, id, units);
    else
        cg_lower_statement(l, id);
}

static void lower_body(struct cg_lowering *l, nest_id loop)
{
    const struct nest_block *b = &l->nest->blocks.at[cg_statement(l, loop)->body];
    for (uint32_t i = 0; i < b->statements.count; i++)
        if (!is_products(l, b->statements.at[i], loop))
            lower_part(l, b->statements.at[i]);
}

static void begin_lanes(struct cg_lowering *l, nest_id loop, unsigned lanes, int64_t trips)
{
    l->vector.axis = cg_statement(l, loop)->axes[0];
    l->vector.loop = loop;
    l->vector.lanes = lanes;
    lay_out_locals(l, loop, trips);
}

static void end_lanes(struct cg_lowering *l)
{
    l->vector.mask = NULL;
    l->vector.axis = NEST_NONE;
    l->vector.lanes = 1;
}

void cg_lower_network(struct cg_lowering *l, nest_id loop, LLVMValueRef begin, LLVMValueRef end)
{
    unsigned lanes = cg_network_lanes(l);
    begin_lanes(l, loop, lanes, 0);
    struct cg_loop points = cg_loop_open(l, begin, end, cg_int(l->module, lanes));
    set_lanes(l, l->vector.axis, points.index, begin, end, 0);
    lower_body(l, loop);
    cg_loop_close(l, &points);
    end_lanes(l);
}

static uint32_t accumulator_of(const struct cg_fold_plan *p, nest_id put)
{
    uint32_t i = 0;
    while (p->state.puts[i] != put)
        i++;
    return p->state.n_combines + i;
}

// How many points of a block go to one accumulator.
static int64_t trips_of(const struct cg_fold_plan *p)
{
    int64_t block = p->length < p->block ? p->length : p->block;
    return (block + CG_FOLD_LANES - 1) / CG_FOLD_LANES;
}

// The points of a block whose number modulo 64 is that of an accumulator from `slot` on.
static void lower_slots(struct cg_lowering *l, struct cg_fold_plan *p, LLVMValueRef first,
                        LLVMValueRef last, LLVMValueRef slot)
{
    struct cg_loop points = cg_loop_open(l, LLVMBuildAdd(l->m.b, first, slot, ""), last,
                                         cg_int(l->module, CG_FOLD_LANES));
    set_lanes(l, l->vector.axis, points.index, first, last, trips_of(p));
    lower_body(l, p->statement);
    cg_fold_yield(l, p, points.index);
    cg_loop_close(l, &points);
}

// Vectors of points that have the same accumulators follow each other, so that these stay near.
static void lower_block(struct cg_lowering *l, struct cg_fold_plan *p, LLVMValueRef first,
                        LLVMValueRef last)
{
    uint32_t n = 0, count = p->state.n_combines + p->state.n_puts;
    struct cg_accumulator **near = arena_array(l->arena, struct cg_accumulator *, count + 1);
    struct cg_accumulator *all = arena_array(l->arena, struct cg_accumulator, count + 1);
    for (uint32_t i = 0; i < count; i++) {
        if (p->state.accumulators[i].is_later)
            continue;
        all[n] = p->state.accumulators[i];
        near[n] = &p->state.accumulators[i];
        cg_accumulator_few_slots(l, near[n++], p->lanes);
    }
    struct cg_loop slot = cg_loop_open(l, cg_int(l->module, 0), cg_int(l->module, p->rows),
                                       cg_int(l->module, p->lanes));
    for (uint32_t i = 0; i < n; i++)
        cg_accumulator_reset(l, near[i]);
    p->state.slot = cg_int(l->module, 0);
    lower_slots(l, p, first, last, slot.index);
    for (uint32_t i = 0; i < n; i++)
        cg_accumulator_keep_slots(l, near[i], &all[i], slot.index);
    cg_loop_close(l, &slot);
    for (uint32_t i = 0; i < n; i++)
        *near[i] = all[i];
}

// Sets the lanes of a row that are not of the mask to zero.
static void clear_row(struct cg_lowering *l, nest_id buffer, LLVMValueRef row)
{
    jot_dtype d = l->nest->buffers.at[buffer].dtype;
    LLVMTypeRef lane = cg_memory_type(l->module, d),
                type = cg_with_lanes(lane, l->vector.lanes);
    LLVMValueRef at = LLVMBuildMul(l->m.b, row, cg_int(l->module, l->buffers[buffer].row), "");
    at = cg_at(l, lane, l->buffers[buffer].base, cg_add(l, at, l->buffers[buffer].offset));
    LLVMValueRef v = LLVMBuildLoad2(l->m.b, type, at, "");
    LLVMSetAlignment(v, dtype_get(d)->bytes);
    v = LLVMBuildSelect(l->m.b, l->vector.mask, v, LLVMConstNull(type), "");
    LLVMSetAlignment(LLVMBuildStore(l->m.b, v, at), dtype_get(d)->bytes);
}

// Behind the points of a block there are zeros, which add nothing to what is summed of them.
static void clear_rest(struct cg_lowering *l, const struct cg_fold_plan *p, LLVMValueRef first,
                       LLVMValueRef last)
{
    LLVMBuilderRef b = l->m.b;
    LLVMValueRef rest = LLVMBuildAnd(b, LLVMBuildSub(b, last, first, ""),
                                     cg_int(l->module, l->vector.lanes - 1), "");
    struct cg_branch some =
        cg_if_open(l, LLVMBuildICmp(b, LLVMIntNE, rest, cg_int(l->module, 0), ""));
    set_lanes(l, l->vector.axis, LLVMBuildSub(b, last, rest, ""), first, last, trips_of(p));
    uint32_t n = l->nest->buffers.count;
    bool *done = arena_array(l->arena, bool, n + 1);
    for (nest_id i = 0; i < n; i++) {
        if (done[i] || !l->buffers[i].is_kept)
            continue;
        int64_t rows = l->nest->buffers.at[i].count;
        struct cg_loop loop = cg_loop_open(l, cg_int(l->module, 0), cg_int(l->module, rows),
                                           cg_int(l->module, 1));
        for (nest_id k = i; k < n; k++)
            if (l->buffers[k].is_kept && l->nest->buffers.at[k].count == rows) {
                clear_row(l, k, loop.index);
                done[k] = true;
            }
        cg_loop_close(l, &loop);
    }
    cg_if_close(l, &some);
}

void cg_fold_network(struct cg_lowering *l, struct cg_fold_plan *p, LLVMValueRef first,
                     LLVMValueRef last, LLVMValueRef row)
{
    LLVMBuilderRef b = l->m.b;
    nest_id loop = p->statement;
    begin_lanes(l, loop, p->lanes, trips_of(p));
    lower_block(l, p, first, last);
    clear_rest(l, p, first, last);
    end_lanes(l);
    struct products all = find_products(l, loop);
    for (uint32_t i = 0; i < all.all.count; i++) {
        struct cg_product *x = &all.all.at[i];
        x->trips = trips_of(p);
        LLVMTypeRef lane = cg_memory_type(l->module, x->dtype);
        LLVMValueRef to =
            LLVMBuildMul(b, row, cg_int(l->module, x->sides[0] * x->sides[1]), "");
        to = cg_at(l, lane, p->results[accumulator_of(p, x->put)].base[0], to);
        cg_call_product(l, x, to, l->buffers[x->source[0]].base, l->buffers[x->source[1]].base,
                        LLVMBuildSub(b, last, first, ""));
    }
}

// ---- Layers

void cg_lower_contract(struct cg_lowering *l, const struct nest_statement *s)
{
    struct cg_buffer *to = &l->buffers[s->buffer], *from = &l->buffers[s->source[0]];
    jot_dtype d = l->nest->buffers.at[s->buffer].dtype;
    nest_id j = s->axes[0], k = s->axes[1];
    const struct nest_index *w = &s->source_index[1];
    bool fits = nest_is_layer(s) && l->vector.lanes > 1 && to->row && from->row &&
                l->nest->buffers.at[s->source[1]].role != NEST_LOCAL &&
                (d == JOT_F32 || d == JOT_F64);
    if (!fits) {
        cg_fail(l, "the host code generator has no form for this product");
        return;
    }
    struct cg_layer layer = {.dtype = d,
                             .lanes = l->vector.lanes,
                             .inputs = l->nest->axes.at[k].extent,
                             .outputs = l->nest->axes.at[j].extent,
                             .input_step = nest_index_factor(w, k),
                             .output_step = nest_index_factor(w, j),
                             .from_row = from->row,
                             .to_row = to->row};
    LLVMTypeRef lane = cg_memory_type(l->module, d);
    LLVMValueRef at[] = {to->base, from->base};
    for (int i = 0; i < 2; i++) {
        const struct cg_buffer *buffer = i ? from : to;
        if (buffer->is_kept)
            at[i] = cg_at(l, lane, at[i], buffer->offset);
    }
    LLVMValueRef matrix =
        cg_at(l, lane, cg_buffer_base(l, s->source[1]), cg_int(l->module, w->constant));
    cg_call_layer(l, &layer, at[0], at[1], matrix);
}
