// SPDX-License-Identifier: Apache-2.0
// What programs run on: the host and the GPUs of the machine, threads and memory.
//
//     jot_executable *f = jot_jit(jot_fn(step), .device = jot_cuda(0));
//     jot_array *x = jot_array_to(host_array, jot_cuda(0));
//
// A call on a GPU returns when the work has been handed over; reading a result waits for it.  What
// goes wrong meanwhile is the status of whatever waits next.
//
// Thread-safety: every function here may be called from any thread.
#ifndef JOT_DEVICE_H
#define JOT_DEVICE_H

#include "jot/status.h"

#include <stddef.h>
#include <stdint.h>

JOT_BEGIN_C

// ---- devices ----

// The host, a part of it, or a GPU.  Devices stay for the life of the process: there is nothing to release.
typedef struct jot_device jot_device;

// What a device is: the host or a part of it, or a GPU of NVIDIA.
typedef enum jot_device_kind { JOT_HOST, JOT_CUDA } jot_device_kind;

// All of the host.
JOT_API jot_device *jot_host(void);

// Part number `index` of the host: a device with its share of jot_threads(), at least the calling thread.
// Where the memory of the host is that of several NUMA nodes, the threads are of one of them.  Arrays
// on parts are in the same memory, so none is copied from one to another.  Of a host of one part that
// is jot_host().  Never NULL: when there is no such part, using it is JOT_ERR_DEVICE.
JOT_API jot_device *jot_host_device(int index);

// How many parts the host has, up to 256.  At the start it is JOT_HOST_DEVICES from the environment,
// else 1; 0 goes back to that.  No call on a part may be in flight.
JOT_API JOT_MUST_USE jot_status jot_set_host_devices(int n);

// GPU number `index` of NVIDIA's driver.  Never NULL: when there is no such GPU, using it is
// JOT_ERR_DEVICE and the message says why.
JOT_API jot_device *jot_cuda(int index);

// How many devices of the kind there are: parts of the host, 0 to any number of GPUs.  When there is
// none jot_error_message says why.
JOT_API int jot_device_count(jot_device_kind kind);

// JOT_OK when programs can run on the device, else JOT_ERR_DEVICE: it is not there, or it is lost,
// because a kernel failed on it.  Arrays of a lost device are gone.  The host goes on; other GPUs do
// where the driver lets them: that of CUDA 13 gives all GPUs of a process up when a kernel of one
// reads or writes what is not its own, and each of them says that it is lost when it is used next.
// NULL is the default device, here and below.
JOT_API JOT_MUST_USE jot_status jot_device_check(jot_device *device);

// The kind of a device, and its name.
JOT_API jot_device_kind jot_device_kind_of(jot_device *device);
JOT_API const char *jot_device_name(jot_device *device); // "host", "host:0", "cuda:0"

// Where arrays are made, and where functions run that were compiled for no device.  At the start it
// is JOT_DEVICE from the environment (host, host:1, cuda or cuda:1), else the host.
JOT_API jot_device *jot_default_device(void);
// Arrays and compiled functions that there are stay where they are.  NULL goes back to the start.
JOT_API void jot_set_default_device(jot_device *device);

// Waits for all work that was handed to the device.  What went wrong with it is the status.
JOT_API JOT_MUST_USE jot_status jot_device_wait(jot_device *device);

// The stream that work of a GPU is handed to from here on, a CUstream or cudaStream_t of the user's in the
// primary context of the device; NULL goes back to jot's own.  What has been handed over before comes before.
// The stream stays until another one is set.  No other thread may use the device at the time.  Work that
// several GPUs do together is on the stream of each.  JOT_ERR_ARGUMENT for the host.
JOT_API JOT_MUST_USE jot_status jot_device_set_stream(jot_device *device, void *stream);

// The memory of a device.
typedef struct jot_device_memory_use {
    size_t total, free; // of the device, in bytes
    size_t used;        // by arrays and programs of this process
} jot_device_memory_use;

// The memory of a GPU; for the host see jot_memory, its `total` and `free` are 0.
JOT_API JOT_MUST_USE jot_status jot_device_memory(jot_device *device,
                                                  jot_device_memory_use *out);

// All devices and the libraries that were found for them, or why not, as lines of text.  Writes at
// most `size` bytes with the final zero, and returns the length that the whole text has, like
// snprintf.
JOT_API int jot_devices_format(char *buffer, size_t size);

// ---- threads of the host ----

// The number of threads that a call may use, the caller's among them.  At the start it is
// JOT_THREADS from the environment, else the number of CPUs the process may run on.  Threads
// are started by the first call that has enough work for them, and sleep between calls.  No
// result depends on their number.
JOT_API int jot_threads(void);

// Sets that number; 1 keeps all work on the caller's thread, 0 goes back to the default.  Waits
// for work that the pool does at the time.  JOT_ERR_ARGUMENT for a number outside 0 to 4096 or
// from inside parallel work.
JOT_API JOT_MUST_USE jot_status jot_set_threads(int n);

// A parallel loop to use instead of jot's threads.  `run` calls body(ctx, i, worker) once for
// each i in [0, chunks), in any order and on any thread, and returns when all calls have ended;
// calls that overlap in time have different workers, in [0, workers).  It returns: no exception and
// no longjmp leaves it.
typedef struct jot_parallel_for {
    void (*run)(void *user, int64_t chunks, void (*body)(void *ctx, int64_t chunk, int worker),
                void *ctx);
    void *user;
    int workers; // at least 1
} jot_parallel_for;

// Uses another parallel loop from here on; NULL goes back to jot's threads.  No call may be in
// flight.  The struct is copied.
JOT_API JOT_MUST_USE jot_status jot_set_parallel_for(const jot_parallel_for *loop);

// ---- memory of the host ----

// Memory for array data to use instead of jot's pool.  `allocate` returns NULL when there is
// none.  Both functions return, as `run` above.
typedef struct jot_allocator {
    void *(*allocate)(void *user, size_t bytes, size_t alignment);
    void (*release)(void *user, void *block, size_t bytes);
    void *user;
} jot_allocator;

// Uses another allocator from here on; NULL goes back to jot's pool.  JOT_ERR_ARGUMENT while
// there is an array, an executable that has been called, or a scope that holds an array.  No other
// thread may use jot at the time.  The struct is copied.
JOT_API JOT_MUST_USE jot_status jot_set_allocator(const jot_allocator *allocator);

// The memory of arrays on the host, in bytes.
typedef struct jot_memory_use {
    size_t blocks; // in use by arrays and programs
    size_t bytes;  // in use by arrays and programs
    size_t peak;   // the most that `bytes` of large blocks came to
    size_t held;   // kept for reuse by the pool, on top of what is in use
} jot_memory_use;

// The use of array memory.  Exact when no other thread allocates at the time.
JOT_API jot_memory_use jot_memory(void);

// Gives memory that is kept for reuse back to the system, on every device.
JOT_API void jot_memory_trim(void);

JOT_END_C

#endif
