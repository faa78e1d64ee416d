// SPDX-License-Identifier: Apache-2.0
// How well the kernels of a program use a device, by what is compiled: nothing is run.
#ifndef RANDOM_PARALLELISM_H
#define RANDOM_PARALLELISM_H

#include "nest/program.h"

// A device: how many threads it has, and operations of one that are not worth another.
struct parallelism_device {
    const char *target; // as the code generator takes it, NULL: this machine
    double workers, grain, least;
};
extern const struct parallelism_device parallelism_gpu, parallelism_host;

struct parallelism {
    double ratio;       // the worst: operations of one worker over what they may be
    const char *kernel; // in which kernel
    int n_named; // kernels of which a part is one thread's, each step of which needs the one before
};

// 0 when the code generator does not take it.  A line for each kernel goes to the list, if there is one.
struct parallelism parallelism_of(struct arena *arena, const struct nest_program *p,
                                  const struct parallelism_device *device, struct strbuf *list);

#endif
