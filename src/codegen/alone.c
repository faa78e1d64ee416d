// SPDX-License-Identifier: Apache-2.0
// A lane of a while that is left alone goes on without the others, as a program of one lane would:
// in scalars, or with vectors along its own rows, which are memory of their own for that time.
#include "codegen/alone.h"
#include "codegen/emit.h"
#include "codegen/fold.h"
#include "codegen/index.h"
#include "codegen/loop.h"
#include "codegen/lower.h"
#include "codegen/memory.h"
#include "codegen/turn.h"
#include "codegen/types.h"

#define MOST_ALONE 512  // statements, which are code once more
#define SHORT_LOCAL 16  // elements that are registers, and stay so
#define TURNS 32        // from one count of the lanes that are active to the next
#define ELEMENT_TURNS 8 // elements of rows that take as long as a turn to be moved, or less

// ---- Whether

// What the statements of a loop do.
struct look {
    const struct cg_lowering *l;
    uint32_t statements;
    bool has_form;          // all can be lowered for a lane alone
    bool *is_used, *is_put; // by buffer
};

static bool is_open(const struct cg_lowering *l, nest_id fold)
{
    for (const struct cg_fold *f = l->fold; f; f = f->outer)
        if (f->statement == fold)
            return true;
    return false;
}

static void note_block(struct look *k, uint32_t block);

static void note_statement(struct look *k, nest_id id)
{
    const struct cg_lowering *l = k->l;
    const struct nest_statement *x = cg_statement(l, id);
    bool is_access = x->kind == NEST_LOAD || x->kind == NEST_PUT;
    switch (x->kind) {
    case NEST_OP:
    case NEST_CONST:
    case NEST_INDEX:
    case NEST_YIELD:
    case NEST_IF:
    case NEST_LOAD:
    case NEST_PUT:
    case NEST_MAP:
    case NEST_FOLD:
    case NEST_SCAN:
    case NEST_SEQ:
    case NEST_WHILE:
        break;
    default:
        k->has_form = false;
    }
    k->statements++;
    if (is_access) {
        k->is_used[x->buffer] = true;
        k->is_put[x->buffer] |= x->kind == NEST_PUT;
        // What stands in tiles of vectors, is accumulated by lanes, or belongs to a point.
        k->has_form &= !l->marks[id].staged && !l->marks[id].stack.memory &&
                       !(x->kind == NEST_PUT && x->op && is_open(l, x->fold)) &&
                       !l->buffers[x->buffer].row;
    }
    note_block(k, x->body);
    note_block(k, x->other);
}

static void note_block(struct look *k, uint32_t block)
{
    if (block >= k->l->nest->blocks.count)
        return;
    const struct nest_block *b = &k->l->nest->blocks.at[block];
    for (uint32_t i = 0; i < b->statements.count; i++)
        if (!k->l->marks[b->statements.at[i]].is_hoisted)
            note_statement(k, b->statements.at[i]);
}

static struct look look_at_loop(const struct cg_lowering *l, const struct nest_statement *s)
{
    uint32_t n = (uint32_t)l->nest->buffers.count + 1;
    struct look k = {.l = l,
                     .has_form = true,
                     .is_used = arena_array(l->arena, bool, n),
                     .is_put = arena_array(l->arena, bool, n)};
    note_block(&k, s->body);
    note_block(&k, s->other);
    return k;
}

// A local that every lane has, and that more than the loop knows.
static bool is_moved(const struct cg_lowering *l, const struct look *k, nest_id loop,
                     nest_id buffer)
{
    return k->is_used[buffer] && l->buffers[buffer].expanded && !cg_is_inside(l, buffer, loop);
}

unsigned cg_alone_turns(const struct cg_lowering *l, const struct nest_statement *s)
{
    nest_id loop = nest_id_of(l->nest, s);
    struct look k = look_at_loop(l, s);
    if (!k.has_form || k.statements > MOST_ALONE)
        return 0;
    int64_t elements = 0;
    for (uint32_t i = 0; i < l->nest->buffers.count; i++)
        if (is_moved(l, &k, loop, i))
            elements += l->nest->buffers.at[i].count;
    return TURNS + (unsigned)(elements / ELEMENT_TURNS);
}

// ---- Values of the lane

// The element of the lane; n vectors.
static LLVMValueRef element_at(struct cg_lowering *l, LLVMValueRef lane, unsigned lanes,
                               unsigned n, const LLVMValueRef *v)
{
    LLVMBuilderRef b = l->m.b;
    LLVMValueRef size = LLVMConstInt(l->module->i32, lanes, 0), x = NULL;
    if (!v[0] || cg_lanes_of(v[0]) == 1)
        return v[0];
    LLVMValueRef part = LLVMBuildUDiv(b, lane, size, "");
    LLVMValueRef in_vector = LLVMBuildURem(b, lane, size, "");
    for (unsigned c = 0; c < n; c++) {
        LLVMValueRef y = LLVMBuildExtractElement(b, v[c], in_vector, "");
        LLVMValueRef is_it =
            LLVMBuildICmp(b, LLVMIntEQ, part, LLVMConstInt(l->module->i32, c, 0), "");
        x = x ? LLVMBuildSelect(b, is_it, y, x, "") : y;
    }
    return x;
}

// What one lane has of the values, where the loop reads those.
struct lane_values {
    struct cg_lowering *l;
    LLVMValueRef lane;
    struct cg_value *of_lane;
    bool *is_known; // or made in the loop
};

static void know(struct lane_values *v, nest_id id)
{
    LLVMValueRef re[CG_CHUNKS], im[CG_CHUNKS];
    struct cg_lowering *l = v->l;
    unsigned n = 0;
    if (v->is_known[id])
        return;
    v->is_known[id] = true;
    for (struct cg_turn t = {0}; cg_turn_next(l, &t); n++) {
        re[n] = l->values[id].re;
        im[n] = l->values[id].im;
    }
    v->of_lane[id] = (struct cg_value){element_at(l, v->lane, l->vector.lanes, n, re),
                                       element_at(l, v->lane, l->vector.lanes, n, im)};
}

static void know_all(struct lane_values *v, uint32_t n, const nest_id *ids)
{
    for (uint32_t i = 0; i < n; i++)
        know(v, ids[i]);
}

static void made(struct lane_values *v, nest_id first, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        v->is_known[first + i] = true;
}

static void know_block(struct lane_values *v, uint32_t block);

static void know_statement(struct lane_values *v, const struct nest_statement *x)
{
    know_all(v, x->n_in, x->in);
    for (uint32_t i = 0; i < x->index.count; i++)
        if (x->index.terms[i].is_value)
            know(v, x->index.terms[i].id);
    if ((x->kind == NEST_LOAD || x->kind == NEST_PUT) && x->guard != NEST_NONE)
        know(v, x->guard);
    if (x->kind == NEST_SEQ || x->kind == NEST_WHILE)
        made(v, x->first_carry, x->n_in);
    know_block(v, x->body);
    know_block(v, x->other);
    know_all(v, x->n_yields, x->yields);
    for (uint32_t i = 0; i < x->n_combines; i++)
        know_all(v, x->combines[i].n, x->combines[i].value);
    made(v, x->result, x->n_results);
}

static void know_block(struct lane_values *v, uint32_t block)
{
    nest_for_each (s, v->l->nest, block)
        if (!v->l->marks[nest_id_of(v->l->nest, s)].is_hoisted)
            know_statement(v, s);
}

static struct cg_value *values_of_lane(struct cg_lowering *l, const struct nest_statement *s,
                                       LLVMValueRef lane)
{
    uint32_t n = (uint32_t)l->nest->values.count + 1;
    struct lane_values v = {.l = l,
                            .lane = lane,
                            .of_lane = arena_array(l->arena, struct cg_value, n),
                            .is_known = arena_array(l->arena, bool, n)};
    for (uint32_t i = 0; i < s->n_in; i++)
        know(&v, s->first_carry + i);
    know_block(&v, s->body);
    know_block(&v, s->other);
    know_all(&v, s->n_yields, s->yields);
    return v.of_lane;
}

// ---- Locals of the lane

// One element of a local, or one part of it, where all vectors have it and where the lane has it.
struct move {
    struct cg_lowering *l;
    const struct cg_alone *alone;
    LLVMTypeRef type;
    unsigned parts, between, lanes, vectors;
    LLVMValueRef of_vectors[CG_CHUNKS], of_lane;
};

static struct move move_of(struct cg_lowering *l, const struct cg_alone *a, nest_id buffer)
{
    jot_dtype d = l->nest->buffers.at[buffer].dtype;
    struct move m = {.l = l,
                     .alone = a,
                     .type = cg_memory_type(l->module, d),
                     .parts = dtype_is_complex(d) ? 2 : 1,
                     .between = l->buffers[buffer].between,
                     .lanes = l->vector.lanes,
                     .of_lane = a->buffers[buffer].base};
    for (struct cg_turn t = {0}; cg_turn_next(l, &t);)
        m.of_vectors[m.vectors++] = cg_buffer_base(l, buffer);
    return m;
}

// Whole vectors at indices that are constant, so that they are registers.
static void move_short(const struct move *m, int64_t i, unsigned part, bool back)
{
    struct cg_lowering *l = m->l;
    LLVMBuilderRef b = l->m.b;
    LLVMTypeRef vector = cg_with_lanes(m->type, m->lanes);
    LLVMValueRef at[CG_CHUNKS], v[CG_CHUNKS],
        to = cg_at(l, m->type, m->of_lane, cg_int(l->module, i * m->parts + part));
    for (unsigned c = 0; c < m->vectors; c++) {
        int64_t row = (i * m->parts * m->between) + part;
        at[c] = cg_at(l, vector, m->of_vectors[c], cg_int(l->module, row));
        v[c] = LLVMBuildLoad2(b, vector, at[c], "");
    }
    if (!back) {
        LLVMBuildStore(b, element_at(l, m->alone->lane, m->lanes, m->vectors, v), to);
        return;
    }
    LLVMValueRef x = LLVMBuildLoad2(b, m->type, to, "");
    for (unsigned c = 0; c < m->vectors; c++) {
        LLVMValueRef mask = cg_alone_mask(l, m->alone, c);
        x = cg_splat(&l->m, x, m->lanes);
        LLVMBuildStore(b, LLVMBuildSelect(b, mask, x, v[c], ""), at[c]);
    }
}

static void move_long(const struct move *m, LLVMValueRef i, unsigned part, bool back)
{
    struct cg_lowering *l = m->l;
    LLVMBuilderRef b = l->m.b;
    LLVMValueRef size = LLVMConstInt(l->module->i32, m->lanes, 0), base = m->of_vectors[0];
    LLVMValueRef vector = LLVMBuildUDiv(b, m->alone->lane, size, "");
    LLVMValueRef in_vector = LLVMBuildURem(b, m->alone->lane, size, "");
    for (unsigned c = 1; c < m->vectors; c++)
        base = LLVMBuildSelect(
            b, LLVMBuildICmp(b, LLVMIntEQ, vector, LLVMConstInt(l->module->i32, c, 0), ""),
            m->of_vectors[c], base, "");
    base = cg_at(l, m->type, base, LLVMBuildZExt(b, in_vector, l->module->i64, ""));
    base = cg_at(l, m->type, base, cg_int(l->module, part * m->lanes));
    LLVMValueRef there =
        cg_at(l, m->type, base, cg_times(l, i, (int64_t)m->parts * m->between * m->lanes));
    LLVMValueRef here = cg_at(l, m->type, m->of_lane,
                              cg_add(l, cg_times(l, i, m->parts), cg_int(l->module, part)));
    LLVMValueRef x = LLVMBuildLoad2(b, m->type, back ? here : there, "");
    LLVMBuildStore(b, x, back ? there : here);
}

static void move_local(struct cg_lowering *l, const struct cg_alone *a, nest_id buffer,
                       bool back)
{
    struct move m = move_of(l, a, buffer);
    int64_t n = l->nest->buffers.at[buffer].count;
    for (int64_t i = 0; n <= SHORT_LOCAL && i < n; i++)
        for (unsigned part = 0; part < m.parts; part++)
            move_short(&m, i, part, back);
    if (n <= SHORT_LOCAL)
        return;
    struct cg_loop loop =
        cg_loop_open(l, cg_int(l->module, 0), cg_int(l->module, n), cg_int(l->module, 1));
    for (unsigned part = 0; part < m.parts; part++)
        move_long(&m, loop.index, part, back);
    cg_loop_close(l, &loop);
}

// What only the loop knows is made where it is used.
static void take_locals(struct cg_lowering *l, struct cg_alone *a,
                        const struct nest_statement *s)
{
    uint32_t n = (uint32_t)l->nest->buffers.count;
    struct look k = look_at_loop(l, s);
    a->buffers = arena_copy(l->arena, l->buffers, (n + 1) * sizeof *a->buffers);
    a->puts_back = arena_array(l->arena, bool, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        const struct nest_buffer *of = &l->nest->buffers.at[i];
        if (!k.is_used[i] || !l->buffers[i].expanded)
            continue;
        a->buffers[i] = (struct cg_buffer){0};
        if (!is_moved(l, &k, a->loop, i))
            continue;
        a->buffers[i].between = 1;
        a->buffers[i].base =
            cg_scratch(l, (uint64_t)of->count * (uint64_t)dtype_get(of->dtype)->bytes);
        a->puts_back[i] = k.is_put[i];
        move_local(l, a, i, false);
    }
}

// ---- The lane

LLVMValueRef cg_alone_mask(struct cg_lowering *l, const struct cg_alone *a, unsigned c)
{
    LLVMValueRef lanes = cg_sequence(l->module, l->module->i32, l->vector.lanes,
                                     (int64_t)c * l->vector.lanes, 1);
    return LLVMBuildICmp(l->m.b, LLVMIntEQ, lanes, cg_splat(&l->m, a->lane, l->vector.lanes),
                         "");
}

struct cg_alone cg_alone_open(struct cg_lowering *l, const struct nest_statement *s,
                              LLVMValueRef lane)
{
    LLVMBuilderRef b = l->m.b;
    struct cg_alone a = {.loop = nest_id_of(l->nest, s), .lane = lane};
    struct cg_value *values = values_of_lane(l, s, lane);
    take_locals(l, &a, s);
    a.outer.values = l->values;
    a.outer.buffers = l->buffers;
    a.outer.vector = l->vector;
    a.outer.chunks = l->chunks;
    a.index = l->axes[l->vector.axis];
    l->axes[l->vector.axis] =
        LLVMBuildAdd(b, a.index, LLVMBuildZExt(b, lane, l->module->i64, ""), "");
    l->values = values;
    l->buffers = a.buffers;
    l->vector.lanes = 1;
    l->vector.axis = NEST_NONE;
    l->vector.varies = NULL;
    l->vector.mask = l->vector.tail = NULL;
    l->chunks.at = NULL;
    l->chunks.together = false;
    return a;
}

void cg_alone_close(struct cg_lowering *l, const struct cg_alone *a)
{
    l->values = a->outer.values;
    l->buffers = a->outer.buffers;
    l->vector = a->outer.vector;
    l->chunks = a->outer.chunks;
    l->axes[l->vector.axis] = a->index;
    for (uint32_t i = 0; i < l->nest->buffers.count; i++)
        if (a->puts_back[i])
            move_local(l, a, i, true);
}
