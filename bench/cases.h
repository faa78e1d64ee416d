// SPDX-License-Identifier: Apache-2.0
// The measured work: functions over arrays, with their inputs and what they are to reach.
#ifndef JOT_BENCH_CASES_H
#define JOT_BENCH_CASES_H

#include <jot/jot.h>

// Gives on a failure.
#define TRY(expression)                                                                        \
    do {                                                                                       \
        jot_status try_ = (expression);                                                        \
        if (try_ != JOT_OK)                                                                    \
            return try_;                                                                       \
    } while (0)

enum { MAX_INPUTS = 20, MAX_OUTPUTS = 8, MAX_RUNS = 64 };

// In sizes of inputs and in their scale: the size of the run.
enum { SIZE = -1 };

enum fill {
    NORMAL,  // offset + scale times normal numbers of the stream
    UNIFORM, // offset + scale times uniform numbers
    SIGN,    // the sign of normal numbers of the stream
    LABEL,   // 0, 1, 2, ... modulo scale, in i32
    PLACE,   // random, 0 to scale - 1, in i32
    FULL,    // scale everywhere
    KEY,     // the random key that scale is the seed of
};

struct input {
    enum fill fill;
    int stream; // so that inputs are independent
    double scale;
    int64_t dims[5]; // ends with JOT_END
    double offset;
};

// What runs on which device, and what it is to reach.
struct size {
    jot_device_kind device;
    int64_t size;
    double reach; // times as fast as JAX; of a GPU's: us of a call on an H200
};

struct bench_case {
    const char *name; // # stands for the size
    jot_function (*function)(void);
    int n_out;
    struct input in[MAX_INPUTS];
    int n_in;
    struct size sizes[6];    // ends with one that is to reach nothing
    jot_precision precision; // of products
};

// A case of one size.
struct bench_run {
    const struct bench_case *c;
    char name[32];
    int64_t size;
    double reach;
};

// Those of a device: how many, at most MAX_RUNS.
int bench_list(jot_device_kind device, struct bench_run *out);

// The inputs of a run.  On failure nothing is kept and a message is left.
jot_status bench_inputs(const struct bench_run *run, jot_array **in);

#endif
