// SPDX-License-Identifier: Apache-2.0
// The one shape of sums and products (eval_reduce.c).  Private to eval_*.c.
//
//     struct eval_fold f = eval_fold_make(arena, op, dtype, n);
//     for each block of f.block of the n elements:
//         struct eval_number *lanes = eval_fold_open_block(&f);
//         ... element i of the block goes to lanes[i % FOLD_LANES] ...
//         eval_fold_close_block(&f);
//     struct eval_number result = eval_fold_finish(&f);     // f can be used again
#ifndef IR_EVAL_FOLD_H
#define IR_EVAL_FOLD_H

#include "base/fold.h"
#include "ir/eval_ops.h"

struct eval_fold {
    enum ir_op op;
    struct machine machine;
    struct eval_number identity;
    int64_t block;
    int n_lanes; // those that fold: the rest of lanes stays the identity
    struct eval_number lanes[FOLD_LANES];
    struct eval_number *blocks;
    int64_t n_blocks;
};

struct eval_fold eval_fold_make(struct arena *arena, enum ir_op op, jot_dtype d, int64_t n);
struct eval_number *eval_fold_open_block(struct eval_fold *f);
void eval_fold_close_block(struct eval_fold *f);
struct eval_number eval_fold_finish(struct eval_fold *f);

#endif
