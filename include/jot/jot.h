// SPDX-License-Identifier: Apache-2.0
// jot: JAX for C.
//
// A C function over jot_value handles is traced into a graph; the graph is differentiated,
// vectorised and compiled.
//
//     static jot_value energy(jot_value w, jot_value alpha, jot_value x)
//     {
//         return jot_mean(jot_mul(jot_dot(x, w), jot_exp(jot_neg(jot_dot(x, alpha)))));
//     }
//
//     jot_executable *df = jot_jit(jot_grad(jot_fn(energy), 0, 1));
//     jot_array *g[2];
//     if (jot_call(df, JOT_IN(w, alpha, x), JOT_OUT(g)) != JOT_OK)
//         fprintf(stderr, "%s\n", jot_error_message());
//
// Four rules carry the interface:
//
//   1. Where an operation takes a value, a C number, a bool or a jot_array * will do as well.
//   2. A struct that holds nothing but jot_value is a tree: it goes wherever one value goes in
//      jot_gradient, JOT_VMAP, ... and comes back with the same shape.
//   3. Lists of axes and sizes stand at the end of the call, jot_sum(x, 0, 1); so do named options,
//      jot_jit(f, .name = "step").
//   4. The first mistake sticks, later operations do nothing, one check reports it.
//
// The headers, in reading order: status.h, dtype.h, array.h, trace.h, struct.h, ops.h, products.h,
// einsum.h, shapes.h, numeric.h, fft.h, indexing.h, ordering.h, windows.h, linalg.h, decompose.h,
// solvers.h, random.h, special.h, nn.h, function.h, transform.h, collective.h, control.h,
// callback.h, debug.h, kernels.h, compile.h, device.h, parallel.h, distributed.h, dlpack.h,
// io.h.  On top of these: ode.h, optim.h, minimize.h, layers.h,
// losses.h.
#ifndef JOT_JOT_H
#define JOT_JOT_H

#include "jot/array.h"
#include "jot/collective.h"
#include "jot/compile.h"
#include "jot/control.h"
#include "jot/debug.h"
#include "jot/decompose.h"
#include "jot/device.h"
#include "jot/distributed.h"
#include "jot/dlpack.h"
#include "jot/dtype.h"
#include "jot/einsum.h"
#include "jot/fft.h"
#include "jot/function.h"
#include "jot/indexing.h"
#include "jot/io.h"
#include "jot/kernels.h"
#include "jot/layers.h"
#include "jot/linalg.h"
#include "jot/losses.h"
#include "jot/minimize.h"
#include "jot/nn.h"
#include "jot/numeric.h"
#include "jot/ode.h"
#include "jot/ops.h"
#include "jot/optim.h"
#include "jot/ordering.h"
#include "jot/parallel.h"
#include "jot/products.h"
#include "jot/program.h"
#include "jot/random.h"
#include "jot/shapes.h"
#include "jot/solvers.h"
#include "jot/special.h"
#include "jot/status.h"
#include "jot/struct.h"
#include "jot/trace.h"
#include "jot/transform.h"
#include "jot/windows.h"

#endif
