// SPDX-License-Identifier: Apache-2.0
// Threads with little stack: what jot calls itself for is done on another stack, or a status says how
// much there has to be.
#include "trace_support.h"

#include <pthread.h>

struct task {
    void (*run)(struct task *task);
    jot_status status;
    double result;
    char message[300];
    int n;
};

static void *run(void *ctx)
{
    struct task *t = ctx;
    t->run(t);
    return NULL;
}

static void run_on(size_t kilobytes, struct task *t)
{
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    ck_assert_int_eq(pthread_attr_setstacksize(&attributes, kilobytes << 10), 0);
    ck_assert_int_eq(pthread_create(&thread, &attributes, run, t), 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attributes);
}

static void call_compiled(struct task *t, jot_executable *e)
{
    jot_array *x = jot_array_from(((double[]){0.5, 1, 1.5}), 3), *y = NULL;
    t->status = jot_call(e, JOT_IN(x), JOT_OUT(y));
    snprintf(t->message, sizeof t->message, "%s", t->status ? jot_error_message() : "");
    t->result = t->status == JOT_OK ? ((const double *)jot_array_data(y))[0] : NAN;
    jot_arrays_release(2, (jot_array *[]){x, y});
}

static void call(struct task *t, jot_function f)
{
    jot_executable *e = jot_jit(f);
    call_compiled(t, e);
    jot_executable_release(e);
}

static jot_value energy(jot_value x)
{
    JOT_FOR (i, 3, x) {
        x = jot_mul(x, jot_exp(jot_neg(jot_mul(x, x))));
    }
    return jot_logsumexp(x);
}

static void take_gradient(struct task *t) { call(t, jot_grad(jot_fn(energy))); }
static void take_hessian(struct task *t) { call(t, jot_hessian(jot_fn(energy))); }
static void take_many(struct task *t) { call(t, jot_vmap(jot_grad(jot_jvp(jot_fn(energy))))); }

static void take_transforms(struct task *t)
{
    jot_function f = jot_fn(energy);
    for (int i = 0; i < t->n; i++)
        f = jot_checkpoint(f);
    call(t, jot_jacfwd(f));
}

static void evaluate(struct task *t)
{
    jot_scope *s = jot_scope_open();
    jot_value x = jot_variable(jot_full(JOT_F64, 0.5, 3)), y = energy(x);
    t->result = jot_item(jot_max(jot_gradient(y, x)));
    t->status = isnan(t->result) ? JOT_ERR_TRACE : JOT_OK;
    snprintf(t->message, sizeof t->message, "%s", jot_error_message());
    jot_scope_close(s);
}

START_TEST(test_derivatives)
{
    void (*const tasks[])(struct task *) = {take_gradient, take_hessian, evaluate};
    struct task large = {.run = tasks[_i]};
    run_on(8192, &large);
    ck_assert_msg(large.status == JOT_OK, "%s", large.message);
    for (size_t kilobytes = 64; kilobytes <= 1024; kilobytes *= 2) {
        struct task t = {.run = tasks[_i]};
        run_on(kilobytes, &t);
        ck_assert_msg(t.status == JOT_OK, "%zu KiB: %s", kilobytes, t.message);
        ck_assert_double_eq(t.result, large.result);
    }
}
END_TEST

// What no stack is small enough for says so, and breaks nothing.
START_TEST(test_too_small)
{
    struct task t = {.run = take_gradient};
    // The driver of a GPU takes what it takes.
    for (size_t kilobytes = getenv("JOT_DEVICE") ? 64 : 20; kilobytes <= 48; kilobytes += 4) {
        run_on(kilobytes, &t);
        ck_assert(t.status != JOT_OK || kilobytes > 20);
        if (t.status != JOT_OK)
            ck_assert_msg(strstr(t.message, "KiB left, and tracing takes") != NULL, "%s",
                          t.message);
    }
    run_on(64, &t);
    ck_assert_msg(t.status == JOT_OK, "%s", t.message);
    struct task many = {.run = take_many};
    run_on(64, &many);
    ck_assert_int_ne(many.status, JOT_OK); // not a scalar
}
END_TEST

START_TEST(test_transforms)
{
    struct task t = {.run = take_transforms, .n = 10};
    run_on(64, &t);
    ck_assert_msg(t.status == JOT_OK, "%s", t.message);
    t.n = 2000;
    run_on(64, &t);
    ck_assert_int_eq(t.status, JOT_ERR_TRACE);
    ck_assert_msg(strstr(t.message, "2001 transforms of energy: the stack of the thread has"),
                  "%s", t.message);
}
END_TEST

static void endless_body(const jot_value *in, jot_value *out, void *ctx)
{
    jot_apply(jot_function_make(endless_body, 1, 1, ctx), 1, in, 1, out);
}

static void apply_endlessly(struct task *t)
{
    call(t, jot_function_make(endless_body, 1, 1, NULL));
}

START_TEST(test_endless_application)
{
    for (size_t kilobytes = 64; kilobytes <= 8192; kilobytes *= 2) {
        struct task t = {.run = apply_endlessly};
        run_on(kilobytes, &t);
        ck_assert_int_eq(t.status, JOT_ERR_TRACE);
        ck_assert_msg(strstr(t.message, "without end") || strstr(t.message, "give it a larger"),
                      "%s", t.message);
    }
}
END_TEST

static void nest(jot_value i, jot_value *carry, void *ctx)
{
    (void)i;
    int depth = *(int *)ctx;
    carry[0] = jot_add(carry[0], 1.0);
    if (depth == 0)
        return;
    int inner = depth - 1;
    jot_for(nest, &inner, 0, 1, 1, carry);
}

static void nested_body(const jot_value *in, jot_value *out, void *ctx)
{
    out[0] = jot_sum(in[0]);
    nest(out[0], out, ctx);
}

static void nest_loops(struct task *t) { call(t, jot_function_make(nested_body, 1, 1, &t->n)); }

// So many loops in each other, or a status.
START_TEST(test_nested_loops)
{
    struct task t = {.run = nest_loops, .n = 60};
    for (size_t kilobytes = 128; kilobytes <= 512; kilobytes *= 2) {
        run_on(kilobytes, &t);
        ck_assert_msg(t.status == JOT_OK, "%zu KiB: %s", kilobytes, t.message);
        ck_assert_double_eq(t.result, 3 + 61);
    }
    t.n = 5000;
    for (size_t kilobytes = 64; kilobytes <= 1024; kilobytes *= 4) {
        run_on(kilobytes, &t);
        ck_assert_int_eq(t.status, JOT_ERR_TRACE);
    }
}
END_TEST

// An expression with so many parentheses, signs or branches in each other.
static const char *deep_part;
static char deep_text[1 << 20];
static jot_value deep_expression(jot_value x)
{
    return jot_sum(jot_elementwise("x", deep_text, x));
}
static void parse(struct task *t)
{
    size_t n = strlen(deep_part);
    for (int i = 0; i < t->n; i++)
        memcpy(deep_text + (size_t)i * n, deep_part, n);
    snprintf(deep_text + (size_t)t->n * n, 9, "x");
    for (int i = 0; *deep_part == '(' && i < t->n; i++)
        snprintf(deep_text + t->n + 1 + i, 9, ")");
    call(t, jot_fn(deep_expression));
}

// What C does with it, or a status.
START_TEST(test_expressions)
{
    static const char *const parts[] = {"(", "+ ", "x < 0 ? 1 : "};
    deep_part = parts[_i];
    struct task t = {.run = parse, .n = 20};
    run_on(128, &t);
    ck_assert_msg(t.status == JOT_OK, "%s", t.message);
    ck_assert_double_eq(t.result, 3);
    t.n = 50000;
    for (size_t kilobytes = 64; kilobytes <= 512; kilobytes *= 2) {
        run_on(kilobytes, &t);
        ck_assert_msg(strstr(t.message, "nested too deeply for the stack"), "%s", t.message);
    }
}
END_TEST

static jot_status halve(void *ctx, const jot_callback_call *c)
{
    (void)ctx;
    for (int i = 0; i < 3; i++)
        ((double *)c->out[0].data)[i] = ((const double *)c->in[0].data)[i] / 2;
    return JOT_OK;
}

static jot_value with_callback(jot_value x)
{
    const jot_type types[] = {JOT_TYPE(JOT_F64, 3)};
    const jot_callback_spec spec = {.call = halve, .n_out = 1, .out = types};
    jot_value y;
    jot_callback(&spec, &y, jot_sin(x));
    return jot_matmul(y, y);
}

static void call_back(struct task *t) { call(t, jot_fn(with_callback)); }

START_TEST(test_callbacks)
{
    struct task t = {.run = call_back};
    for (size_t kilobytes = 64; kilobytes <= 256; kilobytes *= 2) {
        run_on(kilobytes, &t);
        ck_assert_msg(t.status == JOT_OK, "%s", t.message);
        double want = (pow(sin(0.5), 2) + pow(sin(1), 2) + pow(sin(1.5), 2)) / 4;
        ck_assert_double_eq_tol(t.result, want, 1e-14);
    }
}
END_TEST

static jot_value product(jot_value x)
{
    jot_value a = jot_random_normal(jot_random_key(1), JOT_F64, 200, 200);
    return jot_add(jot_sum(jot_matmul(a, a)), jot_max(jot_sort(x)));
}

static jot_executable *compiled;

static void run_compiled(struct task *t) { call_compiled(t, compiled); }

// What is compiled already runs on the least that a thread may have.
START_TEST(test_runs)
{
    const jot_function functions[] = {jot_fn(product), jot_grad(jot_fn(energy))};
    compiled = jot_jit(functions[_i]);
    struct task large = {.run = run_compiled}, t = large;
    run_on(8192, &large);
    ck_assert_msg(large.status == JOT_OK, "%s", large.message);
    // The driver of a GPU takes what it takes.
    for (size_t kilobytes = getenv("JOT_DEVICE") ? 64 : 16; kilobytes <= 64; kilobytes += 2) {
        run_on(kilobytes, &t);
        ck_assert_msg(t.status == JOT_OK, "%zu KiB: %s", kilobytes, t.message);
        ck_assert_double_eq(t.result, large.result);
    }
    jot_executable_release(compiled);
}
END_TEST

static void add(TCase *t)
{
    tcase_add_loop_test(t, test_runs, 0, 2);
    tcase_add_loop_test(t, test_derivatives, 0, 3);
    tcase_add_test(t, test_too_small);
    tcase_add_test(t, test_transforms);
    tcase_add_test(t, test_endless_application);
    tcase_add_test(t, test_nested_loops);
    tcase_add_loop_test(t, test_expressions, 0, 3);
    tcase_add_test(t, test_callbacks);
}

int main(void) { return run_suite("trace/small_stacks", add); }
