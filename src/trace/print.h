// SPDX-License-Identifier: Apache-2.0
// Printing of values while a program runs: the host function of jot_print and jot_printf.
#ifndef TRACE_PRINT_H
#define TRACE_PRINT_H

#include "jot/callback.h"
#include "jot/trace.h"

// How many values a format takes, or -1 when its braces do not fit.
int print_count(const char *format);

// Writes the operands as the format, the context, says: once for each lane.  The call is one of an
// ir_host that names lanes.
jot_status print_call(void *format, const jot_callback_call *call);

// Records the printing in the innermost trace; an error is the trace's (debug.c).
void trace_print(const char *op, const char *format, size_t n_in, const jot_value *in);

#endif
