// SPDX-License-Identifier: Apache-2.0
// Nests: kernels as printable trees of loops.
//
// A nest is a list of buffers, a list of axes and a tree of statements.  Scalars are SSA values;
// what an op means on them is the op table's business.  An index is an affine form over axes (and
// integer values, for data-dependent access) that counts elements of a buffer, so a buffer is a
// flat array and a layout is a matter of coefficients.
//
//     kernel softmax(x: f32[1048576], y: out f32[1048576]) {
//       par r < 512 {
//         fold c < 2048 {
//           %0 = load x[2048*r + c] : f32
//           yield reduce_max %0 free
//         } -> %1 : f32
//         ...
//
// Statements
//   op       %v = add %a, %b : f32               a MAP op of the table on scalars
//   const    %v = const 0x3f800000 : f32         the bits of the element
//   index    %v = index 2*r + c : i32            an affine form as an integer value
//   load     %v = load x[...] if %g : f32        with a guard that is false: zero, nothing is read
//   put      put y[...] = %v if %g               stores one element
//            put y[...] reduce_sum= %v in @n sum64   accumulates over the fold loop n (below)
//   par      par i < N, j < M { }                independent points, the kernel's parallel domain
//   map      map i < N { }                       independent points of an inner axis
//   fold     fold i < N, j < M { ... yield reduce_sum %v sum64, fma %a %b sum64 } -> %s, %t
//   scan     scan i < N [reverse] { ... yield reduce_sum %v serial -> %r ... }   %r is the running value
//   seq      seq t < T carry %x = %x0 { ... yield %x1 } -> %x2            a loop over time
//   while    while carry %x = %x0 { ... } do { ... yield %x1 } -> %x2
//   if       if %p { yield %a } else { yield %b } -> %r
//   local    local t: f32[N]                     storage of one point
//   contract contract c[20*i + j] = a[20*n + i], b[20*n + j] for i < 20, j < 20 over n < 8
//
// A fold visits its axes as one sequence, first axis slowest.  A put with a combiner names the fold
// loop it accumulates over: what it gets in the course of that loop is combined, and the result is
// stored when the loop ends (old contents do not count).  Its index uses no axis of that loop.
// What combines says in which order, whoever does it and with however many:
//
//   sum64    the order of docs/numerics.md: blocks, 64 strided accumulators in a block, folded by
//            halves, pairwise over blocks (folds and puts)
//   free     any, for the bits are the same: integers, maxima and minima, positions (all)
//   serial   from left to right (scans; a GPU's long ones go by chunks)
//
// Combiners are the reduce ops, `fma` (two values, sum of products by fused multiply-add), and
// argmax and argmin (one value; results value and i64 position in the fold's sequence).
// The position of a value that an accumulating put gets is that of the fold's iteration; a guard
// that is false leaves the position out.  A put with a value in its index stores every element of
// the buffer; those that got nothing become the neutral element.
//
// Levels say who has the elements of an axis; they change no bit.  src/map writes them.
//
//   i < 1000 @vector 16    16 neighbouring elements go at once, in the lanes of vectors
//
// A loop over points has one such axis, a fold its last one.  In lanes a loop has none, but: a fold that
// stands in the loop itself and has one is done by one lane after the other, and in a while those
// levels are for a lane that is left alone.
//
// On a GPU a loop has a level too, which says who does an element of it, or those of a vector:
//
//   par @grid i < 8        all blocks of threads together
//   par @group i < 1000    a group of threads together: what has no level in it is done by each of them
//   par @thread i < 1000   one thread, of the grid or of the group around
//   map @row i < 1000      that thread of the group which has it in folds of as many elements
//   seq @owner i < 1000    updates: whoever has the elements that it updates, in their order
//   seq @ahead i < 1000    each thread, and a warp more what of it is the same for all, some steps ahead
//   seq @serial i < 1000   whoever has what stands around it, one element after the other
//
//   i < 1000 @tile 32      of two axes: squares of elements are those of a block of threads, which has a tile and its
//                          mirror image where it has two turns
//   i < 1000 @rows 2       two elements, half of the axis apart, are one thread's
//   t < 1000 @early 8      what a step reads of memory that nobody writes is read eight steps before
//   t < 1000 @segment 8    steps whose locals `@again` the loop that reads them makes anew, eight at a time
//
//   par @thread i < 1000 turns 4    the code of a thread has four of its elements, or vectors, one after the other
//   par @thread i < 1000 at_once 2  it reads what two of them want before it goes on; of a fold they are windows of 64
//                                   elements, and its turns rounds of blocks
//
//   fold @thread i < 1000 terms @shared    what is combined is computed before: by the threads of the block
//   fold @thread i < 1000 terms @scratch   by a function of its own
//
// Behind its parameters stands how many threads a kernel has: `block 256` a block, `group 32` those that share a
// point (1: none do), `columns 8` points of a block side by side, `resident 4` blocks of a multiprocessor at once,
// `grid 1` blocks, where that is not said by the work, `trips 5` of a loop that one launch makes; and before them
// `as network`, the one emitter that it is for.  A local may be `@register`, kept by the threads of a group that put it, or `@shared` by them.
//
// A contract is c = sum of a b by fused multiply-add, whose terms come one after the other.
//
// A while ends its first block with the test, `yield %p`.  A local lives for one iteration of the
// innermost par, map, fold or scan that holds all its uses.  Any statement may end in `!7`, its place
// in the source.
//
// Who promises what: the verifier checks that values are defined before use and in scope, affine
// indices stay inside their buffers where no guard stands, and each element of a buffer is put by
// one point only.  A put whose index has values may miss some elements of an inout buffer.
#ifndef NEST_NEST_H
#define NEST_NEST_H

#include "base/arena.h"
#include "base/dtype.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "ir/ops.h"
#include "jot/status.h"

typedef uint32_t nest_id; // a value, an axis, a buffer or a statement
#define NEST_NONE UINT32_MAX

enum nest_kind {
#define STATEMENT(kind, word, parts) NEST_##kind,
#include "nest/statements.def"
    NEST_KIND_COUNT,
};
// What statements have (statements.def).
enum nest_part {
#define PART(name) NEST_PART_##name,
#include "nest/statements.def"
    NEST_PARTS,
};
// How many of a part a statement has: none, any number, one, or one or more.
enum nest_number { NEST_NO, NEST_ANY, NEST_ONE, NEST_SOME };
extern const uint8_t nest_numbers[NEST_KIND_COUNT][NEST_PARTS];
extern const char *const nest_kind_names[NEST_KIND_COUNT]; // "load"; "" of an op
static inline bool nest_has(enum nest_kind kind, enum nest_part part)
{
    return nest_numbers[kind][part] != NEST_NO;
}

enum nest_role {
    NEST_IN,
    NEST_OUT,
    NEST_INOUT, // holds something on entry, some of which is put anew
    NEST_PART,  // some of which is put, and nothing read: other kernels put the rest
    NEST_WORK,  // of the threads of a kernel alone, which no statement reads or puts
    NEST_LOCAL
};

struct nest_term {
    int64_t factor;
    nest_id id; // an axis, or a value
    bool is_value;
};

// constant + sum of factor * axis or value
struct nest_index {
    int64_t constant;
    uint32_t count;
    const struct nest_term *terms; // axes first, by increasing id
};

enum nest_space { NEST_OWN, NEST_REGISTER, NEST_SHARED, NEST_AGAIN, NEST_SCRATCH };
#define NEST_SPACES (NEST_SCRATCH + 1)
extern const char *const nest_space_names[NEST_SPACES]; // NULL of the first

struct nest_buffer {
    const char *name;
    jot_dtype dtype;
    int64_t count; // elements
    enum nest_role role;
    enum nest_space space; // of a local (above)
    const void *
        data; // its elements, while code is generated, where all steps have the same constant for it
};

struct nest_axis {
    const char *name;
    int64_t extent;
    unsigned vector;                     // elements that go at once (above), 0: one by one
    unsigned tile, rows, segment, early; // 0: none
};

// Who does an element of a loop on a GPU (above).
enum nest_level {
    NEST_NO_LEVEL,
    NEST_GRID,
    NEST_GROUP,
    NEST_THREAD,
    NEST_IN_ROW,
    NEST_OWNER,
    NEST_AHEAD,
    NEST_SERIALLY
};
#define NEST_LEVELS (NEST_SERIALLY + 1)
extern const char *const nest_level_names[NEST_LEVELS]; // NULL of the first

// Kernels that one emitter of a GPU is for, which divides the work by itself.
enum nest_special {
    NEST_ORDINARY,
    NEST_ATTENTION,
    NEST_ATTENTION_GRADIENT,
    NEST_NETWORK,
    NEST_TRIPS
};
#define NEST_SPECIALS (NEST_TRIPS + 1)
extern const char *const nest_special_names[NEST_SPECIALS]; // NULL of the first

// The threads of a kernel on a GPU (above), 0: not said.
enum nest_threads {
    NEST_BLOCK_THREADS,
    NEST_GROUP_THREADS,
    NEST_COLUMNS,
    NEST_RESIDENT,
    NEST_BLOCKS,
    NEST_TRIPS_OF_LAUNCH,
    NEST_THREADS
};
extern const char *const nest_threads_names[NEST_THREADS]; // "block", ...

// The orders in which elements are combined (above).
enum nest_order { NEST_NO_ORDER, NEST_SUM64, NEST_FREE, NEST_SERIAL };
#define NEST_ORDERS (NEST_SERIAL + 1)

// One thing that a fold, a scan's yield or an accumulating put combines with.
struct nest_combine {
    uint16_t op;     // a combiner of the op table
    uint16_t n;      // values it takes: 2 for fma, else 1
    jot_dtype dtype; // of the result; half types accumulate in f32
    enum nest_order order;
    nest_id value[2];
};

struct nest_block {
    VEC(nest_id) statements;
};

struct nest_statement {
    enum nest_kind kind;
    uint16_t op;     // OP: enum ir_op; PUT: the combiner, 0 (IR_param) for a plain store
    jot_dtype dtype; // of the result of OP, CONST, INDEX, LOAD
    nest_id result;  // first result value, NEST_NONE for none
    uint32_t n_results;
    uint32_t n_in; // OP operands, PUT value(s), carries' initial values, IF predicate
    const nest_id *in;
    int64_t bits[2]; // CONST: the element's bytes; OP: exponent, or exponent and mantissa bits
    nest_id buffer;  // LOAD, PUT, CONTRACT's destination
    struct nest_index index;
    nest_id guard;         // LOAD, PUT: a bool value, or NEST_NONE
    nest_id fold;          // PUT with a combiner: the fold statement it accumulates over
    enum nest_order order; // and the order
    uint32_t n_axes;       // loops
    const nest_id *axes;
    bool reverse;          // SCAN, SEQ
    enum nest_level level; // of loops
    unsigned turns,
        at_once; // of a thread's turns of them (above), 0: one after the other in a loop
    enum nest_space terms; // FOLD: where what it combines is computed to, before it is
    uint32_t body;         // block of loops, IF's first branch, WHILE's test
    uint32_t other;        // IF's second branch, WHILE's step; NEST_NONE for none
    nest_id first_carry;   // SEQ, WHILE: values of the carries inside the body
    uint32_t n_combines;   // FOLD, YIELD
    const struct nest_combine *combines;
    uint32_t n_yields; // SEQ, IF: values at the end of body (then of other)
    const nest_id *yields;
    uint32_t where;    // place in the module's source table, 0 none
    nest_id source[2]; // CONTRACT: buffers of the factors; its axes are its own,
    struct nest_index source_index[2]; // the summed one last
};

struct nest_value {
    jot_dtype dtype;
    nest_id statement;
};

// What a mapping does otherwise than its prices say, where measuring has said so (trace/native_tune.c).  No bit
// depends on it.
enum nest_choice {
    NEST_MORE_LANES = 1 << 0,  // twice as many elements go at once
    NEST_FEWER_LANES = 1 << 1, // half as many
    NEST_NO_JAM = 1 << 2,
    NEST_NO_STAGES = 1 << 3,
};
#define NEST_CHOICES 4
extern const char *const nest_choice_names[NEST_CHOICES]; // "more_lanes"

struct nest {
    struct arena *arena;
    const char *name;
    const char *place; // of the op that it is for, or NULL; no part of the text
    unsigned choices;  // of nest_choice
    enum nest_special special;
    unsigned threads[NEST_THREADS];
    int64_t
        price; // of what is mapped, 0: none; scalar operations of a core, or nanoseconds of a GPU
    VEC(struct nest_buffer) buffers;
    VEC(struct nest_axis) axes;
    VEC(struct nest_statement) statements;
    VEC(struct nest_value) values;
    VEC(struct nest_block) blocks; // block 0 is the body of the kernel
};

// Building.  Statements go to the end of the open block; open/close nest.
struct nest_builder {
    struct nest *nest;
    VEC(uint32_t) open; // blocks, innermost last
    uint32_t where;     // place in the source of the statements to come
};

// A nest whose levels, orders and indices are its own.
struct nest *nest_copy(struct arena *arena, const struct nest *n);

struct nest_builder nest_builder_make(struct arena *arena, const char *name);
nest_id nest_buffer(struct nest_builder *b, const char *name, jot_dtype dtype, int64_t count,
                    enum nest_role role);
nest_id nest_local(struct nest_builder *b, const char *name, jot_dtype dtype, int64_t count);
nest_id nest_axis(struct nest_builder *b, const char *name, int64_t extent);
// A statement of the kind that has nothing.
struct nest_statement nest_blank(enum nest_kind kind);
// Appends the statement, whose lists stay where they are.  What it makes and the values of its carries are new, and
// its body opens.
nest_id nest_append(struct nest_builder *b, struct nest_statement s);
nest_id nest_op(struct nest_builder *b, enum ir_op op, jot_dtype dtype, int n,
                const nest_id *in,
                const int64_t bits[2]); // first result; threefry2x32 has two
nest_id nest_const(struct nest_builder *b, jot_dtype dtype, const void *element);
nest_id nest_index_value(struct nest_builder *b, struct nest_index index, jot_dtype dtype);
nest_id nest_load(struct nest_builder *b, nest_id buffer, struct nest_index index,
                  nest_id guard);
void nest_put(struct nest_builder *b, nest_id buffer, struct nest_index index, nest_id value,
              nest_id guard);
void nest_put_combine(struct nest_builder *b, nest_id buffer, struct nest_index index,
                      nest_id fold, const struct nest_combine *combine);
// Opens a loop (PAR, MAP, FOLD, SCAN) and its block; returns the statement.
nest_id nest_open(struct nest_builder *b, enum nest_kind kind, int n_axes, const nest_id *axes);
// Closes the innermost loop; a fold gives the first of its results (one per combine; two for
// argmax and argmin).
nest_id nest_close(struct nest_builder *b, int n_combines, const struct nest_combine *combines);
// Inside a scan: the running values (inclusive of this element).
nest_id nest_yield(struct nest_builder *b, int n, const struct nest_combine *combines);

// Loops with state.  Opening gives the first of the n values that the carries have inside, closing
// the first of the n results; n may be 0 (then NEST_NONE).
nest_id nest_seq_open(struct nest_builder *b, nest_id axis, bool reverse, int n,
                      const nest_id *init);
nest_id nest_while_open(struct nest_builder *b, int n, const nest_id *init);
void nest_if_open(struct nest_builder *b, nest_id predicate);
// Closes the first block of a while, which yields its test, or of an if, and opens the second.
void nest_open_other(struct nest_builder *b, int n, const nest_id *values);
// Closes any of them: the next carries, or what the last branch yields, nothing of an if without a second block.
nest_id nest_close_values(struct nest_builder *b, int n, const nest_id *values);

// buffer and index: destination, then the factors.  The summed axis is the last of axes.
void nest_contract(struct nest_builder *b, const nest_id buffer[3],
                   const struct nest_index index[3], int n_axes, const nest_id *axes);

// Results of a combiner: the element and its position for ARG rows of the op table.
static inline uint32_t nest_combine_results(uint16_t op)
{
    return ir_is_arg((enum ir_op)op) ? 2 : 1;
}
// Whether elements of the type give the combiner's result in any order, bit for bit.
static inline bool nest_is_free(uint16_t op, jot_dtype dtype)
{
    enum ir_op pair = ir_op_get((enum ir_op)op)->pair;
    return !dtype_is_inexact(dtype) || pair == IR_max || pair == IR_min ||
           ir_is_arg((enum ir_op)op);
}
// The order that docs/numerics.md gives a fold or an accumulating put.
static inline enum nest_order nest_fold_order(uint16_t op, jot_dtype dtype)
{
    return nest_is_free(op, dtype) ? NEST_FREE : NEST_SUM64;
}
extern const char *const nest_order_names[NEST_ORDERS];

static inline const struct nest_statement *nest_statement_at(const struct nest *n, nest_id id)
{
    return &n->statements.at[id];
}
static inline const struct nest_statement *nest_maker_of(const struct nest *n, nest_id value)
{
    return nest_statement_at(n, n->values.at[value].statement);
}
static inline nest_id nest_id_of(const struct nest *n, const struct nest_statement *s)
{
    return (nest_id)(s - n->statements.at);
}

struct nest_walk {
    const struct nest *nest;
    const struct nest_block *block;
    uint32_t next;
    bool is_inside; // the body of nest_for_each, which a break leaves so
};
static inline struct nest_walk nest_walk_make(const struct nest *n, uint32_t block)
{
    return (struct nest_walk){n, block < n->blocks.count ? &n->blocks.at[block] : NULL, 0,
                              false};
}
static inline bool nest_walk_goes_on(const struct nest_walk *w)
{
    return !w->is_inside && w->block && w->next < w->block->statements.count;
}
static inline const struct nest_statement *nest_walk_enter(struct nest_walk *w)
{
    w->is_inside = true;
    return nest_statement_at(w->nest, w->block->statements.at[w->next++]);
}
static inline const struct nest_statement *nest_walk_leave(struct nest_walk *w)
{
    w->is_inside = false;
    return NULL;
}
#define NEST_DEPTH 200 // blocks in one another, at most
struct nest_descent {
    const struct nest *nest;
    bool is_inside; // the body of nest_for_below
    uint32_t n_open;
    struct {
        uint32_t block, next;
    } open[2 * NEST_DEPTH]; // the second body of a statement lies under the first
};
struct nest_descent nest_descent_make(const struct nest *n, uint32_t block);
const struct nest_statement *nest_descent_enter(struct nest_descent *d);
// Each statement s of the nest, of a block, and of a block and the blocks in it, in the order of the text; NEST_NONE
// is an empty block.
#define nest_for_all(s, n)                                                                     \
    for (const struct nest_statement *s = (n)->statements.at,                                  \
                                     *s##_end = s + (n)->statements.count;                     \
         s < s##_end; s++)
#define nest_for_each(s, n, block)                                                             \
    for (struct nest_walk s##_walk = nest_walk_make((n), (block));                             \
         nest_walk_goes_on(&s##_walk);)                                                        \
        for (const struct nest_statement *s = nest_walk_enter(&s##_walk); s;                   \
             s = nest_walk_leave(&s##_walk))
#define nest_for_below(s, n, block)                                                            \
    for (struct nest_descent s##_walk = nest_descent_make((n), (block));                       \
         s##_walk.n_open && !s##_walk.is_inside;)                                              \
        for (const struct nest_statement *s = nest_descent_enter(&s##_walk); s;                \
             s = NULL, s##_walk.is_inside = false)
// Whether it makes a value and does nothing else.
static inline bool nest_is_scalar(const struct nest_statement *s)
{
    return s->kind == NEST_OP || s->kind == NEST_CONST || s->kind == NEST_INDEX ||
           s->kind == NEST_LOAD;
}
// Whether the text says who does what on a GPU.
static inline bool nest_is_mapped(const struct nest *n)
{
    return n->special || n->threads[NEST_BLOCK_THREADS];
}
// Whether threads share its elements.
static inline bool nest_is_of_threads(const struct nest_statement *s)
{
    return s->level == NEST_THREAD || s->level == NEST_IN_ROW;
}
static inline bool nest_is_op(const struct nest_statement *s, uint16_t op)
{
    return s->kind == NEST_OP && s->op == op;
}

// Index forms, in the nest's arena; terms are merged and sorted.
struct nest_index nest_index_make(struct arena *arena, int64_t constant, int n,
                                  const struct nest_term *terms);
int64_t nest_index_factor(const struct nest_index *x, nest_id axis); // 0 when absent
int nest_term_compare(const void *a, const void *b);                 // for qsort
// Whether they differ by a constant at most.
bool nest_index_same_terms(const struct nest_index *a, const struct nest_index *b);
static inline bool nest_index_equal(const struct nest_index *a, const struct nest_index *b)
{
    return a->constant == b->constant && nest_index_same_terms(a, b);
}
// Whether an index depends on a value read in the kernel: such terms stand last.
static inline bool nest_index_has_values(const struct nest_index *x)
{
    return x->count && x->terms[x->count - 1].is_value;
}

// Whether an index is that of the axis, x[a], with nothing beside it.
bool nest_index_is_axis(const struct nest_index *x, nest_id axis);
// How many of the values that it yields are its body's; the others are those of `other`.
uint32_t nest_body_yields(const struct nest_statement *s);
// Whether a contract is a product of a matrix with a vector, c[j] = sum of a[k] b[.. j .. k].
bool nest_is_layer(const struct nest_statement *contract);

// Value number k that a statement takes, NEST_NONE behind the last: operands, values in its index, guard, what it
// yields and combines.  What its bodies take is not among them.
nest_id nest_use(const struct nest_statement *s, uint32_t k);
// Each value that it takes.
#define nest_for_uses(value, s)                                                                \
    for (nest_id value, value##_at = 0; (value = nest_use((s), value##_at)) != NEST_NONE;      \
         value##_at++)
// Buffer number k that a statement reads or puts, NEST_NONE behind the last; what it puts comes first.
nest_id nest_use_buffer(const struct nest_statement *s, uint32_t k);
#define nest_for_buffers(buffer, s)                                                            \
    for (nest_id buffer, buffer##_at = 0;                                                      \
         (buffer = nest_use_buffer((s), buffer##_at)) != NEST_NONE; buffer##_at++)
// Whether it takes any of the values.
bool nest_takes(const struct nest_statement *s, const bool *values);
bool nest_index_takes(const struct nest_index *x, const bool *values);

// nest/interval.c: indices of an axis, and comparisons that are decided by them.
struct nest_interval {
    int64_t first, end; // end 0: anywhere
};
// A comparison of factor * axis + constant, the factor 1 or -1, with a number; false: s is none.
struct nest_comparison {
    nest_id axis;
    int64_t factor, constant, number;
};
bool nest_compares(const struct nest *n, const struct nest_statement *s,
                   struct nest_comparison *out);
// What such a comparison always gives while axes are in the intervals that are known by axis: 1, 0, or -1 where
// that depends.
int nest_decides(const struct nest *n, const struct nest_statement *s,
                 const struct nest_interval *known);

// By buffer: the loop of which each iteration has a local of its own (see above), NEST_NONE for the
// whole kernel and for buffers that are not locals.
void nest_local_scopes(const struct nest *n, nest_id *out);

// Makes one axis of neighbouring axes of a loop that every index walks as one (nest/collapse.c).
void nest_collapse(struct nest *n);

// Iterations of a loop, those of all its axes together.
int64_t nest_extent(const struct nest *n, const struct nest_statement *loop);
// The axis of the loop whose elements are vector lanes, NEST_NONE for none.
nest_id nest_vector_axis(const struct nest *n, const struct nest_statement *loop);
// Whether there is a loop over time in the block.
bool nest_has_time(const struct nest *n, uint32_t block);
// Operations of a block, all iterations of its loops counted (cost_of_op).
double nest_work(const struct nest *n, uint32_t block);
// Turns of the innermost loops in a block that one thread makes, one after the other.
double nest_turns(const struct nest *n, uint32_t block);
// How much code the block becomes (COST_CODE) when folds and maps of at most `longest` iterations, and `strip`
// trips of loops over time that have no loops, are written out, where that is no more than `most`.
int64_t nest_code(const struct nest *n, uint32_t block, int64_t longest, int64_t strip,
                  int64_t most);
#define NEST_SHORT_LOOP 16 // iterations
// Whether a thread of a GPU makes the terms of the fold one by one, each of a few elements at most, so
// that threads can share it: plain statements, short folds, and maps of so many points.
#define NEST_LEAF_POINTS 16
bool nest_fold_is_leaf(const struct nest *n, nest_id fold);
// Whether anything is put that accumulates over the fold.
bool nest_accumulates(const struct nest *n, nest_id fold);
// Lines of memory that a warp reads or writes at once when its threads have neighbouring points, and when they have
// neighbouring elements of the longest loop inside: of one access, and of all that loops inside make for a point.
struct nest_lines {
    double of_points, of_inner;
};
struct nest_lines nest_lines_of(const struct nest *n, const struct nest_statement *points,
                                const struct nest_statement *inner,
                                const struct nest_statement *access);
struct nest_lines nest_lines_in(const struct nest *n, const struct nest_statement *points);
// Microseconds that a GPU takes for a loop of so many points, when each point is one block's of threads, and when all
// of the GPU shares each.  What threads keep of a point is memory then.
struct nest_time {
    double apart, shared;
};
struct nest_time nest_time_of(const struct nest *n, const struct nest_statement *loop,
                              int64_t points);
// Whether neighbouring points are clearly for neighbouring threads.
static inline bool nest_lies_along(struct nest_lines lines)
{
    return 2 * lines.of_points < lines.of_inner;
}

// Room for the numbers of so many values or axes, all NEST_NONE.
uint32_t *nest_no_numbers(struct arena *a, uint32_t count);
// Text form, round trip.  The parser takes several kernels in one text.
void nest_print(struct strbuf *s, const struct nest *n);
jot_status nest_parse(struct arena *arena, const char *text, int *out_count,
                      struct nest ***out_nests);
// Number of faults, a line each in *report (may be NULL).
int nest_verify(const struct nest *n, struct strbuf *report);
// Content hash and equality (names, places in the source and the numbering do not count).
uint64_t nest_hash(const struct nest *n);
bool nest_equal(const struct nest *a, const struct nest *b);
// The same but for numbers, which are constants of real and complex types.
static inline bool nest_is_number(const struct nest_statement *s)
{
    return s->kind == NEST_CONST && dtype_is_inexact(s->dtype);
}
uint64_t nest_hash_alike(const struct nest *n);
bool nest_alike(const struct nest *a, const struct nest *b);

#endif
