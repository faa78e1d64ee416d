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
#include "codegen/access.h"
#include "codegen/stack.h"
#include "codegen/turn.h"
#include "map/map.h"

#define CG_FOLD_LANES FOLD_LANES
#define CG_CHUNK 64 // chunks of a parallel loop begin and end at multiples, or at its end

struct cg_fold;
struct cg_gpu;
struct cg_records;
struct cg_slides;

// The function that is written: who opens it sets this, and it holds until the next one is opened.
struct cg_frame {
    LLVMValueRef function;
    LLVMBasicBlockRef entry;
    LLVMValueRef buffers, scratch; // arguments on the host
    uint64_t scratch_bytes;        // that it takes of the scratch memory
};

// The loops around what is lowered; each is set by who lowers it, for its body.
struct cg_around {
    nest_id top;                       // the outermost loop, or NEST_NONE
    const struct nest_statement *time; // the innermost seq, or NULL
    struct nest_interval *known;       // per axis: where its index is; NULL, or end 0: anywhere
};

// The vector axis, for the body of its loop.
struct cg_vector {
    nest_id axis;       // NEST_NONE: scalar
    nest_id loop;       // the loop of that axis
    unsigned lanes;     // 1: scalar
    LLVMValueRef mask;  // lanes that count; NULL: all
    LLVMValueRef tail;  // the mask where it leaves out nothing but lanes past the end, or NULL
    const bool *varies; // per value: differs from lane to lane; NULL: not known
};

// A loop over points that goes by tiles; lower.c sets it for the tile.
struct cg_tile {
    nest_id across; // the axis of the tile whose points are being lowered, or NEST_NONE
    nest_id axis;   // its points go inside the loop over vectors; NEST_NONE: none
    LLVMValueRef begin, end;
};

// What is found of the loop over vectors that is lowered, for its body.
struct cg_body {
    struct cg_slides *slides;   // or NULL
    struct cg_records *records; // or NULL
    nest_id row_axis;           // whose next point loads that prefetch ask for (prefetch.c)
};

// Of a statement, until its block has been lowered.
struct cg_mark {
    bool is_hoisted;       // it has been lowered before the loop over vectors around it
    bool prefetches;       // a load that asks for the same of the next row
    LLVMValueRef staged;   // a load's rows of the tile, copied together, or NULL
    struct cg_stack stack; // of a loop over time
};

struct cg_lowering {
    struct cg_module *module;
    struct arena *arena;
    const struct nest *nest;
    struct map_uses *uses;
    int64_t written_out; // the most code that a loop of this nest may become
    struct machine m;
    struct cg_frame frame;
    struct cg_value *values; // per value of the nest
    LLVMValueRef *axes;      // per axis: its i64 index, or that of lane 0
    struct cg_buffer *buffers;
    struct cg_mark *marks; // per statement
    struct cg_around around;
    struct cg_vector vector;
    struct cg_chunks chunks;
    struct cg_tile tile;
    struct cg_body body;
    struct cg_fold *fold;           // innermost in progress
    struct cg_shared_folds *shared; // that threads share (fold_shared.h), or NULL
    struct cg_access access;
    struct cg_gpu *gpu;  // how its threads share the work (gpu/gpu.h); NULL on the host
    const char *failure; // a message, or NULL
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
    return l->vector.lanes > 1 && (!l->vector.varies || l->vector.varies[value]);
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
