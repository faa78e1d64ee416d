// SPDX-License-Identifier: Apache-2.0
// Loop-invariant code motion: what moves, what stays, and that values stay what they are.
#include "control_support.h"

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

static void add(TCase *t)
{
    tcase_add_test(t, folds_move);
    tcase_add_test(t, what_changes_stays);
    tcase_add_test(t, loops_in_loops);
}

int main(void) { return support_run("passes/hoist", add); }
