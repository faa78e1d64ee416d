// SPDX-License-Identifier: Apache-2.0
// What the files of pass_support share (support.c says what a support is).
#ifndef PASSES_DERIVE_SUPPORT_H
#define PASSES_DERIVE_SUPPORT_H

#include "passes/body.h"

enum support_kind {
    SUPPORT_ALL,  // no zero is known
    SUPPORT_NONE, // all are zeros
    SUPPORT_SAME, // one bool says it for all elements
    SUPPORT_SOME, // a bool for each
};
static inline bool support_has_value(enum support_kind kind)
{
    return kind == SUPPORT_SAME || kind == SUPPORT_SOME;
}

// A value of the graph that is being built.
struct supported {
    ir_id clean; // zero outside of the support; IR_NONE: not made
    ir_id raw;   // anything outside of the support
    enum support_kind kind;
    ir_id where; // bool[] or of the shape of the value, of kinds SAME and SOME
};

struct support {
    struct ir_builder *b;
    const struct ir_graph *g;
    struct supported *of; // by value of g
    const bool *wanted;   // by value of g: whose supports are of use
};

struct support_function {
    uint32_t f; // its parameters, then a bool for each that has one; results likewise
    enum support_kind *out; // by result
};

// f for parameters with supports of these kinds; wanted is by result.
const struct support_function *support_apply(struct ir_module *m, uint32_t f,
                                             const bool *wanted,
                                             const enum support_kind *params);

// The value without what is outside of its support.
ir_id support_clean(struct support *s, struct supported *x);
// Node n again; its results.  False: the op has no rule, and none of its results a support.
bool support_node(struct support *s, const struct ir_node *n);
// The same for nodes with bodies.
void support_bodies(struct support *s, const struct ir_node *n);

// Whose supports are of use when those of the results in wanted are: by parameter of f.
const bool *support_wanted(struct ir_module *m, uint32_t f, const bool *wanted);
// The same by value of g; has those of the results already.  None are wanted in a module whose zeros
// are numbers (JOT_NAN_GUARD=off).
void support_want(const struct ir_graph *g, bool *wanted);
// What a loop wants of its body, out by result, which grows, and in by operand.
void support_want_scan(const struct ir_graph *g, const struct ir_node *n, bool *out, bool *in);
void support_want_while(const struct ir_graph *g, const struct ir_node *n, bool *out, bool *in);

// Operand i is one whose zeros make zeros of the result.
bool support_passes(const struct ir_node *n, uint32_t i);
// A finite number known now: no product with it makes a NaN of a zero.
bool support_is_finite(const struct ir_graph *g, ir_id v);

#endif
