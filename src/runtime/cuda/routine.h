// SPDX-License-Identifier: Apache-2.0
// Routines (runtime/routine.h) that a GPU computes itself, by NVIDIA's libraries and jot's own kernels.
#ifndef RUNTIME_CUDA_ROUTINE_H
#define RUNTIME_CUDA_ROUTINE_H

#include "runtime/cuda/device.h"
#include "runtime/routine.h"

// What each is the first part of; from memory_allocate, and all there is to release.
struct cuda_routine {
    struct cuda_routine *next;   // of the program
    struct cuda_routine *part;   // that it runs itself, released with it; or NULL
    struct rt_routine_call call; // without operands; set once it is bound
    size_t workspace;            // bytes that it wants, 256-byte aligned
    // Hands the work over, in the context.
    jot_status (*run)(struct cuda_device *d, const struct cuda_routine *r,
                      void *const *operands, char *workspace);
};

// cuda_<name>_bind, by the rows of the table: in the context, for params and sizes that are checked.
// Leaves NULL where there is no form for them; JOT_ERR_LIBRARY where its library is missing or fails.
#define ROUTINE(name, is_recorded)                                                             \
    jot_status cuda_##name##_bind(struct cuda_device *d, const struct rt_routine_call *call,   \
                                  struct cuda_routine **out);
#include "base/gpu_routines.def"
#undef ROUTINE

// Has what the call needs opened, compiled and kept by the device, in the context.
void cuda_routine_open(struct cuda_device *d, const char *name,
                       const struct rt_routine_call *call);

// The routines of many matrices that a block or a part of a warp can hold; NULL for others.
jot_status cuda_small_qr_bind(struct cuda_device *d, const struct rt_routine_call *call,
                              struct cuda_routine **out);
jot_status cuda_small_svd_bind(struct cuda_device *d, const struct rt_routine_call *call,
                               struct cuda_routine **out);

// svd of mode 3.
jot_status cuda_truncated_svd_bind(struct cuda_device *d, const struct rt_routine_call *call,
                                   struct cuda_routine **out);

// A part of the workspace of so many bytes; counts them.
static inline size_t cuda_take(size_t *used, uint64_t bytes)
{
    size_t at = *used;
    *used += (bytes + 255) & ~(size_t)255;
    return at;
}

#endif
