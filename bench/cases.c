// SPDX-License-Identifier: Apache-2.0
#include "cases.h"

#include <stdio.h>
#include <string.h>

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

// ---- decompositions ----

static jot_svd_factors svd_of(jot_value a) { return jot_svd(a); }
static jot_eigen eigh_of(jot_value a) { return jot_eigh(a); }
static jot_qr_factors qr_of(jot_value a) { return jot_qr(a); }

JOT_FUNCTION(svd_fn, svd_of, jot_svd_factors, jot_value);
JOT_FUNCTION(eigh_fn, eigh_of, jot_eigen, jot_value);
JOT_FUNCTION(qr_fn, qr_of, jot_qr_factors, jot_value);

static jot_function svd(void) { return svd_fn; }
static jot_function eigh(void) { return eigh_fn; }
static jot_function qr(void) { return qr_fn; }

static jot_value cholesky_of(jot_value a) { return jot_cholesky(a); }

static jot_function cholesky(void) { return jot_fn(cholesky_of); }

static jot_value solution(jot_value a, jot_value b) { return jot_solve(a, b); }

static jot_function solve(void) { return jot_fn(solution); }

static jot_value inverse_of(jot_value a) { return jot_inv(a); }

static jot_function inverse(void) { return jot_fn(inverse_of); }

static jot_value layer(jot_value a, jot_value b, jot_value c)
{
    return jot_relu(jot_add(jot_matmul(a, b), c));
}

static jot_function gemm_bias_relu(void) { return jot_fn(layer); }

// Rows of softmax(q k^T / 8) v: q, k and v are [batch, head, position, 64].
static jot_value attention(jot_value q, jot_value k, jot_value v)
{
    jot_value scores = jot_div(jot_matmul(q, jot_transpose(k, 0, 1, 3, 2)), 8);
    return jot_matmul(jot_softmax(scores, -1), v);
}

static jot_function attention_fwd(void) { return jot_fn(attention); }

static jot_value sum_of_attention(jot_value q, jot_value k, jot_value v)
{
    return jot_sum(jot_astype(attention(q, k, v), JOT_F32));
}

static jot_function attention_grad(void) { return jot_grad(jot_fn(sum_of_attention), 0, 1, 2); }

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

static jot_value transform_2d(jot_value x) { return jot_fft2(x); }

static jot_function fft2_c64(void) { return jot_fn(transform_2d); }

static jot_value transform_rows(jot_value x) { return jot_rfft(x); }

static jot_function rfft_batch(void) { return jot_fn(transform_rows); }

static jot_value running_sum(jot_value x) { return jot_cumsum(x); }

static jot_function cumsum_1d(void) { return jot_fn(running_sum); }

static jot_value sorted(jot_value x) { return jot_sort(x); }

static jot_function sort_1d(void) { return jot_fn(sorted); }

static jot_value sorted_places(jot_value x) { return jot_argsort(x); }

static jot_function argsort_1d(void) { return jot_fn(sorted_places); }

static jot_value greatest(jot_value x) { return jot_top_k(x, 100, NULL); }

static jot_function top_k_100(void) { return jot_fn(greatest); }

// ---- places ----

static jot_value rows_at(jot_value x, jot_value i) { return jot_take(x, i); }

static jot_function gather_rows(void) { return jot_fn(rows_at); }

static jot_value sums_at(jot_value i, jot_value u)
{
    return jot_at_add(jot_zeros(JOT_F32, 4096), i, u);
}

static jot_function scatter_add(void) { return jot_fn(sums_at); }

static jot_value sums_at_16384(jot_value i, jot_value u)
{
    return jot_at_add(jot_zeros(JOT_F32, 16384), i, u);
}

static jot_function scatter_add_16384(void) { return jot_fn(sums_at_16384); }

// ---- a network that solves an equation ----

struct solution {
    jot_value w[4], b[4];
};

static jot_value solution_at(struct solution p, jot_value t, jot_value x)
{
    jot_value h = jot_stack(0, t, x);
    for (int i = 0; i < 3; i++)
        h = jot_tanh(jot_add(jot_dot(h, p.w[i]), p.b[i]));
    return jot_take(jot_add(jot_dot(h, p.w[3]), p.b[3]), 0);
}

// The mean square of u_t + u u_x - 0.01 u_xx.
static jot_value burgers_loss(struct solution p, jot_value t, jot_value x)
{
    jot_value r;
    JOT_VMAP ((t, x), (r)) {
        jot_value u = solution_at(p, t, x), u_t = jot_gradient(u, t), u_x = jot_gradient(u, x),
                  u_xx = jot_gradient(u_x, x);
        r = jot_sub(jot_add(u_t, jot_mul(u, u_x)), jot_mul(0.01, u_xx));
    }
    return jot_mean(jot_square(r));
}

JOT_FUNCTION(burgers_loss_fn, burgers_loss, jot_value, struct solution, jot_value, jot_value);

static jot_function pinn_grad(void) { return jot_grad(burgers_loss_fn); }

// ---- loops ----

struct motion {
    jot_value end, path;
};

// A mass of 1 on a spring, from rest at 1: where it is after 1000 steps, and after each.
static struct motion spring_of(jot_value k)
{
    jot_value x = jot_from(1.0), v = jot_from(0.0), path;
    JOT_SCAN ((x, v), (), (path), .length = 1000) {
        v = jot_add(v, jot_mul(jot_mul(jot_neg(k), x), 0.01));
        x = jot_add(x, jot_mul(v, 0.01));
        path = x;
    }
    return (struct motion){x, path};
}

JOT_FUNCTION(spring_of_fn, spring_of, struct motion, jot_value);

static jot_value spring_end(jot_value k) { return spring_of(k).end; }

static jot_value spring_misfit(jot_value k) { return jot_square(jot_sub(spring_end(k), 0.5)); }

static jot_function spring_path(void) { return spring_of_fn; }

static jot_function spring_grad(void) { return jot_grad(jot_fn(spring_misfit)); }

static jot_function spring_vmap(void) { return jot_vmap(jot_fn(spring_end)); }

static jot_function spring_vmap_path(void) { return jot_vmap(spring_of_fn); }

static jot_function spring_vmap_grad(void) { return jot_vmap(spring_grad()); }

static struct motion logistic_map(jot_value x)
{
    jot_value path;
    JOT_SCAN ((x), (), (path), .length = 100000) {
        path = x = jot_mul(jot_mul(4, x), jot_sub(1, x));
    }
    return (struct motion){x, path};
}

JOT_FUNCTION(logistic_map_fn, logistic_map, struct motion, jot_value);

static jot_function quadmap(void) { return logistic_map_fn; }

struct lorenz {
    jot_value x, y, z;
};

static struct lorenz lorenz_slope(struct lorenz s)
{
    return (struct lorenz){
        jot_mul(10, jot_sub(s.y, s.x)),
        jot_sub(jot_mul(s.x, jot_sub(28, s.z)), s.y),
        jot_sub(jot_mul(s.x, s.y), jot_mul(8. / 3, s.z)),
    };
}

static struct lorenz moved(struct lorenz s, double h, struct lorenz d)
{
    return (struct lorenz){jot_add(s.x, jot_mul(h, d.x)), jot_add(s.y, jot_mul(h, d.y)),
                           jot_add(s.z, jot_mul(h, d.z))};
}

static jot_value runge_kutta(jot_value a, jot_value b, jot_value c, jot_value d)
{
    return jot_add(jot_add(jot_add(a, jot_mul(2, b)), jot_mul(2, c)), d);
}

static struct lorenz lorenz_end(jot_value x, jot_value y, jot_value z)
{
    struct lorenz s = {x, y, z};
    JOT_FOR (i, 1000, s) {
        struct lorenz a = lorenz_slope(s), b = lorenz_slope(moved(s, 0.005, a)),
                      c = lorenz_slope(moved(s, 0.005, b)), d = lorenz_slope(moved(s, 0.01, c));
        s = moved(s, 0.01 / 6,
                  (struct lorenz){runge_kutta(a.x, b.x, c.x, d.x),
                                  runge_kutta(a.y, b.y, c.y, d.y),
                                  runge_kutta(a.z, b.z, c.z, d.z)});
    }
    return s;
}

JOT_FUNCTION(lorenz_end_fn, lorenz_end, struct lorenz, jot_value, jot_value, jot_value);

static jot_function lorenz_rk4(void) { return lorenz_end_fn; }

// Geometric Brownian motion by the method of Euler and Maruyama.
static jot_value brownian(jot_value key, jot_value x)
{
    JOT_FOR (i, 1000, key, x) {
        jot_value keys = jot_random_split(key, 2);
        jot_value dw =
            jot_mul(jot_random_normal(jot_take(keys, 1), JOT_F32, jot_value_dim(x, 0)), 0.1);
        key = jot_take(keys, 0);
        x = jot_add(jot_add(x, jot_mul(jot_mul(0.05, x), 0.01)), jot_mul(jot_mul(0.2, x), dw));
    }
    return x;
}

static jot_function sde(void) { return jot_fn(brownian); }

static jot_value diffused(jot_value u, int steps)
{
    JOT_FOR (i, steps, u) {
        jot_value around =
            jot_add(jot_add(jot_roll(u, 1, 0), jot_roll(u, -1, 0)), jot_roll(u, 1, 1));
        around = jot_sub(jot_add(around, jot_roll(u, -1, 1)), jot_mul(4, u));
        u = jot_add(u, jot_mul(0.1, around));
    }
    return u;
}

static jot_value diffused_1000(jot_value u) { return diffused(u, 1000); }

static jot_value energy_after_100(jot_value u) { return jot_sum(jot_square(diffused(u, 100))); }

static jot_function heat2d(void) { return jot_fn(diffused_1000); }

static jot_function heat2d_grad(void) { return jot_grad(jot_fn(energy_after_100)); }

// x = cos(c x)
static jot_value cosine_point(jot_value c)
{
    jot_value x = jot_ones_like(c);
    JOT_FOR (i, 100, x) {
        x = jot_cos(jot_mul(c, x));
    }
    return x;
}

static jot_function fixed_point(void) { return jot_fn(cosine_point); }

// ---- random numbers ----

static jot_value normals(jot_value key) { return jot_random_normal(key, JOT_F32, 1 << 22); }

static jot_value normals_27(jot_value key) { return jot_random_normal(key, JOT_F32, 1 << 27); }

static jot_value uniforms(jot_value key) { return jot_random_uniform(key, JOT_F32, 1 << 22); }

static jot_value uniforms_27(jot_value key)
{
    return jot_random_uniform(key, JOT_F32, 1 << 27);
}

static jot_function rng_normal(void) { return jot_fn(normals); }

static jot_function rng_normal_27(void) { return jot_fn(normals_27); }

static jot_function rng_uniform(void) { return jot_fn(uniforms); }

static jot_function rng_uniform_27(void) { return jot_fn(uniforms_27); }

// ---- the table ----

// clang-format off
#define DIMS(...) .dims = {__VA_ARGS__, JOT_END}
#define IN(stream, ...) {NORMAL, (stream), 1, DIMS(__VA_ARGS__)}
#define SCALED(stream, scale, ...) {NORMAL, (stream), (scale), DIMS(__VA_ARGS__)}
// The sizes end with JOT_END here, for there may be none.
#define BETWEEN(low, high, stream, ...)                                                        \
    {UNIFORM, (stream), (high) - (low), .dims = {__VA_ARGS__}, .offset = (low)}
#define SYMMETRIC(stream, ...) {POSITIVE, (stream), 8, DIMS(__VA_ARGS__)}
#define HALF(stream, ...) {NORMAL_BF16, (stream), 1, DIMS(__VA_ARGS__)}
#define PLACES(stream, limit, ...) {PLACE, (stream), (limit), DIMS(__VA_ARGS__)}
#define ALL(value, ...) {FULL, 0, (value), DIMS(__VA_ARGS__)}
#define NUMBER(value) {FULL, 0, (value),.dims = {JOT_END}}
#define NUMBERS4(i) NUMBER(i), NUMBER((i) + 1), NUMBER((i) + 2), NUMBER((i) + 3)
#define RANDOM_KEY {KEY, 0, 0, .dims = {JOT_END}}
#define SOLUTION                                                                               \
    SCALED(20, 0.7, 2, 20), SCALED(21, 0.22, 20, 20), SCALED(22, 0.22, 20, 20),                \
        SCALED(23, 0.22, 20, 1), SCALED(24, 0.1, 20), SCALED(25, 0.1, 20),                     \
        SCALED(28, 0.1, 20), SCALED(29, 0.1, 1)
#define MLP                                                                                    \
    SCALED(40, 1 / 28.0, 784, 512),                                                            \
    SCALED(41, 0.04419417382415922, 512, 512), SCALED(42, 0.04419417382415922, 512, 10),       \
    ALL(0, 512), ALL(0, 512), ALL(0, 10), IN(44, 1024, 784), {LABEL, 0, 10, DIMS(1024)}
#define CNN_ZEROS                                                                              \
    ALL(0, 3, 3, 1, 32), ALL(0, 32), ALL(0, 3, 3, 32, 64), ALL(0, 64), ALL(0, 3136, 10), ALL(0, 10)
#define CNN                                                                                    \
    SCALED(30, 0.3, 3, 3, 1, 32), ALL(0, 32), SCALED(31, 0.06, 3, 3, 32, 64), ALL(0, 64),      \
        SCALED(32, 0.02, 3136, 10), ALL(0, 10), CNN_ZEROS, CNN_ZEROS, NUMBER(0),               \
        IN(33, 128, 28, 28, 1), {LABEL, 0, 10, DIMS(128)}
#define REGRESSION                                                                             \
    SCALED(52, 0.1, 512), IN(50, 4096, 512), {SIGN, 51, 1, DIMS(4096)}
#define ATTENTION HALF(77, 8, 16, SIZE, 64), HALF(78, 8, 16, SIZE, 64), HALF(79, 8, 16, SIZE, 64)
// The size of a run and what is to be reached: times as fast as JAX; us on a GPU.
#define HOST(size, reach) {JOT_HOST, (size), (reach), 0}
#define GPU(size, reach) {JOT_CUDA, (size), (reach), 0}
#define GPU_OF(flops, size, reach) {JOT_CUDA, (size), (reach), (flops)}
#define CUBE(n) (2.0 * (n) * (n) * (n)) // a product of square matrices
#define SCORES (2.0 * 8 * 16 * 1024 * 1024 * 64) // one of the products of attention
#define RUNS(...) {__VA_ARGS__}
#define CASE(name, function, n_out, n_in, runs, ...)                                           \
    {name, function, n_out, {__VA_ARGS__}, n_in, runs, JOT_PRECISION_FULL}
// Where products need not be of f32.
#define CASE_OF(precision, name, function, n_out, n_in, runs, ...)                             \
    {name, function, n_out, {__VA_ARGS__}, n_in, runs, JOT_PRECISION_##precision}

static const struct bench_case cases[] = {
    CASE("dispatch_scalar_add", dispatch_scalar_add, 1, 1, RUNS(HOST(0, 30), GPU(0, 4.7)),
         NUMBER(1)),
    CASE("dispatch_20_args", dispatch_20_args, 1, 20, RUNS(HOST(0, 50), GPU(0, 4.9)),
         NUMBERS4(0), NUMBERS4(4), NUMBERS4(8), NUMBERS4(12), NUMBERS4(16)),
    CASE("chain_mean_#", chain_mean, 1, 1,
         RUNS(HOST(1000, 3.4), HOST(4096, 3.4), GPU(1000, 17), GPU(8192, 850),
              GPU(16384, 3400)),
         IN(1, SIZE, SIZE)),
    CASE("axpy_f32", axpy, 1, 2, RUNS(HOST(1 << 24, 5), GPU(1 << 28, 757)), IN(2, SIZE),
         IN(3, SIZE)),
    CASE("gelu_f32", gelu, 1, 1, RUNS(HOST(1 << 24, 2), GPU(1 << 28, 514)), IN(2, SIZE)),
    CASE("softmax_#", softmax, 1, 1, RUNS(HOST(2048, 1.4), HOST(4096, 1.4), GPU(8192, 135)),
         IN(4, SIZE, SIZE)),
    CASE("softmax_grad_#", softmax_grad, 1, 1,
         RUNS(HOST(2048, 3), HOST(4096, 3), GPU(8192, 142)), IN(4, SIZE, SIZE)),
    CASE("layernorm_#", layernorm, 1, 1, RUNS(HOST(2048, 1.2), HOST(4096, 1.2), GPU(8192, 135)),
         IN(4, SIZE, SIZE)),
    CASE("qmc_grad_#", qmc_grad, 2, 3,
         RUNS(HOST(1000, 5), HOST(100000, 3), GPU(1000, 8), GPU(1000000, 120)), ALL(0.1, 100),
         ALL(0.1, 100), IN(5, SIZE, 100)),
    CASE_OF(TF32, "gemm_f32_default_#", gemm, 1, 2, RUNS(HOST(1024, 1.1), GPU_OF(CUBE(4096), 4096, 400)),
            IN(6, SIZE, SIZE), IN(7, SIZE, SIZE)),
    CASE("gemm_f32_highest_#", gemm, 1, 2, RUNS(HOST(1024, 1.1), GPU_OF(CUBE(4096), 4096, 2730)),
         IN(6, SIZE, SIZE), IN(7, SIZE, SIZE)),
    CASE_OF(3TF32, "gemm_f32_3tf32_#", gemm, 1, 2, RUNS(GPU_OF(3 * CUBE(4096), 4096, 1350)), IN(6, SIZE, SIZE),
            IN(7, SIZE, SIZE)),
    CASE_OF(TF32, "gemm_bias_relu_#", gemm_bias_relu, 1, 3,
            RUNS(HOST(1024, 1.1), GPU_OF(CUBE(4096), 4096, 420)), IN(6, SIZE, SIZE), IN(7, SIZE, SIZE),
            IN(8, SIZE)),
    CASE("gemm_bf16_#", gemm, 1, 2, RUNS(GPU_OF(CUBE(8192), 8192, 1668)), HALF(6, SIZE, SIZE),
         HALF(7, SIZE, SIZE)),
    CASE("gemm_batched_16x16", gemm, 1, 2, RUNS(HOST(10000, 2), GPU(100000, 85)),
         IN(11, SIZE, 16, 16), IN(12, SIZE, 16, 16)),
    CASE("svd_#", svd, 3, 1, RUNS(HOST(512, 1.1), GPU(4096, 250000)), IN(13, SIZE, SIZE)),
    CASE("eigh_#", eigh, 2, 1, RUNS(HOST(512, 1.1), GPU(4096, 92600)), IN(13, SIZE, SIZE)),
    CASE("qr_#", qr, 2, 1, RUNS(HOST(512, 1.3), GPU(4096, 25000)), IN(13, SIZE, SIZE)),
    CASE("svd_batched_16x16", svd, 3, 1, RUNS(HOST(10000, 1.5), GPU(10000, 400)), IN(14, SIZE, 16, 16)),
    CASE("cholesky_#", cholesky, 1, 1, RUNS(HOST(512, 1.3), GPU(4096, 1560)), SYMMETRIC(10, SIZE, SIZE)),
    CASE("solve_#", solve, 1, 2, RUNS(HOST(512, 1.3), GPU(4096, 12500)), IN(6, SIZE, SIZE), IN(7, SIZE, 16)),
    CASE("inv_#", inverse, 1, 1, RUNS(HOST(512, 1.5), GPU(4096, 14000)), IN(6, SIZE, SIZE)),
    CASE("chol_batched_8x8", cholesky, 1, 1, RUNS(HOST(10000, 8), GPU(100000, 18)),
         SYMMETRIC(10, SIZE, 8, 8)),
    CASE("solve_batched_8x8", solve, 1, 2, RUNS(HOST(10000, 15), GPU(100000, 14)),
         SYMMETRIC(10, SIZE, 8, 8), IN(11, SIZE, 8, 1)),
    CASE("attention_fwd_bf16", attention_fwd, 1, 3, RUNS(GPU_OF(2 * SCORES, 1024, 85)), ATTENTION),
    CASE("attention_grad_bf16", attention_grad, 3, 3, RUNS(GPU_OF(5 * SCORES, 1024, 300)), ATTENTION),
    CASE("rng_normal", rng_normal, 1, 1, RUNS(HOST(0, 4)), RANDOM_KEY),
    CASE("rng_normal_2^27", rng_normal_27, 1, 1, RUNS(GPU(0, 640)), RANDOM_KEY),
    CASE("rng_uniform", rng_uniform, 1, 1, RUNS(HOST(0, 12)), RANDOM_KEY),
    CASE("rng_uniform_2^27", rng_uniform_27, 1, 1, RUNS(GPU(0, 390)), RANDOM_KEY),
    CASE("mlp_sgd_step_1024", mlp_sgd_step, 6, 8, RUNS(HOST(0, 1.1), GPU(0, 95)), MLP),
    CASE_OF(TF32, "mlp_sgd_step_tf32_1024", mlp_sgd_step, 6, 8, RUNS(GPU(0, 45)), MLP),
    CASE("cnn_train_step_128", cnn_train_step, 20, 21, RUNS(HOST(0, 5), GPU(0, 150)), CNN),
    CASE("hessian_logreg_512", hessian_logreg, 1, 3, RUNS(HOST(0, 2.5), GPU(0, 55)),
         REGRESSION),
    CASE_OF(TF32, "hessian_logreg_tf32_512", hessian_logreg, 1, 3, RUNS(GPU(0, 30)),
            REGRESSION),
    CASE("hessian_rosenbrock_1000", hessian_rosenbrock, 1, 1, RUNS(HOST(0, 2), GPU(0, 8)),
         IN(53, 1000)),
    CASE("vmap_dot_10000x4", vmap_dot, 1, 3, RUNS(HOST(0, 5), GPU(0, 6)), IN(54, 10000, 4),
         IN(55, 4), NUMBER(0.5)),
    CASE("per_sample_grads", per_sample_grads, 1, 2, RUNS(HOST(0, 3), GPU(0, 25)),
         IN(56, 64, 64), IN(57, 4096, 64)),
    CASE("sum_axis1_#", sum_axis1, 1, 1, RUNS(HOST(4096, 0.98), GPU(16384, 240)),
         IN(60, SIZE, SIZE)),
    CASE("sum_axis0_#", sum_axis0, 1, 1, RUNS(HOST(4096, 0.98), GPU(16384, 240)),
         IN(60, SIZE, SIZE)),
    CASE("sum_all_#", sum_all, 1, 1, RUNS(HOST(4096, 0.98), GPU(16384, 245)),
         IN(60, SIZE, SIZE)),
    CASE("argmax_axis1_#", argmax_axis1, 1, 1, RUNS(HOST(4096, 20), GPU(16384, 244)),
         IN(60, SIZE, SIZE)),
    CASE("transpose_add_#", transpose_add, 1, 1, RUNS(HOST(4096, 3), GPU(16384, 560)),
         IN(60, SIZE, SIZE)),
    CASE("fft2_c64_#", fft2_c64, 1, 1, RUNS(HOST(1024, 1.3), GPU(4096, 215)),
         {NORMAL_C64, 2, 1, DIMS(SIZE, SIZE)}),
    CASE("rfft_batch", rfft_batch, 1, 1, RUNS(HOST(1024, 1.2), GPU(4096, 44)), IN(8, SIZE, SIZE)),
    CASE("cumsum_1d", cumsum_1d, 1, 1, RUNS(HOST(1 << 22, 5), GPU(1 << 26, 170)), IN(61, SIZE)),
    CASE("cumsum_1d_2^25", cumsum_1d, 1, 1, RUNS(HOST(1 << 25, 5)), IN(61, SIZE)),
    CASE("sort_1d", sort_1d, 1, 1, RUNS(HOST(1 << 20, 50), GPU(1 << 24, 450)), IN(61, SIZE)),
    CASE("sort_1d_2^24", sort_1d, 1, 1, RUNS(HOST(1 << 24, 50)), IN(61, SIZE)),
    CASE("argsort_1d", argsort_1d, 1, 1, RUNS(HOST(1 << 20, 1)), IN(61, SIZE)),
    CASE("top_k_100", top_k_100, 1, 1, RUNS(HOST(1 << 20, 1)), IN(61, SIZE)),
    CASE("gather_rows", gather_rows, 1, 2, RUNS(HOST(4096, 1.2), GPU(16384, 525)),
         IN(63, SIZE, SIZE), PLACES(64, SIZE, SIZE)),
    CASE("scatter_add", scatter_add, 1, 2, RUNS(HOST(0, 4)), PLACES(65, 4096, 1 << 22),
         IN(66, 1 << 22)),
    CASE("scatter_add_16384", scatter_add_16384, 1, 2, RUNS(GPU(0, 60)),
         PLACES(65, 16384, 1 << 22), IN(66, 1 << 22)),
    CASE("nbody_grad_#", nbody_grad, 1, 1, RUNS(HOST(1024, 2), GPU(8192, 140)),
         IN(62, SIZE, 3)),
    CASE("pinn_grad_#", pinn_grad, 8, 10,
         RUNS(HOST(1000, 10), HOST(10000, 8), GPU(10000, 30), GPU(1000000, 800)), SOLUTION,
         BETWEEN(0, 1, 26, SIZE, JOT_END), BETWEEN(-1, 1, 27, SIZE, JOT_END)),
    CASE("spring_1_T1000", spring_path, 2, 1, RUNS(HOST(0, 3), GPU(0, 13)),
         BETWEEN(1, 4, 70, JOT_END)),
    CASE("spring_1_T1000_grad", spring_grad, 1, 1, RUNS(HOST(0, 2), GPU(0, 30)),
         BETWEEN(1, 4, 70, JOT_END)),
    CASE("spring_vmap_T1000", spring_vmap, 1, 1, RUNS(HOST(10000, 5), GPU(1000000, 110)),
         BETWEEN(1, 4, 71, SIZE, JOT_END)),
    CASE("spring_vmap_traj_T1000", spring_vmap_path, 2, 1, RUNS(HOST(1000, 8), GPU(100000, 130)),
         BETWEEN(1, 4, 72, SIZE, JOT_END)),
    CASE("spring_vmap_grad_T1000", spring_vmap_grad, 1, 1, RUNS(HOST(1000, 8), GPU(100000, 150)),
         BETWEEN(1, 4, 72, SIZE, JOT_END)),
    CASE("quadmap_scalar_n100k", quadmap, 2, 1, RUNS(HOST(0, 2.1), GPU(0, 800)),
         BETWEEN(0.1, 0.4, 73, JOT_END)),
    CASE("lorenz_rk4_T1000", lorenz_rk4, 3, 3, RUNS(HOST(10000, 8), GPU(1000000, 1560)),
         IN(13, SIZE), IN(14, SIZE), {NORMAL, 15, 1, DIMS(SIZE), .offset = 25}),
    CASE("sde_T1000", sde, 1, 2, RUNS(HOST(1000, 8), GPU(100000, 520)), RANDOM_KEY,
         BETWEEN(0.5, 1.5, 74, SIZE, JOT_END)),
    CASE("heat2d_#_T1000", heat2d, 1, 1, RUNS(HOST(256, 15), GPU(1024, 1400)),
         IN(75, SIZE, SIZE)),
    CASE("heat2d_grad_#_T100", heat2d_grad, 1, 1, RUNS(HOST(64, 3), GPU(256, 450)),
         IN(75, SIZE, SIZE)),
    CASE("fixed_point_1000", fixed_point, 1, 1, RUNS(HOST(0, 15), GPU(0, 8)),
         BETWEEN(0.1, 1.2, 76, 1000, JOT_END)),
};
// clang-format on

int bench_list(jot_device_kind device, struct bench_run *out)
{
    int n = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (const struct size *s = cases[i].sizes; s->reach; s++) {
            const char *name = cases[i].name, *mark = strchr(name, '#');
            if (s->device != device || n == MAX_RUNS)
                continue;
            struct bench_run *run = &out[n++];
            *run = (struct bench_run){
                .c = &cases[i], .size = s->size, .reach = s->reach, .flops = s->flops};
            if (mark)
                snprintf(run->name, sizeof run->name, "%.*s%lld%s", (int)(mark - name), name,
                         (long long)s->size, mark + 1);
            else
                snprintf(run->name, sizeof run->name, "%s", name);
        }
    return n;
}

// ---- inputs ----

// SIZE stands for size.
static jot_value filled(struct input in, int64_t size)
{
    for (int64_t *d = in.dims; *d != JOT_END; d++)
        if (*d == SIZE)
            *d = size;
    if (in.scale == SIZE)
        in.scale = (double)size;
    jot_value stream = jot_random_fold_in(jot_random_key(0), in.stream), next;
    switch (in.fill) {
    case NORMAL:
        return jot_add(in.offset,
                       jot_mul(in.scale, (jot_random_normal_dims)(stream, JOT_F32, in.dims)));
    case UNIFORM:
        return jot_add(in.offset,
                       jot_mul(in.scale, (jot_random_uniform_dims)(stream, JOT_F32, in.dims)));
    case NORMAL_C64:
        next = jot_random_fold_in(jot_random_key(0), in.stream + 1);
        return jot_complex((jot_random_normal_dims)(stream, JOT_F32, in.dims),
                           (jot_random_normal_dims)(next, JOT_F32, in.dims));
    case NORMAL_BF16:
        return jot_astype((jot_random_normal_dims)(stream, JOT_F32, in.dims), JOT_BF16);
    case SIGN:
        return jot_sign((jot_random_normal_dims)(stream, JOT_F32, in.dims));
    case PLACE:
        return jot_astype(
            jot_mul(in.scale, (jot_random_uniform_dims)(stream, JOT_F32, in.dims)), JOT_I32);
    case LABEL:
        return jot_mod(jot_arange(JOT_I32, in.dims[0]), (int)in.scale);
    case FULL:
        return (jot_full_dims)(JOT_F32, jot_from(in.scale), in.dims);
    case KEY:
        return jot_random_key((int)in.scale);
    case POSITIVE: {
        jot_value x = (jot_random_normal_dims)(stream, JOT_F32, in.dims);
        int64_t n = in.dims[1] == in.dims[0] ? in.dims[0] : in.dims[2];
        return jot_add(jot_matmul(x, jot_swap_axes(x, -1, -2)),
                       jot_mul(in.scale, jot_eye(JOT_F32, n, n)));
    }
    }
    return jot_from(0);
}

jot_status bench_inputs(const struct bench_run *run, jot_array **in)
{
    jot_scope *s = jot_scope_open();
    jot_status status = s ? JOT_OK : JOT_ERR_MEMORY;
    int n = 0;
    while (status == JOT_OK && n < run->c->n_in) {
        status = jot_eval(filled(run->c->in[n], run->size), &in[n]);
        n += status == JOT_OK;
    }
    jot_scope_close(s);
    if (status != JOT_OK)
        jot_arrays_release((size_t)n, in);
    return status;
}
