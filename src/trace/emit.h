// SPDX-License-Identifier: Apache-2.0
// How public operations are made: operands are imported, brought to one type, and recorded.
//
// Functions here run inside a guard.  `name` is the public name, for messages.
#ifndef TRACE_EMIT_H
#define TRACE_EMIT_H

#include "trace/tracer.h"

#include "jot/ops.h"
#include "jot/products.h"

#define TRACE_MAX_OPERANDS 4
// Times that one call repeats what it does, each of which is some operations of the graph.
#define TRACE_MOST_TIMES 1024

struct trace_promoted {
    jot_dtype seen;  // what the user sees
    jot_dtype dtype; // in the graph: wider when everything is a C number
    bool weak;
};

// The least common type of the values (all imported), as operations with the given word in the
// types column of ops.def take it.  False with an error.
bool trace_promote(const char *name, const char *types, int n, const jot_value *v,
                   struct trace_promoted *out, jot_value *out_error);

// False with an error when v is a C number that an integer dtype cannot hold, or a real one not all
// of.  Bool takes 0 as false and the rest as true; floats round.
bool trace_fits(const char *name, jot_value v, jot_dtype dtype, jot_value *out_error);

// A pointwise op of the table, with promotion and broadcasting.
jot_value trace_map(enum ir_op op, const char *name, int n, const jot_value *v);

// v[0..n-1] with axes of size 1 put in front so that all have one rank, except for scalars.  False
// with an error when they do not broadcast.
bool trace_align(const char *name, int n, const jot_value *v, ir_id *ids, jot_value *out_error);

// Reads a list of axes that ends with JOT_END: normalised, each once.  An empty list with
// `all_when_empty` is all axes.  Without `out_keep`, JOT_KEEPDIMS is an error.
bool trace_axes(const char *name, jot_value x, int rank, const int *axes, bool all_when_empty,
                int *out_n, int64_t *out_axes, bool *out_keep, jot_value *out_error);
// The axes of such a list with JOT_KEEPDIMS at the end; out has room for two more.
void trace_with_keepdims(const int *axes, int *out);
// A value with the axes of a list made one, behind the others.
struct trace_rows {
    jot_value x;
    int64_t n; // elements along the last axis
    int rank;  // of what each row is reduced to
    int64_t dims[IR_MAX_RANK + 1];
};
// The rows of a value of the graph in dtype d, along the axes, all for an empty list.  False
// with an error.
bool trace_read_rows(const char *name, jot_value x, jot_dtype d, const int *axes,
                     struct trace_rows *out, jot_value *out_error);
// The type in which sums of d are taken and given: small integers would overflow at once.
jot_dtype trace_sum_dtype(jot_dtype d);
// The largest, the smallest complex number over axes, and the running fold along an axis by cummax,
// cummin or cumlogsumexp; in the order of real parts and, where they are equal, of imaginary parts.
jot_value trace_complex_extremum(const char *name, bool is_max, jot_value x, const int *axes);
jot_value trace_complex_running(enum ir_op op, const char *name, jot_value x, int axis);
// A logarithm with its imaginary part between -pi and pi.
jot_value trace_within_pi(jot_value x);
// Of the indices of n elements.
static inline jot_dtype trace_index_dtype(int64_t n)
{
    return n > INT32_MAX ? JOT_I64 : JOT_I32;
}
// One axis of x, normalised; false with an error.
bool trace_axis(const char *name, jot_value x, int axis, int64_t *out_axis,
                jot_value *out_error);
// An index along an axis of x, counted from the start; false with an error when it is outside.
bool trace_index(const char *name, jot_value x, int64_t axis, int64_t index, int64_t *out,
                 jot_value *out_error);
// Reads sizes that end with JOT_END, each at least `least`.
bool trace_sizes(const char *name, const int64_t *dims, int64_t least, int *out_rank,
                 int64_t *out_dims, jot_value *out_error);

// Whether it is one; false with an error.
bool trace_is_dtype(const char *name, jot_dtype dtype, jot_value *out_error);
// The product of the sizes, one of -1 left out; false with an error where that of those above 0
// is more than most, a power of two.
bool trace_count(const char *name, int rank, const int64_t *dims, int64_t most, int64_t *out,
                 jot_value *out_error);

// Calls a host on values, with results of the types; a value that is an error, or none.
jot_value trace_call_host(const char *op, const struct ir_host *host, size_t n_in,
                          const jot_value *values, size_t n_out, const jot_type *out_types,
                          jot_value *out);

// The general product of values in their common type and the precision of the function; paired
// axes have one size.
jot_value trace_product(const char *name, jot_value x, jot_value y, const struct ir_dot *dims);

// A result with the weakness of x.
jot_value trace_like(const char *name, jot_value x, ir_id id);

#endif
