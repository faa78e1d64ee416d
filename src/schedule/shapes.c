// SPDX-License-Identifier: Apache-2.0
// An array that is reshaped on its way from an input to a step that goes from memory to memory (a loop,
// an update, a routine, an exchange), or from there to an output, is what it was: memories count elements,
// so the input, or the output, takes the other shape, and what is donated is updated where it is.
#include "passes/transform.h"
#include "schedule/internal.h"
#include "schedule/rewrites.h"

static bool is_of_memories(const struct ir_node *n)
{
    enum ir_class c = ir_op_class((enum ir_op)n->op);
    return c == IR_CLASS_CONTROL || c == IR_CLASS_UPDATE || c == IR_CLASS_LIBRARY;
}

// By parameter, the one node that uses it, if that is a reshape.
static const struct ir_node **find_reshaped(const struct ir_graph *g)
{
    struct arena *arena = g->module->arena;
    const struct ir_node **reshape =
        arena_array(arena, const struct ir_node *, g->n_params + 1);
    uint32_t *uses = pass_count_uses(g->module, g);
    ir_for_each_node (g, n)
        if (n->op == IR_reshape && ir_operand(g, n, 0) < g->n_params &&
            uses[ir_operand(g, n, 0)] == 1)
            reshape[ir_operand(g, n, 0)] = n;
    return reshape;
}

// Whether such a step takes the value.
static bool *find_taken(const struct ir_graph *g)
{
    bool *taken = arena_array(g->module->arena, bool, g->values.count + 1);
    ir_for_each_node (g, n)
        for (uint32_t i = 0; i < n->n_in && is_of_memories(n); i++)
            taken[ir_operand(g, n, i)] = true;
    return taken;
}

const struct ir_graph *schedule_without_shapes(const struct ir_graph *g)
{
    const struct ir_node **reshape = find_reshaped(g);
    bool *taken = find_taken(g), any = false;
    ir_id *result = arena_array(g->module->arena, ir_id, g->outputs.count + 1);
    for (uint32_t i = 0; i < g->n_params; i++) {
        if (reshape[i] && !taken[reshape[i]->out])
            reshape[i] = NULL;
        any |= reshape[i] != NULL;
    }
    for (uint32_t i = 0; i < g->outputs.count; i++) {
        result[i] = g->outputs.at[i];
        const struct ir_node *n = ir_node_of(g, result[i]);
        if (n->op == IR_reshape && is_of_memories(ir_node_of(g, ir_operand(g, n, 0))))
            result[i] = ir_operand(g, n, 0);
        any |= result[i] != g->outputs.at[i];
    }
    if (!any)
        return g;
    struct ir_builder b = ir_builder_make(g->module, g->name, IR_BUILD_PLAIN);
    ir_id *map = pass_no_values(g->module, g->values.count);
    for (uint32_t i = 0; i < g->n_params; i++)
        map[i] = ir_param(&b, ir_type_of(g, reshape[i] ? reshape[i]->out : i));
    for (uint32_t i = g->n_params; i < g->nodes.count; i++) {
        const struct ir_node *n = &g->nodes.at[i];
        ir_id x = n->op == IR_reshape ? ir_operand(g, n, 0) : IR_NONE;
        if (x < g->n_params && reshape[x] == n)
            map[n->out] = map[x];
        else
            pass_copy_node(&b, g, n, map);
    }
    for (uint32_t i = 0; i < g->outputs.count; i++)
        ir_output(&b, map[result[i]]);
    const struct ir_graph *out = ir_finish(&b);
    return out ? ir_canonical(out) : g;
}
