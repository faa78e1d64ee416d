// SPDX-License-Identifier: Apache-2.0
// What the parts of the scheduler share: axes.c, group.c, emit.c, nest_from_graph.c, schedule.c.
#ifndef PASSES_SCHEDULE_INTERNAL_H
#define PASSES_SCHEDULE_INTERNAL_H

#include "ir/build.h"
#include "passes/cost.h"
#include "passes/schedule.h"

#define NONE UINT32_MAX
#define COST_NEVER 255

// ---- Axes (axes.c)
//
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

// ---- Groups (group.c, frame.c, nesting.c)

enum decision {
    DECIDE_NOTHING, // nobody wants it
    DECIDE_REPEAT,  // computed wherever it is wanted
    DECIDE_MEMBER,  // computed in one group at one view
};

enum group_kind {
    GROUP_KERNEL,
    GROUP_UPDATE, // one scatter or dynamic_update_slice, in the memory of its operand
    GROUP_GEMM,
    GROUP_LIBRARY, // one node of class LIBRARY, all its results, operands in memory
    GROUP_CONTROL, // one loop or branch, all its results
    GROUP_EFFECT   // the same of a node with effects that has no body, operands in memory
};

enum constraint_kind {
    CONSTRAINT_ROOT,
    CONSTRAINT_REDUCE,
    CONSTRAINT_EXPENSIVE,
    CONSTRAINT_CHEAP
};

// What a value asks of the loops of its group.
struct constraint {
    enum constraint_kind kind;
    ir_id value;
    ir_id outer;          // the reduction it is computed for, or IR_NONE
    bool is_inside;       // REDUCE: wanted inside loops that it does not depend on
    bool is_root;         // REDUCE: its result is stored as it is
    bool is_used;         // REDUCE: somebody in the group reads it
    struct atoms kept;    // loops that the value depends on
    struct atoms folded;  // REDUCE
    struct atoms context; // loops around the place where it is wanted
    struct atoms around;  // those of the result or the reduction that it is for
    struct atoms
        stored; // those of the result on the way there, which is made for itself as well
};

struct group {
    uint32_t same; // the group it was merged into, or itself
    enum group_kind kind;
    uint32_t rank;   // larger than that of every group that reads its results
    uint32_t feeder; // smallest rank of the groups whose results it reads
    uint32_t ops;
    int64_t work; // of all its values, in units of cost
    VEC(struct constraint) constraints;
    VEC(struct constraint)
    arithmetic;                      // cheap values: they ask nothing of loops, but are counted
    VEC(ir_id) roots;                // values it stores
    uint32_t node;                   // LIBRARY, CONTROL, EFFECT: which
    VEC(ir_id) reduced;              // reductions computed in it
    struct atoms points;             // parallel loops
    struct atoms fold;               // the loop of accumulating puts, may be empty
    struct atoms unrolled;           // inner loops that are written out
    const struct resident *resident; // CONTROL: as one kernel; NULL: as steps
    const struct view *operands;     // CONTROL: of each operand, where it is wanted
    bool is_alone;                   // it is merged with no other
    const char *reason;
};

struct demand {
    uint32_t next;
    uint32_t group;
    ir_id outer;
    uint32_t depth;   // of changes of index
    bool is_repeated; // an element may be wanted several times
    struct view view;
    struct atoms context; // loops around the place where it is wanted
    struct atoms around;  // those of the result or the reduction that it is for
    struct atoms
        stored; // those of the result on the way there, which is made for itself as well
};

// Values of a network go into one kernel over so many points (points.c), which come first in memory.
struct points_of_layers {
    int64_t count;
    int layers;
};

struct schedule {
    struct arena *arena;   // of the program
    struct arena *scratch; // goes when the schedule is done
    const struct ir_graph *g;
    const struct schedule_options *options;
    struct nest_program *program;
    struct hash_table *kernels; // of the program's nests by content
    int64_t alone;              // work that needs no parallel points
    int64_t alone_together;     // the same of all values of a kernel (group.work)
    int64_t tiny;               // work that may be repeated
    VEC(struct points_of_layers) points;
    bool has_no_network; // there are such points, but they become no kernel
    bool is_unpriced;    // kernels were not priced for these
    bool is_trial;       // kernels alone are written, for their price (group_apart.c)
    bool has_loops;      // of a trial: loops that are one kernel as well
    bool has_steps;      // of a trial: there is something else
    int64_t
        wanted_block; // of a trial: lanes of such loops go by blocks of so many (group_order.c)
    bool is_refused;  // something has neither a kernel nor steps
    const struct ir_node *refused; // a node whose op nothing here computes, or NULL
    uint32_t effect_rank;          // larger than that of the groups with effects so far
    VEC(struct atom) atoms;
    VEC(struct group) groups;
    VEC(struct demand) demands;
    uint32_t *first_demand;  // by value
    uint8_t *decision;       // by value
    uint32_t *group_of;      // by value: members
    struct view *view_of;    // by value: members
    struct atoms *folded_of; // by value: reductions
    bool *is_stored;         // by value: it has memory
    bool *is_forced;         // by value: it must have memory of its own
    bool *is_old;    // by value: read of what is written over before all who want it are done
    bool *is_narrow; // by value: it is stored in place of what is made of it (group_narrow.c)
    bool *
        is_apart; // by value: it has a kernel of its own, which takes less time (group_apart.c)
    bool *is_output;
    uint32_t *uses;        // by value: operands that are it, 2 for parameters and constants
    uint8_t *cheap;        // by value: ops that repeating it costs, COST_NEVER for dear ones
    uint8_t *cone_ops;     // by value: ops from parameters on, COST_NEVER for too many
    int64_t *cone_bytes;   // by value: of the parameters it is made of
    uint32_t *memory_of;   // by value
    uint8_t *axis_last;    // by value: 1 + the axis that comes last in memory; 0: the last
    uint8_t *last_block;   // by value: so many of its elements do, blocks of which stay; 0: all
    int64_t lane_block;    // lanes that stay together so, of loops that are one kernel; 0: none
    uint32_t *place;       // by group: in the order of the steps
    uint32_t *last_reader; // by value: the last place where it is read
    ir_id *stored_as;      // by value: the transpose that is stored instead of it, or IR_NONE
    ir_id *part_of;        // by value: the concatenation in whose memory it is, or IR_NONE
    const struct resident **residents; // by node that is a loop or branch, once asked for
    struct lane_graph *loops;          // what lanes.c keeps of all of them
    struct frame_tables *results;      // what write_frame.c keeps of them
    const char **apart; // by node: why it is not in one kernel with a loop whose rows it reads
    // Of the kernel that is being written; see nest_from_graph.c.
    uint32_t *bound;   // by atom: the index form of its loop, NONE outside
    uint32_t *stage;   // by value: folds one after the other that it takes, or NONE
    uint8_t *computed; // by value: inner loops in which it is computed
    uint32_t n_bound;
};

atom_id axes_atom(struct schedule *s, int64_t extent);
atom_id axes_root(const struct schedule *s, atom_id a);
// The parts of the atoms, in order.
struct atoms axes_leaves(struct schedule *s, struct atoms x);
// All atoms of a view, in the order of its axes.
struct atoms axes_of_view(struct schedule *s, struct view v);
// What the leaves of the atoms depend on: derived atoms replaced by what they come from.
struct atoms axes_dependence(struct schedule *s, struct atoms x);
struct atoms axes_concat(struct schedule *s, struct atoms a, struct atoms b);
struct atoms axes_intersect(struct schedule *s, struct atoms a, struct atoms b);
struct atoms axes_minus(struct schedule *s, struct atoms a, struct atoms b);
bool axes_contain(const struct schedule *s, struct atoms set, atom_id a);
bool axes_include(const struct schedule *s, struct atoms set, struct atoms part);
bool axes_overlap(const struct schedule *s, struct atoms a, struct atoms b);
bool axes_equal(struct schedule *s, struct atoms a, struct atoms b); // as sequences
// Splits until the two sequences have the same extents; false when they do not divide so.
bool axes_refine(struct schedule *s, struct atoms a, struct atoms b);
// Takes atoms whose product is `extent` from the front; false when they do not divide so.
bool axes_take(struct schedule *s, struct atoms *from, int64_t extent, struct atoms *out);
int64_t axes_product(const struct schedule *s, struct atoms a);

// A view of new atoms, one for each axis longer than 1.
struct view axes_fresh_view(struct schedule *s, ir_id v);
bool axes_view_equal(struct schedule *s, struct view a, struct view b);
// Splits a leaf, so that its lower part has the extent.
void axes_split(struct schedule *s, atom_id a, int64_t extent);
// Makes the atoms of b those of a; false, and nothing is done, when they do not fit.
// axes_separate takes it back, last unions first.
bool axes_unify(struct schedule *s, struct view a, struct view b, struct atoms *out_united);
void axes_separate(struct schedule *s, struct atoms united);
// Operand i of an index-only or elementwise node seen from a view of its result.  *plain says that
// every element of the operand's view is an atom again.
struct view axes_operand_view(struct schedule *s, const struct ir_node *n, uint32_t i,
                              struct view result);
// The operand of a node that folds, with `folded` along the folded axes.
struct view axes_folded_view(struct schedule *s, const struct ir_node *n, uint32_t i,
                             struct view result, struct atoms folded);
// The atoms of the folded axes, new.
struct atoms axes_fold_atoms(struct schedule *s, const struct ir_node *n);

// ---- Facts about nodes

static inline int64_t value_count(const struct schedule *s, ir_id v)
{
    return ir_count_of(s->g, v);
}
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
// does over the axes before them; -1 of any other (library.c).
int node_routine_axes(const struct ir_node *n);
// Whether a GPU does several calls of the node's routine in less time than one after the other.
bool node_routine_gains_lanes(const struct ir_node *n);

struct dot_shape {
    int n_batch, n_contract, n_free[2];
    const int64_t *batch[2], *contract[2];
    int64_t free[2][IR_MAX_RANK];
};
struct dot_shape dot_shape_of(const struct schedule *s, const struct ir_node *n);
// Whether the product is for rows of which each would read a large matrix where the demand wants it: a fold takes all
// elements of a row.  By itself its points are those of all rows, which read the matrix together.
bool dot_rereads_matrix(const struct schedule *s, ir_id v, const struct demand *d);

// The loops of an update, by where the atoms of the view of its updates run: side by side, in
// order, and inside of one update.
struct update_frame {
    ir_id updates;
    struct atoms points, order, window;
    bool is_by_element; // the loops are those of the operand (write_by_element.c)
};
struct update_frame write_update_frame(struct schedule *s, const struct ir_node *n,
                                       struct view view);

uint32_t group_root(const struct schedule *s, uint32_t g);
// Chooses the loops of a group anew from its constraints (frame.c); false, and nothing is done,
// when no choice is good.  *reason says why.
bool group_frame(struct schedule *s, struct group *g, const char **reason);
// Whether a kernel of the group with the loops that it has would compute much of it several times
// (nesting.c).
bool group_repeats(struct schedule *s, const struct group *g);
// Decides for every value where it is computed.
void group_values(struct schedule *s);

// ---- Order (schedule_order.c)

// The groups in the order of their steps.
const uint32_t *schedule_order(struct schedule *s, uint32_t *n);
// What v may be made in the memory of: what an update changes, what a carry is at first, or what a
// branch changes or passes on.  IR_NONE when there is no such value.
ir_id schedule_overwritten(const struct ir_graph *g, ir_id v);
// The parameter that this leads to in the end, or IR_NONE.
ir_id schedule_source(const struct ir_graph *g, ir_id v);
// Whether the memory of x may be written over, and whether that is so at the steps of the group,
// for nobody reads it after them.
bool schedule_may_die(const struct schedule *s, ir_id x);
bool schedule_ends_with(const struct schedule *s, ir_id x, uint32_t group);

// ---- Kernels (nest_from_graph.c)

// The kernel of a group and its memories.
struct kernel {
    struct nest *nest;
    uint32_t n_memories;
    uint32_t *memories;
};
struct kernel nest_from_group(struct schedule *s, uint32_t group, const char *name);
// The memory of a stored value, a parameter or a constant.
uint32_t schedule_memory(struct schedule *s, ir_id v);
uint32_t schedule_add_memory(struct schedule *s, struct nest_memory m);
void schedule_step(struct schedule *s, struct nest_step step);
void schedule_add_copy(struct schedule *s, uint32_t to, uint32_t from, const char *why,
                       const struct ir_node *by);
// Adds the step that runs the kernel, or an equal one that the program has.
void schedule_kernel_step(struct schedule *s, const struct kernel *k, const char *reason);

// Groups the values of s->g, and adds its kernels to an empty program.
void schedule_trial(struct schedule *s);

// ---- Loops and branches (schedule_control.c, schedule_resident.c)

// Adds the steps of a graph whose parameters are in the memories `in` and whose outputs go to
// `out`, none of which is read otherwise before the last of them ends.  dies: by parameter,
// whether nobody needs it after them.
void schedule_body(struct schedule *s, const struct ir_graph *g, const bool *dies,
                   const uint32_t *in, const uint32_t *out);
// The steps of a scan, while or cond, the root of the group.
void schedule_control(struct schedule *s, uint32_t group);
// The graph with a call of a function in place of loops that become one kernel (join_loops.c), and
// what is between them.  There are no other calls.
const struct ir_graph *schedule_join_loops(struct schedule *s, const struct ir_graph *g);
// How the node, a loop or branch or joined ones, is one kernel, or why it is not.
struct resident {
    struct lanes *lanes;
    bool is_expanded;   // elements of a lane are written out
    int64_t code;       // of its operations
    const char *reason; // NULL: it is one
};
const struct resident *schedule_residence(struct schedule *s, const struct ir_node *n);
// What, and the place and the name of the op that it is due to: "lanes are mixed at t.c:41:
// jot_flip(x), rev".
const char *schedule_reason(struct schedule *s, const char *what, const struct ir_node *n);
// The same before a graph is scheduled.
bool schedule_is_resident(const struct ir_graph *g, const struct ir_node *n);
// The kernel, over the memories of results and of operands that are stored; false, with the
// reason, when it is none.
bool schedule_resident(struct schedule *s, const struct ir_node *n, struct kernel *out,
                       const char **reason);

// ---- Loop fusion of a lane's maps (fuse_maps.c)

void schedule_fuse_maps(struct nest_program *p, struct arena *scratch);

// ---- Loads in front of puts, in loops of a GPU (loads_first.c)

void schedule_loads_first(struct nest_program *p, struct arena *scratch);

// ---- Kernels that differ in numbers alone (share_kernels.c)

// Makes one of each eight or more, of each two with `always`.
void schedule_share_kernels(struct nest_program *p, bool always);

// ---- Fission (fission.c)

// Kernels of several loops that a GPU would do by one block or thread become kernels of one each; with
// `always` all that can.
void schedule_fission(struct nest_program *p, const struct schedule_options *options);

// ---- Copies (schedule_copies.c)

// Has the steps from `first` on compute values where they are copied to; memories from first_memory
// on are theirs alone.
void schedule_forward_copies(struct schedule *s, uint32_t first, uint32_t first_memory);
// Has kernels of elements put what is copied of them, where others read it too.
void schedule_put_copies(struct nest_program *p);
// What takes the places of memories first, first + 1, ...: 1 more than its number, or 0.
struct schedule_renaming {
    uint32_t first, count, *by;
};
struct schedule_renaming schedule_rename(struct schedule *s, uint32_t first);
static inline void schedule_rename_to(struct schedule_renaming *r, uint32_t from, uint32_t to)
{
    r->by[from - r->first] = to + 1;
}
// Puts them there, in the steps from `first` on and in views, and leaves the steps that are gone, by step
// from the first, and copies that this makes ones of a memory to itself.
void schedule_replace(struct nest_program *p, uint32_t first, const bool *is_gone,
                      const struct schedule_renaming *r);
void schedule_remove_step(struct nest_program *p, uint32_t i);
// Drops memories that no step uses, and numbers views after what they show.
void schedule_sort_memories(struct nest_program *p);

// ---- Ranges (schedule_ranges.c)

// Routines and collectives read and write parts of memories where kernels would move these.
void schedule_ranges(struct nest_program *p, struct arena *scratch);
// Kernels that put parts of memories have these parts alone.
void schedule_narrow_parts(struct nest_program *p);

// ---- Shapes (schedule_shapes.c)

// g, whose inputs and outputs have the shapes that loops and updates see them in.
const struct ir_graph *schedule_without_shapes(const struct ir_graph *g);

// ---- Routines side by side (join_routines.c)

// s->g with calls of one routine that do not wait for one another as one call, for a GPU.
const struct ir_graph *schedule_join_routines(struct schedule *s);

// ---- Parts (schedule_parts.c)

// s->g with a barrier in front of each part of an array whose parts are put in place.
const struct ir_graph *schedule_part_concatenations(struct schedule *s);
// s->g with a value of its own for each output that is elementwise.
const struct ir_graph *schedule_part_outputs(struct schedule *s);
// The same of arrays of which only some rows wait for what devices exchange (schedule_overlap.c).
const struct ir_graph *schedule_overlap_exchanges(struct schedule *s);

// ---- Effects (schedule_effect.c)

// The step of a node without a body, the one of the group.
void schedule_effect(struct schedule *s, uint32_t group);

// ---- Routines (library.c)

// The step of a node of class LIBRARY, the one of the group.
void schedule_library(struct schedule *s, uint32_t group);

// ---- Library calls (gemm.c)
// The library call of a dot_general that is large enough and whose operands lie right; false
// otherwise.  base[i] is the value whose memory is used for operand i.
bool gemm_of_dot(const struct schedule *s, const struct ir_node *n, struct nest_gemm *out,
                 ir_id base[2]);
// s->g with copies, as transposes behind barriers, of operands that lie wrong for the library or a kernel.
const struct ir_graph *schedule_pack_operands(struct schedule *s);

// ---- Scatters in parts (scatter_parts.c)

// A scatter_add node over the operands `in`, in that many parts.
// x from start to limit along the axis, and a sum over the leading axis, neighbours first.
ir_id schedule_cut(struct ir_builder *b, ir_id x, int axis, int64_t start, int64_t limit);
ir_id schedule_sum_pairs(struct ir_builder *b, ir_id x, int64_t parts);
ir_id schedule_scatter_parts(struct ir_builder *b, const struct ir_node *n, const ir_id *in,
                             int64_t parts);

// ---- What products do to their results (epilogue.c)

// Kernels that do to the elements of a product what the library can do go into the product.
void epilogue_products(struct nest_program *p);
// The one step besides i that uses memory m, a temporary, in straight steps behind it, which leave
// what step i reads as it is; UINT32_MAX when there is none.
uint32_t schedule_find_reader(const struct nest_program *p, uint32_t i, uint32_t m);
// Whether m is a temporary that no step but i uses.
bool schedule_is_unread(const struct nest_program *p, uint32_t i, uint32_t m);
// Whether the steps between i and end are straight and leave what step i reads as it is.
bool schedule_keeps_operands(const struct nest_program *p, uint32_t i, uint32_t end);
// Drops kernels that no step runs any more.
void schedule_drop_nests(struct nest_program *p);
// Joins each product with what stands around it as long as that goes: join says whether it did.
void schedule_join_products(struct nest_program *p,
                            bool (*join)(struct nest_program *p, uint32_t i));

// ---- Attention (attention.c)

// Two products and the softmax between them become one kernel, and so does its gradient.
void attention_join(struct nest_program *p);
// The gradient that the product, step i, is of (attention_gradient.c).
bool attention_join_gradient(struct nest_program *p, uint32_t i);

// ---- Layouts (layout.c)

// Stores operands of library products the way the kernel that makes them writes best.
void layout_products(struct nest_program *p);

#endif
