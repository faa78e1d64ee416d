// SPDX-License-Identifier: Apache-2.0
// numpy.convolve and numpy.correlate.
#include "trace/emit.h"

#include "jot/windows.h"

static const int64_t vector[] = {1, 1, -1, JOT_END}, flat[] = {-1, JOT_END};

static jot_value check(const char *name, jot_value x, jot_value y, jot_convolve_mode mode)
{
    jot_value v[] = {x, y}, error;
    if (!trace_ready(name, 2, v, &error))
        return error;
    for (int i = 0; i < 2; i++) {
        struct ir_type t = trace_type(v[i]);
        if (t.rank != 1 || ir_count(trace_top()->module, t) == 0)
            return trace_fail(name, JOT_ERR_SHAPE,
                              "%s and %s: it takes vectors that are not empty",
                              trace_type_text(v[0]), trace_type_text(v[1]));
    }
    if ((unsigned)mode > JOT_VALID)
        return trace_fail(name, JOT_ERR_ARGUMENT, "there is no mode %d", (int)mode);
    return v[0];
}

static jot_value checked(const char *name, jot_value x, jot_value y, jot_convolve_mode mode)
{
    TRACE_RETURN(check(name, x, y, mode));
}

// sum_k x[n + k] y[k] where x is no shorter than y.
static jot_value slide(jot_value x, jot_value y, jot_convolve_mode mode)
{
    int64_t k = jot_value_dim(y, 0);
    int64_t low[] = {mode == JOT_FULL ? k - 1 : mode == JOT_SAME ? k / 2 : 0, JOT_END};
    int64_t high[] = {mode == JOT_FULL ? k - 1 : mode == JOT_SAME ? k - k / 2 - 1 : 0, JOT_END};
    jot_conv_options o = {.low = low, .high = high};
    return jot_reshape_dims(jot_conv_general_dilated_with(jot_reshape_dims(x, vector),
                                                          jot_reshape_dims(y, vector), &o),
                            flat);
}

jot_value jot_convolve(jot_value x, jot_value y, jot_convolve_mode mode)
{
    x = checked("jot_convolve", x, y, mode);
    if (jot_value_failed(x))
        return x;
    if (jot_value_dim(x, 0) < jot_value_dim(y, 0))
        return jot_convolve(y, x, mode);
    return slide(x, jot_flip_axes(y, NULL), mode);
}

jot_value jot_correlate(jot_value x, jot_value y, jot_convolve_mode mode)
{
    x = checked("jot_correlate", x, y, mode);
    if (jot_value_failed(x))
        return x;
    y = jot_conj(y);
    if (jot_value_dim(x, 0) < jot_value_dim(y, 0))
        return jot_flip_axes(slide(y, x, mode), NULL);
    return slide(x, y, mode);
}
