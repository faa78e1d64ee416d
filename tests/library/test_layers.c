// SPDX-License-Identifier: Apache-2.0
// Layers and initialisers beside the numbers of Flax and JAX.
#include "layers_support.h"

#include <jot/layers.h>

static jot_value none(void) { return jot_zeros(JOT_F32, 0); }

static jot_value dense(const jot_value *x)
{
    return jot_dense_apply(((jot_dense){x[1], x[2]}), x[0]);
}
static jot_value dense_no_bias(const jot_value *x)
{
    return jot_dense_apply(((jot_dense){x[1], none()}), x[0]);
}
static jot_value mlp(const jot_value *x)
{
    const jot_dense layers[] = {{x[1], x[2]}, {x[3], x[4]}, {x[5], x[6]}};
    return jot_mlp_apply(layers, x[0], jot_tanh);
}
static jot_value embedding(const jot_value *x)
{
    return jot_embedding_apply((jot_embedding){x[0]}, jot_reshape(case_integers(6, 5), 2, 3));
}
static jot_value embedding_scores(const jot_value *x)
{
    return jot_embedding_scores((jot_embedding){x[0]}, x[1]);
}
static jot_value conv(const jot_value *x)
{
    return jot_convolution_apply(((jot_convolution){x[1], x[2]}), x[0]);
}
static jot_value conv2(const jot_value *x)
{
    return jot_convolution_apply(((jot_convolution){x[1], x[2]}), x[0],
                                 .strides = JOT_DIMS(2, 1), .padding = JOT_PADDING_SAME);
}
static jot_value conv_groups(const jot_value *x)
{
    return jot_convolution_apply(((jot_convolution){x[1], none()}), x[0]);
}
static jot_value conv_dilated(const jot_value *x)
{
    return jot_convolution_apply(((jot_convolution){x[1], x[2]}), x[0],
                                 .rhs_dilation = JOT_DIMS(2, 3));
}
static jot_value conv_transpose1(const jot_value *x)
{
    return jot_convolution_transpose_apply(((jot_convolution){x[1], x[2]}), x[0],
                                           .strides = JOT_DIMS(2), .padding = JOT_PADDING_SAME);
}
static jot_value conv_transpose2(const jot_value *x)
{
    return jot_convolution_transpose_apply(((jot_convolution){x[1], x[2]}), x[0],
                                           .strides = JOT_DIMS(2, 2));
}
static jot_value conv_transpose3(const jot_value *x)
{
    return jot_convolution_transpose_apply(((jot_convolution){x[1], x[2]}), x[0],
                                           .strides = JOT_DIMS(1, 2, 1),
                                           .padding = JOT_PADDING_SAME);
}
static jot_value max_pool(const jot_value *x)
{
    return jot_max_pool(x[0], .window = JOT_DIMS(1, 2, 2, 1), .strides = JOT_DIMS(1, 2, 1, 1));
}
static jot_value avg_pool(const jot_value *x)
{
    return jot_avg_pool(x[0], .window = JOT_DIMS(1, 2, 3, 1));
}
static jot_value global_pool(const jot_value *x)
{
    return jot_concatenate(-1, jot_max(x[0], 1, 2), jot_mean(x[0], 1, 2));
}
static jot_value layer_norm(const jot_value *x)
{
    return jot_layer_norm(((jot_normalization){x[1], x[2]}), x[0]);
}
static jot_value rms_norm(const jot_value *x)
{
    return jot_rms_norm(((jot_normalization){x[1], none()}), x[0], .eps = 1e-6);
}
static jot_value group_norm(const jot_value *x)
{
    return jot_group_norm(((jot_normalization){x[1], x[2]}), x[0], 2);
}
static jot_value instance_norm(const jot_value *x)
{
    return jot_group_norm(((jot_normalization){x[1], x[2]}), x[0], 3);
}
static jot_value batch_norm(const jot_value *x)
{
    jot_batch_stats s = {x[3], jot_square(x[4])};
    jot_value y = jot_batch_norm(((jot_normalization){x[1], x[2]}), x[0], &s, .eps = 1e-3,
                                 .momentum = 0.9);
    return jot_concatenate(0, jot_reshape(y, -1), s.mean, s.var);
}
static jot_value batch_norm_apply(const jot_value *x)
{
    jot_batch_stats s = {x[3], jot_square(x[4])};
    return jot_batch_norm_apply(((jot_normalization){x[1], x[2]}), x[0], s);
}
static jot_value dropout(const jot_value *x)
{
    return jot_dropout(jot_random_key(7), x[0], 0.25);
}

static const struct layer_case cases[] = {
    {"dense", dense, {{2, 3, 4}, {4, 5}, {5}}},
    {"dense_no_bias", dense_no_bias, {{3, 4}, {4, 5}}},
    {"mlp", mlp, {{3, 2}, {2, 4}, {4}, {4, 3}, {3}, {3, 1}, {1}}},
    {"embedding", embedding, {{5, 3}}},
    {"embedding_scores", embedding_scores, {{5, 3}, {2, 3}}},
    {"conv1", conv, {{2, 7, 3}, {3, 3, 4}, {4}}},
    {"conv2", conv2, {{2, 5, 6, 2}, {3, 2, 2, 3}, {3}}},
    {"conv2_groups", conv_groups, {{1, 4, 3, 4}, {2, 2, 2, 6}}},
    {"conv2_dilated", conv_dilated, {{5, 6, 2}, {2, 2, 2, 3}, {3}}},
    {"conv3", conv, {{1, 3, 4, 2, 2}, {2, 2, 1, 2, 3}, {3}}},
    {"conv_transpose1", conv_transpose1, {{2, 4, 3}, {3, 3, 2}, {2}}},
    {"conv_transpose2", conv_transpose2, {{1, 3, 2, 2}, {2, 3, 2, 3}, {3}}},
    {"conv_transpose3", conv_transpose3, {{2, 2, 2, 1}, {2, 2, 2, 1, 2}, {2}}},
    {"max_pool", max_pool, {{2, 4, 4, 3}}},
    {"avg_pool", avg_pool, {{2, 4, 6, 1}}},
    {"global_pool", global_pool, {{2, 3, 3, 2}}},
    {"layer_norm", layer_norm, {{2, 3, 5}, {5}, {5}}},
    {"rms_norm", rms_norm, {{2, 3, 5}, {5}}},
    {"group_norm", group_norm, {{2, 3, 2, 6}, {6}, {6}}},
    {"instance_norm", instance_norm, {{2, 4, 3}, {3}, {3}}},
    {"batch_norm", batch_norm, {{4, 2, 3}, {3}, {3}, {3}, {3}}},
    {"batch_norm_apply", batch_norm_apply, {{4, 2, 3}, {3}, {3}, {3}, {3}}},
    {"dropout", dropout, {{3, 40}}},
};

START_TEST(test_f32) { case_check(&cases[_i], JOT_F32); }
END_TEST

START_TEST(test_f64) { case_check(&cases[_i], JOT_F64); }
END_TEST

START_TEST(test_lanes) { case_check_lanes(&cases[_i]); }
END_TEST

// ---------------------------------------------------------------------------------------
// Initialisers

static const struct {
    const char *name;
    jot_initializer *f;
    int64_t dims[5];
    double variance;
} initializers[] = {
    {"lecun_uniform", jot_lecun_uniform_dims, {4, 6, JOT_END}, 1 / 4.0},
    {"lecun_normal", jot_lecun_normal_dims, {3, 2, 2, 5, JOT_END}, 1 / 12.0},
    {"he_uniform", jot_he_uniform_dims, {2, 3, 4, JOT_END}, 2 / 6.0},
    {"he_normal", jot_he_normal_dims, {5, 4, JOT_END}, 2 / 5.0},
    {"glorot_uniform", jot_glorot_uniform_dims, {3, 3, 2, 1, JOT_END}, 2 / 27.0},
    {"glorot_normal", jot_glorot_normal_dims, {2, 10, JOT_END}, 2 / 12.0},
    {"truncated_normal", jot_truncated_normal_dims, {7, JOT_END}, 0.7737413035499232},
    {"orthogonal", jot_orthogonal_dims, {2, 3, 4, JOT_END}, 0},
};
enum { INITIALIZERS = sizeof initializers / sizeof *initializers, KEYS = 4000 };

START_TEST(test_initializers_have_the_numbers_of_jax)
{
    double want[64];
    int n = case_golden(initializers[_i].name, "f32", want);
    jot_scope *scope = jot_scope_open();
    jot_array *y;
    must(jot_eval(initializers[_i].f(jot_random_key(42), JOT_F32, initializers[_i].dims), &y));
    check_numbers(y, n, want, 2e-6);
    jot_array_release(y);
    jot_scope_close(scope);
}
END_TEST

// Of many keys: the mean, the variance, and where uniform numbers and those of two deviations
// end.
START_TEST(test_initializers_have_their_distribution)
{
    double variance = initializers[_i].variance, root = sqrt(variance);
    if (variance == 0)
        return;
    bool is_uniform = strstr(initializers[_i].name, "uniform");
    double most = is_uniform ? sqrt(3.0) * root : 2 * root / 0.87962566103423978;
    jot_scope *scope = jot_scope_open();
    jot_value key = jot_random_split(jot_random_key(1), KEYS), x;
    JOT_VMAP ((key), (x)) {
        x = initializers[_i].f(key, JOT_F32, initializers[_i].dims);
    }
    double mean = jot_item(jot_mean(x)), square = jot_item(jot_mean(jot_square(x)));
    double largest = jot_item(jot_max(jot_abs(x))), n = (double)jot_value_size(x);
    ck_assert_msg(fabs(mean) < 5 * root / sqrt(n), "the mean is %g", mean);
    // No such number has a fourth moment above 2.2 variance^2.
    ck_assert_msg(fabs(square / variance - 1) < 5 * sqrt(1.2 / n), "the variance is %g, not %g",
                  square, variance);
    ck_assert_msg(largest <= most * (1 + 1e-6) && largest > 0.98 * most,
                  "%g, and %g is the most", largest, most);
    jot_scope_close(scope);
}
END_TEST

START_TEST(test_orthogonal_matrices)
{
    jot_scope *scope = jot_scope_open();
    jot_value key = jot_random_key(3), tall = jot_orthogonal(key, JOT_F64, 2, 5, 3),
              wide = jot_orthogonal(key, JOT_F64, 3, 8);
    tall = jot_reshape(tall, 10, 3);
    jot_value a = jot_matmul(jot_swap_axes(tall, 0, 1), tall);
    jot_value b = jot_matmul(wide, jot_swap_axes(wide, 0, 1));
    check_between(jot_max(jot_abs(jot_sub(a, jot_eye(JOT_F64, 3, 3)))), -INFINITY, 1e-14);
    check_between(jot_max(jot_abs(jot_sub(b, jot_eye(JOT_F64, 3, 3)))), -INFINITY, 1e-14);
    jot_scope_close(scope);
}
END_TEST

START_TEST(test_mistakes_are_told)
{
    jot_scope *scope = jot_scope_open();
    jot_value key = jot_random_key(0), x = jot_ones(JOT_F32, 2, 4, 4, 3);
    jot_dense two[2];
    jot_convolution c = jot_convolution_init(key, 3, 4, JOT_DIMS(2, 2));
    jot_normalization n = jot_normalization_init(3);
    check_told(jot_dense_init(key, 0, 3).w, "in is 0");
    check_told(jot_dense_init(key, 3, 3, .groups = 2).b, "has no option groups");
    check_told(jot_dense_init(key, 3, 3, .dtype = JOT_I32).w, "dtype is i32");
    check_told(jot_embedding_init(key, 3, 3, .no_bias = true).w, "has no option no_bias");
    jot_mlp_init(key, two, JOT_DIMS(2, 3));
    check_told(two[1].b, "2 sizes for 2 layers");
    check_told(jot_convolution_init(key, 3, 4, JOT_DIMS(2), .groups = 2).w, "groups divide");
    check_told(jot_convolution_init(key, 3, 4, JOT_DIMS(1, 1, 1, 1)).w, "1 to 3 extents");
    check_told(jot_convolution_apply(c, x, .x = "NCHW"),
               "letters and groups are those of the layer");
    check_told(jot_convolution_apply(c, jot_ones(JOT_F32, 3)), "x has as many axes as w");
    check_told(jot_layer_norm(n, x, .momentum = 0.5), "are of jot_batch_norm");
    check_told(jot_rms_norm(n, x, .eps = -1), "eps is -1");
    check_told(jot_group_norm(n, x, 2), "2 groups of 3 features");
    check_told(jot_glorot_normal(key, JOT_F32, 5), "two axes");
    jot_scope_close(scope);
}
END_TEST

// Of half types: what f32 gives of the same numbers, rounded once.
START_TEST(test_norms_of_half_types)
{
    jot_scope *scope = jot_scope_open();
    for (int k = 0; k < 4; k++) {
        jot_dtype dtype = k % 2 ? JOT_BF16 : JOT_F16;
        jot_value x = jot_random_normal(jot_random_key(k), dtype, 4, 6, 8);
        jot_value scale = jot_random_normal(jot_random_key(9), dtype, 8);
        jot_normalization p = {scale, scale};
        jot_value wide = jot_astype(scale, JOT_F32), y, z, w = jot_astype(x, JOT_F32);
        jot_normalization q = {wide, wide};
        y = k < 2 ? jot_layer_norm(p, x) : jot_group_norm(p, x, 2);
        z = k < 2 ? jot_layer_norm(q, w) : jot_group_norm(q, w, 2);
        ck_assert_int_eq(jot_value_dtype(y), dtype);
        check_item(jot_all(jot_equal(y, jot_astype(z, dtype))), 1, 0);
        // Beside f32 it is f32.
        y = jot_rms_norm(q, x);
        ck_assert_int_eq(jot_value_dtype(y), JOT_F32);
    }
    jot_scope_close(scope);
}
END_TEST

// With the batch on two lanes that have a named axis: those of all of it.
START_TEST(test_batch_norm_of_lanes)
{
    jot_scope *scope = jot_scope_open();
    jot_value x = jot_random_normal(jot_random_key(5), JOT_F64, 2, 6, 3), y = x;
    jot_normalization p = jot_normalization_init(3, .dtype = JOT_F64);
    jot_batch_stats begin = jot_batch_stats_init(3, .dtype = JOT_F64), s = begin, each = begin;
    jot_value all = jot_batch_norm(p, jot_reshape(x, 12, 3), &s);
    JOT_VMAP_NAMED("i", (x), (y, each))
    {
        each = begin;
        y = jot_batch_norm(p, x, &each, .axis = "i");
    }
    jot_value off = jot_max(jot_abs(jot_sub(jot_reshape(y, 12, 3), all)));
    check_between(off, -INFINITY, 1e-13);
    check_between(jot_max(jot_abs(jot_sub(each.var, s.var))), -INFINITY, 1e-15);
    jot_scope_close(scope);
}
END_TEST

static void add(TCase *t)
{
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, test_f32, 0, sizeof cases / sizeof *cases);
    tcase_add_loop_test(t, test_f64, 0, sizeof cases / sizeof *cases);
    tcase_add_loop_test(t, test_lanes, 0, sizeof cases / sizeof *cases);
    tcase_add_loop_test(t, test_initializers_have_the_numbers_of_jax, 0, INITIALIZERS);
    tcase_add_loop_test(t, test_initializers_have_their_distribution, 0, INITIALIZERS);
    tcase_add_test(t, test_orthogonal_matrices);
    tcase_add_test(t, test_norms_of_half_types);
    tcase_add_test(t, test_mistakes_are_told);
    tcase_add_test(t, test_batch_norm_of_lanes);
}

int main(void) { return run_suite("library/layers", add); }
