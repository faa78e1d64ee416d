// SPDX-License-Identifier: Apache-2.0
// Several GPUs of fake_cuda that run a program together, by its NCCL and without one.
#include "base/arena.h"
#include "base/dtype.h"
#include "base/memory.h"
#include "cuda_support.h"
#include "runtime/collective.h"
#include "runtime/team.h"
#include "support/suite.h"

#define MOST 8 // GPUs

// ---- collectives alone ----

static jot_device *devices[MOST];

static void use_devices(int n)
{
    char count[8];
    snprintf(count, sizeof count, "%d", n);
    setenv("FAKE_CUDA_COUNT", count, 1);
    for (int i = 0; i < n; i++)
        devices[i] = jot_cuda(i);
}

// By GPUs in groups, and by the host; how the GPUs' call ended.
static jot_status compare(const struct collective *c, size_t n_groups, size_t k)
{
    size_t n = (size_t)c->size, size = dtype_get(c->dtype)->bytes, all = n_groups * n;
    size_t from_bytes = k * size * (c->kind == COLLECTIVE_REDUCE_SCATTER ? n : 1);
    size_t to_bytes = k * size * (c->kind == COLLECTIVE_ALL_GATHER ? n : 1);
    void *to[MOST], *here_to[MOST];
    const void *from[MOST], *here_from[MOST];
    struct rt_blocks groups[MOST], here[MOST];
    uint32_t draw = 1;
    for (size_t i = 0; i < all; i++) {
        void *block;
        unsigned char *copy = malloc(from_bytes + 1);
        for (size_t b = 0; b < from_bytes; b++, draw = draw * 1664525 + 1013904223)
            copy[b] = c->dtype == JOT_BOOL ? draw >> 31 : (unsigned char)(draw >> 24) & 0x3f;
        OK(rt_cuda_type.allocate(devices[i], from_bytes, "a block", &block));
        OK(rt_cuda_type.upload(devices[i], block, copy, from_bytes));
        OK(rt_cuda_type.allocate(devices[i], to_bytes, "a block", &to[i]));
        from[i] = block;
        here_from[i] = copy;
        here_to[i] = malloc(to_bytes + 1);
    }
    for (size_t i = 0; i < n_groups; i++) {
        groups[i] = (struct rt_blocks){to + i * n, from + i * n};
        here[i] = (struct rt_blocks){here_to + i * n, here_from + i * n};
    }
    rt_collective_run(c, n_groups, here, to_bytes, from_bytes);
    jot_status status =
        rt_cuda_type.collective(devices, c, n_groups, groups, to_bytes, from_bytes);
    for (size_t i = 0; i < all; i++) {
        void *result = malloc(to_bytes + 1);
        OK(rt_cuda_type.download(devices[i], result, to[i], to_bytes));
        if (status == JOT_OK)
            ck_assert_msg(!memcmp(result, here_to[i], to_bytes), "%s of %s on GPU %zu",
                          collective_name(c->kind), jot_dtype_name(c->dtype), i);
        free(result);
        free(here_to[i]);
        free((void *)(uintptr_t)here_from[i]);
        rt_cuda_type.release(devices[i], to[i], to_bytes);
        rt_cuda_type.release(devices[i], (void *)(uintptr_t)from[i], from_bytes);
    }
    return status;
}

START_TEST(does_every_collective)
{
    use_fake(NULL, NULL);
    use_devices(MOST);
    const int64_t sizes[] = {1, 2, 4, 8};
    for (size_t s = 0; s < 4; s++)
        for (int kind = 0; kind < COLLECTIVE_KIND_COUNT; kind++)
            for (int combiner = 0; combiner < COLLECTIVE_COMBINER_COUNT; combiner++)
                for (int dtype = 0; dtype_is_valid(dtype); dtype++) {
                    int64_t mesh[] = {MOST / sizes[s], sizes[s]};
                    int64_t params[16] = {kind, combiner, dtype, 1, 1};
                    uint32_t n = 5;
                    struct collective c;
                    for (int64_t i = 0; kind == COLLECTIVE_PERMUTE && i < sizes[s]; i++)
                        params[n++] = combiner ? i - 1 : 0;
                    if (collective_read(params, n, 2, mesh, &c))
                        continue;
                    jot_status status = compare(&c, (size_t)(MOST / sizes[s]), 24);
                    // The rest is the host's.
                    ck_assert_int_eq(
                        status, rt_cuda_type.records_collective(&c) ? JOT_OK : JOT_ERR_LIBRARY);
                }
    expect_no_blocks();
}
END_TEST

// ---- programs ----

// y = x + 1, so many times replaced by its sum over all GPUs.
struct team_plan {
    struct rt_plan plan;
    struct rt_argument in, out;
    struct rt_buffer buffers[2];
    uint32_t operands[4];
    struct rt_step steps[4];
    int64_t params[6];
};

static const char text[] = "add_one\0the sum";

static const struct rt_plan *make_plan(struct team_plan *p, int n, int64_t trips,
                                       jot_dtype dtype, enum collective_combiner combiner)
{
    *p = (struct team_plan){.in = {.bytes = 4000, .donated = -1},
                            .out = {.bytes = 4000, .donated = -1},
                            .buffers = {{.place = RT_PLACE_INPUT, .bytes = 4000},
                                        {.place = RT_PLACE_OUTPUT, .bytes = 4000}},
                            .operands = {0, 1, 1, 1},
                            .steps = {{.kind = RT_STEP_KERNEL,
                                       .operand_count = 2,
                                       .total = 1000,
                                       .grain = 64,
                                       .block = 64},
                                      {.kind = RT_STEP_LOOP, .total = trips, .target = 4},
                                      {.kind = RT_STEP_COLLECTIVE,
                                       .name = 8,
                                       .operand_first = 2,
                                       .operand_count = 2,
                                       .param_first = 1,
                                       .param_count = 5},
                                      {.kind = RT_STEP_NEXT, .total = trips, .target = 2}},
                            .params = {n, COLLECTIVE_ALL_REDUCE, combiner, dtype, 1, 0}};
    p->plan = (struct rt_plan){.input_count = 1,
                               .output_count = 1,
                               .buffer_count = 2,
                               .operand_count = 4,
                               .step_count = 4,
                               .param_count = 6,
                               .text_bytes = sizeof text,
                               .loop_count = 1,
                               .mesh_rank = 1,
                               .inputs = &p->in,
                               .outputs = &p->out,
                               .buffers = p->buffers,
                               .operands = p->operands,
                               .params = p->params,
                               .steps = p->steps,
                               .text = text};
    return &p->plan;
}

static struct rt_team *load(int n, const struct rt_plan *plan)
{
    static const char ptx[] = "add_one ";
    struct arena *arena = arena_create();
    struct rt_team *team;
    const void *bytes;
    void *images;
    size_t size, images_size;
    rt_plan_write(plan, arena, &bytes, &size);
    OK(rt_cuda_type.assemble(jot_cuda(0), ptx, sizeof ptx, &images, &images_size));
    OK(rt_team_load(devices, (uint32_t)n, images, images_size, bytes, size, NULL, 0, &team));
    memory_release(images);
    arena_release(arena);
    return team;
}

// Arrays of the GPUs, and a call.
struct arrays {
    int n;
    jot_array *x[MOST], *y[MOST];
};

static void open_arrays(struct arrays *a, int n)
{
    jot_array *here = ramp(1000);
    a->n = n;
    for (int i = 0; i < n; i++) {
        a->x[i] = jot_array_to(here, jot_cuda(i));
        a->y[i] = rt_array_create_on(jot_cuda(i), JOT_F32, 1, (int64_t[]){1000});
    }
    jot_array_release(here);
}

static jot_status call(struct rt_team *team, const struct arrays *a)
{
    const void *inputs[MOST];
    void *outputs[MOST];
    for (int i = 0; i < a->n; i++) {
        inputs[i] = a->x[i]->data;
        outputs[i] = a->y[i]->data;
    }
    return rt_team_run(team, inputs, outputs);
}

static void expect_sums(const struct arrays *a, float factor)
{
    for (int i = 0; i < a->n; i++) {
        float y[1000];
        OK(rt_cuda_type.download(jot_cuda(i), y, a->y[i]->data, sizeof y));
        for (int k = 0; k < 1000; k++)
            ck_assert(y[k] == factor * (float)(k + 1));
    }
}

static void close_arrays(struct arrays *a)
{
    jot_arrays_release((size_t)a->n, a->x);
    jot_arrays_release((size_t)a->n, a->y);
}

// The second call with the same addresses is captured, on all GPUs at once, and replayed from then on.
START_TEST(captures_what_gpus_do_together)
{
    use_fake(NULL, NULL);
    use_devices(4);
    struct team_plan p;
    struct arrays a;
    struct rt_team *team = load(4, make_plan(&p, 4, 3, JOT_F32, COLLECTIVE_SUM));
    open_arrays(&a, 4);
    for (int i = 0; i < 4; i++) {
        OK(call(team, &a));
        expect_sums(&a, 64);
        ck_assert_int_eq(fake_count("fake_cuda_graphs"), i ? 4 : 0);
        ck_assert_int_eq(fake_count("fake_cuda_graph_launches"), 4 * i);
    }
    ck_assert_int_eq(fake_count("fake_cuda_launches"), 4 * 4);
    ck_assert_int_eq(fake_count_of("libnccl.so.2", "fake_cuda_collectives"), 4 * 3);
    // Other arrays of one of them: all are captured anew, and both stay.
    struct arrays b = a;
    b.x[2] = jot_array_to(a.x[0], jot_cuda(2));
    for (int i = 0; i < 3; i++) {
        OK(call(team, &b));
        expect_sums(&b, 64);
        OK(call(team, &a));
        expect_sums(&a, 64);
    }
    jot_array_release(b.x[2]);
    close_arrays(&a);
    rt_team_release(team);
    expect_no_blocks();
    ck_assert_int_eq(fake_count("fake_cuda_graphs"), 0);
}
END_TEST

START_TEST(goes_on_where_nothing_is_captured)
{
    use_fake("FAKE_CUDA_NO_CAPTURE", "1");
    use_devices(3);
    struct team_plan p;
    struct arrays a;
    struct rt_team *team = load(3, make_plan(&p, 3, 2, JOT_F32, COLLECTIVE_SUM));
    open_arrays(&a, 3);
    for (int i = 0; i < 3; i++) {
        OK(call(team, &a));
        expect_sums(&a, 9);
    }
    close_arrays(&a);
    rt_team_release(team);
    expect_no_blocks();
}
END_TEST

// Without NCCL, and what NCCL does not do as jot does, goes by way of the host.
START_TEST(does_without_a_library)
{
    if (_i == 0)
        use_fake_without("libnccl.so.2");
    else
        use_fake(NULL, NULL);
    use_devices(4);
    struct team_plan p;
    struct arrays a;
    struct rt_team *team =
        load(4, make_plan(&p, 4, 2, JOT_F32, _i == 0 ? COLLECTIVE_SUM : COLLECTIVE_MAX));
    open_arrays(&a, 4);
    for (int i = 0; i < 3; i++) {
        OK(call(team, &a));
        expect_sums(&a, _i == 0 ? 16 : 1);
    }
    close_arrays(&a);
    rt_team_release(team);
    expect_no_blocks();
}
END_TEST

START_TEST(says_what_nccl_says)
{
    use_fake(_i == 0 ? "FAKE_CUDA_NO_NCCL" : "FAKE_CUDA_NCCL_FAULT", "2");
    use_devices(2);
    struct team_plan p;
    struct arrays a;
    struct rt_team *team = load(2, make_plan(&p, 2, 2, JOT_F32, COLLECTIVE_SUM));
    open_arrays(&a, 2);
    for (int i = 0; i < 3; i++)
        expect(call(team, &a), JOT_ERR_DEVICE, "NCCL says: fake error");
    unsetenv(_i == 0 ? "FAKE_CUDA_NO_NCCL" : "FAKE_CUDA_NCCL_FAULT");
    OK(call(team, &a));
    expect_sums(&a, 4);
    close_arrays(&a);
    rt_team_release(team);
    expect_no_blocks();
}
END_TEST

// A GPU that is lost: it says so, and the others what they have given up.
START_TEST(tells_the_others_of_one_that_is_lost)
{
    use_fake("FAKE_CUDA_FAULT", "6"); // the second kernel of GPU 1
    use_devices(4);
    struct team_plan p;
    struct arrays a;
    struct rt_team *team = load(4, make_plan(&p, 4, 1, JOT_F32, COLLECTIVE_SUM));
    open_arrays(&a, 4);
    OK(call(team, &a));
    expect_sums(&a, 4);
    OK(call(team, &a));
    expect(jot_device_wait(jot_cuda(1)), JOT_ERR_DEVICE, "cuda:1 is lost");
    expect(jot_device_wait(jot_cuda(2)), JOT_ERR_DEVICE,
           "cuda:2 has given up what it did together with cuda:1, which is lost");
    OK(jot_device_wait(jot_cuda(2)));
    // What was there stays readable, and the others work without it.
    float x[1000];
    OK(rt_cuda_type.download(jot_cuda(2), x, a.x[2]->data, sizeof x));
    ck_assert(x[7] == 7);
    expect(call(team, &a), JOT_ERR_DEVICE, "cuda:1 is lost");
    struct rt_team *two;
    devices[1] = jot_cuda(2);
    two = load(2, make_plan(&p, 2, 1, JOT_F32, COLLECTIVE_SUM));
    struct arrays b = {.n = 2, .x = {a.x[0], a.x[2]}, .y = {a.y[0], a.y[2]}};
    expect(jot_device_wait(jot_cuda(0)), JOT_ERR_DEVICE, "cuda:0 has given up");
    OK(call(two, &b));
    float y[1000];
    OK(rt_cuda_type.download(jot_cuda(2), y, a.y[2]->data, sizeof y));
    ck_assert(y[7] == 16);
    rt_team_release(two);
    rt_team_release(team);
    close_arrays(&a);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, does_every_collective);
    tcase_add_test(tests, captures_what_gpus_do_together);
    tcase_add_test(tests, goes_on_where_nothing_is_captured);
    tcase_add_loop_test(tests, does_without_a_library, 0, 2);
    tcase_add_loop_test(tests, says_what_nccl_says, 0, 2);
    tcase_add_test(tests, tells_the_others_of_one_that_is_lost);
}

int main(void) { return suite_run("cuda_team", add); }
