// SPDX-License-Identifier: Apache-2.0
// Programs whose schedules matter, at any size.
#ifndef TESTS_SCHEDULE_EXAMPLES_H
#define TESTS_SCHEDULE_EXAMPLES_H

#include "schedule_support.h"

#define F32(...)                                                                               \
    type_of_dims(JOT_F32, (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),           \
                 (int64_t[]){__VA_ARGS__})
#define AXES(...)                                                                              \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]) { __VA_ARGS__ }

static inline struct ir_builder begin(const char *name)
{
    return ir_builder_make(module, name, IR_BUILD_PLAIN);
}

static inline uint32_t finish(struct ir_builder *b) { return pass_simplify(module, done(b)); }

// x reduced over its last axis, that axis kept with extent 1 and broadcast back.
static inline ir_id along_rows(struct ir_builder *b, enum ir_op op, ir_id x)
{
    struct ir_type t = ir_type_in(b, x);
    const int64_t *dims = ir_dims(module, t);
    int64_t axes[IR_MAX_RANK];
    for (int i = 0; i < t.rank; i++)
        axes[i] = i;
    ir_id r = ir_reduce(b, op, x, AXES(t.rank - 1));
    return ir_broadcast_in_dim(b, r, t.rank, dims, axes);
}

static inline ir_id mean_rows(struct ir_builder *b, ir_id x)
{
    struct ir_type t = ir_type_in(b, x);
    ir_id n = ir_scalar_like(b, x, (double)ir_dims(module, t)[t.rank - 1]);
    return ir_div(b, along_rows(b, IR_reduce_sum, x), n);
}

static inline ir_id softmax_of(struct ir_builder *b, ir_id x)
{
    ir_id e = ir_exp(b, ir_sub(b, x, along_rows(b, IR_reduce_max, x)));
    return ir_div(b, e, along_rows(b, IR_reduce_sum, e));
}

static inline uint32_t example_softmax(int64_t n, int64_t m)
{
    struct ir_builder b = begin("softmax");
    ir_output(&b, softmax_of(&b, ir_param(&b, F32(n, m))));
    return finish(&b);
}

// y = atan(tanh(tanh(x))) and the sums of its columns.
static inline uint32_t example_dear_sums(int64_t n, int64_t m)
{
    struct ir_builder b = begin("dear_sums");
    ir_id y = ir_atan(&b, ir_tanh(&b, ir_tanh(&b, ir_param(&b, F32(n, m)))));
    ir_id sum = ir_reduce(&b, IR_reduce_sum, y, AXES(0));
    ir_output(&b, sum);
    sum = ir_broadcast_in_dim(&b, sum, 2, (int64_t[]){n, m}, (int64_t[]){1});
    ir_output(&b, ir_sub(&b, y, sum));
    return finish(&b);
}

static inline ir_id sum_all(struct ir_builder *b, ir_id x)
{
    int64_t axes[IR_MAX_RANK];
    int rank = ir_type_in(b, x).rank;
    for (int i = 0; i < rank; i++)
        axes[i] = i;
    return ir_reduce(b, IR_reduce_sum, x, rank, axes);
}

// The gradient in the first parameters of a function whose result is a scalar.
static inline uint32_t gradient(struct ir_builder *b, uint32_t n)
{
    uint32_t f = done(b), g;
    bool wrt[16] = {0};
    for (uint32_t i = 0; i < n; i++)
        wrt[i] = true;
    require(pass_grad(module, f, wrt, &g));
    return pass_simplify(module, pass_inline(module, g, 10000));
}

static inline uint32_t example_softmax_gradient(int64_t n, int64_t m)
{
    struct ir_builder b = begin("softmax_grad");
    ir_id y = softmax_of(&b, ir_param(&b, F32(n, m)));
    ir_output(&b, sum_all(&b, ir_mul(&b, y, y)));
    return gradient(&b, 1);
}

static inline ir_id layer_norm_of(struct ir_builder *b, ir_id x)
{
    ir_id d = ir_sub(b, x, mean_rows(b, x));
    ir_id v = mean_rows(b, ir_mul(b, d, d));
    return ir_mul(b, d, ir_rsqrt(b, ir_add(b, v, ir_scalar_like(b, x, 1e-5))));
}

static inline uint32_t example_layer_norm(int64_t n, int64_t m)
{
    struct ir_builder b = begin("layer_norm");
    ir_output(&b, layer_norm_of(&b, ir_param(&b, F32(n, m))));
    return finish(&b);
}

static inline uint32_t example_layer_norm_gradient(int64_t n, int64_t m)
{
    struct ir_builder b = begin("layer_norm_grad");
    ir_id x = ir_param(&b, F32(n, m)), c = ir_param(&b, F32(n, m));
    ir_output(&b, sum_all(&b, ir_mul(&b, layer_norm_of(&b, x), c)));
    return gradient(&b, 1);
}

static inline uint32_t example_chain_mean(int64_t n)
{
    struct ir_builder b = begin("chain_mean");
    ir_id x = ir_param(&b, F32(n, n));
    for (int i = 0; i < 10; i++)
        x = ir_add(&b, ir_mul(&b, ir_sin(&b, x), ir_cos(&b, x)), ir_sqrt(&b, ir_abs(&b, x)));
    ir_output(&b, ir_div(&b, sum_all(&b, x), ir_scalar_like(&b, x, (double)(n * n))));
    return finish(&b);
}

static inline ir_id dot(struct ir_builder *b, ir_id x, ir_id y, int64_t axis_x, int64_t axis_y)
{
    struct ir_dot d = {.n_contract = 1, .lhs_contract = &axis_x, .rhs_contract = &axis_y};
    return ir_dot_general(b, x, y, &d);
}

// A layer and softmax of a few rows.
static inline uint32_t example_softmax_of_layer(int64_t n, int64_t k, int64_t m)
{
    struct ir_builder b = begin("softmax_of_layer");
    ir_id x = ir_param(&b, F32(n, k)), w = ir_param(&b, F32(k, m));
    ir_output(&b, softmax_of(&b, dot(&b, x, w, 1, 0)));
    return finish(&b);
}

static inline uint32_t example_energy_gradient(int64_t n, int64_t k)
{
    struct ir_builder b = begin("energy_grad");
    ir_id w = ir_param(&b, F32(k)), a = ir_param(&b, F32(k)), x = ir_param(&b, F32(n, k));
    ir_id u = dot(&b, x, w, 1, 0), v = dot(&b, x, a, 1, 0);
    ir_id s = sum_all(&b, ir_mul(&b, u, ir_exp(&b, ir_neg(&b, v))));
    ir_output(&b, ir_div(&b, s, ir_scalar_like(&b, s, (double)n)));
    return gradient(&b, 2);
}

static inline uint32_t example_nbody_gradient(int64_t n)
{
    struct ir_builder b = begin("nbody_grad");
    ir_id p = ir_param(&b, F32(n, 3));
    int64_t dims[] = {n, n, 3};
    ir_id d = ir_sub(&b, ir_broadcast_in_dim(&b, p, 3, dims, (int64_t[]){0, 2}),
                     ir_broadcast_in_dim(&b, p, 3, dims, (int64_t[]){1, 2}));
    ir_id r2 = ir_add(&b, ir_reduce(&b, IR_reduce_sum, ir_mul(&b, d, d), AXES(2)),
                      ir_scalar_like(&b, p, 1e-2));
    ir_id one = ir_scalar_like(&b, p, 1);
    ir_output(&b, ir_neg(&b, sum_all(&b, ir_div(&b, one, ir_sqrt(&b, r2)))));
    return gradient(&b, 1);
}

static inline uint32_t example_reduce(enum ir_op op, int64_t n, int64_t m, int axis)
{
    struct ir_builder b = begin("reduce");
    ir_id x = ir_param(&b, F32(n, m));
    if (op == IR_argmax)
        ir_output(&b, ir_arg(&b, op, x, axis, JOT_I32));
    else
        ir_output(&b, axis < 0 ? sum_all(&b, x) : ir_reduce(&b, op, x, AXES(axis)));
    return finish(&b);
}

static inline uint32_t example_transpose_add(int64_t n)
{
    struct ir_builder b = begin("transpose_add");
    ir_id x = ir_param(&b, F32(n, n));
    ir_output(&b, ir_add(&b, ir_transpose(&b, x, (int64_t[]){1, 0}), x));
    return finish(&b);
}

static inline uint32_t example_matmul_bias_relu(int64_t n)
{
    struct ir_builder b = begin("matmul_bias_relu");
    ir_id x = ir_param(&b, F32(n, n)), y = ir_param(&b, F32(n, n)), c = ir_param(&b, F32(n));
    ir_id z = dot(&b, x, y, 1, 0);
    z = ir_add(&b, z, ir_broadcast_in_dim(&b, c, 2, (int64_t[]){n, n}, (int64_t[]){1}));
    ir_output(&b, ir_max(&b, z, ir_scalar_like(&b, z, 0)));
    return finish(&b);
}

// Per-sample gradients of sum(tanh(x p)^2).
static inline uint32_t example_per_sample(int64_t n, int64_t k)
{
    struct ir_builder b = begin("per_sample");
    ir_id p = ir_param(&b, F32(k, k)), x = ir_param(&b, F32(k));
    ir_id t = ir_tanh(&b, dot(&b, x, p, 0, 0));
    ir_output(&b, sum_all(&b, ir_mul(&b, t, t)));
    uint32_t f = done(&b), g;
    require(pass_grad(module, f, (bool[]){true, false}, &g));
    require(pass_vmap(module, g, (bool[]){false, true}, n, &g, NULL));
    return pass_simplify(module, pass_inline(module, g, 10000));
}

static inline uint32_t example_vmap_dot(int64_t n, int64_t k)
{
    struct ir_builder b = begin("vmap_dot");
    ir_id x = ir_param(&b, F32(k)), w = ir_param(&b, F32(k)), c = ir_param(&b, F32(1));
    ir_id s = dot(&b, x, w, 0, 0);
    ir_output(&b, ir_add(&b, s, ir_reshape(&b, c, 0, NULL)));
    uint32_t f = done(&b), g;
    require(pass_vmap(module, f, (bool[]){true, false, false}, n, &g, NULL));
    return pass_simplify(module, pass_inline(module, g, 10000));
}

static inline uint32_t example_cumsum(int64_t n)
{
    struct ir_builder b = begin("cumsum");
    ir_id x = ir_param(&b, F32(n));
    ir_output(&b, ir_cumulative(&b, IR_cumsum, ir_mul(&b, x, x), 0, false));
    return finish(&b);
}

// One step of x + 0.1 (neighbours - 4 x) on a torus.
static inline ir_id roll(struct ir_builder *b, ir_id x, int axis, int64_t shift)
{
    struct ir_type t = ir_type_in(b, x);
    int64_t start[3] = {0}, limit[3], one[3] = {1, 1, 1};
    memcpy(limit, ir_dims(module, t), (size_t)t.rank * sizeof *limit);
    int64_t cut = shift > 0 ? limit[axis] - shift : -shift;
    ir_id part[2];
    start[axis] = cut;
    part[0] = ir_slice(b, x, start, limit, one);
    start[axis] = 0;
    limit[axis] = cut;
    part[1] = ir_slice(b, x, start, limit, one);
    return ir_concatenate(b, 2, part, axis);
}

static inline ir_id heat_step(struct ir_builder *b, ir_id u)
{
    ir_id s = ir_add(b, roll(b, u, 0, 1), roll(b, u, 0, -1));
    s = ir_add(b, s, ir_add(b, roll(b, u, 1, 1), roll(b, u, 1, -1)));
    s = ir_sub(b, s, ir_mul(b, u, ir_scalar_like(b, u, 4)));
    return ir_add(b, u, ir_mul(b, s, ir_scalar_like(b, u, 0.1)));
}

static inline uint32_t example_heat(int64_t n, int steps)
{
    struct ir_builder b = begin("heat");
    ir_id u = ir_param(&b, F32(n, n));
    for (int i = 0; i < steps; i++)
        u = heat_step(&b, u);
    ir_output(&b, u);
    return finish(&b);
}

// A step of a lattice gas: planes, moved and stacked, go towards what their sums say.
static inline uint32_t example_lattice(int64_t n)
{
    struct ir_builder b = begin("lattice");
    const int64_t dims[3] = {19, n, n};
    ir_id f = ir_param(&b, F32(19, n, n)), part[19], sum[3];
    ir_id way[2] = {ir_param(&b, F32(19)), ir_param(&b, F32(19))};
    for (int k = 0; k < 19; k++) {
        ir_id p = ir_slice(&b, f, (int64_t[]){k, 0, 0}, (int64_t[]){k + 1, n, n},
                           (int64_t[]){1, 1, 1});
        part[k] = roll(&b, roll(&b, p, 1, k % 3 - 1), 2, k / 9 - 1);
    }
    f = ir_concatenate(&b, 19, part, 0);
    for (int i = 0; i < 2; i++)
        way[i] = ir_broadcast_in_dim(&b, way[i], 3, dims, (int64_t[]){0});
    for (int i = 0; i < 3; i++) {
        sum[i] = ir_reduce(&b, IR_reduce_sum, i ? ir_mul(&b, f, way[i - 1]) : f, AXES(0));
        sum[i] = ir_broadcast_in_dim(&b, sum[i], 3, dims, (int64_t[]){1, 2});
    }
    ir_id u = ir_div(&b, sum[1], sum[0]), v = ir_div(&b, sum[2], sum[0]);
    ir_id along = ir_add(&b, ir_mul(&b, u, way[0]), ir_mul(&b, v, way[1]));
    ir_id rest = ir_sub(&b, ir_mul(&b, along, along), ir_mul(&b, u, v));
    rest = ir_mul(&b, sum[0], ir_add(&b, rest, along));
    ir_output(&b, ir_add(&b, f, ir_mul(&b, ir_sub(&b, rest, f), ir_scalar_like(&b, f, 0.6))));
    return finish(&b);
}

static inline uint32_t example_mlp_step(int64_t n, int64_t k)
{
    struct ir_builder b = begin("mlp_grad");
    ir_id w1 = ir_param(&b, F32(k, k)), w2 = ir_param(&b, F32(k, 10)),
          x = ir_param(&b, F32(n, k));
    ir_id h = ir_max(&b, dot(&b, x, w1, 1, 0), ir_scalar_like(&b, x, 0));
    ir_id z = dot(&b, h, w2, 1, 0);
    ir_output(&b, sum_all(&b, ir_log(&b, softmax_of(&b, z))));
    return gradient(&b, 2);
}

static inline uint32_t example_rosenbrock_hessian(int64_t n)
{
    struct ir_builder b = begin("rosenbrock_hessian");
    ir_id x = ir_param(&b, F32(n));
    ir_id p = ir_slice(&b, x, (int64_t[]){1}, (int64_t[]){n}, (int64_t[]){1});
    ir_id q = ir_slice(&b, x, (int64_t[]){0}, (int64_t[]){n - 1}, (int64_t[]){1});
    ir_id d = ir_sub(&b, p, ir_mul(&b, q, q)), e = ir_sub(&b, ir_scalar_like(&b, x, 1), q);
    ir_id s =
        ir_add(&b, ir_mul(&b, ir_mul(&b, d, d), ir_scalar_like(&b, x, 100)), ir_mul(&b, e, e));
    ir_output(&b, sum_all(&b, s));
    uint32_t f = done(&b), g;
    require(pass_hessian(module, f, (bool[]){true}, &g));
    return pass_simplify(module, pass_inline(module, g, 10000));
}

// The same program small enough for the interpreter, fused and not.
static inline void check_small(uint32_t f)
{
    struct ir_tensor *in = draw_inputs(f, seed);
    const struct schedule_options options[] = {
        {0},
        {.separate = true},
        {.no_gemm = true},
        {.large = true},
        {.large = true, .no_accumulation = true, .one_loop = true}};
    for (int i = 0; i < 5; i++) {
        struct nest_program *p = schedule_with(f, &options[i]);
        check_program(f, p);
        check_run(f, p, in);
    }
}

#endif
