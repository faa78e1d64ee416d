// SPDX-License-Identifier: Apache-2.0
// Convolutions of the host by tiles against the definition.
#include "base/conv.h"
#include "base/dtype.h"
#include "jot/device.h"
#include "runtime/host/conv_tiles.h"
#include "runtime/routine.h"
#include "support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static unsigned seed;

// Extents of x and w, features last, with y's to be found.
struct shape {
    int n;
    int64_t batch, groups, in, out; // features of a group
    int64_t x[3], w[3], stride[3], padding[3], dilation[3];
};

static const struct shape shapes[] = {
    {2, 3, 1, 4, 16, {7, 6}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
    {2, 2, 1, 3, 21, {9, 8}, {3, 2}, {2, 3}, {1, 0}, {1, 1}},
    {2, 1, 1, 2, 5, {11, 12}, {3, 3}, {1, 1}, {0, 3}, {2, 3}},
    {2, 2, 3, 2, 9, {6, 5}, {2, 3}, {1, 2}, {1, 1}, {1, 1}},
    {2,
     1,
     1,
     3,
     40,
     {5, 4},
     {1, 1},
     {3, 2},
     {0, 0},
     {1, 1}}, // positions that nothing is seen of
    // Strides and dilations with divisors.
    {2, 1, 1, 1, 8, {12, 12}, {3, 2}, {4, 6}, {2, 1}, {2, 4}},
    {2, 2, 1, 2, 8, {8, 8}, {4, 4}, {4, 4}, {0, 0}, {1, 1}},
    {2, 1, 1, 1, 33, {4, 4}, {3, 3}, {1, 1}, {4, 4}, {1, 1}}, // windows beyond all of x
    {1, 5, 1, 3, 17, {40}, {5}, {2}, {2}, {1}},
    {1, 1, 2, 1, 16, {3000}, {7}, {1}, {3}, {3}},
    {3, 2, 1, 2, 18, {5, 4, 6}, {2, 3, 2}, {1, 2, 1}, {1, 1, 0}, {1, 1, 2}},
    {2, 1, 1, 32, 17, {70, 60}, {3, 3}, {1, 1}, {1, 1}, {1, 1}}, // several blocks
    {2, 70, 1, 16, 24, {6, 6}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},  // and parts
};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };

static struct conv_call call_of(const struct shape *s, jot_dtype dtype, enum conv_part part)
{
    struct conv_call c = {.dtype = dtype,
                          .part = part,
                          .layout = CONV_FEATURES_LAST,
                          .n = s->n,
                          .groups = s->groups};
    for (int i = 0; i < s->n; i++) {
        c.lists[CONV_STRIDES][i] = s->stride[i];
        c.lists[CONV_PADDING][i] = s->padding[i];
        c.lists[CONV_DILATION][i] = s->dilation[i];
        c.dims[CONV_X][1 + i] = s->x[i];
        c.dims[CONV_W][i] = s->w[i];
        c.dims[CONV_Y][1 + i] =
            (s->x[i] + 2 * s->padding[i] - (s->w[i] - 1) * s->dilation[i] - 1) / s->stride[i] +
            1;
    }
    c.dims[CONV_X][0] = c.dims[CONV_Y][0] = s->batch;
    c.dims[CONV_X][s->n + 1] = s->groups * s->in;
    c.dims[CONV_Y][s->n + 1] = c.dims[CONV_W][s->n + 1] = s->groups * s->out;
    c.dims[CONV_W][s->n] = s->in;
    return c;
}

static int64_t size_of(const struct conv_call *c, int part)
{
    int64_t size = 1;
    for (int i = 0; i < c->n + 2; i++)
        size *= c->dims[part][i];
    return size;
}

static bool next(int n, const int64_t *end, int64_t *index)
{
    for (int i = n - 1; i >= 0; i--) {
        if (++index[i] < end[i])
            return true;
        index[i] = 0;
    }
    return false;
}

static int64_t offset_of(const struct conv_call *c, int part, const int64_t *index)
{
    int64_t at = 0;
    for (int i = 0; i < c->n + 2; i++)
        at = at * c->dims[part][i] + index[i];
    return at;
}

// Every product of the definition, added to what it is a term of.
static void define(const struct conv_call *c, double *const *at)
{
    int n = c->n;
    const int64_t *dims[] = {c->dims[CONV_X], c->dims[CONV_W], c->dims[CONV_Y]};
    int64_t of_group = dims[CONV_Y][n + 1] / c->groups, w[5] = {0};
    do {
        int64_t y[5] = {0}, x[5], end[5];
        memcpy(end, dims[CONV_Y], sizeof end);
        end[n + 1] = 1;
        do {
            bool is_inside = true;
            x[0] = y[0];
            for (int i = 0; i < n; i++) {
                x[1 + i] = y[1 + i] * c->lists[CONV_STRIDES][i] +
                           w[i] * c->lists[CONV_DILATION][i] - c->lists[CONV_PADDING][i];
                is_inside &= x[1 + i] >= 0 && x[1 + i] < dims[CONV_X][1 + i];
            }
            if (!is_inside)
                continue;
            x[n + 1] = w[n + 1] / of_group * dims[CONV_W][n] + w[n];
            y[n + 1] = w[n + 1];
            int64_t p[] = {offset_of(c, CONV_X, x), offset_of(c, CONV_W, w),
                           offset_of(c, CONV_Y, y)};
            int a = conv_operand(c->part, 0), b = conv_operand(c->part, 1);
            at[c->part][p[c->part]] += at[a][p[a]] * at[b][p[b]];
            y[n + 1] = 0;
        } while (next(n + 2, end, y));
    } while (next(n + 2, dims[CONV_W], w));
}

static void *as(jot_dtype dtype, const double *from, int64_t count)
{
    void *to = aligned_alloc(64, ((size_t)count * 8 + 63) / 64 * 64);
    for (int64_t i = 0; i < count; i++)
        if (dtype == JOT_F32)
            ((float *)to)[i] = (float)from[i];
        else
            ((double *)to)[i] = from[i];
    return to;
}

static void expect_call(const struct conv_call *c, void *const *at)
{
    int64_t params[CONV_PARAMS_MOST];
    void *operands[] = {at[conv_operand(c->part, 0)], at[conv_operand(c->part, 1)],
                        at[c->part]};
    struct rt_routine_call call = {.params = params,
                                   .param_count = conv_call_write(c, params),
                                   .operand_count = 3,
                                   .read_count = 2};
    for (int i = 0; i < 3; i++) {
        int part = i == 2 ? (int)c->part : (int)conv_operand(c->part, i);
        call.bytes[i] = (uint64_t)size_of(c, part) * dtype_get(c->dtype)->bytes;
    }
    size_t scratch;
    const struct rt_routine *r = rt_routine_find("conv");
    ck_assert_int_eq(r->check(&call), JOT_OK);
    ck_assert_int_eq(r->bind(&call, &scratch), JOT_OK);
    call.operands = operands;
    ck_assert_int_eq(rt_routine_run(r, &call, scratch), JOT_OK);
}

// Of small integers, whose sums are exact in any order.
static void expect_definition(const struct shape *s, jot_dtype dtype, enum conv_part part)
{
    struct conv_call c = call_of(s, dtype, part);
    double *want[CONV_PARTS];
    void *got[CONV_PARTS];
    ck_assert(conv_has_tiles(&c));
    for (int i = 0; i < CONV_PARTS; i++) {
        want[i] = calloc((size_t)size_of(&c, i), sizeof(double));
        for (int64_t k = 0; k < size_of(&c, i); k++)
            want[i][k] = i == (int)part ? 0 : rand() % 9 - 4;
        got[i] = as(dtype, want[i], size_of(&c, i));
    }
    memset(got[part], 0xff, (size_t)size_of(&c, part) * dtype_get(dtype)->bytes); // NaN
    define(&c, want);
    expect_call(&c, got);
    for (int64_t k = 0; k < size_of(&c, part); k++) {
        double x =
            dtype == JOT_F32 ? (double)((float *)got[part])[k] : ((double *)got[part])[k];
        ck_assert_msg(x == want[part][k], "seed %u, part %d, element %lld: %g, not %g", seed,
                      (int)part, (long long)k, x, want[part][k]);
    }
    for (int i = 0; i < CONV_PARTS; i++) {
        free(want[i]);
        free(got[i]);
    }
}

START_TEST(is_what_is_defined)
{
    for (int part = 0; part < CONV_PARTS; part++) {
        expect_definition(&shapes[_i], JOT_F32, (enum conv_part)part);
        expect_definition(&shapes[_i], JOT_F64, (enum conv_part)part);
    }
}
END_TEST

static int64_t draw(int64_t first, int64_t last) { return first + rand() % (last - first + 1); }

static struct shape draw_shape(void)
{
    struct shape s = {.n = (int)draw(1, 3),
                      .batch = draw(1, 3),
                      .groups = draw(1, 2),
                      .in = draw(1, 5),
                      .out = draw(1, 20)};
    for (int i = 0; i < s.n; i++) {
        s.w[i] = draw(1, 4);
        s.stride[i] = draw(1, 4);
        s.dilation[i] = draw(1, 4);
        s.padding[i] = draw(0, 3);
        s.x[i] = (s.w[i] - 1) * s.dilation[i] + 1 + draw(0, 5);
    }
    return s;
}

START_TEST(is_what_is_defined_for_any_shape)
{
    for (int i = 0; i < 100; i++) {
        const struct shape s = draw_shape();
        expect_definition(&s, i % 2 ? JOT_F32 : JOT_F64, (enum conv_part)(i % CONV_PARTS));
    }
}
END_TEST

// Of numbers whose sums depend on their order.
START_TEST(threads_give_the_same)
{
    for (int part = 0; part < CONV_PARTS; part++) {
        struct conv_call c = call_of(&shapes[N_SHAPES - 1 - _i], JOT_F32, (enum conv_part)part);
        size_t bytes = (size_t)size_of(&c, part) * sizeof(float);
        void *at[CONV_PARTS], *first = malloc(bytes);
        for (int i = 0; i < CONV_PARTS; i++) {
            float *x = at[i] = malloc((size_t)size_of(&c, i) * sizeof(float));
            for (int64_t k = 0; k < size_of(&c, i); k++)
                x[k] = (float)rand() / (float)RAND_MAX;
        }
        ck_assert_int_eq(jot_set_threads(1), JOT_OK);
        expect_call(&c, at);
        memcpy(first, at[part], bytes);
        ck_assert_int_eq(jot_set_threads(5), JOT_OK);
        expect_call(&c, at);
        ck_assert(!memcmp(first, at[part], bytes));
        free(first);
        for (int i = 0; i < CONV_PARTS; i++)
            free(at[i]);
    }
}
END_TEST

// Padding and strides without bounds are no reason to ask for memory or time without bounds.
START_TEST(leaves_others_alone)
{
    struct conv_call c = call_of(&shapes[0], JOT_F32, CONV_Y);
    c.layout = CONV_FILTERS_FIRST;
    ck_assert(!conv_has_tiles(&c));
    c = call_of(&shapes[0], JOT_F16, CONV_Y);
    ck_assert(!conv_has_tiles(&c));
    c = call_of(&shapes[10], JOT_F32, CONV_Y);
    for (int i = 0; i < 3; i++) {
        c.lists[CONV_PADDING][i] = 1 << 29;
        c.lists[CONV_DILATION][i] = 1 << 30;
    }
    ck_assert(!conv_has_tiles(&c));
    static const struct shape far = {1, 1, 1, 4, 8, {1 << 22}, {1 << 20}, {1 << 20}, {0}, {1}};
    c = call_of(&far, JOT_F32, CONV_X);
    ck_assert(!conv_has_tiles(&c));
    c = call_of(&far, JOT_F32, CONV_Y);
    ck_assert(conv_has_tiles(&c));
}
END_TEST

static void add_tests(TCase *cases)
{
    tcase_set_timeout(cases, 120);
    tcase_add_loop_test(cases, is_what_is_defined, 0, N_SHAPES);
    tcase_add_loop_test(cases, threads_give_the_same, 0, 2);
    tcase_add_test(cases, is_what_is_defined_for_any_shape);
    tcase_add_test(cases, leaves_others_alone);
}

int main(void)
{
    const char *number = getenv("JOT_TEST_SEED");
    seed = number ? (unsigned)strtoul(number, NULL, 10) : (unsigned)time(NULL);
    srand(seed);
    return suite_run("conv", add_tests);
}
