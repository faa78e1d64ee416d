// SPDX-License-Identifier: Apache-2.0
// Loops over the points of a network with sums over all of them: a point is a thread's.
//
//     fold n < 10000 {
//       contract z[j] = x[k], w[20*k + j] ...          in registers (layer.c), x and z near the thread
//       map j { put h[j] = tanh z[j]
//               put g[j] reduce_sum= ... in @n }       the term goes to a row of memory
//       map i, j { put G[20*i + j] fma= x[i], h[j] in @n }   and so do x and h
//     }
//
// A second function sums products of rows, a tile of 4 by 5 sums a group of threads, in the order of
// any fold: a row is read by a window at a time and a term is its product with 1.  It is the nest of
// write_sums, lowered like any other.  A third one puts the sums where they belong.
#include "codegen/gpu/gpu.h"

#include "base/status.h"
#include "base/strbuf.h"
#include "base/vec.h"

#include <string.h>

#define TILE_X 4
#define TILE_Y 5
#define TILE (TILE_X * TILE_Y)
#define ROWS_BEHIND 8 // that tiles read past the last
#define END_BLOCK 256

// Of what accumulates: a product of rows with rows, terms, or pairs of factors.
struct sum {
    const struct nest_statement *put;   // or NULL:
    const struct nest_combine *combine; // of the fold
    enum { SUM_PRODUCT, SUM_TERMS, SUM_PAIRS } kind;
    int64_t count, width; // elements; PRODUCT: of the second factor
    int64_t row[2];       // where the factors begin
    int64_t task;         // the first that makes it
};

struct gpu_network {
    const struct nest_statement *fold;
    nest_id loop;
    jot_dtype dtype;
    int64_t points, pitch, rows, ones, tasks;
    VEC(struct sum) sums;
    int64_t *kept;     // by buffer: its first row, or -1
    uint32_t *written; // by buffer: the statement of the body that does so last
    LLVMValueRef memory, point;
};

// ---- What there is to sum

// The local that is read at place i of the axis, or NEST_NONE.
static nest_id row_of(const struct cg_lowering *l, nest_id value, nest_id axis)
{
    const struct nest_statement *s = cg_statement(l, l->nest->values.at[value].statement);
    bool is_row = s->kind == NEST_LOAD && s->guard == NEST_NONE && s->index.count == 1 &&
                  !s->index.constant && nest_index_factor(&s->index, axis) == 1;
    return is_row && l->nest->buffers.at[s->buffer].role == NEST_LOCAL ? s->buffer : NEST_NONE;
}

static bool is_product(const struct cg_lowering *l, const struct nest_statement *map,
                       const struct nest_statement *put)
{
    if (map->n_axes != 2 || put->kind != NEST_PUT || put->op != IR_fma || put->index.constant ||
        put->index.count != 2)
        return false;
    int64_t width = l->nest->axes.at[map->axes[1]].extent;
    return row_of(l, put->in[0], map->axes[0]) != NEST_NONE &&
           row_of(l, put->in[1], map->axes[1]) != NEST_NONE &&
           nest_index_factor(&put->index, map->axes[0]) == width &&
           nest_index_factor(&put->index, map->axes[1]) == 1;
}

// A map of nothing but products, for which the points have nothing to do.
static bool is_products(const struct cg_lowering *l, const struct nest_statement *s)
{
    if (s->kind != NEST_MAP)
        return false;
    const struct nest_block *b = &l->nest->blocks.at[s->body];
    for (uint32_t i = 0; i < b->statements.count; i++) {
        const struct nest_statement *t = cg_statement(l, b->statements.at[i]);
        if (t->kind != NEST_LOAD && !is_product(l, s, t))
            return false;
    }
    return true;
}

static int64_t add_rows(struct gpu_network *w, int64_t count)
{
    w->rows += count;
    return w->rows - count;
}

static void add_sum(struct cg_lowering *l, struct gpu_network *w,
                    const struct nest_statement *map, const struct nest_statement *put,
                    const struct nest_combine *combine)
{
    struct sum x = {.put = put, .combine = combine, .count = 1, .width = 1};
    uint32_t n = put ? put->n_in : combine->n;
    if (put)
        x.count = l->nest->buffers.at[put->buffer].count;
    if (map) {
        x.kind = SUM_PRODUCT;
        x.width = l->nest->axes.at[map->axes[1]].extent;
        for (int k = 0; k < 2; k++) {
            nest_id row = row_of(l, put->in[k], map->axes[k]);
            if (w->kept[row] < 0)
                w->kept[row] = add_rows(w, l->nest->buffers.at[row].count);
            x.row[k] = w->kept[row];
        }
    } else {
        x.kind = n == 2 ? SUM_PAIRS : SUM_TERMS;
        x.row[0] = add_rows(w, x.count);
        x.row[1] = n == 2 ? add_rows(w, x.count) : w->ones;
    }
    x.task = w->tasks;
    w->tasks +=
        map ? (x.count / x.width + TILE_X - 1) / TILE_X * ((x.width + TILE_Y - 1) / TILE_Y)
            : (x.count + TILE_X - 1) / TILE_X;
    vec_push(l->arena, &w->sums, x);
}

static void find_sums(struct cg_lowering *l, struct gpu_network *w,
                      const struct nest_statement *around, uint32_t block)
{
    const struct nest_block *b = &l->nest->blocks.at[block];
    for (uint32_t i = 0; i < b->statements.count; i++) {
        const struct nest_statement *s = cg_statement(l, b->statements.at[i]);
        if (s->kind == NEST_PUT && s->op)
            add_sum(l, w, is_products(l, around) ? around : NULL, s, NULL);
        if (s->kind == NEST_MAP || s->kind == NEST_FOLD)
            find_sums(l, w, s, s->body);
    }
}

static bool has_contract(const struct cg_lowering *l, uint32_t block)
{
    const struct nest_block *b = &l->nest->blocks.at[block];
    for (uint32_t i = 0; i < b->statements.count; i++)
        if (cg_statement(l, b->statements.at[i])->kind == NEST_CONTRACT)
            return true;
    return false;
}

static bool is_sum(enum ir_op op) { return op == IR_fma || op == IR_reduce_sum; }

// Sums of one floating-point type without guards are what there is code for.
static bool is_summed(const struct cg_lowering *l, nest_id loop, jot_dtype *d)
{
    const struct nest_statement *fold = cg_statement(l, loop);
    bool is_known = false;
    for (uint32_t i = 0; i < l->nest->statements.count; i++) {
        const struct nest_statement *s = &l->nest->statements.at[i];
        if (s->kind != NEST_PUT || !s->op)
            continue;
        jot_dtype put = l->nest->buffers.at[s->buffer].dtype;
        if (s->fold != loop || s->guard != NEST_NONE || !is_sum((enum ir_op)s->op) ||
            (is_known && put != *d))
            return false;
        *d = put;
        is_known = true;
    }
    for (uint32_t i = 0; i < fold->n_combines; i++) {
        const struct nest_combine *c = &fold->combines[i];
        if (!is_sum(c->op) || (is_known && c->dtype != *d))
            return false;
        *d = c->dtype;
        is_known = true;
    }
    return is_known && (*d == JOT_F32 || *d == JOT_F64);
}

bool gpu_is_network(const struct cg_lowering *l, nest_id loop)
{
    const struct nest_statement *s = cg_statement(l, loop);
    jot_dtype d = JOT_F32;
    return s->kind == NEST_FOLD && s->n_axes == 1 && has_contract(l, s->body) &&
           is_summed(l, loop, &d);
}

static struct gpu_network network_of(struct cg_lowering *l, nest_id loop)
{
    const struct nest_statement *s = cg_statement(l, loop);
    struct gpu_network w = {.fold = s, .loop = loop, .points = cg_extent(l, s)};
    w.pitch = (w.points + 3) / 4 * 4;
    is_summed(l, loop, &w.dtype);
    uint32_t n = l->nest->buffers.count;
    w.kept = arena_array(l->arena, int64_t, n + 1);
    w.written = arena_array(l->arena, uint32_t, n + 1);
    for (uint32_t i = 0; i < n; i++)
        w.kept[i] = -1;
    w.ones = add_rows(&w, 1);
    find_sums(l, &w, s, s->body);
    for (uint32_t i = 0; i < s->n_combines; i++)
        add_sum(l, &w, NULL, NULL, &s->combines[i]);
    return w;
}

// ---- Where locals are

struct life {
    uint32_t first, last; // statements of the body
    bool is_used;
    int64_t at, bytes;
};

static void note(const struct cg_lowering *l, struct gpu_network *w, struct life *lives,
                 nest_id buffer, uint32_t at, bool is_written)
{
    if (l->nest->buffers.at[buffer].role != NEST_LOCAL)
        return;
    struct life *x = &lives[buffer];
    x->first = x->is_used ? x->first : at;
    x->last = at;
    x->is_used = true;
    if (is_written)
        w->written[buffer] = at;
}

static void find_lives(const struct cg_lowering *l, struct gpu_network *w, struct life *lives,
                       const struct nest_statement *s, uint32_t at)
{
    if (s->kind == NEST_LOAD || s->kind == NEST_PUT || s->kind == NEST_CONTRACT)
        note(l, w, lives, s->buffer, at, s->kind != NEST_LOAD);
    for (int k = 0; k < 2 && s->kind == NEST_CONTRACT; k++)
        note(l, w, lives, s->source[k], at, false);
    if (s->kind != NEST_MAP && s->kind != NEST_FOLD)
        return;
    const struct nest_block *b = &l->nest->blocks.at[s->body];
    for (uint32_t i = 0; i < b->statements.count; i++)
        find_lives(l, w, lives, cg_statement(l, b->statements.at[i]), at);
}

// The lowest place that is free while the local lives.
static int64_t find_place(const struct life *lives, nest_id n, const struct life *x)
{
    int64_t at = 0;
    for (nest_id i = 0; i < n; i++) {
        const struct life *y = &lives[i];
        bool meets = y->is_used && y->first <= x->last && x->first <= y->last;
        if (meets && at < y->at + y->bytes && y->at < at + x->bytes) {
            at = y->at + y->bytes;
            i = (nest_id)-1; // from the beginning
        }
    }
    return at;
}

static void place_locals(struct cg_lowering *l, struct gpu_network *w)
{
    const struct nest_block *b = &l->nest->blocks.at[w->fold->body];
    uint32_t n = l->nest->buffers.count;
    struct life *lives = arena_array(l->arena, struct life, n + 1);
    for (uint32_t i = 0; i < b->statements.count; i++) {
        const struct nest_statement *s = cg_statement(l, b->statements.at[i]);
        if (!is_products(l, s))
            find_lives(l, w, lives, s, i);
    }
    int64_t total = 0;
    for (nest_id i = 0; i < n; i++) {
        const struct nest_buffer *x = &l->nest->buffers.at[i];
        if (!lives[i].is_used)
            continue;
        lives[i].bytes = (x->count * (int64_t)jot_dtype_size(x->dtype) + 15) / 16 * 16;
        lives[i].at = find_place(lives, i, &lives[i]);
        if (lives[i].at + lives[i].bytes > total)
            total = lives[i].at + lives[i].bytes;
    }
    LLVMValueRef memory = cg_alloca(l, l->module->i8, (uint64_t)(total ? total : 1));
    for (nest_id i = 0; i < n; i++)
        if (lives[i].is_used)
            l->buffers[i].base =
                cg_at(l, l->module->i8, memory, cg_int(l->module, lives[i].at));
}

// ---- The points

static LLVMValueRef term_at(struct cg_lowering *l, const struct gpu_network *w,
                            LLVMValueRef row)
{
    LLVMValueRef at = LLVMBuildMul(l->m.b, row, cg_int(l->module, w->pitch), "");
    return cg_at(l, cg_memory_type(l->module, w->dtype), w->memory,
                 LLVMBuildAdd(l->m.b, at, w->point, ""));
}

// A value to rows row, row + step, ..., a lane each.
static void store_terms(struct cg_lowering *l, LLVMValueRef row, int64_t step,
                        struct cg_value v)
{
    const struct gpu_network *w = l->gpu->network;
    unsigned lanes = cg_lanes_of(v.re);
    for (unsigned i = 0; i < lanes; i++) {
        LLVMValueRef at = LLVMBuildAdd(l->m.b, row, cg_int(l->module, i * step), "");
        LLVMValueRef x = lanes > 1 ? cg_extract(&l->m, v.re, i, 1) : v.re;
        LLVMBuildStore(l->m.b, x, term_at(l, w, at));
    }
}

void gpu_network_put(struct cg_lowering *l, const struct nest_statement *s)
{
    const struct gpu_network *w = l->gpu->network;
    uint32_t i = 0;
    while (w->sums.at[i].put != s)
        i++;
    unsigned lanes = l->lanes;
    nest_id axis = l->vector_axis;
    int64_t step = axis == NEST_NONE ? 0 : nest_index_factor(&s->index, axis);
    l->lanes = 1;
    l->vector_axis = NEST_NONE;
    LLVMValueRef row = cg_index_value(l, &s->index, JOT_I64);
    l->lanes = lanes;
    l->vector_axis = axis;
    for (uint32_t k = 0; k < s->n_in; k++) {
        struct cg_value v = cg_convert(&l->m, l->values[s->in[k]],
                                       l->nest->values.at[s->in[k]].dtype, w->dtype);
        LLVMValueRef first =
            LLVMBuildAdd(l->m.b, row, cg_int(l->module, w->sums.at[i].row[k]), "");
        store_terms(l, first, step, lanes > 1 ? cg_wide_value(l, v) : v);
    }
}

// What products are made of, from the thread to memory.
static void keep(struct cg_lowering *l, const struct gpu_network *w, nest_id buffer)
{
    LLVMTypeRef lane = cg_memory_type(l->module, w->dtype);
    struct cg_loop loop = cg_loop_open(l, cg_int(l->module, 0),
                                       cg_int(l->module, l->nest->buffers.at[buffer].count),
                                       cg_int(l->module, 1));
    LLVMValueRef v =
        LLVMBuildLoad2(l->m.b, lane, cg_at(l, lane, cg_buffer_base(l, buffer), loop.index), "");
    LLVMValueRef row = LLVMBuildAdd(l->m.b, loop.index, cg_int(l->module, w->kept[buffer]), "");
    LLVMBuildStore(l->m.b, v, term_at(l, w, row));
    cg_loop_close(l, &loop);
}

static void lower_point(struct cg_lowering *l, struct gpu_network *w)
{
    const struct nest_block *b = &l->nest->blocks.at[w->fold->body];
    for (uint32_t i = 0; i < b->statements.count; i++) {
        if (is_products(l, cg_statement(l, b->statements.at[i])))
            continue;
        cg_lower_statement(l, b->statements.at[i]);
        for (nest_id k = 0; k < l->nest->buffers.count; k++)
            if (w->kept[k] >= 0 && w->written[k] == i)
                keep(l, w, k);
    }
    for (uint32_t i = 0; i < w->sums.count; i++) {
        const struct nest_combine *c = w->sums.at[i].combine;
        for (uint32_t k = 0; c && k < c->n; k++)
            store_terms(l, cg_int(l->module, w->sums.at[i].row[k]), 0,
                        cg_convert(&l->m, l->values[c->value[k]],
                                   l->nest->values.at[c->value[k]].dtype, w->dtype));
    }
    LLVMValueRef one = LLVMConstReal(cg_memory_type(l->module, w->dtype), 1);
    store_terms(l, cg_int(l->module, w->ones), 0, (struct cg_value){one, NULL});
}

static void lower_points(struct cg_lowering *l, struct gpu_network *w, uint32_t at,
                         struct cg_kernel *out)
{
    LLVMBuilderRef b = l->m.b;
    struct cg_gpu *g = l->gpu;
    // Few threads in a block when there are few points, so that all of the GPU has some.
    g->group = 1;
    g->block = w->points >= GPU_MULTIPROCESSORS * 512 ? 128 : 32;
    struct cg_kernel_step *step = gpu_function_open(l, out, "_points", 1);
    w->memory = gpu_extra_operand(l, 0);
    g->network = w;
    gpu_lower_list(l, 0, at);
    place_locals(l, w);
    struct cg_loop chunk = gpu_chunks_open(l, (w->points + g->block - 1) / g->block);
    w->point = LLVMBuildMul(b, chunk.index, cg_int(l->module, g->block), "");
    w->point = LLVMBuildAdd(b, w->point, gpu_wide(l, g->thread), "");
    struct cg_branch inside =
        cg_if_open(l, LLVMBuildICmp(b, LLVMIntSLT, w->point, cg_int(l->module, w->points), ""));
    l->axes[w->fold->axes[0]] = w->point;
    lower_point(l, w);
    cg_if_close(l, &inside);
    cg_loop_close(l, &chunk);
    g->network = NULL;
    step->total = w->points;
    step->grain = g->block;
    gpu_function_close(l, step);
}

// ---- The sums

// Sums of tasks: those of the products of rows a[q], a[q] + 1, ... with b[q], b[q] + 1, ...
static struct nest *write_sums(struct arena *arena, const struct gpu_network *w)
{
    struct strbuf s = strbuf_make(arena);
    const char *type = dtype_get(w->dtype)->name;
    long long n = w->tasks, pitch = w->pitch;
    strbuf_printf(&s,
                  "kernel sums(t: %s[%lld], a: i64[%lld], b: i64[%lld], g: out %s[%lld]) {\n",
                  type, (long long)(w->rows + ROWS_BEHIND) * pitch, n, n, type, n * TILE);
    strbuf_printf(&s, "par q < %lld {\n%%0 = load a[q] : i64\n%%1 = load b[q] : i64\n", n);
    strbuf_printf(&s, "fold n < %lld {\n", (long long)w->points);
    int value = 2;
    for (int i = 0; i < TILE_X + TILE_Y; i++)
        strbuf_printf(&s, "%%%d = load t[n + %lld*%%%d + %lld] : %s\n", value++, pitch,
                      i < TILE_X ? 0 : 1, pitch * (i < TILE_X ? i : i - TILE_X), type);
    for (int i = 0; i < TILE; i++)
        strbuf_printf(&s, "%s fma %%%d %%%d", i ? "," : "yield", 2 + i / TILE_Y,
                      2 + TILE_X + i % TILE_Y);
    strbuf_add(&s, "\n}");
    for (int i = 0; i < TILE; i++)
        strbuf_printf(&s, "%s %%%d : %s", i ? "," : " ->", value + i, type);
    strbuf_add(&s, "\n");
    for (int i = 0; i < TILE; i++)
        strbuf_printf(&s, "put g[%d*q + %d] = %%%d\n", TILE, i, value + i);
    strbuf_add(&s, "}\n}\n");
    int count;
    struct nest **nests;
    return nest_parse(arena, s.text, &count, &nests) == JOT_OK ? nests[0] : NULL;
}

// The first rows of the factors of every task, as a constant of the module.
static LLVMValueRef first_rows(struct cg_lowering *l, const struct gpu_network *w, int factor)
{
    LLVMValueRef *all = arena_array(l->arena, LLVMValueRef, (size_t)w->tasks + 1);
    for (uint32_t i = 0; i < w->sums.count; i++) {
        const struct sum *x = &w->sums.at[i];
        int64_t end = i + 1 < w->sums.count ? x[1].task : w->tasks;
        int64_t across = x->kind == SUM_PRODUCT ? (x->width + TILE_Y - 1) / TILE_Y : 1;
        for (int64_t q = 0; q < end - x->task; q++) {
            int64_t row = factor == 0              ? q / across * TILE_X
                          : x->kind == SUM_PRODUCT ? q % across * TILE_Y
                          : x->kind == SUM_PAIRS   ? q * TILE_X
                                                   : 0;
            all[x->task + q] = cg_int(l->module, x->row[factor] + row);
        }
    }
    LLVMValueRef rows = LLVMConstArray2(l->module->i64, all, (uint64_t)w->tasks);
    LLVMValueRef table = LLVMAddGlobalInAddressSpace(l->module->module, LLVMTypeOf(rows),
                                                     factor ? "jot_rows_b" : "jot_rows_a", 1);
    LLVMSetInitializer(table, rows);
    LLVMSetGlobalConstant(table, 1);
    LLVMSetLinkage(table, LLVMInternalLinkage);
    LLVMSetAlignment(table, 16);
    return LLVMConstAddrSpaceCast(table, l->module->ptr);
}

static LLVMValueRef sums_base(struct cg_lowering *l, const struct gpu_network *w)
{
    int64_t elements = (w->rows + ROWS_BEHIND) * w->pitch;
    return cg_at(l, cg_memory_type(l->module, w->dtype), gpu_extra_operand(l, 0),
                 cg_int(l->module, (elements + 15) / 16 * 16));
}

static void lower_sums(struct cg_lowering *l, const struct gpu_network *w,
                       struct cg_kernel *out)
{
    struct nest *nest = write_sums(l->arena, w);
    if (!nest) {
        cg_fail(l, "the nest of its sums cannot be read");
        return;
    }
    struct gpu_operand *operands = arena_array(l->arena, struct gpu_operand, 4);
    for (int i = 0; i < 4; i++)
        operands[i] = (struct gpu_operand){
            .align = 16, .is_alone = true, .is_constant = !l->gpu->is_phase};
    struct cg_lowering sums = *l;
    struct cg_gpu *g = l->gpu, before = *g;
    nest_id loop = nest->blocks.at[0].statements.at[0];
    sums.nest = nest;
    gpu_groups_choose(&sums, loop);
    struct cg_kernel_step *step = gpu_function_open(l, out, "_sums", 1);
    sums = *l;
    sums.nest = nest;
    gpu_tables_make(&sums);
    g->operands = operands;
    sums.buffers[0].base = gpu_extra_operand(l, 0);
    sums.buffers[1].base = first_rows(l, w, 0);
    sums.buffers[2].base = first_rows(l, w, 1);
    sums.buffers[3].base = sums_base(l, w);
    gpu_groups_lower(&sums, loop, step);
    l->status = sums.status;
    l->message = sums.message;
    gpu_function_close(l, step);
    g->operands = before.operands;
    g->scopes = before.scopes;
    g->is_shared_out = before.is_shared_out;
    g->is_repeated = before.is_repeated;
    g->is_read = before.is_read;
    g->statement = before.statement;
    g->row = before.row;
    g->resident = before.resident;
}

// Where element e of the sum is among those of all tasks.
static LLVMValueRef place_of(struct cg_lowering *l, const struct sum *x, LLVMValueRef e)
{
    LLVMBuilderRef b = l->m.b;
    LLVMValueRef i = e, task, slot;
    LLVMValueRef side = cg_int(l->module, TILE_X), other = cg_int(l->module, TILE_Y);
    if (x->kind == SUM_PRODUCT) {
        LLVMValueRef width = cg_int(l->module, x->width);
        LLVMValueRef j = LLVMBuildURem(b, e, width, "");
        i = LLVMBuildUDiv(b, e, width, "");
        task = LLVMBuildMul(b, LLVMBuildUDiv(b, i, side, ""),
                            cg_int(l->module, (x->width + TILE_Y - 1) / TILE_Y), "");
        task = LLVMBuildAdd(b, task, LLVMBuildUDiv(b, j, other, ""), "");
        slot = LLVMBuildMul(b, LLVMBuildURem(b, i, side, ""), other, "");
        slot = LLVMBuildAdd(b, slot, LLVMBuildURem(b, j, other, ""), "");
    } else {
        task = LLVMBuildUDiv(b, e, side, "");
        slot = LLVMBuildMul(b, LLVMBuildURem(b, e, side, ""),
                            cg_int(l->module, x->kind == SUM_PAIRS ? TILE_Y + 1 : TILE_Y), "");
    }
    task = LLVMBuildAdd(b, task, cg_int(l->module, x->task), "");
    return LLVMBuildAdd(b, LLVMBuildMul(b, task, cg_int(l->module, TILE), ""), slot, "");
}

static LLVMValueRef load_sum(struct cg_lowering *l, const struct gpu_network *w,
                             const struct sum *x, LLVMValueRef e)
{
    LLVMTypeRef lane = cg_memory_type(l->module, w->dtype);
    return LLVMBuildLoad2(l->m.b, lane, cg_at(l, lane, sums_base(l, w), place_of(l, x, e)), "");
}

static void copy_sum(struct cg_lowering *l, const struct gpu_network *w, const struct sum *x)
{
    struct cg_loop loop =
        cg_loop_open(l, gpu_wide(l, l->gpu->thread), cg_int(l->module, x->count),
                     cg_int(l->module, END_BLOCK));
    LLVMTypeRef lane = cg_memory_type(l->module, w->dtype);
    LLVMBuildStore(l->m.b, load_sum(l, w, x, loop.index),
                   cg_at(l, lane, cg_buffer_base(l, x->put->buffer), loop.index));
    cg_loop_close(l, &loop);
}

// A chunk for each sum that is put, and one for what follows the loop.
static void lower_end(struct cg_lowering *l, const struct gpu_network *w, uint32_t at,
                      struct cg_kernel *out)
{
    LLVMBuilderRef b = l->m.b;
    l->gpu->group = 1;
    l->gpu->block = END_BLOCK;
    struct cg_kernel_step *step = gpu_function_open(l, out, "", 1);
    gpu_lower_list(l, 0, at);
    struct cg_loop chunk = gpu_chunks_open(l, (int64_t)w->sums.count + 1);
    nest_id result = w->fold->result;
    for (uint32_t i = 0; i < w->sums.count; i++) {
        const struct sum *x = &w->sums.at[i];
        if (!x->put) {
            l->values[result++] =
                (struct cg_value){load_sum(l, w, x, cg_int(l->module, 0)), NULL};
            continue;
        }
        struct cg_branch mine =
            cg_if_open(l, LLVMBuildICmp(b, LLVMIntEQ, chunk.index, cg_int(l->module, i), ""));
        copy_sum(l, w, x);
        cg_if_close(l, &mine);
    }
    LLVMValueRef last =
        LLVMBuildICmp(b, LLVMIntEQ, chunk.index, cg_int(l->module, w->sums.count), "");
    LLVMValueRef first = LLVMBuildICmp(b, LLVMIntEQ, l->gpu->thread, gpu_i32(l, 0), "");
    struct cg_branch rest = cg_if_open(l, LLVMBuildAnd(b, last, first, ""));
    gpu_lower_list(l, at + 1, l->nest->blocks.at[0].statements.count);
    cg_if_close(l, &rest);
    cg_loop_close(l, &chunk);
    step->total = (int64_t)w->sums.count + 1;
    step->exact_grid = true;
    gpu_function_close(l, step);
}

void gpu_network_lower(struct cg_lowering *l, uint32_t at, struct cg_kernel *out)
{
    struct gpu_network w = network_of(l, l->nest->blocks.at[0].statements.at[at]);
    unsigned bytes = dtype_get(w.dtype)->bytes;
    out->partial_bytes =
        (uint64_t)((w.rows + ROWS_BEHIND) * w.pitch + 16 + w.tasks * TILE) * bytes;
    lower_points(l, &w, at, out);
    lower_sums(l, &w, out);
    lower_end(l, &w, at, out);
}
