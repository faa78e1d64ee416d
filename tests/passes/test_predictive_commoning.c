// SPDX-License-Identifier: Apache-2.0
// Predictive commoning: what is carried from trip to trip, and that values stay what they are.
#include "control_support.h"

// The same bits; so many products in the body of the loop, and in front of it.
static void check_carried(const char *text, int inside, int in_front)
{
    uint32_t f = parse(text), g = pass_dce(module, pass_predictive_commoning(module, f));
    uint64_t state = seed;
    struct ir_tensor *in = draw_inputs(f, &state), *a = evaluate(f, in), *b = evaluate(g, in);
    for (uint32_t i = 0; i < graph(f)->outputs.count; i++)
        ck_assert_msg(bits_equal(a[i], b[i]), "seed %" PRIu64 ": result %u of\n%s", seed, i,
                      text);
    enum ir_op loop = count_op(g, IR_while) ? IR_while : IR_scan;
    const int64_t *bodies;
    int n = ir_bodies_of(find_op(g, loop), &bodies);
    int left = count_op((uint32_t)bodies[n - 1], IR_dot_general);
    ck_assert_msg(left == inside && count_op(g, IR_dot_general) == in_front,
                  "%d products in the loop and %d in front, not %d and %d, of\n%s", left,
                  count_op(g, IR_dot_general), inside, in_front, text);
}

#define DOT "{lhs_contract=[1], rhs_contract=[0], lhs_batch=[], rhs_batch=[]} : f32[40]\n"
#define MAP " : f32[40]\n"

// A loop over carries q and p, and rows r, with a: f32[40,40].
#define SCAN(body)                                                                             \
    "jot ir 1\n"                                                                               \
    "function @0(%a: f32[40,40], %q: f32[40], %p: f32[40], %r: f32[40]) {\n" body "}\n"        \
    "function @1 f(%a: f32[40,40], %q: f32[40], %p: f32[40], %r: f32[7,40]) {\n"               \
    "  %x, %y, %z = scan %a, %q, %p, %r {reverse=0, length=7, n_consts=1, n_carry=2, "         \
    "functions=[@0]} : f32[40], f32[40], f32[7,40]\n"                                          \
    "  return %x, %y, %z\n}\n"

// A half step of p, a step of q, and the other half step; what the first trip takes is computed once.
START_TEST(steps_of_leapfrog)
{
    check_carried(SCAN("  %g = dot_general %a, %q " DOT "  %h = tanh %g" MAP
                       "  %u = sub %p, %h" MAP "  %v = add %q, %u" MAP
                       "  %i = dot_general %a, %v " DOT "  %j = tanh %i" MAP
                       "  %w = sub %u, %j" MAP "  return %v, %w, %h\n"),
                  1, 1);
    // Several steps in a trip: the first product is the last one of the trip before.
    check_carried(SCAN("  %g = dot_general %a, %q " DOT "  %v = sub %q, %g" MAP
                       "  %h = dot_general %a, %v " DOT "  %w = sub %v, %h" MAP
                       "  %i = dot_general %a, %w " DOT "  %x = add %i, %p" MAP
                       "  return %w, %x, %r\n"),
                  2, 1);
    // Each of two products is what the trip before had for another.
    check_carried(SCAN("  %g = dot_general %a, %q " DOT "  %h = dot_general %a, %p " DOT
                       "  %i = dot_general %a, %h " DOT "  %u = add %g, %i" MAP
                       "  return %p, %h, %u\n"),
                  1, 2);
    static const char text[] =
        "jot ir 1\n"
        "function @0(%a: f32[40,40], %q: f32[40], %s: f32[40], %k: i32[]) {\n"
        "  %n = const {data=5} : i32[]\n  %l = lt %k, %n : bool[]\n  return %l\n}\n"
        "function @1(%a: f32[40,40], %q: f32[40], %s: f32[40], %k: i32[]) {\n"
        "  %n = const {data=1} : i32[]\n  %l = add %k, %n : i32[]\n"
        "  %g = dot_general %a, %q " DOT "  %v = sub %q, %g" MAP
        "  %h = dot_general %a, %v " DOT "  %t = add %s, %h" MAP "  return %v, %t, %l\n}\n"
        "function @2 f(%a: f32[40,40], %q: f32[40]) {\n  %k = const {data=0} : i32[]\n"
        "  %x, %s, %l = while %a, %q, %q, %k {n_consts=1, functions=[@0, @1]} : f32[40], "
        "f32[40], i32[]\n  return %x, %s, %l\n}\n";
    check_carried(text, 1, 1);
}
END_TEST

START_TEST(what_is_not_known_stays)
{
    // Of a row, which the next trip has another one of; of what another trip has not; elementwise ops.
    check_carried(SCAN("  %s = add %q, %r" MAP "  %g = dot_general %a, %s " DOT
                       "  %v = sub %q, %g" MAP "  %t = add %v, %r" MAP
                       "  %h = dot_general %a, %t " DOT "  return %v, %h, %r\n"),
                  2, 0);
    check_carried(SCAN("  %g = dot_general %a, %q " DOT "  %v = sub %p, %g" MAP
                       "  %h = dot_general %a, %v " DOT "  return %p, %v, %h\n"),
                  2, 0);
    check_carried(SCAN("  %g = tanh %q" MAP "  %v = sub %p, %g" MAP "  %h = tanh %v" MAP
                       "  %w = add %h, %p" MAP "  return %v, %w, %r\n"),
                  0, 0);
}
END_TEST

static void add(TCase *t)
{
    tcase_add_test(t, steps_of_leapfrog);
    tcase_add_test(t, what_is_not_known_stays);
}

int main(void) { return support_run("passes/predictive_commoning", add); }
