// SPDX-License-Identifier: Apache-2.0
// Windows on axes of values: what reductions over them and convolutions share.
#ifndef TRACE_WINDOWS_H
#define TRACE_WINDOWS_H

#include "ir/windows.h"
#include "trace/emit.h"

#include "jot/windows.h"

// Reads the list of an option for n axes of x (what: "strides", axes: "axes of x"), each at least
// `least`; missing, all are `otherwise`.  False with an error.
bool trace_window_list(const char *name, const char *what, const int64_t *list, int n,
                       const char *axes, int64_t least, int64_t otherwise, int64_t *out,
                       jot_value *out_error);
// Chooses low, high and number of windows on an axis that has `extent`; false with an error.
// is_padded: low and high were given.
bool trace_window_choose(const char *name, jot_value x, int axis, int64_t extent,
                         jot_padding padding, bool is_padded, struct ir_axis_window *w,
                         jot_value *out_error);
#endif
