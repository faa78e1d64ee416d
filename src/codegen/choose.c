// SPDX-License-Identifier: Apache-2.0
// Which axis becomes vector lanes: an estimate of the work of each choice, in scalar operations.
#include "codegen/lower.h"
#include "passes/cost.h"

#include <string.h>

#define VECTOR 16.0 // lanes that an operation does at once, roughly
#define LOOP_OVERHEAD 8.0
#define FOLD_OVERHEAD 14.0 // bringing the accumulators of a fold together
#define LANE_OVERHEAD 2.0  // a lane's result on its way into a vector
#define QUICK_WORK 1e7     // scalar operations, under a millisecond
#define LONG_WORK 2e8
#define TRIPS 32.0    // of a while, nobody knows
#define LONG_STEP 128 // operations
#define SHORT_AXIS 8  // below this an axis is not worth lanes

static double block_cost(const struct cg_lowering *l, uint32_t block, nest_id axis);
static double best_cost(const struct cg_lowering *l, const struct nest_statement *s,
                        nest_id *out_axis);

static double access_cost(const struct nest_index *x, nest_id axis)
{
    if (axis == NEST_NONE)
        return 1;
    int64_t factor = nest_index_factor(x, axis);
    if (nest_index_has_values(x))
        return 1.2;
    if (factor == 0)
        return 0.5 / VECTOR;
    if (factor == 1 || factor == -1)
        return 1 / VECTOR;
    return factor >= -4 && factor <= 4 ? 0.4 : 1.2;
}

// Lanes that put at places of their own take longer than one after the other.
static double put_cost(const struct nest_statement *s, nest_id axis)
{
    if (axis != NEST_NONE && !s->op && nest_index_has_values(&s->index))
        return nest_index_factor(&s->index, axis) == 1 ? 1 / VECTOR : 16;
    return access_cost(&s->index, axis) * (s->op ? 2 : 1);
}

// Of a loop inside of lanes of the axis.  The accumulators of a fold are in memory: each term reads one and puts
// it back, and they are cleared before and brought together behind it.
static double across_cost(const struct cg_lowering *l, const struct nest_statement *s,
                          nest_id axis)
{
    double trips = (double)cg_extent(l, s), accumulators = trips < 64 ? trips : 64;
    double loop = trips * (block_cost(l, s->body, axis) + 2 / VECTOR);
    return s->kind == NEST_FOLD ? loop + (6 * trips + 4 * accumulators + 8) / VECTOR : loop;
}

static double statement_cost(const struct cg_lowering *l, const struct nest_statement *s,
                             nest_id axis)
{
    double lane = axis == NEST_NONE ? 1 : 1 / VECTOR;
    switch (s->kind) {
    case NEST_OP:
        return cost_of_op(s->op, s->dtype) * lane;
    case NEST_LOAD:
        return access_cost(&s->index, axis);
    case NEST_PUT:
        return put_cost(s, axis);
    case NEST_CONST:
    case NEST_INDEX:
        return 0.5 * lane;
    case NEST_CONTRACT:
        return 2 * (double)cg_extent(l, s) * lane;
    case NEST_MAP:
    case NEST_PAR:
    case NEST_FOLD:
    case NEST_SCAN:
    case NEST_SEQ:
        return axis == NEST_NONE ? best_cost(l, s, NULL) : across_cost(l, s, axis);
    case NEST_WHILE:
        return TRIPS *
               (block_cost(l, s->body, axis) + block_cost(l, s->other, axis) + 4 * lane);
    case NEST_IF:
        return block_cost(l, s->body, axis) + block_cost(l, s->other, axis) + 2 * lane;
    default:
        return lane;
    }
}

static double block_cost(const struct cg_lowering *l, uint32_t block, nest_id axis)
{
    double cost = 0;
    if (block == NEST_NONE)
        return cost;
    const struct nest_block *b = &l->nest->blocks.at[block];
    for (uint32_t i = 0; i < b->statements.count; i++)
        cost += statement_cost(l, cg_statement(l, b->statements.at[i]), axis);
    return cost;
}

static bool is_loop(enum nest_kind kind)
{
    return kind == NEST_MAP || kind == NEST_PAR || kind == NEST_FOLD || kind == NEST_SCAN ||
           kind == NEST_SEQ || kind == NEST_WHILE;
}

static bool has_loops(const struct cg_lowering *l, uint32_t block)
{
    if (block == NEST_NONE)
        return false;
    const struct nest_block *b = &l->nest->blocks.at[block];
    for (uint32_t i = 0; i < b->statements.count; i++) {
        const struct nest_statement *s = cg_statement(l, b->statements.at[i]);
        if (is_loop(s->kind) ||
            (s->kind == NEST_IF && (has_loops(l, s->body) || has_loops(l, s->other))))
            return true;
    }
    return false;
}

bool cg_has_time(const struct cg_lowering *l, uint32_t block)
{
    if (block >= l->nest->blocks.count)
        return false;
    const struct nest_block *b = &l->nest->blocks.at[block];
    for (uint32_t i = 0; i < b->statements.count; i++) {
        const struct nest_statement *s = cg_statement(l, b->statements.at[i]);
        if (s->kind == NEST_SEQ || s->kind == NEST_WHILE || cg_has_time(l, s->body) ||
            cg_has_time(l, s->other))
            return true;
    }
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

// Whether a fold in the body of the loop s costs less for one lane of the axis after the other.
static bool is_by_lane(const struct cg_lowering *l, const struct nest_statement *s,
                       const struct nest_statement *fold, nest_id axis)
{
    return fold->kind == NEST_FOLD && (s->kind == NEST_PAR || s->kind == NEST_MAP) &&
           !has_loops(l, fold->body) &&
           cg_may_fold_by_lane(l, &l->nest->blocks.at[s->body], fold) &&
           best_cost(l, fold, NULL) + LANE_OVERHEAD < across_cost(l, fold, axis);
}

// Of the body of the loop s in lanes of its axis.
static double body_cost(const struct cg_lowering *l, const struct nest_statement *s,
                        nest_id axis)
{
    const struct nest_block *b = &l->nest->blocks.at[s->body];
    double cost = 0;
    for (uint32_t i = 0; i < b->statements.count; i++) {
        const struct nest_statement *x = cg_statement(l, b->statements.at[i]);
        cost += is_by_lane(l, s, x, axis) ? best_cost(l, x, NULL) + LANE_OVERHEAD
                                          : statement_cost(l, x, axis);
    }
    return cost;
}

bool cg_folds_by_lane(const struct cg_lowering *l, nest_id loop, nest_id fold, nest_id axis)
{
    const struct nest_statement *s = cg_statement(l, loop);
    const struct nest_block *b = &l->nest->blocks.at[s->body];
    for (uint32_t i = 0; i < b->statements.count; i++)
        if (b->statements.at[i] == fold)
            return is_by_lane(l, s, cg_statement(l, fold), axis);
    return false;
}

static double best_cost(const struct cg_lowering *l, const struct nest_statement *s,
                        nest_id *out_axis)
{
    double all = (double)cg_extent(l, s), best = -1;
    nest_id chosen = NEST_NONE;
    if (has_loops(l, s->body) || s->kind == NEST_SCAN || s->kind == NEST_SEQ) {
        best = all * (block_cost(l, s->body, NEST_NONE) + 2);
    }
    for (uint32_t i = s->n_axes; i-- > 0;) {
        int64_t extent = l->nest->axes.at[s->axes[i]].extent;
        if (!may_be_lanes(s, i) || extent == 0)
            continue;
        double trips = (double)((extent + 15) / 16 * 16);
        if (extent < SHORT_AXIS)
            trips = (double)(extent > 4 ? 8 : extent > 2 ? 4 : 2) * 2;
        double cost = all / (double)extent *
                      (trips * body_cost(l, s, s->axes[i]) + LOOP_OVERHEAD +
                       (s->kind == NEST_FOLD ? FOLD_OVERHEAD : 0));
        if (best < 0 || cost < best) {
            best = cost;
            chosen = s->axes[i];
        }
    }
    if (out_axis)
        *out_axis = chosen;
    return best < 0 ? all * block_cost(l, s->body, NEST_NONE) : best;
}

// The widest element and the number of vector operations of a body, and of those in expensive ops.
static void measure(const struct cg_lowering *l, uint32_t block, unsigned *bytes, double *ops,
                    double *expensive)
{
    if (block == NEST_NONE)
        return;
    const struct nest_block *b = &l->nest->blocks.at[block];
    for (uint32_t i = 0; i < b->statements.count; i++) {
        const struct nest_statement *s = cg_statement(l, b->statements.at[i]);
        if (s->kind == NEST_OP || s->kind == NEST_LOAD || s->kind == NEST_CONST) {
            unsigned wide = dtype_get(dtype_real(s->dtype))->bytes;
            *bytes = wide > *bytes ? wide : *bytes;
        }
        int cost = s->kind == NEST_OP ? cost_of_op(s->op, s->dtype) : 1;
        *ops += cost;
        *expensive += cost > COST_EXPENSIVE ? cost : 0;
        measure(l, s->body, bytes, ops, expensive);
        measure(l, s->other, bytes, ops, expensive);
    }
}

// How many lanes of 4 bytes: several vectors at once hide the latency of short bodies; long ones
// have independent work of their own, and compiling them costs by the vector, unless most is calls.
// A loop that is soon done is not worth much compiling.
static unsigned lanes_in_flight(double ops, double work, bool is_calls)
{
    if (is_calls || ops <= 30 || (ops <= 600 && work > LONG_WORK))
        return 64;
    return ops > 1500 || (ops > 60 && work < QUICK_WORK) ? 16 : 32;
}

// The work of the steps of loops over time, and whether each lane does nothing but compute there.
struct steps {
    double ops;
    bool touch_memory;
};

static void look_at_steps(const struct cg_lowering *l, uint32_t block, nest_id axis,
                          bool in_time, struct steps *steps)
{
    const struct nest_block *b = &l->nest->blocks.at[block];
    for (uint32_t i = 0; i < b->statements.count; i++) {
        const struct nest_statement *s = cg_statement(l, b->statements.at[i]);
        if (s->kind == NEST_SEQ)
            look_at_steps(l, s->body, axis, true, steps);
        else if (s->body != NEST_NONE || (in_time && s->kind == NEST_PUT))
            steps->touch_memory = true;
        else if (in_time && s->kind == NEST_LOAD)
            steps->touch_memory |=
                nest_index_has_values(&s->index) || nest_index_factor(&s->index, axis) != 0;
        else if (in_time && s->kind == NEST_OP)
            steps->ops += cost_of_op(s->op, s->dtype);
    }
}

// How many lanes of 4 bytes go through loops over time as one.  A processor that looks ahead to the
// next vector of short steps sees no other in long ones, so there each operation is for several.
static unsigned lanes_in_step(const struct cg_lowering *l, uint32_t block, nest_id axis)
{
    struct steps steps = {0};
    look_at_steps(l, block, axis, false, &steps);
    return steps.ops > LONG_STEP && !steps.touch_memory ? CG_CHUNK : 16;
}

nest_id cg_choose_axis(const struct cg_lowering *l, nest_id statement, unsigned *lanes)
{
    const struct nest_statement *s = cg_statement(l, statement);
    nest_id axis;
    *lanes = 1;
    if (l->gpu)
        return NEST_NONE;
    best_cost(l, s, &axis);
    if (axis == NEST_NONE)
        return axis;
    unsigned bytes = 1;
    double ops = 0, expensive = 0;
    measure(l, s->body, &bytes, &ops, &expensive);
    bool is_calls = l->m.by_function && expensive > ops / 2;
    unsigned width = cg_has_time(l, s->body)
                         ? lanes_in_step(l, s->body, axis)
                         : lanes_in_flight(ops, (double)cg_extent(l, s) * ops, is_calls);
    if (bytes == 8)
        width /= 2;
    width = width * l->module->vector_bytes / 64;
    int64_t extent = l->nest->axes.at[axis].extent;
    while ((int64_t)width / 2 >= extent && width > 2)
        width /= 2;
    *lanes = width;
    return axis;
}

double cg_loop_cost(const struct cg_lowering *l, nest_id s)
{
    return best_cost(l, cg_statement(l, s), NULL);
}
