// SPDX-License-Identifier: Apache-2.0
// A neural differential equation learns a field from a path: y' = w2 tanh(w1 y^3) is fitted to pieces of a
// spiral, y' = A y^3, through the steps of the solver, by Adam.  The problem is that of Chen and others,
// arXiv:1806.07366.
#include <jot/jot.h>

#include <stdio.h>

enum { PIECES = 20, ROWS = 10, HIDDEN = 32, TRIPS = 500 };
static const double APART = 0.025; // in time

JOT_STRUCT(net, (jot_dense, layers[2]));
JOT_OPTIM_STATE(state, struct net, adam);

static jot_value cubed(jot_value y) { return jot_integer_pow(y, 3); }

static jot_value spiral(jot_value t, jot_value y)
{
    jot_value x = jot_take(cubed(y), 0), v = jot_take(cubed(y), 1);
    (void)t;
    return jot_stack(0, jot_add(jot_mul(-0.1, x), jot_mul(2, v)),
                     jot_add(jot_mul(-2, x), jot_mul(-0.1, v)));
}

static jot_value field(jot_value t, jot_value y, struct net w)
{
    (void)t;
    return jot_mlp_apply(w.layers, cubed(y), jot_tanh);
}
JOT_FUNCTION(field_fn, field, jot_value, jot_value, jot_value, struct net);

static jot_value rows(int n) { return jot_mul(APART, jot_arange(JOT_F32, n)); }

// The path, cut into pieces.
static jot_value measured(void)
{
    jot_value start = jot_stack(0, jot_full(JOT_F32, 2), 0);
    jot_value y = jot_ode_solve(jot_fn(spiral), 0, 5, start, .times = rows(PIECES * ROWS));
    return jot_reshape(y, PIECES, ROWS, 2);
}

static jot_value loss(struct net w, jot_value pieces)
{
    jot_value distance;
    JOT_VMAP ((pieces), (distance)) {
        jot_value y =
            jot_ode_solve(field_fn, 0, APART * ROWS, jot_take(pieces, 0), .times = rows(ROWS),
                          .parameters = JOT_PARAMETERS(w), .rtol = 1e-3, .slots = 8);
        distance = jot_mean(jot_abs(jot_sub(y, pieces)));
    }
    return jot_mean(distance);
}

// The loss before and after.
static jot_value train(jot_value seed)
{
    jot_value pieces = measured();
    struct net w;
    struct state s;
    jot_mlp_init(jot_random_key(seed), w.layers, JOT_DIMS(2, HIDDEN, 2),
                 .w = jot_random_normal_dims, .scale = 0.1);
    jot_optimizer adam = jot_adam(0.01);
    jot_optimizer_init(adam, w, &s);
    jot_value before = loss(w, pieces);
    JOT_FOR (i, TRIPS, w, s)
        jot_optimizer_step(adam, JOT_GRAD(loss, w, pieces), &w, &s);
    return jot_stack(0, before, loss(w, pieces));
}

int main(void)
{
    float x[2];
    jot_executable *f = jot_jit(jot_fn(train));
    jot_array *seed = jot_array_full(JOT_I32, 0), *out;
    if (jot_call(f, JOT_IN(seed), JOT_OUT(out)) != JOT_OK ||
        jot_array_read(out, x, 2) != JOT_OK) {
        fprintf(stderr, "%s\n", jot_error_message());
        return 1;
    }
    printf("mean distance from the spiral: %.4f at first, %.4f after %d trips\n", x[0], x[1],
           TRIPS);
    jot_array_release(seed), jot_array_release(out);
    jot_executable_release(f);
    return x[1] < 0.05 * x[0] ? 0 : 1;
}
