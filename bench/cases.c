// SPDX-License-Identifier: Apache-2.0
#include "cases.h"

// ---- calls ----

static jot_value scalar_add(jot_value x) { return jot_add(x, 1.0); }

static jot_function dispatch_scalar_add(void) { return jot_fn(scalar_add); }

struct twenty {
    jot_value at[20];
};

static jot_value sum_of_all(struct twenty x)
{
    jot_value sum = x.at[0];
    for (int i = 1; i < 20; i++)
        sum = jot_add(sum, x.at[i]);
    return sum;
}

JOT_FUNCTION(sum_of_all_fn, sum_of_all, jot_value, struct twenty);

static jot_function dispatch_20_args(void) { return sum_of_all_fn; }

// ---- elementwise ----

static jot_value chain(jot_value x)
{
    for (int i = 0; i < 10; i++)
        x = jot_add(jot_mul(jot_sin(x), jot_cos(x)), jot_sqrt(jot_abs(x)));
    return jot_mean(x);
}

static jot_function chain_mean(void) { return jot_fn(chain); }

static jot_value scaled_sum(jot_value x, jot_value y) { return jot_add(jot_mul(2.5, x), y); }

static jot_function axpy(void) { return jot_fn(scaled_sum); }

static jot_value gelu_of(jot_value x) { return jot_gelu(x); }

static jot_function gelu(void) { return jot_fn(gelu_of); }

// ---- rows ----

static jot_value softmax_of_rows(jot_value x) { return jot_softmax(x, -1); }

static jot_function softmax(void) { return jot_fn(softmax_of_rows); }

static jot_value squares_of_softmax(jot_value x)
{
    return jot_sum(jot_integer_pow(jot_softmax(x, -1), 2));
}

static jot_function softmax_grad(void) { return jot_grad(jot_fn(squares_of_softmax)); }

static jot_value normalised_rows(jot_value x)
{
    jot_value centred = jot_sub(x, jot_mean(x, -1, JOT_KEEPDIMS));
    return jot_mul(centred, jot_rsqrt(jot_add(jot_var(x, -1, JOT_KEEPDIMS), 1e-5)));
}

static jot_function layernorm(void) { return jot_fn(normalised_rows); }

static jot_value energy(jot_value w, jot_value a, jot_value x)
{
    return jot_mean(jot_mul(jot_dot(x, w), jot_exp(jot_neg(jot_dot(x, a)))));
}

static jot_function qmc_grad(void) { return jot_grad(jot_fn(energy), 0, 1); }

// ---- products ----

static jot_value product(jot_value a, jot_value b) { return jot_matmul(a, b); }

static jot_function gemm(void) { return jot_fn(product); }

static jot_value layer(jot_value a, jot_value b, jot_value c)
{
    return jot_relu(jot_add(jot_matmul(a, b), c));
}

static jot_function gemm_bias_relu(void) { return jot_fn(layer); }

struct network {
    jot_value w[3], b[3];
};

static jot_value network_loss(struct network p, jot_value x, jot_value y)
{
    for (int i = 0; i < 2; i++)
        x = jot_relu(jot_add(jot_dot(x, p.w[i]), p.b[i]));
    x = jot_log_softmax(jot_add(jot_dot(x, p.w[2]), p.b[2]), -1);
    jot_value is_label = jot_equal(jot_expand_dims(y, -1), jot_arange(JOT_I32, 10));
    return jot_neg(jot_mean(jot_sum(jot_mul(x, jot_convert(is_label, JOT_F32)), -1)));
}

static struct network network_step(struct network p, jot_value x, jot_value y)
{
    struct network g = JOT_GRAD(network_loss, p, x, y);
    jot_value *to = JOT_LEAVES(p), *by = JOT_LEAVES(g);
    for (size_t i = 0; i < JOT_COUNT(p); i++)
        to[i] = jot_sub(to[i], jot_mul(0.1, by[i]));
    return p;
}

JOT_FUNCTION(network_step_fn, network_step, struct network, struct network, jot_value,
             jot_value);

static jot_function mlp_sgd_step(void) { return network_step_fn; }

// ---- second derivatives and maps ----

static jot_value logistic_loss(jot_value w, jot_value x, jot_value y)
{
    return jot_mean(jot_logaddexp(0.0, jot_mul(jot_neg(y), jot_dot(x, w))));
}

static jot_function hessian_logreg(void) { return jot_hessian(jot_fn(logistic_loss)); }

static jot_value rosenbrock(jot_value x)
{
    jot_value low = jot_slice(x, 0, 0, -1), high = jot_slice(x, 0, 1, JOT_END);
    jot_value bend = jot_integer_pow(jot_sub(high, jot_integer_pow(low, 2)), 2);
    return jot_sum(jot_add(jot_mul(100.0, bend), jot_integer_pow(jot_sub(1, low), 2)));
}

static jot_function hessian_rosenbrock(void) { return jot_hessian(jot_fn(rosenbrock)); }

static jot_value neuron(jot_value x, jot_value w, jot_value b)
{
    return jot_add(jot_dot(x, w), b);
}

static jot_function vmap_dot(void) { return jot_vmap(jot_fn(neuron), 0, JOT_NONE, JOT_NONE); }

static jot_value sample_loss(jot_value p, jot_value x)
{
    return jot_sum(jot_integer_pow(jot_tanh(jot_dot(x, p)), 2));
}

static jot_function per_sample_grads(void)
{
    return jot_vmap(jot_grad(jot_fn(sample_loss)), JOT_NONE, 0);
}

static jot_value gravity(jot_value p)
{
    jot_value d = jot_sub(jot_expand_dims(p, 1), jot_expand_dims(p, 0));
    jot_value r2 = jot_add(jot_sum(jot_mul(d, d), -1), 1e-2);
    return jot_neg(jot_sum(jot_div(1.0, jot_sqrt(r2))));
}

static jot_function nbody_grad(void) { return jot_grad(jot_fn(gravity)); }

// ---- reductions and moves ----

static jot_value sum_of_rows(jot_value x) { return jot_sum(x, 1); }

static jot_function sum_axis1(void) { return jot_fn(sum_of_rows); }

static jot_value sum_of_columns(jot_value x) { return jot_sum(x, 0); }

static jot_function sum_axis0(void) { return jot_fn(sum_of_columns); }

static jot_value sum_of_elements(jot_value x) { return jot_sum(x); }

static jot_function sum_all(void) { return jot_fn(sum_of_elements); }

static jot_value largest_of_rows(jot_value x) { return jot_argmax(x, 1); }

static jot_function argmax_axis1(void) { return jot_fn(largest_of_rows); }

static jot_value symmetric_part(jot_value x) { return jot_add(jot_transpose(x), x); }

static jot_function transpose_add(void) { return jot_fn(symmetric_part); }

static jot_value running_sum(jot_value x) { return jot_cumsum(x); }

static jot_function cumsum_1d(void) { return jot_fn(running_sum); }

// ---- places ----

static jot_value rows_at(jot_value x, jot_value i) { return jot_take(x, i); }

static jot_function gather_rows(void) { return jot_fn(rows_at); }

static jot_value sums_at(jot_value i, jot_value u)
{
    return jot_at_add(jot_zeros(JOT_F32, 16384), i, u);
}

static jot_function scatter_add(void) { return jot_fn(sums_at); }

// ---- random numbers ----

static jot_value normals(jot_value key) { return jot_random_normal(key, JOT_F32, 1 << 22); }

static jot_function rng_normal(void) { return jot_fn(normals); }

static jot_value uniforms(jot_value key) { return jot_random_uniform(key, JOT_F32, 1 << 22); }

static jot_function rng_uniform(void) { return jot_fn(uniforms); }

// ---- the table ----

// clang-format off
#define DIMS(...) {__VA_ARGS__, JOT_END}
#define IN(stream, ...) {NORMAL, (stream), 1, DIMS(__VA_ARGS__)}
#define SCALED(stream, scale, ...) {NORMAL, (stream), (scale), DIMS(__VA_ARGS__)}
#define ALL(value, ...) {FULL, 0, (value), DIMS(__VA_ARGS__)}
#define NUMBER(value) {FULL, 0, (value), {JOT_END}}
#define NUMBERS4(i) NUMBER(i), NUMBER((i) + 1), NUMBER((i) + 2), NUMBER((i) + 3)
#define CASE(name, function, reach, n_out, n_in, ...)                                          \
    {name, function, reach, n_out, {__VA_ARGS__}, n_in}

const struct bench_case bench_cases[] = {
    CASE("dispatch_scalar_add", dispatch_scalar_add, 30, 1, 1, NUMBER(1)),
    CASE("dispatch_20_args", dispatch_20_args, 50, 1, 20, NUMBERS4(0), NUMBERS4(4), NUMBERS4(8),
         NUMBERS4(12), NUMBERS4(16)),
    CASE("chain_mean_1000", chain_mean, 3.4, 1, 1, IN(1, 1000, 1000)),
    CASE("chain_mean_4096", chain_mean, 3.4, 1, 1, IN(1, 4096, 4096)),
    CASE("axpy_f32", axpy, 5, 1, 2, IN(2, 1 << 24), IN(3, 1 << 24)),
    CASE("gelu_f32", gelu, 2, 1, 1, IN(2, 1 << 24)),
    CASE("softmax_2048", softmax, 1.4, 1, 1, IN(4, 2048, 2048)),
    CASE("softmax_4096", softmax, 1.4, 1, 1, IN(4, 4096, 4096)),
    CASE("softmax_grad_2048", softmax_grad, 3, 1, 1, IN(4, 2048, 2048)),
    CASE("softmax_grad_4096", softmax_grad, 3, 1, 1, IN(4, 4096, 4096)),
    CASE("layernorm_2048", layernorm, 1.2, 1, 1, IN(4, 2048, 2048)),
    CASE("layernorm_4096", layernorm, 1.2, 1, 1, IN(4, 4096, 4096)),
    CASE("qmc_grad_1000", qmc_grad, 5, 2, 3, ALL(0.1, 100), ALL(0.1, 100), IN(5, 1000, 100)),
    CASE("qmc_grad_100000", qmc_grad, 3, 2, 3, ALL(0.1, 100), ALL(0.1, 100),
         IN(5, 100000, 100)),
    CASE("gemm_f32_default_1024", gemm, 1.1, 1, 2, IN(6, 1024, 1024), IN(7, 1024, 1024)),
    CASE("gemm_f32_highest_1024", gemm, 1.1, 1, 2, IN(6, 1024, 1024), IN(7, 1024, 1024)),
    CASE("gemm_bias_relu_1024", gemm_bias_relu, 1.1, 1, 3, IN(6, 1024, 1024),
         IN(7, 1024, 1024), IN(8, 1024)),
    CASE("rng_normal", rng_normal, 4, 1, 1, {KEY, 0, 0, {JOT_END}}),
    CASE("rng_uniform", rng_uniform, 12, 1, 1, {KEY, 0, 0, {JOT_END}}),
    CASE("mlp_sgd_step_1024", mlp_sgd_step, 1.1, 6, 8, SCALED(40, 1 / 28.0, 784, 512),
         SCALED(41, 0.04419417382415922, 512, 512), SCALED(42, 0.04419417382415922, 512, 10),
         ALL(0, 512), ALL(0, 512), ALL(0, 10), IN(44, 1024, 784), {LABEL, 0, 10, DIMS(1024)}),
    CASE("hessian_logreg_512", hessian_logreg, 2.5, 1, 3, SCALED(52, 0.1, 512),
         IN(50, 4096, 512), {SIGN, 51, 1, DIMS(4096)}),
    CASE("hessian_rosenbrock_1000", hessian_rosenbrock, 2, 1, 1, IN(53, 1000)),
    CASE("vmap_dot_10000x4", vmap_dot, 5, 1, 3, IN(54, 10000, 4), IN(55, 4), NUMBER(0.5)),
    CASE("per_sample_grads", per_sample_grads, 3, 1, 2, IN(56, 64, 64), IN(57, 4096, 64)),
    CASE("sum_axis1_4096", sum_axis1, 0.98, 1, 1, IN(60, 4096, 4096)),
    CASE("sum_axis0_4096", sum_axis0, 0.98, 1, 1, IN(60, 4096, 4096)),
    CASE("sum_all_4096", sum_all, 0.98, 1, 1, IN(60, 4096, 4096)),
    CASE("argmax_axis1_4096", argmax_axis1, 20, 1, 1, IN(60, 4096, 4096)),
    CASE("transpose_add_4096", transpose_add, 3, 1, 1, IN(60, 4096, 4096)),
    CASE("cumsum_1d", cumsum_1d, 5, 1, 1, IN(61, 1 << 22)),
    CASE("cumsum_1d_2^25", cumsum_1d, 5, 1, 1, IN(61, 1 << 25)),
    CASE("gather_rows", gather_rows, 1.2, 1, 2, IN(63, 4096, 4096),
         {PLACE, 64, 4096, DIMS(4096)}),
    CASE("scatter_add", scatter_add, 4, 1, 2, {PLACE, 65, 16384, DIMS(1 << 22)},
         IN(66, 1 << 22)),
    CASE("nbody_grad_1024", nbody_grad, 2, 1, 1, IN(62, 1024, 3)),
};
// clang-format on
const int n_bench_cases = sizeof bench_cases / sizeof *bench_cases;

// ---- inputs ----

static jot_value filled(const struct input *in)
{
    jot_value stream = jot_random_fold_in(jot_random_key(0), in->stream);
    switch (in->fill) {
    case NORMAL:
        return jot_mul(in->scale, (jot_random_normal_dims)(stream, JOT_F32, in->dims));
    case SIGN:
        return jot_sign((jot_random_normal_dims)(stream, JOT_F32, in->dims));
    case PLACE:
        return jot_astype(
            jot_mul(in->scale, (jot_random_uniform_dims)(stream, JOT_F32, in->dims)), JOT_I32);
    case LABEL:
        return jot_mod(jot_arange(JOT_I32, in->dims[0]), (int)in->scale);
    case FULL:
        return (jot_full_dims)(JOT_F32, jot_from(in->scale), in->dims);
    case KEY:
        return jot_random_key((int)in->scale);
    }
    return jot_from(0);
}

jot_status bench_inputs(const struct bench_case *c, jot_array **in)
{
    jot_scope *s = jot_scope_open();
    jot_status status = s ? JOT_OK : JOT_ERR_MEMORY;
    int n = 0;
    while (status == JOT_OK && n < c->n_in) {
        status = jot_eval(filled(&c->in[n]), &in[n]);
        n += status == JOT_OK;
    }
    jot_scope_close(s);
    if (status != JOT_OK)
        jot_arrays_release((size_t)n, in);
    return status;
}
