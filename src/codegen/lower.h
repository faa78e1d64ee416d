// SPDX-License-Identifier: Apache-2.0
// The state of lowering a nest to LLVM, and the walk over its statements.
//
// Lowering walks the tree of statements.  It is either scalar or in vector mode: then one axis, the
// vector axis, advances `lanes` points at a time, its index stands for the first of them, and a
// value that differs from lane to lane is a vector.  A value that is the same in all lanes stays
// scalar until it meets a vector.
#ifndef CODEGEN_LOWER_H
#define CODEGEN_LOWER_H

#include "base/fold.h"
#include "codegen/emit.h"
#include "map/map.h"

#define CG_FOLD_LANES FOLD_LANES
#define CG_CHUNK 64 // chunks of a parallel loop begin and end at multiples, or at its end
#define CG_CHUNKS 8 // vectors side by side, at most

struct cg_chunk;
struct cg_fold;
struct cg_gpu;
struct cg_records;
struct cg_slides;
struct cg_stack;

struct cg_buffer {
    LLVMValueRef base; // NULL until first used
    bool expanded;     // a local with an element for each lane: [count][lanes]
    LLVMValueRef
        of_chunk[CG_CHUNKS]; // expanded: the memory of each of the vectors side by side
    unsigned between;        // and vectors from element to element
    // In loops over the points of a network (points.c): elements from row to row, of which lane 0
    // is at the offset (NULL: 0).  What is kept has zeros where there are no points.
    int64_t row;
    bool is_kept;
    LLVMValueRef offset;
};

struct cg_lowering {
    struct cg_module *module;
    struct arena *arena;
    const struct nest *nest;
    struct map_uses *uses;
    int64_t written_out; // the most code that a loop of this nest may become
    struct machine m;
    LLVMValueRef function, buffers_argument, scratch_argument;
    LLVMBasicBlockRef entry;
    struct cg_value *values; // per value of the nest
    LLVMValueRef *axes;      // per axis: its i64 index, or that of lane 0
    struct cg_buffer *buffers;
    uint64_t scratch_bytes;
    nest_id top;         // the outermost loop being lowered, or NEST_NONE
    nest_id vector_axis; // NEST_NONE: scalar
    nest_id vector_loop; // the loop of that axis
    unsigned lanes;      // 1: scalar
    LLVMValueRef mask;   // lanes that count; NULL: all
    LLVMValueRef tail;   // the mask where it leaves out nothing but lanes past the end, or NULL
    const bool *varies;  // per value: differs from lane to lane; NULL: not known
    struct cg_chunk *chunks; // NULL: one vector at a time
    unsigned n_chunks, chunk;
    bool together;        // what is lowered now is lowered for all of them
    struct cg_fold *fold; // innermost in progress
    nest_id across_axis;  // the axis of the tile whose points are being lowered, or NEST_NONE
    nest_id tile_axis;    // its points go inside the loop over vectors; NEST_NONE: none
    LLVMValueRef tile_begin, tile_end;
    struct nest_segment *known; // per axis: where its index is; NULL, or end 0: anywhere
    bool *hoisted;              // per statement: lowered before the loop over vectors around it
    LLVMValueRef *staged; // per statement: a load's rows of the tile, copied together, or NULL
    struct cg_stack *stacks;    // per statement
    struct cg_slides *slides;   // of the loop over vectors being lowered, or NULL
    struct cg_records *records; // of the body being lowered, or NULL
    bool *prefetches;           // per statement: a load that asks for the same of the next row
    nest_id row_axis;           // whose next point that is
    const struct nest_statement *time; // the innermost seq around, NULL for none
    struct cg_gpu *gpu; // how its threads share the work (gpu/gpu.h); NULL on the host
    bool is_constant;   // the memory of the access being lowered is not written by the kernel
    unsigned align;     // bytes, of the access being lowered; 0: that of an element
    bool streams;       // the store being lowered is to an array that no cache holds
    bool has_streamed;  // some store was
    jot_status status;
    const char *message;
};

// By value, whether it differs from lane to lane of the axis of a loop; whether all uses of the buffer are in the
// body of the loop.
static inline const bool *cg_variation(const struct cg_lowering *l, nest_id loop, nest_id axis)
{
    return map_varies(l->nest, l->arena, l->uses, loop, axis);
}
static inline bool cg_is_inside(const struct cg_lowering *l, nest_id buffer, nest_id loop)
{
    return map_is_inside(l->nest, l->arena, l->uses, buffer, loop);
}
// Whether a value that is a vector or becomes one: what carries it is a vector.
static inline bool cg_is_wide(const struct cg_lowering *l, nest_id value)
{
    return l->lanes > 1 && (!l->varies || l->varies[value]);
}
static inline const struct nest_statement *cg_statement(const struct cg_lowering *l, nest_id s)
{
    return &l->nest->statements.at[s];
}
static inline const struct nest_statement *cg_maker_of(const struct cg_lowering *l,
                                                       nest_id value)
{
    return nest_maker_of(l->nest, value);
}

int64_t cg_extent(const struct cg_lowering *l, const struct nest_statement *s); // product
void cg_fail(struct cg_lowering *l, const char *message);
void cg_lower_block(struct cg_lowering *l, uint32_t block);
void cg_lower_statement(struct cg_lowering *l, nest_id s);
// A loop of kind par or map over [begin, end) of its axis `split` (NEST_NONE: all of every axis).
void cg_lower_points(struct cg_lowering *l, nest_id s, nest_id split, LLVMValueRef begin,
                     LLVMValueRef end);
// The axis whose points go by tiles of CG_TILE inside of the loop over vectors of `axis`, or NEST_NONE.
nest_id cg_crossing_axis(const struct cg_lowering *l, const struct nest_statement *s,
                         nest_id axis);

#endif
