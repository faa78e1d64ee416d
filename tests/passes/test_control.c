// SPDX-License-Identifier: Apache-2.0
// Loops and branches under every transform, and under two of them: against central differences,
// against each other by inner products, and against a loop over lanes.
#include "pass_support.h"

#include "ir/control.h"

struct program {
    const char *name, *text;
    bool has_while; // without a bound: no reverse mode
};

static const struct program programs[] = {
    {"a const, a carry, rows in and out",
     "jot ir 1\n"
     "function @0(%a: f64[], %x: f64[], %s: f64[]) {\n"
     "  %p = mul %a, %x : f64[]\n"
     "  %q = sin %p : f64[]\n"
     "  %y = add %q, %s : f64[]\n"
     "  %z = mul %y, %x : f64[]\n"
     "  return %y, %z\n"
     "}\n"
     "function @1 f(%a: f64[], %x: f64[], %s: f64[5]) {\n"
     "  %y, %z = scan %a, %x, %s {reverse=0, length=5, n_consts=1, n_carry=1, functions=[@0]} "
     ": "
     "f64[], f64[5]\n"
     "  return %y, %z\n"
     "}\n",
     false},
    {"carry k feeds carry k + 1, and the last is all that is read",
     "jot ir 1\n"
     "function @0(%a: f64[2], %x: f64[2], %y: f64[2], %z: f64[2], %w: f64[2]) {\n"
     "  %p = sin %a : f64[2]\n"
     "  %q = cos %z : f64[2]\n"
     "  %r = mul %q, %a : f64[2]\n"
     "  return %p, %x, %y, %r\n"
     "}\n"
     "function @1 f(%a: f64[2], %x: f64[2], %y: f64[2], %z: f64[2], %w: f64[2]) {\n"
     "  %1, %2, %3, %4 = scan %a, %x, %y, %z, %w {reverse=1, length=6, n_consts=1, n_carry=4, "
     "functions=[@0]} : f64[2], f64[2], f64[2], f64[2]\n"
     "  return %4\n"
     "}\n",
     false},
    {"carries that trade places, one of them unused, and a count",
     "jot ir 1\n"
     "function @0(%i: i32[], %x: f64[3], %y: f64[3], %u: f64[2]) {\n"
     "  %one = const {data=1} : i32[]\n"
     "  %j = add %i, %one : i32[]\n"
     "  %f = convert %j {dtype=f64} : f64[]\n"
     "  %p = mul %f, %x : f64[3]\n"
     "  %q = sin %p : f64[3]\n"
     "  return %j, %y, %q, %u, %f\n"
     "}\n"
     "function @1 f(%i: i32[], %x: f64[3], %y: f64[3], %u: f64[2]) {\n"
     "  %1, %2, %3, %4, %5 = scan %i, %x, %y, %u {reverse=0, length=4, n_consts=0, n_carry=4, "
     "functions=[@0]} : i32[], f64[3], f64[3], f64[2], f64[4]\n"
     "  return %2, %3, %5, %1\n"
     "}\n",
     false},
    {"no trips",
     "jot ir 1\n"
     "function @0(%a: f64[2], %x: f64[2], %s: f64[2]) {\n"
     "  %p = mul %x, %a : f64[2]\n"
     "  %q = mul %p, %s : f64[2]\n"
     "  return %q, %p\n"
     "}\n"
     "function @1 f(%a: f64[2], %x: f64[2], %s: f64[0,2]) {\n"
     "  %1, %2 = scan %a, %x, %s {reverse=0, length=0, n_consts=1, n_carry=1, functions=[@0]} "
     ": "
     "f64[2], f64[0,2]\n"
     "  return %1, %2\n"
     "}\n",
     false},
    {"a carry that the body sets without reading it, rows that are not read",
     "jot ir 1\n"
     "function @0(%a: f64[], %x: f64[], %z: f64[], %s: f64[], %t: f64[2]) {\n"
     "  %zero = const {data=0} : f64[]\n"
     "  %p = mul %a, %s : f64[]\n"
     "  return %p, %zero, %x\n"
     "}\n"
     "function @1 f(%a: f64[], %x: f64[], %z: f64[], %s: f64[3], %t: f64[3,2]) {\n"
     "  %1, %2, %3 = scan %a, %x, %z, %s, %t {reverse=1, length=3, n_consts=1, n_carry=2, "
     "functions=[@0]} : f64[], f64[], f64[3]\n"
     "  return %1, %2, %3\n"
     "}\n",
     false},
    {"residuals that are a carry before and after the trip, and of a const",
     "jot ir 1\n"
     "function @0(%a: f64[2], %x: f64[2]) {\n"
     "  %b = cos %a : f64[2]\n"
     "  %p = mul %b, %x : f64[2]\n"
     "  %n = neg %p : f64[2]\n"
     "  %m = sin %n : f64[2]\n"
     "  %y = exp %m : f64[2]\n"
     "  return %y\n"
     "}\n"
     "function @1 f(%a: f64[2], %x: f64[2]) {\n"
     "  %1 = scan %a, %x {reverse=0, length=4, n_consts=1, n_carry=1, functions=[@0]} : "
     "f64[2]\n"
     "  return %1\n"
     "}\n",
     false},
    {"a scan in a scan",
     "jot ir 1\n"
     "function @0(%a: f64[3,3], %w: f64[], %x: f64[3]) {\n"
     "  %p = dot_general %a, %x {lhs_contract=[1], rhs_contract=[0], lhs_batch=[], "
     "rhs_batch=[], "
     "precision=0} : f64[3]\n"
     "  %c = const {data=0.2} : f64[]\n"
     "  %d = mul %c, %p : f64[3]\n"
     "  %q = sin %d : f64[3]\n"
     "  %v = cos %w : f64[]\n"
     "  %r = mul %q, %v : f64[3]\n"
     "  return %r\n"
     "}\n"
     "function @1(%a: f64[3,3], %x: f64[3], %s: f64[3]) {\n"
     "  %w = reduce_sum %s {axes=[0]} : f64[]\n"
     "  %y = scan %a, %w, %x {reverse=0, length=2, n_consts=2, n_carry=1, functions=[@0]} : "
     "f64[3]\n"
     "  %z = add %y, %s : f64[3]\n"
     "  return %z, %w\n"
     "}\n"
     "function @2 f(%a: f64[3,3], %x: f64[3], %s: f64[4,3]) {\n"
     "  %1, %2 = scan %a, %x, %s {reverse=0, length=4, n_consts=1, n_carry=1, functions=[@1]} "
     ": "
     "f64[3], f64[4]\n"
     "  return %1, %2\n"
     "}\n",
     false},
    {"three branches with other residuals",
     "jot ir 1\n"
     "function @0(%x: f64[2], %y: f64[]) {\n"
     "  %p = sin %x : f64[2]\n"
     "  %q = mul %p, %y : f64[2]\n"
     "  %r = reduce_sum %q {axes=[0]} : f64[]\n"
     "  return %q, %r\n"
     "}\n"
     "function @1(%x: f64[2], %y: f64[]) {\n"
     "  %p = exp %y : f64[]\n"
     "  return %x, %p\n"
     "}\n"
     "function @2(%x: f64[2], %y: f64[]) {\n"
     "  %p = const {data=[1, 2]} : f64[2]\n"
     "  %q = const {data=3} : f64[]\n"
     "  return %p, %q\n"
     "}\n"
     "function @3 f(%i: i32[], %x: f64[2], %y: f64[]) {\n"
     "  %p, %q = cond %i, %x, %y {functions=[@0, @1, @2]} : f64[2], f64[]\n"
     "  return %p, %q\n"
     "}\n",
     false},
    {"a scan in a bounded while in a branch",
     "jot ir 1\n"
     "function @0(%a: f64[], %x: f64[], %s: f64[]) {\n"
     "  %b = sin %a : f64[]\n"
     "  %p = mul %b, %x : f64[]\n"
     "  %q = sin %p : f64[]\n"
     "  %r = add %q, %s : f64[]\n"
     "  return %r\n"
     "}\n"
     "function @1 test(%a: f64[], %s: f64[3], %i: i32[], %x: f64[]) {\n"
     "  %n = const {data=3} : i32[]\n"
     "  %p = lt %i, %n : bool[]\n"
     "  return %p\n"
     "}\n"
     "function @2 step(%a: f64[], %s: f64[3], %i: i32[], %x: f64[]) {\n"
     "  %one = const {data=1} : i32[]\n"
     "  %j = add %i, %one : i32[]\n"
     "  %y = scan %a, %x, %s {reverse=0, length=3, n_consts=1, n_carry=1, functions=[@0]} : "
     "f64[]\n"
     "  return %j, %y\n"
     "}\n"
     "function @3(%i: i32[], %a: f64[], %x: f64[], %s: f64[3]) {\n"
     "  %j, %y = while %a, %s, %i, %x {n_consts=2, max_trips=14, functions=[@1, @2]} : i32[], "
     "f64[]\n"
     "  return %y\n"
     "}\n"
     "function @4(%i: i32[], %a: f64[], %x: f64[], %s: f64[3]) {\n"
     "  %y = mul %a, %x : f64[]\n"
     "  return %y\n"
     "}\n"
     "function @5 f(%i: i32[], %a: f64[], %x: f64[], %s: f64[3]) {\n"
     "  %y = cond %i, %i, %a, %x, %s {functions=[@3, @4]} : f64[]\n"
     "  return %y\n"
     "}\n",
     false},
    {"a while without a bound",
     "jot ir 1\n"
     "function @0 test(%a: f64[], %x: f64[], %n: f64[]) {\n"
     "  %m = const {data=40} : f64[]\n"
     "  %p = lt %n, %m : bool[]\n"
     "  return %p\n"
     "}\n"
     "function @1 step(%a: f64[], %x: f64[], %n: f64[]) {\n"
     "  %b = sin %a : f64[]\n"
     "  %p = mul %b, %x : f64[]\n"
     "  %q = sin %p : f64[]\n"
     "  %s = mul %q, %q : f64[]\n"
     "  %one = const {data=1} : f64[]\n"
     "  %t = add %s, %one : f64[]\n"
     "  %m = add %n, %t : f64[]\n"
     "  return %q, %m\n"
     "}\n"
     "function @2 f(%a: f64[], %x: f64[], %n: f64[]) {\n"
     "  %y, %m = while %a, %x, %n {n_consts=1, functions=[@0, @1]} : f64[], f64[]\n"
     "  return %y, %m\n"
     "}\n",
     true},
};

enum { PROGRAMS = sizeof programs / sizeof programs[0], MOST_INPUTS = 8 };

static uint64_t inexact_bits(uint32_t f)
{
    uint64_t bits = 0;
    for (uint32_t i = 0; i < graph(f)->n_params; i++)
        bits |= (uint64_t)inexact(ir_type_of(graph(f), i)) << i;
    return bits;
}

static struct ir_tensor *draw_inputs(uint32_t f, uint64_t *state)
{
    uint32_t n = graph(f)->n_params;
    struct ir_tensor *x = arena_array(module->arena, struct ir_tensor, n + 1);
    for (uint32_t i = 0; i < n; i++)
        x[i] = draw(ir_type_of(graph(f), i), state);
    return x;
}

// Every choice of inputs to differentiate in, or to map.
#define for_each_mask(bits, among)                                                             \
    for (uint64_t bits = (among); bits; bits = (bits - 1) & (among))

static void check_derivatives(const char *what, uint32_t f, const bool *mask, bool reverse,
                              uint64_t *state)
{
    struct ir_tensor *x = draw_inputs(f, state);
    check_differences(what, f, mask, x, state);
    if (reverse)
        check_transpose(what, f, mask, x, state);
    check_simplify(what, f, x);
}

START_TEST(derivatives)
{
    const struct program *p = &programs[_i];
    uint32_t f = parse(p->text);
    uint64_t state = seed + (uint64_t)_i;
    for_each_mask(bits, inexact_bits(f))
        check_derivatives(p->name, f, mask_of(graph(f)->n_params, bits), !p->has_while, &state);
}
END_TEST

START_TEST(second_derivatives)
{
    const struct program *p = &programs[_i];
    uint32_t f = parse(p->text), g;
    uint64_t state = seed + (uint64_t)_i;
    const bool *mask = mask_of(graph(f)->n_params, inexact_bits(f));
    require(pass_jvp(module, f, mask, &g, NULL));
    check_derivatives(p->name, g, mask_of(graph(g)->n_params, inexact_bits(g)), !p->has_while,
                      &state);
    if (p->has_while)
        return;
    require(pass_vjp(module, f, mask, &g));
    check_derivatives(p->name, g, mask_of(graph(g)->n_params, inexact_bits(g)), true, &state);
}
END_TEST

START_TEST(complex_derivatives)
{
    uint32_t f = parse("jot ir 1\n"
                       "function @0(%a: c128[2], %x: c128[2], %y: f64[2], %s: c128[2]) {\n"
                       "  %p = mul %a, %x : c128[2]\n"
                       "  %q = conj %s : c128[2]\n"
                       "  %r = add %p, %q : c128[2]\n"
                       "  %i = imag %r : f64[2]\n"
                       "  %z = mul %i, %y : f64[2]\n"
                       "  return %r, %z, %p\n"
                       "}\n"
                       "function @1(%a: c128[2], %x: c128[2], %y: f64[2], %s: c128[3,2]) {\n"
                       "  %1, %2, %3 = scan %a, %x, %y, %s {reverse=0, length=3, n_consts=1, "
                       "n_carry=2, functions=[@0]} : c128[2], f64[2], c128[3,2]\n"
                       "  return %1, %2\n"
                       "}\n"
                       "function @2(%a: c128[2], %x: c128[2], %y: f64[2], %s: c128[3,2]) {\n"
                       "  %p = mul %a, %x : c128[2]\n"
                       "  return %p, %y\n"
                       "}\n"
                       "function @3 f(%i: i32[], %a: c128[2], %x: c128[2], %y: f64[2], %s: "
                       "c128[3,2]) {\n"
                       "  %1, %2 = cond %i, %a, %x, %y, %s {functions=[@1, @2]} : c128[2], "
                       "f64[2]\n"
                       "  return %1, %2\n"
                       "}\n"),
             n = graph(f)->n_params, g;
    uint64_t state = seed;
    for_each_mask(bits, inexact_bits(f))
        check_derivatives("complex", f, mask_of(n, bits), true, &state);
    require(pass_vjp(module, f, mask_of(n, inexact_bits(f)), &g));
    check_derivatives("complex, twice", g, mask_of(graph(g)->n_params, inexact_bits(g)), true,
                      &state);
}
END_TEST

START_TEST(maps)
{
    const struct program *p = &programs[_i];
    uint32_t f = parse(p->text), n = graph(f)->n_params;
    uint64_t state = seed + (uint64_t)_i;
    struct ir_tensor *x = draw_inputs(f, &state);
    for_each_mask(bits, (UINT64_C(1) << n) - 1) for (int64_t size = 0; size < 4; size++)
        check_vmap(p->name, f, mask_of(n, bits), size, x, 1e-12, "ANY", &state);
}
END_TEST

// Derivatives of a mapped function, and maps of derivatives.
START_TEST(maps_and_derivatives)
{
    const struct program *p = &programs[_i];
    uint32_t f = parse(p->text), n = graph(f)->n_params, g;
    uint64_t state = seed + (uint64_t)_i;
    for_each_mask(bits, (UINT64_C(1) << n) - 1)
    {
        require(pass_vmap(module, f, mask_of(n, bits), 3, &g, NULL));
        check_derivatives(p->name, g, mask_of(n, inexact_bits(g)), !p->has_while, &state);
        check_vmap(p->name, g, mask_of(n, bits), 2, draw_inputs(g, &state), 1e-12, "ANY",
                   &state);
    }
    if (p->has_while)
        require(pass_jvp(module, f, mask_of(n, inexact_bits(f)), &g, NULL));
    else
        require(pass_vjp(module, f, mask_of(n, inexact_bits(f)), &g));
    n = graph(g)->n_params;
    struct ir_tensor *x = draw_inputs(g, &state);
    for_each_mask(bits, (UINT64_C(1) << n) - 1)
        check_vmap(p->name, g, mask_of(n, bits), 3, x, 1e-12, "ANY", &state);
}
END_TEST

// -- What is stored, and what goes ------------------------------------------------------------

// The nodes of an op in a function itself.
static int count_op(uint32_t f, enum ir_op op)
{
    int n = 0;
    ir_for_each_node (graph(f), node)
        n += node->op == op;
    return n;
}

static const struct ir_node *find_op(uint32_t f, enum ir_op op)
{
    ir_for_each_node (graph(f), node)
        if (node->op == op)
            return node;
    ck_abort_msg("no %s in\n%s", ir_op_get(op)->name, ir_graph_text(graph(f)));
    return NULL;
}

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
    uint32_t f = parse(programs[2].text), g;
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

START_TEST(lanes_of_a_while)
{
    uint32_t f = parse(programs[9].text);
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

START_TEST(no_reverse_mode_without_a_bound)
{
    uint32_t f = parse(programs[9].text), g = 77;
    ck_assert_int_eq(pass_vjp(module, f, mask_of(3, 7), &g), JOT_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(jot_error_message(), "give the while a bound"));
    ck_assert_ptr_nonnull(strstr(jot_error_message(), "jot_scan"));
    ck_assert_uint_eq(g, 77);
}
END_TEST

// A branch that a lane does not take, where its derivative is not finite.
START_TEST(branches_not_taken_spoil_nothing)
{
    uint32_t f = parse("jot ir 1\n"
                       "function @0(%x: f64[2], %w: f64[2]) {\n"
                       "  %z = const {data=0} : f64[]\n"
                       "  return %z\n"
                       "}\n"
                       "function @1(%x: f64[2], %w: f64[2]) {\n"
                       "  %y = log %x : f64[2]\n"
                       "  %r = sqrt %y : f64[2]\n"
                       "  %s = dot_general %r, %r {lhs_contract=[0], rhs_contract=[0], "
                       "lhs_batch=[], rhs_batch=[], precision=0} : f64[]\n"
                       "  %t = dot_general %w, %y {lhs_contract=[0], rhs_contract=[0], "
                       "lhs_batch=[], rhs_batch=[], precision=0} : f64[]\n"
                       "  %u = add %s, %t : f64[]\n"
                       "  return %u\n"
                       "}\n"
                       "function @2 f(%i: i32[], %x: f64[2], %w: f64[2]) {\n"
                       "  %y = cond %i, %x, %w {functions=[@0, @1]} : f64[]\n"
                       "  return %y\n"
                       "}\n"),
             g;
    int32_t index[] = {0, 1, 0};
    double x[] = {0, -1, 2, 3, 1, INFINITY}, w[] = {1, 2, 3, 4, 5, 6}, ones[] = {1, 1, 1};
    struct ir_tensor in[] = {{type_of_dims(JOT_I32, 1, (int64_t[]){3}), index},
                             {F64(3, 2), x},
                             {F64(3, 2), w},
                             {F64(3), ones}};
    require(pass_vjp(module, map_one(f, 7), mask_of(3, 6), &g));
    struct ir_tensor *ct = evaluate(g, in) + 1;
    for (int64_t i = 0; i < 12; i++) {
        double d = element(ct[i / 6], i % 6).re;
        ck_assert_msg(isfinite(d) && (d == 0) == (i % 6 / 2 != 1), "%g", d);
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
    uint32_t f = only(programs[2].text, 4); // the rows of the count
    n = loop_of(f, IR_scan);
    ck_assert_int_eq(ir_scan_of(&n).n_carry, 1);
    ck_assert_int_eq(n.n_in, 1);
    f = only(programs[2].text, 8);
    n = loop_of(f, IR_scan);
    ck_assert_int_eq(n.n_out, 1);
    f = only(programs[4].text, 2); // a carry that is set to 0
    n = loop_of(f, IR_scan);
    ck_assert_int_eq(n.n_in, 1);
    f = only(programs[9].text, 1); // the test needs the other carry, which needs this one
    n = loop_of(f, IR_while);
    ck_assert_int_eq(n.n_out, 2);
    f = only(programs[7].text, 2);
    n = loop_of(f, IR_cond);
    ck_assert_int_eq(n.n_out, 1);
    f = only(programs[0].text, 0);
    ck_assert_int_eq(count_op(f, IR_scan), 0);
}
END_TEST

START_TEST(simple_loops_go)
{
    uint32_t f = only(programs[3].text, 3);
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

// The gradient of a value in the same graph: the loop runs once, and once back.
START_TEST(gradients_in_place_share_the_loop)
{
    uint32_t f = parse(programs[0].text), c = parse(programs[7].text);
    struct ir_builder b = ir_builder_make(module, "f", IR_BUILD_PLAIN);
    ir_id index = ir_param(&b, type_of_dims(JOT_I32, 0, NULL)), in[4], out[2], ct[2];
    for (uint32_t i = 0; i < 3; i++)
        in[i] = ir_param(&b, ir_type_of(graph(f), i));
    ir_id pair = ir_param(&b, F64(2)), x[2] = {in[0], in[1]};
    ir_inline(&b, graph(f), in, out);
    ir_id scan_y = out[0], branch[3] = {index, pair, scan_y};
    ir_inline(&b, graph(c), branch, out);
    ir_id y = ir_mul(&b, out[1], scan_y);
    ck_assert_msg(pass_gradient_in(&b, y, 2, x, ct), "%s", b.message);
    ir_output(&b, y);
    ir_output(&b, ct[0]);
    ir_output(&b, ct[1]);
    f = done(&b);
    uint64_t state = seed;
    check_derivatives("in place", f, mask_of(5, 30), true, &state);
    uint32_t s = pass_simplify(module, pass_inline(module, pass_simplify(module, f), 10000));
    ck_assert_int_eq(count_op(s, IR_scan), 2);
    ck_assert_int_eq(count_op(s, IR_cond), 2);
}
END_TEST

// Forward mode goes through a while without a bound, in place and over a basis, too.
START_TEST(forward_mode_needs_no_bound)
{
    uint32_t f = parse(programs[9].text), forward;
    struct ir_builder b = ir_builder_make(module, "f", IR_BUILD_PLAIN);
    ir_id in[3], out[2], dy;
    for (int i = 0; i < 3; i++)
        in[i] = ir_param(&b, F64_SCALAR);
    ir_inline(&b, graph(f), in, out);
    ir_id one = ir_scalar(&b, JOT_F64, 1), dx[3] = {IR_NONE, one, IR_NONE};
    ck_assert_msg(pass_tangent_in(&b, out[1], 3, in, dx, &dy), "%s", b.message);
    ir_output(&b, dy);
    uint32_t tangent = done(&b);
    require(pass_jacfwd(module, f, mask_of(3, 2), &forward));
    uint64_t state = seed;
    struct ir_tensor *x = draw_inputs(f, &state), slope[3] = {x[0], scalar_f64(1), x[2]};
    struct ir_tensor *want = tangents(f, mask_of(3, 2), x, slope);
    ck_assert(distance(*evaluate(tangent, x), want[1]) < 1e-14);
    struct ir_tensor *j = evaluate(forward, x);
    ck_assert(distance(j[0], want[0]) < 1e-14 && distance(j[1], want[1]) < 1e-14);
}
END_TEST

// Over a basis of the inputs, and over one of the results.
START_TEST(jacobians)
{
    const struct program *p = &programs[_i];
    uint32_t f = parse(p->text), n = graph(f)->n_params, forward, reverse;
    const bool *mask = mask_of(n, inexact_bits(f));
    uint64_t state = seed;
    struct ir_tensor *x = draw_inputs(f, &state);
    if (p->has_while)
        return;
    require(pass_jacfwd(module, f, mask, &forward));
    require(pass_jacrev(module, f, mask, &reverse));
    struct ir_tensor *a = evaluate(forward, x), *b = evaluate(reverse, x);
    for (uint32_t i = 0; i < graph(forward)->outputs.count; i++)
        ck_assert_msg(distance(a[i], b[i]) < 1e-10, "%s: %u", p->name, i);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_loop_test(t, derivatives, 0, PROGRAMS);
    tcase_add_loop_test(t, second_derivatives, 0, PROGRAMS);
    tcase_add_test(t, complex_derivatives);
    tcase_add_loop_test(t, maps, 0, PROGRAMS);
    tcase_add_loop_test(t, maps_and_derivatives, 0, PROGRAMS);
    tcase_add_loop_test(t, residuals, 0, (int)(sizeof stores / sizeof stores[0]));
    tcase_add_test(t, residuals_of_branches_share);
    tcase_add_test(t, tangents_that_are_zero);
    tcase_add_test(t, lanes_of_a_while);
    tcase_add_test(t, no_reverse_mode_without_a_bound);
    tcase_add_test(t, branches_not_taken_spoil_nothing);
    tcase_add_test(t, frozen_lanes_spoil_nothing);
    tcase_add_test(t, unread_parts_go);
    tcase_add_test(t, simple_loops_go);
    tcase_add_test(t, gradients_in_place_share_the_loop);
    tcase_add_test(t, forward_mode_needs_no_bound);
    tcase_add_loop_test(t, jacobians, 0, PROGRAMS);
}

int main(void) { return support_run("control", add_tests); }
