// SPDX-License-Identifier: Apache-2.0
// Long running folds by many warps.
//
// Each warp has a chunk in a row, whose length the extent alone decides.  A first function folds
// every chunk, a second makes of these results what comes before each chunk, and a third goes over
// the chunks again and stores.  A warp goes by windows: a thread has neighbouring elements, their
// running values go through shuffles, and the window before gives what it starts from.  The order
// is the same in every run; short scans of floats are done one element after the other.
//
// Where neighbouring points lie side by side in memory, a thread has a chunk, and those beside it the same chunk of the
// points beside its own: elements go one after the other, and what comes before the chunk is added to each.
#include "codegen/gpu/scan.h"
#include "codegen/access.h"
#include "codegen/accumulate.h"
#include "codegen/emit.h"
#include "codegen/gpu/device.h"
#include "codegen/gpu/entry.h"
#include "codegen/gpu/gpu.h"
#include "codegen/gpu/scan_once.h"
#include "codegen/kernel.h"
#include "codegen/loop.h"
#include "codegen/lower.h"
#include "codegen/memory.h"
#include "codegen/scalar.h"
#include "codegen/types.h"
#include "map/gpu_lanes.h"
#include "map/gpu_scratch.h"
#include "map/gpu_shared.h"

#define WINDOWS 4 // that are read together
#define BLOCK GPU_BLOCK
#define OFFSET_LANES 4 // results of chunks that a thread has side by side
#define COLUMN_WINDOWS                                                                         \
    8 // elements that such a thread reads together, where they are little work

static LLVMValueRef is_identity(struct cg_lowering *l, const struct scan *p, struct cg_value x)
{
    struct cg_value one =
        cg_identity(l->module, p->combine->op, p->combine->dtype, cg_lanes_of(x.re));
    LLVMValueRef is = LLVMBuildFCmp(l->m.b, LLVMRealOEQ, x.re, one.re, "");
    return x.im ? LLVMBuildAnd(l->m.b, is, LLVMBuildFCmp(l->m.b, LLVMRealOEQ, x.im, one.im, ""),
                               "")
                : is;
}

// An identity that is not neutral is passed over: no logaddexp gives -0, and no complex number times
// infinity is the infinity.
struct cg_value gpu_scan_combine(struct cg_lowering *l, const struct scan *p, struct cg_value x,
                                 struct cg_value y)
{
    struct cg_value both = cg_combine(&l->m, p->combine->op, p->combine->dtype, x, y);
    if (cg_has_neutral(p->combine->op, p->combine->dtype))
        return both;
    both = cg_select(&l->m, is_identity(l, p, y), x, both);
    return cg_select(&l->m, is_identity(l, p, x), y, both);
}

struct cg_value gpu_scan_neutral(struct cg_lowering *l, const struct scan *p, unsigned lanes)
{
    return cg_neutral(&l->m, p->combine->op, p->combine->dtype, lanes);
}

static struct cg_value value_of_lane(struct cg_lowering *l, struct cg_value v, unsigned i)
{
    return (struct cg_value){cg_extract(&l->m, v.re, i, 1),
                             v.im ? cg_extract(&l->m, v.im, i, 1) : NULL};
}

static void set_lane(struct cg_lowering *l, struct cg_value *v, unsigned i, struct cg_value x)
{
    v->re = LLVMBuildInsertElement(l->m.b, v->re, x.re, gpu_i32(l, i), "");
    v->im = v->im ? LLVMBuildInsertElement(l->m.b, v->im, x.im, gpu_i32(l, i), "") : NULL;
}

struct cg_value gpu_scan_shuffled(struct cg_lowering *l, struct cg_value v, bool is_up,
                                  unsigned by)
{
    struct cg_element e = {{v.re, v.im, NULL}};
    e = is_up ? gpu_shuffle_up(l, &e, by) : gpu_shuffle_from(l, &e, gpu_i32(l, by));
    return (struct cg_value){e.v[0], e.v[1]};
}

static LLVMValueRef partial_at(struct cg_lowering *l, const struct scan *p, int part,
                               LLVMValueRef i)
{
    return cg_at(l, cg_memory_type(l->module, dtype_real(p->combine->dtype)), p->partial[part],
                 i);
}

static struct cg_value load_partial(struct cg_lowering *l, const struct scan *p, LLVMValueRef i,
                                    unsigned lanes)
{
    jot_dtype d = dtype_real(p->combine->dtype);
    LLVMTypeRef type = cg_with_lanes(cg_memory_type(l->module, d), lanes);
    LLVMValueRef v[2] = {NULL, NULL};
    for (int k = 0; k <= dtype_is_complex(p->combine->dtype); k++) {
        v[k] = LLVMBuildLoad2(l->m.b, type, partial_at(l, p, k, i), "");
        LLVMSetAlignment(v[k], lanes * dtype_get(d)->bytes);
        v[k] = cg_from_memory(l, v[k], d);
    }
    return (struct cg_value){v[0], v[1]};
}

static void store_partial(struct cg_lowering *l, const struct scan *p, LLVMValueRef i,
                          struct cg_value v)
{
    jot_dtype d = dtype_real(p->combine->dtype);
    LLVMValueRef part[] = {v.re, v.im};
    for (int k = 0; k < 2 && part[k]; k++)
        LLVMSetAlignment(
            LLVMBuildStore(l->m.b, cg_to_memory(l, part[k], d), partial_at(l, p, k, i)),
            cg_lanes_of(part[k]) * dtype_get(d)->bytes);
}

// ---- A window

// Before the yield, or what is left to do when the running values are there: puts are for those who
// have an element, once.
static void lower_body(struct cg_lowering *l, const struct scan *p, struct window *w,
                       bool is_before)
{
    const struct nest_block *b = &l->nest->blocks.at[p->s->body];
    struct cg_value *outside = l->values;
    l->values = w->values;
    l->axes[p->s->axes[0]] = w->at;
    l->vector.axis = p->lanes > 1 ? p->s->axes[0] : NEST_NONE;
    l->vector.loop = nest_id_of(l->nest, p->s);
    l->vector.lanes = p->lanes;
    for (uint32_t i = 0; i < (is_before ? p->yield_at : b->statements.count); i++) {
        bool is_put = cg_statement(l, b->statements.at[i])->kind == NEST_PUT;
        if (is_before ? !is_put : is_put || i > p->yield_at)
            cg_lower_statement(l, b->statements.at[i]);
    }
    l->vector.axis = NEST_NONE;
    l->vector.lanes = 1;
    l->values = outside;
}

// Reads the thread's elements from position `first` of the scan on; the neutral one behind the end.
void gpu_scan_read(struct cg_lowering *l, const struct scan *p, struct window *w,
                   LLVMValueRef first, bool may_end)
{
    LLVMBuilderRef b = l->m.b;
    int64_t lanes = p->lanes;
    LLVMValueRef offset = LLVMBuildMul(b, gpu_wide(l, p->lane), cg_int(l->module, lanes), "");
    LLVMValueRef position = p->own ? first : LLVMBuildAdd(b, first, offset, "");
    LLVMValueRef last = cg_int(l->module, p->length - lanes);
    w->is_inside = may_end ? LLVMBuildICmp(b, LLVMIntSLE, position, last, "") : NULL;
    if (may_end)
        position = LLVMBuildSelect(b, w->is_inside, position, p->own ? p->own : last, "");
    if (p->pass == PASS_OFFSETS) {
        w->at = position;
        w->running = load_partial(l, p, position, p->lanes);
    } else {
        w->at = p->s->reverse ? LLVMBuildSub(b, last, position, "") : position;
        w->values = arena_copy(l->arena, l->values, l->nest->values.count * sizeof *l->values);
        lower_body(l, p, w, true);
        w->running = w->values[p->combine->value[0]];
        l->vector.lanes = p->lanes;
        w->running = cg_wide_value(l, w->running);
        l->vector.lanes = 1;
    }
    if (may_end)
        w->running =
            cg_select(&l->m, w->is_inside, w->running, gpu_scan_neutral(l, p, p->lanes));
}

// The running values of a window that comes after `carry`; the new carry.
struct cg_value gpu_scan_run(struct cg_lowering *l, const struct scan *p, struct window *w,
                             struct cg_value carry)
{
    LLVMBuilderRef b = l->m.b;
    struct cg_value at[16];
    for (unsigned i = 0; i < p->lanes; i++) {
        unsigned k = p->s->reverse && p->pass != PASS_OFFSETS ? p->lanes - 1 - i : i;
        at[i] = p->lanes > 1 ? value_of_lane(l, w->running, k) : w->running;
        if (i)
            at[i] = gpu_scan_combine(l, p, at[i - 1], at[i]);
    }
    struct cg_value all = at[p->lanes - 1];
    for (unsigned distance = 1; distance < GPU_WARP; distance *= 2) {
        LLVMValueRef has = LLVMBuildICmp(b, LLVMIntUGE, p->lane, gpu_i32(l, distance), "");
        all = cg_select(&l->m, has,
                        gpu_scan_combine(l, p, gpu_scan_shuffled(l, all, true, distance), all),
                        all);
    }
    LLVMValueRef is_first = LLVMBuildICmp(b, LLVMIntEQ, p->lane, gpu_i32(l, 0), "");
    struct cg_value before = gpu_scan_combine(l, p, carry, gpu_scan_shuffled(l, all, true, 1));
    before = cg_select(&l->m, is_first, carry, before);
    if (p->pass == PASS_FOLD)
        return gpu_scan_combine(l, p, carry, gpu_scan_shuffled(l, all, false, GPU_WARP - 1));
    bool is_offset = p->pass == PASS_OFFSETS; // what is before an element, without it
    for (unsigned i = 0; i < p->lanes; i++) {
        struct cg_value x =
            is_offset && !i ? before : gpu_scan_combine(l, p, before, at[i - is_offset]);
        if (p->lanes > 1)
            set_lane(l, &w->running, p->s->reverse && !is_offset ? p->lanes - 1 - i : i, x);
        else
            w->running = x;
    }
    return gpu_scan_combine(l, p, carry, gpu_scan_shuffled(l, all, false, GPU_WARP - 1));
}

void gpu_scan_write(struct cg_lowering *l, const struct scan *p, struct window *w)
{
    struct cg_branch inside = {0};
    if (w->is_inside)
        inside = cg_if_open(l, w->is_inside);
    if (p->pass == PASS_OFFSETS) {
        store_partial(l, p, w->at, w->running);
    } else {
        w->values[p->yield->result] = w->running;
        lower_body(l, p, w, false);
    }
    if (w->is_inside)
        cg_if_close(l, &inside);
}

static void store_slot(struct cg_lowering *l, const struct cg_value *slot, struct cg_value v)
{
    LLVMBuildStore(l->m.b, v.re, slot->re);
    if (v.im)
        LLVMBuildStore(l->m.b, v.im, slot->im);
}

static struct cg_value open_slot(struct cg_lowering *l, struct cg_value v)
{
    struct cg_value slot = {cg_alloca(l, LLVMTypeOf(v.re), 1), NULL};
    slot.im = v.im ? cg_alloca(l, LLVMTypeOf(v.im), 1) : NULL;
    store_slot(l, &slot, v);
    return slot;
}

static struct cg_value load_slot(struct cg_lowering *l, const struct cg_value *slot,
                                 struct cg_value like)
{
    LLVMTypeRef type = LLVMTypeOf(like.re);
    return (struct cg_value){LLVMBuildLoad2(l->m.b, type, slot->re, ""),
                             like.im ? LLVMBuildLoad2(l->m.b, type, slot->im, "") : NULL};
}

// From position `first` on so many elements, by the warp; their fold after `carry`.
static struct cg_value lower_chunk(struct cg_lowering *l, const struct scan *p,
                                   LLVMValueRef first, int64_t count, struct cg_value carry)
{
    LLVMBuilderRef b = l->m.b;
    int64_t window = (int64_t)p->lanes * GPU_WARP;
    int64_t at_once = count % (window * WINDOWS) == 0 ? WINDOWS : 1;
    struct cg_value slot = open_slot(l, carry);
    struct cg_loop loop = cg_loop_open(l, cg_int(l->module, 0), cg_int(l->module, count),
                                       cg_int(l->module, window * at_once));
    LLVMValueRef start = LLVMBuildAdd(b, first, loop.index, "");
    struct window w[WINDOWS];
    // Threads behind the end read what another one writes, which may be in the same memory.
    bool may_end = p->length % count != 0 || count % window != 0;
    bool waits = may_end && p->pass != PASS_FOLD;
    if (waits)
        gpu_sync_warp(l);
    for (int64_t k = 0; k < at_once; k++)
        gpu_scan_read(l, p, &w[k], LLVMBuildAdd(b, start, cg_int(l->module, k * window), ""),
                      may_end);
    if (waits)
        gpu_sync_warp(l);
    carry = load_slot(l, &slot, carry);
    for (int64_t k = 0; k < at_once; k++) {
        carry = gpu_scan_run(l, p, &w[k], carry);
        if (p->pass != PASS_FOLD)
            gpu_scan_write(l, p, &w[k]);
    }
    store_slot(l, &slot, carry);
    cg_loop_close(l, &loop);
    return load_slot(l, &slot, carry);
}

// A chunk that the thread has: the fold of its elements, which are stored after `before`.
static struct cg_value lower_own_chunk(struct cg_lowering *l, const struct scan *p,
                                       LLVMValueRef first, struct cg_value before)
{
    struct cg_value running = gpu_scan_neutral(l, p, 1);
    struct cg_value slot = open_slot(l, running);
    int64_t at_once =
        map_is_short(l->nest, p->s->body, COLUMN_WINDOWS) ? COLUMN_WINDOWS : WINDOWS;
    struct cg_loop loop = cg_loop_open(l, cg_int(l->module, 0), cg_int(l->module, p->chunk),
                                       cg_int(l->module, at_once));
    LLVMValueRef start = LLVMBuildAdd(l->m.b, first, loop.index, "");
    struct window w[COLUMN_WINDOWS];
    for (int64_t k = 0; k < at_once; k++)
        gpu_scan_read(l, p, &w[k], LLVMBuildAdd(l->m.b, start, cg_int(l->module, k), ""),
                      p->length % p->chunk != 0);
    running = load_slot(l, &slot, running);
    for (int64_t k = 0; k < at_once; k++) {
        running = gpu_scan_combine(l, p, running, w[k].running);
        if (p->pass == PASS_FOLD)
            continue;
        w[k].running = gpu_scan_combine(l, p, before, running);
        gpu_scan_write(l, p, &w[k]);
    }
    store_slot(l, &slot, running);
    cg_loop_close(l, &loop);
    return load_slot(l, &slot, running);
}

// ---- The functions

// The point as axes, and what it knows.
static void set_point(struct cg_lowering *l, const struct scan *p, LLVMValueRef point)
{
    for (uint32_t k = p->par ? p->par->n_axes : 0; k-- > 0;) {
        nest_id axis = p->par->axes[k];
        LLVMValueRef n = cg_int(l->module, l->nest->axes.at[axis].extent);
        l->axes[axis] = k ? LLVMBuildURem(l->m.b, point, n, "") : point;
        point = k ? LLVMBuildUDiv(l->m.b, point, n, "") : point;
    }
    const struct nest_block *body = p->par ? &l->nest->blocks.at[p->par->body] : NULL;
    for (uint32_t i = 0; body && i + 1 < body->statements.count; i++)
        cg_lower_statement(l, body->statements.at[i]);
}

// So many chunks of each point.
static void lower_chunks(struct cg_lowering *l, const struct scan *p, int64_t of_point,
                         struct cg_kernel_step *step)
{
    LLVMBuilderRef b = l->m.b;
    int64_t chunks = p->points * of_point;
    int64_t warps = l->gpu->block / GPU_WARP;
    struct cg_loop loop = gpu_chunks_open(l, (chunks + warps - 1) / warps);
    LLVMValueRef warp = LLVMBuildUDiv(b, l->gpu->thread, gpu_i32(l, GPU_WARP), "");
    LLVMValueRef chunk = LLVMBuildMul(b, loop.index, cg_int(l->module, warps), "");
    chunk = LLVMBuildAdd(b, chunk, gpu_wide(l, warp), "");
    struct cg_branch inside = {0};
    if (chunks % warps)
        inside =
            cg_if_open(l, LLVMBuildICmp(b, LLVMIntSLT, chunk, cg_int(l->module, chunks), ""));
    LLVMValueRef number = chunk; // in the point
    if (p->par) {
        LLVMValueRef n = cg_int(l->module, of_point);
        set_point(l, p, LLVMBuildUDiv(b, chunk, n, ""));
        number = LLVMBuildURem(b, chunk, n, "");
    }
    LLVMValueRef first = LLVMBuildMul(b, number, cg_int(l->module, p->chunk), "");
    struct cg_value carry =
        p->pass == PASS_STORE ? load_partial(l, p, chunk, 1) : gpu_scan_neutral(l, p, 1);
    carry = lower_chunk(l, p, first, p->chunk, carry);
    if (p->pass == PASS_FOLD) {
        LLVMValueRef leads = LLVMBuildICmp(b, LLVMIntEQ, p->lane, gpu_i32(l, 0), "");
        struct cg_branch one = cg_if_open(l, leads);
        store_partial(l, p, chunk, carry);
        cg_if_close(l, &one);
    }
    if (chunks % warps)
        cg_if_close(l, &inside);
    cg_loop_close(l, &loop);
    step->total = chunks > step->total ? chunks : step->total;
    step->grain = warps;
    step->exact_grid = true;
}

// So many chunks of each point, of which blocks of threads have some, of points side by side.
static void lower_columns(struct cg_lowering *l, struct scan *p, int64_t of_point,
                          struct cg_kernel_step *step)
{
    LLVMBuilderRef b = l->m.b;
    int64_t columns = p->columns, rows = BLOCK / columns;
    int64_t across = (p->points + columns - 1) / columns, down = (of_point + rows - 1) / rows;
    struct cg_loop loop = gpu_chunks_open(l, across * down);
    LLVMValueRef thread = gpu_wide(l, l->gpu->thread), wide = cg_int(l->module, across);
    LLVMValueRef point =
        LLVMBuildMul(b, LLVMBuildURem(b, loop.index, wide, ""), cg_int(l->module, columns), "");
    LLVMValueRef chunk =
        LLVMBuildMul(b, LLVMBuildUDiv(b, loop.index, wide, ""), cg_int(l->module, rows), "");
    point =
        LLVMBuildAdd(b, point, LLVMBuildURem(b, thread, cg_int(l->module, columns), ""), "");
    chunk =
        LLVMBuildAdd(b, chunk, LLVMBuildUDiv(b, thread, cg_int(l->module, columns), ""), "");
    LLVMValueRef is_there =
        LLVMBuildAnd(b, LLVMBuildICmp(b, LLVMIntSLT, point, cg_int(l->module, p->points), ""),
                     LLVMBuildICmp(b, LLVMIntSLT, chunk, cg_int(l->module, of_point), ""), "");
    struct cg_branch inside = cg_if_open(l, is_there);
    set_point(l, p, point);
    LLVMValueRef at = LLVMBuildMul(b, point, cg_int(l->module, of_point), "");
    at = LLVMBuildAdd(b, at, chunk, "");
    p->own = LLVMBuildMul(b, chunk, cg_int(l->module, p->chunk), "");
    bool stores = p->pass == PASS_STORE;
    struct cg_value before = stores ? load_partial(l, p, at, 1) : gpu_scan_neutral(l, p, 1);
    struct cg_value all = lower_own_chunk(l, p, p->own, before);
    if (!stores)
        store_partial(l, p, at, all);
    cg_if_close(l, &inside);
    cg_loop_close(l, &loop);
    step->total = across * down;
    step->grain = 1;
    step->exact_grid = true;
}

static int64_t chunk_of(const struct scan *p)
{
    int64_t round = (int64_t)p->lanes * GPU_WARP * WINDOWS;
    if (p->pass == PASS_WHOLE)
        return (p->length + round - 1) / round * round;
    return map_scan_chunk(p->length, p->points, p->columns);
}

struct scan gpu_scan_make(struct cg_lowering *l, nest_id id, enum pass pass)
{
    const struct nest_statement *s = cg_statement(l, id);
    const struct nest_block *body = &l->nest->blocks.at[s->body];
    struct scan p = {.s = s,
                     .points = 1,
                     .length = cg_extent(l, s),
                     .yield_at = map_scan_yield(l->nest, s),
                     .pass = pass};
    p.yield = cg_statement(l, body->statements.at[p.yield_at]);
    p.combine = &p.yield->combines[0];
    p.lanes = map_vector(l->nest, s);
    p.chunk = chunk_of(&p);
    p.lane = LLVMBuildURem(l->m.b, l->gpu->thread, gpu_i32(l, GPU_WARP), "");
    return p;
}

// What comes before the chunks of each point, by a warp.
static void lower_offsets(struct cg_lowering *l, struct scan *p, int64_t chunks,
                          struct cg_kernel_step *step)
{
    p->length = chunks;
    p->lanes = chunks % OFFSET_LANES ? 1 : OFFSET_LANES;
    int64_t window = (int64_t)p->lanes * GPU_WARP * WINDOWS;
    struct cg_loop own = {0};
    if (p->par) {
        own = gpu_own_chunk_open(l, p->points);
        LLVMValueRef at = LLVMBuildMul(l->m.b, own.index, cg_int(l->module, chunks), "");
        for (int k = 0; k < 2; k++)
            p->partial[k] = partial_at(l, p, k, at);
    }
    lower_chunk(l, p, cg_int(l->module, 0), (chunks + window - 1) / window * window,
                gpu_scan_neutral(l, p, 1));
    if (p->par) {
        cg_loop_close(l, &own);
        step->total = p->points;
        step->grain = 1;
        step->exact_grid = true;
    }
}

// The scan of the statement, or that of each of its points.
static struct scan scan_in(struct cg_lowering *l, nest_id id, enum pass pass)
{
    const struct nest_statement *s = cg_statement(l, id);
    bool is_par = s->kind == NEST_PAR;
    struct scan p =
        gpu_scan_make(l, is_par ? vec_last(&l->nest->blocks.at[s->body].statements) : id, pass);
    p.par = is_par ? s : NULL;
    p.points = is_par ? cg_extent(l, s) : 1;
    p.columns = l->nest->threads[NEST_COLUMNS];
    p.chunk = chunk_of(&p);
    return p;
}

// One pass over a scan, whose results of chunks are in the partial memory at `memory`; where what
// comes behind them begins.
static uint64_t lower_pass(struct cg_lowering *l, nest_id id, enum pass pass, uint64_t memory,
                           struct cg_kernel_step *step)
{
    struct scan p = scan_in(l, id, pass);
    int64_t chunks = (p.length + p.chunk - 1) / p.chunk;
    uint64_t bytes = (uint64_t)(p.points * chunks);
    bytes *= dtype_get(dtype_real(p.combine->dtype))->bytes;
    bytes = (bytes + 63) / 64 * 64;
    for (int k = 0; k < 2; k++)
        p.partial[k] = cg_at(l, l->module->i8, gpu_scratch(l),
                             cg_int(l->module, (int64_t)(memory + (uint64_t)k * bytes)));
    if (pass == PASS_OFFSETS)
        lower_offsets(l, &p, chunks, step);
    else if (p.columns)
        lower_columns(l, &p, chunks, step);
    else
        lower_chunks(l, &p, chunks, step);
    return memory + (dtype_is_complex(p.combine->dtype) ? 2 : 1) * bytes;
}

void gpu_scan_lower(struct cg_lowering *l, struct cg_kernel *out)
{
    if (map_scan_is_once(l->nest, l->gpu->nest.is_phase)) {
        gpu_scan_once(l, out);
        return;
    }
    if (map_scans_are_whole(l->nest)) {
        l->gpu->block = BLOCK;
        l->gpu->group = 1;
        struct cg_kernel_step *step = gpu_function_open(l, out, "", 0);
        gpu_lower_list(l, 0, l->nest->blocks.at[0].statements.count - 1);
        struct scan p = scan_in(l, vec_last(&l->nest->blocks.at[0].statements), PASS_WHOLE);
        lower_chunks(l, &p, 1, step);
        gpu_function_close(l, step);
        return;
    }
    static const char *const suffixes[] = {"_fold", "_offsets", ""};
    const struct nest_block *body = &l->nest->blocks.at[0];
    for (int pass = PASS_FOLD; pass <= PASS_STORE; pass++) {
        l->gpu->block = pass == PASS_OFFSETS ? GPU_WARP : BLOCK;
        l->gpu->group = 1;
        l->gpu->columns = 0;
        struct cg_kernel_step *step = gpu_function_open(l, out, suffixes[pass], 0);
        uint64_t memory = 0;
        for (uint32_t i = 0; i < body->statements.count; i++) {
            nest_id id = body->statements.at[i];
            enum nest_kind kind = cg_statement(l, id)->kind;
            l->gpu->before.is_here = kind != NEST_SCAN && kind != NEST_PAR;
            if (!l->gpu->before.is_here)
                memory = lower_pass(l, id, (enum pass)pass, memory, step);
            else
                cg_lower_statement(l, id);
        }
        l->gpu->before.is_here = false;
        gpu_function_close(l, step);
    }
}
