// SPDX-License-Identifier: Apache-2.0
// The collectives of processes, each done as one call and checked against its definition.
#ifndef RUNTIME_JOB_COLLECTIVES_H
#define RUNTIME_JOB_COLLECTIVES_H

#include "job.h"

enum kind {
    ALL_GATHER,
    ALL_TO_ALL,
    PERMUTE,
    BROADCAST,
    REDUCE_SCATTER,
    ALL_REDUCE,
    BARRIER,
    KINDS
};

struct shape {
    struct rt_combine combine;
    size_t elements;
};

// Small numbers whose sums and products are rounded in all float types.
void fill(jot_dtype d, int64_t member, size_t n, void *out);
jot_status do_one(enum kind kind, const struct rt_group *g, const struct shape *s,
                  const void *const *from, void *const *to);
// In place where that is allowed.
void check_one(int index, enum kind kind, const struct rt_group *g, const struct shape *s);

#endif
