// SPDX-License-Identifier: Apache-2.0
// Derivative and batching rules of ops, named by the words of ops.def, and what they work on.
//
// A rule sees one node of the source graph at a time.  Values in x, dx, y, ct are of the graph
// being built (b); IR_NONE is a tangent or cotangent that is zero.
#ifndef PASSES_RULES_RULES_H
#define PASSES_RULES_RULES_H

#include "ir/build.h"
#include "passes/passes.h"

// Tangents of the results of a node.  A rule is called only if some operand has a tangent and some
// result is float or complex; it sets dy.  Nodes with bodies set y too; all others find their
// results in y.  For class MAP dy may be smaller than the result: it is broadcast afterwards.
struct jvp {
    struct ir_builder *b;
    const struct ir_graph *g; // that holds the node
    struct ir_node n;         // a copy: g may be the graph that grows
    ir_id *x, *dx;            // operands and tangents
    ir_id *y, *dy;            // results and tangents
};

// Cotangents of the linear operands of a node of a graph in which each node is either linear or
// not.  Called only if ct of some result is not zero.
struct transpose {
    struct ir_builder *b;
    const struct ir_graph *g; // a finished graph: types of operands and results
    const struct ir_node *n;
    const bool *linear; // by value of g
    ir_id *x;           // operands that are not linear; IR_NONE for the others
    const ir_id *ct;    // of the results
    ir_id *cotangent;   // by value of g, sums so far
};

// Adds to the cotangent of operand i, summing over the axes along which the operand was broadcast.
// Does nothing for operands that are not linear and for IR_NONE.
void transpose_give(struct transpose *c, uint32_t i, ir_id ct);
// The same for a node with bodies that are handed the sum so far and go on with it: the sum of
// operand i, or zeros, of which the node gives what it has become.  For sums that are long and whole
// (accumulate.c): what a body adds at some elements of one takes as long as these; added up apart from
// it, as the whole.
ir_id transpose_take_sum(struct transpose *c, uint32_t i);
// Whether there is such a sum.
bool transpose_has_sum(const struct transpose *c, uint32_t i);
bool transpose_is_linear(const struct transpose *c, uint32_t i);
struct ir_type transpose_type(const struct transpose *c, uint32_t i); // of operand i
// The cotangent of result i, zeros made where it is IR_NONE.
ir_id transpose_instantiate(struct transpose *c, uint32_t i);

// A node over a leading axis, called only if some operand has it, or the node names it.  Sets y and
// y_batched.
struct batch {
    struct ir_builder *b;
    const struct ir_graph *g; // a finished graph: types without the axis
    const struct ir_node *n;
    int64_t size;
    int axis; // of a named map, its number; or PASS_UNNAMED
    ir_id *x;
    bool *batched;
    ir_id *y;
    bool *y_batched; // true for all results that may have it unless the rule says otherwise
};

struct ir_type batch_type(const struct batch *c, uint32_t i); // of operand i without the axis
// Whether a value of the type can have it: of a named map, what varies over the axis.
static inline bool batch_may_have_axis(int axis, struct ir_type t)
{
    return axis < 0 || t.varies >> axis & 1;
}
// f mapped over the axis of the node: as pass_vmap, and with all results mapped that may be.
jot_status batch_function(const struct batch *c, uint32_t f, const bool *in, uint32_t *out_f,
                          bool *out);
jot_status batch_function_all(const struct batch *c, uint32_t f, const bool *in,
                              uint32_t *out_f);
// f, of what lanes of a named map do by themselves, without the name; and whether it asks for the
// number of the lane, which nothing stands for then.
uint32_t rule_unname(struct ir_module *m, uint32_t f, int axis);
bool rule_asks_for_lane(const struct ir_graph *f, int axis);
// Operand i with the axis, repeated if it has none.
ir_id batch_materialise(struct batch *c, uint32_t i);
// v with a leading axis of the size, repeated.
ir_id batch_repeat(struct ir_builder *b, ir_id v, int64_t size);
// A cond whose branches do nothing but check, with the checks after it; false, and nothing is
// done, for others.
bool batch_checks_behind(struct batch *c);
// f with callbacks that have no tangents, rather than none that can be asked for.
uint32_t rule_hide_callbacks(struct ir_module *m, uint32_t f);
// The attributes of a check or a callback over values with one more axis of lanes in front.
const struct ir_attrs *rule_in_lanes(struct ir_module *m, const struct ir_attrs *a);
// Naming lanes (lane_names.c): f with one more parameter before number `at` of its own, the
// lane, i64[], which is the axis of the index of checks; the same of a node whose operands
// have room for one more, its first result; and whether that is possible.  Of checks and callbacks
// the one or the other:
enum rule_named {
    RULE_NAMED_EFFECTS, // those that the user wrote
    RULE_NAMED_NUMBERS, // checks of numbers, which do not know what axes are lanes
    RULE_NAMED_AXIS,    // axis_index: `axis` is the named axis
};
uint32_t rule_name_lane(struct ir_module *m, uint32_t f, uint32_t at, int axis,
                        enum rule_named which);
ir_id rule_name_node(struct ir_builder *b, const struct ir_node *n, ir_id *in, ir_id lane,
                     int axis, enum rule_named which);
bool rule_can_name(const struct ir_graph *g, const struct ir_node *n, enum rule_named which);
// Whether it is a callback whose failure tells trips and lanes, and its attributes with so many
// more of them among its operands.
bool rule_is_told(const struct ir_module *m, const struct ir_node *n);
const struct ir_attrs *rule_with_counts(struct ir_module *m, const struct ir_attrs *a,
                                        uint32_t more);
// The node on one lane after the other; all results have the axis.
void batch_by_lanes(struct batch *c);

typedef void jvp_rule(struct jvp *c);
typedef void transpose_rule(struct transpose *c);
typedef void batch_rule(struct batch *c);

extern jvp_rule *const jvp_rules[IR_OP_COUNT];
extern transpose_rule *const transpose_rules[IR_OP_COUNT];
extern batch_rule *const batch_rules[IR_OP_COUNT];

#define OP(name, in, out, op_class, domain, types, shape, jvp, transpose, batch, ...)          \
    jvp_rule jvp_##jvp;                                                                        \
    transpose_rule transpose_##transpose;                                                      \
    batch_rule batch_##batch;
#include "ir/ops.def"
#undef OP

// Helpers of several families.

// t broadcast to the shape of type, by the MAP rule (rank 0, or size-1 axes).
ir_id rule_broadcast_to(struct ir_builder *b, ir_id t, struct ir_type type);
// v with axes i and k exchanged.
ir_id rule_swap(struct ir_builder *b, ir_id v, int i, int k);
// Zeros of the type of v.
ir_id rule_zeros_like(struct ir_builder *b, ir_id v);
// x + y, where IR_NONE is zero.
ir_id rule_sum(struct ir_builder *b, ir_id x, ir_id y);
// The same for cotangents: where one is zeros that something is added to at indices, that is added to
// the other one instead (accumulate.c).
ir_id rule_accumulate(struct ir_builder *b, ir_id x, ir_id y);
// Whether sums of the type are long enough for that; whether a sum is long, and more than such zeros.
bool rule_accumulates(const struct ir_module *m, struct ir_type type);
bool rule_is_whole(const struct ir_builder *b, ir_id sum);
// The gather that reads what a scatter updates, in the types of the one given.
ir_id rule_gather_updated(struct ir_builder *b, ir_id x, ir_id indices, struct ir_type updates,
                          const struct ir_attrs *scatter);
// Where x is the extremum `best` of what it is among, or that is NaN; and a number of winners, NaN
// where the extremum y is.
ir_id rule_wins(struct ir_builder *b, bool is_max, ir_id x, ir_id best);
ir_id rule_or_nan(struct ir_builder *b, ir_id y, ir_id count);
// t / x of a tangent, which is zero wherever t is without a term.
ir_id rule_quotient(struct ir_builder *b, ir_id t, ir_id x);
// The values of f that depend on parameters from `first` on; and f with products of such with
// others, the tangents or cotangents of a rule of the user, as mul_z.
bool *rule_depends_on(const struct ir_graph *f, uint32_t first);
uint32_t rule_guarded(struct ir_module *m, uint32_t f, uint32_t first);
// Whether v is a constant number other than 0.
bool rule_is_nonzero_number(const struct ir_graph *g, ir_id v);
// Whether a scatter can update no element twice.
bool rule_is_unique(const struct ir_builder *b, const struct ir_attrs *attrs, ir_id indices);
// The tangent of the product of x along axis 0; that of the running product, for axes that are short
// (product.c).
ir_id rule_prod_tangent(struct ir_builder *b, ir_id x, ir_id dx);
ir_id rule_cumprod_tangent(struct ir_builder *b, ir_id x, ir_id dx, bool reverse);
bool rule_is_short(const struct ir_builder *b, ir_id x, int axis);
static inline int64_t rule_extent(const struct ir_builder *b, ir_id v, int axis)
{
    return ir_dims(b->module, ir_type_in(b, v))[axis];
}
// x with zeros replaced by 1.
ir_id rule_replace_zero(struct ir_builder *b, ir_id x);
// Fails with a message, behind which stands where the user made the op that the rule is of; with the
// message of the thread, which names that already.
__attribute__((format(printf, 2, 3))) void rule_refuse(struct ir_builder *b, const char *format,
                                                       ...);
void rule_fail_nested(struct ir_builder *b, jot_status status);

#endif
