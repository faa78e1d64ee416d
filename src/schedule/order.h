// SPDX-License-Identifier: Apache-2.0
// The order of the steps, and which memories they may write over (order.c).
#ifndef SCHEDULE_ORDER_H
#define SCHEDULE_ORDER_H

#include "schedule/internal.h"

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

#endif
