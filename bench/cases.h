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

enum { MAX_INPUTS = 24, MAX_OUTPUTS = 24, MAX_RUNS = 64 };

// In sizes of inputs and in their scale: the size of the run.
enum { SIZE = -1 };

enum fill {
    NORMAL,      // offset + scale times normal numbers of the stream
    NORMAL_C64,  // pairs of normal numbers of the stream and the next one
    NORMAL_BF16, // normal numbers of the stream, in bf16
    UNIFORM,     // offset + scale times uniform numbers
    SIGN,        // the sign of normal numbers of the stream
    LABEL,       // 0, 1, 2, ... modulo scale, in i32
    PLACE,       // random, 0 to scale - 1, in i32
    FULL,        // scale everywhere
    KEY,         // the random key that scale is the seed of
    POSITIVE,    // x x^T + scale 1 of matrices x of normal numbers of the stream
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
    double flops; // operations of its products, where they bound it
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

// A training step of a small network for images (cnn.c).
jot_function cnn_train_step(void);

// A case of one size.
struct bench_run {
    const struct bench_case *c;
    char name[32];
    int64_t size;
    double reach, flops;
};

// Those of a device: how many, at most MAX_RUNS.
int bench_list(jot_device_kind device, struct bench_run *out);

// Bytes a second of a copy and of a sum of 2^28 numbers, and operations a second of products of
// matrices of 8192 in f32, TF32 and bf16, on the device of calls.
struct bench_roofs {
    double copy, read, product[3];
};
enum roof_product { ROOF_F32, ROOF_TF32, ROOF_BF16 };
jot_status bench_roofs(struct bench_roofs *out);

// The least time of a call in seconds by these: that of its bytes, of which so many are results, or
// of the products of the run.
double bench_floor(const struct bench_roofs *roofs, const struct bench_run *run, double bytes,
                   double result_bytes);

// The inputs of a run.  On failure nothing is kept and a message is left.
jot_status bench_inputs(const struct bench_run *run, jot_array **in);

#endif
