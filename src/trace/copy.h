// SPDX-License-Identifier: Apache-2.0
// A function taken to another module, with the functions it uses.
#ifndef TRACE_COPY_H
#define TRACE_COPY_H

#include "ir/graph.h"

// The number of the function in `to`, which is not the module of g.
uint32_t copy_function(struct ir_module *to, const struct ir_graph *g);

#endif
