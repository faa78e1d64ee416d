// SPDX-License-Identifier: Apache-2.0
// What must hold of a mapped nest, beside what nest_verify knows, for there to be code of a GPU that does what its text
// says: the kernels of map/gpu.c are all that there are, and what they divide comes out even where threads have no
// question whether an element is there.
#include "map/gpu_verify.h"
#include "base/fold.h"

#include "map/gpu_again.h"
#include "map/gpu_ahead.h"
#include "map/gpu_groups.h"
#include "map/gpu_lanes.h"
#include "map/gpu_shared.h"
#include "map/gpu_trips.h"
#include "map/gpu_updates.h"
#include "nest/verify.h"

#define MOST_SCAN_LANES 16 // that a thread has of a running fold
#define MOST_TILE 64       // points of a side
#define FAULT(v, s, ...)                                                                       \
    ((v)->statement = (s) ? nest_id_of((v)->nest, s) : NEST_NONE, nest_fault(v, __VA_ARGS__))

static unsigned threads_of(const struct verifier *v, enum nest_threads which)
{
    return v->nest->threads[which];
}

// Threads that share a point, 1: none do.
static unsigned group_of(const struct verifier *v)
{
    unsigned group = threads_of(v, NEST_GROUP_THREADS);
    return group ? group : 1;
}

static bool has_levels(const struct nest_statement *s)
{
    return s->level && s->level != NEST_SERIALLY;
}

static const char *level_name(const struct nest_statement *s)
{
    return s->level ? nest_level_names[s->level] : "nobody";
}

// ---- Words of the kernel

// Threads that wait for one another are those of a warp, or all of a block.
static void check_threads(struct verifier *v)
{
    unsigned block = threads_of(v, NEST_BLOCK_THREADS), group = group_of(v),
             columns = threads_of(v, NEST_COLUMNS), blocks = threads_of(v, NEST_BLOCKS);
    if (!block)
        FAULT(v, NULL, "it has no block of threads");
    else if (group & (group - 1))
        FAULT(v, NULL, "%u threads do not fold by halves", group);
    else if (columns ? columns * group != block
                     : group > GPU_WARP && group != block && !v->nest->special)
        FAULT(v, NULL, "a block of %u threads does not wait for %u groups of %u", block,
              block / group, group);
    else if (!columns && group > 1 && block % GPU_WARP)
        FAULT(v, NULL, "a block of %u threads has no whole warps", block);
    if (!v->nest->special && blocks > 1)
        FAULT(v, NULL, "how many blocks there are is not said of such a kernel");
    if (blocks == 1 && !v->nest->special && (group != block || columns))
        FAULT(v, NULL, "a block that has all of a kernel is no %u groups", block / group);
    if (threads_of(v, NEST_TRIPS_OF_LAUNCH) && v->nest->special != NEST_TRIPS)
        FAULT(v, NULL, "such a kernel makes one trip");
}

// ---- Points

// What a thread has of points: whole vectors, rows of them, turns.
static void check_points(struct verifier *v, const struct map_gpu *m,
                         const struct nest_statement *s, int64_t threads)
{
    const struct nest *n = v->nest;
    struct map_points p = map_points_of(n, nest_id_of(n, s));
    int64_t turns = s->at_once ? s->at_once : s->turns ? s->turns : 1;
    bool ends = n->axes.at[p.axis].extent % p.lanes != 0;
    uint32_t rows = 0;
    for (uint32_t k = 0; k < s->n_axes; k++) {
        const struct nest_axis *a = &n->axes.at[s->axes[k]];
        rows += a->rows > 1;
        if (a->vector && s->axes[k] != p.axis)
            FAULT(v, s, "neighbours along axis %s are no thread's", a->name);
    }
    if (p.lanes > 1 && !map_may_have_lanes(m, s, p.axis))
        FAULT(v, s, "what a thread does of %u points does not go side by side", p.lanes);
    if (rows && (rows > 1 || p.lanes == 1 || ends || p.row_axis == p.axis))
        FAULT(v, s, "a thread has rows of whole vectors of another axis");
    if (s->at_once && (ends || rows))
        FAULT(v, s, "what is read at once are whole vectors");
    bool is_group = s->level == NEST_THREAD && group_of(v) > 1;
    if (is_group && s->turns ? turns * threads != p.count
                             : turns > 1 && p.count % (turns * threads))
        FAULT(v, s, "%lld vectors of %lld threads are no %lld turns", (long long)p.count,
              (long long)threads, (long long)turns);
}

static void check_tiles(struct verifier *v, const struct nest_statement *s)
{
    const struct nest *n = v->nest;
    struct map_tiles t = {.s = s, .along = s->axes[s->n_axes - 1]};
    unsigned width = t.width = n->axes.at[t.along].tile;
    bool is = width && width <= MOST_TILE && width % MAP_TILE_TURNS == 0 && !s->at_once;
    for (uint32_t k = 0; k < s->n_axes; k++) {
        const struct nest_axis *a = &n->axes.at[s->axes[k]];
        is = is && (!a->tile || a->tile == width) && !a->vector && !a->rows;
        t.across = a->tile && s->axes[k] != t.along ? s->axes[k] : t.across;
    }
    nest_for_each (x, n, s->body)
        is = is && x->kind <= NEST_PUT && !(x->kind == NEST_PUT && x->op);
    if (!is)
        FAULT(v, s, "such points have no tiles");
    else if (s->turns && (s->turns != 2 || !map_tiles_mirror(n, &t)))
        FAULT(v, s, "a block has no %u tiles, one the mirror image of the other", s->turns);
    else if (threads_of(v, NEST_BLOCK_THREADS) != width * width / MAP_TILE_TURNS)
        FAULT(v, s, "the tiles of %u threads are not of %u by %u points",
              threads_of(v, NEST_BLOCK_THREADS), width, width);
}

// ---- Loops over time of a thread

static void check_ahead(struct verifier *v, const struct map_gpu *m,
                        const struct nest_statement *points, const struct nest_statement *seq)
{
    unsigned block = threads_of(v, NEST_BLOCK_THREADS);
    const struct map_ahead *a = map_ahead_find(m, nest_id_of(v->nest, points));
    if (!a || a->loop != nest_id_of(v->nest, seq))
        FAULT(v, seq, "nothing of it that is worth a warp is the same for all points");
    else if (block <= GPU_WARP || block % GPU_WARP || map_vector(v->nest, points) > 1)
        FAULT(v, seq, "a block of %u threads has no warp more than points", block);
}

static void check_again(struct verifier *v, const struct map_gpu *m,
                        const struct nest_statement *points, const struct nest_statement *seq)
{
    const bool *is_tape = map_again_find(m, nest_id_of(v->nest, points), seq);
    if (!is_tape || v->nest->axes.at[seq->axes[0]].segment > MAP_MOST_SEGMENT ||
        map_vector(v->nest, points) > 1)
        FAULT(v, seq, "its steps are not made again by a loop that comes back");
    for (nest_id i = 0; is_tape && i < v->nest->buffers.count; i++)
        if (is_tape[i] != (v->nest->buffers.at[i].space == NEST_AGAIN))
            FAULT(v, seq, "%s is %s tape", v->nest->buffers.at[i].name,
                  is_tape[i] ? "its" : "no");
}

// Loops in those of one thread, which stand in `points` or, NULL, further in.
static void check_own(struct verifier *v, const struct map_gpu *m, uint32_t block,
                      const struct nest_statement *points)
{
    nest_for_each (s, v->nest, block) {
        const struct nest_axis *a = s->n_axes ? &v->nest->axes.at[s->axes[0]] : NULL;
        bool is_time = s->kind == NEST_SEQ, is_ahead = s->level == NEST_AHEAD;
        if (a && s->kind != NEST_CONTRACT && map_vector(v->nest, s) > 1)
            FAULT(v, s, "neighbours in a loop of one thread are no vectors");
        if ((is_ahead || (is_time && (a->segment || a->early))) && !points)
            FAULT(v, s, "it does not stand in the points of a thread");
        else if (is_ahead && a->segment)
            FAULT(v, s, "its steps are made ahead, or again");
        else if (is_ahead)
            check_ahead(v, m, points, s);
        else if (is_time && a->segment)
            check_again(v, m, points, s);
        check_own(v, m, s->body, NULL);
        check_own(v, m, s->other, NULL);
    }
}

// ---- Loops that a group shares

// What each thread has of a row is known when code is made.
static bool is_exact(const struct verifier *v, const struct nest_statement *s,
                     const struct map_row *r)
{
    return r->is_exact && r->parts == 1 && r->length % r->lanes == 0 &&
           r->blocks % r->teams == 0 && r->lanes == map_vector(v->nest, s);
}

static struct map_row row_of(const struct verifier *v, const struct nest_statement *s)
{
    return map_row_of(v->nest, s, group_of(v), map_vector(v->nest, s));
}

static void check_fold(struct verifier *v, const struct nest_statement *s)
{
    const struct nest_axis *last = &v->nest->axes.at[s->axes[s->n_axes - 1]];
    struct map_row r = row_of(v, s);
    unsigned rounds = (unsigned)((r.blocks + r.teams - 1) / r.teams);
    if (!nest_fold_is_leaf(v->nest, nest_id_of(v->nest, s)))
        FAULT(v, s, "threads do not share terms that hold loops");
    else if (!r.length)
        FAULT(v, s, "threads share no elements");
    else if (r.blocks > 1 && group_of(v) < GPU_WARP)
        FAULT(v, s, "%u threads do not bring blocks of a fold together", group_of(v));
    if (last->vector && (last->extent % last->vector || r.lanes != last->vector))
        FAULT(v, s, "a row of %lld is no vectors of %u for %u threads", (long long)r.length,
              last->vector, group_of(v));
    if (s->turns && s->turns != rounds)
        FAULT(v, s, "its blocks are %u rounds, not %u", rounds, s->turns);
}

// Threads that have points beside one another fold alone.
static void check_one_by_one(struct verifier *v, const struct nest_statement *s)
{
    if (map_vector(v->nest, s) > 1 || s->turns || s->at_once)
        FAULT(v, s, "what a thread has of a column goes one by one");
}

static void check_column(struct verifier *v, const struct nest_statement *s)
{
    check_one_by_one(v, s);
    if (!nest_fold_is_leaf(v->nest, nest_id_of(v->nest, s)))
        FAULT(v, s, "threads do not share terms that hold loops");
}

// What a group does of a loop by its level, or a loop that each of its threads goes through.
static void check_level(struct verifier *v, const struct map_gpu *m,
                        const struct nest_statement *s)
{
    bool has_columns = threads_of(v, NEST_COLUMNS), is_row = s->level == NEST_IN_ROW,
         is_fold = s->kind == NEST_FOLD && s->level == NEST_THREAD;
    if (s->kind != NEST_PAR && s->kind != NEST_MAP) {
        if (has_levels(s) && !is_fold)
            FAULT(v, s, "a group does no such loop by @%s", level_name(s));
        else if (is_fold && has_columns)
            check_column(v, s);
        else if (is_fold)
            check_fold(v, s);
    } else if (is_row) {
        struct map_row r = row_of(v, s);
        if (has_columns || !is_exact(v, s, &r) || s->turns || s->at_once)
            FAULT(v, s, "what a thread has of it is not that of a fold");
    } else if (s->level == NEST_THREAD) {
        check_points(v, m, s, group_of(v));
    } else {
        FAULT(v, s, "a group does no such loop by @%s", level_name(s));
    }
}

static void check_shared(struct verifier *v, const struct map_gpu *m, uint32_t block)
{
    nest_for_each (s, v->nest, block) {
        bool is_time = s->kind == NEST_SEQ;
        check_level(v, m, s);
        if (s->terms || s->kind == NEST_CONTRACT)
            FAULT(v, s, "a group shares no such terms");
        if (is_time && v->nest->axes.at[s->axes[0]].segment)
            FAULT(v, s, "it does not stand in the points of a thread");
        if (is_time || s->kind == NEST_WHILE || s->kind == NEST_IF) {
            check_shared(v, m, s->body);
            check_shared(v, m, s->other);
        } else {
            check_own(v, m, s->body, NULL);
        }
    }
}

// Whether all elements of the row are in code of their own, each of one thread.
static bool is_written_out(const struct verifier *v, const struct nest_statement *s)
{
    struct map_row r = row_of(v, s);
    int64_t windows = (r.blocks == 1 ? r.length : r.block) / r.window;
    bool is_round = r.blocks <= r.teams || s->turns;
    return is_exact(v, s, &r) &&
           (s->level == NEST_IN_ROW || (is_round && (s->at_once ? s->at_once : 1) == windows));
}

// Rows that threads keep: whoever puts an element reads it, as number so many of those that it has.
static void check_kept(struct verifier *v, const struct nest_statement *points)
{
    const struct nest *n = v->nest;
    for (nest_id b = 0; b < n->buffers.count; b++) {
        unsigned lanes = 0;
        uint32_t left = 0;
        if (n->buffers.at[b].space != NEST_REGISTER)
            continue;
        nest_for_all (t, n)
            left += t->kind == NEST_CONTRACT ||
                    ((t->kind == NEST_LOAD || t->kind == NEST_PUT) && t->buffer == b);
        nest_for_each (s, n, points ? points->body : 0)
            nest_for_each (t, n, s->body) {
                bool is = (t->kind == NEST_LOAD || t->kind == NEST_PUT) && t->buffer == b;
                if (!is || s->n_axes != 1 || !nest_index_is_axis(&t->index, s->axes[0]) ||
                    t->op || t->guard != NEST_NONE || !is_written_out(v, s) ||
                    (lanes && lanes != map_vector(n, s)))
                    continue;
                lanes = map_vector(n, s);
                left--;
            }
        if (left || threads_of(v, NEST_COLUMNS))
            FAULT(v, points, "threads that keep %s go through it in another order",
                  n->buffers.at[b].name);
    }
}

// ---- Kernels

static void check_threads_points(struct verifier *v, const struct map_gpu *m,
                                 const struct nest_statement *s)
{
    unsigned block = threads_of(v, NEST_BLOCK_THREADS);
    bool is_tiled = false, is_ahead = false;
    for (uint32_t k = 0; k < s->n_axes; k++)
        is_tiled |= v->nest->axes.at[s->axes[k]].tile != 0;
    nest_for_each (t, v->nest, s->body)
        is_ahead |= t->level == NEST_AHEAD;
    if (group_of(v) > 1 || threads_of(v, NEST_COLUMNS))
        FAULT(v, s, "a point is a thread's, not a group's");
    if (is_tiled)
        check_tiles(v, s);
    else
        check_points(v, m, s, is_ahead && block > GPU_WARP ? block - GPU_WARP : block);
    check_own(v, m, s->body, s);
}

static void check_groups(struct verifier *v, const struct map_gpu *m,
                         const struct nest_statement *s)
{
    struct map_points p = map_points_of(v->nest, nest_id_of(v->nest, s));
    int64_t columns = threads_of(v, NEST_COLUMNS),
            side_by_side = group_of(v) < GPU_WARP ? GPU_WARP / group_of(v) : 1;
    struct map_gpu asked = columns ? map_gpu_of_columns(m) : map_gpu_of_group(m);
    if (columns && (p.count % columns || v->nest->axes.at[p.axis].extent % p.lanes))
        FAULT(v, s, "%lld vectors of points are no %lld columns", (long long)p.count,
              (long long)columns);
    if (columns && map_has_locals(v->nest))
        FAULT(v, s, "columns have no locals");
    if (!columns && (p.lanes > 1 || p.count % side_by_side))
        FAULT(v, s, "%lld points are not one of each group of whole warps", (long long)p.count);
    if (s->turns || s->at_once || p.rows > 1)
        FAULT(v, s, "a group has a point");
    if (columns)
        check_points(v, &asked, s, 1);
    asked = *m;
    asked.is_group = asked.is_together = !columns;
    check_shared(v, &asked, s->body);
}

// The blocks of a fold are those of blocks of threads.
static void check_blocks(struct verifier *v, const struct nest_statement *points,
                         const struct nest_statement *fold)
{
    unsigned block = threads_of(v, NEST_BLOCK_THREADS);
    if (group_of(v) != block || block < GPU_WARP)
        FAULT(v, fold, "blocks of threads have its blocks, not groups of %u", group_of(v));
    if (map_has_locals(v->nest) || (points && !nest_extent(v->nest, points)))
        FAULT(v, fold, "blocks of threads have no locals in common");
    nest_for_each (s, v->nest, points ? points->body : 0)
        if (s != fold && s->kind > NEST_PUT)
            FAULT(v, s, "beside a fold that blocks of threads share stands no loop");
    for (uint32_t i = 0; fold->terms && i < fold->n_combines; i++)
        if (dtype_is_complex(fold->combines[i].dtype))
            FAULT(v, fold, "complex terms are those of its threads");
    if (points && map_vector(v->nest, points) > 1)
        FAULT(v, points, "blocks of threads have one point");
    if (fold->turns)
        FAULT(v, fold, "a block of threads has one round");
    check_fold(v, fold);
}

// Blocks of threads have parts of the folds of neighbouring points, and of the maps beside them.
static void check_parts(struct verifier *v, const struct map_gpu *m,
                        const struct nest_statement *points)
{
    const struct nest *n = v->nest;
    bool *depends = arena_array(v->arena, bool, n->values.count + 1);
    struct map_gpu asked = map_gpu_of_columns(m);
    struct map_points p = map_points_of(n, nest_id_of(n, points));
    nest_id fold = map_only_fold(n, points, depends);
    if (fold == NEST_NONE || map_has_locals(n) ||
        nest_extent(n, nest_statement_at(n, fold)) < FOLD_LANES || !p.count)
        FAULT(v, points, "its parts are not those of blocks of threads");
    else if (n->axes.at[p.axis].extent % p.lanes || p.rows > 1)
        FAULT(v, points, "%u neighbours are not all there", p.lanes);
    check_points(v, &asked, points, 1);
    nest_for_each (s, n, points->body) {
        if (!s->n_axes)
            continue;
        if (s->level != NEST_THREAD)
            FAULT(v, s, "blocks of threads do not share it by @%s", level_name(s));
        check_one_by_one(v, s);
    }
}

// Warps have parts of running folds, or threads those of columns.
static void check_scan(struct verifier *v, const struct map_gpu *m,
                       const struct nest_statement *points, const struct nest_statement *scan)
{
    const struct nest *n = v->nest;
    unsigned columns = threads_of(v, NEST_COLUMNS), lanes = map_vector(n, scan);
    if (!map_is_long_scan(n, nest_id_of(n, scan)) || map_has_locals(n) ||
        (points && (map_scan_of_points(n, nest_id_of(n, points)) != nest_id_of(n, scan) ||
                    !nest_extent(n, points))))
        FAULT(v, scan, "its parts are not those of warps");
    else if (threads_of(v, NEST_BLOCK_THREADS) != GPU_BLOCK || (!columns && group_of(v) > 1))
        FAULT(v, scan, "parts of it are those of blocks of %d threads", GPU_BLOCK);
    else if (lanes > MOST_SCAN_LANES || nest_extent(n, scan) % lanes ||
             (columns && lanes > 1) || (columns && !points))
        FAULT(v, scan, "a thread has no %u elements of it", lanes);
    else if (lanes > 1 && !map_may_have_lanes(m, scan, scan->axes[0]))
        FAULT(v, scan, "what a thread does of %u elements does not go side by side", lanes);
}

static void check_updates(struct verifier *v, const struct map_gpu *m,
                          const struct nest_statement *loop, const struct nest_statement *seq)
{
    struct map_updates u;
    if (!map_updates_find(m, nest_id_of(v->nest, loop), &u) || u.loops[0] != seq)
        FAULT(v, seq, "threads do not have its elements");
    if (threads_of(v, NEST_BLOCK_THREADS) != GPU_BLOCK || group_of(v) > 1 ||
        threads_of(v, NEST_COLUMNS))
        FAULT(v, seq, "elements are those of blocks of %d threads", GPU_BLOCK);
}

// Points that all blocks have, NULL: none, and what they share of them.
static void check_grid(struct verifier *v, const struct map_gpu *m,
                       const struct nest_statement *points, const struct nest_statement *s)
{
    if (points && (points->turns || points->at_once))
        FAULT(v, points, "a grid has a point");
    if (s->level == NEST_OWNER)
        check_updates(v, m, points ? points : s, s);
    else if (s->level != NEST_THREAD)
        FAULT(v, s, "blocks of threads do not share it by @%s", level_name(s));
    else if (s->kind == NEST_SCAN)
        check_scan(v, m, points, s);
    else if (threads_of(v, NEST_COLUMNS) && points)
        check_parts(v, m, points);
    else if (s->kind != NEST_FOLD)
        FAULT(v, s, "blocks of threads do not share it");
    else
        check_blocks(v, points, s);
    check_own(v, m, s->body, NULL);
}

// The one loop with a level in the block that all blocks of threads share, or the last loop.
static const struct nest_statement *grid_loop_in(const struct nest *n, uint32_t block)
{
    const struct nest_statement *last = NULL;
    nest_for_each (s, n, block)
        if (map_is_loop(s->kind) && (!last || has_levels(s) || !has_levels(last)))
            last = s;
    return last;
}

// A kernel that all of the grid has: of one loop, or of several running folds.
static void check_kernel(struct verifier *v, const struct map_gpu *m)
{
    const struct nest *n = v->nest;
    const struct nest_statement *last = grid_loop_in(n, 0), *end = NULL;
    uint32_t others = 0;
    nest_for_each (s, n, 0) {
        others += map_is_loop(s->kind) && s != last && s->kind != NEST_SCAN;
        end = s;
    }
    if (!last || others || (last->kind != NEST_FOLD && end != last)) {
        FAULT(v, last, "a kernel of many blocks is one loop, and what stands before it");
        return;
    }
    bool is_map = last->kind == NEST_PAR || last->kind == NEST_MAP;
    if (is_map && last->level == NEST_THREAD)
        check_threads_points(v, m, last);
    else if (is_map && last->level == NEST_GROUP)
        check_groups(v, m, last);
    else if (is_map && last->level == NEST_GRID && grid_loop_in(n, last->body))
        check_grid(v, m, last, grid_loop_in(n, last->body));
    else if (is_map)
        FAULT(v, last, "blocks of threads do not share it by @%s", level_name(last));
    else
        nest_for_each (s, n, 0)
            if (map_is_loop(s->kind))
                check_grid(v, m, NULL, s);
    check_kept(v, last->level == NEST_GROUP ? last : NULL);
}

// One block has all of it.
static void check_one(struct verifier *v, const struct map_gpu *m)
{
    struct map_gpu asked = map_gpu_of_group(m);
    if (group_of(v) > 1)
        check_shared(v, &asked, 0);
    else
        check_own(v, m, 0, NULL);
    check_kept(v, NULL);
}

// An emitter that divides the work by itself has the kernel as the mapping would give it to it, and as many threads or
// fewer.
static void check_special(struct verifier *v, const struct map_gpu *m)
{
    struct nest *n = nest_copy(v->arena, v->nest);
    const unsigned *own = v->nest->threads, *best = n->threads;
    unsigned block = own[NEST_BLOCK_THREADS], trips = own[NEST_TRIPS_OF_LAUNCH];
    struct map_trips t;
    map_to_gpu(m, n);
    // A point of a network may always be a thread's, and a warp always multiply by itself.
    bool is_apart = n->special == NEST_NETWORK && !own[NEST_GROUP_THREADS],
         is_any = is_apart || n->special == NEST_TRIPS,
         is_warp = best[NEST_GROUP_THREADS] > GPU_WARP && group_of(v) == GPU_WARP;
    if (n->special != v->nest->special || own[NEST_COLUMNS] ||
        (!is_apart && !is_warp && own[NEST_GROUP_THREADS] != best[NEST_GROUP_THREADS])) {
        FAULT(v, NULL, "it is no %s of groups of %u threads",
              nest_special_names[v->nest->special], group_of(v));
        return;
    }
    if (block % GPU_WARP || block % group_of(v) ||
        (!is_any && block > best[NEST_BLOCK_THREADS]) ||
        own[NEST_BLOCKS] != best[NEST_BLOCKS] ||
        (n->special == NEST_ATTENTION_GRADIENT && block < 4 * GPU_WARP))
        FAULT(v, NULL, "its %u threads do not have it", block);
    if (n->special == NEST_TRIPS &&
        (!map_trips_find(m, nest_id_of(v->nest, grid_loop_in(v->nest, 0)), &t) ||
         trips % 2 == 0 || m->trips % trips || trips * t.reach > MAP_TRIPS_HALO))
        FAULT(v, NULL, "a launch does not make %u trips", trips);
    for (uint32_t i = 0; i < n->buffers.count; i++)
        if ((is_apart ? NEST_OWN : n->buffers.at[i].space) != v->nest->buffers.at[i].space)
            FAULT(v, NULL, "%s is not where its threads have it", n->buffers.at[i].name);
    nest_for_all (s, v->nest) {
        const struct nest_statement *o = nest_statement_at(n, nest_id_of(v->nest, s));
        bool is_of_warps = o->turns && group_of(v) == GPU_WARP; // which have one or two tiles
        if (s->level != o->level || !s->turns != !o->turns ||
            s->turns > (is_of_warps ? 2 : 1) || s->at_once || s->terms)
            FAULT(v, s, "its threads do not share it so");
    }
}

int map_gpu_verify(const struct map_gpu *m, struct strbuf *report)
{
    struct verifier v = {
        .nest = m->nest, .arena = m->arena, .report = report, .statement = NEST_NONE};
    check_threads(&v);
    if (!v.faults && m->nest->special)
        check_special(&v, m);
    else if (!v.faults && threads_of(&v, NEST_BLOCKS) == 1)
        check_one(&v, m);
    else if (!v.faults)
        check_kernel(&v, m);
    return v.faults;
}
