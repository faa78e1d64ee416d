// SPDX-License-Identifier: Apache-2.0
// A network that solves Burgers' equation, u_t + u u_x = 0.01 u_xx with u(0, x) = -sin(pi x) and
// u(t, -1) = u(t, 1) = 0.  Derivatives of the network are in the loss, and the loss has a gradient.
#include <jot/jot.h>

#include <math.h>
#include <stdio.h>

enum { WIDTH = 20, POINTS = 500, STEPS = 10000, GRID = 201 };
static const double PI = 3.14159265358979323846, NU = 0.01;

struct net {
    jot_dense layers[4];
};
JOT_OPTIM_STATE(state, struct net, adam);

// Meets the conditions at t = 0 and at x = -1 and 1 whatever the weights are.
static jot_value solution(struct net p, jot_value t, jot_value x)
{
    jot_value h = jot_mlp_apply(p.layers, jot_stack(0, t, x), jot_tanh);
    jot_value away = jot_mul(t, jot_sub(1, jot_square(x)));
    return jot_sub(jot_mul(away, jot_take(h, 0)), jot_sin(jot_mul(PI, x)));
}

// The mean square of the residual at random points.
static jot_value loss(struct net p, jot_value key)
{
    jot_value points = jot_random_uniform(key, JOT_F32, 2, POINTS), r;
    jot_value t = jot_take(points, 0), x = jot_sub(jot_mul(2, jot_take(points, 1)), 1);
    JOT_VMAP ((t, x), (r)) {
        jot_value u = solution(p, t, x), u_t = jot_gradient(u, t), u_x = jot_gradient(u, x);
        r = jot_sub(jot_add(u_t, jot_mul(u, u_x)), jot_mul(NU, jot_gradient(u_x, x)));
    }
    return jot_mean(jot_square(r));
}

// Adam, at points that are new in every step.
static struct net trained(struct net p, jot_value key)
{
    jot_optimizer adam = jot_adam(jot_linear_schedule(0.01, 0, STEPS));
    struct state s;
    jot_optimizer_init(adam, p, &s);
    JOT_FOR (i, STEPS, p, s)
        jot_optimizer_step(adam, JOT_GRAD(loss, p, jot_random_fold_in(key, i)), &p, &s);
    return p;
}

// The mean square of the residual at new points, then u(0.5, x) on a grid.
static jot_value solve(jot_value seed)
{
    jot_value keys = jot_random_split(jot_random_key(seed), 3), r, u;
    struct net p;
    jot_mlp_init(jot_take(keys, 0), p.layers, JOT_DIMS(2, WIDTH, WIDTH, WIDTH, 1));
    p = trained(p, jot_take(keys, 1));
    jot_value fresh = jot_random_split(jot_take(keys, 2), 40);
    jot_value x = jot_linspace(JOT_F32, -1, 1, GRID);
    JOT_VMAP ((fresh), (r)) {
        r = loss(p, fresh);
    }
    JOT_VMAP ((x), (u)) {
        u = solution(p, jot_from(0.5), x);
    }
    return jot_concatenate(0, jot_mean(r, JOT_KEEPDIMS), u);
}

// The solution of Cole and Hopf: two integrals over the heat kernel, by the trapezoidal rule.
static double exact(double t, double x)
{
    double above = 0, below = 0;
    for (double e = -6; e <= 6; e += 0.01) {
        double y = x - sqrt(4 * NU * t) * e;
        double weight = exp(-cos(PI * y) / (2 * PI * NU) - e * e);
        above -= sin(PI * y) * weight, below += weight;
    }
    return above / below;
}

int main(void)
{
    float out[1 + GRID], *u = out + 1;
    double error = 0, size = 0;
    jot_array *seed = jot_array_full(JOT_I32, 0), *result;
    jot_executable *f = jot_jit(jot_fn(solve));
    if (jot_call(f, JOT_IN(seed), JOT_OUT(result)) != JOT_OK ||
        jot_array_read(result, out, 1 + GRID) != JOT_OK) {
        fprintf(stderr, "%s\n", jot_error_message());
        return 1;
    }
    for (int i = 0; i < GRID; i++) {
        double e = exact(0.5, 2.0 * i / (GRID - 1) - 1);
        error += (u[i] - e) * (u[i] - e), size += e * e;
    }
    error = sqrt(error / size);
    printf("mean square of the residual %.1e, error at t = 0.5 %.1e\n", out[0], error);
    jot_array_release(seed), jot_array_release(result), jot_executable_release(f);
    return out[0] < 1e-3 && error < 5e-2 ? 0 : 1;
}
