// SPDX-License-Identifier: Apache-2.0
#include "passes/loops/loop_distribution.h"

#include "ir/cost.h"

#include "base/status.h"

static void look(struct loop *l)
{
    l->g = ir_function(l->m, l->s.body);
    const struct ir_graph *g = l->g;
    l->invariant = body_mask(l->m, g->values.count);
    l->of_rows = body_mask(l->m, g->values.count);
    l->gone = body_mask(l->m, g->values.count);
    l->uses = pass_count_uses(l->m, g);
    l->reader = pass_no_values(l->m, g->values.count);
    l->sum = pass_no_values(l->m, g->values.count);
    ir_for_each_node (g, n) {
        bool is_pure = !ir_has_effect(g, n) && !ir_has_bodies((enum ir_op)n->op);
        bool invariant = is_pure, of_rows = is_pure;
        of_rows &= n->op == IR_dot_general || !pass_is_dear(g, n);
        if (n->op == IR_param) {
            invariant = n->out < (uint32_t)l->s.n_consts;
            of_rows = invariant || n->out >= loop_first_row(l);
        }
        for (uint32_t i = 0; i < n->n_in; i++) {
            invariant &= l->invariant[ir_operand(g, n, i)];
            of_rows &= l->of_rows[ir_operand(g, n, i)];
            l->reader[ir_operand(g, n, i)] = (uint32_t)(n - g->nodes.at);
        }
        for (uint32_t k = 0; k < n->n_out; k++) {
            l->invariant[n->out + k] = invariant;
            l->of_rows[n->out + k] = of_rows;
        }
    }
    for (ir_id v = g->values.count; v-- > 0;) {
        const struct ir_node *n = l->reader[v] == IR_NONE ? NULL : &g->nodes.at[l->reader[v]];
        if (l->uses[v] == 1)
            l->sum[v] = !n ? v : n->op == IR_add ? l->sum[n->out] : IR_NONE;
    }
}

// An addition without a term that is gone is the other one.
static ir_id left_of_addition(const struct loop *l, const struct ir_node *n)
{
    if (n->op != IR_add)
        return IR_NONE;
    ir_id x = ir_operand(l->g, n, 0), y = ir_operand(l->g, n, 1);
    return l->gone[x] ? y : l->gone[y] ? x : IR_NONE;
}

// Makes n values of the body, and its effects where they are wanted, of those that map has.
static void make_values(const struct loop *l, struct ir_builder *b, uint32_t n,
                        const ir_id *values, bool has_effects, ir_id *map)
{
    const struct ir_graph *g = l->g;
    bool *wanted = body_mask(l->m, g->values.count), *is_made;
    is_made = body_mask(l->m, g->nodes.count);
    for (uint32_t i = 0; i < n; i++)
        wanted[values[i]] = true;
    for (uint32_t at = g->nodes.count; at-- > g->n_params;) {
        const struct ir_node *k = &g->nodes.at[at];
        is_made[at] = has_effects && ir_has_effect(g, k);
        for (uint32_t i = 0; i < k->n_out; i++)
            is_made[at] |= wanted[k->out + i] && map[k->out + i] == IR_NONE;
        for (uint32_t i = 0; i < k->n_in && is_made[at]; i++)
            wanted[ir_operand(g, k, i)] |= !l->gone[ir_operand(g, k, i)];
    }
    for (uint32_t at = g->n_params; at < g->nodes.count; at++) {
        const struct ir_node *k = &g->nodes.at[at];
        ir_id left = is_made[at] ? left_of_addition(l, k) : IR_NONE;
        if (left != IR_NONE)
            map[k->out] = map[left];
        else if (is_made[at])
            pass_copy_node(b, g, k, map);
    }
}

// Values of the body for all trips, made of the consts and of some values for all trips.
static jot_status loop_make_outside(struct loop *l, uint32_t n_stacks,
                                    const struct loop_stack *stacks, uint32_t n,
                                    const ir_id *values, ir_id *out)
{
    uint32_t n_consts = (uint32_t)l->s.n_consts, f;
    struct ir_builder b = ir_builder_make(l->m, l->g->name, IR_BUILD_PLAIN);
    ir_id *map = pass_no_values(l->m, l->g->values.count);
    ir_id *in = pass_no_values(l->m, n_consts + n_stacks);
    bool *mapped = body_mask(l->m, n_consts + n_stacks);
    for (uint32_t i = 0; i < n_consts + n_stacks; i++) {
        ir_id v = i < n_consts ? i : stacks[i - n_consts].of;
        mapped[i] = i >= n_consts;
        in[i] = i < n_consts ? l->in[i] : stacks[i - n_consts].v;
        map[v] = ir_param(&b, ir_type_of(l->g, v));
    }
    make_values(l, &b, n, values, false, map);
    for (uint32_t i = 0; i < n; i++)
        ir_output(&b, map[values[i]]);
    JOT_TRY(pass_finish(&b, &f));
    JOT_TRY(pass_vmap_all(l->m, f, mapped, l->s.length, &f));
    ir_inline(l->b, ir_function(l->m, f), in, out);
    return JOT_OK;
}

jot_status loop_move_values(struct loop *l, uint32_t n, const ir_id *moved)
{
    const struct ir_graph *g = l->g;
    uint32_t n_rows = g->n_params - loop_first_row(l);
    struct loop_stack *rows = arena_array(l->m->arena, struct loop_stack, n_rows + 1);
    for (uint32_t i = 0; i < n_rows; i++)
        rows[i] = (struct loop_stack){loop_first_row(l) + i, l->in[loop_first_row(l) + i]};
    JOT_TRY(loop_make_outside(l, n_rows, rows, n, moved, l->in + l->n_in));
    l->n_in += n;
    struct ir_builder b = ir_builder_make(l->m, g->name, IR_BUILD_PLAIN);
    ir_id *map = pass_no_values(l->m, g->values.count);
    pass_copy_params(&b, g, NULL, true, map);
    for (uint32_t i = 0; i < n; i++)
        map[moved[i]] = ir_param(&b, ir_type_of(g, moved[i]));
    make_values(l, &b, g->outputs.count, g->outputs.at, true, map);
    pass_copy_outputs(&b, g, map);
    JOT_TRY(pass_finish(&b, &l->s.body));
    look(l);
    return JOT_OK;
}

struct loop_stack *loop_find_stack(const struct loop_behind *h, ir_id v)
{
    for (uint32_t i = 0; i < h->stacks.count; i++)
        if (h->stacks.at[i].of == v)
            return &h->stacks.at[i];
    return NULL;
}

static bool is_row(const struct loop *l, ir_id v)
{
    return loop_is_param(l->g, v) && v >= loop_first_row(l);
}

bool loop_is_stacked(const struct loop *l, const struct loop_behind *h, ir_id v)
{
    return is_row(l, v) || h->row_out[v] != IR_NONE || loop_find_stack(h, v);
}

bool loop_is_new_row(const struct loop *l, const struct loop_behind *h, ir_id v)
{
    return !is_row(l, v) && h->row_out[v] == IR_NONE;
}

void loop_add_stack(struct loop *l, struct loop_behind *h, ir_id v)
{
    if (!loop_find_stack(h, v))
        vec_push(l->m->arena, &h->stacks, ((struct loop_stack){v, IR_NONE}));
}

jot_status loop_make_body(const struct loop *l, const struct loop_behind *h, uint32_t *out_n,
                          uint32_t *index, uint32_t *out)
{
    const struct ir_graph *g = l->g;
    struct ir_builder b = ir_builder_make(l->m, g->name, IR_BUILD_PLAIN);
    ir_id *map = pass_no_values(l->m, g->values.count);
    ir_id *values = pass_no_values(l->m, g->outputs.count + h->stacks.count);
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->outputs.count; i++)
        if (!h->is_row[i]) {
            index[i] = n;
            values[n++] = g->outputs.at[i];
        }
    for (uint32_t i = 0; i < h->stacks.count; i++)
        if (loop_is_new_row(l, h, h->stacks.at[i].of))
            values[n++] = h->stacks.at[i].of;
    pass_copy_params(&b, g, NULL, true, map);
    make_values(l, &b, n, values, true, map);
    for (uint32_t i = 0; i < n; i++)
        ir_output(&b, map[values[i]]);
    *out_n = n;
    return pass_finish(&b, out);
}

// y receives the results of the loop without what is made behind; the stacks have their values.
static jot_status make_rest(struct loop *l, struct loop_behind *h, ir_id *y)
{
    const struct ir_graph *g = l->g;
    uint32_t n, *index = arena_array(l->m->arena, uint32_t, g->outputs.count + 1);
    JOT_TRY(loop_make_body(l, h, &n, index, &l->s.body));
    ir_id first = ir_scan(l->b, &l->s, (int)l->n_in, l->in), next = first + n;
    for (uint32_t i = h->stacks.count; i-- > 0;) {
        struct loop_stack *s = &h->stacks.at[i];
        uint32_t out = h->row_out[s->of];
        s->v = is_row(l, s->of) ? l->in[s->of] : out != IR_NONE ? first + index[out] : --next;
    }
    for (uint32_t i = 0; i < g->outputs.count; i++)
        y[i] = h->is_row[i] ? IR_NONE : first + index[i];
    return JOT_OK;
}

void loop_make(struct loop *l, ir_id *y)
{
    ir_id first = ir_scan(l->b, &l->s, (int)l->n_in, l->in);
    for (uint32_t i = 0; i < l->g->outputs.count; i++)
        y[i] = first + i;
}

struct loop_behind loop_behind_make(const struct loop *l)
{
    const struct ir_graph *g = l->g;
    struct loop_behind h = {.is_row = body_mask(l->m, g->outputs.count),
                            .row_out = pass_no_values(l->m, g->values.count)};
    for (uint32_t i = (uint32_t)l->s.n_carry; i < g->outputs.count; i++)
        h.row_out[g->outputs.at[i]] = i;
    return h;
}

jot_status loop_make_behind(struct loop *l, struct loop_behind *h, uint32_t n,
                            const ir_id *values, ir_id *made, ir_id *y)
{
    uint32_t k = 0;
    JOT_TRY(make_rest(l, h, y));
    if (n)
        JOT_TRY(loop_make_outside(l, h->stacks.count, h->stacks.at, n, values, made));
    for (uint32_t i = 0; i < l->g->outputs.count; i++)
        if (h->is_row[i])
            y[i] = made[k++];
    return JOT_OK;
}

void loop_copy(struct ir_builder *b, const struct ir_graph *g, const struct ir_node *n,
               uint32_t (*rewrite)(struct ir_module *m, uint32_t f),
               jot_status (*distribute)(struct loop *l, ir_id *y), ir_id *map)
{
    if (!ir_has_bodies((enum ir_op)n->op)) {
        pass_copy_node(b, g, n, map);
        return;
    }
    uint32_t *bodies = body_rewrite_all(b->module, n, rewrite);
    ir_id *in = body_operands(b->module, g, n, map);
    struct ir_scan s = n->op == IR_scan ? ir_scan_of(n) : (struct ir_scan){0};
    b->where = n->where;
    s.body = bodies[0];
    if (s.length < COST_TRIPS_LEAST || s.lanes) {
        body_set_results(n,
                         ir_build(b, (enum ir_op)n->op, (int)n->n_in, in,
                                  ir_with_functions(b->module, n->attrs, bodies)),
                         map);
        return;
    }
    struct loop l = {.b = b, .m = b->module, .s = s, .n_in = n->n_in};
    l.in = pass_no_values(l.m, n->n_in + ir_function(l.m, s.body)->values.count);
    memcpy(l.in, in, n->n_in * sizeof *in);
    look(&l);
    jot_status status = distribute(&l, map + n->out);
    if (status != JOT_OK)
        ir_fail(b, status, "%s", jot_error_message());
}
