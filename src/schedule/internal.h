// SPDX-License-Identifier: Apache-2.0
// What the parts of the scheduler share: groups and their demands, and the program that is written.
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
// The place of the node, where steps have places; else NULL.
const char *schedule_place(const struct schedule *s, const struct ir_node *n);
void schedule_add_copy(struct schedule *s, uint32_t to, uint32_t from, const char *why,
                       const struct ir_node *by);
// Adds the step that runs the kernel, or an equal one that the program has.
void schedule_kernel_step(struct schedule *s, const struct kernel *k, const char *reason);

// Adds the steps of a graph whose parameters are in the memories `in` and whose outputs go to
// `out`, none of which is read otherwise before the last of them ends.  dies: by parameter,
// whether nobody needs it after them.
void schedule_body(struct schedule *s, const struct ir_graph *g, const bool *dies,
                   const uint32_t *in, const uint32_t *out);
// Groups the values of s->g, and adds its kernels to an empty program.
void schedule_trial(struct schedule *s);

// ---- Effects (schedule/effect.c)

// The step of a node without a body, the one of the group.
void schedule_effect(struct schedule *s, uint32_t group);

#endif
