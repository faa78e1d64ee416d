// SPDX-License-Identifier: Apache-2.0
// Shifts that cancel: the gradient of a function is, op for op, the one with stop_gradient of the shift.
#include "control_support.h"

#define HEAD                                                                                   \
    "function @0 f(%x: f64[4,6], %t: f64[], %w: f64[4,6], %k: bool[4,6]) {\n"                  \
    "  %h = reduce_max %x {axes=[1]} : f64[4]\n  %m = SHIFT %h : f64[4]\n"                     \
    "  %b = broadcast_in_dim %m {dims=[4,6], axes=[0]} : f64[4,6]\n"
#define SHIFTED HEAD "  %d = sub %x, %b : f64[4,6]\n"
#define NUMBER(name, x, dims, type)                                                            \
    "  %" name "0 = const {data=" x "} : f64[]\n"                                              \
    "  %" name " = broadcast_in_dim %" name "0 {dims=" dims ", axes=[]} : " type "\n"
#define QUOTIENT                                                                               \
    "  %s = reduce_sum %e {axes=[1]} : f64[4]\n"                                               \
    "  %z = broadcast_in_dim %s {dims=[4,6], axes=[0]} : f64[4,6]\n"                           \
    "  %p = div %e, %z : f64[4,6]\n"
#define RETURN(y) "  %r = mul " y ", %w : f64[4,6]\n  return %r\n}\n"
#define LOG_SUM                                                                                \
    "  %e = exp %d : f64[4,6]\n  %s = reduce_sum %e {axes=[1]} : f64[4]\n  %l = log %s : "     \
    "f64[4]\n"

// %m is SHIFT of %h.
static const struct {
    const char *text;
    bool cancels;
} programs[] = {
    {SHIFTED "  %e = exp %d : f64[4,6]\n" QUOTIENT RETURN("%p"), true},
    {SHIFTED LOG_SUM "  %y = add %m, %l : f64[4]\n  return %y\n}\n", true},
    {SHIFTED LOG_SUM "  %c = broadcast_in_dim %l {dims=[4,6], axes=[0]} : f64[4,6]\n"
                     "  %y = sub %d, %c : f64[4,6]\n" RETURN("%y"),
     true},
    // Masked before and after the exponential, by a number whose exponential is 0 and by 0.
    {SHIFTED NUMBER("n", "-1e9", "[4,6]", "f64[4,6]")
         NUMBER("o", "0", "[4,6]",
                "f64[4,6]") "  %q = select %k, %d, %n : f64[4,6]\n  %u = exp %q : f64[4,6]\n"
                            "  %e = select %k, %u, %o : f64[4,6]\n" QUOTIENT RETURN("%p"),
     true},
    // A temperature: a number, to the base 2; and a value.
    {SHIFTED NUMBER("n", "0.7", "[4,6]",
                    "f64[4,6]") "  %q = mul %n, %d : f64[4,6]\n"
                                "  %e = exp2 %q : f64[4,6]\n" QUOTIENT RETURN("%p"),
     true},
    {SHIFTED "  %v = broadcast_in_dim %t {dims=[4,6], axes=[]} : f64[4,6]\n"
             "  %q = div %d, %v : f64[4,6]\n"
             "  %e = exp %q : f64[4,6]\n" QUOTIENT RETURN("%p"),
     true},
    // Of numbers with a sign, taken off by an addition, through expm1 and log1p.
    {HEAD "  %g = neg %b : f64[4,6]\n  %d = add %g, %x : f64[4,6]\n  %u = expm1 %d : f64[4,6]\n"
          "  %y = log1p %u : f64[4,6]\n  %s = reduce_sum %y {axes=[1]} : f64[4]\n" NUMBER(
              "n", "6", "[4]", "f64[4]") "  %r = fma %n, %m, %s : f64[4]\n  return %r\n}\n",
     true},
    // Cross entropy: what was shifted is gathered, NaN outside.
    {SHIFTED LOG_SUM
     "  %j = iota {dims=[4,1], dtype=i32, axis=0} : i32[4,1]\n"
     "  %c = gather %d, %j {offset_dims=[], collapsed_dims=[1], index_map=[1], sizes=[1,1], "
     "operand_batch=[0], index_batch=[0], mode=1} : f64[4]\n"
     "  %y = sub %l, %c : f64[4]\n  return %y\n}\n",
     true},
    // Attention: the product comes before the quotient.
    {SHIFTED "  %e = exp %d : f64[4,6]\n  %s = reduce_sum %e {axes=[1]} : f64[4]\n"
             "  %o = dot_general %w, %e {lhs_contract=[1], rhs_contract=[1], lhs_batch=[], "
             "rhs_batch=[], "
             "precision=0} : f64[4,4]\n"
             "  %z = broadcast_in_dim %s {dims=[4,4], axes=[1]} : f64[4,4]\n"
             "  %y = div %o, %z : f64[4,4]\n  return %y\n}\n",
     true},
    {SHIFTED "  %e = exp %d : f64[4,6]\n  %u = cumsum %e {axis=1, reverse=0} : f64[4,6]\n"
             "  %l = log %u : f64[4,6]\n  %y = add %l, %b : f64[4,6]\n" RETURN("%y"),
     true},
    // The axes in another order, as one, and in parts.
    {SHIFTED "  %a = exp %d : f64[4,6]\n  %v = reshape %a {dims=[4,2,3]} : f64[4,2,3]\n"
             "  %c = transpose %v {axes=[1,2,0]} : f64[2,3,4]\n"
             "  %s = reduce_sum %c {axes=[0,1]} : f64[4]\n  %l = log %s : f64[4]\n"
             "  %y = add %l, %m : f64[4]\n  return %y\n}\n",
     true},
    // In a function of its own, which takes the number that masks.
    {"function @0 pick(%p: bool[4,6], %a: f64[4,6], %n: f64[]) {\n"
     "  %b = broadcast_in_dim %n {dims=[4,6], axes=[]} : f64[4,6]\n"
     "  %y = select %p, %a, %b : f64[4,6]\n  return %y\n}\n"
     "function @1 f(%x: f64[4,6], %t: f64[], %w: f64[4,6], %k: bool[4,6]) {\n"
     "  %h = reduce_max %x {axes=[1]} : f64[4]\n  %m = SHIFT %h : f64[4]\n"
     "  %b = broadcast_in_dim %m {dims=[4,6], axes=[0]} : f64[4,6]\n"
     "  %d = sub %x, %b : f64[4,6]\n  %n = const {data=-inf} : f64[]\n"
     "  %q = call %k, %d, %n {functions=[@0]} : f64[4,6]\n  %e = exp %q : f64[4,6]\n" QUOTIENT
         RETURN("%p"),
     true},

    // Results that do depend on it.
    {SHIFTED "  %e = exp %d : f64[4,6]\n" RETURN("%e"), false},
    {SHIFTED LOG_SUM "  %y = sub %m, %l : f64[4]\n  return %y\n}\n", false},
    {SHIFTED LOG_SUM "  %y = add %m, %l : f64[4]\n  return %y, %m\n}\n", false},
    {SHIFTED NUMBER(
         "n", "1", "[4,6]",
         "f64[4,6]") "  %u = exp %d : f64[4,6]\n  %e = add %u, %n : f64[4,6]\n" QUOTIENT
         RETURN("%p"),
     false},
    {SHIFTED NUMBER("n", "-0.25", "[4,6]",
                    "f64[4,6]") "  %q = max %d, %n : f64[4,6]\n"
                                "  %e = exp %q : f64[4,6]\n" QUOTIENT RETURN("%p"),
     false},
    {SHIFTED "  %q = mul %d, %w : f64[4,6]\n  %e = exp %q : f64[4,6]\n" QUOTIENT RETURN("%p"),
     false},
    {SHIFTED "  %q = mul %d, %d : f64[4,6]\n" RETURN("%q"), false},
    // What is taken off itself, which asks whether it is finite.
    {SHIFTED "  %q = sub %b, %b : f64[4,6]\n" RETURN("%q"), false},
    // Sums over rows of different shifts.
    {SHIFTED "  %e = exp %d : f64[4,6]\n  %s = reduce_sum %e {axes=[0]} : f64[6]\n"
             "  %z = broadcast_in_dim %s {dims=[4,6], axes=[1]} : f64[4,6]\n"
             "  %p = div %e, %z : f64[4,6]\n" RETURN("%p"),
     false},
    {SHIFTED "  %e = exp %d : f64[4,6]\n  %v = rev %e {axes=[0]} : f64[4,6]\n"
             "  %p = div %e, %v : f64[4,6]\n" RETURN("%p"),
     false},
};

// The function with an op in place of SHIFT.
static uint32_t with_shift(const char *text, const char *op)
{
    char whole[4096];
    const char *at = strstr(text, "SHIFT");
    snprintf(whole, sizeof whole, "jot ir 1\n%.*s%s%s", (int)(at - text), text, op, at + 5);
    return parse(whole);
}

static uint32_t gradient(uint32_t f)
{
    uint32_t back;
    require(pass_vjp(module, f, mask_of(graph(f)->n_params, 7), &back));
    return pass_simplify(module, pass_inline(module, back, 1000));
}

START_TEST(cancelling_shifts_are_stopped)
{
    uint32_t plain = with_shift(programs[_i].text, "variable"),
             stopped = with_shift(programs[_i].text, "stop_gradient");
    uint64_t state = seed;
    ck_assert_msg((gradient(plain) == gradient(stopped)) == programs[_i].cancels, "%s%s",
                  programs[_i].cancels ? "not stopped:\n" : "stopped:\n",
                  ir_graph_text(graph(gradient(plain))));
    struct ir_tensor *in = draw_inputs(plain, &state);
    check_differences(programs[_i].text, plain, mask_of(graph(plain)->n_params, 7), in, &state);
    check_transpose(programs[_i].text, plain, mask_of(graph(plain)->n_params, 7), in, &state);
}
END_TEST

static void add(TCase *t)
{
    tcase_add_loop_test(t, cancelling_shifts_are_stopped, 0,
                        sizeof programs / sizeof *programs);
}

int main(void) { return support_run("passes/shift", add); }
