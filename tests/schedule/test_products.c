// SPDX-License-Identifier: Apache-2.0
// Products of a library that does more than multiply, and graphs made ready for it.
#include "schedule_examples.h"

#include "ir/control.h"
#include "ir/cost.h"

static const struct schedule_options rich = {.rich_gemm = true};

// In the form of jot, or of JAX, whose test is that of its gradient.
static bool is_of_jax;
static ir_id relu(struct ir_builder *b, ir_id z, ir_id *out_test)
{
    ir_id zero = ir_scalar_like(b, z, 0);
    if (is_of_jax) {
        *out_test = ir_not(b, ir_gt(b, z, zero));
        return ir_max(b, z, zero);
    }
    *out_test = ir_le(b, z, zero);
    return ir_select(b, *out_test, ir_zeros(b, ir_type_in(b, z)), z);
}

static ir_id with_bias(struct ir_builder *b, ir_id z, ir_id bias)
{
    struct ir_type t = ir_type_in(b, z);
    return ir_add(b, z, ir_broadcast_in_dim(b, bias, 2, ir_dims(module, t), (int64_t[]){1}));
}

// Runs as the evaluator does, and has one step: a product that does so much.
static void expect_one_product(uint32_t f, enum nest_activation activation, bool has_bias,
                               bool has_addend, double alpha)
{
    struct nest_program *p = schedule_with(f, &rich);
    check_program(f, p);
    require_of(p->steps.count == 1 && p->nests.count == 0, "not one product", f, p);
    const struct nest_gemm *g = &p->steps.at[0].gemm;
    require_of(g->activation == activation && g->has_bias == has_bias &&
                   g->has_addend == has_addend && g->alpha == alpha,
               "another product", f, p);
    check_run(f, p, draw_inputs(f, seed));
    // The text says all of it.
    struct strbuf s = strbuf_make(module->arena), again = strbuf_make(module->arena);
    struct nest_program *parsed;
    nest_program_print(&s, p);
    require(nest_program_parse(module->arena, s.text, &parsed));
    nest_program_print(&again, parsed);
    ck_assert_str_eq(s.text, again.text);
    // A library that only multiplies gets the rest as a kernel.
    ck_assert_uint_eq(schedule(f)->steps.count, 2);
}

START_TEST(products_do_what_follows)
{
    is_of_jax = _i;
    for (int what = 0; what < 6; what++) {
        struct ir_builder b = begin("layer");
        ir_id unused, x = ir_param(&b, F32(40, 70)), w = ir_param(&b, F32(70, 50));
        ir_id bias = ir_param(&b, F32(50)), more = ir_param(&b, F32(40, 50));
        ir_id z = dot(&b, x, w, 1, 0);
        if (what == 0 || what == 1)
            z = with_bias(&b, z, bias);
        if (what == 1 || what == 2)
            z = relu(&b, z, &unused);
        if (what == 3)
            z = ir_add(&b, more, z);
        if (what == 4)
            z = ir_fma(&b, ir_scalar_like(&b, z, -0.1), z, more);
        if (what == 5)
            z = ir_fma(&b, z, ir_scalar_like(&b, z, 3), more);
        ir_output(&b, z);
        static const double alphas[] = {1, 1, 1, 1, 0, 3};
        double alpha = what == 4 ? (double)-0.1f : alphas[what];
        expect_one_product(finish(&b), what == 1 || what == 2 ? NEST_RELU : NEST_LINEAR,
                           what < 2, what >= 3, alpha);
    }
}
END_TEST

// What else reads the product, or does something else, keeps the kernel.
START_TEST(products_leave_what_they_cannot_do)
{
    for (int what = 0; what < 8; what++) {
        struct ir_builder b = begin("layer");
        ir_id unused, x = ir_param(&b, F32(40, 70)), w = ir_param(&b, F32(70, 40));
        ir_id column = ir_param(&b, F32(40)), more = ir_param(&b, F32(40, 40));
        ir_id z = dot(&b, x, w, 1, 0), y = z;
        if (what == 0) {
            y = relu(&b, z, &unused);
            ir_output(&b, z);
        } else if (what == 1) { // a bias of rows
            y = ir_add(&b, z,
                       ir_broadcast_in_dim(&b, column, 2, (int64_t[]){40, 40}, (int64_t[]){0}));
        } else if (what == 2) {
            y = ir_add(&b, z, ir_transpose(&b, more, (int64_t[]){1, 0}));
        } else if (what == 3) { // of another size
            y = ir_add(
                &b, ir_slice(&b, z, (int64_t[]){0, 0}, (int64_t[]){40, 20}, (int64_t[]){1, 1}),
                ir_slice(&b, more, (int64_t[]){0, 0}, (int64_t[]){40, 20}, (int64_t[]){1, 1}));
        } else if (what == 4) {
            y = ir_add(&b, z, z);
        } else if (what == 5) { // the largest of them
            y = ir_select(&b, ir_le(&b, z, ir_scalar_like(&b, z, 1)),
                          ir_zeros(&b, ir_type_in(&b, z)), z);
        } else if (what == 6) {
            y = ir_reduce(&b, IR_reduce_sum, with_bias(&b, z, column), AXES(1));
        } else { // in the other order
            y = with_bias(&b, relu(&b, z, &unused), column);
        }
        ir_output(&b, y);
        uint32_t f = finish(&b);
        struct nest_program *p = schedule_with(f, &rich);
        check_program(f, p);
        require_of(p->nests.count > 0, "no kernel is left", f, p);
        check_run(f, p, draw_inputs(f, seed));
    }
}
END_TEST

static uint32_t count_products(const struct nest_program *p)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < p->steps.count; i++)
        count += p->steps.at[i].kind == NEST_STEP_GEMM;
    return count;
}

// Of so few terms a processor's vectors make them, along columns that lie together, of fewer along others; a GPU's
// library does.
START_TEST(few_terms_are_a_kernel)
{
    for (int what = 0; what < 7; what++) {
        struct ir_builder b = begin("product");
        jot_dtype d = what == 3 ? JOT_C64 : JOT_F32;
        int64_t k = what == 2   ? COST_LANE_TERMS + 1
                    : what == 5 ? COST_LANE_TERMS_ACROSS
                    : what == 6 ? COST_LANE_TERMS_ACROSS + 1
                                : COST_LANE_TERMS;
        int64_t m = 300, n = 200;
        bool across = what == 1 || what >= 5;
        ir_id x = ir_param(&b, ir_type_make(module, d, 2, (int64_t[]){m, k}));
        ir_id y = ir_param(
            &b, ir_type_make(module, d, 2, across ? (int64_t[]){n, k} : (int64_t[]){k, n}));
        ir_output(&b, dot(&b, x, y, 1, across));
        uint32_t f = finish(&b);
        struct schedule_options options = {
            .rich_gemm = what == 4, .many_lanes = what == 4, .no_accumulation = what == 4};
        struct nest_program *p = schedule_with(f, &options);
        check_program(f, p);
        require_of(count_products(p) == (what != 0 && what != 5), "another maker", f, p);
        check_run(f, p, draw_inputs(f, seed));
    }
}
END_TEST

// A GPU's library makes whole tiles: matrices that fill little of one are sums of threads, with what their terms are made
// of.
START_TEST(products_below_tiles_are_a_kernel)
{
    static const int64_t sides[] = {8, 12, 32};
    for (int i = 0; i < 3; i++) {
        struct ir_builder b = begin("product");
        int64_t dims[] = {7, 300, sides[i]};
        ir_id x = ir_param(&b, type_of_dims(JOT_F32, 3, dims)),
              y = ir_param(&b, type_of_dims(JOT_F32, 3, dims)), z = ir_map2(&b, IR_mul, x, y);
        struct ir_dot d = {.n_batch = 1,
                           .n_contract = 1,
                           .lhs_batch = (int64_t[]){0},
                           .rhs_batch = (int64_t[]){0},
                           .lhs_contract = (int64_t[]){1},
                           .rhs_contract = (int64_t[]){1}};
        ir_output(&b, ir_dot_general(&b, z, y, &d));
        uint32_t f = finish(&b);
        struct nest_program *p = schedule_with(
            f, &(struct schedule_options){
                   .rich_gemm = true, .many_lanes = true, .no_accumulation = true});
        check_program(f, p);
        require_of(count_products(p) == (i > 0), "another maker", f, p);
        require_of(p->steps.count == (i > 0 ? 2 : 1), "terms are stored", f, p);
        check_run(f, p, draw_inputs(f, seed));
    }
}
END_TEST

// Those of the fewest are a part of what uses them; of more, and where terms lie together, it loads them.
START_TEST(products_in_place_of_the_library_are_apart)
{
    for (int what = 0; what < 3; what++) {
        struct ir_builder b = begin("product");
        int64_t k = what == 1 ? COST_LANE_TERMS : 2;
        ir_id x = ir_param(&b, F32(300, k)),
              y = ir_param(&b, what == 2 ? F32(200, k) : F32(k, 200));
        ir_output(&b, ir_map1(&b, IR_tanh, dot(&b, x, y, 1, what == 2)));
        uint32_t f = finish(&b);
        struct nest_program *p = schedule_with(f, &(struct schedule_options){0});
        check_program(f, p);
        require_of(p->steps.count == (what ? 2 : 1), "joined otherwise", f, p);
        check_run(f, p, draw_inputs(f, seed));
    }
}
END_TEST

// Lanes are beside a running fold, so what it leaves for a product lies along them.
START_TEST(running_sums_lie_along_lanes)
{
    struct ir_builder b = begin("running");
    ir_id x = ir_param(&b, F32(700, 40)), y = ir_cumulative(&b, IR_cumsum, x, 0, true);
    ir_output(&b, dot(&b, y, y, 0, 0));
    uint32_t f = finish(&b);
    struct nest_program *p = schedule_with(f, &(struct schedule_options){0});
    check_program(f, p);
    ck_assert_uint_eq(count_products(p), 1);
    const struct nest_step *t = &p->steps.at[p->steps.count - 1];
    require_of(t->gemm.transpose_a && !t->gemm.transpose_b, "another layout", f, p);
    check_run(f, p, draw_inputs(f, seed));
}
END_TEST

START_TEST(programs_run_as_before)
{
    uint32_t all[] = {example_matmul_bias_relu(40), example_per_sample(40, 40),
                      example_mlp_step(64, 48)};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct nest_program *p = schedule_with(all[i], &rich);
        check_program(all[i], p);
        check_run(all[i], p, draw_inputs(all[i], seed));
    }
}
END_TEST

// An update of weights: the sum may be put where the weights were.
START_TEST(donated_addends_are_overwritten)
{
    struct ir_builder b = begin("update");
    ir_id w = ir_param(&b, F32(40, 50)), x = ir_param(&b, F32(70, 40)),
          y = ir_param(&b, F32(70, 50));
    ir_id g = dot(&b, x, y, 0, 0);
    ir_output(&b, ir_fma(&b, g, ir_scalar_like(&b, g, -0.5), w));
    uint32_t f = finish(&b);
    struct schedule_options options = rich;
    options.donated = (bool[]){true, true, true};
    struct nest_program *p = schedule_with(f, &options);
    check_program(f, p);
    ck_assert_uint_eq(p->steps.count, 1);
    ck_assert_int_eq(p->donated[0], 0);
    check_run(f, p, draw_inputs(f, seed));
}
END_TEST

// So may a carry that products are added to: the addend and the result have one memory.
START_TEST(carried_addends_are_overwritten)
{
    struct ir_builder body = begin("step"), b = begin("sum");
    ir_id in[] = {ir_param(&body, F32(40, 40)), ir_param(&body, F32(40, 40)),
                  ir_param(&body, F32(40, 40))};
    ir_output(&body, ir_add(&body, in[1], dot(&body, in[0], in[2], 1, 0)));
    struct ir_scan s = {.body = finish(&body), .n_consts = 1, .n_carry = 1, .length = 3};
    ir_id of[] = {ir_param(&b, F32(40, 40)), ir_param(&b, F32(40, 40)),
                  ir_param(&b, F32(3, 40, 40))};
    ir_output(&b, ir_scan(&b, &s, 3, of));
    uint32_t f = finish(&b);
    struct schedule_options options = rich;
    options.steps = true;
    struct nest_program *p = schedule_with(f, &options);
    check_program(f, p);
    bool has_addend = false;
    for (uint32_t i = 0; i < p->steps.count; i++)
        has_addend |= p->steps.at[i].kind == NEST_STEP_GEMM && p->steps.at[i].gemm.has_addend &&
                      p->steps.at[i].memories[2] == p->steps.at[i].memories[3];
    require_of(has_addend, "the sum has memory of its own", f, p);
    check_run(f, p, draw_inputs(f, seed));
}
END_TEST

START_TEST(half_types_are_for_rich_libraries)
{
    struct ir_builder b = begin("half");
    struct ir_type t = type_of_dims(JOT_BF16, 2, (int64_t[]){64, 64});
    ir_output(&b, dot(&b, ir_param(&b, t), ir_param(&b, t), 1, 0));
    uint32_t f = finish(&b);
    ck_assert_int_eq(schedule(f)->steps.at[0].kind, NEST_STEP_KERNEL);
    struct nest_program *p = schedule_with(f, &rich);
    ck_assert_int_eq(p->steps.at[0].kind, NEST_STEP_GEMM);
    check_program(f, p);
    check_run(f, p, draw_inputs(f, seed));
}
END_TEST

// The one product of the program, of operands of the type, and else kernels that put a copy of it.
static const struct nest_gemm *only_product(uint32_t f, struct nest_program *p,
                                            uint32_t kernels)
{
    const struct nest_step *product = NULL;
    for (uint32_t i = 0; i < p->steps.count; i++)
        if (p->steps.at[i].kind == NEST_STEP_GEMM)
            product = &p->steps.at[i];
    require_of(product && p->steps.count == kernels + 1, "one product", f, p);
    return &product->gemm;
}

// What is widened on the way to a product is multiplied as it is, bytes where rows lie in both operands.
START_TEST(narrow_operands_are_for_rich_libraries)
{
    static const jot_dtype narrow[] = {JOT_BOOL, JOT_I8, JOT_BF16, JOT_F16};
    jot_dtype d = narrow[_i / 2], wide = _i < 4 ? JOT_I32 : JOT_F32;
    bool is_across = _i % 2;
    struct ir_builder b = begin("narrow");
    ir_id x = ir_param(&b, type_of_dims(d, 2, (int64_t[]){220, 208}));
    ir_id w = ir_param(&b, type_of_dims(d, 2, (int64_t[]){208, 208}));
    ir_id z = dot(&b, ir_convert(&b, x, wide), ir_convert(&b, w, wide), 1, !is_across);
    ir_output(&b, z);
    ir_output(&b, ir_mul(&b, z, ir_scalar_like(&b, z, 2)));
    uint32_t f = finish(&b);
    struct nest_program *p = schedule_with(f, &rich);
    const struct nest_gemm *g = only_product(f, p, _i < 4 && is_across ? 2 : 1);
    require_of(g->operands == d && g->dtype == wide, "operands as they are", f, p);
    require_of(g->transpose_b == (_i < 4 || !is_across) && !g->transpose_a, "rows", f, p);
    check_program(f, p);
    check_run(f, p, draw_inputs(f, seed));
    struct strbuf s = strbuf_make(module->arena), again = strbuf_make(module->arena);
    nest_program_print(&s, p);
    require(nest_program_parse(module->arena, s.text, &p));
    nest_program_print(&again, p);
    ck_assert_str_eq(s.text, again.text);
}
END_TEST

// Rows that the library has no product of, operands of two types, and what is not widened, stay in kernels.
START_TEST(other_bytes_are_a_kernel)
{
    static const int64_t terms[] = {208, 204, 208, 208}, rows[] = {16, 220, 220, 220};
    struct ir_builder b = begin("bytes");
    ir_id x = ir_param(&b, type_of_dims(JOT_I8, 2, (int64_t[]){rows[_i], terms[_i]}));
    ir_id w = ir_param(&b, type_of_dims(_i == 2 ? JOT_BOOL : JOT_I8, 2,
                                        (int64_t[]){_i ? 208 : 4096, terms[_i]}));
    bool is_wide = _i != 3;
    ir_output(&b, dot(&b, is_wide ? ir_convert(&b, x, JOT_I32) : x,
                      is_wide ? ir_convert(&b, w, JOT_I32) : w, 1, 1));
    uint32_t f = finish(&b);
    struct nest_program *p = schedule_with(f, &rich);
    for (uint32_t i = 0; i < p->steps.count; i++)
        require_of(p->steps.at[i].kind == NEST_STEP_KERNEL, "no product", f, p);
    check_program(f, p);
}
END_TEST

// Products of f32 of the same numbers, rounded once; a transposed operand stays where it is, and small
// products stay as they are.
START_TEST(half_products_are_of_f32)
{
    jot_dtype d = _i ? JOT_F16 : JOT_BF16;
    for (int64_t n = 4; n <= 40; n += 36) {
        struct ir_builder b = begin("half");
        ir_id x = ir_param(&b, type_of_dims(d, 2, (int64_t[]){n, 70}));
        ir_id w = ir_param(&b, type_of_dims(d, 2, (int64_t[]){n, 70}));
        ir_id y = dot(&b, x, ir_transpose(&b, w, (int64_t[]){1, 0}), 1, 0);
        ir_output(&b, ir_add(&b, y, y));
        uint32_t f = finish(&b), changed = pass_half_products(module, f);
        changed = pass_simplify(module, changed);
        struct ir_tensor *in = draw_inputs(f, seed);
        ck_assert(bits_equal(*evaluate(f, in), *evaluate(changed, in)));
        struct nest_program *p = schedule(changed);
        uint32_t products = 0;
        for (uint32_t i = 0; i < p->steps.count; i++)
            products += p->steps.at[i].kind == NEST_STEP_GEMM;
        require_of(products == (n == 40), "products", changed, p);
        check_program(changed, p);
        check_run(changed, p, in);
    }
}
END_TEST

// sum over b, j of x[.., v, b, j] t[.., l, b, i, j]: no matrix lies in t but in a copy of it.
static uint32_t interleaved(jot_dtype d, bool has_batch)
{
    struct ir_builder b = begin("interleaved");
    const int64_t x[] = {2, 40, 11, 4}, t[] = {2, 13, 11, 3, 4};
    int first = has_batch ? 0 : 1, zero = has_batch ? 1 : 0;
    struct ir_dot dims = {.n_batch = has_batch,
                          .n_contract = 2,
                          .lhs_batch = (int64_t[]){0},
                          .rhs_batch = (int64_t[]){0},
                          .lhs_contract = (int64_t[]){zero + 1, zero + 2},
                          .rhs_contract = (int64_t[]){zero + 1, zero + 3}};
    ir_id left = ir_param(&b, type_of_dims(d, 4 - first, x + first));
    ir_id right = ir_param(&b, type_of_dims(d, 5 - first, t + first));
    ir_output(&b, ir_dot_general(&b, left, right, &dims));
    return finish(&b);
}

START_TEST(operands_are_packed)
{
    static const jot_dtype dtypes[] = {JOT_F64, JOT_F32, JOT_C64};
    for (int has_batch = 0; has_batch < 2; has_batch++) {
        uint32_t f = interleaved(dtypes[_i], has_batch);
        struct nest_program *p = schedule(f);
        require_of(p->steps.count == 2 && p->steps.at[1].kind == NEST_STEP_GEMM,
                   "a copy and a product", f, p);
        check_program(f, p);
        check_run(f, p, draw_inputs(f, seed));
        p = schedule_with(f, &(struct schedule_options){.separate = true});
        check_run(f, p, draw_inputs(f, seed));
    }
}
END_TEST

// The gradient of a layer: h is a factor of a product, and its test masks what comes back.
static uint32_t rectified(bool is_factor)
{
    struct ir_builder b = begin("rectified");
    ir_id x = ir_param(&b, F32(40, 70)), w = ir_param(&b, F32(70, 50)),
          v = ir_param(&b, F32(50, 30)), g = ir_param(&b, F32(40, 30));
    ir_id z = dot(&b, x, w, 1, 0), test, h = relu(&b, z, &test);
    ir_id y = is_factor ? ir_mul(&b, g, dot(&b, h, v, 1, 0)) : g, back = dot(&b, y, v, 1, 1);
    ir_output(&b, is_factor ? back : h);
    ir_output(&b, ir_select(&b, test, ir_zeros(&b, ir_type_in(&b, back)), back));
    return finish(&b);
}

START_TEST(masks_look_at_what_is_stored)
{
    is_of_jax = _i;
    uint32_t f = rectified(true), changed = pass_relu_masks(module, f);
    ck_assert_uint_ne(f, changed);
    struct ir_tensor *in = draw_inputs(f, seed);
    ((float *)in[0].data)[3] = NAN;
    ((float *)in[0].data)[70] = -0.0f;
    struct ir_tensor *want = evaluate(f, in), *have = evaluate(changed, in);
    for (int i = 0; i < 2; i++)
        ck_assert(bits_equal(want[i], have[i]));
    // The first product makes h, and nothing wants z.
    struct nest_program *p = schedule_with(changed, &rich);
    check_program(changed, p);
    ck_assert_int_eq(p->steps.at[0].kind, NEST_STEP_GEMM);
    require_of(p->steps.at[0].gemm.activation == NEST_RELU, "no activation", changed, p);
    ck_assert_uint_eq(pass_relu_masks(module, rectified(false)), rectified(false));
}
END_TEST

// x^T d x in several forms; what only looks like it.
static bool is_symmetric(int form)
{
    struct ir_builder b = begin("symmetric");
    ir_id x = ir_param(&b, F32(70, 40)), column = ir_param(&b, F32(70, 1)),
          row = ir_param(&b, F32(1, 40)), square = ir_param(&b, F32(40, 40));
    ir_id turned = ir_transpose(&b, x, (int64_t[]){1, 0}), z;
    switch (form) {
    case 0:
        z = dot(&b, x, x, 0, 0);
        break;
    case 1:
        z = dot(&b, x, ir_mul(&b, ir_neg(&b, x), column), 0, 0);
        break;
    case 2: {
        ir_id across = ir_reshape(&b, column, 2, (int64_t[]){1, 70});
        z = dot(&b, ir_mul(&b, across, turned), ir_div(&b, x, column), 1, 0);
        break;
    }
    case 3:
        z = dot(&b, x, ir_mul(&b, ir_mul(&b, ir_scalar_like(&b, x, 3), x), column), 0, 0);
        break;
    case 4:
        z = ir_ne(&b, column, column);
        z = dot(&b, x, ir_select(&b, z, ir_scalar_like(&b, x, 0), x), 0, 0);
        break;
    case 5:
        z = ir_broadcast_in_dim(&b, ir_ne(&b, column, column), 2, (int64_t[]){70, 40},
                                (int64_t[]){0, 1});
        z = dot(&b, x, ir_select(&b, z, ir_scalar_like(&b, x, 0), x), 0, 0);
        break;
    case 6:
        z = dot(&b, x, ir_mul(&b, x, row), 0, 0);
        break;
    case 7:
        z = dot(&b, x, ir_div(&b, column, x), 0, 0);
        break;
    case 8:
        z = dot(&b, x, ir_add(&b, x, column), 0, 0);
        break;
    case 9: // not zeros
        z = ir_ne(&b, column, column);
        z = dot(&b, x, ir_select(&b, z, ir_scalar_like(&b, x, 1), x), 0, 0);
        break;
    case 10: // of another axis
        z = dot(&b, square, ir_transpose(&b, square, (int64_t[]){1, 0}), 0, 0);
        break;
    default:
        z = ir_add(&b, dot(&b, x, x, 0, 0), square);
        break;
    }
    ir_output(&b, z);
    uint32_t f = finish(&b);
    struct nest_program *p = schedule_with(f, &rich);
    check_program(f, p);
    check_run(f, p, draw_inputs(f, seed));
    for (uint32_t i = 0; i < p->steps.count; i++)
        if (p->steps.at[i].kind == NEST_STEP_GEMM)
            return p->steps.at[i].gemm.is_symmetric;
    ck_abort_msg("no product");
}

START_TEST(symmetric_products_are_known)
{
    for (int form = 0; form < 12; form++)
        ck_assert_msg(is_symmetric(form) == (form < 6), "form %d", form);
}
END_TEST

// A product of three pairs of small matrices, over their first axis or their last one, or over both.
static uint32_t long_product(int what, int64_t k)
{
    struct ir_builder b = begin("long");
    int64_t x_dims[] = {what ? 3 : k, what ? k : 3, 8}, y_dims[] = {3, 8, k};
    ir_id x = ir_param(&b, type_of_dims(JOT_F32, 3, x_dims));
    ir_id y = ir_param(&b, type_of_dims(JOT_F32, 3, y_dims));
    if (what == 2)
        x = ir_transpose(&b, x, (int64_t[]){0, 2, 1});
    struct ir_dot d = {.n_batch = 1,
                       .n_contract = 1,
                       .lhs_batch = (int64_t[]){what == 0},
                       .rhs_batch = (int64_t[]){0},
                       .lhs_contract = (int64_t[]){what},
                       .rhs_contract = (int64_t[]){2}};
    ir_output(&b, ir_dot_general(&b, x, y, &d));
    return finish(&b);
}

// Its sums are cut where the matrices lie, in even parts.
START_TEST(long_sums_are_cut)
{
    static const int64_t terms[] = {
        6000, 6007, 4000}; // the second has no even parts, the third is not long
    for (int i = 0; i < 3; i++) {
        uint32_t f = long_product(_i, terms[i]), changed = pass_long_products(module, f);
        ck_assert_int_eq(f == changed, i > 0);
        struct nest_program *p = schedule_with(changed, &rich);
        check_program(changed, p);
        struct ir_tensor *in = draw_inputs(f, seed);
        for (int x = 0; x < 2; x++)
            for (int64_t e = 0; e < 24 * terms[i]; e++) // whole numbers, whose sums are exact
                ((float *)in[x].data)[e] = (float)(e % (11 + x) - 5);
        ck_assert(bits_equal(*evaluate(f, in), *evaluate(changed, in)));
        check_run(changed, p, in);
        const struct nest_gemm *g = only_product(changed, p, i == 0);
        int64_t matrices = g->batch[0] * g->batch[1] * g->batch[2] * g->batch[3];
        ck_assert_int_eq(g->k * matrices, 3 * terms[i]);
        ck_assert_int_eq(g->k, i ? terms[i] : 600);
    }
}
END_TEST

static uint32_t product_of(int precision, int64_t m, int64_t n, int64_t k)
{
    struct ir_builder b = begin("product");
    ir_id x = ir_param(&b, F32(m, k)), y = ir_param(&b, F32(k, n));
    struct ir_dot d = {.n_contract = 1,
                       .lhs_contract = (int64_t[]){1},
                       .rhs_contract = (int64_t[]){0},
                       .precision = precision};
    ir_output(&b, ir_dot_general(&b, x, y, &d));
    return finish(&b);
}

// A sum that is long is one of two products.
START_TEST(three_products_are_nearly_exact)
{
    enum { M = 40, N = 50 };
    const int64_t K = _i ? 2000 : 300, piece = _i ? 1024 : 300;
    uint32_t f = product_of(3, M, N, K), changed = pass_three_products(module, f);
    ck_assert_uint_ne(f, changed);
    struct nest_program *p = schedule_with(changed, &rich);
    int64_t terms = 0, longest = 0;
    check_program(changed, p);
    for (uint32_t i = 0; i < p->steps.count; i++) {
        const struct nest_step *s = &p->steps.at[i];
        if (s->kind != NEST_STEP_GEMM)
            continue;
        ck_assert_int_eq(s->gemm.precision, 1);
        terms += s->gemm.k;
        longest = s->gemm.k > longest ? s->gemm.k : longest;
    }
    ck_assert_int_eq(terms, 3 * K);
    ck_assert_int_eq(longest, 2 * K + piece);
    struct ir_tensor *in = draw_inputs(f, seed);
    float *x = in[0].data, *y = in[1].data;
    for (int64_t i = 0; i < M; i++) // rows of very different sizes
        for (int64_t k = 0; k < K; k++)
            x[i * K + k] = ldexpf(sinf((float)(i * K + k)), (int)i - 20);
    for (int64_t k = 0; k < K * N; k++)
        y[k] = cosf((float)k);
    x[5 * K] = INFINITY;
    struct ir_tensor *have = evaluate(changed, in);
    for (int64_t i = 0; i < M; i++)
        for (int64_t j = 0; j < N; j++) {
            double want = 0, size = 0, got = (double)((const float *)have[0].data)[i * N + j];
            for (int64_t k = 0; k < K; k++) {
                double term = (double)x[i * K + k] * (double)y[k * N + j];
                want += term;
                size += fabs(term);
            }
            if (i == 5)
                ck_assert(isinf(got) && (got > 0) == (want > 0));
            else
                ck_assert_double_le(fabs(got - want), 0x1p-20 * size);
        }
    // Of two summed axes the long one is cut.
    struct ir_builder b = begin("product");
    ir_id left = ir_param(&b, F32(M, 3, K)), right = ir_param(&b, F32(3, K, N));
    struct ir_dot d = {.n_contract = 2,
                       .lhs_contract = (int64_t[]){1, 2},
                       .rhs_contract = (int64_t[]){0, 1},
                       .precision = 3};
    ir_output(&b, ir_dot_general(&b, left, right, &d));
    f = finish(&b);
    changed = pass_three_products(module, f);
    int products = 0;
    ir_for_each_node (ir_function(module, changed), n)
        products += n->op == IR_dot_general;
    ck_assert_int_eq(products, _i ? 4 : 2); // the root of 3 K / 504
    in = draw_inputs(f, seed);
    have = evaluate(changed, in);
    struct ir_tensor *want = evaluate(f, in);
    for (int64_t i = 0; i < M * N; i++)
        ck_assert_double_le(fabs((double)((const float *)have[0].data)[i] -
                                 (double)((const float *)want[0].data)[i]),
                            0x1p-18 * (double)K);
    // Full and small products stay as they are.
    ck_assert_uint_eq(pass_three_products(module, product_of(1, M, N, K)),
                      product_of(1, M, N, K));
    ck_assert_uint_eq(pass_three_products(module, product_of(3, 4, 4, 4)),
                      product_of(3, 4, 4, 4));
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_loop_test(t, products_do_what_follows, 0, 2);
    tcase_add_test(t, products_leave_what_they_cannot_do);
    tcase_add_test(t, few_terms_are_a_kernel);
    tcase_add_test(t, products_below_tiles_are_a_kernel);
    tcase_add_test(t, running_sums_lie_along_lanes);
    tcase_add_test(t, products_in_place_of_the_library_are_apart);
    tcase_add_test(t, programs_run_as_before);
    tcase_add_test(t, donated_addends_are_overwritten);
    tcase_add_test(t, carried_addends_are_overwritten);
    tcase_add_test(t, half_types_are_for_rich_libraries);
    tcase_add_loop_test(t, narrow_operands_are_for_rich_libraries, 0, 8);
    tcase_add_loop_test(t, other_bytes_are_a_kernel, 0, 4);
    tcase_add_loop_test(t, half_products_are_of_f32, 0, 2);
    tcase_add_loop_test(t, operands_are_packed, 0, 3);
    tcase_add_test(t, symmetric_products_are_known);
    tcase_add_loop_test(t, masks_look_at_what_is_stored, 0, 2);
    tcase_add_loop_test(t, long_sums_are_cut, 0, 3);
    tcase_add_loop_test(t, three_products_are_nearly_exact, 0, 2);
}

int main(void) { return support_run("products", add_tests); }
