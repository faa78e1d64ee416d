// SPDX-License-Identifier: Apache-2.0
// A while over known and linear values: nobody knows how many trips there will be.
//
//     x, dx = while {test, body} [a | x0, dx0]
// becomes
//     x, n, stride, slots, ... = while ...                       the known part, which keeps states
//     dx = linear_call {forward, backward} a, x0, n, ... ; dx0
//
// where forward is the loop itself and backward goes from the last trip to the first.  Memory is
// fixed before the run: S slots for known carries.  The state before every stride-th trip goes
// into a slot; when the slots are full every second is dropped and the stride doubles (the
// thinning that online checkpointing begins with: Heuveline and Walther, Online checkpointing
// for parallel adjoint computation in PDEs, 2006; Stumm and Walther, New algorithms for optimal
// online checkpointing, 2010).  Backward uses the slots as a stack.  Where the last state on it
// is not the one before the trip in question, the trips between are run again, and the state
// half way is pushed, until it is: log2(stride) states more, and about log2(stride) / 2 more
// runs of each trip.  With at most S trips nothing is run again.
//
// With a bound whose states fit in memory every trip has its slot, and takes what it takes, however
// many more the bound allows.
//
// Everything is made of ordinary ops, so it maps and differentiates further.
//
// With `batched` the loops are batched as well, and every lane has slots of its own.
#include "passes/derive/unzip.h"

#include "base/status.h"
#include "ir/cost.h"
#include "passes/body.h"
#include "passes/derive/unzip_slots.h"
#include "passes/rules/rules.h"

enum {
    CLIMB = 32
}; // more than log2 of any stride: states that backward pushes above the slots

struct online {
    struct ir_module *m;
    struct ir_while loop;
    const struct ir_graph *body; // of the whole
    bool *linear_in;             // by operand, with carries that are linear in some trip
    uint32_t n_consts, n_carry;  // operands of the whole
    struct pass_split s;         // of the body
    uint32_t test, advance;      // the known part: consts, carries -> whether to go on; carries
    uint32_t back;               // known consts and carries, cotangents, sums -> cotangents
    const bool *back_nonzero;    // by operand of the whole
    const bool *back_handed;     // by operand: consts whose sum the body goes on with
    uint32_t n_known_consts, n_states, n_sums, n_linear;
    int64_t slots;
    bool keeps_all;        // of every trip
    struct ir_type *state; // known carries
    struct unzip_lanes lanes;
};

static ir_id constant(struct ir_builder *b, int64_t x) { return ir_scalar_int(b, JOT_I32, x); }

static ir_id plus(struct ir_builder *b, ir_id x, int64_t y)
{
    return ir_add(b, x, constant(b, y));
}

// -- Loops ------------------------------------------------------------------------------------

typedef void loop_part(const struct online *o, struct ir_builder *b, const ir_id *consts,
                       const ir_id *carry);

// Operands of a loop in the making.
struct list {
    ir_id *at;
    int n;
};

static struct list list_make(const struct online *o)
{
    uint32_t most = 10 + o->n_known_consts + 2 * o->n_states + o->n_sums + o->n_linear;
    return (struct list){.at = pass_no_values(o->m, most)};
}

static void push(struct list *l, ir_id v) { l->at[l->n++] = v; }

static void push_all(struct list *l, uint32_t n, const ir_id *v)
{
    for (uint32_t i = 0; i < n; i++)
        push(l, v[i]);
}

static uint32_t loop_function(const struct online *o, struct ir_builder *b,
                              const struct list *in, int n_consts, loop_part *part)
{
    struct ir_builder w = ir_builder_make(o->m, o->body->name, IR_BUILD_ZEROS);
    ir_id *x = pass_no_values(o->m, (uint32_t)in->n);
    for (int i = 0; i < in->n; i++)
        x[i] = ir_param(&w, ir_type_in(b, in->at[i]));
    part(o, &w, x, x + n_consts);
    uint32_t f = ir_finish_function(&w);
    if (f == IR_NONE)
        ir_fail(b, w.status, "%s", w.message);
    return f;
}

// The first of the carries after a while over test and body, whose operands are consts, then
// carries.  trips says which of those of the user its own are.
static ir_id run_while(const struct online *o, struct ir_builder *b, const struct list *in,
                       int n_consts, int batched, enum ir_trips trips, loop_part *test,
                       loop_part *body)
{
    for (int i = 0; i < in->n; i++)
        if (in->at[i] == IR_NONE)
            return IR_NONE;
    struct ir_while w = {.test = loop_function(o, b, in, n_consts, test),
                         .body = loop_function(o, b, in, n_consts, body),
                         .n_consts = n_consts,
                         .batched = batched,
                         .max_trips = IR_NO_BOUND,
                         .slots = o->loop.slots,
                         .trips = o->loop.trips ? IR_TRIPS_UNNAMED : trips};
    if (b->status != JOT_OK)
        return IR_NONE;
    return ir_while(b, &w, in->n, in->at);
}

// -- Trips of the known part ------------------------------------------------------------------

// Loop: limit, consts | trip, x.
static void is_below_limit(const struct online *o, struct ir_builder *b, const ir_id *consts,
                           const ir_id *carry)
{
    (void)o;
    ir_output(b, ir_lt(b, carry[0], consts[0]));
}

// One of the functions of known consts and states.
static void run_known(const struct online *o, struct ir_builder *b, uint32_t f,
                      const ir_id *consts, const ir_id *x, ir_id *out)
{
    struct list in = list_make(o);
    push_all(&in, o->n_known_consts, consts);
    push_all(&in, o->n_states, x);
    ir_inline(b, ir_function(o->m, f), in.at, out);
}

// A trip that was made before.
static void trip_again(const struct online *o, struct ir_builder *b, const ir_id *consts,
                       const ir_id *carry)
{
    ir_id *x = pass_no_values(o->m, o->n_states);
    run_known(o, b, pass_strip_effects(o->m, o->advance), consts + 1, carry + 1, x);
    ir_output(b, plus(b, carry[0], 1));
    for (uint32_t i = 0; i < o->n_states; i++)
        ir_output(b, x[i]);
}

// Results of trips from `trip` on until the limit: the limit, x.
static ir_id run_again(const struct online *o, struct ir_builder *b, ir_id limit,
                       const ir_id *consts, ir_id trip, const ir_id *x)
{
    struct list in = list_make(o);
    push(&in, limit);
    push_all(&in, o->n_known_consts, consts);
    push(&in, trip);
    push_all(&in, o->n_states, x);
    return run_while(o, b, &in, 1 + (int)o->n_known_consts, o->lanes.axes, IR_TRIPS_IN_CARRY,
                     is_below_limit, trip_again);
}

// -- The known loop ---------------------------------------------------------------------------
//
// Three loops in one another: a trip, the trips of a slot, slots until they are full.  Whether the
// test holds is a carry of all, so that it is asked once for each trip.

// Loop: limit, consts | trip, whether the test holds, x.
static void goes_on(const struct online *o, struct ir_builder *b, const ir_id *consts,
                    const ir_id *carry)
{
    (void)o;
    ir_output(b, ir_and(b, ir_lt(b, carry[0], consts[0]), carry[1]));
}

static void one_trip(const struct online *o, struct ir_builder *b, const ir_id *consts,
                     const ir_id *carry)
{
    ir_id *x = pass_no_values(o->m, o->n_states), holds = IR_NONE;
    run_known(o, b, o->advance, consts + 1, carry + 2, x);
    run_known(o, b, o->test, consts + 1, x, &holds);
    ir_output(b, plus(b, carry[0], 1));
    ir_output(b, holds);
    for (uint32_t i = 0; i < o->n_states; i++)
        ir_output(b, x[i]);
}

// Loop: stride, consts | slots in use, trip, whether the test holds, x, slots.
static void has_room(const struct online *o, struct ir_builder *b, const ir_id *consts,
                     const ir_id *carry)
{
    (void)consts;
    ir_output(b, ir_and(b, ir_lt(b, carry[0], constant(b, o->slots)), carry[2]));
}

static void fill_slot(const struct online *o, struct ir_builder *b, const ir_id *consts,
                      const ir_id *carry)
{
    const ir_id *x = carry + 3, *slots = x + o->n_states;
    struct list in = list_make(o);
    push(&in, ir_add(b, carry[1], consts[0]));
    push_all(&in, o->n_known_consts, consts + 1);
    push_all(&in, 2 + o->n_states, carry + 1);
    ir_id y = run_while(o, b, &in, 1 + (int)o->n_known_consts, o->lanes.axes, IR_TRIPS_IN_CARRY,
                        goes_on, one_trip);
    ir_output(b, plus(b, carry[0], 1));
    for (uint32_t i = 0; i < 2 + o->n_states && y != IR_NONE; i++)
        ir_output(b, y + i);
    for (uint32_t i = 0; i < o->n_states; i++)
        ir_output(b, unzip_store(&o->lanes, b, slots[i], carry[0], x[i]));
}

// Loop: consts | stride, slots in use, trip, whether the test holds, x, slots.
static void holds(const struct online *o, struct ir_builder *b, const ir_id *consts,
                  const ir_id *carry)
{
    (void)o, (void)consts;
    ir_output(b, carry[3]);
}

// Drops every second slot (in the first round there are none) and fills the others.
static void fill_slots(const struct online *o, struct ir_builder *b, const ir_id *consts,
                       const ir_id *carry)
{
    const ir_id *x = carry + 4, *slots = x + o->n_states;
    struct list in = list_make(o);
    push(&in, carry[0]);
    push_all(&in, o->n_known_consts, consts);
    push(&in, ir_div(b, carry[1], constant(b, 2)));
    push_all(&in, 2 + o->n_states, carry + 2);
    for (uint32_t i = 0; i < o->n_states; i++)
        push(&in, unzip_spread(&o->lanes, b, slots[i], 2, o->slots));
    ir_id y = run_while(o, b, &in, 1 + (int)o->n_known_consts, o->lanes.axes, IR_TRIPS_UNNAMED,
                        has_room, fill_slot);
    ir_output(b, ir_mul(b, carry[0], constant(b, 2)));
    for (uint32_t i = 0; i < 3 + 2 * o->n_states && y != IR_NONE; i++)
        ir_output(b, y + i);
}

// Loop, when all are kept: the bound, consts | trip, whether the test holds, x, slots.
static void keep_trip(const struct online *o, struct ir_builder *b, const ir_id *consts,
                      const ir_id *carry)
{
    const ir_id *x = carry + 2, *slots = x + o->n_states;
    one_trip(o, b, consts, carry);
    for (uint32_t i = 0; i < o->n_states; i++)
        ir_output(b, unzip_store(&o->lanes, b, slots[i], carry[0], x[i]));
}

// How many numbers of trips the known loop gives.
static uint32_t n_counts(const struct online *o) { return o->keeps_all ? 1 : 3; }

// Results of the known loop: unless all are kept stride (twice that of the slots) and slots in use;
// trips, false, x, slots.
static ir_id build_known(const struct online *o, struct ir_builder *b, const ir_id *consts,
                         const ir_id *x)
{
    struct list in = list_make(o);
    ir_id first = IR_NONE;
    run_known(o, b, o->test, consts, x, &first);
    if (o->keeps_all)
        push(&in, constant(b, o->slots));
    push_all(&in, o->n_known_consts, consts);
    int n_consts = in.n;
    if (!o->keeps_all) {
        push(&in, ir_full(b, o->lanes.count, 1));
        push(&in, ir_zeros(b, o->lanes.count));
    }
    push(&in, ir_zeros(b, o->lanes.count));
    push(&in, first);
    push_all(&in, o->n_states, x);
    for (uint32_t i = 0; i < o->n_states; i++)
        push(&in, ir_zeros(b, unzip_slots_type(&o->lanes, o->state[i], o->slots)));
    return o->keeps_all ? run_while(o, b, &in, n_consts, o->lanes.axes, IR_TRIPS_IN_CARRY,
                                    goes_on, keep_trip)
                        : run_while(o, b, &in, n_consts, o->lanes.axes, IR_TRIPS_UNNAMED, holds,
                                    fill_slots);
}

// -- The backward loop ------------------------------------------------------------------------

// Loop: trip, consts | top, trips of the stack, stack.
static void is_below(const struct online *o, struct ir_builder *b, const ir_id *consts,
                     const ir_id *carry)
{
    ir_output(b, ir_lt(b, unzip_fetch(&o->lanes, b, carry[1], carry[0]), consts[0]));
}

// Runs half the trips that are missing, and pushes the state.
static void climb(const struct online *o, struct ir_builder *b, const ir_id *consts,
                  const ir_id *carry)
{
    ir_id top = carry[0], from = unzip_fetch(&o->lanes, b, carry[1], top),
          above = plus(b, top, 1);
    ir_id missing = plus(b, ir_sub(b, consts[0], from), 1);
    ir_id to = ir_add(b, from, ir_div(b, missing, constant(b, 2)));
    ir_id *x = pass_no_values(o->m, o->n_states);
    for (uint32_t i = 0; i < o->n_states; i++)
        x[i] = unzip_fetch(&o->lanes, b, carry[2 + i], top);
    ir_id y = run_again(o, b, to, consts + 1, from, x);
    ir_output(b, above);
    ir_output(b, unzip_store(&o->lanes, b, carry[1], above, to));
    for (uint32_t i = 0; i < o->n_states && y != IR_NONE; i++)
        ir_output(b, unzip_store(&o->lanes, b, carry[2 + i], above, y + 1 + i));
}

// Whether cotangents of consts are summed: a sum has no lanes, so lanes do not end by themselves.
static bool sums_lanes(const struct online *o) { return o->lanes.axes > 0 && o->n_sums > 0; }

// Loop: consts | trips left, top, trips of the stack, stack, cotangents, sums.
static void has_trips(const struct online *o, struct ir_builder *b, const ir_id *consts,
                      const ir_id *carry)
{
    (void)consts;
    ir_id p = ir_gt(b, carry[0], constant(b, 0));
    int64_t axes[IR_MAX_RANK];
    for (int i = 0; i < o->lanes.axes; i++)
        axes[i] = i;
    ir_output(b, sums_lanes(o) ? ir_reduce(b, IR_reduce_or, p, o->lanes.axes, axes) : p);
}

// x where p, of the lanes, else y.
static ir_id where_lanes(const struct online *o, struct ir_builder *b, ir_id p, ir_id x,
                         ir_id y)
{
    if (x == IR_NONE || y == IR_NONE || p == IR_NONE)
        return IR_NONE;
    struct ir_type t = ir_type_in(b, x);
    int64_t dims[IR_MAX_RANK];
    for (int i = 0; i < t.rank; i++)
        dims[i] = i < o->lanes.axes ? ir_dims(o->m, t)[i] : 1;
    return ir_select(b, ir_reshape(b, p, t.rank, dims), x, y);
}

// Cotangents before a trip from its operands and cotangents after it; sums grow.
static void pull_back(const struct online *o, struct ir_builder *b, const ir_id *consts,
                      const ir_id *x, ir_id p, const ir_id *ct, const ir_id *sums)
{
    struct list in = list_make(o);
    const struct ir_graph *back = ir_function(o->m, o->back);
    ir_id *out = pass_no_values(o->m, back->outputs.count);
    for (uint32_t i = 0; i < o->s.n_residuals; i++) {
        uint32_t from = o->s.residuals[i].index;
        uint32_t index = body_count(o->linear_in, false, 0, from);
        push(&in, from < o->n_consts ? consts[index] : x[index - o->n_known_consts]);
    }
    for (uint32_t i = 0; i < o->n_linear; i++)
        push(&in, p == IR_NONE
                      ? ct[i]
                      : where_lanes(o, b, p, ct[i], ir_zeros(b, ir_type_in(b, ct[i]))));
    for (uint32_t i = 0, k = 0; i < o->n_consts; k += o->back_nonzero[i++])
        if (o->back_handed[i])
            push(&in, sums[k]);
    ir_inline(b, back, in.at, out);
    uint32_t next = body_count(o->back_nonzero, true, 0, o->n_consts), k = 0;
    for (uint32_t i = 0; i < o->n_carry; i++) {
        uint32_t at = o->n_consts + i;
        if (!o->linear_in[at])
            continue;
        ir_id new = o->back_nonzero[at] ? out[next++] : ir_zeros(b, ir_type_of(o->body, at));
        ir_output(b, p == IR_NONE ? new : where_lanes(o, b, p, new, ct[k]));
        k++;
    }
    for (uint32_t i = 0, n = 0; i < o->n_consts; n += o->back_nonzero[i++])
        if (o->back_nonzero[i])
            ir_output(b, o->back_handed[i] ? out[n] : ir_add(b, sums[n], out[n]));
}

static void trip_back(const struct online *o, struct ir_builder *b, const ir_id *consts,
                      const ir_id *carry)
{
    struct list in = list_make(o);
    ir_id *x = pass_no_values(o->m, o->n_states), trip = plus(b, carry[0], -1);
    const ir_id *ct = carry + 3 + o->n_states;
    push(&in, trip);
    push_all(&in, o->n_known_consts, consts);
    push_all(&in, 2 + o->n_states, carry + 1);
    ir_id y = run_while(o, b, &in, 1 + (int)o->n_known_consts, o->lanes.axes, IR_TRIPS_UNNAMED,
                        is_below, climb);
    if (y == IR_NONE)
        return;
    for (uint32_t i = 0; i < o->n_states; i++)
        x[i] = unzip_fetch(&o->lanes, b, y + 2 + i, y);
    ir_output(b, trip);
    ir_output(b, plus(b, y, -1));
    for (uint32_t i = 0; i < 1 + o->n_states; i++)
        ir_output(b, y + 1 + i);
    ir_id p = sums_lanes(o) ? ir_gt(b, carry[0], constant(b, 0)) : IR_NONE;
    pull_back(o, b, consts, x, p, ct, ct + o->n_linear);
}

// Loop, when all are kept: consts, slots | trips left, cotangents, sums.
static void kept_trip_back(const struct online *o, struct ir_builder *b, const ir_id *consts,
                           const ir_id *carry)
{
    ir_id *x = pass_no_values(o->m, o->n_states);
    ir_id p = sums_lanes(o) ? ir_gt(b, carry[0], constant(b, 0)) : IR_NONE;
    ir_id trip = plus(b, carry[0], -1);
    for (uint32_t i = 0; i < o->n_states; i++)
        x[i] = unzip_fetch(&o->lanes, b, consts[o->n_known_consts + i], trip);
    ir_output(b, trip);
    pull_back(o, b, consts, x, p, carry + 1, carry + 1 + o->n_linear);
}

// Trip i * stride for slot i, by lane.
static ir_id trips_of_slots(const struct online *o, struct ir_builder *b, ir_id stride)
{
    struct ir_type t = unzip_slots_type(&o->lanes, o->lanes.count, o->slots + CLIMB);
    int64_t dims[IR_MAX_RANK];
    for (int i = 0; i < t.rank; i++)
        dims[i] = i < o->lanes.axes ? ir_dims(o->m, t)[i] : 1;
    stride = ir_reshape(b, stride, t.rank, dims);
    return ir_mul(b, ir_iota(b, t, o->lanes.axes), stride);
}

// -- The linear part --------------------------------------------------------------------------

// Its residuals: consts, states before the first trip, results of the known loop but the states.
static void push_residual_types(const struct online *o, struct list *out, struct ir_builder *b)
{
    for (uint32_t i = 0; i < o->n_consts; i++)
        if (!o->linear_in[i])
            push(out, ir_param(b, ir_type_of(o->body, i)));
    for (uint32_t i = 0; i < o->n_states; i++)
        push(out, ir_param(b, o->state[i]));
    for (uint32_t i = 0; i < n_counts(o); i++)
        push(out, ir_param(b, o->lanes.count));
    for (uint32_t i = 0; i < o->n_states; i++)
        push(out, ir_param(b, unzip_slots_type(&o->lanes, o->state[i], o->slots)));
}

// (residuals, linear operands) -> linear carries, the loop as it was; and the consts as they are whose
// sums the backward loop goes on with, for the cotangent of what is given is that sum.
static jot_status build_forward(const struct online *o, uint32_t *out_f)
{
    struct ir_builder b = ir_builder_make(o->m, o->body->name, IR_BUILD_PLAIN);
    struct list r = list_make(o);
    uint32_t n_in = o->n_consts + o->n_carry, known = 0;
    ir_id *x = pass_no_values(o->m, n_in);
    push_residual_types(o, &r, &b);
    for (uint32_t i = 0; i < n_in; i++)
        x[i] = o->linear_in[i] ? ir_param(&b, ir_type_of(o->body, i)) : r.at[known++];
    struct ir_while again = o->loop;
    again.test = pass_strip_effects(o->m, again.test);
    again.body = pass_strip_effects(o->m, again.body);
    ir_id y = ir_while(&b, &again, (int)n_in, x);
    for (uint32_t i = 0; i < o->n_carry && y != IR_NONE; i++)
        if (o->linear_in[o->n_consts + i])
            ir_output(&b, y + i);
    for (uint32_t i = 0; i < o->n_consts; i++)
        if (o->back_handed[i])
            ir_output(&b, x[i]);
    return pass_finish(&b, out_f);
}

// (residuals, cotangents of linear carries, sums) -> cotangents of linear operands
static jot_status build_backward(const struct online *o, uint32_t *out_f)
{
    struct ir_builder b = ir_builder_make(o->m, o->body->name, IR_BUILD_ZEROS);
    struct list r = list_make(o), in = list_make(o);
    uint32_t n_known = o->n_known_consts + o->n_states;
    push_residual_types(o, &r, &b);
    push_all(&in, o->n_known_consts, r.at);
    ir_id *ct = pass_no_values(o->m, o->n_linear), *sum = pass_no_values(o->m, o->n_consts);
    for (uint32_t i = 0, k = 0; i < o->n_carry; i++)
        if (o->linear_in[o->n_consts + i])
            ct[k++] = ir_param(&b, ir_type_of(o->body, o->n_consts + i));
    for (uint32_t i = 0; i < o->n_consts; i++)
        if (o->back_handed[i])
            sum[i] = ir_param(&b, ir_type_of(o->body, i));
    const ir_id *loop = r.at + n_known, *slots = loop + n_counts(o);
    if (o->keeps_all)
        push_all(&in, o->n_states, slots);
    int n_consts = in.n;
    push(&in, slots[-1]); // trips; before them are stride and slots in use
    if (!o->keeps_all) {
        push(&in, plus(&b, loop[1], -1));
        push(&in, trips_of_slots(o, &b, ir_div(&b, loop[0], constant(&b, 2))));
        for (uint32_t i = 0; i < o->n_states; i++)
            push(&in, unzip_spread(&o->lanes, &b, slots[i], 1, o->slots + CLIMB));
    }
    int first_ct = in.n - n_consts;
    push_all(&in, o->n_linear, ct);
    for (uint32_t i = 0; i < o->n_consts; i++)
        if (o->back_nonzero[i])
            push(&in, o->back_handed[i] ? sum[i] : ir_zeros(&b, ir_type_of(o->body, i)));
    ir_id y = run_while(o, &b, &in, n_consts, sums_lanes(o) ? 0 : o->lanes.axes, IR_TRIPS_LEFT,
                        has_trips, o->keeps_all ? kept_trip_back : trip_back);
    ir_id carry = y + (ir_id)first_ct, summed = carry + o->n_linear;
    for (uint32_t i = 0; i < o->n_consts + o->n_carry && y != IR_NONE; i++) {
        if (!o->linear_in[i])
            continue;
        if (i >= o->n_consts)
            ir_output(&b, carry++);
        else
            ir_output(&b, o->back_nonzero[i] ? summed++ : ir_zeros(&b, ir_type_of(o->body, i)));
    }
    return pass_finish(&b, out_f);
}

// -- The parts of the body --------------------------------------------------------------------

static jot_status known_parts(struct online *o)
{
    struct pass_split test;
    bool *out = body_mask(o->m, o->n_carry);
    do {
        JOT_TRY(pass_split_replay(o->m, o->loop.body, o->linear_in, &o->s));
        memcpy(out, o->s.linear_out, o->n_carry);
    } while (body_grow(o->linear_in + o->n_consts, out, o->n_carry));
    JOT_TRY(pass_split_replay(o->m, o->loop.test, o->linear_in, &test));
    o->test = test.forward;
    struct body w = body_of(o->m, o->s.forward);
    body_take_all(&w);
    body_run(&w);
    for (uint32_t i = 0; i < o->n_carry; i++)
        if (!o->linear_in[o->n_consts + i])
            body_give(&w, body_count(o->s.linear_out, false, 0, i));
    return pass_finish(&w.b, &o->advance);
}

// (residuals of the body, cotangents of linear carries, sums) -> cotangents of what is linear
static jot_status backward_body(struct online *o)
{
    struct body w = body_of(o->m, o->s.linear);
    uint32_t f, n_in = o->n_consts + o->n_carry, next = 0, k = o->s.n_residuals;
    body_take_all(&w);
    body_run(&w);
    for (uint32_t i = 0; i < o->n_carry; i++) {
        bool there = o->s.linear_out[i];
        if (o->linear_in[o->n_consts + i])
            body_give_or_zeros(&w, there, next, body_result(o->body, i));
        next += there;
    }
    JOT_TRY(pass_finish(&w.b, &f));
    bool *linear = body_mask(o->m, w.f->n_params), *ct = body_mask(o->m, o->n_carry);
    bool *nonzero = body_mask(o->m, w.f->n_params), *all = body_mask(o->m, n_in);
    bool *sum = body_mask(o->m, w.f->n_params), *handed = body_mask(o->m, n_in);
    for (uint32_t i = o->s.n_residuals; i < w.f->n_params; i++)
        linear[i] = true;
    for (uint32_t i = 0; i < ir_function(o->m, f)->outputs.count; i++)
        ct[i] = true;
    JOT_TRY(pass_transpose_function(o->m, f, linear, ct, NULL, &o->back, nonzero));
    for (uint32_t i = 0; i < n_in; i++) {
        if (!o->linear_in[i])
            continue;
        all[i] = nonzero[k];
        handed[i] = sum[k] =
            i < o->n_consts && all[i] && rule_accumulates(o->m, ir_type_of(o->body, i));
        k++;
    }
    JOT_TRY(pass_transpose_function(o->m, f, linear, ct, sum, &o->back, nonzero));
    o->back_nonzero = all;
    o->back_handed = handed;
    o->n_sums = body_count(all, true, 0, o->n_consts);
    return JOT_OK;
}

static jot_status prepare(struct online *o)
{
    JOT_TRY(known_parts(o));
    uint32_t n_in = o->n_consts + o->n_carry;
    o->n_known_consts = body_count(o->linear_in, false, 0, o->n_consts);
    o->n_states = body_count(o->linear_in, false, o->n_consts, n_in);
    o->n_linear = o->n_carry - o->n_states;
    o->state = arena_array(o->m->arena, struct ir_type, o->n_states + 1);
    for (uint32_t i = o->n_consts, k = 0; i < n_in; i++)
        if (!o->linear_in[i])
            o->state[k++] = ir_type_of(o->body, i);
    o->lanes.count = ir_type_with(body_result(ir_function(o->m, o->test), 0), JOT_I32);
    return backward_body(o);
}

static jot_status split_while(struct online *o, struct ir_builder *b, const ir_id *x, ir_id *y)
{
    uint32_t forward, backward, n_in = o->n_consts + o->n_carry;
    JOT_TRY(build_forward(o, &forward));
    JOT_TRY(build_backward(o, &backward));
    struct list in = list_make(o);
    in.n = body_pick(o->linear_in, false, 0, n_in, x, in.at);
    ir_id known = build_known(o, b, in.at, in.at + o->n_known_consts);
    if (known == IR_NONE)
        return pass_builder_status(b);
    for (uint32_t i = 0; i < n_counts(o); i++)
        push(&in, known + i);
    known += n_counts(o) + 1;
    for (uint32_t i = 0; i < o->n_states; i++)
        push(&in, known + o->n_states + i);
    int n_residuals = in.n;
    in.n += body_pick(o->linear_in, true, 0, n_in, x, in.at + in.n);
    ir_id linear = ir_linear_call(b, forward, backward, n_residuals, in.n, in.at);
    for (uint32_t i = 0; i < o->n_carry && linear != IR_NONE; i++)
        y[i] = o->linear_in[o->n_consts + i] ? linear++ : known++;
    return pass_builder_status(b);
}

static int64_t bytes_of_state(const struct online *o)
{
    int64_t bytes = 0;
    for (uint32_t i = 0; i < o->n_states; i++)
        bytes += ir_count(o->m, o->state[i]) * (int64_t)jot_dtype_size(ir_dtype(o->state[i]));
    return bytes;
}

jot_status unzip_online(struct ir_builder *b, const struct ir_while *w, uint32_t n_in,
                        const ir_id *x, const bool *linear_in, ir_id *y, bool *linear_out,
                        bool *is_built)
{
    struct ir_module *m = b->module;
    struct online o = {.m = m,
                       .loop = *w,
                       .body = ir_function(m, w->body),
                       .linear_in = arena_copy(m->arena, linear_in, n_in),
                       .n_consts = (uint32_t)w->n_consts,
                       .n_carry = n_in - (uint32_t)w->n_consts,
                       .slots = w->slots ? w->slots : IR_SLOTS,
                       .lanes = {.m = m, .axes = w->batched},
                       .keeps_all = w->max_trips != IR_NO_BOUND};
    o.slots = o.keeps_all ? w->max_trips : o.slots + o.slots % 2;
    JOT_TRY(prepare(&o));
    *is_built = !o.keeps_all || bytes_of_state(&o) <= COST_TAPE_BYTES / (o.slots + 1);
    if (!*is_built)
        return JOT_OK;
    memcpy(linear_out, o.linear_in + o.n_consts, o.n_carry);
    return split_while(&o, b, x, y);
}
