// SPDX-License-Identifier: Apache-2.0
// What a loop costs on a processor, by the axis whose elements are vector lanes: an estimate of the work of
// each choice, in scalar operations.
#include "base/fold.h"
#include "ir/cost.h"
#include "map/map.h"

#include <math.h>

// Statements around an access among which others of its line are looked for.
#define LINE_LOOK 32
#define MOST_OF_LINE 8.0 // of which so many gain

struct pricing {
    const struct nest *n;
    int64_t lanes; // of a register, of the widest elements
    nest_id time;  // the axis of the loop over time around, that is priced as well
    struct map_variation variation;
    struct map_time kept; // of the loop over time around what is priced
};

static double block_cost(const struct pricing *p, uint32_t block, nest_id axis);
static double best_cost(const struct pricing *p, const struct nest_statement *s,
                        nest_id *out_axis);

static int64_t bytes_of(const struct nest *n, const struct nest_statement *s)
{
    return dtype_get(n->buffers.at[s->buffer].dtype)->bytes;
}

// Bytes of the widest elements of the block.
static int64_t widest(const struct nest *n, uint32_t block)
{
    int64_t bytes = COST_VECTOR_BYTES / (int64_t)COST_VECTOR;
    nest_for_below (s, n, block) {
        int64_t own = s->kind == NEST_OP || s->kind == NEST_LOAD
                          ? dtype_get(dtype_real(s->dtype))->bytes
                          : 0;
        bytes = own > bytes ? own : bytes;
    }
    return bytes;
}

static struct pricing pricing_of(const struct nest *n, uint32_t block, struct map_time time)
{
    return (struct pricing){n, COST_VECTOR_BYTES / widest(n, block), NEST_NONE,
                            map_variation_of(n, block), time};
}

// How many accesses beside this one are of the same line, of which lanes that are far apart take rows (codegen/records.c).
static double of_line(const struct pricing *p, const struct nest_statement *s)
{
    int64_t at = s - p->n->statements.at, n = p->n->statements.count, found = 0;
    for (int64_t i = at < LINE_LOOK ? 0 : at - LINE_LOOK; i < n && i <= at + LINE_LOOK; i++) {
        const struct nest_statement *x = &p->n->statements.at[i];
        int64_t apart = x->index.constant - s->index.constant;
        found += x->kind == s->kind && x->buffer == s->buffer && !x->op &&
                 x->guard == NEST_NONE && nest_index_same_terms(&x->index, &s->index) &&
                 (apart < 0 ? -apart : apart) * bytes_of(p->n, s) < COST_LINE_BYTES;
    }
    return found < 1 ? 1 : found < MOST_OF_LINE ? (double)found : MOST_OF_LINE;
}

// What an access of lanes takes whose lines have few sets in the nearest cache: by the time that the next element of
// a line is wanted it has been replaced.
static double conflict_cost(const struct pricing *p, const struct nest_statement *s,
                            nest_id axis)
{
    int64_t step = nest_index_factor(&s->index, axis) * bytes_of(p->n, s), same = 1;
    int64_t extent = p->n->axes.at[axis].extent, lines = 2 * (int64_t)COST_VECTOR;
    while (same < COST_NEAR_PERIOD && step % (2 * same) == 0)
        same *= 2;
    lines = extent < lines ? extent : lines;
    if (same < COST_LINE_BYTES || lines * same < COST_NEAR_WAYS * COST_NEAR_PERIOD)
        return 0;
    return COST_OF_CONFLICT * (double)same / COST_NEAR_PERIOD;
}

// Of an element that each lane has far from those of the others: rows go by tiles, as do neighbours through time
// (codegen/stack.c).
static double apart_cost(const struct pricing *p, const struct nest_statement *s, nest_id axis)
{
    double conflict = conflict_cost(p, s, axis);
    if (s->op || s->guard != NEST_NONE)
        return COST_GATHER + conflict;
    int64_t through = p->time == NEST_NONE ? 0 : nest_index_factor(&s->index, p->time);
    return through == 1 || through == -1 ? COST_OF_TILE * (1 + conflict / 4)
                                         : (COST_GATHER + conflict) / of_line(p, s);
}

static double access_cost(const struct pricing *p, const struct nest_statement *s, nest_id axis)
{
    const struct nest_index *x = &s->index;
    if (axis == NEST_NONE)
        return 1;
    int64_t factor = nest_index_factor(x, axis);
    if (map_index_varies(&p->variation, x, axis))
        return COST_GATHER;
    if (factor == 0)
        return 0.5 / COST_VECTOR;
    if (factor == 1 || factor == -1)
        return 1 / COST_VECTOR;
    return factor >= -4 && factor <= 4 ? 0.25 : apart_cost(p, s, axis);
}

// Whether registers keep all that the load reads through the loop over time.
static bool is_kept(const struct pricing *p, const struct nest_statement *s)
{
    const struct nest_buffer *from = &p->n->buffers.at[s->buffer];
    int64_t bytes = dtype_get(from->dtype)->bytes;
    if (from->role != NEST_IN || s->guard != NEST_NONE || nest_index_has_values(&s->index))
        return false;
    for (uint32_t i = 0; i < s->index.count && bytes <= p->kept.kept; i++)
        bytes *= s->index.terms[i].id == p->kept.axis
                     ? p->kept.kept + 1
                     : p->n->axes.at[s->index.terms[i].id].extent;
    return bytes <= p->kept.kept;
}

// Lanes that put at indices of their own take longer than one after the other.  Those that accumulate have them together
// until the fold ends, whatever their indices are.
static double put_cost(const struct pricing *p, const struct nest_statement *s, nest_id axis)
{
    bool varies = axis != NEST_NONE && map_index_varies(&p->variation, &s->index, axis);
    if (varies && !s->op)
        return 16;
    if (axis != NEST_NONE && !varies && s->op && nest_index_factor(&s->index, axis))
        return 2 / COST_VECTOR;
    double cost = access_cost(p, s, axis) * (s->op ? 2 : 1);
    return cost > 1 / COST_VECTOR && cost < COST_NEAR_PUT ? COST_NEAR_PUT : cost;
}

// Of a loop inside of lanes of the axis.  The accumulators of a fold of more than a few terms are in memory: each term
// reads one and puts it back, and they are cleared before and brought together behind it.
static double across_cost(const struct pricing *p, const struct nest_statement *s, nest_id axis)
{
    struct pricing in_time = *p;
    if (s->kind == NEST_SEQ) {
        in_time.time = s->axes[0];
        p = &in_time;
    }
    double trips = (double)nest_extent(p->n, s), accumulators = trips < 64 ? trips : 64;
    double loop = trips * (block_cost(p, s->body, axis) + 2 / COST_VECTOR);
    if (s->kind == NEST_FOLD && trips > COST_REGISTER_TERMS)
        loop += (6 * trips + 4 * accumulators + 8) / COST_VECTOR;
    return s->kind == NEST_FOLD && trips <= COST_REGISTER_TERMS ? loop + trips / COST_VECTOR
                                                                : loop;
}

// Whether the value is known of a range of indices of the loops around: the loops go over such ranges one by one,
// and what it decides is decided once for each (codegen/intervals.c).
#define INTERVAL_DEPTH 4
static bool is_of_interval(const struct nest *n, nest_id value, int depth)
{
    const struct nest_statement *s = nest_maker_of(n, value);
    bool is =
        s->kind == NEST_CONST || (s->kind == NEST_INDEX && !nest_index_has_values(&s->index));
    if (s->kind != NEST_OP || depth == INTERVAL_DEPTH)
        return is;
    is = s->dtype == JOT_BOOL;
    for (uint32_t i = 0; is && i < s->n_in; i++)
        is = is_of_interval(n, s->in[i], depth + 1);
    return is;
}

// Of a yield: dear combiners, as that of running log-sum-exps, are operations of it.
static double yield_cost(const struct nest_statement *s)
{
    double cost = 1;
    for (uint32_t i = 0; i < s->n_combines; i++)
        cost += cost_of_op(s->combines[i].op, s->combines[i].dtype) - 1;
    return cost;
}

// Dear functions of one register wait for their own results: of several, one goes on while another waits.
static double op_cost(const struct pricing *p, const struct nest_statement *s, nest_id axis)
{
    bool is_one = axis != NEST_NONE && p->time == NEST_NONE &&
                  p->n->axes.at[axis].extent <= p->lanes && cost_is_expensive(s->op, s->dtype);

    bool is_known = s->op == IR_select
                        ? is_of_interval(p->n, s->in[0], 0)
                        : s->dtype == JOT_BOOL && is_of_interval(p->n, s->result, 0);
    return is_known ? 0 : cost_of_op(s->op, s->dtype) * (is_one ? COST_OF_WAITING : 1);
}

static double statement_cost(const struct pricing *p, const struct nest_statement *s,
                             nest_id axis)
{
    double lane = axis == NEST_NONE ? 1 : 1 / COST_VECTOR;
    switch (s->kind) {
    case NEST_OP:
        return op_cost(p, s, axis) * lane;
    case NEST_LOAD:
        return is_kept(p, s) ? 0.5 * lane : access_cost(p, s, axis);
    case NEST_PUT:
        return put_cost(p, s, axis);
    case NEST_CONST:
    case NEST_INDEX:
        return 0.5 * lane;
    case NEST_YIELD:
        return yield_cost(s) * lane;
    case NEST_CONTRACT:
        return 2 * (double)nest_extent(p->n, s) * lane;
    case NEST_MAP:
    case NEST_PAR:
    case NEST_FOLD:
    case NEST_SCAN:
    case NEST_SEQ:
        return axis == NEST_NONE ? best_cost(p, s, NULL) : across_cost(p, s, axis);
    case NEST_WHILE:
        return COST_WHILE_TRIPS *
               (block_cost(p, s->body, axis) + block_cost(p, s->other, axis) + 4 * lane);
    case NEST_IF:
        return block_cost(p, s->body, axis) + block_cost(p, s->other, axis) + 2 * lane;
    default:
        return lane;
    }
}

// What a loop along whose axis lanes are takes beside them.
static double overhead_of(const struct nest_statement *s)
{
    double overhead = COST_OF_LOOP;
    for (uint32_t i = 0; s->kind == NEST_FOLD && i < s->n_combines; i++)
        overhead += ir_is_arg(s->combines[i].op) ? COST_OF_POSITIONS : i ? 0 : COST_OF_FOLD;
    return overhead + (s->kind == NEST_FOLD && !s->n_combines ? COST_OF_FOLD : 0);
}

static double block_cost(const struct pricing *p, uint32_t block, nest_id axis)
{
    double cost = 0;
    nest_for_each (s, p->n, block)
        cost += statement_cost(p, s, axis);
    return cost;
}

static bool is_loop(enum nest_kind kind)
{
    return kind == NEST_MAP || kind == NEST_PAR || kind == NEST_FOLD || kind == NEST_SCAN ||
           kind == NEST_SEQ || kind == NEST_WHILE;
}

static bool has_loops(const struct nest *n, uint32_t block)
{
    nest_for_below (s, n, block)
        if (is_loop(s->kind))
            return true;
    return false;
}

// The elements of a fold or a scan that vector lanes may be: the last axis of a fold, none of a
// scan, whose order is strict.
static bool may_be_lanes(const struct nest_statement *s, uint32_t i)
{
    if (s->kind == NEST_SCAN || s->kind == NEST_SEQ)
        return false;
    return s->kind != NEST_FOLD || i + 1 == s->n_axes;
}

static bool folds_by_lane(const struct pricing *p, const struct nest_statement *s,
                          const struct nest_statement *fold, nest_id axis)
{
    return fold->kind == NEST_FOLD && (s->kind == NEST_PAR || s->kind == NEST_MAP) &&
           !has_loops(p->n, fold->body) && map_may_fold_by_lane(p->n, s->body, fold) &&
           best_cost(p, fold, NULL) + COST_OF_LANE < across_cost(p, fold, axis);
}

bool map_folds_by_lane(const struct nest *n, const struct nest_statement *s,
                       const struct nest_statement *fold, nest_id axis, struct map_time time)
{
    if (fold->kind != NEST_FOLD) // before the walk over the body
        return false;
    struct pricing p = pricing_of(n, s->body, time);
    return folds_by_lane(&p, s, fold, axis);
}

// Of the body of the loop s in lanes of its axis.
static double body_cost(const struct pricing *p, const struct nest_statement *s, nest_id axis)
{
    double cost = 0;
    nest_for_each (x, p->n, s->body)
        cost += folds_by_lane(p, s, x, axis) ? best_cost(p, x, NULL) + COST_OF_LANE
                                             : statement_cost(p, x, axis);
    return cost;
}

static double best_cost(const struct pricing *p, const struct nest_statement *s,
                        nest_id *out_axis)
{
    double all = (double)nest_extent(p->n, s), best = -1;
    nest_id chosen = NEST_NONE;
    if (has_loops(p->n, s->body) || s->kind == NEST_SCAN || s->kind == NEST_SEQ) {
        best = all * (block_cost(p, s->body, NEST_NONE) + 2);
    }
    for (uint32_t i = s->n_axes; i-- > 0;) {
        int64_t extent = p->n->axes.at[s->axes[i]].extent;
        if (!may_be_lanes(s, i) || extent == 0)
            continue;
        double trips = (double)((extent + p->lanes - 1) / p->lanes * p->lanes);
        if (extent < COST_SHORT_AXIS)
            trips = (double)(extent > 4 ? 8 : extent > 2 ? 4 : 2) * 2;
        double cost =
            all / (double)extent * (trips * body_cost(p, s, s->axes[i]) + overhead_of(s));
        if (best < 0 || cost < best) {
            best = cost;
            chosen = s->axes[i];
        }
    }
    if (out_axis)
        *out_axis = chosen;
    return best < 0 ? all * block_cost(p, s->body, NEST_NONE) : best;
}

double map_cost_in(const struct nest *n, nest_id loop, struct map_time time, nest_id *out_axis)
{
    const struct nest_statement *s = nest_statement_at(n, loop);
    struct pricing p = pricing_of(n, s->body, time);
    return best_cost(&p, s, out_axis);
}

double map_cost(const struct nest *n, nest_id loop, nest_id *out_axis)
{
    return map_cost_in(n, loop, (struct map_time){NEST_NONE, 0}, out_axis);
}

int64_t map_price(const struct nest *n)
{
    struct pricing p = pricing_of(n, 0, (struct map_time){NEST_NONE, 0});
    double cost = block_cost(&p, 0, NEST_NONE) + map_traffic(n);
    return cost < 1e18 ? (int64_t)ceil(cost) : (int64_t)1e18;
}

// Parts of the loop of which threads have some each: of points chunks of one axis, of a fold its blocks.
static double parts_of(const struct pricing *p, const struct nest_statement *s)
{
    int64_t extent = nest_extent(p->n, s);
    if (s->kind == NEST_FOLD)
        return ceil((double)extent / (double)fold_block(extent));
    double parts = 1;
    nest_id lanes;
    best_cost(p, s, &lanes);
    for (uint32_t i = 0; i < s->n_axes; i++) {
        double own = (double)p->n->axes.at[s->axes[i]].extent;
        parts = fmax(parts, s->axes[i] == lanes ? own / COST_VECTOR : own);
    }
    return parts;
}

double map_cores(const struct nest *n)
{
    struct pricing p = pricing_of(n, 0, (struct map_time){NEST_NONE, 0});
    double cores = COST_CORES;
    uint32_t loops = 0, points = 0;
    nest_for_each (s, n, 0) {
        if (!is_loop(s->kind))
            continue;
        bool is_points = s->kind == NEST_PAR || s->kind == NEST_MAP;
        loops++;
        points += is_points;
        if (is_points || s->kind == NEST_FOLD)
            cores = fmin(cores, parts_of(&p, s));
        else
            cores = 1;
    }
    return loops == 1 || loops == points ? fmax(cores, 1) : 1;
}

int64_t map_most_code(const struct nest *n, int64_t turns)
{
    int64_t most = COST_CODE;
    while (most > 1 && cost_is_too_much_code(nest_code(n, 0, turns, 1, most)))
        most /= 2;
    return most;
}
