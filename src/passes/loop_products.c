// SPDX-License-Identifier: Apache-2.0
// Loop distribution: products that a scan makes trip by trip become one of all its trips.
//
//     scan {c = f(c, x w)}(w, c, xs)              becomes    zs = xs w; scan {c = f(c, z)}(c, zs)
//     scan {c = f(c); y = c w}(w, c)              becomes    cs = scan {c = f(c)}(c); ys = cs w
//     scan {s = s + x^T f(c); c = g(c)}(s, c, xs) becomes    fs = scan {f(c); c = g(c)}(c, xs); s = s + xs^T fs
//     scan {c = c + x - sum x}(c, xs)             becomes    ss = sums xs; scan {c = c + x - s}(c, xs, ss)
//
// In front of the loop: a product of what the rows alone make with what does not change.  Behind it: one that
// no carry wants, and what is added to a carry that nothing else reads, whose sum over the trips is that of
// the product.  Only where the product of all trips is one for a library, and what is kept for it, or of it,
// is no more than what a trip would read again.  Folds of rows go in front where nothing else mixes the lanes of
// the loop (lanes.h).  After all differentiation.
#include "ir/control.h"
#include "passes/body.h"
#include "passes/cost.h"
#include "passes/lanes.h"

#include "base/status.h"

struct loop {
    struct ir_builder *b;
    struct ir_module *m;
    struct ir_scan s;
    const struct ir_graph *g; // the body
    ir_id *in;                // operands, with room for a row for each value of the body
    uint32_t n_in;
    bool *invariant, *of_rows; // by value: made of consts alone, of consts and rows
    bool *gone;                // by value: a product that the body has no more
    uint32_t *uses;            // by value: how often it is read or given
    uint32_t *reader;          // by value: the last node that reads it
    ir_id *sum; // by value: what it is a term of, read by nothing else, and given; or IR_NONE
};

// A value of the body for each trip, as a value around it.
struct stack {
    ir_id of;
    ir_id v; // or IR_NONE so far: a new row out
};

static bool is_param(const struct ir_graph *g, ir_id v)
{
    return ir_node_of(g, v)->op == IR_param;
}

static uint32_t first_row(const struct loop *l)
{
    return (uint32_t)(l->s.n_consts + l->s.n_carry);
}

static void look(struct loop *l)
{
    l->g = ir_function(l->m, l->s.body);
    const struct ir_graph *g = l->g;
    l->invariant = body_mask(l->m, g->values.count);
    l->of_rows = body_mask(l->m, g->values.count);
    l->gone = body_mask(l->m, g->values.count);
    l->uses = pass_count_uses(l->m, g);
    l->reader = pass_no_values(l->m, g->values.count);
    l->sum = pass_no_values(l->m, g->values.count);
    ir_for_each_node (g, n) {
        bool is_pure = !ir_has_effect(g, n) && !ir_has_bodies((enum ir_op)n->op);
        bool invariant = is_pure, of_rows = is_pure;
        of_rows &= n->op == IR_dot_general || !pass_is_dear(g, n);
        if (n->op == IR_param) {
            invariant = n->out < (uint32_t)l->s.n_consts;
            of_rows = invariant || n->out >= first_row(l);
        }
        for (uint32_t i = 0; i < n->n_in; i++) {
            invariant &= l->invariant[ir_operand(g, n, i)];
            of_rows &= l->of_rows[ir_operand(g, n, i)];
            l->reader[ir_operand(g, n, i)] = (uint32_t)(n - g->nodes.at);
        }
        for (uint32_t k = 0; k < n->n_out; k++) {
            l->invariant[n->out + k] = invariant;
            l->of_rows[n->out + k] = of_rows;
        }
    }
    for (ir_id v = g->values.count; v-- > 0;) {
        const struct ir_node *n = l->reader[v] == IR_NONE ? NULL : &g->nodes.at[l->reader[v]];
        if (l->uses[v] == 1)
            l->sum[v] = !n ? v : n->op == IR_add ? l->sum[n->out] : IR_NONE;
    }
}

// ---- What is worth it

struct product {
    int n_contract;
    const int64_t *contract[2];
    int64_t m, n, k;
};

// Without batch axes, for then matrices of several trips lie apart.
static bool is_product(const struct ir_graph *g, const struct ir_node *n, struct product *out)
{
    int n_batch;
    if (n->op != IR_dot_general)
        return false;
    ir_attr_ints(n->attrs, IR_KEY_lhs_batch, &n_batch);
    out->contract[0] = ir_attr_ints(n->attrs, IR_KEY_lhs_contract, &out->n_contract);
    out->contract[1] = ir_attr_ints(n->attrs, IR_KEY_rhs_contract, &out->n_contract);
    out->k = 1;
    for (int i = 0; i < out->n_contract; i++)
        out->k *= ir_dims_of(g, ir_operand(g, n, 0))[out->contract[0][i]];
    if (n_batch || !ir_count_of(g, n->out) || !out->k || ir_rank_of(g, n->out) == IR_MAX_RANK)
        return false;
    out->m = ir_count_of(g, ir_operand(g, n, 0)) / out->k;
    out->n = ir_count_of(g, ir_operand(g, n, 1)) / out->k;
    return true;
}

// Whether the contracted axes of an operand are its first ones, or its last ones, in order.
static bool contracts(const struct ir_graph *g, const struct ir_node *n,
                      const struct product *p, uint32_t side, bool last)
{
    int first = last ? ir_rank_of(g, ir_operand(g, n, side)) - p->n_contract : 0;
    for (int i = 0; i < p->n_contract; i++)
        if (p->contract[side][i] != first + i)
            return false;
    return true;
}

// What a trip would read again, and keeps anew in place of it.
static bool is_worth(const struct loop *l, const struct ir_node *n, const struct product *p,
                     int64_t reads, int64_t keeps)
{
    jot_dtype d = ir_dtype_of(l->g, n->out);
    int64_t bytes = keeps * (int64_t)jot_dtype_size(d);
    return keeps <= reads && bytes <= COST_TRIPS_BYTES / l->s.length &&
           p->m * p->n * p->k >= COST_TRIPS_WORK &&
           cost_is_gemm(dtype_is_half(d) ? JOT_F32 : d, false, p->m, p->n, p->k);
}

// The operand of a product of changing rows with what does not change, of all of whose trips it is one; or 2.
static uint32_t changing_side(const struct loop *l, const struct ir_node *n, struct product *p)
{
    for (uint32_t i = 0; i < 2 && is_product(l->g, n, p); i++)
        if (l->invariant[ir_operand(l->g, n, 1 - i)] && !l->invariant[ir_operand(l->g, n, i)] &&
            contracts(l->g, n, p, i, true)) {
            *(i ? &p->n : &p->m) *= l->s.length;
            return i;
        }
    return 2;
}

// ---- Making it

// An addition without a term that is gone is the other one.
static ir_id left_of_addition(const struct loop *l, const struct ir_node *n)
{
    if (n->op != IR_add)
        return IR_NONE;
    ir_id x = ir_operand(l->g, n, 0), y = ir_operand(l->g, n, 1);
    return l->gone[x] ? y : l->gone[y] ? x : IR_NONE;
}

// Makes n values of the body, and its effects where they are wanted, of those that map has.
static void make(const struct loop *l, struct ir_builder *b, uint32_t n, const ir_id *values,
                 bool has_effects, ir_id *map)
{
    const struct ir_graph *g = l->g;
    bool *wanted = body_mask(l->m, g->values.count), *is_made;
    is_made = body_mask(l->m, g->nodes.count);
    for (uint32_t i = 0; i < n; i++)
        wanted[values[i]] = true;
    for (uint32_t at = g->nodes.count; at-- > g->n_params;) {
        const struct ir_node *k = &g->nodes.at[at];
        is_made[at] = has_effects && ir_has_effect(g, k);
        for (uint32_t i = 0; i < k->n_out; i++)
            is_made[at] |= wanted[k->out + i] && map[k->out + i] == IR_NONE;
        for (uint32_t i = 0; i < k->n_in && is_made[at]; i++)
            wanted[ir_operand(g, k, i)] |= !l->gone[ir_operand(g, k, i)];
    }
    for (uint32_t at = g->n_params; at < g->nodes.count; at++) {
        const struct ir_node *k = &g->nodes.at[at];
        ir_id left = is_made[at] ? left_of_addition(l, k) : IR_NONE;
        if (left != IR_NONE)
            map[k->out] = map[left];
        else if (is_made[at])
            pass_copy_node(b, g, k, map);
    }
}

// Values of the body for all trips, made of the consts and of some values for all trips.
static jot_status make_outside(struct loop *l, uint32_t n_stacks, const struct stack *stacks,
                               uint32_t n, const ir_id *values, ir_id *out)
{
    uint32_t n_consts = (uint32_t)l->s.n_consts, f;
    struct ir_builder b = ir_builder_make(l->m, l->g->name, IR_BUILD_PLAIN);
    ir_id *map = pass_no_values(l->m, l->g->values.count);
    ir_id *in = pass_no_values(l->m, n_consts + n_stacks);
    bool *mapped = body_mask(l->m, n_consts + n_stacks);
    for (uint32_t i = 0; i < n_consts + n_stacks; i++) {
        ir_id v = i < n_consts ? i : stacks[i - n_consts].of;
        mapped[i] = i >= n_consts;
        in[i] = i < n_consts ? l->in[i] : stacks[i - n_consts].v;
        map[v] = ir_param(&b, ir_type_of(l->g, v));
    }
    make(l, &b, n, values, false, map);
    for (uint32_t i = 0; i < n; i++)
        ir_output(&b, map[values[i]]);
    JOT_TRY(pass_finish(&b, &f));
    JOT_TRY(pass_vmap_all(l->m, f, mapped, l->s.length, &f));
    ir_inline(l->b, ir_function(l->m, f), in, out);
    return JOT_OK;
}

// ---- In front

// The loop with n values of the body, made of rows, as rows.
static jot_status move_values(struct loop *l, uint32_t n, const ir_id *moved)
{
    const struct ir_graph *g = l->g;
    uint32_t n_rows = g->n_params - first_row(l);
    struct stack *rows = arena_array(l->m->arena, struct stack, n_rows + 1);
    for (uint32_t i = 0; i < n_rows; i++)
        rows[i] = (struct stack){first_row(l) + i, l->in[first_row(l) + i]};
    JOT_TRY(make_outside(l, n_rows, rows, n, moved, l->in + l->n_in));
    l->n_in += n;
    struct ir_builder b = ir_builder_make(l->m, g->name, IR_BUILD_PLAIN);
    ir_id *map = pass_no_values(l->m, g->values.count);
    pass_copy_params(&b, g, NULL, true, map);
    for (uint32_t i = 0; i < n; i++)
        map[moved[i]] = ir_param(&b, ir_type_of(g, moved[i]));
    make(l, &b, g->outputs.count, g->outputs.at, true, map);
    pass_copy_outputs(&b, g, map);
    JOT_TRY(pass_finish(&b, &l->s.body));
    look(l);
    return JOT_OK;
}

static jot_status move_products(struct loop *l)
{
    const struct ir_graph *g = l->g;
    ir_id *moved = pass_no_values(l->m, g->values.count);
    uint32_t n = 0;
    ir_for_each_node (g, k) {
        struct product p;
        uint32_t side = l->of_rows[k->out] ? changing_side(l, k, &p) : 2;
        if (side < 2 && is_worth(l, k, &p, ir_count_of(g, ir_operand(g, k, 1 - side)),
                                 ir_count_of(g, k->out)))
            moved[n++] = k->out;
    }
    return n ? move_values(l, n, moved) : JOT_OK;
}

// Whether lanes are lost in a scan of the body with these operands, as one of a graph of its own.
static bool mixes_lanes(const struct loop *l)
{
    struct ir_builder b = ir_builder_make(l->m, "loop", IR_BUILD_PLAIN);
    ir_id *in = pass_no_values(l->m, l->n_in);
    for (uint32_t i = 0; i < l->n_in; i++)
        in[i] = ir_param(&b, ir_type_in(l->b, l->in[i]));
    const struct ir_node *n = ir_node_in(&b, ir_scan(&b, &l->s, (int)l->n_in, in));
    struct schedule space = {.scratch = l->m->arena, .g = b.graph};
    return lanes_lost_to(lanes_of(&space, n));
}

// Folds of rows, where lanes are not mixed without them.
static jot_status move_folds(struct loop *l)
{
    const struct ir_graph *g = l->g;
    ir_id *moved = pass_no_values(l->m, g->values.count);
    uint32_t n = 0;
    ir_for_each_node (g, k) {
        if (ir_op_class((enum ir_op)k->op) != IR_CLASS_REDUCE || l->invariant[k->out])
            continue;
        ir_id x = ir_operand(g, k, 0);
        if (l->of_rows[x] && ir_count_of(g, x) <= COST_TRIP_FOLD &&
            ir_rank_of(g, x) < IR_MAX_RANK)
            moved[n++] = k->out;
    }
    if (!n || !l->s.n_carry || !mixes_lanes(l))
        return JOT_OK;
    struct loop without = *l;
    without.in = arena_copy(l->m->arena, l->in, (l->n_in + g->values.count) * sizeof *l->in);
    JOT_TRY(move_values(&without, n, moved));
    if (!mixes_lanes(&without))
        *l = without;
    return JOT_OK;
}

// ---- Behind

struct behind {
    VEC(struct stack) stacks; // that products behind are made of
    VEC(ir_id) rows, terms;   // products: rows out, terms of carries
    VEC(uint32_t) carry_of;   // by term
    bool *is_row;             // by result: one of those rows
    uint32_t *row_out; // by value: the result that it is a row out of, which stays; or IR_NONE
};

static struct stack *find_stack(const struct behind *h, ir_id v)
{
    for (uint32_t i = 0; i < h->stacks.count; i++)
        if (h->stacks.at[i].of == v)
            return &h->stacks.at[i];
    return NULL;
}

static bool is_row(const struct loop *l, ir_id v)
{
    return is_param(l->g, v) && v >= first_row(l);
}

// Whether the value is there for all trips: a row, or a row out that stays.
static bool is_stacked(const struct loop *l, const struct behind *h, ir_id v)
{
    return is_row(l, v) || h->row_out[v] != IR_NONE || find_stack(h, v);
}

static void add_stack(struct loop *l, struct behind *h, ir_id v)
{
    if (!find_stack(h, v))
        vec_push(l->m->arena, &h->stacks, ((struct stack){v, IR_NONE}));
}

// Rows out that are products of what changes with what does not.
static void find_rows(struct loop *l, struct behind *h)
{
    const struct ir_graph *g = l->g;
    for (uint32_t i = (uint32_t)l->s.n_carry; i < g->outputs.count; i++) {
        ir_id y = g->outputs.at[i];
        const struct ir_node *n = ir_node_of(g, y);
        struct product p;
        uint32_t side = l->uses[y] == 1 ? changing_side(l, n, &p) : 2;
        if (side == 2)
            continue;
        ir_id x = ir_operand(g, n, side);
        int64_t keeps = is_stacked(l, h, x) ? 0 : ir_count_of(g, x);
        if (ir_rank_of(g, x) == IR_MAX_RANK ||
            !is_worth(l, n, &p, ir_count_of(g, ir_operand(g, n, 1 - side)), keeps))
            continue;
        add_stack(l, h, x);
        h->is_row[i] = true;
        h->row_out[y] = IR_NONE;
        vec_push(l->m->arena, &h->rows, y);
    }
}

static bool is_term(struct loop *l, const struct behind *h, ir_id v)
{
    const struct ir_graph *g = l->g;
    const struct ir_node *n = ir_node_of(g, v);
    struct product p;
    if (l->uses[v] != 1 || !is_product(g, n, &p) || !contracts(g, n, &p, 0, false) ||
        !contracts(g, n, &p, 1, false))
        return false;
    int64_t keeps = 0;
    for (uint32_t i = 0; i < 2; i++) {
        ir_id x = ir_operand(g, n, i);
        if (l->invariant[x] || ir_rank_of(g, x) == IR_MAX_RANK)
            return false;
        keeps += is_stacked(l, h, x) ? 0 : ir_count_of(g, x);
    }
    p.k *= l->s.length;
    return is_worth(l, n, &p, ir_count_of(g, v), keeps);
}

// Products that are added to carry i, which is a term of the sum that it is next.
static void find_terms(struct loop *l, struct behind *h, uint32_t i)
{
    ir_id v = (uint32_t)l->s.n_consts + i, next = l->g->outputs.at[i];
    if (l->sum[v] != next)
        return;
    while (v != next) {
        const struct ir_node *n = &l->g->nodes.at[l->reader[v]];
        ir_id x = ir_operand(l->g, n, ir_operand(l->g, n, 0) == v);
        if (is_term(l, h, x)) {
            l->gone[x] = true;
            add_stack(l, h, ir_operand(l->g, ir_node_of(l->g, x), 0));
            add_stack(l, h, ir_operand(l->g, ir_node_of(l->g, x), 1));
            vec_push(l->m->arena, &h->terms, x);
            vec_push(l->m->arena, &h->carry_of, i);
        }
        v = n->out;
    }
}

// The loop without these products and with the rows that they are made of; y receives its results.
static jot_status make_rest(struct loop *l, struct behind *h, ir_id *y)
{
    const struct ir_graph *g = l->g;
    struct ir_builder b = ir_builder_make(l->m, g->name, IR_BUILD_PLAIN);
    ir_id *map = pass_no_values(l->m, g->values.count);
    ir_id *values = pass_no_values(l->m, g->outputs.count + h->stacks.count);
    uint32_t n = 0, *place = arena_array(l->m->arena, uint32_t, g->outputs.count + 1);
    for (uint32_t i = 0; i < g->outputs.count; i++)
        if (!h->is_row[i]) {
            place[i] = n;
            values[n++] = g->outputs.at[i];
        }
    for (uint32_t i = 0; i < h->stacks.count; i++)
        if (!is_row(l, h->stacks.at[i].of) && h->row_out[h->stacks.at[i].of] == IR_NONE)
            values[n++] = h->stacks.at[i].of;
    pass_copy_params(&b, g, NULL, true, map);
    make(l, &b, n, values, true, map);
    for (uint32_t i = 0; i < n; i++)
        ir_output(&b, map[values[i]]);
    JOT_TRY(pass_finish(&b, &l->s.body));
    ir_id first = ir_scan(l->b, &l->s, (int)l->n_in, l->in), next = first + n;
    for (uint32_t i = h->stacks.count; i-- > 0;) {
        struct stack *s = &h->stacks.at[i];
        uint32_t out = h->row_out[s->of];
        s->v = is_row(l, s->of) ? l->in[s->of] : out != IR_NONE ? first + place[out] : --next;
    }
    for (uint32_t i = 0; i < g->outputs.count; i++)
        y[i] = h->is_row[i] ? IR_NONE : first + place[i];
    return JOT_OK;
}

// The sum of a product of two values over the trips.
static ir_id sum_of_products(struct loop *l, const struct behind *h, const struct ir_node *n)
{
    struct product p;
    is_product(l->g, n, &p);
    int64_t axes[IR_MAX_RANK];
    for (int i = 0; i <= p.n_contract; i++)
        axes[i] = i;
    struct ir_dot d = {.n_contract = p.n_contract + 1,
                       .lhs_contract = axes,
                       .rhs_contract = axes,
                       .precision = (int)ir_attr_int_or(n->attrs, IR_KEY_precision, 0)};
    l->b->where = n->where;
    return ir_dot_general(l->b, find_stack(h, ir_operand(l->g, n, 0))->v,
                          find_stack(h, ir_operand(l->g, n, 1))->v, &d);
}

static jot_status move_behind(struct loop *l, ir_id *y)
{
    const struct ir_graph *g = l->g;
    struct behind h = {.is_row = body_mask(l->m, g->outputs.count),
                       .row_out = pass_no_values(l->m, g->values.count)};
    for (uint32_t i = (uint32_t)l->s.n_carry; i < g->outputs.count; i++)
        h.row_out[g->outputs.at[i]] = i;
    find_rows(l, &h);
    for (uint32_t i = 0; i < (uint32_t)l->s.n_carry; i++)
        find_terms(l, &h, i);
    if (!h.rows.count && !h.terms.count) {
        ir_id first = ir_scan(l->b, &l->s, (int)l->n_in, l->in);
        for (uint32_t i = 0; i < g->outputs.count; i++)
            y[i] = first + i;
        return JOT_OK;
    }
    JOT_TRY(make_rest(l, &h, y));
    ir_id *made = pass_no_values(l->m, h.rows.count);
    if (h.rows.count)
        JOT_TRY(make_outside(l, h.stacks.count, h.stacks.at, h.rows.count, h.rows.at, made));
    for (uint32_t i = 0, k = 0; i < g->outputs.count; i++)
        if (h.is_row[i])
            y[i] = made[k++];
    for (uint32_t i = 0; i < h.terms.count; i++) {
        ir_id *sum = &y[h.carry_of.at[i]];
        *sum = ir_add(l->b, *sum, sum_of_products(l, &h, ir_node_of(g, h.terms.at[i])));
    }
    return JOT_OK;
}

static jot_status distribute(struct ir_builder *b, const struct ir_scan *s, uint32_t n_in,
                             const ir_id *in, ir_id *y)
{
    struct loop l = {.b = b, .m = b->module, .s = *s, .n_in = n_in};
    l.in = pass_no_values(l.m, n_in + ir_function(l.m, s->body)->values.count);
    memcpy(l.in, in, n_in * sizeof *in);
    look(&l);
    JOT_TRY(move_products(&l));
    JOT_TRY(move_folds(&l));
    return move_behind(&l, y);
}

static void copy_distributed(struct ir_builder *b, const struct ir_graph *g,
                             const struct ir_node *n, ir_id *map)
{
    if (!ir_has_bodies((enum ir_op)n->op)) {
        pass_copy_node(b, g, n, map);
        return;
    }
    uint32_t *bodies = body_rewrite_all(b->module, n, pass_loop_products);
    ir_id *in = body_operands(b->module, g, n, map);
    struct ir_scan s = n->op == IR_scan ? ir_scan_of(n) : (struct ir_scan){0};
    b->where = n->where;
    s.body = bodies[0];
    if (s.length >= COST_TRIPS_LEAST && !s.lanes) {
        jot_status status = distribute(b, &s, n->n_in, in, map + n->out);
        if (status != JOT_OK)
            ir_fail(b, status, "%s", jot_error_message());
        return;
    }
    body_set_results(n,
                     ir_build(b, (enum ir_op)n->op, (int)n->n_in, in,
                              ir_with_functions(b->module, n->attrs, bodies)),
                     map);
}

uint32_t pass_loop_products(struct ir_module *m, uint32_t f)
{
    return body_rewrite(m, f, MEMO_LOOP_PRODUCTS, copy_distributed);
}
