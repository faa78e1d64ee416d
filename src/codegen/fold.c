// SPDX-License-Identifier: Apache-2.0
// Folds: a body run over a sequence, its values combined in the fixed order.
//
// When the fold's own last axis is the vector axis, lane l of a window of `rows` elements is
// accumulator l.  A window that several rows of the last axis share is visited once for each of
// them, under a mask.  Otherwise elements come one by one, element i to accumulator i mod 64.
#include "codegen/fold.h"
#include "codegen/access.h"
#include "codegen/accumulate.h"
#include "codegen/emit.h"
#include "codegen/fold_group.h"
#include "codegen/fold_parts.h"
#include "codegen/fold_rows.h"
#include "codegen/hooks.h"
#include "codegen/index.h"
#include "codegen/large.h"
#include "codegen/loop.h"
#include "codegen/lower.h"
#include "codegen/memory.h"
#include "codegen/points.h"
#include "codegen/pressure.h"
#include "codegen/scalar.h"
#include "codegen/size.h"
#include "codegen/turn.h"
#include "codegen/types.h"

#include <stdlib.h>

#define SHORT 32 // in vectors: sequences up to this length are folded in registers
#define GROUP_BYTES 24576
#define WIDE 256 // bytes of lanes that have enough to do with one winner each

// The loops between the fold and one of its puts, outermost first; false when it is not below.
static bool path_to(const struct cg_lowering *l, uint32_t block, nest_id put, nest_id *path,
                    int *n)
{
    nest_for_each (s, l->nest, block) {
        nest_id id = nest_id_of(l->nest, s);
        if (id == put)
            return true;
        bool is_loop = s->kind != NEST_IF && s->body != NEST_NONE;
        if (is_loop)
            path[(*n)++] = id;
        if (path_to(l, s->body, put, path, n) || path_to(l, s->other, put, path, n))
            return true;
        *n -= is_loop;
    }
    return false;
}

static bool is_inner_axis(const struct cg_lowering *l, const nest_id *path, int n, nest_id axis)
{
    for (int i = 0; i < n; i++)
        for (uint32_t k = 0; k < cg_statement(l, path[i])->n_axes; k++)
            if (cg_statement(l, path[i])->axes[k] == axis)
                return true;
    return false;
}

// How many indices the axis has: of one of vector lanes whole vectors, so that rows do not begin in the middle of one
// that has just been put.
static int64_t indices_of(const struct cg_lowering *l, nest_id axis)
{
    const struct nest_axis *a = &l->nest->axes.at[axis];
    bool is_in_lanes = !l->gpu && a->vector > 1;
    return is_in_lanes ? (a->extent + a->vector - 1) / a->vector * a->vector : a->extent;
}

static void sort_terms(struct nest_term *terms, uint32_t n,
                       bool (*comes_first)(const struct cg_lowering *l, struct nest_term a,
                                           struct nest_term b),
                       const struct cg_lowering *l)
{
    for (uint32_t i = 1; i < n; i++)
        for (uint32_t k = i; k && comes_first(l, terms[k], terms[k - 1]); k--) {
            struct nest_term t = terms[k];
            terms[k] = terms[k - 1];
            terms[k - 1] = t;
        }
}

static bool is_nearer(const struct cg_lowering *l, struct nest_term a, struct nest_term b)
{
    (void)l;
    return llabs(a.factor) < llabs(b.factor);
}

static bool is_of_lanes(const struct cg_lowering *l, struct nest_term a, struct nest_term b)
{
    return !l->gpu && l->nest->axes.at[a.id].vector > l->nest->axes.at[b.id].vector;
}

// Leaves no elements between those that the terms reach; false where two indices of their axes may have one element.
// Vector lanes lie together.
static bool close_gaps(const struct cg_lowering *l, struct nest_term *terms, uint32_t n)
{
    int64_t reach = 0, closed = 0;
    sort_terms(terms, n, is_nearer, l);
    for (uint32_t i = 0; i < n; i++) {
        if (llabs(terms[i].factor) <= reach)
            return false;
        reach += llabs(terms[i].factor) * (l->nest->axes.at[terms[i].id].extent - 1);
    }
    sort_terms(terms, n, is_of_lanes, l);
    for (uint32_t i = 0; i < n; i++) {
        int64_t factor = closed + 1;
        closed += factor * (indices_of(l, terms[i].id) - 1);
        terms[i].factor = terms[i].factor < 0 && l->gpu ? -factor : factor;
    }
    return true;
}

// The part of a put's index that moves inside the fold, as numbers from 0 to count - 1.
static struct nest_index inner_index(const struct cg_lowering *l, const struct cg_fold_plan *p,
                                     nest_id put, int64_t *count)
{
    nest_id path[64];
    int n = 0;
    path_to(l, cg_statement(l, p->statement)->body, put, path, &n);
    const struct nest_index *x = &cg_statement(l, put)->index;
    struct nest_term *terms = arena_array(l->arena, struct nest_term, x->count + 1);
    uint32_t kept = 0;
    int64_t low = 0, high = 0;
    for (uint32_t i = 0; i < x->count; i++) {
        if (x->terms[i].is_value) {
            // Any element of the buffer: the whole of it is accumulated.
            *count = l->nest->buffers.at[cg_statement(l, put)->buffer].count;
            return *x;
        }
        if (is_inner_axis(l, path, n, x->terms[i].id))
            terms[kept++] = x->terms[i];
    }
    bool is_closed = close_gaps(l, terms, kept);
    for (uint32_t i = 0; i < kept; i++) {
        int64_t extent =
            is_closed ? indices_of(l, terms[i].id) : l->nest->axes.at[terms[i].id].extent;
        int64_t reach = terms[i].factor * (extent - 1);
        low += reach < 0 ? reach : 0;
        high += reach > 0 ? reach : 0;
    }
    *count = high - low + 1;
    return (struct nest_index){.constant = -low, .count = kept, .terms = terms};
}

static jot_dtype put_dtype(const struct cg_lowering *l, nest_id put)
{
    jot_dtype d = l->nest->buffers.at[cg_statement(l, put)->buffer].dtype;
    return dtype_is_half(d) ? JOT_F32 : d;
}

// The lanes that a put's destinations are stored by, when they are one row that one map walks; 0
// when they are not.
static unsigned row_lanes(const struct cg_lowering *l, const struct cg_fold_plan *p,
                          nest_id put)
{
    nest_id path[64];
    int n = 0;
    path_to(l, cg_statement(l, p->statement)->body, put, path, &n);
    const struct nest_statement *s = cg_statement(l, put),
                                *map = n ? cg_statement(l, path[0]) : s;
    if (l->vector.lanes != 1 || p->state.own_axis || n != 1 || map->kind != NEST_MAP ||
        map->n_axes != 1 || s->guard != NEST_NONE ||
        nest_index_factor(&s->index, map->axes[0]) != 1)
        return 0;
    if (nest_index_has_values(&s->index))
        return 0;
    return l->nest->axes.at[map->axes[0]].vector;
}

static void make_accumulators(struct cg_lowering *l, struct cg_fold_plan *p, unsigned rows)
{
    const struct nest_statement *s = cg_statement(l, p->statement);
    struct cg_fold *f = &p->state;
    nest_id *puts = arena_array(l->arena, nest_id, l->nest->statements.count);
    nest_for_below (t, l->nest, s->body)
        if (t->kind == NEST_PUT && t->op && t->fold == p->statement)
            puts[f->n_puts++] = nest_id_of(l->nest, t);
    f->puts = puts;
    f->n_combines = s->n_combines;
    f->accumulators =
        arena_array(l->arena, struct cg_accumulator, f->n_combines + f->n_puts + 1);
    for (uint32_t i = 0; i < f->n_combines + f->n_puts; i++) {
        struct cg_accumulator *a = &f->accumulators[i];
        *a = (struct cg_accumulator){.own_axis = f->own_axis,
                                     .lanes = f->own_axis ? 1 : l->vector.lanes,
                                     .rows = rows,
                                     .count = 1};
        if (i < f->n_combines) {
            a->op = s->combines[i].op;
            a->dtype = s->combines[i].dtype;
            bool in_lanes = !f->own_axis && l->vector.lanes > 1, is_short = p->length <= SHORT;
            a->elements = in_lanes && is_short && !cg_is_arg(a) ? (unsigned)p->length : 0;
            if (in_lanes && cg_is_arg(a) &&
                (is_short || l->vector.lanes * dtype_get(a->dtype)->bytes >= WIDE))
                a->rows = 1;
        } else {
            nest_id put = puts[i - f->n_combines];
            a->op = cg_statement(l, put)->op;
            a->dtype = put_dtype(l, put);
            a->index = inner_index(l, p, put, &a->count);
        }
        if (i >= f->n_combines)
            a->row_lanes = row_lanes(l, p, f->puts[i - f->n_combines]);
        if (i >= f->n_combines && p->is_network)
            a->is_later = cg_is_put_later(l, p->statement, f->puts[i - f->n_combines]);
        if (a->row_lanes == 64)
            a->stride = (a->count + 63) / 64 * 64;
        if (!a->is_later)
            cg_accumulator_make(l, a);
    }
}

struct cg_fold_plan cg_fold_plan_make(struct cg_lowering *l, nest_id id, int64_t result_rows)
{
    const struct nest_statement *s = cg_statement(l, id);
    struct cg_fold_plan p = {.statement = id, .vector_axis = NEST_NONE, .lanes = 1};
    p.length = cg_extent(l, s);
    p.block = fold_block(p.length);
    p.blocks = p.length > p.block ? (p.length + p.block - 1) / p.block : 1;
    unsigned rows = p.rows = fold_power_of_two(p.length, CG_FOLD_LANES);
    p.is_network = l->vector.lanes == 1 && cg_is_network(l, id);
    if (p.is_network) {
        p.vector_axis = s->axes[0];
        p.lanes = cg_network_lanes(l);
    } else if (l->vector.lanes == 1) {
        p.vector_axis = nest_vector_axis(l->nest, s);
        p.lanes = p.vector_axis == NEST_NONE ? 1 : l->nest->axes.at[p.vector_axis].vector;
    }
    p.state = (struct cg_fold){.statement = id, .own_axis = p.vector_axis != NEST_NONE};
    if (p.state.own_axis) {
        int64_t last = l->nest->axes.at[p.vector_axis].extent;
        p.windowed = s->n_axes > 1 && last != p.length && last % rows != 0;
        if (p.lanes > rows)
            p.lanes = rows;
        p.chunks = p.windowed ? 0 : cg_choose_chunks(l, id, p.vector_axis, p.lanes);
        while (p.chunks && rows % (p.chunks * p.lanes) != 0)
            p.chunks--;
    }
    p.group = p.is_network || p.state.own_axis ? 1 : cg_fold_group(l, &p);
    make_accumulators(l, &p, rows / p.group);
    uint32_t n = p.state.n_combines + p.state.n_puts;
    p.results = arena_array(l->arena, struct cg_results, n + 1);
    for (uint32_t i = 0; result_rows && i < n; i++)
        p.results[i] = cg_results_make(l, &p.state.accumulators[i], result_rows);
    return p;
}

static LLVMValueRef position_in_block(struct cg_lowering *l, const struct cg_fold_plan *p,
                                      LLVMValueRef at)
{
    LLVMValueRef position = LLVMBuildAnd(l->m.b, at, cg_int(l->module, p->block - 1), "");
    return LLVMBuildTrunc(l->m.b, position, l->module->i32, "");
}

// The values that a fold yields go to its accumulators.
static void yield(struct cg_lowering *l, struct cg_fold_plan *p, LLVMValueRef position)
{
    const struct nest_statement *s = cg_statement(l, p->statement);
    for (uint32_t i = 0; i < s->n_combines; i++) {
        if (!cg_fold_is_in_part(p, i))
            continue;
        const struct nest_combine *c = &s->combines[i];
        struct cg_value v[2] = {{0}};
        for (uint32_t k = 0; k < c->n; k++)
            v[k] = cg_convert(&l->m, l->values[c->value[k]],
                              l->nest->values.at[c->value[k]].dtype, c->dtype);
        cg_accumulate(l, &p->state.accumulators[i], p->state.slot, NULL, v[0], v[1], position,
                      NULL);
    }
}

static void lower_element(struct cg_lowering *l, struct cg_fold_plan *p, LLVMValueRef position)
{
    cg_lower_block(l, cg_statement(l, p->statement)->body);
    yield(l, p, position);
}

enum { MANY_AXES = 4 };

// A position in the sequence of many axes: LLVM's loop strength reduction looks for what to share in sums of as
// many products, in a time that grows with more than their square.
static LLVMValueRef position_apart(struct cg_lowering *l, const struct nest_statement *s,
                                   LLVMValueRef at)
{
    bool is_plain = s->n_axes < MANY_AXES || LLVMIsConstant(at) || l->gpu;
    return is_plain ? at : cg_apart(l->module, l->m.b, at);
}

// Axes but the last from a position in the sequence; returns the index along the last.
static LLVMValueRef set_axes(struct cg_lowering *l, const struct nest_statement *s,
                             LLVMValueRef at)
{
    LLVMBuilderRef b = l->m.b;
    at = position_apart(l, s, at);
    for (uint32_t i = s->n_axes; i-- > 1;) {
        LLVMValueRef extent = cg_int(l->module, l->nest->axes.at[s->axes[i]].extent);
        l->axes[s->axes[i]] = LLVMBuildURem(b, at, extent, "");
        at = LLVMBuildUDiv(b, at, extent, "");
    }
    l->axes[s->axes[0]] = at;
    return l->axes[s->axes[s->n_axes - 1]];
}

// In the block, of the lanes from a position in the sequence on.
static LLVMValueRef positions(struct cg_lowering *l, const struct cg_fold_plan *p,
                              LLVMValueRef at)
{
    return LLVMBuildAdd(l->m.b, cg_splat(&l->m, position_in_block(l, p, at), l->vector.lanes),
                        cg_sequence(l->module, l->module->i32, l->vector.lanes, 0, 1), "");
}

// The lanes of one window that belong to the positions [low, high).
static LLVMValueRef window_mask(struct cg_lowering *l, LLVMValueRef at, unsigned first,
                                LLVMValueRef low, LLVMValueRef high)
{
    LLVMBuilderRef b = l->m.b;
    LLVMTypeRef lane = l->module->i64;
    LLVMValueRef position =
        LLVMBuildAdd(b, cg_splat(&l->m, at, l->vector.lanes),
                     cg_sequence(l->module, lane, l->vector.lanes, first, 1), "");
    LLVMValueRef above =
        LLVMBuildICmp(b, LLVMIntSGE, position, cg_splat(&l->m, low, l->vector.lanes), "");
    LLVMValueRef below =
        LLVMBuildICmp(b, LLVMIntSLT, position, cg_splat(&l->m, high, l->vector.lanes), "");
    return LLVMBuildAnd(b, above, below, "");
}

// Parts of a window side by side, the first of them at offset q.
static void parts_side_by_side(struct cg_lowering *l, struct cg_fold_plan *p, LLVMValueRef at,
                               unsigned q, LLVMValueRef base, LLVMValueRef low,
                               LLVMValueRef high)
{
    LLVMBuilderRef b = l->m.b;
    cg_chunks_open(l, p->chunks);
    for (unsigned c = 0; c < p->chunks; c++) {
        unsigned first = q + c * p->lanes;
        LLVMValueRef offset = cg_int(l->module, first);
        cg_chunk_set(l, c, LLVMBuildAdd(b, base, offset, ""),
                     low ? window_mask(l, at, first, low, high) : NULL, offset);
    }
    cg_lower_block(l, cg_statement(l, p->statement)->body);
    for (struct cg_turn t = {0}; cg_turn_next(l, &t);)
        yield(l, p, positions(l, p, LLVMBuildAdd(b, at, p->state.slot, "")));
    cg_chunks_close(l);
}

// Leaves the parts of a window that hold positions of the row [low, high).
static void clip_to_row(struct cg_lowering *l, const struct cg_fold_plan *p, LLVMValueRef at,
                        LLVMValueRef low, LLVMValueRef high, LLVMValueRef *begin,
                        LLVMValueRef *end)
{
    LLVMBuilderRef b = l->m.b;
    LLVMValueRef first = LLVMBuildSub(b, low, at, ""), last = LLVMBuildSub(b, high, at, "");
    LLVMValueRef is_inside = LLVMBuildICmp(b, LLVMIntSGT, first, *begin, "");
    first = LLVMBuildAnd(b, first, cg_int(l->module, -(int64_t)p->lanes), "");
    *begin = LLVMBuildSelect(b, is_inside, first, *begin, "");
    *end = LLVMBuildSelect(b, LLVMBuildICmp(b, LLVMIntSLT, last, *end, ""), last, *end, "");
}

// One window: as many parts of `lanes` as it takes.  base is the index of lane 0 along the last
// axis; low and high are NULL when every lane counts.
static void window(struct cg_lowering *l, struct cg_fold_plan *p, LLVMValueRef at,
                   LLVMValueRef base, LLVMValueRef low, LLVMValueRef high)
{
    LLVMBuilderRef b = l->m.b;
    unsigned rows =
        CG_FOLD_LANES < p->length ? CG_FOLD_LANES : fold_power_of_two(p->length, 64);
    const struct nest_statement *s = cg_statement(l, p->statement);
    if (!p->chunks && rows > p->lanes &&
        (p->windowed || !cg_may_repeat(l, s, rows / p->lanes))) {
        LLVMValueRef begin = cg_int(l->module, 0), end = cg_int(l->module, rows);
        if (p->windowed)
            clip_to_row(l, p, at, low, high, &begin, &end);
        struct cg_loop part = cg_loop_open(l, begin, end, cg_int(l->module, p->lanes));
        LLVMValueRef first = LLVMBuildAdd(b, at, part.index, "");
        l->axes[p->vector_axis] = LLVMBuildAdd(b, base, part.index, "");
        p->state.slot = part.index;
        l->vector.mask = low ? window_mask(l, first, 0, low, high) : NULL;
        lower_element(l, p, positions(l, p, first));
        l->vector.mask = NULL;
        cg_loop_close(l, &part);
        return;
    }
    for (unsigned q = 0; p->chunks && q < rows; q += p->lanes * p->chunks)
        parts_side_by_side(l, p, at, q, base, low, high);
    for (unsigned q = 0; !p->chunks && q < rows; q += p->lanes) {
        LLVMValueRef offset = cg_int(l->module, q);
        l->axes[p->vector_axis] = LLVMBuildAdd(b, base, offset, "");
        p->state.slot = offset;
        l->vector.mask = low ? window_mask(l, at, q, low, high) : NULL;
        lower_element(l, p, positions(l, p, LLVMBuildAdd(b, at, offset, "")));
        l->vector.mask = NULL;
    }
}

// A window of a sequence whose rows end inside windows: once for every row that it meets.
static void shared_window(struct cg_lowering *l, struct cg_fold_plan *p, LLVMValueRef at,
                          int64_t rows)
{
    const struct nest_statement *s = cg_statement(l, p->statement);
    LLVMBuilderRef b = l->m.b;
    int64_t extent = l->nest->axes.at[p->vector_axis].extent;
    LLVMValueRef e = cg_int(l->module, extent), one = cg_int(l->module, 1);
    LLVMValueRef stop = LLVMBuildAdd(b, at, cg_int(l->module, rows), "");
    LLVMValueRef length = cg_int(l->module, p->length);
    LLVMValueRef clipped =
        LLVMBuildSelect(b, LLVMBuildICmp(b, LLVMIntSLT, stop, length, ""), stop, length, "");
    LLVMValueRef first = LLVMBuildUDiv(b, at, e, "");
    LLVMValueRef last =
        LLVMBuildUDiv(b, LLVMBuildAdd(b, clipped, cg_int(l->module, extent - 1), ""), e, "");
    struct cg_loop loop = cg_loop_open(l, first, last, one);
    LLVMValueRef low = LLVMBuildMul(b, loop.index, e, "");
    LLVMValueRef high = LLVMBuildAdd(b, low, e, "");
    set_axes(l, s, low);
    window(l, p, at, position_apart(l, s, LLVMBuildSub(b, at, low, "")), low, high);
    cg_loop_close(l, &loop);
}

static void own_axis_block(struct cg_lowering *l, struct cg_fold_plan *p, LLVMValueRef first,
                           LLVMValueRef last)
{
    const struct nest_statement *s = cg_statement(l, p->statement);
    LLVMBuilderRef b = l->m.b;
    int64_t rows = fold_power_of_two(p->length, CG_FOLD_LANES);
    l->vector.axis = p->vector_axis;
    l->vector.loop = p->statement;
    l->vector.lanes = p->lanes;
    if (p->chunks)
        l->vector.varies = cg_variation(l, p->statement, p->vector_axis);
    LLVMValueRef step = cg_int(l->module, rows);
    if (p->windowed) {
        struct cg_loop loop = cg_loop_open(l, first, last, step);
        shared_window(l, p, loop.index, rows);
        cg_loop_close(l, &loop);
    } else {
        int64_t rest = p->length % rows;
        LLVMValueRef whole_end = cg_int(l->module, p->length - rest);
        LLVMValueRef whole = LLVMBuildSelect(
            b, LLVMBuildICmp(b, LLVMIntSLT, last, whole_end, ""), last, whole_end, "");
        if (p->length >= rows) {
            struct cg_loop loop = cg_loop_open(l, first, whole, step);
            window(l, p, loop.index, set_axes(l, s, loop.index), NULL, NULL);
            cg_loop_close(l, &loop);
        }
        if (rest) {
            LLVMValueRef has_rest = LLVMBuildICmp(b, LLVMIntSGT, last, whole_end, "");
            struct cg_branch branch = {0};
            bool asks = !LLVMIsConstant(has_rest);
            if (asks)
                branch = cg_if_open(l, has_rest);
            window(l, p, whole_end, set_axes(l, s, whole_end), cg_int(l->module, 0),
                   cg_int(l->module, p->length));
            if (asks)
                cg_if_close(l, &branch);
        }
    }
    l->vector.axis = NEST_NONE;
    l->vector.lanes = 1;
    l->vector.varies = NULL;
}

void cg_fold_set_position(struct cg_lowering *l, struct cg_fold_plan *p, LLVMValueRef at)
{
    set_axes(l, cg_statement(l, p->statement), at);
    p->state.slot = LLVMBuildAnd(l->m.b, at, cg_int(l->module, CG_FOLD_LANES - 1), "");
}

void cg_fold_yield(struct cg_lowering *l, struct cg_fold_plan *p, LLVMValueRef at)
{
    yield(l, p, position_in_block(l, p, at));
}

void cg_fold_element(struct cg_lowering *l, struct cg_fold_plan *p, LLVMValueRef at)
{
    cg_fold_set_position(l, p, at);
    lower_element(l, p, position_in_block(l, p, at));
}

static uint64_t accumulator_bytes(const struct cg_fold_plan *p)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < p->state.n_combines + p->state.n_puts; i++) {
        const struct cg_accumulator *a = &p->state.accumulators[i];
        bytes += (uint64_t)(a->rows * a->stride) * a->lanes * dtype_get(a->dtype)->bytes;
    }
    return bytes;
}

// Eight accumulators at a time through the whole block, when all 64 would not stay in the nearest
// cache.  Each of them still gets its elements in order.
static void grouped_block(struct cg_lowering *l, struct cg_fold_plan *p, LLVMValueRef first,
                          LLVMValueRef last)
{
    LLVMBuilderRef b = l->m.b;
    LLVMValueRef eight = cg_int(l->module, 8), all = cg_int(l->module, CG_FOLD_LANES);
    struct cg_loop group = cg_loop_open(l, cg_int(l->module, 0), all, eight);
    LLVMValueRef start = LLVMBuildAdd(b, first, group.index, "");
    struct cg_loop turn = cg_loop_open(l, start, last, all);
    LLVMValueRef stop = LLVMBuildAdd(b, turn.index, eight, "");
    stop = LLVMBuildSelect(b, LLVMBuildICmp(b, LLVMIntSLT, stop, last, ""), stop, last, "");
    struct cg_loop one = cg_loop_open(l, turn.index, stop, cg_int(l->module, 1));
    cg_fold_element(l, p, one.index);
    cg_loop_close(l, &one);
    cg_loop_close(l, &turn);
    cg_loop_close(l, &group);
}

static void plain_block(struct cg_lowering *l, struct cg_fold_plan *p, LLVMValueRef first,
                        LLVMValueRef last)
{
    const struct nest_statement *s = cg_statement(l, p->statement);
    if (p->length <= NEST_SHORT_LOOP && !nest_has_time(l->nest, s->body) &&
        cg_may_repeat(l, s, p->length)) {
        for (int64_t i = 0; i < p->length; i++) {
            LLVMValueRef at = cg_int(l->module, i);
            set_axes(l, s, at);
            p->state.slot = at;
            lower_element(l, p, position_in_block(l, p, at));
        }
        return;
    }
    if (p->group > 1) {
        cg_fold_groups(l, p, first, last);
        return;
    }
    if (cg_fold_rows(l, p, first, last))
        return;
    if (accumulator_bytes(p) > GROUP_BYTES && p->length > 2048) {
        grouped_block(l, p, first, last);
        return;
    }
    struct cg_loop loop = cg_loop_open(l, first, last, cg_int(l->module, 1));
    cg_fold_element(l, p, loop.index);
    cg_loop_close(l, &loop);
}

// The accumulators of the part at hand, from what they start from to their results.
static void fold_part(struct cg_lowering *l, struct cg_fold_plan *p, LLVMValueRef first,
                      LLVMValueRef last, LLVMValueRef row)
{
    struct cg_fold *f = &p->state;
    uint32_t count = f->n_combines + f->n_puts;
    for (uint32_t i = 0; i < count; i++)
        if (!p->is_network && p->group == 1 && cg_fold_is_in_part(p, i))
            cg_accumulator_reset(l, &f->accumulators[i]);
    f->outer = l->fold;
    l->fold = f;
    if (p->length > 0) {
        if (p->is_network)
            cg_fold_network(l, p, first, last, row);
        else if (f->own_axis)
            own_axis_block(l, p, first, last);
        else
            plain_block(l, p, first, last);
    }
    l->fold = f->outer;
    for (uint32_t i = 0; i < count; i++)
        if (!f->accumulators[i].is_later && cg_fold_is_in_part(p, i))
            cg_accumulator_finish(l, &f->accumulators[i], &p->results[i], row, first);
}

void cg_fold_block(struct cg_lowering *l, struct cg_fold_plan *p, LLVMValueRef block,
                   LLVMValueRef row)
{
    LLVMBuilderRef b = l->m.b;
    LLVMValueRef size = cg_int(l->module, p->block), n = cg_int(l->module, p->length);
    LLVMValueRef first = LLVMBuildMul(b, block, size, "");
    LLVMValueRef last = LLVMBuildAdd(b, first, size, "");
    last = LLVMBuildSelect(b, LLVMBuildICmp(b, LLVMIntSLT, last, n, ""), last, n, "");
    uint32_t n_parts = cg_fold_parts(l, p);
    for (uint32_t k = 0; k < n_parts; k++) {
        cg_fold_part_open(l, p, k);
        fold_part(l, p, first, last, row);
        cg_fold_part_close(l, p);
    }
}

// Stores what an accumulating put gathered: once over the loops between the fold and the put.
static void store_put(struct cg_lowering *l, struct cg_fold_plan *p, uint32_t i)
{
    nest_id put = p->state.puts[i];
    const struct nest_statement *s = cg_statement(l, put);
    const struct cg_accumulator *a = &p->state.accumulators[p->state.n_combines + i];
    nest_id path[64];
    int n = 0, depth = 0;
    path_to(l, cg_statement(l, p->statement)->body, put, path, &n);
    int64_t count;
    struct nest_index inner = inner_index(l, p, put, &count);
    jot_dtype d = l->nest->buffers.at[s->buffer].dtype;
    LLVMValueRef base = cg_buffer_base(l, s->buffer);
    struct cg_loop loops[64];
    LLVMValueRef zero = cg_int(l->module, 0), one = cg_int(l->module, 1);
    bool any_element = inner.terms == s->index.terms;
    if (any_element) {
        loops[depth++] = cg_loop_open(l, zero, cg_int(l->module, count), one);
    } else {
        for (int k = 0; k < n; k++)
            for (uint32_t j = 0; j < cg_statement(l, path[k])->n_axes; j++) {
                nest_id axis = cg_statement(l, path[k])->axes[j];
                if (!nest_index_factor(&inner, axis))
                    continue;
                loops[depth] = cg_loop_open(
                    l, zero, cg_int(l->module, l->nest->axes.at[axis].extent), one);
                l->axes[axis] = loops[depth++].index;
            }
    }
    LLVMValueRef at = any_element ? loops[0].index : cg_index_value(l, &inner, JOT_I64);
    struct cg_value v = cg_convert(
        &l->m, cg_result_load(l, a, &p->results[p->state.n_combines + i], at), a->dtype, d);
    if (any_element) {
        LLVMTypeRef lane = cg_memory_type(l->module, d);
        LLVMBuildStore(l->m.b, v.re, cg_at(l, lane, base, at));
    } else {
        cg_store_at(l, base, d, &s->index, NULL, NULL, v);
    }
    while (depth)
        cg_loop_close(l, &loops[--depth]);
}

void cg_fold_results(struct cg_lowering *l, struct cg_fold_plan *p)
{
    const struct nest_statement *s = cg_statement(l, p->statement);
    nest_id result = s->result;
    for (uint32_t i = 0; i < s->n_combines; i++) {
        const struct cg_accumulator *a = &p->state.accumulators[i];
        struct cg_value v = cg_result_load(l, a, &p->results[i], cg_int(l->module, 0));
        bool has_position = cg_is_arg(a);
        if (has_position) {
            l->values[result++] = (struct cg_value){v.re, NULL};
            l->values[result++] = (struct cg_value){v.im, NULL};
        } else {
            l->values[result++] = v;
        }
    }
    for (uint32_t i = 0; i < p->state.n_puts; i++) {
        nest_id buffer = cg_statement(l, p->state.puts[i])->buffer;
        struct cg_branch one;
        bool is_for_one = l->gpu && l->module->hooks->put_open(l, buffer, &one);
        store_put(l, p, i);
        if (is_for_one)
            l->module->hooks->put_close(l, buffer, &one);
    }
}

void cg_lower_fold(struct cg_lowering *l, nest_id id)
{
    int64_t length = cg_extent(l, cg_statement(l, id)), block = fold_block(length);
    struct cg_fold_plan p =
        cg_fold_plan_make(l, id, length > 0 ? (length + block - 1) / block : 1);
    LLVMValueRef zero = cg_int(l->module, 0), one = cg_int(l->module, 1);
    if (p.blocks == 1) {
        cg_fold_block(l, &p, zero, zero);
    } else {
        struct cg_loop loop = cg_loop_open(l, zero, cg_int(l->module, p.blocks), one);
        cg_fold_block(l, &p, loop.index, loop.index);
        cg_loop_close(l, &loop);
        for (uint32_t i = 0; i < p.state.n_combines + p.state.n_puts; i++)
            cg_results_combine(l, &p.state.accumulators[i], &p.results[i], p.blocks);
    }
    cg_fold_results(l, &p);
}
