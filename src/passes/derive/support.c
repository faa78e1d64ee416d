// SPDX-License-Identifier: Apache-2.0
// Zeros of derivatives that stay zeros whatever they meet.
//
//     t = select p dx 0; u = mul_z t s; v = mul_z u r; return v
// becomes
//     u = mul dx s; v = mul u r; w = select p v 0; return w
//
// mul_z and guard have a tangent or a cotangent as their first operand.  Its support is where it may
// be other than zero: a constant zero has none, a select of it and zero the predicate's, a sum
// those of its terms together.  Outside of it the result is zero.  The zero of a product, as of 0
// and exp(-inf), belongs to the support, and 0 times infinity is NaN there.
//
// A support is a value of the graph, bool.  Elementwise ops that are linear go on with what stands
// before the select, and the select comes last: one for a chain of products.  Where no zero is
// known a product stays a product.  Through loops and branches supports go along as carries and
// results; only those that a mul_z or guard asks for.
//
// Needs all differentiation and mapping done.  No mul_z and no guard is left.
#include "passes/derive/support.h"

#include "ir/control.h"

ir_id support_clean(struct support *s, struct supported *x)
{
    struct ir_builder *b = s->b;
    if (x->clean == IR_NONE && x->raw != IR_NONE)
        x->clean = x->kind == SUPPORT_NONE ? ir_zeros(b, ir_type_in(b, x->raw))
                   : x->kind == SUPPORT_ALL
                       ? x->raw
                       : ir_select(b, x->where, x->raw, ir_scalar_like(b, x->raw, 0));
    return x->clean;
}

static struct ir_type type_of_support(struct ir_module *m, enum support_kind kind,
                                      struct ir_type t)
{
    return kind == SUPPORT_SOME ? ir_type_with(t, JOT_BOOL)
                                : ir_type_make(m, JOT_BOOL, 0, NULL);
}

static void copy_params(struct support *s, const enum support_kind *kinds)
{
    struct ir_builder *b = s->b;
    for (uint32_t i = 0; i < s->g->n_params; i++) {
        ir_id x = ir_param(b, ir_type_of(s->g, i));
        s->of[i] = (struct supported){x, x, kinds[i], IR_NONE};
    }
    for (uint32_t i = 0; i < s->g->n_params; i++)
        if (support_has_value(kinds[i]))
            s->of[i].where =
                ir_param(b, type_of_support(b->module, kinds[i], ir_type_of(s->g, i)));
}

static void copy_node(struct support *s, const struct ir_node *n)
{
    struct ir_module *m = s->b->module;
    s->b->where = n->where;
    if (ir_has_bodies((enum ir_op)n->op)) {
        support_bodies(s, n);
        return;
    }
    if (support_node(s, n))
        return;
    ir_id few[8], *in = n->n_in <= 8 ? few : pass_no_values(m, n->n_in);
    for (uint32_t i = 0; i < n->n_in; i++)
        in[i] = support_clean(s, &s->of[ir_operand(s->g, n, i)]);
    ir_id y = ir_rebuild(s->b, s->g, n, in);
    for (uint32_t i = 0; i < n->n_out; i++) {
        ir_id v = y == IR_NONE ? IR_NONE : y + i;
        s->of[n->out + i] = (struct supported){v, v, SUPPORT_ALL, IR_NONE};
    }
}

static void give_outputs(struct support *s, const bool *wanted, enum support_kind *kinds)
{
    const struct ir_graph *g = s->g;
    for (uint32_t i = 0; i < g->outputs.count; i++)
        ir_output(s->b, support_clean(s, &s->of[g->outputs.at[i]]));
    for (uint32_t i = 0; i < g->outputs.count; i++) {
        const struct supported *y = &s->of[g->outputs.at[i]];
        kinds[i] = wanted[i] ? y->kind : SUPPORT_ALL;
        if (support_has_value(kinds[i]))
            ir_output(s->b, y->where);
    }
}

static uint32_t build(struct ir_module *m, const struct ir_graph *g, const bool *wanted,
                      const enum support_kind *params, enum support_kind *out)
{
    struct ir_builder b =
        ir_builder_make(m, g->name, IR_BUILD_ZEROS | IR_BUILD_FOLD | IR_BUILD_CSE);
    bool *values = body_mask(m, g->values.count);
    for (uint32_t i = 0; i < g->outputs.count; i++)
        values[g->outputs.at[i]] |= wanted[i];
    support_want(g, values);
    struct support s = {.b = &b,
                        .g = g,
                        .of = arena_array(m->arena, struct supported, g->values.count + 1),
                        .wanted = values};
    copy_params(&s, params);
    for (uint32_t at = g->n_params; at < g->nodes.count && b.status == JOT_OK; at++)
        copy_node(&s, &g->nodes.at[at]);
    give_outputs(&s, wanted, out);
    return ir_finish_function(&b);
}

// Whether f, or a function that it uses, has a product to settle.
static bool has_guards(struct ir_module *m, uint32_t f)
{
    struct memo_key key = {.kind = MEMO_SUPPORT_GUARDS, .f = f};
    const bool *known = pass_memo_find(m, &key);
    if (known)
        return *known;
    const struct ir_graph *g = ir_function(m, f);
    bool has = false;
    ir_for_each_node (g, n) {
        has = has || n->op == IR_mul_z || n->op == IR_guard;
        const int64_t *functions;
        int count = ir_has_bodies((enum ir_op)n->op) ? ir_bodies_of(n, &functions) : 0;
        for (int k = 0; k < count && !has; k++)
            has = has_guards(m, (uint32_t)functions[k]);
    }
    pass_memo_add(m, &key, arena_copy(m->arena, &has, sizeof has));
    return has;
}

const struct support_function *support_apply(struct ir_module *m, uint32_t f,
                                             const bool *wanted,
                                             const enum support_kind *params)
{
    const struct ir_graph *g = ir_function(m, f);
    uint32_t n_in = g->n_params, n_out = g->outputs.count, n = n_out + 2 * n_in;
    bool *mask = body_mask(m, n);
    memcpy(mask, wanted, n_out * sizeof *mask);
    for (uint32_t i = 0; i < n_in; i++) {
        mask[n_out + 2 * i] = (params[i] & 1) != 0;
        mask[n_out + 2 * i + 1] = (params[i] & 2) != 0;
    }
    struct memo_key key = {.kind = MEMO_SUPPORT, .f = f, .n = n, .mask = mask};
    const struct support_function *known = pass_memo_find(m, &key);
    if (known)
        return known;
    struct support_function *made = arena_new(m->arena, struct support_function);
    made->out = arena_array(m->arena, enum support_kind, n_out + 1);
    made->f = f;
    bool any = body_any(wanted, n_out) || has_guards(m, f);
    for (uint32_t i = 0; i < n_in; i++)
        any = any || support_has_value(params[i]);
    if (any)
        made->f = build(m, g, wanted, params, made->out);
    pass_memo_add(m, &key, made);
    return made;
}

uint32_t pass_support(struct ir_module *m, uint32_t f)
{
    const struct ir_graph *g = ir_function(m, f);
    if (!has_guards(m, f))
        return f;
    enum support_kind *params = arena_array(m->arena, enum support_kind, g->n_params + 1);
    uint32_t made = support_apply(m, f, body_mask(m, g->outputs.count), params)->f;
    return made == IR_NONE ? f : made;
}
