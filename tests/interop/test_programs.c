// SPDX-License-Identifier: Apache-2.0
// Programs read and run: those of tests/interop/programs that check themselves, and, where $JOT_CONFORMANCE
// has them, StableHLO's own tests; by machine code and by the evaluator.
#include "interop/program_support.h"
#include "interop/shuffle.h"
#include "interop/tree.h"

#include <glob.h>
#include <math.h>
#include <unistd.h>

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
    "    %z = func.call @times(%y, %a) : (tensor<f64>, tensor<f64>) -> tensor<f64>\n"
    "    stablehlo.return %j, %z : tensor<i32>, tensor<f64>\n"
    "  }\n"
    "  return %r#1 : tensor<f64>\n"
    "}\n"
    "func.func private @times(%x: tensor<f64>, %y: tensor<f64>) -> tensor<f64> {\n"
    "  %0 = stablehlo.multiply %x, %y : tensor<f64>\n"
    "  return %0 : tensor<f64>\n"
    "}\n";

// In other words (shuffle.h), as text or as bytecode.
static jot_program *read_rewritten(const char *text, bool as_text)
{
    size_t n;
    char *written = shuffle_rewrite("text.mlir", text, strlen(text), 7, as_text, &n);
    jot_program *p = jot_program_from_memory("written", written, n);
    ck_assert_msg(p != NULL, "%s", jot_error_message());
    free(written);
    return p;
}

// y = x a^3
START_TEST(are_differentiated)
{
    jot_program *p = _i ? read_rewritten(loop, _i == 1) : read_text(loop);
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

// rows = softmax(tanh(x w) + numbers), sum = sum(x), of x[n, 8], an argument that is not used, and w[8, 5].
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

// Of another platform it calls what jot does not know.
START_TEST(artefacts_are_of_the_host)
{
    jot_program *p = read_file("values.jaxexport");
    jot_executable *f = jot_jit(jot_program_function(p, "main"));
    jot_array *x = jot_array_from(((float[]){2, 1, 1, 2}), 2, 2), *out = NULL;
    ck_assert_msg(jot_call(f, JOT_IN(x), JOT_OUT(out)) == JOT_OK, "%s", jot_error_message());
    ck_assert_float_eq_tol(((const float *)jot_array_data(out))[0], 1, 1e-6);
    ck_assert_float_eq_tol(((const float *)jot_array_data(out))[1], 3, 1e-6);
    jot_array_release(x);
    jot_array_release(out);
    jot_executable_release(f);
    jot_program_release(p);
}
END_TEST

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

// The gradient that came with the artefact is that which jot makes itself, of sum.
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

// JAX's gradient takes one factor of x * x for a constant, which what is lowered does not tell.
START_TEST(artefacts_are_differentiated_by_their_gradient)
{
    jot_program *p = read_file("rules.jaxexport");
    jot_function f = jot_program_function(p, "main");
    jot_executable *reverse = jot_jit(jot_vjp(f, 0)), *forward = jot_jit(jot_jvp(f, 0));
    jot_array *x = jot_array_from(((float[]){2, 3, 5}), 3), *n = jot_array_full(JOT_I32, 7);
    jot_array *ones = jot_array_full(JOT_F32, 1, 3), *none = jot_array_full(JOT_I32, 0);
    jot_array *dy[3], *y[4];
    ck_assert_msg(jot_call(reverse, JOT_IN(x, n, none, ones), JOT_OUT(dy)) == JOT_OK, "%s",
                  jot_error_message());
    ck_assert_msg(jot_call(forward, JOT_IN(x, n, ones), JOT_OUT(y)) == JOT_OK, "%s",
                  jot_error_message());
    ck_assert_int_eq(*(const int *)jot_array_data(dy[0]), 8);
    for (int i = 0; i < 3; i++) {
        float at = ((const float *)jot_array_data(x))[i];
        ck_assert_float_eq(((const float *)jot_array_data(dy[1]))[i], at * at);
        ck_assert_float_eq(((const float *)jot_array_data(dy[2]))[i], at);
        ck_assert_float_eq(((const float *)jot_array_data(y[3]))[i], 2 * at);
    }
    jot_arrays_release(JOT_OUT(dy));
    jot_arrays_release(JOT_OUT(y));
    jot_arrays_release(4, (jot_array *[]){x, n, ones, none});
    jot_executable_release(reverse), jot_executable_release(forward);
    jot_program_release(p);
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
     "text.mlir:2: stablehlo.all_gather: replica_groups by axes of a mesh of the 1 "
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

static void replace(char *text, const char *what, const char *with)
{
    char *at = strstr(text, what);
    ck_assert_ptr_nonnull(at);
    memmove(at + strlen(with), at + strlen(what), strlen(at + strlen(what)) + 1);
    memcpy(at, with, strlen(with));
}

#define ROTATIONS(last)                                                                        \
    "%odd = \"stablehlo.case\"(%platform) ({\n"                                                \
    "      %r0 = stablehlo.constant dense<[13, 15, 26, 6]> : tensor<4xui32>\n"                 \
    "      stablehlo.return %r0 : tensor<4xui32>\n    }, {\n"                                  \
    "      %r1 = stablehlo.constant dense<[13, 15, 26, " last "]> : tensor<4xui32>\n"          \
    "      stablehlo.return %r1 : tensor<4xui32>\n"                                            \
    "    }) : (tensor<i32>) -> tensor<4xui32>"

// The bits of jot's own, in one op; with another rotation other bits, as the loop gives them.  So for several platforms,
// the number of which the function is told: it must be the same one for all of them.
START_TEST(random_bits_are_found)
{
    static const char odd[] =
        "%odd = stablehlo.constant dense<[13, 15, 26, 6]> : tensor<4xui32>";
    static const struct {
        const char *rotations;
        bool is_for_platforms, is_found, is_same;
    } cases[] = {
        {odd, false, true, true},
        {"%odd = stablehlo.constant dense<[13, 15, 26, 7]> : tensor<4xui32>", false, false,
         false},
        {ROTATIONS("6"), true, true, true},
        {ROTATIONS("7"), true, false, true},
    };
    char text[1 << 14];
    FILE *file = fopen(PROGRAMS "random.mlir", "r");
    ck_assert_ptr_nonnull(file);
    text[fread(text, 1, sizeof text / 2, file)] = 0;
    fclose(file);
    replace(text, odd, cases[_i].rotations);
    if (cases[_i].is_for_platforms) {
        replace(text, "@words(", "@words(%platform: tensor<i32>, ");
        replace(text, "    %w:2 = call @words(%k0, %k1, %high, %low) : (",
                "    %platform = stablehlo.constant dense<0> : tensor<i32>\n"
                "    %w:2 = call @words(%platform, %k0, %k1, %high, %low) : (tensor<i32>, ");
    }
    jot_program *p = read_text(text);
    jot_executable *f = jot_jit(jot_program_function(p, "main")),
                   *own = jot_jit(jot_fn(bits_of));
    jot_array *key = jot_array_from(((uint32_t[]){7, 0x89abcdef}), 2), *got, *want;
    ck_assert_msg(jot_call(f, JOT_IN(key), JOT_OUT(got)) == JOT_OK, "%s", jot_error_message());
    ck_assert_int_eq(jot_call(own, JOT_IN(key), JOT_OUT(want)), JOT_OK);
    bool is_same = !memcmp(jot_array_data(got), jot_array_data(want), 24);
    ck_assert_int_eq(is_same, cases[_i].is_same);
    const char *graph = jot_executable_text(f, "trace");
    ck_assert_msg(graph && !strstr(graph, " threefry2x32") != cases[_i].is_found, "%s", graph);
    jot_array_release(key), jot_array_release(got), jot_array_release(want);
    jot_executable_release(f), jot_executable_release(own);
    jot_program_release(p);
}
END_TEST

// The bodies of JAX's argmax and argmin, which of two NaN take the first argument, whatever its index.
START_TEST(indices_are_found)
{
    static const char form[] =
        "func.func @main(%%x: tensor<2x5xf32>) -> tensor<2xi32> {\n"
        "  %%i = stablehlo.iota dim = 1 : tensor<2x5xi32>\n"
        "  %%v = stablehlo.constant dense<%s> : tensor<f32>\n"
        "  %%z = stablehlo.constant dense<0> : tensor<i32>\n"
        "  %%0:2 = stablehlo.reduce(%%x init: %%v), (%%i init: %%z) across dimensions = [1] : "
        "(tensor<2x5xf32>, tensor<2x5xi32>, tensor<f32>, tensor<i32>) -> (tensor<2xf32>, "
        "tensor<2xi32>)\n"
        "   reducer(%%a: tensor<f32>, %%b: tensor<f32>) (%%p: tensor<i32>, %%q: tensor<i32>) "
        "{\n"
        "    %%1 = stablehlo.compare %s, %%a, %%b : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
        "    %%2 = stablehlo.compare NE, %%a, %%a : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
        "    %%3 = stablehlo.or %%1, %%2 : tensor<i1>\n"
        "    %%4 = stablehlo.compare EQ, %%a, %%b : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
        "    %%5 = stablehlo.compare LT, %%p, %%q : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
        "    %%6 = stablehlo.and %%4, %%5 : tensor<i1>\n"
        "    %%7 = stablehlo.or %%3, %%6 : tensor<i1>\n"
        "    %%8 = stablehlo.select %%3, %%a, %%b : tensor<i1>, tensor<f32>\n"
        "    %%9 = stablehlo.select %%7, %%p, %%q : tensor<i1>, tensor<i32>\n"
        "    stablehlo.return %%8, %%9 : tensor<f32>, tensor<i32>\n"
        "  }\n"
        "  return %%0#1 : tensor<2xi32>\n}\n";
    static const struct {
        const char *init, *direction, *op;
        int first;
    } cases[] = {{"0xFF800000", "GT", " argmax ", 3}, {"0x7F800000", "LT", " argmin ", 0}};
    char text[2048];
    snprintf(text, sizeof text, form, cases[_i].init, cases[_i].direction);
    jot_program *p = read_text(text);
    jot_executable *f = jot_jit(jot_program_function(p, "main"));
    float at[] = {-2, 4, -2, 5, 5, 1, NAN, 7, NAN, -9};
    jot_array *x = jot_array_from(at, 2, 5), *y;
    ck_assert_msg(jot_call(f, JOT_IN(x), JOT_OUT(y)) == JOT_OK, "%s", jot_error_message());
    const int32_t *index = jot_array_data(y);
    ck_assert(index[0] == cases[_i].first && index[1] == 1);
    const char *graph = jot_executable_text(f, "trace");
    ck_assert_msg(graph && strstr(graph, cases[_i].op), "%s", graph);
    jot_array_release(x), jot_array_release(y);
    jot_executable_release(f);
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

static void add(TCase *t)
{
    tcase_add_test(t, check_themselves);
    tcase_add_test(t, pass_the_tests_of_stablehlo);
    tcase_add_loop_test(t, are_differentiated, 0, 3);
    tcase_add_test(t, are_mapped_in_traced_functions);
    tcase_add_test(t, tell_what_they_take);
    tcase_add_test(t, artefacts_take_any_extent);
    tcase_add_test(t, artefacts_have_their_gradient);
    tcase_add_test(t, artefacts_are_differentiated_by_their_gradient);
    tcase_add_test(t, artefacts_take_all_arguments);
    tcase_add_test(t, artefacts_are_of_the_host);
    tcase_add_test(t, artefacts_are_written_as_text_that_is_read);
    tcase_add_loop_test(t, random_bits_are_found, 0, 4);
    tcase_add_loop_test(t, indices_are_found, 0, 2);
    tcase_add_test(t, chlo_is_written_as_functions);
    tcase_add_test(t, chlo_of_unknown_extents_is_not_written);
    tcase_add_test(t, arguments_of_other_types_are_refused);
    tcase_add_test(t, other_files_are_not_taken_for_text);
    tcase_add_loop_test(t, are_refused_with_the_place, 0, sizeof refused / sizeof *refused);
}

int main(void) { return run_by_both("programs", add); }
