// SPDX-License-Identifier: Apache-2.0
// The same functions on the host and on the first GPU, bit for bit.  Without a GPU nothing runs.
#include "jot/jot.h"
#include "support/suite.h"

#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void ok(jot_status status)
{
    ck_assert_msg(status == JOT_OK, "%s: %s", jot_status_name(status), jot_error_message());
}

static jot_array *random_array(int64_t n, float least, float most)
{
    float *data = malloc((size_t)n * sizeof *data);
    uint64_t state = 88172645463325252u + (uint64_t)n;
    for (int64_t i = 0; i < n; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        data[i] = least + (most - least) * (float)(state >> 40) * 0x1p-24f;
    }
    jot_array *a = jot_array_copy(JOT_F32, data, (int64_t[]){n, JOT_END});
    free(data);
    return a;
}

// Calls f on both with inputs on the host, and compares.
static void compare(jot_function f, size_t n_in, jot_array *const *in, size_t n_out)
{
    jot_array *results[2][4];
    jot_device *devices[] = {jot_host(), jot_cuda(0)};
    for (int i = 0; i < 2; i++) {
        jot_executable *e = jot_jit(f, .device = devices[i]);
        ok(jot_call_list(e, n_in, in, n_out, results[i]));
        for (size_t k = 0; k < n_out; k++)
            ck_assert_ptr_eq(jot_array_device(results[i][k]), devices[i]);
        jot_executable_release(e);
    }
    for (size_t k = 0; k < n_out; k++) {
        const void *here = jot_array_data(results[0][k]),
                   *there = jot_array_data(results[1][k]);
        ck_assert_msg(there, "%s", jot_error_message());
        size_t bytes = jot_array_bytes(results[0][k]);
        ck_assert_uint_eq(jot_array_bytes(results[1][k]), bytes);
        for (size_t at = 0; at < bytes; at++)
            if (((const unsigned char *)here)[at] != ((const unsigned char *)there)[at])
                ck_abort_msg("result %zu differs from byte %zu on", k, at);
    }
    jot_arrays_release(n_out, results[0]);
    jot_arrays_release(n_out, results[1]);
}

static jot_value axpy(jot_value x, jot_value y) { return jot_add(jot_mul(2.5, x), y); }

static jot_value chain(jot_value x, jot_value y)
{
    jot_value a = jot_mul(jot_sin(x), jot_exp(jot_neg(jot_abs(y))));
    jot_value b = jot_div(jot_add(a, 1), jot_add(jot_mul(y, y), 0.5));
    return jot_where(jot_greater(b, x), jot_tanh(b), jot_sqrt(jot_abs(x)));
}

START_TEST(maps_alike)
{
    static const int64_t sizes[] = {1, 3, 127, 1000, 1048576, 3000001};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        jot_array *in[] = {random_array(sizes[i], -9, 9), random_array(sizes[i], -4, 4)};
        compare(jot_fn(axpy), 2, in, 1);
        compare(jot_fn(chain), 2, in, 1);
        jot_arrays_release(2, in);
    }
}
END_TEST

static jot_value total(jot_value x, jot_value y) { return jot_sum(jot_mul(x, y)); }

START_TEST(sums_alike)
{
    static const int64_t sizes[] = {1, 100, 5000, 100000, 3000001};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        jot_array *in[] = {random_array(sizes[i], -9, 9), random_array(sizes[i], -4, 4)};
        compare(jot_fn(total), 2, in, 1);
        compare(jot_grad(jot_fn(total), 0), 2, in, 1);
        jot_arrays_release(2, in);
    }
}
END_TEST

static jot_value rows(jot_value x)
{
    jot_value t = jot_reshape(x, 1000, 300);
    return jot_sum(jot_mul(t, t), 1);
}

static jot_value columns(jot_value x) { return jot_sum(jot_reshape(x, 1000, 300), 0); }

START_TEST(reduces_alike)
{
    jot_array *in[] = {random_array(300000, -2, 2)};
    compare(jot_fn(rows), 1, in, 1);
    compare(jot_fn(columns), 1, in, 1);
    jot_arrays_release(1, in);
}
END_TEST

static jot_value steps(jot_value x, jot_value v)
{
    JOT_FOR (i, 500, x, v) {
        v = jot_sub(v, jot_mul(0.01, x));
        x = jot_add(x, jot_mul(0.01, v));
    }
    return x;
}

START_TEST(loops_alike)
{
    jot_array *in[] = {random_array(10000, -2, 2), random_array(10000, -1, 1)};
    compare(jot_fn(steps), 2, in, 1);
    jot_arrays_release(2, in);
}
END_TEST

// State, inputs and results stay on the device.
START_TEST(stays_on_the_device)
{
    jot_array *x = random_array(100000, -2, 2), *y = random_array(100000, -2, 2);
    jot_array *there[] = {jot_array_to(x, jot_cuda(0)), jot_array_to(y, jot_cuda(0))};
    const int second[] = {1, JOT_END};
    jot_executable *on[] = {jot_jit(jot_fn(axpy)),
                            jot_jit(jot_fn(axpy), .device = jot_cuda(0), .donate = second)};
    for (int i = 0; i < 50; i++) {
        jot_array *next, *far;
        ok(jot_call(on[0], JOT_IN(x, y), JOT_OUT(next)));
        ok(jot_call_list(on[1], 2, there, 1, &far));
        jot_array_release(y);
        jot_array_release(there[1]);
        y = next;
        there[1] = far;
        ck_assert_ptr_eq(jot_array_device(far), jot_cuda(0));
    }
    ck_assert(!memcmp(jot_array_data(y), jot_array_data(there[1]), jot_array_bytes(y)));
    jot_arrays_release(2, (jot_array *[]){x, y});
    jot_arrays_release(2, there);
    jot_executable_release(on[0]);
    jot_executable_release(on[1]);
    jot_device_memory_use use;
    ok(jot_device_memory(jot_cuda(0), &use));
    ck_assert_uint_eq(use.used, 0);
}
END_TEST

enum { SIDE = 2048 };

static jot_value product(jot_value x, jot_value y) { return jot_matmul(x, y); }

// The largest error of a row over the largest result of the row, of all rows.
static jot_value error_of(jot_value z, jot_value x, jot_value y)
{
    jot_value want = jot_matmul(jot_astype(x, JOT_F64), jot_astype(y, JOT_F64));
    jot_value error = jot_max(jot_abs(jot_sub(jot_astype(z, JOT_F64), want)), 1);
    return jot_max(jot_div(error, jot_max(jot_abs(want), 1)));
}

static double product_error(jot_precision precision, jot_array *x, jot_array *y)
{
    jot_executable *f = jot_jit(jot_fn(product), .device = jot_cuda(0), .precision = precision);
    jot_executable *g = jot_jit(jot_fn(error_of), .device = jot_cuda(0));
    jot_array *z, *error;
    ok(jot_call(f, JOT_IN(x, y), JOT_OUT(z)));
    ok(jot_call(g, JOT_IN(z, x, y), JOT_OUT(error)));
    double out = *(const double *)jot_array_data(error);
    jot_arrays_release(2, (jot_array *[]){z, error});
    jot_executable_release(f);
    jot_executable_release(g);
    return out;
}

// Of rows that are alike, and of such whose sizes are 2^-20 to 2^20.
START_TEST(three_products_err_as_one)
{
    for (int scaled = 0; scaled < 2; scaled++) {
        jot_array *flat[] = {random_array(SIDE * SIDE, -1, 1),
                             random_array(SIDE * SIDE, -2, 2)};
        jot_array *x, *y;
        jot_scope *s = jot_scope_open();
        jot_value row = jot_sub(jot_mod(jot_arange(JOT_F32, SIDE), 41), 20);
        row = jot_exp2(jot_mul(scaled, jot_reshape(row, SIDE, 1)));
        ok(jot_eval(jot_mul(row, jot_reshape(flat[0], SIDE, SIDE)), &x));
        ok(jot_eval(jot_reshape(flat[1], SIDE, SIDE), &y));
        jot_scope_close(s);
        double three = product_error(JOT_PRECISION_3TF32, x, y);
        double full = product_error(JOT_PRECISION_FULL, x, y);
        ck_assert_msg(three <= 1.5 * full, "an error of %g for %g", three, full);
        ck_assert_double_gt(three, 0);
        jot_arrays_release(4, (jot_array *[]){flat[0], flat[1], x, y});
    }
}
END_TEST

static void add_tests(TCase *tests)
{
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, maps_alike);
    tcase_add_test(tests, sums_alike);
    tcase_add_test(tests, reduces_alike);
    tcase_add_test(tests, loops_alike);
    tcase_add_test(tests, stays_on_the_device);
    tcase_add_test(tests, three_products_err_as_one);
}

int main(void)
{
    // Not asked of the driver, which is of no use in the processes of the tests once it is started.
    if (access("/dev/nvidia0", F_OK)) {
        puts("no GPU: nothing to test");
        return 77;
    }
    return suite_run("device", add_tests);
}
