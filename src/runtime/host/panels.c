// SPDX-License-Identifier: Apache-2.0
#include "runtime/host/panels.h"

#include "base/dtype.h"
#include "runtime/host/lapack.h"
#include "runtime/host/pool.h"

#include <limits.h>
#include <stdint.h>
#include <string.h>

typedef void getrf_function(const int *m, const int *n, void *a, const int *lda, int *pivots,
                            int *info);
typedef void trsm_function(const char *side, const char *uplo, const char *trans,
                           const char *diag, const int *m, const int *n, const void *alpha,
                           const void *a, const int *lda, void *b, const int *ldb, size_t,
                           size_t, size_t, size_t);
typedef void gemm_function(const char *trans_a, const char *trans_b, const int *m, const int *n,
                           const int *k, const void *alpha, const void *a, const int *lda,
                           const void *b, const int *ldb, const void *beta, void *c,
                           const int *ldc, size_t, size_t);
typedef void geqr2_function(const int *m, const int *n, void *a, const int *lda, void *tau,
                            void *work, int *info);
typedef void larft_function(const char *direct, const char *storev, const int *n, const int *k,
                            const void *v, const int *ldv, const void *tau, void *t,
                            const int *ldt, size_t, size_t);
typedef void larfb_function(const char *side, const char *trans, const char *direct,
                            const char *storev, const int *m, const int *n, const int *k,
                            const void *v, const int *ldv, const void *t, const int *ldt,
                            void *c, const int *ldc, void *work, const int *ldwork, size_t,
                            size_t, size_t, size_t);

// 1 and -1 as numbers of either precision, real and complex.
static const float ones_f32[] = {1, 0, -1, 0};
static const double ones_f64[] = {1, 0, -1, 0};

static const void *one(jot_dtype dtype, bool is_negative)
{
    return dtype_real(dtype) == JOT_F32 ? (const void *)(ones_f32 + 2 * is_negative)
                                        : (const void *)(ones_f64 + 2 * is_negative);
}

static int least(int a, int b) { return a < b ? a : b; }

// ---- The steps of a factorization

struct factorization {
    int n, steps; // columns, of which so many are in panels
    int size;     // columns of a panel
    int width;    // columns of a block behind the next panel
    int step;     // the panel that is applied
    int panels;
    void (*factor)(const struct factorization *f, int panel);
    // Applies a panel to columns [first, end).
    void (*update)(const struct factorization *f, int panel, int first, int end);
    jot_dtype dtype;
    int m, lda;
    char *a;
    int *pivots;                // LU
    const struct reflectors *r; // QR
    char *tau, *work;
};

static char *at(const struct factorization *f, int row, int column)
{
    return f->a + ((size_t)row + (size_t)column * (size_t)f->lda) * dtype_get(f->dtype)->bytes;
}

static void run_block(void *ctx, int64_t chunk, int worker)
{
    const struct factorization *f = ctx;
    int first = least((f->step + 1) * f->size, f->steps), end = first + f->size;
    bool is_panel = chunk == 0 && f->step + 1 < f->panels;
    (void)worker;
    if (chunk > 0) {
        first = end + (int)(chunk - 1) * f->width;
        end = first + f->width;
    }
    f->update(f, f->step, first, least(end, f->n));
    if (is_panel)
        f->factor(f, f->step + 1);
}

static void run_steps(struct factorization *f)
{
    f->panels = (f->steps + f->size - 1) / f->size;
    if (f->panels)
        f->factor(f, 0);
    for (f->step = 0; f->step < f->panels; f->step++) {
        int behind = f->n - least((f->step + 1) * f->size, f->steps), rest = behind - f->size;
        rt_pool_run(rt_pool_default(), INT_MAX, run_block, f,
                    (behind > 0) + (rest > 0 ? (rest + f->width - 1) / f->width : 0));
    }
}

// ---- LU

// Numbers between columns of a panel's copy, which would else meet in the same sets of a cache.
enum { APART = 16 };

// Of rows: element [row, column] is that of `at` with the two in the other order.
static char *at_row(const struct factorization *f, int row, int column)
{
    return at(f, column, row);
}

static void factor_lu(const struct factorization *f, int panel)
{
    int first = panel * f->size, rows = f->m - first, info;
    int columns = least(f->size, f->steps - first), *pivots = f->pivots + first;
    int leading = f->m + APART;
    size_t element = dtype_get(f->dtype)->bytes;
    char *a = at_row(f, first, first);
    rt_transpose_part(element, rows, columns, a, f->lda, f->work, leading);
    ((getrf_function *)rt_lapack(LAPACK_getrf, f->dtype))(&rows, &columns, f->work, &leading,
                                                          pivots, &info);
    rt_transpose_part(element, columns, rows, f->work, leading, a, f->lda);
    for (int i = 0; i < columns; i++)
        pivots[i] += first;
}

static void swap_bytes(char *a, char *b, size_t bytes)
{
    char kept[64];
    size_t i = 0;
    for (; i + sizeof kept <= bytes; i += sizeof kept) { // in registers
        memcpy(kept, a + i, sizeof kept);
        memcpy(a + i, b + i, sizeof kept);
        memcpy(b + i, kept, sizeof kept);
    }
    memcpy(kept, a + i, bytes - i);
    memcpy(a + i, b + i, bytes - i);
    memcpy(b + i, kept, bytes - i);
}

static void swap_rows(const struct factorization *f, int first, int end, int column, int n)
{
    for (int i = first; i < end; i++)
        if (f->pivots[i] != i + 1)
            swap_bytes(at_row(f, i, column), at_row(f, f->pivots[i] - 1, column),
                       (size_t)n * dtype_get(f->dtype)->bytes);
}

// LAPACK sees the matrix transposed.
static void update_lu(const struct factorization *f, int panel, int first, int end)
{
    int top = panel * f->size, k = least(f->size, f->steps - top);
    int n = end - first, rows = f->m - top - k;
    swap_rows(f, top, top + k, first, n);
    ((trsm_function *)rt_lapack(LAPACK_trsm, f->dtype))(
        "R", "U", "N", "U", &n, &k, one(f->dtype, false), at_row(f, top, top), &f->lda,
        at_row(f, top, first), &f->lda, 1, 1, 1, 1);
    if (rows)
        ((gemm_function *)rt_lapack(LAPACK_gemm, f->dtype))(
            "N", "N", &n, &rows, &k, one(f->dtype, true), at_row(f, top, first), &f->lda,
            at_row(f, top + k, top), &f->lda, one(f->dtype, false), at_row(f, top + k, first),
            &f->lda, 1, 1);
}

// Rows that later panels swapped, in the columns of an earlier one.
static void swap_behind(void *ctx, int64_t panel, int worker)
{
    const struct factorization *f = ctx;
    int first = (int)panel * f->size;
    (void)worker;
    swap_rows(f, first + f->size, f->steps, first, f->size);
}

static int columns_of_lu(int steps) { return steps < 2048 ? 64 : 128; }

size_t panels_lu_work(int m, int n)
{
    return ((size_t)m + APART) * (size_t)columns_of_lu(least(m, n));
}

void panels_lu(jot_dtype dtype, int m, int n, void *a, int *pivots, void *work)
{
    int steps = least(m, n), size = columns_of_lu(steps);
    struct factorization f = {.n = n,
                              .steps = steps,
                              .size = size,
                              .width = steps < 1024 ? size : 2 * size,
                              .factor = factor_lu,
                              .update = update_lu,
                              .dtype = dtype,
                              .m = m,
                              .lda = n,
                              .a = a,
                              .pivots = pivots,
                              .work = work};
    run_steps(&f);
    rt_pool_run(rt_pool_default(), INT_MAX, swap_behind, &f, f.panels - 1);
}

// ---- QR

// Reflectors of a panel.
static int panel_of(int k) { return k < 1024 ? 32 : 64; }

size_t reflectors_triangles(int k) { return (size_t)(k + panel_of(k)) * (size_t)panel_of(k); }

size_t reflectors_work(int k, int n) { return (size_t)n * (size_t)panel_of(k); }

static char *vectors_of(const struct reflectors *r, int first)
{
    return (char *)r->v + (size_t)first * (size_t)(r->ldv + 1) * dtype_get(r->dtype)->bytes;
}

static char *triangle_of(const struct reflectors *r, int first)
{
    return (char *)r->t + (size_t)first * (size_t)panel_of(r->k) * dtype_get(r->dtype)->bytes;
}

static void make_triangle(const struct reflectors *r, int first, const char *tau)
{
    int size = panel_of(r->k), k = least(size, r->k - first), m = r->m - first;
    ((larft_function *)rt_lapack(LAPACK_larft, r->dtype))(
        "F", r->by_rows ? "R" : "C", &m, &k, vectors_of(r, first), &r->ldv,
        tau + (size_t)first * dtype_get(r->dtype)->bytes, triangle_of(r, first), &size, 1, 1);
}

// The panel whose first reflector is given, or its adjoint, to n columns whose row 0 is c's.
static void apply_panel(const struct reflectors *r, int first, bool is_adjoint, int n, char *c,
                        int ldc, void *work)
{
    int size = panel_of(r->k), k = least(size, r->k - first), m = r->m - first;
    const char *trans = !is_adjoint ? "N" : dtype_is_complex(r->dtype) ? "C" : "T";
    ((larfb_function *)rt_lapack(LAPACK_larfb, r->dtype))(
        "L", trans, "F", r->by_rows ? "R" : "C", &m, &n, &k, vectors_of(r, first), &r->ldv,
        triangle_of(r, first), &size, c + (size_t)first * dtype_get(r->dtype)->bytes, &ldc,
        work, &n, 1, 1, 1, 1);
}

static void factor_qr(const struct factorization *f, int panel)
{
    int first = panel * f->size, k = least(f->size, f->r->k - first), m = f->m - first, info;
    size_t element = dtype_get(f->dtype)->bytes;
    ((geqr2_function *)rt_lapack(LAPACK_geqr2, f->dtype))(
        &m, &k, vectors_of(f->r, first), &f->lda, f->tau + (size_t)first * element,
        f->work + (size_t)first * (size_t)f->size * element, &info);
    make_triangle(f->r, first, f->tau);
}

static void update_qr(const struct factorization *f, int panel, int first, int end)
{
    size_t room = (size_t)first * (size_t)f->size * dtype_get(f->dtype)->bytes;
    apply_panel(f->r, panel * f->size, true, end - first, at(f, 0, first), f->lda,
                f->work + room);
}

void panels_qr(const struct reflectors *r, int n, void *tau, void *work)
{
    int size = panel_of(r->k);
    struct factorization f = {.n = n,
                              .steps = r->k,
                              .size = size,
                              .width = 4 * size,
                              .factor = factor_qr,
                              .update = update_qr,
                              .dtype = r->dtype,
                              .m = r->m,
                              .lda = r->ldv,
                              .a = r->v,
                              .r = r,
                              .tau = tau,
                              .work = work};
    run_steps(&f);
}

// ---- Products with reflectors

struct application {
    const struct reflectors *r;
    const char *tau;
    char *c, *work;
    bool is_upper;
    int n, ldc, width, blocks;
};

static void prepare_panel(void *ctx, int64_t panel, int worker)
{
    const struct application *p = ctx;
    (void)worker;
    make_triangle(p->r, (int)panel * panel_of(p->r->k), p->tau);
}

void reflectors_prepare(const struct reflectors *r, const void *tau)
{
    int size = panel_of(r->k);
    struct application p = {.r = r, .tau = tau};
    rt_pool_run(rt_pool_default(), INT_MAX, prepare_panel, &p, (r->k + size - 1) / size);
}

// The last blocks have most to do, so they come first.
static void apply_to_block(void *ctx, int64_t chunk, int worker)
{
    const struct application *p = ctx;
    const struct reflectors *r = p->r;
    int size = panel_of(r->k), start = (p->blocks - 1 - (int)chunk) * p->width;
    int end = least(start + p->width, p->n), used = p->is_upper ? least(end, r->k) : r->k;
    size_t element = dtype_get(r->dtype)->bytes;
    char *c = p->c + (size_t)start * (size_t)p->ldc * element;
    (void)worker;
    for (int first = (used - 1) / size * size; first >= 0; first -= size)
        apply_panel(r, first, false, end - start, c, p->ldc,
                    p->work + (size_t)start * (size_t)size * element);
}

void reflectors_apply(const struct reflectors *r, bool is_upper, int n, void *c, int ldc,
                      void *work)
{
    int width = panel_of(r->k) * 2;
    struct application p = {.r = r,
                            .c = c,
                            .work = work,
                            .is_upper = is_upper,
                            .n = n,
                            .ldc = ldc,
                            .width = width,
                            .blocks = (n + width - 1) / width};
    if (r->k > 0)
        rt_pool_run(rt_pool_default(), INT_MAX, apply_to_block, &p, p.blocks);
}
