// SPDX-License-Identifier: Apache-2.0
// Functions that JAX writes out, absolute values of complex numbers and lgamma: found, with their derivatives.
#include "interop/program_support.h"

// Numbers from LARGE and to SMALL are scaled, by DOWN and by UP.
#define PROGRAM(f, LARGE, SMALL, DOWN, UP, INF)                                                \
    "func.func @main(%z: tensor<3xcomplex<" f ">>) -> tensor<3x" f "> {\n"                     \
    "  %x = stablehlo.real %z : (tensor<3xcomplex<" f ">>) -> tensor<3x" f ">\n"               \
    "  %y = stablehlo.imag %z : (tensor<3xcomplex<" f ">>) -> tensor<3x" f ">\n"               \
    "  %ax = stablehlo.abs %x : tensor<3x" f ">\n"                                             \
    "  %ay = stablehlo.abs %y : tensor<3x" f ">\n"                                             \
    "  %m = stablehlo.maximum %ax, %ay : tensor<3x" f ">\n"                                    \
    "  %large = stablehlo.constant dense<" LARGE "> : tensor<3x" f ">\n"                       \
    "  %small = stablehlo.constant dense<" SMALL "> : tensor<3x" f ">\n"                       \
    "  %down = stablehlo.constant dense<" DOWN "> : tensor<3x" f ">\n"                         \
    "  %up = stablehlo.constant dense<" UP "> : tensor<3x" f ">\n"                             \
    "  %one0 = stablehlo.constant dense<1.0> : tensor<" f ">\n"                                \
    "  %one = stablehlo.broadcast_in_dim %one0, dims = [] : (tensor<" f ">) -> tensor<3x" f    \
    ">\n"                                                                                      \
    "  %inf = stablehlo.constant dense<" INF "> : tensor<3x" f                                 \
    ">\n" COMPARE("l", "GE", "m", "large", f) COMPARE("s", "LE", "m", "small", f)              \
        SCALED("x", f) SCALED("y", f) SELECT("s1", "s", "down", "one", f)                      \
            SELECT("s2", "l", "up", "s1",                                                      \
                   f) "  %qx = chlo.square %x4 : tensor<3x" f "> -> tensor<3x" f ">\n"         \
                      "  %qy = chlo.square %y4 : tensor<3x" f "> -> tensor<3x" f ">\n"         \
                      "  %q = stablehlo.add %qx, %qy : tensor<3x" f ">\n"                      \
                      "  %r = stablehlo.sqrt %q : tensor<3x" f ">\n"                           \
                      "  %p = stablehlo.multiply %r, %s2 : tensor<3x" f                        \
                      ">\n" COMPARE("ix", "EQ", "ax", "inf", f) COMPARE(                       \
                          "iy", "EQ", "ay", "inf",                                             \
                          f) "  %i = stablehlo.or %ix, %iy : "                                 \
                             "tensor<3xi1>\n" SELECT("result", "i", "inf", "p",                \
                                                     f) "  return %result : tensor<3x" f       \
                                                        ">\n}\n"
#define COMPARE(to, how, x, y, f)                                                              \
    "  %" to " = stablehlo.compare " how ", %" x ", %" y ", FLOAT : (tensor<3x" f              \
    ">, tensor<3x" f ">) -> tensor<3xi1>\n"
#define SELECT(to, c, x, y, f)                                                                 \
    "  %" to " = stablehlo.select %" c ", %" x ", %" y " : tensor<3xi1>, tensor<3x" f ">\n"
#define SCALED(x, f)                                                                           \
    "  %" x "1 = stablehlo.multiply %" x ", %down : tensor<3x" f ">\n"                         \
    "  %" x "2 = stablehlo.multiply %" x ", %up : tensor<3x" f                                 \
    ">\n" SELECT(x "3", "s", x "2", x, f) SELECT(x "4", "l", x "1", x "3", f)

static const struct {
    const char *text;
    jot_dtype dtype;
    bool is_found;
} programs[] = {
    {PROGRAM("f32", "9.22337203E+18", "2.44140625E-4", "2.64697796E-23", "3.77789319E+22",
             "0x7F800000"),
     JOT_C64, true},
    {PROGRAM("f64", "6.7039039649712985E+153", "1.4901161193847656E-8",
             "2.2227587494850775E-162", "4.4989137945431964E+161", "0x7FF0000000000000"),
     JOT_C128, true},
    // Numbers that are squared too early, or not scaled back, or no infinity.
    {PROGRAM("f32", "9.22337203E+28", "2.44140625E-4", "2.64697796E-23", "3.77789319E+22",
             "0x7F800000"),
     JOT_C64, false},
    {PROGRAM("f32", "9.22337203E+18", "2.44140625E-4", "2.64697796E-23", "3.77789319E+21",
             "0x7F800000"),
     JOT_C64, false},
    {PROGRAM("f32", "9.22337203E+18", "2.44140625E-4", "2.64697796E-23", "3.77789319E+22",
             "3.0E+38"),
     JOT_C64, false},
};

static double number(const jot_array *a, size_t i)
{
    bool is_single = jot_array_dtype(a) == JOT_C64 || jot_array_dtype(a) == JOT_F32;
    return is_single ? (double)((const float *)jot_array_data(a))[i]
                     : ((const double *)jot_array_data(a))[i];
}

// 0, 3 - 4i and 6 + 8i.  At 0 the root has no derivative, and the absolute value has 0.
START_TEST(have_their_derivative)
{
    static const float z32[] = {0, 0, 3, -4, 6, 8}, ones32[] = {1, 1, 1};
    static const double z64[] = {0, 0, 3, -4, 6, 8}, ones64[] = {1, 1, 1};
    static const double want[] = {0, 5, 10}, slope[] = {0, 0, 0.6, 0.8, 0.6, -0.8}; // JAX's
    bool is_single = programs[_i].dtype == JOT_C64;
    const int64_t dims[] = {3, JOT_END};
    jot_program *p = read_text(programs[_i].text);
    jot_array *in[] = {
        jot_array_copy(programs[_i].dtype, is_single ? (const void *)z32 : z64, dims),
        jot_array_copy(is_single ? JOT_F32 : JOT_F64, is_single ? (const void *)ones32 : ones64,
                       dims)};
    jot_array *out[2] = {0};
    jot_executable *f =
        jot_jit(jot_vjp_of(jot_program_function(p, "main"), "f", (const int[]){0, JOT_END}));
    ck_assert_msg(f && jot_call_list(f, 2, in, 2, out) == JOT_OK, "%s", jot_error_message());
    for (size_t i = 0; i < 3; i++)
        ck_assert_double_eq_tol(number(out[0], i), want[i], 1e-5);
    for (size_t i = 2; i < 6; i++)
        ck_assert_double_eq_tol(number(out[1], i), slope[i], 1e-6);
    ck_assert_int_eq(number(out[1], 0) == 0, programs[_i].is_found);
    jot_arrays_release(2, in);
    jot_arrays_release(2, out);
    jot_executable_release(f);
    jot_program_release(p);
}
END_TEST

// lgamma, which JAX 0.12 computes with the bits of its argument; its derivative is digamma.
START_TEST(lgamma_is_found_in_bits)
{
    static const float at[] = {0.5F, 3, -1.5F}, one = 1;
    static const double slope[] = {-1.9635100260214235, 0.9227843350984671, 0.7031566406452432};
    jot_program *p = read_file("lgamma.jaxexport");
    jot_array *in[] = {jot_array_copy(JOT_F32, at, (const int64_t[]){3, JOT_END}),
                       jot_array_copy(JOT_F32, at, (const int64_t[]){JOT_END}),
                       jot_array_from(((float[]){1, 1, 1}), 3),
                       jot_array_copy(JOT_F32, &one, (const int64_t[]){JOT_END})};
    jot_array *out[4] = {0};
    jot_executable *f =
        jot_jit(jot_vjp_of(jot_program_function(p, "main"), "f", (const int[]){0, 1, JOT_END}));
    ck_assert_msg(f && jot_call_list(f, 4, in, 4, out) == JOT_OK, "%s", jot_error_message());
    for (size_t i = 0; i < 3; i++)
        ck_assert_double_eq_tol(number(out[2], i), slope[i], 1e-5);
    ck_assert_double_eq_tol(number(out[3], 0), slope[0], 1e-5);
    jot_arrays_release(4, in);
    jot_arrays_release(4, out);
    jot_executable_release(f);
    jot_program_release(p);
}
END_TEST

static void add(TCase *t)
{
    tcase_add_test(t, lgamma_is_found_in_bits);
    tcase_add_loop_test(t, have_their_derivative, 0, sizeof programs / sizeof *programs);
}

int main(void) { return run_by_both("written_out", add); }
