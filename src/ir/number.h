// SPDX-License-Identifier: Apache-2.0
// Numbers that constants are made of.
#ifndef IR_NUMBER_H
#define IR_NUMBER_H

#include "ir/graph.h"

// The constant of one element that a value is filled with, perhaps broadcast or in another shape; or NULL.
const struct ir_node *ir_filling(const struct ir_graph *g, ir_id v);
// The elements of a constant.
const void *ir_const_data(const struct ir_node *n);
// Element i of data of a type: as a number, false for complex types; and of an integer type, sign-extended.
bool ir_number_at(jot_dtype d, const void *data, int64_t i, double *out);
int64_t ir_integer_at(jot_dtype d, const void *data, int64_t i);

#endif
