// SPDX-License-Identifier: Apache-2.0
// Loops in programs: steps that jump back, and functions that hold a whole loop.
#include "program_support.h"

#include "runtime/host/blas.h"

// while (state < limit) state *= 2, a copy in front, a callback behind.
struct loop_plan {
    struct rt_plan plan;
    struct rt_argument arguments[3];
    struct rt_buffer buffers[4];
    uint32_t operands[7];
    int64_t params[2];
    struct rt_step steps[4];
};

static const struct rt_plan *make_loop(struct loop_plan *p)
{
    *p = (struct loop_plan){
        .arguments = {{.bytes = 8, .donated = -1},
                      {.bytes = 8, .donated = -1},
                      {.bytes = 8, .donated = 0}},
        .buffers = {{.memory = RT_MEMORY_INPUT, .index = 0, .bytes = 8},
                    {.memory = RT_MEMORY_INPUT, .index = 1, .bytes = 8},
                    {.memory = RT_MEMORY_OUTPUT, .bytes = 8},
                    {.memory = RT_MEMORY_ARENA, .bytes = 1}},
        .operands = {2, 0, 2, 3, 1, 3, 2},
        .params = {11, 22},
        .steps = {
            {.kind = RT_STEP_COPY, .operand_first = 0, .operand_count = 2},
            {.kind = RT_STEP_KERNEL,
             .name = DOUBLE_IT,
             .title = DOUBLE_IT,
             .operand_first = 2,
             .operand_count = 3,
             .total = 1,
             .grain = 1},
            {.kind = RT_STEP_JUMP_IF, .operand_first = 5, .operand_count = 1, .target = 1},
            {.kind = RT_STEP_CALLBACK,
             .operand_first = 6,
             .operand_count = 1,
             .param_first = 1,
             .param_count = 1}}};
    p->plan = (struct rt_plan){.input_count = 2,
                               .output_count = 1,
                               .buffer_count = 4,
                               .operand_count = 7,
                               .step_count = 4,
                               .param_count = 2,
                               .text_bytes = sizeof text,
                               .arena_bytes = 64,
                               .inputs = p->arguments,
                               .outputs = p->arguments + 2,
                               .buffers = p->buffers,
                               .operands = p->operands,
                               .params = p->params,
                               .steps = p->steps,
                               .text = text};
    return &p->plan;
}

static jot_status negate(void *ctx, void *const *buffers, const int64_t *params)
{
    double *state = buffers[0];
    *(int64_t *)ctx = params[0];
    *state = -*state;
    return *state == -1024 ? JOT_OK : JOT_ERR_DEVICE;
}

static char heard[256];

static void hear(const char *step)
{
    strncat(heard, step, sizeof heard - strlen(heard) - 1);
    strncat(heard, " ", sizeof heard - strlen(heard) - 1);
}

START_TEST(loops_and_calls_back)
{
    struct loop_plan p;
    int64_t param = 0;
    jot_status status;
    struct rt_callback callback = {.call = negate, .ctx = &param};
    struct rt_program *program = load_with(make_loop(&p), &callback, &status);
    ck_assert_msg(status == JOT_OK, "%s", jot_error_message());
    double start = 1, limit = 1000, state = 0;
    ck_assert_int_eq(
        rt_program_run(program, (const void *[]){&start, &limit}, (void *[]){&state}), JOT_OK);
    ck_assert(state == -1024);
    ck_assert_int_eq(param, 22);
    rt_program_watch(program, hear);
    state = 0, start = 2, limit = 5; // the callback fails
    ck_assert_int_eq(
        rt_program_run(program, (const void *[]){&start, &limit}, (void *[]){&state}),
        JOT_ERR_DEVICE);
    ck_assert_str_eq(heard, "copy double_it double_it callback ");
    rt_program_release(program);
    program = load_with(&p.plan, NULL, &status);
    ck_assert_int_eq(status, JOT_ERR_ARGUMENT);
    ck_assert_ptr_null(program);
}
END_TEST

// A loop as one function, between two memories; the output is a copy of where it ends.  It makes a
// product in the way.
struct phases_plan {
    struct rt_plan plan;
    struct rt_argument arguments[4];
    struct rt_buffer buffers[7];
    uint32_t operands[13];
    struct rt_step steps[3];
    struct rt_gemm gemm;
};

static const struct rt_plan *make_phases(struct phases_plan *p)
{
    *p = (struct phases_plan){
        .arguments = {{.bytes = 4000, .donated = -1},
                      {.bytes = 8, .donated = -1},
                      {.bytes = 8, .donated = -1},
                      {.bytes = 4000, .donated = -1}},
        .buffers = {{.memory = RT_MEMORY_INPUT, .index = 0, .bytes = 4000},
                    {.memory = RT_MEMORY_INPUT, .index = 1, .bytes = 8},
                    {.memory = RT_MEMORY_INPUT, .index = 2, .bytes = 8},
                    {.memory = RT_MEMORY_OUTPUT, .bytes = 4000},
                    {.memory = RT_MEMORY_ARENA, .bytes = 4000},
                    {.memory = RT_MEMORY_ARENA, .offset = 4032, .bytes = 4000},
                    {.memory = RT_MEMORY_TURN, .bytes = 4000, .of_count = 2}},
        .operands = {4, 5, 4, 0, 4, 5, 1, 2, 0, 0, 3, 3, 6},
        .steps =
            {{.kind = RT_STEP_COPY, .operand_first = 2, .operand_count = 2},
             {.kind = RT_STEP_PHASES, .name = COUNT_UP, .operand_first = 4, .operand_count = 7},
             {.kind = RT_STEP_COPY, .operand_first = 11, .operand_count = 2}},
        .gemm = {.dtype = JOT_F32,
                 .operands = JOT_F32,
                 .m = 1,
                 .n = 1,
                 .k = 1,
                 .lda = 1,
                 .ldb = 1,
                 .ldc = 1,
                 .alpha = 1,
                 .batch = {1, 1, 1, 1}}};
    p->plan = (struct rt_plan){.input_count = 3,
                               .output_count = 1,
                               .buffer_count = 7,
                               .operand_count = 13,
                               .step_count = 3,
                               .gemm_count = 1,
                               .loop_count = 1,
                               .text_bytes = sizeof text,
                               .arena_bytes = 12096,
                               .inputs = p->arguments,
                               .outputs = p->arguments + 3,
                               .buffers = p->buffers,
                               .operands = p->operands,
                               .gemms = &p->gemm,
                               .steps = p->steps,
                               .text = text};
    return &p->plan;
}

START_TEST(runs_a_loop_as_one_function)
{
    struct phases_plan p;
    float x[1000], y[1000];
    for (int i = 0; i < 1000; i++)
        x[i] = (float)i;
    if (rt_blas_open() != JOT_OK)
        return;
    struct rt_program *program = load(make_phases(&p));
    int64_t trips = 9, product = 3;
    for (int threads = 1; threads <= 4; threads++)
        for (trips = 0; trips < 50; trips += 7) {
            ck_assert_int_eq(jot_set_threads(threads), JOT_OK);
            ck_assert_int_eq(
                rt_program_run(program, (const void *[]){x, &trips, &product}, (void *[]){y}),
                JOT_OK);
            for (int i = 0; i < 1000; i++)
                ck_assert(y[i] == (float)(i + trips));
        }
    rt_program_release(program);
    make_phases(&p);
    p.gemm.m = INT64_C(1) << 31; // the library takes less
    program = load(&p.plan);
    ck_assert_int_eq(
        rt_program_run(program, (const void *[]){x, &trips, &product}, (void *[]){y}),
        JOT_ERR_SHAPE);
    rt_program_release(program);
    p.steps[1].index = 1;
    ck_assert_int_eq(rt_plan_check(&p.plan), JOT_ERR_IO);
    make_phases(&p);
    p.steps[1].name = sizeof text;
    ck_assert_int_eq(rt_plan_check(&p.plan), JOT_ERR_IO);
}
END_TEST

static void add_tests(TCase *tests)
{
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, loops_and_calls_back);
    tcase_add_test(tests, runs_a_loop_as_one_function);
}

int main(void) { return suite_run("program loops", add_tests); }
