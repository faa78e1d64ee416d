// SPDX-License-Identifier: Apache-2.0
// Programs over the driver of fake_cuda: launches, graphs, lost devices.
#include "base/arena.h"
#include "base/memory.h"
#include "cuda_support.h"
#include "runtime/cuda/device.h"
#include "support/suite.h"

#include <pthread.h>

static const char text[] = "add_one\0double_it\0tell\0nothing\0below";
enum { ADD_ONE = 0, DOUBLE_IT = 8, TELL = 18, NOTHING = 23, BELOW = 31 };

// Two images of the fake assembler.
static const char ptx[] = "add_one tell \0double_it below ";

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
                           .buffers = {{.memory = RT_MEMORY_INPUT, .bytes = 4000},
                                       {.memory = RT_MEMORY_OUTPUT, .bytes = 4000}},
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

static int fake_submitted(CUstream stream)
{
    int (*count)(CUstream);
    fake_find("libcuda.so.1", "fake_cuda_submitted", &count, sizeof count);
    return count(stream);
}

// Programs and copies on a stream of the user's, and on jot's own again.
START_TEST(works_on_a_stream_of_the_user)
{
    use_fake(NULL, NULL);
    struct map_plan m;
    struct rt_program *p;
    OK(load(0, make_map(&m), NULL, &p));
    OK(cuda_enter(cuda_device_of(jot_cuda(0))));
    static CUstream mine; // lives as long as the process
    CUstream own = cuda_stream(cuda_device_of(jot_cuda(0)));
    ck_assert_int_eq(cuda.driver.cuStreamCreate(&mine, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    cuda_leave();
    jot_array *a = ramp(1000), *x = jot_array_to(a, jot_cuda(0)),
              *y = rt_array_create_on(jot_cuda(0), JOT_F32, 1, (int64_t[]){1000});
    OK(jot_device_set_stream(jot_cuda(0), mine));
    int before = fake_submitted(own);
    OK(run(p, x, y));
    ck_assert_float_eq(((const float *)jot_array_data(y))[7], 8);
    ck_assert_int_eq(fake_submitted(own), before);
    ck_assert_int_gt(fake_submitted(mine), 0);
    OK(jot_device_set_stream(jot_cuda(0), NULL));
    OK(run(p, x, y));
    ck_assert_int_gt(fake_submitted(own), before);
    expect(jot_device_set_stream(jot_host(), mine), JOT_ERR_ARGUMENT, "host has no streams");
    rt_program_release(p);
    jot_arrays_release(3, (jot_array *[]){a, x, y});
    expect_no_blocks();
}
END_TEST

static void expect_launch(struct rt_step step, const int32_t wanted[6])
{
    static const uint32_t operand = 0;
    struct rt_argument out = {.bytes = 24, .donated = -1};
    struct rt_buffer buffer = {.memory = RT_MEMORY_OUTPUT, .bytes = 24};
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
    jot_array *y = rt_array_create_on(jot_cuda(0), JOT_I32, 1, (int64_t[]){6});
    OK(run(p, NULL, y));
    const int32_t *told = jot_array_data(y);
    for (int i = 0; i < 6; i++)
        ck_assert_msg(told[i] == wanted[i], "%d: %d, not %d", i, told[i], wanted[i]);
    jot_array_release(y);
    rt_program_release(p);
}

// 4 multiprocessors run 2048 threads each.
START_TEST(fills_the_device)
{
    use_fake(NULL, NULL);
    expect_launch((struct rt_step){.total = 1000, .grain = 256, .block = 256},
                  (int32_t[6]){4, 256, 0, 0, 0});
    expect_launch((struct rt_step){.total = 100000, .grain = 256, .block = 256},
                  (int32_t[6]){32, 256, 0, 0, 0});
    expect_launch((struct rt_step){.total = 100000,
                                   .grain = 256,
                                   .block = 256,
                                   .flags = RT_STEP_EXACT_GRID,
                                   .scratch_bytes = 100000},
                  (int32_t[6]){391, 256, 100000, 0, 0});
    expect_launch(
        (struct rt_step){
            .total = 1000, .grain = 1, .block = 1024, .flags = RT_STEP_COOPERATIVE},
        (int32_t[6]){8, 1024, 0, 1, 0});
    expect_launch((struct rt_step){.total = 1000, .grain = 1, .block = 128, .cluster = 4},
                  (int32_t[6]){12, 128, 0, 0, 4});
    expect_launch((struct rt_step){.total = 5, .grain = 1, .block = 128, .cluster = 4},
                  (int32_t[6]){8, 128, 0, 0, 4});
    expect_launch(
        (struct rt_step){.total = 5, .grain = 1, .block = 128, .flags = RT_STEP_EARLY},
        (int32_t[6]){5, 128, 0, 0, 0, 1});
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
    struct rt_buffer buffers[] = {{.memory = RT_MEMORY_CONSTANT, .bytes = 8},
                                  {.memory = RT_MEMORY_OUTPUT, .bytes = 8},
                                  {.memory = RT_MEMORY_ARENA, .bytes = 1}};
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
        .buffers = {{.memory = RT_MEMORY_INPUT, .bytes = 4000},
                    {.memory = RT_MEMORY_OUTPUT, .bytes = 4000},
                    {.memory = RT_MEMORY_ARENA, .bytes = 4000},
                    {.memory = RT_MEMORY_ARENA, .offset = 4096, .bytes = 4000},
                    {.memory = RT_MEMORY_TURN, .bytes = 4000, .of_first = 4, .of_count = 2},
                    {.memory = RT_MEMORY_TURN,
                     .index = 1,
                     .bytes = 4000,
                     .of_first = 6,
                     .of_count = 2}},
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

static char heard[256];

static void hear(const char *step)
{
    strncat(heard, step, sizeof heard - strlen(heard) - 1);
    strncat(heard, " ", sizeof heard - strlen(heard) - 1);
}

// while x < 100: x *= 2, to and fro between two memories.
START_TEST(replays_whiles)
{
    use_fake(NULL, NULL);
    enum { IN, OUT, EVEN, ODD, NOW, NEXT, FLAG, UNUSED };
    struct rt_argument argument = {.bytes = 8, .donated = -1};
    struct rt_buffer buffers[] = {
        {.memory = RT_MEMORY_INPUT, .bytes = 8},
        {.memory = RT_MEMORY_OUTPUT, .bytes = 8},
        {.memory = RT_MEMORY_ARENA, .bytes = 8},
        {.memory = RT_MEMORY_ARENA, .offset = 64, .bytes = 8},
        {.memory = RT_MEMORY_TURN, .bytes = 8, .of_first = 0, .of_count = 2},
        {.memory = RT_MEMORY_TURN, .index = 1, .bytes = 8, .of_first = 0, .of_count = 2},
        {.memory = RT_MEMORY_ARENA, .offset = 128, .bytes = 1},
        {.memory = RT_MEMORY_ARENA, .offset = 192, .bytes = 1}};
    uint32_t operands[] = {EVEN, ODD, EVEN, IN, NOW, FLAG, NEXT, NOW, NEXT, UNUSED, OUT, NOW};
    struct rt_step double_it = {.kind = RT_STEP_KERNEL,
                                .name = DOUBLE_IT,
                                .title = DOUBLE_IT,
                                .operand_first = 8,
                                .operand_count = 2,
                                .total = 1,
                                .grain = 1,
                                .block = 1};
    struct rt_step below = double_it;
    below.name = below.title = BELOW;
    below.operand_first = 4;
    struct rt_step steps[] = {
        {.kind = RT_STEP_COPY, .operand_first = 2, .operand_count = 2},
        {.kind = RT_STEP_LOOP, .total = -1, .target = 7},
        below,
        {.kind = RT_STEP_JUMP_IFN, .operand_first = 5, .operand_count = 1, .target = 7},
        {.kind = RT_STEP_COPY, .operand_first = 6, .operand_count = 2},
        double_it,
        {.kind = RT_STEP_NEXT, .total = -1, .target = 2},
        {.kind = RT_STEP_COPY, .operand_first = 10, .operand_count = 2}};
    struct rt_plan plan = {.input_count = 1,
                           .output_count = 1,
                           .buffer_count = 8,
                           .operand_count = 12,
                           .step_count = 8,
                           .loop_count = 1,
                           .arena_bytes = 256,
                           .text_bytes = sizeof text,
                           .inputs = &argument,
                           .outputs = &argument,
                           .buffers = buffers,
                           .operands = operands,
                           .steps = steps,
                           .text = text};
    struct rt_program *p;
    OK(load(0, &plan, NULL, &p));
    jot_array *x = rt_array_create_on(jot_cuda(0), JOT_F64, 0, NULL),
              *y = rt_array_create_on(jot_cuda(0), JOT_F64, 0, NULL);
    for (int call = 0; call < 9; call++) {
        double start = (double[]){3, 200, 60, 30, 1}[call % 5], got, wanted = start;
        while (wanted < 100)
            wanted *= 2;
        OK(cuda_upload(jot_cuda(0), x->data, &start, sizeof start));
        OK(run(p, x, y));
        OK(cuda_download(jot_cuda(0), &got, y->data, sizeof got));
        ck_assert_double_eq(got, wanted);
        ck_assert_int_eq(fake_count("fake_cuda_graph_launches"), call);
    }
    // One that is watched is launched step by step.
    double start = 60, got;
    rt_program_watch(p, hear);
    OK(cuda_upload(jot_cuda(0), x->data, &start, sizeof start));
    OK(run(p, x, y));
    OK(cuda_download(jot_cuda(0), &got, y->data, sizeof got));
    ck_assert_double_eq(got, 120);
    ck_assert_str_eq(heard, "copy below copy double_it below copy ");
    ck_assert_int_eq(fake_count("fake_cuda_graph_launches"), 8);
    rt_program_release(p);
    jot_arrays_release(2, (jot_array *[]){x, y});
    ck_assert_int_eq(fake_count("fake_cuda_graphs"), 0);
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

static void add_tests(TCase *tests)
{
    tcase_add_test(tests, runs_a_map);
    tcase_add_test(tests, works_on_a_stream_of_the_user);
    tcase_add_test(tests, fills_the_device);
    tcase_add_test(tests, refuses_what_it_cannot_launch);
    tcase_add_test(tests, loops_by_the_host);
    tcase_add_test(tests, replays_segments);
    tcase_add_test(tests, forgets_old_graphs);
    tcase_add_test(tests, replays_whiles);
    tcase_add_test(tests, runs_what_it_cannot_capture);
    tcase_add_test(tests, loses_a_device_in_a_graph);
    tcase_add_test(tests, loses_a_device_that_fails);
    tcase_add_test(tests, runs_on_several_threads);
    tcase_add_test(tests, replays_on_several_threads);
    tcase_add_test(tests, refuses_programs_that_do_not_fit);
}

int main(void) { return suite_run("cuda programs", add_tests); }
