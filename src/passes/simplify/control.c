// SPDX-License-Identifier: Apache-2.0
// Loops and branches made simpler.
//
//     y = cond 1 {f, g} x                           becomes    the nodes of g
//     c, ys = scan {length=0} c0                    becomes    c is c0, ys is empty
//     c, d = scan {body} [a, a | c0, d0]            becomes    c = scan {body'} [a, d0 | c0]
//         where body returns d as it came                      d is d0
//     c = scan {body} [1, a | c0]                   becomes    c = scan {body'} [a | c0], with 1 in body'
//         and so is a constant of a few elements
//     ys = scan {body} [a | rows repeat x]          becomes    ys = scan {body'} [a, x]
//     ys = scan {f a} [a]                           becomes    ys = repeat (f a)
//
// All are exact.  What a body does with its parameters alone is simplified in the body; what
// depends on consts alone stays in it, but for rows.
#include "passes/transform.h"

#include "ir/control.h"
#include "ir/cost.h"
#include "ir/number.h"
#include "ir/shard.h"
#include "passes/body.h"
#include "passes/rules/rules.h"

struct control {
    struct ir_builder *b;
    const struct ir_node *n;
    const ir_id *in; // operands
    uint32_t *f;     // simplified bodies
    int n_bodies;
    ir_id *out; // results
};

static const struct ir_graph *body(const struct control *c, int k)
{
    return ir_function(c->b->module, c->f[k]);
}

static void set_results(struct control *c, ir_id y)
{
    for (uint32_t i = 0; i < c->n->n_out; i++)
        c->out[i] = y == IR_NONE ? IR_NONE : y + i;
}

// The elements of a constant, or NULL.
static const void *constant(const struct ir_graph *g, ir_id v)
{
    const struct ir_node *n = ir_node_of(g, v);
    return n->op == IR_const ? ir_const_data(n) : NULL;
}

// The node again, over the simplified bodies.
static void keep_node(struct control *c)
{
    set_results(c, ir_build(c->b, (enum ir_op)c->n->op, (int)c->n->n_in, c->in,
                            ir_with_functions(c->b->module, c->n->attrs, c->f)));
}

// -- cond -------------------------------------------------------------------------------------

// The branch that is always taken, or -1.
static int sure_branch(const struct control *c)
{
    const int32_t *index = constant(c->b->graph, c->in[0]);
    bool equal = true;
    for (int k = 1; k < c->n_bodies; k++)
        equal = equal && c->f[k] == c->f[0];
    if (equal)
        return 0;
    if (!index)
        return -1;
    return *index < 0 ? 0 : *index >= c->n_bodies ? c->n_bodies - 1 : *index;
}

static bool same_result(const struct control *c, uint32_t i, uint32_t j)
{
    for (int k = 0; k < c->n_bodies; k++)
        if (body(c, k)->outputs.at[i] != body(c, k)->outputs.at[j])
            return false;
    return true;
}

static void simplify_cond(struct control *c)
{
    int sure = sure_branch(c);
    if (sure >= 0) {
        ir_inline(c->b, body(c, sure), c->in + 1, c->out);
        return;
    }
    keep_node(c);
    // A result that is one operand in every branch, or another result.
    for (uint32_t i = 0; i < c->n->n_out; i++) {
        ir_id v = body(c, 0)->outputs.at[i];
        bool same = v < body(c, 0)->n_params;
        for (int k = 1; k < c->n_bodies; k++)
            same = same && body(c, k)->outputs.at[i] == v;
        if (same)
            c->out[i] = c->in[1 + v];
        for (uint32_t j = i; j-- > 0;)
            if (same_result(c, i, j))
                c->out[i] = c->out[j];
    }
}

// -- Loops ------------------------------------------------------------------------------------

// A loop whose carries are in part never changed, and whose consts are in part the same.
struct loop {
    struct control *c;
    uint32_t n_consts, n_carry, n_in;
    uint32_t *same;  // by operand: the operand that it is the same as, or itself
    bool *fixed;     // by carry
    bool *known;     // by operand: a number that a body has itself
    ir_id *repeated; // by operand: of rows that are all one value, that value; else IR_NONE
};

// A number that a value is filled with, or a constant of a few elements, which a body need not be told.
static bool is_known(const struct ir_builder *b, ir_id v)
{
    struct ir_type t = ir_type_in(b, v);
    return ir_filling(b->graph, v) ||
           (constant(b->graph, v) && ir_count(b->module, t) <= COST_TABLE);
}

static ir_id number_again(struct ir_builder *b, const struct ir_graph *g, ir_id v)
{
    const struct ir_node *n = ir_node_of(g, v);
    if (n->op == IR_const)
        return ir_rebuild(b, g, n, NULL);
    ir_id x = number_again(b, g, ir_operand(g, n, 0));
    return ir_rebuild(b, g, n, &x);
}

// The value that every row of x is, or IR_NONE.
static ir_id repeated_row(struct ir_builder *b, ir_id x)
{
    const struct ir_node *n = ir_node_in(b, x);
    struct ir_type t = ir_type_in(b, x);
    if (n->op != IR_broadcast_in_dim)
        return IR_NONE;
    int count;
    const int64_t *axes = ir_attr_ints(n->attrs, IR_KEY_axes, &count);
    int64_t inner[IR_MAX_RANK];
    for (int i = 0; i < count; i++) {
        if (axes[i] == 0)
            return IR_NONE;
        inner[i] = axes[i] - 1;
    }
    return ir_broadcast_in_dim(b, ir_operand(b->graph, n, 0), t.rank - 1,
                               ir_dims(b->module, t) + 1, inner);
}

// Whether there is anything to do.
static bool find_repeats(struct loop *l, int step)
{
    const struct ir_graph *f = body(l->c, step);
    bool any = false;
    for (uint32_t i = 0; i < l->n_in; i++) {
        uint32_t first = i < l->n_consts ? 0 : l->n_consts + l->n_carry;
        l->same[i] = i;
        if (i >= l->n_consts && i < l->n_consts + l->n_carry)
            continue;
        for (uint32_t k = i; k-- > first;)
            if (l->c->in[k] == l->c->in[i])
                l->same[i] = k;
        l->known[i] = i < l->n_consts && is_known(l->c->b, l->c->in[i]);
        if (i >= l->n_consts + l->n_carry && l->same[i] == i)
            l->repeated[i] = repeated_row(l->c->b, l->c->in[i]);
        any = any || l->same[i] != i || l->known[i] || l->repeated[i] != IR_NONE;
    }
    for (uint32_t i = 0; i < l->n_carry; i++) {
        l->fixed[i] = f->outputs.at[i] == l->n_consts + i;
        any = any || l->fixed[i];
    }
    return any;
}

// Appends parameters for the operands first .. end - 1 that stay, or those operands; of rows those that
// repeat a value, or the others.
static int take_kept(const struct loop *l, uint32_t first, uint32_t end, bool repeated,
                     struct body *w, ir_id *in)
{
    int n = 0;
    for (uint32_t i = first; i < end; i++) {
        if (l->same[i] != i || l->known[i] || (l->repeated[i] != IR_NONE) != repeated)
            continue;
        if (w)
            body_take(w, i);
        else
            in[n] = repeated ? l->repeated[i] : l->c->in[i];
        n++;
    }
    return n;
}

// The same for carries that change, or for those that do not.
static int take_carries(const struct loop *l, bool fixed, struct body *w, ir_id *in)
{
    int n = 0;
    for (uint32_t i = 0; i < l->n_carry; i++) {
        if (l->fixed[i] != fixed)
            continue;
        if (w)
            body_take(w, l->n_consts + i);
        else
            in[n] = l->c->in[l->n_consts + i];
        n++;
    }
    return n;
}

// Consts, carries that do not change | carries that do | rows: as operands, or as parameters of w.
static int arrange(const struct loop *l, struct body *w, ir_id *in, int *n_consts, int *n_carry)
{
    uint32_t rows = l->n_consts + l->n_carry;
    int n = take_kept(l, 0, l->n_consts, false, w, in);
    n += take_carries(l, true, w, in + n);
    n += take_kept(l, rows, l->n_in, true, w, in + n);
    *n_consts = n;
    *n_carry = take_carries(l, false, w, in + n);
    n += *n_carry;
    return n + take_kept(l, rows, l->n_in, false, w, in + n);
}

static uint32_t arrange_body(const struct loop *l, int k, bool is_test)
{
    struct body w = body_of(l->c->b->module, l->c->f[k]);
    int n_consts, n_carry;
    w.b.flags = IR_BUILD_ALL;
    arrange(l, &w, pass_no_values(l->c->b->module, l->n_in), &n_consts, &n_carry);
    for (uint32_t i = 0; i < l->n_in; i++)
        w.in[i] =
            l->known[i] ? number_again(&w.b, l->c->b->graph, l->c->in[i]) : w.in[l->same[i]];
    body_run(&w);
    for (uint32_t i = 0; i < w.f->outputs.count; i++)
        if (is_test || i >= l->n_carry || !l->fixed[i])
            body_give(&w, i);
    return ir_finish_function(&w.b);
}

static void set_loop_results(const struct loop *l, ir_id y)
{
    for (uint32_t i = 0; i < l->c->n->n_out && y != IR_NONE; i++)
        l->c->out[i] = i < l->n_carry && l->fixed[i] ? l->c->in[l->n_consts + i] : y++;
}

static struct loop make_loop(struct control *c, int n_consts, uint32_t n_carry)
{
    struct ir_module *m = c->b->module;
    return (struct loop){.c = c,
                         .n_consts = (uint32_t)n_consts,
                         .n_carry = n_carry,
                         .n_in = c->n->n_in,
                         .same = arena_array(m->arena, uint32_t, c->n->n_in + 1),
                         .fixed = body_mask(m, n_carry),
                         .known = body_mask(m, c->n->n_in),
                         .repeated = pass_no_values(m, c->n->n_in)};
}

// No trips: carries as they are, no rows.
static void skip_scan(struct control *c, const struct ir_scan *s)
{
    struct ir_module *m = c->b->module;
    for (uint32_t i = 0; i < c->n->n_out; i++)
        c->out[i] = i < (uint32_t)s->n_carry
                        ? c->in[(uint32_t)s->n_consts + i]
                        : ir_zeros(c->b, ir_type_stack(m, body_result(body(c, 0), i), 0));
}

// Rows out that are rows in, or made of consts alone and the same in every trip, or other rows out.
static void take_plain_rows(struct control *c, const struct ir_scan *s)
{
    const struct ir_graph *f = body(c, 0);
    uint32_t n_consts = (uint32_t)s->n_consts, n_carry = (uint32_t)s->n_carry;
    bool *is_invariant = pass_find_invariant(f, n_consts),
         *wanted = body_mask(c->b->module, f->values.count);
    for (uint32_t i = n_carry; i < c->n->n_out; i++)
        wanted[f->outputs.at[i]] = is_invariant[f->outputs.at[i]];
    ir_id *map = pass_no_values(c->b->module, f->values.count);
    for (uint32_t i = 0; i < n_consts; i++)
        map[i] = c->in[i];
    body_copy_wanted(c->b, f, wanted, map);
    for (uint32_t i = n_carry; i < c->n->n_out; i++) {
        ir_id v = f->outputs.at[i];
        if (v >= n_consts + n_carry && v < c->n->n_in)
            c->out[i] = c->in[v];
        else if (is_invariant[v])
            c->out[i] = batch_repeat(c->b, map[v], s->length);
        for (uint32_t k = n_carry; k < i; k++)
            if (f->outputs.at[k] == v)
                c->out[i] = c->out[k];
    }
}

static void simplify_scan(struct control *c)
{
    struct ir_node n = {.attrs = c->n->attrs};
    struct ir_scan s = ir_scan_of(&n);
    if (s.length == 0) {
        skip_scan(c, &s);
        return;
    }
    struct loop l = make_loop(c, s.n_consts, (uint32_t)s.n_carry);
    if (find_repeats(&l, 0)) {
        struct ir_scan made = s;
        made.body = arrange_body(&l, 0, false);
        ir_id *in = pass_no_values(c->b->module, l.n_in);
        int count = arrange(&l, NULL, in, &made.n_consts, &made.n_carry);
        set_loop_results(&l, ir_scan(c->b, &made, count, in));
    } else {
        s.body = c->f[0];
        pass_scan_rows(c->b, &s, (int)c->n->n_in, c->in, c->out);
    }
    take_plain_rows(c, &s);
}

static void simplify_while(struct control *c)
{
    struct ir_node n = {.attrs = c->n->attrs};
    struct ir_while w = ir_while_of(&n);
    const bool *goes_on = constant(body(c, 0), body(c, 0)->outputs.at[0]);
    if (goes_on && !w.batched && !*goes_on) {
        for (uint32_t i = 0; i < c->n->n_out; i++)
            c->out[i] = c->in[(uint32_t)w.n_consts + i];
        return;
    }
    struct loop l = make_loop(c, w.n_consts, c->n->n_out);
    if (!find_repeats(&l, 1)) {
        keep_node(c);
        return;
    }
    struct ir_while made = w;
    int n_carry;
    made.test = arrange_body(&l, 0, true);
    made.body = arrange_body(&l, 1, false);
    ir_id *in = pass_no_values(c->b->module, l.n_in);
    int count = arrange(&l, NULL, in, &made.n_consts, &n_carry);
    set_loop_results(&l, ir_while(c->b, &made, count, in));
}

// A result that is an operand in the same pieces, or another result.
static void simplify_shard_map(struct control *c)
{
    struct ir_shard s = ir_shard_of(c->b->module, c->n);
    const struct ir_split *out = s.split + c->n->n_in;
    const ir_id *given = body(c, 0)->outputs.at;
    keep_node(c);
    for (uint32_t i = 0; i < c->n->n_out; i++) {
        if (given[i] < c->n->n_in && ir_splits_equal(s.split[given[i]], out[i]))
            c->out[i] = c->in[given[i]];
        for (uint32_t k = i; k-- > 0;)
            if (given[k] == given[i] && ir_splits_equal(out[k], out[i]))
                c->out[i] = c->out[k];
    }
}

void pass_simplify_control(struct ir_builder *b, const struct ir_node *n, const ir_id *in,
                           ir_id *out)
{
    struct control c = {.b = b, .n = n, .in = in, .out = out};
    const int64_t *functions;
    c.n_bodies = ir_bodies_of(n, &functions);
    c.f = arena_array(b->module->arena, uint32_t, c.n_bodies);
    for (int k = 0; k < c.n_bodies; k++)
        c.f[k] = pass_simplify(b->module, (uint32_t)functions[k]);
    if (n->op == IR_cond)
        simplify_cond(&c);
    else if (n->op == IR_scan)
        simplify_scan(&c);
    else if (n->op == IR_while)
        simplify_while(&c);
    else
        simplify_shard_map(&c);
}
