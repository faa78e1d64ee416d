// SPDX-License-Identifier: Apache-2.0
// Graph -> graph transforms.
//
// A transform takes a function of a module by its number and gives another one.  Results are
// memoised in the module on (function, transform, mask), and a call inside a function becomes a
// call of the transformed function, so nested and shared calls stay linear in size.
//
// Masks are arrays of bool, one per parameter or per result.  Tangents and cotangents exist for
// float and complex values only and have their type; a tangent or cotangent known to be zero is
// no value at all (IR_NONE), never a tensor of zeros.
//
// Transforms fail with a status and the message of the thread; outputs are then untouched.
// Thread-safety: as the module, one thread at a time.
#ifndef PASSES_PASSES_H
#define PASSES_PASSES_H

#include "ir/build.h"

// Forward mode.  (x...) -> (y...) becomes
//     (x..., dx of the inputs in nonzero_in...) -> (y..., dy of the results in out_nonzero...)
// out_nonzero (one per result, may be NULL) tells which results have a tangent at all.
jot_status pass_jvp(struct ir_module *m, uint32_t f, const bool *nonzero_in, uint32_t *out_f,
                    bool *out_nonzero);

// Where the linear part of a function finds a value of the other part.
enum pass_residual_from {
    PASS_RESIDUAL_INPUT,  // it is input `index` of the function
    PASS_RESIDUAL_OUTPUT, // it is result `index` of forward
};
struct pass_residual {
    enum pass_residual_from from;
    uint32_t index;
};

// A function in two parts:
//     forward: inputs that are not linear -> results that do not depend on linear ones,
//              further residuals
//     linear:  residuals, linear inputs   -> results that depend on linear inputs
struct pass_split {
    uint32_t forward, linear;
    uint32_t n_residuals;
    const struct pass_residual *residuals; // n_residuals, in the module's arena
    const bool *linear_out;                // by result of the function
};

// Parts of f, a function that is linear in the inputs of linear_in (for fixed others).
jot_status pass_split(struct ir_module *m, uint32_t f, const bool *linear_in,
                      struct pass_split *out);

// The same of pass_jvp(f): forward: x -> y, residuals; linear: residuals, dx -> dy.  linear_out
// is here by result of f and says which dy there are.
jot_status pass_linearize(struct ir_module *m, uint32_t f, const bool *nonzero_in,
                          struct pass_split *out);

// f(residuals..., v...) is linear in v.  The result maps (residuals..., cotangents of the float
// and complex results...) to the cotangents of v.
jot_status pass_transpose(struct ir_module *m, uint32_t f, uint32_t n_residuals,
                          uint32_t *out_f);

// Reverse mode, in one graph:
//     (x..., cotangents of the float and complex results...) -> (y..., cotangents of wrt...)
jot_status pass_vjp(struct ir_module *m, uint32_t f, const bool *wrt, uint32_t *out_f);

// (x...) -> (y..., gradient of result 0 in each input of wrt...).  Result 0 must be a real float
// scalar; other results are carried along.
jot_status pass_value_and_grad(struct ir_module *m, uint32_t f, const bool *wrt,
                               uint32_t *out_f);
// The gradients alone.
jot_status pass_grad(struct ir_module *m, uint32_t f, const bool *wrt, uint32_t *out_f);

// (x...) -> derivatives of every float or complex result in every input of wrt, results outermost;
// a derivative has the shape of the result followed by that of the input.
jot_status pass_jacfwd(struct ir_module *m, uint32_t f, const bool *wrt, uint32_t *out_f);
jot_status pass_jacrev(struct ir_module *m, uint32_t f, const bool *wrt, uint32_t *out_f);
// pass_jacfwd of pass_grad.
jot_status pass_hessian(struct ir_module *m, uint32_t f, const bool *wrt, uint32_t *out_f);

// Maps f over a leading axis of the inputs in batched_in; out_batched (may be NULL) tells which
// results have it.  size may be 0.
jot_status pass_vmap(struct ir_module *m, uint32_t f, const bool *batched_in, int64_t size,
                     uint32_t *out_f, bool *out_batched);

// The same for a function that names the axis, number `axis` of the module: collectives over it become
// what they stand for.  size is that of the axis; PASS_UNNAMED: pass_vmap.
#define PASS_UNNAMED (-1)
jot_status pass_vmap_named(struct ir_module *m, uint32_t f, const bool *batched_in,
                           int64_t size, int axis, uint32_t *out_f, bool *out_batched);

// The same with the mapped axis anywhere: in_axes by input of f, out_axes by result; negative axes
// count from the end of the mapped value, PASS_NO_AXIS is none.  A result without the axis is
// broadcast to an out axis; PASS_NO_AXIS for a result that has it is an error.
#define PASS_NO_AXIS INT32_MIN
jot_status pass_vmap_axes(struct ir_module *m, uint32_t f, const int32_t *in_axes,
                          const int32_t *out_axes, int64_t size, int axis, uint32_t *out_f);

// Derivatives of values of a graph under construction.  x are parameters or `variable` nodes and
// dx values of their types (IR_NONE: zero).  Values that do not depend on x are constants, and the
// x are independent of each other, even when one is computed from another.
// Results are values of b; errors stick to b and give false.

// Whether y is computed from one of x.
bool pass_depends(struct ir_builder *b, ir_id y, int n, const ir_id *x);
// The gradient of y, a real scalar, in each x; zeros where y does not depend on it.
bool pass_gradient_in(struct ir_builder *b, ir_id y, int n, const ir_id *x, ir_id *out);
// The cotangents of each x for that of y.
bool pass_pullback_in(struct ir_builder *b, ir_id y, ir_id ct, int n, const ir_id *x,
                      ir_id *out);
// The directional derivative of y.
bool pass_tangent_in(struct ir_builder *b, ir_id y, int n, const ir_id *x, const ir_id *dx,
                     ir_id *out);
// The derivative of y in x, with the shape of y followed by that of x.
bool pass_jacobian_in(struct ir_builder *b, ir_id y, ir_id x, ir_id *out);

// A scan (ir/control.h) over in, where what its body reads and puts at indices that count with the trips is
// rows; out receives its results.
struct ir_scan;
void pass_scan_rows(struct ir_builder *b, const struct ir_scan *s, int n_in, const ir_id *in,
                    ir_id *out);

// Forms fma from a multiplication with one use whose use is an addition or subtraction, in f32
// and f64.  For the traced graph, before any transform (docs/numerics.md, 1).
uint32_t pass_form_fma(struct ir_module *m, uint32_t f);

// Calls (of every kind) with small bodies, or of functions called once, become their bodies, while
// the result has at most max_nodes nodes.  After all differentiation.
uint32_t pass_inline(struct ir_module *m, uint32_t f, uint32_t max_nodes);

// Convolutions become products of matrices, or those that a routine computes, where there is a library
// that takes them (the params of the routine: base/conv.h); NULL for none.  After all differentiation
// and mapping; before simplification, which finds what is common to them and the layouts around them.
struct pass_conv_library {
    bool (*takes)(const void *ctx, const int64_t *params, uint32_t count);
    const void *ctx;       // one for each library
    bool is_features_last; // the only layout it has; else it has the two with filters first
};
uint32_t pass_expand_convolutions(struct ir_module *m, uint32_t f,
                                  const struct pass_conv_library *library);
// Whether the graph, or a body in it, has one.
bool pass_has_convolutions(const struct ir_graph *g);

// A check after each op that makes a NaN, or also an infinity, which names the op and its place.
// After all differentiation and mapping; before simplification, which merges places.  Checks there
// are tell the trips of the loops around them; without kinds that is all.
enum pass_check { PASS_CHECK_NAN = 1u << 0, PASS_CHECK_INF = 1u << 1 };
uint32_t pass_check_numbers(struct ir_module *m, uint32_t f, unsigned kinds);

// Whiles with a bound become whiles that count.  After all differentiation.
uint32_t pass_count_trips(struct ir_module *m, uint32_t f);

// By value of the body of a loop, whether it is the same in all trips.
bool *pass_find_invariant(const struct ir_graph *g, uint32_t n_consts);
// Whether a gather, at indices that differ, takes more elements in all trips of an array that does not than it has.
bool pass_takes_more(const struct ir_graph *g, const struct ir_node *n,
                     const bool *is_invariant, int64_t trips);
// By operand of a loop, whether it takes more elements of it than that.
bool *pass_taken_more(const struct ir_graph *g, const struct ir_node *loop);
// The body of a loop, which computes elementwise functions of what such gathers take of the arrays.
uint32_t pass_map_before_take(struct ir_module *m, uint32_t f, uint32_t n_consts,
                              int64_t trips);
// What a loop does not change is computed in front of it.  After all differentiation.
uint32_t pass_hoist(struct ir_module *m, uint32_t f);
// The same of parts of constants, before differentiation: cotangents of a part are summed by the loop.
uint32_t pass_hoist_parts(struct ir_module *m, uint32_t f);

// Products that a loop makes trip by trip are made of all trips at once where that is possible.  After
// all differentiation.
uint32_t pass_loop_products(struct ir_module *m, uint32_t f);
// For a GPU: what a loop gives in each trip of folds of its carries is made of all trips at once where nothing else
// mixes its lanes.  After all differentiation.
uint32_t pass_loop_folds(struct ir_module *m, uint32_t f);

// For a GPU: many updates of rows are made in the order of their indices.  After all differentiation.
uint32_t pass_sort_updates(struct ir_module *m, uint32_t f);

// What a trip of a loop computes of its carries is not computed again by the next.  After all
// differentiation, of simplified functions.
uint32_t pass_predictive_commoning(struct ir_module *m, uint32_t f);

// Whiles that end when all lanes have ended as whiles of each lane.  After all differentiation.
uint32_t pass_while_lanes(struct ir_module *m, uint32_t f);

// Gradients of rectifiers look at results that are there.  After all differentiation.
uint32_t pass_relu_masks(struct ir_module *m, uint32_t f);

// Products of half types as products of f32.  After all differentiation.
uint32_t pass_half_products(struct ir_module *m, uint32_t f);

// Long products of few small matrices as sums of the products of parts.  After all differentiation.
uint32_t pass_long_products(struct ir_module *m, uint32_t f);

// Products of f32 that allow it as products of TF32 numbers.  After all differentiation.
uint32_t pass_three_products(struct ir_module *m, uint32_t f);

// Lanes of loops exchange borders once for several trips.  After all differentiation and mapping, of functions
// whose lanes are those of a mesh.
uint32_t pass_deep_halos(struct ir_module *m, uint32_t f);

// f of one device of a mesh whose axes are named axes of the module: collectives over them become
// exchanges between its devices.  The last parameter, i32[rank], is new: where the device is in the mesh.
// After all differentiation and mapping.
jot_status pass_exchange(struct ir_module *m, uint32_t f, int rank, const int64_t *axes,
                         uint32_t *out_f);
// Small exchanges of one kind that do not wait for one another become one.
uint32_t pass_pack_exchanges(struct ir_module *m, uint32_t f);
// Programs for a mesh as programs for one device: a shard_map becomes its body, mapped over each axis of
// the mesh.  After all differentiation and mapping; before whatever else is here.
jot_status pass_unshard(struct ir_module *m, uint32_t f, uint32_t *out_f);

// Nodes that no output and no effect needs, and results of calls that nothing reads, go; canonical
// order.
uint32_t pass_dce(struct ir_module *m, uint32_t f);

// Products of tangents and cotangents as plain ones, and selects where a zero of theirs is one of a
// path that is not taken.  After all differentiation and mapping; pass_simplify starts with it.
uint32_t pass_support(struct ir_module *m, uint32_t f);

// Exact simplification to a fixpoint: folding, identities, common nodes, dead nodes.  After all
// differentiation and mapping: it erases `variable`, `stop_gradient` and derivative rules.
uint32_t pass_simplify(struct ir_module *m, uint32_t f);

#endif
