// SPDX-License-Identifier: Apache-2.0
// Predictive commoning: what a trip computes of its carries, and the trip before has computed of the same
// values, which were then what it gave, is a carry.
//
//     scan (q, p) { p = p - f(q); q = q + p; p = p - f(q) }
// becomes
//     scan (q, p, g = f(q)) { p = p - g; q = q + p; g = f(q); p = p - g }
//
// The steps of leapfrog and Verlet methods, and of those of Runge-Kutta whose last stage is the first of the
// next step.  Only where a fold, a product or a routine is saved and what is carried is no larger than what
// these read and give.  After all differentiation, of graphs in which equal nodes are one.
#include "ir/control.h"
#include "passes/body.h"

#define MOST_USERS 64 // that are compared with a node

struct commoning {
    const struct ir_graph *g; // the body
    uint32_t first, n_carry;  // its carries
    ir_id
        *next; // by value: what it is in the trip behind, as the trip before it has it; or none
    bool *dear;    // by value: known then, and something dear is saved
    bool *carried; // by value
};

// ---- What is known of the next trip

// The nodes that read each value: of value v those from start[v] to start[v + 1].
struct users {
    uint32_t *start;
    const struct ir_node **at;
};

static struct users users_of(const struct ir_graph *g)
{
    uint32_t n = g->values.count;
    struct users u = {arena_array(g->module->arena, uint32_t, n + 2), NULL};
    uint32_t *end = u.start + 1; // of those that are listed
    ir_for_each_node (g, k)
        for (uint32_t i = 0; i < k->n_in; i++)
            u.start[ir_operand(g, k, i) + 2]++;
    for (uint32_t v = 2; v < n + 2; v++)
        u.start[v] += u.start[v - 1];
    u.at = arena_array(g->module->arena, const struct ir_node *, g->operands.count + 1);
    ir_for_each_node (g, k)
        for (uint32_t i = 0; i < k->n_in; i++)
            u.at[end[ir_operand(g, k, i)]++] = k;
    return u;
}

// The node that does to values of the next trip what n does to those of this one.
static const struct ir_node *find_next(const struct commoning *c, const struct users *u,
                                       const struct ir_node *n)
{
    ir_id rarest = IR_NONE;
    bool changes = false;
    for (uint32_t i = 0; i < n->n_in; i++) {
        ir_id v = c->next[ir_operand(c->g, n, i)];
        changes |= v != ir_operand(c->g, n, i);
        if (v == IR_NONE)
            return NULL;
        if (rarest == IR_NONE ||
            u->start[v + 1] - u->start[v] < u->start[rarest + 1] - u->start[rarest])
            rarest = v;
    }
    if (!changes)
        return n;
    for (uint32_t at = u->start[rarest]; at < u->start[rarest + 1]; at++) {
        const struct ir_node *k = u->at[at];
        bool is = at - u->start[rarest] < MOST_USERS && k->op == n->op &&
                  k->attrs == n->attrs && k->n_in == n->n_in;
        for (uint32_t i = 0; is && i < n->n_in; i++)
            is = ir_operand(c->g, k, i) == c->next[ir_operand(c->g, n, i)];
        if (is)
            return k;
    }
    return NULL;
}

static void look(struct commoning *c)
{
    const struct ir_graph *g = c->g;
    struct users u = users_of(g);
    ir_for_each_node (g, n) {
        bool is_dear = pass_is_dear(g, n);
        if (n->op == IR_param) {
            bool is_carry = n->out >= c->first && n->out < c->first + c->n_carry;
            c->next[n->out] = n->out < c->first ? n->out
                              : is_carry        ? g->outputs.at[n->out - c->first]
                                                : IR_NONE;
            continue;
        }
        const struct ir_node *next = find_next(c, &u, n);
        if (!next || ir_has_effect(g, n) || ir_has_bodies((enum ir_op)n->op))
            continue;
        for (uint32_t i = 0; i < n->n_in; i++)
            is_dear |= c->dear[ir_operand(g, n, i)];
        for (uint32_t k = 0; k < n->n_out; k++) {
            c->next[n->out + k] = next->out + k;
            c->dear[n->out + k] = is_dear && next != n;
        }
    }
}

// What others read of that; how many values it is, and none where it is too much.
static uint32_t choose(struct commoning *c)
{
    const struct ir_graph *g = c->g;
    int64_t saved = 0, kept = 0;
    uint32_t n_carried = 0;
    for (uint32_t i = 0; i < g->outputs.count; i++)
        c->carried[g->outputs.at[i]] = true;
    ir_for_each_node (g, n) {
        bool is_saved = n->n_out && c->dear[n->out];
        for (uint32_t i = 0; i < n->n_in; i++) {
            c->carried[ir_operand(g, n, i)] |= !is_saved;
            saved += is_saved && pass_is_dear(g, n) ? ir_count_of(g, ir_operand(g, n, i)) : 0;
        }
        saved += is_saved && pass_is_dear(g, n) ? ir_count_of(g, n->out) : 0;
    }
    for (ir_id v = 0; v < g->values.count; v++) {
        c->carried[v] &= c->dear[v];
        n_carried += c->carried[v];
        kept += c->carried[v] ? ir_count_of(g, v) : 0;
    }
    return kept <= saved ? n_carried : 0;
}

// ---- The loop

// What is carried of operands `in`, computed in front of the loop; appends it to *out.
static void compute_first(struct ir_builder *b, const struct commoning *c, const ir_id *in,
                          ir_id *out)
{
    const struct ir_graph *g = c->g;
    ir_id *map = pass_no_values(b->module, g->values.count);
    memcpy(map, in, (c->first + c->n_carry) * sizeof *map);
    body_copy_wanted(b, g, c->carried, map);
    for (ir_id v = 0; v < g->values.count; v++)
        if (c->carried[v])
            *out++ = map[v];
}

// g with new parameters behind its carries; of the trip they stand for what is carried, and it gives them.
static uint32_t with_carries(const struct commoning *c, const struct ir_graph *g)
{
    struct ir_builder b = ir_builder_make(g->module, g->name, IR_BUILD_PLAIN);
    ir_id *map = pass_no_values(g->module, g->values.count);
    ir_id *kept = pass_no_values(g->module, c->g->values.count);
    uint32_t behind = c->first + c->n_carry;
    for (uint32_t i = 0; i <= g->n_params; i++) {
        for (ir_id v = 0; i == behind && v < c->g->values.count; v++)
            if (c->carried[v])
                kept[v] = ir_param(&b, ir_type_of(c->g, v));
        if (i < g->n_params)
            map[i] = ir_param(&b, ir_type_of(g, i));
    }
    for (uint32_t at = g->n_params; at < g->nodes.count; at++) {
        const struct ir_node *n = &g->nodes.at[at];
        pass_copy_node(&b, g, n, map);
        for (uint32_t k = 0; k < n->n_out && g == c->g; k++)
            map[n->out + k] = c->carried[n->out + k] ? kept[n->out + k] : map[n->out + k];
    }
    for (uint32_t i = 0; i <= g->outputs.count; i++) {
        for (ir_id v = 0; g == c->g && i == c->n_carry && v < g->values.count; v++)
            if (c->carried[v])
                ir_output(&b, map[c->next[v]]);
        if (i < g->outputs.count)
            ir_output(&b, map[g->outputs.at[i]]);
    }
    return ir_finish_function(&b);
}

// The loop over in, or IR_NONE where it has nothing to carry.
static ir_id carry(struct ir_builder *b, const struct ir_node *n, const uint32_t *bodies,
                   const ir_id *in, uint32_t *n_new)
{
    struct ir_module *m = b->module;
    bool is_scan = n->op == IR_scan;
    struct ir_scan s = is_scan ? ir_scan_of(n) : (struct ir_scan){0};
    struct ir_while w = is_scan ? (struct ir_while){0} : ir_while_of(n);
    const struct ir_graph *g = ir_function(m, bodies[!is_scan]);
    struct commoning c = {.g = g,
                          .first = (uint32_t)(is_scan ? s.n_consts : w.n_consts),
                          .n_carry = is_scan ? (uint32_t)s.n_carry : g->outputs.count,
                          .next = pass_no_values(m, g->values.count),
                          .dear = body_mask(m, g->values.count),
                          .carried = body_mask(m, g->values.count)};
    look(&c);
    *n_new = w.batched ? 0 : choose(&c);
    if (!*n_new)
        return IR_NONE;
    uint32_t behind = c.first + c.n_carry;
    ir_id *all = pass_no_values(m, n->n_in + *n_new);
    memcpy(all, in, behind * sizeof *all);
    compute_first(b, &c, in, all + behind);
    memcpy(all + behind + *n_new, in + behind, (n->n_in - behind) * sizeof *all);
    b->where = n->where;
    if (is_scan) {
        s.body = with_carries(&c, g);
        s.n_carry += (int)*n_new;
        return ir_scan(b, &s, (int)(n->n_in + *n_new), all);
    }
    w.body = with_carries(&c, g);
    w.test = with_carries(&c, ir_function(m, bodies[0]));
    return ir_while(b, &w, (int)(n->n_in + *n_new), all);
}

static void copy_carried(struct ir_builder *b, const struct ir_graph *g,
                         const struct ir_node *n, ir_id *map)
{
    if (!ir_has_bodies((enum ir_op)n->op)) {
        pass_copy_node(b, g, n, map);
        return;
    }
    struct ir_module *m = b->module;
    uint32_t *bodies = body_rewrite_all(m, n, pass_predictive_commoning), n_new = 0;
    ir_id *in = body_operands(m, g, n, map), y = IR_NONE;
    if (n->op == IR_scan || n->op == IR_while)
        y = carry(b, n, bodies, in, &n_new);
    b->where = n->where;
    if (y == IR_NONE)
        y = ir_build(b, (enum ir_op)n->op, (int)n->n_in, in,
                     ir_with_functions(m, n->attrs, bodies));
    uint32_t n_carry = n->op == IR_scan ? (uint32_t)ir_scan_of(n).n_carry : n->n_out;
    for (uint32_t k = 0; k < n->n_out; k++)
        map[n->out + k] = y + k + (k < n_carry ? 0 : n_new);
}

uint32_t pass_predictive_commoning(struct ir_module *m, uint32_t f)
{
    return body_rewrite(m, f, MEMO_PREDICTIVE_COMMONING, copy_carried);
}
