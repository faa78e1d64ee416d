// SPDX-License-Identifier: Apache-2.0
// The axes of points that have loops in the order in which neighbouring threads find what lies together.
#ifndef MAP_GPU_ORDER_H
#define MAP_GPU_ORDER_H

#include "map/gpu.h"

void map_order_choose(const struct map_gpu *m, struct nest *n, nest_id loop);

#endif
