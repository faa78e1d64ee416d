// SPDX-License-Identifier: Apache-2.0
// Loops over the points of a network (codegen/gpu/network.c): a point is a thread's, or that of four threads, a squad,
// which have the units of a layer in turn.
//
// Rows of units that no other thread of a squad needs are in registers, others in shared memory, and so are matrices.
// Locals of a point that are of no use at the same time may be in the same memory.
#include "map/gpu_network.h"

#include "map/gpu_shared.h"

#define MOST_SIDE 64
#define VECTOR 4 // elements of 16 bytes
#define POINTS_OF_WARP (GPU_WARP / MAP_SQUAD)
#define MOST_POINTS 96 // of a block
#define MOST_SHARED (224 * 1024)
#define MANY_POINTS (GPU_MULTIPROCESSORS * 512)

// ---- Products

// The local that is read at index i of the axis, or NEST_NONE.
nest_id map_row_at(const struct nest *n, nest_id value, nest_id axis)
{
    const struct nest_statement *s = nest_maker_of(n, value);
    bool is_row = s->kind == NEST_LOAD && s->guard == NEST_NONE && s->index.count == 1 &&
                  !s->index.constant && nest_index_factor(&s->index, axis) == 1;
    return is_row && n->buffers.at[s->buffer].role == NEST_LOCAL ? s->buffer : NEST_NONE;
}

static bool is_product(const struct nest *n, const struct nest_statement *map,
                       const struct nest_statement *put)
{
    if (map->n_axes != 2 || put->kind != NEST_PUT || put->op != IR_fma || put->index.constant ||
        put->index.count != 2)
        return false;
    int64_t width = n->axes.at[map->axes[1]].extent;
    return map_row_at(n, put->in[0], map->axes[0]) != NEST_NONE &&
           map_row_at(n, put->in[1], map->axes[1]) != NEST_NONE &&
           nest_index_factor(&put->index, map->axes[0]) == width &&
           nest_index_factor(&put->index, map->axes[1]) == 1;
}

// A map of nothing but products, for which the points have nothing to do.
bool map_is_products(const struct nest *n, const struct nest_statement *s)
{
    if (s->kind != NEST_MAP)
        return false;
    nest_for_each (t, n, s->body)
        if (t->kind != NEST_LOAD && !is_product(n, s, t))
            return false;
    return true;
}

// ---- Lives of locals

struct life {
    uint32_t first, last; // statements of the body
    bool is_used;
    int64_t at, bytes;
};

static void note(uint32_t *written, struct life *lives, nest_id buffer, uint32_t at,
                 bool is_written)
{
    struct life *x = &lives[buffer];
    if (is_written)
        written[buffer] = at;
    if (!x->bytes)
        return;
    x->first = x->is_used ? x->first : at;
    x->last = at;
    x->is_used = true;
}

static void find_lives(const struct nest *n, uint32_t *written, struct life *lives,
                       const struct nest_statement *s, uint32_t at)
{
    nest_for_buffers (b, s)
        note(written, lives, b, at, b == s->buffer && s->kind != NEST_LOAD);
    if (s->kind != NEST_MAP && s->kind != NEST_FOLD)
        return;
    nest_for_each (t, n, s->body)
        find_lives(n, written, lives, t, at);
}

// The lowest offset that is free while the local lives.
static int64_t find_offset(const struct life *lives, nest_id n, const struct life *x)
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

int64_t map_network_lay_out(const struct map_gpu *m, nest_id loop, const int64_t *bytes,
                            int64_t *at, uint32_t *written)
{
    const struct nest_block *b = &m->nest->blocks.at[nest_statement_at(m->nest, loop)->body];
    uint32_t n = m->nest->buffers.count;
    struct life *lives = arena_array(m->arena, struct life, n + 1);
    for (nest_id i = 0; i < n; i++)
        lives[i].bytes = (bytes[i] + 15) / 16 * 16;
    for (uint32_t i = 0; i < b->statements.count; i++) {
        const struct nest_statement *s = nest_statement_at(m->nest, b->statements.at[i]);
        if (!map_is_products(m->nest, s))
            find_lives(m->nest, written, lives, s, i);
    }
    int64_t total = 0;
    for (nest_id i = 0; i < n; i++) {
        if (!lives[i].is_used)
            continue;
        at[i] = lives[i].at = find_offset(lives, i, &lives[i]);
        if (lives[i].at + lives[i].bytes > total)
            total = lives[i].at + lives[i].bytes;
    }
    return total;
}

// ---- Squads

int64_t map_squad_stride(int64_t count)
{
    int64_t vectors = (count + VECTOR - 1) / VECTOR;
    return (vectors | 1) * VECTOR;
}

bool map_is_squad_row(int64_t count)
{
    return count % MAP_SQUAD == 0 && count <= MAP_SQUAD * MAP_SQUAD_UNITS;
}

// The axis of a map whose units the squad shares out, or NEST_NONE.
nest_id map_squad_units(const struct nest *n, const struct nest_statement *s)
{
    bool is_shared_out = s->kind == NEST_MAP && s->n_axes == 1 &&
                         map_is_squad_row(n->axes.at[s->axes[0]].extent);
    return is_shared_out ? s->axes[0] : NEST_NONE;
}

// An access of a local by the threads of its units alone.
static bool is_own(const struct nest *n, const struct nest_statement *s, nest_id units)
{
    return nest_index_is_axis(&s->index, units) && s->guard == NEST_NONE &&
           n->buffers.at[s->buffer].count == n->axes.at[units].extent;
}

// False: the threads of a squad would need to wait for what one of them puts.
static bool note_access(const struct nest *n, struct map_squads *q,
                        const struct nest_statement *s, nest_id units)
{
    const struct nest_buffer *x = &n->buffers.at[s->buffer];
    if (x->role != NEST_LOCAL)
        return true;
    q->is_common[s->buffer] |= !is_own(n, s, units);
    if (s->kind == NEST_PUT && units == NEST_NONE)
        q->put_in[s->buffer] = q->at_statement;
    return s->kind == NEST_PUT || q->put_in[s->buffer] != q->at_statement;
}

static bool is_f32(const struct nest *n, nest_id buffer, enum nest_role role)
{
    const struct nest_buffer *x = &n->buffers.at[buffer];
    return x->role == role && x->dtype == JOT_F32;
}

static bool note_contract(const struct map_gpu *m, struct map_squads *q,
                          const struct nest_statement *s)
{
    const struct nest *n = m->nest;
    const struct nest_index *x = &s->source_index[1];
    if (!nest_is_layer(s) || !is_f32(n, s->buffer, NEST_LOCAL) ||
        !is_f32(n, s->source[0], NEST_LOCAL) || !is_f32(n, s->source[1], NEST_IN))
        return false;
    struct map_matrix y = {.buffer = s->source[1],
                           .constant = x->constant,
                           .by_output = nest_index_factor(x, s->axes[0]),
                           .by_input = nest_index_factor(x, s->axes[1]),
                           .outputs = n->axes.at[s->axes[0]].extent,
                           .inputs = n->axes.at[s->axes[1]].extent,
                           .at = q->matrix_bytes};
    if (!map_is_squad_row(y.outputs) || n->buffers.at[s->buffer].count != y.outputs ||
        y.inputs > MOST_SIDE || y.inputs % 2)
        return false;
    q->is_common[s->source[0]] = true;
    for (uint32_t i = 0; i < q->matrices.count; i++) {
        const struct map_matrix *o = &q->matrices.at[i];
        if (o->buffer == y.buffer && o->constant == y.constant && o->by_input == y.by_input &&
            o->by_output == y.by_output && o->inputs == y.inputs && o->outputs == y.outputs)
            return true;
    }
    q->matrix_bytes += y.outputs * map_squad_stride(y.inputs) * (int64_t)sizeof(float);
    vec_push(m->arena, &q->matrices, y);
    return true;
}

// The axis of units is that of the map that s stands in, and no fold.
static bool note_statement(const struct map_gpu *m, struct map_squads *q,
                           const struct nest_statement *s, nest_id units, bool is_inside)
{
    if (map_is_products(m->nest, s) || s->kind == NEST_OP || s->kind == NEST_CONST ||
        s->kind == NEST_INDEX)
        return true;
    if (s->kind == NEST_CONTRACT && !is_inside)
        return note_contract(m, q, s);
    if (s->kind == NEST_LOAD || s->kind == NEST_PUT)
        return note_access(m->nest, q, s, units);
    if (s->kind != NEST_FOLD && (s->kind != NEST_MAP || is_inside || s->n_axes > 1))
        return false;
    nest_for_each (t, m->nest, s->body)
        if (!note_statement(m, q, t, map_squad_units(m->nest, s), true))
            return false;
    return true;
}

bool map_squads_find(const struct map_gpu *m, nest_id loop, struct map_squads *q)
{
    const struct nest *n = m->nest;
    const struct nest_statement *s = nest_statement_at(n, loop);
    uint32_t buffers = n->buffers.count;
    *q = (struct map_squads){.is_common = arena_array(m->arena, bool, buffers + 1),
                             .put_in = arena_array(m->arena, uint32_t, buffers + 1),
                             .written = arena_array(m->arena, uint32_t, buffers + 1),
                             .at = arena_array(m->arena, int64_t, buffers + 1)};
    int64_t *bytes = arena_array(m->arena, int64_t, buffers + 1);
    jot_dtype summed = JOT_F32;
    if (m->is_phase || !map_is_summed(n, loop, &summed) || summed != JOT_F32)
        return false;
    nest_for_each (t, n, s->body) {
        q->at_statement++;
        if (!note_statement(m, q, t, NEST_NONE, false))
            return false;
    }
    for (nest_id i = 0; i < buffers; i++) {
        const struct nest_buffer *x = &n->buffers.at[i];
        if (x->role == NEST_LOCAL && x->dtype != JOT_F32)
            return false;
        if (x->role == NEST_LOCAL && !map_is_squad_row(x->count))
            q->is_common[i] = true;
        if (q->is_common[i])
            bytes[i] = x->count * (int64_t)sizeof(float);
    }
    q->point_bytes = map_network_lay_out(m, loop, bytes, q->at, q->written) / 16 * 16 | 16;
    return true;
}

// Points of a block: those that a multiprocessor has, as far as there is room for them.
static int64_t points_of(const struct map_squads *q, int64_t points)
{
    int64_t room = (MOST_SHARED - q->matrix_bytes) / q->point_bytes;
    int64_t each = (points + GPU_MULTIPROCESSORS - 1) / GPU_MULTIPROCESSORS;
    int64_t own = each < MOST_POINTS ? each : MOST_POINTS;
    own = own < room ? own : room / POINTS_OF_WARP * POINTS_OF_WARP;
    return (own + POINTS_OF_WARP - 1) / POINTS_OF_WARP * POINTS_OF_WARP;
}

void map_network_choose(const struct map_gpu *m, struct nest *n, nest_id loop)
{
    struct map_squads q;
    int64_t points = nest_extent(n, nest_statement_at(n, loop)), own = 0;
    if (map_squads_find(m, loop, &q))
        own = points_of(&q, points);
    n->special = NEST_NETWORK;
    if (own < POINTS_OF_WARP) {
        // Few threads in a block when there are few points, so that all of the GPU has some.
        n->threads[NEST_BLOCK_THREADS] = points >= MANY_POINTS ? 128 : 32;
        return;
    }
    n->threads[NEST_BLOCK_THREADS] = (unsigned)own * MAP_SQUAD;
    n->threads[NEST_GROUP_THREADS] = MAP_SQUAD;
    for (uint32_t i = 0; i < n->buffers.count; i++)
        if (n->buffers.at[i].role == NEST_LOCAL)
            n->buffers.at[i].space = q.is_common[i] ? NEST_SHARED : NEST_REGISTER;
}
