// SPDX-License-Identifier: Apache-2.0
// Lowering a nest to LLVM: state and pieces shared by access.c, accumulate.c, loop.c, kernel.c.
//
// Lowering walks the tree of statements.  It is either scalar or in vector mode: then one axis, the
// vector axis, advances `lanes` points at a time, its index stands for the first of them, and a
// value that differs from lane to lane is a vector.  A value that is the same in all lanes stays
// scalar until it meets a vector.
#ifndef CODEGEN_LOWER_H
#define CODEGEN_LOWER_H

#include "codegen/emit.h"
#include "passes/nest.h"

#define CG_FOLD_LANES 64
#define CG_FOLD_BLOCK 4096
#define CG_CHUNK 64 // chunks of a parallel loop begin and end at multiples, or at its end

struct cg_accumulator;

struct cg_buffer {
    LLVMValueRef base; // NULL until first used
    bool expanded;     // a local with an element for each lane: [count][lanes]
};

// A fold whose body is being lowered.
struct cg_fold {
    nest_id statement;
    bool own_axis;     // the vector axis is the fold's last: lane l is accumulator l
    LLVMValueRef slot; // which accumulator this element goes to: lane offset or row, an i64
    struct cg_accumulator *accumulators; // of the combines, then of the accumulating puts
    uint32_t n_combines, n_puts;
    const nest_id *puts;
    struct cg_fold *outer;
};

struct cg_lowering {
    struct cg_module *module;
    struct arena *arena;
    const struct nest *nest;
    struct machine m;
    LLVMValueRef function, buffers_argument, scratch_argument;
    LLVMBasicBlockRef entry;
    struct cg_value *values; // per value of the nest
    LLVMValueRef *axes;      // per axis: its i64 index, or that of lane 0
    struct cg_buffer *buffers;
    uint64_t scratch_bytes;
    nest_id top;          // the outermost loop being lowered, or NEST_NONE
    nest_id vector_axis;  // NEST_NONE: scalar
    unsigned lanes;       // 1: scalar
    LLVMValueRef mask;    // lanes that count; NULL: all
    struct cg_fold *fold; // innermost in progress
    nest_id across_axis;  // the axis of the tile whose points are being lowered, or NEST_NONE
    nest_id tile_axis;    // its points go inside the loop over vectors; NEST_NONE: none
    LLVMValueRef tile_begin, tile_end;
    bool *hoisted;        // per statement: lowered before the loop over vectors around it
    LLVMValueRef *staged; // per statement: a load's rows of the tile, copied together, or NULL
    bool *prefetches;     // per statement: a load that asks for the same of the next row
    nest_id row_axis;     // whose next point that is
    bool streams;         // the store being lowered is to an array that no cache holds
    bool has_streamed;    // some store was
    jot_status status;
    const char *message;
};

// access.c
LLVMValueRef cg_wide(struct cg_lowering *l, LLVMValueRef v); // splat to the lanes now
struct cg_value cg_wide_value(struct cg_lowering *l, struct cg_value v);
// The index at lane 0.
LLVMValueRef cg_index_first(struct cg_lowering *l, const struct nest_index *x);
LLVMValueRef cg_index_value(struct cg_lowering *l, const struct nest_index *x, jot_dtype d);
struct cg_value cg_load(struct cg_lowering *l, const struct nest_statement *s);
void cg_store(struct cg_lowering *l, const struct nest_statement *s, struct cg_value v);
// Ends a function that may have streamed: other threads see what it stored.
void cg_end_streams(struct cg_lowering *l);
// The same on memory at base with elements of dtype d.
struct cg_value cg_load_at(struct cg_lowering *l, LLVMValueRef base, jot_dtype d,
                           const struct nest_index *x, LLVMValueRef guard);
void cg_store_at(struct cg_lowering *l, LLVMValueRef base, jot_dtype d,
                 const struct nest_index *x, LLVMValueRef guard, struct cg_value v);
// Copies what a transposed load reads in a tile to memory where it is close together: row i is what
// lane i reads.  cg_load then takes it from there.
#define CG_TILE 64
bool cg_may_stage(const struct cg_lowering *l, const struct nest_statement *s, nest_id across);
void cg_stage(struct cg_lowering *l, nest_id statement);
// A bool is a byte in memory, a bit elsewhere.
LLVMValueRef cg_from_memory(struct cg_lowering *l, LLVMValueRef v, jot_dtype d);
LLVMValueRef cg_to_memory(struct cg_lowering *l, LLVMValueRef v, jot_dtype d);
LLVMValueRef cg_buffer_base(struct cg_lowering *l, nest_id buffer);
// Memory of this worker; of the function's frame when it is small.
LLVMValueRef cg_scratch(struct cg_lowering *l, uint64_t bytes);
LLVMValueRef cg_alloca(struct cg_lowering *l, LLVMTypeRef type, uint64_t count);
// Element i of the array of `type` at base.
LLVMValueRef cg_at(struct cg_lowering *l, LLVMTypeRef type, LLVMValueRef base, LLVMValueRef i);

// loop.c
struct cg_loop {
    LLVMBasicBlockRef body, exit, before;
    LLVMValueRef index, end, step;
};
// for (index = begin; index < end; index += step), tested first.
struct cg_loop cg_loop_open(struct cg_lowering *l, LLVMValueRef begin, LLVMValueRef end,
                            LLVMValueRef step);
void cg_loop_close(struct cg_lowering *l, struct cg_loop *loop);
// if (condition) { ... }, or with an else
struct cg_branch {
    LLVMBasicBlockRef exit;
};
struct cg_branch cg_if_open(struct cg_lowering *l, LLVMValueRef condition);
void cg_else_open(struct cg_lowering *l, struct cg_branch *branch);
void cg_if_close(struct cg_lowering *l, struct cg_branch *branch);

// accumulate.c: the accumulators of one combine or one accumulating put.
//
// Own axis: rows are `count` destinations, each of CG_FOLD_LANES lanes.  Otherwise rows are the
// accumulators, each of `count` elements of `lanes` lanes.
struct cg_accumulator {
    enum ir_op op;
    jot_dtype dtype;
    int64_t count;  // destinations: 1 for a combine
    int64_t stride; // elements from row to row, in the other layout
    bool own_axis;
    unsigned lanes;          // of an element in memory
    unsigned rows;           // accumulators that can be in use: at most CG_FOLD_LANES
    struct nest_index index; // of a put: its place among the destinations
    unsigned row_lanes;      // of a put whose places are one row that one map walks, or 0
    bool one_row;            // the memory is the row of one accumulator, others are kept aside
    // Memory.  position, for argmax and argmin, counts from the start of the block: i32.
    LLVMValueRef re, im, position;
};
void cg_accumulator_make(struct cg_lowering *l, struct cg_accumulator *a);
void cg_accumulator_reset(struct cg_lowering *l, struct cg_accumulator *a);
// Combines element(s) into accumulator `slot`; x for a put says where, NULL for a combine.  The
// position, in the block, is an i32 for each lane.
void cg_accumulate(struct cg_lowering *l, const struct cg_accumulator *a, LLVMValueRef slot,
                   const struct nest_index *x, struct cg_value v, struct cg_value v2,
                   LLVMValueRef position, LLVMValueRef guard);
// One row of an accumulator of puts, for a while: to[0] and to[1] receive the memory of all rows,
// which cg_accumulator_keep_row writes one row of.
void cg_accumulator_one_row(struct cg_lowering *l, struct cg_accumulator *a,
                            LLVMValueRef all[2]);
void cg_accumulator_keep_row(struct cg_lowering *l, struct cg_accumulator *a,
                             const LLVMValueRef all[2], LLVMValueRef slot);
// Folds the accumulators to one and writes it to row `row` of results; first_position is that of
// the block.
struct cg_results {
    LLVMValueRef re, im, position; // memory of count elements a row
};
struct cg_results cg_results_make(struct cg_lowering *l, const struct cg_accumulator *a,
                                  int64_t rows);
void cg_accumulator_finish(struct cg_lowering *l, const struct cg_accumulator *a,
                           const struct cg_results *to, LLVMValueRef row,
                           LLVMValueRef first_position);
// Pairwise tree over rows; the result stands in row 0.
void cg_results_combine(struct cg_lowering *l, const struct cg_accumulator *a,
                        const struct cg_results *r, int64_t rows);
// Element i of row 0.
struct cg_value cg_result_load(struct cg_lowering *l, const struct cg_accumulator *a,
                               const struct cg_results *r, LLVMValueRef i);

// lower.c
void cg_lower_block(struct cg_lowering *l, uint32_t block);
void cg_lower_statement(struct cg_lowering *l, nest_id s);
// A loop of kind par or map over [begin, end) of its axis `split` (NEST_NONE: all of every axis).
void cg_lower_points(struct cg_lowering *l, nest_id s, nest_id split, LLVMValueRef begin,
                     LLVMValueRef end);
// A fold as a whole, its results defined.
void cg_lower_fold(struct cg_lowering *l, nest_id s);
// One block of a fold: accumulators reset, filled and written to row `row` of the results.
struct cg_fold_plan {
    nest_id statement;
    int64_t length, blocks;
    nest_id vector_axis; // the fold's own last axis, or NEST_NONE
    unsigned lanes;
    bool windowed; // several axes whose last is no multiple of 64
    struct cg_fold state;
    struct cg_results *results; // per accumulator
};
struct cg_fold_plan cg_fold_plan_make(struct cg_lowering *l, nest_id s, int64_t result_rows);
void cg_fold_block(struct cg_lowering *l, struct cg_fold_plan *p, LLVMValueRef block,
                   LLVMValueRef row);
// The element at a place of the sequence; in steps: its axes and accumulator, its body, its yield.
void cg_fold_element(struct cg_lowering *l, struct cg_fold_plan *p, LLVMValueRef at);
void cg_fold_place(struct cg_lowering *l, struct cg_fold_plan *p, LLVMValueRef at);
void cg_fold_yield(struct cg_lowering *l, struct cg_fold_plan *p, LLVMValueRef at);
// fold_rows.c: one block with the rows that it accumulates in registers; false when they do not
// fit.
bool cg_fold_rows(struct cg_lowering *l, struct cg_fold_plan *p, LLVMValueRef first,
                  LLVMValueRef last);
// Results of the fold from row 0: values of the combines, stores of the accumulating puts.
void cg_fold_results(struct cg_lowering *l, struct cg_fold_plan *p);

// prefetch.c: finds the loads of the parallel loop that ask for the next row, and lowers that.
void cg_prefetch_find(struct cg_lowering *l, nest_id top);
void cg_prefetch(struct cg_lowering *l, const struct nest_statement *load);
// Asks for what the load reads so many elements further on.
void cg_prefetch_ahead(struct cg_lowering *l, const struct nest_statement *load,
                       int64_t elements);

// seq.c
void cg_lower_seq(struct cg_lowering *l, const struct nest_statement *s);

// updates.c: a loop over time that updates places of an array; false when it is of another kind.
bool cg_lower_updates(struct cg_lowering *l, const struct nest_statement *s);

// onehot.c: a body whose lanes differ only where an index equals some number.  Made before the loop
// over vectors, NULL when the body is not of this kind.
struct cg_onehot *cg_onehot_make(struct cg_lowering *l, uint32_t block);
void cg_onehot_lower(struct cg_lowering *l, uint32_t block, const struct cg_onehot *onehot);

// choose.c: which axis of a loop to vectorise along when lowering is scalar: an axis of the loop, or
// NEST_NONE to leave it to the loops inside.  *lanes is how many.
nest_id cg_choose_axis(const struct cg_lowering *l, nest_id s, unsigned *lanes);
// An estimate of the work of a loop in scalar operations.
double cg_loop_cost(const struct cg_lowering *l, nest_id s);

static inline const struct nest_statement *cg_statement(const struct cg_lowering *l, nest_id s)
{
    return &l->nest->statements.at[s];
}
int64_t cg_extent(const struct cg_lowering *l, const struct nest_statement *s); // product
void cg_fail(struct cg_lowering *l, const char *message);

// kernel.c: the functions of a nest and the steps that run them.
struct cg_kernel_step {
    const char *symbol;
    int64_t total, grain;
    bool parallel;
    uint64_t scratch_bytes;
    bool uses_partials;
};
struct cg_kernel {
    int n_steps; // 1, or 2: a parallel fold and its end
    struct cg_kernel_step steps[2];
    uint64_t partial_bytes; // memory between the two, the operand after the nest's own
};
jot_status cg_kernel_lower(struct cg_module *module, struct arena *arena,
                           const struct nest *nest, int number, struct cg_kernel *out);

#endif
