// SPDX-License-Identifier: Apache-2.0
// How far what a test program computes may be from what it expects.
#include "interop/program_support.h"

// exp(1) is 0x402DF854 in f32, erf(1) 0x3F57BB3D; what is expected is four or six units away.
#define EXPECTS(compute, expected, functions)                                                  \
    "func.func @main() {\n"                                                                    \
    "  %x = func.call @inputs() : () -> tensor<1xf32>\n"                                       \
    "  %e = stablehlo.constant dense<\"" expected "\"> : tensor<1xf32>\n"                      \
    "  %y = " compute "\n"                                                                     \
    "  check.expect_close %y, %e, max_ulp_difference = 2 : tensor<1xf32>, tensor<1xf32>\n"     \
    "  return\n}\n"                                                                            \
    "func.func private @inputs() -> tensor<1xf32> {\n"                                         \
    "  %0 = stablehlo.constant dense<1.0> : tensor<1xf32>\n"                                   \
    "  return %0 : tensor<1xf32>\n}\n" functions
#define FUNCTION(name, body)                                                                   \
    "func.func private @" name "(%x: tensor<1xf32>) -> tensor<1xf32> {\n  %y = " body "\n"     \
    "  return %y : tensor<1xf32>\n}\n"
#define CALL(name) "func.call @" name "(%x) : (tensor<1xf32>) -> tensor<1xf32>"
#define ERF                                                                                    \
    "stablehlo.composite \"chlo.erf\" %x {decomposition = @plain} : (tensor<1xf32>) -> "       \
    "tensor<1xf32>"
#define TWICE "stablehlo.add %x, %x : tensor<1xf32>"

static const struct {
    const char *text;
    jot_status status;
    int wide;
} programs[] = {
    {EXPECTS("stablehlo.exponential %x : tensor<1xf32>", "0x58F82D40", ""), JOT_OK, 1},
    {EXPECTS("stablehlo.exponential %x : tensor<1xf32>", "0x5AF82D40", ""), JOT_ERR_CHECK, 0},
    {EXPECTS(CALL("f"), "0x58F82D40",
             FUNCTION("f", CALL("g"))
                 FUNCTION("g", "stablehlo.exponential %x : tensor<1xf32>")),
     JOT_OK, 1},
    {EXPECTS(ERF, "0x41BB573F", FUNCTION("plain", TWICE)), JOT_OK, 1},
    {EXPECTS(CALL("f"), "0x41BB573F", FUNCTION("f", ERF) FUNCTION("plain", TWICE)), JOT_OK, 1},
    {EXPECTS(CALL("f"), "0x43BB573F", FUNCTION("f", ERF) FUNCTION("plain", TWICE)),
     JOT_ERR_CHECK, 0},
};

START_TEST(functions_have_their_bounds_where_they_are_called)
{
    jot_program *p = read_text(programs[_i].text);
    int wide = -1;
    jot_status status = jot_program_check(p, NULL, &wide);
    ck_assert_msg(status == programs[_i].status, "%d: %s", status, jot_error_message());
    ck_assert(status != JOT_OK || wide == programs[_i].wide);
    jot_program_release(p);
}
END_TEST

static void add(TCase *t)
{
    tcase_add_loop_test(t, functions_have_their_bounds_where_they_are_called, 0,
                        sizeof programs / sizeof *programs);
}

int main(void) { return run_by_both("check", add); }
