// SPDX-License-Identifier: Apache-2.0
// What the tests of transforms of loops and branches share.
#ifndef CONTROL_SUPPORT_H
#define CONTROL_SUPPORT_H

#include "control_programs.h"
#include "pass_support.h"

#include "ir/control.h"

struct ir_tensor *draw_inputs(uint32_t f, uint64_t *state);

// Every choice of inputs to differentiate in, or to map.
#define for_each_mask(bits, among)                                                             \
    for (uint64_t bits = (among); bits; bits = (bits - 1) & (among))

// Against differences, against the other direction, and after simplification.
void check_derivatives(const char *what, uint32_t f, const bool *mask, uint64_t *state);

// The nodes of an op in a function itself, and the first.
int count_op(uint32_t f, enum ir_op op);
const struct ir_node *find_op(uint32_t f, enum ir_op op);

#endif
