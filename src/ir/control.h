// SPDX-License-Identifier: Apache-2.0
// Loops and branches: the attributes of scan, while and cond as structs, and their builders.
//
//     c, ys = scan(consts, c, xs):   for t in 0 .. length - 1:  c, ys[t] = body(consts, c, xs[t])
//     c = while(consts, c):          while test(consts, c):     c = body(consts, c)
//     y = cond(index, x):            y = branch[clamp(index)](x)
//
// Bodies are closed: what they read of the graph around them are operands.
#ifndef IR_CONTROL_H
#define IR_CONTROL_H

#include "ir/build.h"

// Operands are consts, carries, rows in; results are carries, rows out.  Rows lie along axis 0, and
// with reverse the last comes first.
struct ir_scan {
    uint32_t body;
    int n_consts, n_carry;
    int64_t length;
    bool reverse;
    int64_t checkpoint; // k > 0: the carries before every k-th trip; or one of the below
    int64_t lanes;      // no carries: trips are lanes of a map, 1 and the maps around it; or 0
    // What messages call trip t of a loop that another was made into: first + t, or, when it has
    // so many trips of each trip of the loop around it, of which the two are one, r * part + that.
    int64_t first, part;
};

// What reverse mode keeps of a scan beside k.
enum {
    IR_CHECKPOINT_AUTO = 0,       // by bytes (cost.h)
    IR_CHECKPOINT_ALL = -1,       // the residuals of every trip
    IR_CHECKPOINT_SQRT = -2,      // k is the square root of the length, rounded up
    IR_CHECKPOINT_RECOMPUTE = -3, // only the carries before the first trip
};

// What messages call the trips of a while.
enum ir_trips {
    IR_TRIPS_COUNTED,  // their number
    IR_TRIPS_IN_CARRY, // carry 0 before the trip, an i32 by lane
    IR_TRIPS_LEFT,     // of those that are left, which is carry 0, the last
    IR_TRIPS_UNNAMED,  // nothing: the loop is none that anybody wrote
};

#define IR_NO_BOUND (-1)
#define IR_SLOTS 64 // of a while that has none

// Operands are consts, carries; results are carries.  Test and body take the same.  With batched
// > 0 that many leading axes of every carry are lanes, the test is bool[lanes], and a lane keeps
// its carries once its test is false.
struct ir_while {
    uint32_t test, body;
    int n_consts, batched;
    int64_t max_trips; // or IR_NO_BOUND: the loop ends then, though the test may hold
    int64_t slots;     // states that reverse mode keeps when there is no bound; 0 is IR_SLOTS
    enum ir_trips trips;
};

struct ir_scan ir_scan_of(const struct ir_node *n);
// Whether v is a result of a scan that has an element for each trip.
static inline bool ir_is_row(const struct ir_node *n, ir_id v)
{
    return n->op == IR_scan && v - n->out >= (uint32_t)ir_scan_of(n).n_carry;
}
struct ir_while ir_while_of(const struct ir_node *n);
// How many bodies a node has, and which: functions of the module.
int ir_bodies_of(const struct ir_node *n, const int64_t **out);

ir_id ir_scan(struct ir_builder *b, const struct ir_scan *s, int n_in, const ir_id *in);
ir_id ir_while(struct ir_builder *b, const struct ir_while *w, int n_in, const ir_id *in);
// in[0] is the index, i32[].
ir_id ir_cond(struct ir_builder *b, int n, const uint32_t *branches, int n_in, const ir_id *in);

// The attributes with other functions, as many.
const struct ir_attrs *ir_with_functions(struct ir_module *m, const struct ir_attrs *a,
                                         const uint32_t *functions);

// How many loops and branches are in one another, of the node and of the functions that it uses, and at most of
// the graph.
uint32_t ir_control_depth_of(const struct ir_graph *g, const struct ir_node *n);
uint32_t ir_control_depth(const struct ir_graph *g);

#endif
