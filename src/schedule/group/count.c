// SPDX-License-Identifier: Apache-2.0
// What is known of each value before groups are chosen: its uses, and what it costs to make it again.
#include "schedule/group/group.h"

#include "base/count.h"
#include "ir/index_map.h"

// How often an element of a change of index is chosen: between operands, or an operand and zero.
static int choices_of(const struct schedule *s, const struct ir_node *n)
{
    if (ir_op_get((enum ir_op)n->op)->index)
        return (int)n->n_in - 1 + ir_index_has_zeros(s->g, n);
    return n->op == IR_dynamic_update_slice;
}

int group_ops_of(const struct schedule *s, ir_id v)
{
    const struct ir_node *n = ir_node_of(s->g, v);
    jot_dtype d = ir_dtype_of(s->g, v);
    return node_is_index(n) ? choices_of(s, n) * cost_code_of_op(IR_select, d)
                            : cost_code_of_op((enum ir_op)n->op, d);
}

bool node_is_dear(const struct ir_graph *g, const struct ir_node *n)
{
    return node_is_folding(n) || n->op == IR_threefry2x32 || node_is_scan(n) ||
           node_is_update(n) || node_is_steps(n) ||
           cost_is_expensive((enum ir_op)n->op, ir_dtype_of(g, n->out));
}

// What repeating a value costs, counted from dear values, folds and results, which are stored.
static void count_cheap(struct schedule *s)
{
    ir_for_each_node (s->g, n) {
        if (n->n_out == 0)
            continue;
        int sum = node_is_index(n) ? group_ops_of(s, n->out) : 1;
        for (uint32_t i = 0; i < n->n_in; i++) {
            int x = s->cheap[ir_operand(s->g, n, i)];
            sum += x == COST_NEVER ? 0 : x;
        }
        bool is_dear = node_is_dear(s->g, n);
        if (n->op == IR_param || n->op == IR_const)
            sum = 0;
        for (uint32_t k = 0; k < n->n_out; k++) {
            ir_id v = n->out + k;
            int own = s->is_output[v] ? 0 : sum;
            s->cheap[v] =
                is_dear ? COST_NEVER : (uint8_t)(own > COST_NEVER - 1 ? COST_NEVER - 1 : own);
        }
    }
}

// Ops and parameters behind every value.
static void count_cones(struct schedule *s)
{
    ir_for_each_node (s->g, n) {
        int64_t ops = !node_is_index(n), bytes = 0;
        for (uint32_t i = 0; i < n->n_in; i++) {
            ir_id x = ir_operand(s->g, n, i);
            ops += s->cone_ops[x];
            bytes = count_plus(bytes, s->cone_bytes[x]);
        }
        if (n->op == IR_param || n->op == IR_const) {
            ops = 0;
            bytes = value_count(s, n->out) * dtype_get(ir_dtype_of(s->g, n->out))->bytes;
        } else if (node_is_folding(n)) {
            int64_t folded = axes_product(&s->axes, axes_fold_atoms(&s->axes, n));
            ops = folded > COST_REPEAT_EXPANDED ? COST_NEVER : ops * folded;
        } else if (node_is_scan(n) || node_is_update(n) || node_is_steps(n)) {
            ops = COST_NEVER;
        }
        for (uint32_t k = 0; k < n->n_out; k++) {
            s->cone_ops[n->out + k] = (uint8_t)(ops > COST_NEVER ? COST_NEVER : ops);
            s->cone_bytes[n->out + k] = bytes;
        }
    }
}

static void count_uses(struct schedule *s)
{
    for (uint32_t i = 0; i < s->g->operands.count; i++)
        s->uses[s->g->operands.at[i]]++;
    ir_for_each_node (s->g, n)
        if (n->op == IR_param || n->op == IR_const)
            s->uses[n->out] = 2;
}

void group_count(struct schedule *s)
{
    count_uses(s);
    count_cheap(s);
    count_cones(s);
}
