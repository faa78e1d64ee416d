// SPDX-License-Identifier: Apache-2.0
// Statements and loops over points.
#include "codegen/lower.h"

#include "ir/type.h"

void cg_fail(struct cg_lowering *l, const char *message)
{
    if (l->status == JOT_OK) {
        l->status = JOT_ERR_INTERNAL;
        l->message = message;
    }
}

int64_t cg_extent(const struct cg_lowering *l, const struct nest_statement *s)
{
    int64_t n = 1;
    for (uint32_t i = 0; i < s->n_axes; i++)
        n *= l->nest->axes.at[s->axes[i]].extent;
    return n;
}

// A vector divided by what is the same in all lanes.
static bool divides_by_uniform(const struct cg_lowering *l, const struct nest_statement *s)
{
    return s->op == IR_div && (s->dtype == JOT_F32 || s->dtype == JOT_F64) &&
           cg_lanes_of(l->values[s->in[0]].re) >= 8 && cg_lanes_of(l->values[s->in[1]].re) == 1;
}

static void lower_op(struct cg_lowering *l, const struct nest_statement *s)
{
    struct cg_value in[4], out[2];
    if (divides_by_uniform(l, s)) {
        LLVMValueRef x = l->values[s->in[0]].re, y = l->values[s->in[1]].re;
        l->values[s->result] = (struct cg_value){cg_divide_by_uniform(&l->m, x, y), NULL};
        return;
    }
    jot_dtype dtypes[4];
    bool varies = false;
    for (uint32_t i = 0; i < s->n_in; i++) {
        in[i] = l->values[s->in[i]];
        dtypes[i] = l->nest->values.at[s->in[i]].dtype;
        varies = varies || cg_lanes_of(in[i].re) > 1;
    }
    for (uint32_t i = 0; varies && i < s->n_in; i++)
        in[i] = cg_wide_value(l, in[i]);
    cg_op(&l->m, s->op, s->dtype, (int)s->n_in, dtypes, in, s->bits, out);
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

static struct cg_value merge(struct cg_lowering *l, jot_dtype d, struct cg_value a,
                             LLVMBasicBlockRef from_a, struct cg_value b,
                             LLVMBasicBlockRef from_b)
{
    struct cg_value r = {0};
    LLVMBasicBlockRef from[] = {from_a, from_b};
    (void)d;
    for (int part = 0; part < 2; part++) {
        LLVMValueRef v[] = {part ? a.im : a.re, part ? b.im : b.re};
        if (!v[0])
            continue;
        LLVMValueRef phi = LLVMBuildPhi(l->m.b, LLVMTypeOf(v[0]), "");
        LLVMAddIncoming(phi, v, from, 2);
        *(part ? &r.im : &r.re) = phi;
    }
    return r;
}

// Lanes that disagree take both branches and choose; one predicate for all is a branch.
static void lower_if(struct cg_lowering *l, const struct nest_statement *s)
{
    LLVMValueRef p = l->values[s->in[0]].re;
    uint32_t n = s->n_results;
    struct cg_value *then = arena_array(l->arena, struct cg_value, n + 1);
    LLVMBuilderRef b = l->m.b;
    if (cg_lanes_of(p) > 1) {
        LLVMValueRef outer = l->mask;
        l->mask = outer ? LLVMBuildAnd(b, outer, p, "") : p;
        cg_lower_block(l, s->body);
        for (uint32_t i = 0; i < n; i++)
            then[i] = cg_wide_value(l, l->values[s->yields[i]]);
        LLVMValueRef not_p = LLVMBuildNot(b, p, "");
        l->mask = outer ? LLVMBuildAnd(b, outer, not_p, "") : not_p;
        if (s->other != NEST_NONE)
            cg_lower_block(l, s->other);
        l->mask = outer;
        for (uint32_t i = 0; i < n; i++)
            l->values[s->result + i] =
                cg_select(&l->m, p, then[i], cg_wide_value(l, l->values[s->yields[n + i]]));
        return;
    }
    LLVMContextRef c = l->module->context;
    LLVMBasicBlockRef blocks[3];
    for (int i = 0; i < 3; i++)
        blocks[i] = LLVMAppendBasicBlockInContext(c, l->function, "");
    LLVMBuildCondBr(b, p, blocks[0], blocks[1]);
    LLVMPositionBuilderAtEnd(b, blocks[0]);
    cg_lower_block(l, s->body);
    for (uint32_t i = 0; i < n; i++)
        then[i] = cg_wide_value(l, l->values[s->yields[i]]);
    LLVMBasicBlockRef from_then = LLVMGetInsertBlock(b);
    LLVMBuildBr(b, blocks[2]);
    LLVMPositionBuilderAtEnd(b, blocks[1]);
    if (s->other != NEST_NONE)
        cg_lower_block(l, s->other);
    for (uint32_t i = 0; i < n; i++)
        l->values[s->result + i] = cg_wide_value(l, l->values[s->yields[n + i]]);
    LLVMBasicBlockRef from_else = LLVMGetInsertBlock(b);
    LLVMBuildBr(b, blocks[2]);
    LLVMPositionBuilderAtEnd(b, blocks[2]);
    for (uint32_t i = 0; i < n; i++)
        l->values[s->result + i] =
            merge(l, s->dtype, then[i], from_then, l->values[s->result + i], from_else);
}

// Strictly from left to right: the running values stand in memory that is promoted to registers.
static void lower_scan(struct cg_lowering *l, const struct nest_statement *s)
{
    const struct nest_block *body = &l->nest->blocks.at[s->body];
    const struct nest_statement *yield = NULL;
    for (uint32_t i = 0; i < body->statements.count; i++)
        if (cg_statement(l, body->statements.at[i])->kind == NEST_YIELD)
            yield = cg_statement(l, body->statements.at[i]);
    if (!yield || s->n_axes != 1) {
        cg_fail(l, "a scan without a yield, or over several axes");
        return;
    }
    LLVMBuilderRef b = l->m.b;
    for (uint32_t i = 0; i < yield->n_combines; i++) {
        const struct nest_combine *c = &yield->combines[i];
        // The first result is the first element: the identity of a sum is -0 then.
        struct cg_value start = cg_identity(l->module, c->op, c->dtype, l->lanes);
        if (c->op == IR_reduce_sum && dtype_is_inexact(c->dtype) && !dtype_is_half(c->dtype)) {
            start.re = LLVMBuildFNeg(b, start.re, "");
            start.im = start.im ? LLVMBuildFNeg(b, start.im, "") : NULL;
        }
        struct cg_value slot = {cg_alloca(l, LLVMTypeOf(start.re), 1), NULL};
        LLVMBuildStore(b, start.re, slot.re);
        if (start.im) {
            slot.im = cg_alloca(l, LLVMTypeOf(start.im), 1);
            LLVMBuildStore(b, start.im, slot.im);
        }
        l->values[yield->result + i] = slot; // the place, until the yield makes it the value
    }
    struct cg_value *places = arena_array(l->arena, struct cg_value, yield->n_combines + 1);
    for (uint32_t i = 0; i < yield->n_combines; i++)
        places[i] = l->values[yield->result + i];
    int64_t n = cg_extent(l, s);
    struct cg_loop loop =
        cg_loop_open(l, cg_int(l->module, 0), cg_int(l->module, n), cg_int(l->module, 1));
    l->axes[s->axes[0]] =
        s->reverse ? LLVMBuildSub(b, cg_int(l->module, n - 1), loop.index, "") : loop.index;
    for (uint32_t k = 0; k < body->statements.count; k++) {
        const struct nest_statement *inner = cg_statement(l, body->statements.at[k]);
        if (inner != yield) {
            cg_lower_statement(l, body->statements.at[k]);
            continue;
        }
        for (uint32_t i = 0; i < yield->n_combines; i++) {
            const struct nest_combine *c = &yield->combines[i];
            struct cg_value v = cg_wide_value(l, l->values[c->value[0]]);
            struct cg_value old = {LLVMBuildLoad2(b, LLVMTypeOf(v.re), places[i].re, ""),
                                   v.im ? LLVMBuildLoad2(b, LLVMTypeOf(v.im), places[i].im, "")
                                        : NULL};
            struct cg_value fresh = cg_combine(&l->m, c->op, c->dtype, old, v);
            if ((c->op == IR_reduce_prod && v.im) || c->op == IR_cumlogsumexp) {
                // No complex number times infinity is the infinity, and no logaddexp gives -0.
                LLVMValueRef first =
                    LLVMBuildICmp(b, LLVMIntEQ, loop.index, cg_int(l->module, 0), "");
                fresh.re = LLVMBuildSelect(b, first, v.re, fresh.re, "");
                if (v.im)
                    fresh.im = LLVMBuildSelect(b, first, v.im, fresh.im, "");
            }
            LLVMBuildStore(b, fresh.re, places[i].re);
            if (fresh.im)
                LLVMBuildStore(b, fresh.im, places[i].im);
            l->values[yield->result + i] = fresh;
        }
    }
    cg_loop_close(l, &loop);
}

void cg_lower_statement(struct cg_lowering *l, nest_id id)
{
    const struct nest_statement *s = cg_statement(l, id);
    if (l->status != JOT_OK)
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
        cg_lower_fold(l, id);
        break;
    case NEST_SCAN:
        lower_scan(l, s);
        break;
    case NEST_SEQ:
        cg_lower_seq(l, s);
        break;
    case NEST_IF:
        lower_if(l, s);
        break;
    default:
        cg_fail(l, "the host code generator has no form for this statement");
    }
}

void cg_lower_block(struct cg_lowering *l, uint32_t block)
{
    const struct nest_block *b = &l->nest->blocks.at[block];
    for (uint32_t i = 0; i < b->statements.count; i++)
        if (!l->hoisted[b->statements.at[i]])
            cg_lower_statement(l, b->statements.at[i]);
}

// Whether the statement is the same for every point of the axes: it has no effect, and all that it
// reads is known outside the block or was hoisted before it.
static bool is_uniform(const struct cg_lowering *l, const struct nest_statement *s,
                       const bool *varies, const nest_id *axes, int n_axes)
{
    bool reads = s->kind == NEST_LOAD;
    if (s->kind != NEST_OP && s->kind != NEST_CONST && s->kind != NEST_INDEX && !reads)
        return false;
    if (reads && l->nest->buffers.at[s->buffer].role != NEST_IN)
        return false;
    for (uint32_t i = 0; i < s->n_in; i++)
        if (varies[s->in[i]])
            return false;
    if (reads && s->guard != NEST_NONE && varies[s->guard])
        return false;
    for (uint32_t i = 0; i < s->index.count; i++) {
        const struct nest_term *t = &s->index.terms[i];
        if (t->is_value && varies[t->id])
            return false;
        for (int k = 0; !t->is_value && k < n_axes; k++)
            if (t->id == axes[k])
                return false;
    }
    return true;
}

// Lowers before a loop what is the same for all its points.
static void hoist(struct cg_lowering *l, uint32_t block, const nest_id *axes, int n_axes)
{
    const struct nest_block *b = &l->nest->blocks.at[block];
    bool *varies = arena_array(l->arena, bool, l->nest->values.count + 1);
    for (uint32_t i = 0; i < b->statements.count; i++) {
        nest_id id = b->statements.at[i];
        const struct nest_statement *s = cg_statement(l, id);
        bool uniform = is_uniform(l, s, varies, axes, n_axes);
        if (uniform)
            cg_lower_statement(l, id);
        l->hoisted[id] = uniform;
        for (uint32_t k = 0; !uniform && k < s->n_results; k++)
            varies[s->result + k] = true;
    }
}

static void forget_hoisted(struct cg_lowering *l, uint32_t block)
{
    const struct nest_block *b = &l->nest->blocks.at[block];
    for (uint32_t i = 0; i < b->statements.count; i++)
        l->hoisted[b->statements.at[i]] = false;
}

// The body at one place of the vector axis, for every point of the tile if there is one.
static void lower_tile(struct cg_lowering *l, const struct nest_statement *s)
{
    if (l->tile_axis == NEST_NONE) {
        cg_lower_block(l, s->body);
        return;
    }
    const struct nest_block *body = &l->nest->blocks.at[s->body];
    for (uint32_t i = 0; !l->mask && i < body->statements.count; i++)
        if (cg_may_stage(l, cg_statement(l, body->statements.at[i]), l->tile_axis))
            cg_stage(l, body->statements.at[i]);
    struct cg_loop point = cg_loop_open(l, l->tile_begin, l->tile_end, cg_int(l->module, 1));
    nest_id axis = l->tile_axis;
    l->axes[axis] = point.index;
    l->tile_axis = NEST_NONE;
    l->across_axis = l->mask ? NEST_NONE : axis;
    cg_lower_block(l, s->body);
    l->across_axis = NEST_NONE;
    l->tile_axis = axis;
    cg_loop_close(l, &point);
}

// The body along the vector axis: whole vectors, then a masked one.
static void lower_lanes(struct cg_lowering *l, const struct nest_statement *s, nest_id axis,
                        unsigned lanes, LLVMValueRef begin, LLVMValueRef end)
{
    LLVMBuilderRef b = l->m.b;
    l->vector_axis = axis;
    l->lanes = lanes;
    LLVMValueRef step = cg_int(l->module, lanes);
    LLVMValueRef length = LLVMBuildSub(b, end, begin, "");
    LLVMValueRef rest = LLVMBuildAnd(b, length, cg_int(l->module, (int64_t)lanes - 1), "");
    LLVMValueRef whole = LLVMBuildSub(b, end, rest, "");
    bool has_whole = !LLVMIsConstant(length) || LLVMConstIntGetSExtValue(length) >= lanes;
    // Chunks are whole vectors, but for the last where the axis is none.
    bool has_rest = l->nest->axes.at[axis].extent % lanes != 0 || CG_CHUNK % lanes != 0;
    if (has_whole) {
        struct cg_onehot *onehot = cg_onehot_make(l, s->body);
        struct cg_loop loop = cg_loop_open(l, begin, whole, step);
        l->axes[axis] = loop.index;
        if (onehot)
            cg_onehot_lower(l, s->body, onehot);
        else
            lower_tile(l, s);
        cg_loop_close(l, &loop);
    }
    if (has_rest) {
        struct cg_branch branch = {0};
        if (!LLVMIsConstant(rest))
            branch = cg_if_open(l, LLVMBuildICmp(b, LLVMIntNE, rest, cg_int(l->module, 0), ""));
        LLVMValueRef places = cg_sequence(l->module, l->module->i32, lanes, 0, 1);
        LLVMValueRef count =
            cg_splat(&l->m, LLVMBuildTrunc(b, rest, l->module->i32, ""), lanes);
        l->mask = LLVMBuildICmp(b, LLVMIntULT, places, count, "");
        l->axes[axis] = whole;
        lower_tile(l, s);
        l->mask = NULL;
        if (!LLVMIsConstant(rest))
            cg_if_close(l, &branch);
    }
    l->vector_axis = NEST_NONE;
    l->lanes = 1;
}

// An axis of the loop along which some access is contiguous that is far apart along the vector
// axis: a transpose.  Its points go by tiles inside the loop over vectors, so that what one vector
// touches stays in the nearest cache for the next.
static nest_id crossing_axis(const struct cg_lowering *l, const struct nest_statement *s,
                             nest_id axis)
{
    const struct nest_block *b = &l->nest->blocks.at[s->body];
    for (uint32_t i = 0; i < b->statements.count; i++) {
        const struct nest_statement *x = cg_statement(l, b->statements.at[i]);
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
    l->tile_axis = across;
    l->tile_begin = tile.index;
    l->tile_end = LLVMBuildSelect(b, inside, stop, points.end, "");
    lower_lanes(l, s, axis, lanes, vectors.begin, vectors.end);
    l->tile_axis = NEST_NONE;
    cg_loop_close(l, &tile);
}

void cg_lower_points(struct cg_lowering *l, nest_id id, nest_id split, LLVMValueRef begin,
                     LLVMValueRef end)
{
    const struct nest_statement *s = cg_statement(l, id);
    struct range split_range = {begin, end};
    nest_id axis = NEST_NONE, across = NEST_NONE;
    unsigned lanes = 1;
    if (l->lanes == 1)
        axis = cg_choose_axis(l, id, &lanes);
    if (axis != NEST_NONE)
        across = crossing_axis(l, s, axis);
    struct cg_loop loops[IR_MAX_RANK];
    int depth = 0;
    for (uint32_t i = 0; i < s->n_axes; i++) {
        nest_id a = s->axes[i];
        if (a == axis || a == across)
            continue;
        struct range r = range_of(l, a, split, split_range);
        loops[depth] = cg_loop_open(l, r.begin, r.end, cg_int(l->module, 1));
        l->axes[a] = loops[depth++].index;
    }
    struct range along = {0};
    if (axis != NEST_NONE)
        along = range_of(l, axis, split, split_range);
    if (axis != NEST_NONE)
        hoist(l, s->body, (nest_id[]){axis, across}, 2);
    if (axis == NEST_NONE)
        cg_lower_block(l, s->body);
    else if (across == NEST_NONE)
        lower_lanes(l, s, axis, lanes, along.begin, along.end);
    else
        lower_tiled(l, s, axis, lanes, along, across, range_of(l, across, split, split_range));
    forget_hoisted(l, s->body);
    while (depth)
        cg_loop_close(l, &loops[--depth]);
}
