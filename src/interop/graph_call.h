// SPDX-License-Identifier: Apache-2.0
#ifndef INTEROP_GRAPH_CALL_H
#define INTEROP_GRAPH_CALL_H

#include "interop/to_graph.h"

// The conversion of a call of a routine of linear algebra, by its name on cpu ("lapack_sgetrf_ffi"), on
// cuda ("cusolver_getrf_ffi") or on a platform that JAX does not know ("Qr"); NULL when it is none.
graph_convert *graph_library_find(const char *target);
// The operation of CHLO that a name such as "chlo.erf", of that dialect, stands for; NULL when there is none.
const struct mlir_row *graph_called_row(const char *name, const char *dialect);
// Matrices reduced by reflectors (graph_reflectors.c): results 0 and 1 are what LAPACK's geqrf and gehrd leave, and
// result 0 is what orgqr makes of these.
void graph_reduce_qr(struct graph_op *g);
void graph_reduce_hessenberg(struct graph_op *g, ir_id a);
void graph_multiply_reflectors(struct graph_op *g);
// Whether the function is Threefry-2x32 of (key, key, counter, counter), whatever it is called.
bool graph_is_threefry(struct graph_frame *frame, const struct mlir_function *f);

// Whether the function is lgamma of its argument, computed with the bits of floats.
bool graph_is_lgamma(struct graph_frame *frame, const struct mlir_function *f);

#endif
