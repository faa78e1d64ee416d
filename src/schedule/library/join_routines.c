// SPDX-License-Identifier: Apache-2.0
// Calls of a routine that do not wait for one another are one, repeated over a leading axis, where each
// alone leaves a device partly idle.
//
//     y = fft a                       w = fft concatenate([a], [b])
//     z = fft b         becomes       y = w[0]
//                                     z = w[1]
//
// The depth of a node is how many such calls come one after the other up to it.  Calls of one depth do
// not wait for one another.
#include "base/count.h"
#include "passes/transform.h"
#include "schedule/internal.h"
#include "schedule/library/library.h"

struct joining {
    struct schedule *s;
    const struct ir_graph *g;
    struct ir_builder b;
    ir_id *map;
    uint32_t *depth; // by node
    uint32_t *order; // nodes by depth, and of one depth calls before others
    uint32_t *next;  // by node: a call of the same kind and depth
    bool *is_later;  // it is such a call
};

static bool may_join(const struct schedule *s, const struct ir_node *n)
{
    if (!node_routine_gains_lanes(n))
        return false;
    ir_id x = ir_operand(s->g, n, 0);
    int64_t bytes = count_times(ir_count(s->g->module, ir_type_of(s->g, x)),
                                dtype_get(ir_dtype_of(s->g, x))->bytes);
    return bytes && bytes <= COST_JOINED_BYTES && ir_rank_of(s->g, x) < IR_MAX_RANK;
}

static bool are_alike(const struct ir_graph *g, const struct ir_node *n,
                      const struct ir_node *m)
{
    bool alike = n->op == m->op && n->attrs == m->attrs && n->n_in == m->n_in;
    for (uint32_t i = 0; i < n->n_in && alike; i++)
        alike = ir_type_equal(ir_type_of(g, ir_operand(g, n, i)),
                              ir_type_of(g, ir_operand(g, m, i)));
    return alike;
}

static void find_depths(struct joining *j, uint32_t *most)
{
    const struct ir_graph *g = j->g;
    for (uint32_t at = 0; at < g->nodes.count; at++) {
        const struct ir_node *n = &g->nodes.at[at];
        for (uint32_t i = 0; i < n->n_in; i++) {
            uint32_t of = j->depth[g->values.at[ir_operand(g, n, i)].node];
            j->depth[at] = of > j->depth[at] ? of : j->depth[at];
        }
        j->depth[at] += may_join(j->s, n);
        *most = j->depth[at] > *most ? j->depth[at] : *most;
    }
}

// Calls of one depth come first there.
static void sort_nodes(struct joining *j, uint32_t most)
{
    const struct ir_graph *g = j->g;
    uint32_t *first = arena_array(j->s->scratch, uint32_t, 2 * (size_t)most + 4);
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t at = 0; at < g->nodes.count; at++) {
            uint32_t key = 2 * j->depth[at] + !may_join(j->s, &g->nodes.at[at]);
            if (pass)
                j->order[first[key]++] = at;
            else
                first[key + 1]++;
        }
        for (uint32_t key = 1; key < 2 * most + 3 && !pass; key++)
            first[key] += first[key - 1];
    }
}

// Links calls of one kind and depth; false where there are none to join.
static bool link_calls(struct joining *j)
{
    const struct ir_graph *g = j->g;
    uint32_t last[COST_JOINED_KINDS], kinds = 0, depth = 0;
    bool any = false;
    for (uint32_t i = 0; i < g->nodes.count; i++) {
        uint32_t at = j->order[i], kind = 0;
        if (!may_join(j->s, &g->nodes.at[at]))
            continue;
        kinds = j->depth[at] == depth ? kinds : 0;
        depth = j->depth[at];
        while (kind < kinds && !are_alike(g, &g->nodes.at[last[kind]], &g->nodes.at[at]))
            kind++;
        if (kind == COST_JOINED_KINDS)
            continue;
        if (kind < kinds) {
            j->next[last[kind]] = at;
            any = j->is_later[at] = true;
        }
        kinds += kind == kinds;
        last[kind] = at;
    }
    return any;
}

// x with an axis of extent 1 in front.
static ir_id as_row(struct ir_builder *b, ir_id x)
{
    struct ir_type t = ir_type_in(b, x);
    int64_t dims[IR_MAX_RANK] = {1};
    memcpy(dims + 1, ir_dims(b->module, t), (size_t)t.rank * sizeof *dims);
    return ir_reshape(b, x, t.rank + 1, dims);
}

static ir_id row_of(struct ir_builder *b, ir_id x, uint32_t row)
{
    struct ir_type t = ir_type_in(b, x);
    int64_t starts[IR_MAX_RANK] = {row}, limits[IR_MAX_RANK];
    memcpy(limits, ir_dims(b->module, t), (size_t)t.rank * sizeof *limits);
    limits[0] = row + 1;
    x = ir_slice(b, x, starts, limits, NULL);
    return ir_reshape(b, x, t.rank - 1, ir_dims(b->module, t) + 1);
}

// Operand i of all calls from `at` on, each part put in place by the kernel that makes it.
static ir_id join_operands(struct joining *j, uint32_t at, uint32_t i, uint32_t count)
{
    ir_id *rows = pass_no_values(j->g->module, count);
    for (uint32_t row = 0; row < count; row++, at = j->next[at]) {
        ir_id x = as_row(&j->b, j->map[ir_operand(j->g, &j->g->nodes.at[at], i)]);
        rows[row] = ir_build(&j->b, IR_barrier, 1, &x, NULL);
    }
    return ir_concatenate(&j->b, (int)count, rows, 0);
}

static void join_calls(struct joining *j, uint32_t first)
{
    const struct ir_node *n = &j->g->nodes.at[first];
    ir_id *in = pass_no_values(j->g->module, n->n_in);
    uint32_t count = 1, row = 0;
    for (uint32_t at = first; j->next[at]; at = j->next[at])
        count++;
    for (uint32_t i = 0; i < n->n_in; i++)
        in[i] = join_operands(j, first, i, count);
    ir_id all = ir_build(&j->b, (enum ir_op)n->op, (int)n->n_in, in, n->attrs);
    for (uint32_t at = first; row < count; at = j->next[at], row++)
        for (uint32_t k = 0; k < n->n_out; k++)
            j->map[j->g->nodes.at[at].out + k] = row_of(&j->b, all + k, row);
}

const struct ir_graph *schedule_join_routines(struct schedule *s)
{
    const struct ir_graph *g = s->g;
    uint32_t most = 0, nodes = g->nodes.count;
    if (!s->options->many_lanes || s->options->separate)
        return g;
    ir_for_each_node (g, n)
        if (ir_has_effect(g, n))
            return g;
    struct arena *a = s->scratch;
    struct joining j = {.s = s, .g = g, .depth = arena_array(a, uint32_t, nodes + 1)};
    find_depths(&j, &most);
    j.order = arena_array(a, uint32_t, nodes + 1);
    j.next = arena_array(a, uint32_t, nodes + 1);
    j.is_later = arena_array(a, bool, nodes + 1);
    if (most)
        sort_nodes(&j, most);
    if (!most || !link_calls(&j))
        return g;
    j.b = ir_builder_make(g->module, g->name, IR_BUILD_PLAIN);
    j.map = pass_no_values(g->module, g->values.count);
    pass_copy_params(&j.b, g, NULL, true, j.map);
    for (uint32_t i = 0; i < nodes; i++) {
        const struct ir_node *n = &g->nodes.at[j.order[i]];
        j.b.where = n->where;
        if (j.next[j.order[i]] && !j.is_later[j.order[i]])
            join_calls(&j, j.order[i]);
        else if (n->op != IR_param && !j.is_later[j.order[i]])
            pass_copy_node(&j.b, g, n, j.map);
    }
    pass_copy_outputs(&j.b, g, j.map);
    const struct ir_graph *out = ir_finish(&j.b);
    return out ? out : g;
}
