// SPDX-License-Identifier: Apache-2.0
// Routines: what a plan calls by name to compute a step (RT_STEP_LIBRARY), from arrays to arrays.
//
// A routine is a row of host/routines.def and three functions in a file of host/.  A device may
// have some of its own (base/gpu_routines.def); others run on the host, on copies of the
// operands.
//
// Thread-safety: a routine may run in several threads at once.
#ifndef RUNTIME_ROUTINE_H
#define RUNTIME_ROUTINE_H

#include "base/launch.h"

// Operands and then results, dense and row-major, each 64-byte aligned or at a multiple of its rows
// from there.
struct rt_routine_call {
    const int64_t *params; // dtype, batch, and the routine's own (schedule/library/library.c)
    uint32_t param_count, operand_count, read_count; // operands that are read come first
    uint64_t bytes[RT_ROUTINE_MOST];                 // of each operand
    void *const *operands;                           // NULL when the routine is bound
    // Of each worker of rt_pool_run(rt_pool_default(), workers, ...), 64-byte aligned.
    char *scratch;
    size_t scratch_stride;
    int workers;
};

struct rt_routine {
    const char *name;
    // Called once when a program is loaded, wherever it is to run: JOT_ERR_IO for params or sizes that
    // are not the routine's.
    jot_status (*check)(const struct rt_routine_call *call);
    // Called once when it is to run on the host: JOT_ERR_LIBRARY for a library that is not there.  Sets
    // the scratch that each worker needs.
    jot_status (*bind)(const struct rt_routine_call *call, size_t *out_scratch_bytes);
    jot_status (*run)(const struct rt_routine_call *call);
};

// host_<name>_check, host_<name>_bind and host_<name>, by the rows of the table.
#define ROUTINE(name)                                                                          \
    jot_status host_##name##_check(const struct rt_routine_call *call);                        \
    jot_status host_##name##_bind(const struct rt_routine_call *call, size_t *out_scratch);    \
    jot_status host_##name(const struct rt_routine_call *call);
#include "runtime/host/routines.def"
#undef ROUTINE

// What a program that is not made yet will call (rt_device_type.begin_ahead).
struct rt_ahead_call {
    const char *name;
    struct rt_routine_call call;
};
struct rt_ahead_calls {
    bool has_products;
    uint32_t count;
    struct rt_ahead_call *at;
};

// Of the host; NULL when there is none.
const struct rt_routine *rt_routine_find(const char *name);

// Runs it on operands in the memory of the host.
jot_status rt_routine_run(const struct rt_routine *routine, struct rt_routine_call *call,
                          size_t scratch_bytes);

// Fails with what is wrong with the params or the sizes of a step: JOT_ERR_IO.
jot_status rt_routine_damaged(const char *name);

#endif
