// SPDX-License-Identifier: Apache-2.0
// Graphs, the functions of a module.
//
// A graph is a closed pure function: typed parameters, nodes in topological order, outputs.  Nodes
// and values are dense 32-bit numbers, so side tables are arrays.  The first n_params nodes are
// the parameters, and value i < n_params is parameter i.
//
// Nodes with effects are results too: they are kept, and happen in the order in which they
// stand.  A node whose body has effects has them itself.
//
// A module owns one arena; graphs, types and attributes live in it and go with it.  A graph being
// built belongs to a builder (build.h); ir_function_add makes it a function of the module, and
// from then on it is not changed.  Two graphs with equal content become one function.
//
// Thread-safety: a module belongs to one thread at a time.
#ifndef IR_GRAPH_H
#define IR_GRAPH_H

#include "base/arena.h"
#include "base/hash.h"
#include "base/vec.h"
#include "ir/attr.h"
#include "ir/ops.h"
#include "ir/type.h"
#include "jot/callback.h"
#include "jot/status.h"

#include <assert.h>

typedef uint32_t ir_id; // a value of a graph
#define IR_NONE UINT32_MAX

struct ir_node {
    uint16_t op;    // enum ir_op
    uint16_t n_out; // results out .. out + n_out - 1
    uint32_t n_in;
    uint32_t in; // first operand, in graph->operands
    ir_id out;
    uint32_t where; // set of source locations, 0 none
    const struct ir_attrs *attrs;
};

struct ir_value {
    struct ir_type type;
    uint32_t node; // that computes it
};

struct ir_graph {
    struct ir_module *module;
    const char *name; // for printing
    uint32_t n_params;
    VEC(struct ir_node) nodes;
    VEC(struct ir_value) values;
    VEC(ir_id) operands;
    VEC(ir_id) outputs;
    uint64_t hash;          // of the content; set when it is a function
    bool has_effects;       // the same
    uint32_t control_depth; // the same: loops and branches in one another
    // Named axes, the same: those of its types and collectives, and of its bodies; those along which
    // its lanes exchange something.
    uint16_t names, exchanges;
};

// A place in the user's source, "file:line: call", and the rest of a set of them.
struct ir_where {
    const char *text;
    uint32_t next; // 0: no more
};

#define IR_HOST_UNNAMED "callback"

// A C function that graphs call (jot/debug.h).
struct ir_host {
    const char *name;  // in messages; IR_HOST_UNNAMED: none
    const char *where; // "prog.c:12: jot_callback", or ""
    jot_callback_function *call;
    // Borrowed, and the same by address; or, with ctx_bytes, a copy, and the same by content.
    void *ctx;
    size_t ctx_bytes;
    bool maps_batch;  // mapped by one call over all lanes; otherwise a call for each lane
    bool is_told;     // a message of its failure tells trips and lanes
    bool names_lanes; // it is called with the numbers of lanes (struct ir_lane_call)
};

struct ir_memo; // results of transforms, private to passes

struct ir_module {
    struct arena *arena;
    VEC(int64_t *) shapes; // rank first, then the extents
    struct hash_table shape_table;
    VEC(struct ir_axis) axes; // that types and collectives name
    VEC(struct ir_attrs *) attrs;
    struct hash_table attr_table;
    VEC(struct ir_graph *) functions;
    struct hash_table function_table;
    VEC(struct ir_where) wheres;
    struct hash_table where_table;
    VEC(struct ir_host) hosts;
    struct ir_memo *memo;
    bool is_unguarded;   // zeros of derivatives multiply like numbers: docs/numerics.md, 10
    uint64_t nodes_made; // by all builders of the module: what linearity tests count
};

// NULL when memory is out.
struct ir_module *ir_module_create(void);
void ir_module_release(struct ir_module *m); // NULL is fine

// Adds the graph, or finds the function with the same content.  Returns its number.
uint32_t ir_function_add(struct ir_module *m, struct ir_graph *g);
static inline struct ir_graph *ir_function(const struct ir_module *m, uint32_t f)
{
    return m->functions.at[f];
}
// Structural equality and hash: same nodes, types, attributes, outputs.  Names and places do not
// count; function numbers do.
bool ir_graph_equal(const struct ir_graph *a, const struct ir_graph *b);
// The content of a graph and of the functions it uses.  Where it calls functions of this process their addresses
// are a part of it; `across` has their names and places alone, which all processes of a program have.
struct hash128 ir_graph_key(const struct ir_graph *g);
struct hash128 ir_graph_key_across(const struct ir_graph *g);

static inline const struct ir_node *ir_node_of(const struct ir_graph *g, ir_id v)
{
    return &g->nodes.at[g->values.at[v].node];
}
static inline const ir_id *ir_operands(const struct ir_graph *g, const struct ir_node *n)
{
    return n->n_in ? g->operands.at + n->in : NULL;
}
static inline ir_id ir_operand(const struct ir_graph *g, const struct ir_node *n, uint32_t i)
{
    assert(i < n->n_in);
    return g->operands.at[n->in + i];
}
// Whether it is a zero, also one that is repeated.
bool ir_is_zero(const struct ir_graph *g, ir_id v);
static inline struct ir_type ir_type_of(const struct ir_graph *g, ir_id v)
{
    return g->values.at[v].type;
}
static inline const int64_t *ir_dims_of(const struct ir_graph *g, ir_id v)
{
    return ir_dims(g->module, g->values.at[v].type);
}
static inline int ir_rank_of(const struct ir_graph *g, ir_id v)
{
    return g->values.at[v].type.rank;
}
static inline jot_dtype ir_dtype_of(const struct ir_graph *g, ir_id v)
{
    return (jot_dtype)g->values.at[v].type.dtype;
}
// Its elements.
static inline int64_t ir_count_of(const struct ir_graph *g, ir_id v)
{
    return ir_count(g->module, ir_type_of(g, v));
}
// Function i of a node with bodies.
static inline struct ir_graph *ir_body(const struct ir_graph *g, const struct ir_node *n, int i)
{
    return ir_function(g->module, (uint32_t)ir_field_find(n->attrs, IR_KEY_functions)->ints[i]);
}

// Whether the node does something beside computing its results.
bool ir_has_effect(const struct ir_graph *g, const struct ir_node *n);

#define ir_for_each_node(g, n)                                                                 \
    for (const struct ir_node *n = (g)->nodes.at, *n##_end_ = n ? n + (g)->nodes.count : n;    \
         n < n##_end_; n++)

// The number of the host in the table, where equal ones are one.  A name, and a context with
// bytes, are copied.
uint32_t ir_host_add(struct ir_module *m, const struct ir_host *host);

// The set that holds one place; 0 for NULL.  The text is copied.
uint32_t ir_where_make(struct ir_module *m, const char *text);
// The union of two sets.
uint32_t ir_where_merge(struct ir_module *m, uint32_t a, uint32_t b);
// The first place of a set, or NULL.
const char *ir_where_text(const struct ir_module *m, uint32_t where);

// A copy with nodes numbered depth-first from the effects, in order, and the outputs, by operand
// position, without what none of them needs; parameters stay.  The same source gives the same
// graph under every compiler.
struct ir_graph *ir_canonical(const struct ir_graph *g);

// Text form (print.c, parse.c).  Printing a graph prints the functions it uses before it.
void ir_graph_print(struct strbuf *s, const struct ir_graph *g);
const char *ir_graph_text(const struct ir_graph *g); // in the module's arena
// Parses one module text into m and returns the last function in *out_g.  On failure the message
// names line and column.
jot_status ir_graph_parse(struct ir_module *m, const char *text, struct ir_graph **out_g);

// Checks every rule of the graph and reports every fault: returns the number of faults, one line
// each in *report (may be NULL).
int ir_verify(const struct ir_graph *g, struct strbuf *report);

#endif
