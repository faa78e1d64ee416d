// SPDX-License-Identifier: Apache-2.0
// Routines of a GPU over the libraries of fake_cuda: by which form they run, in graphs, and what
// becomes of faults.  That their results are right is what the tests of the emulated suite compare.
#include "base/fft.h"
#include "cuda_routines_support.h"
#include "support/suite.h"

#include <complex.h>
#include <math.h>

// ---- Fourier transforms

#define N 6
static const struct routine_plan fft = {"fft",
                                        4,
                                        1,
                                        2,
                                        {JOT_C64, 1, FFT_FFT, N},
                                        {N * sizeof(float complex), N * sizeof(float complex)}};

static void expect_transform(int times)
{
    float complex x[N], y[N];
    struct rt_program *p;
    for (int i = 0; i < N; i++)
        x[i] = CMPLXF((float)(i * i), (float)(1 - i));
    OK(load(&fft, &p));
    OK(run_times(p, &fft, times, (const void *[]){x}, (void *[]){y}));
    for (int k = 0; k < N; k++) {
        double complex sum = 0;
        for (int i = 0; i < N; i++)
            sum += (double complex)x[i] * cexp(-2 * M_PI * I * i * k / N);
        ck_assert_double_lt(cabs(sum - (double complex)y[k]), 1e-5);
    }
    rt_program_release(p);
}

static int transforms(void) { return fake_count_of("libcufft.so.12", "fake_cuda_transforms"); }

START_TEST(transforms_by_the_library)
{
    use_fake(NULL, NULL);
    expect_transform(1);
    ck_assert_int_eq(transforms(), 1);
    expect_no_blocks();
}
END_TEST

// The first time it is seen, the second time captured.
START_TEST(is_part_of_a_graph)
{
    use_fake(NULL, NULL);
    expect_transform(3);
    ck_assert_int_eq(fake_count("fake_cuda_graph_launches"), 2);
    ck_assert_int_eq(transforms(), 3);
}
END_TEST

START_TEST(without_a_plan_it_runs_on_the_host)
{
    use_fake("FAKE_CUDA_NO_FFT", "5");
    expect_transform(3);
    ck_assert_int_eq(transforms(), 0);
    ck_assert_int_eq(fake_count("fake_cuda_graph_launches"), 0);
}
END_TEST

START_TEST(a_plan_may_be_out_of_memory)
{
    use_fake("FAKE_CUDA_NO_FFT", "2");
    struct rt_program *p;
    ck_assert_int_eq(load(&fft, &p), JOT_ERR_MEMORY);
    ck_assert_str_eq(jot_error_message(), "cuda:0: a Fourier transform: cuFFT fails with 2");
    expect_no_blocks();
}
END_TEST

START_TEST(where_it_fails_it_runs_on_the_host)
{
    use_fake("FAKE_CUDA_FFT_FAULT", "6");
    expect_transform(3);
    ck_assert_int_eq(transforms(), 0);
    ck_assert_int_eq(fake_count("fake_cuda_graph_launches"), 0);
    expect_no_blocks();
}
END_TEST

START_TEST(without_the_library_it_runs_on_the_host)
{
    use_fake_without("libcufft.so.12");
    expect_transform(2);
}
END_TEST

// ---- Convolutions

// Two images of 4 features in two groups, 5 by 6, by windows of 2 by 3; x and y features first and last,
// and along one axis alone.
static const struct conv_call conv_cases[] = {
    {JOT_F32,
     CONV_Y,
     CONV_FEATURES_FIRST,
     0,
     2,
     2,
     {{2, 1}, {1, 0}, {1, 2}},
     {{2, 4, 5, 6}, {6, 2, 2, 3}, {2, 6, 3, 2}}},
    {JOT_F32,
     CONV_Y,
     CONV_FILTERS_FIRST,
     1,
     2,
     2,
     {{2, 1}, {1, 0}, {1, 2}},
     {{2, 5, 6, 4}, {6, 2, 3, 2}, {2, 3, 2, 6}}},
    {JOT_F32,
     CONV_Y,
     CONV_FEATURES_FIRST,
     0,
     1,
     1,
     {{3}, {2}, {1}},
     {{2, 3, 7}, {4, 3, 2}, {2, 4, 4}}},
    {JOT_F32,
     CONV_Y,
     CONV_FILTERS_FIRST,
     0,
     3,
     1,
     {{1, 1, 1}, {0, 1, 0}, {1, 1, 1}},
     {{1, 2, 3, 4, 2}, {3, 2, 2, 2, 2}, {1, 1, 4, 3, 3}}},
};

static int convolutions(void)
{
    return fake_count_of("libcudnn.so.9", "fake_cuda_convolutions");
}

static struct routine_plan conv_plan(const struct conv_call *c)
{
    struct routine_plan r = {"conv", 0, 2, 3, {0}, {0}};
    r.n_params = (int)conv_call_write(c, r.params);
    for (int i = 0; i < 3; i++) {
        enum conv_part part = i == 2 ? c->part : conv_operand(c->part, i);
        r.bytes[i] = sizeof(float);
        for (int axis = 0; axis < c->n + 2; axis++)
            r.bytes[i] *= (uint64_t)c->dims[part][axis];
    }
    return r;
}

#define NUMBERS_MOST 1024
// Small whole numbers, so that sums are exact.
static void draw_wholes(float *x)
{
    for (int i = 0; i < NUMBERS_MOST; i++)
        x[i] = (float)((i * 37 + i * i % 11) % 9 - 4);
}

static double dot_of(const float *x, const float *y, uint64_t bytes)
{
    double sum = 0;
    for (uint64_t i = 0; i < bytes / sizeof *x; i++)
        sum += (double)x[i] * (double)y[i];
    return sum;
}

static void convolve(const struct conv_call *c, int times, const float *a, const float *b,
                     float *out)
{
    const struct routine_plan r = conv_plan(c);
    struct rt_program *p;
    ck_assert_uint_le(r.bytes[2], NUMBERS_MOST * sizeof *out);
    OK(load(&r, &p));
    OK(run_times(p, &r, times, (const void *[]){a, b}, (void *[]){out}));
    rt_program_release(p);
}

// All elements of y by the definition.
static void expect_y(const struct conv_call *c, const float *x, const float *w, const float *y)
{
    int64_t of_y = c->dims[CONV_Y][conv_features(c->layout, c->n, CONV_Y)] / c->groups;
    int64_t of_x = c->dims[CONV_W][conv_in(c->layout, c->n)];
    const int64_t *dx = c->dims[CONV_X], *dw = c->dims[CONV_W], *dy = c->dims[CONV_Y];
    int64_t n_y = 1, n_w = 1;
    for (int i = 0; i < c->n + 2; i++) {
        n_y *= dy[i];
        n_w *= dw[i];
    }
    for (int64_t i = 0; i < n_y; i++) {
        int64_t at_y[5], at_w[5], rest = i;
        double sum = 0;
        for (int axis = c->n + 1; axis >= 0; rest /= dy[axis], axis--)
            at_y[axis] = rest % dy[axis];
        int64_t out = at_y[conv_features(c->layout, c->n, CONV_Y)];
        for (int64_t k = 0; k < n_w; k++) {
            rest = k;
            for (int axis = c->n + 1; axis >= 0; rest /= dw[axis], axis--)
                at_w[axis] = rest % dw[axis];
            if (at_w[conv_features(c->layout, c->n, CONV_W)] != out)
                continue;
            int64_t at_x[5] = {at_y[0]}, offset = 0;
            bool is_inside = true;
            at_x[conv_features(c->layout, c->n, CONV_X)] =
                out / of_y * of_x + at_w[conv_in(c->layout, c->n)];
            for (int axis = 0; axis < c->n; axis++) {
                int to = conv_spatial(c->layout, CONV_X) + axis;
                at_x[to] = at_y[conv_spatial(c->layout, CONV_Y) + axis] *
                               c->lists[CONV_STRIDES][axis] +
                           at_w[conv_spatial(c->layout, CONV_W) + axis] *
                               c->lists[CONV_DILATION][axis] -
                           c->lists[CONV_PADDING][axis];
                is_inside = is_inside && at_x[to] >= 0 && at_x[to] < dx[to];
            }
            for (int axis = 0; axis < c->n + 2; axis++)
                offset = offset * dx[axis] + at_x[axis];
            if (is_inside)
                sum += (double)x[offset] * (double)w[k];
        }
        ck_assert_double_eq(sum, (double)y[i]);
    }
}

// y by its definition, and x and w as its derivatives: <ct, y(x, w)> is <x(w, ct), x> and <w(x, ct), w>.
static void expect_convolutions(const struct conv_call *of, int times)
{
    static float x[NUMBERS_MOST], w[NUMBERS_MOST], y[NUMBERS_MOST], ct[NUMBERS_MOST],
        dx[NUMBERS_MOST], dw[NUMBERS_MOST];
    struct conv_call c = *of;
    draw_wholes(x);
    draw_wholes(w);
    draw_wholes(ct);
    convolve(&c, times, x, w, y);
    expect_y(&c, x, w, y);
    double want = dot_of(ct, y, conv_plan(&c).bytes[2]);
    c.part = CONV_X;
    convolve(&c, times, w, ct, dx);
    ck_assert_double_eq(dot_of(dx, x, conv_plan(&c).bytes[2]), want);
    c.part = CONV_W;
    convolve(&c, times, x, ct, dw);
    ck_assert_double_eq(dot_of(dw, w, conv_plan(&c).bytes[2]), want);
}

START_TEST(convolves_by_the_library)
{
    use_fake(NULL, NULL);
    expect_convolutions(&conv_cases[_i], 3);
    ck_assert_int_eq(convolutions(), 9);
    ck_assert_int_eq(fake_count("fake_cuda_graph_launches"), 6);
    expect_no_blocks();
}
END_TEST

START_TEST(without_a_way_it_convolves_on_the_host)
{
    use_fake("FAKE_CUDA_NO_CONV", "3000");
    expect_convolutions(&conv_cases[0], 2);
    ck_assert_int_eq(convolutions(), 0);
}
END_TEST

START_TEST(where_the_library_fails_it_convolves_on_the_host)
{
    use_fake("FAKE_CUDA_CONV_FAULT", "5000");
    expect_convolutions(&conv_cases[1], 1);
    ck_assert_int_eq(convolutions(), 0);
}
END_TEST

START_TEST(damaged_convolutions_are_refused)
{
    use_fake(NULL, NULL);
    struct routine_plan r = conv_plan(&conv_cases[0]);
    struct rt_program *p;
    for (int i = 0; i < r.n_params; i++) {
        struct routine_plan other = r;
        bool may_be_any = i >= 2 && i <= 4; // the part, the layout, and the precision
        other.params[i] = may_be_any ? 7 : other.params[i] + 1000;
        ck_assert_int_eq(load(&other, &p), JOT_ERR_IO);
    }
}
END_TEST

// What the product of matrices is slower than, as far as the library is there.
START_TEST(takes_what_it_is_better_for)
{
    struct conv_call c = {JOT_F32,
                          CONV_Y,
                          CONV_FILTERS_FIRST,
                          1,
                          2,
                          1,
                          {{1, 1}, {1, 1}, {1, 1}},
                          {{4, 32, 32, 16}, {32, 3, 3, 16}, {4, 32, 32, 32}}};
    int64_t params[CONV_PARAMS_MOST];
    use_fake(_i == 5 ? "FAKE_CUDA_NO_CONV" : NULL, "3000");
    if (_i == 1)
        c.precision = 0;
    if (_i == 2)
        c.part = CONV_X;
    if (_i == 3)
        c.dtype = JOT_BF16;
    if (_i == 4) // 2.4 GB of windows
        c.precision = 0, c.dims[CONV_X][0] = c.dims[CONV_Y][0] = 4096;
    uint32_t count = conv_call_write(&c, params);
    ck_assert_int_eq(rt_cuda_type.takes_convolution(jot_cuda(0), params, count),
                     _i == 0 || _i == 3 || _i == 4);
}
END_TEST

// ---- Sorting

#define COUNT 100
static const struct routine_plan sort = {
    "sort", 5, 1, 2, {JOT_F32, 1, COUNT, 1, JOT_F32}, {4 * COUNT, 4 * COUNT}};

START_TEST(sorts_in_a_graph)
{
    use_fake(NULL, NULL);
    float x[COUNT], y[COUNT];
    struct rt_program *p;
    for (int i = 0; i < COUNT; i++)
        x[i] = i % 7 ? (float)(i * 37 % COUNT - 50) : i % 2 ? -0.0f : i == 14 ? NAN : 0.0f;
    OK(load(&sort, &p));
    OK(run_times(p, &sort, 3, (const void *[]){x}, (void *[]){y}));
    ck_assert_int_eq(fake_count("fake_cuda_graph_launches"), 2);
    ck_assert_int_ge(fake_count("fake_cuda_launches"), 18); // six kernels each time
    for (int i = 1; i < COUNT - 1; i++)
        ck_assert(y[i - 1] <= y[i]);
    ck_assert(isnan(y[COUNT - 1]));
    int zero = 0; // zeros keep their signs and their order
    while (y[zero] != 0)
        zero++;
    for (int i = 0; i < COUNT; i++)
        if (x[i] == 0)
            ck_assert_int_eq(signbit(x[i]) != 0, signbit(y[zero++]) != 0);
    rt_program_release(p);
}
END_TEST

// Of keys of which seven bits are known to say all, beside the number of the row, in three passes less.
START_TEST(sorts_by_the_bits_of_keys)
{
    int rows = _i ? 4 : 1, length = COUNT / rows;
    use_fake(NULL, NULL);
    int32_t x[COUNT], at[COUNT], y[COUNT], order[COUNT], starts[2];
    for (int i = 0; i < COUNT; i++) {
        x[i] = i * 37 % 90;
        at[i] = i;
    }
    for (int bits = 0; bits <= 7; bits += 7) {
        struct routine_plan plan = {"sort",
                                    bits ? 7 : 6,
                                    2,
                                    4,
                                    {JOT_I32, rows, length, 1, JOT_I32, JOT_I32, bits},
                                    {4 * COUNT, 4 * COUNT, 4 * COUNT, 4 * COUNT}};
        struct rt_program *p;
        OK(load(&plan, &p));
        int before = fake_count("fake_cuda_launches");
        OK(run_times(p, &plan, 1, (const void *[]){x, at}, (void *[]){y, order}));
        starts[bits > 0] = fake_count("fake_cuda_launches") - before;
        for (int i = 0; i < COUNT; i++) {
            ck_assert_int_eq(y[i], x[order[i]]);
            ck_assert_int_eq(order[i] / length, i / length);
            ck_assert(i % length == 0 || y[i - 1] < y[i] ||
                      (y[i - 1] == y[i] && order[i - 1] < order[i]));
        }
        rt_program_release(p);
    }
    ck_assert_int_eq(starts[0] - starts[1], 3);
}
END_TEST

static void add_tests(TCase *cases)
{
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, transforms_by_the_library);
    tcase_add_test(cases, is_part_of_a_graph);
    tcase_add_test(cases, without_a_plan_it_runs_on_the_host);
    tcase_add_test(cases, a_plan_may_be_out_of_memory);
    tcase_add_test(cases, where_it_fails_it_runs_on_the_host);
    tcase_add_test(cases, without_the_library_it_runs_on_the_host);
    tcase_add_loop_test(cases, convolves_by_the_library, 0,
                        sizeof conv_cases / sizeof *conv_cases);
    tcase_add_test(cases, without_a_way_it_convolves_on_the_host);
    tcase_add_test(cases, where_the_library_fails_it_convolves_on_the_host);
    tcase_add_test(cases, damaged_convolutions_are_refused);
    tcase_add_loop_test(cases, takes_what_it_is_better_for, 0, 6);
    tcase_add_test(cases, sorts_in_a_graph);
    tcase_add_loop_test(cases, sorts_by_the_bits_of_keys, 0, 2);
}

int main(void) { return suite_run("runtime/cuda_routines", add_tests); }
