// SPDX-License-Identifier: Apache-2.0
// NULL for every pointer that a function of the headers takes: an error that names the function and the
// parameter, or what the headers promise of NULL; a crash nowhere.  Numbers that mean nothing,
// values of no trace and of other types: no crash either, and a message has the number.  The
// calls are made from the headers.
#include <check.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JOT_PLAIN
#include <jot/jot.h>

// What a call makes before it fails is not given back.  No memory is NULL.
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "detect_leaks=0:allocator_may_return_null=1";
}

struct call {
    void (*make)(void);
    const char *result, *function, *parameter;
    bool may_be_null;
    const char *number, *text; // of a wrong call: what a message has, and the call
};

// What the calls have at hand.
static jot_value x, key, holds, matrix, no_elements, complex_numbers, truths, values[8],
    outs[8];
static jot_array *array, *arrays[8], *made;
static jot_array *held[8];
static jot_executable *executable, *made_executable;
static jot_function f, made_function;
static jot_program *program, *made_program;
static size_t taken;
static const int64_t program_dims[] = {2};
static const jot_program_type program_type = {JOT_F32, 1, program_dims};
static const char empty_program[] = "func.func @text(%x: tensor<f32>) { return }";
static jot_scope *scope, *other_scope;
static jot_block *made_block;
static jot_archive *archive, *made_archive;
static jot_loader *loader, *made_loader;
static jot_mesh *mesh, *made_mesh;
static const jot_mesh_axis mesh_axis = {"i", 1};
static jot_device *devices[1];
static jot_dense layers[2];
static const jot_member member = {"x", 1, &JOT_TAG_jot_value_members_};
static const jot_members members[] = {{1, 1, &member}};
static jot_status status;
static char text[1 << 16];               // formats write all that they have
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

// x: a vector, a matrix, a number, each of f32 or i32.
enum { KINDS = 6 };
static int kind;

static jot_value of_kind(jot_value v)
{
    static const int64_t dims[][3] = {{4, JOT_END}, {2, 2, JOT_END}, {JOT_END}};
    v = kind / 2 == 2 ? jot_sum_axes(v, NULL) : jot_reshape_dims(v, dims[kind / 2]);
    return kind % 2 ? jot_convert(v, JOT_I32) : v;
}

static void prepare(jot_value v)
{
    x = of_kind(v);
    no_elements = jot_slice_axis(v, 0, 0, 0, 1);
    complex_numbers = jot_convert(v, JOT_C64);
    truths = jot_less(v, jot_from_int(2));
    key = jot_random_key(jot_from_int(0));
    holds = jot_from_bool(true);
    matrix = jot_reshape_dims(v, (const int64_t[]){2, 2, JOT_END});
    for (int i = 0; i < 8; i++)
        values[i] = outs[i] = x;
}

static void trace_call(const jot_value *in, jot_value *out, void *ctx)
{
    prepare(in[0]);
    ((const struct call *)ctx)->make();
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

static bool fails(const struct call *c)
{
    array = jot_array_copy(JOT_F32, (const float[]){1, 2, 3, 4}, (const int64_t[]){4, JOT_END});
    for (int i = 0; i < 8; i++)
        held[i] = array;
    f = jot_function_uniform("body", "nulls.c:4", body, 1, 1, NULL);
    mesh = jot_mesh_of_kind(JOT_HOST, 1, &mesh_axis);
    devices[0] = jot_host();
    executable = jot_jit_with(f, NULL);
    program = jot_program_from_memory("nulls.mlir", empty_program, strlen(empty_program));
    archive = jot_archive_create();
    if (strstr(c->function, "jot_loader_"))
        loader = jot_loader_create_with(1, held, 2, NULL);
    if (!records(c))
        return call_alone(c);
    call_while_tracing(c);
    return status != JOT_OK;
}

START_TEST(test_call)
{
    const struct call *c = &calls[_i];
    bool has_failed = fails(c);
    if (!c->may_be_null)
        ck_assert_msg(has_failed && names(jot_error_message(), c), "%s: %s of NULL: '%s'",
                      c->function, c->parameter, jot_error_message());
}
END_TEST

// The wrong calls of one function, with arguments of a kind that a right call takes if there is one.
START_TEST(test_wrong_calls)
{
    const struct call *c = &wrong_calls[wrong_ranges[_i][0]],
                      *end = &wrong_calls[wrong_ranges[_i][1]];
    bool is_right = false;
    setenv("JOT_BACKEND", "eval", 1);
    for (kind = KINDS; kind > 0 && !is_right;) {
        kind--;
        status = JOT_OK;
        is_right = records(c) ? !fails(c) : (fails(c), status == JOT_OK);
    }
    for (c++; c < end; c++) {
        status = JOT_OK;
        if (!fails(c) || status == JOT_OK)
            continue;
        const char *message = jot_error_message();
        ck_assert_msg(*message && !strstr(message, "src/"), "%s: '%s'", c->text, message);
        if (is_right && c->number && status != JOT_ERR_MEMORY)
            ck_assert_msg(strstr(message, c->number) != NULL, "%s: '%s'", c->text, message);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("nulls");
    TCase *t = tcase_create("all");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, test_call, 0, N_CALLS);
    tcase_add_loop_test(t, test_wrong_calls, 0,
                        (int)(sizeof wrong_ranges / sizeof *wrong_ranges));
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
