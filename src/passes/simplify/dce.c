// SPDX-License-Identifier: Apache-2.0
// Removes nodes that neither an output nor an effect needs, and results of calls that nothing
// reads.
//
//     a = add x y
//     b = mul x x        becomes       a = add x y
//     return a                         return a
//
// Needs nothing.  Keeps the parameters of the function itself.  A node whose results are partly
// unread names functions that lack them, and lacks the operands that only they needed.  A carry of
// a loop stays while a result, the test or another carry that stays needs it.
#include "ir/control.h"
#include "ir/shard.h"
#include "passes/body.h"

// What is left of a node with bodies: operands and results.
struct remains {
    bool *in, *out;
};

// Which values of a function are needed.
struct needs {
    struct ir_module *m;
    const struct ir_graph *g;
    bool *live;       // by value
    VEC(ir_id) fresh; // live, and what they are made of is not yet
    uint32_t carry,
        n_carry; // parameters that are carries, needed as results where they are needed
    struct remains **remains; // by node
    bool *waits;              // by node with bodies: another of its results is live
    uint32_t last;            // behind all that wait
};

// Custom rules have a fixed signature.
static bool is_trimmable(const struct ir_node *n)
{
    return n->op == IR_call || n->op == IR_checkpoint ||
           ir_op_class((enum ir_op)n->op) == IR_CLASS_CONTROL;
}

// -- What is needed ---------------------------------------------------------------------------

static const bool *needs_of(struct ir_module *m, uint32_t f, const bool *out_mask,
                            uint32_t carry, uint32_t n_carry);

// Carries of a loop stay as results and as operands.
static void add_carries(struct remains *r, const bool *used, uint32_t n_consts,
                        uint32_t n_carry)
{
    body_add_mask(r->out, used + n_consts, n_carry);
    memcpy(r->in + n_consts, r->out, n_carry * sizeof *r->in);
}

static struct remains *remains_of(const struct needs *d, const struct ir_node *n)
{
    const struct ir_field *f = ir_field_find(n->attrs, IR_KEY_functions);
    struct remains *r = arena_new(d->m->arena, struct remains);
    r->in = body_mask(d->m, n->n_in);
    r->out = arena_copy(d->m->arena, d->live + n->out, n->n_out * sizeof *r->out);
    if (n->op == IR_scan) {
        struct ir_scan s = ir_scan_of(n);
        uint32_t first = (uint32_t)s.n_consts, count = (uint32_t)s.n_carry;
        const bool *used = needs_of(d->m, s.body, r->out, first, count);
        body_add_mask(r->in, used, n->n_in);
        add_carries(r, used, first, count);
    } else if (n->op == IR_while) {
        struct ir_while l = ir_while_of(n);
        static const bool all[1] = {true};
        uint32_t first = (uint32_t)l.n_consts;
        const bool *test = needs_of(d->m, l.test, all, 0, 0);
        body_add_mask(r->out, test + first, n->n_out);
        const bool *body = needs_of(d->m, l.body, r->out, first, n->n_out);
        body_add_mask(r->in, test, n->n_in);
        body_add_mask(r->in, body, n->n_in);
        add_carries(r, body, first, n->n_out);
    } else { // a call, a shard_map, or a choice, whose operand 0 is the index
        uint32_t first = n->op == IR_cond;
        r->in[0] = first;
        for (uint32_t k = 0; k < (first ? f->count : 1); k++)
            body_add_mask(r->in + first, needs_of(d->m, (uint32_t)f->ints[k], r->out, 0, 0),
                          n->n_in - first);
    }
    return r;
}

static void need(struct needs *d, ir_id v)
{
    if (d->live[v])
        return;
    d->live[v] = true;
    vec_push(d->m->arena, &d->fresh, v);
}

// What a node is made of; of one with bodies once all behind it are done, for then most results that are
// needed are known.
static void need_operands(struct needs *d, const struct ir_node *n)
{
    uint32_t at = (uint32_t)(n - d->g->nodes.at);
    if (is_trimmable(n)) {
        d->waits[at] = true;
        d->last = at >= d->last ? at + 1 : d->last;
        return;
    }
    for (uint32_t i = 0; i < n->n_in; i++)
        need(d, ir_operand(d->g, n, i));
}

static void follow(struct needs *d)
{
    while (d->fresh.count) {
        ir_id v = d->fresh.at[--d->fresh.count];
        if (v >= d->g->n_params)
            need_operands(d, ir_node_of(d->g, v));
        else if (v >= d->carry && v - d->carry < d->n_carry)
            need(d, d->g->outputs.at[v - d->carry]);
    }
}

static void find_needs(struct needs *d, const bool *out_mask)
{
    const struct ir_graph *g = d->g;
    d->live = body_mask(d->m, g->values.count);
    d->waits = body_mask(d->m, g->nodes.count);
    d->remains = arena_array(d->m->arena, struct remains *, g->nodes.count + 1);
    for (uint32_t i = 0; i < g->outputs.count; i++)
        if (out_mask[i])
            need(d, g->outputs.at[i]);
    ir_for_each_node (g, n)
        if (ir_has_effect(g, n))
            need_operands(d, n);
    for (follow(d); d->last; follow(d)) {
        uint32_t at = --d->last;
        if (!d->waits[at])
            continue;
        const struct ir_node *n = &g->nodes.at[at];
        d->waits[at] = false;
        d->remains[at] = remains_of(d, n);
        for (uint32_t i = 0; i < n->n_in; i++)
            if (d->remains[at]->in[i])
                need(d, ir_operand(g, n, i));
    }
}

// The parameters of f that its results in the mask need.
static const bool *needs_of(struct ir_module *m, uint32_t f, const bool *out_mask,
                            uint32_t carry, uint32_t n_carry)
{
    const struct ir_graph *g = ir_function(m, f);
    struct memo_key key = {.kind = MEMO_NEEDS,
                           .f = f,
                           .number = (int64_t)carry << 32 | n_carry,
                           .n = g->outputs.count,
                           .mask = out_mask};
    const bool *known = pass_memo_find(m, &key);
    if (known)
        return known;
    struct needs d = {.m = m, .g = g, .carry = carry, .n_carry = n_carry};
    find_needs(&d, out_mask);
    pass_memo_add(m, &key, d.live); // parameters are the first values
    return d.live;
}

// -- What is left -----------------------------------------------------------------------------

static uint32_t trim(struct ir_module *m, uint32_t f, const bool *out_mask, const bool *keep);

static void copy_remains(const struct needs *t, struct ir_builder *b, const struct ir_node *n,
                         const struct remains *r, ir_id *map)
{
    ir_id *in = pass_no_values(t->m, n->n_in), y;
    const struct ir_field *f = ir_field_find(n->attrs, IR_KEY_functions);
    uint32_t *functions = arena_array(t->m->arena, uint32_t, f->count);
    static const bool all[1] = {true};
    for (uint32_t k = 0; k < f->count; k++)
        functions[k] =
            trim(t->m, (uint32_t)f->ints[k], n->op == IR_while && k == 0 ? all : r->out,
                 r->in + (n->op == IR_cond));
    int count = 0;
    for (uint32_t i = 0; i < n->n_in; i++)
        if (r->in[i])
            in[count++] = map[ir_operand(t->g, n, i)];
    b->where = n->where;
    if (n->op == IR_scan) {
        struct ir_scan s = ir_scan_of(n);
        s.body = functions[0];
        s.n_carry = (int)body_count(r->out, true, 0, (uint32_t)s.n_carry);
        s.n_consts = (int)body_count(r->in, true, 0, (uint32_t)s.n_consts);
        y = ir_scan(b, &s, count, in);
    } else if (n->op == IR_while) {
        struct ir_while l = ir_while_of(n);
        l.test = functions[0];
        l.body = functions[1];
        l.n_consts = (int)body_count(r->in, true, 0, (uint32_t)l.n_consts);
        y = ir_while(b, &l, count, in);
    } else if (n->op == IR_shard_map) {
        struct ir_shard s = ir_shard_of(t->m, n);
        s.body = functions[0];
        s.n_splits = 0;
        for (uint32_t i = 0; i < n->n_in + n->n_out; i++)
            if (i < n->n_in ? r->in[i] : r->out[i - n->n_in])
                s.split[s.n_splits++] = s.split[i];
        y = ir_shard_map(b, &s, count, in);
    } else {
        y = ir_build(b, (enum ir_op)n->op, count, in,
                     ir_with_functions(t->m, n->attrs, functions));
    }
    for (uint32_t i = 0; i < n->n_out && y != IR_NONE; i++)
        if (r->out[i])
            map[n->out + i] = y++;
}

// f with the results in out_mask and the parameters they need or that are in keep.
static uint32_t trim(struct ir_module *m, uint32_t f, const bool *out_mask, const bool *keep)
{
    const struct ir_graph *g = ir_function(m, f);
    uint32_t n_out = g->outputs.count;
    bool *mask = body_mask(m, n_out + g->n_params);
    memcpy(mask, out_mask, n_out * sizeof *mask);
    memcpy(mask + n_out, keep, g->n_params * sizeof *mask);
    struct memo_key key = {
        .kind = MEMO_RESTRICT, .f = f, .n = n_out + g->n_params, .mask = mask};
    const uint32_t *known = pass_memo_find(m, &key);
    if (known)
        return *known;
    struct needs t = {.m = m, .g = g};
    find_needs(&t, out_mask);
    struct ir_builder b = ir_builder_make(m, g->name, IR_BUILD_PLAIN);
    ir_id *map = pass_no_values(m, g->values.count);
    bool *used = arena_copy(m->arena, keep, (g->n_params + 1) * sizeof *used);
    body_add_mask(used, t.live, g->n_params);
    pass_copy_params(&b, g, used, true, map);
    for (uint32_t at = g->n_params; at < g->nodes.count; at++) {
        const struct ir_node *n = &g->nodes.at[at];
        if (t.remains[at])
            copy_remains(&t, &b, n, t.remains[at], map);
        else if (body_any(t.live + n->out, n->n_out) || ir_has_effect(g, n))
            pass_copy_node(&b, g, n, map);
    }
    for (uint32_t i = 0; i < n_out; i++)
        if (out_mask[i])
            ir_output(&b, map[g->outputs.at[i]]);
    return pass_memo_add_function(m, &key, ir_finish_function(&b));
}

uint32_t pass_dce(struct ir_module *m, uint32_t f)
{
    const struct ir_graph *g = ir_function(m, f);
    bool any = false;
    ir_for_each_node (g, node)
        any = any || is_trimmable(node);
    if (!any)
        return ir_function_add(m, ir_canonical(g));
    uint32_t n = g->outputs.count > g->n_params ? g->outputs.count : g->n_params;
    bool *all = body_mask(m, n);
    memset(all, 1, n * sizeof *all);
    return trim(m, f, all, all);
}
