// SPDX-License-Identifier: Apache-2.0
// How the values of a loop or branch go: carries, rows and what branches give, whole or in pieces.
//
//     y = scan {body: h -> tanh (add h x)} x, h         h in the pieces of x in all trips
//
// What has a shard_map inside goes in the pieces that all its bodies agree about; other loops and branches do
// where nothing is exchanged inside of them.
#include "base/status.h"
#include "ir/control.h"
#include "passes/mesh/partition_flow.h"

static bool maps_inside(const struct ir_graph *g, const struct ir_node *n)
{
    const int64_t *bodies;
    bool has = false;
    for (int i = 0, count = ir_bodies_of(n, &bodies); i < count; i++)
        has = has || pass_find_shard_map(ir_body(g, n, i)) != NULL;
    return has;
}

// What all bodies that read a parameter, and all branches that give a result, agree about, where parameters
// are given so.
static jot_status agree(struct partition *p, struct loop *l, bool is_while,
                        const struct ir_split *seed, uint32_t n_in, uint32_t n_out)
{
    memset(l->param, 0, n_in * sizeof *l->param);
    memset(l->given, 0, n_out * sizeof *l->given);
    l->exchanges = false;
    for (int k = 0; k < l->n_bodies; k++) {
        const struct ir_graph *f = ir_function(p->m, l->body[k]);
        struct flow t;
        JOT_TRY(partition_find_flow(p, f, seed, &t));
        l->exchanges = l->exchanges || t.exchanges;
        for (uint32_t i = 0; i < f->n_params; i++) {
            struct ir_split none = ir_split_none(p->m, ir_rank_of(f, i));
            bool is_first = !l->param[i].at;
            if (t.wish[i] == WHOLE ||
                (t.wish[i] == PIECES && !is_first && !ir_splits_equal(l->param[i], t.split[i])))
                l->param[i] = none;
            else if (t.wish[i] == PIECES && is_first)
                l->param[i] = t.split[i];
        }
        for (uint32_t i = 0; i < f->outputs.count; i++) {
            struct ir_split split = t.given[f->outputs.at[i]],
                            none = ir_split_none(p->m, ir_rank_of(f, f->outputs.at[i]));
            if (is_while && k == 0) {
                l->exchanges = l->exchanges || partition_is_split(p, split);
            } else if (!l->given[i].at) {
                l->given[i] = split;
            } else if (!ir_splits_equal(l->given[i], split)) {
                l->given[i] = none;
                l->exchanges = true;
            }
        }
    }
    return JOT_OK;
}

// Agrees until parameters are as they are given.  A carry comes in as it goes out, at first as it comes out
// of a trip.
static jot_status settle(struct partition *p, const struct ir_node *n, struct loop *l,
                         struct ir_split *seed, uint32_t n_params, uint32_t first_carry,
                         uint32_t n_carry)
{
    enum { ROUNDS = 4 };
    const struct ir_graph *f = ir_function(p->m, l->body[l->n_bodies - 1]);
    for (int round = 1;; round++) {
        bool changes = false;
        JOT_TRY(agree(p, l, n->op == IR_while, seed, n_params, n->n_out));
        for (uint32_t i = 0; i < n_params; i++) {
            struct ir_split none = ir_split_none(p->m, ir_rank_of(f, i)), next;
            uint32_t k = i - first_carry;
            if (!l->param[i].at)
                l->param[i] = seed[i];
            next = l->param[i];
            if (k < n_carry && !ir_splits_equal(l->param[i], l->given[k])) {
                next = round == 1 ? l->given[k] : none;
                l->param[i] = l->given[k] = none;
            }
            next = round + 1 < ROUNDS ? next : none;
            changes = changes || !ir_splits_equal(next, seed[i]);
            seed[i] = next;
        }
        if (!changes || round == ROUNDS)
            return JOT_OK;
    }
}

// The split of a row of what is split so.
static struct ir_split row_of(struct ir_split split)
{
    int skip = 1 + (int)split.at[0];
    return (struct ir_split){split.n - skip, split.at + skip};
}

static jot_status find_new_loop(struct partition *p, const struct ir_graph *g,
                                const struct ir_node *n, const struct ir_split *given,
                                struct loop *l)
{
    struct arena *arena = p->m->arena;
    const int64_t *bodies;
    bool is_scan = n->op == IR_scan, is_while = n->op == IR_while, has_maps = maps_inside(g, n);
    bool is_given = false;
    *l = (struct loop){.n_bodies = ir_bodies_of(n, &bodies)};
    for (uint32_t i = 0; i < n->n_in; i++)
        is_given = is_given || partition_is_split(p, given[i]);
    if (!has_maps && !is_given)
        return JOT_OK;
    l->body = arena_array(arena, uint32_t, l->n_bodies + 1);
    l->param = arena_array(arena, struct ir_split, n->n_in + 1);
    l->given = arena_array(arena, struct ir_split, n->n_out + 1);
    l->in = arena_array(arena, struct ir_split, n->n_in + 1);
    l->out = arena_array(arena, struct ir_split, n->n_out + 1);
    for (int k = 0; k < l->n_bodies; k++) {
        l->body[k] = (uint32_t)bodies[k];
        JOT_TRY(partition_open_calls(p->m, &l->body[k]));
    }
    const struct ir_graph *f = ir_function(p->m, l->body[l->n_bodies - 1]);
    uint32_t first = n->op == IR_cond, n_carry = is_while ? n->n_out : 0, n_consts = 0;
    bool is_batched = false; // its lanes are those of the test
    if (is_scan) {
        n_consts = (uint32_t)ir_scan_of(n).n_consts;
        n_carry = (uint32_t)ir_scan_of(n).n_carry;
    } else if (is_while) {
        n_consts = (uint32_t)ir_while_of(n).n_consts;
        is_batched = ir_while_of(n).batched > 0;
    }
    struct ir_split *seed = arena_array(arena, struct ir_split, f->n_params + 1);
    for (uint32_t i = 0; i < f->n_params; i++)
        seed[i] = is_batched && i >= n_consts          ? ir_split_none(p->m, ir_rank_of(f, i))
                  : is_scan && i >= n_consts + n_carry ? row_of(given[i])
                                                       : given[i + first];
    JOT_TRY(settle(p, n, l, seed, f->n_params, n_consts, n_carry));
    for (uint32_t i = 0; i < f->n_params; i++)
        l->has_pieces = l->has_pieces || partition_is_split(p, l->param[i]);
    l->has_pieces = has_maps || (l->has_pieces && !l->exchanges);
    if (first)
        l->in[0] = ir_split_none(p->m, 0);
    for (uint32_t i = 0; i < f->n_params; i++) {
        bool is_row = is_scan && i >= n_consts + n_carry;
        l->in[i + first] =
            is_row ? ir_split_stacked(p->m, &p->mesh, l->param[i], 0) : l->param[i];
    }
    for (uint32_t i = 0; i < n->n_out; i++)
        l->out[i] = is_scan && i >= n_carry ? ir_split_stacked(p->m, &p->mesh, l->given[i], 0)
                                            : l->given[i];
    return JOT_OK;
}

jot_status partition_find_loop(struct partition *p, const struct ir_graph *g,
                               const struct ir_node *n, const struct ir_split *given,
                               const struct loop **out)
{
    for (uint32_t k = 0; k < p->loops.count; k++) {
        const struct known_loop *known = p->loops.at[k];
        bool is_same = known->n == n;
        for (uint32_t i = 0; is_same && i < n->n_in; i++)
            is_same = ir_splits_equal(known->given[i], given[i]);
        *out = &known->loop;
        if (is_same)
            return JOT_OK;
    }
    struct known_loop *made = arena_new(p->m->arena, struct known_loop);
    *made = (struct known_loop){.n = n, .given = given};
    JOT_TRY(find_new_loop(p, g, n, given, &made->loop));
    vec_push(p->m->arena, &p->loops, made);
    *out = &made->loop;
    return JOT_OK;
}
