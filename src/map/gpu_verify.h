// SPDX-License-Identifier: Apache-2.0
// Whether there is code for a mapped nest.
#ifndef MAP_GPU_VERIFY_H
#define MAP_GPU_VERIFY_H

#include "map/gpu.h"

// Whether there is code that does what the text of the nest says; what is wrong with it is added to the report, which may
// be NULL.  Returns the number of faults.
int map_gpu_verify(const struct map_gpu *m, struct strbuf *report);

#endif
