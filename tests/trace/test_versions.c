// SPDX-License-Identifier: Apache-2.0
// How many versions an executable keeps, which, and for how long.
#include "trace_support.h"

#include "trace/lazy_cache.h"
#include "trace/versions.h"

#include <pthread.h>

static int traced;

static jot_value doubled(jot_value x)
{
    traced++;
    return jot_sum(jot_mul(x, 2.0));
}

static double call_with(jot_executable *e, int n)
{
    jot_array *x = jot_array_full(JOT_F64, 1, n), *y;
    must(jot_call(e, JOT_IN(x), JOT_OUT(y)));
    double r = jot_array_item(y);
    jot_arrays_release(2, (jot_array *[]){x, y});
    return r;
}

START_TEST(test_least_recently_used_goes)
{
    jot_executable *e = jot_jit(jot_fn(doubled), .most_versions = 3);
    for (int n = 1; n <= 3; n++)
        ck_assert_double_eq(call_with(e, n), 2 * n);
    call_with(e, 1);
    call_with(e, 3);
    jot_version_use use = jot_executable_use(e);
    ck_assert_uint_eq(use.kept, 3);
    ck_assert_uint_eq(use.most, 3);
    ck_assert_uint_eq(use.made, 3);
    ck_assert_uint_eq(use.hits, 2);
    ck_assert_uint_eq(use.evicted, 0);
    ck_assert_uint_gt(use.bytes, 3 * 1000);
    ck_assert_uint_lt(use.bytes, 3 * 1000000);
    call_with(e, 4); // 2 goes
    call_with(e, 1);
    call_with(e, 3);
    call_with(e, 4);
    use = jot_executable_use(e);
    ck_assert_uint_eq(use.made, 4);
    ck_assert_uint_eq(use.hits, 5);
    ck_assert_uint_eq(use.evicted, 1);
    ck_assert_double_eq(call_with(e, 2), 4); // and comes again in the place of 1
    call_with(e, 3);
    use = jot_executable_use(e);
    ck_assert_uint_eq(use.made, 5);
    ck_assert_uint_eq(use.kept, 3);
    jot_executable_release(e);
    use = jot_executable_use(NULL);
    ck_assert_uint_eq(use.kept + use.most + use.made + use.bytes, 0);
}
END_TEST

static void scaled(const jot_value *in, jot_value *out, void *ctx)
{
    out[0] = jot_mul(in[0], (double)*(int *)ctx);
}

// Static data that changes at each call.
START_TEST(test_static_data)
{
    int factor = 0;
    jot_function f = jot_function_make(scaled, 1, 1, &factor);
    jot_set_most_versions(4);
    jot_executable *e = jot_jit(f, .static_data = &factor, .static_size = sizeof factor);
    size_t blocks = 0, bytes = 0;
    for (int i = 0; i < 100; i++) {
        factor = i;
        ck_assert_double_eq(call_with(e, 1), i);
        if (i == 10) {
            blocks = jot_memory().blocks;
            bytes = jot_executable_use(e).bytes;
        }
    }
    jot_version_use use = jot_executable_use(e);
    ck_assert_uint_eq(use.kept, 4);
    ck_assert_uint_eq(use.most, 4);
    ck_assert_uint_eq(use.evicted, 96);
    ck_assert_uint_le(use.bytes, bytes + bytes / 4);
    ck_assert_uint_le(jot_memory().blocks, blocks);
    jot_set_most_versions(0);
    ck_assert_uint_eq(jot_executable_use(e).most, 512);
    jot_executable_release(e);
}
END_TEST

START_TEST(test_scope_programs)
{
    jot_version_use before = jot_scope_use();
    ck_assert_uint_eq(before.most, 256);
    jot_set_most_scope_programs(5);
    for (int round = 0; round < 2; round++)
        for (int n = 1; n <= 20; n++) {
            jot_scope *s = jot_scope_open();
            ck_assert_double_eq(jot_item(jot_sum(jot_full(JOT_F64, 0.5, n))), 0.5 * n);
            jot_scope_close(s);
        }
    jot_version_use use = jot_scope_use();
    ck_assert_uint_eq(use.most, 5);
    ck_assert_uint_le(use.kept, 6);
    ck_assert_uint_eq(use.made - before.made, 40);
    ck_assert_uint_ge(use.evicted - before.evicted, 34);
    ck_assert_uint_gt(use.bytes, 1000);
    jot_scope *s = jot_scope_open();
    ck_assert_double_eq(jot_item(jot_sum(jot_full(JOT_F64, 0.5, 20))), 10);
    jot_scope_close(s);
    ck_assert_uint_eq(jot_scope_use().hits - use.hits, 1);
    jot_set_most_scope_programs(0);
}
END_TEST

// ---- what calls hold ----

static jot_executable *own;
static int depth;

static jot_status call_again(void *ctx, const jot_callback_call *call)
{
    (void)ctx;
    int n = (int)call->in[0].dims[0];
    double *out = call->out[0].data;
    *out = n;
    if (n < 4) {
        depth++;
        *out += call_with(own, n + 1); // evicts the version that runs
    } else {
        jot_executable_release(own); // so does the user
    }
    return JOT_OK;
}

static jot_value calls_itself(jot_value x)
{
    const jot_type types[] = {JOT_TYPE(JOT_F64)};
    const jot_callback_spec spec = {.call = call_again, .n_out = 1, .out = types};
    jot_value y;
    jot_callback(&spec, &y, x);
    return jot_add(jot_sum(jot_sin(jot_mul(x, 0.0))), y);
}

START_TEST(test_release_and_eviction_while_it_runs)
{
    size_t blocks = jot_memory().blocks;
    for (int round = 0; round < 10; round++) {
        own = jot_jit(jot_fn(calls_itself), .most_versions = 1);
        depth = 0;
        ck_assert_double_eq(call_with(own, 1), 1 + 2 + 3 + 4);
        ck_assert_int_eq(depth, 3);
        ck_assert_uint_eq(jot_memory().blocks, blocks);
    }
}
END_TEST

static jot_value releases_itself(jot_value x)
{
    jot_executable_release(own);
    return jot_mul(x, 2.0);
}

static jot_value fails(jot_value x)
{
    jot_executable_release(own);
    return jot_reshape(x, 7);
}

START_TEST(test_release_while_it_is_traced)
{
    size_t blocks = jot_memory().blocks;
    own = jot_jit(jot_fn(releases_itself));
    ck_assert_double_eq(call_with(own, 1), 2);
    jot_array *x = jot_array_full(JOT_F64, 1, 2), *y = NULL;
    own = jot_jit(jot_fn(fails));
    ck_assert_int_eq(jot_call(own, JOT_IN(x), JOT_OUT(y)), JOT_ERR_SHAPE);
    jot_array_release(x);
    ck_assert_uint_eq(jot_memory().blocks, blocks);
}
END_TEST

static void *call_many(void *ctx)
{
    unsigned *seed = ctx;
    for (int i = 0; i < 60; i++) {
        int n = 1 + rand_r(seed) % 5;
        ck_assert_double_eq(call_with(own, n), 2 * n);
    }
    return NULL;
}

START_TEST(test_threads)
{
    enum { THREADS = 4 };
    pthread_t thread[THREADS];
    unsigned seed[THREADS];
    own = jot_jit(jot_fn(doubled), .most_versions = 2);
    for (unsigned i = 0; i < THREADS; i++) {
        seed[i] = i + 1;
        ck_assert_int_eq(pthread_create(&thread[i], NULL, call_many, &seed[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    jot_version_use use = jot_executable_use(own);
    ck_assert_uint_le(use.kept, 2);
    ck_assert_uint_eq(use.made - use.evicted, use.kept);
    ck_assert_uint_gt(use.evicted, 5);
    jot_executable_release(own);
}
END_TEST

static void add(TCase *t)
{
    tcase_add_test(t, test_least_recently_used_goes);
    tcase_add_test(t, test_static_data);
    tcase_add_test(t, test_scope_programs);
    tcase_add_test(t, test_release_and_eviction_while_it_runs);
    tcase_add_test(t, test_release_while_it_is_traced);
    tcase_add_test(t, test_threads);
}

int main(void) { return run_suite("trace/versions", add); }
