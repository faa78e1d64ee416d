// SPDX-License-Identifier: Apache-2.0
// Loops and branches under every transform, and under two of them: against central differences,
// against each other by inner products, and against a loop over lanes.
#include "control_support.h"

enum { MOST_INPUTS = 8 };

START_TEST(derivatives)
{
    const struct control_program *p = &control_programs[_i];
    uint32_t f = parse(p->text);
    uint64_t state = seed + (uint64_t)_i;
    for_each_mask(bits, inexact_bits(f))
        check_derivatives(p->name, f, mask_of(graph(f)->n_params, bits), &state);
}
END_TEST

START_TEST(second_derivatives)
{
    const struct control_program *p = &control_programs[_i];
    uint32_t f = parse(p->text), g;
    uint64_t state = seed + (uint64_t)_i;
    const bool *mask = mask_of(graph(f)->n_params, inexact_bits(f));
    require(pass_jvp(module, f, mask, &g, NULL));
    check_derivatives(p->name, g, mask_of(graph(g)->n_params, inexact_bits(g)), &state);
    require(pass_vjp(module, f, mask, &g));
    check_derivatives(p->name, g, mask_of(graph(g)->n_params, inexact_bits(g)), &state);
}
END_TEST

START_TEST(complex_derivatives)
{
    uint32_t f = parse("jot ir 1\n"
                       "function @0(%a: c128[2], %x: c128[2], %y: f64[2], %s: c128[2]) {\n"
                       "  %p = mul %a, %x : c128[2]\n"
                       "  %q = conj %s : c128[2]\n"
                       "  %r = add %p, %q : c128[2]\n"
                       "  %i = imag %r : f64[2]\n"
                       "  %z = mul %i, %y : f64[2]\n"
                       "  return %r, %z, %p\n"
                       "}\n"
                       "function @1(%a: c128[2], %x: c128[2], %y: f64[2], %s: c128[3,2]) {\n"
                       "  %1, %2, %3 = scan %a, %x, %y, %s {reverse=0, length=3, n_consts=1, "
                       "n_carry=2, functions=[@0]} : c128[2], f64[2], c128[3,2]\n"
                       "  return %1, %2\n"
                       "}\n"
                       "function @2(%a: c128[2], %x: c128[2], %y: f64[2], %s: c128[3,2]) {\n"
                       "  %p = mul %a, %x : c128[2]\n"
                       "  return %p, %y\n"
                       "}\n"
                       "function @3 f(%i: i32[], %a: c128[2], %x: c128[2], %y: f64[2], %s: "
                       "c128[3,2]) {\n"
                       "  %1, %2 = cond %i, %a, %x, %y, %s {functions=[@1, @2]} : c128[2], "
                       "f64[2]\n"
                       "  return %1, %2\n"
                       "}\n"),
             n = graph(f)->n_params, g;
    uint64_t state = seed;
    for_each_mask(bits, inexact_bits(f))
        check_derivatives("complex", f, mask_of(n, bits), &state);
    require(pass_vjp(module, f, mask_of(n, inexact_bits(f)), &g));
    check_derivatives("complex, twice", g, mask_of(graph(g)->n_params, inexact_bits(g)),
                      &state);
}
END_TEST

START_TEST(maps)
{
    const struct control_program *p = &control_programs[_i];
    uint32_t f = parse(p->text), n = graph(f)->n_params;
    uint64_t state = seed + (uint64_t)_i;
    struct ir_tensor *x = draw_inputs(f, &state);
    for_each_mask(bits, (UINT64_C(1) << n) - 1) for (int64_t size = 0; size < 4; size++)
        check_vmap(p->name, f, mask_of(n, bits), size, x, 1e-12, "ANY", &state);
}
END_TEST

// Derivatives of a mapped function, and maps of derivatives.
START_TEST(maps_and_derivatives)
{
    const struct control_program *p = &control_programs[_i];
    uint32_t f = parse(p->text), n = graph(f)->n_params, g;
    uint64_t state = seed + (uint64_t)_i;
    for_each_mask(bits, (UINT64_C(1) << n) - 1)
    {
        require(pass_vmap(module, f, mask_of(n, bits), 3, &g, NULL));
        check_derivatives(p->name, g, mask_of(n, inexact_bits(g)), &state);
        check_vmap(p->name, g, mask_of(n, bits), 2, draw_inputs(g, &state), 1e-12, "ANY",
                   &state);
    }
    require(pass_vjp(module, f, mask_of(n, inexact_bits(f)), &g));
    n = graph(g)->n_params;
    struct ir_tensor *x = draw_inputs(g, &state);
    for_each_mask(bits, (UINT64_C(1) << n) - 1)
        check_vmap(p->name, g, mask_of(n, bits), 3, x, 1e-12, "ANY", &state);
}
END_TEST

// The gradient of a value in the same graph: the loop runs once, and once back.
START_TEST(gradients_in_place_share_the_loop)
{
    uint32_t f = parse(control_programs[0].text), c = parse(control_programs[7].text);
    struct ir_builder b = ir_builder_make(module, "f", IR_BUILD_PLAIN);
    ir_id index = ir_param(&b, type_of_dims(JOT_I32, 0, NULL)), in[4], out[2], ct[2];
    for (uint32_t i = 0; i < 3; i++)
        in[i] = ir_param(&b, ir_type_of(graph(f), i));
    ir_id pair = ir_param(&b, F64(2)), x[2] = {in[0], in[1]};
    ir_inline(&b, graph(f), in, out);
    ir_id scan_y = out[0], branch[3] = {index, pair, scan_y};
    ir_inline(&b, graph(c), branch, out);
    ir_id y = ir_mul(&b, out[1], scan_y);
    ck_assert_msg(pass_gradient_in(&b, y, 2, x, ct), "%s", b.message);
    ir_output(&b, y);
    ir_output(&b, ct[0]);
    ir_output(&b, ct[1]);
    f = done(&b);
    uint64_t state = seed;
    check_derivatives("in place", f, mask_of(5, 30), &state);
    uint32_t s = pass_simplify(module, pass_inline(module, pass_simplify(module, f), 10000));
    ck_assert_int_eq(count_op(s, IR_scan), 2);
    ck_assert_int_eq(count_op(s, IR_cond), 2);
}
END_TEST

// Forward mode goes through a while without a bound, in place and over a basis, too.
START_TEST(forward_mode_needs_no_bound)
{
    uint32_t f = parse(control_programs[9].text), forward;
    struct ir_builder b = ir_builder_make(module, "f", IR_BUILD_PLAIN);
    ir_id in[3], out[2], dy;
    for (int i = 0; i < 3; i++)
        in[i] = ir_param(&b, F64_SCALAR);
    ir_inline(&b, graph(f), in, out);
    ir_id one = ir_scalar(&b, JOT_F64, 1), dx[3] = {IR_NONE, one, IR_NONE};
    ck_assert_msg(pass_tangent_in(&b, out[1], 3, in, dx, &dy), "%s", b.message);
    ir_output(&b, dy);
    uint32_t tangent = done(&b);
    require(pass_jacfwd(module, f, mask_of(3, 2), &forward));
    uint64_t state = seed;
    struct ir_tensor *x = draw_inputs(f, &state), slope[3] = {x[0], scalar_f64(1), x[2]};
    struct ir_tensor *want = tangents(f, mask_of(3, 2), x, slope);
    ck_assert(distance(*evaluate(tangent, x), want[1]) < 1e-14);
    struct ir_tensor *j = evaluate(forward, x);
    ck_assert(distance(j[0], want[0]) < 1e-14 && distance(j[1], want[1]) < 1e-14);
}
END_TEST

// Over a basis of the inputs, and over one of the results.
START_TEST(jacobians)
{
    const struct control_program *p = &control_programs[_i];
    uint32_t f = parse(p->text), n = graph(f)->n_params, forward, reverse;
    const bool *mask = mask_of(n, inexact_bits(f));
    uint64_t state = seed;
    struct ir_tensor *x = draw_inputs(f, &state);
    require(pass_jacfwd(module, f, mask, &forward));
    require(pass_jacrev(module, f, mask, &reverse));
    struct ir_tensor *a = evaluate(forward, x), *b = evaluate(reverse, x);
    for (uint32_t i = 0; i < graph(forward)->outputs.count; i++)
        ck_assert_msg(distance(a[i], b[i]) < 1e-10, "%s: %u", p->name, i);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_loop_test(t, derivatives, 0, CONTROL_SMOOTH_PROGRAMS);
    tcase_add_loop_test(t, second_derivatives, 0, CONTROL_SMOOTH_PROGRAMS);
    tcase_add_test(t, complex_derivatives);
    tcase_add_loop_test(t, maps, 0, CONTROL_SMOOTH_PROGRAMS);
    tcase_add_loop_test(t, maps_and_derivatives, 0, CONTROL_SMOOTH_PROGRAMS);
    tcase_add_test(t, gradients_in_place_share_the_loop);
    tcase_add_test(t, forward_mode_needs_no_bound);
    tcase_add_loop_test(t, jacobians, 0, CONTROL_SMOOTH_PROGRAMS);
}

int main(void) { return support_run("control", add_tests); }
