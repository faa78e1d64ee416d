// SPDX-License-Identifier: Apache-2.0
// Loops and branches in the evaluator, against the same loops written in C; and what their types
// must be.
#include "eval_support.h"

#include "ir/control.h"

#include <stdio.h>
#include <string.h>

// -- Types ------------------------------------------------------------------------------------

// Functions that the rows below use.
static const char functions[] =
    "jot ir 1\n"
    "function @0 step(%c: f32[2], %x: f32[], %s: i32[3]) {\n"
    "  %y = mul %x, %c : f32[2]\n"
    "  %z = reduce_sum %y {axes=[0]} : f32[]\n"
    "  return %z, %y\n"
    "}\n"
    "function @1 grows(%x: f32[2]) {\n"
    "  %y = broadcast_in_dim %x {dims=[3, 2], axes=[1]} : f32[3,2]\n"
    "  return %y\n"
    "}\n"
    "function @2 test(%x: f32[2]) {\n"
    "  %y = is_finite %x : bool[2]\n"
    "  return %y\n"
    "}\n"
    "function @3 same(%x: f32[2]) {\n"
    "  return %x\n"
    "}\n"
    "function @4 converts(%x: f32[2]) {\n"
    "  %y = convert %x {dtype=f64} : f64[2]\n"
    "  return %y\n"
    "}\n"
    "function @5 yes(%x: f32[2]) {\n"
    "  %y = const {data=true} : bool[]\n"
    "  return %y\n"
    "}\n"
    "function @6 two(%x: f32[2]) {\n"
    "  return %x, %x\n"
    "}\n"
    "function @7 f(%0: f32[2], %1: f32[], %2: i32[4,3], %3: i32[], %4: i64[], %5: f32[3]) {\n"
    "  %6 = ";

static const struct {
    const char *node, *message;
} faults[] = {
    {"scan %0, %1, %2 {length=5, n_consts=1, n_carry=1, functions=[@0]} : f32[], f32[5,2]",
     "operand 0 to scan is i32[4,3]: 4 rows along axis 0, and the length is 5"},
    {"scan %0, %1, %3 {length=4, n_consts=1, n_carry=1, functions=[@0]} : f32[]",
     "operand 0 to scan is i32[]: it needs an axis 0"},
    {"scan %0, %1, %5 {length=3, n_consts=1, n_carry=1, functions=[@0]} : f32[]",
     "row of operand 0 of scan is f32[], and the body takes i32[3]"},
    {"scan %0, %1, %2 {length=-1, n_consts=1, n_carry=1, functions=[@0]} : f32[]",
     "scan of length -1: it cannot be negative"},
    {"scan %0, %1, %2 {length=4, n_consts=1, n_carry=1, checkpoint=-4, functions=[@0]} : f32[]",
     "scan with checkpoint -4"},
    {"scan %0, %1, %2 {length=4, n_consts=4, n_carry=1, functions=[@0]} : f32[]",
     "scan of 3 operands with n_consts 4"},
    {"scan %0, %1, %2 {length=4, n_consts=1, n_carry=3, functions=[@0]} : f32[]",
     "scan of 3 operands with n_carry 3"},
    {"scan %0, %1, %2 {n_consts=1, n_carry=1, functions=[@0]} : f32[]",
     "scan needs the attribute length"},
    {"scan %0, %1 {length=4, n_consts=1, n_carry=1, functions=[@0]} : f32[]",
     "the body of scan has 3 parameters, not 2: consts, carries, one row of each operand to "
     "scan"},
    {"scan %5, %1, %2 {length=4, n_consts=1, n_carry=1, functions=[@0]} : f32[]",
     "const 0 of scan is f32[3], and the body takes f32[2]"},
    {"scan %0, %3, %2 {length=4, n_consts=1, n_carry=1, functions=[@0]} : f32[]",
     "carry 0 of scan is i32[], and the body takes f32[]"},
    {"scan %0 {length=4, n_consts=0, n_carry=1, functions=[@1]} : f32[2]",
     "carry 0 of scan is f32[2] before the body and f32[3,2] after it"},
    {"scan %0 {length=4, n_consts=0, n_carry=1, functions=[@4]} : f32[2]",
     "carry 0 of scan is f32[2] before the body and f64[2] after it"},
    {"while %0 {n_consts=0, functions=[@2, @3]} : f32[2]",
     "the test of while gives bool[2], not bool with 0 axes: reduce it first"},
    {"while %0 {n_consts=0, functions=[@3, @3]} : f32[2]",
     "the test of while gives f32[2], not bool with 0 axes"},
    {"while %0 {n_consts=0, functions=[@6, @3]} : f32[2]",
     "the test of while has 2 results, not 1: whether to go on"},
    {"while %0 {n_consts=0, functions=[@5, @4]} : f32[2]",
     "carry 0 of while is f32[2] before the body and f64[2] after it"},
    {"while %0 {n_consts=0, functions=[@5, @6]} : f32[2]",
     "the body of while has 2 results, not 1: the carries"},
    {"while %1 {n_consts=0, functions=[@5, @3]} : f32[]",
     "carry 0 of while is f32[], and the test takes f32[2]"},
    {"while %0 {n_consts=0, max_trips=-2, functions=[@5, @3]} : f32[2]",
     "while of at most -2 trips"},
    {"while %0 {n_consts=0, slots=1, functions=[@5, @3]} : f32[2]",
     "while with 1 slots: it needs 2"},
    {"while %0 {n_consts=0, functions=[@5]} : f32[2]",
     "while has 1 numbers in the attribute functions and needs 2"},
    {"cond %3, %0 {functions=[@3, @4]} : f32[2]",
     "result 0 of branch 1 of cond is f64[2], and of branch 0 f32[2]"},
    {"cond %3, %0 {functions=[@3, @6]} : f32[2]",
     "the branch 1 of cond has 2 results, not 1: as many as branch 0"},
    {"cond %3, %1 {functions=[@3, @3]} : f32[2]",
     "operand 1 of cond is f32[], and the branch 0 takes f32[2]"},
    {"cond %4, %0 {functions=[@3, @3]} : f32[2]", "the index of cond is i64[], not i32[]"},
    {"cond %3 {functions=[@3, @3]} : f32[2]",
     "the branch 0 of cond has 1 parameters, not 0: the operands after the index"},
    {"cond %3, %0 {functions=[]} : f32[2]", "cond without branches: it needs one"},
};

START_TEST(types)
{
    char text[sizeof functions + 400];
    struct ir_graph *g;
    snprintf(text, sizeof text, "%s%s\n  return %%6\n}\n", functions, faults[_i].node);
    ck_assert_int_ne(ir_graph_parse(module, text, &g), JOT_OK);
    ck_assert_msg(strstr(jot_error_message(), faults[_i].message), "%s, not %s",
                  jot_error_message(), faults[_i].message);
}
END_TEST

// -- Values -----------------------------------------------------------------------------------

static jot_status evaluate(const char *text, const struct ir_tensor *in, struct ir_tensor *out)
{
    struct ir_graph *g;
    jot_status status = ir_graph_parse(module, text, &g);
    ck_assert_msg(status == JOT_OK, "%s", jot_error_message());
    struct strbuf report = strbuf_make(module->arena);
    ck_assert_msg(ir_verify(g, &report) == 0, "%s", report.text);
    return ir_eval(arena, g, in, out);
}

// x' = y, y' = a x + s[t], rows x y: carries that trade places.
static void check_recurrence(bool reverse)
{
    char text[1000];
    snprintf(text, sizeof text,
             "jot ir 1\n"
             "function @0(%%a: f64[], %%x: f64[], %%y: f64[], %%s: f64[]) {\n"
             "  %%p = mul %%a, %%x : f64[]\n"
             "  %%q = add %%p, %%s : f64[]\n"
             "  %%r = mul %%x, %%y : f64[]\n"
             "  return %%y, %%q, %%r\n"
             "}\n"
             "function @1 f(%%a: f64[], %%x: f64[], %%y: f64[], %%s: f64[7]) {\n"
             "  %%1, %%2, %%3 = scan %%a, %%x, %%y, %%s {reverse=%d, length=7, n_consts=1, "
             "n_carry=2, functions=[@0]} : f64[], f64[], f64[7]\n"
             "  return %%1, %%2, %%3\n"
             "}\n",
             reverse);
    double a = 0.75, x = 1.5, y = -0.25, s[7], rows[7];
    for (int t = 0; t < 7; t++)
        s[t] = random_unit();
    struct ir_tensor in[] = {point(JOT_F64, &a), point(JOT_F64, &x), point(JOT_F64, &y),
                             vector(JOT_F64, 7, s)};
    struct ir_tensor out[3];
    ck_assert_int_eq(evaluate(text, in, out), JOT_OK);
    double p = x, q = y;
    for (int i = 0; i < 7; i++) {
        int t = reverse ? 6 - i : i;
        double next = a * p + s[t];
        rows[t] = p * q;
        p = q;
        q = next;
    }
    ck_assert(same64(*(double *)out[0].data, p) && same64(*(double *)out[1].data, q));
    for (int t = 0; t < 7; t++)
        ck_assert(same64(((double *)out[2].data)[t], rows[t]));
    ck_assert(x == 1.5 && y == -0.25); // operands are not written to
}

START_TEST(scans)
{
    check_recurrence(false);
    check_recurrence(true);
}
END_TEST

START_TEST(scan_of_nothing)
{
    double x = 3;
    struct ir_tensor in[] = {point(JOT_F64, &x), vector(JOT_F64, 0, NULL)}, out[2];
    ck_assert_int_eq(
        evaluate("jot ir 1\n"
                 "function @0(%x: f64[], %s: f64[]) {\n"
                 "  %p = mul %s, %x : f64[]\n"
                 "  return %p, %x\n"
                 "}\n"
                 "function @1 f(%x: f64[], %s: f64[0]) {\n"
                 "  %1, %2 = scan %x, %s {length=0, n_consts=0, n_carry=1, functions=[@0]} : "
                 "f64[], f64[0]\n"
                 "  return %1, %2\n"
                 "}\n",
                 in, out),
        JOT_OK);
    ck_assert(*(double *)out[0].data == 3);
    ck_assert_int_eq(ir_count(module, out[1].type), 0);
}
END_TEST

// How many steps the Collatz sequence takes.
static jot_status collatz(uint64_t n, int64_t bound, int64_t *steps)
{
    char text[1400], attribute[40] = "";
    if (bound >= 0)
        snprintf(attribute, sizeof attribute, "max_trips=%lld, ", (long long)bound);
    snprintf(text, sizeof text,
             "jot ir 1\n"
             "function @0 test(%%n: u64[], %%k: i64[]) {\n"
             "  %%one = const {data=1} : u64[]\n"
             "  %%p = ne %%n, %%one : bool[]\n"
             "  return %%p\n"
             "}\n"
             "function @1 half(%%n: u64[]) {\n"
             "  %%two = const {data=2} : u64[]\n"
             "  %%m = div %%n, %%two : u64[]\n"
             "  return %%m\n"
             "}\n"
             "function @2 triple(%%n: u64[]) {\n"
             "  %%three = const {data=3} : u64[]\n"
             "  %%one = const {data=1} : u64[]\n"
             "  %%m = mul %%n, %%three : u64[]\n"
             "  %%l = add %%m, %%one : u64[]\n"
             "  return %%l\n"
             "}\n"
             "function @3 step(%%n: u64[], %%k: i64[]) {\n"
             "  %%two = const {data=2} : u64[]\n"
             "  %%odd = rem %%n, %%two : u64[]\n"
             "  %%i = convert %%odd {dtype=i32} : i32[]\n"
             "  %%m = cond %%i, %%n {functions=[@1, @2]} : u64[]\n"
             "  %%one = const {data=1} : i64[]\n"
             "  %%l = add %%k, %%one : i64[]\n"
             "  return %%m, %%l\n"
             "}\n"
             "function @4 f(%%n: u64[]) {\n"
             "  %%zero = const {data=0} : i64[]\n"
             "  %%m, %%k = while %%n, %%zero {n_consts=0, %sfunctions=[@0, @3]} : u64[], "
             "i64[]\n"
             "  return %%k\n"
             "}\n",
             attribute);
    struct ir_tensor in = point(JOT_U64, &n), out;
    jot_status status = evaluate(text, &in, &out);
    if (status == JOT_OK)
        *steps = *(int64_t *)out.data;
    return status;
}

START_TEST(whiles)
{
    int64_t steps = 0;
    ck_assert_int_eq(collatz(27, -1, &steps), JOT_OK);
    ck_assert_int_eq(steps, 111);
    ck_assert_int_eq(collatz(1, -1, &steps), JOT_OK);
    ck_assert_int_eq(steps, 0);
    ck_assert_int_eq(collatz(27, 111, &steps), JOT_OK);
    ck_assert_int_eq(steps, 111);
    ck_assert_int_eq(collatz(27, 110, &steps), JOT_OK);
    ck_assert_int_eq(steps, 110);
}
END_TEST

// Lanes that end after 3, 0 and 5 trips, each with a row of two.
static jot_status count_lanes(const char *bound, int32_t *left, double *x)
{
    char text[1000];
    snprintf(text, sizeof text,
             "jot ir 1\n"
             "function @0 test(%%n: i32[3], %%x: f64[3,2]) {\n"
             "  %%zero = const {data=0} : i32[]\n"
             "  %%p = gt %%n, %%zero : bool[3]\n"
             "  return %%p\n"
             "}\n"
             "function @1 step(%%n: i32[3], %%x: f64[3,2]) {\n"
             "  %%one = const {data=1} : i32[]\n"
             "  %%m = sub %%n, %%one : i32[3]\n"
             "  %%y = add %%x, %%x : f64[3,2]\n"
             "  return %%m, %%y\n"
             "}\n"
             "function @2 f(%%n: i32[3], %%x: f64[3,2]) {\n"
             "  %%m, %%y = while %%n, %%x {n_consts=0, batched=1%s, functions=[@0, @1]} : "
             "i32[3], f64[3,2]\n"
             "  return %%m, %%y\n"
             "}\n",
             bound);
    struct ir_tensor in[] = {vector(JOT_I32, 3, left), tensor(JOT_F64, DIMS(3, 2), x)}, out[2];
    jot_status status = evaluate(text, in, out);
    if (status == JOT_OK) {
        memcpy(left, out[0].data, 3 * sizeof *left);
        memcpy(x, out[1].data, 6 * sizeof *x);
    }
    return status;
}

// A test that is a carry, which the body changes before the others.
START_TEST(test_is_a_carry)
{
    int32_t n = 3, zero = 0;
    bool yes = true;
    struct ir_tensor in[] = {point(JOT_BOOL, &yes), point(JOT_I32, &zero), point(JOT_I32, &n)},
                     out[2];
    ck_assert_int_eq(
        evaluate(
            "jot ir 1\n"
            "function @0(%n: i32[], %p: bool[], %i: i32[]) {\n"
            "  return %p\n"
            "}\n"
            "function @1(%n: i32[], %p: bool[], %i: i32[]) {\n"
            "  %one = const {data=1} : i32[]\n"
            "  %j = add %i, %one : i32[]\n"
            "  %q = lt %j, %n : bool[]\n"
            "  return %q, %j\n"
            "}\n"
            "function @2 f(%p: bool[], %i: i32[], %n: i32[]) {\n"
            "  %q, %j = while %n, %p, %i {n_consts=1, functions=[@0, @1]} : bool[], i32[]\n"
            "  return %q, %j\n"
            "}\n",
            in, out),
        JOT_OK);
    ck_assert(!*(bool *)out[0].data && *(int32_t *)out[1].data == 3);
}
END_TEST

START_TEST(lanes_end_by_themselves)
{
    int32_t left[] = {3, -2, 5};
    double x[] = {1, 2, 3, 4, 5, 6};
    const double want[] = {8, 16, 3, 4, 160, 192};
    ck_assert_int_eq(count_lanes("", left, x), JOT_OK);
    ck_assert(left[0] == 0 && left[1] == -2 && left[2] == 0);
    for (int i = 0; i < 6; i++)
        ck_assert(x[i] == want[i]);
    int32_t more[] = {3, 4, 5};
    ck_assert_int_eq(count_lanes(", max_trips=3", more, x), JOT_OK);
    ck_assert(more[0] == 0 && more[1] == 1 && more[2] == 2);
}
END_TEST

START_TEST(branches_clamp)
{
    static const char text[] = "jot ir 1\n"
                               "function @0(%x: f64[]) {\n"
                               "  return %x\n"
                               "}\n"
                               "function @1(%x: f64[]) {\n"
                               "  %y = neg %x : f64[]\n"
                               "  return %y\n"
                               "}\n"
                               "function @2(%x: f64[]) {\n"
                               "  %y = add %x, %x : f64[]\n"
                               "  return %y\n"
                               "}\n"
                               "function @3 f(%i: i32[], %x: f64[]) {\n"
                               "  %y = cond %i, %x {functions=[@0, @1, @2]} : f64[]\n"
                               "  return %y\n"
                               "}\n";
    static const int32_t index[] = {INT32_MIN, -1, 0, 1, 2, 3, INT32_MAX};
    static const double want[] = {5, 5, 5, -5, 10, 10, 10};
    double x = 5;
    for (int k = 0; k < 7; k++) {
        struct ir_tensor in[] = {point(JOT_I32, &index[k]), point(JOT_F64, &x)}, out;
        ck_assert_int_eq(evaluate(text, in, &out), JOT_OK);
        ck_assert(*(double *)out.data == want[k]);
    }
}
END_TEST

// Many trips need no more memory than one.
START_TEST(trips_leave_nothing)
{
    double x = 0;
    struct ir_tensor in = point(JOT_F64, &x), out;
    size_t before = arena_bytes(arena);
    ck_assert_int_eq(
        evaluate(
            "jot ir 1\n"
            "function @0(%x: f64[]) {\n"
            "  %one = const {data=1} : f64[]\n"
            "  %y = add %x, %one : f64[]\n"
            "  return %y\n"
            "}\n"
            "function @1 f(%x: f64[]) {\n"
            "  %y = scan %x {length=100000, n_consts=0, n_carry=1, functions=[@0]} : f64[]\n"
            "  return %y\n"
            "}\n",
            &in, &out),
        JOT_OK);
    ck_assert(*(double *)out.data == 100000);
    ck_assert_uint_lt(arena_bytes(arena) - before, 10000);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_loop_test(t, types, 0, (int)(sizeof faults / sizeof faults[0]));
    tcase_add_test(t, scans);
    tcase_add_test(t, scan_of_nothing);
    tcase_add_test(t, whiles);
    tcase_add_test(t, test_is_a_carry);
    tcase_add_test(t, lanes_end_by_themselves);
    tcase_add_test(t, branches_clamp);
    tcase_add_test(t, trips_leave_nothing);
}

int main(void) { return run_suite("control", add_tests); }
