// SPDX-License-Identifier: Apache-2.0
// Points of a network that four threads each do, a squad, side by side in a warp.  Thread p has
// units p, p + 4, p + 8, ... of every layer:
//
//     map j < 20 { put h[j] = ... z[j] }   five elements a thread; its own are in registers
//     contract y[j] = h[k], w[20*k + j]    all of h, in shared memory, four elements at a time
//
// Matrices are in shared memory too, terms of a unit beside one another.  Their rows, and
// points, are an odd number of times 16 bytes apart, for the threads of a warp to find them in
// different banks.  What is no row of units, each thread of the squad computes, and one of them
// puts.
//
// One shape: small matrices at many points (docs/nests.md).
#include "codegen/gpu/network.h"

#define SQUAD 4
#define MOST_OWN 16 // units of a thread
#define MOST_SIDE 64
#define VECTOR 4 // elements of 16 bytes
#define POINTS_OF_WARP (GPU_WARP / SQUAD)
#define MOST_POINTS 96 // of a block
#define MOST_SHARED (224 * 1024)

// What a contract reads of memory.
struct matrix {
    nest_id buffer;
    int64_t constant, by_input, by_output, inputs, outputs;
    int64_t at; // bytes
};

struct squads {
    struct gpu_network *w;
    bool *is_common; // by buffer: read or written by other threads than those of its units
    uint32_t
        *put_in; // by buffer: what is not shared out and puts it, 1 being the first statement
    uint32_t at_statement;
    VEC(struct matrix) matrices;
    int64_t matrix_bytes, point_bytes, points;
    int64_t *bytes, *at; // by buffer: its row in shared memory
    LLVMValueRef shared, place, number;
    bool has_read, has_written; // rows since the squad was together
    bool is_apart;              // in a map that it shares out
};

static int64_t odd_stride(int64_t count)
{
    int64_t vectors = (count + VECTOR - 1) / VECTOR;
    return (vectors | 1) * VECTOR;
}

static bool is_row(int64_t count) { return count % SQUAD == 0 && count <= SQUAD * MOST_OWN; }

// The axis of a map whose units the squad shares out, or NEST_NONE.
static nest_id units_of(const struct cg_lowering *l, const struct nest_statement *s)
{
    bool is_shared_out =
        s->kind == NEST_MAP && s->n_axes == 1 && is_row(l->nest->axes.at[s->axes[0]].extent);
    return is_shared_out ? s->axes[0] : NEST_NONE;
}

// An access of a local by the threads of its units alone.
static bool is_own(const struct cg_lowering *l, const struct nest_statement *s, nest_id units)
{
    return nest_index_is_axis(&s->index, units) && s->guard == NEST_NONE &&
           l->nest->buffers.at[s->buffer].count == l->nest->axes.at[units].extent;
}

// False: the threads of a squad would need to wait for what one of them puts.
static bool note_access(const struct cg_lowering *l, struct squads *q,
                        const struct nest_statement *s, nest_id units)
{
    const struct nest_buffer *x = &l->nest->buffers.at[s->buffer];
    if (x->role != NEST_LOCAL)
        return true;
    q->is_common[s->buffer] |= !is_own(l, s, units);
    if (s->kind == NEST_PUT && units == NEST_NONE)
        q->put_in[s->buffer] = q->at_statement;
    return s->kind == NEST_PUT || q->put_in[s->buffer] != q->at_statement;
}

static bool is_f32(const struct cg_lowering *l, nest_id buffer, enum nest_role role)
{
    const struct nest_buffer *x = &l->nest->buffers.at[buffer];
    return x->role == role && x->dtype == JOT_F32;
}

static bool note_contract(struct cg_lowering *l, struct squads *q,
                          const struct nest_statement *s)
{
    const struct nest_index *x = &s->source_index[1];
    if (!nest_is_layer(s) || !is_f32(l, s->buffer, NEST_LOCAL) ||
        !is_f32(l, s->source[0], NEST_LOCAL) || !is_f32(l, s->source[1], NEST_IN))
        return false;
    struct matrix m = {.buffer = s->source[1],
                       .constant = x->constant,
                       .by_output = nest_index_factor(x, s->axes[0]),
                       .by_input = nest_index_factor(x, s->axes[1]),
                       .outputs = l->nest->axes.at[s->axes[0]].extent,
                       .inputs = l->nest->axes.at[s->axes[1]].extent,
                       .at = q->matrix_bytes};
    if (!is_row(m.outputs) || l->nest->buffers.at[s->buffer].count != m.outputs ||
        m.inputs > MOST_SIDE || m.inputs % 2)
        return false;
    q->is_common[s->source[0]] = true;
    for (uint32_t i = 0; i < q->matrices.count; i++) {
        const struct matrix *o = &q->matrices.at[i];
        if (o->buffer == m.buffer && o->constant == m.constant && o->by_input == m.by_input &&
            o->by_output == m.by_output && o->inputs == m.inputs && o->outputs == m.outputs)
            return true;
    }
    q->matrix_bytes += m.outputs * odd_stride(m.inputs) * (int64_t)sizeof(float);
    vec_push(l->arena, &q->matrices, m);
    return true;
}

// The axis of units is that of the map that s stands in, and no fold.
static bool look(struct cg_lowering *l, struct squads *q, const struct nest_statement *s,
                 nest_id units, bool is_inside)
{
    if (gpu_is_products(l, s) || s->kind == NEST_OP || s->kind == NEST_CONST ||
        s->kind == NEST_INDEX)
        return true;
    if (s->kind == NEST_CONTRACT && !is_inside)
        return note_contract(l, q, s);
    if (s->kind == NEST_LOAD || s->kind == NEST_PUT)
        return note_access(l, q, s, units);
    if (s->kind != NEST_FOLD && (s->kind != NEST_MAP || is_inside || s->n_axes > 1))
        return false;
    nest_for_each (t, l->nest, s->body)
        if (!look(l, q, t, units_of(l, s), true))
            return false;
    return true;
}

static struct squads *squads_of(struct cg_lowering *l, struct gpu_network *w)
{
    uint32_t n = l->nest->buffers.count;
    struct squads *q = arena_array(l->arena, struct squads, 1);
    q->w = w;
    q->is_common = arena_array(l->arena, bool, n + 1);
    q->put_in = arena_array(l->arena, uint32_t, n + 1);
    q->bytes = arena_array(l->arena, int64_t, n + 1);
    q->at = arena_array(l->arena, int64_t, n + 1);
    const struct nest_block *b = &l->nest->blocks.at[w->fold->body];
    for (uint32_t i = 0; i < b->statements.count; i++) {
        q->at_statement = i + 1;
        if (!look(l, q, cg_statement(l, b->statements.at[i]), NEST_NONE, false))
            return NULL;
    }
    for (nest_id i = 0; i < n; i++) {
        const struct nest_buffer *x = &l->nest->buffers.at[i];
        if (x->role == NEST_LOCAL && x->dtype != JOT_F32)
            return NULL;
        if (x->role == NEST_LOCAL && !is_row(x->count))
            q->is_common[i] = true;
        if (q->is_common[i])
            q->bytes[i] = x->count * (int64_t)sizeof(float);
    }
    q->point_bytes = gpu_network_places(l, w, q->bytes, q->at) / 16 * 16 | 16;
    int64_t room = (MOST_SHARED - q->matrix_bytes) / q->point_bytes;
    int64_t each = (w->points + GPU_MULTIPROCESSORS - 1) / GPU_MULTIPROCESSORS;
    q->points = each < MOST_POINTS ? each : MOST_POINTS;
    q->points = q->points < room ? q->points : room / POINTS_OF_WARP * POINTS_OF_WARP;
    q->points = (q->points + POINTS_OF_WARP - 1) / POINTS_OF_WARP * POINTS_OF_WARP;
    return q->points >= POINTS_OF_WARP ? q : NULL;
}

// ---- A squad

static void meet(struct cg_lowering *l, struct squads *q)
{
    gpu_sync_warp(l);
    q->has_read = q->has_written = false;
}

// Whether the statement reads rows of the squad, and whether it writes any.
static void find_accesses(const struct cg_lowering *l, const struct squads *q,
                          const struct nest_statement *s, bool *reads, bool *writes)
{
    if (s->kind == NEST_LOAD)
        *reads |= q->is_common[s->buffer];
    if (s->kind == NEST_PUT || s->kind == NEST_CONTRACT)
        *writes |= q->is_common[s->buffer];
    *reads |= s->kind == NEST_CONTRACT;
    if (s->kind != NEST_MAP && s->kind != NEST_FOLD)
        return;
    nest_for_each (t, l->nest, s->body)
        find_accesses(l, q, t, reads, writes);
}

// Unit i of the thread, an i64.
static LLVMValueRef unit(struct cg_lowering *l, const struct squads *q, int64_t i)
{
    return LLVMBuildAdd(l->m.b, gpu_wide(l, q->place), cg_int(l->module, i * SQUAD), "");
}

// Where unit i of the thread is in the row.
static LLVMValueRef unit_at(struct cg_lowering *l, const struct squads *q, nest_id buffer,
                            int64_t i)
{
    l->gpu->vector = i;
    if (!q->is_common[buffer])
        return cg_gpu_kept_place(l, buffer);
    return cg_at(l, l->module->f32, cg_buffer_base(l, buffer), unit(l, q, i));
}

static void lower_map(struct cg_lowering *l, struct squads *q, const struct nest_statement *s)
{
    nest_id axis = units_of(l, s);
    int64_t count = l->nest->axes.at[s->axes[0]].extent;
    q->is_apart = axis != NEST_NONE;
    if (!q->is_apart) {
        struct cg_loop loop = cg_loop_open(l, cg_int(l->module, 0), cg_int(l->module, count),
                                           cg_int(l->module, 1));
        l->axes[s->axes[0]] = loop.index;
        cg_lower_block(l, s->body);
        cg_loop_close(l, &loop);
        return;
    }
    for (int64_t i = 0; i < count / SQUAD; i++) {
        l->gpu->vector = i;
        l->axes[axis] = unit(l, q, i);
        cg_lower_block(l, s->body);
    }
    q->is_apart = false;
}

static LLVMValueRef load_vector(struct cg_lowering *l, LLVMValueRef from, unsigned width)
{
    LLVMValueRef v = LLVMBuildLoad2(l->m.b, cg_with_lanes(l->module->f32, width), from, "");
    LLVMSetAlignment(v, width * (unsigned)sizeof(float));
    return v;
}

static const struct matrix *matrix_of(const struct cg_lowering *l, const struct squads *q,
                                      const struct nest_statement *s)
{
    const struct nest_index *x = &s->source_index[1];
    const struct matrix *m = q->matrices.at;
    while (m->buffer != s->source[1] || m->constant != x->constant ||
           m->by_output != nest_index_factor(x, s->axes[0]) ||
           m->by_input != nest_index_factor(x, s->axes[1]) ||
           m->outputs != l->nest->axes.at[s->axes[0]].extent ||
           m->inputs != l->nest->axes.at[s->axes[1]].extent)
        m++;
    return m;
}

// Terms in a loop: there are many products, and written out they are more than the caches of a
// multiprocessor hold of code.
static void lower_contract(struct cg_lowering *l, const struct squads *q,
                           const struct nest_statement *s)
{
    LLVMBuilderRef b = l->m.b;
    const struct matrix *m = matrix_of(l, q, s);
    LLVMTypeRef lane = l->module->f32;
    LLVMValueRef sums[MOST_OWN], rows[MOST_OWN], x = cg_buffer_base(l, s->source[0]);
    LLVMValueRef w = cg_at(l, l->module->i8, q->shared, cg_int(l->module, m->at));
    unsigned width = m->inputs % VECTOR ? VECTOR / 2 : VECTOR;
    int64_t own = m->outputs / SQUAD, stride = odd_stride(m->inputs);
    for (int64_t i = 0; i < own; i++) {
        LLVMValueRef at = LLVMBuildMul(b, unit(l, q, i), cg_int(l->module, stride), "");
        rows[i] = cg_at(l, lane, w, at);
        sums[i] = cg_alloca(l, lane, 1);
        LLVMBuildStore(b, LLVMConstNull(lane), sums[i]);
    }
    struct cg_loop loop = cg_loop_open(l, cg_int(l->module, 0), cg_int(l->module, m->inputs),
                                       cg_int(l->module, width));
    LLVMValueRef xs = load_vector(l, cg_at(l, lane, x, loop.index), width);
    for (int64_t i = 0; i < own; i++) {
        LLVMValueRef sum = LLVMBuildLoad2(b, lane, sums[i], "");
        LLVMValueRef ws = load_vector(l, cg_at(l, lane, rows[i], loop.index), width);
        for (unsigned c = 0; c < width; c++) {
            struct cg_value v[] = {{sum, NULL},
                                   {cg_extract(&l->m, xs, c, 1), NULL},
                                   {cg_extract(&l->m, ws, c, 1), NULL}};
            sum = cg_combine_fma(&l->m, JOT_F32, v[0], v[1], v[2]).re;
        }
        LLVMBuildStore(b, sum, sums[i]);
    }
    cg_loop_close(l, &loop);
    for (int64_t i = 0; i < own; i++)
        LLVMBuildStore(b, LLVMBuildLoad2(b, lane, sums[i], ""), unit_at(l, q, s->buffer, i));
}

static struct cg_branch one_open(struct cg_lowering *l, const struct squads *q)
{
    LLVMValueRef zero = gpu_i32(l, 0);
    return cg_if_open(l, LLVMBuildICmp(l->m.b, LLVMIntEQ, q->place, zero, ""));
}

bool gpu_squads_put_open(struct cg_lowering *l, const struct gpu_network *w,
                         const struct nest_statement *put, struct cg_branch *out)
{
    LLVMBuilderRef b = l->m.b;
    const struct squads *q = w->squads;
    bool is_of_point = !put->op && l->nest->buffers.at[put->buffer].role != NEST_LOCAL;
    if (q->is_apart && !is_of_point)
        return false;
    LLVMValueRef all = LLVMConstInt(l->module->i1, 1, 0), is_one = all, is_there = all;
    if (!q->is_apart)
        is_one = LLVMBuildICmp(b, LLVMIntEQ, q->place, gpu_i32(l, 0), "");
    if (is_of_point)
        is_there = LLVMBuildICmp(b, LLVMIntSLT, w->point, cg_int(l->module, w->points), "");
    *out = cg_if_open(l, LLVMBuildAnd(b, is_one, is_there, ""));
    return true;
}

// What products are made of, from the squad to memory.
static void keep(struct cg_lowering *l, const struct squads *q, nest_id buffer)
{
    LLVMTypeRef lane = l->module->f32;
    int64_t count = l->nest->buffers.at[buffer].count, first = q->w->kept[buffer];
    struct cg_branch one;
    bool units = is_row(count);
    if (!units)
        one = one_open(l, q);
    for (int64_t i = 0; i < (units ? count / SQUAD : count); i++) {
        LLVMValueRef e = units ? unit(l, q, i) : cg_int(l->module, i);
        LLVMValueRef from =
            units ? unit_at(l, q, buffer, i) : cg_at(l, lane, cg_buffer_base(l, buffer), e);
        LLVMValueRef row = LLVMBuildAdd(l->m.b, e, cg_int(l->module, first), "");
        LLVMBuildStore(l->m.b, LLVMBuildLoad2(l->m.b, lane, from, ""),
                       gpu_network_term(l, q->w, row));
    }
    if (!units)
        cg_if_close(l, &one);
}

static void lower_statement(struct cg_lowering *l, struct squads *q, nest_id id)
{
    const struct nest_statement *s = cg_statement(l, id);
    bool reads = false, writes = false;
    find_accesses(l, q, s, &reads, &writes);
    if ((reads && q->has_written) || (writes && q->has_read))
        meet(l, q);
    if (s->kind == NEST_MAP)
        lower_map(l, q, s);
    else if (s->kind == NEST_CONTRACT)
        lower_contract(l, q, s);
    else
        cg_lower_statement(l, id);
    q->has_read |= reads;
    q->has_written |= writes;
}

// ---- A block of them

static LLVMValueRef in_block(struct cg_lowering *l, const struct squads *q, int64_t at)
{
    return cg_at(l, l->module->i8, q->shared, cg_int(l->module, at));
}

// The matrices, by all threads.
static void load_matrices(struct cg_lowering *l, const struct squads *q)
{
    LLVMBuilderRef b = l->m.b;
    LLVMTypeRef lane = l->module->f32;
    for (uint32_t i = 0; i < q->matrices.count; i++) {
        const struct matrix *m = &q->matrices.at[i];
        LLVMValueRef inputs = cg_int(l->module, m->inputs);
        struct cg_loop loop = cg_loop_open(l, gpu_wide(l, l->gpu->thread),
                                           cg_int(l->module, m->inputs * m->outputs),
                                           cg_int(l->module, l->gpu->block));
        LLVMValueRef j = LLVMBuildUDiv(b, loop.index, inputs, "");
        LLVMValueRef k = LLVMBuildURem(b, loop.index, inputs, "");
        LLVMValueRef from =
            LLVMBuildAdd(b, LLVMBuildMul(b, j, cg_int(l->module, m->by_output), ""),
                         LLVMBuildMul(b, k, cg_int(l->module, m->by_input), ""), "");
        from = LLVMBuildAdd(b, from, cg_int(l->module, m->constant), "");
        LLVMValueRef to = LLVMBuildMul(b, j, cg_int(l->module, odd_stride(m->inputs)), "");
        to = LLVMBuildAdd(b, to, k, "");
        LLVMValueRef v =
            LLVMBuildLoad2(b, lane, cg_at(l, lane, cg_buffer_base(l, m->buffer), from), "");
        LLVMBuildStore(b, v, cg_at(l, lane, in_block(l, q, m->at), to));
        cg_loop_close(l, &loop);
    }
    gpu_barrier(&l->m);
}

static void place_rows(struct cg_lowering *l, struct squads *q)
{
    LLVMBuilderRef b = l->m.b;
    uint32_t n = l->nest->buffers.count;
    LLVMValueRef offset =
        LLVMBuildMul(b, gpu_wide(l, q->number), cg_int(l->module, q->point_bytes), "");
    LLVMValueRef point = cg_at(l, l->module->i8, in_block(l, q, q->matrix_bytes), offset);
    l->gpu->kept = arena_array(l->arena, struct gpu_kept, n + 1);
    for (nest_id i = 0; i < n; i++) {
        const struct nest_buffer *x = &l->nest->buffers.at[i];
        if (x->role != NEST_LOCAL)
            continue;
        l->gpu->kept[i].is_kept = !q->is_common[i];
        if (!q->is_common[i]) {
            l->gpu->kept[i].memory = cg_alloca(l, l->module->f32, (uint64_t)x->count / SQUAD);
            continue;
        }
        l->buffers[i].base = cg_at(l, l->module->i8, point, cg_int(l->module, q->at[i]));
    }
}

bool gpu_squads_choose(struct cg_lowering *l, struct gpu_network *w)
{
    w->squads = w->dtype == JOT_F32 && !l->gpu->is_phase ? squads_of(l, w) : NULL;
    if (w->squads)
        w->pitch = (w->points + w->squads->points - 1) / w->squads->points * w->squads->points;
    return w->squads;
}

void gpu_squads_lower(struct cg_lowering *l, struct gpu_network *w, uint32_t at,
                      struct cg_kernel *out)
{
    LLVMBuilderRef b = l->m.b;
    struct cg_gpu *g = l->gpu;
    struct squads *q = w->squads;
    g->group = 1;
    g->block = (unsigned)(q->points * SQUAD);
    g->keeps_loops = true;
    struct cg_kernel_step *step = gpu_function_open(l, out, "_points", 1);
    w->memory = gpu_extra_operand(l, 0);
    g->network = w;
    q->shared = gpu_shared_start(&l->m);
    q->place = LLVMBuildURem(b, g->thread, gpu_i32(l, SQUAD), "");
    q->number = LLVMBuildUDiv(b, g->thread, gpu_i32(l, SQUAD), "");
    gpu_lower_list(l, 0, at);
    load_matrices(l, q);
    place_rows(l, q);
    struct cg_loop chunk = gpu_chunks_open(l, (w->points + q->points - 1) / q->points);
    w->point = LLVMBuildMul(b, chunk.index, cg_int(l->module, q->points), "");
    w->point = LLVMBuildAdd(b, w->point, gpu_wide(l, q->number), "");
    // Squads without a point do the last one, and have rows of memory of their own.
    LLVMValueRef last = cg_int(l->module, w->points - 1);
    LLVMValueRef is_inside = LLVMBuildICmp(b, LLVMIntSLT, w->point, last, "");
    l->axes[w->fold->axes[0]] = LLVMBuildSelect(b, is_inside, w->point, last, "");
    meet(l, q);
    const struct nest_block *body = &l->nest->blocks.at[w->fold->body];
    for (uint32_t i = 0; i < body->statements.count; i++) {
        if (gpu_is_products(l, cg_statement(l, body->statements.at[i])))
            continue;
        lower_statement(l, q, body->statements.at[i]);
        for (nest_id k = 0; k < l->nest->buffers.count; k++)
            if (w->kept[k] >= 0 && w->written[k] == i)
                keep(l, q, k);
    }
    struct cg_branch one = one_open(l, q);
    gpu_network_yield(l, w);
    cg_if_close(l, &one);
    cg_loop_close(l, &chunk);
    g->network = NULL;
    g->kept = NULL;
    step->total = w->points;
    step->grain = q->points;
    g->shared_bytes = (uint64_t)(q->matrix_bytes + q->points * q->point_bytes);
    g->group = g->block;
    gpu_function_close(l, step);
    g->keeps_loops = false;
    g->group = 1;
}
