// SPDX-License-Identifier: Apache-2.0
// The device layer on the GPUs that are there, with PTX written by hand.  Without a GPU nothing runs.
#include "base/arena.h"
#include "base/memory.h"
#include "device_support.h"
#include "support/suite.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HEAD ".version 7.8\n.target sm_52\n.address_size 64\n"
#define N 1000003

// y = x + 1, a chunk of 256 at a time; and a store to where nothing is.
static const char ptx[] = HEAD
    ".visible .entry add_one(.param .u64 x, .param .u64 y)\n"
    "{\n"
    ".reg .pred %p;\n.reg .u32 %t, %b, %n, %c;\n.reg .u64 %x, %y, %i, %a, %at;\n.reg .f32 %v;\n"
    "ld.param.u64 %x, [x];\nld.param.u64 %y, [y];\n"
    "cvta.to.global.u64 %x, %x;\ncvta.to.global.u64 %y, %y;\n"
    "mov.u32 %t, %tid.x;\nmov.u32 %c, %ctaid.x;\nmov.u32 %n, %nctaid.x;\n"
    "again:\n"
    "shl.b32 %b, %c, 8;\nadd.u32 %b, %b, %t;\n"
    "setp.ge.u32 %p, %b, 1000003;\n@%p bra next;\n"
    "mul.wide.u32 %i, %b, 4;\nadd.u64 %a, %x, %i;\nadd.u64 %at, %y, %i;\n"
    "ld.global.f32 %v, [%a];\nadd.f32 %v, %v, 0f3F800000;\nst.global.f32 [%at], %v;\n"
    "next:\n"
    "add.u32 %c, %c, %n;\nsetp.lt.u32 %p, %c, 3907;\n@%p bra again;\n"
    "ret;\n}\n\0" HEAD ".visible .entry stray(.param .u64 x, .param .u64 y)\n"
    "{\n.reg .u64 %a;\n.reg .u32 %v;\n"
    "mov.u64 %a, 8;\nmov.u32 %v, 1;\nst.global.u32 [%a], %v;\nret;\n}\n";

static const char text[] = "add_one\0stray";
enum { ADD_ONE = 0, STRAY = 8 };

static struct rt_program *load(jot_device *device, uint32_t name)
{
    static const uint32_t operands[] = {0, 1};
    struct rt_argument argument = {.bytes = 4 * N, .donated = -1};
    struct rt_buffer buffers[] = {{.memory = RT_MEMORY_INPUT, .bytes = 4 * N},
                                  {.memory = RT_MEMORY_OUTPUT, .bytes = 4 * N}};
    struct rt_step step = {.kind = RT_STEP_KERNEL,
                           .name = name,
                           .operand_count = 2,
                           .total = N,
                           .grain = 256,
                           .block = 256};
    struct rt_plan plan = {.input_count = 1,
                           .output_count = 1,
                           .buffer_count = 2,
                           .operand_count = 2,
                           .step_count = 1,
                           .text_bytes = sizeof text,
                           .inputs = &argument,
                           .outputs = &argument,
                           .buffers = buffers,
                           .operands = operands,
                           .steps = &step,
                           .text = text};
    struct arena *arena = arena_create();
    struct rt_program *program;
    const void *bytes;
    void *images;
    size_t size, images_size;
    rt_plan_write(&plan, arena, &bytes, &size);
    OK(device->type->assemble(device, ptx, sizeof ptx, &images, &images_size));
    OK(rt_program_load(device, images, images_size, bytes, size, NULL, 0, &program));
    memory_release(images);
    arena_release(arena);
    return program;
}

static jot_array *empty_on(jot_device *device)
{
    jot_array *y = rt_array_create_on(device, JOT_F32, 1, (int64_t[]){N});
    ck_assert_msg(y, "%s", jot_error_message());
    return y;
}

static void expect_one_more(const jot_array *y, const jot_array *x)
{
    const float *at = jot_array_data(y);
    ck_assert_msg(at, "%s", jot_error_message());
    for (int i = 0; i < N; i++)
        ck_assert_float_eq(at[i], ((const float *)x->data)[i] + 1);
}

START_TEST(runs_a_kernel)
{
    jot_array *a = ramp(N);
    for (int i = 0; i < jot_device_count(JOT_CUDA); i++) {
        jot_device *d = jot_cuda(i);
        struct rt_program *p = load(d, ADD_ONE);
        jot_array *x = jot_array_to(a, d), *y = empty_on(d);
        OK(run(p, x, y));
        expect_one_more(y, a);
        rt_program_release(p);
        jot_arrays_release(2, (jot_array *[]){x, y});
    }
    jot_array_release(a);
}
END_TEST

START_TEST(moves_arrays)
{
    static const int64_t sizes[] = {0, 1, 1000, 262144, 262145, 50000001};
    int last = jot_device_count(JOT_CUDA) - 1;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        jot_array *a = ramp(sizes[i]), *b = jot_array_to(a, jot_cuda(0));
        jot_array *c = jot_array_to(b, jot_cuda(last));
        ck_assert_msg(b && c, "%s", jot_error_message());
        const void *data = jot_array_data(c);
        ck_assert_msg(data && !memcmp(data, a->data, a->bytes), "%lld elements",
                      (long long)sizes[i]);
        jot_arrays_release(3, (jot_array *[]){a, b, c});
    }
}
END_TEST

START_TEST(goes_on_when_memory_is_out)
{
    jot_device_memory_use use;
    OK(jot_device_memory(jot_cuda(0), &use));
    jot_array *held[64] = {0}, *a = ramp(N);
    int n = 0;
    int64_t eighth = (int64_t)(use.total / 8);
    while (n < 64 &&
           (held[n] = rt_array_create_on(jot_cuda(0), JOT_U8, 1, (int64_t[]){eighth})) != NULL)
        n++;
    ck_assert_int_ge(n, 6);
    ck_assert_int_le(n, 8);
    expect(jot_device_check(jot_cuda(0)), JOT_OK, "out of memory on cuda:0");
    jot_arrays_release((size_t)n, held);
    jot_array *b = jot_array_to(a, jot_cuda(0));
    ck_assert_msg(b && !memcmp(jot_array_data(b), a->data, a->bytes), "%s",
                  jot_error_message());
    jot_arrays_release(2, (jot_array *[]){a, b});
    jot_memory_trim();
    jot_device_memory_use after;
    OK(jot_device_memory(jot_cuda(0), &after));
    ck_assert_uint_eq(after.used, 0);
    ck_assert_uint_gt(after.free, use.free - (use.total >> 4));
}
END_TEST

// The driver of CUDA 13 gives the other GPU up as well, though it was in use before.
START_TEST(loses_a_device_that_fails)
{
    bool has_next = jot_device_count(JOT_CUDA) > 1;
    jot_device *d = jot_cuda(0), *next = jot_cuda(1);
    struct rt_program *p = load(d, STRAY), *other = has_next ? load(next, ADD_ONE) : NULL;
    jot_array *a = ramp(N), *x = jot_array_to(a, d), *y = empty_on(d);
    OK(run(p, x, y)); // fails later
    expect(jot_array_wait(y), JOT_ERR_DEVICE, "cuda:0 is lost");
    ck_assert_ptr_null(jot_array_data(x));
    ck_assert_ptr_null(jot_array_to(a, d));
    expect(run(p, x, y), JOT_ERR_DEVICE, "is lost");
    jot_array *x1 = has_next ? jot_array_to(a, next) : NULL;
    if (x1) {
        jot_array *y1 = empty_on(next);
        OK(run(other, x1, y1));
        expect_one_more(y1, a);
        jot_arrays_release(2, (jot_array *[]){x1, y1});
    } else if (has_next) {
        expect(jot_device_check(next), JOT_ERR_DEVICE, "cuda:1 is lost");
    }
    jot_array *here = ramp(N); // the host goes on
    ck_assert(!memcmp(jot_array_data(here), a->data, a->bytes));
    jot_array_release(here);
    rt_program_release(p);
    rt_program_release(other);
    jot_arrays_release(3, (jot_array *[]){a, x, y});
}
END_TEST

static void *run_many(void *ctx)
{
    struct rt_program *p = ctx;
    jot_array *a = ramp(N), *x = jot_array_to(a, jot_cuda(0)), *y = empty_on(jot_cuda(0));
    for (int i = 0; i < 50; i++)
        OK(run(p, x, y));
    expect_one_more(y, a);
    jot_arrays_release(3, (jot_array *[]){a, x, y});
    return NULL;
}

START_TEST(runs_on_several_threads)
{
    struct rt_program *p[2] = {load(jot_cuda(0), ADD_ONE), load(jot_cuda(0), ADD_ONE)};
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, run_many, p[i % 2]);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    rt_program_release(p[0]);
    rt_program_release(p[1]);
}
END_TEST

START_TEST(multiplies_by_cublas)
{
    static const uint32_t operands[] = {0, 1, 2};
    static const jot_dtype dtypes[] = {JOT_F32, JOT_F64, JOT_C64, JOT_C128};
    for (int i = 0; i < 4 * 9; i++) {
        struct rt_gemm g = {.dtype = dtypes[i / 9],
                            .operands = dtypes[i / 9],
                            .transpose_a = (uint32_t)(i % 9 / 3),
                            .transpose_b = (uint32_t)(i % 3),
                            .m = 17,
                            .n = 33,
                            .k = 65,
                            .lda = 70,
                            .ldb = 71,
                            .ldc = 40,
                            .alpha = 1,
                            .batch = {1, 2, 3, 1},
                            .stride_a = {0, 5000, 0, 0},
                            .stride_b = {0, 0, 5000, 0},
                            .stride_c = {0, 3000, 1000, 0}};
        uint64_t bytes = 16000 * jot_dtype_size(dtypes[i / 9]);
        struct rt_argument in[] = {{.bytes = bytes, .donated = -1},
                                   {.bytes = bytes, .donated = -1}};
        struct rt_buffer buffers[] = {{.memory = RT_MEMORY_INPUT, .bytes = bytes},
                                      {.memory = RT_MEMORY_INPUT, .index = 1, .bytes = bytes},
                                      {.memory = RT_MEMORY_OUTPUT, .bytes = bytes}};
        struct rt_step step = {.kind = RT_STEP_GEMM, .operand_count = 3, .grain = 1};
        struct rt_plan plan = {.input_count = 2,
                               .output_count = 1,
                               .buffer_count = 3,
                               .operand_count = 3,
                               .step_count = 1,
                               .gemm_count = 1,
                               .inputs = in,
                               .outputs = in,
                               .buffers = buffers,
                               .operands = operands,
                               .steps = &step,
                               .gemms = &g};
        struct arena *arena = arena_create();
        const void *plan_bytes;
        size_t size;
        rt_plan_write(&plan, arena, &plan_bytes, &size);
        jot_array *results[2];
        for (int where = 0; where < 2; where++) {
            jot_device *d = where ? jot_cuda(0) : jot_host();
            struct rt_program *p;
            // Whole numbers, so that the order of a sum does not matter.
            jot_array *here = jot_array_full(g.dtype, 0, 16000), *arrays[3];
            for (int k = 0; k < 3; k++) {
                size_t parts =
                    here->bytes / (g.dtype == JOT_F64 || g.dtype == JOT_C128 ? 8 : 4);
                for (size_t e = 0; e < parts; e++) {
                    double x = (double)((e * 37 + (size_t)k * 101) % 16) - 7;
                    if (g.dtype == JOT_F64 || g.dtype == JOT_C128)
                        ((double *)here->data)[e] = x;
                    else
                        ((float *)here->data)[e] = (float)x;
                }
                arrays[k] = k == 2 || where ? jot_array_to(here, jot_cuda(0)) : NULL;
                if (!where) {
                    jot_array_release(arrays[k]);
                    arrays[k] = rt_array_create(g.dtype, 1, (int64_t[]){16000});
                    memcpy(arrays[k]->data, here->data, here->bytes);
                }
                ck_assert_msg(arrays[k], "%s", jot_error_message());
            }
            OK(rt_program_load(d, NULL, 0, plan_bytes, size, NULL, 0, &p));
            OK(rt_program_run(p, (const void *[]){arrays[0]->data, arrays[1]->data},
                              (void *[]){arrays[2]->data}));
            rt_program_release(p);
            results[where] = arrays[2];
            jot_arrays_release(3, (jot_array *[]){here, arrays[0], arrays[1]});
        }
        ck_assert_msg(!memcmp(jot_array_data(results[1]), results[0]->data, results[0]->bytes),
                      "product %d", i);
        jot_arrays_release(2, results);
        arena_release(arena);
    }
}
END_TEST

static void add_tests(TCase *tests)
{
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, runs_a_kernel);
    tcase_add_test(tests, moves_arrays);
    tcase_add_test(tests, goes_on_when_memory_is_out);
    tcase_add_test(tests, loses_a_device_that_fails);
    tcase_add_test(tests, runs_on_several_threads);
    tcase_add_test(tests, multiplies_by_cublas);
}

int main(void)
{
    // Not asked of the driver, which is of no use in the processes of the tests once it is started.
    if (access("/dev/nvidia0", F_OK)) {
        puts("no GPU: nothing to test");
        return 77;
    }
    // Whatever JOT_DEVICE says: arrays that a device is not named for are filled here.
    jot_set_default_device(jot_host());
    return suite_run("gpu", add_tests);
}
