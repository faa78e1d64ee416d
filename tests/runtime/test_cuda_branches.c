// SPDX-License-Identifier: Apache-2.0
// Steps as branches of graphs, over the driver of fake_cuda: it runs nodes as late as what waits for
// them lets it, so that an edge that is missing shows in the results.
#include "base/arena.h"
#include "base/memory.h"
#include "cuda_support.h"
#include "support/suite.h"

#include <math.h>
#include <stdint.h>

enum { STEPS = 150, PARTS = 18, PART = 4000, APART = 2048 };
enum { ALL = (PARTS - 1) * APART + PART, FLOATS = ALL / 4 };

static const char text[] = "add_one";
static const char ptx[] = "add_one ";

// Steps on one block of memory, a copy of the input before them and one to the output behind them.
struct steps_plan {
    struct rt_plan plan;
    struct rt_argument in, out;
    struct rt_buffer buffers[3 + PARTS];
    uint32_t operands[3 * STEPS];
    struct rt_gemm gemms[2]; // the second one is long enough for a workspace
    struct rt_step steps[STEPS];
};

enum { INPUT, OUTPUT, ARENA, FIRST_PART };

// a, b and c are operands of a product; others have the first two, or the first.
static void add_step(struct steps_plan *p, enum rt_step_kind kind, uint32_t a, uint32_t b,
                     uint32_t c)
{
    uint32_t operands[] = {a, b, c}, count = kind == RT_STEP_GEMM    ? 3
                                             : kind == RT_STEP_CLEAR ? 1
                                                                     : 2;
    p->steps[p->plan.step_count++] = (struct rt_step){.kind = kind,
                                                      .operand_first = p->plan.operand_count,
                                                      .operand_count = count,
                                                      .total = 1000,
                                                      .grain = 64,
                                                      .block = 64,
                                                      .read_only = 1};
    for (uint32_t i = 0; i < count; i++)
        p->operands[p->plan.operand_count++] = operands[i];
}

static void add_kernel(struct steps_plan *p, uint32_t from, uint32_t to)
{
    add_step(p, RT_STEP_KERNEL, from, to, 0);
}

static void add_product(struct steps_plan *p, uint32_t a, uint32_t b, uint32_t c)
{
    add_step(p, RT_STEP_GEMM, a, b, c);
}

static void add_long_product(struct steps_plan *p, uint32_t a, uint32_t b, uint32_t c)
{
    add_product(p, a, b, c);
    p->steps[p->plan.step_count - 1].index = 1;
}

static void begin(struct steps_plan *p)
{
    *p = (struct steps_plan){.in = {.bytes = ALL, .donated = -1},
                             .out = {.bytes = ALL, .donated = -1},
                             .buffers = {{.memory = RT_MEMORY_INPUT, .bytes = ALL},
                                         {.memory = RT_MEMORY_OUTPUT, .bytes = ALL},
                                         {.memory = RT_MEMORY_ARENA, .bytes = ALL}}};
    p->plan = (struct rt_plan){.input_count = 1,
                               .output_count = 1,
                               .buffer_count = FIRST_PART,
                               .arena_bytes = ALL,
                               .gemm_count = 2,
                               .gemms = p->gemms,
                               .text_bytes = sizeof text,
                               .inputs = &p->in,
                               .outputs = &p->out,
                               .buffers = p->buffers,
                               .operands = p->operands,
                               .steps = p->steps,
                               .text = text};
    for (int i = 0; i < 2; i++)
        p->gemms[i] = (struct rt_gemm){.dtype = JOT_F32,
                                       .operands = JOT_F32,
                                       .m = 8,
                                       .n = i ? 10 : 100,
                                       .k = i ? 100 : 5,
                                       .lda = i ? 100 : 5,
                                       .ldb = i ? 10 : 100,
                                       .ldc = i ? 10 : 100,
                                       .alpha = 1e-6,
                                       .batch = {1, 1, 1, 1}};
    // Parts that overlap by half.
    for (uint64_t at = 0; at < PARTS * APART; at += APART)
        p->buffers[p->plan.buffer_count++] =
            (struct rt_buffer){.memory = RT_MEMORY_ARENA, .offset = at, .bytes = PART};
    add_step(p, RT_STEP_COPY, ARENA, INPUT, 0);
}

static jot_status load(struct steps_plan *s, struct rt_program **out)
{
    struct arena *arena = arena_create();
    const void *bytes;
    void *images;
    size_t size, images_size;
    add_step(s, RT_STEP_COPY, OUTPUT, ARENA, 0);
    rt_plan_write(&s->plan, arena, &bytes, &size);
    OK(rt_cuda_type.assemble(jot_cuda(0), ptx, sizeof ptx, &images, &images_size));
    jot_status status =
        rt_program_load(jot_cuda(0), images, images_size, bytes, size, NULL, 0, out);
    memory_release(images);
    arena_release(arena);
    return status;
}

// The third call is replayed, and does what the first one did step by step.
static void expect_same(struct steps_plan *s)
{
    struct rt_program *p;
    int before = fake_count("fake_cuda_graph_launches");
    OK(load(s, &p));
    jot_array *a = ramp(FLOATS), *x = jot_array_to(a, jot_cuda(0)),
              *y = rt_array_create_on(jot_cuda(0), JOT_F32, 1, (int64_t[]){FLOATS});
    static float out[3][FLOATS];
    for (int call = 0; call < 3; call++) {
        OK(run(p, x, y));
        OK(jot_array_copy_out(y, JOT_F32, out[call], FLOATS));
    }
    ck_assert_int_eq(fake_count("fake_cuda_graph_launches") - before, 2);
    for (int i = 0; i < FLOATS; i++)
        ck_assert_msg(out[0][i] == out[1][i] && out[0][i] == out[2][i] && isfinite(out[0][i]),
                      "%d: %g, replayed %g", i, out[0][i], out[1][i]);
    jot_arrays_release(3, (jot_array *[]){a, x, y});
    rt_program_release(p);
}

static void expect_shape(int nodes, int edges, int depth)
{
    ck_assert_int_eq(fake_count("fake_cuda_graph_nodes"), nodes);
    ck_assert_int_eq(fake_count("fake_cuda_graph_edges"), edges);
    ck_assert_int_eq(fake_count("fake_cuda_graph_depth"), depth);
}

// Parts that do not overlap.
enum {
    A = FIRST_PART,
    B = A + 2,
    C = B + 2,
    D = C + 2,
    E = D + 2,
    F = E + 2,
    G = F + 2,
    H = G + 2
};

START_TEST(products_wait_for_no_more_than_they_must)
{
    use_fake(NULL, NULL);
    struct steps_plan s;
    begin(&s); // two products of the same
    add_product(&s, A, B, C);
    add_product(&s, A, B, D);
    expect_same(&s);
    expect_shape(4, 4, 3);
    begin(&s); // one beside two kernels
    add_kernel(&s, A, B);
    add_product(&s, A, A, D);
    add_kernel(&s, B, C);
    add_kernel(&s, C, B);
    expect_same(&s);
    expect_shape(6, 6, 5);
    begin(&s); // kernels in their order
    add_kernel(&s, A, B);
    add_kernel(&s, C, D);
    add_kernel(&s, E, F);
    add_kernel(&s, B, G);
    add_product(&s, A, A, H);
    expect_same(&s);
    expect_shape(7, 7, 6);
    begin(&s); // workspaces for two
    for (uint32_t part = B; part <= G; part += 2)
        add_long_product(&s, A, A, part);
    expect_same(&s);
    expect_shape(8, 8, 5);
    begin(&s); // none
    for (uint32_t part = B; part <= G; part += 2)
        add_product(&s, A, A, part);
    expect_same(&s);
    expect_shape(8, 12, 3);
}
END_TEST

START_TEST(products_wait_for_what_they_use)
{
    use_fake(NULL, NULL);
    for (int i = 0; i < 6; i++) {
        struct steps_plan s;
        begin(&s);
        if (i < 2)
            add_kernel(&s, A, B);
        add_product(&s, A, i == 0 ? B : C, i == 1 ? B : D);
        if (i == 2) // what is read is written
            add_kernel(&s, B, A);
        if (i == 3) // what is written is read
            add_kernel(&s, D + 1, B);
        if (i == 4) // both write it
            add_step(&s, RT_STEP_CLEAR, D - 1, 0, 0);
        if (i == 5) { // what may write what it reads
            add_kernel(&s, A, B);
            s.steps[2].read_only = 0;
        }
        expect_same(&s);
        expect_shape(4, 3, 4);
    }
}
END_TEST

// A kernel of one block of 128 threads, a warp of each multiprocessor.
static void add_aside(struct steps_plan *p, uint32_t from, uint32_t to)
{
    add_kernel(p, from, to);
    struct rt_step *s = &p->steps[p->plan.step_count - 1];
    s->grain = s->total;
    s->block = 128;
}

START_TEST(kernels_of_few_blocks_run_at_once)
{
    use_fake(NULL, NULL);
    struct steps_plan s;
    begin(&s);
    add_aside(&s, A, B);
    add_aside(&s, A, C);
    expect_same(&s);
    expect_shape(4, 4, 3);
    begin(&s); // the second one waits for the first, as the third does for it
    add_aside(&s, A, B);
    add_aside(&s, B, C);
    add_aside(&s, A, B);
    expect_same(&s);
    expect_shape(5, 4, 5);
    begin(&s); // so short that they come in a row
    add_aside(&s, A, B);
    add_aside(&s, A, C);
    s.steps[1].block = 64;
    expect_same(&s);
    expect_shape(4, 3, 4);
}
END_TEST

START_TEST(does_without_branches)
{
    use_fake("FAKE_CUDA_NO_EDGES", "1");
    struct steps_plan s;
    begin(&s);
    add_product(&s, A, B, C);
    add_product(&s, A, B, D);
    expect_same(&s);
    expect_shape(4, 3, 4);
}
END_TEST

static uint32_t next_of(uint32_t *state, uint32_t n)
{
    *state = *state * 1664525 + 1013904223;
    return (*state >> 16) % n;
}

START_TEST(replays_any_steps)
{
    use_fake(NULL, NULL);
    int shorter = 0;
    for (uint32_t seed = 1; seed <= 60; seed++) {
        uint32_t state = seed;
        struct steps_plan s;
        begin(&s);
        uint32_t count = 1 + next_of(&state, seed % 3 ? 20 : STEPS - 3);
        for (uint32_t i = 0; i < count; i++) {
            uint32_t a = FIRST_PART + next_of(&state, PARTS);
            uint32_t b = FIRST_PART + next_of(&state, PARTS), kind = next_of(&state, 8);
            uint32_t c = FIRST_PART + next_of(&state, PARTS);
            bool is_apart = a + 1 < b || b + 1 < a;
            if (kind == 0)
                add_step(&s, RT_STEP_CLEAR, a, 0, 0);
            else if (kind == 1 && is_apart)
                add_step(&s, RT_STEP_COPY, a, b, 0);
            else if (kind < 5)
                add_kernel(&s, a, b);
            else if (kind < 6)
                add_long_product(&s, a, b, c);
            else
                add_product(&s, a, b, c);
        }
        expect_same(&s);
        shorter += fake_count("fake_cuda_graph_depth") < fake_count("fake_cuda_graph_nodes");
    }
    ck_assert_int_gt(shorter, 30);
}
END_TEST

static void add_tests(TCase *tests)
{
    tcase_add_test(tests, products_wait_for_no_more_than_they_must);
    tcase_add_test(tests, products_wait_for_what_they_use);
    tcase_add_test(tests, kernels_of_few_blocks_run_at_once);
    tcase_add_test(tests, does_without_branches);
    tcase_add_test(tests, replays_any_steps);
}

int main(void) { return suite_run("cuda branches", add_tests); }
