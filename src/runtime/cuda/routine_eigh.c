// SPDX-License-Identifier: Apache-2.0
// The routine eigh, by cuSOLVER, on a transposed copy.  What is not finite becomes 0 in the copy and
// makes the results NaN.
#include "runtime/cuda/solver.h"

#include "base/memory.h"
#include "base/status.h"

enum { TURN, SPOIL };

// Of a call for many matrices, which wants some 300 KB for each.
#define WORK_MOST ((size_t)256 << 20)

struct eigh {
    struct cuda_solve base;
    size_t copy;   // in the workspace
    int64_t chunk; // matrices of a call; 0: it takes one
};

static jot_status diagonalize(const struct cuda_matrix *c)
{
    const struct cuda_solve *s = c->s;
    const struct eigh *q = (const struct eigh *)s;
    return cuda_solver_status(
        c->d, "eigh",
        cuda.cusolver.cusolverDnXsyevd(
            c->d->solver, c->d->solver_params, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_LOWER,
            s->n, s->type,
            cuda_matrix_at(c, q->copy) + (size_t)(c->i * s->n * s->n) * s->element, s->n,
            s->real_type, cuda_matrix_operand(c, 1), s->type, cuda_matrix_at(c, s->work),
            s->device_work, c->host_work, s->host_work, cuda_matrix_info(c)));
}

static jot_status diagonalize_all(struct cuda_device *d, const struct eigh *q,
                                  void *const *operands, char *workspace)
{
    const struct cuda_solve *s = &q->base;
    jot_status status = JOT_OK;
    void *host_work = memory_allocate(s->host_work + 1);
    if (!host_work)
        return status_out_of_memory();
    JOT_TRY(cuda_solver_enter(d, workspace));
    for (int64_t i = 0; i < s->batch && status == JOT_OK; i += q->chunk) {
        int64_t count = s->batch - i < q->chunk ? s->batch - i : q->chunk;
        status = cuda_solver_status(
            d, "eigh",
            cuda.cusolver.cusolverDnXsyevBatched(
                d->solver, d->solver_params, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_LOWER,
                s->n, s->type, workspace + q->copy + (size_t)(i * s->n * s->n) * s->element,
                s->n, s->real_type, (char *)operands[1] + (size_t)(i * s->n) * s->part, s->type,
                workspace + s->work, s->device_work, host_work, s->host_work,
                (int *)(void *)(workspace + s->info) + i, count));
    }
    cuda_solver_leave(d);
    memory_release(host_work);
    return status;
}

// Between the operand, of which the lower triangle is read, or the result and the copy.
static jot_status turn(struct cuda_device *d, const struct cuda_solve *s, const void *from,
                       void *to, void *bad)
{
    return cuda_turn(d, s->kernels[TURN], s->batch,
                     &(struct cuda_turn){.from = from,
                                         .to = to,
                                         .rows = s->n,
                                         .columns = s->n,
                                         .from_row = s->n,
                                         .to_row = s->n,
                                         .from_matrix = s->n * s->n,
                                         .to_matrix = s->n * s->n,
                                         .is_lower = bad != NULL,
                                         .bad = bad});
}

static jot_status run_eigh(struct cuda_device *d, const struct cuda_routine *r,
                           void *const *operands, char *workspace)
{
    const struct eigh *q = (const struct eigh *)r;
    const struct cuda_solve *s = &q->base;
    char *copy = workspace + q->copy;
    JOT_TRY(cuda_solve_clear(d, s, workspace));
    JOT_TRY(turn(d, s, operands[0], copy, workspace + s->bad));
    JOT_TRY(q->chunk ? diagonalize_all(d, q, operands, workspace)
                     : cuda_solve_each(d, s, operands, workspace, diagonalize));
    JOT_TRY(turn(d, s, copy, operands[2], NULL));
    return cuda_spoil(d, s->kernels[SPOIL], s, 1, operands, workspace);
}

static cusolverStatus_t ask_for(struct cuda_device *d, const struct eigh *q, size_t *device,
                                size_t *host)
{
    const struct cuda_solve *s = &q->base;
    return q->chunk ? cuda.cusolver.cusolverDnXsyevBatched_bufferSize(
                          d->solver, d->solver_params, CUSOLVER_EIG_MODE_VECTOR,
                          CUBLAS_FILL_MODE_LOWER, s->n, s->type, NULL, s->n, s->real_type, NULL,
                          s->type, device, host, q->chunk)
                    : cuda.cusolver.cusolverDnXsyevd_bufferSize(
                          d->solver, d->solver_params, CUSOLVER_EIG_MODE_VECTOR,
                          CUBLAS_FILL_MODE_LOWER, s->n, s->type, NULL, s->n, s->real_type, NULL,
                          s->type, device, host);
}

static jot_status ask_eigh(struct cuda_device *d, struct eigh *q)
{
    struct cuda_solve *s = &q->base;
    jot_status status;
    JOT_TRY(cuda_solver_enter(d, NULL));
    if (s->is_batched && cuda.cusolver.cusolverDnXsyevBatched_bufferSize &&
        cuda.cusolver.cusolverDnXsyevBatched)
        q->chunk = s->batch;
    do
        status = cuda_solver_status(d, "eigh", ask_for(d, q, &s->device_work, &s->host_work));
    while (status == JOT_OK && s->device_work > WORK_MOST && (q->chunk /= 2) > 0);
    cuda_solver_leave(d);
    return status;
}

jot_status cuda_eigh_bind(struct cuda_device *d, const struct rt_routine_call *call,
                          struct cuda_routine **out)
{
    struct cuda_solve *s;
    JOT_TRY(cuda_solve_make(d, call, sizeof(struct eigh), "turn spoil", &s));
    if (!s)
        return JOT_OK;
    s->base.run = run_eigh;
    struct eigh *q = (struct eigh *)s;
    jot_status status = ask_eigh(d, q);
    cuda_solve_take(s);
    q->copy = cuda_take(&s->base.workspace, call->bytes[0]);
    return cuda_solve_finish(s, status, cuda_solve_is_few(s) || q->chunk, out);
}
