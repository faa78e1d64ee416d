// SPDX-License-Identifier: Apache-2.0
// Calls, checkpoints and custom derivative rules, through every nesting of transforms.
//
// The custom rules are wrong on purpose: they scale the derivative by 10 or 100, which tells
// whose rule was used.
#include "pass_support.h"

enum { SCALAR_RULE = 10 };

// x * sin(w x), elementwise over the broadcast shape.
static ir_id body(struct ir_builder *b, ir_id x, ir_id w)
{
    return ir_mul(b, x, ir_sin(b, ir_mul(b, w, x)));
}

static uint32_t make_body(struct ir_type t)
{
    struct ir_builder b = ir_builder_make(module, "body", IR_BUILD_PLAIN);
    ir_id x = ir_param(&b, t), w = ir_param(&b, t);
    ir_output(&b, body(&b, x, w));
    return done(&b);
}

// (x, w, dx, dw) -> scale * (dx cos x + dw w)
static uint32_t make_jvp_rule(struct ir_type t, double scale)
{
    struct ir_builder b = ir_builder_make(module, "rule", IR_BUILD_PLAIN);
    ir_id v[4];
    for (int i = 0; i < 4; i++)
        v[i] = ir_param(&b, t);
    ir_id sum = ir_add(&b, ir_mul(&b, v[2], ir_cos(&b, v[0])), ir_mul(&b, v[3], v[1]));
    ir_output(&b, ir_mul(&b, sum, ir_scalar_like(&b, sum, scale)));
    return done(&b);
}

// forward: (x, w) -> (y, cos x, w); backward: (cos x, w, ct) -> scale (ct cos x, ct w)
static void make_vjp_rule(struct ir_type t, double scale, uint32_t *forward, uint32_t *backward)
{
    struct ir_builder b = ir_builder_make(module, "forward", IR_BUILD_PLAIN);
    ir_id x = ir_param(&b, t), w = ir_param(&b, t);
    ir_output(&b, body(&b, x, w));
    ir_output(&b, ir_cos(&b, x));
    ir_output(&b, w);
    *forward = done(&b);
    b = ir_builder_make(module, "backward", IR_BUILD_PLAIN);
    ir_id c = ir_param(&b, t);
    w = ir_param(&b, t);
    ir_id ct = ir_param(&b, t);
    ct = ir_mul(&b, ct, ir_scalar_like(&b, ct, scale));
    ir_output(&b, ir_mul(&b, ct, c));
    ir_output(&b, ir_mul(&b, ct, w));
    *backward = done(&b);
}

// (x, w) -> the node with bodies, over a scalar type
static uint32_t make_caller(enum ir_op op, struct ir_type t)
{
    uint32_t functions[3] = {make_body(t)};
    int n = 1;
    if (op == IR_custom_jvp) {
        functions[1] = make_jvp_rule(t, SCALAR_RULE);
        n = 2;
    } else if (op == IR_custom_vjp) {
        make_vjp_rule(t, SCALAR_RULE, &functions[1], &functions[2]);
        n = 3;
    }
    struct ir_builder b = ir_builder_make(module, "caller", IR_BUILD_PLAIN);
    ir_id in[] = {ir_param(&b, t), ir_param(&b, t)};
    ir_output(&b, ir_call(&b, op, n, functions, 2, in));
    return done(&b);
}

static double number(struct ir_tensor x) { return *(const double *)x.data; }

// The derivatives of body and of the rules at (x, w).
struct truth {
    double x, w;
};
static struct truth true_slope(double x, double w)
{
    return (struct truth){sin(w * x) + x * w * cos(w * x), x * x * cos(w * x)};
}
static struct truth rule_slope(double x, double w)
{
    return (struct truth){SCALAR_RULE * cos(x), SCALAR_RULE * w};
}

#define close_to(a, b) ck_assert_double_eq_tol((a), (b), 1e-12 * (1 + fabs((double)(b))))

static void check_gradient(uint32_t f, double x, double w, struct truth want)
{
    uint32_t g;
    require(pass_grad(module, f, mask_of(2, 3), &g));
    struct ir_tensor *ct = evaluate(g, (struct ir_tensor[]){scalar_f64(x), scalar_f64(w)});
    close_to(number(ct[0]), want.x);
    close_to(number(ct[1]), want.w);
    uint32_t s = pass_simplify(module, pass_inline(module, g, 10000));
    ct = evaluate(s, (struct ir_tensor[]){scalar_f64(x), scalar_f64(w)});
    close_to(number(ct[0]), want.x);
    // By one input only: the rule sees zeros for the other.
    require(pass_grad(module, f, mask_of(2, 2), &g));
    ct = evaluate(g, (struct ir_tensor[]){scalar_f64(x), scalar_f64(w)});
    close_to(number(ct[0]), want.w);
}

static void check_tangent(uint32_t f, double x, double w, struct truth want)
{
    uint32_t j;
    require(pass_jvp(module, f, mask_of(2, 3), &j, NULL));
    struct ir_tensor *y = evaluate(
        j, (struct ir_tensor[]){scalar_f64(x), scalar_f64(w), scalar_f64(2), scalar_f64(3)});
    close_to(number(y[0]), x * sin(w * x));
    close_to(number(y[1]), 2 * want.x + 3 * want.w);
}

START_TEST(calls_differentiate)
{
    const enum ir_op ops[] = {IR_call, IR_checkpoint};
    for (int i = 0; i < 2; i++) {
        uint32_t f = make_caller(ops[i], F64_SCALAR);
        check_tangent(f, 0.7, 1.3, true_slope(0.7, 1.3));
        check_gradient(f, 0.7, 1.3, true_slope(0.7, 1.3));
    }
}
END_TEST

START_TEST(custom_jvp_is_used_both_ways)
{
    uint32_t f = make_caller(IR_custom_jvp, F64_SCALAR);
    check_tangent(f, 0.7, 1.3, rule_slope(0.7, 1.3));
    check_gradient(f, 0.7, 1.3, rule_slope(0.7, 1.3));
}
END_TEST

START_TEST(custom_vjp_is_used_backwards)
{
    uint32_t f = make_caller(IR_custom_vjp, F64_SCALAR);
    check_tangent(f, 0.7, 1.3, true_slope(0.7, 1.3)); // forward mode differentiates f
    check_gradient(f, 0.7, 1.3, rule_slope(0.7, 1.3));
}
END_TEST

// The gradient of the tangent of f for dx = 1, dw = 0, as a function of x and w.
static struct truth reverse_over_forward(uint32_t f, double x, double w)
{
    uint32_t j, g;
    require(pass_jvp(module, f, mask_of(2, 1), &j, NULL));
    struct ir_builder b = ir_builder_make(module, "tangent", IR_BUILD_PLAIN);
    ir_id in[] = {ir_param(&b, F64_SCALAR), ir_param(&b, F64_SCALAR),
                  ir_scalar(&b, JOT_F64, 1)};
    ir_id y = ir_call(&b, IR_call, 1, &j, 3, in);
    ir_output(&b, y + 1);
    require(pass_grad(module, done(&b), mask_of(2, 3), &g));
    struct ir_tensor *ct = evaluate(g, (struct ir_tensor[]){scalar_f64(x), scalar_f64(w)});
    return (struct truth){number(ct[0]), number(ct[1])};
}

// The derivative of the gradient in x along x, and along w.
static struct truth forward_over_reverse(uint32_t f, double x, double w)
{
    uint32_t g, j;
    double t[2];
    require(pass_grad(module, f, mask_of(2, 1), &g));
    for (uint32_t i = 0; i < 2; i++) {
        bool nonzero;
        require(pass_jvp(module, g, mask_of(2, 1u << i), &j, &nonzero));
        struct ir_tensor *y =
            evaluate(j, (struct ir_tensor[]){scalar_f64(x), scalar_f64(w), scalar_f64(1)});
        t[i] = nonzero ? number(y[1]) : 0;
    }
    return (struct truth){t[0], t[1]};
}

static struct truth reverse_over_reverse(uint32_t f, double x, double w)
{
    uint32_t g, h;
    require(pass_grad(module, f, mask_of(2, 1), &g));
    require(pass_grad(module, g, mask_of(2, 3), &h));
    struct ir_tensor *ct = evaluate(h, (struct ir_tensor[]){scalar_f64(x), scalar_f64(w)});
    return (struct truth){number(ct[0]), number(ct[1])};
}

START_TEST(second_derivatives_nest)
{
    double x = 0.7, w = 1.3, c = cos(w * x), s = sin(w * x);
    struct truth plain = {2 * w * c - x * w * w * s, 2 * x * c - x * x * w * s};
    struct truth rule = {-SCALAR_RULE * sin(x), 0};
    const struct {
        enum ir_op op;
        struct truth outer_reverse, outer_forward, twice_reverse;
    } cases[] = {
        {IR_call, plain, plain, plain},
        {IR_checkpoint, plain, plain, plain},
        {IR_custom_jvp, rule, rule, rule},
    };
    for (int i = 0; i < 3; i++) {
        uint32_t f = make_caller(cases[i].op, F64_SCALAR);
        struct truth a = reverse_over_forward(f, x, w), b = forward_over_reverse(f, x, w);
        struct truth r = reverse_over_reverse(f, x, w);
        close_to(a.x, cases[i].outer_reverse.x);
        close_to(a.w, cases[i].outer_reverse.w);
        close_to(b.x, cases[i].outer_forward.x);
        close_to(b.w, cases[i].outer_forward.w);
        close_to(r.x, cases[i].twice_reverse.x);
        close_to(r.w, cases[i].twice_reverse.w);
    }
}
END_TEST

START_TEST(custom_vjp_nests)
{
    double x = 0.7, w = 1.3, c = cos(w * x), s = sin(w * x);
    uint32_t f = make_caller(IR_custom_vjp, F64_SCALAR);
    // The gradient is the user's: its derivative is that of forward and backward.
    struct truth b = forward_over_reverse(f, x, w), r = reverse_over_reverse(f, x, w);
    close_to(b.x, -SCALAR_RULE * sin(x));
    close_to(b.w, 0);
    close_to(r.x, -SCALAR_RULE * sin(x));
    close_to(r.w, 0);
    // The tangent is f's, and its derivative in the point is too.
    struct truth a = reverse_over_forward(f, x, w);
    close_to(a.x, 2 * w * c - x * w * w * s);
    close_to(a.w, 2 * x * c - x * x * w * s);
}
END_TEST

// The transpose of the tangent of a custom_vjp is the user's backward function.
START_TEST(custom_vjp_tangent_transposes)
{
    uint32_t f = make_caller(IR_custom_vjp, F64_SCALAR), t;
    struct pass_split s;
    require(pass_linearize(module, f, mask_of(2, 3), &s));
    require(pass_transpose(module, s.linear, s.n_residuals, &t));
    double x = 0.7, w = 1.3;
    struct ir_tensor point[] = {scalar_f64(x), scalar_f64(w)}, in[16];
    struct ir_tensor *y = evaluate(s.forward, point);
    for (uint32_t i = 0; i < s.n_residuals; i++)
        in[i] = s.residuals[i].from == PASS_RESIDUAL_INPUT ? point[s.residuals[i].index]
                                                           : y[s.residuals[i].index];
    in[s.n_residuals] = scalar_f64(2);
    struct ir_tensor *ct = evaluate(t, in);
    close_to(number(ct[0]), 2 * SCALAR_RULE * cos(x));
    close_to(number(ct[1]), 2 * SCALAR_RULE * w);
    // And back again it is the tangent of f.
    uint32_t back;
    require(pass_transpose(module, t, s.n_residuals, &back));
    in[s.n_residuals + 1] = scalar_f64(3);
    struct truth slope = true_slope(x, w);
    close_to(number(evaluate(back, in)[0]), 2 * slope.x + 3 * slope.w);
}
END_TEST

// grad and vmap in both orders, over each choice of mapped inputs, against a loop.
static void check_mapped(enum ir_op op, uint64_t mapped)
{
    uint32_t f = make_caller(op, F64_SCALAR), g, one;
    double xs[] = {0.7, -0.4, 1.9}, ws[] = {1.3, 0.2, -0.8};
    struct ir_tensor in[4];
    const double *points[] = {xs, ws};
    for (int i = 0; i < 2; i++)
        in[i] = mapped >> i & 1 ? (struct ir_tensor){F64(3), (void *)(uintptr_t)points[i]}
                                : scalar_f64(points[i][0]);
    bool is_rule = op == IR_custom_jvp || op == IR_custom_vjp;
    struct truth want[3], sum = {0, 0};
    for (int i = 0; i < 3; i++) {
        double x = xs[mapped & 1 ? i : 0], w = ws[mapped & 2 ? i : 0];
        want[i] = is_rule ? rule_slope(x, w) : true_slope(x, w);
        sum.x += want[i].x;
        sum.w += want[i].w;
    }
    // vmap . grad
    bool batched[2];
    require(pass_grad(module, f, mask_of(2, 3), &g));
    require(pass_vmap(module, g, mask_of(2, mapped), 3, &one, batched));
    struct ir_tensor *ct = evaluate(one, in);
    for (int i = 0; i < 3; i++) {
        close_to(number(batched[0] ? lane(ct[0], i) : ct[0]), want[i].x);
        close_to(number(batched[1] ? lane(ct[1], i) : ct[1]), want[i].w);
    }
    // grad . vmap: the cotangent of an input that is not mapped is the sum over lanes.
    require(pass_vmap(module, f, mask_of(2, mapped), 3, &one, batched));
    require(pass_vjp(module, one, mask_of(2, 3), &g));
    double ones[] = {1, 1, 1};
    in[2] = (struct ir_tensor){F64(3), ones};
    ct = evaluate(g, in) + 1;
    for (int i = 0; i < 3; i++) {
        close_to(number(mapped & 1 ? lane(ct[0], i) : ct[0]), mapped & 1 ? want[i].x : sum.x);
        close_to(number(mapped & 2 ? lane(ct[1], i) : ct[1]), mapped & 2 ? want[i].w : sum.w);
    }
    // vmap . (forward, linear): the linear part alone, mapped over its tangents too.
    uint32_t j;
    require(pass_jvp(module, f, mask_of(2, 3), &j, NULL));
    require(pass_vmap(module, j, mask_of(4, mapped | 8), 3, &one, (bool[2]){false}));
    in[2] = scalar_f64(2);
    in[3] = (struct ir_tensor){F64(3), ws};
    struct ir_tensor *y = evaluate(one, in);
    for (int i = 0; i < 3; i++) {
        double x = xs[mapped & 1 ? i : 0], w = ws[mapped & 2 ? i : 0];
        struct truth t = op == IR_custom_jvp ? rule_slope(x, w) : true_slope(x, w);
        close_to(number(lane(y[1], i)), 2 * t.x + ws[i] * t.w);
    }
}

START_TEST(maps_and_gradients_nest)
{
    const enum ir_op ops[] = {IR_call, IR_checkpoint, IR_custom_jvp, IR_custom_vjp};
    for (int i = 0; i < 4; i++)
        for (uint64_t mapped = 1; mapped < 4; mapped++)
            check_mapped(ops[i], mapped);
}
END_TEST

// A rule that calls: the call mixes primals and tangents and has to be separated.
START_TEST(rules_may_call)
{
    struct ir_type t = F64_SCALAR;
    uint32_t functions[] = {make_body(t), 0}, rule = make_jvp_rule(t, SCALAR_RULE), g;
    struct ir_builder b = ir_builder_make(module, "calling", IR_BUILD_PLAIN);
    ir_id in[4];
    for (int i = 0; i < 4; i++)
        in[i] = ir_param(&b, t);
    ir_output(&b, ir_call(&b, IR_call, 1, &rule, 4, in));
    functions[1] = done(&b);
    b = ir_builder_make(module, "caller", IR_BUILD_PLAIN);
    in[0] = ir_param(&b, t);
    in[1] = ir_param(&b, t);
    ir_output(&b, ir_call(&b, IR_custom_jvp, 2, functions, 2, in));
    uint32_t f = done(&b);
    check_tangent(f, 0.7, 1.3, rule_slope(0.7, 1.3));
    check_gradient(f, 0.7, 1.3, rule_slope(0.7, 1.3));
    require(pass_grad(module, f, mask_of(2, 1), &g));
    struct truth r = reverse_over_reverse(f, 0.7, 1.3);
    close_to(r.x, -SCALAR_RULE * sin(0.7));
}
END_TEST

// A rule that is not linear in the tangents fails backwards with a message.
START_TEST(rules_must_be_linear)
{
    struct ir_type t = F64_SCALAR;
    struct ir_builder b = ir_builder_make(module, "square", IR_BUILD_PLAIN);
    ir_id v[4];
    for (int i = 0; i < 4; i++)
        v[i] = ir_param(&b, t);
    ir_output(&b, ir_exp(&b, v[2]));
    uint32_t functions[] = {make_body(t), done(&b)}, g = 77;
    b = ir_builder_make(module, "caller", IR_BUILD_PLAIN);
    v[0] = ir_param(&b, t);
    v[1] = ir_param(&b, t);
    ir_output(&b, ir_call(&b, IR_custom_jvp, 2, functions, 2, v));
    ck_assert_int_ne(pass_grad(module, done(&b), mask_of(2, 3), &g), JOT_OK);
    ck_assert_ptr_nonnull(strstr(jot_error_message(), "exp"));
    ck_assert_ptr_nonnull(strstr(jot_error_message(), "linear"));
    ck_assert_uint_eq(g, 77);
}
END_TEST

static int count_op(uint32_t f, enum ir_op op)
{
    int n = 0;
    ir_for_each_node (graph(f), node) {
        n += node->op == op;
        if (ir_op_class(node->op) == IR_CLASS_CALL)
            n += count_op((uint32_t)ir_field_find(node->attrs, IR_KEY_functions)->ints[0], op);
    }
    return n;
}

// checkpoint: the residuals are the inputs, and what is recomputed is not merged again.
START_TEST(checkpoint_recomputes)
{
    uint32_t f = make_caller(IR_checkpoint, F64(4)), g;
    struct pass_split s;
    require(pass_linearize(module, f, mask_of(2, 3), &s));
    ck_assert_uint_eq(s.n_residuals, 2);
    for (uint32_t i = 0; i < s.n_residuals; i++)
        ck_assert_int_eq(s.residuals[i].from, PASS_RESIDUAL_INPUT);
    require(pass_vjp(module, f, mask_of(2, 3), &g));
    g = pass_simplify(module, pass_inline(module, pass_simplify(module, g), 10000));
    ck_assert_int_eq(count_op(g, IR_sin), 2);
    ck_assert_int_eq(count_op(g, IR_checkpoint) + count_op(g, IR_call), 0);
    f = make_caller(IR_call, F64(4));
    require(pass_vjp(module, f, mask_of(2, 3), &g));
    g = pass_simplify(module, pass_inline(module, pass_simplify(module, g), 10000));
    ck_assert_int_eq(count_op(g, IR_sin), 1);
}
END_TEST

// A function that returns one value twice, and an input: cotangents of both add up.
START_TEST(results_may_repeat)
{
    struct ir_builder b = ir_builder_make(module, "twice", IR_BUILD_PLAIN);
    ir_id x = ir_param(&b, F64_SCALAR), y = ir_sin(&b, x);
    for (int i = 0; i < 2; i++)
        ir_output(&b, y);
    ir_output(&b, x);
    uint32_t f = done(&b), g;
    b = ir_builder_make(module, "caller", IR_BUILD_PLAIN);
    x = ir_param(&b, F64_SCALAR);
    y = ir_call(&b, IR_call, 1, &f, 1, &x);
    ir_id sum = ir_add(&b, y, ir_mul(&b, y + 1, ir_scalar(&b, JOT_F64, 2)));
    ir_output(&b, ir_add(&b, sum, ir_mul(&b, y + 2, ir_scalar(&b, JOT_F64, 5))));
    require(pass_grad(module, done(&b), mask_of(1, 1), &g));
    close_to(number(*evaluate(g, (struct ir_tensor[]){scalar_f64(0.3)})), 3 * cos(0.3) + 5);
}
END_TEST

// f_0 = sin, f_k(x) = f_{k-1}(f_{k-1}(x) * 0.9)
static uint32_t tower(int depth)
{
    struct ir_builder b = ir_builder_make(module, "leaf", IR_BUILD_PLAIN);
    ir_id x = ir_param(&b, F64_SCALAR);
    ir_output(&b, ir_sin(&b, x));
    uint32_t f = done(&b);
    for (int i = 0; i < depth; i++) {
        b = ir_builder_make(module, "level", IR_BUILD_PLAIN);
        x = ir_param(&b, F64_SCALAR);
        x = ir_call(&b, IR_call, 1, &f, 1, &x);
        x = ir_mul(&b, x, ir_scalar(&b, JOT_F64, 0.9));
        ir_output(&b, ir_call(&b, IR_call, 1, &f, 1, &x));
        f = done(&b);
    }
    return f;
}

static uint64_t cost_of_tower(int depth)
{
    support_teardown();
    support_setup();
    uint32_t f = tower(depth), g, h, v;
    uint64_t before = module->nodes_made;
    require(pass_grad(module, f, mask_of(1, 1), &g));
    require(pass_grad(module, g, mask_of(1, 1), &h));
    require(pass_vmap(module, h, mask_of(1, 1), 5, &v, NULL));
    pass_simplify(module, v);
    return module->nodes_made - before;
}

START_TEST(shared_calls_stay_linear)
{
    uint64_t once = cost_of_tower(12), twice = cost_of_tower(24);
    ck_assert_msg(twice < 2.2 * (double)once, "depth 12: %" PRIu64 " nodes, depth 24: %" PRIu64,
                  once, twice);
}
END_TEST

START_TEST(towers_differentiate)
{
    uint32_t f = tower(5), g;
    double h = 1e-6, y[2];
    for (int i = 0; i < 2; i++)
        y[i] = number(*evaluate(f, (struct ir_tensor[]){scalar_f64(0.8 + (i ? h : -h))}));
    require(pass_grad(module, f, mask_of(1, 1), &g));
    double slope = number(*evaluate(g, (struct ir_tensor[]){scalar_f64(0.8)}));
    ck_assert_double_eq_tol(slope, (y[1] - y[0]) / (2 * h), 1e-8);
}
END_TEST

// Integer operands of calls have no tangents; unused results and inputs go.
START_TEST(calls_lose_what_nothing_reads)
{
    struct ir_builder b = ir_builder_make(module, "pair", IR_BUILD_PLAIN);
    ir_id x = ir_param(&b, F64_SCALAR), y = ir_param(&b, F64_SCALAR);
    ir_output(&b, ir_sin(&b, x));
    ir_output(&b, ir_exp(&b, y));
    uint32_t f = done(&b);
    b = ir_builder_make(module, "caller", IR_BUILD_PLAIN);
    ir_id in[] = {ir_param(&b, F64_SCALAR), ir_param(&b, F64_SCALAR)};
    ir_id r = ir_call(&b, IR_call, 1, &f, 2, in);
    ir_output(&b, r + 1);
    uint32_t g = pass_dce(module, done(&b));
    ck_assert_int_eq(count_op(g, IR_sin), 0);
    ck_assert_int_eq(count_op(g, IR_exp), 1);
    ck_assert_uint_eq(graph(g)->n_params, 2);
    ck_assert_uint_eq(vec_last(&graph(g)->nodes).n_in, 1);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_test(t, calls_differentiate);
    tcase_add_test(t, custom_jvp_is_used_both_ways);
    tcase_add_test(t, custom_vjp_is_used_backwards);
    tcase_add_test(t, second_derivatives_nest);
    tcase_add_test(t, custom_vjp_nests);
    tcase_add_test(t, custom_vjp_tangent_transposes);
    tcase_add_test(t, maps_and_gradients_nest);
    tcase_add_test(t, rules_may_call);
    tcase_add_test(t, rules_must_be_linear);
    tcase_add_test(t, checkpoint_recomputes);
    tcase_add_test(t, results_may_repeat);
    tcase_add_test(t, shared_calls_stay_linear);
    tcase_add_test(t, towers_differentiate);
    tcase_add_test(t, calls_lose_what_nothing_reads);
}

int main(void) { return support_run("custom", add_tests); }
