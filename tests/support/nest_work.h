// SPDX-License-Identifier: Apache-2.0
// What programs and graphs cost by the prices of ir/cost.h.
#ifndef SUPPORT_NEST_WORK_H
#define SUPPORT_NEST_WORK_H

#include "ir/graph.h"
#include "nest/program.h"

// Of all ops, combinations and products that the steps do, loops of steps once.
int64_t nest_program_work(const struct nest_program *p);
// Statements of the kernels.
int64_t nest_program_statements(const struct nest_program *p);
// Of the ops of the graph, every element of every value once.
int64_t graph_work(const struct ir_graph *g);

#endif
