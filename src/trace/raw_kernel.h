// SPDX-License-Identifier: Apache-2.0
// Kernels in CUDA C as hosts of the graph: the context is a struct rt_raw_kernel, which a GPU runs in
// the place of the function here.
#ifndef TRACE_RAW_KERNEL_H
#define TRACE_RAW_KERNEL_H

#include "jot/callback.h"

jot_status raw_kernel_on_host(void *ctx, const jot_callback_call *call);

#endif
