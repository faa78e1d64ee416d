// SPDX-License-Identifier: Apache-2.0
// Several values as one vector, and back.
#ifndef TRACE_VECTORS_H
#define TRACE_VECTORS_H

#include "trace/tracer.h"

jot_value trace_vector(int n, const jot_value *v);
// The values that a vector is of, with the shapes and types of like.
void trace_vector_parts(int n, const jot_value *like, jot_value vector, jot_value *out);

#endif
