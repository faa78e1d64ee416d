// SPDX-License-Identifier: Apache-2.0
// What reverse mode keeps of a loop: every policy gives the bits of every other, and stores what it
// says.
#include "control_support.h"

#include "ir/control.h"
#include "ir/cost.h"

// %1$s stands for further attributes of the scan, %2$d for reverse.
static const struct {
    const char *name, *text;
} programs[] = {
    {"a const that is read twice, a carry, rows in and out",
     "jot ir 1\n"
     "function @0(%%a: f64[], %%x: f64[], %%y: f64[], %%s: f64[]) {\n"
     "  %%b = tanh %%a : f64[]\n"
     "  %%p = mul %%b, %%x : f64[]\n"
     "  %%q = sin %%p : f64[]\n"
     "  %%t = sin %%s : f64[]\n"
     "  %%r = mul %%q, %%t : f64[]\n"
     "  %%u = mul %%b, %%y : f64[]\n"
     "  %%v = cos %%u : f64[]\n"
     "  %%w = add %%v, %%r : f64[]\n"
     "  %%z = mul %%w, %%a : f64[]\n"
     "  return %%w, %%q, %%z\n"
     "}\n"
     "function @1 f(%%a: f64[], %%x: f64[], %%y: f64[], %%s: f64[7]) {\n"
     "  %%1, %%2, %%3 = scan %%a, %%x, %%y, %%s {reverse=%2$d, length=7, n_consts=1, "
     "n_carry=2%1$s, functions=[@0]} : f64[], f64[], f64[7]\n"
     "  return %%1, %%2, %%3\n"
     "}\n"},
    {"a count, a matrix, rows that have no derivative",
     "jot ir 1\n"
     "function @0(%%w: f64[2,2], %%n: i32[], %%x: f64[2], %%s: i32[]) {\n"
     "  %%one = const {data=1} : i32[]\n"
     "  %%m = add %%n, %%one : i32[]\n"
     "  %%t = add %%n, %%s : i32[]\n"
     "  %%f = convert %%t {dtype=f64} : f64[]\n"
     "  %%p = dot_general %%w, %%x {lhs_contract=[1], rhs_contract=[0], lhs_batch=[], "
     "rhs_batch=[], precision=0} : f64[2]\n"
     "  %%q = sin %%p : f64[2]\n"
     "  %%g = sin %%f : f64[]\n"
     "  %%r = mul %%q, %%g : f64[2]\n"
     "  return %%m, %%r, %%q\n"
     "}\n"
     "function @1 f(%%w: f64[2,2], %%n: i32[], %%x: f64[2], %%s: i32[7]) {\n"
     "  %%1, %%2, %%3 = scan %%w, %%n, %%x, %%s {reverse=%2$d, length=7, n_consts=1, "
     "n_carry=2%1$s, functions=[@0]} : i32[], f64[2], f64[7,2]\n"
     "  return %%2, %%3, %%1\n"
     "}\n"},
    {"a branch in a scan, a carry that is set in the third trip only",
     "jot ir 1\n"
     "function @0(%%a: f64[], %%x: f64[], %%y: f64[], %%z: f64[]) {\n"
     "  %%b = tanh %%a : f64[]\n"
     "  %%c = mul %%x, %%b : f64[]\n"
     "  return %%c, %%x\n"
     "}\n"
     "function @1(%%a: f64[], %%x: f64[], %%y: f64[], %%z: f64[]) {\n"
     "  %%p = tanh %%x : f64[]\n"
     "  %%q = mul %%p, %%a : f64[]\n"
     "  %%r = sin %%q : f64[]\n"
     "  return %%r, %%y\n"
     "}\n"
     "function @2(%%a: f64[], %%x: f64[], %%y: f64[], %%z: f64[]) {\n"
     "  %%zero = const {data=0} : f64[]\n"
     "  %%b = gt %%x, %%zero : bool[]\n"
     "  %%i = convert %%b {dtype=i32} : i32[]\n"
     "  %%p, %%q = cond %%i, %%a, %%x, %%y, %%z {functions=[@0, @1]} : f64[], f64[]\n"
     "  %%b2 = tanh %%a : f64[]\n"
     "  %%c = mul %%q, %%b2 : f64[]\n"
     "  return %%p, %%c, %%y\n"
     "}\n"
     "function @3 f(%%a: f64[], %%x: f64[], %%y: f64[], %%z: f64[]) {\n"
     "  %%1, %%2, %%3 = scan %%a, %%x, %%y, %%z {reverse=%2$d, length=7, n_consts=1, "
     "n_carry=3%1$s, functions=[@2]} : f64[], f64[], f64[]\n"
     "  return %%1, %%3\n"
     "}\n"},
    {"a long const that is read whole and at an index",
     "jot ir 1\n"
     "function @0(%%a: f64[1100], %%x: f64[], %%n: i32[]) {\n"
     "  %%b = sin %%a : f64[1100]\n"
     "  %%c = mul %%b, %%x : f64[1100]\n"
     "  %%d = reduce_sum %%c {axes=[0]} : f64[]\n"
     "  %%e = dynamic_slice %%a, %%n {sizes=[1]} : f64[1]\n"
     "  %%f = reshape %%e {dims=[]} : f64[]\n"
     "  %%g = mul %%f, %%d : f64[]\n"
     "  %%h = tanh %%g : f64[]\n"
     "  return %%h, %%d\n"
     "}\n"
     "function @1 f(%%a: f64[1100], %%x: f64[], %%s: i32[7]) {\n"
     "  %%1, %%2 = scan %%a, %%x, %%s {reverse=%2$d, length=7, n_consts=1, n_carry=1%1$s, "
     "functions=[@0]} : f64[], f64[7]\n"
     "  return %%1, %%2\n"
     "}\n"},
    {"a scan in a scan",
     "jot ir 1\n"
     "function @0(%%a: f64[], %%x: f64[2]) {\n"
     "  %%b = tanh %%a : f64[]\n"
     "  %%p = mul %%b, %%x : f64[2]\n"
     "  %%q = sin %%p : f64[2]\n"
     "  return %%q\n"
     "}\n"
     "function @1(%%a: f64[], %%x: f64[2], %%s: f64[]) {\n"
     "  %%b = mul %%a, %%s : f64[]\n"
     "  %%y = scan %%b, %%x {reverse=%2$d, length=5, n_consts=1, n_carry=1%1$s, "
     "functions=[@0]} : f64[2]\n"
     "  %%z = mul %%y, %%a : f64[2]\n"
     "  return %%z, %%y\n"
     "}\n"
     "function @2 f(%%a: f64[], %%x: f64[2], %%s: f64[5]) {\n"
     "  %%1, %%2 = scan %%a, %%x, %%s {reverse=%2$d, length=5, n_consts=1, n_carry=1%1$s, "
     "functions=[@1]} : f64[2], f64[5,2]\n"
     "  return %%1, %%2\n"
     "}\n"},
};

enum { PROGRAMS = sizeof programs / sizeof programs[0] };

static const int policies[] = {
    1, 2, 3, 4, 6, 7, 100, IR_CHECKPOINT_AUTO, IR_CHECKPOINT_SQRT, IR_CHECKPOINT_RECOMPUTE};
enum { POLICIES = sizeof policies / sizeof policies[0] };

static uint32_t program_with(int i, bool reverse, int checkpoint)
{
    char attribute[40] = "", text[4000];
    if (checkpoint != IR_CHECKPOINT_AUTO)
        snprintf(attribute, sizeof attribute, ", checkpoint=%d", checkpoint);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    int n = snprintf(text, sizeof text, programs[i].text, attribute, (int)reverse);
#pragma GCC diagnostic pop
    ck_assert_int_lt(n, (int)sizeof text);
    return parse(text);
}

static const bool *inexact_mask(uint32_t f) { return inexact_inputs(graph(f)); }

static void check_same_bits(int program, int checkpoint, uint32_t f, uint32_t g,
                            const struct ir_tensor *x)
{
    struct ir_tensor *a = evaluate(f, x), *b = evaluate(g, x);
    for (uint32_t i = 0; i < graph(f)->outputs.count; i++)
        ck_assert_msg(bits_equal(a[i], b[i]), "%s, checkpoint %d: result %u differs",
                      programs[program].name, checkpoint, i);
}

// Recomputed is stored, bit for bit, and so it is of derivatives of derivatives.
START_TEST(policies_agree)
{
    int program = _i / 2, reverse = _i % 2;
    uint64_t state = seed + (uint64_t)_i;
    uint32_t all = program_with(program, reverse, IR_CHECKPOINT_ALL), all_vjp, all_second;
    require(pass_vjp(module, all, inexact_mask(all), &all_vjp));
    require(pass_jvp(module, all_vjp, inexact_mask(all_vjp), &all_second, NULL));
    struct ir_tensor *x = draw_inputs(all_vjp, &state), *dx = draw_inputs(all_second, &state);
    for (int k = 0; k < POLICIES; k++) {
        uint32_t f = program_with(program, reverse, policies[k]), vjp, second;
        require(pass_vjp(module, f, inexact_mask(f), &vjp));
        check_same_bits(program, policies[k], all_vjp, vjp, x);
        check_same_bits(program, policies[k], all_vjp, pass_simplify(module, vjp), x);
        require(pass_jvp(module, vjp, inexact_mask(vjp), &second, NULL));
        check_same_bits(program, policies[k], all_second, second, dx);
    }
}
END_TEST

START_TEST(derivatives)
{
    int program = _i / POLICIES, checkpoint = policies[_i % POLICIES];
    uint64_t state = seed + (uint64_t)_i;
    uint32_t f = program_with(program, _i % 2, checkpoint), g;
    struct ir_tensor *x = draw_inputs(f, &state);
    for (uint32_t i = 0; i < graph(f)->n_params; i++)
        if (inexact(ir_type_of(graph(f), i)))
            check_transpose(programs[program].name, f, mask_of(graph(f)->n_params, 1u << i), x,
                            &state);
    require(pass_vjp(module, f, inexact_mask(f), &g));
    x = draw_inputs(g, &state);
    check_differences(programs[program].name, g, inexact_mask(g), x, &state);
    check_transpose(programs[program].name, g, inexact_mask(g), x, &state);
    check_simplify(programs[program].name, g, x);
}
END_TEST

START_TEST(maps)
{
    int program = _i / POLICIES, checkpoint = policies[_i % POLICIES];
    uint64_t state = seed + (uint64_t)_i;
    uint32_t f = program_with(program, _i % 2, checkpoint), n = graph(f)->n_params, g, mapped;
    require(pass_vjp(module, f, inexact_mask(f), &g));
    uint32_t n_g = graph(g)->n_params;
    check_vmap(programs[program].name, g, mask_of(n_g, (UINT64_C(1) << n_g) - 1), 3,
               draw_inputs(g, &state), 1e-12, "ANY", &state);
    check_vmap(programs[program].name, g, mask_of(n_g, 2), 2, draw_inputs(g, &state), 1e-12,
               "ANY", &state);
    require(pass_vmap(module, f, mask_of(n, 2), 3, &mapped, NULL));
    check_transpose(programs[program].name, mapped, inexact_mask(mapped),
                    draw_inputs(mapped, &state), &state);
}
END_TEST

// -- What is kept -----------------------------------------------------------------------------

// f64 elements that the primal part of a linearised function hands on, and the largest nesting of
// its loops.
static int64_t kept(uint32_t f, const bool *mask)
{
    struct pass_split s;
    require(pass_linearize(module, f, mask, &s));
    const struct ir_graph *g = graph(s.forward);
    bool *seen = arena_array(module->arena, bool, g->values.count + 1);
    int64_t n = 0;
    for (uint32_t i = 0; i < s.n_residuals; i++) {
        if (s.residuals[i].from != PASS_RESIDUAL_OUTPUT)
            continue;
        ir_id v = g->outputs.at[s.residuals[i].index];
        if (!seen[v])
            n += ir_count(module, ir_type_of(g, v));
        seen[v] = true;
    }
    return n;
}

static int checkpoint_of(uint32_t f)
{
    ir_for_each_node (graph(f), n)
        if (n->op == IR_scan)
            return (int)ir_scan_of(n).checkpoint;
    ck_abort_msg("no scan in\n%s", ir_graph_text(graph(f)));
    return 0;
}

static uint32_t chain(int64_t length, int64_t width, int checkpoint)
{
    char text[1000];
    snprintf(text, sizeof text,
             "jot ir 1\n"
             "function @0(%%x: f64[%d]) {\n"
             "  %%p = sin %%x : f64[%d]\n"
             "  %%q = exp %%p : f64[%d]\n"
             "  %%r = sin %%q : f64[%d]\n"
             "  return %%r\n"
             "}\n"
             "function @1 f(%%x: f64[%d]) {\n"
             "  %%y = scan %%x {reverse=0, length=%d, n_consts=0, n_carry=1, checkpoint=%d, "
             "functions=[@0]} : f64[%d]\n"
             "  return %%y\n"
             "}\n",
             (int)width, (int)width, (int)width, (int)width, (int)width, (int)length,
             checkpoint, (int)width);
    return parse(text);
}

START_TEST(what_is_kept)
{
    // A trip keeps three values: cos x, q, cos q.
    static const struct {
        int checkpoint, length, kept;
    } rows[] = {
        {IR_CHECKPOINT_ALL, 100, 300},
        {IR_CHECKPOINT_AUTO, 100, 300},
        {1, 100, 100},
        {10, 100, 10},
        {11, 100, 9 + 3}, // 9 segments and a trip
        {100, 100, 300},
        {IR_CHECKPOINT_SQRT, 100, 10},
        {IR_CHECKPOINT_SQRT, 99, 9 + 27}, // 9 segments of 10, 9 trips
        {IR_CHECKPOINT_RECOMPUTE, 100, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        ck_assert_int_eq(kept(chain(rows[i].length, 2, rows[i].checkpoint), mask_of(1, 1)),
                         2 * rows[i].kept);
}
END_TEST

// Transforms hand the policy on.
START_TEST(the_policy_stays)
{
    uint32_t f = program_with(0, false, 3), g;
    const bool *mask = mask_of(4, 15);
    require(pass_jvp(module, f, mask, &g, NULL));
    ck_assert_int_eq(checkpoint_of(g), 3);
    require(pass_vmap(module, g, mask, 2, &g, NULL));
    ck_assert_int_eq(checkpoint_of(pass_simplify(module, g)), 3);
    uint32_t linear = program_with(0, false, IR_CHECKPOINT_RECOMPUTE);
    struct pass_split s;
    require(pass_linearize(module, linear, mask, &s));
    ck_assert_int_eq(checkpoint_of(s.forward), IR_CHECKPOINT_RECOMPUTE);
    ck_assert_int_eq(checkpoint_of(s.linear), IR_CHECKPOINT_RECOMPUTE);
    require(pass_transpose(module, s.linear, s.n_residuals, &g));
    ck_assert_int_eq(checkpoint_of(g), IR_CHECKPOINT_RECOMPUTE);
}
END_TEST

// More than the budget: the number of trips of a segment makes the tape small.
START_TEST(automatic_keeps_within_the_budget)
{
    int64_t width = 1 << 16, bytes = width * 8, most = COST_TAPE_BYTES / (3 * bytes);
    const bool *mask = mask_of(1, 1);
    ck_assert_int_eq(kept(chain(most, width, IR_CHECKPOINT_AUTO), mask), 3 * most * width);
    // 30000 trips: k = 100 carries and 3 * 100 residuals.
    ck_assert_int_eq(kept(chain(30000, width, IR_CHECKPOINT_AUTO), mask), 300 * width);
    // What a trip keeps is much more than its carry: the carries of all trips, and residuals of one.
    uint32_t f = parse("jot ir 1\n"
                       "function @0(%x: f64[]) {\n"
                       "  %b = broadcast_in_dim %x {dims=[4194304], axes=[]} : f64[4194304]\n"
                       "  %i = iota {dtype=f64, dims=[4194304], axis=0} : f64[4194304]\n"
                       "  %p = mul %b, %i : f64[4194304]\n"
                       "  %q = sin %p : f64[4194304]\n"
                       "  %y = reduce_sum %q {axes=[0]} : f64[]\n"
                       "  return %y\n"
                       "}\n"
                       "function @1 f(%x: f64[]) {\n"
                       "  %y = scan %x {reverse=0, length=50, n_consts=0, n_carry=1, "
                       "functions=[@0]} : f64[]\n"
                       "  return %y\n"
                       "}\n");
    ck_assert_int_eq(kept(f, mask), 50);
}
END_TEST

// Linear loops keep nothing whatever the policy.
START_TEST(linear_loops_keep_nothing)
{
    for (int k = 0; k < POLICIES; k++) {
        char text[600];
        snprintf(text, sizeof text,
                 "jot ir 1\n"
                 "function @0(%%a: f64[], %%x: f64[2]) {\n"
                 "  %%y = mul %%a, %%x : f64[2]\n"
                 "  return %%y\n"
                 "}\n"
                 "function @1 f(%%a: f64[], %%x: f64[2]) {\n"
                 "  %%y = scan %%a, %%x {reverse=0, length=9, n_consts=1, n_carry=1, "
                 "checkpoint=%d, functions=[@0]} : f64[2]\n"
                 "  return %%y\n"
                 "}\n",
                 policies[k]);
        ck_assert_int_eq(kept(parse(text), mask_of(2, 2)), 0);
    }
}
END_TEST

START_TEST(no_trips)
{
    for (int k = 0; k < POLICIES; k++) {
        char text[600];
        snprintf(text, sizeof text,
                 "jot ir 1\n"
                 "function @0(%%x: f64[], %%s: f64[]) {\n"
                 "  %%p = mul %%x, %%s : f64[]\n"
                 "  %%q = sin %%p : f64[]\n"
                 "  return %%q\n"
                 "}\n"
                 "function @1 f(%%x: f64[], %%s: f64[0]) {\n"
                 "  %%y = scan %%x, %%s {reverse=%d, length=0, n_consts=0, n_carry=1, "
                 "checkpoint=%d, functions=[@0]} : f64[]\n"
                 "  return %%y\n"
                 "}\n",
                 k % 2, policies[k]);
        uint32_t g;
        require(pass_vjp(module, parse(text), mask_of(2, 3), &g));
        struct ir_tensor in[] = {scalar_f64(3), zeros(F64(0)), scalar_f64(5)};
        ck_assert_double_eq(element(evaluate(g, in)[1], 0).re, 5);
    }
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_loop_test(t, policies_agree, 0, 2 * PROGRAMS);
    tcase_add_loop_test(t, derivatives, 0, PROGRAMS * POLICIES);
    tcase_add_loop_test(t, maps, 0, PROGRAMS * POLICIES);
    tcase_add_test(t, what_is_kept);
    tcase_add_test(t, the_policy_stays);
    tcase_add_test(t, automatic_keeps_within_the_budget);
    tcase_add_test(t, linear_loops_keep_nothing);
    tcase_add_test(t, no_trips);
}

int main(void) { return support_run("checkpoint", add_tests); }
