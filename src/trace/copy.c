// SPDX-License-Identifier: Apache-2.0
#include "trace/copy.h"

struct copying {
    struct ir_module *to;
    const struct ir_module *from;
    uint32_t *functions; // by number in from; IR_NONE until copied
};

static uint32_t copy_one(struct copying *c, const struct ir_graph *g);

static int64_t copy_axis(struct copying *c, int64_t axis)
{
    const struct ir_axis *a = &c->from->axes.at[axis];
    return ir_axis_add(c->to, a->name, a->size);
}

static struct ir_type copy_type(struct copying *c, struct ir_type t)
{
    struct ir_type copy = ir_type_make(c->to, ir_dtype(t), t.rank, ir_dims(c->from, t));
    for (int i = 0; t.varies >> i; i++)
        if (t.varies >> i & 1)
            copy.varies |= (uint16_t)(1u << copy_axis(c, i));
    return copy;
}

static uint32_t copy_called(struct copying *c, uint32_t f)
{
    if (c->functions[f] == IR_NONE)
        c->functions[f] = copy_one(c, ir_function(c->from, f));
    return c->functions[f];
}

static const struct ir_attrs *copy_attrs(struct copying *c, const struct ir_attrs *a)
{
    if (!a)
        return NULL;
    struct ir_field *fields = arena_array(c->to->arena, struct ir_field, a->count);
    for (uint32_t i = 0; i < a->count; i++) {
        fields[i] = a->fields[i];
        if (fields[i].key == IR_KEY_host) {
            int64_t *host = arena_new(c->to->arena, int64_t);
            *host = ir_host_add(c->to, &c->from->hosts.at[a->fields[i].ints[0]]);
            fields[i].ints = host;
        }
        enum ir_key_kind kind = ir_key_table[fields[i].key].kind;
        if (kind != IR_KIND_FUNCTIONS && kind != IR_KIND_AXES)
            continue;
        int64_t *numbers = arena_array(c->to->arena, int64_t, fields[i].count);
        for (uint32_t k = 0; k < fields[i].count; k++)
            numbers[k] = kind == IR_KIND_AXES ? copy_axis(c, a->fields[i].ints[k])
                                              : copy_called(c, (uint32_t)a->fields[i].ints[k]);
        fields[i].ints = numbers;
    }
    return ir_attrs_make(c->to, (int)a->count, fields);
}

static uint32_t copy_one(struct copying *c, const struct ir_graph *g)
{
    struct arena *arena = c->to->arena;
    struct ir_graph *copy = arena_new(arena, struct ir_graph);
    copy->module = c->to;
    copy->name = g->name ? arena_text(arena, g->name) : NULL;
    copy->n_params = g->n_params;
    for (uint32_t i = 0; i < g->nodes.count; i++) {
        struct ir_node n = g->nodes.at[i];
        n.attrs = copy_attrs(c, n.attrs);
        n.where = ir_where_make(c->to, ir_where_text(c->from, n.where));
        vec_push(arena, &copy->nodes, n);
    }
    for (uint32_t i = 0; i < g->values.count; i++) {
        struct ir_value v = g->values.at[i];
        v.type = copy_type(c, v.type);
        vec_push(arena, &copy->values, v);
    }
    for (uint32_t i = 0; i < g->operands.count; i++)
        vec_push(arena, &copy->operands, g->operands.at[i]);
    for (uint32_t i = 0; i < g->outputs.count; i++)
        vec_push(arena, &copy->outputs, g->outputs.at[i]);
    return ir_function_add(c->to, copy);
}

uint32_t copy_function(struct ir_module *to, const struct ir_graph *g)
{
    struct copying c = {.to = to, .from = g->module};
    uint32_t n = g->module->functions.count;
    c.functions = arena_array(to->arena, uint32_t, n + 1);
    for (uint32_t i = 0; i < n; i++)
        c.functions[i] = IR_NONE;
    return copy_one(&c, g);
}
