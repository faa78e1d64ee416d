// SPDX-License-Identifier: Apache-2.0
// A compiled program on a device: kernels in memory, a launch plan, and what a call needs.
//
// Thread-safety: a program may run on several threads at once; each call in flight has an arena
// of its own, kept for the next call.
#ifndef RUNTIME_PROGRAM_H
#define RUNTIME_PROGRAM_H

#include "base/launch.h"
#include "jot/device.h"

struct rt_program;
struct rt_raw_kernel;

// A call from compiled code back into C: the operands and the params of the step.
struct rt_callback {
    jot_status (*call)(void *ctx, void *const *buffers, const int64_t *params);
    void *ctx;
    const struct rt_raw_kernel *kernel; // what a GPU runs instead, borrowed; or NULL
};

// Loads the kernels of an object file (may be empty when no step is a kernel) and a plan
// written by rt_plan_write.  Copies both; `callbacks` is copied too, `ctx` in it is borrowed.
// Object bytes of unknown origin are checked but must not be run.
// On a GPU the object is what rt_device_type.assemble made.
jot_status rt_program_load(jot_device *device, const void *object, size_t object_size,
                           const void *plan, size_t plan_size,
                           const struct rt_callback *callbacks, uint32_t callback_count,
                           struct rt_program **out_program);
void rt_program_release(struct rt_program *program); // NULL is fine; no call may be in flight

const struct rt_plan *rt_program_plan(const struct rt_program *program);
// What it takes: code as it was loaded, plan, constants, and temporaries of the calls so far.
size_t rt_program_bytes(const struct rt_program *program);

// Runs the program; on a GPU it is handed over when this returns.  inputs and outputs are the
// memory of the arguments on the device, in the order and of the sizes of the plan; aligned to
// their elements.  An output may be the memory of an input only where the plan says so.
jot_status rt_program_run(struct rt_program *program, const void *const *inputs,
                          void *const *outputs);

// From the next call on `say` is told the name of each step that computes, before it begins.  On a
// GPU steps run one by one then, each waited for.  Not while a call is in flight.
void rt_program_watch(struct rt_program *program, void (*say)(const char *step));

#endif
