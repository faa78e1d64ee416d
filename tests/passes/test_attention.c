// SPDX-License-Identifier: Apache-2.0
// Two products around a softmax as one kernel, and what is left alone.
#include "schedule_examples.h"

#define HALF(...)                                                                              \
    type_of_dims(JOT_BF16, (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),          \
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

static void add_tests(TCase *t) { tcase_add_loop_test(t, attention_is_one_kernel, 0, COUNT); }

int main(void) { return support_run("attention", add_tests); }
