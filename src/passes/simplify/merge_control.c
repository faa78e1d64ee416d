// SPDX-License-Identifier: Apache-2.0
// Loops and branches over the same operands, in one.
//
//     x, y = scan {f} [a | x0 | s];  x', z = scan {g} [a | x0 | s]
// becomes, where f and g change the carries alike,
//     x, y, z = scan {both} [a | x0 | s]                    x' is x
//
// The derivative of a value that a loop computes runs that loop again, with residuals as further
// rows: this makes it one loop.  Needs equal operands to be one value.
#include "passes/body.h"

#include "ir/control.h"

struct merger {
    struct ir_module *m;
    const struct ir_graph *g;
    uint32_t *twin; // by node: a later node that is made with it, or IR_NONE
    bool *done;     // by node: made with an earlier one
    uint32_t **f;   // by node: bodies of both
};

// The later one of two must have no effects: they would come earlier.
static bool is_mergeable(const struct ir_node *n)
{
    return n->op == IR_scan || n->op == IR_cond;
}

// The attributes but for the functions, whose count stays.
static bool same_shape(const struct ir_graph *g, const struct ir_node *a,
                       const struct ir_node *b)
{
    if (a->op != b->op || a->n_in != b->n_in || a->attrs->count != b->attrs->count)
        return false;
    for (uint32_t i = 0; i < a->n_in; i++)
        if (ir_operand(g, a, i) != ir_operand(g, b, i))
            return false;
    const int64_t *functions;
    if (ir_bodies_of(a, &functions) != ir_bodies_of(b, &functions))
        return false;
    if (a->op == IR_cond)
        return true;
    struct ir_scan s = ir_scan_of(a), t = ir_scan_of(b);
    return s.n_consts == t.n_consts && s.n_carry == t.n_carry && s.length == t.length &&
           s.reverse == t.reverse && s.checkpoint == t.checkpoint && s.lanes == t.lanes;
}

static uint32_t carries_of(const struct ir_node *n)
{
    return n->op == IR_scan ? (uint32_t)ir_scan_of(n).n_carry : 0;
}

// Of what a body makes its first outputs of, whatever else it has and in whatever order; of loops and
// branches in it only the operands count, for they are merged as well.
static uint64_t hash_outputs(const struct merger *s, const struct ir_graph *g, uint32_t n_out)
{
    if (n_out == 0)
        return 0;
    struct arena_mark mark = arena_mark(s->m->arena);
    uint64_t *of = arena_array(s->m->arena, uint64_t, g->values.count + 1), all = 0;
    ir_for_each_node (g, n) {
        uint64_t h = hash_combine(
            n->op, n->attrs && !ir_has_bodies((enum ir_op)n->op) ? n->attrs->hash : 0);
        uint64_t sum = n->op == IR_param ? n->out : 0;
        for (uint32_t i = 0; i < n->n_in; i++)
            sum += of[ir_operand(g, n, i)];
        for (uint32_t i = 0; i < n->n_out; i++)
            of[n->out + i] = hash_combine(hash_combine(h, sum), i);
    }
    for (uint32_t i = 0; i < n_out; i++)
        all = hash_combine(all, of[g->outputs.at[i]]);
    arena_rewind(s->m->arena, mark);
    return all;
}

// Equal for nodes that may be merged.
static uint64_t hash_node(const struct merger *s, const struct ir_node *n)
{
    uint64_t h = hash_bytes(n->op, ir_operands(s->g, n), sizeof(ir_id) * n->n_in);
    return hash_combine(h, hash_outputs(s, ir_body(s->g, n, 0), carries_of(n)));
}

// The results of f, then those of g but for the carries, which must be the same; or IR_NONE.
static uint32_t merge_bodies(struct ir_module *m, uint32_t f, uint32_t g, uint32_t n_carry)
{
    struct ir_builder b = ir_builder_make(m, ir_function(m, f)->name, IR_BUILD_ALL);
    const struct ir_graph *x = ir_function(m, f), *y = ir_function(m, g);
    ir_id *in = pass_no_values(m, x->n_params);
    ir_id *p = pass_no_values(m, x->outputs.count), *q = pass_no_values(m, y->outputs.count);
    pass_copy_params(&b, x, NULL, true, in);
    ir_inline(&b, x, in, p);
    ir_inline(&b, y, in, q);
    for (uint32_t i = 0; i < n_carry; i++)
        if (p[i] != q[i])
            return IR_NONE;
    for (uint32_t i = 0; i < x->outputs.count; i++)
        ir_output(&b, p[i]);
    for (uint32_t i = n_carry; i < y->outputs.count; i++)
        ir_output(&b, q[i]);
    return ir_finish_function(&b);
}

static bool merge(struct merger *s, uint32_t a, uint32_t b)
{
    const struct ir_node *x = &s->g->nodes.at[a], *y = &s->g->nodes.at[b];
    const int64_t *f, *g;
    int n = ir_bodies_of(x, &f);
    ir_bodies_of(y, &g);
    s->f[a] = arena_array(s->m->arena, uint32_t, n);
    for (int k = 0; k < n; k++) {
        s->f[a][k] = merge_bodies(s->m, (uint32_t)f[k], (uint32_t)g[k], carries_of(x));
        if (s->f[a][k] == IR_NONE)
            return false;
    }
    s->twin[a] = b;
    return s->done[b] = true;
}

// Pairs of nodes; three alike take two rounds.
static bool find_twins(struct merger *s)
{
    struct hash_table seen = {0};
    bool any = false;
    for (uint32_t at = s->g->n_params; at < s->g->nodes.count; at++) {
        const struct ir_node *n = &s->g->nodes.at[at];
        if (!is_mergeable(n))
            continue;
        uint64_t hash = hash_node(s, n);
        for (struct hash_probe p = hash_probe(&seen, hash);
             hash_next(&seen, &p) && !s->done[at];)
            if (s->twin[p.id] == IR_NONE && !ir_has_effect(s->g, n) &&
                same_shape(s->g, &s->g->nodes.at[p.id], n))
                any = merge(s, p.id, at) || any;
        if (!s->done[at])
            hash_insert(s->m->arena, &seen, hash, at);
    }
    return any;
}

static void copy_pair(struct merger *s, struct ir_builder *b, uint32_t at, ir_id *map)
{
    const struct ir_node *n = &s->g->nodes.at[at], *twin = &s->g->nodes.at[s->twin[at]];
    uint32_t n_carry = carries_of(n);
    ir_id *in = pass_no_values(s->m, n->n_in);
    for (uint32_t i = 0; i < n->n_in; i++)
        in[i] = map[ir_operand(s->g, n, i)];
    b->where = ir_where_merge(s->m, n->where, twin->where);
    ir_id y = ir_build(b, (enum ir_op)n->op, (int)n->n_in, in,
                       ir_with_functions(s->m, n->attrs, s->f[at]));
    for (uint32_t i = 0; i < n->n_out && y != IR_NONE; i++)
        map[n->out + i] = y + i;
    for (uint32_t i = 0; i < twin->n_out && y != IR_NONE; i++)
        map[twin->out + i] = i < n_carry ? y + i : y + n->n_out - n_carry + i;
}

uint32_t pass_merge_control(struct ir_module *m, uint32_t f)
{
    const struct ir_graph *g = ir_function(m, f);
    struct merger s = {.m = m,
                       .g = g,
                       .twin = pass_no_values(m, g->nodes.count),
                       .done = body_mask(m, g->nodes.count),
                       .f = arena_array(m->arena, uint32_t *, g->nodes.count + 1)};
    if (!find_twins(&s))
        return f;
    struct ir_builder b = ir_builder_make(m, g->name, IR_BUILD_PLAIN);
    ir_id *map = pass_no_values(m, g->values.count);
    pass_copy_params(&b, g, NULL, true, map);
    for (uint32_t at = g->n_params; at < g->nodes.count; at++) {
        if (s.twin[at] != IR_NONE)
            copy_pair(&s, &b, at, map);
        else if (!s.done[at])
            pass_copy_node(&b, g, &g->nodes.at[at], map);
    }
    pass_copy_outputs(&b, g, map);
    uint32_t made = ir_finish_function(&b);
    return made == IR_NONE ? f : made;
}
