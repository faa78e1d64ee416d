// SPDX-License-Identifier: Apache-2.0
// Transforms of functions and derivatives of values, nested in many ways.
#include "trace_support.h"

#include "ir/graph.h"
#include "trace/tracer.h"

static jot_value cube(jot_value x) { return jot_mul(x, jot_mul(x, x)); }
static jot_value wave(jot_value x, jot_value y) { return jot_sin(jot_mul(x, jot_exp(y))); }
static jot_value rosenbrock(jot_value x)
{
    jot_value a = jot_take(x, 0), b = jot_take(x, 1);
    return jot_add(jot_square(jot_sub(1, a)),
                   jot_mul(100, jot_square(jot_sub(b, jot_square(a)))));
}

static void call_and_check(jot_function f, size_t n_in, jot_array *const *in, int n_out,
                           int which, int n, const double *want, double tolerance)
{
    jot_executable *e = jot_jit(f);
    ck_assert_msg(e != NULL, "%s", jot_error_message());
    jot_array *out[9] = {NULL};
    must(jot_call_list(e, n_in, in, (size_t)n_out, out));
    check_numbers(out[which], n, want, tolerance);
    jot_arrays_release((size_t)n_out, out);
    jot_executable_release(e);
}

#define CALL(f, in, n_out, which, tolerance, ...)                                              \
    do {                                                                                       \
        const double want_[] = {__VA_ARGS__};                                                  \
        call_and_check((f), sizeof(in) / sizeof *(in), (in), (n_out), (which),                 \
                       (int)(sizeof want_ / sizeof *want_), want_, (tolerance));               \
    } while (0)

START_TEST(test_functions)
{
    jot_array *x[] = {jot_array_full(JOT_F64, 2)};
    CALL(jot_fn(cube), x, 1, 0, 0, 8);
    CALL(jot_grad(jot_fn(cube)), x, 1, 0, 1e-15, 12);
    CALL(jot_grad(jot_grad(jot_fn(cube))), x, 1, 0, 1e-15, 12);
    CALL(jot_grad(jot_grad(jot_grad(jot_fn(cube)))), x, 1, 0, 1e-15, 6);
    CALL(jot_value_and_grad(jot_fn(cube)), x, 2, 0, 0, 8);
    CALL(jot_value_and_grad(jot_fn(cube)), x, 2, 1, 1e-15, 12);
    CALL(jot_checkpoint(jot_fn(cube)), x, 1, 0, 0, 8);
    CALL(jot_grad(jot_checkpoint(jot_fn(cube))), x, 1, 0, 1e-15, 12);
    jot_arrays_release(1, x);
}
END_TEST

START_TEST(test_jvp_and_vjp)
{
    double X = 0.3, Y = 0.7, E = exp(Y), C = cos(X * E);
    jot_array *in[] = {jot_array_full(JOT_F64, X), jot_array_full(JOT_F64, Y),
                       jot_array_full(JOT_F64, 2), jot_array_full(JOT_F64, 3)};
    CALL(jot_jvp(jot_fn(wave)), in, 2, 0, 1e-15, sin(X * E));
    CALL(jot_jvp(jot_fn(wave)), in, 2, 1, 1e-14, C * E * (2 + 3 * X));
    jot_array *three[] = {in[0], in[1], in[2]};
    CALL(jot_jvp(jot_fn(wave), 1), three, 2, 1, 1e-14, 2 * C * X * E);
    CALL(jot_vjp(jot_fn(wave)), three, 3, 1, 1e-14, 2 * C * E);
    CALL(jot_vjp(jot_fn(wave)), three, 3, 2, 1e-14, 2 * C * E * X);
    CALL(jot_vjp(jot_fn(wave), 1), three, 2, 1, 1e-14, 2 * C * E * X);
    // jvp of vjp: the derivative of the cotangent of x in x is -2 E^2 sin(x E) for dx = 1.
    jot_array *six[] = {in[0],
                        in[1],
                        in[2],
                        jot_array_full(JOT_F64, 1),
                        jot_array_full(JOT_F64, 0),
                        jot_array_full(JOT_F64, 0)};
    CALL(jot_jvp(jot_vjp(jot_fn(wave))), six, 6, 4, 1e-14, -2 * E * E * sin(X * E));
    jot_arrays_release(4, in);
    jot_arrays_release(3, six + 3);
}
END_TEST

START_TEST(test_jacobians)
{
    const double at[2] = {-1.2, 1};
    jot_array *x[] = {jot_array_from(at, 2)};
    double h00 = 1200 * 1.44 - 400 + 2, h01 = 480, h11 = 200;
    CALL(jot_hessian(jot_fn(rosenbrock)), x, 1, 0, 1e-13, h00, h01, h01, h11);
    CALL(jot_jacfwd(jot_grad(jot_fn(rosenbrock))), x, 1, 0, 1e-13, h00, h01, h01, h11);
    CALL(jot_jacrev(jot_grad(jot_fn(rosenbrock))), x, 1, 0, 1e-13, h00, h01, h01, h11);
    CALL(jot_jacrev(jot_fn(rosenbrock)), x, 1, 0, 1e-13, -215.6, -88);
    jot_arrays_release(1, x);
}
END_TEST

// y . z scaled by x^2: three arguments of three shapes.
static jot_value scaled_product(jot_value x, jot_value y, jot_value z)
{
    jot_value last = jot_slice(z, 0, 0, 2);
    return jot_mul(jot_square(x), jot_sum(jot_mul(y, last)));
}

// Derivatives, tangents and cotangents are in the order of the list.
START_TEST(test_order_of_lists)
{
    const double xs = 3, ys[2] = {1, 10}, zs[3] = {2, 4, 7}, one = 1;
    jot_array *x = jot_array_from(&xs), *y = jot_array_from(ys, 2), *z = jot_array_from(zs, 3);
    jot_array *ct = jot_array_from(&one), *in[] = {x, y, z}, *back[] = {x, y, z, ct};
    jot_function f = jot_fn(scaled_product);
    CALL(jot_grad(f, 2, 0), in, 2, 0, 0, 9, 90, 0);
    CALL(jot_grad(f, 2, 0), in, 2, 1, 0, 252);
    CALL(jot_value_and_grad(f, 1, 2, 0), in, 4, 0, 0, 378);
    CALL(jot_value_and_grad(f, 1, 2, 0), in, 4, 1, 0, 18, 36);
    CALL(jot_value_and_grad(f, 1, 2, 0), in, 4, 2, 0, 9, 90, 0);
    CALL(jot_value_and_grad(f, 1, 2, 0), in, 4, 3, 0, 252);
    CALL(jot_vjp(f, 2, 0), back, 3, 1, 0, 9, 90, 0);
    CALL(jot_vjp(f, 2, 0), back, 3, 2, 0, 252);
    CALL(jot_jacfwd(f, 2, 0), in, 2, 0, 0, 9, 90, 0);
    CALL(jot_jacrev(f, 2, 0), in, 2, 1, 0, 252);
    CALL(jot_jacrev(jot_grad(f, 1, 0), 2, 1), in, 4, 0, 0, 9, 0, 0, 0, 9, 0);
    CALL(jot_jacrev(jot_grad(f, 1, 0), 2, 1), in, 4, 3, 0, 12, 24);
    CALL(jot_hessian(f, 2, 0), in, 4, 1, 0, 6, 60, 0);
    CALL(jot_hessian(f, 1, 0, 2), in, 9, 5, 0, 6, 60, 0);
    // The tangent of z, then that of x.
    jot_array *forward[] = {x, y, z, z, x}, *mapped[] = {x, y, z, jot_array_from(zs, 1, 3), x};
    CALL(jot_jvp(f, 2, 0), forward, 2, 1, 0, 9 * 42 + 6 * 42 * 3);
    CALL(jot_vmap(jot_jvp(f, 2, 0), JOT_NONE, JOT_NONE, JOT_NONE, 0, JOT_NONE), mapped, 2, 1, 0,
         9 * 42 + 6 * 42 * 3);
    jot_array_release(mapped[3]);
    jot_arrays_release(4, back);
}
END_TEST

static jot_value inner_product(jot_value x, jot_value y) { return jot_sum(jot_mul(x, y)); }

START_TEST(test_vmap)
{
    const double xs[6] = {1, 2, 3, 4, 5, 6}, ys[2] = {1, 10};
    jot_array *in[] = {jot_array_from(xs, 3, 2), jot_array_from(ys, 2)};
    CALL(jot_vmap(jot_fn(inner_product), 0, JOT_NONE), in, 1, 0, 0, 21, 43, 65);
    jot_arrays_release(2, in);
}
END_TEST

START_TEST(test_vmap_axes)
{
    const double xs[6] = {1, 2, 3, 4, 5, 6}, y3[3] = {1, 10, 100};
    jot_array *in[] = {jot_array_from(xs, 3, 2), jot_array_from(y3, 3)};
    CALL(jot_vmap(jot_fn(inner_product), 1, JOT_NONE), in, 1, 0, 0, 531, 642);
    CALL(jot_vmap(jot_fn(inner_product), -1, JOT_NONE), in, 1, 0, 0, 531, 642);
    // Gradients of each sample, stacked along the second axis.
    jot_function each = jot_grad(jot_fn(inner_product), 1);
    CALL(jot_vmap_axes(each, JOT_AXES(1, JOT_NONE), JOT_AXES(1)), in, 1, 0, 0, 1, 2, 3, 4, 5,
         6);
    CALL(jot_vmap(each, 1, JOT_NONE), in, 1, 0, 0, 1, 3, 5, 2, 4, 6);
    jot_arrays_release(2, in);
}
END_TEST

// What jvp and vjp put behind the arguments has axes of its own, or the first.
START_TEST(test_vmap_axes_of_tangents)
{
    const double xs[6] = {1, 2, 3, 4, 5, 6}, ys[2] = {1, 10};
    jot_array *rows = jot_array_from(xs, 3, 2), *y = jot_array_from(ys, 2);
    jot_array *cts = jot_array_from(xs, 3), *columns = jot_array_from(xs, 2, 3);
    jot_function back = jot_vjp(jot_fn(inner_product), 0);
    jot_array *many_cotangents[] = {y, y, cts};
    CALL(jot_vmap(back, JOT_NONE, JOT_NONE, 0), many_cotangents, 2, 1, 0, 1, 10, 2, 20, 3, 30);
    CALL(jot_vmap(back, JOT_NONE, JOT_NONE), many_cotangents, 2, 1, 0, 1, 10, 2, 20, 3, 30);
    jot_function forward = jot_jvp(jot_fn(inner_product), 1);
    jot_array *one_tangent[] = {rows, y, y}, *tangents[] = {y, y, columns};
    CALL(jot_vmap(forward, 0, JOT_NONE, JOT_NONE), one_tangent, 2, 1, 0, 21, 43, 65);
    CALL(jot_vmap(forward, JOT_NONE, JOT_NONE, 1), tangents, 2, 1, 0, 41, 52, 63);
    // Of all arguments twice: x, y, dx, dy, then those of the four.
    jot_function second = jot_jvp(jot_jvp(jot_fn(inner_product)), 1);
    jot_array *in[] = {y, y, y, y, rows};
    CALL(jot_vmap(second, JOT_NONE, JOT_NONE, JOT_NONE, JOT_NONE, 0), in, 4, 2, 0, 21, 43, 65);
    jot_arrays_release(4, (jot_array *[]){rows, y, cts, columns});
}
END_TEST

static jot_value total_of_map(jot_value x, jot_value y)
{
    jot_value r;
    JOT_VMAP ((x), (r)) {
        r = JOT_GRAD(wave, x, y);
    }
    return jot_sum(r);
}

// grad of vmap of grad: d/dy sum_i d/dx sin(x_i e^y), and the same as a sum of scalars.
START_TEST(test_grad_of_vmap_of_grad)
{
    const double xs[3] = {0.1, 0.4, -0.8};
    double y = 0.3, want = 0, dx[3];
    for (int i = 0; i < 3; i++) {
        double e = exp(y), a = xs[i] * e;
        want += e * cos(a) - e * a * sin(a);
        dx[i] = -e * e * sin(a);
    }
    jot_array *in[] = {jot_array_from(xs, 3), jot_array_from(&y)};
    CALL(jot_grad(jot_fn(total_of_map), 1), in, 1, 0, 1e-14, want);
    CALL(jot_grad(jot_fn(total_of_map), 0), in, 1, 0, 1e-14, dx[0], dx[1], dx[2]);
    CALL(jot_vmap(jot_grad(jot_grad(jot_fn(wave))), 0, JOT_NONE), in, 1, 0, 1e-14, dx[0], dx[1],
         dx[2]);
    jot_arrays_release(2, in);
}
END_TEST

struct pair {
    jot_value a, b;
};

static jot_value loss(struct pair p, jot_value x)
{
    return jot_sum(jot_square(jot_add(jot_mul(p.a, x), p.b)));
}

// Captured handles are constants of the inner gradient, and the outer one goes through them.
static jot_value captures(jot_value x)
{
    jot_value s = jot_exp(jot_sum(x));
    struct pair p = {s, jot_sin(s)}, g = JOT_GRAD(loss, p, x);
    return jot_add(g.a, jot_mul(g.b, s));
}

static double captures_in_c(double x)
{
    double s = exp(x), r = s * x + sin(s);
    return 2 * r * x + 2 * r * s;
}

START_TEST(test_gradient_over_captured)
{
    double x = 0.2, h = 1e-6;
    jot_array *in[] = {jot_array_from(&x)};
    CALL(jot_fn(captures), in, 1, 0, 1e-14, captures_in_c(x));
    CALL(jot_grad(jot_fn(captures)), in, 1, 0, 1e-8,
         (captures_in_c(x + h) - captures_in_c(x - h)) / (2 * h));
    jot_arrays_release(1, in);
}
END_TEST

JOT_FUNCTION(loss_fn, loss, jot_value, struct pair, jot_value);

// A struct is listed as one: d/dx, d/da, d/db of (a x + b)^2.
START_TEST(test_order_of_structs)
{
    jot_array *in[] = {jot_array_full(JOT_F64, 2), jot_array_full(JOT_F64, 1),
                       jot_array_full(JOT_F64, 5)};
    CALL(jot_grad(loss_fn, 1, 0), in, 3, 0, 0, 44);
    CALL(jot_grad(loss_fn, 1, 0), in, 3, 1, 0, 110);
    CALL(jot_grad(loss_fn, 1, 0), in, 3, 2, 0, 22);
    jot_arrays_release(3, in);
}
END_TEST

START_TEST(test_struct_arguments)
{
    const double xs[2] = {1, 2};
    jot_array *in[] = {jot_array_full(JOT_F64, 3), jot_array_full(JOT_F64, 1),
                       jot_array_from(xs, 2)};
    CALL(jot_grad(loss_fn), in, 2, 0, 0, 36);
    CALL(jot_grad(loss_fn), in, 2, 1, 0, 22);
    CALL(jot_value_and_grad(loss_fn, 1), in, 2, 0, 0, 65);
    CALL(jot_value_and_grad(loss_fn, 1), in, 2, 1, 0, 24, 42);
    CALL(jot_vmap(jot_grad(loss_fn), JOT_NONE, 0), in, 2, 0, 0, 8, 28);
    CALL(jot_hessian(loss_fn), in, 4, 1, 0, 6);
    jot_arrays_release(3, in);
}
END_TEST

static jot_value values(jot_value x)
{
    x = jot_variable(x);
    jot_value y = jot_sum(cube(x)), g = jot_gradient(y, x);
    jot_value along = jot_tangent(jot_sum(g), x, jot_ones_like(x));
    jot_value h = jot_jacobian(g, x);
    return jot_stack(0, along, jot_sum(h), jot_take(jot_take(h, 1), 0), y);
}

START_TEST(test_values)
{
    const double at[2] = {1, 2};
    jot_array *x[] = {jot_array_from(at, 2)};
    CALL(jot_fn(values), x, 1, 0, 1e-14, 18, 18, 0, 9);
    jot_arrays_release(1, x);
}
END_TEST

// Two equal constants are two variables.
static jot_value two_zeros(jot_value x)
{
    struct pair z = {jot_zeros(JOT_F64, 1), jot_zeros(JOT_F64, 1)};
    z = jot_variable(z);
    jot_value y = jot_sum(jot_mul(x, jot_add(jot_mul(2, z.a), jot_mul(5, z.b))));
    struct pair g = jot_gradient(y, z);
    return jot_sub(g.b, g.a);
}

START_TEST(test_equal_constants)
{
    jot_array *x[] = {jot_array_full(JOT_F64, 1, 1)};
    CALL(jot_fn(two_zeros), x, 1, 0, 0, 3);
    jot_arrays_release(1, x);
}
END_TEST

// ---------------------------------------------------------------------------------------
// Rules of the user

static jot_value softened(jot_value x) { return jot_sqrt(x); }
static jot_value softened_rule(jot_value x, jot_value dx)
{
    return jot_div(dx, jot_mul(2, jot_sqrt(jot_maximum(x, 0.25))));
}

// The rules of these use both functions with their rules, twice: found before all of that is traced.
static jot_value even(jot_value x);
static jot_value odd(jot_value x);
static jot_value even_with_rule(jot_value x);
static jot_value odd_with_rule(jot_value x);
static jot_value both(jot_value x, jot_value dx)
{
    jot_value e = jot_mul(even_with_rule(x), even_with_rule(jot_neg(x)));
    return jot_mul(dx, jot_add(e, jot_mul(odd_with_rule(x), odd_with_rule(jot_neg(x)))));
}
static jot_value even(jot_value x) { return jot_cosh(x); }
static jot_value odd(jot_value x) { return jot_sinh(x); }

static jot_value even_with_rule(jot_value x)
{
    jot_value y;
    jot_apply(jot_custom_jvp(jot_fn(even), jot_fn(both)), 1, &x, 1, &y);
    return y;
}

static jot_value odd_with_rule(jot_value x)
{
    jot_value y;
    jot_apply(jot_custom_jvp(jot_fn(odd), jot_fn(both)), 1, &x, 1, &y);
    return y;
}

START_TEST(test_rule_of_itself)
{
    jot_array *x = jot_array_from(&(double){0.5}), *y;
    jot_executable *e = jot_jit(jot_fn(even_with_rule));
    ck_assert_int_eq(jot_call(e, JOT_IN(x), JOT_OUT(y)), JOT_ERR_TRACE);
    ck_assert_msg(strstr(jot_error_message(),
                         ": jot_custom_jvp: the rule both of even uses even "
                         "with this rule: call the C function"),
                  "%s", jot_error_message());
    jot_executable_release(e);
    jot_array_release(x);
}
END_TEST

START_TEST(test_custom_jvp)
{
    jot_array *x[] = {jot_array_full(JOT_F64, 0.01)},
              *two[] = {x[0], jot_array_full(JOT_F64, 3)};
    jot_function f = jot_custom_jvp(jot_fn(softened), jot_fn(softened_rule));
    CALL(f, x, 1, 0, 1e-15, 0.1);
    CALL(jot_grad(f), x, 1, 0, 1e-15, 1);
    CALL(jot_jvp(f), two, 2, 1, 1e-15, 3);
    CALL(jot_grad(jot_checkpoint(f)), x, 1, 0, 1e-15, 1);
    jot_array *row[] = {jot_array_full(JOT_F64, 0.01, 3)};
    CALL(jot_vmap(jot_grad(f)), row, 1, 0, 1e-15, 1, 1, 1);
    jot_arrays_release(1, row);
    jot_arrays_release(2, two);
    ck_assert_ptr_null(
        jot_jit(jot_custom_jvp(jot_grad(jot_fn(softened)), jot_fn(softened_rule))));
    ck_assert(strstr(jot_error_message(), "before any transform") != NULL);
    ck_assert_ptr_null(jot_jit(jot_custom_jvp(jot_fn(softened), jot_fn(softened))));
}
END_TEST

static struct pair clip_forward(jot_value x) { return (struct pair){jot_mul(x, x), x}; }
static jot_value clip_backward(jot_value x, jot_value ct)
{
    return jot_clip(jot_mul(ct, jot_mul(2, x)), -1, 1);
}
JOT_FUNCTION(clip_forward_fn, clip_forward, struct pair, jot_value);
static jot_value clipped(jot_value x) { return jot_mul(x, x); }

START_TEST(test_custom_vjp)
{
    jot_array *x[] = {jot_array_full(JOT_F64, 5)};
    jot_function f = jot_custom_vjp(jot_fn(clipped), clip_forward_fn, jot_fn(clip_backward));
    CALL(f, x, 1, 0, 0, 25);
    CALL(jot_grad(f), x, 1, 0, 0, 1);
    jot_array *rows[] = {jot_array_from(((const double[]){5, 0.25}), 2)};
    CALL(jot_vmap(jot_grad(f)), rows, 1, 0, 0, 1, 0.5);
    jot_arrays_release(1, rows);
    jot_arrays_release(1, x);
}
END_TEST

static jot_value scale;
static jot_value scaled(jot_value x) { return jot_mul(scale, x); }
static jot_value scaled_rule(jot_value x, jot_value dx)
{
    (void)x;
    return jot_mul(jot_mul(scale, 2), dx);
}

// A rule may use values from outside; they are constants of it.
static jot_value outer_of_rule(jot_value x)
{
    scale = jot_exp(jot_zeros_like(x));
    jot_function f = jot_grad(jot_custom_jvp(jot_fn(scaled), jot_fn(scaled_rule)));
    jot_value g;
    jot_apply(f, 1, &x, 1, &g);
    return g;
}

START_TEST(test_rule_with_captures)
{
    jot_array *x[] = {jot_array_full(JOT_F64, 5)};
    CALL(jot_fn(outer_of_rule), x, 1, 0, 0, 2);
    jot_arrays_release(1, x);
}
END_TEST

// ---------------------------------------------------------------------------------------
// Calls

static int times_traced;

static void apply_twice(const jot_value *in, jot_value *out, void *ctx)
{
    int depth = *(const int *)ctx;
    times_traced++;
    if (depth == 0) {
        out[0] = jot_add(in[0], 1);
        return;
    }
    jot_function f = jot_function_make(apply_twice, 1, 1, (int *)ctx - 1);
    jot_value y;
    jot_apply(f, 1, in, 1, &y);
    jot_apply(f, 1, &y, 1, out);
}

// Twelve levels of two calls each are twelve functions, not 4096 additions.
START_TEST(test_calls_stay_linear)
{
    int depth[13];
    for (int i = 0; i < 13; i++)
        depth[i] = i;
    jot_array *x[] = {jot_array_full(JOT_F64, 0)};
    times_traced = 0;
    jot_function f = jot_function_make(apply_twice, 1, 1, &depth[12]);
    CALL(f, x, 1, 0, 0, 4096);
    ck_assert_int_eq(times_traced, 13);
    CALL(jot_grad(f), x, 1, 0, 0, 1);
    jot_arrays_release(1, x);
}
END_TEST

static jot_value outside_value;
static void uses_outside(const jot_value *in, jot_value *out, void *ctx)
{
    (void)ctx;
    out[0] = jot_mul(in[0], outside_value);
}

static jot_value applies_capturing(jot_value x)
{
    jot_function f = jot_function_make(uses_outside, 1, 1, NULL);
    jot_value y, z;
    outside_value = jot_exp(x);
    jot_apply(f, 1, &x, 1, &y);
    outside_value = jot_sin(x); // the same function, another value: not the same result
    jot_apply(f, 1, &x, 1, &z);
    return jot_sub(y, z);
}

START_TEST(test_calls_capture)
{
    double x = 0.7;
    jot_array *in[] = {jot_array_from(&x)};
    CALL(jot_fn(applies_capturing), in, 1, 0, 1e-15, x * exp(x) - x * sin(x));
    CALL(jot_grad(jot_fn(applies_capturing)), in, 1, 0, 1e-14,
         exp(x) + x * exp(x) - sin(x) - x * cos(x));
    jot_arrays_release(1, in);
}
END_TEST

struct tower {
    int depth;
    jot_value scale;
    bool is_local; // each level has a scale of its own
};

static void scale_twice(const jot_value *in, jot_value *out, void *ctx)
{
    struct tower *t = ctx;
    if (t->depth == 0) {
        out[0] = jot_add(jot_mul(in[0], t[1].scale), 1);
        return;
    }
    t->scale = t->is_local ? jot_mul(t[1].scale, 1) : t[1].scale;
    jot_function f = jot_function_make(scale_twice, 1, 1, t - 1);
    jot_value y;
    jot_apply(f, 1, in, 1, &y);
    jot_apply(f, 1, &y, 1, out);
}

static struct tower towers[15];

static jot_value tower_of_captures(jot_value x)
{
    towers[13].scale = x;
    jot_value one = jot_ones_like(x);
    jot_apply(jot_function_make(scale_twice, 1, 1, &towers[12]), 1, &one, 1, &one);
    return one;
}

static int lines_of(jot_executable *e)
{
    int n = 0;
    for (const char *c = jot_executable_graph(e); *c; c++)
        n += *c == '\n';
    return n;
}

// The same with values of an outer function: they are operands of the calls, also of those on the
// way back.
START_TEST(test_calls_that_capture_stay_linear)
{
    jot_array *x[] = {jot_array_full(JOT_F64, 1)}, *y;
    for (int is_local = 0; is_local < 2; is_local++)
        for (int graded = 0; graded < 2; graded++) {
            for (int i = 0; i < 15; i++)
                towers[i] = (struct tower){.depth = i, .is_local = is_local};
            jot_function f = jot_fn(tower_of_captures);
            jot_executable *e = jot_jit(graded ? jot_grad(f) : f);
            must(jot_call_list(e, 1, x, 1, &y));
            // 1 + ... + 1 with 4096 terms of x^k, and the first derivative.
            double want = graded ? 4096. * 4097 / 2 : 4097;
            check_numbers(y, 1, &want, 0);
            ck_assert_int_le(lines_of(e), graded ? 44 * 13 : 8 * 13);
            jot_array_release(y);
            jot_executable_release(e);
        }
    jot_arrays_release(1, x);
}
END_TEST

static jot_value layer_weight;

static jot_value weighted(jot_value x) { return jot_mul(x, layer_weight); }

// Two uses in a row of the same weight, then of another.
static jot_value two_layers(jot_value a, jot_value b)
{
    jot_value x = jot_ones_like(a), w[] = {a, b};
    for (int i = 0; i < 2; i++) {
        layer_weight = w[i];
        for (int k = 0; k < 2; k++)
            jot_apply(jot_fn(weighted), 1, &x, 1, &x);
    }
    return x;
}

START_TEST(test_captures_may_change)
{
    jot_array *in[] = {jot_array_full(JOT_F64, 2), jot_array_full(JOT_F64, 3)};
    CALL(jot_fn(two_layers), in, 1, 0, 1e-15, 36);
    CALL(jot_grad(jot_fn(two_layers)), in, 1, 0, 1e-15, 36);
    jot_arrays_release(2, in);
}
END_TEST

static jot_value asks_for_a_number(jot_value x)
{
    return jot_item(jot_sum(x)) > 0 ? jot_mul(x, 2) : x;
}

static jot_value applies_itself(jot_value x)
{
    jot_apply(jot_fn(applies_itself), 1, &x, 1, &x);
    return x;
}

START_TEST(test_functions_that_cannot_be_traced)
{
    static const char *const says[] = {"a value has no number while it is traced",
                                       "applies itself without end"};
    jot_function f[] = {jot_fn(asks_for_a_number), jot_fn(applies_itself)};
    jot_array *x = jot_array_full(JOT_F64, 1), *y;
    for (int i = 0; i < 2; i++) {
        jot_executable *e = jot_jit(f[i]);
        ck_assert(jot_call_list(e, 1, &x, 1, &y) != JOT_OK);
        ck_assert_ptr_nonnull(strstr(jot_error_message(), says[i]));
        jot_executable_release(e);
    }
    jot_array_release(x);
}
END_TEST

static jot_value scaled_by_two(jot_value x) { return jot_mul(2, x); }
static jot_value wrong_rule(jot_value x, jot_value dx) { return jot_add(jot_mul(0, x), dx); }

START_TEST(test_check_grads)
{
    const double at[2] = {0.4, -0.3};
    jot_array *x = jot_array_from(at, 2), *y = jot_array_full(JOT_F64, 0.3);
    must(jot_check_grads(jot_fn(rosenbrock), 2, JOT_FORWARD | JOT_REVERSE, 0, x));
    must(jot_check_grads(jot_fn(wave), 2, JOT_FORWARD | JOT_REVERSE, 0, y, y));
    jot_function wrong = jot_custom_jvp(jot_fn(scaled_by_two), jot_fn(wrong_rule));
    ck_assert(jot_check_grads(wrong, 1, JOT_FORWARD, 0, y) != JOT_OK);
    ck_assert(strstr(jot_error_message(), "the tangent is") != NULL);
    jot_array_release(x);
    jot_array_release(y);
}
END_TEST

static void add(TCase *t)
{
    tcase_add_test(t, test_functions);
    tcase_add_test(t, test_jvp_and_vjp);
    tcase_add_test(t, test_jacobians);
    tcase_add_test(t, test_order_of_lists);
    tcase_add_test(t, test_order_of_structs);
    tcase_add_test(t, test_vmap);
    tcase_add_test(t, test_vmap_axes);
    tcase_add_test(t, test_vmap_axes_of_tangents);
    tcase_add_test(t, test_grad_of_vmap_of_grad);
    tcase_add_test(t, test_gradient_over_captured);
    tcase_add_test(t, test_struct_arguments);
    tcase_add_test(t, test_values);
    tcase_add_test(t, test_equal_constants);
    tcase_add_test(t, test_custom_jvp);
    tcase_add_test(t, test_rule_of_itself);
    tcase_add_test(t, test_custom_vjp);
    tcase_add_test(t, test_rule_with_captures);
    tcase_add_test(t, test_calls_stay_linear);
    tcase_add_test(t, test_calls_capture);
    tcase_add_test(t, test_functions_that_cannot_be_traced);
    tcase_add_test(t, test_captures_may_change);
    tcase_add_test(t, test_calls_that_capture_stay_linear);
    tcase_add_test(t, test_check_grads);
}

int main(void) { return run_suite("trace/transform", add); }
