// SPDX-License-Identifier: Apache-2.0
// How values of a function over a mesh go: whole, or in the pieces that a shard_map takes or gives.
//
//     y = shard_map f x; z = neg y; w = shard_map g z         y and z go in pieces
//
// From operands to results what shard_maps give in pieces goes on through ops that a device can do on its
// pieces (partition_axes.c); back from readers to what they read it is found what is wanted in pieces, and
// what whole.
#include "passes/mesh/partition_flow.h"

#include "base/status.h"
#include "ir/control.h"
#include "passes/body.h"

// ---- Calls

static bool has_shard_map(const struct ir_graph *g) { return pass_find_shard_map(g) != NULL; }

// Whether it is a call of what has one: its body stands for it, for values in pieces go through.
static bool is_opened(const struct ir_graph *g, const struct ir_node *n)
{
    return ir_op_class((enum ir_op)n->op) == IR_CLASS_CALL && has_shard_map(ir_body(g, n, 0));
}

static void open_call(struct ir_builder *b, const struct ir_graph *g, const struct ir_node *n,
                      ir_id *map)
{
    if (!is_opened(g, n)) {
        pass_copy_node(b, g, n, map);
        return;
    }
    b->where = n->where;
    ir_inline(b, ir_body(g, n, 0), body_operands(b->module, g, n, map), map + n->out);
}

jot_status partition_open_calls(struct ir_module *m, uint32_t *f)
{
    for (;;) {
        const struct ir_graph *g = ir_function(m, *f);
        bool any = false;
        ir_for_each_node (g, n)
            any = any || is_opened(g, n);
        if (!any)
            return JOT_OK;
        struct ir_builder b = ir_builder_make(m, g->name, IR_BUILD_PLAIN);
        body_copy_all(&b, g, open_call);
        JOT_TRY(pass_finish(&b, f));
    }
}

// ---- How values go

static bool is_loop(const struct ir_node *n)
{
    return ir_op_class((enum ir_op)n->op) == IR_CLASS_CONTROL && n->op != IR_shard_map;
}

bool partition_is_split(const struct partition *p, struct ir_split split)
{
    return ir_split_set(&p->mesh, split) != 0;
}

static void want(const struct partition *p, struct flow *t, ir_id v, struct ir_split split)
{
    if (!partition_is_split(p, split) ||
        (t->wish[v] == PIECES && !ir_splits_equal(t->split[v], split)))
        t->wish[v] = WHOLE;
    if (t->wish[v] != NOTHING)
        return;
    t->wish[v] = PIECES;
    t->split[v] = split;
}

static uint64_t bytes_of(const struct ir_graph *g, ir_id v)
{
    return (uint64_t)ir_count_of(g, v) * dtype_get(ir_dtype_of(g, v))->bytes;
}

// Whether a device makes its piece of `to` from its piece of `from` alone.
static bool is_cut_of(const struct partition *p, struct ir_split from, struct ir_split to,
                      int rank)
{
    for (int d = 0; d < rank; d++) {
        const int64_t *axes, *to_axes;
        int n, n_to;
        ir_split_of(p->m, &p->mesh, from, d, &n, &axes);
        ir_split_of(p->m, &p->mesh, to, d, &n_to, &to_axes);
        if (n > n_to || memcmp(axes, to_axes, sizeof *axes * (size_t)n))
            return false;
    }
    return true;
}

// Twice the bytes that each device gets from others where pieces become other pieces.
static uint64_t exchanged(const struct partition *p, const struct ir_graph *g, ir_id v,
                          struct ir_split from, struct ir_split to)
{
    int rank = ir_rank_of(g, v);
    uint64_t lanes = 1;
    for (int d = 0; d < rank; d++)
        lanes *= (uint64_t)ir_split_of(p->m, &p->mesh, to, d, &(int){0}, &(const int64_t *){0});
    return is_cut_of(p, from, to, rank) ? 0 : 2 * bytes_of(g, v) / lanes;
}

// The same for a node that is done so, or whole.  What others want whole as well is put together for them,
// and what several read is exchanged once.
static uint64_t cost_of(const struct partition *p, const struct ir_graph *g,
                        const struct ir_node *n, const struct flow *t, const uint32_t *uses,
                        const struct ir_split *wished, const struct part *part)
{
    uint64_t cost = 0;
    for (uint32_t i = 0; part && i < n->n_out; i++) {
        cost += part->n_over ? 2 * bytes_of(g, n->out + i) : 0;
        if (t->wish[n->out + i] != NOTHING)
            cost += exchanged(p, g, n->out + i, part->out[i], wished[i]);
    }
    for (uint32_t i = 0; i < n->n_in; i++) {
        ir_id x = ir_operand(g, n, i);
        struct ir_split in = part ? part->in[i] : ir_split_none(p->m, ir_rank_of(g, x));
        uint64_t bytes = t->wish[x] == WHOLE ? 0 : exchanged(p, g, x, t->given[x], in);
        cost += bytes - (bytes && uses[x] > 1);
    }
    return cost;
}

// How a node is done, of all of whose results the readers are known, NULL: whole; so that least is exchanged.
static const struct part *choose(const struct partition *p, const struct ir_graph *g,
                                 const struct ir_node *n, const struct flow *t,
                                 const uint32_t *uses)
{
    const struct part *best = t->part[n - g->nodes.at], *other[] = {NULL, NULL};
    struct ir_split *wished = arena_array(p->m->arena, struct ir_split, n->n_out + 1);
    bool is_wanted = false;
    for (uint32_t i = 0; i < n->n_out; i++) {
        ir_id v = n->out + i;
        is_wanted = is_wanted || t->wish[v] == PIECES;
        wished[i] = t->wish[v] == PIECES ? t->split[v] : ir_split_none(p->m, ir_rank_of(g, v));
    }
    if (is_wanted)
        other[0] = partition_part(t->nodes, n, NULL, wished);
    if (!best)
        best = other[0];
    for (int i = 0; best && i < 2; i++)
        if (cost_of(p, g, n, t, uses, wished, other[i]) <
            cost_of(p, g, n, t, uses, wished, best))
            best = other[i];
    return best;
}

// How operand i of a node is read.
static struct ir_split read_as(const struct partition *p, const struct ir_graph *g,
                               const struct ir_node *n, const struct flow *t, uint32_t i)
{
    uint32_t at = (uint32_t)(n - g->nodes.at);
    return t->in[at]     ? t->in[at][i]
           : t->part[at] ? t->part[at]->in[i]
                         : ir_split_none(p->m, ir_rank_of(g, ir_operand(g, n, i)));
}

static void find_wishes(const struct partition *p, const struct ir_graph *g, struct flow *t)
{
    const uint32_t *uses = pass_count_uses(p->m, g);
    for (uint32_t i = 0; i < g->outputs.count; i++)
        if (!partition_is_split(p, t->given[g->outputs.at[i]]))
            t->wish[g->outputs.at[i]] = WHOLE;
    for (uint32_t at = g->nodes.count; at-- > g->n_params;) {
        const struct ir_node *n = &g->nodes.at[at];
        if (!t->in[at]) {
            const struct part *part = t->part[at] = choose(p, g, n, t, uses);
            for (uint32_t i = 0; i < n->n_out; i++)
                t->given[n->out + i] =
                    part ? part->out[i] : ir_split_none(p->m, ir_rank_of(g, n->out + i));
            t->exchanges = t->exchanges || (part && part->n_over);
        }
        for (uint32_t i = 0; i < n->n_in; i++)
            want(p, t, ir_operand(g, n, i), read_as(p, g, n, t, i));
    }
    ir_for_each_node (g, n)
        for (uint32_t i = 0; i < n->n_in; i++) {
            ir_id x = ir_operand(g, n, i);
            t->exchanges = t->exchanges ||
                           !is_cut_of(p, t->given[x], read_as(p, g, n, t, i), ir_rank_of(g, x));
        }
}

// How the node can be done where its operands are given so.
static const struct part *part_of_given(const struct partition *p, const struct ir_graph *g,
                                        const struct ir_node *n, const struct flow *t)
{
    struct ir_split *in = arena_array(p->m->arena, struct ir_split, n->n_in + 1);
    bool any = false;
    for (uint32_t i = 0; i < n->n_in; i++) {
        in[i] = t->given[ir_operand(g, n, i)];
        any = any || partition_is_split(p, in[i]);
    }
    return any ? partition_part(t->nodes, n, in, NULL) : NULL;
}

jot_status partition_find_flow(struct partition *p, const struct ir_graph *g,
                               const struct ir_split *given, struct flow *t)
{
    struct arena *arena = p->m->arena;
    *t = (struct flow){.in = arena_array(arena, const struct ir_split *, g->nodes.count + 1)};
    t->loop = arena_array(arena, const struct loop *, g->nodes.count + 1);
    t->wish = arena_array(arena, enum wish, g->values.count + 1);
    t->split = arena_array(arena, struct ir_split, g->values.count + 1);
    t->given = arena_array(arena, struct ir_split, g->values.count + 1);
    t->part = arena_array(arena, const struct part *, g->nodes.count + 1);
    t->nodes = partition_look(p->m, &p->mesh, g);
    for (uint32_t v = 0; v < g->values.count; v++)
        t->given[v] =
            given && v < g->n_params ? given[v] : ir_split_none(p->m, ir_rank_of(g, v));
    for (uint32_t at = g->n_params; at < g->nodes.count; at++) {
        const struct ir_node *n = &g->nodes.at[at];
        const struct ir_split *out = NULL;
        if (n->op == IR_shard_map) {
            t->in[at] = ir_shard_of(p->m, n).split;
            out = t->in[at] + n->n_in;
        } else if (is_loop(n)) {
            const struct loop *l;
            struct ir_split *in = arena_array(arena, struct ir_split, n->n_in + 1);
            for (uint32_t i = 0; i < n->n_in; i++)
                in[i] = t->given[ir_operand(g, n, i)];
            JOT_TRY(partition_find_loop(p, g, n, in, &l));
            if (l->has_pieces) {
                t->loop[at] = l;
                t->in[at] = l->in;
                out = l->out;
                t->exchanges = t->exchanges || l->exchanges;
            }
        } else if ((t->part[at] = part_of_given(p, g, n, t))) {
            out = t->part[at]->out;
        }
        for (uint32_t i = 0; out && i < n->n_out; i++)
            t->given[n->out + i] = out[i];
    }
    find_wishes(p, g, t);
    return JOT_OK;
}
