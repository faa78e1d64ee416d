// SPDX-License-Identifier: Apache-2.0
// Properties of whole transforms: residuals, Jacobians, derivatives of values, axes of maps,
// structural zeros, fma, simplification, and that all of it takes linear time without recursion.
#include "pass_support.h"

#include <time.h>

static double number(struct ir_tensor x) { return *(const double *)x.data; }
static double at(struct ir_tensor x, int i) { return ((const double *)x.data)[i]; }
static struct ir_tensor vector(int n, const double *x)
{
    return (struct ir_tensor){F64(n), (void *)(uintptr_t)x};
}
#define close_to(a, b) ck_assert_double_eq_tol((a), (b), 1e-12 * (1 + fabs((double)(b))))

static int count_op(uint32_t f, enum ir_op op)
{
    int n = 0;
    ir_for_each_node (graph(f), node)
        n += node->op == op;
    return n;
}

// -- Residuals --------------------------------------------------------------------------------

static uint32_t make_energy(void)
{
    // sum(tanh(x) * w) with w a scalar
    struct ir_builder b = ir_builder_make(module, "energy", IR_BUILD_PLAIN);
    ir_id x = ir_param(&b, F64(3)), w = ir_param(&b, F64_SCALAR);
    ir_id wide = ir_broadcast_in_dim(&b, w, 1, (int64_t[]){3}, NULL);
    ir_id y = ir_mul(&b, ir_tanh(&b, x), wide);
    ir_output(&b, ir_reduce(&b, IR_reduce_sum, y, 1, (int64_t[]){0}));
    return done(&b);
}

START_TEST(linear_parts_agree_with_tangents)
{
    uint32_t f = make_energy(), j;
    struct pass_split s;
    require(pass_linearize(module, f, mask_of(2, 3), &s));
    require(pass_jvp(module, f, mask_of(2, 3), &j, NULL));
    double x[] = {0.1, -0.7, 2}, dx[] = {1, 2, 3};
    struct ir_tensor in[8] = {vector(3, x), scalar_f64(2), vector(3, dx), scalar_f64(0.5)};
    struct ir_tensor *want = evaluate(j, in), *y = evaluate(s.forward, in), point[8];
    for (uint32_t i = 0; i < s.n_residuals; i++)
        point[i] = s.residuals[i].from == PASS_RESIDUAL_INPUT ? in[s.residuals[i].index]
                                                              : y[s.residuals[i].index];
    point[s.n_residuals] = in[2];
    point[s.n_residuals + 1] = in[3];
    ck_assert(bits_equal(y[0], want[0]));
    ck_assert(bits_equal(evaluate(s.linear, point)[0], want[1]));
}
END_TEST

// The broadcast scalar is kept as the scalar, which is an input; nothing is kept twice.
START_TEST(residuals_are_few)
{
    uint32_t f = make_energy();
    struct pass_split s;
    require(pass_linearize(module, f, mask_of(2, 3), &s));
    int inputs = 0;
    for (uint32_t i = 0; i < s.n_residuals; i++)
        inputs += s.residuals[i].from == PASS_RESIDUAL_INPUT;
    ck_assert_int_eq(inputs, 1);
    ck_assert_uint_eq(s.n_residuals, 3); // w, tanh x, 1 - tanh x
    ck_assert_int_eq(count_op(s.linear, IR_broadcast_in_dim), 2);
    // By w alone only tanh x is needed.
    require(pass_linearize(module, f, mask_of(2, 2), &s));
    ck_assert_uint_eq(s.n_residuals, 1);
}
END_TEST

// Residuals of many calls share vectors, and what differs between devices none with what does not.
START_TEST(packed_residuals_vary_as_they_are)
{
    enum { CALLS = 20 };
    struct strbuf text = strbuf_make(module->arena);
    strbuf_add(&text, "jot ir 1\nfunction @0(%x: f64[]<i:2>) {\n  %y = sin %x : f64[]<i:2>\n"
                      "  return %y\n}\nfunction @1(%x: f64[]) {\n  %y = sin %x : f64[]\n"
                      "  return %y\n}\nfunction @2 f(%a0: f64[]<i:2>, %b0: f64[]) {\n");
    for (int i = 0; i < CALLS; i++)
        strbuf_printf(&text,
                      "  %%a%d = call %%a%d {functions=[@0]} : f64[]<i:2>\n"
                      "  %%b%d = call %%b%d {functions=[@1]} : f64[]\n",
                      i + 1, i, i + 1, i);
    strbuf_printf(&text, "  return %%a%d, %%b%d\n}\n", CALLS, CALLS);
    uint32_t f = parse(text.text);
    struct pass_split s;
    require(pass_linearize(module, f, mask_of(2, 3), &s));
    ck_assert_uint_eq(s.n_residuals, 2);
    for (uint32_t i = 0; i < 2; i++) {
        ir_id tangent = graph(s.linear)->outputs.at[i];
        ck_assert_uint_eq(ir_type_of(graph(s.linear), tangent).varies,
                          ir_type_of(graph(f), i).varies);
    }
}
END_TEST

// A branch in each of many branches hands on what all below it keep, in few vectors.
START_TEST(residuals_of_nested_branches_are_packed)
{
    enum { DEPTH = 60, FEW = 25 };
    struct strbuf text = strbuf_make(module->arena);
    strbuf_add(&text, "jot ir 1\nfunction @0(%x: f64[]) {\n  %y = cos %x : f64[]\n"
                      "  return %y\n}\nfunction @1(%x: f64[]) {\n  %y = sin %x : f64[]\n"
                      "  return %y\n}\n");
    for (int i = 2; i < DEPTH + 2; i++)
        strbuf_printf(&text,
                      "function @%d f(%%x: f64[]) {\n  %%most = const {data=%d} : f64[]\n"
                      "  %%less = lt %%x, %%most : bool[]\n"
                      "  %%i = convert %%less {dtype=i32} : i32[]\n"
                      "  %%s = sin %%x : f64[]\n  %%u = add %%x, %%s : f64[]\n"
                      "  %%y = cond %%i, %%u {functions=[@0, @%d]} : f64[]\n"
                      "  return %%y\n}\n",
                      i, i == DEPTH / 2 ? 3 : 4, i - 1);
    uint32_t f = parse(text.text), g;
    struct pass_split s;
    require(pass_linearize(module, f, mask_of(1, 1), &s));
    ck_assert_uint_le(s.n_residuals, FEW);
    require(pass_grad(module, f, mask_of(1, 1), &g));
    // From 5 on at once, near pi half way, and from below 0 never: the last branch, that half way, the first.
    const double starts[] = {-1e-20, 0.5, 5};
    for (int k = 0; k < 3; k++) {
        double x = starts[k], slope = 1;
        int i = DEPTH + 1;
        for (; i > 1 && x < (i == DEPTH / 2 ? 3 : 4); i--)
            slope *= 1 + cos(x), x += sin(x);
        if (i > 1)
            slope *= 1 + cos(x), x += sin(x);
        slope *= i == 1 ? cos(x) : -sin(x);
        close_to(number(*evaluate(g, (struct ir_tensor[]){scalar_f64(starts[k])})), slope);
    }
}
END_TEST

// What is written twice is one value before its derivative, and its cotangents are summed there.
START_TEST(equal_values_have_one_derivative)
{
    struct ir_builder b = ir_builder_make(module, "twice", IR_BUILD_PLAIN);
    ir_id x = ir_param(&b, F64_SCALAR);
    ir_output(&b, ir_mul(&b, ir_sin(&b, x), ir_sin(&b, x)));
    uint32_t g;
    require(pass_grad(module, done(&b), mask_of(1, 1), &g));
    ck_assert_int_eq(count_op(g, IR_cos), 1);
    close_to(number(*evaluate(g, (struct ir_tensor[]){scalar_f64(0.3)})), sin(0.6));
}
END_TEST

START_TEST(zero_tangents_are_no_values)
{
    struct ir_builder b = ir_builder_make(module, "f", IR_BUILD_PLAIN);
    ir_id x = ir_param(&b, F64(3)), n = ir_param(&b, type_of_dims(JOT_I32, 1, (int64_t[]){3}));
    ir_output(&b, ir_sin(&b, x));
    ir_output(&b, ir_add(&b, n, n));
    ir_output(&b, ir_floor(&b, x));
    ir_output(&b, ir_exp(&b, ir_stop_gradient(&b, x)));
    uint32_t f = done(&b), j;
    bool nonzero[4];
    require(pass_jvp(module, f, mask_of(2, 1), &j, nonzero));
    ck_assert(nonzero[0] && !nonzero[1] && !nonzero[2] && !nonzero[3]);
    ck_assert_uint_eq(graph(j)->outputs.count, 5);
    require(pass_jvp(module, f, mask_of(2, 0), &j, nonzero));
    ck_assert_uint_eq(j, f);
    ck_assert_int_eq(pass_jvp(module, f, mask_of(2, 2), &j, nonzero), JOT_ERR_DTYPE);
}
END_TEST

// -- Structural zeros -------------------------------------------------------------------------

// sum(where(x > 0, f(x), 0)) at x = 0, where f' is infinite.
static double guarded_slope(enum ir_op op)
{
    struct ir_builder b = ir_builder_make(module, "where", IR_BUILD_PLAIN);
    ir_id x = ir_param(&b, F64_SCALAR), zero = ir_scalar(&b, JOT_F64, 0);
    ir_output(&b, ir_select(&b, ir_gt(&b, x, zero), ir_map1(&b, op, x), zero));
    uint32_t g;
    require(pass_grad(module, done(&b), mask_of(1, 1), &g));
    double once =
        number(evaluate(pass_support(module, g), (struct ir_tensor[]){scalar_f64(0)})[0]);
    uint32_t s = pass_simplify(module, g);
    ck_assert(
        bits_equal(evaluate(s, (struct ir_tensor[]){scalar_f64(0)})[0], scalar_f64(once)));
    return once;
}

START_TEST(where_keeps_nan_out)
{
    const enum ir_op ops[] = {IR_log, IR_sqrt, IR_rsqrt, IR_cbrt};
    for (int i = 0; i < 4; i++)
        ck_assert_msg(guarded_slope(ops[i]) == 0, "%s", ir_op_get(ops[i])->name);
}
END_TEST

START_TEST(ties_are_shared)
{
    struct ir_builder b = ir_builder_make(module, "ties", IR_BUILD_PLAIN);
    ir_id x = ir_param(&b, F64(4));
    ir_output(&b, ir_reduce(&b, IR_reduce_max, x, 1, (int64_t[]){0}));
    uint32_t f = done(&b), g;
    require(pass_grad(module, f, mask_of(1, 1), &g));
    struct ir_tensor ct = *evaluate(g, (struct ir_tensor[]){vector(4, (double[]){1, 3, 3, 2})});
    close_to(at(ct, 0), 0);
    close_to(at(ct, 1), 0.5);
    close_to(at(ct, 2), 0.5);
    b = ir_builder_make(module, "max", IR_BUILD_PLAIN);
    x = ir_param(&b, F64_SCALAR);
    ir_id y = ir_param(&b, F64_SCALAR);
    ir_output(&b, ir_max(&b, x, y));
    require(pass_grad(module, done(&b), mask_of(2, 3), &g));
    struct ir_tensor *both = evaluate(g, (struct ir_tensor[]){scalar_f64(2), scalar_f64(2)});
    close_to(number(both[0]), 0.5);
    close_to(number(both[1]), 0.5);
    // clamp: 0 on a boundary; abs: +1 at 0.
    b = ir_builder_make(module, "clamp", IR_BUILD_PLAIN);
    x = ir_param(&b, F64_SCALAR);
    ir_output(&b, ir_clamp(&b, ir_scalar(&b, JOT_F64, -1), x, ir_scalar(&b, JOT_F64, 1)));
    require(pass_grad(module, done(&b), mask_of(1, 1), &g));
    close_to(number(*evaluate(g, (struct ir_tensor[]){scalar_f64(1)})), 0);
    b = ir_builder_make(module, "abs", IR_BUILD_PLAIN);
    ir_output(&b, ir_abs(&b, ir_param(&b, F64_SCALAR)));
    require(pass_grad(module, done(&b), mask_of(1, 1), &g));
    close_to(number(*evaluate(g, (struct ir_tensor[]){scalar_f64(0)})), 1);
}
END_TEST

// reduce_prod and cumprod with zeros among the factors.
START_TEST(products_with_zeros)
{
    for (int zeros_among = 0; zeros_among < 3; zeros_among++) {
        double x[] = {2, zeros_among > 0 ? 0 : 3, zeros_among > 1 ? 0 : 5, 7, 0.5};
        struct ir_builder b = ir_builder_make(module, "prod", IR_BUILD_PLAIN);
        ir_id v = ir_param(&b, F64(5));
        ir_output(&b, ir_reduce(&b, IR_reduce_prod, v, 1, (int64_t[]){0}));
        uint32_t g;
        require(pass_grad(module, done(&b), mask_of(1, 1), &g));
        b = ir_builder_make(module, "cumprod", IR_BUILD_PLAIN);
        v = ir_param(&b, F64(5));
        v = ir_cumulative(&b, IR_cumprod, v, 0, false);
        ir_output(&b, ir_reduce(&b, IR_reduce_sum, v, 1, (int64_t[]){0}));
        uint32_t h;
        require(pass_grad(module, done(&b), mask_of(1, 1), &h));
        struct ir_tensor ct = *evaluate(g, (struct ir_tensor[]){vector(5, x)});
        struct ir_tensor cum = *evaluate(h, (struct ir_tensor[]){vector(5, x)});
        for (int i = 0; i < 5; i++) {
            double others = 1, sum = 0, prefix = 1;
            for (int k = 0; k < 5; k++) {
                others *= k == i ? 1 : x[k];
                prefix *= k == i ? 1 : x[k];
                sum += k >= i ? prefix : 0;
            }
            close_to(at(ct, i), others);
            close_to(at(cum, i), sum);
        }
    }
}
END_TEST

// Folds along axis 3 of 32, and of the same numbers in 3 axes: rules find room for axes of theirs.
static uint32_t fold_gradient(enum ir_op op, int rank, const int64_t *dims, int64_t axis)
{
    struct ir_builder b = ir_builder_make(module, "fold", IR_BUILD_PLAIN);
    ir_id x = ir_param(&b, type_of_dims(JOT_F64, rank, dims));
    ir_id y = op == IR_reduce_prod ? ir_reduce(&b, op, x, 1, &axis)
                                   : ir_cumulative(&b, op, x, axis, false);
    int64_t all[IR_MAX_RANK], n = ir_type_in(&b, y).rank;
    for (int i = 0; i < n; i++)
        all[i] = i;
    ir_output(&b, ir_reduce(&b, IR_reduce_sum, ir_sin(&b, y), (int)n, all));
    uint32_t g;
    require(pass_grad(module, done(&b), mask_of(1, 1), &g));
    return g;
}

START_TEST(folds_of_all_axes_there_can_be)
{
    static const enum ir_op ops[] = {IR_reduce_prod, IR_cumprod, IR_cummax, IR_cumlogsumexp};
    enum { OPS = sizeof ops / sizeof *ops };
    for (int i = 0; i < 2 * OPS; i++) {
        int64_t n = i < OPS ? 5 : 20, dims[IR_MAX_RANK], few[] = {2, n, 3};
        for (int k = 0; k < IR_MAX_RANK; k++)
            dims[k] = k == 1 ? 2 : k == 3 ? n : k == 30 ? 3 : 1;
        uint32_t many = fold_gradient(ops[i % OPS], IR_MAX_RANK, dims, 3);
        uint32_t same = fold_gradient(ops[i % OPS], 3, few, 1);
        uint64_t state = seed;
        struct ir_tensor x = draw(F64(2, n, 3), &state), wide = x;
        wide.type = type_of_dims(JOT_F64, IR_MAX_RANK, dims);
        struct ir_tensor y = *evaluate(many, &wide), z = *evaluate(same, &x);
        for (int k = 0; k < 6 * n; k++)
            close_to(at(y, k), at(z, k));
    }
}
END_TEST

// -- Jacobians --------------------------------------------------------------------------------

START_TEST(jacobians_agree)
{
    struct ir_builder b = ir_builder_make(module, "f", IR_BUILD_PLAIN);
    ir_id x = ir_param(&b, F64(3)), w = ir_param(&b, F64(2, 3));
    struct ir_dot dot = {
        .n_contract = 1, .lhs_contract = (int64_t[]){1}, .rhs_contract = (int64_t[]){0}};
    ir_output(&b, ir_tanh(&b, ir_dot_general(&b, w, x, &dot)));
    ir_output(&b, ir_mul(&b, x, x));
    uint32_t f = done(&b), forward, reverse;
    require(pass_jacfwd(module, f, mask_of(2, 3), &forward));
    require(pass_jacrev(module, f, mask_of(2, 3), &reverse));
    uint64_t state = seed;
    struct ir_tensor in[] = {draw(F64(3), &state), draw(F64(2, 3), &state)};
    struct ir_tensor *p = evaluate(forward, in), *q = evaluate(reverse, in);
    struct ir_tensor *s = evaluate(pass_simplify(module, forward), in);
    ck_assert_uint_eq(graph(forward)->outputs.count, 4);
    ck_assert(ir_type_equal(p[1].type, F64(2, 2, 3)));
    for (int i = 0; i < 4; i++) {
        ck_assert(distance(p[i], q[i]) < 1e-14);
        ck_assert(distance(p[i], s[i]) < 1e-14);
    }
    struct ir_tensor *y = evaluate(f, in);
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 3; k++)
            close_to(at(p[0], i * 3 + k),
                     (1 - at(y[0], i) * at(y[0], i)) * at(in[1], i * 3 + k));
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++)
            close_to(at(p[2], i * 3 + k), i == k ? 2 * at(in[0], i) : 0);
    // Contractions with a basis are gone, whole (in x) and in part (in w): the primal one is left.
    ck_assert_int_eq(count_op(forward, IR_dot_general), 3);
    ck_assert_int_eq(count_op(pass_simplify(module, forward), IR_dot_general), 1);
    s = evaluate(pass_simplify(module, reverse), in);
    for (int i = 0; i < 4; i++)
        ck_assert(distance(q[i], s[i]) < 1e-14);
}
END_TEST

// A basis [8,2,2,2] contracted along some of its axes, from either side, and what it simplifies to.
START_TEST(bases_are_changes_of_index)
{
    uint64_t state = seed;
    for (int bits = 1; bits < 8; bits++) {
        for (int side = 0; side < 2; side++) {
            struct ir_builder b = ir_builder_make(module, "basis", IR_BUILD_PLAIN);
            struct ir_type square = type_of_dims(JOT_I32, 2, (int64_t[]){8, 8});
            int64_t other_dims[] = {3, 2, 2, 2}, mine[3], theirs[3];
            int n = 0;
            for (int i = 0; i < 3; i++)
                if (bits >> i & 1) {
                    theirs[n] = 1 + (i + 1) % 3; // out of order
                    mine[n++] = i + 1;
                }
            ir_id x = ir_param(&b, type_of_dims(JOT_F64, 4, other_dims));
            ir_id p = ir_eq(&b, ir_iota(&b, square, 0), ir_iota(&b, square, 1));
            p = ir_reshape(&b, ir_convert(&b, p, JOT_F64), 4, (int64_t[]){8, 2, 2, 2});
            struct ir_dot dot = {.n_contract = n,
                                 .lhs_contract = side ? theirs : mine,
                                 .rhs_contract = side ? mine : theirs};
            ir_output(&b, ir_dot_general(&b, side ? x : p, side ? p : x, &dot));
            uint32_t f = done(&b), s = pass_simplify(module, f);
            ck_assert_int_eq(count_op(s, IR_dot_general), 0);
            struct ir_tensor in = draw(type_of_dims(JOT_F64, 4, other_dims), &state);
            ck_assert_msg(distance(*evaluate(f, &in), *evaluate(s, &in)) == 0, "axes %d", bits);
        }
    }
}
END_TEST

// (1 - a)^2 + 100 (b - a^2)^2 of a vector (a, b)
static ir_id rosenbrock(struct ir_builder *b, ir_id x)
{
    ir_id one = ir_scalar(b, JOT_F64, 1), part[2];
    for (int64_t i = 0; i < 2; i++)
        part[i] = ir_reshape(b, ir_slice(b, x, &i, (int64_t[]){i + 1}, NULL), 0, NULL);
    ir_id u = ir_sub(b, one, part[0]), v = ir_sub(b, part[1], ir_mul(b, part[0], part[0]));
    return ir_add(b, ir_mul(b, u, u), ir_mul(b, ir_scalar(b, JOT_F64, 100), ir_mul(b, v, v)));
}

static void check_rosenbrock(struct ir_tensor h, double a, double b)
{
    ck_assert(ir_type_equal(h.type, F64(2, 2)));
    close_to(at(h, 0), 2 - 400 * (b - 3 * a * a));
    close_to(at(h, 1), -400 * a);
    close_to(at(h, 2), -400 * a);
    close_to(at(h, 3), 200);
}

START_TEST(hessians)
{
    struct ir_builder b = ir_builder_make(module, "rosenbrock", IR_BUILD_PLAIN);
    ir_output(&b, rosenbrock(&b, ir_param(&b, F64(2))));
    uint32_t h;
    require(pass_hessian(module, done(&b), mask_of(1, 1), &h));
    struct ir_tensor x = vector(2, (double[]){0.3, -0.8});
    check_rosenbrock(*evaluate(h, &x), 0.3, -0.8);
    check_rosenbrock(*evaluate(pass_simplify(module, h), &x), 0.3, -0.8);
}
END_TEST

START_TEST(gradients_want_real_scalars)
{
    struct ir_builder b = ir_builder_make(module, "f", IR_BUILD_PLAIN);
    ir_output(&b, ir_sin(&b, ir_param(&b, F64(2, 3))));
    uint32_t g = 5;
    ck_assert_int_eq(pass_grad(module, done(&b), mask_of(1, 1), &g), JOT_ERR_SHAPE);
    ck_assert_ptr_nonnull(strstr(jot_error_message(), "f64[2,3], not a scalar"));
    b = ir_builder_make(module, "f", IR_BUILD_PLAIN);
    ir_output(&b, ir_param(&b, type_of_dims(JOT_C128, 0, NULL)));
    ck_assert_int_eq(pass_grad(module, done(&b), mask_of(1, 1), &g), JOT_ERR_DTYPE);
    ck_assert_uint_eq(g, 5);
}
END_TEST

// -- Derivatives of values --------------------------------------------------------------------

// u = sin(a t) exp(x) with x, t variables of a mapped point: u_t + u u_x - 0.01 u_xx, built by
// taking derivatives of values, and its gradient in a.
START_TEST(values_differentiate)
{
    struct ir_builder b = ir_builder_make(module, "residual", IR_BUILD_PLAIN);
    ir_id a = ir_param(&b, F64_SCALAR), t0 = ir_param(&b, F64_SCALAR);
    ir_id x0 = ir_param(&b, F64_SCALAR), t = ir_variable(&b, t0), x = ir_variable(&b, x0);
    ir_id u = ir_mul(&b, ir_sin(&b, ir_mul(&b, a, t)), ir_exp(&b, ir_mul(&b, x, x)));
    ir_id point[] = {t, x}, slope[2], u_xx, r;
    uint32_t before = b.graph->nodes.count;
    ck_assert(pass_gradient_in(&b, u, 2, point, slope));
    ck_assert(pass_gradient_in(&b, slope[1], 1, &x, &u_xx));
    // The forward pass is not made again.
    int sines = 0;
    for (uint32_t i = before; i < b.graph->nodes.count; i++)
        sines += b.graph->nodes.at[i].op == IR_sin || b.graph->nodes.at[i].op == IR_exp;
    ck_assert_int_eq(sines, 0);
    r = ir_sub(&b, ir_add(&b, slope[0], ir_mul(&b, u, slope[1])),
               ir_mul(&b, ir_scalar(&b, JOT_F64, 0.01), u_xx));
    ir_output(&b, r);
    uint32_t f = done(&b), g;
    double av = 1.3, tv = 0.4, xv = 0.7, e = exp(xv * xv), s = sin(av * tv), c = cos(av * tv);
    struct ir_tensor in[] = {scalar_f64(av), scalar_f64(tv), scalar_f64(xv)};
    double want = av * c * e + s * e * 2 * xv * s * e - 0.01 * (2 + 4 * xv * xv) * s * e;
    close_to(number(*evaluate(f, in)), want);
    close_to(number(*evaluate(pass_simplify(module, f), in)), want);
    ck_assert_int_eq(count_op(pass_simplify(module, f), IR_variable), 0);
    require(pass_grad(module, f, mask_of(3, 1), &g));
    double da = c * e - av * tv * s * e + 4 * xv * e * e * s * c * tv -
                0.01 * (2 + 4 * xv * xv) * tv * c * e;
    close_to(number(*evaluate(g, in)), da);
}
END_TEST

START_TEST(values_have_tangents_and_jacobians)
{
    struct ir_builder b = ir_builder_make(module, "f", IR_BUILD_PLAIN);
    ir_id x0 = ir_param(&b, F64(2)), dx = ir_param(&b, F64(2)), x = ir_variable(&b, x0);
    ir_id y = rosenbrock(&b, x), g, h, j, t, wide;
    ck_assert(pass_gradient_in(&b, y, 1, &x, &g));
    ck_assert(pass_jacobian_in(&b, g, x, &h));
    ck_assert(pass_tangent_in(&b, y, 1, &x, &dx, &t));
    wide = ir_concatenate(&b, 2, (ir_id[]){ir_sin(&b, x), ir_mul(&b, x, x)}, 0);
    ck_assert(pass_jacobian_in(&b, wide, x, &j)); // forward: more results than inputs
    ir_output(&b, h);
    ir_output(&b, t);
    ir_output(&b, g);
    ir_output(&b, j);
    uint32_t f = done(&b);
    double p[] = {0.3, -0.8}, d[] = {2, 3};
    struct ir_tensor in[] = {vector(2, p), vector(2, d)}, *out = evaluate(f, in);
    check_rosenbrock(out[0], p[0], p[1]);
    close_to(number(out[1]), 2 * at(out[2], 0) + 3 * at(out[2], 1));
    ck_assert(ir_type_equal(out[3].type, F64(4, 2)));
    close_to(at(out[3], 0), cos(p[0]));
    close_to(at(out[3], 1), 0);
    close_to(at(out[3], 7), 2 * p[1]);
    out = evaluate(pass_simplify(module, f), in);
    check_rosenbrock(out[0], p[0], p[1]);
}
END_TEST

// A cotangent that is also an operand: y = t + t s with t read by the linear part.
START_TEST(cotangents_may_be_operands)
{
    struct ir_builder b = ir_builder_make(module, "f", IR_BUILD_PLAIN);
    ir_id s0 = ir_param(&b, F64_SCALAR), t = ir_param(&b, F64_SCALAR), s = ir_variable(&b, s0);
    ir_id y = ir_add(&b, t, ir_mul(&b, t, ir_mul(&b, s, s))), ct;
    ck_assert(pass_pullback_in(&b, y, t, 1, &s, &ct)); // the cotangent is t itself
    ir_output(&b, ct);
    struct ir_tensor in[] = {scalar_f64(3), scalar_f64(5)};
    close_to(number(*evaluate(done(&b), in)), 5 * 5 * 2 * 3);
}
END_TEST

START_TEST(values_that_do_not_depend)
{
    struct ir_builder b = ir_builder_make(module, "f", IR_BUILD_PLAIN);
    ir_id x0 = ir_param(&b, F64(2)), w = ir_param(&b, F64_SCALAR), x = ir_variable(&b, x0), g,
          h;
    ir_id y = ir_sin(&b, w),
          z = ir_floor(&b, ir_reduce(&b, IR_reduce_sum, x, 1, (int64_t[]){0}));
    ck_assert(pass_gradient_in(&b, y, 1, &x, &g));
    ck_assert(pass_gradient_in(&b, z, 1, &x, &h));
    ir_output(&b, g);
    ir_output(&b, h);
    struct ir_tensor in[] = {vector(2, (double[]){1, 2}), scalar_f64(1)};
    struct ir_tensor *out = evaluate(done(&b), in);
    ck_assert(bits_equal(out[0], zeros(F64(2))) && bits_equal(out[1], zeros(F64(2))));
    ck_assert(!pass_gradient_in(&b, x, 1, &x, &g));
    ck_assert_ptr_nonnull(strstr(b.message, "not a scalar"));
}
END_TEST

// Calls on the path: their residuals are computed once more, the values are right.
START_TEST(values_differentiate_through_calls)
{
    struct ir_builder b = ir_builder_make(module, "inner", IR_BUILD_PLAIN);
    ir_id x = ir_param(&b, F64_SCALAR), w = ir_param(&b, F64_SCALAR);
    ir_output(&b, ir_sin(&b, ir_mul(&b, x, w)));
    uint32_t inner = done(&b);
    b = ir_builder_make(module, "outer", IR_BUILD_PLAIN);
    x = ir_param(&b, F64_SCALAR);
    w = ir_param(&b, F64_SCALAR);
    ir_id v = ir_variable(&b, x), in[] = {v, w}, y = ir_call(&b, IR_call, 1, &inner, 2, in), g,
          t;
    y = ir_mul(&b, y, v);
    ck_assert(pass_gradient_in(&b, y, 1, &v, &g));
    ck_assert(pass_tangent_in(&b, g, 1, &v, &w, &t));
    ir_output(&b, g);
    ir_output(&b, t);
    double a = 0.6, c = 1.7;
    struct ir_tensor point[] = {scalar_f64(a), scalar_f64(c)};
    struct ir_tensor *out = evaluate(done(&b), point);
    close_to(number(out[0]), sin(a * c) + a * c * cos(a * c));
    close_to(number(out[1]), c * (2 * c * cos(a * c) - a * c * c * sin(a * c)));
}
END_TEST

// -- Axes -------------------------------------------------------------------------------------

START_TEST(mapped_axes_go_anywhere)
{
    struct ir_builder b = ir_builder_make(module, "f", IR_BUILD_PLAIN);
    ir_id x = ir_param(&b, F64(2)), y = ir_param(&b, F64_SCALAR);
    ir_output(&b, ir_mul(&b, x, y));
    ir_output(&b, ir_exp(&b, y));
    uint32_t f = done(&b), v;
    require(pass_vmap_axes(module, f, (int32_t[]){-1, PASS_NO_AXIS}, (int32_t[]){1, 0}, 3,
                           PASS_UNNAMED, &v));
    double p[] = {1, 2, 3, 4, 5, 6};
    struct ir_tensor in[] = {{F64(2, 3), p}, scalar_f64(2)}, *out = evaluate(v, in);
    ck_assert(ir_type_equal(out[0].type, F64(2, 3)));
    for (int i = 0; i < 6; i++)
        close_to(at(out[0], i), 2 * p[i]);
    ck_assert(ir_type_equal(out[1].type, F64(3))); // repeated
    close_to(at(out[1], 2), exp(2));
    const int32_t in_axes[] = {1, PASS_NO_AXIS};
    require(
        pass_vmap_axes(module, f, in_axes, (int32_t[]){0, PASS_NO_AXIS}, 3, PASS_UNNAMED, &v));
    ck_assert(ir_type_equal(evaluate(v, in)[0].type, F64(3, 2)));
    ck_assert_int_ne(
        pass_vmap_axes(module, f, in_axes, (int32_t[]){PASS_NO_AXIS, 0}, 3, PASS_UNNAMED, &v),
        0);
    ck_assert_ptr_nonnull(strstr(jot_error_message(), "needs an out axis"));
    ck_assert_int_ne(
        pass_vmap_axes(module, f, (int32_t[]){2, 0}, (int32_t[]){0, 0}, 3, PASS_UNNAMED, &v),
        0);
    ck_assert_ptr_nonnull(strstr(jot_error_message(), "mapped axis 2 of input 0"));
}
END_TEST

// -- fma and simplification -------------------------------------------------------------------

START_TEST(products_fuse_into_sums)
{
    struct ir_builder b = ir_builder_make(module, "f", IR_BUILD_PLAIN);
    ir_id x = ir_param(&b, F64(3)), y = ir_param(&b, F64_SCALAR), shared = ir_mul(&b, x, x);
    ir_output(&b, ir_add(&b, ir_mul(&b, x, y), x));
    ir_output(&b, ir_sub(&b, ir_mul(&b, x, y), x));
    ir_output(&b, ir_sub(&b, x, ir_mul(&b, y, x)));
    ir_output(&b, ir_add(&b, shared, x));
    ir_output(&b, ir_add(&b, y, shared));
    uint32_t f = done(&b), g = pass_form_fma(module, f);
    ck_assert_int_eq(count_op(g, IR_fma), 3);
    ck_assert_int_eq(count_op(g, IR_mul), 1);
    double p[] = {0.1, 1.0 / 3, 7.7}, s = 0.3;
    struct ir_tensor in[] = {vector(3, p), scalar_f64(s)}, *out = evaluate(g, in);
    for (int i = 0; i < 3; i++) {
        ck_assert(at(out[0], i) == fma(p[i], s, p[i]));
        ck_assert(at(out[1], i) == fma(p[i], s, -p[i]));
        ck_assert(at(out[2], i) == fma(-s, p[i], p[i]));
        ck_assert(at(out[3], i) == p[i] * p[i] + p[i]);
    }
}
END_TEST

START_TEST(simplification_shrinks)
{
    struct ir_builder b = ir_builder_make(module, "f", IR_BUILD_PLAIN);
    ir_id x = ir_param(&b, F64(2, 3)), one = ir_scalar(&b, JOT_F64, 1);
    ir_id y = ir_transpose(&b, ir_transpose(&b, ir_mul(&b, x, one), (int64_t[]){1, 0}),
                           (int64_t[]){1, 0});
    y = ir_reshape(&b, ir_reshape(&b, y, 1, (int64_t[]){6}), 2, (int64_t[]){2, 3});
    ir_output(&b, ir_add(&b, ir_sin(&b, y), ir_sin(&b, ir_stop_gradient(&b, x))));
    uint32_t s = pass_simplify(module, done(&b));
    ck_assert_uint_eq(graph(s)->nodes.count, 3);
    ck_assert_uint_eq(pass_simplify(module, s), s);
}
END_TEST

// -- Size -------------------------------------------------------------------------------------

static uint32_t chain(int n)
{
    struct ir_builder b = ir_builder_make(module, "chain", IR_BUILD_PLAIN);
    ir_id x = ir_param(&b, F64_SCALAR), y = x;
    for (int i = 0; i < n; i++)
        y = i % 2 ? ir_mul(&b, y, x) : ir_sin(&b, y);
    ir_output(&b, y);
    return done(&b);
}

// A balanced tree of sums of products over one input.
static uint32_t tree(int n)
{
    struct ir_builder b = ir_builder_make(module, "tree", IR_BUILD_PLAIN);
    ir_id x = ir_param(&b, F64_SCALAR), *v = arena_array(module->arena, ir_id, n);
    for (int i = 0; i < n; i++)
        v[i] = ir_mul(&b, x, ir_scalar(&b, JOT_F64, i + 2));
    for (; n > 1; n = (n + 1) / 2)
        for (int i = 0; i < n / 2; i++) {
            v[i] = ir_add(&b, v[2 * i], v[2 * i + 1]);
            if (n % 2 && i == n / 2 - 1)
                v[n / 2] = v[n - 1];
        }
    ir_output(&b, v[0]);
    return done(&b);
}

static uint64_t cost(uint32_t (*make)(int), int n)
{
    support_teardown();
    support_setup();
    uint32_t f = make(n), g, h, v;
    uint64_t before = module->nodes_made;
    require(pass_grad(module, pass_form_fma(module, f), mask_of(1, 1), &g));
    require(pass_jvp(module, g, mask_of(1, 1), &h, NULL));
    require(pass_vmap(module, h, mask_of(2, 1), 4, &v, NULL));
    pass_simplify(module, pass_inline(module, v, 1000));
    ck_assert_int_eq(ir_verify(graph(v), NULL), 0);
    return module->nodes_made - before;
}

// Least times of a few rounds: others on the machine only add to them.
START_TEST(passes_take_linear_time)
{
    uint32_t (*const makers[])(int) = {chain, tree};
    for (int i = 0; i < 2; i++) {
        double few = 1e9, many = 1e9;
        for (int round = 0; round < 5 && (!round || many >= 15 * few); round++) {
            clock_t start = clock();
            uint64_t once = cost(makers[i], 20000);
            clock_t middle = clock();
            uint64_t more = cost(makers[i], 100000);
            few = fmin(few, (double)(middle - start + 1));
            many = fmin(many, (double)(clock() - middle));
            ck_assert_msg((double)more < 5.2 * (double)once,
                          "%" PRIu64 " and %" PRIu64 " nodes", once, more);
        }
        ck_assert_msg(many < 15 * few, "five times the nodes take %g times as long",
                      many / few);
    }
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_test(t, linear_parts_agree_with_tangents);
    tcase_add_test(t, residuals_are_few);
    tcase_add_test(t, packed_residuals_vary_as_they_are);
    tcase_add_test(t, residuals_of_nested_branches_are_packed);
    tcase_add_test(t, equal_values_have_one_derivative);
    tcase_add_test(t, zero_tangents_are_no_values);
    tcase_add_test(t, where_keeps_nan_out);
    tcase_add_test(t, ties_are_shared);
    tcase_add_test(t, products_with_zeros);
    tcase_add_test(t, folds_of_all_axes_there_can_be);
    tcase_add_test(t, jacobians_agree);
    tcase_add_test(t, bases_are_changes_of_index);
    tcase_add_test(t, hessians);
    tcase_add_test(t, gradients_want_real_scalars);
    tcase_add_test(t, values_differentiate);
    tcase_add_test(t, values_have_tangents_and_jacobians);
    tcase_add_test(t, cotangents_may_be_operands);
    tcase_add_test(t, values_that_do_not_depend);
    tcase_add_test(t, values_differentiate_through_calls);
    tcase_add_test(t, mapped_axes_go_anywhere);
    tcase_add_test(t, products_fuse_into_sums);
    tcase_add_test(t, simplification_shrinks);
    tcase_add_test(t, passes_take_linear_time);
}

int main(void) { return support_run("transforms", add_tests); }
