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
#include "map/gpu.h"

struct gpu_arms;
struct gpu_common;
struct gpu_kept;
struct gpu_network;
struct gpu_replay;
struct gpu_size;

struct cg_gpu {
    const struct map_operand *operands;
    bool *is_read_only;  // by buffer: nothing writes it while the kernel runs
    bool *is_aligned;    // by buffer: to MAP_ALIGNMENT
    int kernel;          // its number in the program
    unsigned block;      // threads of a block
    unsigned resident;   // blocks that a multiprocessor is to have at once, 0: any
    unsigned group;      // threads of a group; 1: each thread by itself
    LLVMValueRef thread; // i32: in the block
    LLVMValueRef place;  // i32: in the group
    LLVMValueRef number; // i32: of the group in the block
    bool is_phase;       // of a loop, whose kernel calls the function (resident.c)
    LLVMValueRef block_number, blocks, barrier, shared; // of a phase: what it is told
    // Groups of a block whose threads stand so far apart, so that a warp has one of each; 0:
    // none do.
    unsigned columns;
    LLVMValueRef line, column; // i32: of a tile (tile.c)
    unsigned tile;             // points of its sides
    uint64_t shared_bytes;     // of a group
    bool is_alone;             // inside of a loop that is shared out
    bool is_same;              // inside of one that every thread of the group does all of
    bool is_before;            // before the loop, where all threads of all blocks do the same
    bool has_late_puts;        // of those some are left for when all blocks are done
    bool keeps_loops;          // the assembler is to write out none of the function
    bool shares_locals;        // some local is of the group
    bool passes_on;            // what a thread of it puts in memory another one may read or put
    bool *is_repeated;         // by statement: in a loop over time, or in a branch
    nest_id statement;         // that is lowered
    // Memory that threads of a group have in common, by buffer, behind them one for all operands
    // that are not alone: whether some may still be reading it, and whether any of it has been
    // read since all threads came to a block of code.
    bool *is_read;
    bool has_read;
    LLVMBasicBlockRef synced;
    struct gpu_terms terms; // of the fold of all blocks
    struct gpu_kept *kept;  // by buffer, or NULL
    int64_t vector;         // of those that a thread has of a row: the one that it is at
    // Whose points are being lowered, or NULL: locals are near a thread, sums go to rows of memory.
    const struct gpu_network *network;
    // The threads of a warp all have a point of this loop, neighbours along its axis, or NULL.
    const struct map_points *warp_points;
    LLVMValueRef record;       // that of a thread in shared memory (records.c), or NULL
    struct gpu_replay *replay; // of two loops of a point, or NULL
    struct gpu_common *common; // of a loop of a point, or NULL
    bool has_strips;           // steps of a loop over time are written out
    struct gpu_arms *arms;     // of the nest that is lowered, or NULL
    struct gpu_size *sizes;    // of the nest `sized`, or NULL
    const struct nest *sized;
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
                            .is_phase = g->is_phase,
                            .is_read_only = g->is_read_only,
                            .is_aligned = g->is_aligned,
                            .code = l->written_out,
                            .has_warpgroups = l->module->has_warpgroups,
                            .is_group = g->group > 1,
                            .is_together = gpu_is_together(l),
                            .has_columns = g->columns,
                            .is_ahead = g->common,
                            .is_network = g->network};
}

#endif
