// SPDX-License-Identifier: Apache-2.0
#include "ir/control.h"

struct ir_scan ir_scan_of(const struct ir_node *n)
{
    int n_trips;
    const int64_t *trips = ir_attr_ints(n->attrs, IR_KEY_trips, &n_trips);
    return (struct ir_scan){
        .body = (uint32_t)ir_field_find(n->attrs, IR_KEY_functions)->ints[0],
        .n_consts = (int)ir_attr_int(n->attrs, IR_KEY_n_consts),
        .n_carry = (int)ir_attr_int(n->attrs, IR_KEY_n_carry),
        .length = ir_attr_int(n->attrs, IR_KEY_length),
        .reverse = ir_attr_int_or(n->attrs, IR_KEY_reverse, 0) != 0,
        .checkpoint = ir_attr_int_or(n->attrs, IR_KEY_checkpoint, IR_CHECKPOINT_AUTO),
        .lanes = ir_attr_int_or(n->attrs, IR_KEY_lanes, 0),
        .first = n_trips ? trips[0] : 0,
        .part = n_trips ? trips[1] : 0,
    };
}

struct ir_while ir_while_of(const struct ir_node *n)
{
    int n_trips;
    const int64_t *functions = ir_field_find(n->attrs, IR_KEY_functions)->ints;
    const int64_t *trips = ir_attr_ints(n->attrs, IR_KEY_trips, &n_trips);
    return (struct ir_while){
        .test = (uint32_t)functions[0],
        .body = (uint32_t)functions[1],
        .n_consts = (int)ir_attr_int(n->attrs, IR_KEY_n_consts),
        .batched = (int)ir_attr_int_or(n->attrs, IR_KEY_batched, 0),
        .max_trips = ir_attr_int_or(n->attrs, IR_KEY_max_trips, IR_NO_BOUND),
        .slots = ir_attr_int_or(n->attrs, IR_KEY_slots, 0),
        .trips = n_trips ? (enum ir_trips)trips[0] : IR_TRIPS_COUNTED,
    };
}

int ir_bodies_of(const struct ir_node *n, const int64_t **out)
{
    int count;
    *out = ir_attr_ints(n->attrs, IR_KEY_functions, &count);
    return count;
}

ir_id ir_scan(struct ir_builder *b, const struct ir_scan *s, int n_in, const ir_id *in)
{
    int64_t body = s->body, checkpoint = s->checkpoint, lanes = s->lanes;
    int64_t trips[] = {s->first, s->part};
    struct ir_field fields[8] = {IR_INTS(functions, 1, &body), IR_INT(n_consts, s->n_consts),
                                 IR_INT(n_carry, s->n_carry), IR_INT(length, s->length),
                                 IR_INT(reverse, s->reverse)};
    int n = 5;
    if (checkpoint != IR_CHECKPOINT_AUTO)
        fields[n++] = (struct ir_field)IR_INTS(checkpoint, 1, &checkpoint);
    if (lanes)
        fields[n++] = (struct ir_field)IR_INTS(lanes, 1, &lanes);
    if (s->first || s->part)
        fields[n++] = (struct ir_field)IR_INTS(trips, 2, trips);
    return ir_build(b, IR_scan, n_in, in, ir_attrs_make(b->module, n, fields));
}

ir_id ir_while(struct ir_builder *b, const struct ir_while *w, int n_in, const ir_id *in)
{
    int64_t functions[] = {w->test, w->body};
    int64_t batched = w->batched, max_trips = w->max_trips, slots = w->slots, trips = w->trips;
    struct ir_field fields[6] = {IR_INTS(functions, 2, functions),
                                 IR_INT(n_consts, w->n_consts)};
    int n = 2;
    if (batched)
        fields[n++] = (struct ir_field)IR_INTS(batched, 1, &batched);
    if (max_trips != IR_NO_BOUND)
        fields[n++] = (struct ir_field)IR_INTS(max_trips, 1, &max_trips);
    if (slots)
        fields[n++] = (struct ir_field)IR_INTS(slots, 1, &slots);
    if (trips != IR_TRIPS_COUNTED)
        fields[n++] = (struct ir_field)IR_INTS(trips, 1, &trips);
    return ir_build(b, IR_while, n_in, in, ir_attrs_make(b->module, n, fields));
}

ir_id ir_cond(struct ir_builder *b, int n, const uint32_t *branches, int n_in, const ir_id *in)
{
    int64_t *functions = arena_array(b->module->arena, int64_t, n + 1);
    for (int i = 0; i < n; i++)
        functions[i] = branches[i];
    return ir_build(b, IR_cond, n_in, in,
                    ir_attrs(b->module, IR_INTS(functions, n, functions)));
}

const struct ir_attrs *ir_with_functions(struct ir_module *m, const struct ir_attrs *a,
                                         const uint32_t *functions)
{
    struct ir_field fields[IR_KEY_COUNT];
    for (uint32_t i = 0; i < a->count; i++) {
        fields[i] = a->fields[i];
        if (fields[i].key != IR_KEY_functions)
            continue;
        int64_t *numbers = arena_array(m->arena, int64_t, fields[i].count);
        for (uint32_t k = 0; k < fields[i].count; k++)
            numbers[k] = functions[k];
        fields[i].ints = numbers;
    }
    return ir_attrs_make(m, (int)a->count, fields);
}

uint32_t ir_control_depth_of(const struct ir_graph *g, const struct ir_node *n)
{
    const struct ir_field *f = ir_field_find(n->attrs, IR_KEY_functions);
    uint32_t deepest = 0;
    for (uint32_t i = 0; f && i < f->count; i++) {
        uint32_t depth = ir_function(g->module, (uint32_t)f->ints[i])->control_depth;
        deepest = depth > deepest ? depth : deepest;
    }
    return deepest + (ir_op_class((enum ir_op)n->op) == IR_CLASS_CONTROL);
}

uint32_t ir_control_depth(const struct ir_graph *g)
{
    uint32_t deepest = 0;
    ir_for_each_node (g, n) {
        uint32_t depth = ir_control_depth_of(g, n);
        deepest = depth > deepest ? depth : deepest;
    }
    return deepest;
}
