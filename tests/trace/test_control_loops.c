// SPDX-License-Identifier: Apache-2.0
// JOT_FOR and JOT_SCAN as a user writes them, against loops in C: carries, limits, loops in one another.
#include "control_support.h"

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

// The index, a carry that nobody changes, carries that are swapped, no trips.
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
    CHECK(jot_grad(jot_fn(computed_trips)), in, 1, 0, 0, 21);
    jot_arrays_release(1, in);
}
END_TEST

// A body of several functions: most carries are swapped or are made of their neighbours, some have loops
// and branches of their own.
enum { CARRIES = 300, WIDTH = 3, STEPS = 3 };

static void change_in_c(uint32_t k, uint32_t *x, const uint32_t *next)
{
    uint32_t y[WIDTH], z[WIDTH];
    memcpy(y, x, sizeof y);
    memcpy(z, next, sizeof z);
    while (k % 80 == 3 && x[0] % 1024 < 500)
        for (int j = 0; j < WIDTH; j++)
            x[j] = 3 * (x[j] + k) + 1;
    for (int i = 0; k % 80 == 4 && i < 3; i++)
        for (int j = 0; j < WIDTH; j++) {
            uint32_t t = x[j];
            x[j] = z[j];
            z[j] = 3 * t;
        }
    for (int j = 0; j < WIDTH && (k % 80 < 3 || k % 80 > 4); j++) {
        if (k % 80 == 5)
            x[j] = y[0] & 1 ? x[j] + k : 5 * next[j];
        else
            x[j] = k % 3 ? next[j] : y[j] + 7 * next[(j + 1) % WIDTH];
    }
}

static jot_value changed(uint32_t k, jot_value x, jot_value next)
{
    if (k % 80 == 3) {
        JOT_WHILE ((x), jot_less(jot_rem(jot_take(x, 0), 1024u), 500u))
            x = jot_add(jot_mul(3u, jot_add(x, k)), 1u);
    } else if (k % 80 == 4) {
        JOT_FOR (i, 3, x, next) {
            jot_value t = x;
            x = next;
            next = jot_mul(3u, t);
        }
    } else if (k % 80 == 5) {
        JOT_IF (jot_equal(jot_rem(jot_take(x, 0), 2u), 1u), x)
            x = jot_add(x, k);
        else
            x = jot_mul(5u, next);
    } else {
        x = k % 3 ? next : jot_add(x, jot_mul(7u, jot_roll(next, -1, 0)));
    }
    return x;
}

static void change(jot_value i, jot_value *carry, void *ctx)
{
    jot_value first = carry[0];
    (void)i;
    (void)ctx;
    for (uint32_t k = 0; k < CARRIES; k++)
        carry[k] = changed(k, carry[k], k + 1 < CARRIES ? carry[k + 1] : first);
}

static void change_in_turn(jot_value i, jot_value *carry, void *ctx)
{
    jot_for(change, ctx, 0, STEPS, CARRIES, carry);
    change(i, carry, ctx);
}

static jot_value many_carries(jot_value x)
{
    jot_value carry[CARRIES];
    for (uint32_t k = 0; k < CARRIES; k++)
        carry[k] = jot_add(x, k);
    jot_for(change_in_turn, NULL, 0, STEPS, CARRIES, carry);
    return jot_concatenate_list(0, CARRIES, carry);
}

START_TEST(test_many_carries)
{
    uint32_t x[CARRIES + 1][WIDTH];
    const uint32_t start[WIDTH] = {0, 1, 2};
    jot_array *in = jot_array_from(start, WIDTH), *out;
    for (uint32_t k = 0; k < CARRIES; k++)
        for (uint32_t j = 0; j < WIDTH; j++)
            x[k][j] = j + k;
    for (int i = 0; i < STEPS * (STEPS + 1); i++) {
        memcpy(x[CARRIES], x[0], sizeof *x);
        for (uint32_t k = 0; k < CARRIES; k++)
            change_in_c(k, x[k], x[k + 1]);
    }
    jot_executable *e = jot_jit(jot_fn(many_carries));
    must(jot_call_list(e, 1, &in, 1, &out));
    ck_assert(!memcmp(jot_array_data(out), x, CARRIES * sizeof *x));
    jot_arrays_release(1, &in);
    jot_arrays_release(1, &out);
    jot_executable_release(e);
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

static int64_t checkpoint_of_filter; // a constant of the trace

static jot_value checkpointed(jot_value gain, jot_value x)
{
    jot_value s = jot_from(0.0), y;
    JOT_SCAN ((s), (x), (y), .checkpoint = checkpoint_of_filter) {
        s = jot_add(s, jot_mul(gain, jot_sin(jot_sub(x, s))));
        y = jot_mul(s, s);
    }
    return jot_add(jot_sum(y), jot_mul(3, s));
}

START_TEST(test_checkpoint)
{
    const double gain = 0.3, x[5] = {1, -2, 0.5, 4, 3};
    const int64_t policies[] = {JOT_CHECKPOINT_ALL,       1, 2, 3, 77, JOT_CHECKPOINT_SQRT,
                                JOT_CHECKPOINT_RECOMPUTE, 0};
    jot_array *in[] = {jot_array_from(&gain), jot_array_from(x, 5)};
    double want = 0;
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
        checkpoint_of_filter = policies[i];
        jot_executable *e = jot_jit(jot_grad(jot_fn(checkpointed)));
        jot_array *out = NULL;
        must(jot_call_list(e, 2, in, 1, &out));
        double got = *(const double *)jot_array_data(out);
        ck_assert(i == 0 || got == want);
        want = got;
        jot_array_release(out);
        jot_executable_release(e);
    }
    jot_arrays_release(2, in);
}
END_TEST

// -- Other limits --------------------------------------------------------------------------------

// Limits that are C integers, and that are values; from a negative one; none.
static jot_value ranges(jot_value x)
{
    jot_value a = jot_from(0.0), b = a, c = a, d = a, n = jot_convert(x, JOT_I64);
    JOT_FOR_RANGE (i, -2, 3, a) {
        a = jot_add(jot_mul(2, a), jot_mul(x, i));
    }
    JOT_FOR_RANGE (i, jot_sub(n, 5), n, b) {
        b = jot_add(jot_mul(2, b), i);
    }
    JOT_FOR_RANGE (i, n, 9, c) {
        c = jot_add(jot_mul(2, c), i);
    }
    JOT_FOR_RANGE (i, 3, -3, d) {
        d = jot_add(d, i);
    }
    return jot_stack(0, a, b, c, d);
}

// Limits outside of i32, each a C integer or computed: the index is i64.
static jot_value long_range(jot_value first, jot_value end)
{
    jot_value s = jot_zeros(JOT_I64);
    JOT_FOR_RANGE (i, first, end, s) {
        s = jot_add(jot_mul(3, s), i);
    }
    return jot_convert(s, JOT_F64);
}

static jot_value long_ranges(jot_value n)
{
    const int64_t first = INT64_C(0x7ffffffe), end = first + 4;
    jot_value a = jot_convert(n, JOT_I64), b = jot_add(a, 4), c = jot_convert(b, JOT_U64);
    jot_value d = jot_convert(b, JOT_U32);
    return jot_stack(0, long_range(jot_from(first), jot_from(end)), long_range(a, b),
                     long_range(jot_from(first), b), long_range(a, jot_from(end)),
                     long_range(a, c), long_range(a, d));
}

// An end that no i64 reaches.
static jot_value last_range(jot_value n)
{
    jot_value s = jot_zeros(JOT_I32);
    JOT_FOR_RANGE (i, INT64_MAX - 3, jot_sub(n, 1), s) {
        s = jot_add(s, 1);
    }
    return jot_convert(s, JOT_F64);
}

START_TEST(test_long_ranges)
{
    const int64_t n = 0x7ffffffe;
    const uint64_t zero = 0;
    double want = 0;
    for (int64_t i = n; i < n + 4; i++)
        want = 3 * want + (double)i;
    jot_array *in[] = {jot_array_from(&n)};
    CHECK(jot_fn(long_ranges), in, 1, 0, 0, want, want, want, want, want, want);
    jot_arrays_release(1, in);
    in[0] = jot_array_from(&zero);
    CHECK(jot_fn(last_range), in, 1, 0, 0, 3);
    jot_arrays_release(1, in);
}
END_TEST

static void multiply(jot_value index, jot_value *carry, void *ctx)
{
    (void)ctx;
    carry[0] = jot_mul(carry[0], index);
    carry[1] = jot_add(carry[1], carry[0]);
}

static jot_value factorials(jot_value x)
{
    jot_value carry[] = {jot_ones_like(x), jot_zeros_like(x)};
    jot_for(multiply, NULL, 1, 6, 2, carry);
    return carry[1];
}

START_TEST(test_ranges)
{
    const double x = 3;
    jot_array *in[] = {jot_array_from(&x)};
    double want[4] = {0};
    for (int i = -2; i < 3; i++)
        want[0] = 2 * want[0] + x * i;
    for (int i = -2; i < 3; i++)
        want[1] = 2 * want[1] + i;
    for (int i = 3; i < 9; i++)
        want[2] = 2 * want[2] + i;
    CHECK(jot_fn(ranges), in, 1, 0, 0, want[0], want[1], want[2], 0);
    CHECK(jot_fn(factorials), in, 1, 0, 0, 1 + 2 + 6 + 24 + 120);
    jot_arrays_release(1, in);
}
END_TEST

// Loops in one another, more than an array has axes, with values kept at each level and branches between
// them; as loops of C, they are written out.
static jot_value deep(jot_value x, int levels, bool is_written_out)
{
    int trips = levels % 14 == 4 ? 2 : 1;
    if (levels == 0)
        return jot_sin(x);
    if (is_written_out) {
        for (int i = 0; i < trips; i++)
            x = jot_mul(x, jot_cos(jot_mul(0.2, deep(jot_mul(x, 0.99), levels - 1, true))));
        return x;
    }
    JOT_FOR (i, trips, x) {
        jot_value y = jot_mul(x, 0.99);
        JOT_IF (levels % 5 ? jot_from(true) : jot_greater(jot_sum(x), -1e3), y)
            y = deep(y, levels - 1, false);
        else
            y = jot_sin(y);
        x = jot_mul(x, jot_cos(jot_mul(0.2, y)));
    }
    return x;
}

static jot_value deep_loops(jot_value x) { return deep(x, 40, false); }
static jot_value deep_written_out(jot_value x) { return deep(x, 40, true); }

START_TEST(test_deep_loops)
{
    const double x[3] = {0.3, 1.1, -0.7};
    jot_array *in[] = {jot_array_from(x, 3)}, *out[2][2];
    jot_function f[] = {jot_fn(deep_loops), jot_fn(deep_written_out)};
    for (int i = 0; i < 2; i++) {
        jot_executable *e = jot_jit(jot_vmap(jot_grad(f[i])));
        jot_executable *second = jot_jit(jot_vmap(jot_jvp(jot_grad(f[i]))));
        must(jot_call_list(e, 1, in, 1, &out[i][0]));
        jot_array *both[] = {in[0], in[0]}, *all[2];
        must(jot_call_list(second, 2, both, 2, all));
        out[i][1] = all[1];
        jot_array_release(all[0]);
        jot_executable_release(e);
        jot_executable_release(second);
    }
    for (int i = 0; i < 6; i++) {
        double got = ((const double *)jot_array_data(out[0][i / 3]))[i % 3];
        double want = ((const double *)jot_array_data(out[1][i / 3]))[i % 3];
        ck_assert_msg(fabs(got - want) <= 1e-11 * fabs(want), "%d: %.17g, not %.17g", i, got,
                      want);
    }
    jot_arrays_release(2, out[0]);
    jot_arrays_release(2, out[1]);
    jot_arrays_release(1, in);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("control loops");
    TCase *t = tcase_create("trace/control loops");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, test_for);
    tcase_add_test(t, test_for_index);
    tcase_add_test(t, test_many_carries);
    tcase_add_test(t, test_scan);
    tcase_add_test(t, test_checkpoint);
    tcase_add_test(t, test_ranges);
    tcase_add_test(t, test_long_ranges);
    tcase_add_test(t, test_deep_loops);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? 1 : 0;
}
