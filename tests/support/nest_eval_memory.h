// SPDX-License-Identifier: Apache-2.0
// Memory of the interpreter: every element knows whether, when and by whom it was touched.
#ifndef SUPPORT_NEST_EVAL_MEMORY_H
#define SUPPORT_NEST_EVAL_MEMORY_H

#include "base/status.h"
#include "ir/eval_fold.h"
#include "nest/nest.h"

// Who does something.  Blocks of threads that do not wait for one another are numbered through the run, from 1 on: each
// point of a par is one's, or each share that the grid has of a loop.  Number 0 is whoever does what stands outside.
struct worker {
    uint32_t block;
    uint32_t thread; // of the block
};
#define EVERY_THREAD UINT32_MAX // of the block: they are together
#define SEVERAL_THREADS (UINT32_MAX - 1)

// Threads of a block wait for one another before and behind each loop that they share: `loop` counts these.
struct touch {
    struct worker who;
    uint32_t loop;
    bool is_of_several; // blocks: who has the largest number
};
struct element {
    bool is_written, is_read;
    struct touch writer, reader;
};

// A buffer, or a local of one point.
struct instance {
    unsigned char *data;
    struct element *elements; // NULL for inputs
};

// A value as memory holds it.
struct cell {
    unsigned char bytes[16];
};

// One point: its values, axes, and locals of its own.
struct lane {
    struct cell *values;
    int64_t *axes;
    struct instance *locals; // by buffer; of iterations that go at once
};

// What accumulates over a loop: one fold for each element that got something.
struct accumulation {
    nest_id statement, loop;
    int64_t length;   // of the loop's sequence
    int64_t position; // in it
    struct eval_fold **folds;
};

// The state of one combiner: of sum64 the accumulators of all blocks; else what one worker has, to be combined with what
// the workers before it had.
struct running {
    struct eval_fold fold;
    struct eval_number *lanes;
    struct eval_number best, all;      // the running value of a scan; of all workers
    int64_t position, position_of_all; // argmax, argmin; -1: of nothing
};

// What a loop over time leaves, where its steps are made again a segment at a time.
struct again {
    nest_id loop; // NEST_NONE: there is none
    int64_t segment;
    struct cell *starts; // carries before each segment
};

struct machine_state {
    struct arena *arena;
    const struct nest *nest;
    struct instance *shared;       // by buffer
    nest_id *scope;                // by buffer
    const struct ir_attrs **attrs; // by statement
    struct running **running;      // by statement: folds and yields
    bool scan_starts;              // in the first iteration of the scan around
    // What comes before the chunk of a running fold that blocks of threads share; NULL: none do.
    const struct eval_number *before;
    struct again again;
    VEC(struct accumulation) accumulations;
    bool is_mapped;       // to a GPU: levels say who does what
    bool is_grid;         // all blocks of threads do it, and do not wait for one another
    bool is_looking;      // no element is touched
    unsigned team;        // threads that are together; 0: those of all blocks
    struct worker who;    // is at work
    uint32_t point;       // block that is together
    uint32_t first_block; // what those before it have written is settled
    uint32_t last_block;
    uint32_t loop;       // of those that threads share, counted
    nest_id shared_loop; // its statement, for messages
};

struct instance *instance_of(struct machine_state *m, struct lane *l, nest_id buffer);
void instance_make(struct machine_state *m, struct instance *i, nest_id buffer);
void instance_forget(const struct machine_state *m, struct instance *i, nest_id buffer);
jot_status check_access(const struct machine_state *m, nest_id buffer, int64_t at);
// The element's bytes, checked and marked.
jot_status touch_read(struct machine_state *m, struct lane *l, nest_id buffer, int64_t at,
                      void **out);
jot_status touch_write(struct machine_state *m, struct lane *l, nest_id buffer, int64_t at,
                       void **out);

// Statements (nest_eval.c) and loops that go on in time (nest_eval_time.c).
jot_status run_statement(struct machine_state *m, struct lane *l, nest_id id);
jot_status run_block(struct machine_state *m, struct lane *l, uint32_t block);
void run_yield(struct machine_state *m, struct lane *l, nest_id id);
jot_status run_scan(struct machine_state *m, struct lane *l, nest_id id);
jot_status run_seq(struct machine_state *m, struct lane *l, nest_id id);
jot_status run_while(struct machine_state *m, struct lane *l, const struct nest_statement *s);
jot_status run_if(struct machine_state *m, struct lane *l, const struct nest_statement *s);
// Locals of one iteration of the loop are new.
void forget_locals(struct machine_state *m, struct lane *l, nest_id loop);
int64_t index_at(const struct machine_state *m, const struct lane *l,
                 const struct nest_index *x);
struct eval_number wide_value(const struct machine_state *m, const struct lane *l, nest_id v);
void set_value(const struct machine_state *m, struct lane *l, nest_id v, struct eval_number x);
void set_integer(const struct machine_state *m, struct lane *l, nest_id v, int64_t x);
static inline bool is_true(const struct lane *l, nest_id v)
{
    return v == NEST_NONE || l->values[v].bytes[0];
}

// Who shares a loop (nest_eval_share.c): its turns, each of the elements that go at once, in the order that they are run
// in: those of one worker after those of another, each in the order of the loop.
struct turn {
    int64_t other,
        first;      // number of the other axes' iterations, first element of the axis of lanes
    int64_t number; // of the turn
    struct worker who;
};
struct turns {
    int64_t count, along, each; // turns; elements along the axis of lanes, and turns
    unsigned width;
    bool is_shared, is_of_points;
    struct turn *at; // of a loop that is shared
    uint32_t first_block;
    struct worker before; // was at work, and what else there was
    unsigned team;
    uint32_t point;
    nest_id loop;
};
struct turns turns_open(struct machine_state *m, nest_id loop, unsigned width);
struct turn turns_at(const struct turns *t, int64_t i);
// Whoever has the turn is at work, for one of the elements that go at once.
void turn_begin(struct machine_state *m, const struct turns *t, const struct turn *x,
                uint32_t lane);
void turns_close(struct machine_state *m, struct turns *t);
// Combiners of a fold.
struct running *fold_open(struct machine_state *m, nest_id fold, int64_t n);
void fold_take(struct machine_state *m, struct lane *l, nest_id fold, int64_t position);
// What one worker has combined comes to what others have.
void fold_leave(struct machine_state *m, nest_id fold);
void fold_close(struct machine_state *m, struct lane *l, nest_id fold);
void combine_number(struct eval_number *to, enum ir_op op, jot_dtype d, struct eval_number x);

// Accumulations of the puts in a loop.
void accumulations_open(struct machine_state *m, nest_id loop, int64_t length);
struct accumulation *accumulation_find(struct machine_state *m, nest_id statement);
// The accumulator of the element at the position of the loop.
struct eval_number *accumulation_lane(struct machine_state *m, struct accumulation *a,
                                      int64_t at, enum ir_op op, jot_dtype d);
// Stores the results of the loop.
jot_status accumulations_close(struct machine_state *m, struct lane *l, nest_id loop);

// x a + sum as contractions do it.
void multiply_add(struct eval_number *sum, struct eval_number a, struct eval_number b,
                  bool is_complex);

#endif
