// SPDX-License-Identifier: Apache-2.0
// Whether it is attention, or its gradient; the threads for it.
#ifndef MAP_GPU_ATTENTION_H
#define MAP_GPU_ATTENTION_H

#include "map/gpu.h"

bool map_attention_choose(const struct map_gpu *m, struct nest *n);

#endif
