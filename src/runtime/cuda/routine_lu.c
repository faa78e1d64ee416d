// SPDX-License-Identifier: Apache-2.0
// The routine lu, by cuSOLVER on a transposed copy, for it exchanges rows.
#include "runtime/cuda/solver.h"

#include "base/memory.h"
#include "base/status.h"

enum { TURN, ORDER, PLACES };

struct lu {
    struct cuda_solve base;
    size_t copy, pivots; // in the workspace
};

static const struct lu *lu_of(const struct cuda_matrix *c) { return (const struct lu *)c->s; }

static int64_t *pivots_at(const struct cuda_matrix *c)
{
    return (int64_t *)(void *)cuda_matrix_at(c, lu_of(c)->pivots) + c->i * c->s->k;
}

static jot_status factor(const struct cuda_matrix *c)
{
    const struct cuda_solve *s = c->s;
    return cuda_solver_status(
        c->d, "lu",
        cuda.cusolver.cusolverDnXgetrf(c->d->solver, c->d->solver_params, s->m, s->n, s->type,
                                       cuda_matrix_at(c, lu_of(c)->copy) +
                                           (size_t)(c->i * s->m * s->n) * s->element,
                                       s->m, pivots_at(c), s->type, cuda_matrix_at(c, s->work),
                                       s->device_work, NULL, 0, cuda_matrix_info(c)));
}

typedef cublasStatus_t getrf_batched(cublasHandle_t handle, int n, void *places, int lda,
                                     int *pivots, int *info, int batch);

static getrf_batched *getrf_batched_of(jot_dtype d)
{
    return d == JOT_F32   ? (getrf_batched *)cuda.cublas.cublasSgetrfBatched
           : d == JOT_F64 ? (getrf_batched *)cuda.cublas.cublasDgetrfBatched
           : d == JOT_C64 ? (getrf_batched *)cuda.cublas.cublasCgetrfBatched
                          : (getrf_batched *)cuda.cublas.cublasZgetrfBatched;
}

static jot_status factor_all(struct cuda_device *d, const struct lu *lu, char *workspace)
{
    const struct cuda_solve *s = &lu->base;
    JOT_TRY(cuda_solve_place(d, s, s->kernels[PLACES], 0, workspace + lu->copy, s->n * s->n,
                             workspace));
    JOT_TRY(cuda_solver_enter(d, workspace));
    jot_status status =
        cuda_blas_status(d, "lu",
                         getrf_batched_of(s->dtype)(
                             d->blas_routines, (int)s->n, cuda_solve_places(s, 0, workspace),
                             (int)s->n, (int *)(void *)(workspace + lu->pivots),
                             (int *)(void *)(workspace + s->info), (int)s->batch));
    cuda_solver_leave(d);
    return status;
}

static jot_status factor_copies(struct cuda_device *d, const struct lu *lu,
                                void *const *operands, char *workspace)
{
    const struct cuda_solve *s = &lu->base;
    struct cuda_turn in = {.from = operands[0],
                           .to = workspace + lu->copy,
                           .rows = s->m,
                           .columns = s->n,
                           .from_row = s->n,
                           .to_row = s->m,
                           .from_matrix = s->m * s->n,
                           .to_matrix = s->m * s->n};
    struct cuda_turn out = in;
    out.from = in.to;
    out.to = operands[1];
    out.rows = s->n;
    out.columns = s->m;
    out.from_row = s->m;
    out.to_row = s->n;
    JOT_TRY(cuda_turn(d, s->kernels[TURN], s->batch, &in));
    JOT_TRY(s->is_batched ? factor_all(d, lu, workspace)
                          : cuda_solve_each(d, s, operands, workspace, factor));
    return cuda_turn(d, s->kernels[TURN], s->batch, &out);
}

static jot_status run_lu(struct cuda_device *d, const struct cuda_routine *r,
                         void *const *operands, char *workspace)
{
    const struct lu *lu = (const struct lu *)r;
    const struct cuda_solve *s = &lu->base;
    JOT_TRY(factor_copies(d, lu, operands, workspace));
    return cuda_start(
        d, &(struct cuda_start){s->kernels[ORDER],
                                (uint64_t)s->batch,
                                256,
                                {cuda_place(workspace + lu->pivots), cuda_place(operands[2]),
                                 cuda_place(operands[3]), (uint64_t)s->k, (uint64_t)s->m,
                                 s->is_batched ? 1 : 2}});
}

static jot_status ask_lu(struct cuda_device *d, struct cuda_solve *s)
{
    JOT_TRY(cuda_solver_enter(d, NULL));
    jot_status status =
        cuda_solver_status(d, "lu",
                           cuda.cusolver.cusolverDnXgetrf_bufferSize(
                               d->solver, d->solver_params, s->m, s->n, s->type, NULL, s->m,
                               s->type, &s->device_work, &s->host_work));
    cuda_solver_leave(d);
    return status;
}

jot_status cuda_lu_bind(struct cuda_device *d, const struct rt_routine_call *call,
                        struct cuda_routine **out)
{
    struct cuda_solve *s;
    JOT_TRY(cuda_solve_make(d, call, sizeof(struct lu), "turn order_rows places", &s));
    if (!s)
        return JOT_OK;
    struct lu *lu = (struct lu *)s;
    jot_status status = ask_lu(d, s);
    s->base.run = run_lu;
    cuda_solve_take(s);
    size_t *used = &s->base.workspace;
    lu->copy = cuda_take(used, call->bytes[0]);
    lu->pivots = cuda_take(used, (uint64_t)(s->batch * s->k) * sizeof(int64_t));
    return cuda_solve_finish(s, status, cuda_solve_is_recorded(s), out);
}
