// SPDX-License-Identifier: Apache-2.0
// Loops over time of which a trip makes of an array its like from neighbours, several of which one launch makes
// (codegen/gpu/trips.c).
//
// Rows and columns go round: what a roll takes from the other end is a neighbour too.  Which neighbour a value is, is
// found for each part of the array where comparisons of indices with numbers are decided.
#include "map/gpu_trips.h"

#define BLOCK 64 // threads
#define REACH MAP_TRIPS_REACH
#define MOST_TRIPS 5    // of a launch: what is read beyond the tile is what they reach
#define LEAST (1 << 14) // points
#define OP_WORK 4.0     // of an operation: no branches
#define WORK 32.0       // of a point

struct look {
    const struct map_gpu *m;
    struct nest_interval *known; // by axis: the part that is looked at
    struct map_trips t;
};

// ---- Neighbours

#define PARTS (2 * REACH + 1) // of an axis

// The elements at its ends are parts by themselves, and what is between is one.
static struct nest_interval part_of(int64_t extent, int i)
{
    if (i < REACH)
        return (struct nest_interval){i, i + 1};
    if (i == REACH)
        return (struct nest_interval){REACH, extent - REACH};
    return (struct nest_interval){extent - PARTS + i, extent - PARTS + i + 1};
}

// In the part that is looked at: 1 or 0 when the value is always so, or -1.
static int decides(const struct look *l, nest_id value)
{
    const struct nest_statement *s = nest_maker_of(l->m->nest, value);
    if (s->kind == NEST_OP && s->op == IR_and) {
        int x = decides(l, s->in[0]), y = decides(l, s->in[1]);
        return !x || !y ? 0 : x < 0 || y < 0 ? -1 : 1;
    }
    return nest_decides(l->m->nest, s, l->known);
}

// The load that the value is in this part, or NULL.
static const struct nest_statement *load_of(const struct look *l, nest_id value)
{
    const struct nest_statement *s = nest_maker_of(l->m->nest, value);
    while (s->kind == NEST_OP && s->op == IR_select) {
        int is = decides(l, s->in[0]);
        if (is < 0)
            return NULL;
        s = nest_maker_of(l->m->nest, s->in[is ? 1 : 2]);
    }
    return s->kind == NEST_LOAD ? s : NULL;
}

static int64_t around(int64_t x, int64_t extent) { return (x % extent + extent) % extent; }

// Whether what is loaded at the index is that neighbour of it.
static bool is_at(const struct map_trips *t, const struct nest_statement *load, int64_t i,
                  int64_t j, const struct map_neighbour *n)
{
    int64_t index = load->index.constant + i * nest_index_factor(&load->index, t->row) +
                    j * nest_index_factor(&load->index, t->column);
    return index == around(i + n->row, t->height) * t->width + around(j + n->column, t->width);
}

// Whether the value is the neighbour in the whole part: indices are affine there, so its corners tell.
static bool is_in_part(const struct look *l, nest_id value, const struct nest_interval *rows,
                       const struct nest_interval *columns, const struct map_neighbour *n)
{
    const struct nest_statement *load = load_of(l, value),
                                *s = nest_maker_of(l->m->nest, value);
    if (!load || nest_index_has_values(&load->index))
        return false;
    int is_read = load->guard == NEST_NONE ? 1 : decides(l, load->guard);
    if (is_read <= 0)
        return is_read == 0 && load == s; // the guard is looked at again
    return is_at(&l->t, load, rows->first, columns->first, n) &&
           is_at(&l->t, load, rows->first, columns->end - 1, n) &&
           is_at(&l->t, load, rows->end - 1, columns->first, n) &&
           is_at(&l->t, load, rows->end - 1, columns->end - 1, n);
}

static void enter(struct look *l, const struct nest_interval *rows,
                  const struct nest_interval *columns)
{
    l->known[l->t.row] = *rows;
    l->known[l->t.column] = *columns;
}

static bool is_everywhere(struct look *l, nest_id value, const struct map_neighbour *n)
{
    bool is = true;
    for (int i = 0; is && i < PARTS * PARTS; i++) {
        struct nest_interval rows = part_of(l->t.height, i / PARTS);
        struct nest_interval columns = part_of(l->t.width, i % PARTS);
        enter(l, &rows, &columns);
        is = is_in_part(l, value, &rows, &columns, n);
    }
    return is;
}

// Which neighbour the value is, if it is the same one everywhere.
static struct map_neighbour neighbour_of(struct look *l, nest_id value)
{
    struct map_neighbour n = {0};
    struct nest_interval rows = part_of(l->t.height, REACH),
                         columns = part_of(l->t.width, REACH);
    enter(l, &rows, &columns);
    const struct nest_statement *load = load_of(l, value);
    if (load) {
        int64_t by = load->index.constant;
        int64_t row = (by + (by < 0 ? -1 : 1) * l->t.width / 2) / l->t.width;
        int64_t column = by - row * l->t.width;
        n = (struct map_neighbour){true, (int)row, (int)column};
        n.is = row >= -REACH && row <= REACH && column >= -REACH && column <= REACH &&
               is_everywhere(l, value, &n);
    }
    return n;
}

// ---- Whether it is such a loop

static bool need(struct look *l, nest_id value);

// Marks what the statement takes; false: there is something that such a kernel does not do, as read an
// element of the array that is no neighbour.
static bool need_statement(struct look *l, const struct nest_statement *s)
{
    if (s->kind == NEST_CONST || s->kind == NEST_INDEX)
        return true;
    if (s->kind != NEST_OP || s->n_results != 1 || cost_of_op(s->op, s->dtype) > OP_WORK)
        return false;
    for (uint32_t i = 0; i < s->n_in; i++)
        if (!need(l, s->in[i]))
            return false;
    return true;
}

static bool need(struct look *l, nest_id value)
{
    nest_id id = l->m->nest->values.at[value].statement;
    const struct nest_statement *s = nest_statement_at(l->m->nest, id);
    if (l->t.is_needed[id])
        return true;
    l->t.is_needed[id] = true;
    struct map_neighbour n = l->t.at[value] = neighbour_of(l, value);
    if (!n.is)
        return need_statement(l, s);
    int64_t row = n.row < 0 ? -n.row : n.row, column = n.column < 0 ? -n.column : n.column;
    l->t.reach = row > l->t.reach ? row : l->t.reach;
    l->t.reach = column > l->t.reach ? column : l->t.reach;
    return s->kind != NEST_LOAD || s->guard == NEST_NONE || need(l, s->guard);
}

// The body's only put, of all points; NULL: there is none such.
static const struct nest_statement *only_put(const struct look *l)
{
    const struct nest_statement *put = NULL;
    nest_for_each (s, l->m->nest, l->t.loop->body) {
        if (s->kind > NEST_PUT || (s->kind == NEST_PUT && put))
            return NULL;
        put = s->kind == NEST_PUT ? s : put;
    }
    const struct map_neighbour here = {true, 0, 0};
    bool is = put && !put->op && put->guard == NEST_NONE && put->index.count == 2 &&
              nest_index_factor(&put->index, l->t.row) == l->t.width &&
              nest_index_factor(&put->index, l->t.column) == 1 &&
              is_at(&l->t, put, 0, 0, &here);
    return is ? put : NULL;
}

// Whether the nest has but two buffers, f32[height, width] each.
static bool has_pair(const struct look *l)
{
    const struct nest *n = l->m->nest;
    for (uint32_t i = 0; i < n->buffers.count; i++)
        if (n->buffers.at[i].dtype != JOT_F32 ||
            n->buffers.at[i].count != l->t.height * l->t.width || !l->m->is_aligned[i])
            return false;
    return n->buffers.count == 2 && n->buffers.at[0].role == NEST_IN &&
           n->buffers.at[1].role == NEST_OUT;
}

bool map_trips_find(const struct map_gpu *m, nest_id loop, struct map_trips *out)
{
    const struct nest *n = m->nest;
    const struct nest_statement *s = nest_statement_at(n, loop);
    double work = 0;
    if (s->kind != NEST_PAR || s->n_axes != 2)
        return false;
    struct look l = {.m = m,
                     .known = arena_array(m->arena, struct nest_interval, n->axes.count + 1),
                     .t = {.loop = s, .row = s->axes[0], .column = s->axes[1]}};
    struct map_trips *t = &l.t;
    t->height = n->axes.at[t->row].extent;
    t->width = n->axes.at[t->column].extent;
    if (t->height < 2 * PARTS || t->width < GPU_WARP * MAP_TRIPS_LANES ||
        t->width % MAP_TRIPS_LANES || t->height * t->width < LEAST ||
        t->height * t->width > INT32_MAX || !has_pair(&l))
        return false;
    t->put = only_put(&l);
    t->at = arena_array(m->arena, struct map_neighbour, n->values.count + 1);
    t->is_needed = arena_array(m->arena, bool, n->statements.count + 1);
    if (!t->put || !need(&l, t->put->in[0]) || !t->reach)
        return false;
    nest_for_all (x, n)
        work += t->is_needed[nest_id_of(n, x)] && x->kind == NEST_OP
                    ? cost_of_op(x->op, x->dtype)
                    : 0;
    *out = *t;
    return work <= WORK;
}

bool map_trips_choose(const struct map_gpu *m, struct nest *n, nest_id loop)
{
    struct map_trips t;
    // An odd number of them, so that the last one puts in the other array.
    int64_t trips = MOST_TRIPS;
    if (m->is_phase || m->trips <= 1 || !map_trips_find(m, loop, &t))
        return false;
    while (m->trips % trips || trips * t.reach > MAP_TRIPS_HALO)
        trips -= 2;
    if (trips == 1)
        return false;
    n->special = NEST_TRIPS;
    n->threads[NEST_BLOCK_THREADS] = BLOCK;
    n->threads[NEST_TRIPS_OF_LAUNCH] = (unsigned)trips;
    return true;
}

// Of a loop whose only step is s, from one array into the other by turns.
static bool takes_turns(const struct nest_program *p, const struct nest_step *loop,
                        const struct nest_step *s)
{
    if (s->n_memories != 2)
        return false;
    const struct nest_memory *from = &p->memories.at[s->memories[0]];
    const struct nest_memory *to = &p->memories.at[s->memories[1]];
    return from->kind == NEST_TURN && to->kind == NEST_TURN && from->n_of == 2 &&
           to->n_of == 2 && from->loop == loop->loop && to->loop == loop->loop &&
           from->of[from->index % 2] == to->of[(to->index + 1) % 2] &&
           from->of[(from->index + 1) % 2] == to->of[to->index % 2];
}

const int64_t *map_trips_of(struct arena *arena, const struct nest_program *p)
{
    int64_t *trips = arena_array(arena, int64_t, p->nests.count + 1);
    uint32_t *uses = arena_array(arena, uint32_t, p->nests.count + 1);
    for (uint32_t i = 0; i < p->steps.count; i++) {
        const struct nest_step *s = &p->steps.at[i];
        if (s->kind != NEST_STEP_KERNEL)
            continue;
        bool is_all = uses[s->nest]++ == 0 && i > 0 && s[-1].kind == NEST_STEP_LOOP &&
                      s[1].kind == NEST_STEP_END && takes_turns(p, &s[-1], s);
        trips[s->nest] = is_all ? s[-1].trips : 1;
    }
    return trips;
}
