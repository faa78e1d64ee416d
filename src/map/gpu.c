// SPDX-License-Identifier: Apache-2.0
// Who does what of a nest on a GPU:
//
//     par @thread i                              a thread has a few points, of scalars, short folds, loops over time
//     par @thread i @tile 32, j @tile 32         a block of threads has 32 by 32 points, whose reads lie along i
//     par @group i, columns 32                   threads of several warps have a point, of long folds of i's neighbours
//     par @grid i { fold @thread }, columns 32   the same of few points: blocks of threads have parts of the folds
//     par @group i { fold @thread }              a group of threads has a point, of folds and maps along contiguous axes
//     fold @thread i, alone or in a par @grid    blocks of threads have blocks of the fold; the last one to end brings
//                                                them together
//     scan @thread i, alone or in a par @grid    warps have parts of it; of many points a warp has a point
//     par @grid i { scan @thread }, columns 32   threads have parts of it, those of i's neighbours side by side
//     seq @owner i, alone or in a par @grid      warps or threads have elements
//     as network                                 fold i { contract, sums over i }: a thread has a point, groups the sums
//     as attention                               par i { products and a softmax }: warps have tiles of it
//     as trips                                   loop { par i, j { neighbours } }: warps have tiles for several trips
//     grid 1                                     anything else: one block of threads
#include "map/gpu.h"

#include "map/gpu_again.h"
#include "map/gpu_ahead.h"
#include "map/gpu_attention.h"
#include "map/gpu_early.h"
#include "map/gpu_groups.h"
#include "map/gpu_lanes.h"
#include "map/gpu_network.h"
#include "map/gpu_order.h"
#include "map/gpu_shared.h"
#include "map/gpu_trips.h"
#include "map/gpu_updates.h"

#include "base/fold.h"

#include <math.h>
#include <string.h>

#define ONE_BLOCK 512
#define SMALL_BLOCK 64
#define MANY_VECTORS (GPU_MULTIPROCESSORS * COST_VECTORS_IN_TURN)
#define MOST_TURNS 4
#define RESIDENT_FOR_TWO 6 // blocks, 40 registers a thread
#define MOST_LOADS 2       // that these have room for
#define RESIDENT_FOR_NUMBERS 6
#define RESIDENT_FOR_TERMS 5 // of a fold, 48 registers
#define LIGHT_OP 30.0        // of an operation
#define FEW_VALUES 36        // of a thread, that all of these have room for
#define NOT_LIGHT UINT32_MAX
#define STRIPS_BLOCK 64
#define OWN_BYTES (48 << 10) // of the terms of a block of a fold
#define OWN_BLOCK 256        // threads that make them
#define SHORT_SCAN 16        // elements of a running fold

bool map_reads_before(const struct nest *n)
{
    nest_for_each (s, n, 0)
        if (s->kind == NEST_LOAD)
            return true;
    return false;
}

// Whether a thread is to wait for what it reads of two vectors at once: where it has that much to do
// with them, or where it has waited for their indices.
static bool has_two_turns(const struct map_gpu *m, const struct map_points *p)
{
    bool reads = false, waits = map_turn_work(m->nest, p->s->body) >= COST_OF_TWO_TURNS;
    nest_for_each (s, m->nest, p->s->body) {
        if (s->kind > NEST_PUT || (s->kind == NEST_PUT && s->op))
            return false;
        reads |= s->kind == NEST_LOAD;
        waits |= s->kind == NEST_LOAD && nest_index_has_values(&s->index);
    }
    return reads && waits && !map_reads_before(m->nest) && !m->is_phase && p->lanes > 1 &&
           p->rows == 1 && p->count >= MANY_VECTORS && p->count % (2 * GPU_BLOCK) == 0 &&
           m->nest->axes.at[p->axis].extent % p->lanes == 0 &&
           map_is_short(m->nest, p->s->body, 2);
}

// Blocks that a multiprocessor is to have at once of a map whose threads have two vectors each, 0: any.
// With registers for eight of them ptxas reads a vector only when the one before has been worked on.
static unsigned resident_for_two(const struct map_gpu *m, nest_id loop)
{
    struct map_points p = map_points_make(m, loop);
    unsigned loads = 0;
    map_points_widen(m, &p);
    nest_for_each (s, m->nest, p.s->body) {
        loads += s->kind == NEST_LOAD;
        if (s->kind == NEST_OP && jot_dtype_size(s->dtype) > 4)
            return 0;
    }
    bool waits = map_turn_work(m->nest, p.s->body) >= COST_OF_TWO_TURNS;
    return loads <= MOST_LOADS && waits && has_two_turns(m, &p) ? RESIDENT_FOR_TWO : 0;
}

// The values of a loop's body that are needed at once, at most; NOT_LIGHT where they are not of 32 bits,
// stand in loops, or have functions that need many of their own.
static uint32_t values_at_once(const struct map_gpu *m, const struct nest_statement *loop)
{
    const struct nest_block *b = &m->nest->blocks.at[loop->body];
    uint32_t n = b->statements.count, now = 0, most = 0;
    uint32_t *last = arena_array(m->arena, uint32_t, m->nest->values.count + 1);
    bool *lives = arena_array(m->arena, bool, m->nest->values.count + 1);
    for (uint32_t i = 0; i < n; i++) {
        const struct nest_statement *s = nest_statement_at(m->nest, b->statements.at[i]);
        bool is_op = s->kind == NEST_OP;
        if (s->kind > NEST_PUT ||
            (is_op && (jot_dtype_size(s->dtype) > 4 ||
                       (s->op != IR_threefry2x32 && cost_of_op(s->op, s->dtype) > LIGHT_OP))))
            return NOT_LIGHT;
        for (uint32_t k = 0; k < s->n_in; k++)
            last[s->in[k]] = i;
    }
    for (uint32_t i = 0; i < loop->n_combines; i++)
        for (uint32_t k = 0; k < loop->combines[i].n; k++)
            last[loop->combines[i].value[k]] = n;
    for (uint32_t i = 0; i < n; i++) {
        const struct nest_statement *s = nest_statement_at(m->nest, b->statements.at[i]);
        for (uint32_t k = 0; k < s->n_in; k++)
            if (lives[s->in[k]] && last[s->in[k]] == i) {
                lives[s->in[k]] = false;
                now--;
            }
        for (uint32_t k = 0; k < s->n_results && s->kind != NEST_CONST; k++) {
            lives[s->result + k] = true;
            now++;
        }
        most = now > most ? now : most;
    }
    return most;
}

// The same of a map that makes numbers of random bits, in which a thread mostly waits for itself: with
// registers for eight blocks ptxas leaves it nothing else to do meanwhile.
static unsigned resident_for_numbers(const struct map_gpu *m, nest_id loop)
{
    const struct nest_statement *s = nest_statement_at(m->nest, loop);
    double work = 0;
    bool has_bits = false;
    nest_for_each (t, m->nest, s->body) {
        has_bits |= t->kind == NEST_OP && t->op == IR_threefry2x32;
        work += t->kind == NEST_OP && t->dtype == JOT_F32 ? cost_of_op(t->op, JOT_F32) : 0;
    }
    uint64_t values = (uint64_t)values_at_once(m, s) * map_points_make(m, loop).lanes;
    bool is = has_bits && work >= COST_OF_TWO_TURNS && values <= FEW_VALUES;
    return is ? RESIDENT_FOR_NUMBERS : 0;
}

static unsigned resident_for_maps(const struct map_gpu *m, nest_id loop)
{
    unsigned two = resident_for_two(m, loop);
    return two ? two : resident_for_numbers(m, loop);
}

// Whether points are much work without loops: a thread has so many registers that a multiprocessor has
// few blocks, and the last ones leave it waiting unless they are small.
static bool has_many_registers(const struct map_gpu *m, uint32_t block)
{
    nest_for_each (s, m->nest, block)
        if (s->kind > NEST_PUT)
            return false;
    return map_turn_work(m->nest, block) >= COST_LONG_POINT;
}

// ---- Levels

static void set_level(struct nest *n, nest_id loop, enum nest_level level)
{
    n->statements.at[loop].level = level;
}

// All loops of the block are done by who is there, one element after the other.
static void do_serially(struct nest *n, uint32_t block)
{
    nest_for_below (s, n, block)
        if (s->n_axes && s->kind != NEST_CONTRACT)
            set_level(n, nest_id_of(n, s), NEST_SERIALLY);
}

// A thread has so many neighbouring elements.
static void do_by_threads(struct nest *n, nest_id loop, unsigned lanes)
{
    const struct nest_statement *s = nest_statement_at(n, loop);
    n->axes.at[s->axes[s->n_axes - 1]].vector = lanes > 1 ? lanes : 0;
    set_level(n, loop, NEST_THREAD);
    do_serially(n, n->statements.at[loop].body);
}

// Whether threads go through the loop as they do through folds of a row as long, each with all that it has written out.
static bool is_of_row(const struct nest *n, nest_id loop, int64_t length)
{
    const struct nest_statement *s = nest_statement_at(n, loop);
    struct map_row r = map_row_of(n, s, n->threads[NEST_GROUP_THREADS], map_vector(n, s));
    return s->kind != NEST_FOLD && s->n_axes == 1 && r.length == length && r.is_exact &&
           r.parts == 1 && r.length % r.lanes == 0 && r.blocks % r.teams == 0 &&
           map_is_short(n, s->body, length / n->threads[NEST_GROUP_THREADS] / r.lanes);
}

// Whether the threads of a group share the loop.
static bool is_for_group(const struct nest *n, nest_id loop)
{
    const struct nest_statement *s = nest_statement_at(n, loop);
    int64_t length = nest_extent(n, s);
    if (s->kind == NEST_FOLD && n->threads[NEST_COLUMNS])
        return !nest_accumulates(n, loop) && length > fold_block(length);
    return s->kind == NEST_PAR || s->kind == NEST_MAP || nest_fold_is_leaf(n, loop);
}

// Neighbouring elements of a loop that threads of a group share, which go as the row does that is as long.
static unsigned lanes_of_row(const struct map_gpu *m, const struct nest *n,
                             const struct nest_statement *s, const struct map_row *row)
{
    unsigned group = n->threads[NEST_GROUP_THREADS];
    nest_id axis = s->axes[s->n_axes - 1];
    if (n->threads[NEST_COLUMNS])
        return 1;
    if (row->lanes && row->length == nest_extent(n, s) &&
        n->axes.at[axis].extent % row->lanes == 0 && map_may_have_lanes(m, s, axis))
        return row->lanes;
    if (s->kind == NEST_FOLD)
        return map_row_make(m, s, group).lanes;
    return nest_extent(n, s) <= group ? 1 : map_lanes(m, s, axis);
}

// What the threads of a group do of the block: loops over time together.
static void share_block(const struct map_gpu *m, struct nest *n, uint32_t block,
                        const struct map_row *row)
{
    nest_for_each (s, n, block) {
        nest_id id = nest_id_of(n, s);
        if (is_for_group(n, id)) {
            do_by_threads(n, id, lanes_of_row(m, n, s, row));
            if (row->length && is_of_row(n, id, row->length))
                set_level(n, id, NEST_IN_ROW);
            else if (s->kind != NEST_FOLD)
                map_turns_choose(n, id);
            else if (!n->threads[NEST_COLUMNS])
                map_fold_turns_choose(n, id);
            continue;
        }
        if (s->kind == NEST_FOLD || s->kind == NEST_SCAN || s->kind == NEST_SEQ)
            set_level(n, id, NEST_SERIALLY);
        if (s->kind == NEST_FOLD || s->kind == NEST_SCAN) {
            do_serially(n, s->body);
        } else {
            share_block(m, n, s->body, row);
            share_block(m, n, s->other, row);
        }
    }
}

static void share(const struct map_gpu *m, struct nest *n, uint32_t block)
{
    struct map_gpu asked = map_gpu_of_group(m);
    nest_id widest = map_longest_loop(n, block);
    struct map_row row = {0};
    if (widest != NEST_NONE && nest_fold_is_leaf(n, widest) && !n->threads[NEST_COLUMNS])
        row =
            map_row_make(&asked, nest_statement_at(n, widest), n->threads[NEST_GROUP_THREADS]);
    share_block(&asked, n, block, &row);
}

// Locals that are not of one element of a loop that threads share are of the group.
static void set_spaces(const struct map_gpu *m, struct nest *n)
{
    nest_id *scopes = arena_array(m->arena, nest_id, n->buffers.count + 1);
    nest_local_scopes(n, scopes);
    bool has_groups = n->threads[NEST_GROUP_THREADS] > 1 && !n->special;
    for (uint32_t i = 0; has_groups && i < n->buffers.count; i++) {
        struct nest_buffer *b = &n->buffers.at[i];
        bool is_common =
            scopes[i] == NEST_NONE || nest_statement_at(n, scopes[i])->level == NEST_GROUP;
        if (b->role == NEST_LOCAL && b->space == NEST_OWN && is_common)
            b->space = NEST_SHARED;
    }
}

static void clear(struct nest *n)
{
    memset(n->threads, 0, sizeof n->threads);
    n->special = NEST_ORDINARY;
    for (uint32_t i = 0; i < n->axes.count; i++)
        n->axes.at[i].vector = n->axes.at[i].tile = n->axes.at[i].rows = n->axes.at[i].segment =
            n->axes.at[i].early = 0;
    for (uint32_t i = 0; i < n->statements.count; i++) {
        n->statements.at[i].level = NEST_NO_LEVEL;
        n->statements.at[i].turns = n->statements.at[i].at_once = 0;
        n->statements.at[i].terms = NEST_OWN;
    }
    for (uint32_t i = 0; i < n->buffers.count; i++)
        n->buffers.at[i].space = NEST_OWN;
}

// ---- Loops that threads, groups or blocks have

// Whether as many blocks of threads as the fold has blocks keep all multiprocessors busy to the end.
static bool are_even(const struct nest *n, const struct nest_statement *fold, int64_t points)
{
    int64_t length = nest_extent(n, fold), block = fold_block(length);
    int64_t count = points * (length / block),
            turns = (count + GPU_MULTIPROCESSORS - 1) / GPU_MULTIPROCESSORS;
    return map_terms_bytes(fold, block) <= OWN_BYTES &&
           8 * count >= 7 * turns * GPU_MULTIPROCESSORS;
}

// Blocks of threads have blocks of the fold, which so many points have each.  Few blocks of the fold are those of
// as many blocks of threads.
static void choose_blocks(const struct map_gpu *m, struct nest *n, nest_id fold, int64_t points)
{
    struct map_gpu asked = map_gpu_of_group(m);
    const struct nest_statement *s = nest_statement_at(n, fold);
    unsigned group = GPU_BLOCK;
    struct map_row row = map_row_make(&asked, s, group);
    while (group > GPU_WARP && points * (row.blocks / row.teams) < GPU_MULTIPROCESSORS)
        row = map_row_make(&asked, s, group /= 2);
    if (group == GPU_BLOCK && map_turn_work(n, s->body) >= COST_LONG_POINT &&
        (uint64_t)values_at_once(m, s) * row.lanes <= FEW_VALUES)
        n->threads[NEST_RESIDENT] = RESIDENT_FOR_TERMS;
    enum nest_space terms = !map_has_terms(n, fold, points) ? NEST_OWN
                            : are_even(n, s, points)        ? NEST_SHARED
                                                            : NEST_SCRATCH;
    if (terms == NEST_SHARED)
        row = map_row_make(&asked, s, group = OWN_BLOCK);
    n->statements.at[fold].terms = terms;
    n->threads[NEST_BLOCK_THREADS] = n->threads[NEST_GROUP_THREADS] = group;
    do_by_threads(n, fold, row.lanes);
    map_fold_turns_choose(n, fold);
    n->statements.at[fold].turns = 0; // a block of threads has a round
}

// Threads have the elements that the loop updates.
static bool choose_updates(const struct map_gpu *m, struct nest *n, nest_id loop)
{
    struct map_updates u;
    if (!map_updates_find(m, loop, &u))
        return false;
    n->threads[NEST_BLOCK_THREADS] = GPU_BLOCK;
    if (u.par)
        set_level(n, loop, NEST_GRID);
    set_level(n, nest_id_of(n, u.loops[0]), NEST_OWNER);
    do_serially(n, u.loops[0]->body);
    return true;
}

static bool choose_parts(const struct map_gpu *m, struct nest *n, nest_id loop)
{
    if (nest_statement_at(n, loop)->kind != NEST_PAR || map_has_updates(n) ||
        !map_parts_choose(m, n, loop))
        return false;
    set_level(n, loop, NEST_GRID);
    nest_for_each (s, n, nest_statement_at(n, loop)->body)
        if (s->n_axes)
            do_by_threads(n, nest_id_of(n, s), 1);
    return true;
}

static bool choose_shared_fold(const struct map_gpu *m, struct nest *n, nest_id loop)
{
    nest_id fold = map_shared_fold(m, loop);
    if (fold == NEST_NONE)
        return false;
    set_level(n, loop, NEST_GRID);
    choose_blocks(m, n, fold, nest_extent(n, nest_statement_at(n, loop)));
    return true;
}

static void do_scan(const struct map_gpu *m, struct nest *n, nest_id scan)
{
    const struct nest_statement *s = nest_statement_at(n, scan);
    unsigned lanes = map_lanes(m, s, s->axes[0]);
    do_by_threads(n, scan, nest_extent(n, s) % lanes ? 1 : lanes);
}

static bool choose_scan_of_points(const struct map_gpu *m, struct nest *n, nest_id loop)
{
    nest_id scan = map_scan_of_points(n, loop);
    if (scan == NEST_NONE)
        return false;
    unsigned columns = map_scan_columns(n, loop, scan);
    int64_t points = nest_extent(n, nest_statement_at(n, loop));
    bool is_long = nest_extent(n, nest_statement_at(n, scan)) > COST_LONG_SCAN;
    if (columns ? points > COST_SCAN_COLUMNS : points > COST_PART_SCANS && !is_long)
        return false;
    n->threads[NEST_BLOCK_THREADS] = GPU_BLOCK;
    set_level(n, loop, NEST_GRID);
    if (columns) {
        n->threads[NEST_COLUMNS] = columns;
        n->threads[NEST_GROUP_THREADS] = GPU_BLOCK / columns;
        do_by_threads(n, scan, 1);
    } else
        do_scan(m, n, scan);
    return true;
}

static bool choose_tiles(const struct map_gpu *m, struct nest *n, nest_id loop)
{
    struct map_tiles t;
    if (!map_tiles_find(m, loop, &t))
        return false;
    n->axes.at[t.along].tile = n->axes.at[t.across].tile = t.width;
    n->threads[NEST_BLOCK_THREADS] = t.width * t.width / MAP_TILE_TURNS;
    n->threads[NEST_RESIDENT] = COST_THREADS_OF_ONE / n->threads[NEST_BLOCK_THREADS];
    do_by_threads(n, loop, 1);
    n->statements.at[loop].turns = t.are_two ? 2 : 0;
    return true;
}

// Vectors of points that a thread has, one after the other or all read at once.
static void choose_turns(const struct map_gpu *m, struct nest *n, const struct map_points *p)
{
    struct nest_statement *s = &n->statements.at[nest_id_of(n, p->s)];
    unsigned turns = 1;
    if (has_two_turns(m, p)) {
        s->at_once = 2;
        return;
    }
    // What is read before the loop is read once by blocks that stay.
    bool stays = map_reads_before(n) && !nest_has_time(n, p->s->body);
    while (turns < MOST_TURNS && stays && !map_is_long(n, p) && p->count >= MANY_VECTORS &&
           p->count % (2 * turns * GPU_BLOCK) == 0 && map_is_short(n, p->s->body, 2 * turns))
        turns *= 2;
    s->turns = turns > 1 ? turns : 0;
}

// Whether the points have loops that go on from trip to trip, running folds among them.
static bool goes_on(const struct nest *n, uint32_t block)
{
    nest_for_each (s, n, block)
        if (s->kind == NEST_SCAN && nest_extent(n, s) > SHORT_SCAN)
            return true;
    return nest_has_time(n, block);
}

// Threads of a block that has points with such loops: a thread waits for itself, and few of them go to all
// multiprocessors.
static unsigned spread_block(double points)
{
    double warps = ceil(points / (GPU_MULTIPROCESSORS * GPU_WARP));
    return (unsigned)fmin(warps * GPU_WARP, GPU_BLOCK);
}

static void choose_threads(const struct map_gpu *m, struct nest *n, nest_id loop)
{
    const struct nest_statement *s = nest_statement_at(n, loop);
    struct map_gpu asked = *m;
    const struct map_ahead *ahead = map_ahead_find(m, loop);
    asked.is_ahead = ahead;
    struct map_points p = map_points_make(&asked, loop);
    map_points_widen(&asked, &p);
    unsigned *block = &n->threads[NEST_BLOCK_THREADS];
    *block = !m->is_phase && has_many_registers(m, s->body) ? SMALL_BLOCK : GPU_BLOCK;
    if (!m->is_phase && goes_on(n, s->body))
        *block = spread_block((double)nest_extent(n, s) / p.lanes);
    if (ahead)
        *block = map_ahead_threads(nest_extent(n, s)) + GPU_WARP;
    else if (p.rows > 1)
        *block = STRIPS_BLOCK;
    else
        n->threads[NEST_RESIDENT] = resident_for_maps(m, loop);
    do_by_threads(n, loop, p.lanes);
    if (ahead)
        set_level(n, ahead->loop, NEST_AHEAD);
    map_points_write(n, &p);
    if (p.lanes == 1 && !map_again_choose(m, n, loop) && !ahead && *block < GPU_BLOCK)
        map_early_choose(m, n, loop);
    choose_turns(&asked, n, &p);
}

static void choose_groups(const struct map_gpu *m, struct nest *n, nest_id loop)
{
    map_groups_choose(m, n, loop);
    set_level(n, loop, NEST_GROUP);
    share(m, n, nest_statement_at(n, loop)->body);
}

// Whether threads that have a point each, which lies beside those of their neighbours, take far less time than groups
// of them, by their prices.
static bool are_threads_better(const struct map_gpu *m, struct nest *n, nest_id loop)
{
    int64_t price[2];
    if (!nest_lies_along(nest_lines_in(n, nest_statement_at(n, loop))))
        return false;
    for (int i = 0; i < 2; i++) {
        clear(n);
        (i ? choose_threads : choose_groups)(m, n, loop);
        price[i] = map_gpu_price(n);
    }
    clear(n);
    return (double)price[0] > COST_THREADS_BETTER * (double)price[1];
}

static void choose_points(const struct map_gpu *m, struct nest *n, nest_id loop)
{
    map_order_choose(m, n, loop);
    const struct nest_statement *s = nest_statement_at(n, loop);
    if (map_groups_wanted(m, s) && !are_threads_better(m, n, loop)) {
        choose_groups(m, n, loop);
    } else if (choose_tiles(m, n, loop)) {
        return;
    } else if (map_columns_choose(m, n, loop)) {
        set_level(n, loop, NEST_GROUP);
        share(m, n, s->body);
    } else {
        choose_threads(m, n, loop);
    }
}

// One block of threads, or all, if the only loop is a fold that has blocks enough.
static void choose_one(const struct map_gpu *m, struct nest *n, nest_id only)
{
    nest_id widest = map_longest_loop(n, 0);
    n->threads[NEST_BLOCK_THREADS] = n->threads[NEST_GROUP_THREADS] = 1;
    n->threads[NEST_BLOCKS] = 1;
    if (widest == NEST_NONE || map_has_updates(n) || map_has_kind(n, NEST_CONTRACT)) {
        do_serially(n, 0);
        return;
    }
    struct map_group g = map_group_of(m, widest, ONE_BLOCK);
    n->threads[NEST_BLOCK_THREADS] = n->threads[NEST_GROUP_THREADS] = g.group;
    share(m, n, 0);
    if (only != NEST_NONE && nest_fold_is_leaf(n, only) &&
        (g.row.blocks > 2 * g.row.teams || g.row.length > MAP_MOST_OF_ONE_BLOCK ||
         map_has_terms(n, only, 1))) {
        n->threads[NEST_BLOCKS] = 0;
        choose_blocks(m, n, only, 1);
    }
}

// ---- The kernel

// Its last loop, how many there are, of them running folds that warps share, and whether nothing stands behind.
struct loops {
    nest_id last;
    uint32_t count, scans;
    bool end;
};

static struct loops loops_of(const struct nest *n)
{
    struct loops c = {.last = NEST_NONE};
    nest_for_each (s, n, 0) {
        c.end = map_is_loop(s->kind);
        c.count += c.end;
        c.scans += c.end && map_is_long_scan(n, nest_id_of(n, s));
        c.last = c.end ? nest_id_of(n, s) : c.last;
    }
    return c;
}

static void choose_scans(const struct map_gpu *m, struct nest *n)
{
    n->threads[NEST_BLOCK_THREADS] = GPU_BLOCK;
    nest_for_each (s, n, 0)
        if (s->kind == NEST_SCAN)
            do_scan(m, n, nest_id_of(n, s));
}

static void choose_levels(const struct map_gpu *m, struct nest *n)
{
    struct loops c = loops_of(n);
    bool is_only = c.count == 1 && c.end;
    enum nest_kind kind = c.count ? nest_statement_at(n, c.last)->kind : NEST_OP;
    if (is_only && map_attention_choose(m, n))
        return;
    if (is_only && (choose_updates(m, n, c.last) || choose_parts(m, n, c.last) ||
                    choose_shared_fold(m, n, c.last)))
        return;
    if (is_only && (map_trips_choose(m, n, c.last) || choose_scan_of_points(m, n, c.last)))
        return;
    if (is_only && (kind == NEST_PAR || kind == NEST_MAP))
        choose_points(m, n, c.last);
    else if (c.count == 1 && map_is_network(n, c.last))
        map_network_choose(m, n, c.last);
    else if (c.count && c.count == c.scans && c.end && !map_has_updates(n) &&
             !map_has_locals(n))
        choose_scans(m, n);
    else
        choose_one(m, n, c.count == 1 ? c.last : NEST_NONE);
}

void map_to_gpu(const struct map_gpu *m, struct nest *n)
{
    struct map_gpu of = *m;
    of.nest = n;
    clear(n);
    choose_levels(&of, n);
    set_spaces(&of, n);
    n->price = map_gpu_price(n);
}
