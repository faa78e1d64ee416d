// SPDX-License-Identifier: Apache-2.0
// Where changes of index read, by the rule INDEX(...) of the op's row: a map for each operand.
//
//     y = slice x {starts=[2], limits=[8], strides=[3]}    y[r] = x[2 + 3 r]
//     y = pad x, p {low=[2], high=[0], interior=[1]}       y[r] = x[(r - 2) / 2] where x has that, p elsewhere
//     y = concatenate w, x {axis=0}                        y[r] = w[r] where w has that, x[r - 5] elsewhere; w has 5
//
// An element of the result is that of the first operand that has it, or 0 where none has.
// reshape has no map: it keeps the order of elements, not their coordinates.
#ifndef IR_INDEX_MAP_H
#define IR_INDEX_MAP_H

#include "ir/graph.h"

enum { IR_INDEX_TERMS = 2 };

// The coordinate along an axis of an operand: (offset + sum of step[t] r[axis[t]]) / spread, r the coordinates
// of the result.  The operand has it if that is whole and within the extent.
struct ir_index_axis {
    int n_terms, axis[IR_INDEX_TERMS];
    int64_t step[IR_INDEX_TERMS], offset, spread;
    bool is_guarded; // the operand does not have all of them
    bool
        is_kept; // it is a coordinate of the result, of no axis before, and the extents are equal
};

struct ir_index_map {
    int rank;
    struct ir_index_axis axes[IR_MAX_RANK];
};

// What a rule is given: the attributes, which operand it is, its extents and those of the result.  The map
// begins as the identity.  `after`: the axis along which the operand follows those before it, or -1.
struct ir_index_call {
    const struct ir_attrs *attrs;
    uint32_t operand;
    const int64_t *dims, *to;
    int after;
    struct ir_index_map *map;
};

// Of operand i of a node whose op has a rule.
void ir_index_map_of(const struct ir_graph *g, const struct ir_node *n, uint32_t i,
                     struct ir_index_map *out);
// The same by types, `in` those of the operands up to i.
void ir_index_map_of_types(const struct ir_module *m, enum ir_op op,
                           const struct ir_attrs *attrs, uint32_t i, const struct ir_type *in,
                           struct ir_type result, struct ir_index_map *out);

// Whether there are elements of the result that the operand has not.
bool ir_index_is_guarded(const struct ir_index_map *map);
// Whether it is a change of index that gives zeros of its own: where its only operand has no element.
bool ir_index_has_zeros(const struct ir_graph *g, const struct ir_node *n);
// Whether it is one that reads by sums of coordinates: windows, which overlap.
bool ir_index_has_windows(const struct ir_graph *g, const struct ir_node *n);

#endif
