// SPDX-License-Identifier: Apache-2.0
// What transforms of loops and branches store, what they leave out, and what simplification does.
#include "control_support.h"

#include "ir/shard.h"

static struct ir_node loop_of(uint32_t f, enum ir_op op) { return *find_op(f, op); }

// Rows out of the primal loop of a linearised function, beside its carries.
static int stacked_rows(uint32_t f, uint64_t bits)
{
    struct pass_split s;
    require(pass_linearize(module, f, mask_of(graph(f)->n_params, bits), &s));
    uint32_t known = pass_dce(module, s.forward);
    if (!count_op(known, IR_scan))
        return 0;
    const struct ir_node *n = find_op(known, IR_scan);
    return n->n_out - ir_scan_of(n).n_carry;
}

static const struct {
    const char *body; // (a, x, s) -> x', with rows of s
    uint64_t bits;    // a 1, x 2, s 4
    int rows;
} stores[] = {
    // d(a x) reads a, which stays where it is.
    {"%p = mul %a, %x : f64[]\n return %p", 2, 0},
    // d(s x) reads rows, which are there.
    {"%p = mul %s, %x : f64[]\n return %p", 2, 0},
    // In a, too, it reads x before each trip.
    {"%p = mul %a, %x : f64[]\n return %p", 3, 1},
    // cos a is computed once, outside.
    {"%c = cos %a : f64[]\n %d = exp %c : f64[]\n %p = mul %d, %x : f64[]\n return %p", 2, 0},
    // x before the trip and after it are one stack, beside cos p.
    {"%p = mul %a, %x : f64[]\n %m = sin %p : f64[]\n %q = exp %m : f64[]\n return %q", 3, 2},
    // p = x x is made again of x; sin p, cos p and cos u are not.
    {"%p = mul %x, %x : f64[]\n %q = sin %p : f64[]\n %u = mul %q, %p : f64[]\n "
     "%v = sin %u : f64[]\n return %v",
     2, 4},
    // x, and e = x' moved by a trip, of which 1 - e is made again.
    {"%p = mul %a, %x : f64[]\n %e = tanh %p : f64[]\n return %e", 3, 1},
    // sin x and cos x; sin x + sin x is made of what is stored.
    {"%p = sin %x : f64[]\n %q = add %p, %p : f64[]\n %r = mul %p, %s : f64[]\n "
     "%u = mul %r, %q : f64[]\n return %u",
     6, 2},
    // cos x once, and sin x.
    {"%c = cos %x : f64[]\n %p = mul %a, %c : f64[]\n %q = mul %s, %c : f64[]\n "
     "%r = add %p, %q : f64[]\n return %r",
     5, 2},
};

START_TEST(residuals)
{
    for (int reverse = 0; reverse < 2; reverse++) {
        char text[1000];
        snprintf(text, sizeof text,
                 "jot ir 1\nfunction @0(%%a: f64[], %%x: f64[], %%s: f64[]) {\n %s\n}\n"
                 "function @1 f(%%a: f64[], %%x: f64[], %%s: f64[5]) {\n"
                 " %%y = scan %%a, %%x, %%s {reverse=%d, length=5, n_consts=1, n_carry=1, "
                 "functions=[@0]} : f64[]\n return %%y\n}\n",
                 stores[_i].body, reverse);
        uint32_t f = parse(text);
        ck_assert_int_eq(stacked_rows(f, stores[_i].bits), stores[_i].rows);
        uint64_t state = seed;
        check_transpose(stores[_i].body, f, mask_of(3, stores[_i].bits), draw_inputs(f, &state),
                        &state);
    }
}
END_TEST

START_TEST(residuals_of_branches_share)
{
    uint32_t f = parse("jot ir 1\n"
                       "function @0(%x: f64[2]) {\n"
                       "  %y = sin %x : f64[2]\n"
                       "  return %y\n"
                       "}\n"
                       "function @1(%x: f64[2]) {\n"
                       "  %y = cos %x : f64[2]\n"
                       "  return %y\n"
                       "}\n"
                       "function @2(%x: f64[2]) {\n"
                       "  %y = exp %x : f64[2]\n"
                       "  return %y\n"
                       "}\n"
                       "function @3 f(%i: i32[], %x: f64[2]) {\n"
                       "  %y = cond %i, %x {functions=[@0, @1, @2]} : f64[2]\n"
                       "  return %y\n"
                       "}\n");
    struct pass_split s;
    require(pass_linearize(module, f, mask_of(2, 2), &s));
    // cos x, sin x and nothing share one; exp x is the result itself.
    ck_assert_int_eq(find_op(s.forward, IR_cond)->n_out, 2);
}
END_TEST

// Only x moves in a third round: the loop that is left has no tangents of what stays zero.
START_TEST(tangents_that_are_zero)
{
    uint32_t f = parse(control_programs[2].text), g;
    require(pass_jvp(module, f, mask_of(4, 8), &g, NULL));
    g = pass_dce(module, g);
    struct ir_node n = loop_of(g, IR_scan);
    ck_assert_int_eq(ir_scan_of(&n).n_carry, 3); // u and its tangent are not read
    require(pass_jvp(module, f, mask_of(4, 2), &g, NULL));
    n = loop_of(g, IR_scan);
    ck_assert_int_eq(ir_scan_of(&n).n_carry, 6); // the count and u have none
}
END_TEST

static uint32_t map_one(uint32_t f, uint64_t bits)
{
    uint32_t g;
    require(pass_vmap(module, f, mask_of(graph(f)->n_params, bits), 3, &g, NULL));
    return g;
}

// Of carries in a chain those have the axis that one with it feeds, the last in the third round.
START_TEST(carries_that_are_mapped)
{
    static const struct {
        uint64_t bits;
        int mapped; // the carries from here on
    } rows[] = {{16, 3}, {8, 2}, {4, 1}, {2, 0}, {1, 0}};
    uint32_t f = parse(control_programs[1].text);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint32_t g = map_one(f, rows[i].bits);
        struct ir_node n = loop_of(g, IR_scan);
        for (int k = 0; k < 4; k++)
            ck_assert_int_eq(ir_rank_of(graph(g), n.out + (ir_id)k),
                             k < rows[i].mapped ? 1 : 2);
    }
}
END_TEST

START_TEST(lanes_of_a_while)
{
    uint32_t f = parse(control_programs[9].text);
    // a does not reach the test within one round: n has it from x, and x from a.
    struct ir_node n = loop_of(map_one(f, 1), IR_while);
    ck_assert_int_eq(ir_while_of(&n).batched, 1);
    n = loop_of(map_one(map_one(f, 1), 4), IR_while);
    ck_assert_int_eq(ir_while_of(&n).batched, 2);
    uint32_t g =
        parse("jot ir 1\n"
              "function @0(%i: i32[], %x: f64[]) {\n"
              "  %n = const {data=3} : i32[]\n"
              "  %p = lt %i, %n : bool[]\n"
              "  return %p\n"
              "}\n"
              "function @1(%i: i32[], %x: f64[]) {\n"
              "  %one = const {data=1} : i32[]\n"
              "  %j = add %i, %one : i32[]\n"
              "  %y = sin %x : f64[]\n"
              "  return %j, %y\n"
              "}\n"
              "function @2 f(%i: i32[], %x: f64[]) {\n"
              "  %j, %y = while %i, %x {n_consts=0, functions=[@0, @1]} : i32[], f64[]\n"
              "  return %j, %y\n"
              "}\n");
    n = loop_of(map_one(g, 2), IR_while);
    ck_assert_int_eq(ir_while_of(&n).batched, 0);
}
END_TEST

// What a cond becomes over an index of each lane.
static const struct {
    const char *branch; // (x: f64[2], w: f64[100]) -> f64[2]
    uint64_t bits;      // the index 1, x 2, w 4
    bool is_kept;
} choices[] = {
    {"%y = sin %x : f64[2]", 3, false}, // each has a cotangent of w
    {"%y = sin %x : f64[2]", 7, true},
    {"%y = neg %x : f64[2]", 7, false},
    {"%s = reduce_sum %w {axes=[0]} : f64[]\n %y = mul %s, %x : f64[2]", 7, true},
    // Nothing that a lane does by itself.
    {"%y = sin %x : f64[2]", 1, false},
};

START_TEST(lanes_take_branches)
{
    char text[1000];
    snprintf(text, sizeof text,
             "jot ir 1\nfunction @0(%%x: f64[2], %%w: f64[100]) {\n %s\n return %%y\n}\n"
             "function @1(%%x: f64[2], %%w: f64[100]) {\n return %%x\n}\n"
             "function @2 f(%%i: i32[], %%x: f64[2], %%w: f64[100]) {\n"
             " %%y = cond %%i, %%x, %%w {functions=[@0, @1]} : f64[2]\n return %%y\n}\n",
             choices[_i].branch);
    uint32_t f = map_one(parse(text), choices[_i].bits);
    ck_assert_int_eq(count_op(f, IR_scan), choices[_i].is_kept);
    ck_assert_int_eq(count_op(f, IR_cond), 0);
    if (!choices[_i].is_kept)
        return;
    for (int i = 0; i < 2; i++) {
        struct ir_node n = loop_of(f, IR_scan);
        ck_assert(ir_scan_of(&n).lanes);
        if (i)
            break;
        ck_assert_int_eq(count_op(ir_scan_of(&n).body, IR_cond), 1);
        f = map_one(f, choices[_i].bits);
    }
}
END_TEST

// Branches that a lane does not take, where derivatives are not finite: kept as branches, and cheap ones
// that are all computed; of two and of many.
static const char *const spoiling[] = {
    "%y = log %x : f64[2]\n  %r = sqrt %y : f64[2]\n"
    "  %s = dot_general %r, %r {lhs_contract=[0], rhs_contract=[0], lhs_batch=[], "
    "rhs_batch=[], precision=0} : f64[]\n"
    "  %t = dot_general %w, %y {lhs_contract=[0], rhs_contract=[0], lhs_batch=[], "
    "rhs_batch=[], precision=0} : f64[]\n"
    "  %u = add %s, %t : f64[]\n",
    "%a = slice %x {starts=[0], limits=[1], strides=[1]} : f64[1]\n"
    "  %b = slice %x {starts=[1], limits=[2], strides=[1]} : f64[1]\n"
    "  %c = slice %w {starts=[0], limits=[1], strides=[1]} : f64[1]\n"
    "  %d = slice %w {starts=[1], limits=[2], strides=[1]} : f64[1]\n"
    "  %p = mul %b, %c : f64[1]\n  %q = fma %a, %d, %p : f64[1]\n  %v = sqrt %q : f64[1]\n"
    "  %u = reshape %v {dims=[]} : f64[]\n",
};

static void check_unspoilt(const char *branch, int n_branches, int maps)
{
    char text[2000], list[80] = "@0, @1";
    for (int k = 2; k < n_branches; k++)
        strcat(list, ", @0");
    snprintf(text, sizeof text,
             "jot ir 1\n"
             "function @0(%%x: f64[2], %%w: f64[2]) {\n"
             "  %%z = const {data=0} : f64[]\n"
             "  return %%z\n"
             "}\n"
             "function @1(%%x: f64[2], %%w: f64[2]) {\n  %s  return %%u\n}\n"
             "function @2 f(%%i: i32[], %%x: f64[2], %%w: f64[2]) {\n"
             "  %%y = cond %%i, %%x, %%w {functions=[%s]} : f64[]\n"
             "  return %%y\n"
             "}\n",
             branch, list);
    uint32_t f = map_one(parse(text), 7), g;
    int32_t index[] = {0, 1, 0, n_branches > 2 ? 2 : -9, 1, 0, 0, 1, 0};
    double x[18], w[18], ones[] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    const double xs[] = {0, -1, 2, 3, 1, INFINITY}, ws[] = {1, 2, 3, 4, 5, -INFINITY};
    for (int i = 0; i < 18; i++) {
        x[i] = xs[i % 6];
        w[i] = ws[i % 6];
    }
    struct ir_type lanes = maps == 2 ? F64(3, 3) : F64(3);
    struct ir_type pairs = maps == 2 ? F64(3, 3, 2) : F64(3, 2);
    struct ir_tensor in[] = {
        {ir_type_with(lanes, JOT_I32), index}, {pairs, x}, {pairs, w}, {lanes, ones}};
    if (maps == 2)
        f = map_one(f, 7);
    require(pass_vjp(module, f, mask_of(3, 6), &g));
    struct ir_tensor *ct = evaluate(g, in) + 1;
    int64_t count = maps == 2 ? 18 : 6;
    for (int64_t i = 0; i < 2 * count; i++) {
        double d = element(ct[i / count], i % count).re;
        ck_assert_msg(isfinite(d) && (d == 0) == (index[i % count / 2] != 1), "%d: %g", (int)i,
                      d);
    }
    // Forward mode: tangents of ones.
    require(pass_jvp(module, f, mask_of(3, 2), &g, NULL));
    in[3] = (struct ir_tensor){pairs, arena_array(module->arena, double, 18)};
    for (int i = 0; i < 18; i++)
        ((double *)in[3].data)[i] = 1;
    struct ir_tensor t = evaluate(g, in)[1];
    for (int64_t i = 0; i < count / 2; i++) {
        double d = element(t, i).re;
        ck_assert_msg(isfinite(d) && (d == 0) == (index[i] != 1), "%d: %g", (int)i, d);
    }
}

START_TEST(branches_not_taken_spoil_nothing)
{
    for (int maps = 1; maps <= 2; maps++) {
        check_unspoilt(spoiling[_i], 2, maps);
        check_unspoilt(spoiling[_i], 7, maps);
    }
}
END_TEST

// Lanes that are done early, frozen where the derivative of a step is not finite.
START_TEST(frozen_lanes_spoil_nothing)
{
    uint32_t f = parse(
                 "jot ir 1\n"
                 "function @0(%w: f64[], %x: f64[]) {\n"
                 "  %z = const {data=0} : f64[]\n"
                 "  %p = gt %x, %z : bool[]\n"
                 "  return %p\n"
                 "}\n"
                 "function @1(%w: f64[], %x: f64[]) {\n"
                 "  %y = sqrt %x : f64[]\n"
                 "  %z = sub %y, %w : f64[]\n"
                 "  return %z\n"
                 "}\n"
                 "function @2 f(%w: f64[], %x: f64[]) {\n"
                 "  %y = while %w, %x {n_consts=1, max_trips=9, functions=[@0, @1]} : f64[]\n"
                 "  return %y\n"
                 "}\n"),
             g;
    double x[] = {0, -1, 5}, w = 0.75, ones[] = {1, 1, 1};
    struct ir_tensor in[] = {scalar_f64(w), {F64(3), x}, {F64(3), ones}};
    require(pass_vjp(module, map_one(f, 2), mask_of(2, 3), &g));
    struct ir_tensor *ct = evaluate(g, in) + 1;
    ck_assert(isfinite(element(ct[0], 0).re) && element(ct[0], 0).re < 0);
    ck_assert(element(ct[1], 0).re == 1 && element(ct[1], 1).re == 1);
    ck_assert(isfinite(element(ct[1], 2).re));
}
END_TEST

// Results in the mask, by the text of a program; the simplified function.
static uint32_t only(const char *text, uint64_t results)
{
    uint32_t f = parse(text);
    const struct ir_graph *g = graph(f);
    struct ir_builder b = ir_builder_make(module, "f", IR_BUILD_PLAIN);
    ir_id in[8], out[8];
    for (uint32_t i = 0; i < g->n_params; i++)
        in[i] = ir_param(&b, ir_type_of(g, i));
    ir_inline(&b, g, in, out);
    for (uint32_t i = 0; i < g->outputs.count; i++)
        if (results >> i & 1)
            ir_output(&b, out[i]);
    uint64_t state = seed;
    f = done(&b);
    check_simplify(text, f, draw_inputs(f, &state));
    return pass_simplify(module, f);
}

START_TEST(unread_parts_go)
{
    // Of four carries in a chain the first needs itself alone.
    struct ir_node n;
    uint32_t f = only(control_programs[2].text, 4); // the rows of the count
    n = loop_of(f, IR_scan);
    ck_assert_int_eq(ir_scan_of(&n).n_carry, 1);
    ck_assert_int_eq(n.n_in, 1);
    f = only(control_programs[2].text, 8);
    n = loop_of(f, IR_scan);
    ck_assert_int_eq(n.n_out, 1);
    f = only(control_programs[4].text, 2); // a carry that is set to 0
    n = loop_of(f, IR_scan);
    ck_assert_int_eq(n.n_in, 1);
    f = only(control_programs[9].text,
             1); // the test needs the other carry, which needs this one
    n = loop_of(f, IR_while);
    ck_assert_int_eq(n.n_out, 2);
    f = only(control_programs[7].text, 2);
    n = loop_of(f, IR_cond);
    ck_assert_int_eq(n.n_out, 1);
    f = only(control_programs[0].text, 0);
    ck_assert_int_eq(count_op(f, IR_scan), 0);
}
END_TEST

START_TEST(shard_maps_are_simplified)
{
    // The third operand and the second result are not read; 2 + 3 is folded.
    const char *text = "jot ir 1\n"
                       "function @0(%a: f64[2]<i:3>, %b: f64[], %c: f64[2]<i:3>) {\n"
                       "  %p = const {data=2} : f64[]\n"
                       "  %q = const {data=3} : f64[]\n"
                       "  %r = add %p, %q : f64[]\n"
                       "  %s = mul %a, %r : f64[2]<i:3>\n"
                       "  %t = sin %c : f64[2]<i:3>\n"
                       "  %u = mul %b, %r : f64[]\n"
                       "  return %s, %t, %u, %a, %s\n"
                       "}\n"
                       "function @1 f(%a: f64[6], %b: f64[], %c: f64[6]) {\n"
                       "  %1, %2, %3, %4, %5 = shard_map %a, %b, %c {functions=[@0], "
                       "grid=[i:3], splits=[2, 1, 0, 0, 2, 1, 0, 2, 1, 0, 2, 1, 0, 0, 2, 1, 0, "
                       "2, 1, 0]} : f64[6], f64[6], f64[], f64[6], f64[6]\n"
                       "  return %1, %2, %3, %4, %5\n"
                       "}\n";
    uint32_t f = only(text, 29);
    struct ir_node n = loop_of(f, IR_shard_map);
    struct ir_shard s = ir_shard_of(module, &n);
    ck_assert_int_eq(n.n_in, 2);
    ck_assert_int_eq(n.n_out, 2);
    ck_assert_int_eq(s.n_splits, 4);
    ck_assert_int_eq(count_op(s.body, IR_add), 0);
    ck_assert_int_eq(graph(f)->outputs.at[2], 0);
}
END_TEST

// A zero of a derivative stays one in a piece of it.
START_TEST(supports_go_through_shard_maps)
{
    uint32_t f = parse("jot ir 1\n"
                       "function @0(%t: f64[1]<i:2>, %s: f64[1]<i:2>) {\n"
                       "  %y = mul_z %t, %s : f64[1]<i:2>\n"
                       "  return %y\n"
                       "}\n"
                       "function @1 f(%x: f64[2], %s: f64[2]) {\n"
                       "  %0 = const {data=0} : f64[]\n"
                       "  %p = gt %x, %0 : bool[2]\n"
                       "  %t = select %p, %x, %0 : f64[2]\n"
                       "  %y = shard_map %t, %s {functions=[@0], grid=[i:2], splits=[2, 1, 0, "
                       "2, 1, 0, 2, 1, 0]} : f64[2]\n"
                       "  return %y\n"
                       "}\n");
    double x[] = {-1, 2}, s[] = {INFINITY, 3};
    struct ir_tensor in[] = {{F64(2), x}, {F64(2), s}};
    struct ir_tensor *y = evaluate(pass_simplify(module, f), in);
    ck_assert(element(y[0], 0).re == 0 && element(y[0], 1).re == 6);
}
END_TEST

// Rows out that no trip changes are made once; rows in that repeat a value are a const.
START_TEST(invariant_rows_are_one_value)
{
    uint32_t f = only("jot ir 1\n"
                      "function @0(%a: f64[2], %x: f64[2], %s: f64[2], %t: f64[2]) {\n"
                      "  %p = mul %a, %s : f64[2]\n"
                      "  %q = add %x, %p : f64[2]\n"
                      "  %r = mul %q, %t : f64[2]\n"
                      "  %u = sin %s : f64[2]\n"
                      "  %v = mul %a, %u : f64[2]\n"
                      "  %i = iota {dtype=f64, dims=[2], axis=0} : f64[2]\n"
                      "  return %r, %v, %i\n"
                      "}\n"
                      "function @1 f(%a: f64[2], %x: f64[2], %w: f64[2], %t: f64[5,2]) {\n"
                      "  %s = broadcast_in_dim %w {dims=[5, 2], axes=[1]} : f64[5,2]\n"
                      "  %1, %2, %3 = scan %a, %x, %s, %t {length=5, n_consts=1, n_carry=1, "
                      "functions=[@0]} : f64[2], f64[5,2], f64[5,2]\n"
                      "  return %1, %2, %3\n"
                      "}\n",
                      7);
    struct ir_node n = loop_of(f, IR_scan);
    ck_assert_int_eq(ir_scan_of(&n).n_consts, 2);
    ck_assert_int_eq(n.n_in, 4);
    ck_assert_int_eq(n.n_out, 1);
}
END_TEST

START_TEST(simple_loops_go)
{
    uint32_t f = only(control_programs[3].text, 3);
    ck_assert_int_eq(count_op(f, IR_scan), 0);
    f = only("jot ir 1\n"
             "function @0(%a: f64[], %b: f64[], %x: f64[], %y: f64[], %s: f64[], %t: f64[]) {\n"
             "  %p = mul %a, %x : f64[]\n"
             "  %q = sub %p, %b : f64[]\n"
             "  %r = add %q, %y : f64[]\n"
             "  %u = mul %s, %t : f64[]\n"
             "  return %r, %y, %u, %s, %a\n"
             "}\n"
             "function @1 f(%a: f64[], %x: f64[], %y: f64[], %s: f64[4]) {\n"
             "  %1, %2, %3, %4, %5 = scan %a, %a, %x, %y, %s, %s {length=4, n_consts=2, "
             "n_carry=2, functions=[@0]} : f64[], f64[], f64[4], f64[4], f64[4]\n"
             "  return %1, %2, %3, %4, %5\n"
             "}\n",
             31);
    struct ir_node n = loop_of(f, IR_scan);
    ck_assert_int_eq(ir_scan_of(&n).n_carry, 1);
    ck_assert_int_eq(ir_scan_of(&n).n_consts, 2);
    ck_assert_int_eq(n.n_in, 4);
    ck_assert_int_eq(n.n_out, 2);
    f = only("jot ir 1\n"
             "function @0(%a: f64[], %b: f64[], %x: f64[], %y: f64[]) {\n"
             "  %m = const {data=9} : f64[]\n"
             "  %n = add %m, %y : f64[]\n"
             "  %p = lt %x, %n : bool[]\n"
             "  return %p\n"
             "}\n"
             "function @1(%a: f64[], %b: f64[], %x: f64[], %y: f64[]) {\n"
             "  %p = abs %a : f64[]\n"
             "  %q = abs %b : f64[]\n"
             "  %r = add %p, %q : f64[]\n"
             "  %one = const {data=1} : f64[]\n"
             "  %s = add %r, %one : f64[]\n"
             "  %t = add %x, %s : f64[]\n"
             "  return %t, %y\n"
             "}\n"
             "function @2 f(%a: f64[], %x: f64[], %y: f64[]) {\n"
             "  %1, %2 = while %a, %a, %x, %y {n_consts=2, functions=[@0, @1]} : f64[], f64[]\n"
             "  return %1, %2\n"
             "}\n",
             3);
    n = loop_of(f, IR_while);
    ck_assert_int_eq(ir_while_of(&n).n_consts, 2);
    ck_assert_int_eq(n.n_in, 3);
    ck_assert_int_eq(n.n_out, 1);
    f = only(
        "jot ir 1\n"
        "function @0(%x: f64[], %s: f64[2]) {\n"
        "  %p = mul %s, %x : f64[2]\n"
        "  %q = reduce_sum %p {axes=[0]} : f64[]\n"
        "  return %q, %p\n"
        "}\n"
        "function @1(%x: f64[], %s: f64[1,2]) {\n"
        "  %1, %2 = scan %x, %s {length=1, n_consts=0, n_carry=1, functions=[@0]} : f64[], "
        "f64[1,2]\n"
        "  return %1, %2\n"
        "}\n"
        "function @2(%x: f64[], %s: f64[1,2]) {\n"
        "  return %x, %s\n"
        "}\n"
        "function @3 f(%x: f64[], %s: f64[1,2]) {\n"
        "  %i = const {data=-4} : i32[]\n"
        "  %1, %2 = cond %i, %x, %s {functions=[@1, @2]} : f64[], f64[1,2]\n"
        "  return %1, %2\n"
        "}\n",
        3);
    ck_assert_int_eq(count_op(f, IR_scan) + count_op(f, IR_cond), 0);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_loop_test(t, residuals, 0, (int)(sizeof stores / sizeof stores[0]));
    tcase_add_test(t, residuals_of_branches_share);
    tcase_add_test(t, tangents_that_are_zero);
    tcase_add_test(t, carries_that_are_mapped);
    tcase_add_test(t, lanes_of_a_while);
    tcase_add_loop_test(t, lanes_take_branches, 0, (int)(sizeof choices / sizeof choices[0]));
    tcase_add_loop_test(t, branches_not_taken_spoil_nothing, 0,
                        (int)(sizeof spoiling / sizeof spoiling[0]));
    tcase_add_test(t, frozen_lanes_spoil_nothing);
    tcase_add_test(t, unread_parts_go);
    tcase_add_test(t, shard_maps_are_simplified);
    tcase_add_test(t, supports_go_through_shard_maps);
    tcase_add_test(t, invariant_rows_are_one_value);
    tcase_add_test(t, simple_loops_go);
}

int main(void) { return support_run("control parts", add_tests); }
