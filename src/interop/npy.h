// SPDX-License-Identifier: Apache-2.0
// The format of NumPy's .npy files (numpy.lib.format).
#ifndef INTEROP_NPY_H
#define INTEROP_NPY_H

#include "interop/input.h"

#include "jot/array.h"

#include <stdbool.h>

// The header of a file, which says what the array is.
struct npy_header {
    jot_dtype dtype;
    int part; // bytes of a number in the file: half an element where it is complex
    bool is_swapped, is_column_major, is_f8e5m2;
    int rank;
    int64_t dims[65];
};

// Of a text of n bytes that stands at offset `at` of the stream.
jot_status npy_parse(const struct stream *s, uint64_t at, const char *text, size_t n,
                     struct npy_header *out);

// The array that the stream is, all of it, on the default device.
jot_status npy_read(struct stream *s, jot_array **out);

// The bytes in front of the elements of an array, for memory_release.
jot_status npy_make_header(const jot_array *a, char **out, size_t *out_n);

#endif
