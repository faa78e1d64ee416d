// SPDX-License-Identifier: Apache-2.0
// Whiles that go on as long as any lane does: which become whiles of each lane, and that values stay what
// they are.
#include "control_support.h"

static void check_lanes(const char *text, int lanes)
{
    uint32_t f = parse(text), g = pass_while_lanes(module, f);
    uint64_t state = seed;
    struct ir_tensor *in = draw_inputs(f, &state), *a = evaluate(f, in), *b = evaluate(g, in);
    for (uint32_t i = 0; i < graph(f)->outputs.count; i++)
        ck_assert_msg(bits_equal(a[i], b[i]), "seed %" PRIu64 ": result %u of\n%s", seed, i,
                      text);
    int made = ir_while_of(find_op(g, IR_while)).batched;
    ck_assert_msg(made == lanes, "%d axes of lanes, not %d, of\n%s", made, lanes, text);
}

#define X "f32[9,4]"
#define TEST(body) "function @0(%w: f32[4], %x: " X ", %k: i32[9]) {\n" body "}\n"
#define STEP(body) "function @1(%w: f32[4], %x: " X ", %k: i32[9]) {\n" body "}\n"
#define WHILE(test, step)                                                                      \
    "jot ir 1\n" TEST(test)                                                                    \
        STEP(step) "function @2 f(%w: f32[4], %x: " X ", %r: i32[9]) {\n"                      \
                   "  %m = const {data=7} : i32[]\n  %k = and %r, %m : i32[9]\n"               \
                   "  %y, %l = while %w, %x, %k {n_consts=1, functions=[@0, @1]} : " X         \
                   ", i32[9]\n"                                                                \
                   "  return %y, %l\n}\n"
#define HOLDS "  %t = const {data=6} : i32[]\n  %p = lt %k, %t : bool[9]\n"
#define ANY HOLDS "  %a = reduce_or %p {axes=[0]} : bool[]\n  return %a\n"
#define BROAD(x)                                                                               \
    "  %w1 = broadcast_in_dim %w {dims=[9,4], axes=[1]} : " X "\n  %n = add " x ", %w1 : " X   \
    "\n"
#define COUNT "  %o = const {data=1} : i32[]\n  %c = add %k, %o : i32[9]\n"
#define KEPT                                                                                   \
    "  %q = broadcast_in_dim %p {dims=[9,4], axes=[0]} : bool[9,4]\n"                          \
    "  %y = select %q, %n, %x : " X "\n  %l = select %p, %c, %k : i32[9]\n  return %y, %l\n"

START_TEST(lanes_that_end_by_themselves)
{
    check_lanes(WHILE(ANY, HOLDS BROAD("%x") COUNT KEPT), 1);
    // A carry that never changes; numbers of a lane that are mixed.
    check_lanes(WHILE(ANY, HOLDS COUNT "  %l = select %p, %c, %k : i32[9]\n  return %x, %l\n"),
                1);
    check_lanes(WHILE(ANY, HOLDS "  %z = rev %x {axes=[1]} : " X "\n" BROAD("%z") COUNT KEPT),
                1);
}
END_TEST

START_TEST(other_whiles_stay)
{
    // Lanes that are mixed, by a step and by a test; others that do not keep what they have; another condition.
    check_lanes(WHILE(ANY, HOLDS "  %z = rev %x {axes=[0]} : " X "\n" BROAD("%z") COUNT KEPT),
                0);
#define LAST                                                                                   \
    "  %s = slice %k {starts=[8], limits=[9], strides=[1]} : i32[1]\n"                         \
    "  %u = reshape %s {dims=[]} : i32[]\n  %t = const {data=6} : i32[]\n"                     \
    "  %v = max %k, %u : i32[9]\n  %p = lt %v, %t : bool[9]\n"
    check_lanes(WHILE(LAST "  %a = reduce_or %p {axes=[0]} : bool[]\n  return %a\n",
                      LAST BROAD("%x") COUNT KEPT),
                0);
    check_lanes(WHILE(ANY, HOLDS BROAD("%x") COUNT "  %l = select %p, %c, %k : i32[9]\n"
                                                   "  return %n, %l\n"),
                0);
    check_lanes(WHILE("  %t = const {data=7} : i32[]\n  %p = lt %k, %t : bool[9]\n"
                      "  %a = reduce_and %p {axes=[0]} : bool[]\n  return %a\n",
                      "  %t = const {data=7} : i32[]\n  %p = lt %k, %t : bool[9]\n" BROAD("%x")
                          COUNT KEPT),
                0);
    check_lanes(WHILE(ANY, "  %t = const {data=9} : i32[]\n  %p = lt %k, %t : bool[9]\n" BROAD(
                               "%x") COUNT KEPT),
                0);
}
END_TEST

static void add(TCase *t)
{
    tcase_add_test(t, lanes_that_end_by_themselves);
    tcase_add_test(t, other_whiles_stay);
}

int main(void) { return support_run("passes/while_lanes", add); }
