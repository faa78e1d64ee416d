// SPDX-License-Identifier: Apache-2.0
// Loops and branches: as steps (control.c), joined (join_loops.c), as one kernel (resident.c, resident_kernel.c).
#ifndef SCHEDULE_CONTROL_CONTROL_H
#define SCHEDULE_CONTROL_CONTROL_H

#include "schedule/internal.h"

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

#endif
