// SPDX-License-Identifier: Apache-2.0
// Convolutions written out as products, and made what a library takes.
#include "ir/conv.h"
#include "pass_support.h"

// Each with the derivatives in x and in w for the cotangent y.
#define CONVOLUTION(x, w, y, how, size_x, size_w)                                              \
    "jot ir 1\nfunction @0 main(%0: " x ", %1: " w ") {\n"                                     \
    "  %2 = conv %0, %1 {" how ", sizes=[], precision=0, mode=2} : " y "\n"                    \
    "  %3 = conv %1, %2 {" how ", sizes=[" size_x "], precision=0, mode=0} : " x "\n"          \
    "  %4 = conv %0, %2 {" how ", sizes=[" size_w "], precision=0, mode=1} : " w "\n"          \
    "  return %2, %3, %4\n}\n"

static const char *const texts[] = {
    // As a library has it; one-sided padding; less than all of x; zeros between elements of x.
    CONVOLUTION("f64[2,3,7]", "f64[4,3,3]", "f64[2,4,4]",
                "strides=[2], low=[1], high=[1], lhs_dilation=[1], rhs_dilation=[1], groups=1, "
                "layout=0",
                "7", "3"),
    CONVOLUTION("f64[1,4,4,5]", "f64[6,2,2,3]", "f64[1,6,2,5]",
                "strides=[2,1], low=[1,1], high=[0,1], lhs_dilation=[1,1], rhs_dilation=[2,1], "
                "groups=2, layout=0",
                "4,5", "2,3"),
    CONVOLUTION(
        "f64[2,3,9]", "f64[4,3,2]", "f64[2,4,4]",
        "strides=[2], low=[-1], high=[0], lhs_dilation=[1], rhs_dilation=[1], groups=1, "
        "layout=0",
        "9", "2"),
    CONVOLUTION(
        "f64[2,5,4]", "f64[2,2,6]", "f64[2,8,6]",
        "strides=[1], low=[1], high=[-1], lhs_dilation=[2], rhs_dilation=[1], groups=2, "
        "layout=1",
        "5", "2"),
    // Strides of one, whose derivatives in x are convolutions: groups, dilations, padding of all kinds.
    CONVOLUTION("f64[1,4,4,5]", "f64[6,2,2,3]", "f64[1,6,4,5]",
                "strides=[1,1], low=[1,1], high=[1,1], lhs_dilation=[1,1], rhs_dilation=[2,1], "
                "groups=2, layout=0",
                "4,5", "2,3"),
    CONVOLUTION("f64[2,5,4]", "f64[3,2,6]", "f64[2,11,6]",
                "strides=[1], low=[3], high=[1], lhs_dilation=[2], rhs_dilation=[1], groups=2, "
                "layout=1",
                "5", "3"),
    CONVOLUTION(
        "f64[2,9,4]", "f64[6,3,2]", "f64[2,4,6]",
        "strides=[1], low=[-2], high=[1], lhs_dilation=[1], rhs_dilation=[2], groups=2, "
        "layout=2",
        "9", "3"),
    // Filters that have to be turned, and that have not.
    CONVOLUTION("f64[2,4,5,2]", "f64[2,2,2,3]", "f64[2,2,2,3]",
                "strides=[2,2], low=[0,0], high=[0,0], lhs_dilation=[1,1], rhs_dilation=[1,1], "
                "groups=1, layout=1",
                "4,5", "2,2"),
    CONVOLUTION("f64[2,4,5,2]", "f64[4,2,3,1]", "f64[2,2,2,4]",
                "strides=[2,2], low=[0,0], high=[0,0], lhs_dilation=[1,1], rhs_dilation=[1,1], "
                "groups=2, layout=2",
                "4,5", "2,3"),
};

static bool takes(const void *ctx, const int64_t *params, uint32_t count)
{
    struct conv_call c;
    ck_assert(conv_call_read(params, count, &c));
    return *(const bool *)ctx;
}

static int count_convolutions(const struct ir_graph *g, bool is_features_last)
{
    int count = 0;
    ir_for_each_node (g, n) {
        if (n->op != IR_conv)
            continue;
        const struct ir_conv c = ir_conv_of(n->attrs);
        ck_assert_int_eq(c.layout == CONV_FEATURES_LAST, is_features_last);
        for (int i = 0; i < c.n; i++) {
            ck_assert_int_eq(c.low[i], c.high[i]);
            ck_assert_int_ge(c.low[i], 0);
            ck_assert_int_eq(c.lhs_dilation[i], 1);
        }
        count++;
    }
    return count;
}

static void expect_same(uint32_t f, uint32_t made)
{
    struct ir_tensor in[2];
    uint64_t state = seed;
    for (int i = 0; i < 2; i++)
        in[i] = draw(ir_type_of(graph(f), (ir_id)i), &state);
    struct ir_tensor *want = evaluate(f, in), *got = evaluate(made, in);
    for (int i = 0; i < 3; i++)
        ck_assert_msg(distance(got[i], want[i]) < 1e-12, "seed %" PRIu64 ": result %d of %s",
                      seed, i, ir_graph_text(graph(made)));
}

START_TEST(are_what_they_were)
{
    static const bool no = false, yes = true;
    static const bool also = true;
    const struct pass_conv_library none = {takes, &no, false}, all = {takes, &yes, false},
                                   last = {takes, &also, true};
    uint32_t f = parse(texts[_i]);
    uint32_t products = pass_expand_convolutions(module, f, NULL),
             calls = pass_expand_convolutions(module, f, &all),
             features_last = pass_expand_convolutions(module, f, &last);
    ck_assert_int_eq(count_convolutions(graph(products), false), 0);
    ck_assert_int_eq(count_convolutions(graph(calls), false), 3);
    ck_assert_int_eq(count_convolutions(graph(features_last), true), 3);
    expect_same(f, products);
    expect_same(f, calls);
    expect_same(f, features_last);
    uint32_t refused = pass_expand_convolutions(module, f, &none);
    ck_assert_int_eq(count_convolutions(graph(refused), false), 0);
}
END_TEST

// Three factors of TF32 are products', and so are numbers that are not floats.
START_TEST(are_left_to_products)
{
    static const char *const kinds[] = {
        "jot ir 1\nfunction @0 main(%0: f32[2,3,7], %1: f32[4,3,3]) {\n"
        "  %2 = conv %0, %1 {strides=[1], low=[0], high=[0], lhs_dilation=[1], "
        "rhs_dilation=[1], groups=1, layout=0, sizes=[], precision=3, mode=2} : f32[2,4,5]\n"
        "  return %2\n}\n",
        "jot ir 1\nfunction @0 main(%0: i32[2,3,7], %1: i32[4,3,3]) {\n"
        "  %2 = conv %0, %1 {strides=[1], low=[0], high=[0], lhs_dilation=[1], "
        "rhs_dilation=[1], groups=1, layout=0, sizes=[], precision=0, mode=2} : i32[2,4,5]\n"
        "  return %2\n}\n",
        "jot ir 1\nfunction @0 main(%0: f32[2,0,7], %1: f32[4,0,3]) {\n"
        "  %2 = conv %0, %1 {strides=[1], low=[0], high=[0], lhs_dilation=[1], "
        "rhs_dilation=[1], groups=1, layout=0, sizes=[], precision=0, mode=2} : f32[2,4,5]\n"
        "  return %2\n}\n",
        "jot ir 1\nfunction @0 main(%0: f32[2,3], %1: f32[4,3]) {\n"
        "  %2 = conv %0, %1 {strides=[], low=[], high=[], lhs_dilation=[], "
        "rhs_dilation=[], groups=1, layout=0, sizes=[], precision=0, mode=2} : f32[2,4]\n"
        "  return %2\n}\n",
    };
    static const bool yes = true;
    const struct pass_conv_library all = {takes, &yes, false};
    uint32_t made = pass_expand_convolutions(module, parse(kinds[_i]), &all);
    ck_assert_int_eq(count_convolutions(graph(made), false), 0);
}
END_TEST

// The derivative in x alone, of n images of 8 positions.
static uint32_t derivative_in_x(int n, int features, int stride)
{
    char text[512];
    snprintf(text, sizeof text,
             "jot ir 1\nfunction @0 main(%%0: f32[%d,3,%d], %%1: f32[%d,%d,%d]) {\n"
             "  %%2 = conv %%0, %%1 {strides=[%d], low=[1], high=[1], lhs_dilation=[1], "
             "rhs_dilation=[1], groups=1, layout=0, sizes=[%d], precision=0, mode=0} : "
             "f32[%d,%d,%d]\n  return %%2\n}\n",
             features, 3, n, features, 8 / stride, stride, 8, n, 3, 8);
    return pass_expand_convolutions(module, parse(text), NULL);
}

static bool has_op(const struct ir_graph *g, enum ir_op op)
{
    ir_for_each_node (g, n)
        if (n->op == op)
            return true;
    return false;
}

// Small ones are convolutions by the kernel from its end on; sums over a matrix of windows are those of
// large ones, and those with strides.
START_TEST(derivatives_in_x_are_convolutions)
{
    ck_assert(has_op(graph(derivative_in_x(2, 4, 1)), IR_rev));
    ck_assert(!has_op(graph(derivative_in_x(2, 4, 2)), IR_rev));
    ck_assert(!has_op(graph(derivative_in_x(500, 64, 1)), IR_rev));
}
END_TEST

static void add(TCase *t)
{
    tcase_add_loop_test(t, are_what_they_were, 0, sizeof texts / sizeof *texts);
    tcase_add_loop_test(t, are_left_to_products, 0, 4);
    tcase_add_test(t, derivatives_in_x_are_convolutions);
}

int main(void) { return support_run("convolutions", add); }
