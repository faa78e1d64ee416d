// SPDX-License-Identifier: Apache-2.0
// A GPU: its primary context, one stream, a pool of memory, and whether it is lost.
//
// All work goes to one stream, in the order in which threads hand it over, so what one call writes
// the next one reads, and memory that is released may be given away at once.
#ifndef RUNTIME_CUDA_DEVICE_H
#define RUNTIME_CUDA_DEVICE_H

#include "runtime/cuda/library.h"
#include "runtime/device.h"

#include <pthread.h>
#include <stdatomic.h>

// Pinned memory that transfers go through, a ring of segments; each is used again when its last
// transfer has ended.
#define CUDA_SEGMENTS 4
#define CUDA_SEGMENT_BYTES ((size_t)4 << 20)

struct cuda_ring {
    char *memory; // NULL until the first transfer
    CUevent done[CUDA_SEGMENTS];
    int segment;
    size_t used; // of the segment
    pthread_mutex_t lock;
};

// Memory that is kept for reuse, by size class.
#define CUDA_CLASSES 320

struct cuda_kept {
    CUdeviceptr *blocks;
    uint32_t count, room;
};

// Bodies inside of one another in a graph: a while has one, and one more for each of its turns.
#define CUDA_DEPTH 32

struct cuda_device {
    jot_device base;
    CUdevice device;
    CUcontext context;
    CUstream stream, own_stream; // the former may be the user's
    CUmemoryPool pool;
    int sm_count, major, minor, shared_bytes, has_clusters;
    char product[96];
    size_t memory_bytes;
    struct cuda_ring up, down;

    pthread_mutex_t lock; // of what follows
    bool is_open;
    CUstream capturing[CUDA_DEPTH]; // by depth of whiles; NULL until the first capture
    CUfunction set_conditional;     // while.c; NULL until the first
    pthread_mutex_t capture_lock;
    cublasLtHandle_t blas; // NULL until the first product
    pthread_mutex_t blas_lock;
    bool has_chosen; // cuBLASLt, once; under the lock

    // Of routines: one call of a library at a time, for what streams and workspaces its handle has.
    pthread_mutex_t routine_lock;
    cublasHandle_t blas_routines; // these are NULL until the first of their routines
    cusolverDnHandle_t solver;
    cusolverDnParams_t solver_params;
    struct cuda_fft_plan *fft_plans;
    cudnnHandle_t conv; // NULL until the first of its routines
    struct cuda_conv_plan *conv_plans;
    struct cuda_module *own_modules; // of kernels.c

    pthread_mutex_t kept_lock;
    struct cuda_kept kept[CUDA_CLASSES];

    atomic_size_t used; // bytes
    atomic_bool is_lost;
    char why_lost[300];
    atomic_bool has_opened;   // its memory to peers
    atomic_bool has_peers;    // GPUs that it does something together with
    atomic_bool has_given_up; // that, until the next wait
    char why_given_up[700];
};

// Workspaces of products, at most, so that as many may run at once.
#define CUDA_WORKSPACES 4

// What a program has of the device.
struct cuda_code {
    struct cuda_kernel *kernels;
    struct cuda_product *products;
    struct cuda_raw *raws;
    void *workspace; // of products: so many of so many bytes each
    size_t workspaces, workspace_bytes;
    struct cuda_routine *routines;
    void *routine_workspace; // of them, which run one after the other
    size_t routine_bytes;
    uint64_t count;
    CUmodule modules[];
};

// Makes the context of the device current for the calls that follow, up to cuda_leave.  Fails when
// the device is not there or lost.  A thread that is inside may enter the same device again.
jot_status cuda_enter(struct cuda_device *d);
void cuda_leave(void);
// Where the thread puts work of the device that it has entered.
CUstream cuda_stream(const struct cuda_device *d);
// From here on that is a stream which only records it; NULL: no longer.
void cuda_capture(CUstream stream);
CUstream cuda_capturing(void); // that stream
// From here on it is, of every device, the stream for captures of depth 0.
void cuda_capture_all(bool is_wanted);

// The status of what a call of the driver returned, with what was being done.  A fault that leaves
// the context unusable loses the device.
jot_status cuda_status(struct cuda_device *d, CUresult result, const char *doing);

// How one GPU gets at the memory of another.
enum cuda_link { CUDA_LINK_HOST, CUDA_LINK_PEER, CUDA_LINK_NVLINK };
enum cuda_link cuda_link(const struct cuda_device *from, const struct cuda_device *to);
// Lets all GPUs that can get at its memory.
jot_status cuda_open_to_peers(struct cuda_device *d);

// Waits for what the stream has been given, or for the event; a GPU that waits for another one that is lost
// gives up.
jot_status cuda_wait_stream(struct cuda_device *d);
jot_status cuda_wait_event(struct cuda_device *d, CUevent event, const char *doing);
// The device no longer does what it did together with another one, which is lost: the next wait says why.
void cuda_give_up(struct cuda_device *d, const char *why);

// collective.c
jot_status cuda_collective(jot_device *const *devices, const struct collective *c,
                           size_t n_groups, const struct rt_blocks *groups, uint64_t to_bytes,
                           uint64_t from_bytes);
bool cuda_records_collective(const struct collective *c);
// While several GPUs are handed something that they do together.
// Whether kernels of jot's own do it (together.h), as far as is known before it is tried.
bool cuda_collective_by_kernels(const struct collective *c, uint64_t to_bytes,
                                uint64_t from_bytes);
void cuda_collective_begin(void);
void cuda_collective_end(void);
void cuda_collective_lost(struct cuda_device *lost); // ends what others wait for it in
void cuda_check_peers(struct cuda_device *d);        // notices those that are lost

// Pieces of the vtable in other files.
jot_status cuda_allocate(jot_device *device, size_t bytes, const char *what, void **out);
void cuda_release(jot_device *device, void *block, size_t bytes);
void cuda_trim(jot_device *device);
jot_status cuda_memory(jot_device *device, jot_device_memory_use *out);
jot_status cuda_wait(jot_device *device);
jot_status cuda_upload(jot_device *device, void *to, const void *from, size_t bytes);
jot_status cuda_download(jot_device *device, void *to, const void *from, size_t bytes);
jot_status cuda_copy(jot_device *to_device, void *to, jot_device *from_device, const void *from,
                     size_t bytes);
jot_status cuda_clear(jot_device *device, void *block, size_t bytes);

struct rt_ahead *cuda_begin_ahead(jot_device *device, const struct rt_ahead_calls *calls);
void cuda_end_ahead(struct rt_ahead *ahead);
// Opens cuBLASLt and has it choose once, in the context.
void cuda_gemm_open(struct cuda_device *d);
jot_status cuda_assemble(jot_device *device, const void *object, size_t size, void **out,
                         size_t *out_size);
jot_status cuda_load(struct rt_program *program, const void *object, size_t size);
void cuda_unload(struct rt_program *program);
jot_status cuda_bind(struct rt_program *program, const struct rt_step *from, const char *name,
                     struct rt_bound_step *step);
jot_status cuda_prepare(const struct rt_program *program, struct rt_instance *instance);
void cuda_finish(const struct rt_program *program);
void cuda_forget(const struct rt_program *program, struct rt_instance *instance);
// Whether it is a kernel that leaves most of the device free.
bool cuda_kernel_is_small(const struct rt_program *program, const struct rt_bound_step *step);
// Whether it is such a kernel that takes so long that another one had better run meanwhile.
bool cuda_kernel_is_aside(const struct rt_program *program, const struct rt_bound_step *step);
jot_status cuda_launch(const struct rt_program *program, const struct rt_instance *instance,
                       const struct rt_bound_step *step);
jot_status cuda_loop(const struct rt_program *program, const struct rt_instance *instance,
                     const struct rt_bound_step *step);

// graph.c: the segment by a graph, unless it is better run step by step.
jot_status cuda_replay(const struct rt_program *program, struct rt_instance *instance,
                       const struct rt_segment *segment, bool *out_done);
// The same of a segment with collectives, on all devices of a team.
jot_status cuda_replay_together(const struct rt_together *team, bool *out_done);
void cuda_graphs_forget(const struct rt_program *program, struct rt_instance *instance);
// A stream for captures, of the depth.
jot_status cuda_open_capturing(struct cuda_device *d, int depth);
// branches.c: what is captured on the stream by this thread waits for no more than it has to, up to
// cuda_branches_close, which frees what is kept for that.
jot_status cuda_branches_open(CUstream stream);
// Whether some of the steps had better be branches: products, and neighbouring kernels that do not wait for each other.
bool cuda_branches_are_worth_it(const struct rt_program *program,
                                const struct rt_instance *instance, uint32_t first,
                                uint32_t end);
void cuda_branches_close(void);
// Around each step, captured or not.
jot_status cuda_branch_open(const struct rt_program *program,
                            const struct rt_instance *instance,
                            const struct rt_bound_step *step);
jot_status cuda_branch_close(const struct rt_program *program,
                             const struct rt_bound_step *step);
// The channel (together.h) of the exchange that the thread captures in the stream.
int cuda_branches_channel(CUstream stream);
// What is captured next waits for all that is captured so far; all that comes after waits for what
// the stream has then come to.
jot_status cuda_branches_wait(const struct rt_program *program);
jot_status cuda_branches_restart(const struct rt_program *program);
// Where the product that is begun may work.
void *cuda_workspace(const struct cuda_code *code);
// while.c: a loop that a test ends, into the graph that is being captured.
jot_status cuda_take_while(const struct rt_program *program, struct rt_instance *instance,
                           const struct rt_while *loop, bool *out_done);

struct cuda_product;
jot_status cuda_gemm_bind(struct rt_program *program, const struct rt_step *from,
                          struct rt_bound_step *step);
bool cuda_gemm_has_workspace(const struct cuda_product *product);
void cuda_gemm_forget(struct cuda_product *first); // and those after it
jot_status cuda_gemm(const struct rt_program *program, const struct rt_bound_step *step,
                     void *const *operands);

// routine.c
jot_status cuda_routine_bind(struct rt_program *program, const char *name,
                             const struct rt_routine_call *call, struct rt_bound_step *step);
jot_status cuda_routine_run(const struct rt_program *program, const struct rt_bound_step *step,
                            void *const *operands);
void cuda_routine_forget(struct cuda_routine *first); // and those after it
// routine_conv.c
bool cuda_takes_convolution(jot_device *device, const int64_t *params, uint32_t count);

// "a" of a device whose code may use what no newer one has: of its architecture alone.
const char *cuda_arch_suffix(const struct cuda_device *d);

// raw.c; the architecture as an option of NVRTC, what it gives is memory_allocate's.
struct rt_raw_kernel;
jot_status cuda_raw_compile(const struct rt_raw_kernel *kernel, const char *arch, void **out,
                            size_t *out_size);
// What that is in the context, and its kernel.
jot_status cuda_raw_load(struct cuda_device *d, const char *code, size_t size, CUmodule *out,
                         CUfunction *out_function);
jot_status cuda_raw_bind(struct rt_program *program, const struct rt_raw_kernel *kernel,
                         struct rt_bound_step *step);
void cuda_raw_forget(struct cuda_raw *first); // and those after it; in the context
jot_status cuda_raw_launch(const struct rt_program *program, const struct rt_instance *instance,
                           const struct rt_bound_step *step);

static inline struct cuda_device *cuda_device_of(jot_device *device)
{
    return (struct cuda_device *)device;
}

#endif
