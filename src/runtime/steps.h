// SPDX-License-Identifier: Apache-2.0
// Programs from the inside: what devices run.
#ifndef RUNTIME_STEPS_H
#define RUNTIME_STEPS_H

#include "runtime/device.h"
#include "runtime/frames.h"
#include "runtime/program.h"
#include "runtime/routine.h"
#include "runtime/segments.h"
#include "runtime/symbols.h"

#include <stdatomic.h>

// What one call needs: its arena and the addresses of all operands.
struct rt_instance {
    struct rt_frame frame; // of a run that may call code of the user
    struct rt_program *program;
    struct rt_instance *next;
    struct rt_pool *outer; // of the thread's loops before the run
    char *arena;
    void **operands;
    int64_t *trips; // by loop
    // The host: scratch of each worker.
    char *scratch;
    size_t scratch_bytes;
    int workers; // that there is scratch for
    // A GPU: where each operand is, for launches.
    void **parameters;
    struct cuda_graphs *graphs; // NULL before the first
    // Copies on the host of the operands of a step that the host does for a GPU.
    void **mirror;
    char *mirror_memory;
};

// An operand that a loop moves: a row of another operand, or one of several.
struct rt_view {
    uint32_t operand, first, count, index, loop;
    uint64_t offset;
    int64_t stride;
};

// An operand that has another address in each call.
struct rt_patch {
    uint32_t operand, index;
    uint64_t offset;
    bool is_output;
};

struct rt_bound_step {
    union {
        rt_kernel *kernel;          // on the host
        rt_loop *loop;              // on the host
        struct cuda_kernel *launch; // on a GPU
        const struct rt_callback *callback;
        struct cuda_raw *raw;     // of a callback with is_native
        struct cuda_routine *own; // of a library step with is_native
        const struct rt_gemm *gemm;
        struct cuda_product *product; // on a GPU, once it is bound
        const char *what;             // CHECK
    };
    const struct rt_routine *routine; // of a library step
    int64_t total, grain, chunks;     // LIBRARY: total is the scratch of each worker
    const int64_t *params;
    uint32_t param_count, operand_first, operand_count, target, index, read_only;
    uint8_t kind;
    bool is_parallel, has_scratch;
    bool is_native;   // a routine or a callback that the device runs itself
    bool is_recorded; // such a routine may be part of a segment
};

struct rt_program {
    jot_device *device;
    struct rt_plan plan; // borrows from plan_bytes
    void *plan_bytes;
    void *code; // of the device
    struct rt_bound_step *steps;
    struct rt_patch *patches;
    uint32_t patch_count;
    struct rt_view *views; // by loop: those that depend on it, in an order to make them in
    uint32_t *view_first;  // by loop, and the end
    struct rt_segments segments; // none where the device does not replay them
    struct rt_callback *callbacks;
    uint32_t callback_count;
    char *constants;
    size_t scratch_stride; // of each worker; 0 when no step asks for any
    bool has_parallel_scratch;
    _Atomic(struct rt_instance *) first; // the one kept for the next call
    struct rt_instance *others;          // under the lock of all programs
    atomic_size_t instance_count;
    size_t code_bytes, plan_size;
    void (*say)(const char *step); // NULL: steps are not watched
};

// How many bytes operand i of the step has, and the call of its routine, with operands or none.
size_t rt_operand_bytes(const struct rt_program *p, const struct rt_bound_step *s, uint32_t i);
struct rt_routine_call rt_routine_call_of(const struct rt_program *p,
                                          const struct rt_bound_step *s, void *const *operands);

// Memory of the program's device; `what` it is for, in a message.
jot_status rt_program_allocate(struct rt_program *p, size_t bytes, const char *what,
                               char **out);

// The loop is in trip `trips`: operands as they are in it.
void rt_program_turn(const struct rt_program *program, struct rt_instance *instance,
                     uint32_t loop, int64_t trips);

// Steps first .. end - 1, one after the other, from which nothing jumps away.
jot_status rt_program_run_steps(const struct rt_program *program, struct rt_instance *instance,
                                uint32_t first, uint32_t end);

// An instance for a call on the device, and back; the memory of the arguments of the call in between.
jot_status rt_instance_take(struct rt_program *program, struct rt_instance **out);
void rt_instance_put_back(struct rt_program *program, struct rt_instance *instance);
void rt_instance_patch(const struct rt_program *program, struct rt_instance *instance,
                       const void *const *inputs, void *const *outputs);

// From step *at to the next collective or the end, segments as one where the device does that.  Stops as
// well where a segment with collectives begins, unless that is *stepwise, up to whose end it is kept.
jot_status rt_program_go_on(const struct rt_program *program, struct rt_instance *instance,
                            uint32_t *at, const struct rt_segment **stepwise);

// From step *at to the next collective or to `end`, step by step.
jot_status rt_program_advance(const struct rt_program *program, struct rt_instance *instance,
                              uint32_t *at, uint32_t end);

// A segment of the programs of several devices, whose collectives `meet` does: all devices have come to the same
// step then, and at says where they go on.
struct rt_together {
    uint32_t count;
    struct rt_program *const *programs;
    struct rt_instance *const *instances;
    uint32_t *at;                     // steps
    const struct rt_segment *segment; // of the first program; those of the others are alike
    jot_status (*meet)(void *ctx);
    void *ctx;
};

#endif
