// SPDX-License-Identifier: Apache-2.0
// Products and folds of all trips of a loop: what comes out of it, what stays, and that values are what they
// were but for the order of sums.
#include "control_support.h"

// How many products or folds stand in the loop afterwards, and how many around it.
struct row {
    const char *what, *text;
    int inside, around;
    enum ir_op op;
};

#define HEAD                                                                                   \
    "jot ir 1\nfunction @0(%w: f64[16,32], %s: f64[16,32], %c: f64[8,16], %x: f64[8,16]) {\n"
#define TAIL(length, reverse, results, types)                                                  \
    "}\nfunction @1 f(%w: f64[16,32], %s: f64[16,32], %c: f64[8,16], %x: f64[" length          \
    ",8,16]) {\n  " results " = scan %w, %s, %c, %x {reverse=" reverse ", length=" length      \
    ", n_consts=1, n_carry=2, functions=[@0]} : f64[16,32], f64[8,16]" types                   \
    "\n  return " results "\n}\n"
#define DOT(to, x, y, of_x, of_y, type)                                                        \
    "  %" to " = dot_general %" x ", %" y " {lhs_contract=[" of_x "], rhs_contract=[" of_y     \
    "], lhs_batch=[], rhs_batch=[]} : " type "\n"
#define NEXT "  %t = tanh %c : f64[8,16]\n  %n = add %t, %x : f64[8,16]\n"
#define FOLD(x)                                                                                \
    "  %u = reduce_sum %" x " {axes=[0]} : f64[16]\n"                                          \
    "  %v = broadcast_in_dim %u {dims=[8, 16], axes=[1]} : f64[8,16]\n"
#define SUM DOT("p", "x", "d", "0", "0", "f64[16,32]")

static const struct row rows[] = {
    {"a product of rows, in front",
     HEAD DOT("z", "x", "w", "1", "0", "f64[8,32]") NEXT
     "  return %s, %n, %z\n" TAIL("64", "0", "%a, %b, %y", ", f64[64,8,32]"),
     0, 1, IR_dot_general},
    {"a row of what other ops make of rows, from the end",
     HEAD "  %e = sin %x : f64[8,16]\n" DOT("z", "w", "e", "0", "1", "f64[32,8]") NEXT
     "  %q = exp %z : f64[32,8]\n  return %s, %n, %q\n" TAIL("64", "1", "%a, %b, %y",
                                                             ", f64[64,32,8]"),
     0, 1, IR_dot_general},
    {"a product of a carry, behind",
     HEAD NEXT DOT("z", "n", "w", "1", "0", "f64[8,32]") "  return %s, %n, %z\n" TAIL(
         "64", "0", "%a, %b, %y", ", f64[64,8,32]"),
     0, 1, IR_dot_general},
    {"a sum of products of rows and carries, with another term",
     HEAD NEXT DOT("z", "c", "w", "1", "0",
                   "f64[8,32]") "  %d = tanh %z : f64[8,32]\n" SUM
                                "  %k = cos %w : f64[16,32]\n  %l = add %k, %s : f64[16,32]\n"
                                "  %m = add %p, %l : f64[16,32]\n  return %m, %n\n" TAIL(
                                    "64", "1", "%a, %b", ""),
     1, 1, IR_dot_general},
    {"two sums of products in one",
     HEAD NEXT DOT("z", "c", "w", "1", "0", "f64[8,32]") "  %d = tanh %z : f64[8,32]\n" SUM DOT(
         "q", "n", "d", "0", "0", "f64[16,32]") "  %l = add %s, %p : f64[16,32]\n"
                                                "  %m = add %l, %q : f64[16,32]\n"
                                                "  return %m, %n\n" TAIL("64", "0", "%a, %b",
                                                                         ""),
     1, 2, IR_dot_general},
    {"a sum that a trip reads stays",
     HEAD NEXT DOT("z", "c", "s", "1", "0",
                   "f64[8,32]") "  %d = tanh %z : f64[8,32]\n" SUM
                                "  %m = add %s, %p : f64[16,32]\n  return %m, %n\n" TAIL(
                                    "64", "0", "%a, %b", ""),
     2, 0, IR_dot_general},
    {"a sum that is given in each trip stays",
     HEAD NEXT DOT("z", "c", "w", "1", "0",
                   "f64[8,32]") "  %d = tanh %z : f64[8,32]\n" SUM
                                "  %m = add %s, %p : f64[16,32]\n  return %m, %n, %m\n" TAIL(
                                    "64", "0", "%a, %b, %y", ", f64[64,16,32]"),
     2, 0, IR_dot_general},
    {"a product that the carry is made of stays",
     HEAD DOT("z", "c", "w", "1", "0", "f64[8,32]")
         DOT("q", "z", "w", "1", "1", "f64[8,16]") "  %n = add %q, %x : f64[8,16]\n  return "
                                                   "%s, %n, %z\n" TAIL("64", "0", "%a, %b, %y",
                                                                       ", f64[64,8,32]"),
     2, 0, IR_dot_general},
    {"a product of rows with rows stays",
     HEAD NEXT DOT("z", "x", "x", "1", "1", "f64[8,8]") "  return %s, %n, %z\n" TAIL(
         "64", "0", "%a, %b, %y", ", f64[64,8,8]"),
     1, 0, IR_dot_general},
    {"a fold of rows that mixes lanes, in front",
     HEAD FOLD("x") NEXT
     "  %o = add %n, %v : f64[8,16]\n  return %s, %o\n" TAIL("64", "0", "%a, %b", ""),
     0, 1, IR_reduce_sum},
    {"a fold of rows where carries mix lanes as well",
     HEAD FOLD("x") "  %t = cumsum %c {axis=0, reverse=0} : f64[8,16]\n"
                    "  %n = add %t, %v : f64[8,16]\n  return %s, %n\n" TAIL("64", "0", "%a, %b",
                                                                            ""),
     1, 0, IR_reduce_sum},
    {"a fold of a carry stays",
     HEAD FOLD("c") NEXT
     "  %o = add %n, %v : f64[8,16]\n  return %s, %o\n" TAIL("64", "0", "%a, %b", ""),
     1, 0, IR_reduce_sum},
    {"rows out that are made of folds of carries and of other rows, behind",
     HEAD NEXT "  %e = exp %n : f64[8,16]\n" FOLD(
         "e") "  %k = cos %x : f64[8,16]\n  %l = mul %k, %v : f64[8,16]\n"
              "  %m = log %u : f64[16]\n  return %s, %n, %l, %m, %e\n" TAIL(
                  "64", "0", "%a, %b, %y, %z, %q", ", f64[64,8,16], f64[64,16], f64[64,8,16]"),
     0, 1, IR_reduce_sum},
    {"rows out that are made of folds of the carries before",
     HEAD NEXT FOLD("c") "  return %s, %n, %u\n" TAIL("64", "1", "%a, %b, %y", ", f64[64,16]"),
     0, 1, IR_reduce_sum},
    {"a carry to which folds of other carries and rows are added",
     HEAD NEXT "  %e = exp %n : f64[8,16]\n  %h = reduce_sum %e {axes=[0]} : f64[16]\n"
               "  %i = broadcast_in_dim %h {dims=[16, 32], axes=[0]} : f64[16,32]\n"
               "  %j = reduce_sum %x {axes=[0, 1]} : f64[]\n"
               "  %k = broadcast_in_dim %j {dims=[16, 32], axes=[]} : f64[16,32]\n"
               "  %l = add %i, %s : f64[16,32]\n  %m = add %l, %k : f64[16,32]\n"
               "  return %m, %n\n" TAIL("64", "1", "%a, %b", ""),
     0, 2, IR_reduce_sum},
    {"a carry that a trip reads and to which folds are added",
     HEAD NEXT "  %e = exp %n : f64[8,16]\n  %h = reduce_sum %e {axes=[0]} : f64[16]\n"
               "  %i = broadcast_in_dim %h {dims=[16, 32], axes=[0]} : f64[16,32]\n"
               "  %l = add %i, %s : f64[16,32]\n  return %l, %n, %s\n" TAIL(
                   "64", "1", "%a, %b, %y", ", f64[64,16,32]"),
     1, 0, IR_reduce_sum},
    {"rows out that are made of folds where carries mix lanes as well",
     HEAD FOLD("c") "  %t = cumsum %c {axis=0, reverse=0} : f64[8,16]\n"
                    "  %n = add %t, %x : f64[8,16]\n  return %s, %n, %u\n" TAIL(
                        "64", "0", "%a, %b, %y", ", f64[64,16]"),
     1, 0, IR_reduce_sum},
    {"few trips",
     HEAD DOT("z", "x", "w", "1", "0", "f64[8,32]") NEXT
     "  return %s, %n, %z\n" TAIL("4", "0", "%a, %b, %y", ", f64[4,8,32]"),
     1, 0, IR_dot_general},
};

START_TEST(products_of_all_trips)
{
    const struct row *r = &rows[_i];
    uint32_t f = parse(r->text), g = pass_loop_folds(module, pass_loop_products(module, f));
    g = pass_simplify(module, g);
    uint64_t state = seed;
    struct ir_tensor *in = draw_inputs(f, &state), *a = evaluate(f, in), *b = evaluate(g, in);
    int inside = count_op((uint32_t)ir_scan_of(find_op(g, IR_scan)).body, r->op),
        around = count_op(g, r->op);
    ck_assert_msg(inside == r->inside && around == r->around, "%s: %d inside and %d around",
                  r->what, inside, around);
    for (uint32_t i = 0; i < graph(f)->outputs.count; i++)
        ck_assert_msg(distance(a[i], b[i]) < 1e-12, "%s: result %u is %g away: seed %" PRIu64,
                      r->what, i, distance(a[i], b[i]), seed);
}
END_TEST

static void add(TCase *t)
{
    tcase_add_loop_test(t, products_of_all_trips, 0, sizeof rows / sizeof *rows);
}

int main(void) { return support_run("passes/loop_products", add); }
