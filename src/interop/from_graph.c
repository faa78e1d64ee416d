// SPDX-License-Identifier: Apache-2.0
// Functions of a graph as functions of a program, node by node.
#include "interop/from_graph.h"

#include "base/strbuf.h"
#include "ir/control.h"

#define HLO_(name) MLIR_OP_stablehlo_##name

// ---- nodes of no family ----

static void write_constant(struct hlo_node *n)
{
    const struct ir_field *data = ir_field_find(n->n->attrs, IR_KEY_data);
    n->out[0] = hlo_constant(n->w, n->type, data->bytes, data->count);
}

static void write_hint(struct hlo_node *n)
{
    struct hlo_writer *w = n->w;
    uint32_t count = n->n->n_in;
    const struct mlir_type **types = arena_array(w->arena, const struct mlir_type *, count + 1);
    for (uint32_t i = 0; i < count; i++) {
        types[i] = n->in[i]->type;
        n->out[i] = n->in[i];
    }
    if (n->n->op != IR_barrier || !count)
        return;
    const struct mlir_op *op =
        hlo_emit(w, HLO_(optimization_barrier), count, n->in, count, types, NULL, 0, NULL);
    for (uint32_t i = 0; i < count; i++)
        n->out[i] = op->results[i];
}

// A program has nobody to tell.
static void leave_out(struct hlo_node *n) { (void)n; }

static hlo_family *family_of(enum ir_op op)
{
    if (op == IR_exchange)
        return hlo_exchange;
    switch (ir_op_get(op)->op_class) {
    case IR_CLASS_CONST:
        return write_constant;
    case IR_CLASS_MAP:
        return hlo_map;
    case IR_CLASS_LAYOUT:
        return hlo_layout;
    case IR_CLASS_INDEX:
    case IR_CLASS_UPDATE:
        return hlo_index;
    case IR_CLASS_REDUCE:
    case IR_CLASS_ARG:
    case IR_CLASS_CUMULATIVE:
        return hlo_fold;
    case IR_CLASS_CONTRACT:
        return hlo_product;
    case IR_CLASS_LIBRARY:
        return op == IR_conv || op == IR_fft     ? hlo_product
               : op == IR_sort || op == IR_top_k ? hlo_order
                                                 : hlo_library;
    case IR_CLASS_CALL:
    case IR_CLASS_CONTROL:
        return hlo_control;
    case IR_CLASS_HINT:
        return write_hint;
    default:
        return leave_out;
    }
}

// ---- functions ----

// The nodes of g, whose parameters are set; out has its results.
static void write_nodes(struct hlo_writer *w, const struct ir_graph *g, hlo_value *values,
                        hlo_value *out)
{
    ir_for_each_node (g, node) {
        struct hlo_node n = {.w = w, .g = g, .n = node, .out = values + node->out};
        if (node->op == IR_param)
            continue;
        hlo_value *in = arena_array(w->arena, hlo_value, node->n_in + 1);
        for (uint32_t i = 0; i < node->n_in; i++)
            in[i] = values[ir_operand(g, node, i)];
        n.in = in;
        if (node->n_out)
            n.type = hlo_type_of(w, ir_type_of(g, node->out));
        family_of((enum ir_op)node->op)(&n);
    }
    for (uint32_t i = 0; i < g->outputs.count; i++)
        out[i] = values[g->outputs.at[i]];
}

// All parameters of a graph are arguments, but for the last ones, which are these elements.
static const char *write_function(struct hlo_writer *w, const char *name,
                                  const struct ir_graph *g, uint32_t n_in,
                                  const void *const *data)
{
    const struct mlir_type **types =
        arena_array(w->arena, const struct mlir_type *, g->n_params + 1);
    hlo_value *values = arena_array(w->arena, hlo_value, g->values.count + 1);
    hlo_value *out = arena_array(w->arena, hlo_value, g->outputs.count + 1);
    for (uint32_t i = 0; i < g->n_params; i++)
        types[i] = hlo_type_of(w, ir_type_of(g, i));
    struct hlo_function f = hlo_open_function(w, name, n_in, types);
    bool has_coordinates = data && w->mesh_rank;
    if (has_coordinates)
        values[g->n_params - 1] = hlo_coordinates(w, w->mesh_rank, w->mesh);
    for (uint32_t i = 0; i < g->n_params - has_coordinates; i++)
        values[i] = i < n_in ? f.block.block.args[i]
                             : hlo_constant(w, types[i], data[i - n_in],
                                            (size_t)ir_count(w->module, ir_type_of(g, i)) *
                                                jot_dtype_size(ir_dtype_of(g, i)));
    write_nodes(w, g, values, out);
    return hlo_close_function(w, &f, g->outputs.count, out);
}

void hlo_call_body(struct hlo_writer *w, uint32_t number, const hlo_value *in, hlo_value *out)
{
    const struct ir_graph *g = ir_function(w->module, number);
    const struct mlir_type **types =
        arena_array(w->arena, const struct mlir_type *, g->outputs.count + 1);
    if (!w->written[number].name)
        w->written[number].name =
            write_function(w, g->name ? g->name : "body", g, g->n_params, NULL);
    for (uint32_t i = 0; i < g->outputs.count; i++)
        types[i] = hlo_type_of(w, ir_type_of(g, g->outputs.at[i]));
    hlo_call(w, w->written[number].name, g->n_params, in, g->outputs.count, types, out);
}

// ---- what cannot be written ----

struct search {
    struct arena *arena;
    bool *seen; // functions of the module
};

static const char *find_refused(struct search *s, const struct ir_graph *g)
{
    const char *found = NULL;
    ir_for_each_node (g, n) {
        const int64_t *bodies;
        if (n->op == IR_callback) {
            const struct ir_host *h = &g->module->hosts.at[ir_attr_int(n->attrs, IR_KEY_host)];
            const char *where = *h->where ? h->where : ir_where_text(g->module, n->where);
            struct strbuf text = strbuf_make(s->arena);
            strbuf_printf(&text, "%s%s%s calls back into this program", where ? where : "",
                          where ? ": " : "", h->name);
            return text.text;
        }
        int count = ir_bodies_of(n, &bodies);
        for (int i = 0; i < count && !found; i++)
            if (!s->seen[bodies[i]]) {
                s->seen[bodies[i]] = true;
                found = find_refused(s, ir_function(g->module, (uint32_t)bodies[i]));
            }
        if (found)
            return found;
    }
    return NULL;
}

const char *hlo_refusal(struct arena *arena, const struct ir_graph *g)
{
    struct search s = {arena, arena_array(arena, bool, g->module->functions.count + 1)};
    return find_refused(&s, g);
}

void hlo_write_main(struct hlo_writer *w, const char *name, const struct ir_graph *g,
                    uint32_t n_in, const void *const *data)
{
    w->written = arena_array(w->arena, struct hlo_written, w->module->functions.count + 1);
    write_function(w, name, g, n_in, data);
}
