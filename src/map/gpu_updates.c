// SPDX-License-Identifier: Apache-2.0
// Long loops of updates whose elements are data, one after the other for each element, which threads of a GPU share by
// elements:
//
//     par p < P { seq j < n { ... %e = load y[%at]; %f = add %e, %u; put y[%at] = %f if %g } }
#include "map/gpu_updates.h"
#include "base/count.h"
#include "ir/cost.h"

#include "map/gpu_counting_sort.h"

#include <stdlib.h>
#include <string.h>

#define BINS 256          // where no more are wanted
#define MOST_BINS 1024    // for warps enough to keep a GPU busy
#define LEAST_BINS 8      // a block has as many warps
#define FEW_TURNS 32      // of a bin
#define BUSY 4096         // warps
#define TURNS_OF_BIN 64   // that are worth more
#define LEAST_WINDOW 8    // elements
#define LEAST_CHUNK 1024  // turns that a block sorts no sooner than these
#define MOST_WINDOW 16384 // of windows
#define TABLE_BYTES 8192  // of the elements of a bin
#define VALUE_BYTES 16    // of all copies
#define FEW_BLOCKS (GPU_MULTIPROCESSORS / 4)

// The loop over turns that a block ends in, with plain statements before it; NULL for none.
static const struct nest_statement *turns_in(const struct map_gpu *m, uint32_t block)
{
    const struct nest_block *b = &m->nest->blocks.at[block];
    for (uint32_t i = 0; i + 1 < b->statements.count; i++)
        if (!nest_is_scalar(nest_statement_at(m->nest, b->statements.at[i])))
            return NULL;
    const struct nest_statement *last =
        b->statements.count ? nest_statement_at(m->nest, vec_last(&b->statements)) : NULL;
    return last && last->kind == NEST_SEQ ? last : NULL;
}

// The loops over turns: alone in the body of the loop over points, or without one.
static bool find_turns(const struct map_gpu *m, struct map_updates *u,
                       const struct nest_statement *s)
{
    struct nest_block *body = arena_new(m->arena, struct nest_block);
    s = u->par ? turns_in(m, s->body) : s;
    u->turns = 1;
    while (s && s->kind == NEST_SEQ) {
        const struct nest_statement *next = turns_in(m, s->body);
        const struct nest_block *b = &m->nest->blocks.at[s->body];
        if (u->n_loops == MAP_TURN_LOOPS || s->n_axes != 1 || s->n_in || s->n_results)
            return false;
        u->loops[u->n_loops++] = s;
        u->turns *= nest_extent(m->nest, s);
        for (uint32_t i = 0; i + (next != NULL) < b->statements.count; i++)
            vec_push(m->arena, &body->statements, b->statements.at[i]);
        s = next;
    }
    u->body = body;
    return u->n_loops > 0;
}

bool map_is_of_turns(const struct map_updates *u, nest_id axis)
{
    for (uint32_t i = 0; i < u->n_loops; i++)
        if (u->loops[i]->axes[0] == axis)
            return true;
    return false;
}

static bool find_accesses(const struct map_gpu *m, struct map_updates *u)
{
    for (uint32_t i = 0; i < u->body->statements.count; i++) {
        const struct nest_statement *s = nest_statement_at(m->nest, u->body->statements.at[i]);
        if (s->kind == NEST_PUT && (u->put || s->op))
            return false;
        if (s->kind == NEST_PUT)
            u->put = s;
        else if (!nest_is_scalar(s) && s->kind != NEST_YIELD)
            return false;
    }
    for (uint32_t i = 0; u->put && i < u->body->statements.count; i++) {
        const struct nest_statement *s = nest_statement_at(m->nest, u->body->statements.at[i]);
        if (s->kind != NEST_LOAD || s->buffer != u->put->buffer)
            continue;
        if (u->load || s->guard != NEST_NONE || !nest_index_equal(&s->index, &u->put->index))
            return false;
        u->load = s;
    }
    return u->put && m->nest->buffers.at[u->put->buffer].role != NEST_LOCAL;
}

static void find_dependent(const struct map_gpu *m, struct map_updates *u)
{
    u->depends = arena_array(m->arena, bool, m->nest->values.count + 1);
    for (uint32_t i = 0; i < u->body->statements.count; i++) {
        const struct nest_statement *s = nest_statement_at(m->nest, u->body->statements.at[i]);
        bool depends = s == u->load || nest_takes(s, u->depends);
        if (s->kind != NEST_PUT && s->result != NEST_NONE)
            u->depends[s->result] = depends;
    }
}

// Of the index what turns change, without what all of it is a multiple of: neighbouring rows of elements
// go to other bins.
static struct nest_index changing_part(const struct map_gpu *m, const struct map_updates *u,
                                       int64_t *out_common)
{
    const struct nest_index *x = &u->put->index;
    struct nest_term *terms = arena_array(m->arena, struct nest_term, x->count + 1);
    int64_t common = 0;
    int n = 0;
    for (uint32_t i = 0; i < x->count; i++) {
        struct nest_term t = x->terms[i];
        if (!t.is_value && !map_is_of_turns(u, t.id))
            continue;
        terms[n++] = t;
        common = count_common_divisor(common, llabs(t.factor));
    }
    *out_common = common;
    for (int i = 0; i < n; i++)
        terms[i].factor /= common;
    return nest_index_make(m->arena, 0, n, terms);
}

// The rows of a point, 0 where that is not known: its elements lie together, or between those of other points.
static int64_t count_rows(const struct map_gpu *m, const struct map_updates *u, int64_t common)
{
    const struct nest_index *x = &u->put->index;
    int64_t end = m->nest->buffers.at[u->put->buffer].count, between = 0;
    for (uint32_t i = 0; i < x->count; i++) {
        const struct nest_term *t = &x->terms[i];
        if (t->factor <= 0)
            return 0;
        if (t->is_value || map_is_of_turns(u, t->id))
            continue;
        if (t->factor < common)
            between += t->factor * (m->nest->axes.at[t->id].extent - 1);
        else if (t->factor % common)
            return 0;
        else if (t->factor < end)
            end = t->factor;
    }
    for (uint32_t i = 0; i < x->count; i++)
        if ((x->terms[i].is_value || map_is_of_turns(u, x->terms[i].id)) &&
            x->terms[i].factor >= end)
            return 0;
    return x->constant || between >= common ? 0 : (end + common - 1) / common;
}

// Where a row is: what the put adds to it, and its number in place of the first value.
static struct nest_index index_of_row(const struct map_gpu *m, const struct map_updates *u,
                                      int64_t common)
{
    const struct nest_index *x = &u->put->index;
    struct nest_term *terms = arena_array(m->arena, struct nest_term, x->count + 1);
    int n = 0;
    nest_id first = NEST_NONE;
    for (uint32_t i = x->count; i-- > 0;) {
        if (x->terms[i].is_value)
            first = x->terms[i].id;
        else if (!map_is_of_turns(u, x->terms[i].id))
            terms[n++] = x->terms[i];
    }
    terms[n++] = (struct nest_term){.id = first, .is_value = true, .factor = common};
    return nest_index_make(m->arena, x->constant, n, terms);
}

// What the order of the turns has, and whether a warp has all elements of its bin.
static void find_carried(const struct map_gpu *m, struct map_updates *u, int64_t common)
{
    int64_t bytes = dtype_get(m->nest->buffers.at[u->put->buffer].dtype)->bytes;
    u->rows =
        u->window == 1 && bytes >= (int64_t)sizeof(uint32_t) ? count_rows(m, u, common) : 0;
    u->slots = (u->rows + u->bins - 1) / u->bins;
    u->is_carried = u->rows > 0 && u->slots <= UINT16_MAX &&
                    map_value_find(m, u, &u->value, &u->dtype) &&
                    u->copies * map_value_bytes(u->dtype) <= VALUE_BYTES;
    if (!u->is_carried)
        return;
    u->at = index_of_row(m, u, common);
    u->has_table =
        u->load && 2 * u->turns >= u->rows && u->slots * (u->copies * bytes + 1) <= TABLE_BYTES;
}

static int64_t blocks_of(const struct map_updates *u, int64_t each)
{
    return (u->points * u->turns + each * MAP_ORDER_BLOCK - 1) / (each * MAP_ORDER_BLOCK);
}

// What a block has of copies in shared memory is no more than of one number of 8 bytes.  Chunks so short that most multiprocessors have one; of two turns of a thread they are not halved where that makes
// many blocks of few, beside which others run.
static void find_chunks(struct map_updates *u)
{
    int64_t each = u->copies > 2 ? MAP_ORDER_TURNS / 2 : MAP_ORDER_TURNS;
    for (; each > 1; each /= 2) {
        int64_t next = blocks_of(u, each / 2);
        bool is_few = each == 2 && blocks_of(u, each) <= FEW_BLOCKS;
        if (next > (is_few ? FEW_BLOCKS : GPU_MULTIPROCESSORS))
            break;
    }
    u->chunk = each * MAP_ORDER_BLOCK;
    u->chunks = (u->turns + u->chunk - 1) / u->chunk;
    u->length = u->turns < u->chunk ? (u->turns + 15) / 16 * 16 : u->chunk;
}

// Axes of points that say neither where an update goes, but for an offset, nor whether there is one.
static void find_window(const struct map_gpu *m, nest_id par, struct map_updates *u)
{
    const struct nest_index *x = &u->put->index;
    bool is_close = false;
    u->window = 1;
    for (uint32_t k = 0; u->par && k < u->par->n_axes; k++) {
        nest_id axis = u->par->axes[k];
        const bool *varies = map_varies(m->nest, m->arena, m->uses, par, axis);
        bool is = (u->put->guard == NEST_NONE || !varies[u->put->guard]) &&
                  !nest_index_takes(x, varies);
        u->is_window[axis] = is;
        u->window *= is ? m->nest->axes.at[axis].extent : 1;
        is_close |= is && nest_index_factor(x, axis) == 1 &&
                    m->nest->axes.at[axis].extent >= LEAST_WINDOW;
    }
    u->copies = 1;
    if (is_close && u->window <= MOST_WINDOW)
        return;
    if (u->window <= MAP_COPIES)
        u->copies = u->window;
    else
        memset(u->is_window, 0, m->nest->axes.count * sizeof *u->is_window);
    u->window = 1;
}

// The chunks of the points, the bins of their elements, and what the order has.
static void lay_out(const struct map_gpu *m, struct map_updates *u, int64_t common)
{
    u->points = (u->par ? nest_extent(m->nest, u->par) : 1) / u->window / u->copies;
    find_chunks(u);
    int64_t parts = u->points * ((u->window + GPU_WARP - 1) / GPU_WARP);
    for (u->bins = BINS; u->bins < MOST_BINS && u->bins * parts < BUSY &&
                         u->turns >= 2 * u->bins * TURNS_OF_BIN;)
        u->bins *= 2;
    // A bin of few turns is not worth a warp where there are enough of them.
    while (u->bins > LEAST_BINS && u->bins / 2 * parts >= BUSY &&
           u->turns < u->bins * FEW_TURNS)
        u->bins /= 2;
    u->offsets = (u->points * u->chunks * (u->bins + 1) + 15) / 16 * 16;
    find_carried(m, u, common);
}

// Whether the turns of all points are sorted in less time than a thread of each point makes its own.
static bool is_sorted_sooner(const struct map_updates *u)
{
    double turns = (double)u->turns, chunk = turns < LEAST_CHUNK ? LEAST_CHUNK : turns;
    return u->turns >= COST_SORTED_TURNS &&
           COST_SORT_US + (double)u->points * chunk / COST_SORTED_PER_US <
               turns / COST_TURNS_PER_US;
}

bool map_updates_find(const struct map_gpu *m, nest_id loop, struct map_updates *u)
{
    const struct nest_statement *s = nest_statement_at(m->nest, loop);
    *u = (struct map_updates){.par = s->kind == NEST_PAR ? s : NULL};
    if (!find_turns(m, u, s) || !find_accesses(m, u))
        return false;
    find_dependent(m, u);
    // What says where it goes, and whether, is known without it.
    const struct nest_index *to = &u->put->index;
    bool has_guard = u->put->guard != NEST_NONE;
    if ((has_guard && u->depends[u->put->guard]) || nest_index_takes(to, u->depends) ||
        !nest_index_has_values(to))
        return false;
    u->is_window = arena_array(m->arena, bool, m->nest->axes.count + 1);
    find_window(m, loop, u);
    int64_t common;
    u->row = changing_part(m, u, &common);
    lay_out(m, u, common);
    if (u->copies > 1 && !u->is_carried) {
        u->copies = 1;
        memset(u->is_window, 0, m->nest->axes.count * sizeof *u->is_window);
        lay_out(m, u, common);
    }
    return u->points * u->turns <= INT32_MAX && is_sorted_sooner(u) &&
           m->nest->buffers.at[u->put->buffer].count <= INT32_MAX;
}
