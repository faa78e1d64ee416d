// SPDX-License-Identifier: Apache-2.0
// Lowering a nest to LLVM: state and pieces shared by access.c, accumulate.c, loop.c, kernel.c.
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
#define CG_STRIP 8  // steps of a loop over time that a GPU writes out
#define CG_CHUNK 64 // chunks of a parallel loop begin and end at multiples, or at its end

struct cg_accumulator;
struct cg_gpu;
struct cg_records;
struct cg_slides;

#define CG_CHUNKS 8 // vectors side by side, at most

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

// One of several vectors of the vector axis that are lowered side by side (turn.c).
struct cg_chunk {
    struct cg_value *values;
    LLVMValueRef index; // of its lane 0
    LLVMValueRef mask;
    LLVMValueRef slot; // of the fold whose axis it is
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

// Memory that 16 steps of a loop over time read or put one vector each in (stack.c).
struct cg_stack {
    LLVMValueRef memory; // or NULL
    LLVMValueRef row;    // of the step being lowered
    bool by_chunk;       // for each of the vectors side by side
    LLVMValueRef lines;  // of puts whose rows do not begin on cache lines (line.c), or NULL
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

// access.c
LLVMValueRef cg_wide(struct cg_lowering *l, LLVMValueRef v); // splat to the lanes now
struct cg_value cg_wide_value(struct cg_lowering *l, struct cg_value v);
// The index at lane 0.
LLVMValueRef cg_index_first(struct cg_lowering *l, const struct nest_index *x);
LLVMValueRef cg_index_value(struct cg_lowering *l, const struct nest_index *x, jot_dtype d);
struct cg_value cg_load(struct cg_lowering *l, const struct nest_statement *s);
void cg_store(struct cg_lowering *l, const struct nest_statement *s, struct cg_value v);
// Whether puts of the buffer go past the caches: the buffer is larger than they, or the puts, one
// after the other, are far apart.
bool cg_is_streamed(const struct cg_lowering *l, nest_id buffer, bool far_apart);
// A vector in memory; the store goes past the caches when it streams, at the start of a cache line.
LLVMValueRef cg_load_row(struct cg_lowering *l, LLVMTypeRef vector, LLVMValueRef at,
                         unsigned align, LLVMValueRef mask);
void cg_store_row(struct cg_lowering *l, LLVMValueRef v, LLVMValueRef at, unsigned align,
                  LLVMValueRef mask, bool streams);
// Ends a function that may have streamed: other threads see what it stored.
void cg_end_streams(struct cg_lowering *l);
// The same on memory at base with elements of dtype d.  `all`: what the guard says of all lanes at once, or NULL.
struct cg_value cg_load_at(struct cg_lowering *l, LLVMValueRef base, jot_dtype d,
                           const struct nest_index *x, LLVMValueRef guard, LLVMValueRef all);
void cg_store_at(struct cg_lowering *l, LLVMValueRef base, jot_dtype d,
                 const struct nest_index *x, LLVMValueRef guard, LLVMValueRef all,
                 struct cg_value v);
// Of real numbers of an operand, at a place that no guard and no value decides.
bool cg_is_plain_load(const struct cg_lowering *l, const struct nest_statement *s);
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
static inline LLVMBasicBlockRef cg_new_block(struct cg_lowering *l)
{
    return LLVMAppendBasicBlockInContext(l->module->context, l->function, "");
}
struct cg_loop {
    LLVMBasicBlockRef body, exit, before;
    LLVMValueRef index, counter, end, step; // index: the counter, or what it was made
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

// segments.c: the part of a loop where comparisons of its index are decided.
// Whether the block compares the index of the axis with numbers.
bool cg_segment_has(const struct cg_lowering *l, uint32_t block, nest_id axis);
// The longest such part for the comparisons in the block, from multiple to multiple of the unit;
// false when there are none, or it is not worth code of its own.
bool cg_segment_find(const struct cg_lowering *l, uint32_t block, nest_id axis, int64_t unit,
                     struct nest_segment *out);
// Code in between is for indices of the segment.
void cg_segment_enter(struct cg_lowering *l, nest_id axis, const struct nest_segment *segment);
void cg_segment_leave(struct cg_lowering *l, nest_id axis);
// What the statement, a comparison, always gives there; NULL when that depends.
LLVMValueRef cg_segment_decides(const struct cg_lowering *l, const struct nest_statement *s);
// A range and what of it lies in the segment; when nothing does the inner one is empty, at the end.
struct cg_ranges {
    LLVMValueRef begin, end, inner_begin, inner_end;
};
struct cg_ranges cg_ranges_of(struct cg_lowering *l, const struct nest_segment *segment,
                              LLVMValueRef begin, LLVMValueRef end);
// A loop over the two ranges beside the inner one.
struct cg_loop cg_border_open(struct cg_lowering *l, const struct cg_ranges *r,
                              LLVMValueRef *begin, LLVMValueRef *end);

// slide.c: loads of a loop over whole vectors that are shuffles of others.  Finds those of the
// block, before the loop; NULL for none.
struct cg_slides *cg_slides_open(struct cg_lowering *l, uint32_t block, nest_id axis,
                                 LLVMValueRef begin, LLVMValueRef end);
// At the begin of its body; code from there to the close is of one turn.
void cg_slides_turn(struct cg_lowering *l, struct cg_slides *x);
void cg_slides_close(struct cg_lowering *l);
// What the load, whose guard is given, reads; NULL when it is none of them.
LLVMValueRef cg_slides_load(struct cg_lowering *l, const struct nest_statement *s,
                            LLVMValueRef guard);

// stack.c: n rows of a square of n elements become its columns.
void cg_transpose(struct cg_lowering *l, LLVMValueRef *row, unsigned n);

// records.c: what the statements of a block, the body of a loop over vectors, load and put in places
// next to each other for each lane.  Finds these; NULL from cg_records_load, false: s is none.
void cg_records_open(struct cg_lowering *l, uint32_t block);
void cg_records_close(struct cg_lowering *l);
LLVMValueRef cg_records_load(struct cg_lowering *l, const struct nest_statement *s);
bool cg_records_store(struct cg_lowering *l, const struct nest_statement *s, LLVMValueRef v);

// accumulate.c: the accumulators of one combine or one accumulating put.
//
// Own axis: rows are `count` destinations, each of CG_FOLD_LANES lanes.  Otherwise rows are the
// accumulators, each of `count` elements of `lanes` lanes.
struct cg_accumulator {
    enum ir_op op;
    jot_dtype dtype;
    enum nest_order order; // of a combine on a GPU
    int64_t count;         // destinations: 1 for a combine
    int64_t stride;        // elements from row to row, in the other layout
    bool own_axis;
    unsigned lanes;          // of an element in memory
    unsigned rows;           // accumulators that can be in use: at most CG_FOLD_LANES
    struct nest_index index; // of a put: its place among the destinations
    unsigned row_lanes;      // of a put whose places are one row that one map walks, or 0
    bool one_row;            // the memory is the row of one accumulator, others are kept aside
    bool is_later;           // a product after the block makes the result; no memory
    unsigned elements;       // of a short fold, one to each accumulator, or 0
    LLVMValueRef base[3];    // memory, as cg_element has its parts
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
// Of an own axis: close together those of as many slots as `lanes`, for a while; what `all` was
// before receives them as those from `slot` on.
void cg_accumulator_few_slots(struct cg_lowering *l, struct cg_accumulator *a, unsigned lanes);
void cg_accumulator_keep_slots(struct cg_lowering *l, const struct cg_accumulator *a,
                               const struct cg_accumulator *all, LLVMValueRef slot);
// Folds the accumulators to one and writes it to row `row` of results; first_position is that of
// the block.
struct cg_results {
    LLVMValueRef base[3]; // memory of count elements a row
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
// The axis whose points go by tiles of CG_TILE inside of the loop over vectors of `axis`, or NEST_NONE.
nest_id cg_crossing_axis(const struct cg_lowering *l, const struct nest_statement *s,
                         nest_id axis);
// A fold as a whole, its results defined.
void cg_lower_fold(struct cg_lowering *l, nest_id s);
// One block of a fold: accumulators reset, filled and written to row `row` of the results.
struct cg_fold_plan {
    nest_id statement;
    int64_t length, block, blocks;
    nest_id vector_axis; // the fold's own last axis, or NEST_NONE
    unsigned lanes;
    unsigned chunks; // vectors side by side, 0: one by one
    bool windowed;   // several axes whose last is no multiple of 64
    bool is_network;
    unsigned rows;  // accumulators: at most CG_FOLD_LANES
    unsigned group; // of them that come together in registers, 1: none
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
// fold_group.c: how many accumulators come together in registers, and one block with those.
unsigned cg_fold_group(const struct cg_lowering *l, const struct cg_fold_plan *p);
void cg_fold_groups(struct cg_lowering *l, struct cg_fold_plan *p, LLVMValueRef first,
                    LLVMValueRef last);
// fold_lane.c: a fold directly in the body of a loop over points, one of whose axes is the
// lanes, for one lane after the other.
void cg_lower_fold_by_lane(struct cg_lowering *l, nest_id fold);
// Results of the fold from row 0: values of the combines, stores of the accumulating puts.
void cg_fold_results(struct cg_lowering *l, struct cg_fold_plan *p);

// prefetch.c: finds the loads of the parallel loop that ask for the next row, and lowers that.
void cg_prefetch_find(struct cg_lowering *l, nest_id top);
void cg_prefetch(struct cg_lowering *l, const struct nest_statement *load);
// Asks for the cache line at a place, to read or to write it.
void cg_prefetch_line(struct cg_lowering *l, LLVMValueRef at, bool writes);
// Asks for what the load reads so many elements further on.
void cg_prefetch_ahead(struct cg_lowering *l, const struct nest_statement *load,
                       int64_t elements);

// turn.c: several vectors of the vector axis side by side, so that each computes while others wait
// for their results.  Between open and close l->together is set, and blocks are lowered for all
// vectors, in turns: a run of plain statements for the first one, for the second, ...; loops over
// time are opened once for all.
void cg_chunks_open(struct cg_lowering *l, unsigned n);
void cg_chunks_close(struct cg_lowering *l);
// Makes chunk c the vector at index.
void cg_chunk_set(struct cg_lowering *l, unsigned c, LLVMValueRef index, LLVMValueRef mask,
                  LLVMValueRef slot);
// for (struct cg_turn t = {0}; cg_turn_next(l, &t);): once for each vector, as if it were the only
// one; once when it is.
struct cg_turn {
    unsigned next;
    bool all;
};
bool cg_turn_next(struct cg_lowering *l, struct cg_turn *t);
// Lowers those of the statements that are not hoisted.
void cg_lower_list(struct cg_lowering *l, const nest_id *statements, uint32_t n);

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

// points.c: a loop over points some of whose statements are products with small matrices.
bool cg_is_network(const struct cg_lowering *l, nest_id loop);
unsigned cg_network_lanes(const struct cg_lowering *l);
void cg_lower_network(struct cg_lowering *l, nest_id loop, LLVMValueRef begin,
                      LLVMValueRef end);
void cg_fold_network(struct cg_lowering *l, struct cg_fold_plan *p, LLVMValueRef first,
                     LLVMValueRef last, LLVMValueRef row);
// Whether the put is of products that are summed after the block.
bool cg_is_put_later(const struct cg_lowering *l, nest_id fold, nest_id put);
void cg_lower_contract(struct cg_lowering *l, const struct nest_statement *s);
// units.c: how many points of a map in such a loop go together, as one long vector; 1: one by one.
unsigned cg_units(const struct cg_lowering *l, nest_id map);
// Whether the map is a copy of rows that lie far apart (map/map.h): then it is made.
bool cg_lower_copy(struct cg_lowering *l, nest_id map);
void cg_lower_units(struct cg_lowering *l, nest_id map, unsigned n);

// seq.c
void cg_lower_seq(struct cg_lowering *l, const struct nest_statement *s);

// stack.c: what a loop over time reads and puts where lanes are far apart, in tiles of so many
// steps. find says whether there is such a thing; move brings what count steps from `first` on
// read in, or what they put out; step is called in front of each.
bool cg_stack_find(struct cg_lowering *l, const struct nest_statement *seq);
int64_t cg_stack_steps(const struct cg_lowering *l); // a tile ends at times that are multiples
void cg_stack_move(struct cg_lowering *l, const struct nest_statement *seq, enum nest_kind kind,
                   LLVMValueRef first, LLVMValueRef count);
void cg_stack_step(struct cg_lowering *l, const struct nest_statement *seq, LLVMValueRef place,
                   LLVMValueRef count);
LLVMValueRef cg_stack_place(struct cg_lowering *l, nest_id statement, LLVMTypeRef vector);
// Whether the steps load or put neighbouring elements that nothing else in the loop asks for.
bool cg_lies_along_time(const struct cg_lowering *l, const struct nest_statement *seq,
                        const struct nest_statement *s);
// Where lane 0 has the element of the lowest of the steps.
LLVMValueRef cg_stack_row(struct cg_lowering *l, const struct nest_statement *seq,
                          const struct nest_statement *s, LLVMTypeRef lane, LLVMValueRef first,
                          LLVMValueRef count);
void cg_stack_end(struct cg_lowering *l, const struct nest_statement *seq);
// Steps of a loop over time that a thread of a GPU had better write out, 1: just the one; they have
// cg_stack_step in front of them.  store is for the puts of those from `first` on.
int64_t cg_strip_find(struct cg_lowering *l, const struct nest_statement *seq);
void cg_strip_store(struct cg_lowering *l, const struct nest_statement *seq, LLVMValueRef first,
                    int64_t steps);
void cg_strip_end(struct cg_lowering *l, const struct nest_statement *seq);

// line.c: rows of a put that lie across cache lines, made whole lines of.  The row of lane i takes
// place i of lines: what the tile before left, and what this one has.
struct cg_lines {
    LLVMValueRef rows;    // [lane][2][elements of a line]
    LLVMValueRef outside; // where the row of lane 0 begins
    LLVMTypeRef lane;
    unsigned bytes;         // of an element
    int64_t stride;         // elements from row to row
    int64_t count;          // rows
    bool falls;             // tiles go down in memory
    LLVMValueRef low, high; // the elements that there are: from low to high of the two
    LLVMValueRef masks;     // memory of lane masks, a word for each vector, or NULL
    bool streams;
};
// Stores the line that is complete; `ends`: the rest behind the last tile.
void cg_lines_store(struct cg_lowering *l, const struct cg_lines *x, bool ends);

// while.c
void cg_lower_while(struct cg_lowering *l, const struct nest_statement *s);

// alone.c: a lane of a while that is left alone.  turns: how often the lanes go on together from one
// count of them to the next, 0 when all stay together.  Between open and close what is lowered is
// for the lane at a place among all vectors.
struct cg_alone {
    nest_id loop;
    LLVMValueRef place, index; // and what the index of lane 0 was
    struct cg_buffer *buffers; // with the locals of the lane
    bool *puts_back;           // by buffer
    struct cg_lowering outer;
};
unsigned cg_alone_turns(const struct cg_lowering *l, const struct nest_statement *s);
struct cg_alone cg_alone_open(struct cg_lowering *l, const struct nest_statement *s,
                              LLVMValueRef place);
void cg_alone_close(struct cg_lowering *l, const struct cg_alone *a);
// The place as a mask of vector c.
LLVMValueRef cg_alone_mask(struct cg_lowering *l, const struct cg_alone *a, unsigned c);

// pack.c: the while of a lane alone with vectors of carries, from what they are to what they become;
// false when there are none.
bool cg_lower_packed(struct cg_lowering *l, const struct nest_statement *s,
                     const struct cg_value *init, struct cg_value *carries);

// branch.c
void cg_lower_if(struct cg_lowering *l, const struct nest_statement *s);
// Whether some lane of the mask is set.
LLVMValueRef cg_any(struct cg_lowering *l, LLVMValueRef mask);
// One value from either of two blocks.
struct cg_value cg_merge(struct cg_lowering *l, struct cg_value a, LLVMBasicBlockRef from_a,
                         struct cg_value b, LLVMBasicBlockRef from_b);
struct cg_value cg_phi(struct cg_lowering *l, struct cg_value from, LLVMBasicBlockRef block);
void cg_phi_add(struct cg_value phi, struct cg_value from, LLVMBasicBlockRef block);

// hoist.c: lowers before a loop what is the same in all its iterations.
void cg_hoist(struct cg_lowering *l, const nest_id *axes, int n_axes, nest_id first_carry,
              uint32_t n_carries, const uint32_t *blocks, int n_blocks);
void cg_forget_hoisted(struct cg_lowering *l, uint32_t block);

// updates.c: a loop over time that updates places of an array; false when it is of another kind.
bool cg_lower_updates(struct cg_lowering *l, const struct nest_statement *s);

// onehot.c: a body whose lanes differ only where an index equals some number.  Made before the loop
// over vectors, NULL when the body is not of this kind.
struct cg_onehot *cg_onehot_make(struct cg_lowering *l, uint32_t block);
void cg_onehot_lower(struct cg_lowering *l, uint32_t block, const struct cg_onehot *onehot);

// How many vectors of these lanes go side by side; 0 for a body without loops over time.
unsigned cg_choose_chunks(struct cg_lowering *l, nest_id s, nest_id axis, unsigned lanes);
// size.c: the most code that a loop of the nest may become when it is written out.
int64_t cg_most_written_out(const struct cg_module *m, const struct nest *nest);
// As much for each register that a value takes; whether the code of the loop's body, so many times, is no more.
int64_t cg_room(const struct cg_lowering *l);
bool cg_may_repeat(const struct cg_lowering *l, const struct nest_statement *s, int64_t count);

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

// kernel.c: the functions of a nest and the steps that run them.

// A nest before anything is lowered.
struct cg_lowering cg_lowering_make(struct cg_module *module, struct arena *arena,
                                    const struct nest *nest);
struct cg_kernel_step {
    const char *symbol;
    int64_t total, grain;
    bool parallel;
    int64_t
        phase_grain; // as a phase of a loop, where threads cost less; they have one chunk at least
    uint64_t scratch_bytes;
    uint32_t block;  // threads of a block on a GPU
    bool exact_grid; // a block for every chunk
};
#define CG_KERNEL_STEPS 4
#define CG_COUNTERS_OF_GRID 16
struct cg_kernel {
    int form; // enum map_form, of a processor
    int n_steps; // 1; 2 of a parallel fold and its end; as many as loops of points; several on a GPU
    struct cg_kernel_step steps[CG_KERNEL_STEPS];
    uint64_t partial_bytes; // of results of chunks: the operand after the nest's own
    uint32_t counters;      // u32s, 0 before and after: the operand after that (on a GPU)
    int64_t trips;          // of the loop around it that it makes at once (gpu/trips.c), 0: one
};
jot_status cg_kernel_lower(struct cg_module *module, struct arena *arena, struct nest *nest,
                           int number, struct cg_kernel *out);
// The nest is equal to that of the kernel, whose functions are its too.
void cg_kernel_share(const struct cg_module *module, struct nest *nest,
                     const struct cg_kernel *kernel, struct cg_kernel *out);

// begins.c: of the nests that are wanted those that are equal but for where they begin to read become one, which
// steps of the others are steps of; their ranges say where it begins, a multiple of `alignment` bytes.  By nest: the
// one that stands for it, or itself.
void cg_begins_share(struct arena *arena, struct nest_program *program, const bool *wanted,
                     unsigned alignment, uint32_t *out_of);

// phases.c: the loop that a step opens, with all its steps, as one function over memories.
struct cg_phases {
    const char *symbol;     // NULL: there is none
    bool *owns;             // by loop: it is in the function
    VEC(uint32_t) operands; // memories; then one of partial_bytes, if any
    uint64_t partial_bytes, scratch_bytes;
    bool parallel; // some phase is
    // A kernel of a GPU: one operand more, of counters that are 0 before and after; the blocks that it
    // wants, the threads of each, and the trips that its turns are left as after.
    uint32_t counters; // CG_COUNTERS_OF_GRID of the kernel itself and those of phases, or 0
    int64_t blocks, trips;
    uint32_t block;
};
void cg_phases_lower(struct cg_module *module, struct arena *arena, struct nest_program *p,
                     uint32_t step, const struct cg_kernel *kernels, struct cg_phases *out);
// The same as one kernel of a GPU; the kernels are phases.
void cg_resident_lower(struct cg_module *module, struct arena *arena, struct nest_program *p,
                       uint32_t step, const struct cg_kernel *kernels, struct cg_phases *out);

#endif
