// SPDX-License-Identifier: Apache-2.0
// The routines cholesky and triangular_solve, by cuSOLVER and cuBLAS.
//
// What lies row by row is to the libraries the transposed matrix, which the solver of triangular systems
// makes the best of.  cuSOLVER finds a lower triangle almost three times as fast as an upper one, so that
// a matrix for cholesky is turned before and after.
#include "runtime/cuda/solver.h"

#include "base/memory.h"
#include "base/status.h"

#include <string.h>

// ---- Cholesky

enum { SYMMETRIZE, JUDGE, CHOLESKY_END };

static jot_status factor(struct cuda_device *d, const struct cuda_solve *s, char *l,
                         char *workspace)
{
    jot_status status = JOT_OK;
    JOT_TRY(cuda_solver_enter(d, workspace));
    for (int64_t i = 0; i < s->batch && status == JOT_OK; i++)
        status = cuda_solver_status(
            d, "cholesky",
            cuda.cusolver.cusolverDnXpotrf(
                d->solver, d->solver_params, CUBLAS_FILL_MODE_LOWER, s->n, s->type,
                l + (size_t)(i * s->n * s->n) * s->element, s->n, s->type, workspace + s->work,
                s->device_work, NULL, 0, (int *)(void *)(workspace + s->info) + i));
    cuda_solver_leave(d);
    return status;
}

static jot_status run_cholesky(struct cuda_device *d, const struct cuda_routine *r,
                               void *const *operands, char *workspace)
{
    const struct cuda_solve *s = (const struct cuda_solve *)r;
    uint64_t n = (uint64_t)s->n, batch = (uint64_t)s->batch, across = (n + 31) / 32;
    uint64_t l = cuda_place(operands[1]), info = cuda_place(workspace + s->info);
    JOT_TRY(cuda_solve_clear(d, s, workspace));
    JOT_TRY(cuda_start(d, &(struct cuda_start){s->kernels[SYMMETRIZE],
                                               across * across * batch,
                                               256,
                                               {cuda_place(operands[0]), l, n}}));
    JOT_TRY(factor(d, s, operands[1], workspace));
    JOT_TRY(cuda_start(
        d, &(struct cuda_start){
               s->kernels[JUDGE], cuda_blocks(d, s->batch), 256, {l, info, n, batch}}));
    return cuda_start(
        d, &(struct cuda_start){
               s->kernels[CHOLESKY_END], across * across * batch, 256, {l, info, n}});
}

static jot_status ask_cholesky(struct cuda_device *d, struct cuda_solve *s)
{
    JOT_TRY(cuda_solver_enter(d, NULL));
    jot_status status =
        cuda_solver_status(d, "cholesky",
                           cuda.cusolver.cusolverDnXpotrf_bufferSize(
                               d->solver, d->solver_params, CUBLAS_FILL_MODE_LOWER, s->n,
                               s->type, NULL, s->n, s->type, &s->device_work, &s->host_work));
    cuda_solver_leave(d);
    return status;
}

jot_status cuda_cholesky_bind(struct cuda_device *d, const struct rt_routine_call *call,
                              struct cuda_routine **out)
{
    struct cuda_solve *s;
    JOT_TRY(cuda_solve_make(d, call, sizeof *s, "symmetrize cholesky_judge cholesky_end", &s));
    if (!s)
        return JOT_OK;
    jot_status status = ask_cholesky(d, s);
    s->base.run = run_cholesky;
    cuda_solve_take(s);
    return cuda_solve_finish(s, status, cuda_solve_is_recorded(s), out);
}

// ---- Triangular systems

static jot_status solve_all(struct cuda_device *d, const struct cuda_solve *s,
                            void *const *operands)
{
    const int64_t *p = s->base.call.params;
    bool left = p[4], lower = p[5], transposed = p[6], conjugated = p[7], unit = p[8];
    const float one_f[2] = {1, 0};
    const double one_d[2] = {1, 0};
    const void *one = s->part == 4 ? (const void *)one_f : one_d;
    int64_t order = left ? s->m : s->n;
    conjugated = conjugated && dtype_is_complex(s->dtype);
    for (int64_t i = 0; i < s->batch; i++) {
        // The library sees the transposed system, with the matrices on the other side.
        cublasStatus_t result = cuda_trsm_of(s->dtype)(
            d->blas_routines, left ? CUBLAS_SIDE_RIGHT : CUBLAS_SIDE_LEFT,
            lower ? CUBLAS_FILL_MODE_UPPER : CUBLAS_FILL_MODE_LOWER,
            !transposed  ? CUBLAS_OP_N
            : conjugated ? CUBLAS_OP_C
                         : CUBLAS_OP_T,
            unit ? CUBLAS_DIAG_UNIT : CUBLAS_DIAG_NON_UNIT, (int)s->n, (int)s->m, one,
            (const char *)operands[0] + (size_t)(i * order * order) * s->element, (int)order,
            (char *)operands[2] + (size_t)(i * s->m * s->n) * s->element, (int)s->n);
        JOT_TRY(cuda_blas_status(d, "triangular_solve", result));
    }
    return JOT_OK;
}

static jot_status run_triangular(struct cuda_device *d, const struct cuda_routine *r,
                                 void *const *operands, char *workspace)
{
    const struct cuda_solve *s = (const struct cuda_solve *)r;
    JOT_TRY(cuda_copy(&d->base, operands[2], &d->base, operands[1], r->call.bytes[1]));
    JOT_TRY(cuda_solver_enter(d, workspace));
    jot_status status = solve_all(d, s, operands);
    cuda_solver_leave(d);
    return status;
}

jot_status cuda_triangular_solve_bind(struct cuda_device *d, const struct rt_routine_call *call,
                                      struct cuda_routine **out)
{
    const int64_t *p = call->params;
    struct cuda_solve *s;
    // cuBLAS conjugates no matrix that it does not transpose.
    if (p[7] && !p[6] && dtype_is_complex((jot_dtype)p[0]))
        return JOT_OK;
    JOT_TRY(cuda_solve_make(d, call, sizeof *s, "", &s));
    if (!s)
        return JOT_OK;
    int64_t order = p[4] ? s->m : s->n;
    s->k = order;
    s->base.run = run_triangular;
    cuda_solve_take(s);
    return cuda_solve_finish(s, JOT_OK, cuda_solve_is_recorded(s), out);
}
