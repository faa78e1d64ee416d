// SPDX-License-Identifier: Apache-2.0
// Arrays whose bytes stand in a file as they do in memory: little-endian, row-major.
#ifndef INTEROP_RAW_ARRAY_H
#define INTEROP_RAW_ARRAY_H

#include "interop/input.h"

#include "jot/array.h"

// A borrowed array over the map of the input, from offset `at` on; NULL without a message where
// it is not mapped or not aligned there, and for bools, which may be other bytes than 0 and 1.
// The sizes have been checked (rt_array_check), and the bytes are there.
jot_array *raw_array_map(const struct input *in, uint64_t at, jot_dtype dtype, int rank,
                         const int64_t *dims);

// The array on the default device in place of this one on the host, which is released.
jot_status raw_array_place(jot_array *a, jot_array **out);

// From elements of e5m2, which are half as many bytes: each is the upper byte of an f16.
void raw_array_widen(jot_array *a);
// Bools as 0 and 1, whatever bytes they are.
void raw_array_normalize(jot_array *a);

#endif
