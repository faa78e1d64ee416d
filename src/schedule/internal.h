// SPDX-License-Identifier: Apache-2.0
// What the parts of the scheduler share: group.c, emit.c, write/write.c, schedule.c.
#ifndef SCHEDULE_INTERNAL_H
#define SCHEDULE_INTERNAL_H

#include "ir/cost.h"
#include "passes/analysis/axes.h"
#include "schedule/schedule.h"

#define COST_NEVER 255

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
    struct atoms context; // loops around where it is wanted
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
    struct atoms context; // loops around where it is wanted
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
    struct axes axes; // of the same graph
    const struct schedule_options *options;
    struct nest_program *program;
    struct hash_table *kernels; // of the program's nests by content
    int64_t alone;              // work that needs no parallel points
    int64_t alone_together;     // the same of all values of a kernel (group.work)
    int64_t tiny;               // work that may be repeated
    VEC(struct points_of_layers) points;
    bool has_no_network; // there are such points, but they become no kernel
    bool is_unpriced;    // kernels were not priced for these
    bool is_trial;       // kernels alone are written, for their price (group/apart.c)
    bool has_loops;      // of a trial: loops that are one kernel as well
    bool has_steps;      // of a trial: there is something else
    int64_t
        wanted_block; // of a trial: lanes of such loops go by blocks of so many (group/order.c)
    bool is_refused;  // something has neither a kernel nor steps
    const struct ir_node *refused; // a node whose op nothing here computes, or NULL
    uint32_t effect_rank;          // larger than that of the groups with effects so far
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
    bool *is_narrow; // by value: it is stored in place of what is made of it (group/narrow.c)
    bool *
        is_apart; // by value: it has a kernel of its own, which takes less time (group/apart.c)
    bool *is_output;
    uint32_t *uses;        // by value: operands that are it, 2 for parameters and constants
    uint8_t *cheap;        // by value: ops that repeating it costs, COST_NEVER for dear ones
    uint8_t *cone_ops;     // by value: ops from parameters on, COST_NEVER for too many
    int64_t *cone_bytes;   // by value: of the parameters it is made of
    uint32_t *memory_of;   // by value
    uint8_t *axis_last;    // by value: 1 + the axis that comes last in memory; 0: the last
    uint8_t *last_block;   // by value: so many of its elements do, blocks of which stay; 0: all
    int64_t lane_block;    // lanes that stay together so, of loops that are one kernel; 0: none
    uint32_t *position;    // by group: in the order of the steps
    uint32_t *last_reader; // by value: the position of its last reader
    ir_id *stored_as;      // by value: the transpose that is stored instead of it, or IR_NONE
    ir_id *part_of;        // by value: the concatenation in whose memory it is, or IR_NONE
    const struct resident **residents; // by node that is a loop or branch, once asked for
    struct frame_tables *results;      // what write/frame.c keeps of them
    const char **apart; // by node: why it is not in one kernel with a loop whose rows it reads
    // Of the kernel that is being written; see write/write.c.
    uint32_t *bound;      // by atom: the index form of its loop, NONE outside
    uint32_t *fold_depth; // by value: folds one after the other that it takes, or NONE
    uint8_t *computed;    // by value: inner loops in which it is computed
    uint32_t n_bound;
};

// ---- Facts about nodes

static inline int64_t value_count(const struct schedule *s, ir_id v)
{
    return ir_count_of(s->g, v);
}
// Whether a GPU does several calls of the node's routine in less time than one after the other.
bool node_routine_gains_lanes(const struct ir_node *n);
// Whether the product is for rows of which each would read a large matrix where the demand wants it: a fold takes all
// elements of a row.  By itself its points are those of all rows, which read the matrix together.
bool dot_rereads_matrix(const struct schedule *s, ir_id v, const struct demand *d);

// The loops of an update, by where the atoms of the view of its updates run: side by side, in
// order, and inside of one update.
struct update_frame {
    ir_id updates;
    struct atoms points, order, window;
    bool is_by_element; // the loops are those of the operand (write/by_element.c)
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

// ---- Order (schedule/order.c)

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

// ---- Kernels (write/write.c)

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

// ---- Loops and branches (control/control.c, control/resident.c)

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

// ---- Copies (schedule/copies.c)

// Has the steps from `first` on compute values where they are copied to; memories from first_memory
// on are theirs alone.
void schedule_forward_copies(struct schedule *s, uint32_t first, uint32_t first_memory);
// Has kernels of elements put what is copied of them, where others read it too.
void schedule_put_copies(struct nest_program *p, struct arena *scratch);
// What stands for memories first, first + 1, ...: 1 more than its number, or 0.
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

// ---- Ranges (schedule/ranges.c)

// Routines and collectives read and write parts of memories where kernels would move these.
void schedule_ranges(struct nest_program *p, struct arena *scratch);
// Kernels that put parts of memories have these parts alone.
void schedule_narrow_parts(struct nest_program *p);

// ---- Shapes (schedule/shapes.c)

// g, whose inputs and outputs have the shapes that loops and updates see them in.
const struct ir_graph *schedule_without_shapes(const struct ir_graph *g);

// ---- Routines side by side (join_routines.c)

// s->g with calls of one routine that do not wait for one another as one call, for a GPU.
const struct ir_graph *schedule_join_routines(struct schedule *s);

// ---- Parts (schedule/parts.c)

// s->g with a barrier in front of each part of an array whose parts are put in place.
const struct ir_graph *schedule_part_concatenations(struct schedule *s);
// s->g with a value of its own for each output that is elementwise.
const struct ir_graph *schedule_part_outputs(struct schedule *s);
// The same of arrays of which only some rows wait for what devices exchange (schedule/overlap.c).
const struct ir_graph *schedule_overlap_exchanges(struct schedule *s);

// ---- Effects (schedule/effect.c)

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
