// SPDX-License-Identifier: Apache-2.0
// Devices from the inside: what arrays and programs need of each kind.
#ifndef RUNTIME_DEVICE_H
#define RUNTIME_DEVICE_H

#include "base/launch.h"
#include "jot/device.h"
#include "runtime/text.h"

#include <stdbool.h>

struct rt_program;
struct rt_instance;
struct rt_bound_step;
struct rt_segment;
struct rt_while;
struct rt_raw_kernel;
struct rt_routine_call;
struct rt_ahead;
struct rt_ahead_calls;
struct rt_blocks;
struct rt_together;
struct collective;

// What a kind of device can do.  Work that is handed over runs in the order of the calls of a
// thread, and by what other threads hand over later; only `download` and `wait` wait for it.
struct rt_device_type {
    jot_device_kind kind;
    jot_status (*check)(jot_device *device);

    // Memory, aligned to 64 bytes or better, not zeroed; a block may be used by what is handed over
    // later.  0 bytes is fine.  What is wanted is for the message.
    jot_status (*allocate)(jot_device *device, size_t bytes, const char *what, void **out);
    void (*release)(jot_device *device, void *block, size_t bytes); // NULL is fine
    void (*trim)(jot_device *device);
    jot_status (*memory)(jot_device *device, jot_device_memory_use *out);

    // From and to the memory of the host.  `from` of an upload may change as soon as that returns.
    jot_status (*upload)(jot_device *device, void *to, const void *from, size_t bytes);
    jot_status (*download)(jot_device *device, void *to, const void *from, size_t bytes);
    // From another device of the same kind, or from the same.
    jot_status (*copy)(jot_device *to_device, void *to, jot_device *from_device,
                       const void *from, size_t bytes);
    jot_status (*clear)(jot_device *device, void *block, size_t bytes); // to zero bytes
    jot_status (*wait)(jot_device *device);
    jot_status (*set_stream)(jot_device *device, void *stream); // NULL where there are none

    // What code is generated for (codegen.h; "" is the host), and all that the code depends on.
    jot_status (*target)(jot_device *device, char *buffer, size_t size);
    void (*identity)(jot_device *device, char *buffer, size_t size);
    // Makes what is loaded from what the code generator gave; the result is memory_allocate's.
    // NULL when they are the same.
    jot_status (*assemble)(jot_device *device, const void *object, size_t size, void **out,
                           size_t *out_size);

    // Opens what calls of libraries need, which takes long, on threads beside what the caller does; `calls` stay until
    // the end, which waits for them.  May give NULL, which the end takes.  NULL where there is nothing to open.
    struct rt_ahead *(*begin_ahead)(jot_device *device, const struct rt_ahead_calls *calls);
    void (*end_ahead)(struct rt_ahead *ahead);

    // Programs (steps.h).  `prepare` comes before each run, `bind` once for each kernel and
    // product.
    jot_status (*load)(struct rt_program *program, const void *object, size_t size);
    void (*unload)(struct rt_program *program);
    jot_status (*bind)(struct rt_program *program, const struct rt_step *from, const char *name,
                       struct rt_bound_step *step);
    jot_status (*prepare)(const struct rt_program *program, struct rt_instance *instance);
    void (*finish)(const struct rt_program *program); // after each run; may be NULL
    // Frees what prepare made.
    void (*forget)(const struct rt_program *program, struct rt_instance *instance);
    // Runs a segment of at least so many launches as one; not done: it is to be run step by step.
    // May be NULL.
    uint32_t replay_least;
    jot_status (*replay)(const struct rt_program *program, struct rt_instance *instance,
                         const struct rt_segment *segment, bool *out_done);
    // A loop that a test ends, while a segment is taken down; not done: step by step.
    jot_status (*take_while)(const struct rt_program *program, struct rt_instance *instance,
                             const struct rt_while *loop, bool *out_done);
    // Around what follows, one of it for each step.  May be NULL.
    jot_status (*begin_step)(const struct rt_program *program,
                             const struct rt_instance *instance,
                             const struct rt_bound_step *step);
    jot_status (*end_step)(const struct rt_program *program, const struct rt_bound_step *step);
    jot_status (*kernel)(const struct rt_program *program, const struct rt_instance *instance,
                         const struct rt_bound_step *step);
    // Callbacks that are kernels of the user's; NULL where they are called like others.
    jot_status (*bind_raw)(struct rt_program *program, const struct rt_raw_kernel *kernel,
                           struct rt_bound_step *step);
    jot_status (*raw)(const struct rt_program *program, const struct rt_instance *instance,
                      const struct rt_bound_step *step);
    // Routines: `bind_routine` sets is_native where the device has a form of its own, and is_recorded
    // where segments may have that; `routine` runs it.  JOT_ERR_LIBRARY of that leaves the operands as
    // they were: the routine runs on the host then.  Both may be NULL: all do.
    jot_status (*bind_routine)(struct rt_program *program, const char *name,
                               const struct rt_routine_call *call, struct rt_bound_step *step);
    jot_status (*routine)(const struct rt_program *program, const struct rt_bound_step *step,
                          void *const *operands);
    // Whether the routine conv with these params is better than a product of matrices.  May be NULL: of
    // none.
    bool (*takes_convolution)(jot_device *device, const int64_t *params, uint32_t count);
    // What devices of the type do together (collective.h), by group and position; the blocks are theirs.
    // JOT_ERR_LIBRARY leaves the blocks as they were: the host does it then, on copies.  NULL: the
    // host does all.
    jot_status (*collective)(jot_device *const *devices, const struct collective *c,
                             size_t n_groups, const struct rt_blocks *groups, uint64_t to_bytes,
                             uint64_t from_bytes);
    // Whether segments may have it.
    bool (*records_collective)(const struct collective *c);
    // A segment with collectives, on all devices of a team at once; not done: step by step.  May be NULL.
    jot_status (*replay_together)(const struct rt_together *team, bool *out_done);
    // A whole loop; leaves the trips that it made in the instance.
    jot_status (*phases)(const struct rt_program *program, const struct rt_instance *instance,
                         const struct rt_bound_step *step);
    jot_status (*gemm)(const struct rt_program *program, const struct rt_bound_step *step,
                       void *const *operands);
    jot_status (*copy_step)(const struct rt_program *program, const struct rt_bound_step *step,
                            void *const *operands);
};

struct jot_device {
    const struct rt_device_type *type;
    int index;
    int part;    // of the host, from 1; 0: all of it, or no host
    int process; // that it is of, from 1, where it is one of another process; else 0
    char name[16];
};

extern const struct rt_device_type rt_host_type, rt_cuda_type;

static inline bool rt_is_host(const jot_device *d) { return d->type == &rt_host_type; }

// Those of other processes (distributed/elsewhere.c) have arrays of which nothing is here but their type and sizes:
// what is written there is dropped, and reading is JOT_ERR_DEVICE.
static inline bool rt_is_elsewhere(const jot_device *d) { return d->process > 0; }

// Tells the timeline how much memory of the device is in use.
void rt_device_count_memory(jot_device *device);

// Parts of the host (host/parts.c); part 0 is all of it.
#define RT_HOST_MOST 256
int rt_host_count(void);
jot_device *rt_host_part(int part);
jot_status rt_host_check(jot_device *device);

// The device that the text of JOT_DEVICE names.  JOT_ERR_ARGUMENT when it is none.
jot_status rt_device_parse(const char *text, jot_device **out);

// GPUs.  rt_cuda_describe adds a line for each, and one for each library.
#define RT_CUDA_MOST 16
jot_device *rt_cuda_device(int index); // never NULL
jot_status rt_cuda_count(int *out_count);
void rt_cuda_trim(void);
void rt_cuda_describe(struct rt_text *text);

#endif
