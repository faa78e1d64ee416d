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

struct trimmed {
    uint32_t f;
    bool *used; // by parameter of the function before
};

// What is left of a node with bodies.
struct remains {
    uint32_t *functions;
    bool *in, *out; // operands and results
};

struct trim {
    struct ir_module *m;
    const struct ir_graph *g;
    bool *live;               // by value
    struct remains **remains; // by node
};

static const struct trimmed *trim(struct ir_module *m, uint32_t f, const bool *out_mask,
                                  const bool *keep);

// Custom rules have a fixed signature.
static bool is_trimmable(const struct ir_node *n)
{
    return n->op == IR_call || n->op == IR_checkpoint ||
           ir_op_class((enum ir_op)n->op) == IR_CLASS_CONTROL;
}

static bool any_live(const struct trim *t, const struct ir_node *n)
{
    return body_any(t->live + n->out, n->n_out) || ir_has_effect(t->g, n);
}

// -- Nodes with bodies ------------------------------------------------------------------------

static void add_used(const struct trimmed *body, bool *in, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        in[i] = in[i] || body->used[i];
}

static void trim_call(struct trim *t, struct remains *r, const int64_t *functions)
{
    const struct trimmed *body = trim(t->m, (uint32_t)functions[0], r->out, NULL);
    r->functions[0] = body->f;
    r->in = body->used;
}

// All branches keep what one needs.  Operand 0 is the index.
static void trim_cond(struct trim *t, const struct ir_node *n, struct remains *r,
                      const int64_t *functions, uint32_t count)
{
    r->in[0] = true;
    for (uint32_t k = 0; k < count; k++)
        add_used(trim(t->m, (uint32_t)functions[k], r->out, NULL), r->in + 1, n->n_in - 1);
    for (uint32_t k = 0; k < count; k++)
        r->functions[k] = trim(t->m, (uint32_t)functions[k], r->out, r->in + 1)->f;
}

static void trim_scan(struct trim *t, const struct ir_node *n, struct remains *r)
{
    struct ir_scan s = ir_scan_of(n);
    bool *carry = r->in + s.n_consts;
    const struct trimmed *body;
    do {
        body = trim(t->m, s.body, r->out, NULL);
    } while (body_grow(r->out, body->used + s.n_consts, (uint32_t)s.n_carry));
    memcpy(r->in, body->used, n->n_in * sizeof *r->in);
    for (int i = 0; i < s.n_carry; i++)
        carry[i] = r->out[i];
    r->functions[0] = trim(t->m, s.body, r->out, r->in)->f;
}

static void trim_while(struct trim *t, const struct ir_node *n, struct remains *r)
{
    struct ir_while l = ir_while_of(n);
    static const bool all[1] = {true};
    const struct trimmed *test = trim(t->m, l.test, all, NULL), *step;
    body_grow(r->out, test->used + l.n_consts, n->n_out);
    do {
        step = trim(t->m, l.step, r->out, NULL);
    } while (body_grow(r->out, step->used + l.n_consts, n->n_out));
    add_used(test, r->in, n->n_in);
    add_used(step, r->in, n->n_in);
    for (uint32_t i = 0; i < n->n_out; i++)
        r->in[(uint32_t)l.n_consts + i] = r->out[i];
    r->functions[0] = trim(t->m, l.test, all, r->in)->f;
    r->functions[1] = trim(t->m, l.step, r->out, r->in)->f;
}

static struct remains *trim_node(struct trim *t, const struct ir_node *n)
{
    const struct ir_field *f = ir_field_find(n->attrs, IR_KEY_functions);
    struct remains *r = arena_new(t->m->arena, struct remains);
    r->functions = arena_array(t->m->arena, uint32_t, f->count);
    r->in = body_mask(t->m, n->n_in);
    r->out = arena_copy(t->m->arena, t->live + n->out, n->n_out * sizeof *r->out);
    if (n->op == IR_scan)
        trim_scan(t, n, r);
    else if (n->op == IR_while)
        trim_while(t, n, r);
    else if (n->op == IR_cond)
        trim_cond(t, n, r, f->ints, f->count);
    else // a shard_map too
        trim_call(t, r, f->ints);
    return r;
}

static void copy_remains(const struct trim *t, struct ir_builder *b, const struct ir_node *n,
                         const struct remains *r, ir_id *map)
{
    ir_id *in = pass_no_values(t->m, n->n_in), y;
    int count = 0;
    for (uint32_t i = 0; i < n->n_in; i++)
        if (r->in[i])
            in[count++] = map[ir_operand(t->g, n, i)];
    b->where = n->where;
    if (n->op == IR_scan) {
        struct ir_scan s = ir_scan_of(n);
        s.body = r->functions[0];
        s.n_carry = (int)body_count(r->out, true, 0, (uint32_t)s.n_carry);
        s.n_consts = (int)body_count(r->in, true, 0, (uint32_t)s.n_consts);
        y = ir_scan(b, &s, count, in);
    } else if (n->op == IR_while) {
        struct ir_while l = ir_while_of(n);
        l.test = r->functions[0];
        l.step = r->functions[1];
        l.n_consts = (int)body_count(r->in, true, 0, (uint32_t)l.n_consts);
        y = ir_while(b, &l, count, in);
    } else if (n->op == IR_shard_map) {
        struct ir_shard s = ir_shard_of(t->m, n);
        s.body = r->functions[0];
        s.n_splits = 0;
        for (uint32_t i = 0; i < n->n_in + n->n_out; i++)
            if (i < n->n_in ? r->in[i] : r->out[i - n->n_in])
                s.split[s.n_splits++] = s.split[i];
        y = ir_shard_map(b, &s, count, in);
    } else {
        y = ir_build(b, (enum ir_op)n->op, count, in,
                     ir_with_functions(t->m, n->attrs, r->functions));
    }
    for (uint32_t i = 0; i < n->n_out && y != IR_NONE; i++)
        if (r->out[i])
            map[n->out + i] = y++;
}

// -- All --------------------------------------------------------------------------------------

static void find_live(struct trim *t, const bool *out_mask)
{
    const struct ir_graph *g = t->g;
    for (uint32_t i = 0; i < g->outputs.count; i++)
        if (out_mask[i])
            t->live[g->outputs.at[i]] = true;
    for (uint32_t at = g->nodes.count; at-- > 0;) {
        const struct ir_node *n = &g->nodes.at[at];
        if (!any_live(t, n))
            continue;
        if (is_trimmable(n))
            t->remains[at] = trim_node(t, n);
        for (uint32_t i = 0; i < n->n_in; i++)
            if (!t->remains[at] || t->remains[at]->in[i])
                t->live[ir_operand(g, n, i)] = true;
    }
}

// f with the results in out_mask and the parameters they need or that are in keep.
static const struct trimmed *trim(struct ir_module *m, uint32_t f, const bool *out_mask,
                                  const bool *keep)
{
    const struct ir_graph *g = ir_function(m, f);
    uint32_t n_out = g->outputs.count;
    bool *mask = body_mask(m, n_out + g->n_params);
    for (uint32_t i = 0; i < n_out; i++)
        mask[i] = out_mask[i];
    for (uint32_t i = 0; i < g->n_params; i++)
        mask[n_out + i] = keep && keep[i];
    struct memo_key key = {
        .kind = MEMO_RESTRICT, .f = f, .n = n_out + g->n_params, .mask = mask};
    const struct trimmed *known = pass_memo_find(m, &key);
    if (known)
        return known;
    struct trim t = {.m = m,
                     .g = g,
                     .live = body_mask(m, g->values.count),
                     .remains = arena_array(m->arena, struct remains *, g->nodes.count + 1)};
    find_live(&t, out_mask);
    struct trimmed *made = arena_new(m->arena, struct trimmed);
    made->used = body_mask(m, g->n_params);
    struct ir_builder b = ir_builder_make(m, g->name, IR_BUILD_PLAIN);
    ir_id *map = pass_no_values(m, g->values.count);
    for (uint32_t i = 0; i < g->n_params; i++)
        made->used[i] = mask[n_out + i] || t.live[i];
    pass_copy_params(&b, g, made->used, true, map);
    for (uint32_t at = g->n_params; at < g->nodes.count; at++) {
        const struct ir_node *n = &g->nodes.at[at];
        if (t.remains[at])
            copy_remains(&t, &b, n, t.remains[at], map);
        else if (any_live(&t, n))
            pass_copy_node(&b, g, n, map);
    }
    for (uint32_t i = 0; i < n_out; i++)
        if (out_mask[i])
            ir_output(&b, map[g->outputs.at[i]]);
    made->f = ir_finish_function(&b);
    pass_memo_add(m, &key, made);
    return made;
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
    return trim(m, f, all, all)->f;
}
