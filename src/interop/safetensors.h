// SPDX-License-Identifier: Apache-2.0
// The format of .safetensors files (github.com/huggingface/safetensors): a length of 8 bytes,
// little-endian, a header of JSON, and the elements:
//
//     {"__metadata__": {"k": "text"}, "w": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...}
//
// Offsets count from the end of the header; the tensors lie one behind the other and leave no
// bytes between or behind them.
#ifndef INTEROP_SAFETENSORS_H
#define INTEROP_SAFETENSORS_H

#include "interop/input.h"

#include "jot/array.h"

#include <stdbool.h>

struct tensor {
    const char *name, *type; // as the file has them
    size_t first_dim;
    int rank;
    uint64_t at, bytes; // in the file
    uint64_t entry;     // offset of its entry in the header
};

// Texts with names.
struct note {
    const char *key, *text;
};

struct safetensors {
    struct tensor *tensors; // in the order of the header
    size_t n, room;
    size_t *by_name;
    int64_t *dims;
    size_t n_dims, dims_room;
    struct note *notes;
    size_t n_notes, notes_room;
    char *text, *strings; // of the header
};

// All but the elements; the sizes have been checked.  To be released whether it fails or not.
jot_status safetensors_read(const struct input *in, struct safetensors *out);
void safetensors_release(struct safetensors *s);
// Its number; n where there is none.
size_t safetensors_find(const struct safetensors *s, const char *name);
// Tensor i on the default device, over the map of the input where it has one.
jot_status safetensors_get(const struct input *in, const struct safetensors *s, size_t i,
                           jot_array **out);

struct named_array {
    const char *name;
    jot_array *array;
};
// Sorts the list: wide elements first, so that all are aligned, then by name.
jot_status safetensors_write(struct output *o, size_t n, struct named_array *list,
                             size_t n_notes, const struct note *notes);

#endif
