// SPDX-License-Identifier: Apache-2.0
// Loops over time of the points whose trips read some trips before what they want; how many statements of
// such a loop are those reads and what their guards are made of, and which, in their order.
#ifndef MAP_GPU_EARLY_H
#define MAP_GPU_EARLY_H

#include "map/gpu.h"

void map_early_choose(const struct map_gpu *m, struct nest *n, nest_id loop);
uint32_t map_early_find(const struct map_gpu *m, const struct nest_statement *seq,
                        nest_id *out);

#endif
