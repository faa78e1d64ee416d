// SPDX-License-Identifier: Apache-2.0
// Makes operands, and parameters and results of bodies, vary over the axes that they have to.
#include "ir/collective.h"
#include "ir/control.h"
#include "ir/shard.h"

const int64_t *ir_over(const struct ir_attrs *a, int *n)
{
    return ir_attr_ints(a, IR_KEY_over, n);
}

int64_t ir_lanes_over(const struct ir_module *m, const struct ir_attrs *a)
{
    int n;
    const int64_t *over = ir_over(a, &n);
    int64_t lanes = 1;
    for (int i = 0; i < n; i++)
        lanes *= ir_axis_size(m, over[i]);
    return lanes;
}

static uint16_t one(int64_t axis) { return (uint16_t)(1u << (axis & (IR_MAX_AXES - 1))); }

uint16_t ir_over_set(const struct ir_attrs *a)
{
    int n;
    const int64_t *over = ir_over(a, &n);
    uint16_t axes = 0;
    for (int i = 0; i < n; i++)
        axes |= one(over[i]);
    return axes;
}

const char *ir_axes_text(struct ir_module *m, uint16_t axes)
{
    struct strbuf s = strbuf_make(m->arena);
    for (int i = 0; axes >> i; i++) {
        if (!(axes >> i & 1))
            continue;
        bool is_last = !(axes >> i >> 1);
        strbuf_add(&s, !s.length ? "" : is_last ? " and " : ", ");
        strbuf_add(&s, m->axes.at[i].name);
    }
    return s.text;
}

ir_id ir_collective(struct ir_builder *b, enum ir_op op, ir_id x, int n, const int64_t *over)
{
    return ir_build(b, op, 1, &x, ir_attrs(b->module, IR_INTS(over, n, over)));
}

ir_id ir_ppermute(struct ir_builder *b, ir_id x, int n, const int64_t *over, int n_pairs,
                  const int64_t *pairs)
{
    return ir_build(
        b, IR_ppermute, 1, &x,
        ir_attrs(b->module, IR_INTS(over, n, over), IR_INTS(pairs, 2 * n_pairs, pairs)));
}

ir_id ir_axis_index(struct ir_builder *b, int64_t axis)
{
    return ir_build(b, IR_axis_index, 0, NULL, ir_attrs(b->module, IR_INTS(over, 1, &axis)));
}

ir_id ir_lane_number(struct ir_builder *b, int n, const int64_t *over)
{
    ir_id number = IR_NONE;
    for (int i = 0; i < n; i++) {
        ir_id own = ir_axis_index(b, over[i]);
        if (i) {
            ir_id size = ir_scalar_int(b, JOT_I32, ir_axis_size(b->module, over[i]));
            own = ir_add(b, ir_mul(b, number, size), own);
        }
        number = own;
    }
    return number;
}

ir_id ir_exchange(struct ir_builder *b, ir_id x, int rank, const int64_t *mesh, int n_params,
                  const int64_t *params)
{
    return ir_build(
        b, IR_exchange, 1, &x,
        ir_attrs(b->module, IR_INTS(mesh, rank, mesh), IR_INTS(exchange, n_params, params)));
}

const char *ir_exchange_read(const struct ir_attrs *a, struct collective *out)
{
    int rank, n;
    const int64_t *mesh = ir_attr_ints(a, IR_KEY_mesh, &rank);
    const int64_t *params = ir_attr_ints(a, IR_KEY_exchange, &n);
    return collective_read(params, (uint32_t)n, (uint32_t)rank, mesh, out);
}

// The op over a set of axes; x itself over none.
static ir_id over_set(struct ir_builder *b, enum ir_op op, ir_id x, uint16_t axes)
{
    int64_t over[IR_MAX_AXES];
    int n = 0;
    for (int i = 0; axes >> i; i++)
        if (axes >> i & 1)
            over[n++] = i;
    return n ? ir_collective(b, op, x, n, over) : x;
}

ir_id ir_pvary(struct ir_builder *b, ir_id x, uint16_t axes)
{
    if (x == IR_NONE)
        return IR_NONE;
    return over_set(b, IR_pvary, x, axes & (uint16_t)~ir_type_in(b, x).varies);
}

ir_id ir_psum(struct ir_builder *b, ir_id x, uint16_t axes)
{
    return over_set(b, IR_psum, x, axes);
}

static int count_bodies(const struct ir_node *n)
{
    return ir_has_bodies((enum ir_op)n->op) ? ir_bodies_of(n, &(const int64_t *){0}) : 0;
}

// All axes but those of the mesh of a shard_map, which are none outside of it.
static uint16_t named_outside(const struct ir_graph *g, const struct ir_node *n)
{
    if (n->op != IR_shard_map)
        return UINT16_MAX;
    struct ir_shard s = ir_shard_of(g->module, n);
    return (uint16_t)~ir_grid_set(&s);
}

uint16_t ir_axes_inside(const struct ir_graph *g, const struct ir_node *n)
{
    uint16_t axes = ir_over_set(n->attrs);
    for (int i = 0; i < count_bodies(n); i++)
        axes |= ir_body(g, n, i)->names;
    return axes ? axes & named_outside(g, n) : 0;
}

uint16_t ir_axes_named(const struct ir_graph *g, const struct ir_node *n)
{
    uint16_t axes = ir_axes_inside(g, n);
    for (uint32_t i = 0; i < n->n_out; i++)
        axes |= ir_type_of(g, n->out + i).varies;
    return axes;
}

uint16_t ir_axes_exchanged(const struct ir_graph *g, const struct ir_node *n)
{
    uint16_t axes = ir_exchanges((enum ir_op)n->op) ? ir_over_set(n->attrs) : 0;
    for (int i = 0; i < count_bodies(n); i++)
        axes |= ir_body(g, n, i)->exchanges;
    return axes ? axes & named_outside(g, n) : 0;
}

const struct ir_node *ir_exchange_find(const struct ir_graph *g, uint16_t axes)
{
    ir_for_each_node (g, n) {
        if (!(ir_axes_exchanged(g, n) & axes))
            continue;
        for (int i = 0; i < count_bodies(n); i++) {
            const struct ir_node *inside = ir_exchange_find(ir_body(g, n, i), axes);
            if (inside)
                return inside;
        }
        return n;
    }
    return NULL;
}

// -- Operands ---------------------------------------------------------------------------------

// Nobody asks for the cotangent of a constant, so it goes with what varies as it is.
static bool is_constant(const struct ir_graph *g, ir_id v)
{
    const struct ir_node *n = ir_node_of(g, v);
    while (n->op == IR_broadcast_in_dim || n->op == IR_reshape)
        n = ir_node_of(g, ir_operand(g, n, 0));
    return n->op == IR_const || n->op == IR_iota;
}

static uint16_t varies_in(const struct ir_builder *b, ir_id v)
{
    return ir_type_in(b, v).varies;
}

static const ir_id *vary_alike(struct ir_builder *b, int n_in, const ir_id *in, uint16_t axes)
{
    ir_id *made = NULL;
    for (int i = 0; i < n_in; i++)
        axes |= varies_in(b, in[i]);
    for (int i = 0; i < n_in; i++) {
        if (varies_in(b, in[i]) == axes || (n_in > 1 && is_constant(b->graph, in[i])))
            continue;
        if (!made)
            made = arena_copy(b->module->arena, in, sizeof *in * (size_t)n_in);
        made[i] = ir_pvary(b, in[i], axes);
    }
    return made ? made : in;
}

// -- Bodies -----------------------------------------------------------------------------------

// A node with bodies.  Operands are slots, and so are results and what bodies hand to each other; a
// parameter or a result of a body is of a slot, and varies over what the slot does.  Slots grow until
// all of them fit.
struct bodied {
    struct ir_builder *b;
    int n_in, n_bodies;
    const struct ir_attrs *attrs;
    uint32_t *function;   // by body
    uint32_t **in, **out; // by body, of parameters and results: the slot
    VEC(uint16_t) axes;   // by slot, operands first
};

static const struct ir_graph *body(const struct bodied *c, int k)
{
    return ir_function(c->b->module, c->function[k]);
}

static uint32_t new_slot(struct bodied *c)
{
    vec_push(c->b->module->arena, &c->axes, 0);
    return c->axes.count - 1;
}

// What parameters and results of a body vary over, and whether a slot has grown for it.
static bool grow(struct bodied *c, int k)
{
    const struct ir_graph *g = body(c, k);
    bool grows = false;
    for (uint32_t i = 0; i < g->n_params + g->outputs.count; i++) {
        bool is_in = i < g->n_params;
        uint32_t slot = is_in ? c->in[k][i] : c->out[k][i - g->n_params];
        ir_id v = is_in ? i : g->outputs.at[i - g->n_params];
        uint16_t both = c->axes.at[slot] | ir_type_of(g, v).varies;
        grows |= both != c->axes.at[slot];
        c->axes.at[slot] = both;
    }
    return grows;
}

static bool fits(const struct bodied *c, int k)
{
    const struct ir_graph *g = body(c, k);
    for (uint32_t i = 0; i < g->n_params; i++)
        if (c->axes.at[c->in[k][i]] != ir_type_of(g, i).varies)
            return false;
    for (uint32_t i = 0; i < g->outputs.count; i++)
        if (c->axes.at[c->out[k][i]] != ir_type_of(g, g->outputs.at[i]).varies)
            return false;
    return true;
}

// The body over parameters that vary as their slots do, and with results that do at least.
static bool widen_body(struct bodied *c, int k)
{
    struct ir_module *m = c->b->module;
    const struct ir_graph *g = body(c, k);
    struct ir_builder w = ir_builder_make(m, g->name, IR_BUILD_PLAIN);
    ir_id *map = arena_array(m->arena, ir_id, g->n_params + g->outputs.count + 1);
    for (uint32_t i = 0; i < g->n_params; i++) {
        struct ir_type t = ir_type_of(g, i);
        t.varies = c->axes.at[c->in[k][i]];
        map[i] = ir_param(&w, t);
    }
    ir_inline(&w, g, map, map + g->n_params);
    for (uint32_t i = 0; i < g->outputs.count; i++)
        ir_output(&w, ir_pvary(&w, map[g->n_params + i], c->axes.at[c->out[k][i]]));
    uint32_t f = ir_finish_function(&w);
    if (f == IR_NONE)
        return ir_fail(c->b, w.status, "%s", w.message), false;
    c->function[k] = f;
    return true;
}

// floor: a slot that all others vary as much as, or IR_NONE.
static bool settle(struct bodied *c, uint32_t floor)
{
    for (bool grows = true; grows;) {
        grows = false;
        for (int k = 0; k < c->n_bodies; k++)
            grows |= grow(c, k);
        for (uint32_t i = 0; floor != IR_NONE && i < c->axes.count; i++) {
            grows |= (c->axes.at[floor] & ~c->axes.at[i]) != 0;
            c->axes.at[i] |= c->axes.at[floor];
        }
        for (int k = 0; k < c->n_bodies; k++)
            if (!fits(c, k)) {
                if (!widen_body(c, k))
                    return false;
                grows = true;
            }
    }
    return true;
}

// The slots of the parameters or the results of a body.
struct values {
    uint32_t *at, n;
};

static void put(struct values *v, uint32_t slot) { v->at[v->n++] = slot; }

static bool is_inexact(const struct ir_graph *g, ir_id v)
{
    return dtype_is_inexact(ir_dtype_of(g, v));
}

// Results of the first function are slots of their own.
static void bind_results(struct bodied *c, struct values *out)
{
    for (uint32_t i = 0; i < body(c, 0)->outputs.count; i++)
        put(out, new_slot(c));
}

static void bind_operands(int first, int n, struct values *in)
{
    for (int i = 0; i < n; i++)
        put(in, (uint32_t)(first + i));
}

// f: x -> y; rule: x, dx -> dy.
static void bind_custom_jvp(struct bodied *c, struct values *in, struct values *out)
{
    const struct ir_graph *f = body(c, 0);
    bind_operands(0, c->n_in, &in[0]);
    bind_results(c, &out[0]);
    bind_operands(0, c->n_in, &in[1]);
    for (uint32_t i = 0; i < f->n_params; i++)
        if (is_inexact(f, i))
            put(&in[1], in[0].at[i]);
    for (uint32_t i = 0; i < f->outputs.count; i++)
        if (is_inexact(f, f->outputs.at[i]))
            put(&out[1], out[0].at[i]);
}

// f: x -> y; forward: x -> y, r; backward: r, ct of y -> ct of x.
static void bind_custom_vjp(struct bodied *c, struct values *in, struct values *out)
{
    const struct ir_graph *f = body(c, 0);
    bind_operands(0, c->n_in, &in[0]);
    bind_results(c, &out[0]);
    bind_operands(0, c->n_in, &in[1]);
    for (uint32_t i = 0; i < body(c, 1)->outputs.count; i++) {
        bool is_residual = i >= f->outputs.count;
        put(&out[1], is_residual ? new_slot(c) : out[0].at[i]);
        if (is_residual)
            put(&in[2], out[1].at[i]);
    }
    for (uint32_t i = 0; i < f->outputs.count; i++)
        if (is_inexact(f, f->outputs.at[i]))
            put(&in[2], out[0].at[i]);
    for (uint32_t i = 0; i < f->n_params; i++)
        if (is_inexact(f, i))
            put(&out[2], in[0].at[i]);
}

// forward: r, x -> y; backward: r, ct of y -> ct of x.
static void bind_linear_call(struct bodied *c, int n_residuals, struct values *in,
                             struct values *out)
{
    bind_operands(0, c->n_in, &in[0]);
    bind_results(c, &out[0]);
    bind_operands(0, n_residuals, &in[1]);
    for (uint32_t i = 0; i < out[0].n; i++)
        put(&in[1], out[0].at[i]);
    bind_operands(n_residuals, c->n_in - n_residuals, &out[1]);
}

// Binds parameters and results; false where there are not as many as the op wants, which infer*.c
// tells.
static bool bind(struct bodied *c, enum ir_op op, struct values *in, struct values *out,
                 uint32_t *floor)
{
    int first = (int)ir_attr_int_or(c->attrs, IR_KEY_n_consts, 0);
    int n_residuals = (int)ir_attr_int_or(c->attrs, IR_KEY_counts, 0);
    int n_carry = op == IR_scan ? (int)ir_attr_int_or(c->attrs, IR_KEY_n_carry, 0) : 0;
    if (first < 0 || n_carry < 0 || n_residuals < 0 || first > c->n_in ||
        n_carry > c->n_in - first || n_residuals > c->n_in)
        return false;
    switch (op) {
    case IR_scan: // a carry varies over what it does before or after some trip
        bind_operands(0, c->n_in, &in[0]);
        bind_operands(first, n_carry, &out[0]);
        for (uint32_t i = (uint32_t)n_carry; i < body(c, 0)->outputs.count; i++)
            put(&out[0], new_slot(c));
        return true;
    case IR_while: // all vary over what the number of trips does
        if (c->n_bodies != 2)
            return false;
        bind_operands(0, c->n_in, &in[0]);
        bind_operands(0, c->n_in, &in[1]);
        bind_operands(first, c->n_in - first, &out[1]);
        *floor = new_slot(c);
        put(&out[0], *floor);
        return true;
    case IR_cond: // all vary over what the choice does
        if (c->n_in == 0)
            return false;
        bind_results(c, &out[0]);
        for (int k = 0; k < c->n_bodies; k++) {
            bind_operands(1, c->n_in - 1, &in[k]);
            for (uint32_t i = 0; k && i < out[0].n; i++)
                put(&out[k], out[0].at[i]);
        }
        *floor = 0;
        return true;
    case IR_custom_jvp:
        if (c->n_bodies != 2)
            return false;
        bind_custom_jvp(c, in, out);
        return true;
    case IR_custom_vjp:
        if (c->n_bodies != 3)
            return false;
        bind_custom_vjp(c, in, out);
        return true;
    case IR_linear_call:
        if (c->n_bodies != 2)
            return false;
        bind_linear_call(c, n_residuals, in, out);
        return true;
    case IR_linear_solve:
        for (int k = 0; k < c->n_bodies; k++) {
            bind_operands(0, c->n_in, &in[k]);
            bind_operands(n_residuals, c->n_in - n_residuals, &out[k]);
        }
        return true;
    default:
        bind_operands(0, c->n_in, &in[0]);
        bind_results(c, &out[0]);
        return c->n_bodies == 1;
    }
}

// A piece varies over what splits the operand, a result over what splits it.  False as above.
static bool split_slots(struct bodied *c, const struct ir_shard *s)
{
    uint32_t n_in = (uint32_t)c->n_in, n_out = body(c, 0)->outputs.count;
    if (s->n_splits != (int)(n_in + n_out))
        return false;
    for (uint32_t i = 0; i < n_in + n_out; i++)
        c->axes.at[i < n_in ? i : c->out[0][i - n_in]] |= ir_split_set(s, s->split[i]);
    return true;
}

static bool bind_all(struct bodied *c, enum ir_op op, uint32_t *floor)
{
    struct arena *arena = c->b->module->arena;
    struct values *in = arena_array(arena, struct values, c->n_bodies + 1);
    struct values *out = arena_array(arena, struct values, c->n_bodies + 1);
    uint32_t most = 2 * (uint32_t)c->n_in + 1;
    for (int k = 0; k < c->n_bodies; k++)
        most += body(c, k)->n_params + body(c, k)->outputs.count;
    c->in = arena_array(arena, uint32_t *, c->n_bodies + 1);
    c->out = arena_array(arena, uint32_t *, c->n_bodies + 1);
    for (int k = 0; k < c->n_bodies; k++) {
        c->in[k] = in[k].at = arena_array(arena, uint32_t, most);
        c->out[k] = out[k].at = arena_array(arena, uint32_t, most);
    }
    if (c->n_bodies == 0 || !bind(c, op, in, out, floor))
        return false;
    for (int k = 0; k < c->n_bodies; k++)
        if (in[k].n != body(c, k)->n_params || out[k].n != body(c, k)->outputs.count)
            return false;
    return true;
}

static const ir_id *vary_bodies(struct ir_builder *b, enum ir_op op, int n_in, const ir_id *in,
                                const struct ir_attrs **attrs)
{
    struct ir_module *m = b->module;
    struct bodied c = {.b = b, .n_in = n_in, .attrs = *attrs};
    const int64_t *functions = ir_attr_ints(c.attrs, IR_KEY_functions, &c.n_bodies);
    struct ir_shard s;
    uint16_t any = op == IR_shard_map, outside = UINT16_MAX;
    uint32_t floor = IR_NONE;
    c.function = arena_array(m->arena, uint32_t, c.n_bodies + 1);
    for (int i = 0; i < n_in; i++) {
        any |= varies_in(b, in[i]);
        vec_push(m->arena, &c.axes, varies_in(b, in[i]));
    }
    for (int k = 0; k < c.n_bodies; k++) {
        if (functions[k] < 0 || functions[k] >= m->functions.count)
            return in;
        c.function[k] = (uint32_t)functions[k];
        any |= body(&c, k)->names;
    }
    if (!any || !bind_all(&c, op, &floor))
        return in;
    if (op == IR_shard_map) {
        if (!ir_shard_read(m, c.attrs, &s) || !split_slots(&c, &s))
            return in;
        outside = (uint16_t)~ir_grid_set(&s);
    }
    if (!settle(&c, floor))
        return in;
    *attrs = ir_with_functions(m, c.attrs, c.function);
    ir_id *made = arena_copy(m->arena, in, sizeof *in * (size_t)n_in);
    for (int i = 0; i < n_in; i++)
        made[i] = ir_pvary(b, in[i], c.axes.at[i] & outside);
    return made;
}

const ir_id *ir_vary_operands(struct ir_builder *b, enum ir_op op, int n_in, const ir_id *in,
                              const struct ir_attrs **attrs)
{
    if (ir_has_bodies(op))
        return vary_bodies(b, op, n_in, in, attrs);
    if (op == IR_pvary || op == IR_barrier || ir_op_class(op) == IR_CLASS_EFFECT)
        return in;
    uint16_t known = (uint16_t)((1u << b->module->axes.count) - 1);
    return vary_alike(b, n_in, in, ir_exchanges(op) ? ir_over_set(*attrs) & known : 0);
}
