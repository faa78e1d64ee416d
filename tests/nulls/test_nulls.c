// SPDX-License-Identifier: Apache-2.0
// NULL for every pointer that a function of the headers takes: an error that names the function and the
// parameter, or what the headers promise of NULL; a crash nowhere.  The calls are made from the headers.
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JOT_PLAIN
#include <jot/jot.h>

// What a call makes before it fails is not given back.
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "detect_leaks=0"; }

struct call {
    void (*make)(void);
    const char *result, *function, *parameter;
    bool may_be_null;
};

// What the calls have at hand.
static jot_value x, key, holds, matrix, values[8], outs[8];
static jot_array *array, *arrays[8], *made;
static jot_array *held[8];
static jot_executable *executable, *made_executable;
static jot_function f, made_function;
static jot_scope *scope, *other_scope;
static jot_block *made_block;
static jot_status status;
static char text[64];
static const uint16_t leaves[] = {1, 1}; // functions borrow them
static const jot_piece pieces[] = {{values, 2, "values"}, {NULL, 0, NULL}};

static jot_value plain(jot_value v) { return v; }
static void body(const jot_value *in, jot_value *out, void *ctx)
{
    (void)ctx;
    out[0] = in[0];
}
static void for_step(jot_value i, jot_value *carry, void *ctx)
{
    (void)i, (void)ctx;
    carry[0] = jot_neg(carry[0]);
}
static void scan_step(jot_value *carry, const jot_value *row, jot_value *out, void *ctx)
{
    (void)ctx;
    carry[0] = row ? jot_add(carry[0], jot_sum_axes(row[0], NULL)) : carry[0];
    if (out)
        out[0] = carry[0];
}
static jot_value condition(const jot_value *carry, void *ctx)
{
    (void)ctx;
    return jot_less(jot_sum_axes(carry[0], NULL), jot_from_int(0));
}
static void while_step(jot_value *carry, void *ctx) { for_step(x, carry, ctx); }
static jot_status call_back(void *ctx, const jot_callback_call *call)
{
    (void)ctx, (void)call;
    return JOT_OK;
}
static const jot_type types[] = {{JOT_F32, NULL}};
static const jot_callback_spec callback = {.call = call_back, .n_out = 1, .out = types};
static const jot_raw_kernel_spec kernel = {
    .name = "k", .source = "", .n_out = 1, .out = types, .host = call_back};
static const struct jot_index_dims index_dims = {.map = (const int[]){0, JOT_END}};

#include "null_calls.inc"

enum { N_CALLS = sizeof calls / sizeof *calls };

static void prepare(jot_value v)
{
    x = v;
    key = jot_random_key(jot_from_int(0));
    holds = jot_from_bool(true);
    matrix = jot_reshape_dims(x, (const int64_t[]){2, 2, JOT_END});
    for (int i = 0; i < 8; i++)
        values[i] = x;
}

static void trace_call(const jot_value *in, jot_value *out, void *ctx)
{
    prepare(in[0]);
    outs[0] = x;
    ((const struct call *)ctx)->make();
    out[0] = x;
    if (!strcmp(((const struct call *)ctx)->result, "jot_value"))
        out[0] = outs[0];
}

// Whether the call is one of those that are made while tracing: what gives values, blocks or nothing.
static bool records(const struct call *c)
{
    static const char *const others[] = {"jot_status", "jot_function", "int", "double"};
    if (!strncmp(c->function, "jot_arrays_", 11))
        return false;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (!strcmp(c->result, others[i]))
            return false;
    return !strchr(c->result, '*') || !strcmp(c->result, "jot_block *");
}

static void call_while_tracing(const struct call *c)
{
    jot_array *y = NULL;
    jot_executable *e = jot_jit_with(
        jot_function_uniform("caller", "nulls.c:2", trace_call, 1, 1, (void *)(uintptr_t)c),
        NULL);
    status = jot_call_list(e, 1, &array, 1, &y);
    jot_array_release(y);
    jot_executable_release(e);
}

static bool call_alone(const struct call *c)
{
    scope = jot_scope_open_at("nulls.c:3");
    prepare(jot_from_array(array));
    c->make();
    jot_scope_close(scope);
    if (!strcmp(c->result, "jot_status"))
        return status != JOT_OK;
    if (!strcmp(c->result, "jot_function")) {
        made_executable = jot_jit_with(made_function, NULL);
        if (made_executable) {
            status = jot_call_list(made_executable, 1, &array, 1, arrays);
            return status != JOT_OK;
        }
    }
    return true;
}

// "jot_sum" is the name of jot_sum_axes.
static bool names(const char *message, const struct call *c)
{
    for (const char *at = message; (at = strstr(at, "jot_")); at += 4) {
        size_t n = strspn(at, "abcdefghijklmnopqrstuvwxyz0123456789_");
        if (n > 6 && !strncmp(at, c->function, n))
            return strstr(message, c->parameter) && strstr(message, "NULL");
    }
    return false;
}

START_TEST(test_call)
{
    const struct call *c = &calls[_i];
    array = jot_array_copy(JOT_F32, (const float[]){1, 2, 3, 4}, (const int64_t[]){4, JOT_END});
    for (int i = 0; i < 8; i++)
        held[i] = array;
    f = jot_function_uniform("body", "nulls.c:4", body, 1, 1, NULL);
    executable = jot_jit_with(f, NULL);
    bool fails = true;
    if (records(c))
        call_while_tracing(c), fails = status != JOT_OK;
    else
        fails = call_alone(c);
    if (!c->may_be_null)
        ck_assert_msg(fails && names(jot_error_message(), c), "%s: %s of NULL: '%s'",
                      c->function, c->parameter, jot_error_message());
}
END_TEST

int main(void)
{
    Suite *s = suite_create("nulls");
    TCase *t = tcase_create("all");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, test_call, 0, N_CALLS);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
