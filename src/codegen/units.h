// SPDX-License-Identifier: Apache-2.0
// Points of a map that go together, as one long vector.
#ifndef CODEGEN_UNITS_H
#define CODEGEN_UNITS_H

#include "codegen/lower.h"

// How many of a map in a loop over the points of a network; 1: one by one.
unsigned cg_units(const struct cg_lowering *l, nest_id map);
// Whether the map is a copy of rows that lie far apart (map/map.h): then it is made.
bool cg_lower_copy(struct cg_lowering *l, nest_id map);
void cg_lower_units(struct cg_lowering *l, nest_id map, unsigned n);

#endif
