// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/solver.h"

#include "base/memory.h"
#include "base/status.h"

#include <limits.h>

// Matrices of a batch that are given to the library one after the other, unless they are large.
#define FEW 16
#define LARGE 128
// Rows up to which it is better given all of them.
#define BATCHED_MOST 256

static jot_status status_of(struct cuda_device *d, const char *what, const char *library,
                            int result, bool is_memory)
{
    if (result == 0)
        return JOT_OK;
    return status_fail(is_memory ? JOT_ERR_MEMORY : JOT_ERR_LIBRARY, "%s: %s: %s fails with %d",
                       d->base.name, what, library, result);
}

jot_status cuda_solver_status(struct cuda_device *d, const char *what, cusolverStatus_t result)
{
    return status_of(d, what, "cuSOLVER", result, result == CUSOLVER_STATUS_ALLOC_FAILED);
}

jot_status cuda_blas_status(struct cuda_device *d, const char *what, cublasStatus_t result)
{
    return status_of(d, what, "cuBLAS", result, result == CUBLAS_STATUS_ALLOC_FAILED);
}

// ---- Libraries

// Under the lock.
static jot_status open_libraries(struct cuda_device *d)
{
    if (!d->blas_routines)
        JOT_TRY(cuda_blas_status(d, "opening the library",
                                 cuda.cublas.cublasCreate_v2(&d->blas_routines)));
    if (!d->solver_params)
        JOT_TRY(cuda_solver_status(d, "opening the library",
                                   cuda.cusolver.cusolverDnCreateParams(&d->solver_params)));
    if (!d->solver)
        JOT_TRY(cuda_solver_status(d, "opening the library",
                                   cuda.cusolver.cusolverDnCreate(&d->solver)));
    return JOT_OK;
}

static jot_status prepare(struct cuda_device *d, const char *workspace)
{
    CUstream stream = cuda_stream(d);
    JOT_TRY(open_libraries(d));
    JOT_TRY(cuda_solver_status(d, "setting the stream",
                               cuda.cusolver.cusolverDnSetStream(d->solver, stream)));
    JOT_TRY(cuda_blas_status(d, "setting the stream",
                             cuda.cublas.cublasSetStream_v2(d->blas_routines, stream)));
    return workspace ? cuda_blas_status(
                           d, "setting the workspace",
                           cuda.cublas.cublasSetWorkspace_v2(
                               d->blas_routines, (void *)(uintptr_t)workspace, CUDA_BLAS_WORK))
                     : JOT_OK;
}

jot_status cuda_solver_enter(struct cuda_device *d, const char *workspace)
{
    pthread_mutex_lock(&d->routine_lock);
    jot_status status = prepare(d, workspace);
    if (status != JOT_OK)
        pthread_mutex_unlock(&d->routine_lock);
    return status;
}

void cuda_solver_leave(struct cuda_device *d) { pthread_mutex_unlock(&d->routine_lock); }

cuda_trsm *cuda_trsm_of(jot_dtype d)
{
    return d == JOT_F32   ? (cuda_trsm *)cuda.cublas.cublasStrsm_v2
           : d == JOT_F64 ? (cuda_trsm *)cuda.cublas.cublasDtrsm_v2
           : d == JOT_C64 ? (cuda_trsm *)cuda.cublas.cublasCtrsm_v2
                          : (cuda_trsm *)cuda.cublas.cublasZtrsm_v2;
}

// ---- Routines

jot_status cuda_solve_make(struct cuda_device *d, const struct rt_routine_call *call,
                           size_t bytes, const char *kernels, struct cuda_solve **out)
{
    const int64_t *p = call->params;
    jot_dtype dtype = (jot_dtype)p[0], real = dtype_real(dtype);
    bool is_f32 = real == JOT_F32, is_complex = dtype_is_complex(dtype);
    *out = NULL;
    if (p[2] < 1 || p[3] < 1 || p[2] > INT_MAX / 2 || p[3] > INT_MAX / 2 || p[1] > INT_MAX)
        return JOT_OK;
    JOT_TRY(cuda_library_open(CUDA_LIBRARY_cublas));
    JOT_TRY(cuda_library_open(CUDA_LIBRARY_cusolver));
    struct cuda_solve *s = memory_allocate_zeroed(bytes);
    if (!s)
        return status_out_of_memory();
    s->dtype = dtype;
    s->real_type = is_f32 ? CUDA_R_32F : CUDA_R_64F;
    s->type = !is_complex ? s->real_type : is_f32 ? CUDA_C_32F : CUDA_C_64F;
    s->element = dtype_get(dtype)->bytes;
    s->part = dtype_get(real)->bytes;
    s->batch = p[1];
    s->m = p[2];
    s->n = p[3];
    s->k = s->m < s->n ? s->m : s->n;
    s->is_batched = s->m == s->n && cuda_solve_has_batches(s, s->n);
    jot_status status =
        *kernels ? cuda_matrix_kernels(d, CUDA_OF_MATRICES, dtype, kernels, s->kernels)
                 : JOT_OK;
    if (status == JOT_OK)
        *out = s;
    else
        memory_release(s);
    return status;
}

void cuda_solve_take(struct cuda_solve *s)
{
    size_t *used = &s->base.workspace;
    *used = CUDA_BLAS_WORK;
    s->info = cuda_take(used, (uint64_t)s->batch * 2 * sizeof(int));
    s->bad = s->info + (size_t)s->batch * sizeof(int);
    s->work = cuda_take(used, s->device_work);
    s->addresses = cuda_take(used, s->is_batched ? (uint64_t)s->batch * 2 * sizeof(void *) : 0);
}

jot_status cuda_solve_each(struct cuda_device *d, const struct cuda_solve *s,
                           void *const *operands, char *workspace,
                           jot_status (*one)(const struct cuda_matrix *c))
{
    struct cuda_matrix c = {d, s, 0, operands, workspace, memory_allocate(s->host_work + 1)};
    if (!c.host_work)
        return status_out_of_memory();
    jot_status status = cuda_solver_enter(d, workspace);
    if (status == JOT_OK) {
        for (; c.i < s->batch && status == JOT_OK; c.i++)
            status = one(&c);
        cuda_solver_leave(d);
    }
    memory_release(c.host_work);
    return status;
}

char *cuda_matrix_operand(const struct cuda_matrix *c, int which)
{
    uint64_t bytes = c->s->base.call.bytes[which] / (uint64_t)c->s->batch;
    return (char *)c->operands[which] + bytes * (uint64_t)c->i;
}

int *cuda_matrix_info(const struct cuda_matrix *c)
{
    return (int *)(void *)(c->workspace + c->s->info) + c->i;
}

void cuda_solve_want(struct cuda_solve *s, size_t device_work, size_t host_work)
{
    s->device_work = device_work > s->device_work ? device_work : s->device_work;
    s->host_work = host_work > s->host_work ? host_work : s->host_work;
}

bool cuda_solve_has_batches(const struct cuda_solve *s, int64_t order)
{
    return s->batch > 1 && order <= BATCHED_MOST;
}

bool cuda_solve_is_few(const struct cuda_solve *s) { return s->batch <= FEW || s->k >= LARGE; }

bool cuda_solve_is_recorded(const struct cuda_solve *s)
{
    return (s->batch <= 4 * FEW || s->k >= 2 * LARGE || s->is_batched) && !s->host_work;
}

jot_status cuda_solve_finish(struct cuda_solve *s, jot_status status, bool is_wanted,
                             struct cuda_routine **out)
{
    if (status == JOT_OK && is_wanted)
        *out = &s->base;
    else
        memory_release(s);
    return status;
}

jot_status cuda_solve_write_addresses(struct cuda_device *d, const struct cuda_solve *s,
                                      CUfunction kernel, int part, const void *first,
                                      int64_t elements, char *workspace)
{
    uint64_t to = cuda_address(cuda_solve_addresses(s, part, workspace));
    return cuda_start(
        d, &(struct cuda_start){
               kernel,
               cuda_blocks(d, s->batch),
               256,
               {to, cuda_address(first), (uint64_t)elements * s->element, (uint64_t)s->batch}});
}

jot_status cuda_solve_clear(struct cuda_device *d, const struct cuda_solve *s, char *workspace)
{
    return cuda_clear(&d->base, workspace + s->info, (size_t)s->batch * 2 * sizeof(int));
}

jot_status cuda_turn(struct cuda_device *d, CUfunction kernel, int64_t batch,
                     const struct cuda_turn *t)
{
    uint64_t tiles = (uint64_t)((t->rows + 31) / 32) * (uint64_t)((t->columns + 31) / 32);
    return cuda_start(
        d, &(struct cuda_start){kernel,
                                tiles * (uint64_t)batch,
                                256,
                                {cuda_address(t->from), cuda_address(t->to), (uint64_t)t->rows,
                                 (uint64_t)t->columns, (uint64_t)t->from_row,
                                 (uint64_t)t->to_row, (uint64_t)t->from_matrix,
                                 (uint64_t)t->to_matrix, t->is_lower, cuda_address(t->bad)}});
}

jot_status cuda_spoil(struct cuda_device *d, CUfunction kernel, const struct cuda_solve *s,
                      uint32_t first, void *const *operands, char *workspace)
{
    const struct rt_routine_call *call = &s->base.call;
    for (uint32_t i = first; i < call->operand_count; i++) {
        uint64_t parts = call->bytes[i] / s->part;
        JOT_TRY(cuda_start(
            d, &(struct cuda_start){kernel,
                                    cuda_blocks(d, (int64_t)parts),
                                    256,
                                    {cuda_address(operands[i]), parts / (uint64_t)s->batch,
                                     (uint64_t)s->batch, cuda_address(workspace + s->info),
                                     cuda_address(workspace + s->bad)}}));
    }
    return JOT_OK;
}

// ---- Reflectors

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

static int count_of(const struct cuda_reflectors *r)
{
    return (int)(r->m < r->n ? r->m : r->n);
}

jot_status cuda_reflectors_ask(struct cuda_device *d, struct cuda_reflectors *r,
                               struct cuda_solve *s)
{
    JOT_TRY(cuda_solver_status(d, "qr",
                               cuda.cusolver.cusolverDnXgeqrf_bufferSize(
                                   d->solver, d->solver_params, r->m, r->n, r->type, NULL, r->m,
                                   r->type, NULL, r->type, &r->device_work, &r->host_work)));
    JOT_TRY(
        cuda_solver_status(d, "qr",
                           ask_of(r->dtype)(d->solver, (int)r->m, (int)r->columns, count_of(r),
                                            NULL, (int)r->m, NULL, &r->form_work)));
    cuda_solve_want(s, r->device_work, r->host_work);
    cuda_solve_want(s, (size_t)r->form_work * dtype_get(r->dtype)->bytes, 0);
    return JOT_OK;
}

jot_status cuda_reflectors_find(const struct cuda_matrix *c, const struct cuda_reflectors *r,
                                char *a, char *tau, int *info)
{
    return cuda_solver_status(c->d, "qr",
                              cuda.cusolver.cusolverDnXgeqrf(
                                  c->d->solver, c->d->solver_params, r->m, r->n, r->type, a,
                                  r->m, r->type, tau, r->type, cuda_matrix_at(c, c->s->work),
                                  r->device_work, c->host_work, r->host_work, info));
}

jot_status cuda_reflectors_form(const struct cuda_matrix *c, const struct cuda_reflectors *r,
                                char *a, char *tau, int *info)
{
    return cuda_solver_status(
        c->d, "qr",
        form_of(r->dtype)(c->d->solver, (int)r->m, (int)r->columns, count_of(r), a, (int)r->m,
                          tau, cuda_matrix_at(c, c->s->work), r->form_work, info));
}
