// SPDX-License-Identifier: Apache-2.0
// One matrix: its qr, eigh, svd, eig or schur decomposition, by LAPACK, large ones by steps of
// LAPACK's and jot's.
#include "runtime/host/decompose.h"

#include "runtime/host/lapack.h"
#include "runtime/host/panels.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define STEPS_LEAST 128 // rows from which on steps of a decomposition pay

static void *take_room(struct room *room, size_t n, size_t bytes)
{
    char *at = room->base ? room->base + room->used : NULL;
    room->used += (n * bytes + 63) & ~(size_t)63;
    return at;
}

// Workspace for LAPACK.
struct work {
    void *work, *rwork;
    int *iwork, lwork, lrwork, liwork;
};

static struct work take_work(struct job *j, struct room *room)
{
    if (!j->work)
        return (struct work){j->answers, j->answers + 2, (int *)(j->answers + 3), -1, -1, -1};
    return (struct work){.work = take_room(room, (size_t)j->work, j->element),
                         .rwork = take_room(room, (size_t)j->rwork, j->part),
                         .iwork = take_room(room, (size_t)j->iwork, sizeof(int)),
                         .lwork = j->work,
                         .lrwork = j->rwork,
                         .liwork = j->iwork};
}

// Whether nothing but the size of the scratch is left to find out.
static bool is_measured(const struct job *j, const struct room *room)
{
    return !room->base && j->work;
}

static double load_real(const struct job *j, const void *x)
{
    float f;
    double d;
    if (j->part == 4) {
        memcpy(&f, x, sizeof f);
        return (double)f;
    }
    memcpy(&d, x, sizeof d);
    return d;
}

// The answer to the question how much work is wanted: in single precision beyond 2^24 it may
// have been rounded down.
static int answer(const struct job *j, const void *work)
{
    double x = load_real(j, work);
    return (int)(x < 0x1p24 ? x : x * (1 + FLT_EPSILON));
}

static void want(struct job *j, const void *work)
{
    int most = answer(j, work);
    j->wanted = most > j->wanted ? most : j->wanted;
}

static int at_least_1(int n) { return n > 1 ? n : 1; }

// Column-major, of columns that are no more than rows.
static void put_identity(const struct job *j, int n, int columns, char *out)
{
    memset(out, 0, (size_t)n * (size_t)columns * j->element);
    for (int i = 0; i < columns; i++)
        if (j->part == 4)
            memcpy(out + (size_t)i * (size_t)(n + 1) * j->element, &(float){1}, 4);
        else
            memcpy(out + (size_t)i * (size_t)(n + 1) * j->element, &(double){1}, 8);
}

// What the largest of the numbers, which are finite, is multiplied by so that products of them
// are neither lost nor infinite; 1 for most matrices.
static double scale_of(const struct job *j, size_t count, const char *x)
{
    double most = 0, small = j->part == 4 ? 0x1p-40 : 0x1p-450;
    for (size_t i = 0; i < count; i++) {
        double size = fabs(load_real(j, x + i * j->part));
        most = size > most ? size : most;
    }
    if (most == 0 || (most >= small && most <= 1 / small))
        return 1;
    int exponent = ilogb(most);
    return ldexp(1, exponent < -1000 ? 1000 : -exponent);
}

static void scale_by(const struct job *j, double scale, size_t count, char *x)
{
    for (size_t i = 0; i < count && scale != 1; i++) {
        double y = load_real(j, x + i * j->part) * scale;
        if (j->part == 4)
            memcpy(x + i * 4, &(float){(float)y}, 4);
        else
            memcpy(x + i * 8, &y, 8);
    }
}

// ---- One matrix

int qr_one(struct job *j, struct room *room, const char *a, char *const *out)
{
    int columns = j->mode ? j->m : j->k, work = columns > j->n ? columns : j->n;
    char *x = take_room(room, (size_t)j->m * (size_t)j->n, j->element);
    char *r = take_room(room, (size_t)j->m * (size_t)j->n, j->element);
    char *q = take_room(room, (size_t)j->m * (size_t)columns, j->element);
    char *tau = take_room(room, (size_t)j->k, j->element);
    char *triangles = take_room(room, reflectors_triangles(j->k), j->element);
    char *rest = take_room(room, reflectors_work(j->k, work), j->element);
    if (!room->base)
        return 0;
    struct reflectors h = {.dtype = j->dtype,
                           .m = j->m,
                           .k = j->k,
                           .v = x,
                           .ldv = at_least_1(j->m),
                           .t = triangles};
    rt_transpose(j->element, j->m, j->n, a, x);
    panels_qr(&h, j->n, tau, rest);
    rt_transpose(j->element, j->n, j->m, x, r);
    for (int i = 0; i < columns; i++) {
        size_t row = (size_t)i * (size_t)j->n, left = i < j->n ? (size_t)i : (size_t)j->n;
        memset(out[1] + row * j->element, 0, left * j->element);
        memcpy(out[1] + (row + left) * j->element, r + (row + left) * j->element,
               ((size_t)j->n - left) * j->element);
    }
    put_identity(j, j->m, columns, q);
    reflectors_apply(&h, true, columns, q, h.ldv, rest);
    rt_transpose(j->element, columns, j->m, q, out[0]);
    return 0;
}

typedef void syevd(const char *jobz, const char *uplo, const int *n, void *a, const int *lda,
                   void *w, void *work, const int *lwork, int *iwork, const int *liwork,
                   int *info, size_t, size_t);
typedef void heevd(const char *jobz, const char *uplo, const int *n, void *a, const int *lda,
                   void *w, void *work, const int *lwork, void *rwork, const int *lrwork,
                   int *iwork, const int *liwork, int *info, size_t, size_t);

typedef void sytrd(const char *uplo, const int *n, void *a, const int *lda, void *d, void *e,
                   void *tau, void *work, const int *lwork, int *info, size_t);
typedef void stedc(const char *compz, const int *n, void *d, void *e, void *z, const int *ldz,
                   void *work, const int *lwork, int *iwork, const int *liwork, int *info,
                   size_t);

// The steps of syevd, of which the last one goes to all threads.
static int eigh_by_steps(struct job *j, struct room *room, const char *a, char *const *out)
{
    int n = j->n, lda = n, info, lwork = 1 + 4 * n + n * n, liwork = 3 + 5 * n;
    size_t count = (size_t)n * (size_t)n;
    char *x = take_room(room, count, j->element), *z = take_room(room, count, j->element);
    char *e = take_room(room, (size_t)n, j->element),
         *tau = take_room(room, (size_t)n, j->element);
    char *triangles = take_room(room, reflectors_triangles(n - 1), j->element);
    char *work = take_room(room, (size_t)lwork, j->element);
    int *iwork = take_room(room, (size_t)liwork, sizeof(int));
    if (!room->base)
        return 0;
    struct reflectors h = {.dtype = j->dtype,
                           .m = n - 1,
                           .k = n - 1,
                           .v = x + j->element,
                           .ldv = lda,
                           .t = triangles};
    rt_transpose(j->element, n, n, a, x);
    for (int i = 1; i < n; i++) // what is not read
        memset(x + (size_t)i * (size_t)n * j->element, 0, (size_t)i * j->element);
    double scale = scale_of(j, count, x);
    scale_by(j, scale, count, x);
    ((sytrd *)rt_lapack(LAPACK_sytrd, j->dtype))("L", &n, x, &lda, out[0], e, tau, work, &lwork,
                                                 &info, 1);
    ((stedc *)rt_lapack(LAPACK_stedc, j->dtype))("I", &n, out[0], e, z, &lda, work, &lwork,
                                                 iwork, &liwork, &info, 1);
    reflectors_prepare(&h, tau);
    reflectors_apply(&h, false, n, z + j->element, lda, work);
    scale_by(j, 1 / scale, (size_t)n, out[0]);
    rt_transpose(j->element, n, n, z, out[1]);
    return info;
}

int eigh_one(struct job *j, struct room *room, const char *a, char *const *out)
{
    if (!j->is_complex && j->n >= STEPS_LEAST)
        return eigh_by_steps(j, room, a, out);
    int lda = at_least_1(j->n), info = 0, asks = !room->base;
    char *x = take_room(room, (size_t)j->n * (size_t)j->n, j->element);
    struct work w = take_work(j, room);
    if (is_measured(j, room))
        return 0;
    lapack_function *f = rt_lapack(LAPACK_syevd, j->dtype);
    void *values = asks ? x : out[0];
    if (!asks)
        rt_transpose(j->element, j->n, j->n, a, x);
    if (j->is_complex)
        ((heevd *)f)("V", "L", &j->n, x, &lda, values, w.work, &w.lwork, w.rwork, &w.lrwork,
                     w.iwork, &w.liwork, &info, 1, 1);
    else
        ((syevd *)f)("V", "L", &j->n, x, &lda, values, w.work, &w.lwork, w.iwork, &w.liwork,
                     &info, 1, 1);
    if (asks) {
        want(j, w.work);
        j->rwork = j->is_complex ? answer(j, w.rwork) : 0;
        j->iwork = w.iwork[0];
    } else {
        rt_transpose(j->element, j->n, j->n, x, out[1]);
    }
    return info;
}

typedef void gesdd_real(const char *jobz, const int *m, const int *n, void *a, const int *lda,
                        void *s, void *u, const int *ldu, void *vt, const int *ldvt, void *work,
                        const int *lwork, int *iwork, int *info, size_t);
typedef void gesdd_complex(const char *jobz, const int *m, const int *n, void *a,
                           const int *lda, void *s, void *u, const int *ldu, void *vt,
                           const int *ldvt, void *work, const int *lwork, void *rwork,
                           int *iwork, int *info, size_t);

typedef void gebrd(const int *m, const int *n, void *a, const int *lda, void *d, void *e,
                   void *tauq, void *taup, void *work, const int *lwork, int *info);
typedef void bdsdc(const char *uplo, const char *compq, const int *n, void *d, void *e, void *u,
                   const int *ldu, void *vt, const int *ldvt, void *q, int *iq, void *work,
                   int *iwork, int *info, size_t, size_t);

// The steps of gesdd, of which the last two go to all threads, on the matrix or its transpose,
// which has `rows` rows, no fewer than columns.  Singular vectors of the long side are u,
// column-major, and those of the short one v.
static int svd_by_steps(struct job *j, struct room *room, const char *a, char *const *out)
{
    bool is_wide = j->m < j->n;
    int rows = is_wide ? j->n : j->m, n = j->k, lwork = 3 * n * n + 4 * n, info;
    size_t count = (size_t)rows * (size_t)n, square = (size_t)n * (size_t)n;
    char *x = take_room(room, count, j->element);
    char *other = take_room(room, is_wide ? square : count, j->element);
    char *vt = take_room(room, square, j->element), *e = take_room(room, (size_t)n, j->element);
    char *tau_q = take_room(room, (size_t)n, j->element),
         *tau_p = take_room(room, (size_t)n, j->element);
    char *triangles = take_room(room, reflectors_triangles(n), j->element);
    char *work = take_room(room, (size_t)lwork, j->element);
    int *iwork = take_room(room, (size_t)n * 8, sizeof(int));
    if (!room->base)
        return 0;
    char *u = is_wide ? out[2] : other, *v = is_wide ? other : out[2];
    struct reflectors q = {
        .dtype = j->dtype, .m = rows, .k = n, .v = x, .ldv = rows, .t = triangles};
    struct reflectors p = {.dtype = j->dtype,
                           .m = n - 1,
                           .k = n - 1,
                           .by_rows = true,
                           .v = x + (size_t)rows * j->element,
                           .ldv = rows,
                           .t = triangles};
    if (is_wide)
        memcpy(x, a, count * j->element);
    else
        rt_transpose(j->element, rows, n, a, x);
    double scale = scale_of(j, count, x);
    scale_by(j, scale, count, x);
    ((gebrd *)rt_lapack(LAPACK_gebrd, j->dtype))(&rows, &n, x, &rows, out[0], e, tau_q, tau_p,
                                                 work, &lwork, &info);
    memset(u, 0, count * j->element);
    ((bdsdc *)rt_lapack(LAPACK_bdsdc, j->dtype))("U", "I", &n, out[0], e, u, &rows, vt, &n,
                                                 NULL, NULL, work, iwork, &info, 1, 1);
    rt_transpose(j->element, n, n, vt, v);
    reflectors_prepare(&q, tau_q);
    reflectors_apply(&q, false, n, u, rows, work);
    reflectors_prepare(&p, tau_p);
    reflectors_apply(&p, false, n, v + j->element, n, work);
    scale_by(j, 1 / scale, (size_t)n, out[0]);
    rt_transpose(j->element, n, is_wide ? n : rows, is_wide ? v : u, out[1]);
    return info;
}

static int svd_whole(struct job *j, struct room *room, const char *a, char *const *out)
{
    static const char *const jobs[] = {"N", "S", "A"};
    int most = j->m > j->n ? j->m : j->n;
    // LAPACK begins with QR where one side is much longer.
    if (!j->is_complex && j->mode == 1 && j->k >= STEPS_LEAST && most / 11 < j->k / 6)
        return svd_by_steps(j, room, a, out);
    int columns = j->mode == 2 ? j->m : j->k, rows = j->mode == 2 ? j->n : j->k;
    int lda = at_least_1(j->m), ldvt = at_least_1(rows), info = 0, asks = !room->base;
    size_t k = (size_t)j->k, large = (size_t)(j->m + j->n) - k;
    char *x = take_room(room, (size_t)j->m * (size_t)j->n, j->element);
    char *u = take_room(room, j->mode ? (size_t)j->m * (size_t)columns : 1, j->element);
    char *vt = take_room(room, j->mode ? (size_t)j->n * (size_t)rows : 1, j->element);
    if (asks) {
        j->iwork = 8 * j->k + 1;
        j->rwork =
            (int)(j->mode ? k * (5 * k + 7 > 2 * large + 2 * k + 1 ? 5 * k + 7
                                                                   : 2 * large + 2 * k + 1)
                          : 7 * k);
    }
    struct work w = take_work(j, room);
    if (is_measured(j, room))
        return 0;
    lapack_function *f = rt_lapack(LAPACK_gesdd, j->dtype);
    void *s = asks ? x : out[0];
    if (j->k == 0) {
        if (!asks && j->mode == 2) {
            put_identity(j, j->m, j->m, out[1]);
            put_identity(j, j->n, j->n, out[2]);
        }
        return 0;
    }
    if (!asks)
        rt_transpose(j->element, j->m, j->n, a, x);
    if (j->is_complex)
        ((gesdd_complex *)f)(jobs[j->mode], &j->m, &j->n, x, &lda, s, u, &lda, vt, &ldvt,
                             w.work, &w.lwork, w.rwork, w.iwork, &info, 1);
    else
        ((gesdd_real *)f)(jobs[j->mode], &j->m, &j->n, x, &lda, s, u, &lda, vt, &ldvt, w.work,
                          &w.lwork, w.iwork, &info, 1);
    if (asks) {
        want(j, w.work);
    } else if (j->mode) {
        rt_transpose(j->element, columns, j->m, u, out[1]);
        rt_transpose(j->element, j->n, rows, vt, out[2]);
    }
    return info;
}

// The first of all of them.
static int svd_first(struct job *j, struct room *room, const char *a, char *const *out)
{
    size_t k = (size_t)j->k, first = j->out_bytes[0] / j->part, row = first * j->element;
    char *s = take_room(room, k, j->part), *u = take_room(room, (size_t)j->m * k, j->element),
         *vh = take_room(room, (size_t)j->n * k, j->element);
    j->mode = 1;
    int info = svd_whole(j, room, a, (char *const[]){s, u, vh});
    j->mode = 3;
    if (!room->base)
        return info;
    memcpy(out[0], s, j->out_bytes[0]);
    for (size_t i = 0; i < (size_t)j->m; i++)
        memcpy(out[1] + i * row, u + i * k * j->element, row);
    memcpy(out[2], vh, j->out_bytes[2]);
    return info;
}

int svd_one(struct job *j, struct room *room, const char *a, char *const *out)
{
    return (j->mode == 3 ? svd_first : svd_whole)(j, room, a, out);
}

// ---- Matrices that are not symmetric

static void put_complex(const struct job *j, char *to, size_t i, double re, double im)
{
    if (j->part == 4)
        memcpy(to + i * 8, (float[]){(float)re, (float)im}, 8);
    else
        memcpy(to + i * 16, (double[]){re, im}, 16);
}

static double real_at(const struct job *j, const char *x, size_t i)
{
    return load_real(j, x + i * j->part);
}

// Column-major vectors of a real matrix, of which a pair is its real and its imaginary part, as
// row-major complex ones.
static void put_vectors(const struct job *j, const char *wi, const char *v, char *to)
{
    size_t n = (size_t)j->n;
    for (size_t c = 0; c < n; c++) {
        bool is_pair = real_at(j, wi, c) != 0 && c + 1 < n;
        for (size_t r = 0; r < n; r++) {
            double re = real_at(j, v, c * n + r);
            double im = is_pair ? real_at(j, v, (c + 1) * n + r) : 0;
            put_complex(j, to, r * n + c, re, im);
            if (is_pair)
                put_complex(j, to, r * n + c + 1, re, -im);
        }
        c += is_pair;
    }
}

typedef void geev_real(const char *left, const char *right, const int *n, void *a,
                       const int *lda, void *wr, void *wi, void *vl, const int *ldvl, void *vr,
                       const int *ldvr, void *work, const int *lwork, int *info, size_t,
                       size_t);
typedef void geev_complex(const char *left, const char *right, const int *n, void *a,
                          const int *lda, void *w, void *vl, const int *ldvl, void *vr,
                          const int *ldvr, void *work, const int *lwork, void *rwork, int *info,
                          size_t, size_t);

int eig_one(struct job *j, struct room *room, const char *a, char *const *out)
{
    int lda = at_least_1(j->n), info = 0, asks = !room->base;
    const char *left = j->mode == 2 ? "V" : "N", *right = j->mode ? "V" : "N";
    size_t n = (size_t)j->n;
    j->rwork = 2 * j->n;
    char *x = take_room(room, n * n, j->element), *vl = take_room(room, n * n, j->element);
    char *vr = take_room(room, n * n, j->element), *wr = take_room(room, n + 1, j->element);
    char *wi = take_room(room, n + 1, j->element);
    struct work w = take_work(j, room);
    if (is_measured(j, room))
        return 0;
    lapack_function *f = rt_lapack(LAPACK_geev, j->dtype);
    if (!asks)
        rt_transpose(j->element, j->n, j->n, a, x);
    if (j->is_complex)
        ((geev_complex *)f)(left, right, &j->n, x, &lda, asks ? wr : out[0], vl, &lda, vr, &lda,
                            w.work, &w.lwork, w.rwork, &info, 1, 1);
    else
        ((geev_real *)f)(left, right, &j->n, x, &lda, wr, wi, vl, &lda, vr, &lda, w.work,
                         &w.lwork, &info, 1, 1);
    if (asks) {
        want(j, w.work);
        return info;
    }
    for (size_t i = 0; i < n && !j->is_complex; i++)
        put_complex(j, out[0], i, real_at(j, wr, i), real_at(j, wi, i));
    for (int i = 1; i <= j->mode; i++) {
        const char *v = i == j->mode ? vr : vl;
        if (j->is_complex)
            rt_transpose(j->element, j->n, j->n, v, out[i]);
        else
            put_vectors(j, wi, v, out[i]);
    }
    return info;
}

typedef void gees_real(const char *vectors, const char *sort, const void *select, const int *n,
                       void *a, const int *lda, int *sdim, void *wr, void *wi, void *vs,
                       const int *ldvs, void *work, const int *lwork, int *bwork, int *info,
                       size_t, size_t);
typedef void gees_complex(const char *vectors, const char *sort, const void *select,
                          const int *n, void *a, const int *lda, int *sdim, void *w, void *vs,
                          const int *ldvs, void *work, const int *lwork, void *rwork,
                          int *bwork, int *info, size_t, size_t);

int schur_one(struct job *j, struct room *room, const char *a, char *const *out)
{
    int lda = at_least_1(j->n), info = 0, sorted = 0, asks = !room->base;
    size_t n = (size_t)j->n;
    j->rwork = j->iwork = j->n;
    char *x = take_room(room, n * n, j->element), *vs = take_room(room, n * n, j->element);
    char *wr = take_room(room, n + 1, j->element), *wi = take_room(room, n + 1, j->element);
    struct work w = take_work(j, room);
    if (is_measured(j, room))
        return 0;
    lapack_function *f = rt_lapack(LAPACK_gees, j->dtype);
    if (!asks)
        rt_transpose(j->element, j->n, j->n, a, x);
    if (j->is_complex)
        ((gees_complex *)f)("V", "N", NULL, &j->n, x, &lda, &sorted, wr, vs, &lda, w.work,
                            &w.lwork, w.rwork, w.iwork, &info, 1, 1);
    else
        ((gees_real *)f)("V", "N", NULL, &j->n, x, &lda, &sorted, wr, wi, vs, &lda, w.work,
                         &w.lwork, w.iwork, &info, 1, 1);
    if (asks) {
        want(j, w.work);
        return info;
    }
    rt_transpose(j->element, j->n, j->n, x, out[0]);
    rt_transpose(j->element, j->n, j->n, vs, out[1]);
    return info;
}
