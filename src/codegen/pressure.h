// SPDX-License-Identifier: Apache-2.0
// How many vectors go side by side, by latency and registers.
#ifndef CODEGEN_PRESSURE_H
#define CODEGEN_PRESSURE_H

#include "codegen/lower.h"

// How many vectors of these lanes go side by side; 0 for a body without loops over time.
unsigned cg_choose_chunks(struct cg_lowering *l, nest_id s, nest_id axis, unsigned lanes);

#endif
