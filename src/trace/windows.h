// SPDX-License-Identifier: Apache-2.0
// Windows on axes of values: what reductions over them and convolutions share.
//
// A value's windows are the value itself seen through changes of index,
//     y[.., o, .., k, ..] = x[.., o stride + k dilation, ..],
// so nothing is copied until a product of matrices wants them in memory.
#ifndef TRACE_WINDOWS_H
#define TRACE_WINDOWS_H

#include "trace/emit.h"

#include "jot/windows.h"

// Of one axis.
struct trace_window {
    int64_t size, stride, low, high, base, dilation;
    int64_t places; // how many windows there are
};

// Reads the list of an option for n axes of x (what: "strides", axes: "axes of x"), each at least
// `least`; missing, all are `otherwise`.  False with an error.
bool trace_window_list(const char *name, const char *what, const int64_t *list, int n,
                       const char *axes, int64_t least, int64_t otherwise, int64_t *out,
                       jot_value *out_error);
// Chooses low, high and places of a window on an axis that has `extent`; false with an error.
// is_padded: low and high were given.
bool trace_window_place(const char *name, jot_value x, int axis, int64_t extent,
                        jot_padding padding, bool is_padded, struct trace_window *w,
                        jot_value *out_error);
// The windows of x with padding (IR_NONE: zeros) around and between its elements, by axis: places instead
// of the axes of x, and the axes of windows larger than 1, in order, from axis `at` on.
ir_id trace_windows(ir_id x, ir_id padding, const struct trace_window *w, int at);

#endif
