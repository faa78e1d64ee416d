// SPDX-License-Identifier: Apache-2.0
// Convolutions of f32 and f64 on the host, features last, as products with windows that are read where
// they lie.
//
// A task copies what its windows see of an image, with zeros around, where they reach beyond
// it, and adds up tiles of some positions by some features (conv_code.h).  The gradient in x is
// such a convolution of y, one for each remainder of positions by strides; that in w has the
// positions as its terms.  What a task adds up depends on the shapes alone.
#ifndef RUNTIME_HOST_CONV_TILES_H
#define RUNTIME_HOST_CONV_TILES_H

#include "base/conv.h"
#include "jot/status.h"
#include "runtime/device.h"
#include "runtime/routine.h"

// Whether it is one of them that needs no more than some memory for each worker.
bool conv_has_tiles(const struct conv_call *c);
size_t conv_tiles_scratch(const struct conv_call *c);
// Whether tiles are better than a product of matrices: of struct rt_device_type.
bool host_takes_convolution(jot_device *device, const int64_t *params, uint32_t count);
// JOT_ERR_MEMORY.
jot_status conv_by_tiles(const struct rt_routine_call *call, const struct conv_call *c);

#endif
