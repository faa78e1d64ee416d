// SPDX-License-Identifier: Apache-2.0
// The element types of .safetensors files.
#ifndef INTEROP_SAFETENSOR_TYPES_H
#define INTEROP_SAFETENSOR_TYPES_H

#include "jot/dtype.h"

#include <stdbool.h>
#include <stdint.h>

struct safetensor_type {
    const char *name;
    uint64_t bits;
    bool is_read, is_f8e5m2; // the latter is read as f16, which has all its values
    jot_dtype dtype;
};

// NULL where there is none.
const struct safetensor_type *safetensor_type_named(const char *name);
const struct safetensor_type *safetensor_type_of(jot_dtype dtype);

#endif
