// SPDX-License-Identifier: Apache-2.0
// The routines qr and eigh, by cuSOLVER, on transposed copies.  What is not finite becomes 0 in the copy
// and makes the results NaN.
#include "runtime/cuda/solver.h"

#include "base/memory.h"
#include "base/status.h"

enum { TURN, SPOIL };

struct decomposition {
    struct cuda_solve base;
    struct cuda_reflectors reflectors; // of QR
    int64_t copy_next;                 // elements of a copy
    size_t copy, tau;                  // in the workspace
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

// ---- QR

static char *tau_at(const struct decomposition *q, char *workspace, int64_t i)
{
    return workspace + q->tau + (size_t)(i * q->base.k) * q->base.element;
}

static int *info_at(const struct decomposition *q, char *workspace, int64_t i)
{
    return (int *)(void *)(workspace + q->base.info) + i;
}

static jot_status factor(struct cuda_device *d, const struct decomposition *q, int64_t i,
                         void *const *operands, char *workspace, void *host_work)
{
    (void)operands;
    return cuda_reflectors_find(d, &q->reflectors, copy_at(q, workspace, i),
                                tau_at(q, workspace, i), workspace + q->base.work, host_work,
                                info_at(q, workspace, i));
}

static jot_status form(struct cuda_device *d, const struct decomposition *q, char *workspace)
{
    jot_status status = JOT_OK;
    JOT_TRY(cuda_solver_enter(d, workspace));
    for (int64_t i = 0; i < q->base.batch && status == JOT_OK; i++)
        status = cuda_reflectors_form(d, &q->reflectors, copy_at(q, workspace, i),
                                      tau_at(q, workspace, i), workspace + q->base.work,
                                      info_at(q, workspace, i));
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
                                          .columns = q->reflectors.columns,
                                          .from_row = s->m,
                                          .to_row = s->n,
                                          .from_matrix = q->copy_next,
                                          .to_matrix = q->reflectors.columns * s->n,
                                          .is_lower = true}));
    JOT_TRY(form(d, q, workspace));
    JOT_TRY(copy_out(d, q, q->reflectors.columns, operands[1], workspace));
    return cuda_spoil(d, s->kernels[SPOIL], s, 1, operands, workspace);
}

jot_status cuda_qr_bind(struct cuda_device *d, const struct rt_routine_call *call,
                        struct cuda_routine **out)
{
    struct cuda_solve *s;
    JOT_TRY(cuda_solve_make(d, call, sizeof(struct decomposition), "turn spoil", &s));
    if (!s)
        return JOT_OK;
    struct decomposition *q = (struct decomposition *)s;
    int64_t columns = call->params[4] ? s->m : s->k;
    q->reflectors = (struct cuda_reflectors){
        .dtype = s->dtype, .type = s->type, .m = s->m, .n = s->n, .columns = columns};
    q->copy_next = s->m * (columns > s->n ? columns : s->n);
    q->one = factor;
    s->base.run = run_qr;
    jot_status status = cuda_solver_enter(d, NULL);
    if (status == JOT_OK) {
        status = cuda_reflectors_ask(d, &q->reflectors);
        cuda_solver_leave(d);
    }
    s->device_work = q->reflectors.device_work;
    s->host_work = q->reflectors.host_work;
    cuda_solve_take(s);
    q->copy = cuda_take(&s->base.workspace, (uint64_t)(s->batch * q->copy_next) * s->element);
    q->tau = cuda_take(&s->base.workspace, (uint64_t)(s->batch * s->k) * s->element);
    return cuda_solve_finish(s, status, cuda_solve_is_few(s), out);
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
    return cuda_solve_finish(s, status, cuda_solve_is_few(s), out);
}
