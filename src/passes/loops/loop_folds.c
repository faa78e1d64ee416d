// SPDX-License-Identifier: Apache-2.0
// Loop distribution: folds that mix the lanes of a scan are made of all its trips.
//
//     scan {c = c + x - sum x}(c, xs)       becomes    ss = sums xs; scan {c = c + x - s}(c, xs, ss)
//     scan {c = f(c); y = g(sum c)}(c)      becomes    cs = scan {c = f(c)}(c); ys = g(sums cs)
//     scan {c = f(c); s = s + sum c}(c, s)  becomes    cs = scan {c = f(c)}(c); s = scan {s + t}(s, sums cs)
//
// Where nothing else mixes the lanes (lanes.h).  Folds of rows go in front.  On a GPU rows out that are made of folds
// go behind, and carries that nothing reads and to which such are added; a processor keeps in caches what a trip has
// for its folds.  The order of all sums is what it is in the loop.
#include "ir/cost.h"
#include "passes/analysis/lanes.h"
#include "passes/loops/loop_distribution.h"

#include "base/status.h"

// Whether lanes are lost in a scan of the body with these operands, as one of a graph of its own.
static bool mixes_lanes(const struct loop *l)
{
    struct ir_builder b = ir_builder_make(l->m, "loop", IR_BUILD_PLAIN);
    ir_id *in = pass_no_values(l->m, l->n_in);
    for (uint32_t i = 0; i < l->n_in; i++)
        in[i] = ir_param(&b, ir_type_in(l->b, l->in[i]));
    const struct ir_node *n = ir_node_in(&b, ir_scan(&b, &l->s, (int)l->n_in, in));
    struct axes space = {.scratch = l->m->arena, .g = b.graph};
    return lanes_lost_to(lanes_of(&space, n));
}

jot_status loop_move_folds(struct loop *l)
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
    JOT_TRY(loop_move_values(&without, n, moved));
    if (!mixes_lanes(&without))
        *l = without;
    return JOT_OK;
}

// By value: whether it is made of a fold of what changes from trip to trip, and by nothing that has an effect.
static bool *made_of_folds(const struct loop *l)
{
    const struct ir_graph *g = l->g;
    bool *made = body_mask(l->m, g->values.count);
    ir_for_each_node (g, n) {
        bool is = false;
        if (ir_has_effect(g, n) || ir_has_bodies((enum ir_op)n->op))
            continue;
        for (uint32_t i = 0; i < n->n_in; i++) {
            ir_id x = ir_operand(g, n, i);
            is |= made[x] || (ir_op_class((enum ir_op)n->op) == IR_CLASS_REDUCE &&
                              !l->invariant[x] && ir_count_of(g, x) <= COST_TRIP_FOLD);
        }
        for (uint32_t k = 0; k < n->n_out; k++)
            made[n->out + k] = is;
    }
    return made;
}

// Stacks of what the rows that are made of folds are made of; false where they are too many.
static bool find_stacks(struct loop *l, struct loop_behind *h, const bool *made)
{
    const struct ir_graph *g = l->g;
    bool *wanted = body_mask(l->m, g->values.count);
    int64_t elements = 0;
    for (uint32_t i = 0; i < h->rows.count; i++)
        wanted[h->rows.at[i]] = true;
    for (uint32_t i = 0; i < h->terms.count; i++)
        wanted[h->terms.at[i]] = true;
    for (ir_id v = g->values.count; v-- > (uint32_t)l->s.n_consts;) {
        const struct ir_node *n = ir_node_of(g, v);
        if (!wanted[v])
            continue;
        if ((made[v] || l->of_rows[v]) && !loop_is_param(g, v) && h->row_out[v] == IR_NONE) {
            for (uint32_t i = 0; i < n->n_in; i++)
                wanted[ir_operand(g, n, i)] = true;
            continue;
        }
        loop_add_stack(l, h, v);
        elements += loop_is_new_row(l, h, v) ? ir_count_of(g, v) : 0;
        if (ir_rank_of(g, v) == IR_MAX_RANK)
            return false;
    }
    return elements <= COST_TRIP_FOLD &&
           elements * l->s.length * (int64_t)sizeof(double) <= COST_TRIPS_BYTES;
}

// What is added to carry i, which nothing else reads, where some of it is made of folds.
static bool find_added(struct loop *l, struct loop_behind *h, const bool *made, uint32_t i)
{
    ir_id v = (uint32_t)l->s.n_consts + i, next = l->g->outputs.at[i];
    uint32_t n = h->terms.count;
    bool any = false;
    for (ir_id sum = v; l->sum[v] == next && sum != next;) {
        const struct ir_node *add = &l->g->nodes.at[l->reader[sum]];
        ir_id x = ir_operand(l->g, add, ir_operand(l->g, add, 0) == sum);
        if (l->uses[x] != 1 || ir_rank_of(l->g, x) == IR_MAX_RANK)
            break;
        any |= made[x];
        vec_push(l->m->arena, &h->terms, x);
        vec_push(l->m->arena, &h->carry_of, i);
        sum = add->out;
        if (sum == next && any) {
            for (uint32_t k = n; k < h->terms.count; k++)
                l->gone[h->terms.at[k]] = true;
            return true;
        }
    }
    h->terms.count = h->carry_of.count = n;
    return false;
}

// Rows out that are made of folds, and carries that are sums of what is, where lanes are not mixed without them.
static jot_status find_folds(struct loop *l, struct loop_behind *h)
{
    const struct ir_graph *g = l->g;
    struct loop_behind with = *h;
    struct loop without = *l;
    uint32_t n, *index = arena_array(l->m->arena, uint32_t, g->outputs.count + 1);
    bool *made = made_of_folds(l), any = false;
    with.is_row = arena_copy(l->m->arena, h->is_row, g->outputs.count * sizeof *h->is_row);
    with.row_out = arena_copy(l->m->arena, h->row_out, g->values.count * sizeof *h->row_out);
    for (uint32_t i = (uint32_t)l->s.n_carry; i < g->outputs.count; i++) {
        ir_id y = g->outputs.at[i];
        if (!made[y] || h->is_row[i] || ir_rank_of(g, y) == IR_MAX_RANK)
            continue;
        any = with.is_row[i] = true;
        with.row_out[y] = IR_NONE;
        vec_push(l->m->arena, &with.rows, y);
    }
    without.gone = arena_copy(l->m->arena, l->gone, g->values.count * sizeof *l->gone);
    for (uint32_t i = 0; i < (uint32_t)l->s.n_carry; i++)
        any |= find_added(&without, &with, made, i);
    if (!any || !l->s.n_carry || !find_stacks(&without, &with, made) || !mixes_lanes(l))
        return JOT_OK;
    JOT_TRY(loop_make_body(&without, &with, &n, index, &without.s.body));
    if (mixes_lanes(&without))
        return JOT_OK;
    *h = with;
    l->gone = without.gone;
    return JOT_OK;
}

// What has been carry i, of so many terms of all trips, which are added in their order.
static jot_status add_terms(struct loop *l, uint32_t i, uint32_t n, const ir_id *terms,
                            ir_id *out)
{
    ir_id carry = (uint32_t)l->s.n_consts + i, *in = pass_no_values(l->m, n + 1);
    struct ir_builder b = ir_builder_make(l->m, l->g->name, IR_BUILD_PLAIN);
    struct ir_scan s = {.length = l->s.length, .reverse = l->s.reverse, .n_carry = 1};
    struct ir_type of_carry = ir_type_of(l->g, carry);
    ir_id sum = ir_param(&b, of_carry), *term = pass_no_values(l->m, n);
    in[0] = l->in[carry];
    for (uint32_t k = 0; k < n; k++) {
        in[1 + k] = terms[k];
        term[k] = ir_param(&b, of_carry);
    }
    for (uint32_t k = 0; k < n; k++)
        sum = ir_add(&b, sum, term[k]);
    ir_output(&b, sum);
    JOT_TRY(pass_finish(&b, &s.body));
    *out = ir_scan(l->b, &s, (int)n + 1, in);
    return JOT_OK;
}

static jot_status distribute_folds(struct loop *l, ir_id *y)
{
    struct loop_behind h = loop_behind_make(l);
    JOT_TRY(find_folds(l, &h));
    uint32_t n = h.rows.count;
    ir_id *made = pass_no_values(l->m, n + h.terms.count);
    if (n + h.terms.count == 0) {
        loop_make(l, y);
        return JOT_OK;
    }
    for (uint32_t i = 0; i < h.terms.count; i++)
        vec_push(l->m->arena, &h.rows, h.terms.at[i]);
    JOT_TRY(loop_make_behind(l, &h, h.rows.count, h.rows.at, made, y));
    for (uint32_t i = 0, end; i < h.terms.count; i = end) {
        uint32_t carry = h.carry_of.at[i];
        for (end = i; end < h.terms.count && h.carry_of.at[end] == carry;)
            end++;
        JOT_TRY(add_terms(l, carry, end - i, made + n + i, &y[carry]));
    }
    return JOT_OK;
}

static void copy_with_folds(struct ir_builder *b, const struct ir_graph *g,
                            const struct ir_node *n, ir_id *map)
{
    loop_copy(b, g, n, pass_loop_folds, distribute_folds, map);
}

uint32_t pass_loop_folds(struct ir_module *m, uint32_t f)
{
    return body_rewrite(m, f, MEMO_LOOP_FOLDS, copy_with_folds);
}
