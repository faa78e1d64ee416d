// SPDX-License-Identifier: Apache-2.0
#ifndef INTEROP_JAX_EXPORT_CALL_H
#define INTEROP_JAX_EXPORT_CALL_H

#include "interop/program.h"

// The signature of the function that the artefact of p is of, when jot can run it.
jot_status jax_export_call_open(jot_program *p);
// That function, which hands the arguments that main has on to it.  Where the artefact has its gradient that is its
// derivative in reverse.
jot_function jax_export_call_function(const jot_program *p);

#endif
