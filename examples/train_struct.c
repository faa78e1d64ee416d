// SPDX-License-Identifier: Apache-2.0
// A small network with its parameters in a struct, trained by gradient descent.
#include <jot/jot.h>

#include <stdio.h>
#include <stdlib.h>

JOT_STRUCT(mlp, w1, b1, w2, b2); // struct mlp of values, struct mlp_arrays of arrays

static jot_value predict(struct mlp p, jot_value x)
{
    jot_value h = jot_tanh(jot_add(jot_dot(x, p.w1), p.b1));
    return jot_add(jot_dot(h, p.w2), p.b2);
}

static jot_value loss(struct mlp p, jot_value x, jot_value y)
{
    return jot_mean(jot_square(jot_sub(predict(p, x), y)));
}

static struct mlp step(struct mlp p, jot_value x, jot_value y)
{
    struct mlp g = JOT_GRAD(loss, p, x, y);
    jot_value *w = JOT_LEAVES(p), *d = JOT_LEAVES(g);
    for (size_t i = 0; i < JOT_COUNT(p); i++)
        w[i] = jot_sub(w[i], jot_mul(0.05, d[i]));
    return p;
}

JOT_FUNCTION(loss_fn, loss, jot_value, struct mlp, jot_value, jot_value);
JOT_FUNCTION(step_fn, step, struct mlp, struct mlp, jot_value, jot_value);

static void must(jot_status status)
{
    if (status != JOT_OK) {
        fprintf(stderr, "%s\n", jot_error_message());
        exit(1);
    }
}

int main(void)
{
    struct mlp_arrays net = {.b1 = jot_array_full(JOT_F32, 0, 16),
                             .b2 = jot_array_full(JOT_F32, 0, 1)};
    jot_array *x, *y, *l;
    jot_scope *s = jot_scope_open();
    jot_value keys = jot_random_split(jot_random_key(0), 2);
    must(jot_eval(jot_random_normal(jot_take(keys, 0), JOT_F32, 1, 16), &net.w1));
    must(jot_eval(jot_mul(0.5, jot_random_normal(jot_take(keys, 1), JOT_F32, 16, 1)), &net.w2));
    must(jot_eval(jot_reshape(jot_linspace(JOT_F32, -3, 3, 64), 64, 1), &x));
    must(jot_eval(jot_sin(x), &y));
    jot_scope_close(s);

    jot_executable *train = jot_jit(step_fn, .name = "train");
    jot_executable *measure = jot_jit(loss_fn);
    double first = 0, last = 0;
    for (int i = 0; i <= 1000; i++) {
        struct mlp_arrays next;
        if (i % 250 == 0) {
            must(jot_call(measure, JOT_IN(net, x, y), JOT_OUT(l)));
            last = jot_array_item(l);
            first = i == 0 ? last : first;
            printf("step %4d  loss %.6f\n", i, last);
            jot_array_release(l);
        }
        must(jot_call(train, JOT_IN(net, x, y), JOT_OUT(next)));
        jot_arrays_replace(net, next);
    }
    jot_arrays_release(JOT_OUT(net));
    jot_array_release(x), jot_array_release(y);
    jot_executable_release(train), jot_executable_release(measure);
    return last < 0.02 * first ? 0 : 1;
}
