// SPDX-License-Identifier: Apache-2.0
// Levels of a processor: which axes are vector lanes, and how many of their elements go at once.
//
//     par i < 1000 { fold k < 200 { ... } }      par i < 1000 @vector 64 { fold k < 200 { ... } }
//
// A loop has an axis of lanes where it costs less so (price.c).  In lanes nothing else has, but for
// what one lane does by itself: a fold that stands in the loop, where each lane folds what lies
// together, and what is inside of a while, which the last lane that goes on finishes alone.
#include "ir/cost.h"
#include "map/map.h"

// What a body does for the lanes of an axis, and what it does once for all of them.
struct measure {
    unsigned bytes; // of the widest element that lanes have
    double ops, expensive, shared;
};

static struct measure measure(const struct nest *n, nest_id loop, nest_id axis)
{
    struct map_uses uses = {0};
    const bool *varies = map_varies(n, n->arena, &uses, loop, axis);
    struct measure m = {.bytes = 1};
    nest_for_below (s, n, nest_statement_at(n, loop)->body) {
        int cost = s->kind == NEST_OP ? cost_of_op(s->op, s->dtype) : 1;
        bool makes = s->kind == NEST_OP || s->kind == NEST_LOAD;
        if (makes && !varies[s->result]) {
            m.shared += cost;
            continue;
        }
        unsigned wide = makes ? dtype_get(dtype_real(s->dtype))->bytes : 1;
        m.bytes = wide > m.bytes ? wide : m.bytes;
        m.ops += cost;
        m.expensive += cost > COST_EXPENSIVE ? cost : 0;
    }
    return m;
}

// How many lanes of 4 bytes: several vectors at once hide the latency of short bodies; long ones
// have independent work of their own, and compiling them costs by the vector, unless most is calls.
// A loop that is soon done is not worth much compiling.
static unsigned lanes_in_flight(double ops, double work, bool is_calls)
{
    if (is_calls || ops <= 60 || (ops <= 600 && work > COST_LONG_WORK))
        return 64;
    return ops > 1500 || (ops > 60 && work < COST_QUICK_WORK) ? 16 : 32;
}

// The work of the trips of loops over time, and whether each lane does nothing but compute there.
struct steps {
    double ops;
    bool touch_memory;
};

static void look_at_steps(const struct nest *n, uint32_t block, nest_id axis, bool in_time,
                          struct steps *steps)
{
    nest_for_each (s, n, block)
        if (s->kind == NEST_SEQ)
            look_at_steps(n, s->body, axis, true, steps);
        else if (s->body != NEST_NONE || (in_time && s->kind == NEST_PUT))
            steps->touch_memory = true;
        else if (in_time && s->kind == NEST_LOAD)
            steps->touch_memory |=
                nest_index_has_values(&s->index) || nest_index_factor(&s->index, axis) != 0;
        else if (in_time && s->kind == NEST_OP)
            steps->ops += cost_of_op(s->op, s->dtype);
}

// How many lanes of 4 bytes go through loops over time as one.  A processor that looks ahead to the
// next vector of short trips sees no other in long ones, so there each operation is for several.
static unsigned lanes_in_step(const struct nest *n, uint32_t block, nest_id axis)
{
    struct steps steps = {0};
    look_at_steps(n, block, axis, false, &steps);
    return steps.ops > COST_LONG_STEP && !steps.touch_memory ? COST_LONG_STEP_LANES : 16;
}

// The accumulators that the folds of a loop have for each of its lanes, at most.
static uint32_t most_combines(const struct nest *n, const struct nest_statement *s)
{
    uint32_t most = s->kind == NEST_FOLD ? s->n_combines : 1;
    nest_for_each (x, n, s->body)
        if (x->kind == NEST_FOLD && x->n_combines > most)
            most = x->n_combines;
    return most;
}

static unsigned registers_of(const struct map_host *host)
{
    return host->vector_bytes == 64 ? 32 : 16;
}

static unsigned count_lanes(const struct nest *n, const struct nest_statement *s, nest_id axis,
                            const struct map_host *host)
{
    struct measure m = measure(n, nest_id_of(n, s), axis);
    unsigned bytes = m.bytes;
    bool is_calls = host->form >= MAP_BY_FUNCTION && m.expensive > m.ops / 2;
    unsigned width = host->form == MAP_ONE_REGISTER ? 16
                     : nest_has_time(n, s->body)
                         ? lanes_in_step(n, s->body, axis)
                         : lanes_in_flight(m.ops, (double)nest_extent(n, s) * m.ops, is_calls);
    if (bytes == 8)
        width /= 2;
    width = width * host->vector_bytes / 64;
    int64_t extent = n->axes.at[axis].extent;
    // What a trip does once for all lanes is done for more of them, while each core has some.
    while (nest_has_time(n, s->body) && m.shared > m.ops * width * bytes / host->vector_bytes &&
           2 * width * COST_CORES <= extent)
        width *= 2;
    // Half of the registers for accumulators.
    while (width > host->vector_bytes / bytes &&
           width * bytes * most_combines(n, s) > registers_of(host) / 2 * host->vector_bytes)
        width /= 2;
    // Of rows that end anywhere among the accumulators, parts in which nothing is left are passed over.
    if (s->kind == NEST_FOLD && s->n_axes > 1 && extent % COST_ACCUMULATORS &&
        width > host->vector_bytes / bytes)
        width = host->vector_bytes / bytes;
    if (n->choices & NEST_MORE_LANES && width < COST_ACCUMULATORS)
        width *= 2;
    if (n->choices & NEST_FEWER_LANES && width > 2)
        width /= 2;
    while ((int64_t)width / 2 >= extent && width > 2)
        width /= 2;
    return width;
}

// Where a statement stands.
struct context {
    bool in_lanes; // of a loop around
    bool in_while; // and in a while there
    bool in_fold;
    struct map_time time;
};

// The axis of lanes that the loop gets, or NEST_NONE.
static nest_id choose_lanes(struct nest *n, nest_id loop, struct map_time time,
                            const struct map_host *host)
{
    const struct nest_statement *s = nest_statement_at(n, loop);
    nest_id axis = NEST_NONE;
    if (s->kind != NEST_FOLD || nest_extent(n, s) > 1)
        map_cost_in(n, loop, time, &axis);
    if (axis != NEST_NONE)
        n->axes.at[axis].vector = count_lanes(n, s, axis, host);
    return axis;
}

static void map_block(struct nest *n, uint32_t block, struct context at,
                      const struct map_host *host);

static void map_loop(struct nest *n, nest_id loop, struct context at,
                     const struct map_host *host)
{
    const struct nest_statement *s = nest_statement_at(n, loop);
    nest_id axis =
        at.in_lanes && !at.in_while ? NEST_NONE : choose_lanes(n, loop, at.time, host);
    const struct nest_block *body = &n->blocks.at[s->body];
    // Through time several vectors go side by side, all of them in step.
    bool may = axis != NEST_NONE && !at.in_fold && !nest_has_time(n, s->body);
    for (uint32_t i = 0; may && i < body->statements.count; i++)
        if (map_folds_by_lane(n, s, nest_statement_at(n, body->statements.at[i]), axis,
                              at.time))
            choose_lanes(n, body->statements.at[i], at.time, host);
    if (axis != NEST_NONE)
        at = (struct context){.in_lanes = true, .in_fold = at.in_fold, .time = at.time};
    at.in_fold |= s->kind == NEST_FOLD;
    map_block(n, s->body, at, host);
}

static void map_block(struct nest *n, uint32_t block, struct context at,
                      const struct map_host *host)
{
    nest_for_each (s, n, block) {
        if (s->kind == NEST_PAR || s->kind == NEST_MAP || s->kind == NEST_FOLD) {
            map_loop(n, nest_id_of(n, s), at, host);
            continue;
        }
        struct context inside = at;
        inside.in_while |= s->kind == NEST_WHILE;
        if (s->kind == NEST_SEQ)
            inside.time =
                (struct map_time){s->axes[0], registers_of(host) / 2 * host->vector_bytes};
        map_block(n, s->body, inside, host);
        map_block(n, s->other, inside, host);
    }
}

void map_change(struct nest *n)
{
    if (map_jam(n))
        nest_collapse(n);
    map_stage(n);
}

int64_t map_price_of_all(struct nest *n)
{
    nest_collapse(n);
    map_change(n);
    double price = (double)map_price(n);
    return (int64_t)(price > COST_PARALLEL ? price / map_cores(n) : price);
}

void map_to_host(struct nest *n, const struct map_host *host)
{
    for (uint32_t i = 0; i < n->axes.count; i++)
        n->axes.at[i].vector = 0;
    map_block(n, 0, (struct context){.time = {NEST_NONE, 0}}, host);
    n->price = map_price(n);
}
