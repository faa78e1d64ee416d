// SPDX-License-Identifier: Apache-2.0
// Parts of an array that are dear are put where they belong, each by the loops of its own, instead of
// chosen from at each element of the whole.
//
//     y = concatenate(f a, g b)      becomes      y = concatenate(barrier (f a), barrier (g b))
//
// Such a concatenation is stored part by part when it has memory (group.c).  Parts of one value, as where rows are
// rolled around, are read from it.
#include "passes/transform.h"
#include "schedule/group/group.h"
#include "schedule/rewrites.h"

static bool has_long_runs(const struct ir_graph *g, const struct ir_node *n)
{
    const int64_t *dims = ir_dims_of(g, n->out);
    int64_t axis = ir_attr_int(n->attrs, IR_KEY_axis), before = 1, after = 1;
    for (int64_t i = 0; i < axis; i++)
        before *= dims[i];
    for (int64_t i = axis + 1; i < ir_rank_of(g, n->out); i++)
        after *= dims[i];
    for (uint32_t i = 0; i < n->n_in && before != 1; i++)
        if (ir_dims_of(g, ir_operand(g, n, i))[axis] * after < COST_PART_RUN)
            return false;
    return true;
}

// The value that v is elements of, in whatever order.
static ir_id elements_of(const struct ir_graph *g, ir_id v)
{
    while (v != IR_NONE && ir_node_of(g, v)->n_in == 1 && node_is_index(ir_node_of(g, v)))
        v = ir_operand(g, ir_node_of(g, v), 0);
    return v;
}

// Whether all parts are of one value, as where an axis is rolled around: whoever wants the whole reads that value where
// it is.
static bool is_of_one_value(const struct ir_graph *g, const struct ir_node *n)
{
    ir_id first = elements_of(g, ir_operand(g, n, 0));
    for (uint32_t i = 1; i < n->n_in; i++)
        if (elements_of(g, ir_operand(g, n, i)) != first)
            return false;
    return true;
}

// Whether each element takes much to make, from values that have memory whatever becomes of it.
static bool is_dear_to_make(const struct ir_graph *g, const struct ir_node *n,
                            const bool *is_dear)
{
    if (!n->n_out || node_is_steps(n) || node_is_scan(n) || node_is_update(n))
        return false;
    bool dear = node_is_dear(g, n);
    for (uint32_t i = 0; i < n->n_in && !dear; i++)
        dear = is_dear[ir_operand(g, n, i)];
    return dear;
}

// By node, whether it is a concatenation of parts to be stored apart.
static bool *find_joined(const struct schedule *s, bool *any)
{
    const struct ir_graph *g = s->g;
    int64_t least = s->options->large ? 2 : COST_MERGE;
    bool *is_joined = arena_array(s->scratch, bool, g->nodes.count + 1);
    bool *is_dear = arena_array(s->scratch, bool, g->values.count + 1);
    bool *is_result = arena_array(s->scratch, bool, g->values.count + 1);
    for (uint32_t i = 0; i < g->outputs.count; i++)
        is_result[g->outputs.at[i]] = true;
    for (uint32_t at = 0; at < g->nodes.count; at++) {
        const struct ir_node *n = &g->nodes.at[at];
        bool dear = is_dear_to_make(g, n, is_dear);
        for (uint32_t k = 0; k < n->n_out; k++)
            is_dear[n->out + k] = dear;
        is_joined[at] = n->op == IR_concatenate && n->n_in > 1 && dear &&
                        value_count(s, n->out) >= least && has_long_runs(g, n) &&
                        (is_result[n->out] || !is_of_one_value(g, n));
        *any |= is_joined[at];
    }
    return is_joined;
}

const struct ir_graph *schedule_part_concatenations(struct schedule *s)
{
    const struct ir_graph *g = s->g;
    bool any = false, *is_joined = find_joined(s, &any);
    if (!any || s->options->separate)
        return g;
    struct ir_builder b = ir_builder_make(g->module, g->name, IR_BUILD_PLAIN);
    ir_id *map = pass_no_values(g->module, g->values.count);
    pass_copy_params(&b, g, NULL, true, map);
    for (uint32_t at = g->n_params; at < g->nodes.count; at++) {
        const struct ir_node *n = &g->nodes.at[at];
        ir_id *in = pass_no_values(g->module, n->n_in);
        for (uint32_t i = 0; i < n->n_in && is_joined[at]; i++)
            in[i] = ir_build(&b, IR_barrier, 1, &map[ir_operand(g, n, i)], NULL);
        b.where = n->where;
        if (is_joined[at])
            map[n->out] = ir_build(&b, IR_concatenate, (int)n->n_in, in, n->attrs);
        else
            pass_copy_node(&b, g, n, map);
    }
    pass_copy_outputs(&b, g, map);
    const struct ir_graph *out = ir_finish(&b);
    return out ? out : g;
}

// By output, whether a kernel makes it that makes an output before it of the same value.
static bool *find_again(const struct schedule *s, bool *any)
{
    const struct ir_graph *g = s->g;
    bool *is_again = arena_array(s->scratch, bool, g->outputs.count + 1);
    bool *is_given = arena_array(s->scratch, bool, g->values.count + 1);
    for (uint32_t i = 0; i < g->outputs.count; i++) {
        ir_id v = g->outputs.at[i];
        is_again[i] =
            is_given[v] && ir_op_class((enum ir_op)ir_node_of(g, v)->op) == IR_CLASS_MAP;
        is_given[v] = true;
        *any |= is_again[i];
    }
    return is_again;
}

// What is two outputs is put twice by the kernel that makes it, and not copied.
const struct ir_graph *schedule_part_outputs(struct schedule *s)
{
    const struct ir_graph *g = s->g;
    bool any = false, *is_again = find_again(s, &any);
    if (!any || s->options->separate)
        return g;
    struct ir_builder b = ir_builder_make(g->module, g->name, IR_BUILD_PLAIN);
    ir_id *map = pass_no_values(g->module, g->values.count);
    pass_copy_values(&b, g, map);
    for (uint32_t i = 0; i < g->outputs.count; i++) {
        ir_id v = g->outputs.at[i];
        b.where = ir_node_of(g, v)->where;
        ir_output(&b, is_again[i] ? ir_reshape(&b, map[v], ir_rank_of(g, v), ir_dims_of(g, v))
                                  : map[v]);
    }
    const struct ir_graph *out = ir_finish(&b);
    return out ? out : g;
}

bool group_store_parts(struct schedule *s, ir_id v, const demand_list *l)
{
    const struct ir_node *n = ir_node_of(s->g, v);
    for (uint32_t i = 0; i < n->n_in; i++) {
        ir_id x = ir_operand(s->g, n, i);
        if (n->op != IR_concatenate || ir_node_of(s->g, x)->op != IR_barrier ||
            s->uses[x] != 1 || s->is_output[x])
            return false;
    }
    if (n->op != IR_concatenate)
        return false;
    s->is_stored[v] = true;
    for (uint32_t i = 0; i < n->n_in; i++) {
        ir_id x = ir_operand(s->g, n, i);
        s->is_forced[x] = true;
        s->part_of[x] = v;
        // The same groups wait for the part.
        for (uint32_t k = 0; k < l->count; k++) {
            struct demand d = l->at[k];
            d.view = axes_operand_view(&s->axes, n, i, d.view);
            group_want(s, x, d);
        }
    }
    return true;
}
