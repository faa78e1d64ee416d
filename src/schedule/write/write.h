// SPDX-License-Identifier: Apache-2.0
// What the parts of write/write.c share: a kernel while it is written.
#ifndef SCHEDULE_WRITE_WRITE_H
#define SCHEDULE_WRITE_WRITE_H

#include "ir/indexing.h"
#include "passes/analysis/lanes.h"
#include "schedule/write/emit.h"

#define MAX_LEAVES 256 // atoms of one loop

struct known_value {
    const struct frame *frame;
    ir_id v;
    nest_id guard;
    const form_id *at;
    nest_id result;
};

struct row { // the local copy of a value
    ir_id v;
    nest_id local;
    scope_id loop;     // that fills it, NONE so far
    const form_id *at; // at these coordinates
    bool is_read;
};

// A value that is kept while a loop runs: a scalar for each element that a lane has, or a local.
struct held {
    bool is_set;
    const nest_id *elements; // NULL: local
    nest_id local;
};

// A body while it is written.  Its parameters are values of the frame around it, rows of these, or
// held (carries); other values are computed where they are wanted, as everywhere.
struct frame {
    struct frame *up;  // NULL: the graph that is scheduled
    struct schedule s; // with the body for its graph
    struct lane_graph *lanes;
    scope_id scope, floor;   // where its statements are
    struct held *held;       // by value
    bool *is_kept;           // by value: it gets a local when it is wanted
    uint8_t *uses;           // by value: how often it is read or given, at most 2
    const ir_id *in;         // by parameter: operands of the node, values of the frame around
    uint32_t first_row;      // parameters from here on are rows
    form_id time;            // which rows
    bool is_lane;            // of a loop whose trips are lanes: written once
    struct frame **calls;    // by node
    const struct sink *rows; // by value: where rows of loops go; NULL: all into locals
};

struct writer {
    struct schedule *s;
    struct emitter e;
    uint32_t group;
    struct group *g;
    scope_id point; // the scope of the parallel loop
    VEC(struct known_value) values;
    struct hash_table value_table;
    VEC(struct row) rows;
    VEC(ir_id) put;         // results that are put already
    VEC(uint32_t) memories; // by buffer that is no local
    VEC(nest_id) buffers;   // the same, their numbers
    VEC(ir_id) counted;     // values with a count in s->computed
    VEC(ir_id) with_depth;  // values with a number in s->fold_depth
    // Of kernels that are loops or branches; otherwise NULL and zero.
    struct frame *frame;
    struct schedule *outer; // of the graph that is scheduled
    struct lanes *lanes;
    const form_id *lane_forms; // by lane
    bool is_expanded;          // elements of a lane are written out, not looped over
    const char *fault;         // what went wrong
};

// What an atom was bound to before.
struct binding {
    atom_id atom;
    form_id before;
};

// write/loops.c
nest_id write_buffer_of(struct writer *w, uint32_t memory, enum nest_role role);
// Where in memory the element of the value is, of the schedule or of the current one.
form_id write_memory_index(struct writer *w, const struct schedule *s, ir_id v,
                           const form_id *at);
form_id write_linear_of(struct writer *w, ir_id v, const form_id *at);
nest_id write_load_value(struct writer *w, ir_id v, const form_id *at, nest_id guard);
nest_id write_zero_of(struct writer *w, jot_dtype d);
bool write_form_of_atoms(struct writer *w, struct atoms a, form_id *out);
bool write_form_of_view(struct writer *w, struct view v, form_id *at);
bool write_is_member(const struct writer *w, ir_id v);
bool write_is_natural(struct writer *w, ir_id v, const form_id *at);
void write_bind(struct writer *w, struct atoms leaves, const form_id *forms,
                struct binding *undo);
// A loop over atoms of s, where there are any; its axes go to axes[].
void write_open_map(struct writer *w, const struct axes *s, struct atoms a, nest_id *axes);
// The loop of a prefix fold.
void write_open_scan(struct writer *w, const struct ir_node *n, nest_id axis);
void write_unbind(struct writer *w, uint32_t n, const struct binding *undo);
uint32_t write_unrolled_iterations(const struct writer *w);
void write_bind_unrolled(struct writer *w, uint32_t iteration, struct binding *undo);
// Whether the iteration is the first of those with its coordinates along the atoms `own`.
bool write_is_first_iteration(const struct writer *w, struct atoms own, uint32_t iteration);

// write/index.c
nest_id write_at_operand(struct writer *w, const struct ir_node *n, uint32_t i,
                         const form_id *at, nest_id guard);
// A change of index by its index maps.
nest_id write_indexed(struct writer *w, const struct ir_node *n, const form_id *at,
                      nest_id guard);
nest_id write_reshape(struct writer *w, const struct ir_node *n, const form_id *at,
                      nest_id guard);
nest_id write_concatenate(struct writer *w, const struct ir_node *n, const form_id *at,
                          nest_id guard);
nest_id write_iota(struct writer *w, const struct ir_node *n, const form_id *at);
nest_id write_constant(struct writer *w, const struct ir_node *n, const form_id *at,
                       nest_id guard);

// write/data_index.c
nest_id write_dynamic_slice(struct writer *w, const struct ir_node *n, const form_id *at,
                            nest_id guard);
nest_id write_dynamic_update_slice(struct writer *w, const struct ir_node *n, const form_id *at,
                                   nest_id guard);
nest_id write_gather(struct writer *w, const struct ir_node *n, const form_id *at,
                     nest_id guard);
// An element of what a lane has, after the updates one by one.
nest_id write_scatter(struct writer *w, const struct ir_node *n, const form_id *at,
                      nest_id guard);
// The loops of the kernel that updates the operand of v, in the loop over its points.
void write_update(struct writer *w, ir_id v);
// What an update puts for the element `at` of its updates, and where.
struct updated {
    form_id index;
    nest_id value, inside;
};
ir_id write_updates_of(const struct ir_graph *g, const struct ir_node *n);
struct ir_window write_window_of(const struct writer *w, const struct ir_node *n);
// The axes of the updates that count windows, a bit each.
uint32_t write_counting_axes(const struct ir_window *v);
// Where the window starts that element `at` of the result or the updates is of: the coordinate along each axis of the
// operand.  *inside becomes what must hold for the window to be inside of the operand, when it is not moved.
void write_find_start(struct writer *w, const struct ir_node *n, const struct ir_window *v,
                      const form_id *at, nest_id guard, form_id *start, nest_id *inside);
// An update, and what it is put over.
nest_id write_combined(struct writer *w, const struct ir_node *n, nest_id old, nest_id update);
// The axes of updates in the order in which they are made: window after window, each as a whole.
struct update_order {
    struct view view;
    uint32_t axis[IR_MAX_RANK]; // of the updates
    bool are_several;           // windows of the lane, which may meet
};
struct update_order write_update_order(struct writer *w, const struct ir_node *n);
// Coordinates in the updates of those in the ordered view.
void write_unorder(const struct update_order *o, const form_id *ordered, form_id *at);
struct updated write_updated(struct writer *w, const struct ir_node *n, const form_id *at);
void write_put_updated(struct writer *w, const struct ir_node *n, nest_id buffer,
                       const struct updated *u);

// write/by_element.c
// Whether each element goes through the windows, by the time that it takes.
bool write_is_by_element(const struct schedule *s, const struct ir_node *n,
                         const struct update_frame *f);
void write_by_element(struct writer *w, ir_id v);

// write/value.c
nest_id write_find_value(const struct writer *w, ir_id v, const form_id *at, nest_id guard);
void write_remember(struct writer *w, ir_id v, const form_id *at, nest_id guard,
                    nest_id result);
// Remembers a value that was computed, counts it, and puts it into its row.
void write_note(struct writer *w, ir_id v, const form_id *at, nest_id guard, nest_id result);
nest_id write_value_at(struct writer *w, ir_id v, const form_id *at, nest_id guard);

// write/fold.c
uint32_t write_fold_depth(struct writer *w, ir_id v);
scope_id write_scope_of(const struct writer *w, ir_id v, const form_id *at, nest_id guard);
bool write_same_extents(const struct schedule *s, struct atoms a, struct atoms b);
bool write_is_terminal(const struct writer *w, ir_id v);
// The MAP op that combines two elements of what the node folds, or IR_OP_COUNT.
enum ir_op write_pair_of(const struct ir_node *n, jot_dtype d);
// The identity and x, combined by the pair: x itself where that is known.
nest_id write_begun(struct writer *w, const struct nest_combine *c, nest_id x);
// The value of a prefix fold that has come to `at`, in its loop.
nest_id write_running(struct writer *w, const struct ir_node *n, const form_id *at);
struct nest_combine write_combine_of(struct writer *w, ir_id v, const form_id *at,
                                     nest_id guard, const form_id *folded);
void write_deal_axes(struct writer *w, const struct ir_node *n, uint32_t n_axes,
                     const nest_id *axes, form_id *out);
nest_id write_result_of(struct writer *w, ir_id v, const struct nest_combine *c,
                        nest_id result);
nest_id write_fold(struct writer *w, ir_id v, const form_id *at, nest_id guard);

// write/result.c
nest_id write_output_of(struct writer *w, ir_id v);
void write_put_result(struct writer *w, ir_id v, const form_id *at, nest_id value);
bool write_is_put(const struct writer *w, ir_id v);
void write_put_where_computed(struct writer *w, ir_id v, const form_id *at, nest_id guard,
                              nest_id value);

// write/row.c
bool write_is_home(struct writer *w, ir_id v, const form_id *at, scope_id scope);
// Whether the value was computed so in an inner loop, and all elements are.
bool write_is_inner(struct writer *w, ir_id v, const form_id *at, nest_id result);
void write_count_computation(struct writer *w, ir_id v, const form_id *at, nest_id guard,
                             nest_id result);
void write_choose_rows(struct writer *w, struct writer *again);
// Of the rows of a kernel that is written those that are read.
void write_read_rows(struct writer *w, struct writer *again);
struct row *write_filled_row(struct writer *w, ir_id v, const form_id *at);
form_id write_index_in_row(struct writer *w, ir_id v);
void write_fill_row(struct writer *w, ir_id v, const form_id *at, nest_id guard, nest_id value);

// write/frame.c
void write_enter(struct writer *w, struct frame *f);
// The body of a node of the current frame, with the values of its parameters; not entered.
struct frame *write_frame(struct writer *w, struct lane_graph *body, const ir_id *in);
// The graph that is scheduled, for what its loops leave: tables for all of them.
void write_make_results(struct schedule *s);
struct frame *write_results(struct writer *w);
// The value in the current frame, if that knows more of it than how to compute it.
bool write_in_frame(struct writer *w, ir_id v, const form_id *at, nest_id guard, nest_id *out);
struct view write_view(const struct writer *w, ir_id v);
// Coordinates of element `element` of those that a lane has.
void write_forms_of_element(struct writer *w, struct view view, int64_t element, form_id *at);
// The coordinate along an axis that is lanes of the kernel, or NONE.
form_id write_form_of_lanes(struct writer *w, struct atoms a);
bool write_is_looped(struct writer *w, struct view view);
// The number of an element among those that the lane has.
form_id write_inner_index(struct writer *w, struct view view, const form_id *at);
// Loops of the kind (map, seq) over what a lane has of a value; the coordinates there and the number.
// The current scope is to be closed after.
form_id write_open_inner(struct writer *w, struct view view, enum nest_kind kind, form_id *at);
// Makes all elements of a value that is kept, or the loop or branch that it is a result of.
void write_hold(struct writer *w, ir_id v);
// The local that holds the value, or NEST_NONE.
nest_id write_local_of(const struct writer *w, ir_id v);

// Writes the loop or branch n of the current frame, if that has not been done.
void write_loop(struct writer *w, const struct ir_node *n);

// Where all elements of a value that a lane has go.
struct sink {
    nest_id *elements;   // here, by number; NULL: into
    nest_id buffer;      // this,
    bool is_memory;      // with the lanes,
    ir_id as;            // as this value of the schedule,
    const int64_t *axes; // transposed so, time included, unless NULL
    form_id time;        // NONE: no axis of time in front
    nest_id guard;
    bool is_kept; // of rows: a local has them too
};
void write_elements(struct writer *w, ir_id v, struct view view, const struct sink *to);
nest_id write_new_local(struct writer *w, jot_dtype d, int64_t count);
void write_copy_local(struct writer *w, nest_id to, nest_id from);

// write/in_place.c
// The local that has the value of the current frame once it is made, or NEST_NONE.
nest_id write_local_with(struct writer *w, ir_id v);
// The local that holds a value of the current frame that is read once: the reader may have it.
nest_id write_take(struct writer *w, ir_id v);
// A local with the operand of update n, which may be what held that, updated.
nest_id write_update_local(struct writer *w, const struct ir_node *n);
// Whether v is made of `from`, or of what a loop makes of that, by updates that can wait for the
// end of the frame's statements because reading through them is cheap.  From then on it is read so.
bool write_can_wait(struct writer *w, ir_id v, ir_id from);
// What the updates that v is made by started from, and the local that holds that.
ir_id write_updated_value(const struct ir_graph *g, ir_id v);
nest_id write_updated_local(struct writer *w, ir_id v);
// The updates that waited, each of what its local has.
void write_waiting(struct writer *w, uint32_t n, const ir_id *v, const nest_id *local);

// write/chain.c
bool write_can_chain(const struct ir_graph *g, const struct ir_node *n);
nest_id write_chain(struct writer *w, ir_id v, const form_id *at, nest_id guard);

// write/control.c
// The loop or branch n of the current frame.  Rows go where `rows` says, by result (NULL: all are
// kept); other results, and rows that are kept, are in out.
void write_control(struct writer *w, const struct ir_node *n, struct lane_graph **bodies,
                   const struct sink *rows, struct held *out);

#endif
