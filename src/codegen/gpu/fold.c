// SPDX-License-Identifier: Apache-2.0
// Folds in the order that docs/numerics.md fixes, by one thread or by a group of threads.
//
// A team of threads has a block: what thread t of it reads of each window of 64 elements goes to
// accumulators of its own, which fold by halves through shuffles.  One thread takes the 64
// accumulators one after the other, so that it needs no more than one and what waits of the tree.
#include "codegen/gpu/gpu.h"

#define WRITTEN_OUT 16        // elements of a fold that one thread writes out
#define WRITTEN_WORK 600      // operations of them when there are more, of one accumulator each
#define MANY_ACCUMULATORS 64  // of a thread, that leave registers
#define FEW_AT_ONCE 4         // for so many windows
#define WINDOWS_WORK 300      // operations of them
#define AT_ONCE 8             // windows that are read at once
#define ROUNDS_WRITTEN_OUT 32 // results of blocks, all together, that a team writes out

static const struct nest_statement *fold_of(const struct cg_lowering *l, nest_id id)
{
    return cg_statement(l, id);
}

static struct cg_accumulator *make_accumulators(struct cg_lowering *l,
                                                const struct nest_statement *s, bool own_axis,
                                                unsigned rows)
{
    struct cg_accumulator *all =
        arena_array(l->arena, struct cg_accumulator, s->n_combines + 1);
    for (uint32_t i = 0; i < s->n_combines; i++) {
        all[i] = (struct cg_accumulator){.op = s->combines[i].op,
                                         .dtype = s->combines[i].dtype,
                                         .count = 1,
                                         .own_axis = own_axis,
                                         .lanes = own_axis ? 1 : l->lanes,
                                         .rows = rows};
        cg_accumulator_make(l, &all[i]);
    }
    return all;
}

static unsigned lanes_of(const struct cg_accumulator *a)
{
    return a->own_axis ? a->rows : a->lanes;
}

// Sets all of an accumulator; position: of each lane, of its first element.
static void reset(struct cg_lowering *l, const struct cg_accumulator *a, LLVMValueRef position)
{
    struct cg_element none = cg_element_identity(l, a, lanes_of(a));
    if (cg_is_arg(a))
        none.v[2] = cg_splat(&l->m, position, lanes_of(a));
    cg_element_store(l, a, false, a->base, cg_int(l->module, 0), &none);
}

static struct cg_element take(struct cg_lowering *l, const struct cg_accumulator *a)
{
    return cg_element_load(l, a, false, a->base, cg_int(l->module, 0), lanes_of(a));
}

// The axes from a place in the sequence, in 32 bits when they do.
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
    set_axes(l, fold_of(l, fold), at);
}

// The element(s) at a place of the sequence to accumulator `slot`; in_block: their positions.
static void element(struct cg_lowering *l, const struct nest_statement *s,
                    const struct cg_accumulator *all, LLVMValueRef at, LLVMValueRef slot,
                    LLVMValueRef in_block)
{
    set_axes(l, s, at);
    if (l->gpu->terms.fold == s)
        gpu_terms_load(l, s, at);
    else
        cg_lower_block(l, s->body);
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

static void define(struct cg_lowering *l, const struct nest_statement *s,
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

// ---- One thread

// Accumulators a, a + step, a + 2 step, ... of a short fold, each of which has one element or none.
static void fold_short(struct cg_lowering *l, const struct nest_statement *s,
                       struct cg_accumulator *all, int64_t length, unsigned rows, unsigned a,
                       unsigned step, struct cg_element *out)
{
    if (step < rows) {
        struct cg_element *high = arena_array(l->arena, struct cg_element, s->n_combines + 1);
        fold_short(l, s, all, length, rows, a, 2 * step, out);
        fold_short(l, s, all, length, rows, a + step, 2 * step, high);
        for (uint32_t i = 0; i < s->n_combines; i++)
            out[i] = cg_element_combine(l, &all[i], &out[i], &high[i]);
        return;
    }
    LLVMValueRef place = gpu_i32(l, a), at = cg_int(l->module, a);
    for (uint32_t i = 0; i < s->n_combines; i++)
        reset(l, &all[i], place);
    if (a < length)
        element(l, s, all, at, cg_int(l->module, 0), place);
    for (uint32_t i = 0; i < s->n_combines; i++) {
        out[i] = take(l, &all[i]);
        cg_element_place(l, &out[i], cg_int(l->module, 0));
    }
}

// Elements first, first + rows, ... of the block that begins at `start`, so many at once while the
// first of them is below `last`.
static void leaf_elements(struct cg_lowering *l, const struct gpu_alone *p, LLVMValueRef start,
                          LLVMValueRef first, LLVMValueRef last, int64_t at_once)
{
    LLVMBuilderRef b = l->m.b;
    int64_t step = p->rows * at_once;
    struct cg_loop loop = cg_loop_open(l, first, last, cg_int(l->module, step));
    for (int64_t k = 0; k < step; k += p->rows) {
        LLVMValueRef at = LLVMBuildAdd(b, loop.index, cg_int(l->module, k), "");
        LLVMValueRef in_block =
            LLVMBuildTrunc(b, LLVMBuildSub(b, at, start, ""), l->module->i32, "");
        element(l, p->s, p->all, at, cg_int(l->module, 0), in_block);
    }
    cg_loop_close(l, &loop);
}

// Where a loop from `first` on by so many elements ends that does only whole steps before `last`.
static LLVMValueRef whole_steps(struct cg_lowering *l, LLVMValueRef first, LLVMValueRef last,
                                int64_t step)
{
    LLVMBuilderRef b = l->m.b;
    LLVMValueRef size = cg_int(l->module, step), n = LLVMBuildSub(b, last, first, "");
    n = LLVMBuildSub(b, n, LLVMBuildSRem(b, n, size, ""), "");
    LLVMValueRef none = cg_int(l->module, 0);
    n = LLVMBuildSelect(b, LLVMBuildICmp(b, LLVMIntSLT, n, none, ""), none, n, "");
    return LLVMBuildAdd(b, first, n, "");
}

// Elements first, first + rows, ... below `last` of the sequence, the first being number a of
// its block.
static void leaf(struct cg_lowering *l, const struct gpu_alone *p, LLVMValueRef start,
                 LLVMValueRef a, LLVMValueRef last, struct cg_element *out)
{
    LLVMBuilderRef b = l->m.b;
    LLVMValueRef place = LLVMBuildTrunc(b, a, l->module->i32, "");
    for (uint32_t i = 0; i < p->s->n_combines; i++)
        reset(l, &p->all[i], place);
    LLVMValueRef first = LLVMBuildAdd(b, start, a, "");
    bool are_many = p->length >= AT_ONCE * p->rows && gpu_is_short(l, p->s->body, AT_ONCE);
    if (are_many && p->length % p->block == 0) {
        leaf_elements(l, p, start, first, last, AT_ONCE);
    } else if (are_many) {
        LLVMValueRef rest = whole_steps(l, first, last, p->rows * AT_ONCE);
        leaf_elements(l, p, start, first, rest, AT_ONCE);
        leaf_elements(l, p, start, rest, last, 1);
    } else {
        leaf_elements(l, p, start, first, last, 1);
    }
    for (uint32_t i = 0; i < p->s->n_combines; i++) {
        out[i] = take(l, &p->all[i]);
        cg_element_place(l, &out[i], start);
    }
}

// Accumulators in the order of the leaves of their tree, bits reversed: so many, a power of two,
// from the given one on.
static void fold_leaves(struct cg_lowering *l, const struct gpu_alone *p, LLVMValueRef start,
                        LLVMValueRef first, int64_t count, struct cg_element *out)
{
    LLVMBuilderRef b = l->m.b;
    LLVMValueRef n = cg_int(l->module, p->length), last = n;
    if (p->blocks > 1) {
        last = LLVMBuildAdd(b, start, cg_int(l->module, p->block), "");
        last = LLVMBuildSelect(b, LLVMBuildICmp(b, LLVMIntSLT, last, n, ""), last, n, "");
    }
    struct gpu_tree tree = gpu_tree_make(l, p->s->n_combines, p->all, count);
    struct cg_loop loop =
        cg_loop_open(l, cg_int(l->module, 0), cg_int(l->module, count), cg_int(l->module, 1));
    LLVMValueRef a = LLVMBuildAdd(b, first, loop.index, "");
    a = cg_intrinsic(&l->m, "llvm.bitreverse", l->module->i64, 1, (LLVMValueRef[]){a});
    if (p->bits)
        a = LLVMBuildLShr(b, a, cg_int(l->module, 64 - p->bits), "");
    else
        a = cg_int(l->module, 0);
    leaf(l, p, start, a, last, out);
    gpu_tree_push(l, &tree, loop.index, out);
    cg_loop_close(l, &loop);
    gpu_tree_top(l, &tree, count, out);
}

static void fold_block_alone(struct cg_lowering *l, const struct gpu_alone *p,
                             LLVMValueRef start, struct cg_element *out)
{
    fold_leaves(l, p, start, cg_int(l->module, 0), p->rows, out);
}

// Units first .. first + count - 1, at most so many, as one of the tree.
void gpu_alone_units(struct cg_lowering *l, const struct gpu_alone *p, LLVMValueRef first,
                     LLVMValueRef count, int64_t most, struct cg_element *out)
{
    LLVMBuilderRef b = l->m.b;
    LLVMValueRef units = cg_int(l->module, p->units);
    struct gpu_tree tree = gpu_tree_make(l, p->s->n_combines, p->all, most);
    struct cg_loop loop = cg_loop_open(l, cg_int(l->module, 0), count, cg_int(l->module, 1));
    LLVMValueRef unit = LLVMBuildAdd(b, first, loop.index, "");
    LLVMValueRef block = LLVMBuildUDiv(b, unit, units, "");
    int64_t leaves = p->rows / p->units;
    LLVMValueRef leaf = LLVMBuildURem(b, unit, units, "");
    leaf = LLVMBuildMul(b, leaf, cg_int(l->module, leaves), "");
    fold_leaves(l, p, LLVMBuildMul(b, block, cg_int(l->module, p->block), ""), leaf, leaves,
                out);
    gpu_tree_push(l, &tree, loop.index, out);
    cg_loop_close(l, &loop);
    if (LLVMIsConstant(count))
        gpu_tree_top(l, &tree, LLVMConstIntGetSExtValue(count), out);
    else
        gpu_tree_any(l, &tree, count, out);
}

struct gpu_alone gpu_alone_make(struct cg_lowering *l, nest_id id, int64_t units)
{
    const struct nest_statement *s = fold_of(l, id);
    struct gpu_alone p = {.s = s, .length = cg_extent(l, s), .rows = 1, .units = units};
    p.block = fold_block(p.length);
    p.blocks = p.length > p.block ? (p.length + p.block - 1) / p.block : 1;
    for (; p.rows < FOLD_LANES && p.rows < p.length; p.rows *= 2)
        p.bits++;
    p.all = make_accumulators(l, s, false, 1);
    return p;
}

bool gpu_accumulates(const struct cg_lowering *l, nest_id fold)
{
    for (uint32_t i = 0; i < l->nest->statements.count; i++)
        if (l->nest->statements.at[i].kind == NEST_PUT && l->nest->statements.at[i].op &&
            l->nest->statements.at[i].fold == fold)
            return true;
    return false;
}

// Whether a fold inside is a loop, which would be as many loops.
static bool has_loop(const struct cg_lowering *l, uint32_t block)
{
    const struct nest_block *b = &l->nest->blocks.at[block];
    for (uint32_t i = 0; i < b->statements.count; i++)
        if (cg_statement(l, b->statements.at[i])->kind == NEST_FOLD &&
            !gpu_fold_is_written_out(l, b->statements.at[i]))
            return true;
    return false;
}

bool gpu_fold_is_written_out(const struct cg_lowering *l, nest_id id)
{
    const struct nest_statement *s = fold_of(l, id);
    int64_t length = cg_extent(l, s);
    bool is_short =
        length <= WRITTEN_OUT ||
        (length <= FOLD_LANES && (double)length * gpu_work(l, s->body) <= WRITTEN_WORK);
    return is_short && !cg_has_time(l, s->body) && !gpu_accumulates(l, id) &&
           !has_loop(l, s->body);
}

void gpu_fold_alone(struct cg_lowering *l, nest_id id)
{
    const struct nest_statement *s = fold_of(l, id);
    if (gpu_accumulates(l, id)) {
        cg_lower_fold(l, id);
        return;
    }
    struct gpu_alone p = gpu_alone_make(l, id, 1);
    struct cg_element *out = arena_array(l->arena, struct cg_element, s->n_combines + 1);
    if (gpu_fold_is_written_out(l, id)) {
        fold_short(l, s, p.all, p.length, p.rows, 0, 1, out);
    } else if (p.blocks == 1) {
        fold_block_alone(l, &p, cg_int(l->module, 0), out);
    } else {
        gpu_alone_units(l, &p, cg_int(l->module, 0), cg_int(l->module, p.blocks), p.blocks,
                        out);
    }
    define(l, s, p.all, out);
}

// ---- A group of threads

void gpu_alone_define(struct cg_lowering *l, const struct gpu_alone *p,
                      const struct cg_element *results)
{
    define(l, p->s, p->all, results);
}

struct gpu_fold gpu_fold_make(struct cg_lowering *l, nest_id id, const struct gpu_row *row,
                              int64_t rows)
{
    const struct nest_statement *s = fold_of(l, id);
    struct gpu_fold f = {.statement = id, .row = *row, .n = s->n_combines};
    f.accumulators = make_accumulators(l, s, true, row->parts * row->lanes);
    f.rows = arena_array(l->arena, struct cg_results, f.n + 1);
    for (uint32_t i = 0; i < f.n; i++)
        f.rows[i] = gpu_shared_results(l, &f.accumulators[i], (uint64_t)rows);
    return f;
}

// What a thread has of the window that begins at `at` of a block that begins at `start`; what lies
// behind the end is left out where that may be, behind the first so many elements.
static void window(struct cg_lowering *l, const struct gpu_fold *f, const struct gpu_member *m,
                   LLVMValueRef start, LLVMValueRef at, int64_t there)
{
    LLVMBuilderRef b = l->m.b;
    const struct gpu_row *r = &f->row;
    const struct nest_statement *s = fold_of(l, f->statement);
    for (unsigned q = 0; q < r->parts; q++) {
        LLVMValueRef in_block = LLVMBuildAdd(b, at, m->offset, "");
        in_block = LLVMBuildAdd(b, in_block, gpu_i32(l, q * r->team * r->lanes), "");
        LLVMValueRef place = LLVMBuildAdd(b, start, gpu_wide(l, in_block), "");
        struct cg_branch branch = {0};
        bool may_end = there < (int64_t)(q + 1) * r->team * r->lanes;
        if (may_end)
            branch = cg_if_open(
                l, LLVMBuildICmp(b, LLVMIntSLT, place, cg_int(l->module, r->length), ""));
        LLVMValueRef positions =
            LLVMBuildAdd(b, cg_splat(&l->m, in_block, r->lanes),
                         cg_sequence(l->module, l->module->i32, r->lanes, 0, 1), "");
        l->vector_axis = s->axes[s->n_axes - 1];
        l->vector_loop = f->statement;
        l->lanes = r->lanes;
        if (r->lanes == 1)
            l->vector_axis = NEST_NONE;
        element(l, s, f->accumulators, place, cg_int(l->module, q * r->lanes), positions);
        l->vector_axis = NEST_NONE;
        l->lanes = 1;
        if (may_end)
            cg_if_close(l, &branch);
    }
}

// So many of n windows are read at once.
static int64_t windows_at_once(const struct cg_lowering *l, nest_id fold,
                               const struct gpu_row *r, int64_t n)
{
    const struct nest_statement *s = fold_of(l, fold);
    int64_t at_once = 1, accumulators = (int64_t)s->n_combines * r->parts * r->lanes;
    int64_t most = accumulators > MANY_ACCUMULATORS ? FEW_AT_ONCE : 16;
    double work = l->gpu->terms.fold == s ? 0 : gpu_work(l, s->body);
    while (2 * at_once <= n && at_once < most &&
           (!work || gpu_is_short(l, s->body, 2 * at_once * r->parts)) &&
           (double)(2 * at_once * r->parts) * work <= WINDOWS_WORK)
        at_once *= 2;
    return at_once;
}

bool gpu_fold_is_straight(const struct cg_lowering *l, nest_id fold, const struct gpu_row *r)
{
    int64_t n = (r->blocks == 1 ? r->length : r->block) / r->window;
    return windows_at_once(l, fold, r, n) == n &&
           r->blocks / r->teams * fold_of(l, fold)->n_combines <= ROUNDS_WRITTEN_OUT;
}

// All windows of a block, the last one or one of the others.
static void windows(struct cg_lowering *l, const struct gpu_fold *f, const struct gpu_member *m,
                    LLVMValueRef start, bool is_last)
{
    const struct gpu_row *r = &f->row;
    int64_t size = is_last ? r->length - (r->blocks - 1) * r->block : r->block;
    int64_t n = size / r->window, at_once = windows_at_once(l, f->statement, r, n);
    int64_t all = n / at_once * at_once;
    struct cg_loop loop = cg_loop_open(l, cg_int(l->module, 0), cg_int(l->module, all),
                                       cg_int(l->module, at_once));
    LLVMValueRef number = LLVMBuildTrunc(l->m.b, loop.index, l->module->i32, "");
    LLVMValueRef first = LLVMBuildMul(l->m.b, number, gpu_i32(l, r->window), "");
    for (int64_t k = 0; k < at_once; k++, l->gpu->vector++)
        window(l, f, m, start, LLVMBuildAdd(l->m.b, first, gpu_i32(l, k * r->window), ""),
               r->window);
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

// Whether the result is the same in any order.
static bool is_free_of_order(const struct cg_accumulator *a)
{
    return cg_is_arg(a) || a->op == IR_reduce_max || a->op == IR_reduce_min;
}

// The accumulators of a team fold to one, in its first thread.
static struct cg_element bring_together(struct cg_lowering *l, const struct gpu_fold *f,
                                        const struct cg_accumulator *a)
{
    const struct gpu_row *r = &f->row;
    struct cg_element t = take(l, a);
    unsigned moved = is_free_of_order(a) ? 1 : r->lanes; // lanes that go through shuffles
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
    const struct gpu_row *r = &f->row;
    LLVMValueRef places[64];
    for (unsigned q = 0; q < r->parts; q++)
        for (unsigned k = 0; k < r->lanes; k++)
            places[q * r->lanes + k] =
                LLVMBuildAdd(l->m.b, m->offset, gpu_i32(l, q * r->team * r->lanes + k), "");
    unsigned n = r->parts * r->lanes;
    LLVMValueRef all = places[0];
    if (n > 1) {
        all = LLVMGetPoison(LLVMVectorType(l->module->i32, n));
        for (unsigned i = 0; i < n; i++)
            all = LLVMBuildInsertElement(l->m.b, all, places[i], gpu_i32(l, i), "");
    }
    for (uint32_t i = 0; i < f->n; i++)
        reset(l, &f->accumulators[i], all);
}

// The blocks of a round, one of each team: `row` (an i32) is the team's among `count` from `first` on.
static void fold_round(struct cg_lowering *l, const struct gpu_fold *f,
                       const struct gpu_member *m, LLVMValueRef first, LLVMValueRef row,
                       int64_t count, bool may_miss_row)
{
    LLVMBuilderRef b = l->m.b;
    const struct gpu_row *r = &f->row;
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
    LLVMValueRef leads = LLVMBuildICmp(b, LLVMIntEQ, m->place, gpu_i32(l, 0), "");
    if (may_miss)
        leads = LLVMBuildAnd(b, leads, is_there, "");
    struct cg_element *all = arena_array(l->arena, struct cg_element, f->n + 1);
    for (uint32_t i = 0; i < f->n; i++) {
        all[i] = bring_together(l, f, &f->accumulators[i]);
        cg_element_place(l, &all[i], start);
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
    const struct gpu_row *r = &f->row;
    struct gpu_member m = gpu_member_of(l, r);
    int64_t rounds = (count + r->teams - 1) / r->teams;
    bool ends_inside = rounds * r->teams > count;
    l->gpu->is_alone = true;
    l->gpu->vector = 0;
    if (rounds * f->n <= ROUNDS_WRITTEN_OUT) {
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
    l->gpu->is_alone = false;
}

void gpu_fold_define(struct cg_lowering *l, const struct gpu_fold *f,
                     const struct cg_element *results)
{
    define(l, fold_of(l, f->statement), f->accumulators, results);
}

// Plain statements, and short folds of such, which each thread does by itself.
static bool is_leaf(const struct cg_lowering *l, const struct nest_statement *s)
{
    const struct nest_block *b = &l->nest->blocks.at[s->body];
    for (uint32_t i = 0; i < b->statements.count; i++) {
        nest_id id = b->statements.at[i];
        const struct nest_statement *t = cg_statement(l, id);
        bool is_short = t->kind == NEST_FOLD && cg_extent(l, t) <= FOLD_LANES &&
                        !gpu_accumulates(l, id) && is_leaf(l, t);
        if (t->kind > NEST_PUT && !is_short)
            return false;
    }
    return true;
}

bool gpu_is_team_fold(const struct cg_lowering *l, nest_id id)
{
    return fold_of(l, id)->kind == NEST_FOLD && is_leaf(l, fold_of(l, id)) &&
           !gpu_accumulates(l, id) && cg_extent(l, fold_of(l, id)) > 0;
}

void gpu_fold_together(struct cg_lowering *l, nest_id id)
{
    if (!gpu_is_team_fold(l, id)) {
        l->gpu->is_alone = l->gpu->is_same = true;
        gpu_fold_alone(l, id);
        l->gpu->is_alone = l->gpu->is_same = false;
        return;
    }
    const struct gpu_row *common = &l->gpu->row;
    const struct nest_statement *s = fold_of(l, id);
    struct gpu_row row = gpu_row_make(l, s, l->gpu->group);
    if (common->length == row.length &&
        l->nest->axes.at[s->axes[s->n_axes - 1]].extent % common->lanes == 0)
        row = *common;
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
