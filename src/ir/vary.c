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

// What the parameters and results of a body vary over.
struct variance {
    uint16_t *in, *out;
};

// f with parameters and results that vary over the axes as well; sets out to what the results do.
static uint32_t widen(struct ir_builder *b, uint32_t f, struct variance *v)
{
    struct ir_module *m = b->module;
    const struct ir_graph *g = ir_function(m, f);
    bool changes = false;
    for (uint32_t i = 0; i < g->n_params; i++) {
        v->in[i] |= ir_type_of(g, i).varies;
        changes |= v->in[i] != ir_type_of(g, i).varies;
    }
    for (uint32_t i = 0; i < g->outputs.count; i++)
        changes |= (v->out[i] | ir_type_of(g, g->outputs.at[i]).varies) !=
                   ir_type_of(g, g->outputs.at[i]).varies;
    if (changes) {
        struct ir_builder w = ir_builder_make(m, g->name, IR_BUILD_PLAIN);
        ir_id *map = arena_array(m->arena, ir_id, g->values.count + 1);
        for (uint32_t i = 0; i < g->n_params; i++) {
            struct ir_type t = ir_type_of(g, i);
            t.varies = v->in[i];
            map[i] = ir_param(&w, t);
        }
        ir_inline(&w, g, map, map);
        for (uint32_t i = 0; i < g->outputs.count; i++)
            ir_output(&w, ir_pvary(&w, map[i], v->out[i]));
        f = ir_finish_function(&w);
        if (f == IR_NONE) {
            ir_fail(b, w.status, "%s", w.message);
            return IR_NONE;
        }
        g = ir_function(m, f);
    }
    for (uint32_t i = 0; i < g->outputs.count; i++)
        v->out[i] = ir_type_of(g, g->outputs.at[i]).varies;
    return f;
}

// A node with bodies.
struct bodied {
    struct ir_builder *b;
    int n_in, n_bodies;
    const ir_id *in;
    const struct ir_attrs *attrs;
    uint16_t *axes;     // by operand
    uint32_t *function; // by body
};

static uint16_t *no_axes(const struct bodied *c, uint32_t n)
{
    return arena_array(c->b->module->arena, uint16_t, n + 1);
}

static const struct ir_graph *body(const struct bodied *c, int k)
{
    return ir_function(c->b->module, c->function[k]);
}

static bool widen_body(struct bodied *c, int k, uint16_t *in, uint16_t *out)
{
    c->function[k] = widen(c->b, c->function[k], &(struct variance){in, out});
    return c->function[k] != IR_NONE;
}

// Sets x[i] and y[i] to the axes of both, and those; whether one of them grows.
static bool join(uint16_t *x, uint16_t *y, uint32_t n, uint16_t axes)
{
    bool grows = false;
    for (uint32_t i = 0; i < n; i++) {
        uint16_t both = x[i] | y[i] | axes;
        grows |= both != x[i] || both != y[i];
        x[i] = y[i] = both;
    }
    return grows;
}

static void vary_call(struct bodied *c)
{
    widen_body(c, 0, c->axes, no_axes(c, body(c, 0)->outputs.count));
}

// A carry varies over what it does before or after some trip.
static void vary_scan(struct bodied *c)
{
    uint16_t *out = no_axes(c, body(c, 0)->outputs.count);
    uint16_t *carries = c->axes + ir_attr_int(c->attrs, IR_KEY_n_consts);
    uint32_t n_carry = (uint32_t)ir_attr_int(c->attrs, IR_KEY_n_carry);
    do {
        if (!widen_body(c, 0, c->axes, out))
            return;
    } while (join(carries, out, n_carry, 0));
}

// A carry varies over what the number of trips does.
static void vary_while(struct bodied *c)
{
    uint32_t n = (uint32_t)c->n_in, n_out = body(c, 1)->outputs.count;
    uint16_t *out = no_axes(c, n_out), *before = no_axes(c, n), test = 0;
    uint16_t *carries = c->axes + ir_attr_int(c->attrs, IR_KEY_n_consts);
    bool grows;
    do {
        memcpy(before, c->axes, n * sizeof *before);
        if (!widen_body(c, 0, c->axes, &test) || !widen_body(c, 1, c->axes, out))
            return;
        grows = join(carries, out, n_out, test);
    } while (grows || memcmp(before, c->axes, n * sizeof *before) != 0);
}

// A result varies over what it does in some branch, and over what the choice does.
static void vary_cond(struct bodied *c)
{
    uint32_t n = (uint32_t)c->n_in, n_out = body(c, 0)->outputs.count;
    uint16_t *out = no_axes(c, n_out), *old_in = no_axes(c, n), *old_out = no_axes(c, n_out);
    for (uint32_t i = 0; i < n_out; i++)
        out[i] = c->axes[0];
    do {
        memcpy(old_in, c->axes, n * sizeof *old_in);
        memcpy(old_out, out, n_out * sizeof *old_out);
        for (int k = 0; k < c->n_bodies; k++)
            if (!widen_body(c, k, c->axes + 1, out))
                return;
    } while (memcmp(old_in, c->axes, n * sizeof *old_in) != 0 ||
             memcmp(old_out, out, n_out * sizeof *old_out) != 0);
}

// A parameter varies over what splits the operand, and a result over what splits it.
static void vary_shard(struct bodied *c)
{
    struct ir_shard s;
    struct ir_module *m = c->b->module;
    uint32_t n_in = (uint32_t)c->n_in, n_out = body(c, 0)->outputs.count;
    if (!ir_shard_read(m, c->attrs, &s) || s.n_splits != (int)(n_in + n_out) ||
        body(c, 0)->n_params != n_in)
        return;
    uint16_t *out = no_axes(c, n_out), grid = ir_grid_set(&s);
    for (uint32_t i = 0; i < n_in; i++)
        c->axes[i] |= ir_split_set(&s, s.split[i]);
    for (uint32_t i = 0; i < n_out; i++)
        out[i] = ir_split_set(&s, s.split[n_in + i]);
    widen_body(c, 0, c->axes, out);
    for (uint32_t i = 0; i < n_in; i++)
        c->axes[i] &= (uint16_t)~grid;
}

// Functions and their derivatives know each other's types: all vary alike.
static void vary_rules(struct bodied *c)
{
    uint16_t all = 0;
    for (int i = 0; i < c->n_in; i++)
        all |= c->axes[i];
    for (int k = 0; k < c->n_bodies; k++) {
        for (uint32_t i = 0; i < body(c, k)->n_params; i++)
            all |= ir_type_of(body(c, k), i).varies;
        for (uint32_t i = 0; i < body(c, k)->outputs.count; i++)
            all |= ir_type_of(body(c, k), body(c, k)->outputs.at[i]).varies;
    }
    for (int k = 0; k < c->n_bodies; k++) {
        uint32_t n_params = body(c, k)->n_params, n_out = body(c, k)->outputs.count;
        uint16_t *in = no_axes(c, n_params), *out = no_axes(c, n_out);
        join(in, in, n_params, all);
        join(out, out, n_out, all);
        if (!widen_body(c, k, in, out))
            return;
    }
    join(c->axes, c->axes, (uint32_t)c->n_in, all);
}

// Whether there are as many parameters and results as operands want; what infer*.c refuses goes there
// as it is.
static bool is_sound(const struct bodied *c, enum ir_op op)
{
    int first = op == IR_cond, n_consts = 0, n_carry = 0;
    const struct ir_field *f;
    if (op == IR_scan || op == IR_while) {
        if (!(f = ir_field_find(c->attrs, IR_KEY_n_consts)) || f->count != 1)
            return false;
        n_consts = (int)f->ints[0];
        f = ir_field_find(c->attrs, IR_KEY_n_carry);
        if (op == IR_scan && (!f || f->count != 1))
            return false;
        n_carry = op == IR_scan ? (int)f->ints[0] : c->n_in - n_consts;
    }
    if (n_consts < 0 || n_carry < 0 || n_consts + n_carry > c->n_in || c->n_in < first ||
        c->n_bodies < 1 + (op == IR_while))
        return false;
    bool is_alike = op == IR_call || op == IR_checkpoint || ir_op_class(op) == IR_CLASS_CONTROL;
    for (int k = 0; k < c->n_bodies; k++) {
        const struct ir_graph *g = body(c, k);
        bool is_test = op == IR_while && k == 0;
        if (is_alike && (int)g->n_params != c->n_in - first)
            return false;
        if (is_test ? g->outputs.count != 1 : (int)g->outputs.count < n_carry)
            return false;
        if (op == IR_while && k == 1 && (int)g->outputs.count != n_carry)
            return false;
        if (op == IR_cond && g->outputs.count != body(c, 0)->outputs.count)
            return false;
    }
    return true;
}

static const ir_id *vary_bodies(struct ir_builder *b, enum ir_op op, int n_in, const ir_id *in,
                                const struct ir_attrs **attrs)
{
    struct ir_module *m = b->module;
    struct bodied c = {.b = b, .n_in = n_in, .in = in, .attrs = *attrs};
    const int64_t *functions = ir_attr_ints(c.attrs, IR_KEY_functions, &c.n_bodies);
    uint16_t any = 0;
    c.axes = no_axes(&c, (uint32_t)n_in);
    c.function = arena_array(m->arena, uint32_t, c.n_bodies + 1);
    for (int i = 0; i < n_in; i++)
        any |= c.axes[i] = varies_in(b, in[i]);
    for (int k = 0; k < c.n_bodies; k++) {
        if (functions[k] < 0 || functions[k] >= m->functions.count)
            return in;
        c.function[k] = (uint32_t)functions[k];
        any |= body(&c, k)->names;
    }
    if ((!any && op != IR_shard_map) || !is_sound(&c, op))
        return in;
    if (op == IR_call || op == IR_checkpoint)
        vary_call(&c);
    else if (op == IR_scan)
        vary_scan(&c);
    else if (op == IR_while)
        vary_while(&c);
    else if (op == IR_cond)
        vary_cond(&c);
    else if (op == IR_shard_map)
        vary_shard(&c);
    else
        vary_rules(&c);
    if (b->status != JOT_OK)
        return in;
    *attrs = ir_with_functions(m, c.attrs, c.function);
    ir_id *made = arena_copy(m->arena, in, sizeof *in * (size_t)n_in);
    for (int i = 0; i < n_in; i++)
        made[i] = ir_pvary(b, in[i], c.axes[i]);
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
