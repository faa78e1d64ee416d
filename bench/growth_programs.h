// SPDX-License-Identifier: Apache-2.0
// Functions of any size whose growth is measured (growth.c).
#ifndef JOT_BENCH_GROWTH_PROGRAMS_H
#define JOT_BENCH_GROWTH_PROGRAMS_H

#include <jot/jot.h>

struct growth_family {
    const char *name; // NULL: the end of a list
    jot_body *body;   // ctx is the size, an int
    int n_in;         // 0: as many as a quarter of the size
    bool is_graded;   // the gradient in all arguments is compiled
    jot_dtype dtype;
    int rank, extent; // of every argument; the extent 0 is the size
    // Of a line of the graph, at most, for the host: memory, and the processor's time on a fast machine.
    // 0: what is compiled for its kernels is nearly all that it costs.
    int bytes, microseconds;
};

extern const struct growth_family growth_graphs[]; // growth_graphs.c
extern const struct growth_family growth_loops[];  // growth_loops.c
static const struct growth_family *const growth_lists[] = {growth_graphs, growth_loops};

static inline int growth_size(const void *ctx) { return *(const int *)ctx; }

#endif
