// SPDX-License-Identifier: Apache-2.0
// Checks after every op that can make a NaN or an infinity, for JOT_CHECK.
//
//     f(x) { y = log x; z = neg y; return z }
// becomes
//     f(x) { y = log x; p = eq y y; check p; z = neg y; q = eq z z; check q; return z }
//
// Checks are in the order of the ops, so the first that fails is that of the op that a NaN came
// from. Loops count their trips, which the checks in them tell; of a scan of lanes that is an
// axis of the index.  Lanes of a while that have left it are not checked: which are in it goes
// along into the bodies inside it.  Those that are in it are all in the same trip.
//
// Without kinds nothing is added but the trips to the checks there are, those of jot_assert.
//
// Needs all differentiation and mapping done, and indices and guards still there: before pass_simplify.
#include "ir/control.h"
#include "passes/body.h"
#include "passes/rules/rules.h"

// What a function takes beside its own parameters: the trips of the loops around it after the first
// `front` of them, then the lanes that are in a while around it, and as a carry after the first
// `middle` the trip of the loop it is the body of.
struct layout {
    uint32_t n_trips;
    uint32_t front;
    bool counts;
    struct ir_type count; // i64, of the lanes of a while of lanes
    enum ir_trips trips;  // of a loop; else unnamed
    uint32_t middle;
    uint32_t carries;      // results before the next count; NO_RESULT for a test
    int64_t length;        // of the loop: of a reverse scan, or -1
    int64_t first, part;   // how it numbers its trips (ir/control.h)
    bool has_active;       //
    struct ir_type active; //
    bool active_is_row;    // it comes last
    uint32_t test;         // of the while of lanes it is the body of, or IR_NONE
};
enum { NO_RESULT = UINT32_MAX };

struct checker {
    struct ir_builder *b;
    const struct ir_graph *g;
    unsigned kinds;
    ir_id *map;
    ir_id *trips;
    uint32_t n_trips;
    ir_id active; // bool of the lanes of a while that are in it, or IR_NONE
};

static uint32_t check_function(struct ir_module *m, uint32_t f, unsigned kinds,
                               const struct layout *l);

// -- One op -----------------------------------------------------------------------------------

static bool makes_numbers(const struct ir_node *n)
{
    enum ir_class c = ir_op_class((enum ir_op)n->op);
    return c == IR_CLASS_MAP || c == IR_CLASS_INDEX || c == IR_CLASS_UPDATE ||
           c == IR_CLASS_REDUCE || c == IR_CLASS_CUMULATIVE || c == IR_CLASS_CONTRACT ||
           c == IR_CLASS_LIBRARY || c == IR_CLASS_EFFECT || n->op == IR_param;
}

static ir_id is_sound(struct ir_builder *b, ir_id y, unsigned kinds)
{
    if (!(kinds & PASS_CHECK_INF))
        return ir_eq(b, y, y);
    if (!dtype_is_complex(ir_dtype(ir_type_in(b, y))))
        return ir_is_finite(b, y);
    return ir_and(b, ir_is_finite(b, ir_real(b, y)), ir_is_finite(b, ir_imag(b, y)));
}

// holds where a lane is in the loop.  Only values that have the lanes are of a lane.
static ir_id or_done(struct checker *c, ir_id holds)
{
    struct ir_builder *b = c->b;
    if (c->active == IR_NONE)
        return holds;
    struct ir_type t = ir_type_in(b, holds), lanes = ir_type_in(b, c->active);
    int64_t dims[IR_MAX_RANK];
    for (int axis = 0; axis < t.rank; axis++)
        dims[axis] = axis < lanes.rank ? ir_dims(b->module, lanes)[axis] : 1;
    if (t.rank < lanes.rank || memcmp(dims, ir_dims(b->module, t), sizeof *dims * lanes.rank))
        return holds;
    return ir_or(b, holds, ir_not(b, ir_reshape(b, c->active, t.rank, dims)));
}

// A product of which one side has lanes has them in the middle of its result, and the transpose
// behind it moves them to the front.  In a while of lanes it is checked there.
static bool moves_lanes(const struct checker *c, const struct ir_node *n)
{
    return c->active != IR_NONE && n->op == IR_transpose &&
           ir_node_of(c->g, ir_operand(c->g, n, 0))->op == IR_dot_general;
}

// So is what a guard looks at, which may be NaN where the guard makes a zero of it.
static bool is_checked_behind(const struct checker *c, const struct ir_node *n)
{
    const struct ir_node *next = n + 1;
    if (next >= c->g->nodes.at + c->g->nodes.count)
        return false;
    if (next->op == IR_guard)
        return ir_operand(c->g, next, 1) == n->out;
    return n->op == IR_dot_general && moves_lanes(c, next) &&
           ir_operand(c->g, next, 0) == n->out;
}

static void check_value(struct checker *c, const struct ir_node *n, ir_id y)
{
    n = moves_lanes(c, n) ? ir_node_of(c->g, ir_operand(c->g, n, 0)) : n;
    struct ir_module *m = c->b->module;
    const char *place = ir_where_text(m, n->where);
    struct strbuf message = strbuf_make(m->arena);
    if (!c->kinds || y == IR_NONE || !pass_is_inexact(ir_type_in(c->b, y)))
        return;
    if (n->op == IR_param)
        strbuf_printf(&message, "argument %u", n->out);
    else // the product with a cotangent is none that anybody wrote
        strbuf_add(&message, n->op == IR_mul_z || n->op == IR_guard
                                 ? "its derivative"
                                 : ir_op_get((enum ir_op)n->op)->name);
    strbuf_add(&message, n->op == IR_param ? " is " : " gives ");
    strbuf_add(&message, c->kinds & PASS_CHECK_INF ? "NaN or infinity" : "NaN");
    if (!place)
        place = "";
    uint32_t n_trips = c->n_trips < IR_CHECK_TRIPS ? c->n_trips : IR_CHECK_TRIPS;
    ir_id in[1 + IR_CHECK_TRIPS] = {or_done(c, is_sound(c->b, y, c->kinds))};
    for (uint32_t i = 0; i < n_trips; i++)
        in[1 + i] = c->trips[i];
    ir_build(c->b, IR_check, 1 + (int)n_trips, in,
             ir_attrs(m, IR_INT(lanes, IR_LANES_UNKNOWN),
                      IR_BYTES(message, message.length, message.text),
                      IR_BYTES(place, strlen(place), place)));
}

// -- Nodes with bodies ------------------------------------------------------------------------

// The layout of a body of a node, as far as it is that of what is around it.
static struct layout layout_of(const struct checker *c, uint32_t front)
{
    struct layout l = {.n_trips = c->n_trips,
                       .front = front,
                       .count = ir_type_make(c->b->module, JOT_I64, 0, NULL),
                       .trips = IR_TRIPS_UNNAMED,
                       .length = -1,
                       .has_active = c->active != IR_NONE,
                       .test = IR_NONE};
    if (l.has_active)
        l.active = ir_type_in(c->b, c->active);
    return l;
}

// Operands of a node with what its bodies take beside them; count is the first count, or IR_NONE.
static int operands_for(const struct checker *c, const struct ir_node *n, const ir_id *x,
                        const struct layout *l, uint32_t front, ir_id count, ir_id *in)
{
    int k = 0;
    for (uint32_t i = 0; i <= n->n_in; i++) {
        for (uint32_t t = 0; i == front && t < c->n_trips; t++)
            in[k++] = c->trips[t];
        if (i == front && l->has_active && !l->active_is_row)
            in[k++] = c->active;
        if (count != IR_NONE && i == l->middle)
            in[k++] = count;
        if (i < n->n_in)
            in[k++] = x[i];
    }
    if (l->active_is_row)
        in[k++] = c->active;
    return k;
}

static ir_id *room_for(const struct checker *c, const struct ir_node *n)
{
    return pass_no_values(c->b->module, n->n_in + c->n_trips + 3);
}

static ir_id check_call(struct checker *c, const struct ir_node *n, const ir_id *x)
{
    struct layout l = layout_of(c, n->n_in);
    ir_id *in = room_for(c, n);
    const int64_t *functions;
    ir_bodies_of(n, &functions);
    uint32_t f = check_function(c->b->module, (uint32_t)functions[0], c->kinds, &l);
    return ir_call(c->b, IR_call, 1, &f, operands_for(c, n, x, &l, n->n_in, IR_NONE, in), in);
}

static ir_id check_cond(struct checker *c, const struct ir_node *n, const ir_id *x)
{
    struct layout l = layout_of(c, n->n_in - 1);
    ir_id *in = room_for(c, n);
    const int64_t *functions;
    int n_branches = ir_bodies_of(n, &functions);
    uint32_t *f = arena_array(c->b->module->arena, uint32_t, n_branches + 1);
    for (int k = 0; k < n_branches; k++)
        f[k] = check_function(c->b->module, (uint32_t)functions[k], c->kinds, &l);
    return ir_cond(c->b, n_branches, f, operands_for(c, n, x, &l, n->n_in, IR_NONE, in), in);
}

// Results of the loop without the count, which stands after the carries.
static void take_results(struct checker *c, const struct ir_node *n, ir_id y, uint32_t n_carry)
{
    for (uint32_t i = 0; i < n->n_out; i++)
        c->map[n->out + i] = y == IR_NONE ? IR_NONE : y + i + (i >= n_carry);
}

static void check_scan(struct checker *c, const struct ir_node *n, const ir_id *x)
{
    struct ir_scan s = ir_scan_of(n);
    uint32_t n_consts = (uint32_t)s.n_consts, n_carry = (uint32_t)s.n_carry;
    struct layout l = layout_of(c, n_consts);
    l.counts = !s.lanes;
    l.trips = s.lanes ? IR_TRIPS_UNNAMED : IR_TRIPS_COUNTED;
    l.middle = n_consts + n_carry;
    l.carries = n_carry;
    l.length = s.reverse ? s.length : -1;
    if (s.lanes && l.has_active) {
        l.active_is_row = true;
        l.active = ir_type_row(c->b->module, l.active);
    }
    l.first = s.first;
    l.part = s.part;
    ir_id count = s.lanes ? IR_NONE : ir_zeros(c->b, l.count), *in = room_for(c, n);
    int n_in = operands_for(c, n, x, &l, n_consts, count, in);
    s.body = check_function(c->b->module, s.body, c->kinds, &l);
    s.n_consts += (int)c->n_trips + (l.has_active && !l.active_is_row);
    s.n_carry += !s.lanes;
    if (s.lanes && c->kinds) {
        s.body = rule_name_lane(c->b->module, s.body, (uint32_t)n_in, (int)s.lanes - 1,
                                RULE_NAMED_NUMBERS);
        in[n_in++] = ir_iota(c->b, ir_type_make(c->b->module, JOT_I64, 1, &s.length), 0);
    }
    take_results(c, n, ir_scan(c->b, &s, n_in, in), s.lanes ? n->n_out : n_carry);
}

// The test of a while of lanes is not checked.
static void check_while(struct checker *c, const struct ir_node *n, const ir_id *x)
{
    struct ir_while w = ir_while_of(n);
    struct ir_module *m = c->b->module;
    bool counts = w.trips == IR_TRIPS_COUNTED;
    struct layout l = layout_of(c, (uint32_t)w.n_consts);
    l.counts = counts;
    l.trips = w.trips;
    if (w.batched)
        l.count =
            ir_type_make(m, JOT_I64, w.batched, ir_dims(m, ir_type_in(c->b, x[w.n_consts])));
    l.middle = n->n_in;
    l.carries = counts ? n->n_out : NO_RESULT;
    struct layout test = l;
    test.carries = NO_RESULT;
    if (w.batched && c->kinds)
        l.test = w.test;
    ir_id *in = room_for(c, n);
    ir_id count = counts ? ir_zeros(c->b, l.count) : IR_NONE;
    int n_in = operands_for(c, n, x, &l, (uint32_t)w.n_consts, count, in);
    w.body = check_function(m, w.body, c->kinds, &l);
    w.test = check_function(m, w.test, w.batched ? 0 : c->kinds, &test);
    w.n_consts += (int)c->n_trips + l.has_active;
    take_results(c, n, ir_while(c->b, &w, n_in, in), n->n_out);
}

// -- All --------------------------------------------------------------------------------------

// Which of the lanes of a scan of lanes are in the while around it is known where these are all
// there are.
static bool knows_lanes(const struct checker *c, const struct ir_node *n)
{
    struct ir_type t = c->active == IR_NONE ? (struct ir_type){0} : ir_type_in(c->b, c->active);
    return n->op != IR_scan || !ir_scan_of(n).lanes || c->active == IR_NONE ||
           (t.rank == 1 && ir_dims(c->b->module, t)[0] == ir_scan_of(n).length);
}

static bool has_checks(const struct ir_graph *g, const struct ir_node *n)
{
    const int64_t *functions;
    if (n->op == IR_check || rule_is_told(g->module, n))
        return true;
    int n_bodies = ir_has_effect(g, n) && ir_has_bodies((enum ir_op)n->op)
                       ? ir_bodies_of(n, &functions)
                       : 0;
    for (int k = 0; k < n_bodies; k++)
        ir_for_each_node (ir_body(g, n, k), inner)
            if (has_checks(ir_body(g, n, k), inner))
                return true;
    return false;
}

// A check or a callback of the user, with the trips before the lanes that it may name.
static void name_trips(struct checker *c, const struct ir_node *n)
{
    int n_lanes;
    struct ir_module *m = c->b->module;
    ir_attr_ints(n->attrs, IR_KEY_lane_axes, &n_lanes);
    ir_id *in = room_for(c, n);
    bool is_check = n->op == IR_check;
    uint32_t known = is_check ? n->n_in - 1 - (uint32_t)n_lanes : 0;
    uint32_t count = 0, first = is_check ? 1 : n->n_in - (uint32_t)n_lanes;
    uint32_t most = IR_CHECK_TRIPS - known, n_trips = c->n_trips < most ? c->n_trips : most;
    for (uint32_t i = 0; i <= n->n_in; i++) {
        for (uint32_t k = 0; i == first && k < n_trips; k++)
            in[count++] = c->trips[k];
        if (i < n->n_in)
            in[count++] = c->map[ir_operand(c->g, n, i)];
    }
    c->b->where = n->where;
    const struct ir_attrs *attrs = is_check ? n->attrs : rule_with_counts(m, n->attrs, n_trips);
    ir_id y = ir_build(c->b, (enum ir_op)n->op, (int)count, in, attrs);
    body_set_results(n, y, c->map);
    for (uint32_t i = 0; i < n->n_out; i++)
        check_value(c, n, c->map[n->out + i]);
}

static void copy_checked(struct checker *c, const struct ir_node *n)
{
    enum ir_class op_class = ir_op_class((enum ir_op)n->op);
    if (n->op == IR_check || rule_is_told(c->g->module, n)) {
        name_trips(c, n);
        return;
    }
    if (!ir_has_bodies((enum ir_op)n->op) ||
        !(c->kinds ? knows_lanes(c, n) : has_checks(c->g, n))) {
        pass_copy_node(c->b, c->g, n, c->map);
        bool checks = makes_numbers(n) ? !is_checked_behind(c, n)
                                       : ir_has_bodies((enum ir_op)n->op) || moves_lanes(c, n);
        for (uint32_t i = 0; checks && i < n->n_out; i++)
            check_value(c, n, c->map[n->out + i]);
        return;
    }
    ir_id *x = pass_no_values(c->b->module, n->n_in);
    for (uint32_t i = 0; i < n->n_in; i++)
        x[i] = c->map[ir_operand(c->g, n, i)];
    c->b->where = n->where;
    if (n->op == IR_scan) {
        check_scan(c, n, x);
    } else if (n->op == IR_while) {
        check_while(c, n, x);
    } else {
        ir_id y = op_class == IR_CLASS_CALL ? check_call(c, n, x) : check_cond(c, n, x);
        for (uint32_t i = 0; i < n->n_out; i++)
            c->map[n->out + i] = y == IR_NONE ? IR_NONE : y + i;
    }
}

// The largest of an array, as i64.
static ir_id largest(struct ir_builder *b, ir_id v)
{
    int64_t axes[IR_MAX_RANK];
    int rank = ir_type_in(b, v).rank;
    for (int i = 0; i < rank; i++)
        axes[i] = i;
    return ir_convert(b, rank ? ir_reduce(b, IR_reduce_max, v, rank, axes) : v, JOT_I64);
}

// The number of the trip, behind those of the loops around.  Lanes that are in a while are in the
// same trip, but on the way back, where each has others left.
static void add_trip(struct checker *c, const struct layout *l, ir_id count)
{
    struct ir_builder *b = c->b;
    ir_id carry = l->front < c->g->n_params ? c->map[l->front] : IR_NONE;
    if (l->trips == IR_TRIPS_UNNAMED ||
        (l->trips == IR_TRIPS_LEFT && ir_type_in(b, carry).rank > 0))
        return;
    ir_id t = largest(b, l->trips == IR_TRIPS_COUNTED ? count : carry);
    if (l->trips == IR_TRIPS_LEFT)
        t = ir_sub(b, t, ir_scalar_int(b, JOT_I64, 1));
    if (l->length >= 0)
        t = ir_sub(b, ir_scalar_int(b, JOT_I64, l->length - 1), t);
    if (l->first)
        t = ir_add(b, t, ir_scalar_int(b, JOT_I64, l->first));
    if (l->part && c->n_trips)
        t = ir_add(b, t, ir_mul(b, c->trips[--c->n_trips], ir_scalar_int(b, JOT_I64, l->part)));
    c->trips[c->n_trips++] = t;
}

static ir_id take_params(struct checker *c, const struct layout *l)
{
    struct ir_type t = ir_type_make(c->b->module, JOT_I64, 0, NULL);
    ir_id count = IR_NONE;
    for (uint32_t i = 0; i <= c->g->n_params; i++) {
        for (uint32_t k = 0; i == l->front && k < l->n_trips; k++)
            c->trips[c->n_trips++] = ir_param(c->b, t);
        if (i == l->front && l->has_active && !l->active_is_row)
            c->active = ir_param(c->b, l->active);
        if (l->counts && i == l->middle)
            count = ir_param(c->b, l->count);
        if (i < c->g->n_params)
            c->map[i] = ir_param(c->b, ir_type_of(c->g, i));
    }
    if (l->active_is_row)
        c->active = ir_param(c->b, l->active);
    return count;
}

// Adds that the test of a while of lanes holds.
static void enter_lanes(struct checker *c, uint32_t test)
{
    ir_id around = c->active, p;
    uint32_t f = pass_strip_effects(c->b->module, test);
    ir_inline(c->b, ir_function(c->b->module, f), c->map, &p);
    c->active = p;
    if (around != IR_NONE) {
        c->active = around;
        c->active = ir_not(c->b, or_done(c, ir_not(c->b, p)));
    }
}

static uint32_t build(struct ir_module *m, uint32_t f, unsigned kinds, const struct layout *l)
{
    const struct ir_graph *g = ir_function(m, f);
    struct ir_builder b = ir_builder_make(m, g->name, IR_BUILD_PLAIN);
    struct checker c = {.b = &b,
                        .g = g,
                        .kinds = kinds,
                        .map = pass_no_values(m, g->values.count),
                        .trips = pass_no_values(m, l->n_trips + 1),
                        .active = IR_NONE};
    ir_id count = take_params(&c, l);
    add_trip(&c, l, count);
    if (l->test != IR_NONE)
        enter_lanes(&c, l->test);
    for (uint32_t at = g->n_params; at < g->nodes.count; at++)
        copy_checked(&c, &g->nodes.at[at]);
    for (uint32_t i = 0; i <= g->outputs.count; i++) {
        if (l->counts && i == l->carries)
            ir_output(&b, ir_add(&b, count, ir_scalar_int(&b, JOT_I64, 1)));
        if (i < g->outputs.count)
            ir_output(&b, c.map[g->outputs.at[i]]);
    }
    return ir_finish_function(&b);
}

static uint32_t check_function(struct ir_module *m, uint32_t f, unsigned kinds,
                               const struct layout *l)
{
    uint64_t h = hash_combine(hash_combine(kinds, l->n_trips), l->front);
    h = hash_combine(hash_combine(h, l->counts), l->counts ? l->middle : 0);
    h = hash_combine(hash_combine(h, l->counts ? l->carries : 0), (uint64_t)l->length);
    h = hash_combine(hash_combine(h, l->trips), hash_bytes(0, &l->count, sizeof l->count));
    h = hash_combine(hash_combine(h, l->has_active), l->active_is_row);
    h = hash_combine(h, l->has_active ? hash_bytes(0, &l->active, sizeof l->active) : 0);
    h = hash_combine(hash_combine(hash_combine(h, l->test), (uint64_t)l->first),
                     (uint64_t)l->part);
    struct memo_key key = {.kind = MEMO_CHECK_NUMBERS, .f = f, .number = (int64_t)h};
    const uint32_t *known = pass_memo_find(m, &key);
    if (known)
        return *known;
    return pass_memo_add_function(m, &key, build(m, f, kinds, l));
}

uint32_t pass_check_numbers(struct ir_module *m, uint32_t f, unsigned kinds)
{
    const struct ir_graph *g = ir_function(m, f);
    if (!kinds && !g->has_effects)
        return f;
    struct ir_builder b = ir_builder_make(m, g->name, IR_BUILD_PLAIN);
    struct checker c = {.b = &b,
                        .g = g,
                        .kinds = kinds,
                        .map = pass_no_values(m, g->values.count),
                        .active = IR_NONE};
    pass_copy_params(&b, g, NULL, true, c.map);
    for (uint32_t i = 0; i < g->n_params; i++)
        check_value(&c, &g->nodes.at[i], i);
    for (uint32_t at = g->n_params; at < g->nodes.count; at++)
        copy_checked(&c, &g->nodes.at[at]);
    pass_copy_outputs(&b, g, c.map);
    uint32_t made = ir_finish_function(&b);
    return made == IR_NONE ? f : made;
}
