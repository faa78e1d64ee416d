// SPDX-License-Identifier: Apache-2.0
// One run of a function written down as a graph: trips one after the other, the branch that is
// taken, calls in place.  What it computes is known while it is built, so tests and indices are.
#include "random/programs.h"

#include "ir/control.h"

struct unroll {
    struct ir_builder b;
    uint32_t nodes; // that are computed
    struct ir_tensor *x;
    uint32_t capacity;
};

static struct ir_tensor *value_of(struct unroll *u, ir_id v)
{
    const struct ir_graph *g = u->b.graph;
    if (g->values.count > u->capacity) {
        uint32_t capacity = 2 * g->values.count;
        struct ir_tensor *x = arena_array(u->b.module->arena, struct ir_tensor, capacity);
        if (u->capacity)
            memcpy(x, u->x, u->capacity * sizeof *x);
        u->x = x;
        u->capacity = capacity;
    }
    for (; u->nodes < g->nodes.count; u->nodes++) {
        const struct ir_node *n = &g->nodes.at[u->nodes];
        struct ir_tensor *in = arena_array(u->b.module->arena, struct ir_tensor, n->n_in + 1);
        for (uint32_t i = 0; i < n->n_in; i++)
            in[i] = u->x[ir_operand(g, n, i)];
        if (n->op != IR_param &&
            ir_eval_node(u->b.module->arena, g, n, in, u->x + n->out) != JOT_OK)
            u->b.status = JOT_ERR_ARGUMENT;
    }
    return &u->x[v];
}

static void unroll_graph(struct unroll *u, const struct ir_graph *g, const ir_id *in,
                         ir_id *out);

static ir_id row(struct unroll *u, ir_id rows, int64_t t)
{
    struct ir_builder *b = &u->b;
    struct ir_type type = ir_type_in(b, rows);
    int64_t starts[IR_MAX_RANK] = {t}, limits[IR_MAX_RANK];
    memcpy(limits, ir_dims(b->module, type), type.rank * sizeof *limits);
    limits[0] = t + 1;
    return ir_reshape(b, ir_slice(b, rows, starts, limits, NULL), type.rank - 1, limits + 1);
}

static ir_id stack(struct unroll *u, struct ir_type type, int64_t n, const ir_id *rows)
{
    struct ir_builder *b = &u->b;
    int64_t dims[IR_MAX_RANK] = {1};
    memcpy(dims + 1, ir_dims(b->module, type) + 1, (type.rank - 1u) * sizeof *dims);
    ir_id *parts = arena_array(b->module->arena, ir_id, (size_t)n + 1);
    for (int64_t i = 0; i < n; i++)
        parts[i] = ir_reshape(b, rows[i], type.rank, dims);
    return n ? ir_concatenate(b, (int)n, parts, 0) : ir_zeros(b, type);
}

static void unroll_scan(struct unroll *u, const struct ir_graph *g, const struct ir_node *n,
                        ir_id *in, ir_id *out)
{
    struct arena *arena = u->b.module->arena;
    struct ir_scan s = ir_scan_of(n);
    const struct ir_graph *body = ir_function(g->module, s.body);
    int n_rows = (int)body->outputs.count - s.n_carry, first = s.n_consts + s.n_carry;
    ir_id *x = arena_copy(arena, in, (n->n_in + 1) * sizeof *x);
    ir_id *y = arena_array(arena, ir_id, body->outputs.count + 1);
    ir_id *rows = arena_array(arena, ir_id, (size_t)(n_rows * s.length) + 1);
    for (int64_t i = 0; i < s.length && u->b.status == JOT_OK; i++) {
        int64_t t = s.reverse ? s.length - 1 - i : i;
        for (uint32_t k = (uint32_t)first; k < n->n_in; k++)
            x[k] = row(u, in[k], t);
        unroll_graph(u, body, x, y);
        memcpy(x + s.n_consts, y, (size_t)s.n_carry * sizeof *x);
        for (int k = 0; k < n_rows; k++)
            rows[k * s.length + t] = y[s.n_carry + k];
    }
    memcpy(out, x + s.n_consts, (size_t)s.n_carry * sizeof *x);
    for (int k = 0; k < n_rows && u->b.status == JOT_OK; k++)
        out[s.n_carry + k] = stack(u, ir_type_of(g, n->out + (ir_id)(s.n_carry + k)), s.length,
                                   rows + k * s.length);
}

static void unroll_while(struct unroll *u, const struct ir_graph *g, const struct ir_node *n,
                         ir_id *in, ir_id *out)
{
    struct ir_while w = ir_while_of(n);
    ir_id goes_on;
    for (int64_t trips = 0; w.max_trips == IR_NO_BOUND || trips < w.max_trips; trips++) {
        unroll_graph(u, ir_function(g->module, w.test), in, &goes_on);
        if (u->b.status != JOT_OK || !*(const char *)value_of(u, goes_on)->data)
            break;
        unroll_graph(u, ir_function(g->module, w.body), in, out);
        memcpy(in + w.n_consts, out, n->n_out * sizeof *in);
    }
    memcpy(out, in + w.n_consts, n->n_out * sizeof *in);
}

static void unroll_node(struct unroll *u, const struct ir_graph *g, const struct ir_node *n,
                        ir_id *in, ir_id *out)
{
    const int64_t *branches;
    if (n->op == IR_scan) {
        unroll_scan(u, g, n, in, out);
    } else if (n->op == IR_while) {
        unroll_while(u, g, n, in, out);
    } else if (n->op == IR_cond) {
        int64_t last = ir_bodies_of(n, &branches) - 1;
        int64_t i = *(const int32_t *)value_of(u, in[0])->data;
        i = i < 0 ? 0 : i > last ? last : i;
        unroll_graph(u, ir_function(g->module, (uint32_t)branches[i]), in + 1, out);
    } else if (ir_op_class((enum ir_op)n->op) == IR_CLASS_CALL) {
        unroll_graph(u, ir_body(g, n, 0), in, out);
    } else if (ir_op_class((enum ir_op)n->op) != IR_CLASS_EFFECT) {
        ir_id v = ir_rebuild(&u->b, g, n, in);
        for (uint32_t i = 0; i < n->n_out; i++)
            out[i] = v + i;
    }
}

static void unroll_graph(struct unroll *u, const struct ir_graph *g, const ir_id *in,
                         ir_id *out)
{
    ir_id *map = arena_array(u->b.module->arena, ir_id, g->values.count + 1);
    memcpy(map, in, g->n_params * sizeof *map);
    ir_for_each_node (g, n) {
        ir_id *operands = arena_array(u->b.module->arena, ir_id, n->n_in + 1);
        for (uint32_t i = 0; i < n->n_in; i++)
            operands[i] = map[ir_operand(g, n, i)];
        if (n->op != IR_param)
            unroll_node(u, g, n, operands, map + n->out);
        if (u->b.status != JOT_OK)
            return;
    }
    for (uint32_t i = 0; i < g->outputs.count; i++)
        out[i] = map[g->outputs.at[i]];
}

uint32_t program_unroll(struct ir_module *m, uint32_t f, const struct ir_tensor *in)
{
    const struct ir_graph *g = ir_function(m, f);
    struct unroll u = {.b = ir_builder_make(m, "unrolled", IR_BUILD_PLAIN)};
    ir_id *x = arena_array(m->arena, ir_id, g->n_params + 1);
    ir_id *y = arena_array(m->arena, ir_id, g->outputs.count + 1);
    for (uint32_t i = 0; i < g->n_params; i++) {
        x[i] = ir_param(&u.b, ir_type_of(g, i));
        *value_of(&u, x[i]) = in[i];
    }
    unroll_graph(&u, g, x, y);
    for (uint32_t i = 0; i < g->outputs.count && u.b.status == JOT_OK; i++)
        ir_output(&u.b, y[i]);
    return u.b.status == JOT_OK ? ir_finish_function(&u.b) : IR_NONE;
}
