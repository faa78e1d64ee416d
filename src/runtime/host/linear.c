// SPDX-License-Identifier: Apache-2.0
// The routines cholesky, lu and triangular_solve, by LAPACK, and many small matrices in lanes
// of vectors.
//
// Matrices of a batch go to jot's threads, and the right sides of large ones in blocks whose size
// depends on the shape alone, so that results do not depend on the number of threads.
#include "base/dtype.h"
#include "base/status.h"
#include "runtime/host/lanes.h"
#include "runtime/host/lapack.h"
#include "runtime/host/panels.h"
#include "runtime/host/pool.h"
#include "runtime/routine.h"

#include <limits.h>
#include <math.h>
#include <string.h>

typedef void potrf_function(const char *uplo, const int *n, void *a, const int *lda, int *info,
                            size_t);
typedef void trsv_function(const char *uplo, const char *trans, const char *diag, const int *n,
                           const void *a, const int *lda, void *x, const int *incx,
                           size_t uplo_n, size_t trans_n, size_t diag_n);
typedef void trsm_function(const char *side, const char *uplo, const char *trans,
                           const char *diag, const int *m, const int *n, const void *alpha,
                           const void *a, const int *lda, void *b, const int *ldb, size_t,
                           size_t, size_t, size_t);

// The right sides of a block.  A block packs the whole matrix anew, so few are best, but each
// is a thread's.
static int block_of(int count) { return count < 256 ? 64 : 128; }

static jot_dtype dtype_of(const struct rt_routine_call *c) { return (jot_dtype)c->params[0]; }

static size_t element_of(const struct rt_routine_call *c)
{
    return dtype_get(dtype_of(c))->bytes;
}

// Whether there are so many params, of a type that LAPACK has and sizes that fit its integers, and
// operand i has count elements for each of the batch.
static bool fits(const struct rt_routine_call *c, uint32_t n_params, uint32_t n_operands,
                 uint32_t n_reads)
{
    if (c->param_count != n_params || c->operand_count != n_operands ||
        c->read_count != n_reads || c->params[1] < 1)
        return false;
    jot_dtype d = dtype_of(c);
    return d == JOT_F32 || d == JOT_F64 || d == JOT_C64 || d == JOT_C128;
}

static bool has_size(const struct rt_routine_call *c, uint32_t i, size_t element, int64_t rows,
                     int64_t columns)
{
    uint64_t bytes = element * (uint64_t)c->params[1];
    return rows > 0 && columns > 0 && rows <= INT_MAX && columns <= INT_MAX &&
           !__builtin_mul_overflow(bytes, rows, &bytes) &&
           !__builtin_mul_overflow(bytes, columns, &bytes) && bytes == c->bytes[i];
}

// ---- Many small ones

struct many {
    const struct rt_routine_call *c;
    const struct lanes_code *code;
    enum lanes_op op;
    struct lanes_shape shape;
};

// Whether the call is of so many that lanes are worth it.
static bool are_many(const struct rt_routine_call *c, enum lanes_op op, struct many *m)
{
    const int64_t *p = c->params + 2, most = p[0] > p[1] ? p[0] : p[1];
    if (most > LANES_SIDE)
        return false;
    *m = (struct many){.c = c, .op = op, .shape = {.m = (int)p[0], .n = (int)p[1]}};
    for (int i = 0; i < 5 && op == LANES_TRIANGULAR_SOLVE; i++)
        m->shape.mode |= (p[2 + i] != 0) << i;
    for (uint32_t i = 0; i < c->operand_count; i++) {
        size_t stride = c->bytes[i] / (size_t)c->params[1];
        if (i < c->read_count)
            m->shape.in_stride[i] = stride;
        else
            m->shape.out_stride[i - c->read_count] = stride;
    }
    m->code = lanes_code_of(op, dtype_of(c), &m->shape);
    return lanes_are_many(m->code, c->params[1]);
}

static jot_status bind_with(const struct rt_routine_call *c, enum lanes_op op, size_t scratch,
                            size_t *out_scratch)
{
    struct many m;
    *out_scratch = are_many(c, op, &m) ? lanes_scratch(m.code, &m.shape) : scratch;
    return rt_lapack_open();
}

static void run_group(void *ctx, int64_t group, int worker)
{
    const struct many *m = ctx;
    const struct rt_routine_call *c = m->c;
    const void *in[2];
    void *out[3];
    int64_t first = group * m->code->lanes, left = c->params[1] - first;
    for (uint32_t i = 0; i < c->operand_count; i++) {
        char *at =
            (char *)c->operands[i] + (size_t)first * (c->bytes[i] / (size_t)c->params[1]);
        if (i < c->read_count)
            in[i] = at;
        else
            out[i - c->read_count] = at;
    }
    m->code->run[m->op](&m->shape, left < m->code->lanes ? (int)left : m->code->lanes, in, out,
                        c->scratch + (size_t)worker * c->scratch_stride);
}

static bool run_many(const struct rt_routine_call *c, enum lanes_op op)
{
    struct many m;
    if (!are_many(c, op, &m))
        return false;
    rt_each_matrix(c, run_group, &m, (c->params[1] + m.code->lanes - 1) / m.code->lanes);
    return true;
}

enum { TILE = 16 }; // rows and columns that caches hold together

// ---- Cholesky

#define REAL float
#define NAMED(name) name##_f32
#include "runtime/host/linear_moves.inc"
#undef REAL
#undef NAMED
#define REAL double
#define NAMED(name) name##_f64
#include "runtime/host/linear_moves.inc"
#undef REAL
#undef NAMED

jot_status host_cholesky_check(const struct rt_routine_call *c)
{
    if (!fits(c, 5, 2, 1) || c->params[2] != c->params[3] ||
        !has_size(c, 0, element_of(c), c->params[2], c->params[2]) ||
        c->bytes[0] != c->bytes[1])
        return rt_routine_damaged("cholesky");
    return JOT_OK;
}

jot_status host_cholesky_bind(const struct rt_routine_call *c, size_t *out_scratch)
{
    return bind_with(c, LANES_CHOLESKY, 0, out_scratch);
}

// The lower triangle of ours is the upper one of LAPACK, which sees the transposed matrix.
static void factor_one(void *ctx, int64_t i, int worker)
{
    const struct rt_routine_call *c = ctx;
    int n = (int)c->params[2], info = 0, parts = 1 + dtype_is_complex(dtype_of(c));
    size_t at = (size_t)i * (size_t)n * (size_t)n * element_of(c);
    const void *a = (const char *)c->operands[0] + at;
    void *l = (char *)c->operands[1] + at;
    bool is_f32 = dtype_real(dtype_of(c)) == JOT_F32;
    (void)worker;
    if (is_f32)
        symmetrize_f32(n, parts, a, l);
    else
        symmetrize_f64(n, parts, a, l);
    ((potrf_function *)rt_lapack(LAPACK_potrf, dtype_of(c)))("U", &n, l, &n, &info, 1);
    if (is_f32)
        finish_cholesky_f32(n, parts, info != 0, l);
    else
        finish_cholesky_f64(n, parts, info != 0, l);
}

jot_status host_cholesky(const struct rt_routine_call *c)
{
    if (!run_many(c, LANES_CHOLESKY))
        rt_pool_run(rt_pool_default(), c->workers, factor_one, (void *)(uintptr_t)c,
                    c->params[1]);
    return JOT_OK;
}

// ---- LU

jot_status host_lu_check(const struct rt_routine_call *c)
{
    if (!fits(c, 5, 4, 1))
        return rt_routine_damaged("lu");
    int64_t m = c->params[2], n = c->params[3], steps = m < n ? m : n;
    if (!has_size(c, 0, element_of(c), m, n) || c->bytes[1] != c->bytes[0] ||
        !has_size(c, 2, sizeof(int32_t), steps, 1) || !has_size(c, 3, sizeof(int32_t), m, 1))
        return rt_routine_damaged("lu");
    return JOT_OK;
}

jot_status host_lu_bind(const struct rt_routine_call *c, size_t *out_scratch)
{
    size_t own = panels_lu_work((int)c->params[2], (int)c->params[3]) * element_of(c);
    return bind_with(c, LANES_LU, own, out_scratch);
}

static void eliminate_one(void *ctx, int64_t i, int worker)
{
    const struct rt_routine_call *c = ctx;
    int m = (int)c->params[2], n = (int)c->params[3], steps = m < n ? m : n;
    size_t bytes = (size_t)m * (size_t)n * element_of(c), at = (size_t)i * bytes;
    char *a = (char *)c->operands[1] + at;
    int32_t *pivots = (int32_t *)c->operands[2] + i * steps,
            *order = (int32_t *)c->operands[3] + i * m;
    memcpy(a, (const char *)c->operands[0] + at, bytes);
    panels_lu(dtype_of(c), m, n, a, pivots, c->scratch + (size_t)worker * c->scratch_stride);
    for (int k = 0; k < m; k++)
        order[k] = k;
    for (int k = 0; k < steps; k++) {
        int32_t row = order[k];
        pivots[k]--;
        order[k] = order[pivots[k]];
        order[pivots[k]] = row;
    }
}

jot_status host_lu(const struct rt_routine_call *c)
{
    if (!run_many(c, LANES_LU))
        rt_each_matrix(c, eliminate_one, (void *)(uintptr_t)c, c->params[1]);
    return JOT_OK;
}

// ---- Triangular systems

struct triangular {
    const struct rt_routine_call *c;
    int rows, columns, n; // of b, and of a
    bool left;
    int block, blocks; // right sides of a block, and blocks for each matrix
    const char *side, *uplo, *trans, *diag;
};

static struct triangular triangular_of(const struct rt_routine_call *c)
{
    const int64_t *p = c->params + 2;
    struct triangular t = {.c = c, .rows = (int)p[0], .columns = (int)p[1], .left = p[2]};
    int count = t.left ? t.columns : t.rows;
    t.n = t.left ? t.rows : t.columns;
    t.block = block_of(count);
    t.blocks = (count + t.block - 1) / t.block;
    // LAPACK sees the transposed system, with the matrices on the other side.
    bool conjugates = p[5] && dtype_is_complex(dtype_of(c));
    t.side = t.left ? "R" : "L";
    t.uplo = p[3] ? "U" : "L";
    t.trans = p[4] ? (conjugates ? "C" : "T") : (conjugates ? "R" : "N");
    t.diag = p[6] ? "U" : "N";
    return t;
}

// Rows of zeros that right sides begin with, which stay zeros in a lower system: with a diagonal of ones
// nothing is divided by 0.
static int rows_of_zeros(const struct triangular *t, int rows, size_t bytes, size_t stride,
                         const char *a, const char *x)
{
    int zeros = 0;
    size_t element = element_of(t->c), row = (size_t)t->n * element;
    if (!t->left || *t->uplo != 'U' || *t->trans != 'N' || *t->diag != 'U')
        return 0;
    // All bytes are the first one, and that is 0.
    for (; zeros < rows - 1 && !*x && memcmp(x, x + 1, bytes - 1) == 0; x += stride)
        zeros++;
    // What is not finite times 0 would be NaN.
    for (int i = 1; i < rows && zeros; i++)
        if (!rt_is_finite(dtype_of(t->c), i < zeros ? i : zeros, a + (size_t)i * row))
            return 0;
    return zeros;
}

// x of so many rows and columns in place of its right sides.
static void call_trsm(const struct triangular *t, int rows, int columns, const void *a, void *x)
{
    const float one_f[2] = {1, 0};
    const double one_d[2] = {1, 0};
    jot_dtype d = dtype_of(t->c);
    const void *one = dtype_real(d) == JOT_F32 ? (const void *)one_f : one_d;
    ((trsm_function *)rt_lapack(LAPACK_trsm, d))(t->side, t->uplo, t->trans, t->diag, &columns,
                                                 &rows, one, a, &t->n, x, &t->columns, 1, 1, 1,
                                                 1);
}

// The same of one right side, whose elements lie together: trsm packs the matrix for it, which takes longer than to
// solve.  False where trsv has no word for the system.
static bool call_trsv(const struct triangular *t, int rows, int columns, const void *a, void *x)
{
    char trans = *t->trans;
    if ((t->left ? t->columns : t->rows) != 1 || trans == (t->left ? 'C' : 'R'))
        return false;
    // From the right side the matrix is seen transposed.
    if (t->left)
        trans = trans == 'N' ? 'T' : trans == 'T' ? 'N' : 'C';
    int n = t->left ? rows : columns, one = 1;
    ((trsv_function *)rt_lapack(LAPACK_trsv, dtype_of(t->c)))(t->uplo, &trans, t->diag, &n, a,
                                                              &t->n, x, &one, 1, 1, 1);
    return true;
}

static void solve_block(void *ctx, int64_t i, int worker)
{
    const struct triangular *t = ctx;
    const struct rt_routine_call *c = t->c;
    size_t element = element_of(c), matrix = (size_t)(i / t->blocks);
    int first = (int)(i % t->blocks) * t->block, count = t->left ? t->columns : t->rows;
    int width = count - first < t->block ? count - first : t->block;
    size_t at = matrix * (size_t)t->rows * (size_t)t->columns;
    at += t->left ? (size_t)first : (size_t)first * (size_t)t->columns;
    const char *a =
        (const char *)c->operands[0] + matrix * (size_t)t->n * (size_t)t->n * element;
    const char *b = (const char *)c->operands[1] + at * element;
    char *x = (char *)c->operands[2] + at * element;
    int rows = t->left ? t->rows : width, columns = t->left ? width : t->columns;
    size_t stride = (size_t)t->columns * element;
    (void)worker;
    for (int row = 0; row < rows; row++)
        memcpy(x + (size_t)row * stride, b + (size_t)row * stride, (size_t)columns * element);
    int zeros = rows_of_zeros(t, rows, (size_t)columns * element, stride, a, x);
    a += (size_t)zeros * (size_t)(t->n + 1) * element;
    x += (size_t)zeros * stride;
    if (!call_trsv(t, rows - zeros, columns, a, x))
        call_trsm(t, rows - zeros, columns, a, x);
}

jot_status host_triangular_solve_check(const struct rt_routine_call *c)
{
    if (!fits(c, 9, 3, 2))
        return rt_routine_damaged("triangular_solve");
    int64_t rows = c->params[2], columns = c->params[3], n = c->params[4] ? rows : columns;
    if (!has_size(c, 0, element_of(c), n, n) || !has_size(c, 1, element_of(c), rows, columns) ||
        c->bytes[1] != c->bytes[2])
        return rt_routine_damaged("triangular_solve");
    return JOT_OK;
}

jot_status host_triangular_solve_bind(const struct rt_routine_call *c, size_t *out_scratch)
{
    return bind_with(c, LANES_TRIANGULAR_SOLVE, 0, out_scratch);
}

jot_status host_triangular_solve(const struct rt_routine_call *c)
{
    if (run_many(c, LANES_TRIANGULAR_SOLVE))
        return JOT_OK;
    struct triangular t = triangular_of(c);
    rt_pool_run(rt_pool_default(), c->workers, solve_block, &t, c->params[1] * t.blocks);
    return JOT_OK;
}
