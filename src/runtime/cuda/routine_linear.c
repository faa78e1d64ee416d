// SPDX-License-Identifier: Apache-2.0
// The routines cholesky and triangular_solve, by cuSOLVER and cuBLAS.
//
// What lies row by row is to the libraries the transposed matrix, which the solver of triangular systems
// makes the best of.  cuSOLVER finds a lower triangle almost three times as fast as an upper
// one, so that a matrix for cholesky is turned before and after.
#include "runtime/cuda/solver.h"

#include "base/memory.h"
#include "base/status.h"

#include <string.h>

// ---- Cholesky

enum { SYMMETRIZE, JUDGE, CHOLESKY_END, ADDRESSES };

typedef cusolverStatus_t potrf_batched(cusolverDnHandle_t handle, cublasFillMode_t triangle,
                                       int n, void *addresses, int lda, int *info, int batch);

static potrf_batched *potrf_batched_of(jot_dtype d)
{
    return d == JOT_F32   ? (potrf_batched *)cuda.cusolver.cusolverDnSpotrfBatched
           : d == JOT_F64 ? (potrf_batched *)cuda.cusolver.cusolverDnDpotrfBatched
           : d == JOT_C64 ? (potrf_batched *)cuda.cusolver.cusolverDnCpotrfBatched
                          : (potrf_batched *)cuda.cusolver.cusolverDnZpotrfBatched;
}

static jot_status factor_all(struct cuda_device *d, const struct cuda_solve *s,
                             void *const *operands, char *workspace)
{
    JOT_TRY(cuda_solve_write_addresses(d, s, s->kernels[ADDRESSES], 0, operands[1], s->n * s->n,
                                       workspace));
    JOT_TRY(cuda_solver_enter(d, workspace));
    jot_status status = cuda_solver_status(
        d, "cholesky",
        potrf_batched_of(s->dtype)(d->solver, CUBLAS_FILL_MODE_LOWER, (int)s->n,
                                   cuda_solve_addresses(s, 0, workspace), (int)s->n,
                                   (int *)(void *)(workspace + s->info), (int)s->batch));
    cuda_solver_leave(d);
    return status;
}

static jot_status factor(const struct cuda_matrix *c)
{
    const struct cuda_solve *s = c->s;
    return cuda_solver_status(c->d, "cholesky",
                              cuda.cusolver.cusolverDnXpotrf(
                                  c->d->solver, c->d->solver_params, CUBLAS_FILL_MODE_LOWER,
                                  s->n, s->type, cuda_matrix_operand(c, 1), s->n, s->type,
                                  cuda_matrix_at(c, s->work), s->device_work, NULL, 0,
                                  cuda_matrix_info(c)));
}

static jot_status run_cholesky(struct cuda_device *d, const struct cuda_routine *r,
                               void *const *operands, char *workspace)
{
    const struct cuda_solve *s = (const struct cuda_solve *)r;
    uint64_t n = (uint64_t)s->n, batch = (uint64_t)s->batch, across = (n + 31) / 32;
    uint64_t l = cuda_address(operands[1]), info = cuda_address(workspace + s->info);
    JOT_TRY(cuda_solve_clear(d, s, workspace));
    JOT_TRY(cuda_start(d, &(struct cuda_start){s->kernels[SYMMETRIZE],
                                               across * across * batch,
                                               256,
                                               {cuda_address(operands[0]), l, n}}));
    JOT_TRY(s->is_batched ? factor_all(d, s, operands, workspace)
                          : cuda_solve_each(d, s, operands, workspace, factor));
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
    JOT_TRY(cuda_solve_make(d, call, sizeof *s,
                            "symmetrize cholesky_judge cholesky_end addresses", &s));
    if (!s)
        return JOT_OK;
    jot_status status = ask_cholesky(d, s);
    s->base.run = run_cholesky;
    cuda_solve_take(s);
    return cuda_solve_finish(s, status, cuda_solve_is_recorded(s), out);
}

// ---- Triangular systems

typedef cublasStatus_t trsm_batched(cublasHandle_t handle, int side, int triangle,
                                    int operation, int diagonal, int m, int n,
                                    const void *alpha, const void *a, int lda, void *b, int ldb,
                                    int batch);

static trsm_batched *trsm_batched_of(jot_dtype d)
{
    return d == JOT_F32   ? (trsm_batched *)cuda.cublas.cublasStrsmBatched
           : d == JOT_F64 ? (trsm_batched *)cuda.cublas.cublasDtrsmBatched
           : d == JOT_C64 ? (trsm_batched *)cuda.cublas.cublasCtrsmBatched
                          : (trsm_batched *)cuda.cublas.cublasZtrsmBatched;
}

// The library sees the transposed system, with the matrices on the other side.
struct system {
    int side, triangle, operation, diagonal, order;
};

static struct system system_of(const struct cuda_solve *s)
{
    const int64_t *p = s->base.call.params;
    bool left = p[4], lower = p[5], transposed = p[6], conjugated = p[7], unit = p[8];
    conjugated = conjugated && dtype_is_complex(s->dtype);
    return (struct system){.side = left ? CUBLAS_SIDE_RIGHT : CUBLAS_SIDE_LEFT,
                           .triangle = lower ? CUBLAS_FILL_MODE_UPPER : CUBLAS_FILL_MODE_LOWER,
                           .operation = !transposed  ? CUBLAS_OP_N
                                        : conjugated ? CUBLAS_OP_C
                                                     : CUBLAS_OP_T,
                           .diagonal = unit ? CUBLAS_DIAG_UNIT : CUBLAS_DIAG_NON_UNIT,
                           .order = (int)(left ? s->m : s->n)};
}

static const void *one_of(const struct cuda_solve *s)
{
    static const float one_f[2] = {1, 0};
    static const double one_d[2] = {1, 0};
    return s->part == sizeof(float) ? (const void *)one_f : one_d;
}

typedef cublasStatus_t trsv(cublasHandle_t handle, int triangle, int operation, int diagonal,
                            int n, const void *a, int lda, void *x, int stride);

static trsv *trsv_of(jot_dtype d)
{
    return d == JOT_F32   ? (trsv *)cuda.cublas.cublasStrsv_v2
           : d == JOT_F64 ? (trsv *)cuda.cublas.cublasDtrsv_v2
           : d == JOT_C64 ? (trsv *)cuda.cublas.cublasCtrsv_v2
                          : (trsv *)cuda.cublas.cublasZtrsv_v2;
}

// Whether a system has one right side and is one of trsv, whose matrix is always on the left.  For trsm one right
// side is a block of them.
static bool is_of_one(const struct cuda_solve *s, struct system *t)
{
    if (t->side == CUBLAS_SIDE_LEFT)
        return s->m == 1;
    if (s->n != 1 || t->operation == CUBLAS_OP_C)
        return false;
    t->operation = t->operation == CUBLAS_OP_N ? CUBLAS_OP_T : CUBLAS_OP_N;
    return true;
}

static jot_status solve(const struct cuda_matrix *c)
{
    const struct cuda_solve *s = c->s;
    struct system t = system_of(s);
    if (is_of_one(s, &t))
        return cuda_blas_status(c->d, "triangular_solve",
                                trsv_of(s->dtype)(c->d->blas_routines, t.triangle, t.operation,
                                                  t.diagonal, t.order,
                                                  cuda_matrix_operand(c, 0), t.order,
                                                  cuda_matrix_operand(c, 2), 1));
    return cuda_blas_status(
        c->d, "triangular_solve",
        cuda_trsm_of(s->dtype)(c->d->blas_routines, t.side, t.triangle, t.operation, t.diagonal,
                               (int)s->n, (int)s->m, one_of(s), cuda_matrix_operand(c, 0),
                               t.order, cuda_matrix_operand(c, 2), (int)s->n));
}

static jot_status solve_all(struct cuda_device *d, const struct cuda_solve *s,
                            void *const *operands, char *workspace)
{
    struct system t = system_of(s);
    CUfunction addresses = s->kernels[0];
    JOT_TRY(cuda_solve_write_addresses(d, s, addresses, 0, operands[0], t.order * t.order,
                                       workspace));
    JOT_TRY(
        cuda_solve_write_addresses(d, s, addresses, 1, operands[2], s->m * s->n, workspace));
    JOT_TRY(cuda_solver_enter(d, workspace));
    jot_status status = cuda_blas_status(
        d, "triangular_solve",
        trsm_batched_of(s->dtype)(
            d->blas_routines, t.side, t.triangle, t.operation, t.diagonal, (int)s->n, (int)s->m,
            one_of(s), cuda_solve_addresses(s, 0, workspace), t.order,
            cuda_solve_addresses(s, 1, workspace), (int)s->n, (int)s->batch));
    cuda_solver_leave(d);
    return status;
}

static jot_status run_triangular(struct cuda_device *d, const struct cuda_routine *r,
                                 void *const *operands, char *workspace)
{
    const struct cuda_solve *s = (const struct cuda_solve *)r;
    JOT_TRY(cuda_copy(&d->base, operands[2], &d->base, operands[1], r->call.bytes[1]));
    return s->is_batched ? solve_all(d, s, operands, workspace)
                         : cuda_solve_each(d, s, operands, workspace, solve);
}

jot_status cuda_triangular_solve_bind(struct cuda_device *d, const struct rt_routine_call *call,
                                      struct cuda_routine **out)
{
    const int64_t *p = call->params;
    struct cuda_solve *s;
    // cuBLAS conjugates no matrix that it does not transpose.
    if (p[7] && !p[6] && dtype_is_complex((jot_dtype)p[0]))
        return JOT_OK;
    JOT_TRY(cuda_solve_make(d, call, sizeof *s, "addresses", &s));
    if (!s)
        return JOT_OK;
    s->k = p[4] ? s->m : s->n;
    s->is_batched = cuda_solve_has_batches(s, s->k);
    s->base.run = run_triangular;
    cuda_solve_take(s);
    return cuda_solve_finish(s, JOT_OK, cuda_solve_is_recorded(s), out);
}
