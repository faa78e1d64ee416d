// SPDX-License-Identifier: Apache-2.0
#include "program_support.h"

#include "base/memory.h"
#include "runtime/array.h"
#include "runtime/host/blas.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

// y = x + 1 over n floats in chunks.
struct map_plan {
    struct rt_plan plan;
    struct rt_argument arguments[2];
    struct rt_buffer buffers[2];
    uint32_t operands[2];
    struct rt_step step;
};

static const struct rt_plan *make_map(struct map_plan *p, int64_t n, int64_t grain,
                                      bool is_parallel)
{
    uint64_t bytes = (uint64_t)n * 4;
    *p = (struct map_plan){
        .arguments = {{.bytes = bytes, .donated = -1}, {.bytes = bytes, .donated = 0}},
        .buffers = {{.memory = RT_MEMORY_OUTPUT, .bytes = bytes},
                    {.memory = RT_MEMORY_INPUT, .bytes = bytes}},
        .operands = {0, 1},
        .step = {.kind = RT_STEP_KERNEL,
                 .flags = is_parallel ? RT_STEP_PARALLEL : 0,
                 .name = ADD_ONE,
                 .operand_count = 2,
                 .total = n,
                 .grain = grain}};
    p->plan = (struct rt_plan){.input_count = 1,
                               .output_count = 1,
                               .buffer_count = 2,
                               .operand_count = 2,
                               .step_count = 1,
                               .text_bytes = sizeof text,
                               .inputs = &p->arguments[0],
                               .outputs = &p->arguments[1],
                               .buffers = p->buffers,
                               .operands = p->operands,
                               .steps = &p->step,
                               .text = text};
    return &p->plan;
}

START_TEST(runs_a_map)
{
    for (int is_parallel = 0; is_parallel < 2; is_parallel++)
        for (int64_t n = 0; n < 5000; n = n * 3 + 1)
            for (int64_t grain = 1; grain <= 5000; grain *= 70) {
                struct map_plan p;
                struct rt_program *program = load(make_map(&p, n, grain, is_parallel));
                float *x = malloc((size_t)n * 4 + 4), *y = malloc((size_t)n * 4 + 4);
                y[n] = -1;
                for (int64_t i = 0; i < n; i++)
                    x[i] = (float)i;
                for (int round = 0; round < 3; round++)
                    ck_assert_int_eq(
                        rt_program_run(program, (const void *[]){x}, (void *[]){y}), JOT_OK);
                for (int64_t i = 0; i < n; i++)
                    ck_assert(y[i] == (float)i + 1);
                ck_assert(y[n] == -1);
                free(x), free(y);
                rt_program_release(program);
            }
}
END_TEST

// A sum in two steps: partials in the arena, their number in the constants.
#define SUM_N 100000
#define SUM_GRAIN 4096
#define SUM_CHUNKS ((SUM_N + SUM_GRAIN - 1) / SUM_GRAIN)

struct sum_plan {
    struct rt_plan plan;
    struct rt_argument arguments[2];
    struct rt_buffer buffers[4];
    uint32_t operands[5];
    struct rt_step steps[2];
    int64_t constants[1];
};

static const struct rt_plan *make_sum(struct sum_plan *p)
{
    *p = (struct sum_plan){
        .arguments = {{.bytes = SUM_N * 8, .donated = -1}, {.bytes = 8, .donated = -1}},
        .buffers = {{.memory = RT_MEMORY_INPUT, .bytes = SUM_N * 8},
                    {.memory = RT_MEMORY_OUTPUT, .bytes = 8},
                    {.memory = RT_MEMORY_ARENA, .offset = 64, .bytes = SUM_CHUNKS * 8},
                    {.memory = RT_MEMORY_CONSTANT, .bytes = 8}},
        .operands = {2, 0, 1, 2, 3},
        .steps = {{.kind = RT_STEP_KERNEL,
                   .flags = RT_STEP_PARALLEL,
                   .name = SUM_CHUNK,
                   .operand_count = 2,
                   .total = SUM_N,
                   .grain = SUM_GRAIN,
                   .scratch_bytes = 8},
                  {.kind = RT_STEP_KERNEL,
                   .name = SUM_PARTIALS,
                   .operand_first = 2,
                   .operand_count = 3,
                   .total = 1,
                   .grain = 1}},
        .constants = {SUM_CHUNKS}};
    p->plan = (struct rt_plan){.input_count = 1,
                               .output_count = 1,
                               .buffer_count = 4,
                               .operand_count = 5,
                               .step_count = 2,
                               .text_bytes = sizeof text,
                               .constant_bytes = sizeof p->constants,
                               .arena_bytes = 64 + SUM_CHUNKS * 8,
                               .inputs = &p->arguments[0],
                               .outputs = &p->arguments[1],
                               .buffers = p->buffers,
                               .operands = p->operands,
                               .steps = p->steps,
                               .text = text,
                               .constants = p->constants};
    return &p->plan;
}

static double *uneven_numbers(void)
{
    double *x = malloc(SUM_N * sizeof *x);
    for (int i = 0; i < SUM_N; i++)
        x[i] = 1.0 / (i + 1);
    return x;
}

static double sum_in_chunks(const double *x)
{
    double total = 0;
    for (int chunk = 0; chunk < SUM_CHUNKS; chunk++) {
        double partial = 0;
        for (int i = chunk * SUM_GRAIN; i < (chunk + 1) * SUM_GRAIN && i < SUM_N; i++)
            partial += x[i];
        total += partial;
    }
    return total;
}

START_TEST(sums_alike_on_any_number_of_threads)
{
    struct sum_plan p;
    struct rt_program *program = load(make_sum(&p));
    double *x = uneven_numbers(), expected = sum_in_chunks(x);
    for (int threads = 1; threads <= 6; threads++) {
        ck_assert_int_eq(jot_set_threads(threads), JOT_OK);
        for (int round = 0; round < 20; round++) {
            double sum = 0;
            ck_assert_int_eq(rt_program_run(program, (const void *[]){x}, (void *[]){&sum}),
                             JOT_OK);
            ck_assert(sum == expected);
        }
    }
    free(x);
    rt_program_release(program);
}
END_TEST

struct caller {
    struct rt_program *program;
    const double *x;
    double expected;
    int faults;
};

static void *call_often(void *arg)
{
    struct caller *c = arg;
    for (int i = 0; i < 100; i++) {
        double sum = 0;
        if (rt_program_run(c->program, (const void *[]){c->x}, (void *[]){&sum}) != JOT_OK ||
            sum != c->expected)
            c->faults++;
    }
    return NULL;
}

START_TEST(runs_on_several_threads_at_once)
{
    struct sum_plan p;
    double *x = uneven_numbers();
    struct rt_program *program = load(make_sum(&p));
    struct caller callers[6];
    pthread_t threads[6];
    ck_assert_int_eq(jot_set_threads(4), JOT_OK);
    for (int i = 0; i < 6; i++) {
        callers[i] = (struct caller){.program = program, .x = x, .expected = sum_in_chunks(x)};
        pthread_create(&threads[i], NULL, call_often, &callers[i]);
    }
    for (int i = 0; i < 6; i++) {
        pthread_join(threads[i], NULL);
        ck_assert_int_eq(callers[i].faults, 0);
    }
    free(x);
    rt_program_release(program);
}
END_TEST

START_TEST(names_a_missing_kernel)
{
    struct map_plan p;
    jot_status status;
    make_map(&p, 1, 1, false);
    p.step.name = NO_SUCH;
    ck_assert_ptr_null(load_with(&p.plan, NULL, &status));
    ck_assert_int_eq(status, JOT_ERR_IO);
    ck_assert_ptr_nonnull(strstr(jot_error_message(), "no_such_kernel"));
}
END_TEST

START_TEST(names_a_missing_routine)
{
    struct rt_argument argument = {.bytes = 8, .donated = -1};
    struct rt_buffer buffers[2] = {{.memory = RT_MEMORY_INPUT, .bytes = 8},
                                   {.memory = RT_MEMORY_OUTPUT, .bytes = 8}};
    uint32_t operands[2] = {0, 1};
    int64_t params[4] = {JOT_C64, 1, 0, 1};
    struct rt_step step = {
        .kind = RT_STEP_LIBRARY, .index = 1, .operand_count = 2, .param_count = 4};
    struct rt_plan plan = {.input_count = 1,
                           .output_count = 1,
                           .buffer_count = 2,
                           .operand_count = 2,
                           .step_count = 1,
                           .param_count = 4,
                           .text_bytes = 4,
                           .inputs = &argument,
                           .outputs = &argument,
                           .buffers = buffers,
                           .operands = operands,
                           .params = params,
                           .steps = &step,
                           .text = "fft"};
    float x[2] = {3, 4}, y[2] = {0};
    struct rt_program *program = load(&plan);
    ck_assert_int_eq(rt_program_run(program, (const void *[]){x}, (void *[]){y}), JOT_OK);
    ck_assert(y[0] == 3 && y[1] == 4);
    rt_program_release(program);
    const void *bytes;
    size_t size;
    struct arena *arena = arena_create();
    plan.text = "fit";
    rt_plan_write(&plan, arena, &bytes, &size);
    ck_assert_int_eq(rt_program_load(jot_host(), NULL, 0, bytes, size, NULL, 0, &program),
                     JOT_ERR_IO);
    ck_assert_str_eq(jot_error_message(),
                     "the program needs the routine fit, which there is not");
    arena_release(arena);
    step.index = 2;
    ck_assert_int_eq(rt_plan_check(&plan), JOT_ERR_IO);
}
END_TEST

START_TEST(multiplies_matrices)
{
    struct rt_argument arguments[3] = {{.bytes = 24}, {.bytes = 24}, {.bytes = 16}};
    struct rt_buffer buffers[3] = {{.memory = RT_MEMORY_INPUT, .index = 0, .bytes = 24},
                                   {.memory = RT_MEMORY_INPUT, .index = 1, .bytes = 24},
                                   {.memory = RT_MEMORY_OUTPUT, .bytes = 16}};
    uint32_t operands[3] = {0, 1, 2};
    struct rt_gemm gemm = {.dtype = JOT_F32,
                           .operands = JOT_F32,
                           .m = 2,
                           .n = 2,
                           .k = 3,
                           .lda = 3,
                           .ldb = 2,
                           .ldc = 2,
                           .alpha = 1,
                           .batch = {1, 1, 1, 1}};
    struct rt_step step = {.kind = RT_STEP_GEMM, .operand_count = 3};
    struct rt_plan plan = {.input_count = 2,
                           .output_count = 1,
                           .buffer_count = 3,
                           .operand_count = 3,
                           .step_count = 1,
                           .gemm_count = 1,
                           .inputs = arguments,
                           .outputs = arguments + 2,
                           .buffers = buffers,
                           .operands = operands,
                           .steps = &step,
                           .gemms = &gemm};
    if (rt_blas_open() != JOT_OK)
        return;
    struct rt_program *program = load(&plan);
    float a[6] = {1, 2, 3, 4, 5, 6}, b[6] = {1, 0, 0, 1, 1, 1}, c[4];
    ck_assert_int_eq(rt_program_run(program, (const void *[]){a, b}, (void *[]){c}), JOT_OK);
    ck_assert(c[0] == 4 && c[1] == 5 && c[2] == 10 && c[3] == 11);
    rt_program_release(program);
    gemm.k = 4; // more than the buffers hold
    gemm.lda = 4;
    ck_assert_int_eq(rt_plan_check(&plan), JOT_ERR_IO);
    gemm.k = INT64_MAX / 2, gemm.lda = INT64_MAX / 2;
    ck_assert_int_eq(rt_plan_check(&plan), JOT_ERR_IO);
}
END_TEST

static bool is_same_plan(const struct rt_plan *a, const struct rt_plan *b)
{
    return a->step_count == b->step_count && a->arena_bytes == b->arena_bytes &&
           !memcmp(a->steps, b->steps, a->step_count * sizeof *a->steps) &&
           !memcmp(a->buffers, b->buffers, a->buffer_count * sizeof *a->buffers) &&
           !memcmp(a->operands, b->operands, a->operand_count * sizeof *a->operands) &&
           !memcmp(a->constants, b->constants, a->constant_bytes) &&
           !memcmp(a->inputs, b->inputs, a->input_count * sizeof *a->inputs);
}

START_TEST(plans_survive_bytes_and_damage)
{
    struct sum_plan p;
    struct arena *arena = arena_create();
    const void *bytes;
    size_t size;
    struct rt_plan back = {0};
    rt_plan_write(make_sum(&p), arena, &bytes, &size);
    ck_assert_int_eq(rt_plan_read(bytes, size, &back), JOT_OK);
    ck_assert(is_same_plan(&p.plan, &back));
    for (size_t n = 0; n < size; n++) {
        char *part = malloc(n + 1);
        memcpy(part, bytes, n);
        ck_assert_int_eq(rt_plan_read(part, n, &back), JOT_ERR_IO);
        free(part);
    }
    unsigned seed = (unsigned)time(NULL);
    printf("plans_survive_bytes_and_damage: seed %u\n", seed);
    srand(seed);
    char *copy = malloc(size);
    for (int i = 0; i < 100000; i++) {
        memcpy(copy, bytes, size);
        for (int k = rand() % 3; k >= 0; k--)
            copy[(size_t)rand() % size] = (char)(rand() & 1 ? rand() : 1 << rand() % 8);
        rt_plan_read(copy, size, &back); // any answer, but no crash
    }
    free(copy);
    arena_release(arena);
}
END_TEST

#define REFUSED(change)                                                                        \
    do {                                                                                       \
        make_sum(&p);                                                                          \
        change;                                                                                \
        ck_assert_int_eq(rt_plan_check(&p.plan), JOT_ERR_IO);                                  \
    } while (0)

START_TEST(clears)
{
    static const uint32_t operand = 0;
    struct rt_argument argument = {.bytes = 12, .donated = -1};
    struct rt_buffer buffer = {.memory = RT_MEMORY_OUTPUT, .offset = 4, .bytes = 4};
    struct rt_step step = {.kind = RT_STEP_CLEAR, .operand_count = 1, .grain = 1};
    struct rt_plan plan = {.output_count = 1,
                           .buffer_count = 1,
                           .operand_count = 1,
                           .step_count = 1,
                           .outputs = &argument,
                           .buffers = &buffer,
                           .operands = &operand,
                           .steps = &step};
    int32_t numbers[3] = {7, 8, 9};
    struct rt_program *program = load(&plan);
    ck_assert_int_eq(rt_program_run(program, NULL, (void *[]){numbers}), JOT_OK);
    ck_assert(numbers[0] == 7 && numbers[1] == 0 && numbers[2] == 9);
    rt_program_release(program);
}
END_TEST

START_TEST(checks_plans)
{
    struct sum_plan p;
    ck_assert_int_eq(rt_plan_check(make_sum(&p)), JOT_OK);
    REFUSED(p.buffers[0].memory = 9);
    REFUSED(p.buffers[0].index = 1);
    REFUSED(p.buffers[0].bytes++);
    REFUSED(p.buffers[2].offset = UINT64_MAX);
    REFUSED(p.buffers[3].offset = 1);
    REFUSED(p.operands[4] = 4);
    REFUSED(p.steps[1].operand_first = 3);
    REFUSED(p.steps[1].operand_first = UINT32_MAX);
    REFUSED(p.steps[0].kind = RT_STEP_KIND_COUNT);
    REFUSED(p.steps[0].grain = 0);
    REFUSED(p.steps[0].total = -1);
    REFUSED(p.steps[0].name = sizeof text);
    REFUSED(p.steps[0].kind = RT_STEP_GEMM);
    REFUSED(p.steps[0].kind = RT_STEP_COPY);
    REFUSED(p.steps[0].kind = RT_STEP_CLEAR; p.steps[0].operand_count = 2);
    REFUSED(p.steps[0].block = 1025);
    REFUSED(p.steps[0].cluster = 17);
    REFUSED(p.steps[0].kind = RT_STEP_JUMP; p.steps[0].target = 3);
    REFUSED(p.steps[0].kind = RT_STEP_JUMP_IF);
    REFUSED(p.steps[0].param_count = 1);
    REFUSED(p.arguments[1].donated = 1);
    REFUSED(p.plan.text_bytes -= 1);
}
END_TEST

START_TEST(survives_lack_of_memory)
{
    struct sum_plan p;
    struct arena *arena = arena_create();
    const void *bytes;
    size_t size, object_size;
    const char *object = kernels(&object_size);
    double *x = uneven_numbers(), sum;
    rt_plan_write(make_sum(&p), arena, &bytes, &size);
    (void)jot_threads();
    int64_t live = memory_live_blocks();
    size_t blocks = jot_memory().blocks;
    bool is_done = false;
    for (uint64_t n = 1; !is_done; n++) {
        struct rt_program *program = NULL;
        memory_fail_after(n);
        jot_status status =
            rt_program_load(jot_host(), object, object_size, bytes, size, NULL, 0, &program);
        if (status == JOT_OK) {
            status = rt_program_run(program, (const void *[]){x}, (void *[]){&sum});
            is_done = status == JOT_OK;
        }
        memory_fail_after(0);
        ck_assert(status == JOT_OK || status == JOT_ERR_MEMORY);
        if (program && !is_done) // works once there is memory again
            ck_assert_int_eq(rt_program_run(program, (const void *[]){x}, (void *[]){&sum}),
                             JOT_OK);
        rt_program_release(program);
        ck_assert_uint_eq(jot_memory().blocks, blocks);
        ck_assert_uint_lt(n, 200);
    }
    ck_assert_int_le(memory_live_blocks(), live + 1); // the list of the pool's threads
    arena_release(arena);
    free(x);
}
END_TEST

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

START_TEST(calls_cost_little_and_allocate_nothing)
{
    struct map_plan p;
    struct rt_program *program = load(make_map(&p, 1, 1, false));
    jot_array *x = jot_array_full(JOT_F32, 1);
    const int rounds = 200000;
    double best = 1e9, best_array = 1e9;
    float y;
    rt_program_run(program, (const void *[]){x->data}, (void *[]){&y});
    int64_t live = memory_live_blocks();
    memory_fail_after(1); // no allocation of the heap or of the pool can succeed
    for (int repeat = 0; repeat < 5; repeat++) {
        double start = now();
        for (int i = 0; i < rounds; i++)
            rt_program_run(program, (const void *[]){x->data}, (void *[]){&y});
        double each = (now() - start) / rounds;
        best = each < best ? each : best;
    }
    memory_fail_after(0);
    for (int repeat = 0; repeat < 5; repeat++) {
        double start = now();
        for (int i = 0; i < rounds; i++) {
            jot_array *out = rt_array_create(JOT_F32, 0, NULL);
            rt_program_run(program, (const void *[]){x->data}, (void *[]){out->data});
            jot_array_release(out);
        }
        double each = (now() - start) / rounds;
        best_array = each < best_array ? each : best_array;
    }
    ck_assert_int_eq(memory_live_blocks(), live);
    printf("a call: %.1f ns, with a new output array %.1f ns\n", best, best_array);
    jot_array_release(x);
    rt_program_release(program);
}
END_TEST

static void add_tests(TCase *tests)
{
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, runs_a_map);
    tcase_add_test(tests, sums_alike_on_any_number_of_threads);
    tcase_add_test(tests, runs_on_several_threads_at_once);
    tcase_add_test(tests, names_a_missing_kernel);
    tcase_add_test(tests, names_a_missing_routine);
    tcase_add_test(tests, multiplies_matrices);
    tcase_add_test(tests, plans_survive_bytes_and_damage);
    tcase_add_test(tests, clears);
    tcase_add_test(tests, checks_plans);
    tcase_add_test(tests, survives_lack_of_memory);
    tcase_add_test(tests, calls_cost_little_and_allocate_nothing);
}

int main(void) { return suite_run("program", add_tests); }
