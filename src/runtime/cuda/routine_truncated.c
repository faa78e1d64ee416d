// SPDX-License-Identifier: Apache-2.0
// The first singular values and vectors, by cuSOLVER's gesvdr: with t the matrix or its
// transpose, whichever is not wide, a few steps from a random block of columns towards those
// that t stretches most.
//
// How many steps that takes depends on how the values descend, which nobody knows before.  So
// what came is looked at on the device: that l and r are orthonormal, that t r = l s and
// t^T l = r s, and that t stretches nothing beside them further than the last of s (of a probe,
// beside r, t^T t makes nothing longer than s_last^2 times what it was).  A matrix that fails
// is decomposed as a whole, by the routine for that, and so are complex matrices, and those of
// which many values are wanted.
//
// All of it is in double precision (wide.h).
#include "runtime/cuda/wide.h"

#include "base/memory.h"
#include "base/status.h"

#include <string.h>

enum { TURN, SPOIL };

// What was found out about a matrix, in flags.
enum { INFO, OFF, FLAGS };

enum { PROBES = 8, PROBE_STEPS = 4 };

// Of gesvdr: columns of its block besides those that are wanted, at least and for each of them.  A step
// costs as the block is wide, and where values descend evenly it gains as the block is wider than k:
// many columns and few steps find more for the time than the other way round.
enum { EXTRA_LEAST = 96, EXTRA = 2 };

struct truncated {
    struct cuda_wide wide;
    struct cuda_routine *whole; // its results and workspace are parts of this one's workspace
    size_t s, u, vh, cut, rest;
    int64_t params[5]; // of that
    bool is_wide, is_random;
    int64_t first, extra, steps; // values, columns of the block besides
    int64_t rows;                // of t, of which k is the number of columns
    // In the workspace: the matrix column by column and row by row, which is its transpose
    // column by column; one of them is t, which gesvdr overwrites.
    size_t columns, given, l, r, values, product, small, probe, image, next, flags;
    CUfunction turn_wide;
};

static const struct truncated *truncated_of(const struct cuda_matrix *c)
{
    return (const struct truncated *)c->s;
}

static int *flag(const struct cuda_matrix *c, int which)
{
    return (int *)(void *)cuda_matrix_at(c, truncated_of(c)->flags) + which;
}

// ---- All of them

// The first rows and columns of matrices, in two turns.
static jot_status cut(struct cuda_device *d, const struct truncated *q,
                      const struct cuda_turn *from, void *to, char *workspace)
{
    const struct cuda_solve *s = &q->wide.base;
    struct cuda_turn over = *from, back = {.from = workspace + q->cut, .to = to};
    over.to = workspace + q->cut;
    over.to_row = back.from_row = back.columns = from->rows;
    over.to_matrix = back.from_matrix = back.to_matrix = from->rows * from->columns;
    back.rows = back.to_row = from->columns;
    JOT_TRY(cuda_turn(d, s->kernels[TURN], s->batch, &over));
    return cuda_turn(d, s->kernels[TURN], s->batch, &back);
}

static jot_status copy(struct cuda_device *d, void *to, const void *from, size_t bytes)
{
    return cuda_copy(&d->base, to, &d->base, from, bytes);
}

static jot_status run_whole(struct cuda_device *d, const struct truncated *q,
                            void *const *operands, char *workspace)
{
    const struct cuda_solve *s = &q->wide.base;
    void *const all[] = {operands[0], workspace + q->s, workspace + q->u, workspace + q->vh};
    size_t row = (size_t)s->k * s->part, part = (size_t)q->first * s->part;
    JOT_TRY(q->whole->run(d, q->whole, all, workspace + q->rest));
    for (size_t i = 0; i < (size_t)s->batch; i++)
        JOT_TRY(copy(d, (char *)operands[1] + i * part, (char *)all[1] + i * row, part));
    JOT_TRY(cut(d, q,
                &(struct cuda_turn){.from = all[2],
                                    .rows = s->m,
                                    .columns = q->first,
                                    .from_row = s->k,
                                    .from_matrix = s->m * s->k},
                operands[2], workspace));
    return cut(d, q,
               &(struct cuda_turn){.from = all[3],
                                   .rows = q->first,
                                   .columns = s->n,
                                   .from_row = s->n,
                                   .from_matrix = s->k * s->n},
               operands[3], workspace);
}

// ---- The first of them

static jot_status turn_one(const struct cuda_matrix *c, CUfunction turn, int64_t rows,
                           int64_t columns, const void *from, void *to, void *bad)
{
    return cuda_turn(c->d, turn, 1,
                     &(struct cuda_turn){.from = from,
                                         .to = to,
                                         .rows = rows,
                                         .columns = columns,
                                         .from_row = columns,
                                         .to_row = rows,
                                         .bad = bad});
}

static jot_status read_matrix(const struct cuda_matrix *c)
{
    const struct truncated *q = truncated_of(c);
    const struct cuda_solve *s = c->s;
    char *given = cuda_matrix_at(c, q->given), *columns = cuda_matrix_at(c, q->columns);
    if (s->dtype == JOT_F32) {
        JOT_TRY(cuda_wide_read(c, q->given));
        return turn_one(c, q->turn_wide, s->m, s->n, given, columns, NULL);
    }
    JOT_TRY(turn_one(c, q->turn_wide, s->m, s->n, cuda_matrix_operand(c, 0), columns,
                     cuda_matrix_at(c, s->bad + (size_t)c->i * sizeof(int))));
    return turn_one(c, q->turn_wide, s->n, s->m, columns, given, NULL);
}

// Column by column at an offset, as numbers of the call.
static jot_status write_numbers(const struct cuda_matrix *c, size_t from, int64_t count,
                                void *to)
{
    if (c->s->dtype == JOT_F32)
        return cuda_wide_write(c, from, count, to, false);
    return copy(c->d, to, cuda_matrix_at(c, from), (size_t)count * sizeof(double));
}

static jot_status write_first(const struct cuda_matrix *c)
{
    const struct truncated *q = truncated_of(c);
    const struct cuda_solve *s = c->s;
    char *turned = cuda_matrix_at(c, q->cut);
    JOT_TRY(write_numbers(c, q->values, q->first, cuda_matrix_operand(c, 1)));
    JOT_TRY(
        write_numbers(c, q->is_wide ? q->l : q->r, s->n * q->first, cuda_matrix_operand(c, 3)));
    JOT_TRY(write_numbers(c, q->is_wide ? q->r : q->l, s->m * q->first, turned));
    return turn_one(c, s->kernels[TURN], q->first, s->m, turned, cuda_matrix_operand(c, 2),
                    NULL);
}

// How wrong a number of double precision may be that becomes one of the call.
static uint64_t tolerance(const struct cuda_matrix *c)
{
    double x = c->s->dtype == JOT_F32 ? 0x1p-24 : 0x1p-47;
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static jot_status check_orthonormal(const struct cuda_matrix *c, size_t at, int64_t rows)
{
    const struct truncated *q = truncated_of(c);
    struct cuda_factor x = {CUBLAS_OP_N, at, rows};
    JOT_TRY(
        cuda_wide_product(c, q->first, q->first, rows, 1, cuda_conjugated(x), x, q->product));
    return cuda_wide_blocks(c, CUDA_WIDE_compare, q->first,
                            CUDA_NUMBERS(cuda_matrix_address(c, q->product), (uint64_t)q->first,
                                         tolerance(c), cuda_address(flag(c, OFF))));
}

// t as a factor: what is left of the matrix is its transpose.
static struct cuda_factor t_of(const struct truncated *q)
{
    return (struct cuda_factor){CUBLAS_OP_C, q->is_wide ? q->columns : q->given,
                                q->wide.base.k};
}

// t r = l s, or t^T l = r s.
static jot_status check_mapping(const struct cuda_matrix *c, struct cuda_factor t, size_t from,
                                int64_t inner, size_t to, int64_t rows)
{
    const struct truncated *q = truncated_of(c);
    JOT_TRY(cuda_wide_product(c, rows, q->first, inner, 1, t,
                              (struct cuda_factor){CUBLAS_OP_N, from, inner}, q->product));
    return cuda_wide_blocks(c, CUDA_WIDE_stretched, q->first,
                            CUDA_NUMBERS(cuda_matrix_address(c, q->product),
                                         cuda_matrix_address(c, to),
                                         cuda_matrix_address(c, q->values), (uint64_t)rows,
                                         tolerance(c), cuda_address(flag(c, OFF))));
}

// Takes from the columns of x what is in the space of the vectors.
static jot_status leave_space(const struct cuda_matrix *c, size_t vectors, int64_t rows,
                              size_t x)
{
    const struct truncated *q = truncated_of(c);
    struct cuda_factor v = {CUBLAS_OP_N, vectors, rows}, g = {CUBLAS_OP_N, x, rows},
                       inside = {CUBLAS_OP_N, q->small, q->first};
    JOT_TRY(cuda_wide_product(c, q->first, PROBES, rows, 1, cuda_conjugated(v), g, q->small));
    JOT_TRY(cuda_wide_product(c, rows, PROBES, q->first, 1, v, inside, q->product));
    return cuda_wide_over(c, CUDA_WIDE_subtract, rows * PROBES,
                          CUDA_NUMBERS(cuda_matrix_address(c, x),
                                       cuda_matrix_address(c, q->product),
                                       (uint64_t)(rows * PROBES)));
}

// Nothing beside the vectors is stretched further.
static jot_status check_rest(const struct cuda_matrix *c)
{
    const struct truncated *q = truncated_of(c);
    int64_t k = c->s->k, rows = q->rows;
    struct cuda_factor t = t_of(q), probe = {CUBLAS_OP_N, q->probe, k},
                       image = {CUBLAS_OP_N, q->image, rows};
    JOT_TRY(
        cuda_wide_over(c, CUDA_WIDE_scatter, k * PROBES,
                       CUDA_NUMBERS(cuda_matrix_address(c, q->probe), (uint64_t)(k * PROBES))));
    JOT_TRY(leave_space(c, q->r, k, q->probe));
    for (int step = 0; step < PROBE_STEPS; step++) {
        if (step > 0)
            JOT_TRY(copy(c->d, cuda_matrix_at(c, q->probe), cuda_matrix_at(c, q->next),
                         (size_t)(k * PROBES) * sizeof(double)));
        JOT_TRY(cuda_wide_product(c, rows, PROBES, k, 1, t, probe, q->image));
        JOT_TRY(leave_space(c, q->l, rows, q->image));
        JOT_TRY(cuda_wide_product(c, k, PROBES, rows, 1, cuda_conjugated(t), image, q->next));
        JOT_TRY(leave_space(c, q->r, k, q->next));
    }
    return cuda_wide_blocks(c, CUDA_WIDE_grown, PROBES,
                            CUDA_NUMBERS(cuda_matrix_address(c, q->next),
                                         cuda_matrix_address(c, q->probe),
                                         cuda_matrix_address(c, q->values), (uint64_t)k,
                                         (uint64_t)q->first, cuda_address(flag(c, OFF))));
}

static jot_status find_first(const struct cuda_matrix *c)
{
    const struct truncated *q = truncated_of(c);
    const struct cuda_solve *s = c->s;
    struct cuda_factor t = t_of(q);
    int flags[FLAGS];
    JOT_TRY(cuda_clear(&c->d->base, flag(c, 0), sizeof flags));
    JOT_TRY(read_matrix(c));
    JOT_TRY(cuda_solver_status(
        c->d, "svd",
        cuda.cusolver.cusolverDnXgesvdr(
            c->d->solver, c->d->solver_params, 'S', 'S', q->rows, s->k, q->first, q->extra,
            q->steps, CUDA_R_64F, cuda_matrix_at(c, q->is_wide ? q->given : q->columns),
            q->rows, CUDA_R_64F, cuda_matrix_at(c, q->values), CUDA_R_64F,
            cuda_matrix_at(c, q->l), q->rows, CUDA_R_64F, cuda_matrix_at(c, q->r), s->k,
            CUDA_R_64F, cuda_matrix_at(c, s->work), s->device_work, c->host_work, s->host_work,
            flag(c, INFO))));
    JOT_TRY(check_orthonormal(c, q->l, q->rows));
    JOT_TRY(check_orthonormal(c, q->r, s->k));
    JOT_TRY(check_mapping(c, t, q->r, s->k, q->l, q->rows));
    JOT_TRY(check_mapping(c, cuda_conjugated(t), q->l, q->rows, q->r, s->k));
    JOT_TRY(check_rest(c));
    JOT_TRY(write_first(c));
    JOT_TRY(cuda_download(&c->d->base, flags, flag(c, 0), sizeof flags));
    return flags[INFO] || flags[OFF]
               ? status_fail(JOT_ERR_LIBRARY, "%s: svd: gesvdr's vectors are wrong",
                             c->d->base.name)
               : JOT_OK;
}

static jot_status run_truncated(struct cuda_device *d, const struct cuda_routine *r,
                                void *const *operands, char *workspace)
{
    const struct truncated *q = (const struct truncated *)r;
    const struct cuda_solve *s = &q->wide.base;
    if (!q->is_random)
        return run_whole(d, q, operands, workspace);
    JOT_TRY(cuda_solve_clear(d, s, workspace));
    jot_status status = cuda_solve_each(d, s, operands, workspace, find_first);
    if (status == JOT_ERR_LIBRARY)
        return run_whole(d, q, operands, workspace);
    JOT_TRY(status);
    return cuda_spoil(d, s->kernels[SPOIL], s, 1, operands, workspace);
}

// ---- Binding

// The routine for all of them.
static jot_status bind_whole(struct cuda_device *d, struct truncated *q,
                             const struct rt_routine_call *call)
{
    const struct cuda_solve *s = &q->wide.base;
    struct rt_routine_call all = *call;
    uint64_t batch = (uint64_t)s->batch;
    memcpy(q->params, call->params, sizeof q->params);
    q->params[4] = 1;
    all.params = q->params;
    all.bytes[1] = batch * (uint64_t)s->k * s->part;
    all.bytes[2] = batch * (uint64_t)(s->m * s->k) * s->element;
    all.bytes[3] = batch * (uint64_t)(s->k * s->n) * s->element;
    JOT_TRY(cuda_svd_bind(d, &all, &q->whole));
    if (q->whole)
        q->whole->call = all;
    return JOT_OK;
}

static jot_status ask_gesvdr(struct cuda_device *d, struct truncated *q)
{
    struct cuda_solve *s = &q->wide.base;
    JOT_TRY(cuda_wide_make(d, &q->wide));
    JOT_TRY(cuda_matrix_kernels(d, CUDA_OF_MATRICES, JOT_F64, "turn", &q->turn_wide));
    JOT_TRY(cuda_solver_enter(d, NULL));
    jot_status status = cuda_solver_status(
        d, "svd",
        cuda.cusolver.cusolverDnXgesvdr_bufferSize(
            d->solver, d->solver_params, 'S', 'S', q->rows, s->k, q->first, q->extra, q->steps,
            CUDA_R_64F, NULL, q->rows, CUDA_R_64F, NULL, CUDA_R_64F, NULL, q->rows, CUDA_R_64F,
            NULL, s->k, CUDA_R_64F, &s->device_work, &s->host_work));
    cuda_solver_leave(d);
    return status;
}

static void take_workspace(struct truncated *q)
{
    struct cuda_solve *s = &q->wide.base;
    size_t *used = &s->base.workspace;
    uint64_t rows = (uint64_t)q->rows, k = (uint64_t)s->k, batch = (uint64_t)s->batch,
             first = (uint64_t)q->first, wide = first > PROBES ? first : PROBES;
    const struct rt_routine_call *all = &q->whole->call;
    cuda_solve_take(s);
    q->cut = cuda_take(used, batch * rows * first * s->element);
    size_t start = *used;
    q->s = cuda_take(used, all->bytes[1]);
    q->u = cuda_take(used, all->bytes[2]);
    q->vh = cuda_take(used, all->bytes[3]);
    q->rest = cuda_take(used, q->whole->workspace);
    if (!q->is_random)
        return;
    // Where the other way has its own.
    size_t end = *used;
    *used = start;
    q->columns = cuda_take(used, rows * k * sizeof(double));
    q->given = cuda_take(used, rows * k * sizeof(double));
    // gesvdr may want room for the columns besides.
    q->l = cuda_take(used, rows * (first + (uint64_t)q->extra) * sizeof(double));
    q->r = cuda_take(used, k * (first + (uint64_t)q->extra) * sizeof(double));
    q->values = cuda_take(used, k * sizeof(double));
    q->product = cuda_take(used, rows * wide * sizeof(double));
    q->small = cuda_take(used, first * PROBES * sizeof(double));
    q->probe = cuda_take(used, k * PROBES * sizeof(double));
    q->image = cuda_take(used, rows * PROBES * sizeof(double));
    q->next = cuda_take(used, k * PROBES * sizeof(double));
    q->flags = cuda_take(used, FLAGS * sizeof(int));
    *used = *used > end ? *used : end;
}

jot_status cuda_truncated_svd_bind(struct cuda_device *d, const struct rt_routine_call *call,
                                   struct cuda_routine **out)
{
    struct cuda_solve *s;
    JOT_TRY(cuda_solve_make(d, call, sizeof(struct truncated), "turn spoil", &s));
    if (!s)
        return JOT_OK;
    struct truncated *q = (struct truncated *)s;
    s->base.run = run_truncated;
    q->is_wide = s->m < s->n;
    q->rows = q->is_wide ? s->n : s->m;
    q->first = (int64_t)(call->bytes[1] / s->part) / s->batch;
    q->steps = s->dtype == JOT_F32
                   ? 6
                   : 12; // all of them are found 8 times as fast in single precision
    q->extra = EXTRA * q->first > EXTRA_LEAST ? EXTRA * q->first : EXTRA_LEAST;
    if (q->extra > s->k - q->first)
        q->extra = s->k - q->first;
    q->is_random =
        !dtype_is_complex(s->dtype) && cuda.cusolver.cusolverDnXgesvdr && q->first <= s->k / 2;
    jot_status status = bind_whole(d, q, call);
    if (status == JOT_OK && q->whole && q->is_random)
        status = ask_gesvdr(d, q);
    if (status == JOT_ERR_LIBRARY && q->whole) { // that has what it needs
        q->is_random = false;
        status = JOT_OK;
    }
    if (status == JOT_OK && q->whole) {
        take_workspace(q);
        s->base.part = q->whole;
        *out = &s->base;
        return JOT_OK;
    }
    memory_release(q->whole);
    memory_release(s);
    return status;
}
