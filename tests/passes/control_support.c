// SPDX-License-Identifier: Apache-2.0
#include "control_support.h"

struct ir_tensor *draw_inputs(uint32_t f, uint64_t *state)
{
    uint32_t n = graph(f)->n_params;
    struct ir_tensor *x = arena_array(module->arena, struct ir_tensor, n + 1);
    for (uint32_t i = 0; i < n; i++)
        x[i] = draw(ir_type_of(graph(f), i), state);
    return x;
}

void check_derivatives(const char *what, uint32_t f, const bool *mask, uint64_t *state)
{
    struct ir_tensor *x = draw_inputs(f, state);
    check_differences(what, f, mask, x, state);
    check_transpose(what, f, mask, x, state);
    check_simplify(what, f, x);
}

int count_op(uint32_t f, enum ir_op op)
{
    int n = 0;
    ir_for_each_node (graph(f), node)
        n += node->op == op;
    return n;
}

const struct ir_node *find_op(uint32_t f, enum ir_op op)
{
    ir_for_each_node (graph(f), node)
        if (node->op == op)
            return node;
    ck_abort_msg("no %s in\n%s", ir_op_get(op)->name, ir_graph_text(graph(f)));
    return NULL;
}
