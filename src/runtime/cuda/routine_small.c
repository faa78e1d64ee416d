// SPDX-License-Identifier: Apache-2.0
// The routine svd for matrices so small that a part of a warp holds one in registers
// (small_kernels.inc), and qr for those that a block can share (qr_kernels.inc).
#include "runtime/cuda/matrix.h"
#include "runtime/cuda/routine.h"

#include "base/dtype.h"
#include "base/memory.h"
#include "base/status.h"

// Fewer are the library's.
#define MANY 17

struct small {
    struct cuda_routine base;
    CUfunction kernel;
    int64_t m, n, batch;
    bool has_vectors;
    int side;
};

static jot_status run_small(struct cuda_device *d, const struct cuda_routine *r,
                            void *const *operands, char *workspace)
{
    const struct small *q = (const struct small *)r;
    int64_t matrices = 128 / (q->side / 2); // of a block
    const void *u = q->has_vectors ? operands[2] : NULL,
               *vh = q->has_vectors ? operands[3] : NULL;
    (void)workspace;
    return cuda_start(d,
                      &(struct cuda_start){
                          .kernel = q->kernel,
                          .blocks = (uint64_t)((q->batch + matrices - 1) / matrices),
                          .block = 128,
                          .parameters = {cuda_address(operands[0]), cuda_address(operands[1]),
                                         cuda_address(u), cuda_address(vh), (uint64_t)q->m,
                                         (uint64_t)q->n, (uint64_t)q->batch, q->has_vectors}});
}

jot_status cuda_small_svd_bind(struct cuda_device *d, const struct rt_routine_call *call,
                               struct cuda_routine **out)
{
    const int64_t *p = call->params;
    int64_t most = p[2] > p[3] ? p[2] : p[3], least = p[2] > p[3] ? p[3] : p[2];
    int side = most > 16 ? 32 : 16;
    // Of single precision the registers of a thread hold twice as much.
    if (most > ((jot_dtype)p[0] == JOT_F32 ? 32 : 16) || least < 1 || p[1] < MANY ||
        (jot_dtype)p[0] == JOT_C128 || (p[4] == 2 && p[2] != p[3]))
        return JOT_OK;
    struct small *q = memory_allocate_zeroed(sizeof *q);
    if (!q)
        return status_out_of_memory();
    q->base.run = run_small;
    q->m = p[2];
    q->n = p[3];
    q->batch = p[1];
    q->has_vectors = p[4] != 0;
    q->side = side;
    jot_status status = cuda_matrix_kernels(d, side == 16 ? CUDA_OF_SMALL_16 : CUDA_OF_SMALL_32,
                                            (jot_dtype)p[0], "jacobi", &q->kernel);
    if (status == JOT_OK)
        *out = &q->base;
    else
        memory_release(q);
    return status;
}

static jot_status run_qr(struct cuda_device *d, const struct cuda_routine *r,
                         void *const *operands, char *workspace)
{
    const struct small *q = (const struct small *)r;
    int64_t columns = r->call.params[4] || q->m < q->n ? q->m : q->n;
    (void)workspace;
    return cuda_start(
        d, &(struct cuda_start){q->kernel,
                                (uint64_t)q->batch,
                                q->side == 32 ? 32 : 128,
                                {cuda_address(operands[0]), cuda_address(operands[1]),
                                 cuda_address(operands[2]), (uint64_t)q->m, (uint64_t)q->n,
                                 (uint64_t)columns}});
}

jot_status cuda_small_qr_bind(struct cuda_device *d, const struct rt_routine_call *call,
                              struct cuda_routine **out)
{
    const int64_t *p = call->params;
    int64_t most = p[2] > p[3] ? p[2] : p[3], least = p[2] > p[3] ? p[3] : p[2];
    int side = most > 32 ? 64 : 32;
    // What a block shares are 48 KB.
    if (most > ((jot_dtype)p[0] == JOT_C128 ? 32 : 64) || least < 1 || p[1] < MANY ||
        p[1] > INT32_MAX)
        return JOT_OK;
    struct small *q = memory_allocate_zeroed(sizeof *q);
    if (!q)
        return status_out_of_memory();
    q->base.run = run_qr;
    q->m = p[2];
    q->n = p[3];
    q->batch = p[1];
    q->side = side;
    jot_status status = cuda_matrix_kernels(d, side == 32 ? CUDA_OF_QR_32 : CUDA_OF_QR_64,
                                            (jot_dtype)p[0], "qr_small", &q->kernel);
    if (status == JOT_OK)
        *out = &q->base;
    else
        memory_release(q);
    return status;
}
