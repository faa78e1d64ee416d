// SPDX-License-Identifier: Apache-2.0
// Which nests of a program are kernels of a GPU, and which phases of loops.
#ifndef MAP_GPU_PROGRAM_H
#define MAP_GPU_PROGRAM_H

#include "map/gpu.h"

// By nest, what its steps are: phases are those of loops that are kernels.
enum map_role { MAP_UNUSED, MAP_KERNEL = 1, MAP_PHASE = 2 };
enum map_role *map_roles_of(struct arena *arena, const struct nest_program *p);

#endif
