// SPDX-License-Identifier: Apache-2.0
// A network trained on several devices: each has some of the samples and all of the parameters, and
// gradients are averaged over all.  The losses are those of one device.
//
//     JOT_HOST_DEVICES=4 ./data_parallel        JOT_DEVICE=cuda ./data_parallel
#include <jot/jot.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { SAMPLES = 512, STEPS = 200 };

JOT_STRUCT(mlp, w1, b1, w2, b2);
JOT_STRUCT(trained, loss, (struct mlp, p));

static jot_value loss(struct mlp p, jot_value x, jot_value y)
{
    jot_value h = jot_tanh(jot_add(jot_matmul(x, p.w1), p.b1));
    return jot_mean(jot_square(jot_sub(jot_add(jot_matmul(h, p.w2), p.b2), y)));
}

static struct mlp move(struct mlp p, struct mlp g)
{
    for (size_t i = 0; i < JOT_COUNT(p); i++)
        JOT_LEAVES(p)[i] = jot_sub(JOT_LEAVES(p)[i], jot_mul(0.1, JOT_LEAVES(g)[i]));
    return p;
}

static struct trained step(struct mlp p, jot_value x, jot_value y)
{
    struct trained t;
    struct mlp g = JOT_VALUE_AND_GRAD(&t.loss, loss, p, x, y);
    t.p = move(p, g);
    return t;
}

// The same where x and y are those of one device.
static struct trained step_of_all(struct mlp p, jot_value x, jot_value y)
{
    struct trained t;
    struct mlp g = JOT_VALUE_AND_GRAD(&t.loss, loss, p, x, y);
    jot_pmean_tree(JOT_COUNT(g), JOT_LEAVES(g), "i");
    t.loss = jot_pmean(t.loss, "i");
    t.p = move(p, g);
    return t;
}

JOT_FUNCTION(step_fn, step, struct trained, struct mlp, jot_value, jot_value);
JOT_FUNCTION(step_of_all_fn, step_of_all, struct trained, struct mlp, jot_value, jot_value);

static void must(jot_status status)
{
    if (status != JOT_OK) {
        fprintf(stderr, "%s\n", jot_error_message());
        exit(1);
    }
}

static void train(jot_executable *f, struct mlp_arrays p, jot_array *x, jot_array *y,
                  double *losses)
{
    for (int i = 0; i < STEPS; i++) {
        struct trained_arrays t;
        must(jot_call(f, JOT_IN(p, x, y), JOT_OUT(t)));
        if (i)
            jot_arrays_release(JOT_OUT(p));
        losses[i] = jot_array_item(t.loss);
        jot_array_release(t.loss);
        p = t.p;
    }
    jot_arrays_release(JOT_OUT(p));
}

int main(void)
{
    static double one[STEPS], all[STEPS];
    jot_mesh *mesh = jot_mesh_of(jot_device_kind_of(jot_default_device()), {"i", 0});
    struct mlp_arrays p = {.b1 = jot_array_full(JOT_F32, 0, 32),
                           .b2 = jot_array_full(JOT_F32, 0, 1)};
    jot_array *x, *y;
    jot_scope *s = jot_scope_open();
    jot_value keys = jot_random_split(jot_random_key(0), 3);
    must(jot_eval(jot_random_normal(jot_take(keys, 0), JOT_F32, 2, 32), &p.w1));
    must(jot_eval(jot_mul(0.2, jot_random_normal(jot_take(keys, 1), JOT_F32, 32, 1)), &p.w2));
    must(jot_eval(jot_random_normal(jot_take(keys, 2), JOT_F32, SAMPLES, 2), &x));
    must(jot_eval(jot_sum(jot_sin(x), 1, JOT_KEEPDIMS), &y));
    jot_scope_close(s);

    jot_executable *f = jot_jit(step_fn, .device = jot_default_device());
    jot_executable *g = jot_jit(jot_shard_map(step_of_all_fn, mesh, JOT_SPLITS("", "i", "i"),
                                              JOT_SPLITS("", "", "", "", "")));
    if (!f || !g)
        must(JOT_ERR_ARGUMENT);
    train(f, p, x, y, one);
    train(g, p, x, y, all);
    double worst = 0;
    for (int i = 0; i < STEPS; i++)
        worst = fmax(worst, fabs(one[i] - all[i]) / one[i]);
    printf("%zu devices: loss %.5f to %.5f, differs by %.1e from that of one\n",
           jot_mesh_size(mesh), all[0], all[STEPS - 1], worst);
    jot_arrays_release(JOT_OUT(p)), jot_array_release(x), jot_array_release(y);
    jot_executable_release(f), jot_executable_release(g);
    return worst < 1e-5 && all[STEPS - 1] < 0.1 * all[0] ? 0 : 1;
}
