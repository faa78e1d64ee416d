// SPDX-License-Identifier: Apache-2.0
// Facts about ops, derived from ops.def.
#ifndef IR_OPS_H
#define IR_OPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ir_op {
#define NAME(name) IR_##name,
#include "ir/op_names.inc"
#undef NAME
    IR_OP_COUNT
};

enum ir_class {
    IR_CLASS_CONST,
    IR_CLASS_PARAM,
    IR_CLASS_MAP,        // elementwise; operands broadcast (see infer_same)
    IR_CLASS_LAYOUT,     // a change of index
    IR_CLASS_INDEX,      // elements at indices that are data
    IR_CLASS_UPDATE,     // an operand with such elements replaced or combined
    IR_CLASS_REDUCE,     // folds listed axes with the scalar
    IR_CLASS_ARG,        // index of the winning element along an axis
    IR_CLASS_CONTRACT,   // sums of products
    IR_CLASS_CUMULATIVE, // prefix folds along an axis
    IR_CLASS_LIBRARY,    // what a routine computes as one step, from memory to memory
    IR_CLASS_CALL,       // nodes with bodies, the first of which gives the results
    IR_CLASS_CONTROL,    // loops and branches: nodes with bodies of other types (control.h)
    IR_CLASS_COLLECTIVE, // exchanges between lanes of a named axis (collective.h)
    IR_CLASS_HINT,       // identities that passes read
    IR_CLASS_EFFECT,     // what a run does beside computing: kept, in order, done once
};

// What a fold of nothing is; ones: all bits.
enum ir_identity {
    IR_IDENTITY_none,
    IR_IDENTITY_zero,
    IR_IDENTITY_one,
    IR_IDENTITY_lowest,
    IR_IDENTITY_highest,
    IR_IDENTITY_ones,
};

// Where a change of index reads (index_map.h).
struct ir_index_call;
typedef void ir_index_rule(struct ir_index_call *c);

#define IR_VARIADIC (-1)

struct ir_op_info {
    const char *name;
    int8_t in, out; // IR_VARIADIC: any number
    enum ir_class op_class;
    const char *domain, *types;
    const char *shape, *jvp, *transpose, *batch; // the words of the columns
    bool has_complex;                            // defined on complex operands
    enum ir_op combiner, pair;                   // IR_OP_COUNT: none
    enum ir_identity identity;
    ir_index_rule *index; // NULL: none
    uint16_t cost;
};

extern const struct ir_op_info ir_op_table[]; // IR_OP_COUNT of them

static inline const struct ir_op_info *ir_op_get(enum ir_op op) { return &ir_op_table[op]; }
static inline enum ir_class ir_op_class(enum ir_op op) { return ir_op_table[op].op_class; }
// Whether nodes of the op name functions of the module.
static inline bool ir_has_bodies(enum ir_op op)
{
    return ir_op_class(op) == IR_CLASS_CALL || ir_op_class(op) == IR_CLASS_CONTROL;
}
// Whether it combines elements.
static inline bool ir_is_fold(enum ir_op op)
{
    return ir_op_table[op].identity != IR_IDENTITY_none;
}
// Whether the result is the index of the best element.
static inline bool ir_is_arg(enum ir_op op) { return ir_op_class(op) == IR_CLASS_ARG; }
// The op called so, or -1.
int ir_op_find(const char *name, size_t length);

#endif
