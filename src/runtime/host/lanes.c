// SPDX-License-Identifier: Apache-2.0
#include "runtime/host/lanes.h"

#include "base/dtype.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#define SWEEPS 30 // seven or so are enough

#define JOINED(name, parts) JOINED_(name, parts)
#define JOINED_(name, parts) name##_##parts

typedef float f32x4 __attribute__((vector_size(16)));
typedef double f64x2 __attribute__((vector_size(16)));
typedef int32_t i32x4 __attribute__((vector_size(16)));
typedef int64_t i64x2 __attribute__((vector_size(16)));
#define TARGET
#define REAL float
#define SQRT sqrtf
#define INT int32_t
#define EPSILON 0x1p-23f
#define SMALL 0x1p-20f
#define VANISHING 0x1p-100f
#define VEC f32x4
#define IVEC i32x4
#define LANES 4
#define NAMED(name) name##_f32
#include "runtime/host/lanes_types.inc"
#define REAL double
#define SQRT sqrt
#define INT int64_t
#define EPSILON 0x1p-52
#define SMALL 0x1p-200
#define VANISHING 0x1p-900
#define VEC f64x2
#define IVEC i64x2
#define LANES 2
#define NAMED(name) name##_f64
#include "runtime/host/lanes_types.inc"
#undef TARGET

#if defined(__x86_64__)
typedef float f32x8 __attribute__((vector_size(32)));
typedef double f64x4 __attribute__((vector_size(32)));
typedef int32_t i32x8 __attribute__((vector_size(32)));
typedef int64_t i64x4 __attribute__((vector_size(32)));
#define TARGET __attribute__((target("avx2,fma")))
#define REAL float
#define SQRT sqrtf
#define INT int32_t
#define EPSILON 0x1p-23f
#define SMALL 0x1p-20f
#define VANISHING 0x1p-100f
#define VEC f32x8
#define IVEC i32x8
#define LANES 8
#define NAMED(name) name##_f32_avx2
#include "runtime/host/lanes_types.inc"
#define REAL double
#define SQRT sqrt
#define INT int64_t
#define EPSILON 0x1p-52
#define SMALL 0x1p-200
#define VANISHING 0x1p-900
#define VEC f64x4
#define IVEC i64x4
#define LANES 4
#define NAMED(name) name##_f64_avx2
#include "runtime/host/lanes_types.inc"
#undef TARGET

typedef float f32x16 __attribute__((vector_size(64)));
typedef double f64x8 __attribute__((vector_size(64)));
typedef int32_t i32x16 __attribute__((vector_size(64)));
typedef int64_t i64x8 __attribute__((vector_size(64)));
#define TARGET __attribute__((target("avx512f,avx512vl,avx512dq,fma,prefer-vector-width=512")))
#define REAL float
#define SQRT sqrtf
#define INT int32_t
#define EPSILON 0x1p-23f
#define SMALL 0x1p-20f
#define VANISHING 0x1p-100f
#define VEC f32x16
#define IVEC i32x16
#define LANES 16
#define NAMED(name) name##_f32_avx512
#include "runtime/host/lanes_types.inc"
#define REAL double
#define SQRT sqrt
#define INT int64_t
#define EPSILON 0x1p-52
#define SMALL 0x1p-200
#define VANISHING 0x1p-900
#define VEC f64x8
#define IVEC i64x8
#define LANES 8
#define NAMED(name) name##_f64_avx512
#include "runtime/host/lanes_types.inc"
#undef TARGET
#endif

// By real type and whether it is complex.
static const struct lanes_code *find_code(int is_double, int is_complex)
{
#if defined(__x86_64__)
    static const struct lanes_code *const avx512[2][2] = {
        {&code_f32_avx512_1, &code_f32_avx512_2}, {&code_f64_avx512_1, &code_f64_avx512_2}};
    static const struct lanes_code *const avx2[2][2] = {{&code_f32_avx2_1, &code_f32_avx2_2},
                                                        {&code_f64_avx2_1, &code_f64_avx2_2}};
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512dq"))
        return avx512[is_double][is_complex];
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return avx2[is_double][is_complex];
#endif
    static const struct lanes_code *const plain[2][2] = {{&code_f32_1, &code_f32_2},
                                                         {&code_f64_1, &code_f64_2}};
    return plain[is_double][is_complex];
}

const struct lanes_code *lanes_code_of(enum lanes_op op, jot_dtype dtype,
                                       const struct lanes_shape *s)
{
    bool is_part = s->m != s->n && s->mode == 2; // vectors of what a matrix maps to nothing
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
