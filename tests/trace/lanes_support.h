// SPDX-License-Identifier: Apache-2.0
// What the tests of lanes and devices share.
#ifndef TRACE_LANES_SUPPORT_H
#define TRACE_LANES_SUPPORT_H

#include "trace_support.h"

// NUMBERS(6, 2, 3): f64[2,3], none of whose numbers is like another.
static inline jot_array *numbers_of(const int64_t *dims, int64_t n)
{
    double at[256];
    ck_assert_int_le(n, 256);
    for (int i = 0; i < n; i++)
        at[i] = sin(1 + 1.7 * i) + 0.01 * i;
    return jot_array_copy(JOT_F64, at, dims);
}
#define NUMBERS(n, ...) numbers_of((const int64_t[]){__VA_ARGS__, JOT_END}, n)

// The one result of e, and of f.
static inline jot_array *result_of(jot_executable *e, size_t n, jot_array *const *in)
{
    jot_array *y = NULL;
    ck_assert_msg(e != NULL, "%s", jot_error_message());
    must(jot_call_list(e, n, in, 1, &y));
    return y;
}
static inline jot_array *one_result(jot_function f, size_t n, jot_array *const *in)
{
    jot_executable *e = jot_jit(f);
    jot_array *y = result_of(e, n, in);
    jot_executable_release(e);
    return y;
}

#define release_all(...)                                                                       \
    jot_arrays_release(sizeof((jot_array *[]){__VA_ARGS__}) / sizeof(jot_array *),             \
                       (jot_array *[]){__VA_ARGS__})

#endif
