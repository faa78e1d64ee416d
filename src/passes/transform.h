// SPDX-License-Identifier: Apache-2.0
// What the transforms share with each other and with the rules.
#ifndef PASSES_TRANSFORM_H
#define PASSES_TRANSFORM_H

#include "passes/passes.h"

// -- Memo -------------------------------------------------------------------------------------

enum memo_kind {
    MEMO_JVP,
    MEMO_SPLIT,
    MEMO_SPLIT_REPLAY,
    MEMO_TRANSPOSE,
    MEMO_VJP,
    MEMO_VMAP,
    MEMO_RESTRICT,
    MEMO_NEEDS,
    MEMO_SIMPLIFY,
    MEMO_STRIP,
    MEMO_HIDE_CALLBACKS,
    MEMO_SELECT,
    MEMO_NAME_LANE,
    MEMO_CHECK_NUMBERS,
    MEMO_COUNT_TRIPS,
    MEMO_HALF_PRODUCTS,
    MEMO_LONG_PRODUCTS,
    MEMO_HOIST,
    MEMO_HOIST_PARTS,
    MEMO_LOOP_PRODUCTS,
    MEMO_LOOP_FOLDS,
    MEMO_WHILE_LANES,
    MEMO_PREDICTIVE_COMMONING,
    MEMO_SORT_UPDATES,
    MEMO_DEEP_HALOS,
    MEMO_EXPAND,
    MEMO_EXPAND_INSIDE,
    MEMO_EXPAND_CONV,
    MEMO_GUARDED,
    MEMO_SUPPORT,
    MEMO_SUPPORT_WANTED,
    MEMO_SUPPORT_GUARDS,
    MEMO_UNNAME,
    MEMO_PACK_EXCHANGES,
    MEMO_UNSHARD,
    MEMO_SOURCES,
};
struct memo_key {
    enum memo_kind kind;
    uint32_t f;
    int64_t number; // what the mask does not say
    uint32_t axis;  // the same: 1 + a named axis
    uint32_t n;
    const bool *mask;
};
// The result kept for the key, or NULL.
const void *pass_memo_find(const struct ir_module *m, const struct memo_key *key);
// Keeps a result, which lives in the module's arena.  The mask is copied.
void pass_memo_add(struct ir_module *m, const struct memo_key *key, const void *result);
// The same for a result that is a function; returns it.
uint32_t pass_memo_add_function(struct ir_module *m, const struct memo_key *key, uint32_t f);

// -- Graphs -----------------------------------------------------------------------------------

static inline bool pass_is_inexact(struct ir_type t) { return dtype_is_inexact(ir_dtype(t)); }

// Fails with the message of a builder.
jot_status pass_builder_status(const struct ir_builder *b);
// The built graph as a function, or the builder's failure.
jot_status pass_finish(struct ir_builder *b, uint32_t *out_f);
// A parameter for each parameter of g whose mask is `which` (mask NULL: all); their ids in out[]
// by parameter of g, others untouched.
void pass_copy_params(struct ir_builder *b, const struct ir_graph *g, const bool *mask,
                      bool which, ir_id *out);
// The node of g again, over the values of map; its results go to map.
void pass_copy_node(struct ir_builder *b, const struct ir_graph *g, const struct ir_node *n,
                    ir_id *map);
// The parameters and nodes of g again, as values of map; and an output for each of g's.
void pass_copy_values(struct ir_builder *b, const struct ir_graph *g, ir_id *map);
void pass_copy_outputs(struct ir_builder *b, const struct ir_graph *g, const ir_id *map);
// Whether any result of the node is marked.
bool pass_is_marked(const bool *values, const struct ir_node *n);
// n values, all IR_NONE.
ir_id *pass_no_values(struct ir_module *m, uint32_t n);
// How often each value of g is read or given.
uint32_t *pass_count_uses(struct ir_module *m, const struct ir_graph *g);
// Whether it pays to keep the results of the node instead of computing them again (hoist.c).
bool pass_is_dear(const struct ir_graph *g, const struct ir_node *n);

// -- Effects ----------------------------------------------------------------------------------

// f without what it does beside computing its results.
uint32_t pass_strip_effects(struct ir_module *m, uint32_t f);
// Whether f may be computed a second time: it has no callbacks with results.
bool pass_is_repeatable(struct ir_module *m, uint32_t f);
// ir_rebuild of a node without its effects; IR_NONE of one that has no results.  The same with
// operands and results in map.
ir_id pass_rebuild_stripped(struct ir_builder *b, const struct ir_graph *g,
                            const struct ir_node *n, const ir_id *in);
void pass_copy_stripped(struct ir_builder *b, const struct ir_graph *g, const struct ir_node *n,
                        ir_id *map);

// -- Branches (select.c) ----------------------------------------------------------------------

// The cond n over the operands in: all branches, and selects.  Operands in hidden (by operand,
// may be NULL) have no derivatives in branches that are not taken.
void pass_select_branches(struct ir_builder *b, const struct ir_node *n, const ir_id *in,
                          const bool *hidden, ir_id *out);
// What a scan of lanes computes, for all of them at once: a function of its operands.
jot_status pass_spread_lanes(struct ir_module *m, const struct ir_node *n, uint32_t *out_f);

// -- Forward mode -----------------------------------------------------------------------------

// Pushes tangents through nodes, in order.  primal and tangent are by value of g.  With in_place
// g is the graph that b builds and values stand for themselves.
struct jvp_sweep {
    struct ir_builder *b;
    const struct ir_graph *g;
    ir_id *primal, *tangent;
    bool in_place;
};

// The graph of pass_jvp as it was built: value v of g is value primal[v] of it.
jot_status pass_jvp_graph(struct ir_module *m, const struct ir_graph *g, const bool *nonzero_in,
                          struct ir_graph **out_g, ir_id *primal, bool *out_nonzero);

// Sets, by value of g, those that no result depends on, though it is computed with them (shift.c).
void pass_find_shifts(const struct ir_graph *g, bool *is_shift);

// -- Splitting --------------------------------------------------------------------------------

// g with each node either linear (all results depend linearly on linear inputs) or not: mixed calls
// are split.  map, if not NULL, gives the values of g in it.
struct unzipped {
    struct ir_graph *g;
    bool *linear; // by value
};
jot_status pass_unzip(struct ir_module *m, const struct ir_graph *g, const bool *linear_in,
                      ir_id *map, struct unzipped *out);

// f as pass_split has it, but with inputs as the only residuals: the linear part computes again
// what else it needs.
jot_status pass_split_replay(struct ir_module *m, uint32_t f, const bool *linear_in,
                             struct pass_split *out);

// -- Reverse mode -----------------------------------------------------------------------------

// Pulls cotangents back through the linear nodes of g.  The caller sets value for the known
// values it has (at least the parameters that are not linear), cotangent for results, and needed
// for values that it wants built beside those that linear nodes read.  Afterwards cotangent holds
// those of the linear parameters.
struct transpose_sweep {
    struct ir_builder *b;
    const struct ir_graph *g;
    const bool *linear;
    ir_id *value, *cotangent;
    bool *needed;
    bool keeps_effects; // of nodes that are not linear; otherwise they are not done again
};
void pass_transpose_sweep(struct transpose_sweep *s);

// (inputs not in linear_in..., cotangents of results in ct_in..., sums of inputs in sum_in...) ->
// cotangents of the linear inputs; out_nonzero tells, by input of f, which there are.  The cotangent
// of an input in sum_in, which may be NULL for none, is added to the sum that is handed over.
jot_status pass_transpose_function(struct ir_module *m, uint32_t f, const bool *linear_in,
                                   const bool *ct_in, const bool *sum_in, uint32_t *out_f,
                                   bool *out_nonzero);

// -- Mapping ----------------------------------------------------------------------------------

// pass_vmap with all results mapped.
jot_status pass_vmap_all(struct ir_module *m, uint32_t f, const bool *batched_in, int64_t size,
                         uint32_t *out_f);

// -- Simplification ---------------------------------------------------------------------------

// A dot_general node over in, of the type, when one operand is the basis of a Jacobian; or IR_NONE.
ir_id pass_contract_basis(struct ir_builder *b, const struct ir_node *n, const ir_id *in,
                          struct ir_type type);

// A select of arrays that are updated in a few elements, as updates in lanes (g, uses: of n, map: to
// b); or IR_NONE.
ir_id pass_mask_updates(struct ir_builder *b, const struct ir_graph *g, const uint32_t *uses,
                        const ir_id *map, const struct ir_node *n);

// A scatter over in with the promise that no two updates are of one element, where its indices tell; or IR_NONE.
ir_id pass_unique_updates(struct ir_builder *b, const struct ir_node *n, const ir_id *in);

// A loop or a branch over in, with simplified bodies, as few operands and results as may be, or
// none of it; out receives what stands for its results.
void pass_simplify_control(struct ir_builder *b, const struct ir_node *n, const ir_id *in,
                           ir_id *out);

// f with loops over the same operands, and branches, in one where that is possible.
uint32_t pass_merge_control(struct ir_module *m, uint32_t f);

// -- Jacobians --------------------------------------------------------------------------------

// The derivative of y in x from a function (known..., dx) -> dy that is linear in dx.  in holds
// the known values and has room for one more.
ir_id pass_jacobian_of_linear(struct ir_builder *b, uint32_t linear, uint32_t n_known,
                              ir_id *in, struct ir_type y, struct ir_type x);

#endif
