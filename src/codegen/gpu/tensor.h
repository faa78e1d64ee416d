// SPDX-License-Identifier: Apache-2.0
// Products of small matrices of half types by the tensor cores of a warp, and what they are read
// from: rows that are on their way from memory to shared memory.
#ifndef CODEGEN_GPU_TENSOR_H
#define CODEGEN_GPU_TENSOR_H

#include "codegen/lower.h"

#define GPU_TILE 16 // rows of a product

struct gpu_tensor {
    struct cg_lowering *l;
    LLVMBuilderRef b;
    LLVMTypeRef f32, i32, pair; // pair: two numbers of a half type, as tensor cores take them
    bool is_bf16;
    unsigned warps;
    LLVMValueRef shared;      // of the block
    LLVMValueRef row, column; // i64: of the thread in a tile of 16 by 8, and twice its column
};

// The block's threads and the shared memory of so many bytes.
struct gpu_tensor gpu_tensor_make(struct cg_lowering *l, jot_dtype dtype, unsigned warps,
                                  uint64_t shared_bytes);
LLVMValueRef gpu_tensor_call(struct gpu_tensor *t, const char *name, LLVMTypeRef overload,
                             int n, LLVMValueRef *arguments);
LLVMValueRef gpu_tensor_number(const struct gpu_tensor *t, double x); // an f32
LLVMValueRef gpu_tensor_load_f32(const struct gpu_tensor *t, LLVMValueRef at);
LLVMValueRef gpu_tensor_plus(struct gpu_tensor *t, LLVMValueRef x, int64_t y); // of i64
LLVMValueRef gpu_tensor_at_most(struct gpu_tensor *t, LLVMValueRef x, int64_t most);

// Where the thread's row of four matrices of 8 by 8 begins, in rows so many bytes apart: two beside
// one another, then those of 8 more rows; or, where is_column, the other way.
LLVMValueRef gpu_tensor_matrix(struct gpu_tensor *t, int64_t pitch, bool is_column);
// Four matrices whose rows begin at an offset of the shared memory, or, turned, whose columns do.
void gpu_tensor_load(struct gpu_tensor *t, LLVMValueRef at, bool turned, LLVMValueRef out[4]);
// sum += x y, of 16 by 16 and 16 by 8 numbers.
void gpu_tensor_multiply(struct gpu_tensor *t, LLVMValueRef sum[4], const LLVMValueRef x[4],
                         const LLVMValueRef y[2]);
// Two numbers as a half type, the first in the lower bits; an i32.
LLVMValueRef gpu_tensor_round(struct gpu_tensor *t, LLVMValueRef low, LLVMValueRef high);
// 2^(x factor - top)
LLVMValueRef gpu_tensor_exponential(struct gpu_tensor *t, LLVMValueRef x, LLVMValueRef factor,
                                    LLVMValueRef top);
// What exponents of a row are relative to: its largest number, or 0 where all are -infinity, which
// weighs nothing then.
LLVMValueRef gpu_tensor_reference(const struct gpu_tensor *t, LLVMValueRef top);
LLVMValueRef gpu_tensor_largest(struct gpu_tensor *t, LLVMValueRef x, LLVMValueRef y);
// Of the thread whose number differs in the bits of `by`.
LLVMValueRef gpu_tensor_other(struct gpu_tensor *t, LLVMValueRef x, int by);

// Rows of a matrix in memory, whose index is that of a load.
struct gpu_tensor_rows {
    const struct nest_statement *load;
    nest_id row, column; // its axes
    int64_t rows;        // that there are; further ones are zeros
    int64_t pitch;       // bytes from one to the next in shared memory
    bool by_panels;      // of warpgroups
};
// Bytes from row to row of so many numbers: an odd number of 16, as banks want it.
int64_t gpu_tensor_pitch(int64_t columns);
// All rows of a load along two of its axes, by panels or not.
struct gpu_tensor_rows gpu_tensor_rows_of(const struct cg_lowering *l,
                                          const struct nest_statement *load, nest_id row,
                                          nest_id column, bool by_panels);
// Starts the copies of `count` rows from row `first` on to an offset of the shared memory.
void gpu_tensor_fetch(struct gpu_tensor *t, const struct gpu_tensor_rows *r, LLVMValueRef first,
                      int64_t count, LLVMValueRef offset);
// Starts the copy of 16 bytes.
void gpu_tensor_copy(struct gpu_tensor *t, LLVMValueRef to, LLVMValueRef from,
                     LLVMValueRef size);
// All of the thread's copies have come.
void gpu_tensor_wait(struct gpu_tensor *t);
LLVMValueRef gpu_tensor_shared_at(struct gpu_tensor *t, LLVMValueRef bytes);

#endif
