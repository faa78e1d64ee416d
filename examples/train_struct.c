// SPDX-License-Identifier: Apache-2.0
// A small network with its parameters in a struct, trained by Adam.
#include <jot/jot.h>

#include <stdio.h>
#include <stdlib.h>

JOT_STRUCT(mlp, (jot_dense, layers[2])); // struct mlp of values, struct mlp_arrays of arrays
JOT_OPTIM_STATE(means, struct mlp, adam);
JOT_STRUCT(training, (struct mlp, net), (struct means, means), loss);

static jot_value loss(struct mlp p, jot_value x, jot_value y)
{
    return jot_mean(jot_square(jot_sub(jot_mlp_apply(p.layers, x, jot_tanh), y)));
}

static struct training step(struct training t, jot_value x, jot_value y)
{
    struct mlp g = JOT_VALUE_AND_GRAD(&t.loss, loss, t.net, x, y);
    jot_optimizer_step(jot_adam(0.05), g, &t.net, &t.means);
    return t;
}

JOT_FUNCTION(step_fn, step, struct training, struct training, jot_value, jot_value);

static void must(jot_status status)
{
    if (status != JOT_OK) {
        fprintf(stderr, "%s\n", jot_error_message());
        exit(1);
    }
}

int main(void)
{
    jot_scope *s = jot_scope_open();
    struct mlp net;
    jot_mlp_init(jot_random_key(0), net.layers, JOT_DIMS(1, 16, 1));
    struct training first = {.net = net, .loss = jot_zeros(JOT_F32)};
    struct training_arrays t, next;
    jot_array *x, *y;
    jot_optimizer_init(jot_adam(0.05), net, &first.means);
    must(jot_eval_tree(JOT_TREE(first), (jot_array **)&t));
    must(jot_eval(jot_reshape(jot_linspace(JOT_F32, -3, 3, 64), 64, 1), &x));
    must(jot_eval(jot_sin(x), &y));
    jot_scope_close(s);

    jot_executable *train = jot_jit(step_fn, .name = "train");
    for (int i = 0; i <= 500; i++) {
        must(jot_call(train, JOT_IN(t, x, y), JOT_OUT(next)));
        jot_arrays_replace(t, next);
        if (i % 100 == 0)
            printf("step %4d  loss %.6f\n", i, jot_array_item(t.loss));
    }
    double last = jot_array_item(t.loss);
    jot_arrays_release(JOT_OUT(t)), jot_array_release(x), jot_array_release(y);
    jot_executable_release(train);
    return last < 1e-2 ? 0 : 1;
}
