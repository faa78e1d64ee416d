// SPDX-License-Identifier: Apache-2.0
// Loops in C around evaluations of a lazy scope: each kind has a number of programs that does not
// grow with its trips, and gives what the same loop in C gives.
#include "trace_support.h"

#include "trace/carried.h"
#include "trace/lazy_cache.h"

enum { N = 5, SOON = 12, LATE = 60 };

struct loop {
    jot_array *start; // f64[N], 0.1 0.2 ..
    double x[N], v[N], sum;
    size_t compiled; // when SOON trips were done
};

static void begin(struct loop *l)
{
    *l = (struct loop){0};
    for (int i = 0; i < N; i++)
        l->x[i] = 0.1 * (i + 1);
    l->start = jot_array_from(l->x, N);
}

static void after_trip(struct loop *l, int trip)
{
    if (trip == SOON)
        l->compiled = lazy_compiled();
    if (trip > SOON)
        ck_assert_uint_eq(lazy_compiled(), l->compiled);
}

static double most(const double *x)
{
    double m = x[0];
    for (int i = 1; i < N; i++)
        m = fmax(m, x[i]);
    return m;
}

#define SAME(have, want) ck_assert_double_eq_tol((have), (want), 1e-12)

START_TEST(test_one_state)
{
    struct loop l;
    begin(&l);
    jot_scope *s = jot_scope_open();
    size_t before = lazy_compiled();
    jot_value x = jot_from(l.start);
    for (int trip = 0; trip < LATE; trip++) {
        x = jot_add(x, jot_mul(1e-3, jot_sin(x)));
        for (int i = 0; i < N; i++)
            l.x[i] += 1e-3 * sin(l.x[i]);
        SAME(jot_item(jot_max(x)), most(l.x));
        after_trip(&l, trip);
    }
    // The first, one that makes up for x, and one that gives both.
    ck_assert_uint_le(l.compiled - before, 3);
    CHECK(x, 1e-12, l.x[0], l.x[1], l.x[2], l.x[3], l.x[4]);
    jot_scope_close(s);
    jot_array_release(l.start);
}
END_TEST

// Two states, of which a function is looked at, and another that is the second state's alone.
START_TEST(test_two_states)
{
    struct loop l;
    begin(&l);
    jot_scope *s = jot_scope_open();
    jot_value x = jot_from(l.start), v = jot_zeros_like(x);
    for (int trip = 0; trip < LATE; trip++) {
        v = jot_sub(v, jot_mul(0.01, x));
        x = jot_add(x, jot_mul(0.01, v));
        double energy = 0;
        for (int i = 0; i < N; i++) {
            l.v[i] -= 0.01 * l.x[i];
            l.x[i] += 0.01 * l.v[i];
            energy += l.x[i] * l.x[i] + l.v[i] * l.v[i];
        }
        SAME(jot_item(jot_sum(jot_add(jot_square(x), jot_square(v)))), energy);
        if (trip % 2)
            SAME(jot_item(jot_max(jot_abs(v))), fmax(fabs(l.v[0]), fabs(l.v[N - 1])));
        after_trip(&l, trip);
    }
    jot_scope_close(s);
    jot_array_release(l.start);
}
END_TEST

// The gradient is taken before or after the loss is looked at.
START_TEST(test_descent)
{
    struct loop l;
    begin(&l);
    jot_scope *s = jot_scope_open();
    jot_value p = jot_variable(jot_from(l.start));
    for (int trip = 0; trip < LATE; trip++) {
        jot_value loss = jot_sum(jot_square(jot_sub(jot_exp(p), 2.0))), g = loss;
        if (!_i)
            g = jot_gradient(loss, p);
        double want = 0;
        for (int i = 0; i < N; i++)
            want += (exp(l.x[i]) - 2) * (exp(l.x[i]) - 2);
        ck_assert_double_eq_tol(jot_item(loss), want, 1e-11);
        if (_i)
            g = jot_gradient(loss, p);
        p = jot_variable(jot_sub(p, jot_mul(0.05, g)));
        for (int i = 0; i < N; i++)
            l.x[i] -= 0.05 * 2 * (exp(l.x[i]) - 2) * exp(l.x[i]);
        after_trip(&l, trip);
    }
    jot_scope_close(s);
    jot_array_release(l.start);
}
END_TEST

// What is looked at decides what is done; two looks a trip, one of which is printed.
START_TEST(test_branches)
{
    struct loop l;
    begin(&l);
    jot_scope *s = jot_scope_open();
    jot_value x = jot_from(l.start);
    for (int trip = 0; trip < LATE; trip++) {
        jot_value y = jot_mul(x, 1.25);
        double m = most(l.x) * 1.25;
        SAME(jot_item(jot_max(y)), m);
        if (m > 1)
            y = jot_sub(y, 0.75);
        jot_value total = jot_sum(jot_cos(y));
        if (trip % 3 == 0)
            jot_print(total);
        else
            must(jot_eval(total, NULL));
        x = jot_add(x, jot_mul(0.5, jot_sub(y, x)));
        for (int i = 0; i < N; i++)
            l.x[i] += 0.5 * ((1.25 * l.x[i] - (m > 1 ? 0.75 : 0)) - l.x[i]);
        if (trip == 30)
            l.compiled = lazy_compiled();
        if (trip > 30)
            ck_assert_uint_eq(lazy_compiled(), l.compiled);
    }
    CHECK(x, 1e-11, l.x[0], l.x[1], l.x[2], l.x[3], l.x[4]);
    jot_scope_close(s);
    jot_array_release(l.start);
}
END_TEST

// A state that nobody looks at before the end.
START_TEST(test_late_look)
{
    struct loop l;
    begin(&l);
    jot_scope *s = jot_scope_open();
    jot_value x = jot_from(l.start), late = jot_zeros_like(x);
    size_t compiled[2];
    for (int trip = 0; trip < LATE; trip++) {
        x = jot_add(x, jot_mul(1e-2, jot_cos(x)));
        late = jot_add(jot_mul(late, 0.9), jot_sin(x));
        for (int i = 0; i < N; i++) {
            l.x[i] += 1e-2 * cos(l.x[i]);
            l.v[i] = 0.9 * l.v[i] + sin(l.x[i]);
        }
        SAME(jot_item(jot_max(x)), most(l.x));
        if (trip == SOON || trip == LATE - 1) {
            CHECK(jot_sum(late), 1e-12, l.v[0] + l.v[1] + l.v[2] + l.v[3] + l.v[4]);
            compiled[trip != SOON] = lazy_compiled();
        }
    }
    ck_assert_uint_le(compiled[1], compiled[0] + 1);
    jot_scope_close(s);
    jot_array_release(l.start);
}
END_TEST

// d x_n / d x_0 is the product of the slopes of all trips.
START_TEST(test_derivatives_through_all_trips)
{
    struct loop l;
    begin(&l);
    jot_scope *s = jot_scope_open();
    jot_value start = jot_variable(jot_from(l.start)), x = start;
    double slope[N] = {1, 1, 1, 1, 1};
    for (int trip = 0; trip < 8; trip++) {
        x = jot_add(x, jot_mul(0.1, jot_sin(x)));
        for (int i = 0; i < N; i++) {
            slope[i] *= 1 + 0.1 * cos(l.x[i]);
            l.x[i] += 0.1 * sin(l.x[i]);
        }
        SAME(jot_item(jot_max(x)), most(l.x));
    }
    CHECK(jot_gradient(jot_sum(x), start), 1e-12, slope[0], slope[1], slope[2], slope[3],
          slope[4]);
    jot_scope_close(s);
    jot_array_release(l.start);
}
END_TEST

static jot_status count_calls(void *ctx, const jot_callback_call *call)
{
    const double *in = call->in[0].data;
    double *out = call->out[0].data;
    ++*(int *)ctx;
    for (int i = 0; i < N; i++)
        out[i] = in[i] * 0.5;
    return JOT_OK;
}

// Effects happen once, and what they give is carried like anything else.
START_TEST(test_effects)
{
    struct loop l;
    begin(&l);
    int calls = 0;
    const jot_type types[] = {JOT_TYPE(JOT_F64, N)};
    const jot_callback_spec spec = {
        .call = count_calls, .ctx = &calls, .n_out = 1, .out = types};
    jot_scope *s = jot_scope_open();
    jot_value x = jot_from(l.start), y;
    for (int trip = 0; trip < 20; trip++) {
        x = jot_add(x, 1.0);
        jot_callback(&spec, &y, x);
        ck_assert_int_eq(calls, trip);
        double m = jot_item(jot_max(jot_mul(x, 2)));
        ck_assert_int_eq(calls, trip + 1);
        for (int i = 0; i < N; i++)
            l.x[i] += 1;
        SAME(m, 2 * most(l.x));
        x = jot_add(y, jot_mul(0.5, x));
        after_trip(&l, trip);
    }
    jot_scope_close(s);
    jot_array_release(l.start);
}
END_TEST

// What is kept is let go of; what is asked for again is computed again, from what there is.
START_TEST(test_memory)
{
    const int64_t n = 100000;
    size_t *most_bytes = carried_most_bytes(), before = *most_bytes;
    *most_bytes = 4 * 8 * (size_t)n;
    jot_array *start = jot_array_full(JOT_F64, 0, n);
    jot_scope *s = jot_scope_open();
    jot_value x = jot_from(start), early = x;
    for (int trip = 0; trip < 30; trip++) {
        x = jot_add(x, 1.0);
        if (trip == 2)
            early = x;
        ck_assert_double_eq(jot_item(jot_max(x)), trip + 1);
        ck_assert_uint_le(jot_memory().bytes, 8 * 8 * (size_t)n);
    }
    ck_assert_double_eq(jot_item(jot_sum(early)), 3 * (double)n);
    ck_assert_double_eq(jot_item(jot_sum(jot_sub(x, early))), 27 * (double)n);
    ck_assert_uint_le(jot_memory().bytes, 8 * 8 * (size_t)n);
    jot_scope_close(s);
    jot_array_release(start);
    *most_bytes = before;
}
END_TEST

// What is much larger than what it is made of gets no memory: a sum over a million pairs.
START_TEST(test_large_values_are_made_again)
{
    const int64_t n = 1000;
    jot_scope *s = jot_scope_open();
    jot_array *a = jot_array_full(JOT_F64, 0.5, n);
    jot_value u = jot_from(a), pairs = jot_mul(jot_reshape(u, n, 1), jot_reshape(u, 1, n));
    ck_assert_double_eq(jot_item(jot_sum(pairs)), 0.25 * (double)(n * n));
    for (int i = 0; i < 3; i++) {
        jot_value more = jot_add(pairs, (double)i);
        ck_assert_double_eq(jot_item(jot_max(more)), 0.25 + i);
        ck_assert_double_eq(jot_item(jot_min(more)), 0.25 + i);
    }
    ck_assert_uint_lt(jot_memory().bytes, 8 * (size_t)(n * n) / 4);
    jot_scope_close(s);
    jot_array_release(a);
}
END_TEST

static uint64_t nodes_of_loop(int trips)
{
    struct loop l;
    begin(&l);
    jot_scope *s = jot_scope_open();
    jot_value x = jot_from(l.start);
    for (int trip = 0; trip < trips; trip++) {
        x = jot_add(x, jot_mul(1e-3, jot_sin(x)));
        jot_item(jot_max(x));
    }
    uint64_t nodes = trace_top()->module->nodes_made;
    jot_scope_close(s);
    jot_array_release(l.start);
    return nodes;
}

START_TEST(test_time_is_linear)
{
    uint64_t some = nodes_of_loop(100), twice = nodes_of_loop(200), four = nodes_of_loop(400);
    ck_assert_uint_le(twice, 2 * some);
    ck_assert_uint_le(four, 2 * twice);
}
END_TEST

static void add(TCase *t)
{
    tcase_add_test(t, test_one_state);
    tcase_add_test(t, test_two_states);
    tcase_add_loop_test(t, test_descent, 0, 2);
    tcase_add_test(t, test_branches);
    tcase_add_test(t, test_late_look);
    tcase_add_test(t, test_derivatives_through_all_trips);
    tcase_add_test(t, test_effects);
    tcase_add_test(t, test_memory);
    tcase_add_test(t, test_large_values_are_made_again);
    tcase_add_test(t, test_time_is_linear);
}

int main(void) { return run_suite("trace/scope_loops", add); }
