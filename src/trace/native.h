// SPDX-License-Identifier: Apache-2.0
// Functions as machine code: from the disk cache, else scheduled and compiled.
#ifndef TRACE_NATIVE_H
#define TRACE_NATIVE_H

#include "trace/backend.h"

struct native_program;
struct pass_partition;

// parts: what each device of options->mesh does, or NULL.
jot_status native_compile(struct ir_module *m, uint32_t function,
                          const struct backend_options *options,
                          const struct pass_partition *parts, struct native_program **out);
void native_release(struct native_program *p); // NULL is fine
// Whether it may run code of the user; what it takes besides the module.
bool native_calls_back(const struct native_program *p);
size_t native_bytes(const struct native_program *p);
// Compiles it in other ways that give the same bits, and keeps what runs fastest on these arrays.  What cannot be
// run more often than the caller says, as callbacks, stays as it is.
void native_tune(struct native_program *p, jot_array *const *in);
jot_status native_run(struct native_program *p, jot_array *const *in, jot_array **out);
// An array that many runs take as input i, where and how they read it: a new reference.
jot_status native_keep(const struct native_program *p, uint32_t i, jot_array *a,
                       jot_array **out);
// Stages: simplify, schedule, memory, llvm, code.
const char *native_text(struct native_program *p, const char *stage, struct arena *arena);

#endif
