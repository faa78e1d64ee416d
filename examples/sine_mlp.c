// SPDX-License-Identifier: Apache-2.0
// A small network learns the sine: the whole training by Adam is one loop in one compiled function.
#include <jot/jot.h>

#include <math.h>
#include <stdio.h>

enum { HIDDEN = 16, POINTS = 64, STEPS = 3000 };
static const double PI = 3.14159265358979323846, RATE = 0.01;

struct net {
    jot_dense layers[3];
};
JOT_OPTIM_STATE(state, struct net, adam);

static jot_value predict(struct net p, jot_value x)
{
    return jot_squeeze(jot_mlp_apply(p.layers, jot_expand_dims(x, 1), jot_tanh), 1);
}

static jot_value loss(struct net p, jot_value x)
{
    return jot_mean(jot_square(jot_sub(predict(p, x), jot_sin(x))));
}

struct result {
    jot_value losses, y; // the loss before each step; the network at the points asked for
};

static struct result learn(jot_value seed, jot_value asked)
{
    jot_value losses;
    struct net p;
    struct state s;
    jot_mlp_init(jot_random_key(seed), p.layers, JOT_DIMS(1, HIDDEN, HIDDEN, 1));
    jot_optimizer adam = jot_adam(RATE);
    jot_optimizer_init(adam, p, &s);
    jot_value x = jot_linspace(JOT_F32, -PI, PI, POINTS);
    JOT_SCAN ((p, s), (), (losses), .length = STEPS)
        jot_optimizer_step(adam, JOT_VALUE_AND_GRAD(&losses, loss, p, x), &p, &s);
    return (struct result){losses, predict(p, asked)};
}

JOT_FUNCTION(learn_fn, learn, struct result, jot_value, jot_value);

int main(void)
{
    float losses[STEPS], y[5];
    const float asked[5] = {-2.5f, -1, 0.1f, 1.5f, 3};
    jot_executable *f = jot_jit(learn_fn);
    jot_array *seed = jot_array_full(JOT_I32, 0), *x = jot_array_from(asked, 5), *out[2];
    if (jot_call(f, JOT_IN(seed, x), JOT_OUT(out)) != JOT_OK ||
        jot_array_read(out[0], losses, STEPS) != JOT_OK ||
        jot_array_read(out[1], y, 5) != JOT_OK) {
        fprintf(stderr, "%s\n", jot_error_message());
        return 1;
    }
    double worst = 0;
    for (int i = 0; i < STEPS; i += STEPS / 5)
        printf("step %4d  loss %.2e\n", i, losses[i]);
    for (int i = 0; i < 5; i++) {
        printf("x %4.1f  network %8.5f  sine %8.5f\n", asked[i], y[i], sin(asked[i]));
        worst = fmax(worst, fabs(y[i] - sin(asked[i])));
    }
    jot_array_release(seed), jot_array_release(x), jot_arrays_release(JOT_OUT(out));
    jot_executable_release(f);
    return worst < 0.02 ? 0 : 1;
}
