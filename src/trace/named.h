// SPDX-License-Identifier: Apache-2.0
// Named axes while tracing: those of the maps around the innermost trace are a set of axes of the
// module, of which no two have one name.
#ifndef TRACE_NAMED_H
#define TRACE_NAMED_H

#include "trace/tracer.h"

bool trace_is_axis_name(const char *name);
// Axis number of a map of that name and size inside of maps that name the axes, or -1 with an error.
int trace_name_axis(const char *op, uint16_t axes, const char *name, int64_t size,
                    jot_value *out_error);
// The axes that the text lists, "i" or "i, j", in that order; false with an error.
bool trace_find_axes(const char *op, const char *text, int *out_n, int64_t *over,
                     jot_value *out_error);

#endif
