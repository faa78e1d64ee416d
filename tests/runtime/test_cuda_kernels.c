// SPDX-License-Identifier: Apache-2.0
// Matrix products and kernels in CUDA C over the libraries of fake_cuda.
#include "base/arena.h"
#include "base/memory.h"
#include "base/status.h"
#include "cuda_support.h"
#include "runtime/cuda/device.h"
#include "runtime/raw_kernel.h"
#include "support/suite.h"

// ---- matrix products ----

static const struct rt_gemm products[] = {
    {.m = 3, .n = 4, .k = 5, .lda = 5, .ldb = 4, .ldc = 4, .alpha = 1},
    {.m = 3, .n = 4, .k = 5, .lda = 5, .ldb = 7, .ldc = 6, .alpha = 2, .transpose_b = 1},
    {.m = 3,
     .n = 4,
     .k = 5,
     .lda = 3,
     .ldb = 4,
     .ldc = 4,
     .alpha = 1,
     .beta = 1,
     .transpose_a = 1},
    {.m = 2,
     .n = 3,
     .k = 2,
     .lda = 2,
     .ldb = 2,
     .ldc = 3,
     .alpha = 1,
     .transpose_a = 1,
     .transpose_b = 1},
    {.m = 2, .n = 2, .k = 0, .lda = 0, .ldb = 2, .ldc = 2, .alpha = 1},
};

static void make_product(struct rt_gemm *g)
{
    g->dtype = g->operands = JOT_F64;
    int64_t batch[] = {2, 1, 3, 2};
    int64_t step = 1;
    for (int axis = RT_GEMM_BATCH_RANK - 1; axis >= 0; axis--) {
        g->batch[axis] = batch[axis];
        g->stride_a[axis] = axis == 2 ? 0 : step * 2; // one axis repeats a matrix
        g->stride_b[axis] = step;
        g->stride_c[axis] = step * 40;
        step *= batch[axis];
    }
}

// c, the third array, of a and b, and of the bias and the addend behind it; offset: of a, in bytes.
static jot_status product_on(jot_device *device, const struct rt_gemm *g, uint64_t offset,
                             jot_array *const *arrays)
{
    static const uint32_t operands[] = {0, 1, 2, 3, 4};
    bool has_bias = g->flags & RT_GEMM_BIAS, has_addend = g->flags & RT_GEMM_ADDEND;
    struct rt_argument in[4], out = {.bytes = 8000, .donated = -1};
    struct rt_buffer buffers[5];
    for (uint32_t i = 0; i < 4; i++)
        in[i] = out;
    for (uint32_t i = 0; i < 5; i++)
        buffers[i] = (struct rt_buffer){.memory = i == 2 ? RT_MEMORY_OUTPUT : RT_MEMORY_INPUT,
                                        .index = i < 2    ? i
                                                 : i == 2 ? 0
                                                          : i - 1,
                                        .offset = i == 0 ? offset : 0,
                                        .bytes = i == 0 ? 8000 - offset : 8000};
    struct rt_step step = {
        .kind = RT_STEP_GEMM, .operand_count = 3u + has_bias + has_addend, .grain = 1};
    struct rt_plan plan = {.input_count = 4,
                           .output_count = 1,
                           .buffer_count = 5,
                           .operand_count = 5,
                           .step_count = 1,
                           .gemm_count = 1,
                           .inputs = in,
                           .outputs = &out,
                           .buffers = buffers,
                           .operands = operands,
                           .steps = &step,
                           .gemms = g};
    struct arena *arena = arena_create();
    struct rt_program *p;
    const void *bytes;
    size_t size;
    rt_plan_write(&plan, arena, &bytes, &size);
    jot_status status = rt_program_load(device, NULL, 0, bytes, size, NULL, 0, &p);
    arena_release(arena);
    if (status != JOT_OK)
        return status;
    const void *inputs[] = {arrays[0]->data, arrays[1]->data, arrays[3]->data, arrays[4]->data};
    OK(rt_program_run(p, inputs, (void *[]){arrays[2]->data}));
    rt_program_release(p);
    return JOT_OK;
}

static jot_array *numbers(int seed)
{
    jot_array *a = jot_array_full(JOT_F64, 0, 1000);
    for (int i = 0; i < 1000; i++)
        ((double *)a->data)[i] = (double)((i * 37 + seed * 101) % 64) - 30;
    return a;
}

static void numbers_on(jot_device *device, jot_array **out)
{
    for (int k = 0; k < 5; k++) {
        jot_array *a = numbers(k);
        out[k] = jot_array_to(a, device);
        jot_array_release(a);
    }
}

START_TEST(multiplies_as_the_host_does)
{
    use_fake(NULL, NULL);
    for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
        struct rt_gemm g = products[i];
        make_product(&g);
        jot_array *here[5], *there[5];
        numbers_on(jot_host(), here);
        numbers_on(jot_cuda(0), there);
        OK(product_on(jot_host(), &g, 0, here));
        OK(product_on(jot_cuda(0), &g, 0, there));
        ck_assert_msg(!memcmp(jot_array_data(there[2]), here[2]->data, 8000), "product %zu", i);
        jot_arrays_release(5, here);
        jot_arrays_release(5, there);
    }
    expect_no_blocks();
}
END_TEST

static void expect_epilogue(uint32_t flags, uint32_t activation, double alpha)
{
    enum { M = 5, N = 6, K = 7 };
    struct rt_gemm g = {.dtype = JOT_F64,
                        .operands = JOT_F64,
                        .flags = flags,
                        .activation = activation,
                        .m = M,
                        .n = N,
                        .k = K,
                        .lda = K,
                        .ldb = N,
                        .ldc = N,
                        .alpha = alpha,
                        .beta = flags & RT_GEMM_ADDEND ? 1 : 0,
                        .batch = {1, 1, 1, 1}};
    jot_array *here[5], *there[5];
    numbers_on(jot_host(), here);
    numbers_on(jot_cuda(0), there);
    const double *a = here[0]->data, *b = here[1]->data;
    const double *bias = flags & RT_GEMM_BIAS ? here[3]->data : NULL;
    const double *addend = flags & RT_GEMM_ADDEND ? here[bias ? 4 : 3]->data : NULL;
    OK(product_on(jot_cuda(0), &g, 0, there));
    const double *c = jot_array_data(there[2]);
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            double sum = 0;
            for (int l = 0; l < K; l++)
                sum += a[i * K + l] * b[l * N + j];
            sum = alpha * sum + (addend ? addend[i * N + j] : 0) + (bias ? bias[j] : 0);
            sum = activation == RT_RELU && sum <= 0 ? 0 : sum;
            ck_assert_double_eq(c[i * N + j], sum);
        }
    expect(product_on(jot_host(), &g, 0, here), flags || activation ? JOT_ERR_IO : JOT_OK,
           NULL);
    jot_arrays_release(5, here);
    jot_arrays_release(5, there);
    expect_no_blocks();
}

START_TEST(does_more_than_multiply)
{
    use_fake(NULL, NULL);
    expect_epilogue(0, RT_LINEAR, 1);
    expect_epilogue(RT_GEMM_BIAS, RT_LINEAR, 1);
    expect_epilogue(RT_GEMM_BIAS, RT_RELU, 1);
    expect_epilogue(0, RT_RELU, 2);
    expect_epilogue(RT_GEMM_ADDEND, RT_LINEAR, -0.5);
    expect_epilogue(RT_GEMM_ADDEND | RT_GEMM_BIAS, RT_RELU, 2);
}
END_TEST

START_TEST(says_what_products_may_be)
{
    static const int compute[] = {CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F_FAST_TF32,
                                  CUBLAS_COMPUTE_32F_FAST_16BF, CUBLAS_COMPUTE_32F};
    static const char library[] = "libcublasLt.so.13";
    use_fake(NULL, NULL);
    struct rt_gemm g = {.dtype = JOT_F32,
                        .operands = JOT_F32,
                        .m = 2,
                        .n = 2,
                        .k = 20,
                        .lda = 20,
                        .ldb = 2,
                        .ldc = 2,
                        .alpha = 1,
                        .batch = {1, 1, 1, 1}};
    jot_array *there[5];
    numbers_on(jot_cuda(0), there);
    for (g.precision = 0; g.precision < RT_PRECISION_COUNT; g.precision++) {
        OK(product_on(jot_cuda(0), &g, 0, there));
        ck_assert_int_eq(fake_count_of(library, "fake_cuda_compute"), compute[g.precision]);
        ck_assert_int_eq(fake_count_of(library, "fake_cuda_alignment"), 16);
    }
    g.precision = RT_PRECISION_TF32;
    g.k = g.lda = 2; // a short sum is one of f32
    OK(product_on(jot_cuda(0), &g, 8, there));
    ck_assert_int_eq(fake_count_of(library, "fake_cuda_compute"), CUBLAS_COMPUTE_32F);
    ck_assert_int_eq(fake_count_of(library, "fake_cuda_alignment"), 8);
    // Matrices of a batch that calls start at.
    g.batch[0] = 2;
    g.batch[3] = 3;
    g.stride_a[0] = 5;
    OK(product_on(jot_cuda(0), &g, 0, there));
    ck_assert_int_eq(fake_count_of(library, "fake_cuda_alignment"), 4);
    setenv("FAKE_CUDA_NO_ROUTINE", "77", 1);
    g.k = g.lda = 20;
    expect(product_on(jot_cuda(0), &g, 0, there), JOT_ERR_LIBRARY, "a matrix product");
    jot_arrays_release(5, there);
    expect_no_blocks();
}
END_TEST

// ---- kernels in CUDA C ----

static struct rt_raw_kernel *raw(const char *name, const char *source, const char *options)
{
    size_t n[] = {strlen(name) + 1, strlen(source) + 1, strlen(options) + 1};
    struct rt_raw_kernel *k = calloc(1, sizeof *k + n[0] + n[1] + n[2]);
    k->bytes = sizeof *k + n[0] + n[1] + n[2];
    k->grid[0] = 4;
    k->block[0] = 64;
    k->source = (uint32_t)n[0];
    k->options = (uint32_t)(n[0] + n[1]);
    memcpy(k->text, name, n[0]);
    memcpy(k->text + k->source, source, n[1]);
    memcpy(k->text + k->options, options, n[2]);
    return k;
}

static jot_status never(void *ctx, void *const *buffers, const int64_t *params)
{
    (void)ctx;
    (void)buffers;
    (void)params;
    return status_fail(JOT_ERR_INTERNAL, "called on the host");
}

// A program of the kernel alone: f32[lanes, 1000] in unless n_in is 0, and the same out.
static jot_status load_raw(const struct rt_raw_kernel *k, int n_in, int64_t lanes,
                           struct rt_program **out)
{
    uint64_t bytes = 4000 * (uint64_t)lanes;
    struct rt_argument argument = {.bytes = bytes, .donated = -1};
    struct rt_buffer buffers[] = {{.memory = RT_MEMORY_INPUT, .bytes = bytes},
                                  {.memory = RT_MEMORY_OUTPUT, .bytes = bytes}};
    uint32_t operands[] = {0, 1};
    int64_t type[] = {JOT_F32, 2, lanes, 1000};
    int64_t params[12] = {0, n_in, 1, 1};
    for (int i = 0; i <= n_in; i++)
        memcpy(params + 4 + 4 * i, type, sizeof type);
    struct rt_step step = {.kind = RT_STEP_CALLBACK,
                           .operand_first = n_in ? 0 : 1,
                           .operand_count = 1 + (uint32_t)n_in,
                           .param_count = 12};
    struct rt_plan plan = {.input_count = 1,
                           .output_count = 1,
                           .buffer_count = 2,
                           .operand_count = 2,
                           .step_count = 1,
                           .param_count = 12,
                           .inputs = &argument,
                           .outputs = &argument,
                           .buffers = buffers,
                           .operands = operands,
                           .params = params,
                           .steps = &step};
    struct rt_callback callback = {.call = never, .kernel = k};
    struct arena *arena = arena_create();
    const void *written;
    size_t size;
    rt_plan_write(&plan, arena, &written, &size);
    jot_status status = rt_program_load(jot_cuda(0), NULL, 0, written, size, &callback, 1, out);
    arena_release(arena);
    return status;
}

START_TEST(runs_kernels_of_the_user)
{
    use_fake("JOT_CACHE", "off");
    for (int64_t lanes = 1; lanes <= 3; lanes += 2) {
        struct rt_raw_kernel *k = raw("add_one", "add_one depth ", "");
        struct rt_program *p;
        int before = fake_count("fake_cuda_launches");
        OK(load_raw(k, 1, lanes, &p));
        free(k);
        jot_array *a = ramp(1000 * lanes), *x = jot_array_to(a, jot_cuda(0)),
                  *y = rt_array_create_on(jot_cuda(0), JOT_F32, 1, (int64_t[]){1000 * lanes});
        OK(run(p, x, y));
        ck_assert_int_eq(fake_count("fake_cuda_launches") - before, lanes);
        for (int i = 0; i < 1000 * lanes; i++)
            ck_assert_float_eq(((const float *)jot_array_data(y))[i], (float)i + 1);
        rt_program_release(p);
        jot_arrays_release(3, (jot_array *[]){a, x, y});
    }
    ck_assert_int_eq(fake_count("fake_cuda_modules"), 0);
    expect_no_blocks();
}
END_TEST

START_TEST(maps_kernels_by_the_grid)
{
    use_fake("JOT_CACHE", "off");
    struct rt_raw_kernel *k = raw("depth", "add_one depth ", "");
    struct rt_program *p;
    k->maps_batch = true;
    k->grid[2] = 2;
    OK(load_raw(k, 0, 5, &p));
    jot_array *y = rt_array_create_on(jot_cuda(0), JOT_I32, 1, (int64_t[]){5000});
    OK(run(p, y, y));
    ck_assert_int_eq(((const int32_t *)jot_array_data(y))[0], 10);
    ck_assert_int_eq(fake_count("fake_cuda_launches"), 1);
    rt_program_release(p);
    jot_array_release(y);
    free(k);
    expect_no_blocks();
}
END_TEST

START_TEST(says_what_is_wrong_with_a_kernel)
{
    use_fake("JOT_CACHE", "off");
    struct rt_raw_kernel *k = raw("add_one", "syntax", "-lineinfo -DN=3"),
                         *missing = raw("other", "add_one ", "");
    struct rt_program *p;
    expect(load_raw(k, 1, 1, &p), JOT_ERR_ARGUMENT,
           "kernel add_one is not compiled: -arch=sm_90;-lineinfo;-DN=3;");
    expect(load_raw(missing, 1, 1, &p), JOT_ERR_DEVICE, "finding a kernel");
    free(k);
    free(missing);
    ck_assert_int_eq(fake_count("fake_cuda_modules"), 0);
}
END_TEST

// The compiler needs no GPU.
START_TEST(compiles_cuda_c)
{
    static const char source[] =
        "template <int n> __global__ void scale(const float *x, float *y)\n"
        "{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = FACTOR * x[i]; }\n";
    char directory[] = "/tmp/jot-raw-XXXXXX";
    void *code[2];
    size_t size[2];
    if (cuda_library_open(CUDA_LIBRARY_nvrtc) != JOT_OK)
        return;
    ck_assert_ptr_nonnull(mkdtemp(directory));
    setenv("JOT_CACHE_DIR", directory, 1);
    struct rt_raw_kernel *k = raw("scale<1000>", source, "-DFACTOR=2"),
                         *bad = raw("scale<1000>", source, "-DFACTOR=two");
    for (int i = 0; i < 2; i++) // the second time from the cache
        OK(cuda_raw_compile(k, "-arch=sm_90", &code[i], &size[i]));
    ck_assert_uint_eq(size[0], size[1]);
    ck_assert_int_eq(memcmp(code[0], code[1], size[0]), 0);
    ck_assert(strstr(code[0], "scale"));
    size_t at = (strlen(code[0]) + 8) & ~(size_t)7;
    ck_assert_int_eq(memcmp((char *)code[0] + at, "\177ELF", 4), 0);
    expect(cuda_raw_compile(bad, "-arch=sm_90", &code[1], &size[1]), JOT_ERR_ARGUMENT,
           "identifier \"two\" is undefined");
    memory_release(code[0]);
    memory_release(code[1]);
    free(k);
    free(bad);
}
END_TEST

static void add_tests(TCase *tests)
{
    tcase_add_test(tests, multiplies_as_the_host_does);
    tcase_add_test(tests, does_more_than_multiply);
    tcase_add_test(tests, says_what_products_may_be);
    tcase_add_test(tests, runs_kernels_of_the_user);
    tcase_add_test(tests, maps_kernels_by_the_grid);
    tcase_add_test(tests, says_what_is_wrong_with_a_kernel);
    tcase_add_test(tests, compiles_cuda_c);
}

int main(void) { return suite_run("cuda kernels", add_tests); }
