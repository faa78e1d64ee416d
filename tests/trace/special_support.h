// SPDX-License-Identifier: Apache-2.0
// What the tests of special functions share.
#ifndef SPECIAL_SUPPORT_H
#define SPECIAL_SUPPORT_H

#include "trace_support.h"

#include <float.h>

enum { MAX_POINTS = 80 }; // in one array

static inline jot_array *array_of(jot_dtype dtype, const double *x, int n)
{
    float narrow[MAX_POINTS];
    for (int i = 0; i < n; i++)
        narrow[i] = (float)x[i];
    return dtype == JOT_F64 ? jot_array_from(x, n) : jot_array_from(narrow, n);
}

static inline double element(const jot_array *a, int i)
{
    const void *d = jot_array_data(a);
    ck_assert_msg(d != NULL, "%s", jot_error_message());
    return jot_array_dtype(a) == JOT_F64 ? ((const double *)d)[i] : ((const float *)d)[i];
}

static jot_scope *scope;
static inline void setup(void) { scope = jot_scope_open(); }
static inline void teardown(void) { jot_scope_close(scope); }

static inline jot_value numbers(int n, const double *x)
{
    jot_array *a = jot_array_from(x, n);
    jot_value v = jot_from(a);
    jot_array_release(a);
    return v;
}
#define NUMBERS(...)                                                                           \
    numbers((int)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)), (double[]){__VA_ARGS__})

#endif
