// SPDX-License-Identifier: Apache-2.0
// Folds by lane.
#ifndef CODEGEN_FOLD_LANE_H
#define CODEGEN_FOLD_LANE_H

#include "codegen/lower.h"

// A fold directly in the body of a loop over points, one of whose axes is the lanes, for one lane
// after the other.
void cg_lower_fold_by_lane(struct cg_lowering *l, nest_id fold);

#endif
