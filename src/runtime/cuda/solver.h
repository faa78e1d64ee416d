// SPDX-License-Identifier: Apache-2.0
// Matrices for cuSOLVER and cuBLAS, which take them column by column.
//
// Thread-safety: calls of the libraries are made between cuda_solver_enter and cuda_solver_leave, by
// one thread at a time.
#ifndef RUNTIME_CUDA_SOLVER_H
#define RUNTIME_CUDA_SOLVER_H

#include "base/dtype.h"
#include "runtime/cuda/kernels.h"
#include "runtime/cuda/matrix.h"
#include "runtime/cuda/routine.h"

// A routine for a batch of matrices of m rows and n columns.
struct cuda_solve {
    struct cuda_routine base;
    jot_dtype dtype;
    cudaDataType type, real_type;
    size_t element, part;          // bytes of an element and of a real number
    int64_t batch, m, n, k;        // k is the smaller of m and n
    size_t device_work, host_work; // bytes that a call of the library wants
    bool is_batched;  // one call of the library for all matrices, which are small and many
    size_t addresses; // in the workspace, of operands that calls write and read
    // In the workspace; info, of a library, and bad, from what is not finite, are of each matrix.
    size_t work, info, bad;
    CUfunction kernels[8];
};

// Makes one of so many bytes for a call whose first params are dtype, batch, rows and columns, with the
// libraries and kernels that it needs.  In the context.  Leaves NULL for matrices that are too large
// for 32 bits.
jot_status cuda_solve_make(struct cuda_device *d, const struct rt_routine_call *call,
                           size_t bytes, const char *kernels, struct cuda_solve **out);
// Makes its work at least so many bytes.
void cuda_solve_want(struct cuda_solve *s, size_t device_work, size_t host_work);
// The memory of what all have, once device_work is known.
void cuda_solve_take(struct cuda_solve *s);

// The libraries for what this thread does next, on its stream.
jot_status cuda_solver_enter(struct cuda_device *d, const char *workspace);
void cuda_solver_leave(struct cuda_device *d);
jot_status cuda_solver_status(struct cuda_device *d, const char *what, cusolverStatus_t result);
jot_status cuda_blas_status(struct cuda_device *d, const char *what, cublasStatus_t result);
// What cuBLAS may use, at the start of every workspace.
#define CUDA_BLAS_WORK ((size_t)4 << 20)

// A matrix of a batch, of the routine that is called.
struct cuda_matrix {
    struct cuda_device *d;
    const struct cuda_solve *s;
    int64_t i;
    void *const *operands;
    char *workspace;
    void *host_work;
};
// Each of them, one after the other, between enter and leave.
jot_status cuda_solve_each(struct cuda_device *d, const struct cuda_solve *s,
                           void *const *operands, char *workspace,
                           jot_status (*one)(const struct cuda_matrix *c));
// Its part of operand `which`, its info, and memory in the workspace that is none of its own.
char *cuda_matrix_operand(const struct cuda_matrix *c, int which);
int *cuda_matrix_info(const struct cuda_matrix *c);
static inline char *cuda_matrix_at(const struct cuda_matrix *c, size_t offset)
{
    return c->workspace + offset;
}
static inline uint64_t cuda_matrix_address(const struct cuda_matrix *c, size_t offset)
{
    return cuda_address(cuda_matrix_at(c, offset));
}

// Whether the library is given all matrices of the order at once.
bool cuda_solve_has_batches(const struct cuda_solve *s, int64_t order);
// How many matrices of a batch are given to the library one after the other, unless they are large.
bool cuda_solve_is_few(const struct cuda_solve *s);
// The same where the host has no part in a call, which must want no memory of it.
bool cuda_solve_is_recorded(const struct cuda_solve *s);
// The routine, where asking for its workspace succeeded and it is wanted; released where not.
jot_status cuda_solve_finish(struct cuda_solve *s, jot_status status, bool is_wanted,
                             struct cuda_routine **out);

// QR of a matrix of m rows and n columns that lie one after the other, and so many columns of its q.
// Between enter and leave.
struct cuda_reflectors {
    jot_dtype dtype;
    cudaDataType type;
    int64_t m, n, columns;
    size_t device_work, host_work; // bytes, from ask
    int form_work;
};
// The routine's work becomes enough for it.
jot_status cuda_reflectors_ask(struct cuda_device *d, struct cuda_reflectors *r,
                               struct cuda_solve *s);
// r, and what q is formed of, in the place of a; tau has the smaller of m and n elements.
jot_status cuda_reflectors_find(const struct cuda_matrix *c, const struct cuda_reflectors *r,
                                char *a, char *tau, int *info);
// q there.
jot_status cuda_reflectors_form(const struct cuda_matrix *c, const struct cuda_reflectors *r,
                                char *a, char *tau, int *info);

// trsm of cuBLAS for the type.
typedef cublasStatus_t cuda_trsm(cublasHandle_t handle, int side, int triangle, int operation,
                                 int diagonal, int m, int n, const void *alpha, const void *a,
                                 int lda, void *b, int ldb);
cuda_trsm *cuda_trsm_of(jot_dtype d);

// The addresses of matrices of so many elements from there on, as part 0 or 1 of the addresses.  The
// kernel is addresses.
jot_status cuda_solve_write_addresses(struct cuda_device *d, const struct cuda_solve *s,
                                      CUfunction kernel, int part, const void *first,
                                      int64_t elements, char *workspace);
static inline void *cuda_solve_addresses(const struct cuda_solve *s, int part, char *workspace)
{
    return workspace + s->addresses + (size_t)(part * s->batch) * sizeof(void *);
}

// Sets info and bad to 0.
jot_status cuda_solve_clear(struct cuda_device *d, const struct cuda_solve *s, char *workspace);

// The kernel turn over all matrices, as it says; bad may be NULL.
struct cuda_turn {
    const void *from;
    void *to;
    int64_t rows, columns, from_row, to_row, from_matrix, to_matrix;
    bool is_lower;
    void *bad;
};
jot_status cuda_turn(struct cuda_device *d, CUfunction kernel, int64_t batch,
                     const struct cuda_turn *t);

// NaN in the results `first`, ... of matrices of which info or bad is set; the kernel is spoil.
jot_status cuda_spoil(struct cuda_device *d, CUfunction kernel, const struct cuda_solve *s,
                      uint32_t first, void *const *operands, char *workspace);

#endif
