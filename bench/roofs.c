// SPDX-License-Identifier: Apache-2.0
#include "cases.h"
#include "measure.h"

static jot_value copy(jot_value x) { return jot_neg(x); }
static jot_value sum(jot_value x) { return jot_sum(x); }
static jot_value product(jot_value x) { return jot_matmul(x, x); }

static jot_status best_of(jot_executable *f, jot_array *x, double *out_seconds)
{
    enum { TRIES = 10, CALLS = 4 };
    double best = 1e30;
    for (int i = 0; i < TRIES; i++) {
        double start = seconds();
        for (int k = 0; k < CALLS; k++) {
            jot_array *y;
            TRY(jot_call_list(f, 1, &x, 1, &y));
            jot_array_release(y);
        }
        TRY(jot_device_wait(NULL));
        double time = (seconds() - start) / CALLS;
        best = time < best ? time : best;
    }
    *out_seconds = best;
    return JOT_OK;
}

// The least time of a call of the function on normal numbers.
static jot_status time_of(jot_function f, jot_precision precision, jot_dtype dtype,
                          const int64_t *dims, double *out_seconds)
{
    jot_array *x = NULL;
    jot_scope *scope = jot_scope_open();
    jot_value numbers = (jot_random_normal_dims)(jot_random_key(0), JOT_F32, dims);
    jot_status status = jot_eval(jot_astype(numbers, dtype), &x);
    jot_scope_close(scope);
    if (status != JOT_OK)
        return status;
    jot_executable *e = jot_jit(f, .precision = precision);
    status = e ? best_of(e, x, out_seconds) : JOT_ERR_MEMORY;
    jot_executable_release(e);
    jot_array_release(x);
    return status;
}

jot_status bench_roofs(struct bench_roofs *out)
{
    static const int64_t numbers[] = {1 << 28, JOT_END}, side = 8192,
                         matrix[] = {side, side, JOT_END};
    const double bytes = 4.0 * (1 << 28), flops = 2.0 * side * side * side;
    double time;
    TRY(time_of(jot_fn(copy), JOT_PRECISION_FULL, JOT_F32, numbers, &time));
    out->copy = 2 * bytes / time;
    TRY(time_of(jot_fn(sum), JOT_PRECISION_FULL, JOT_F32, numbers, &time));
    out->read = bytes / time;
    for (int i = 0; i < 3; i++) {
        TRY(time_of(jot_fn(product), i == ROOF_TF32 ? JOT_PRECISION_TF32 : JOT_PRECISION_FULL,
                    i == ROOF_BF16 ? JOT_BF16 : JOT_F32, matrix, &time));
        out->product[i] = flops / time;
    }
    return JOT_OK;
}

static enum roof_product product_of(const struct bench_case *c)
{
    if (c->in[0].fill == NORMAL_BF16)
        return ROOF_BF16;
    return c->precision == JOT_PRECISION_FULL ? ROOF_F32 : ROOF_TF32;
}

double bench_floor(const struct bench_roofs *roofs, const struct bench_run *run, double bytes,
                   double result_bytes)
{
    // What writes little reads at the rate of reads alone.
    double moves = bytes / (result_bytes * 16 < bytes ? roofs->read : roofs->copy);
    double works = run->flops / roofs->product[product_of(run->c)];
    return moves > works ? moves : works;
}
