// SPDX-License-Identifier: Apache-2.0
// Routines of a GPU over the libraries of fake_cuda: by which form they run, in graphs, and what becomes
// of faults.  That their results are right is what the tests of the emulated suite compare.
#include "base/arena.h"
#include "base/conv.h"
#include "base/fft.h"
#include "base/memory.h"
#include "cuda_support.h"
#include "runtime/cuda/device.h"

#include <complex.h>
#include <math.h>
#include <unistd.h>

#define MOST 4

// A routine between copies of what it reads and of its results.
struct routine_plan {
    const char *name;
    int n_params, n_reads, n_operands;
    int64_t params[CONV_PARAMS_MOST];
    uint64_t bytes[MOST];
};

static jot_status load(const struct routine_plan *r, struct rt_program **out)
{
    struct rt_argument in[MOST], results[MOST];
    struct rt_buffer buffers[2 * MOST];
    struct rt_step steps[MOST + 1];
    uint32_t operands[3 * MOST], n = (uint32_t)r->n_operands, count = 0, reads = 0, writes = 0;
    uint64_t arena_bytes = 0;
    // Buffers i are in the arena, n + i the arguments.
    for (uint32_t i = 0; i < n; i++) {
        bool is_read = i < (uint32_t)r->n_reads;
        struct rt_argument *a = is_read ? &in[reads] : &results[writes];
        *a = (struct rt_argument){.bytes = r->bytes[i], .donated = -1};
        buffers[i] = (struct rt_buffer){
            .place = RT_PLACE_ARENA, .offset = arena_bytes, .bytes = r->bytes[i]};
        buffers[n + i] = (struct rt_buffer){.place = is_read ? RT_PLACE_INPUT : RT_PLACE_OUTPUT,
                                            .index = is_read ? reads++ : writes++,
                                            .bytes = r->bytes[i]};
        arena_bytes += (r->bytes[i] + 63) & ~UINT64_C(63);
    }
    uint32_t n_steps = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (i == reads) {
            steps[n_steps++] = (struct rt_step){.kind = RT_STEP_LIBRARY,
                                                .index = reads,
                                                .operand_first = count,
                                                .operand_count = n,
                                                .param_count = (uint32_t)r->n_params};
            for (uint32_t k = 0; k < n; k++)
                operands[count++] = k;
        }
        steps[n_steps++] =
            (struct rt_step){.kind = RT_STEP_COPY, .operand_first = count, .operand_count = 2};
        operands[count++] = i < reads ? i : n + i;
        operands[count++] = i < reads ? n + i : i;
    }
    struct rt_plan plan = {.input_count = reads,
                           .output_count = writes,
                           .buffer_count = 2 * n,
                           .operand_count = count,
                           .step_count = n_steps,
                           .param_count = (uint32_t)r->n_params,
                           .text_bytes = (uint32_t)strlen(r->name) + 1,
                           .arena_bytes = arena_bytes,
                           .inputs = in,
                           .outputs = results,
                           .buffers = buffers,
                           .operands = operands,
                           .steps = steps,
                           .params = r->params,
                           .text = r->name};
    struct arena *arena = arena_create();
    const void *bytes;
    void *images;
    size_t size, images_size;
    rt_plan_write(&plan, arena, &bytes, &size);
    jot_status status = rt_cuda_type.assemble(jot_cuda(0), "", 0, &images, &images_size);
    if (status == JOT_OK) {
        status = rt_program_load(jot_cuda(0), images, images_size, bytes, size, NULL, 0, out);
        memory_release(images);
    }
    arena_release(arena);
    return status;
}

// Runs it so often on memory of the GPU; out has the results of the last time.
static jot_status run_times(struct rt_program *p, const struct routine_plan *r, int times,
                            const void *const *in, void *const *out)
{
    void *at[MOST] = {NULL};
    const void *inputs[MOST] = {NULL};
    void *outputs[MOST] = {NULL};
    jot_status status = JOT_OK;
    for (int i = 0; i < r->n_operands; i++) {
        OK(rt_cuda_type.allocate(jot_cuda(0), r->bytes[i], "a test", &at[i]));
        if (i < r->n_reads)
            OK(rt_cuda_type.upload(jot_cuda(0), at[i], in[i], r->bytes[i]));
        if (i < r->n_reads)
            inputs[i] = at[i];
        else
            outputs[i - r->n_reads] = at[i];
    }
    for (int i = 0; i < times && status == JOT_OK; i++)
        status = rt_program_run(p, inputs, outputs);
    for (int i = r->n_reads; i < r->n_operands && status == JOT_OK; i++)
        OK(rt_cuda_type.download(jot_cuda(0), out[i - r->n_reads], at[i], r->bytes[i]));
    for (int i = 0; i < r->n_operands; i++)
        rt_cuda_type.release(jot_cuda(0), at[i], r->bytes[i]);
    return status;
}

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

// A directory with all of the fake but a library, in the place of which is one that lacks everything.
static void use_fake_without(const char *library)
{
    static const char *const all[] = {"libcuda.so.1",    "libnvJitLink.so.13", "libnvrtc.so.13",
                                      "libcublas.so.13", "libcusolver.so.12",  "libcufft.so.12",
                                      "libcudnn.so.9"};
    static char directory[] = "/tmp/jot-routines-XXXXXX";
    char from[4096], to[4096];
    ck_assert_ptr_nonnull(mkdtemp(directory));
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        bool is_lacking = !strcmp(all[i], library);
        snprintf(from, sizeof from, "%s/%s",
                 getenv(is_lacking ? "JOT_TEST_LACKING_CUDA" : "JOT_TEST_FAKE_CUDA"), all[i]);
        snprintf(to, sizeof to, "%s/%s", directory, all[i]);
        ck_assert_int_eq(symlink(from, to), 0);
    }
    setenv("JOT_CUDA_LIBRARIES", directory, 1);
}

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
            int64_t at_x[5] = {at_y[0]}, place = 0;
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
                place = place * dx[axis] + at_x[axis];
            if (is_inside)
                sum += (double)x[place] * (double)w[k];
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

// ---- Matrices

#define SIDE 3
static const struct routine_plan eigh = {
    "eigh", 5, 1, 3, {JOT_F64, 1, SIDE, SIDE, 0}, {SIDE * SIDE * 8, SIDE * 8, SIDE *SIDE * 8}};
static const struct routine_plan cholesky = {
    "cholesky", 5, 1, 2, {JOT_F64, 1, SIDE, SIDE, 0}, {SIDE * SIDE * 8, SIDE *SIDE * 8}};

static const double symmetric[SIDE * SIDE] = {4, 1, 0.5, 1, 3, -1, 0.5, -1, 5};

static int factorings(void)
{
    return fake_count_of("libcusolver.so.12", "fake_cuda_factorings");
}

static void decompose(const double *a, int times, double w[SIDE], double v[SIDE * SIDE])
{
    struct rt_program *p;
    OK(load(&eigh, &p));
    OK(run_times(p, &eigh, times, (const void *[]){a}, (void *[]){w, v}));
    rt_program_release(p);
}

static void expect_eigenvector(const double *a, const double *w, const double *v, int k)
{
    for (int i = 0; i < SIDE; i++) {
        double sum = 0;
        for (int j = 0; j < SIDE; j++)
            sum += a[i * SIDE + j] * v[j * SIDE + k];
        ck_assert_double_lt(fabs(sum - w[k] * v[i * SIDE + k]), 1e-12);
    }
}

static void expect_eigenvectors(int times)
{
    double w[SIDE], v[SIDE * SIDE];
    decompose(symmetric, times, w, v);
    for (int k = 0; k < SIDE; k++)
        expect_eigenvector(symmetric, w, v, k);
}

// The host has a part in it: graphs have what is before and behind.
START_TEST(splits_a_graph)
{
    use_fake(NULL, NULL);
    expect_eigenvectors(3);
    ck_assert_int_eq(factorings(), 3);
    ck_assert_int_eq(fake_count("fake_cuda_graph_nodes"), 2); // the copies of the results
    expect_no_blocks();
}
END_TEST

START_TEST(no_eigenvalues_are_nan)
{
    use_fake("FAKE_CUDA_NO_CONVERGENCE", "1");
    double w[SIDE], v[SIDE * SIDE];
    decompose(symmetric, 1, w, v);
    for (int i = 0; i < SIDE * SIDE; i++)
        ck_assert(isnan(v[i]) && isnan(w[i % SIDE]));
}
END_TEST

START_TEST(a_fault_of_the_solver_leaves_it_to_the_host)
{
    use_fake("FAKE_CUDA_SOLVER_FAULT", "6");
    expect_eigenvectors(2);
    ck_assert_int_eq(factorings(), 0);
    expect_no_blocks();
}
END_TEST

START_TEST(out_of_memory_is_a_status)
{
    use_fake("FAKE_CUDA_SOLVER_FAULT", "2");
    double l[SIDE * SIDE];
    struct rt_program *p;
    OK(load(&cholesky, &p));
    ck_assert_int_eq(run_times(p, &cholesky, 1, (const void *[]){symmetric}, (void *[]){l}),
                     JOT_ERR_MEMORY);
    ck_assert_str_eq(jot_error_message(), "cuda:0: cholesky: cuSOLVER fails with 2");
    rt_program_release(p);
    expect_no_blocks();
}
END_TEST

START_TEST(factors_in_a_graph)
{
    use_fake(NULL, NULL);
    double l[SIDE * SIDE];
    struct rt_program *p;
    OK(load(&cholesky, &p));
    OK(run_times(p, &cholesky, 3, (const void *[]){symmetric}, (void *[]){l}));
    ck_assert_int_eq(fake_count("fake_cuda_graph_launches"), 2);
    for (int i = 0; i < SIDE; i++)
        for (int k = 0; k < SIDE; k++) {
            double sum = 0;
            for (int j = 0; j < SIDE; j++)
                sum += l[i * SIDE + j] * l[k * SIDE + j];
            ck_assert_double_lt(fabs(sum - symmetric[i * SIDE + k]), 1e-13);
            ck_assert(k <= i || l[i * SIDE + k] == 0);
        }
    rt_program_release(p);
}
END_TEST

// Two at a time, for what the call wants to work in.
START_TEST(many_small_matrices_are_few_calls)
{
    enum { COUNT_OF = 5 };
    struct routine_plan plan = {
        "eigh",
        5,
        1,
        3,
        {JOT_F64, COUNT_OF, SIDE, SIDE, 0},
        {COUNT_OF * sizeof symmetric, COUNT_OF * SIDE * 8, COUNT_OF * sizeof symmetric}};
    double a[COUNT_OF][SIDE * SIDE], w[COUNT_OF][SIDE], v[COUNT_OF][SIDE * SIDE];
    struct rt_program *p;
    use_fake(NULL, NULL);
    for (int i = 0; i < COUNT_OF; i++)
        for (int k = 0; k < SIDE * SIDE; k++)
            a[i][k] = i == 3 ? NAN : (i + 1) * symmetric[k];
    OK(load(&plan, &p));
    OK(run_times(p, &plan, 1, (const void *[]){a}, (void *[]){w, v}));
    ck_assert_int_eq(factorings(), 3);
    for (int i = 0; i < COUNT_OF; i++)
        for (int k = 0; k < SIDE; k++)
            if (i == 3)
                ck_assert(isnan(w[i][k]) && isnan(v[i][k]));
            else
                expect_eigenvector(a[i], w[i], v[i], k);
    rt_program_release(p);
    expect_no_blocks();
}
END_TEST

START_TEST(without_a_compiler_of_kernels_the_host_factors)
{
    use_fake_without("libnvrtc.so.13");
    expect_eigenvectors(2);
    ck_assert_int_eq(factorings(), 0);
}
END_TEST

// ---- Decompositions of matrices that are not symmetric

#define LONG 7
#define SHORT 4

// Of two matrices of so many independent columns; svd thin or with square factors.
struct matrix_case {
    jot_dtype dtype;
    int m, n, mode, rank;
    const char *fault; // of the library
    int factorings;    // 0: the host's
};

static double matrix_element(const struct matrix_case *c, int matrix, int i, int j)
{
    double sum = 0;
    for (int k = 0; k < c->rank; k++)
        sum += cos(i * (k + 1) + k + matrix) * sin(j * (k + 2) + 2 * k) / (1 + 5 * k);
    return c->dtype == JOT_F32 ? (double)(float)sum : sum;
}

static double number_at(const struct matrix_case *c, const void *x, int i)
{
    return c->dtype == JOT_F32 ? (double)((const float *)x)[i] : ((const double *)x)[i];
}

// The rows of x, or its columns, are orthonormal.
static void expect_orthonormal(const struct matrix_case *c, const void *x, int first, int count,
                               int length, int step, int next)
{
    double eps = c->dtype == JOT_F32 ? 1e-6 : 1e-14;
    for (int i = 0; i < count; i++)
        for (int j = 0; j <= i; j++) {
            double sum = 0;
            for (int k = 0; k < length; k++)
                sum += number_at(c, x, first + i * next + k * step) *
                       number_at(c, x, first + j * next + k * step);
            ck_assert_double_lt(fabs(sum - (i == j)), eps);
        }
}

static void expect_factors(const struct matrix_case *c, int matrix, const void *s,
                           const void *u, const void *vh)
{
    double eps = c->dtype == JOT_F32 ? 1e-6 : 1e-14;
    int k = c->m < c->n ? c->m : c->n, columns = c->mode == 2 ? c->m : k,
        rows = c->mode == 2 ? c->n : k;
    int first_u = matrix * c->m * columns, first_v = matrix * rows * c->n, first = matrix * k;
    expect_orthonormal(c, u, first_u, columns, c->m, columns, 1);
    expect_orthonormal(c, vh, first_v, rows, c->n, 1, c->n);
    for (int i = 1; i < k; i++)
        ck_assert(number_at(c, s, first + i) <= number_at(c, s, first + i - 1));
    for (int i = c->rank; i < k; i++)
        ck_assert_double_lt(number_at(c, s, first + i), 4 * eps);
    for (int i = 0; i < c->m; i++)
        for (int j = 0; j < c->n; j++) {
            double sum = 0;
            for (int l = 0; l < k; l++)
                sum += number_at(c, u, first_u + i * columns + l) * number_at(c, s, first + l) *
                       number_at(c, vh, first_v + l * c->n + j);
            ck_assert_double_lt(fabs(sum - matrix_element(c, matrix, i, j)), 4 * eps);
        }
}

// So many, as numbers of the case's type.
static void put_matrices(const struct matrix_case *c, int count, void *a)
{
    for (int i = 0; i < count * c->m * c->n; i++) {
        double x = matrix_element(c, i / (c->m * c->n), i / c->n % c->m, i % c->n);
        if (c->dtype == JOT_F32)
            ((float *)a)[i] = (float)x;
        else
            ((double *)a)[i] = x;
    }
}

static const struct matrix_case qr_cases[] = {
    {JOT_F32, LONG, SHORT, 0, SHORT, NULL, 2}, // a Cholesky factor for each matrix
    {JOT_F32, SHORT, SHORT, 0, SHORT, NULL, 2},
    {JOT_F32, LONG, SHORT, 0, 2, NULL, 5}, // there is none: reflectors
    {JOT_F32, SHORT, SHORT, 0, 0, NULL, 5},
    {JOT_F32, SHORT, LONG, 0, SHORT, NULL, 4}, // for these without trying
    {JOT_F64, LONG, SHORT, 0, SHORT, NULL, 4},
    {JOT_F32, LONG, SHORT, 0, SHORT, "FAKE_CUDA_SOLVER_FAULT", 0}, // the host
};

START_TEST(finds_orthonormal_columns)
{
    const struct matrix_case *c = &qr_cases[_i];
    int k = c->m < c->n ? c->m : c->n, part = c->dtype == JOT_F32 ? 4 : 8;
    double a[2 * LONG * LONG], q[2 * LONG * LONG], r[2 * LONG * LONG];
    double eps = c->dtype == JOT_F32 ? 1e-6 : 1e-14;
    struct routine_plan plan = {"qr",
                                5,
                                1,
                                3,
                                {c->dtype, 2, c->m, c->n, 0},
                                {(uint64_t)(2 * c->m * c->n * part),
                                 (uint64_t)(2 * c->m * k * part),
                                 (uint64_t)(2 * k * c->n * part)}};
    struct rt_program *p;
    use_fake(c->fault, "1");
    put_matrices(c, 2, a);
    OK(load(&plan, &p));
    OK(run_times(p, &plan, 1, (const void *[]){a}, (void *[]){q, r}));
    ck_assert_int_eq(factorings(), c->factorings);
    for (int matrix = 0; matrix < 2; matrix++) {
        int first_q = matrix * c->m * k, first_r = matrix * k * c->n;
        expect_orthonormal(c, q, first_q, k, c->m, k, 1);
        for (int i = 0; i < c->m; i++)
            for (int j = 0; j < c->n; j++) {
                double sum = 0;
                for (int l = 0; l < k; l++)
                    sum += number_at(c, q, first_q + i * k + l) *
                           number_at(c, r, first_r + l * c->n + j);
                ck_assert_double_lt(fabs(sum - matrix_element(c, matrix, i, j)), 4 * eps);
                ck_assert(j >= i || i >= k || number_at(c, r, first_r + i * c->n + j) == 0);
            }
    }
    rt_program_release(p);
    expect_no_blocks();
}
END_TEST

static const struct matrix_case svd_cases[] = {
    {JOT_F32, LONG, SHORT, 1, SHORT, NULL, 2},  // eigenvalues, for each matrix
    {JOT_F32, SHORT, LONG, 1, SHORT, NULL, 2},  // the same of the transpose
    {JOT_F32, SHORT, SHORT, 2, SHORT, NULL, 2}, // square
    {JOT_F32, LONG, SHORT, 1, 2, NULL, 6},      // reflectors where singular values are small
    {JOT_F32, SHORT, LONG, 1, 2, NULL, 6},
    {JOT_F32, SHORT, SHORT, 1, 0, NULL, 6},
    {JOT_F32, LONG, SHORT, 2, SHORT, NULL, 2}, // gesvd for square factors
    {JOT_F64, LONG, SHORT, 1, SHORT, NULL, 2}, // and double precision
    {JOT_F64, SHORT, LONG, 1, 3, NULL, 2},
    {JOT_F64, SHORT, LONG, 2, SHORT, NULL, 2},
    {JOT_F32, LONG, SHORT, 1, SHORT, "FAKE_CUDA_NO_CONVERGENCE", 1}, // and then the host
    {JOT_F32, SHORT, LONG, 1, SHORT, "FAKE_CUDA_WRONG_VECTORS", 1},
    {JOT_F32, SHORT, LONG, 1, SHORT, "FAKE_CUDA_SOLVER_FAULT", 0},
};

static const struct matrix_case first_cases[] = {
    {JOT_F32, LONG, SHORT, 3, 2, NULL, 2}, // gesvdr, for each matrix
    {JOT_F32, SHORT, LONG, 3, 2, NULL, 2},
    {JOT_F64, LONG, SHORT, 3, 2, NULL, 2},
    {JOT_F64, SHORT, LONG, 3, 2, NULL, 2},
    {JOT_F64, SHORT, SHORT, 3, 1, NULL, 2},
    {JOT_F64, LONG, SHORT, 3, SHORT, NULL, 2},                     // what is left out is not 0
    {JOT_F32, SHORT, LONG, 3, SHORT, "FAKE_CUDA_OTHER_VALUES", 3}, // and then all of each
    {JOT_F64, LONG, SHORT, 3, SHORT, "FAKE_CUDA_OTHER_VALUES", 3},
    {JOT_F64, SHORT, LONG, 3, SHORT, "FAKE_CUDA_WRONG_VECTORS", 3},
    {JOT_F64, SHORT, LONG, 3, SHORT, "FAKE_CUDA_SOLVER_FAULT", 0},
};

#define FIRST 2

// The first two of the values, and what they make of two matrices.
START_TEST(finds_the_first_singular_values)
{
    const struct matrix_case *c = &first_cases[_i];
    int k = SHORT, part = c->dtype == JOT_F32 ? 4 : 8;
    double eps = c->dtype == JOT_F32 ? 4e-6 : 1e-13;
    double a[2 * LONG * LONG], s[2 * LONG], u[2 * LONG * LONG], vh[2 * LONG * LONG];
    double s_all[2 * LONG], u_all[2 * LONG * LONG], vh_all[2 * LONG * LONG];
    struct routine_plan plan = {"svd", 5, 1, 4, {c->dtype, 2, c->m, c->n, 1}, {0}};
    struct rt_program *p;
    use_fake(NULL, NULL);
    put_matrices(c, 2, a);
    for (int pass = 0; pass < 2; pass++) {
        int count = pass ? FIRST : k;
        plan.params[4] = pass ? 3 : 1;
        plan.bytes[0] = (uint64_t)(2 * c->m * c->n * part);
        plan.bytes[1] = (uint64_t)(2 * count * part);
        plan.bytes[2] = (uint64_t)(2 * c->m * count * part);
        plan.bytes[3] = (uint64_t)(2 * count * c->n * part);
        if (pass)
            use_fake(c->fault, "1");
        int before = factorings();
        OK(load(&plan, &p));
        OK(run_times(p, &plan, 1, (const void *[]){a},
                     pass ? (void *[]){s, u, vh} : (void *[]){s_all, u_all, vh_all}));
        if (pass)
            ck_assert_int_eq(factorings() - before, c->factorings);
        rt_program_release(p);
        expect_no_blocks();
    }
    for (int matrix = 0; matrix < 2; matrix++) {
        for (int i = 0; i < FIRST; i++)
            ck_assert_double_lt(
                fabs(number_at(c, s, matrix * FIRST + i) - number_at(c, s_all, matrix * k + i)),
                eps);
        expect_orthonormal(c, u, matrix * c->m * FIRST, FIRST, c->m, FIRST, 1);
        expect_orthonormal(c, vh, matrix * FIRST * c->n, FIRST, c->n, 1, c->n);
        for (int i = 0; i < c->m; i++)
            for (int j = 0; j < c->n; j++) {
                double difference = 0;
                for (int l = 0; l < FIRST; l++) {
                    difference += number_at(c, u, (matrix * c->m + i) * FIRST + l) *
                                  number_at(c, s, matrix * FIRST + l) *
                                  number_at(c, vh, (matrix * FIRST + l) * c->n + j);
                    difference -= number_at(c, u_all, (matrix * c->m + i) * k + l) *
                                  number_at(c, s_all, matrix * k + l) *
                                  number_at(c, vh_all, (matrix * k + l) * c->n + j);
                }
                ck_assert_double_lt(fabs(difference), eps);
            }
    }
}
END_TEST

// So many matrices.
static void expect_singular_values(const struct matrix_case *c, int count)
{
    int k = c->m < c->n ? c->m : c->n, part = c->dtype == JOT_F32 ? 4 : 8;
    int columns = c->mode == 2 ? c->m : k, rows = c->mode == 2 ? c->n : k;
    struct routine_plan plan = {
        "svd",
        5,
        1,
        4,
        {c->dtype, count, c->m, c->n, c->mode},
        {(uint64_t)(count * c->m * c->n * part), (uint64_t)(count * k * part),
         (uint64_t)(count * c->m * columns * part), (uint64_t)(count * rows * c->n * part)}};
    void *a = malloc(plan.bytes[0]), *s = malloc(plan.bytes[1]), *u = malloc(plan.bytes[2]),
         *vh = malloc(plan.bytes[3]);
    struct rt_program *p;
    use_fake(c->fault, "1");
    put_matrices(c, count, a);
    OK(load(&plan, &p));
    OK(run_times(p, &plan, 1, (const void *[]){a}, (void *[]){s, u, vh}));
    ck_assert_int_eq(factorings(), c->factorings);
    for (int i = 0; i < count; i++)
        expect_factors(c, i, s, u, vh);
    rt_program_release(p);
    expect_no_blocks();
    free(a);
    free(s);
    free(u);
    free(vh);
}

START_TEST(finds_singular_values) { expect_singular_values(&svd_cases[_i], 2); }
END_TEST

static const struct matrix_case small_cases[] = {
    {JOT_F32, LONG, SHORT, 1, SHORT, NULL, 0}, {JOT_F32, SHORT, LONG, 1, 2, NULL, 0},
    {JOT_F32, SHORT, SHORT, 2, 0, NULL, 0},    {JOT_F32, 1, 1, 1, 1, NULL, 0},
    {JOT_F32, 8, 10, 1, 3, NULL, 0},           {JOT_F32, 17, 5, 1, 5, NULL, 0},
    {JOT_F32, 6, 32, 1, 2, NULL, 0},           {JOT_F64, LONG, SHORT, 1, SHORT, NULL, 0},
    {JOT_F64, SHORT, 16, 1, 3, NULL, 0},
};

// A kernel for all, without the library.
START_TEST(finds_singular_values_of_many)
{
    expect_singular_values(&small_cases[_i], 21);
    ck_assert_int_eq(fake_count("fake_cuda_launches"), 1);
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

int main(void)
{
    Suite *suite = suite_create("runtime/cuda_routines");
    TCase *cases = tcase_create("all");
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
    tcase_add_test(cases, splits_a_graph);
    tcase_add_test(cases, no_eigenvalues_are_nan);
    tcase_add_test(cases, a_fault_of_the_solver_leaves_it_to_the_host);
    tcase_add_test(cases, out_of_memory_is_a_status);
    tcase_add_test(cases, factors_in_a_graph);
    tcase_add_test(cases, many_small_matrices_are_few_calls);
    tcase_add_test(cases, without_a_compiler_of_kernels_the_host_factors);
    tcase_add_loop_test(cases, finds_orthonormal_columns, 0,
                        sizeof qr_cases / sizeof *qr_cases);
    tcase_add_loop_test(cases, finds_the_first_singular_values, 0,
                        sizeof first_cases / sizeof *first_cases);
    tcase_add_loop_test(cases, finds_singular_values, 0, sizeof svd_cases / sizeof *svd_cases);
    tcase_add_loop_test(cases, finds_singular_values_of_many, 0,
                        sizeof small_cases / sizeof *small_cases);
    tcase_add_test(cases, sorts_in_a_graph);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
