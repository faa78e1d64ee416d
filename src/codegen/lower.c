// SPDX-License-Identifier: Apache-2.0
// Statements and loops over points.
#include "codegen/lower.h"
#include "codegen/access.h"
#include "codegen/accumulate.h"
#include "codegen/branch.h"
#include "codegen/emit.h"
#include "codegen/fold.h"
#include "codegen/fold_lane.h"
#include "codegen/fold_shared.h"
#include "codegen/hoist.h"
#include "codegen/hooks.h"
#include "codegen/index.h"
#include "codegen/intervals.h"
#include "codegen/loop.h"
#include "codegen/memory.h"
#include "codegen/onehot.h"
#include "codegen/points.h"
#include "codegen/pressure.h"
#include "codegen/records.h"
#include "codegen/scalar.h"
#include "codegen/seq.h"
#include "codegen/size.h"
#include "codegen/slide.h"
#include "codegen/turn.h"
#include "codegen/types.h"
#include "codegen/while.h"

#include "ir/type.h"

#include <math.h>
#include <string.h>

#define SHORT_LOOP_STATEMENTS 128

void cg_fail(struct cg_lowering *l, const char *message)
{
    if (!l->failure)
        l->failure = message;
}

int64_t cg_extent(const struct cg_lowering *l, const struct nest_statement *s)
{
    return nest_extent(l->nest, s);
}

// An integer to the power of 0 is 1, which all lanes share.  As a vector of equal lanes it makes LLVM 19 compute <2 x i8>
// of which one lane is undefined, and ptxas then leaves the operation out.
static bool lower_power_of_none(struct cg_lowering *l, const struct nest_statement *s)
{
    if (s->op != IR_integer_pow || (int32_t)s->bits[0] != 0 || !dtype_is_integer(s->dtype))
        return false;
    LLVMTypeRef lane = cg_lane_type(l->module, s->dtype);
    l->values[s->result] = (struct cg_value){LLVMConstInt(lane, 1, 0), NULL};
    return true;
}

// x + x is 2 x, and where x is -y it is -2 y: one operation instead of two.
static bool lower_twice(struct cg_lowering *l, const struct nest_statement *s)
{
    if (s->op != IR_add || s->in[0] != s->in[1] || (s->dtype != JOT_F32 && s->dtype != JOT_F64))
        return false;
    nest_id of = s->in[0];
    const struct nest_statement *by = cg_maker_of(l, of);
    bool negates = by->kind == NEST_OP && by->op == IR_neg;
    LLVMValueRef x = l->values[negates ? by->in[0] : of].re;
    LLVMTypeRef lane = cg_lane_type(l->module, s->dtype);
    LLVMValueRef two = cg_splat(&l->m, LLVMConstReal(lane, negates ? -2 : 2), cg_lanes_of(x));
    l->values[s->result] = (struct cg_value){LLVMBuildFMul(l->m.b, x, two, ""), NULL};
    return true;
}

static void lower_op(struct cg_lowering *l, const struct nest_statement *s)
{
    struct cg_value in[4], out[2];
    if (lower_twice(l, s) || lower_power_of_none(l, s))
        return;
    LLVMValueRef decided = cg_interval_decides(l, s);
    if (decided) {
        l->values[s->result] = (struct cg_value){decided, NULL};
        return;
    }
    jot_dtype dtypes[4];
    bool varies = false;
    enum ir_op op = (enum ir_op)s->op;
    uint32_t n = s->n_in;
    for (uint32_t i = 0; i < n; i++) {
        in[i] = l->values[s->in[i]];
        dtypes[i] = l->nest->values.at[s->in[i]].dtype;
        varies = varies || cg_lanes_of(in[i].re) > 1;
    }
    for (uint32_t i = 0; varies && i < n; i++)
        in[i] = cg_wide_value(l, in[i]);
    cg_op(&l->m, op, s->dtype, (int)n, dtypes, in, s->bits, out);
    for (uint32_t i = 0; i < s->n_results; i++)
        l->values[s->result + i] = out[i];
}

static struct cg_fold *fold_of(struct cg_lowering *l, nest_id statement)
{
    struct cg_fold *f = l->fold;
    while (f && f->statement != statement)
        f = f->outer;
    return f;
}

static void lower_put(struct cg_lowering *l, nest_id id, const struct nest_statement *s)
{
    if (s->op == 0) {
        cg_store(l, s, l->values[s->in[0]]);
        return;
    }
    struct cg_fold *f = fold_of(l, s->fold);
    if (!f) {
        cg_fail(l, "an accumulating put outside its fold");
        return;
    }
    uint32_t i = 0;
    while (f->puts[i] != id)
        i++;
    const struct cg_accumulator *a = &f->accumulators[f->n_combines + i];
    struct cg_value v[2] = {{0}};
    for (uint32_t k = 0; k < s->n_in; k++)
        v[k] = cg_convert(&l->m, l->values[s->in[k]], l->nest->values.at[s->in[k]].dtype,
                          a->dtype);
    LLVMValueRef guard = s->guard == NEST_NONE ? NULL : l->values[s->guard].re;
    cg_accumulate(l, a, f->slot, &a->index, v[0], v[1], NULL, guard);
}

// Strictly from left to right: the running values stand in memory that is promoted to registers.
static void lower_scan(struct cg_lowering *l, const struct nest_statement *s)
{
    const struct nest_statement *yield = NULL;
    nest_for_each (t, l->nest, s->body)
        if (t->kind == NEST_YIELD)
            yield = t;
    if (!yield || s->n_axes != 1) {
        cg_fail(l, "a scan without a yield, or over several axes");
        return;
    }
    LLVMBuilderRef b = l->m.b;
    for (uint32_t i = 0; i < yield->n_combines; i++) {
        const struct nest_combine *c = &yield->combines[i];
        // The first result is the first element.
        struct cg_value start = cg_has_neutral(c->op, c->dtype)
                                    ? cg_neutral(&l->m, c->op, c->dtype, l->vector.lanes)
                                    : cg_identity(l->module, c->op, c->dtype, l->vector.lanes);
        struct cg_value slot = {cg_alloca(l, LLVMTypeOf(start.re), 1), NULL};
        LLVMBuildStore(b, start.re, slot.re);
        if (start.im) {
            slot.im = cg_alloca(l, LLVMTypeOf(start.im), 1);
            LLVMBuildStore(b, start.im, slot.im);
        }
        l->values[yield->result + i] = slot; // the slot, until the yield makes it the value
    }
    struct cg_value *slots = arena_array(l->arena, struct cg_value, yield->n_combines + 1);
    for (uint32_t i = 0; i < yield->n_combines; i++)
        slots[i] = l->values[yield->result + i];
    int64_t n = cg_extent(l, s);
    struct cg_loop loop =
        cg_loop_open(l, cg_int(l->module, 0), cg_int(l->module, n), cg_int(l->module, 1));
    l->axes[s->axes[0]] =
        s->reverse ? LLVMBuildSub(b, cg_int(l->module, n - 1), loop.index, "") : loop.index;
    nest_for_each (inner, l->nest, s->body) {
        if (inner != yield) {
            cg_lower_statement(l, nest_id_of(l->nest, inner));
            continue;
        }
        for (uint32_t i = 0; i < yield->n_combines; i++) {
            const struct nest_combine *c = &yield->combines[i];
            struct cg_value v = cg_wide_value(l, l->values[c->value[0]]);
            struct cg_value old = {LLVMBuildLoad2(b, LLVMTypeOf(v.re), slots[i].re, ""),
                                   v.im ? LLVMBuildLoad2(b, LLVMTypeOf(v.im), slots[i].im, "")
                                        : NULL};
            struct cg_value fresh = cg_combine(&l->m, c->op, c->dtype, old, v);
            if (!cg_has_neutral(c->op, c->dtype)) {
                // No complex number times infinity is the infinity, and no logaddexp gives -0.
                LLVMValueRef first =
                    LLVMBuildICmp(b, LLVMIntEQ, loop.index, cg_int(l->module, 0), "");
                fresh.re = LLVMBuildSelect(b, first, v.re, fresh.re, "");
                if (v.im)
                    fresh.im = LLVMBuildSelect(b, first, v.im, fresh.im, "");
            }
            LLVMBuildStore(b, fresh.re, slots[i].re);
            if (fresh.im)
                LLVMBuildStore(b, fresh.im, slots[i].im);
            l->values[yield->result + i] = fresh;
        }
    }
    cg_loop_close(l, &loop);
}

// Whether the fold, which stands in the loop whose lanes there are, has lanes of its own.  Those of a network
// (points.c) are no level.
static bool is_by_lane(const struct cg_lowering *l, nest_id fold)
{
    if (l->vector.lanes == 1 || l->tile.across != NEST_NONE ||
        nest_vector_axis(l->nest, cg_statement(l, fold)) == NEST_NONE ||
        !l->nest->axes.at[l->vector.axis].vector)
        return false;
    const struct nest_block *b = &l->nest->blocks.at[cg_statement(l, l->vector.loop)->body];
    for (uint32_t i = 0; i < b->statements.count; i++)
        if (b->statements.at[i] == fold)
            return true;
    return false;
}

void cg_lower_statement(struct cg_lowering *l, nest_id id)
{
    const struct nest_statement *s = cg_statement(l, id);
    if (l->failure || (l->gpu && l->module->hooks->statement(l, id)))
        return;
    switch (s->kind) {
    case NEST_OP:
        lower_op(l, s);
        break;
    case NEST_CONST:
        l->values[s->result] = cg_constant(l->module, s->dtype, s->bits, 1);
        break;
    case NEST_INDEX:
        l->values[s->result] = (struct cg_value){cg_index_value(l, &s->index, s->dtype), NULL};
        break;
    case NEST_LOAD:
        l->values[s->result] = cg_load(l, s);
        break;
    case NEST_PUT:
        lower_put(l, id, s);
        break;
    case NEST_PAR:
    case NEST_MAP:
        cg_lower_points(l, id, NEST_NONE, NULL, NULL);
        break;
    case NEST_FOLD:
        if (cg_lower_shared_fold(l, id))
            break;
        if (is_by_lane(l, id))
            cg_lower_fold_by_lane(l, id);
        else
            cg_lower_fold(l, id);
        break;
    case NEST_SCAN:
        lower_scan(l, s);
        break;
    case NEST_SEQ:
        cg_lower_seq(l, s);
        break;
    case NEST_WHILE:
        cg_lower_while(l, s);
        break;
    case NEST_IF:
        cg_lower_if(l, s);
        break;
    case NEST_CONTRACT:
        cg_lower_contract(l, s);
        break;
    default:
        cg_fail(l, "the code generator has no form for this statement");
    }
}

void cg_lower_block(struct cg_lowering *l, uint32_t block)
{
    const struct nest_block *b = &l->nest->blocks.at[block];
    cg_lower_list(l, b->statements.at, b->statements.count);
}

// The body at one index of the vector axis, for every point of the tile if there is one.
static void lower_tile(struct cg_lowering *l, const struct nest_statement *s)
{
    if (l->tile.axis == NEST_NONE) {
        cg_records_open(l, s->body);
        cg_lower_block(l, s->body);
        cg_records_close(l);
        return;
    }
    const struct nest_block *body = &l->nest->blocks.at[s->body];
    for (uint32_t i = 0; !l->vector.mask && i < body->statements.count; i++)
        if (cg_may_stage(l, cg_statement(l, body->statements.at[i]), l->tile.axis))
            cg_stage(l, body->statements.at[i]);
    struct cg_loop point = cg_loop_open(l, l->tile.begin, l->tile.end, cg_int(l->module, 1));
    nest_id axis = l->tile.axis;
    l->axes[axis] = point.index;
    l->tile.axis = NEST_NONE;
    l->tile.across = l->vector.mask ? NEST_NONE : axis;
    cg_lower_block(l, s->body);
    l->tile.across = NEST_NONE;
    l->tile.axis = axis;
    cg_loop_close(l, &point);
}

static void lower_whole(struct cg_lowering *l, const struct nest_statement *s, nest_id axis,
                        LLVMValueRef begin, LLVMValueRef end, struct cg_onehot *onehot)
{
    struct cg_slides *slides = onehot ? NULL : cg_slides_open(l, s->body, axis, begin, end);
    struct cg_loop loop = cg_loop_open(l, begin, end, cg_int(l->module, l->vector.lanes));
    l->axes[axis] = loop.index;
    cg_slides_turn(l, slides);
    if (onehot)
        cg_onehot_lower(l, s->body, onehot);
    else
        lower_tile(l, s);
    cg_slides_close(l);
    cg_loop_close(l, &loop);
}

static bool is_one_vector(const struct cg_lowering *l, LLVMValueRef begin, LLVMValueRef end)
{
    return LLVMIsConstant(begin) && LLVMIsConstant(end) &&
           LLVMConstIntGetSExtValue(end) - LLVMConstIntGetSExtValue(begin) == l->vector.lanes;
}

// Whole vectors in three parts.  Borders of one vector each have code of their own, in which
// comparisons are constants; else one code is for both.
static void lower_intervals(struct cg_lowering *l, const struct nest_statement *s, nest_id axis,
                            const struct nest_interval *inner, const struct cg_ranges *r)
{
    LLVMValueRef begin[] = {r->begin, r->inner_end}, end[] = {r->inner_begin, r->end};
    if (is_one_vector(l, begin[0], end[0]) && is_one_vector(l, begin[1], end[1])) {
        for (int i = 0; i < 2; i++) {
            struct nest_interval side = {LLVMConstIntGetSExtValue(begin[i]),
                                         LLVMConstIntGetSExtValue(end[i])};
            cg_interval_enter(l, axis, &side);
            lower_whole(l, s, axis, begin[i], end[i], NULL);
        }
    } else {
        struct cg_loop sides = cg_border_open(l, r, &begin[0], &end[0]);
        lower_whole(l, s, axis, begin[0], end[0], NULL);
        cg_loop_close(l, &sides);
    }
    cg_interval_enter(l, axis, inner);
    lower_whole(l, s, axis, r->inner_begin, r->inner_end, NULL);
    cg_interval_leave(l, axis);
}

// The body along the vector axis: whole vectors, then a masked one.
static void lower_lanes(struct cg_lowering *l, const struct nest_statement *s, nest_id axis,
                        unsigned lanes, LLVMValueRef begin, LLVMValueRef end)
{
    LLVMBuilderRef b = l->m.b;
    l->vector.axis = axis;
    l->vector.lanes = lanes;
    LLVMValueRef length = LLVMBuildSub(b, end, begin, "");
    LLVMValueRef rest = LLVMBuildAnd(b, length, cg_int(l->module, (int64_t)lanes - 1), "");
    LLVMValueRef whole = LLVMBuildSub(b, end, rest, "");
    bool has_whole = !LLVMIsConstant(length) || LLVMConstIntGetSExtValue(length) >= lanes;
    // Chunks are whole vectors, but for the last where the axis is none.
    bool has_rest = l->nest->axes.at[axis].extent % lanes != 0 || CG_CHUNK % lanes != 0;
    if (has_whole) {
        struct cg_onehot *onehot = cg_onehot_make(l, s->body);
        struct nest_interval interval;
        if (!onehot && cg_interval_find(l, s->body, axis, lanes, &interval)) {
            struct cg_ranges r = cg_ranges_of(l, &interval, begin, whole);
            lower_intervals(l, s, axis, &interval, &r);
        } else {
            lower_whole(l, s, axis, begin, whole, onehot);
        }
    }
    if (has_rest) {
        struct cg_branch branch = {0};
        if (!LLVMIsConstant(rest))
            branch = cg_if_open(l, LLVMBuildICmp(b, LLVMIntNE, rest, cg_int(l->module, 0), ""));
        LLVMValueRef lane_numbers = cg_sequence(l->module, l->module->i32, lanes, 0, 1);
        LLVMValueRef count =
            cg_splat(&l->m, LLVMBuildTrunc(b, rest, l->module->i32, ""), lanes);
        l->vector.mask = l->vector.tail = LLVMBuildICmp(b, LLVMIntULT, lane_numbers, count, "");
        l->axes[axis] = whole;
        lower_tile(l, s);
        l->vector.mask = l->vector.tail = NULL;
        if (!LLVMIsConstant(rest))
            cg_if_close(l, &branch);
    }
    l->vector.axis = NEST_NONE;
    l->vector.lanes = 1;
}

static bool is_local_of_lanes(const struct cg_lowering *l, nest_id buffer)
{
    return l->nest->buffers.at[buffer].role == NEST_LOCAL &&
           cg_is_inside(l, buffer, l->vector.loop);
}

// Whether what the lanes of an axis load and put inside a loop over time differs from lane to lane.
static bool has_lanes_in_time(const struct cg_lowering *l, uint32_t block, bool in_time)
{
    nest_for_each (s, l->nest, block) {
        bool over_time = in_time || s->kind == NEST_SEQ || s->kind == NEST_WHILE;
        if (in_time && s->kind == NEST_PUT && !is_local_of_lanes(l, s->buffer))
            return true;
        if (in_time && s->kind == NEST_LOAD && !is_local_of_lanes(l, s->buffer) &&
            l->vector.varies[s->result])
            return true;
        if (has_lanes_in_time(l, s->body, over_time) ||
            has_lanes_in_time(l, s->other, over_time))
            return true;
    }
    return false;
}

// The vectors from `index` on, side by side; lanes from `end` on do not count when it is given.
static void lower_group(struct cg_lowering *l, const struct nest_statement *s, unsigned chunks,
                        LLVMValueRef index, LLVMValueRef end)
{
    LLVMBuilderRef b = l->m.b;
    LLVMTypeRef i32 = l->module->i32;
    unsigned all = chunks * l->vector.lanes;
    LLVMValueRef count = NULL;
    if (end) {
        LLVMValueRef rest = LLVMBuildSub(b, end, index, ""), most = cg_int(l->module, all);
        LLVMValueRef fits = LLVMBuildICmp(b, LLVMIntSLT, rest, most, "");
        count = LLVMBuildTrunc(b, LLVMBuildSelect(b, fits, rest, most, ""), i32, "");
    }
    cg_chunks_open(l, chunks);
    for (unsigned c = 0; c < chunks; c++) {
        LLVMValueRef lane_numbers =
                         cg_sequence(l->module, i32, l->vector.lanes, c * l->vector.lanes, 1),
                     mask = NULL;
        if (end)
            mask = LLVMBuildICmp(b, LLVMIntULT, lane_numbers,
                                 cg_splat(&l->m, count, l->vector.lanes), "");
        cg_chunk_set(l, c, LLVMBuildAdd(b, index, cg_int(l->module, c * l->vector.lanes), ""),
                     mask, NULL);
    }
    cg_lower_block(l, s->body);
    cg_chunks_close(l);
}

// Whether what is left over behind whole vectors has code of its own.  Where lanes touch no memory in the
// course of time a mask costs nothing.  Where they do it costs little, if stores under masks are as quick as
// others: less than the time to compile a long body once more.
static bool rest_has_code(const struct cg_lowering *l, const struct nest_statement *s)
{
    bool is_long = l->module->vector_bytes == 64 && !cg_may_repeat(l, s, 4);
    return has_lanes_in_time(l, s->body, false) && !is_long;
}

// A body with loops over time along the vector axis.
static void lower_side_by_side(struct cg_lowering *l, const struct nest_statement *s,
                               nest_id axis, unsigned chunks, LLVMValueRef begin,
                               LLVMValueRef end)
{
    LLVMBuilderRef b = l->m.b;
    int64_t group = (int64_t)chunks * l->vector.lanes, extent = l->nest->axes.at[axis].extent;
    LLVMValueRef step = cg_int(l->module, group);
    bool has_rest = extent % group != 0;
    if (!has_rest || !rest_has_code(l, s)) {
        struct cg_loop loop = cg_loop_open(l, begin, end, step);
        lower_group(l, s, chunks, loop.index, has_rest ? end : NULL);
        cg_loop_close(l, &loop);
        return;
    }
    LLVMValueRef rest = LLVMBuildSRem(b, LLVMBuildSub(b, end, begin, ""), step, "");
    LLVMValueRef whole = LLVMBuildSub(b, end, rest, "");
    if (extent >= group) {
        struct cg_loop loop = cg_loop_open(l, begin, whole, step);
        lower_group(l, s, chunks, loop.index, NULL);
        cg_loop_close(l, &loop);
    }
    struct cg_loop loop = cg_loop_open(l, whole, end, step);
    lower_group(l, s, chunks, loop.index, end);
    cg_loop_close(l, &loop);
}

// An axis of the loop along which some access is contiguous that is far apart along the vector
// axis: a transpose.  Its points go by tiles inside the loop over vectors, so that what one vector
// touches stays in the nearest cache for the next.
nest_id cg_crossing_axis(const struct cg_lowering *l, const struct nest_statement *s,
                         nest_id axis)
{
    nest_for_each (x, l->nest, s->body) {
        if (x->kind != NEST_LOAD && x->kind != NEST_PUT)
            continue;
        int64_t along = nest_index_factor(&x->index, axis);
        if (along >= -16 && along <= 16)
            continue;
        for (uint32_t k = 0; k < s->n_axes; k++) {
            int64_t across = nest_index_factor(&x->index, s->axes[k]);
            if (s->axes[k] != axis && across >= -4 && across <= 4 && across != 0)
                return s->axes[k];
        }
    }
    return NEST_NONE;
}

struct range {
    LLVMValueRef begin, end;
};

static struct range range_of(struct cg_lowering *l, nest_id axis, nest_id split,
                             struct range split_range)
{
    if (axis == split)
        return split_range;
    return (struct range){cg_int(l->module, 0),
                          cg_int(l->module, l->nest->axes.at[axis].extent)};
}

// Vectors along `axis`, and inside them the points of one tile of `across`.
static void lower_tiled(struct cg_lowering *l, const struct nest_statement *s, nest_id axis,
                        unsigned lanes, struct range vectors, nest_id across,
                        struct range points)
{
    LLVMBuilderRef b = l->m.b;
    struct cg_loop tile = cg_loop_open(l, points.begin, points.end, cg_int(l->module, CG_TILE));
    LLVMValueRef stop = LLVMBuildAdd(b, tile.index, cg_int(l->module, CG_TILE), "");
    LLVMValueRef inside = LLVMBuildICmp(b, LLVMIntSLT, stop, points.end, "");
    l->tile.axis = across;
    l->tile.begin = tile.index;
    l->tile.end = LLVMBuildSelect(b, inside, stop, points.end, "");
    lower_lanes(l, s, axis, lanes, vectors.begin, vectors.end);
    l->tile.axis = NEST_NONE;
    cg_loop_close(l, &tile);
}

static int64_t count_statements(const struct cg_lowering *l, uint32_t block)
{
    int64_t count = 0;
    nest_for_below (s, l->nest, block)
        count++;
    return count;
}

// A short loop of every lane is written out.  The elements of locals that it touches are registers then; where it
// compares its indices with numbers, as rows of a concatenation do, the comparisons are decided.
static bool is_written_out(struct cg_lowering *l, const struct nest_statement *s)
{
    int64_t n = cg_extent(l, s);
    if (n > NEST_SHORT_LOOP || !cg_may_repeat(l, s, n))
        return false;
    if (l->chunks.at && n * count_statements(l, s->body) <= SHORT_LOOP_STATEMENTS)
        return true;
    for (uint32_t i = 0; (l->gpu || l->vector.lanes > 1) && i < s->n_axes; i++)
        if (cg_interval_has(l, s->body, s->axes[i]))
            return true;
    return false;
}

static void write_out(struct cg_lowering *l, const struct nest_statement *s)
{
    for (int64_t n = cg_extent(l, s), i = 0; i < n; i++) {
        int64_t rest = i;
        for (uint32_t k = s->n_axes; k-- > 0;) {
            int64_t extent = l->nest->axes.at[s->axes[k]].extent;
            l->axes[s->axes[k]] = cg_int(l->module, rest % extent);
            rest /= extent;
        }
        cg_lower_block(l, s->body);
    }
}

// A loop over points while its axes are opened one after the other.
struct points {
    const struct nest_statement *s;
    nest_id split, axis, across; // NEST_NONE: none
    struct range split_range;
    unsigned lanes, chunks;
};

// Inside of the loops over the other axes.
static void lower_inner(struct cg_lowering *l, nest_id id, const struct points *p)
{
    const struct nest_statement *s = p->s;
    if (p->axis == NEST_NONE) {
        cg_lower_block(l, s->body);
        return;
    }
    struct range along = range_of(l, p->axis, p->split, p->split_range);
    cg_hoist(l, (nest_id[]){p->axis, p->across}, 2, NEST_NONE, 0, &s->body, 1);
    if (p->chunks) {
        l->vector.axis = p->axis;
        l->vector.lanes = p->lanes;
        l->vector.varies = cg_variation(l, id, p->axis);
        lower_side_by_side(l, s, p->axis, p->chunks, along.begin, along.end);
        l->vector.varies = NULL;
        l->vector.axis = NEST_NONE;
        l->vector.lanes = 1;
    } else if (p->across == NEST_NONE) {
        // Single vectors leave less of the loop beside the interval.  The functions of shared folds, of which each has
        // a part of the body, have the same lanes.
        struct nest_interval interval;
        unsigned single = l->module->vector_bytes / 4;
        bool is_cut = !l->shared && p->lanes > single &&
                      cg_interval_find(l, s->body, p->axis, single, &interval);
        lower_lanes(l, s, p->axis, is_cut ? single : p->lanes, along.begin, along.end);
    } else {
        lower_tiled(l, s, p->axis, p->lanes, along, p->across,
                    range_of(l, p->across, p->split, p->split_range));
    }
    cg_forget_hoisted(l, s->body);
}

static void lower_axes(struct cg_lowering *l, nest_id id, const struct points *p, uint32_t i);

static void lower_range(struct cg_lowering *l, nest_id id, const struct points *p, uint32_t i,
                        LLVMValueRef begin, LLVMValueRef end)
{
    struct cg_loop loop = cg_loop_open(l, begin, end, cg_int(l->module, 1));
    l->axes[p->s->axes[i]] = loop.index;
    lower_axes(l, id, p, i + 1);
    cg_loop_close(l, &loop);
}

// The axes of the loop from number i on.
static void lower_axes(struct cg_lowering *l, nest_id id, const struct points *p, uint32_t i)
{
    struct nest_interval interval;
    if (i == p->s->n_axes) {
        lower_inner(l, id, p);
        return;
    }
    nest_id axis = p->s->axes[i];
    if (axis == p->axis || axis == p->across) {
        lower_axes(l, id, p, i + 1);
        return;
    }
    struct range all = range_of(l, axis, p->split, p->split_range);
    if (l->vector.lanes > 1 || p->chunks ||
        !cg_interval_find(l, p->s->body, axis, 1, &interval)) {
        lower_range(l, id, p, i, all.begin, all.end);
        return;
    }
    struct cg_ranges r = cg_ranges_of(l, &interval, all.begin, all.end);
    LLVMValueRef begin, end;
    struct cg_loop sides = cg_border_open(l, &r, &begin, &end);
    lower_range(l, id, p, i, begin, end);
    cg_loop_close(l, &sides);
    cg_interval_enter(l, axis, &interval);
    lower_range(l, id, p, i, r.inner_begin, r.inner_end);
    cg_interval_leave(l, axis);
}

void cg_lower_points(struct cg_lowering *l, nest_id id, nest_id split, LLVMValueRef begin,
                     LLVMValueRef end)
{
    struct points p = {.s = cg_statement(l, id),
                       .split = split,
                       .axis = NEST_NONE,
                       .across = NEST_NONE,
                       .split_range = {begin, end},
                       .lanes = 1};
    if (is_written_out(l, p.s)) {
        write_out(l, p.s);
        return;
    }
    if (l->vector.lanes == 1 && cg_is_network(l, id)) {
        struct range r = range_of(l, p.s->axes[0], split, p.split_range);
        cg_lower_network(l, id, r.begin, r.end);
        return;
    }
    if (l->vector.lanes == 1)
        p.axis = nest_vector_axis(l->nest, p.s);
    if (p.axis != NEST_NONE) {
        p.lanes = l->nest->axes.at[p.axis].vector;
        p.chunks = cg_choose_chunks(l, id, p.axis, p.lanes);
        p.across = p.chunks ? NEST_NONE : cg_crossing_axis(l, p.s, p.axis);
        l->vector.loop = id;
    }
    lower_axes(l, id, &p, 0);
}
