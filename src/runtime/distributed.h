// SPDX-License-Identifier: Apache-2.0
// Processes of one program (jot/distributed.h) from the inside: how they meet, and what they do together
// on the memory of the host.
//
// Two sockets lead to each other process.  One says that a process is there, or why the job has failed, and
// is of a thread that does nothing else; the other one carries data, and is of the thread that is inside of a
// collective.  A failure is one of all: who finds it tells the others, and whatever waits or
// comes after it gives that status.
//
// Thread-safety: any thread may call; collectives are done one at a time, and all processes do them in
// one order.
#ifndef RUNTIME_DISTRIBUTED_H
#define RUNTIME_DISTRIBUTED_H

#include "base/collective.h"
#include "base/hash.h"
#include "jot/distributed.h"

#include <stdbool.h>
#include <stdint.h>

// ---- meeting ----

// Gives every process its number, how many there are, and the records of all in their order, in memory that
// memory_release takes, by means of somebody else: MPI.  A text says what is wrong; NULL is well.
typedef const char *rt_meet(void *ctx, const void *own, size_t bytes, int *out_index,
                            int *out_count, void **out_all);

// Joins a job; jot_distributed_start is this with MPI.  JOT_ERR_ARGUMENT inside of one.
jot_status rt_distributed_join(const jot_distributed_options *options, rt_meet *meet,
                               void *ctx);

// ---- what goes wrong ----

// The failure of the job, or JOT_OK; also where there is no job.
jot_status rt_distributed_check(void);

// Ends the job for all, with a message: what this process cannot take part in any more.
__attribute__((format(printf, 2, 3))) void rt_distributed_fail(jot_status status,
                                                               const char *format, ...);

// Called once when the job fails, on any thread, and at once if it has failed: to free what waits for
// another process by other means (a communicator of NCCL).  Up to 8; false when there is no room.
bool rt_distributed_on_failure(void (*call)(void *ctx), void *ctx);
void rt_distributed_off_failure(void (*call)(void *ctx), void *ctx);

// ---- collectives ----

// The members of a group, each with a block of memory, are on processes: several may be on one.  Members
// are in one order in all processes, and what comes out does not depend on where they are.
struct rt_group {
    int64_t count;
    const int *process; // by member
};

// Of reductions, which combine blocks in the order of the members.
struct rt_combine {
    enum collective_combiner combiner;
    jot_dtype dtype;
};

// All below: `what` is what the program calls it, for messages ("psum at step.c:12"), and the same in all
// processes.  from and to have an entry for each member of this process, in order, and `bytes` is
// that of one block, or of one part where blocks have one for each member.  Only
// all_reduce and broadcast may write where they read.  JOT_OK where no member is of this process.
// A failure is one of the job.

jot_status rt_distributed_all_gather(const struct rt_group *g, const char *what, size_t bytes,
                                     const void *const *from, void *const *to);
jot_status rt_distributed_all_to_all(const struct rt_group *g, const char *what, size_t bytes,
                                     const void *const *from, void *const *to);
// The block of member sources[i] for member i; zeros where that is -1.
jot_status rt_distributed_permute(const struct rt_group *g, const char *what, size_t bytes,
                                  const int64_t *sources, const void *const *from,
                                  void *const *to);
// The block of member `root` for all.
jot_status rt_distributed_broadcast(const struct rt_group *g, const char *what, size_t bytes,
                                    int64_t root, void *const *blocks);
jot_status rt_distributed_barrier(const struct rt_group *g, const char *what);
jot_status rt_distributed_reduce_scatter(const struct rt_group *g, const char *what,
                                         size_t bytes, const struct rt_combine *combine,
                                         const void *const *from, void *const *to);
jot_status rt_distributed_all_reduce(const struct rt_group *g, const char *what, size_t bytes,
                                     const struct rt_combine *combine, const void *const *from,
                                     void *const *to);

// What a step of a program says (base/collective.h), for members in the order of their positions.
jot_status rt_distributed_run(const struct rt_group *g, const char *what,
                              const struct collective *c, size_t to_bytes, size_t from_bytes,
                              const void *const *from, void *const *to);

// Whether all processes of the group are at the first call of the same program; else JOT_ERR_CHECK with
// both names, and the job goes on.
jot_status rt_distributed_agree(const struct rt_group *g, struct hash128 key, const char *name);

// All processes, a member each.
struct rt_group rt_distributed_all(void);

// ---- devices ----

// The process that a device is of.
int rt_distributed_process_of(const jot_device *device);
// How many devices of the kind each process has, which all ask at once; in memory that memory_release takes.
jot_status rt_distributed_count(jot_device_kind kind, int **out_counts);

#endif
