// SPDX-License-Identifier: Apache-2.0
// Code of the user that leaves jot by longjmp, or ends its thread in the middle: afterwards everything
// works as if the call had not been.  Exceptions are in leaving.cpp.
#include "trace_support.h"

#include "runtime/frames.h"
#include "trace/lazy_cache.h"
#include "trace/opened.h"
#include "trace/versions.h"

#include <pthread.h>
#include <setjmp.h>

static _Thread_local jmp_buf away;
static _Thread_local bool leaves;
static _Thread_local int calls;

static void leave(void)
{
    calls++;
    if (leaves)
        longjmp(away, 1);
}

// ---- functions to leave from ----

static jot_value plain(jot_value x)
{
    jot_value y = jot_sin(x);
    leave();
    return jot_mul(y, 2.0);
}

static jot_value square_and_leave(jot_value x)
{
    leave();
    return jot_mul(x, x);
}

static jot_value nested(jot_value x)
{
    jot_value y, z = jot_cos(x);
    jot_apply(jot_fn(square_and_leave), 1, &z, 1, &y);
    return jot_sum(y);
}

static jot_value in_loop(jot_value x)
{
    JOT_FOR (i, 3, x) {
        JOT_IF (jot_greater(jot_sum(x), 0), x) {
            leave();
            x = jot_mul(x, 0.5);
        } else {
            x = jot_add(x, 1.0);
        }
    }
    return jot_sum(x);
}

static void step(jot_value i, jot_value *carry, void *ctx)
{
    (void)i, (void)ctx;
    leave();
    carry[0] = jot_mul(carry[0], 0.5);
}

static jot_value in_step(jot_value x)
{
    jot_for(step, NULL, 0, 3, 1, &x);
    return jot_sum(x);
}

static jot_value in_scope(jot_value x)
{
    jot_scope *s = jot_scope_open();
    jot_value one = jot_full(JOT_F64, 1);
    calls += (int)jot_item(jot_add(one, 1));
    leave();
    jot_scope_close(s);
    return jot_sum(x);
}

static jot_value sine_rule(jot_value x, jot_value dx)
{
    leave();
    return jot_mul(jot_cos(x), dx);
}
static jot_value sine(jot_value x) { return jot_sin(x); }
static jot_value in_rule(jot_value x)
{
    jot_value y;
    jot_apply(jot_custom_jvp(jot_fn(sine), jot_fn(sine_rule)), 1, &x, 1, &y);
    return jot_sum(y);
}

static jot_executable *inner;
static jot_array *inner_input;
static jot_value calls_another(jot_value x)
{
    jot_array *y = NULL;
    if (jot_call(inner, JOT_IN(inner_input), JOT_OUT(y)) == JOT_OK)
        jot_array_release(y);
    return jot_sum(x);
}

static jot_status leaving_callback(void *ctx, const jot_callback_call *call)
{
    (void)ctx;
    leave();
    for (int i = 0; i < 3; i++)
        ((double *)call->out[0].data)[i] = 2 * ((const double *)call->in[0].data)[i];
    return JOT_OK;
}

static jot_value in_callback(jot_value x)
{
    const jot_type types[] = {JOT_TYPE(JOT_F64, 3)};
    const jot_callback_spec spec = {.call = leaving_callback, .n_out = 1, .out = types};
    jot_value y;
    JOT_FOR (i, 2, x) {
        jot_callback(&spec, &y, x);
        x = jot_add(jot_sin(y), x);
    }
    return jot_sum(x);
}

static jot_status calling_callback(void *ctx, const jot_callback_call *call)
{
    (void)ctx;
    jot_array *y = NULL;
    jot_status status = jot_call(inner, JOT_IN(inner_input), JOT_OUT(y));
    if (status == JOT_OK)
        jot_array_release(y);
    *(double *)call->out[0].data = 1;
    return status;
}

static jot_value in_callback_of_callback(jot_value x)
{
    const jot_type types[] = {JOT_TYPE(JOT_F64)};
    const jot_callback_spec spec = {.call = calling_callback, .n_out = 1, .out = types};
    jot_value y;
    jot_callback(&spec, &y, x);
    return jot_add(jot_sum(x), y);
}

// ---- leaving and coming back ----

static const struct {
    jot_value (*f)(jot_value);
    const char *name;
    bool is_derived, calls_inner;
} functions[] = {
    {plain, "plain", false, false},
    {nested, "nested", true, false},
    {in_loop, "in_loop", true, false},
    {in_step, "in_step", true, false},
    {in_scope, "in_scope", true, false},
    {in_rule, "in_rule", true, false},
    {calls_another, "calls_another", true, true},
    {in_callback, "in_callback", false, false},
    {in_callback_of_callback, "in_callback_of_callback", false, true},
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

// Somewhere deeper on the stack, where nothing of what was there before is written over.
__attribute__((noinline)) static jot_status call_below(jot_executable *e, jot_array *x,
                                                       jot_array **y)
{
    char room[1 << 14];
    __asm__ volatile("" : : "r"(room) : "memory");
    jot_array *in = x;
    jot_status status = jot_call(e, JOT_IN(in), 1, y);
    __asm__ volatile("" : : "r"(room) : "memory");
    return status;
}

__attribute__((noinline)) static void try_call(jot_executable *e, jot_array *x)
{
    jot_array *y = NULL;
    if (setjmp(away) == 0) {
        jot_status status = jot_call(e, JOT_IN(x), JOT_OUT(y));
        ck_abort_msg("returned %s", jot_status_name(status));
    }
}

static void leave_and_come_back(int i, bool below)
{
    jot_array *x = jot_array_from(((double[]){0.5, 1, 1.5}), 3), *y = NULL, *z = NULL;
    jot_function f =
        jot_function_plain(functions[i].name, "here", 1, (void (*)(void))functions[i].f);
    if (functions[i].is_derived)
        f = jot_grad(f);
    inner = jot_jit(jot_fn(plain));
    inner_input = x;
    jot_executable *e = jot_jit(f), *fresh;
    size_t before = jot_memory().blocks;
    for (int times = 0; times < 3; times++) {
        leaves = true;
        try_call(e, x);
        leaves = false;
        if (below)
            must(call_below(e, x, &y));
        else
            must(jot_call(e, JOT_IN(x), JOT_OUT(y)));
        rt_frames_collect(); // as the next call from here does
        ck_assert_ptr_null(trace_top());
        ck_assert_ptr_null(rt_frames);
        ck_assert_ptr_null(arena_guard_innermost());
        fresh = jot_jit(f);
        must(jot_call(fresh, JOT_IN(x), JOT_OUT(z)));
        ck_assert_int_eq(memcmp(jot_array_data(y), jot_array_data(z), jot_array_size(z) * 8),
                         0);
        jot_executable_release(fresh);
        jot_arrays_release(2, (jot_array *[]){y, z});
        jot_executable_release(e);
        e = jot_jit(f);
        jot_executable_release(inner);
        inner = jot_jit(jot_fn(plain));
    }
    jot_executable_release(e);
    jot_executable_release(inner);
    lazy_forget();
    ck_assert_uint_le(jot_memory().blocks, before);
    jot_array_release(x);
}

START_TEST(test_longjmp) { leave_and_come_back(_i, false); }
END_TEST

START_TEST(test_call_from_below) { leave_and_come_back(_i, true); }
END_TEST

// A program that is compiled already is left while it runs, many times.
START_TEST(test_left_runs_leave_nothing)
{
    jot_array *x = jot_array_from(((double[]){0.5, 1, 1.5}), 3), *y = NULL;
    jot_executable *e = jot_jit(jot_fn(in_callback));
    must(jot_call(e, JOT_IN(x), JOT_OUT(y)));
    jot_array_release(y);
    size_t blocks = jot_memory().blocks;
    for (int i = 0; i < 20; i++) {
        leaves = true;
        try_call(e, x);
        leaves = false;
        must(jot_call(e, JOT_IN(x), JOT_OUT(y)));
        jot_array_release(y);
        ck_assert_uint_eq(jot_memory().blocks, blocks);
    }
    ck_assert_uint_eq(jot_executable_versions(e), 1);
    jot_executable_release(e);
    jot_array_release(x);
}
END_TEST

// A function is left into one around it, which goes on.
static jot_value catches(jot_value x)
{
    jmp_buf outer;
    volatile jot_value kept = jot_mul(x, 3.0);
    memcpy(&outer, &away, sizeof away);
    leaves = true;
    if (setjmp(away) == 0) {
        jot_value y;
        jot_apply(jot_grad(jot_fn(nested)), 1, &x, 1, &y);
    }
    leaves = false;
    memcpy(&away, &outer, sizeof away);
    jot_value k = {kept.trace, kept.id};
    return jot_sum(jot_add(k, 1.0));
}

START_TEST(test_into_a_function)
{
    jot_array *x = jot_array_from(((double[]){1, 2, 3}), 3), *y = NULL;
    jot_executable *e = jot_jit(jot_grad(jot_fn(catches)));
    must(jot_call(e, JOT_IN(x), JOT_OUT(y)));
    check_numbers(y, 3, (double[]){3, 3, 3}, 0);
    jot_array_release(y);
    jot_executable_release(e);
    jot_array_release(x);
}
END_TEST

// In a scope: a run that is left, and a block that is.
START_TEST(test_in_a_scope)
{
    jot_array *x = jot_array_from(((double[]){1, 2, 3}), 3), *r;
    const jot_type types[] = {JOT_TYPE(JOT_F64, 3)};
    const jot_callback_spec spec = {.call = leaving_callback, .n_out = 1, .out = types};
    jot_scope *s = jot_scope_open();
    jot_value y;
    jot_callback(&spec, &y, x);
    leaves = true;
    if (setjmp(away) == 0) {
        must(jot_eval(jot_sum(y), NULL));
        ck_abort_msg("returned");
    }
    leaves = false;
    int before = calls;
    ck_assert_double_eq(jot_item(jot_sum(x)), 6);
    ck_assert_int_eq(calls, before); // the effect was begun
    ck_assert_double_eq(jot_item(jot_sum(y)), 12);
    ck_assert_int_eq(calls, before + 1);
    jot_scope *open = jot_scope_open();
    jot_value v = jot_from(x);
    leaves = true;
    if (setjmp(away) == 0) {
        JOT_FOR (i, 2, v) {
            leave();
        }
    }
    leaves = false;
    // A block in the same function still looks open, but does not keep the scope.
    jot_scope_close(open);
    must(jot_eval(jot_add(y, 1.0), &r));
    check_numbers(r, 3, (double[]){3, 5, 7}, 0);
    jot_array_release(r);
    jot_scope_close(s);
    ck_assert_ptr_null(trace_top());
    ck_assert_ptr_null(rt_frames);
    jot_array_release(x);
}
END_TEST

// A scope that is closed in the body of a block: the block ends without a word.
START_TEST(test_scope_closed_in_a_block)
{
    jot_scope *s = jot_scope_open();
    jot_value x = jot_full(JOT_F64, 1);
    JOT_FOR (i, 3, x) {
        jot_scope_close(s);
    }
    ck_assert_ptr_null(trace_top());
    s = jot_scope_open();
    ck_assert_double_eq(jot_item(jot_full(JOT_F64, 2)), 2);
    ck_assert(isnan(jot_item(x)));
    jot_scope_close(s);
}
END_TEST

// ---- threads ----

struct work {
    jot_executable *e;
    jot_array *x;
    pthread_barrier_t *barrier;
    bool ends;
};

static void *leave_on_a_thread(void *ctx)
{
    struct work *w = ctx;
    leaves = true;
    if (setjmp(away) == 0) {
        jot_array *y, *x = w->x;
        if (jot_call(w->e, JOT_IN(x), JOT_OUT(y)) == JOT_OK)
            ck_abort_msg("returned");
    }
    leaves = false;
    pthread_barrier_wait(w->barrier); // the other thread may call
    pthread_barrier_wait(w->barrier); // it has
    return NULL;
}

static jot_value ends_the_thread(jot_value x)
{
    if (leaves)
        pthread_exit(NULL);
    return jot_mul(x, 3.0);
}

// The handle of a scope whose thread has ended stays the user's.
static jot_scope *never_closed;

static void *end_on_a_thread(void *ctx)
{
    struct work *w = ctx;
    jot_array *y, *x = w->x;
    leaves = true;
    never_closed = jot_scope_open();
    jot_status status = jot_call(w->e, JOT_IN(x), JOT_OUT(y));
    ck_abort_msg("returned %d", (int)status);
    return NULL;
}

// Others do not wait for ever for a thread that has left and does something else.
START_TEST(test_threads)
{
    pthread_t thread;
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, 2);
    jot_array *x = jot_array_from(((double[]){1, 2, 3}), 3), *y = NULL;
    struct work w = {.e = jot_jit(jot_fn(plain)), .x = x, .barrier = &barrier};
    *version_patience() = 0.2;
    ck_assert_int_eq(pthread_create(&thread, NULL, leave_on_a_thread, &w), 0);
    pthread_barrier_wait(&barrier);
    must(jot_call(w.e, JOT_IN(x), JOT_OUT(y)));
    check_numbers(y, 3, (double[]){2 * sin(1), 2 * sin(2), 2 * sin(3)}, 1e-15);
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    jot_array_release(y);
    jot_executable_release(w.e);

    *version_patience() = 100;
    w.e = jot_jit(jot_fn(ends_the_thread));
    ck_assert_int_eq(pthread_create(&thread, NULL, end_on_a_thread, &w), 0);
    pthread_join(thread, NULL);
    must(jot_call(w.e, JOT_IN(x), JOT_OUT(y)));
    check_numbers(y, 3, (double[]){3, 6, 9}, 0);
    jot_array_release(y);
    jot_executable_release(w.e);
    jot_array_release(x);
    struct opened_trace open;
    for (uint32_t serial = 1; serial <= *opened_last_serial(); serial++)
        ck_assert(!opened_find(serial, &open));
    pthread_barrier_destroy(&barrier);
}
END_TEST

static void add(TCase *t)
{
    tcase_add_loop_test(t, test_longjmp, 0, FUNCTIONS);
    tcase_add_loop_test(t, test_call_from_below, 0, FUNCTIONS);
    tcase_add_test(t, test_left_runs_leave_nothing);
    tcase_add_test(t, test_into_a_function);
    tcase_add_test(t, test_in_a_scope);
    tcase_add_test(t, test_scope_closed_in_a_block);
    tcase_add_test(t, test_threads);
}

int main(void) { return run_suite("trace/leaving", add); }
