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

#include "codegen/accumulate.h"
#include "map/gpu.h"

#define GPU_MOST_SHARED (227 * 1024)          // bytes of a block
#define GPU_SECOND_CACHE (UINT64_C(50) << 20) // bytes
// Behind the operands of a phase: the thread, the block, how many blocks there are, the barrier of
// the block, all i32, and its shared memory.
#define GPU_PHASE_PARAMETERS 5

struct gpu_network;

struct gpu_replay;
struct gpu_common;

// What a fold of all blocks takes of its elements where that has been computed: the memory, the place
// of the fold that comes first in it, and how many there are.
struct gpu_terms {
    const struct nest_statement *fold; // NULL: no fold has such
    LLVMValueRef memory, first;
    int64_t count;
};

// Of a local row: whether each thread keeps what it has of it, and where (kept.c).
struct gpu_kept {
    bool is_kept;
    LLVMValueRef memory;
};

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
// An intrinsic of LLVM that has one type.
LLVMValueRef gpu_call(struct machine *m, const char *name, int n, LLVMValueRef *arguments);
// device.c: what the machine has.
LLVMValueRef gpu_special(struct machine *m, const char *name); // tid.x, ctaid.x, nctaid.x
LLVMValueRef gpu_i32(const struct cg_lowering *l, int64_t x);
LLVMValueRef gpu_wide(struct cg_lowering *l, LLVMValueRef i32); // an i64, never negative
// Whether what is lowered may come again, or not at all, while the threads do one point.
bool gpu_is_repeated(const struct cg_lowering *l);
// All threads of the group have come here, and see what the others stored.
void gpu_sync(struct cg_lowering *l);
// The same of a warp.
void gpu_sync_warp(struct cg_lowering *l);
// From the thread `by` places on, or back, in the warp; from thread `from` of the warp.
struct cg_element gpu_shuffle_up(struct cg_lowering *l, const struct cg_element *t,
                                 unsigned by);
struct cg_element gpu_shuffle_down(struct cg_lowering *l, const struct cg_element *t,
                                   unsigned by);
struct cg_element gpu_shuffle_from(struct cg_lowering *l, const struct cg_element *t,
                                   LLVMValueRef from);
LLVMValueRef gpu_block_number(struct cg_lowering *l); // an i32
// All threads of the block have come here.
void gpu_barrier(struct machine *m);
// Where the shared memory of a block begins.
LLVMValueRef gpu_shared_start(struct machine *m);
// Shared memory of the group.
LLVMValueRef gpu_shared(struct cg_lowering *l, uint64_t bytes);
// Counts one more at the place; true in all threads of the block that counted last, who see what
// all blocks stored before they counted.  The count starts again from 0 then.
LLVMValueRef gpu_is_last(struct cg_lowering *l, LLVMValueRef counter, int64_t count);

// A word of NVVM about a function (entry.c).
void gpu_annotate(struct cg_module *m, LLVMValueRef function, const char *what, unsigned value);

// resident.c: the kernel that a loop is, for phases.c.
struct gpu_resident {
    struct cg_module *module;
    const struct nest_program *program;
    struct machine m;      // the builder of who writes the loop
    LLVMValueRef function; // of memories, partial results and counters
    bool is_grid;          // of many blocks, that wait for one another
    bool goes_on;          // the phase behind the next one does not wait for it
    unsigned block;        // threads of a block
    int64_t blocks;        // that the widest phase wants
    uint64_t shared_bytes;
    LLVMValueRef thread, number, count; // i32: in the block, of the block, blocks
    LLVMValueRef counter, passed;       // what blocks count, and the memory of how far that is
};
// Chooses the threads for the steps first .. end - 1.
void gpu_resident_choose(struct gpu_resident *r, uint32_t first, uint32_t end,
                         const struct cg_kernel *kernels);
// The function, of so many parameters, and what comes first in it; the last one is of counters.
void gpu_resident_declare(struct gpu_resident *r, const char *symbol, unsigned n);
void gpu_resident_open(struct gpu_resident *r);
// Phases, each with all threads waiting for one another behind it, or those of a block where another one goes on.
void gpu_resident_kernel(struct gpu_resident *r, const struct cg_kernel_step *step,
                         const LLVMValueRef *operands, unsigned n);
// Elements of so many bytes, a power of two, of n places to as many others, which may be the same
// ones in another order.
void gpu_resident_copy(struct gpu_resident *r, unsigned n, const LLVMValueRef *to,
                       const LLVMValueRef *from, int64_t count, unsigned bytes);
void gpu_resident_wait(struct gpu_resident *r);
void gpu_resident_close(struct gpu_resident *r);

// points.c
// The axes of vector number i (an i64); its body.
void gpu_points_set(struct cg_lowering *l, const struct map_points *p, LLVMValueRef i);
void gpu_points_body(struct cg_lowering *l, const struct map_points *p, LLVMValueRef i);
// How many statements of the body there are up to the last load that stands before all puts; these, of one result each,
// and later the others, with what these read.
uint32_t gpu_head_of(const struct cg_lowering *l, const struct nest_block *body);
void gpu_head_read(struct cg_lowering *l, const struct nest_block *body, uint32_t head,
                   struct cg_value *out);
void gpu_head_go_on(struct cg_lowering *l, const struct nest_block *body, uint32_t head,
                    const struct cg_value *read);
// Plain statements of the whole vectors i, i + apart, ..., what is read of all of them first.
void gpu_points_turns(struct cg_lowering *l, const struct map_points *p, LLVMValueRef i,
                      int64_t turns, int64_t apart);
// A map that the group shares out; one of a single thread.
void gpu_map(struct cg_lowering *l, nest_id loop);
void gpu_map_alone(struct cg_lowering *l, nest_id loop);
// The bytes that a buffer is aligned to, whether no other is in its memory, and whether no thread
// writes it.
unsigned gpu_align_of(const struct cg_lowering *l, nest_id buffer);
bool gpu_is_alone(const struct cg_lowering *l, nest_id buffer);
bool gpu_is_read_only(const struct cg_lowering *l, nest_id buffer);
// neighbours.c: a load whose lanes lie across vectors or have a guard each; false: any other.
bool gpu_load_neighbours(struct cg_lowering *l, const struct nest_statement *load,
                         LLVMValueRef guard, struct cg_value *out);
// records.c: what each thread of a warp has next to each other, from `at` on, and its neighbours `across`
// elements further.  A warp moves all rows together, through shared memory, in accesses of so many
// bytes.
#define GPU_ROW_BYTES 128
#define GPU_ROW_WIDEST (GPU_ROW_BYTES / 4)
struct gpu_row_of_warp {
    LLVMTypeRef lane;
    LLVMValueRef at;
    int64_t across;
    unsigned width, bytes, access; // elements, a power of two; bytes of one, and of an access
};
void gpu_warp_load(struct cg_lowering *l, const struct gpu_row_of_warp *r, LLVMValueRef *out);
void gpu_warp_store(struct cg_lowering *l, const struct gpu_row_of_warp *r, LLVMValueRef *in);
// The axis of warp_points, whose lanes are threads; NEST_NONE where they are not.
nest_id gpu_axis_of_warp(const struct cg_lowering *l);

// rows.c: what a loop over time puts, by warps.  The steps that are kept and then stored, 0: none.
int64_t gpu_rows_find(struct cg_lowering *l, const struct nest_statement *seq);
void gpu_rows_store(struct cg_lowering *l, const struct nest_statement *seq, LLVMValueRef first,
                    int64_t steps);

// common.c: the loop over time of the points of a loop whose level says that part of it is done ahead; NULL: there
// is none.
struct gpu_common *gpu_common_of(struct cg_lowering *l, nest_id loop);
bool gpu_common_varies(const struct gpu_common *c, nest_id value); // from thread to thread
// Threads without a point do that of another, and put nothing.
void gpu_common_guard(struct gpu_common *c, LLVMValueRef inside);
// Lowers a statement of its; false: as otherwise.
bool gpu_common(struct cg_lowering *l, nest_id statement);

// replay.c: loops over time there and back, of the points of a loop, whose tape is computed again; NULL: there are
// none.
struct gpu_replay *gpu_replay_of(struct cg_lowering *l, nest_id loop);
// Lowers a statement of theirs; false: as otherwise.
bool gpu_replay(struct cg_lowering *l, nest_id statement);

// kept.c: whether threads keep local rows.
bool gpu_keeps(const struct cg_lowering *l);
// Of the vector that the thread is at; NULL: the buffer is kept by no thread.
LLVMValueRef cg_gpu_kept_place(struct cg_lowering *l, nest_id buffer);

// row.c
// A thread's place in its team, and where what it has of a window begins; i32.
struct gpu_member {
    LLVMValueRef team, place, offset;
};
struct gpu_member gpu_member_of(struct cg_lowering *l, const struct map_row *r);

// tile.c
struct gpu_tiles {
    struct map_tiles of;
    int64_t count;
    bool is_exact; // the tiles are full
    int64_t side;  // tiles in a row, where a block has a tile and its mirror image; else 0
};
struct gpu_tiles gpu_tiles_of(const struct cg_lowering *l, nest_id loop); // as its levels say
// What block `chunk` of threads has: a tile or, of a square, one and its mirror image.
void gpu_tiles_lower(struct cg_lowering *l, const struct gpu_tiles *t, LLVMValueRef chunk);
struct cg_value gpu_load_turned(struct cg_lowering *l, const struct nest_statement *s);

// fold.c
void gpu_fold_alone(struct cg_lowering *l, nest_id fold);
void gpu_fold_together(struct cg_lowering *l, nest_id fold);
// The axes from a place in the sequence of a fold.
void gpu_fold_set(struct cg_lowering *l, nest_id fold, LLVMValueRef at);
struct gpu_fold {
    nest_id statement;
    struct map_row row;
    uint32_t n;                          // combines
    struct cg_accumulator *accumulators; // of a thread
    struct cg_results *rows;             // shared: results of blocks
};
struct gpu_fold gpu_fold_make(struct cg_lowering *l, nest_id fold, const struct map_row *row,
                              int64_t rows);
// Blocks first .. first + count - 1 of the fold, those of them that there are, to the rows.
void gpu_fold_blocks(struct cg_lowering *l, struct gpu_fold *f, LLVMValueRef first,
                     int64_t count);
void gpu_fold_define(struct cg_lowering *l, const struct gpu_fold *f,
                     const struct cg_element *results);

// What one thread needs of a fold: units of its blocks, a power of two, are a tree each.
struct gpu_alone {
    const struct nest_statement *s;
    struct cg_accumulator *all;
    int64_t length, block, blocks, units;
    unsigned rows; // accumulators of a block
    int bits;
};
struct gpu_alone gpu_alone_make(struct cg_lowering *l, nest_id fold, int64_t units);
// Units first .. first + count - 1 (i64), at most so many.
void gpu_alone_units(struct cg_lowering *l, const struct gpu_alone *p, LLVMValueRef first,
                     LLVMValueRef count, int64_t most, struct cg_element *out);
void gpu_alone_define(struct cg_lowering *l, const struct gpu_alone *p,
                      const struct cg_element *results);

// columns.c
// By a group of which each thread has blocks of its own, beside its neighbours' columns.
void gpu_fold_columns(struct cg_lowering *l, nest_id fold);
// The steps of a kernel where blocks of threads have parts of the points' only fold.
void gpu_parts_lower(struct cg_lowering *l, nest_id loop, struct cg_kernel *out);

// blocks.c
// The steps of a kernel whose only loop is statement `at` of its body, a fold or a loop with such a fold; l->gpu
// says by which blocks.
void gpu_blocks_lower(struct cg_lowering *l, uint32_t at, struct cg_kernel *out);
// What the combines take of the element at a place of the fold, for l->lanes of them.
void gpu_terms_load(struct cg_lowering *l, const struct nest_statement *fold, LLVMValueRef at);

// tree.c: the pairwise tree over rows of results.
// Room in shared memory.
struct cg_results gpu_shared_results(struct cg_lowering *l, const struct cg_accumulator *a,
                                     uint64_t rows);
// Results of n folds in memory, one after the other.
void gpu_place_results(struct cg_lowering *l, uint32_t n, const struct cg_accumulator *a,
                       int64_t rows, LLVMValueRef memory, struct cg_results **out);
struct cg_element gpu_row_load(struct cg_lowering *l, const struct cg_accumulator *a,
                               const struct cg_results *rows, LLVMValueRef row);
void gpu_row_store(struct cg_lowering *l, const struct cg_accumulator *a,
                   const struct cg_results *rows, LLVMValueRef row, const struct cg_element *t);
// By one thread, which gets the elements one by one: element number i is pushed i-th.
struct gpu_tree {
    uint32_t n;
    const struct cg_accumulator *accumulators;
    int levels;
    struct cg_results *stack; // [level][accumulator]
};
struct gpu_tree gpu_tree_make(struct cg_lowering *l, uint32_t n,
                              const struct cg_accumulator *accumulators, int64_t most);
void gpu_tree_push(struct cg_lowering *l, struct gpu_tree *t, LLVMValueRef i,
                   const struct cg_element *elements);
void gpu_tree_top(struct cg_lowering *l, const struct gpu_tree *t, int64_t count,
                  struct cg_element *out);
// The same of a count (an i64) that is known when the kernel runs; the neutral element of none.
void gpu_tree_any(struct cg_lowering *l, const struct gpu_tree *t, LLVMValueRef count,
                  struct cg_element *out);
// By the group: rows 0 .. count - 1 (an i32), at most so many, of results that all threads see.
// All threads get the result.
struct cg_element gpu_tree_rows(struct cg_lowering *l, const struct cg_accumulator *a,
                                const struct cg_results *rows, LLVMValueRef count,
                                int64_t most);

// functions.c: math_reduce of an f64 (the quadrant is an i32), and the remainder of any lanes.
void gpu_reduce(struct machine *m, LLVMValueRef x, LLVMValueRef *out_hi, LLVMValueRef *out_lo,
                LLVMValueRef *out_quadrant);
LLVMValueRef gpu_fmod(struct machine *m, LLVMValueRef x, LLVMValueRef y);
// i + j; of 32 bits on a GPU 1 i + j, of a 1 that the assembler does not know: products have a unit
// of their own there, beside that of shifts and logic.
LLVMValueRef gpu_add_by_product(struct machine *m, LLVMValueRef i, LLVMValueRef j);
// One operation for what LLVM selects five for.
LLVMValueRef gpu_copysign(struct machine *m, LLVMValueRef x, LLVMValueRef sign);

// halves.c: NULL where there is nothing for it, as on the host.  From f32 to a half type, whose lanes are i16, and back;
// the op in numbers of a half type.
LLVMValueRef gpu_round_half(struct machine *m, LLVMValueRef x, jot_dtype d);
LLVMValueRef gpu_widen_half(struct machine *m, LLVMValueRef x, jot_dtype d);
LLVMValueRef gpu_half_op(struct machine *m, enum ir_op op, jot_dtype d, LLVMValueRef x,
                         LLVMValueRef y);

// ranges.c: a run of operations without branches for functions that hold in a range.
struct gpu_ranges {
    LLVMValueRef outside;   // whether some number has been out of range, or NULL: none could be
    bool is_redo;           // what is lowered does numbers of any size
    bool is_known;          // operands of what is lowered need no look
    struct gpu_size *sizes; // by value of the nest
};
// How many statements of the n from the first on it has lowered, 0: there are no such functions among
// them.  none_before: in front of which statement no run of either kind begins, 0 at first.
uint32_t gpu_lower_ranged(struct cg_lowering *l, const nest_id *statements, uint32_t first,
                          uint32_t n, uint32_t none_before[2]);
// Of a run that is not done again yet: numbers out of range.
void gpu_outside(struct machine *m, LLVMValueRef mask);

// sizes.c: whether it is an operation whose operands are looked at; lowers any operation of a run.
bool gpu_is_sized(const struct cg_lowering *l, const struct nest_statement *s);
void gpu_lower_sized(struct cg_lowering *l, nest_id id);
// Of the nest's values, by value; forgets what is known of those of statements.
struct gpu_size *gpu_sizes_of(struct cg_lowering *l);
void gpu_sizes_forget(struct cg_lowering *l, const nest_id *statements, uint32_t n);

// quotient.c: DIV_OF_UNIT (base/math) of f32s, without the branch of a general quotient; x / y and the
// root of x, of f32s with one branch for all lanes.
LLVMValueRef gpu_quotient_of_unit(struct machine *m, LLVMValueRef x, LLVMValueRef y);
LLVMValueRef gpu_divide(struct machine *m, LLVMValueRef x, LLVMValueRef y);
LLVMValueRef gpu_divide_fraction(struct machine *m, LLVMValueRef x,
                                 LLVMValueRef y); // |x| <= 1 or NaN
// Of sizes between 2^-60 and 2^60; else of no meaning.
LLVMValueRef gpu_divide_in_range(struct machine *m, LLVMValueRef x, LLVMValueRef y);
LLVMValueRef gpu_sqrt(struct machine *m, LLVMValueRef x);

// arms.c: what of a nest nothing takes but one side of a select of f32s.
struct gpu_arm {
    nest_id select; // NEST_NONE: it is in none
    int side;       // 1 or 2: which operand of the select
};
struct gpu_arm gpu_arm_of(struct cg_lowering *l, nest_id statement);
// Whether the operation has been dealt with: it is, or will be, lowered with a select.
bool gpu_arm_statement(struct cg_lowering *l, nest_id op);

// intervals.c: whether a quotient of f32s is known to need no branch, wherever its arm is chosen.
bool gpu_is_quotient_in_range(struct cg_lowering *l, const struct nest_statement *quotient);

// bounds.c: an operation of which more is known than of others; false: as they are.
bool gpu_bounded(struct cg_lowering *l, const struct nest_statement *op);

// statement.c: what is lowered otherwise than on the host; false: as there.
bool cg_gpu_statement(struct cg_lowering *l, nest_id statement);
// Bytes that an access is aligned to, 0: those of an element.
unsigned cg_gpu_alignment(const struct cg_lowering *l, const struct nest_statement *s);
// Whether no thread writes what is loaded while the kernel runs.
bool cg_gpu_is_constant(const struct cg_lowering *l, const struct nest_statement *load);
// Before threads put what the block puts in memory that others may still be reading.
void gpu_sync_to_put(struct cg_lowering *l, uint32_t block);
// The memory of a local that a group has in common, NULL for one of each thread.
LLVMValueRef cg_gpu_shared_local(struct cg_lowering *l, nest_id buffer);
// Where all threads of a group have the same to put in memory that they share, one of them does
// between open and close; false: as on the host.
bool cg_gpu_put_open(struct cg_lowering *l, nest_id buffer, struct cg_branch *out);
void cg_gpu_put_close(struct cg_lowering *l, nest_id buffer, struct cg_branch *one);

// scan.c: the steps of a kernel whose loops are such scans, or that has one of such loops.
void gpu_scan_lower(struct cg_lowering *l, struct cg_kernel *out);

// trips.c: steps of a stencil, several of which are one launch.
void gpu_trips_lower(struct cg_lowering *l, nest_id loop, struct cg_kernel_step *step,
                     int64_t *out_trips);

// updates.c: the steps of a kernel whose only loop is statement `at` of its body, a loop of updates.
void gpu_updates_lower(struct cg_lowering *l, uint32_t at, struct cg_kernel *out);

// layer.c: a product with a small matrix by one thread.
void gpu_layer(struct cg_lowering *l, const struct nest_statement *contract);

// network.c: the steps of a kernel whose only loop is statement `at` of its body, such a one.
void gpu_network_lower(struct cg_lowering *l, uint32_t at, struct cg_kernel *out);
// A put of its points; false: as on the host.
bool gpu_network_put(struct cg_lowering *l, const struct nest_statement *put);

// attention.c
// The step of such a kernel, whose only loop is statement `at` of its body.
void gpu_attention_lower(struct cg_lowering *l, uint32_t at, struct cg_kernel *out);
// attention_gradient.c: the same of its gradient, in three steps.
void gpu_attention_gradient_lower(struct cg_lowering *l, uint32_t at, struct cg_kernel *out);

// entry.c
// A function of the nest with the operands and so many pointers behind them, as the next step:
// l->gpu says how many threads there are.  close ends it and gives the lowering what it had before.
struct cg_kernel_step *gpu_function_open(struct cg_lowering *l, struct cg_kernel *out,
                                         const char *suffix, unsigned extra);
void gpu_function_close(struct cg_lowering *l, struct cg_kernel_step *step);
LLVMValueRef gpu_extra_operand(const struct cg_lowering *l, unsigned i);
// The memory that the threads have in common (map/gpu_scratch.c).
LLVMValueRef gpu_scratch(const struct cg_lowering *l);
// for (c = block number; c < chunks; c += blocks)
struct cg_loop gpu_chunks_open(struct cg_lowering *l, int64_t chunks);
// The same where the grid is exact: no loop, but in a phase, whose grid is that of its kernel.
struct cg_loop gpu_own_chunk_open(struct cg_lowering *l, int64_t chunks);
// Statements from .. to - 1 of the nest's body.
void gpu_lower_list(struct cg_lowering *l, uint32_t from, uint32_t to);

// groups.c: points that threads share.
// What threads of a group wait for one another for.
void gpu_share_out(struct cg_lowering *l);
// Each point of the loop by a group; which expects what is together to be known.
void gpu_groups_run(struct cg_lowering *l, nest_id loop, struct cg_kernel_step *step);
// columns.c: neighbouring points by neighbouring threads.
void gpu_columns_lower(struct cg_lowering *l, nest_id loop, struct cg_kernel_step *step);

// The end of the names of functions that read and write large arrays once (text.c).
#define GPU_STREAMS "_streams"

// text.c: of parts of a module, texts of PTX to assemble side by side that each end in a zero byte.
struct cg_object;
struct cg_objects;
void gpu_take_texts(struct arena *arena, const char *target, const struct cg_objects *parts,
                    struct cg_object *out);
// bytes.c: of loads of 16 bytes that may lie anywhere, loads that the back end reads as they are aligned.
void gpu_split_bytes(LLVMModuleRef module);
// What LLVM wrote for the target, as it is assembled.
char *gpu_finish_text(struct arena *arena, const char *target, const char *ptx);

// kernel.c: a mapped nest as it says.
struct gpu_kernel {
    struct cg_module *module;
    struct arena *arena;
    struct nest *nest;
    int number; // in the program
    const struct map_operand *operands;
    bool is_phase;
};
// early.c: what a loop over time reads some steps before; `values` are those of the steps of a strip, in which so many
// are written out, and of as many steps behind them.
struct gpu_early {
    uint32_t n, steps, strip;
    nest_id axis, *statements;
    struct cg_value *values;
    LLVMValueRef last; // step
    bool is_back;
};
struct gpu_early gpu_early_of(struct cg_lowering *l, const struct nest_statement *seq,
                              int64_t strip);
// Reads for the first steps; opens phis of that.
void gpu_early_begin(struct cg_lowering *l, struct gpu_early *e, LLVMValueRef first);
void gpu_early_open(struct cg_lowering *l, struct gpu_early *e, LLVMBasicBlockRef before);
// Reads in step k of a strip for a later one, and makes the values those of the step, which its body does not read
// again.
void gpu_early_step(struct cg_lowering *l, struct gpu_early *e, LLVMValueRef step, int64_t k);
void gpu_early_close(struct cg_lowering *l, const struct gpu_early *e, LLVMBasicBlockRef latch);

jot_status gpu_kernel_lower(const struct gpu_kernel *k, struct cg_kernel *out);

#endif
