// SPDX-License-Identifier: Apache-2.0
// Attention and recurrent layers beside the numbers of Flax and JAX, and sequences that grow.
#include "layers_support.h"

#include <jot/layers.h>

static jot_value dot_product(const jot_value *x)
{
    return jot_dot_product_attention(x[0], x[1], x[2]);
}
static jot_value dot_product_options(const jot_value *x)
{
    jot_value mask = jot_not_equal(jot_reshape(case_integers(20, 5), 4, 5), 3);
    return jot_dot_product_attention(x[0], x[1], x[2], .bias = x[3], .mask = mask,
                                     .causal = true, .scale = 0.3);
}
static jot_value rotary(const jot_value *x)
{
    return jot_rotary(x[0], jot_arange(JOT_I32, 3), 100);
}
static jot_attention attention_of(const jot_value *x)
{
    return (jot_attention){x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]};
}
static jot_value attention(const jot_value *x)
{
    return jot_attention_apply(attention_of(x + 1), x[0]);
}
static jot_value attention_causal(const jot_value *x)
{
    return jot_attention_apply(attention_of(x + 1), x[0], .causal = true, .rotary = 1e4);
}
// The first positions at once, and the others one by one.
static jot_value attention_steps(const jot_value *x)
{
    enum { FIRST = 2, ALL = 5 };
    jot_attention p = attention_of(x + 1);
    jot_kv_cache cache = jot_kv_cache_init(p, 7, 2);
    jot_value y = jot_attention_step(p, jot_slice(x[0], 1, 0, FIRST), &cache, .rotary = 1e4);
    jot_value rows = jot_move_axis(jot_slice(x[0], 1, FIRST, ALL), 1, 0), row;
    JOT_SCAN ((cache), (rows), (row)) {
        row = jot_attention_step(p, jot_expand_dims(rows, 1), &cache, .rotary = 1e4);
    }
    row = jot_move_axis(jot_squeeze(row, 2), 0, 1);
    jot_assert(jot_equal(cache.length, ALL), "the cache counts its positions");
    return jot_concatenate(1, y, row);
}
static jot_value attention_memory(const jot_value *x)
{
    return jot_attention_apply(attention_of(x + 2), x[0], .memory = x[1]);
}
static jot_value gru(const jot_value *x)
{
    return jot_gru_step(((jot_gru){x[2], x[3], x[4], x[5]}), x[0], x[1]);
}
static jot_value gru_scan(const jot_value *x)
{
    jot_gru p = {x[1], x[2], x[3], x[4]};
    jot_value rows = x[0], y, h = jot_mul(0, jot_slice(jot_take(rows, 0), -1, 0, 3));
    JOT_SCAN ((h), (rows), (y)) {
        h = jot_gru_step(p, h, rows);
        y = h;
    }
    return y;
}
static jot_value lstm(const jot_value *x)
{
    jot_lstm_state s = {x[0], x[1]};
    s = jot_lstm_step(((jot_lstm){x[3], x[4], x[5]}), s, x[2]);
    return jot_concatenate(0, jot_reshape(s.h, -1), jot_reshape(s.c, -1));
}

#define ATTENTION                                                                              \
    {{2, 5, 6}, {6, 4, 4}, {6, 2, 4}, {6, 2, 4}, {4, 4, 6}, {4, 4}, {2, 4}, {2, 4}, {6}}
static const struct layer_case cases[] = {
    {"dot_product", dot_product, {{2, 3, 2, 4}, {2, 5, 2, 4}, {2, 5, 2, 4}}},
    {"dot_product_options",
     dot_product_options,
     {{1, 4, 4, 2}, {1, 5, 2, 2}, {1, 5, 2, 2}, {1, 4, 4, 5}}},
    {"rotary", rotary, {{2, 3, 2, 6}}},
    {"attention", attention, ATTENTION},
    {"attention_causal", attention_causal, ATTENTION},
    {"attention_causal", attention_steps, ATTENTION},
    {"attention_memory",
     attention_memory,
     {{3, 4}, {5, 4}, {4, 2, 3}, {4, 2, 3}, {4, 2, 3}, {2, 3, 4}, {2, 3}, {2, 3}, {2, 3}, {4}}},
    {"gru", gru, {{2, 3}, {2, 4}, {4, 9}, {3, 9}, {9}, {3}}},
    {"gru_scan", gru_scan, {{4, 2, 4}, {4, 9}, {3, 9}, {9}, {3}}},
    {"lstm", lstm, {{2, 3}, {2, 3}, {2, 4}, {4, 12}, {3, 12}, {12}}},
};

START_TEST(test_f32) { case_check(&cases[_i], JOT_F32); }
END_TEST

START_TEST(test_f64) { case_check(&cases[_i], JOT_F64); }
END_TEST

START_TEST(test_lanes) { case_check_lanes(&cases[_i]); }
END_TEST

// What is made has the shapes that are documented, and a half type stays one.
START_TEST(test_layers_are_made)
{
    jot_scope *scope = jot_scope_open();
    jot_value key = jot_random_key(0), x = jot_ones(JOT_BF16, 3, 5, 8),
              h = jot_ones(JOT_F32, 6);
    jot_attention a =
        jot_attention_init(key, 8, 4, .kv_heads = 2, .head_size = 6, .no_bias = true,
                           .dtype = JOT_BF16, .w = jot_truncated_normal_dims, .scale = 0.02);
    ck_assert_int_eq(jot_value_rank(a.wk), 3);
    ck_assert_int_eq((int)jot_value_dim(a.wk, 1), 2);
    ck_assert_int_eq((int)jot_value_dim(a.wo, 1), 6);
    ck_assert_int_eq((int)jot_value_size(a.bo), 0);
    check_between(jot_max(jot_abs(a.wq)), -INFINITY, 0.0401);
    check_between(jot_std(jot_convert(a.wq, JOT_F32)), 0.015, INFINITY);
    x = jot_attention_apply(a, x, .causal = true, .rotary = 1e4);
    ck_assert_int_eq(jot_value_dtype(x), JOT_BF16);
    check_between(jot_sum(x), -DBL_MAX, DBL_MAX);
    jot_gru g = jot_gru_init(key, 8, 6);
    jot_lstm l = jot_lstm_init(key, 8, 6, .scale = 2);
    ck_assert_int_eq((int)jot_value_dim(g.wh, 1), 18);
    ck_assert_int_eq((int)jot_value_dim(l.wx, 1), 24);
    jot_value one =
        jot_matmul(jot_swap_axes(jot_slice(g.wh, 1, 6, 12), 0, 1), jot_slice(g.wh, 1, 6, 12));
    check_between(jot_max(jot_abs(jot_sub(one, jot_eye(JOT_F32, 6, 6)))), -INFINITY, 1e-5);
    jot_lstm_state s = jot_lstm_step(l, ((jot_lstm_state){h, h}), jot_ones(JOT_F32, 8));
    check_between(jot_sum(s.h), -DBL_MAX, DBL_MAX);
    check_between(jot_sum(jot_gru_step(g, h, jot_ones(JOT_F32, 8))), -DBL_MAX, DBL_MAX);
    jot_scope_close(scope);
}
END_TEST

static jot_value sum_of_causal(jot_value q, jot_value k, jot_value v)
{
    jot_value y = jot_dot_product_attention(q, k, v, .causal = true);
    return jot_sum(jot_square(jot_astype(y, JOT_F32)));
}

// In bf16 a GPU has a kernel of its own for attention, and for its gradient.
START_TEST(test_half_types)
{
    jot_array *x[3], *wide[3], *g[3], *want[3];
    jot_executable *f = jot_jit(jot_grad(jot_fn(sum_of_causal), 0, 1, 2));
    jot_scope *scope = jot_scope_open();
    for (int i = 0; i < 3; i++) {
        jot_value v = jot_random_normal(jot_random_key(i), JOT_BF16, 2, 64, 2, 32);
        must(jot_eval(v, &x[i]));
        must(jot_eval(jot_astype(v, JOT_F32), &wide[i]));
    }
    must(jot_call(f, JOT_IN(wide), JOT_OUT(want)));
    must(jot_call(f, JOT_IN(x), JOT_OUT(g)));
    const char *text = jot_executable_text(f, "schedule");
    bool is_kernel = text && strstr(text, "(gradient of attention)");
    ck_assert(is_kernel == (jot_device_kind_of(NULL) == JOT_CUDA));
    for (int i = 0; i < 3; i++) {
        jot_value off = jot_max(jot_abs(jot_sub(jot_astype(g[i], JOT_F32), want[i])));
        check_between(jot_div(off, jot_max(jot_abs(want[i]))), 0, 0.02);
    }
    jot_scope_close(scope);
    jot_arrays_release(JOT_OUT(x)), jot_arrays_release(JOT_OUT(wide));
    jot_arrays_release(JOT_OUT(g)), jot_arrays_release(JOT_OUT(want));
    jot_executable_release(f);
}
END_TEST

// A query that sees no key has the mean of all values, and no NaN in its gradient.
START_TEST(test_a_query_may_see_no_key)
{
    jot_scope *scope = jot_scope_open();
    jot_value q = jot_variable(jot_ones(JOT_F32, 1, 1, 2));
    jot_value v = jot_reshape(jot_arange(JOT_F32, 6), 3, 1, 2);
    jot_value y = jot_dot_product_attention(q, v, v, .mask = jot_from((bool)false));
    check_item(jot_sum(y), 5, 1e-6);
    check_between(jot_sum(jot_gradient(jot_sum(y), q)), -DBL_MAX, DBL_MAX);
    jot_scope_close(scope);
}
END_TEST

START_TEST(test_mistakes_are_told)
{
    jot_scope *scope = jot_scope_open();
    jot_value key = jot_random_key(0), x = jot_ones(JOT_F32, 5, 8),
              q = jot_ones(JOT_F32, 5, 3, 4);
    jot_attention p = jot_attention_init(key, 8, 2);
    jot_kv_cache cache = jot_kv_cache_init(p, 8);
    check_told(jot_attention_init(key, 8, 4, .kv_heads = 3).wk, "kv_heads divides heads");
    check_told(jot_attention_init(key, 3, 4).bo, "head_size is 0");
    check_told(jot_attention_step(p, x, &cache, .memory = x), "takes no memory");
    check_told(jot_attention_step(p, x, &cache, .mask = x), "takes no mask and no bias");
    check_told(jot_attention_apply(p, x, .rotary = -1), "rotary is -1");
    check_told(jot_dot_product_attention(q, q, q, .rotary = 10), "takes no rotary");
    check_told(jot_dot_product_attention(q, jot_slice(q, 1, 0, 2), q),
               "3 heads of queries and 2");
    check_told(jot_dot_product_attention(x, x, x), "[..., t, heads, d]");
    check_told(jot_rotary(jot_ones(JOT_F32, 5, 1, 3), 0, 1e4), "even d");
    check_told(jot_rotary(q, 0, -2), "base is -2");
    check_told(jot_kv_cache_init(p, 0).k, "most is 0");
    check_told(jot_gru_init(key, 0, 3).wh, "in is 0");
    check_told(jot_lstm_init(key, 3, 3, .no_bias = true).b, "has no option no_bias");
    jot_scope_close(scope);
}
END_TEST

JOT_STRUCT(cell, (jot_dense, dense), (jot_normalization, norm));

static struct cell cell_init(jot_value key)
{
    return (struct cell){jot_dense_init(key, 4, 4, .dtype = JOT_F64),
                         jot_normalization_init(4, .dtype = JOT_F64)};
}
static jot_value cell_apply(struct cell c, jot_value x)
{
    return jot_add(x, jot_layer_norm(c.norm, jot_tanh(jot_dense_apply(c.dense, x))));
}

// Alike layers made by a map are those of a loop, and a scan goes through them.
START_TEST(test_layers_stack)
{
    jot_scope *scope = jot_scope_open();
    jot_value keys = jot_random_split(jot_random_key(8), 5), x = jot_ones(JOT_F64, 2, 4);
    jot_value y = x;
    struct cell stack, one;
    JOT_VMAP ((keys), (stack)) {
        stack = cell_init(keys);
    }
    JOT_SCAN ((x), (stack), ()) {
        x = cell_apply(stack, x);
    }
    for (int i = 0; i < 5; i++) {
        one = cell_init(jot_take(keys, i));
        y = cell_apply(one, y);
    }
    check_between(jot_max(jot_abs(jot_sub(x, y))), 0, 1e-14);
    jot_scope_close(scope);
}
END_TEST

static void add(TCase *t)
{
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, test_f32, 0, sizeof cases / sizeof *cases);
    tcase_add_loop_test(t, test_f64, 0, sizeof cases / sizeof *cases);
    tcase_add_loop_test(t, test_lanes, 0, sizeof cases / sizeof *cases);
    tcase_add_test(t, test_layers_are_made);
    tcase_add_test(t, test_half_types);
    tcase_add_test(t, test_a_query_may_see_no_key);
    tcase_add_test(t, test_layers_stack);
    tcase_add_test(t, test_mistakes_are_told);
}

int main(void) { return run_suite("library/attention", add); }
