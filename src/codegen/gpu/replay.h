// SPDX-License-Identifier: Apache-2.0
// Loops over time there and back, whose tape is computed again.
#ifndef CODEGEN_GPU_REPLAY_H
#define CODEGEN_GPU_REPLAY_H

#include "codegen/lower.h"

struct gpu_replay;

// Those of the points of a loop; NULL: there are none.
struct gpu_replay *gpu_replay_of(struct cg_lowering *l, nest_id loop);
// Lowers a statement of theirs; false: as otherwise.
bool gpu_replay(struct cg_lowering *l, nest_id statement);

#endif
