// SPDX-License-Identifier: Apache-2.0
// Updates of few elements.
#ifndef CODEGEN_GPU_COUNTING_SORT_H
#define CODEGEN_GPU_COUNTING_SORT_H

#include "codegen/gpu/updates.h"
#include "map/gpu_counting_sort.h"

// The two steps.
void counting_sort_lower(struct cg_lowering *l, struct updates *u,
                         const struct map_counting_sort *of, uint32_t at,
                         struct cg_kernel *out);

#endif
