// SPDX-License-Identifier: Apache-2.0
// Kernels of a GPU on this machine, the blocks of a launch one after the other (of a cooperative one
// there is a single one, since results do not depend on their number), the threads of a block
// in turns between the places where they wait.  Blocks and threads come forwards, backwards and
// mixed, by FAKE_CUDA_SEED and the number of the launch.  What a block shares is NaNs at first.
//
// A launch fails where
//   - a thread reads or writes where no memory of the device is, nor what its block shares, or where the
//     code says that it is aligned and it is not;
//   - two threads use the same cell without waiting in between, and one of them writes, or two
//     blocks do, of which the later one has not counted that the other one is done, or two warps, or
//     parts of a block that have barriers of their own;
//   - threads wait that not all others of the warp, or the block, come to.
#ifndef FAKE_CUDA_EMULATE_H
#define FAKE_CUDA_EMULATE_H

#include "fake_cuda/fake.h"

// The function is what a thread does.  Whether nothing was wrong; the text says what, until the next
// one is.
bool emulate(const char *name, void (*thread)(void **operands), const CUlaunchConfig *config,
             void **operands);
const char *emulated_fault(void); // "" for none
// What the code of a kernel calls.
void *emulated_symbol(void *ctx, const char *name);

// threads.c, of the thread that runs.
#define EMULATED_THREADS 1024 // of a block, at most
struct emulated_lane {
    uint32_t words[6];
};
// Waits for all of the warp to come to the same.  What each of its threads has given, until this one
// waits for the warp again.
const struct emulated_lane *emulated_meet(const char *what, uint32_t mask, const void *given,
                                          size_t bytes);
void emulated_fail(const char *what); // ends the launch
char *emulated_shared(void);          // what a block shares

// tensor.c: no copy is on its way yet.
void tensor_block(void);

// marks.c: who used which cell.  Threads are numbered in their block.
struct marks_now {
    uint32_t block, thread;
    uint32_t barriers; // that the block has passed
    uint32_t syncs;    // that the warp has passed, of its own
    bool has_counted;  // so that others may go on from what the block did
    uint32_t part;   // of the block: the barrier of its own at which it waited last, 0 for none
    uint32_t counts; // that the block has made
    uint32_t counted; // of which the last of its warp, or part, is, 0 for none
};
// Whether the warp of the thread, or the part, has made one of the counts in between.
bool emulated_counted(uint32_t thread, uint32_t part, uint32_t after, uint32_t before);
void marks_launch(void); // nothing is used yet
void marks_block(void);  // nothing is of what a block shares
// Tells of bytes that are used, the first of each so many.  NULL, or what is wrong.
const char *marks_add(const struct marks_now *now, const char *at, unsigned bytes,
                      unsigned each, bool is_write,
                      int64_t shared); // in what a block shares, or -1

#endif
