// SPDX-License-Identifier: Apache-2.0
// Small exchanges of one kind that do not wait for one another become one, of all they exchange.
//
//     p = exchange x {A}; q = exchange y {A}
// becomes
//     t = exchange (concatenate x y) {A}; p, q = slices of t
//
// An exchange costs the time in which devices meet, whatever its size.  Nodes go in the order of how many
// exchanges they wait for: those that wait for as many do not wait for one another.
#include "ir/collective.h"
#include "ir/control.h"
#include "passes/body.h"

#define PACK_BYTES 32768 // the most that is copied to be packed

struct packing {
    const struct ir_graph *g;
    // By node: twice the exchanges that it waits for, one after the other, and 1 more for small ones.
    uint32_t *rank;
    uint32_t *order; // the nodes by rank
    bool *is_packed; // by node
};

static bool has_rows_in(enum collective_kind kind)
{
    return kind == COLLECTIVE_REDUCE_SCATTER || kind == COLLECTIVE_ALL_TO_ALL;
}
static bool has_rows_out(enum collective_kind kind)
{
    return kind == COLLECTIVE_ALL_GATHER || kind == COLLECTIVE_ALL_TO_ALL;
}

static bool is_small(const struct ir_graph *g, const struct ir_node *n)
{
    if (n->op != IR_exchange)
        return false;
    int64_t bytes =
        ir_count_of(g, ir_operand(g, n, 0)) * (int64_t)dtype_get(ir_dtype_of(g, n->out))->bytes;
    return bytes > 0 && bytes <= PACK_BYTES;
}

// Whether devices meet somewhere in the node.
static bool exchanges(const struct ir_graph *g, const struct ir_node *n)
{
    const int64_t *bodies;
    int count = ir_has_bodies((enum ir_op)n->op) ? ir_bodies_of(n, &bodies) : 0;
    for (int i = 0; i < count; i++) {
        const struct ir_graph *body = ir_body(g, n, i);
        ir_for_each_node (body, inside)
            if (exchanges(body, inside))
                return true;
    }
    return n->op == IR_exchange;
}

static void find_ranks(struct packing *p)
{
    const struct ir_graph *g = p->g;
    uint32_t *after = arena_array(g->module->arena, uint32_t, g->nodes.count + 1);
    for (uint32_t at = 0; at < g->nodes.count; at++) {
        const struct ir_node *n = &g->nodes.at[at];
        uint32_t waits = 0;
        for (uint32_t i = 0; i < n->n_in; i++) {
            uint32_t made = after[ir_node_of(g, ir_operand(g, n, i)) - g->nodes.at];
            waits = made > waits ? made : waits;
        }
        after[at] = waits + exchanges(g, n);
        p->rank[at] = 2 * waits + is_small(g, n);
    }
}

// Sorts by counting; nodes of one rank stay in their order.
static void find_order(struct packing *p)
{
    uint32_t n = p->g->nodes.count, most = 0;
    for (uint32_t at = 0; at < n; at++)
        most = p->rank[at] > most ? p->rank[at] : most;
    uint32_t *next = arena_array(p->g->module->arena, uint32_t, most + 2);
    for (uint32_t at = 0; at < n; at++)
        next[p->rank[at] + 1]++;
    for (uint32_t rank = 0; rank < most; rank++)
        next[rank + 1] += next[rank];
    for (uint32_t at = 0; at < n; at++)
        p->order[next[p->rank[at]]++] = at;
}

// x as one row of elements, or as n rows.
static ir_id flat(struct ir_builder *b, ir_id x, int64_t rows)
{
    int64_t dims[2] = {rows, ir_count(b->module, ir_type_in(b, x)) / rows};
    return ir_reshape(b, x, 2, dims);
}

// The small exchanges of one rank that are like the one at index `index` of the order, together.
static void pack(struct ir_builder *b, struct packing *p, uint32_t index, ir_id *map)
{
    struct arena *arena = b->module->arena;
    const struct ir_node *n = &p->g->nodes.at[p->order[index]];
    uint32_t rank = p->rank[p->order[index]];
    struct collective c;
    VEC(uint32_t) all = {0};
    VEC(ir_id) parts = {0};
    ir_exchange_read(n->attrs, &c);
    for (; index < p->g->nodes.count && p->rank[p->order[index]] == rank; index++) {
        uint32_t at = p->order[index];
        if (p->g->nodes.at[at].attrs != n->attrs)
            continue;
        p->is_packed[at] = true;
        vec_push(arena, &all, at);
    }
    if (all.count == 1) {
        pass_copy_node(b, p->g, n, map);
        return;
    }
    int64_t rows_in = has_rows_in(c.kind) ? c.size : 1, start = 0;
    int64_t rows_out = has_rows_out(c.kind) ? c.size : 1;
    for (uint32_t i = 0; i < all.count; i++)
        vec_push(arena, &parts,
                 flat(b, map[ir_operand(p->g, &p->g->nodes.at[all.at[i]], 0)], rows_in));
    b->where = n->where;
    ir_id x = ir_concatenate(b, (int)parts.count, parts.at, 1);
    int64_t total = x == IR_NONE ? 0 : ir_dims(b->module, ir_type_in(b, x))[1];
    // Without rows it is a vector, of which those of all devices are rows.
    ir_id y = ir_build(b, IR_exchange, 1,
                       (ir_id[]){rows_in > 1 ? x : ir_reshape(b, x, 1, &total)}, n->attrs);
    if (b->status != JOT_OK)
        return;
    y = flat(b, y, rows_out);
    for (uint32_t i = 0; i < all.count; i++) {
        const struct ir_node *other = &p->g->nodes.at[all.at[i]];
        struct ir_type t = ir_type_of(p->g, other->out);
        int64_t width = ir_count(b->module, t) / rows_out;
        int64_t starts[2] = {0, start}, limits[2] = {rows_out, start + width};
        b->where = other->where;
        map[other->out] =
            ir_reshape(b, ir_slice(b, y, starts, limits, NULL), t.rank, ir_dims(b->module, t));
        start += width;
    }
}

static void copy_node(struct ir_builder *b, const struct ir_graph *g, const struct ir_node *n,
                      ir_id *map)
{
    if (!ir_has_bodies((enum ir_op)n->op)) {
        pass_copy_node(b, g, n, map);
        return;
    }
    struct ir_node copy = *n;
    copy.attrs = ir_with_functions(b->module, n->attrs,
                                   body_rewrite_all(b->module, n, pass_pack_exchanges));
    pass_copy_node(b, g, &copy, map);
}

uint32_t pass_pack_exchanges(struct ir_module *m, uint32_t f)
{
    struct memo_key key = {.kind = MEMO_PACK_EXCHANGES, .f = f};
    const uint32_t *known = pass_memo_find(m, &key);
    if (known)
        return *known;
    const struct ir_graph *g = ir_function(m, f);
    struct packing p = {.g = g,
                        .rank = arena_array(m->arena, uint32_t, g->nodes.count + 1),
                        .order = arena_array(m->arena, uint32_t, g->nodes.count + 1),
                        .is_packed = arena_array(m->arena, bool, g->nodes.count + 1)};
    struct ir_builder b = ir_builder_make(m, g->name, IR_BUILD_PLAIN);
    ir_id *map = pass_no_values(m, g->values.count);
    if (!g->has_effects) // which keep their order
        find_ranks(&p);
    find_order(&p);
    pass_copy_params(&b, g, NULL, true, map);
    for (uint32_t i = 0; i < g->nodes.count && b.status == JOT_OK; i++) {
        const struct ir_node *n = &g->nodes.at[p.order[i]];
        if (n->op == IR_param || p.is_packed[p.order[i]])
            continue;
        if (p.rank[p.order[i]] & 1)
            pack(&b, &p, i, map);
        else
            copy_node(&b, g, n, map);
    }
    pass_copy_outputs(&b, g, map);
    return pass_memo_add_function(m, &key, ir_finish_function(&b));
}
