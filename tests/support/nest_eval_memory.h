// SPDX-License-Identifier: Apache-2.0
// Memory of the interpreter: every element knows whether, when and by whom it was touched.
#ifndef SUPPORT_NEST_EVAL_MEMORY_H
#define SUPPORT_NEST_EVAL_MEMORY_H

#include "base/status.h"
#include "ir/eval_fold.h"
#include "passes/nest.h"

// Which points touch an element: those of a par never share what is written.  They are numbered through
// the run.
struct element {
    bool is_written, is_read;
    uint32_t writer, reader;
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

// The state of one combiner.
struct running {
    struct eval_fold fold;
    struct eval_number best; // argmax, argmin; the running value of a scan
    int64_t place;
};

struct machine_state {
    struct arena *arena;
    const struct nest *nest;
    struct instance *shared;       // by buffer
    nest_id *scope;                // by buffer
    const struct ir_attrs **attrs; // by statement
    struct running **running;      // by statement: folds and yields
    bool scan_starts;              // in the first iteration of the scan around
    VEC(struct accumulation) accumulations;
    uint32_t point;
    uint32_t first_point; // of the loop over points: earlier writes are settled
    uint32_t last_point;
    bool in_points;
};

struct instance *instance_of(struct machine_state *m, struct lane *l, nest_id buffer);
void instance_make(struct machine_state *m, struct instance *i, nest_id buffer);
void instance_forget(const struct machine_state *m, struct instance *i, nest_id buffer);
jot_status check_place(const struct machine_state *m, nest_id buffer, int64_t at);
// The element's bytes, checked and marked.
jot_status touch_read(struct machine_state *m, struct lane *l, nest_id buffer, int64_t at,
                      void **out);
jot_status touch_write(struct machine_state *m, struct lane *l, nest_id buffer, int64_t at,
                       void **out);

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
