// SPDX-License-Identifier: Apache-2.0
// The versions of an executable: one for each set of input types and each state of its static data,
// up to a number; the one that has not been used for the longest time makes room for a new one.
//
// A call holds the executable while it runs.  What is released or evicted meanwhile, by another
// thread or by code of the user that the call runs, is freed when the last call that may use it has
// returned.  No lock is held while a function is traced or compiled: who builds a version has
// claimed the executable, and others wait for it.
#ifndef TRACE_VERSIONS_H
#define TRACE_VERSIONS_H

#include "runtime/frames.h"
#include "trace/backend.h"
#include "trace/function.h"

#include "jot/compile.h"

#include <stdatomic.h>

struct input_type {
    jot_dtype dtype;
    int rank;
    const int64_t *dims; // in the version's module
};

struct version {
    _Atomic(struct version *) next;
    struct version *next_retired;
    bool is_unknown; // retired, and no new call comes to it
    struct ir_module *module;
    uint32_t function;
    struct backend_program *program;
    int n_hidden;
    struct input_type *types;  // of the inputs of the user
    jot_array **hidden;        // references
    void *statics;             // what static_data was
    atomic_uint_fast64_t used; // by the clock of the executable
};

// Who builds something of the executable.
struct claim;

struct jot_executable {
    atomic_int references; // of the user
    // Calls that hold it, in two groups so that one of them ends while new calls come to the other,
    // the group of new calls, and whether the user has released it.
    atomic_uint_fast64_t holds;
    jot_function f;
    int n_in, n_out;
    bool *donated; // by input, or NULL
    const void *static_data;
    size_t static_size;
    jot_device *device;
    bool is_alone; // the options name the device
    jot_precision precision;
    struct codegen_options codegen;
    bool is_tuned;                   // its versions measure before they are used
    size_t most_versions;            // 0: the default of the process
    _Atomic(struct version *) first; // all versions, newest first
    _Atomic(struct version *) last;  // used by the last call
    atomic_uint_fast64_t clock, hits;
    // Under the lock of all executables.
    struct claim *claim;
    size_t n_versions, traced, evicted;
    struct version *retired[2]; // evicted, by the group of calls that may use them
    char *text;
    char name[64];
};

// What follows the place in a message.
const char *version_of_call(const char *where);
extern const char version_list_call[]; // where a call is that tells no place
extern const char version_preparation[];

// The group of the hold, to be given back.
int executable_hold(jot_executable *e);
// Frees the executable when it was released and no call holds it.
void executable_let_go(jot_executable *e, int group);
void executable_release_user(jot_executable *e);

// The version for the inputs, built when there is none.  The caller holds the executable in the
// group; code of the user that leaves the call gives the hold back.
jot_status version_get(jot_executable *e, int group, jot_array *const *in, const char *where,
                       struct version **out);
// How many are kept where the executable says nothing; 0 is the default of jot.  Gives the number
// before.
size_t version_set_most(size_t n);
jot_version_use executable_use(jot_executable *e);
// Seconds that others wait for a thread that traces; for tests, which set it.
double *version_patience(void);

// Runs body while nobody else builds or makes texts of the executable; code of the user does not run
// in it.
jot_status executable_with_claim(jot_executable *e,
                                 jot_status (*body)(jot_executable *, void *), void *ctx);

#endif
