// SPDX-License-Identifier: Apache-2.0
// What the files of layers share: what an _init is told, and values to begin with.
#ifndef LIBRARY_LAYER_H
#define LIBRARY_LAYER_H

#include "jot/layers.h"

// Which options an _init takes, beside dtype.
enum layer_takes {
    TAKES_BIAS = 1, // no_bias
    TAKES_W = 2,    // w, scale
    TAKES_GROUPS = 4,
    TAKES_HEADS = 8,
};

// A layer that is being made.  The first mistake sticks, and all of its values are this error
// then.
struct layer {
    const char *name, *where;
    jot_layer_options o; // with defaults in place
    bool is_wrong;
    jot_value error;
};

struct layer library_layer(const char *name, const char *where,
                           const jot_layer_options *options, unsigned takes,
                           jot_initializer *w);
void library_refuse(struct layer *l, jot_status status, const char *text);
// Sizes: 1 to 2^31 - 1.
void library_size(struct layer *l, const char *what, int64_t size);
// Its values.
jot_value library_weights(struct layer *l, jot_value key, const int64_t *dims);
jot_value library_filled(struct layer *l, double value, const int64_t *dims);
// Zeros, or no elements with no_bias.
jot_value library_bias(struct layer *l, const int64_t *dims);

// x + bias, and x times scale, where these have elements.
jot_value library_add_bias(jot_value x, jot_value bias);
// Whether it is f16 or bf16; x in f32 if it is, and y back in the type of x and p if both are
// one such.
bool library_is_half(jot_dtype dtype);
jot_value library_wide(jot_value x);
jot_value library_narrow(jot_value y, jot_value x, jot_value p);
// The extents of x, ended by JOT_END, in dims[LIBRARY_MOST_AXES + 1].
enum { LIBRARY_MOST_AXES = 32 };
void library_dims(jot_value x, int64_t *dims);

#endif
