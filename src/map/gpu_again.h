// SPDX-License-Identifier: Apache-2.0
// Tapes of loops over time whose trips are made again.
#ifndef MAP_GPU_AGAIN_H
#define MAP_GPU_AGAIN_H

#include "map/gpu.h"

#define MAP_MOST_SEGMENT 32 // trips
// By buffer, whether it is a tape that the loop over time of the points leaves, which another one that
// comes back makes again, NULL: that is no such loop; whether there are any that are made so.
const bool *map_again_find(const struct map_gpu *m, nest_id loop,
                           const struct nest_statement *seq);
bool map_again_choose(const struct map_gpu *m, struct nest *n, nest_id loop);

#endif
