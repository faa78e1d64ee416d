// SPDX-License-Identifier: Apache-2.0
// Random programs with nested calls, checkpoints and custom rules: derivatives, maps and
// simplification of whole functions, and of their derivatives.
#include "pass_support.h"

enum { INPUTS = 3, ROUNDS = 60 };

// Values that later nodes read, all bounded so that differences stay accurate.
struct pool {
    struct ir_builder *b;
    uint64_t *state;
    ir_id v[64];
    int count;
};

static int below(uint64_t *state, int n) { return (int)(opcase_random(state) * n); }

static ir_id any(struct pool *p) { return p->v[below(p->state, p->count)]; }

// A value brought to the type: by broadcasting, folding or cutting.
static ir_id of_type(struct pool *p, ir_id v, struct ir_type t)
{
    struct ir_builder *b = p->b;
    struct ir_type have = ir_type_in(b, v);
    if (ir_type_equal(have, t))
        return v;
    if (have.rank > t.rank) {
        int64_t axes[] = {0, 1};
        const enum ir_op ops[] = {IR_reduce_sum, IR_reduce_max, IR_reduce_prod};
        return of_type(p, ir_reduce(b, ops[below(p->state, 3)], v, have.rank - t.rank, axes),
                       t);
    }
    int64_t axes[] = {t.rank - have.rank, 1};
    return ir_broadcast_in_dim(b, v, t.rank, ir_dims(module, t), axes);
}

static ir_id smooth(struct pool *p, ir_id x)
{
    struct ir_builder *b = p->b;
    ir_id one = ir_scalar_like(b, x, 1);
    switch (below(p->state, 8)) {
    case 0:
        return ir_sin(b, x);
    case 1:
        return ir_tanh(b, x);
    case 2:
        return ir_div(b, x, ir_add(b, one, ir_mul(b, x, x)));
    case 3:
        return ir_sqrt(b, ir_add(b, one, ir_mul(b, x, x)));
    case 4:
        return ir_select(b, ir_gt(b, x, ir_scalar_like(b, x, 0)), ir_log1p(b, ir_abs(b, x)), x);
    case 5:
        return ir_logistic(b, x);
    case 6:
        return ir_integer_pow(b, ir_sin(b, x), 3);
    default:
        return ir_atan2(b, x, ir_add(b, one, ir_mul(b, x, x)));
    }
}

static ir_id layout(struct pool *p, ir_id x)
{
    struct ir_builder *b = p->b;
    struct ir_type t = ir_type_in(b, x);
    if (t.rank == 0)
        return ir_neg(b, x);
    int64_t last = t.rank - 1, starts[] = {0, 0}, limits[2], cut[2], swap[] = {1, 0};
    for (int i = 0; i < t.rank; i++)
        limits[i] = cut[i] = ir_dims(module, t)[i];
    switch (below(p->state, 4)) {
    case 0:
        return ir_rev(b, x, 1, &last);
    case 1:
        return ir_cumulative(b, IR_cumsum, x, (int)last, below(p->state, 2));
    case 2:
        cut[last] = starts[last] = 1;
        return ir_concatenate(b, 2,
                              (ir_id[]){ir_slice(b, x, starts, limits, NULL),
                                        ir_slice(b, x, (int64_t[]){0, 0}, cut, NULL)},
                              (int)last);
    default:
        return t.rank == 1 ? x : ir_transpose(b, ir_transpose(b, x, swap), swap);
    }
}

static ir_id contract(struct pool *p)
{
    struct ir_builder *b = p->b;
    ir_id w = of_type(p, any(p), F64(2, 3)), x = of_type(p, any(p), F64(3));
    struct ir_dot dot = {
        .n_contract = 1, .lhs_contract = (int64_t[]){1}, .rhs_contract = (int64_t[]){0}};
    ir_id y = ir_dot_general(b, w, x, &dot);
    return ir_dot_general(b, y, w,
                          &(struct ir_dot){.n_contract = 1,
                                           .lhs_contract = (int64_t[]){0},
                                           .rhs_contract = (int64_t[]){0}});
}

static struct ir_type input_type(int i)
{
    return i == 0 ? F64_SCALAR : i == 1 ? F64(3) : F64(2, 3);
}

static uint32_t make_program(uint64_t *state, int depth);

// A call of a random program of the same signature.
static ir_id call(struct pool *p, int depth)
{
    uint32_t f = make_program(p->state, depth - 1);
    ir_id in[INPUTS];
    for (int i = 0; i < INPUTS; i++)
        in[i] = of_type(p, any(p), input_type(i));
    return ir_call(p->b, below(p->state, 3) ? IR_call : IR_checkpoint, 1, &f, INPUTS, in);
}

// (scalar, vector, matrix) -> (vector, scalar)
static uint32_t make_program(uint64_t *state, int depth)
{
    struct ir_builder b = ir_builder_make(module, "program", IR_BUILD_PLAIN);
    struct pool p = {.b = &b, .state = state, .count = INPUTS};
    for (int i = 0; i < INPUTS; i++)
        p.v[i] = ir_param(&b, input_type(i));
    int n = 4 + below(state, 8);
    for (int i = 0; i < n; i++) {
        ir_id x = any(&p), y;
        int kind = below(state, depth > 0 ? 7 : 6);
        if (kind < 2)
            y = smooth(&p, x);
        else if (kind == 2)
            y = ir_mul(&b, ir_sin(&b, x), of_type(&p, smooth(&p, any(&p)), ir_type_in(&b, x)));
        else if (kind == 3)
            y = ir_sub(&b, x, of_type(&p, any(&p), ir_type_in(&b, x)));
        else if (kind == 4)
            y = layout(&p, x);
        else if (kind == 5)
            y = contract(&p);
        else
            y = call(&p, depth);
        y = ir_mul(&b, y, ir_scalar_like(&b, y, 0.4)); // keeps slopes small
        p.v[p.count++] = ir_sin(&b, y);
    }
    ir_output(&b, of_type(&p, p.v[p.count - 1], F64(3)));
    ir_output(&b, of_type(&p, any(&p), F64_SCALAR));
    return done(&b);
}

static void check_program(uint32_t f, const struct ir_tensor *x, uint64_t *state)
{
    uint32_t g, h, n = graph(f)->n_params;
    const bool *all = mask_of(n, ~UINT64_C(0));
    struct ir_tensor in[INPUTS + 2];
    memcpy(in, x, sizeof *in * INPUTS);
    in[INPUTS] = draw(F64(3), state);
    in[INPUTS + 1] = draw(F64_SCALAR, state);
    check_differences("program", f, all, x, state);
    check_transpose("program", f, all, x, state);
    check_simplify("program", f, x);
    check_vmap("program", f, mask_of(n, 1u + (uint64_t)below(state, 7)), 3, x, 1e-13, "ANY",
               state);
    require(pass_vjp(module, f, all, &g));
    check_simplify("gradient", g, in);
    check_vmap("gradient", g, mask_of(n + 2, 1u + (uint64_t)below(state, 31)), 2, in, 1e-12,
               "ANY", state);
    check_transpose("gradient", g, mask_of(n + 2, ~UINT64_C(0)), in, state);
    require(pass_vjp(module, g, mask_of(n + 2, 7), &h));
    ck_assert_int_eq(ir_verify(graph(pass_simplify(module, h)), NULL), 0);
    // Linear part: forward and linear together are the tangent.
    struct pass_split s;
    require(pass_linearize(module, f, all, &s));
    ck_assert_int_eq(ir_verify(graph(s.forward), NULL) + ir_verify(graph(s.linear), NULL), 0);
    struct ir_tensor *dx = arena_array(module->arena, struct ir_tensor, INPUTS), *y, *want;
    struct ir_tensor *point =
        arena_array(module->arena, struct ir_tensor, s.n_residuals + INPUTS);
    for (uint32_t i = 0; i < INPUTS; i++)
        dx[i] = draw(input_type((int)i), state);
    y = evaluate(s.forward, x);
    for (uint32_t i = 0; i < s.n_residuals; i++)
        point[i] = s.residuals[i].from == PASS_RESIDUAL_INPUT ? x[s.residuals[i].index]
                                                              : y[s.residuals[i].index];
    memcpy(point + s.n_residuals, dx, sizeof *dx * INPUTS);
    want = tangents(f, all, x, dx);
    y = evaluate(s.linear, point);
    for (int i = 0; i < 2; i++)
        if (s.linear_out[i])
            ck_assert(distance(*y++, want[i]) < 1e-13);
}

START_TEST(programs_transform)
{
    for (int round = 0; round < ROUNDS; round++) {
        support_teardown();
        support_setup();
        uint64_t state = hash_combine(seed, (uint64_t)round);
        uint32_t f = make_program(&state, 2);
        struct ir_tensor x[INPUTS];
        for (int i = 0; i < INPUTS; i++)
            x[i] = opcase_draw(module, input_type(i), "UNIT", &state);
        check_program(f, x, &state);
    }
}
END_TEST

// The gradient of a value inside the program is that of the function.
START_TEST(values_and_functions_agree)
{
    for (int round = 0; round < ROUNDS; round++) {
        support_teardown();
        support_setup();
        uint64_t state = hash_combine(seed + 1, (uint64_t)round);
        uint32_t f = make_program(&state, 1), g;
        require(pass_vjp(module, f, mask_of(INPUTS, 7), &g));
        struct ir_builder b = ir_builder_make(module, "values", IR_BUILD_PLAIN);
        ir_id x[INPUTS], y[2], ct[INPUTS], t;
        for (int i = 0; i < INPUTS; i++)
            x[i] = ir_param(&b, input_type(i));
        for (int i = 0; i < INPUTS; i++)
            x[i] = ir_variable(&b, x[i]);
        ir_inline(&b, graph(f), x, y);
        ck_assert_msg(pass_gradient_in(&b, y[1], INPUTS, x, ct), "%s", b.message);
        ck_assert_msg(pass_tangent_in(&b, y[1], INPUTS, x, ct, &t), "%s", b.message);
        for (int i = 0; i < INPUTS; i++)
            ir_output(&b, ct[i]);
        ir_output(&b, t);
        struct ir_tensor in[INPUTS + 2];
        for (int i = 0; i < INPUTS; i++)
            in[i] = draw(input_type(i), &state);
        in[INPUTS] = zeros(F64(3));
        in[INPUTS + 1] = scalar_f64(1);
        struct ir_tensor *have = evaluate(done(&b), in), *want = evaluate(g, in) + 2;
        double squares = 0;
        for (int i = 0; i < INPUTS; i++) {
            double error = distance(have[i], want[i]);
            ck_assert_msg(error < 1e-13, "seed %" PRIu64 " round %d: off by %g", seed, round,
                          error);
            squares += pair(have[i], have[i]);
        }
        ck_assert_double_eq_tol(*(double *)have[INPUTS].data, squares, 1e-12 * (1 + squares));
    }
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_test(t, programs_transform);
    tcase_add_test(t, values_and_functions_agree);
}

int main(void) { return support_run("random", add_tests); }
