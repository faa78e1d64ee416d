// SPDX-License-Identifier: Apache-2.0
// The routine svd, by cuSOLVER.
//
// Single precision is computed in double, from the eigenvalues of a Gram matrix: with t the matrix or its
// conjugate transpose, whichever is not wide,
//
//     v diag(-l) v^H = -t^H t        (syevd sorts l upwards, so what it stands for downwards)
//     b = t v                        whose columns are orthogonal and as long as the singular values
//     u = b (b^H b)^(-1/2)           by a step of Newton's from the lengths of the columns
//
// Squares of single numbers are exact in double, and what syevd leaves of the angles between columns is of
// the order of 1e-16 s_1^2 / (s_i s_j): the step makes up for it down to singular values of 1e-6 s_1.  Below,
// u and s are of the QR decomposition b = u r, in which r is diagonal up to 1e-8 s_1 (the columns are in the
// order of their lengths, and reflectors are backward stable for each column alone).  Errors of u, s and v
// are then below those of rounding them to single precision, whatever the matrix.
//
// None of this is taken on trust: that v and u are orthonormal and that u diag(s) is b is looked at on the
// device, and a matrix that fails sends the call to the host.
//
// Double precision is gesvd's, and so are square factors of matrices that are not.
#include "runtime/cuda/solver.h"

#include "base/memory.h"
#include "base/status.h"

enum { TURN, SPOIL };
enum { WIDEN, NARROW, ROOTS, DESCEND, COMPARE, WEIGH, SETTLE, MULTIPLY, KERNELS };
#define KERNEL_NAMES "widen narrow roots descend compare weigh settle multiply"

// What was found out about a matrix, in flags.
enum { INFO, V_IS_OFF, U_IS_OFF, R_IS_OFF, FLAGS };

struct svd {
    struct cuda_solve base;
    bool is_wide, has_vectors;
    int64_t rows; // of t, of which base.k is the number of columns
    jot_dtype dtype;
    cudaDataType type; // that it is computed in
    size_t element;
    CUfunction kernels[KERNELS];
    struct cuda_reflectors reflectors;
    // In the workspace: rows by k, k by k, and k.
    size_t t, b, v, p, values, lengths, phases, tau, flags;
};

// A call: its matrix is number i of the operands.
struct turn {
    struct cuda_device *d;
    const struct svd *q;
    int64_t i;
    void *const *operands;
    char *workspace;
    void *host_work;
};

static void *at(const struct turn *c, size_t place) { return c->workspace + place; }
static uint64_t place(const struct turn *c, size_t at) { return cuda_place(c->workspace + at); }
static int *flag(const struct turn *c, int which) { return (int *)at(c, c->q->flags) + which; }

// Operand `which` of the matrix.
static char *own(const struct turn *c, int which)
{
    const struct cuda_solve *s = &c->q->base;
    return (char *)c->operands[which] +
           s->base.call.bytes[which] / (uint64_t)s->batch * (uint64_t)c->i;
}

// Over n numbers, or of n blocks.
static jot_status over(const struct turn *c, int kernel, int64_t n, struct cuda_start s)
{
    s.kernel = c->q->kernels[kernel];
    s.blocks = cuda_blocks(c->d, n);
    s.block = 256;
    return cuda_start(c->d, &s);
}

static jot_status blocks(const struct turn *c, int kernel, struct cuda_start s)
{
    s.kernel = c->q->kernels[kernel];
    s.blocks = (uint64_t)c->q->base.k;
    s.block = 256;
    return cuda_start(c->d, &s);
}

#define NUMBERS(...)                                                                           \
    (struct cuda_start)                                                                        \
    {                                                                                          \
        .parameters = { __VA_ARGS__ }                                                          \
    }

// ---- Products

struct factor {
    cublasOperation_t op;
    const char *at;
    int64_t leading;
};

static struct factor plain(const struct turn *c, size_t place, int64_t leading)
{
    return (struct factor){CUBLAS_OP_N, at(c, place), leading};
}

static struct factor conjugated(struct factor f)
{
    f.op = f.op == CUBLAS_OP_N ? CUBLAS_OP_C : CUBLAS_OP_N;
    return f;
}

// The matrix as it came: rows of it are columns of what cuBLAS sees.
static struct factor given(const struct turn *c)
{
    const struct svd *q = c->q;
    struct factor f = plain(c, q->t, q->base.n);
    return q->is_wide ? f : conjugated(f);
}

static jot_status multiply(const struct turn *c, int64_t m, int64_t inner, double alpha,
                           struct factor a, struct factor b, size_t to)
{
    const struct svd *q = c->q;
    const double factor[2] = {alpha, 0}, zero[2] = {0, 0};
    return cuda_blas_status(
        c->d, "svd",
        cuda.cublas.cublasGemmEx(c->d->blas_routines, a.op, b.op, (int)m, (int)q->base.k,
                                 (int)inner, factor, a.at, q->type, (int)a.leading, b.at,
                                 q->type, (int)b.leading, zero, at(c, to), q->type, (int)m,
                                 CUBLAS_COMPUTE_64F, CUBLAS_GEMM_DEFAULT));
}

// ---- Steps

static jot_status diagonalize(const struct turn *c)
{
    const struct svd *q = c->q;
    const struct cuda_solve *s = &q->base;
    JOT_TRY(multiply(c, s->k, q->rows, -1, conjugated(given(c)), given(c), q->v));
    return cuda_solver_status(
        c->d, "svd",
        cuda.cusolver.cusolverDnXsyevd(
            c->d->solver, c->d->solver_params,
            q->has_vectors ? CUSOLVER_EIG_MODE_VECTOR : CUSOLVER_EIG_MODE_NOVECTOR,
            CUBLAS_FILL_MODE_LOWER, s->k, q->type, at(c, q->v), s->k, CUDA_R_64F,
            at(c, q->values), q->type, at(c, s->work), s->device_work, c->host_work,
            s->host_work, flag(c, INFO)));
}

// b, and u in the place of t.
static jot_status find_u(const struct turn *c)
{
    const struct svd *q = c->q;
    int64_t k = q->base.k;
    struct factor v = plain(c, q->v, k), b = plain(c, q->b, q->rows);
    JOT_TRY(multiply(c, k, k, 1, conjugated(v), v, q->p));
    JOT_TRY(blocks(c, COMPARE,
                   NUMBERS(place(c, q->p), (uint64_t)k, cuda_place(flag(c, V_IS_OFF)))));
    JOT_TRY(multiply(c, q->rows, k, 1, given(c), v, q->b));
    JOT_TRY(multiply(c, k, q->rows, 1, conjugated(b), b, q->p));
    JOT_TRY(over(c, ROOTS, k,
                 NUMBERS(place(c, q->p), place(c, q->lengths), (uint64_t)k,
                         (uint64_t)(k + 1) * (q->element / sizeof(double)), false)));
    JOT_TRY(blocks(c, WEIGH,
                   NUMBERS(place(c, q->p), place(c, q->lengths), (uint64_t)k,
                           cuda_place(flag(c, U_IS_OFF)))));
    return multiply(c, q->rows, k, 1, b, plain(c, q->p, k), q->t);
}

// u in the place of b.
static jot_status find_u_by_reflectors(const struct turn *c)
{
    const struct svd *q = c->q;
    const struct cuda_solve *s = &q->base;
    uint64_t rows = (uint64_t)q->rows, k = (uint64_t)s->k;
    char *b = at(c, q->b), *tau = at(c, q->tau), *work = at(c, s->work);
    JOT_TRY(
        cuda_reflectors_find(c->d, &q->reflectors, b, tau, work, c->host_work, flag(c, INFO)));
    JOT_TRY(blocks(c, SETTLE,
                   NUMBERS(cuda_place(b), place(c, q->lengths), place(c, q->phases), k, rows,
                           cuda_place(flag(c, R_IS_OFF)))));
    JOT_TRY(cuda_reflectors_form(c->d, &q->reflectors, b, tau, work, flag(c, INFO)));
    return over(c, MULTIPLY, q->rows * s->k,
                NUMBERS(cuda_place(b), place(c, q->phases), rows, k));
}

// `from` as operand `which`, or what is put there.
static jot_status narrow(const struct turn *c, size_t from, int64_t count, void *to,
                         bool is_conjugated)
{
    uint64_t n = (uint64_t)count * (c->q->element / sizeof(double));
    return over(c, NARROW, (int64_t)n,
                NUMBERS(place(c, from), cuda_place(to), n, is_conjugated));
}

// With u in one place and another one free.  Of a matrix that is not wide t is its conjugate, and u too;
// of a wide one it is v that has the rows of its u.
static jot_status put_vectors(const struct turn *c, size_t u, size_t other)
{
    const struct svd *q = c->q;
    const struct cuda_solve *s = &q->base;
    JOT_TRY(narrow(c, q->is_wide ? q->v : u, s->m * s->k, at(c, other), true));
    JOT_TRY(narrow(c, q->is_wide ? u : q->v, s->n * s->k, own(c, 3), false));
    return cuda_turn(c->d, s->kernels[TURN], 1,
                     &(struct cuda_turn){.from = at(c, other),
                                         .to = own(c, 2),
                                         .rows = s->k,
                                         .columns = s->m,
                                         .from_row = s->m,
                                         .to_row = s->k});
}

// Fails where the device was wrong.
static jot_status look(const struct turn *c, int flags[FLAGS])
{
    JOT_TRY(cuda_download(&c->d->base, flags, flag(c, 0), FLAGS * sizeof *flags));
    if (flags[INFO] || flags[V_IS_OFF] || flags[R_IS_OFF])
        return status_fail(JOT_ERR_LIBRARY, "%s: svd: cuSOLVER's vectors are wrong",
                           c->d->base.name);
    return JOT_OK;
}

static jot_status find_vectors(const struct turn *c)
{
    const struct svd *q = c->q;
    int flags[FLAGS];
    JOT_TRY(find_u(c));
    JOT_TRY(look(c, flags));
    if (!flags[U_IS_OFF])
        return put_vectors(c, q->t, q->b);
    JOT_TRY(find_u_by_reflectors(c));
    JOT_TRY(look(c, flags));
    return put_vectors(c, q->b, q->t);
}

static jot_status decompose(const struct turn *c)
{
    const struct svd *q = c->q;
    const struct cuda_solve *s = &q->base;
    int flags[FLAGS];
    uint64_t count = s->base.call.bytes[0] / (uint64_t)s->batch / sizeof(float);
    JOT_TRY(cuda_clear(&c->d->base, flag(c, 0), FLAGS * sizeof(int)));
    JOT_TRY(over(c, WIDEN, (int64_t)count,
                 NUMBERS(cuda_place(own(c, 0)), place(c, q->t), count,
                         place(c, s->bad + (size_t)c->i * sizeof(int)))));
    JOT_TRY(diagonalize(c));
    if (q->has_vectors) {
        JOT_TRY(find_vectors(c));
    } else {
        JOT_TRY(look(c, flags));
        JOT_TRY(
            over(c, ROOTS, s->k,
                 NUMBERS(place(c, q->values), place(c, q->lengths), (uint64_t)s->k, 1, true)));
    }
    return over(c, DESCEND, s->k,
                NUMBERS(place(c, q->lengths), cuda_place(own(c, 1)), (uint64_t)s->k));
}

static jot_status run_svd(struct cuda_device *d, const struct cuda_routine *r,
                          void *const *operands, char *workspace)
{
    const struct svd *q = (const struct svd *)r;
    const struct cuda_solve *s = &q->base;
    struct turn c = {d, q, 0, operands, workspace, memory_allocate(s->host_work + 1)};
    if (!c.host_work)
        return status_out_of_memory();
    jot_status status = cuda_solve_clear(d, s, workspace);
    if (status == JOT_OK)
        status = cuda_solver_enter(d, workspace);
    if (status == JOT_OK) {
        for (; c.i < s->batch && status == JOT_OK; c.i++)
            status = decompose(&c);
        cuda_solver_leave(d);
    }
    memory_release(c.host_work);
    JOT_TRY(status);
    return cuda_spoil(d, s->kernels[SPOIL], s, 1, operands, workspace);
}

// ---- gesvd

struct gesvd {
    struct cuda_solve base;
    bool is_wide;
    signed char job;
    int64_t rows,
        columns;        // of the matrix or its transpose, and of the vectors that are as long
    size_t copy, u, vh; // in the workspace
};

static jot_status find_by_gesvd(struct cuda_device *d, const struct gesvd *q, int64_t i,
                                void *const *operands, char *workspace, void *host_work)
{
    const struct cuda_solve *s = &q->base;
    size_t matrix = (size_t)i * s->element;
    char *u = q->is_wide && q->job != 'N' ? (char *)operands[3] : workspace + q->u;
    char *vh = q->is_wide && q->job != 'N' ? (char *)operands[2] : workspace + q->vh;
    return cuda_solver_status(
        d, "svd",
        cuda.cusolver.cusolverDnXgesvd(
            d->solver, d->solver_params, q->job, q->job, q->rows, s->k, s->type,
            workspace + q->copy + matrix * (size_t)(q->rows * s->k), q->rows, s->real_type,
            (char *)operands[1] + (size_t)(i * s->k) * s->part, s->type,
            u + matrix * (size_t)(q->rows * q->columns), q->rows, s->type,
            vh + matrix * (size_t)(s->k * s->k), s->k, s->type, workspace + s->work,
            s->device_work, host_work, s->host_work, (int *)(void *)(workspace + s->info) + i));
}

// Matrices of so many rows, one after the other, as their transposes.
static jot_status turn_all(struct cuda_device *d, const struct cuda_solve *s, int64_t rows,
                           int64_t columns, const void *from, void *to, void *bad)
{
    return cuda_turn(d, s->kernels[TURN], s->batch,
                     &(struct cuda_turn){.from = from,
                                         .to = to,
                                         .rows = rows,
                                         .columns = columns,
                                         .from_row = columns,
                                         .to_row = rows,
                                         .from_matrix = rows * columns,
                                         .to_matrix = rows * columns,
                                         .bad = bad});
}

// The transpose of a wide matrix is what is there; it is turned twice to be looked through.
static jot_status copy_in(struct cuda_device *d, const struct gesvd *q, void *const *operands,
                          char *workspace)
{
    const struct cuda_solve *s = &q->base;
    void *first = workspace + (q->is_wide ? q->u : q->copy);
    JOT_TRY(cuda_solve_clear(d, s, workspace));
    JOT_TRY(turn_all(d, s, s->m, s->n, operands[0], first, workspace + s->bad));
    return q->is_wide ? turn_all(d, s, s->n, s->m, first, workspace + q->copy, NULL) : JOT_OK;
}

static jot_status run_gesvd(struct cuda_device *d, const struct cuda_routine *r,
                            void *const *operands, char *workspace)
{
    const struct gesvd *q = (const struct gesvd *)r;
    const struct cuda_solve *s = &q->base;
    void *host_work = memory_allocate(s->host_work + 1);
    if (!host_work)
        return status_out_of_memory();
    jot_status status = copy_in(d, q, operands, workspace);
    if (status == JOT_OK)
        status = cuda_solver_enter(d, workspace);
    if (status == JOT_OK) {
        for (int64_t i = 0; i < s->batch && status == JOT_OK; i++)
            status = find_by_gesvd(d, q, i, operands, workspace, host_work);
        cuda_solver_leave(d);
    }
    memory_release(host_work);
    JOT_TRY(status);
    if (!q->is_wide && q->job != 'N') {
        JOT_TRY(turn_all(d, s, q->columns, s->m, workspace + q->u, operands[2], NULL));
        JOT_TRY(turn_all(d, s, s->k, s->k, workspace + q->vh, operands[3], NULL));
    }
    return cuda_spoil(d, s->kernels[SPOIL], s, 1, operands, workspace);
}

// ---- Binding

static jot_status ask_gesvd(struct cuda_device *d, struct gesvd *q)
{
    struct cuda_solve *s = &q->base;
    JOT_TRY(cuda_solver_enter(d, NULL));
    jot_status status = cuda_solver_status(
        d, "svd",
        cuda.cusolver.cusolverDnXgesvd_bufferSize(
            d->solver, d->solver_params, q->job, q->job, q->rows, s->k, s->type, NULL, q->rows,
            s->real_type, NULL, s->type, NULL, q->rows, s->type, NULL, s->k, s->type,
            &s->device_work, &s->host_work));
    cuda_solver_leave(d);
    return status;
}

static jot_status bind_gesvd(struct cuda_device *d, const struct rt_routine_call *call,
                             struct cuda_routine **out)
{
    static const signed char jobs[] = {'N', 'S', 'A'};
    struct cuda_solve *s;
    JOT_TRY(cuda_solve_make(d, call, sizeof(struct gesvd), "turn spoil", &s));
    if (!s)
        return JOT_OK;
    struct gesvd *q = (struct gesvd *)s;
    q->job = jobs[call->params[4]];
    q->is_wide = s->m < s->n;
    q->rows = s->m < s->n ? s->n : s->m;
    q->columns = q->job == 'A' ? q->rows : s->k;
    s->base.run = run_gesvd;
    jot_status status = ask_gesvd(d, q);
    cuda_solve_take(s);
    size_t *used = &s->base.workspace;
    q->copy = cuda_take(used, call->bytes[0]);
    q->u = cuda_take(used, (uint64_t)(s->batch * q->rows * q->columns) * s->element);
    q->vh = cuda_take(used, (uint64_t)(s->batch * s->k * s->k) * s->element);
    return cuda_solve_finish(s, status, cuda_solve_is_few(s), out);
}

// Between enter and leave.
static jot_status ask_svd(struct cuda_device *d, struct svd *q)
{
    struct cuda_solve *s = &q->base;
    JOT_TRY(cuda_solver_status(
        d, "svd",
        cuda.cusolver.cusolverDnXsyevd_bufferSize(
            d->solver, d->solver_params,
            q->has_vectors ? CUSOLVER_EIG_MODE_VECTOR : CUSOLVER_EIG_MODE_NOVECTOR,
            CUBLAS_FILL_MODE_LOWER, s->k, q->type, NULL, s->k, CUDA_R_64F, NULL, q->type,
            &s->device_work, &s->host_work)));
    if (!q->has_vectors)
        return JOT_OK;
    struct cuda_reflectors *r = &q->reflectors;
    JOT_TRY(cuda_reflectors_ask(d, r));
    s->device_work = r->device_work > s->device_work ? r->device_work : s->device_work;
    s->host_work = r->host_work > s->host_work ? r->host_work : s->host_work;
    return JOT_OK;
}

static void take_places(struct svd *q)
{
    size_t *used = &q->base.base.workspace;
    uint64_t k = (uint64_t)q->base.k, column = k * q->element;
    cuda_solve_take(&q->base);
    q->t = cuda_take(used, (uint64_t)q->rows * column);
    q->v = cuda_take(used, k * column);
    q->values = cuda_take(used, k * sizeof(double));
    q->lengths = cuda_take(used, k * sizeof(double));
    q->flags = cuda_take(used, FLAGS * sizeof(int));
    if (!q->has_vectors)
        return;
    q->b = cuda_take(used, (uint64_t)q->rows * column);
    q->p = cuda_take(used, k * column);
    q->phases = cuda_take(used, column);
    q->tau = cuda_take(used, column);
}

jot_status cuda_svd_bind(struct cuda_device *d, const struct rt_routine_call *call,
                         struct cuda_routine **out)
{
    const int64_t *p = call->params;
    jot_dtype dtype = (jot_dtype)p[0];
    if (dtype_real(dtype) != JOT_F32 || (p[4] == 2 && p[2] != p[3]))
        return bind_gesvd(d, call, out);
    struct cuda_solve *s;
    JOT_TRY(cuda_solve_make(d, call, sizeof(struct svd), "turn spoil", &s));
    if (!s)
        return JOT_OK;
    struct svd *q = (struct svd *)s;
    q->is_wide = s->m < s->n;
    q->has_vectors = p[4] != 0;
    q->rows = s->m < s->n ? s->n : s->m;
    q->dtype = dtype_is_complex(dtype) ? JOT_C128 : JOT_F64;
    q->type = dtype_is_complex(dtype) ? CUDA_C_64F : CUDA_R_64F;
    q->element = dtype_get(q->dtype)->bytes;
    q->reflectors = (struct cuda_reflectors){
        .dtype = q->dtype, .type = q->type, .m = q->rows, .n = s->k, .columns = s->k};
    s->base.run = run_svd;
    jot_status status = cuda_svd_kernels(d, q->dtype, KERNEL_NAMES, q->kernels);
    if (status == JOT_OK)
        status = cuda_solver_enter(d, NULL);
    if (status == JOT_OK) {
        status = ask_svd(d, q);
        cuda_solver_leave(d);
    }
    take_places(q);
    return cuda_solve_finish(s, status, cuda_solve_is_few(s), out);
}
