// SPDX-License-Identifier: Apache-2.0
// The routines qr, eigh, svd, eig and schur: LAPACK, one matrix after the other, or many small
// ones at a time, each in a lane of vectors, and the matrices of a batch on jot's own threads.
#include "runtime/host/decompose.h"

#include "base/dtype.h"
#include "base/status.h"
#include "runtime/host/lapack.h"

#include <math.h>
#include <string.h>

#define CHUNK_WORK 100000 // multiplications that are worth a thread
#define SIDE_MOST 16000   // so that 32 bits count the workspace, up to 8 of its squares

static void put_nan(const struct job *j, size_t bytes, char *to)
{
    for (size_t i = 0; i < bytes; i += j->part)
        if (j->part == 4)
            memcpy(to + i, &(float){NAN}, 4);
        else
            memcpy(to + i, &(double){NAN}, 8);
}

// Whether all that is read is finite: of eigh the lower triangle.
static bool is_finite_where_read(const struct job *j, const char *a)
{
    if (j->one != eigh_one)
        return rt_is_finite(j->dtype, j->m * (int64_t)j->n, a);
    for (int64_t row = 0; row < j->n; row++)
        if (!rt_is_finite(j->dtype, row + 1, a + (size_t)row * (size_t)j->n * j->element))
            return false;
    return true;
}

struct matrices {
    const char *a;
    char *out[3];
};

static struct matrices matrices_of(const struct job *j, int64_t i)
{
    size_t matrix = (size_t)j->m * (size_t)j->n * j->element;
    struct matrices at = {.a = (const char *)j->call->operands[0] + (size_t)i * matrix};
    for (int k = 0; k < j->n_out; k++)
        at.out[k] = (char *)j->call->operands[k + 1] + (size_t)i * j->out_bytes[k];
    return at;
}

static void run_one(struct job *j, int64_t i, char *scratch)
{
    struct matrices at = matrices_of(j, i);
    struct room room = {.base = scratch};
    if (is_finite_where_read(j, at.a) && j->one(j, &room, at.a, at.out) == 0)
        return;
    for (int k = 0; k < j->n_out; k++)
        put_nan(j, j->out_bytes[k], at.out[k]);
}

static struct lanes_shape shape_of(const struct job *j)
{
    struct lanes_shape s = {.m = j->m, .n = j->n, .mode = j->mode};
    s.in_stride[0] = (size_t)j->m * (size_t)j->n * j->element;
    memcpy(s.out_stride, j->out_bytes, sizeof s.out_stride);
    return s;
}

static void run_chunk(void *ctx, int64_t chunk, int worker)
{
    const struct job *j = ctx;
    char *scratch = j->call->scratch + (size_t)worker * j->call->scratch_stride;
    struct job own = *j;
    struct lanes_shape s = shape_of(j);
    int64_t end = (chunk + 1) * j->a_chunk < j->batch ? (chunk + 1) * j->a_chunk : j->batch;
    int step = j->lanes ? j->lanes->lanes : 1;
    for (int64_t i = chunk * j->a_chunk; i < end; i += step) {
        int count = end - i < step ? (int)(end - i) : step;
        struct matrices at = matrices_of(j, i);
        uint32_t left = 1;
        if (j->lanes)
            left = j->lanes->run[j->lanes_op](&s, count, (const void *const *)&at.a,
                                              (void *const *)at.out, scratch);
        for (int k = 0; k < count; k++)
            if (left >> k & 1)
                run_one(&own, i + k, scratch);
    }
}

static jot_status check(const char *name, const struct rt_routine_call *call)
{
    const int64_t *p = call->params;
    if (call->param_count != 5 || call->read_count != 1 || call->operand_count < 2 ||
        call->operand_count > 4 || p[1] < 1 || p[2] < 0 || p[3] < 0 || p[4] < 0 || p[4] > 3)
        return rt_routine_damaged(name);
    uint64_t bytes = (uint64_t)p[1];
    if (!dtype_is_valid((int)p[0]) ||
        __builtin_mul_overflow(bytes, dtype_get((jot_dtype)p[0])->bytes, &bytes) ||
        __builtin_mul_overflow(bytes, p[2], &bytes) ||
        __builtin_mul_overflow(bytes, p[3], &bytes) || bytes != call->bytes[0])
        return rt_routine_damaged(name);
    return JOT_OK;
}

static void choose_lanes(struct job *j, size_t *scratch)
{
    static const struct {
        one_matrix *one;
        enum lanes_op op;
    } ops[] = {{eigh_one, LANES_EIGH}, {svd_one, LANES_SVD}, {qr_one, LANES_QR}};
    struct lanes_shape s = shape_of(j);
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        const struct lanes_code *c = lanes_code_of(ops[i].op, j->dtype, &s);
        if (ops[i].one != j->one || !lanes_are_many(c, j->batch))
            continue;
        j->lanes = c;
        j->lanes_op = ops[i].op;
        j->a_chunk = (j->a_chunk + LANES_MOST - 1) / LANES_MOST * LANES_MOST;
        size_t own = lanes_scratch(c, &s);
        *scratch = *scratch > own ? *scratch : own;
    }
}

// The job of a call, and how much scratch it takes.
static jot_status make_job(const char *name, const struct rt_routine_call *call,
                           one_matrix *one, struct job *j, size_t *out_scratch)
{
    const int64_t *p = call->params;
    // LAPACK counts elements, those of its workspace among them, in 32 bits.
    if (p[2] > SIDE_MOST || p[3] > SIDE_MOST)
        return status_fail(JOT_ERR_SHAPE, "%s of a matrix of %lld by %lld: at most %d by %d",
                           name, (long long)p[2], (long long)p[3], SIDE_MOST, SIDE_MOST);
    JOT_TRY(rt_lapack_open());
    jot_dtype d = (jot_dtype)p[0];
    *j = (struct job){.call = call,
                      .dtype = d,
                      .is_complex = dtype_is_complex(d),
                      .element = dtype_get(d)->bytes,
                      .part = dtype_get(dtype_real(d))->bytes,
                      .m = (int)p[2],
                      .n = (int)p[3],
                      .k = (int)(p[2] < p[3] ? p[2] : p[3]),
                      .mode = (int)p[4],
                      .batch = p[1],
                      .one = one,
                      .n_out = (int)call->operand_count - 1};
    double work = (double)j->m * (double)j->n * (double)j->k;
    j->a_chunk = work < CHUNK_WORK ? (int64_t)(CHUNK_WORK / (work + 1)) + 1 : 1;
    for (int i = 0; i < j->n_out; i++)
        j->out_bytes[i] = call->bytes[i + 1] / (size_t)p[1];
    struct room room = {0};
    one(j, &room, NULL, NULL);
    j->work = j->wanted > 0 ? j->wanted : 1;
    room.used = 0;
    one(j, &room, NULL, NULL);
    *out_scratch = room.used;
    choose_lanes(j, out_scratch);
    return JOT_OK;
}

static jot_status decompose(const char *name, const struct rt_routine_call *call,
                            one_matrix *one)
{
    struct job j;
    size_t scratch;
    JOT_TRY(make_job(name, call, one, &j, &scratch));
    rt_each_matrix(call, run_chunk, &j, (j.batch + j.a_chunk - 1) / j.a_chunk);
    return JOT_OK;
}

#define DECOMPOSITION(name)                                                                    \
    jot_status host_##name##_check(const struct rt_routine_call *call)                         \
    {                                                                                          \
        return check(#name, call);                                                             \
    }                                                                                          \
    jot_status host_##name##_bind(const struct rt_routine_call *call, size_t *out_scratch)     \
    {                                                                                          \
        struct job j;                                                                          \
        return make_job(#name, call, name##_one, &j, out_scratch);                             \
    }                                                                                          \
    jot_status host_##name(const struct rt_routine_call *call)                                 \
    {                                                                                          \
        return decompose(#name, call, name##_one);                                             \
    }
DECOMPOSITION(qr)
DECOMPOSITION(eigh)
DECOMPOSITION(svd)
DECOMPOSITION(eig)
DECOMPOSITION(schur)
