// SPDX-License-Identifier: Apache-2.0
// Reverse mode through a while that nobody knows the trips of: neither slots nor a bound make a
// difference to any bit.
#include "control_support.h"

#include "ir/control.h"

// %1$s stands for further attributes of the while.
static const struct {
    const char *name, *text;
} programs[] = {
    {"a const in step and test, two carries, trips that depend on both",
     "jot ir 1\n"
     "function @0 test(%%a: f64[], %%x: f64[], %%n: f64[]) {\n"
     "  %%c = cos %%a : f64[]\n"
     "  %%m = const {data=33} : f64[]\n"
     "  %%l = add %%c, %%m : f64[]\n"
     "  %%p = lt %%n, %%l : bool[]\n"
     "  return %%p\n"
     "}\n"
     "function @1 step(%%a: f64[], %%x: f64[], %%n: f64[]) {\n"
     "  %%b = sin %%a : f64[]\n"
     "  %%p = mul %%b, %%x : f64[]\n"
     "  %%q = cos %%p : f64[]\n"
     "  %%s = mul %%q, %%q : f64[]\n"
     "  %%one = const {data=1} : f64[]\n"
     "  %%t = add %%s, %%one : f64[]\n"
     "  %%m = add %%n, %%t : f64[]\n"
     "  return %%q, %%m\n"
     "}\n"
     "function @2 f(%%a: f64[], %%x: f64[], %%n: f64[]) {\n"
     "  %%y, %%m = while %%a, %%x, %%n {n_consts=1%1$s, functions=[@0, @1]} : f64[], f64[]\n"
     "  return %%y, %%m\n"
     "}\n"},
    {"no trips", "jot ir 1\n"
                 "function @0 test(%%a: f64[2], %%x: f64[2]) {\n"
                 "  %%p = const {data=false} : bool[]\n"
                 "  return %%p\n"
                 "}\n"
                 "function @1 step(%%a: f64[2], %%x: f64[2]) {\n"
                 "  %%y = mul %%a, %%x : f64[2]\n"
                 "  return %%y\n"
                 "}\n"
                 "function @2 f(%%a: f64[2], %%x: f64[2]) {\n"
                 "  %%y = while %%a, %%x {n_consts=1%1$s, functions=[@0, @1]} : f64[2]\n"
                 "  return %%y\n"
                 "}\n"},
    {"a count, a vector, a carry that reaches the result in three trips, a branch",
     "jot ir 1\n"
     "function @0 test(%%w: f64[2], %%i: i32[], %%x: f64[2], %%y: f64[2], %%z: f64[2]) {\n"
     "  %%n = const {data=21} : i32[]\n"
     "  %%p = lt %%i, %%n : bool[]\n"
     "  return %%p\n"
     "}\n"
     "function @1(%%w: f64[2], %%x: f64[2]) {\n"
     "  %%t = tanh %%w : f64[2]\n"
     "  %%y = mul %%t, %%x : f64[2]\n"
     "  return %%y\n"
     "}\n"
     "function @2(%%w: f64[2], %%x: f64[2]) {\n"
     "  %%p = add %%w, %%x : f64[2]\n"
     "  %%y = sin %%p : f64[2]\n"
     "  return %%y\n"
     "}\n"
     "function @3 step(%%w: f64[2], %%i: i32[], %%x: f64[2], %%y: f64[2], %%z: f64[2]) {\n"
     "  %%one = const {data=1} : i32[]\n"
     "  %%j = add %%i, %%one : i32[]\n"
     "  %%b = and %%i, %%one : i32[]\n"
     "  %%u = cond %%b, %%w, %%x {functions=[@1, @2]} : f64[2]\n"
     "  %%v = tanh %%y : f64[2]\n"
     "  return %%j, %%v, %%z, %%u\n"
     "}\n"
     "function @4 f(%%w: f64[2], %%x: f64[2], %%y: f64[2], %%z: f64[2]) {\n"
     "  %%zero = const {data=0} : i32[]\n"
     "  %%1, %%2, %%3, %%4 = while %%w, %%zero, %%x, %%y, %%z {n_consts=1%1$s, functions=[@0, "
     "@3]} : i32[], f64[2], f64[2], f64[2]\n"
     "  return %%2, %%4\n"
     "}\n"},
    {"a while in a while",
     "jot ir 1\n"
     "function @0 test(%%a: f64[], %%i: i32[], %%j: i32[], %%x: f64[]) {\n"
     "  %%p = lt %%j, %%i : bool[]\n"
     "  return %%p\n"
     "}\n"
     "function @1 step(%%a: f64[], %%i: i32[], %%j: i32[], %%x: f64[]) {\n"
     "  %%one = const {data=1} : i32[]\n"
     "  %%k = add %%j, %%one : i32[]\n"
     "  %%b = tanh %%a : f64[]\n"
     "  %%p = mul %%b, %%x : f64[]\n"
     "  %%q = sin %%p : f64[]\n"
     "  return %%k, %%q\n"
     "}\n"
     "function @2 test(%%a: f64[], %%i: i32[], %%x: f64[]) {\n"
     "  %%n = const {data=5} : i32[]\n"
     "  %%p = lt %%i, %%n : bool[]\n"
     "  return %%p\n"
     "}\n"
     "function @3 step(%%a: f64[], %%i: i32[], %%x: f64[]) {\n"
     "  %%zero = const {data=0} : i32[]\n"
     "  %%one = const {data=1} : i32[]\n"
     "  %%j, %%y = while %%a, %%i, %%zero, %%x {n_consts=2%1$s, functions=[@0, @1]} : i32[], "
     "f64[]\n"
     "  %%k = add %%i, %%one : i32[]\n"
     "  %%z = add %%y, %%a : f64[]\n"
     "  return %%k, %%z\n"
     "}\n"
     "function @4 f(%%a: f64[], %%x: f64[]) {\n"
     "  %%zero = const {data=0} : i32[]\n"
     "  %%1, %%2 = while %%a, %%zero, %%x {n_consts=1%1$s, functions=[@2, @3]} : i32[], f64[]\n"
     "  return %%2\n"
     "}\n"},
};

enum { PROGRAMS = sizeof programs / sizeof programs[0] };

static const char *const slots[] = {"",
                                    ", slots=2",
                                    ", slots=3",
                                    ", slots=8",
                                    ", slots=1000",
                                    ", max_trips=64",
                                    ", max_trips=0"};
// With the last no trip is made, and all others make the same trips.
enum { ALL = sizeof slots / sizeof slots[0], SLOTS = ALL - 1 };

static uint32_t program_with(int i, const char *attributes)
{
    char text[4000];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    int n = snprintf(text, sizeof text, programs[i].text, attributes);
#pragma GCC diagnostic pop
    ck_assert_int_lt(n, (int)sizeof text);
    return parse(text);
}

static const bool *inexact_mask(uint32_t f) { return inexact_inputs(graph(f)); }

START_TEST(slots_agree)
{
    uint64_t state = seed + (uint64_t)_i;
    struct ir_tensor *x = NULL, *dx = NULL;
    uint32_t first = 0, second = 0;
    for (int k = 0; k < SLOTS; k++) {
        uint32_t f = program_with(_i, slots[k]), vjp, jvp;
        require(pass_vjp(module, f, inexact_mask(f), &vjp));
        require(pass_jvp(module, vjp, inexact_mask(vjp), &jvp, NULL));
        if (k == 0) {
            first = vjp, second = jvp;
            x = draw_inputs(vjp, &state);
            dx = draw_inputs(jvp, &state);
        }
        struct ir_tensor *a = evaluate(vjp, x), *b = evaluate(first, x);
        struct ir_tensor *da = evaluate(jvp, dx), *db = evaluate(second, dx);
        for (uint32_t i = 0; i < graph(vjp)->outputs.count; i++)
            ck_assert_msg(bits_equal(a[i], b[i]), "%s%s: %u", programs[_i].name, slots[k], i);
        for (uint32_t i = 0; i < graph(jvp)->outputs.count; i++)
            ck_assert_msg(bits_equal(da[i], db[i]), "%s%s: %u", programs[_i].name, slots[k], i);
    }
}
END_TEST

START_TEST(derivatives)
{
    uint64_t state = seed + (uint64_t)_i;
    const char *what = programs[_i / ALL].name;
    uint32_t f = program_with(_i / ALL, slots[_i % ALL]), n = graph(f)->n_params, g;
    struct ir_tensor *x = draw_inputs(f, &state);
    for (uint32_t i = 0; i < n; i++)
        check_transpose(what, f, mask_of(n, 1u << i), x, &state);
    require(pass_vjp(module, f, inexact_mask(f), &g));
    x = draw_inputs(g, &state);
    check_differences(what, g, inexact_mask(g), x, &state);
    check_simplify(what, g, x);
}
END_TEST

// Reverse mode of reverse mode: of few slots, for each holds the slots again.
START_TEST(reverse_twice)
{
    uint64_t state = seed + (uint64_t)_i;
    uint32_t f = program_with(_i, ", slots=4"), g;
    require(pass_vjp(module, f, inexact_mask(f), &g));
    check_transpose(programs[_i].name, g, inexact_mask(g), draw_inputs(g, &state), &state);
}
END_TEST

START_TEST(maps)
{
    uint64_t state = seed + (uint64_t)_i;
    const char *what = programs[_i / SLOTS].name;
    uint32_t f = program_with(_i / SLOTS, slots[_i % SLOTS]), n = graph(f)->n_params, g, mapped;
    require(pass_vjp(module, f, inexact_mask(f), &g));
    uint32_t n_g = graph(g)->n_params;
    check_vmap(what, g, mask_of(n_g, (UINT64_C(1) << n_g) - 1), 3, draw_inputs(g, &state),
               1e-12, "ANY", &state);
    check_vmap(what, g, mask_of(n_g, 1), 2, draw_inputs(g, &state), 1e-12, "ANY", &state);
    check_vmap(what, g, mask_of(n_g, UINT64_C(1) << (n - 1)), 2, draw_inputs(g, &state), 1e-12,
               "ANY", &state);
    for (uint64_t bits = 1; bits < UINT64_C(1) << n; bits++) {
        require(pass_vmap(module, f, mask_of(n, bits), 3, &mapped, NULL));
        struct ir_tensor *x = draw_inputs(mapped, &state);
        check_transpose(what, mapped, inexact_mask(mapped), x, &state);
        for (uint32_t i = 0; i < n; i++)
            check_transpose(what, mapped, mask_of(n, 1u << i), x, &state);
        require(pass_vmap(module, mapped, mask_of(n, bits), 2, &mapped, NULL));
        check_transpose(what, mapped, inexact_mask(mapped), draw_inputs(mapped, &state),
                        &state);
    }
}
END_TEST

// Lanes of very different numbers of trips, each with the derivative that it has alone.
START_TEST(lanes_end_by_themselves)
{
    uint32_t f = program_with(0, ", slots=4"), mapped, vjp, one;
    const double n[] = {31, -900, 40, 0};
    double a[] = {0.3, 0.4, 0.5, 0.6}, x[] = {1, 2, 3, 4}, ct[] = {1, 1, 1, 1};
    require(pass_vmap(module, f, mask_of(3, 7), 4, &mapped, NULL));
    require(pass_vjp(module, mapped, mask_of(3, 7), &vjp));
    require(pass_vjp(module, f, mask_of(3, 7), &one));
    struct ir_tensor in[] = {
        {F64(4), a}, {F64(4), x}, {F64(4), (void *)(uintptr_t)n}, {F64(4), ct}, {F64(4), ct}};
    struct ir_tensor *got = evaluate(vjp, in);
    for (int k = 0; k < 4; k++) {
        struct ir_tensor alone[5];
        for (int i = 0; i < 5; i++)
            alone[i] = lane(in[i], k);
        struct ir_tensor *want = evaluate(one, alone);
        for (uint32_t i = 0; i < graph(one)->outputs.count; i++)
            ck_assert_msg(bits_equal(lane(got[i], k), want[i]), "lane %d, result %u", k, i);
    }
}
END_TEST

// Memory is that of the slots, whatever the trips: no array is larger.
START_TEST(memory_is_fixed)
{
    uint32_t f = program_with(0, ", slots=8"), g;
    require(pass_vjp(module, f, mask_of(3, 7), &g));
    const struct ir_graph *whole = graph(pass_simplify(module, pass_inline(module, g, 100000)));
    for (ir_id v = 0; v < whole->values.count; v++)
        ck_assert_int_le(ir_count(module, ir_type_of(whole, v)), 8 + 32);
}
END_TEST

// A bound that is not reached takes nothing: no loop has so many trips.
START_TEST(bound_is_no_length)
{
    uint32_t f = program_with(_i, ", max_trips=100000"), g;
    require(pass_vjp(module, f, inexact_mask(f), &g));
    for (uint32_t k = 0; k < module->functions.count; k++)
        ir_for_each_node (graph(k), n)
            ck_assert_msg(n->op != IR_scan || ir_scan_of(n).length < 100000, "%s",
                          programs[_i].name);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_loop_test(t, slots_agree, 0, PROGRAMS);
    tcase_add_loop_test(t, derivatives, 0, PROGRAMS * ALL);
    tcase_add_loop_test(t, reverse_twice, 0, PROGRAMS);
    tcase_add_loop_test(t, maps, 0, PROGRAMS * SLOTS);
    tcase_add_test(t, lanes_end_by_themselves);
    tcase_add_test(t, memory_is_fixed);
    tcase_add_loop_test(t, bound_is_no_length, 0, PROGRAMS);
}

int main(void) { return support_run("online", add_tests); }
