// SPDX-License-Identifier: Apache-2.0
#include "runtime/host/conv_code.h"

#include <string.h>

#define JOINED(name, type) JOINED_(name, type)
#define JOINED_(name, type) name##_##type

// For each kind of processor, by the length of its vectors and the rows that have a register each for
// two of them.
#define TARGET
#define BYTES 16
#define ROWS 6
#define ON(name) name##_any
#include "runtime/host/conv_code.inc"

#if defined(__x86_64__)
#define TARGET __attribute__((target("avx2,fma")))
#define BYTES 32
#define ROWS 6
#define ON(name) name##_avx2
#include "runtime/host/conv_code.inc"

#define TARGET __attribute__((target("avx512f,avx512vl,avx512dq,fma,prefer-vector-width=512")))
#define BYTES 64
#define ROWS 8
#define ON(name) name##_avx512
#include "runtime/host/conv_code.inc"
#endif

const struct conv_code *conv_code_of(jot_dtype dtype)
{
    bool is_double = dtype == JOT_F64;
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512dq"))
        return codes_avx512[is_double];
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return codes_avx2[is_double];
#endif
    return codes_any[is_double];
}
