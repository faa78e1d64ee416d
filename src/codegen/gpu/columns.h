// SPDX-License-Identifier: Apache-2.0
// Folds of neighbouring points by threads beside one another.
#ifndef CODEGEN_GPU_COLUMNS_H
#define CODEGEN_GPU_COLUMNS_H

#include "codegen/kernel.h"

// By a group of which each thread has blocks of its own, beside its neighbours' columns.
void gpu_fold_columns(struct cg_lowering *l, nest_id fold);
// The steps of a kernel where blocks of threads have parts of the points' only fold.
void gpu_parts_lower(struct cg_lowering *l, nest_id loop, struct cg_kernel *out);

#endif
