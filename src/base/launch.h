// SPDX-License-Identifier: Apache-2.0
// The launch plan: what a compiled program does, step by step, as plain data.
//
// A plan goes with one object file that holds its kernels.  It is flat, so that it can be
// written to bytes and read back; every index in it is checked before anything runs.  The
// scheduler and the code generator fill it, rt_program runs it.
//
// Buffers.  A step names its operands by buffer id.  A buffer is a range of bytes in one of
// four memories: an input of the call, an output of the call, the constants of the plan, or the
// arena, which is memory of one call in flight (64-byte aligned; its last zeroed_bytes are zero
// before the first call that uses it, and every call leaves them so; the rest holds anything).
// Or it is part of other buffers, another one in each trip of a loop: a row (offset + trip *
// stride) of one, or the one of several whose turn it is ((index + trip) mod their number).
//
// Steps run in order, each after the one before has ended, or as if they did: those that use no memory
// that one of them writes may run at once.  Jumps make loops and branches; a loop
// has a number, and counts its trips.
//
//     kind      operands                does
//     KERNEL    what the kernel says    runs the kernel `name` over [0, total) in chunks of grain
//     GEMM      a, b, c, bias, addend   gemms[index]: c = alpha a b + beta c, or what struct rt_gemm
//                                       says of the last two, which it has by its flags
//     COPY      to, from                copies; the two have the same size and do not overlap
//     CLEAR     to                      fills with zero bytes
//     JUMP      -                       goes on at step `target`
//     JUMP_IF   flag (1 byte)           goes on at step `target` when the flag is not 0
//     JUMP_IFN  flag (1 byte)           goes on at step `target` when the flag is 0
//     LOOP      -                       starts loop `index`; goes on at `target` when total is 0
//     NEXT      -                       counts a trip of loop `index`, and goes on at `target`
//                                       unless that were total trips
//     PHASES    what the loop says      runs loop `index` whole, the function `name`; its phases are
//                                       kernels that the function calls, and what it asks of rt_phases;
//                                       on a GPU the loop is a kernel, which leaves turns as they are
//                                       after so many trips as its param says
//     SWITCH    i32                     goes on at the step that params say for it, or for the
//                                       nearest that they say something for
//     LIBRARY   what the routine says   calls the routine `name` of the run time with its params; the
//                                       first `index` operands are read, the others are results, of
//                                       which one may be where an operand is if the routine allows it
//     CALLBACK  what the callback says  calls callback `index` of the program
//     CHECK     flags, trips            fails unless all flags are set (check.h), bytes of an array;
//                                       params: how many axes of the index are lanes, its extents;
//                                       `name` is what it says
//     COLLECTIVE to, from               what the devices of the mesh do together (collective.h), by its
//                                       params; each device of a group waits here for the others
//
// A target of step_count ends the program.
//
// A program with collectives is one that every device of a mesh runs.  Its first mesh_rank params are
// the sizes of the mesh.
//
// Chunks.  Chunk i of a kernel covers [i * grain, min(total, (i + 1) * grain)).  Every chunk is
// one call of the kernel, in any order and on any thread, so a kernel that leaves partial
// results leaves them by chunk number and a later step of one chunk combines them: the number
// of chunks depends on total and grain alone, never on the number of threads.  With total 0
// nothing is called.  Without RT_STEP_PARALLEL the chunks run in order on the thread of the
// caller; a step that is not worth waking a thread for (about 50 microseconds of work) should
// not have it.
//
// On a GPU the kernel is started once, by `block` threads in each of so many blocks that the device
// is full, or one a chunk with RT_STEP_EXACT_GRID; blocks take chunks in turn:
// for (c = blockIdx.x; c < chunks; c += gridDim.x).  Its parameters are the addresses of the
// operands in the step's order, and nothing else.  Results do not depend on the number of
// blocks.
#ifndef BASE_LAUNCH_H
#define BASE_LAUNCH_H

#include "jot/dtype.h"
#include "jot/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;

// Launches that a GPU keeps as one graph; more are not worth it.
#define RT_GRAPH_MOST 5000
// Trips of a while that are written into a graph, at most.
#define RT_TURNS_MOST 4
// Operands and results of a routine, at most.
#define RT_ROUTINE_MOST 16

// A kernel of compiled code.  buffers: the operands of the step, in its order.  [begin, end): a
// range of the outermost parallel index; chunk: its number.  scratch: scratch_bytes of the
// step, of this worker alone, 64-byte aligned, not zeroed; NULL when the step asks for none.
typedef void rt_kernel(void *const *buffers, int64_t begin, int64_t end, int64_t chunk,
                       void *scratch);

// What a loop of compiled code asks of who runs it.
struct rt_phases {
    // Runs the kernel over [0, total) in chunks of grain, which threads share.
    void (*run)(struct rt_phases *phases, rt_kernel *kernel, void *const *buffers,
                int64_t total, int64_t grain);
    // gemms[index] of the plan on a, b, c; false when that fails.
    bool (*multiply)(struct rt_phases *phases, void *const *buffers, int64_t index);
};

// A whole loop.  buffers and scratch as for a kernel.  Returns the trips that it made; -1 when a
// product has failed.
typedef int64_t rt_loop(void *const *buffers, struct rt_phases *phases, void *scratch);

enum rt_memory {
    RT_MEMORY_INPUT,
    RT_MEMORY_OUTPUT,
    RT_MEMORY_CONSTANT,
    RT_MEMORY_ARENA,
    RT_MEMORY_ROW,
    RT_MEMORY_TURN,
    RT_MEMORY_COUNT,
};

struct rt_buffer {
    uint32_t memory; // enum rt_memory
    uint32_t index;  // which input or output; TURN: at the first trip; 0 otherwise
    uint64_t offset; // in bytes from the start of the memory
    uint64_t bytes;
    int64_t stride;              // ROW: in bytes from trip to trip
    uint32_t of_first, of_count; // ROW, TURN: buffers, in operands
    uint32_t loop;               // ROW, TURN
    uint32_t reserved;           // 0
};

// What a caller must give for an input or an output.
struct rt_argument {
    uint64_t bytes;
    // Outputs: the input whose memory it may take over when that input is donated and free, or
    // -1.
    int32_t donated;
    uint32_t reserved; // 0
};

enum rt_step_kind {
    RT_STEP_KERNEL,
    RT_STEP_GEMM,
    RT_STEP_COPY,
    RT_STEP_CLEAR,
    RT_STEP_JUMP,
    RT_STEP_JUMP_IF,
    RT_STEP_JUMP_IFN,
    RT_STEP_LOOP,
    RT_STEP_NEXT,
    RT_STEP_PHASES,
    RT_STEP_SWITCH,
    RT_STEP_LIBRARY,
    RT_STEP_CALLBACK,
    RT_STEP_CHECK,
    RT_STEP_COLLECTIVE,
    RT_STEP_KIND_COUNT,
};

enum rt_step_flag {
    RT_STEP_PARALLEL = 1u << 0,    // worth the thread pool; PHASES: some phase is
    RT_STEP_COOPERATIVE = 1u << 1, // GPU: all blocks are resident at once
    RT_STEP_EXACT_GRID = 1u << 2,  // GPU: as many blocks as chunks
    // GPU: of capability 9.0 on, where every kernel begins by waiting for those in front of it:
    // its blocks may start before these are done.
    RT_STEP_EARLY = 1u << 3,
};

struct rt_step {
    uint16_t kind;  // enum rt_step_kind
    uint16_t flags; // enum rt_step_flag
    uint32_t name;  // KERNEL, PHASES, LIBRARY, CHECK, COLLECTIVE: offset in text
    uint32_t title; // KERNEL, PHASES: what JOT_DUMP=schedule calls it or its first kernel
    // GEMM: of gemms; CALLBACK: of the program's callbacks; LIBRARY: operands that it reads; LOOP, NEXT,
    // PHASES
    uint32_t index;
    uint32_t target;                       // jumps, LOOP, NEXT
    uint32_t read_only;                    // KERNEL: bit i: operand i is not written
    uint32_t operand_first, operand_count; // in operands
    // In params; LIBRARY, CALLBACK, CHECK, SWITCH, PHASES, COLLECTIVE
    uint32_t param_first, param_count;
    // KERNEL: grain is at least 1; LOOP, NEXT: -1 for no end; PHASES on a GPU: blocks.
    int64_t total, grain;
    // KERNEL, PHASES: per worker; on a GPU the dynamic shared memory of a block.
    uint64_t scratch_bytes;
    uint32_t block;   // KERNEL, PHASES on a GPU: threads of a block; 0 on the host
    uint32_t cluster; // KERNEL on a GPU: blocks of a cluster; 0 or 1 for none
    uint32_t
        where; // the place in the user's source that it computes, offset in text; 0: not said
    uint32_t reserved; // 0
};

enum rt_transpose {
    RT_TRANSPOSE_NO,
    RT_TRANSPOSE_YES,
    RT_TRANSPOSE_CONJUGATE, // transposed and conjugated; for real types the same as YES
};

#define RT_GEMM_BATCH_RANK 4

enum rt_gemm_flag {
    RT_GEMM_BIAS = 1u << 0,
    RT_GEMM_ADDEND = 1u << 1,
    RT_GEMM_SYMMETRIC = 1u << 2,
};
enum rt_activation { RT_LINEAR, RT_RELU, RT_GELU, RT_ACTIVATION_COUNT };
enum rt_precision {
    RT_PRECISION_FULL,
    RT_PRECISION_TF32,
    RT_PRECISION_BF16,
    RT_PRECISION_3TF32,
    RT_PRECISION_COUNT,
};

// c[m, n] = alpha op(a)[m, k] op(b)[k, n] + beta c, row-major, repeated over a batch of up to
// four axes.  Leading dimensions and strides count elements; a stride of 0 repeats a matrix
// (not of c). op is a transposition: with TRANSPOSE_YES the memory of a is [k, m], its rows lda
// apart. With beta 0 the old c is not read, so it may hold anything.
//
// On a GPU there may be more: an addend, which lies as c does, is beta's in the place of c (and may be
// c); then a bias of n numbers is added to each row; then the activation, for gelu by tanh.  Factors
// of f32 may be rounded as far as the precision says.  A product that is symmetric but for rounding may
// be computed on one side of its diagonal alone.
struct rt_gemm {
    // jot_dtype of c: f32, f64, c64, c128; on a GPU f16 and bf16, which sum in f32, and i32.  That of a and b is
    // the same, but on a GPU one of those that dtype_multiplies names: bytes with a as it is and b transposed.
    uint32_t dtype, operands;
    uint32_t transpose_a, transpose_b;
    uint32_t precision;         // enum rt_precision
    uint32_t flags, activation; // enum rt_gemm_flag, rt_activation
    int64_t m, n, k;
    int64_t lda, ldb, ldc;
    double alpha, beta;
    int64_t batch[RT_GEMM_BATCH_RANK]; // extents; 1 where unused
    int64_t stride_a[RT_GEMM_BATCH_RANK], stride_b[RT_GEMM_BATCH_RANK],
        stride_c[RT_GEMM_BATCH_RANK];
};

struct rt_plan {
    uint32_t input_count, output_count;
    uint32_t buffer_count, operand_count;
    uint32_t step_count, gemm_count;
    uint32_t param_count, text_bytes;
    uint32_t loop_count, mesh_rank;
    uint64_t constant_bytes, arena_bytes, zeroed_bytes;
    const struct rt_argument *inputs, *outputs;
    const struct rt_buffer *buffers;
    const struct rt_step *steps;
    const struct rt_gemm *gemms;
    const uint32_t *operands; // buffer ids
    const int64_t *params;
    const char *text;      // names, each ending in a zero byte
    const void *constants; // 8-byte aligned or better; copied to 64-byte aligned memory to run
};

// Whether every index, range and size of a plan is inside what it refers to.  JOT_ERR_IO with
// the first fault otherwise.
jot_status rt_plan_check(const struct rt_plan *plan);

// The plan as bytes, in the arena.  The bytes mean the same on every machine of this byte
// order.
void rt_plan_write(const struct rt_plan *plan, struct arena *arena, const void **out_bytes,
                   size_t *out_size);

// Reads bytes of rt_plan_write.  The pointers of the plan borrow from `bytes`, which is 8-byte
// aligned.  Any bytes are safe to give: what is not a plan is JOT_ERR_IO.
jot_status rt_plan_read(const void *bytes, size_t size, struct rt_plan *out_plan);

#endif
