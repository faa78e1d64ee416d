// SPDX-License-Identifier: Apache-2.0
// What the functions of a loop over the points of a network know of it.
#ifndef CODEGEN_GPU_NETWORK_H
#define CODEGEN_GPU_NETWORK_H

#include "codegen/kernel.h"

#include "base/vec.h"

// Of what accumulates: a product of rows with rows, terms, or pairs of factors.
enum sum_kind { SUM_PRODUCT, SUM_TERMS, SUM_PAIRS, SUM_KINDS };

struct gpu_sum {
    const struct nest_statement *put;   // or NULL:
    const struct nest_combine *combine; // of the fold
    enum sum_kind kind;
    int64_t count, width; // elements; PRODUCT: of the second factor
    int64_t row[2];       // where the factors begin
    int64_t task;         // the first tile of its sums
};

struct gpu_network {
    const struct nest_statement *fold;
    nest_id loop;
    jot_dtype dtype;
    int64_t points, pitch, rows;
    int64_t side, tasks, blocks; // sums.c: of a tile, tiles, and blocks of the fold
    VEC(struct gpu_sum) sums;
    int64_t *kept;     // by buffer: its first row, or -1
    uint32_t *written; // by buffer: the statement of the body that does so last
    LLVMValueRef memory, point;
    struct squads *squads; // or NULL: a point is a thread's
};

// The steps of a kernel whose only loop is statement `at` of its body, such a one.
void gpu_network_lower(struct cg_lowering *l, uint32_t at, struct cg_kernel *out);
// A put of its points; false: as on the host.
bool gpu_network_put(struct cg_lowering *l, const struct nest_statement *put);

// Element `row` of what the point has in memory.
LLVMValueRef gpu_network_term(struct cg_lowering *l, const struct gpu_network *w,
                              LLVMValueRef row);
// Terms of the combines.
void gpu_network_yield(struct cg_lowering *l, const struct gpu_network *w);

#endif
