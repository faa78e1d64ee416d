// SPDX-License-Identifier: Apache-2.0
// Blocks of numbers combined element by element.
#ifndef RUNTIME_HOST_COMBINE_H
#define RUNTIME_HOST_COMBINE_H

#include "base/collective.h"

#include <stddef.h>

// Elements that are combined at once, at most.
#define COMBINE_TILE 1024

// from[0] + from[1] + ..., or what else the combiner does, in this order, for elements begin .. end - 1,
// COMBINE_TILE of them at most; written from element `at` on to each of the n_to blocks, which may be
// those that are read, at the same elements.
// Sums and products of f16 and bf16 are rounded once.  is_large: caches do not hold what is written.
void host_combine(enum collective_combiner combiner, jot_dtype dtype, size_t n,
                  const void *const *from, size_t begin, size_t end, size_t n_to,
                  void *const *to, size_t at, bool is_large);

#endif
