// SPDX-License-Identifier: Apache-2.0
// A loop over known and linear values, in two loops.
//
//     x, dx = scan {body} [a | x0, dx0 | s]       where   body: x' = sin (a x),  dx' = c dx
// becomes                                                       with c = a cos (a x)
//     x, cs = scan {known} [a | x0 | s]
//     dx = scan {linear} [| dx0 | cs]
//
// Residuals, the known values that the linear body reads: consts and rows of the loop are handed on;
// what depends on consts alone is computed once, outside; the value of a carry before each trip is
// stacked once, and its value after is the same stack, moved by one trip; results that are stacked
// already are used; all others become rows out of the known loop.
//
// A carry is linear when it is in some trip: the body is separated until no carry is added.
#include "passes/unzip.h"

#include "base/status.h"
#include "ir/control.h"
#include "passes/body.h"

enum from {
    FROM_CONST, // value: of the graph around the loop
    FROM_ROWS,  // value: of the graph around the loop, with time as axis 0
};

struct residual {
    enum from from;
    ir_id value;
};

// A value of the known body that leaves it as a row: parameter or result `index`.
struct stacked {
    bool is_param;
    uint32_t index;
    ir_id rows; // once the loop is there
};

struct split_loop {
    struct ir_builder *b;
    struct ir_module *m;
    struct ir_scan scan;
    const struct ir_graph *body, *known; // known: the forward part of s
    uint32_t n_consts, first_row, n_in;  // operands
    uint32_t n_carry, n_out;             // results
    const ir_id *x;                      // operands
    bool *linear_in, *linear_out;        // by operand, by result
    struct pass_split s;
    VEC(struct stacked) stacks;
    ir_id known_y; // the first result of the known loop
    struct residual *residuals;
    ir_id *y; // results of the whole
};

// -- Separating the body ----------------------------------------------------------------------

static jot_status split_body(struct split_loop *l)
{
    bool *out = body_mask(l->m, l->n_out);
    do {
        JOT_TRY(pass_split(l->m, l->scan.body, l->linear_in, &l->s));
        for (uint32_t i = 0; i < l->n_out; i++)
            out[i] = l->s.linear_out[i];
    } while (body_grow(l->linear_in + l->n_consts, out, l->n_carry));
    for (uint32_t i = 0; i < l->n_out; i++)
        l->linear_out[i] = i < l->n_carry ? l->linear_in[l->n_consts + i] : out[i];
    l->known = ir_function(l->m, l->s.forward);
    return JOT_OK;
}

// Places of input and result i of the body in the known body.
static uint32_t known_input(const struct split_loop *l, uint32_t i)
{
    return body_count(l->linear_in, false, 0, i);
}

static uint32_t known_result(const struct split_loop *l, uint32_t i)
{
    return body_count(l->s.linear_out, false, 0, i);
}

// -- Residuals --------------------------------------------------------------------------------

// Values of the known body that depend on consts alone.
static bool *find_invariant(const struct split_loop *l)
{
    const struct ir_graph *g = l->known;
    bool *invariant = body_mask(l->m, g->values.count);
    uint32_t n_consts = known_input(l, l->n_consts);
    ir_for_each_node (g, n) {
        bool all = n->op != IR_param || n->out < n_consts;
        for (uint32_t i = 0; i < n->n_in; i++)
            all = all && invariant[ir_operand(g, n, i)];
        for (uint32_t i = 0; i < n->n_out; i++)
            invariant[n->out + i] = all;
    }
    return invariant;
}

// The values of the known body in wanted, computed outside the loop: all depend on consts alone.
static ir_id *hoist(struct split_loop *l, bool *wanted)
{
    const struct ir_graph *g = l->known;
    ir_id *map = pass_no_values(l->m, g->values.count);
    body_pick(l->linear_in, false, 0, l->n_consts, l->x, map);
    for (uint32_t at = g->nodes.count; at-- > 0;) {
        const struct ir_node *n = &g->nodes.at[at];
        bool any = body_any(wanted + n->out, n->n_out);
        for (uint32_t i = 0; any && i < n->n_in; i++)
            wanted[ir_operand(g, n, i)] = true;
    }
    uint32_t where = l->b->where;
    for (uint32_t at = g->n_params; at < g->nodes.count; at++)
        if (body_any(wanted + g->nodes.at[at].out, g->nodes.at[at].n_out))
            pass_copy_node(l->b, g, &g->nodes.at[at], map);
    l->b->where = where;
    return map;
}

static ir_id known_value(const struct split_loop *l, bool is_param, uint32_t index)
{
    return is_param ? index : l->known->outputs.at[index];
}

// The row out of the body that is this value already, or n_out.
static uint32_t find_row_out(const struct split_loop *l, ir_id v)
{
    for (uint32_t i = l->n_carry; i < l->n_out; i++)
        if (!l->linear_out[i] && l->known->outputs.at[known_result(l, i)] == v)
            return i;
    return l->n_out;
}

static bool is_stacked(const struct split_loop *l, ir_id v)
{
    bool found = find_row_out(l, v) < l->n_out;
    for (uint32_t i = 0; i < l->stacks.count && !found; i++)
        found = known_value(l, l->stacks.at[i].is_param, l->stacks.at[i].index) == v;
    return found;
}

static void stack(struct split_loop *l, bool is_param, uint32_t index)
{
    if (!is_stacked(l, known_value(l, is_param, index)))
        vec_push(l->m->arena, &l->stacks,
                 (struct stacked){.is_param = is_param, .index = index});
}

// The rows of a value of the known body, or IR_NONE.
static ir_id find_rows(const struct split_loop *l, ir_id v)
{
    uint32_t row = find_row_out(l, v);
    if (row < l->n_out)
        return l->y[row];
    for (uint32_t i = 0; i < l->stacks.count; i++)
        if (known_value(l, l->stacks.at[i].is_param, l->stacks.at[i].index) == v)
            return l->stacks.at[i].rows;
    return IR_NONE;
}

// The known carry of which v is the value after a trip, or n_carry.
static uint32_t find_carry_after(const struct split_loop *l, ir_id v)
{
    for (uint32_t i = 0; i < l->n_carry; i++)
        if (!l->linear_out[i] && l->known->outputs.at[known_result(l, i)] == v)
            return i;
    return l->n_carry;
}

// First carries before the trip; then all else, but for what these are after the trip.
static void choose_stacks(struct split_loop *l, const bool *invariant)
{
    for (uint32_t r = 0; r < l->s.n_residuals; r++) {
        struct pass_residual from = l->s.residuals[r];
        if (from.from == PASS_RESIDUAL_INPUT && from.index >= l->n_consts &&
            from.index < l->first_row)
            stack(l, true, known_input(l, from.index));
    }
    for (uint32_t r = 0; r < l->s.n_residuals; r++) {
        struct pass_residual from = l->s.residuals[r];
        if (from.from == PASS_RESIDUAL_INPUT || invariant[known_value(l, false, from.index)])
            continue;
        uint32_t k = find_carry_after(l, known_value(l, false, from.index));
        if (k == l->n_carry || l->scan.length == 0 ||
            !is_stacked(l, known_input(l, l->n_consts + k)))
            stack(l, false, from.index);
    }
}

// Rows of a carry after each trip, from those before it and the last value.
static ir_id move_rows(struct split_loop *l, ir_id rows, ir_id last)
{
    struct ir_builder *b = l->b;
    if (rows == IR_NONE || last == IR_NONE)
        return IR_NONE;
    struct ir_type t = ir_type_in(b, rows);
    int64_t starts[IR_MAX_RANK] = {0}, limits[IR_MAX_RANK], dims[IR_MAX_RANK];
    memcpy(limits, ir_dims(b->module, t), sizeof *limits * t.rank);
    memcpy(dims, limits, sizeof dims);
    starts[0] = l->scan.reverse ? 0 : 1;
    limits[0] -= l->scan.reverse;
    dims[0] = 1;
    ir_id kept = ir_slice(b, rows, starts, limits, NULL);
    last = ir_reshape(b, last, t.rank, dims);
    ir_id parts[2] = {l->scan.reverse ? last : kept, l->scan.reverse ? kept : last};
    return ir_concatenate(b, 2, parts, 0);
}

// -- The known loop ---------------------------------------------------------------------------

static jot_status build_known(struct split_loop *l)
{
    uint32_t n_known = body_count(l->linear_out, false, 0, l->n_out), f;
    if (n_known + l->stacks.count == 0)
        return JOT_OK;
    struct body w = body_of(l->m, l->s.forward);
    body_take_all(&w);
    body_run(&w);
    for (uint32_t i = 0; i < l->n_out; i++)
        if (!l->linear_out[i])
            body_give(&w, known_result(l, i));
    for (uint32_t i = 0; i < l->stacks.count; i++)
        ir_output(&w.b, l->stacks.at[i].is_param ? w.in[l->stacks.at[i].index]
                                                 : w.out[l->stacks.at[i].index]);
    JOT_TRY(pass_finish(&w.b, &f));
    struct ir_scan known = l->scan;
    known.body = f;
    known.n_consts = (int)body_count(l->linear_in, false, 0, l->n_consts);
    known.n_carry = (int)body_count(l->linear_in, false, l->n_consts, l->first_row);
    ir_id *x = pass_no_values(l->m, l->n_in);
    ir_id y = ir_scan(l->b, &known, body_pick(l->linear_in, false, 0, l->n_in, l->x, x), x);
    if (y == IR_NONE)
        return pass_builder_status(l->b);
    for (uint32_t i = 0; i < l->n_out; i++)
        if (!l->linear_out[i])
            l->y[i] = y++;
    for (uint32_t i = 0; i < l->stacks.count; i++)
        l->stacks.at[i].rows = y++;
    return JOT_OK;
}

static void find_residuals(struct split_loop *l, const bool *invariant)
{
    bool *wanted = body_mask(l->m, l->known->values.count);
    for (uint32_t r = 0; r < l->s.n_residuals; r++)
        if (l->s.residuals[r].from == PASS_RESIDUAL_OUTPUT) {
            ir_id v = known_value(l, false, l->s.residuals[r].index);
            wanted[v] = invariant[v];
        }
    ir_id *outside = hoist(l, wanted);
    for (uint32_t r = 0; r < l->s.n_residuals; r++) {
        struct pass_residual from = l->s.residuals[r];
        struct residual *to = &l->residuals[r];
        bool is_param = from.from == PASS_RESIDUAL_INPUT;
        if (is_param && (from.index < l->n_consts || from.index >= l->first_row)) {
            *to = (struct residual){from.index < l->n_consts ? FROM_CONST : FROM_ROWS,
                                    l->x[from.index]};
            continue;
        }
        ir_id v = known_value(l, is_param, is_param ? known_input(l, from.index) : from.index);
        if (invariant[v]) {
            *to = (struct residual){FROM_CONST, outside[v]};
            continue;
        }
        ir_id rows = find_rows(l, v);
        if (rows == IR_NONE) {
            uint32_t k = find_carry_after(l, v);
            rows = move_rows(l, find_rows(l, known_input(l, l->n_consts + k)), l->y[k]);
        }
        *to = (struct residual){FROM_ROWS, rows};
    }
}

// -- The linear loop --------------------------------------------------------------------------

// Appends the residuals from one place: operands to x, parameters to the body.
static int take_residuals(struct split_loop *l, enum from from, struct body *w, ir_id *x)
{
    int n = 0;
    for (uint32_t r = 0; r < l->s.n_residuals; r++)
        if (l->residuals[r].from == from) {
            body_take(w, r);
            x[n++] = l->residuals[r].value;
        }
    return n;
}

static int take_linear(struct split_loop *l, uint32_t first, uint32_t end, struct body *w,
                       ir_id *x)
{
    uint32_t place = l->s.n_residuals + body_count(l->linear_in, true, 0, first);
    for (uint32_t i = first; i < end; i++)
        if (l->linear_in[i])
            body_take(w, place++);
    return body_pick(l->linear_in, true, first, end, l->x, x);
}

static jot_status build_linear(struct split_loop *l)
{
    struct body w = body_of(l->m, l->s.linear);
    struct ir_scan linear = l->scan;
    ir_id *x = pass_no_values(l->m, l->n_in + l->s.n_residuals);
    int n = take_residuals(l, FROM_CONST, &w, x);
    n += take_linear(l, 0, l->n_consts, &w, x + n);
    linear.n_consts = n;
    n += take_linear(l, l->n_consts, l->first_row, &w, x + n);
    linear.n_carry = n - linear.n_consts;
    n += take_residuals(l, FROM_ROWS, &w, x + n);
    n += take_linear(l, l->first_row, l->n_in, &w, x + n);
    body_run(&w);
    for (uint32_t i = 0, next = 0; i < l->n_out; i++) {
        bool there = l->s.linear_out[i];
        if (l->linear_out[i])
            body_give_or_zeros(&w, there, next, body_result(l->body, i));
        next += there;
    }
    JOT_TRY(pass_finish(&w.b, &linear.body));
    ir_id y = ir_scan(l->b, &linear, n, x);
    if (y == IR_NONE)
        return pass_builder_status(l->b);
    for (uint32_t i = 0; i < l->n_out; i++)
        if (l->linear_out[i])
            l->y[i] = y++;
    return JOT_OK;
}

// -- Both -------------------------------------------------------------------------------------

// scan over operands x, of which those in linear_in are linear; results in y and linear_out.
static jot_status split_loop(struct ir_builder *b, const struct ir_scan *scan, uint32_t n_in,
                             const ir_id *x, const bool *linear_in, ir_id *y, bool *linear_out)
{
    struct ir_module *m = b->module;
    const struct ir_graph *body = ir_function(m, scan->body);
    struct split_loop l = {.b = b,
                           .m = m,
                           .scan = *scan,
                           .body = body,
                           .n_consts = (uint32_t)scan->n_consts,
                           .first_row = (uint32_t)(scan->n_consts + scan->n_carry),
                           .n_in = n_in,
                           .n_carry = (uint32_t)scan->n_carry,
                           .n_out = body->outputs.count,
                           .x = x,
                           .linear_in = arena_copy(m->arena, linear_in, n_in),
                           .linear_out = linear_out,
                           .y = y};
    JOT_TRY(split_body(&l));
    l.residuals = arena_array(m->arena, struct residual, l.s.n_residuals + 1);
    bool *invariant = find_invariant(&l);
    choose_stacks(&l, invariant);
    JOT_TRY(build_known(&l));
    find_residuals(&l, invariant);
    JOT_TRY(pass_builder_status(b));
    return body_any(l.linear_out, l.n_out) ? build_linear(&l) : JOT_OK;
}

static void set_results(struct unzip *u, const struct ir_node *n, const ir_id *y,
                        const bool *linear)
{
    for (uint32_t i = 0; i < n->n_out; i++) {
        u->map[n->out + i] = y[i];
        u->linear[n->out + i] = linear[i];
    }
}

static void unzip_loop(struct unzip *u, const struct ir_node *n, const struct ir_scan *scan)
{
    struct ir_builder *b = u->b;
    ir_id *y = pass_no_values(b->module, n->n_out);
    bool *linear_out = body_mask(b->module, n->n_out);
    b->where = n->where;
    jot_status status = split_loop(b, scan, n->n_in, unzip_operands(u, n),
                                   unzip_linear_operands(u, n), y, linear_out);
    if (status == JOT_OK)
        set_results(u, n, y, linear_out);
    else if (b->status == JOT_OK)
        ir_fail(b, status, "%s", jot_error_message());
}

void unzip_scan(struct unzip *u, const struct ir_node *n)
{
    struct ir_scan s = ir_scan_of(n);
    unzip_loop(u, n, &s);
}

// -- while ------------------------------------------------------------------------------------

// p: bool of the lanes, brought to the rank of a carry.
static ir_id over_carry(struct ir_builder *b, ir_id p, struct ir_type carry)
{
    int64_t dims[IR_MAX_RANK];
    struct ir_type t = ir_type_in(b, p);
    for (int i = 0; i < carry.rank; i++)
        dims[i] = i < t.rank ? ir_dims(b->module, t)[i] : 1;
    return ir_reshape(b, p, carry.rank, dims);
}

// One trip of a while whose lanes end by themselves.  Linear carries of lanes that are done do not
// enter the step, so that what is not finite there does not come back as a cotangent.
static void lane_trip(struct ir_builder *b, const struct ir_while *l, const bool *linear,
                      ir_id *x, uint32_t n_in, ir_id p)
{
    uint32_t n_consts = (uint32_t)l->n_consts;
    ir_id *in = arena_copy(b->module->arena, x, n_in * sizeof *x);
    ir_id *y = pass_no_values(b->module, n_in);
    for (uint32_t i = n_consts; i < n_in; i++)
        if (linear[i])
            in[i] = ir_select(b, over_carry(b, p, ir_type_in(b, x[i])), x[i],
                              ir_zeros(b, ir_type_in(b, x[i])));
    ir_inline(b, ir_function(b->module, l->step), in, y);
    for (uint32_t i = n_consts; i < n_in && b->status == JOT_OK; i++)
        ir_output(b,
                  ir_select(b, over_carry(b, p, ir_type_in(b, x[i])), y[i - n_consts], x[i]));
}

// One trip of a while, or none: cond over [the carries as they are, the step].
static void plain_trip(struct ir_builder *b, const struct ir_while *l, ir_id *x, uint32_t n_in,
                       ir_id p)
{
    struct ir_module *m = b->module;
    const struct ir_graph *step = ir_function(m, l->step);
    struct ir_builder same = ir_builder_make(m, step->name, IR_BUILD_PLAIN);
    ir_id *all = pass_no_values(m, n_in);
    pass_copy_params(&same, step, NULL, true, all);
    for (uint32_t i = (uint32_t)l->n_consts; i < n_in; i++)
        ir_output(&same, all[i]);
    uint32_t branches[2] = {ir_finish_function(&same), l->step};
    ir_id *in = pass_no_values(m, n_in + 1);
    in[0] = ir_convert(b, p, JOT_I32);
    memcpy(in + 1, x, n_in * sizeof *x);
    ir_id y = ir_cond(b, 2, branches, (int)n_in + 1, in);
    for (uint32_t i = 0; i < step->outputs.count && y != IR_NONE; i++)
        ir_output(b, y + i);
}

// A while of at most max_trips trips as a scan of exactly so many: once the test is false the
// carries stay, so it stays false.  That the test is false after the last trip is not looked at
// here: the place to look is the while of the primal, which the scan stands for, at run time.
static jot_status bounded_scan(struct ir_module *m, const struct ir_while *l,
                               const bool *linear, struct ir_scan *out)
{
    const struct ir_graph *step = ir_function(m, l->step);
    struct ir_builder b = ir_builder_make(m, step->name, IR_BUILD_ZEROS);
    ir_id *x = pass_no_values(m, step->n_params), p;
    pass_copy_params(&b, step, NULL, true, x);
    ir_inline(&b, ir_function(m, l->test), x, &p);
    if (l->batched)
        lane_trip(&b, l, linear, x, step->n_params, p);
    else
        plain_trip(&b, l, x, step->n_params, p);
    *out = (struct ir_scan){
        .n_consts = l->n_consts, .n_carry = (int)step->outputs.count, .length = l->max_trips};
    return pass_finish(&b, &out->body);
}

void unzip_while(struct unzip *u, const struct ir_node *n)
{
    struct ir_while l = ir_while_of(n);
    struct ir_scan s;
    u->b->where = n->where;
    if (l.max_trips == IR_NO_BOUND) {
        ir_fail(u->b, JOT_ERR_ARGUMENT,
                "while has no reverse mode: nobody knows how many trips there are to go back: "
                "use jot_scan, or jot_for with a fixed number of trips, or give the while a "
                "bound");
        return;
    }
    jot_status status = bounded_scan(u->b->module, &l, unzip_linear_operands(u, n), &s);
    if (status == JOT_OK)
        unzip_loop(u, n, &s);
    else
        ir_fail(u->b, status, "%s", jot_error_message());
}
