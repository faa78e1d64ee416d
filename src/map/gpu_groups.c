// SPDX-License-Identifier: Apache-2.0
// Points that several threads of a GPU share: groups of threads along an axis inside, each with a point, and
// columns, neighbouring points of neighbouring threads.
#include "map/gpu_groups.h"
#include "base/fold.h"
#include "ir/cost.h"

#include "map/gpu_lanes.h"

#define MOST_THREADS 256 // that share a fold
#define MOST_GROUP 1024
#define REGISTERS 32       // of a thread, for rows
#define LONG_ROW (1 << 20) // elements of a fold in any order whose blocks are of FREE_BLOCK
#define FREE_BLOCK 1024
#define SHORT_ROW 256     // elements that a narrow group reads at once
#define NARROW_GROUP 8    // threads
#define ROW_AT_HAND 32    // elements of a row that a thread has registers for beside those of
#define ROW_RESIDENT 4    // so many blocks
#define WIDENED 8         // elements of a point of which there are few, for each thread
#define COLUMNS_BLOCK 512 // threads that have registers enough for the stack of the tree
#define BUSY_THREADS (GPU_MULTIPROCESSORS * COST_BUSY_THREADS)
#define WAITING_THREADS (GPU_MULTIPROCESSORS * COST_WAITING_THREADS)
#define GROUP_POINTS (GPU_MULTIPROCESSORS * COST_GROUP_POINTS * GPU_BLOCK)
#define LEAST_COLUMNS 8 // of a block

bool map_is_loop(enum nest_kind kind)
{
    return kind == NEST_PAR || kind == NEST_MAP || kind == NEST_FOLD || kind == NEST_SCAN ||
           kind == NEST_SEQ || kind == NEST_WHILE || kind == NEST_IF || kind == NEST_CONTRACT;
}

// Elements of a block: those of docs/numerics.md, or fewer of a fold in any order that is long, so that more threads have
// one.
static int64_t row_block(const struct nest_statement *s, int64_t length)
{
    bool is_free = s->kind == NEST_FOLD && s->n_combines && !s->terms && length >= LONG_ROW;
    for (uint32_t i = 0; is_free && i < s->n_combines; i++)
        is_free = s->combines[i].order == NEST_FREE;
    return is_free ? FREE_BLOCK : fold_block(length);
}

struct map_row map_row_of(const struct nest *n, const struct nest_statement *s, unsigned group,
                          unsigned lanes)
{
    struct map_row r = {.length = nest_extent(n, s), .lanes = lanes};
    r.block = row_block(s, r.length);
    r.blocks = r.length > r.block ? (r.length + r.block - 1) / r.block : 1;
    r.window = fold_power_of_two(r.length, FOLD_LANES);
    // As many teams as there are blocks, while a warp is more than one team.
    while (r.lanes > 1 && (r.lanes > r.window || (r.window / r.lanes < GPU_WARP &&
                                                  group / (r.window / r.lanes) > r.blocks)))
        r.lanes /= 2;
    unsigned most = group < GPU_WARP ? group : GPU_WARP;
    r.team = r.window / r.lanes < most ? r.window / r.lanes : most;
    r.parts = r.window / (r.team * r.lanes);
    r.teams = group / r.team;
    r.is_exact = r.blocks == 1 ? r.length % r.window == 0 && r.length : r.length % r.block == 0;
    return r;
}

struct map_row map_row_make(const struct map_gpu *m, const struct nest_statement *s,
                            unsigned group)
{
    return map_row_of(m->nest, s, group, map_lanes(m, s, s->axes[s->n_axes - 1]));
}

static unsigned row_threads(const struct map_gpu *m, const struct nest_statement *s)
{
    struct map_row r = map_row_make(m, s, MOST_THREADS);
    unsigned lanes = map_lanes(m, s, s->axes[s->n_axes - 1]);
    unsigned team = r.window / lanes ? r.window / lanes : 1;
    team = team < GPU_WARP ? team : GPU_WARP;
    unsigned threads = fold_power_of_two((int64_t)team * r.blocks, MOST_THREADS);
    return threads < GPU_WARP ? GPU_WARP : threads;
}

nest_id map_longest_loop(const struct nest *n, uint32_t block)
{
    const struct nest_statement *best = NULL;
    nest_for_below (s, n, block) {
        if (s->kind != NEST_MAP && s->kind != NEST_PAR && s->kind != NEST_FOLD)
            continue;
        int64_t longer = best ? nest_extent(n, s) - nest_extent(n, best) : 1;
        if (longer > 0 || (longer == 0 && nest_fold_is_leaf(n, nest_id_of(n, s))))
            best = s;
    }
    return best ? nest_id_of(n, best) : NEST_NONE;
}

// Arrays that are read and written are for one thread at a time.
bool map_has_updates(const struct nest *nest)
{
    nest_for_all (s, nest)
        if (s->kind == NEST_LOAD && nest->buffers.at[s->buffer].role != NEST_IN &&
            nest->buffers.at[s->buffer].role != NEST_LOCAL)
            return true;
    return false;
}

bool map_has_kind(const struct nest *nest, enum nest_kind kind)
{
    nest_for_all (s, nest)
        if (s->kind == kind)
            return true;
    return false;
}

// Operations of one of the threads that share the loops of a block.
static double work_of(const struct map_gpu *m, uint32_t block, unsigned threads)
{
    double work = 0;
    nest_for_each (s, m->nest, block) {
        nest_id id = nest_id_of(m->nest, s);
        bool is_loop = s->kind == NEST_MAP || s->kind == NEST_PAR || s->kind == NEST_SCAN ||
                       s->kind == NEST_FOLD;
        bool is_shared = is_loop && (s->kind != NEST_FOLD || nest_fold_is_leaf(m->nest, id));
        int64_t turns = s->n_axes ? nest_extent(m->nest, s) : 1;
        turns = is_shared ? (turns + threads - 1) / threads : turns;
        work += s->kind == NEST_OP ? cost_of_op(s->op, s->dtype) : 1;
        work += (double)turns * (work_of(m, s->body, is_loop ? 1 : threads) +
                                 work_of(m, s->other, is_loop ? 1 : threads));
    }
    return work;
}

// Elements of memory that are a point's own.
static double own_elements(const struct map_gpu *m, uint32_t block,
                           const struct nest_statement *points)
{
    double count = 0;
    nest_for_each (s, m->nest, block) {
        bool is_own = false;
        if ((s->kind == NEST_LOAD || s->kind == NEST_PUT) &&
            m->nest->buffers.at[s->buffer].role != NEST_LOCAL) {
            is_own = nest_index_has_values(&s->index);
            for (uint32_t k = 0; k < points->n_axes; k++)
                is_own |= nest_index_factor(&s->index, points->axes[k]) != 0;
        }
        count += is_own;
        count += (s->n_axes ? (double)nest_extent(m->nest, s) : 1) *
                 (own_elements(m, s->body, points) + own_elements(m, s->other, points));
    }
    return count;
}

// Whether points that compute far more than they read are done sooner by a thread each than by a warp, of
// which each thread repeats what it does not share.
static bool are_for_threads(const struct map_gpu *m, const struct nest_statement *s)
{
    double points = (double)nest_extent(m->nest, s), alone = work_of(m, s->body, 1);
    double shared = work_of(m, s->body, GPU_WARP), waves = points / BUSY_THREADS;
    double times = waves > 1 ? waves : 1;
    double times_shared = waves * GPU_WARP > 1 ? waves * GPU_WARP : 1;
    return alone >= COST_GROUP_WORK * own_elements(m, s->body, s) &&
           alone * times * COST_GROUP_BETTER <= shared * times_shared;
}

bool map_has_locals(const struct nest *nest)
{
    for (uint32_t i = 0; i < nest->buffers.count; i++)
        if (nest->buffers.at[i].role == NEST_LOCAL)
            return true;
    return false;
}

int64_t map_columns_of(const struct map_gpu *m, const struct nest_statement *s)
{
    int64_t columns = GPU_WARP;
    nest_id inner = map_longest_loop(m->nest, s->body);
    if (inner == NEST_NONE || map_has_updates(m->nest) ||
        map_has_kind(m->nest, NEST_CONTRACT) || map_has_locals(m->nest) ||
        !nest_fold_is_leaf(m->nest, inner))
        return 0;
    int64_t length = nest_extent(m->nest, nest_statement_at(m->nest, inner));
    if (length <= fold_block(length))
        return 0;
    struct map_gpu asked = map_gpu_of_columns(m);
    struct map_points p = map_points_make(&asked, nest_id_of(m->nest, s));
    while (columns > LEAST_COLUMNS / 2 && p.count % columns)
        columns /= 2;
    bool is = p.count <= BUSY_THREADS && m->nest->axes.at[p.axis].extent % p.lanes == 0;
    return is && columns >= LEAST_COLUMNS ? columns : 0;
}

bool map_groups_wanted(const struct map_gpu *m, const struct nest_statement *s)
{
    nest_id inner = map_longest_loop(m->nest, s->body);
    if (inner == NEST_NONE || map_has_updates(m->nest) || map_has_kind(m->nest, NEST_CONTRACT))
        return false;
    if (are_for_threads(m, s))
        return false;
    int64_t length = nest_extent(m->nest, nest_statement_at(m->nest, inner)),
            points = nest_extent(m->nest, s);
    struct nest_lines lines = nest_lines_in(m->nest, s);
    // Elements that lie beside those of other points are for neighbouring threads, but for so few that
    // the loads of a thread, which wait for one another, would be all that there is.
    bool is_fold = nest_statement_at(m->nest, inner)->kind == NEST_FOLD;
    bool is_alone = length <= fold_block(length) || map_has_locals(m->nest) ||
                    (is_fold && !map_columns_of(m, s));
    bool is_small = length >= FOLD_LANES && (points * length <= COST_SMALL_READ ||
                                             (is_alone && points < WAITING_THREADS));
    if (length < 16 || (nest_lies_along(lines) && !is_small))
        return false;
    return points < GROUP_POINTS || lines.of_inner < lines.of_points;
}

// Bytes of the locals that the threads of a group share.
static uint64_t shared_rows(const struct map_gpu *m)
{
    uint64_t bytes = 0;
    for (nest_id i = 0; i < m->nest->buffers.count; i++) {
        const struct nest_buffer *x = &m->nest->buffers.at[i];
        if (x->role == NEST_LOCAL)
            bytes += (uint64_t)x->count * jot_dtype_size(x->dtype);
    }
    return bytes;
}

struct map_group map_group_of(const struct map_gpu *m, nest_id widest, unsigned most)
{
    struct map_gpu asked = map_gpu_of_group(m);
    const struct nest_statement *s = nest_statement_at(m->nest, widest);
    bool is_row = nest_fold_is_leaf(m->nest, widest);
    struct map_group g = {.group = is_row ? row_threads(&asked, s) : GPU_WARP};
    while (!is_row && g.group < most && (int64_t)g.group * 8 < nest_extent(m->nest, s))
        g.group *= 2;
    g.group = g.group > most ? most : g.group;
    g.block = g.group < GPU_BLOCK ? GPU_BLOCK : g.group;
    while (g.block > g.group && shared_rows(m) * (g.block / g.group) > COST_SHARED_BYTES)
        g.block /= 2;
    // Groups of several warps wait for one another by a barrier, which is one of the block.
    if (g.group > GPU_WARP)
        g.block = g.group;
    if (is_row)
        g.row = map_row_make(&asked, s, g.group);
    return g;
}

// Many points with one short fold each: a warp has several, and each thread more of its row.
static bool is_narrow(const struct map_gpu *m, nest_id loop, nest_id fold,
                      const struct map_row *row)
{
    uint32_t loops = 0;
    nest_for_each (s, m->nest, nest_statement_at(m->nest, loop)->body)
        loops += map_is_loop(s->kind);
    int64_t points = nest_extent(m->nest, nest_statement_at(m->nest, loop));
    return loops == 1 && !map_has_locals(m->nest) && nest_fold_is_leaf(m->nest, fold) &&
           !m->is_phase && row->length <= SHORT_ROW && points * NARROW_GROUP >= BUSY_THREADS &&
           points % (GPU_WARP / NARROW_GROUP) == 0;
}

// Points that leave multiprocessors idle have a block each, with more threads than share their fold:
// for the maps beside it, and for the loads of all.
static void widen_group(const struct map_gpu *m, nest_id loop, nest_id widest,
                        struct map_group *g)
{
    int64_t length = nest_extent(m->nest, nest_statement_at(m->nest, widest));
    if (nest_extent(m->nest, nest_statement_at(m->nest, loop)) > GPU_MULTIPROCESSORS ||
        m->is_phase)
        return;
    while (g->group < GPU_BLOCK && (int64_t)g->group * WIDENED < length)
        g->group *= 2;
    if (g->group > GPU_WARP)
        g->block = g->group;
}

// ---- Rows that threads keep

static bool is_access(const struct nest_statement *s, nest_id buffer)
{
    return (s->kind == NEST_LOAD || s->kind == NEST_PUT) && s->buffer == buffer;
}

// At the index of the loop's own axis, whatever else holds.
static bool is_at_axis(const struct nest_statement *s, nest_id axis)
{
    return nest_index_is_axis(&s->index, axis) && !s->op && s->guard == NEST_NONE;
}

// Whether the group does the loop by its row, each vector of it in code of its own.
static bool is_straight(const struct map_gpu *m, nest_id loop, const struct map_group *g)
{
    const struct map_row *r = &g->row;
    const struct nest_statement *s = nest_statement_at(m->nest, loop);
    if (s->n_axes != 1 || nest_extent(m->nest, s) != r->length ||
        (s->kind != NEST_MAP && s->kind != NEST_FOLD))
        return false;
    return s->kind == NEST_MAP
               ? map_is_short(m->nest, s->body, r->length / g->group / r->lanes)
               : nest_fold_is_leaf(m->nest, loop) &&
                     map_fold_is_straight(m->nest, loop, r, map_turn_work(m->nest, s->body));
}

// Accesses of the buffer in the body of a loop, and whether it reads memory along the axis.
struct use {
    uint32_t accesses, puts;
    bool reads;
};

static struct use use_of(const struct map_gpu *m, nest_id loop, nest_id buffer)
{
    struct use use = {0};
    const struct nest_statement *s = nest_statement_at(m->nest, loop);
    nest_for_each (t, m->nest, s->body) {
        bool is_its = is_access(t, buffer) && is_at_axis(t, s->axes[0]);
        use.accesses += is_its;
        use.puts += is_its && t->kind == NEST_PUT;
        use.reads |= t->kind == NEST_LOAD &&
                     m->nest->buffers.at[t->buffer].role != NEST_LOCAL &&
                     nest_index_factor(&t->index, s->axes[0]);
    }
    return use;
}

// What is read of memory behind the first put would want registers too.
static bool may_keep(const struct map_gpu *m, const struct nest_block *body, nest_id buffer,
                     const struct map_group *g)
{
    const struct nest_buffer *info = &m->nest->buffers.at[buffer];
    uint32_t left = 0, puts = 0;
    if (info->role != NEST_LOCAL || info->count != g->row.length ||
        dtype_is_complex(info->dtype) || jot_dtype_size(info->dtype) > 4)
        return false;
    nest_for_all (s, m->nest)
        left += is_access(s, buffer);
    for (uint32_t i = 0; i < body->statements.count; i++) {
        nest_id loop = body->statements.at[i];
        if (!is_straight(m, loop, g))
            continue;
        struct use use = use_of(m, loop, buffer);
        if (puts && use.reads)
            return false;
        puts += use.puts;
        left -= use.accesses;
    }
    return left == 0;
}

// Local rows that no thread but the one that puts an element reads it: each thread keeps what it has of them.
static void keep_rows(const struct map_gpu *m, struct nest *n, nest_id loop,
                      const struct map_group *g)
{
    const struct nest_block *body = &n->blocks.at[nest_statement_at(n, loop)->body];
    const struct map_row *r = &g->row;
    int64_t own = r->length / g->group, registers = 0;
    if (!r->is_exact || r->parts != 1 || r->blocks % r->teams || m->is_phase)
        return;
    for (uint32_t i = 0; i < n->buffers.count; i++) {
        bool is_kept = registers + own <= REGISTERS && may_keep(m, body, i, g);
        n->buffers.at[i].space = is_kept ? NEST_REGISTER : NEST_OWN;
        registers += is_kept ? own : 0;
    }
}

// ---- Groups

void map_groups_choose(const struct map_gpu *m, struct nest *n, nest_id loop)
{
    struct map_gpu asked = map_gpu_of_group(m);
    nest_id widest = map_longest_loop(n, nest_statement_at(n, loop)->body);
    const struct nest_statement *s = nest_statement_at(n, widest);
    struct map_group g = map_group_of(m, widest, MOST_GROUP);
    widen_group(m, loop, widest, &g);
    if (is_narrow(m, loop, widest, &g.row))
        g.group = NARROW_GROUP;
    if (nest_fold_is_leaf(n, widest))
        g.row = map_row_make(&asked, s, g.group);
    int64_t at_hand = g.row.length / g.group;
    bool is_at_hand = g.row.is_exact && g.block == GPU_BLOCK && at_hand > ROW_AT_HAND / 2 &&
                      at_hand <= ROW_AT_HAND;
    n->threads[NEST_BLOCK_THREADS] = g.block;
    n->threads[NEST_GROUP_THREADS] = g.group;
    n->threads[NEST_RESIDENT] = is_at_hand ? ROW_RESIDENT : 0;
    keep_rows(m, n, loop, &g);
}

bool map_columns_choose(const struct map_gpu *m, struct nest *n, nest_id loop)
{
    const struct nest_statement *s = nest_statement_at(n, loop);
    int64_t columns = map_columns_of(m, s), group = GPU_WARP;
    if (!columns)
        return false;
    nest_id inner = map_longest_loop(n, s->body);
    int64_t length = nest_extent(n, nest_statement_at(n, inner));
    while (group / 2 * fold_block(length) >= length)
        group /= 2;
    while (group * columns > COLUMNS_BLOCK)
        group /= 2;
    while (m->is_phase && group * columns < GPU_WARP)
        group *= 2; // beside others of the block there are whole warps
    n->threads[NEST_BLOCK_THREADS] = (unsigned)(group * columns);
    n->threads[NEST_GROUP_THREADS] = (unsigned)group;
    n->threads[NEST_COLUMNS] = (unsigned)columns;
    struct map_gpu asked = map_gpu_of_columns(m);
    struct map_points p = map_points_make(&asked, loop);
    map_points_write(n, &p);
    return true;
}
