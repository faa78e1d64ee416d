// SPDX-License-Identifier: Apache-2.0
// Programs on several devices: each does the same, what is elsewhere is copied for a call, and they work at
// the same time.  On four parts of the host, and on GPUs where there are some; with one it takes all parts.
#include "trace_support.h"

#include <pthread.h>
#include <unistd.h>

#define N 5000
#define SIDE 96
#define MOST 16

// Of the test that runs.
static jot_device_kind kind;

static int n_devices(void)
{
    int n = jot_device_count(kind);
    ck_assert_msg(n > 0, "%s", jot_error_message());
    return n < MOST ? n : MOST;
}

static jot_device *device(int i) { return kind == JOT_HOST ? jot_host_device(i) : jot_cuda(i); }

// Row 0 is the host, row 1 are GPUs.
static void begin(int row)
{
    kind = row ? JOT_CUDA : JOT_HOST;
    must(jot_set_host_devices(4));
}

static jot_array *numbers(int64_t n, uint32_t draw)
{
    float *x = malloc((size_t)n * sizeof *x);
    for (int64_t i = 0; i < n; i++) {
        draw = draw * 1664525 + 1013904223;
        x[i] = (float)(draw >> 8) / 0x1p23f - 1.0f;
    }
    jot_array *a = jot_array_copy(JOT_F32, x, (int64_t[]){n, JOT_END});
    free(x);
    return a;
}

static void expect_same(jot_array *a, jot_array *b)
{
    const void *x = jot_array_data(a), *y = jot_array_data(b);
    ck_assert_msg(x && y, "%s", jot_error_message());
    ck_assert_uint_eq(jot_array_bytes(a), jot_array_bytes(b));
    ck_assert(!memcmp(x, y, jot_array_bytes(a)));
}

// One kernel, one of a reduction, a loop of a kernel, and several kernels around a product.
static jot_value map(jot_value x) { return jot_tanh(jot_mul(jot_sin(x), jot_exp(x))); }
static jot_value total(jot_value x) { return jot_sum(jot_mul(x, x)); }
static jot_value steps(jot_value x)
{
    JOT_FOR (i, 20, x)
        x = jot_sub(x, jot_mul(0.1, jot_sin(x)));
    return x;
}
static jot_value product(jot_value x)
{
    jot_value a = jot_reshape(jot_slice(x, 0, 0, 50 * SIDE), 50, SIDE);
    return jot_sum(jot_tanh(jot_matmul(jot_swap_axes(a, 0, 1), a)), 0);
}

START_TEST(do_the_same)
{
    begin(_i);
    jot_function all[] = {jot_fn(map), jot_fn(total), jot_fn(steps), jot_fn(product),
                          jot_grad(jot_fn(total))};
    const bool has_product[] = {false, false, false, true, false};
    jot_array *x = numbers(N, 1), *first, *next;
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        jot_executable *f = jot_jit(all[k], .device = device(0));
        must(jot_call(f, JOT_IN(x), JOT_OUT(first)));
        if (!has_product[k]) { // whose bits are the library's
            jot_executable *here = jot_jit(all[k], .device = jot_host());
            must(jot_call(here, JOT_IN(x), JOT_OUT(next)));
            expect_same(first, next);
            jot_array_release(next);
            jot_executable_release(here);
        }
        for (int i = 1; i < n_devices(); i++) {
            jot_executable *g = jot_jit(all[k], .device = device(i));
            for (int call = 0; call < 3; call++) { // the third is a replay of a graph
                must(jot_call(g, JOT_IN(x), JOT_OUT(next)));
                ck_assert_ptr_eq(jot_array_device(next), device(i));
                expect_same(first, next);
                jot_array_release(next);
            }
            jot_executable_release(g);
        }
        jot_array_release(first);
        jot_executable_release(f);
    }
    jot_array_release(x);
}
END_TEST

// A result goes from each GPU to the next one as an input, twice around.
START_TEST(hand_results_on)
{
    begin(_i);
    int n = n_devices();
    jot_executable *there[MOST], *here = jot_jit(jot_fn(steps), .device = jot_host());
    for (int i = 0; i < n; i++)
        there[i] = jot_jit(jot_fn(steps), .device = device(i));
    jot_array *x = numbers(N, 2), *y = jot_array_retain(x), *next;
    for (int i = 0; i < 2 * n; i++) {
        must(jot_call(there[i % n], JOT_IN(y), JOT_OUT(next)));
        ck_assert_ptr_eq(jot_array_device(next), device(i % n));
        jot_array_release(y);
        y = next;
        must(jot_call(here, JOT_IN(x), JOT_OUT(next)));
        jot_array_release(x);
        x = next;
    }
    expect_same(x, y);
    jot_arrays_release(2, (jot_array *[]){x, y});
    for (int i = 0; i < n; i++)
        jot_executable_release(there[i]);
    jot_executable_release(here);
}
END_TEST

// An input that is donated from another GPU is copied, and stays as it was.
START_TEST(keep_what_is_donated_from_elsewhere)
{
    begin(_i);
    int last = n_devices() - 1;
    const int all[] = {0, JOT_END};
    jot_executable *f = jot_jit(jot_fn(map), .device = device(last), .donate = all);
    jot_executable *g = jot_jit(jot_fn(map), .device = device(0));
    jot_array *x = numbers(N, 3), *far = jot_array_to(x, device(0)), *y, *z;
    ck_assert_msg(far, "%s", jot_error_message());
    jot_array *kept = jot_array_retain(far);
    must(jot_call(f, JOT_IN(far), JOT_OUT(y)));
    expect_same(kept, x);
    must(jot_call(g, JOT_IN(x), JOT_OUT(z)));
    expect_same(y, z);
    jot_arrays_release(5, (jot_array *[]){x, far, kept, y, z});
    jot_executable_release(f);
    jot_executable_release(g);
}
END_TEST

struct worker {
    jot_device *at;
    jot_array *x, *result;
    pthread_t thread;
};

// A state of the device's own, donated to each call.
static void *work(void *ctx)
{
    struct worker *w = ctx;
    const int all[] = {0, JOT_END};
    jot_executable *f = jot_jit(jot_fn(steps), .device = w->at, .donate = all);
    jot_array *x = jot_array_to(w->x, w->at), *next;
    for (int i = 0; i < 30; i++) {
        must(jot_call(f, JOT_IN(x), JOT_OUT(next)));
        jot_array_release(x);
        x = next;
    }
    w->result = x;
    jot_executable_release(f);
    return NULL;
}

START_TEST(work_at_once)
{
    begin(_i);
    int n = n_devices();
    struct worker all[2 * MOST], alone = {.at = jot_host(), .x = numbers(N, 4)};
    for (int i = 0; i < 2 * n; i++) {
        all[i] = (struct worker){.at = device(i % n), .x = alone.x};
        pthread_create(&all[i].thread, NULL, work, &all[i]);
    }
    work(&alone);
    for (int i = 0; i < 2 * n; i++) {
        pthread_join(all[i].thread, NULL);
        expect_same(alone.result, all[i].result);
        jot_array_release(all[i].result);
    }
    jot_arrays_release(2, (jot_array *[]){alone.result, alone.x});
    for (int i = 0; i < n; i++) {
        jot_device_memory_use use;
        must(jot_device_memory(device(i), &use));
        if (kind == JOT_CUDA) // the pool of the host keeps records of threads
            ck_assert_uint_eq(use.used, 0);
    }
}
END_TEST

// Lazy scopes and new functions follow the default.
START_TEST(follow_the_default)
{
    begin(_i);
    jot_array *x = numbers(N, 5), *results[MOST];
    for (int i = 0; i < n_devices(); i++) {
        jot_set_default_device(device(i));
        jot_scope *s = jot_scope_open();
        must(jot_eval(map(jot_from_array(x)), &results[i]));
        jot_scope_close(s);
        ck_assert_ptr_eq(jot_array_device(results[i]), device(i));
        expect_same(results[0], results[i]);
    }
    jot_set_default_device(NULL);
    jot_arrays_release((size_t)n_devices(), results);
    jot_array_release(x);
}
END_TEST

static void add(TCase *tests)
{
    // Not asked of the driver, which is of no use in the processes of the tests once it is started.
    bool has_gpu = getenv("JOT_TEST_EMULATED") || access("/dev/nvidia0", F_OK) == 0;
    int kinds = has_gpu ? 2 : 1;
    tcase_add_loop_test(tests, do_the_same, 0, kinds);
    tcase_add_loop_test(tests, hand_results_on, 0, kinds);
    tcase_add_loop_test(tests, keep_what_is_donated_from_elsewhere, 0, kinds);
    tcase_add_loop_test(tests, work_at_once, 0, kinds);
    tcase_add_loop_test(tests, follow_the_default, 0, kinds);
}

int main(void) { return run_suite("devices", add); }
