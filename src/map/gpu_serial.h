// SPDX-License-Identifier: Apache-2.0
// The loop of a mapped kernel that one thread does.
#ifndef MAP_GPU_SERIAL_H
#define MAP_GPU_SERIAL_H

#include "map/gpu.h"

// The loop of a mapped kernel that one thread does, of those with much work the one with the most; NEST_NONE: there
// is none.
struct map_serial {
    nest_id loop;
    double work;
    int64_t count; // of turns
    const char *why;
};
void map_serial_find(const struct nest *n, struct map_serial *out);

#endif
