// SPDX-License-Identifier: Apache-2.0
// Callbacks and printing in functions, blocks and transforms, by machine code and by the evaluator.
#include "debug_support.h"

#include <unistd.h>

// What a run writes to stdout, in a buffer.
static char printed[4096];
static int saved_stdout;
static FILE *captured;

static void capture_begin(void)
{
    fflush(stdout);
    saved_stdout = dup(1);
    captured = tmpfile();
    ck_assert_ptr_nonnull(captured);
    dup2(fileno(captured), 1);
}

static const char *capture_end(void)
{
    fflush(stdout);
    dup2(saved_stdout, 1);
    close(saved_stdout);
    rewind(captured);
    printed[fread(printed, 1, sizeof printed - 1, captured)] = 0;
    fclose(captured);
    return printed;
}

// What f prints at x.
static const char *prints(jot_function f, int n, const double *x)
{
    jot_executable *e = jot_jit(f);
    jot_array *in = vector(n, x), *out;
    capture_begin();
    jot_status status = jot_call(e, JOT_IN(in), JOT_OUT(out));
    const char *text = capture_end();
    ck_assert_msg(status == JOT_OK, "%s", jot_error_message());
    jot_array_release(in);
    jot_array_release(out);
    jot_executable_release(e);
    return text;
}

static jot_value shown(jot_value x)
{
    jot_value y = jot_mul(x, x);
    jot_printf("x = {}, y = {} {{}}\n", x, y);
    jot_print(y);
    return jot_sum(y);
}

START_TEST(test_print)
{
    static const double x[] = {1, 2};
    ck_assert_str_eq(prints(jot_fn(shown), 2, x), "x = [1. 2.], y = [1. 4.] {}\ny = [1. 4.]\n");
    ck_assert_str_eq(prints(jot_grad(jot_fn(shown), 0), 2, x),
                     "x = [1. 2.], y = [1. 4.] {}\ny = [1. 4.]\n");
    ck_assert_str_eq(
        prints(jot_vmap(jot_fn(shown), 0), 2, x),
        "[0] x = 1.0, y = 1.0 {}\n[1] x = 2.0, y = 4.0 {}\n[0] y = 1.0\n[1] y = 4.0\n");
}
END_TEST

static jot_value shown_in_loop(jot_value x)
{
    JOT_FOR (i, 3, x) {
        jot_printf("{}: {}\n", i, x);
        x = jot_mul(x, 2);
    }
    jot_printf("end\n");
    jot_printf("{}\n", x);
    return jot_sum(x);
}

START_TEST(test_print_in_loop)
{
    static const double x[] = {1, 2};
    const char *lines = "0: [1. 2.]\n1: [2. 4.]\n2: [4. 8.]\nend\n[ 8. 16.]\n";
    ck_assert_str_eq(prints(jot_fn(shown_in_loop), 2, x), lines);
    ck_assert_str_eq(prints(jot_grad(jot_fn(shown_in_loop), 0), 2, x), lines);
    ck_assert_str_eq(prints(jot_vmap(jot_fn(shown_in_loop), 0), 2, x),
                     "[0] 0: 1.0\n[1] 0: 2.0\n[0] 1: 2.0\n[1] 1: 4.0\n[0] 2: 4.0\n[1] 2: 8.0\n"
                     "end\n[0] 8.0\n[1] 16.0\n");
}
END_TEST

static jot_value shown_in_branch(jot_value x)
{
    JOT_IF (jot_less(x, 4), x) {
        jot_printf("small\n");
        x = jot_add(x, 0.5);
    } else {
        jot_printf("{}\n", x);
    }
    return x;
}

static jot_value shown_in_while(jot_value x)
{
    JOT_WHILE ((x), jot_less(x, 4)) {
        jot_printf("{}\n", x);
        x = jot_mul(2, x);
    }
    return x;
}

// Lanes of x around a function over the lanes of two numbers.
static jot_value shown_of_pair(jot_value x)
{
    jot_value pair = jot_stack(0, x, jot_add(x, 1)), y;
    JOT_IF (jot_less(x, 4), y) {
        JOT_VMAP ((pair), (y)) {
            jot_printf("{}\n", pair);
            y = jot_add(pair, 1);
        }
    } else {
        y = pair;
    }
    return jot_sum(y);
}

static jot_value shown_by_twos(jot_value x)
{
    jot_value pair = jot_stack(0, x, jot_add(x, 1)), y;
    JOT_VMAP ((pair), (y)) {
        y = shown_in_while(pair);
    }
    return jot_sum(y);
}

static jot_value shown_in_branches_by_twos(jot_value x)
{
    jot_value pair = jot_stack(0, x, jot_add(x, 1)), y;
    JOT_VMAP ((pair), (y)) {
        y = pair;
        JOT_FOR (i, 2, y) {
            y = shown_in_branch(y);
        }
    }
    return jot_sum(y);
}

// Lanes that take a branch or leave a while by themselves are named as all others are, and do so in
// order: all lanes of an inner map for the first of the outer one, in each trip.
START_TEST(test_print_in_lanes)
{
    static const double x[] = {1, 5, 3};
    const struct {
        jot_value (*f)(jot_value x);
        const char *lines;
    } cases[] = {
        {shown_in_branch, "[0] small\n[1] 5.0\n[2] small\n"},
        {shown_in_while, "[0] 1.0\n[0] 2.0\n[2] 3.0\n"},
        {shown_of_pair, "[0, 0] 1.0\n[0, 1] 2.0\n[2, 0] 3.0\n[2, 1] 4.0\n"},
        {shown_by_twos, "[0, 0] 1.0\n[0, 0] 2.0\n[0, 1] 2.0\n[2, 0] 3.0\n"},
        {shown_in_branches_by_twos,
         "[0, 0] small\n[0, 1] small\n[1, 0] 5.0\n[1, 1] 6.0\n[2, 0] small\n[2, 1] 4.0\n"
         "[0, 0] small\n[0, 1] small\n[1, 0] 5.0\n[1, 1] 6.0\n[2, 0] small\n[2, 1] 4.0\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_str_eq(prints(jot_vmap(jot_fn(cases[i].f), 0), 3, x), cases[i].lines);
}
END_TEST

static jot_value bad_format(jot_value x)
{
    jot_printf("{} and {}\n", x);
    return x;
}

static jot_value bad_brace(jot_value x)
{
    jot_printf("{x}\n", x);
    return x;
}

START_TEST(test_formats)
{
    fails_to_trace(jot_fn(bad_format),
                   "test_callbacks.c: jot_printf: the format has 2 {} for 1 values");
    fails_to_trace(jot_fn(bad_brace),
                   "test_callbacks.c: jot_printf: a brace of the format stands alone: "
                   "{} is a value, {{ and }} are braces");
}
END_TEST

static jot_status count_calls(void *ctx, const jot_callback_call *call)
{
    ++*(int *)ctx;
    *(float *)call->out[0].data = *(const float *)call->in[0].data + 1;
    return JOT_OK;
}

// What an effect gave stays when more is evaluated.
START_TEST(test_effects_in_scope_happen_once)
{
    jot_scope *s = jot_scope_open();
    int calls = 0;
    const jot_type types[] = {JOT_TYPE(JOT_F32)};
    const jot_callback_spec spec = {
        .call = count_calls, .ctx = &calls, .n_out = 1, .out = types};
    jot_value y, x = jot_add(jot_from(1.0), 2.0), a = x, b = x;
    jot_callback(&spec, &y, x);
    jot_value z = jot_add(y, 1);
    ck_assert_double_eq(jot_item(y), 4);
    ck_assert_double_eq(jot_item(z), 5);
    ck_assert_double_eq(jot_item(jot_mul(z, y)), 20);
    ck_assert_int_eq(calls, 1);
    capture_begin();
    JOT_FOR (i, 2, a, b) {
        jot_printf("{} ", a);
        a = jot_mul(a, 2);
        b = jot_add(b, a);
    }
    double last = jot_item(jot_add(a, 1)), sum = jot_item(jot_sub(b, 1));
    ck_assert_str_eq(capture_end(), "3.0 6.0 ");
    ck_assert_double_eq(last, 13);
    ck_assert_double_eq(sum, 20);
    jot_scope_close(s);
}
END_TEST

// Polls until the counter, which is outside of the program, has come to 4.
static jot_status poll(void *ctx, const jot_callback_call *call)
{
    *(bool *)call->out[0].data = ++*(int *)ctx < 4;
    return JOT_OK;
}

static int polls;

static jot_value polled(jot_value x, int64_t bound)
{
    const jot_type types[] = {JOT_TYPE(JOT_BOOL)};
    const jot_callback_spec spec = {.call = poll, .ctx = &polls, .n_out = 1, .out = types};
    jot_value more;
    JOT_WHILE ((x), (jot_callback(&spec, &more, x), more), .bound = bound) {
        x = jot_mul(x, 1);
    }
    return x;
}

static jot_value polled_freely(jot_value x) { return polled(x, 0); }
static jot_value polled_within(jot_value x) { return polled(x, 9); }

START_TEST(test_test_with_callback)
{
    jot_executable *e = jot_jit(jot_fn(polled_freely));
    jot_array *in = vector(1, (const double[]){7}), *out;
    polls = 0;
    ck_assert_msg(jot_call(e, JOT_IN(in), JOT_OUT(out)) == JOT_OK, "%s", jot_error_message());
    ck_assert_double_eq(jot_array_item(out), 7);
    ck_assert_int_eq(polls, 4);
    jot_arrays_release(1, &in);
    jot_arrays_release(1, &out);
    jot_executable_release(e);
    fails_to_trace(
        jot_fn(polled_within),
        "test_callbacks.c: JOT_WHILE: a bound is for a test without callbacks, for it is "
        "made once more behind the loop: count the trips in the state");
}
END_TEST

START_TEST(test_print_in_scope)
{
    jot_scope *s = jot_scope_open();
    jot_value x = jot_add(jot_from(1.0), 2.0);
    capture_begin();
    jot_printf("x = {}\n", x);
    jot_print(x);
    double y = jot_item(jot_mul(x, 2));
    ck_assert_str_eq(capture_end(), "x = 3.0\nx = 3.0\n");
    ck_assert_double_eq(y, 6);
    jot_scope_close(s);
}
END_TEST

// Squares, and counts how often it is called and with how many lanes.
struct counter {
    int calls, lanes;
    double fails_at;
};

static jot_status square(void *ctx, const jot_callback_call *call)
{
    struct counter *c = ctx;
    const jot_callback_array *x = &call->in[0], *y = &call->out[0];
    int64_t n = 1;
    for (int axis = 0; axis < x->rank; axis++)
        n *= x->dims[axis];
    c->calls++;
    c->lanes = call->n_lanes;
    for (int64_t i = 0; i < n; i++) {
        double v = ((const double *)x->data)[i];
        if (c->fails_at != 0 && v == c->fails_at)
            return v < 0 ? JOT_ERR_DEVICE : jot_callback_fail(JOT_ERR_IO, "the disk is full");
        ((double *)y->data)[i] = v * v;
    }
    return JOT_OK;
}

static struct counter counter;

static jot_value of_spec(jot_value x, enum jot_callback_map map)
{
    const jot_type types[] = {JOT_TYPE(JOT_F64)};
    const jot_callback_spec spec = {.call = square,
                                    .ctx = &counter,
                                    .name = "square",
                                    .n_out = 1,
                                    .out = types,
                                    .map = map};
    jot_value y;
    jot_callback(&spec, &y, x);
    return y;
}

static jot_value squared(jot_value x) { return of_spec(x, JOT_CALLBACK_LANES); }
static jot_value squared_at_once(jot_value x) { return of_spec(x, JOT_CALLBACK_BATCH); }

// Results of f at x.
static jot_status run_squares(jot_function f, const double x[3], double y[3])
{
    jot_executable *e = jot_jit(f);
    jot_array *in = vector(3, x), *out = NULL;
    jot_status status = jot_call(e, JOT_IN(in), JOT_OUT(out));
    if (status == JOT_OK)
        memcpy(y, jot_array_data(out), 3 * sizeof *y);
    else
        ck_assert_ptr_null(out);
    jot_array_release(in);
    jot_array_release(out);
    jot_executable_release(e);
    return status;
}

static void check_squares(jot_function f, double fails_at, int calls, int lanes)
{
    static const double x[3] = {1, -2, 3};
    double y[3];
    counter = (struct counter){.fails_at = fails_at};
    must(run_squares(f, x, y));
    for (int i = 0; i < 3; i++)
        ck_assert_double_eq(y[i], x[i] * x[i]);
    ck_assert_int_eq(counter.calls, calls);
    ck_assert_int_eq(counter.lanes, lanes);
}

static jot_value squared_dropped(jot_value x)
{
    squared(jot_sum(x));
    return jot_mul(x, x);
}

static jot_value squared_lanes(jot_value x)
{
    jot_value y;
    JOT_VMAP ((x), (y)) {
        y = squared(x);
    }
    return y;
}

START_TEST(test_callback_batch)
{
    check_squares(jot_vmap(jot_fn(squared_at_once), 0), 0, 1, 1);
    check_squares(jot_fn(squared_dropped), 0, 1, 0);
}
END_TEST

START_TEST(test_callback_lanes)
{
    check_squares(jot_vmap(jot_fn(squared), 0), 0, 3, 0);
    check_squares(jot_fn(squared_lanes), 0, 3, 0);
}
END_TEST

START_TEST(test_callback_fails)
{
    static const double x[3] = {1, -2, 3};
    double y[3];
    counter = (struct counter){.fails_at = 3};
    ck_assert_int_eq(run_squares(jot_vmap(jot_fn(squared_at_once), 0), x, y), JOT_ERR_IO);
    ck_assert_str_eq(said(), "test_callbacks.c: jot_callback: square: the disk is full");
    counter = (struct counter){.fails_at = -2};
    ck_assert_int_eq(run_squares(jot_vmap(jot_fn(squared_at_once), 0), x, y), JOT_ERR_DEVICE);
    ck_assert_str_eq(said(), "test_callbacks.c: jot_callback: square: JOT_ERR_DEVICE");
}
END_TEST

static jot_value squared_in_loops(jot_value x)
{
    JOT_FOR (i, 2, x) {
        JOT_FOR (k, 3, x) {
            x = jot_add(jot_add(x, 1), jot_sub(squared(x), jot_mul(x, x)));
        }
    }
    return x;
}

static jot_value squared_in_branch(jot_value x)
{
    jot_value y;
    JOT_IF (jot_greater(x, 0), y) {
        y = squared(x);
    } else {
        y = x;
    }
    return y;
}

// Until x is 4.
static jot_value squared_in_while(jot_value x)
{
    JOT_WHILE ((x), jot_less(x, 4)) {
        x = jot_add(jot_add(x, 1), jot_sub(squared(x), jot_mul(x, x)));
    }
    return x;
}

// A message names the lane and the trips in which a callback failed.
START_TEST(test_failing_callback_is_named)
{
#define SQUARE "test_callbacks.c: jot_callback: square: the disk is full"
    static const struct {
        jot_value (*f)(jot_value x);
        double x[3], fails_at;
        const char *message;
    } cases[] = {
        {squared, {1, 2, 3}, 3, SQUARE ", in lane 2"},
        {squared_in_branch, {-1, 2, 3}, 2, SQUARE ", in lane 1"},
        // x is one more after each trip.
        {squared_in_loops, {-20, -10, 8}, 12, SQUARE ", in lane 2, in trips 1, 1"},
        {squared_in_while, {3, 1, 2}, 2.5, NULL},
        {squared_in_while, {3, 0.5, 1}, 2.5, SQUARE ", in lane 1, in trip 2"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double y[3];
        counter = (struct counter){.fails_at = cases[i].fails_at};
        jot_function f = jot_vmap(jot_fn(cases[i].f), 0);
        jot_status status = run_squares(f, cases[i].x, y);
        ck_assert_int_eq(status, cases[i].message ? JOT_ERR_IO : JOT_OK);
        if (cases[i].message)
            ck_assert_str_eq(said(), cases[i].message);
    }
}
END_TEST

static jot_value sum_squared(jot_value x) { return jot_sum(squared(jot_sum(x))); }

START_TEST(test_callback_has_no_derivative)
{
    fails_to_trace(
        jot_grad(jot_fn(sum_squared), 0),
        "test_callbacks.c: jot_grad: the callback square has no derivative: give it one "
        "by jot_custom_vjp or jot_custom_jvp, or take jot_stop_gradient of its arguments");
}
END_TEST

static void squared_forward(const jot_value *in, jot_value *out, void *ctx)
{
    (void)ctx;
    out[0] = squared(in[0]);
    out[1] = in[0];
}

static void squared_backward(const jot_value *in, jot_value *out, void *ctx)
{
    (void)ctx;
    out[0] = jot_mul(jot_mul(in[0], 2), in[1]);
}

static jot_value ruled(jot_value x)
{
    jot_function f =
        jot_custom_vjp(jot_fn(squared), jot_function_make(squared_forward, 1, 2, NULL),
                       jot_function_make(squared_backward, 2, 1, NULL));
    jot_value y;
    jot_apply(f, 1, &x, 1, &y);
    return y;
}

static jot_value ruled_sum(jot_value x)
{
    jot_value y = ruled(jot_sum(x));
    return jot_add(y, jot_mul(x, 0));
}

static jot_value ruled_total(jot_value x) { return jot_mean(ruled_sum(x)); }

static jot_value checkpointed(jot_value x)
{
    jot_value y;
    jot_apply(jot_checkpoint(jot_fn(ruled_total)), 1, &x, 1, &y);
    return y;
}

// f(f(f(x))) with f(x) = x^2 / 2
static jot_value ruled_in_scan(jot_value x)
{
    jot_value y = jot_sum(x);
    JOT_SCAN ((y), (), (), .length = 3, .checkpoint = 1) {
        y = jot_mul(ruled(y), 0.5);
    }
    return y;
}

// What has no derivative for another reason is an error, callbacks or not.
static jot_value multiplied(jot_value x)
{
    jot_value at = jot_zeros(JOT_I32, 2), y = squared(jot_sum(x)),
              u = jot_stack(0, y, jot_sum(x));
    jot_assert(jot_greater(y, 0), NULL);
    return jot_sum(jot_at_mul(jot_ones_like(u), at, u));
}

static jot_value ruled_product(jot_value x)
{
    jot_function f =
        jot_custom_vjp(jot_fn(multiplied), jot_function_make(squared_forward, 1, 2, NULL),
                       jot_function_make(squared_backward, 2, 1, NULL));
    jot_value y, s = jot_sum(x);
    jot_apply(f, 1, &s, 1, &y);
    return y;
}

START_TEST(test_other_failures_are_told)
{
    jot_executable *e = jot_jit(jot_grad(jot_fn(ruled_product), 0));
    jot_array *a = vector(1, (const double[]){1}), *g = NULL;
    ck_assert_int_eq(jot_call(e, JOT_IN(a), JOT_OUT(g)), JOT_ERR_ARGUMENT);
    const char *message = strstr(said(), "jot_grad: scatter_mul has no derivative");
    ck_assert_msg(message && strstr(message, "indices are unique (") &&
                      strstr(message, ": jot_at_mul(jot_ones_like(u), at, u))"),
                  "%s", said());
    jot_array_release(a);
    jot_executable_release(e);
}
END_TEST

START_TEST(test_callback_is_not_repeated)
{
    static const double x[3] = {1, -2, 3};
    double y[3];
    counter = (struct counter){0};
    must(run_squares(jot_grad(jot_fn(checkpointed), 0), x, y));
    ck_assert_double_eq(y[1], 4);
    ck_assert_int_eq(counter.calls, 1);
    counter = (struct counter){0};
    must(run_squares(jot_grad(jot_fn(ruled_in_scan), 0), x, y));
    ck_assert_double_eq(y[1], 8);
    ck_assert_int_eq(counter.calls, 3);
}
END_TEST

START_TEST(test_callback_with_a_rule)
{
    static const double x[3] = {1, -2, 3};
    double y[3];
    counter = (struct counter){0};
    must(run_squares(jot_grad(jot_fn(ruled_total), 0), x, y));
    for (int i = 0; i < 3; i++)
        ck_assert_double_eq(y[i], 4);
    ck_assert_int_eq(counter.calls, 1);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_test(t, test_print);
    tcase_add_test(t, test_print_in_loop);
    tcase_add_test(t, test_print_in_lanes);
    tcase_add_test(t, test_formats);
    tcase_add_test(t, test_effects_in_scope_happen_once);
    tcase_add_test(t, test_test_with_callback);
    tcase_add_test(t, test_print_in_scope);
    tcase_add_test(t, test_callback_batch);
    tcase_add_test(t, test_callback_lanes);
    tcase_add_test(t, test_callback_fails);
    tcase_add_test(t, test_failing_callback_is_named);
    tcase_add_test(t, test_callback_has_no_derivative);
    tcase_add_test(t, test_other_failures_are_told);
    tcase_add_test(t, test_callback_is_not_repeated);
    tcase_add_test(t, test_callback_with_a_rule);
}

int main(void) { return run_by_both("callbacks", add_tests); }
