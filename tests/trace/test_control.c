// SPDX-License-Identifier: Apache-2.0
// Loops that end by what they compute, branches and maps as a user writes them, against C.
#include "control_support.h"

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

static jot_value backward(jot_value a) { return jot_gradient(root(a), a); }

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
    CHECK(jot_grad(jot_fn(root)), in, 1, 0, 1e-12, 0.5 / sqrt(2));
    CHECK(jot_grad(jot_grad(jot_fn(root))), in, 1, 0, 1e-12, -0.25 / (2 * sqrt(2)));
    CHECK(jot_fn(backward), in, 1, 0, 1e-12, 0.5 / sqrt(2));
    CHECK(jot_vmap(jot_grad(jot_fn(root))), batch, 1, 0, 1e-12, 0.5 / sqrt(2), 0.5 / 3, 1);
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

// -- JOT_SWITCH ----------------------------------------------------------------------------------

static jot_value cases(jot_value k, jot_value x)
{
    jot_value y = jot_from(0), z = x;
    JOT_SWITCH (k, 4, y, z) {
    case 0:
        y = jot_sin(x);
        break;
    case 1:
        z = jot_mul(x, x); // fall through
    case 2:
        y = jot_exp(x);
        break;
    }
    return jot_add(y, jot_mul(10, z));
}

static double cases_in_c(int k, double x, bool derivative)
{
    double y = k <= 0 ? (derivative ? cos(x) : sin(x)) : k < 3 ? exp(x) : 0;
    double z = k == 1 ? (derivative ? 2 * x : x * x) : derivative ? 1 : x;
    return y + 10 * z;
}

static jot_value twice(jot_value x, jot_value y) { return jot_mul(2, jot_mul(x, y)); }
static jot_value plus(jot_value x, jot_value y) { return jot_add(x, y); }
static jot_value constant(jot_value x, jot_value y)
{
    (void)x, (void)y;
    return jot_from(5);
}

static jot_value by_functions(jot_value k, jot_value x)
{
    const jot_function branches[] = {jot_fn(twice), jot_fn(constant),
                                     jot_grad(jot_fn(twice), 1), jot_fn(plus)};
    jot_value in[] = {x, jot_add(x, 1)}, out;
    jot_switch(k, 4, branches, 2, in, 1, &out);
    return out;
}

START_TEST(test_switch)
{
    const int32_t all[6] = {-7, 0, 1, 2, 3, 4};
    const double x = 0.7;
    double values[6], slopes[6];
    jot_array *in[] = {NULL, jot_array_from(&x)};
    for (int i = 0; i < 6; i++) {
        in[0] = jot_array_from(&all[i]);
        values[i] = cases_in_c(all[i], x, false);
        slopes[i] = cases_in_c(all[i], x, true);
        CHECK(jot_fn(cases), in, 1, 0, 1e-14, values[i]);
        CHECK(jot_grad(jot_fn(cases), 1), in, 1, 0, 1e-14, slopes[i]);
        jot_array_release(in[0]);
    }
    in[0] = jot_array_from(all, 6);
    CHECK(jot_vmap(jot_fn(cases), 0, JOT_NONE), in, 1, 0, 1e-14, values[0], values[1],
          values[2], values[3], values[4], values[5]);
    CHECK(jot_vmap(jot_grad(jot_fn(cases), 1), 0, JOT_NONE), in, 1, 0, 1e-14, slopes[0],
          slopes[1], slopes[2], slopes[3], slopes[4], slopes[5]);
    CHECK(jot_vmap(jot_fn(by_functions), 0, JOT_NONE), in, 1, 0, 1e-14, 2 * x * (x + 1),
          2 * x * (x + 1), 5, 2 * x, 2 * x + 1, 2 * x + 1);
    jot_array_release(in[0]);
    // Far outside of i32, whichever the type.
    const int64_t far = INT64_C(3) << 33;
    const uint32_t large = UINT32_MAX;
    in[0] = jot_array_from(&far);
    CHECK(jot_fn(cases), in, 1, 0, 1e-14, values[5]);
    jot_array_release(in[0]);
    in[0] = jot_array_from(&large);
    CHECK(jot_fn(cases), in, 1, 0, 1e-14, values[5]);
    jot_arrays_release(2, in);
}
END_TEST

// What C numbers become in one branch is the type of another; C11's true is an integer.
static jot_value mixed_numbers(jot_value x)
{
    jot_value y, z;
    JOT_IF (jot_greater(x, 0), y, z) {
        y = jot_from(1);
        z = jot_from(2);
    } else {
        y = x;
        z = jot_from(2.5);
    }
    JOT_IF (1, y) {
        y = jot_add(y, 1);
    }
    return jot_add(y, z);
}

// A C number is kept wider than it looks until it meets a type; here one branch has no use for it.
static jot_value captured_number(jot_value x)
{
    jot_value third = jot_div(jot_from(1.0), 3.0), y;
    JOT_IF (jot_greater(x, 0), y) {
        y = jot_mul(third, x);
    } else {
        y = x;
    }
    return y;
}

START_TEST(test_numbers_in_branches)
{
    for (double x = -1; x < 2; x += 2) {
        jot_array *in[] = {jot_array_from(&x)};
        CHECK(jot_fn(mixed_numbers), in, 1, 0, 0, x > 0 ? 1 + 1 + 2 : x + 1 + 2.5);
        CHECK(jot_fn(captured_number), in, 1, 0, 0, x > 0 ? 1.0 / 3 * x : x);
        jot_arrays_release(1, in);
    }
}
END_TEST

// -- JOT_MAP -------------------------------------------------------------------------------------

static int64_t batch;

static jot_value squares(jot_value scale, jot_value x)
{
    jot_value y, n = x;
    JOT_MAP ((x, n), (y, n), .batch = batch) {
        y = jot_mul(scale, jot_sum(jot_mul(x, x)));
        n = jot_sum(n);
    }
    return jot_add(y, jot_mul(100, n));
}

static jot_value sum_of_squares(jot_value scale, jot_value x)
{
    return jot_sum(squares(scale, x));
}

static jot_value norm(jot_value x) { return jot_sum(jot_mul(x, x)); }

static jot_value by_map(jot_value x)
{
    jot_value y;
    jot_map(jot_grad(jot_fn(norm)), 1, &x, 1, &y, &(jot_loop_options){.batch = batch});
    return y;
}

START_TEST(test_map)
{
    const double scale = 0.5, x[10] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    double want[5], total = 0, twice_x[10], slope[10];
    for (int i = 0; i < 5; i++) {
        double a = x[2 * i], b = x[2 * i + 1];
        want[i] = scale * (a * a + b * b) + 100 * (a + b);
        total += a * a + b * b;
    }
    for (int i = 0; i < 10; i++) {
        twice_x[i] = 2 * x[i];
        slope[i] = 2 * scale * x[i] + 100;
    }
    jot_array *in[] = {jot_array_from(&scale), jot_array_from(x, 5, 2)};
    jot_array *none[] = {in[0], jot_array_full(JOT_F64, 0, 0, 2)};
    jot_array *lanes[] = {in[0], jot_array_from(x, 1, 5, 2)};
    for (batch = 0; batch < 8; batch++) {
        check(jot_fn(squares), 2, in, 1, 0, 5, want, 1e-14);
        CHECK(jot_grad(jot_fn(sum_of_squares)), in, 1, 0, 1e-14, total);
        check(jot_grad(jot_fn(sum_of_squares), 1), 2, in, 1, 0, 10, slope, 1e-14);
        check(jot_vmap(jot_fn(squares), JOT_NONE, 0), 2, lanes, 1, 0, 5, want, 1e-14);
        check(jot_fn(squares), 2, none, 1, 0, 0, NULL, 0);
        check(jot_fn(by_map), 1, in + 1, 1, 0, 10, twice_x, 1e-14);
    }
    jot_arrays_release(2, in);
    jot_array_release(none[1]);
    jot_array_release(lanes[1]);
}
END_TEST

// Bodies that do nothing change nothing.
static jot_value idle(jot_value x)
{
    jot_value y = jot_mul(2, x);
    JOT_FOR (i, 3, y) {
    }
    JOT_IF (jot_greater(x, 0), y) {
    } else {
    }
    JOT_SCAN ((y), (), (), .length = 4) {
    }
    JOT_SWITCH (0, 2, y) {
    }
    return y;
}

START_TEST(test_idle)
{
    const double x = 3;
    jot_array *in[] = {jot_array_from(&x)};
    CHECK(jot_fn(idle), in, 1, 0, 0, 6);
    CHECK(jot_grad(jot_fn(idle)), in, 1, 0, 0, 2);
    jot_arrays_release(1, in);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("control");
    TCase *t = tcase_create("trace/control");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, test_while_and_if);
    tcase_add_test(t, test_switch);
    tcase_add_test(t, test_numbers_in_branches);
    tcase_add_test(t, test_map);
    tcase_add_test(t, test_idle);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? 1 : 0;
}
