// SPDX-License-Identifier: Apache-2.0
// A function's results against numbers.
#ifndef TESTS_TRACE_CONTROL_SUPPORT_H
#define TESTS_TRACE_CONTROL_SUPPORT_H

#include "base/status.h"

#include <check.h>
#include <jot/jot.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static inline void must(jot_status status)
{
    ck_assert_msg(status == JOT_OK, "%s", jot_error_message());
}

static inline void check(jot_function f, size_t n_in, jot_array **in, size_t n_out,
                         size_t which, size_t count, const double *want, double tolerance)
{
    jot_executable *e = jot_jit(f);
    jot_array *out[8] = {NULL};
    must(jot_call_list(e, n_in, in, n_out, out));
    ck_assert_int_eq(jot_array_size(out[which]), count);
    for (size_t i = 0; i < count; i++) {
        double got = ((const double *)jot_array_data(out[which]))[i];
        ck_assert_msg(fabs(got - want[i]) <= tolerance * (1 + fabs(want[i])),
                      "element %zu is %.17g, not %.17g", i, got, want[i]);
    }
    jot_arrays_release(n_out, out);
    jot_executable_release(e);
}
#define CHECK(f, in, n_out, which, tolerance, ...)                                             \
    do {                                                                                       \
        const double want_[] = {__VA_ARGS__};                                                  \
        check((f), sizeof(in) / sizeof *(in), (in), (n_out), (which),                          \
              sizeof want_ / sizeof *want_, want_, (tolerance));                               \
    } while (0)

#endif
