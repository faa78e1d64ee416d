// SPDX-License-Identifier: Apache-2.0
// The evaluation of values of a lazy scope.
#ifndef TRACE_EVALUATE_H
#define TRACE_EVALUATE_H

#include "trace/tracer.h"

// The arrays of n values of the innermost trace, a scope, with the effects to come; new references.
// Runs inside a guard.
jot_status scope_evaluate(const char *op, size_t n, const jot_value *values, jot_array **out);

#endif
