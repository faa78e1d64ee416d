// SPDX-License-Identifier: Apache-2.0
// Several GPUs of fake_cuda that run a program together, by its NCCL and without one.
#include "base/arena.h"
#include "base/memory.h"
#include "cuda_support.h"
#include "jot/parallel.h"
#include "runtime/team.h"
#include "support/suite.h"
#include "team_support.h"

static void use_devices(int n)
{
    char count[8];
    snprintf(count, sizeof count, "%d", n);
    setenv("FAKE_CUDA_COUNT", count, 1);
    list_devices(n);
}

START_TEST(does_every_collective)
{
    use_fake(_i ? "FAKE_CUDA_NO_PEERS" : NULL, "1");
    use_devices(GPUS_MOST);
    check_collectives(_i ? GPUS_MOST : 4, 24);
    check_collectives(2, 1100); // more than a block
}
END_TEST

// ---- programs ----

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
    OK(rt_team_load(devices, (uint32_t)n, NULL, images, images_size, bytes, size, NULL, 0,
                    &team));
    memory_release(images);
    arena_release(arena);
    return team;
}

// Arrays of the GPUs, and a call.
struct arrays {
    int n;
    jot_array *x[GPUS_MOST], *y[GPUS_MOST];
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
    const void *inputs[GPUS_MOST];
    void *outputs[GPUS_MOST];
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
    use_fake(_i ? "FAKE_CUDA_NO_PEERS" : NULL, "1");
    use_devices(4);
    struct team_plan p;
    struct arrays a;
    struct rt_team *team = load(4, make_sums(&p, 4, 1000, 1000, 3, COLLECTIVE_SUM));
    open_arrays(&a, 4);
    for (int i = 0; i < 4; i++) {
        OK(call(team, &a));
        expect_sums(&a, 64);
        ck_assert_int_eq(fake_count("fake_cuda_graphs"), i ? 4 : 0);
        ck_assert_int_eq(fake_count("fake_cuda_graph_launches"), 4 * i);
    }
    ck_assert_int_eq(fake_count("fake_cuda_launches"), _i ? 4 * 4 : 4 * 4 * 4);
    ck_assert_int_eq(fake_count_of("libnccl.so.2", "fake_cuda_collectives"), _i ? 4 * 3 : 0);
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
    // What GPUs have for one another stays.
    jot_memory_trim();
    ck_assert_int_eq(fake_count("fake_cuda_blocks"), _i ? 0 : 4);
    ck_assert_int_eq(fake_count("fake_cuda_graphs"), 0);
}
END_TEST

// ---- beside kernels ----

// Steps over blocks of 1000 numbers: kernels x to y ("xy"), which add one, by one block of threads ("x.y"),
// and sums of x over all GPUs to y ("x>y").  i is the input, o the output, others are between.
struct beside {
    const char *steps;
    int nodes, depth, edges, edges_by_kernels; // of the graph of one GPU
};

static const struct beside besides[] = {
    {"ia a>b ic bd co", 5, 4, 5, 5}, // c does not wait for the sum; o waits for c
    {"ia a>b ic bo", 4, 3, 4, 4},
    {"ia a>b bc co", 4, 4, 3, 3},             // all wait for it
    {"ia a>b ia ao", 4, 4, 3, 3},             // what is summed is written again
    {"ia a>b ab bo", 4, 4, 3, 3},             // so is where it goes to
    {"ia a>b ic c>d be do", 6, 4, 8, 7},      // NCCL's sums come one after the other
    {"ia a.b a.c b>d c>e df eo", 7, 5, 8, 7}, // small kernels do not
};

static const struct rt_plan *make_steps(struct team_plan *p, const char *text)
{
    enum { BYTES = 4000, APART = 4096 };
    uint32_t buffer['z' - 'a'] = {['i' - 'a'] = 0, ['o' - 'a'] = 1};
    plan_open(p, 1, &(int64_t){2}, BYTES / 4);
    for (uint32_t i = 0; i < 8; i++)
        buffer[i] = plan_buffer(
            p,
            (struct rt_buffer){.memory = RT_MEMORY_ARENA, .offset = i * APART, .bytes = BYTES});
    p->plan.arena_bytes = 8 * APART;
    for (const char *at = text; *at; at += *at == ' ') {
        bool is_sum = at[1] == '>', is_small = at[1] == '.';
        uint32_t from = buffer[at[0] - 'a'], to = buffer[at[1 + (is_sum || is_small)] - 'a'];
        if (is_sum)
            plan_sum(p, to, from, COLLECTIVE_SUM, 0);
        else
            plan_kernel(p, to, from, 1000, is_small ? 1000 : 64);
        at += 2 + (is_sum || is_small);
    }
    return &p->plan;
}

// Nodes of the fake run as far from the order of the steps as they may, so what should wait and does not
// gives other numbers than the first call, which runs the steps one by one.
START_TEST(sums_beside_kernels)
{
    const struct beside *c = &besides[_i / 3];
    // By NCCL, by kernels over the memory of the others, and where a graph has no branches.
    use_fake(_i % 3 == 0   ? "FAKE_CUDA_NO_PEERS"
             : _i % 3 == 2 ? "FAKE_CUDA_NO_EDGES"
                           : NULL,
             "1");
    use_devices(2);
    struct team_plan p;
    struct arrays a;
    struct rt_team *team = load(2, make_steps(&p, c->steps));
    static float first[1000], later[1000];
    open_arrays(&a, 2);
    for (int i = 0; i < 3; i++) {
        OK(call(team, &a));
        OK(rt_cuda_type.download(jot_cuda(1), i ? later : first, a.y[1]->data, sizeof first));
        ck_assert(!i || !memcmp(first, later, sizeof first));
    }
    ck_assert_int_eq(fake_count("fake_cuda_graph_launches"), 4);
    ck_assert_int_eq(fake_count("fake_cuda_graph_nodes"), c->nodes);
    ck_assert_int_eq(fake_count("fake_cuda_graph_depth"), _i % 3 == 2 ? c->nodes : c->depth);
    if (_i % 3 < 2)
        ck_assert_int_eq(fake_count("fake_cuda_graph_edges"),
                         _i % 3 ? c->edges_by_kernels : c->edges);
    close_arrays(&a);
    rt_team_release(team);
}
END_TEST

// A collective that no graph takes stands in front of steps that one does: a maximum of f16s without NCCL.
START_TEST(captures_behind_what_is_not)
{
    enum { GPUS = 2, N = 1000 };
    use_fake_without("libnccl.so.2");
    use_devices(GPUS);
    struct team_plan p;
    struct arrays a;
    plan_open(&p, 1, &(int64_t){GPUS}, N);
    const struct rt_buffer arena = {.memory = RT_MEMORY_ARENA, .bytes = N * sizeof(float)};
    uint32_t most = plan_buffer(&p, arena), more = plan_buffer(&p, arena);
    p.buffers[more].offset = 4096;
    p.plan.arena_bytes = 8192;
    plan_reduce(&p, most, 0, COLLECTIVE_MAX, JOT_F16, 0); // all have the same
    plan_kernel(&p, more, most, N, 64);
    plan_sum(&p, 1, more, COLLECTIVE_SUM, 0);
    struct rt_team *team = load(GPUS, &p.plan);
    open_arrays(&a, GPUS);
    for (int i = 0; i < 3; i++) {
        OK(call(team, &a));
        for (int d = 0; d < GPUS; d++) {
            float x[N], y[N];
            OK(rt_cuda_type.download(jot_cuda(d), x, a.x[d]->data, sizeof x));
            OK(rt_cuda_type.download(jot_cuda(d), y, a.y[d]->data, sizeof y));
            for (int k = 0; k < N; k++)
                ck_assert(y[k] == 2 * (x[k] + 1));
            memset(y, 0, sizeof y);
            OK(rt_cuda_type.upload(jot_cuda(d), a.y[d]->data, y, sizeof y));
        }
    }
    ck_assert_int_gt(fake_count("fake_cuda_graph_launches"), 0);
    close_arrays(&a);
    rt_team_release(team);
}
END_TEST

START_TEST(goes_on_where_nothing_is_captured)
{
    use_fake("FAKE_CUDA_NO_CAPTURE", "1");
    setenv("FAKE_CUDA_NO_PEERS", "1", 1);
    use_devices(3);
    struct team_plan p;
    struct arrays a;
    struct rt_team *team = load(3, make_sums(&p, 3, 1000, 1000, 2, COLLECTIVE_SUM));
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
    setenv("FAKE_CUDA_NO_PEERS", "1", 1);
    use_devices(4);
    struct team_plan p;
    struct arrays a;
    struct rt_team *team =
        load(4, make_sums(&p, 4, 1000, 1000, 2, _i == 0 ? COLLECTIVE_SUM : COLLECTIVE_MAX));
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
    setenv("FAKE_CUDA_NO_PEERS", "1", 1);
    use_devices(2);
    struct team_plan p;
    struct arrays a;
    struct rt_team *team = load(2, make_sums(&p, 2, 1000, 1000, 2, COLLECTIVE_SUM));
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
    setenv("FAKE_CUDA_NO_PEERS", "1", 1);
    use_devices(4);
    struct team_plan p;
    struct arrays a;
    struct rt_team *team = load(4, make_sums(&p, 4, 1000, 1000, 1, COLLECTIVE_SUM));
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
    two = load(2, make_sums(&p, 2, 1000, 1000, 1, COLLECTIVE_SUM));
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

// ---- arrays in pieces ----

// Element by element, of f32[8, 6] that has its number in each.
static void check_pieces(jot_array *split)
{
    for (size_t i = 0; i < jot_mesh_size(jot_array_mesh(split)); i++) {
        int64_t start[2];
        jot_array *piece = jot_array_shard_on(split, i);
        OK(jot_array_shard_start(split, i, start));
        ck_assert_ptr_eq(jot_array_device(piece), jot_cuda((int)i));
        const float *at = jot_array_data(piece);
        for (int64_t row = 0; row < jot_array_dim(piece, 0); row++)
            for (int64_t column = 0; column < jot_array_dim(piece, 1); column++)
                ck_assert_float_eq(*at++, (float)((start[0] + row) * 6 + start[1] + column));
        jot_array_release(piece);
    }
}

// From the host or a GPU, and from each way of splitting to each other one; back to another GPU.
START_TEST(splits_arrays)
{
    static const char *const specs[] = {"", "x", "y", "x, y", "y, x", ", x", "y x", "_, y"};
    use_fake(_i ? "FAKE_CUDA_NO_PEERS" : NULL, "1");
    use_devices(4);
    jot_mesh *m = jot_mesh_of(JOT_CUDA, {"x", 2}, {"y", 2});
    float numbers[48];
    for (int i = 0; i < 48; i++)
        numbers[i] = (float)i;
    jot_array *here = jot_array_from(numbers, 8, 6), *there = jot_array_to(here, jot_cuda(3));
    for (size_t from = 0; from < 8; from++)
        for (size_t to = 0; to < 8; to++) {
            jot_array *a = jot_array_shard(to % 2 ? here : there, m, specs[from]);
            jot_array *b = jot_array_shard(a, m, specs[to]);
            ck_assert_msg(b, "%s", jot_error_message());
            check_pieces(a);
            check_pieces(b);
            jot_array *whole = jot_array_to(b, jot_cuda(2));
            ck_assert(!memcmp(jot_array_data(whole), numbers, sizeof numbers));
            ck_assert(!memcmp(jot_array_data(b), numbers, sizeof numbers));
            OK(jot_array_wait(b));
            jot_arrays_release(3, (jot_array *[]){a, b, whole});
        }
    jot_arrays_release(2, (jot_array *[]){here, there});
    ck_assert_ptr_null(jot_mesh_of(JOT_CUDA, {"x", 8}));
    ck_assert_msg(strstr(jot_error_message(), "a mesh of 8 GPUs (x 8), but there are 4"), "%s",
                  jot_error_message());
    expect_no_blocks();
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 20);
    tcase_add_loop_test(tests, does_every_collective, 0, 2);
    tcase_add_loop_test(tests, captures_what_gpus_do_together, 0, 2);
    tcase_add_loop_test(tests, sums_beside_kernels, 0,
                        3 * (int)(sizeof besides / sizeof *besides));
    tcase_add_test(tests, captures_behind_what_is_not);
    tcase_add_test(tests, goes_on_where_nothing_is_captured);
    tcase_add_loop_test(tests, splits_arrays, 0, 2);
    tcase_add_loop_test(tests, does_without_a_library, 0, 2);
    tcase_add_loop_test(tests, says_what_nccl_says, 0, 2);
    tcase_add_test(tests, tells_the_others_of_one_that_is_lost);
}

int main(void) { return suite_run("cuda_team", add); }
