// SPDX-License-Identifier: Apache-2.0
// Nests as kernels of a GPU: the emitters of this folder's parent with one lane of code, or a
// few, for a thread, and what is different: how threads share the work.
//
// A point of the outermost parallel loop is done by one thread, or by a group of threads.  In a
// group all threads walk the statements together: scalar work is done by each of them, a map is
// shared out, a fold is a common one, and one thread puts what is put outside of maps.  Inside
// of what is shared out each thread works alone.
#ifndef CODEGEN_GPU_H
#define CODEGEN_GPU_H

#include "codegen/gpu/blocks.h"
#include "map/gpu_lanes.h"
#include "map/gpu_operands.h"

struct gpu_arms;
struct gpu_common;
struct gpu_kept;
struct gpu_network;
struct gpu_replay;
struct gpu_size;

// What holds for the whole nest; kernel.c sets it.
struct gpu_nest {
    const struct map_operand *operands;
    bool *is_read_only; // by buffer: nothing writes it while the kernel runs
    bool *is_aligned;   // by buffer: to MAP_ALIGNMENT
    int kernel;         // its number in the program
    bool is_phase;      // of a loop, whose kernel calls the function (resident.c)
    bool has_strips;    // trips of a loop over time are written out
};

// What the function of a phase is told; entry.c sets it, until the function ends.
struct gpu_phase {
    LLVMValueRef block, blocks, barrier, shared;
};

// Of a function, until it ends.
struct gpu_function {
    unsigned resident;     // blocks that a multiprocessor is to have at once, 0: any
    uint64_t shared_bytes; // of a group
    bool keeps_loops;      // the assembler is to write out none of it
};

// A thread in a tile, for as long as tile.c lowers it.
struct gpu_tile {
    LLVMValueRef line, column; // i32
    unsigned side;             // points
};

// What stands before the loop, which all threads of all blocks do alike.
struct gpu_before {
    bool is_here;       // it is being lowered
    bool has_late_puts; // some puts are left for when all blocks are done
};

// What threads of a group wait for one another for: groups.c sets it for a nest, and statement.c
// keeps it.
struct gpu_waits {
    bool shares_locals; // some local is of the group
    bool passes_on;     // what a thread of it puts in memory another one may read or put
    bool *is_repeated;  // by statement: in a loop over time, or in a branch
    nest_id statement;  // that is lowered
    // Memory that threads of a group have in common, by buffer, behind them one for all operands
    // that are not alone: whether some may still be reading it, and whether any of it has been
    // read since all threads came to a block of code.
    bool *is_read;
    bool has_read;
    LLVMBasicBlockRef synced;
};

// Local rows that stay in registers: kernel.c says which, and a loop over a row where it is.
struct gpu_kept_rows {
    struct gpu_kept *rows; // by buffer, or NULL
    int64_t vector;        // of those that a thread has of a row: the one that it is at
};

// The points of a warp, for the body of their loop.
struct gpu_warp {
    // The threads of a warp all have a point of this loop, neighbours along its axis, or NULL.
    const struct map_points *points;
    LLVMValueRef record; // that of a thread in shared memory (records.c), or NULL
};

// What is otherwise with the loops over time of a point, for the body of the loop over points.
struct gpu_time {
    struct gpu_replay *replay; // of two of them, or NULL
    struct gpu_common *common; // of one, or NULL
};

// What is known of numbers; made when it is first asked for.
struct gpu_arithmetic {
    struct gpu_arms *arms;  // of the nest that is lowered, or NULL
    struct gpu_size *sizes; // of the nest `sized`, or NULL
    const struct nest *sized;
};

struct cg_gpu {
    struct gpu_nest nest;
    unsigned block; // threads of a block
    unsigned group; // threads of a group; 1: each thread by itself
    // Groups of a block whose threads stand so far apart, so that a warp has one of each; 0:
    // none do.
    unsigned columns;
    LLVMValueRef thread;   // i32: in the block
    LLVMValueRef in_group; // i32: of the thread in the group
    LLVMValueRef number;   // i32: of the group in the block
    bool is_alone;         // inside of a loop that is shared out
    bool is_same;          // inside of one that every thread of the group does all of
    struct gpu_phase phase;
    struct gpu_function function;
    struct gpu_tile tile;
    struct gpu_before before;
    struct gpu_waits waits;
    struct gpu_terms terms; // of the fold of all blocks
    struct gpu_kept_rows kept;
    // Whose points are being lowered, or NULL: locals are near a thread, sums go to rows of memory.
    const struct gpu_network *network;
    struct gpu_warp warp;
    struct gpu_time time;
    struct gpu_arithmetic arithmetic;
};

// Whether the threads of a group are doing the same.
static inline bool gpu_is_together(const struct cg_lowering *l)
{
    return l->gpu->group > 1 && !l->gpu->is_alone;
}

// What the mapping is asked of a loop as threads go about it now.
static inline struct map_gpu gpu_map_of(const struct cg_lowering *l)
{
    const struct cg_gpu *g = l->gpu;
    return (struct map_gpu){.nest = l->nest,
                            .arena = l->arena,
                            .uses = l->uses,
                            .is_phase = g->nest.is_phase,
                            .is_read_only = g->nest.is_read_only,
                            .is_aligned = g->nest.is_aligned,
                            .code = l->written_out,
                            .has_warpgroups = l->module->has_warpgroups,
                            .is_group = g->group > 1,
                            .is_together = gpu_is_together(l),
                            .has_columns = g->columns,
                            .is_ahead = g->time.common,
                            .is_network = g->network};
}

#endif
