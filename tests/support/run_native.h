// SPDX-License-Identifier: Apache-2.0
// Scheduled programs compiled and run on the default device, for tests that compare them with an oracle.
#ifndef SUPPORT_RUN_NATIVE_H
#define SUPPORT_RUN_NATIVE_H

#include "nest/program.h"
#include "runtime/program.h"
#include "runtime/team.h"

struct ir_module;

// The program as machine code; it calls the hosts of the module (may be NULL).  The caller releases
// it.
jot_status run_native_load(struct arena *arena, const struct nest_program *p,
                           const struct ir_module *m, struct rt_program **out);
// The same on several devices, or on the default one when there are none.
jot_status run_native_load_on(struct arena *arena, const struct nest_program *p,
                              const struct ir_module *m, uint32_t n_devices,
                              jot_device *const *devices, struct rt_program **out,
                              struct rt_team **out_team);
// Runs it on memory of the host.
jot_status run_native_call(struct rt_program *program, const void *const *inputs,
                           void *const *outputs);
// Compiles, runs and releases.
jot_status run_native(struct arena *arena, const struct nest_program *p, void *const *inputs,
                      void *const *outputs);
// The same on n devices of the default one's kind, as many as run_native_devices, with the arguments of
// device 0, then those of device 1.
jot_status run_native_together(struct arena *arena, const struct nest_program *p,
                               const struct ir_module *m, uint32_t n, const void *const *inputs,
                               void *const *outputs);
uint32_t run_native_devices(void); // parts of the host: as many as are wanted

// A program of one kernel: its IN buffers are the inputs, its OUT buffers the outputs.
struct nest_program *run_native_wrap(struct arena *arena, struct nest *n);

// Programs side by side as one: inputs and outputs of the first, then of the second, ...
struct nest_program *run_native_merge(struct arena *arena, uint32_t n,
                                      struct nest_program *const *programs);

// Bytes of a memory of a program.
uint64_t run_native_bytes(const struct nest_memory *m);

#endif
