// SPDX-License-Identifier: Apache-2.0
// Along which axes a loop is many loops side by side.
//
// Axes are sequences of atoms (axes.h).  Atoms that an op keeps in step are united,
// those that an op mixes (folds, slices, reverses, gathers along) are marked, through all bodies: a
// carry has the same view before a step and after it.  What is not marked and belongs to every
// carry, but for those without axes, are the lanes.
#ifndef PASSES_ANALYSIS_LANES_H
#define PASSES_ANALYSIS_LANES_H

#include "passes/analysis/axes.h"

// A graph as it is used by one node: bodies that two nodes share have two.  Of the graph around a
// loop there is the loop alone.
struct lane_graph {
    const struct ir_graph *g;
    uint32_t first, end;         // the nodes that are looked at
    struct view *view;           // by value
    struct lane_graph ***bodies; // by node: those of its functions, NULL for nodes without
};

struct lane_use {
    struct view view;
    struct lane_use *next;
};

struct lanes {
    struct axes space; // a mixed atom is_derived
    struct ir_module *module;
    struct lane_graph *top;      // has the loop as one of its nodes
    const struct view *operands; // of the loop
    struct atoms lanes;          // slowest first
    VEC(struct view) subjects;   // what has them, but for what is small: carries and rows
    VEC(const struct ir_node *) mixers;
    struct lane_uses {
        struct lane_use *first, *last;
    } *uses; // by atom: the views that it is in; NULL: not listed
};

// Looks at node n of a graph and at its bodies: gives its results views, unites and marks atoms.
// in are views of its operands, or NULL for those of their values (lanes_ops.c).
void lanes_look(struct lanes *l, struct lane_graph *f, const struct ir_node *n,
                const struct view *in);
void lanes_mix(struct lanes *l, const struct ir_node *n, struct atoms a);

// The lanes of node n, a scan, while or cond, or a call of a function that has some.  Memory is the
// scratch arena's; views of the results are forgotten when it is called again for n.
struct lanes *lanes_of(struct axes *s, const struct ir_node *n);
// Whether the test of the while has fewer lanes, but for short axes: then these are no lanes any more.
bool lanes_keep_tested(struct lanes *l, const struct ir_node *n);
// Whether the first axes of all carries of a batched while, the only node of a graph, are lanes indeed.
bool lanes_lead(const struct ir_graph *g, const struct ir_node *n);
// The last of the lanes that is several whole blocks, or their number when there is none.
uint32_t lanes_find_blocks(const struct lanes *l, int64_t block);
// The atoms of one axis that are no lanes, and how many elements a value has for each lane.
struct atoms lanes_inner(struct lanes *l, struct atoms dim);
int64_t lanes_inner_count(struct lanes *l, struct view v);
// Without the first axis.
static inline struct view lanes_row(struct view v)
{
    return (struct view){.rank = v.rank - 1, .dims = v.dims + 1};
}
// Whether v moves lanes only: each has its elements where it has those of the operand.
bool lanes_only_move(struct lanes *l, const struct lane_graph *f, ir_id v);
// The op that took the longest axis of the carries out of the lanes, or NULL.
const struct ir_node *lanes_lost_to(struct lanes *l);

#endif
