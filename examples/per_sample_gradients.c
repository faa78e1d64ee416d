// SPDX-License-Identifier: Apache-2.0
// The gradient of every sample on its own: vmap of grad, against a loop over the samples.
#include <jot/jot.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { SAMPLES = 64, INPUTS = 8 };

struct neuron {
    jot_value w, b;
};

static jot_value loss(struct neuron p, jot_value x, jot_value y)
{
    return jot_square(jot_sub(jot_tanh(jot_add(jot_dot(x, p.w), p.b)), y));
}

JOT_FUNCTION(loss_fn, loss, jot_value, struct neuron, jot_value, jot_value);

static void must(jot_status status)
{
    if (status != JOT_OK) {
        fprintf(stderr, "%s\n", jot_error_message());
        exit(1);
    }
}

int main(void)
{
    jot_array *w, *b = jot_array_full(JOT_F64, 0.1), *x, *y;
    jot_scope *s = jot_scope_open();
    jot_value keys = jot_random_split(jot_random_key(1), 3);
    must(jot_eval(jot_random_normal(jot_take(keys, 0), JOT_F64, INPUTS), &w));
    must(jot_eval(jot_random_normal(jot_take(keys, 1), JOT_F64, SAMPLES, INPUTS), &x));
    must(jot_eval(jot_random_uniform(jot_take(keys, 2), JOT_F64, SAMPLES), &y));
    jot_scope_close(s);

    jot_executable *one = jot_jit(jot_grad(loss_fn));
    jot_executable *all = jot_jit(jot_vmap(jot_grad(loss_fn), JOT_NONE, 0, 0));
    jot_array *g[2];
    static double samples[SAMPLES][INPUTS], labels[SAMPLES], rows[SAMPLES][INPUTS];
    must(jot_call(all, JOT_IN(w, b, x, y), JOT_OUT(g)));
    must(jot_array_read(g[0], rows[0], SAMPLES * INPUTS));
    must(jot_array_read(x, samples[0], SAMPLES * INPUTS));
    must(jot_array_read(y, labels, SAMPLES));

    double worst = 0, largest = 0;
    for (int i = 0; i < SAMPLES; i++) {
        double row[INPUTS], norm = 0;
        jot_array *xi = jot_array_from(samples[i], INPUTS), *yi = jot_array_from(&labels[i]),
                  *gi[2];
        must(jot_call(one, JOT_IN(w, b, xi, yi), JOT_OUT(gi)));
        must(jot_array_read(gi[0], row, INPUTS));
        for (int k = 0; k < INPUTS; k++) {
            worst = fmax(worst, fabs(row[k] - rows[i][k]));
            norm += row[k] * row[k];
        }
        largest = fmax(largest, sqrt(norm));
        jot_array_release(xi), jot_array_release(yi);
        jot_arrays_release(JOT_OUT(gi));
    }
    printf("largest gradient of a sample %.6f, vmap against loop %.1e\n", largest, worst);
    jot_array_release(w), jot_array_release(b), jot_array_release(x), jot_array_release(y);
    jot_arrays_release(JOT_OUT(g));
    jot_executable_release(one), jot_executable_release(all);
    return worst < 1e-13 && largest > 0 ? 0 : 1;
}
