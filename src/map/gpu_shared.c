// SPDX-License-Identifier: Apache-2.0
// Loops that blocks of threads of a GPU share: transposed reads by tiles, running folds, folds of which there are few,
// and sums over the points of a network.
#include "map/gpu_shared.h"
#include "base/fold.h"
#include "ir/cost.h"

#include "map/gpu_groups.h"
#include "map/gpu_lanes.h"

#define SIDE 32
#define WIDE 64
#define TILES_BYTES (96 << 10) // of a tile and its mirror image, of which two fit
#define MANY_TILES (GPU_MULTIPROCESSORS * COST_WIDE_TILES)
#define DEAR_BLOCKS (GPU_MULTIPROCESSORS * COST_DEAR_BLOCKS)
#define LIGHT_BLOCKS (GPU_MULTIPROCESSORS * COST_LIGHT_BLOCKS)
#define RAGGED_COLUMNS (GPU_MULTIPROCESSORS * COST_RAGGED_COLUMNS)
#define PARTS_COLUMNS 64 // of a block

// ---- Tiles

bool map_is_turned(const struct nest *n, const struct nest_statement *s, nest_id along,
                   nest_id across)
{
    if (s->kind != NEST_LOAD || s->guard != NEST_NONE || dtype_is_complex(s->dtype) ||
        n->buffers.at[s->buffer].role != NEST_IN || nest_index_has_values(&s->index))
        return false;
    int64_t factor = nest_index_factor(&s->index, along), other;
    other = nest_index_factor(&s->index, across);
    return (other == 1 || other == -1) && (factor >= SIDE || factor <= -SIDE);
}

// Of shared memory.
static uint64_t tile_bytes(const struct nest *n, const struct map_tiles *t)
{
    uint64_t bytes = 0;
    nest_for_each (s, n, t->s->body)
        if (map_is_turned(n, s, t->along, t->across))
            bytes += (uint64_t)t->width * (t->width + 1) * jot_dtype_size(s->dtype);
    return bytes;
}

static int64_t tiles_along(const struct nest *n, const struct map_tiles *t, nest_id axis)
{
    return (n->axes.at[axis].extent + t->width - 1) / t->width;
}

bool map_tiles_mirror(const struct nest *n, const struct map_tiles *t)
{
    int64_t along = tiles_along(n, t, t->along);
    return t->s->n_axes == 2 && along % 2 == 0 && along == tiles_along(n, t, t->across) &&
           2 * tile_bytes(n, t) <= TILES_BYTES;
}

bool map_tiles_find(const struct map_gpu *m, nest_id loop, struct map_tiles *out)
{
    const struct nest_statement *s = nest_statement_at(m->nest, loop);
    *out = (struct map_tiles){
        .s = s, .along = s->axes[s->n_axes - 1], .across = NEST_NONE, .width = WIDE};
    nest_for_each (t, m->nest, s->body) {
        if (t->kind > NEST_PUT)
            return false;
        for (uint32_t k = 0; k + 1 < s->n_axes && out->across == NEST_NONE; k++)
            if (map_is_turned(m->nest, t, out->along, s->axes[k]))
                out->across = s->axes[k];
    }
    if (out->across == NEST_NONE)
        return false;
    int64_t along = m->nest->axes.at[out->along].extent;
    int64_t across = m->nest->axes.at[out->across].extent;
    if (along < SIDE || across < SIDE)
        return false;
    bool are_many = nest_extent(m->nest, s) / (WIDE * WIDE) >= MANY_TILES && !m->is_phase &&
                    2 * tile_bytes(m->nest, out) <= TILES_BYTES;
    if (!are_many || along % WIDE || across % WIDE)
        out->width = SIDE;
    out->are_two = map_tiles_mirror(m->nest, out);
    return true;
}

// ---- Running folds

uint32_t map_scan_yield(const struct nest *n, const struct nest_statement *s)
{
    const struct nest_block *b = &n->blocks.at[s->body];
    uint32_t at = 0;
    while (at < b->statements.count &&
           nest_statement_at(n, b->statements.at[at])->kind != NEST_YIELD)
        at++;
    return at;
}

bool map_is_long_scan(const struct nest *n, nest_id id)
{
    const struct nest_statement *s = nest_statement_at(n, id);
    if (s->kind != NEST_SCAN || s->n_axes != 1)
        return false;
    const struct nest_block *b = &n->blocks.at[s->body];
    uint32_t at = map_scan_yield(n, s);
    for (uint32_t i = 0; i < b->statements.count; i++)
        if (i != at && nest_statement_at(n, b->statements.at[i])->kind > NEST_PUT)
            return false;
    if (at == b->statements.count)
        return false;
    const struct nest_statement *yield = nest_statement_at(n, b->statements.at[at]);
    const struct nest_combine *c = &yield->combines[0];
    return yield->n_combines == 1 &&
           nest_extent(n, s) > (c->order == NEST_FREE ? GPU_WARP : MAP_SHORTEST_CHUNK);
}

nest_id map_scan_of_points(const struct nest *n, nest_id loop)
{
    const struct nest_statement *s = nest_statement_at(n, loop);
    if (s->kind != NEST_PAR || map_has_updates(n))
        return NEST_NONE;
    const struct nest_block *b = &n->blocks.at[s->body];
    for (uint32_t i = 0; i + 1 < b->statements.count; i++)
        if (nest_statement_at(n, b->statements.at[i])->kind >= NEST_PUT)
            return NEST_NONE;
    bool is = b->statements.count && map_is_long_scan(n, vec_last(&b->statements));
    return is ? vec_last(&b->statements) : NEST_NONE;
}

unsigned map_scan_columns(const struct nest *n, nest_id loop, nest_id scan)
{
    const struct nest_statement *points = nest_statement_at(n, loop),
                                *s = nest_statement_at(n, scan);
    struct nest_lines all = {0};
    unsigned columns = 1;
    nest_for_each (t, n, s->body) {
        if (t->kind != NEST_LOAD && t->kind != NEST_PUT)
            continue;
        struct nest_lines one = nest_lines_of(n, points, s, t);
        all.of_points += one.of_points;
        all.of_inner += one.of_inner;
    }
    while (columns < GPU_WARP && columns < nest_extent(n, points))
        columns *= 2;
    return nest_lies_along(all) ? columns : 0;
}

// ---- Folds of few points

nest_id map_shared_fold(const struct map_gpu *m, nest_id loop)
{
    const struct nest_statement *s = nest_statement_at(m->nest, loop);
    if (s->kind != NEST_PAR || map_has_updates(m->nest) || map_has_locals(m->nest))
        return NEST_NONE;
    nest_id fold = NEST_NONE;
    nest_for_each (t, m->nest, s->body) {
        nest_id id = nest_id_of(m->nest, t);
        if (t->kind < NEST_PUT || (t->kind == NEST_PUT && !t->op))
            continue;
        if (t->kind != NEST_FOLD || fold != NEST_NONE || !nest_fold_is_leaf(m->nest, id))
            return NEST_NONE;
        fold = id;
    }
    if (fold == NEST_NONE ||
        nest_extent(m->nest, nest_statement_at(m->nest, fold)) <= MAP_MOST_OF_ONE_BLOCK ||
        (nest_lies_along(nest_lines_in(m->nest, s)) && map_columns_of(m, s)))
        return NEST_NONE;
    struct nest_time time =
        nest_time_of(m->nest, nest_statement_at(m->nest, fold), nest_extent(m->nest, s));
    return time.apart > COST_GROUP_BETTER * time.shared + COST_TOGETHER_US ? fold : NEST_NONE;
}

uint64_t map_term_bytes(const struct nest_combine *c, int64_t count)
{
    uint64_t bytes = (uint64_t)count * dtype_get(c->dtype)->bytes;
    return (bytes + 63) / 64 * 64;
}

uint64_t map_terms_bytes(const struct nest_statement *fold, int64_t count)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < fold->n_combines; i++)
        bytes += fold->combines[i].n * map_term_bytes(&fold->combines[i], count);
    return bytes;
}

bool map_has_terms(const struct nest *n, nest_id fold, int64_t points)
{
    const struct nest_statement *s = nest_statement_at(n, fold);
    for (uint32_t i = 0; i < s->n_combines; i++)
        if (dtype_is_complex(s->combines[i].dtype))
            return false;
    int64_t length = nest_extent(n, s), blocks = points * (length / fold_block(length));
    double work = nest_work(n, s->body);
    struct nest_time time = nest_time_of(n, s, points);
    bool is_long = length >= COST_LEAST_TERMS ||
                   time.apart > COST_GROUP_BETTER * time.shared + 2 * COST_TOGETHER_US;
    return is_long && ((work >= COST_DEAR_TERM && blocks < DEAR_BLOCKS) ||
                       (work >= COST_LIGHT_TERM && blocks < LIGHT_BLOCKS));
}

// Loads of the block that are beside their neighbours neither along the loop's last axis nor the same along it; by
// value, what differs along it.
static uint32_t count_apart(const struct nest *n, uint32_t block, nest_id axis,
                            const bool *varies)
{
    uint32_t count = 0;
    nest_for_each (s, n, block) {
        int64_t factor = s->kind == NEST_LOAD ? nest_index_factor(&s->index, axis) : 0;
        count += factor < -1 || factor > 1 ||
                 (s->kind == NEST_LOAD && nest_index_takes(&s->index, varies));
    }
    return count;
}

// Of what the fold reads, along an axis of a loop.
static uint32_t reads_apart(const struct map_gpu *m, const struct nest_statement *fold,
                            const struct nest_statement *loop, nest_id axis)
{
    const bool *varies =
        map_varies(m->nest, m->arena, m->uses, nest_id_of(m->nest, loop), axis);
    return count_apart(m->nest, fold->body, axis, varies);
}

// The axis in whose elements neighbouring threads differ: the last one, but for one that each thread has whole.
static nest_id threads_axis(const struct nest *n, const struct nest_statement *loop,
                            const struct map_points *p)
{
    uint32_t at = loop->n_axes - 1u;
    while (at && loop->axes[at] == p->axis && n->axes.at[p->axis].extent == p->lanes)
        at--;
    return loop->axes[at];
}

static bool is_map_apart(const struct nest *n, const struct nest_statement *map,
                         const bool *depends)
{
    if (nest_extent(n, map) == 1) // which may put over what the rest reads
        return false;
    nest_for_each (s, n, map->body)
        if (s->kind > NEST_PUT || (s->kind == NEST_PUT && s->op) || nest_takes(s, depends))
            return false;
    return true;
}

nest_id map_only_fold(const struct nest *n, const struct nest_statement *points, bool *depends)
{
    nest_id fold = NEST_NONE;
    nest_for_each (x, n, points->body) {
        nest_id id = nest_id_of(n, x);
        if (x->kind < NEST_PUT)
            depends[x->result] = nest_takes(x, depends);
        if (x->kind <= NEST_PUT || (x->kind == NEST_MAP && is_map_apart(n, x, depends)))
            continue;
        if (x->kind != NEST_FOLD || fold != NEST_NONE || !nest_fold_is_leaf(n, id))
            return NEST_NONE;
        fold = id;
        for (uint32_t k = 0; k < x->n_results; k++)
            depends[x->result + k] = true;
    }
    return fold;
}

bool map_parts_choose(const struct map_gpu *m, struct nest *n, nest_id loop)
{
    const struct nest_statement *s = nest_statement_at(n, loop);
    nest_id only = map_only_fold(n, s, arena_array(m->arena, bool, n->values.count + 1));
    if (only == NEST_NONE || map_has_locals(n))
        return false;
    const struct nest_statement *fold = nest_statement_at(n, only);
    struct map_gpu asked = map_gpu_of_columns(m);
    struct map_points p = map_points_make(&asked, loop);
    if (n->axes.at[p.axis].extent % p.lanes) {
        p.lanes = 1;
        p.count = nest_extent(n, s);
    }
    int64_t length = nest_extent(n, fold);
    int64_t most = map_columns_of(m, s) ? COST_FEW_COLUMNS : RAGGED_COLUMNS;
    if (length < 8 * FOLD_LANES || length * nest_extent(n, s) < COST_PARTS || p.count > most ||
        reads_apart(m, fold, fold, fold->axes[fold->n_axes - 1]) <=
            reads_apart(m, fold, s, threads_axis(n, s, &p)))
        return false;
    unsigned columns = 1;
    while (columns < PARTS_COLUMNS && columns < p.count)
        columns *= 2;
    n->threads[NEST_BLOCK_THREADS] = GPU_BLOCK;
    n->threads[NEST_GROUP_THREADS] = GPU_BLOCK / columns;
    n->threads[NEST_COLUMNS] = columns;
    map_points_write(n, &p);
    return true;
}

// ---- Networks

static bool has_contract(const struct nest *n, uint32_t block)
{
    nest_for_each (s, n, block)
        if (s->kind == NEST_CONTRACT)
            return true;
    return false;
}

static bool is_sum(enum ir_op op) { return op == IR_fma || op == IR_reduce_sum; }

// Sums of one floating-point type without guards are what there is code for.
bool map_is_summed(const struct nest *n, nest_id loop, jot_dtype *d)
{
    const struct nest_statement *fold = nest_statement_at(n, loop);
    bool is_known = false;
    nest_for_all (s, n) {
        if (s->kind != NEST_PUT || !s->op)
            continue;
        jot_dtype put = n->buffers.at[s->buffer].dtype;
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

bool map_is_network(const struct nest *n, nest_id loop)
{
    const struct nest_statement *s = nest_statement_at(n, loop);
    jot_dtype d = JOT_F32;
    return s->kind == NEST_FOLD && s->n_axes == 1 && has_contract(n, s->body) &&
           map_is_summed(n, loop, &d);
}
