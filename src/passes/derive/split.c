// SPDX-License-Identifier: Apache-2.0
// A function that is linear in some inputs, in two: what does not depend on them, and the rest.
//
//     f(x, dx) { y = sin x; c = cos x; dy = mul_z dx c; return y, dy }
// becomes
//     forward(x) { y = sin x; c = cos x; return y, c }
//     linear(c, dx) { dy = mul_z dx c; return dy }
//
// Values that linear nodes read are the residuals.  Constants are made again, and so is what only
// changes the index of a residual: then its source is kept.  Inputs and results are not kept
// twice, nor slices of what is no larger than they are together.  Residuals that come out of calls, or
// that loops and branches hand on from loops and branches in them, are packed when they are many: those of
// an element type that vary alike go into one vector.  A tower of calls would hand up twice as many at
// every level, and one of loops those of all levels below.
//
// Needs nothing.  Keeps the order of nodes.
#include "base/status.h"
#include "ir/control.h"
#include "ir/cost.h"
#include "passes/passes.h"
#include "passes/transform.h"

// How the linear part gets a value that is not linear.
enum supply {
    UNUSED,
    REMADE,   // by the same node
    RESIDUAL, // as a parameter
};

// Changes of index that keep every element of the operand: no smaller than their source.
static bool is_remade(enum ir_op op)
{
    return op == IR_const || op == IR_iota || op == IR_broadcast_in_dim || op == IR_reshape ||
           op == IR_transpose || op == IR_rev || op == IR_pvary;
}

// Values made of constants alone.
static bool *find_constant(const struct ir_graph *g)
{
    bool *constant = arena_array(g->module->arena, bool, g->values.count + 1);
    ir_for_each_node (g, n) {
        enum ir_class c = ir_op_class(n->op);
        bool all = c == IR_CLASS_CONST || c == IR_CLASS_LAYOUT || c == IR_CLASS_MAP;
        for (uint32_t i = 0; i < n->n_in; i++)
            all = all && constant[ir_operand(g, n, i)];
        for (uint32_t i = 0; i < n->n_out; i++)
            constant[n->out + i] = all;
    }
    return constant;
}

struct cut {
    const struct unzipped *u;
    const struct ir_graph *g; // of u
    enum supply *supply;      // by value: of those that are not linear
    bool *live;               // by value: linear ones that results need
    bool *apart;        // by value: slices that are residuals are no smaller, all together
    uint32_t *vector;   // by value: that of residuals that share one, or IR_NONE
    VEC(ir_id) vectors; // the first residual of each
};

static bool hands_on(const struct ir_node *n) { return n->op == IR_cond || n->op == IR_scan; }

static bool is_handed_on(const struct ir_graph *g, ir_id v)
{
    const struct ir_node *n = ir_node_of(g, v);
    const int64_t *bodies;
    int n_bodies = hands_on(n) ? ir_bodies_of(n, &bodies) : 0;
    bool is_inner = false;
    for (int i = 0; i < n_bodies; i++) {
        const struct ir_graph *body = ir_function(g->module, (uint32_t)bodies[i]);
        ir_id inner = body->outputs.at[v - n->out];
        is_inner = is_inner || hands_on(ir_node_of(body, inner));
    }
    return is_inner || ir_op_class(n->op) == IR_CLASS_CALL;
}

// The vector of residuals of the type's elements, which vary as it does: one that varies more would
// make what is computed of it vary.
static uint32_t find_vector(struct cut *c, ir_id v)
{
    struct ir_type t = ir_type_of(c->g, v);
    for (uint32_t i = 0; i < c->vectors.count; i++) {
        struct ir_type first = ir_type_of(c->g, c->vectors.at[i]);
        if (first.dtype == t.dtype && first.varies == t.varies)
            return i;
    }
    vec_push(c->g->module->arena, &c->vectors, v);
    return c->vectors.count - 1;
}

static void choose_packed(struct cut *c)
{
    const struct ir_graph *g = c->g;
    uint32_t count = 0;
    bool *is_packed = arena_array(g->module->arena, bool, g->values.count + 1);
    for (ir_id v = 0; v < g->values.count; v++)
        is_packed[v] = c->supply[v] == RESIDUAL && is_handed_on(g, v);
    for (uint32_t i = 0; i < g->outputs.count; i++)
        is_packed[g->outputs.at[i]] = false;
    for (ir_id v = 0; v < g->values.count; v++)
        count += is_packed[v];
    for (ir_id v = 0; v < g->values.count && count > COST_RESIDUALS; v++)
        if (is_packed[v])
            c->vector[v] = find_vector(c, v);
}

static struct ir_type vector_type(const struct cut *c, uint32_t vector)
{
    struct ir_module *m = c->g->module;
    struct ir_type first = ir_type_of(c->g, c->vectors.at[vector]);
    int64_t count = 0;
    for (ir_id v = 0; v < c->g->values.count; v++)
        if (c->vector[v] == vector)
            count += ir_count(m, ir_type_of(c->g, v));
    struct ir_type t = ir_type_make(m, ir_dtype(first), 1, &count);
    t.varies = first.varies;
    return t;
}

static ir_id pack(const struct cut *c, struct ir_builder *b, const ir_id *map, uint32_t vector)
{
    ir_id *flat = pass_no_values(b->module, c->g->values.count);
    int n = 0;
    for (ir_id v = 0; v < c->g->values.count; v++) {
        int64_t count = ir_count(b->module, ir_type_of(c->g, v));
        if (c->vector[v] == vector)
            flat[n++] = ir_reshape(b, map[v], 1, &count);
    }
    return ir_concatenate(b, n, flat, 0);
}

static void unpack(const struct cut *c, struct ir_builder *b, ir_id whole, uint32_t vector,
                   ir_id *map)
{
    int64_t at = 0;
    for (ir_id v = 0; v < c->g->values.count; v++) {
        struct ir_type t = ir_type_of(c->g, v);
        if (c->vector[v] != vector)
            continue;
        int64_t end = at + ir_count(b->module, t);
        map[v] =
            ir_reshape(b, ir_slice(b, whole, &at, &end, NULL), t.rank, ir_dims(b->module, t));
        at = end;
    }
}

// Whether what the node gives is made again from its operands.
static bool is_made_again(const struct cut *c, const struct ir_node *n, const bool *constant)
{
    return n->n_out == 1 && (is_remade(n->op) || constant[n->out] ||
                             (n->op == IR_slice && c->apart[ir_operand(c->g, n, 0)]));
}

// What linear nodes that results need read, from the last node backward.
static void find_supply(struct cut *c, const bool *constant)
{
    const struct ir_graph *g = c->g;
    memset(c->supply, 0, g->values.count * sizeof *c->supply);
    for (uint32_t i = 0; i < g->outputs.count; i++)
        c->live[g->outputs.at[i]] = c->u->linear[g->outputs.at[i]];
    for (uint32_t at = g->nodes.count; at-- > 0;) {
        const struct ir_node *n = &g->nodes.at[at];
        bool wanted = false;
        if (pass_is_marked(c->u->linear, n)) {
            for (uint32_t i = 0; i < n->n_out; i++)
                wanted = wanted || c->live[n->out + i];
        } else {
            bool remade = is_made_again(c, n, constant);
            for (uint32_t i = 0; i < n->n_out; i++) {
                if (c->supply[n->out + i] == UNUSED)
                    continue;
                c->supply[n->out + i] = remade ? REMADE : RESIDUAL;
                wanted = remade;
            }
        }
        for (uint32_t i = 0; wanted && i < n->n_in; i++) {
            ir_id v = ir_operand(g, n, i);
            if (c->u->linear[v])
                c->live[v] = true;
            else
                c->supply[v] = RESIDUAL;
        }
    }
}

// Whether there are values that residuals take apart, as the linear part does what it unpacks.
static bool find_apart(struct cut *c)
{
    const struct ir_graph *g = c->g;
    int64_t *count = arena_array(g->module->arena, int64_t, g->values.count + 1);
    bool any = false;
    ir_for_each_node (g, n) {
        if (n->op != IR_slice || c->supply[n->out] != RESIDUAL)
            continue;
        ir_id v = ir_operand(g, n, 0);
        count[v] += ir_count_of(g, n->out);
        c->apart[v] = count[v] >= ir_count_of(g, v);
        any = any || c->apart[v];
    }
    return any;
}

static struct cut choose_residuals(const struct unzipped *u)
{
    const struct ir_graph *g = u->g;
    struct arena *arena = g->module->arena;
    struct cut c = {.u = u,
                    .g = g,
                    .supply = arena_array(arena, enum supply, g->values.count + 1),
                    .live = arena_array(arena, bool, g->values.count + 1),
                    .apart = arena_array(arena, bool, g->values.count + 1),
                    .vector = pass_no_values(g->module, g->values.count)};
    bool *constant = find_constant(g);
    find_supply(&c, constant);
    if (find_apart(&c))
        find_supply(&c, constant);
    choose_packed(&c);
    return c;
}

static jot_status build_forward(const struct cut *c, const bool *linear_in,
                                struct pass_split *s)
{
    const struct ir_graph *g = c->g;
    struct ir_module *m = g->module;
    struct ir_builder b = ir_builder_make(m, g->name, IR_BUILD_PLAIN);
    ir_id *map = pass_no_values(m, g->values.count);
    uint32_t *index = pass_no_values(m, g->values.count); // among the results
    pass_copy_params(&b, g, linear_in, false, map);
    for (uint32_t at = g->n_params; at < g->nodes.count && b.status == JOT_OK; at++)
        if (!pass_is_marked(c->u->linear, &g->nodes.at[at]))
            pass_copy_node(&b, g, &g->nodes.at[at], map);
    uint32_t n_out = 0;
    for (uint32_t i = 0; i < g->outputs.count; i++) {
        ir_id v = g->outputs.at[i];
        if (c->u->linear[v])
            continue;
        ir_output(&b, map[v]);
        if (index[v] == IR_NONE)
            index[v] = n_out;
        n_out++;
    }
    struct pass_residual *residuals =
        arena_array(m->arena, struct pass_residual, g->values.count + 1);
    s->n_residuals = 0;
    for (ir_id v = 0; v < g->values.count; v++) {
        if (c->supply[v] != RESIDUAL || c->vector[v] != IR_NONE)
            continue;
        struct pass_residual r = {PASS_RESIDUAL_INPUT, v};
        if (v >= g->n_params) {
            if (index[v] == IR_NONE) {
                ir_output(&b, map[v]);
                index[v] = n_out++;
            }
            r = (struct pass_residual){PASS_RESIDUAL_OUTPUT, index[v]};
        }
        residuals[s->n_residuals++] = r;
    }
    for (uint32_t i = 0; i < c->vectors.count; i++) {
        ir_output(&b, pack(c, &b, map, i));
        residuals[s->n_residuals++] = (struct pass_residual){PASS_RESIDUAL_OUTPUT, n_out++};
    }
    s->residuals = residuals;
    return pass_finish(&b, &s->forward);
}

static jot_status build_linear(const struct cut *c, const bool *linear_in, struct pass_split *s)
{
    const struct ir_graph *g = c->g;
    struct ir_module *m = g->module;
    struct ir_builder b = ir_builder_make(m, g->name, IR_BUILD_PLAIN);
    ir_id *map = pass_no_values(m, g->values.count);
    for (ir_id v = 0; v < g->values.count; v++)
        if (c->supply[v] == RESIDUAL && c->vector[v] == IR_NONE)
            map[v] = ir_param(&b, ir_type_of(g, v));
    ir_id *whole = pass_no_values(m, c->vectors.count);
    for (uint32_t i = 0; i < c->vectors.count; i++)
        whole[i] = ir_param(&b, vector_type(c, i));
    pass_copy_params(&b, g, linear_in, true, map);
    for (uint32_t i = 0; i < c->vectors.count; i++)
        unpack(c, &b, whole[i], i, map);
    for (uint32_t at = g->n_params; at < g->nodes.count && b.status == JOT_OK; at++) {
        const struct ir_node *n = &g->nodes.at[at];
        bool wanted = false;
        for (uint32_t i = 0; i < n->n_out; i++)
            wanted = wanted || c->live[n->out + i] || c->supply[n->out + i] == REMADE;
        if (wanted)
            pass_copy_node(&b, g, n, map);
    }
    for (uint32_t i = 0; i < g->outputs.count; i++)
        if (c->u->linear[g->outputs.at[i]])
            ir_output(&b, map[g->outputs.at[i]]);
    return pass_finish(&b, &s->linear);
}

// A linear part split again is itself: all its inputs but the linear ones are residuals.
static void remember_linear(struct ir_module *m, const struct pass_split *s)
{
    const struct ir_graph *g = ir_function(m, s->linear);
    bool *mask = arena_array(m->arena, bool, g->n_params + 1);
    for (uint32_t i = s->n_residuals; i < g->n_params; i++)
        mask[i] = true;
    struct memo_key key = {.kind = MEMO_SPLIT, .f = s->linear, .n = g->n_params, .mask = mask};
    if (pass_memo_find(m, &key))
        return;
    struct pass_split *again = arena_new(m->arena, struct pass_split);
    struct pass_residual *residuals =
        arena_array(m->arena, struct pass_residual, s->n_residuals + 1);
    bool *linear_out = arena_array(m->arena, bool, g->outputs.count + 1);
    for (uint32_t i = 0; i < s->n_residuals; i++)
        residuals[i] = (struct pass_residual){PASS_RESIDUAL_INPUT, i};
    for (uint32_t i = 0; i < g->outputs.count; i++)
        linear_out[i] = true;
    struct ir_builder b = ir_builder_make(m, g->name, IR_BUILD_PLAIN);
    ir_id *ids = pass_no_values(m, g->n_params);
    pass_copy_params(&b, g, mask, false, ids);
    *again = (struct pass_split){.linear = s->linear,
                                 .n_residuals = s->n_residuals,
                                 .residuals = residuals,
                                 .linear_out = linear_out,
                                 .forward = ir_finish_function(&b)};
    pass_memo_add(m, &key, again);
}

jot_status pass_split(struct ir_module *m, uint32_t f, const bool *linear_in,
                      struct pass_split *out)
{
    const struct ir_graph *g = ir_function(m, f);
    struct memo_key key = {.kind = MEMO_SPLIT, .f = f, .n = g->n_params, .mask = linear_in};
    const struct pass_split *known = pass_memo_find(m, &key);
    if (!known) {
        struct pass_split *s = arena_new(m->arena, struct pass_split);
        struct unzipped u;
        JOT_TRY(pass_unzip(m, g, linear_in, NULL, &u));
        struct cut c = choose_residuals(&u);
        JOT_TRY(build_forward(&c, linear_in, s));
        JOT_TRY(build_linear(&c, linear_in, s));
        bool *linear_out = arena_array(m->arena, bool, g->outputs.count + 1);
        for (uint32_t i = 0; i < g->outputs.count; i++)
            linear_out[i] = u.linear[u.g->outputs.at[i]];
        s->linear_out = linear_out;
        pass_memo_add(m, &key, s);
        remember_linear(m, s);
        known = s;
    }
    *out = *known;
    return JOT_OK;
}

jot_status pass_linearize(struct ir_module *m, uint32_t f, const bool *nonzero_in,
                          struct pass_split *out)
{
    const struct ir_graph *g = ir_function(m, f);
    uint32_t joint;
    bool *nonzero = arena_array(m->arena, bool, g->outputs.count + 1);
    JOT_TRY(pass_jvp(m, pass_hoist_parts(m, f), nonzero_in, &joint, nonzero));
    const struct ir_graph *j = ir_function(m, joint);
    bool *linear_in = arena_array(m->arena, bool, j->n_params + 1);
    for (uint32_t i = g->n_params; i < j->n_params; i++)
        linear_in[i] = true;
    struct pass_split s;
    JOT_TRY(pass_split(m, joint, linear_in, &s));
    const bool *linear_out = s.linear_out + g->outputs.count;
    bool *out_mask = arena_array(m->arena, bool, g->outputs.count + 1);
    for (uint32_t i = 0; i < g->outputs.count; i++)
        out_mask[i] = nonzero[i] && *linear_out++;
    s.linear_out = out_mask;
    *out = s;
    return JOT_OK;
}
