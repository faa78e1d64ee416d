// SPDX-License-Identifier: Apache-2.0
// Named axes: what varies over which, and the ops by which lanes of a map exchange values.
//
// A value of a graph whose type varies over an axis may differ from lane to lane of the map, or from
// device to device of the mesh, that has the axis; any other is the same in all.  An op joins the sets
// of its operands, and the builder puts `pvary` in front of an operand that is the same where another
// one varies, so that its cotangent is a sum over the lanes: pvary and psum are each other's
// transposes.  Constants need none.
//
//     pvary x             x, seen as varying over the axes too
//     psum, pmax, pmin x  of the x of all lanes along the axes: does not vary over them
//     all_gather x        y[k] = x of lane k: does not vary over them
//     psum_scatter x      the sum over the lanes of x[own number]
//     all_to_all x        y[k] = x[own number] of lane k
//     ppermute x          that of the lane which the pairs name, zeros where they name none
//     axis_index          own number along the one axis, i32[]
//
// The attribute `over` lists the axes, the slowest first: with several, the number of a lane counts in
// row-major order.
//
// In a program that each device of a mesh runs no axis has a name, and all of them but pvary and axis_index
// have become `exchange` (base/collective.h), whose rows lie along axis 0 as well.
#ifndef IR_COLLECTIVE_H
#define IR_COLLECTIVE_H

#include "base/collective.h"
#include "ir/build.h"

// The axes of a collective, how many lanes there are along them, and the axes as a set.
const int64_t *ir_over(const struct ir_attrs *a, int *n);
int64_t ir_lanes_over(const struct ir_module *m, const struct ir_attrs *a);
uint16_t ir_over_set(const struct ir_attrs *a);
// "i", "i and j", of a set, in the module's arena.
const char *ir_axes_text(struct ir_module *m, uint16_t axes);

static inline int64_t ir_axis_size(const struct ir_module *m, int64_t axis)
{
    return m->axes.at[axis].size;
}

ir_id ir_collective(struct ir_builder *b, enum ir_op op, ir_id x, int n, const int64_t *over);
// pairs: from and to of n_pairs.
ir_id ir_ppermute(struct ir_builder *b, ir_id x, int n, const int64_t *over, int n_pairs,
                  const int64_t *pairs);
ir_id ir_axis_index(struct ir_builder *b, int64_t axis);
// The number of a lane along several axes, the slowest first.
ir_id ir_lane_number(struct ir_builder *b, int n, const int64_t *over);
// params: as collective_read takes them.
ir_id ir_exchange(struct ir_builder *b, ir_id x, int rank, const int64_t *mesh, int n_params,
                  const int64_t *params);
// What an exchange is; NULL, or what is wrong with it.
const char *ir_exchange_read(const struct ir_attrs *a, struct collective *out);
// x, varying over the axes as well; and its sum over them.
ir_id ir_pvary(struct ir_builder *b, ir_id x, uint16_t axes);
ir_id ir_psum(struct ir_builder *b, ir_id x, uint16_t axes);

// Whether lanes exchange something by the op: all collectives but pvary and axis_index.
static inline bool ir_exchanges(enum ir_op op)
{
    return ir_op_class(op) == IR_CLASS_COLLECTIVE && op != IR_pvary && op != IR_axis_index;
}
// The named axes of a node and of its bodies; of its results too; those along which lanes exchange
// something.
uint16_t ir_axes_inside(const struct ir_graph *g, const struct ir_node *n);
uint16_t ir_axes_named(const struct ir_graph *g, const struct ir_node *n);
uint16_t ir_axes_exchanged(const struct ir_graph *g, const struct ir_node *n);
// The first node of g, or of a body in it, that exchanges something along one of the axes.
const struct ir_node *ir_exchange_find(const struct ir_graph *g, uint16_t axes);

// What the builder does with a node before it is inferred: operands that have to vary alike do, and so
// do the parameters and results of bodies, carries by a fixpoint.  Gives the operands.
const ir_id *ir_vary_operands(struct ir_builder *b, enum ir_op op, int n_in, const ir_id *in,
                              const struct ir_attrs **attrs);

#endif
