// SPDX-License-Identifier: Apache-2.0
// Loops and branches: the attributes of scan, while and cond as structs, and their builders.
//
//     c, ys = scan(consts, c, xs):   for t in 0 .. length - 1:  c, ys[t] = body(consts, c, xs[t])
//     c = while(consts, c):          while test(consts, c):     c = step(consts, c)
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
};

#define IR_NO_BOUND (-1)

// Operands are consts, carries; results are carries.  Test and step take the same.  With batched > 0
// that many leading axes of every carry are lanes, the test is bool[lanes], and a lane keeps its
// carries once its test is false.
struct ir_while {
    uint32_t test, step;
    int n_consts, batched;
    int64_t max_trips; // or IR_NO_BOUND: a test that holds after so many is a status
};

struct ir_scan ir_scan_of(const struct ir_node *n);
struct ir_while ir_while_of(const struct ir_node *n);
// How many branches a cond has, and which: functions of the module.
int ir_branches_of(const struct ir_node *n, const int64_t **out);

ir_id ir_scan(struct ir_builder *b, const struct ir_scan *s, int n_in, const ir_id *in);
ir_id ir_while(struct ir_builder *b, const struct ir_while *w, int n_in, const ir_id *in);
// in[0] is the index, i32[].
ir_id ir_cond(struct ir_builder *b, int n, const uint32_t *branches, int n_in, const ir_id *in);

// Whether the graph, or a function that it uses, has a loop or a branch.
bool ir_has_control(const struct ir_graph *g);

#endif
