// SPDX-License-Identifier: Apache-2.0
// Programs of lazy scopes, found by the structure of what they compute.  They belong to the
// process and outlive the scope: a loop that opens a scope each time compiles once.
#ifndef TRACE_LAZY_CACHE_H
#define TRACE_LAZY_CACHE_H

#include "trace/backend.h"

#include "jot/compile.h"

// Runs the function, which needs no arrays but its parameters; key is its ir_graph_key; mesh: where what is
// laid over one runs, or NULL.
// *has_run says whether it came to that: a function that could not be compiled has had no
// effects.  Needs no guard.
jot_status lazy_run(const struct ir_graph *g, struct hash128 key, const jot_mesh *mesh,
                    jot_array *const *in, jot_array **out, bool *has_run);
// Forgets all programs that are not running.
void lazy_forget(void);
// Programs compiled so far.
size_t lazy_compiled(void);

#endif
