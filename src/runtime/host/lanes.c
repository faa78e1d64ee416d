// SPDX-License-Identifier: Apache-2.0
#include "runtime/host/lanes.h"

#include "base/dtype.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#define SWEEPS 30 // seven or so are enough

#define JOINED(name, type) JOINED_(name, type)
#define JOINED_(name, type) name##_##type

// For each kind of processor, by the length of its vectors: codes_<kind>, by whether numbers
// are double and whether they are complex.
#define TARGET
#define BYTES 16
#define ON(name) name##_any
#include "runtime/host/lanes_types.inc"

#if defined(__x86_64__)
#define TARGET __attribute__((target("avx2,fma")))
#define BYTES 32
#define ON(name) name##_avx2
#include "runtime/host/lanes_types.inc"

#define TARGET __attribute__((target("avx512f,avx512vl,avx512dq,fma,prefer-vector-width=512")))
#define BYTES 64
#define ON(name) name##_avx512
#include "runtime/host/lanes_types.inc"
#endif

static const struct lanes_code *find_code(bool is_double, bool is_complex)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512dq"))
        return codes_avx512[is_double][is_complex];
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return codes_avx2[is_double][is_complex];
#endif
    return codes_any[is_double][is_complex];
}

const struct lanes_code *lanes_code_of(enum lanes_op op, jot_dtype dtype,
                                       const struct lanes_shape *s)
{
    // The first of all vectors, or those of what a matrix maps to nothing.
    bool is_part = s->mode == 3 || (s->m != s->n && s->mode == 2);
    if (s->m < 1 || s->n < 1 || s->m > LANES_SIDE || s->n > LANES_SIDE ||
        (op == LANES_SVD && is_part))
        return NULL;
    return find_code(dtype_real(dtype) == JOT_F64, dtype_is_complex(dtype));
}

size_t lanes_scratch(const struct lanes_code *c, const struct lanes_shape *s)
{
    size_t most = (size_t)(s->m > s->n ? s->m : s->n);
    return c->number * (2 * most * most + 4 * most);
}

bool lanes_are_many(const struct lanes_code *c, int64_t batch)
{
    return c && 2 * batch >= c->lanes;
}
