// SPDX-License-Identifier: Apache-2.0
// Checks after every op that can make a NaN or an infinity, for JOT_CHECK.
//
//     f(x) { y = log x; z = neg y; return z }
// becomes
//     f(x) { y = log x; p = eq y y; check p; z = neg y; q = eq z z; check q; return z }
//
// Checks are in the order of the ops, so the first that fails is that of the op that a NaN came from.
// Loops count their trips, which the checks in them tell.  Lanes of a while that have left it are not
// checked, nor what is inside of loops and branches in such a while, where lanes are not known.
//
// Needs all differentiation and mapping done, and places still there: before pass_simplify.
#include "ir/control.h"
#include "passes/body.h"

// What a function takes beside its own parameters: the trips of the loops around it after the first
// `front` of them, and as a carry after the first `middle` the trip of the loop it is the body of.
struct layout {
    uint32_t n_trips;
    uint32_t front;
    bool counts;
    uint32_t middle;
    uint32_t carries; // results before the next count; NO_RESULT for a test
    int64_t length;   // of the loop: of a reverse scan, or -1
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
           c == IR_CLASS_EFFECT || n->op == IR_param;
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

static void check_value(struct checker *c, const struct ir_node *n, ir_id y)
{
    struct ir_module *m = c->b->module;
    const char *place = ir_where_text(m, n->where);
    struct strbuf message = strbuf_make(m->arena);
    if (y == IR_NONE || !pass_is_inexact(ir_type_in(c->b, y)))
        return;
    if (n->op == IR_param)
        strbuf_printf(&message, "argument %u", n->out);
    else
        strbuf_add(&message, ir_op_get((enum ir_op)n->op)->name);
    strbuf_add(&message, n->op == IR_param ? " is " : " gives ");
    strbuf_add(&message, c->kinds & PASS_CHECK_INF ? "NaN or infinity" : "NaN");
    ir_check(c->b, or_done(c, is_sound(c->b, y, c->kinds)), (int)c->n_trips, c->trips,
             message.text, place ? place : "");
}

// -- Nodes with bodies ------------------------------------------------------------------------

static void append_trips(const struct checker *c, ir_id *in, int *n)
{
    for (uint32_t i = 0; i < c->n_trips; i++)
        in[(*n)++] = c->trips[i];
}

static ir_id zero_trip(struct ir_builder *b) { return ir_scalar_int(b, JOT_I64, 0); }

static ir_id check_call(struct checker *c, const struct ir_node *n, const ir_id *x)
{
    struct layout l = {.n_trips = c->n_trips, .front = n->n_in, .length = -1};
    ir_id *in = pass_no_values(c->b->module, n->n_in + c->n_trips);
    int count = (int)n->n_in;
    const int64_t *functions;
    ir_bodies_of(n, &functions);
    uint32_t f = check_function(c->b->module, (uint32_t)functions[0], c->kinds, &l);
    memcpy(in, x, sizeof *in * n->n_in);
    append_trips(c, in, &count);
    return ir_call(c->b, IR_call, 1, &f, count, in);
}

static ir_id check_cond(struct checker *c, const struct ir_node *n, const ir_id *x)
{
    struct layout l = {.n_trips = c->n_trips, .front = n->n_in - 1, .length = -1};
    ir_id *in = pass_no_values(c->b->module, n->n_in + c->n_trips);
    const int64_t *functions;
    int count = (int)n->n_in, n_branches = ir_bodies_of(n, &functions);
    uint32_t *f = arena_array(c->b->module->arena, uint32_t, n_branches + 1);
    for (int k = 0; k < n_branches; k++)
        f[k] = check_function(c->b->module, (uint32_t)functions[k], c->kinds, &l);
    memcpy(in, x, sizeof *in * n->n_in);
    append_trips(c, in, &count);
    return ir_cond(c->b, n_branches, f, count, in);
}

// Operands of a loop with trips and a count among them.
static int loop_operands(struct checker *c, const struct ir_node *n, const ir_id *x,
                         const struct layout *l, ir_id *in)
{
    int count = 0;
    for (uint32_t i = 0; i <= n->n_in; i++) {
        if (i == l->front)
            append_trips(c, in, &count);
        if (i == l->middle)
            in[count++] = zero_trip(c->b);
        if (i < n->n_in)
            in[count++] = x[i];
    }
    return count;
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
    uint32_t n_carry = (uint32_t)s.n_carry;
    struct layout l = {.n_trips = c->n_trips,
                       .front = (uint32_t)s.n_consts,
                       .counts = true,
                       .middle = (uint32_t)s.n_consts + n_carry,
                       .carries = n_carry,
                       .length = s.reverse ? s.length : -1};
    ir_id *in = pass_no_values(c->b->module, n->n_in + c->n_trips + 1);
    s.body = check_function(c->b->module, s.body, c->kinds, &l);
    s.n_consts += (int)c->n_trips;
    s.n_carry++;
    take_results(c, n, ir_scan(c->b, &s, loop_operands(c, n, x, &l, in), in), n_carry);
}

static void check_while(struct checker *c, const struct ir_node *n, const ir_id *x)
{
    struct ir_while w = ir_while_of(n);
    struct layout l = {.n_trips = c->n_trips,
                       .front = (uint32_t)w.n_consts,
                       .counts = true,
                       .middle = n->n_in,
                       .carries = n->n_out,
                       .length = -1};
    struct layout test = l;
    ir_id *in = pass_no_values(c->b->module, n->n_in + c->n_trips + 1);
    test.carries = NO_RESULT;
    w.step = check_function(c->b->module, w.step, c->kinds, &l);
    w.test = check_function(c->b->module, w.test, c->kinds, &test);
    w.n_consts += (int)c->n_trips;
    take_results(c, n, ir_while(c->b, &w, loop_operands(c, n, x, &l, in), in), n->n_out);
}

// -- Whiles of lanes --------------------------------------------------------------------------

static void copy_checked(struct checker *c, const struct ir_node *n);

// The step with checks of the lanes that the test lets in; no count, for lanes differ.
static uint32_t check_lanes(struct checker *around, const struct ir_while *w)
{
    struct ir_module *m = around->b->module;
    const struct ir_graph *step = ir_function(m, w->step);
    struct ir_builder b = ir_builder_make(m, step->name, IR_BUILD_PLAIN);
    struct checker c = {.b = &b,
                        .g = step,
                        .kinds = around->kinds,
                        .map = pass_no_values(m, step->values.count),
                        .active = IR_NONE};
    pass_copy_params(&b, step, NULL, true, c.map);
    ir_inline(&b, ir_function(m, pass_strip_effects(m, w->test)), c.map, &c.active);
    for (uint32_t at = step->n_params; at < step->nodes.count; at++)
        copy_checked(&c, &step->nodes.at[at]);
    for (uint32_t i = 0; i < step->outputs.count; i++)
        ir_output(&b, c.map[step->outputs.at[i]]);
    return ir_finish_function(&b);
}

static void check_while_of_lanes(struct checker *c, const struct ir_node *n, const ir_id *x)
{
    struct ir_while w = ir_while_of(n);
    w.step = check_lanes(c, &w);
    ir_id y = ir_while(c->b, &w, (int)n->n_in, x);
    for (uint32_t i = 0; i < n->n_out; i++)
        c->map[n->out + i] = y == IR_NONE ? IR_NONE : y + i;
}

// -- All --------------------------------------------------------------------------------------

static void copy_checked(struct checker *c, const struct ir_node *n)
{
    enum ir_class op_class = ir_op_class((enum ir_op)n->op);
    if (!ir_has_bodies((enum ir_op)n->op) || c->active != IR_NONE) {
        pass_copy_node(c->b, c->g, n, c->map);
        bool checks = makes_numbers(n) || ir_has_bodies((enum ir_op)n->op);
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
        (ir_while_of(n).batched ? check_while_of_lanes : check_while)(c, n, x);
    } else {
        ir_id y = op_class == IR_CLASS_CALL ? check_call(c, n, x) : check_cond(c, n, x);
        for (uint32_t i = 0; i < n->n_out; i++)
            c->map[n->out + i] = y == IR_NONE ? IR_NONE : y + i;
    }
}

// The number of the trip from the count.
static ir_id trip_of(struct ir_builder *b, const struct layout *l, ir_id count)
{
    return l->length < 0 ? count : ir_sub(b, ir_scalar_int(b, JOT_I64, l->length - 1), count);
}

static ir_id take_params(struct checker *c, const struct layout *l)
{
    struct ir_type t = ir_type_make(c->b->module, JOT_I64, 0, NULL);
    ir_id count = IR_NONE;
    for (uint32_t i = 0; i <= c->g->n_params; i++) {
        for (uint32_t k = 0; i == l->front && k < l->n_trips; k++)
            c->trips[c->n_trips++] = ir_param(c->b, t);
        if (l->counts && i == l->middle)
            count = ir_param(c->b, t);
        if (i < c->g->n_params)
            c->map[i] = ir_param(c->b, ir_type_of(c->g, i));
    }
    return count;
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
    if (l->counts)
        c.trips[c.n_trips++] = trip_of(&b, l, count);
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
    struct memo_key key = {.kind = MEMO_CHECK_NUMBERS, .f = f, .number = (int64_t)h};
    const uint32_t *known = pass_memo_find(m, &key);
    if (known)
        return *known;
    uint32_t *made = arena_new(m->arena, uint32_t);
    *made = build(m, f, kinds, l);
    pass_memo_add(m, &key, made);
    return *made;
}

uint32_t pass_check_numbers(struct ir_module *m, uint32_t f, unsigned kinds)
{
    const struct ir_graph *g = ir_function(m, f);
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
    for (uint32_t i = 0; i < g->outputs.count; i++)
        ir_output(&b, c.map[g->outputs.at[i]]);
    uint32_t made = ir_finish_function(&b);
    return made == IR_NONE ? f : made;
}
