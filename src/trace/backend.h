// SPDX-License-Identifier: Apache-2.0
// What turns a finished function into something that runs.
//
// The environment variable JOT_BACKEND chooses: "eval" is the reference evaluator.
#ifndef TRACE_BACKEND_H
#define TRACE_BACKEND_H

#include "ir/graph.h"
#include "jot/parallel.h"
#include "runtime/array.h"
#include "trace/codegen_process.h"

struct backend_program;

struct backend_options {
    const char *name;
    const bool *donated; // by input, or NULL
    jot_device *device;
    // What is laid over a mesh: its devices, or NULL for the first ones of the kind of the device; or the
    // device alone does all.
    const jot_mesh *mesh;
    bool is_alone;
    struct codegen_options codegen;
};

// Compiles a function of the module, which is complete and stays unchanged.  The program borrows
// the module: it is released before the module is.  Runs inside a guard.
jot_status backend_compile(struct ir_module *m, uint32_t function,
                           const struct backend_options *options, struct backend_program **out);
void backend_release(struct backend_program *p); // NULL is fine
// Whether a run may call code of the user; what the program takes besides its module.
bool backend_calls_back(const struct backend_program *p);
size_t backend_bytes(const struct backend_program *p);

// Runs the program on arrays that have the types of the function's parameters.  On JOT_OK out
// receives new references; on failure it is untouched.  May be called from several threads.
jot_status backend_run(struct backend_program *p, jot_array *const *in, jot_array **out);

// Measures the program on these arrays, compiled in several ways that give the same bits, and keeps the
// fastest.
void backend_tune(struct backend_program *p, jot_array *const *in);

// An array that many runs take as input i, where and how they read it: a new reference.
jot_status backend_keep(const struct backend_program *p, uint32_t i, jot_array *a,
                        jot_array **out);

// The stack that compiling, evaluating and texts take: passes call themselves for functions that are in
// one another.
size_t backend_stack(const struct ir_module *m);

// The text of a stage of the program, such as "schedule" or "llvm", allocated in the arena; NULL
// with a message when the backend has no such stage or cannot make it.
const char *backend_text(struct backend_program *p, const char *stage, struct arena *arena);

#endif
