// SPDX-License-Identifier: Apache-2.0
// What the files of optimisers share: the kinds of parts, and what one part does to one leaf.
#ifndef LIBRARY_OPTIMIZER_H
#define LIBRARY_OPTIMIZER_H

#include "jot/optim.h"

enum schedule_kind {
    SCHEDULE_CONSTANT,    // number[0]
    SCHEDULE_VALUE,       // value
    SCHEDULE_POLYNOMIAL,  // first, last, power, steps
    SCHEDULE_EXPONENTIAL, // first, rate, steps, end
    SCHEDULE_COSINE,      // first, end, steps, exponent
    SCHEDULE_KINDS,
};

// Whether these can be pieces of a schedule: n is 1 to 8, and there are such kinds.
bool library_is_schedule(int n, const jot_schedule_piece *piece);

// The pieces at a count, in f32 or f64.
jot_value library_schedule(int n, const jot_schedule_piece *piece, jot_value count,
                           jot_dtype dtype);

// The numbers of a part stand behind its kind.
enum optimizer_kind {
    PART_SCALE,          // sign of its schedule
    PART_DECAY,          // of the schedule
    PART_CLIP_VALUE,     // most
    PART_CLIP_NORM,      // most
    PART_CLIP_GLOBAL,    // most
    PART_CLIP_RMS,       // most
    PART_PARAM_RMS,      // least
    PART_TRUST,          // coefficient, eps
    PART_MOMENTUM,       // decay, is_nesterov
    PART_ADAM,           // b1, b2, eps, eps_root
    PART_NADAM,          // the same
    PART_RADAM,          // the same, and the threshold
    PART_RADAM_NESTEROV, // the same
    PART_ADAMAX,         // b1, b2, eps
    PART_LION,           // b1, b2
    PART_ADAGRAD,        // initial, eps
    PART_ADADELTA,       // decay, eps
    PART_RMS,            // initial, decay, eps
    PART_CENTERED_RMS,   // the same
    PART_RMS_DEBIASED,   // the same
    PART_FACTORED,       // least extent, decay, eps
    PART_EMA,            // decay, is_debiased
    PART_PARAMS_EMA,     // decay
    PART_LOOKAHEAD,      // every, rate
    PART_MASKED,
    PART_MULTI_STEPS,   // every
    PART_LOSS_SCALE,    // initial, every
    PART_SCHEDULE_FREE, // b1, power
    PART_KINDS,
};

// One leaf before one part.
struct optimizer_leaf {
    const double *number;
    jot_dtype real;     // of counts and norms: f32 or f64
    jot_value count;    // of steps before this one, i32
    jot_value rate;     // of the part's schedule, in real
    jot_value g, p;     // g becomes what the part makes of it
    jot_value *tree[2]; // of the state
};

struct optimizer_row {
    const char *name;
    int values, trees; // that it keeps
    void (*step)(struct optimizer_leaf *x);
    // What its tree k begins with; NULL: zeros of the shape of p.
    jot_value (*begin)(const struct optimizer_leaf *x, int k);
};
extern const struct optimizer_row library_optimizer_rows[PART_KINDS];

// x as a number of the type of `like`.
jot_value library_as(jot_value x, jot_value like);

#endif
