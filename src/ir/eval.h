// SPDX-License-Identifier: Apache-2.0
// The reference evaluator: slow, obvious, every op and dtype, the arithmetic of docs/numerics.md.
// It folds constants and it is the oracle of every backend.
#ifndef IR_EVAL_H
#define IR_EVAL_H

#include "ir/graph.h"

// Dense row-major elements of the type; zero-size tensors may have data NULL.
struct ir_tensor {
    struct ir_type type;
    void *data;
};

// Runs g on in[n_params]; out[outputs] receive tensors allocated in the arena.
jot_status ir_eval(struct arena *arena, const struct ir_graph *g, const struct ir_tensor *in,
                   struct ir_tensor *out);

// Runs g in all lanes along the n named axes, which it may name, in row-major order of these: in[lane] and
// out[lane] are those of a lane.
jot_status ir_eval_lanes(struct arena *arena, const struct ir_graph *g, int n_axes,
                         const int64_t *axes, struct ir_tensor *const *in,
                         struct ir_tensor *const *out);

// One node on given operands.
jot_status ir_eval_node(struct arena *arena, const struct ir_graph *g, const struct ir_node *n,
                        const struct ir_tensor *in, struct ir_tensor *out);

// A call of a host: its operands; counts that messages tell, trips of the loops around it and then
// numbers of lanes, each the outermost first; its results.
struct ir_host_call {
    int lanes; // axes of operands and results that are lanes
    int n_in, n_trips, n_named, n_out;
    const int64_t *axes; // where the numbers of lanes stand among the axes of lanes
};
// What a host is called with: one of jot's own may look beyond the call.
struct ir_lane_call {
    jot_callback_call call;
    int n_named; // lanes that it is run for one after the other,
    const int64_t *axes;
    const jot_callback_array *named; // each an i64[]
};
struct ir_host_call ir_host_call_of(const struct ir_attrs *attrs, int n_in, int n_out);
// A failure without a message gets one.
jot_status ir_host_call(const struct ir_host *h, const struct ir_host_call *c,
                        const jot_callback_array *all);

// The same for a node that is not in a graph: op, attributes, result types.
jot_status ir_eval_op(struct arena *arena, struct ir_module *m, enum ir_op op,
                      const struct ir_attrs *attrs, int n_in, const struct ir_tensor *in,
                      int n_out, const struct ir_type *types, struct ir_tensor *out);

#endif
