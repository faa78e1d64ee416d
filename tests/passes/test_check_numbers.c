// SPDX-License-Identifier: Apache-2.0
// Checks of numbers: they compute the same, and name the op, the element and the trip of a NaN.
#include "pass_support.h"

#include "ir/control.h"
#include "schedule/schedule.h"

// Checked programs compute the same, and say which op a NaN came from.
static const struct {
    const char *text;
    double x; // that gives one
    const char *message;
} numbers[] = {
    {"jot ir 1\n"
     "function @0 f(%x: f64[]) {\n"
     "  %y = log %x : f64[]\n"
     "  %z = neg %y : f64[]\n"
     "  return %z\n"
     "}\n",
     -1, "log gives NaN"},
    {"jot ir 1\n"
     "function @0 f(%x: f64[]) {\n"
     "  %y = log %x : f64[]\n"
     "  return %y\n"
     "}\n",
     NAN, "argument 0 is NaN"},
    // 3, 2, 1, 0, -1: trip 3 of the inner loop in trip 1 of the outer one
    {"jot ir 1\n"
     "function @0 inner(%k: f64[], %x: f64[]) {\n"
     "  %r = sqrt %x : f64[]\n"
     "  %y = sub %x, %k : f64[]\n"
     "  return %y, %r\n"
     "}\n"
     "function @1 outer(%k: f64[], %x: f64[]) {\n"
     "  %y, %r = scan %k, %x {reverse=0, length=4, n_consts=1, n_carry=1, functions=[@0]} : "
     "f64[], f64[4]\n"
     "  return %y\n"
     "}\n"
     "function @2 f(%x: f64[]) {\n"
     "  %k = const {data=1} : f64[]\n"
     "  %y = scan %k, %x {reverse=0, length=2, n_consts=1, n_carry=1, functions=[@1]} : f64[]\n"
     "  return %y\n"
     "}\n",
     6, "sqrt gives NaN, in trips 1, 3"},
    {"jot ir 1\n"
     "function @0 back(%x: f64[], %s: f64[]) {\n"
     "  %y = log %s : f64[]\n"
     "  %z = add %x, %y : f64[]\n"
     "  return %z\n"
     "}\n"
     "function @1 f(%x: f64[]) {\n"
     "  %i = iota {dtype=f64, dims=[4], axis=0} : f64[4]\n"
     "  %s = add %i, %x : f64[4]\n"
     "  %y = scan %x, %s {reverse=1, length=4, n_consts=0, n_carry=1, functions=[@0]} : f64[]\n"
     "  return %y\n"
     "}\n",
     -2.5, "log gives NaN, in trip 2"},
    {"jot ir 1\n"
     "function @0 test(%n: i32[], %x: f64[]) {\n"
     "  %k = const {data=5} : i32[]\n"
     "  %p = lt %n, %k : bool[]\n"
     "  return %p\n"
     "}\n"
     "function @1 step(%n: i32[], %x: f64[]) {\n"
     "  %one = const {data=1} : i32[]\n"
     "  %m = add %n, %one : i32[]\n"
     "  %y = log %x : f64[]\n"
     "  return %m, %y\n"
     "}\n"
     "function @2 left(%x: f64[]) {\n"
     "  %n = const {data=0} : i32[]\n"
     "  %m, %y = while %n, %x {n_consts=0, functions=[@0, @1]} : i32[], f64[]\n"
     "  return %y\n"
     "}\n"
     "function @3 right(%x: f64[]) {\n"
     "  return %x\n"
     "}\n"
     "function @4 f(%x: f64[]) {\n"
     "  %k = const {data=1e30} : f64[]\n"
     "  %p = gt %x, %k : bool[]\n"
     "  %i = convert %p {dtype=i32} : i32[]\n"
     "  %y = cond %i, %x {functions=[@2, @3]} : f64[]\n"
     "  return %y\n"
     "}\n",
     2, "log gives NaN, in trip 2"},
};
enum { N_NUMBERS = sizeof numbers / sizeof *numbers };

START_TEST(test_numbers)
{
    uint32_t f = parse(numbers[_i].text);
    uint32_t g = pass_check_numbers(module, f, PASS_CHECK_NAN), s = pass_simplify(module, g);
    double bad = numbers[_i].x, good = 1e40;
    struct ir_tensor in = {F64_SCALAR, &bad}, none;
    ck_assert_int_eq(ir_eval(module->arena, graph(g), &in, &none), JOT_ERR_CHECK);
    ck_assert_str_eq(jot_error_message(), numbers[_i].message);
    ck_assert_int_eq(ir_eval(module->arena, graph(s), &in, &none), JOT_ERR_CHECK);
    ck_assert_str_eq(jot_error_message(), numbers[_i].message);
    in.data = &good;
    struct ir_tensor want = *evaluate(f, &in);
    ck_assert(bits_equal(*evaluate(g, &in), want));
    ck_assert(bits_equal(*evaluate(s, &in), want));
}
END_TEST

START_TEST(test_infinities)
{
    uint32_t f = parse(numbers[0].text), g = pass_check_numbers(module, f, PASS_CHECK_INF);
    double zero = 0;
    struct ir_tensor in = {F64_SCALAR, &zero}, none;
    evaluate(pass_check_numbers(module, f, PASS_CHECK_NAN), &in);
    ck_assert_int_eq(ir_eval(module->arena, graph(g), &in, &none), JOT_ERR_CHECK);
    ck_assert_str_eq(jot_error_message(), "log gives NaN or infinity");
}
END_TEST

// Lanes that are done compute on, but are not checked: 1/(x - 1) is infinite at the end, and then NaN.
START_TEST(test_numbers_of_lanes)
{
    uint32_t f = parse("jot ir 1\n"
                       "function @0 test(%x: f64[]) {\n"
                       "  %k = const {data=0} : f64[]\n"
                       "  %p = gt %x, %k : bool[]\n"
                       "  return %p\n"
                       "}\n"
                       "function @1 step(%x: f64[]) {\n"
                       "  %k = const {data=1} : f64[]\n"
                       "  %r = sqrt %x : f64[]\n"
                       "  %y = sub %x, %k : f64[]\n"
                       "  %z = sub %r, %r : f64[]\n"
                       "  %w = add %y, %z : f64[]\n"
                       "  return %w\n"
                       "}\n"
                       "function @2 f(%x: f64[]) {\n"
                       "  %y = while %x {n_consts=0, functions=[@0, @1]} : f64[]\n"
                       "  return %y\n"
                       "}\n");
    const bool mapped[] = {true};
    uint32_t g;
    require(pass_vmap(module, f, mapped, 2, &g, NULL));
    g = pass_check_numbers(module, g, PASS_CHECK_NAN);
    double x[2] = {0.5, 3.5};
    struct ir_tensor in = {F64(2), x}, *out = evaluate(g, &in), none;
    ck_assert_double_eq(element(*out, 0).re, -0.5);
    ck_assert_double_eq(element(*out, 1).re, -0.5);
    x[1] = INFINITY;
    ck_assert_int_eq(ir_eval(module->arena, graph(g), &in, &none), JOT_ERR_CHECK);
    ck_assert_str_eq(jot_error_message(), "sub gives NaN, at [1], in trip 0");
}
END_TEST

// What is in a branch that lanes take by themselves is checked for those that do, in whiles
// that lanes leave by themselves too.
static const struct {
    const char *name, *body; // of a step of x: f64[]
} nested[] = {
    {"a branch for each lane", "  %i = convert %x {dtype=i32} : i32[]\n"
                               "  %y = cond %i, %x {functions=[@0, @1]} : f64[]\n"},
    {"a scan",
     "  %y = scan %x {reverse=0, length=1, n_consts=0, n_carry=1, functions=[@1]} : f64[]\n"},
    {"a call", "  %y = call %x {functions=[@1]} : f64[]\n"},
    {"a scan over a branch",
     "  %y = scan %x {reverse=0, length=1, n_consts=0, n_carry=1, functions=[@2]} : f64[]\n"},
};

START_TEST(test_numbers_in_bodies_of_lanes)
{
    char text[2000];
    snprintf(text, sizeof text,
             "jot ir 1\n"
             "function @0 fine(%%x: f64[]) {\n  return %%x\n}\n"
             "function @1 root(%%x: f64[]) {\n"
             "  %%k = const {data=2} : f64[]\n  %%l = log %%x : f64[]\n  %%z = sub %%l, %%l : "
             "f64[]\n"
             "  %%d = sub %%x, %%k : f64[]\n  %%y = add %%d, %%z : f64[]\n  return %%y\n}\n"
             "function @2 choose(%%x: f64[]) {\n"
             "  %%i = convert %%x {dtype=i32} : i32[]\n"
             "  %%y = cond %%i, %%x {functions=[@0, @1]} : f64[]\n  return %%y\n}\n"
             "function @3 test(%%x: f64[]) {\n"
             "  %%k = const {data=1} : f64[]\n  %%p = gt %%x, %%k : bool[]\n  return %%p\n}\n"
             "function @4 step(%%x: f64[]) {\n%s  return %%y\n}\n"
             "function @5 f(%%x: f64[]) {\n"
             "  %%y = while %%x {n_consts=0, functions=[@3, @4]} : f64[]\n  return %%y\n}\n",
             nested[_i].body);
    uint32_t f = parse(text), g;
    require(pass_vmap(module, f, (const bool[]){true}, 3, &g, NULL));
    g = pass_check_numbers(module, g, PASS_CHECK_NAN);
    ck_assert_int_eq(ir_verify(graph(g), NULL), 0);
    // The first lane is done when the others go on; its log is NaN.
    double x[3] = {-3, 1.5, 7.5};
    struct ir_tensor in = {F64(3), x}, *out = evaluate(g, &in), none;
    ck_assert_double_eq(element(*out, 0).re, -3);
    ck_assert_double_eq(element(*out, 1).re, -0.5);
    ck_assert_double_eq(element(*out, 2).re, -0.5);
    x[1] = INFINITY;
    ck_assert_int_eq(ir_eval(module->arena, graph(g), &in, &none), JOT_ERR_CHECK);
    ck_assert_msg(strstr(jot_error_message(), "sub gives NaN, at [1]") == jot_error_message(),
                  "%s: %s", nested[_i].name, jot_error_message());
    // And machine code has the kernels for it.
    struct nest_program *p;
    g = pass_simplify(module, g);
    require(pass_schedule(module->arena, graph(g), NULL, &p));
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_loop_test(t, test_numbers, 0, N_NUMBERS);
    tcase_add_test(t, test_infinities);
    tcase_add_test(t, test_numbers_of_lanes);
    tcase_add_loop_test(t, test_numbers_in_bodies_of_lanes, 0,
                        (int)(sizeof nested / sizeof *nested));
}

int main(void) { return support_run("check_numbers", add_tests); }
