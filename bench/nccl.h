// SPDX-License-Identifier: Apache-2.0
#ifndef BENCH_NCCL_H
#define BENCH_NCCL_H

#include <stddef.h>

// The least time, in us, of a sum of f32[count] over GPUs 0 to n - 1 by NCCL itself, waited for; 0 where there
// is no NCCL.  from, to: a piece on each GPU.
double nccl_sum(int n, const void *const *from, void *const *to, size_t count);

#endif
