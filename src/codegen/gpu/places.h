// SPDX-License-Identifier: Apache-2.0
// Updates of few places.
#ifndef CODEGEN_GPU_PLACES_H
#define CODEGEN_GPU_PLACES_H

#include "codegen/gpu/updates.h"

// The two steps.
void places_lower(struct cg_lowering *l, struct updates *u, const struct map_places *of,
                  uint32_t at, struct cg_kernel *out);

#endif
