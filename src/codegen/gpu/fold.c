// SPDX-License-Identifier: Apache-2.0
// Folds in the order that docs/numerics.md fixes, by a group of threads: a team of them has a
// block, where what thread t of it reads of each window of 64 elements goes to accumulators of
// its own, which fold by halves through shuffles.
#include "codegen/gpu/fold.h"
#include "codegen/accumulate.h"
#include "codegen/emit.h"
#include "codegen/gpu/blocks.h"
#include "codegen/gpu/device.h"
#include "codegen/gpu/fold_alone.h"
#include "codegen/gpu/gpu.h"
#include "codegen/gpu/kept.h"
#include "codegen/gpu/points.h"
#include "codegen/gpu/row.h"
#include "codegen/gpu/tree.h"
#include "codegen/loop.h"
#include "codegen/lower.h"
#include "codegen/scalar.h"
#include "codegen/types.h"
#include "map/gpu_groups.h"
#include "map/gpu_lanes.h"

#include "ir/cost.h"

struct cg_accumulator *gpu_fold_accumulators(struct cg_lowering *l,
                                             const struct nest_statement *s, bool own_axis,
                                             unsigned rows)
{
    struct cg_accumulator *all =
        arena_array(l->arena, struct cg_accumulator, s->n_combines + 1);
    for (uint32_t i = 0; i < s->n_combines; i++) {
        all[i] = (struct cg_accumulator){.op = s->combines[i].op,
                                         .dtype = s->combines[i].dtype,
                                         .order = s->combines[i].order,
                                         .count = 1,
                                         .own_axis = own_axis,
                                         .lanes = own_axis ? 1 : l->vector.lanes,
                                         .rows = rows};
        cg_accumulator_make(l, &all[i]);
    }
    return all;
}

static unsigned lanes_of(const struct cg_accumulator *a)
{
    return a->own_axis ? a->rows : a->lanes;
}

void gpu_fold_reset(struct cg_lowering *l, const struct cg_accumulator *a,
                    LLVMValueRef position)
{
    struct cg_element none = cg_element_identity(l, a, lanes_of(a));
    if (cg_is_arg(a))
        none.v[2] = cg_splat(&l->m, position, lanes_of(a));
    cg_element_store(l, a, false, a->base, cg_int(l->module, 0), &none);
}

struct cg_element gpu_fold_take(struct cg_lowering *l, const struct cg_accumulator *a)
{
    return cg_element_load(l, a, false, a->base, cg_int(l->module, 0), lanes_of(a));
}

// The axes from a position in the sequence, in 32 bits when they do.
static void set_axes(struct cg_lowering *l, const struct nest_statement *s, LLVMValueRef at)
{
    LLVMBuilderRef b = l->m.b;
    if (s->n_axes == 1) {
        l->axes[s->axes[0]] = at;
        return;
    }
    bool is_short = cg_extent(l, s) <= INT32_MAX;
    LLVMTypeRef type = is_short ? l->module->i32 : l->module->i64;
    at = is_short ? LLVMBuildTrunc(b, at, type, "") : at;
    for (uint32_t i = s->n_axes; i-- > 0;) {
        LLVMValueRef one = at;
        if (i > 0) {
            LLVMValueRef n =
                LLVMConstInt(type, (uint64_t)l->nest->axes.at[s->axes[i]].extent, 0);
            LLVMValueRef rest = LLVMBuildUDiv(b, at, n, "");
            one = LLVMBuildSub(b, at, LLVMBuildMul(b, rest, n, ""), "");
            at = rest;
        }
        l->axes[s->axes[i]] = is_short ? gpu_wide(l, one) : one;
    }
}

void gpu_fold_set(struct cg_lowering *l, nest_id fold, LLVMValueRef at)
{
    set_axes(l, cg_statement(l, fold), at);
}

// The values at hand to accumulator `slot`.
static void accumulate(struct cg_lowering *l, const struct nest_statement *s,
                       const struct cg_accumulator *all, LLVMValueRef slot,
                       LLVMValueRef in_block)
{
    for (uint32_t i = 0; i < s->n_combines; i++) {
        const struct nest_combine *c = &s->combines[i];
        struct cg_value v[2] = {{0}};
        for (uint32_t k = 0; k < c->n; k++)
            v[k] = l->gpu->terms.fold == s
                       ? l->values[c->value[k]]
                       : cg_convert(&l->m, l->values[c->value[k]],
                                    l->nest->values.at[c->value[k]].dtype, c->dtype);
        cg_accumulate(l, &all[i], slot, NULL, v[0], v[1], in_block, NULL);
    }
}

void gpu_fold_element(struct cg_lowering *l, const struct nest_statement *s,
                      const struct cg_accumulator *all, LLVMValueRef at, LLVMValueRef slot,
                      LLVMValueRef in_block)
{
    set_axes(l, s, at);
    if (l->gpu->terms.fold == s)
        gpu_terms_load(l, s, at);
    else
        cg_lower_block(l, s->body);
    accumulate(l, s, all, slot, in_block);
}

void gpu_fold_results(struct cg_lowering *l, const struct nest_statement *s,
                      const struct cg_accumulator *all, const struct cg_element *results)
{
    nest_id result = s->result;
    for (uint32_t i = 0; i < s->n_combines; i++) {
        struct cg_value v = cg_element_value(l, &all[i], &results[i]);
        l->values[result++] = v;
        if (cg_is_arg(&all[i]))
            l->values[result++] = (struct cg_value){results[i].v[2], NULL};
    }
}

struct gpu_fold gpu_fold_make(struct cg_lowering *l, nest_id id, const struct map_row *row,
                              int64_t rows)
{
    const struct nest_statement *s = cg_statement(l, id);
    struct gpu_fold f = {.statement = id, .row = *row, .n = s->n_combines};
    f.accumulators = gpu_fold_accumulators(l, s, true, row->parts * row->lanes);
    f.rows = arena_array(l->arena, struct cg_results, f.n + 1);
    for (uint32_t i = 0; i < f.n; i++)
        f.rows[i] = gpu_shared_results(l, &f.accumulators[i], (uint64_t)rows);
    return f;
}

// The elements of a thread from `in_block` on of a block that begins at `start`, to the
// accumulators from `slot` on; what lies behind the end is left out where that may be.
static void part(struct cg_lowering *l, const struct gpu_fold *f, LLVMValueRef start,
                 LLVMValueRef in_block, unsigned slot, bool may_end)
{
    LLVMBuilderRef b = l->m.b;
    const struct map_row *r = &f->row;
    const struct nest_statement *s = cg_statement(l, f->statement);
    LLVMValueRef position = LLVMBuildAdd(b, start, gpu_wide(l, in_block), "");
    struct cg_branch branch = {0};
    if (may_end)
        branch = cg_if_open(
            l, LLVMBuildICmp(b, LLVMIntSLT, position, cg_int(l->module, r->length), ""));
    LLVMValueRef positions =
        LLVMBuildAdd(b, cg_splat(&l->m, in_block, r->lanes),
                     cg_sequence(l->module, l->module->i32, r->lanes, 0, 1), "");
    l->vector.axis = r->lanes == 1 ? NEST_NONE : s->axes[s->n_axes - 1];
    l->vector.loop = f->statement;
    l->vector.lanes = r->lanes;
    gpu_fold_element(l, s, f->accumulators, position, cg_int(l->module, slot), positions);
    l->vector.axis = NEST_NONE;
    l->vector.lanes = 1;
    if (may_end)
        cg_if_close(l, &branch);
}

// What a thread has of the window that begins at `at`, of which so many elements are there
// surely.
static void window(struct cg_lowering *l, const struct gpu_fold *f, const struct gpu_member *m,
                   LLVMValueRef start, LLVMValueRef at, int64_t there)
{
    const struct map_row *r = &f->row;
    for (unsigned q = 0; q < r->parts; q++) {
        LLVMValueRef in_block = LLVMBuildAdd(l->m.b, at, m->offset, "");
        in_block = LLVMBuildAdd(l->m.b, in_block, gpu_i32(l, q * r->team * r->lanes), "");
        part(l, f, start, in_block, q * r->lanes,
             there < (int64_t)(q + 1) * r->team * r->lanes);
    }
}

// Registers of four bytes that a thread has room for, of what it reads before it puts any.
#define MOST_READ 64

// How many elements of a thread of a fold that puts some are read before it puts the first: a load stays behind the puts
// in front of it where the assembler does not know that they have another memory.  1: there is nothing to read so.
static int64_t count_read_first(const struct cg_lowering *l, const struct gpu_fold *f)
{
    const struct nest_statement *s = cg_statement(l, f->statement);
    int64_t most = MOST_READ, bytes = 0;
    bool puts = false;
    nest_for_each (t, l->nest, s->body) {
        if (t->kind > NEST_PUT || t->n_results > 1 || (t->kind == NEST_PUT && t->op))
            return 1;
        puts |= t->kind == NEST_PUT;
        if (t->kind == NEST_LOAD && !puts)
            bytes += (int64_t)jot_dtype_size(t->dtype) * f->row.lanes;
    }
    if (!puts || !bytes || gpu_keeps(l) || l->gpu->terms.fold == s)
        return 1;
    while (most > 1 && most * bytes > 4 * MOST_READ)
        most /= 2;
    return most;
}

// Elements first, first + 1, .. of a thread of the windows from `at` on, so many, all of which are there.
static void read_first(struct cg_lowering *l, const struct gpu_fold *f,
                       const struct gpu_member *m, LLVMValueRef start, LLVMValueRef at,
                       int64_t first, int64_t count)
{
    const struct map_row *r = &f->row;
    const struct nest_statement *s = cg_statement(l, f->statement);
    const struct nest_block *body = &l->nest->blocks.at[s->body];
    LLVMBuilderRef b = l->m.b;
    uint32_t head = gpu_head_of(l, body);
    struct cg_value *read = arena_array(l->arena, struct cg_value, (size_t)count * head + 1);
    for (int64_t k = 0; k < 2 * count; k++) {
        int64_t n = first + k % count, part = n % r->parts;
        int64_t offset = n / r->parts * r->window + part * r->team * r->lanes;
        LLVMValueRef in_block = LLVMBuildAdd(b, at, m->offset, "");
        in_block = LLVMBuildAdd(b, in_block, gpu_i32(l, offset), "");
        set_axes(l, s, LLVMBuildAdd(b, start, gpu_wide(l, in_block), ""));
        if (k < count) {
            gpu_head_read(l, body, head, read + k * head);
            continue;
        }
        gpu_head_go_on(l, body, head, read + (k - count) * head);
        LLVMValueRef positions =
            LLVMBuildAdd(b, cg_splat(&l->m, in_block, r->lanes),
                         cg_sequence(l->module, l->module->i32, r->lanes, 0, 1), "");
        accumulate(l, s, f->accumulators, cg_int(l->module, part * r->lanes), positions);
    }
}

// So many windows from `at` on, all of which are there.
static void whole_windows(struct cg_lowering *l, const struct gpu_fold *f,
                          const struct gpu_member *m, LLVMValueRef start, LLVMValueRef at,
                          int64_t count)
{
    const struct map_row *r = &f->row;
    const struct nest_statement *s = cg_statement(l, f->statement);
    int64_t together = count_read_first(l, f), all = count * r->parts;
    if (together == 1) {
        for (int64_t k = 0; k < count; k++, l->gpu->kept.vector++)
            window(l, f, m, start, LLVMBuildAdd(l->m.b, at, gpu_i32(l, k * r->window), ""),
                   r->window);
        return;
    }
    l->vector.axis = r->lanes == 1 ? NEST_NONE : s->axes[s->n_axes - 1];
    l->vector.loop = f->statement;
    l->vector.lanes = r->lanes;
    for (int64_t k = 0; k < all; k += together)
        read_first(l, f, m, start, at, k, all - k < together ? all - k : together);
    l->vector.axis = NEST_NONE;
    l->vector.lanes = 1;
}

// The first accumulators of a thread, of one part, become its last ones.
static void turn(struct cg_lowering *l, const struct gpu_fold *f)
{
    unsigned n = f->row.lanes, rest = (f->row.parts - 1) * n;
    for (uint32_t i = 0; i < f->n; i++) {
        const struct cg_accumulator *a = &f->accumulators[i];
        struct cg_element t = gpu_fold_take(l, a);
        struct cg_element first = cg_element_lanes(l, &t, 0, n);
        struct cg_element others = cg_element_lanes(l, &t, n, rest);
        cg_element_store(l, a, false, a->base, cg_int(l->module, 0), &others);
        cg_element_store(l, a, false, a->base, cg_int(l->module, rest), &first);
    }
}

// The windows of a block of `size` elements, one part of all of them after the other: a long
// body is written once.
static void windows_by_part(struct cg_lowering *l, const struct gpu_fold *f,
                            const struct gpu_member *m, LLVMValueRef start, int64_t size)
{
    const struct map_row *r = &f->row;
    LLVMBuilderRef b = l->m.b;
    int64_t n = size / r->window;
    struct cg_loop parts = cg_loop_open(l, gpu_i32(l, 0), gpu_i32(l, r->parts), gpu_i32(l, 1));
    LLVMValueRef own = LLVMBuildMul(b, parts.index, gpu_i32(l, r->team * r->lanes), "");
    own = LLVMBuildAdd(b, own, m->offset, "");
    struct cg_loop loop = cg_loop_open(l, gpu_i32(l, 0), gpu_i32(l, n), gpu_i32(l, 1));
    LLVMValueRef at = LLVMBuildMul(b, loop.index, gpu_i32(l, r->window), "");
    part(l, f, start, LLVMBuildAdd(b, at, own, ""), 0, false);
    cg_loop_close(l, &loop);
    if (size % r->window)
        part(l, f, start, LLVMBuildAdd(b, own, gpu_i32(l, n * r->window), ""), 0, true);
    turn(l, f);
    cg_loop_close(l, &parts);
}

// All windows of a block, the last one or one of the others.
static void windows(struct cg_lowering *l, const struct gpu_fold *f, const struct gpu_member *m,
                    LLVMValueRef start, bool is_last)
{
    const struct map_row *r = &f->row;
    int64_t size = is_last ? r->length - (r->blocks - 1) * r->block : r->block;
    int64_t n = size / r->window, at_once = cg_statement(l, f->statement)->at_once;
    if (r->parts > 1 && !at_once) {
        windows_by_part(l, f, m, start, size);
        return;
    }
    at_once = at_once ? at_once : 1;
    while (at_once > 1 && at_once > n)
        at_once /= 2;
    int64_t all = n / at_once * at_once;
    struct cg_loop loop = cg_loop_open(l, cg_int(l->module, 0), cg_int(l->module, all),
                                       cg_int(l->module, at_once));
    LLVMValueRef number = LLVMBuildTrunc(l->m.b, loop.index, l->module->i32, "");
    LLVMValueRef first = LLVMBuildMul(l->m.b, number, gpu_i32(l, r->window), "");
    whole_windows(l, f, m, start, first, at_once);
    cg_loop_close(l, &loop);
    for (; all < n; all++)
        window(l, f, m, start, gpu_i32(l, all * r->window), r->window);
    if (size % r->window)
        window(l, f, m, start, gpu_i32(l, n * r->window), size % r->window);
}

// The first `from` lanes of an element fold by halves until `to` are left.
static void halve(struct cg_lowering *l, const struct cg_accumulator *a, struct cg_element *t,
                  unsigned from, unsigned to)
{
    for (unsigned n = from; n > to; n /= 2) {
        struct cg_element low = cg_element_lanes(l, t, 0, n / 2);
        struct cg_element high = cg_element_lanes(l, t, n / 2, n / 2);
        *t = cg_element_combine(l, a, &low, &high);
    }
}

// The accumulators of a team fold to one, in its first thread.
static struct cg_element bring_together(struct cg_lowering *l, const struct gpu_fold *f,
                                        const struct cg_accumulator *a)
{
    const struct map_row *r = &f->row;
    struct cg_element t = gpu_fold_take(l, a);
    unsigned moved = a->order == NEST_FREE ? 1 : r->lanes; // that go through shuffles
    halve(l, a, &t, r->parts * r->lanes, moved);
    for (unsigned distance = r->team / 2; distance; distance /= 2) {
        struct cg_element other = gpu_shuffle_down(l, &t, distance);
        t = cg_element_combine(l, a, &t, &other);
    }
    halve(l, a, &t, moved, 1);
    return t;
}

static void reset_all(struct cg_lowering *l, const struct gpu_fold *f,
                      const struct gpu_member *m)
{
    const struct map_row *r = &f->row;
    LLVMValueRef offsets[64];
    for (unsigned q = 0; q < r->parts; q++)
        for (unsigned k = 0; k < r->lanes; k++)
            offsets[q * r->lanes + k] =
                LLVMBuildAdd(l->m.b, m->offset, gpu_i32(l, q * r->team * r->lanes + k), "");
    unsigned n = r->parts * r->lanes;
    LLVMValueRef all = offsets[0];
    if (n > 1) {
        all = LLVMGetPoison(LLVMVectorType(l->module->i32, n));
        for (unsigned i = 0; i < n; i++)
            all = LLVMBuildInsertElement(l->m.b, all, offsets[i], gpu_i32(l, i), "");
    }
    for (uint32_t i = 0; i < f->n; i++)
        gpu_fold_reset(l, &f->accumulators[i], all);
}

// The blocks of a round, one of each team: `row` (an i32) is the team's among `count` from
// `first` on.
static void fold_round(struct cg_lowering *l, const struct gpu_fold *f,
                       const struct gpu_member *m, LLVMValueRef first, LLVMValueRef row,
                       int64_t count, bool may_miss_row)
{
    LLVMBuilderRef b = l->m.b;
    const struct map_row *r = &f->row;
    LLVMValueRef block = LLVMBuildAdd(b, first, gpu_wide(l, row), "");
    LLVMValueRef start = LLVMBuildMul(b, block, cg_int(l->module, r->block), "");
    bool may_miss = may_miss_row || r->blocks % count != 0;
    LLVMValueRef is_there = NULL;
    if (may_miss) {
        is_there = LLVMBuildICmp(b, LLVMIntSLT, block, cg_int(l->module, r->blocks), "");
        if (may_miss_row)
            is_there = LLVMBuildAnd(
                b, is_there, LLVMBuildICmp(b, LLVMIntULT, row, gpu_i32(l, count), ""), "");
    }
    reset_all(l, f, m);
    struct cg_branch there = {0};
    if (may_miss)
        there = cg_if_open(l, is_there);
    if (r->is_exact || r->blocks == 1) {
        windows(l, f, m, start, r->blocks == 1);
    } else {
        LLVMValueRef end = LLVMBuildAdd(b, start, cg_int(l->module, r->block), "");
        struct cg_branch full =
            cg_if_open(l, LLVMBuildICmp(b, LLVMIntSLE, end, cg_int(l->module, r->length), ""));
        windows(l, f, m, start, false);
        cg_else_open(l, &full);
        windows(l, f, m, start, true);
        cg_if_close(l, &full);
    }
    if (may_miss)
        cg_if_close(l, &there);
    LLVMValueRef leads = LLVMBuildICmp(b, LLVMIntEQ, m->in_team, gpu_i32(l, 0), "");
    if (may_miss)
        leads = LLVMBuildAnd(b, leads, is_there, "");
    struct cg_element *all = arena_array(l->arena, struct cg_element, f->n + 1);
    for (uint32_t i = 0; i < f->n; i++) {
        all[i] = bring_together(l, f, &f->accumulators[i]);
        cg_element_to_sequence(l, &all[i], start);
    }
    struct cg_branch one = cg_if_open(l, leads);
    for (uint32_t i = 0; i < f->n; i++)
        cg_element_store(l, &f->accumulators[i], true, f->rows[i].base, gpu_wide(l, row),
                         &all[i]);
    cg_if_close(l, &one);
}

void gpu_fold_blocks(struct cg_lowering *l, struct gpu_fold *f, LLVMValueRef first,
                     int64_t count)
{
    LLVMBuilderRef b = l->m.b;
    const struct map_row *r = &f->row;
    struct gpu_member m = gpu_member_of(l, r);
    int64_t rounds = (count + r->teams - 1) / r->teams;
    bool ends_inside = rounds * r->teams > count;
    l->gpu->is_alone = true;
    l->gpu->kept.vector = 0;
    l->m.is_crowded = gpu_keeps(l);
    if (rounds == 1 || cg_statement(l, f->statement)->turns) {
        for (int64_t j = 0; j < rounds; j++)
            fold_round(l, f, &m, first, LLVMBuildAdd(b, m.team, gpu_i32(l, j * r->teams), ""),
                       count, ends_inside && j + 1 == rounds);
    } else {
        struct cg_loop round =
            cg_loop_open(l, gpu_i32(l, 0), gpu_i32(l, rounds * r->teams), gpu_i32(l, r->teams));
        fold_round(l, f, &m, first, LLVMBuildAdd(b, m.team, round.index, ""), count,
                   ends_inside);
        cg_loop_close(l, &round);
    }
    l->m.is_crowded = false;
    l->gpu->is_alone = false;
}

void gpu_fold_define(struct cg_lowering *l, const struct gpu_fold *f,
                     const struct cg_element *results)
{
    gpu_fold_results(l, cg_statement(l, f->statement), f->accumulators, results);
}

void gpu_fold_together(struct cg_lowering *l, nest_id id)
{
    if (cg_statement(l, id)->level != NEST_THREAD) {
        l->gpu->is_alone = l->gpu->is_same = true;
        gpu_fold_alone(l, id);
        l->gpu->is_alone = l->gpu->is_same = false;
        return;
    }
    const struct nest_statement *s = cg_statement(l, id);
    struct map_row row = map_row_of(l->nest, s, l->gpu->group, map_vector(l->nest, s));
    struct gpu_fold f = gpu_fold_make(l, id, &row, row.blocks);
    if (gpu_is_repeated(l))
        gpu_sync(l); // the rows are read from the trip before
    gpu_fold_blocks(l, &f, cg_int(l->module, 0), row.blocks);
    gpu_sync(l);
    struct cg_element *out = arena_array(l->arena, struct cg_element, f.n + 1);
    for (uint32_t i = 0; i < f.n; i++)
        out[i] = gpu_tree_rows(l, &f.accumulators[i], &f.rows[i], gpu_i32(l, row.blocks),
                               row.blocks);
    gpu_fold_define(l, &f, out);
}
