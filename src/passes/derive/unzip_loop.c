// SPDX-License-Identifier: Apache-2.0
// A loop over known and linear values, in two loops.
//
//     x, dx = scan {body} [a | x0, dx0 | s]       where   body: x' = sin (a x),  dx' = c dx
// becomes                                                       with c = a cos (a x)
//     x, cs = scan {known} [a | x0 | s]
//     dx = scan {linear} [| dx0 | cs]
//
// Residuals are known values that the linear body reads.  Consts and rows of the loop are handed
// on; what depends on consts alone is computed once, outside; rows out are used.  What cheap
// elementwise ops make of these is made again.  The rest becomes rows out of the known loop:
// either as it is, or the carries before each trip from which it can be made, whichever is less.
// The value of a carry after each trip is the same stack, moved by one trip.  Stacks of loops in one
// another have an axis for each of them: rows of MOST_AXES are kept as vectors.
//
// A carry is linear when it is in some trip: the body is separated until no carry is added.
//
// With checkpoint=1 the linear body computes everything again from its operands.
#include "passes/derive/unzip.h"

#include "base/status.h"
#include "ir/control.h"
#include "ir/cost.h"
#include "passes/body.h"

enum { MOST_AXES = IR_MAX_RANK / 2 }; // of a row: maps may add more

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
    // By input and by result of the body: indices in the known body, of those that are known.
    const uint32_t *input_index, *result_index;
    // By value of the known body: the carry that it is after a trip, or n_carry, and the row out of the
    // body that it is, or n_out.
    uint32_t *carry_after, *row_out;
    bool *is_residual; // by value
    bool *invariant;   // by value: depends on consts alone
    bool *constant;    // by value: depends on nothing
    bool *available;   // by value: can be made in the linear loop without being stored
    bool *kept;        // by value: a residual that is available because it is stored
    bool *leaf;        // by value: handed to the linear loop
    VEC(ir_id) stacks; // values of the known body that become rows out of the known loop
    ir_id *value;      // by value: of the graph around the loop, of leaves
    ir_id *y;          // results of the whole
};

// -- Separating the body ----------------------------------------------------------------------

static jot_status split_body(struct split_loop *l)
{
    bool *out = body_mask(l->m, l->n_out);
    bool replays = l->scan.checkpoint == 1;
    do {
        JOT_TRY((replays ? pass_split_replay : pass_split)(l->m, l->scan.body, l->linear_in,
                                                           &l->s));
        for (uint32_t i = 0; i < l->n_out; i++)
            out[i] = l->s.linear_out[i];
    } while (body_grow(l->linear_in + l->n_consts, out, l->n_carry));
    for (uint32_t i = 0; i < l->n_out; i++)
        l->linear_out[i] = i < l->n_carry ? l->linear_in[l->n_consts + i] : out[i];
    l->known = ir_function(l->m, l->s.forward);
    return JOT_OK;
}

static const uint32_t *indices_of(struct ir_module *m, const bool *linear, uint32_t n)
{
    uint32_t *index = arena_array(m->arena, uint32_t, n + 1);
    for (uint32_t i = 0; i < n; i++)
        index[i + 1] = index[i] + !linear[i];
    return index;
}

// The value of the known body that residual r is.
static ir_id residual_value(const struct split_loop *l, uint32_t r)
{
    struct pass_residual from = l->s.residuals[r];
    return from.from == PASS_RESIDUAL_INPUT ? l->input_index[from.index]
                                            : l->known->outputs.at[from.index];
}

static void find_indices(struct split_loop *l)
{
    uint32_t n = l->known->values.count;
    l->input_index = indices_of(l->m, l->linear_in, l->n_in);
    l->result_index = indices_of(l->m, l->s.linear_out, l->n_out);
    l->carry_after = arena_array(l->m->arena, uint32_t, n + 1);
    l->row_out = arena_array(l->m->arena, uint32_t, n + 1);
    l->is_residual = body_mask(l->m, n);
    for (ir_id v = 0; v < n; v++) {
        l->carry_after[v] = l->n_carry;
        l->row_out[v] = l->n_out;
    }
    for (uint32_t i = l->n_out; i-- > 0;)
        if (!l->linear_out[i])
            (i < l->n_carry ? l->carry_after
                            : l->row_out)[l->known->outputs.at[l->result_index[i]]] = i;
    for (uint32_t r = 0; r < l->s.n_residuals; r++)
        l->is_residual[residual_value(l, r)] = true;
}

// -- What is handed on ------------------------------------------------------------------------

static void find_invariant(struct split_loop *l)
{
    const struct ir_graph *g = l->known;
    uint32_t n_consts = l->input_index[l->n_consts];
    l->invariant = body_mask(l->m, g->values.count);
    l->constant = body_mask(l->m, g->values.count);
    ir_for_each_node (g, n) {
        bool constant = n->op != IR_param && !ir_has_effect(g, n);
        bool invariant = constant || (n->op == IR_param && n->out < n_consts);
        for (uint32_t i = 0; i < n->n_in; i++) {
            invariant = invariant && l->invariant[ir_operand(g, n, i)];
            constant = constant && l->constant[ir_operand(g, n, i)];
        }
        for (uint32_t i = 0; i < n->n_out; i++) {
            l->invariant[n->out + i] = invariant;
            l->constant[n->out + i] = constant;
        }
    }
}

// Carry k before a trip.
static ir_id carry_before(const struct split_loop *l, uint32_t k)
{
    return l->input_index[l->n_consts + k];
}

static bool is_carry_before(const struct split_loop *l, ir_id v)
{
    return v >= l->input_index[l->n_consts] && v < l->input_index[l->first_row];
}

// Whether making the results again costs less than reading them.
static bool is_cheap(const struct ir_graph *g, const struct ir_node *n)
{
    enum ir_op op = (enum ir_op)n->op;
    return n->n_out == 1 &&
           (op == IR_broadcast_in_dim || op == IR_reshape ||
            (ir_op_class(op) == IR_CLASS_MAP && cost_of_op(op, ir_dtype_of(g, n->out)) <= 2));
}

// Whether the value is a carry after the trip whose rows before each trip are residuals: those
// rows, moved by a trip, are its own.
static bool is_stored_after(const struct split_loop *l, ir_id v)
{
    uint32_t k = l->carry_after[v];
    return l->scan.length > 0 && k < l->n_carry && l->is_residual[carry_before(l, k)];
}

// What the linear loop can have without storing anything but residuals that nothing cheap makes and
// carries before the trip, and those only when with_carries says so or they are residuals anyway.
static void find_available(struct split_loop *l, bool with_carries)
{
    const struct ir_graph *g = l->known;
    bool *available = l->available;
    memset(available, 0, g->values.count * sizeof *available);
    memset(l->kept, 0, g->values.count * sizeof *l->kept);
    for (ir_id v = 0; v < g->n_params; v++)
        available[v] = with_carries || !is_carry_before(l, v);
    for (uint32_t r = 0; r < l->s.n_residuals; r++) {
        ir_id v = residual_value(l, r);
        available[v] |= is_carry_before(l, v);
    }
    for (uint32_t i = l->n_carry; i < l->n_out; i++)
        if (!l->linear_out[i])
            available[g->outputs.at[l->result_index[i]]] = true;
    for (uint32_t at = g->n_params; at < g->nodes.count; at++) {
        const struct ir_node *n = &g->nodes.at[at];
        bool all = is_cheap(g, n);
        for (uint32_t i = 0; i < n->n_in; i++)
            all = all && available[ir_operand(g, n, i)];
        for (uint32_t i = 0; i < n->n_out; i++) {
            ir_id v = n->out + i;
            available[v] |= all || l->invariant[v] || is_stored_after(l, v);
            l->kept[v] = l->is_residual[v] && !available[v];
            available[v] |= l->kept[v];
        }
    }
}

// Marks what is handed on: values that are not made again, of those that residuals are made of.
static void find_leaves(struct split_loop *l)
{
    const struct ir_graph *g = l->known;
    bool *needed = body_mask(l->m, g->values.count);
    memset(l->leaf, 0, g->values.count * sizeof *l->leaf);
    for (uint32_t r = 0; r < l->s.n_residuals; r++)
        needed[residual_value(l, r)] = true;
    for (uint32_t at = g->nodes.count; at-- > 0;) {
        const struct ir_node *n = &g->nodes.at[at];
        bool any = false;
        for (uint32_t i = 0; i < n->n_out; i++) {
            ir_id v = n->out + i;
            bool given = n->op == IR_param || l->row_out[v] < l->n_out ||
                         (l->invariant[v] && !l->constant[v]) || l->kept[v] ||
                         is_stored_after(l, v) || !l->available[v];
            l->leaf[v] = needed[v] && given;
            any = any || (needed[v] && !given);
        }
        for (uint32_t i = 0; any && i < n->n_in; i++)
            needed[ir_operand(g, n, i)] = true;
    }
}

// Whether the rows of a leaf are those of a stacked carry, moved.
static bool is_moved(const struct split_loop *l, ir_id v)
{
    uint32_t k = l->carry_after[v];
    return v >= l->known->n_params && k < l->n_carry && l->scan.length > 0 &&
           l->leaf[carry_before(l, k)];
}

// Whether a leaf takes memory of its own: consts, rows in and rows out do not.
static bool takes_memory(const struct split_loop *l, ir_id v)
{
    return l->leaf[v] && !l->invariant[v] && l->row_out[v] == l->n_out &&
           (v >= l->known->n_params || is_carry_before(l, v));
}

static int64_t bytes_of(const struct split_loop *l, struct ir_type t)
{
    return ir_count(l->m, t) * (int64_t)jot_dtype_size(ir_dtype(t));
}

// Bytes of a trip that the choice of carries takes.
static int64_t choose_leaves(struct split_loop *l, bool with_carries)
{
    int64_t bytes = 0;
    find_available(l, with_carries);
    find_leaves(l);
    l->stacks.count = 0;
    for (ir_id v = 0; v < l->known->values.count; v++) {
        if (!takes_memory(l, v))
            continue;
        if (!is_moved(l, v))
            vec_push(l->m->arena, &l->stacks, v);
        bytes += bytes_of(l, ir_type_of(l->known, v));
    }
    return bytes;
}

// The values that depend on consts alone, computed outside the loop.
static void hoist(struct split_loop *l)
{
    const struct ir_graph *g = l->known;
    bool *wanted = body_mask(l->m, g->values.count);
    ir_id *map = pass_no_values(l->m, g->values.count);
    uint32_t where = l->b->where;
    body_pick(l->linear_in, false, 0, l->n_consts, l->x, map);
    for (uint32_t at = g->nodes.count; at-- > 0;) {
        const struct ir_node *n = &g->nodes.at[at];
        for (uint32_t i = 0; i < n->n_out; i++)
            wanted[n->out + i] |= l->leaf[n->out + i] && l->invariant[n->out + i];
        for (uint32_t i = 0; body_any(wanted + n->out, n->n_out) && i < n->n_in; i++)
            wanted[ir_operand(g, n, i)] = true;
    }
    for (uint32_t at = g->n_params; at < g->nodes.count; at++)
        if (body_any(wanted + g->nodes.at[at].out, g->nodes.at[at].n_out))
            pass_copy_node(l->b, g, &g->nodes.at[at], map);
    l->b->where = where;
    for (ir_id v = 0; v < g->values.count; v++)
        if (l->leaf[v] && l->invariant[v])
            l->value[v] = map[v];
}

// -- The known loop ---------------------------------------------------------------------------

static ir_id make_row(struct ir_builder *b, ir_id v)
{
    if (v == IR_NONE || ir_type_in(b, v).rank < MOST_AXES)
        return v;
    int64_t count = ir_count(b->module, ir_type_in(b, v));
    return ir_reshape(b, v, 1, &count);
}

static jot_status build_known(struct split_loop *l)
{
    uint32_t n_known = body_count(l->linear_out, false, 0, l->n_out);
    if (n_known + l->stacks.count == 0 && !l->known->has_effects)
        return JOT_OK;
    struct ir_builder b = ir_builder_make(l->m, l->known->name, IR_BUILD_ZEROS);
    ir_id *map = pass_no_values(l->m, l->known->values.count);
    pass_copy_values(&b, l->known, map);
    for (uint32_t i = 0; i < l->n_out; i++)
        if (!l->linear_out[i])
            ir_output(&b, map[l->known->outputs.at[l->result_index[i]]]);
    for (uint32_t i = 0; i < l->stacks.count; i++)
        ir_output(&b, make_row(&b, map[l->stacks.at[i]]));
    struct ir_scan known = l->scan;
    JOT_TRY(pass_finish(&b, &known.body));
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
        l->value[l->stacks.at[i]] = y++;
    return JOT_OK;
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
    memcpy(dims, limits, sizeof *dims * t.rank);
    starts[0] = l->scan.reverse ? 0 : 1;
    limits[0] -= l->scan.reverse;
    dims[0] = 1;
    ir_id kept = ir_slice(b, rows, starts, limits, NULL);
    last = ir_reshape(b, last, t.rank, dims);
    ir_id parts[2] = {l->scan.reverse ? last : kept, l->scan.reverse ? kept : last};
    return ir_concatenate(b, 2, parts, 0);
}

// Values of the graph around the loop for the leaves that are not stacks.
static void find_values(struct split_loop *l)
{
    hoist(l);
    for (uint32_t i = l->first_row; i < l->n_in; i++)
        if (!l->linear_in[i])
            l->value[l->input_index[i]] = l->x[i];
    for (uint32_t i = l->n_carry; i < l->n_out; i++) {
        ir_id v = l->linear_out[i] ? IR_NONE : l->known->outputs.at[l->result_index[i]];
        if (v != IR_NONE && l->leaf[v] && l->value[v] == IR_NONE)
            l->value[v] = l->y[i];
    }
    for (ir_id v = 0; v < l->known->values.count; v++) {
        if (!l->leaf[v] || l->value[v] != IR_NONE)
            continue;
        uint32_t k = l->carry_after[v];
        l->value[v] = move_rows(l, l->value[carry_before(l, k)], l->y[k]);
    }
}

// -- The linear loop --------------------------------------------------------------------------

// Appends the leaves that are consts, or those that are rows: operands to x, parameters to map.
static int take_leaves(struct split_loop *l, bool consts, struct body *w, ir_id *map, ir_id *x)
{
    int n = 0;
    for (ir_id v = 0; v < l->known->values.count; v++)
        if (l->leaf[v] && l->invariant[v] == consts) {
            struct ir_type t = ir_type_of(l->known, v), given = ir_type_in(l->b, l->value[v]);
            map[v] = ir_param(&w->b, consts ? given : ir_type_row(l->m, given));
            map[v] = ir_reshape(&w->b, map[v], t.rank, ir_dims(l->m, t));
            x[n++] = l->value[v];
        }
    return n;
}

static int take_linear(struct split_loop *l, uint32_t first, uint32_t end, struct body *w,
                       ir_id *x)
{
    uint32_t index = l->s.n_residuals + body_count(l->linear_in, true, 0, first);
    for (uint32_t i = first; i < end; i++)
        if (l->linear_in[i])
            body_take(w, index++);
    return body_pick(l->linear_in, true, first, end, l->x, x);
}

// The residuals from the leaves.
static void make_residuals(struct split_loop *l, struct body *w, ir_id *map)
{
    const struct ir_graph *g = l->known;
    bool *wanted = body_mask(l->m, g->values.count);
    for (uint32_t r = 0; r < l->s.n_residuals; r++)
        wanted[residual_value(l, r)] = true;
    for (uint32_t at = g->nodes.count; at-- > g->n_params;) {
        const struct ir_node *n = &g->nodes.at[at];
        bool any = false;
        for (uint32_t i = 0; i < n->n_out; i++)
            any = any || (wanted[n->out + i] && map[n->out + i] == IR_NONE);
        for (uint32_t i = 0; i < n->n_out; i++)
            wanted[n->out + i] = any;
        for (uint32_t i = 0; any && i < n->n_in; i++)
            wanted[ir_operand(g, n, i)] = true;
    }
    for (uint32_t at = g->n_params; at < g->nodes.count; at++)
        if (body_any(wanted + g->nodes.at[at].out, g->nodes.at[at].n_out))
            pass_copy_node(&w->b, g, &g->nodes.at[at], map);
    for (uint32_t r = 0; r < l->s.n_residuals; r++)
        w->in[r] = map[residual_value(l, r)];
}

static jot_status build_linear(struct split_loop *l)
{
    struct body w = body_of(l->m, l->s.linear);
    struct ir_scan linear = l->scan;
    ir_id *map = pass_no_values(l->m, l->known->values.count);
    ir_id *x = pass_no_values(l->m, l->n_in + l->known->values.count);
    int n = take_leaves(l, true, &w, map, x);
    n += take_linear(l, 0, l->n_consts, &w, x + n);
    linear.n_consts = n;
    n += take_linear(l, l->n_consts, l->first_row, &w, x + n);
    linear.n_carry = n - linear.n_consts;
    n += take_leaves(l, false, &w, map, x + n);
    n += take_linear(l, l->first_row, l->n_in, &w, x + n);
    make_residuals(l, &w, map);
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

static struct split_loop make_loop(struct ir_builder *b, const struct known_linear *k)
{
    struct ir_module *m = b->module;
    const struct ir_graph *body = ir_function(m, k->scan.body);
    return (struct split_loop){
        .b = b,
        .m = m,
        .scan = k->scan,
        .body = body,
        .n_consts = (uint32_t)k->scan.n_consts,
        .first_row = (uint32_t)(k->scan.n_consts + k->scan.n_carry),
        .n_in = k->n_in,
        .n_carry = (uint32_t)k->scan.n_carry,
        .n_out = body->outputs.count,
        .x = k->x,
        .linear_in = arena_copy(m->arena, k->linear_in, k->n_in),
        .linear_out = k->linear_out,
        .y = k->y,
    };
}

static int64_t state_bytes(const struct split_loop *l)
{
    int64_t bytes = 0;
    for (uint32_t i = l->n_consts; i < l->first_row; i++)
        if (!l->linear_in[i])
            bytes += bytes_of(l, ir_type_of(l->body, i));
    return bytes;
}

jot_status unzip_trips(struct ir_builder *b, const struct known_linear *k, int64_t most,
                       struct tape *out)
{
    struct split_loop l = make_loop(b, k);
    JOT_TRY(split_body(&l));
    uint32_t n_values = l.known->values.count;
    find_indices(&l);
    l.available = body_mask(l.m, n_values);
    l.kept = body_mask(l.m, n_values);
    l.leaf = body_mask(l.m, n_values);
    l.value = pass_no_values(l.m, n_values);
    find_invariant(&l);
    int64_t with_carries = choose_leaves(&l, true), bytes = choose_leaves(&l, false);
    if (bytes > with_carries)
        bytes = choose_leaves(&l, true);
    *out = (struct tape){.trip = bytes, .state = state_bytes(&l)};
    if (l.scan.length > 0 && bytes > most / l.scan.length)
        return JOT_OK;
    out->is_built = true;
    JOT_TRY(build_known(&l));
    find_values(&l);
    JOT_TRY(pass_builder_status(b));
    return body_any(l.linear_out, l.n_out) ? build_linear(&l) : JOT_OK;
}
