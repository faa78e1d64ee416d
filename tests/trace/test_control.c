// SPDX-License-Identifier: Apache-2.0
// Loops and branches as a user writes them, against loops in C.
#include "base/status.h"

#include <check.h>
#include <jot/jot.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void must(jot_status status)
{
    ck_assert_msg(status == JOT_OK, "%s", jot_error_message());
}

static void check(jot_function f, size_t n_in, jot_array **in, size_t n_out, size_t which,
                  size_t count, const double *want, double tolerance)
{
    jot_executable *e = jot_jit(f);
    jot_array *out[8] = {NULL};
    must(jot_call_list(e, n_in, in, n_out, out));
    ck_assert_int_eq(jot_array_size(out[which]), count);
    for (size_t i = 0; i < count; i++) {
        double got = ((const double *)jot_array_data(out[which]))[i];
        ck_assert_msg(fabs(got - want[i]) <= tolerance * (1 + fabs(want[i])),
                      "element %zu is %.17g, not %.17g", i, got, want[i]);
    }
    jot_arrays_release(n_out, out);
    jot_executable_release(e);
}
#define CHECK(f, in, n_out, which, tolerance, ...)                                             \
    do {                                                                                       \
        const double want_[] = {__VA_ARGS__};                                                  \
        check((f), sizeof(in) / sizeof *(in), (in), (n_out), (which),                          \
              sizeof want_ / sizeof *want_, want_, (tolerance));                               \
    } while (0)

// -- JOT_FOR ------------------------------------------------------------------------------------

static jot_value spring(jot_value k)
{
    jot_value x = jot_ones_like(k), v = jot_from(0.0);
    JOT_FOR (i, 50, x, v) {
        v = jot_sub(v, jot_mul(0.01, jot_mul(k, x)));
        x = jot_add(x, jot_mul(0.01, v));
    }
    return x;
}

static double spring_in_c(double k)
{
    double x = 1, v = 0;
    for (int i = 0; i < 50; i++) {
        v = v - 0.01 * (k * x);
        x = x + 0.01 * v;
    }
    return x;
}

START_TEST(test_for)
{
    double k = 1.3, h = 1e-5;
    jot_array *in[] = {jot_array_from(&k)};
    CHECK(jot_fn(spring), in, 1, 0, 1e-14, spring_in_c(k));
    CHECK(jot_grad(jot_fn(spring)), in, 1, 0, 1e-8,
          (spring_in_c(k + h) - spring_in_c(k - h)) / (2 * h));
    CHECK(jot_grad(jot_grad(jot_fn(spring))), in, 1, 0, 1e-4,
          (spring_in_c(k + h) - 2 * spring_in_c(k) + spring_in_c(k - h)) / (h * h));
    const double ks[3] = {0.5, 1, 2};
    jot_array *batch[] = {jot_array_from(ks, 3)};
    CHECK(jot_vmap(jot_fn(spring)), batch, 1, 0, 1e-14, spring_in_c(0.5), spring_in_c(1),
          spring_in_c(2));
    CHECK(jot_vmap(jot_grad(jot_fn(spring))), batch, 1, 0, 1e-8,
          (spring_in_c(0.5 + h) - spring_in_c(0.5 - h)) / (2 * h),
          (spring_in_c(1 + h) - spring_in_c(1 - h)) / (2 * h),
          (spring_in_c(2 + h) - spring_in_c(2 - h)) / (2 * h));
    jot_arrays_release(1, in);
    jot_arrays_release(1, batch);
}
END_TEST

// The index, a carry that nobody changes, carries that change places, no trips.
static jot_value indices(jot_value x)
{
    jot_value a = x, b = jot_mul(2, x), c = x, none = x;
    JOT_FOR (i, 5, a, b, c) {
        jot_value t = a;
        a = jot_add(b, jot_mul(c, i));
        b = t;
    }
    JOT_FOR (i, 0, none) {
        none = jot_add(none, i);
    }
    return jot_add(jot_add(a, jot_mul(10, b)), jot_mul(100, none));
}

static double indices_in_c(double x)
{
    double a = x, b = 2 * x, c = x;
    for (int i = 0; i < 5; i++) {
        double t = a;
        a = b + c * i;
        b = t;
    }
    return a + 10 * b + 100 * x;
}

static jot_value computed_trips(jot_value x)
{
    jot_value n = jot_convert(jot_floor(x), JOT_I32), s = jot_from(0);
    JOT_FOR (i, n, s) {
        s = jot_add(s, jot_mul(x, i));
    }
    return s;
}

START_TEST(test_for_index)
{
    double x = 7.25;
    jot_array *in[] = {jot_array_from(&x)};
    CHECK(jot_fn(indices), in, 1, 0, 0, indices_in_c(x));
    CHECK(jot_grad(jot_fn(indices)), in, 1, 0, 1e-14, indices_in_c(1));
    CHECK(jot_fn(computed_trips), in, 1, 0, 0, 21 * x);
    jot_arrays_release(1, in);
}
END_TEST

// -- JOT_SCAN -----------------------------------------------------------------------------------

// A filter: states out, rows in, a captured gain.
static jot_value filter(jot_value gain, jot_value x)
{
    jot_value s = jot_from(0.0), y;
    JOT_SCAN ((s), (x), (y)) {
        s = jot_add(s, jot_mul(gain, jot_sub(x, s)));
        y = jot_mul(s, s);
    }
    return jot_add(jot_sum(y), jot_mul(3, s));
}

static double filter_in_c(double gain, const double *x)
{
    double s = 0, sum = 0;
    for (int i = 0; i < 4; i++) {
        s = s + gain * (x[i] - s);
        sum += s * s;
    }
    return sum + 3 * s;
}

static jot_value path_back(jot_value x)
{
    jot_value s = x, path;
    JOT_SCAN ((s), (), (path), .length = 3, .reverse = true) {
        path = s;
        s = jot_mul(2, s);
    }
    return path;
}

static void doubling(jot_value *carry, const jot_value *row, jot_value *out, void *ctx)
{
    (void)ctx;
    out[0] = jot_mul(carry[0], row[0]);
    carry[0] = jot_mul(2, carry[0]);
}

static jot_value by_function(jot_value x)
{
    jot_value carry[1] = {jot_from(1.0)}, out[1];
    jot_scan(doubling, NULL, 1, carry, 1, &x, 1, out, NULL);
    return out[0];
}

START_TEST(test_scan)
{
    const double gain = 0.3, x[4] = {1, -2, 0.5, 4}, h = 1e-6;
    double grad[4];
    jot_array *in[] = {jot_array_from(&gain), jot_array_from(x, 4)};
    CHECK(jot_fn(filter), in, 1, 0, 1e-14, filter_in_c(gain, x));
    CHECK(jot_grad(jot_fn(filter)), in, 1, 0, 1e-8,
          (filter_in_c(gain + h, x) - filter_in_c(gain - h, x)) / (2 * h));
    for (int i = 0; i < 4; i++) {
        double up[4], down[4];
        memcpy(up, x, sizeof x);
        memcpy(down, x, sizeof x);
        up[i] += h;
        down[i] -= h;
        grad[i] = (filter_in_c(gain, up) - filter_in_c(gain, down)) / (2 * h);
    }
    CHECK(jot_grad(jot_fn(filter), 1), in, 1, 0, 1e-8, grad[0], grad[1], grad[2], grad[3]);
    double one = 1.5;
    jot_array *start[] = {jot_array_from(&one)};
    CHECK(jot_fn(path_back), start, 1, 0, 0, 6, 3, 1.5);
    jot_array *rows[] = {jot_array_from(x, 4)};
    CHECK(jot_fn(by_function), rows, 1, 0, 0, 1, -4, 2, 32);
    jot_arrays_release(2, in);
    jot_arrays_release(1, start);
    jot_arrays_release(1, rows);
}
END_TEST

// -- JOT_WHILE and JOT_IF -------------------------------------------------------------------------

static jot_value root(jot_value a)
{
    jot_value x = jot_from(1.0), last = jot_from(0.0);
    JOT_WHILE ((x, last), jot_greater(jot_abs(jot_sub(x, last)), 1e-12)) {
        last = x;
        x = jot_mul(0.5, jot_add(x, jot_div(a, x)));
    }
    return x;
}

static jot_value branches(jot_value x)
{
    jot_value y, kept = x;
    JOT_IF (jot_greater(x, 0), y) {
        y = jot_log(x);
    } else {
        y = jot_sub(jot_mul(x, x), 1);
    }
    JOT_IF (jot_less(x, 100), kept) {
        kept = jot_mul(kept, 3);
    }
    return jot_add(y, kept);
}

// A branch in a loop in a branch.
static jot_value nested(jot_value x)
{
    jot_value y = x;
    JOT_IF (jot_greater(x, -10), y) {
        JOT_FOR (i, 6, y) {
            JOT_IF (jot_greater(y, 2), y) {
                y = jot_mul(0.5, jot_mul(y, x));
            } else {
                y = jot_add(y, x);
            }
        }
    } else {
        y = jot_from(0.0);
    }
    return y;
}

static double nested_in_c(double x)
{
    double y = x;
    for (int i = 0; i < 6; i++)
        y = y > 2 ? 0.5 * (y * x) : y + x;
    return y;
}

START_TEST(test_while_and_if)
{
    const double values[3] = {2, 9, 0.25}, h = 1e-7;
    jot_array *in[] = {jot_array_from(&values[0])}, *batch[] = {jot_array_from(values, 3)};
    CHECK(jot_fn(root), in, 1, 0, 1e-12, sqrt(2));
    CHECK(jot_vmap(jot_fn(root)), batch, 1, 0, 1e-12, sqrt(2), 3, 0.5);
    const double at[3] = {1.7, -0.5, 0.75};
    for (int i = 0; i < 3; i++) {
        jot_array *x[] = {jot_array_from(&at[i])};
        CHECK(jot_fn(branches), x, 1, 0, 1e-14,
              (at[i] > 0 ? log(at[i]) : at[i] * at[i] - 1) + 3 * at[i]);
        CHECK(jot_grad(jot_fn(branches)), x, 1, 0, 1e-14,
              (at[i] > 0 ? 1 / at[i] : 2 * at[i]) + 3);
        CHECK(jot_fn(nested), x, 1, 0, 1e-14, nested_in_c(at[i]));
        CHECK(jot_grad(jot_fn(nested)), x, 1, 0, 1e-5,
              (nested_in_c(at[i] + h) - nested_in_c(at[i] - h)) / (2 * h));
        jot_arrays_release(1, x);
    }
    jot_array *lanes[] = {jot_array_from(at, 3)};
    CHECK(jot_vmap(jot_fn(branches)), lanes, 1, 0, 1e-14, log(1.7) + 5.1, -0.75 - 1.5,
          log(0.75) + 2.25);
    CHECK(jot_vmap(jot_grad(jot_fn(branches))), lanes, 1, 0, 1e-14, 1 / 1.7 + 3, 2,
          1 / 0.75 + 3);
    CHECK(jot_vmap(jot_fn(nested)), lanes, 1, 0, 1e-14, nested_in_c(at[0]), nested_in_c(at[1]),
          nested_in_c(at[2]));
    jot_arrays_release(1, in);
    jot_arrays_release(1, batch);
    jot_arrays_release(1, lanes);
}
END_TEST

// -- Messages -------------------------------------------------------------------------------------

static jot_value grows(jot_value x)
{
    JOT_FOR (i, 3, x) {
        x = jot_stack(0, x, x);
    }
    return x;
}
static jot_value leaks(jot_value x)
{
    jot_value inside = x, s = x;
    JOT_FOR (i, 3, s) {
        inside = jot_exp(s);
        s = jot_add(s, inside);
    }
    return inside;
}
static jot_value leaves(jot_value x)
{
    JOT_FOR (i, 3, x) {
        x = jot_add(x, 1);
        break;
    }
    return x;
}
static jot_value differs(jot_value x)
{
    jot_value y;
    JOT_IF (jot_greater(x, 0), y) {
        y = jot_stack(0, x, x);
    } else {
        y = x;
    }
    return y;
}
static jot_value unset(jot_value x)
{
    jot_value y = {0};
    JOT_IF (jot_greater(x, 0), y) {
        y = x;
    } else {
    }
    return y;
}
static jot_value no_bool(jot_value x)
{
    JOT_WHILE ((x), jot_sub(x, 1)) {
        x = jot_mul(0.5, x);
    }
    return x;
}
static jot_value no_length(jot_value x)
{
    jot_value y;
    JOT_SCAN ((x), (), (y)) {
        y = x;
    }
    return y;
}
static jot_value backward(jot_value x) { return jot_gradient(root(x), x); }

static void fails(jot_function f, const char *says)
{
    double x = 2;
    jot_array *in = jot_array_from(&x), *out;
    jot_executable *e = jot_jit(f);
    ck_assert(jot_call_list(e, 1, &in, 1, &out) != JOT_OK);
    ck_assert_msg(strstr(jot_error_message(), says) != NULL, "\"%s\" does not say \"%s\"",
                  jot_error_message(), says);
    ck_assert_ptr_nonnull(strstr(jot_error_message(), "test_control.c:"));
    jot_array_release(in);
    jot_executable_release(e);
}

START_TEST(test_messages)
{
    fails(jot_fn(grows), "JOT_FOR: 'x' is f64[] before the step and f64[2] after it");
    fails(jot_fn(leaks), "is used outside the JOT_FOR");
    fails(jot_fn(leaves), "left by break, return or goto");
    fails(jot_fn(differs), "'y' is f64[2] in the first branch and f64[] in the second");
    fails(jot_fn(unset), "'y' has no value in the second branch");
    fails(jot_fn(no_bool), "the test is f64[]: it must be one bool");
    fails(jot_fn(no_length), "write .length = N");
    fails(jot_grad(jot_fn(root)), "bound");
    (void)backward;
}
END_TEST

int main(void)
{
    setenv("JOT_BACKEND", "eval", 1); // kernels have no loops yet
    Suite *s = suite_create("control");
    TCase *t = tcase_create("trace/control");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, test_for);
    tcase_add_test(t, test_for_index);
    tcase_add_test(t, test_scan);
    tcase_add_test(t, test_while_and_if);
    tcase_add_test(t, test_messages);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? 1 : 0;
}
