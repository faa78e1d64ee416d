// SPDX-License-Identifier: Apache-2.0
// Windows on axes of values: what reductions over them and convolutions share.
//
// A value's windows are the value itself seen through changes of index,
//     y[.., o, .., k, ..] = x[.., o stride + k dilation, ..],
// so nothing is copied until a product of matrices wants them in memory.
#ifndef IR_WINDOWS_H
#define IR_WINDOWS_H

#include "ir/build.h"

// Of one axis.
struct ir_axis_window {
    int64_t size, stride, low, high, base, dilation;
    int64_t count; // of windows
};

// The windows of x with padding (IR_NONE: zeros) around and between its elements, by axis: windows
// instead of the axes of x, and the axes of windows larger than 1, in order, from axis `at` on.
ir_id ir_windows(struct ir_builder *b, ir_id x, ir_id padding, const struct ir_axis_window *w,
                 int at);

#endif
