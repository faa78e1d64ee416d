// SPDX-License-Identifier: Apache-2.0
// Loop distribution: products that a scan makes trip by trip become one of all its trips.
//
//     scan {c = f(c, x w)}(w, c, xs)              becomes    zs = xs w; scan {c = f(c, z)}(c, zs)
//     scan {c = f(c); y = c w}(w, c)              becomes    cs = scan {c = f(c)}(c); ys = cs w
//     scan {s = s + x^T f(c); c = g(c)}(s, c, xs) becomes    fs = scan {f(c); c = g(c)}(c, xs); s = s + xs^T fs
//
// In front of the loop: a product of what the rows alone make with what does not change.  Behind it: one that
// no carry wants, and what is added to a carry that nothing else reads, whose sum over the trips is that of
// the product.  Only where the product of all trips is one for a library, and what is kept for it, or of it,
// is no more than what a trip would read again.  After all differentiation.
#include "ir/cost.h"
#include "passes/loops/loop_distribution.h"

#include "base/status.h"

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
    return n ? loop_move_values(l, n, moved) : JOT_OK;
}

// Rows out that are products of what changes with what does not.
static void find_rows(struct loop *l, struct loop_behind *h)
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
        int64_t keeps = loop_is_stacked(l, h, x) ? 0 : ir_count_of(g, x);
        if (ir_rank_of(g, x) == IR_MAX_RANK ||
            !is_worth(l, n, &p, ir_count_of(g, ir_operand(g, n, 1 - side)), keeps))
            continue;
        loop_add_stack(l, h, x);
        h->is_row[i] = true;
        h->row_out[y] = IR_NONE;
        vec_push(l->m->arena, &h->rows, y);
    }
}

static bool is_term(struct loop *l, const struct loop_behind *h, ir_id v)
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
        keeps += loop_is_stacked(l, h, x) ? 0 : ir_count_of(g, x);
    }
    p.k *= l->s.length;
    return is_worth(l, n, &p, ir_count_of(g, v), keeps);
}

// Products that are added to carry i, which is a term of the sum that it is next.
static void find_terms(struct loop *l, struct loop_behind *h, uint32_t i)
{
    ir_id v = (uint32_t)l->s.n_consts + i, next = l->g->outputs.at[i];
    if (l->sum[v] != next)
        return;
    while (v != next) {
        const struct ir_node *n = &l->g->nodes.at[l->reader[v]];
        ir_id x = ir_operand(l->g, n, ir_operand(l->g, n, 0) == v);
        if (is_term(l, h, x)) {
            l->gone[x] = true;
            loop_add_stack(l, h, ir_operand(l->g, ir_node_of(l->g, x), 0));
            loop_add_stack(l, h, ir_operand(l->g, ir_node_of(l->g, x), 1));
            vec_push(l->m->arena, &h->terms, x);
            vec_push(l->m->arena, &h->carry_of, i);
        }
        v = n->out;
    }
}

// The sum of a product of two values over the trips.
static ir_id sum_of_products(struct loop *l, const struct loop_behind *h,
                             const struct ir_node *n)
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
    return ir_dot_general(l->b, loop_find_stack(h, ir_operand(l->g, n, 0))->v,
                          loop_find_stack(h, ir_operand(l->g, n, 1))->v, &d);
}

static jot_status distribute_products(struct loop *l, ir_id *y)
{
    JOT_TRY(move_products(l));
    JOT_TRY(loop_move_folds(l));
    struct loop_behind h = loop_behind_make(l);
    find_rows(l, &h);
    for (uint32_t i = 0; i < (uint32_t)l->s.n_carry; i++)
        find_terms(l, &h, i);
    if (!h.rows.count && !h.terms.count) {
        loop_make(l, y);
        return JOT_OK;
    }
    JOT_TRY(loop_make_behind(l, &h, h.rows.count, h.rows.at, pass_no_values(l->m, h.rows.count),
                             y));
    for (uint32_t i = 0; i < h.terms.count; i++) {
        ir_id *sum = &y[h.carry_of.at[i]];
        *sum = ir_add(l->b, *sum, sum_of_products(l, &h, ir_node_of(l->g, h.terms.at[i])));
    }
    return JOT_OK;
}

static void copy_with_products(struct ir_builder *b, const struct ir_graph *g,
                               const struct ir_node *n, ir_id *map)
{
    loop_copy(b, g, n, pass_loop_products, distribute_products, map);
}

uint32_t pass_loop_products(struct ir_module *m, uint32_t f)
{
    return body_rewrite(m, f, MEMO_LOOP_PRODUCTS, copy_with_products);
}
