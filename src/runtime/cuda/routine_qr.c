// SPDX-License-Identifier: Apache-2.0
// The routine qr, by cuSOLVER and cuBLAS.
//
// Of f32 and c64 in double precision, by the Cholesky factor of a Gram matrix: with t the
// transpose of the matrix, which is what the libraries see, and l the transpose of r,
//
//     l l^H = t t^H
//     p = l^-1 t                     whose rows are orthonormal up to e = p p^H - 1
//     p := (1 - h) p, l := l (1 + h)  with h + h^H = e, h lower triangular
//
// Squares of single numbers are exact in double, and e is of the order of 1e-16 (s_1 / s_n)^2;
// what is left of it is of that of e^2.  Where e is above 2^-12, as for matrices without n
// independent columns, reflectors do it (geqrf), and so they do for double precision, wide
// matrices and square factors.
#include "runtime/cuda/wide.h"

#include "base/status.h"

enum { TURN, SPOIL };
enum { INFO, IS_OFF, FLAGS }; // flags of a Cholesky factor

struct qr {
    struct cuda_wide wide;
    bool has_factor; // of Cholesky
    struct cuda_reflectors reflectors;
    int64_t copy_next; // elements of a copy
    size_t copy, tau;  // in the workspace
    // The same, in the place of the copies: n by m, and n by n.
    size_t t, p, l, e, flags, potrf_work;
};

static const struct qr *qr_of(const struct cuda_matrix *c) { return (const struct qr *)c->s; }

// ---- By a Cholesky factor

static int *flag(const struct cuda_matrix *c, int which)
{
    return (int *)(void *)cuda_matrix_at(c, qr_of(c)->flags) + which;
}

static jot_status factor(const struct cuda_matrix *c)
{
    const struct qr *q = qr_of(c);
    const struct cuda_solve *s = c->s;
    struct cuda_factor t = {CUBLAS_OP_N, q->t, s->n};
    const double one[2] = {1, 0};
    JOT_TRY(cuda_wide_product(c, s->n, s->n, s->m, 1, t, cuda_conjugated(t), q->l));
    JOT_TRY(cuda_wide_over(c, CUDA_WIDE_lower, s->n * s->n,
                           CUDA_NUMBERS(cuda_matrix_address(c, q->l), (uint64_t)s->n)));
    JOT_TRY(cuda_solver_status(c->d, "qr",
                               cuda.cusolver.cusolverDnXpotrf(
                                   c->d->solver, c->d->solver_params, CUBLAS_FILL_MODE_LOWER,
                                   s->n, q->wide.type, cuda_matrix_at(c, q->l), s->n,
                                   q->wide.type, cuda_matrix_at(c, s->work), q->potrf_work,
                                   c->host_work, s->host_work, flag(c, INFO))));
    return cuda_blas_status(
        c->d, "qr",
        cuda_trsm_of(q->wide.dtype)(c->d->blas_routines, CUBLAS_SIDE_LEFT,
                                    CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, CUBLAS_DIAG_NON_UNIT,
                                    (int)s->n, (int)s->m, one, cuda_matrix_at(c, q->l),
                                    (int)s->n, cuda_matrix_at(c, q->t), (int)s->n));
}

// Of the factor and p, that is in the place of t.
static jot_status correct(const struct cuda_matrix *c)
{
    const struct qr *q = qr_of(c);
    const struct cuda_solve *s = c->s;
    uint64_t n = (uint64_t)s->n, count = n * n;
    struct cuda_factor p = {CUBLAS_OP_N, q->t, s->n}, l = {CUBLAS_OP_N, q->l, s->n},
                       w = {CUBLAS_OP_N, q->e, s->n};
    JOT_TRY(cuda_wide_product(c, s->n, s->n, s->m, 1, p, cuda_conjugated(p), q->e));
    JOT_TRY(cuda_wide_blocks(
        c, CUDA_WIDE_unravel, s->n,
        CUDA_NUMBERS(cuda_matrix_address(c, q->e), n, cuda_address(flag(c, IS_OFF)))));
    JOT_TRY(cuda_wide_product(c, s->n, s->m, s->n, 1, w, p, q->p));
    JOT_TRY(cuda_wide_write(c, q->p, s->m * s->n, cuda_matrix_operand(c, 1), false));
    // l (1 + h) = 2 l - l w
    JOT_TRY(cuda_wide_product(c, s->n, s->n, s->n, -1, l, w, q->p));
    return cuda_wide_over(c, CUDA_WIDE_narrow_lower, s->n * s->n,
                          CUDA_NUMBERS(cuda_matrix_address(c, q->p),
                                       cuda_matrix_address(c, q->l),
                                       cuda_address(cuda_matrix_operand(c, 2)), count, n));
}

// JOT_ERR_LIBRARY where there are not enough independent columns.
static jot_status factor_and_look(const struct cuda_matrix *c)
{
    int flags[FLAGS];
    JOT_TRY(cuda_clear(&c->d->base, flag(c, 0), sizeof flags));
    JOT_TRY(cuda_wide_read(c, qr_of(c)->t));
    JOT_TRY(factor(c));
    JOT_TRY(correct(c));
    JOT_TRY(cuda_download(&c->d->base, flags, flag(c, 0), sizeof flags));
    return flags[INFO] || flags[IS_OFF] ? JOT_ERR_LIBRARY : JOT_OK;
}

// ---- By reflectors

static char *copy_at(const struct cuda_matrix *c)
{
    return cuda_matrix_at(c, qr_of(c)->copy) +
           (size_t)(c->i * qr_of(c)->copy_next) * c->s->element;
}

static char *tau_at(const struct cuda_matrix *c)
{
    return cuda_matrix_at(c, qr_of(c)->tau) + (size_t)(c->i * c->s->k) * c->s->element;
}

static jot_status find_reflectors(const struct cuda_matrix *c)
{
    return cuda_reflectors_find(c, &qr_of(c)->reflectors, copy_at(c), tau_at(c),
                                cuda_matrix_info(c));
}

static jot_status form_reflectors(const struct cuda_matrix *c)
{
    return cuda_reflectors_form(c, &qr_of(c)->reflectors, copy_at(c), tau_at(c),
                                cuda_matrix_info(c));
}

// The first columns of the copies as a result.
static jot_status turn_out(struct cuda_device *d, const struct qr *q, int64_t columns,
                           int64_t rows, bool is_lower, char *workspace, void *result)
{
    const struct cuda_solve *s = &q->wide.base;
    return cuda_turn(d, s->kernels[TURN], s->batch,
                     &(struct cuda_turn){.from = workspace + q->copy,
                                         .to = result,
                                         .rows = columns,
                                         .columns = rows,
                                         .from_row = s->m,
                                         .to_row = columns,
                                         .from_matrix = q->copy_next,
                                         .to_matrix = rows * columns,
                                         .is_lower = is_lower});
}

static jot_status reflect(struct cuda_device *d, const struct qr *q, void *const *operands,
                          char *workspace)
{
    const struct cuda_solve *s = &q->wide.base;
    int64_t columns = q->reflectors.columns;
    JOT_TRY(cuda_solve_clear(d, s, workspace));
    JOT_TRY(cuda_turn(d, s->kernels[TURN], s->batch,
                      &(struct cuda_turn){.from = operands[0],
                                          .to = workspace + q->copy,
                                          .rows = s->m,
                                          .columns = s->n,
                                          .from_row = s->n,
                                          .to_row = s->m,
                                          .from_matrix = s->m * s->n,
                                          .to_matrix = q->copy_next,
                                          .bad = workspace + s->bad}));
    JOT_TRY(cuda_solve_each(d, s, operands, workspace, find_reflectors));
    JOT_TRY(turn_out(d, q, s->n, columns, true, workspace, operands[2]));
    JOT_TRY(cuda_solve_each(d, s, operands, workspace, form_reflectors));
    return turn_out(d, q, columns, s->m, false, workspace, operands[1]);
}

// ---- The routine

static jot_status run_qr(struct cuda_device *d, const struct cuda_routine *r,
                         void *const *operands, char *workspace)
{
    const struct qr *q = (const struct qr *)r;
    const struct cuda_solve *s = &q->wide.base;
    jot_status status = JOT_ERR_LIBRARY;
    if (q->has_factor) {
        JOT_TRY(cuda_solve_clear(d, s, workspace));
        status = cuda_solve_each(d, s, operands, workspace, factor_and_look);
    }
    if (status == JOT_ERR_LIBRARY)
        status = reflect(d, q, operands, workspace);
    JOT_TRY(status);
    return cuda_spoil(d, s->kernels[SPOIL], s, 1, operands, workspace);
}

// Between enter and leave.
static jot_status ask_qr(struct cuda_device *d, struct qr *q)
{
    struct cuda_solve *s = &q->wide.base;
    size_t host_work = 0;
    JOT_TRY(cuda_reflectors_ask(d, &q->reflectors, s));
    if (!q->has_factor)
        return JOT_OK;
    JOT_TRY(cuda_solver_status(d, "qr",
                               cuda.cusolver.cusolverDnXpotrf_bufferSize(
                                   d->solver, d->solver_params, CUBLAS_FILL_MODE_LOWER, s->n,
                                   q->wide.type, NULL, s->n, q->wide.type, &q->potrf_work,
                                   &host_work)));
    cuda_solve_want(s, q->potrf_work, host_work);
    return JOT_OK;
}

static void take_workspace(struct qr *q)
{
    struct cuda_solve *s = &q->wide.base;
    size_t *used = &s->base.workspace;
    uint64_t n = (uint64_t)s->n, m = (uint64_t)s->m;
    cuda_solve_take(s);
    size_t start = *used;
    q->copy = cuda_take(used, (uint64_t)(s->batch * q->copy_next) * s->element);
    q->tau = cuda_take(used, (uint64_t)(s->batch * s->k) * s->element);
    if (!q->has_factor)
        return;
    size_t end = *used;
    *used = start;
    q->t = cuda_take(used, n * m * q->wide.element);
    q->p = cuda_take(used, n * m * q->wide.element);
    q->l = cuda_take(used, n * n * q->wide.element);
    q->e = cuda_take(used, n * n * q->wide.element);
    q->flags = cuda_take(used, FLAGS * sizeof(int));
    *used = end > *used ? end : *used;
}

jot_status cuda_qr_bind(struct cuda_device *d, const struct rt_routine_call *call,
                        struct cuda_routine **out)
{
    struct cuda_solve *s;
    JOT_TRY(cuda_small_qr_bind(d, call, out));
    if (*out)
        return JOT_OK;
    JOT_TRY(cuda_solve_make(d, call, sizeof(struct qr), "turn spoil", &s));
    if (!s)
        return JOT_OK;
    struct qr *q = (struct qr *)s;
    int64_t columns = call->params[4] ? s->m : s->k;
    q->has_factor = s->part == sizeof(float) && s->m >= s->n && columns == s->n;
    q->reflectors = (struct cuda_reflectors){
        .dtype = s->dtype, .type = s->type, .m = s->m, .n = s->n, .columns = columns};
    q->copy_next = s->m * (columns > s->n ? columns : s->n);
    s->base.run = run_qr;
    jot_status status = q->has_factor ? cuda_wide_make(d, &q->wide) : JOT_OK;
    if (status == JOT_OK)
        status = cuda_solver_enter(d, NULL);
    if (status == JOT_OK) {
        status = ask_qr(d, q);
        cuda_solver_leave(d);
    }
    take_workspace(q);
    return cuda_solve_finish(s, status, cuda_solve_is_few(s), out);
}
