// SPDX-License-Identifier: Apache-2.0
// The routines qr and eigh, by cuSOLVER, on transposed copies.  What is not finite becomes 0 in the copy
// and makes the results NaN.
#include "runtime/cuda/solver.h"

#include "base/memory.h"
#include "base/status.h"

// Matrices of a batch that are given to the library one after the other, unless they are large.
#define CALLS_MOST 16
#define LARGE 128

enum { TURN, SPOIL };

struct decomposition {
    struct cuda_solve base;
    int64_t columns;   // QR: of Q
    int64_t copy_next; // elements of a copy
    size_t copy, tau;  // in the workspace
    int qr_work;       // elements that forming Q wants
    // One matrix, between enter and leave.
    jot_status (*one)(struct cuda_device *d, const struct decomposition *q, int64_t i,
                      void *const *operands, char *workspace, void *host_work);
};

static char *copy_at(const struct decomposition *q, char *workspace, int64_t i)
{
    return workspace + q->copy + (size_t)(i * q->copy_next) * q->base.element;
}

static jot_status run_all(struct cuda_device *d, const struct decomposition *q,
                          void *const *operands, char *workspace)
{
    const struct cuda_solve *s = &q->base;
    void *host_work = s->host_work ? memory_allocate(s->host_work) : NULL;
    if (s->host_work && !host_work)
        return status_out_of_memory();
    jot_status status = cuda_solver_enter(d, workspace);
    if (status == JOT_OK) {
        for (int64_t i = 0; i < s->batch && status == JOT_OK; i++)
            status = q->one(d, q, i, operands, workspace, host_work);
        cuda_solver_leave(d);
    }
    memory_release(host_work);
    return status;
}

// The operand, or the lower triangle of it, column by column.
static jot_status copy_in(struct cuda_device *d, const struct decomposition *q, bool is_lower,
                          const void *operand, char *workspace)
{
    const struct cuda_solve *s = &q->base;
    JOT_TRY(cuda_solve_clear(d, s, workspace));
    return cuda_turn(d, s->kernels[TURN], s->batch,
                     &(struct cuda_turn){.from = operand,
                                         .to = workspace + q->copy,
                                         .rows = s->m,
                                         .columns = s->n,
                                         .from_row = s->n,
                                         .to_row = s->m,
                                         .from_matrix = s->m * s->n,
                                         .to_matrix = q->copy_next,
                                         .is_lower = is_lower,
                                         .bad = workspace + s->bad});
}

// The first columns of the copies, of m elements, as a result.
static jot_status copy_out(struct cuda_device *d, const struct decomposition *q,
                           int64_t columns, void *result, char *workspace)
{
    const struct cuda_solve *s = &q->base;
    return cuda_turn(d, s->kernels[TURN], s->batch,
                     &(struct cuda_turn){.from = workspace + q->copy,
                                         .to = result,
                                         .rows = columns,
                                         .columns = s->m,
                                         .from_row = s->m,
                                         .to_row = columns,
                                         .from_matrix = q->copy_next,
                                         .to_matrix = s->m * columns});
}

// The routine, unless what it asked for failed or there are better ways for so many.
static jot_status finish(struct decomposition *q, jot_status status, struct cuda_routine **out)
{
    const struct cuda_solve *s = &q->base;
    if (status == JOT_OK && (s->batch <= CALLS_MOST || s->k >= LARGE))
        *out = &q->base.base;
    else
        memory_release(q);
    return status;
}

// ---- QR

typedef cusolverStatus_t ask_function(cusolverDnHandle_t handle, int m, int n, int k,
                                      const void *a, int lda, const void *tau, int *work);
typedef cusolverStatus_t form_function(cusolverDnHandle_t handle, int m, int n, int k, void *a,
                                       int lda, const void *tau, void *work, int count,
                                       int *info);

static ask_function *ask_of(jot_dtype d)
{
    return d == JOT_F32   ? (ask_function *)cuda.cusolver.cusolverDnSorgqr_bufferSize
           : d == JOT_F64 ? (ask_function *)cuda.cusolver.cusolverDnDorgqr_bufferSize
           : d == JOT_C64 ? (ask_function *)cuda.cusolver.cusolverDnCungqr_bufferSize
                          : (ask_function *)cuda.cusolver.cusolverDnZungqr_bufferSize;
}

static form_function *form_of(jot_dtype d)
{
    return d == JOT_F32   ? (form_function *)cuda.cusolver.cusolverDnSorgqr
           : d == JOT_F64 ? (form_function *)cuda.cusolver.cusolverDnDorgqr
           : d == JOT_C64 ? (form_function *)cuda.cusolver.cusolverDnCungqr
                          : (form_function *)cuda.cusolver.cusolverDnZungqr;
}

static char *tau_at(const struct decomposition *q, char *workspace, int64_t i)
{
    return workspace + q->tau + (size_t)(i * q->base.k) * q->base.element;
}

static jot_status factor(struct cuda_device *d, const struct decomposition *q, int64_t i,
                         void *const *operands, char *workspace, void *host_work)
{
    const struct cuda_solve *s = &q->base;
    (void)operands;
    return cuda_solver_status(
        d, "qr",
        cuda.cusolver.cusolverDnXgeqrf(
            d->solver, d->solver_params, s->m, s->n, s->type, copy_at(q, workspace, i), s->m,
            s->type, tau_at(q, workspace, i), s->type, workspace + s->work, s->device_work,
            host_work, s->host_work, (int *)(void *)(workspace + s->info) + i));
}

static jot_status form(struct cuda_device *d, const struct decomposition *q, char *workspace)
{
    const struct cuda_solve *s = &q->base;
    jot_status status = JOT_OK;
    JOT_TRY(cuda_solver_enter(d, workspace));
    for (int64_t i = 0; i < s->batch && status == JOT_OK; i++)
        status = cuda_solver_status(
            d, "qr",
            form_of(s->dtype)(d->solver, (int)s->m, (int)q->columns, (int)s->k,
                              copy_at(q, workspace, i), (int)s->m, tau_at(q, workspace, i),
                              workspace + s->work, q->qr_work,
                              (int *)(void *)(workspace + s->info) + i));
    cuda_solver_leave(d);
    return status;
}

static jot_status run_qr(struct cuda_device *d, const struct cuda_routine *r,
                         void *const *operands, char *workspace)
{
    const struct decomposition *q = (const struct decomposition *)r;
    const struct cuda_solve *s = &q->base;
    JOT_TRY(copy_in(d, q, false, operands[0], workspace));
    JOT_TRY(run_all(d, q, operands, workspace));
    JOT_TRY(cuda_turn(d, s->kernels[TURN], s->batch,
                      &(struct cuda_turn){.from = workspace + q->copy,
                                          .to = operands[2],
                                          .rows = s->n,
                                          .columns = q->columns,
                                          .from_row = s->m,
                                          .to_row = s->n,
                                          .from_matrix = q->copy_next,
                                          .to_matrix = q->columns * s->n,
                                          .is_lower = true}));
    JOT_TRY(form(d, q, workspace));
    JOT_TRY(copy_out(d, q, q->columns, operands[1], workspace));
    return cuda_spoil(d, s->kernels[SPOIL], s, 1, operands, workspace);
}

static jot_status ask_qr(struct cuda_device *d, struct decomposition *q)
{
    struct cuda_solve *s = &q->base;
    JOT_TRY(cuda_solver_enter(d, NULL));
    jot_status status =
        cuda_solver_status(d, "qr",
                           cuda.cusolver.cusolverDnXgeqrf_bufferSize(
                               d->solver, d->solver_params, s->m, s->n, s->type, NULL, s->m,
                               s->type, NULL, s->type, &s->device_work, &s->host_work));
    if (status == JOT_OK)
        status =
            cuda_solver_status(d, "qr",
                               ask_of(s->dtype)(d->solver, (int)s->m, (int)q->columns,
                                                (int)s->k, NULL, (int)s->m, NULL, &q->qr_work));
    cuda_solver_leave(d);
    size_t bytes = (size_t)q->qr_work * s->element;
    s->device_work = bytes > s->device_work ? bytes : s->device_work;
    return status;
}

jot_status cuda_qr_bind(struct cuda_device *d, const struct rt_routine_call *call,
                        struct cuda_routine **out)
{
    struct cuda_solve *s;
    JOT_TRY(cuda_solve_make(d, call, sizeof(struct decomposition), "turn spoil", &s));
    if (!s)
        return JOT_OK;
    struct decomposition *q = (struct decomposition *)s;
    q->columns = call->params[4] ? s->m : s->k;
    q->copy_next = s->m * (q->columns > s->n ? q->columns : s->n);
    q->one = factor;
    s->base.run = run_qr;
    jot_status status = ask_qr(d, q);
    cuda_solve_take(s);
    q->copy = cuda_take(&s->base.workspace, (uint64_t)(s->batch * q->copy_next) * s->element);
    q->tau = cuda_take(&s->base.workspace, (uint64_t)(s->batch * s->k) * s->element);
    return finish(q, status, out);
}

// ---- Eigenvalues

static jot_status diagonalize(struct cuda_device *d, const struct decomposition *q, int64_t i,
                              void *const *operands, char *workspace, void *host_work)
{
    const struct cuda_solve *s = &q->base;
    return cuda_solver_status(
        d, "eigh",
        cuda.cusolver.cusolverDnXsyevd(
            d->solver, d->solver_params, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_LOWER, s->n,
            s->type, copy_at(q, workspace, i), s->n, s->real_type,
            (char *)operands[1] + (size_t)(i * s->n) * s->part, s->type, workspace + s->work,
            s->device_work, host_work, s->host_work, (int *)(void *)(workspace + s->info) + i));
}

static jot_status run_eigh(struct cuda_device *d, const struct cuda_routine *r,
                           void *const *operands, char *workspace)
{
    const struct decomposition *q = (const struct decomposition *)r;
    JOT_TRY(copy_in(d, q, true, operands[0], workspace));
    JOT_TRY(run_all(d, q, operands, workspace));
    JOT_TRY(copy_out(d, q, q->base.n, operands[2], workspace));
    return cuda_spoil(d, q->base.kernels[SPOIL], &q->base, 1, operands, workspace);
}

static jot_status ask_eigh(struct cuda_device *d, struct cuda_solve *s)
{
    JOT_TRY(cuda_solver_enter(d, NULL));
    jot_status status = cuda_solver_status(
        d, "eigh",
        cuda.cusolver.cusolverDnXsyevd_bufferSize(
            d->solver, d->solver_params, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_LOWER, s->n,
            s->type, NULL, s->n, s->real_type, NULL, s->type, &s->device_work, &s->host_work));
    cuda_solver_leave(d);
    return status;
}

jot_status cuda_eigh_bind(struct cuda_device *d, const struct rt_routine_call *call,
                          struct cuda_routine **out)
{
    struct cuda_solve *s;
    JOT_TRY(cuda_solve_make(d, call, sizeof(struct decomposition), "turn spoil", &s));
    if (!s)
        return JOT_OK;
    struct decomposition *q = (struct decomposition *)s;
    q->copy_next = s->n * s->n;
    q->one = diagonalize;
    s->base.run = run_eigh;
    jot_status status = ask_eigh(d, s);
    cuda_solve_take(s);
    q->copy = cuda_take(&s->base.workspace, call->bytes[0]);
    return finish(q, status, out);
}
