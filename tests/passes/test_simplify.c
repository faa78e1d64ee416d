// SPDX-License-Identifier: Apache-2.0
// Rewrites that look at more than one node: how many of an op they leave, and that bits stay what they are.
#include "control_support.h"
#include "ir/indexing.h"

// A sum of f64[6,3] with a window of two axes at a number along each.
#define WINDOW(at, shape)                                                                      \
    "function @0 f(%a: f64[6,3], %u: f64" shape ") {\n  %n = const {data=" at "} : i32[]\n"    \
    "  %m = broadcast_in_dim %n {dims=[1], axes=[]} : i32[1]\n"                                \
    "  %i = concatenate %m, %m {axis=0} : i32[2]\n"                                            \
    "  %y = scatter_add %a, %i, %u {offset_dims=[0,1], collapsed_dims=[], operand_batch=[], "  \
    "index_batch=[], index_map=[0,1], mode=3} : f64[6,3]\n  return %y\n}\n"

#define TEN "1,2,3,4,5,6,7,8,9,10,"
#define MANY "[" TEN TEN TEN TEN TEN TEN

// Rows of three arrays joined along an axis, at numbers.
#define ROWS(at, n)                                                                            \
    "function @0 f(%a: f64[2,1], %b: f64[2,2], %c: f64[2,1]) {\n"                              \
    "  %i = const {data=[" at "]} : i32[" n "]\n  %j = reshape %i {dims=[" n ",1]} : i32[" n   \
    ",1]\n"                                                                                    \
    "  %t = concatenate %a, %b, %c {axis=1} : f64[2,4]\n"                                      \
    "  %y = gather %t, %j {offset_dims=[0], collapsed_dims=[1], operand_batch=[], "            \
    "index_batch=[], index_map=[1], sizes=[2,1], mode=0} : f64[2," n "]\n  return %y\n}\n"

// A loop over a carry that is told of %t: f64[n].
#define TOLD(n, numbers)                                                                       \
    "function @0(%t: f64[" n "], %c: f64[]) {\n  %s = reduce_sum %t {axes=[0]} : f64[]\n"      \
    "  %y = add %s, %c : f64[]\n  return %y\n}\n"                                              \
    "function @1 f(%c: f64[]) {\n  %t = const {data=" numbers "} : f64[" n "]\n"               \
    "  %y = scan %t, %c {reverse=0, length=5, n_consts=1, n_carry=1, functions=[@0]} : f64[]"  \
    "\n  return %y\n}\n"

static const struct {
    const char *text;
    enum ir_op op;
    int left;
} rewrites[] = {
    // Transposes that meet again behind elementwise ops, a scalar and a row beside them.
    {"function @0 f(%a: f64[3,5], %b: f64[3,5], %r: f64[5]) {\n"
     "  %t = transpose %a {axes=[1,0]} : f64[5,3]\n  %u = transpose %b {axes=[1,0]} : "
     "f64[5,3]\n"
     "  %v = broadcast_in_dim %r {dims=[5,3], axes=[0]} : f64[5,3]\n"
     "  %c = const {data=2} : f64[]\n"
     "  %w = broadcast_in_dim %c {dims=[5,3], axes=[]} : f64[5,3]\n"
     "  %p = mul %t, %v : f64[5,3]\n  %q = max %u, %w : f64[5,3]\n  %s = add %p, %q : "
     "f64[5,3]\n"
     "  %e = exp %s : f64[5,3]\n  %y = transpose %e {axes=[1,0]} : f64[3,5]\n  return %y\n}\n",
     IR_transpose, 0},
    // Of three axes, whose order goes round.
    {"function @0 f(%a: f64[2,3,4], %r: f64[3]) {\n"
     "  %t = transpose %a {axes=[1,2,0]} : f64[3,4,2]\n"
     "  %v = broadcast_in_dim %r {dims=[3,4,2], axes=[0]} : f64[3,4,2]\n"
     "  %s = sub %t, %v : f64[3,4,2]\n  %y = transpose %s {axes=[2,0,1]} : f64[2,3,4]\n"
     "  return %y\n}\n",
     IR_transpose, 0},
    // Another order, or something else beside it: they stay.
    {"function @0 f(%a: f64[3,3], %b: f64[3,3]) {\n"
     "  %t = transpose %a {axes=[1,0]} : f64[3,3]\n  %s = add %t, %b : f64[3,3]\n"
     "  %y = transpose %s {axes=[1,0]} : f64[3,3]\n  return %y\n}\n",
     IR_transpose, 2},
    // A product that only its transpose reads.
    {"function @0 f(%a: f64[3,4], %b: f64[4,5]) {\n"
     "  %t = dot_general %a, %b {lhs_contract=[1], rhs_contract=[0], lhs_batch=[], "
     "rhs_batch=[], "
     "precision=0} : f64[3,5]\n  %y = transpose %t {axes=[1,0]} : f64[5,3]\n  return %y\n}\n",
     IR_transpose, 0},
    // A slice of what was joined.
    {"function @0 f(%a: f64[3], %b: f64[4]) {\n"
     "  %t = concatenate %a, %b {axis=0} : f64[7]\n"
     "  %y = slice %t {starts=[3], limits=[7], strides=[1]} : f64[4]\n  return %y\n}\n",
     IR_concatenate, 0},
    // Rows of it at numbers, also of a part of several; not where there are more than a few, or one is not inside.
    {ROWS("3,0,2,1,0", "5"), IR_gather, 0},
    {ROWS("3,4", "2"), IR_gather, 1},
    {ROWS("3,0,2,1,0,3,0,2,1,0,3,0,2,1,0,3,0", "17"), IR_gather, 1},
    // A sum with most of an operand at numbers; with little of it, or where the window is not inside.
    {WINDOW("1", "[5,2]"), IR_scatter_add, 0},
    {WINDOW("1", "[2,1]"), IR_scatter_add, 1},
    {WINDOW("2", "[5,2]"), IR_scatter_add, 1},
    // What a loop is told of numbers is in its body.
    {"function @0(%k: f64[3], %i: i32[2], %c: f64[3]) {\n  %j = convert %i {dtype=f64} : "
     "f64[2]\n"
     "  %o = reduce_sum %j {axes=[0]} : f64[]\n  %b = broadcast_in_dim %o {dims=[3], axes=[]} "
     ": "
     "f64[3]\n  %d = mul %c, %b : f64[3]\n  %y = add %d, %k : f64[3]\n  return %y\n}\n"
     "function @1 f(%a: f64[3], %c: f64[3]) {\n  %n = const {data=2} : i32[]\n"
     "  %m = broadcast_in_dim %n {dims=[1], axes=[]} : i32[1]\n"
     "  %i = concatenate %m, %m {axis=0} : i32[2]\n"
     "  %y = scan %a, %i, %c {reverse=0, length=5, n_consts=2, n_carry=1, functions=[@0]} : "
     "f64[3]\n  return %y\n}\n",
     IR_const, 0},
    // Of a few more numbers too.
    {TOLD("3", "[.5,2,3]"), IR_const, 0},
    {TOLD("65", MANY "1,2,3,4,5]"), IR_const, 1},
};

START_TEST(rewrites_keep_bits)
{
    char text[2048];
    snprintf(text, sizeof text, "jot ir 1\n%s", rewrites[_i].text);
    uint32_t f = parse(text), g = pass_simplify(module, f);
    uint64_t state = seed;
    struct ir_tensor *in = draw_inputs(f, &state), *a = evaluate(f, in), *b = evaluate(g, in);
    ck_assert_msg(bits_equal(a[0], b[0]), "seed %" PRIu64 ": other values of\n%s", seed, text);
    ck_assert_msg(count_op(g, rewrites[_i].op) == rewrites[_i].left, "%d of %s, not %d, of\n%s",
                  count_op(g, rewrites[_i].op), ir_op_get(rewrites[_i].op)->name,
                  rewrites[_i].left, text);
}
END_TEST

// Indices i32[6,2] in f64[6,4], made of %n = [0, 1, .., 5] and labels, and whether each is another's.
#define NUMBER(name, value)                                                                    \
    "  %" name "0 = const {data=" value "} : i32[]\n"                                          \
    "  %" name " = broadcast_in_dim %" name "0 {dims=[6], axes=[]} : i32[6]\n"
#define COLUMNS(a, b)                                                                          \
    "  %p = broadcast_in_dim %" a " {dims=[6,1], axes=[0]} : i32[6,1]\n"                       \
    "  %q = reshape %" b " {dims=[6,1]} : i32[6,1]\n"                                          \
    "  %i = concatenate %p, %q {axis=1} : i32[6,2]\n"
static const struct {
    const char *indices;
    bool are;
} updates[] = {
    // As x[arange(6), l] is written: a number below zero counts from the end.
    {NUMBER("z", "0")
         NUMBER("s", "6") "  %t = lt %n, %z : bool[6]\n  %a = add %n, %s : i32[6]\n  %w = "
                          "select %t, %a, %n : i32[6]\n" COLUMNS("w", "l"),
     true},
    {COLUMNS("n", "n"), true},
    {NUMBER("s", "5") "  %w = sub %s, %n : i32[6]\n" COLUMNS("w", "l"), true},
    // Indices that are not inside may be moved there, to that of another.
    {NUMBER("s", "3") "  %w = sub %s, %n : i32[6]\n" COLUMNS("l", "w"), false},
    {NUMBER("s", "1") "  %w = add %s, %n : i32[6]\n" COLUMNS("w", "l"), false},
    {"  %p = iota {dtype=i32, dims=[6,1], axis=0} : i32[6,1]\n"
     "  %q = reshape %l {dims=[6,1]} : i32[6,1]\n"
     "  %i = concatenate %p, %q {axis=1} : i32[6,2]\n",
     true},
    {COLUMNS("l", "l"), false},
    {NUMBER("s", "3") "  %w = rem %n, %s : i32[6]\n" COLUMNS("w", "l"), false},
    {NUMBER("w", "3") COLUMNS("w", "l"), false},
};

START_TEST(indices_tell_that_updates_are_unique)
{
    int mode = _i % IR_MODE_COUNT;
    char text[2048];
    snprintf(text, sizeof text,
             "jot ir 1\nfunction @0 f(%%x: f64[6,4], %%l: i32[6], %%u: f64[6]) {\n"
             "  %%n = iota {dtype=i32, dims=[6], axis=0} : i32[6]\n%s"
             "  %%y = scatter_add %%x, %%i, %%u {offset_dims=[], collapsed_dims=[0,1], "
             "operand_batch=[], index_batch=[], index_map=[0,1], mode=%d} : f64[6,4]\n"
             "  return %%y\n}\n",
             updates[_i / IR_MODE_COUNT].indices, mode);
    uint32_t f = parse(text), g = pass_simplify(module, f);
    uint64_t state = seed;
    struct ir_tensor *in = draw_inputs(f, &state), *a = evaluate(f, in), *b = evaluate(g, in);
    ck_assert_msg(bits_equal(a[0], b[0]), "seed %" PRIu64 ": other values of\n%s", seed, text);
    ir_for_each_node (graph(g), n)
        if (n->op == IR_scatter_add)
            ck_assert_msg(ir_gather_of(n->attrs).unique == updates[_i / IR_MODE_COUNT].are,
                          "%s", text);
}
END_TEST

// Rows of two elements beside one another, whose windows meet.
START_TEST(windows_that_meet_are_not_unique)
{
    uint32_t f = parse("jot ir 1\nfunction @0 f(%x: f64[7], %u: f64[6,2]) {\n"
                       "  %i = iota {dtype=i32, dims=[6,1], axis=0} : i32[6,1]\n"
                       "  %y = scatter_add %x, %i, %u {offset_dims=[1], collapsed_dims=[], "
                       "operand_batch=[], index_batch=[], index_map=[0], mode=3} : f64[7]\n"
                       "  return %y\n}\n");
    ir_for_each_node (graph(pass_simplify(module, f)), n)
        if (n->op == IR_scatter_add)
            ck_assert(!ir_gather_of(n->attrs).unique);
}
END_TEST

static void add(TCase *t)
{
    tcase_add_loop_test(t, indices_tell_that_updates_are_unique, 0,
                        IR_MODE_COUNT * sizeof updates / sizeof *updates);
    tcase_add_test(t, windows_that_meet_are_not_unique);
    tcase_add_loop_test(t, rewrites_keep_bits, 0, sizeof rewrites / sizeof *rewrites);
}

int main(void) { return support_run("passes/simplify", add); }
