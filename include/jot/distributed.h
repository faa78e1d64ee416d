// SPDX-License-Identifier: Apache-2.0
// Several processes of one program, on one machine or on many.
//
//     mpirun -n 4 ./program
//
//     if (jot_distributed_start(NULL) != JOT_OK) ...
//     printf("process %d of %d\n", jot_process_index(), jot_process_count());
//     jot_array *mean = jot_process_all_gather(own); // a row of each process
//     jot_distributed_stop();
//
// MPI tells the processes how many they are and where.  Then they talk over sockets of their own.
//
// A process is lost when it ends without jot_distributed_stop or exit, or when nothing has been
// heard of it for `silence_seconds`, as when it is stopped or its machine is down.  Within that time
// every other process gets JOT_ERR_DEVICE, with the number of the lost process, its machine and its
// process id: from the call that waits, and from every later call that needs other processes.
// Arrays stay, and each process may go on alone.  No call hangs, and a process that ends waits for
// no other.
//
// All processes do the same things together in the same order.  Where two do different things, both get
// JOT_ERR_CHECK, which says what each of them was about to do.
//
// Open MPI ends all processes when one dies, unless it is told not to: mpirun --enable-recovery.
//
// Thread-safety: any thread may call; what processes do together is done one at a time.
#ifndef JOT_DISTRIBUTED_H
#define JOT_DISTRIBUTED_H

#include "jot/array.h"
#include "jot/device.h"
#include "jot/status.h"

#include <stddef.h>

JOT_BEGIN_C

// Zero is the default of every field.
typedef struct jot_distributed_options {
    // How long nothing may be heard of another process; 10.  Every process says eight times in that time
    // that it is there, by a thread of its own, whatever else it does.
    double silence_seconds;
    // How long to wait for all processes to start; 300.
    double start_seconds;
    // How long a call waits for a process that is there but does not make the same call; 1800.
    double wait_seconds;
    // The network interface to use between machines, such as "ib0"; NULL is any.
    const char *interface;
} jot_distributed_options;

// Meets the other processes; NULL is all defaults.  Needs jot/libjot-mpi.so, which is built where there is
// an MPI, beside libjot or where $JOT_MPI says: JOT_ERR_LIBRARY where it is not there.  JOT_ERR_DEVICE when not all
// processes come in time; JOT_ERR_CHECK when they are of different builds of jot.  A program that does not
// use MPI itself has no more MPI after this call; one that does calls MPI_Init before it and MPI_Finalize when
// it likes.  Once a process.  The child of a fork is a process alone.
JOT_API JOT_MUST_USE jot_status jot_distributed_start(const jot_distributed_options *options);

// Takes leave of the other processes: what they do together from here on without this one is their
// affair, and with it a status.  Does not wait for them to stop too.  Nothing where nothing was started.
// A process that exits takes leave by itself.
JOT_API void jot_distributed_stop(void);

// JOT_OK as long as no process is lost; does not wait.
JOT_API JOT_MUST_USE jot_status jot_distributed_check(void);

// 0 of 1 before jot_distributed_start.
JOT_API int jot_process_index(void);
JOT_API int jot_process_count(void);

// ---- devices of all processes ----
//
// A mesh (jot/parallel.h) may have devices of several processes, and jot_mesh_of takes those of all, process 0's
// first: then all processes make the same meshes in the same order, and call the same compiled functions of them.  An
// array in pieces on such a mesh is one array, of which each process has the pieces on its devices;
// jot_array_shard takes in each process the same whole array, and jot_array_from_shards NULL for
// pieces that are elsewhere.  What needs elements that are elsewhere is JOT_ERR_DEVICE;
// jot_process_all_gather brings them.

// Device `index` of a process; of this one it is jot_host_device(index) or jot_cuda(index).  NULL with a message when
// there is no such process.
JOT_API jot_device *jot_process_device(int process, jot_device_kind kind, int index);

// The process that a device is of.
JOT_API int jot_device_process(jot_device *device);

// ---- what all processes do together ----
//
// Arrays go through the memory of the host; results are on the device of the array that is given.  A call
// that fails in one process, also with an argument that is NULL, fails in all, and the job with it.

// An array with an axis in front, in which row i is the array of process i.  All have one type and shape.  Of an
// array in pieces of several processes it is the whole array, on the first device of this process that has one.
JOT_API JOT_MUST_USE jot_array *jot_process_all_gather(jot_array *a);

// The array of process `root`, in all processes; the others give one of the same type and shape, and what is
// in it does not matter.
JOT_API JOT_MUST_USE jot_array *jot_process_broadcast(jot_array *a, int root);

// Waits until all processes are here.
JOT_API JOT_MUST_USE jot_status jot_process_barrier(void);

JOT_END_C

#endif
