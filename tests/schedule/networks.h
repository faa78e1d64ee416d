// SPDX-License-Identifier: Apache-2.0
// Derivatives of networks mapped over points.
#ifndef TESTS_NETWORKS_H
#define TESTS_NETWORKS_H

#include "schedule_random.h"

enum network_kind {
    NETWORK_GRADIENT, // of the mean square of u, in the weights, and its value
    NETWORK_POINTS,   // of u at each point, in its coordinates
    NETWORK_HESSIAN,  // of u at each point, in its coordinates
    NETWORK_PRODUCT,  // the tangent of the first, as for a Hessian times a vector
    NETWORK_RESIDUAL, // the first of u_t + u u_x - u_xx in place of u
    NETWORK_KINDS
};

struct network {
    enum network_kind kind;
    int64_t inputs, width, depth, points;
    uint64_t seed; // of what its layers are; 0: tanh (h w + b)
};

enum { NETWORK_LAYERS = 7, NETWORK_PARAMS = 2 * NETWORK_LAYERS + 2 };

static inline ir_id random_layer(struct random_program *r, const struct network *w, ir_id h,
                                 ir_id z)
{
    struct ir_builder *b = &r->b;
    static const enum ir_op ops[] = {IR_tanh, IR_sin, IR_logistic};
    if (random_below(r, 4) == 0)
        z = ir_mul(b, z, ir_add(b, z, ir_scalar_like(b, z, 0.5)));
    else
        z = ir_map1(b, ops[random_below(r, 3)], z);
    if (random_below(r, 4) == 0)
        z = w->width > 1 && random_below(r, 2) ? layer_norm_of(b, z) : softmax_of(b, z);
    return random_below(r, 3) || !ir_type_equal(ir_type_in(b, h), ir_type_in(b, z))
               ? z
               : ir_add(b, h, z);
}

// u at x: inputs to width, then width to width, then width to 1.
static inline ir_id network_value(struct random_program *r, const struct network *w,
                                  const ir_id *params, ir_id x)
{
    struct ir_builder *b = &r->b;
    for (int64_t i = 0; i <= w->depth; i++) {
        ir_id z = ir_add(b, dot(b, x, params[2 * i], 0, 0), params[2 * i + 1]);
        x = i == w->depth ? z : w->seed ? random_layer(r, w, x, z) : ir_tanh(b, z);
    }
    return ir_reshape(b, x, 0, NULL);
}

// Of a point whose coordinates are scalars.
static inline ir_id network_residual(struct random_program *r, const struct network *w,
                                     const ir_id *params, const ir_id *at)
{
    struct ir_builder *b = &r->b;
    ir_id x[2], g[2], h;
    int n = (int)w->inputs;
    for (int i = 0; i < n; i++)
        x[i] = ir_reshape(b, at[i], 1, (int64_t[]){1});
    ir_id u = network_value(r, w, params, n > 1 ? ir_concatenate(b, n, x, 0) : x[0]);
    pass_gradient_in(b, u, n, at, g);
    pass_gradient_in(b, g[n - 1], 1, &at[n - 1], &h);
    return ir_sub(b, ir_add(b, g[0], ir_mul(b, u, g[n - 1])), h);
}

// What there is of a point, over params and its coordinates.
static inline uint32_t network_point(const struct network *w)
{
    struct random_program r = {.b = begin("network"), .state = w->seed};
    ir_id params[NETWORK_PARAMS], at[2];
    uint32_t n = 0;
    for (int64_t i = 0; i <= w->depth; i++) {
        int64_t to = i < w->depth ? w->width : 1;
        params[n++] = ir_param(&r.b, F32(i ? w->width : w->inputs, to));
        params[n++] = ir_param(&r.b, F32(to));
    }
    if (w->kind == NETWORK_RESIDUAL) {
        for (int64_t i = 0; i < w->inputs; i++)
            at[i] = ir_param(&r.b, type_of_dims(JOT_F32, 0, NULL));
        ir_output(&r.b, network_residual(&r, w, params, at));
        return done(&r.b);
    }
    ir_output(&r.b, network_value(&r, w, params, ir_param(&r.b, F32(w->inputs))));
    uint32_t f = done(&r.b);
    bool wrt[NETWORK_PARAMS + 2] = {0};
    wrt[n] = true;
    if (w->kind == NETWORK_POINTS)
        require(pass_grad(module, f, wrt, &f));
    if (w->kind == NETWORK_HESSIAN)
        require(pass_hessian(module, f, wrt, &f));
    return f;
}

// Of all points, ready to be scheduled.
static inline uint32_t network_of(const struct network *w)
{
    uint32_t f = network_point(w), n = (uint32_t)(2 * (w->depth + 1));
    bool mapped[NETWORK_PARAMS + 2] = {0}, wrt[NETWORK_PARAMS + 2] = {0};
    for (uint32_t i = 0; i < graph(f)->n_params; i++)
        *(i < n ? &wrt[i] : &mapped[i]) = true;
    require(pass_vmap(module, f, mapped, w->points, &f, NULL));
    if (w->kind != NETWORK_POINTS && w->kind != NETWORK_HESSIAN) {
        struct ir_builder b = begin("loss");
        ir_id in[NETWORK_PARAMS + 2], u;
        for (uint32_t i = 0; i < graph(f)->n_params; i++)
            in[i] = ir_param(&b, ir_type_of(graph(f), i));
        ir_inline(&b, graph(f), in, &u);
        ir_output(&b, ir_div(&b, sum_all(&b, ir_mul(&b, u, u)),
                             ir_scalar_like(&b, u, (double)w->points)));
        require(pass_value_and_grad(module, done(&b), wrt, &f));
    }
    if (w->kind == NETWORK_PRODUCT)
        require(pass_jvp(module, f, wrt, &f, NULL));
    return pass_simplify(module, pass_inline(module, f, 10000));
}

#endif
