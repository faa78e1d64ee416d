// SPDX-License-Identifier: Apache-2.0
// What a thread of a GPU has of a loop: a few neighbouring elements, so that it reads and writes 16 bytes at once, and
// several rows of a small product, so that what it read of one operand for the first is in registers for the others.
//
//     par i < 100000, j < 16, k < 16 {                 a thread: i, k .. k + 3, and j and j + 8;
//       fold l < 16 { load x[i, j, l] load y[i, l, k] ... }     y[i, l, k .. k + 3] of all l is read once
//       put z[i, j, k]
//     }
//
// Otherwise every row of the result reads the matrix again, and the first cache is what bounds it.
// That reads of memory which nothing writes are made once is left to LLVM: the rows are one straight
// piece of code.
#include "map/gpu_lanes.h"
#include "base/fold.h"
#include "ir/cost.h"

#include "map/gpu_groups.h"

#define BYTES 16
#define WRITTEN_OUT 16 // turns of a thread that are written out
// Chains of a loop over time that a thread has, where there are threads enough for that.
#define LANES_IN_TIME 2
#define MANY_CHAINS (GPU_MULTIPROCESSORS * COST_CHAINS)
#define MANY_ACCUMULATORS 64 // of a thread, that leave registers
#define FEW_AT_ONCE 4        // for so many windows
#define MANY_TERMS 512       // of rounds that are written out
#define TURNS_AT_ONCE 4      // that are read at once of a loop whose turns are not written out
#define TURNS_WORK                                                                             \
    200.0            // operations of a group's turns that are written out though they branch
#define MOST_ROWS 2  // more of them leave too few threads that wait for memory
#define REGISTERS 64 // for what the rows share
#define ROW_THREADS (GPU_MULTIPROCESSORS * COST_ROW_THREADS)

double map_turn_work(const struct nest *n, uint32_t block)
{
    double work = 0;
    nest_for_below (s, n, block)
        work += s->kind == NEST_OP ? cost_of_op(s->op, s->dtype) : 1;
    return work;
}

bool map_is_short(const struct nest *n, uint32_t block, int64_t turns)
{
    return turns <= WRITTEN_OUT && (double)turns * map_turn_work(n, block) <= COST_OF_TURNS;
}

static bool has_random_bits(const struct map_gpu *m, uint32_t block)
{
    nest_for_each (s, m->nest, block)
        if (s->kind == NEST_OP && s->op == IR_threefry2x32)
            return true;
    return false;
}

bool map_is_long(const struct nest *n, const struct map_points *p)
{
    return p->lanes > 1 && p->lanes * map_turn_work(n, p->s->body) > COST_OF_NEIGHBOURS;
}

// What the statements of a block touch along an axis.
struct touched {
    unsigned bytes; // of the widest element that stands beside its neighbours
    unsigned together, apart;
    bool has_control; // what lanes cannot do side by side
    bool has_time;
    bool is_in_time;    // what is looked at is in such a loop
    const bool *varies; // by value: along the axis
};

static void note_block(const struct map_gpu *m, uint32_t block, nest_id axis, struct touched *t)
{
    nest_for_each (s, m->nest, block) {
        if (s->kind == NEST_WHILE || s->kind == NEST_IF || s->kind == NEST_SCAN ||
            s->kind == NEST_CONTRACT)
            t->has_control = true;
        // Trips that are straight are done side by side; rows that they put are stored by warps.
        if (t->is_in_time && (s->n_axes || s->kind == NEST_PUT))
            t->has_control = true;
        bool is_outer = !t->is_in_time && s->kind == NEST_SEQ;
        t->has_time |= is_outer;
        t->is_in_time |= is_outer;
        note_block(m, s->body, axis, t);
        note_block(m, s->other, axis, t);
        t->is_in_time &= !is_outer;
        if (s->kind != NEST_LOAD && (s->kind != NEST_PUT || s->op))
            continue;
        const struct nest_buffer *buffer = &m->nest->buffers.at[s->buffer];
        if (buffer->role == NEST_LOCAL && !m->is_together && !m->is_network)
            t->has_control = true;
        bool has_value = nest_index_takes(&s->index, t->varies);
        int64_t factor = nest_index_factor(&s->index, axis);
        unsigned bytes = (unsigned)jot_dtype_size(buffer->dtype);
        if (has_value || (factor != 0 && factor != 1 && factor != -1))
            t->apart++;
        else if (factor) {
            t->together++;
            t->bytes = bytes > t->bytes ? bytes : t->bytes;
        }
    }
}

bool map_may_have_lanes(const struct map_gpu *m, const struct nest_statement *s, nest_id axis)
{
    nest_id loop = nest_id_of(m->nest, s);
    struct touched t = {.varies = map_varies(m->nest, m->arena, m->uses, loop, axis)};
    note_block(m, s->body, axis, &t);
    return !t.has_control;
}

unsigned map_lanes(const struct map_gpu *m, const struct nest_statement *s, nest_id axis)
{
    nest_id loop = nest_id_of(m->nest, s);
    struct touched t = {.varies = map_varies(m->nest, m->arena, m->uses, loop, axis)};
    note_block(m, s->body, axis, &t);
    if (t.has_control || t.together <= t.apart || !t.bytes)
        return 1;
    unsigned lanes = BYTES / t.bytes;
    if (t.has_time &&
        (m->is_ahead || m->is_group || m->is_phase || nest_extent(m->nest, s) < MANY_CHAINS))
        return 1;
    if (t.has_time && lanes > LANES_IN_TIME)
        lanes = LANES_IN_TIME;
    int64_t extent = m->nest->axes.at[axis].extent;
    bool ends_inside = s->n_axes > 1 || s->kind == NEST_FOLD;
    double most = has_random_bits(m, s->body) ? COST_OF_RANDOM_NEIGHBOURS : COST_OF_NEIGHBOURS;
    if (m->nest->choices & NEST_MORE_LANES)
        most *= 2;
    if (m->nest->choices & NEST_FEWER_LANES && lanes > 1)
        lanes /= 2;
    while (lanes > 1 && (extent < lanes || (ends_inside && extent % lanes) ||
                         lanes * map_turn_work(m->nest, s->body) > most))
        lanes /= 2;
    return lanes ? lanes : 1;
}

// Whether threads keep rows, all of whose loops are written out.
static bool keeps(const struct nest *n)
{
    for (uint32_t i = 0; i < n->buffers.count; i++)
        if (n->buffers.at[i].space == NEST_REGISTER)
            return true;
    return false;
}

// ---- Folds

// So many of `windows` are read at once, of so much work each.
static int64_t windows_at_once(const struct nest *n, nest_id fold, const struct map_row *r,
                               int64_t windows, double work)
{
    const struct nest_statement *s = nest_statement_at(n, fold);
    int64_t at_once = 1, accumulators = (int64_t)s->n_combines * r->parts * r->lanes;
    int64_t most = accumulators > MANY_ACCUMULATORS ? FEW_AT_ONCE : 16;
    while (2 * at_once <= windows && at_once < most &&
           (!work || map_is_short(n, s->body, 2 * at_once * r->parts)) &&
           (double)(2 * at_once * r->parts) * work <= MAP_WINDOWS_WORK)
        at_once *= 2;
    return at_once;
}

bool map_fold_is_straight(const struct nest *n, nest_id fold, const struct map_row *r,
                          double work)
{
    int64_t windows = (r->blocks == 1 ? r->length : r->block) / r->window;
    return windows_at_once(n, fold, r, windows, work) == windows &&
           r->blocks / r->teams * nest_statement_at(n, fold)->n_combines <= MAP_ROUNDS;
}

void map_fold_turns_choose(struct nest *n, nest_id fold)
{
    struct nest_statement *s = &n->statements.at[fold];
    struct map_row r = map_row_of(n, s, n->threads[NEST_GROUP_THREADS], map_vector(n, s));
    double work = s->terms ? 0 : map_turn_work(n, s->body);
    int64_t windows = (r.blocks == 1 ? r.length : r.block) / r.window;
    int64_t at_once = windows_at_once(n, fold, &r, windows, work);
    int64_t rounds = (r.blocks + r.teams - 1) / r.teams, each = rounds * at_once * r.parts;
    bool is_dear = work >= COST_DEAR_TERM && !map_fold_is_straight(n, fold, &r, work);
    bool is_long =
        (double)each * work > MAP_WINDOWS_WORK || each * r.lanes * s->n_combines > MANY_TERMS;
    bool are_out = rounds > 1 && rounds * s->n_combines <= MAP_ROUNDS && (keeps(n) || !is_long);
    s->turns = are_out ? (unsigned)rounds : 0;
    at_once = is_dear ? 1 : at_once;
    // A long body is written once, for one part of a window.
    bool is_said = r.parts == 1 ? at_once > 1 : work <= MAP_WINDOWS_WORK;
    s->at_once = is_said ? (unsigned)at_once : 0;
}

// Whether a fold inside is a loop, which would be as many loops.
static bool has_loop(const struct nest *n, uint32_t block, int64_t most)
{
    nest_for_each (s, n, block)
        if (s->kind == NEST_FOLD && !map_fold_is_written_out(n, nest_id_of(n, s), most))
            return true;
    return false;
}

bool map_fold_is_written_out(const struct nest *n, nest_id fold, int64_t most)
{
    const struct nest_statement *s = nest_statement_at(n, fold);
    int64_t length = nest_extent(n, s);
    bool is_short =
        length <= WRITTEN_OUT ||
        (length <= FOLD_LANES && (double)length * map_turn_work(n, s->body) <= COST_OF_TURNS);
    int64_t once = nest_code(n, s->body, FOLD_LANES, 1, most) + s->n_combines;
    return is_short && once <= most / (length ? length : 1) && !nest_has_time(n, s->body) &&
           !nest_accumulates(n, fold) && !has_loop(n, s->body, most);
}

// ---- Points

struct map_points map_points_of(const struct nest *n, nest_id loop)
{
    const struct nest_statement *s = nest_statement_at(n, loop);
    struct map_points p = {
        .s = s, .axis = s->axes[s->n_axes - 1], .lanes = map_vector(n, s), .rows = 1};
    p.row_axis = p.axis;
    int64_t extent = n->axes.at[p.axis].extent, all = nest_extent(n, s);
    for (uint32_t k = 0; k < s->n_axes; k++) {
        const struct nest_axis *axis = &n->axes.at[s->axes[k]];
        p.rows = axis->rows ? axis->rows : p.rows;
        p.row_axis = axis->rows ? s->axes[k] : p.row_axis;
    }
    p.count = extent ? all / extent * ((extent + p.lanes - 1) / p.lanes) / p.rows : 0;
    return p;
}

void map_points_write(struct nest *n, const struct map_points *p)
{
    n->axes.at[p->axis].vector = p->lanes > 1 ? p->lanes : 0;
    n->axes.at[p->row_axis].rows = p->rows > 1 ? (unsigned)p->rows : 0;
}

struct map_points map_points_make(const struct map_gpu *m, nest_id loop)
{
    struct map_points p = map_points_of(m->nest, loop);
    int64_t extent = m->nest->axes.at[p.axis].extent, all = nest_extent(m->nest, p.s);
    if (all >= COST_NEIGHBOURS || m->has_columns)
        p.lanes = map_lanes(m, p.s, p.axis);
    p.count = extent ? all / extent * ((extent + p.lanes - 1) / p.lanes) : 0;
    return p;
}

// Four-byte registers of what is read in the fold that is the same along the axis and beside its
// neighbours along that of the lanes, 0 when there is nothing; REGISTERS + 1 when it may not be kept.
static int64_t count_shared(const struct map_gpu *m, const struct map_points *p,
                            const struct nest_statement *fold, nest_id axis)
{
    int64_t registers = 0;
    nest_for_each (s, m->nest, fold->body) {
        if (s->kind > NEST_LOAD)
            return REGISTERS + 1;
        if (s->kind != NEST_LOAD || nest_index_factor(&s->index, axis))
            continue;
        if (s->guard != NEST_NONE || nest_index_has_values(&s->index) ||
            !map_is_read_only(m, s->buffer))
            return REGISTERS + 1;
        if (nest_index_factor(&s->index, p->axis) == 1)
            registers +=
                (int64_t)jot_dtype_size(s->dtype) * p->lanes * nest_extent(m->nest, fold) / 4;
    }
    return registers;
}

// Whether the rows along the axis share what short folds of the body read, and nothing of it is more
// than a thread can keep.
static bool shares_reads(const struct map_gpu *m, const struct map_points *p, nest_id axis)
{
    int64_t registers = 0;
    nest_for_each (s, m->nest, p->s->body) {
        nest_id id = nest_id_of(m->nest, s);
        if (s->kind == NEST_FOLD && map_fold_is_written_out(m->nest, id, m->code))
            registers += count_shared(m, p, s, axis);
        else if (s->kind > NEST_PUT || (s->kind == NEST_PUT && s->op))
            return false;
    }
    return registers > 0 && registers <= REGISTERS;
}

// Turns that are read at once: what branches, as a quotient whose operands are out of range, is written out to no gain,
// for nothing that is read is moved over a branch.
static unsigned turns_at_once(const struct nest *n, const struct map_points *p, int64_t group)
{
    int64_t each = p->count / group;
    unsigned turns = TURNS_AT_ONCE;
    bool branches = false;
    nest_for_each (s, n, p->s->body) {
        if (s->kind > NEST_PUT || (s->kind == NEST_PUT && s->op))
            return 0;
        branches |= s->kind == NEST_OP && cost_is_expensive(s->op, s->dtype);
    }
    if (!branches || keeps(n) || p->lanes == 1 || p->rows != 1 ||
        n->axes.at[p->axis].extent % p->lanes || p->count % group ||
        (double)each * map_turn_work(n, p->s->body) <= TURNS_WORK)
        return 0;
    while (turns > 1 && each % turns)
        turns /= 2;
    return turns;
}

void map_turns_choose(struct nest *n, nest_id loop)
{
    struct nest_statement *s = &n->statements.at[loop];
    struct map_points p = map_points_of(n, loop);
    int64_t group = n->threads[NEST_GROUP_THREADS], each = p.count / group;
    s->at_once = turns_at_once(n, &p, group);
    if (!s->at_once && p.count % group == 0 && map_is_short(n, s->body, each))
        s->turns = (unsigned)each;
}

void map_points_widen(const struct map_gpu *m, struct map_points *p)
{
    if (m->is_phase || m->is_ahead || p->lanes == 1 ||
        m->nest->axes.at[p->axis].extent % p->lanes)
        return;
    for (uint32_t k = p->s->n_axes; k-- > 0;) {
        nest_id axis = p->s->axes[k];
        int64_t extent = m->nest->axes.at[axis].extent, rows = MOST_ROWS;
        while (rows > 1 && (extent % rows || p->count / rows < ROW_THREADS))
            rows /= 2;
        if (axis == p->axis || rows == 1 || !shares_reads(m, p, axis))
            continue;
        p->row_axis = axis;
        p->rows = rows;
        p->count /= rows;
        return;
    }
}
