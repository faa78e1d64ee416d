// SPDX-License-Identifier: Apache-2.0
// Arrays to try a program on.
#include "command.h"

#include <stdlib.h>
#include <string.h>

static uint64_t draw(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

// The bits of an element, or of a part of a complex one.  Floats have the exponent of 0.5.
static uint64_t bits_of(jot_dtype dtype, uint64_t r)
{
    switch (dtype) {
    case JOT_BOOL:
        return r & 1;
    case JOT_U32:
    case JOT_U64: // keys of random numbers
        return r;
    case JOT_F16:
        return 0x3800 | (r & 0x3ff);
    case JOT_BF16:
        return 0x3f00 | (r & 0x7f);
    case JOT_F32:
    case JOT_C64:
        return 0x3f000000 | (r & 0x7fffff);
    case JOT_F64:
    case JOT_C128:
        return UINT64_C(0x3fe0000000000000) | (r & UINT64_C(0xfffffffffffff));
    default:
        return r % 10;
    }
}

jot_array *random_array(const jot_program_type *t, uint64_t seed)
{
    int64_t dims[65];
    bool is_complex = t->dtype == JOT_C64 || t->dtype == JOT_C128;
    size_t n = 1, part = jot_dtype_size(t->dtype) >> is_complex;
    for (int i = 0; i < t->rank; i++)
        n *= (size_t)(dims[i] = t->dims[i]);
    dims[t->rank] = JOT_END;
    char *bytes = malloc((n << is_complex) * part + 1);
    if (!bytes)
        return NULL;
    uint64_t state = seed;
    for (size_t i = 0; i < n << is_complex; i++) {
        uint64_t bits = bits_of(t->dtype, draw(&state));
        memcpy(bytes + i * part, &bits, part); // little-endian, as all that jot runs on
    }
    jot_array *a = jot_array_copy(t->dtype, bytes, dims);
    free(bytes);
    return a;
}
