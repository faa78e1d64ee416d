// SPDX-License-Identifier: Apache-2.0
// Axes of values as products of atoms, and what is asked of nodes along them.
#ifndef PASSES_ANALYSIS_AXES_H
#define PASSES_ANALYSIS_AXES_H

#include "ir/build.h"

#define NONE UINT32_MAX

// An axis of a value is a sequence of atoms, slowest first; an axis of extent 1 has none.  Each
// atom is a loop of one group, or derived: a coordinate that is another function of such loops.
typedef uint32_t atom_id;

struct atom {
    int64_t extent;
    atom_id same;      // the atom it was united with, or itself
    atom_id high, low; // its parts when it was split, or NONE
    bool is_derived;
    uint32_t n_from;
    const atom_id *from; // derived: what it depends on
};

struct atoms {
    uint32_t count;
    const atom_id *at;
};

// The coordinates at which a value is wanted.
struct view {
    uint32_t rank;
    const struct atoms *dims;
};

// The atoms of the values of one graph.
struct axes {
    struct arena *scratch;
    const struct ir_graph *g;
    VEC(struct atom) atoms;
    struct lane_graph *loops; // what lanes.c keeps of all loops, or NULL
};

atom_id axes_atom(struct axes *s, int64_t extent);
atom_id axes_root(const struct axes *s, atom_id a);
// The parts of the atoms, in order.
struct atoms axes_leaves(struct axes *s, struct atoms x);
// All atoms of a view, in the order of its axes.
struct atoms axes_of_view(struct axes *s, struct view v);
// What the leaves of the atoms depend on: derived atoms replaced by what they come from.
struct atoms axes_dependence(struct axes *s, struct atoms x);
struct atoms axes_concat(struct axes *s, struct atoms a, struct atoms b);
struct atoms axes_intersect(struct axes *s, struct atoms a, struct atoms b);
struct atoms axes_minus(struct axes *s, struct atoms a, struct atoms b);
bool axes_contain(const struct axes *s, struct atoms set, atom_id a);
bool axes_include(const struct axes *s, struct atoms set, struct atoms part);
bool axes_overlap(const struct axes *s, struct atoms a, struct atoms b);
bool axes_equal(struct axes *s, struct atoms a, struct atoms b); // as sequences
// Splits until the two sequences have the same extents; false when they do not divide so.
bool axes_refine(struct axes *s, struct atoms a, struct atoms b);
// Takes atoms whose product is `extent` from the front; false when they do not divide so.
bool axes_take(struct axes *s, struct atoms *from, int64_t extent, struct atoms *out);
int64_t axes_product(const struct axes *s, struct atoms a);

// A view of new atoms, one for each axis longer than 1.
struct view axes_fresh_view(struct axes *s, ir_id v);
bool axes_view_equal(struct axes *s, struct view a, struct view b);
// Splits a leaf, so that its lower part has the extent.
void axes_split(struct axes *s, atom_id a, int64_t extent);
// Makes the atoms of b those of a; false, and nothing is done, when they do not fit.
// axes_separate takes it back, last unions first.
bool axes_unify(struct axes *s, struct view a, struct view b, struct atoms *out_united);
void axes_separate(struct axes *s, struct atoms united);
// Operand i of an index-only or elementwise node seen from a view of its result.
struct view axes_operand_view(struct axes *s, const struct ir_node *n, uint32_t i,
                              struct view result);
// The operand of a node that folds, with `folded` along the folded axes.
struct view axes_folded_view(struct axes *s, const struct ir_node *n, uint32_t i,
                             struct view result, struct atoms folded);
// The atoms of the folded axes, new.
struct atoms axes_fold_atoms(struct axes *s, const struct ir_node *n);

// ---- Facts about nodes

static inline bool node_is_update(const struct ir_node *n)
{
    return ir_op_class((enum ir_op)n->op) == IR_CLASS_UPDATE;
}
// A loop, a branch, or several that become one kernel (join_loops.c).
static inline bool node_is_control(const struct ir_node *n)
{
    enum ir_class c = ir_op_class((enum ir_op)n->op);
    return c == IR_CLASS_CONTROL || c == IR_CLASS_CALL;
}
// Number i of an attribute.
static inline int64_t node_int_at(const struct ir_node *n, enum ir_key key, uint32_t i)
{
    int count;
    return ir_attr_ints(n->attrs, key, &count)[i];
}
static inline bool node_is_scan(const struct ir_node *n)
{
    return ir_op_class((enum ir_op)n->op) == IR_CLASS_CUMULATIVE;
}
bool node_is_folding(const struct ir_node *n); // REDUCE, ARG, CONTRACT
bool node_is_index(const struct ir_node *n);   // a change of index, const, iota, hint
// The axes of operand i that a folding node folds, in the order of the sequence.
const int64_t *node_folded_axes(const struct ir_node *n, uint32_t i, int *count);
// How many of the last axes of operand 0 are the routine's, of a node of class LIBRARY that repeats what it
// does over the axes before them; -1 of any other.
int node_routine_axes(const struct ir_node *n);
struct dot_shape {
    int n_batch, n_contract, n_free[2];
    const int64_t *batch[2], *contract[2];
    int64_t free[2][IR_MAX_RANK];
};
struct dot_shape dot_shape_of(const struct ir_graph *g, const struct ir_node *n);

#endif
