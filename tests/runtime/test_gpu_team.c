// SPDX-License-Identifier: Apache-2.0
// Programs on the GPUs that are there, together.  With fewer than two nothing runs.
#include "base/arena.h"
#include "base/memory.h"
#include "runtime/team.h"
#include "support/suite.h"
#include "team_support.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

static int count(void)
{
    int n = jot_device_count(JOT_CUDA), most = 1;
    while (2 * most <= n && 2 * most <= GPUS_MOST)
        most *= 2;
    list_devices(most);
    return most;
}

START_TEST(does_every_collective)
{
    int n = count();
    check_collectives(n, 24);
    check_collectives(n, 24 * 10000);
}
END_TEST

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

// Sums of n numbers; how long a call takes that is waited for, when it is not the first.
static double add_up(size_t n, int64_t trips)
{
    struct team_plan p;
    struct rt_team *team;
    struct arena *arena = arena_create();
    jot_array *x[GPUS_MOST], *y[GPUS_MOST];
    const void *bytes, *inputs[GPUS_MOST];
    void *outputs[GPUS_MOST];
    size_t size;
    int gpus = count();
    rt_plan_write(make_sums(&p, gpus, n, 0, trips, COLLECTIVE_SUM), arena, &bytes, &size);
    OK(rt_team_load(devices, (uint32_t)gpus, NULL, NULL, 0, bytes, size, NULL, 0, &team));
    jot_array *here = jot_array_full(JOT_F32, 1, (int64_t)n);
    for (int i = 0; i < gpus; i++) {
        x[i] = jot_array_to(here, devices[i]);
        y[i] = rt_array_create_on(devices[i], JOT_F32, 1, (int64_t[]){(int64_t)n});
        inputs[i] = x[i]->data;
        outputs[i] = y[i]->data;
    }
    double best = 1e9, wanted = 1;
    for (int64_t i = 0; i < trips; i++)
        wanted *= gpus;
    for (int turn = 0; turn < 50; turn++) {
        double start = now();
        OK(rt_team_run(team, inputs, outputs));
        for (int i = 0; i < gpus; i++)
            OK(jot_device_wait(devices[i]));
        double took = now() - start;
        best = took < best ? took : best;
        if (turn > 5)
            continue;
        float *result = malloc(n * sizeof *result);
        for (int i = 0; i < gpus; i++) {
            OK(rt_cuda_type.download(devices[i], result, y[i]->data, n * sizeof *result));
            for (size_t k = 0; k < n; k++)
                if ((double)result[k] != wanted)
                    ck_abort_msg("%g, not %g", (double)result[k], wanted);
        }
        free(result);
    }
    jot_arrays_release((size_t)gpus, x);
    jot_arrays_release((size_t)gpus, y);
    jot_array_release(here);
    rt_team_release(team);
    arena_release(arena);
    return best;
}

START_TEST(adds_up)
{
    static const size_t sizes[] = {1, 1024, 16384, 32768, 65536, 1 << 20, 1 << 24};
    static char text[8192];
    jot_devices_format(text, sizeof text);
    puts(text);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        double one = add_up(sizes[i], 1), eleven = add_up(sizes[i], 11);
        printf("%d GPUs, a sum of %zu numbers: a call %.1f us, a sum more %.2f us\n", count(),
               sizes[i], one, (eleven - one) / 10);
    }
}
END_TEST

// Stores to where its operand says, which is nowhere on one of the GPUs.
static const char ptx[] =
    ".version 7.8\n.target sm_52\n.address_size 64\n"
    ".visible .entry store(.param .u64 x, .param .u64 y)\n"
    "{\n.reg .u64 %x, %a;\n.reg .u32 %v;\n"
    "ld.param.u64 %x, [x];\ncvta.to.global.u64 %x, %x;\nld.global.u64 %a, [%x];\n"
    "cvta.to.global.u64 %a, %a;\nmov.u32 %v, 1;\nst.global.u32 [%a], %v;\nret;\n}\n";

// A fault of one GPU, before a sum that the others wait in: all of them say so, soon.
START_TEST(ends_with_a_gpu_that_is_lost)
{
    int gpus = count();
    size_t n = _i ? 1 << 20 : 1024, size, images_size;
    struct team_plan p;
    struct rt_team *team;
    struct arena *arena = arena_create();
    jot_array *x[GPUS_MOST], *y[GPUS_MOST];
    const void *bytes, *inputs[GPUS_MOST];
    void *outputs[GPUS_MOST], *images;
    make_sums(&p, gpus, n, 1, 3, COLLECTIVE_SUM);
    memcpy(p.text, "store", sizeof "store");
    rt_plan_write(&p.plan, arena, &bytes, &size);
    OK(rt_cuda_type.assemble(devices[0], ptx, sizeof ptx, &images, &images_size));
    OK(rt_team_load(devices, (uint32_t)gpus, NULL, images, images_size, bytes, size, NULL, 0,
                    &team));
    memory_release(images);
    for (int i = 0; i < gpus; i++) {
        x[i] = rt_array_create_on(devices[i], JOT_F32, 1, (int64_t[]){(int64_t)n});
        y[i] = rt_array_create_on(devices[i], JOT_F32, 1, (int64_t[]){(int64_t)n});
        OK(rt_cuda_type.clear(devices[i], y[i]->data, y[i]->bytes));
        uint64_t to = (uint64_t)(uintptr_t)y[i]->data;
        OK(rt_cuda_type.upload(devices[i], x[i]->data, &to, sizeof to));
        inputs[i] = x[i]->data;
        outputs[i] = y[i]->data;
    }
    for (int turn = 0; turn < 3; turn++) {
        OK(rt_team_run(team, inputs, outputs));
        for (int i = 0; i < gpus; i++)
            OK(jot_device_wait(devices[i]));
    }
    uint64_t nowhere = 8;
    OK(rt_cuda_type.upload(devices[gpus - 1], x[gpus - 1]->data, &nowhere, sizeof nowhere));
    double start = now();
    (void)!rt_team_run(team, inputs, outputs);
    for (int i = 0; i < gpus; i++) {
        expect(jot_device_wait(devices[i]), JOT_ERR_DEVICE, "lost");
        printf("%s\n", jot_error_message());
    }
    ck_assert(now() - start < 10e6);
    expect(rt_team_run(team, inputs, outputs), JOT_ERR_DEVICE, "lost");
    jot_arrays_release((size_t)gpus, x);
    jot_arrays_release((size_t)gpus, y);
    rt_team_release(team);
    arena_release(arena);
    jot_array *here = jot_array_full(JOT_F32, 1, 3);
    ck_assert_ptr_nonnull(here);
    jot_array_release(here);
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, does_every_collective);
    if (getenv("JOT_TEST_FEW")) // under a tool that is slow
        return;
    tcase_add_test(tests, adds_up);
    tcase_add_loop_test(tests, ends_with_a_gpu_that_is_lost, 0, 2);
}

int main(void)
{
    // Not asked of the driver, which is of no use in the processes of the tests once it is started.
    if (access("/dev/nvidia1", F_OK)) {
        puts("fewer than two GPUs: nothing to test");
        return 77;
    }
    return suite_run("gpu_team", add);
}
