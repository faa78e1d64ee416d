// SPDX-License-Identifier: Apache-2.0
// The routine conv: by tiles where it can be, else element by element of the result: programs for the
// host have products of matrices instead then (passes/expand/conv.c), and those for a GPU come here when
// its library fails.
#include "base/conv.h"
#include "base/count.h"
#include "base/dtype.h"
#include "base/status.h"
#include "runtime/host/conv_tiles.h"
#include "runtime/host/pool.h"
#include "runtime/routine.h"

#include <math.h>
#include <string.h>

enum { AXES = CONV_AXES_MOST, CHUNK = 256 };

// A part as an array [first, second, spatial..] with three spatial axes: of x and y the batch and the
// features, of w the features of y and of x.
struct part {
    const void *at;
    int64_t dims[2 + AXES], apart[2 + AXES];
};

struct job {
    jot_dtype dtype;
    enum conv_part part;
    void *to;
    struct part parts[CONV_PARTS];
    int64_t stride[AXES], padding[AXES], dilation[AXES];
    int64_t in, out; // features of a group
    int64_t count;   // elements of the result
};

static struct part part_of(const struct conv_call *c, enum conv_part part)
{
    struct part p = {.dims = {1, 1, 1, 1, 1}};
    int64_t apart[2 + AXES], next = 1;
    int second =
        part == CONV_W ? conv_in(c->layout, c->n) : conv_features(c->layout, c->n, part);
    int first = part == CONV_W ? conv_features(c->layout, c->n, part) : 0;
    for (int i = c->n + 1; i >= 0; i--) {
        apart[i] = next;
        next *= c->dims[part][i];
    }
    for (int i = 0; i < c->n + 2; i++) {
        int axis = i == 0 ? first : i == 1 ? second : conv_spatial(c->layout, part) + i - 2;
        p.dims[i] = c->dims[part][axis];
        p.apart[i] = apart[axis];
    }
    return p;
}

static double load_element(jot_dtype d, const void *at, int64_t i)
{
    switch (d) {
    case JOT_F64:
        return ((const double *)at)[i];
    case JOT_F32:
        return (double)((const float *)at)[i];
    case JOT_F16:
        return (double)dtype_f16_to_f32(((const uint16_t *)at)[i]);
    default:
        return (double)dtype_bf16_to_f32(((const uint16_t *)at)[i]);
    }
}

static void store(jot_dtype d, void *at, int64_t i, double x)
{
    switch (d) {
    case JOT_F64:
        ((double *)at)[i] = x;
        break;
    case JOT_F32:
        ((float *)at)[i] = (float)x;
        break;
    case JOT_F16:
        ((uint16_t *)at)[i] = dtype_f16_from_f64(x);
        break;
    default:
        ((uint16_t *)at)[i] = dtype_bf16_from_f64(x);
    }
}

static int64_t offset_of(const struct part *p, const int64_t *index)
{
    int64_t at = 0;
    for (int i = 0; i < 2 + AXES; i++)
        at += index[i] * p->apart[i];
    return at;
}

// Spatial indices of x for those of w and y; or of y for those of x and w.  False where there are none.
static bool find_x(const struct job *j, const int64_t *w, const int64_t *y, int64_t *x)
{
    for (int i = 0; i < AXES; i++) {
        x[i] = y[i] * j->stride[i] + w[i] * j->dilation[i] - j->padding[i];
        if (x[i] < 0 || x[i] >= j->parts[CONV_X].dims[2 + i])
            return false;
    }
    return true;
}
static bool find_y(const struct job *j, const int64_t *w, const int64_t *x, int64_t *y)
{
    for (int i = 0; i < AXES; i++) {
        int64_t at = x[i] + j->padding[i] - w[i] * j->dilation[i];
        if (at < 0 || at % j->stride[i] || at / j->stride[i] >= j->parts[CONV_Y].dims[2 + i])
            return false;
        y[i] = at / j->stride[i];
    }
    return true;
}

static double product(const struct job *j, const int64_t *a, const int64_t *b, double sum)
{
    const struct part *p = &j->parts[conv_operand(j->part, 0)],
                      *q = &j->parts[conv_operand(j->part, 1)];
    return fma(load_element(j->dtype, p->at, offset_of(p, a)),
               load_element(j->dtype, q->at, offset_of(q, b)), sum);
}

static double sum_of_x(const struct job *j, const int64_t *x)
{
    int64_t w[2 + AXES] = {0}, y[2 + AXES] = {x[0]}, group = x[1] / j->in;
    int64_t dims[1 + AXES] = {j->out}, k[1 + AXES] = {0};
    double sum = 0;
    memcpy(dims + 1, j->parts[CONV_W].dims + 2, sizeof(int64_t) * AXES);
    do {
        w[0] = y[1] = group * j->out + k[0];
        w[1] = x[1] % j->in;
        memcpy(w + 2, k + 1, sizeof(int64_t) * AXES);
        if (find_y(j, w + 2, x + 2, y + 2))
            sum = product(j, w, y, sum);
    } while (count_next_index(1 + AXES, dims, k));
    return sum;
}

static double sum_of_w(const struct job *j, const int64_t *w)
{
    int64_t x[2 + AXES] = {0, w[0] / j->out * j->in + w[1]}, y[2 + AXES] = {0, w[0]};
    int64_t dims[1 + AXES] = {j->parts[CONV_Y].dims[0]}, k[1 + AXES] = {0};
    double sum = 0;
    memcpy(dims + 1, j->parts[CONV_Y].dims + 2, sizeof(int64_t) * AXES);
    do {
        x[0] = y[0] = k[0];
        memcpy(y + 2, k + 1, sizeof(int64_t) * AXES);
        if (find_x(j, w + 2, y + 2, x + 2))
            sum = product(j, x, y, sum);
    } while (count_next_index(1 + AXES, dims, k));
    return sum;
}

static double sum_of_y(const struct job *j, const int64_t *y)
{
    int64_t x[2 + AXES] = {y[0]}, w[2 + AXES] = {y[1]};
    const int64_t *dims = j->parts[CONV_W].dims + 1; // features of x, positions
    double sum = 0;
    do {
        x[1] = y[1] / j->out * j->in + w[1];
        if (find_x(j, w + 2, y + 2, x + 2))
            sum = product(j, x, w, sum);
    } while (count_next_index(1 + AXES, dims, w + 1));
    return sum;
}

static void run_chunk(void *ctx, int64_t chunk, int worker)
{
    const struct job *j = ctx;
    const struct part *p = &j->parts[j->part];
    (void)worker;
    for (int64_t i = chunk * CHUNK; i < (chunk + 1) * CHUNK && i < j->count; i++) {
        int64_t index[2 + AXES], rest = i;
        for (int axis = 1 + AXES; axis >= 0; axis--) {
            index[axis] = rest % p->dims[axis];
            rest /= p->dims[axis];
        }
        double sum = j->part == CONV_X   ? sum_of_x(j, index)
                     : j->part == CONV_W ? sum_of_w(j, index)
                                         : sum_of_y(j, index);
        store(j->dtype, j->to, offset_of(p, index), sum);
    }
}

jot_status host_conv(const struct rt_routine_call *call)
{
    struct conv_call c;
    if (!conv_call_read(call->params, call->param_count, &c))
        return rt_routine_damaged("conv");
    if (conv_has_tiles(&c))
        return conv_by_tiles(call, &c);
    struct job j = {.dtype = c.dtype, .part = c.part, .to = call->operands[2], .count = 1};
    for (int part = 0; part < CONV_PARTS; part++)
        j.parts[part] = part_of(&c, (enum conv_part)part);
    for (int i = 0; i < 2; i++)
        j.parts[conv_operand(c.part, i)].at = call->operands[i];
    for (int i = 0; i < 2 + AXES; i++)
        j.count *= j.parts[c.part].dims[i];
    for (int i = 0; i < AXES; i++) {
        j.stride[i] = i < c.n ? c.lists[CONV_STRIDES][i] : 1;
        j.padding[i] = i < c.n ? c.lists[CONV_PADDING][i] : 0;
        j.dilation[i] = i < c.n ? c.lists[CONV_DILATION][i] : 1;
    }
    j.in = j.parts[CONV_W].dims[1];
    j.out = j.parts[CONV_W].dims[0] / c.groups;
    rt_pool_run(rt_pool_default(), call->workers, run_chunk, &j, (j.count + CHUNK - 1) / CHUNK);
    return JOT_OK;
}

// ---- Loading

jot_status host_conv_check(const struct rt_routine_call *call)
{
    struct conv_call c;
    if (call->operand_count != 3 || call->read_count != 2 ||
        !conv_call_read(call->params, call->param_count, &c))
        return rt_routine_damaged("conv");
    for (int i = 0; i < 3; i++) {
        enum conv_part part = i == 2 ? c.part : conv_operand(c.part, i);
        uint64_t bytes = dtype_get(c.dtype)->bytes;
        for (int axis = 0; axis < c.n + 2; axis++)
            if (__builtin_mul_overflow(bytes, (uint64_t)c.dims[part][axis], &bytes))
                return rt_routine_damaged("conv");
        if (bytes != call->bytes[i])
            return rt_routine_damaged("conv");
    }
    return JOT_OK;
}

jot_status host_conv_bind(const struct rt_routine_call *call, size_t *out_scratch)
{
    struct conv_call c;
    if (!conv_call_read(call->params, call->param_count, &c))
        return rt_routine_damaged("conv");
    *out_scratch = conv_has_tiles(&c) ? conv_tiles_scratch(&c) : 0;
    return JOT_OK;
}
