// SPDX-License-Identifier: Apache-2.0
// Elements as unsigned numbers of the same order.
//
// The order is that of the op sort: numbers from low to high, -0 equal to 0, all NaN equal and
// last, complex numbers by real part and then by imaginary part, false before true.  Or, for top_k, the
// total one of IEEE 754, in which -0 is below 0, and NaN beyond the infinity of their sign.
#ifndef RUNTIME_HOST_SORT_KEYS_H
#define RUNTIME_HOST_SORT_KEYS_H

#include "jot/dtype.h"

#include <stdbool.h>
#include <stdint.h>

// One array of a real type whose elements are keys, or of one part of complex ones.
struct sort_part {
    jot_dtype dtype;
    int bits;
    int step; // between elements, in elements of dtype
    const void *at;
    bool is_total; // the order of floats
};

// Parts of which the first decides most.
struct sort_key {
    int n;
    struct sort_part part[4];
    int bits; // of all parts, at most 64
};

enum { SORT_BLOCK = 256 };

// The keys of elements first, ..., first + n - 1 as numbers of key->bits bits; with an order of
// elements `indices`, of those numbered indices[first], ....  n is at most SORT_BLOCK.
void sort_encode(const struct sort_key *key, const uint32_t *indices, int64_t first, int n,
                 uint64_t *out);

// The n elements that have the keys, but for zeros, which are all 0, and NaN, which are all alike.
void sort_decode(jot_dtype dtype, const uint64_t *keys, int n, void *out);

// The same of keys that are one array of words alone.
bool sort_has_words(const struct sort_key *key);
void sort_encode_words(const struct sort_key *key, int64_t first, int64_t n, uint32_t *out);
void sort_decode_words(jot_dtype dtype, const uint32_t *keys, int64_t n, void *out);
// The first of keys[first .. n) that is not below the bound, or n.
int sort_find_word(const uint32_t *keys, int first, int n, uint32_t bound);

// Puts zeros and NaN of x[0 .. n), as they are and in their order, where they are in sorted.
void sort_restore(jot_dtype dtype, const void *x, int64_t n, void *sorted);

#endif
