// SPDX-License-Identifier: Apache-2.0
// The device layer over the driver of fake_cuda.c, and what is said where there is no driver.
#include "base/arena.h"
#include "base/memory.h"
#include "base/status.h"
#include "jot/array.h"
#include "jot/device.h"
#include "runtime/array.h"
#include "runtime/cuda/device.h"
#include "runtime/program.h"
#include "runtime/raw_kernel.h"

#include <check.h>
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

_Static_assert(sizeof(CUlaunchAttribute) == 72, "CUlaunchAttribute");
_Static_assert(sizeof(CUlaunchConfig) == 56, "CUlaunchConfig");
_Static_assert(sizeof(CUmemPoolProps) == 88, "CUmemPoolProps");
_Static_assert(sizeof(cublasLtMatmulHeuristicResult_t) == 96,
               "cublasLtMatmulHeuristicResult_t");
_Static_assert(offsetof(CUlaunchConfig, hStream) == 32, "CUlaunchConfig");
_Static_assert(offsetof(CUlaunchAttribute, value.clusterDim.y) == 12, "CUlaunchAttribute");
_Static_assert(offsetof(CUmemPoolProps, location.id) == 12, "CUmemPoolProps");

// Every test is a process of its own, so that each has a driver of its own.
static void use_fake(const char *variable, const char *value)
{
    setenv("JOT_CUDA_LIBRARIES", getenv("JOT_TEST_FAKE_CUDA"), 1);
    if (variable)
        setenv(variable, value, 1);
}

// Each library of the fake is a copy with numbers of its own.
static int fake_count_of(const char *file, const char *name)
{
    char path[4096];
    int (*count)(void);
    snprintf(path, sizeof path, "%s/%s", getenv("JOT_TEST_FAKE_CUDA"), file);
    void *library = dlopen(path, RTLD_LAZY);
    void *symbol = library ? dlsym(library, name) : NULL;
    ck_assert_ptr_nonnull(symbol);
    memcpy(&count, &symbol, sizeof symbol);
    return count();
}

static int fake_count(const char *name) { return fake_count_of("libcuda.so.1", name); }

static void expect(jot_status status, jot_status wanted, const char *part)
{
    ck_assert_msg(status == wanted, "%s: %s", jot_status_name(status), jot_error_message());
    if (part)
        ck_assert_msg(strstr(jot_error_message(), part), "%s", jot_error_message());
}

#define OK(call) expect(call, JOT_OK, NULL)

// Nothing is left once what is kept for reuse is given back.
static void expect_no_blocks(void)
{
    jot_memory_trim();
    ck_assert_int_eq(fake_count("fake_cuda_blocks"), 0);
}

// ---- drivers ----

START_TEST(names_a_missing_driver)
{
    setenv("JOT_CUDA_LIBRARIES", "/nonexistent", 1);
    if (jot_device_count(JOT_CUDA) > 0)
        return; // a machine with a GPU
    ck_assert(*jot_error_message());
    expect(jot_device_check(jot_cuda(0)), JOT_ERR_DEVICE, "CUDA driver");
    expect(jot_device_wait(jot_cuda(0)), JOT_ERR_DEVICE, "CUDA driver");
    ck_assert_ptr_null(jot_array_to(jot_array_full(JOT_F32, 1, 3), jot_cuda(0)));
    ck_assert_str_eq(jot_device_name(jot_cuda(0)), "cuda:0");
    ck_assert(strstr(jot_error_message(), "CUDA driver"));
    OK(jot_device_check(jot_host()));
    char text[8192];
    int n = jot_devices_format(text, sizeof text);
    ck_assert_int_eq(n, (int)strlen(text));
    ck_assert(strstr(text, "host") && strstr(text, "CUDA driver") && strstr(text, "cuBLAS"));
    ck_assert_int_eq(jot_devices_format(text, 5), n);
    ck_assert_uint_eq(strlen(text), 4);
}
END_TEST

START_TEST(names_an_old_driver)
{
    use_fake("FAKE_CUDA_VERSION", "11040");
    expect(jot_device_check(jot_cuda(0)), JOT_ERR_DEVICE,
           "too old: it is of CUDA 11.4, and jot needs 12.0");
    ck_assert_int_eq(jot_device_count(JOT_CUDA), 0);
}
END_TEST

START_TEST(names_a_driver_without_gpu)
{
    use_fake("FAKE_CUDA_COUNT", "0");
    expect(jot_device_check(jot_cuda(0)), JOT_ERR_DEVICE, "finds no GPU");
}
END_TEST

START_TEST(names_a_driver_that_does_not_start)
{
    use_fake("FAKE_CUDA_INIT", "803");
    expect(jot_device_check(jot_cuda(0)), JOT_ERR_DEVICE, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH");
}
END_TEST

START_TEST(names_an_entry_point_that_is_missing)
{
    setenv("JOT_CUDA_LIBRARIES", getenv("JOT_TEST_LACKING_CUDA"), 1);
    expect(jot_device_check(jot_cuda(0)), JOT_ERR_DEVICE, "it has no cuInit");
    expect(cuda_library_open(CUDA_LIBRARY_nvjitlink), JOT_ERR_LIBRARY, "nvJitLinkVersion");
}
END_TEST

START_TEST(lists_devices)
{
    use_fake("FAKE_CUDA_COUNT", "2");
    ck_assert_int_eq(jot_device_count(JOT_CUDA), 2);
    ck_assert_int_eq(jot_device_count(JOT_HOST), 1);
    OK(jot_device_check(jot_cuda(0)));
    OK(jot_device_check(jot_cuda(1)));
    expect(jot_device_check(jot_cuda(2)), JOT_ERR_DEVICE, "cuda:2 is not there: this machine");
    expect(jot_device_check(jot_cuda(-1)), JOT_ERR_DEVICE, "is not there");
    expect(jot_device_check(jot_cuda(1000)), JOT_ERR_DEVICE, "is not there");
    ck_assert_int_eq(jot_device_kind_of(jot_cuda(1)), JOT_CUDA);
    ck_assert_int_eq(jot_device_kind_of(jot_host()), JOT_HOST);
    char text[8192];
    jot_devices_format(text, sizeof text);
    ck_assert_msg(strstr(text, "cuda:1       Fake GPU 1, 1.0 GiB, 4 multiprocessors, compute "
                               "capability 9.0"),
                  "%s", text);
    ck_assert_msg(strstr(text, "nvJitLink    99.1"), "%s", text);
}
END_TEST

START_TEST(chooses_the_default_device)
{
    use_fake("JOT_DEVICE", "cuda:1");
    setenv("FAKE_CUDA_COUNT", "2", 1);
    ck_assert_ptr_eq(jot_default_device(), jot_cuda(1));
    jot_array *a = jot_array_full(JOT_F32, 3, 4);
    ck_assert_ptr_eq(jot_array_device(a), jot_cuda(1));
    jot_set_default_device(jot_host());
    ck_assert_ptr_eq(jot_default_device(), jot_host());
    jot_set_default_device(NULL);
    ck_assert_ptr_eq(jot_default_device(), jot_cuda(1));
    ck_assert_float_eq(((const float *)jot_array_data(a))[3], 3);
    jot_array_release(a);
}
END_TEST

// ---- arrays ----

static jot_array *ramp(int64_t n)
{
    jot_array *a = jot_array_full(JOT_F32, 0, n);
    for (int64_t i = 0; i < n; i++)
        ((float *)a->data)[i] = (float)i;
    return a;
}

START_TEST(moves_arrays)
{
    static const int64_t sizes[] = {0, 1, 3, 1000, 300000, 5000001};
    use_fake("FAKE_CUDA_COUNT", "2");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        int64_t n = sizes[i];
        jot_array *a = ramp(n), *b = jot_array_to(a, jot_cuda(0));
        jot_array *c = jot_array_to(b, jot_cuda(1)), *d = jot_array_to(c, jot_host());
        jot_array *same = jot_array_to(b, jot_cuda(0));
        ck_assert_msg(b && c && d, "%s", jot_error_message());
        ck_assert_ptr_eq(same, b);
        ck_assert_ptr_eq(jot_array_device(c), jot_cuda(1));
        ck_assert_ptr_eq(jot_array_device(d), jot_host());
        ck_assert_int_eq(memcmp(d->data, a->data, a->bytes), 0);
        OK(jot_array_wait(c));
        float *out = malloc(a->bytes + 4);
        OK(jot_array_read(c, out, (size_t)n));
        ck_assert_int_eq(memcmp(out, a->data, a->bytes), 0);
        const void *mirror = jot_array_data(c);
        ck_assert_int_eq(memcmp(mirror, a->data, a->bytes), 0);
        ck_assert_ptr_eq(jot_array_data(c), mirror);
        free(out);
        jot_arrays_release(5, (jot_array *[]){a, b, c, d, same});
    }
    expect_no_blocks();
    jot_device_memory_use use;
    OK(jot_device_memory(jot_cuda(0), &use));
    ck_assert_uint_eq(use.used, 0);
    ck_assert_uint_eq(use.total, 1u << 30);
}
END_TEST

START_TEST(shows_arrays)
{
    use_fake(NULL, NULL);
    jot_set_default_device(jot_cuda(0));
    jot_array *a = jot_array_from(((double[]){1, 2, 3}), 3);
    jot_array *b = jot_array_from(((bool[]){true, false}), 2), *c = jot_array_full(JOT_I32, 7);
    char text[100];
    jot_array_format(a, text, sizeof text);
    ck_assert_str_eq(text, "[1. 2. 3.]");
    jot_array_format(b, text, sizeof text);
    ck_assert_str_eq(text, "[ true false]");
    ck_assert_double_eq(jot_array_item(c), 7);
    ck_assert(isnan(jot_array_item(a)));
    expect(jot_array_copy_out(a, JOT_F32, text, 3), JOT_ERR_DTYPE, NULL);
    expect(jot_array_copy_out(a, JOT_F64, text, 2), JOT_ERR_SHAPE, NULL);
    jot_arrays_release(3, (jot_array *[]){a, b, c});
    expect_no_blocks();
}
END_TEST

static void note(const void *data, void *ctx)
{
    (void)data;
    ++*(int *)ctx;
}

START_TEST(borrows_memory_of_a_gpu)
{
    use_fake(NULL, NULL);
    int released = 0;
    jot_array *a = ramp(10), *b = jot_array_to(a, jot_cuda(0));
    jot_array *view =
        jot_array_borrow_on(jot_cuda(0), JOT_F32, (const char *)jot_array_device_data(b) + 8,
                            (int64_t[]){2, 4, JOT_END}, note, &released);
    ck_assert_msg(view, "%s", jot_error_message());
    ck_assert_float_eq(((const float *)jot_array_data(view))[7], 9);
    jot_array_release(view);
    ck_assert_int_eq(released, 1);
    ck_assert_ptr_null(
        jot_array_borrow_on(jot_cuda(5), JOT_F32, a, (int64_t[]){JOT_END}, note, &released));
    ck_assert_int_eq(released, 1);
    jot_arrays_release(2, (jot_array *[]){a, b});
}
END_TEST

START_TEST(keeps_memory_for_reuse)
{
    use_fake(NULL, NULL);
    jot_device *d = jot_cuda(0);
    for (size_t bytes = 0; bytes < (size_t)1 << 20; bytes += bytes / 7 + 1) {
        jot_device_memory_use use;
        void *a, *b;
        OK(cuda_allocate(d, bytes, "a", &a));
        OK(cuda_memory(d, &use));
        size_t taken = use.total - use.free;
        ck_assert_uint_ge(taken, bytes);
        ck_assert_uint_le(taken, bytes + bytes / 8 + 512);
        ck_assert_uint_eq(use.used, bytes);
        cuda_release(d, a, bytes);
        OK(cuda_allocate(d, bytes, "b", &b));
        ck_assert_ptr_eq(a, b);
        cuda_release(d, b, bytes);
        expect_no_blocks();
    }
}
END_TEST

START_TEST(goes_on_when_memory_is_out)
{
    use_fake("FAKE_CUDA_MEMORY", "10000");
    jot_array *a = ramp(2000), *b = jot_array_to(a, jot_cuda(0)), *c;
    ck_assert_ptr_nonnull(b);
    ck_assert_ptr_null(jot_array_to(a, jot_cuda(0)));
    expect(jot_device_check(jot_cuda(0)), JOT_OK,
           "out of memory on cuda:0: an array of 8000 bytes, and 8000 of 10000 are in use");
    jot_array_release(b);
    c = jot_array_to(a, jot_cuda(0));
    ck_assert_msg(c, "%s", jot_error_message());
    ck_assert_float_eq(((const float *)jot_array_data(c))[1999], 1999);
    jot_array_release(c);
    // What is kept makes way for another size.
    jot_array *large = rt_array_create_on(jot_cuda(0), JOT_U8, 1, (int64_t[]){9000});
    ck_assert_msg(large, "%s", jot_error_message());
    jot_arrays_release(2, (jot_array *[]){a, large});
    // Nothing of that size is made on the host on the way.
    jot_set_default_device(jot_cuda(0));
    ck_assert_ptr_null(jot_array_full(JOT_F32, 1, INT64_C(1) << 40));
    ck_assert_msg(strstr(jot_error_message(), "out of memory on cuda:0"), "%s",
                  jot_error_message());
    expect_no_blocks();
}
END_TEST

// ---- programs ----

static const char text[] = "add_one\0double_it\0tell\0nothing";
enum { ADD_ONE = 0, DOUBLE_IT = 8, TELL = 18, NOTHING = 23 };

// Two images of the fake assembler.
static const char ptx[] = "add_one tell \0double_it ";

static jot_status load(int device, const struct rt_plan *plan,
                       const struct rt_callback *callback, struct rt_program **out)
{
    struct arena *arena = arena_create();
    const void *bytes;
    void *images;
    size_t size, images_size;
    rt_plan_write(plan, arena, &bytes, &size);
    jot_status status =
        rt_cuda_type.assemble(jot_cuda(device), ptx, sizeof ptx, &images, &images_size);
    if (status == JOT_OK) {
        status = rt_program_load(jot_cuda(device), images, images_size, bytes, size, callback,
                                 callback != NULL, out);
        memory_release(images);
    }
    arena_release(arena);
    return status;
}

static jot_status run(struct rt_program *p, const jot_array *x, const jot_array *y)
{
    const void *in[] = {x ? x->data : NULL};
    void *out[] = {y->data};
    return rt_program_run(p, in, out);
}

// y = x + 1 of 1000 floats, and what a kernel says of its launch.
struct map_plan {
    struct rt_plan plan;
    struct rt_argument in, out;
    struct rt_buffer buffers[2];
    uint32_t operands[2];
    struct rt_step step;
};

static const struct rt_plan *make_map(struct map_plan *p)
{
    *p = (struct map_plan){.in = {.bytes = 4000, .donated = -1},
                           .out = {.bytes = 4000, .donated = -1},
                           .buffers = {{.place = RT_PLACE_INPUT, .bytes = 4000},
                                       {.place = RT_PLACE_OUTPUT, .bytes = 4000}},
                           .operands = {0, 1},
                           .step = {.kind = RT_STEP_KERNEL,
                                    .name = ADD_ONE,
                                    .operand_count = 2,
                                    .total = 1000,
                                    .grain = 64,
                                    .block = 64}};
    p->plan = (struct rt_plan){.input_count = 1,
                               .output_count = 1,
                               .buffer_count = 2,
                               .operand_count = 2,
                               .step_count = 1,
                               .text_bytes = sizeof text,
                               .inputs = &p->in,
                               .outputs = &p->out,
                               .buffers = p->buffers,
                               .operands = p->operands,
                               .steps = &p->step,
                               .text = text};
    return &p->plan;
}

START_TEST(runs_a_map)
{
    use_fake(NULL, NULL);
    struct map_plan m;
    struct rt_program *p;
    OK(load(0, make_map(&m), NULL, &p));
    jot_array *a = ramp(1000), *x = jot_array_to(a, jot_cuda(0)),
              *y = rt_array_create_on(jot_cuda(0), JOT_F32, 1, (int64_t[]){1000});
    OK(run(p, x, y));
    OK(jot_device_wait(jot_cuda(0)));
    for (int i = 0; i < 1000; i++)
        ck_assert_float_eq(((const float *)jot_array_data(y))[i], (float)i + 1);
    rt_program_release(p);
    jot_arrays_release(3, (jot_array *[]){a, x, y});
    expect_no_blocks();
    ck_assert_int_eq(fake_count("fake_cuda_modules"), 0);
}
END_TEST

static void expect_launch(struct rt_step step, const int32_t wanted[5])
{
    static const uint32_t operand = 0;
    struct rt_argument out = {.bytes = 20, .donated = -1};
    struct rt_buffer buffer = {.place = RT_PLACE_OUTPUT, .bytes = 20};
    struct rt_program *p;
    step.kind = RT_STEP_KERNEL;
    step.name = TELL;
    step.operand_count = 1;
    struct rt_plan plan = {.output_count = 1,
                           .buffer_count = 1,
                           .operand_count = 1,
                           .step_count = 1,
                           .text_bytes = sizeof text,
                           .outputs = &out,
                           .buffers = &buffer,
                           .operands = &operand,
                           .steps = &step,
                           .text = text};
    OK(load(0, &plan, NULL, &p));
    jot_array *y = rt_array_create_on(jot_cuda(0), JOT_I32, 1, (int64_t[]){5});
    OK(run(p, NULL, y));
    const int32_t *told = jot_array_data(y);
    for (int i = 0; i < 5; i++)
        ck_assert_msg(told[i] == wanted[i], "%d: %d, not %d", i, told[i], wanted[i]);
    jot_array_release(y);
    rt_program_release(p);
}

// 4 multiprocessors run 2048 threads each.
START_TEST(fills_the_device)
{
    use_fake(NULL, NULL);
    expect_launch((struct rt_step){.total = 1000, .grain = 256, .block = 256},
                  (int32_t[]){4, 256, 0, 0, 0});
    expect_launch((struct rt_step){.total = 100000, .grain = 256, .block = 256},
                  (int32_t[]){32, 256, 0, 0, 0});
    expect_launch((struct rt_step){.total = 100000,
                                   .grain = 256,
                                   .block = 256,
                                   .flags = RT_STEP_EXACT_GRID,
                                   .scratch_bytes = 100000},
                  (int32_t[]){391, 256, 100000, 0, 0});
    expect_launch(
        (struct rt_step){
            .total = 1000, .grain = 1, .block = 1024, .flags = RT_STEP_COOPERATIVE},
        (int32_t[]){8, 1024, 0, 1, 0});
    expect_launch((struct rt_step){.total = 1000, .grain = 1, .block = 128, .cluster = 4},
                  (int32_t[]){12, 128, 0, 0, 4});
    expect_launch((struct rt_step){.total = 5, .grain = 1, .block = 128, .cluster = 4},
                  (int32_t[]){8, 128, 0, 0, 4});
}
END_TEST

START_TEST(refuses_what_it_cannot_launch)
{
    use_fake(NULL, NULL);
    struct map_plan m;
    struct rt_program *p;
    make_map(&m);
    m.step.name = NOTHING;
    expect(load(0, &m.plan, NULL, &p), JOT_ERR_IO, "no kernel nothing");
    make_map(&m);
    m.step.block = 0;
    expect(load(0, &m.plan, NULL, &p), JOT_ERR_IO, "0 threads");
    make_map(&m);
    m.step.scratch_bytes = 300000;
    expect(load(0, &m.plan, NULL, &p), JOT_ERR_IO, "300000 bytes of shared memory");
    make_map(&m);
    m.step.flags = RT_STEP_COOPERATIVE | RT_STEP_EXACT_GRID;
    m.step.grain = 1;
    expect(load(0, &m.plan, NULL, &p), JOT_ERR_DEVICE, "wants 1000 blocks");
    void *images;
    size_t size;
    expect(rt_cuda_type.assemble(jot_cuda(0), "syntax", 7, &images, &size), JOT_ERR_LIBRARY,
           "line 3: syntax error");
    make_map(&m);
    struct arena *arena = arena_create();
    const void *bytes;
    rt_plan_write(&m.plan, arena, &bytes, &size);
    uint64_t damaged[4] = {2, 8, 0, 1000};
    expect(rt_program_load(jot_cuda(0), damaged, sizeof damaged, bytes, size, NULL, 0, &p),
           JOT_ERR_IO, "damaged");
    expect(rt_program_load(jot_cuda(0), damaged, 7, bytes, size, NULL, 0, &p), JOT_ERR_IO,
           "damaged");
    arena_release(arena);
    expect_no_blocks();
    ck_assert_int_eq(fake_count("fake_cuda_modules"), 0);
}
END_TEST

// Doubles its state until it is 100 or more, then calls back; the state starts as a constant.
static jot_status add_constant(void *ctx, void *const *buffers, const int64_t *params)
{
    double *state = buffers[0];
    *state += *(double *)ctx + (double)params[0];
    return JOT_OK;
}

START_TEST(loops_by_the_host)
{
    use_fake(NULL, NULL);
    double start = 3, more = 0.5;
    struct rt_argument out = {.bytes = 8, .donated = -1};
    struct rt_buffer buffers[] = {{.place = RT_PLACE_CONSTANT, .bytes = 8},
                                  {.place = RT_PLACE_OUTPUT, .bytes = 8},
                                  {.place = RT_PLACE_ARENA, .bytes = 1}};
    uint32_t operands[] = {1, 0, 1, 2, 2, 1};
    int64_t params[] = {20};
    struct rt_step steps[] = {
        {.kind = RT_STEP_COPY, .operand_count = 2},
        {.kind = RT_STEP_KERNEL,
         .name = DOUBLE_IT,
         .operand_first = 2,
         .operand_count = 2,
         .total = 1,
         .grain = 1,
         .block = 32},
        {.kind = RT_STEP_JUMP_IF, .operand_first = 4, .operand_count = 1, .target = 1},
        {.kind = RT_STEP_CALLBACK, .operand_first = 5, .operand_count = 1, .param_count = 1}};
    struct rt_plan plan = {.output_count = 1,
                           .buffer_count = 3,
                           .operand_count = 6,
                           .step_count = 4,
                           .param_count = 1,
                           .text_bytes = sizeof text,
                           .constant_bytes = 8,
                           .arena_bytes = 64,
                           .zeroed_bytes = 64,
                           .outputs = &out,
                           .buffers = buffers,
                           .steps = steps,
                           .operands = operands,
                           .params = params,
                           .text = text,
                           .constants = &start};
    struct rt_callback callback = {.call = add_constant, .ctx = &more};
    struct rt_program *p;
    OK(load(0, &plan, &callback, &p));
    jot_array *y = rt_array_create_on(jot_cuda(0), JOT_F64, 0, NULL);
    OK(run(p, NULL, y));
    ck_assert_double_eq(jot_array_item(y), 192 + 20.5);
    rt_program_release(p);
    jot_array_release(y);
    expect_no_blocks();
}
END_TEST

// y = x + 4, three of which a loop adds, to and fro between two memories.
struct turn_plan {
    struct rt_plan plan;
    struct rt_argument in, out;
    struct rt_buffer buffers[6];
    uint32_t operands[10];
    struct rt_step steps[6];
};

// A jump before the last step keeps that out of the segment.
static const struct rt_plan *make_turns(struct turn_plan *p, bool has_jump)
{
    struct rt_step add = {.kind = RT_STEP_KERNEL,
                          .name = ADD_ONE,
                          .operand_count = 2,
                          .total = 1000,
                          .grain = 64,
                          .block = 64};
    *p = (struct turn_plan){
        .in = {.bytes = 4000, .donated = -1},
        .out = {.bytes = 4000, .donated = -1},
        .buffers =
            {{.place = RT_PLACE_INPUT, .bytes = 4000},
             {.place = RT_PLACE_OUTPUT, .bytes = 4000},
             {.place = RT_PLACE_ARENA, .bytes = 4000},
             {.place = RT_PLACE_ARENA, .offset = 4096, .bytes = 4000},
             {.place = RT_PLACE_TURN, .bytes = 4000, .of_first = 4, .of_count = 2},
             {.place = RT_PLACE_TURN, .index = 1, .bytes = 4000, .of_first = 6, .of_count = 2}},
        .operands = {2, 0, 4, 5, 2, 3, 2, 3, 4, 1},
        .steps = {{.kind = RT_STEP_COPY, .operand_count = 2},
                  {.kind = RT_STEP_LOOP, .total = 3, .target = 4},
                  add,
                  {.kind = RT_STEP_NEXT, .total = 3, .target = 2}}};
    p->steps[2].operand_first = 2;
    p->steps[4] = (struct rt_step){.kind = RT_STEP_JUMP, .target = 5};
    p->steps[4 + has_jump] = add;
    p->steps[4 + has_jump].operand_first = 8;
    p->plan = (struct rt_plan){.input_count = 1,
                               .output_count = 1,
                               .buffer_count = 6,
                               .operand_count = 10,
                               .step_count = 5 + has_jump,
                               .loop_count = 1,
                               .arena_bytes = 8192,
                               .text_bytes = sizeof text,
                               .inputs = &p->in,
                               .outputs = &p->out,
                               .buffers = p->buffers,
                               .operands = p->operands,
                               .steps = p->steps,
                               .text = text};
    return &p->plan;
}

static void expect_turns(struct rt_program *p, float start, const jot_array *x, jot_array *y)
{
    float in[1000], out[1000];
    for (int i = 0; i < 1000; i++)
        in[i] = start + (float)i;
    OK(cuda_upload(jot_cuda(0), x->data, in, sizeof in));
    OK(run(p, x, y));
    OK(cuda_download(jot_cuda(0), out, y->data, sizeof out));
    for (int i = 0; i < 1000; i++)
        ck_assert_float_eq(out[i], in[i] + 4);
}

static jot_array *floats(void)
{
    jot_array *a = rt_array_create_on(jot_cuda(0), JOT_F32, 1, (int64_t[]){1000});
    ck_assert_msg(a, "%s", jot_error_message());
    return a;
}

START_TEST(replays_segments)
{
    use_fake(NULL, NULL);
    for (int has_jump = 0; has_jump < 2; has_jump++) {
        struct turn_plan t;
        struct rt_program *p;
        int before = fake_count("fake_cuda_graph_launches");
        OK(load(0, make_turns(&t, has_jump), NULL, &p));
        jot_array *x = floats(), *y = floats(), *z = floats();
        for (int i = 0; i < 5; i++)
            expect_turns(p, (float)i, x, y);
        ck_assert_int_eq(fake_count("fake_cuda_graph_launches") - before, 4);
        ck_assert_int_eq(fake_count("fake_cuda_graphs"), 1);
        // Other addresses are launched by themselves the first time.
        expect_turns(p, 7, x, z);
        expect_turns(p, 8, x, y);
        expect_turns(p, 9, x, z);
        // The part before the jump has nothing of the result.
        ck_assert_int_eq(fake_count("fake_cuda_graph_launches") - before, has_jump ? 7 : 6);
        ck_assert_int_eq(fake_count("fake_cuda_graphs"), has_jump ? 1 : 2);
        rt_program_release(p);
        ck_assert_int_eq(fake_count("fake_cuda_graphs"), 0);
        jot_arrays_release(3, (jot_array *[]){x, y, z});
        expect_no_blocks();
    }
}
END_TEST

START_TEST(forgets_old_graphs)
{
    use_fake(NULL, NULL);
    struct turn_plan t;
    struct rt_program *p;
    jot_array *x[20], *y = floats();
    OK(load(0, make_turns(&t, false), NULL, &p));
    for (int i = 0; i < 20; i++) {
        x[i] = floats();
        expect_turns(p, 1, x[i], y);
        expect_turns(p, 2, x[i], y);
        ck_assert_int_le(fake_count("fake_cuda_graphs"), 8);
    }
    ck_assert_int_eq(fake_count("fake_cuda_graph_launches"), 20);
    expect_turns(p, 3, x[19], y);
    expect_turns(p, 3, x[12], y); // the oldest that is kept
    ck_assert_int_eq(fake_count("fake_cuda_graph_launches"), 22);
    expect_turns(p, 3, x[11], y);
    ck_assert_int_eq(fake_count("fake_cuda_graph_launches"), 22);
    rt_program_release(p);
    jot_arrays_release(20, x);
    jot_array_release(y);
    expect_no_blocks();
}
END_TEST

START_TEST(runs_what_it_cannot_capture)
{
    use_fake("FAKE_CUDA_NO_CAPTURE", "1");
    struct turn_plan t;
    struct rt_program *p;
    OK(load(0, make_turns(&t, false), NULL, &p));
    jot_array *x = floats(), *y = floats();
    for (int i = 0; i < 5; i++)
        expect_turns(p, (float)i, x, y);
    ck_assert_int_eq(fake_count("fake_cuda_graph_launches"), 0);
    rt_program_release(p);
    jot_arrays_release(2, (jot_array *[]){x, y});
    expect_no_blocks();
}
END_TEST

START_TEST(loses_a_device_in_a_graph)
{
    use_fake("FAKE_CUDA_FAULT", "9");
    struct turn_plan t;
    struct rt_program *p;
    OK(load(0, make_turns(&t, false), NULL, &p));
    jot_array *x = floats(), *y = floats();
    expect_turns(p, 0, x, y);
    expect_turns(p, 1, x, y);
    OK(run(p, x, y));
    expect(jot_array_wait(y), JOT_ERR_DEVICE, "is lost");
    expect(run(p, x, y), JOT_ERR_DEVICE, "is lost");
    rt_program_release(p);
    jot_arrays_release(2, (jot_array *[]){x, y});
}
END_TEST

START_TEST(loses_a_device_that_fails)
{
    use_fake("FAKE_CUDA_FAULT", "2");
    setenv("FAKE_CUDA_COUNT", "2", 1);
    struct map_plan m;
    struct rt_program *p, *other;
    OK(load(0, make_map(&m), NULL, &p));
    jot_array *a = ramp(1000), *x = jot_array_to(a, jot_cuda(0)),
              *y = rt_array_create_on(jot_cuda(0), JOT_F32, 1, (int64_t[]){1000});
    OK(run(p, x, y));
    OK(run(p, x, y)); // fails later
    expect(jot_array_wait(y), JOT_ERR_DEVICE,
           "cuda:0 is lost, and its arrays with it: waiting "
           "for a program: CUDA_ERROR_ILLEGAL_ADDRESS");
    expect(run(p, x, y), JOT_ERR_DEVICE, "is lost");
    expect(jot_device_check(jot_cuda(0)), JOT_ERR_DEVICE, "is lost");
    ck_assert_ptr_null(jot_array_data(x));
    ck_assert_ptr_null(jot_array_to(x, jot_host()));
    ck_assert_ptr_null(jot_array_to(x, jot_cuda(1)));
    ck_assert_ptr_null(jot_array_to(a, jot_cuda(0)));
    float out[1000];
    expect(jot_array_read(y, out, 1000), JOT_ERR_DEVICE, "is lost");
    char shown[300];
    jot_array_format(x, shown, sizeof shown);
    ck_assert_msg(strstr(shown, "is lost"), "%s", shown);
    // The host and the other device go on.
    ck_assert_float_eq(((const float *)jot_array_data(a))[999], 999);
    OK(load(1, &m.plan, NULL, &other));
    jot_array *x1 = jot_array_to(a, jot_cuda(1)),
              *y1 = rt_array_create_on(jot_cuda(1), JOT_F32, 1, (int64_t[]){1000});
    OK(run(other, x1, y1));
    ck_assert_float_eq(((const float *)jot_array_data(y1))[999], 1000);
    rt_program_release(p);
    rt_program_release(other);
    jot_arrays_release(5, (jot_array *[]){a, x, y, x1, y1});
}
END_TEST

static void *run_many(void *ctx)
{
    struct rt_program *p = ctx;
    jot_array *a = ramp(1000), *x = jot_array_to(a, jot_cuda(0)),
              *y = rt_array_create_on(jot_cuda(0), JOT_F32, 1, (int64_t[]){1000});
    for (int i = 0; i < 200; i++)
        OK(run(p, x, y));
    ck_assert_float_eq(((const float *)jot_array_data(y))[7], 8);
    jot_arrays_release(3, (jot_array *[]){a, x, y});
    return NULL;
}

START_TEST(runs_on_several_threads)
{
    use_fake(NULL, NULL);
    struct map_plan m;
    struct rt_program *p[2];
    pthread_t threads[4];
    OK(load(0, make_map(&m), NULL, &p[0]));
    OK(load(0, make_map(&m), NULL, &p[1]));
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, run_many, p[i % 2]);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    rt_program_release(p[0]);
    rt_program_release(p[1]);
    ck_assert_int_eq(fake_count("fake_cuda_launches"), 800);
    expect_no_blocks();
}
END_TEST

static void *replay_many(void *ctx)
{
    jot_array *x = floats(), *y = floats();
    for (int i = 0; i < 100; i++)
        expect_turns(ctx, (float)i, x, y);
    jot_arrays_release(2, (jot_array *[]){x, y});
    return NULL;
}

START_TEST(replays_on_several_threads)
{
    use_fake(NULL, NULL);
    struct turn_plan t[2];
    struct rt_program *p[2];
    pthread_t threads[4];
    OK(jot_device_check(jot_cuda(0)));
    for (int i = 0; i < 2; i++)
        OK(load(0, make_turns(&t[i], i == 1), NULL, &p[i]));
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, replay_many, p[i % 2]);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    ck_assert_int_gt(fake_count("fake_cuda_graph_launches"), 300);
    rt_program_release(p[0]);
    rt_program_release(p[1]);
    ck_assert_int_eq(fake_count("fake_cuda_graphs"), 0);
    expect_no_blocks();
}
END_TEST

// A program that does not fit fails alone, and leaves nothing behind.
START_TEST(refuses_programs_that_do_not_fit)
{
    use_fake("FAKE_CUDA_MEMORY", "20000");
    struct turn_plan t;
    struct map_plan m;
    struct rt_program *large, *small;
    make_turns(&t, false);
    t.plan.arena_bytes = 30000;
    OK(load(0, &t.plan, NULL, &large));
    OK(load(0, make_map(&m), NULL, &small));
    jot_array *a = ramp(1000), *x = jot_array_to(a, jot_cuda(0)), *y = floats();
    for (int i = 0; i < 3; i++) {
        expect(run(large, x, y), JOT_ERR_MEMORY,
               "out of memory on cuda:0: temporaries of a program of 30000 bytes");
        OK(run(small, x, y));
        ck_assert_float_eq(((const float *)jot_array_data(y))[999], 1000);
        jot_array_release(y);
        y = floats();
    }
    rt_program_release(large);
    rt_program_release(small);
    jot_arrays_release(3, (jot_array *[]){a, x, y});
    expect_no_blocks();
}
END_TEST

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
    g->dtype = JOT_F64;
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
        buffers[i] = (struct rt_buffer){.place = i == 2 ? RT_PLACE_OUTPUT : RT_PLACE_INPUT,
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
                        .m = 2,
                        .n = 2,
                        .k = 2,
                        .lda = 2,
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
    OK(product_on(jot_cuda(0), &g, 8, there));
    ck_assert_int_eq(fake_count_of(library, "fake_cuda_alignment"), 8);
    // Matrices of a batch that calls start at.
    g.batch[0] = 2;
    g.batch[3] = 3;
    g.stride_a[0] = 5;
    OK(product_on(jot_cuda(0), &g, 0, there));
    ck_assert_int_eq(fake_count_of(library, "fake_cuda_alignment"), 4);
    setenv("FAKE_CUDA_NO_ROUTINE", "77", 1);
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
    struct rt_buffer buffers[] = {{.place = RT_PLACE_INPUT, .bytes = bytes},
                                  {.place = RT_PLACE_OUTPUT, .bytes = bytes}};
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
    char place[] = "/tmp/jot-raw-XXXXXX";
    void *code[2];
    size_t size[2];
    if (cuda_library_open(CUDA_LIBRARY_nvrtc) != JOT_OK)
        return;
    ck_assert_ptr_nonnull(mkdtemp(place));
    setenv("JOT_CACHE_DIR", place, 1);
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
    free(k);
    free(bad);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cuda");
    TCase *tests = tcase_create("cuda");
    tcase_add_test(tests, names_a_missing_driver);
    tcase_add_test(tests, names_an_old_driver);
    tcase_add_test(tests, names_a_driver_without_gpu);
    tcase_add_test(tests, names_a_driver_that_does_not_start);
    tcase_add_test(tests, names_an_entry_point_that_is_missing);
    tcase_add_test(tests, lists_devices);
    tcase_add_test(tests, chooses_the_default_device);
    tcase_add_test(tests, moves_arrays);
    tcase_add_test(tests, shows_arrays);
    tcase_add_test(tests, borrows_memory_of_a_gpu);
    tcase_add_test(tests, keeps_memory_for_reuse);
    tcase_add_test(tests, goes_on_when_memory_is_out);
    tcase_add_test(tests, runs_a_map);
    tcase_add_test(tests, fills_the_device);
    tcase_add_test(tests, refuses_what_it_cannot_launch);
    tcase_add_test(tests, loops_by_the_host);
    tcase_add_test(tests, replays_segments);
    tcase_add_test(tests, forgets_old_graphs);
    tcase_add_test(tests, runs_what_it_cannot_capture);
    tcase_add_test(tests, loses_a_device_in_a_graph);
    tcase_add_test(tests, loses_a_device_that_fails);
    tcase_add_test(tests, runs_on_several_threads);
    tcase_add_test(tests, replays_on_several_threads);
    tcase_add_test(tests, refuses_programs_that_do_not_fit);
    tcase_add_test(tests, multiplies_as_the_host_does);
    tcase_add_test(tests, does_more_than_multiply);
    tcase_add_test(tests, says_what_products_may_be);
    tcase_add_test(tests, runs_kernels_of_the_user);
    tcase_add_test(tests, maps_kernels_by_the_grid);
    tcase_add_test(tests, says_what_is_wrong_with_a_kernel);
    tcase_add_test(tests, compiles_cuda_c);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
