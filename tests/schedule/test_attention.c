// SPDX-License-Identifier: Apache-2.0
// Two products around a softmax as one kernel, and what is left alone.
#include "schedule_examples.h"

#include "schedule/kernels/attention.h"

#define HALF(...) OF(JOT_BF16, __VA_ARGS__)
#define OF(dtype, ...)                                                                         \
    type_of_dims(dtype, (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),             \
                 (int64_t[]){__VA_ARGS__})

enum what {
    PLAIN,
    MASKED,
    BIASED,
    SCORES_KEPT,   // something else reads the scores
    WEIGHTS_KEPT,  // or the weights
    OTHER_SUM,     // weights are not divided by their sum
    ODD_ROWS,      // that do not begin at multiples of 16 bytes
    ROWS_REVERSED, // f reads the scores of another key
    COUNT
};

static ir_id product(struct ir_builder *b, ir_id x, ir_id y, int contracted)
{
    struct ir_dot d = {.n_batch = 1,
                       .n_contract = 1,
                       .lhs_batch = (int64_t[]){0},
                       .rhs_batch = (int64_t[]){0},
                       .lhs_contract = (int64_t[]){2},
                       .rhs_contract = (int64_t[]){contracted}};
    return ir_dot_general(b, x, y, &d);
}

static ir_id reversed(struct ir_builder *b, ir_id x)
{
    return ir_build(b, IR_rev, 1, &x, ir_attrs(module, IR_INTS(axes, 1, ((int64_t[]){2}))));
}

static uint32_t attention_of(enum what what)
{
    enum { HEADS = 3, QUERIES = 20, KEYS = 40 };
    int64_t depth = what == ODD_ROWS ? 54 : 56;
    struct ir_builder b = begin("attention");
    ir_id q = ir_param(&b, HALF(HEADS, QUERIES, depth));
    ir_id k = ir_param(&b, HALF(HEADS, KEYS, depth)), v = ir_param(&b, HALF(HEADS, KEYS, 48));
    ir_id bias = ir_param(&b, HALF(HEADS, QUERIES, KEYS));
    ir_id s = product(&b, q, k, 2), f = ir_mul(&b, s, ir_scalar_like(&b, s, 0.25));
    if (what == MASKED) {
        struct ir_type t = type_of_dims(JOT_I32, 2, (int64_t[]){QUERIES, KEYS});
        ir_id i = ir_iota(&b, t, 0), j = ir_iota(&b, t, 1);
        ir_id is_past = ir_broadcast_in_dim(
            &b, ir_ge(&b, i, j), 3, (int64_t[]){HEADS, QUERIES, KEYS}, (int64_t[]){1, 2});
        f = ir_select(&b, is_past, f, ir_full(&b, ir_type_in(&b, f), -1e4));
    }
    if (what == BIASED)
        f = ir_add(&b, f, bias);
    if (what == ROWS_REVERSED)
        f = reversed(&b, f);
    ir_id w = what == OTHER_SUM ? ir_exp(&b, ir_sub(&b, f, along_rows(&b, IR_reduce_max, f)))
                                : softmax_of(&b, f);
    ir_output(&b, product(&b, w, v, 1));
    if (what == SCORES_KEPT || what == WEIGHTS_KEPT)
        ir_output(&b, what == SCORES_KEPT ? s : w);
    return finish(&b);
}

// The nest's results beside the evaluator's, which rounds scores and all else to bf16.
static void check_near(uint32_t f, const struct nest_program *p)
{
    const struct ir_graph *g = graph(f);
    struct ir_tensor *in = draw_inputs(f, seed), *want = evaluate(f, in);
    void *inputs[4], *output = arena_allocate(module->arena, tensor_bytes(want->type) + 16);
    for (uint32_t i = 0; i < g->n_params; i++)
        inputs[i] = in[i].data;
    require(nest_program_eval(p, inputs, &output));
    double error = distance((struct ir_tensor){want->type, output}, *want);
    ck_assert_msg(error < 0.1, "%g from the evaluator's", error);
}

START_TEST(attention_is_one_kernel)
{
    uint32_t f = attention_of((enum what)_i);
    struct nest_program *p = schedule_with(f, &(struct schedule_options){.rich_gemm = true});
    check_program(f, p);
    bool is_one = _i <= BIASED;
    require_of((p->steps.count == 1) == is_one, "not as many kernels", f, p);
    if (is_one)
        check_near(f, p);
    // Of a library without half types it is other kernels.
    check_run(f, schedule(f), draw_inputs(f, seed));
}
END_TEST

// ---- Gradients

enum of_gradient {
    OF_PLAIN,
    OF_MASKED,
    OF_BIASED,
    OF_ONES,       // of the sum of results
    OF_DIFFERENCE, // dy is made of the results, for which the forward pass goes on
    OF_NO_VALUES,  // the gradient of v is not asked for
    OF_BIAS,       // that of a bias is asked for, too
    OF_LONG_ROWS,
    OF_COUNT
};

// As jot_softmax has it: the largest is subtracted without a derivative.
static ir_id plain_softmax(struct ir_builder *b, ir_id x)
{
    ir_id e = ir_exp(b, ir_sub(b, x, ir_stop_gradient(b, along_rows(b, IR_reduce_max, x))));
    return ir_div(b, e, along_rows(b, IR_reduce_sum, e));
}

static uint32_t gradient_of_size(enum of_gradient what, jot_dtype dtype, int64_t heads,
                                 int64_t queries, int64_t keys)
{
    int64_t depth = what == OF_LONG_ROWS ? 72 : 56, columns = 48;
    struct ir_builder b = begin("attention");
    ir_id params[4], v = 0;
    params[0] = ir_param(&b, OF(dtype, heads, queries, depth));
    params[1] = ir_param(&b, OF(dtype, heads, keys, depth));
    for (int i = 2; i < 4; i++) // the bias is a parameter before v, or behind it
        if ((i == 3) == (what == OF_NO_VALUES))
            v = params[i] = ir_param(&b, OF(dtype, heads, keys, columns));
        else
            params[i] = ir_param(&b, OF(dtype, heads, queries, keys));
    ir_id bias = params[what == OF_NO_VALUES ? 2 : 3];
    ir_id dy = ir_param(&b, OF(dtype, heads, queries, columns));
    ir_id s = product(&b, params[0], params[1], 2);
    ir_id f = ir_mul(&b, s, ir_scalar_like(&b, s, 0.25));
    if (what == OF_MASKED) {
        struct ir_type t = type_of_dims(JOT_I32, 2, (int64_t[]){queries, keys});
        ir_id i = ir_iota(&b, t, 0), j = ir_iota(&b, t, 1);
        ir_id is_past = ir_broadcast_in_dim(
            &b, ir_ge(&b, i, j), 3, (int64_t[]){heads, queries, keys}, (int64_t[]){1, 2});
        f = ir_select(&b, is_past, f, ir_full(&b, ir_type_in(&b, f), -1e4));
    }
    if (what == OF_BIASED || what == OF_BIAS)
        f = ir_add(&b, f, bias);
    ir_id y = ir_convert(&b, product(&b, plain_softmax(&b, f), v, 1), JOT_F32);
    ir_id wide = ir_convert(&b, dy, JOT_F32);
    if (what == OF_DIFFERENCE) {
        ir_id difference = ir_sub(&b, y, wide);
        y = ir_mul(&b, difference, difference);
    } else if (what != OF_ONES) {
        y = ir_mul(&b, y, wide);
    }
    ir_output(&b, sum_all(&b, y));
    return gradient(&b, what == OF_BIAS ? 4 : what == OF_NO_VALUES ? 2 : 3);
}

static uint32_t gradient_of_attention(enum of_gradient what, jot_dtype dtype)
{
    return gradient_of_size(what, dtype, 2, 56, 64);
}

static uint32_t count_products(const struct nest_program *p)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->steps.count; i++)
        n += p->steps.at[i].kind == NEST_STEP_GEMM;
    return n;
}

static bool has_reason(const struct nest_program *p, const char *reason)
{
    for (uint32_t i = 0; i < p->steps.count; i++)
        if (p->steps.at[i].reason && !strcmp(p->steps.at[i].reason, reason))
            return true;
    return false;
}

static struct ir_tensor widened(struct ir_tensor x)
{
    const int64_t *dims = ir_dims(module, x.type);
    struct ir_tensor y = {type_of_dims(JOT_F32, x.type.rank, dims), NULL};
    y.data = arena_allocate(module->arena, tensor_bytes(y.type) + 16);
    for (size_t i = 0; i < tensor_bytes(y.type) / sizeof(float); i++)
        ((float *)y.data)[i] = dtype_bf16_to_f32(((const uint16_t *)x.data)[i]);
    return y;
}

// The nest's results beside the evaluator's in f32.
static void check_gradients_near(enum of_gradient what, uint32_t f,
                                 const struct nest_program *p)
{
    uint32_t n = graph(f)->n_params;
    struct ir_tensor *in = draw_inputs(f, seed), wide[5];
    void *inputs[5], *outputs[3];
    for (uint32_t i = 0; i < n; i++) {
        inputs[i] = in[i].data;
        wide[i] = widened(in[i]);
    }
    struct ir_tensor *want = evaluate(gradient_of_attention(what, JOT_F32), wide);
    struct ir_tensor got[3];
    for (uint32_t i = 0; i < 3; i++) {
        got[i].type = type_of_dims(JOT_BF16, want[i].type.rank, ir_dims(module, want[i].type));
        outputs[i] = got[i].data = arena_allocate(module->arena, tensor_bytes(want[i].type));
    }
    require(nest_program_eval(p, inputs, outputs));
    for (uint32_t i = 0; i < 3; i++) {
        const float *x = widened(got[i]).data, *y = want[i].data;
        float error = 0, largest = 0;
        for (size_t k = 0; k < tensor_bytes(want[i].type) / sizeof(float); k++) {
            error = fmaxf(error, fabsf(x[k] - y[k]));
            largest = fmaxf(largest, fabsf(y[k]));
        }
        ck_assert_msg(error <= 0.02f * largest, "gradient %u: %g from one of %g", i,
                      (double)error, (double)largest);
    }
}

START_TEST(gradient_is_one_kernel)
{
    uint32_t f = gradient_of_attention((enum of_gradient)_i, JOT_BF16);
    struct nest_program *p = schedule_with(f, &(struct schedule_options){.rich_gemm = true});
    check_program(f, p);
    bool is_one = _i <= OF_DIFFERENCE;
    require_of(has_reason(p, "gradient of attention") == is_one, "no kernel of its own", f, p);
    require_of((count_products(p) == 0) == is_one, "not as many products", f, p);
    require_of(has_reason(p, "attention") == (_i == OF_DIFFERENCE), "no forward pass", f, p);
    if (is_one)
        check_gradients_near((enum of_gradient)_i, f, p);
    check_run(f, schedule(f), draw_inputs(f, seed));
}
END_TEST

// Fission leaves it to the threads that divide its products, however long its loops are.
START_TEST(long_gradient_stays_one_kernel)
{
    uint32_t f = gradient_of_size(OF_PLAIN, JOT_BF16, 128, 1024, 1024);
    struct schedule_options options = schedule_options_of(true);
    struct nest_program *p = schedule_with(f, &options);
    struct attention_gradient g;
    int found = 0;
    for (uint32_t i = 0; i < p->nests.count; i++)
        found += attention_find_gradient(p->nests.at[i], &g);
    require_of(found == 1, "no kernel of its own", f, p);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_test(t, long_gradient_stays_one_kernel);
    tcase_add_loop_test(t, attention_is_one_kernel, 0, COUNT);
    tcase_add_loop_test(t, gradient_is_one_kernel, 0, OF_COUNT);
}

int main(void) { return support_run("attention", add_tests); }
