// SPDX-License-Identifier: Apache-2.0
// Programs read and run: those of tests/interop/programs that check themselves, and, where $JOT_CONFORMANCE
// has them, StableHLO's own tests; by machine code and by the evaluator.
#include "interop/tree.h"
#include "jot/jot.h"
#include "jot/program.h"

#include <check.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROGRAMS "tests/interop/programs/"

static int fails(const char *path, int *wide)
{
    jot_program *p = jot_program_read(path);
    int only_wide = 0;
    bool ok = p && jot_program_check(p, NULL, &only_wide) == JOT_OK;
    if (!ok)
        fprintf(stderr, "%s\n", jot_error_message());
    jot_program_release(p);
    *wide += only_wide;
    return !ok;
}

static void check_all(const char *pattern, size_t least)
{
    glob_t found;
    int failed = 0, wide = 0;
    ck_assert_int_eq(glob(pattern, 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++)
        failed += fails(found.gl_pathv[i], &wide);
    printf("%zu programs, %d checks by their wider limits\n", found.gl_pathc, wide);
    ck_assert_uint_ge(found.gl_pathc, least);
    ck_assert_int_eq(failed, 0);
    globfree(&found);
}

START_TEST(check_themselves) { check_all(PROGRAMS "check_*.mlir", 3); }
END_TEST

START_TEST(pass_the_tests_of_stablehlo)
{
    const char *folder = getenv("JOT_CONFORMANCE");
    char pattern[1024];
    if (!folder)
        return;
    snprintf(pattern, sizeof pattern, "%s/stablehlo/*.mlir", folder);
    check_all(pattern, 600);
}
END_TEST

// ---- functions of programs ----

static const char loop[] =
    "func.func @main(%x: tensor<f64>, %a: tensor<f64>) -> tensor<f64> {\n"
    "  %0 = stablehlo.constant dense<0> : tensor<i32>\n"
    "  %r:2 = stablehlo.while(%i = %0, %y = %x) : tensor<i32>, tensor<f64>\n"
    "  cond {\n"
    "    %n = stablehlo.constant dense<3> : tensor<i32>\n"
    "    %t = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, "
    "tensor<i32>) -> tensor<i1>\n"
    "    stablehlo.return %t : tensor<i1>\n"
    "  } do {\n"
    "    %1 = stablehlo.constant dense<1> : tensor<i32>\n"
    "    %j = stablehlo.add %i, %1 : tensor<i32>\n"
    "    %z = stablehlo.multiply %y, %a : tensor<f64>\n"
    "    stablehlo.return %j, %z : tensor<i32>, tensor<f64>\n"
    "  }\n"
    "  return %r#1 : tensor<f64>\n"
    "}\n";

static jot_program *read_text(const char *text)
{
    jot_program *p = jot_program_from_memory("text.mlir", text, strlen(text));
    ck_assert_msg(p != NULL, "%s", jot_error_message());
    return p;
}

// y = x a^3
START_TEST(are_differentiated)
{
    jot_program *p = read_text(loop);
    jot_function f = jot_program_function(p, "main");
    jot_executable *df = jot_jit(jot_grad(f, 0, 1));
    jot_executable *hessian = jot_jit(jot_hessian(f, 1));
    jot_array *x = jot_array_from((double[]){2}), *a = jot_array_from((double[]){3});
    jot_array *g[2] = {0}, *h = NULL;
    ck_assert_msg(jot_call(df, JOT_IN(x, a), JOT_OUT(g)) == JOT_OK, "%s", jot_error_message());
    ck_assert_double_eq(jot_array_item(g[0]), 27);
    ck_assert_double_eq(jot_array_item(g[1]), 54);
    ck_assert_msg(jot_call(hessian, JOT_IN(x, a), JOT_OUT(h)) == JOT_OK, "%s",
                  jot_error_message());
    ck_assert_double_eq(jot_array_item(h), 36);
    jot_arrays_release(JOT_OUT(g));
    jot_array_release(h);
    jot_array_release(x);
    jot_array_release(a);
    jot_executable_release(df);
    jot_executable_release(hessian);
    jot_program_release(p);
}
END_TEST

static jot_function the_loop;

static jot_value sum_of_maps(jot_value x, jot_value a)
{
    jot_value in[] = {x, a}, y;
    jot_apply(jot_vmap(the_loop, 0, JOT_NONE), 2, in, 1, &y);
    return jot_sum(y);
}

START_TEST(are_mapped_in_traced_functions)
{
    jot_program *p = read_text(loop);
    the_loop = jot_program_function(p, "main");
    jot_executable *f = jot_jit(jot_fn(sum_of_maps));
    jot_array *x = jot_array_from(((double[]){1, 2, 3}), 3), *a = jot_array_from((double[]){2});
    jot_array *y = NULL;
    ck_assert_msg(jot_call(f, JOT_IN(x, a), JOT_OUT(y)) == JOT_OK, "%s", jot_error_message());
    ck_assert_double_eq(jot_array_item(y), 48);
    jot_array_release(x);
    jot_array_release(a);
    jot_array_release(y);
    jot_executable_release(f);
    jot_program_release(p);
}
END_TEST

START_TEST(tell_what_they_take)
{
    jot_program *p = read_text("func.func @main(%x: tensor<2x3xbf16> {tf.aliasing_output = 0 : "
                               "i32}, %y: tensor<i64>) -> tensor<2x3xbf16> {\n"
                               "  return %x : tensor<2x3xbf16>\n}\n");
    const jot_program_signature *s = jot_program_signature_of(p, "main");
    ck_assert_ptr_nonnull(s);
    ck_assert_uint_eq(s->n_in, 2);
    ck_assert_uint_eq(s->n_out, 1);
    ck_assert_int_eq(s->in[0].dtype, JOT_BF16);
    ck_assert_int_eq(s->in[0].rank, 2);
    ck_assert_int_eq(s->in[0].dims[1], 3);
    ck_assert_int_eq(s->in[1].dtype, JOT_I64);
    ck_assert(s->donated[0] && !s->donated[1]);
    ck_assert_str_eq(jot_program_name(p, 0), "main");
    ck_assert_ptr_null(jot_program_name(p, 1));
    ck_assert_ptr_null(jot_program_signature_of(p, "other"));
    ck_assert_ptr_nonnull(strstr(jot_error_message(), "no function @other"));
    ck_assert_ptr_null(jot_jit(jot_program_function(p, "other")));
    ck_assert_ptr_nonnull(strstr(jot_error_message(), "no function @other"));
    jot_program_release(p);
}
END_TEST

// ---- artefacts of jax.export ----

static jot_program *read_file(const char *name)
{
    char path[256];
    snprintf(path, sizeof path, PROGRAMS "%s", name);
    jot_program *p = jot_program_read(path);
    ck_assert_msg(p != NULL, "%s", jot_error_message());
    return p;
}

// rows = softmax(tanh(x w) + places), sum = sum(x), of x[n, 8], an argument that is not used, and w[8, 5].
static void run_model(jot_executable *f, int64_t n)
{
    jot_array *x = jot_array_full(JOT_F32, 0.5, n, 8), *w = jot_array_full(JOT_F32, 0.25, 8, 5);
    jot_array *unused = jot_array_full(JOT_I32, 3, 2), *out[2] = {0};
    ck_assert_msg(jot_call(f, JOT_IN(x, unused, w), JOT_OUT(out)) == JOT_OK, "%s",
                  jot_error_message());
    ck_assert_int_eq(jot_array_dim(out[0], 0), n);
    ck_assert_int_eq(jot_array_dim(out[0], 1), 5);
    const float *rows = jot_array_data(out[0]);
    for (int64_t i = 0; i < 5 * n; i++)
        ck_assert_float_eq_tol(rows[i], 0.2f, 1e-6f);
    ck_assert_double_eq(jot_array_item(out[1]), 4.0 * (double)n);
    jot_arrays_release(JOT_OUT(out));
    jot_array_release(x);
    jot_array_release(w);
    jot_array_release(unused);
}

// The extent n is that of each call, and the two platforms are one.
START_TEST(artefacts_take_any_extent)
{
    jot_program *p = read_file("model.jaxexport");
    const jot_program_signature *s = jot_program_signature_of(p, "main");
    ck_assert_uint_eq(s->n_in, 3);
    ck_assert_uint_eq(s->n_out, 2);
    ck_assert_int_eq(s->in[0].dims[0], -1);
    ck_assert_int_eq(s->in[1].dtype, JOT_I32);
    jot_executable *f = jot_jit(jot_program_function(p, "main"));
    run_model(f, 4);
    run_model(f, 7);
    run_model(f, 4);
    ck_assert_uint_eq(jot_executable_versions(f), 2);
    // n is at least 4
    jot_array *x = jot_array_full(JOT_F32, 0.5, 3, 8), *w = jot_array_full(JOT_F32, 1, 8, 5);
    jot_array *unused = jot_array_full(JOT_I32, 3, 2), *out[2] = {0};
    ck_assert_int_ne(jot_call(f, JOT_IN(x, unused, w), JOT_OUT(out)), JOT_OK);
    ck_assert_msg(strstr(jot_error_message(), ">= 4") != NULL, "%s", jot_error_message());
    jot_array_release(x);
    jot_array_release(w);
    jot_array_release(unused);
    jot_executable_release(f);
    jot_program_release(p);
}
END_TEST

// x - y of x, an argument that main does not have, and y.
START_TEST(artefacts_take_all_arguments)
{
    jot_program *p = read_file("kept.jaxexport");
    jot_executable *f = jot_jit(jot_program_function(p, "main"));
    jot_array *x = jot_array_full(JOT_F32, 5, 2), *unused = jot_array_full(JOT_F32, 9, 3);
    jot_array *y = jot_array_full(JOT_F32, 3, 2), *out = NULL;
    ck_assert_uint_eq(jot_program_signature_of(p, "main")->n_in, 3);
    ck_assert_msg(jot_call(f, JOT_IN(x, unused, y), JOT_OUT(out)) == JOT_OK, "%s",
                  jot_error_message());
    ck_assert_float_eq(((const float *)jot_array_data(out))[1], 2);
    jot_array_release(x), jot_array_release(unused), jot_array_release(y);
    jot_array_release(out);
    jot_executable_release(f);
    jot_program_release(p);
}
END_TEST

// The gradient that came with the artefact is that which jot makes itself, of sum.
// Arguments are told by their numbers in the call, not by the operation that they do not fit.
START_TEST(arguments_of_other_types_are_refused)
{
    jot_program *p[] = {
        read_file("model.jaxexport"),
        read_text(
            "func.func @main(%x: tensor<4xf32>, %i: tensor<2xi32>, %w: tensor<8x5xf32>) -> "
            "(tensor<2xi32>, tensor<2xi32>) {\n"
            "  return %i, %i : tensor<2xi32>, tensor<2xi32>\n}\n")};
    static const char *const says[] = {"argument 0 is f32[8], and the program takes f32[?,8]",
                                       "argument 0 is f32[8], and the program takes f32[4]"};
    for (int i = 0; i < 2; i++) {
        jot_array *x = jot_array_full(JOT_F32, 0.5, 8), *index = jot_array_full(JOT_I32, 3, 2);
        jot_array *w = jot_array_full(JOT_F32, 1, 8, 5), *out[2] = {0};
        jot_executable *f = jot_jit(jot_program_function(p[i], "main"));
        ck_assert_int_ne(jot_call(f, JOT_IN(x, index, w), JOT_OUT(out)), JOT_OK);
        ck_assert_msg(strstr(jot_error_message(), says[i]) != NULL, "%s", jot_error_message());
        jot_array_release(x);
        jot_array_release(index);
        jot_array_release(w);
        jot_executable_release(f);
        jot_program_release(p[i]);
    }
}
END_TEST

START_TEST(artefacts_have_their_gradient)
{
    jot_program *p = read_file("model.jaxexport");
    const jot_program_signature *s = jot_program_signature_of(p, "vjp");
    ck_assert_msg(s != NULL, "%s", jot_error_message());
    jot_executable *f = jot_jit(jot_program_function(p, "vjp"));
    jot_array *x = jot_array_full(JOT_F32, 0.5, 4, 8), *w = jot_array_full(JOT_F32, 0.25, 8, 5);
    jot_array *unused = jot_array_full(JOT_I32, 3, 2);
    jot_array *rows = jot_array_full(JOT_F32, 0, 4, 5), *sum = jot_array_full(JOT_F32, 2);
    jot_array *in[] = {x, unused, w, rows, sum}, *out[8] = {0};
    ck_assert_uint_le(s->n_out, 8);
    ck_assert_msg(jot_call_list(f, s->n_in, in, s->n_out, out) == JOT_OK, "%s",
                  jot_error_message());
    const float *dx = jot_array_data(out[0]);
    for (int i = 0; i < 32; i++)
        ck_assert_float_eq(dx[i], 2);
    jot_arrays_release(s->n_out, out);
    jot_arrays_release(5, in);
    jot_executable_release(f);
    jot_program_release(p);
}
END_TEST

// ---- several partitions ----

#define GROUPS(rows, type) "replica_groups = dense<" rows "> : tensor<" type "xi64>"
#define CHANNEL "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, "
#define REGION(op)                                                                             \
    " ({\n^bb0(%a: tensor<f64>, %b: tensor<f64>):\n  %s = stablehlo." op                       \
    " %a, %b : tensor<f64>\n  stablehlo.return %s : tensor<f64>\n})"
#define IN_FOUR GROUPS("[[0, 1, 2, 3]]", "1x4")
#define IN_PAIRS GROUPS("[[0, 2], [3, 1]]", "2x2")
#define IN_THREE_AND_ONE GROUPS("[[3, 0, 2], [1, -1, -1]]", "2x3")

// Of x: tensor<4x2xf64> in each of four partitions; what they give, by partition, as operations on all.
struct collective {
    const char *body, *type;
    jot_value (*whole)(jot_value x); // f64[4,4,2]
};

static jot_value spread(jot_value y) { return jot_broadcast_to(y, 4, 4, 2); }
static jot_value sum_of_all(jot_value x) { return spread(jot_sum(x, 0)); }
static jot_value product_of_all(jot_value x) { return spread(jot_prod(x, 0)); }
static jot_value max_of_all(jot_value x) { return spread(jot_max(x, 0)); }
static jot_value part(jot_value x, int i) { return jot_take(x, i); }
static jot_value max_of_pairs(jot_value x)
{
    jot_value a = jot_maximum(part(x, 0), part(x, 2)), b = jot_maximum(part(x, 3), part(x, 1));
    return jot_stack(0, a, b, a, b);
}
static jot_value rows_of_all(jot_value x)
{
    return jot_broadcast_to(jot_reshape(x, 16, 2), 4, 16, 2);
}
static jot_value columns_of_pairs(jot_value x)
{
    jot_value a = jot_concatenate(1, part(x, 0), part(x, 2));
    jot_value b = jot_concatenate(1, part(x, 3), part(x, 1));
    return jot_stack(0, a, b, a, b);
}
static jot_value sum_in_parts(jot_value x) { return jot_reshape(jot_sum(x, 0), 4, 1, 2); }
static jot_value columns_of_sums(jot_value x)
{
    jot_value a = jot_add(part(x, 0), part(x, 2)), b = jot_add(part(x, 3), part(x, 1));
    return jot_stack(0, jot_slice(a, 1, 0, 1), jot_slice(b, 1, 1, 2), jot_slice(a, 1, 1, 2),
                     jot_slice(b, 1, 0, 1));
}
static jot_value turned(jot_value x) // x[i, k, :] to [k, 0, (i, :)]
{
    return jot_reshape(jot_move_axis(x, 0, 1), 4, 1, 8);
}
static jot_value turned_pairs(jot_value x) // columns to partitions, rows one after the other
{
    jot_value a = part(x, 0), b = part(x, 2), c = part(x, 3), d = part(x, 1);
#define COLUMN(v, k) jot_slice(v, 1, k, k + 1)
    return jot_stack(0, jot_concatenate(0, COLUMN(a, 0), COLUMN(b, 0)),
                     jot_concatenate(0, COLUMN(c, 1), COLUMN(d, 1)),
                     jot_concatenate(0, COLUMN(a, 1), COLUMN(b, 1)),
                     jot_concatenate(0, COLUMN(c, 0), COLUMN(d, 0)));
}
static jot_value moved(jot_value x)
{
    return jot_stack(0, part(x, 1), part(x, 2), jot_zeros(JOT_F64, 4, 2), part(x, 0));
}
static jot_value first_of_pairs(jot_value x)
{
    return jot_stack(0, part(x, 0), part(x, 3), part(x, 0), part(x, 3));
}
static jot_value first_of_one_pair(jot_value x)
{
    jot_value none = jot_zeros(JOT_F64, 4, 2);
    return jot_stack(0, none, part(x, 3), none, part(x, 3));
}
static jot_value max_of_three_and_one(jot_value x)
{
    jot_value a = jot_maximum(jot_maximum(part(x, 0), part(x, 2)), part(x, 3));
    return jot_stack(0, a, part(x, 1), a, a);
}
static jot_value first_of_three_and_one(jot_value x)
{
    return jot_stack(0, part(x, 3), part(x, 1), part(x, 3), part(x, 3));
}
static jot_value numbered(jot_value x)
{
    return jot_add(jot_mul(0, x), jot_reshape(jot_arange(JOT_F64, 4), 4, 1, 1));
}

static const struct collective collectives[] = {
    {"\"stablehlo.all_reduce\"(%x) <{" CHANNEL IN_FOUR
     ", use_global_device_ids}>" REGION("add"),
     "4x2", sum_of_all},
    {"\"stablehlo.all_reduce\"(%x) <{" CHANNEL IN_FOUR
     ", use_global_device_ids}>" REGION("multiply"),
     "4x2", product_of_all},
    {"\"stablehlo.all_reduce\"(%x) <{" CHANNEL GROUPS("[[0]]", "1x1") "}>" REGION("maximum"),
     "4x2", max_of_all},
    {"\"stablehlo.all_reduce\"(%x) <{" CHANNEL IN_PAIRS
     ", use_global_device_ids}>" REGION("maximum"),
     "4x2", max_of_pairs},
    {"\"stablehlo.all_gather\"(%x) <{all_gather_dim = 0 : i64, " CHANNEL IN_FOUR
     ", use_global_device_ids}>",
     "16x2", rows_of_all},
    {"\"stablehlo.all_gather\"(%x) <{all_gather_dim = 1 : i64, " CHANNEL IN_PAIRS
     ", use_global_device_ids}>",
     "4x4", columns_of_pairs},
    {"\"stablehlo.reduce_scatter\"(%x) <{" CHANNEL IN_FOUR
     ", scatter_dimension = 0 : i64, use_global_device_ids}>" REGION("add"),
     "1x2", sum_in_parts},
    {"\"stablehlo.reduce_scatter\"(%x) <{" CHANNEL IN_PAIRS
     ", scatter_dimension = 1 : i64, use_global_device_ids}>" REGION("add"),
     "4x1", columns_of_sums},
    {"\"stablehlo.all_to_all\"(%x) <{" CHANNEL "concat_dimension = 1 : i64, " IN_FOUR
     ", split_count = 4 : i64, split_dimension = 0 : i64}>",
     "1x8", turned},
    {"\"stablehlo.all_to_all\"(%x) <{" CHANNEL "concat_dimension = 0 : i64, " IN_PAIRS
     ", split_count = 2 : i64, split_dimension = 1 : i64}>",
     "8x1", turned_pairs},
    {"\"stablehlo.collective_permute\"(%x) <{" CHANNEL
     "source_target_pairs = dense<[[1, 0], [2, 1], [0, 3]]> : tensor<3x2xi64>}>",
     "4x2", moved},
    {"\"stablehlo.collective_broadcast\"(%x) <{" CHANNEL IN_PAIRS "}>", "4x2", first_of_pairs},
    {"\"stablehlo.collective_broadcast\"(%x) <{" CHANNEL GROUPS("[[3, 1]]", "1x2") "}>", "4x2",
     first_of_one_pair},
    {"\"stablehlo.all_reduce\"(%x) <{" CHANNEL IN_THREE_AND_ONE
     ", use_global_device_ids}>" REGION("maximum"),
     "4x2", max_of_three_and_one},
    {"\"stablehlo.collective_broadcast\"(%x) <{" CHANNEL IN_THREE_AND_ONE "}>", "4x2",
     first_of_three_and_one},
};

START_TEST(run_in_several_partitions)
{
    const struct collective *c = &collectives[_i];
    char text[2000];
    snprintf(text, sizeof text,
             "func.func @main(%%x: tensor<4x2xf64>) -> tensor<%sxf64> {\n  %%0 = %s : "
             "(tensor<4x2xf64>) -> tensor<%sxf64>\n  return %%0 : tensor<%sxf64>\n}\n",
             c->type, c->body, c->type, c->type);
    double at[32];
    for (int i = 0; i < 32; i++)
        at[i] = (i * 7 % 11) / 4.0 - 1;
    jot_array *x = jot_array_from(at, 4, 4, 2), *y = NULL, *want = NULL;
    jot_program *p = read_text(text);
    jot_executable *f = jot_jit(jot_vmap_named(jot_program_function(p, "main"), "partition"));
    jot_executable *g =
        jot_jit(jot_function_plain("whole", "whole", 1, (void (*)(void))c->whole));
    ck_assert_msg(jot_call_list(f, 1, &x, 1, &y) == JOT_OK &&
                      jot_call_list(g, 1, &x, 1, &want) == JOT_OK,
                  "%s", jot_error_message());
    ck_assert_uint_eq(jot_array_size(y), jot_array_size(want));
    for (size_t i = 0; i < jot_array_size(y); i++) {
        double have = ((const double *)jot_array_data(y))[i],
               right = ((const double *)jot_array_data(want))[i];
        ck_assert_msg(have == right, "%.40s: element %zu is %g, not %g", c->body, i, have,
                      right);
    }
    jot_arrays_release(3, (jot_array *[]){x, y, want});
    jot_executable_release(f), jot_executable_release(g);
    jot_program_release(p);
}
END_TEST

static const char own_number[] =
    "func.func @main(%x: tensor<4x2xf64>) -> tensor<4x2xf64> {\n"
    "  %p = stablehlo.partition_id : tensor<ui32>\n"
    "  %r = stablehlo.replica_id : tensor<ui32>\n"
    "  %s = stablehlo.add %p, %r : tensor<ui32>\n"
    "  %f = stablehlo.convert %s : (tensor<ui32>) -> tensor<f64>\n"
    "  %0 = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f64>) -> tensor<4x2xf64>\n"
    "  return %0 : tensor<4x2xf64>\n"
    "}\n";

START_TEST(know_their_number)
{
    jot_program *p = read_text(own_number);
    jot_array *x = jot_array_full(JOT_F64, 1, 4, 4, 2), *one = jot_array_full(JOT_F64, 1, 4, 2);
    jot_executable *f = jot_jit(jot_vmap_named(jot_program_function(p, "main"), "partition"));
    jot_executable *g = jot_jit(jot_program_function(p, "main")),
                   *h = jot_jit(jot_fn(numbered));
    jot_array *y = NULL, *z = NULL, *want = NULL;
    ck_assert_int_eq(jot_call_list(f, 1, &x, 1, &y), JOT_OK);
    ck_assert_int_eq(jot_call_list(g, 1, &one, 1, &z), JOT_OK);
    ck_assert_int_eq(jot_call_list(h, 1, &x, 1, &want), JOT_OK);
    ck_assert(!memcmp(jot_array_data(y), jot_array_data(want), jot_array_bytes(want)));
    ck_assert(((const double *)jot_array_data(z))[0] == 0);
    jot_arrays_release(5, (jot_array *[]){x, one, y, z, want});
    jot_executable_release(f), jot_executable_release(g), jot_executable_release(h);
    jot_program_release(p);
}
END_TEST

// ---- what devices of a mesh do ----

#define MANUAL(axes)                                                                           \
    "sdy.mesh @grid = <[\"x\"=2, \"y\"=2]>\n"                                                  \
    "func.func @main(%x: tensor<8x4xf64>) -> (tensor<8x4xf64>, tensor<8x2xf64>, "              \
    "tensor<4x2xf64>) {\n"                                                                     \
    "  %0:3 = sdy.manual_computation(%x) in_shardings=[<@grid, [{\"x\"}, {\"y\"}]>] "          \
    "out_shardings=[<@grid, [{\"x\"}, {}]>, <@grid, [{\"x\"}, {}]>, <@grid, [{}, {}]>] "       \
    "manual_axes={" axes "} (%p: tensor<4x2xf64> loc(\"p\")) {\n"                              \
    "    %k = stablehlo.partition_id : tensor<ui32>\n"                                         \
    "    %f = stablehlo.convert %k : (tensor<ui32>) -> tensor<f64>\n"                          \
    "    %q = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f64>) -> tensor<4x2xf64>\n"   \
    "    %c = stablehlo.add %p, %q : tensor<4x2xf64>\n"                                        \
    "    %1 = \"stablehlo.all_gather\"(%c) <{all_gather_dim = 1 : i64, " CHANNEL GROUPS(       \
        "[[0, 1], [2, 3]]",                                                                    \
        "2x2") ", use_global_device_ids}> : (tensor<4x2xf64>) -> "                             \
               "tensor<4x4xf64>\n"                                                             \
               "    %2 = \"stablehlo.all_reduce\"(%p) <{" CHANNEL                              \
                   GROUPS("[[0, 1], [2, 3]]", "2x2") ", use_global_device_ids}>" REGION(       \
                       "add") " : (tensor<4x2xf64>) -> tensor<4x2xf64>\n"                      \
                              "    %3 = \"stablehlo.collective_broadcast\"(%p) <{" CHANNEL     \
                                  GROUPS(                                                      \
                                      "[[0, 1, 2, 3]]",                                        \
                                      "1x4") "}> : (tensor<4x2xf64>) -> tensor<4x2xf64>\n"     \
                                             "    sdy.return %1, %2, %3 : tensor<4x4xf64>, "   \
                                             "tensor<4x2xf64>, tensor<4x2xf64>\n"              \
                                             "  } : (tensor<8x4xf64>) -> (tensor<8x4xf64>, "   \
                                             "tensor<8x2xf64>, tensor<4x2xf64>)\n"             \
                                             "  return %0#0, %0#1, %0#2 : tensor<8x4xf64>, "   \
                                             "tensor<8x2xf64>, tensor<4x2xf64>\n}\n"

// As it is printed, or of JAX's bytecode with groups by axes of the mesh; and as the general form of it that is
// written.
START_TEST(run_on_the_devices_of_a_mesh)
{
    ck_assert_int_eq(jot_set_host_devices(4), JOT_OK);
    static char general[1 << 14];
    size_t n;
    jot_program *p = _i & 1 ? read_file("mesh.jaxexport") : read_text(MANUAL("\"x\", \"y\""));
    if (_i > 1) {
        ck_assert_msg(jot_program_to_memory(p, JOT_PROGRAM_TEXT, general, sizeof general, &n) ==
                          JOT_OK,
                      "%s", jot_error_message());
        jot_program_release(p);
        p = read_text(general);
    }
    double at[32];
    for (int i = 0; i < 32; i++)
        at[i] = i * 7 % 11;
    jot_array *x = jot_array_from(at, 8, 4), *y[3];
    jot_executable *f = jot_jit(jot_program_function(p, "main"));
    ck_assert_msg(jot_call(f, JOT_IN(x), JOT_OUT(y)) == JOT_OK, "%s", jot_error_message());
    const char *text = jot_executable_text(f, "schedule"); // which the evaluator has not
    ck_assert(!text || strstr(text, "all_reduce sum of 64 bytes over 2 devices"));
    const double *all = jot_array_data(y[0]), *sums = jot_array_data(y[1]),
                 *first = jot_array_data(y[2]);
    for (int i = 0; i < 8; i++)
        for (int k = 0; k < 4; k++) {
            ck_assert(all[4 * i + k] == at[4 * i + k] + i / 4 * 2 + k / 2);
            ck_assert(sums[2 * i + k % 2] == at[4 * i + k % 2] + at[4 * i + k % 2 + 2]);
            ck_assert(i > 3 || k > 1 || first[2 * i + k] == at[4 * i + k]);
        }
    jot_arrays_release(4, (jot_array *[]){x, y[0], y[1], y[2]});
    jot_executable_release(f);
    jot_program_release(p);
}
END_TEST

// Axes that are not manual; a mesh larger than the devices.
START_TEST(meshes_that_are_not_read)
{
    static const char *const messages[] = {
        "text.mlir:3: sdy.manual_computation: 1 of the 2 axes of its mesh are manual",
        "text.mlir:3: sdy.manual_computation: jot_mesh_of: a mesh of 4 devices"};
    ck_assert_int_eq(jot_set_host_devices(_i ? 1 : 4), JOT_OK);
    jot_program *p = read_text(_i ? MANUAL("\"x\", \"y\"") : MANUAL("\"x\""));
    jot_array *x = jot_array_full(JOT_F64, 0, 8, 4), *y[3];
    jot_executable *f = jot_jit(jot_program_function(p, "main"));
    ck_assert(jot_call(f, JOT_IN(x), JOT_OUT(y)) != JOT_OK);
    ck_assert_msg(strstr(jot_error_message(), messages[_i]), "%s", jot_error_message());
    jot_array_release(x);
    jot_executable_release(f);
    jot_program_release(p);
}
END_TEST

// ---- functions on meshes as programs ----

// x: f64[8,4], in pieces along rows over x and columns over y
static jot_value on_mesh(jot_value x)
{
    jot_value sum = jot_psum(x, "y"), most = jot_pmax(jot_sum(x), "x, y");
    jot_value rows = jot_psum_scatter(jot_matmul(x, jot_transpose(x)), "x", .tiled = true);
    jot_value all = jot_all_gather(rows, "x", .tiled = true); // f64[4,4]
    jot_value turned = jot_all_to_all(x, "y", .axis = 1, .to = 0, .tiled = true);
    jot_value moved = jot_ppermute(x, "x", 0, 1);
    jot_value own = jot_add(jot_axis_index("x"), jot_mul(10, jot_axis_index("y")));
    jot_value y = jot_add(jot_mul(sum, moved), jot_add(most, own));
    return jot_add(jot_add(y, jot_sum(all)), jot_reshape(turned, 4, 2));
}

static void copy_block(const double *from, double *to, int device, bool is_out)
{
    for (int r = 0; r < 4; r++)
        for (int c = 0; c < 2; c++) {
            int whole = (device / 2 * 4 + r) * 4 + device % 2 * 2 + c,
                piece = device * 8 + r * 2 + c;
            to[is_out ? whole : piece] = from[is_out ? piece : whole];
        }
}

START_TEST(functions_on_meshes_are_written)
{
    ck_assert_int_eq(jot_set_host_devices(4), JOT_OK);
    jot_mesh *mesh = jot_mesh_of(JOT_HOST, {"x", 2}, {"y", 2});
    ck_assert_msg(mesh != NULL, "%s", jot_error_message());
    jot_function f =
        jot_shard_map(jot_fn(on_mesh), mesh, JOT_SPLITS("x, y"), JOT_SPLITS("x, y"));
    const jot_program_type type = {JOT_F64, 2, (const int64_t[]){8, 4}};
    jot_program *p = jot_program_of_device(f, 1, &type);
    ck_assert_msg(p != NULL, "%s", jot_error_message());
    static char text[1 << 16];
    size_t n;
    jot_program_format form = _i ? JOT_PROGRAM_BYTECODE : JOT_PROGRAM_TEXT;
    ck_assert_msg(jot_program_to_memory(p, form, text, sizeof text, &n) == JOT_OK, "%s",
                  jot_error_message());
    ck_assert(_i || strstr(text, "mhlo.num_partitions = 4"));
    jot_program *again = jot_program_from_memory("written.mlir", text, n);
    ck_assert_msg(again != NULL, "%s", jot_error_message());
    double whole[32], pieces[32], back[32];
    for (int i = 0; i < 32; i++)
        whole[i] = (i * 7 % 13) / 4.0 - 1;
    for (int d = 0; d < 4; d++)
        copy_block(whole, pieces, d, false);
    jot_array *x = jot_array_from(whole, 8, 4), *in = jot_array_from(pieces, 4, 4, 2),
              *y = NULL, *z = NULL;
    jot_executable *g = jot_jit(f), *h = jot_jit(jot_vmap_named(
                                        jot_program_function(again, "main"), "partition"));
    ck_assert_msg(jot_call_list(g, 1, &x, 1, &y) == JOT_OK &&
                      jot_call_list(h, 1, &in, 1, &z) == JOT_OK,
                  "%s", jot_error_message());
    for (int d = 0; d < 4; d++)
        copy_block(jot_array_data(z), back, d, true);
    for (int i = 0; i < 32; i++)
        ck_assert_double_eq_tol(back[i], ((const double *)jot_array_data(y))[i], 1e-12);
    jot_arrays_release(4, (jot_array *[]){x, in, y, z});
    jot_executable_release(g), jot_executable_release(h);
    jot_program_release(p), jot_program_release(again);
}
END_TEST

// ---- what is refused ----

struct refused {
    const char *body, *message;
};

static const struct refused refused[] = {
    {"%0 = \"stablehlo.all_reduce\"(%x) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> "
     "({\n"
     "^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"
     "  %s = stablehlo.add %a, %b : tensor<f32>\n"
     "  stablehlo.return %s : tensor<f32>\n"
     "}) : (tensor<4xf32>) -> tensor<4xf32>",
     "text.mlir:2: stablehlo.all_reduce: lane 1, and the maps around it have 1"},
    {"%0 = \"stablehlo.all_to_all\"(%x) <{concat_dimension = 0 : i64, replica_groups = "
     "dense<[[0, 1], [2, -1]]> : tensor<2x2xi64>, split_count = 2 : i64, split_dimension = 0 : "
     "i64}> : (tensor<4xf32>) -> tensor<4xf32>",
     "text.mlir:2: stablehlo.all_to_all: groups of different sizes, of which only all_reduce "
     "and"},
    {"%0 = stablehlo.custom_call @xla_python_cpu_callback(%x) : (tensor<4xf32>) -> "
     "tensor<4xf32>",
     "calls back into Python"},
    {"stablehlo.custom_call @xla_ffi_python_cpu_callback(%x) {has_side_effect = true} : "
     "(tensor<4xf32>) -> ()\n"
     "%0 = stablehlo.negate %x : tensor<4xf32>",
     "text.mlir:2: stablehlo.custom_call: @xla_ffi_python_cpu_callback"},
    {"%0 = stablehlo.custom_call @who(%x) : (tensor<4xf32>) -> tensor<4xf32> loc(\"f\")",
     "text.mlir:2: stablehlo.custom_call (f): jot does not know"},
    {"%0 = stablehlo.custom_call @who(%x) : (tensor<4xf32>) -> tensor<4xf32>", "@who"},
    {"%1 = stablehlo.custom_call @SPMDFullToShardShape(%x) : (tensor<4xf32>) -> tensor<2xf32>\n"
     "%0 = stablehlo.custom_call @SPMDShardToFullShape(%1) : (tensor<2xf32>) -> tensor<4xf32>",
     "text.mlir:2: stablehlo.custom_call: @SPMDFullToShardShape divides an array"},
    {"%0 = \"stablehlo.all_gather\"(%x) <{all_gather_dim = 0 : i64, replica_groups = "
     "#stablehlo.replica_group_mesh_axes<mesh = @m, axes = [#stablehlo.axis_ref<name = "
     "\"x\">]>}> "
     ": (tensor<4xf32>) -> tensor<4xf32>",
     "text.mlir:2: stablehlo.all_gather: replica_groups by whole axes of a mesh of the 1 "
     "devices"},
    {"%1 = \"mine.op\"(%x) : (tensor<4xf32>) -> tensor<4xf32>\n"
     "%0 = stablehlo.add %1, %1 : tensor<4xf32>",
     "text.mlir:2: mine.op"},
    {"%1 = stablehlo.convert %x : (tensor<4xf32>) -> tensor<4x!quant.uniform<i8:f32, 0.1>>\n"
     "%0 = stablehlo.add %x, %x : tensor<4xf32>",
     "quant"},
    {"%0 = stablehlo.slice %x [0:9] : (tensor<4xf32>) -> tensor<4xf32>", "stablehlo.slice"},
    {"%0 = func.call @missing(%x) : (tensor<4xf32>) -> tensor<4xf32>", "@missing"},
};

START_TEST(are_refused_with_the_place)
{
    const struct refused *r = &refused[_i];
    char text[2048];
    snprintf(text, sizeof text,
             "func.func @main(%%x: tensor<4xf32>) -> tensor<4xf32> {\n%s\nreturn %%0 : "
             "tensor<4xf32>\n}\n",
             r->body);
    jot_program *p = jot_program_from_memory("text.mlir", text, strlen(text));
    jot_array *x = jot_array_from(((float[]){1, 2, 3, 4}), 4), *y = NULL;
    if (p) {
        jot_executable *f = jot_jit(jot_program_function(p, "main"));
        ck_assert_int_ne(jot_call(f, JOT_IN(x), JOT_OUT(y)), JOT_OK);
        jot_executable_release(f);
    }
    ck_assert_msg(strstr(jot_error_message(), r->message) != NULL, "%s", jot_error_message());
    jot_array_release(x);
    jot_program_release(p);
}
END_TEST

// As an artefact that was cut short, and an array.
START_TEST(other_files_are_not_taken_for_text)
{
    static const char *const begins[] = {"\x1c\0\0\0jax", "\x93NUMPY"};
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++) {
        ck_assert_ptr_null(jot_program_from_memory("file", begins[i], 7));
        ck_assert_ptr_nonnull(
            strstr(jot_error_message(), "file: offset 0: this is no program"));
    }
}
END_TEST

// ---- what programs do that jot has an operation for ----

static jot_value bits_of(jot_value key) { return jot_random_bits(key, JOT_U32, 2, 3); }

// The bits of jot's own, in one op; with another rotation other bits, as the loop gives them.
START_TEST(random_bits_are_found)
{
    static const char *const change[] = {"13, 15, 26, 6", "13, 15, 26, 7"};
    char text[1 << 14];
    FILE *file = fopen(PROGRAMS "random.mlir", "r");
    ck_assert_ptr_nonnull(file);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    memcpy(strstr(text, change[0]), change[_i], strlen(change[0]));
    jot_program *p = read_text(text);
    jot_executable *f = jot_jit(jot_program_function(p, "main")),
                   *own = jot_jit(jot_fn(bits_of));
    jot_array *key = jot_array_from(((uint32_t[]){7, 0x89abcdef}), 2), *got, *want;
    ck_assert_msg(jot_call(f, JOT_IN(key), JOT_OUT(got)) == JOT_OK, "%s", jot_error_message());
    ck_assert_int_eq(jot_call(own, JOT_IN(key), JOT_OUT(want)), JOT_OK);
    bool is_same = !memcmp(jot_array_data(got), jot_array_data(want), 24);
    ck_assert_int_eq(is_same, _i == 0);
    const char *graph = jot_executable_text(f, "trace");
    ck_assert_msg(graph && !strstr(graph, " threefry2x32") == (_i == 1), "%s", graph);
    jot_array_release(key), jot_array_release(got), jot_array_release(want);
    jot_executable_release(f), jot_executable_release(own);
    jot_program_release(p);
}
END_TEST

// That of a call of a library has an attribute of a dialect that is not read.
START_TEST(artefacts_are_written_as_text_that_is_read)
{
    jot_program *p = read_file("factor.jaxexport");
    ck_assert_int_eq(jot_program_write(p, "factor.mlir"), JOT_OK);
    jot_program *q = jot_program_read("factor.mlir");
    ck_assert_msg(q != NULL, "%s", jot_error_message());
    jot_program_release(p);
    jot_program_release(q);
    remove("factor.mlir");
}
END_TEST

// Operations of CHLO, equal ones, one in a loop, one with an attribute, and a function that has the name of another.
static const char of_chlo[] =
    "func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<2xf32>, tensor<2xi32>) {\n"
    "  %0 = stablehlo.constant dense<0> : tensor<i32>\n"
    "  %r:2 = stablehlo.while(%i = %0, %y = %x) : tensor<i32>, tensor<4xf32>\n"
    "  cond {\n"
    "    %n = stablehlo.constant dense<3> : tensor<i32>\n"
    "    %t = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
    "    stablehlo.return %t : tensor<i1>\n"
    "  } do {\n"
    "    %1 = stablehlo.constant dense<1> : tensor<i32>\n"
    "    %j = stablehlo.add %i, %1 : tensor<i32>\n"
    "    %a = chlo.asinh %y : tensor<4xf32> -> tensor<4xf32>\n"
    "    %e = chlo.erf %a : tensor<4xf32> -> tensor<4xf32>\n"
    "    stablehlo.return %j, %e : tensor<i32>, tensor<4xf32>\n"
    "  }\n"
    "  %2 = chlo.erf %r#1 : tensor<4xf32> -> tensor<4xf32>\n"
    "  %3 = call @chlo.erf(%2) : (tensor<4xf32>) -> tensor<4xf32>\n"
    "  %values, %places = chlo.top_k(%3, k = 2) : tensor<4xf32> -> (tensor<2xf32>, "
    "tensor<2xi32>)\n"
    "  return %3, %values, %places : tensor<4xf32>, tensor<2xf32>, tensor<2xi32>\n"
    "}\n"
    "func.func private @chlo.erf(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
    "  %0 = chlo.lgamma %x : tensor<4xf32> -> tensor<4xf32>\n"
    "  return %0 : tensor<4xf32>\n"
    "}\n";

static void call_main(const jot_program *p, jot_array **out)
{
    jot_executable *f = jot_jit(jot_program_function(p, "main"));
    jot_array *x = jot_array_from(((float[]){-1.5f, 0.25f, 2, 0.5f}), 4);
    ck_assert_msg(jot_call_list(f, 1, &x, 3, out) == JOT_OK, "%s", jot_error_message());
    jot_array_release(x);
    jot_executable_release(f);
}

START_TEST(chlo_is_written_as_functions)
{
    static char bytes[2][1 << 16];
    size_t n[2];
    jot_array *out[2][3];
    jot_program *p = read_text(of_chlo), *q = NULL;
    for (int i = 0; i < 2; i++) {
        ck_assert_msg(jot_program_to_memory(p, JOT_PROGRAM_BYTECODE, bytes[i], sizeof bytes[i],
                                            &n[i]) == JOT_OK,
                      "%s", jot_error_message());
        call_main(p, out[i]);
        q = jot_program_from_memory("written", bytes[i], n[i]);
        ck_assert_msg(q != NULL, "%s", jot_error_message());
        jot_program_release(p);
        p = q;
    }
    ck_assert_uint_eq(n[0], n[1]);
    ck_assert_mem_eq(bytes[0], bytes[1], n[0]);
    for (int k = 0; k < 3; k++)
        ck_assert_mem_eq(jot_array_data(out[0][k]), jot_array_data(out[1][k]),
                         jot_array_bytes(out[0][k]));
    const char *python = getenv("JOT_PYTHON");
    char command[512];
    snprintf(command, sizeof command, "%s tests/interop/accepts.py chlo.mlirbc", python);
    ck_assert_int_eq(jot_program_write(p, "chlo.mlirbc"), JOT_OK);
    ck_assert(!python || !*python || system(command) == 0);
    remove("chlo.mlirbc");
    jot_arrays_release(3, out[0]);
    jot_arrays_release(3, out[1]);
    jot_program_release(p);
}
END_TEST

START_TEST(chlo_of_unknown_extents_is_not_written)
{
    size_t n;
    jot_program *p = read_text("func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {\n"
                               "  %0 = chlo.erf %x : tensor<?xf32> -> tensor<?xf32>\n"
                               "  return %0 : tensor<?xf32>\n}\n");
    ck_assert_int_eq(jot_program_to_memory(p, JOT_PROGRAM_BYTECODE, NULL, 0, &n),
                     JOT_ERR_ARGUMENT);
    ck_assert_str_eq(jot_error_message(), "text.mlir:2:8: chlo.erf: it has no portable form on "
                                          "values of unknown extents");
    jot_program_release(p);
}
END_TEST

static int run_by(const char *backend)
{
    Suite *s = suite_create("programs");
    TCase *t = tcase_create("programs");
    setenv("JOT_BACKEND", backend, 1);
    tcase_set_timeout(t, 120);
    tcase_add_test(t, check_themselves);
    tcase_add_test(t, pass_the_tests_of_stablehlo);
    tcase_add_test(t, are_differentiated);
    tcase_add_loop_test(t, run_in_several_partitions, 0,
                        (int)(sizeof collectives / sizeof *collectives));
    tcase_add_test(t, know_their_number);
    tcase_add_loop_test(t, run_on_the_devices_of_a_mesh, 0, 4);
    tcase_add_loop_test(t, meshes_that_are_not_read, 0, 2);
    tcase_add_loop_test(t, functions_on_meshes_are_written, 0, 2);
    tcase_add_test(t, are_mapped_in_traced_functions);
    tcase_add_test(t, tell_what_they_take);
    tcase_add_test(t, artefacts_take_any_extent);
    tcase_add_test(t, artefacts_have_their_gradient);
    tcase_add_test(t, artefacts_take_all_arguments);
    tcase_add_test(t, artefacts_are_written_as_text_that_is_read);
    tcase_add_loop_test(t, random_bits_are_found, 0, 2);
    tcase_add_test(t, chlo_is_written_as_functions);
    tcase_add_test(t, chlo_of_unknown_extents_is_not_written);
    tcase_add_test(t, arguments_of_other_types_are_refused);
    tcase_add_test(t, other_files_are_not_taken_for_text);
    tcase_add_loop_test(t, are_refused_with_the_place, 0, sizeof refused / sizeof *refused);
    suite_add_tcase(s, t);
    SRunner *runner = srunner_create(s);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed;
}

int main(void)
{
    int failed = run_by("");
    return run_by("eval") || failed;
}
