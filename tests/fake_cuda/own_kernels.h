// SPDX-License-Identifier: Apache-2.0
// jot's own kernels of CUDA C, compiled as C.
#ifndef FAKE_CUDA_OWN_KERNELS_H
#define FAKE_CUDA_OWN_KERNELS_H

struct own_kernel {
    const char *name; // NULL behind the last
    int n;            // parameters
    void (*thread)(void **operands);
    void (*then)(void **operands); // when all GPUs of its group have done that; or NULL
};
extern const struct own_kernel own_kernels[];

#endif
