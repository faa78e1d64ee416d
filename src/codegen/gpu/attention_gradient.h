// SPDX-License-Identifier: Apache-2.0
// The gradient of attention (schedule/kernels/attention.h) in three functions, with tensor cores.
//
// The first has some queries a warp and goes through the keys, as the forward pass does: of each row
// it keeps log2 of the sum of exp(f), and delta, the sum of weight * product.  No thread waits for
// another: each has a largest of its own, and they are joined at the end.
//
// The second has some keys a warp and goes through the queries 64 at a time, with scores and products
// turned: rows are keys.  Weights and changes are what the tensor cores take from registers for dv
// and dk.  Changes go through shared memory to warps that have queries, for dq: its sums over the keys
// of a block stay in memory, where the block of threads adds to them as it goes from keys to keys.
//
// The third adds what several blocks of threads have of dq, in order, and rounds.
#ifndef CODEGEN_GPU_ATTENTION_GRADIENT_H
#define CODEGEN_GPU_ATTENTION_GRADIENT_H

#include "codegen/gpu/tensor.h"
#include "codegen/kernel.h"
#include "codegen/types.h"
#include "schedule/kernels/attention.h"

#include <math.h>
#include <string.h>

#define TILES 2 // of 16 rows, of a warp
#define ROWS (TILES * GPU_TILE)
#define AT_ONCE 64 // keys or queries that come to shared memory at once
#define PART 32    // of them that a warp has in registers
#define LOG2_E 1.4426950408889634

struct gpu_gradient {
    struct cg_lowering *l;
    struct gpu_tensor t;
    struct attention_gradient g;
    LLVMBuilderRef b;
    LLVMTypeRef f32;
    int64_t queries, keys, depth, columns, batches;
    int64_t padded; // queries by whole blocks
    int64_t splits; // blocks of threads that share the keys of a batch
    int warps;      // of the second function
    int depths, widths;
    struct gpu_tensor_rows q, k, v, dy;
    LLVMValueRef batch;
    uint64_t statistics; // bytes of two f32 for each row; behind them sums of dq
    bool *is_done;       // by value: of an element
};

static inline LLVMValueRef whole(const struct gpu_gradient *c, int64_t x)
{
    return cg_int(c->l->module, x);
}

static inline LLVMValueRef times(struct gpu_gradient *c, LLVMValueRef x, int64_t y)
{
    return LLVMBuildMul(c->b, x, whole(c, y), "");
}

static inline LLVMValueRef sum_of(struct gpu_gradient *c, LLVMValueRef x, LLVMValueRef y)
{
    return LLVMBuildAdd(c->b, x, y, "");
}

// Where the rows of a turn are in shared memory: of two halves, in turn.
static inline LLVMValueRef half_of(struct gpu_gradient *c, int64_t halves, int64_t half,
                                   LLVMValueRef turn)
{
    LLVMValueRef odd = LLVMBuildAnd(c->b, turn, whole(c, 1), "");
    return gpu_tensor_plus(&c->t, times(c, odd, half), halves);
}

// Memory of so many f32; sets it.
LLVMValueRef *gpu_gradient_room(struct gpu_gradient *c, int64_t count);
void gpu_gradient_set_all(struct gpu_gradient *c, LLVMValueRef *all, int64_t count, double x);
// Whether some block of keys has less than its number of them.
bool gpu_gradient_has_odd_keys(const struct gpu_gradient *c);
// f of a score, g of a change, at a query and a key.
LLVMValueRef gpu_gradient_apply(struct gpu_gradient *c, LLVMValueRef score, LLVMValueRef query,
                                LLVMValueRef key);
LLVMValueRef gpu_gradient_apply_change(struct gpu_gradient *c, LLVMValueRef x,
                                       LLVMValueRef query, LLVMValueRef key);
// Whether there is such a key.
LLVMValueRef gpu_gradient_is_key(struct gpu_gradient *c, LLVMValueRef key);
// Memory: the statistics of a query; what a block of threads has of a row of dq.
LLVMValueRef gpu_gradient_statistics_of(struct gpu_gradient *c, LLVMValueRef query);
LLVMValueRef gpu_gradient_part_of(struct gpu_gradient *c, LLVMValueRef split,
                                  LLVMValueRef query, LLVMValueRef column);
// Rows of 16 by 16 numbers of a matrix in memory, from a row on, as the left operands of
// products: [tile][pieces][4].
void gpu_gradient_load_rows(struct gpu_gradient *c, const struct gpu_tensor_rows *r,
                            LLVMValueRef first, int pieces, LLVMValueRef *out);
// sums[tile][PART / 8][4] = left times the transpose of rows in shared memory: left of `pieces`
// tiles, in registers, or, where at_left is not NULL, in shared memory, too.
void gpu_gradient_multiply_rows(struct gpu_gradient *c, const LLVMValueRef *left,
                                LLVMValueRef at_left, int64_t pitch, int pieces,
                                LLVMValueRef at, LLVMValueRef *sums);
// to[tile][eighths][4] += left, pairs [tile][PART / 8][2], times rows in shared memory.
void gpu_gradient_add_rows(struct gpu_gradient *c, const LLVMValueRef *left, LLVMValueRef at,
                           int64_t pitch, int64_t eighths, LLVMValueRef *to);
// Pairs of [tile][PART / 8][4] numbers.
void gpu_gradient_round_all(struct gpu_gradient *c, const LLVMValueRef *x, LLVMValueRef *out);
// The axes of the batch of a chunk, so many of which a batch has; which of them it is.
LLVMValueRef gpu_gradient_set_batch(struct gpu_gradient *c, LLVMValueRef chunk, int64_t parts);
// The thread's warp, an i64.
LLVMValueRef gpu_gradient_warp_of(struct gpu_gradient *c);
// The function's threads and tables and what stands before the loop; its end, with so many blocks of
// threads.
struct cg_kernel_step *gpu_gradient_open_function(struct gpu_gradient *c, struct cg_kernel *out,
                                                  const char *suffix, unsigned threads,
                                                  uint32_t at);
void gpu_gradient_close_function(struct gpu_gradient *c, struct cg_kernel_step *step,
                                 int64_t chunks);

#endif
