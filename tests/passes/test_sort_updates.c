// SPDX-License-Identifier: Apache-2.0
// Updates in the order of their indices: the same bits, and what there is once for all that have the same indices.
#include "control_support.h"

// The same bits, with so many sorts in the function itself and so many whiles.
static void check_sorted(const char *text, int sorts, int whiles)
{
    uint32_t f = parse(text), g = pass_simplify(module, pass_sort_updates(module, f));
    uint64_t state = seed;
    struct ir_tensor *in = draw_inputs(f, &state), *a = evaluate(f, in), *b = evaluate(g, in);
    for (uint32_t i = 0; i < graph(f)->outputs.count; i++)
        ck_assert_msg(bits_equal(a[i], b[i]), "seed %" PRIu64 ": result %u of\n%s", seed, i,
                      text);
    ck_assert_msg(count_op(g, IR_sort) == sorts && count_op(g, IR_while) == whiles,
                  "%d sorts and %d whiles, not %d and %d, of\n%s", count_op(g, IR_sort),
                  count_op(g, IR_while), sorts, whiles, text);
}

#define ROWS                                                                                   \
    "{offset_dims=[1], collapsed_dims=[0], operand_batch=[], index_batch=[], index_map=[0], "
#define NUMBERS                                                                                \
    "{offset_dims=[], collapsed_dims=[0], operand_batch=[], index_batch=[], index_map=[0], "

// %i: 5000 indices, -3 to 60; of a function of x: TYPE[50,8], u: TYPE[5000,8], v: TYPE[5000], w: TYPE[8].
#define PROGRAM(type, body)                                                                    \
    "jot ir 1\nfunction @0 f(%x: " type "[50,8], %u: " type "[5000,8], %v: " type              \
    "[5000], %w: " type "[8], %r: i32[5000]) {\n"                                              \
    "  %m = const {data=63} : i32[]\n  %l = const {data=3} : i32[]\n"                          \
    "  %p = and %r, %m : i32[5000]\n  %q = sub %p, %l : i32[5000]\n"                           \
    "  %i = reshape %q {dims=[5000,1]} : i32[5000,1]\n" body "}\n"
#define ADD(op, mode, type)                                                                    \
    PROGRAM(type,                                                                              \
            "  %y = " op " %x, %i, %u " ROWS "mode=" mode "} : " type "[50,8]\n  return %y\n")

START_TEST(of_every_op_and_mode)
{
    check_sorted(ADD("scatter_add", "3", "f32"), 1, 1);
    check_sorted(ADD("scatter_add", "0", "f32"), 1, 1);
    check_sorted(ADD("scatter_add", "3", "f16"), 1, 1);
    check_sorted(ADD("scatter_add", "3", "c64"), 1, 1);
    check_sorted(ADD("scatter_mul", "3", "f64"), 1, 1);
    check_sorted(ADD("scatter_max", "3", "f32"), 1, 1);
    check_sorted(ADD("scatter_min", "0", "i32"), 1, 1);
}
END_TEST

// What rows are computed of is read in the order, and computed where it is added.
START_TEST(of_what_is_computed)
{
    check_sorted(
        PROGRAM("f32",
                "  %a = broadcast_in_dim %v {dims=[5000,8], axes=[0]} : f32[5000,8]\n"
                "  %b = broadcast_in_dim %w {dims=[5000,8], axes=[1]} : f32[5000,8]\n"
                "  %g = gather %x, %i " ROWS "sizes=[1,8], mode=0} : f32[5000,8]\n"
                "  %h = gather %x, %i " ROWS "sizes=[1,8], mode=1} : f32[5000,8]\n"
                "  %k = gather %x, %i " ROWS "sizes=[1,8], mode=3} : f32[5000,8]\n"
                "  %c = fma %a, %g, %b : f32[5000,8]\n  %d = mul %c, %u : f32[5000,8]\n"
                "  %s = gt %u, %a : bool[5000,8]\n"
                "  %e = select %s, %h, %k : f32[5000,8]\n"
                "  %o = const {data=2.5} : f32[]\n  %t = mul %e, %o : f32[5000,8]\n"
                "  %n = add %d, %t : f32[5000,8]\n"
                "  %y = scatter_add %x, %i, %n " ROWS "mode=3} : f32[50,8]\n  return %y\n"),
        1, 1);
}
END_TEST

// Two indices, rows of two axes, indices of two axes; an update of nothing but one number.
START_TEST(of_several_axes)
{
    check_sorted(
        "jot ir 1\nfunction @0 f(%x: f32[6,5,4,3], %r: i32[70,60,2], %u: f32[70,60,4,3]) {\n"
        "  %m = const {data=7} : i32[]\n  %i = and %r, %m : i32[70,60,2]\n"
        "  %y = scatter_add %x, %i, %u {offset_dims=[2,3], collapsed_dims=[0,1], "
        "operand_batch=[], index_batch=[], index_map=[1,0], mode=3} : f32[6,5,4,3]\n"
        "  %c = const {data=0.1} : f32[]\n"
        "  %b = broadcast_in_dim %c {dims=[70,60,4,3], axes=[]} : f32[70,60,4,3]\n"
        "  %z = scatter_add %x, %i, %b {offset_dims=[2,3], collapsed_dims=[0,1], "
        "operand_batch=[], index_batch=[], index_map=[1,0], mode=3} : f32[6,5,4,3]\n"
        "  return %y, %z\n}\n",
        1, 2);
}
END_TEST

// One order of all updates at the same indices, also of single numbers, and of those in a loop.
START_TEST(orders_are_shared)
{
    check_sorted(PROGRAM("f32", "  %a = scatter_add %x, %i, %u " ROWS "mode=3} : f32[50,8]\n"
                                "  %b = scatter_max %x, %i, %u " ROWS "mode=3} : f32[50,8]\n"
                                "  %c = slice %x {starts=[0,0], limits=[50,1], strides=[1,1]} "
                                ": f32[50,1]\n  %d = reshape %c {dims=[50]} : f32[50]\n"
                                "  %e = scatter_add %d, %i, %v " NUMBERS "mode=3} : f32[50]\n"
                                "  return %a, %b, %e\n"),
                 1, 3);
    static const char text[] =
        "jot ir 1\nfunction @0(%i: i32[5000,1], %u: f32[5000,8], %x: f32[50,8]) {\n"
        "  %y = scatter_add %x, %i, %u " ROWS "mode=3} : f32[50,8]\n  return %y\n}\n"
        "function @1 f(%i: i32[5000,1], %u: f32[5000,8], %x: f32[50,8]) {\n"
        "  %y = scan %i, %u, %x {reverse=0, length=3, n_consts=2, n_carry=1, functions=[@0]} "
        ": f32[50,8]\n  return %y\n}\n";
    check_sorted(text, 0, 0);
    uint32_t f = pass_hoist(module, pass_sort_updates(module, parse(text)));
    ck_assert_int_eq(count_op(f, IR_sort), 1);
}
END_TEST

// In a loop single numbers have an order too where the indices are the same in all trips, and no index has very many.
START_TEST(indices_that_stay)
{
#define TEXT(index, more)                                                                      \
    "jot ir 1\nfunction @0(%i: i32[5000], %u: f32[5000], %x: f32[500], %j: i32[5000]) {\n"     \
    "  %m = const {data=" more "} : i32[]\n  %p = and " index ", %m : i32[5000]\n"             \
    "  %q = reshape %p {dims=[5000,1]} : i32[5000,1]\n"                                        \
    "  %y = scatter_add %x, %q, %u " NUMBERS "mode=3} : f32[500]\n"                            \
    "  %o = const {data=1} : i32[]\n  %k = add %j, %o : i32[5000]\n  return %y, %k\n}\n"       \
    "function @1 f(%i: i32[5000], %u: f32[5000], %x: f32[500], %j: i32[5000]) {\n"             \
    "  %y, %z = scan %i, %u, %x, %j {reverse=0, length=3, n_consts=2, n_carry=2, "             \
    "functions=[@0]} : f32[500], i32[5000]\n  return %y, %z\n}\n"
    static const struct {
        const char *text;
        int sorts;
    } all[] = {{TEXT("%i", "255"), 1}, {TEXT("%j", "255"), 0}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        check_sorted(all[i].text, 0, 0);
        uint32_t f = pass_hoist(module, pass_sort_updates(module, parse(all[i].text)));
        ck_assert_int_eq(count_op(f, IR_sort), all[i].sorts);
    }
    // Without a loop they have none.
    check_sorted("jot ir 1\nfunction @0 f(%i: i32[5000,1], %u: f32[5000], %x: f32[500]) {\n"
                 "  %y = scatter_add %x, %i, %u " NUMBERS
                 "mode=3} : f32[500]\n  return %y\n}\n",
                 0, 0);
}
END_TEST

// Numbers that stay are in the order before the loop begins, those that change are read by the order.
START_TEST(numbers_that_stay)
{
#define VALUES(value)                                                                          \
    "jot ir 1\nfunction @0(%i: i32[5000], %u: f64[5000], %x: f64[500], %v: f64[5000]) {\n"     \
    "  %m = const {data=255} : i32[]\n  %p = and %i, %m : i32[5000]\n"                         \
    "  %q = reshape %p {dims=[5000,1]} : i32[5000,1]\n"                                        \
    "  %e = sin " value " : f64[5000]\n"                                                       \
    "  %y = scatter_add %x, %q, %e " NUMBERS "mode=3} : f64[500]\n"                            \
    "  %w = neg %v : f64[5000]\n  return %y, %w\n}\n"                                          \
    "function @1 f(%i: i32[5000], %u: f64[5000], %x: f64[500], %v: f64[5000]) {\n"             \
    "  %y, %z = scan %i, %u, %x, %v {reverse=0, length=3, n_consts=2, n_carry=2, "             \
    "functions=[@0]} : f64[500], f64[5000]\n  return %y, %z\n}\n"
    for (int stays = 0; stays < 2; stays++) {
        const char *text = stays ? VALUES("%u") : VALUES("%v");
        check_sorted(text, 0, 0);
        uint32_t f = pass_hoist(module, pass_sort_updates(module, parse(text)));
        ck_assert_int_eq(count_op(f, IR_sin), stays);
        ck_assert_int_eq(count_op(f, IR_gather), stays);
    }
}
END_TEST

// Sums of many updates of few indices are those of pieces, each of which has a lane by index; three updates fill none.
START_TEST(pieces_are_lanes)
{
    check_sorted("jot ir 1\nfunction @0 f(%x: f32[20,8], %r: i32[10003], %u: f32[10003,8]) {\n"
                 "  %m = const {data=31} : i32[]\n  %p = and %r, %m : i32[10003]\n"
                 "  %i = reshape %p {dims=[10003,1]} : i32[10003,1]\n"
                 "  %y = scatter_add %x, %i, %u " ROWS "mode=3} : f32[20,8]\n"
                 "  %z = scatter_add %x, %i, %u " ROWS
                 "mode=0} : f32[20,8]\n  return %y, %z\n}\n",
                 2, 2);
    check_sorted(
        "jot ir 1\nfunction @0 f(%x: f32[2,4,16], %r: i32[64,80,2], %u: f32[64,80,16]) {\n"
        "  %m = const {data=3} : i32[]\n  %i = and %r, %m : i32[64,80,2]\n"
        "  %y = scatter_add %x, %i, %u {offset_dims=[2], collapsed_dims=[0, 1], "
        "operand_batch=[], index_batch=[], index_map=[0, 1], mode=3} : f32[2,4,16]\n"
        "  return %y\n}\n",
        1, 1);
}
END_TEST

START_TEST(others_stay)
{
    // Single numbers, of which nothing else wants the order; no index twice; few; a window that moves.
    check_sorted(PROGRAM("f32", "  %c = slice %x {starts=[0,0], limits=[50,1], strides=[1,1]} "
                                ": f32[50,1]\n  %d = reshape %c {dims=[50]} : f32[50]\n"
                                "  %e = scatter_add %d, %i, %v " NUMBERS "mode=3} : f32[50]\n"
                                "  return %e\n"),
                 0, 0);
    check_sorted(ADD("scatter", "3", "f32"), 0, 0);
    check_sorted(
        "jot ir 1\nfunction @0 f(%x: f32[9000,8], %i: i32[4200,1], %u: f32[4200,8]) {\n"
        "  %y = scatter_add %x, %i, %u " ROWS "mode=3} : f32[9000,8]\n  return %y\n}\n",
        0, 0);
    check_sorted(
        "jot ir 1\nfunction @0 f(%x: f32[20,8], %i: i32[4200,1], %u: f32[4200,2,8]) {\n"
        "  %y = scatter_max %x, %i, %u {offset_dims=[1,2], collapsed_dims=[], "
        "operand_batch=[], index_batch=[], index_map=[0], mode=3} : f32[20,8]\n"
        "  return %y\n}\n",
        0, 0);
}
END_TEST

static void add(TCase *t)
{
    tcase_add_test(t, of_every_op_and_mode);
    tcase_add_test(t, of_what_is_computed);
    tcase_add_test(t, of_several_axes);
    tcase_add_test(t, orders_are_shared);
    tcase_add_test(t, indices_that_stay);
    tcase_add_test(t, numbers_that_stay);
    tcase_add_test(t, pieces_are_lanes);
    tcase_add_test(t, others_stay);
}

int main(void) { return support_run("passes/sort_updates", add); }
