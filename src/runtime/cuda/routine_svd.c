// SPDX-License-Identifier: Apache-2.0
// The routine svd, by cuSOLVER.
//
// Single precision is computed in double, from the eigenvalues of a Gram matrix: with t the
// matrix or its conjugate transpose, whichever is not wide,
//
//     v diag(-l) v^H = -t^H t        (syevd sorts l upwards, so what it stands for downwards)
//     b = t v                        whose columns are orthogonal and as long as the singular values
//     u = b (b^H b)^(-1/2)           by a step of Newton's from the lengths of the columns
//
// Squares of single numbers are exact in double, and what syevd leaves of the angles between
// columns is of the order of 1e-16 s_1^2 / (s_i s_j): the step makes up for it down to singular
// values of 1e-6 s_1.  Below, u and s are of the QR decomposition b = u r, in which r is
// diagonal up to 1e-8 s_1 (the columns are in the order of their lengths, and reflectors are
// backward stable for each column alone).  Errors of u, s and v are then below those of
// rounding them to single precision, whatever the matrix.
//
// None of this is taken on trust: that v and u are orthonormal and that u diag(s) is b is
// looked at on the device, and a matrix that fails sends the call to the host.
//
// Double precision is gesvd's, and so are square factors of matrices that are not.
#include "runtime/cuda/wide.h"

#include "base/status.h"

enum { TURN, SPOIL };

// What was found out about a matrix, in flags.
enum { INFO, V_IS_OFF, U_IS_OFF, R_IS_OFF, FLAGS };

struct svd {
    struct cuda_wide wide;
    bool is_wide, has_vectors;
    int64_t rows; // of t, of which k is the number of columns
    struct cuda_reflectors reflectors;
    // In the workspace: rows by k, k by k, and k.
    size_t t, b, v, p, values, lengths, phases, tau, flags;
};

static const struct svd *svd_of(const struct cuda_matrix *c)
{
    return (const struct svd *)c->s;
}

static int *flag(const struct cuda_matrix *c, int which)
{
    return (int *)(void *)cuda_matrix_at(c, svd_of(c)->flags) + which;
}

// The matrix as it came: rows of it are columns of what cuBLAS sees.
static struct cuda_factor given(const struct svd *q)
{
    struct cuda_factor f = {CUBLAS_OP_N, q->t, q->wide.base.n};
    return q->is_wide ? f : cuda_conjugated(f);
}

// ---- Steps

static jot_status diagonalize(const struct cuda_matrix *c)
{
    const struct svd *q = svd_of(c);
    const struct cuda_solve *s = c->s;
    JOT_TRY(cuda_wide_product(c, s->k, s->k, q->rows, -1, cuda_conjugated(given(q)), given(q),
                              q->v));
    return cuda_solver_status(
        c->d, "svd",
        cuda.cusolver.cusolverDnXsyevd(
            c->d->solver, c->d->solver_params,
            q->has_vectors ? CUSOLVER_EIG_MODE_VECTOR : CUSOLVER_EIG_MODE_NOVECTOR,
            CUBLAS_FILL_MODE_LOWER, s->k, q->wide.type, cuda_matrix_at(c, q->v), s->k,
            CUDA_R_64F, cuda_matrix_at(c, q->values), q->wide.type, cuda_matrix_at(c, s->work),
            s->device_work, c->host_work, s->host_work, flag(c, INFO)));
}

// b, and u in the place of t.
static jot_status find_u(const struct cuda_matrix *c)
{
    const struct svd *q = svd_of(c);
    int64_t k = c->s->k, next = (k + 1) * (int64_t)(q->wide.element / sizeof(double));
    struct cuda_factor v = {CUBLAS_OP_N, q->v, k}, b = {CUBLAS_OP_N, q->b, q->rows},
                       w = {CUBLAS_OP_N, q->p, k};
    JOT_TRY(cuda_wide_product(c, k, k, k, 1, cuda_conjugated(v), v, q->p));
    JOT_TRY(cuda_wide_blocks(c, CUDA_WIDE_compare, k,
                             CUDA_NUMBERS(cuda_matrix_address(c, q->p), (uint64_t)k,
                                          CUDA_SINGLE, cuda_address(flag(c, V_IS_OFF)))));
    JOT_TRY(cuda_wide_product(c, q->rows, k, k, 1, given(q), v, q->b));
    JOT_TRY(cuda_wide_product(c, k, k, q->rows, 1, cuda_conjugated(b), b, q->p));
    JOT_TRY(cuda_wide_over(c, CUDA_WIDE_roots, k,
                           CUDA_NUMBERS(cuda_matrix_address(c, q->p),
                                        cuda_matrix_address(c, q->lengths), (uint64_t)k,
                                        (uint64_t)next, false)));
    JOT_TRY(cuda_wide_blocks(c, CUDA_WIDE_weigh, k,
                             CUDA_NUMBERS(cuda_matrix_address(c, q->p),
                                          cuda_matrix_address(c, q->lengths), (uint64_t)k,
                                          cuda_address(flag(c, U_IS_OFF)))));
    return cuda_wide_product(c, q->rows, k, k, 1, b, w, q->t);
}

// u in the place of b.
static jot_status find_u_by_reflectors(const struct cuda_matrix *c)
{
    const struct svd *q = svd_of(c);
    const struct cuda_solve *s = c->s;
    uint64_t rows = (uint64_t)q->rows, k = (uint64_t)s->k;
    char *b = cuda_matrix_at(c, q->b), *tau = cuda_matrix_at(c, q->tau);
    JOT_TRY(cuda_reflectors_find(c, &q->reflectors, b, tau, flag(c, INFO)));
    JOT_TRY(cuda_wide_blocks(c, CUDA_WIDE_settle, s->k,
                             CUDA_NUMBERS(cuda_address(b), cuda_matrix_address(c, q->lengths),
                                          cuda_matrix_address(c, q->phases), k, rows,
                                          cuda_address(flag(c, R_IS_OFF)))));
    JOT_TRY(cuda_reflectors_form(c, &q->reflectors, b, tau, flag(c, INFO)));
    return cuda_wide_over(
        c, CUDA_WIDE_multiply, q->rows * s->k,
        CUDA_NUMBERS(cuda_address(b), cuda_matrix_address(c, q->phases), rows, k));
}

// With u in one memory and another one free.  Of a matrix that is not wide t is its conjugate, and u too;
// of a wide one it is v that has the rows of its u.
static jot_status put_vectors(const struct cuda_matrix *c, size_t u, size_t other)
{
    const struct svd *q = svd_of(c);
    const struct cuda_solve *s = c->s;
    char *turned = cuda_matrix_at(c, other);
    JOT_TRY(cuda_wide_write(c, q->is_wide ? q->v : u, s->m * s->k, turned, true));
    JOT_TRY(cuda_wide_write(c, q->is_wide ? u : q->v, s->n * s->k, cuda_matrix_operand(c, 3),
                            false));
    return cuda_turn(c->d, s->kernels[TURN], 1,
                     &(struct cuda_turn){.from = turned,
                                         .to = cuda_matrix_operand(c, 2),
                                         .rows = s->k,
                                         .columns = s->m,
                                         .from_row = s->m,
                                         .to_row = s->k});
}

// Fails where the device was wrong.
static jot_status look(const struct cuda_matrix *c, int flags[FLAGS])
{
    JOT_TRY(cuda_download(&c->d->base, flags, flag(c, 0), FLAGS * sizeof *flags));
    if (flags[INFO] || flags[V_IS_OFF] || flags[R_IS_OFF])
        return status_fail(JOT_ERR_LIBRARY, "%s: svd: cuSOLVER's vectors are wrong",
                           c->d->base.name);
    return JOT_OK;
}

static jot_status find_vectors(const struct cuda_matrix *c)
{
    const struct svd *q = svd_of(c);
    int flags[FLAGS];
    JOT_TRY(find_u(c));
    JOT_TRY(look(c, flags));
    if (!flags[U_IS_OFF])
        return put_vectors(c, q->t, q->b);
    JOT_TRY(find_u_by_reflectors(c));
    JOT_TRY(look(c, flags));
    return put_vectors(c, q->b, q->t);
}

static jot_status find_values(const struct cuda_matrix *c)
{
    const struct svd *q = svd_of(c);
    int flags[FLAGS];
    JOT_TRY(look(c, flags));
    return cuda_wide_over(c, CUDA_WIDE_roots, c->s->k,
                          CUDA_NUMBERS(cuda_matrix_address(c, q->values),
                                       cuda_matrix_address(c, q->lengths), (uint64_t)c->s->k, 1,
                                       true));
}

static jot_status decompose(const struct cuda_matrix *c)
{
    const struct svd *q = svd_of(c);
    JOT_TRY(cuda_clear(&c->d->base, flag(c, 0), FLAGS * sizeof(int)));
    JOT_TRY(cuda_wide_read(c, q->t));
    JOT_TRY(diagonalize(c));
    JOT_TRY(q->has_vectors ? find_vectors(c) : find_values(c));
    return cuda_wide_over(c, CUDA_WIDE_descend, c->s->k,
                          CUDA_NUMBERS(cuda_matrix_address(c, q->lengths),
                                       cuda_address(cuda_matrix_operand(c, 1)),
                                       (uint64_t)c->s->k));
}

static jot_status run_svd(struct cuda_device *d, const struct cuda_routine *r,
                          void *const *operands, char *workspace)
{
    const struct cuda_solve *s = (const struct cuda_solve *)r;
    JOT_TRY(cuda_solve_clear(d, s, workspace));
    JOT_TRY(cuda_solve_each(d, s, operands, workspace, decompose));
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

static jot_status find_by_gesvd(const struct cuda_matrix *c)
{
    const struct cuda_solve *s = c->s;
    const struct gesvd *q = (const struct gesvd *)s;
    size_t matrix = (size_t)c->i * s->element;
    bool in_place = q->is_wide && q->job != 'N';
    char *u = cuda_matrix_at(c, q->u) + matrix * (size_t)(q->rows * q->columns);
    char *vh = cuda_matrix_at(c, q->vh) + matrix * (size_t)(s->k * s->k);
    return cuda_solver_status(
        c->d, "svd",
        cuda.cusolver.cusolverDnXgesvd(
            c->d->solver, c->d->solver_params, q->job, q->job, q->rows, s->k, s->type,
            cuda_matrix_at(c, q->copy) + matrix * (size_t)(q->rows * s->k), q->rows,
            s->real_type, cuda_matrix_operand(c, 1), s->type,
            in_place ? cuda_matrix_operand(c, 3) : u, q->rows, s->type,
            in_place ? cuda_matrix_operand(c, 2) : vh, s->k, s->type,
            cuda_matrix_at(c, s->work), s->device_work, c->host_work, s->host_work,
            cuda_matrix_info(c)));
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
    JOT_TRY(copy_in(d, q, operands, workspace));
    JOT_TRY(cuda_solve_each(d, s, operands, workspace, find_by_gesvd));
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
    struct cuda_solve *s = &q->wide.base;
    JOT_TRY(cuda_solver_status(
        d, "svd",
        cuda.cusolver.cusolverDnXsyevd_bufferSize(
            d->solver, d->solver_params,
            q->has_vectors ? CUSOLVER_EIG_MODE_VECTOR : CUSOLVER_EIG_MODE_NOVECTOR,
            CUBLAS_FILL_MODE_LOWER, s->k, q->wide.type, NULL, s->k, CUDA_R_64F, NULL,
            q->wide.type, &s->device_work, &s->host_work)));
    return q->has_vectors ? cuda_reflectors_ask(d, &q->reflectors, s) : JOT_OK;
}

static void take_workspace(struct svd *q)
{
    struct cuda_solve *s = &q->wide.base;
    size_t *used = &s->base.workspace;
    uint64_t k = (uint64_t)s->k, column = k * q->wide.element;
    cuda_solve_take(s);
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
    if (p[4] == 3)
        return cuda_truncated_svd_bind(d, call, out);
    JOT_TRY(cuda_small_svd_bind(d, call, out));
    if (*out)
        return JOT_OK;
    if (dtype_real((jot_dtype)p[0]) != JOT_F32 || (p[4] == 2 && p[2] != p[3]))
        return bind_gesvd(d, call, out);
    struct cuda_solve *s;
    JOT_TRY(cuda_solve_make(d, call, sizeof(struct svd), "turn spoil", &s));
    if (!s)
        return JOT_OK;
    struct svd *q = (struct svd *)s;
    q->is_wide = s->m < s->n;
    q->has_vectors = p[4] != 0;
    q->rows = s->m < s->n ? s->n : s->m;
    s->base.run = run_svd;
    jot_status status = cuda_wide_make(d, &q->wide);
    q->reflectors = (struct cuda_reflectors){
        .dtype = q->wide.dtype, .type = q->wide.type, .m = q->rows, .n = s->k, .columns = s->k};
    if (status == JOT_OK)
        status = cuda_solver_enter(d, NULL);
    if (status == JOT_OK) {
        status = ask_svd(d, q);
        cuda_solver_leave(d);
    }
    take_workspace(q);
    return cuda_solve_finish(s, status, cuda_solve_is_few(s), out);
}
