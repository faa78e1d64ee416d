// SPDX-License-Identifier: Apache-2.0
// Loop-invariant code motion: what moves, what stays, and that values stay what they are; parts of
// constants move before differentiation.
#include "control_support.h"

#include "ir/control.h"

// The same bits, and how many nodes of the op the function itself has behind it.
static void check_moved(const char *text, enum ir_op op, int wanted)
{
    uint32_t f = parse(text), g = pass_hoist(module, f);
    uint64_t state = seed;
    struct ir_tensor *in = draw_inputs(f, &state), *a = evaluate(f, in), *b = evaluate(g, in);
    for (uint32_t i = 0; i < graph(f)->outputs.count; i++)
        ck_assert_msg(bits_equal(a[i], b[i]), "seed %" PRIu64 ": result %u of\n%s", seed, i,
                      text);
    ck_assert_msg(count_op(g, op) == wanted, "%d of %s, not %d, behind\n%s", count_op(g, op),
                  ir_op_get(op)->name, wanted, text);
}

// A loop of the body, which has a: f64[64,64] and s: f64[], over a carry s.
#define SCAN(body)                                                                             \
    "jot ir 1\n"                                                                               \
    "function @0(%a: f64[64,64], %s: f64[]) {\n" body "}\n"                                    \
    "function @1 f(%a: f64[64,64], %s: f64[]) {\n"                                             \
    "  %r = scan %a, %s {reverse=0, length=3, n_consts=1, n_carry=1, functions=[@0]} : "       \
    "f64[]\n"                                                                                  \
    "  return %r\n}\n"

START_TEST(folds_move)
{
    check_moved(SCAN("  %y = reduce_sum %a {axes=[0,1]} : f64[]\n"
                     "  %r = add %s, %y : f64[]\n  return %r\n"),
                IR_reduce_sum, 1);
    // With what they need; what is done to them by element stays.
    check_moved(SCAN("  %e = exp %a : f64[64,64]\n  %y = reduce_max %e {axes=[0,1]} : f64[]\n"
                     "  %z = sin %y : f64[]\n  %r = add %s, %z : f64[]\n  return %r\n"),
                IR_exp, 1);
    check_moved(SCAN("  %y = reduce_max %a {axes=[0,1]} : f64[]\n"
                     "  %z = sin %y : f64[]\n  %r = add %s, %z : f64[]\n  return %r\n"),
                IR_sin, 0);
}
END_TEST

// Loops that end move as folds do; not those that may go on, make more than they are of, or want what changes.
START_TEST(loops_that_end_move)
{
#define STEPS                                                                                  \
    "jot ir 1\nfunction @0(%x: f64[64], %i: f64[]) {\n"                                        \
    "  %e = sin %x : f64[64]\n  return %e\n}\n"                                                \
    "function @1(%x: f64[64], %i: f64[]) {\n  %e = sin %x : f64[64]\n  return %e, %e\n}\n"     \
    "function @2(%x: f64[64]) {\n"                                                             \
    "  %m = reduce_max %x {axes=[0]} : f64[]\n  %c = const {data=2} : f64[]\n"                 \
    "  %r = lt %m, %c : bool[]\n  return %r\n}\n"                                              \
    "function @3(%x: f64[64]) {\n"                                                             \
    "  %r = add %x, %x : f64[64]\n  return %r\n}\n"
#define AROUND(body)                                                                           \
    STEPS "function @4(%a: f64[64], %n: f64[8], %s: f64[64]) {\n" body "}\n"                   \
          "function @5 f(%a: f64[64], %n: f64[8], %s: f64[64]) {\n"                            \
          "  %r = scan %a, %n, %s {reverse=0, length=3, n_consts=2, n_carry=1, "               \
          "functions=[@4]} : f64[64]\n  return %r\n}\n"
#define INNER(of) "  %x = scan " of ", %n {reverse=0, length=8, n_consts=0, n_carry=1, "
    check_moved(AROUND(INNER("%a") "functions=[@0]} : f64[64]\n"
                                   "  %r = add %s, %x : f64[64]\n  return %r\n"),
                IR_scan, 2);
    check_moved(AROUND(INNER("%s") "functions=[@0]} : f64[64]\n"
                                   "  %r = add %s, %x : f64[64]\n  return %r\n"),
                IR_scan, 1);
    check_moved(AROUND("  %x, %y = scan %a, %n {reverse=0, length=8, n_consts=0, n_carry=1, "
                       "functions=[@1]} : f64[64], f64[8,64]\n"
                       "  %m = reduce_max %y {axes=[0]} : f64[64]\n"
                       "  %r = add %s, %m : f64[64]\n  return %r\n"),
                IR_scan, 1);
    check_moved(AROUND("  %x = while %a {n_consts=0, functions=[@2, @3]} : f64[64]\n"
                       "  %r = add %s, %x : f64[64]\n  return %r\n"),
                IR_while, 0);
}
END_TEST

// Elements that are taken of an array move where no cache has it near and they lie apart in it.
START_TEST(elements_that_lie_apart_move)
{
#define TAKEN(n, count, window)                                                                \
    "jot ir 1\nfunction @0(%t: f64[" n "], %i: i32[" count "], %s: f64[" count "," window      \
    "]) {\n"                                                                                   \
    "  %p = reshape %i {dims=[" count ",1]} : i32[" count ",1]\n"                              \
    "  %x = gather %t, %p {offset_dims=[1], collapsed_dims=[], operand_batch=[], "             \
    "index_batch=[], index_map=[0], sizes=[" window "], mode=0} : f64[" count "," window "]\n" \
    "  %r = add %s, %x : f64[" count "," window "]\n  return %r\n}\n"                          \
    "function @1 f(%t: f64[" n "], %i: i32[" count "], %s: f64[" count "," window "]) {\n"     \
    "  %r = scan %t, %i, %s {reverse=0, length=3, n_consts=2, n_carry=1, functions=[@0]} : "   \
    "f64[" count "," window "]\n  return %r\n}\n"
    check_moved(TAKEN("8192", "8", "1"), IR_gather, 1);
    check_moved(TAKEN("4096", "8", "1"), IR_gather, 0);
    check_moved(TAKEN("8192", "8", "16"), IR_gather, 0);
    check_moved(TAKEN("8192", "40000", "1"), IR_gather, 0);
}
END_TEST

// What a library's product reads is memory anyway; beside a small product it is not.
START_TEST(operands_of_products_move)
{
#define PRODUCT(n)                                                                             \
    SCAN("  %e = mul %a, %a : f64[64,64]\n  %t = transpose %e {axes=[1,0]} : f64[64,64]\n"     \
         "  %b = broadcast_in_dim %s {dims=[64," #n "], axes=[]} : f64[64," #n "]\n"           \
         "  %c = dot_general %t, %b {lhs_contract=[1], rhs_contract=[0], lhs_batch=[], "       \
         "rhs_batch=[], precision=0} : f64[64," #n "]\n"                                       \
         "  %r = reduce_max %c {axes=[0,1]} : f64[]\n  return %r\n")
    check_moved(PRODUCT(64), IR_mul, 1);
    check_moved(PRODUCT(2), IR_mul, 0);
}
END_TEST

START_TEST(what_changes_stays)
{
    check_moved(
        SCAN("  %b = broadcast_in_dim %s {dims=[64,64], axes=[]} : f64[64,64]\n"
             "  %c = mul %a, %b : f64[64,64]\n  %y = reduce_sum %c {axes=[0,1]} : f64[]\n"
             "  %r = add %s, %y : f64[]\n  return %r\n"),
        IR_reduce_sum, 0);
    // A short fold is written out; an elementwise op is as fast as a load.
    check_moved(SCAN("  %b = slice %a {starts=[0,0], limits=[1,4], strides=[1,1]} : f64[1,4]\n"
                     "  %y = reduce_sum %b {axes=[0,1]} : f64[]\n"
                     "  %r = add %s, %y : f64[]\n  return %r\n"),
                IR_reduce_sum, 0);
}
END_TEST

// Out of all loops that it is in, from a while with its test, and where nobody makes a trip.
START_TEST(loops_in_loops)
{
    static const char text[] =
        "jot ir 1\n"
        "function @0(%a: f64[64,64], %s: f64[]) {\n"
        "  %y = reduce_max %a {axes=[0,1]} : f64[]\n  %r = add %s, %y : f64[]\n  return %r\n}\n"
        "function @1(%a: f64[64,64], %s: f64[]) {\n"
        "  %y = reduce_min %a {axes=[0,1]} : f64[]\n  %r = lt %s, %y : bool[]\n  return %r\n}\n"
        "function @2(%a: f64[64,64], %s: f64[]) {\n"
        "  %r = scan %a, %s {reverse=0, length=3, n_consts=1, n_carry=1, functions=[@0]} : "
        "f64[]\n"
        "  %e = abs %r : f64[]\n  return %e\n}\n"
        "function @3 f(%a: f64[64,64], %s: f64[]) {\n"
        "  %r = while %a, %s {n_consts=1, max_trips=5, functions=[@1, @2]} : "
        "f64[]\n"
        "  return %r\n}\n";
    check_moved(text, IR_reduce_max, 1);
    check_moved(text, IR_reduce_min, 1);
}
END_TEST

// Of the constants of a loop that its trips read parts of, a trip of the gradient adds to these parts alone.
START_TEST(sums_of_parts)
{
    uint32_t f =
        parse(SCAN("  %p = slice %a {starts=[3,0], limits=[4,64], strides=[1,1]} : f64[1,64]\n"
                   "  %q = slice %a {starts=[5,0], limits=[6,64], strides=[1,1]} : f64[1,64]\n"
                   "  %b = broadcast_in_dim %s {dims=[1,64], axes=[]} : f64[1,64]\n"
                   "  %c = mul %p, %b : f64[1,64]\n  %d = sin %c : f64[1,64]\n"
                   "  %e = mul %d, %q : f64[1,64]\n  %r = reduce_sum %e {axes=[0,1]} : f64[]\n"
                   "  return %r\n"));
    uint64_t state = seed;
    uint32_t g, alone = 0;
    const bool wrt[] = {true, true};
    require(pass_grad(module, f, wrt, &g));
    g = pass_simplify(module, g);
    ir_for_each_node (graph(g), n) {
        if (n->op != IR_scan)
            continue;
        const struct ir_graph *body = graph((uint32_t)ir_scan_of(n).body);
        for (ir_id v = 0; v < body->values.count; v++)
            ck_assert_int_lt(ir_count(module, ir_type_of(body, v)), 64 * 64);
        alone++;
    }
    ck_assert_int_eq(alone, 2);
    check_differences("parts", g, inexact_inputs(graph(g)), draw_inputs(g, &state), &state);
}
END_TEST

// Three trips of a loop that takes 16 elements of t: f64[n], at indices that it carries.
#define TAKES(n, mode, body)                                                                   \
    "jot ir 1\nfunction @0(%t: f64[" n "], %p: i32[16]) {\n"                                   \
    "  %i = reshape %p {dims=[16,1]} : i32[16,1]\n"                                            \
    "  %x = gather %t, %i {offset_dims=[1], collapsed_dims=[], operand_batch=[], "             \
    "index_batch=[], index_map=[0], sizes=[1], mode=" mode "} : f64[16,1]\n"                   \
    "  %v = reshape %x {dims=[16]} : f64[16]\n  %two = const {data=2} : f64[]\n"               \
    "  %d = broadcast_in_dim %two {dims=[16], axes=[]} : f64[16]\n"                            \
    "  %m = mul %v, %d : f64[16]\n  %e = exp %m : f64[16]\n" body                              \
    "  %k = convert %w {dtype=i32} : i32[16]\n  %q = add %p, %k : i32[16]\n  return %q\n}\n"   \
    "function @1 f(%t: f64[" n "], %p: i32[16]) {\n"                                           \
    "  %q = scan %t, %p {reverse=0, length=3, n_consts=1, n_carry=1, functions=[@0]} : "       \
    "i32[16]\n  return %q\n}\n"

// Functions of what a loop takes are computed of the array where that is less, where the loop reads nothing else of it,
// and where all that is taken is of the array.
START_TEST(functions_of_what_is_taken_move)
{
    check_moved(TAKES("24", "0", "  %w = sqrt %e : f64[16]\n"), IR_exp, 1);
    check_moved(TAKES("24", "2", "  %w = sqrt %e : f64[16]\n"), IR_sqrt, 1);
    check_moved(TAKES("24", "0", "  %w = add %e, %v : f64[16]\n"), IR_add, 1);
    check_moved(TAKES("25", "0", "  %w = sqrt %e : f64[16]\n"), IR_exp, 0);
    check_moved(TAKES("24", "1", "  %w = sqrt %e : f64[16]\n"), IR_exp, 0);
    check_moved(TAKES("24", "0",
                      "  %s = convert %p {dtype=f64} : f64[16]\n  %r = mul %s, %v : f64[16]\n"
                      "  %w = add %e, %r : f64[16]\n"),
                IR_exp, 0);
    // Other values of it are read between two reads of one.
    check_moved(TAKES("16", "0",
                      "  %s = convert %p {dtype=f64} : f64[16]\n  %r = mul %s, %e : f64[16]\n"
                      "  %h = mul %s, %v : f64[16]\n  %a = add %r, %h : f64[16]\n"
                      "  %w = add %a, %e : f64[16]\n"),
                IR_exp, 0);
    // Differences of all pairs are no function of one.
    check_moved(TAKES("24", "0",
                      "  %g = reshape %e {dims=[1,16]} : f64[1,16]\n"
                      "  %r = sub %x, %g : f64[16,16]\n"
                      "  %w = reduce_max %r {axes=[0]} : f64[16]\n"),
                IR_exp, 0);
}
END_TEST

static void add(TCase *t)
{
    tcase_add_test(t, folds_move);
    tcase_add_test(t, loops_that_end_move);
    tcase_add_test(t, elements_that_lie_apart_move);
    tcase_add_test(t, operands_of_products_move);
    tcase_add_test(t, what_changes_stays);
    tcase_add_test(t, loops_in_loops);
    tcase_add_test(t, sums_of_parts);
    tcase_add_test(t, functions_of_what_is_taken_move);
}

int main(void) { return support_run("passes/hoist", add); }
