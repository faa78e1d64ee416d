// SPDX-License-Identifier: Apache-2.0
// The routine lu: of real matrices by panels in clusters of blocks (lu_kernels.inc) and
// products of cuBLAS, of others and of batches of small ones by the libraries on a transposed
// copy, for they exchange rows.
#include "runtime/cuda/lu_kernels.h"
#include "runtime/cuda/solver.h"

#include "base/memory.h"
#include "base/status.h"

enum { TURN, ORDER, ADDRESSES, PANEL, APPLY };
#define NUMBER(word, value) word = value,
enum { LU_NUMBERS(NUMBER) };
#undef NUMBER
#define CLUSTER_PORTABLE 8

struct lu {
    struct cuda_solve base;
    size_t copy, pivots; // in the workspace
    size_t moves, lower; // of a panel
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

typedef cublasStatus_t getrf_batched(cublasHandle_t handle, int n, void *addresses, int lda,
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
    JOT_TRY(cuda_solve_write_addresses(d, s, s->kernels[ADDRESSES], 0, workspace + lu->copy,
                                       s->n * s->n, workspace));
    JOT_TRY(cuda_solver_enter(d, workspace));
    jot_status status =
        cuda_blas_status(d, "lu",
                         getrf_batched_of(s->dtype)(
                             d->blas_routines, (int)s->n, cuda_solve_addresses(s, 0, workspace),
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
                                {cuda_address(workspace + lu->pivots),
                                 cuda_address(operands[2]), cuda_address(operands[3]),
                                 (uint64_t)s->k, (uint64_t)s->m, s->is_batched ? 1 : 2}});
}

// ---- By panels

// The panel of so many columns from `first` on, `done` columns after the first of its group.
static jot_status factor_panel(const struct cuda_matrix *c, int64_t first, int64_t done,
                               int64_t width)
{
    const struct lu *lu = lu_of(c);
    const struct cuda_solve *s = c->s;
    uint64_t n = (uint64_t)s->n, at = (uint64_t)first, left = (uint64_t)done;
    uint64_t rows = (uint64_t)(s->m - first), columns = (uint64_t)width;
    uint64_t a = cuda_address(cuda_matrix_operand(c, 1)) + at * (n + 1) * s->element;
    uint64_t pivots = cuda_address(cuda_matrix_operand(c, 2)) + at * sizeof(int);
    uint64_t order = cuda_address(cuda_matrix_operand(c, 3)) + at * sizeof(int);
    uint64_t moves = cuda_matrix_address(c, lu->moves);
    uint64_t lower = cuda_matrix_address(c, lu->lower);
    // Messages are for clusters of two blocks at least; one of them may have no rows.
    uint64_t blocks = (rows + LU_THREADS - 1) / LU_THREADS, least = c->d->has_clusters ? 2 : 1;
    struct cuda_start panel = {s->kernels[PANEL],
                               blocks < least ? least : blocks,
                               LU_THREADS,
                               {a, pivots, order, moves, lower, n, rows, columns, left, at}};
    JOT_TRY(c->d->has_clusters ? cuda_start_cluster(c->d, &panel) : cuda_start(c->d, &panel));
    return cuda_start(c->d, &(struct cuda_start){s->kernels[APPLY],
                                                 (n - columns + 63) / 64,
                                                 64,
                                                 {a, moves, lower, n, n, columns, left, at}});
}

// What is below and to the right of the columns from `first` to `end` - 1, which are done.
static jot_status update(const struct cuda_matrix *c, int64_t first, int64_t end)
{
    const struct cuda_solve *s = c->s;
    static const float factors_f[2] = {-1, 1};
    static const double factors_d[2] = {-1, 1};
    bool is_f32 = s->part == sizeof(float);
    char *a = cuda_matrix_operand(c, 1);
    int n = (int)s->n;
    if (end == s->m || end == s->n)
        return JOT_OK;
    // What lies row by row is to the library the transposed matrix.
    return cuda_blas_status(
        c->d, "lu",
        cuda.cublas.cublasGemmEx(
            c->d->blas_routines, CUBLAS_OP_N, CUBLAS_OP_N, (int)(s->n - end), (int)(s->m - end),
            (int)(end - first), is_f32 ? (const void *)factors_f : factors_d,
            a + (size_t)(first * s->n + end) * s->element, s->type, n,
            a + (size_t)(end * s->n + first) * s->element, s->type, n,
            is_f32 ? (const void *)(factors_f + 1) : factors_d + 1,
            a + (size_t)(end * s->n + end) * s->element, s->type, n,
            is_f32 ? CUBLAS_COMPUTE_32F : CUBLAS_COMPUTE_64F, CUBLAS_GEMM_DEFAULT));
}

static jot_status factor_by_panels(const struct cuda_matrix *c)
{
    const struct cuda_solve *s = c->s;
    int64_t width = 128 / (int64_t)s->element;
    for (int64_t first = 0, end; first < s->k; first = end) {
        end = first + LU_GROUP < s->k ? first + LU_GROUP : s->k;
        for (int64_t at = first; at < end; at += width)
            JOT_TRY(factor_panel(c, at, at - first, end - at < width ? end - at : width));
        JOT_TRY(update(c, first, end));
    }
    return JOT_OK;
}

static jot_status run_panels(struct cuda_device *d, const struct cuda_routine *r,
                             void *const *operands, char *workspace)
{
    JOT_TRY(cuda_copy(&d->base, operands[1], &d->base, operands[0], r->call.bytes[0]));
    return cuda_solve_each(d, (const struct cuda_solve *)r, operands, workspace,
                           factor_by_panels);
}

// Whether a cluster can hold the rows.
static jot_status fit_panels(struct cuda_device *d, const struct cuda_solve *s, bool *out)
{
    unsigned blocks = (unsigned)((s->m + LU_THREADS - 1) / LU_THREADS);
    CUfunction panel = s->kernels[PANEL];
    CUlaunchAttribute cluster = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                                 .value = {.clusterDim = {blocks, 1, 1}}};
    CUlaunchConfig config = {.gridDimX = blocks,
                             .gridDimY = 1,
                             .gridDimZ = 1,
                             .blockDimX = LU_THREADS,
                             .blockDimY = 1,
                             .blockDimZ = 1,
                             .attrs = &cluster,
                             .numAttrs = 1};
    int resident = 1;
    if (blocks > CLUSTER_PORTABLE) {
        JOT_TRY(cuda_status(d,
                            cuda.driver.cuFuncSetAttribute(
                                panel, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1),
                            "asking for a large cluster"));
        JOT_TRY(cuda_status(d,
                            cuda.driver.cuOccupancyMaxActiveClusters(&resident, panel, &config),
                            "asking how many clusters fit"));
    }
    *out = resident > 0;
    return JOT_OK;
}

// Takes the routine's memory where it goes by panels.
static jot_status take_panels(struct cuda_device *d, struct lu *lu, bool *out_is_taken)
{
    struct cuda_solve *s = &lu->base;
    size_t *used = &s->base.workspace;
    int64_t most = LU_THREADS * (d->has_clusters ? LU_BLOCKS : 1);
    *out_is_taken = false;
    if (d->major < 9 || dtype_is_complex(s->dtype) || s->is_batched || s->m > most)
        return JOT_OK;
    JOT_TRY(
        cuda_matrix_kernels(d, CUDA_OF_LU, s->dtype, "lu_panel lu_apply", s->kernels + PANEL));
    JOT_TRY(fit_panels(d, s, out_is_taken));
    if (!*out_is_taken)
        return JOT_OK;
    s->base.run = run_panels;
    cuda_solve_take(s);
    lu->moves = cuda_take(used, 2 * 32 * sizeof(int));
    lu->lower = cuda_take(used, LU_GROUP * 128);
    return JOT_OK;
}

// ---- By the libraries

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
    JOT_TRY(cuda_solve_make(d, call, sizeof(struct lu), "turn order_rows addresses", &s));
    if (!s)
        return JOT_OK;
    struct lu *lu = (struct lu *)s;
    bool is_taken = false;
    jot_status status = take_panels(d, lu, &is_taken);
    if (status == JOT_OK && !is_taken) {
        status = ask_lu(d, s);
        s->base.run = run_lu;
        cuda_solve_take(s);
        size_t *used = &s->base.workspace;
        lu->copy = cuda_take(used, call->bytes[0]);
        lu->pivots = cuda_take(used, (uint64_t)(s->batch * s->k) * sizeof(int64_t));
    }
    return cuda_solve_finish(s, status, cuda_solve_is_recorded(s), out);
}
